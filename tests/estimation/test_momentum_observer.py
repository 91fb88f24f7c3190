"""`MomentumObserver`: what acts on the motions, by the motion alone."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
import threading
from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from support import ROOT, ZOO, few, mechanism, relative
from zoo import slider_crank

import holoctl as hc
from holoctl.estimation.reduced_dynamics import in_general, reduced_motion
from holoctl.mechanism.open_tree import external_efforts

GAIN, RATE = 100.0, 1000.0


@cache
def robot(name):
    if name == "biped":
        folder = str(ROOT / "benchmarks")
        if folder not in sys.path:
            sys.path.append(folder)
        return importlib.import_module("mechanisms").biped()
    return hc.load(hc.robot_file(name)) if name in hc.robot_names() else mechanism(name)


def gamma_of(mech, part, q, v, t=0.0):
    return hc.project(mech, q, v, "split", partition=part, t=t).gamma


def pushed(mech, part, q, v, load, t=0.0):
    """What a load does to the motions."""
    P = hc.project(mech, q, v, "split", partition=part, t=t)
    return P.gamma.T @ external_efforts(mech, P.kinematics, load)


def at_rest(mech, q, load=None):
    """The efforts on the coordinates with which nothing moves, while a load acts."""
    T = hc.terms(mech, q, np.zeros(mech.nv))
    return T.h - T.F - external_efforts(mech, T.kinematics, load)


# ------------------------------------------------------------------------------------ a push

PUSHES = {
    "five_bar": ("tip", [2.0, 0.0, 1.0, 0.0, 0.0, 0.0]),
    "delta": ("platform", [1.0, 2.0, -1.0, 0.0, 0.0, 0.0]),
    "stewart": ("platform", [10.0, 5.0, -8.0, 1.0, 2.0, -1.0]),
    "biped": ("base", [20.0, 10.0, -15.0, 2.0, 1.0, 3.0]),
    "floating_leg": ("knee", [3.0, 1.0, -2.0, 0.2, 0.1, 0.3]),
}


def controlled(name, frame, force, amplitude, begin=0.05, duration=0.11):
    """The ticks of a run under `ComputedTorque` with an observer that is told (q, v, u) alone:
    (t, told, true, q, v), and the observer."""
    mech = robot(name)
    q, _ = hc.assemble(mech)
    start, w = mech.motor_positions(q), 4.4 + 3.8 * np.linspace(0.0, 1.0, mech.nu)

    def reference(t):
        by = amplitude * np.array([1.0 - np.cos(w * t), w * np.sin(w * t), w * w * np.cos(w * t)])
        return start + by[0], by[1], by[2]

    law = hc.ComputedTorque(mech, kp=400.0, kd=40.0).track(reference)
    observer = hc.MomentumObserver(mech, GAIN, dt=1.0 / RATE)
    before, told, force = np.zeros(mech.nu), [], np.array(force)

    def load(t, q=None, v=None):
        return {frame: force} if t >= begin - 1e-9 else {frame: 0.0 * force}

    def controller(t, q, v):
        nonlocal before
        r = observer.update(q, v, before)
        told.append((t, r, pushed(mech, observer.partition, q, v, load(t)), q.copy(), v.copy()))
        before = law(t, q, v)
        return before

    hc.simulate(
        mech,
        controller,
        q,
        np.zeros(mech.nv),
        duration,
        frequency=RATE,
        plant=hc.Plant(f_ext=load),
        integrator=hc.Integrator(rtol=1e-11, atol=1e-13),
    )
    return observer, told


@pytest.mark.parametrize("name", few(PUSHES, ["stewart", "floating_leg"]))
def test_a_step_is_found_to_one_percent_within_five_over_the_gain(name):
    frame, force = PUSHES[name]
    observer, told = controlled(name, frame, force, 0.0)
    size = max(np.abs(true).max() for *_, true, _, _ in told)
    off = {round(t, 6): np.abs(r - true).max() / size for t, r, true, _, _ in told}
    assert max(x for t, x in off.items() if t < 0.05) < 1e-12  # nothing before
    assert off[0.051] > 0.8
    assert off[0.1] < 1e-2
    rows = min(observer.gain.size, 6)
    axes = {"five_bar": "x z", "delta": "x y z"}.get(name, "x y z rx ry rz")
    found = observer.wrench(frame, axes)
    chosen = [("x", "y", "z", "rx", "ry", "rz").index(a) for a in axes.split()]
    assert len(found.wrench) == min(rows, len(chosen))
    assert relative(found.wrench, np.array(force)[chosen]) < 0.02
    assert found.share < 0.01


@pytest.mark.parametrize("name", few(PUSHES, ["five_bar", "biped"]))
def test_nobody_pushes_a_robot_that_moves(name):
    """Second order: 1e-6 of what would push it, in a motion of one rad per second."""
    amplitude = 0.02 if name in ("five_bar", "floating_leg") else 0.003
    _, told = controlled(name, PUSHES[name][0], PUSHES[name][1], amplitude, begin=1.0)
    P = pushed(robot(name), hc.MomentumObserver(robot(name), GAIN).partition, *told[0][3:],
               {PUSHES[name][0]: np.array(PUSHES[name][1])})  # fmt: skip
    assert max(np.abs(r).max() for _, r, *_ in told) < 1e-4 * np.abs(P).max()


# ------------------------------------------------------------------------------------- at rest


@pytest.mark.parametrize("name", few([*ZOO, "stewart", "delta", "geared_arm"]))
def test_at_rest_there_is_no_bias(name):
    mech = robot(name)
    if name == "timed_arm":
        pytest.skip("its bench moves")
    q, v = hc.assemble(mech)[0], np.zeros(mech.nv)
    observer, u = hc.MomentumObserver(mech, GAIN), np.linspace(1.0, 2.0, mech.nu)
    held = at_rest(mech, q) - mech.B @ u
    for _ in range(300):
        observer.update(q, v, u, efforts=held)
    assert np.abs(observer.efforts).max(initial=0.0) < 1e-9
    assert observer.t == pytest.approx(0.299)


@pytest.mark.parametrize("gain", [1e-3, 1.0, 300.0, 1e6, [3.0, 4000.0]])
def test_a_step_at_rest_is_told_as_a_filter_of_first_order_tells_it(gain):
    """For any gain times tick, by a load that is held against."""
    mech = robot("five_bar")
    q, v, load = hc.assemble(mech)[0], np.zeros(mech.nv), {"tip": ([3.0, 0.0, -2.0], [0.0] * 3)}
    observer = hc.MomentumObserver(mech, gain, dt=2e-3)
    observer.reset(q, v, t=7.0)
    true, held = pushed(mech, observer.partition, q, v, load), at_rest(mech, q, load)
    for k in range(1, 50):
        r = observer.update(q, v, np.zeros(2), efforts=held)
        expected = -np.expm1(-np.array(gain) * 2e-3 * k) * true
        np.testing.assert_allclose(r, expected, rtol=1e-9, atol=1e-12)
    assert observer.t == pytest.approx(7.0 + 49 * 2e-3)
    observer.update(q, v, np.zeros(2), 8.0, efforts=held)
    expected = -np.expm1(-np.array(gain)) * true
    np.testing.assert_allclose(observer.efforts, expected, rtol=1e-9, atol=1e-12)
    observer.update(q, v, np.zeros(2), dt=0.5, efforts=held, f_ext=load)  # known: no part of it
    decayed = np.exp(-0.5 * np.array(gain)) * expected
    np.testing.assert_allclose(observer.efforts, decayed, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", few(ZOO))
def test_what_is_told_moves_the_mechanism_as_the_load_does(name):
    """By the forward dynamics, which have no part in it: efforts that act on the independent
    coordinates alone balance what the load would do."""
    mech = robot(name)
    if name == "timed_arm":
        pytest.skip("its bench moves")
    q, v = hc.assemble(mech)[0], np.zeros(mech.nv)
    load = {mech.model.names[-1]: np.array([1.0, -2.0, 0.5, 0.3, 0.2, -0.1])}
    observer = hc.MomentumObserver(mech, 1e5)
    observer.reset(q, v)
    held = at_rest(mech, q, load)
    observer.update(q, v, np.zeros(mech.nu), efforts=held)
    told = np.zeros(mech.nv)
    told[observer.partition.independent] = observer.efforts
    result = hc.forward_dynamics(mech, q, v, held + told, partition=observer.partition)
    free = hc.forward_dynamics(mech, q, v, held, partition=observer.partition)
    assert np.abs(result.a).max() < 1e-8 * (1.0 + np.abs(free.a).max())


# ------------------------------------------------------------------------------------ in motion


@cache
def motion(name, duration=0.12, fine=8000, held=125, seed=0):
    """A fast motion under efforts that are held, and unknown ones: (t, q, v), and functions of t
    that give both."""
    mech, rng = robot(name), np.random.default_rng(seed)
    q, v = hc.assemble(mech, mech.reference, 1.5 * rng.normal(size=mech.nv))
    unknown, sizes = rng.normal(size=mech.nv), 3.0 * rng.normal(size=mech.nu)
    if name in ("stewart", "delta"):  # thin rods: what acts on these is small
        unknown *= 0.0
        unknown[-6:] = rng.normal(size=6)

    def load(t):
        return unknown * (1.0 + np.sin(5.0 * t))

    def u(t):
        return sizes * np.cos(9.0 * np.floor(t * held + 1e-6) / held)

    out = np.arange(round(duration * fine) + 1) / fine
    run = hc.simulate(
        mech,
        lambda t, q, v: u(t),
        q,
        v,
        duration,
        frequency=held,
        output=out,
        plant=hc.Plant(efforts=lambda t, q, v: load(t)),
        integrator=hc.Integrator(rtol=1e-12, atol=1e-14),
    )
    return run.t, run.q, run.v, u, load


def filtered(gain, times, tau):
    """r' = gain (tau - r), with tau as straight lines between the instants."""
    r, h = np.zeros_like(tau), times[1] - times[0]
    decay = np.exp(-gain * h)
    for i in range(1, len(tau)):
        slope = (tau[i] - tau[i - 1]) / h
        r[i] = decay * r[i - 1] + (1 - decay) * (tau[i - 1] - slope / gain) + slope * h
    return r


