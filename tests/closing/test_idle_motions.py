"""Idle motions at a closed configuration: how many, and that they move nothing else."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
from linkages import LINKAGES
from scipy.linalg import qr
from shared_robots import SHARED_ROBOT_NAMES, shared_robot
from support import SHORT, few
from zoo import ZOO, at

import holoctl as hc
from holoctl.closing.idle.basis import idle_basis
from holoctl.closing.rank import scaled_jacobian

SHIPPED = [
    f"shipped_{name}"
    for name in ("ankle", "four_bar", "five_bar", "leg", "delta", "stewart", "geared_arm")
]
DRAWN = ("delta", "rssr", "shafts_and_rod", "equal_bars_4", "wren_6", "folded_parallelogram")
SPINNING = {
    "idle_rod": ["rod"],
    "universal_rods": ["plate"],
    "spherical_loop": ["rod"],
    "stewart_6sps": [f"{part}_{i}" for i in range(1, 7) for part in ("cylinder", "rod")],
    "5bar_linkage": ["sphere", "sphere_2"],
    "cassie_like": [
        "half_planta_rode", "half_planta_rode_2", "half_hachil_rode", "half_hachil_rode_2",
    ],
    "disney_like": ["tigh_mirror1", "tigh_mirror2", "tigh_mirror1_2", "tigh_mirror2_2"],
}  # fmt: skip
"""Bodies that spin; a rod may be made of several."""

IDLE = {
    "idle_rod": 1, "universal_rods": 1, "spherical_loop": 1, "stewart_6sps": 6, "5bar_linkage": 1,
    "cassie_like": 2, "disney_like": 2,
}  # fmt: skip
"""How many motions are idle; none in the other mechanisms."""


def mechanism(name):
    if name.startswith("shipped_"):
        return hc.load(hc.robot_file(name.removeprefix("shipped_")))
    if name in SHARED_ROBOT_NAMES:
        return hc.load(shared_robot(name))
    return ZOO[name]() if name in ZOO else LINKAGES[name]().mechanism()


EVERY = list(dict.fromkeys([*SHIPPED, *SHARED_ROBOT_NAMES, *ZOO, *IDLE]))


def motions(mech, q):
    """All motions to first order, scaled."""
    G = scaled_jacobian(mech, q, 0.0)[0]
    _, s, vt = np.linalg.svd(G)
    return vt[np.count_nonzero(s > 1e-7) :].T


def without(space, N):
    u, s, _ = np.linalg.svd(space - N @ (N.T @ space), full_matrices=False)
    return u[:, s > 1e-6]


def places(mech, q):
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    return [X.copy() for X in list(data.oMi)[1:]]


PARTS = re.compile(r"closedloop|_int\d|_rev\d")
"""Marks where loops were cut, and what is within a joint of several hinges."""


def carried(mech, joints):
    """The links that these joints carry, named after the joint where it has none; no parts."""
    frames = [f for f in mech.model.frames if f.type == pin.FrameType.BODY]
    found = set()
    for joint in joints:
        links = {f.name for f in frames if f.parentJoint == joint}
        found |= links or {mech.model.names[joint]}
    return {name for name in found if not PARTS.search(name)}


def closed(mech, x, q, measured):
    """Closed from x, by Newton's method, with the coordinates measured where they are in q."""
    S = np.eye(mech.nv)[measured]
    for _ in range(30):
        G, error = scaled_jacobian(mech, x, 0.0)
        off = pin.difference(mech.model, q, x)[measured] / mech.column_scale[measured]
        residual = np.concatenate([error, off])
        if np.abs(residual).max() < 1e-13:
            break
        step = np.linalg.lstsq(np.vstack([G, S]), -residual, rcond=1e-9)[0]
        x = pin.integrate(mech.model, x, mech.column_scale * step)
    assert np.abs(residual).max() < 1e-11
    return x


