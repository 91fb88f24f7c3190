"""Limited inverse dynamics: the program against its reference, and what it promises."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from inside import last_solve, prepared_of
from limited_situations import ROBOTS, limits_near, robot, situation
from support import few
from zoo import add_body, at, bar, vertical

import holoctl as hc
from holoctl.base.tolerances import SOFT_ROWS
from holoctl.control import limited_inverse_dynamics
from holoctl.control.nearest_by_cvxpy import by_cvxpy
from holoctl.control.nearest_efforts import by_daqp
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.limited_coordinates import change_in_a_tick

POLICIES = ("nearest", "scale")
QUICK = ("five_bar", "floating_leg", "five_motors")


KEPT = "policy", "dt", "metric", "preload", "solver"


def limited(s, limits, **options):
    """Limits with options of `WithinLimits`, and of the inverse dynamics."""
    own = {name: options.pop(name) for name in KEPT if name in options}
    options = {"partition": s.part, "inconsistent": "project"} | options
    within = hc.WithinLimits(limits, **own) if own else limits
    return hc.limited_inverse_dynamics(s.mech, s.q, s.v, s.target, within, **options)


def box(s, limits):
    return np.array(limits.effort, dtype=float).T


def check_promises(s, limits, found):
    """What holds whatever was asked for."""
    lower, upper = box(s, limits)
    assert (found.u >= lower).all()
    assert (found.u <= upper).all()
    assert found.certificate.ok
    if found.saturated:
        assert found.scale != 1.0
    else:
        assert found.scale == 1.0
        assert np.array_equal(found.u, s.u)
        assert np.array_equal(found.a, s.a)


@pytest.fixture
def programs(monkeypatch):
    """The programs that were solved, with what DAQP found."""
    solved = []

    def recorded(program):
        solved.append((program, by_daqp(program)))
        return solved[-1][1]

    monkeypatch.setattr(limited_inverse_dynamics, "by_daqp", recorded)
    return solved


def cost(program, found):
    d = found.x - program.x_cmd
    slack = np.zeros(0)
    if found.soft:
        rows = program.Y @ found.x
        slack = rows - np.clip(rows, program.y_lower, program.y_upper)
    return 0.5 * d @ program.H @ d + 0.5 / SOFT_ROWS * slack @ slack


def check_conditions(program, found):
    """Those of Karush, Kuhn and Tucker, scaled."""
    C = np.vstack([np.eye(found.x.size), program.Y])
    lower = np.concatenate([program.lower, program.y_lower])
    upper = np.concatenate([program.upper, program.y_upper])
    at, force = C @ found.x, found.multipliers
    size = max(1.0, np.abs(program.H @ program.x_cmd).max())
    assert np.abs(program.H @ (found.x - program.x_cmd) + C.T @ force).max() < 1e-10 * size
    if not found.soft:
        assert (at <= upper + 1e-10).all()
        assert (at >= lower - 1e-10).all()
        touched = np.where(force > 0.0, upper, lower)[force != 0.0]
        assert np.abs(at[force != 0.0] - touched).max(initial=0.0) < 1e-10


def many(name, seed, count, compared, policy, programs):
    """How many were unchanged, limited and softened; all of them looked at."""
    rng, tally = np.random.default_rng(seed), {"free": 0, "limited": 0, "soft": 0}
    for i in range(count):
        s = situation(name, rng)
        limits = limits_near(s, rng)
        programs.clear()
        found = limited(s, limits, policy=policy)
        check_promises(s, limits, found)
        for program, of_daqp in programs:
            check_conditions(program, of_daqp)
        tally["soft" if found.softened else "limited" if found.saturated else "free"] += 1
        if i < compared and found.saturated:
            other = limited(s, limits, policy=policy, solver="cvxpy")
            size = 1.0 + np.abs(s.mech.B.T @ np.array([s.a, found.a]).T).max()
            if np.abs(s.mech.B.T @ (found.a - other.a)).max() >= 1e-8 * size:
                ((program, of_daqp),) = programs  # then it is the reference that ends too early
                of_reference = by_cvxpy()(program)
                assert of_reference.soft == of_daqp.soft
                assert 0.0 < cost(program, of_reference) - cost(program, of_daqp) < 1e-11
    return tally


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", few(ROBOTS, QUICK))
def test_random_programs(name, policy, programs):
    tally = many(name, 7, 25, 6, policy, programs)
    assert tally["limited"] >= 8
    assert sum(tally.values()) - tally["limited"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ROBOTS)
def test_many_random_programs(name, policy, programs):
    tally = many(name, 11, 10_000, 300, policy, programs)
    assert min(tally.values()) >= 50


@pytest.mark.parametrize("name", few(ROBOTS, QUICK))
def test_one_that_limits_truly_limits(name):
    """Relaxing all that are named changes the motion; relaxing another changes nothing."""
    rng, relaxed = np.random.default_rng(3), 0
    for _ in range(25):
        s = situation(name, rng)
        size = np.abs(s.u).max()
        limits = hc.Limits(effort=[(-f * size, f * size) for f in rng.uniform(0.3, 1.5, s.u.size)])
        found = limited(s, limits)
        if np.abs(found.a - s.a).max() < 1e-5 * (1.0 + np.abs(s.a).max()):
            continue  # other motors do it
        gained = []
        for motor in s.mech.actuator_names:
            i = s.mech.actuator_names.index(motor)
            wider = [(1.05 * lo, 1.05 * hi) if j == i else (lo, hi)
                     for j, (lo, hi) in enumerate(limits.effort)]  # fmt: skip
            other = limited(s, hc.Limits(effort=wider))
            change = np.abs(other.a - found.a).max() / (1.0 + np.abs(s.a).max())
            if motor in found.saturated:
                gained.append(change)
            else:
                assert change < 1e-5  # a wider bound is another unit of its effort, too
        assert max(gained) > 1e-7
        relaxed += 1
    assert relaxed >= 5


@pytest.mark.parametrize("name", few([*ROBOTS, "four_bar"], [*QUICK, "four_bar"]))
@pytest.mark.parametrize("policy", POLICIES)
def test_ticks_and_loops_give_the_same(name, policy):
    rng, compared = np.random.default_rng(5), 0
    for _ in range(12):
        s = situation(name, rng)
        limits = limits_near(s, rng)
        ctl = hc.ComputedTorque(s.mech, 0.0, 0.0, partition=s.part, limits=limits, policy=policy)
        found, zero = limited(s, limits, policy=policy), np.zeros(s.mech.nu)
        u = ctl.torque(s.q, s.v, s.q, zero, s.target)
        size = 1.0 + np.abs(s.u).max()
        assert np.abs(u - found.u).max() < 1e-9 * size
        tracking = ctl.track(lambda t, s=s, zero=zero: (s.q, zero, s.target))
        assert np.abs(tracking(0.0, s.q, s.v) - found.u).max() < 1e-9 * size
        assert tracking.last.saturated == found.saturated
        assert tracking.last.softened == found.softened
        assert tracking.last.scale == pytest.approx(found.scale, abs=1e-9, nan_ok=True)
        compared += bool(found.saturated)
    assert compared >= 4


@pytest.mark.parametrize("name", few(["five_bar", "delta", "stewart", "floating_leg"], QUICK))
def test_ticks_do_not_forget_the_joints_where_motors_saturate(name):
    """Limits of joints are far from what was asked for, and not always from what can be done."""
    rng, by_joints, by_motors = np.random.default_rng(7), 0, 0
    for _ in range(20):
        s = situation(name, rng)
        effort = 0.3 * np.abs(s.u).max()
        alone = limited(s, hc.Limits(effort=effort))
        most = 1.05 * np.abs(s.a) + (0.1 if rng.random() < 0.7 else 1e4)
        names = s.mech.coordinate_names
        limits = hc.Limits(
            effort=effort,
            acceleration=dict(zip(names, most.tolist(), strict=True)),
            velocity=dict.fromkeys(names, 100.0),
        )
        ctl = hc.ComputedTorque(s.mech, 0.0, 0.0, partition=s.part, limits=limits)
        found, zero = limited(s, limits), np.zeros(s.mech.nu)
        tracking = ctl.track(lambda t, s=s, zero=zero: (s.q, zero, s.target))
        u = tracking(0.0, s.q, s.v)
        assert np.abs(u - found.u).max() < 1e-9 * (1.0 + np.abs(s.u).max())
        assert tracking.last.saturated == found.saturated
        assert tracking.last.softened == found.softened
        changed = np.abs(found.u - alone.u).max() > 1e-6 * np.abs(alone.u).max()
        by_joints, by_motors = by_joints + changed, by_motors + (not changed)
    assert by_joints >= 1
    assert by_motors >= 5


def test_the_nearest_is_the_nearest_of_many():
    """Gauss's measure of what was asked for, over the box: nothing tried is nearer."""
    rng = np.random.default_rng(1)
    for name in ROBOTS:
        s = situation(name, rng)
        size = 0.5 * np.abs(s.u).max()
        found = limited(s, hc.Limits(effort=size))
        M = hc.terms(s.mech, s.q, s.v).M

        def cost(u, s=s, M=M):
            tau = s.mech.B @ u
            a = hc.forward_dynamics(s.mech, s.q, s.v, tau, partition=s.part).a
            return (a - s.a) @ M @ (a - s.a)

        least = cost(found.u)
        assert least > 0.0
        for _ in range(40):
            other = np.clip(found.u + size * 0.1 * rng.normal(size=found.u.size), -size, size)
            assert cost(other) >= least * (1.0 - 1e-6)


