"""No motors, no motion, no way: what cannot be driven is told; everything else works."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused, with_motors
from zoo import add_body, at, bar, triangle, vertical

import holoctl as hc


def test_no_motors_no_torques(s):
    idle = with_motors(s.mech)
    e = refused(lambda: hc.inverse_dynamics(idle, s.q, s.v, []), hc.NotActuatedError, "four_bar",
                "no motors", "actuated=")  # fmt: skip
    assert not isinstance(e, ValueError)
    refused(lambda: hc.ComputedTorque(idle, 1.0, 1.0), hc.NotActuatedError, "no motors")


def test_no_motors_no_trouble_with_motion(s):
    """Everything but torques works without motors."""
    idle = with_motors(s.mech)
    assert hc.forward_dynamics(idle, s.q, s.v, np.zeros(3)).certificate.ok
    assert hc.simulate(idle, lambda t, q, v: [], s.q, s.v, 0.005).u.shape == (6, 0)


@pytest.mark.parametrize("coordinates", ["actuated", "independent", "all"])
def test_no_degree_of_freedom_no_torques(coordinates):
    """A triangle of three bars stands still whatever its motor does."""
    mech = triangle()
    q, v = hc.assemble(mech)
    target = {"actuated": [0.0], "independent": [], "all": [0.0, 0.0]}[coordinates]
    refused(lambda: hc.inverse_dynamics(mech, q, v, target, coordinates=coordinates),
            hc.NotActuatedError, "triangle", "no degree of freedom")  # fmt: skip


def test_no_degree_of_freedom_no_controller():
    mech = triangle()
    q, v = hc.assemble(mech)

    def torque(compensation):
        ctl = hc.ComputedTorque(mech, 1.0, 1.0, compensation)
        return ctl.torque(q, v, [1.0], [0.0], [0.0])

    for law in ("full", "gravity"):
        refused(lambda law=law: torque(law), hc.NotActuatedError, "no degree of freedom")


def test_no_degree_of_freedom_is_no_trouble_elsewhere():
    mech = triangle()
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q, independent=[])
    assert part.rank == 2
    assert hc.project(mech, q, v).gamma.shape == (2, 0)
    result = hc.forward_dynamics(mech, q, v, [3.0, 0.0])
    assert np.abs(result.a).max() < 1e-12
    assert result.certificate.ok
    run = hc.simulate(mech, lambda t, q, v: [1.0], q, v, 0.003)
    assert np.abs(run.q - q).max() < 1e-12


def test_motors_that_drive_nothing():
    """The only motor sits on a joint that the loop holds still."""
    model = vertical(pin.Model())
    add_body(model, 0, pin.JointModelPX(), at(), "held", bar(0.1))
    add_body(model, "held", pin.JointModelRZ(), at(), "swing", bar(0.3))
    stop = hc.Coupling({"held": 1.0}, name="stop")
    mech = hc.Mechanism(model, [stop], ["held"], name="jammed")
    refused(lambda: hc.inverse_dynamics(mech, [0.0, 0.0], [0.0, 0.0], [0.0]), hc.NotActuatedError,
            "jammed", "'held'")  # fmt: skip
