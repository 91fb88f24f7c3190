"""Control of a motion that crosses type-2 (actuation) singularities.

    u = u0(t) - K(t) (x - x0(t)),  within limits        x = (y, yd)

y are coordinates that are regular along the whole motion, u0 the efforts of the motion from all
accelerations, and K the gains of `lqr_along`: a regulator of states that the motors move together
stays bounded where gamma' B loses rank, as computed torque, which inverts it, does not.
Reference: R. Bordalba, J. M. Porta and L. Ros, "A singularity-robust LQR controller for parallel
robots".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Vector, finite, instant, listing, number, quiet, stored
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
from holoctl.mechanism.bound_limits import bound_limits
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

JUDGED = 0.05  # s
"""The side is judged this long after a planned crossing: a late crossing is one too."""


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
        For wrong shapes, names and weights; a trajectory without coordinates that are regular along
        it; sensors that do not determine the state at a crossing, without `blind`.
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
    A tick raises `SingularityError` if 0.05 s after a planned crossing the robot is on the wrong
    side, and the errors of the estimator if the state is lost.

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
        blind = number("blind", blind, "s")
        if not 0.0 <= blind < trajectory.duration:
            raise InputError(f"blind must be from 0 to below the duration, s; got {blind:g}")
        self.trajectory = trajectory
        self._bound = bound_limits(mech, requested_limits(mech, limits, "limits") or Limits())
        models = int(min(MOST_MODELS, max(2, np.ceil(trajectory.duration / MODEL_EVERY))))
        part = trajectory.partition or partition(mech, trajectory.q[0])
        _check_regular(trajectory, part)
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

    def reset(self) -> None:
        """Begin another run: the mechanism is at the start of the trajectory."""
        if self._sensors is not None:
            self._sensors.reset()
        self._judged = [c.t for c in self.trajectory.crossings]
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
        if not blind and self._judged and t > self._judged[0] + JUDGED:
            self._judge(q)
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

    def _judge(self, q: Vector) -> None:
        """Raise `SingularityError` if the robot is on the wrong side."""
        time = self._judged.pop(0)
        crossed = len(self.trajectory.crossings) - len(self._judged)
        mech = self.feedback.mech
        here = self._side(scaled_jacobian(mech, q, 0.0)[0])
        if here.sign * self._first == self.trajectory.sides[crossed]:
            return
        raise SingularityError(
            f"{mech.name}: the robot did not cross the type-2 (actuation) singularity that it was "
            f"to cross at t = {time:.6g} s: it is on the wrong side of it. The model differs too "
            "much from the robot (friction of passive joints, masses), or the efforts had no room: "
            "plan with margin= or with more friction",
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
