"""The names that a scene shows: one label for each place, however many joints and closures are
there.

Two points have one label if they coincide at every closed configuration: a joint and its parent, if
the joint rotates and is placed at the parent's origin, as the axes of a universal joint are; an end
of a closure and a joint at the same point of a body; the two ends of a closure that holds them
together. Points that meet only now have one each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from holoctl.app.body_lines import fastened
from holoctl.app.skeleton import normal_of_plane
from holoctl.app.view.capsules import slides
from holoctl.app.view.joint_marks import motor_joints
from holoctl.base.checks import Vector
from holoctl.constraints.closure import Closure
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import translational
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import plain

__all__ = ["Label", "labels_of"]

MOTOR_SIGN = " (motor)"


class Label(NamedTuple):
    """A label at a point of a body.

    Attributes
    ----------
    joint : int
        The joint that moves the body; 0 for the world.
    place : (3,) array
        In the frame of the joint, m.
    text : str
        Names of joints, closures and motors there.
    corner : str
        The corner of the label that is at the point: those of joints, motors and closures differ,
        so that labels of neighbors overlap less.
    """

    joint: int
    place: Vector
    text: str
    corner: str


_Key = tuple[int, tuple[float, ...]]


def labels_of(mech: Mechanism) -> tuple[Label, ...]:
    """The labels of joints and motors, then those of closures and other constraints with frames.

    A joint on which a motor acts is marked as such, with the name of the motor if that is another
    one; that of a prismatic joint is at its sleeve. Joints at one place whose names differ by a
    final number, such as those of a universal joint, have one name. The names of both ends of a
    closure are replaced by that of the closure.
    """
    model, driven = plain(mech.model), motor_joints(mech)
    names: dict[_Key, list[str]] = {}
    corners: dict[_Key, str] = {}
    places: dict[_Key, tuple[int, Vector]] = {}

    same = dict[_Key, _Key]()

    def key_of(joint: int, place: Vector) -> tuple[_Key, tuple[int, Vector]]:
        joint, place = _root(mech, joint, place)
        key = (joint, tuple((np.round(place, 9) + 0.0).tolist()))
        while key in same:
            key = same[key]
        return key, (joint, place)

    for a, b in _pinned(mech):
        one, other = (key_of(f.joint, f.placement.translation)[0] for f in (a, b))
        if one != other:
            same[one] = other

    def add(joint: int, place: Vector, text: str, corner: str) -> None:
        key, (joint, place) = key_of(joint, place)
        places.setdefault(key, (joint, place))
        corners.setdefault(key, corner)
        there = names.setdefault(key, [])
        if text not in there:
            there.append(text)

    sleeves = {one.joint: (one.parent, one.place) for one in slides(mech) if one.parent}
    for j in range(1, model.njoints):
        text = model.names[j]
        if j in driven:
            text += _motors(mech, j, text)
        at = sleeves.get(j, (j, np.zeros(3)))
        add(*at, text, "bottom-left" if j in driven else "top-left")
    names = {key: _merged(there) for key, there in names.items()}
    for name, rows in zip(mech.constraint_names, mech.bound, strict=True):
        ends = [f for f in rows.anchors if f.joint] or list(rows.anchors)
        if ends:
            add(ends[-1].joint, ends[-1].placement.translation, name, "top-right")
    return tuple(Label(*places[key], ", ".join(names[key]), corners[key]) for key in names)


def _pinned(mech: Mechanism) -> Iterator[tuple[Frame, Frame]]:
    """The ends of closures that coincide: with three rows between points, or two in a plane."""
    needed = 3 if normal_of_plane(mech, mech.reference) is None else 2
    for given, rows in zip(mech.constraints, mech.bound, strict=True):
        if isinstance(given, Closure) and isinstance(rows, WrenchRows):
            between = [label for label in rows.labels if re.search(r"\.[xyz]$", label)]
            if len(between) >= needed:
                yield rows.frames1[0], rows.frames2[0]


def _merged(names: list[str]) -> list[str]:
    """One name for names that differ by a final number."""
    stems = {re.sub(r"(\[\d+\]|(?<=[a-z])\d+)$", "", name) for name in names}
    return list(stems) if len(names) > 1 and len(stems) == 1 else names


def _motors(mech: Mechanism, joint: int, name: str) -> str:
    """The sign of a motor, with its name if it is not that of the joint."""
    on = np.abs(mech.B[mech.joint_of == joint]).max(axis=0, initial=0.0) > 0.0
    motors = [m for m, acts in zip(mech.actuator_names, on.tolist(), strict=True) if acts]
    return MOTOR_SIGN if motors == [name] else f" (motor {', '.join(motors)})"


def _root(mech: Mechanism, joint: int, place: Vector) -> tuple[int, Vector]:
    """The first body in which a point is fixed: the parent, for the origin of a joint that only
    rotates."""
    model, lengths, held = plain(mech.model), translational(mech.model), set(fastened(mech))
    while joint and not np.any(np.round(place, 9)):
        columns = slice(model.idx_vs[joint], model.idx_vs[joint] + model.nvs[joint])
        parent = int(model.parents[joint])
        if joint not in held or lengths[columns].any() or parent == 0:
            break
        joint, place = parent, model.jointPlacements[joint].translation.copy()
    return joint, place
