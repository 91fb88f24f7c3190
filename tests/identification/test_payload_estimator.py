"""`PayloadEstimator`: mass and centre of a payload at every tick, in Python and in C."""

from __future__ import annotations

import copy
import ctypes
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from exported import build_and_test, cmake, compilers, library, run
from identification import simulated
from support import few

import holoctl as hc
from holoctl.estimation.payload_law import payload_columns, payload_motion, solved_payload
from holoctl.tree.frames import resolve_frame

ROBOTS = {
    "five_bar": ("tip", 0.15, [0.02, 0.0, -0.01]),
    "leg": ("foot", 0.1, [0.01, -0.02, 0.015]),
    "delta": ("platform", 0.15, [0.0, 0.01, -0.02]),
    "stewart": ("platform", 0.03, [0.02, -0.03, 0.02]),
}
"""Frame, amplitude of the motors, and centre of the payload."""

MASS, DT, NOISE = 0.5, 1e-3, 0.015


@cache
def robot(name):
    return hc.load(hc.robot_file(name))


def loaded(mech, frame, mass, centre):
    """The mechanism with a ball."""
    at, model = resolve_frame(mech.model, frame, "test"), mech.model.copy()
    ball = pin.Inertia(mass, np.zeros(3), 3e-4 * np.eye(3))
    there = pin.SE3(at.placement) * pin.SE3(np.eye(3), np.array(centre, dtype=float))
    model.appendBodyToJoint(at.joint, ball, there)
    return replace(mech, model=model)


@cache
def motion(name, ticks, mass=MASS):
    """That of a robot with a payload; it repeats itself after 1,000 ticks."""
    mech, (frame, amplitude, centre) = robot(name), ROBOTS[name]
    return moved(loaded(mech, frame, mass, centre) if mass else mech, amplitude, ticks)


def moved(mech, amplitude, ticks):
    """Motors, states and the efforts of the tick that ends there."""
    law, estimator, rows = hc.PreparedInverseDynamics(mech), hc.ClosedStateEstimator(mech), []
    start = mech.motor_positions(hc.assemble(mech)[0])
    w = 2.0 * np.pi * (1.0 + np.arange(mech.nu) % 3)
    for t in DT * np.arange(ticks + 1):
        x, xd, xdd = amplitude * np.array(
            [1.0 - np.cos(w * t), w * np.sin(w * t), w * w * np.cos(w * t)]
        )
        q, v = estimator.state(start + x, xd, t)
        rows.append((start + x, xd, q, v, law.torque(q, v, xdd).copy()))
    x, xd, q, v, u = (np.array(part) for part in zip(*rows, strict=True))
    u[1:] = 0.5 * (u[1:] + u[:-1])
    return x, xd, q, v, u


def sigma_of(u):
    return NOISE * np.sqrt((u**2).mean(axis=0))


def followed(name, ticks, mass=MASS, seed=0, noise=1.0, **options):
    """The estimator after a motion, with noise of the efforts."""
    _, _, q, v, u = motion(name, ticks, mass)
    sigma = sigma_of(u)
    noisy = u + noise * sigma * np.random.default_rng(seed).normal(size=u.shape)
    payload = hc.PayloadEstimator(robot(name), ROBOTS[name][0], 100.0, sigma, dt=DT, **options)
    for row in zip(q, v, noisy, strict=True):
        payload.update(*row)
    return payload


# ------------------------------------------------------------------------------------- the law


@pytest.mark.parametrize("name", few(ROBOTS, ["five_bar", "leg"]))
def test_mass_is_found_to_one_percent_with_noisy_efforts(name):
    payload = followed(name, 800)
    assert payload.detected
    assert abs(payload.mass - MASS) < 0.01 * MASS
    assert payload.standard_deviations[0] < 0.01 * MASS
    known = np.isfinite(payload.centre)
    expected = {"five_bar": [True, False, True], "delta": [False] * 3}.get(name, [True] * 3)
    assert known.tolist() == expected
    assert np.isinf(payload.standard_deviations[1:][~known]).all()
    assert np.abs(payload.centre - ROBOTS[name][2])[known].max(initial=0.0) < 0.006


