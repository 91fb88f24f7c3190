"""A mechanism carries its limits, and tells those of its model where it has none."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from compare import assert_same, closed_state, numbers
from linkages import four_bar as linkage_of_four_bar
from refusals import refused
from zoo import at, five_bar, one_of_each

import holoctl as hc
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.frame_displacements import moved

INF = np.inf
LIMITS = hc.Limits(
    effort={"left": 3, "right": (0, 5)}, velocity={"tip": 2}, position={"left": (0, 3)},
    speed_torque={"left": [(0, 2), (5, 1)]},
)  # fmt: skip


def limited(**changes):
    return dataclasses.replace(five_bar("revolute"), **{"limits": LIMITS, **changes})


CARRIERS = {
    "replace": dataclasses.replace,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "another name": lambda m: dataclasses.replace(m, name="other"),
    "with_forces": lambda m: m.with_forces([hc.JointFriction(viscous=0.1)]),
    "with_constraints": lambda m: m.with_constraints(hc.Coupling({"left": 1.0, "right": 1.0})),
    "without a force": lambda m: m.with_forces([hc.JointFriction(0.1)]).without("friction"),
    "off and on": lambda m: m.with_enabled(tip=False).with_enabled(tip=True),
    "with_model": lambda m: m.with_model(m.model.copy()),
    "moved": lambda m: moved(m, [hc.results.Move("left_rod", [0.01, 0.0, 0.0], np.zeros(3))]),
}


@pytest.mark.parametrize("how", CARRIERS)
def test_limits_are_carried(how):
    mech = CARRIERS[how](limited())
    assert mech.limits == LIMITS
    assert hc.limits_of(mech) == LIMITS
    assert bound_limits(mech, mech.limits).names == ("left", "tip")


def test_limits_change_nothing_else():
    mech = five_bar("revolute")
    assert mech.limits is None
    assert repr(limited()) == repr(mech)
    state = closed_state(mech)
    assert_same(numbers(limited(), *state), numbers(mech, *state))


def test_limits_are_checked_when_the_mechanism_is_made():
    refused(lambda: limited(limits={"left": 2}), hc.InputError, "hc.Limits", "five_bar")
    refused(lambda: limited(limits=hc.Limits(effort=[1, 2, 3])), hc.InputError, "3 for 2 motors")
    refused(lambda: limited(limits=hc.Limits(effort={"lefft": 2})), hc.InputError, "'left'")
    refused(lambda: limited(limits=hc.Limits(velocity={"typ": 2})), hc.InputError, "'tip'")
    refused(lambda: limited(constraints=[]), hc.InputError, "'tip'", "limits=None")
    assert limited(constraints=[], limits=None).limits is None


def test_limits_of_a_cut_joint_go_with_it():
    mech = dataclasses.replace(
        five_bar("cylindrical"),
        limits=hc.Limits(position={"tip[1]": (-1, 1), "left": 1}, velocity={"tip": 2}),
    )
    assert mech.without("tip").limits == hc.Limits(position={"left": 1})
    off = mech.with_enabled(tip=False)
    assert off.limits == mech.limits
    assert bound_limits(off, off.limits).names == ("left",)
    assert off.without("tip").limits == hc.Limits(position={"left": 1})


def test_a_linkage_takes_limits_of_joints_however_it_is_cut():
    case = linkage_of_four_bar()
    (motor,), joints = case.motors, case.linkage.joints
    limits = hc.Limits(velocity=dict.fromkeys(joints, 3.0), effort={motor: 2.0})
    for cut in set(joints) - {motor}:
        mech = case.mechanism(cut=[cut], reference=None, limits=limits)
        b = bound_limits(mech, hc.limits_of(mech))
        assert sorted(b.names) == sorted(joints)
        assert [joint.name for joint, _ in b.cut] == [cut]


# ------------------------------------------------------------------------------ other motors


def test_limits_of_motors_that_are_gone_wait():
    """They are told again when the coordinate gets its motor back."""
    mech = limited(actuated=["right", "left_rod"])
    assert mech.limits == LIMITS
    told = hc.limits_of(mech)
    assert told.effort == {"right": (0.0, 5.0)}
    assert told.speed_torque is None
    assert bound_limits(mech, told).effort.tolist() == [[0.0, -INF], [5.0, INF]]
    assert hc.limits_of(dataclasses.replace(mech, actuated=["left", "right"])) == LIMITS


def test_limits_of_coordinates_are_those_of_their_motors_through_the_gear():
    """tau = B u: the motor on a coordinate alone, and no other there."""
    B = np.array([[-2.0, 0, 0], [0, 0, 1.0], [0, 4.0, 0], [0, 0, 1.0]])
    mech = limited(actuated=[], actuation=B)
    limits = hc.limits_of(mech)
    assert limits.effort == {"u[0]": 1.5, "u[1]": (0.0, 1.25)}
    assert limits.speed_torque == {"u[0]": ((0.0, 1.0), (10.0, 0.5))}
    assert limits.position == LIMITS.position
    rng = np.random.default_rng(0)
    b = bound_limits(mech, limits)
    for u in rng.uniform(-3, 3, (50, 3)):
        tau = B @ u
        within = (np.clip(u, *b.effort) == u).all()
        assert within == (abs(tau[0]) <= 2.0 and 0 <= tau[2] <= 5.0)  # 2: at standstill
    turned = dataclasses.replace(mech, limits=hc.Limits(effort={"left": (-1, 3)}))
    assert hc.limits_of(turned).effort == {"u[0]": (-1.5, 0.5)}
    both = dataclasses.replace(mech, limits=hc.Limits(effort={"left": 3, "u[0]": 1}))
    assert hc.limits_of(both).effort == {"u[0]": 1.0}
    shared = dataclasses.replace(mech, actuation=np.hstack([B, np.eye(4)[:, :1]]))
    assert hc.limits_of(shared).effort == {"u[1]": (0.0, 1.25)}


# ------------------------------------------------------------------------------ of the model


def with_numbers(mech, **arrays):
    model = mech.model.copy()
    for name, x in arrays.items():
        setattr(model, name, np.array(x, dtype=float))
    return mech.with_model(model)


def test_a_model_without_limits_has_none():
    for mech in (five_bar(), hc.Mechanism(one_of_each(), actuated=["hinge", "ball[1]"])):
        assert hc.limits_of(mech) == hc.Limits()


def test_limits_of_the_model():
    most = np.finfo(float).max
    mech = with_numbers(
        five_bar(),
        upperEffortLimit=[2, 9, most, INF], lowerEffortLimit=[-2, -9, -7, -INF],
        upperVelocityLimit=[3, 0, 4, most], lowerVelocityLimit=[3, 0, -5, most],
        upperPositionLimit=[1, 0, 2, 1e6], lowerPositionLimit=[-1, 0, -1e6, -1e6],
    )  # fmt: skip
    assert hc.limits_of(mech) == hc.Limits(
        effort={"left": 2, "right": (-7, INF)}, velocity={"left": 3, "right": (-5, 4)},
        position={"left": 1, "right": (-INF, 2)},
    )  # fmt: skip
    assert mech.limits is None
    rods = dataclasses.replace(mech, actuated=["left_rod"])
    assert hc.limits_of(rods).effort == {"left_rod": 9.0}
    own = dataclasses.replace(mech, limits=hc.Limits(velocity=1))
    assert hc.limits_of(own) == hc.Limits(velocity=1)
    assert hc.limits_of(dataclasses.replace(mech, limits=hc.Limits())) == hc.Limits()


def test_negative_limits_of_a_model_are_none():
    mech = with_numbers(
        five_bar(), upperEffortLimit=[-1] * 4, lowerEffortLimit=[1] * 4,
        upperVelocityLimit=[-1] * 4, lowerVelocityLimit=[-1] * 4,
        upperPositionLimit=[-2] * 4, lowerPositionLimit=[-1] * 4,
    )  # fmt: skip
    assert hc.limits_of(mech) == hc.Limits()


def test_all_limits_of_a_model_fit_its_mechanism():
    """Of every kind of joint: what is told can be kept."""
    model = one_of_each()
    for what, n in (("Effort", model.nv), ("Velocity", model.nv), ("Position", model.nq)):
        setattr(model, f"upper{what}Limit", np.full(n, 5.0))
        setattr(model, f"lower{what}Limit", np.full(n, -5.0))
    mech = hc.Mechanism(model, actuated=["hinge", "ball[1]"])
    limits = hc.limits_of(mech)
    assert set(limits.position) == {"hinge"}
    b = bound_limits(mech, limits)
    assert b.names == mech.coordinate_names
    assert b.effort.tolist() == [[-5.0, -5.0], [5.0, 5.0]]


def test_limits_of_balls_upside_down():
    link = hc.Linkage("arm")
    for name in ("upper", "lower"):
        link.add_body(name, 1.0, [0.1, 0.02, 0.03], 0.01 * np.eye(3))
    link.add_joint("shoulder", "revolute", "universe", "upper")
    link.add_joint("ball", "spherical", "lower", "upper", at(0.3), at(0.2))
    mech = with_numbers(link.mechanism(), upperVelocityLimit=[1, 2, 3, 4])
    limits = hc.limits_of(mech)
    assert limits.velocity["ball[2]"] == (-INF, 4.0)
    assert bound_limits(mech, limits).names == ("shoulder", "ball[0]", "ball[1]", "ball[2]")


def test_what_is_no_mechanism_or_has_odd_arrays():
    refused(lambda: hc.limits_of(pin.Model()), hc.InputError, "Mechanism")
    mech = with_numbers(five_bar(), upperEffortLimit=[1.0, 2.0])
    refused(lambda: hc.limits_of(mech), hc.InputError, "upperEffortLimit", "4")


@pytest.mark.parametrize("given", ["modell", 5.0, {"effort": 1.0}, True])
def test_the_argument_limits_has_three_meanings(given):
    mech, own = limited(), hc.Limits(effort=3.0)
    assert requested_limits(mech, "model", "here") == hc.limits_of(mech) == LIMITS
    assert requested_limits(mech, None, "here") is None
    assert requested_limits(mech, own, "here") is own
    words = "here: limits must be", '"model", None or hc.Limits', "got"
    refused(lambda: requested_limits(mech, given, "here"), hc.InputError, *words)
