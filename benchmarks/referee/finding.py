"""What is asked of states or postures, and what came out: the lines of the shorter tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NAN = float("nan")
QUANTITIES = ("acceleration", "multipliers", "velocity after impact", "impulses", "with Baumgarte")
"""Columns of the table of states."""


@dataclass(frozen=True)
class Finding:
    """A line.

    Attributes
    ----------
    solver : str
        Who, by which method.
    errors : mapping of str to float
        Quantity, one of `QUANTITIES`, to its largest deviation from the reference.
    count : int
        Over how many states.
    seconds : float
        Time of the processor for one state, of the first quantity.
    """

    solver: str
    errors: Mapping[str, float]
    count: int
    seconds: float = NAN


@dataclass(frozen=True)
class Question:
    """What is compared, with what: `source` says where the reference comes from."""

    name: str
    source: str
    answer: Callable[[], list[Finding]]


def off(ours: object, theirs: object) -> float:
    """Largest difference over (1 + largest entry of theirs)."""
    x, y = np.asarray(ours, float), np.asarray(theirs, float)
    return float(np.abs(x - y).max(initial=0.0) / (1.0 + np.abs(y).max(initial=0.0)))


def each(call: Callable[[object], object], states: Sequence[object]) -> tuple[list[object], float]:
    """What it returns of each state, and the time for one: the second time round."""
    found = [call(s) for s in states]
    start = time.process_time()
    for s in states:
        call(s)
    return found, (time.process_time() - start) / len(states)
