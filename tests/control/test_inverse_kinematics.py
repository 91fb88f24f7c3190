"""Inverse kinematics: frames are where they were asked to be, or it is told why not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from overconstrained import drawn, meant
from refusals import refused
from shared_robots import shared_robot
from support import (
    closed_states,
    difference,
    few,
    jacobian_by_differences,
    mechanism,
    rows,
    stretched,
)  # fmt: skip
from zoo import ZOO, add_body, at, bar, five_bar, four_bar, slider_crank, triangle

import holoctl as hc
from holoctl.closing.toleranced_rows import toleranced_rows
from holoctl.control.reach.targets import targets_of
from holoctl.tree.kinematics import kinematics

SIX = ("x", "y", "z", "rx", "ry", "rz")
SUBSETS = (
    "x y z rx ry rz", "x y z", "x y", "rx ry rz", "z", "rz", "rx ry", "x z ry", "rz y rx", "ry z",
)  # fmt: skip
END = pin.SE3(pin.rpy.rpyToMatrix(0.4, -0.3, 0.2), np.array([0.1, 0.2, -0.05]))
"""A frame in a body, off its joint."""


def pose_of(mech, q, frame):
    """By Pinocchio alone."""
    name, placement = frame if isinstance(frame, tuple) else (frame, pin.SE3.Identity())
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    model = mech.model
    if model.existJointName(name):
        return data.oMi[model.getJointId(name)] * placement
    return data.oMf[model.getFrameId(name)] * placement


def ask(*arguments, **options):
    return lambda: hc.inverse_kinematics(*arguments, **options)


def motion_of(mech, q, v, a, frame):
    """Velocity and acceleration of a frame in the world, by Pinocchio alone."""
    model = mech.model.copy()
    name, placement = frame
    probe = pin.Frame("probe", model.getJointId(name), 0, placement, pin.FrameType.OP_FRAME)
    model.addFrame(probe)
    data = model.createData()
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    which, world = model.getFrameId("probe"), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    return (
        pin.getFrameVelocity(model, data, which, world).vector,
        pin.getFrameClassicalAcceleration(model, data, which, world).vector,
    )


def jacobian_of(mech, data, q, frame):
    """Of a frame in the world, by Pinocchio alone."""
    name, placement = frame
    world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    joint = mech.model.getJointId(name)
    pin.computeJointJacobians(mech.model, data, q)
    J = pin.getJointJacobian(mech.model, data, joint, world)
    arm = data.oMi[joint].rotation @ placement.translation
    return np.vstack([J[:3] - pin.skew(arm) @ J[3:], J[3:]])


def closed_motion(mech, q, rng, t=0.0):
    """A random closed velocity and acceleration, by numpy alone."""
    r = rows(mech, q, np.zeros(mech.nv), t)
    _, s, vt = np.linalg.svd(r.jacobian)
    Z = vt[int((s > 1e-7 * max(s[0], 1.0)).sum()) :].T
    v = Z @ rng.normal(size=Z.shape[1]) - np.linalg.lstsq(r.jacobian, r.rate, rcond=1e-8)[0]
    r = rows(mech, q, v, t)
    return v, Z @ rng.normal(size=Z.shape[1]) - np.linalg.lstsq(r.jacobian, r.drift, rcond=1e-8)[0]


def missed(mech, q, frame, pose, axes):
    """How far a frame is from its pose, by the axes named; turns that are not all by their rows."""
    here = pose_of(mech, q, frame)
    off = here.translation - pose.translation
    found = [abs(off["xyz".index(axis)]) for axis in axes.split() if axis in "xyz"]
    turns = [axis[1] for axis in axes.split() if axis not in "xyz"]
    E = here.rotation @ pose.rotation.T
    if len(turns) == 3:
        found.append(np.linalg.norm(pin.log3(E)))
    elif len(turns) == 2:
        m = np.eye(3)["xyz".index(({"x", "y", "z"} - set(turns)).pop())]
        found.append(np.linalg.norm(E @ m - m))
    elif turns:
        quaternion, i = pin.Quaternion(E), "xyz".index(turns[0])
        found.append(abs(np.arctan2(quaternion.vec()[i], abs(quaternion.w))))
    return max(found)


# ------------------------------------------------------------------------ what is left of the way


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("relative_to", ["universe", ("b2", END)])
def test_what_is_left_is_the_error_of_the_task_with_its_exact_slope(local, relative_to):
    mech, rng = mechanism("spatial_arms"), np.random.default_rng(5)
    data = mech.model.createData()
    for axes in SUBSETS:
        task = hc.FrameTask(("a3", END), axes, relative_to, local)
        q = pin.integrate(mech.model, mech.reference, rng.normal(size=mech.nv))
        targets = targets_of(mech, [(task, pin.SE3.Random())], None, "universe")

        def left(q, targets=targets):
            kin = kinematics(mech.model, data, q, np.zeros(mech.nv), 0.0)
            return targets.left(kin)

        r, slope = left(q)
        steps = [
            difference(lambda s, q=q, e=e: left(pin.integrate(mech.model, q, s * e))[0], 1e-3)
            for e in np.eye(mech.nv)
        ]
        np.testing.assert_allclose(slope, np.column_stack(steps), atol=1e-9)
        bound, scale = targets.each[0].task, targets.scale
        kin = kinematics(mech.model, data, q, np.zeros(mech.nv), 0.0)
        error = scale * bound.error(bound.at(kin).value, targets.each[0].wanted)
        turns = np.array([axis[0] == "r" for axis in task.axes])
        if turns.sum() == 2:  # swings have an axis of their own each, and one size
            assert np.linalg.norm(r[turns]) == pytest.approx(np.linalg.norm(error[turns]))
            r, error = r[~turns], error[~turns]
        np.testing.assert_allclose(r, -error, atol=1e-12)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("axes", ["rx ry rz", "rx ry", "rz"])
def test_half_a_turn_is_led_back(axes, local):
    """At half a turn no error tells the side; any will do."""
    m = pin.Model()
    add_body(m, 0, pin.JointModelSpherical(), at(), "ball", bar(0.3))
    mech = hc.Mechanism(m)
    about = [1.0, 0.0, 0.0] if axes != "rz" else [0.0, 0.0, 1.0]
    pose = pin.SE3(pin.exp3(np.pi * np.array(about)), np.zeros(3))
    task = hc.FrameTask("ball", axes, local=local)
    q, _, _ = hc.inverse_kinematics(mech, {task: pose})
    assert missed(mech, q, "ball", pose, axes) < 1e-9


# ------------------------------------------------------------------------------ there and closed


FEW = ("five_bar", "floating_leg", "standing_leg", "timed_arm", "sine_chart", "three_motors",
       "screw_chain", "slotted_arms")  # fmt: skip


@pytest.mark.parametrize("name", few(ZOO, FEW))
def test_poses_of_closed_states_are_reached_with_their_motion(name):
    mech, rng = mechanism(name), np.random.default_rng(len(name))
    names = list(mech.model.names)[1:]
    for i, (q, _) in enumerate(closed_states(name, 4, spread=0.3)):
        v, a = closed_motion(mech, q, rng)
        frames = [(str(rng.choice(names)), END) for _ in range(1 + i % 2)]
        words = [str(rng.choice(SUBSETS)) for _ in frames]
        which = [[SIX.index(axis) for axis in word.split()] for word in words]
        poses = [
            (hc.FrameTask(frame, word), pose_of(mech, q, frame))
            for frame, word in zip(frames, words, strict=True)
        ]
        twists = [
            motion_of(mech, q, v, a, f)[0][rows] for f, rows in zip(frames, which, strict=True)
        ]
        guess = pin.integrate(mech.model, q, 0.1 * mech.column_scale * rng.normal(size=mech.nv))
        before = guess.copy()
        x, _, _ = hc.inverse_kinematics(mech, poses, guess, limits=None)
        assert np.array_equal(guess, before)
        state = f"{name}, state {i}: {words} of {[frame[0] for frame in frames]}"
        assert hc.constraint_errors(mech, x).closure < 1e-12, state
        for frame, word, (_, pose) in zip(frames, words, poses, strict=True):
            assert missed(mech, x, frame, pose, word) < 1e-9, state

        x, w, _ = hc.inverse_kinematics(mech, poses, q, v=twists, limits=None)
        assert np.abs(pin.difference(mech.model, q, x)).max() < 1e-9, state  # it is there already
        # an acceleration that goes with this velocity, and is closed
        r = rows(mech, x, w)
        some = np.linalg.lstsq(r.jacobian, -r.drift - r.jacobian @ a, rcond=1e-8)[0] + a
        asked = [
            motion_of(mech, x, w, some, f)[1][rows] for f, rows in zip(frames, which, strict=True)
        ]
        x, w, b = hc.inverse_kinematics(mech, poses, q, v=twists, a=asked, limits=None)
        size = 1.0 + np.abs(w).max() ** 2 + np.abs(b).max()
        for frame, here, twist, acceleration in zip(frames, which, twists, asked, strict=True):
            found = motion_of(mech, x, w, b, frame)
            np.testing.assert_allclose(found[0][here], twist, atol=1e-10 * size, err_msg=state)
            np.testing.assert_allclose(
                found[1][here], acceleration, atol=1e-10 * size, err_msg=state
            )
        assert np.abs(rows(mech, x, w).rate).max() < 1e-10 * size, state
        r = rows(mech, x, w)
        assert np.abs(r.jacobian @ b + r.drift).max() < 1e-10 * size, state
        # of least norm: nothing in it that moves no frame and opens nothing
        data = mech.model.createData()
        J = [
            jacobian_of(mech, data, x, frame)[here]
            for frame, here in zip(frames, which, strict=True)
        ]
        both = mech.scale * r.jacobian, *(part * mech.column_scale for part in J)
        _, s, vt = np.linalg.svd(np.vstack(both))
        idle = vt[int((s > 1e-7 * max(s[0], 1.0)).sum()) :]
        assert np.abs(idle @ (w / mech.column_scale)).max(initial=0.0) < 1e-9 * size, state
        assert np.abs(idle @ (b / mech.column_scale)).max(initial=0.0) < 1e-9 * size, state


def test_the_frame_moves_as_asked_along_the_path():
    """Rates against differences of poses: relative to a frame that moves, in axes of the tool."""
    mech, rng = mechanism("spatial_arms"), np.random.default_rng(2)
    q, _ = closed_states("spatial_arms", 4)[3]
    for relative_to, local in (("b1", False), ("universe", True), (("b2", END), True)):
        task = hc.FrameTask(("a3", END), "x y z", relative_to, local)
        base = relative_to if isinstance(relative_to, tuple) else (relative_to, pin.SE3.Identity())

        def seen(q, base=base):
            A = pin.SE3.Identity() if base[0] == "universe" else pose_of(mech, q, base)
            return A.actInv(pose_of(mech, q, ("a3", END)))

        twist, acceleration = rng.normal(size=3), rng.normal(size=3)
        x, v, a = hc.inverse_kinematics(
            mech, [(task, seen(q))], q, v=twist, a=acceleration, limits=None
        )  # fmt: skip

        def rate(s, x=x, v=v, a=a, seen=seen, local=local):
            def place(h):
                return seen(pin.integrate(mech.model, x, (s + h) * v + 0.5 * (s + h) ** 2 * a))

            moved = difference(lambda h: place(h).translation, 1e-3)
            return place(0.0).rotation.T @ moved if local else moved

        np.testing.assert_allclose(rate(0.0), twist, atol=1e-9)
        np.testing.assert_allclose(difference(rate, 1e-3), acceleration, atol=1e-6)


ROBOTS = ["five_bar", "delta", "stewart", "geared_arm", "leg"]
SHARED = ["5bar_linkage", "5bar_linkage_iso6d", "cassie_like", "disney_like"]


@pytest.mark.parametrize(
    "name", few([*ROBOTS, *SHARED], ["five_bar", "stewart", "leg", "5bar_linkage_iso6d"])
)
def test_robots_of_files(name):
    mech = hc.load(hc.robot_file(name) if name in ROBOTS else shared_robot(name))
    rng, frames = np.random.default_rng(1), [f.name for f in mech.model.frames if f.parentJoint]
    count = 0
    while count < 4:
        guess = pin.integrate(mech.model, mech.reference, 0.15 * rng.normal(size=mech.nv))
        q, _ = hc.assemble(mech, guess)
        if not within(mech, q):
            continue
        count += 1
        frame = str(rng.choice(frames))
        pose = pose_of(mech, q, frame)
        guess = pin.integrate(mech.model, q, 0.15 * mech.column_scale * rng.normal(size=mech.nv))
        x, v, a = hc.inverse_kinematics(mech, {frame: pose}, guess)
        assert missed(mech, x, frame, pose, "x y z rx ry rz") < 1e-9
        assert hc.constraint_errors(mech, x).closure < 1e-10
        assert within(mech, x)
        assert not v.any()
        assert np.abs(a).max() < 1e-12


def within(mech, q):
    """Whether all positions of single coordinates of the tree are within the limits of a file."""
    position = hc.limits_of(mech).position or {}
    for name, limit in position.items():
        lower, upper = limit if isinstance(limit, tuple) else (-limit, limit)
        value = q[mech.model.joints[mech.model.getJointId(name)].idx_q]
        if not lower <= value <= upper:
            return False
    return True


@pytest.mark.parametrize("name", few(["bennett", "sarrus", "planar_3rrr", "altmann"], ["bennett"]))
def test_rounded_geometry(name):
    mech = meant(drawn(name)[1], 1e-6, 0)
    rng, names = np.random.default_rng(0), list(mech.model.names)[1:]
    start, _ = hc.assemble(mech)
    for _ in range(2):
        step = 0.1 * mech.column_scale * rng.normal(size=mech.nv)
        q, _ = hc.assemble(mech, pin.integrate(mech.model, start, step))
        frame = str(rng.choice(names))
        pose = pose_of(mech, q, frame)
        x, _, _ = hc.inverse_kinematics(mech, {frame: pose}, start)
        assert missed(mech, x, frame, pose, "x y z rx ry rz") < 1e-9
        assert hc.constraint_errors(mech, x).closure < mech.tolerance


def test_rows_that_open_where_geometry_is_rounded_are_decided_anew(monkeypatch):
    """A row too few, as where rows were left out that are needed farther on."""
    mech = meant(drawn("planar_3rrr")[1], 1e-6, 0)
    start, _ = hc.assemble(mech)
    frame = mech.model.names[1]
    turn = pin.SE3(pin.exp3(np.array([0.0, 0.0, 0.05])), np.zeros(3))
    pose = pose_of(mech, start, frame) * turn
    expected, _, _ = hc.inverse_kinematics(mech, {frame: pose}, start, axes="rx ry rz")
    home = "holoctl.control.reach.inverse_kinematics.toleranced_rows"
    decided, poor = [], [True]

    def decide(*given):
        found = toleranced_rows(*given)
        decided.append(found.rows)
        return dataclasses.replace(found, rows=found.rows[:-1]) if poor[0] else found

    def once(*given):
        found = decide(*given)
        poor[0] = False
        return found

    monkeypatch.setattr(home, once)
    q, _, _ = hc.inverse_kinematics(mech, {frame: pose}, start, axes="rx ry rz")
    assert len(decided) == 2
    assert hc.constraint_errors(mech, q).closure < mech.tolerance
    assert missed(mech, q, frame, pose, "rx ry rz") < 1e-9
    assert np.abs(q - expected).max() < 1e-2
    poor[0] = True
    monkeypatch.setattr(home, decide)
    refused(ask(mech, {frame: pose}, start, axes="rx ry rz"), hc.AssemblyError, "redundant rows")


# ------------------------------------------------------------------------- what poses leave open


def test_what_is_left_open_is_nearest_to_the_guess():
    """As assembly with the frame held by one more closure, and no other near by is nearer."""
    mech = five_bar()
    start, _ = hc.assemble(mech)
    tip, rng = ("left_rod", at(0.4)), np.random.default_rng(0)
    for height in (0.45, 0.5, 0.6):
        guess = start + 0.1 * rng.normal(size=4)
        q, _, _ = hc.inverse_kinematics(mech, [(tip, [height])], guess, axes="y")
        hold = hc.Closure(("universe", at(0, height)), tip, axes="y", name="hold")
        held = hc.Mechanism(mech.model, [*mech.constraints, hold])
        expected, _ = hc.assemble(held, guess, restarts=0)
        np.testing.assert_allclose(q, expected, atol=1e-8)
        Z = np.linalg.svd(rows(held, q, np.zeros(4)).jacobian)[2][3:]
        assert np.abs(Z @ (q - guess)).max() < 1e-8


def test_a_posture_decides_instead_of_the_guess():
    mech = mechanism("standing_leg")
    (q, _), (other, _) = closed_states("standing_leg", 2)
    pose = pose_of(mech, q, "trunk")
    near, _, _ = hc.inverse_kinematics(mech, {"trunk": pose}, q, axes="z", limits=None)
    led, _, _ = hc.inverse_kinematics(
        mech, {"trunk": pose}, q, axes="z", posture=other, limits=None
    )  # fmt: skip

    def away(x, y):
        return np.linalg.norm(pin.difference(mech.model, x, y) / mech.column_scale)

    assert away(q, near) < 1e-8
    assert away(other, led) < away(other, near)
    assert missed(mech, led, "trunk", pose, "z") < 1e-9


def test_a_time_is_that_of_constraints_that_move():
    mech = mechanism("timed_arm")
    for t in (0.0, 0.4):
        q, v, a = hc.inverse_kinematics(mech, {"b": [0.3]}, axes="x", t=t)
        assert hc.constraint_errors(mech, q, v, t=t).closure < 1e-12
        assert hc.constraint_errors(mech, q, v, t=t).velocity_residual < 1e-12
        r = rows(mech, q, v, t)
        assert np.abs(r.jacobian @ a + r.drift).max() < 1e-10


# --------------------------------------------------------------------------------- the branch


def test_the_branch_of_the_guess_is_kept():
    """Elbows of the five-bar, both ways on both sides, also where the tip goes far."""
    mech, tip = five_bar(), ("left_rod", at(0.4))
    for left in (-1.0, 1.0):
        for right in (-1.0, 1.0):
            q0 = by_hand((0.0, 0.5), left, right)
            for place in ((0.2, 0.4), (-0.2, 0.4), (0.0, 0.6), (0.1, 0.25)):
                q, _, _ = hc.inverse_kinematics(mech, [(tip, place)], q0, axes="x y")
                expected = by_hand(place, left, right)
                assert np.abs(np.sin(0.5 * (q - expected))).max() < 1e-8


def by_hand(place, left, right):
    """The five-bar with its tip there, elbows by their signs, as the cosine law has it."""
    found = []
    for base, sign in ((-0.1, left), (0.1, right)):
        x, y = place[0] - base, place[1]
        reach = x * x + y * y
        elbow = sign * np.arccos((reach - 0.09 - 0.16) / (2 * 0.3 * 0.4))
        shoulder = np.arctan2(y, x) - np.arctan2(0.4 * np.sin(elbow), 0.3 + 0.4 * np.cos(elbow))
        found += [shoulder, elbow]
    return np.array(found)


def two_links():
    model = pin.Model()
    add_body(model, 0, pin.JointModelRZ(), at(), "a", bar(1.0))
    add_body(model, "a", pin.JointModelRZ(), at(1.0), "b", bar(1.0))
    return hc.Mechanism(model, [], ["a", "b"], name="two_links")


def test_a_stretched_guess_is_left():
    """At q = 0 the tip cannot move towards the target, to first order."""
    mech, tip = two_links(), ("b", at(1.0))
    q, _, _ = hc.inverse_kinematics(mech, [(tip, [1.0, 0.0])], [0.0, 0.0], axes="x y")
    assert np.abs(np.abs(q) - [np.pi / 3, 2 * np.pi / 3]).max() < 1e-9
    q, _, _ = hc.inverse_kinematics(five_bar(), [(("left_rod", at(0.4)), [0.0, 0.5])],
                                    stretched(0.0), axes="x y")  # fmt: skip
    assert missed(five_bar(), q, ("left_rod", at(0.4)), at(0.0, 0.5), "x y") < 1e-9


def test_a_pose_at_the_edge_is_reached():
    """The stretched arm: singular where it arrives."""
    mech, tip = five_bar(), ("left_rod", at(0.4))
    apex = np.array([0.0, np.sqrt(0.48)])
    q, v, _ = hc.inverse_kinematics(mech, [(tip, apex)], axes="x y")
    assert missed(mech, q, tip, at(*apex), "x y") < 1e-9
    assert np.abs(q[[1, 3]]).max() < 1e-4
    assert not v.any()
    e = refused(
        lambda: hc.inverse_kinematics(mech, [(tip, apex)], q, axes="x y", v=[0.0, 1.0]),
        hc.InconsistentError, "'left_rod' by 1 m/s is missing",
    )  # fmt: skip
    assert e.residual > 0.1


def test_restarts_look_on_other_branches_and_none_are_made_unasked():
    mech = slider_crank()
    limits = hc.Limits(position={"crank": (0.2, 3.0)})
    poses = {"rod": pin.SE3(pin.rpy.rpyToMatrix(0, 0, 0.3), np.zeros(3))}  # the crank below
    for seed in (0, 1):
        refused(ask(mech, poses, axes="rz", limits=limits, seed=seed),
                hc.LimitError, "crank.position")  # fmt: skip
    arm = two_links()
    pose = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 0.5), np.array([1.2, 0.4, 0.0]))
    q0 = hc.inverse_kinematics(arm, [("b", [0.2, np.sqrt(0.96)])], axes="x y")[0]
    assert missed(arm, q0, "b", at(0.2, np.sqrt(0.96)), "x y") < 1e-9
    refused(lambda: hc.inverse_kinematics(arm, {"b": pose}, restarts=3), hc.AssemblyError)


# -------------------------------------------------------------------------------------- limits


def test_limits_are_kept_and_met_exactly():
    mech, tip = five_bar(), ("left_rod", at(0.4))
    for limits, name, value in (
        ({"left": (2.2, 2.5)}, "left", 2.2),
        ({"left": (0.2, 1.5)}, "left", 1.5),
        ({"right": 0.5, "left_rod": (-3.0, 3.0)}, "right", 0.5),
    ):
        q, _, _ = hc.inverse_kinematics(
            mech, [(tip, [0.1])], axes="x", limits=hc.Limits(position=limits)
        )
        assert missed(mech, q, tip, at(0.1), "x") < 1e-9
        assert hc.constraint_errors(mech, q).closure < 1e-11
        i = mech.coordinate_names.index(name)
        free, _, _ = hc.inverse_kinematics(mech, [(tip, [0.1])], axes="x", limits=None)
        lower, upper = (-limits[name], limits[name]) if name == "right" else limits[name]
        assert not lower <= free[i] <= upper
        assert lower <= q[i] <= upper
        assert q[i] == pytest.approx(value, abs=1e-9)


def test_limits_of_the_model_hold_unless_told_otherwise():
    mech = dataclasses.replace(five_bar(), limits=hc.Limits(position={"left": (2.2, 2.5)}))
    poses = [(("left_rod", at(0.4)), [0.1])]
    q, _, _ = hc.inverse_kinematics(mech, poses, axes="x")
    assert q[0] == pytest.approx(2.2, abs=1e-9)
    q, _, _ = hc.inverse_kinematics(mech, poses, axes="x", limits=None)
    assert q[0] < 2.2
    q, _, _ = hc.inverse_kinematics(mech, poses, axes="x", limits=hc.Limits(effort=1.0))
    assert q[0] < 2.2


def test_limits_of_cut_joints_are_kept():
    mech = five_bar("revolute")
    poses = [(("left_rod", at(0.4)), [0.1])]
    free, _, _ = hc.inverse_kinematics(mech, poses, axes="x")
    angle = hc.joint_motion(mech, "tip", free).value[0]
    for lower, upper in ((angle + 0.1, 3.0), (-3.0, angle - 0.1)):
        q, _, _ = hc.inverse_kinematics(
            mech, poses, axes="x", limits=hc.Limits(position={"tip": (lower, upper)})
        )
        here = hc.joint_motion(mech, "tip", q).value[0]
        assert lower - 1e-11 <= here <= upper + 1e-11
        assert min(here - lower, upper - here) < 1e-9


def test_what_limits_exclude_is_refused_by_name_with_how_near_it_comes():
    mech, tip = two_links(), ("b", at(1.0))
    limits = hc.Limits(position={"b": (0.0, 1.0)})
    e = refused(
        ask(mech, [(tip, [1.0, 0.0])], [0, 0.5], axes="x y", limits=limits),
        hc.LimitError, "b.position", "'b'", "limit",
    )  # fmt: skip
    assert e.names == ("b.position",)
    nearest = 2.0 * np.cos(0.5) - 1.0  # the least reach that the elbow allows
    assert f"{nearest:.4g} m" in str(e)
    assert e.residual == pytest.approx(nearest / 2.0, abs=1e-6)  # its size, with that frame
    assert e.q[1] == pytest.approx(1.0)
    refused(
        lambda: hc.inverse_kinematics(
            five_bar(), [(("left_rod", at(0.4)), [0.0, 0.5])], axes="x y",
            limits=hc.Limits(position={"left": (-1.0, -0.9), "right": (-2.0, -1.9)}),
        ),
        hc.LimitError, "left.position",
    )  # fmt: skip


def test_a_joint_comes_back_by_a_whole_turn_where_its_limits_ask_for_it():
    mech, tip = two_links(), ("b", at(1.0))
    q0 = np.array([2.9, -0.3])
    limits = hc.Limits(position={"a": (-3.2, 3.2), "b": (-2.0, -0.05)})
    free, _, _ = hc.inverse_kinematics(mech, [(tip, [-1.2, -0.5])], q0, axes="x y")
    assert free[0] > 3.2
    q, _, _ = hc.inverse_kinematics(mech, [(tip, [-1.2, -0.5])], q0, axes="x y", limits=limits)
    np.testing.assert_allclose(q, free - [2 * np.pi, 0.0], atol=1e-9)


def test_a_guess_beyond_its_limits_is_led_inside():
    mech, tip = two_links(), ("b", at(1.0))
    limits = hc.Limits(position={"b": (0.3, 2.5)})
    q, _, _ = hc.inverse_kinematics(mech, [(tip, [1.0, 0.5])], [0, -0.5], axes="x y", limits=limits)
    assert 0.3 <= q[1] <= 2.5
    e = refused(
        lambda: hc.inverse_kinematics(
            triangle(), {"left": pin.SE3.Identity()}, axes="rz",
            limits=hc.Limits(position={"right": (0.1, 0.2)}),
        ),
        hc.LimitError, "right.position",
    )  # fmt: skip
    assert e.names == ("right.position",)


# ---------------------------------------------------------------------------- what is out of reach


@pytest.mark.parametrize(
    ("place", "nearest"),
    [((0.0, 2.0), (0.0, np.sqrt(0.48))), ((2.0, 0.0), (0.6, 0.0)), ((0.0, -3.0), None),
     ((1.0, 1.0), None), ((-0.9, 0.4), None)],
)  # fmt: skip
def test_how_near_the_five_bar_comes(place, nearest):
    """Both arms reach 0.7: the tip stays in the intersection of two discs."""
    mech, tip = five_bar(), ("left_rod", at(0.4))
    place = np.array(place)
    if nearest is None and place[0] == 0.0:
        nearest = (0.0, -np.sqrt(0.48))
    elif nearest is None:  # on the circle around the other base
        base = np.array([-np.sign(place[0]) * 0.1, 0.0])
        nearest = base + 0.7 * (place - base) / np.linalg.norm(place - base)
    distance = np.linalg.norm(place - nearest)
    e = refused(
        lambda: hc.inverse_kinematics(mech, [(tip, place)], axes="x y", limits=None),
        hc.AssemblyError, "'left_rod' (x y)", "stretched", "guess",
    )  # fmt: skip
    assert f"by {distance:.4g} m" in str(e)
    assert hc.constraint_errors(mech, e.q).closure < 1e-9
    np.testing.assert_allclose(pose_of(mech, e.q, tip).translation[:2], nearest, atol=1e-3)
    assert e.worst[0][0].startswith("left_rod.")
    assert e.residual == pytest.approx(e.worst[0][1])


def test_more_rows_than_motions_must_fit():
    mech = four_bar()
    q, _ = hc.assemble(mech)
    pose = pose_of(mech, q, "coupler")
    there, _, _ = hc.inverse_kinematics(mech, {"coupler": pose}, q + 0.1)
    np.testing.assert_allclose(there, q, atol=1e-9)
    beside = pin.SE3(pose.rotation, pose.translation + np.array([0.0, 0.0, 0.02]))
    refused(lambda: hc.inverse_kinematics(mech, {"coupler": beside}, q), hc.AssemblyError,
            "0.02 m", "6 rows", "must be compatible")  # fmt: skip
    refused(
        lambda: hc.inverse_kinematics(mech, {"coupler": pose}, q, v=[0, 0, 1.0, 0, 0, 0]),
        hc.InconsistentError, "1 m/s", "6 rows",
    )  # fmt: skip
    refused(
        lambda: hc.inverse_kinematics(mech, {"coupler": pose}, q, a=[0, 0, 0, 0, 2.0, 0]),
        hc.InconsistentError, "2 rad/s^2",
    )  # fmt: skip


def test_what_cannot_move_is_told():
    mech = triangle()
    q, _ = hc.assemble(mech)
    x, v, a = hc.inverse_kinematics(mech, {"left": pose_of(mech, q, "left")})
    np.testing.assert_allclose(x, q, atol=1e-12)
    assert not v.any()
    assert not a.any()
    turned = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 2.0), np.zeros(3))
    refused(lambda: hc.inverse_kinematics(mech, {"left": turned}), hc.AssemblyError, "rad")


def test_a_guess_that_does_not_close_is_told():
    refused(lambda: hc.inverse_kinematics(triangle(2.0), {"left": [0.1]}, axes="x"),
            hc.AssemblyError, "no configuration closes it")  # fmt: skip


# ------------------------------------------------------------------------------------ bad input


def test_poses_that_are_none():
    mech = five_bar()
    pose = pin.SE3.Identity()
    skewed = pin.SE3(np.diag([1.0, 1.0, 1.1]), np.zeros(3))
    nowhere = pin.SE3(np.eye(3), np.array([np.nan, 0.0, 0.0]))
    refused(ask("mech", {"left": pose}), hc.InputError, "Mechanism")
    refused(ask(mech, {}), hc.InputError, "empty")
    refused(ask(mech, []), hc.InputError, "empty")
    refused(ask(mech, {"lefd": pose}), hc.InputError, "'lefd'", "did you mean 'left'")
    refused(ask(mech, {3: pose}), hc.InputError, "3")
    refused(ask(mech, "left"), hc.InputError, "mapping")
    refused(ask(mech, None), hc.InputError, "mapping")
    refused(ask(mech, {"left": skewed}), hc.InputError, "'left'", "rotation")
    refused(ask(mech, {"left": nowhere}), hc.InputError, "finite")
    refused(ask(mech, {"left": [0.0, np.nan, 0.0]}), hc.InputError, "finite")
    refused(ask(mech, {"left": [0.0, 0.0]}), hc.InputError, "(3,)")
    refused(ask(mech, {"left": "there"}), hc.InputError, "left")
    refused(ask(mech, {"left": None}), hc.InputError, "left")
    refused(ask(mech, {"left": np.eye(4)}), hc.InputError, "pin.SE3(matrix)")
    refused(ask(mech, {"left": (pose, np.zeros(6), np.zeros(6))}), hc.InputError, "v= and a=")
    refused(ask(mech, {"left": [[0.0], [0.0, 1.0]]}), hc.InputError, "real numbers")
    refused(ask(mech, {"left": [0.0]}, axes="rz"), hc.InputError, "pin.SE3")
    refused(ask(mech, {"left": pose}, axes="x q"), hc.InputError, "'rz'; got 'q'")
    refused(ask(mech, {"left": pose}, axes=""), hc.InputError, "axes")
    refused(ask(mech, {"left": pose}, axes={"right": "x"}), hc.InputError, "'left'")
    refused(ask(mech, {hc.FrameTask("left", "x"): pose}, axes="x"), hc.InputError, "axes")
    task = hc.FrameTask("left", "x")
    refused(ask(mech, {task: pose}, relative_to="right"), hc.InputError, "relative_to")
    refused(ask(mech, {"left": pose}, relative_to="nobody"), hc.InputError, "'nobody'")
    refused(ask(mech, {"left": pose}, relative_to="left"), hc.InputError, "same body")
    refused(ask(mech, {"universe": pose}), hc.InputError, "same body")


def test_other_arguments_that_are_none():
    mech, poses = five_bar(), {"left_rod": [0.0, 0.2]}
    for options, word in (
        ({"q_guess": [0.0]}, "q_guess"), ({"q_guess": [np.nan] * 4}, "finite"),
        ({"posture": [0.0]}, "posture"), ({"v": [1.0]}, "(2,)"), ({"v": {"right": 1}}, "right"),
        ({"v": [np.inf, 0.0]}, "finite"), ({"a": {"left_rod": [1.0, 2.0, 3.0]}}, "(2,)"),
        ({"v": 3.0}, "v"), ({"t": np.nan}, "t"), ({"tol": 0.0}, "tol"),
        ({"restarts": -1}, "restarts"), ({"seed": 0.5}, "seed"), ({"limits": 3}, "limits"),
        ({"limits": "none"}, "limits"),
        ({"limits": hc.Limits(position={"nobody": 1.0})}, "nobody"),
    ):  # fmt: skip
        refused(ask(mech, poses, **{"axes": "x y", **options}), hc.InputError, word)
    two = [("left_rod", [0.0, 0.2]), ("left_rod", [0.0, 0.2])]
    refused(ask(mech, two, axes="x y", v={"left_rod": [0, 0]}), hc.InputError, "2 of the poses")
    refused(ask(mech, two, axes="x y", v=[[0, 0]]), hc.InputError, "2 poses")


def test_keys_and_forms_mean_the_same():
    mech, place, v = five_bar(), [-0.3], [0.1]
    task = hc.FrameTask("left_rod", "x")
    expected = hc.inverse_kinematics(mech, {"left_rod": place}, axes="x", v=v)
    pose = at(*place)
    for poses, options in (
        ({"left_rod": pose}, {"axes": "x", "v": {"left_rod": v}}),
        ({"left_rod": pose}, {"axes": {"left_rod": "x"}, "v": [v]}),
        ({task: place}, {"v": {task: v}}),
        ({task: pose}, {"v": {"left_rod": v}, "a": [None]}),
        ([(("left_rod", pin.SE3.Identity()), place)], {"axes": "x", "v": np.array(v)}),
    ):
        found = hc.inverse_kinematics(mech, poses, **options)
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-12)


@pytest.mark.parametrize("axes", ["x y z rx ry rz", "rx ry rz x y z", "rz x", "y z ry"])
def test_of_a_motion_the_rows_are_read_by_their_axes(axes):
    mech = hc.load(hc.robot_file("stewart"))
    q = hc.assemble(mech)[0]
    pose, asked = pose_of(mech, q, "platform"), pin.Motion(np.array([0.1, 0.2, 0.3, 1.0, 2.0, 3.0]))
    task = hc.FrameTask("platform", axes)
    own = [asked.vector[SIX.index(axis)] for axis in axes.split()]
    expected = hc.inverse_kinematics(mech, {task: pose}, q, v=own, a=own)
    found = hc.inverse_kinematics(mech, {task: pose}, q, v=asked, a={task: asked})
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


def test_other_tasks_may_be_asked_for():
    """What has a value, an error and a Jacobian: here motors at positions of their own."""
    mech = five_bar()
    q, v, _ = hc.inverse_kinematics(
        mech, {hc.PostureTask(): [2.0, 1.0]}, v=[0.5, -0.2]
    )  # fmt: skip
    np.testing.assert_allclose(mech.motor_positions(q), [2.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(mech.motor_rates(v), [0.5, -0.2], atol=1e-9)
    assert hc.constraint_errors(mech, q).closure < 1e-12
    G = jacobian_by_differences(mech, q, v)
    assert np.abs(G @ v).max() < 1e-8
