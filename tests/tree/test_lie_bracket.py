"""The bracket of velocities: what steps in two orders differ by."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from zoo import add_body, at, lump, one_of_each

import holoctl as hc
from holoctl.tree.lie_bracket import adjoint_velocity, bracket, curved_joints


def by_steps(model, q, x, y, e=1e-3):
    """The definition, its error of order e^2 extrapolated away."""

    def at_step(e):
        one = pin.integrate(model, pin.integrate(model, q, e * x), e * y)
        other = pin.integrate(model, pin.integrate(model, q, e * y), e * x)
        return pin.difference(model, other, one) / e**2

    def even(e):
        return (at_step(e) + at_step(-e)) / 2.0

    return (4.0 * even(e / 2) - even(e)) / 3.0


def test_brackets_are_what_steps_in_two_orders_differ_by():
    model, rng = one_of_each(), np.random.default_rng(0)
    q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
    for _ in range(5):
        x, y = rng.normal(size=(2, model.nv))
        found = bracket(model, x[:, None], y)[:, 0]
        assert found == pytest.approx(by_steps(model, q, x, y), abs=1e-7)
        assert found == pytest.approx(adjoint_velocity(model, x) @ y, abs=1e-14)
        assert found == pytest.approx(-bracket(model, y[:, None], x)[:, 0], abs=1e-14)


def test_where_coordinates_add_up_there_is_none():
    model, rng = one_of_each(), np.random.default_rng(1)
    x, y = rng.normal(size=(2, model.nv))
    found = bracket(model, x[:, None], y)[:, 0]
    curved = np.zeros(model.nv, dtype=bool)
    for where, _ in curved_joints(model):
        curved[where] = True
    assert np.count_nonzero(curved) == 6 + 3 + 3 + 3  # free, ball, the ball in the wrist, planar
    assert np.array_equal(found != 0.0, curved & ~_turn_of_planar(model))


def _turn_of_planar(model):
    """The turn of a planar joint commutes."""
    at_turn = np.zeros(model.nv, dtype=bool)
    at_turn[model.idx_vs[model.getJointId("sled")] + 2] = True
    return at_turn


def test_jacobi():
    model, rng = one_of_each(), np.random.default_rng(2)
    x, y, z = rng.normal(size=(3, model.nv))

    def of(a, b):
        return adjoint_velocity(model, a) @ b

    total = of(x, of(y, z)) + of(y, of(z, x)) + of(z, of(x, y))
    assert total == pytest.approx(np.zeros(model.nv), abs=1e-12)
    assert np.abs(of(x, of(y, z))).max() > 0.1


def test_angles_of_euler_add_up():
    """Their rates are coordinates, no angular velocity: three numbers, and nothing curved."""
    model = pin.Model()
    add_body(model, 0, pin.JointModelSphericalZYX(), at(), "eye", lump(np.random.default_rng(0)))
    assert curved_joints(model) == ()
    lin = hc.linearize(hc.Mechanism(model, [], []), [0.1, 0.2, 0.3], [0.3, -0.2, 0.5])
    assert np.abs(lin.A[:3, :3]).max() == 0.0
