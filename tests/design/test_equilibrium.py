"""Equilibria: closed, at rest, in balance; near the guess; refused where there are none."""

from __future__ import annotations

import dataclasses
import pickle

import linkages
import numpy as np
import pinocchio as pin
import pytest
from overconstrained import drawn, meant
from shared_robots import shared_robot
from support import few, mechanism
from zoo import ZOO, add_body, at, bar, five_bar, vertical

import holoctl as hc


def pendulum(joint=None, motors=(), **more):
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ() if joint is None else joint, at(), "link", bar(0.5))
    return hc.Mechanism(m, [], motors, name="pendulum", **more)


def one_motor():
    return dataclasses.replace(five_bar(), actuated=["left"])


def balance(eq):
    """What is left of the equation of motion at rest, along the motions; the general path."""
    mech, part = eq.mech, eq.partition
    P = hc.project(mech, eq.q, eq.v, "orthonormal", partition=part, t_stab=False)
    left = P.gamma.T @ (P.terms.h - P.terms.F - mech.B @ eq.u)
    return np.abs(left).max(initial=0.0) / (1.0 + np.abs(P.terms.h).max())


@pytest.mark.parametrize("name", few([n for n in ZOO if n not in ("timed_arm", "floating_leg")]))
def test_of_the_zoo_are_closed_and_in_balance(name):
    eq = hc.equilibrium(mechanism(name))
    assert hc.constraint_errors(eq.mech, eq.q, eq.v).closure < 1e-11
    assert balance(eq) < 1e-12
    moves = hc.forward_dynamics(eq.mech, eq.q, eq.v, eq.mech.B @ eq.u, partition=eq.partition)
    assert np.abs(moves.a).max() < 1e-8
    assert len(eq.unheld) == eq.mech.nv - eq.partition.rank - eq.held


@pytest.mark.parametrize("name", hc.robot_names())
def test_robots_hold_their_reference(name):
    mech = hc.load(hc.robot_file(name))
    eq = hc.equilibrium(mech)
    np.testing.assert_array_equal(eq.q, hc.assemble(mech)[0])
    held = hc.inverse_dynamics(mech, eq.q, eq.v, np.zeros(mech.nv), coordinates="all")
    np.testing.assert_allclose(eq.u, held.u, rtol=1e-10, atol=1e-12)
    assert held.certificate.ok


def test_a_pendulum_stands_or_hangs():
    up, down = hc.equilibrium(pendulum(), [1.2]), hc.equilibrium(pendulum(), [-1.2])
    np.testing.assert_allclose([up.q[0], down.q[0]], [np.pi / 2, -np.pi / 2], atol=1e-12)
    assert (up.stable, down.stable) == (False, True)
    assert "unstable" in up.unheld[0]
    assert "which is stable" in down.unheld[0]
    level = hc.equilibrium(pendulum(), [0.0])  # where the way has no slope
    assert abs(abs(level.q[0]) - np.pi / 2) < 1e-9


def test_given_efforts_are_held_where_they_balance():
    mech = pendulum(motors=["link"])
    most = float(hc.equilibrium(mech, [0.0]).u[0])  # the weight on its lever
    eq = hc.equilibrium(mech, [0.3], [0.5 * most])
    assert abs(np.cos(eq.q[0]) - 0.5) < 1e-11
    assert eq.stable is False
    assert hc.equilibrium(mech, [-0.7], [0.5 * most]).stable is True
    with pytest.raises(hc.InconsistentError, match=r"nowhere near the guess.*'link'"):
        hc.equilibrium(mech, [0.3], [1.1 * most])


def test_ball_and_continuous_joints():
    down = [0.0, 0.0, -np.sqrt(0.4), np.sqrt(0.6)]
    ball = hc.equilibrium(pendulum(pin.JointModelSpherical()), down)
    assert balance(ball) < 1e-12
    assert ball.stable is None
    assert sum("no restoring force" in s for s in ball.unheld) == 1
    turned = hc.equilibrium(pendulum(pin.JointModelRUBZ()), [np.cos(2.0), np.sin(2.0)])
    np.testing.assert_allclose(turned.q, [0.0, 1.0], atol=1e-11)


