"""Motions that tell parameters apart: within limits everywhere, and better than random ones."""

from __future__ import annotations

import csv
import time

import numpy as np
import pytest

import holoctl as hc
from holoctl.design.paths.inputs import start_of
from holoctl.identification.ascent import gradient
from holoctl.identification.fourier import Series, free_coefficients
from holoctl.identification.random_motions import (
    best_random,
    search_from,
    states_from,
    tightened,
)
from holoctl.identification.regression import equations_at
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.limited_coordinates import coordinates_at

QUICK = {"period": 2.0, "harmonics": 2, "starts": 2, "iterations": 3}


def five_bar():
    return hc.load(hc.robot_file("five_bar"))


LIMITS = hc.Limits(
    effort={"motor_left": 4.0, "motor_right": (-3.0, 5.0)},
    velocity={"motor_left": 6.0, "elbow_right": (-8.0, 5.0)},
    acceleration={"motor_right": 60.0, "tip_hinge": 150.0},
    position={"motor_left": (1.6, 2.9), "elbow_left": (-2.2, -0.6), "tip_hinge": (0.5, 2.6)},
)
"""Of motors, of a passive joint and of a cut joint."""


@pytest.fixture(scope="module")
def plan():
    return hc.excitation(hc.Parameters(five_bar(), friction="motors"), LIMITS, **QUICK)


@pytest.fixture(scope="module")
def random(plan):
    return hc.excitation(plan.model, LIMITS, seed=1, **{**QUICK, "iterations": 0})


def test_it_is_within_limits_everywhere(plan):
    mech, bound = plan.model.mech, bound_limits(plan.model.mech, LIMITS.scaled(0.95))
    room = dict.fromkeys(("effort", "position", "velocity", "acceleration"), np.inf)
    for t in np.random.default_rng(1).uniform(0.0, plan.period, 150):
        q, v, a = plan.trajectory.state(t)
        u = hc.inverse_dynamics(mech, q, v, a, coordinates="all").u
        at = coordinates_at(mech, bound, q, v, 0.0)
        here = {
            "effort": u, "position": at.positions, "velocity": at.velocities,
            "acceleration": at.accelerations(a),
        }  # fmt: skip
        for what, x in here.items():
            lower, upper = getattr(bound, what)
            size = np.where(np.isfinite(upper - lower), 0.5 * (upper - lower), 1.0)
            room[what] = min(room[what], (np.minimum(x - lower, upper - x) / size).min())
    assert min(room.values()) >= -1e-3, room
    assert min(room.values()) < 0.1  # some limit matters
    assert min(plan.margin.values()) >= 0.0
    assert {"motor_left", "elbow_left.position", "tip_hinge.acceleration"} < set(plan.margin)


def test_it_starts_and_ends_at_rest_at_the_start(plan):
    mech, trajectory = plan.model.mech, plan.trajectory
    first, last = trajectory.state(0.0), trajectory.state(plan.period)
    assert isinstance(trajectory, hc.Trajectory)
    assert np.allclose(first.q, hc.assemble(mech)[0], atol=1e-9)
    for end in (first, last):
        assert np.allclose(end.q, first.q, atol=1e-8)
        assert np.abs(end.v).max() < 1e-7
        assert np.abs(end.a).max() < 1e-5
    assert np.abs(trajectory.v).max() > 0.5
    series = Series(plan.positions[0], plan.coefficients, plan.period)
    assert np.allclose([series(t).value for t in plan.t], plan.positions, atol=1e-9)


def seen(plan):
    """Singular values of the base columns of equations of measurements, in shares of limits."""
    mech, n, rows = plan.model.mech, 120, []
    for t in np.arange(n) * (plan.period / n):
        q, v, a = plan.trajectory.state(t)
        W, _ = equations_at(plan.model, hc.project(mech, q, v), a, np.zeros(mech.nu))
        rows.append(W / (0.95 * np.array([4.0, 5.0]))[:, None])
    columns = [plan.model.names.index(x) for x in plan.base.independent]
    return np.linalg.svd(np.vstack(rows)[:, columns] / np.sqrt(n), compute_uv=False)


@pytest.mark.slow
def test_information_is_that_of_the_equations_of_measurements(plan, random):
    """Sizes of parameters are a constant, which a second motion shows."""
    gained = plan.information - random.information
    assert abs(gained) > 1.0
    assert 2.0 * np.log(seen(plan) / seen(random)).sum() == pytest.approx(gained, abs=0.1)


def test_a_motion_is_the_same_each_time(plan, random):
    again = hc.excitation(plan.model, LIMITS, **QUICK)
    assert np.array_equal(again.coefficients, plan.coefficients)
    assert np.abs(random.coefficients - plan.coefficients).max() > 1e-3


