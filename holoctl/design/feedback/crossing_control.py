"""Control of a motion that crosses type-2 (actuation) singularities.

    u = u0(t) - K(t) (x - x0(t)),  within limits        x = (y, yd)

y are coordinates that are regular along the whole motion, u0 the efforts of the motion from all
accelerations, and K the gains of `lqr_along`: a regulator of states that the motors move together
stays bounded where gamma' B loses rank, as computed torque, which inverts it, does not.
Reference: R. Bordalba, J. M. Porta and L. Ros, "A singularity-robust LQR controller for parallel
robots".
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Vector, counted, finite, instant, listing, number, quiet, stored
from holoctl.base.errors import InputError, SingularityError
from holoctl.closing.rank import scaled_jacobian
from holoctl.control.effort_bounds import effort_bounds
from holoctl.design.feedback.crossing_sensors import CrossingSensors
from holoctl.design.feedback.lqr_along import lqr_along
from holoctl.design.feedback.state_feedback import StateFeedback
from holoctl.design.paths.inputs import REGULAR
from holoctl.design.paths.regular_coordinates import regular_coordinates
from holoctl.design.paths.trajectory import Trajectory
from holoctl.dynamics.actuation_side import actuation_side
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, partition

__all__ = ["CrossingControl", "CrossingReport"]

ERROR = 4e-3  # scaled
"""By default the largest effort of a motor counts as much as this deviation of a coordinate."""

TICKS_OF_RATE = 10.0
"""By default a rate counts as much as the deviation that it makes in this number of ticks."""

MODEL_EVERY = 2e-3  # s
MOST_MODELS = 201
"""Interval between linear models, and their largest number."""

_MANY = "type-2 singularities"

JUDGED = 0.05  # s
"""The side is judged this long after a planned crossing, for a late crossing is one too, or
half-way to the next one if that is earlier; then at this interval, and at the end of the motion."""


BESIDE = 1e-3
"""Distance from a crossing, as a share of the duration, at which efforts are compared with those of
the plan."""

OVER_LIMIT = 0.02
"""Planned efforts may exceed the limits of the controller by this share of them."""

AS_PLANNED = 0.5
"""They may differ by this share of the largest effort."""


class CrossingReport(NamedTuple):
    """The last tick of a `CrossingControl`.

    Attributes
    ----------
    t : float
        Time, s.
    blind : bool
        Whether the efforts were those of the plan, without feedback.
    saturated : tuple of str
        Motors at their limits.
    smallest_singular_value : float
        Of gamma' B, scaled; nan in a blind tick.
    side : int
        1 on the side of the start, -1 on the other; 0 in a blind tick.

    See Also
    --------
    CrossingControl : makes it.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> here = mech.motor_positions(hc.assemble(mech)[0])
    >>> there = hc.Trajectory.through(mech, [here, here + 0.1], [0.0, 0.1])
    >>> control = hc.CrossingControl(mech, there)
    >>> u = control(0.0, there.q[0], there.v[0])
    >>> control.last.side, control.last.saturated
    (1, ())
    """

    t: float
    blind: bool
    saturated: tuple[str, ...]
    smallest_singular_value: float
    side: int


class CrossingControl:
    """A controller (t, q, v) -> u of a trajectory that crosses type-2 singularities as planned.

    The gains are those of `lqr_along` in coordinates that are regular along the motion; the efforts
    are within their limits. It remembers the state of its run: one for each loop.

    Parameters
    ----------
    mech : Mechanism
        ``trajectory.mech``, or another that needs nearly the planned efforts.
    trajectory : Trajectory
        ``hc.retime(..., cross=True)``.
    limits : Limits, "model" or None, optional
        Limits of the efforts. ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a
        `Limits`; None: no limits. They should exceed those of the plan by 10 to 20 %, for feedback
        needs room: plan with ``margin=0.15``.
    measured : iterable of str, optional
        Joints with encoders, as `ClosedStateEstimator` takes them; q and v are then their readings.
        Motors alone do not determine the state at a type-2 singularity, and are refused: add a
        passive joint, or give `blind`. Default: the whole state is measured; the motors, if `blind`
        is given.
    blind : float, optional
        Time about each crossing, s, half of it before and half after, in which the efforts are
        those of the plan without feedback, and sensors are not used. It assumes that the robot then
        is on the planned side, near the plan, which no motor encoder can tell; an error names the
        least time that noise allows. Default: 0.
    Q, R, Qf : optional
        Weights, as `lqr_along` takes them. Default: a deviation of 0.004 (scaled: rad, or lengths
        over the size of a loop) costs as much as the largest effort of each motor, and so does the
        rate that makes it in 10 ticks.
    dt : float, optional
        Tick, s.

    Attributes
    ----------
    trajectory : Trajectory
    feedback : StateFeedback
        The law without limits.
    measured : tuple of str
        Empty for the whole state.
    last : CrossingReport
        The report on the last tick.

    Raises
    ------
    InputError
        For wrong shapes, names and weights; limits below the planned efforts; a trajectory through
        singularities that are not planned to be crossed, or planned for another model (payload,
        external forces), or without coordinates that are regular along it; sensors that do not
        determine the state at a crossing, without `blind`.
    NotActuatedError, InconsistentError, SingularityError
        As `lqr_along`.

    See Also
    --------
    retime : plans the motion, with ``cross=True``.
    lqr_along : the gains.
    ClosedStateEstimator : the state from encoders.
    results.CrossingReport : the report on a tick.

    Notes
    -----
    A tick raises `SingularityError` if the robot is on the wrong side 0.05 s after a planned
    crossing, or half-way to the next one, then every 0.05 s, and at the end of the motion; and the
    errors of the estimator if the state is lost.

    References
    ----------
    R. Bordalba, J. M. Porta and L. Ros, "A singularity-robust LQR controller for parallel robots".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> here = mech.motor_positions(hc.assemble(mech)[0])
    >>> there = hc.Trajectory.through(mech, [here, here + 0.1], [0.0, 0.1])
    >>> control = hc.CrossingControl(mech, there)
    >>> control(0.0, there.q[0], there.v[0]).round(2).tolist()
    [-2.07, 2.53]
    """

    trajectory: Trajectory
    feedback: StateFeedback
    measured: tuple[str, ...]

    @quiet
    def __init__(
        self,
        mech: Mechanism,
        trajectory: Trajectory,
        limits: Any = None,
        *,
        measured: Iterable[str] | None = None,
        blind: float = 0.0,
        Q: Any = None,
        R: Any = None,
        Qf: Any = None,
        dt: float = 1e-3,
    ) -> None:
        check_mechanism(mech)
        if not isinstance(trajectory, Trajectory):
            raise InputError(
                "trajectory must be a Trajectory, such as hc.retime(..., cross=True); got "
                f"{type(trajectory).__name__}"
            )
        met, planned = len(trajectory.type_2_at), len(trajectory.crossings)
        if met != planned:
            raise InputError(
                f"{mech.name}: the trajectory meets {counted(met, 'type-2 singularity', _MANY)}, of"
                f" which {planned} are planned: efforts are unbounded near the others; plan them "
                "with hc.retime(..., cross=True)"
            )
        blind = number("blind", blind, "s")
        if not 0.0 <= blind < trajectory.duration:
            raise InputError(f"blind must be from 0 to below the duration, s; got {blind:g}")
        self.trajectory = trajectory
        self._bound = bound_limits(mech, requested_limits(mech, limits, "limits") or Limits())
        _check_room(mech, trajectory, self._bound)
        models = int(min(MOST_MODELS, max(2, np.ceil(trajectory.duration / MODEL_EVERY))))
        part = trajectory.partition or partition(mech, trajectory.q[0])
        _check_regular(trajectory, part)
        _check_planned(mech, trajectory, part)
        if Q is None:
            unit = 1.0 / (ERROR * mech.column_scale[part.independent])
            Q = np.concatenate([unit, TICKS_OF_RATE * dt * unit]) ** 2
        if R is None:
            largest = np.abs(trajectory.u).max(axis=0)
            R = 1.0 / np.maximum(largest, 1e-3 * max(float(largest.max()), 1e-300)) ** 2
        self.feedback = lqr_along(
            mech, trajectory, Q, R, Qf=Qf, dt=dt, models=models, partition=part
        )
        self._side = actuation_side(mech, self.feedback.partition)
        self._first = self._side(scaled_jacobian(mech, trajectory.q[0], 0.0)[0]).sign
        self._judged = _judged(trajectory, dt)
        self._sensors = None
        if measured is not None or blind:
            names = mech.actuated if measured is None else measured
            self._sensors = CrossingSensors(trajectory, part, names, blind)
        self.measured = () if self._sensors is None else self._sensors.names
        self.reset()

    def __repr__(self) -> str:
        n = len(self.trajectory.crossings)
        sensed = f", from {listing(self.measured, 6)}" if self.measured else ""
        return f"<CrossingControl of {self.feedback.mech.name!r}: {n} crossings{sensed}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a CrossingControl remembers the state of its run: it cannot be copied or pickled; "
            "make another one for each loop"
        )

    def reset(self) -> None:
        """Begin another run: the mechanism is at the start of the trajectory."""
        if self._sensors is not None:
            self._sensors.reset()
        self._past = 0
        self._last = 0.0, True, np.zeros(0), np.zeros(0)

    @quiet
    def torque(self, q: Any, v: Any, t: float = 0.0, out: Vector | None = None) -> Vector:
        """The motor efforts for one tick.

        Parameters
        ----------
        q, v : array_like
            Measured configuration (nq,) and velocity (nv,); with `measured` its positions and
            rates.
        t : float, optional
            Time since the start of the motion, s.
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
        SingularityError
            If the robot is on the wrong side of a singularity after a planned crossing.
        BranchError, AssemblyError, InconsistentError
            With `measured`, as `ClosedStateEstimator.state`.
        """
        t = instant(t)
        mech, blind = self.feedback.mech, False
        if self._sensors is not None:
            state = self._sensors.state(q, v, t)
            blind = state is None
            q, v = self.trajectory.state(t)[:2] if state is None else state
        q, v, t = state_in_a_tick(mech, q, v, t)
        wanted = self.feedback.torque(q, v, t)
        lower, upper = effort_bounds(self._bound, v @ mech.B)
        u: Vector = np.minimum(np.maximum(wanted, lower), upper)
        if not finite(u):
            raise InputError("the torque is not finite: q or v is out of range")
        past = bisect(self._judged, t)
        if past and past == len(self._judged):
            past += int((t - self._judged[-1]) / JUDGED)
        if past > self._past and not blind:
            self._judge(q, past)
        if past < self._past or not blind:  # time that goes back begins another run
            self._past = past
        self._last = t, blind, q.copy(), u != wanted
        return u if out is None else stored("out", out, u)

    def __call__(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts u at the time t, s, in the state (q, v), or for the readings (q, v)."""
        return self.torque(q, v, t)

    @property
    def last(self) -> CrossingReport:
        """The report on the last tick."""
        t, blind, q, cut = self._last
        names = self.feedback.mech.actuator_names
        saturated = tuple(name for name, at in zip(names, cut, strict=False) if at)
        if blind:
            return CrossingReport(t, blind, saturated, np.nan, 0)
        here = self._side(scaled_jacobian(self.feedback.mech, q, 0.0)[0])
        return CrossingReport(t, blind, saturated, here.sigma, int(here.sign * self._first))

    def _judge(self, q: Vector, past: int) -> None:
        """Raise `SingularityError` if the robot is on the wrong side at a judgement."""
        crossings = self.trajectory.crossings
        when = self._judged[min(past, len(self._judged)) - 1]
        crossed = sum(one.t < when for one in crossings)
        mech, time = self.feedback.mech, crossings[crossed - 1].t
        here = self._side(scaled_jacobian(mech, q, 0.0)[0])
        if here.sign * self._first == self.trajectory.sides[crossed]:
            return
        raise SingularityError(
            f"{mech.name}: the robot did not cross the type-2 (actuation) singularity that it was "
            f"to cross at t = {time:.6g} s, or came back: it is on the wrong side of it. The model "
            "differs too much from the robot (friction of passive joints, masses), or the efforts "
            "had no room: plan with margin= or with more friction",
            kind="type 2", value=here.sigma, time=time, q=q.copy(),
        )  # fmt: skip


