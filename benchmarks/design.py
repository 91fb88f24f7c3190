"""Offline design: linear models, and the fastest way along a path. Sweeps are in sweeps.py.

.venv/bin/python benchmarks/design.py      prints the section of RESULTS.md
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: matrices are small

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import holoctl as hc

ROBOTS = "five_bar", "delta", "stewart"
FUNCTIONS = ["forward_dynamics", "forward_dynamics_derivatives", "terms"]


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """The median of so many calls."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return float(np.median(found))


def moving(mech: hc.Mechanism) -> tuple[Any, ...]:
    """A state in motion at the reference, efforts, and a partition."""
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    rng = np.random.default_rng(0)
    P = hc.project(mech, q, np.zeros(mech.nv), partition=part)
    return q, P.gamma @ rng.normal(size=P.k) * 0.3, rng.normal(size=mech.nu), part


def linear_models() -> list[str]:
    """Microseconds of a linear model."""
    lines = ["| robot | compiled | a second | by differences |", "|---|---:|---:|---:|"]
    for name in ROBOTS:
        mech = hc.load(hc.robot_file(name))
        q, v, u, part = moving(mech)
        code = hc.compile(mech, FUNCTIONS, partition=part)
        ways = [partial(hc.linearize, what, q, v, u, partition=part) for what in (code, mech)]
        fast, slow = (seconds(way, rounds) for way, rounds in zip(ways, (401, 21), strict=True))
        lines.append(f"| {name} | {1e6 * fast:.0f} us | {1 / fast:.0f} | {1e3 * slow:.1f} ms |")
    return lines


def fastest_ways() -> list[str]:
    """Milliseconds of `retime`, 200 points, three way-points of the motors."""
    lines = ["| robot | cvxpy, first | cvxpy | toppra | durations |", "|---|---:|---:|---:|---:|"]
    for name in ROBOTS:
        mech = hc.load(hc.robot_file(name))
        here = mech.motor_positions(hc.assemble(mech)[0])
        reach = 0.03 if name == "stewart" else 0.2
        steps = reach * np.random.default_rng(1).normal(size=(2, mech.nu))
        path = np.vstack([here, here + steps])
        start = time.perf_counter()
        first = hc.retime(mech, path)
        once = time.perf_counter() - start
        hc.retime(mech, path, method="toppra")
        cone, quick = (
            seconds(partial(hc.retime, mech, path, method=way), 7) for way in ("cvxpy", "toppra")
        )
        other = hc.retime(mech, path, method="toppra")
        off = abs(other.duration / first.duration - 1.0)
        lines.append(
            f"| {name} | {1e3 * once:.0f} ms | {1e3 * cone:.0f} ms | {1e3 * quick:.0f} ms | "
            f"differ by {100 * off:.2f} % |"
        )
    return lines


def section() -> str:
    """The section of RESULTS.md."""
    parts = [
        ["## Offline design"],
        ["A linear model about a state in motion:"], linear_models(),
        ["`hc.retime` through three way-points, 200 intervals:"], fastest_ways(),
        ["This section was measured by `python benchmarks/design.py` alone."],
    ]  # fmt: skip
    return "\n\n".join("\n".join(part) for part in parts)


if __name__ == "__main__":
    print(section())
