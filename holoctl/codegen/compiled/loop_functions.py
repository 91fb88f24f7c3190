"""The functions of a compiled controller for loops and trackings: its tick in machine code, and the
controller in Python, which shares its memory.

Machine code does not report active limits or damping. So the report of a tracking is computed by
Python, at the state of the last call; and an integral is updated in machine code if no limit is
active, else in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, cast

import numpy as np

from holoctl.base.checks import Vector, as_given, quiet, stored
from holoctl.base.errors import InputError
from holoctl.codegen.compiled.estimator import CompiledEstimator, not_compiled
from holoctl.control.computed_torque import ComputedTorque
from holoctl.control.effort_bounds import effort_bounds_at_any_rate
from holoctl.control.limited_tick import LimitedTick
from holoctl.control.loop import LoopFunctions, hand_over
from holoctl.control.loop_memory import Memory
from holoctl.dynamics.tick.inverse_with_fallback import check_rates

__all__ = ["estimated", "integrating", "loop_functions", "of_states", "repartitioned"]

Tick = Callable[..., Vector]

INSIDE = 1e-9
"""The relative distance from a limit below which a motor counts as limited, and Python computes the
tick."""


def loop_functions(
    python: LoopFunctions, tick: Tick, estimator: Callable[..., CompiledEstimator], silent: bool,
    at_once: Callable[[CompiledEstimator], Tick], count: int, timed: bool,
) -> LoopFunctions:  # fmt: skip
    """The loop functions of a compiled controller.

    Parameters
    ----------
    python : LoopFunctions
        Those of the controller in Python.
    tick : function
        The compiled torque, or that with the integral.
    estimator : function (estimator or None) -> CompiledEstimator
        Makes a new estimator, or continues with another one.
    silent : bool
        Whether a tick may be limited or damped without a report.
    at_once : function (estimator) -> function
        State and torque in one call.
    count : int
        The number of reference arguments.
    timed : bool
        Whether rows may depend on time.
    """
    memory, answer = python.memory, cast(Tick, python.torque)
    followed: CompiledEstimator | None = None

    def torque(q: Any, v: Any, *reference: Any, **more: Any) -> Vector:
        u = tick(q, v, *reference, **more)
        t = reference[count] if len(reference) > count else more.get("t", 0.0)
        memory.note(q if type(q) is np.ndarray else np.array(q, dtype=float), t)
        if silent:
            more.pop("out", None)
            memory.unreported = tuple(map(_kept, (q, v, *reference))), more
        return u

    def torque_with_estimator(found: CompiledEstimator) -> Tick:
        nonlocal followed
        followed = found
        note_estimate()
        return at_once(found)

    def note_estimate() -> None:
        if followed is not None and not timed:  # else the time of the last tick is not known
            memory.note(followed.q, 0.0)

    def report(estimator: Any) -> Any:
        if followed is not None and silent:
            raise InputError(
                "machine code does not report what limits or damps a tick of a loop; a loop of the "
                "controller in Python does, and what track(reference) makes"
            )
        if memory.unreported is not None:
            given, more = memory.unreported
            answer(*given, **more)
            memory.unreported = None
        note_estimate()
        return python.report(estimator)

    return python._replace(
        torque=torque, torque_with_estimator=torque_with_estimator,
        estimator=estimator, report=report,
    )  # fmt: skip


def _kept(x: Any) -> Any:
    """A copy of an argument that may be overwritten."""
    return x.copy() if type(x) is np.ndarray else x if type(x) is float else deepcopy(x)


def of_states(estimator: Callable[..., CompiledEstimator]) -> LoopFunctions:
    """The loop functions if no torque was compiled: a loop estimates states only."""

    def torque(*_: Any, **__: Any) -> Any:
        raise not_compiled("torque", "hc.compile(controller)")

    nothing = Memory(np.zeros(0), 1.0)
    return LoopFunctions(nothing, None, lambda _: torque, estimator, torque, torque)


def estimated(estimator: CompiledEstimator, tick: Tick, count: int) -> Tick:
    """State, then torque, for `count` reference arguments."""

    @quiet
    def from_motors(
        q_motors: Any, v_motors: Any, *reference: Any, out: Vector | None = None, **more: Any
    ) -> Vector:
        check_rates(v_motors)
        t = reference[count] if len(reference) > count else more.get("t", 0.0)
        q, v = estimator.state(q_motors, v_motors, t)
        return tick(q, v, *reference, out=out, **more)

    return from_motors


def integrating(controller: ComputedTorque, python: LoopFunctions, tick: Tick) -> Tick:
    """The tick with the integral of its memory: in machine code if no limit is active, else in
    Python."""
    mech, law, memory = controller.mech, controller._law, python.memory
    limited = controller._limited
    full, nu = controller.compensation == "full", mech.nu
    inside, answer = _inside(limited), cast(Tick, python.torque)
    if limited is not None and (limited.law.bound.names or not full):
        return answer

    @quiet
    def torque(
        q: Any, v: Any, q_ref: Any, v_ref: Any, a_ref: Any, t: float = 0.0, *,
        out: Vector | None = None,
    ) -> Vector:  # fmt: skip
        given, integral = as_given("a_ref", a_ref, nu), memory.integral
        u = tick(q, v, q_ref, v_ref, given + integral if full else given, t)
        if not inside(u):
            return answer(q, v, q_ref, v_ref, a_ref, t, out=out)
        if not full:
            u += integral
        u = u if out is None else stored("out", out, u)
        memory.last = None
        memory.integrate(law.error_of(as_given("q", q, mech.nq), q_ref))
        return u

    return torque


def repartitioned(self: Any, q: Any, v: Any, t: float = 0.0) -> Any:
    """This one; or, if its partition is ill-conditioned, its controller in Python with another
    partition: see `ComputedTorque.repartitioned`. That one can be compiled again.

    Parameters
    ----------
    q, v, t
        State, as in `torque`.

    Returns
    -------
    Compiled or CompiledTasks, or their controller
        This one if no change is needed.

    Raises
    ------
    InputError
        For wrong shapes, and if no torque was compiled.
    """
    controller = self._law_of_torque()
    other = controller.repartitioned(q, v, t)
    if other is controller:
        return self
    hand_over(self, other)
    return other


def _inside(limited: LimitedTick | None) -> Callable[[Vector], bool]:
    """A function (u): whether no limit of a motor is active, up to rounding."""
    if limited is None:
        return lambda u: True
    lower, upper = effort_bounds_at_any_rate(limited.law.bound)
    lower[np.isfinite(lower)] += INSIDE * np.abs(lower[np.isfinite(lower)])
    upper[np.isfinite(upper)] -= INSIDE * np.abs(upper[np.isfinite(upper)])
    return lambda u: bool(((lower < u) & (u < upper)).all())
