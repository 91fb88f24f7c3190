"""The memory of a loop from tick to tick, and its report on the last tick.

The integral of a motor at its limit is not increased further: conditional integration. If a limit
of a joint is active, or "scale" slows down, all integrals are held.

References: K. Åström and T. Hägglund, PID Controllers, on integrator windup.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holoctl.base.checks import Vector
from holoctl.base.renamed import former_names
from holoctl.control.contact_paths import ContactLimiting
from holoctl.control.limited_tick import Limiting
from holoctl.dynamics.actuation_side import NO_MOTORS, ActuationSide, actuation_side
from holoctl.estimation.closed_state_estimator import EstimatorReport
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import scaled_rows_at

__all__ = ["LoopReport", "Memory", "TaskReport", "report_of", "task_report_of"]


@dataclass(eq=False)
class Memory:
    """The memory of a loop from tick to tick, without the state of the mechanism.

    Attributes
    ----------
    ki : (nu,) array
        The gain of the integral; empty without one, as for a law of tasks.
    dt : float
        The tick, s.
    integral : (nu,) array or None
        ``ki`` times the integral of e; None without.
    last : Limiting, ContactLimiting or None
        The active limits of the last tick.
    damping : float
        The damping of singular tasks in the last tick, relative to their mobility; zero away from
        singularities.
    unreported : tuple or None
        The arguments of the last tick if machine code computed it, which reports neither limits nor
        damping.
    at : (q, t) or None
        The state of the last tick; type-2 singularities are judged there when a report is read.
    first : (q, t) or None
        The state of the first tick.
    sides : (float, Partition) or None
        The sign of the side of the first tick, by the kept rows of a partition.
    """

    ki: Vector = field(default_factory=lambda: np.zeros(0))
    dt: float = 1.0
    integral: Vector | None = field(init=False)
    last: Limiting | ContactLimiting | None = field(init=False, default=None)
    damping: float = field(init=False, default=0.0)
    unreported: tuple[Any, ...] | None = field(init=False, default=None)
    at: tuple[Vector, float] | None = field(init=False, default=None)
    first: tuple[Vector, float] | None = field(init=False, default=None)
    sides: tuple[float, Partition] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Reset the memory."""
        self.integral = np.zeros(self.ki.size) if self.ki.any() else None
        self.last, self.damping, self.unreported = None, 0.0, None
        self.at = self.first = self.sides = None

    def note(self, q: Vector, t: float) -> None:
        """Note the state of a tick."""
        self.at = q.copy(), t
        if self.first is None:
            self.first = self.at

    def continue_sides(self, mech: Mechanism, part: Partition) -> None:
        """Tell the sides by the rows of another partition from the state of the last tick on."""
        before = self.sides
        if self.first is None or self.at is None or (before is not None and before[1] is part):
            return
        if before is None:
            self.sides = _side(mech, part, self.first).sign, part
            return
        now = [_side(mech, x, self.at).sign for x in (before[1], part)]
        self.sides = before[0] * now[0] * now[1], part

    def integrate(self, e: Vector) -> None:
        """Add the error of a tick to the integral, except for motors held by active limits."""
        integral, found = self.integral, self.last
        if integral is None:
            return
        push = self.dt * self.ki * e
        if not isinstance(found, Limiting):
            integral += push
            return
        acts, nu = found.outcome.limiting, push.size
        slowed = found.outcome.scale < 1.0  # False for nan, the nearest efforts
        if not slowed and not acts[nu:].any():
            integral += np.where(push * acts[:nu] > 0.0, 0.0, push)