def errors(name, rates, gain=60.0, **options):
    """The largest errors of observers at some rates along one motion, over the largest effort."""
    mech = robot(name)
    times, q, v, u, load = motion(name, **options)
    part, fine = hc.partition(mech, q[0]), round(1.0 / (times[1] - times[0]))
    true = np.array(
        [gamma_of(mech, part, *x).T @ load(x[2]) for x in zip(q, v, times, strict=True)]
    )
    expected, found = filtered(gain, times, true), []
    for rate in rates:
        every, worst = fine // rate, 0.0
        observer = hc.MomentumObserver(mech, gain, part, dt=1.0 / rate)
        observer.reset(q[0], v[0])
        for i in range(every, len(times), every):
            r = observer.update(q[i], v[i], u(times[i] - 0.5 / fine), times[i])
            worst = max(worst, np.abs(r - expected[i]).max())
        found.append(worst / np.abs(true).max())
    return np.array(found)


MOVING = ("five_bar", "floating_leg", "universal_rods", "standing_leg", "timed_arm", "sine_chart",
          "three_motors", "geared_slider", "screw_chain", "geared_arm")  # fmt: skip
"""In the plane and in space, afloat, composite joints, contacts, rows in time, a chart, redundant
motors, gears, a screw, rotors."""


EVERY_RUN = ("floating_leg", "sine_chart", "geared_arm")


