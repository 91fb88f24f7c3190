"""Bodies and joints to a mechanism: whatever is cut, the motion and the torques are the same."""

from __future__ import annotations

import contextlib
import copy
import itertools
import pickle

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linkages import LINKAGES, add_bar, add_lump, at, bennett, four_bar, stewart, umbrella

import holoctl as hc
from holoctl.mechanism.linkage import JOINT_TYPES
from holoctl.mechanism.mechanism import constraint_rows
from holoctl.mechanism.open_tree import energy

MOVING = [name for name in LINKAGES if name != "triangle"]
DRIVEN = [name for name in MOVING if name != "spherical_loop"]


# ---------------------------------------------------------------------------------- helpers


def generic(mech, seed=1, spread=0.1):
    """A closed state near the reference, at a generic place, moving."""
    rng = np.random.default_rng(seed)
    step = spread * mech.column_scale * rng.normal(size=mech.nv)
    guess = pin.integrate(mech.model, mech.reference, step)
    q, v = hc.assemble(mech, guess, mech.column_scale * rng.normal(size=mech.nv))
    size = np.linalg.norm(v / mech.column_scale)
    return q, v * (2.0 / size if size > 1e-9 else 1.0)


def motions(mech, names, q, v=None):
    """Value, rate and Jacobian of these joints."""
    return {name: hc.joint_motion(mech, name, q, v) for name in names}


def kept(mech, link):
    """The joints of a linkage that have coordinates in this mechanism."""
    return [name for name in link.joints if name not in mech.constraint_names]


def positions(mech, link, q, other):
    """What to give another cut as its reference, so that it stands as this mechanism does."""
    return {name: hc.joint_motion(mech, name, q).value for name in kept(other, link)}


def same_state(mech, link, q, v, **options):
    """The mechanism with another cut, in the same state: (mechanism, q, v)."""
    blank = link.mechanism(**options)
    reference = positions(mech, link, q, blank)
    reference = {name: x for name, x in reference.items() if x.size}
    other = link.mechanism(**options, reference=reference)
    here = motions(mech, link.joints, q, v)
    there = motions(other, link.joints, other.reference)
    J = np.vstack([there[name].jacobian / unit(here, name) for name in link.joints])
    rates = np.concatenate([here[name].rate / unit(here, name) for name in link.joints])
    scaled = np.linalg.lstsq(J * other.column_scale, rates, rcond=None)[0]
    q, v = other.reference.copy(), other.column_scale * scaled
    error = constraint_rows(other, q, v)[1].error
    assert np.abs(other.row_scale * error).max(initial=0.0) < 1e-11
    return other, q, v


def unit(here, name):
    return max(1.0, float(np.abs(here[name].jacobian).max(initial=0.0)))


