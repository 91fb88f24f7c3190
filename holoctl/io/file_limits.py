"""Limits of a mechanism given by files: by the robot's file, and by the YAML file."""

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
    """The limits in a file; their names are not looked up in the mechanism yet.

    Attributes
    ----------
    place : FilePlace or None
        The place of the limits in the file; None if it has none.
    given : list of (str, str or None, value, FilePlace)
        The field of `Limits`; the name, or None for every motor; the value; its place.
    """

    place: FilePlace | None = None
    given: list[tuple[str, str | None, Any, FilePlace]] = field(default_factory=list)


def with_limits(mech: Mechanism, of_robot: FileLimits, of_sheet: FileLimits) -> Mechanism:
    """The mechanism with the limits of its model, narrowed by further limits of the robot's file;
    those of the YAML file replace them, name by name.

    Raises
    ------
    LoadError
        With the line, for names that the mechanism does not have, and for empty ranges.
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
    """Add the limits of a file; `both` combines a known limit with that of the file."""
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
    """The names of all motors or coordinates that a name refers to."""
    if what in ("effort", "speed_torque"):
        return mech.actuator_names if name is None else (name,)
    if name is None:
        return tuple(mech.actuated)
    return coordinates_called(mech, name, f"limits: {what}")


def _plain(x: Any) -> Any:
    """A symmetric range as a number; any other range unchanged."""
    return x[1] if isinstance(x, tuple) and x[0] == -x[1] else x


def _narrower(known: Any, x: Any) -> tuple[float, float]:
    """The intersection of two ranges."""
    (lower, upper), (least, most) = (r if isinstance(r, tuple) else (-r, r) for r in (known, x))
    return max(lower, least), min(upper, most)