@pytest.mark.parametrize("name", few(MOVING, EVERY_RUN))
def test_in_motion_the_error_is_of_second_order_in_the_tick(name):
    found = errors(name, (250, 500, 1000, 2000))
    orders = np.log2(found[:-1] / found[1:])
    assert found[2] < 5e-3, found
    assert (np.abs(orders[-2:] - 2.0) < 0.1).all(), (found, orders)


def test_rows_that_depend_on_time_do_work_and_push_nobody():
    """A bench that moves, while all else is known: what it does is internal."""
    mech = robot("timed_arm")
    times, q, v, u, load = motion("timed_arm")
    part, worst = hc.partition(mech, q[0]), []
    for every in (16, 8, 4):
        observer = hc.MomentumObserver(mech, 60.0, part)
        observer.reset(q[0], v[0])
        told = [
            observer.update(q[i], v[i], u(times[i] - 1e-5), times[i],
                            efforts=0.5 * (load(times[i]) + load(times[i - every])))
            for i in range(every, len(times), every)
        ]  # fmt: skip
        worst.append(np.abs(told).max())
    assert worst[-1] < 1e-3
    assert np.abs(np.log2(np.divide(worst[:-1], worst[1:])) - 2.0).max() < 0.1
    T = hc.terms(mech, q[0], v[0])
    assert np.abs(T.rate - T.jacobian @ v[0]).max() > 0.1  # it moves


@pytest.mark.parametrize("name", few(ZOO))
def test_the_tick_is_the_general_path(name):
    mech = mechanism(name)
    rng = np.random.default_rng(3)
    observer = hc.MomentumObserver(mech, GAIN)
    part, limits = observer.partition, observer.limits
    at = reduced_motion(mech, part, limits)
    for _ in range(3):
        guess = pin.integrate(mech.model, mech.reference, 0.1 * rng.normal(size=mech.nv))
        q, v = hc.assemble(mech, guess, rng.normal(size=mech.nv))
        for found, expected in zip(at(q, v, 0.0), in_general(mech, part, limits, q, v, 0.0),
                                   strict=True):  # fmt: skip
            assert relative(found, expected) < 1e-9


