"""What a trajectory says of itself is so: turns, limits between nodes, the least time, refusals."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp
from support import mechanism

import holoctl as hc

METHODS = ["cvxpy", "toppra"]


def robot(name):
    return hc.load(hc.robot_file(name))


def home(mech):
    return mech.motor_positions(hc.assemble(mech)[0])


def wheel():
    """A body that turns without end."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRUBZ(), pin.SE3.Identity(), "wheel")
    model.appendBodyToJoint(
        joint, pin.Inertia(1.0, np.zeros(3), 0.1 * np.eye(3)), pin.SE3.Identity()
    )
    return hc.Mechanism(model, [], ["wheel"])


# ----------------------------------------------------------------------------------------- the path


@pytest.mark.parametrize(("points", "angle"), [(4, 20.0), (4, 16.0 * np.pi), (50, 200.0 * np.pi)])
def test_whole_turns_count_however_few_nodes_there_are(points, angle):
    found = hc.retime(wheel(), [[0.0], [angle]], hc.Limits(effort=5.0), points, "toppra")
    for t in (0.5 * found.duration, found.duration):
        part = 0.5 if t < found.duration else 1.0
        assert abs(found.reference(t)[0][0] - part * angle) < 1e-6 * angle
    assert abs(found.duration - 2.0 * np.sqrt(angle * 0.1 / 5.0)) < 1e-3 * found.duration
    rate = found.state(0.3 * found.duration).v[0]
    assert abs(rate - 0.3 * found.duration * 50.0) < 1e-2 * rate


def test_functions_that_return_something_else_are_told_what_is_wrong():
    mech = robot("five_bar")
    here, way = home(mech), np.array([0.3, -0.2])
    of_numbers = hc.retime(mech, lambda s: tuple(here + s * way), "model", 20, "toppra")
    line = hc.retime(mech, [here, here + way], "model", 20, "toppra")
    assert abs(of_numbers.duration - line.duration) < 1e-3 * line.duration
    none = 0.0 * way
    for path, said in (
        (lambda s: (here + s * way, way), "must return"),
        (lambda s: (here + s * way, way[:1], none), "2 finite numbers; at s = 0"),
        (lambda s: (here + s * way, way * np.nan, none), "2 finite numbers; at s = 0"),
        (lambda s: (here + s * way, way, none if s < 0.7 else none + np.inf), r"at s = 0\.\d"),
        (lambda s: (here + s * way, way, none) if s < 0.5 else here, "value, d, dd"),
        (lambda s: here + s * way if s < 0.5 else [0.1], r"at s = 0\.5"),
        (lambda s: "here", "must return"),
    ):
        with pytest.raises(hc.InputError, match=said):
            hc.retime(mech, path)


def test_noise_of_a_function_is_smoothed_and_not_differenced():
    mech, rng = robot("five_bar"), np.random.default_rng(0)
    here, way = home(mech), np.array([0.3, -0.2])
    line = hc.retime(mech, [here, here + way], "model", 40, "toppra")
    noisy = hc.retime(
        mech, lambda s: here + s * way + 1e-8 * rng.normal(size=2), "model", 40, "toppra"
    )
    assert abs(noisy.duration - line.duration) < 5e-3 * line.duration
    with pytest.raises(hc.InputError, match="not smooth"):
        hc.retime(mech, lambda s: here + s * way + 1e-5 * rng.normal(size=2), "model", 40, "toppra")


def test_joints_that_rest_by_symmetry_do_not_turn_back():
    """All motors of a Delta together: its rods turn by rounding alone."""
    mech = dataclasses.replace(robot("delta"), forces=[hc.JointFriction(viscous=0.1)])
    here = home(mech)
    found = hc.retime(mech, [here, here + 0.05, here - 0.02], "model", 20, "toppra")
    assert len(found.t) < 50
    for t in np.linspace(0.0, found.duration, 40)[1:-1]:
        q, v, a = found.state(t)
        P = hc.project(mech, q, v, partition=found.partition)
        off = np.abs(P.rows.jacobian @ a + P.rows.drift).max()
        assert off < 1e-6 * (1.0 + np.abs(a).max())


# --------------------------------------------------------------------------------------- its limits


@pytest.mark.parametrize(("name", "seed"), [("four_bar", 2), ("five_bar", 1)])
def test_few_points_are_looked_at_in_many_places(name, seed):
    mech, rng = mechanism(name), np.random.default_rng(seed)
    path = home(mech) + np.vstack([np.zeros(mech.nu), rng.uniform(-1.0, 1.0, (3, mech.nu))])
    found = hc.retime(mech, path, hc.Limits(acceleration=5.0), 4, "toppra")
    times = np.linspace(0.0, found.duration, 300)
    most = max(float(np.abs(mech.motor_rates(found.state(t).a)).max()) for t in times)
    assert most < 5.0 * (1.0 + found.excess + 1e-3)
    assert found.excess <= 5e-3


def test_positions_are_looked_at_between_nodes_too():
    mech = robot("five_bar")
    here = home(mech)
    limits = hc.Limits(effort=20.0, position={"motor_left": (-3.0, float(here[0]) + 0.1999)})

    def place(s):
        return here + np.array([0.2 * np.sin(7.0 * s), 0.1 * s])

    with pytest.raises(hc.LimitError, match=r"past by 0\.0001|past by \d\.\de-05") as no:
        hc.retime(mech, place, limits, 4, "toppra")
    assert no.value.names == ("motor_left.position",)


