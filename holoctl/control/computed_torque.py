"""Computed torque: feedback cancellation with a PD reference law in actuator space."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import (
    Vector,
    as_given,
    finite,
    instant,
    numbers,
    one_of,
    positive,
    quiet,
    stored,
    vector,
)
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.renamed import former_names
from holoctl.base.tolerances import CLOSURE_LIMIT, VELOCITY_LIMIT
from holoctl.control.contact_paths import (
    ContactLimiting,
    ContactPaths,
    acting,
    contact_paths,
    motor_rows,
)
from holoctl.control.controller_limits import limits_law_of
from holoctl.control.limit_policies import LIMIT_POLICIES
from holoctl.control.limited_tick import LimitedTick, Limiting
from holoctl.control.loop import (
    LoopFunctions,
    estimator_of,
    hand_over,
    loop_of_thread,
    new_loop,
    reset,
    track,
    track_from_motors,
)
from holoctl.control.loop_memory import Memory, report_of
from holoctl.control.motor_feedback import FRICTION_AT, check_finite, motor_rates, position_error
from holoctl.dynamics.tick.inverse_with_fallback import EstimatedPaths, Paths
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator, check_estimator
from holoctl.laws.computed_torque import TorqueLaw, base, computed_torque, feedback
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import known_efforts
from holoctl.projector.partition import Partition
from holoctl.rows.state_limits import NOT_GIVEN, NotGiven, StateLimits, state_limits

__all__ = ["ComputedTorque", "Controller", "Reference", "check_memory", "state_limits_of"]

Controller = Callable[[float, Vector, Vector], Vector]
"""controller(t, q, v) -> u, shape (nu,)."""

Reference = Callable[[float], tuple[Vector, Vector, Vector]]
"""reference(t) -> (q_ref, v_ref, a_ref) as `ComputedTorque.torque` takes them."""

COMPENSATIONS = ("full", "gravity")


class MotorFeedback(NamedTuple):
    """The law of a controller in numbers, with the functions for its errors and motor rates;
    `rest` are zero accelerations (nu,)."""

    law: TorqueLaw
    error_of: Callable[[Vector, Any], Vector]
    rates_of: Callable[[Vector], Vector]
    rest: Vector


@former_names(estimator="assembly")
@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """PD plus feedforward in the actuated coordinates, through the inverse dynamics.

    With B' a the motor accelerations and e = q_ref - q_motors,

        a_cmd = a_ref + kd (v_ref - B' v) + kp e
        gamma' B u = gamma' (M a + h - F)        with B' a = a_cmd

    so that a perfect model leaves ``e'' + kd e' + kp e = 0``; loops may add the integral of e.
    If limits are given u is kept within them. ``compensation="gravity"`` is the simpler law
    ``u = u_gravity(q) + kd (v_ref - B' v) + kp e``, with gains in N m/rad and N m s/rad; it needs
    no velocity in the model. It compensates springs too, but not friction, and does not use a_ref,
    which must be finite.

    Motor accelerations that contradict each other (more motors than motions) are projected on
    the nearest possible ones; passive motions follow the dynamics.

    Parameters
    ----------
    mech : Mechanism
    kp, kd : float or (nu,) array_like
        Gains, 1/s^2 and 1/s ("full"), at least 0.
    compensation : str, optional
        ``"full"`` or ``"gravity"``.
    partition : Partition, optional
        Default: chosen at the configuration assembled from ``mech.reference``.
    weights : (nu,) array_like, optional
        For more motors than motions: the efforts minimise ``sum w_i u_i^2``, w_i > 0.
    closure_limit, velocity_limit : float or None, optional
        The largest closure error and velocity error of a state; beyond them no torque is given:
        see `PreparedInverseDynamics`.
    friction_at : str, optional
        The rates at which friction of the mechanism's `forces` is compensated: ``"reference"``, at
        the motion whose motors have the rates v_ref, while motions that no motor drives keep the
        measured momentum; or ``"measured"``, at v, which chatters if a Coulomb friction changes
        its sign with the noise of a rate near zero. Springs and dampers are always taken as
        measured.
    estimator : ClosedStateEstimator, optional
        The estimator of the state in `torque_from_motors`, if only some joints are measured. Each
        loop continues from a copy of its start. Default: the motors are measured, and the start is
        assembled from ``mech.reference``.
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits,
        also if the mechanism has some. Of motors and joints: see `limited_inverse_dynamics`.
        Efforts never exceed theirs.
    policy : str, optional
        What to do beyond a limit: ``"nearest"``, ``"scale"`` or ``"raise"``, as in
        `limited_inverse_dynamics`.
    ki : float or (nu,) array_like, optional
        Gain of the integral of e, 1/s^3 ("full") or N m/(rad s), at least 0: for loops and
        trackings, which have a memory. The integral of a motor at its limit is not increased; if a
        limit of a joint is active, or "scale" slows down, all integrals are held. Not for more
        motors than motions.
    dt : float, optional
        The tick, s: of the integral, and over which limits of joints are kept.
    margin : float, optional
        A tick in which the smallest singular value of gamma' B, scaled, is below this number, as
        near a type-2 (actuation) singularity, raises a `SingularityError`, as
        `PreparedInverseDynamics`. No slower motion helps there: gravity alone needs efforts that
        grow as one over it. `limits` bound the efforts. Default: no margin.
    contacts : UnilateralContact or list of UnilateralContact, optional
        What the mechanism, such as a robot with a floating base, stands on: forces of the ground
        stay in the friction cones, and efforts and joints within `limits`, as in
        `contact_inverse_dynamics`. With the policy "nearest" contacts slip where they cannot
        be kept. Friction of the mechanism is compensated at the measured rates, and `torque` needs
        the whole state. Default: no contacts.

    Raises
    ------
    InputError
        For gains of the wrong shape or negative, an unknown compensation or policy, limits that are
        not above zero or do not fit the mechanism.
    NotActuatedError
        If the mechanism has no motors.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    See Also
    --------
    gains_for : gains for a bandwidth, with the damping that remains.
    TaskSpaceControl : the same law in the coordinates of tasks.
    PreparedInverseDynamics : the feedforward part alone.
    simulate : a run under this controller.
    compile : the same law in machine code.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    >>> q, v = hc.assemble(mech)
    >>> ctl.torque(q, v, q, [0.0, 0.0], [0.0, 0.0]).round(2).tolist()
    [-2.3, 2.3]
    """

    mech: Mechanism
    kp: Any
    kd: Any
    compensation: str = "full"
    partition: Partition = None  # type: ignore[assignment]
    weights: Any = None
    closure_limit: float | None = CLOSURE_LIMIT
    velocity_limit: float | None = VELOCITY_LIMIT
    friction_at: str = "reference"
    estimator: ClosedStateEstimator | None = None
    limits: Limits | str | None = None
    policy: str = "nearest"
    ki: Any = 0.0
    dt: float = 1e-3
    margin: float | None = None
    contacts: Any = None
    _standing: ContactPaths | None = field(init=False, repr=False)
    _remembers: bool = field(init=False, repr=False)
    _limited: LimitedTick | None = field(init=False, repr=False)
    _prepared: PreparedInverseDynamics = field(init=False, repr=False)
    _law: MotorFeedback = field(init=False, repr=False)
    _local: threading.local = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""
        mech = self.mech
        check_mechanism(mech)
        if mech.nu == 0:
            raise NotActuatedError(f"{mech.name} has no motors to control")
        one_of("compensation", self.compensation, COMPENSATIONS)
        one_of("friction_at", self.friction_at, FRICTION_AT)
        one_of("policy", self.policy, LIMIT_POLICIES)

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("kp", _gains("kp", self.kp, mech.nu))
        put("kd", _gains("kd", self.kd, mech.nu))
        put("ki", _gains("ki", self.ki, mech.nu))
        put("_remembers", bool(self.ki.any()))
        put("dt", positive("dt", self.dt, "s"))
        prepared = PreparedInverseDynamics(
            mech, self.partition, self.weights, "project", self.closure_limit, self.velocity_limit,
            self.margin,
        )  # fmt: skip
        put("partition", prepared.partition)
        put("weights", prepared.weights)
        put("_prepared", prepared)
        gravity = self.compensation == "gravity"
        law = TorqueLaw(self.kp, self.kd, gravity, self.friction_at == "reference")
        put("_law", MotorFeedback(law, position_error(mech), motor_rates(mech), np.zeros(mech.nu)))
        check_integral(mech, prepared.partition, self.ki)
        put("_limited", None)
        limits = requested_limits(mech, self.limits, "ComputedTorque")
        put("limits", limits)
        put("_standing", None)
        if self.contacts is not None:
            put("_standing", contact_paths(self, prepared, motor_rows(mech)))
        elif limits is not None:
            kept = limits_law_of(mech, limits, self.policy, self.dt)
            put("_limited", LimitedTick(kept, self.partition))
        put("_local", threading.local())
        check_estimator(mech, self.estimator, "controller")

    def __reduce__(self) -> tuple[Any, ...]:
        return ComputedTorque, (
            self.mech, self.kp, self.kd, self.compensation, self.partition, self.weights,
            self.closure_limit, self.velocity_limit, self.friction_at, self.estimator, self.limits,
            self.policy, self.ki, self.dt, self.margin, self.contacts,
        )  # fmt: skip

    def torque(
        self,
        q: Any,
        v: Any,
        q_ref: Any,
        v_ref: Any,
        a_ref: Any,
        t: float = 0.0,
        *,
        f_ext: Any = None,
        efforts: Any = None,
        active: Any = None,
        out: Vector | None = None,
    ) -> Vector:
        """The motor efforts for one tick.

        The first call in a thread prepares the workspaces of that thread; see
        `PreparedInverseDynamics` for ill-conditioned states.

        Parameters
        ----------
        q : (nq,) array_like
            Measured configuration.
        v : (nv,) array_like
            Measured velocity, rad/s or m/s.
        q_ref : (nu,) or (nq,) array_like
            Positions of the motors as ``mech.motor_positions(q)`` gives them, rad or m (the error
            of a continuous joint is wrapped to half a turn); or a whole configuration, then the
            error is ``B' difference(q, q_ref)``. If nu = nq it is read as motor positions.
        v_ref, a_ref : (nu,) array_like
            Motor rates ``mech.motor_rates(v)`` and accelerations ``B' a`` to follow.
        t : float, optional
            Time, s, for constraints that depend on it.
        f_ext : mapping or pin.StdVec_Force, optional
            Known external forces, as `inverse_dynamics` takes them, to be compensated too.
        efforts : (nv,) array_like, optional
            Known efforts on the coordinates, N m or N, to be compensated too.
        active : str or sequence of str, optional
            The names of the contacts that act now. Default: all `contacts`.
        out : (nu,) array, optional
            Array for the result; unchanged if an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N, in the order of ``mech.actuated``: `out`, or a new array.

        Raises
        ------
        InputError
            For wrong shapes, or input that is not finite.
        SingularityError
            If the split or the actuation is singular, or nearly; no torque is given there.
        InconsistentError
            If the state is beyond its limits, or rows left out as redundant do not allow the
            motion.
        LimitError
            With the policy "raise", beyond one of `limits`.
        """
        if self._remembers:
            check_memory(self.ki)
        given = None, q, v, q_ref, v_ref, a_ref, t
        return self._at_state(*given, f_ext=f_ext, efforts=efforts, active=active, out=out)

    @quiet
    def _at_state(
        self, memory: Memory | None, q: Any, v: Any, q_ref: Any, v_ref: Any, a_ref: Any,
        t: float = 0.0, *, f_ext: Any = None, efforts: Any = None, active: Any = None,
        out: Vector | None = None,
    ) -> Vector:  # fmt: skip
        """`torque` with the memory of a loop."""
        mech, paths = self.mech, acting(self._standing, active) or self._prepared._paths
        v_ref, a_ref = as_given("v_ref", v_ref, mech.nu), as_given("a_ref", a_ref, mech.nu)
        try:
            q, v, t = state_in_a_tick(mech, q, v, t)
            known = None
            if f_ext is not None or efforts is not None:
                known = known_efforts(mech, q, v, t, f_ext, efforts)
            return self._torque(paths, memory, q, v, t, known, q_ref, v_ref, a_ref, out)
        except InputError:
            check_finite(q=q, v=v, q_ref=q_ref, v_ref=v_ref, a_ref=a_ref)
            raise

    @quiet
    def _at_estimate(
        self, found: EstimatedPaths, memory: Memory, q_motors: Any, v_motors: Any, q_ref: Any,
        v_ref: Any, a_ref: Any, t: float = 0.0, *, out: Vector | None = None,
    ) -> Vector:  # fmt: skip
        """`torque` if only some joints are measured."""
        nu, t = self.mech.nu, instant(t)
        v_ref, a_ref = as_given("v_ref", v_ref, nu), as_given("a_ref", a_ref, nu)
        q, v = found.state(q_motors, v_motors, t)
        try:
            return self._torque(found, memory, q, v, t, None, q_ref, v_ref, a_ref, out)
        except InputError:
            check_finite(q_ref=q_ref, v_ref=v_ref, a_ref=a_ref)
            raise

    def _torque(
        self, paths: Paths, memory: Memory | None, q: Vector, v: Vector, t: float,
        known: Vector | None, q_ref: Any, v_ref: Vector, a_ref: Vector, out: Vector | None,
    ) -> Vector:  # fmt: skip
        """The efforts of the law with its integral, within limits."""
        law, error_of, rates_of, rest = self._law
        e, integral = error_of(q, q_ref), None if memory is None else memory.integral
        found: Limiting | ContactLimiting | None = None
        c = feedback(law, e, v_ref - rates_of(v), integral)
        u: Vector = computed_torque(law, paths.efforts, c, v_ref, a_ref, q, v, t, known)
        # all inputs, as on the other paths; squares may overflow
        if law.gravity and not all(finite(x) or np.isfinite(x).all() for x in (u, a_ref)):
            raise InputError("the torque is not finite")
        limited = self._limited
        if limited is not None and not limited.within(u):
            u, found = limited.kept(u, paths, q, v, t, known, *base(law, v_ref, rest))
        elif isinstance(paths, ContactPaths):
            found = paths.limiting()
        u = u if out is None else stored("out", out, u)
        if memory is not None:  # no error can occur after this
            memory.last = found
            memory.note(q, t)
            memory.integrate(e)
        return u

    def torque_from_motors(
        self,
        q_motors: Any,
        v_motors: Any,
        q_ref: Any,
        v_ref: Any,
        a_ref: Any,
        t: float = 0.0,
        *,
        out: Vector | None = None,
    ) -> Vector:
        """`Loop.torque_from_motors` of the loop of this thread, which the first call makes.

        Parameters
        ----------
        q_motors, v_motors, q_ref, v_ref, a_ref, t, out
            As in `Loop.torque_from_motors`.

        Returns
        -------
        u : (nu,) array
            N m or N.

        Raises
        ------
        InputError, SingularityError, InconsistentError, BranchError, AssemblyError, LimitError
            As `Loop.torque_from_motors` and `loop`.
        """
        loop = loop_of_thread(self)
        return loop.torque_from_motors(q_motors, v_motors, q_ref, v_ref, a_ref, t, out=out)

    loop = new_loop
    track = track
    track_from_motors = track_from_motors
    reset = reset

    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> ComputedTorque:
        """This controller, or one with other rows or coordinates if its partition is
        ill-conditioned.

        For use between two ticks of a loop, ``ctl = ctl.repartitioned(q, v)``; only needed in long
        motions. See `PreparedInverseDynamics.repartitioned`.

        Parameters
        ----------
        q, v, t
            State, as in `torque`.

        Returns
        -------
        ComputedTorque
            This one if no change is needed.

        Raises
        ------
        InputError
            For wrong shapes.
        """
        prepared = self._prepared.repartitioned(q, v, t)
        if prepared is self._prepared:
            return self
        other = replace(self, partition=prepared.partition)
        object.__setattr__(other, "_prepared", prepared)  # has its workspaces
        hand_over(self, other)
        return other

    def _loop_functions(self, memory: Memory | None = None) -> LoopFunctions:
        """The functions that loops and trackings need."""
        ki, dt = self.ki, self.dt
        if memory is None or memory.dt != dt or not np.array_equal(memory.ki, ki):
            memory = Memory(ki, dt)
        memory.continue_sides(self.mech, self.partition)
        paths, given = self._prepared._paths, (self.mech, self.partition, self.estimator)
        return LoopFunctions(
            memory=memory,
            torque=partial(self._at_state, memory),
            torque_with_estimator=lambda found: partial(
                self._at_estimate, EstimatedPaths(paths, found), memory
            ),
            estimator=lambda before: estimator_of(*given, before, self.contacts),
            report=partial(report_of, self.mech, self.partition, memory),
            spread=_spread,
        )


def _spread(wanted: Any) -> tuple[Any, Any, Any]:
    """The three arguments of `torque` that a reference returns."""
    if not isinstance(wanted, (tuple, list)) or len(wanted) != 3:
        raise InputError(
            "reference(t) must return (q_ref, v_ref, a_ref); got "
            f"{type(wanted).__name__} {str(wanted)[:60]!r}"
        )
    return wanted[0], wanted[1], wanted[2]


def state_limits_of(
    controller: ComputedTorque | None,
    closure_limit: float | NotGiven | None,
    velocity_limit: float | NotGiven | None,
) -> StateLimits:
    """The given limits of a state, or the default ones; with a controller only its own."""
    if controller is None:
        return state_limits(
            CLOSURE_LIMIT if closure_limit is NOT_GIVEN else closure_limit,
            VELOCITY_LIMIT if velocity_limit is NOT_GIVEN else velocity_limit,
        )
    if closure_limit is not NOT_GIVEN or velocity_limit is not NOT_GIVEN:
        raise InputError(
            "a controller brings its own closure_limit and velocity_limit; give them to "
            "hc.ComputedTorque"
        )
    return StateLimits(controller.closure_limit, controller.velocity_limit, controller.margin)


def check_memory(ki: Vector) -> None:
    """Raise `InputError` for a torque with an integral but without a memory."""
    if ki.any():
        raise InputError(
            "the integral action ki remembers from tick to tick, which torque does not: take a "
            "loop, ctl.loop(), or what ctl.track(reference) makes"
        )


def check_integral(mech: Mechanism, part: Partition, ki: Vector) -> None:
    """Raise `InputError` for an integral with redundant motors: contradicting errors, which no
    motion can reduce, would be integrated without bound."""
    if ki.any() and part.actuation_rank < mech.nu:
        raise InputError(
            f"{mech.name}: ki is not for redundant motors: its {mech.nu} drive "
            f"{part.actuation_rank} independent motions, so the errors of their sensors contradict "
            "each other, and their integral grows without bound; integrate in the reference"
        )


def _gains(name: str, value: Any, nu: int) -> Vector:
    given = numbers(name, value, "gains")
    gains = vector(name, np.full(nu, given) if given.ndim == 0 else given, nu, "gains")
    if (gains < 0.0).any():
        raise InputError(f"{name} must not be negative; got {gains}")
    gains.setflags(write=False)
    return gains
