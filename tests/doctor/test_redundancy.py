"""Rows that say nothing new: they may go, and the others may not."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from examined import assembled, check_redundant_rows, folded_parallelogram, gears, said, walk
from linkages import FEW, LINKAGES, add_bar, planar
from support import few
from zoo import ZOO, at

import holoctl as hc


@pytest.mark.parametrize("name", few(LINKAGES, FEW))
def test_redundant_rows_may_go_and_essential_ones_not(name):
    mech, q = assembled(LINKAGES[name]())
    for x in walk(mech, q, 3):
        check_redundant_rows(mech, x)


@pytest.mark.parametrize("name", few(n for n in ZOO if n != "timed_arm"))
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


# --------------------------------------------------------------------------------- nearly redundant


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
