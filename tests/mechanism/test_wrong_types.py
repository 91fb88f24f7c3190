"""What is no mechanism, no model or none with numbers that bodies can have."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from zoo import at, four_bar

import holoctl as hc

NEEDS_A_MECHANISM = {
    "assemble": lambda s, m: hc.assemble(m, s.q),
    "assemble, no guess": lambda s, m: hc.assemble(m),
    "partition": lambda s, m: hc.partition(m, s.q),
    "project": lambda s, m: hc.project(m, s.q, s.v),
    "project with partition": lambda s, m: hc.project(m, s.q, s.v, partition=s.part),
    "forward_dynamics": lambda s, m: hc.forward_dynamics(m, s.q, s.v, s.tau),
    "inverse_dynamics": lambda s, m: hc.inverse_dynamics(m, s.q, s.v, s.one),
    "ComputedTorque": lambda s, m: hc.ComputedTorque(m, 1.0, 1.0),
    "terms": lambda s, m: hc.terms(m, s.q, s.v),
    "impulse": lambda s, m: hc.impulse(m, s.q, s.v),
    "inverse_dynamics_relaxed": lambda s, m: hc.methods.inverse_dynamics_relaxed(
        m, s.q, s.v, s.one
    ),
    "is_fully_actuated": lambda s, m: hc.methods.is_fully_actuated(m, s.q),
    "constraint_wrenches": lambda s, m: hc.constraint_wrenches(m, s.q, np.ones(2)),
    "by_constraint": lambda s, m: hc.methods.by_constraint(m, np.ones(2)),
    "PreparedForwardDynamics": lambda s, m: hc.PreparedForwardDynamics(m),
    "PreparedForwardDynamics with partition": lambda s, m: hc.PreparedForwardDynamics(m, s.part),
    "PreparedInverseDynamics": lambda s, m: hc.PreparedInverseDynamics(m),
    "PreparedInverseDynamics with partition": lambda s, m: hc.PreparedInverseDynamics(m, s.part),
    "simulate": lambda s, m: hc.simulate(m, lambda t, q, v: s.one, s.q, s.v, 0.01),
    "simulate, plant": lambda s, m: hc.simulate(
        s.mech, lambda t, q, v: s.one, s.q, s.v, 0.01, plant=m
    ),
}


@pytest.mark.parametrize("junk", [pin.Model(), 0, "five_bar.urdf", hc.Mechanism])
@pytest.mark.parametrize("call", NEEDS_A_MECHANISM)
def test_what_is_no_mechanism_is_refused(s, call, junk):
    """A pin.Model in its place is an easy mistake."""
    refused(lambda: NEEDS_A_MECHANISM[call](s, junk), hc.InputError, "Mechanism")


@pytest.mark.parametrize("use", [hc.Mechanism, hc.renumbered])
@pytest.mark.parametrize("junk", [None, "robot.urdf", 5, pin.Data, four_bar()])
def test_what_is_no_model_is_refused(use, junk):
    refused(lambda: use(junk), hc.InputError, "Model", type(junk).__name__)


def test_a_model_without_joints_is_refused():
    refused(lambda: hc.Mechanism(pin.Model()), hc.InputError, "no joints")


@pytest.mark.parametrize("junk", [None, "loop", 5, [5], ["loop"], [None], [hc.Closure]])
def test_what_are_no_constraints_is_refused(s, junk):
    e = refused(lambda: hc.Mechanism(s.mech.model, junk))
    assert "constraint" in str(e)


def test_actuated_and_actuation_together_are_refused(s):
    refused(lambda: hc.Mechanism(s.mech.model, actuated=["crank"], actuation=s.B), hc.InputError,
            "actuated", "actuation")  # fmt: skip


def test_a_motor_on_nothing_is_refused(s):
    B = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    refused(lambda: hc.Mechanism(s.mech.model, actuation=B), hc.InputError, "column 1")


def broken(**changes):
    """The model of the four-bar with something in it that is no good."""
    model = four_bar().model.copy()
    if "mass" in changes:
        model.inertias[2] = pin.Inertia(changes["mass"], np.zeros(3), np.eye(3))
    if "lever" in changes:
        model.inertias[2] = pin.Inertia(1.0, np.full(3, changes["lever"]), np.eye(3))
    if "placement" in changes:
        model.jointPlacements[2] = at(changes["placement"])
    if "armature" in changes:
        model.armature = np.array([0.0, changes["armature"], 0.0])
    if "gravity" in changes:
        model.gravity.linear = np.full(3, changes["gravity"])
    return model


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mass": -1.0}, ("'coupler'", "mass")),
        ({"mass": np.nan}, ("'coupler'", "mass")),
        ({"lever": np.nan}, ("'coupler'", "inertia")),
        ({"placement": np.inf}, ("'coupler'", "placement")),
        ({"armature": np.nan}, ("'coupler'", "armature")),
        ({"armature": -1.0}, ("'coupler'", "armature")),
        ({"gravity": np.nan}, ("gravity",)),
    ],
    ids=lambda x: "-".join(f"{k}={v}" for k, v in x.items()) if isinstance(x, dict) else "",
)
def test_models_with_numbers_that_are_no_good_are_refused(changes, words):
    refused(lambda: hc.Mechanism(broken(**changes)), hc.InputError, *words)


def test_two_joints_of_one_name_are_refused():
    model = pin.Model()
    for _ in range(2):
        model.addJoint(0, pin.JointModelRX(), at(), "hinge")
    refused(lambda: hc.Mechanism(model), hc.InputError, "'hinge'")
