"""Unknown external efforts of a closed chain: a disturbance observer on generalised momentum.

    p = gamma' M v
    p' = gamma' (B u + F + Mdot v - h) + gammadot' M v + tau        tau: unknown efforts
    r = K (p - p0 - integral of the known efforts, and of r)        so that  r' = K (tau - r)

Constraint forces cancel, for gamma' G' = 0, also if rows depend on time. From one tick to the next,
with the means of both ends, and u held:

    gamma_m' M_m (v - v_before) = h gamma_m' (B u + (F - h)_m) + h tau        and then
    r = r_before + (1 - exp(-K h)) (tau - r_before)

Derivation, and how gamma' M v became that: docs/derivations.md, "Momentum observer".
References: A. De Luca and R. Mattone 2003, Actuator failure detection and isolation using
generalized momenta; A. De Luca, A. Albu-Schaeffer, S. Haddadin, G. Hirzinger 2006, Collision
detection and safe reaction with the DLR-III lightweight manipulator arm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.angles import wrapped
from holoctl.base.checks import (
    Vector,
    as_given,
    counted,
    finite,
    listing,
    number,
    numbers,
    positive,
    quiet,
    read_only,
    vector,
)
from holoctl.base.errors import InconsistentError, InputError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.renamed import former_names
from holoctl.base.tolerances import CLOSURE_LIMIT, VELOCITY_LIMIT
from holoctl.closing.assembly import assemble
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator, check_estimator
from holoctl.estimation.frame_wrench import FrameWrench, frame_wrench, wrench_axes
from holoctl.estimation.reduced_dynamics import ReducedMotion, reduced_motion
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import external_efforts
from holoctl.mechanism.scales import sizes
from holoctl.projector.partition import Partition, check_partition, partition
from holoctl.projector.repartition import decided_anew, repartitioned
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.rows.state_limits import StateLimits, check_tolerance, state_limits
from holoctl.rows.tick.user_rows import check_ticks
from holoctl.tree.frames import FrameLike
from holoctl.tree.kinematics import kinematics

__all__ = ["MomentumObserver"]

STEP_MISSED = 0.1  # scaled
"""The largest difference between the step of a coordinate and the mean of its rates at both ticks
times the time between them."""

TURNED_TICK = 0.25
"""The largest relative change of gamma between two ticks, scaled: near a dead point of the
coordinates the mean of two ticks is not accurate."""


class _RefusedCalls(NamedTuple):
    """The known efforts in calls that were refused."""

    time: float  # s, since the last tick that is remembered
    impulse: Any  # (nv,) of the known efforts, N m s or N s


_NO_GAP = _RefusedCalls(0.0, 0.0)


@former_names(estimator="assembly")
class MomentumObserver:
    """Unknown external efforts on the motions of a mechanism, and the wrenches that explain them.

    A disturbance observer on generalised momentum, reduced to the motions that the constraints
    allow. It needs no acceleration: its estimate `efforts` follows the unknown efforts as a
    first-order low-pass, ``r' = gain (tau - r)``; after a step it is within 1 % after 4.6 / gain.

    Known efforts are those of the motors, u, of inertia, rotors, weight and the forces of the
    mechanism (friction, springs), and those given to `update`. All other efforts are estimated: of
    a push, a tool, a payload, and of errors of the model. The caller decides which are collisions.

    In motion the error is of second order in the tick, without noise and on an exact model; at rest
    it is zero. Gains above ``1 / dt`` add noise without a faster estimate; no gain is unstable.

    An observer remembers its last tick: use one for each loop. It is neither copied nor pickled.

    Parameters
    ----------
    mech : Mechanism
    gain : float or (k,) array_like
        1/s, above zero: of all motions, or of each motion of `partition`. A coordinate that a later
        partition makes independent takes the smallest gain of those that it replaces.
    partition : Partition, optional
        Its independent coordinates are those of the motions. Default: chosen at the configuration
        assembled from ``mech.reference``.
    dt : float, optional
        The time from one tick to the next, s, unless it is given to `update`.
    estimator : ClosedStateEstimator, optional
        The estimator whose `fresh` copy finds the state in `update_from_motors`. Default: the
        motors are measured, and the start is assembled from ``mech.reference``.
    closure_limit, velocity_limit : float or None, optional
        The largest closure error and velocity error of a state, see `PreparedInverseDynamics`; a
        state beyond them is refused.

    Attributes
    ----------
    mech : Mechanism
    gain : (k,) array
    partition : Partition
    dt : float
    limits : StateLimits
    coordinates : tuple of str
        The independent coordinates, along which the entries of `efforts` act.
    t : float
        Time of the last tick, s.

    Raises
    ------
    InputError
        For gains, ticks or limits that are not above zero, and a partition of another mechanism.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    See Also
    --------
    results.FrameWrench : the wrench at a frame.
    ClosedStateEstimator : the closed state from the motors.
    Impedance : yields to forces.

    References
    ----------
    docs/derivations.md, "Momentum observer".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> observer = hc.MomentumObserver(mech, gain=50.0, dt=1e-3)
    >>> observer.reset(q, v)
    >>> u = hc.PreparedInverseDynamics(mech).holding(q)
    >>> bool(abs(observer.update(q, v, u)).max() < 1e-9)  # held, and no external effort
    True
    """

    mech: Mechanism
    gain: Vector
    partition: Partition
    dt: float
    limits: StateLimits
    coordinates: tuple[str, ...]
    t: float

    @quiet
    def __init__(
        self,
        mech: Mechanism,
        gain: Any,
        partition: Partition | None = None,
        dt: float = 1e-3,
        *,
        estimator: ClosedStateEstimator | None = None,
        closure_limit: float | None = CLOSURE_LIMIT,
        velocity_limit: float | None = VELOCITY_LIMIT,
    ) -> None:
        check_mechanism(mech)
        check_ticks(mech)
        self.mech, self.dt = mech, positive("dt", dt, "s")
        self.limits = state_limits(closure_limit, velocity_limit)
        part = _decided(mech) if partition is None else partition
        check_partition(mech, part)
        check_tolerance(mech.name, self.limits, part.tolerance)
        check_estimator(mech, estimator, "observer")
        self._given_estimator = estimator
        self._estimator: ClosedStateEstimator | None = None
        self._prepared(part, _gains(gain, part))
        self._last: ReducedMotion | None = None
        self._r, self.t, self._busy = np.zeros(self.gain.size), 0.0, False
        self._tau = self._r  # of the last tick, before the filter
        self._missed, self._gap, self._turned = 0.0, _NO_GAP, False

    def __repr__(self) -> str:
        named = listing(self.coordinates, 6)
        least, most = float(self.gain.min(initial=np.inf)), float(self.gain.max(initial=0.0))
        gain = f"{most:g}" if least >= most else f"{least:g} to {most:g}"
        return (
            f"<MomentumObserver of {self.mech.name}: gain {gain} 1/s, every {self.dt:g} s; "
            f"{counted(len(self.coordinates), 'motion')} of {named}, efforts up to "
            f"{largest(self._r):.3g} N m or N>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a MomentumObserver remembers the motion of its mechanism, for one loop: it is neither "
            "copied nor pickled; hc.MomentumObserver(mech, gain) makes another one"
        )

    # ------------------------------------------------------------------------------- in a loop

    @quiet
    def update(
        self,
        q: Any,
        v: Any,
        u: Any,
        t: float | None = None,
        *,
        dt: float | None = None,
        efforts: Any = None,
        f_ext: Any = None,
    ) -> Vector:
        """The efforts after the tick that ends now, from its final state and its known efforts.

        u belongs to the tick that ends, not to the one that begins. In a loop that reads (q, v) and
        then commands u, call ``update(q, v, u)`` with the u of the previous tick before the new u
        is commanded. u are the efforts that acted, after limits of the drives, held during a tick.

        The first call, without `reset`, is a start: no tick ends there, and efforts are zero.

        After an error only the time and the known efforts of the call are remembered; the next
        call observes both ticks together.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration now.
        v : (nv,) array_like
            Velocity now, rad/s or m/s. A delay of the rates delays the estimate.
        u : (nu,) array_like
            Efforts of the motors from the last call to this one, N m or N.
        t : float, optional
            Time now, s, after that of the last call. Default: `dt` later.
        dt : float, optional
            s since the last call, instead of t. Default: that of the observer.
        efforts : (nv,) array_like, optional
            Other known efforts on the coordinates in that time, N m or N.
        f_ext : mapping or pin.StdVec_Force, optional
            Known external forces in that time, as `inverse_dynamics` takes them.

        Returns
        -------
        (k,) array
            The attribute `efforts`: N m or N on the motions, by `coordinates`.

        Raises
        ------
        InputError
            For wrong shapes, numbers that are not finite, a time that does not increase, and a
            state that the rates do not reach from the last one in that time.
        InconsistentError
            If the state is beyond its limits.
        SingularityError
            If the coordinates of the motions hardly determine the others; `repartitioned` then
            chooses other coordinates.
        """

        def found(now: float) -> tuple[Vector, Vector]:
            return state_in_a_tick(self.mech, q, v, now)[:2]

        return self._tick(found, u, t, dt, efforts, f_ext)

    @quiet
    def update_from_motors(
        self,
        q_motors: Any,
        v_motors: Any,
        u: Any,
        t: float | None = None,
        *,
        dt: float | None = None,
        efforts: Any = None,
        f_ext: Any = None,
    ) -> Vector:
        """`update` from measurements of the motors, or of the joints that `estimator` measures.

        If a controller already estimates the state, as a `Loop` does, give that to `update`.

        Parameters
        ----------
        q_motors, v_motors : array_like
            Positions and rates in the order of ``estimator.measured``; rad or m, rad/s or m/s.
        u, t, dt, efforts, f_ext
            As there.

        Returns
        -------
        (k,) array
            N m or N.

        Raises
        ------
        InputError, InconsistentError, SingularityError
            As there; without rates; and for a general actuation matrix, whose motors have no
            positions.
        BranchError, AssemblyError
            As `ClosedStateEstimator.state`.
        """
        if v_motors is None:
            raise InputError(
                "v_motors must be given: without rates there is no momentum. hc.RateFilter makes "
                "rates from positions"
            )

        def found(now: float) -> tuple[Vector, Vector]:
            return self.estimator.state_in_place(q_motors, v_motors, now)

        return self._tick(found, u, t, dt, efforts, f_ext)

    @property
    def efforts(self) -> Vector:
        """(k,): the unknown efforts on the motions, N m or N, by `coordinates`.

        The power of an effort is the effort times the rate of its coordinate, with all dependent
        coordinates moving along. An external wrench f at a frame contributes ``gamma' J' f``.
        """
        return self._r.copy()

    @property
    def estimator(self) -> ClosedStateEstimator:
        """The estimator of the state in `update_from_motors`; it is made on first use, and starts
        at the last tick, if there was one."""
        if self._estimator is None:
            given = self._given_estimator
            if given is None and not self.mech.actuated:
                raise InputError(
                    f"{self.mech.name}: it has no motors, or they act by an actuation matrix, so "
                    "they have no positions; "
                    "give estimator=hc.ClosedStateEstimator(mech, measured=...)"
                )
            made = (
                ClosedStateEstimator(self.mech, partition=self.partition)
                if given is None
                else given.fresh()
            )
            if self._last is not None:
                made.reset(self._last.q, self._last.t)
            self._estimator = made
        return self._estimator

    @quiet
    def wrench(
        self,
        frame: FrameLike,
        axes: str = "x y z rx ry rz",
        *,
        residual_limit: float | None = None,
    ) -> FrameWrench:
        """The wrench at a frame that explains `efforts`, at the state of the last tick.

        It assumes that all unknown efforts act at this frame and along these axes. If there are
        more motions than axes, `residual` and `share` of the result show whether that holds.

        Parameters
        ----------
        frame : str or (str, pin.SE3)
            A frame, body or joint, or a placement in one.
        axes : str, optional
            Forces ``x y z`` and moments ``rx ry rz`` along the axes of the world, at the origin of
            the frame: the rows of a frame's velocity. At most as many as there are motions.
        residual_limit : float, optional
            The largest effort that may be left unexplained, N m or N. Default: no limit; the
            residual is returned.

        Returns
        -------
        FrameWrench

        Raises
        ------
        InputError
            Before the first tick; for unknown frames and axes.
        SingularityError
            If the efforts do not determine the wrench; it names the axes.
        InconsistentError
            If more than `residual_limit` is left unexplained.
        """
        last, names = self._seen(), wrench_axes(axes)
        size = self.mech.per_thread("size of the tree", self._size)
        found = frame_wrench(self.mech, last, self._r, frame, names, size)
        if residual_limit is not None:
            most = positive("residual_limit", residual_limit, "N m or N")
            if not (left := largest(found.residual)) <= most:
                at = int(np.argmax(np.abs(found.residual)))
                raise InconsistentError(
                    f"{self.mech.name}: a wrench along {listing(names)} at {_quoted(frame)} leaves "
                    f"{left:.3g} N m or N of the effort along {self.coordinates[at]!r} unexplained "
                    f"(residual_limit = {most:g}): other efforts act too, or at another frame",
                    residual=left,
                )
        return found

    # --------------------------------------------------------------------------- outside a loop

    @quiet
    def noise(self, rate_noise: Any) -> Vector:
        """Standard deviations of `efforts` by those of the rates, at the state of the last tick.

        For thresholds: a few standard deviations bound the noise of `efforts`, without errors of
        the model. The noise is assumed independent from tick to tick, and from motion to motion;
        that of all other rates follows by the constraints, as if estimated from the motors.

        Parameters
        ----------
        rate_noise : float or (k,) array_like
            Standard deviations of the rates of `coordinates`, rad/s or m/s; at least zero.

        Returns
        -------
        (k,) array
            N m or N.

        Raises
        ------
        InputError
            Before the first tick; for a wrong shape, or numbers that are below zero or not finite.
        """
        last = self._seen()
        k = self.gain.size
        x = numbers("rate_noise", rate_noise, "rad/s or m/s")
        x = vector("rate_noise", np.full(k, x) if x.ndim == 0 else x, k, "rad/s or m/s")
        if (x < 0.0).any():
            raise InputError(f"rate_noise must not be negative; got {str(rate_noise)[:60]}")
        W = last.gamma.T.dot(last.M.dot(last.gamma))
        # of (1, -a, -a b, -a b^2, ...) with b = exp(-K h), a = 1 - b: the root of the squares' sum
        a = self._usual[1]
        passed = a / self.dt * np.sqrt(2.0 / (2.0 - a))
        spread: Vector = passed * np.sqrt((W * W).dot(x * x))
        return spread

    @quiet
    def reset(self, q: Any, v: Any, t: float = 0.0, *, efforts: Any = None) -> None:
        """Start at a state without history: the next tick begins here.

        `estimator`, if it has been made, is reset to the configuration too.

        Parameters
        ----------
        q, v : (nq,) and (nv,) array_like
            Configuration; velocity, rad/s or m/s.
        t : float, optional
            Time, s.
        efforts : (k,) array_like, optional
            The initial estimate `efforts`, N m or N. Default: zero.

        Raises
        ------
        InputError, InconsistentError, SingularityError
            As `update`; the observer is unchanged then.
        BranchError
            As `ClosedStateEstimator.reset`.
        """
        self._check_free()
        q, v, t = state_in_a_tick(self.mech, q, v, t)
        r = np.zeros(self.gain.size)
        if efforts is not None:
            r = vector("efforts", efforts, r.size, "efforts on the motions")
        start = self._at(q, v, t)
        self._check_range(start)
        if self._estimator is not None:
            self._estimator.reset(q, t)
        self._last, self._r, self.t = start, r, t
        self._missed, self._gap, self._turned = 0.0, _NO_GAP, False

    @quiet
    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> MomentumObserver:
        """This observer, or one with other rows or coordinates if the partition is ill-conditioned.

        For use between two ticks of a loop, as `ComputedTorque.repartitioned`. The other observer
        continues from the memory of this one; its `coordinates` may differ.

        Parameters
        ----------
        q, v, t
            State, as in `update`.

        Returns
        -------
        MomentumObserver
            This one if no change is needed. After a `SingularityError` of `update` always another
            one.

        Raises
        ------
        InputError
            For wrong shapes.
        SingularityError
            As `with_partition`.
        """
        mech, part = self.mech, self.partition
        q, v, t = state_in_a_tick(mech, q, v, t)
        found = repartitioned(mech, part, q, v, t)
        if found is part and self._turned:
            G = scaled_rows_at(mech, q, v, t).jacobian
            found = decided_anew(mech, part, G) if np.isfinite(G).all() else part
        return self.with_partition(found)

    @quiet
    def with_partition(self, partition: Partition) -> MomentumObserver:
        """An observer by the coordinates of another partition, such as that of a controller.

        It continues from the last tick of this one, without a jump: the same efforts on the tree,
        by other motions, ``r = gamma' x`` for any x with ``r_before = gamma_before' x``.

        Parameters
        ----------
        partition : Partition
            A partition of the same mechanism.

        Returns
        -------
        MomentumObserver
            This one if the partition is its own.

        Raises
        ------
        InputError
            For a partition of another mechanism.
        SingularityError
            If its coordinates do not determine the others at the last state.
        """
        if partition is self.partition:
            return self
        self._check_free()
        check_partition(self.mech, partition)
        check_tolerance(self.mech.name, self.limits, partition.tolerance)
        of_old = dict(zip(self.partition.independent.tolist(), self.gain.tolist(), strict=True))
        gain = [of_old.get(i) for i in partition.independent.tolist()]
        least = min((x for i, x in of_old.items() if i in partition.dependent), default=0.0)
        other = object.__new__(MomentumObserver)
        other.__dict__.update(self.__dict__)
        other._turned = False
        other._prepared(partition, np.array([least if x is None else x for x in gain]))
        if self._last is not None:
            last = other._at(self._last.q, self._last.v, self._last.t)
            other._last = last
            # gamma_before has the identity at its coordinates, so x may act on these alone
            other._r = last.gamma[self.partition.independent].T.dot(self._r)
        else:
            other._r = np.zeros(other.gain.size)
        return other

    # ------------------------------------------------------------------------------- internals

    def _prepared(self, part: Partition, gain: Vector) -> None:
        """Set the quantities of a partition, with the workspace of this loop."""
        self.partition, self.gain = part, read_only(gain)
        self.coordinates = tuple(self.mech.coordinate_names[i] for i in part.independent)
        self._at = reduced_motion(self.mech, part, self.limits)
        self._usual = self.dt, -np.expm1(-gain * self.dt)
        c = self.mech.column_scale
        self._scale = c[part.independent] / c[:, None]

    def _seen(self) -> ReducedMotion:
        if self._last is None:
            raise InputError(f"{self.mech.name}: nothing is observed before the first tick")
        return self._last

    def _check_free(self) -> None:
        if self._busy:
            raise InputError(
                "called while another call was under way, from another thread or a signal "
                "handler: a MomentumObserver belongs to one loop"
            )

    def _clock(self, t: Any, dt: Any) -> tuple[float, float]:
        """The time now, and the time since the last tick that is remembered, s."""
        if t is None:
            h = self._missed + (self.dt if dt is None else positive("dt", dt, "s"))
            return (self.t + h, h) if self._last is not None else (self.t, h)
        if dt is not None:
            raise InputError("give the time t or the tick dt, not both")
        now = number("t", t, "time, s")
        if self._last is None:
            return now, self.dt
        h = now - self.t
        if not h > 0.0:
            raise InputError(
                f"t must increase from tick to tick: the last one was at {self.t:.9g} s, this one "
                f"is at {now:.9g} s; call reset(q, v, t) to start again"
            )
        return now, h

    def _tick(
        self,
        found: Callable[[float], tuple[Vector, Vector]],
        u: Any,
        t: Any,
        dt: Any,
        efforts: Any,
        f_ext: Any,
    ) -> Vector:
        """One tick; `found` returns the state at its time."""
        self._check_free()
        self._busy = True
        try:
            now, h = self._clock(t, dt)
            try:
                gap = self._gap if h > self._gap.time else _NO_GAP
                acted = self._acted(u, efforts)
                at_last = (
                    None if f_ext is None or self._last is None else self._forces(self._last, f_ext)
                )
                if at_last is not None:
                    acted += at_last
                own = h - gap.time
                self._gap = _RefusedCalls(h, gap.impulse + own * acted)  # unless this call counts
                q, v = found(now)
                motion = self._at(q, v, now)
                if f_ext is not None:
                    there = self._forces(motion, f_ext)
                    acted += 0.0 if at_last is None else 0.5 * (there - at_last)
                if gap.time > 0.0:
                    acted = (gap.impulse + own * acted) / h
                return self._observed(motion, h, acted, gap)
            except BaseException:
                self._missed = h
                raise
        finally:
            self._busy = False

    def _acted(self, u: Any, efforts: Any) -> Vector:
        """(nv,): the known efforts of the tick, of the motors and others."""
        mech = self.mech
        u = as_given("u", u, mech.nu, "efforts of the motors")
        if not finite(u):
            vector("u", u, mech.nu, "efforts of the motors")
        acted: Vector = mech.B.dot(u)
        if efforts is not None:
            acted += vector("efforts", efforts, mech.nv, "efforts on the coordinates")
        return acted

    def _observed(self, now: ReducedMotion, h: float, acted: Vector, gap: _RefusedCalls) -> Vector:
        """The observer law; see the head of this module."""
        last, r = self._last, self._r
        if last is None:
            self._check_range(now)
        else:
            self._check_step(last, now, h)
            step = (0.5 / h) * (now.v - last.v)
            left = last.M.dot(step) + now.M.dot(step) - 0.5 * (last.w + now.w) - acted
            tau = 0.5 * (last.gamma + now.gamma).T.dot(left)
            self._tau = tau
            usual, part = self._usual
            r = r + (part if h == usual else -np.expm1(-self.gain * h)) * (tau - r)
            if not finite(r):
                self._gap = gap  # the efforts of this call are out of range, so they are discarded
                self._check_range(now)
                raise InputError(
                    f"{self.mech.name}: the efforts are not finite: u or dt is out of range"
                )
        self._last, self._r, self.t = now, r, now.t
        self._missed, self._gap, self._turned = 0.0, _NO_GAP, False
        return r.copy()

    def _forces(self, at: ReducedMotion, f_ext: Any) -> Vector:
        """``J' f`` (nv,) at a state."""
        kin = kinematics(self.mech.model, workspace(self.mech), at.q, at.v, at.t)
        return external_efforts(self.mech, kin, f_ext)

    def _check_range(self, found: ReducedMotion) -> None:
        """Raise `InputError` if a state, or its dynamics, is not finite."""
        if finite(found.w) and finite(found.gamma.reshape(-1)) and finite(found.M.reshape(-1)):
            return
        vector("q", found.q, self.mech.nq, "configuration")
        vector("v", found.v, self.mech.nv, "velocity")
        raise InputError(f"{self.mech.name}: q or v is out of range")

    def _check_step(self, last: ReducedMotion, now: ReducedMotion, h: float) -> None:
        """Check that the means of two states are accurate.

        Raises
        ------
        InputError
            If the rates do not lead from one state to the other.
        SingularityError
            If gamma differs too much between both.
        """
        mech = self.mech
        d = now.q - last.q if mech.nq == mech.nv else pin.difference(mech.model, last.q, now.q)
        d = (d - (0.5 * h) * (last.v + now.v)) / mech.column_scale
        if not largest(d) <= STEP_MISSED:
            self._check_up_to_turns(d, now, h)
        turned, usual = now.gamma - last.gamma, now.gamma + last.gamma
        turned *= self._scale
        usual *= self._scale
        flat, whole = turned.reshape(-1), usual.reshape(-1)
        if not 4.0 * flat.dot(flat) <= TURNED_TICK**2 * whole.dot(whole) < np.inf:
            self._turned = True
            raise SingularityError(
                f"{mech.name}: since the last tick, {h:.3g} s ago, the velocity ratios gamma of "
                f"the coordinates by {listing(self.coordinates, 6)} have changed by more than a "
                f"fraction of {TURNED_TICK:g}: these coordinates hardly determine the others here "
                "(a dead point), or ticks were missed; observer.repartitioned(q, v, t) chooses "
                "others",
                names=self.coordinates,
            )

    def _check_up_to_turns(self, d: Vector, now: ReducedMotion, h: float) -> None:
        """Raise `InputError` if the error d of a step is more than whole turns."""
        mech = self.mech
        d = np.where(np.isin(np.arange(mech.nv), mech.lengths[1]), d, wrapped(d))
        if not (error := largest(d)) <= STEP_MISSED:
            vector("q", now.q, mech.nq, "configuration")
            vector("v", now.v, mech.nv, "velocity")
            at = int(np.argmax(np.abs(d)))
            raise InputError(
                f"{mech.name}: {mech.coordinate_names[at]!r} is {error:.2g} (rad, or over the size "
                f"of its loop) from the position that its rates predict {h:.3g} s after the last "
                f"tick (at most {STEP_MISSED:g}): ticks may have been missed, or units mixed; call "
                "reset(q, v, t) to start again"
            )

    def _size(self) -> float:
        return sizes(self.mech.model, self.mech.reference, self.mech.bound)[0]


def _decided(mech: Mechanism) -> Partition:
    return partition(mech, assemble(mech)[0])


def _quoted(frame: Any) -> str:
    return repr(frame[0] if isinstance(frame, tuple) else frame)


def _gains(given: Any, part: Partition) -> Vector:
    """(k,) gains, 1/s."""
    x, k = numbers("gain", given, "1/s"), part.independent.size
    gains = np.full(k, number("gain", float(x), "1/s")) if x.ndim == 0 else vector("gain", x, k)
    if not (gains > 0.0).all():
        raise InputError(f"gain (1/s) must be above zero; got {str(given)[:60]}")
    return gains
