"""Inertias, rotors and joints that no body or motion can have."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from compare import closed_state
from zoo import five_bar, lump

import holoctl as hc

# ------------------------------------------------------------------------------ inertias and rotors


def hinge_with(inertia, placement=None):
    """A hinge about z with one body on it; `placement` is that of the body in the joint."""
    model = pin.Model()
    j = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "hinge")
    model.appendBodyToJoint(j, inertia, placement or pin.SE3.Identity())
    model.addBodyFrame("plate", j, pin.SE3.Identity(), 0)
    return model


def body(mass, lever, inertia):
    """An inertia that Pinocchio's constructor may refuse, without a name; its setters do not."""
    found = pin.Inertia.Zero()
    found.mass, found.lever, found.inertia = mass, np.array(lever), 0.5 * (inertia + inertia.T)
    return found


def turned(moments, seed=0):
    """An inertia with these principal moments, in axes of no kind."""
    R = pin.exp3(np.random.default_rng(seed).normal(size=3))
    return R @ np.diag(moments) @ R.T


@pytest.mark.parametrize(
    ("moments", "words"),
    [
        ([1.0, 1.0, -1.0], "no negative principal moment.*-1, 1, 1 kg"),
        ([1.0, 1.0, -2e-5], "no negative principal moment.*-2e-05, 1, 1 kg"),
        ([1.0, 1.0, 2.1], "larger than the sum.*1, 1, 2.1 kg"),
        ([0.0, 0.0, 1e-9], "larger than the sum.*1e-09 kg"),
    ],
)
@pytest.mark.parametrize("place", [None, pin.SE3(np.eye(3), np.array([3.0, 1.0, 2.0]))])
def test_an_inertia_that_no_body_has_is_refused(moments, words, place):
    """The moments about the centre of mass count: those about the joint may look well."""
    model = hinge_with(body(1.0, [0.1, 0.0, 0.0], turned(moments)), place)
    for build in (hc.Mechanism, hc.Mechanism(hinge_with(pin.Inertia.FromSphere(1, 1))).with_model):
        with pytest.raises(hc.InputError, match=f"'hinge' \\('plate'\\).*{words}"):
            build(model)


def test_a_negative_mass_is_refused():
    with pytest.raises(hc.InputError, match=r"'hinge'.*mass .* not be negative; got -1"):
        hc.Mechanism(hinge_with(pin.Inertia(-1.0, np.zeros(3), np.eye(3))))


@pytest.mark.parametrize(
    "inertia",
    [
        pin.Inertia.Zero(),
        pin.Inertia(0.0, np.zeros(3), turned([1.0, 2.0, 2.5])),
        pin.Inertia(2.0, np.array([0.3, 0.2, 0.1]), np.zeros((3, 3))),
        pin.Inertia(2.0, np.array([0.3, 0.2, 0.1]), turned([0.0, 1.0, 1.0])),
        pin.Inertia(2.0, np.array([0.3, 0.2, 0.1]), turned([1.0, 1.0, 2.0])),
        body(2.0, [0.3, 0.2, 0.1], turned([-4e-6, 1.0, 1.000002])),
        pin.Inertia(1e-300, np.zeros(3), 1e-305 * turned([1.0, 1.0, 2.0])),
        pin.Inertia(1e200, np.zeros(3), 1e200 * turned([1.0, 1.0, 2.0])),
    ],
    ids=["nothing", "rotor", "point", "rod", "disk", "rounded", "tiny", "huge"],
)
def test_what_is_a_body(inertia):
    model = hinge_with(inertia)
    mech = hc.Mechanism(model)
    again = (
        dataclasses.replace(mech, name="again"), mech.with_model(model), copy.deepcopy(mech),
        pickle.loads(pickle.dumps(mech)),
    )  # fmt: skip
    assert all(other.model.inertias[1] == model.inertias[1] for other in (mech, *again))


@pytest.mark.parametrize("seed", range(5))
def test_a_point_whose_inertia_was_moved_is_a_body(seed):
    """From the origin to the centre of mass: a difference of large numbers, not quite zero."""
    rng = np.random.default_rng(seed)
    for size in 10.0 ** np.arange(-3, 4):
        mass, lever = 10.0 * rng.random(), size * rng.normal(size=3)
        about_origin = mass * (lever @ lever * np.eye(3) - np.outer(lever, lever))
        steiner = mass * pin.skew(lever) @ pin.skew(lever)
        hc.Mechanism(hinge_with(body(mass, lever, about_origin + steiner)))


def test_rotor_and_gear_count_where_there_is_no_armature():
    """As in an SRDF that Pinocchio reads: armature = ratio^2 rotor inertia, in M and the torque."""
    mech = five_bar()
    model, plain = mech.model.copy(), mech.model.copy()
    rng = np.random.default_rng(0)
    rotor, ratio = rng.uniform(0.01, 0.02, model.nv), np.array([3.0, -5.0, 1.0, 2.0])
    model.armature = np.array([0.0, 0.0, 0.7, 0.0])  # where one is given it counts alone
    model.rotorInertia, model.rotorGearRatio = rotor, ratio
    expected = np.where(model.armature == 0.0, ratio**2 * rotor, model.armature)
    plain.armature = expected
    geared, given = mech.with_model(model), mech.with_model(plain)
    for one in (geared, pickle.loads(pickle.dumps(geared)), dataclasses.replace(geared, name="x")):
        assert np.array_equal(one.model.armature, expected)
    q, v = closed_state(mech)
    M = [hc.terms(m, q, v).M for m in (mech, geared)]
    assert np.diag(M[1] - M[0]) == pytest.approx(expected, rel=1e-12)
    target = [2.0, -1.0]
    u = [hc.inverse_dynamics(m, q, v, target=target).u for m in (mech, geared, given)]
    assert u[1] == pytest.approx(u[2], rel=1e-12)
    assert np.abs(u[1] - u[0]).max() > 0.1
    tick = hc.PreparedInverseDynamics(geared)
    assert tick.torque(q, v, target=target) == pytest.approx(u[1], rel=1e-9)


