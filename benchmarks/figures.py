"""What is measured, and how it is timed and told."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from columns import Case
from numpy.typing import NDArray

Batches = dict[str, dict[str, NDArray[np.float64]]]
"""Mechanism and way to times of a state of a batch, us."""

Simulations = dict[str, dict[str, NDArray[np.float64]]]
"""Mechanism and way to simulated seconds per second."""

Ticks = dict[str, dict[str, NDArray[np.int64]]]
"""Mechanism, and outside or inside `hc.realtime`, to times of ticks, ns."""

Way = TypeVar("Way", bound=Hashable)


def in_turn(ways: Mapping[Way, Callable[[], float]], rounds: int) -> dict[Way, float]:
    """The median of what each way returns; all run in turn."""
    times: dict[Way, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            times[way].append(run())
    return {way: float(np.median(found)) for way, found in times.items()}


def judged(text: str, value: float, most: float, unit: str = "") -> str:
    """A line of a list of targets."""
    verdict = "met" if value <= most else "NOT met"
    return f"- {text} <= {most:.3g}{unit}: {value:.3g}{unit}, {verdict}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown, padded so that it reads as it is. No two columns have the same name, for what cites
    a figure names them."""
    if len(set(head)) < len(head):
        raise ValueError(f"columns of the same name: {head}")
    widths = [max(len(r[i]) for r in [head, *rows]) for i in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join([line(head), line(rule), *(line(r) for r in rows)])


@dataclass
class Figures:
    """What was measured of one mechanism."""

    case: Case
    times: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    """Column to times, ns, of every call but the first of each turn."""
    first: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    """The same of the first calls."""
    differences: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Column to the reason why it was not timed."""
    path: str = ""
    """Which path of the prepared dynamics served, see `columns.path` and `methods.path`."""

    def median(self, column: str) -> float:
        """us; nan for what was not timed."""
        times = self.times.get(column)
        return float("nan") if times is None else float(np.median(times)) / 1e3

    def first_median(self, column: str) -> float:
        """us, of the first calls; nan for what was not timed."""
        times = self.first.get(column)
        return float("nan") if times is None else float(np.median(times)) / 1e3

    def p99(self, column: str) -> float:
        """us; nan for what was not timed."""
        times = self.times.get(column)
        return float("nan") if times is None else float(np.percentile(times, 99)) / 1e3
