"""The torque of a tick: what the law asks for, with its integral, within limits.

The integral of a motor at its limit stops where it would push it further: conditional integration.
Where a joint limits, or "scale" slows down, all of it waits.

References: K. Åström and T. Hägglund, PID Controllers, on integrator windup.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, finite
from holoctl.control.limited_tick import LimitedTick, Limiting
from holoctl.control.reference_law import Efforts, ReferenceLaw
from holoctl.dynamics.tick.inverse_tick import Behind
from holoctl.estimation.closed_state_estimator import AssemblyReport

__all__ = ["LoopReport", "Memory", "commanded", "report_of", "within_limits"]


def commanded(
    law: ReferenceLaw, limits: LimitedTick | None, efforts: Efforts,
    behind: Callable[[], Behind | None], q: Vector, v: Vector, t: float, known: Vector | None,
    q_ref: Any, v_ref: Vector, a_ref: Vector, integral: Vector | None = None,
) -> tuple[Vector, Limiting | None]:  # fmt: skip
    """The motor efforts at a state that was checked, and what limited them."""
    u = law.torque(efforts, q, v, q_ref, v_ref, a_ref, t, None, integral)
    if limits is None or limits.within(u):
        return u, None
    return within_limits(u, limits, efforts, behind(), q, v, t, known, *law.base(v_ref))


def within_limits(
    u: Vector, limits: LimitedTick, efforts: Efforts, here: Behind | None, q: Vector, v: Vector,
    t: float, known: Vector | None, target: Vector | None, rates: Vector | None,
) -> tuple[Vector, Limiting | None]:  # fmt: skip
    """The efforts u within limits; `target` and `rates` are those of the motion that leaves the
    motors as they are."""

    def base() -> Vector:
        if here is not None and target is not None:
            found = here.efforts(q, v, target, t, known, rates)
            if found is not None and finite(found):
                return found
        return efforts(q, v, target, t, None, rates)

    return limits.limited(u, q, v, t, known, here, target is not None, base)


@dataclass(eq=False)
class Memory:
    """What a loop remembers from tick to tick, besides where the mechanism is.

    Attributes
    ----------
    ki : (nu,) array
    dt : float
        s.
    integral : (nu,) array or None
        ``ki`` times the integral of e; None without.
    last : Limiting or None
        What limited the last tick.
    untold : tuple or None
        The last tick of machine code, which has not told what limited it.
    """

    ki: Vector
    dt: float
    integral: Vector | None = field(init=False)
    last: Limiting | None = field(init=False, default=None)
    untold: tuple[Any, ...] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.integral = np.zeros(self.ki.size) if self.ki.any() else None
        self.last = self.untold = None

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
    assembly : AssemblyReport or None
        What it took to find the state; None where it is given, or found by machine code.
    """

    saturated: tuple[str, ...]
    softened: tuple[str, ...]
    scale: float
    integral: Vector
    assembly: AssemblyReport | None


def report_of(memory: Memory, assembly: AssemblyReport | None) -> LoopReport:
    """The report of what is remembered."""
    found, integral = memory.last, memory.integral
    value = np.zeros(memory.ki.size) if integral is None else integral.copy()
    if found is None:
        return LoopReport((), (), 1.0, value, assembly)
    return LoopReport(found.saturated, found.softened, found.outcome.scale, value, assembly)
