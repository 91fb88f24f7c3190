"""Computed torque: feedback cancellation with a PD reference law in actuator space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.angles import wrapped
from holoctl.base.checks import Vector, as_given, finite, numbers, one_of, quiet, stored, vector
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.tolerances import CLOSURE_LIMIT, VELOCITY_LIMIT
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics, answer
from holoctl.mechanism.checks import check_configuration, check_mechanism, state_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import position_reader
from holoctl.mechanism.open_tree import known_efforts
from holoctl.projector.partition import Partition
from holoctl.rows.closure_limits import NOT_GIVEN, NotGiven, StateLimits, state_limits

__all__ = ["ComputedTorque", "Controller", "Reference", "Tracking", "limits_of"]

Controller = Callable[[float, Vector, Vector], Vector]
"""controller(t, q, v) -> u, shape (nu,)."""

Reference = Callable[[float], tuple[Vector, Vector, Vector]]
"""reference(t) -> (q_ref, v_ref, a_ref) as `ComputedTorque.torque` takes them."""

COMPENSATIONS = ("full", "gravity")
FRICTION_AT = ("reference", "measured")


@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """PD plus feedforward in the actuated coordinates, through the inverse dynamics.

    With B' a the motor accelerations and e = q_ref - q_motors,

        a_cmd = a_ref + kd (v_ref - B' v) + kp e
        gamma' B u = gamma' (M a + h - F)        with B' a = a_cmd

    so that a perfect model leaves ``e'' + kd e' + kp e = 0``. ``compensation="gravity"`` is
    the simpler law ``u = u_gravity(q) + kd (v_ref - B' v) + kp e``, with gains in N m/rad and
    N m s/rad; it needs no velocity in the model and a_ref, which must be finite, has no part in it.
    Springs hold there too, friction has no part in it.

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
        Default: decided at the configuration assembled from ``mech.reference``.
    weights : (nu,) array_like, optional
        For more motors than motions: the efforts of least ``sum w_i u_i^2``, w_i > 0.
    closure_limit, velocity_limit : float or None, optional
        There is no torque where the state is open, or slides, by more: see
        `PreparedInverseDynamics`.
    friction_at : str, optional
        Where friction of the mechanism's `forces` is compensated: ``"reference"``, at the motion
        whose motors have the rates v_ref, while motions that no motor drives keep the momentum
        that is measured; or ``"measured"``, at v, which chatters where a Coulomb friction changes
        its side with the noise of a rate near zero. Springs and dampers are taken as measured in
        any case.

    Raises
    ------
    InputError
        For gains of the wrong shape or negative, an unknown compensation, limits that are not
        above zero.
    NotActuatedError
        If the mechanism has no motors.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    >>> q, v = hc.assemble(mech)
    >>> u = ctl.torque(q, v, q, [0.0, 0.0], [0.0, 0.0])
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
    _prepared: PreparedInverseDynamics = field(init=False, repr=False)
    _law: Callable[[Vector, Vector, Any, Vector], Vector] = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        mech = self.mech
        check_mechanism(mech)
        if mech.nu == 0:
            raise NotActuatedError(f"{mech.name} has no motors to control")
        one_of("compensation", self.compensation, COMPENSATIONS)
        one_of("friction_at", self.friction_at, FRICTION_AT)

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("kp", _gains("kp", self.kp, mech.nu))
        put("kd", _gains("kd", self.kd, mech.nu))
        prepared = PreparedInverseDynamics(
            mech, self.partition, self.weights, "project", self.closure_limit, self.velocity_limit
        )
        put("partition", prepared.partition)
        put("weights", prepared.weights)
        put("_prepared", prepared)
        put("_law", _law(mech, self.kp, self.kd))

    def __reduce__(self) -> tuple[Any, ...]:
        return ComputedTorque, (
            self.mech, self.kp, self.kd, self.compensation, self.partition, self.weights,
            self.closure_limit, self.velocity_limit, self.friction_at,
        )  # fmt: skip

    @quiet
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
        out: Vector | None = None,
    ) -> Vector:
        """The motor efforts for one tick.

        The first call in a thread lays out the workspaces of that thread; see
        `PreparedInverseDynamics` for what happens where a state is ill-conditioned.

        Parameters
        ----------
        q : (nq,) array_like
            Measured configuration.
        v : (nv,) array_like
            Measured velocity, rad/s or m/s.
        q_ref : (nu,) or (nq,) array_like
            Positions of the motors as ``mech.motor_positions(q)`` gives them, rad or m (the error
            of a continuous joint is wrapped to half a turn); or a whole configuration, then the
            error is ``B' difference(q, q_ref)``. Where nu = nq it is read as the former.
        v_ref, a_ref : (nu,) array_like
            Motor rates ``mech.motor_rates(v)`` and accelerations ``B' a`` to follow.
        t : float, optional
            Time, s, for constraints that depend on it.
        f_ext : mapping or pin.StdVec_Force, optional
            Known external forces, as `inverse_dynamics` takes them, to be compensated too.
        efforts : (nv,) array_like, optional
            Known efforts on the coordinates, N m or N, likewise.
        out : (nu,) array, optional
            Takes the result; left as it is where an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N, in the order of ``mech.actuated``: `out`, or a new array.

        Raises
        ------
        InputError
            For wrong shapes, or input that is not finite.
        SingularityError
            Where the split or the actuation is singular, or nearly; no torque is given there.
        InconsistentError
            Where the state is past its limits, or rows left out as redundant do not allow the
            motion.
        """
        mech = self.mech
        v_ref, a_ref = as_given("v_ref", v_ref, mech.nu), as_given("a_ref", a_ref, mech.nu)
        try:
            q, v, t = state_in_a_tick(mech, q, v, t)
            known = None
            if f_ext is not None or efforts is not None:
                known = known_efforts(mech, q, v, t, f_ext, efforts)
            command = self._law(q, v, q_ref, v_ref)
            if self.compensation == "full":
                rates = v_ref if self.friction_at == "reference" else None
                return answer(self._prepared, q, v, a_ref + command, t, known, out, rates)
            u = answer(self._prepared, q, v, None, t, known, None) + command
            if not (finite(u) and finite(a_ref)):  # all inputs, as on the other paths
                raise InputError("the torque is not finite")
        except InputError:
            _check_finite(q=q, v=v, q_ref=q_ref, v_ref=v_ref, a_ref=a_ref)
            raise
        return u if out is None else stored("out", out, u)

    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> ComputedTorque:
        """This controller, or where its partition is no longer good one with other rows or
        coordinates.

        For between two ticks of a loop, ``ctl = ctl.repartitioned(q, v)``; never needed for less
        than a long motion. See `PreparedInverseDynamics.repartitioned`.

        Parameters
        ----------
        q, v, t
            State, as in `torque`.

        Returns
        -------
        ComputedTorque
            Itself where nothing is to be changed.

        Raises
        ------
        InputError
            For wrong shapes.
        """
        prepared = self._prepared.repartitioned(q, v, t)
        if prepared is self._prepared:
            return self
        other = replace(self, partition=prepared.partition)
        object.__setattr__(other, "_prepared", prepared)  # which is laid out
        return other

    def track(self, reference: Reference) -> Tracking:
        """A controller(t, q, v) -> u that follows reference(t) -> (q_ref, v_ref, a_ref)."""
        return Tracking(self, reference)


@dataclass(frozen=True, eq=False)
class Tracking:
    """A controller(t, q, v) -> u that follows a reference: `ComputedTorque.track` makes one.

    Parameters
    ----------
    controller : ComputedTorque
    reference : function
        ``reference(t)``: (q_ref, v_ref, a_ref) as `ComputedTorque.torque` takes them.

    Raises
    ------
    InputError
        For what is no controller, or no function.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> home, rest = mech.motor_positions(q), np.zeros(2)
    >>> hold = hc.ComputedTorque(mech, kp=400.0, kd=40.0).track(lambda t: (home, rest, rest))
    >>> hold = hold.repartitioned(q, v)
    >>> u = hold(0.0, q, v)
    """

    controller: ComputedTorque
    reference: Reference

    def __post_init__(self) -> None:
        if not isinstance(self.controller, ComputedTorque):
            raise InputError(
                f"controller must be a ComputedTorque; got {type(self.controller).__name__}"
            )
        if not callable(self.reference):
            raise InputError(f"reference must be a function of time; got {self.reference!r}")

    def __call__(self, t: float, q: Vector, v: Vector) -> Vector:
        """The motor efforts u at the time t, s, in the state (q, v)."""
        wanted = self.reference(t)
        if not isinstance(wanted, (tuple, list)) or len(wanted) != 3:
            raise InputError(
                "reference(t) must return (q_ref, v_ref, a_ref); got "
                f"{type(wanted).__name__} {str(wanted)[:60]!r}"
            )
        return self.controller.torque(q, v, *wanted, t=t)

    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> Tracking:
        """This one, or one of the same reference with `ComputedTorque.repartitioned`."""
        controller = self.controller.repartitioned(q, v, t)
        return self if controller is self.controller else replace(self, controller=controller)


def limits_of(
    controller: ComputedTorque | None,
    closure_limit: float | NotGiven | None,
    velocity_limit: float | NotGiven | None,
) -> StateLimits:
    """The limits that are given, or the usual ones; beside a controller its own, and no others."""
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
    return StateLimits(controller.closure_limit, controller.velocity_limit)


def _law(
    mech: Mechanism, kp: Vector, kd: Vector
) -> Callable[[Vector, Vector, Any, Vector], Vector]:
    """A function (q, v, q_ref, v_ref): the reference law, ``kp e + kd (v_ref - B' v)``."""
    error_of = _position_error(mech)
    if not mech.actuated:
        BT = np.ascontiguousarray(mech.B.T)
        return lambda q, v, q_ref, v_ref: kp * error_of(q, q_ref) + kd * (v_ref - BT.dot(v))
    motors = np.argmax(mech.B, axis=0)  # B selects
    places = mech.motors
    if places.turning.size:
        return lambda q, v, q_ref, v_ref: kp * error_of(q, q_ref) + kd * (v_ref - v.take(motors))
    at, nu, for_motors = position_reader(places), mech.nu, (mech.nu,)

    def law(q: Vector, v: Vector, q_ref: Any, v_ref: Vector) -> Vector:
        if type(q_ref) is np.ndarray and q_ref.shape == for_motors:  # one call less
            e = as_given("q_ref", q_ref, nu) - at(q)
        else:
            e = error_of(q, q_ref)
        command: Vector = kp * e + kd * (v_ref - v.take(motors))
        return command

    return law


def _position_error(mech: Mechanism) -> Callable[[Vector, Any], Vector]:
    """A function (q, q_ref) that gives e (nu,), from the motors' positions at q to q_ref."""
    nu, places = mech.nu, mech.motors
    at, turning = position_reader(places), places.turning
    for_motors = (nu,) if mech.actuated else None

    def error_of(q: Vector, q_ref: Any) -> Vector:
        wanted = q_ref if type(q_ref) is np.ndarray else np.asarray(numbers("q_ref", q_ref))
        if wanted.shape == for_motors:
            if places.missing:
                raise InputError(
                    f"motor {places.missing}, which has no position of its own; give q_ref as a "
                    f"whole configuration, shape ({mech.nq},)"
                )
            e: Vector = as_given("q_ref", wanted, nu) - at(q)
            if turning.size:  # the shorter way round
                e[turning] = wrapped(e[turning])
            return e
        if wanted.shape == (mech.nq,):
            if mech.nq != mech.nv:
                wanted = check_configuration(mech, wanted, "q_ref")
            difference: Vector = pin.difference(mech.model, q, numbers("q_ref", wanted))
            whole: Vector = mech.B.T.dot(difference)
            return whole
        motors = f"({nu},), motor positions, or " if for_motors else ""
        raise InputError(
            f"q_ref must have shape {motors}({mech.nq},), a configuration; got {wanted.shape}"
        )

    return error_of


def _gains(name: str, value: Any, nu: int) -> Vector:
    given = numbers(name, value, "gains")
    gains = vector(name, np.full(nu, given) if given.ndim == 0 else given, nu, "gains")
    if (gains < 0.0).any():
        raise InputError(f"{name} must not be negative; got {gains}")
    gains.setflags(write=False)
    return gains


def _check_finite(**inputs: Any) -> None:
    """Name the inputs that are not finite, if any is; what is no array has its own error."""
    bad = []
    for name, x in inputs.items():
        try:
            numbers_of_x = numbers(name, x)
        except InputError:
            continue
        if not np.isfinite(numbers_of_x).all():
            bad.append(name)
    if bad:
        raise InputError(f"{', '.join(bad)} must be finite, so no torque is given") from None
