"""The doctor: numbers against what is known of mechanisms, and the words for what is wrong."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pinocchio as pin
import pytest
from linkages import LINKAGES, add_bar, at, planar
from scipy.linalg import subspace_angles
from shared_robots import SHARED_ROBOT_NAMES, shared_robot
from zoo import ZOO

import holoctl as hc
from holoctl.closing.assembly import nearby_configurations
from holoctl.mechanism.mechanism import constraint_rows, row_names

IDLE = {"spherical_loop": ["rod"], "stewart_6sps": [f"cylinder_{i} + rod_{i}" for i in range(1, 7)]}
"""Bodies that spin without effect; none in the other linkages."""

LOCKED = {
    "triangle": {"left", "top", "right"}, "double_link": {"fold"}, "spherical_loop": {"pin"}
}  # fmt: skip
"""Joints that cannot move; of the triangle that is all of them."""


def assembled(case, **options):
    mech = case.mechanism(**options)
    return mech, hc.assemble(mech)[0]


def walk(mech, q, count, seed=0):
    """Generic closed configurations, each a few steps from the one before."""
    found = [q]
    while len(found) < count:
        reached = nearby_configurations(mech, found[-1], count=2, step=0.15, seed=seed + len(found))
        if not reached:
            return [q]  # rigid
        found.append(reached[len(found) % len(reached)])
    return found


def said(report):
    """The text on one line."""
    return " ".join(str(report).split())


def verdicts(report):
    """What does not depend on how the tree was cut."""
    locked = {name.split("[")[0] for name in report.locked_joints}
    return {
        "dof": report.dof,
        "finite": report.finite_dof,
        "repeated": report.rows - report.active,
        "redundant": len(report.redundant),
        "gruebler": report.gruebler,
        "generic": report.open_dof - report.generic_rank,
        "idle": sorted(report.idle),
        "locked": locked,
        "singular": report.singular,
        "actuation": report.actuation,
        "undriven": len(report.undriven),
    }


# ------------------------------------------------------------------------- the table of mechanisms


@pytest.mark.parametrize("scale", [1.0, 1000.0], ids=["m", "mm"])
@pytest.mark.parametrize("name", LINKAGES)
def test_the_table_at_twenty_configurations(name, scale):
    case = LINKAGES[name](scale)
    mech, q = assembled(case)
    expected = case.expected
    places = walk(mech, q, 20)
    assert len(places) == 20 or expected.closed_dof == 0 or name == "spherical_loop"
    for x in places:
        report = hc.mobility(mech, x)
        assert (report.open_dof, report.active, report.rows) == expected[1:3] + expected[4:5]
        assert (report.dof, report.finite_dof) == (expected.closed_dof, expected.closed_dof)
        assert report.gruebler == expected.gruebler
        assert (report.generic_rank, report.singular) == (report.active, [])
        assert len(report.redundant) == report.rows - report.active
        assert sorted(report.idle) == IDLE.get(name, [])
        assert set(report.locked_joints) == LOCKED.get(name, set())
        assert report.closed
        assert not report.uncertain
        assert (report.gruebler_reason == "") == (report.gruebler == report.dof)


def spanning_cuts(case, most):
    """Other sets of joints to cut, all of them or a seeded sample."""
    joints = case.linkage.joints
    found = []
    sets = list(itertools.combinations(sorted(joints), len(case.cut)))
    np.random.default_rng(3).shuffle(sets)
    for cut in sets:
        try:
            case.linkage.mechanism(cut=cut)
        except hc.InputError:  # does not leave a tree
            continue
        found.append(cut)
        if len(found) == most:
            break
    return found


@pytest.mark.parametrize("name", LINKAGES)
def test_verdicts_do_not_depend_on_the_cut(name):
    case = LINKAGES[name]()
    mech, q = assembled(case)
    wanted = verdicts(hc.mobility(mech, q))
    cuts = spanning_cuts(case, 5)
    assert len(cuts) >= 2
    for cut in cuts:
        # the same posture: where every joint is in the mechanism of the table
        other = case.mechanism(cut=cut, reference={})
        there = case.mechanism(cut=cut, reference=positions(mech, q, other))
        x, _ = hc.assemble(there)
        np.testing.assert_allclose(pin.difference(there.model, there.reference, x), 0.0, atol=1e-9)
        assert verdicts(hc.mobility(there, x)) == wanted, cut


def positions(mech, q, other):
    """The positions of the joints of `other`'s tree, read in `mech`, where they may be cut."""
    names = {n.split("[")[0] for n in list(other.model.names)[1:]}
    found = {}
    for name in names:
        if name in other.constraint_names:
            continue  # divided: it is in both
        value = hc.joint_motion(mech, name, q).value
        found[name] = float(value[0]) if value.size == 1 else value
    return found


@pytest.mark.parametrize(
    "name", [n for n in LINKAGES if LINKAGES[n]().motors and not n.startswith("stewart")]
)
def test_motors_that_are_cut_change_no_verdict_on_motions(name):
    """A joint with a motor that is cut keeps its coordinates: a weld more, the same mechanism."""
    case = LINKAGES[name]()
    mech, q = assembled(case)
    report = hc.mobility(mech, q)
    for cut in spanning_cuts(case, 6):
        if not set(cut) & set(case.motors):
            continue
        other = case.mechanism(cut=cut, reference={})
        there = case.mechanism(cut=cut, reference=positions(mech, q, other))
        again = hc.mobility(there)
        assert (again.dof, again.idle, again.actuation) == (
            report.dof, report.idle, report.actuation,
        )  # fmt: skip


