"""Compiled batches with their certificates, beside the same without, and beside Python.

    .venv/bin/python benchmarks/certified.py      prints the section of RESULTS.md

One thread, all ways in turn over the same states; the median of the rounds counts. The numbers are
compared with those of Python before anything is timed.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: matrices are small

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from columns import make_case
from mechanisms import MECHANISMS, shipped

import holoctl as hc

ROBOTS = {"delta": shipped("delta"), "stewart": shipped("stewart"), "biped": MECHANISMS["biped"]}
STATES, ROUNDS, MOST = 2000, 61, 2.0
FUNCTIONS = ["inverse_dynamics", "forward_dynamics"]
NUMBERS = ("closure", "velocity", "acceleration", "dynamics", "redundant")
AGREEMENT = 1e-12


def measure(name: str) -> dict[str, float]:
    """Medians, us a state, by way."""
    case = make_case(name, ROBOTS[name](), n=20)
    mech, part = case.mech, case.part
    fast = hc.compile(mech, FUNCTIONS, partition=part)
    which = np.random.default_rng(0).integers(0, len(case.states), STATES)
    Q, V, T = (np.array([getattr(case.states[i], x) for i in which]) for x in ("q", "v", "target"))
    TAU = T @ mech.B.T
    single = {"inverse": hc.inverse_dynamics, "forward": hc.forward_dynamics}
    batches = {
        "inverse": (fast.inverse_dynamics_batch, T),
        "forward": (fast.forward_dynamics_batch, TAU),
    }
    ways: dict[str, Callable[[], Any]] = {}
    for what, (batch, x) in batches.items():
        _, found = batch(Q, V, x, certificate=True, workers=1)
        for i in range(5):
            expected = single[what](mech, Q[i], V[i], x[i], partition=part).certificate
            off = [abs(getattr(found, n)[i] - getattr(expected, n)) for n in NUMBERS]
            if not max(off) <= AGREEMENT:
                raise RuntimeError(f"{name}, {what}: certificates differ by {max(off):.0e}")
        for certificate in (False, True):
            ways[f"{what}, certified" if certificate else what] = _way(batch, Q, V, x, certificate)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, run in ways.items():
            start = time.perf_counter()
            run()
            times[way].append(1e6 * (time.perf_counter() - start) / STATES)
    medians = {way: float(np.median(x)) for way, x in times.items()}
    start = time.perf_counter()
    for i in range(100):
        hc.inverse_dynamics(mech, Q[i], V[i], T[i], partition=part)
    return medians | {"Python": 1e4 * (time.perf_counter() - start)}


def _way(batch: Any, Q: Any, V: Any, x: Any, certificate: bool) -> Callable[[], Any]:
    return lambda: batch(Q, V, x, certificate=certificate, workers=1)


def section() -> str:
    """The section of RESULTS.md."""
    lines = [
        "## Batches with certificates",
        "",
        f"Median time of a state, us: `inverse_dynamics_batch` and `forward_dynamics_batch` at "
        f"{STATES} closed moving states, one thread, without and with `certificate=True`. "
        "*Python*: `hc.inverse_dynamics` of one state, which has its certificate with it.",
        "",
        "| robot | inverse | certified | ratio | forward | certified | ratio | Python |",
        "|---|---|---|---|---|---|---|---|",
    ]
    targets = []
    with hc.realtime():
        for name in ROBOTS:
            f = measure(name)
            cells = []
            for what in ("inverse", "forward"):
                plain, more = f[what], f[f"{what}, certified"]
                cells += [f"{plain:.2f}", f"{more:.2f}", f"{more / plain:.2f} x"]
                verdict = "met" if more <= MOST * plain else "NOT met"
                targets.append(
                    f"- {name}: {what}, certified <= {MOST:g} x: {more / plain:.2f} x, {verdict}"
                )
            lines.append(f"| {name} | {' | '.join(cells)} | {f['Python']:.0f} |")
    load = f"Load of the machine meanwhile: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} cores."
    return "\n".join([*lines, "", load, "", "Targets:", "", *targets])


if __name__ == "__main__":
    sys.stdout.write(f"{section()}\n")