def test_free_motors_keep_their_accelerations():
    """Where each motor drives a motion, those that are not limited do what was asked for."""
    rng = np.random.default_rng(2)
    for name in ("five_bar", "delta", "stewart"):
        s = situation(name, rng)
        i = int(np.argmax(np.abs(s.u)))
        motor = s.mech.actuated[i]
        found = limited(s, hc.Limits(effort={motor: 0.8 * abs(s.u[i])}))
        change = s.mech.B.T @ (found.a - s.a)
        assert found.saturated == (motor,)
        assert abs(change[i]) > 1e-3
        assert np.abs(np.delete(change, i)).max() < 1e-5 * abs(change[i])


def test_scaled_goes_along_what_was_asked_for():
    rng, seen = np.random.default_rng(4), 0
    for name in ("five_bar", "delta", "stewart", "five_motors"):
        for _ in range(6):
            s = situation(name, rng)
            still = hc.inverse_dynamics(
                s.mech, s.q, s.v, np.zeros(s.mech.nu), partition=s.part, inconsistent="project"
            )
            size = 1.1 * np.abs(still.u).max() + 0.1 * np.abs(s.u - still.u).max()
            found = limited(s, hc.Limits(effort=size), policy="scale")
            if found.scale == 1.0:
                continue
            expected = still.a + found.scale * (s.a - still.a)
            assert 0.0 <= found.scale < 1.0
            assert np.abs(found.a - expected).max() < 1e-8 * (1.0 + np.abs(s.a).max())
            assert np.abs(found.u).max() == pytest.approx(size, rel=1e-12)
            seen += 1
    assert seen >= 8


