"""Laws for many robots on a GPU that pretends (test_cuda.py): the numbers of the cores."""

from __future__ import annotations

import numpy as np
import pytest
from support import closed_states, mechanism
from test_cuda import cache, device, nvrtc, pretended  # noqa: F401

import holoctl as hc
from holoctl.codegen.compiled.functions import law_sources
from holoctl.codegen.devices.batch_kernels import batch_program
from holoctl.codegen.devices.nvrtc import thread_memory
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.law_options import subject_of
from holoctl.rows.state_limits import NOT_GIVEN

FUNCTIONS = "inverse_dynamics", "terms", "inverse_dynamics_derivatives", "state"


def inputs():
    """States of 20 robots, one of them no number; targets."""
    Q, V = (np.array([s[k] for s in closed_states("five_bar")[:20]]) for k in range(2))
    Q[3, 0] = np.nan
    return Q, V, np.random.default_rng(8).normal(size=(20, 2))


@pytest.mark.slow
def test_a_gpu_gives_the_numbers_of_the_cores(device):  # noqa: F811
    mech, (Q, V, T) = mechanism("five_bar"), inputs()
    there, here = (hc.compile(mech, FUNCTIONS, device=x) for x in ("cuda", "cpu"))
    X = mech.motor_positions(hc.assemble(mech)[0]) + 0.05 * T
    for call, given in (
        ("inverse_dynamics", (Q, V, T)), ("inverse_dynamics_derivatives", (Q, V[0], T)),
        ("state", (X, T[0])),
    ):  # fmt: skip
        found, expected = (getattr(x, call)(*given) for x in (there, here))
        assert (expected[-1] == 0).sum() > 10
        for x, y in zip(found, expected, strict=True):
            assert type(x) is type(y) is np.ndarray
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
    found, status = there.terms(device.array("q", Q), V)
    for x, y in zip(found, here.terms(Q, V)[0], strict=True):
        assert type(x) is type(status) is type(device.empty((1,)))  # as an input was
        np.testing.assert_allclose(device.numpy(x), y, rtol=1e-9, atol=1e-12)
    assert there.describe(status).startswith("19 of 20 robots OK; 1 robot (3): NOT_FINITE")


@pytest.mark.slow
def test_arrays_of_a_gpu_come_in_and_take_the_result(device):  # noqa: F811
    (Q, V, T), options = inputs(), {"functions": ["inverse_dynamics"]}
    there, here = (hc.compile(mechanism("five_bar"), device=x, **options) for x in ("cuda", "cpu"))
    expected, _ = here.inverse_dynamics(Q, V, T)
    q = device.array("q", Q)
    for out in device.empty((20, 2)), np.zeros((20, 2)), np.zeros((40, 2))[::2]:
        for first in q, Q:
            found, _ = there.inverse_dynamics(first, V, T, out=out)
            assert found is out
            x = out if type(out) is np.ndarray else device.numpy(out)
            np.testing.assert_allclose(x, expected, rtol=1e-9)
    with pytest.raises(hc.InputError, match="out must be a writable array"):
        there.inverse_dynamics(q, V, T, out=device.empty((19, 2)))
    with pytest.raises(hc.InputError, match="q must be an array"):
        here.inverse_dynamics(q, V, T)


@pytest.mark.slow
@pytest.mark.usefixtures("nvrtc")
def test_nvrtc_compiles_a_law_within_limits():
    """Infinite limits are in its tables."""
    limits = hc.Limits(effort={"left": 30.0})
    controller = hc.ComputedTorque(mechanism("five_bar"), 400.0, 40.0, limits=limits)
    subject = subject_of(controller, None, None, NOT_GIVEN, NOT_GIVEN, NOT_GIVEN)
    ((source, law),) = law_sources(symbolic(subject.mech), subject, ("torque",))
    assert "HUGE_VAL}" in source
    assert thread_memory(batch_program(source, law, {}), 90)["torque_batch"].registers > 50