def body_motions(mech, link, q, v, a):
    """Velocity and acceleration of every body: (bodies, 12), in its own axes at its origin."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q, v, a)
    pin.updateFramePlacements(mech.model, data)
    found = []
    for body in link.bodies:
        frame = mech.model.getFrameId(body, pin.FrameType.BODY)
        velocity = pin.getFrameVelocity(mech.model, data, frame).vector
        acceleration = pin.getFrameAcceleration(mech.model, data, frame).vector
        found.append(np.concatenate([data.oMf[frame].translation, velocity, acceleration]))
    return np.array(found)


def cuts(link, without=(), most=12, seed=0):
    """Feasible cuts without some joints: all where there are few, else a seeded sample."""
    joints = [name for name in link.joints if name not in without]
    every = list(itertools.combinations(joints, len(link.loops)))
    rng = np.random.default_rng(seed)
    found = []
    for i in rng.permutation(len(every)):
        if feasible(link, every[i]):
            found.append(every[i])
        if len(found) == most:
            break
    return found


def feasible(link, cut):
    try:
        link.mechanism(cut=cut)
    except hc.InputError:
        return False
    return True


def close(a, b, tol=1e-9):
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    return np.abs(a - b).max(initial=0.0) <= tol * (1.0 + np.abs(b).max(initial=0.0))


def replayed(link, order):
    """The same linkage, its parts added in another order."""
    new = hc.Linkage(link.name, link.gravity)
    adds = [
        lambda n=n, b=b: new.add_body(n, b.mass, b.lever, b.inertia)
        for n, b in link._bodies.items()
    ]
    adds += [
        lambda j=j: new.add_joint(
            j.name, j.type, j.parent, j.child, j.at_parent, j.at_child, pitch=j.pitch
        )
        for j in link._joints.values()
    ]
    for i in order(len(adds)):
        adds[i]()
    return new


# --------------------------------------------------------------------------------- mobility


@pytest.mark.parametrize("scale", [1.0, 1000.0], ids=["m", "mm"])
@pytest.mark.parametrize("name", LINKAGES)
def test_the_table_of_mechanisms(name, scale):
    case = LINKAGES[name](scale)
    mech = case.mechanism()
    q, _ = generic(mech)
    part = hc.partition(mech, q)
    m = len(mech.row_scale)
    got = (len(case.linkage.joints), mech.nv, part.rank, mech.nv - part.rank, m, mech.nv - m)
    assert got == tuple(case.expected)
    assert not part.uncertain
    assert len(case.linkage.loops) == len(case.cut) == len(mech.constraints)


@pytest.mark.parametrize("name", LINKAGES)
def test_dof_and_redundancy_do_not_depend_on_the_cut(name):
    case = LINKAGES[name]()
    link, expected = case.linkage, case.expected
    mech = case.mechanism()
    q, v = generic(mech)
    tried = cuts(link)
    assert len(tried) >= 3
    for cut in tried:
        other, x, w = same_state(mech, link, q, v, cut=cut)
        rate = constraint_rows(other, x, w)[1].rate
        assert np.abs(other.row_scale * rate).max() < 1e-10, cut
        rank = hc.partition(other, x).rank
        assert other.nv - rank == expected.closed_dof, cut
        assert other.nv - len(other.row_scale) == expected.gruebler, cut


@pytest.mark.parametrize("name", LINKAGES)
def test_nothing_depends_on_the_order_of_the_calls(name):
    case = LINKAGES[name]()
    chosen = case.linkage.mechanism()
    for seed in range(5):
        link = replayed(case.linkage, np.random.default_rng(seed).permutation)
        mech = link.mechanism()
        assert mech.model == chosen.model
        assert mech.constraint_names == chosen.constraint_names
        assert set(map(frozenset, link.loops)) == set(map(frozenset, case.linkage.loops))
    backwards = replayed(case.linkage, lambda n: reversed(range(n)))
    assert backwards.mechanism(cut=case.cut).model == case.linkage.mechanism(cut=case.cut).model


# --------------------------------------------------------------------------------- dynamics


@pytest.mark.parametrize("name", MOVING)
def test_motion_and_torques_do_not_depend_on_the_cut(name):
    case = LINKAGES[name]()
    link, motors = case.linkage, case.motors
    mech = case.mechanism()
    q, v = generic(mech)
    u = 3.0 + np.arange(len(motors))
    a = hc.forward_dynamics(mech, q, v, mech.B @ u).a
    bodies = body_motions(mech, link, q, v, a)
    assert np.abs(bodies[:, 3:9]).max() > 0.1
    assert np.abs(bodies[:, 9:]).max() > 0.1
    kinetic = energy(mech, q, v)
    assert kinetic[0] > 1e-3
    passive = cuts(link, motors)
    assert len(passive) >= 2
    for cut in passive:
        other, x, w = same_state(mech, link, q, v, cut=cut, actuated=motors)
        b = hc.forward_dynamics(other, x, w, other.B @ u).a
        assert close(body_motions(other, link, x, w, b), bodies, 1e-8), cut
        assert close(energy(other, x, w), kinetic, 1e-10), cut
        if name in DRIVEN:
            target = mech.B.T @ a
            one = hc.inverse_dynamics(mech, q, v, target)
            two = hc.inverse_dynamics(other, x, w, target)
            assert one.certificate.ok
            assert two.certificate.ok
            assert close(two.u, one.u, 1e-8), cut
            assert close(one.u, u, 1e-7)


@pytest.mark.parametrize("name", DRIVEN)
def test_a_motor_on_a_cut_joint_keeps_its_coordinate(name):
    """The body is divided there and welded together again: nothing else changes."""
    case = LINKAGES[name]()
    link, motors = case.linkage, case.motors
    mech = case.mechanism()
    q, v = generic(mech)
    u = 3.0 + np.arange(len(motors))
    a = hc.forward_dynamics(mech, q, v, mech.B @ u).a
    bodies = body_motions(mech, link, q, v, a)
    driven = [cut for cut in cuts(link, most=40) if set(cut) & set(motors)][:4]
    assert driven
    for cut in driven:
        other, x, w = same_state(mech, link, q, v, cut=cut, actuated=motors)
        welds = [n for n in other.constraint_names if n.endswith(".weld")]
        assert sorted(welds) == sorted(f"{n}.weld" for n in set(cut) & set(motors))
        assert other.actuated == motors
        rank = hc.partition(other, x).rank
        assert other.nv - rank == case.expected.closed_dof
        assert other.nv - len(other.row_scale) == case.expected.gruebler
        assert close(energy(other, x, w), energy(mech, q, v), 1e-10)
        b = hc.forward_dynamics(other, x, w, other.B @ u).a
        assert close(body_motions(other, link, x, w, b), bodies, 1e-8), cut
        two = hc.inverse_dynamics(other, x, w, mech.B.T @ a)
        assert close(two.u, u, 1e-7), cut


@pytest.mark.parametrize("make", [four_bar, bennett, umbrella])
def test_motors_on_all_joints(make):
    """The efforts of all joints, cut ones too, act through the Jacobians of their rates."""
    case = make()
    link = case.linkage
    mech = case.mechanism(actuated=())
    q, v = generic(mech)
    u = dict(zip(link.joints, np.random.default_rng(4).normal(size=len(link.joints)), strict=True))
    tau = sum(hc.joint_motion(mech, n, q).jacobian.T @ [u[n]] for n in link.joints)
    bodies = body_motions(mech, link, q, v, hc.forward_dynamics(mech, q, v, tau).a)
    without = sum(hc.joint_motion(mech, n, q).jacobian.T @ [u[n]] for n in kept(mech, link))
    less = body_motions(mech, link, q, v, hc.forward_dynamics(mech, q, v, without).a)
    assert not close(less, bodies, 1e-3)
    other, x, w = same_state(mech, link, q, v, actuated=link.joints)
    assert other.nu == len(link.joints)
    assert other.nv == mech.nv + len(link.loops)
    efforts = other.B @ [u[n] for n in other.actuated]
    b = hc.forward_dynamics(other, x, w, efforts).a
    assert close(body_motions(other, link, x, w, b), bodies, 1e-8)


def test_the_ground_is_not_divided_and_a_body_may_be_divided_twice():
    link = four_bar().linkage
    mech = link.mechanism(cut=["pivot"], actuated=["pivot"])
    parts = [mech.model.inertias[mech.model.getJointId(n)].mass for n in ("pivot", "pin")]
    assert parts == pytest.approx([0.4, 0.4])
    umbrella_ = umbrella().linkage
    hubs = ("foot_1", "foot_2")
    mech = umbrella_.mechanism(cut=hubs, actuated=hubs)
    masses = [i.mass for i in mech.model.inertias]
    assert sum(masses) == pytest.approx(sum(i.mass for i in umbrella_._bodies.values()))
    ground = hc.Linkage("ring", (0, -9.81, 0))
    for name in ("a", "b", "c"):
        add_bar(ground, name, 0.4, 1.0)
    ground.add_joint("1", "revolute", "universe", "a")
    ground.add_joint("2", "revolute", "a", "b", at(0.4))
    ground.add_joint("3", "revolute", "b", "c", at(0.4))
    ground.add_joint("4", "revolute", "c", "universe", at(0.4), at(0.3))
    mech = ground.mechanism(cut=["4"], actuated=["4", "1"])
    assert mech.model.parents[mech.model.getJointId("4")] == 0
    assert mech.model.inertias[mech.model.getJointId("4")].mass == pytest.approx(0.4)


# ------------------------------------------------------------------------------ joint_motion

DOF = {"revolute": 1, "prismatic": 1, "cylindrical": 2, "universal": 2, "spherical": 3,
       "planar": 3, "screw": 1, "weld": 0}  # fmt: skip

PITCH = 0.4


def pitch_of(kind):
    return PITCH if kind == "screw" else None


def closed_by(kind, outwards=True, seed=3):
    """An arm with skew axes, closed to the ground by a joint of this kind, with its state."""
    rng = np.random.default_rng(seed)
    n = 6 - DOF[kind] + 2

    def somewhere():
        return pin.SE3(pin.exp3(rng.normal(size=3)), 0.3 * rng.normal(size=3))

    link = hc.Linkage("arm")
    above = "universe"
    for i in range(n):
        add_lump(link, f"body_{i}", 1.0, 1.0 + 0.2 * i)
        ends = (above, f"body_{i}") if i % 2 == 0 else (f"body_{i}", above)
        joint = "prismatic" if i % 3 == 2 else "revolute"
        link.add_joint(f"j{i}", joint, *ends, somewhere(), somewhere())
        above = f"body_{i}"
    reference = {f"j{i}": x for i, x in enumerate(0.5 * rng.normal(size=n))}
    open_arm = link.mechanism(reference=reference)
    data = open_arm.model.createData()
    pin.framesForwardKinematics(open_arm.model, data, open_arm.reference)
    hand = data.oMf[open_arm.model.getFrameId(above)]
    shown, X = position(kind, rng)
    end = somewhere()
    # the child against the parent is X; the ground is the parent, or the child
    if outwards:
        ends = ("universe", above, hand * end * X.inverse(), end)
    else:
        ends = (above, "universe", end, hand * end * X)
    link.add_joint("end", kind, *ends, pitch=pitch_of(kind))
    return link, reference, shown


def position(kind, rng):
    """Coordinates of a joint, and the placement that they mean."""
    x = 0.7 * rng.normal(size=DOF[kind])

    def turn(axis, angle):
        return pin.SE3(pin.exp3(angle * np.eye(3)["xyz".index(axis)]), np.zeros(3))

    if kind == "revolute":
        return x, turn("z", x[0])
    if kind == "prismatic":
        return x, at(0, 0, x[0])
    if kind == "screw":
        return x, at(0, 0, PITCH * x[0]) * turn("z", x[0])
    if kind == "cylindrical":
        return x, at(0, 0, x[0]) * turn("z", x[1])
    if kind == "universal":
        return x, turn("x", x[0]) * turn("y", x[1])
    if kind == "planar":
        return x, at(x[0], x[1]) * turn("z", x[2])
    if kind == "spherical":
        R = pin.exp3(x)
        return pin.Quaternion(R).coeffs(), at(R=R)
    return x, pin.SE3.Identity()


def value_difference(kind, one, two):
    if kind != "spherical":
        return two - one
    R1, R2 = (pin.Quaternion(x).matrix() for x in (one, two))
    return pin.log3(R1.T @ R2)


@pytest.mark.parametrize("outwards", [True, False], ids=["from ground", "to ground"])
@pytest.mark.parametrize("kind", DOF)
def test_a_cut_joint_shows_the_coordinates_it_was_built_with(kind, outwards):
    link, reference, shown = closed_by(kind, outwards)
    mech = link.mechanism(cut=["end"], reference=reference)
    error = constraint_rows(mech, mech.reference, np.zeros(mech.nv))[1].error
    assert np.abs(error).max() < 1e-12
    assert close(hc.joint_motion(mech, "end", mech.reference).value, shown, 1e-12)


@pytest.mark.parametrize("outwards", [True, False], ids=["from ground", "to ground"])
@pytest.mark.parametrize("kind", DOF)
def test_rates_are_derivatives_of_values(kind, outwards):
    link, reference, _ = closed_by(kind, outwards)
    for cut in ("end", "j1", "j2"):
        mech = link.mechanism(cut=[cut], reference={k: x for k, x in reference.items() if k != cut})
        q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
        v *= 1.0 / np.linalg.norm(v)
        h = 1e-5
        before, after = (pin.integrate(mech.model, q, s * h * v) for s in (-1.0, 1.0))
        for name in link.joints:
            now = hc.joint_motion(mech, name, q, v)
            one, two = (hc.joint_motion(mech, name, x).value for x in (before, after))
            assert close(now.rate, now.jacobian @ v, 1e-14)
            slope = value_difference(kind if name == "end" else "", one, two) / (2 * h)
            assert close(now.rate, slope, 1e-8), (name, cut)


@pytest.mark.parametrize("outwards", [True, False], ids=["from ground", "to ground"])
@pytest.mark.parametrize("kind", DOF)
def test_every_joint_shows_the_same_with_every_cut(kind, outwards):
    link, reference, _ = closed_by(kind, outwards)
    mech = link.mechanism(cut=["end"], reference=reference)
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    shown = motions(mech, link.joints, q, v)
    assert max(np.abs(m.rate).max(initial=0.0) for m in shown.values()) > 0.1
    tau = {n: np.linspace(1.0, 2.0, m.rate.size) for n, m in shown.items()}
    a = hc.forward_dynamics(mech, q, v, sum(shown[n].jacobian.T @ tau[n] for n in shown)).a
    bodies = body_motions(mech, link, q, v, a)
    for cut in link.joints:
        other, x, w = same_state(mech, link, q, v, cut=[cut])
        there = motions(other, link.joints, x, w)
        for name in link.joints:
            one, two = shown[name].value, there[name].value
            if kind == "spherical" and name == "end" and one @ two < 0.0:
                two = -two  # the same rotation
            assert close(two, one, 1e-11), (name, cut)
            assert close(there[name].rate, shown[name].rate, 1e-9), (name, cut)
        b = hc.forward_dynamics(other, x, w, sum(there[n].jacobian.T @ tau[n] for n in there)).a
        assert close(body_motions(other, link, x, w, b), bodies, 1e-7), cut


@pytest.mark.parametrize(
    ("kind", "outwards"),
    [
        *itertools.product(["cylindrical", "universal", "planar"], [True, False]),
        ("spherical", True),
    ],
)
def test_motors_on_cut_joints_of_several_coordinates(kind, outwards):
    link, reference, _ = closed_by(kind, outwards)
    start = link.mechanism(cut=["end"], reference=reference)
    q0, v0 = hc.assemble(start, v_guess=np.ones(start.nv))
    mech, q, v = same_state(start, link, q0, v0, cut=["j1"], actuated=["end[0]", "end[1]"])
    u = hc.inverse_dynamics(mech, q, v, [0.3, -0.4]).u
    other, x, w = same_state(start, link, q0, v0, cut=["end"], actuated=["end[0]", "end[1]"])
    assert other.constraint_names == ("end.weld",)
    assert close(hc.inverse_dynamics(other, x, w, [0.3, -0.4]).u, u, 1e-8)


def test_a_free_joint_upside_down():
    """The tree reaches the child first: reference and joint_motion speak of the child still."""
    link = hc.Linkage("upside_down")
    add_lump(link, "a", 1.0)
    link.add_joint("base", "free", "a", "universe", at(0.1, 0.2, 0.3), at(0.3))
    X = pin.SE3(pin.exp3(np.array([0.3, -0.5, 0.9])), np.array([0.4, 0.5, -0.6]))
    mech = link.mechanism(reference={"base": pin.SE3ToXYZQUAT(X)})
    q, v = mech.reference, np.linspace(-1.0, 1.0, 6)
    shown = hc.joint_motion(mech, "base", q, v)
    assert close(shown.value, pin.SE3ToXYZQUAT(X), 1e-14)
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    body = data.oMf[mech.model.getFrameId("a")]
    assert close((body * at(0.1, 0.2, 0.3) * X).homogeneous, at(0.3).homogeneous, 1e-14)
    h = 1e-5
    one, two = (
        pin.XYZQUATToSE3(hc.joint_motion(mech, "base", pin.integrate(mech.model, q, s * v)).value)
        for s in (-h, h)
    )
    assert close(pin.log6(one.actInv(two)).vector / (2 * h), shown.rate, 1e-8)


def test_joint_motion_of_other_models():
    mech = hc.load(hc.robot_file("stewart"))
    q, _ = hc.assemble(mech)
    v = np.arange(mech.nv) / 10.0
    i = mech.coordinate_names.index(mech.actuated[0])
    shown = hc.joint_motion(mech, mech.actuated[0], q, v)
    assert shown.rate == [v[i]]
    wheel = pin.Model()
    wheel.addJoint(0, pin.JointModelRUBZ(), pin.SE3.Identity(), "wheel")
    wheel.inertias[1] = pin.Inertia.FromSphere(1.0, 0.1)
    mech = hc.Mechanism(wheel)
    assert hc.joint_motion(mech, "wheel", [np.cos(2.0), np.sin(2.0)]).value == pytest.approx([2.0])


def test_the_quaternion_of_a_cut_joint_has_w_not_negative():
    link, _, _ = closed_by("spherical")
    mech = link.mechanism(cut=["end"])
    rng = np.random.default_rng(2)
    every = [hc.joint_motion(mech, "end", 3.0 * rng.normal(size=mech.nq)).value for _ in range(50)]
    assert min(xyzw[3] for xyzw in every) >= 0.0


def test_a_frame_that_happens_to_be_called_child():
    model = pin.Model()
    for kind, name in ((pin.JointModelSpherical(), "ball"), (pin.JointModelRZ(), "hinge")):
        above = model.njoints - 1
        model.addJoint(above, kind, pin.SE3.Identity(), name)
        model.inertias[above + 1] = pin.Inertia.FromSphere(1.0, 0.1)
        frame = pin.Frame(f"{name}.child", above + 1, 0, at(0.1), pin.FrameType.OP_FRAME)
        model.addFrame(frame)
    mech = hc.Mechanism(model)
    q, v = generic(mech)
    assert hc.joint_motion(mech, "ball", q, v).value.tolist() == q[:4].tolist()
    assert hc.joint_motion(mech, "ball", q, v).rate.tolist() == v[:3].tolist()
    assert hc.joint_motion(mech, "hinge", q, v).value.tolist() == q[4:].tolist()


def test_joint_motion_refuses():
    case = four_bar()
    mech = case.mechanism()
    q = mech.reference
    with pytest.raises(hc.InputError, match=r"no joint called 'pim' \(did you mean 'pin'\?\)"):
        hc.joint_motion(mech, "pim", q)
    with pytest.raises(hc.InputError, match="'motor'"):
        hc.joint_motion(mech, None, q)
    with pytest.raises(hc.InputError, match="no joint called 'universe'"):
        hc.joint_motion(mech, "universe", q)
    with pytest.raises(hc.InputError, match="shape"):
        hc.joint_motion(mech, "pin", q[:2])
    with pytest.raises(hc.InputError, match="finite"):
        hc.joint_motion(mech, "pin", q, [np.nan, 0, 0])
    with pytest.raises(hc.InputError, match="Mechanism"):
        hc.joint_motion(mech.model, "pin", q)


# ------------------------------------------------------------------------------- the builder


def test_names_and_frames():
    link = hc.Linkage("arm", (0, 0, -9.81))
    link.add_joint("hull", "free", "universe", "base")
    link.add_joint("ball", "spherical", "base", "head", at(0, 0, 0.3))
    link.add_joint("u", "universal", "base", "foot", at(0, 0, -0.3))
    link.add_joint("fixed", "weld", "foot", "sole", at(0.1), at(0, 0.1))
    for body in ("base", "head", "foot", "sole"):
        add_lump(link, body, 1.0)
    assert link.bodies == ("base", "head", "foot", "sole")
    assert link.joints == ("hull", "ball", "u", "fixed")
    assert link.loops == ()
    assert repr(link) == "<Linkage 'arm': 4 bodies, 4 joints, 0 loops>"
    assert link.add_body("hat", 1.0) is None
    assert link.add_joint("lid", "weld", "head", "hat") is None
    mech = link.mechanism(actuated=["u[1]"], reference={"u": [0.1, 0.2]})
    assert mech.coordinate_names == (
        *(f"hull[{i}]" for i in range(6)), *(f"ball[{i}]" for i in range(3)), "u[0]", "u[1]",
    )  # fmt: skip
    assert mech.reference[-2:].tolist() == [0.1, 0.2]
    names = [f.name for f in mech.model.frames if f.type == pin.FrameType.BODY]
    assert sorted(names) == sorted(link.bodies)
    assert mech.model.existFrame("fixed")
    assert mech.model.existFrame("u")
    q, v = generic(mech)
    assert hc.joint_motion(mech, "fixed", q, v).value.shape == (0,)
    assert hc.joint_motion(mech, "u", q, v).value.tolist() == q[-2:].tolist()
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    foot, sole = (data.oMf[mech.model.getFrameId(n)] for n in ("foot", "sole"))
    assert close((foot * at(0.1)).homogeneous, (sole * at(0, 0.1)).homogeneous, 1e-14)
    # a body by its name in forces and constraints
    hc.forward_dynamics(mech, q, v, np.zeros(mech.nv), f_ext={"sole": [0, 0, 1, 0, 0, 0]})
    held = mech.with_constraints(hc.Closure(("universe", at(0, 0, 1)), "sole", axes="z"))
    assert len(held.row_scale) == 1


def test_mechanisms_are_independent_and_pickle():
    case = stewart()
    one, two = case.mechanism(), case.mechanism()
    assert one.model == two.model
    assert one.model is not two.model
    add_bar(case.linkage, "more", 0.1, 1.0)
    case.linkage.add_joint("tip", "revolute", "platform", "more")
    three = case.mechanism()
    assert three.nv == one.nv + 1
    for twin in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        q, v = generic(twin)
        assert np.array_equal(
            hc.joint_motion(twin, "head_3", q, v).jacobian,
            hc.joint_motion(one, "head_3", q, v).jacobian,
        )


def test_the_rule_for_cuts():
    link = stewart().linkage
    assert link.mechanism().constraint_names == tuple(f"head_{i}" for i in range(2, 7))
    # free joints and welds stay, motors before others, then few dof, then near the ground
    link.add_joint("hull", "free", "universe", "platform")
    assert link.mechanism().constraint_names == tuple(f"head_{i}" for i in range(1, 7))
    case = four_bar()
    assert case.linkage.mechanism().constraint_names == ("pin",)
    assert case.linkage.mechanism(actuated=["pin"]).constraint_names == ("elbow",)
    depth = case.linkage.mechanism().model
    assert max(len(list(depth.supports[j])) for j in range(depth.njoints)) == 3
    assert case.linkage.loops == (("pin", "pivot", "motor", "elbow"),)


def test_siblings_are_numbered_by_name():
    link = hc.Linkage()
    for name, kind in (("c", "revolute"), ("a", "spherical"), ("b", "prismatic")):
        add_lump(link, f"body_{name}", 1.0)
        link.add_joint(name, kind, "universe", f"body_{name}")
    assert list(link.mechanism().model.names) == ["universe", "a", "b", "c"]


def test_a_weld_joins_bodies():
    link = four_bar().linkage
    add_lump(link, "load", 1.0)
    link.add_joint("clamp", "weld", "coupler", "load", at(0.2), at(0, 0.1))
    mech = link.mechanism()
    assert mech.nv == 3
    total = sum(i.mass for i in mech.model.inertias)
    assert total == pytest.approx(sum(i.mass for i in link._bodies.values()))
    cut = link.mechanism(cut=["pin"])
    assert cut.model == mech.model


# ---------------------------------------------------------------------------------- refusals


def refused(match, call, *args, **kwargs):
    with pytest.raises(hc.InputError, match=match):
        call(*args, **kwargs)


def test_an_inertia_may_be_rounded():
    """A rod whose smallest moment came out below zero; Pinocchio's constructor raises for it."""
    link = hc.Linkage("rod")
    link.add_body("rod", 1.0, inertia=np.diag([-4e-6, 1.0, 1.000002]))
    link.add_joint("hinge", "revolute", "universe", "rod")
    for actuated in ([], ["hinge"]):
        assert link.mechanism(actuated=actuated).model.inertias[1].inertia[0, 0] == pytest.approx(
            -4e-6
        )