def test_a_blow_within_a_tick():
    """A jump of the velocity: the mean over the tick is the impulse over its length."""
    mech = robot("floating_leg")
    q, v = hc.assemble(mech, mech.reference, 0.3 * np.ones(mech.nv))
    h, blow = 1e-7, {"knee": np.array([1.0, -2.0, 0.5, 0.3, 0.2, -0.1])}
    observer = hc.MomentumObserver(mech, GAIN, dt=h)
    observer.reset(q, v)
    P = hc.project(mech, q, v, partition=observer.partition)
    impulse = P.gamma.T @ external_efforts(mech, P.kinematics, blow)
    jump = P.gamma @ np.linalg.solve(P.gamma.T @ P.terms.M @ P.gamma, impulse)
    r = observer.update(pin.integrate(mech.model, q, h * (v + 0.5 * jump)), v + jump, np.zeros(3))
    assert relative(r, GAIN * impulse) < 1e-4
    assert relative(observer.wrench("knee").wrench, GAIN * blow["knee"]) < 1e-4


# ------------------------------------------------------------------------- what is known


def test_friction_and_springs_that_are_known_do_not_appear():
    forces = [
        hc.JointFriction({"left": 0.4, "right_rod": 0.1}, coulomb={"left": 0.3}),
        hc.JointSpring("right", stiffness=5.0, rest=0.3),
    ]
    plain = mechanism("five_bar")
    mech = plain.with_forces(forces)
    q, v = hc.assemble(mech, None, [0.8, 0.3, -0.9, 0.4])
    run = hc.simulate(
        mech,
        lambda t, q, v: np.zeros(2),
        q,
        v,
        0.1,
        integrator=hc.Integrator(rtol=1e-11, atol=1e-13),
    )
    knows, does_not = (hc.MomentumObserver(m, 1e4) for m in (mech, plain))
    for observer in (knows, does_not):
        observer.reset(run.q[0], run.v[0])
    for i in range(1, len(run.t)):
        told = [o.update(run.q[i], run.v[i], np.zeros(2)) for o in (knows, does_not)]
        acts = [hc.terms(mech, run.q[j], run.v[j]).F for j in (i - 1, i)]
        gammas = [gamma_of(mech, knows.partition, run.q[j], run.v[j]) for j in (i - 1, i)]
        size = np.abs(gammas[1].T @ acts[1]).max()
        assert np.abs(told[0]).max() < 1e-4 * size
        between = sum(g.T @ F for g, F in zip(gammas, acts, strict=True)) / 2.0
        assert np.abs(told[1] - between).max() < 1e-3 * size


def test_preload_in_redundant_motors_does_not_appear():
    mech = mechanism("three_motors")
    q, v = hc.assemble(mech)[0], np.zeros(mech.nv)
    observer = hc.MomentumObserver(mech, 1e4)
    observer.reset(q, v)
    A = gamma_of(mech, observer.partition, q, v).T @ mech.B
    preload = np.linalg.svd(A)[2][-1]
    r = observer.update(q, v, 1e3 * preload, efforts=at_rest(mech, q))
    assert np.abs(r).max() < 1e-9


def test_known_forces_are_taken_at_both_ends_of_the_tick():
    mech = robot("five_bar")
    q, v = hc.assemble(mech, None, [1.0, 0.5, -1.0, 0.4])
    load = {"tip": (np.array([3.0, 0.0, 5.0]), np.zeros(3))}
    run = hc.simulate(
        mech,
        lambda t, q, v: np.zeros(2),
        q,
        v,
        0.1,
        frequency=200.0,
        plant=hc.Plant(f_ext=lambda t, q, v: load),
        integrator=hc.Integrator(rtol=1e-11, atol=1e-13),
    )
    told = []
    for known in (load, None):
        observer = hc.MomentumObserver(mech, 1e4, dt=5e-3)
        observer.reset(run.q[0], run.v[0])
        told.append([observer.update(q, v, np.zeros(2), f_ext=known)
                     for q, v in zip(run.q[1:], run.v[1:], strict=True)])  # fmt: skip
    assert np.abs(told[0]).max() < 2e-3 * np.abs(told[1]).max()


# ----------------------------------------------------------------------------------- wrenches


def static(name, load, gain=1e5, **options):
    """An observer that has seen a load that is held against, at rest."""
    mech = robot(name)
    q, v = hc.assemble(mech)[0], np.zeros(mech.nv)
    observer = hc.MomentumObserver(mech, gain, **options)
    observer.reset(q, v)
    observer.update(q, v, np.zeros(mech.nu), efforts=at_rest(mech, q, load))
    return observer


