"""Relaxed torques, and whether the motors determine the motion."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support import closed_states, mechanism, relative, shared_partition

import holoctl as hc


@pytest.mark.parametrize("name", ["five_bar", "floating_leg", "three_motors", "standing_leg"])
def test_relaxed_torques_obey_their_law_and_the_equation_of_motion(name):
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(0)
    for q, v in closed_states(name)[:10]:
        target = rng.normal(size=mech.nu)
        res = hc.methods.inverse_dynamics_relaxed(mech, q, v, target, partition=part)
        T = hc.terms(mech, q, v)
        W = 100.0 * mech.B.T @ T.M @ mech.B
        law = W @ (target - mech.B.T @ res.a) + mech.B.T @ T.h
        assert relative(res.u, law) < 1e-9
        assert res.certificate.ok
        caused = hc.forward_dynamics(mech, q, v, mech.B @ res.u, partition=part).a
        assert relative(caused, res.a) < 1e-8
        stiff = hc.methods.inverse_dynamics_relaxed(
            mech, q, v, target, stiffness=1e3 * W, partition=part
        )  # fmt: skip
        missed = target - mech.B.T @ res.a
        if name != "three_motors":
            assert np.abs(target - mech.B.T @ stiff.a).max() < 0.1 * np.abs(missed).max()
    for bad in (np.eye(7), -np.eye(mech.nu), np.triu(np.ones((mech.nu, mech.nu))), "W"):
        with pytest.raises(hc.InputError, match="stiffness"):
            hc.methods.inverse_dynamics_relaxed(mech, q, v, target, stiffness=bad, partition=part)


def test_full_actuation_is_a_question_of_motions():
    expected = {
        "four_bar": True, "five_bar": True, "three_motors": True, "spatial_arms": True,
        "floating_leg": False, "standing_leg": False, "idle_rod": False, "hung_plate": True,
    }  # fmt: skip
    for name, full in expected.items():
        q, _ = closed_states(name)[0]
        mech, part = mechanism(name), shared_partition(name)
        assert hc.methods.is_fully_actuated(mech, q, partition=part) is full, name
    base = mechanism("four_bar")
    rocker = dataclasses.replace(base, actuated=["rocker"])
    dead, _ = hc.assemble(rocker, [0.9, 0.0, 1.6], locked=["coupler"])
    part = hc.partition(rocker, hc.assemble(rocker)[0])
    assert not hc.methods.is_fully_actuated(rocker, dead, partition=part)
