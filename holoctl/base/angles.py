"""Angles that are known up to turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["wrapped"]


def wrapped(angle: Any, remainder: Callable[[Any, float], Any] = np.remainder) -> Any:
    """An angle the shorter way round, in [-pi, pi): the error of what turns without end. Of an
    array, or of an expression, which brings its own `remainder`."""
    return remainder(angle + np.pi, 2.0 * np.pi) - np.pi
