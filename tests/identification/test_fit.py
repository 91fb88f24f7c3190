"""Fits: consistent, as good as the noise allows, and honest about it."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from identification.simulated import as_drawn, equations, measured, motion, robot

import holoctl as hc
from holoctl.identification import consistent_program as program
from holoctl.identification.consistent_program import body_parameters, consistent_program
from holoctl.identification.noise import compressed, effects, flat
from holoctl.identification.pseudo_inertia import (
    floored_factor,
    in_frame,
    parameters_from,
    pseudo_inertia,
)

METHODS = ["pullback", "entropic"]


def five_bar(noise=0.002, seed=0, **kwargs):
    """Model, data, true parameters, and a test without noise."""
    model = hc.Parameters(robot("five_bar"), friction="motors", **kwargs)
    truth = np.array(model.values)
    data = measured(equations(model, "five_bar"), truth, noise, seed)
    return model, data, truth, measured(equations(model, "five_bar", seed=1), truth)


def worst(fit, test):
    return max(fit.errors(test).values())


# ------------------------------------------------------------------------- pseudo-inertias


def test_pseudo_inertias_are_those_of_bodies():
    body = pin.Inertia.Random()
    ten, place = np.asarray(body.toDynamicParameters()), pin.SE3.Random()
    assert np.linalg.eigvalsh(pseudo_inertia(ten))[0] > 0.0
    np.testing.assert_allclose(parameters_from(pseudo_inertia(ten)), ten, atol=1e-14)
    moved = np.asarray(place.act(body).toDynamicParameters())
    np.testing.assert_allclose(in_frame(place) @ ten, moved, atol=1e-12)
    flat_body = pin.Inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 2.0]))
    flat_body.inertia = np.diag([1.0, 1.0, 2.1])  # larger than the sum of the others
    assert np.linalg.eigvalsh(pseudo_inertia(flat_body.toDynamicParameters()))[0] < 0.0


@pytest.mark.parametrize("second", [np.zeros(3), [0.0, 0.1, 0.1]])
@pytest.mark.parametrize("mass", [0.0, 2.0])
def test_priors_of_points_and_rods_have_a_factor(second, mass):
    body = pin.Inertia.Zero()
    body.mass, body.lever, body.inertia = mass, np.array([0.3, 0.0, 0.0]), np.diag(second) * mass
    ten = np.asarray(body.toDynamicParameters())
    L = floored_factor(ten, 1.0, 0.1)
    assert np.linalg.eigvalsh(L @ L.T)[0] > 0.0
    if mass:
        off = np.abs(L @ L.T - pseudo_inertia(ten)).max()
        assert off < 2.0 * program.MARGIN**0.5 * np.abs(pseudo_inertia(ten)).max()


# ------------------------------------------------------------------------------------ fits


@pytest.mark.parametrize("method", [*METHODS, "least squares"])
def test_exact_data_give_the_true_base_parameters(method):
    model, data, truth, test = five_bar(noise=0.0)
    prior = as_drawn(model.mech)
    fit = hc.identify(data, prior, strength=1.0, method=method)
    before = hc.identify(measured(data, fit.prior), prior, strength=1.0, method=method)
    assert worst(before, test) > 0.05  # the prior is bad
    assert worst(fit, test) < 1e-6
    np.testing.assert_allclose(fit.base.of(fit.p), fit.base.of(truth), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_noisy_data_give_bodies_and_predict(method):
    model, data, _truth, test = five_bar()
    prior = as_drawn(model.mech)
    fit = hc.identify(data, prior, method=method, strength=25.0)
    assert worst(fit, test) < 0.004
    assert min(fit.least_eigenvalues.values()) > 0.0
    made = fit.mechanism()
    again = hc.Parameters(made, friction="motors", transition=0.05)
    np.testing.assert_allclose(again.values, fit.p, rtol=1e-9, atol=1e-12)
    for name, s in fit.sigma.items():
        y = data.y[:, data.labels.index(name)]
        assert s == pytest.approx(0.002 * np.abs(y).max(), rel=0.25)


def test_the_strength_is_the_one_that_predicts_blocks_of_time_best():
    model, data, _, test = five_bar()
    fit = hc.identify(data, as_drawn(model.mech))
    best = min(fit.folds, key=lambda s: np.mean(np.square(fit.folds[s])))
    assert best == fit.strength
    assert len(fit.folds[best]) == 5
    assert 0.9 < np.sqrt(np.mean(np.square(fit.folds[best]))) < 1.2
    assert worst(fit, test) < 0.004


def test_intervals_cover_the_truth_in_95_of_100():
    inside, count = 0, 0
    for seed in range(25):
        model, data, truth, _ = five_bar(seed=seed)
        fit = hc.identify(data, as_drawn(model.mech, seed), method="least squares")
        beta = fit.base.of(truth)
        inside += np.count_nonzero((beta > fit.intervals[:, 0]) & (beta < fit.intervals[:, 1]))
        count += beta.size
    assert 0.90 < inside / count < 0.98


def test_samples_that_are_denser_than_the_filter_do_not_count_twice():
    _model, data, _truth, _ = five_bar()
    width = {}
    for rate in (data.rate, 0.25 * data.rate):
        fit = hc.identify(replace(data, rate=rate), method="least squares")
        width[rate] = np.diff(fit.intervals, axis=1)
    ratio = width[0.25 * data.rate] / width[data.rate]
    assert (ratio > 1.9).all()


def test_least_squares_have_no_mechanism():
    _model, data, _truth, test = five_bar()
    fit = hc.identify(data, method="least squares")
    assert worst(fit, test) < 0.004
    assert fit.strength == 0.0
    for call in (fit.mechanism, fit.ellipsoids, lambda: fit.save("robot.urdf")):
        with pytest.raises(hc.InputError, match="base parameters only"):
            call()
    assert "95 % interval" in str(fit)


@pytest.mark.parametrize("method", METHODS)
def test_no_feasible_point_is_better_where_bounds_bind(method):
    """Efforts of a body with a negative mass and of friction that drives."""
    model, data, truth, _ = five_bar(noise=0.0)
    at = [model.names.index(n) for n in ("distal_left.m", "motor_left.coulomb")]
    wrong = truth.copy()
    wrong[at] = -5.0, -0.5
    data = measured(data, wrong, 0.002)
    fit = hc.identify(data, method=method, strength=1e-2)
    assert min(fit.least_eigenvalues.values()) > 0.0
    assert (fit.p >= model.lower).all()
    assert "motor_left.coulomb" in fit.active
    if method == "pullback":
        assert {"distal_left", "proximal_left"} & set(fit.active)
    fit.mechanism()
    sigma = np.array(list(fit.sigma.values()))
    factors = consistent_program(model, truth, effects(data))

    def cost(p):
        apart = 0.0
        for L, name in zip(factors.factors, factors.bodies, strict=True):
            J = pseudo_inertia(body_parameters(model, p)[name])
            eig = np.linalg.eigvalsh(np.linalg.solve(L, np.linalg.solve(L, J).T))
            if method == "pullback":
                apart += np.sum((eig - 1.0) ** 2)
            else:
                apart += np.sum(eig - 1.0 - np.log(eig))
        return np.sum(((data.W @ p - data.y) / sigma) ** 2) + 1e-2 * apart

    own, rng = cost(fit.p), np.random.default_rng(0)
    for _ in range(20):
        other = as_drawn(model.mech, int(rng.integers(1000)))
        p = hc.Parameters(other, friction=model.mech.actuated).values
        for step in (1e-3, 1e-1):
            assert cost(fit.p + step * (p - fit.p)) > own * (1.0 - 1e-6)


def test_known_and_tied_parameters_stay():
    model, data, truth, test = five_bar(
        known=["proximal_left.m", "proximal_right"], tied=[["distal_left", "distal_right"]]
    )
    prior = as_drawn(model.mech)
    fit = hc.identify(data, prior, strength=25.0)
    made = body_parameters(model, fit.p)
    drawn = body_parameters(model, truth)
    np.testing.assert_array_equal(made["distal_left"], made["distal_right"])
    np.testing.assert_array_equal(made["proximal_right"], drawn["proximal_right"])
    assert made["proximal_left"][0] == drawn["proximal_left"][0]
    assert worst(fit, test) < 0.005
    assert min(fit.least_eigenvalues.values()) > 0.0
    assert hc.identify(measured(data, truth * 3.0), prior, strength=1e-2).mechanism()


def test_what_the_data_do_not_excite_stays_at_the_prior():
    still = replace(robot("five_bar"), forces=[hc.JointSpring("motor_left", 1.0)])
    model = hc.Parameters(still, friction=["motor_left", "elbow_left"], rotors=True, springs=True)
    data = equations(model, "five_bar")
    unseen = [n for n in model.names if n.startswith(("elbow_left", "motor_left.rotor"))]
    for name in unseen:
        data.W.setflags(write=True)
        data.W[:, :, model.names.index(name)] = 0.0
    truth = np.abs(model.values) + 0.1 * (model.lower == 0.0)
    fit = hc.identify(measured(data, truth, 0.002), truth * 1.1, strength=25.0)
    for name in unseen:
        assert fit.values[name] == pytest.approx(1.1 * truth[model.names.index(name)], rel=1e-9)


def test_the_program_does_not_depend_on_how_rows_are_compressed():
    _model, data, _truth, _ = five_bar()
    rows = flat(np.concatenate([data.W, data.y[:, :, None]], axis=2))
    R = compressed(rows)
    assert R.shape == (rows.shape[1], rows.shape[1])
    np.testing.assert_allclose(R.T @ R, rows.T @ rows, rtol=1e-9, atol=1e-9)


def test_a_saved_robot_is_read_again(tmp_path):
    model, data, _truth, _ = five_bar(rotors=True)
    fit = hc.identify(data, as_drawn(model.mech), strength=25.0)
    urdf, sheet = fit.save(tmp_path / "robot.yaml")
    assert urdf.suffix == ".urdf"
    assert sheet.name == "robot.yaml"
    again = hc.load(urdf)
    there = hc.Parameters(again, friction="motors", rotors=True)
    assert there.names == model.names
    np.testing.assert_allclose(there.values, fit.p, rtol=1e-8, atol=1e-12)
    made = fit.mechanism()
    q, v = hc.assemble(made)
    u = [hc.inverse_dynamics(m, q, v, target=[1.0, -2.0]).u for m in (made, again)]
    np.testing.assert_allclose(u[0], u[1], rtol=1e-9)


def test_a_fit_prints_a_table_and_has_ellipsoids():
    model, data, _truth, _ = five_bar()
    prior = as_drawn(model.mech)
    fit = hc.identify(data, prior, strength=25.0)
    assert "proximal_left.m" in str(fit)
    assert "prior" in str(fit)
    before, after = fit.ellipsoids()["proximal_left"]
    j = prior.model.getJointId("motor_left")
    body = prior.model.inertias[j]
    assert before.mass == pytest.approx(body.mass)
    np.testing.assert_allclose(before.centre, body.lever, atol=1e-12)
    a, b, c = before.semi_axes**2
    moments = np.sort(before.mass / 5.0 * np.array([b + c, a + c, a + b]))
    np.testing.assert_allclose(moments, np.linalg.eigvalsh(body.inertia), rtol=1e-6)
    assert np.linalg.det(after.rotation) == pytest.approx(1.0)


# ------------------------------------------------------------------------------- bad input


def test_errors_say_what_is_wrong():
    model, data, truth, _ = five_bar()
    few = replace(data, t=data.t[:6], W=data.W[:6], y=data.y[:6])
    same = replace(data, W=np.repeat(data.W[:1], 100, axis=0), y=np.repeat(data.y[:1], 100, axis=0))
    other = hc.load(hc.robot_file("four_bar"))
    for what, match in [
        (lambda: hc.identify(few), "too few for 11|too few for"),
        (lambda: hc.identify(same), "excites nothing"),
        (lambda: hc.identify(data, other), "another mechanism"),
        (lambda: hc.identify(data, -np.abs(truth)), "must not be negative"),
        (lambda: hc.identify(data, truth[:3]), "prior"),
        (lambda: hc.identify(data, strength=-1.0), "strength"),
        (lambda: hc.identify(data, strength=0.0), "strength"),
        (lambda: hc.identify(data, method="ridge"), "method"),
        (lambda: hc.identify(data, folds=1), "folds"),
        (lambda: hc.identify(data, folds=90), "blocks"),
        (lambda: hc.identify(model), "Regression"),
        (lambda: hc.identify(data, strength=1.0).save("robot.xml"), "end with"),
        (lambda: hc.identify(data, strength=1.0).save("/no/such/folder/robot.yaml"), "folder"),
    ]:
        with pytest.raises(hc.InputError, match=match):
            what()
    fit = hc.identify(data, strength=1.0)
    wider = hc.Parameters(model.mech, friction="motors", rotors=True)
    with pytest.raises(hc.InputError, match="model of the fit"):
        fit.errors(equations(wider, "five_bar", 20))


def test_efforts_of_the_wrong_sign_or_unit_are_told(caplog):
    model, data, _truth, _ = five_bar()
    prior = as_drawn(model.mech)
    with pytest.raises(hc.InputError, match=r"better by .* 'motor_left', 'motor_right' negated"):
        hc.identify(replace(data, y=-data.y), prior, strength=25.0)
    with pytest.raises(hc.InputError, match=r"better by .* of 'motor_right' negated"):
        hc.identify(replace(data, y=data.y * [1.0, -1.0]), prior, strength=25.0)
    with caplog.at_level(logging.WARNING):
        hc.identify(replace(data, y=1e-3 * data.y), prior, strength=25.0)
    assert re.search(r"0\.00\d+ times those of the prior", caplog.text)


def test_what_makes_a_fit_doubtful_is_told(caplog):
    model, data, _truth, _ = five_bar()
    noise = np.random.default_rng(1).normal(size=data.y.shape)
    bare = hc.Parameters(model.mech, bodies=["distal_left"])
    for what, told in [
        (replace(data, y=-data.y), "'motor_left' are opposite to those of the prior"),
        (replace(data, y=noise), r"leaves \d+% of the efforts of 'motor_left' unexplained"),
        (measured(motion(bare, "five_bar", 0.3, 0), bare.values), None),
        (_slowly_off(motion(bare, "five_bar", 0.3, 0)), "residuals of 'motor_left' are no noise"),
    ]:
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            hc.identify(what, method="least squares")
        assert re.search(told, caplog.text) if told else not caplog.text


def _slowly_off(data):
    y = data.W @ data.model.values
    return replace(data, y=y + 0.1 * y.std(axis=0) * np.sin(1.7 * data.t)[:, None])


def test_efforts_that_are_zero_are_no_measurement():
    _model, data, _truth, test = five_bar()
    with pytest.raises(hc.InputError, match="all efforts are zero"):
        hc.identify(replace(data, y=0.0 * data.y))
    fit = hc.identify(data, method="least squares")
    assert set(fit.errors(replace(test, y=0.0 * test.y)).values()) == {np.inf}


# ------------------------------------------------------------------------------------ slow


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "amplitude", "good", "plain", "consistent"),
    [
        ("leg", 0.3, 3, 0.0025, 0.001),
        ("delta", 0.3, 7, 0.0025, 0.001),
        ("stewart", 0.05, 7, 0.005, 0.0015),
    ],
)
def test_spatial_robots_are_predicted(name, amplitude, good, plain, consistent):
    """Ten seeds of noise and of drawings; noise as 1.5 % has at 1 kHz after a filter of 10 Hz. The
    motion is a good one of some random series."""
    model = hc.Parameters(robot(name), friction="motors")
    truth = np.array(model.values)
    data, test = (measured(motion(model, name, amplitude, seed), truth) for seed in (good, 2))
    noise, found, inside = 0.015 * (20.0 / 1000.0) ** 0.5, [], []
    for seed in range(10):
        run, prior = measured(data, truth, noise, seed), as_drawn(model.mech, seed)
        fits = [hc.identify(run, prior, method=m) for m in ("least squares", "pullback")]
        found.append([np.linalg.norm(test.W @ f.p - test.y) for f in fits])
        assert min(fits[1].least_eigenvalues.values()) > 0.0
        fits[1].mechanism()
    for seed in range(60):
        fit = hc.identify(measured(data, truth, noise, seed), method="least squares")
        beta, (low, high) = fit.base.of(truth), fit.intervals.T
        inside.append((beta > low) & (beta < high))
    least, body = np.max(found, axis=0) / np.linalg.norm(test.y)
    print(f"{name}: least squares {least:.2%}, bodies {body:.2%}, coverage {np.mean(inside):.1%}")
    assert least < plain
    assert body < consistent
    assert 0.90 < np.mean(inside) < 0.98


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leg", "delta", "stewart", "geared_arm", "ankle"])
def test_saved_robots_are_the_same(name, tmp_path):
    model = hc.Parameters(robot(name), friction="motors", rotors=True)
    prior = hc.Parameters(as_drawn(model.mech), friction=model.mech.actuated, rotors=True).values
    data = measured(equations(model, name, 120), model.values + 0.01 * (model.lower == 0.0), 0.002)
    fit = hc.identify(data, prior, strength=25.0)
    again = hc.load(fit.save(tmp_path / "robot.urdf")[0])
    there = hc.Parameters(again, friction="motors", rotors=True)
    assert there.names == model.names
    assert again.row_names == model.mech.row_names
    np.testing.assert_allclose(there.values, fit.p, rtol=1e-6, atol=1e-10)
