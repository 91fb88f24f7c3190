"""Inverse dynamics for a control loop: what users hold.

The fast path is dynamics/tick/inverse_tick.py. The general one, dynamics/tick/general_path.py,
gives the same numbers, and takes over wherever the fast one has doubts.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import (
    Vector,
    as_given,
    finite,
    instant,
    one_of,
    quiet,
    stored,
    vector,
)
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.tolerances import (
    CLOSURE_LIMIT,
    VELOCITY_LIMIT,
)
from holoctl.closing.assembly import assemble
from holoctl.dynamics.actuation import effort_weights
from holoctl.dynamics.inverse import POLICIES
from holoctl.dynamics.tick.aim import Aim
from holoctl.dynamics.tick.general_path import general_efforts
from holoctl.dynamics.tick.inverse_tick import (
    Behind,
    LaidOut,
    Tick,
    lay_out,
    lay_out_behind,
    why_general,
)
from holoctl.dynamics.tick.own_workspace import in_own_workspace, laid_out_now
from holoctl.dynamics.tick.sensed import SensedDynamics
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.estimator_system import EstimatorSystem
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_motors, check_partition, partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.closure_limits import StateLimits, check_tolerance, state_limits
from holoctl.rows.tick.other_rows import check_ticks

__all__ = ["PreparedInverseDynamics", "aimed", "answer", "behind", "has_tick", "sensed"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PreparedInverseDynamics:
    """`inverse_dynamics` for a target of the motors, at the rate of a control loop.

    The same numbers to rounding, and no certificate, multipliers or copies of anything. States
    that are ill-conditioned, or input that is not usable, go through the general path, which
    takes an order of magnitude longer and gives the exact answer or the error that explains.

    Parameters
    ----------
    mech : Mechanism
    partition : Partition, optional
        Default: decided at the configuration assembled from ``mech.reference``.
    weights : (nu,) array_like, optional
        For more motors than motions: the efforts of least ``sum w_i u_i^2``, w_i > 0.
    inconsistent : str, optional
        What to do with a target that the constraints do not allow: ``"raise"``, or
        ``"project"`` to the nearest one that they do.
    closure_limit, velocity_limit : float or None, optional
        There is no torque where the state is open, or slides along a row, by more than this:
        `closure` and `velocity` of the certificate, over all rows. None: by any amount.

    Attributes
    ----------
    limits : StateLimits
        These two.

    Raises
    ------
    InputError
        For a partition of another mechanism, weights of the wrong shape, an unknown word, limits
        that are not above zero.
    NotActuatedError
        If the mechanism has no motors.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> prepared = hc.PreparedInverseDynamics(mech)
    >>> u = np.zeros(mech.nu)
    >>> u is prepared.torque(q, v, np.zeros(2), out=u)
    True
    """

    mech: Mechanism
    partition: Partition = None  # type: ignore[assignment]
    weights: Any = None
    inconsistent: str = "raise"
    closure_limit: float | None = CLOSURE_LIMIT
    velocity_limit: float | None = VELOCITY_LIMIT
    limits: StateLimits = field(init=False, repr=False)
    _aim: Aim | None = field(init=False, repr=False, default=None)
    _local: threading.local = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        """Check what was given, once."""
        mech = self.mech
        check_mechanism(mech)
        one_of("inconsistent", self.inconsistent, POLICIES)
        if mech.nu == 0:
            raise NotActuatedError(f"{mech.name} has no motors, so there are no torques")
        object.__setattr__(self, "weights", effort_weights(mech, self.weights))
        limits = state_limits(self.closure_limit, self.velocity_limit)
        object.__setattr__(self, "limits", limits)
        if self.partition is None:
            object.__setattr__(self, "partition", partition(mech, assemble(mech)[0]))
        check_partition(mech, self.partition)
        check_motors(mech, self.partition)
        check_tolerance(mech.name, limits, self.partition.tolerance)
        check_ticks(mech)
        object.__setattr__(self, "_local", threading.local())

    def __reduce__(self) -> tuple[Any, ...]:
        if self._aim is not None:
            raise InputError(
                f"{self.mech.name}: the inverse dynamics inside a law of tasks are neither copied "
                "nor pickled without it; copy or pickle the controller"
            )
        return PreparedInverseDynamics, (
            self.mech, self.partition, self.weights, self.inconsistent, self.closure_limit,
            self.velocity_limit,
        )  # fmt: skip

    @property
    def general(self) -> str:
        """Why every tick goes through the general path; empty where the fast one serves.

        `holding` goes through the general path also where some motion is passive.
        """
        return why_general(self.mech, self.partition)

    @quiet
    def torque(
        self,
        q: Any,
        v: Any,
        target: Any,
        t: float = 0.0,
        *,
        efforts: Any = None,
        out: Vector | None = None,
    ) -> Vector:
        """The motor efforts that cause the accelerations `target` of the motors.

        The first call in a thread lays out the workspaces of that thread.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration; may be off the manifold, and is moved only by an explicit chart.
        v : (nv,) array_like
            Velocity, rad/s or m/s.
        target : (nu,) array_like
            Accelerations of the motors, ``B' a``, rad/s^2 or m/s^2.
        t : float, optional
            Time, s, for constraints that depend on it.
        efforts : (nv,) array_like, optional
            Known efforts on the coordinates besides the motors' and those of the mechanism's own
            `forces`, such as external forces ``J' f``, N m or N.
        out : (nu,) array, optional
            Takes the result; left as it is where an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N, in the order of ``mech.actuated``: `out`, or a new array.

        Raises
        ------
        InputError
            For wrong shapes, or numbers that are not finite.
        SingularityError
            Where the split or the actuation is singular, or nearly: condition numbers from a
            tenth of what the certificate tolerates; no torque is given there.
        InconsistentError
            If the state is past `closure_limit` or `velocity_limit`; if rows left out as
            redundant do not allow the motion at this state; if the constraints do not allow the
            target and ``inconsistent="raise"``.
        """
        mech = self.mech
        q, v, t = state_in_a_tick(mech, q, v, t)
        target = as_given("target", target, mech.nu)
        if efforts is not None:
            efforts = vector("efforts", efforts, mech.nv, "efforts on the coordinates")
        return answer(self, q, v, target, t, efforts, out)

    @quiet
    def torque_from_motors(
        self,
        q_motors: Any,
        v_motors: Any,
        target: Any,
        t: float = 0.0,
        *,
        out: Vector | None = None,
    ) -> Vector:
        """`torque` where only the motors are measured: state and torque in one tick.

        The state is that of a `ClosedStateEstimator` of this thread, which starts at the reference,
        with its errors. For other sensors, or another start, find the state by one of your own, or
        take a `ComputedTorque` with an ``assembly=``.

        Parameters
        ----------
        q_motors, v_motors : (nu,) array_like
            Positions, rad or m, and rates of the motors; in front of them those of a floating base.
        target : (nu,) array_like
            Accelerations of the motors, ``B' a``, rad/s^2 or m/s^2.
        t : float, optional
            Time, s.
        out : (nu,) array, optional
            Takes the result; left as it is where an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError
            As `torque`; also for a general actuation matrix, whose motors have no positions, and
            where the motors do not tell how the mechanism moves.
        BranchError, AssemblyError
            As `ClosedStateEstimator.state`.
        """
        mech = self.mech
        target, t = as_given("target", target, mech.nu), instant(t)
        loop = self._own_loop()
        q, v = loop.state(q_motors, v_motors, t)
        return loop.efforts(q, v, target, t, out)

    def reset(self, q: Any, t: float = 0.0) -> None:
        """Tell where the mechanism is, for `torque_from_motors` in this thread.

        Parameters
        ----------
        q : (nq,) array_like
            A closed configuration.
        t : float, optional
            Time, s.

        Raises
        ------
        InputError, InconsistentError, BranchError, SingularityError
            As `ClosedStateEstimator.reset`.
        """
        self._own_loop().assembly.reset(q, t)

    def _own_loop(self) -> SensedDynamics:
        try:
            loop: SensedDynamics = self._local.sensed
        except AttributeError:
            loop = self._local.sensed = sensed(
                self, ClosedStateEstimator(self.mech, partition=self.partition)
            )
        return loop

    @quiet
    def holding(self, q: Any, t: float = 0.0, *, out: Vector | None = None) -> Vector:
        """The motor efforts that hold the mechanism at rest, as far as the motors can.

        Where some motion is passive this takes the general path, at its cost.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration.
        t, out
            As in `torque`.

        Returns
        -------
        u : (nu,) array
            N m or N: with a = v = 0, ``gamma' B u = gamma' g(q)``; what no motor can balance
            is left out (see ``unbalanced`` of `inverse_dynamics`).

        Raises
        ------
        InputError, SingularityError, InconsistentError
            As `torque`.
        """
        q, v, t = state_in_a_tick(self.mech, q, np.zeros(self.mech.nv), t)
        return answer(self, q, v, None, t, None, out)

    @quiet
    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> PreparedInverseDynamics:
        """This one, or where its partition is no longer good one with other rows or coordinates.

        For between two ticks of a loop: ``prepared = prepared.repartitioned(q, v)``. A partition is
        decided at one configuration; far from there its rows may get dependent, or its coordinates
        determine the others no longer, although the mechanism is as regular as before. The torques
        are the same before and after, on the constraints; beside them they differ by about as
        much as the state is off. It takes a bounded time: see docs/realtime.md.

        Parameters
        ----------
        q, v, t
            State, as in `torque`.

        Returns
        -------
        PreparedInverseDynamics
            Itself where nothing is to be changed, where nothing would be better, as close to a
            singular configuration, and where the state is not finite. Another one is laid out for
            this thread already; its weights, limits and the rest are those of this one.

        Raises
        ------
        InputError
            For wrong shapes.
        """
        q, v, t = state_in_a_tick(self.mech, q, v, t)
        part = repartitioned(self.mech, self.partition, q, v, t)
        if part is self.partition:
            return self
        other = aimed(replace(self, partition=part), self._aim)
        laid_out_now(other._local, other._laid_out)
        return other

    def _laid_out(self) -> Tick | None:
        options = self.weights, self.inconsistent, self.limits, self._aim
        found = lay_out(self.mech, self.partition, *options)
        self._local.behind = found.behind if found else None
        return found.tick if found else None


def aimed(prepared: PreparedInverseDynamics, aim: Aim | None) -> PreparedInverseDynamics:
    """One that was just made, and is nobody's yet, with an aim: then targets are what that asks
    for."""
    object.__setattr__(prepared, "_aim", aim)
    return prepared


def answer(
    prepared: PreparedInverseDynamics, q: Vector, v: Vector, target: Any, t: float,
    efforts: Vector | None, out: Vector | None, rates: Vector | None = None,
) -> Vector:  # fmt: skip
    """The motor efforts of a state that was checked: by the fast path, or where that gives nothing
    finite by the general one. Without a target, those that hold still; with rates, of the motors,
    friction is that of the motion that has these."""
    mech, part = prepared.mech, prepared.partition
    local = prepared._local
    u = in_own_workspace(local, prepared._laid_out, q, v, target, t, efforts, rates)
    if not (fast := u is not None and finite(u)):
        u = general_efforts(
            mech, part, q, v, target, t, efforts, rates, weights=prepared.weights,
            inconsistent=prepared.inconsistent, limits=prepared.limits, aim=prepared._aim,
        )  # fmt: skip
    local.fast = fast
    return u if out is None else stored("out", out, u)


def has_tick(prepared: PreparedInverseDynamics) -> bool:
    """Whether a fast path serves, with the aim if there is one; it is laid out to see."""
    options = prepared.weights, prepared.inconsistent, prepared.limits, prepared._aim
    return lay_out(prepared.mech, prepared.partition, *options) is not None


def behind(prepared: PreparedInverseDynamics) -> Behind | None:
    """What may be asked behind the last answer in this thread; None where only the general path
    had it."""
    found: Behind | None = prepared._local.behind if prepared._local.fast else None
    return found


def sensed(prepared: PreparedInverseDynamics, assembly: ClosedStateEstimator) -> SensedDynamics:
    """An estimate with these inverse dynamics behind it, for one loop."""
    mech, part = prepared.mech, prepared.partition

    def shared(see: EstimatorSystem) -> LaidOut | None:
        if not np.array_equal(assembly.partition.rows, part.rows):
            return None
        options = prepared.weights, prepared.inconsistent
        return lay_out_behind(mech, part, *options, see, assembly.readings, prepared._aim)

    def otherwise(
        q: Vector, v: Vector, target: Any, t: float, rates: Vector | None, known: Vector | None
    ) -> Vector:
        return answer(prepared, q, v, target, t, known, None, rates)

    return SensedDynamics(assembly, shared, otherwise, lambda: behind(prepared))
