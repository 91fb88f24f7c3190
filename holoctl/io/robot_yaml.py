"""The YAML file of a URDF or SDF: closures, couplings, motors, forces, limits, a reference."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, known_name, listing, suggestion
from holoctl.base.errors import InputError, LoadError
from holoctl.base.tolerances import GEOMETRY_OF_FILES
from holoctl.constraints.closure import JOINTS, Closure
from holoctl.constraints.constraint_protocol import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.rod import Rod
from holoctl.forces.force_protocol import Force
from holoctl.io.file_limits import FileLimits
from holoctl.io.reader_limits import MOST_CONSTRAINTS, FilePlace, check_count
from holoctl.io.xml import blamed_on
from holoctl.io.yaml_entries import Entry
from holoctl.io.yaml_forces import forces_of
from holoctl.io.yaml_limits import limits_in
from holoctl.mechanism.description import checked_tolerance
from holoctl.mechanism.frame_displacements import Move, movable, moved
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import POSE_AXES

__all__ = [
    "Sheet",
    "check_constraints",
    "motors_of",
    "moves_of",
    "read_sheet",
    "reference_of",
    "warn_of_turns",
    "with_moves",
]

_REQUIRED = ("closed_loop", "type", "name_mot")
_COMMON = (
    *_REQUIRED, "closure_names", "couplings", "reference", "name", "description", "source",
    "tolerance", "moved", "forces", "rotor_inertia", "gear_ratio", "limits",
)  # fmt: skip
_KEYS = (*_COMMON, "joint_name", "joint_type")
_KEYS_OF_SDF = (*_COMMON, "cut")
_CLOSURES = {"6d": "weld", "3d": "spherical"}
_TURN = 2.0 * np.pi + 1e-9
_UNIVERSAL = re.compile(r"ujoint_([xyz])(?!\1)([xyz])")


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sheet:
    """The content of the YAML file; its names are not looked up in the model yet."""

    closures: list[tuple[Constraint, FilePlace]] = field(default_factory=list)
    couplings: list[tuple[Constraint, FilePlace]] = field(default_factory=list)
    motors: list[Entry] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    reference: dict[str, Entry] = field(default_factory=dict)
    cut: list[Entry] = field(default_factory=list)
    name: str = ""
    tolerance: float = GEOMETRY_OF_FILES
    moves: list[tuple[Move, FilePlace]] = field(default_factory=list)
    forces: list[tuple[Force, FilePlace]] = field(default_factory=list)
    rotors: dict[str, Entry] = field(default_factory=dict)
    ratios: dict[str, Entry] = field(default_factory=dict)
    limits: FileLimits = field(default_factory=FileLimits)


def read_sheet(document: Entry, joints: Collection[str] | None) -> Sheet:
    """Read the YAML file of a robot.

    Parameters
    ----------
    document : Entry
    joints : collection of str or None
        The joints that ``joint_name`` may replace, for a URDF; None for an SDF, which has spherical
        and universal joints itself, and for which no key is required.

    Raises
    ------
    LoadError
        With the line, for keys and values that are not understood.
    """
    keys = document.fields(_KEYS if joints is not None else _KEYS_OF_SDF)
    for key in _REQUIRED if joints is not None else ():
        if key not in keys:
            raise LoadError(
                f"the key {key!r} is missing; it may be empty: {key}: []",
                file=document.file,
                key=key,
                line=document.line,
            )
    for key in ("closed_loop", "couplings", "forces"):
        if key in keys:
            check_count(keys[key], len(_items(keys, key)), MOST_CONSTRAINTS, key)
    return Sheet(
        closures=_closures(keys),
        couplings=[_coupling(entry) for entry in _items(keys, "couplings")],
        motors=_items(keys, "name_mot"),
        replaced=_replaced(keys, joints or ()),
        reference=keys["reference"].fields() if "reference" in keys else {},
        cut=_items(keys, "cut"),
        name=keys["name"].text() if "name" in keys else "",
        tolerance=_tolerance(keys["tolerance"]) if "tolerance" in keys else GEOMETRY_OF_FILES,
        moves=moves_of(keys["moved"]) if "moved" in keys else [],
        forces=forces_of(_items(keys, "forces")),
        rotors=keys["rotor_inertia"].fields() if "rotor_inertia" in keys else {},
        ratios=keys["gear_ratio"].fields() if "gear_ratio" in keys else {},
        limits=limits_in(keys["limits"]) if "limits" in keys else FileLimits(),
    )


def moves_of(entry: Entry) -> list[tuple[Move, FilePlace]]:
    """The moves of the key `moved`."""
    found: list[tuple[Move, FilePlace]] = []
    for name, numbers in entry.fields().items():
        x = numbers.numbers()
        if len(x) != 6:
            raise numbers.error(
                f"moved: {name!r} takes six numbers, a translation (m) and a rotation vector "
                f"(rad) in its own axes; got {len(x)}"
            )
        found.append((Move(name, np.array(x[:3]), np.array(x[3:])), numbers))
    return found


def with_moves(mech: Mechanism, sheet: Sheet) -> Mechanism:
    """The mechanism with the displacements of the YAML file."""
    if not sheet.moves:
        return mech
    for move, place in sheet.moves:
        with blamed_on(place):
            known_name(move.name, movable(mech), "joint or frame of a constraint", "moved")
    return moved(mech, [move for move, _ in sheet.moves])


def _tolerance(entry: Entry) -> float:
    with blamed_on(entry):
        return checked_tolerance(entry.number(), "YAML")


def _items(keys: Mapping[str, Entry], key: str) -> list[Entry]:
    return keys[key].items() if key in keys else []


def _aligned(keys: Mapping[str, Entry], key: str, other: str) -> list[Entry]:
    """The elements of the list `key`, which must be as long as the list `other`."""
    items, others = _items(keys, key), _items(keys, other)
    if len(items) != len(others):
        place = keys[key] if key in keys else keys[other]
        raise place.error(
            f"{key} and {other} must be of equal length; they have {len(items)} and {len(others)}"
        )
    return items


def _closures(keys: Mapping[str, Entry]) -> list[tuple[Constraint, FilePlace]]:
    pairs = _items(keys, "closed_loop")
    _check_pairs(pairs)
    kinds = _aligned(keys, "type", "closed_loop")
    names: list[str | None] = [None] * len(pairs)
    if "closure_names" in keys:
        names = [entry.text() for entry in _aligned(keys, "closure_names", "closed_loop")]
    found: list[tuple[Constraint, FilePlace]] = []
    for pair, kind, name in zip(pairs, kinds, names, strict=True):
        frames = [frame.text() for frame in pair.items()]
        if len(frames) != 2:
            raise pair.error(f"closed_loop: a closure is a pair of frames; got {listing(frames)}")
        with blamed_on(kind):
            found.append((_closure(frames[0], frames[1], kind.text(), name), pair))
    return found


def _check_pairs(pairs: Sequence[Entry]) -> None:
    """Raise an error, with an example, for a list of frames instead of a list of pairs."""
    flat = [entry for entry in pairs if not entry.is_list]
    if not flat:
        return
    shown = "[a, b]"
    if len(pairs) == len(flat) == 2:
        shown = f"[{flat[0].text()}, {flat[1].text()}]"
    raise flat[0].error(
        f"closed_loop is a list of pairs of frames; {flat[0].shown} is not a pair. Write "
        f"closed_loop: [{shown}], with the inner brackets"
    )


def _closure(a: str, b: str, kind: str, name: str | None) -> Closure | Rod:
    joint = _CLOSURES.get(kind.lower(), kind)
    word, _, number = kind.partition(" ")
    if word == "screw":
        return Closure(
            a, b, joint=word, name=name, pitch=_number("pitch", "screw", number, "m/rad")
        )
    if word == "rod":
        length = _number("length", "rod", number, "m")
        if length is None:
            raise InputError("type: a rod takes its length, m, as in 'rod 0.25'")
        return Rod(a, b, length, name)
    if joint in JOINTS:
        return Closure(a, b, joint=joint, name=name)
    if set(kind.split()) & set(POSE_AXES):
        return Closure(a, b, axes=kind, name=name)
    valid = [*_CLOSURES, *JOINTS, "rod"]
    raise InputError(
        f"type: there is no closure {kind!r}{suggestion(kind, valid)}; "
        f"valid names: {', '.join(valid)}, or any of {' '.join(POSE_AXES)!r}"
    )


def _number(what: str, word: str, text: str, unit: str) -> float | None:
    """The number after the word of a type, such as screw; None without one."""
    try:
        return float(text) if text else None
    except ValueError:
        raise InputError(
            f"type: the {what} of a {word} must be a number, {unit}; got {text!r}"
        ) from None


def _coupling(entry: Entry) -> tuple[Constraint, FilePlace]:
    fields = entry.fields(("coefficients", "offset", "name"))
    if "coefficients" not in fields:
        raise entry.error("couplings: the key 'coefficients' is missing")
    with blamed_on(entry):
        coupling = Coupling(
            {n: c.number() for n, c in fields["coefficients"].fields().items()},
            offset=fields["offset"].number() if "offset" in fields else 0.0,
            name=fields["name"].text() if "name" in fields else None,
        )
    return coupling, entry


def _replaced(keys: Mapping[str, Entry], joints: Collection[str]) -> dict[str, str]:
    """Joints that are replaced, and their types as in `model_of`."""
    found: dict[str, str] = {}
    kinds = _aligned(keys, "joint_type", "joint_name")
    for joint, kind in zip(_items(keys, "joint_name"), kinds, strict=True):
        with blamed_on(joint):
            name = known_name(joint.text(), list(joints), "joint", "joint_name")
        if name in found:
            raise joint.error(f"joint_name: {name!r} is given twice")
        word = kind.text().lower()
        universal = _UNIVERSAL.fullmatch(word)
        if word not in ("fixed", "spherical") and universal is None:
            raise kind.error(
                f"joint_type: there is no joint {kind.text()!r}; valid names: SPHERICAL, FIXED, "
                "UJOINT_XY and the like with two different axes"
            )
        found[name] = "".join(universal.groups()) if universal else word
    return found


def check_constraints(
    constraints: Sequence[tuple[Constraint, FilePlace]], model: pin.Model
) -> None:
    """Raise the errors of `Mechanism` for constraints, with their lines."""
    names: set[str] = set()
    for constraint, place in constraints:
        name = constraint.default_name
        if name in names:
            raise place.error(f"two constraints are called {name!r}; names must differ")
        names.add(name)
        with blamed_on(place):
            constraint.bind(model, name, pin.neutral(model))


def motors_of(sheet: Sheet, names: Sequence[str], model: pin.Model) -> list[str]:
    """The motors, each of which must be one of the coordinates `names`.

    `model` is used to explain in messages what another name refers to.
    """
    motors: list[str] = []
    for entry in sheet.motors:
        motor = entry.text()
        several = [name for name in names if name.startswith(f"{motor}[")]
        if motor not in names and several:
            raise entry.error(
                f"name_mot: joint {motor!r} has {len(several)} coordinates; name one of them: "
                f"{listing(several)}"
            )
        frame = next((frame for frame in model.frames if frame.name == motor), None)
        if motor not in names and frame is not None:
            raise entry.error(_no_coordinate(frame, model, names))
        if motor not in names and motor in [closure.default_name for closure, _ in sheet.closures]:
            raise entry.error(
                f"name_mot: {motor!r} is a closure, and a motor needs a coordinate of the tree; "
                f"cut the loop at another joint; valid names: {listing(names)}"
            )
        with blamed_on(entry):
            known_name(motor, names, "coordinate", "name_mot")
        if motor in motors:
            raise entry.error(f"name_mot: {motor!r} is given twice")
        motors.append(motor)
    return motors


def _no_coordinate(frame: pin.Frame, model: pin.Model, names: Sequence[str]) -> str:
    """An explanation of a name that is not that of a coordinate."""
    kind = "a link" if frame.type == pin.FrameType.BODY else "a frame, such as a fixed joint"
    moved = f"it moves with joint {model.names[frame.parentJoint]!r}"
    return (
        f"name_mot: {frame.name!r} is {kind}, and a motor needs a coordinate; "
        f"{moved if frame.parentJoint else 'it does not move'}; valid names: {listing(names)}"
    )


def warn_of_turns(file: str, angles: Mapping[str, float]) -> None:
    """Log one warning for angles of a reference of more than a turn, which are likely in
    degrees."""
    far = {name: angle for name, angle in angles.items() if abs(angle) > _TURN}
    if far:
        log.warning(
            "%s: the reference of these joints is more than a turn from zero; angles are in rad, "
            "are these degrees? %s",
            file, ", ".join(f"{name!r}: {angle:g}" for name, angle in far.items()),
        )  # fmt: skip


def reference_of(sheet: Sheet, model: pin.Model) -> Vector:
    """The neutral configuration with the joints of `reference` moved."""
    q: Vector = pin.neutral(model)
    joints = {model.names[j]: [j] for j in range(1, model.njoints)}
    for name, kind in sheet.replaced.items():
        if kind not in ("fixed", "spherical"):
            joints[name] = [model.getJointId(f"{name}[{i}]") for i in range(2)]
    for name, entry in sheet.reference.items():
        with blamed_on(entry):
            known_name(name, list(joints), "joint", "reference")
        where = np.concatenate([model.idx_qs[j] + np.arange(model.nqs[j]) for j in joints[name]])
        if len(where) == 1:
            q[where] = entry.number()
        elif (model.nqs[joints[name][0]], model.nvs[joints[name][0]]) == (2, 1):
            angle = entry.number()
            q[where] = np.cos(angle), np.sin(angle)
            if abs(angle) > _TURN:
                warn_of_turns(entry.file, {name: angle})
        else:
            numbers = [item.number() for item in entry.items()]
            if len(numbers) != len(where):
                raise entry.error(
                    f"reference: joint {name!r} takes {len(where)} numbers; got {len(numbers)}"
                )
            q[where] = numbers
            unit = pin.normalize(model, q)
            if not (pin.isNormalized(model, unit) and np.allclose(unit, q, rtol=0.0, atol=1e-2)):
                raise entry.error(
                    f"reference: joint {name!r} has a quaternion (x, y, z, w), or a cosine and a "
                    "sine, that must have norm 1"
                )
            q = unit  # decimals of a file are rounded
    return q
