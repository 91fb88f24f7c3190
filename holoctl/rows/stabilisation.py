"""Baumgarte's stabilisation: a constraint that is off comes back like a critically damped spring.

    G a = -drift - s        s = (2/T) rate + error / T^2        both roots -1/T

The formula stands here and nowhere else, and so does the answer to whose T it is: that of the call,
by name or of all, before that of the constraint. "None" is said `False`; None is "not given".
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
"""T of a call, s: of all constraints, or by name. False: none. Not given (None), and for those not
named: that of each constraint."""


class Quantity(Protocol):
    """What the formula needs of a number, an array, or an expression of CasADi."""

    def __add__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...


X = TypeVar("X", bound=Quantity)


def stabilisation(rate: X, error: X, T: float | Vector) -> X:
    """``(2/T) rate + error / T^2``, of floats, arrays or expressions alike; T > 0, finite, s."""
    found: X = (2.0 / T) * rate + error / T / T  # T^2 may be beyond floats
    return found


def time_constants(mech: Mechanism, t_stab: TimeConstants = None) -> Vector:
    """(m,) T of each row, s; inf where there is none."""
    found = np.full(mech.row_scale.size, np.inf)
    for constraint, name in zip(mech.constraints, mech.constraint_names, strict=True):
        T = time_constant(constraint, name, t_stab)
        if np.isfinite(T):
            found[rows_of(mech, name)] = T
    return found


def stiffness(mech: Mechanism, t_stab: TimeConstants = None) -> float:
    """How much larger than an error, and than its rate, an acceleration is that it asks for."""
    shortest = float(time_constants(mech, t_stab).min(initial=np.inf))
    return 1.0 + 2.0 / shortest + 1.0 / shortest / shortest


def time_constant(constraint: Constraint, name: str, t_stab: TimeConstants = None) -> float:
    """T of one constraint, s; inf where there is none."""
    T = t_stab.get(name) if isinstance(t_stab, Mapping) else t_stab
    T = constraint.t_stab if T is None else T
    return float("inf") if T is None or T is False else T


def check_time_constants(mech: Mechanism, t_stab: Any) -> None:
    """Raise `InputError` for what are no time constants of this mechanism."""
    if t_stab is None or t_stab is False:
        return
    if not isinstance(t_stab, Mapping):
        positive("t_stab", t_stab, "s")
        return
    for name, T in t_stab.items():
        known_name(name, mech.constraint_names, "constraint", "t_stab")
        if T is None:
            raise InputError(
                f"t_stab[{name!r}] must be a time constant, s, or False for none; got None; leave "
                "the name out where the constraint's own counts"
            )
        if T is not False:
            positive(f"t_stab[{name!r}]", T, "s")
