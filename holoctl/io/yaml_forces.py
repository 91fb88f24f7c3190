"""The key ``forces`` of a YAML file: friction and springs, with the parameters of their classes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import known_name
from holoctl.forces.force_protocol import Force
from holoctl.forces.joint_friction import JointFriction
from holoctl.forces.joint_spring import JointSpring
from holoctl.forces.spring import Spring
from holoctl.io.reader_limits import FilePlace
from holoctl.io.xml import blamed_on
from holoctl.io.yaml_entries import Entry

__all__ = ["forces_of"]

log = logging.getLogger(__name__)


def forces_of(entries: list[Entry]) -> list[tuple[Force, FilePlace]]:
    """The forces that the list `entries` describes; names of the model are not looked up yet.

    Raises
    ------
    LoadError
        With the line, for keys and values that are not understood, and duplicate names.
    """
    found: list[tuple[Force, FilePlace]] = []
    names: set[str] = set()
    for entry in entries:
        force = _force(entry)
        if force.default_name in names:
            raise entry.error(
                f"forces: two are called {force.default_name!r}; give one of them a name"
            )
        names.add(force.default_name)
        found.append((force, entry))
    return found


def _force(entry: Entry) -> Force:
    kind = entry.fields().get("type")
    if kind is None:
        raise entry.error(f"forces: the key 'type' is missing; valid: {', '.join(_TYPES)}")
    with blamed_on(kind):
        make, words, needed = _TYPES[known_name(kind.text(), tuple(_TYPES), "force", "forces")]
    former = {old: now for old, now in _FORMER.items() if now in words}
    fields = dict(entry.fields(("type", *words, *former)))
    for old in former.keys() & fields.keys():
        log.warning(
            "%s, line %d: forces: the key %r is called %r now, and goes with the next version",
            entry.file, fields[old].line, old, former[old],
        )  # fmt: skip
        fields[former[old]] = fields.pop(old)
    missing = [word for word in needed if word not in fields]
    if missing:
        raise entry.error(
            f"forces: {kind.text()}: the key {missing[0]!r} is missing; "
            f"valid keys: {', '.join(('type', *words))}"
        )
    given = {word: words[word](value) for word, value in fields.items() if word != "type"}
    with blamed_on(entry):
        force: Force = make(**given)
    return force


# ---------------------------------------------------------------------------------- values


def _each(one: Callable[[Entry], Any]) -> Callable[[Entry], Any]:
    """One value for all joints, or a mapping from joints to values."""

    def read(entry: Entry) -> Any:
        if entry.is_mapping:
            return {joint: one(value) for joint, value in entry.fields().items()}
        return one(entry)

    return read


def _pair(entry: Entry) -> tuple[float, ...]:
    found = tuple(item.number() for item in entry.items())
    if len(found) != 2:
        raise entry.error(
            f"forces: stribeck is a pair of numbers, [peak, speed]; got {len(found)} of them"
        )
    return found


def _rest(entry: Entry) -> float | list[float]:
    return entry.numbers() if entry.is_list else entry.number()


def _frame(entry: Entry) -> str | tuple[str, pin.SE3]:
    """The name of a frame, or a frame and a point in its axes: [frame, [x, y, z]]."""
    if not entry.is_list:
        return entry.text()
    parts = entry.items()
    point = parts[1].numbers() if len(parts) == 2 else []
    if len(point) != 3:
        raise entry.error(
            "forces: an end of a spring is the name of a frame, or a frame and a point in its "
            "axes: [frame, [x, y, z]]"
        )
    return parts[0].text(), pin.SE3(np.eye(3), np.array(point))


_Words = dict[str, Callable[[Entry], Any]]

_TYPES: dict[str, tuple[Callable[..., Any], _Words, tuple[str, ...]]] = {
    "joint_friction": (
        JointFriction,
        {
            "viscous": _each(Entry.number),
            "coulomb": _each(Entry.number),
            "stribeck": _each(_pair),
            "transition": _each(Entry.number),
            "name": Entry.text,
        },
        (),
    ),
    "joint_spring": (
        JointSpring,
        {
            "joint": Entry.text,
            "stiffness": Entry.number,
            "rest": _rest,
            "damping": Entry.number,
            "name": Entry.text,
        },
        ("joint", "stiffness"),
    ),
    "spring": (
        Spring,
        {
            "a": _frame,
            "b": _frame,
            "stiffness": Entry.number,
            "length": Entry.number,
            "damping": Entry.number,
            "unilateral": Entry.flag,
            "name": Entry.text,
        },
        ("a", "b", "stiffness", "length"),
    ),
}
"""The class of each type, the reader of each of its keys, and its required keys."""

_FORMER = {"frame_a": "a", "frame_b": "b"}
"""Former names of keys, which work for one version with a warning."""
