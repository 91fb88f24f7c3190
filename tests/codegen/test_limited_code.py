"""Limits in machine code and in exported C: the efforts of Python, never beyond their limits."""

from __future__ import annotations

import ctypes
import pickle
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from exported import Exported, build_and_test, cmake, compilers, last_line, self_test
from support import few, mechanism

import holoctl as hc
from holoctl.control.effort_bounds import effort_bounds
from holoctl.mechanism.bound_limits import bound_limits

pytest.importorskip("casadi")

POLICIES = ("nearest", "scale")


def robot(name):
    return mechanism(name) if name in ZOO else hc.load(hc.robot_file(name))


ZOO = ("floating_leg", "three_motors", "five_bar_revolute", "universal_rods")


CASES = {
    "efforts": ("five_bar", {"effort": 3.0}),
    "joints": ("five_bar", {"effort": 3.0, "velocity": 2.0, "acceleration": 30.0}),
    "passive joints": ("five_bar", {
        "effort": 3.0, "velocity": {"elbow_left": 0.5},
        "acceleration": {"elbow_left": 20.0, "elbow_right": 10.0},
    }),
    "passive position": ("five_bar", {
        "effort": 3.0, "position": {"elbow_left": (-1.5, 1.4)},
        "acceleration": {"elbow_left": 50.0},
    }),
    "speed": ("five_bar", {
        "effort": {"motor_right": (-1.0, 4.0)},
        "speed_torque": {"motor_left": [(0.0, 4.0), (1.0, 3.0), (2.0, 0.5)]},
    }),
    "one side": ("five_bar", {"effort": {"motor_left": (0.5, 3.0)}}),
    "cut joint": ("five_bar_revolute", {
        "effort": 5.0, "velocity": {"tip": 1.0}, "position": {"tip": (-3.0, 3.0)},
        "acceleration": {"tip": 20.0},
    }),
    "cut ball": ("universal_rods", {
        "effort": 5.0, "velocity": {"ball[1]": 1.0}, "acceleration": {"ball[0]": 20.0},
    }),
    "stewart": ("stewart", {"effort": 30.0}),
    "delta": ("delta", {"effort": 0.8, "velocity": 1.0}),
    "leg": ("floating_leg", {
        "effort": 1.0, "acceleration": {"base[0]": 5.0}, "velocity": {"head[2]": 0.3},
    }),
    "redundant": ("three_motors", {"effort": 1.5}),
}  # fmt: skip
QUICK = ("joints", "redundant")


def controller(case, policy, **options):
    name, limits = CASES[case]
    return hc.ComputedTorque(
        robot(name), kp=400.0, kd=40.0, limits=hc.Limits(**limits), policy=policy, **options
    )


