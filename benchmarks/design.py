"""Offline design: linear models, and the fastest way along a path. Sweeps are in sweeps.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from figures import table

import holoctl as hc

ROBOTS = "five_bar", "delta", "stewart"
FUNCTIONS = ["forward_dynamics", "forward_dynamics_derivatives", "terms"]


def seconds(call: Callable[[], Any], rounds: int) -> float:
    """The median of so many calls."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return float(np.median(found))


def moving(mech: hc.Mechanism) -> tuple[Any, ...]:
    """A state in motion at the reference, efforts, and a partition."""
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    rng = np.random.default_rng(0)
    P = hc.project(mech, q, np.zeros(mech.nv), partition=part)
    return q, P.gamma @ rng.normal(size=P.k) * 0.3, rng.normal(size=mech.nu), part


def linear_models(quick: bool) -> str:
    """Microseconds of a linear model."""
    rows = []
    for name in ROBOTS:
        mech = hc.load(hc.robot_file(name))
        q, v, u, part = moving(mech)
        code = hc.compile(mech, FUNCTIONS, partition=part)
        ways = [partial(hc.linearize, what, q, v, u, partition=part) for what in (code, mech)]
        fast = seconds(ways[0], 41 if quick else 401)
        slow = seconds(ways[1], 5 if quick else 21)
        rows.append([name, f"{1e6 * fast:.0f}", f"{1e6 * slow:.0f} ({slow / fast:.1f} x)"])
    return table(["robot", "compiled, us", "by differences, us"], rows)


def fastest_ways(quick: bool) -> str:
    """Milliseconds of `retime`, 200 points, three way-points of the motors."""
    rows = []
    for name in ROBOTS:
        mech = hc.load(hc.robot_file(name))
        here = mech.motor_positions(hc.assemble(mech)[0])
        reach = 0.03 if name == "stewart" else 0.2
        steps = reach * np.random.default_rng(1).normal(size=(2, mech.nu))
        path = np.vstack([here, here + steps])
        start = time.process_time()
        first = hc.retime(mech, path)
        once = time.process_time() - start
        second = hc.retime(mech, path, method="toppra")
        cone, other = (
            seconds(partial(hc.retime, mech, path, method=way), 3 if quick else 7)
            for way in ("cvxpy", "toppra")
        )
        off = abs(second.duration / first.duration - 1.0)
        times = [f"{1e3 * t:.0f}" for t in (once, cone, other)]
        rows.append([name, *times, f"{100 * off:.2f}"])
    head = ["robot", "cvxpy, first, ms", "cvxpy, ms", "toppra, ms", "durations differ by, %"]
    return table(head, rows)


def section(quick: bool) -> str:
    """The section of the results."""
    return "\n\n".join([
        "## Offline design",
        "### Linear models",
        "About a state in motion; in brackets: how many times as long as compiled.",
        linear_models(quick),
        "### Fastest motions",
        "`hc.retime` through three way-points, 200 intervals.",
        fastest_ways(quick),
    ])  # fmt: skip
