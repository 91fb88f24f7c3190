"""User-defined functions of q, or of q and t, with derivatives given or by differences.

The differences are central and of sixth order, along the tangent directions of q and along time.
Given derivatives are compared with differences once, when the constraint is bound to a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, numbers, quoted, whole
from holoctl.base.errors import InputError
from holoctl.base.tolerances import DIFFERENCE_PARTS, DIFFERENCE_STEP, FIRST_DIFFERENCE
from holoctl.constraints.constraint_protocol import Rows
from holoctl.constraints.derivative_check import (
    Difference,
    check_at_seeded_states,
    difference,
    worst,
)

__all__ = ["Callbacks", "check_callables", "check_derivatives", "scale_of"]

SECOND_DIFFERENCE = 1e-2  # rad, m, s
"""Step of numerical second derivatives."""


def check_callables(owner: str, needed: Mapping[str, Any], others: Mapping[str, Any]) -> None:
    """Raise `InputError` for a value that is not callable; values of `others` may be None."""
    for what, given in [*needed.items(), *others.items()]:
        if not callable(given) and (what in needed or given is not None):
            raise InputError(f"{owner}: {what} must be a function; got {quoted(given)}")


def scale_of(owner: str, given: Any, rows: Any) -> float | tuple[float, ...]:
    """The scale of `rows` rows, checked: a number above zero, or one for each."""
    whole(f"{owner}: rows", rows, 1)
    scale = numbers(f"{owner}: scale", given)
    if scale.shape not in ((), (rows,)) or not (scale > 0.0).all():
        too_many = scale.ndim == 1 and scale.size > rows
        hint = f" (did you mean rows={scale.size}?)" if too_many else ""
        raise InputError(
            f"{owner}: scale must be a number above zero, or one for each row, and there are "
            f"rows={rows}; got {quoted(given)}{hint}"
        )
    if not np.isfinite(scale).all():
        raise InputError(f"{owner}: scale must be finite; got {quoted(given)}")
    return tuple(scale.tolist()) if scale.ndim else float(scale)


@dataclass(frozen=True, eq=False)
class Callbacks:
    """A function f, and those of its derivatives that are given, on a model.

    Attributes
    ----------
    owner : str
        The constraint that they belong to, for messages.
    model : pin.Model
    rows : int
        The number of values that f returns.
    called : str
        The name of f, for messages.
    function : function (q) or (q, t) -> (rows,)
    jacobian : function (q) or (q, t) -> (rows, nv), or None
    drift : function (q, v) or (q, v, t) -> (rows,), or None
    rate_t : function (q, t) -> (rows,), or None
    time : bool
        Whether the functions take the time too.
    """

    owner: str
    model: pin.Model
    rows: int
    called: str
    function: Callable[..., Any]
    jacobian: Callable[..., Any] | None = None
    drift: Callable[..., Any] | None = None
    rate_t: Callable[..., Any] | None = None
    time: bool = False

    def evaluate(self, q: Vector, v: Vector, t: float) -> Rows:
        """Value, rate, Jacobian and drift at (q, v, t), from the callbacks or by differences."""
        value = self.value(q, t)
        if self.jacobian is None:
            G = np.column_stack([self._along(q, t, e, 0.0) for e in np.eye(self.model.nv)])
        else:
            G = self._jacobian(q, t)
        phi_t = self._phi_t(q, t)
        if self.drift is not None:
            drift = self._drift(q, v, t)
        elif self.jacobian is not None and (self.rate_t is not None or not self.time):
            drift = self._drift_of_rate(q, v, t)
        else:
            drift = self._second_along(q, t, v)
        return Rows(value, G @ v + phi_t, G, drift)

    def value(self, q: Vector, t: float) -> Vector:
        """f alone."""
        return self._called(self.called, self.function, (self.rows,), t, q)

    def _jacobian(self, q: Vector, t: float) -> Array:
        return self._called("jacobian", self.jacobian, (self.rows, self.model.nv), t, q)

    def _phi_t(self, q: Vector, t: float) -> Vector:
        if not self.time:
            return np.zeros(self.rows)
        if self.rate_t is None:
            return self._along(q, t, np.zeros(self.model.nv), 1.0)
        return self._called("rate_t", self.rate_t, (self.rows,), t, q)

    def _drift(self, q: Vector, v: Vector, t: float) -> Vector:
        return self._called("drift", self.drift, (self.rows,), t, q, v)

    def _called(
        self, what: str, function: Any, shape: tuple[int, ...], t: float, *state: Vector
    ) -> Array:
        """The result of one of the callbacks, checked."""
        when = (t,) if self.time else ()
        return self._checked(what, function(*(x.copy() for x in state), *when), shape)

    def _along(
        self, q: Vector, t: float, step: Vector, dt: float, h: float = FIRST_DIFFERENCE
    ) -> Vector:
        """Derivative of f along a direction of (q, t)."""
        at = lambda s: self.value(pin.integrate(self.model, q, s * step), t + s * dt)  # noqa: E731
        return _first(at, h)

    def _second_along(self, q: Vector, t: float, v: Vector) -> Vector:
        """Second time derivative of f at constant v; the step is shorter for a fast v."""
        h = SECOND_DIFFERENCE / max(1.0, float(np.abs(v).max(initial=0.0)))
        at = lambda s: self.value(pin.integrate(self.model, q, s * v), t + s)  # noqa: E731
        return _second(at, h)

    def _drift_of_rate(self, q: Vector, v: Vector, t: float) -> Vector:
        """First time derivative of the rate at constant v."""
        h = FIRST_DIFFERENCE / max(1.0, float(np.abs(v).max(initial=0.0)))

        def rate(s: float) -> Vector:
            x = pin.integrate(self.model, q, s * v)
            return self._jacobian(x, t + s) @ v + self._phi_t(x, t + s)

        return _first(rate, h)

    def _checked(self, what: str, given: Any, shape: tuple[int, ...]) -> Array:
        owner = f"{what} of {self.owner}"
        x = np.array(numbers(owner, given))
        if x.size == 1 and shape == (1,):
            x = x.reshape(shape)
        if x.ndim == 1 and shape[0] == 1 and x.size == shape[-1]:
            x = x.reshape(shape)
        if x.shape != shape:
            others = x.ndim > 0 and x.shape[0] != shape[0]
            hint = f"; rows={self.rows} states the number of rows" if others else ""
            raise InputError(f"{owner} must return shape {shape}; got {x.shape}{hint}")
        if not np.isfinite(x).all():
            raise InputError(f"{owner} must return finite numbers; got {x}")
        return x


def check_derivatives(f: Callbacks, reference: Vector) -> None:
    """Raise `InputError` if a given derivative is not that of f, at seeded states near a
    reference."""
    if f.jacobian is None and f.drift is None and f.rate_t is None:
        return
    check_at_seeded_states(f.model.nv, partial(_wrong_derivatives, f, reference))


def _wrong_derivatives(
    f: Callbacks, reference: Vector, step: Vector, v: Vector, reach: float
) -> str | None:
    """The error of the derivatives at a step from the reference; None if there is none."""
    h = min(DIFFERENCE_STEP, 0.1 * reach)
    q, t = pin.integrate(f.model, reference, step), reach if f.time else 0.0
    tries = [_compared(f, q, v, t, part * h) for part in DIFFERENCE_PARTS]
    terms = _terms(f, q, v, t, h)
    for what, (of, given, by_differences) in tries[0].items():
        if (i := worst(given, [found[what][2] for found in tries], terms)) is not None:
            return (
                f"{what} of {f.owner} is not the derivative "
                f"of {f.called}: at q = {q.round(4).tolist()}, v = {v.round(4).tolist()}"
                f"{f', t = {t:g}' if f.time else ''}, {of} of row {i} is "
                f"{by_differences.value[i]:.6g} by differences, and by {what} {given[i]:.6g}"
            )
    return None


def _terms(f: Callbacks, q: Vector, v: Vector, t: float, h: float) -> Vector:
    """The size of the terms in the sum that is the rate of each row."""
    nv = f.model.nv
    if f.jacobian is not None:
        G = f._jacobian(q, t)
    else:
        G = np.column_stack([f._along(q, t, e, 0.0, h) for e in np.eye(nv)])
    differenced, rest = f.time and f.rate_t is None, np.zeros(nv)
    phi_t = f._along(q, t, rest, 1.0, h) if differenced else f._phi_t(q, t)
    return np.asarray(np.abs(G) @ np.abs(v) + np.abs(phi_t))


def _compared(
    f: Callbacks, q: Vector, v: Vector, t: float, h: float
) -> dict[str, tuple[str, Vector, Difference]]:
    """For each given derivative, by name: its description, its value, and the same by
    differences."""
    model = f.model
    found: dict[str, tuple[str, Vector, Difference]] = {}
    h /= max(1.0, float(np.abs(v).max()))

    def phi(s: float, dt: float) -> Vector:
        return f.value(pin.integrate(model, q, s * v), t + dt)

    def rate(s: float) -> Vector:
        there = pin.integrate(model, q, s * v)
        return _first(lambda r: f.value(pin.integrate(model, there, r * v), t + s + r), h)

    if f.jacobian is not None:
        along = difference(lambda s: phi(s, 0.0), h)
        found["jacobian"] = ("jacobian @ v", f._jacobian(q, t) @ v, along)
    if f.rate_t is not None:
        by_time = difference(lambda s: phi(0.0, s), h)
        found["rate_t"] = (f"d {f.called}/dt at v = 0", f._phi_t(q, t), by_time)
    if f.drift is not None:
        size = 1.0 + np.abs(f.value(q, t))
        noise = 10.0 * float(np.finfo(float).eps) * size / h
        twice = difference(rate, 10.0 * h, noise)
        found["drift"] = (f"d2 {f.called}/dt2 at a = 0", f._drift(q, v, t), twice)
    return found


def _first(f: Callable[[float], Vector], h: float) -> Vector:
    """f'(0), central difference of sixth order."""
    return (45.0 * (f(h) - f(-h)) - 9.0 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (
        60.0 * h
    )


def _second(f: Callable[[float], Vector], h: float) -> Vector:
    """f''(0), central difference of sixth order."""
    return (
        270.0 * (f(h) + f(-h)) - 27.0 * (f(2 * h) + f(-2 * h)) + 2.0 * (f(3 * h) + f(-3 * h))
        - 490.0 * f(0.0)
    ) / (180.0 * h**2)  # fmt: skip
