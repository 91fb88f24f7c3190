"""What a loop remembers from tick to tick, and tells of the last one.

The integral of a motor at its limit stops where it would push it further: conditional integration.
Where a joint limits, or "scale" slows down, all of it waits.

References: K. Åström and T. Hägglund, PID Controllers, on integrator windup.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.renamed import formerly
from holoctl.control.limited_tick import Limiting
from holoctl.estimation.closed_state_estimator import EstimatorReport

__all__ = ["LoopReport", "Memory", "TaskReport", "report_of", "task_report_of"]


@dataclass(eq=False)
class Memory:
    """What a loop remembers from tick to tick, besides where the mechanism is.

    Attributes
    ----------
    ki : (nu,) array
        Empty without an integral, as of a law of tasks.
    dt : float
        s.
    integral : (nu,) array or None
        ``ki`` times the integral of e; None without.
    last : Limiting or None
        What limited the last tick.
    damping : float
        Of singular tasks in the last tick, relative to their mobility; zero away from there.
    untold : tuple or None
        The last tick of machine code, which has not told what limited or damped it.
    """

    ki: Vector = field(default_factory=lambda: np.zeros(0))
    dt: float = 1.0
    integral: Vector | None = field(init=False)
    last: Limiting | None = field(init=False, default=None)
    damping: float = field(init=False, default=0.0)
    untold: tuple[Any, ...] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.integral = np.zeros(self.ki.size) if self.ki.any() else None
        self.last, self.damping, self.untold = None, 0.0, None

    def integrate(self, e: Vector) -> None:
        """Go on by a tick with this error, but for what limits."""
        integral, found = self.integral, self.last
        if integral is None:
            return
        push = self.dt * self.ki * e
        if found is None:
            integral += push
            return
        acts, nu = found.outcome.limiting, push.size
        slowed = found.outcome.scale < 1.0  # not a number where it is the nearest
        if not slowed and not acts[nu:].any():
            integral += np.where(push * acts[:nu] > 0.0, 0.0, push)


@formerly(estimator="assembly")
@dataclass(frozen=True, eq=False)
class LoopReport:
    """What the last tick of a loop was like.

    Attributes
    ----------
    saturated : tuple of str
        What limited it, as in `LimitedInverseDynamics`.
    softened : tuple of str
        Limits of joints that gave way, or are passed already.
    scale : float
        1 where nothing was limited; how much was left of what was asked for; nan where the efforts
        are the nearest.
    integral : (nu,) array
        What the integral action adds to the command.
    estimator : EstimatorReport or None
        What it took to find the state; None where it is given, or found by machine code.
    """

    saturated: tuple[str, ...]
    softened: tuple[str, ...]
    scale: float
    integral: Vector
    estimator: EstimatorReport | None


@formerly(estimator="assembly")
@dataclass(frozen=True, eq=False)
class TaskReport:
    """What the last tick of a law of tasks was like.

    Attributes
    ----------
    saturated : tuple of str
        What limited it, as in `LimitedInverseDynamics`.
    softened : tuple of str
        Limits of joints that gave way, or are passed already.
    scale : float
        1 where nothing was limited; how much was left of what was asked for; nan where the efforts
        are the nearest.
    damping : float
        Of a singular task, relative to its mobility; 0 away from there.
    estimator : EstimatorReport or None
        What it took to find the state; None where it is given, or found by machine code.
    """

    saturated: tuple[str, ...]
    softened: tuple[str, ...]
    scale: float
    damping: float
    estimator: EstimatorReport | None


def report_of(memory: Memory, estimator: EstimatorReport | None) -> LoopReport:
    """The report of what is remembered."""
    integral = memory.integral
    value = np.zeros(memory.ki.size) if integral is None else integral.copy()
    return LoopReport(*_limited(memory.last), value, estimator)


def task_report_of(memory: Memory, estimator: EstimatorReport | None) -> TaskReport:
    """The same of a law of tasks."""
    return TaskReport(*_limited(memory.last), memory.damping, estimator)


def _limited(found: Limiting | None) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """What limited a tick: `saturated`, `softened` and `scale` of a report."""
    if found is None:
        return (), (), 1.0
    return found.saturated, found.softened, found.outcome.scale
