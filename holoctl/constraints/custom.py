"""Constraints of your own: phi(q) = 0 or phi(q, t) = 0 from callbacks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, numbers, positive, whole
from holoctl.base.errors import InputError
from holoctl.base.tolerances import (
    DIFFERENCE_BESIDE,
    DIFFERENCE_PARTS,
    DIFFERENCE_REACHES,
    DIFFERENCE_STATES,
    DIFFERENCE_STEP,
    FIRST_DIFFERENCE,
    SECOND_DIFFERENCE,
)
from holoctl.constraints.contract import Evaluate, Place, Rows, constraint_of
from holoctl.constraints.differences import Difference, difference, worst
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["Custom"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Custom:
    """``phi(q) = 0``, or ``phi(q, t) = 0``, from functions of your own.

    What is not given is differentiated numerically, with central differences of sixth order
    along the tangent directions of q (steps of 1e-3 rad or m) and along time; this gives about
    ten digits, and costs 6 nv + 8 calls of `phi` for each evaluation, with time 6 more. The
    directions are those of v: d/dt phi = jacobian v, also for joints with quaternions.

    Parameters
    ----------
    phi : callable
        ``phi(q)``, or ``phi(q, t)`` with ``time=True``; returns (rows,) numbers.
    jacobian : callable, optional
        ``jacobian(q)`` or ``jacobian(q, t)``: (rows, nv), the derivative of phi along v.
    drift : callable, optional
        ``drift(q, v)`` or ``drift(q, v, t)``: (rows,), all of the second time derivative of phi
        at zero acceleration, the terms of time included.
    rows : int
        How many rows, one or more.
    rate_t : callable, optional
        ``rate_t(q, t)``: (rows,), the partial derivative of phi by time.
    time : bool, optional
        Whether the callbacks take the time as well.
    scale : float or (rows,) array_like, optional
        The size of phi that counts as "open": rows are divided by it where rank, tolerances and
        certificates are concerned. For lengths, the size of the mechanism in m. Default: 1.
    name : str, optional
        Default: the name of `phi`.
    t_stab : float, optional
        Time constant of Baumgarte's stabilisation, s. Default: none.
    casadi : callable, optional
        The same phi for `hc.compile`: ``casadi(q)``, or ``casadi(q, t)`` with ``time=True``, of a
        `casadi.SX` column q of nq entries; returns a `casadi.SX` of `rows` entries. Everything
        else here ignores it.

    Raises
    ------
    InputError
        For what is not callable, a scale that is not above zero; by `Mechanism` and at every
        evaluation, for callbacks that return the wrong shape or numbers that are not finite; by
        `Mechanism`, for derivatives that are not those of `phi`.

    Notes
    -----
    Derivatives that are given are compared with differences once, when a mechanism is made: at
    seeded states near its reference, those left out where a callback raises an error or returns
    numbers that are not finite. Tables that are interpolated may have kinks.

    Callbacks must be functions of their arguments alone. To pickle a mechanism they must be
    named functions of a module.
    """

    phi: Callable[..., Any]
    jacobian: Callable[..., Any] | None = None
    drift: Callable[..., Any] | None = None
    rows: int = 1
    rate_t: Callable[..., Any] | None = None
    time: bool = False
    scale: Any = 1.0
    name: str | None = None
    t_stab: float | None = None
    casadi: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        owner = f"Custom {self.default_name!r}"
        for what in ("phi", "jacobian", "drift", "rate_t", "casadi"):
            given = getattr(self, what)
            if not callable(given) and (what == "phi" or given is not None):
                raise InputError(f"{owner}: {what} must be a function; got {given!r}")
        whole(f"{owner}: rows", self.rows, 1)
        if self.rate_t is not None and not self.time:
            raise InputError(f"{owner}: rate_t needs time=True")
        scale = numbers(f"{owner}: scale", self.scale)
        if scale.shape not in ((), (self.rows,)) or not (scale > 0.0).all():
            too_many = scale.ndim == 1 and scale.size > self.rows
            hint = f" (did you mean rows={scale.size}?)" if too_many else ""
            raise InputError(
                f"{owner}: scale must be a number above zero, or one for each row, and there are "
                f"rows={self.rows}; got {self.scale!r}{hint}"
            )
        if not np.isfinite(scale).all():
            raise InputError(f"{owner}: scale must be finite; got {self.scale!r}")
        object.__setattr__(self, "scale", tuple(scale.tolist()) if scale.ndim else float(scale))
        if self.t_stab is not None:
            positive(f"{owner}: t_stab", self.t_stab, "s")

    @property
    def default_name(self) -> str:
        """The name as given, or that of `phi`."""
        return self.name if self.name is not None else getattr(self.phi, "__name__", "custom")

    def bind(self, model: pin.Model, name: str, reference: Vector) -> BoundCustom:
        """The rows of this constraint on `model`; the callbacks are tried at `reference`."""
        bound = BoundCustom(self, model, tuple(f"{name}.{i}" for i in range(self.rows)))
        bound.evaluate(reference, np.zeros(model.nv), 0.0)
        if any(given is not None for given in (self.jacobian, self.drift, self.rate_t)):
            _check_derivatives(bound, reference)
        return bound


@dataclass(frozen=True, eq=False)
class BoundCustom:
    """A `Custom` tied to a model."""

    description: Custom
    model: pin.Model
    labels: tuple[str, ...]

    @property
    def support(self) -> NDArray[np.bool_]:
        """Nothing is known of the callbacks: they may depend on every coordinate."""
        return np.ones((len(self.labels), self.model.nv), dtype=bool)

    @property
    def anchors(self) -> tuple[Frame, ...]:
        return ()

    def scale(self, length: Vector, columns: Vector) -> Vector:
        """As declared."""
        return 1.0 / np.broadcast_to(np.asarray(self.description.scale, float), length.shape)

    def rows(self, kin: Kinematics) -> Rows:
        """Error, rate, Jacobian and drift at the state of `kin`."""
        return self.evaluate(kin.q, kin.v, kin.t)

    def error(self, q: Vector, t: float) -> Vector:
        """phi alone."""
        return self._phi(q, t)

    def tick(self, motion: LiveMotion, rows: Rows) -> Evaluate:
        """The callbacks again: they know the tree themselves."""

        def evaluate(q: Vector, v: Vector, t: float) -> None:
            found = self.evaluate(q, v, t)
            rows.error[:], rows.rate[:], rows.drift[:] = found.error, found.rate, found.drift
            rows.jacobian[:] = found.jacobian

        return evaluate

    @property
    def opaque(self) -> str:
        """Why there is no expression; empty where there is one."""
        if self.description.casadi is not None:
            return ""
        return (
            "its functions are Python; give it casadi=, a function that returns phi as a CasADi "
            "expression"
        )

    def expression(self, q: Any, t: Any, place: Place) -> Any:
        """phi as a `casadi.SX` column, of symbols q and t; checked."""
        d = self.description
        owner = f"casadi of Custom {constraint_of(self.labels[0])!r}"
        if d.casadi is None:
            raise InputError(f"{owner} is not given")
        given = d.casadi(q, t) if d.time else d.casadi(q)
        if type(given) is not type(q):
            raise InputError(
                f"{owner} must return a casadi.SX; got {type(given).__name__} (casadi.vertcat "
                "makes one of several expressions)"
            )
        if given.numel() != d.rows or min(given.shape) != 1:
            raise InputError(f"{owner} must return {d.rows} entries; got shape {given.shape}")
        return given.reshape((d.rows, 1))

    def evaluate(self, q: Vector, v: Vector, t: float) -> Rows:
        """Rows at (q, v, t), from the callbacks or by differences."""
        d, nv = self.description, self.model.nv
        error = self._phi(q, t)
        if d.jacobian is None:
            G = np.column_stack([self._along(q, t, e, 0.0) for e in np.eye(nv)])
        else:
            G = self._jacobian(q, t)
        phi_t = self._phi_t(q, t)
        if d.drift is not None:
            drift = self._drift(q, v, t)
        elif d.jacobian is not None and (d.rate_t is not None or not d.time):
            drift = self._drift_of_rate(q, v, t)
        else:
            drift = self._second_along(q, t, v)
        return Rows(error, G @ v + phi_t, G, drift)

    def _phi(self, q: Vector, t: float) -> Vector:
        d = self.description
        given = d.phi(q.copy(), t) if d.time else d.phi(q.copy())
        return self._checked("phi", given, (d.rows,))

    def _jacobian(self, q: Vector, t: float) -> Array:
        d = self.description
        jacobian = d.jacobian
        given = (
            None if jacobian is None else jacobian(q.copy(), t) if d.time else jacobian(q.copy())
        )
        return self._checked("jacobian", given, (d.rows, self.model.nv))

    def _phi_t(self, q: Vector, t: float) -> Vector:
        d = self.description
        if not d.time:
            return np.zeros(d.rows)
        if d.rate_t is None:
            return self._along(q, t, np.zeros(self.model.nv), 1.0)
        return self._checked("rate_t", d.rate_t(q.copy(), t), (d.rows,))

    def _drift(self, q: Vector, v: Vector, t: float) -> Vector:
        drift, when = self.description.drift, (t,) if self.description.time else ()
        given = None if drift is None else drift(q.copy(), v.copy(), *when)
        return self._checked("drift", given, (self.description.rows,))

    def _along(
        self, q: Vector, t: float, step: Vector, dt: float, h: float = FIRST_DIFFERENCE
    ) -> Vector:
        """Derivative of phi along a direction of (q, t)."""
        at = lambda s: self._phi(pin.integrate(self.model, q, s * step), t + s * dt)  # noqa: E731
        return _first(at, h)

    def _second_along(self, q: Vector, t: float, v: Vector) -> Vector:
        """Second time derivative of phi at constant v: shorter where v is fast."""
        h = SECOND_DIFFERENCE / max(1.0, float(np.abs(v).max(initial=0.0)))
        at = lambda s: self._phi(pin.integrate(self.model, q, s * v), t + s)  # noqa: E731
        return _second(at, h)

    def _drift_of_rate(self, q: Vector, v: Vector, t: float) -> Vector:
        """First time derivative of the rate at constant v."""
        h = FIRST_DIFFERENCE / max(1.0, float(np.abs(v).max(initial=0.0)))

        def rate(s: float) -> Vector:
            x = pin.integrate(self.model, q, s * v)
            return self._jacobian(x, t + s) @ v + self._phi_t(x, t + s)

        return _first(rate, h)

    def _checked(self, what: str, given: Any, shape: tuple[int, ...]) -> Array:
        owner = f"{what} of Custom {constraint_of(self.labels[0])!r}"
        x = np.array(numbers(owner, given))
        if x.size == 1 and shape == (1,):
            x = x.reshape(shape)
        if x.ndim == 1 and shape[0] == 1 and x.size == shape[-1]:
            x = x.reshape(shape)
        if x.shape != shape:
            others = x.ndim > 0 and x.shape[0] != shape[0]
            hint = f"; rows={self.description.rows} tells how many rows there are" if others else ""
            raise InputError(f"{owner} must return shape {shape}; got {x.shape}{hint}")
        if not np.isfinite(x).all():
            raise InputError(f"{owner} must return finite numbers; got {x}")
        return x


def _check_derivatives(bound: BoundCustom, reference: Vector) -> None:
    """Raise `InputError` where a derivative that is given is not that of phi."""
    model, rng, looked_at = bound.model, np.random.default_rng(0), 0
    for reach in DIFFERENCE_REACHES:
        step, v = rng.normal(size=(2, model.nv))
        try:
            told = _told(bound, reference, reach * step, v, reach)
        except Exception:  # callbacks need not be defined everywhere, and say so as they like
            continue
        if told is not None:
            try:
                again = _told(bound, reference, DIFFERENCE_BESIDE * reach * step, v, reach)
            except Exception:
                again = told
            if again is not None:
                raise InputError(told)
        looked_at += 1
        if looked_at == DIFFERENCE_STATES:
            return


def _told(
    bound: BoundCustom, reference: Vector, step: Vector, v: Vector, reach: float
) -> str | None:
    """What is wrong with the derivatives a step from the reference; None if nothing."""
    d, h = bound.description, min(DIFFERENCE_STEP, 0.1 * reach)
    with np.errstate(all="ignore"):
        q, t = pin.integrate(bound.model, reference, step), reach if d.time else 0.0
        tries = [_compared(bound, q, v, t, part * h) for part in DIFFERENCE_PARTS]
        terms = _terms(bound, q, v, t, h)
    for what, (of, given, by_differences) in tries[0].items():
        if (i := worst(given, [found[what][2] for found in tries], terms)) is not None:
            return (
                f"{what} of Custom {constraint_of(bound.labels[0])!r} is not the derivative "
                f"of phi: at q = {q.round(4).tolist()}, v = {v.round(4).tolist()}"
                f"{f', t = {t:g}' if d.time else ''}, {of} of row {i} is "
                f"{by_differences.value[i]:.6g} by differences, and by {what} {given[i]:.6g}"
            )
    return None


def _terms(bound: BoundCustom, q: Vector, v: Vector, t: float, h: float) -> Vector:
    """The size of the terms that the rate of each row is the sum of."""
    d, nv = bound.description, bound.model.nv
    if d.jacobian is not None:
        G = bound._jacobian(q, t)
    else:
        G = np.column_stack([bound._along(q, t, e, 0.0, h) for e in np.eye(nv)])
    if d.time and d.rate_t is None:
        phi_t = bound._along(q, t, np.zeros(nv), 1.0, h)
    else:
        phi_t = bound._phi_t(q, t)
    return np.asarray(np.abs(G) @ np.abs(v) + np.abs(phi_t))


def _compared(
    bound: BoundCustom, q: Vector, v: Vector, t: float, h: float
) -> dict[str, tuple[str, Vector, Difference]]:
    """Each derivative given, by its name: what it tells, that, and the same by differences."""
    d, model = bound.description, bound.model
    found: dict[str, tuple[str, Vector, Difference]] = {}
    h /= max(1.0, float(np.abs(v).max()))

    def phi(s: float, dt: float) -> Vector:
        return bound.error(pin.integrate(model, q, s * v), t + dt)

    def rate(s: float) -> Vector:
        there = pin.integrate(model, q, s * v)
        return _first(lambda r: bound.error(pin.integrate(model, there, r * v), t + s + r), h)

    if d.jacobian is not None:
        along = difference(lambda s: phi(s, 0.0), h)
        found["jacobian"] = ("jacobian @ v", bound._jacobian(q, t) @ v, along)
    if d.rate_t is not None:
        by_time = difference(lambda s: phi(0.0, s), h)
        found["rate_t"] = ("d phi/dt at v = 0", bound._phi_t(q, t), by_time)
    if d.drift is not None:
        size = 1.0 + np.abs(bound.error(q, t))
        noise = 10.0 * float(np.finfo(float).eps) * size / h
        twice = difference(rate, 10.0 * h, noise)
        found["drift"] = ("d2 phi/dt2 at a = 0", bound._drift(q, v, t), twice)
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