@pytest.mark.parametrize(
    ("name", "frame", "axes"),
    [
        ("five_bar", "tip", "x z"), ("five_bar", "tip", "z x"), ("delta", "platform", "x y z"),
        ("stewart", "platform", "x y z rx ry rz"), ("stewart", "platform", "rz z"),
        ("biped", "base", "x y z rx ry rz"), ("biped", "right_foot", "x y z"),
        ("floating_leg", ("knee", pin.SE3(pin.exp3(np.ones(3)), np.ones(3))), "z rx"),
    ],
)  # fmt: skip
def test_a_wrench_is_found_where_efforts_determine_it(name, frame, axes):
    mech, names = robot(name), axes.split()
    f = np.linspace(2.0, -3.0, len(names))
    whole = np.zeros(6)
    whole[[("x", "y", "z", "rx", "ry", "rz").index(a) for a in names]] = f
    load = {frame: whole} if isinstance(frame, str) else None
    if load is None:  # the same at the joint
        q = hc.assemble(mech)[0]
        kin = hc.project(mech, q, np.zeros(mech.nv)).kinematics
        lever = kin.placements[mech.model.getJointId(frame[0])].rotation @ frame[1].translation
        load = {frame[0]: np.concatenate([whole[:3], whole[3:] + np.cross(lever, whole[:3])])}
    observer = static(name, load)
    found = observer.wrench(frame, axes, residual_limit=1e-6)
    assert found.axes == tuple(names)
    assert relative(found.wrench, f) < 1e-8
    assert np.abs(found.residual).max() < 1e-8
    assert found.share < 1e-6
    assert 1.0 <= found.condition < 1e4


def test_a_wrench_does_not_depend_on_the_coordinates_of_the_motions():
    """Also where it does not explain all: the metric is that of the inertia."""
    observer = static("floating_leg", {"wheel": np.ones(6)})
    mech, q = observer.mech, observer.mech.reference
    names = ["hip", "knee", "wheel", *(f"head[{i}]" for i in range(3)),
             *(f"base[{i}]" for i in range(6))]  # fmt: skip
    part = hc.partition(mech, hc.assemble(mech, q)[0], independent=names)
    other = observer.with_partition(part)
    assert other.coordinates != observer.coordinates
    one, two = (o.wrench("base", "x y z") for o in (observer, other))
    assert relative(one.wrench, two.wrench) < 1e-9
    assert one.share == pytest.approx(two.share)
    assert one.share > 0.1


@pytest.mark.parametrize(("name", "frame"), [("held_foot", "leg_5"), ("weld_chain", "j7")])
def test_no_effort_tells_what_acts_on_a_frame_that_the_constraints_hold(name, frame):
    """It moves by rounding, the same along all axes."""
    mech = mechanism(name)
    observer, (q, v) = hc.MomentumObserver(mech, 50.0), hc.assemble(mech)
    observer.reset(q, v)
    observer.update(q, v, np.zeros(mech.nu))
    for axes in ("x y z rx ry rz", "x", "y z", "rx"):
        refused(lambda axes=axes: observer.wrench(frame, axes), hc.SingularityError, frame)


def test_a_wrench_that_is_not_determined_is_not_told():
    observer = static("five_bar", {"tip": np.ones(6)})
    e = refused(lambda: observer.wrench("tip"), hc.SingularityError, "five_bar", "'y'", "at most 2")
    assert set(e.names) >= {"y", "rx", "rz"}
    e = refused(lambda: observer.wrench("tip", "x y"), hc.SingularityError, "'y'")
    assert e.names == ("y",)
    refused(lambda: observer.wrench("universe", "x"), hc.SingularityError, "'universe'")
    leg = static("floating_leg", {"wheel": np.ones(6)})
    e = refused(
        lambda: leg.wrench("base", "x y z", residual_limit=1e-3), hc.InconsistentError, "'x'"
    )
    assert e.residual > 1e-3
    for axes in ("", "x x", "u", "x,y", ["x", 1], None, 3):
        refused(lambda axes=axes: leg.wrench("base", axes), hc.InputError, "axes")
    refused(lambda: leg.wrench("nobody", "x"), hc.InputError, "nobody")
    refused(lambda: hc.MomentumObserver(leg.mech, 1.0).wrench("base", "x"), hc.InputError, "tick")
    assert leg.wrench("base", ["x", "rz"]).axes == ("x", "rz")


@pytest.mark.parametrize("gain", few([20.0, 300.0, 5000.0], [300.0]))
def test_it_is_as_noisy_as_it_says(gain):
    mech = robot("delta")
    q, v = hc.assemble(mech)[0], np.zeros(mech.nv)
    observer, rng = hc.MomentumObserver(mech, gain), np.random.default_rng(2)
    observer.reset(q, v)
    gamma, held = gamma_of(mech, observer.partition, q, v), at_rest(mech, q)
    sizes = np.array([1e-3, 3e-3, 5e-4])
    told = np.array([
        observer.update(q, gamma @ (sizes * rng.normal(size=3)), np.zeros(3), efforts=held)
        for _ in range(6000)
    ])[300:]  # fmt: skip
    observer.update(q, v, np.zeros(3), efforts=held)
    np.testing.assert_allclose(told.std(axis=0), observer.noise(sizes), rtol=0.08)
    assert observer.noise(2e-3) == pytest.approx(observer.noise([2e-3] * 3))
    refused(lambda: observer.noise([1.0]), hc.InputError, "rate_noise", "(3,)")
    refused(lambda: observer.noise(-1.0), hc.InputError, "rate_noise", "negative")
    refused(lambda: hc.MomentumObserver(mech, gain).noise(1.0), hc.InputError, "first tick")


