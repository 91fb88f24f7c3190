"""Verdicts that are the same however a mechanism is cut, in any unit; and motions together."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pinocchio as pin
import pytest
from examined import gears, said, too_long
from scipy.linalg import null_space
from zoo import at

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows


def drawn(name, scale, joints):
    """Joints (name, type, parent, child, point, axis) in one closed posture, q = 0."""
    link = hc.Linkage(name, gravity=(0.0, -9.81 * scale, 0.0))
    points: dict = {}
    for _, _, parent, child, point, *_ in joints:
        for body in (parent, child):
            points.setdefault(body, []).append(np.resize([*point, 0.0, 0.0][:3], 3))
    for body, near in points.items():
        if body != "universe":
            inertia = scale**2 * np.diag([0.010, 0.012, 0.013])
            link.add_body(body, 1.0, scale * np.mean(near, axis=0), inertia)
    for joint, kind, parent, child, point, *axis in joints:
        direction = np.array(axis[0] if axis else (0.0, 0.0, 1.0), float)
        R = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), direction).matrix()
        place = at(*np.resize([*point, 0.0, 0.0][:3], 3), R=R, scale=scale)
        link.add_joint(joint, kind, parent, child, place, place)
    return link


def parallel_bars(scale=1.0, turn=0.0, lean=0.0):
    """A platform on six equal bars with balls: upright, or turned or pushed aside from there."""
    joints, radius, length = [], 0.5, 0.8
    chord = 2.0 * radius * np.sin(turn / 2.0)
    height = np.sqrt(length**2 - chord**2 - lean**2)
    for i in range(6):
        a = i * np.pi / 3
        foot = (radius * np.cos(a), radius * np.sin(a), 0.0)
        head = (radius * np.cos(a + turn) + lean, radius * np.sin(a + turn), height)
        joints.append((f"foot{i}", "spherical", "universe", f"rod{i}", foot))
        joints.append((f"head{i}", "spherical", f"rod{i}", "top", head))
    return drawn("parallel_bars", scale, joints)


def double_pendulum(scale=1.0, plane=(0.8, 0.1)):
    """Its lower link slides on a table: that holds nothing which the hinges do not."""
    return drawn("double_pendulum", scale, [
        ("shoulder", "revolute", "universe", "upper", (0, 0)),
        ("elbow", "revolute", "upper", "lower", (0.5, -0.2)),
        ("plane", "planar", "universe", "lower", plane),
    ])  # fmt: skip


def coupler_with_balls(scale=1.0):
    return drawn("rssr", scale, [
        ("crank", "revolute", "universe", "a", (0, 0, 0)),
        ("b1", "spherical", "a", "rod", (0.2, 0.1, 0)),
        ("b2", "spherical", "rod", "c", (0.6, 0.2, 0.4)),
        ("rocker", "revolute", "universe", "c", (0.7, 0.2, 0.1), (0, 1, 0.2)),
    ])  # fmt: skip


def flat(scale=1.0, lengths=(0.3, 1.0, 0.7)):
    """A four-bar on one line, its joints at these places."""
    a, b, c = lengths
    return drawn("flat", scale, [
        ("k0", "revolute", "universe", "a", (0, 0)),
        ("k1", "revolute", "a", "b", (a, 0)),
        ("k2", "revolute", "b", "c", (b, 0)),
        ("k3", "revolute", "c", "universe", (c, 0)),
    ])  # fmt: skip


def rhombus(scale=1.0):
    return flat(scale, (1.0, 2.0, 1.0))


def sarrus(scale=1.0):
    joints = []
    for i, a in enumerate((0.0, 2.0 * np.pi / 3)):
        c, s = np.cos(a), np.sin(a)
        axis = (-s, c, 0)
        joints += [
            (f"l{i}", "revolute", "universe", f"a{i}", (0.3 * c, 0.3 * s, 0), axis),
            (f"m{i}", "revolute", f"a{i}", f"b{i}", (0.5 * c, 0.5 * s, 0.2), axis),
            (f"u{i}", "revolute", f"b{i}", "top", (0.3 * c, 0.3 * s, 0.4), axis),
        ]
    return drawn("sarrus", scale, joints)


def pin_at_the_apex(scale=1.0):
    """Both rods of a five-bar turn on a pin that is a body of its own."""
    return drawn("pin", scale, [
        ("k0", "revolute", "universe", "a", (0, 0)),
        ("k1", "revolute", "a", "b", (-0.1, 0.3)),
        ("k2", "revolute", "b", "pin", (0.25, 0.6)),
        ("k3", "revolute", "c", "pin", (0.25, 0.6)),
        ("k4", "revolute", "c", "d", (0.6, 0.3)),
        ("k5", "revolute", "d", "universe", (0.5, 0)),
    ])  # fmt: skip


def sliding_legs(scale=1.0):
    """Legs of a ball, a piston that turns, and a ball: each has two spins."""
    joints = []
    for i, (a, b) in enumerate(zip((0.1, 2.3, 4.4), (0.8, 2.9, 5.0), strict=True)):
        foot = np.array([0.6 * np.cos(a), 0.6 * np.sin(a), 0.0])
        head = np.array([0.4 * np.cos(b), 0.4 * np.sin(b), 0.7])
        joints += [
            (f"foot{i}", "spherical", "universe", f"cylinder{i}", foot),
            (
                f"piston{i}",
                "cylindrical",
                f"cylinder{i}",
                f"rod{i}",
                (foot + head) / 2,
                head - foot,
            ),
            (f"head{i}", "spherical", f"rod{i}", "top", head),
        ]
    return drawn("legs", scale, joints)


def stretched(scale=1.0):
    return drawn("stretched", scale, [
        ("k0", "revolute", "universe", "a", (0, 0)),
        ("k1", "revolute", "a", "b", (0.3, 0)),
        ("k2", "revolute", "b", "universe", (0.7, 0)),
    ])  # fmt: skip


RODS = [f"rod{i}" for i in range(6)]

# what is known: motions at this instant, those that go on together, redundant rows, idle bodies
KNOWN = {
    "parallel_bars": (parallel_bars, (), (9, 8, 1, RODS), ["bifurcation", "shaky"], "none"),
    "double_pendulum": (double_pendulum, ["shoulder"], (2, 2, 3, []), [], "under"),
    "coupler_with_balls": (coupler_with_balls, ["crank"], (2, 2, 0, ["rod"]), [], "fully"),
    "flat": (flat, ["k0"], (2, 1, 3, []), ["bifurcation"], "fully"),
    "rhombus": (rhombus, ["k0"], (2, 1, 3, []), ["bifurcation"], "fully"),
    "sarrus": (sarrus, (), (1, 1, 1, []), [], "none"),
    "pin_at_the_apex": (pin_at_the_apex, ["k0", "k5"], (3, 3, 3, ["pin"]), [], "fully"),
    "sliding_legs": (
        sliding_legs, ["piston0[0]", "piston1[0]", "piston2[0]"],
        (12, 12, 0, sorted(f"{part}{i}" for part in ("cylinder", "rod") for i in range(3))),
        [], "under",
    ),
    "stretched": (stretched, (), (1, 0, 3, []), ["shaky"], "none"),
}  # fmt: skip

IN_UNITS = {"sarrus"}
"""Those that the short run has in other units too."""


def spanning_trees(link, most):
    """All sets of joints that can be cut, or so many of them, drawn at random."""
    sets = list(itertools.combinations(sorted(link.joints), len(link.loops)))
    np.random.default_rng(1).shuffle(sets)
    found = []
    for cut in map(list, sets):
        try:
            link.mechanism(cut=cut)
        except hc.InputError:  # does not leave a tree
            continue
        found.append(cut)
        if len(found) == most:
            break
    return found


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        pytest.param(n, s, marks=() if n in some else pytest.mark.slow)
        for s, some in ((1e-3, IN_UNITS), (1.0, set(KNOWN) - {"parallel_bars"}), (1e3, IN_UNITS))
        for n in KNOWN
    ],
)
def test_verdicts_are_known_and_the_same_for_every_cut_and_unit(name, scale):
    make, motors, known, singular, actuation = KNOWN[name]
    link = make(scale)
    cuts = spanning_trees(link, 3 if name == "parallel_bars" else 12)
    assert len(cuts) >= 3
    for cut in cuts:
        report = hc.mobility(link.mechanism(cut=cut, actuated=motors))
        found = (report.dof, report.finite_dof, len(report.redundant), sorted(report.idle))
        assert found == known, cut
        assert (report.singular, report.actuation) == (singular, actuation), cut
        assert report.ok


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_a_contradiction_is_one_for_every_cut_and_unit(scale):
    link = drawn("too_long", scale, [
        ("k0", "revolute", "universe", "a", (0, 0)),
        ("k1", "revolute", "a", "b", (0.3, 0.1)),
        ("k2", "revolute", "b", "universe", (0.6, 0)),
    ])  # fmt: skip
    link.add_body("c", 1.0)
    link.add_joint("k3", "revolute", "b", "c", at(0.4, scale=scale), None)
    far = at(5.0, scale=scale)
    link.add_joint("k4", "revolute", "c", "universe", at(0.1, scale=scale), far)
    for cut in spanning_trees(link, 12):
        report = hc.mobility(link.mechanism(cut=cut))
        assert not report.closed
        assert report.contradictions, cut


# ------------------------------------------------------------------------------ motions together


@pytest.mark.slow
def test_bars_that_lean_or_are_turned_are_on_one_path():
    """Pushed aside it moves on a sphere; turned, along a screw: not both."""
    assert hc.mobility(parallel_bars(lean=0.2).mechanism()).finite_dof == 8
    assert hc.mobility(parallel_bars(turn=0.4).mechanism()).finite_dof == 7
    for posture in ({"lean": 0.2}, {"turn": 0.4}):
        assert hc.mobility(parallel_bars(**posture).mechanism()).singular == ["shaky"]


def test_turned_and_pushed_at_once_the_bars_would_have_to_stretch():
    """The guard of what is known: by their lengths, without any doctor."""
    a = np.arange(6) * np.pi / 3
    foot = 0.5 * np.array([np.cos(a), np.sin(a)]).T

    def misfit(turn, lean):
        head = 0.5 * np.array([np.cos(a + turn), np.sin(a + turn)]).T + [lean, 0.0]
        height2 = 0.64 - ((head - foot) ** 2).sum(axis=1)
        plane = np.column_stack([np.ones(6), foot])
        # heights must be those of a plane
        z = np.sqrt(height2)
        return np.abs(z - plane @ np.linalg.lstsq(plane, z, rcond=None)[0]).max()

    assert misfit(0.2, 0.0) < 1e-12
    assert misfit(0.0, 0.1) < 1e-12
    assert misfit(0.2, 0.1) > 1e-6


def test_rows_that_may_be_left_out_hold_on_all_that_can_be_reached():
    """Each latent row is needed; the redundant one is not: by walking without it."""
    mech = parallel_bars().mechanism()
    report = hc.mobility(mech)
    assert (len(report.redundant), len(report.latent)) == (1, 2)
    _, rows = constraint_rows(mech, mech.reference, np.zeros(mech.nv))
    assert null_space(rows.jacobian).shape[1] == 9
    assert "Bifurcation: motion paths cross here." in said(report)
    assert "9 independent motions, but at most 8 can continue together" in said(report)


def test_paths_of_different_dimension_that_meet():
    """A plane and a line through one point: what is said is said of the plane."""
    m = pin.Model()
    for name in "xyz":
        j = m.addJoint(m.njoints - 1, pin.JointModelRX(), at(0.3), name)
        m.appendBodyToJoint(j, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    cross = hc.Custom(lambda q: [q[0] * q[2], q[1] * q[2]], rows=2)
    report = hc.mobility(hc.Mechanism(m, [cross]), np.zeros(3))
    assert (report.dof, report.finite_dof, report.generic_rank) == (3, 2, 1)
    assert report.singular == ["bifurcation"]
    assert report.redundant == []  # on the line both rows act


# ----------------------------------------------------------------------------------- idle motions


@pytest.mark.parametrize("plane", [(0.8, 0.1), (0.5, -0.2)])
def test_a_pendulum_on_a_table_is_under_actuated_like_the_same_without_the_table(plane):
    link = double_pendulum(plane=plane)
    for cut in (["elbow"], ["plane"], ["shoulder"]):
        report = hc.mobility(link.mechanism(cut=cut, actuated=["shoulder"]))
        assert (report.actuation, report.idle, len(report.undriven)) == ("under", [], 1)


# -------------------------------------------------------------------------------------- sentences


def test_weak_rows_are_told_with_their_own_strength():
    """At a bifurcation the weakest row that counts belongs to another rank."""
    weak = hc.Custom(lambda q: [0.02 * q[0] * q[1]], rows=1, name="weak")
    m = gears().model.copy()
    j = m.addJoint(0, pin.JointModelRZ(), at(1.0), "c")
    m.appendBodyToJoint(j, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    strong = hc.Coupling({"c": 1}, name="strong")
    report = hc.mobility(hc.Mechanism(m, [strong, weak]), np.zeros(3))
    assert report.weak == ["weak.0"]
    assert report.margin > 0.1
    assert report.redundancy.strength < 5e-3
    assert f"of the scaled rows is {report.redundancy.strength:.1g}." in said(report)


def test_many_rows_are_named_together():
    link = hc.Linkage("chain")
    joints = []
    for i in range(8):
        x = 2.0 * i
        joints += [
            (f"a{i}", "revolute", "universe", f"l{i}", (x, 0)),
            (f"b{i}", "revolute", f"l{i}", f"m{i}", (x + 0.2, 0.3)),
            (f"c{i}", "revolute", f"m{i}", f"r{i}", (x + 0.9, 0.4)),
            (f"pin{i}", "revolute", f"r{i}", "universe", (x + 1.0, 0)),
        ]
    link = drawn("chain", 1.0, joints)
    report = hc.mobility(link.mechanism(cut=[f"pin{i}" for i in range(8)]))
    assert len(report.redundant) == 24
    text = said(report)
    assert "z, ry and rx of 'pin0' ... 'pin7' (no displacement along z, " in text
    assert "'pin3" not in text
    few = said(hc.mobility(hc.load(hc.robot_file("four_bar"))))
    assert "'pin.z' (no displacement along z), 'pin.ry'" in few


# ------------------------------------------------------------------------------------------ speed


def test_an_open_tree_of_many_joints_takes_no_time():
    link = hc.Linkage("tree")
    rng = np.random.default_rng(0)
    for i in range(101):
        link.add_body(f"b{i}", 1.0, (0, 0, 0.1), 0.01 * np.eye(3))
        R = pin.rpy.rpyToMatrix(*rng.normal(size=3))
        above = f"b{i - 1}" if i else "universe"
        link.add_joint(f"j{i}", "revolute", above, f"b{i}", pin.SE3(R, 0.2 * rng.normal(size=3)))
    mech = link.mechanism()
    hc.mobility(too_long())  # imports
    start = time.process_time()
    report = hc.mobility(mech)
    assert time.process_time() - start < 2.0  # 0.2 s on a quiet machine; it was 3.4
    assert (report.dof, report.idle) == (101, [])


def test_what_does_not_close_is_given_up_in_bounded_time():
    start = time.process_time()
    report = hc.mobility(too_long())
    assert report.contradictions == ["last.x"]
    assert time.process_time() - start < 3.0


def test_progress_is_shown_if_asked_and_goes_to_stderr(capfd):
    for mech in (hc.load(hc.robot_file("four_bar")), too_long()):
        hc.mobility(mech, progress=True)
        out, err = capfd.readouterr()
        assert "5/5" in err
        assert out == ""
    hc.mobility(too_long())
    assert capfd.readouterr().err == ""
    with pytest.raises(hc.InputError, match="progress"):
        hc.mobility(too_long(), progress="yes")


@pytest.mark.parametrize("root", ["revolute", "free"])
def test_a_ring_that_moves_as_a_whole_holds_none_of_its_bodies(root):
    """All its bodies may take part, seen from any: then no joint ends at one that rests."""
    link = hc.Linkage("ring")
    for i in range(4):
        link.add_body(f"body_{i}", 1.0, inertia=0.1 * np.eye(3))
    link.add_joint("root", root, "universe", "body_0")
    corners = [(1.0, 0.0, 0.3), (0.0, 1.0, 0.1), (-1.0, 0.0, -0.2), (0.0, -1.0, 0.4)]
    for i, kind in enumerate(("revolute", "cylindrical", "revolute", "spherical")):
        corner = np.array(corners[i])
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), corner).toRotationMatrix()
        place = pin.SE3(turn, corner)
        link.add_joint(f"joint_{i}", kind, f"body_{i}", f"body_{(i + 1) % 4}", place, place)
    report = hc.mobility(link.mechanism())
    assert report.finite_dof == (2 if root == "revolute" else 7)
    assert report.idle == []