def test_what_toppra_does_not_solve_is_not_said_to_be_impossible():
    mech = robot("five_bar")
    here = home(mech)
    limits = hc.Limits(effort=20.0, velocity=(-0.01, 5.0))
    found = hc.retime(
        mech, here + np.array([[0.0, 0.0], [0.3, -0.1], [0.1, 0.2]]), limits, 60, "toppra"
    )
    rates = found.v @ mech.B
    assert rates.min() > -0.01 * 1.005
    assert rates.max() < 5.0 * 1.005


@pytest.mark.slow
def test_a_way_that_was_found_is_kept_where_tighter_limits_leave_none(caplog):
    """Motors whose effort falls off a cliff: `excess` says what is exceeded."""
    mech = robot("five_bar")
    here, cliff = home(mech), [(0.0, 20.0), (3.0, 20.0), (3.0001, 4.0)]
    path = here + np.array([[0.0, 0.0], [0.3, -0.1], [0.1, 0.2]])
    found = hc.retime(mech, path, hc.Limits(speed_torque=cliff), 60)
    assert found.excess < 0.1
    assert found.excess <= 5e-3 or "limits are exceeded by" in caplog.text


def test_what_is_missing_is_what_it_takes_to_hold_it():
    mech = robot("five_bar")
    here = home(mech)
    hold = np.abs(hc.inverse_dynamics(mech, *hc.assemble(mech), np.zeros(2)).u).max()
    for way in (1e-3, 1e-6):
        with pytest.raises(hc.LimitError, match=r"at rest: at s = [01] ") as no:
            hc.retime(mech, [here, here + way], hc.Limits(effort=0.9 * hold), 20, "toppra")
        missing = no.value.residual * 0.9 * hold
        assert abs(missing - 0.1 * hold) < 2.0 * way * hold


def test_a_single_motion_is_as_quick_as_the_phase_plane_says():
    """Speeding up and braking, integrated apart: the least time of a motor without friction."""
    mech, most = robot("four_bar"), 10.0
    here, way = float(home(mech)[0]), -0.8
    path = hc.Trajectory.through(mech, [[here], [here + way]], [0.0, 1.0])
    knots, table = np.linspace(0.0, 1.0, 80), []
    part, column = path.partition, mech.coordinate_names.index(mech.actuated[0])
    for t in knots:
        q = path.state(t).q
        gamma = hc.project(mech, q, np.zeros(mech.nv), partition=part).gamma[:, 0]
        at = [
            hc.inverse_dynamics(mech, q, x * gamma / gamma[column], [y], partition=part).u[0]
            for x, y in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0))
        ]
        table.append((path.reference(t)[0][0], at[0], at[1] - at[0], at[2] - at[0]))
    x, still, inertia, speed = np.array(table)[::-1].T  # x ascends

    def slope(place, b, sign):  # b = xd^2, db/dx = 2 xdd
        held, a, c = (np.interp(place, x, y) for y in (still, inertia, speed))
        return 2.0 * (sign * most - held - c * b) / a

    ends, options = (here, here + way), {"rtol": 1e-9, "atol": 1e-9, "dense_output": True}
    up = solve_ivp(lambda p, b: slope(p, b, -1.0), ends, [0.0], **options).sol
    down = solve_ivp(lambda p, b: slope(p, b, 1.0), ends[::-1], [0.0], **options).sol
    grid = np.linspace(*ends, 4000)
    root = np.sqrt(np.maximum(np.minimum(up(grid)[0], down(grid)[0]), 0.0))
    least = float((2.0 * np.abs(np.diff(grid)) / (root[1:] + root[:-1])).sum())
    for method in METHODS:
        found = hc.retime(mech, [[here], [here + way]], hc.Limits(effort=most), 200, method)
        assert abs(found.duration - least) < 6e-3 * least


# --------------------------------------------------------------------------------- values by hand


def test_trajectories_that_contradict_themselves_are_refused():
    mech = robot("five_bar")
    here = home(mech)
    found = hc.retime(mech, [here, here + 0.2], "model", 20, "toppra")
    for dt in (np.nan, np.inf, -1e-3, "a"):
        with pytest.raises(hc.InputError, match="dt"):
            found.reference(0.0, dt)
    assert np.isfinite(found.reference(0.0, 1)[2]).all()
    with pytest.raises(hc.InputError, match="law ends at"):
        dataclasses.replace(found, t=2.0 * found.t)
    slower = dataclasses.replace(
        found, t=2.0 * found.t, v=0.5 * found.v, a=0.25 * found.a, curve=None, law=None
    )
    np.testing.assert_allclose(slower.state(found.duration).q, found.state(0.5 * found.duration).q,
                               atol=1e-4)  # fmt: skip
    passive_rests = found.v * [1.0, 0.0, 1.0, 0.0]
    with pytest.raises(hc.InputError, match=r"v\[1\].*contradicts the constraints"):
        hc.Trajectory(mech, found.t, found.q, passive_rests, found.a, found.u)