# -------------------------------------------------------------------------------- partitions


def test_other_coordinates_on_the_way_make_no_jump():
    """Tick by tick in other coordinates, and compared with one that had these from the start."""
    mech = robot("five_bar")
    times, q, v, u, _ = motion("five_bar")
    parts = [hc.partition(mech, q[0], independent=list(names))
             for names in (("motor_left", "motor_right"), ("motor_left", "elbow_left"),
                           ("elbow_left", "elbow_right"))]  # fmt: skip
    steady = [hc.MomentumObserver(mech, 60.0, part) for part in parts]
    changing = hc.MomentumObserver(mech, 60.0, parts[0])
    for observer in (*steady, changing):
        observer.reset(q[0], v[0])
    worst = 0.0
    for n, i in enumerate(range(8, len(times), 8)):
        given = q[i], v[i], u(times[i] - 1e-5), times[i]
        told = [observer.update(*given) for observer in steady]
        before, of = changing.efforts, changing.partition.independent
        changing = changing.with_partition(parts[n % 3])
        last = gamma_of(mech, changing.partition, q[i - 8], v[i - 8], times[i - 8])
        np.testing.assert_allclose(changing.efforts, last[of].T @ before, rtol=1e-9, atol=1e-12)
        r = changing.update(*given)
        worst = max(worst, relative(r, told[n % 3]))
        assert changing.coordinates == steady[n % 3].coordinates
    # filters in other coordinates differ where these turn: by a little
    assert worst < 0.1


def test_past_a_dead_point_of_its_coordinates():
    """The slider of a crank that goes round: refused near the dead centre, until other coordinates
    are taken; and then as right as one that had these all the time."""
    mech = slider_crank("crank")
    q, v = hc.assemble(mech, [0.5, -0.7, 0.6], [12.0, 0.0, 0.0], locked=["crank"])
    run = hc.simulate(
        mech,
        lambda t, q, v: np.array([np.cos(40.0 * t)]),
        q,
        v,
        0.5,
        plant=hc.Plant(efforts=lambda t, q, v: np.array([0.3, 0.0, 2.0])),
        integrator=hc.Integrator(rtol=1e-11, atol=1e-13),
    )
    u = np.cos(40.0 * run.t)[:, None]
    by_slider = hc.partition(mech, run.q[0], independent=["slider"])
    always = hc.MomentumObserver(mech, GAIN, hc.partition(mech, run.q[0], independent=["crank"]))
    observer = hc.MomentumObserver(mech, GAIN, by_slider)
    for o in (always, observer):
        o.reset(run.q[0], run.v[0])
    refusals, off = 0, []
    for i in range(1, len(run.t)):
        x = run.q[i], run.v[i], u[i - 1]
        r = always.update(*x)
        try:
            observer.update(*x)
        except hc.SingularityError as e:
            named = e.names
            refusals += 1
            if refusals == 4:  # the loop is in no hurry
                observer = observer.repartitioned(*x[:2])
                assert observer.coordinates != ("slider",)
                assert observer.repartitioned(*x[:2]) is observer
            continue
        g = gamma_of(mech, always.partition, *x[:2])[observer.partition.independent]
        off.append(np.abs(g.T @ observer.efforts - r).max())
    assert refusals == 4
    assert named == ("slider",)
    assert max(off) < 0.2  # a filter by the slider is another one than a filter by the crank
    assert max(off[-100:]) < 1e-6  # by the crank both
    assert np.abs(always.efforts).max() > 0.05


def test_gains_go_with_their_coordinates():
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    one = hc.partition(mech, q, independent=["motor_left", "motor_right"])
    two = hc.partition(mech, q, independent=["motor_right", "elbow_right"])
    observer = hc.MomentumObserver(mech, [5.0, 7.0], one)
    other = observer.with_partition(two)
    gains = dict(zip(other.coordinates, other.gain, strict=True))
    assert gains == {"motor_right": 7.0, "elbow_right": 5.0}
    assert observer.with_partition(one) is observer
    assert observer.repartitioned(q, v) is observer
    refused(lambda: observer.with_partition(hc.partition(mechanism("four_bar"), hc.assemble(
        mechanism("four_bar"))[0])), hc.InputError, "another mechanism")  # fmt: skip


# ---------------------------------------------------------------------- a call that is refused