# --------------------------------------------------------------------------------- redundant rows


def motions_without(mech, q, rows=()):
    """The range of gamma: velocities that the rows allow, without some of them; scaled."""
    _, r = constraint_rows(mech, q, np.zeros(mech.nv))
    G = mech.row_scale[:, None] * r.jacobian * mech.column_scale
    keep = [i for i, n in enumerate(row_names(mech)) if n not in rows]
    if not keep:
        return np.eye(mech.nv)
    _, s, vt = np.linalg.svd(G[keep])
    return vt[np.count_nonzero(s > 1e-7) :].T


def check_redundant_rows(mech, q):
    report = hc.mobility(mech, q)
    everything = motions_without(mech, q)
    assert everything.shape[1] == report.dof
    without = motions_without(mech, q, report.redundant)
    assert without.shape == everything.shape
    if report.dof:
        assert subspace_angles(without, everything).max() < 1e-8
    for row in report.essential:
        assert motions_without(mech, q, [row]).shape[1] == report.dof + 1
    repeated = {row for g in report.groups for row in (*g.redundant, *g.among)}
    assert repeated | set(report.essential) == set(row_names(mech))
    assert not repeated & set(report.essential)
    for row in repeated:
        assert motions_without(mech, q, [row]).shape[1] == report.dof
    return report


@pytest.mark.parametrize("name", LINKAGES)
def test_redundant_rows_may_go_and_essential_ones_not(name):
    mech, q = assembled(LINKAGES[name]())
    for x in walk(mech, q, 3):
        check_redundant_rows(mech, x)


@pytest.mark.parametrize("name", [n for n in ZOO if n != "timed_arm"])
def test_redundant_rows_of_the_zoo(name):
    mech = ZOO[name]()
    report = check_redundant_rows(mech, hc.assemble(mech)[0])
    assert report.rows - report.generic_rank == len(report.redundant)


def test_groups_say_what_repeats_what():
    mech, q = assembled(LINKAGES["bennett"]())
    (group,) = hc.mobility(mech, q).groups
    assert group.kind == "combination"
    assert len(group.among) == 2
    mech, q = assembled(LINKAGES["four_bar"]())
    assert {g.kind for g in hc.mobility(mech, q).groups} == {"trivial"}
    report = hc.mobility(gears(hc.Coupling({"a": 2, "b": -4}, name="again")))
    (group,) = report.groups
    assert (group.kind, group.redundant, group.among) == (
        "duplicate",
        ("again.sum",),
        ("gear.sum",),
    )


def test_the_order_of_the_constraints_decides_which_row_is_redundant_and_nothing_else():
    mech = gears(hc.Coupling({"a": 2, "b": -4}, name="again"))
    turned = hc.Mechanism(mech.model, mech.constraints[::-1], ["a"])
    assert hc.mobility(turned).redundant == ["gear.sum"]


# -------------------------------------------------------------------------------------- robots


@pytest.mark.parametrize("robot", SHARED_ROBOT_NAMES)
def test_shared_robots(robot):
    mech = hc.load(shared_robot(robot))
    rank, dof = {
        "5bar_linkage": (3, 3), "5bar_linkage_iso6d": (6, 2), "cassie_like": (12, 7),
        "disney_like": (18, 9),
    }[robot]  # fmt: skip
    q, _ = hc.assemble(mech)
    for x in walk(mech, q, 3):
        report = check_redundant_rows(mech, x)
        assert (report.active, report.generic_rank, report.dof) == (rank, rank, dof)
    idle = {"5bar_linkage": 1, "5bar_linkage_iso6d": 0, "cassie_like": 2, "disney_like": 2}[robot]
    assert len(report.idle) == idle
    assert len(report.undriven) == dof - mech.nu - idle
    assert report.actuation == ("under" if report.undriven else "fully")  # idle ones need none


@pytest.mark.parametrize("robot", hc.robot_names())
def test_our_robots_are_fully_actuated(robot):
    report = hc.mobility(hc.load(hc.robot_file(robot)))
    assert report.actuation == "fully"
    assert report.ok
    assert report.singular == []


# ---------------------------------------------------------------------- what is wrong, by its name


def bars(name, lengths, ground):
    """Bars in a row between the origin and x = ground, all hinges parallel; the last is cut."""
    link = planar(name, 1.0)
    body, end = "universe", pin.SE3.Identity()
    for i, length in enumerate(lengths):
        add_bar(link, f"bar_{i}", length, 1.0)
        link.add_joint(f"hinge_{i}", "revolute", body, f"bar_{i}", end)
        body, end = f"bar_{i}", at(length)
    link.add_joint("last", "revolute", body, "universe", end, at(ground))
    return link


