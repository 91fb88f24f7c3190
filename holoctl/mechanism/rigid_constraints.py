"""Constraints as Pinocchio's `RigidConstraintModel`, and back.

    here                                    Pinocchio
    spherical closure, contact of 3 rows    CONTACT_3D
    weld                                    CONTACT_6D
    revolute closure                        two CONTACT_3D, on the axis of the hinge
    others                                  none: refused by name

Frame a is joint 1, frame b joint 2; the world is always joint 2, because some of Pinocchio's
algorithms fail with the world as the first body. Axes of multipliers: LOCAL are those of joint 1.
Stabilisation with time constant T: Kp = 1 / T^2, Kd = 2 / T.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, entries, one_of, plain_name, shown
from holoctl.base.errors import InputError
from holoctl.constraints.closure import Closure
from holoctl.constraints.constraint_protocol import BoundRows, Constraint
from holoctl.constraints.contact import Contact
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.kinds import DIRECTION, LINEAR, ORIENTATION
from holoctl.constraints.rod import Rod
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import check_model, plain
from holoctl.tree.kinematics import place

__all__ = [
    "ON_AXIS",
    "closures_of",
    "hinge_point",
    "instead",
    "is_point",
    "is_weld",
    "rigid_constraint_models",
    "with_hinges",
]

ON_AXIS = ", axis"
"""The end of the name of the second point of a hinge, from which readers know it again."""

GROUND = ("placement", "reference")
"""What the world's frame of a constraint is: its placement, or the reference configuration."""

SAME_PLACE = 1e-6  # m, rad
"""A frame within this of the origin of the world at the reference is there."""

SAME_AXIS = 1e-12
"""Axes of a hinge agree up to this in each component."""

ON_Z = 1e-9
"""The second point of a hinge is on z of both frames up to this part of its distance."""

CRITICAL = 1e-9
"""Relative difference of Kd^2 and 4 Kp up to which a constraint is critically damped."""

POINT_BESIDE = 0.1  # m
"""Distance of the second point of a hinge whose frames are at the origins of their joints."""


def is_point(rows: WrenchRows) -> bool:
    """Whether the rows of a table fix a point: three independent linear rows."""
    straight = rows.kinds == 3 * (LINEAR,)
    return straight and abs(float(np.linalg.det(rows.a))) > 1e-3


def is_weld(rows: WrenchRows) -> bool:
    """Whether a table is a weld: rows of a point, and all orientation rows."""
    return Counter(rows.kinds) == {LINEAR: 3, ORIENTATION: 3}


def hinge_point(rows: WrenchRows) -> Vector | None:
    """(3,) a second point of the axis of a hinge, the same in the axes of both frames, m; None for
    rows that are no hinge."""
    if rows.kinds != (*3 * (LINEAR,), *2 * (DIRECTION,)) or len(rows.labels) != 5:
        return None
    if abs(float(np.linalg.det(rows.a[:3]))) < 1e-3:
        return None
    normal, axis = np.cross(rows.a[3], rows.a[4]), rows.b[3]
    size = float(np.linalg.norm(normal))
    if size < 1e-3 or np.abs(rows.b[4] - axis).max() > SAME_AXIS:
        return None
    normal, axis = normal / size, axis / np.linalg.norm(axis)
    if min(np.abs(normal - axis).max(), np.abs(normal + axis).max()) > SAME_AXIS:
        return None
    arms = (np.linalg.norm(f.placement.translation) for f in (rows.frames1[0], rows.frames2[0]))
    point: Vector = axis * (max(map(float, arms)) or POINT_BESIDE)
    return point