def test_rows_are_the_columns_of_pinocchio():
    mech, rng = robot("stewart"), np.random.default_rng(0)
    at = ("platform", pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.5, 0.7), np.array([0.1, 0.2, -0.3])))
    payload = hc.PayloadEstimator(mech, at, 100.0, 1.0)
    q, _ = hc.assemble(mech)
    v, a, h = rng.normal(size=mech.nv), rng.normal(size=mech.nv), rng.normal(size=3)
    length, frame = payload.length, payload.placed
    here = payload_motion(mech.model, frame)(q, v)
    A = here.J @ a + here.drift
    twice = payload_columns((2.0 * A).tolist(), (2.0 * here.w).tolist(), length)
    mine = 2.0 * here.J.T @ twice @ np.array([MASS, *(h / length)])
    R, p = frame.placement.rotation, frame.placement.translation
    first = R @ h + MASS * p  # about the joint; the inertia about the frame is zero
    moments = 2.0 * (p @ R @ h) * np.eye(3) - np.outer(p, R @ h) - np.outer(R @ h, p)
    moments += MASS * (p @ p * np.eye(3) - np.outer(p, p))
    places = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
    ten = np.array([MASS, *first, *(moments[i, k] for i, k in places)])
    Y = pin.computeJointTorqueRegressor(mech.model, mech.model.createData(), q, v, a)
    expected = Y[:, 10 * frame.joint - 10 : 10 * frame.joint] @ ten
    assert np.abs(expected).max() > 1.0
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_deviations_are_those_of_the_noise():
    errors = []
    for seed in range(25):
        payload = followed("five_bar", 100, seed=seed)
        exact = followed("five_bar", 100, noise=0.0) if not errors else exact  # noqa: F821
        errors.append((payload.mass - exact.mass) / payload.standard_deviations[0])
    assert 0.5 < np.std(errors) < 1.3  # never much more; less by the filter
    assert abs(np.mean(errors)) < 0.6


def test_what_does_not_move_is_not_known():
    mech = robot("stewart")
    q, v = hc.assemble(mech)
    heavy = loaded(mech, "platform", MASS, ROBOTS["stewart"][2])
    u = hc.PreparedInverseDynamics(heavy).holding(q)
    payload = hc.PayloadEstimator(mech, "platform", 100.0, 0.01 * np.abs(u).max(), dt=DT)
    assert np.isnan([payload.mass, *payload.centre]).all()
    assert not payload.detected
    for _ in range(400):
        payload.update(q, v, u)
    assert payload.detected
    assert abs(payload.mass - MASS) < 1e-6
    assert np.isfinite(payload.centre).tolist() == [True, True, False]
    assert payload.standard_deviations[3] == payload.covariance[3, 3] == np.inf
    assert "detected" in repr(payload)
    assert "unknown" in repr(hc.PayloadEstimator(mech, "platform", 100.0, 1.0))
    mech = robot("four_bar")
    one = hc.PayloadEstimator(mech, mech.model.names[2], 100.0, 0.01, dt=DT)
    q, v = hc.assemble(mech)
    for _ in range(100):
        one.update(q, v, [3.0])
    assert one.detected  # of one number neither mass nor centre follows
    assert np.isnan([one.mass, *one.centre]).all()


@pytest.mark.parametrize("ticks", [pytest.param(100_000, marks=pytest.mark.slow), 1500])
def test_noise_alone_is_no_payload(ticks):
    _, _, q, v, u = motion("five_bar", 1000, mass=0.0)
    sigma, rng, largest = sigma_of(u), np.random.default_rng(7), 0.0
    payload = hc.PayloadEstimator(robot("five_bar"), "tip", 100.0, sigma, forgetting_time=0.5)
    for k in range(ticks):
        i = k % 1000
        payload.update(q[i], v[i], u[i if i or not k else 1000] + sigma * rng.normal(size=2))
        largest = max(largest, payload.statistic)
    assert 1.0 < largest < payload.threshold
    assert abs(payload.mass) < 6.0 * payload.standard_deviations[0]


def test_a_change_is_followed_or_forgotten():
    payload = followed("five_bar", 1000, forgetting_time=0.05)
    assert abs(payload.mass - MASS) < 0.05 * MASS
    _, _, q, v, u = motion("five_bar", 1000, mass=0.0)
    for row in zip(q[1:], v[1:], u[1:], strict=True):
        payload.update(*row)
    assert abs(payload.mass) < 0.02 * MASS
    payload.forget()
    assert payload.statistic == 0.0
    assert np.isnan(payload.mass)


def test_other_numbers_of_ticks_and_an_identified_mechanism_give_the_same():
    exact = followed("five_bar", 400, noise=0.0)
    for every in (1, 10):
        other = followed("five_bar", 400, noise=0.0, every=every)
        assert abs(other.mass - exact.mass) < 1e-4 * MASS
    model = hc.Parameters(robot("five_bar"))
    same = model.mechanism(model.values)
    _, _, q, v, u = motion("five_bar", 400)
    payload = hc.PayloadEstimator(same, "tip", 100.0, sigma_of(u), dt=DT)
    for row in zip(q, v, u, strict=True):
        payload.update(*row)
    assert abs(payload.mass - exact.mass) < 1e-9