def test_what_is_no_body():
    link = four_bar().linkage
    before = (link.bodies, link.joints)
    add = link.add_body
    refused("a body of 'four_bar' has this name", add, "crank", 1.0)
    refused("a joint of 'four_bar' has this name", add, "motor", 1.0)
    refused("stands for the ground", add, "universe", 1.0)
    refused("text", add, "", 1.0)
    refused("text", add, 3, 1.0)
    refused("must not be negative; got -1", add, "x", -1.0)
    refused("finite", add, "x", np.inf)
    refused("number", add, "x", "1")
    refused(r"com .*shape \(3,\)", add, "x", 1.0, (0, 0))
    refused("finite", add, "x", 1.0, (0, 0, np.nan))
    refused(r"shape \(3, 3\)", add, "x", 1.0, inertia=[1, 1, 1])
    refused("finite", add, "x", 1.0, inertia=np.full((3, 3), np.nan))
    refused("symmetric", add, "x", 1.0, inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])
    refused("no negative principal moment.* -1, 1, 1", add, "x", 1.0, inertia=np.diag([1, -1, 1]))
    refused("sum of the others.* 1, 1, 3", add, "x", 1.0, inertia=np.diag([1, 3, 1]))
    assert (link.bodies, link.joints) == before
    add("rod", 1.0, inertia=np.diag([0.0, 0.123457, 0.123456]))  # rounded in a file
    add("point", 0.0)