def test_past_a_limit_the_policy_raise_names_it():
    s = situation("five_bar", np.random.default_rng(6))
    motor = s.mech.actuated[1]
    limits = hc.Limits(effort={motor: 0.5 * abs(s.u[1])})
    with pytest.raises(hc.LimitError, match=motor) as caught:
        limited(s, limits, policy="raise")
    assert caught.value.names == (motor,)
    ctl = hc.ComputedTorque(s.mech, 0.0, 0.0, partition=s.part, limits=limits, policy="raise")
    with pytest.raises(hc.LimitError, match=motor):
        ctl.torque(s.q, s.v, s.q, [0.0, 0.0], s.target)
    wide = hc.Limits(effort=1e6)
    assert np.array_equal(limited(s, wide, policy="raise").u, s.u)


def test_near_a_singular_posture_efforts_stay_small():
    """Where the arms of a five-bar line up, motors without limits get any efforts."""
    mech = hc.load(hc.robot_file("five_bar"))
    part = hc.partition(mech, hc.assemble(mech)[0])
    q, v = hc.assemble(mech, [1.9, -0.45, 1.25, 0.45], restarts=0)
    limits = hc.Limits(effort=5.0)
    asked = hc.inverse_dynamics(mech, q, v, [1e6, -1e6], partition=part)
    assert np.abs(asked.u).max() > 1e3
    for policy in POLICIES:
        found = hc.limited_inverse_dynamics(
            mech, q, v, [1e6, -1e6], hc.WithinLimits(limits, policy), partition=part
        )
        assert np.abs(found.u).max() <= 5.0
        assert found.certificate.ok


# -------------------------------------------------------------------------- redundant motors


@pytest.mark.parametrize("preload", [[0.7, -0.4, 0.2, 0.5, -0.3], "least"])
def test_preload_leaves_the_motion(preload):
    s = situation("five_motors", np.random.default_rng(8))
    limits = hc.Limits(effort=(0.5, 500.0)) if preload == "least" else hc.Limits(effort=1e4)
    if preload == "least":
        still = np.zeros(s.mech.nu)
        s = replace(s, target=still)
    found = limited(s, limits, preload=preload)
    plain = hc.inverse_dynamics(
        s.mech, s.q, s.v, s.target, partition=s.part, inconsistent="project"
    )
    if preload != "least":
        assert np.abs(found.a - plain.a).max() < 1e-9 * (1.0 + np.abs(plain.a).max())
        assert np.linalg.norm(found.u - preload) < np.linalg.norm(plain.u - preload)
    else:
        assert found.u.min() >= 0.5
        assert np.abs(found.u - plain.u).max() > 0.1


