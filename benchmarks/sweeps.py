"""Sweeps: one worker and two on 2,000 states of a Stewart platform, and what an item costs beside.

Beside them two bare forks of this process: what the machine gives, whoever else is on it.

Runs take turns, and of each the quickest counts: what else the machine does makes some of them
slow. Workers are started and sent home in each run; the server that they are forked from runs.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import numpy as np
from figures import table

import holoctl as hc


def torque(mech: hc.Mechanism, part: hc.results.Partition, state: Any) -> np.ndarray:
    """Of one state."""
    return hc.inverse_dynamics(mech, *state, partition=part).u


def nothing(item: Any) -> Any:
    """An item that takes no time."""
    return item


def seconds(function: Any, items: Any, executor: int) -> float:
    begun = time.perf_counter()
    hc.sweep(function, items, executor).raise_if_bad()
    return time.perf_counter() - begun


def forked(law: Any, items: list[Any], count: int) -> float:
    """The same by bare forks, each with its part of the items; nothing comes back."""
    begun, children = time.perf_counter(), list[int]()
    for k in range(count):
        child = os.fork()
        if child == 0:
            for item in items[k::count]:
                law(item)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    return time.perf_counter() - begun


def section(quick: bool) -> str:
    """The section of the results."""
    rounds = 2 if quick else 5
    mech = hc.load(hc.robot_file("stewart"))
    q, v = hc.assemble(mech)
    law = partial(torque, mech, hc.partition(mech, q))
    rng = np.random.default_rng(0)
    items = [(q, v, rng.normal(size=mech.nu)) for _ in range(2000)]
    seconds(law, items[:50], 2)
    runs: dict[int, list[float]] = {1: [], 2: []}
    bare: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for workers in (1, 2):
            runs[workers].append(seconds(law, items, workers))
            bare[workers].append(forked(law, items, workers))
    one, two = (min(found) for found in runs.values())
    fork, forks = (min(found) for found in bare.values())
    small = min(seconds(nothing, range(200_000), 2) for _ in range(rounds))
    none = min(seconds(nothing, range(2), 2) for _ in range(rounds))
    head = ["way", "one worker, s", "two workers, s", "times as fast by two"]
    rows = [
        [way, f"{a:.2f}", f"{b:.2f}", f"{a / b:.2f}"]
        for way, a, b in (("hc.sweep", one, two), ("bare forks", fork, forks))
    ]
    return "\n\n".join([
        "### Sweeps",
        "2,000 states of a Stewart platform, the quickest of each; beside `hc.sweep` bare forks of "
        f"the same process. Starting two workers takes {1e3 * none:.0f} ms, an item "
        f"{1e6 * (small - none) / 200_000:.1f} us beside what it does.",
        table(head, rows),
    ])  # fmt: skip
