"""Noise of each label from residuals, rows weighted by it, and intervals of base parameters.

Residuals of adjacent samples are independent up to the rate of a regression. Where samples are
denser, `thin` of them count as one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.stats import t as student

from holoctl.base.checks import Array, Vector, counted
from holoctl.base.errors import InputError
from holoctl.base.linalg import least_squares
from holoctl.identification.base_parameters import BaseParameters, base_of
from holoctl.identification.parameters import Parameters
from holoctl.identification.regression import Regression

__all__ = [
    "check_regression",
    "compressed",
    "deviations",
    "effects",
    "flat",
    "intervals_of",
    "thinning",
    "weighted",
]

STILL = 1e-3
"""The equations of a motion vary by more than this, relative to their size."""

NO_NOISE = 1e-9
"""The least noise of a label, relative to its efforts: data of a simulation without noise."""

REWEIGHTED = 3
"""Times that the noise is estimated, each with rows weighted by the one before."""

LEVEL = 0.95


def check_regression(what: str, data: Any) -> None:
    """Raise `InputError` for anything but a Regression."""
    if not isinstance(data, Regression):
        raise InputError(
            f"{what}: data must be a Regression; got {type(data).__name__}: "
            "hc.regression(model, measurements) makes one"
        )


def thinning(data: Regression) -> float:
    """The number of samples that count as one independent sample."""
    between = float(np.median(np.diff(data.t))) if data.t.size > 1 else 1.0 / data.rate
    return max(1.0, 1.0 / (data.rate * between))


def compressed(Wy: Array) -> Array:
    """R (n, n) with ``R' R = Wy' Wy``, Wy (m, n): the same sum of squares for every p."""
    R: Array = np.linalg.qr(Wy, mode="r")  # type: ignore[assignment]  # numpy's stubs
    return R


def flat(Wy: Array) -> Array:
    """Rows of all samples, one below the other."""
    return Wy.reshape(-1, Wy.shape[-1])


def weighted(data: Regression, thin: float) -> tuple[BaseParameters, Array, Vector, Vector]:
    """Base parameters, rows ``[W y]`` (s, g, p + 1) over their noise, the noise (g,), and the base
    parameters (b,) by least squares.

    Raises
    ------
    InputError
        For a motion that does not move, and too few equations.
    """
    W, y, mech = data.W, data.y, data.model.mech
    size = float(np.linalg.norm(W))
    if not size > 0.0 or np.linalg.norm(W - W.mean(axis=0)) < STILL * size:
        raise InputError(
            f"{mech.name}: the motion excites nothing: the equations of all "
            f"{counted(len(data.t), 'sample')} are the same; move all motors, quickly and slowly"
        )
    if not y.any():
        raise InputError(f"{mech.name}: all efforts are zero: were they logged?")
    usual = np.sqrt(np.mean(y**2, axis=0))
    parts = np.sqrt(np.mean(np.sum((W * data.model.values) ** 2, axis=2), axis=0))
    usual = np.maximum(np.maximum(usual, parts), 1e-300)
    sigma = usual
    base = base_of(data.model, compressed(flat(W / sigma[:, None])))
    independent = y.size / thin
    if independent < base.rank + 1 or y.size <= base.rank:
        raise InputError(
            f"{mech.name}: {independent:.0f} independent equations are too few for {base.rank} "
            f"combinations of parameters ({counted(len(data.t), 'sample')} of "
            f"{counted(len(data.labels), 'row')}); measure a longer motion, or name fewer unknown"
        )
    at = [data.model.names.index(name) for name in base.independent]
    left = 1.0 - base.rank * thin / y.size
    rows = np.concatenate([W[:, :, at], y[:, :, None]], axis=2)
    for _ in range(REWEIGHTED):
        R = compressed(flat(rows / sigma[:, None]))
        beta = least_squares(R[:, :-1], R[:, -1])
        missed = y - W[:, :, at] @ beta
        sigma = np.maximum(np.sqrt(np.mean(missed**2, axis=0) / left), NO_NOISE * usual)
    return base, np.concatenate([W, y[:, :, None]], axis=2) / sigma[:, None], sigma, beta


def deviations(A: Array) -> Vector:
    """(n,): standard deviations of x by least squares ``A x = b``, for errors of b of 1."""
    R = np.linalg.qr(A, mode="r")
    found: Vector = np.linalg.norm(solve_triangular(R, np.eye(len(R))), axis=1)
    return found


def intervals_of(Wy: Array, base: BaseParameters, beta: Vector, thin: float) -> Array:
    """95 % intervals (b, 2) of base parameters by least squares, from weighted rows."""
    names: Parameters = base.model
    at = [names.names.index(name) for name in base.independent]
    A = flat(Wy)[:, at]
    norms = np.linalg.norm(A, axis=0)
    spread = deviations(A / norms) / norms * thin**0.5
    freedom = max(len(A) / thin - len(at), 1.0)
    half = spread * float(student.ppf(0.5 + 0.5 * LEVEL, freedom))
    return np.column_stack([beta - half, beta + half])


def effects(data: Regression) -> Vector:
    """For each parameter the value that by itself explains efforts of the usual size: inf for
    those without influence."""
    usual = np.sqrt(np.mean(data.y**2, axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(usual > 0.0, usual, np.nan)[:, None] / np.sqrt(np.mean(data.W**2, axis=0))
    found = np.where(np.isfinite(found), found, np.inf)
    least: Vector = found.min(axis=0, initial=np.inf)
    return least
