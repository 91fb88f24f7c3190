"""CasADi, which only code generation needs: the extra ``holoctl[codegen]``."""

from __future__ import annotations

from typing import Any

from holoctl.base.errors import InputError

__all__ = ["SX", "casadi_module"]

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
