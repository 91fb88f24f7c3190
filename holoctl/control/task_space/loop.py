"""What the last tick of a law of tasks was like."""

from __future__ import annotations

from dataclasses import dataclass

from holoctl.control.limited_tick import Limiting
from holoctl.control.task_space.law import TaskNotes
from holoctl.estimation.closed_state_estimator import AssemblyReport

__all__ = ["TaskReport", "report_of"]


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
    assembly : AssemblyReport or None
        What it took to find the state; None where it is given, or found by machine code.
    """

    saturated: tuple[str, ...]
    softened: tuple[str, ...]
    scale: float
    damping: float
    assembly: AssemblyReport | None


def report_of(notes: TaskNotes, assembly: AssemblyReport | None) -> TaskReport:
    """The report of what is noted."""
    found: Limiting | None = notes.limiting
    if found is None:
        return TaskReport((), (), 1.0, notes.damping, assembly)
    return TaskReport(found.saturated, found.softened, found.outcome.scale, notes.damping, assembly)
