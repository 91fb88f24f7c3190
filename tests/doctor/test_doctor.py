"""The doctor: numbers against what is known of mechanisms, and the report."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pinocchio as pin
import pytest
from examined import assembled, check_redundant_rows, positions, said, too_long, verdicts, walk
from linkages import FEW, LINKAGES
from shared_robots import SHARED_ROBOT_NAMES, shared_robot
from support import few
from zoo import ZOO

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows

IDLE = {"spherical_loop": ["rod"], "stewart_6sps": [f"cylinder_{i} + rod_{i}" for i in range(1, 7)]}
"""Bodies that spin without effect; none in the other linkages."""

LOCKED = {
    "triangle": {"left", "top", "right"}, "double_link": {"fold"}, "spherical_loop": {"pin"}
}  # fmt: skip
"""Joints that cannot move; of the triangle that is all of them."""


# ------------------------------------------------------------------------- the table of mechanisms


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        pytest.param(n, s, id=f"{n}-{unit}", marks=() if n in some else pytest.mark.slow)
        for s, unit, some in ((1.0, "m", FEW), (1000.0, "mm", ("four_bar", "bennett")))
        for n in LINKAGES
    ],
)
@pytest.mark.parametrize("count", few([5, 20], [5]))
def test_the_table_at_many_configurations(name, scale, count):
    case = LINKAGES[name](scale)
    mech, q = assembled(case)
    expected = case.expected
    places = walk(mech, q, count)
    assert len(places) == count or expected.closed_dof == 0 or name == "spherical_loop"
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


@pytest.mark.parametrize("name", few(LINKAGES, FEW))
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


@pytest.mark.parametrize(
    "name",
    few([n for n in LINKAGES if LINKAGES[n]().motors and not n.startswith("stewart")], FEW),
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


# ----------------------------------------------------------------------------------- the report


@pytest.mark.parametrize("name", few(LINKAGES, FEW))
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


def test_what_programs_get_is_all_that_the_report_has_and_empty_where_it_does_not_close():
    public = {n for n, x in vars(hc.results.MobilityReport).items() if isinstance(x, property)}
    closes = hc.mobility(hc.load(hc.robot_file("four_bar"))).to_dict()
    assert closes.keys() == public | {
        "name", "motors", "crossed", "rounding", "forces", "sensors", "beyond_limits",
    }  # fmt: skip
    assert list(closes)[:3] + list(closes)[-2:] == ["name", "q", "closed", "message", "ok"]
    broken = hc.mobility(too_long()).to_dict()
    assert list(broken) == list(closes)
    for empty in ("redundant", "locked_joints", "idle", "undriven", "independent", "singular"):
        assert broken[empty] == []
    assert (broken["actuation"], broken["margin"]) == ("unknown", None)


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
