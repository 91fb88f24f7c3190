"""External forces: every form of them that is none is refused."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from support import closed_states, mechanism, shared_partition

import holoctl as hc


def forces(*sizes):
    """A pin.StdVec_Force."""
    out = pin.StdVec_Force()
    for size in sizes:
        out.append(pin.Force(np.full(6, size)))
    return out


@pytest.mark.parametrize(
    "f_ext", [5, 1.0, "rocker", np.zeros(6), [np.zeros(6)] * 4, [pin.Force.Zero()] * 4, len, b""]
)
def test_forces_must_be_a_mapping_or_a_vector_of_forces(s, f_ext):
    for call in (
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, f_ext=f_ext),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, f_ext=f_ext),
    ):
        refused(call, hc.InputError, "f_ext", "mapping", "StdVec_Force")


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_forces_must_be_one_for_each_joint(s, count):
    for call in (
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, f_ext=forces(*[1.0] * count)),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, f_ext=forces(*[1.0] * count)),
    ):
        refused(call, hc.InputError, "f_ext", "4", str(count), "universe")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_forces_that_are_not_finite_are_told(s, bad):
    refused(lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, f_ext=forces(0.0, 0.0, bad, 0.0)),
            hc.InputError, "f_ext[2]")  # fmt: skip
    force = pin.Force(np.array([0.0, 0.0, 0.0, 0.0, 0.0, bad]))
    refused(lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, f_ext={"rocker": force}),
            hc.InputError, "f_ext['rocker']", "entry 5")  # fmt: skip


def test_forces_are_not_changed(s):
    given_forces, force = forces(1.0, 2.0, 3.0, 4.0), {"rocker": pin.Force(s.wrench)}
    hc.forward_dynamics(s.mech, s.q, s.v, s.tau, f_ext=given_forces)
    hc.inverse_dynamics(s.mech, s.q, s.v, s.one, f_ext=force)
    assert [f.vector[0] for f in given_forces] == [1.0, 2.0, 3.0, 4.0]
    assert np.array_equal(force["rocker"].vector, s.wrench)


@pytest.mark.parametrize("function", ["forward", "inverse", "relaxed"])
def test_external_forces_are_a_pair_or_six_numbers_in_a_row(function):
    """(force, moment), as documented; all forms are the same force."""
    mech, part = mechanism("spatial_arms"), shared_partition("spatial_arms")
    q, v = closed_states("spatial_arms")[0]
    call = {
        "forward": lambda f: hc.forward_dynamics(
            mech, q, v, np.ones(6), f_ext={"b2": f}, partition=part
        ),
        "inverse": lambda f: hc.inverse_dynamics(
            mech, q, v, np.ones(3), f_ext={"b2": f}, partition=part
        ),
        "relaxed": lambda f: hc.methods.inverse_dynamics_relaxed(
            mech, q, v, np.ones(3), f_ext={"b2": f}, partition=part
        ),
    }[function]
    force, moment = np.array([1.0, -2.0, 3.0]), [0.4, 0.5, -0.6]
    wanted = call([*force, *moment]).a, call([*force, *moment]).multipliers
    assert np.abs(wanted[1] - call(np.zeros(6)).multipliers).max() > 1e-3  # guard: it matters
    for pair in ((force, moment), [tuple(force), moment], np.array([force, moment]),
                 pin.Force(force, np.array(moment))):  # fmt: skip
        np.testing.assert_array_equal(call(pair).a, wanted[0])
        np.testing.assert_array_equal(call(pair).multipliers, wanted[1])
    for wrong in ((force,), (force, moment, moment), np.ones((3, 2)), np.ones(5), (force, 1.0)):
        with pytest.raises(hc.InputError, match=r"f_ext\['b2'\].*(pair|real numbers)"):
            call(wrong)
    with pytest.raises(hc.InputError, match=r"f_ext\['b2'\].*finite"):
        call((force, [0.0, np.nan, 0.0]))