@former_names(estimator="assembly")
@dataclass(frozen=True, eq=False)
class LoopReport:
    """The report on the last tick of a loop.

    Attributes
    ----------
    saturated : tuple of str
        The active limits, as in `LimitedInverseDynamics`.
    softened : tuple of str
        Limits of joints that were softened, or are exceeded already.
    scale : float
        1 if nothing was limited; with the policy "scale" the fraction of the commanded motion; nan
        for the nearest efforts.
    integral : (nu,) array
        The contribution of the integral action to the command.
    estimator : EstimatorReport or None
        The report of the estimator; None if the state was given, or estimated by machine code.
    smallest_singular_value : float
        The smallest singular value of gamma' B at the state of the tick, scaled as in a
        `Trajectory`: 0 at a type-2 (actuation) singularity; nan before the first tick. A loop of a
        compiled controller judges its last configuration; nan if rows depend on time.
    side : int
        1 on the side of type-2 singularities on which the first tick was (in a loop of a compiled
        controller: its start), -1 on the other one; 0 if that is not known, or the number of motors
        is not that of the motions.
    """

    saturated: tuple[str, ...]
    softened: tuple[str, ...]
    scale: float
    integral: Vector
    estimator: EstimatorReport | None
    smallest_singular_value: float
    side: int


@former_names(estimator="assembly")
@dataclass(frozen=True, eq=False)
class TaskReport:
    """The report on the last tick of a `TaskSpaceControl` or `Impedance`.

    Attributes
    ----------
    saturated : tuple of str
        The active limits, as in `LimitedInverseDynamics`.
    softened : tuple of str
        Limits of joints that were softened, or are exceeded already.
    scale : float
        1 if nothing was limited; with the policy "scale" the fraction of the commanded motion; nan
        for the nearest efforts.
    damping : float
        The damping of a singular task, relative to its mobility; 0 away from singularities.
    estimator : EstimatorReport or None
        The report of the estimator; None if the state was given, or estimated by machine code.
    smallest_singular_value : float
        The smallest singular value of gamma' B at the state of the tick, scaled as in a
        `Trajectory`: 0 at a type-2 (actuation) singularity; nan before the first tick. A loop of a
        compiled controller judges its last configuration; nan if rows depend on time.
    side : int
        1 on the side of type-2 singularities on which the first tick was (in a loop of a compiled
        controller: its start), -1 on the other one; 0 if that is not known, or the number of motors
        is not that of the motions.

    See Also
    --------
    TaskSpaceControl : its loops and trackings have it, as ``last``.
    results.LimitedInverseDynamics : active limits of a single call.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> ctl = hc.TaskSpaceControl(mech, tip, kp=400.0, kd=40.0, limits=hc.Limits(effort=2.5))
    >>> tracking = ctl.track(lambda t: [0.0, 0.5])
    >>> u = tracking(0.0, q, v)
    >>> tracking.last.saturated
    ('motor_left', 'motor_right')
    """

    saturated: tuple[str, ...]
    softened: tuple[str, ...]
    scale: float
    damping: float
    estimator: EstimatorReport | None
    smallest_singular_value: float
    side: int


def report_of(
    mech: Mechanism, part: Partition, memory: Memory, estimator: EstimatorReport | None
) -> LoopReport:
    """The report on the last tick, from the memory of a loop."""
    integral = memory.integral
    value = np.zeros(memory.ki.size) if integral is None else integral.copy()
    return LoopReport(*_limited(memory.last), value, estimator, *_singularity(mech, part, memory))


def task_report_of(
    mech: Mechanism, part: Partition, memory: Memory, estimator: EstimatorReport | None
) -> TaskReport:
    """The report on the last tick of a law of tasks, from the memory of a loop."""
    more = _singularity(mech, part, memory)
    return TaskReport(*_limited(memory.last), memory.damping, estimator, *more)


def _singularity(mech: Mechanism, part: Partition, memory: Memory) -> tuple[float, int]:
    """The smallest singular value of gamma' B in the last tick, and its side."""
    if memory.at is None:
        return float("nan"), 0
    memory.continue_sides(mech, part)
    here = _side(mech, part, memory.at)
    return here.sigma, 0 if memory.sides is None else int(memory.sides[0] * here.sign)


def _side(mech: Mechanism, part: Partition, at: tuple[Vector, float]) -> ActuationSide:
    if not part.actuation_rank:
        return NO_MOTORS
    G = scaled_rows_at(mech, at[0], np.zeros(mech.nv), at[1]).jacobian
    return actuation_side(mech, part)(G)


def _limited(
    found: Limiting | ContactLimiting | None,
) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """`saturated`, `softened` and `scale` of a report."""
    if found is None:
        return (), (), 1.0
    return found.saturated, found.softened, found.scale
