"""Argument checks of `Mechanism`: model, constraints, forces, motors, reference.

Later code relies on them and does not check these values again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import (
    Array,
    Vector,
    known_name,
    listing,
    name_list,
    number,
    numbers,
    positive,
    quoted,
    whole,
)
from holoctl.base.errors import InputError
from holoctl.base.tolerances import CLOSURE_LIMIT
from holoctl.constraints.closure import Closure
from holoctl.constraints.constraint_protocol import BoundRows, Constraint
from holoctl.constraints.joint_coordinates import Closures, part_names
from holoctl.constraints.user_constraints import check_own, is_own, of_library
from holoctl.forces.force_protocol import BoundForce, Force
from holoctl.forces.user_forces import check_own_force
from holoctl.tree.configurations import checked_configuration
from holoctl.tree.coordinates import coordinate_names
from holoctl.tree.frozen_model import FrozenModel, check_unchanged, plain
from holoctl.tree.inertia_checks import check_mass, check_moments
from holoctl.tree.numbering import depth_first_order, is_depth_first
from holoctl.tree.supported_joints import check_joint, check_placement

__all__ = [
    "actuation_matrix",
    "bound_force",
    "bound_to",
    "check_not_needed",
    "check_unique",
    "checked_constraints",
    "checked_forces",
    "checked_model",
    "checked_motors",
    "checked_parked",
    "checked_reference",
    "checked_tolerance",
    "closures_among",
    "unique_names",
]

FINEST_TOLERANCE = 1e-12  # scaled
"""Smallest tolerance of the geometry apart from 0, which means exact."""


def checked_tolerance(value: Any, owner: str) -> float:
    """A tolerance of the geometry, scaled: 0, or from 1e-12 to less than the closure limit."""
    x = number(f"{owner}: tolerance", value, "how exactly the geometry is meant, scaled")
    if x != 0.0 and not FINEST_TOLERANCE <= x < CLOSURE_LIMIT:
        raise InputError(
            f"{owner}: tolerance must be 0, for exact geometry, or from {FINEST_TOLERANCE:g} to "
            f"less than {CLOSURE_LIMIT:g}, how far closures may be open in a tick; got {x:g} "
            "(a pure number: lengths over the size of their loop, rad)"
        )
    return x


def check_unique(names: Sequence[str], must: str, hint: str = "") -> None:
    """Raise `InputError` if one of the names occurs twice."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise InputError(f"Mechanism: {must}; used twice: {listing(twice)}{hint}")


def checked_model(model: Any) -> pin.Model:
    """A frozen copy of a model, or an `InputError` for its first fault."""
    if not isinstance(model, pin.Model):
        raise InputError(
            f"Mechanism: model must be a pinocchio.Model; got {type(model).__name__} "
            "(to read a file use hc.load)"
        )
    if isinstance(model, FrozenModel):  # of another mechanism, already checked
        check_unchanged(model, "Mechanism")
        model = plain(model)
    for j in range(1, model.njoints):
        # first, because Pinocchio's createData ends the process for a composite without parts
        check_joint(f"Mechanism: joint {model.names[j]!r}", model.joints[j])
    if model.njoints < 2 or model.nv == 0:
        raise InputError("Mechanism: the model has no joints, so there is nothing to move")
    if len(model.mimicking_joints):
        raise InputError(
            "Mechanism: the model has mimic joints, for which Pinocchio's Jacobians are wrong; "
            "build it without (mimic=False) and impose each as a hc.Coupling"
        )
    if not is_depth_first(model) or not model.check(model.createData()):
        order = [model.names[j] for j in depth_first_order(model)[1:]]
        raise InputError(
            "Mechanism: the joints of the model are not numbered depth-first, and Pinocchio's "
            "inertia matrix and Jacobians would be silently wrong; hc.renumbered(model) makes "
            f"a copy in a valid order, such as: {listing(order)}"
        )
    names = list(model.names)
    check_unique(names, "joint names must differ")
    for j in range(1, model.njoints):
        _check_body(model, j)
        what = f"Mechanism: the placement of joint {names[j]!r}"
        check_placement(what, model.jointPlacements[j])
    for frame in model.frames:
        check_placement(f"Mechanism: the placement of frame {frame.name!r}", frame.placement)
    gravity = model.gravity
    if not np.isfinite(gravity.vector).all():
        raise InputError("Mechanism: the gravity of the model is not finite")
    if gravity.angular.any():
        raise InputError(
            "Mechanism: the gravity of the model has an angular part, which no gravity has; got "
            f"{gravity.angular.tolist()} (model.gravity.linear is the acceleration, m/s^2)"
        )
    copy = model.copy()
    copy.armature = _rotors(model)
    return FrozenModel(copy)


