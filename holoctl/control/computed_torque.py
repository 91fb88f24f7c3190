"""Computed torque: feedback cancellation with a PD reference law in actuator space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.assembly import assemble
from holoctl.checks import Vector, number, numbers, one_of, shaped, vector
from holoctl.dynamics.inverse import actuation, driven_acceleration, effort_weights
from holoctl.errors import InputError, NotActuatedError
from holoctl.mechanism import Mechanism, check_configuration, check_mechanism
from holoctl.open_tree import inverse_tree_dynamics
from holoctl.projector import Partition, check_partition, partition, projected

__all__ = ["ComputedTorque", "Controller", "Reference"]

Controller = Callable[[float, Vector, Vector], Vector]
"""controller(t, q, v) -> u, shape (nu,)."""

Reference = Callable[[float], tuple[Vector, Vector, Vector]]
"""reference(t) -> (q_ref, v_ref, a_ref) as `ComputedTorque.torque` takes them."""

COMPENSATIONS = ("full", "gravity")


@dataclass(frozen=True, eq=False)
class ComputedTorque:
    """PD plus feedforward in the actuated coordinates, through the inverse dynamics.

    With B' a the motor accelerations and e = q_ref - q_motors,

        a_cmd = a_ref + kd (v_ref - B' v) + kp e
        gamma' B u = gamma' (M a + h)        with B' a = a_cmd

    so that a perfect model leaves ``e'' + kd e' + kp e = 0``. ``compensation="gravity"`` is
    the simpler law ``u = u_gravity(q) + kd (v_ref - B' v) + kp e``, with gains in N m/rad and
    N m s/rad; it needs no velocity in the model and ignores a_ref.

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

    Raises
    ------
    InputError
        For gains of the wrong shape or negative, an unknown compensation.
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

    def __post_init__(self) -> None:
        mech = self.mech
        check_mechanism(mech)
        if mech.nu == 0:
            raise NotActuatedError(f"{mech.name} has no motors to control")
        one_of("compensation", self.compensation, COMPENSATIONS)
        object.__setattr__(self, "kp", _gains("kp", self.kp, mech.nu))
        object.__setattr__(self, "kd", _gains("kd", self.kd, mech.nu))
        object.__setattr__(self, "weights", effort_weights(mech, self.weights))
        if self.partition is None:
            object.__setattr__(self, "partition", partition(mech, assemble(mech)[0]))
        else:
            check_partition(mech, self.partition)

    def torque(self, q: Any, v: Any, q_ref: Any, v_ref: Any, a_ref: Any, t: float = 0.0) -> Vector:
        """The motor efforts for one tick.

        Parameters
        ----------
        q : (nq,) array_like
            Measured configuration.
        v : (nv,) array_like
            Measured velocity, rad/s or m/s.
        q_ref : (nu,) or (nq,) array_like
            Positions of the actuated joints in the order of ``mech.actuated``, rad or m
            (continuous joints: wrapped to half a turn); or a whole configuration, then the
            error is ``B' difference(q, q_ref)``. Where nu = nq it is read as the former.
        v_ref, a_ref : (nu,) array_like
            Motor rates ``B' v`` and accelerations ``B' a`` to follow.
        t : float, optional
            Time, s, for constraints that depend on it.

        Returns
        -------
        u : (nu,) array
            N m or N, in the order of ``mech.actuated``.

        Raises
        ------
        InputError
            For wrong shapes, or input that is not finite.
        SingularityError
            Where the split or the actuation is singular; no torque is given there.
        """
        mech, nu, t = self.mech, self.mech.nu, number("t", t, "time, s")
        q, v = shaped("q", q, mech.nq), shaped("v", v, mech.nv)
        v_ref, a_ref = shaped("v_ref", v_ref, nu), shaped("a_ref", a_ref, nu)
        error = position_error(mech, q, numbers("q_ref", q_ref))
        command = self.kd * (v_ref - mech.B.T @ v) + self.kp * error
        if not np.isfinite(command.sum() + a_ref.sum() + q.sum() + v.sum()):
            raise InputError(_not_finite(q=q, v=v, q_ref=q_ref, v_ref=v_ref, a_ref=a_ref))
        if mech.nq != mech.nv:
            q = check_configuration(mech, q)
        if self.compensation == "gravity":
            u = self._holding(q, t) + command
        else:
            u = self._feedback_cancellation(q, v, a_ref + command, t)
        if not np.isfinite(u).all():
            raise InputError("the torque is not finite: an input or the model is out of range")
        return np.asarray(u)

    def _feedback_cancellation(self, q: Vector, v: Vector, command: Vector, t: float) -> Vector:
        """u with ``B' a = command`` for the acceleration a that it causes."""
        P = projected(self.mech, q, v, t, self.partition)
        act = actuation(P, self.weights)
        a = driven_acceleration(P, act, command, np.zeros(self.mech.nv), "project")
        return act.efforts(inverse_tree_dynamics(self.mech, P.q, P.v, a))

    def _holding(self, q: Vector, t: float) -> Vector:
        """u that holds the mechanism against gravity, as far as the motors can."""
        rest = np.zeros(self.mech.nv)
        P = projected(self.mech, q, rest, t, self.partition)
        return actuation(P, self.weights).efforts(inverse_tree_dynamics(self.mech, P.q, rest, rest))

    def track(self, reference: Reference) -> Controller:
        """A controller(t, q, v) -> u that follows reference(t) -> (q_ref, v_ref, a_ref)."""
        if not callable(reference):
            raise InputError(f"reference must be a function of time; got {reference!r}")

        def controller(t: float, q: Vector, v: Vector) -> Vector:
            wanted = reference(t)
            if not isinstance(wanted, (tuple, list)) or len(wanted) != 3:
                raise InputError(
                    "reference(t) must return (q_ref, v_ref, a_ref); got "
                    f"{type(wanted).__name__} {str(wanted)[:60]!r}"
                )
            return self.torque(q, v, *wanted, t=t)

        return controller


def position_error(mech: Mechanism, q: Vector, q_ref: NDArray[np.float64]) -> Vector:
    """e (nu,): from the motors' positions at q to q_ref, given for the motors or as a whole."""
    if q_ref.shape == (mech.nu,) and mech.actuated:
        e = np.empty(mech.nu)
        for i, motor in enumerate(mech.actuated):
            e[i] = _single_error(mech, motor, q, float(q_ref[i]))
        return e
    if q_ref.shape == (mech.nq,):
        if mech.nq != mech.nv:
            q_ref = check_configuration(mech, q_ref, "q_ref")
        d: Vector = pin.difference(mech.model, q, q_ref)
        return np.asarray(mech.B.T @ d)
    motors = f"({mech.nu},), motor positions, or " if mech.actuated else ""
    raise InputError(
        f"q_ref must have shape {motors}({mech.nq},), a configuration; got {q_ref.shape}"
    )


def _single_error(mech: Mechanism, motor: str, q: Vector, target: float) -> float:
    i = mech.coordinate_names.index(motor)
    joint = int(mech.joint_of[i])
    nq, nv, at = mech.model.nqs[joint], mech.model.nvs[joint], mech.model.idx_qs[joint]
    if nq == nv:
        return target - float(q[at + i - mech.model.idx_vs[joint]])
    if nv == 1:  # continuous: (cos, sin)
        d = target - float(np.arctan2(q[at + 1], q[at]))
        return float((d + np.pi) % (2.0 * np.pi) - np.pi)
    raise InputError(
        f"motor {motor!r} drives one coordinate of a {mech.model.joints[joint].shortname()}, "
        "which has no position of its own; give q_ref as a whole configuration, shape "
        f"({mech.nq},)"
    )


def _gains(name: str, value: Any, nu: int) -> Vector:
    given = numbers(name, value, "gains")
    gains = vector(name, np.full(nu, given) if given.ndim == 0 else given, nu, "gains")
    if (gains < 0.0).any():
        raise InputError(f"{name} must not be negative; got {gains}")
    gains.setflags(write=False)
    return gains


def _not_finite(**inputs: Any) -> str:
    bad = [name for name, x in inputs.items() if not np.isfinite(np.asarray(x, float)).all()]
    return f"{', '.join(bad) or 'the inputs'} must be finite, so no torque is given"
