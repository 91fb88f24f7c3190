"""Stabilisability by the motors and detectability by the weights, by the test of Hautus.

    rank [A - lambda, B] = 2n        rank [A - lambda; Q^1/2] = 2n

for each eigenvalue lambda that does not decay, in states scaled by the size of the loop and by the
speed of the model, so that both matrices have entries of order one.
Reference: M. Hautus, Controllability and observability conditions of linear autonomous systems.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.base.linalg import in_range, largest
from holoctl.base.tolerances import TAKES_PART
from holoctl.design.linear.model import Linearization

__all__ = ["check_moved", "check_seen", "state_units"]

NOT_MOVING = 1e-5
"""An eigenvalue counts as not decaying if it decays more slowly than this, relative to the speed of
the model (at least 1/s)."""

MOVED_BY_MOTORS = 1e-7  # scaled
"""A mode is moved by the motors if ``[A - lambda, B]``, with columns of B of norm 1, has no smaller
singular value."""

SEEN_BY_WEIGHTS = 1e-7  # scaled
"""A mode is seen by the weights if ``[A - lambda; Q^1/2]``, with 1 as the largest entry of Q^1/2,
has no smaller singular value."""


def state_units(lin: Linearization) -> Vector:
    """(2n,): units of the states: the size of the loop for coordinates, times the speed of the
    model for rates."""
    c = lin.mech.column_scale[lin.partition.independent]
    return np.concatenate([c, c * _speed(lin)])


def _speed(lin: Linearization) -> float:
    """The speed of the model, 1/s, at least 1. In a model in discrete time rates move positions by
    about dt per tick."""
    c = lin.mech.column_scale[lin.partition.independent]
    n = c.size
    A = lin.A * (np.tile(c, 2) / np.tile(c, 2)[:, None])
    moves, stays = largest(A[:n, n:]), 0.0 if lin.dt is None else 1.0
    rates = largest(A[n:, n:] - stays * np.eye(n)) / moves
    return max(1.0, float(np.sqrt(largest(A[n:, :n]) / moves)), rates)


def check_moved(lin: Linearization) -> None:
    """Raise `NotActuatedError` for a mode that does not decay and that no motor moves."""
    A, B = _scaled(lin)
    sizes = np.linalg.norm(B, axis=0)
    for value, x in _left_out(lin, A.T, (B / np.where(sizes > 0.0, sizes, 1.0)).T, MOVED_BY_MOTORS):
        raise NotActuatedError(
            f"{lin.mech.name}: no regulator holds the motion of {_named(lin, x)}: it "
            f"{_what(lin, value)}, and no motor moves it. Give it a motor, a spring with a damper, "
            "or a fixed joint; a motion that acts on no other can be left out, with ignore="
        )


def check_seen(lin: Linearization, Q: Array) -> None:
    """Raise `InputError` for a mode that does not decay and that Q does not weigh."""
    A, _ = _scaled(lin)
    unit = state_units(lin)
    values, vectors = np.linalg.eigh(unit[:, None] * Q * unit)
    root = (np.sqrt(np.maximum(values, 0.0)) * vectors).T
    for value, x in _left_out(
        lin, A, root / max(largest(root), np.finfo(float).tiny), SEEN_BY_WEIGHTS
    ):
        raise InputError(
            f"the motion of {_named(lin, x)} has no weight in Q, and it {_what(lin, value)}: no "
            "cost would bring it back. Give it, or its rate, a weight"
        )


def _left_out(
    lin: Linearization, A: Array, rows: Array, least: float
) -> Iterator[tuple[complex, NDArray[np.complex128]]]:
    """Modes that do not decay and for which the rows vanish: eigenvalue and direction."""
    for value in _lasting(lin, A):
        _, s, right = np.linalg.svd(in_range(np.vstack([_away(lin, A, value), rows])))
        if s[-1] <= least:
            yield value, right[-1]


def _scaled(lin: Linearization) -> tuple[Array, Array]:
    """A and B of scaled states; of a continuous model also in a scaled time."""
    unit = state_units(lin)
    time = 1.0 if lin.dt is not None else 1.0 / _speed(lin)
    return time * lin.A * (unit / unit[:, None]), time * lin.B / unit[:, None]


def _away(lin: Linearization, A: Array, value: complex) -> Array:
    """``A - value``, scaled to order one also for ticks that are short for the model."""
    ticks = 1.0 if lin.dt is None else max(1.0, 1.0 / (_speed(lin) * lin.dt))
    return ticks * (A - value * np.eye(len(A)))


def _lasting(lin: Linearization, A: Array) -> NDArray[np.complex128]:
    """Eigenvalues of modes that do not decay, one of each conjugate pair."""
    values = np.linalg.eigvals(A).astype(complex)
    if lin.dt is None:
        decay = values.real
    else:
        sizes = np.maximum(np.abs(values), np.finfo(float).tiny)
        decay = np.log(sizes) / (_speed(lin) * lin.dt)
    return values[(decay >= -NOT_MOVING) & (values.imag >= 0.0)]


def _named(lin: Linearization, x: NDArray[np.complex128]) -> str:
    """Names of the coordinates with the largest parts in a scaled direction of the states."""
    n = len(lin.states) // 2
    part = np.abs(x[:n]) + np.abs(x[n:])
    order = np.argsort(-part, kind="stable")
    return listing([lin.states[k] for k in order if part[k] >= TAKES_PART * part[order[0]]], 4)


def _what(lin: Linearization, value: complex) -> str:
    """A phrase that says how a mode of the scaled model moves."""
    at = value * _speed(lin) if lin.dt is None else np.log(value) / lin.dt
    small = NOT_MOVING * _speed(lin)
    if abs(at) <= small:
        return "drifts (no restoring force)"
    if at.real > small:
        return f"diverges by a factor of e in {1.0 / at.real:.3g} s"
    if abs(at.imag) > small:
        return f"oscillates undamped at {abs(at.imag) / (2.0 * np.pi):.4g} Hz"
    return "hardly decays"
