"""`output`: what is asked for is recorded, with every method, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from support import closed_states, mechanism, together

import holoctl as hc

METHODS = ("auto", "DOP853", "RK45", "LSODA", "Radau", "BDF")
KINDS = {
    "alone": {"controller": None}, "ticks": {"controller": lambda t, q, v: [0.3 * np.cos(9.0 * t)]},
    "analog": {"controller": lambda t, q, v: [0.3 * np.cos(9.0 * t)], "hold": False},
}  # fmt: skip


def ran(duration, kind="alone", **options):
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    options = {**KINDS[kind], **options}
    return hc.simulate(mech, options.pop("controller"), q, v, duration, **together(**options))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "output", [[0.0], [0.05], [0.0123], [0.0, 0.05], [0.01, 0.02], [0.0099, 0.01, 0.0100001, 0.04],
               (0, 0.03), np.array([0.01]), np.float32([0.0, 0.03125])],
)  # fmt: skip
def test_instants_are_those_asked_for(kind, output):
    run = ran(0.05, kind, frequency=100.0, output=output)
    assert np.array_equal(run.t, np.asarray(output, dtype=float))
    for x in (run.q, run.v, run.u, run.closure, run.tick_time, *run.energy.values()):
        assert len(x) == len(output)
    if kind == "ticks":
        ticks = np.floor(run.t * 100.0 + 1e-9) / 100.0  # from a tick on its effort counts
        assert run.u[:, 0] == pytest.approx(0.3 * np.cos(9.0 * ticks), abs=1e-12)
        assert (run.tick_time > 0.0).all()
    elif kind == "analog":
        assert run.u[:, 0] == pytest.approx(0.3 * np.cos(9.0 * run.t), abs=1e-12)
    else:
        assert not run.u.any()
    assert ran(0.05, kind, frequency=100.0).t == pytest.approx(np.arange(6) / 100.0, abs=0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_what_is_within_steps_is_as_accurate_as_their_ends(method, kind):
    """No step ends because of an output: states are the same, however many are asked for."""
    few = ran(0.2, kind, frequency=50.0, method=method, output=[0.0771, 0.2])
    many = ran(
        0.2, kind, frequency=50.0, method=method, output=np.sort([*np.linspace(0, 0.2, 40), 0.0771])
    )
    i = int(np.searchsorted(many.t, 0.0771))
    assert np.array_equal(many.q[[i, -1]], few.q)
    assert many.steps == few.steps
    exact = ran(0.2, kind, frequency=50.0, method="DOP853", output=many.t, rtol=1e-12, atol=1e-14)
    tolerance = 1e-8 if method in ("LSODA", "BDF") else 2e-9
    tolerance *= 10.0 if kind == "ticks" and method in ("LSODA", "BDF") else 1.0
    assert np.abs(many.q - exact.q).max() < tolerance
    assert np.abs(many.v - exact.v).max() < 100.0 * tolerance
    assert many.closure.max() < 2e-12


def test_multiples_of_a_tenth_may_end_a_little_late():
    end = 3 * 0.1
    assert end > 0.3
    assert ran(0.3, output=[0.1, 0.2, end]).t[-1] == 0.3


WRONG = {
    "falling": ([0.02, 0.01], "increasing"), "twice": ([0.01, 0.01], "increasing"),
    "before": ([-0.01, 0.01], "within"), "beyond": ([0.01, 0.06], "within"),
    "NaN": ([0.0, np.nan], "finite"), "infinite": ([0.0, np.inf], "finite"),
    "none": ([], "(n,) array"), "a number": (0.01, "(n,) array"),
    "a matrix": ([[0.01]], "(n,) array"),
    "words": (["a"], "numbers"), "truths": ([False, True], "numbers"), "a word": ("all", "numbers"),
    "complex": ([1j], "numbers"),
}  # fmt: skip


@pytest.mark.parametrize("junk", WRONG)
def test_what_are_no_instants(junk):
    output, word = WRONG[junk]
    for kind in ("alone", "ticks"):
        refused(lambda kind=kind: ran(0.05, kind, output=output), hc.InputError, "output", word)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["four_bar", "floating_leg", "sine_chart", "bennett"]),
    st.integers(0, 20),
    st.floats(1e-4, 0.15),
    st.floats(5.0, 400.0),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8, unique=True),
    st.booleans(),
)
def test_any_run_keeps_what_is_to_be_kept(name, i, duration, rate, shares, held):
    mech = mechanism(name)
    q, v = closed_states(name, 30)[i]
    output = np.unique(np.array(shares) * duration)
    controller = (lambda t, q, v: np.zeros(mech.nu)) if held else None
    run = hc.simulate(mech, controller, q, v, duration, frequency=rate, output=output)
    assert np.array_equal(run.t, output)
    assert run.closure.max() < 1e-11
    total = sum(run.energy.values())
    assert np.ptp(total) < 1e-7 * (1.0 + np.abs(run.energy["kinetic"]).max())
    ticks = hc.simulate(mech, controller, q, v, duration, frequency=rate)
    assert ticks.t[0] == 0.0
    assert ticks.t[-1] == duration
    assert (np.diff(ticks.t) > 0.0).all()
    assert ticks.closure.shape == (ticks.t.size,)
    assert 0 < ticks.steps < 10 * ticks.t.size + 500
    assert ticks.evaluations >= ticks.steps
