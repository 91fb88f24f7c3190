"""Limits of motors and joints, as given by a caller.

    effort         lower <= u <= upper                  of motors
    speed_torque   |u| <= curve(|rate|)                 of motors that drive (do not brake)
    velocity       lower <= rate <= upper               of any coordinate, and of cut joints
    position       lower <= value <= upper              likewise
    acceleration   lower <= d rate / dt <= upper        likewise

`Limits` does not depend on a mechanism: names are looked up in `bound_limits.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from holoctl.base.checks import made_again, number, shown
from holoctl.base.errors import InputError

__all__ = ["KINDS", "MODEL", "RANGES", "Limits", "Pair", "checked_limits", "is_pair"]

Pair = tuple[float, float]

RANGES = ("effort", "velocity", "position", "acceleration")
"""Kinds of limits that are numbers or pairs."""

KINDS = (*RANGES, "speed_torque")
"""All kinds, by their names in `Limits`."""

MODEL = "model"
"""The argument `limits` that means the limits of the mechanism."""

_INF = float("inf")


@dataclass(frozen=True, repr=False)
class Limits:
    """Limits of the efforts of motors, and of positions, velocities and accelerations of joints.

    A limit is a number x, for -x ... x, or a pair (lower, upper); ``inf`` means no limit. Each of
    the first four is given as

    - a number, or a tuple (lower, upper): for every motor;
    - a list or array with an entry for each motor, a number or a pair;
    - a mapping from names to numbers or pairs.

    Parameters
    ----------
    effort : float, tuple, list or mapping, optional
        Of motors, N m or N. A mapping names motors (``mech.actuator_names``). Lower must be below
        upper; zero need not lie between them: ``{"cable": (10, 200)}`` is a cable that always
        pulls.
    velocity : float, tuple, list or mapping, optional
        rad/s or m/s; lower below zero, upper above. A mapping names any coordinate
        (``mech.coordinate_names``), any joint, for all its coordinates, and cut joints: closures
        with ``joint=``, or ``closure[i]``.
    position : float, tuple, list or mapping, optional
        rad or m, named as for `velocity`. Continuous, spherical and free joints have none. The
        angle of a cut joint needs both limits, between -pi and pi.
    acceleration : float, tuple, list or mapping, optional
        rad/s^2 or m/s^2, signs and names as for `velocity`. For a coordinate with a position limit
        it also limits the braking.
    speed_torque : list of (float, float) or mapping, optional
        Break points (speed, effort) of a motor: speeds from 0 on, increasing, rad/s or m/s; efforts
        not negative, not increasing, N m or N. The curve is linear between them and constant after
        the last. It limits the effort of a motor that drives (effort and rate of one sign); a motor
        that brakes may give the effort at speed 0. One list for every motor, or a mapping from
        motors to lists. With `effort`, the smaller counts.

    Raises
    ------
    InputError
        For values that are not numbers, a lower limit that is not below the upper one, a single
        number that is not above zero, velocities and accelerations that exclude zero, break points
        out of order. Names, and the number of motors, are checked by `Mechanism`.

    See Also
    --------
    limits_of : the limits of a mechanism.
    limited_inverse_dynamics : motor efforts within limits.
    WithinLimits : limits with a policy.
    retime : the fastest motion within limits.

    Examples
    --------
    >>> import holoctl as hc
    >>> limits = hc.Limits(effort={"left": 2.0, "right": (0.0, 5.0)}, velocity=10.0)
    >>> limits.scaled(0.5)
    Limits(effort={'left': 1.0, 'right': (0.0, 2.5)}, velocity=5.0)
    """

    effort: Any = None
    velocity: Any = None
    position: Any = None
    acceleration: Any = None
    speed_torque: Any = None

    def __post_init__(self) -> None:
        for what in RANGES:
            object.__setattr__(self, what, _canonical(what, getattr(self, what)))
        object.__setattr__(self, "speed_torque", _canonical_curves(self.speed_torque))

    def __repr__(self) -> str:
        shown = (f"{what}={x!r}" for what, x in self._given().items() if x is not None)
        return f"Limits({', '.join(shown)})"

    def __hash__(self) -> int:
        given = self._given().values()
        return hash(tuple(frozenset(x.items()) if isinstance(x, dict) else x for x in given))

    def __reduce__(self) -> tuple[Any, ...]:  # mappings that are read-only do not pickle
        return made_again, (type(self), self._given())

    def _given(self) -> dict[str, Any]:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {what: dict(x) if isinstance(x, Mapping) else x for what, x in given.items()}

    def scaled(self, factor: float) -> Limits:
        """Tighter limits, for a margin.

        Efforts (those of `speed_torque` too), velocities and accelerations are multiplied; a lower
        limit of an effort above zero, such as that of a cable that must pull, does not change, nor
        an upper one below zero. Ranges of positions shrink about their middle; one that is
        unbounded on a side does not change.

        Parameters
        ----------
        factor : float
            Above 0, at most 1.

        Returns
        -------
        Limits

        Raises
        ------
        InputError
            For another factor, and if no effort remains between the lower and the upper limit.
        """
        f = number("Limits.scaled: factor", factor)
        if not 0.0 < f <= 1.0:
            raise InputError(f"Limits.scaled: factor must be above 0, at most 1; got {f:g}")
        if f == 1.0:
            return self

        def tightened(lower: float, upper: float) -> Pair:
            return f * lower if lower < 0.0 else lower, f * upper if upper > 0.0 else upper

        def shrunk(lower: float, upper: float) -> Pair:
            if np.isinf(lower) or np.isinf(upper):
                return lower, upper
            middle, half = 0.5 * lower + 0.5 * upper, f * (0.5 * upper - 0.5 * lower)
            return middle - half, middle + half

        def lowered(points: tuple[Pair, ...]) -> tuple[Pair, ...]:
            return tuple((speed, f * effort) for speed, effort in points)

        changed: dict[str, Any] = {
            what: _each(getattr(self, what), shrunk if what == "position" else tightened)
            for what in RANGES
        }
        curves = self.speed_torque
        if isinstance(curves, Mapping):
            curves = {name: lowered(points) for name, points in curves.items()}
        elif curves is not None:
            curves = lowered(curves)
        try:
            return Limits(**changed, speed_torque=curves)
        except InputError as error:
            raise InputError(f"Limits.scaled({f:g}): {error}") from None


def checked_limits(limits: Any, owner: str, others: str = "") -> Limits:
    """`limits` if they are `Limits`, or an `InputError`, which names `others` that are valid."""
    if isinstance(limits, Limits):
        return limits
    raise InputError(
        f"{owner}: limits must be {others}hc.Limits(effort=..., velocity=..., ...); got "
        f"{_shown(limits) if isinstance(limits, str) else type(limits).__name__}"
    )


# ---------------------------------------------------------------------------- checked, in one form


def _each(given: Any, change: Callable[[float, float], Pair]) -> Any:
    """A limit of any form with each of its pairs changed; for a number x, the upper side of (-x,
    x)."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {name: _each(x, change) for name, x in given.items()}
    if isinstance(given, float):
        return change(-given, given)[1]
    if is_pair(given):
        return change(*given)
    return tuple(change(*x) for x in given)


