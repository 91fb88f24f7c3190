"""Sweeps: one worker and two on 2,000 states of a Stewart platform, and what an item costs beside.

    .venv/bin/python benchmarks/sweeps.py [rounds]

Runs take turns, and of each the quickest counts: what else the machine does makes some of them
slow. Workers are started and sent home in each run; the server that they are forked from runs.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import Any

import numpy as np

import holoctl as hc


def torque(mech: hc.Mechanism, part: hc.Partition, state: Any) -> np.ndarray:
    """Of one state."""
    return hc.inverse_dynamics(mech, *state, partition=part).u


def nothing(item: Any) -> Any:
    """An item that takes no time."""
    return item


def seconds(function: Any, items: Any, executor: int) -> float:
    begun = time.perf_counter()
    hc.sweep(function, items, executor).raise_if_bad()
    return time.perf_counter() - begun


def main(rounds: int) -> None:
    mech = hc.load(hc.robot_file("stewart"))
    q, v = hc.assemble(mech)
    law = partial(torque, mech, hc.partition(mech, q))
    rng = np.random.default_rng(0)
    items = [(q, v, rng.normal(size=mech.nu)) for _ in range(2000)]
    seconds(law, items[:50], 2)
    runs: dict[int, list[float]] = {1: [], 2: []}
    plain = list[float]()
    for _ in range(rounds):
        begun = time.perf_counter()
        for item in items:
            law(item)
        plain.append(time.perf_counter() - begun)
        for workers, found in runs.items():
            found.append(seconds(law, items, workers))
    one, two = (min(found) for found in runs.values())
    small = min(seconds(nothing, range(200_000), 2) for _ in range(rounds))
    none = min(seconds(nothing, range(2), 2) for _ in range(rounds))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"2,000 states of stewart: {min(plain):.2f} s in a loop, {one:.2f} s by one worker,")
    print(f"{two:.2f} s by two: {one / two:.2f} times as fast")
    print(f"starting two workers: {1e3 * none:.0f} ms; an item beside what it does: ", end="")
    print(f"{1e6 * (small - none) / 200_000:.1f} us")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
