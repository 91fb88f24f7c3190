"""Inverse dynamics for a control loop: the public class.

Both paths, the fast one and the general one, are in dynamics/tick/inverse_with_fallback.py.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, as_given, instant, one_of, quiet, stored, vector
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.tolerances import CLOSURE_LIMIT, VELOCITY_LIMIT
from holoctl.closing.assembly import assemble
from holoctl.dynamics.actuation import effort_weights
from holoctl.dynamics.actuation_side import check_margin_of
from holoctl.dynamics.inverse import POLICIES
from holoctl.dynamics.tick.acceleration_task import AccelerationTask
from holoctl.dynamics.tick.inverse_tick import Options, why_general
from holoctl.dynamics.tick.inverse_with_fallback import EstimatedPaths, InversePaths
from holoctl.dynamics.tick.thread_workspace import prepared_now
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_motors, check_partition, partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.state_limits import StateLimits, check_tolerance, state_limits
from holoctl.rows.tick.user_rows import check_ticks

__all__ = ["PreparedInverseDynamics", "with_task"]


@dataclass(frozen=True, eq=False)
class PreparedInverseDynamics:
    """`inverse_dynamics` for a target of the motors, at the rate of a control loop.

    The same numbers to rounding, without certificate, multipliers and copies. Ill-conditioned
    states and invalid input take the general path, which is an order of magnitude slower and
    returns the exact result or raises an error that explains the cause.

    Parameters
    ----------
    mech : Mechanism
    partition : Partition, optional
        Default: determined at the configuration assembled from ``mech.reference``.
    weights : (nu,) array_like, optional
        For more motors than motions: the efforts of least ``sum w_i u_i^2``, w_i > 0.
    inconsistent : str, optional
        What to do with a target that the constraints do not allow: ``"raise"``, or ``"project"`` to
        the nearest one that they allow.
    closure_limit, velocity_limit : float or None, optional
        No torque is given if the closure or velocity error of the state is larger: `closure` and
        `velocity_residual` of the certificate, over all rows. None: no limit.
    margin : float, optional
        No torque is given if the smallest singular value of gamma' B, scaled, is below this number
        between 0 and 1: near a type-2 (actuation) singularity, where it is 0 and torques grow as
        one over it. For as many motors as motions, which drive all of them. Default: no margin.

    Attributes
    ----------
    limits : StateLimits
        These three.

    Raises
    ------
    InputError
        For a partition of another mechanism, weights of the wrong shape, an unknown word, limits
        that are not above zero, a margin that is not below 1 or not for this mechanism.
    NotActuatedError
        If the mechanism has no motors.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    See Also
    --------
    inverse_dynamics : with certificate and multipliers.
    ComputedTorque : adds feedback of the motors.
    compile : the same in machine code.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> prepared = hc.PreparedInverseDynamics(mech)
    >>> prepared.torque(q, v, np.zeros(2)).round(2).tolist()
    [-2.3, 2.3]
    """

    mech: Mechanism
    partition: Partition = None  # type: ignore[assignment]
    weights: Any = None
    inconsistent: str = "raise"
    closure_limit: float | None = CLOSURE_LIMIT
    velocity_limit: float | None = VELOCITY_LIMIT
    margin: float | None = None
    limits: StateLimits = field(init=False, repr=False)
    _paths: InversePaths = field(init=False, repr=False)
    _local: threading.local = field(init=False, repr=False, default_factory=threading.local)

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""
        mech = self.mech
        check_mechanism(mech)
        one_of("inconsistent", self.inconsistent, POLICIES)
        if mech.nu == 0:
            raise NotActuatedError(f"{mech.name} has no motors, so there are no torques")
        object.__setattr__(self, "weights", effort_weights(mech, self.weights))
        limits = state_limits(self.closure_limit, self.velocity_limit, self.margin)
        object.__setattr__(self, "limits", limits)
        if self.partition is None:
            object.__setattr__(self, "partition", partition(mech, assemble(mech)[0]))
        check_partition(mech, self.partition)
        check_motors(mech, self.partition)
        check_tolerance(mech.name, limits, self.partition.tolerance)
        if limits.margin is not None:
            check_margin_of(mech, self.partition)
        check_ticks(mech)
        options = Options(self.weights, self.inconsistent, limits)
        object.__setattr__(self, "_paths", InversePaths(mech, self.partition, options))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._paths.options.task is not None:
            raise InputError(
                f"{self.mech.name}: the inverse dynamics inside a law of tasks cannot be copied "
                "or pickled without it; copy or pickle the controller"
            )
        return PreparedInverseDynamics, (
            self.mech, self.partition, self.weights, self.inconsistent, self.closure_limit,
            self.velocity_limit, self.margin,
        )  # fmt: skip

    @property
    def general(self) -> str:
        """Why every tick takes the general path; empty if the fast one can be used.

        `holding` also takes the general path if some motion is passive.
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

        The first call in a thread prepares the workspaces of that thread.

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
            Known efforts on the coordinates in addition to those of the motors and of the
            mechanism's `forces`, such as external forces ``J' f``, N m or N.
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
            If the split or the actuation is singular, or nearly: from a tenth of the condition
            number that the certificate allows no torque is given. With a margin: if the smallest
            singular value of gamma' B is below it; then with `kind`, `value`, `q` and `motion`.
        InconsistentError
            If the state exceeds `closure_limit` or `velocity_limit`; if rows left out as redundant
            do not allow the motion at this state; if the constraints do not allow the target and
            ``inconsistent="raise"``.
        """
        mech = self.mech
        q, v, t = state_in_a_tick(mech, q, v, t)
        target = as_given("target", target, mech.nu)
        if efforts is not None:
            efforts = vector("efforts", efforts, mech.nv, "efforts on the coordinates")
        u = self._paths.efforts(target, None, q, v, t, efforts)
        return u if out is None else stored("out", out, u)

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
        """`torque` from measured motors only: state and torque in one tick.

        The state is that of a `ClosedStateEstimator` of this thread, which starts at the reference
        and raises its errors. For other sensors, or another start, use your own estimator, or a
        `ComputedTorque` with an ``estimator=``.

        Parameters
        ----------
        q_motors, v_motors : (nu,) array_like
            Positions, rad or m, and rates of the motors; before them those of a floating base.
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
            As `torque`; also for a general actuation matrix, whose motors have no positions, and if
            the motors do not determine the motion of the mechanism.
        BranchError, AssemblyError
            As `ClosedStateEstimator.state`.
        """
        mech = self.mech
        target, t = as_given("target", target, mech.nu), instant(t)
        loop = self._own_loop()
        q, v = loop.state(q_motors, v_motors, t)
        u = loop.efforts(target, None, q, v, t, None)
        return u if out is None else stored("out", out, u)

    def reset(self, q: Any, t: float = 0.0) -> None:
        """Set the configuration of the mechanism, for `torque_from_motors` in this thread.

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
        self._own_loop().estimator.reset(q, t)

    def _own_loop(self) -> EstimatedPaths:
        try:
            loop: EstimatedPaths = self._local.loop
        except AttributeError:
            estimator = ClosedStateEstimator(self.mech, partition=self.partition)
            loop = self._local.loop = EstimatedPaths(self._paths, estimator)
        return loop

    @quiet
    def holding(self, q: Any, t: float = 0.0, *, out: Vector | None = None) -> Vector:
        """The motor efforts that hold the mechanism at rest, as far as the motors can.

        If some motion is passive, this takes the slower general path.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration.
        t, out
            As in `torque`.

        Returns
        -------
        u : (nu,) array
            N m or N: with a = v = 0, ``gamma' B u = gamma' g(q)``; the part that no motor can
            balance is left out (see ``unbalanced`` of `inverse_dynamics`).

        Raises
        ------
        InputError, SingularityError, InconsistentError
            As `torque`.
        """
        q, v, t = state_in_a_tick(self.mech, q, np.zeros(self.mech.nv), t)
        u = self._paths.efforts(None, None, q, v, t, None)
        return u if out is None else stored("out", out, u)

    @quiet
    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> PreparedInverseDynamics:
        """This object, or one with a better partition if its own is ill-conditioned at a state.

        For use between two ticks of a loop: ``prepared = prepared.repartitioned(q, v)``. A
        partition is determined at one configuration; far from there its rows may become dependent,
        or its coordinates no longer determine the others, although the mechanism is as regular as
        before. On the constraints the torques before and after are the same; off them they differ
        by about the error of the state. It takes a bounded time: see docs/realtime.md.

        Parameters
        ----------
        q, v, t
            State, as in `torque`.

        Returns
        -------
        PreparedInverseDynamics
            Itself if nothing changes, if no choice is better, as close to a singular configuration,
            and if the state is not finite. Another one is prepared for this thread already; its
            weights, limits and other options are those of this one.

        Raises
        ------
        InputError
            For wrong shapes.
        """
        q, v, t = state_in_a_tick(self.mech, q, v, t)
        part = repartitioned(self.mech, self.partition, q, v, t)
        if part is self.partition:
            return self
        other = with_task(replace(self, partition=part), self._paths.options.task)
        prepared_now(other._paths.local, other._paths.prepared)
        return other


def with_task(
    prepared: PreparedInverseDynamics, task: AccelerationTask | None
) -> PreparedInverseDynamics:
    """Add a task to an object that was just made and is not in use yet; its targets are then
    requests of the task."""
    paths = prepared._paths
    paths = InversePaths(paths.mech, paths.partition, paths.options._replace(task=task))
    object.__setattr__(prepared, "_paths", paths)
    return prepared