def gears(*more, offset=0.0):
    m = pin.Model()
    for name in "ab":
        j = m.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), name)
        m.appendBodyToJoint(j, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    gear = hc.Coupling({"a": 1, "b": -2}, offset=offset, name="gear")
    return hc.Mechanism(m, [gear, *more], ["a"], name="gears")


def slider_crank(motor):
    link = planar("slider_crank", 1.0)
    for name, length in (("crank", 0.2), ("rod", 0.5), ("block", 0.1)):
        add_bar(link, name, length, 1.0)
    along_x = at(R=pin.utils.rotate("y", np.pi / 2))
    link.add_joint("turn", "revolute", "universe", "crank")
    link.add_joint("pin", "revolute", "crank", "rod", at(0.2))
    link.add_joint("slide", "prismatic", "universe", "block", along_x, along_x)
    link.add_joint("wrist", "revolute", "rod", "block", at(0.5))
    return link.mechanism(["wrist"], [motor], {"slide": 0.7})


def upside_down():
    link = planar("upside_down", 1.0)
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        add_bar(link, name, length, 1.0)
    link.add_joint("motor", "revolute", "universe", "crank")
    link.add_joint("elbow", "revolute", "crank", "coupler", at(0.2))
    link.add_joint("pivot", "revolute", "universe", "rocker", at(0.5))
    turned = at(0.4, R=pin.utils.rotate("x", np.pi))
    link.add_joint("pin", "revolute", "coupler", "rocker", at(0.5), turned)
    return link.mechanism(["pin"], ["motor"], {"motor": 1.0, "elbow": -0.5, "pivot": 1.4})


def folded_parallelogram():
    link = bars("folded", [0.3, 0.7, 0.3], 0.7)
    return link.mechanism(["last"], ["hinge_0"], {"hinge_2": np.pi})


def stretched():
    return bars("stretched", [0.3, 0.4], 0.7).mechanism(["last"])


def too_long():
    guess = {"hinge_0": 0.9, "hinge_1": -1.5}
    return bars("too_long", [0.3, 0.4], 0.9).mechanism(["last"], reference=guess)


WORDS = {
    "rigid: a locked structure": lambda: LINKAGES["triangle"]().mechanism(),
    "Contradiction": too_long,
    "Actuation singularity": lambda: slider_crank("slide"),
    "Bifurcation": folded_parallelogram,
    "shaky": stretched,
    "opposite directions": upside_down,
}
"""What is said of a mechanism, and of no other of these."""


@pytest.mark.parametrize("words", WORDS)
def test_each_trouble_is_told_by_its_name_and_no_other(words):
    text = said(hc.mobility(WORDS[words]()))
    assert words in text
    for other in set(WORDS) - {words}:
        assert other not in text


def test_a_locked_triangle():
    report = hc.mobility(LINKAGES["triangle"]().mechanism())
    assert (report.dof, report.finite_dof, report.singular) == (0, 0, [])
    assert set(report.locked_joints) == {"left", "top", "right"}
    assert report.ok


def test_a_bar_too_long():
    report = hc.mobility(too_long())
    assert not report.ok
    assert not report.closed
    assert report.contradictions == ["last.x"]
    assert report.error == pytest.approx(0.2 / np.hypot(0.9, 0.0), rel=0.3)


def test_a_dead_centre_is_singular_for_one_motor_and_not_for_the_other():
    report = hc.mobility(slider_crank("slide"))
    assert report.singular == ["actuation singularity"]
    assert (report.actuation_rank, report.generic_actuation_rank) == (0, 1)
    assert (report.active, report.generic_rank) == (2, 2)
    assert report.actuation_margin < 1e-12
    assert report.actuated_condition == np.inf
    assert report.actuation == "fully"
    report = hc.mobility(slider_crank("turn"))
    assert report.singular == []
    assert report.actuation_margin > 0.1


def test_a_folded_parallelogram_is_a_bifurcation():
    report = hc.mobility(folded_parallelogram())
    assert report.singular[0] == "bifurcation"
    assert (report.active, report.generic_rank, report.dof, report.finite_dof) == (1, 2, 2, 1)
    assert len(report.redundant) == 3


def test_a_stretched_bar_is_shaky_and_its_rows_are_needed():
    mech = stretched()
    report = hc.mobility(mech)
    assert report.singular == ["shaky"]
    assert (report.dof, report.finite_dof) == (1, 0)
    assert report.latent == ["last.x"]
    assert len(report.redundant) == 3
    assert set(report.locked_joints) == {"hinge_0", "hinge_1", "last"}


def test_a_stretched_bar_on_a_moving_arm():
    link = planar("carried", 1.0)
    for name in ("arm", "first", "second"):
        add_bar(link, name, 0.2, 1.0)
    link.add_joint("turn", "revolute", "universe", "arm")
    link.add_joint("p", "revolute", "arm", "first", at(0.1))
    link.add_joint("r", "revolute", "first", "second", at(0.2))
    link.add_joint("s", "revolute", "second", "arm", at(0.2), at(0.5))
    report = hc.mobility(link.mechanism(["s"], ["turn"], {"turn": 0.3}))
    assert report.singular == ["shaky"]
    assert (report.dof, report.finite_dof, report.latent) == (2, 1, ["s.x"])
    assert report.actuation == "fully"
    assert set(report.locked_joints) == {"p", "r", "s"}


def test_frames_that_face_opposite_ways():
    report = hc.mobility(upside_down())
    assert not report.ok
    assert report.closed
    assert report.opposite == ["pin"]
    assert report.contradictions == []
    assert report.dof == 1


def test_couplings_that_contradict_each_other_are_found_by_rank():
    third = hc.Coupling({"a": 1, "b": 1}, name="third")
    report = hc.mobility(gears(hc.Coupling({"a": 2, "b": -4}, 0.3, name="again"), third))
    assert report.contradictions == ["gear.sum", "again.sum"]
    assert not report.ok
    assert "Contradiction" in said(report)


def test_a_guess_that_leads_nowhere_is_no_contradiction():
    """Open, and not at rest: nothing is claimed that was not found."""
    mech = gears(hc.Custom(lambda q: [np.exp(-(q[0] ** 2)) + 1e-3], rows=1, name="never"))
    report = hc.mobility(mech)
    assert not report.closed
    text = str(report)
    assert ("Not closed" in text) == (report.contradictions == [])


# ------------------------------------------------------------------------------ nearly redundant


def tilted_four_bar(tilt):
    """A four-bar whose ball joint would close it, had the rocker's axis not a wrong decimal."""
    link = planar("tilted", 1.0)
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        add_bar(link, name, length, 1.0)
    link.add_joint("motor", "revolute", "universe", "crank")
    link.add_joint("elbow", "revolute", "crank", "coupler", at(0.2))
    link.add_joint("pivot", "revolute", "universe", "rocker", at(0.5))
    link.add_joint("pin", "spherical", "coupler", "rocker", at(0.5), at(0.4))
    mech = link.mechanism(["pin"], ["motor"], {"motor": 1.0, "elbow": -0.5, "pivot": 1.4})
    q, _ = hc.assemble(mech)
    model = mech.model.copy()  # tilt the axis about the closed point: it still closes there
    j = model.getJointId("pivot")
    placed = model.jointPlacements[j]
    rod = placed.rotation @ pin.utils.rotate("z", q[model.idx_qs[j]])[:, 0]
    turn = pin.SE3(pin.exp3(tilt * rod), np.zeros(3))
    model.jointPlacements[j] = pin.SE3(turn.rotation @ placed.rotation, placed.translation)
    return hc.Mechanism(model, mech.constraints, ["motor"], reference=q)


@pytest.mark.parametrize("tilt", [1e-3, 1e-4])
def test_axes_that_are_almost_parallel_are_told(tilt):
    report = hc.mobility(tilted_four_bar(0.0))
    assert (report.finite_dof, report.redundant, report.weak) == (1, ["pin.z"], [])
    report = hc.mobility(tilted_four_bar(tilt))
    assert (report.dof, report.redundant) == (0, [])
    assert report.weak == ["pin.z"]
    assert 0.01 * tilt < report.margin < 2 * tilt
    assert "Nearly redundant: 'pin.z'" in said(report)


@pytest.mark.parametrize("off", [1e-2, 1e-4])
def test_a_configuration_close_to_a_bifurcation_is_told(off):
    mech = folded_parallelogram()
    q, _ = hc.assemble(mech, [off, -off, np.pi], locked=["hinge_0"])
    report = hc.mobility(mech, q)
    assert report.singular == []
    assert report.weak == []
    assert report.margin < 2 * off
    assert report.usual_margin > 0.01
    assert "close to a singular configuration" in said(report)


# -------------------------------------------------------------------------------------- motors


def test_motors_too_many_and_too_few():
    case = LINKAGES["stewart_6ups"]()
    mech, q = assembled(case, actuated=("piston_1",))
    report = hc.mobility(mech, q)
    assert (report.actuation, report.actuation_rank) == ("under", 1)
    assert len(report.undriven) == 5
    mech = ZOO["three_motors"]()
    report = hc.mobility(mech)
    assert report.actuation == "redundantly"
    assert "can only work against the others" in said(report)
    rod = ZOO["idle_rod"]()
    driven_twice = hc.Mechanism(
        rod.model, rod.constraints, ["crank", "rocker"], reference=rod.reference
    )
    report = hc.mobility(driven_twice)
    assert (report.actuation, report.idle, report.undriven) == ("redundantly", ["rod"], [])
    leg = ZOO["floating_leg"]()
    motors = ["hip", "motor_crank", "push_rod"]
    report = hc.mobility(
        hc.Mechanism(leg.model, leg.constraints, motors, reference=leg.reference)
    )  # fmt: skip
    assert report.actuation == "both"
    assert "both too many and too few" in said(report)


def test_a_five_bar_with_one_motor_is_under_actuated_and_not_idle():
    base = ZOO["five_bar"]()
    mech = hc.Mechanism(base.model, base.constraints, ["left"], reference=base.reference)
    report = hc.mobility(mech)
    assert (report.actuation, report.idle) == ("under", [])
    (motion,) = report.undriven
    rates = dict(motion.rates)
    assert "left" not in rates
    assert set(rates) == {"left_rod", "right", "right_rod"}
    # the rates are those of a motion that the constraints allow
    q, _ = hc.assemble(mech)
    v = np.array([rates.get(n, 0.0) for n in mech.coordinate_names])
    _, rows = constraint_rows(mech, hc.mobility(mech, q).q, v)
    assert np.abs(rows.jacobian @ v).max() < 0.05  # told at a configuration nearby


def test_a_free_body_is_not_idle():
    report = hc.mobility(ZOO["floating_leg"]())
    assert report.idle == []
    assert len(report.undriven) == 9


def test_an_open_tree():
    model = ZOO["four_bar"]().model
    report = hc.mobility(hc.Mechanism(model, actuated=["crank", "coupler", "rocker"]))
    assert (report.open_dof, report.rows, report.dof, report.actuation) == (3, 0, 3, "fully")
    assert "open tree" in said(report)


def test_what_is_said_of_motions_is_true_at_the_configuration_asked_about():
    """Gravity on a pendulum that hangs straight down, beside an arm with a motor."""
    m = pin.Model()
    body = pin.Inertia(1.0, np.array([0.0, 0.0, -0.3]), 0.01 * np.eye(3))
    for name, x in (("hang", 0.0), ("arm", 1.0)):
        j = m.addJoint(0, pin.JointModelRY(), at(x), name)
        m.appendBodyToJoint(j, body, pin.SE3.Identity())
    mech = hc.Mechanism(m, actuated=["arm"])
    for angle, loaded in ((0.0, False), (0.3, True)):
        q = np.array([angle, 0.5])
        (motion,) = hc.mobility(mech, q).undriven
        assert motion.rates == (("hang", 1.0),)
        assert motion.loaded == loaded
        held = hc.inverse_dynamics(mech, q, np.zeros(2), np.zeros(2), coordinates="all")
        assert held.certificate.ok == (not loaded)


def test_rates_of_motions_are_allowed_by_the_constraints():
    mech = hc.load(shared_robot("disney_like"))
    report = hc.mobility(mech)
    _, rows = constraint_rows(mech, report.q, np.zeros(mech.nv))
    for motion in (*report.undriven, *report.idle_motions):
        v = np.array([dict(motion.rates).get(n, 0.0) for n in mech.coordinate_names])
        assert np.abs(rows.jacobian @ v).max() < 1e-6


def test_rods_spin_alone_on_a_shaky_mechanism_too():
    """Legs with balls at both ends between parallel polygons: the top moves to first order."""
    link = hc.Linkage("polygons")
    link.add_body("top", 2.0, (0, 0, 1), 0.1 * np.eye(3))
    for i in range(6):
        c, s = np.cos(i * np.pi / 3), np.sin(i * np.pi / 3)
        foot, head = np.array([c, s, 0.0]), np.array([0.5 * c, 0.5 * s, 0.8])
        link.add_body(f"rod{i}", 0.5, (foot + head) / 2, 0.01 * np.eye(3))
        link.add_joint(f"foot{i}", "spherical", "universe", f"rod{i}", at(*foot), at(*foot))
        link.add_joint(f"head{i}", "spherical", f"rod{i}", "top", at(*head), at(*head))
    report = hc.mobility(link.mechanism())
    assert "shaky" in report.singular
    assert sorted(report.idle) == [f"rod{i}" for i in range(6)]


def test_a_closed_configuration_far_from_the_guess_is_told():
    case = LINKAGES["four_bar"]()
    near = hc.mobility(case.mechanism(), [1.0, -0.5, 1.4])
    assert near.far == []
    report = hc.mobility(case.mechanism(), [1.0, 2.5, 1.4])
    assert "elbow" in report.far
    assert "far from the configuration given" in said(report)


# ------------------------------------------------------------------------- independent coordinates


def test_independent_coordinates_and_how_good_they_are():
    mech, q = assembled(LINKAGES["four_bar"]())
    report = hc.mobility(mech, q)
    part = hc.partition(mech, q)
    assert report.independent == [mech.coordinate_names[i] for i in part.independent]
    assert report.actuated_condition == pytest.approx(report.independent_condition)
    assert report.best_condition <= report.independent_condition
    assert hc.partition(mech, q, independent=report.best_independent).condition < 1e3


def test_motors_that_barely_tell_where_the_others_are_have_a_large_condition_number():
    base = slider_crank("slide")
    near, nearer = (
        hc.mobility(base, hc.assemble(base, [a, -0.3 * a, 0.7], locked=["turn"])[0])
        for a in (0.3, 0.03)
    )
    assert 5 < near.actuated_condition < 0.2 * nearer.actuated_condition < np.inf
    assert near.best_condition < 3
    assert near.best_independent != ["slide"]
    assert near.actuation_margin > 5 * nearer.actuation_margin


# ------------------------------------------------------ cases that a simpler examination gets wrong


def as_drawn(name, joints):
    """A linkage from joints (name, type, parent, child, point, axis) in one posture, q = 0."""
    link = hc.Linkage(name)
    points: dict = {}
    for _, _, parent, child, point, *_ in joints:
        for body in (parent, child):
            points.setdefault(body, []).append(np.resize([*point, 0.0][:3], 3))
    for body, near in points.items():
        if body != "universe":
            link.add_body(body, 1.0, np.mean(near, axis=0), np.diag([0.010, 0.012, 0.013]))
    for joint, kind, parent, child, point, *axis in joints:
        direction = np.array(axis[0] if axis else (0.0, 0.0, 1.0), float)
        R = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), direction).matrix()
        place = at(*point, R=R)
        link.add_joint(joint, kind, parent, child, place, place)
    return link


