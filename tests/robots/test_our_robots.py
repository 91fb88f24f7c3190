"""The robots that are shipped: what they were designed to be, and physics by other ways."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from support import TOL, potential_slope, relative

import holoctl as hc

G = 9.81  # m/s^2
FLOATING = "leg, floating"

# coordinates, rows, rank, rank of the actuation; every robot has as many motors as the latter
DESIGN = {
    "ankle": (8, 6, 6, 2),
    "delta": (21, 18, 18, 3),
    "five_bar": (4, 5, 2, 2),
    "four_bar": (3, 5, 2, 1),
    "geared_arm": (7, 4, 4, 3),
    "leg": (6, 5, 2, 4),
    FLOATING: (12, 5, 2, 4),
    "stewart": (24, 18, 18, 6),
}
SPREAD = {"geared_arm": 10.0, "stewart": 0.05}  # of the motors; rad, or parts of the size
ALL = pytest.mark.parametrize("name", DESIGN)


@cache
def robot(name):
    return hc.load(hc.robot_file(name.split(",")[0]), free_flyer=name == FLOATING)


@cache
def decided(name):
    return hc.partition(robot(name), hc.assemble(robot(name), restarts=0)[0])


@cache
def states(name, count=20):
    """Seeded closed states (q, v) in the usual posture, none at rest."""
    mech, part, rng = robot(name), decided(name), np.random.default_rng(0)
    q0, v0 = hc.assemble(mech, restarts=0)
    P = hc.project(mech, q0, v0, partition=part)
    found = []
    while len(found) < count:
        step, rate = SPREAD.get(name, 0.2) * (rng.normal(size=(2, P.k)) * P.scale) @ P.gamma.T
        guess = pin.integrate(mech.model, q0, step)
        found.append(hc.assemble(mech, guess, 10.0 * rate, restarts=0))
    return found


def placements(mech, q, *frames):
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    return [data.oMf[mech.model.getFrameId(f)].copy() for f in frames]


def column(mech, name):
    return mech.coordinate_names.index(name)


# ------------------------------------------------------------------------------- all of them


def test_all_robots_are_here():
    assert {name.split(",")[0] for name in DESIGN} == set(hc.robot_names())


@ALL
def test_design(name):
    mech, part = robot(name), decided(name)
    nv, rows, rank, driven = DESIGN[name]
    assert (mech.nv, mech.row_scale.size, part.rank) == (nv, rows, rank)
    assert part.actuation_rank == mech.nu == driven
    assert part.gap > 1e6


@ALL
def test_the_reference_is_nearly_closed(name):
    mech = robot(name)
    q, _ = hc.assemble(mech, restarts=0)
    assert np.abs(pin.difference(mech.model, mech.reference, q)).max() < 0.01


@ALL
def test_bodies_are_possible(name):
    mech = robot(name)
    for joint, body in zip(mech.model.names, mech.model.inertias, strict=True):
        if joint == "universe" or joint.endswith("[0]"):  # the first half of a universal joint
            continue
        principal = np.linalg.eigvalsh(body.inertia)
        assert body.mass > 0.0, joint
        assert principal[0] > 0.0, joint
        assert principal[0] + principal[1] >= principal[2] * (1.0 - 1e-12), joint


@ALL
def test_inverse_and_forward_dynamics_agree(name):
    mech, rng = robot(name), np.random.default_rng(1)
    for q, v in states(name):
        target = 10.0 * rng.normal(size=mech.nu)
        P = hc.project(mech, q, v, partition=decided(name))
        inverse = hc.inverse_dynamics(mech, q, v, target, projection=P).raise_if_bad()
        forward = hc.forward_dynamics(mech, q, v, mech.B @ inverse.u, projection=P).raise_if_bad()
        assert relative(mech.B.T @ forward.a, target) < TOL["solve"]
        assert relative(forward.a, inverse.a) < TOL["solve"]
        assert np.abs(inverse.u).max() > 1e-3  # guard


@ALL
def test_holding_torques_balance_gravity(name):
    """Along every motion that the constraints allow, by differences of the potential energy."""
    mech = robot(name)
    for q, _ in states(name, 5):
        P = hc.project(mech, q, np.zeros(mech.nv), partition=decided(name))
        still = np.zeros(mech.nv)
        held = hc.inverse_dynamics(mech, q, still, still, coordinates="all", projection=P)
        slopes = np.array([potential_slope(mech, q, direction) for direction in P.gamma.T])
        assert relative(P.gamma.T @ mech.B @ held.u + held.unbalanced, slopes) < TOL["difference"]
        assert np.abs(slopes).max() > 1e-3  # guard
        # nothing but the ground could hold a floating pelvis
        missing = np.abs(held.unbalanced).max()
        assert missing > 1.0 if name == FLOATING else missing < TOL["solve"]


# ------------------------------------------------------------------------------------ delta


def test_the_platform_of_the_delta_only_translates():
    mech = robot("delta")
    first = column(mech, "platform_pose[0]")
    places = []
    for q, v in states("delta"):
        (platform,) = placements(mech, q, "platform")
        gamma = hc.project(mech, q, v, partition=decided("delta")).gamma
        assert np.abs(platform.rotation - np.eye(3)).max() < TOL["exact"]
        assert np.abs(gamma[first + 3 : first + 6]).max() < TOL["exact"]
        assert np.linalg.matrix_rank(gamma[first : first + 3]) == 3
        places.append(platform.translation)
    assert np.ptp(places, axis=0).min() > 0.05  # guard: it moved about


def test_the_rods_of_the_delta_are_parallel_and_far_from_locking():
    mech = robot("delta")
    for q, _ in states("delta"):
        for i in (1, 2, 3):
            ends = [
                placements(mech, q, f"rod_{i}{side}", f"platform_{i}{side}") for side in ("a", "b")
            ]
            a, b = (lower.translation - upper.translation for upper, lower in ends)
            assert np.abs(a - b).max() < TOL["exact"]
            assert np.linalg.norm(a) == pytest.approx(0.42)
            assert abs(q[column(mech, f"elbow_{i}a[1]")]) < 0.8


def test_the_arms_of_the_delta_carry_equal_loads_in_the_middle():
    mech = robot("delta")
    q, v = hc.assemble(mech, restarts=0, locked=["platform_pose"])
    u = hc.inverse_dynamics(mech, q, v, np.zeros(3), partition=decided("delta")).u
    assert relative(u, np.full(3, u[0])) < TOL["solve"]
    assert u[0] > 0.1, "motors hold the arms up"


# ---------------------------------------------------------------------------------- stewart


def test_the_legs_of_the_stewart_platform_carry_equal_loads_at_home():
    """By symmetry, and by virtual work of one leg as the platform rises."""
    mech = robot("stewart")
    q, v = hc.assemble(mech, restarts=0, locked=["platform_pose"])
    solution = hc.inverse_dynamics(mech, q, v, np.zeros(6), partition=decided("stewart"))
    assert solution.certificate.condition < 30.0
    h = 0.30
    foot, ball = np.exp(1j * np.radians([15.0, 45.0])) * [0.25, 0.15]
    length = np.hypot(abs(ball - foot), h)
    assert relative(q[column(mech, "leg_1")], length - 0.25) < TOL["exact"]
    # cylinder: centre 0.125 m above the foot, piston: 0.125 m below the ball, along the leg
    rise = 0.125 * (length**2 - h**2) / length**3  # d(0.125 h / length) / dh
    slope = G * (3.0 * 1.0 + 6.0 * (0.8 * rise + 0.4 * (1.0 - rise)))
    force = slope / (6.0 * h / length)
    assert relative(solution.u, np.full(6, force)) < 1e-9
    up = hc.inverse_dynamics(mech, q, v, np.full(6, 2.0), partition=decided("stewart")).u
    assert relative(up, np.full(6, up[0])) < TOL["solve"]
    assert up[0] > force + 1.0


def test_the_stewart_platform_moves_in_all_six_ways():
    mech = robot("stewart")
    first = column(mech, "platform_pose[0]")
    for q, v in states("stewart"):
        P = hc.project(mech, q, v, partition=decided("stewart"))
        assert np.linalg.cond(P.gamma[first : first + 6]) < 1e3
        for i in range(1, 7):
            assert abs(q[column(mech, f"foot_{i}[1]")]) < 1.0  # far from locking


# ------------------------------------------------------------------------------- geared arm


def test_the_motors_of_the_geared_arm_feel_joint_torques_through_their_ratios():
    """Against Pinocchio's recursion on the bare tree of the file, and ratios by hand."""
    mech = robot("geared_arm")
    model = pin.buildModelFromUrdf(str(hc.robot_file("geared_arm")))
    at = {name: model.joints[model.getJointId(name)].idx_v for name in model.names[1:]}
    # how far each joint turns with each motor: turntable, shoulder, elbow
    ratios = {
        "rotor_turntable": [1, 0, 0],
        "rotor_shoulder": [0, 1, 0],
        "rotor_elbow": [0, 0, 1],
        "turntable": [1 / 50, 0, 0],
        "shoulder": [0, 1 / 80, 0],
        "elbow": [0, -1 / 80, 1 / 60],
        "wrist": [0, 0, -1 / 60],
    }
    turns = np.zeros((7, 3))
    for name, row in ratios.items():
        turns[at[name]] = row
    rng = np.random.default_rng(2)
    for _ in range(20):
        motors = np.array([10.0, 72.0, -24.0]) + 10.0 * rng.normal(size=3)
        q, v, target = turns @ motors, turns @ rng.normal(0, 50, 3), rng.normal(0, 500, 3)
        solution = hc.inverse_dynamics(mech, q, v, target, partition=decided("geared_arm"))
        torque = pin.rnea(model, model.createData(), q, v, turns @ target)
        assert relative(solution.u, turns.T @ torque) < TOL["solve"]


