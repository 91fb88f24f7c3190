"""Frames: which one a name means, and what a frame of a fixed joint moves with."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from compare import ROUNDING, rows_at, unlike
from zoo import BODY, OP, SENSOR, add_body, at, bar, two_hinges

import holoctl as hc


def gap_between(model, a, b):
    """Position of frame b seen from frame a at the neutral configuration."""
    mech = hc.Mechanism(model, [hc.Closure(a, b, axes="x y z")])
    return rows_at(mech, mech.reference, np.zeros(mech.nv))[0]


def test_a_joint_comes_before_a_body_of_its_name():
    """Seen from the right hinge, the left one is at -0.5; the body "left" would be at 0.2."""
    model = two_hinges(("left", "left", 0.7, BODY))
    assert gap_between(model, "right", "left").tolist() == [-0.5, 0.0, 0.0]


@pytest.mark.parametrize("order", [(BODY, OP, SENSOR), (SENSOR, BODY, OP), (OP, SENSOR, BODY)])
def test_a_body_comes_before_other_frames_of_its_name(order):
    place = {BODY: 0.3, OP: 0.1, SENSOR: 0.2}
    model = two_hinges(*(("tip", "left", place[kind], kind) for kind in order))
    assert unlike(gap_between(model, "right", "tip"), [-0.2, 0.0, 0.0]) < ROUNDING


def test_two_other_frames_of_one_name_are_ambiguous():
    model = two_hinges(("tip", "left", 0.1, OP), ("tip", "right", 0.2, SENSOR))
    with pytest.raises(hc.InputError, match=r"'tip'.*2 frames.*pin\.SE3"):
        hc.Mechanism(model, [hc.Closure("tip", "left", joint="weld")])
    hc.Mechanism(model, [hc.Closure(("left", at(0.1)), ("right", at(0.2)), joint="weld")])


def test_a_pair_is_a_placement_in_a_joint():
    model = two_hinges(("mark", "right", 0.25, OP))
    assert unlike(gap_between(model, ("left", at(0.1, 0.2)), "mark"), [0.65, -0.2, 0]) < ROUNDING


def test_the_error_is_seen_from_a_in_the_axes_of_a():
    turned = at(0.1, R=pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2))
    seen = gap_between(two_hinges(), ("left", turned), ("right", at(0.0, 0.3)))
    assert unlike(seen, [0.3, -0.4, 0.0]) < ROUNDING


@pytest.mark.parametrize("world", ["universe", ("universe", at(0.0))])
def test_the_universe_is_the_world(world):
    assert gap_between(two_hinges(), world, "right").tolist() == [0.5, 0.0, 0.0]
    assert gap_between(two_hinges(), "right", world).tolist() == [-0.5, 0.0, 0.0]


@pytest.mark.parametrize("tool", ["tool", "flange", ("elbow", at(0.4))])
def test_a_frame_of_a_fixed_joint_moves_with_its_parent(tool):
    model = pin.buildModelFromXML("""
        <robot name="r"><link name="base"/><link name="arm"/><link name="tool"/>
        <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/>
          <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
        <joint name="flange" type="fixed"><parent link="arm"/><child link="tool"/>
          <origin xyz="0.4 0 0"/></joint></robot>""")
    add_body(model, "elbow", pin.JointModelRX(), at(), "wrist", bar(0.1))
    mech = hc.Mechanism(model, [hc.Closure("universe", tool, axes="x y")])
    error = rows_at(mech, np.array([np.pi / 6, 0.0]), np.zeros(2))[0]
    assert unlike(error, [0.4 * np.cos(np.pi / 6), 0.2]) < ROUNDING


@pytest.mark.parametrize(
    ("a", "b"),
    [("left", "left"), ("left", ("left", at(0.3))), ("universe", ("universe", at(1.0)))],
)
def test_two_frames_of_one_body_are_refused(a, b):
    with pytest.raises(hc.InputError, match="same body"):
        hc.Mechanism(two_hinges(), [hc.Closure(a, b, joint="weld")])