def test_what_is_no_joint():
    link = four_bar().linkage
    before = (link.bodies, link.joints)
    add = link.add_joint
    refused("a joint of 'four_bar' has this name", add, "pin", "revolute", "crank", "rocker")
    refused("a body of 'four_bar' has this name", add, "crank", "revolute", "crank", "rocker")
    refused("did you mean 'revolute'", add, "x", "revolut", "crank", "rocker")
    refused("planar", add, "x", None, "crank", "rocker")
    refused("same body 'crank'", add, "x", "revolute", "crank", "crank")
    refused("stands for the ground", add, "universe", "weld", "rocker", "crank")
    refused("pinocchio.SE3; got list", add, "x", "weld", "rocker", "crank", [0, 0, 0])
    bad = pin.SE3(1.1 * np.eye(3), np.zeros(3))
    refused("placement_child has a rotation", add, "x", "weld", "rocker", "crank", None, bad)
    refused("not finite", add, "x", "weld", "rocker", "crank", at(np.nan))
    refused("parent must be a text", add, "x", "weld", 3, "crank")
    assert (link.bodies, link.joints) == before
    refused(r"gravity.*shape \(3,\)", hc.Linkage, "x", -9.81)
    refused("text", hc.Linkage, None)


def test_bodies_that_hang_on_nothing():
    link = four_bar().linkage
    add_lump(link, "stone", 1.0)
    refused("'stone'; is a joint missing.*free joint from 'universe'", link.mechanism)
    link.add_joint("tip", "revolute", "rocker", "stne")
    refused("joint 'tip': there is no body called 'stne'.*'stone'", link.mechanism)
    refused("no joints", hc.Linkage().mechanism)


