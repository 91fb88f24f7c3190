"""Gains of tasks: numbers, one for each row, or symmetric positive semidefinite matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import Array, numbers, read_only, shown
from holoctl.base.errors import InputError

__all__ = ["gain_of", "gains_of"]

GAIN_SYMMETRIC = 1e-9
"""The largest asymmetry, or negative eigenvalue, of a gain relative to its size."""


def gains_of(name: str, given: Any, rows: list[int]) -> tuple[Array, ...]:
    """Gains of several tasks: a number for all, or a sequence with one gain for each."""
    if len(rows) == 1:
        return (gain_of(name, given, rows[0]),)
    if not isinstance(given, (list, tuple)) and np.ndim(given) == 0:
        return tuple(gain_of(name, given, n) for n in rows)
    if not isinstance(given, (list, tuple, np.ndarray)) or len(given) != len(rows):
        raise InputError(
            f"{name} of {len(rows)} tasks must be a number, or a sequence of {len(rows)}, one gain "
            f"for each; got {shown(given)!r}"
        )
    return tuple(
        gain_of(f"{name}[{i}]", one, n) for i, (one, n) in enumerate(zip(given, rows, strict=True))
    )


def gain_of(name: str, given: Any, rows: int, definite: bool = False) -> Array:
    """A gain as (rows,) array if it is diagonal, else (rows, rows); symmetric positive
    semidefinite, or positive definite."""
    x = numbers(name, given, "gains")
    shapes = f"a number, ({rows},) or ({rows}, {rows})"
    if x.shape not in ((), (rows,), (rows, rows)):
        raise InputError(f"{name} must be {shapes}; got shape {x.shape}")
    if not np.isfinite(x).all():
        raise InputError(f"{name} must be finite; got {x.tolist()}")
    x = np.full(rows, x) if x.ndim == 0 else x.copy()
    if x.ndim == 2 and not np.count_nonzero(x - np.diag(x.diagonal())):
        x = x.diagonal().copy()
    size = float(np.abs(x).max(initial=0.0))
    if x.ndim == 2 and np.abs(x - x.T).max() > GAIN_SYMMETRIC * size:
        raise InputError(f"{name} must be symmetric; its asymmetry is {np.abs(x - x.T).max():.2g}")
    if x.ndim == 2:
        x = 0.5 * (x + x.T)
    sizes = x if x.ndim == 1 else np.linalg.eigvalsh(x)
    least = float(sizes.min(initial=np.inf))
    if least < -GAIN_SYMMETRIC * size or (definite and not least > GAIN_SYMMETRIC * size):
        kind = "positive definite" if definite else "positive semidefinite"
        raise InputError(f"{name} must be {kind}; its least eigenvalue is {least:.3g}")
    return read_only(x)
