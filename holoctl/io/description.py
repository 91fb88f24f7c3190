"""Robots from files: a URDF for the tree, a YAML file beside it for closures and motors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pinocchio as pin

from holoctl.checks import Vector, known_name, listing, suggestion
from holoctl.constraints.closure import JOINTS, Closure
from holoctl.constraints.contract import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.errors import InputError, LoadError
from holoctl.io.urdf import Part, Urdf, model_of, read_urdf
from holoctl.io.yaml_entries import Entry, yaml_document
from holoctl.mechanism import Mechanism
from holoctl.tree import coordinate_names

__all__ = ["load", "robot_file", "robot_names"]

_ROBOTS = Path(__file__).parents[1] / "robots"

_REQUIRED = ("closed_loop", "type", "name_mot")
_KEYS = (
    *_REQUIRED, "joint_name", "joint_type", "closure_names", "couplings", "reference",
    "name", "description", "source",
)  # fmt: skip
_CLOSURES = {"6d": "weld", "3d": "spherical"}
_AXES = ("x", "y", "z", "rx", "ry", "rz")
_UNIVERSAL = re.compile(r"ujoint_([xyz])(?!\1)([xyz])")


def load(
    path: str | os.PathLike[str],
    *,
    closures: str | os.PathLike[str] | None = None,
    free_flyer: bool = False,
) -> Mechanism:
    """Read a robot: the tree from a URDF, closures and motors from a YAML file beside it.

    Parameters
    ----------
    path : str or path
        A URDF, or a directory with a ``robot.urdf``.
    closures : str or path, optional
        The YAML file. Default: the file named as the URDF but ``.yaml``, else ``robot.yaml`` in
        the same directory; without either the robot is an open tree without motors.
    free_flyer : bool, optional
        Whether the root link floats, on a joint called ``root_joint``. Default: it is fixed to
        the world.

    Returns
    -------
    Mechanism
        Motors in the order of ``name_mot``.

    Raises
    ------
    LoadError
        With file, key and line, for anything that cannot be read or makes no mechanism.
    InputError
        If `path` or `closures` is not a path.

    Notes
    -----
    Keys of the YAML file; the first five are those of Gepetto's example-parallel-robots:

    ``closed_loop``, ``type``
        Pairs of frames, and what closes each pair: ``6d`` (a weld), ``3d`` (a ball joint), a
        joint or a subset of axes that `Closure` knows. Both required, may be empty.
    ``name_mot``
        Coordinates with a motor, in the order of u. Required, may be empty.
    ``joint_name``, ``joint_type``
        Joints of the URDF, and what to make of each: ``SPHERICAL``, ``UJOINT_XY`` (any two
        different axes) or ``FIXED`` at zero. Axes are those of the joint frame. The universal
        joint u has the coordinates ``u[0]`` and ``u[1]``.
    ``closure_names``
        A name for each closure.
    ``couplings``
        A list of mappings with ``coefficients``, ``offset`` and ``name``, as `Coupling` has them.
    ``reference``
        A configuration near the assembled one: joint name to angle, length or list of numbers.
        Joints left out are neutral.
    ``name``, ``description``, ``source``
        A name for the robot, and free text.

    ``<mimic>`` in the URDF becomes a `Coupling` called ``joint-mimic``. A continuous joint in a
    coupling becomes a revolute one, for its turns count.
    """
    urdf_file, yaml_file = _files(path, closures)
    urdf = read_urdf(_text(urdf_file), str(urdf_file))
    sheet = _Sheet()
    if yaml_file is not None:
        sheet = _sheet(yaml_document(_text(yaml_file), str(yaml_file)), urdf)
    constraints = [*sheet.closures, *_mimics(urdf, sheet), *sheet.couplings]
    counted = {n for c, _ in constraints if isinstance(c, Coupling) for n in c.coefficients}
    model = model_of(urdf, sheet.replaced, counted, free_flyer)
    _check_constraints(constraints, model)
    motors = _motors(sheet, model)
    reference = _reference(sheet, model)
    with _blamed_on(urdf.robot):
        return Mechanism(
            model, [c for c, _ in constraints], motors, reference=reference, name=sheet.name
        )


def robot_names() -> tuple[str, ...]:
    """Names of the robots shipped with the library."""
    return tuple(sorted(file.stem for file in _ROBOTS.glob("*.urdf")))


def robot_file(name: str) -> Path:
    """The URDF of a robot shipped with the library, for `load`.

    Parameters
    ----------
    name : str
        One of `robot_names`.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        If there is no robot of that name; the message lists them.

    Examples
    --------
    >>> import holoctl as hc
    >>> hc.load(hc.robot_file("five_bar"))
    <Mechanism 'five_bar': 4 coordinates, 1 constraint with 5 rows, 2 motors>
    """
    return _ROBOTS / f"{known_name(name, robot_names(), 'robot', 'robot_file')}.urdf"


# ------------------------------------------------------------------------------------- files


def _files(
    path: str | os.PathLike[str], closures: str | os.PathLike[str] | None
) -> tuple[Path, Path | None]:
    """The URDF and, if there is one, its YAML file."""
    urdf = _path("path", path)
    if os.path.isdir(urdf):
        urdf = urdf / "robot.urdf"
    if urdf.suffix in (".yaml", ".yml"):
        raise LoadError(
            "this is a YAML file; give the URDF: the YAML file beside it is found by itself",
            file=str(urdf),
        )
    if closures is not None:
        return urdf, _path("closures", closures)
    beside = (urdf.with_suffix(".yaml"), urdf.with_name("robot.yaml"))
    return urdf, next((file for file in beside if os.path.lexists(file)), None)


def _path(argument: str, path: str | os.PathLike[str]) -> Path:
    try:
        return Path(path)
    except TypeError:
        raise InputError(f"load: {argument} must be a path; got {path!r}") from None


def _text(file: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        shipped = file.stem in robot_names() and file.suffix == ".urdf"
        hint = f"; the one shipped is at hc.robot_file({file.stem!r})" if shipped else ""
        raise LoadError(f"there is no such file{hint}", file=str(file)) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise LoadError("this is not a text in UTF-8", file=str(file), line=line) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"the file cannot be read: {reason}", file=str(file)) from None


# --------------------------------------------------------------------------------- YAML file

Place = Entry | Part
"""Where a constraint stands: errors name the file, the key and the line."""


@dataclass(frozen=True)
class _Sheet:
    """What the YAML file says; names of the model are not looked up yet."""

    closures: list[tuple[Constraint, Place]] = field(default_factory=list)
    couplings: list[tuple[Constraint, Place]] = field(default_factory=list)
    motors: list[Entry] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    reference: dict[str, Entry] = field(default_factory=dict)
    name: str = ""


def _sheet(document: Entry, urdf: Urdf) -> _Sheet:
    keys = document.fields(_KEYS)
    for key in _REQUIRED:
        if key not in keys:
            raise LoadError(
                f"the key {key!r} is missing; it may be empty: {key}: []",
                file=document.file,
                key=key,
                line=document.line,
            )
    return _Sheet(
        closures=_closures(keys),
        couplings=[_coupling(entry) for entry in _items(keys, "couplings")],
        motors=keys["name_mot"].items(),
        replaced=_replaced(keys, urdf),
        reference=keys["reference"].fields() if "reference" in keys else {},
        name=keys["name"].text() if "name" in keys else "",
    )


def _items(keys: Mapping[str, Entry], key: str) -> list[Entry]:
    return keys[key].items() if key in keys else []


def _aligned(keys: Mapping[str, Entry], key: str, other: str) -> list[Entry]:
    """The elements of the list `key`, as many as the list `other` has."""
    items, others = _items(keys, key), _items(keys, other)
    if len(items) != len(others):
        place = keys[key] if key in keys else keys[other]
        raise place.error(
            f"{key} and {other} must be of equal length; they have {len(items)} and {len(others)}"
        )
    return items


def _closures(keys: Mapping[str, Entry]) -> list[tuple[Constraint, Place]]:
    pairs, kinds = _items(keys, "closed_loop"), _aligned(keys, "type", "closed_loop")
    names: list[str | None] = [None] * len(pairs)
    if "closure_names" in keys:
        names = [entry.text() for entry in _aligned(keys, "closure_names", "closed_loop")]
    found: list[tuple[Constraint, Place]] = []
    for pair, kind, name in zip(pairs, kinds, names, strict=True):
        frames = [frame.text() for frame in pair.items()]
        if len(frames) != 2:
            raise pair.error(f"closed_loop: a closure is a pair of frames; got {listing(frames)}")
        with _blamed_on(kind):
            found.append((_closure(frames[0], frames[1], kind.text(), name), pair))
    return found


def _closure(a: str, b: str, kind: str, name: str | None) -> Closure:
    joint = _CLOSURES.get(kind.lower(), kind)
    if joint in JOINTS:
        return Closure(a, b, joint=joint, name=name)
    if set(kind.split()) & set(_AXES):
        return Closure(a, b, axes=kind, name=name)
    valid = [*_CLOSURES, *JOINTS]
    raise InputError(
        f"type: there is no closure {kind!r}{suggestion(kind, valid)}; "
        f"valid names: {', '.join(valid)}, or any of {' '.join(_AXES)!r}"
    )


def _coupling(entry: Entry) -> tuple[Constraint, Place]:
    fields = entry.fields(("coefficients", "offset", "name"))
    if "coefficients" not in fields:
        raise entry.error("couplings: the key 'coefficients' is missing")
    with _blamed_on(entry):
        coupling = Coupling(
            {n: c.number() for n, c in fields["coefficients"].fields().items()},
            offset=fields["offset"].number() if "offset" in fields else 0.0,
            name=fields["name"].text() if "name" in fields else None,
        )
    return coupling, entry


def _replaced(keys: Mapping[str, Entry], urdf: Urdf) -> dict[str, str]:
    """Joints that become others, in the words of `model_of`."""
    found: dict[str, str] = {}
    kinds = _aligned(keys, "joint_type", "joint_name")
    for joint, kind in zip(_items(keys, "joint_name"), kinds, strict=True):
        with _blamed_on(joint):
            name = known_name(joint.text(), list(urdf.joints), "joint", "joint_name")
        if name in found:
            raise joint.error(f"joint_name: {name!r} stands twice")
        word = kind.text().lower()
        universal = _UNIVERSAL.fullmatch(word)
        if word not in ("fixed", "spherical") and universal is None:
            raise kind.error(
                f"joint_type: there is no joint {kind.text()!r}; valid names: SPHERICAL, FIXED, "
                "UJOINT_XY and the like with two different axes"
            )
        found[name] = "".join(universal.groups()) if universal else word
    return found


# ------------------------------------------------------------------------------- both files


@contextmanager
def _blamed_on(place: Place) -> Iterator[None]:
    """Raise an `InputError` as a `LoadError` at a place in a file."""
    try:
        yield
    except InputError as error:
        raise place.error(str(error)) from None


def _mimics(urdf: Urdf, sheet: _Sheet) -> list[tuple[Constraint, Place]]:
    """q[joint] = multiplier q[master] + offset, for every mimic joint of the URDF."""
    found: list[tuple[Constraint, Place]] = []
    for name, joint in urdf.joints.items():
        if "mimic" not in joint.parts:
            continue
        mimic = joint.parts["mimic"]
        master = mimic.values["joint"]
        if name in sheet.replaced or master in sheet.replaced:
            raise mimic.error(
                f"joint {name!r} mimics {master!r}, so joint_type must replace neither of them"
            )
        coefficients = {name: 1.0, master: -mimic.values.get("multiplier", 1.0)}
        if coefficients[master] == 0.0:
            del coefficients[master]
        offset = mimic.values.get("offset", 0.0)
        found.append((Coupling(coefficients, offset=offset, name=f"{name}-mimic"), mimic))
    return found


def _check_constraints(constraints: Sequence[tuple[Constraint, Place]], model: pin.Model) -> None:
    """What `Mechanism` would refuse, with its line."""
    names: set[str] = set()
    for constraint, place in constraints:
        name = constraint.default_name
        if name in names:
            raise place.error(f"two constraints are called {name!r}; names must differ")
        names.add(name)
        with _blamed_on(place):
            constraint.bind(model, name, pin.neutral(model))


def _motors(sheet: _Sheet, model: pin.Model) -> list[str]:
    names, motors = coordinate_names(model), list[str]()
    for entry in sheet.motors:
        motor = entry.text()
        several = [name for name in names if name.startswith(f"{motor}[")]
        if motor not in names and several:
            raise entry.error(
                f"name_mot: joint {motor!r} has {len(several)} coordinates; name one of them: "
                f"{listing(several)}"
            )
        with _blamed_on(entry):
            known_name(motor, names, "coordinate", "name_mot")
        if motor in motors:
            raise entry.error(f"name_mot: {motor!r} stands twice")
        motors.append(motor)
    return motors


def _reference(sheet: _Sheet, model: pin.Model) -> Vector:
    """The neutral configuration with the joints of `reference` moved."""
    q: Vector = pin.neutral(model)
    joints = {model.names[j]: [j] for j in range(1, model.njoints)}
    for name, kind in sheet.replaced.items():
        if kind not in ("fixed", "spherical"):
            joints[name] = [model.getJointId(f"{name}[{i}]") for i in range(2)]
    for name, entry in sheet.reference.items():
        with _blamed_on(entry):
            known_name(name, list(joints), "joint", "reference")
        where = np.concatenate([model.idx_qs[j] + np.arange(model.nqs[j]) for j in joints[name]])
        if len(where) == 1:
            q[where] = entry.number()
        elif (model.nqs[joints[name][0]], model.nvs[joints[name][0]]) == (2, 1):
            angle = entry.number()
            q[where] = np.cos(angle), np.sin(angle)
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
