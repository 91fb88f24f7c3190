"""What follows a reference in machine code makes the same run as in Python, and tells the same."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from functools import partial

import numpy as np
import overconstrained as oc
import pytest
from expressed import ca
from refusals import refused
from support import few
from test_task_code import on_the_way

import holoctl as hc

pytestmark = pytest.mark.skipif(ca is None, reason="needs casadi")

quickly_built = partial(hc.compile, flags=["-O0"])

SAME, SENSED = 1e-12, 1e-11
"""Relative; where states are found by two machines, these differ by rounding times the gains."""

DURATION = 0.06
ROBOTS, BOTH = ("four_bar", "delta", "stewart", "leg"), ("plain", "integral, nearest")

KINDS = {
    "plain": {},
    "gravity": {"compensation": "gravity"},
    "nearest": {"limits": True},
    "scale": {"limits": True, "policy": "scale"},
    "of joints": {"limits": True, "joints": True},
    "integral": {"ki": 2000.0},
    "integral, gravity": {"ki": 500.0, "compensation": "gravity"},
    "integral, nearest": {"ki": 2000.0, "limits": True},
    "integral, scale": {"ki": 2000.0, "limits": True, "policy": "scale"},
    "integral, gravity, nearest": {"ki": 500.0, "compensation": "gravity", "limits": True},
    "integral, of joints": {"ki": 2000.0, "limits": True, "joints": True},
}


def made(name, kind):
    """A controller, where it starts, and a reference that asks for more than the limits allow."""
    mech, options = hc.load(hc.robot_file(name)), dict(KINDS[kind])
    q, v = hc.assemble(mech)
    home, n = mech.motor_positions(q), mech.nu
    uneven = (-1.0) ** np.arange(n) * np.linspace(1.0, 1.3, n)
    limited, of_joints = (options.pop(x, False) for x in ("limits", "joints"))
    gains = (20.0, 2.0) if options.get("compensation") == "gravity" else (400.0, 40.0)

    def reference(t):
        step = 0.05 if t > 0.02 else 0.0
        s, c = 0.05 * np.sin(3.0 * t) + step, 0.15 * np.cos(3.0 * t)
        return home + s * uneven, np.full(n, c), np.full(n, -0.45 * np.sin(3.0 * t))

    ctl = hc.ComputedTorque(mech, *gains, **options)
    if limited:
        free = hc.simulate(mech, ctl.track(reference), q, v, DURATION)
        joints = {mech.actuator_names[0]: 20.0} if of_joints else None
        limits = hc.Limits(effort=0.8 * np.abs(free.u).max(), acceleration=joints)
        ctl = dataclasses.replace(ctl, limits=limits)
    return ctl, (q, v), reference


def run_of(follow, start, told, dynamics):
    def controller(t, q, v):
        u = follow(t, q, v)
        told.append((follow.last.saturated, follow.last.scale, follow.last.integral))
        return u

    plant = follow.controller.mech
    return hc.simulate(plant, controller, *start, DURATION, plant=dynamics)


def assert_same_run(found, expected, same=SAME):
    for name in ("q", "v", "u"):
        x, y = getattr(found, name), getattr(expected, name)
        assert np.abs(x - y).max() <= same * max(1.0, np.abs(y).max()), name


def assert_same_reports(found, expected):
    assert len(found) == len(expected)
    for (names, scale, integral), (others, other, wanted) in zip(found, expected, strict=True):
        assert names == others
        assert scale == pytest.approx(other, rel=1e-9, nan_ok=True)
        assert np.allclose(integral, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "kind"),
    [*(("five_bar", kind) for kind in KINDS), *((name, kind) for kind in BOTH for name in ROBOTS)],
)
def test_a_run_is_that_of_the_controller_in_python(name, kind):
    ctl, start, reference = made(name, kind)
    fast = quickly_built(ctl, ["forward_dynamics", "torque"])
    told, expected = [], []
    found = run_of(fast.track(reference), start, told, fast)
    wanted = run_of(ctl.track(reference), start, expected, fast)
    assert_same_run(found, wanted)
    assert_same_reports(told, expected)
    if "limits" in KINDS[kind]:
        assert any(names for names, _, _ in told)
        assert "gravity" in kind or not all(names for names, _, _ in told)
    if "ki" in KINDS[kind]:
        assert np.abs(told[-1][2]).max() > 0.0


@pytest.mark.parametrize("kind", few(list(KINDS), ["plain", "integral, nearest"]))
def test_a_run_from_the_motors_is_that_of_the_controller_in_python(kind):
    ctl, start, reference = made("five_bar", kind)
    fast = quickly_built(ctl, ["forward_dynamics", "torque", "state"])
    runs = [
        hc.simulate(
            ctl.mech,
            law.track_from_motors(reference),
            *start,
            DURATION,
            plant=fast,
            sensors=hc.Sensors(),
        )
        for law in (fast, ctl)
    ]
    assert_same_run(*runs)


@pytest.mark.parametrize("kind", ["integral", "integral, nearest"])
def test_loops_integrate_as_in_python(kind):
    ctl, (q, v), reference = made("five_bar", kind)
    fast = quickly_built(ctl, ["torque", "state"])
    loop, other = fast.loop(), ctl.loop()
    x, rates = ctl.mech.motor_positions(q), ctl.mech.motor_rates(v)
    for k in range(200):
        t = 1e-3 * k
        given = x + 1e-4 * np.sin(30.0 * t), rates + 3e-3 * np.cos(30.0 * t), *reference(t), t
        u = loop.torque_from_motors(*given)
        assert u == pytest.approx(other.torque_from_motors(*given), rel=1e-9, abs=1e-10)
        assert loop.last.saturated == other.last.saturated
        assert loop.last.integral == pytest.approx(other.last.integral, rel=1e-9, abs=1e-12)
    assert np.abs(loop.last.integral).max() > 0.0
    loop.reset(q)
    assert not loop.last.integral.any()


def test_the_integral_remembers_so_torque_alone_has_none():
    ctl, (q, v), reference = made("five_bar", "integral")
    fast = quickly_built(ctl, ["torque"])
    for law in (fast, ctl):
        refused(lambda law=law: law.torque(q, v, *reference(0.0)), hc.InputError, "ki", "track")
    follow = fast.track(reference)
    follow(0.1, q, v)
    follow(0.1, q, v)
    again = pickle.loads(pickle.dumps(fast.track(standing)))
    assert np.array_equal(again(0.0, q, v), fast.track(standing)(0.0, q, v))
    assert follow.last.integral.any()
    follow.reset()
    assert not follow.last.integral.any()
    assert copy.copy(follow).last.integral.tolist() == [0.0, 0.0]


def standing(t):
    """A reference that can be pickled."""
    return np.array([0.1, -0.1]), np.zeros(2), np.zeros(2)


@pytest.mark.parametrize("ki", [0.0, 30.0])
def test_where_coordinates_wear_the_controller_in_python_goes_on(ki):
    mech = oc.drawn("line_symmetric_bricard")[1]
    q, v = hc.assemble(mech)
    home = mech.motor_positions(q)

    def reference(t):
        return home + 12.0 * t, np.array([12.0]), np.zeros(1)

    v = hc.project(mech, q, v).gamma @ [12.0]
    v = v * (12.0 / mech.motor_rates(v)[0])
    ctl = hc.ComputedTorque(mech, 100.0, 20.0, ki=ki)
    fast = quickly_built(ctl, ["torque"])
    seen = []

    def simulated(follow):
        told = [follow]

        class Noted:
            def __call__(self, t, q, v):
                return told[-1](t, q, v)

            def repartitioned(self, q, v, t):
                told.append(told[-1].repartitioned(q, v, t))
                return self

        run = hc.simulate(mech, Noted(), q, v, 0.5)
        seen.append([type(x.controller).__name__ for x in told])
        return run

    found, wanted = simulated(fast.track(reference)), simulated(ctl.track(reference))
    assert_same_run(found, wanted)
    assert seen[0][0] == "Compiled"
    assert seen[0][-1] == "ComputedTorque"
    assert fast.repartitioned(q, v) is fast


def test_a_loop_of_a_thread_goes_on_in_python():
    mech = oc.drawn("line_symmetric_bricard")[1]
    q, _ = hc.assemble(mech)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    fast, home = quickly_built(ctl, ["torque"]), mech.motor_positions(q)
    zero = np.zeros(1)
    sensors, rest, other = hc.ClosedStateEstimator(mech), np.zeros(mech.nv), fast
    for k in range(320):
        x = home + 0.02 * k
        u = other.torque_from_motors(x, zero, home, zero, zero)
        there, _ = sensors.state(x, zero)
        assert u == pytest.approx(ctl.torque(there, rest, home, zero, zero), rel=1e-7)
        other, ctl = other.repartitioned(there, rest), ctl.repartitioned(there, rest)
    assert isinstance(other, hc.ComputedTorque)


@pytest.mark.parametrize("at_singular", ["raise", "damp"])
def test_tasks_are_followed_as_in_python(at_singular):
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    tip = hc.FrameTask("tip_right", "x z")
    here = hc.task_terms(hc.project(mech, q, v), tip).value

    def reference(t):
        return here + 0.02 * np.sin(5.0 * t), np.full(2, 0.1 * np.cos(5.0 * t)), np.zeros(2)

    for ctl in (
        hc.TaskSpaceControl(mech, tip, 400.0, 40.0, at_singular=at_singular),
        hc.Impedance(mech, tip, 500.0, "critical", at_singular=at_singular),
    ):
        fast, model = quickly_built(ctl), quickly_built(mech, ["forward_dynamics"])
        follow, other = fast.track(reference), ctl.track(reference)
        given = {"plant": model}
        assert_same_run(*(hc.simulate(mech, x, q, v, 0.05, **given) for x in (follow, other)))
        assert follow.last.damping == pytest.approx(other.last.damping, abs=1e-12)
        given["sensors"] = hc.Sensors()
        runs = (
            hc.simulate(mech, x.track_from_motors(reference), q, v, 0.05, **given)
            for x in (fast, ctl)
        )
        assert_same_run(*runs, SENSED)
        assert fast.repartitioned(q, v) is fast


def test_what_limits_a_compiled_loop_is_not_told():
    """Rather than that nothing does."""
    ctl, (q, _), _ = made("five_bar", "nearest")
    loop = quickly_built(ctl, ["torque", "state"]).loop()
    x = ctl.mech.motor_positions(q)
    loop.torque_from_motors(x, np.zeros(2), x + 1.0, np.zeros(2), np.zeros(2))
    refused(lambda: loop.last, hc.InputError, "machine code", "track(reference)")
    free, *_ = made("five_bar", "plain")
    loop = quickly_built(free, ["torque", "state"]).loop()
    loop.torque_from_motors(x, np.zeros(2), x, np.zeros(2), np.zeros(2))
    assert loop.last.saturated == ()
    assert loop.last.estimator is None
    assert free.loop().last.estimator is not None


def test_what_is_asked_is_kept_as_it_was():
    """`last` is of the call, also where its arrays have been written to since."""
    ctl, (q, v), _ = made("five_bar", "nearest")
    given = [q.copy(), v.copy()]
    wanted = [ctl.mech.motor_positions(q) + 1.0, np.zeros(2), np.zeros(2)]
    follow = quickly_built(ctl, ["torque"]).track(lambda t: wanted)
    other = ctl.track(lambda t: wanted)
    for x in (follow, other):
        x(0.0, *given)
    expected = other.last.saturated
    assert expected
    wanted[0][:], given[1][:] = ctl.mech.motor_positions(q), 0.0
    assert follow.last.saturated == expected


def test_what_was_asked_is_forgotten_by_a_reset_and_copied_with_the_memory():
    ctl, (q, v), _ = made("five_bar", "plain")
    ctl = dataclasses.replace(ctl, limits=hc.Limits(effort=4.0))
    home, rest = ctl.mech.motor_positions(q), np.zeros(2)
    fast = quickly_built(ctl, ["torque"])
    damped = hc.TaskSpaceControl(
        ctl.mech, hc.FrameTask("tip_right", "x z"), 400.0, 40.0, at_singular="damp"
    )
    stretched = on_the_way()[-1][1]
    for controller in (ctl, fast):
        follow = controller.track(lambda t: (home + 1.0 - t, rest, rest))
        follow(0.0, q, v)
        again = copy.deepcopy(follow)
        follow.reset()
        assert follow.last.saturated == ()
        assert again.last.saturated
        again(1.0, q, v)
        assert copy.copy(again).last.saturated == ()
    for controller in (damped, quickly_built(damped)):
        follow = controller.track(lambda t: [0.1, 0.5])
        follow(0.0, stretched, np.zeros(4))
        follow.reset()
        assert follow.last.damping == 0.0
        follow(0.0, stretched, np.zeros(4))
        assert follow.last.damping > 0.0


def test_what_cannot_follow_says_so():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    bare = quickly_built(mech, ["inverse_dynamics"])
    for track in (bare.track, bare.track_from_motors):
        refused(lambda track=track: track(standing), hc.InputError, "torque was not compiled")
    refused(lambda: bare.repartitioned(q, v), hc.InputError, "torque was not compiled")
    ctl, start, reference = made("five_bar", "integral")
    fast = quickly_built(ctl, ["torque"])
    refused(lambda: fast.track(3), hc.InputError, "reference")
    refused(
        lambda: hc.simulate(ctl.mech, fast, *start, 0.01), hc.InputError, "ctl.track(reference)"
    )
    follow = fast.track(reference)
    refused(
        lambda: hc.simulate(ctl.mech, follow, *start, 0.01, frequency=500.0),
        hc.InputError,
        "dt=0.002",
    )
    refused(
        lambda: hc.simulate(ctl.mech, follow, *start, 0.01, integrator=hc.Integrator(hold=False)),
        hc.InputError,
        "ki",
    )
    refused(
        lambda: hc.simulate(ctl.mech, follow, *start, 0.01, sensors=hc.Sensors()),
        hc.InputError, "track_from_motors",
    )  # fmt: skip
    virtual = hc.compile(ctl, ["torque"], machine="vm")
    assert np.allclose(virtual.track(reference)(0.0, *start), follow(0.0, *start), atol=1e-9)
    refused(virtual.loop, hc.InputError, "virtual machine")