def test_cuts_that_make_no_tree():
    link = umbrella().linkage
    refused("no joint called 'pin'", link.mechanism, cut=["pin", "pin_2"])
    refused("twice", link.mechanism, cut=["pin_1", "pin_1"])
    refused("list of names", link.mechanism, cut="pin_1")
    refused(
        "cut 'pin_1' leaves 1 loop: 'pin_2' closes the loop 'pin_2', 'hub_2', 'shaft', 'foot_2'",
        link.mechanism, cut=["pin_1"],
    )  # fmt: skip
    refused(
        "separates 'strut_1' from the ground; keep one of 'foot_1', 'pin_1'",
        link.mechanism, cut=["pin_1", "foot_1"],
    )  # fmt: skip
    refused("separates", link.mechanism, cut=["pin_1", "pin_2", "foot_1"])
    link = hc.Linkage()
    add_lump(link, "a", 1.0)
    add_lump(link, "b", 1.0)
    link.add_joint("1", "free", "universe", "a")
    link.add_joint("2", "revolute", "a", "b")
    refused("separates 'a', 'b' from the ground; keep '1'", link.mechanism, cut=["1"])
    link.add_joint("3", "spherical", "universe", "b")
    refused("free joint '1' would be cut", link.mechanism, cut=["1"])
    assert link.mechanism().constraint_names == ("3",)