@pytest.mark.slow
def test_an_identified_robot_finds_its_payload():
    model = hc.Parameters(simulated.robot("five_bar"), friction="motors")
    exact = simulated.motion(model, "five_bar", 0.5, 0)
    data = simulated.measured(exact, np.array(model.values), NOISE)
    fit = hc.identify(data, simulated.as_drawn(model.mech), strength=25.0)
    frame, amplitude, centre = ROBOTS["five_bar"]
    heavy = loaded(model.mech, frame, MASS, centre)
    for mech, tolerance in ((fit.mechanism(), 0.01), (simulated.as_drawn(model.mech), 1.0)):
        _, _, q, v, u = moved(heavy, amplitude, 1000)
        sigma = sigma_of(u)
        payload = hc.PayloadEstimator(mech, frame, 100.0, sigma, dt=DT)
        noisy = u + sigma * np.random.default_rng(0).normal(size=u.shape)
        for row in zip(q, v, noisy, strict=True):
            payload.update(*row)
        assert abs(payload.mass - MASS) < tolerance * MASS
    assert abs(payload.mass - MASS) > 0.03 * MASS  # of the file, far worse


def test_refused_calls_count_later_and_motors_are_enough():
    x, xd, q, v, u = motion("five_bar", 300)
    payload, motors = (
        hc.PayloadEstimator(robot("five_bar"), "tip", 100.0, 0.1, dt=DT) for _ in "01"
    )
    for k in range(301):
        t = DT * k
        payload.update(q[k], v[k], u[k], t)
        if k % 7 == 3:
            before = motors.statistic
            for bad in ((np.nan * x[k], xd[k], u[k], t), (x[k], xd[k], u[k], t - 2.0 * DT)):
                with pytest.raises(hc.InputError):
                    motors.update_from_motors(*bad)
            assert motors.statistic == before
            if k % 2:
                continue
        motors.update_from_motors(x[k], xd[k], u[k], t)
    assert abs(motors.mass - payload.mass) < 2e-3 * MASS
    assert abs(payload.mass - MASS) < 0.01 * MASS


def test_other_coordinates_keep_the_estimate():
    mech = robot("five_bar")
    payload = followed("five_bar", 300)
    _, _, q, v, _ = motion("five_bar", 300)
    assert payload.repartitioned(q[-1], v[-1]) is payload
    part = hc.partition(mech, q[0], independent=["elbow_left", "elbow_right"])
    other = hc.PayloadEstimator(mech, "tip", 100.0, payload.noise, dt=DT, partition=part)
    assert other.observer.coordinates != payload.observer.coordinates
    _, _, q, v, u = motion("five_bar", 300)
    noisy = u + sigma_of(u) * np.random.default_rng(0).normal(size=u.shape)
    for row in zip(q, v, noisy, strict=True):
        other.update(*row)
    assert abs(other.mass - payload.mass) < 0.3 * payload.standard_deviations[0]
    assert abs(other.fresh().threshold - other.threshold) == 0.0


def test_pivots_decide_what_is_known():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 4))
    X[:, 3] = 2.0 * X[:, 1]  # not told apart; the others are
    x = np.array([2.0, 0.3, -0.4, 0.0])
    S = np.zeros((5, 5))
    S += np.column_stack([X, X @ x]).T @ np.column_stack([X, X @ x])
    found, C, known = solved_payload(S, S[:4, :4].copy())
    assert known.tolist() == [True, False, True, False]
    np.testing.assert_allclose(found[known], x[known], atol=1e-12)
    expected = np.linalg.inv(S[:3, :3])[0, 0]
    assert abs(C[0, 0] - expected) < 1e-12


# -------------------------------------------------------------------------------- what is refused


def test_bad_input_is_told():
    mech = robot("five_bar")
    for options, words in (
        ({"frame": "nose"}, "nose"), ({"frame": "universe"}, "world"), ({"gain": -1.0}, "gain"),
        ({"noise": 0.0}, "above zero"), ({"noise": [1.0]}, "noise"),
        ({"rate_noise": -1.0}, "negative"), ({"forgetting_time": 0.0}, "forgetting_time"),
        ({"false_alarm": 1.0}, "between"), ({"every": 0}, "every"),
    ):  # fmt: skip
        given = {"frame": "tip", "gain": 100.0, "noise": 0.1} | options
        with pytest.raises(hc.InputError, match=words):
            hc.PayloadEstimator(mech, **given)
    passive = replace(mech, actuated=["motor_left"])
    with pytest.raises(hc.InputError, match="rate_noise"):
        hc.PayloadEstimator(passive, "tip", 100.0, 0.1)
    payload = hc.PayloadEstimator(passive, "tip", 100.0, 0.1, rate_noise=1e-4)
    q, v = hc.assemble(passive)
    payload.update(q, v, [0.0])
    payload.reset(q, v)
    payload.update(q, v, [0.0])
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(hc.InputError, match="one loop"):
            copied(payload)


# ----------------------------------------------------------------------------------------- in C

