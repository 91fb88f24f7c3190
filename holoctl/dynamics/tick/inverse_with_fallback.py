"""The efforts at a state by the fast path, or by the general one if the fast result is not finite.

The state is given by a caller, or is the last result of an estimator; in the second case the rows
and factors of the estimator are used for the efforts too.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from holoctl.base.checks import Vector, finite
from holoctl.base.errors import InputError
from holoctl.dynamics.tick.inverse_by_projection import general_efforts
from holoctl.dynamics.tick.inverse_tick import (
    InverseTick,
    LastSolve,
    Options,
    Tick,
    prepare,
    prepare_for_estimate,
)
from holoctl.dynamics.tick.thread_workspace import in_own_workspace
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.estimator_system import EstimatorSystem
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["EstimatedPaths", "InversePaths", "Paths", "check_rates"]


class Paths(Protocol):
    """The interface by which a controller computes efforts."""

    def efforts(
        self, target: Any, rates: Vector | None, q: Vector, v: Vector, t: float,
        known: Vector | None,
    ) -> Vector:  # fmt: skip
        """The motor efforts, as in `PreparedInverseDynamics`; without a target, those that hold at
        rest. `known` are other efforts on the coordinates. With rates of the motors, friction is
        evaluated at the motion with these rates."""
        ...

    def last(self) -> LastSolve | None:
        """Further results after the last efforts; None if the general path computed them."""
        ...


@dataclass(frozen=True, eq=False)
class InversePaths:
    """`Paths` at a checked state; each thread has its own tick."""

    mech: Mechanism
    partition: Partition
    options: Options
    local: threading.local = field(init=False, repr=False, default_factory=threading.local)

    def efforts(
        self, target: Any, rates: Vector | None, q: Vector, v: Vector, t: float,
        known: Vector | None,
    ) -> Vector:  # fmt: skip
        """See `Paths`."""
        local = self.local
        u = in_own_workspace(local, self.prepared, q, v, target, t, known, rates)
        if u is not None and finite(u):
            local.fast = True
            found: Vector = u
            return found
        local.fast = False
        return general_efforts(
            self.mech, self.partition, self.options, q, v, target, t, known, rates
        )

    def prepared(self) -> Tick | None:
        """A tick for this thread, if the fast path can be used."""
        found = prepare(self.mech, self.partition, self.options)
        self.local.last = found.last if found else None
        return found.tick if found else None

    def last(self) -> LastSolve | None:
        """See `Paths`."""
        found: LastSolve | None = self.local.last if self.local.fast else None
        return found


def check_rates(v_motors: Any) -> None:
    """Raise `InputError` for a torque requested without rates."""
    if v_motors is None:
        raise InputError(
            "v_motors must be given: without rates there is no damping. "
            "hc.RateFilter makes rates from positions"
        )


@dataclass(eq=False)
class EstimatedPaths:
    """`Paths` at the state of an estimator, for one loop.

    If the motors are both the measured and the independent coordinates, the last evaluated rows of
    the estimator and their factors are used for the torque too.

    Attributes
    ----------
    otherwise : InversePaths
    estimator : ClosedStateEstimator
        The estimator, which stores the last state.
    """

    otherwise: InversePaths
    estimator: ClosedStateEstimator
    _see: EstimatorSystem | None = field(init=False, default=None, repr=False)
    _own: InverseTick | None = field(init=False, default=None, repr=False)
    _shared: bool = field(init=False, default=False, repr=False)
    _at: Vector | None = field(init=False, default=None, repr=False)

    def state(self, q_measured: Any, v_measured: Any, t: float) -> tuple[Vector, Vector]:
        """The closed state, read-only; `efforts` is evaluated there.

        Raises
        ------
        InputError
            If rates are missing; else as `ClosedStateEstimator.state`.
        """
        check_rates(v_measured)
        self._at, v = self.estimator.state_in_place(q_measured, v_measured, t)
        return self._at, v

    def efforts(
        self, target: Any, rates: Vector | None, q: Vector, v: Vector, t: float,
        known: Vector | None,
    ) -> Vector:  # fmt: skip
        """See `Paths`; at the state of the last estimate."""
        see = self.estimator.system
        if see is not self._see:  # the first call, or rows were reselected
            self._see, self._own = see, self._prepared(see)
        own = self._own if q is self._at is self.estimator.place.q else None
        u = None if own is None else own.tick(q, v, target, t, known, rates)
        self._shared = u is not None and finite(u)
        if u is not None and self._shared:
            return u
        return self.otherwise.efforts(target, rates, q, v, t, known)

    def last(self) -> LastSolve | None:
        """See `Paths`."""
        return self._own.last if self._shared and self._own else self.otherwise.last()

    def _prepared(self, see: EstimatorSystem) -> InverseTick | None:
        """The tick that shares rows and factors with the estimator; None if nothing can be
        shared."""
        own, estimator = self.otherwise, self.estimator
        if not np.array_equal(estimator.partition.rows, own.partition.rows):
            return None
        given = own.mech, own.partition, see, estimator.readings
        return prepare_for_estimate(*given, own.options)