def test_loops_that_are_none():
    link = hc.Linkage()
    for name in "abc":
        add_lump(link, name, 1.0)
    link.add_joint("1", "revolute", "universe", "a")
    link.add_joint("2", "weld", "a", "b")
    link.add_joint("3", "weld", "b", "c")
    link.add_joint("4", "revolute", "a", "c")
    refused("'4' closes the loop '4', '3', '2', where welds make one body", link.mechanism)
    assert link.mechanism(cut=["2"]).constraint_names == ("2",)
    link = hc.Linkage()
    add_lump(link, "a", 1.0)
    add_lump(link, "b", 1.0)
    for name, ends in (("1", ("universe", "a")), ("2", ("universe", "b")), ("3", ("a", "b"))):
        link.add_joint(name, "free", *ends)
    refused("free joint '3' would be cut", link.mechanism)


@pytest.mark.parametrize("kind", ["universal", "revolute", "spherical", "weld"])
def test_names_that_joints_need_themselves(kind):
    link = hc.Linkage()
    add_lump(link, "a", 1.0)
    add_lump(link, "u[0]", 1.0)
    link.add_joint("u", kind, "universe", "a")
    link.add_joint("x", "revolute", "a", "u[0]")
    refused("need these names themselves.*: 'u\\[0\\]'", link.mechanism)


