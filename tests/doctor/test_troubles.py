"""What is wrong is told by its name, and cases that a simpler examination gets wrong."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from examined import (
    at_the_dead_centre,
    bars,
    folded_parallelogram,
    gears,
    motions_without,
    positions,
    said,
    too_long,
    verdicts,
)
from linkages import LINKAGES, add_bar, planar
from scipy.linalg import subspace_angles
from support import few
from zoo import ZOO, at

import holoctl as hc


def upside_down(turn=np.pi):
    link = planar("upside_down", 1.0)
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        add_bar(link, name, length, 1.0)
    link.add_joint("motor", "revolute", "universe", "crank")
    link.add_joint("elbow", "revolute", "crank", "coupler", at(0.2))
    link.add_joint("pivot", "revolute", "universe", "rocker", at(0.5))
    turned = at(0.4, R=pin.utils.rotate("x", turn))
    link.add_joint("pin", "revolute", "coupler", "rocker", at(0.5), turned)
    return link.mechanism(["pin"], ["motor"], {"motor": 1.0, "elbow": -0.5, "pivot": 1.4})


def stretched():
    return bars("stretched", [0.3, 0.4], 0.7).mechanism(["last"])


WORDS = {
    "rigid: a locked structure": lambda: LINKAGES["triangle"]().mechanism(),
    "Contradiction": too_long,
    "Actuation singularity": lambda: at_the_dead_centre("slider"),
    "Bifurcation": folded_parallelogram,
    "Shaky": stretched,
    "opposite directions": upside_down,
}
"""What is said of a mechanism, and of no other of these."""


@pytest.mark.parametrize("words", WORDS)
def test_each_trouble_is_told_by_its_name_and_no_other(words):
    text = said(hc.mobility(WORDS[words]()))
    assert words in text
    for other in set(WORDS) - {words}:
        assert other not in text


@pytest.mark.parametrize(("turn", "named"), [(3.1416, ["pin"]), (3.1414, ["pin"]), (1e-5, [])])
def test_opposite_axes_of_rounded_frames_are_named(turn, named):
    report = hc.mobility(upside_down(turn))
    assert (report.ok, report.closed) == (False, False)
    assert report.contradictions == ["pin.ry", "pin.rx"]
    assert report.opposite == named
    assert ("Opposite axes: at this configuration the axes of 'pin'" in said(report)) == bool(named)


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
    report = hc.mobility(at_the_dead_centre("slider"))
    assert report.singular == ["actuation singularity"]
    assert (report.actuation_rank, report.generic_actuation_rank) == (0, 1)
    assert (report.active, report.generic_rank) == (2, 2)
    assert report.actuation_margin < 1e-12
    assert report.actuated_condition == np.inf
    assert report.actuation == "fully"
    report = hc.mobility(at_the_dead_centre("crank"))
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
    # without this row the other bars could fold into a crossed parallelogram, and it keeps them
    assert report.latent == ["head_2.x"]
    assert len(report.redundant) == 6
    model = ZOO["timed_arm"]().model
    crossing = hc.Custom(lambda q: [q[0] * q[1], q[1] * q[2], q[0] * q[2]], rows=3)
    report = hc.mobility(hc.Mechanism(model, [crossing]), np.zeros(3))
    assert (report.singular, report.finite_dof) == (["bifurcation"], 1)
    with pytest.raises(hc.SingularityError, match="nearby"):
        hc.partition(hc.Mechanism(model, [crossing]), np.zeros(3))


@pytest.mark.parametrize("place", few(np.linspace(0.4, 0.9, 6).round(3), [0.4, 0.7]))
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
def test_a_link_on_a_hinge_and_a_slide_in_its_plane_is_a_pendulum(cut):
    """The slide holds nothing that the hinges do not: without it, it is a pendulum as well."""
    link = as_drawn("series", [
        ("j1", "revolute", "universe", "l1", (0, 0)),
        ("j2", "planar", "l1", "l2", (0.3, 0.1)),
        ("j4", "revolute", "l2", "universe", (0.7, 0)),
    ])  # fmt: skip
    report = hc.mobility(link.mechanism([cut], ["j1"]))
    assert (report.dof, report.idle, len(report.undriven)) == (2, [], 1)
    assert report.actuation == "under"


def test_the_sentence_on_independent_coordinates_compares_what_it_names():
    mech = at_the_dead_centre("slider")
    q, _ = hc.assemble(mech, [1e-4, -3e-5, 0.7], locked=["crank"])
    report = hc.mobility(mech, q)
    assert report.actuated_condition > 1e3
    assert "a better choice is" in said(report)


def test_gravity_on_an_idle_rod_is_told():
    balanced = hc.mobility(ZOO["idle_rod"]())
    assert balanced.idle == ["rod"]
    assert balanced.idle_motions[0].loaded  # its centre of mass is off the line of its ends
    assert "Gravity acts on the motion of 'rod'" in said(balanced)
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
    assert "no motion that they could drive" in said(report)


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