STATUSES = {0: "OK", 1: "NOT_FINITE", 14: "LATE"}


class Estimate(ctypes.Structure):
    _fields_ = (
        ("detected", ctypes.c_int), ("statistic", ctypes.c_double),
        ("threshold", ctypes.c_double), ("known", ctypes.c_int * 4), ("mass", ctypes.c_double),
        ("centre", ctypes.c_double * 3), ("deviation", ctypes.c_double * 4),
    )  # fmt: skip


class InC:
    """An exported estimator."""

    def __init__(self, payload, folder):
        self.paths = hc.export_c(payload, folder)
        self.prefix = self.paths[0].stem
        self.library = ctypes.CDLL(str(library(self.paths[:2], folder)))
        program, upper = folder / "size.c", self.prefix.upper()
        program.write_text(
            f'#include <stdio.h>\n#include "{self.prefix}.h"\nint main(void) {{ printf("%lu %lu", '
            f"(unsigned long)sizeof({self.prefix}), {upper}_CONTENT); return 0; }}\n"
        )
        run(compilers()[0], program, "-o", folder / "size", f"-I{folder}")
        size, content = (ctypes.c_ulong(int(x)) for x in run(folder / "size").split())
        self.c = ctypes.create_string_buffer(size.value)
        init = self.library[f"{self.prefix}_init_checked"]
        assert init(ctypes.byref(self.c), size, content) == 0

    def update(self, x, xd, u, t):
        arrays = [np.ascontiguousarray(a, dtype=float) for a in (x, xd, u)]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        f = self.library[f"{self.prefix}_update"]
        return STATUSES[f(ctypes.byref(self.c), *pointers, ctypes.c_double(t))]

    def estimate(self):
        found = Estimate()
        f = self.library[f"{self.prefix}_get"]
        assert f(ctypes.byref(self.c), ctypes.byref(found)) == 0
        return found


@pytest.mark.parametrize("name", few(ROBOTS, ["five_bar"]))
def test_c_gives_what_python_gives(name, tmp_path):
    compilers()
    pytest.importorskip("casadi")
    x, xd, _, _, u = motion(name, 1000)
    sigma = sigma_of(u)
    noisy = u + sigma * np.random.default_rng(0).normal(size=u.shape)
    payload = hc.PayloadEstimator(
        robot(name), ROBOTS[name][0], 100.0, sigma, forgetting_time=0.7, rate_noise=1e-5, dt=DT
    )
    c, refused, compared = InC(payload, tmp_path), 0, 0
    for k in range(1001):
        given = x[k], xd[k], noisy[k], DT * k
        if k % 11 == 5:  # refused in both: positions, efforts, the time
            bad, status = [
                ((np.nan * x[k], *given[1:]), "NOT_FINITE"),
                ((*given[:2], np.inf * u[k], given[3]), "NOT_FINITE"),
                ((*given[:3], DT * (k - 3)), "LATE"),
                ((*given[:3], np.nan), "NOT_FINITE"),
            ][refused % 4]
            assert c.update(*bad) == status
            with pytest.raises(hc.InputError):
                payload.update_from_motors(*bad)
            refused += 1
            if k % 2:
                continue
        assert c.update(*given) == "OK"
        payload.update_from_motors(*given)
        if k % 20:
            continue
        found, compared = c.estimate(), compared + 1
        deviations = payload.standard_deviations
        assert list(found.known) == np.isfinite(deviations).astype(int).tolist()
        assert bool(found.detected) == payload.detected
        assert found.statistic == pytest.approx(payload.statistic, rel=1e-8)
        mine = np.nan_to_num([payload.mass, *payload.centre])
        tolerance = 1e-10 if k > 200 else 1e-7  # at first little is known
        np.testing.assert_allclose([found.mass, *found.centre], mine, rtol=0, atol=tolerance)
        np.testing.assert_allclose(list(found.deviation), deviations, rtol=1e-6)
    assert refused > 80
    assert compared > 40
    assert payload.detected
    assert abs(payload.mass - MASS) < 0.02 * MASS


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_the_self_test_of_the_export_passes(name, tmp_path):
    cmake()
    payload = hc.PayloadEstimator(robot(name), ROBOTS[name][0], 100.0, 0.1, forgetting_time=1.0)
    hc.export_c(payload, tmp_path)
    assert "all is well" in build_and_test(tmp_path, compilers()[0], "-DHOLOCTL_SANITIZE=ON")


def test_options_that_a_payload_does_not_have_are_refused(tmp_path):
    payload = hc.PayloadEstimator(robot("five_bar"), "tip", 100.0, 0.1)
    with pytest.raises(hc.InputError, match="PayloadEstimator is exported without 'weights'"):
        hc.export_c(payload, tmp_path, weights=[1.0, 1.0])
