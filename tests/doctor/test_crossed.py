"""What must only be looked at: sizes, and closures across the hinges of their loop."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from examined import said
from linkages import LINKAGES
from zoo import at

import holoctl as hc


@pytest.mark.parametrize(("scale", "asks"), [(1.0, False), (1000.0, True)])
def test_size_and_mass_are_told(scale, asks):
    """A drawing in millimetres closes and moves like any other: only its size tells."""
    case = LINKAGES["four_bar"](scale=scale)
    report = hc.mobility(case.mechanism())
    assert report.ok
    assert report.mass == pytest.approx(2.0 * (0.2 + 0.5 + 0.4))
    (size,) = report.loop_sizes
    assert size == pytest.approx(scale * hc.mobility(LINKAGES["four_bar"]().mechanism()).size, 0.3)
    assert f"its loops measure {size:.3g} m; the mass of the moving bodies is 2.2 kg." in said(
        report
    )
    assert ("check whether the file has millimetres" in said(report)) == asks
    assert report.to_dict()["loop_sizes"] == [size]


@pytest.mark.parametrize(("factor", "asks"), [(1.0, False), (1000.0, True)])
def test_inertias_in_a_wrong_unit_are_asked_about(factor, asks):
    """They close and move like any other: only the bodies would be wider than the mechanism."""
    mech = hc.load(hc.robot_file("delta"))
    model = mech.model.copy()
    for i in range(1, model.njoints):
        of = model.inertias[i]
        model.inertias[i] = pin.Inertia(of.mass, of.lever, factor * of.inertia)
    report = hc.mobility(mech.with_model(model))
    assert ("that moments of inertia are in kg m^2" in said(report)) == asks
    rod = 2.0 * np.sqrt(factor * 7.352e-4 / 0.05)
    assert report.dimensions.width == pytest.approx(rod)
    assert report.dimensions.widest.startswith("elbow_")


def test_size_of_what_has_no_loop_or_does_not_close():
    assert "Size: the mechanism measures" in said(hc.mobility(hc.load(hc.robot_file("geared_arm"))))
    case = LINKAGES["four_bar"]()
    longer = case.mechanism().without("pin") if "pin" in case.cut else case.mechanism()
    pair = hc.Mechanism(
        longer.model,
        [hc.Closure((longer.model.names[-1], at(9.0)), ("universe", at(0.0, 20.0)), axes="x y")],
    )
    report = hc.mobility(pair)
    assert not report.closed
    assert "Size: its loops measure 2" in said(report)
    assert "has millimetres" in said(report)


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
        "are parallel to axis y of its frames, but the closure rotates about z. If its axis"
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
