"""Forward dynamics for loops and simulations: the public class.

The fast path is dynamics/tick/forward_tick.py; the general one is used if its result is in doubt.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, as_given, finite, quiet, stored
from holoctl.closing.assembly import assemble
from holoctl.dynamics.tick.forward_tick import Response, Tick, prepare
from holoctl.dynamics.tick.inverse_by_projection import general_acceleration
from holoctl.dynamics.tick.thread_workspace import in_own_workspace, prepared_now
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_partition, partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.tick.fast_rows import why_not
from holoctl.rows.tick.user_rows import check_ticks

__all__ = ["PreparedForwardDynamics", "at_once", "with_other_efforts"]


@dataclass(frozen=True, eq=False)
class PreparedForwardDynamics:
    """The acceleration of `forward_dynamics`, at the rate of a control loop or of an integrator.

    The same numbers to rounding, without certificate and multipliers. Ill-conditioned states and
    invalid input take the general path, which is an order of magnitude slower.

    Parameters
    ----------
    mech : Mechanism
    partition : Partition, optional
        Default: determined at the configuration assembled from ``mech.reference``.

    Raises
    ------
    InputError
        For a partition of another mechanism.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    See Also
    --------
    forward_dynamics : with certificate and multipliers.
    simulate : integrates it.
    compile : the same in machine code.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> a = hc.PreparedForwardDynamics(mech).acceleration(q, v, np.zeros(4))
    >>> (mech.B.T @ a).round(1).tolist()
    [31.1, -31.1]
    """

    mech: Mechanism
    partition: Partition = None  # type: ignore[assignment]
    _local: threading.local = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""
        check_mechanism(self.mech)
        if self.partition is None:
            object.__setattr__(self, "partition", partition(self.mech, assemble(self.mech)[0]))
        check_partition(self.mech, self.partition)
        check_ticks(self.mech)
        object.__setattr__(self, "_local", threading.local())

    def __reduce__(self) -> tuple[Any, ...]:
        return PreparedForwardDynamics, (self.mech, self.partition)

    @property
    def general(self) -> str:
        """Why every call takes the general path; empty if the fast one can be used."""
        return why_not(self.mech)

    @quiet
    def acceleration(
        self, q: Any, v: Any, tau: Any, t: float = 0.0, *, out: Vector | None = None
    ) -> Vector:
        """The acceleration that efforts on the coordinates cause.

        The first call in a thread prepares the workspaces of that thread.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration; may be off the manifold, and is moved only by an explicit chart.
        v : (nv,) array_like
            Velocity, rad/s or m/s.
        tau : (nv,) array_like
            Efforts on the coordinates, N m or N; ``mech.B @ u`` for motors.
        t : float, optional
            Time, s, for constraints that depend on it.
        out : (nv,) array, optional
            Filled with the result; unchanged if an error is raised.

        Returns
        -------
        a : (nv,) array
            rad/s^2 or m/s^2: `out`, or a new array.

        Raises
        ------
        InputError
            For wrong shapes, or numbers that are not finite.
        SingularityError
            Where the split is singular, or a motion has no inertia.
        """
        tau = as_given("tau", tau, self.mech.nv)
        a, q, v, t = self._tick(q, v, tau, t)
        if not isinstance(a, np.ndarray) or not finite(a):
            a = general_acceleration(self.mech, self.partition, q, v, tau, t)
        return a if out is None else stored("out", out, a)

    @quiet
    def at(self, q: Any, v: Any, t: float = 0.0) -> Response:
        """The acceleration at one state for many efforts: all factors are computed once.

        Parameters
        ----------
        q, v, t
            As in `acceleration`.

        Returns
        -------
        function (tau) -> a
            tau and a of shape (nv,), as in `acceleration`. It owns its data: later calls at other
            states do not change it.

        Raises
        ------
        InputError
            For wrong shapes, or numbers that are not finite.
        SingularityError
            Where the split is singular, or a motion has no inertia.
        """
        response, q, v, t = self._tick(q, v, None, t)
        if response is not None and not isinstance(response, np.ndarray):
            return response
        mech, part = self.mech, self.partition
        # raises the errors of this state
        general_acceleration(mech, part, q, v, np.zeros(mech.nv), t)
        q, v = q.copy(), v.copy()
        return lambda tau: general_acceleration(mech, part, q, v, as_given("tau", tau, mech.nv), t)

    @quiet
    def repartitioned(self, q: Any, v: Any, t: float = 0.0) -> PreparedForwardDynamics:
        """This object, or one with a better partition if its own is ill-conditioned at a state.

        As `PreparedInverseDynamics.repartitioned`.

        Parameters
        ----------
        q, v, t
            State, as in `acceleration`.

        Returns
        -------
        PreparedForwardDynamics
            Itself if nothing changes.

        Raises
        ------
        InputError
            For wrong shapes.
        """
        q, v, t = state_in_a_tick(self.mech, q, v, t)
        part = repartitioned(self.mech, self.partition, q, v, t)
        if part is self.partition:
            return self
        other = replace(self, partition=part)
        # ticks of forward dynamics do not use the split
        if np.array_equal(part.rows, self.partition.rows):
            object.__setattr__(other, "_local", self._local)
        else:
            prepared_now(other._local, other._prepared_tick)
        return other

    def _tick(
        self, q: Any, v: Any, tau: Vector | None, t: Any
    ) -> tuple[Vector | Response | None, Vector, Vector, float]:
        """The result of the fast path, or None, and the checked state."""
        q, v, t = state_in_a_tick(self.mech, q, v, t)
        found = in_own_workspace(self._local, self._prepared_tick, q, v, tau, t)
        return found, q, v, t

    def _prepared_tick(self) -> Tick | None:
        return prepare(self.mech, self.partition)


def at_once(prepared: PreparedForwardDynamics) -> Callable[[Vector, Vector, Vector, float], Vector]:
    """`acceleration` for callers that have checked q, v, tau and t, and keep numpy quiet."""
    mech, local, prepare = prepared.mech, prepared._local, prepared._prepared_tick
    if mech.slides:
        # `acceleration` itself, whose fast path is chosen at each call
        return prepared.acceleration

    def acceleration(q: Vector, v: Vector, tau: Vector, t: float) -> Vector:
        a = in_own_workspace(local, prepare, q, v, tau, t)
        if a is None or not finite(a):
            return prepared.acceleration(q, v, tau, t)
        found: Vector = a
        return found

    return acceleration


def with_other_efforts(prepared: PreparedForwardDynamics, tau: Vector) -> Vector | None:
    """The acceleration for other efforts, at the state of the last call in this thread: one solve.

    None if the fast path did not answer that call, or the result is not finite. No other call may
    have used `prepared` in between.
    """
    a = in_own_workspace(prepared._local, prepared._prepared_tick, None, None, tau, 0.0)
    return a if isinstance(a, np.ndarray) and finite(a) else None