def test_preload_needs_a_choice():
    s = situation("five_bar", np.random.default_rng(8))
    with pytest.raises(hc.InputError, match="leave no choice"):
        limited(s, hc.Limits(effort=1.0), preload=[0.0, 0.0])
    with pytest.raises(hc.InputError, match="least"):
        limited(s, hc.Limits(effort=1.0), preload="lest")


def test_cables_pull_only():
    """Where least-norm efforts push, redundant motors find some that pull, for the same motion."""
    rng, moved = np.random.default_rng(9), 0
    for _ in range(40):
        s = situation("five_motors", rng)
        limits = hc.Limits(effort=(0.0, 1e4))
        found = limited(s, limits)
        assert found.u.min() >= 0.0
        same = np.abs(found.a - s.a).max() < 1e-5 * (1.0 + np.abs(s.a).max())
        moved += same and s.u.min() < 0.0
    assert moved >= 1


def test_a_metric_of_ones_clips_what_is_decoupled():
    s = situation("delta", np.random.default_rng(10))
    size = 0.6 * np.abs(s.u).max()
    found = limited(s, hc.Limits(effort=size), metric=np.ones(3))
    assert np.abs(found.u - np.clip(s.u, -size, size)).max() < 1e-9 * size
    full = limited(s, hc.Limits(effort=size), metric=np.diag(np.ones(3)))
    assert np.array_equal(found.u, full.u)


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "clip"}, "policy"),
        ({"solver": "osqp"}, "solver"),
        ({"dt": 0.0}, "dt"),
        ({"metric": [1.0]}, "metric"),
        ({"metric": [1.0, -1.0]}, "positive definite"),
        ({"metric": [[1.0, 2.0], [0.0, 1.0]]}, "symmetric"),
        ({"metric": [np.nan, 1.0]}, "finite"),
        ({"preload": [1.0]}, "preload"),
    ],
)
def test_bad_options(options, message):
    s = situation("five_bar", np.random.default_rng(0))
    with pytest.raises(hc.InputError, match=message):
        limited(s, hc.Limits(effort=1.0), **options)


@pytest.mark.parametrize("target", [[np.nan, 0.0], [np.inf, 0.0], [0.0]])
def test_bad_targets(target):
    s = situation("five_bar", np.random.default_rng(0))
    with pytest.raises(hc.InputError, match="target"):
        limited(replace(s, target=target), hc.Limits(effort=1.0))


def test_what_is_no_limits():
    s = situation("five_bar", np.random.default_rng(0))
    with pytest.raises(hc.InputError, match="Limits"):
        limited(s, {"effort": 1.0})
    with pytest.raises(hc.InputError, match="Limits"):
        hc.ComputedTorque(s.mech, 1.0, 1.0, limits=5.0)
    with pytest.raises(hc.InputError, match="no motor"):
        hc.ComputedTorque(s.mech, 1.0, 1.0, limits=hc.Limits(effort={"nobody": 1.0}))


def test_positions_need_brakes():
    mech, part = robot("five_bar")
    limits = hc.Limits(position={mech.coordinate_names[0]: (-3.0, 3.0)})
    with pytest.raises(hc.InputError, match="braked"):
        hc.ComputedTorque(mech, 1.0, 1.0, partition=part, limits=limits)
    with_motors = hc.Limits(effort=5.0, position=limits.position)
    hc.ComputedTorque(mech, 1.0, 1.0, partition=part, limits=with_motors)


def test_limits_that_cannot_hold_the_reference_are_told(caplog):
    mech = hc.load(hc.robot_file("delta"))
    weak = mech.actuated[1]
    hc.ComputedTorque(mech, 1.0, 1.0, limits=hc.Limits(effort={weak: 1e-3}))
    assert any(weak in record.getMessage() for record in caplog.records)
    caplog.clear()
    hc.ComputedTorque(mech, 1.0, 1.0, limits=hc.Limits(effort=1e3))
    assert not caplog.records
    first = mech.coordinate_names[0]
    away = hc.Limits(effort=1e3, position={first: (5.0, 6.0)}, acceleration={first: 10.0})
    hc.ComputedTorque(mech, 1.0, 1.0, limits=away)
    assert any("position" in record.getMessage() for record in caplog.records)


def test_a_controller_with_limits_pickles():
    s = situation("stewart", np.random.default_rng(12))
    limits = hc.Limits(effort=0.5 * np.abs(s.u).max())
    ctl = hc.ComputedTorque(s.mech, 9.0, 6.0, limits=limits, policy="scale", ki=0.5, dt=2e-3)
    other = pickle.loads(pickle.dumps(ctl))
    assert other.limits == limits
    assert (other.policy, other.dt) == ("scale", 2e-3)
    assert np.array_equal(other.ki, ctl.ki)