def test_the_hand_of_the_geared_arm_stays_level():
    mech = robot("geared_arm")
    heights = []
    for q, _ in states("geared_arm"):
        hand, tip = placements(mech, q, "hand", "tip")
        assert np.abs(hand.rotation[2] - [0, 0, 1]).max() < TOL["exact"]
        upper, fore = q[column(mech, "shoulder")], q[column(mech, "elbow")]
        height = 0.30 + 0.35 * np.sin(upper) + 0.30 * np.sin(upper + fore)
        assert tip.translation[2] == pytest.approx(height)
        heights.append(height)
    assert np.ptp(heights) > 0.05  # guard


def test_heavy_rotors_are_felt_with_the_square_of_the_ratio():
    mech = robot("geared_arm")
    q, v = hc.assemble(mech, restarts=0)
    P = hc.project(mech, q, v, partition=decided("geared_arm"))
    still, turning = (
        hc.inverse_dynamics(mech, q, v, [a, 0.0, 0.0], projection=P).u[0] for a in (0.0, 50.0)
    )
    around = column(mech, "turntable")
    arm = pin.crba(mech.model, mech.model.createData(), q)[around, around]
    assert 50.0 * (turning - still) == pytest.approx(arm + 50.0**2 * 6e-5)  # at 1 rad/s^2