def ticks(mech, count, seed=0):
    """Random closed states with references a little off."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        guess = 0.1 * rng.normal(size=mech.nv) * mech.column_scale
        speed = rng.normal(size=mech.nv) * mech.column_scale
        try:
            q, v = hc.assemble(
                mech, pin.integrate(mech.model, mech.reference, guess), speed, restarts=0
            )
        except hc.AssemblyError:
            continue
        off = rng.normal(size=(3, mech.nu)) * rng.choice([0.0, 0.1, 1.0])
        q_ref = mech.motor_positions(q) + 0.05 * off[0]
        yield q, v, q_ref, mech.motor_rates(v) + 0.1 * off[1], 20.0 * off[2]


def agrees(found, expected):
    return np.abs(found - expected).max() <= 1e-9 * np.abs(expected).max()


def within(ctl, u, v):
    """Whether efforts are within what the motors give at these rates."""
    bound = bound_limits(ctl.mech, ctl.limits)
    lower, upper = effort_bounds(bound, ctl.mech.motor_rates(v))
    return (u >= lower).all() and (u <= upper).all()


def left_of(ctl, tick):
    """`scale` of Python, as C says it."""
    q, v, *wanted = tick
    loop = ctl.track(lambda t: tuple(wanted))
    loop(0.0, q, v)
    return -1.0 if np.isnan(loop.last.scale) else loop.last.scale


# ------------------------------------------------------------------------------- machine code


@pytest.mark.parametrize("case", few([*CASES], QUICK))
@pytest.mark.parametrize("policy", POLICIES)
def test_compiled_torque_is_that_of_python(case, policy):
    ctl = controller(case, policy)
    fast = hc.compile(ctl, ["torque"], flags=["-O0"])
    free = hc.ComputedTorque(ctl.mech, kp=400.0, kd=40.0)
    limited = good = 0
    for tick in ticks(ctl.mech, 40):
        good += 1
        u, expected = fast.torque(*tick), ctl.torque(*tick)
        assert agrees(u, expected)
        assert within(ctl, u, tick[1])
        limited += not agrees(u, free.torque(*tick))
    assert fast.fallbacks <= 0.1 * good
    assert limited >= 5


@pytest.mark.parametrize("policy", few(POLICIES, ["nearest"]))
def test_near_a_limit_of_velocity_bounds_hold_at_the_end_of_the_tick(policy, monkeypatch):
    """In machine code as in Python, where that changes the torque."""
    limits, dt = hc.Limits(effort=8.0, velocity={"elbow_left": 1.0, "elbow_right": 1.0}), 5e-3
    options = {"limits": limits, "policy": policy, "dt": dt}
    ctl = hc.ComputedTorque(robot("five_bar"), 400.0, 40.0, **options)
    with monkeypatch.context() as without:
        without.setattr("holoctl.control.limit_policies.NEAR_SPEED", np.inf)
        plain = hc.ComputedTorque(robot("five_bar"), 400.0, 40.0, **options)
        plain.torque(*next(iter(ticks(ctl.mech, 1))))  # its limits are prepared by now
    fast, changed = hc.compile(ctl, ["torque"], flags=["-O0"]), 0
    for tick in ticks(ctl.mech, 40):
        u = ctl.torque(*tick)
        assert agrees(fast.torque(*tick), u)
        changed += not agrees(plain.torque(*tick), u)
    assert changed >= 5
    assert fast.fallbacks <= 4


@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
def test_what_leads_near_a_limit_of_velocity_is_looked_at_too(policy, monkeypatch, tmp_path):
    """In machine code and in exported C as in Python: elbows that are slow before the tick."""
    mech = robot("five_bar")
    limits, dt = hc.Limits(effort=70.0, velocity={"elbow_left": 1.0, "elbow_right": 1.0}), 5e-3
    options = {"limits": limits, "policy": policy, "dt": dt}
    ctl = hc.ComputedTorque(mech, 2e4, 141.0, **options)
    with monkeypatch.context() as without:
        without.setattr("holoctl.control.limit_policies.TICKS_AHEAD", 0.0)
        plain = hc.ComputedTorque(robot("five_bar"), 2e4, 141.0, **options)
        plain.torque(*next(iter(ticks(mech, 1))))  # its limits are prepared by now
    fast, exported = hc.compile(ctl, ["torque"], flags=["-O0"]), Exported(ctl, tmp_path)
    passive, changed = [mech.coordinate_names.index(joint) for joint in limits.velocity], 0
    for q, v, *wanted in ticks(mech, 40):
        slow = v * min(1.0, 0.7 / np.abs(v[passive]).max())
        tick = (q, slow, wanted[0], mech.motor_rates(slow), 20.0 * wanted[2])
        u = ctl.torque(*tick)
        assert agrees(fast.torque(*tick), u)
        status, found = exported.call("torque", *tick)
        assert status in ("OK", "LIMITED")
        assert agrees(found, u)
        changed += not agrees(plain.torque(*tick), u)
    assert changed >= 5
    assert fast.fallbacks <= 4


FAST = {
    "gravity": ("five_bar", {"compensation": "gravity"}),
    "friction at the reference": ("five_bar", {"friction_at": "reference"}),
    "passive motions": ("floating_leg", {}),
}


@pytest.mark.parametrize("case", few([*FAST], ["friction at the reference"]))
@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
def test_near_a_limit_of_velocity_every_law_is_asked_a_tick_later(case, policy, tmp_path):
    """In machine code and in exported C as in Python."""
    name, options = FAST[case]
    mech, dt = robot(name), 4e-3
    if case.startswith("friction"):
        mech = mech.with_forces([hc.JointFriction(0.3, {"motor_left": 0.2})])
    named = mech.coordinate_names[-1] if case == "passive motions" else mech.coordinate_names[1]
    limits = hc.Limits(effort=20.0, velocity={named: 0.5})
    ctl = hc.ComputedTorque(mech, 400.0, 40.0, limits=limits, policy=policy, dt=dt, **options)
    fast, answered = hc.compile(ctl, ["torque"], flags=["-O0"]), 0
    exported = Exported(ctl, tmp_path)
    assert exported.has_torque or case == "passive motions"
    for tick in ticks(mech, 25):
        u = ctl.torque(*tick)
        assert agrees(fast.torque(*tick), u)
        if exported.has_torque:
            status, found = exported.call("torque", *tick)
            assert status not in ("OK", "LIMITED") or agrees(found, u)
            answered += status in ("OK", "LIMITED")
    assert fast.fallbacks <= 3
    assert not exported.has_torque or answered >= 20


def test_what_is_within_limits_is_unchanged():
    mech = robot("five_bar")
    wide = hc.Limits(effort=1e4, velocity=1e3, acceleration=1e6)
    options = {"kp": 400.0, "kd": 40.0}
    free = hc.compile(hc.ComputedTorque(mech, **options), ["torque"], flags=["-O0"])
    for policy in POLICIES:
        ctl = hc.ComputedTorque(mech, limits=wide, policy=policy, **options)
        fast = hc.compile(ctl, ["torque"], flags=["-O0"])
        for tick in ticks(mech, 10):
            # but for sums that a compiler puts together otherwise in another function
            np.testing.assert_allclose(fast.torque(*tick), free.torque(*tick), rtol=1e-12)


@pytest.mark.parametrize(
    "options",
    few([{"compensation": "gravity"}, {"friction_at": "reference"}, {"friction_at": "measured"}],
        [{"compensation": "gravity"}]),
)  # fmt: skip
@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
def test_compensations(policy, options):
    mech = robot("five_bar")
    losses = hc.JointFriction({"motor_left": 0.3, "elbow_right": 0.1}, {"motor_right": 0.2})
    mech = hc.Mechanism(
        mech.model, mech.constraints, mech.actuated, reference=mech.reference, forces=[losses]
    )
    limits = hc.Limits(effort=3.0, acceleration={"elbow_left": 30.0})
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0, limits=limits, policy=policy, **options)
    fast = hc.compile(ctl, ["torque"], flags=["-O0"])
    for tick in ticks(mech, 30):
        assert agrees(fast.torque(*tick), ctl.torque(*tick))
    assert fast.fallbacks <= 3


def test_policy_raise_raises_from_machine_code():
    ctl = controller("efforts", "raise")
    fast, mech = hc.compile(ctl, ["torque"], flags=["-O0"]), ctl.mech
    free = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    raised = 0
    for tick in ticks(mech, 20):
        past = np.abs(u := free.torque(*tick)) > 3.0
        if not past.any():
            assert agrees(fast.torque(*tick), u)
            continue
        raised += 1
        with pytest.raises(hc.LimitError) as found:
            fast.torque(*tick)
        assert found.value.names == tuple(np.array(mech.actuator_names)[past])
    assert raised


@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
def test_torque_from_motors_in_machine_code(policy):
    ctl = controller("joints", policy)
    fast, python, mech = hc.compile(ctl, ["torque"], flags=["-O0"]).loop(), ctl.loop(), ctl.mech
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    limited = 0
    for k in range(40):
        q = hc.assemble(mech, pin.integrate(mech.model, q, 1e-3 * v))[0]
        q_m, v_m = mech.motor_positions(q), mech.motor_rates(v)
        wanted = q_m + (0.1 if k % 2 else 0.0), v_m, np.zeros(mech.nu)
        u, expected = (x.torque_from_motors(q_m, v_m, *wanted) for x in (fast, python))
        assert agrees(u, expected)
        limited += bool(python.last.saturated)
    assert limited > 10


def test_a_pickle_keeps_its_limits():
    ctl = controller("efforts", "scale")
    fast = hc.compile(ctl, ["torque"], flags=["-O0"])
    again = pickle.loads(pickle.dumps(fast))
    assert again.controller.limits == ctl.limits
    for tick in ticks(ctl.mech, 5):
        np.testing.assert_array_equal(again.torque(*tick), fast.torque(*tick))


def test_hostile_input_of_machine_code():
    ctl = controller("speed", "nearest")
    fast, rng = hc.compile(ctl, ["torque"], flags=["-O0"]), np.random.default_rng(2)
    for tick in ticks(ctl.mech, 60):
        q, v, *wanted = tick
        wanted = [x * 10.0 ** rng.uniform(0.0, 12.0) for x in wanted]
        try:
            u = fast.torque(q, v, *wanted)
        except hc.HoloctlError:
            continue
        assert within(ctl, u, v)


# ----------------------------------------------------------------------------------- exported C


@pytest.mark.parametrize("sanitize", few(["OFF", "ON"], ["ON"]))
@pytest.mark.parametrize("case", few(["joints", "stewart", "cut joint", "leg"], ["joints"]))
@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
def test_strict_build_and_self_test(case, policy, sanitize, tmp_path):
    cmake()
    hc.export_c(controller(case, policy), tmp_path)
    option = f"-DHOLOCTL_SANITIZE={sanitize}"
    assert "all is well" in build_and_test(tmp_path, compilers()[0], option)


@pytest.mark.parametrize("case", few([*CASES], ["joints"]))
@pytest.mark.parametrize("policy", POLICIES)
def test_exported_torque_is_that_of_python(case, policy, tmp_path):
    ctl = controller(case, policy)
    exported, statuses = Exported(ctl, tmp_path), set()
    for tick in ticks(ctl.mech, 40):
        status, u = exported.call("torque", *tick)
        assert within(ctl, u, tick[1])
        if status not in ("OK", "LIMITED"):
            continue
        statuses.add(status)
        assert agrees(u, ctl.torque(*tick))
        scale = exported.c.scale
        assert (scale == 1.0) == (status == "OK")
        assert scale == pytest.approx(left_of(ctl, tick), abs=1e-9)
    assert "LIMITED" in statuses


@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
def test_exported_gravity_and_inverse_dynamics(policy, tmp_path):
    ctl = controller("joints", policy, compensation="gravity")
    exported, rng = Exported(ctl, tmp_path), np.random.default_rng(5)
    for tick in ticks(ctl.mech, 30):
        status, u = exported.call("torque", *tick)
        assert status in ("OK", "LIMITED")
        assert agrees(u, ctl.torque(*tick))
        target = 50.0 * rng.normal(size=ctl.mech.nu)
        status, u = exported.call("inverse_dynamics", *tick[:2], target)
        found = hc.limited_inverse_dynamics(
            ctl.mech,
            *tick[:2],
            target,
            hc.WithinLimits(ctl.limits, policy),
            partition=ctl.partition,
        )
        assert (status == "OK") == (found.scale == 1.0)
        assert agrees(u, found.u)


@pytest.mark.slow
def test_torque_from_motors_in_exported_c(tmp_path):
    ctl = controller("joints", "scale")
    exported, loop, mech = Exported(ctl, tmp_path), ctl.loop(), ctl.mech
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    seen = set()
    for k in range(40):
        q = hc.assemble(mech, pin.integrate(mech.model, q, 1e-3 * v))[0]
        q_m, v_m = mech.motor_positions(q), mech.motor_rates(v)
        given = q_m, v_m, q_m + (0.1 if k % 2 else 0.0), v_m, np.zeros(mech.nu)
        status, u = exported.call("torque_from_motors", *given)
        seen.add(status)
        assert agrees(u, loop.torque_from_motors(*given))
    assert seen == {"OK", "LIMITED"}


def test_a_held_torque_is_within_limits_at_the_present_rates(tmp_path):
    """At rest more is held than a motor gives when it is fast; what it pulls at least, always."""
    limits = hc.Limits(
        effort={"motor_right": (0.5, 4.0)},
        speed_torque={"motor_left": [(0.0, 4.0), (1.0, 3.0), (2.0, 0.5)]},
    )
    mech = robot("five_bar")
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0, limits=limits)
    exported = Exported(ctl, tmp_path, in_trouble="hold")
    q, v = hc.assemble(mech)
    q_ref, rest = mech.motor_positions(q) + np.array([1.0, 0.0]), np.zeros(2)
    status, held = exported.call("torque", q, v, q_ref, rest, rest)
    assert status == "LIMITED"
    assert held[0] == 4.0
    _, fast = hc.assemble(mech, q, 100.0 * np.ones(4))
    fast *= np.sign(fast[0])
    broken = q + np.array([0.0, 0.3, 0.0, 0.0])
    status, u = exported.call("torque", broken, fast, q_ref, rest, rest)
    assert status == "OPEN"
    assert u[0] == 0.5
    assert within(ctl, u, fast)
    status, u = exported.call("torque", q, np.nan * v, q_ref, rest, rest)
    assert status == "NOT_FINITE"
    assert within(ctl, u, fast)
    exported.c.in_trouble = 1
    status, u = exported.call("torque", broken, v, q_ref, rest, rest)
    np.testing.assert_array_equal(u, [0.0, 0.5])
    exported.c = exported.struct()
    status, u = exported.call("torque", q, v, q_ref, rest, rest)
    assert status == "BUILD"
    np.testing.assert_array_equal(u, [0.0, 0.5])


def test_behind_what_is_held_comes_what_is_nearest_to_zero(tmp_path):
    """A motor that must not give zero, such as that of a cable, goes on pulling."""
    mech = robot("five_bar")
    limits = hc.Limits(effort={"motor_left": 5.0, "motor_right": (0.5, 4.0)})
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0, limits=limits)
    exported = Exported(ctl, tmp_path, hold_limit=2)
    q, v = hc.assemble(mech)
    q_ref, rest = mech.motor_positions(q) + np.array([1.0, 0.3]), np.zeros(2)
    status, held = exported.call("torque", q, v, q_ref, rest, rest)
    assert status == "LIMITED"
    found = [exported.call("torque", q, np.nan * v, q_ref, rest, rest) for _ in range(4)]
    assert [status for status, _ in found] == ["NOT_FINITE"] * 2 + ["EXPIRED"] * 2
    np.testing.assert_array_equal([u for _, u in found], [held] * 2 + [[0.0, 0.5]] * 2)


@pytest.mark.parametrize("policy", few(POLICIES, ["scale"]))
def test_hostile_input_of_exported_c(policy, tmp_path):
    ctl = controller("passive joints", policy)
    exported, rng = Exported(ctl, tmp_path), np.random.default_rng(8)
    bound = bound_limits(ctl.mech, ctl.limits)
    exported.c.closure_limit = exported.c.velocity_limit = np.inf
    states = list(ticks(ctl.mech, 20))
    for k in range(4000):
        tick = [np.array(x) for x in states[k % len(states)]]
        for x in tick[k % 2 * 2 :]:
            if rng.uniform() < 0.5:
                x[rng.integers(x.size)] = rng.normal() * 10.0 ** rng.uniform(-300.0, 300.0)
        if k % 7 == 0:
            tick[rng.integers(5)][0] = rng.choice([np.nan, np.inf, -np.inf])
        for given in (("torque", *tick), ("inverse_dynamics", tick[0], tick[1], tick[4])):
            _, u = exported.call(*given)
            assert (u >= bound.effort[0]).all()
            assert (u <= bound.effort[1]).all()


def test_what_cannot_be_made_into_code(tmp_path):
    with pytest.raises(hc.InputError, match="policy='raise'"):
        hc.export_c(controller("efforts", "raise"), tmp_path)
    ctl = hc.ComputedTorque(robot("five_bar"), kp=1.0, kd=1.0, ki=2.0)
    with pytest.raises(hc.InputError, match="integral action ki"):
        hc.export_c(ctl, tmp_path)


def test_the_header_tells_the_limits(tmp_path):
    header = hc.export_c(controller("passive joints", "scale"), tmp_path)[0].read_text()
    assert "-3 to 3: motor_left" in header
    assert "elbow_left: velocity -0.5 to 0.5, acceleration -20 to 20" in header
    assert "double scale;" in header
    other = hc.export_c(hc.ComputedTorque(robot("five_bar"), kp=1.0, kd=1.0), tmp_path)[0]
    assert "double scale;" not in other.read_text()


@pytest.mark.slow
def test_the_text_of_the_status(tmp_path):
    exported = Exported(controller("efforts", "scale"), tmp_path)
    assert "limits" in exported.text(12)
    assert ctypes.sizeof(exported.struct) > 0


def test_a_self_test_knows_how_many_digits_redundant_motors_leave(tmp_path):
    """Two motions and four motors: what moves nothing is worth next to nothing, so its digits are
    not those of Python."""
    five_bar = robot("five_bar")
    mech = replace(five_bar, actuated=five_bar.coordinate_names, name="four_motors")
    exported = Exported(mech, tmp_path, limits=hc.Limits(effort=1.0), measured="all")
    made, error = self_test(tmp_path, exported.paths, compilers()[0], "-O1")
    assert not error
    code, said = last_line(made)
    assert (code, "all is well" in said) == (0, True), said


@pytest.mark.parametrize("policy", POLICIES)
def test_commands_that_lose_too_many_digits_are_overflow(tmp_path, policy):
    """As Python refuses them: test_what_is_lost_in_rounding_is_refused."""
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    ctl = hc.ComputedTorque(mech, 0.0, 0.0, limits=hc.Limits(effort=5.0), policy=policy)
    exported = Exported(ctl, tmp_path)
    home, rest = mech.motor_positions(q), np.zeros(2)
    for size, status in ((1e6, "LIMITED"), (1e12, "OVERFLOW")):
        found, _ = exported.call("torque", q, v, home, rest, [size, 0.0])
        assert found == status
