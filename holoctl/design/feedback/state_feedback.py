"""State feedback: about a point, or along a motion.

    u = u0 - K (x - x0)        x = (y, yd)        y - y0 = S difference(q0, q)

S selects the independent coordinates. Along a motion x0 and K are interpolated linearly in time
between nodes; u0 is held from node to node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, counted, finite, quiet, read_only, stored
from holoctl.base.errors import InputError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import TICK_ROUNDED
from holoctl.control.motor_feedback import check_finite
from holoctl.mechanism.checks import state_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["Feedback", "StateFeedback"]

_Law = Callable[[Vector, Vector, float], Vector]


@dataclass(frozen=True, eq=False)
class StateFeedback:
    """A law that holds a point, or follows a motion, as `lqr` and `lqr_along` return it.

    Attributes
    ----------
    mech : Mechanism
    partition : Partition
        Its independent coordinates are y.
    K : (nu, 2n) array, or (N, nu, 2n)
        Gains of the states; at N nodes along a motion.
    q, v, u : (nq,), (nv,) and (nu,) arrays, or with N rows
        The point or the motion, and its efforts.
    states, inputs : tuples of str
        Names.
    times : (N,) array or None
        Times of the nodes, s, in equal steps from 0; None: about a point. After the last one the
        end is held, before the first one the start.
    dt : float or None
        The tick for which the gains are made, s; None: a continuous controller.
    poles : (2n,) complex array
        Poles of the closed loop about a point, 1/s; with ticks ``log(z) / dt``. Fewer if states
        were left out; empty along a motion.
    P : (2n, 2n) array
        The cost to go from a deviation x is ``x' P x``; along a motion from its start.
    terminal : str
        Along a motion the choice of Qf: ``"regulator"``, ``"Q"`` or ``"given"``; else empty.

    See Also
    --------
    lqr : returns it for a point.
    lqr_along : returns it for a motion.
    linearize : the linear model that it is designed for.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> eq = hc.equilibrium(mech)
    >>> law = hc.lqr(hc.linearize(mech, eq.q, u=eq.u), Q=[100.0, 1.0], R=0.1)
    >>> bool((law.poles.real < 0.0).all())
    True
    """

    mech: Mechanism
    partition: Partition
    K: Array
    q: Array
    v: Array
    u: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    times: Vector | None = None
    dt: float | None = None
    poles: NDArray[np.complex128] = field(default_factory=lambda: np.zeros(0, dtype=complex))
    P: Array = field(default_factory=lambda: np.zeros((0, 0)))
    terminal: str = ""
    _law: _Law = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("K", "q", "v", "u", "P"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=float)))
        object.__setattr__(self, "poles", read_only(np.array(self.poles, dtype=complex)))
        if self.times is not None:
            times = read_only(np.array(self.times, dtype=float))
            object.__setattr__(self, "times", times)
        object.__setattr__(self, "_law", _at_point(self) if self.times is None else _along(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return StateFeedback, tuple(getattr(self, f.name) for f in fields(self) if f.init)

    def __repr__(self) -> str:
        n = len(self.states) // 2
        ticks = "continuous" if self.dt is None else f"in ticks of {self.dt:g} s"
        if self.times is not None:
            what = f"along a motion of {self.times[-1]:.4g} s"
        else:
            slowest = float(self.poles.real.max(initial=-np.inf))
            what = f"about a point, slowest pole {slowest:.3g} 1/s"
        return (
            f"<StateFeedback of {self.mech.name!r}: {counted(n, 'motion')}, "
            f"{counted(len(self.inputs), 'motor')}, {ticks}, {what}; gains up to "
            f"{largest(self.K.reshape(-1)):.3g}>"
        )

    @quiet
    def torque(self, q: Any, v: Any, t: float = 0.0, out: Vector | None = None) -> Vector:
        """The motor efforts for one tick.

        Parameters
        ----------
        q : (nq,) array_like
            Measured configuration.
        v : (nv,) array_like
            Measured velocity, rad/s or m/s.
        t : float, optional
            Time since the start of the motion, s; not used about a point.
        out : (nu,) array, optional
            Receives the result; unchanged if an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N: `out`, or a new array.

        Raises
        ------
        InputError
            For wrong shapes, or input that is not finite.
        """
        q, v, t = state_in_a_tick(self.mech, q, v, t)
        u = self._law(q, v, t)
        if not (finite(u) and finite(q) and finite(v)):
            check_finite(q=q, v=v)
            raise InputError("the torque is not finite: q or v is out of range")
        return u if out is None else stored("out", out, u)

    def controller(self) -> Feedback:
        """A controller(t, q, v) -> u for `simulate`."""
        return Feedback(self)


@dataclass(frozen=True, eq=False)
class Feedback:
    """A controller(t, q, v) -> u: `StateFeedback.controller` makes one.

    Parameters
    ----------
    feedback : StateFeedback
    """

    feedback: StateFeedback

    def __call__(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts u at the time t, s, in the state (q, v)."""
        return self.feedback.torque(q, v, t)


def _difference(mech: Mechanism) -> Callable[[Vector, Vector], Vector]:
    """``q - q0`` in the tangent space."""
    model = mech.model
    kinds = {joint.shortname() for joint in list(model.joints)[1:]}
    if mech.nq == mech.nv and not any("Composite" in kind for kind in kinds):
        return lambda q0, q: q - q0
    return lambda q0, q: np.asarray(pin.difference(model, q0, q))


def _at_point(law: StateFeedback) -> _Law:
    ind, K, u0, q0 = law.partition.independent, law.K, law.u, law.q
    n, difference = ind.size, _difference(law.mech)
    rates = law.v.take(ind)

    def at_point(q: Vector, v: Vector, t: float) -> Vector:
        x = np.empty(2 * n)
        x[:n] = difference(q0, q).take(ind)
        np.subtract(v.take(ind), rates, x[n:])
        u: Vector = u0 - K.dot(x)
        return u

    return at_point


def _along(law: StateFeedback) -> _Law:
    times = np.zeros(0) if law.times is None else law.times
    if times.size < 2:
        raise InputError(f"StateFeedback: times must be two or more; got {times.size}")
    ind, difference = law.partition.independent, _difference(law.mech)
    n, last, step = ind.size, times.size - 1, float(times[1] - times[0])
    K, q0, u0, rates = law.K, law.q, law.u, law.v.take(ind, 1)
    ahead = np.array([difference(a, b).take(ind) for a, b in pairwise(q0)])
    end = float(times[-1])

    def along(q: Vector, v: Vector, t: float) -> Vector:
        place = min(max(t, 0.0), end) / step
        i = min(int(place + TICK_ROUNDED), last)
        x, here, rate = np.empty(2 * n), K[i], rates[i]
        x[:n] = difference(q0[i], q).take(ind)
        if i < last:
            part = place - i
            x[:n] -= part * ahead[i]
            here, rate = here + part * (K[i + 1] - here), rate + part * (rates[i + 1] - rate)
        np.subtract(v.take(ind), rate, x[n:])
        u: Vector = u0[i] - here.dot(x)
        return u

    return along
