"""Bodies and joints to a mechanism: whatever is cut, the motion and the torques are the same."""

from __future__ import annotations

import contextlib
import copy
import pickle

import numpy as np
import pinocchio as pin
import pytest
from cut_loops import (
    body_motions,
    close,
    cuts,
    generic,
    kept,
    pitch_of,
    refused,
    same_state,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linkages import (
    FEW,
    LINKAGES,
    Recorded,
    add_bar,
    add_lump,
    bennett,
    four_bar,
    stewart,
    umbrella,
)
from support import few
from zoo import at

import holoctl as hc
from holoctl.mechanism.joint_types import JOINT_TYPES
from holoctl.mechanism.open_tree import energy
from holoctl.rows.evaluate import constraint_rows

MOVING = [name for name in LINKAGES if name != "triangle"]
DRIVEN = [name for name in MOVING if name != "spherical_loop"]


# --------------------------------------------------------------------------------- mobility


@pytest.mark.parametrize("scale", [1.0, 1000.0], ids=["m", "mm"])
@pytest.mark.parametrize("name", few(LINKAGES, FEW))
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


@pytest.mark.parametrize("name", few(LINKAGES, FEW))
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


@pytest.mark.parametrize("name", few(LINKAGES, FEW))
def test_nothing_depends_on_the_order_of_the_calls(name):
    case = LINKAGES[name]()
    chosen = case.linkage.mechanism()
    for seed in range(5):
        link = case.linkage.replayed(np.random.default_rng(seed).permutation)
        mech = link.mechanism()
        assert mech.model == chosen.model
        assert mech.constraint_names == chosen.constraint_names
        assert set(map(frozenset, link.loops)) == set(map(frozenset, case.linkage.loops))
    backwards = case.linkage.replayed(lambda n: reversed(range(n)))
    assert backwards.mechanism(cut=case.cut).model == case.linkage.mechanism(cut=case.cut).model


# --------------------------------------------------------------------------------- dynamics


@pytest.mark.parametrize("name", few(MOVING, FEW))
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
    assert sum(masses) == pytest.approx(1.0 + 2 * 2.0 * (0.6 + 0.35))
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
    assert total == pytest.approx(2.0 * (0.2 + 0.5 + 0.4) + 1.0)
    cut = link.mechanism(cut=["pin"])
    assert cut.model == mech.model


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
    link, kinds = Recorded("random"), {}
    for name in BODIES[1 : bodies + 1]:
        add_lump(link, name, 1.0)
    for i, (kind, parent, child) in enumerate(edges):
        X, Y = (pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3)) for _ in range(2))
        before = link.joints
        try:
            link.add_joint(f"j{i}", kind, parent, child, X, Y, pitch=pitch_of(kind))
            kinds[f"j{i}"] = kind
        except hc.InputError:
            assert link.joints == before
    single = [j for j in link.joints if kinds[j] in ("revolute", "prismatic")]
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
    again = link.replayed(rng.permutation).mechanism(cut=cut, actuated=motors)
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
