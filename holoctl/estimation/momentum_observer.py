"""What pushes a closed chain, from its motion: a disturbance observer on generalised momentum.

    p = gamma' M v
    p' = gamma' (B u + F + Mdot v - h) + gammadot' M v + tau        tau: what is not known
    r = K (p - p0 - integral of all that is known, and of r)        so that  r' = K (tau - r)

Internal forces have no part in it, for gamma' G' = 0, also where rows depend on time. From one tick
to the next, with means of both ends, and u held:

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
from holoctl.base.renamed import formerly
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
"""Between two ticks of an observer a coordinate may move by so much more, or less, than its rates
at both say."""

TURNED_TICK = 0.25
"""And gamma changes by at most this part of itself, scaled: near a dead point of its coordinates
means of two ticks tell nothing."""


class _RefusedCalls(NamedTuple):
    """What acted in calls that were refused."""

    time: float  # s, since the last tick that is remembered
    impulse: Any  # (nv,) of the efforts that were told


_NO_GAP = _RefusedCalls(0.0, 0.0)


@formerly(estimator="assembly")
class MomentumObserver:
    """What pushes a mechanism beside what is known: efforts on its motions, and wrenches.

    A disturbance observer on generalised momentum, reduced to the motions that the constraints
    leave. It needs no acceleration: what it tells, `efforts`, follows what acts as a low-pass of
    first order does, ``r' = gain (tau - r)``; after a step it is there to 1 % within 4.6 / gain.

    Known, and no part of it, are the efforts u of the motors, inertia, rotors, weight, the forces
    of the mechanism (friction, springs), and what `update` is told. All else is: a push, a tool, a
    payload, and where the model is wrong, that. When it is a collision is for the caller to say.

    In motion the error is of second order in the tick, without noise and on an exact model; at rest
    there is none. Gains above ``1 / dt`` tell more noise and no more of the push; none is unstable.

    An object remembers where it is: one for each loop. It is neither copied nor pickled.

    Parameters
    ----------
    mech : Mechanism
    gain : float or (k,) array_like
        1/s, above zero: of all motions, or of each one of `partition`. Other coordinates that are
        taken on the way have the least of those that are left.
    partition : Partition, optional
        Its independent coordinates are those of the motions. Default: decided at the configuration
        assembled from ``mech.reference``.
    dt : float, optional
        s, from one tick to the next, where `update` is not told.
    estimator : ClosedStateEstimator, optional
        How the state is found by `update_from_motors`; another one is made of it, `fresh`. Default:
        the motors are measured, and the start is assembled from ``mech.reference``.
    closure_limit, velocity_limit : float or None, optional
        A state that is open, or slides, by more is refused: see `PreparedInverseDynamics`.

    Attributes
    ----------
    mech : Mechanism
    gain : (k,) array
    partition : Partition
    dt : float
    limits : StateLimits
    coordinates : tuple of str
        The independent coordinates: what the entries of `efforts` act along.
    t : float
        Time of the last tick, s.

    Raises
    ------
    InputError
        For gains, ticks or limits that are not above zero, and a partition of another mechanism.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

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
    >>> bool(abs(observer.update(q, v, u)).max() < 1e-9)  # held, and nobody pushes
    True
    >>> observer.wrench("tip", "x z").axes
    ('x', 'z')
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
        self._missed, self._gap, self._turned = 0.0, _NO_GAP, False

    def __repr__(self) -> str:
        told = listing(self.coordinates, 6)
        least, most = float(self.gain.min(initial=np.inf)), float(self.gain.max(initial=0.0))
        gain = f"{most:g}" if least >= most else f"{least:g} to {most:g}"
        return (
            f"<MomentumObserver of {self.mech.name}: gain {gain} 1/s, every {self.dt:g} s; "
            f"{counted(len(self.coordinates), 'motion')} of {told}, efforts up to "
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
        """The tick that ends now: the state that was reached, and what acted on the way there.

        u belongs to the tick that ends, not to the one that begins. In a loop that reads (q, v) and
        then commands u: ``update(q, v, u)`` with the u commanded in the round before, then the new
        one. They are the efforts that acted, so after limits of the drives; held from tick to tick.

        The first call, without `reset`, is a start: no tick ends there, and efforts are zero.

        After an error nothing of the call is remembered but its time, and what acted in it: the
        next one counts for both.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration now.
        v : (nv,) array_like
            Velocity now, rad/s or m/s. As it is read: rates that are late tell accelerations late.
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
            `efforts`, the attribute: N m or N on the motions, by `coordinates`.

        Raises
        ------
        InputError
            For wrong shapes, numbers that are not finite, a time that does not go on, and a state
            that the last one does not lead to in that time.
        InconsistentError
            Where the state is past its limits.
        SingularityError
            Where the coordinates of the motions hardly determine the others: `repartitioned` then
            takes other ones.
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
        """`update` where only the motors, or what `estimator` says, are measured.

        Where a controller finds the state already, as a `Loop` does, give that to `update` instead.

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
        """(k,): what acts on the motions and is not known, N m or N, by `coordinates`.

        The work of such an effort is that on the rate of its coordinate, all others following. An
        external wrench f at a frame has part ``gamma' J' f`` in it.
        """
        return self._r.copy()

    @property
    def estimator(self) -> ClosedStateEstimator:
        """How `update_from_motors` finds the state; it is made when first asked for, and begins at
        the last tick, if there was one."""
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

        It assumes that all that is not known acts at this frame and along these axes. Of more
        motions than axes the rest tells whether that is so: `residual` and `share` of the result.

        Parameters
        ----------
        frame : str or (str, pin.SE3)
            A frame, body or joint, or a placement in one.
        axes : str, optional
            Forces ``x y z`` and moments ``rx ry rz`` along the axes of the world, at the origin of
            the frame: the rows of a frame's velocity. At most as many as there are motions.
        residual_limit : float, optional
            N m or N: an error where some effort is left unexplained by more. Default: it is told.

        Returns
        -------
        FrameWrench

        Raises
        ------
        InputError
            Before the first tick; for unknown frames and axes.
        SingularityError
            Where the efforts do not determine the wrench; it names the axes.
        InconsistentError
            Where more than `residual_limit` is left.
        """
        last, names = self._seen(), wrench_axes(axes)
        size = self.mech.per_thread("size of the tree", self._size)
        found = frame_wrench(self.mech, last, self._r, frame, names, size)
        if residual_limit is not None:
            most = positive("residual_limit", residual_limit, "N m or N")
            if not (left := largest(found.residual)) <= most:
                at = int(np.argmax(np.abs(found.residual)))
                raise InconsistentError(
                    f"{self.mech.name}: a wrench along {listing(names)} at {_said(frame)} leaves "
                    f"{left:.3g} N m or N of the effort along {self.coordinates[at]!r} unexplained "
                    f"(residual_limit = {most:g}): something else acts, or elsewhere",
                    residual=left,
                )
        return found

    # ---------------------------------------------------------------------------- beside a loop

    @quiet
    def noise(self, rate_noise: Any) -> Vector:
        """Standard deviations of `efforts` by those of the rates, at the state of the last tick.

        For thresholds: what is not the model's fault is below some of these. The noise counts as
        independent from tick to tick, and from motion to motion; that of all other rates follows by
        the constraints, as where the state is found from the motors.

        Parameters
        ----------
        rate_noise : float or (k,) array_like
            Standard deviations of the rates of `coordinates`, rad/s or m/s; none below zero.

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
        """Start anew at a state: the next tick begins here.

        The estimator of `update_from_motors` is told the configuration too.

        Parameters
        ----------
        q, v : (nq,) and (nv,) array_like
            Configuration; velocity, rad/s or m/s.
        t : float, optional
            Time, s.
        efforts : (k,) array_like, optional
            What is taken to act already, N m or N. Default: nothing.

        Raises
        ------
        InputError, InconsistentError, SingularityError
            As `update`; nothing changes then.
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
        """This one, or where its partition is no longer good one with other rows or coordinates.

        For between two ticks of a loop, as `ComputedTorque.repartitioned`. The other one goes on
        from what this one remembers; `coordinates` may be others then.

        Parameters
        ----------
        q, v, t
            State, as in `update`.

        Returns
        -------
        MomentumObserver
            Itself where nothing is to be changed. After a `SingularityError` of `update` always
            another one.

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
        """One by the coordinates of another partition, such as that of a controller.

        It goes on from the last tick of this one, without a jump: the same efforts on the tree, by
        other motions, ``r = gamma' x`` for any x with ``r_before = gamma_before' x``.

        Parameters
        ----------
        partition : Partition
            Of the same mechanism.

        Returns
        -------
        MomentumObserver
            Itself for its own partition.

        Raises
        ------
        InputError
            For a partition of another mechanism.
        SingularityError
            Where its coordinates do not determine the others at the last state.
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

    # ----------------------------------------------------------------------------- behind them

    def _prepared(self, part: Partition, gain: Vector) -> None:
        """What belongs to a partition, and the workspace of this loop."""
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
        """Time now, and since the last tick that is remembered."""
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
                f"t must go on from tick to tick: the last one was at {self.t:.9g} s, this one is "
                f"at {now:.9g} s; reset(q, v, t) starts anew"
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
        """One tick, at the state that is found for its time."""
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
        """(nv,) what motors, and what else was told, did in the tick."""
        mech = self.mech
        u = as_given("u", u, mech.nu, "efforts of the motors")
        if not finite(u):
            vector("u", u, mech.nu, "efforts of the motors")
        acted: Vector = mech.B.dot(u)
        if efforts is not None:
            acted += vector("efforts", efforts, mech.nv, "efforts on the coordinates")
        return acted

    def _observed(self, now: ReducedMotion, h: float, acted: Vector, gap: _RefusedCalls) -> Vector:
        """The law; see the head of this module."""
        last, r = self._last, self._r
        if last is None:
            self._check_range(now)
        else:
            self._check_step(last, now, h)
            step = (0.5 / h) * (now.v - last.v)
            left = last.M.dot(step) + now.M.dot(step) - 0.5 * (last.w + now.w) - acted
            tau = 0.5 * (last.gamma + now.gamma).T.dot(left)
            usual, part = self._usual
            r = r + (part if h == usual else -np.expm1(-self.gain * h)) * (tau - r)
            if not finite(r):
                self._gap = gap  # whatever was told, it is nothing to go on from
                self._check_range(now)
                raise InputError(
                    f"{self.mech.name}: efforts beyond floats: u or dt is out of range"
                )
        self._last, self._r, self.t = now, r, now.t
        self._missed, self._gap, self._turned = 0.0, _NO_GAP, False
        return r.copy()

    def _forces(self, at: ReducedMotion, f_ext: Any) -> Vector:
        """``J' f`` (nv,) at a state."""
        kin = kinematics(self.mech.model, workspace(self.mech), at.q, at.v, at.t)
        return external_efforts(self.mech, kin, f_ext)

    def _check_range(self, found: ReducedMotion) -> None:
        """Raise `InputError` for a state that is not finite, or what is found there."""
        if finite(found.w) and finite(found.gamma.reshape(-1)) and finite(found.M.reshape(-1)):
            return
        vector("q", found.q, self.mech.nq, "configuration")
        vector("v", found.v, self.mech.nv, "velocity")
        raise InputError(f"{self.mech.name}: q or v is out of range")

    def _check_step(self, last: ReducedMotion, now: ReducedMotion, h: float) -> None:
        """Raise what means of two states would not show.

        Raises
        ------
        InputError
            Where the rates do not lead from one state to the other.
        SingularityError
            Where gamma is not the same, nearly, at both.
        """
        mech = self.mech
        d = now.q - last.q if mech.nq == mech.nv else pin.difference(mech.model, last.q, now.q)
        d = (d - (0.5 * h) * (last.v + now.v)) / mech.column_scale
        if not largest(d) <= STEP_MISSED:
            self._check_way(d, now, h)
        turned, usual = now.gamma - last.gamma, now.gamma + last.gamma
        turned *= self._scale
        usual *= self._scale
        flat, whole = turned.reshape(-1), usual.reshape(-1)
        if not 4.0 * flat.dot(flat) <= TURNED_TICK**2 * whole.dot(whole) < np.inf:
            self._turned = True
            raise SingularityError(
                f"{mech.name}: since the last tick, {h:.3g} s ago, the others have changed how "
                f"they follow {listing(self.coordinates, 6)} by more than {TURNED_TICK:g} of it: "
                "these do not determine them near here (a dead point), or ticks were missed; "
                "observer.repartitioned(q, v, t) takes others",
                names=self.coordinates,
            )

    def _check_way(self, d: Vector, now: ReducedMotion, h: float) -> None:
        """Raise `InputError` where more than whole turns is left of the way to a state."""
        mech = self.mech
        d = np.where(np.isin(np.arange(mech.nv), mech.lengths[1]), d, wrapped(d))
        if not (off := largest(d)) <= STEP_MISSED:
            vector("q", now.q, mech.nq, "configuration")
            vector("v", now.v, mech.nv, "velocity")
            at = int(np.argmax(np.abs(d)))
            raise InputError(
                f"{mech.name}: {mech.coordinate_names[at]!r} is {off:.2g} (rad, or over the size "
                f"of its loop) from where its rates lead in {h:.3g} s since the last tick (at "
                f"most {STEP_MISSED:g}): were ticks missed, or units mixed? reset(q, v, t) starts "
                "anew"
            )

    def _size(self) -> float:
        return sizes(self.mech.model, self.mech.reference, self.mech.bound)[0]


def _decided(mech: Mechanism) -> Partition:
    return partition(mech, assemble(mech)[0])


def _said(frame: Any) -> str:
    return repr(frame[0] if isinstance(frame, tuple) else frame)


def _gains(given: Any, part: Partition) -> Vector:
    """(k,) gains, 1/s."""
    x, k = numbers("gain", given, "1/s"), part.independent.size
    gains = np.full(k, number("gain", float(x), "1/s")) if x.ndim == 0 else vector("gain", x, k)
    if not (gains > 0.0).all():
        raise InputError(f"gain (1/s) must be above zero; got {str(given)[:60]}")
    return gains
