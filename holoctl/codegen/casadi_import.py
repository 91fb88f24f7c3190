"""CasADi, which only code generation needs: the extra ``holoctl[codegen]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holoctl.base.errors import InputError

__all__ = ["SX", "casadi_module", "column_asked", "result_asked"]

SX = Any
"""A `casadi.SX`: a matrix of expressions."""


def casadi_module() -> Any:
    """The module, or an `InputError` that says how to install it."""
    try:
        import casadi
    except ImportError:
        raise InputError(
            "generating code needs CasADi, which is not installed: pip install 'holoctl[codegen]'"
        ) from None
    return casadi


def result_asked(owner: str, function: Callable[[], Any]) -> Any:
    """The result of a user-defined function; an `InputError` if it raises an exception."""
    try:
        return function()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{owner} raised {type(error).__name__}: {error}") from error


def column_asked(owner: str, function: Callable[[], Any], size: int) -> SX:
    """The result of a user-defined function that returns expressions, as a column (size, 1)."""
    ca, x = casadi_module(), result_asked(owner, function)
    if type(x) is not ca.SX or x.numel() != size or min(x.shape) != 1:
        given = x.shape if type(x) is ca.SX else type(x).__name__
        raise InputError(f"{owner} must return a casadi.SX of {size} entries; got {given}")
    return x.reshape((size, 1))
