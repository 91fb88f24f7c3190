"""Efforts behind an estimate: state and torque in one tick of one loop, rows and factors shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holoctl.base.checks import Vector, finite, stored
from holoctl.base.errors import InputError
from holoctl.dynamics.tick.inverse_tick import Behind, LaidOut
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.estimator_system import EstimatorSystem

__all__ = ["Answer", "SensedDynamics", "check_rates"]

Answer = Callable[[Vector, Vector, Any, float, Vector | None, Vector | None], Vector]
"""answer(q, v, target, t, rates, known) -> u, at any state."""


def check_rates(v_motors: Any) -> None:
    """Raise `InputError` where a torque is asked for without rates."""
    if v_motors is None:
        raise InputError(
            "v_motors must be given: without rates nothing damps. hc.RateFilter makes rates from "
            "positions"
        )


@dataclass(eq=False)
class SensedDynamics:
    """An estimate and the inverse dynamics behind it, for one loop.

    Where the motors are what is measured, and what is independent, the rows that the estimate
    evaluated last and their factors serve the torque too.

    Attributes
    ----------
    assembly : ClosedStateEstimator
        Remembers where the mechanism is.
    lay_out : function (see) -> LaidOut or None
        The tick that shares what the estimate has; None where nothing can be shared.
    answer : Answer
        Where it cannot, or where that tick has doubts.
    behind_answer : function () -> Behind or None
        What may be asked behind that answer.
    """

    assembly: ClosedStateEstimator
    lay_out: Callable[[EstimatorSystem], LaidOut | None]
    answer: Answer
    behind_answer: Callable[[], Behind | None]
    _see: EstimatorSystem | None = field(init=False, default=None, repr=False)
    _own: LaidOut | None = field(init=False, default=None, repr=False)
    _shared: bool = field(init=False, default=False, repr=False)
    _at: Vector | None = field(init=False, default=None, repr=False)

    def state(self, q_measured: Any, v_measured: Any, t: float) -> tuple[Vector, Vector]:
        """The closed state, not to be written to; `efforts` is for it.

        Raises
        ------
        InputError
            Without rates; else as `ClosedStateEstimator.state`.
        """
        check_rates(v_measured)
        self._at, v = self.assembly.state_in_place(q_measured, v_measured, t)
        return self._at, v

    def efforts(
        self, q: Vector, v: Vector, target: Any, t: float, out: Vector | None,
        rates: Vector | None = None, known: Vector | None = None,
    ) -> Vector:  # fmt: skip
        """The motor efforts at the state that was found last, as `PreparedInverseDynamics` has
        them; `known` are other efforts on the coordinates."""
        see = self.assembly.system
        if see is not self._see:  # the first time, or rows were decided anew
            self._see, self._own = see, self.lay_out(see)
        own = self._own if q is self._at is self.assembly.place.q else None
        u = None if own is None else own.tick(q, v, target, t, known, rates)
        if u is not None and finite(u):
            self._shared = True
        else:
            u, self._shared = self.answer(q, v, target, t, rates, known), False
        return u if out is None else stored("out", out, u)

    def behind(self) -> Behind | None:
        """What may be asked behind the last answer; None where only the general path had it."""
        return self._own.behind if self._shared and self._own else self.behind_answer()