def test_rows_that_turn_with_a_body_are_judged_where_one_asks():
    """At q the slide of k3 is square to a row that says much a little farther on."""
    joints = [
        ("k1", "revolute", "universe", "b1", (0, 0.75, 0)),
        ("k0", "revolute", "universe", "b0", (0, 0.75, 0)),
        ("k3", "prismatic", "b0", "b1", (0.5, 0, 0), (0, 1, 0)),
    ]
    mech = as_drawn("slide", joints).mechanism(cut=["k1"])
    report = hc.mobility(mech, mech.reference)
    everything = motions_without(mech, report.q)
    without = motions_without(mech, report.q, report.redundant)
    assert without.shape == everything.shape == (2, 1)
    assert subspace_angles(without, everything).max() < 1e-8
    assert report.singular == []
    assert report.best_condition < 10


def test_a_bifurcation_where_every_step_leads_back():
    """The rows are quadratic there: Newton's method halves every step back to q."""
    case = LINKAGES["third_bar"]()
    flat = {"foot_0": 0, "foot_1": 0, "foot_2": 0, "head_0": 0}
    report = hc.mobility(case.mechanism(reference=flat))
    assert report.singular == ["bifurcation"]
    assert (report.generic_rank, report.finite_dof) == (3, 1)
    assert report.latent == []
    model = ZOO["timed_arm"]().model
    crossing = hc.Custom(lambda q: [q[0] * q[1], q[1] * q[2], q[0] * q[2]], rows=3)
    report = hc.mobility(hc.Mechanism(model, [crossing]), np.zeros(3))
    assert (report.singular, report.finite_dof) == (["bifurcation"], 1)
    with pytest.raises(hc.SingularityError, match="nearby"):
        hc.partition(hc.Mechanism(model, [crossing]), np.zeros(3))


