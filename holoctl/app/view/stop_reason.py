"""Why a drag stops, in words.

    K x ~ 0        x: the motion that the dragged and the held rows do not determine

If only two bars move in x, each rotates about its own fixed axis and about their common joint. If
these three axes are parallel, they lie in one plane (Kennedy and Aronhold): the bars are in line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Vector, named
from holoctl.base.linalg import singular_values
from holoctl.base.tolerances import DRAG_LOCKED
from holoctl.closing.body_graph import Bodies
from holoctl.design.paths.path_continuation import System
from holoctl.doctor.mobility_analysis import mobility
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import rows_at
from holoctl.tree.kinematics import kinematics

__all__ = ["locked", "row_opens", "some", "stop_reason"]

LED_SHARE = 0.3
"""In a message about a dead point, coordinates and bodies are named whose component is more than
this fraction of the largest."""


LED_UNSEEN = 0.05
"""A drag stopped at a dead point if the smallest singular value of K is below this."""

IN_LINE = 0.03
"""Axes of two bars count as parallel, and their motions as pure rotations, up to this error."""


MOST_NAMED = 4


def stop_reason(system: System, q: Vector, value: Any, motor: int) -> str:
    """Why a drag cannot be continued from a closed configuration."""
    mech = system.mech
    K = system.filled(q, value)[0].copy()
    if not np.isfinite(K).all():
        return "It leaves the range in which its rows can be evaluated."
    _, s, Vt = np.linalg.svd(K)
    what = f"{mech.actuator_names[motor]!r}" if motor >= 0 else "The motion"
    if not s[-1] < LED_UNSEEN:
        return f"{what} stops here: it cannot be proved that the next step stays on this branch."
    x = Vt[-1]
    parts = np.argsort(-np.abs(x))
    parts = parts[np.abs(x[parts]) > LED_SHARE * np.abs(x).max()]
    who = some([mech.coordinate_names[i] for i in parts.tolist()])
    r = system.part.rank
    weakest = float(singular_values(K[:r])[-1]) if r else 1.0
    if weakest < 3.0 * float(s[-1]):
        return (
            f"{what} stops before a singular configuration: constraints become dependent there, "
            f"and paths of the mechanism cross or end, with {who}: its path there is not "
            "determined."
        )
    bars = _bars(mech, q, system.part, x)
    subject = "the motors" if motor >= 0 else "the constraints"
    return (
        f"{what} stops before a dead point: {bars}{subject} do not determine the motion of {who}."
    )


def row_opens(mech: Mechanism, q: Vector, part: Partition) -> str:
    """A sentence that names the row, left out as redundant, that would open."""
    error = np.abs(mech.row_scale * rows_at(mech, q, np.zeros(mech.nv), 0.0).error)
    error[part.rows] = 0.0
    worst = int(np.argmax(error))
    return (
        f"It stops before {mech.row_names[worst]!r}, a row that was left out as redundant, would "
        f"open by {error[worst]:.1e} (scaled): the kept rows do not determine the motion."
    )


def locked(mech: Mechanism, q: Vector, part: Partition, motor: int) -> str:
    """Why a motor cannot move."""
    if motor < 0:
        return "The motion cannot be continued."
    name = mech.actuator_names[motor]
    if part.rank == mech.nv:
        return f"{name!r} is locked: the constraints leave the mechanism no motion."
    if not mech.B[:, motor].any():
        return f"{name!r} acts on no coordinate."
    own = {mech.coordinate_names[i] for i in np.flatnonzero(mech.B[:, motor]).tolist()}
    names = {mech.coordinate_names[i] for i in _locked_coordinates(mech, q)}
    if own <= names:
        return f"{name!r} is locked: the constraints do not let it move."
    return (
        f"{name!r} is at its own dead point: it does not move in any motion here, so it does not "
        "determine the direction of one."
    )


def _locked_coordinates(mech: Mechanism, q: Vector) -> set[int]:
    """Coordinates of joints that cannot move, computed once in each thread."""

    def found() -> set[int]:
        joints = set(mobility(mech, q).locked_joints)
        names = [mech.model.names[j] for j in mech.joint_of.tolist()]
        return {
            i
            for i, (name, joint) in enumerate(zip(mech.coordinate_names, names, strict=True))
            if name in joints or joint in joints or joint.rpartition("[")[0] in joints
        }

    return mech.per_thread("view locked", found)


class _Turn(NamedTuple):
    """A moving body: its joint, and its twist."""

    body: int
    twist: Vector


def _bars(mech: Mechanism, q: Vector, part: Partition, x: Vector) -> str:
    """The bars that are in line, or the bodies that can move, as the start of a sentence."""
    kin = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), 0.0)
    bodies = Bodies(mech, kin, part.tolerance)
    inner = {b for parts in bodies.within.values() for b in parts}
    twists = {j: bodies.twist(j, x) for j in range(1, mech.model.njoints) if j not in inner}
    most = max((float(np.linalg.norm(w)) for w in twists.values()), default=0.0)
    if not most > DRAG_LOCKED:
        return ""
    moving = dict[int, _Turn]()
    for j, w in twists.items():
        if np.linalg.norm(w) > LED_SHARE * most:
            moving.setdefault(int(bodies.welded[j]), _Turn(j, w))
    shown = _bodies(bodies, [turn.body for turn in moving.values()])
    if len(moving) == 2 and _in_line(bodies, *moving.values()):
        return f"{some(shown)} are in line, and "
    together = "" if len(shown) == 1 else " together"
    return f"{some(shown)} can move{together} while the held motors are at rest: "


def _bodies(bodies: Bodies, shown: list[int]) -> list[str]:
    """Names of bodies, heavy ones first, without massless ones between the parts of a joint."""
    mass = np.array([bodies.mech.model.inertias[j].mass for j in shown])
    order = [i for i in np.argsort(-mass, kind="stable").tolist() if mass[i] > 0.0]
    names = (bodies.names([shown[i]])[0] for i in order or range(len(shown)))
    return list(dict.fromkeys(names))


def _in_line(bodies: Bodies, one: _Turn, two: _Turn) -> bool:
    """Whether two bodies rotate relative to the world and to each other about parallel axes, and
    are connected by joints."""
    turns = [one.twist, two.twist, one.twist - two.twist]
    w = np.array([turn[3:] for turn in turns])
    size = np.linalg.norm(w, axis=1)
    if not size.min() > LED_SHARE * IN_LINE * size.max():
        return False
    n = w / size[:, None]
    pure = all(abs(turn[:3] @ a) < IN_LINE * s for turn, a, s in zip(turns, n, size, strict=True))
    if not pure or max(np.linalg.norm(np.cross(n[0], n[i])) for i in (1, 2)) > IN_LINE:
        return False
    label = bodies.welded
    mine = {int(label[one.body]), int(label[two.body])}
    ties = [{int(label[e.a]), int(label[e.b])} for e in bodies.edges]
    held = all(any(b in tie and tie != mine for tie in ties) for b in mine)
    return held and mine in ties


def some(names: list[str], most: int = MOST_NAMED) -> str:
    """The first names of a list, quoted, and the number of the others."""
    return named(names, most, "other")
