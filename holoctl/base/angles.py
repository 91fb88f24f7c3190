"""Angles that are known up to turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["position_error", "wrapped"]


def wrapped(angle: Any, remainder: Callable[[Any, float], Any] = np.remainder) -> Any:
    """An angle the shorter way round, in [-pi, pi): the error of a continuous joint. Of an
    array, or of an expression, which brings its own `remainder`."""
    return remainder(angle + np.pi, 2.0 * np.pi) - np.pi


def position_error(q: Any, at: int, turning: bool, wanted: Any) -> Any:
    """As an expression: from the position at a place in q to the one that is wanted; wrapped to
    half a turn where the joint is continuous, and q has cosine and sine."""
    import casadi as ca

    def remainder(x: Any, y: float) -> Any:
        return x - y * ca.floor(x / y)

    if turning:
        return wrapped(wanted - ca.atan2(q[at + 1], q[at]), remainder)
    return wanted - q[at]