def _check_body(model: pin.Model, j: int) -> None:
    """Raise an error if the inertia of a joint's body, with all its links, is impossible."""
    inertia = model.inertias[j]
    try:
        check_mass("it", inertia.mass)
        if not np.isfinite(inertia.matrix()).all():
            raise InputError(
                f"the inertia about the joint is not finite, with {inertia.mass:.6g} kg and the "
                f"centre of mass at {inertia.lever.tolist()} m"
            )
        away = inertia.mass * float(inertia.lever @ inertia.lever)
        check_moments("the inertia about the centre of mass", inertia.inertia, away)
    except InputError as error:
        body = pin.FrameType.BODY
        links = [f.name for f in model.frames if f.parentJoint == j and f.type == body]
        raise InputError(
            f"Mechanism: the body of joint {model.names[j]!r}"
            f"{f' ({listing(links, 5)})' if links else ''}: {error}"
        ) from None


def _rotors(model: pin.Model) -> Vector:
    """Rotor inertia of each coordinate: the armature; if it is zero, that of rotor and gear.

    This is Pinocchio's convention: from an SRDF it stores rotor inertia, gear ratio and, as
    armature, ratio^2 times rotor inertia; its dynamics use the armature only.
    """
    for what in ("armature", "rotorInertia", "rotorGearRatio"):
        size = np.size(getattr(model, what))
        if size != model.nv:
            raise InputError(
                f"Mechanism: model.{what} must have {model.nv} entries, one for each coordinate; "
                f"got {size}"
            )
    armature = np.array(model.armature)
    rotor, ratio = np.asarray(model.rotorInertia), np.asarray(model.rotorGearRatio)
    geared = (armature == 0.0) & (rotor != 0.0)
    names = coordinate_names(model)
    for i in np.flatnonzero(geared).tolist():
        if not 0.0 < rotor[i] < np.inf or not 0.0 < abs(ratio[i]) < np.inf:
            raise InputError(
                f"Mechanism: {names[i]!r} has a rotor without armature; its rotorInertia must be "
                f"positive and its rotorGearRatio not zero, both finite; got {rotor[i]:.6g} kg m^2 "
                f"and {ratio[i]:.6g}"
            )
    armature[geared] = ratio[geared] ** 2 * rotor[geared]
    wrong = ~((armature >= 0.0) & (armature < np.inf))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(
            f"Mechanism: the armature (rotor inertia) of {names[i]!r} must be finite and not "
            f"negative; got {armature[i]:.6g} kg m^2"
        )
    return armature


def checked_reference(model: pin.Model, reference: Any) -> Vector:
    """The reference configuration; by default the neutral one."""
    if reference is None:
        neutral: Vector = pin.neutral(model)
        return neutral
    return checked_configuration(model, reference, "reference")


def checked_constraints(constraints: Any) -> tuple[Constraint, ...]:
    """Constraints as a tuple, each with the attributes that the interface requires."""
    needs, kinds = ("bind", "name", "default_name", "t_stab"), "Closure, Rod, Contact, Coupling, "
    return _descriptions(constraints, "constraint", needs, f"{kinds}Custom or GammaQ")


def checked_forces(forces: Any) -> tuple[Force, ...]:
    """Forces as a tuple, each with the attributes that the interface requires."""
    kinds = "JointFriction, JointSpring, Spring or CustomForce"
    found = _descriptions(forces, "force", ("bind", "name", "default_name"), kinds)
    for f in found:
        if hasattr(f, "t_stab"):
            raise InputError(f"Mechanism: {quoted(f)} is a constraint; give it among constraints=")
    return found


def _descriptions(given: Any, what: str, needs: Sequence[str], kinds: str) -> tuple[Any, ...]:
    """Constraints or forces as a tuple, each with the attributes it needs."""
    try:
        found = tuple(given)
    except TypeError:
        raise InputError(
            f"Mechanism: {what}s must be a list of {what}s; got {quoted(given)}"
        ) from None
    for x in found:
        if isinstance(x, type) or not all(hasattr(x, part) for part in needs):
            several = isinstance(x, (list, tuple)) and x and all(hasattr(y, "bind") for y in x)
            hint = "; give them one by one, with_constraints(*these)" if several else ""
            raise InputError(
                f"Mechanism: {quoted(x)} is not a {what}{hint if what == 'constraint' else ''}; "
                f"expected hc.{kinds}, or a class of your own that follows "
                f"holoctl/{what}s/{what}_protocol.py"
            )
    return found


