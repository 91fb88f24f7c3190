"""Tables of a transmission: motor positions as a product of Chebyshev series.

    q_m(y) = sum_k c_k T_k1(x_1) ... T_kp(x_p)        x in [-1, 1]^p: y scaled to its domain

The series is that of the interpolant at many Chebyshev points; terms are dropped as long as the sum
of their sizes is within the wanted error, for |T_k| <= 1. Coefficients past the interpolant are
estimated: their sums over n/4 ... n/2, n/2 ... n, n ... 2n decrease at least by the same factor, if
they decay like a power (at a singular configuration) or geometrically (elsewhere). Derivatives have
bounds too, since |T_k'| <= k^2 and |T_k''| <= k^2 (k^2 - 1) / 3.
Reference: L. N. Trefethen, Approximation Theory and Approximation Practice, the chapters on
Chebyshev interpolants and on convergence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
from scipy.fft import dctn

from holoctl.base.checks import Array, Vector, freeze, listing, numbers, unpickled
from holoctl.base.errors import InputError

__all__ = ["EDGE", "TransmissionTable", "chebyshev_table"]

POINTS = {1: 80, 2: 40, 3: 24}
"""Chebyshev points along each axis, by the number of joints."""

TAIL = 0.2
"""The last part of the coefficients of each axis, which must be small: the share of them."""

ROUNDING = 1e-14
"""Error of a coefficient by rounding, relative to the largest."""

EDGE = 1e-12
"""Distance from the domain that counts as rounding, relative to half of its width."""


@dataclass(frozen=True, eq=False)
class TransmissionTable:
    """Motor positions, Jacobian and curvature as Chebyshev series, with bounds of their errors.

    Positions are arrays (..., p) of numpy, torch or JAX; the results are of the same kind. Outside
    of the domain numpy raises an `InputError`, and the others give NaN.

    Attributes
    ----------
    name : str
        That of the mechanism.
    joints, motors : tuple of str
    lower, upper : (p,) arrays
        The domain, rad or m.
    coefficients : (n_1, ..., n_p, nu) array
    error : (nu,) array
        Bound of the error of motor positions, rad or m.
    jacobian_error : (nu, p) array
        Bound of the error of the Jacobian; inf if its series does not converge, as close to a
        singular configuration.
    curvature_error : (nu, p, p) array
        Bound of the error of second derivatives: that of ``Jdot yd`` is
        ``sum_ij curvature_error_ij |yd_i yd_j|``; inf as that of the Jacobian.

    See Also
    --------
    Transmission : its ``table`` makes it, and has the exact values.
    export_c : writes it as C.

    Examples
    --------
    >>> import holoctl as hc
    >>> knee = hc.Transmission(hc.load(hc.robot_file("leg")), ["knee"])
    >>> table = knee.table(1e-6, [-1.2], [-0.4])
    >>> y = [[-1.0], [-0.8], [-0.6]]
    >>> exact = [knee.motor_positions(x) for x in y]
    >>> bool((abs(table.motor_positions(y) - exact) <= table.error).all())
    True
    """

    name: str
    joints: tuple[str, ...]
    motors: tuple[str, ...]
    lower: Vector
    upper: Vector
    coefficients: Array
    error: Vector
    jacobian_error: Array
    curvature_error: Array

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        size = " x ".join(str(n) for n in self.coefficients.shape[:-1])
        return (
            f"<TransmissionTable: {size} coefficients, motor positions of {listing(self.motors)} "
            f"within {self.error.max():.1e} rad or m>"
        )

    def motor_positions(self, y: Any) -> Any:
        """The motor positions (..., nu), rad or m.

        Raises
        ------
        InputError
            For positions of another shape or outside of the domain.
        """
        return self._sum(y, (0,) * len(self.joints))

    def jacobian(self, y: Any) -> Any:
        """J (..., nu, p).

        Raises
        ------
        InputError
            As `motor_positions`.
        """
        xp, columns = _arrays(y), []
        for i in range(len(self.joints)):
            columns.append(self._sum(y, _unit(i, len(self.joints))))
        return xp.stack(columns, -1)

    def curvature(self, y: Any, yd: Any) -> Any:
        """``Jdot yd`` (..., nu), rad/s^2 or m/s^2.

        Raises
        ------
        InputError
            As `motor_positions`; for rates of another shape.
        """
        p, total, yd = len(self.joints), 0.0, self._given("yd", yd, "rates")
        for i, j in product(range(p), repeat=2):
            order = tuple(int(a) + int(b) for a, b in zip(_unit(i, p), _unit(j, p), strict=True))
            total = total + self._sum(y, order) * (yd[..., i] * yd[..., j])[..., None]
        return total

    def _given(self, name: str, x: Any, what: str) -> Any:
        """x (..., p) as an array."""
        x, p = numbers(name, x) if _arrays(x) is np else x, len(self.joints)
        if x.ndim < 1 or x.shape[-1] != p:
            raise InputError(
                f"{name} must be (..., {p}), {what} of {listing(self.joints)}; got {tuple(x.shape)}"
            )
        return x

    def _sum(self, y: Any, order: tuple[int, ...]) -> Any:
        """The series, differentiated `order` times by each joint."""
        xp, p = _arrays(y), len(self.joints)
        y = self._given("y", y, "positions")
        middle, half = 0.5 * (self.upper + self.lower), 0.5 * (self.upper - self.lower)
        x = [(y[..., i] - float(middle[i])) * float(1.0 / half[i]) for i in range(p)]
        outside = sum(~(abs(a) <= 1.0 + EDGE) for a in x)
        if xp is np and np.any(outside):
            raise InputError(
                f"y is not finite or outside of the domain of the table, {self.lower} to "
                f"{self.upper} for {listing(self.joints)}"
            )
        found = _like(xp, self.coefficients, y)
        for i in range(p):  # contract the first axis of the coefficients, joint by joint
            basis = _basis(xp, x[i], self.coefficients.shape[i], order[i], float(1.0 / half[i]))
            letters = "abc"[i + 1 : p] + "m"
            found = xp.einsum(f"...n,{'...' if i else ''}n{letters}->...{letters}", basis, found)
        return found if xp is np else xp.where(outside[..., None] > 0, found * np.nan, found)


def _unit(i: int, p: int) -> tuple[int, ...]:
    return tuple(int(k == i) for k in range(p))


def _arrays(y: Any) -> Any:
    """The module of functions for an array: numpy, torch or jax.numpy."""
    kind = type(y).__module__.partition(".")[0]
    if kind == "torch":
        return import_module("torch")
    return import_module("jax.numpy") if kind in ("jax", "jaxlib") else np


def _like(xp: Any, x: Array, y: Any) -> Any:
    """An array of the kind, precision and device of y."""
    if xp is np:
        return x
    options = {"device": y.device} if type(y).__module__.startswith("torch") else {}
    return xp.asarray(x.copy(), dtype=y.dtype, **options)


def _basis(xp: Any, x: Any, n: int, order: int, scale: float) -> Any:
    """T_0 ... T_{n-1} at x (...,), or their derivatives by y, (..., n)."""
    zero, one, twice = 0.0 * x, 0.0 * x + 1.0, 2.0 * x
    first = [[one, x], [zero, one], [zero, zero]]
    before: list[Any] = []
    for k in range(order + 1):  # T_n^(k) = 2 k T_(n-1)^(k-1) + 2 x T_(n-1)^(k) - T_(n-2)^(k)
        found = first[k]
        for i in range(2, n):
            term = twice * found[-1] - found[-2]
            found.append(term + 2.0 * k * before[i - 1] if k else term)
        before = found
    return xp.stack(before[:n], -1) * scale**order


def chebyshev_table(
    name: str,
    joints: tuple[str, ...],
    motors: tuple[str, ...],
    positions: Callable[[Vector], Vector],
    lower: Vector,
    upper: Vector,
    error: float,
) -> TransmissionTable:
    """The smallest table whose bound is within an error.

    Parameters
    ----------
    name : str
        That of the mechanism.
    joints, motors : tuple of str
    positions : function (p,) -> (nu,)
    lower, upper : (p,) arrays
        The domain.
    error : float
        Of motor positions, rad or m.

    Raises
    ------
    InputError
        For more than three joints; if the series has not converged to the error.
    """
    p = len(joints)
    if p not in POINTS:
        raise InputError(f"a table has at most {max(POINTS)} joints; got {p}: {listing(joints)}")
    n = POINTS[p]
    nodes = np.cos(np.pi * (np.arange(n) + 0.5) / n)
    middle, half = 0.5 * (upper + lower), 0.5 * (upper - lower)
    values = np.zeros((*[n] * p, len(motors)))
    for at in np.ndindex(*[n] * p):
        values[at] = positions(middle + half * nodes[list(at)])
    c = dctn(values, type=2, axes=range(p)) / n**p
    for axis in range(p):
        c[(slice(None),) * axis + (0,)] *= 0.5
    size = np.abs(c)
    index = np.indices(size.shape[:-1])
    late = (index >= (1.0 - TAIL) * n).any(axis=0)
    rounding = ROUNDING * float(size.max()) * n
    floor = n ** (p - 1) * rounding
    tail = size[late].sum(axis=0) + _beyond(size, floor)
    if not (tail <= 0.1 * error + floor).all():
        raise InputError(
            f"the series of {listing(joints)} has not converged to {error:.1e}: its last "
            f"coefficients, of {n} along each joint, and those past them add up to "
            f"{float(tail.max()):.1e}. The domain may come close to a singular configuration: give "
            "a smaller one"
        )
    kept = _kept(size.max(axis=-1), error - rounding)
    inside, axes = tuple(slice(k) for k in kept), tuple(range(p))
    dropped = size.copy()
    dropped[inside] = 0.0
    weight = [index[i].astype(float)[..., None] ** 2 for i in range(p)]
    bound = dropped.sum(axis=axes) + tail + rounding
    jacobian, second = np.zeros((len(motors), p)), np.zeros((len(motors), p, p))
    for i in range(p):
        by = weight[i] / half[i]
        jacobian[:, i] = (by * dropped).sum(axis=axes) + _beyond(by * size, n**2 * floor / half[i])
        for j in range(p):
            second_by = weight[j] if i != j else np.maximum(weight[i] - 1.0, 0.0) / 3.0
            both = by * second_by / half[j]
            past = _beyond(both * size, n**4 * floor / (half[i] * half[j]))
            second[:, i, j] = (both * dropped).sum(axis=axes) + past
    return TransmissionTable(
        name, joints, motors, lower, upper, c[inside].copy(), bound, jacobian + n**2 * rounding,
        second + n**4 * rounding,
    )  # fmt: skip


def _beyond(size: Array, floor: float) -> Array:
    """Bound (nu,) of the sum of the sizes of coefficients past those given, twice: they also change
    those of the interpolant. Sums within `floor` are rounding; inf if the sums do not decrease."""
    total = np.zeros(size.shape[-1])
    for axis in range(size.ndim - 1):
        by_index = np.moveaxis(size, axis, 0)
        n, others = len(by_index), tuple(range(size.ndim - 1))
        before = by_index[n // 4 : n // 2].sum(axis=others)
        last = by_index[n // 2 :].sum(axis=others)
        past = np.where(last < before, last * last / (before - last), np.inf)
        total += np.where(last <= floor, 0.0, 2.0 * past)
    return total


def _kept(size: Array, error: float) -> list[int]:
    """Numbers of coefficients along each axis such that the others add up to less than an error:
    from all of them the axis is shortened whose last coefficients are smallest."""
    kept = list(size.shape)
    left = error
    while True:
        ends = [
            float(size[tuple(slice(k if i != a else None) if i != a else k - 1
                             for i, k in enumerate(kept))].sum()) if kept[a] > 1 else np.inf
            for a in range(size.ndim)
        ]  # fmt: skip
        axis = int(np.argmin(ends))
        if not ends[axis] <= left:
            return kept
        left -= ends[axis]
        kept[axis] -= 1