def rigid_constraint_models(
    model: pin.Model,
    constraints: Sequence[Constraint],
    names: Sequence[str],
    bound: Sequence[BoundRows],
    hinges: bool = True,
) -> tuple[pin.StdVec_RigidConstraintModel, dict[str, str]]:
    """Pinocchio's constraint models, and the names of constraints without one, each with what to do
    instead. With `hinges`, a revolute closure is two points of its axis."""
    models, others = pin.StdVec_RigidConstraintModel(), dict[str, str]()
    for constraint, name, rows in zip(constraints, names, bound, strict=True):
        if type(rows) is not WrenchRows:
            others[name] = instead(constraint)
            continue
        weld, beside = is_weld(rows), hinge_point(rows) if hinges else None
        if not weld and beside is None and not is_point(rows):
            others[name] = instead(constraint)
            continue
        kind = pin.ContactType.CONTACT_6D if weld else pin.ContactType.CONTACT_3D
        points = [(name, np.zeros(3))]
        if beside is not None:
            points.append((f"{name}{ON_AXIS}", beside))
        for label, point in points:
            one = _between(model, kind, rows.frames1[0], rows.frames2[0], point)
            one.name = label
            if constraint.t_stab:
                one.m_baumgarte_parameters.Kp = 1.0 / float(constraint.t_stab) ** 2
                one.m_baumgarte_parameters.Kd = 2.0 / float(constraint.t_stab)
            models.append(one)
    return models, others


def _between(
    model: pin.Model, kind: pin.ContactType, a: Frame, b: Frame, point: Vector
) -> pin.RigidConstraintModel:
    if a.joint == 0:
        a, b = b, a
    along = pin.SE3(np.eye(3), point)
    return pin.RigidConstraintModel(
        kind, model, a.joint, a.placement * along, b.joint, b.placement * along,
        pin.ReferenceFrame.LOCAL,
    )  # fmt: skip


def instead(constraint: Constraint) -> str:
    """What to do with a constraint that is no point and no weld."""
    if isinstance(constraint, Closure):
        cut = "cut this loop at a ball joint, a hinge or a weld"
        planar = "in a planar loop joint='revolute' allows the same motion; else "
        return planar + cut if constraint.axes is not None else cut
    if isinstance(constraint, Contact):
        return "give it both tangents, tangents=True"
    if isinstance(constraint, Rod):
        return "make the rod a body between two ball joints"
    if isinstance(constraint, Coupling):
        return "a relation of coordinates; hc.forward_dynamics takes it"
    return "hc.forward_dynamics takes it"


# ------------------------------------------------------------------------------------- and back


def closures_of(
    model: pin.Model, given: Any, reference: Vector, ground: str | None
) -> tuple[Closure, ...]:
    """A spherical closure or a weld for each of Pinocchio's constraint models, and a revolute one
    for two that were written for it.

    Raises
    ------
    InputError
        For other objects, joints that the model does not have, targets that move, stabilisation
        that is not critically damped, and a constraint to the world that does not say where.
    """
    owner = "from_pinocchio: constraint_models"
    check_model(model, "from_pinocchio")
    if ground is not None:
        one_of("from_pinocchio: ground", ground, GROUND)
    models = entries(given)
    if models is None or not all(isinstance(m, pin.RigidConstraintModel) for m in models):
        raise InputError(f"{owner} must be a list of pin.RigidConstraintModel; got {shown(given)}")
    found, used = list[Closure](), set[str]()
    for i, one in enumerate(models):
        what = f"{owner}[{i}]" + (f" {plain_name(one.name)!r}" if one.name else "")
        ends = _ends(plain(model), one, what)
        ends = _grounded(model, ends, one, what, reference, ground)
        names = [f"{model.names[e.joint]}" for e in ends]
        label, k = one.name or "-".join(names), 1
        while label in used:
            k += 1
            label = f"{one.name or '-'.join(names)}-{k}"
        used.add(label)
        joint = "weld" if one.type == pin.ContactType.CONTACT_6D else "spherical"
        a, b = ((n, pin.SE3(e.placement)) for n, e in zip(names, ends, strict=True))
        found.append(Closure(a, b, joint=joint, name=label, t_stab=_time_constant(one, what)))
    return tuple(c for c, _ in with_hinges([(c, True) for c in found]) if isinstance(c, Closure))


def with_hinges(found: Sequence[tuple[Constraint, bool]]) -> list[tuple[Constraint, bool]]:
    """Constraints, each with whether it is on; two points that were written for a revolute closure
    are one again."""
    left = list[tuple[Constraint, bool]]()
    for constraint, on in found:
        hinge = _hinge(left[-1][0], constraint) if left and left[-1][1] == on else None
        if hinge is not None:
            left.pop()
        left.append((hinge or constraint, on))
    return left


