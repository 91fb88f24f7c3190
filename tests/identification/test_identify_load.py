"""Payloads at a frame, and drive gains from a known payload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from identification.simulated import as_drawn, equations, measured, robot

import holoctl as hc
from holoctl.identification.columns import BODY_PARAMETERS, body_names

BODY = pin.Inertia(0.6, np.array([0.02, -0.03, 0.05]), 1e-3 * np.diag([1.0, 1.3, 0.8]))
FRAMES = {"five_bar": "tip_right", "leg": "shank", "delta": "platform"}


def loaded(name, noise=0.0, count=50):
    """A fit of the robot, and its equations with a body at the frame."""
    model = hc.Parameters(robot(name), friction="motors")
    truth = np.array(model.values)
    free = measured(equations(model, name, count), truth, noise)
    return (
        hc.identify(free, as_drawn(model.mech), strength=25.0),
        free,
        carried(model, name, BODY, noise, count=count),
    )


def carried(model, name, body, noise=0.0, seed=1, count=50):
    """The equations of a robot that carries a body."""
    at = hc.protocols.resolve_frame(model.mech.model, FRAMES[name], "test")
    link = body_names(model.mech)[at.joint - 1]
    with_load, place = (
        np.array(model.values),
        pin.SE3(at.placement.rotation, at.placement.translation),
    )
    columns = [model.names.index(f"{link}.{x}") for x in BODY_PARAMETERS]
    with_load[columns] += place.act(body).toDynamicParameters()
    return measured(equations(model, name, count, seed=2), with_load, noise, seed)


@pytest.mark.parametrize("name", FRAMES)
def test_a_load_is_found_as_far_as_the_motion_determines_it(name):
    fit, _, data = loaded(name)
    found = hc.identify_load(fit, data, FRAMES[name])
    expected = BODY.toDynamicParameters()
    assert found.mass == pytest.approx(0.6, rel=1e-4)
    seen = np.isfinite(found.parameters)
    assert found.determined == tuple(np.array(BODY_PARAMETERS)[seen])
    assert np.isinf(found.sigma[~seen]).all()
    assert np.isnan(found.parameters[~seen]).all()
    np.testing.assert_allclose(found.parameters[seen], expected[seen], atol=3e-5)
    count = {"five_bar": 4, "leg": 10, "delta": 1}[name]
    assert seen.sum() == count
    if name == "leg":
        np.testing.assert_allclose(found.centre, BODY.lever, atol=1e-4)
        np.testing.assert_allclose(found.inertia, BODY.inertia, atol=5e-5)
    if name == "five_bar":  # about the axis of its joints, z of the frame
        assert found.inertia[2, 2] == pytest.approx(BODY.inertia[2, 2], abs=5e-5)


def test_a_load_in_noise_is_within_a_percent_and_a_body():
    fit, _, _ = loaded("leg", 0.002, 150)
    for seed in range(5):
        data = carried(fit.model, "leg", BODY, 0.002, seed, 150)
        found = hc.identify_load(fit, data, "shank")
        assert found.mass == pytest.approx(0.6, rel=0.01)
        assert 0.0 < found.sigma[0] < 0.006
        moments = np.linalg.eigvalsh(found.inertia)
        assert moments[0] > -1e-9
        assert moments[0] + moments[1] > moments[2] - 1e-9


def test_no_load_has_no_mass():
    fit, _, _ = loaded("leg", 0.002)
    data = carried(fit.model, "leg", pin.Inertia.Zero(), 0.002)
    found = hc.identify_load(fit, data, "shank")
    assert 0.0 <= found.mass < 4.0 * found.sigma[0] < 0.02


def test_gains_follow_from_a_known_load():
    _, free, with_load = loaded("five_bar")
    model, gains = free.model, np.array([0.1, 0.4])
    for noise, rel in ((0.0, 1e-6), (0.002, 0.05)):
        pair = [replace(x, y=x.y / gains) for x in (measured(free, model.values), with_load)]
        rng = np.random.default_rng(0)
        pair = [replace(x, y=x.y + noise * np.abs(x.y).max(0) * rng.normal(size=x.y.shape))
                for x in pair]  # fmt: skip
        found = hc.identify_gains(model, *pair, "tip_right", 0.6, BODY.lever, BODY.inertia)
        k = np.array(list(found.gains.values()))
        np.testing.assert_allclose(k, gains, rtol=rel)
        if noise:
            assert (np.abs(k - gains) < 4.0 * np.array(list(found.sigma.values()))).all()


def test_gains_without_a_load_are_not_determined():
    _, free, _ = loaded("five_bar")
    same = measured(free, free.model.values)
    with pytest.raises(hc.SingularityError, match="alike"):
        hc.identify_gains(free.model, same, same, "tip_right", 1e-9)


def test_errors_say_what_is_wrong():
    fit, free, data = loaded("five_bar")
    tied = hc.Parameters(fit.model.mech, friction="motors", known=["distal_right"])
    of_tied = hc.identify(measured(equations(tied, "five_bar"), tied.values, 1e-3), strength=1.0)
    spring = fit.model.mech.with_forces([hc.JointSpring("motor_left", 1.0, rest=0.5)])
    sprung = hc.Parameters(spring, friction="motors")
    for what, match in [
        (lambda: hc.identify_load(None, data, "tip_right"), "result of identify"),
        (lambda: hc.identify_load(fit, data, "hand"), "no joint or frame called 'hand'"),
        (lambda: hc.identify_load(fit, data, "universe"), "fixed to the world"),
        (lambda: hc.identify_load(of_tied, data, "tip_right"), "not unknown in the fit"),
        (lambda: hc.identify_load(fit, equations(tied, "five_bar"), "tip_right"), "of the fit"),
        (lambda: hc.identify_gains(fit.model, free, data, "tip_right", -1.0), "mass"),
        (lambda: hc.identify_gains(fit.model, free, data, "tip_right", 1.0, inertia=[1.0]), "iner"),
        (lambda: hc.identify_gains(fit.model, free, data, "tip_right", 1.0,
                                   inertia=np.diag([1.0, 1.0, 3.0])), "no body has it"),
        (lambda: hc.identify_gains(sprung, *[equations(sprung, "five_bar")] * 2, "tip_right", 1.0),
         "known efforts"),
    ]:  # fmt: skip
        with pytest.raises(hc.InputError, match=match):
            what()