# -------------------------------------------------------------------------------------- leg


def test_the_knee_of_the_leg_follows_its_four_bar():
    """The push rod keeps its length, by plane geometry in the thigh."""
    mech = robot("leg")
    q, cranks = mech.reference, []
    for knee in np.linspace(-1.55, 0.0, 12):
        q = q.copy()
        q[column(mech, "knee")] = knee
        q, _ = hc.assemble(mech, q, locked=["knee"], restarts=0)
        crank = q[column(mech, "knee_motor")]
        # x + iz from the motor; positive angles turn x towards z
        rod = (-0.30j + (-0.035 - 0.035j) * np.exp(1j * knee)) + 0.04 * np.exp(1j * crank)
        assert abs(rod) == pytest.approx(0.30, abs=1e-12)
        cranks.append(crank)
    assert (np.diff(cranks) > 0.0).all(), "no dead point on the way"
    assert -1.5 < cranks[0] < cranks[-1] < 1.5


def test_the_leg_stands_under_its_hip():
    mech = robot(FLOATING)
    q, _ = hc.assemble(mech, restarts=0)
    pelvis, sole = placements(mech, q, "pelvis", "sole")
    assert np.abs(sole.rotation - pelvis.rotation).max() < 1e-3
    assert sole.translation[2] < pelvis.translation[2] - 0.8
    assert abs(sole.translation[0] - pelvis.translation[0]) < 0.05