def _hinge(one: Constraint, other: Constraint) -> Closure | None:
    """The revolute closure of two points, the second on its axis z; None for others."""
    if not (isinstance(one, Closure) and isinstance(other, Closure)):
        return None
    if not (one.joint == other.joint == "spherical" and one.t_stab == other.t_stab):
        return None
    if other.default_name != one.default_name + ON_AXIS:
        return None
    beside = list[Vector]()
    for first, second in ((one.a, other.a), (one.b, other.b)):
        if isinstance(first, str) or isinstance(second, str) or first[0] != second[0]:
            return None
        beside.append(np.array(first[1].actInv(second[1].translation)))
    far = float(beside[0][2])
    if not far or max(np.abs(x - [0.0, 0.0, far]).max() for x in beside) > ON_Z * abs(far):
        return None
    return replace(one, joint="revolute")


def _ends(model: pin.Model, one: pin.RigidConstraintModel, what: str) -> tuple[Frame, Frame]:
    """The frames of joint 1 and joint 2, checked."""
    if one.type not in (pin.ContactType.CONTACT_3D, pin.ContactType.CONTACT_6D):
        raise InputError(f"{what}: its type must be CONTACT_3D or CONTACT_6D; got {one.type}")
    for n, joint in (("joint1_id", one.joint1_id), ("joint2_id", one.joint2_id)):
        if not 0 <= joint < model.njoints:
            raise InputError(
                f"{what}: {n} is {joint}, but the model has the joints 0 to {model.njoints - 1}: "
                "an unknown name gives such a number, or the constraint is of another model"
            )
    moving = (one.desired_contact_velocity.vector, one.desired_contact_acceleration.vector)
    if any(x.any() for x in moving) or not one.desired_contact_placement.isIdentity():
        raise InputError(
            f"{what}: a desired placement, velocity or acceleration is not read: put the placement "
            "into joint2_placement; a target that moves is a hc.Custom with a time"
        )
    return (
        Frame(one.joint1_id, one.joint1_placement, ""),
        Frame(one.joint2_id, one.joint2_placement, ""),
    )


def _grounded(
    model: pin.Model, ends: tuple[Frame, Frame], one: pin.RigidConstraintModel, what: str,
    reference: Vector, ground: str | None,
) -> tuple[Frame, Frame]:  # fmt: skip
    """The frames; that of the world at the place where the other one is held."""
    world = [e for e in ends if e.joint == 0]
    if len(world) != 1 or ground == "placement":
        return ends
    body = next(e for e in ends if e.joint)
    there = place(model, reference, body)
    held = Frame(0, there, "")
    if ground is None:
        apart = world[0].placement.actInv(there)
        whole = one.type == pin.ContactType.CONTACT_6D
        off = pin.log6(apart).vector if whole else apart.translation
        if not world[0].placement.isIdentity() or np.abs(off).max() <= SAME_PLACE:
            return ends
        raise InputError(
            f"{what}: a constraint to the world with an identity placement, as Pinocchio leaves it "
            "if no place is given; at the reference the frame is at "
            f"{np.round(there.translation, 4).tolist()}: ground='reference' holds it there, "
            "ground='placement' at the origin of the world"
        )
    return (held, body) if ends[0].joint == 0 else (body, held)


def _time_constant(one: pin.RigidConstraintModel, what: str) -> float | None:
    """T of ``Kp = 1 / T^2``, ``Kd = 2 / T``; None if both are zero."""
    kp, kd = float(one.m_baumgarte_parameters.Kp), float(one.m_baumgarte_parameters.Kd)
    if kp == kd == 0.0:
        return None
    if kp > 0.0 and kd > 0.0 and abs(kd * kd / (4.0 * kp) - 1.0) <= CRITICAL:
        return 2.0 / kd
    raise InputError(
        f"{what}: stabilisation here is critically damped, Kp = 1 / T^2 and Kd = 2 / T with one "
        f"time T; got Kp = {kp:g} and Kd = {kd:g}: set both to zero, or Kd = {2 * abs(kp) ** 0.5:g}"
    )