def check_basis(mech, q, N):
    G = scaled_jacobian(mech, q, 0.0)[0]
    np.testing.assert_allclose(N.T @ N, np.eye(N.shape[1]), atol=1e-12)
    np.testing.assert_allclose(G @ N, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", few(EVERY, [*SHORT, *IDLE, "shipped_delta"]))
def test_how_many_are_idle(name):
    mech = mechanism(name)
    q, _ = hc.assemble(mech)
    N = idle_basis(mech, q)
    assert N.shape == (mech.nv, IDLE.get(name, 0))
    check_basis(mech, q, N)
    assert len(hc.mobility(mech, q).idle_motions) == N.shape[1]


@pytest.mark.parametrize("name", few(IDLE, ["idle_rod", "universal_rods", "stewart_6sps"]))
def test_they_are_the_same_elsewhere_whatever_the_motors(name):
    mech = mechanism(name)
    q, _ = hc.assemble(mech)
    rng = np.random.default_rng(1)
    for _ in range(4):
        Z = motions(mech, q)
        way = Z @ rng.normal(size=Z.shape[1])
        step = 0.3 * mech.column_scale * way / np.linalg.norm(way)
        q, _ = hc.assemble(mech, pin.integrate(mech.model, q, step))
        N = idle_basis(mech, q)
        assert N.shape[1] == IDLE[name]
        check_basis(mech, q, N)
    without_motors = dataclasses.replace(mech, actuated=())
    np.testing.assert_array_equal(idle_basis(without_motors, q), N)
    seen = idle_basis(mech, q, held=mech.B.T)
    np.testing.assert_allclose(seen - N @ (N.T @ seen), 0.0, atol=1e-9)
    assert seen.shape == N.shape


@pytest.mark.parametrize("name", IDLE)
def test_a_finite_spin_moves_nothing_else(name):
    """All other motions are measured: held where they are, with the spins gone far."""
    mech = mechanism(name)
    q, _ = hc.assemble(mech)
    N = idle_basis(mech, q)
    rest = without(motions(mech, q), N)
    resting = np.flatnonzero(np.abs(N).max(axis=1) < 1e-9)
    measured = resting[qr(rest[resting].T, pivoting=True)[2][: rest.shape[1]]]
    assert np.linalg.matrix_rank(rest[measured], tol=1e-3) == rest.shape[1]
    moved = set()
    for turn in (0.3 * N).T:
        x = closed(mech, pin.integrate(mech.model, q, mech.column_scale * turn), q, measured)
        assert np.linalg.norm(pin.difference(mech.model, q, x) / mech.column_scale) > 0.2
        for i, (before, after) in enumerate(zip(places(mech, q), places(mech, x), strict=True), 1):
            if np.abs(pin.log6(before.actInv(after)).vector).max() > 1e-8:
                moved.add(i)
    assert carried(mech, moved) == set(SPINNING[name])


# ------------------------------------------------------------------------ what is held, what is one


def platform(knee, motors=()):
    """A plate on legs of two parts, with balls at both ends."""
    link = hc.Linkage("platform")
    link.add_body("plate", 2.0, (0.0, 0.0, 1.0), 0.1 * np.eye(3))
    for i in range(max(6, len(motors))):
        below, above = i * np.pi / 3, i * np.pi / 3 + (0.1 * i if i > 5 else 0.4 * (-1) ** i)
        foot = np.array([np.cos(below), np.sin(below), 0.1 * i])
        head = np.array([0.5 * np.cos(above), 0.5 * np.sin(above), 0.8])
        along = middle = (foot + head) / 2
        if knee == "revolute":
            middle = middle + 0.2 * np.array([np.cos(below), np.sin(below), 0.3])
            along = np.cross(head - middle, foot - middle)
        else:
            along = head - foot
        R = pin.Quaternion.FromTwoVectors(
            np.array([0.0, 0.0, 1.0]), along / np.linalg.norm(along)
        ).matrix()  # fmt: skip
        link.add_body(f"thigh{i}", 0.5, (foot + middle) / 2, 0.01 * np.eye(3))
        link.add_body(f"shin{i}", 0.5, (middle + head) / 2, 0.01 * np.eye(3))
        link.add_joint(f"foot{i}", "spherical", "universe", f"thigh{i}", at(*foot), at(*foot))
        link.add_joint(
            f"knee{i}", knee, f"thigh{i}", f"shin{i}", at(*middle, R=R), at(*middle, R=R)
        )
        link.add_joint(f"head{i}", "spherical", f"shin{i}", "plate", at(*head), at(*head))
    return link.mechanism(actuated=motors)


@pytest.mark.parametrize("motors", [0, 5, 6])
def test_a_leg_that_slides_is_one_rod_driven_or_not(motors):
    mech = platform("prismatic", [f"knee{i}" for i in range(motors)])
    N = idle_basis(mech, mech.reference)
    assert N.shape[1] == 6
    check_basis(mech, mech.reference, N)
    assert idle_basis(mech, mech.reference, held=mech.B.T).shape[1] == 6


def test_a_leg_with_a_knee_is_one_rod_where_the_knee_is_held():
    mech = platform("revolute", [f"knee{i}" for i in range(6)])
    knees = mech.B.T
    assert idle_basis(mech, mech.reference).shape[1] == 0
    N = idle_basis(mech, mech.reference, held=knees)
    assert N.shape[1] == 6
    check_basis(mech, mech.reference, N)
    np.testing.assert_allclose(knees @ N, 0.0, atol=1e-12)


def test_the_parts_of_a_cylindrical_leg_spin_each():
    mech = platform("cylindrical")
    assert idle_basis(mech, mech.reference).shape[1] == 12


def test_a_knee_may_go_without_a_sensor_where_others_hold_the_plate():
    """With seven legs the knee that is not measured rests all the same."""
    mech = platform("revolute", [f"knee{i}" for i in range(7)])
    assert idle_basis(mech, mech.reference, held=mech.B.T[:6]).shape[1] == 7


def test_a_spin_that_is_held_is_none():
    mech = ZOO["idle_rod"]()
    q, _ = hc.assemble(mech)
    N = idle_basis(mech, q)
    (spin,) = np.flatnonzero(np.abs(N[:, 0]) > 0.5)
    held = np.zeros((1, mech.nv))
    held[0, spin] = 1e3
    assert idle_basis(mech, q, held=held).shape == (mech.nv, 0)
    held = np.zeros((1, mech.nv))
    held[0, mech.coordinate_names.index("rocker")] = 1e-3
    np.testing.assert_allclose(np.abs(idle_basis(mech, q, held=held).T @ N), 1.0, atol=1e-9)


def rods(cut):
    """Two cranks tied by a rod with balls at both ends, stretched out: paths cross there."""
    link = hc.Linkage("parallelogram")
    for name, x in (("crank", 0.5), ("rod", 2.0), ("rocker", 2.5)):
        link.add_body(name, 1.0, (x, 0.0, 0.0), 0.01 * np.eye(3))
    link.add_joint("left", "revolute", "universe", "crank", at(), at())
    link.add_joint("right", "revolute", "universe", "rocker", at(2.0), at(2.0))
    link.add_joint("near", "spherical", "crank", "rod", at(1.0), at(1.0))
    link.add_joint("far", "spherical", "rod", "rocker", at(3.0), at(3.0))
    return link.mechanism(cut=(cut,), actuated=("left",))


@pytest.mark.parametrize("cut", ["left", "right", "near", "far"])
def test_where_paths_cross(cut):
    mech = rods(cut)
    q = mech.reference
    assert hc.mobility(mech).singular == ["bifurcation"]
    N = idle_basis(mech, q)
    assert N.shape[1] == 1
    check_basis(mech, q, N)


def test_rates_of_a_joint_that_was_cut_may_be_held():
    mech = rods("far")
    step = np.zeros(mech.nv)
    step[mech.coordinate_names.index("left")] = 0.7
    q, _ = hc.assemble(mech, pin.integrate(mech.model, mech.reference, step))
    assert idle_basis(mech, q).shape[1] == 1

    def rates(x):
        return hc.joint_motion(mech, "far", x).jacobian

    assert idle_basis(mech, q, held=rates).shape[1] == 0


def rod_on_three_hinges(axes):
    """The idle rod, with its ball at the crank made of three hinges about these axes."""
    base = ZOO["idle_rod"]().model
    model, last = pin.Model(), 0
    kinds = {"x": pin.JointModelRX, "y": pin.JointModelRY, "z": pin.JointModelRZ}
    names = [
        ("crank", "z", at()),
        *((f"rod_{i}", a, at(0.2 * (i == 0))) for i, a in enumerate(axes)),
    ]
    for name, axis, placement in names:
        last = model.addJoint(last, kinds[axis](), placement, name)
        model.appendBodyToJoint(last, base.inertias[1], pin.SE3.Identity())
    end = model.addJoint(0, pin.JointModelRX(), at(0.6, 0.0, -0.2), "rocker")
    model.appendBodyToJoint(end, base.inertias[1], pin.SE3.Identity())
    reference = np.array([0.4, 0.0, 0.0, 0.0, 0.6])
    data = model.createData()
    pin.forwardKinematics(model, data, reference)
    meet = data.oMi[end].actInv(data.oMi[last].act(np.array([0.7, 0.0, 0.0])))
    loop = hc.Closure(("rod_2", at(0.7)), ("rocker", at(*meet)), joint="spherical")
    return hc.Mechanism(model, [loop], ["crank"], reference=reference, name=f"rod_{axes}")


@pytest.mark.parametrize("axes", ["xyz", "zyx", "zxy", "yxz", "yzx", "zyz", "yzy"])
def test_a_ball_made_of_three_hinges(axes):
    mech = rod_on_three_hinges(axes)
    away = np.array([0.6, 0.1, 0.2, -0.1, 0.6])
    q, _ = hc.assemble(mech, away)
    N = idle_basis(mech, q)
    assert N.shape[1] == 1
    check_basis(mech, q, N)
    if axes[0] == axes[2]:  # the first and the last hinge are on one line: the rod cannot spin
        told = "0 motions can be identified as idle, nearby 1: it is singular, or a joint made of"
        with pytest.raises(hc.SingularityError, match=told):
            idle_basis(mech, mech.reference)
    else:
        N = idle_basis(mech, mech.reference)
        assert N.shape[1] == 1
        check_basis(mech, mech.reference, N)


@pytest.mark.parametrize("name", DRAWN)
def test_singular_and_overconstrained_ones(name):
    drawing, mech = oc.drawn(name)
    q, _ = hc.assemble(mech)
    N = idle_basis(mech, q)
    assert N.shape[1] == drawing.truth.idle
    check_basis(mech, q, N)


@pytest.mark.parametrize("name", ["delta", "shafts_and_rod", "rssr", "sarrus", "spherical_5"])
def test_geometry_that_is_rounded(name):
    drawing, exact = oc.drawn(name)
    mech = oc.meant(exact, 1e-6)
    q, _ = hc.assemble(mech)
    N = idle_basis(mech, q)
    assert N.shape[1] == drawing.truth.idle
    assert np.abs(scaled_jacobian(mech, q, 0.0)[0] @ N).max(initial=0.0) <= mech.tolerance


def test_links_of_a_spherical_linkage_are_no_rods():
    """Two links at rest hold the others at the one point about which all turn."""
    _, mech = oc.drawn("spherical_5")
    q, _ = hc.assemble(mech)
    assert idle_basis(mech, q).shape[1] == 0
    assert idle_basis(mech, q, held=mech.B.T[:1]).shape[1] == 0


def lighter(mech, joints, factor):
    """The mechanism with the bodies behind these joints lighter, by mass and moments."""
    model = mech.model.copy()
    for joint in joints:
        i = model.getJointId(joint)
        drawn = model.inertias[i]
        model.inertias[i] = pin.Inertia(factor * drawn.mass, drawn.lever, factor * drawn.inertia)
    return dataclasses.replace(mech, model=model)


@pytest.mark.parametrize(("factor", "count"), [(0.0, 1), (1e-9, 1), (1e-3, 0)])
@pytest.mark.parametrize("measured", ["hinge_1", "hinge_5"])
def test_links_without_mass_make_a_ball_for_a_shaft_on_a_hinge(measured, factor, count):
    """What is left is a spherical four-bar: two of its links tie the third to one at rest."""
    _, mech = oc.drawn("spherical_5")
    light = lighter(mech, ["hinge_2", "hinge_4"], factor)
    q, _ = hc.assemble(light)
    held = np.eye(light.nv)[[light.coordinate_names.index(measured)]]
    N = idle_basis(light, q, held=held)
    assert N.shape[1] == count
    check_basis(light, q, N)
    report = hc.mobility(dataclasses.replace(light, actuated=(measured,)))
    shaft = {"hinge_1": "link_4", "hinge_5": "link_1"}[measured]
    assert report.idle == [shaft] * count


def test_without_any_mass_no_link_is_a_part():
    _, mech = oc.drawn("spherical_5")
    bare = lighter(mech, mech.coordinate_names, 0.0)
    q, _ = hc.assemble(bare)
    held = np.eye(bare.nv)[[bare.coordinate_names.index("hinge_5")]]
    assert idle_basis(bare, q, held=held).shape[1] == 0