def _check_regular(trajectory: Trajectory, part: Partition) -> None:
    """Raise `InputError` if the independent coordinates do not determine the motion somewhere."""
    mech, own = trajectory.mech, part.independent.tolist()
    least = regular_coordinates(mech, part, trajectory.q, own, len(own))[1]
    if least < REGULAR:
        raise InputError(
            f"{mech.name}: no choice of {len(own)} coordinates determines the motion all along the "
            f"trajectory (smallest singular value {least:.2g}, scaled), so one regulator does not "
            "serve; take a shorter one"
        )


def _check_room(mech: Mechanism, trajectory: Trajectory, bound: BoundLimits) -> None:
    """Raise `InputError` if limits are below the planned efforts."""
    over = np.maximum(trajectory.u - bound.effort[1], bound.effort[0] - trajectory.u).max(axis=0)
    most = np.abs(trajectory.u).max(axis=0)
    less = [i for i, x in enumerate(over) if x > OVER_LIMIT * most[i]]
    if less:
        i = max(less, key=over.__getitem__)
        raise InputError(
            f"{mech.name}: the limits of {listing([mech.actuator_names[k] for k in less], 4)} are "
            f"below the planned efforts, by {over[i]:.3g} N m or N for {mech.actuator_names[i]!r}: "
            "give those of the plan and 10 to 20 % more"
        )