def closures_among(
    constraints: Iterable[Constraint], parked: Iterable[tuple[int, Constraint]]
) -> tuple[Closures, Closures]:
    """The closures by name: once with None for those that are joints and switched off, and once
    with all of them."""
    on = {c.default_name: c for c in constraints if isinstance(c, Closure)}
    off = {c.default_name: c for _, c in parked if isinstance(c, Closure)}
    return on | {name: c if c.joint is None else None for name, c in off.items()}, on | off


def bound_force(
    f: Force, name: str, model: pin.Model, reference: Vector, closures: Closures, all_on: Closures
) -> BoundForce:
    """A force on a model; a user-defined one is checked for consistency.

    It must be valid with closures that are switched off too: `all_on` has all of them, as if none
    was off.
    """
    if None in closures.values():
        f.bind(model, name, reference, all_on)
    bound = f.bind(model, name, reference, closures)
    if not of_library(bound):
        check_own_force(bound, name, model, reference)
    return bound


def check_not_needed(
    forces: Sequence[Force], names: Sequence[str], model: pin.Model, owner: str
) -> None:
    """Raise `InputError` if a force acts on one of the closures `names` that are to be removed."""
    for f in forces:
        for joint in getattr(f, "joints", ()):
            whole = joint if joint in names else joint.rpartition("[")[0]
            if whole in names and not part_names(model, joint):
                raise InputError(
                    f"{owner}: force {f.default_name!r} acts on closure {whole!r}; remove both, "
                    f"without({f.default_name!r}, {whole!r}), or give the force other joints"
                )


def checked_parked(parked: Any) -> tuple[tuple[int, Constraint], ...]:
    """Constraints that are switched off, with their indices among all, in order."""
    try:
        pairs = tuple((whole("parked: place", place, 0), c) for place, c in parked)
    except InputError:
        raise
    except (TypeError, ValueError):
        raise InputError(
            f"Mechanism: parked must be a list of (place, constraint); got {quoted(parked)}"
        ) from None
    checked_constraints([c for _, c in pairs])
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


def unique_names(constraints: Sequence[Constraint | Force]) -> tuple[str, ...]:
    """A name for each constraint and force; they must differ."""
    names = tuple(c.default_name for c in constraints)
    for c in constraints:
        kind = "constraint" if hasattr(c, "t_stab") else "force"
        if c.name is not None and (not isinstance(c.name, str) or not c.name):
            raise InputError(f"Mechanism: the name of a {kind} must be text; got {quoted(c.name)}")
        if not isinstance(c.default_name, str) or c.name not in (None, c.default_name):
            raise InputError(
                f"Mechanism: default_name of a {kind} must be its name, or text where it has "
                f"none; got {quoted(c.default_name)} for {quoted(c.name)}"
            )
        t_stab = getattr(c, "t_stab", None)
        if t_stab is not None and t_stab is not False:
            positive(f"Mechanism: t_stab of constraint {c.default_name!r}", t_stab, "s")
    must = "constraint names must differ, and those of forces"
    check_unique(names, must, "; give them a name=")
    return names


def checked_motors(
    actuated: Any, names: tuple[str, ...], owner: str = "Mechanism"
) -> tuple[str, ...]:
    """Coordinates with a motor, each once."""
    motors = tuple(name_list(f"{owner}: actuated", actuated))
    for motor in motors:
        known_name(motor, names, "coordinate", f"{owner}: actuated")
    if len(set(motors)) != len(motors):
        raise InputError(f"{owner}: actuated names a coordinate twice: {listing(motors)}")
    return motors


def actuation_matrix(actuated: Sequence[str], actuation: Any, names: Sequence[str]) -> Array:
    """B from the names of coordinates with a motor, or the given matrix."""
    nv = len(names)
    if actuation is None:
        B = np.zeros((nv, len(actuated)))
        for column, motor in enumerate(actuated):
            B[names.index(motor), column] = 1.0
        return B
    B = numbers("Mechanism: actuation", actuation).copy()
    if B.ndim != 2 or B.shape[0] != nv:
        raise InputError(
            f"Mechanism: actuation must have shape ({nv}, nu), a row for each "
            f"coordinate; got {B.shape}"
        )
    if not np.isfinite(B).all():
        raise InputError("Mechanism: actuation must be finite")
    idle = np.flatnonzero(~(B != 0.0).any(axis=0))
    if idle.size:
        raise InputError(
            f"Mechanism: column {idle[0]} of actuation is zero: this motor acts on no coordinate"
        )
    return B


def bound_to(c: Constraint, name: str, model: pin.Model, reference: Vector) -> BoundRows:
    """A constraint on a model; a user-defined one is checked for consistency."""
    bound = c.bind(model, name, reference)
    if is_own(bound):
        check_own(bound, name, model, reference)
    return bound
