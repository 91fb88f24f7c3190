"""What is measured: filled in by bench.py, told by report.py."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from columns import Case
from numpy.typing import NDArray

Batches = dict[str, dict[str, NDArray[np.float64]]]
"""Mechanism and way to times of a state of a batch, us."""

Simulations = dict[str, dict[str, NDArray[np.float64]]]
"""Mechanism and way to simulated seconds per second."""

Ticks = dict[str, dict[str, NDArray[np.int64]]]
"""Mechanism, and outside or inside `hc.realtime`, to times of ticks, ns."""


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
