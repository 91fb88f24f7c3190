"""Wrenches do the work of the multipliers and carry the weight."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from support import closed_states, mechanism, relative
from zoo import feet

import holoctl as hc


@pytest.mark.parametrize("axes", ["world", "body", "frame"])
@pytest.mark.parametrize(
    "name", ["spatial_arms", "weld_chain", "hung_plate", "standing_leg", "third_bar", "five_bar"]
)
def test_wrenches_do_the_work_of_the_multipliers(name, axes):
    """G' lambda is what the wrenches do to the bodies, by Pinocchio's Jacobians."""
    mech = mechanism(name)
    rng, data = np.random.default_rng(0), mech.model.createData()
    for q, v in closed_states(name)[:10]:
        lam = rng.normal(size=len(mech.row_scale))
        pin.computeJointJacobians(mech.model, data, q)
        wrenches = hc.constraint_wrenches(mech, q, lam, axes)
        efforts = np.zeros(mech.nv)
        for constraint, bound in zip(mech.constraint_names, mech.bound, strict=True):
            for w, frame in zip(
                wrenches[constraint], (bound.frames1[0], bound.frames2[0]), strict=True
            ):
                place = data.oMi[frame.joint] * frame.placement
                assert w.body == mech.model.names[frame.joint]
                assert relative(w.point, place.translation) < 1e-12
                R = {"world": np.eye(3), "body": data.oMi[frame.joint].rotation,
                     "frame": place.rotation}[axes]  # fmt: skip
                force, moment = R @ w.force, R @ w.moment
                about_origin = np.concatenate([force, moment + np.cross(w.point, force)])
                if frame.joint:
                    J = pin.getJointJacobian(
                        mech.model, data, frame.joint, pin.ReferenceFrame.WORLD
                    )
                    efforts += J.T @ about_origin
        expected = hc.terms(mech, q, v).jacobian.T @ lam
        assert np.abs(expected).max() > 0.1
        assert relative(efforts, expected) < 1e-10


def test_a_standing_foot_carries_the_weight():
    mech = feet(2, 4)
    q, _ = hc.assemble(mech)
    rest = np.zeros(mech.nv)
    res = hc.inverse_dynamics(mech, q, rest, rest, coordinates="all")
    assert res.certificate.ok
    wrenches = hc.constraint_wrenches(mech, q, res.multipliers)
    weight = 9.81 * sum(inertia.mass for inertia in mech.model.inertias)
    total = sum(on_foot.force for _, on_foot in wrenches.values())
    assert total == pytest.approx([0.0, 0.0, weight], abs=1e-8)
    for on_ground, on_foot in wrenches.values():
        assert on_ground.body == "universe"
        assert on_foot.force == pytest.approx(-on_ground.force)
        assert np.abs(on_foot.moment).max() < 1e-9  # a point contact has none
