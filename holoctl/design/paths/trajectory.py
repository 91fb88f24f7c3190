"""A motion in time that is closed at every instant, as the reference of a controller.

    q(t) = curve(x(t))        v = q' xd        a = q'' xd^2 + q' xdd

The curve is closed (curve.py); x runs along it with piecewise constant xdd, or is the time.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Array,
    Vector,
    flag,
    freeze,
    instant,
    number,
    numbers,
    positive,
    quiet,
    quoted,
    read_only,
    unpickled,
)
from holoctl.base.errors import InputError, SingularityError
from holoctl.design.paths.curve import Curve, CurveMotion, MotorCurve, motor_curve
from holoctl.design.paths.planned_crossing import PlannedCrossing
from holoctl.design.paths.timed_paths import curve_of_nodes, nodes_through
from holoctl.design.paths.type_2 import type_2_along, type_2_error
from holoctl.dynamics.actuation_side import hold_of_motors
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, partition

__all__ = ["Sampled", "TimeLaw", "Trajectory"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class TimeLaw:
    """The place on a curve by time: ``x = x_i + xd_i T + xdd_i T^2 / 2``, T = t - t_i.

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
        """The last time, s."""
        return self._t[-1]

    def at(self, t: float) -> tuple[float, float, float]:
        """x, xd, xdd at a time between the first and the last one."""
        i = min(max(bisect_right(self._t, t) - 1, 0), self.xdd.size - 1)
        T, rate, accelerated = t - self._t[i], float(self.xd[i]), float(self.xdd[i])
        x = float(self.x[i]) + T * (rate + 0.5 * accelerated * T)
        return x, max(rate + accelerated * T, 0.0), accelerated

    def time(self, x: float) -> float:
        """The time at x, s; the first or the last time for x outside the curve."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """A motion of a mechanism in time, at rest at both ends: `retime` and `through` make them.

    Parameters
    ----------
    mech : Mechanism
        The mechanism that moves; with the payload, if there was one.
    t : (n,) array_like
        Times of the nodes, s; the first is 0.
    q : (n, nq) array_like
        Closed configurations at the nodes.
    v, a : (n, nv) array_like
        Velocities, and accelerations just after each node; before it at the last node.
    u : (n, nu) array_like
        The motor efforts of the motion at the nodes, N m or N.
    partition : Partition, optional
        The one with which it was computed. Default: the one chosen at the first node.
    active : tuple of n - 1 tuples of str, optional
        Active limits between two nodes: motors by name, joints as ``"name.velocity"`` or
        ``"name.acceleration"``. Empty without optimisation.
    excess : float, optional
        Largest excess over a limit between the nodes, as a share of the limit, at the places that
        were checked: half-way, or 100 places if there are few nodes; 0 if there is none.
    curve : Curve, optional
        The path, closed everywhere. Default: polynomials of degree five through the nodes; between
        them the driven coordinates are those of the polynomials, and the others follow from the
        constraints.
    law : TimeLaw, optional
        The place on the curve by time. Default: the parameter of the curve is the time.
    cross : bool, optional
        Accept a path that meets a type-2 singularity, with a warning if `crossings` were not
        planned, instead of an error: efforts have no bound near it then.
    task_value, task_place : float, optional
        For a path of a task: the smallest singular value of the task at the nodes, scaled, which is
        0 at a type-1 singularity, and its time, s. `retime` gives them.
    crossings : tuple of PlannedCrossing, optional
        The type-2 singularities that are crossed as planned, by ``retime(cross=True)``.

    Attributes
    ----------
    duration : float
        s.
    at_limits : dict of str to float
        The share of the time for which each limit of `active` is active.
    smallest_singular_value : float
        The smallest singular value of gamma' B, scaled, along the whole curve, between the nodes
        too: 0 at a type-2 (actuation) singularity, at which motors do not determine the motion and
        efforts are unbounded; inf without motors or motions.
    smallest_at : float
        Its time, s.
    type_2_at : tuple of float
        The times of type-2 singularities that are crossed or touched, s: empty unless `cross`.
    sides : tuple of int
        The sign of det gamma' B in each stretch between them, in coordinates that are continued, 1
        in the first: a change of sign is a crossing, none is a touch. Empty without as many motors
        as motions.
    lost_motion : str
        In words, the motion on which the motors have the least hold, at `smallest_at`: the
        coordinates that move while all motors hold, if that is a type-2 singularity.

    Raises
    ------
    InputError
        For wrong shapes, times that do not increase from 0, configurations that are not closed,
        velocities that contradict the constraints.
    SingularityError
        If it meets a type-2 singularity: if `smallest_singular_value` is below 0.001, or the side
        changes. Its attributes are the place, the time, the value, the configuration and the motion
        that is lost. Not with ``cross=True``.

    See Also
    --------
    retime : the fastest one within limits.
    lqr_along : a regulator along one.
    ComputedTorque : tracks one.

    Notes
    -----
    Between the nodes the state is not interpolated but computed: it is closed to 1e-9 (scaled) at
    every t, and v and a are the derivatives of q and v. Before 0 and after the end the mechanism
    rests. A controller that holds its torque for a tick dt should follow the mean acceleration of
    the tick, ``(v(t + dt) - v(t)) / dt``: efforts then stay within the planned limits. With the
    acceleration at the instant t they exceed them by some per cent at each jump of the
    acceleration.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> here = mech.motor_positions(hc.assemble(mech)[0])
    >>> there = hc.Trajectory.through(mech, [here, here + 0.2], [0.0, 0.5])
    >>> controller = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    >>> track = controller.track(there.sampled(1e-3))
    >>> run = hc.simulate(mech, track, there.q[0], there.v[0], there.duration)
    >>> bool(abs(mech.motor_positions(run.q[-1]) - here - 0.2).max() < 1e-3)
    True
    """

    mech: Mechanism
    t: Any
    q: Any
    v: Any
    a: Any
    u: Any
    partition: Partition | None = None
    active: tuple[tuple[str, ...], ...] = ()
    excess: float = 0.0
    curve: Curve = field(default=None, repr=False)  # type: ignore[assignment]
    law: TimeLaw = field(default=None, repr=False)  # type: ignore[assignment]
    cross: bool = False
    task_value: float = np.inf
    task_place: float = np.nan
    crossings: tuple[PlannedCrossing, ...] = ()
    smallest_singular_value: float = field(init=False)
    smallest_at: float = field(init=False)
    type_2_at: tuple[float, ...] = field(init=False)
    sides: tuple[int, ...] = field(init=False)
    _motors: MotorCurve | None = field(init=False, repr=False)

    __setstate__ = unpickled

    @quiet
    def __post_init__(self) -> None:
        """Check what was given, once."""
        mech = self.mech
        check_mechanism(mech)
        flag("cross", self.cross)
        n = np.shape(self.t)[0] if np.ndim(self.t) == 1 else 0
        if n < 2:
            raise InputError(f"Trajectory: t must be two times or more; got {quoted(self.t)}")
        sizes = {"t": (n,), "q": (n, mech.nq), "v": (n, mech.nv), "a": (n, mech.nv)}
        for name, shape in {**sizes, "u": (n, mech.nu)}.items():
            object.__setattr__(self, name, _table(name, getattr(self, name), shape))
        if self.t[0] != 0.0 or not (np.diff(self.t) > 0.0).all():
            raise InputError("Trajectory: t must increase from 0")
        if self.curve is None:
            nodes = self.t, self.q, self.v, self.a
            with _in_time():
                curve, part = curve_of_nodes(mech, self.partition, *nodes, self.cross)
            object.__setattr__(self, "curve", curve)
            object.__setattr__(self, "partition", part)
            object.__setattr__(self, "task_value", np.inf)  # of another curve, if any
            object.__setattr__(self, "task_place", np.nan)
            object.__setattr__(self, "crossings", ())
        if self.law is None:
            one, none = np.ones(n), np.zeros(n - 1)
            object.__setattr__(self, "law", TimeLaw(self.t, self.t, one, none))
        if self.law.end != self.duration:
            raise InputError(
                f"Trajectory: law ends at {self.law.end:g} s, and t at {self.duration:g} s; if "
                "nodes are changed, leave curve and law out (None)"
            )
        object.__setattr__(self, "_motors", motor_curve(mech, self.curve))
        part = partition(mech, self.q[0]) if self.partition is None else self.partition
        found = type_2_along(mech, part, self.curve)
        object.__setattr__(self, "smallest_singular_value", found.least)
        object.__setattr__(self, "smallest_at", self.law.time(found.at))
        object.__setattr__(self, "type_2_at", tuple(map(self.law.time, found.places)))
        object.__setattr__(self, "sides", found.sides)
        refused = type_2_error(mech, part, self.curve, found, self.type_2_at)
        if refused is not None and not self.cross:
            raise refused
        if refused is not None and len(self.crossings) != len(found.places):
            log.warning("%s; accepted with cross=True, for which no crossing is planned", refused)

    def __repr__(self) -> str:
        fast, strong = float(np.abs(self.v).max()), float(np.abs(self.u).max(initial=0.0))
        limited = [name for names in self.active for name in set(names)]
        through = f", through a type-2 singularity at t = {_times(self.type_2_at)}"
        often = f", mostly at the limit of {max(limited, key=limited.count)!r}" if limited else ""
        return (
            f"<Trajectory of {self.mech.name!r}: {self.duration:.4g} s in {len(self.t)} nodes, "
            f"rates up to {fast:.3g}, efforts up to {strong:.3g}{often}"
            f"{through if self.type_2_at else ''}>"
        )

    @property
    def duration(self) -> float:
        """The last time, s."""
        return float(self.t[-1])

    @property
    def lost_motion(self) -> str:
        """The motion on which the motors have the least hold, at `smallest_at`, in words."""
        part = partition(self.mech, self.q[0]) if self.partition is None else self.partition
        return hold_of_motors(self.mech, part, self.state(self.smallest_at).q).words

    @property
    def at_limits(self) -> dict[str, float]:
        """The share of the time for which each limit of `active` is active."""
        shares: dict[str, float] = {}
        spans = np.diff(self.t).tolist() if self.active else []
        for names, dt in zip(self.active, spans, strict=True):
            for name in names:
                shares[name] = shares.get(name, 0.0) + dt / self.duration
        return shares

    def state(self, t: float) -> CurveMotion:
        """q (nq,), v (nv,), a (nv,) at a time; at rest outside the trajectory.

        Parameters
        ----------
        t : float
            Time, s.

        Returns
        -------
        CurveMotion
            A tuple (q, v, a).

        Raises
        ------
        InputError
            If t is not a finite number.
        """
        t = number("t", t, "time, s")
        if not 0.0 <= t <= self.duration:
            rest = np.zeros(self.mech.nv)
            return CurveMotion(self.q[0 if t < 0.0 else -1].copy(), rest, rest.copy())
        x, xd, xdd = self.law.at(t)
        q, d, dd = self.curve.at(x)
        return CurveMotion(q, d * xd, dd * (xd * xd) + d * xdd)

    def reference(self, t: float, dt: float = 0.0) -> tuple[Vector, Vector, Vector]:
        """The reference of a controller at a time, as `ComputedTorque.torque` takes it.

        Parameters
        ----------
        t : float
            Time, s.
        dt : float, optional
            Length of the tick that starts at t, s; the acceleration is then the mean one of the
            tick, ``(v(t + dt) - v(t)) / dt``. Default: that at the instant t.

        Returns
        -------
        q_ref : (nu,) or (nq,) array
            Positions of the motors, with whole turns counted; the whole configuration if a motor
            has no single position.
        v_ref, a_ref : (nu,) arrays
            Rates and accelerations of the motors.

        Raises
        ------
        InputError
            If t is not a finite number, or dt is negative or not finite.
        """
        t = instant(t)
        if not (isinstance(dt, float) and 0.0 <= dt < np.inf):
            dt = _tick(dt)
        q, v, a = self._driven(t)
        return (q, v, (self._driven(t + dt)[1] - v) / dt) if dt else (q, v, a)

    def _driven(self, t: float) -> tuple[Vector, Vector, Vector]:
        """Positions, rates and accelerations of the motors at a time; at rest outside the
        trajectory."""
        motors = self._motors
        if motors is None:
            q, v, a = self.state(t)
            return q, v @ self.mech.B, a @ self.mech.B
        if not 0.0 <= t <= self.law.end:
            q = (motors.first if t < 0.0 else motors.last).copy()
            return q, motors.rest.copy(), motors.rest.copy()
        x, xd, xdd = self.law.at(t)
        q, d, dd = motors.at(*self.curve.place(x))
        return q, d * xd, dd * (xd * xd) + d * xdd

    __call__ = reference

    def sampled(self, dt: float) -> Sampled:
        """A function of time for `ComputedTorque.track`: `reference` for ticks of dt.

        Parameters
        ----------
        dt : float
            Tick, s, positive.

        Returns
        -------
        Sampled
            A function t -> (q_ref, v_ref, a_ref).

        Raises
        ------
        InputError
            If the tick is not positive.
        """
        return Sampled(self.reference, positive("dt", dt, "s"))

    @staticmethod
    @quiet
    def through(
        mech: Mechanism,
        points: Any,
        times: Any,
        *,
        start: Any = None,
        partition: Partition | None = None,
        cross: bool = False,
    ) -> Trajectory:
        """A trajectory through way-points at given times, at rest at both ends, not optimised.

        It is a spline of degree five in time, with zero rate and acceleration at both ends, in the
        coordinates that the motors drive; closed at every instant.

        Parameters
        ----------
        mech : Mechanism
        points : (n, nu) or (n, nq) array_like
            Two or more way-points: positions of the motors, or closed configurations; if nu = nq,
            positions of the motors.
        times : (n,) array_like
            Times, s, increasing from 0.
        start : (nq,) array_like, optional
            A configuration on the desired branch. Default: ``mech.reference``; for whole
            configurations the first.
        partition : Partition, optional
            Its rows determine the motion. Default: the one chosen at the start.
        cross : bool, optional
            As for `Trajectory`. A path of motors or configurations cannot pass a type-2
            singularity, and is refused also then.

        Returns
        -------
        Trajectory
            Efforts are those without external forces; limits are not checked.

        Raises
        ------
        InputError
            For wrong shapes, times that do not increase from 0, way-points that contradict each
            other or are not closed.
        NotActuatedError
            For a mechanism with motions that no motor drives.
        SingularityError
            If the path meets a type-2 singularity, as at the end of the workspace.
        BranchError, AssemblyError
            If the path cannot be followed for another reason; if the start does not close.

        Examples
        --------
        >>> import holoctl as hc
        >>> mech = hc.load(hc.robot_file("five_bar"))
        >>> here = mech.motor_positions(hc.assemble(mech)[0])
        >>> hc.Trajectory.through(mech, [here, here + 0.1, here], [0.0, 0.3, 0.6]).duration
        0.6
        """
        check_mechanism(mech)
        with _in_time():
            nodes = nodes_through(mech, points, times, start, partition)
        given: tuple[Any, ...] = (*nodes, None, cross)
        return Trajectory(mech, *given)


@contextmanager
def _in_time() -> Iterator[None]:
    """The parameter of the path is the time, also in errors."""
    try:
        yield
    except SingularityError as error:
        error.time = error.place
        raise


def _times(times: tuple[float, ...]) -> str:
    return ", ".join(f"{t:.6g} s" for t in times)


def _tick(dt: Any) -> float:
    x = number("dt", dt, "tick, s")
    if x < 0.0:
        raise InputError(f"dt (tick, s) must not be negative; got {x:g}")
    return x


def _table(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    x = numbers(f"Trajectory: {name}", given)
    if x.shape != shape:
        raise InputError(f"Trajectory: {name} must have shape {shape}; got {x.shape}")
    if not np.isfinite(x).all():
        raise InputError(f"Trajectory: {name} must be finite")
    return read_only(x.copy())