def test_fewer_motors_than_motions():
    mech = one_motor()
    near = hc.equilibrium(mech)
    fixed = hc.equilibrium(mech, locked=["left"])
    assert fixed.q[0] == pytest.approx(2.2, abs=1e-10)
    assert balance(near) < 1e-12
    assert balance(fixed) < 1e-12
    start = hc.assemble(mech)[0]
    assert np.linalg.norm(near.q - start) < np.linalg.norm(fixed.q - start)
    assert near.held == 1
    assert "unstable" in near.unheld[0]


def test_the_nearest_of_many():
    """Along the equilibria the distance to the guess has no slope."""
    mech = one_motor()
    start, near = hc.assemble(mech)[0], hc.equilibrium(mech)
    for turn in (-1e-3, 1e-3):
        guess = near.q.copy()
        guess[0] += turn
        other = hc.equilibrium(mech, guess, locked=["left"])
        assert np.linalg.norm(other.q - start) > np.linalg.norm(near.q - start) - 1e-9


def test_what_cannot_be_held_is_named():
    with pytest.raises(hc.NotActuatedError, match=r"with 'left', 'right' locked.*'right_rod'"):
        hc.equilibrium(one_motor(), locked=["left", "right"])
    with pytest.raises(hc.NotActuatedError, match=r"'base\[2\]' \(pulled by 129 N"):
        hc.equilibrium(mechanism("floating_leg"))
    with pytest.raises(hc.InconsistentError, match=r"rest is impossible at t = 0 s.*'bench.0'"):
        hc.equilibrium(mechanism("timed_arm"))


def test_springs_hold_and_nothing_holds_without_gravity():
    sprung = pendulum(forces=[hc.JointSpring("link", stiffness=200.0)])
    eq = hc.equilibrium(sprung)
    moment = float(hc.equilibrium(pendulum(motors=["link"]), [0.0]).u[0])
    assert eq.q[0] * 200.0 == pytest.approx(-moment * np.cos(eq.q[0]), rel=1e-10)
    assert eq.stable
    model = five_bar().model.copy()
    model.gravity = pin.Motion.Zero()
    afloat = hc.equilibrium(one_motor().with_model(model))
    assert not afloat.u.any()
    assert afloat.stable is None
    assert "no restoring force" in afloat.unheld[0]


def test_redundant_motors_share_by_least_norm():
    mech = mechanism("three_motors")
    eq = hc.equilibrium(mech)
    A = hc.project(mech, eq.q, eq.v, partition=eq.partition).gamma.T @ mech.B
    idle = np.linalg.svd(A)[2][np.linalg.matrix_rank(A) :]
    assert np.abs(idle @ eq.u).max() < 1e-12


def test_a_rounded_file_closes_as_it_is_meant():
    mech = dataclasses.replace(hc.load(hc.robot_file("delta")), tolerance=1e-4)
    eq = hc.equilibrium(mech)
    assert balance(eq) < 1e-12


def test_the_value():
    eq = hc.equilibrium(one_motor())
    assert repr(eq).startswith("<Equilibrium of 'five_bar': efforts up to 3.79 N m or N, 1 held, 1")
    assert repr(pickle.loads(pickle.dumps(eq))) == repr(eq)
    assert not eq.q.flags.writeable
    with pytest.raises(hc.InputError, match="there is no coordinate called 'lft'"):
        hc.equilibrium(one_motor(), locked=["lft"])
    with pytest.raises(hc.InputError, match="locked must be a list"):
        hc.equilibrium(one_motor(), locked="left")
    with pytest.raises(hc.InputError, match=r"u \(motor efforts\) must have shape \(1,\)"):
        hc.equilibrium(one_motor(), u=[1.0, 2.0])


# ------------------------------------------------------------------- of very different size, bent


def on_an_arm(mass, small, forces=(), motors=("arm",)):
    """A pendulum of 1 cm at the end of an arm of 1 m."""
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ(), at(), "arm", bar(1.0, mass))
    ball = pin.Inertia(small, np.array([0.01, 0.0, 0.0]), 1e-5 * small * np.eye(3))
    add_body(m, "arm", pin.JointModelRZ(), at(1.0), "small", ball)
    return hc.Mechanism(m, [], motors, forces=forces, name="on_an_arm")