@pytest.mark.parametrize("place", np.linspace(0.4, 0.9, 6).round(3))
def test_a_stretched_bar_is_no_bifurcation_whatever_the_rounding(place):
    joints = [
        ("k0", "revolute", "universe", "A", (place, 0)),
        ("k2", "revolute", "universe", "B", (place + 0.4, 0)),
        ("k4", "revolute", "B", "A", (place + 0.2, 0)),
        ("s", "prismatic", "universe", "S", (1, 0, 0), (1, 0, 0)),
    ]
    assert hc.mobility(as_drawn("stretched", joints).mechanism()).singular == ["shaky"]


@pytest.mark.parametrize("angle", [0.0, 1e-6, np.pi])
def test_rows_of_a_bennett_loop_near_its_symmetric_posture(angle):
    case = LINKAGES["bennett"]()
    mech = case.mechanism()
    start, _ = hc.assemble(mech)
    guess = start.copy()
    for part in np.linspace(0.0, 1.0, 30)[1:]:
        guess[0] = (1.0 - part) * start[0] + part * angle
        guess, _ = hc.assemble(mech, guess, locked=["hinge_1"])
    report = hc.mobility(mech, guess)
    assert (report.singular, report.finite_dof) == ([], 1)
    assert (len(report.redundant), report.latent) == (3, [])