def test_a_call_that_is_refused_counts_in_the_next():
    """Readings that are no numbers for some ticks: what acted meanwhile is remembered."""
    mech = robot("five_bar")
    times, q, v, u, _ = motion("five_bar")
    whole, holes = (hc.MomentumObserver(mech, 60.0) for _ in range(2))
    for observer in (whole, holes):
        observer.reset(q[0], v[0])
    told = []
    for n, i in enumerate(range(8, len(times), 8)):
        acted = u(times[i] - 1e-5)
        r = whole.update(q[i], v[i], acted)
        if n % 10 in (4, 5, 6):
            gone = np.full(mech.nq, np.nan) if n % 2 else q[i] + 1.0
            error = hc.InputError if n % 2 else hc.InconsistentError
            refused(lambda gone=gone, i=i, acted=acted: holes.update(gone, v[i], acted), error)
        elif n % 10 == 8:
            refused(lambda i=i: holes.update(q[i], v[i], [np.nan, 0.0]), hc.InputError, "u")
        else:
            told.append(relative(holes.update(q[i], v[i], acted), r))
    assert holes.t == pytest.approx(times[i])
    assert max(told[20:]) < 0.05
    assert np.median(told) < 0.01


def test_refusals():
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    for gain in (0.0, -1.0, np.inf, np.nan, [1.0, 0.0], "fast", [1.0, 2.0, 3.0]):
        refused(lambda gain=gain: hc.MomentumObserver(mech, gain), hc.InputError, "gain")
    refused(lambda: hc.MomentumObserver(mech, 1.0, dt=0.0), hc.InputError, "dt")
    refused(lambda: hc.MomentumObserver(mech, 1.0, "motors"), hc.InputError, "partition")
    refused(lambda: hc.MomentumObserver("five_bar", 1.0), hc.InputError, "Mechanism")
    refused(
        lambda: hc.MomentumObserver(mech, 1.0, estimator=3), hc.InputError, "ClosedStateEstimator"
    )
    other = hc.ClosedStateEstimator(replace(mech))
    refused(lambda: hc.MomentumObserver(mech, 1.0, estimator=other), hc.InputError, "another")
    observer = hc.MomentumObserver(mech, 10.0)
    u = [0.0, 0.0]
    assert not observer.update(q, v, u, 1.0).any()  # the start
    for t in (1.0, 0.5):
        refused(lambda t=t: observer.update(q, v, u, t), hc.InputError, "increase", "reset")
    for dt in (0.0, -1e-3, np.nan):
        refused(lambda dt=dt: observer.update(q, v, u, dt=dt), hc.InputError, "dt")
    refused(lambda: observer.update(q, v, u, np.inf), hc.InputError, "t")
    refused(lambda: observer.update(q, v, u, 2.0, dt=1.0), hc.InputError, "not both")
    refused(lambda: observer.update(q, v, [0.0], 2.0), hc.InputError, "u", "(2,)")
    refused(lambda: observer.update(q[:2], v, u, 2.0), hc.InputError, "q")
    refused(lambda: observer.update(q, v * np.nan, u, 2.0), hc.InputError, "v")
    refused(lambda: observer.update(q, v, u, 2.0, efforts=[1.0]), hc.InputError, "efforts")
    refused(lambda: observer.update(q, v, u, 2.0, f_ext={"nobody": np.ones(6)}), hc.InputError)
    refused(lambda: observer.update(q, v, [1e300, 0.0], 2.0), hc.InputError, "range")
    assert np.isfinite(observer.update(q, v, u, 1.5)).all()
    observer.reset(q, v, 1.0)
    refused(lambda: observer.update(q + 0.3, v, u, 2.0), hc.InconsistentError, "open")
    far = hc.assemble(mech, q + 0.4)[0]
    refused(
        lambda: observer.update(far, v, u, 2.0),
        hc.InputError,
        "ticks may have been missed",
        "reset",
    )
    refused(lambda: observer.reset(q, [0.0]), hc.InputError, "v")
    refused(lambda: observer.reset(q, v, efforts=[1.0]), hc.InputError, "efforts")
    refused(lambda: observer.update_from_motors(u, None, u), hc.InputError, "RateFilter")
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        refused(lambda act=act: act(observer), hc.InputError, "neither copied nor pickled")
    observer.reset(q, v, efforts=[1.0, 2.0])
    assert observer.efforts.tolist() == [1.0, 2.0]
    assert repr(observer).startswith("<MomentumObserver of five_bar: gain 10 1/s, every 0.001 s; 2")
    told = observer.efforts
    told[:] = 7.0
    assert observer.efforts.tolist() == [1.0, 2.0]


