"""Quaternions and cosine-sine pairs that are not normalised are told, by joint."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from zoo import add_body, at, bar

import holoctl as hc

STATEFUL = {
    "assemble": lambda m, q: hc.assemble(m, q),
    "partition": lambda m, q: hc.partition(m, q),
    "project": lambda m, q: hc.project(m, q, np.zeros(m.nv)),
    "forward_dynamics": lambda m, q: hc.forward_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv)),
    "inverse_dynamics": lambda m, q: hc.inverse_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nu)),
    "torque": lambda m, q: hc.ComputedTorque(m, 1.0, 1.0).torque(
        q, np.zeros(m.nv), np.zeros(m.nu), np.zeros(m.nu), np.zeros(m.nu)
    ),
    "torque, q_ref": lambda m, q: hc.ComputedTorque(m, 1.0, 1.0).torque(
        hc.assemble(m)[0], np.zeros(m.nv), q, np.zeros(m.nu), np.zeros(m.nu)
    ),
    "simulate": lambda m, q: hc.simulate(
        m, lambda t, q, v: np.zeros(m.nu), q, np.zeros(m.nv), 0.01
    ),
    "terms": lambda m, q: hc.terms(m, q, np.zeros(m.nv)),
    "impulse": lambda m, q: hc.impulse(m, q, np.zeros(m.nv)),
    "relaxed": lambda m, q: hc.methods.inverse_dynamics_relaxed(
        m, q, np.zeros(m.nv), np.zeros(m.nu)
    ),
    "is_fully_actuated": lambda m, q: hc.methods.is_fully_actuated(m, q),
    "constraint_wrenches": lambda m, q: hc.constraint_wrenches(m, q, np.ones(len(m.row_scale))),
    "acceleration": lambda m, q: hc.PreparedForwardDynamics(m).acceleration(
        q, np.zeros(m.nv), np.zeros(m.nv)
    ),
    "at": lambda m, q: hc.PreparedForwardDynamics(m).at(q, np.zeros(m.nv)),
    "prepared torque": lambda m, q: hc.PreparedInverseDynamics(m).torque(
        q, np.zeros(m.nv), np.zeros(m.nu)
    ),
    "holding": lambda m, q: hc.PreparedInverseDynamics(m).holding(q),
    "Mechanism": lambda m, q: dataclasses.replace(m, reference=q),
}


UNIT_PARTS = {"base": (3, "quaternion"), "wheel": (11, "cosine-sine"), "head": (13, "quaternion")}
"""Where in q of the floating leg they start."""


@pytest.mark.parametrize("joint", UNIT_PARTS)
@pytest.mark.parametrize("call", STATEFUL)
def test_configurations_that_are_not_normalised_are_told(s, call, joint):
    start, kind = UNIT_PARTS[joint]
    q = s.fq.copy()
    q[start : start + (2 if kind == "cosine-sine" else 4)] *= 1.1
    before = q.copy()
    refused(lambda: STATEFUL[call](s.floating, q), hc.InputError, "q" if "M" not in call else
            "reference", f"'{joint}'", kind, "1.1", "normalize")  # fmt: skip
    assert np.array_equal(q, before)


@pytest.mark.parametrize("joint", UNIT_PARTS)
def test_configurations_of_zeros_are_told(s, joint):
    start, kind = UNIT_PARTS[joint]
    q = s.fq.copy()
    q[start : start + (2 if kind == "cosine-sine" else 4)] = 0.0
    refused(lambda: hc.project(s.floating, q, np.zeros(14)), hc.InputError, f"'{joint}'", kind)


def test_quaternions_in_single_precision_are_good_enough(s):
    """They are off the unit sphere by 1e-7; the result is as good as any other."""
    guess = pin.integrate(s.floating.model, s.fq, np.linspace(0.3, -0.4, 14))
    q, v = hc.assemble(s.floating, guess, np.linspace(-1.0, 1.0, 14))
    coarse = q.copy()
    for start, stop in ((3, 7), (11, 13), (13, 17)):
        coarse[start:stop] = q[start:stop].astype(np.float32)
    assert not pin.isNormalized(s.floating.model, coarse, 1e-9)
    for x in (q, coarse):
        assert hc.inverse_dynamics(s.floating, x, v, np.ones(3)).certificate.ok


def composite_and_ball():
    """A composite joint that holds a ball, then a ball: the culprit is told apart."""
    composite = pin.JointModelComposite()
    composite.addJoint(pin.JointModelSpherical())
    composite.addJoint(pin.JointModelRX())
    model = pin.Model()
    add_body(model, 0, composite, at(), "wrist", bar(0.2))
    add_body(model, "wrist", pin.JointModelSpherical(), at(0.2), "ball", bar(0.2))
    return hc.Mechanism(model)


@pytest.mark.parametrize(("joint", "start"), [("wrist", 0), ("ball", 5)])
def test_a_ball_in_a_composite_joint_is_checked(joint, start):
    mech = composite_and_ball()
    q = np.array([0.6, 0.8, 0.0, 0.0, 0.3, 0.6, 0.8, 0.0, 0.0])
    hc.project(mech, q, np.zeros(7))
    q[start : start + 4] *= 1.1
    refused(lambda: hc.project(mech, q, np.zeros(7)), hc.InputError, f"'{joint}'")