@pytest.mark.parametrize(("mass", "small"), [(1.0, 0.01), (1e3, 1e-3), (1e3, 1e-6)])
def test_a_small_pendulum_on_a_heavy_arm_counts(mass, small):
    eq = hc.equilibrium(on_an_arm(mass, small), [0.3, 0.5])
    assert eq.q.sum() == pytest.approx(np.pi / 2, abs=1e-10)
    assert "'small': no motor moves it, and it is at an equilibrium, which is unst" in eq.unheld[0]


@pytest.mark.parametrize("stiffness", [1e3, 1e6, 1e8])
def test_beside_a_stiff_spring_the_weak_ones_count(stiffness):
    spring = hc.JointSpring("arm", stiffness)
    eq = hc.equilibrium(on_an_arm(1.0, 0.01, [spring], ()), [0.0, -1.5])
    assert stiffness * eq.q[0] == pytest.approx(-9.81 * (0.5 + 0.01), rel=1e-4)
    assert eq.q.sum() == pytest.approx(-np.pi / 2, abs=1e-10)
    assert eq.stable
    assert all("which is stable" in sentence for sentence in eq.unheld)


def test_of_a_tenth_of_a_millimetre_and_a_microgram():
    mech = dataclasses.replace(linkages.four_bar(1e-4).mechanism(), actuated=())
    model = mech.model.copy()
    model.gravity.linear = np.array([0.0, -9.81, 0.0])
    for i in range(1, model.njoints):
        body = model.inertias[i]
        model.inertias[i] = pin.Inertia(1e-9 * body.mass, body.lever, 1e-9 * body.inertia)
    eq = hc.equilibrium(mech.with_model(model))
    assert balance_over_size(eq) < 1e-9
    assert eq.stable is not None
    assert hc.linearize(eq.mech, eq.q, u=eq.u).at_equilibrium


def balance_over_size(eq):
    """As `balance`, over the efforts that act, however small."""
    P = hc.project(eq.mech, eq.q, eq.v, "orthonormal", partition=eq.partition, t_stab=False)
    left = P.gamma.T @ (P.terms.h - P.terms.F - eq.mech.B @ eq.u)
    return np.abs(left).max() / np.abs(P.terms.h).max()


def test_no_equilibrium_a_millionth_beyond_the_last_one():
    mech = pendulum(motors=["link"])
    most = float(hc.equilibrium(mech, [0.0]).u[0])
    assert abs(hc.equilibrium(mech, [0.3], [most * (1.0 - 1e-6)]).q[0]) < 2e-3
    with pytest.raises(hc.InconsistentError, match="nowhere near"):
        hc.equilibrium(mech, [0.3], [most * (1.0 + 1e-6)])


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_rope_that_is_just_taut_holds_one_side_only(side):
    """Upright, with a rope to one side: it falls to that side."""
    rope = hc.Spring(("link", at(0.5)), ("universe", at(side, 0.5)), 500.0, 1.0, unilateral=True)
    eq = hc.equilibrium(pendulum(forces=[rope]), [np.pi / 2])
    assert eq.stable is None
    assert "unstable" in eq.unheld[0]
    other = hc.Spring(
        ("link", at(0.5)), ("universe", at(-side, 0.5)), 500.0, 1.0, unilateral=True, name="other"
    )
    held = hc.equilibrium(pendulum(forces=[rope, other]), [np.pi / 2])
    assert held.stable
    assert "which is stable" in held.unheld[0]


def test_idle_rods_of_a_leg_are_in_balance_but_for_rounding():
    mech = hc.load(shared_robot("cassie_like"))
    eq = hc.equilibrium(mech)
    np.testing.assert_array_equal(eq.q, hc.assemble(mech)[0])
    assert sum("no restoring force" in sentence for sentence in eq.unheld) == 2


def test_rounded_rows_that_are_kept_at_the_equilibrium_count():
    mech = dataclasses.replace(meant(drawn("bennett")[1], 1e-5), actuated=[])
    eq = hc.equilibrium(mech)
    assert balance_over_size(eq) < 1e-10
    assert eq.stable