def test_whole_turns_are_no_way():
    """Angles that a drive tells within a turn."""
    mech = robot("five_bar")
    q, v = hc.assemble(mech)
    observer = hc.MomentumObserver(mech, 1e3)
    observer.reset(q, v)
    turned = q + 2.0 * np.pi * np.array([1.0, 0.0, -2.0, 1.0])
    assert np.abs(observer.update(turned, v, np.zeros(2), efforts=at_rest(mech, q))).max() < 1e-9


def test_what_it_was_given_may_change_afterwards():
    mech = robot("five_bar")
    times, q, v, u, _ = motion("five_bar")
    one, two = (hc.MomentumObserver(mech, 60.0) for _ in range(2))
    place, rates, acted = q[0].copy(), v[0].copy(), np.zeros(2)
    for i in range(0, 400, 8):
        place[:], rates[:], acted[:] = q[i], v[i], u(times[i] - 1e-5)
        r = one.update(place, rates, acted)
        place[:] = rates[:] = acted[:] = np.nan
        np.testing.assert_array_equal(r, two.update(q[i], v[i], u(times[i] - 1e-5)))


def test_one_at_a_time():
    """A call from another thread while one is under way is refused, one after it is not."""
    mech = mechanism("sine_gear")
    q, v = hc.assemble(mech)
    observer = hc.MomentumObserver(mech, 1e3)
    observer.reset(q, v)
    caught = []

    class Meddling(dict):
        def items(self):
            caught.append(refused(lambda: observer.update(q, v, [0.0]), hc.InputError, "one loop"))
            caught.append(refused(lambda: observer.reset(q, v), hc.InputError, "one loop"))
            return super().items()

    observer.update(q, v, [0.0], efforts=at_rest(mech, q), f_ext=Meddling())
    assert len(caught) >= 2
    thread = threading.Thread(target=lambda: observer.update(q, v, [0.0], efforts=at_rest(mech, q)))
    thread.start()
    thread.join()
    assert observer.t == pytest.approx(2e-3)


# ------------------------------------------------------------------------------ from motors


@pytest.mark.parametrize("name", ["five_bar", "delta", "stewart"])
def test_from_the_motors_it_is_that_of_the_closed_state(name):
    mech = robot(name)
    sensors = hc.ClosedStateEstimator(mech)
    one = hc.MomentumObserver(mech, GAIN, estimator=hc.ClosedStateEstimator(mech))
    two = hc.MomentumObserver(mech, GAIN)
    x, u = mech.motor_positions(sensors.q), np.linspace(-1.0, 1.0, mech.nu)
    for k in range(30):
        by, rates = 2e-3 * (1.0 - np.cos(0.1 * k)) * u, 0.2 * np.sin(0.1 * k) * u
        r = one.update_from_motors(x + by, rates, u)
        q, v = sensors.state(x + by, rates)
        np.testing.assert_allclose(r, two.update(q, v, u), rtol=1e-9, atol=1e-9)
    assert one.estimator.measured == mech.actuated
    e = refused(lambda: one.update_from_motors(x + 20.0, rates, u), hc.HoloctlError)
    assert isinstance(e, (hc.BranchError, hc.AssemblyError))
    one.update_from_motors(x + by, rates, u)
    assert one.t == pytest.approx(31e-3)
    one.reset(sensors.q, np.zeros(mech.nv))
    assert not one.efforts.any()


@pytest.mark.parametrize("given", [False, True])
def test_from_the_motors_it_begins_where_it_was_told(given):
    """On another branch than the reference, where nothing was read from motors yet."""
    mech = robot("five_bar")
    q = hc.assemble(mech, mech.reference + np.array([0.0, -2.4, 0.0, 2.4]), restarts=0)[0]
    assert np.abs(hc.ClosedStateEstimator(mech).q - q).max() > 1.0
    x, still = mech.motor_positions(q), np.zeros(2)
    options = {"estimator": hc.ClosedStateEstimator(mech)} if given else {}
    observer = hc.MomentumObserver(mech, GAIN, **options)
    observer.reset(q, np.zeros(mech.nv), 0.5)
    observer.update_from_motors(x, still, still)
    np.testing.assert_allclose(observer.estimator.q, q, atol=1e-9)


def test_without_positions_of_motors_an_assembly_is_asked_for():
    base = mechanism("five_bar")
    mech = hc.Mechanism(base.model, base.constraints, actuation=base.B, reference=base.reference)
    observer = hc.MomentumObserver(mech, GAIN)
    refused(lambda: observer.update_from_motors([0.0] * 2, [0.0] * 2, [0.0] * 2), hc.InputError,
            "estimator=")  # fmt: skip
    measured = hc.ClosedStateEstimator(mech, ["left", "right"])
    observer = hc.MomentumObserver(mech, GAIN, estimator=measured)
    q = hc.assemble(mech)[0]
    assert observer.update_from_motors(q[[0, 2]], [0.0, 0.0], [0.0, 0.0]).shape == (2,)