def _canonical(what: str, given: Any) -> Any:
    """A limit in canonical form, which is a valid argument too: a float, a pair of floats for all
    motors, a tuple of pairs, one for each motor, or a mapping to floats and pairs."""
    owner = f"Limits: {what}"
    if given is None:
        return None
    if isinstance(given, Mapping):
        by_name = {_name(owner, n): _one(f"{owner} of {n!r}", what, x) for n, x in given.items()}
        return MappingProxyType(by_name) if by_name else None
    if _is_number(given) or (isinstance(given, tuple) and is_pair(given)):
        return _one(owner, what, given)
    if isinstance(given, tuple) and any(_is_number(x) for x in given):
        raise InputError(
            f"{owner}: a tuple is a pair (lower, upper) for every motor; got {_shown(given)}; a "
            "list has an entry for each motor"
        )
    if not _is_list(given):
        raise InputError(
            f"{owner} must be a number, a tuple (lower, upper), a list with an entry for each "
            f"motor, or a mapping from names; got {_shown(given)}"
        )
    both: list[Pair] = []
    for i, x in enumerate(given):
        try:
            found = _one(f"{owner}: entry {i}", what, x)
        except InputError as error:
            hint = "; one pair for all is a tuple (lower, upper)" if is_pair(given) else ""
            raise InputError(f"{error}{hint}") from None
        both.append((-found, found) if isinstance(found, float) else found)
    return tuple(both)


