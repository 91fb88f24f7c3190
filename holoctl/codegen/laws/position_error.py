"""The error of a position as an expression, of motors and of tasks."""

from __future__ import annotations

from holoctl.base.angles import wrapped
from holoctl.codegen.casadi_extra import SX, casadi_module

__all__ = ["position_error"]


def position_error(q: SX, at: int, turning: bool, wanted: SX) -> SX:
    """From the position at a place in q to the one that is wanted; wrapped to half a turn where it
    turns without end, and q has cosine and sine."""
    if turning:
        return wrapped(wanted - casadi_module().atan2(q[at + 1], q[at]), _remainder)
    return wanted - q[at]


def _remainder(x: SX, y: float) -> SX:
    """``x - y floor(x / y)``, as `numpy.remainder`."""
    return x - y * casadi_module().floor(x / y)