@pytest.mark.parametrize("friction_at", ["reference", "measured"])
@pytest.mark.parametrize("policy", POLICIES)
def test_limits_of_joints_hold_under_the_friction_that_acts(friction_at, policy):
    """Friction compensated at the reference is not that of the motion: the acceleration that the
    forward dynamics give is what has to be within its bounds."""
    plain, _ = robot("five_bar")
    losses = hc.JointFriction({"motor_left": 0.3, "elbow_right": 0.1}, {"motor_right": 2.0})
    mech = plain.with_forces([losses])
    part, rng = hc.partition(mech, hc.assemble(mech)[0]), np.random.default_rng(13)
    elbow, most, kept = mech.coordinate_names.index("elbow_left"), 5.0, 0
    limits = hc.Limits(effort=50.0, acceleration={"elbow_left": most})
    ctl = hc.ComputedTorque(
        mech, 0.0, 0.0, partition=part, limits=limits, policy=policy, friction_at=friction_at
    )
    for _ in range(20):
        s = situation("five_bar", rng)
        v_ref = mech.motor_rates(s.v) + rng.normal(size=2)
        follow = ctl.track(lambda t, s=s, v_ref=v_ref: (s.q, v_ref, s.target))
        u = follow(0.0, s.q, s.v)
        a = hc.forward_dynamics(mech, s.q, s.v, mech.B @ u, partition=part).a[elbow]
        if not follow.last.softened and follow.last.saturated == ("elbow_left.acceleration",):
            assert abs(a) == pytest.approx(most, rel=1e-6)
            kept += 1
    assert kept >= 5


# ---------------------------------------------------------------------- what limits is named


@pytest.mark.parametrize("name", ["five_motors", "five_bar"])
@pytest.mark.parametrize("share", [1e-3, 1e-7, 1e-11, 1e-15])
def test_what_is_past_by_little_is_named(name, share):
    """Where motors are redundant, the motion loses next to nothing, and multipliers are small."""
    s = situation(name, np.random.default_rng(14))
    i = int(np.argmax(np.abs(s.u)))
    motor = s.mech.actuated[i]
    found = limited(s, hc.Limits(effort={motor: abs(s.u[i]) * (1.0 - share)}))
    assert found.saturated == (motor,)
    assert np.isnan(found.scale)


def test_what_is_past_by_rounding_is_clipped():
    """The largest part may be rounded to one: what was asked for is past its limit all the same."""
    rng, rounded = np.random.default_rng(0), 0
    s = situation("five_bar", rng)
    zero, free = np.zeros(2), hc.ComputedTorque(s.mech, 0.0, 0.0, partition=s.part)
    base = free.torque(s.q, s.v, s.q, zero, zero)
    for _ in range(60):
        target, i = s.target * 10.0 ** rng.uniform(-1.0, 1.0), int(rng.integers(2))
        u = free.torque(s.q, s.v, s.q, zero, target)
        last = np.nextafter(u[i], base[i])
        effort = {s.mech.actuated[i]: (-1e9, last) if u[i] > base[i] else (last, 1e9)}
        limits = hc.Limits(effort=effort)
        ctl = hc.ComputedTorque(s.mech, 0.0, 0.0, partition=s.part, limits=limits, policy="scale")
        loop = ctl.track(lambda t, target=target: (s.q, zero, target))
        here = loop(0.0, s.q, s.v)[i]
        assert here <= last if u[i] > base[i] else here >= last
        assert loop.last.saturated == (s.mech.actuated[i],)
        rounded += loop.last.scale == np.nextafter(1.0, 0.0)
    assert rounded >= 1


def test_a_motor_that_brakes_nothing_needs_no_limit():
    """Two mechanisms side by side: what the motors of one do to the other is rounding."""
    arms = pin.Model()
    loops = []
    for name, x in (("a", 0.0), ("b", 3.0)):
        left, right, rods = f"left_{name}", f"right_{name}", (f"one_{name}", f"two_{name}")
        for arm, rod, foot in ((left, rods[0], x), (right, rods[1], x + 0.5)):
            add_body(arms, 0, pin.JointModelRZ(), at(foot), arm, bar(0.4))
            add_body(arms, arm, pin.JointModelRZ(), at(0.4), rod, bar(0.5))
        loops.append(
            hc.Closure((rods[0], at(0.5)), (rods[1], at(0.5)), joint="revolute", name=name)
        )
    start = [2.0, -1.2, 1.0, 0.8, 2.0, -1.2, 1.0, 0.8]
    motors = ["left_a", "right_a", "left_b", "right_b"]
    mech = hc.Mechanism(arms, loops, motors, reference=start, name="two")
    q, _ = hc.assemble(mech)
    limits = hc.Limits(
        effort={"left_a": 5.0, "right_a": 5.0}, position={"left_a": (q[0] - 1.0, q[0] + 1.0)}
    )
    hc.ComputedTorque(mech, 1.0, 1.0, limits=limits)


