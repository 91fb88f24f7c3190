"""Baumgarte's stabilisation: constraint errors decay like a critically damped spring.

    G a = -drift - s        s = (2/T) rate + error / T^2        both roots -1/T

Only this file has the formula, and the precedence of T: a T of the call, by name or for all, takes
precedence over that of the constraint. False means no stabilisation; None means "not given".
References: Baumgarte; R. Featherstone, Rigid Body Dynamics Algorithms, section 8.3;
docs/derivations.md, "Stabilisation".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from holoctl.base.checks import Vector, known_name, positive
from holoctl.base.errors import InputError
from holoctl.constraints.constraint_protocol import Constraint
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import rows_of

__all__ = [
    "TimeConstants",
    "check_time_constants",
    "stabilisation",
    "stiffness",
    "time_constant",
    "time_constants",
]

TimeConstants = float | Literal[False] | Mapping[str, float | Literal[False]] | None
"""T of a call, s: for all constraints, or by name. False: no stabilisation. If not given (None),
and for constraints not named: that of each constraint."""


class Quantity(Protocol):
    """Operations of a number, an array, or a CasADi expression that the formula uses."""

    def __add__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...


X = TypeVar("X", bound=Quantity)


def stabilisation(rate: X, error: X, T: float | Vector) -> X:
    """``(2/T) rate + error / T^2``, of floats, arrays or expressions alike; T > 0, finite, s."""
    found: X = (2.0 / T) * rate + error / T / T  # T^2 may be beyond floats
    return found


def time_constants(mech: Mechanism, t_stab: TimeConstants = None) -> Vector:
    """(m,) T of each row, s; inf without stabilisation."""
    found = np.full(mech.row_scale.size, np.inf)
    for constraint, name in zip(mech.constraints, mech.constraint_names, strict=True):
        T = time_constant(constraint, name, t_stab)
        if np.isfinite(T):
            found[rows_of(mech, name)] = T
    return found


def stiffness(mech: Mechanism, t_stab: TimeConstants = None) -> float:
    """Largest ratio of the acceleration of stabilisation to the error, or to its rate, that causes
    it."""
    shortest = float(time_constants(mech, t_stab).min(initial=np.inf))
    return 1.0 + 2.0 / shortest + 1.0 / shortest / shortest


def time_constant(constraint: Constraint, name: str, t_stab: TimeConstants = None) -> float:
    """T of one constraint, s; inf without stabilisation."""
    T = t_stab.get(name) if isinstance(t_stab, Mapping) else t_stab
    T = constraint.t_stab if T is None else T
    return float("inf") if T is None or T is False else T


def check_time_constants(mech: Mechanism, t_stab: Any) -> None:
    """Raise `InputError` for anything but time constants of this mechanism."""
    if t_stab is None or t_stab is False:
        return
    if not isinstance(t_stab, Mapping):
        positive("t_stab", t_stab, "s")
        return
    for name, T in t_stab.items():
        known_name(name, mech.constraint_names, "constraint", "t_stab")
        if T is None:
            raise InputError(
                f"t_stab[{name!r}] must be a time constant, s, or False for none; got None; omit "
                "the name to use that of the constraint"
            )
        if T is not False:
            positive(f"t_stab[{name!r}]", T, "s")
