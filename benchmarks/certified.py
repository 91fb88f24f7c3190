"""Compiled batches with their certificates, beside the same without, and beside Python.

One thread, all ways in turn over the same states; the median of the rounds counts. The numbers are
compared with those of Python before anything is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from columns import make_case
from figures import in_turn, judged, table
from mechanisms import robot

import holoctl as hc

ROBOTS = ("delta", "stewart", "biped")
STATES, ROUNDS, MOST = 2000, 31, 2.0
FUNCTIONS = ["inverse_dynamics", "forward_dynamics"]
NUMBERS = ("closure", "velocity_residual", "acceleration", "dynamics", "redundant")
AGREEMENT = 1e-12


def measure(name: str, rounds: int) -> dict[str, float]:
    """Medians, us a state, by way."""
    case = make_case(name, robot(name), n=20)
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
    ways: dict[str, Callable[[], float]] = {}
    for what, (batch, x) in batches.items():
        _, found = batch(Q, V, x, certificate=True, workers=1)
        for i in range(5):
            expected = single[what](mech, Q[i], V[i], x[i], partition=part).certificate
            off = [abs(getattr(found, n)[i] - getattr(expected, n)) for n in NUMBERS]
            if not max(off) <= AGREEMENT:
                raise RuntimeError(f"{name}, {what}: certificates differ by {max(off):.0e}")
        for certificate in (False, True):
            ways[f"{what}, certified" if certificate else what] = _way(batch, Q, V, x, certificate)
    medians = in_turn(ways, rounds)
    start = time.process_time()
    for i in range(100):
        hc.inverse_dynamics(mech, Q[i], V[i], T[i], partition=part)
    return medians | {"Python": 1e4 * (time.process_time() - start)}


def _way(batch: Any, Q: Any, V: Any, x: Any, certificate: bool) -> Callable[[], float]:
    def run() -> float:
        start = time.process_time()
        batch(Q, V, x, certificate=certificate, workers=1)
        return 1e6 * (time.process_time() - start) / STATES

    return run


def section(quick: bool) -> str:
    """The section of the results."""
    ways = ("inverse", "inverse, certified", "forward", "forward, certified")
    rows, targets = [], []
    with hc.realtime():
        for name in ROBOTS:
            f = measure(name, 5 if quick else ROUNDS)
            cells = []
            for what in ("inverse", "forward"):
                plain, more = f[what], f[f"{what}, certified"]
                cells += [f"{plain:.2f}", f"{more:.2f} ({more / plain:.2f} x)"]
                text = f"{name}: {what}, certified / {what}"
                targets.append(judged(text, more / plain, MOST, " x"))
            rows.append([name, *cells, f"{f['Python']:.0f}"])
    return "\n\n".join([
        "## Batches with certificates",
        f"Median time of a state, us: `inverse_dynamics_batch` and `forward_dynamics_batch` at "
        f"{STATES} closed moving states, one thread, without and with `certificate=True`. "
        "*Python*: `hc.inverse_dynamics` of one state, which has its certificate with it.",
        table(["robot", *ways, "Python"], rows),
        "Targets:",
        "\n".join(targets),
    ])  # fmt: skip