# -------------------------------------------------------------------------------- friction


@pytest.mark.parametrize("joint", few(["motor_left", "elbow_left"], ["elbow_left"]))
def test_joints_are_limited_under_the_friction_that_acts(joint):
    """Friction is compensated as at the reference, which goes on where the joint has to stop."""
    mech = hc.load(hc.robot_file("five_bar"))
    coulomb = dict.fromkeys(mech.actuated, 2.0)
    mech = mech.with_forces([hc.JointFriction(coulomb=coulomb, viscous=0.01)])
    q, v = hc.assemble(mech)
    i, home = mech.coordinate_names.index(joint), mech.motor_positions(q)
    limits = hc.Limits(effort=20.0, position={joint: (q[i] - 0.2, q[i] + 0.2)})
    ctl = hc.ComputedTorque(mech, 400.0, 40.0, limits=limits)
    way, w = np.array([0.5, -0.5]), 3.0

    def reference(t):
        s, c = np.sin(w * t), np.cos(w * t)
        return home + way * s, w * way * c, -w * w * way * s

    run = hc.simulate(mech, ctl.track(reference), q, v, 1.0, integrator=hc.Integrator(rtol=1e-7))
    farthest = np.abs(run.q[:, i] - q[i]).max()
    assert 0.199 < farthest < 0.2 + 2e-4  # friction that changes its side within a tick


@pytest.mark.parametrize("name", ["five_bar", "floating_leg", "five_motors", "stewart"])
def test_the_acceleration_behind_a_tick_is_that_of_the_friction_that_acts(name):
    rng = np.random.default_rng(15)
    mech, part = robot(name)
    of = dict.fromkeys(mech.actuated, 1.5)
    mech = mech.with_forces([hc.JointFriction(coulomb=of, viscous=of)])
    part = hc.partition(mech, hc.assemble(mech)[0])
    s = situation(name, rng)
    limits = hc.Limits(acceleration=1e9)
    ctl = hc.ComputedTorque(mech, 0.0, 0.0, partition=part, limits=limits)
    rates = mech.B.T @ s.v + rng.normal(size=mech.nu)
    u = ctl.torque(s.q, s.v, s.q, rates, s.target)
    expected = hc.forward_dynamics(mech, s.q, s.v, mech.B @ u, partition=part).a
    found = last_solve(prepared_of(ctl)).acceleration(s.q, s.v, 0.0)
    assert np.abs(found - expected).max() < 1e-7 * (1.0 + np.abs(expected).max())
    assert np.abs(mech.B.T @ found - s.target).max() > 1e-3


@pytest.mark.parametrize("wide", [1e7, 1e12, 1e30, np.inf])
def test_efforts_that_are_wide_open_count_as_none(wide):
    """They are no unit for efforts: what limits joints is kept as without them."""
    mech, part = robot("five_bar")
    q, v = hc.assemble(mech)
    of_joints = {"elbow_left": 5.0}
    found, expected = (
        hc.limited_inverse_dynamics(
            mech, q, v, [200.0, -150.0], hc.Limits(effort=effort, acceleration=of_joints),
            partition=part,
        )
        for effort in (wide, None)
    )  # fmt: skip
    assert abs(found.a[mech.coordinate_names.index("elbow_left")]) == pytest.approx(5.0, rel=1e-6)
    assert np.allclose(found.u, expected.u, rtol=1e-7)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e7])
def test_what_gives_way_is_told_however_much_is_asked_for(size):
    mech, part = robot("five_bar")
    q, v = hc.assemble(mech)
    limits = hc.Limits(effort=0.5, acceleration={"elbow_left": 5.0})
    found = hc.limited_inverse_dynamics(mech, q, v, [size, -size], limits, partition=part)
    assert abs(found.a[mech.coordinate_names.index("elbow_left")]) > 6.0
    assert found.softened == ("elbow_left.acceleration",)


@pytest.mark.parametrize("policy", ["nearest", "scale"])
def test_what_is_lost_in_rounding_is_refused(policy):
    mech, part = robot("five_bar")
    q, v = hc.assemble(mech)
    limits = hc.WithinLimits(hc.Limits(effort=5.0), policy)
    with pytest.raises(hc.InputError, match="times their limits"):
        hc.limited_inverse_dynamics(mech, q, v, [1e12, 0.0], limits, partition=part)
    ctl = hc.ComputedTorque(mech, 0.0, 0.0, partition=part, limits=limits.limits, policy=policy)
    with pytest.raises(hc.InputError, match="times their limits"):
        ctl.torque(q, v, q, [0.0, 0.0], [1e12, 0.0])