def test_the_verdict_does_not_depend_on_how_well_q_was_closed():
    def parallelogram(a):
        x, y = 0.3 * np.cos(a), 0.3 * np.sin(a)
        return as_drawn("parallelogram", [
            ("j1", "revolute", "universe", "l1", (0, 0)),
            ("j2", "revolute", "l1", "l2", (x, y)),
            ("j3", "revolute", "l2", "l3", (0.7 + x, y)),
            ("j4", "revolute", "l3", "universe", (0.7, 0)),
        ])  # fmt: skip

    mech = parallelogram(1e-5).mechanism()
    for off in (0.0, 1e-13, 9e-13):
        report = hc.mobility(mech, [0.0, off, 0.0])
        assert report.singular == []
        assert report.active == 2


def test_frames_the_wrong_way_round_are_seen_at_a_closed_configuration_too():
    mech = upside_down()
    q = hc.mobility(mech).q
    report = hc.mobility(mech, q)
    assert report.opposite == ["pin"]
    assert not report.ok


def test_parts_of_joints_that_are_locked_whatever_is_cut():
    """A four-bar with one cylindrical joint: it cannot slide."""
    link = planar("cylindrical", 1.0)
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        add_bar(link, name, length, 1.0)
    link.add_joint("j1", "revolute", "universe", "crank")
    link.add_joint("j2", "revolute", "crank", "coupler", at(0.2))
    link.add_joint("j3", "cylindrical", "coupler", "rocker", at(0.5), at(0.4))
    link.add_joint("j4", "revolute", "universe", "rocker", at(0.5))
    guess = {"j1": 1.0, "j2": -0.5, "j4": 1.4}
    first = link.mechanism(["j3"], reference=guess)
    q, _ = hc.assemble(first)
    assert hc.mobility(first, q).locked_joints == ["j3[0]"]
    for cut in ("j1", "j2", "j4"):
        other = link.mechanism([cut])
        there = link.mechanism([cut], reference=positions(first, q, other))
        assert hc.mobility(there).locked_joints == ["j3[0]"]


@pytest.mark.parametrize("cut", ["j1", "j2", "j4"])
def test_an_idle_slide_beside_joints_in_series(cut):
    link = as_drawn("series", [
        ("j1", "revolute", "universe", "l1", (0, 0)),
        ("j2", "planar", "l1", "l2", (0.3, 0.1)),
        ("j4", "revolute", "l2", "universe", (0.7, 0)),
    ])  # fmt: skip
    report = hc.mobility(link.mechanism([cut], ["j1"]))
    assert (report.dof, report.idle, len(report.undriven)) == (2, ["l2"], 0)