def test_motors_and_references_that_do_not_fit():
    case = four_bar()
    link = case.linkage
    refused("did you mean 'motor'", link.mechanism, actuated=["moto"])
    refused("twice", link.mechanism, actuated=["motor", "motor"])
    refused("'pin' is cut in this mechanism", link.mechanism, reference={"pin": 1.0})
    refused("no joint called 'pn'", link.mechanism, reference={"pn": 1.0})
    refused("mapping", link.mechanism, reference=[1.0, 2.0, 3.0])
    refused(r"reference\['motor'\].*shape \(1,\)", link.mechanism, reference={"motor": [1, 2]})
    refused("finite", link.mechanism, reference={"motor": np.nan})
    link, _, _ = closed_by("spherical")
    refused("valid names.*'end\\[0\\]'", link.mechanism, actuated=["end"])
    refused(r"shape \(4,\)", link.mechanism, cut=["j1"], reference={"end": 1.0})
    refused("norm 1", link.mechanism, cut=["j1"], reference={"end": [0, 0, 0, 2]})
    link, _, _ = closed_by("spherical", outwards=False)
    refused(
        "'body_4' hangs from 'universe'.*'end\\[1\\]' would act in other axes",
        link.mechanism, cut=["j1"], actuated=["end[1]"],
    )  # fmt: skip
    refused("other axes", link.mechanism, cut=["end"], actuated=["end[1]"])
    refused("is zero", link.mechanism, cut=["j1"], reference={"end": [0, 0, 0, 0]})
    link = hc.Linkage()
    add_lump(link, "a", 1.0)
    add_lump(link, "b", 1.0)
    link.add_joint("1", "revolute", "universe", "a")
    link.add_joint("2", "weld", "a", "b")
    refused("a weld has no coordinate", link.mechanism, reference={"2": 1.0})