def test_another_run_begins_anew():
    mech, part = robot("five_bar")
    q, v = hc.assemble(mech)
    home, rest = mech.motor_positions(q) + 0.1, np.zeros(2)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0, ki=500.0, partition=part)
    follow = ctl.track(lambda t: (home, rest, rest))
    first = hc.simulate(mech, follow, q, v, 0.05)
    follow.reset()
    again = hc.simulate(mech, follow, q, v, 0.05)
    assert np.array_equal(first.u, again.u)
    without = replace(follow, controller=hc.ComputedTorque(mech, 100.0, 20.0, partition=part))
    assert not without.last.integral.any()


# ------------------------------------------------------- speeds of passive joints within a tick


def short_five_bar(seed):
    """Two driven arms and two rods of random lengths and masses."""
    rng = np.random.default_rng(seed)
    lengths, ground = rng.uniform(0.2, 0.35, 4), rng.uniform(0.15, 0.4)
    model, mass = vertical(pin.Model()), rng.uniform(0.2, 1.0, 4)
    for i, (name, x) in enumerate((("left", 0.0), ("right", ground))):
        add_body(model, 0, pin.JointModelRZ(), at(x), name, bar(lengths[2 * i], mass[2 * i]))
        rod = bar(lengths[2 * i + 1], mass[2 * i + 1])
        add_body(model, name, pin.JointModelRZ(), at(lengths[2 * i]), f"{name}_rod", rod)
    loop = hc.Closure(("left_rod", at(lengths[1])), ("right_rod", at(lengths[3])), axes="x y")
    start = [2.2, -1.2, 0.9, 1.2]
    return hc.Mechanism(model, [loop], ["left", "right"], reference=start, name=f"short {seed}")


def run_fast(seed, dt, policy="nearest"):
    """By which share passive joints are faster than they may, at ticks and between, and when; when
    a limit was told to give way."""
    mech, rng = short_five_bar(seed), np.random.default_rng(1000 + seed)
    q, v = hc.assemble(mech)
    home, (amp, w, phase) = mech.motor_positions(q), rng.uniform(size=(3, 2))
    amp, w, phase = 0.3 + 0.6 * amp, 4.0 + 8.0 * w, 2.0 * np.pi * phase
    most, effort = rng.uniform(2.0, 8.0), rng.uniform(4.0, 20.0)
    limits = hc.Limits(effort=effort, velocity={"left_rod": most, "right_rod": most})

    def reference(t):
        at_t = home + amp * (np.sin(w * t + phase) - np.sin(phase))
        return at_t, amp * w * np.cos(w * t + phase), -amp * w * w * np.sin(w * t + phase)

    follow = hc.ComputedTorque(mech, 400.0, 40.0, limits=limits, policy=policy, dt=dt)
    follow, told = follow.track(reference), []

    def controller(t, q, v):
        u = follow(t, q, v)
        if follow.last.softened:
            told.append(t)
        return u

    n = round(0.5 / dt)
    often = np.arange(4 * n + 1) * (0.25 * dt)
    run = hc.simulate(
        mech,
        controller,
        q,
        v,
        n * dt,
        frequency=1.0 / dt,
        output=often,
        integrator=hc.Integrator(rtol=1e-8, at_actuation_singularity="record"),
    )
    return np.abs(run.v[:, [1, 3]]).max(axis=1) / most - 1.0, run.t, told


SPEEDS = [(12, 2e-3, "nearest"), (12, 1e-3, "nearest"), (5, 2e-3, "nearest"), (10, 2e-3, "scale")]


@pytest.mark.parametrize("case", few(SPEEDS, SPEEDS[:1]))
def test_speeds_of_passive_joints_are_kept_within_ticks(case):
    """Held efforts do not hold an acceleration: it changes within the tick."""
    seed, dt, policy = case
    over, _, told = run_fast(seed, dt, policy)
    assert -0.01 < over.max() <= 0.0  # the limit acts
    assert told == []


def test_a_speed_that_cannot_be_kept_is_told_before_it_is_passed():
    over, t, told = run_fast(14, 2e-3)
    assert over.max() > 0.01
    assert told[0] < t[over > 0.0][0]