def test_the_sentence_on_independent_coordinates_compares_what_it_names():
    mech = slider_crank("slide")
    q, _ = hc.assemble(mech, [1e-4, -3e-5, 0.7], locked=["turn"])
    report = hc.mobility(mech, q)
    assert report.actuated_condition > 1e3
    assert "a better choice is" in said(report)


def test_gravity_on_an_idle_rod_is_told():
    balanced = hc.mobility(ZOO["idle_rod"]())
    assert balanced.idle == ["rod"]
    assert balanced.idle_motions[0].loaded  # its centre of mass is off the line of its ends
    assert "Gravity works on 'rod'" in said(balanced)
    mech = ZOO["idle_rod"]()
    held = hc.inverse_dynamics(
        mech, balanced.q, np.zeros(5), np.zeros(5), coordinates="all"
    )  # fmt: skip
    assert not held.certificate.ok
    straight = mech.model.copy()
    rod = straight.getJointId("rod")
    straight.inertias[rod] = pin.Inertia(1.0, np.array([0.35, 0, 0]), np.diag([0.01, 0.02, 0.02]))
    report = hc.mobility(mech.with_model(straight))
    assert report.idle == ["rod"]
    assert not report.idle_motions[0].loaded
    assert "Gravity" not in said(report)


def test_a_motor_in_a_structure_that_cannot_move():
    report = hc.mobility(LINKAGES["triangle"]().mechanism(actuated=["left"]))
    assert "nothing that they could move" in said(report)


def test_a_mechanism_far_from_the_origin_is_the_same_mechanism():
    case = LINKAGES["four_bar"]()
    mech = case.mechanism()
    q, _ = hc.assemble(mech)
    wanted = hc.mobility(mech, q)
    model = mech.model.copy()
    far = np.array([2e3, -5e3, 1e3])
    for j in range(1, model.njoints):
        if model.parents[j] == 0:
            place = model.jointPlacements[j]
            model.jointPlacements[j] = pin.SE3(place.rotation, place.translation + far)
    moved = hc.mobility(hc.Mechanism(model, mech.constraints, ["motor"], reference=q))
    assert verdicts(moved) == verdicts(wanted)


# ----------------------------------------------------------------------------------- the report


@pytest.mark.parametrize("name", LINKAGES)
def test_the_report_for_programs_is_json_and_says_the_same(name):
    mech, q = assembled(LINKAGES[name]())
    report = hc.mobility(mech, q)
    found = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert found["dof"] == report.dof
    assert found["redundant"] == report.redundant
    assert found["ok"] is True
    for count in ("open_dof", "rows", "active", "dof", "generic_rank"):
        assert type(getattr(report, count)) is int
    for names in ("redundant", "locked_joints", "idle", "independent"):
        value = getattr(report, names)
        assert type(value) is list
        assert all(type(n) is str for n in value)


def test_the_report_speaks_in_sentences():
    report = hc.mobility(hc.load(hc.robot_file("five_bar")))
    text = str(report)
    assert text.startswith("five_bar\n")
    assert max(len(line) for line in text.splitlines()) <= 88
    text = said(report)
    assert "2 independent motions" in text
    assert "4 - 5 = -1, not 2" in text
    assert "a planar loop" in text


def test_nothing_is_changed_and_bad_input_is_refused():
    mech = ZOO["four_bar"]()
    q = np.array([1.0, -0.5, 1.4])
    hc.mobility(mech, q)
    np.testing.assert_array_equal(q, [1.0, -0.5, 1.4])
    for wrong in ([1.0, 2.0], [np.nan, 0.0, 0.0], "abc", [[1.0, 2.0, 3.0]]):
        with pytest.raises(hc.InputError, match="q"):
            hc.mobility(mech, wrong)
    with pytest.raises(hc.InputError, match="Mechanism"):
        hc.mobility(mech.model, q)
    with pytest.raises(hc.InputError, match="t "):
        hc.mobility(mech, q, t=np.inf)


def test_time_is_taken_into_account():
    mech = ZOO["timed_arm"]()
    report = hc.mobility(mech, t=0.4)
    _, rows = constraint_rows(mech, report.q, np.zeros(3), 0.4)
    assert np.abs(rows.error).max() < 1e-12
    assert (report.dof, report.finite_dof) == (2, 2)


# ----------------------------------------------------------------- what must only be looked at


@pytest.mark.parametrize(("scale", "asks"), [(1.0, False), (1000.0, True)])
def test_size_and_mass_are_told(scale, asks):
    """A drawing in millimetres closes and moves like any other: only its size tells."""
    case = LINKAGES["four_bar"](scale=scale)
    report = hc.mobility(case.mechanism())
    assert report.ok
    assert report.mass == pytest.approx(2.0 * (0.2 + 0.5 + 0.4))
    (size,) = report.loop_sizes
    assert size == pytest.approx(scale * hc.mobility(LINKAGES["four_bar"]().mechanism()).size, 0.3)
    assert f"its loops measure {size:.3g} m, and all that moves weighs 2.2 kg." in said(report)
    assert ("is it drawn in millimetres?" in said(report)) == asks
    assert report.to_dict()["loop_sizes"] == [size]


