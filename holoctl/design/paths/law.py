"""How far along a curve at a time, where the acceleration along it is constant piece by piece."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from holoctl.base.checks import Vector, freeze, unpickled

__all__ = ["Sampled", "TimeLaw"]


@dataclass(frozen=True, eq=False)
class TimeLaw:
    """How far along a curve: ``x = x_i + xd_i T + xdd_i T^2 / 2``, T = t - t_i.

    Attributes
    ----------
    t, x, xd : (n,) arrays
    xdd : (n - 1,) array
    """

    t: Vector
    x: Vector
    xd: Vector
    xdd: Vector
    _t: list[float] = field(init=False, repr=False)

    __setstate__ = unpickled

    def __post_init__(self) -> None:
        freeze(self)
        object.__setattr__(self, "_t", self.t.tolist())

    @property
    def end(self) -> float:
        """s."""
        return self._t[-1]

    def at(self, t: float) -> tuple[float, float, float]:
        """x, xd, xdd at a time within."""
        i = min(max(bisect_right(self._t, t) - 1, 0), self.xdd.size - 1)
        T, rate, accelerated = t - self._t[i], float(self.xd[i]), float(self.xdd[i])
        x = float(self.x[i]) + T * (rate + 0.5 * accelerated * T)
        return x, max(rate + accelerated * T, 0.0), accelerated

    def time(self, x: float) -> float:
        """When it is at x, s; the first and the last time outside."""
        i = min(max(int(np.searchsorted(self.x, x, side="right")) - 1, 0), self.xdd.size - 1)
        rate, left = float(self.xd[i]), max(x - float(self.x[i]), 0.0)
        root = np.sqrt(max(rate * rate + 2.0 * float(self.xdd[i]) * left, 0.0))
        T = 2.0 * left / (rate + root) if rate + root > 0.0 else 0.0
        return float(min(self._t[i] + T, self._t[i + 1]))


@dataclass(frozen=True, eq=False)
class Sampled:
    """A function of time for a controller that holds its torque: `Trajectory.sampled` makes one.

    Attributes
    ----------
    reference : function (t, dt) -> (q_ref, v_ref, a_ref)
    dt : float
        The tick, s.
    """

    reference: Callable[[float, float], tuple[Vector, Vector, Vector]]
    dt: float

    def __call__(self, t: float) -> tuple[Vector, Vector, Vector]:
        """q_ref, v_ref, and the mean a_ref of the tick that starts at t."""
        return self.reference(t, self.dt)