def test_a_limit_that_is_passed_is_told_also_where_nothing_more_is_to_be_done():
    """What is asked for brakes by itself, and comes back unchanged."""
    mech = hc.load(hc.robot_file("five_bar"))
    q, _ = hc.assemble(mech)
    gamma = hc.project(mech, q, np.zeros(mech.nv)).gamma
    v = gamma @ np.linalg.solve(mech.B.T @ gamma, [1.0, 1.0])
    limits = hc.Limits(velocity={"motor_left": 0.9}, effort=1e3)
    wanted = mech.motor_positions(q), np.zeros(2), np.array([-100.0, -10.0])
    follow, free = (
        hc.ComputedTorque(mech, 100.0, 20.0, limits=x).track(lambda t: wanted)
        for x in (limits, None)
    )
    np.testing.assert_array_equal(follow(0.0, q, v), free(0.0, q, v))
    found = hc.limited_inverse_dynamics(mech, q, v, [-100.0, -10.0], limits)
    for told in (follow.last, found):
        assert told.scale == 1.0
        assert told.saturated == ()
        assert told.softened == ("motor_left.velocity",)


def test_a_motion_that_limits_turn_is_looked_at_once_more():
    """Where the bounds at the end of a tick lead to another motion, its end is another one too."""
    mech, dt = short_five_bar(3), 4e-3
    q = hc.assemble(mech, [2.1228, -1.0749, 1.2289, 1.6174])[0]
    home, amp = mech.motor_positions(q), np.array([0.58437, 0.62883])
    w, phase = np.array([10.44052, 11.68030]), np.array([3.81290, 4.28563])
    most = {"left": 4.48401, "left_rod": 4.18937, "right": 4.15247}
    limits = hc.Limits(effort=13.13724, velocity=most)

    def reference(t):
        at_t = home + amp * (np.sin(w * t + phase) - np.sin(phase))
        return at_t, amp * w * np.cos(w * t + phase), -amp * w * w * np.sin(w * t + phase)

    ctl = hc.ComputedTorque(mech, 4000.0, 120.0, limits=limits, policy="scale", dt=dt)
    run = hc.simulate(
        mech,
        ctl.track(reference),
        q,
        np.zeros(4),
        0.5,
        frequency=1.0 / dt,
        integrator=hc.Integrator(rtol=1e-8),
    )
    share = np.abs(run.v[:, :3]).max(axis=0) / list(most.values())
    assert 0.99 < share[0] < 1.0
    assert share.max() < 1.0


JERKED = {  # limits, effort, jump of the reference, ticks; before the tick the joint is at
    "0.74": ({"knee": 1.27, "push_rod": 5.4}, 25.0, [-0.776, -0.598, 0.141, 0.724], 3),
    "0.46": ({"knee": 5.14, "push_rod": 6.01}, 22.9, [0.489, 1.477, -0.279, 1.467], 7),
}


@pytest.mark.parametrize("name", JERKED)
def test_a_limit_is_kept_by_a_joint_that_is_slow_before_the_tick(name):
    """A leg jerked from rest: within one tick held efforts drive it from there past its limit."""
    (most, effort, jump, n), dt = JERKED[name], 4e-3
    mech, rest = hc.load(hc.robot_file("leg")), np.zeros(4)
    q, v = hc.assemble(mech)
    wanted = mech.motor_positions(q) + jump, rest, rest
    limits = hc.Limits(effort=effort, velocity=most)
    follow = hc.ComputedTorque(mech, 2e4, 141.0, limits=limits, dt=dt).track(lambda t: wanted)
    told = []

    def controller(t, q, v):
        u = follow(t, q, v)
        told.extend(follow.last.softened)
        return u

    often, exact = np.arange(4 * n + 1) * (0.25 * dt), hc.Integrator(rtol=1e-8)
    run = hc.simulate(
        mech, controller, q, v, n * dt, frequency=1 / dt, output=often, integrator=exact
    )
    columns = [mech.coordinate_names.index(joint) for joint in most]
    share = np.abs(run.v[:, columns]) / list(most.values())
    assert 0.8 < share.max() < 0.9
    assert told == []


def test_a_tick_on_is_what_the_mechanism_does():
    """By how much accelerations change within a tick, against the same motion integrated."""
    mech, dt = short_five_bar(12), 1e-3
    q, v = hc.assemble(mech, v_guess=[3.0, -4.0, 2.0, 1.0])
    bound = bound_limits(mech, hc.Limits(velocity={"left_rod": 5.0, "right_rod": 5.0}))
    u = np.array([2.0, -1.5])
    forward = hc.PreparedForwardDynamics(mech).acceleration
    tau = mech.B @ u
    found = change_in_a_tick(forward, mech, bound, q, v, forward(q, v, tau, 0.0), tau, 0.0, dt)
    run = hc.simulate(
        mech, lambda t, q, v: u, q, v, dt, integrator=hc.Integrator(rtol=1e-11, atol=1e-13)
    )
    ends = [forward(*x, mech.B @ u) for x in ((q, v), (run.q[-1], run.v[-1]))]
    assert found == pytest.approx((ends[1] - ends[0])[[1, 3]], rel=2e-2)
