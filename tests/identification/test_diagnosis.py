"""Diagnosis of measurements and of residuals: the cause that was put in is the one that is told."""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import pytest
from measured_motion import measured_motion

import holoctl as hc


@lru_cache(maxsize=4)
def base_of(name):
    m = measured_motion(name)
    model = m.model
    return model, hc.base_parameters(model)


def diagnosed(name, u=None, x=None, **options):
    m = measured_motion(name)
    model, base = base_of(name)
    data = hc.Measurements(m.t, m.x if x is None else x, m.u if u is None else u, **options)
    return hc.measurement_diagnosis(hc.regression(model, data, lag=0.0), base)


def test_good_measurements_have_no_wrong_efforts():
    x, u = measured_motion("leg").noisy(seed=1)
    found = diagnosed("leg", u, x)
    assert not any("efforts of" in x or "unexplained" in x for x in found.findings)
    assert (abs(found.scale - 1.0) < 0.5).all()
    assert (found.unexplained < 0.05).all()


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (-1.0, "better by .* times if negated: check the sign"),
        (100.0, "better by .* times if divided by 100: check the unit"),
        (-0.001, "better by .* times if divided by -0.001"),
    ],
)
def test_sign_and_scale_of_one_motor_are_told(factor, message):
    m = measured_motion("leg")
    u = m.u.copy()
    u[:, 1] *= factor
    told = [x for x in diagnosed("leg", u).findings if "better by" in x]
    assert len(told) == 1
    assert told[0].startswith("efforts of 'hip_flexion'")
    assert re.search(message, told[0])


def test_exchanged_motors_and_joints_at_rest_are_told():
    m = measured_motion("leg")
    u = m.u[:, [0, 2, 1, 3]]
    told = " ".join(diagnosed("leg", u).findings)
    assert "efforts of 'hip_flexion' follow the model of 'knee_motor'" in told
    x = m.x.copy()
    x[:, 3] = x[0, 3]
    told = " ".join(diagnosed("leg", x=x).findings)
    assert "'ankle' moves by 0 only" in told


def test_a_short_motion_has_too_few_equations_and_parameters_that_are_lost():
    m = measured_motion("leg")
    model, base = base_of("leg")
    _, u = m.noisy(seed=1)
    data = hc.Measurements(m.t[:300], m.x[:300], u[:300])
    found = hc.measurement_diagnosis(hc.regression(model, data, lag=0.0), base)
    told = " ".join(found.findings)
    assert "are too few: record a longer motion" in told
    assert len(found.weak) > 3
    assert set(found.weak) <= set(base.independent)


def test_a_limit_that_was_not_given_and_coarse_encoders_are_told():
    m = measured_motion("leg")
    limit = 0.9 * abs(m.u[:, 1]).max()
    told = " ".join(diagnosed("leg", np.clip(m.u, -limit, limit)).findings)
    assert "saturated?" in told
    coarse = np.round(m.x / 0.02) * 0.02
    told = " ".join(diagnosed("leg", x=coarse).findings)
    assert "of its accelerations: move faster" in told
    with pytest.raises(hc.InputError, match="same Parameters"):
        hc.measurement_diagnosis(
            hc.regression(m.model, hc.Measurements(m.t, m.x, m.u), lag=0.0), base_of("leg")[1]
        )


def test_what_the_model_lacks_is_what_the_residual_follows():
    m = measured_motion("five_bar")
    rate = np.gradient(m.x, m.t, axis=0)
    acceleration = np.gradient(rate, m.t, axis=0)
    steep = np.gradient(m.u, m.t, axis=0)
    lacks = {
        "constant": 0.1 * np.ones(m.u.shape),
        "sign of rate": 0.1 * np.sign(rate),
        "rate": 0.1 * rate,
        "position": 0.3 * (m.x - m.x.mean(axis=0)),
        "acceleration": 0.02 * acceleration,
        "rate of effort": -0.004 * steep,
    }
    for cause, extra in lacks.items():
        data = hc.regression(m.model, hc.Measurements(m.t, m.x, m.u + extra), lag=0.0)
        found = hc.residual_diagnosis(data, m.values)
        assert len(found.findings) == 2, cause
        assert all(f"follows the {cause}:" in x for x in found.findings), (cause, str(found))
        assert (found.repeats > 0.2).all()
    noise = 0.01 * np.random.default_rng(0).normal(size=m.u.shape)
    data = hc.regression(m.model, hc.Measurements(m.t, m.x, m.u + noise), lag=0.0)
    found = hc.residual_diagnosis(data, m.values)
    assert str(found) == "the residuals follow no motion"
    assert (abs(found.repeats) < 0.35).all()
    with pytest.raises(hc.InputError, match="names"):
        hc.residual_diagnosis(data, m.values[:-1])
