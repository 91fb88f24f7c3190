"""Differences of angles that are known up to multiples of 2 pi."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["position_error", "wrapped"]


def wrapped(angle: Any, remainder: Callable[[Any, float], Any] = np.remainder) -> Any:
    """An angle wrapped to [-pi, pi), such as the position error of a continuous joint; an array, or
    an expression with its own `remainder`."""
    return remainder(angle + np.pi, 2.0 * np.pi) - np.pi


def position_error(q: Any, at: int, turning: bool, wanted: Any) -> Any:
    """`wanted` minus the position at index `at` of q, as an expression. A joint that is `turning`
    (continuous) has cosine and sine in q, and its error is wrapped to half a turn."""
    import casadi as ca

    def remainder(x: Any, y: float) -> Any:
        return x - y * ca.floor(x / y)

    if turning:
        return wrapped(wanted - ca.atan2(q[at + 1], q[at]), remainder)
    return wanted - q[at]
