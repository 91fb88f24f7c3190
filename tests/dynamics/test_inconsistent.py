"""Questions that contradict the constraints: the size of the contradiction is told."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused, with_motors
from support import closed_states, mechanism, shared_partition

import holoctl as hc


def test_a_target_for_all_that_tears_the_loop(s):
    wrong = s.a + np.array([0.0, 1.0, 0.0])
    e = refused(
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, wrong, coordinates="all"),
        hc.InconsistentError, "four_bar", "inconsistent='project'",
    )  # fmt: skip
    assert 0.1 < e.residual < 10.0
    assert not isinstance(e, ValueError)
    mended = hc.inverse_dynamics(s.mech, s.q, s.v, wrong, coordinates="all", inconsistent="project")
    assert mended.certificate.ok
    exact = hc.inverse_dynamics(s.mech, s.q, s.v, s.a, coordinates="all")
    assert np.abs(exact.u - s.u).max() < 1e-9


def test_targets_for_redundant_motors_that_contradict_each_other(s):
    """Crank and rocker are both driven: the loop ties their accelerations."""
    mech = with_motors(s.mech, "crank", "rocker")
    wrong = s.a[[0, 2]] + np.array([0.0, 1.0])
    e = refused(lambda: hc.inverse_dynamics(mech, s.q, s.v, wrong), hc.InconsistentError,
                "2 motors", "1 independent", "inconsistent='project'")  # fmt: skip
    assert e.residual > 0.1
    assert hc.inverse_dynamics(mech, s.q, s.v, wrong, inconsistent="project").certificate.ok
    assert hc.inverse_dynamics(mech, s.q, s.v, s.a[[0, 2]]).certificate.ok


def test_partition_at_an_open_configuration(s):
    e = refused(lambda: hc.partition(s.mech, s.q + np.array([0.1, 0.0, 0.0])), hc.InconsistentError,
                "four_bar", "not closed", "hc.assemble")  # fmt: skip
    assert 1e-3 < e.residual < 1.0


def test_simulation_from_an_open_configuration(s):
    controller = lambda t, q, v: np.zeros(1)  # noqa: E731
    e = refused(lambda: hc.simulate(s.mech, controller, s.q + 0.1, s.v, 0.01),
                hc.InconsistentError, "not on the constraints", "hc.assemble")  # fmt: skip
    assert e.residual > 1e-3
    e = refused(lambda: hc.simulate(s.mech, controller, s.q, s.v + np.array([1.0, 0.0, 0.0]), 0.01),
                hc.InconsistentError, "not on the constraints", "hc.assemble")  # fmt: skip
    assert e.residual > 1e-3


def test_a_bad_certificate_raises_on_request(s):
    opened = s.q + np.array([0.01, 0.0, 0.0])
    off = hc.inverse_dynamics(s.mech, opened, s.v, [1.0], partition=s.part)
    assert not off.certificate.ok
    refused(off.raise_if_bad, hc.InconsistentError, "NOT certified")
    refused(hc.forward_dynamics(s.mech, opened, s.v, s.tau).raise_if_bad,
            hc.InconsistentError, "NOT certified")  # fmt: skip


def test_no_false_alarm_in_free_fall(s):
    """Where M a and h cancel there is no effort to measure a residual by but rounding."""
    result = hc.inverse_dynamics(s.floating, s.fq, np.zeros(14), np.zeros(3))
    assert np.abs(result.a - np.eye(14)[2] * -9.81).max() < 1e-9
    assert result.certificate.ok, str(result.certificate)


def test_raise_if_bad_returns_what_is_good_and_raises_what_is_not():
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    q, v = closed_states("five_bar")[0]
    forward = hc.forward_dynamics(mech, q, v, np.ones(mech.nv), partition=part)
    assert forward.raise_if_bad() is forward
    off = pin.integrate(mech.model, q, 0.01 * np.ones(mech.nv))
    bad = hc.forward_dynamics(mech, off, v, np.ones(mech.nv), partition=part)
    with pytest.raises(hc.InconsistentError, match="not closed") as caught:
        bad.raise_if_bad()
    assert caught.value.residual > 1e-6
