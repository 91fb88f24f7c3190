"""The key ``limits`` of a YAML file: limits of motors and joints, by name."""

from __future__ import annotations

from holoctl.io.file_limits import FileLimits
from holoctl.io.xml import blamed_on
from holoctl.io.yaml_entries import Entry
from holoctl.mechanism.limits import KINDS, Limits

__all__ = ["limits_in"]

_INFINITE = {f"{sign}{dot}inf": float(f"{sign}inf") for sign in ("", "+", "-") for dot in ("", ".")}


def limits_in(entry: Entry) -> FileLimits:
    """Read the key ``limits``.

    Raises
    ------
    LoadError
        With the line, for keys and values that are not understood.
    """
    found = FileLimits(entry)
    for what, value in entry.fields(KINDS).items():
        read = _points if what == "speed_torque" else _range
        for name, x in value.fields().items() if value.is_mapping else [(None, value)]:
            limit = read(x, f"limits: {what}", name is None)
            with blamed_on(x):
                Limits(**{what: limit if name is None else {name: limit}})
            found.given.append((what, name, limit, x))
    return found


def _range(entry: Entry, what: str, of_all: bool) -> float | tuple[float, float]:
    """A number, or a pair [lower, upper]."""
    if not entry.is_list:
        return _number(entry)
    items = entry.items()
    if len(items) != 2:
        motors = "; for a value for each motor, name them: {motor: value}" if of_all else ""
        raise entry.error(
            f"{what}: expected a number or a pair [lower, upper]; got a list of "
            f"{len(items)}{motors}"
        )
    return _number(items[0]), _number(items[1])


def _number(entry: Entry) -> float:
    """A number, which may be infinite: no limit."""
    infinite = None if entry.is_list or entry.is_mapping else _INFINITE.get(entry.node.value)
    return entry.number() if infinite is None else infinite


def _points(entry: Entry, what: str, of_all: bool) -> list[tuple[float, float]]:
    """Break points, a list of pairs [speed, effort]."""
    found = list[tuple[float, float]]()
    for item in entry.items():
        numbers = item.numbers() if item.is_list else []
        if len(numbers) != 2:
            raise item.error(
                f"{what}: a motor has a list of break points, pairs [speed, effort]: "
                "[[0, 2], [10, 0]]"
            )
        found.append((numbers[0], numbers[1]))
    return found
