"""Limits of files on their mechanism: those of the robot's file, and those of the YAML file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from holoctl.base.errors import InputError
from holoctl.io.reader_limits import FilePlace
from holoctl.io.xml import blamed_on
from holoctl.mechanism.bound_limits import bound_limits, coordinates_called
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.limits import KINDS, RANGES, Limits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["FileLimits", "with_limits"]

_INF = float("inf")


@dataclass(frozen=True)
class FileLimits:
    """What a file says of limits; names of the mechanism are not looked up yet.

    Attributes
    ----------
    place : FilePlace or None
        Where it stands; None where a file says nothing.
    given : list of (str, str or None, value, FilePlace)
        Which of `Limits`; of what, or of every motor (None); how large; where.
    """

    place: FilePlace | None = None
    given: list[tuple[str, str | None, Any, FilePlace]] = field(default_factory=list)


def with_limits(mech: Mechanism, of_robot: FileLimits, of_sheet: FileLimits) -> Mechanism:
    """The mechanism with the limits of its model, narrowed by those that the file of the robot has
    besides; and instead of these what the YAML file says, name by name.

    Raises
    ------
    LoadError
        With the line, for names that the mechanism does not have, and limits that leave nothing.
    """
    model = limits_of(mech)
    found: dict[str, dict[str, Any]] = {what: dict(getattr(model, what) or {}) for what in KINDS}
    _put(mech, of_robot, found, _narrower)
    _put(mech, of_sheet, found, lambda known, x: x)
    for what in RANGES:
        kept = ((name, _plain(x)) for name, x in found[what].items())
        found[what] = {name: x for name, x in kept if x != _INF}
    if not any(found.values()):
        return mech
    limits = Limits(**{what: x or None for what, x in found.items()})
    place = of_sheet.place or of_robot.place
    if place is None:
        return replace(mech, limits=limits)
    with blamed_on(place):
        return replace(mech, limits=limits)


def _put(
    mech: Mechanism, limits: FileLimits, found: dict[str, dict[str, Any]],
    both: Callable[[Any, Any], Any],
) -> None:  # fmt: skip
    """Note the limits of a file; what was known, and what the file says, becomes `both`."""
    named: dict[tuple[str, str], str] = {}
    for what, name, x, place in limits.given:
        with blamed_on(place):
            bound_limits(mech, Limits(**{what: x if name is None else {name: x}}))
            for one in _names(mech, what, name):
                if (what, one) in named:
                    raise InputError(
                        f"limits: {what}: {named[what, one]!r} and {name!r} name the same: {one!r}"
                    )
                named[what, one] = name or "every motor"
                known = found[what].get(one)
                found[what][one] = x if known is None else both(known, x)
                Limits(**{what: {one: found[what][one]}})


def _names(mech: Mechanism, what: str, name: str | None) -> tuple[str, ...]:
    """The motors or coordinates that are meant, each by its own name."""
    if what in ("effort", "speed_torque"):
        return mech.actuator_names if name is None else (name,)
    if name is None:
        return tuple(mech.actuated)
    return coordinates_called(mech, name, f"limits: {what}")


def _plain(x: Any) -> Any:
    """A range as a number, where it is the same on both sides."""
    return x[1] if isinstance(x, tuple) and x[0] == -x[1] else x


def _narrower(known: Any, x: Any) -> tuple[float, float]:
    """What two ranges have in common."""
    (lower, upper), (least, most) = (r if isinstance(r, tuple) else (-r, r) for r in (known, x))
    return max(lower, least), min(upper, most)
