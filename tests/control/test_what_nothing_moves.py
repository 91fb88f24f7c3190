"""Axes that no motion moves: what rounding leaves of their rows is no task."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

import holoctl as hc

AXES = ["rx", "z rx", "x rz", "rx ry", "x y rz"]  # a platform that only translates


@pytest.fixture(scope="module")
def delta():
    mech = hc.load(hc.robot_file("delta"))
    q, v = hc.assemble(mech)
    return mech, hc.partition(mech, q), q, v


@pytest.mark.parametrize("axes", AXES)
def test_they_are_refused_by_name_and_have_no_inertia(delta, axes):
    mech, part, q, v = delta
    task = hc.FrameTask("tip", axes)
    terms = hc.task_terms(hc.project(mech, q, v, partition=part), task)
    assert terms.condition > 1e4
    assert np.isnan(terms.inertia).all()
    still = [f"'tip.{axis}'" for axis in axes.split() if axis.startswith("r")]
    for ctl in (
        hc.TaskSpaceControl(mech, task, 400.0, 40.0, partition=part),
        hc.Impedance(mech, task, 400.0, "critical", partition=part),
        hc.Impedance(mech, task, 400.0, 40.0, inertia=1.0, partition=part),
    ):
        with pytest.raises(hc.SingularityError, match=f"no motion moves {', '.join(still)};"):
            ctl.torque(q, v, terms.value)


@pytest.mark.parametrize("axes", AXES)
def test_damped_they_change_nothing(delta, axes):
    mech, part, q, v = delta
    pose = hc.task_terms(hc.project(mech, q, v, partition=part), hc.FrameTask("tip")).value
    pose.rotation = pin.exp3(np.array([0.1, -0.2, 0.3]))
    pose.translation += 0.01
    moved = [axis for axis in axes.split() if not axis.startswith("r")]

    def torque(*names):
        if not names:
            return hc.inverse_dynamics(mech, q, v, np.zeros(3), partition=part).u
        ctl = hc.TaskSpaceControl(
            mech, hc.FrameTask("tip", names), 400.0, 40.0, partition=part, at_singular="damp"
        )
        return ctl.torque(q, v, pose)

    ours = torque(*axes.split())
    np.testing.assert_allclose(ours, torque(*moved), rtol=1e-3)  # damping is 1e-4