def searched(mech, **options):
    model = hc.Parameters(mech, friction="joints", rotors=True)
    begin = start_of(mech, None, None)
    base = hc.base_parameters(model)
    states, first = states_from(model, begin, tightened(model, "model", 0.05), None)
    search = search_from(states, first, base, 2.0, 3)

    class Bar:
        def update(self, n):
            pass

    return best_random(search, base, 1, 0, Bar())[:2]


@pytest.mark.parametrize("name", ["five_bar", "leg"])
def test_derivatives_are_those_of_differences(name):
    search, at = searched(hc.load(hc.robot_file(name)))
    found = gradient(search, at)
    rng = np.random.default_rng(0)
    d, h = rng.normal(size=at.y.shape), 1e-5
    before, after = search.at(at.y - h * d), search.at(at.y + h * d)
    slope = (after.value - before.value) / (2.0 * h)
    assert abs(slope) > 1.0
    assert 2.0 * found.g @ d.ravel() == pytest.approx(slope, rel=2e-3)
    slack = (after.excited.slack - before.excited.slack).ravel() / (2.0 * h)
    assert np.allclose(found.A @ d.ravel(), slack, atol=2e-3 * np.abs(slack).max())


def test_coefficients_start_at_rest():
    for harmonics in (2, 3, 7):
        Z, k = free_coefficients(harmonics), np.arange(1, harmonics + 1)
        assert np.linalg.matrix_rank(Z) == Z.shape[1] == 2 * harmonics - 2
        assert np.abs(k @ Z[:harmonics]).max() < 1e-12
        assert np.abs(k**2 @ Z[harmonics:]).max() < 1e-12


def test_it_is_written_as_csv(plan, tmp_path):
    plan.save(tmp_path / "motion.csv", frequency=200.0)
    header, *rows = csv.reader((tmp_path / "motion.csv").open())
    assert header[:4] == ["t", "motor_left", "motor_right", "d motor_left"]
    assert len(rows) == 400
    row = np.array(rows[57], dtype=float)
    assert np.allclose(row[1:], np.concatenate(plan.trajectory.reference(0.285)), atol=1e-12)
    with pytest.raises(hc.InputError, match="cannot be written"):
        plan.save(tmp_path / "none" / "motion.csv")


def test_it_says_what_no_motion_excites(plan):
    assert "proximal_left.Ixx" in plan.base.unseen
    assert "no motion excites: proximal_left.m, " in str(plan)
    assert plan.least_seen in plan.base.expressions


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"harmonics": 0}, hc.InputError, "harmonics"),
        ({"harmonics": 1}, hc.InputError, "at least 2"),
        ({"period": 0.0}, hc.InputError, "period"),
        ({"period": 1e-5}, hc.HoloctlError, "longer period"),
        ({"limits": None}, hc.InputError, "nothing limits the motion"),
        ({"limits": 3.0}, hc.InputError, "limits must be"),
        ({"margin": 1.0}, hc.InputError, "margin"),
        ({"noise": [1.0, 0.0]}, hc.InputError, "noise"),
        ({"noise": [1.0]}, hc.InputError, "noise"),
        ({"starts": 0}, hc.InputError, "starts"),
        ({"limits": hc.Limits(position={"motor_left": (0.0, 1.0)})}, hc.LimitError,
         "motor_left.position"),
        ({"limits": hc.Limits(effort=0.01)}, hc.LimitError, "motor_left"),
        ({"limits": hc.Limits(position={"motor_left": (2.19817, 2.19818),
                                         "motor_right": (0.94204, 0.94206)})},
         hc.HoloctlError, "motion"),
    ],
)  # fmt: skip
def test_it_refuses(options, error, says):
    model = hc.Parameters(five_bar())
    with pytest.raises(error, match=says):
        hc.excitation(model, **{**QUICK, "starts": 1, "iterations": 0, **options})


def test_it_refuses_what_is_not_driven():
    with pytest.raises(hc.NotActuatedError, match="motion"):
        hc.excitation(hc.Parameters(hc.load(hc.robot_file("leg"), free_flyer=True)))
    with pytest.raises(hc.InputError, match="Parameters"):
        hc.excitation(five_bar())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delta", "leg", "stewart"])
def test_it_is_better_than_random_motions(name):
    mech = hc.load(hc.robot_file(name))
    model = hc.Parameters(mech)
    begin = time.process_time()
    plan = hc.excitation(model)
    took = time.process_time() - begin
    assert len(plan.of_random) == 16
    assert plan.smallest_singular_value >= 1.3 * max(plan.of_random)
    assert took < 60.0