@pytest.mark.parametrize(
    ("rotor", "ratio"), [(-1.0, 1.0), (np.nan, 1.0), (1.0, 0.0), (1.0, np.inf)]
)
def test_a_rotor_that_is_none_is_refused(rotor, ratio):
    model = hinge_with(pin.Inertia.FromSphere(1.0, 0.1))
    model.rotorInertia, model.rotorGearRatio = np.array([rotor]), np.array([ratio])
    with pytest.raises(hc.InputError, match=r"'hinge'.*rotorInertia.*rotorGearRatio"):
        hc.Mechanism(model)


# ----------------------------------------------------------------- joints that no motion belongs to


def arm_of(joint, placement=None, frame=None):
    """A body on this joint."""
    model = pin.Model()
    model.addJoint(0, joint, placement or pin.SE3.Identity(), "lower")
    model.appendBodyToJoint(1, lump(np.random.default_rng(0)), pin.SE3.Identity())
    model.addFrame(pin.Frame("tool", 1, 0, frame or pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    return model


def composite(*joints, placement=None):
    made = pin.JointModelComposite()
    for joint in joints:
        made.addJoint(joint, placement or pin.SE3.Identity())
    return made


LONG, X, Y = np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])


MIRROR = pin.SE3(np.diag([1.0, 1.0, -1.0]), np.zeros(3))


ROUNDED = pin.SE3(pin.utils.rotate("z", 0.7).round(3), np.zeros(3))


NOTHING = pin.SE3(np.zeros((3, 3)), np.zeros(3))


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (pin.JointModelRevoluteUnaligned(LONG), "axis must .* axis / np.linalg.norm.axis."),
        (pin.JointModelPrismaticUnaligned(0.5 * X), "axis must .* norm 0.5"),
        (pin.JointModelRevoluteUnaligned(np.full(3, np.nan)), "axis must be finite"),
        (pin.JointModelHelicalUnaligned(LONG, 0.1), "axis must"),
        (pin.JointModelHelicalUnaligned(X, np.nan), "pitch must be finite"),
        (pin.JointModelHX(0.0), "pitch must be finite and not zero"),
        (pin.JointModelUniversal(2.0 * X, Y), "axis1 must"),
        (pin.JointModelUniversal(X, 2.0 * Y), "axis2 must"),
        (pin.JointModelUniversal(X, LONG / np.sqrt(2.0)), "right angles"),
        (composite(pin.JointModelRX(), pin.JointModelRevoluteUnaligned(LONG)), "part 1: axis must"),
        (composite(composite(pin.JointModelHY(np.inf))), "part 0: part 0: the pitch"),
        (composite(pin.JointModelRX(), placement=MIRROR), "placement of part 0 has a rotation"),
        (composite(), "without parts"),
        (composite(pin.JointModelRX(), composite()), "part 1 is a composite joint without parts"),
    ],
)
def test_a_joint_that_pinocchio_gets_wrong_is_refused(joint, words):
    with pytest.raises(hc.InputError, match=f"joint 'lower'.*{words}"):
        hc.Mechanism(arm_of(joint), [])


def test_joints_of_unit_axes_are_taken():
    axis = np.array([1.0, 2.0, -2.0]) / 3.0
    for joint in (
        pin.JointModelRevoluteUnaligned(axis), pin.JointModelHelicalUnaligned(axis, -0.1),
        pin.JointModelUniversal(X, Y), pin.JointModelHZ(0.1), pin.JointModelRUBX(),
        composite(pin.JointModelRX(), composite(pin.JointModelPY(), pin.JointModelSpherical())),
    ):  # fmt: skip
        assert hc.Mechanism(arm_of(joint), []).nv == joint.nv


@pytest.mark.parametrize("placement", [MIRROR, ROUNDED, NOTHING])
def test_a_placement_that_is_no_rotation_is_refused(placement):
    with pytest.raises(hc.InputError, match="placement of joint 'lower' has a rotation"):
        hc.Mechanism(arm_of(pin.JointModelRX(), placement), [])
    with pytest.raises(hc.InputError, match="placement of frame 'tool' has a rotation"):
        hc.Mechanism(arm_of(pin.JointModelRX(), frame=placement), [])


def test_gravity_that_turns_is_refused():
    model = arm_of(pin.JointModelRX())
    model.gravity = pin.Motion(np.ones(6))
    with pytest.raises(hc.InputError, match="angular part"):
        hc.Mechanism(model, [])


@pytest.mark.parametrize("what", ["armature", "rotorInertia", "rotorGearRatio"])
@pytest.mark.parametrize("size", [0, 3])
def test_rotors_of_another_number_are_refused(what, size):
    model = arm_of(pin.JointModelRX())
    setattr(model, what, np.ones(size))
    with pytest.raises(hc.InputError, match=f"model.{what} must have 1 entries.*got {size}"):
        hc.Mechanism(model, [])


def test_names_that_are_no_text_are_refused():
    with pytest.raises(hc.InputError, match="name must be text"):
        hc.Mechanism(arm_of(pin.JointModelRX()), [], name=np.array(["a", "b"]))
    mech = five_bar()
    records = np.rec.fromarrays([["left"], [1]], names="a,b")
    for locked in (np.array([mech.coordinate_names[:2]]), records):
        with pytest.raises(hc.InputError, match="locked"):
            hc.assemble(mech, mech.reference, locked=locked)