def test_size_of_what_has_no_loop_or_does_not_close():
    assert "Size: it measures" in said(hc.mobility(hc.load(hc.robot_file("geared_arm"))))
    case = LINKAGES["four_bar"]()
    longer = case.mechanism().without("pin") if "pin" in case.cut else case.mechanism()
    pair = hc.Mechanism(
        longer.model,
        [hc.Closure((longer.model.names[-1], at(9.0)), ("universe", at(0.0, 20.0)), axes="x y")],
    )
    report = hc.mobility(pair)
    assert not report.closed
    assert "Size: its loops measure 2" in said(report)
    assert "in millimetres?" in said(report)


def five_bar_closed_by(R_left, R_right, **options):
    """The five-bar of the library, whose hinges are along y, with other frames at its tip."""
    mech = hc.load(hc.robot_file("five_bar"))
    ends = [("elbow_left", at(0.35, R=R_left)), ("elbow_right", at(0.35, R=R_right))]
    pin_ = hc.Closure(*ends, name="pin", **(options or {"joint": "revolute"}))
    return dataclasses.replace(mech, constraints=[pin_])


UP = np.eye(3)  # z is up, y along the hinges
ALONG = pin.utils.rotate("x", np.pi / 2)  # z is along the hinges
LEANING = pin.utils.rotate("x", 0.4)


@pytest.mark.parametrize("q", [None, [1.0, 0.3, 2.0, -0.5]])
@pytest.mark.parametrize(
    ("held", "options"),
    [
        ("x y z", {"joint": "revolute"}),
        ("x y z", {"axes": "x y z rx ry"}),
        ("x z", {"axes": "x z rx ry"}),
    ],
)
def test_a_closure_across_the_hinges_of_its_loop(held, options, q):
    report = hc.mobility(five_bar_closed_by(UP, UP, **options), q)
    (found,) = report.crossed
    assert (found.closure, found.hinges, found.turns) == ("pin", "y", "z")
    assert found.axes == f"{held} rx rz"
    assert (
        "of the loop of 'pin' are parallel to y of its frames, the closure turns about z"
        in said(report)
    )
    assert f'or give axes "{found.axes}"' in said(report)
    assert report.to_dict()["crossed"][0]["hinges"] == "y"


def test_the_axes_that_the_doctor_gives_are_the_remedy():
    found = hc.mobility(five_bar_closed_by(UP, UP)).crossed[0]
    mended = hc.mobility(five_bar_closed_by(UP, UP, axes=found.axes))
    turned = hc.mobility(five_bar_closed_by(ALONG, ALONG))
    assert mended.crossed == turned.crossed == []
    assert (mended.dof, mended.active) == (turned.dof, turned.active) == (2, 2)


@pytest.mark.parametrize("joint", ["cylindrical", "planar"])
def test_a_slide_in_the_plane_of_its_loop_is_right(joint):
    """A piston does not turn; were it let turn about the hinges, the robot had a motion more."""
    slides = hc.mobility(five_bar_closed_by(UP, UP, joint=joint))
    assert slides.crossed == []
    assert "Crossed axis" not in said(slides)
    held = {"cylindrical": "x y", "planar": "z"}[joint]
    assert hc.mobility(five_bar_closed_by(UP, UP, axes=f"{held} rx rz")).dof == slides.dof + 1


@pytest.mark.parametrize("options", [{"joint": "revolute"}, {"axes": "x z rx ry"}])
@pytest.mark.parametrize("right_angle", [1.5708, 1.570796])
def test_hinges_of_files_with_rounded_right_angles_are_parallel(right_angle, options):
    mech = five_bar_closed_by(UP, UP, **options)
    model = mech.model.copy()
    for j in range(1, model.njoints):  # there and back, as rpy in a file has it
        off = right_angle - np.pi / 2
        X = model.jointPlacements[j]
        turn = pin.utils.rotate("x", off if j % 2 else -2.0 * off)
        model.jointPlacements[j] = pin.SE3(X.rotation @ turn, X.translation)
    (found,) = hc.mobility(hc.Mechanism(model, mech.constraints, mech.actuated)).crossed
    assert found.hinges == "y"


@pytest.mark.parametrize(
    ("frames", "hinges"),
    [((UP, LEANING), "y and (0, 0.92, -0.39)"), ((LEANING, LEANING), "(0, 0.92, -0.39)")],
)
def test_frames_that_lean_are_told_without_a_remedy_by_axes(frames, hinges):
    report = hc.mobility(five_bar_closed_by(*frames))
    assert (report.crossed[0].hinges, report.crossed[0].axes) == (hinges, "")
    assert "or give axes" not in said(report)


def test_no_closure_that_is_right_is_called_crossed():
    for name in hc.robot_names():
        assert hc.mobility(hc.load(hc.robot_file(name))).crossed == []
    for make in LINKAGES.values():
        assert hc.mobility(make().mechanism()).crossed == []
    for joint in ("spherical", "universal", "weld", "prismatic"):
        assert hc.mobility(five_bar_closed_by(UP, UP, joint=joint)).crossed == []
    rounded = pin.utils.rotate("x", np.pi / 2 - 1e-3)  # that is told as nearly redundant rows
    assert hc.mobility(five_bar_closed_by(rounded, rounded)).crossed == []
