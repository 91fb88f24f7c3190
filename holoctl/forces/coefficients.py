"""Coefficients of forces, checked."""

from __future__ import annotations

from typing import Any

from holoctl.base.checks import number
from holoctl.base.errors import InputError

__all__ = ["coefficient"]


def coefficient(name: str, value: Any) -> float:
    """A stiffness, damping or friction coefficient: a finite number, not negative."""
    x = number(name, value)
    if x < 0.0:
        raise InputError(f"{name} must not be negative; got {x:g}")
    return x