# -------------------------------------------------------------------------------- hypothesis

BODIES = ["universe", "a", "b", "c", "d", "ghost"]
EDGES = st.lists(
    st.tuples(
        st.sampled_from([*JOINT_TYPES, "revolute", "revolute", "hinge"]),
        st.sampled_from(BODIES[:5] * 4 + BODIES[5:]),
        st.sampled_from(BODIES[:5]),
    ),
    min_size=1,
    max_size=9,
)


@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(EDGES, st.integers(1, 4), st.integers(0, 2**20))
def test_random_graphs_build_or_are_refused(edges, bodies, seed):
    rng = np.random.default_rng(seed)
    link = hc.Linkage("random")
    for name in BODIES[1 : bodies + 1]:
        add_lump(link, name, 1.0)
    for i, (kind, parent, child) in enumerate(edges):
        X, Y = (pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3)) for _ in range(2))
        before = link.joints
        try:
            link.add_joint(f"j{i}", kind, parent, child, X, Y, pitch=pitch_of(kind))
        except hc.InputError:
            assert link.joints == before
    single = [j for j in link.joints if link._joints[j].type in ("revolute", "prismatic")]
    motors = [j for j in single if rng.random() < 0.5]
    cut = [j for j in link.joints if rng.random() < 0.3] if rng.random() < 0.3 else []
    try:
        mech = link.mechanism(cut=cut, actuated=motors)
    except hc.InputError:
        return
    loops = len(link.joints) - len(link.bodies)
    assert len(link.loops) == len(mech.constraints) == loops
    assert mech.actuated == tuple(motors)
    q, v = mech.reference, rng.normal(size=mech.nv)
    for name in link.joints:
        shown = hc.joint_motion(mech, name, q, v)
        assert np.isfinite(shown.value).all()
        assert shown.jacobian.shape == (shown.rate.size, mech.nv)
    mass = sum(i.mass for i in mech.model.inertias)
    assert mass == pytest.approx(float(len(link.bodies)))
    again = replayed(link, rng.permutation).mechanism(cut=cut, actuated=motors)
    assert again.model == mech.model
    assert again.constraint_names == mech.constraint_names


def test_random_graphs_are_not_all_refused():
    """A guard: seeded graphs that are connected, of which most build."""
    built = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        link = hc.Linkage("random")
        names = ["universe", *"abcd"]
        for i, name in enumerate(names[1:]):
            add_lump(link, name, 1.0)
            kind, above = str(rng.choice(JOINT_TYPES)), names[rng.integers(i + 1)]
            link.add_joint(f"t{i}", kind, above, name, pitch=pitch_of(kind))
        for i in range(2):
            with contextlib.suppress(hc.InputError):
                link.add_joint(f"l{i}", "revolute", *map(str, rng.choice(names, 2, replace=False)))
        with contextlib.suppress(hc.InputError):
            built += bool(link.mechanism().nv)
    assert built > 25


def test_a_door_on_two_hinges():
    """A second joint between the same two bodies closes a loop like any other."""
    link = hc.Linkage("door")
    link.add_body("door", 20.0, (0.4, 0.0, 1.0), np.diag([7.0, 8.0, 1.0]))
    link.add_joint("lower", "revolute", "universe", "door", at(z=0.2), at(z=0.2))
    link.add_joint("upper", "revolute", "universe", "door", at(z=1.8), at(z=1.8))
    assert link.loops == (("upper", "lower"),)
    for cut in ("lower", "upper"):
        mech = link.mechanism(cut=[cut])
        assert mech.constraint_names == (cut,)
        q, _ = hc.assemble(mech, [0.3])
        np.testing.assert_allclose(q, [0.3], atol=1e-12)
        report = hc.mobility(mech, q)
        assert (report.dof, report.rows, len(report.redundant)) == (1, 5, 5)
        assert hc.joint_motion(mech, cut, q).value == pytest.approx(0.3)
    link.add_joint("bolt", "weld", "universe", "door")
    refused("make one body", link.mechanism)