def _check_planned(mech: Mechanism, trajectory: Trajectory, part: Partition) -> None:
    """Raise `InputError` if beside a crossing the efforts of the motion are not the planned ones: a
    model for which a motion was not planned needs unbounded efforts there."""
    away, most = BESIDE * trajectory.duration, float(np.abs(trajectory.u).max())
    for t in (c.t + x for c in trajectory.crossings for x in (-away, away)):
        u = inverse_dynamics(
            mech, *trajectory.state(t), coordinates="all", inconsistent="project", t=t,
            partition=part,
        ).u  # fmt: skip
        planned = np.array([np.interp(t, trajectory.t, x) for x in trajectory.u.T])
        off = float(np.abs(u - planned).max())
        if not off <= AS_PLANNED * most:
            raise InputError(
                f"{mech.name}: the trajectory was planned for another model: beside the crossing "
                f"at t = {t:.4g} s its efforts differ from those of this one by {off:.3g}, and are "
                f"at most {most:.3g} (N m or N); give trajectory.mech, which has the payload; "
                "f_ext= of a plan is not known here"
            )


def _judged(trajectory: Trajectory, dt: float) -> list[float]:
    """Times at which the side is judged, increasing: after crossings, and at the end."""
    times, end = [c.t for c in trajectory.crossings], trajectory.duration
    if not times:
        return []
    last = max(end - 2.0 * dt, 0.5 * (times[-1] + end))  # a loop may end before the motion
    found = list[float]()
    for one, two in pairwise([*times, np.inf]):
        first = min(one + JUDGED, 0.5 * (one + two), last)
        found += [first, *np.arange(first + JUDGED, min(two - JUDGED, last), JUDGED).tolist()]
    return [*found, last] if found[-1] < last else found
