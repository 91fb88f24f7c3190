"""Equations along a measured motion: their residual with the true parameters is the noise."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from measured_motion import measured_motion, residual
from scipy.special import gammaincc

import holoctl as hc
from holoctl.identification.effort_rows import effort_rows
from holoctl.identification.regression import equations_at
from holoctl.identification.zero_phase_filter import FLAT, SHARP, Grid, fitted_period, grids_of

ROBOTS = ("five_bar", "leg", "delta", "stewart")


# ---------------------------------------------------------------------------------- the filter


@pytest.mark.parametrize("kind", [SHARP, FLAT], ids=["sharp", "flat"])
@pytest.mark.parametrize("rate", [1000.0, 137.0])
def test_the_filter_multiplies_a_harmonic_by_its_gain(kind, rate):
    cutoff = 10.0
    grid = Grid(0.3, 1.0 / rate, int(3 * rate))
    at = np.linspace(1.5, 2.1, 13)
    s = 0.5 * (2.0 * np.pi * kind.width) ** 2  # at the cutoff
    assert gammaincc(kind.terms, s) == pytest.approx(np.sqrt(0.5), abs=1e-4)
    for f in (0.0, 1.0, 7.0, 10.0, 14.0):
        w, gain = 2.0 * np.pi * f, gammaincc(kind.terms, s * (f / cutoff) ** 2)
        wave = np.cos(w * grid.times + 0.4)
        assert gain > 0.1
        for d in (0, 1, 2) if kind is FLAT else (0,):
            found = kind.matrix(grid, at, cutoff, d) @ wave
            exact = gain * w**d * np.cos(w * at + 0.4 + 0.5 * np.pi * d)
            assert abs(found - exact).max() < 5e-5 * max(1.0, w) ** d


def test_constants_have_no_acceleration():
    grid = Grid(0.0, 1e-3, 2000)
    at = np.array([0.7, 1.0003])
    for d in (1, 2):
        assert abs(FLAT.matrix(grid, at, 50.0, d) @ np.full(2000, 3.0)).max() < 1e-5


def test_filtered_noise_is_independent_at_two_samples_a_period():
    grid = Grid(0.0, 1e-3, 60_000)
    noise = np.random.default_rng(0).normal(size=grid.samples)
    for shift, low, high in ((0.05, -0.05, 0.05), (0.0125, 0.7, 1.0)):
        at = 1.0 + shift * np.arange(int(58.0 / shift))
        x = SHARP.matrix(grid, at, 10.0) @ noise
        assert low < np.mean(x[1:] * x[:-1]) / np.mean(x * x) < high


def test_uneven_times_and_short_gaps_are_interpolated_and_long_ones_are_not():
    rng = np.random.default_rng(1)
    t = np.sort(np.arange(0.0, 2.0, 1e-3) + 2e-4 * rng.uniform(-1.0, 1.0, 2000))
    keep = np.ones(t.size, dtype=bool)
    keep[500:505], keep[1200:1300] = False, False
    pieces = grids_of(t[keep], np.sin(9.0 * t[keep])[:, None], bridge=0.01)
    assert len(pieces) == 2
    for grid, x in pieces:
        assert abs(x[:, 0] - np.sin(9.0 * grid.times)).max() < 1e-7


def test_the_period_of_a_motion_is_found():
    t = np.arange(0.0, 7.0, 2e-3)
    x = np.column_stack([np.sin(np.pi * t) + 0.4 * np.cos(3 * np.pi * t), np.cos(2 * np.pi * t)])
    noise = 1e-3 * np.random.default_rng(2).normal(size=x.shape)
    assert fitted_period(t, x + noise, 5) == pytest.approx(2.0, abs=1e-3)
    assert np.isnan(fitted_period(t, np.column_stack([t**2, np.exp(0.3 * t)]), 5))


# ------------------------------------------------------------------------------- the equations


@pytest.mark.parametrize("name", ROBOTS)
def test_with_the_true_parameters_the_residual_is_the_noise(name):
    m = measured_motion(name)
    exact = hc.regression(m.model, hc.Measurements(m.t, m.x, m.u), lag=0.0)
    assert residual(exact, m.values) < 1e-3  # dry friction changes its sign between samples
    assert residual(exact, 1.2 * m.values) > 0.1
    assert np.isin(np.diff(exact.t).round(9), [0.05]).all()
    assert exact.rate == 20.0

    x, u = m.noisy(seed=3)
    noisy = hc.regression(m.model, hc.Measurements(m.t, x, u), lag=0.0)
    part = 0.015 * abs(m.u).max(axis=0) * np.sqrt(2 * 10.0 / 400.0)  # of the noise below 10 Hz
    spread = (noisy.W @ m.values - noisy.y).std(axis=0)
    assert (spread < 1.6 * part).all()
    assert (spread > 0.5 * part).all()


@pytest.mark.parametrize("measured", ["all", "others"])
def test_the_same_equations_from_other_sensors(measured):
    m = measured_motion("five_bar")
    names = m.mech.coordinate_names
    keep = range(4) if measured == "all" else [names.index(n) for n in names][1:4]
    x = np.unwrap(m.q, axis=0)[:, list(keep)]
    own = hc.regression(m.model, hc.Measurements(m.t, m.x, m.u), lag=0.0)
    data = hc.Measurements(m.t, x, m.u, measured=[names[i] for i in keep])
    other = hc.regression(m.model, data, lag=0.0)
    assert np.allclose(own.W, other.W, atol=1e-4 * abs(own.W).max())
    assert residual(other, m.values) < 4e-4


def test_measured_rates_are_used():
    m = measured_motion("five_bar")
    v = np.gradient(m.x, m.t, axis=0, edge_order=2)
    data = hc.regression(m.model, hc.Measurements(m.t, m.x, m.u, rates=v), lag=0.0)
    assert residual(data, m.values) < 1e-3
    wrong = hc.regression(m.model, hc.Measurements(m.t, m.x, m.u, rates=1.5 * v), lag=0.0)
    assert residual(wrong, m.values) > 0.01


def test_more_motors_than_motions_and_motors_in_another_order():
    m = measured_motion("five_bar")
    more = dataclasses.replace(m.true, actuated=(*m.mech.actuated, "elbow_left"), limits=None)
    model = hc.Parameters(more, friction="model")
    extra = 0.3 * np.sin(3.0 * m.t)
    lever = []  # what the third motor adds to the other two, by its lever on each
    sensors = hc.ClosedStateEstimator(m.true)
    sensors.resynchronise(m.x[0])
    for x in m.x:
        P = hc.project(
            m.true, sensors.state(x)[0], np.zeros(m.true.nv), partition=sensors.partition
        )
        lever.append(np.linalg.solve(P.gamma.T @ m.true.B, P.gamma.T @ more.B[:, 2]))
    u = np.column_stack([m.u - extra[:, None] * np.array(lever), extra])
    order = [2, 0, 1]
    data = hc.Measurements(
        m.t, m.x, u[:, order], m.mech.actuated, motors=[more.actuated[i] for i in order]
    )
    found = hc.regression(model, data, lag=0.0)
    assert found.labels == ("motion 1", "motion 2")
    assert residual(found, model.values) < 4e-4
    assert residual(found, 1.1 * model.values) > 0.05


@pytest.mark.parametrize("motors", [1, 2, 3], ids=["passive", "square", "redundant"])
def test_rows_are_those_of_the_efforts_at_every_state(motors):
    mech = hc.load(hc.robot_file("five_bar"))
    names = (*mech.actuated, "elbow_left")[:motors]
    mech = dataclasses.replace(mech, actuated=names, limits=None)
    q, v = hc.assemble(mech, v_guess=[1.0, 0.0, 0.5, 0.0])
    P = hc.project(mech, q, v)
    rows = effort_rows(P)
    assert np.allclose(rows.L @ mech.B, rows.of_efforts, atol=1e-12)
    assert np.linalg.matrix_rank(np.vstack([P.gamma.T, rows.L])) == P.k == len(rows.L)
    later = hc.project(mech, *hc.assemble(mech, q + 0.01 * P.gamma @ [1.0, 1.0]))
    assert abs(effort_rows(later, rows).L - rows.L).max() < 0.1  # no change of sign or order
    model, a = hc.Parameters(mech), P.gamma @ [1.0, -2.0] + P.bias
    W, y = equations_at(model, P, a, np.zeros(motors))
    needed = P.terms.M @ a + P.terms.h - P.terms.F
    assert np.allclose(W @ model.values - y, rows.L @ needed, atol=1e-10)


def test_a_periodic_motion_is_averaged():
    m = measured_motion("leg", seconds=4.5)
    x, u = m.noisy(seed=5)
    data = hc.Measurements(m.t, x, u)
    filtered = hc.regression(m.model, data, lag=0.0)
    periodic = hc.regression(m.model, data, method="periodic", harmonics=4, lag=0.0)
    assert "period of the motion is 2" in periodic.notes[0]
    exact = hc.regression(m.model, hc.Measurements(m.t, m.x, m.u), lag=0.0)
    at = np.searchsorted(periodic.t, exact.t - 1e-9)
    assert abs(periodic.t[at] - exact.t).max() < 1e-9
    error = abs(filtered.a - exact.a).max(), abs(periodic.a[at] - exact.a).max()
    assert error[1] < 0.02 * error[0]
    with pytest.raises(hc.InputError, match=r"does not repeat every 1.3 s.*method='filter'"):
        hc.regression(m.model, data, method="periodic", period=1.3, harmonics=4)
    short = hc.Measurements(m.t[:700], x[:700], u[:700])
    with pytest.raises(hc.InputError, match="no period within"):
        hc.regression(m.model, short, method="periodic")


# --------------------------------------------------------- efforts: clocks, lags, gaps, limits


def test_efforts_at_another_rate_and_a_lag_are_found_and_told():
    m = measured_motion("leg")
    lag, own = 0.0073, np.arange(0.11, 2.9, 1.0 / 333.0)
    u = np.column_stack([np.interp(own - lag, m.t, column) for column in m.u.T])
    data = hc.Measurements(m.t, m.x, u, t_efforts=own)
    found = hc.regression(m.model, data)
    assert found.lag == pytest.approx(lag, abs=2e-4)
    assert any("lag by 7.3" in note for note in found.notes)
    assert residual(found, m.values) < 2e-3
    assert residual(hc.regression(m.model, data, lag=0.0), m.values) > 0.02
    assert residual(hc.regression(m.model, data, lag=lag), m.values) < 2e-3
    late = hc.Measurements(m.t, m.x, u, t_efforts=own + 0.07)
    with pytest.raises(hc.InputError, match="their clocks differ"):
        hc.regression(m.model, late)


def test_a_motion_that_does_not_tell_the_lag_is_no_wrong_clock():
    model, t = hc.Parameters(hc.load(hc.robot_file("four_bar"))), np.arange(0.0, 2.0, 2e-3)
    for seed in range(4):
        u = 1.0 + 0.1 * np.random.default_rng(seed).normal(size=t.size)
        found = hc.regression(model, hc.Measurements(t, 1.0 + 1e-3 * t, u))
        assert found.lag == 0.0
        assert "lag" in found.notes[-1]


def test_gaps_are_left_out_and_told():
    m = measured_motion("five_bar")
    x, u = m.x.copy(), m.u.copy()
    x[400:480], u[800:880], u[200:203] = np.nan, np.nan, np.nan
    found = hc.regression(m.model, hc.Measurements(m.t, x, u), lag=0.0)
    full = hc.regression(m.model, hc.Measurements(m.t, m.x, m.u), lag=0.0)
    away = (found.t < 1.0 - 0.12) | (found.t > 1.2 + 0.12)
    away &= (found.t < 2.0 - 0.12) | (found.t > 2.2 + 0.12)
    assert away.all()
    assert 0 < found.t.size < full.t.size - 10
    assert residual(found, m.values) < 4e-4
    assert any("80 rows of positions" in note for note in found.notes)
    assert any("pauses of up to 0.20" in note for note in found.notes)
    assert any("83 rows of efforts" in note for note in found.notes)


def test_saturated_efforts_are_left_out_and_told():
    m = measured_motion("five_bar")
    limit = 0.95 * abs(m.u).max()
    u = np.clip(m.u, -limit, limit)
    assert 10 < np.count_nonzero(abs(u) == limit) < 200
    trusting = hc.regression(m.model, hc.Measurements(m.t, m.x, u), lag=0.0)
    told = hc.regression(m.model, hc.Measurements(m.t, m.x, u, effort_limits=limit), lag=0.0)
    assert residual(told, m.values) < 4e-4 < residual(trusting, m.values)
    assert told.t.size < trusting.t.size
    assert any("at their limits left out" in note for note in told.notes)
    limited = dataclasses.replace(m.mech, limits=hc.Limits(effort=float(limit)))
    model = hc.Parameters(limited, friction="motors", transition=0.05)
    same = hc.regression(model, hc.Measurements(m.t, m.x, u), lag=0.0)
    assert np.array_equal(same.t, told.t)
    amperes = hc.regression(model, hc.Measurements(m.t, m.x, 100.0 * m.u), lag=0.0)
    assert any("exceed their limits" in note for note in amperes.notes)


def test_states_at_a_singularity_of_the_actuation_are_left_out_and_told():
    m = measured_motion("four_bar")
    rocker = dataclasses.replace(m.mech, actuated=("rocker",), limits=None)
    sensors = hc.ClosedStateEstimator(rocker, measured=["crank"])
    angles = np.arange(1.0, 7.0, 0.01)
    q = np.array([sensors.state([angle])[0] for angle in angles])
    turning = np.diff(q[:, rocker.coordinate_names.index("rocker")])
    dead = angles[1 + np.flatnonzero(turning[:-1] * turning[1:] < 0.0)[0]]
    t = np.arange(0.0, 2.0, 2e-3)
    x = dead + 0.05 * (t - 1.0)  # the crank passes a dead point of the rocker
    data = hc.Measurements(t, x, np.zeros(t.size), measured=["crank"])
    start = sensors.state([x[0]])[0]
    found = hc.regression(hc.Parameters(rocker), data, lag=0.0, start=start)
    assert any("singularity of the actuation left out" in note for note in found.notes)
    assert np.isfinite(found.W).all()
    assert np.diff(found.t).max() > 0.2


# -------------------------------------------------------------------------------- what is wrong


def test_wrong_input_is_refused_with_its_cause():
    m = measured_motion("five_bar")
    good = hc.Measurements(m.t, m.x, m.u)
    wrong = [
        ({"cutoff": 200.0}, "sampled at 400 Hz; cutoff=200"),
        ({"cutoff": 0.0}, "cutoff"),
        ({"method": "spline"}, "method"),
        ({"period": 2.0}, "method='periodic'"),
        ({"lag": "none"}, "estimate"),
        ({"lag": 3.0}, "no equation is left"),
    ]
    for options, message in wrong:
        with pytest.raises(hc.InputError, match=message):
            hc.regression(m.model, good, **options)
    endless = hc.Parameters(m.mech, columns={"endless": lambda P, a: np.full(4, np.inf)})
    with pytest.raises(hc.InputError, match="columns 'endless' or known forces are not finite"):
        hc.regression(endless, good)
    with pytest.raises(hc.InputError, match="expected Measurements"):
        hc.regression(m.model, (m.t, m.x, m.u))
    with pytest.raises(hc.InputError, match="milliseconds"):
        hc.regression(m.model, hc.Measurements(1e3 * m.t, m.x, m.u))
    with pytest.raises(hc.InputError, match="column for each of the 2 motors"):
        hc.regression(m.model, hc.Measurements(m.t, m.x, m.u[:, :1]))
    with pytest.raises(hc.InputError, match="column for each of motor_left, motor_right"):
        hc.regression(m.model, hc.Measurements(m.t, m.x[:, :1], m.u))
    with pytest.raises(hc.InputError, match="no effort of motor called 'motor_left'"):
        hc.regression(m.model, hc.Measurements(m.t, m.x, m.u, motors=["left", "motor_right"]))


def test_a_lost_branch_is_refused_with_its_time():
    m = measured_motion("five_bar")
    x = m.x.copy()
    x[800:] += 2.5  # a counter that lost its place
    with pytest.raises(hc.HoloctlError, match=r"at t = (1.9|2.0)\d* s .*lost sample or counter"):
        hc.regression(m.model, hc.Measurements(m.t, x, m.u))
    with pytest.raises(hc.HoloctlError, match=r"units .degrees. of the encoders"):
        hc.regression(m.model, hc.Measurements(m.t, np.degrees(m.x), m.u))


# ------------------------------------------------------------------------- figures, ten seeds

LARGEST = {"five_bar": 0.0012, "leg": 0.0025, "delta": 0.0025, "stewart": 0.005}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROBOTS)
def test_least_squares_predict_the_efforts_of_another_motion(name):
    """1 kHz, 10 s, 1.5 % noise, encoders of 17 bits: errors and intervals over ten seeds."""
    test = measured_motion(name, 5.0, 200.0, seed=100, period=5.0, harmonics=5)
    model = test.model
    base = hc.base_parameters(model)
    at = [model.names.index(x) for x in base.independent]
    clean = hc.regression(model, hc.Measurements(test.t, test.x, test.u), lag=0.0)
    errors, covered = [], []
    for seed in range(1, 11):
        m = measured_motion.__wrapped__(name, 10.0, 1000.0, seed=seed, period=5.0, harmonics=5)
        x, u = m.noisy(seed)
        data = hc.regression(model, hc.Measurements(m.t, x, u))
        W, n, g = data.W[:, :, at], *data.y.shape
        b = np.linalg.lstsq(W.reshape(n * g, -1), data.y.ravel(), rcond=None)[0]
        off = clean.W[:, :, at] @ b - clean.y
        errors.append(np.linalg.norm(off) / np.linalg.norm(clean.y))
        noise = np.sum((data.y - W @ b) ** 2, axis=0) / (n - len(at) / g)
        bread = np.linalg.inv(np.einsum("ngi,ngj->ij", W, W))
        spread = np.sqrt(np.diag(bread @ np.einsum("ngi,g,ngj->ij", W, noise, W) @ bread))
        covered.append(abs(b - base.matrix @ m.values) < 1.96 * spread)
    assert np.mean(errors) < LARGEST[name]
    assert 0.90 <= np.mean(covered) <= 0.98