def _one(name: str, what: str, x: Any) -> float | Pair:
    """A number, for both sides, or a pair; checked."""
    if _is_number(x):
        both = _bound(name, x)
        if both <= 0.0:
            raise InputError(
                f"{name} must be above zero, for -x ... x; got {both:g}; limits that differ are "
                "a pair (lower, upper)"
            )
        return both
    if not is_pair(x):
        raise InputError(f"{name} must be a number or a pair (lower, upper); got {_shown(x)}")
    lower, upper = (_bound(name, side) for side in x)
    if not lower < upper:
        raise InputError(
            f"{name}: the lower limit must be below the upper one; got ({lower:g}, {upper:g})"
        )
    if what in ("velocity", "acceleration") and not lower < 0.0 < upper:
        raise InputError(
            f"{name}: the lower limit must be below zero and the upper one above; got "
            f"({lower:g}, {upper:g})"
        )
    return lower, upper


def _canonical_curves(given: Any) -> Any:
    owner = "Limits: speed_torque"
    if given is None:
        return None
    if isinstance(given, Mapping):
        by_name = {_name(owner, n): _points(f"{owner} of {n!r}", x) for n, x in given.items()}
        return MappingProxyType(by_name) if by_name else None
    return _points(owner, given)


def _points(name: str, given: Any) -> tuple[Pair, ...]:
    """Break points of one motor, checked."""
    rows = list(given) if _is_list(given) else []
    if not rows or not all(is_pair(x) for x in rows):
        raise InputError(
            f"{name} must be a list of break points (speed, effort), one or more; got "
            f"{_shown(given)}"
        )
    points = tuple(
        (number(f"{name}: speed {i}", s), number(f"{name}: effort {i}", e))
        for i, (s, e) in enumerate(rows)
    )
    (first, stall), steps = points[0], list(pairwise(points))
    if first != 0.0:
        raise InputError(
            f"{name}: the first speed must be 0, where the motor stalls; got {first:g}"
        )
    for (s, e), (faster, less) in steps:
        if not s < faster:
            raise InputError(f"{name}: speeds must be increasing; got {faster:g} after {s:g}")
        if less > e:
            raise InputError(
                f"{name}: efforts must not increase with the speed; got {less:g} after {e:g}"
            )
    if not stall > 0.0:
        raise InputError(f"{name}: the effort at speed 0 must be above zero; got {stall:g}")
    if points[-1][1] < 0.0:
        raise InputError(f"{name}: efforts must not be negative; got {points[-1][1]:g}")
    return points


def _name(owner: str, name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"{owner}: names must be text; got {_shown(name)}")
    return str(name)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple)) or (isinstance(x, np.ndarray) and x.ndim > 0)


def is_pair(x: Any) -> bool:
    """Whether these are two numbers, in a list, tuple or array."""
    return _is_list(x) and len(x) == 2 and all(_is_number(side) for side in x)


def _bound(name: str, x: Any) -> float:
    """A number that may be infinite."""
    try:
        found = float(x)
    except OverflowError:
        found = _INF if x > 0 else -_INF
    if np.isnan(found):
        raise InputError(f"{name} must be a number; got nan")
    return found


def _shown(x: Any) -> str:
    return repr(shown(x)) if isinstance(x, str) else shown(x)
