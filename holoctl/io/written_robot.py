"""A mechanism as the two files that `load` reads: URDF, and YAML beside it.

Names of joints, links and frames are kept, so that parameters and tasks find them. What the files
have no word for is refused by name: rows and forces that are functions, contacts, motors given by
a matrix, gravity other than URDF's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin

from holoctl.base.checks import listing
from holoctl.base.errors import InputError
from holoctl.constraints.closure import Closure
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.rod import Rod
from holoctl.forces.joint_friction import JointFriction
from holoctl.forces.joint_spring import JointSpring
from holoctl.forces.spring import Spring
from holoctl.io.reader_limits import FREE
from holoctl.io.rotations import CYCLE
from holoctl.io.written_tree import described_joint, link_names, other_frames, row_text, urdf_link
from holoctl.mechanism.limits import KINDS
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import coordinate_names
from holoctl.tree.frames import resolve_frame
from holoctl.tree.frozen_model import plain

__all__ = ["written_robot"]

_CLOSURES = {"weld": "6d", "spherical": "3d"}
_PROPOSED = {
    "revolute": "revolute", "prismatic": "prismatic", "universal": "universal",
    "spherical": "spherical", "weld": "link",
}  # fmt: skip
"""Types of the element <constraint>, which is a proposal (ros/urdfdom, pull request 264)."""

_FORCES = {"joint_friction": JointFriction, "joint_spring": JointSpring, "spring": Spring}


def written_robot(mech: Mechanism, loops: str = "yaml") -> tuple[str, str]:
    """The URDF and the YAML of a mechanism; both are read by `hc.load` to the same mechanism. With
    `loops` "constraint" closures stand in the URDF, if the proposal has a type for them.

    Raises
    ------
    InputError
        For what these files cannot describe, by name.
    """
    import yaml

    _check_describable(mech)
    ends = list[tuple[str, pin.SE3, int]]()
    proposed = [
        (c, name)
        for c, name in zip(mech.constraints, mech.constraint_names, strict=True)
        if loops == "constraint" and getattr(c, "joint", None) in _PROPOSED
    ]
    document = {
        "name": mech.name,
        **_constraints(mech, ends, {name for _, name in proposed}),
        "name_mot": list(mech.actuated),
        "reference": _reference(mech),
        "tolerance": mech.tolerance,
        **_rotors(mech),
        **({"forces": [_force(f) for f in mech.forces]} if mech.forces else {}),
        **_limits(mech),
    }
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=100)
    lines = [line for c, name in proposed for line in _proposed(mech, c, name)]
    return "\n".join([*_urdf(mech, ends), *lines, "</robot>", ""]), text


def _check_describable(mech: Mechanism) -> None:
    """Raise `InputError` for what the files have no word for."""
    model = plain(mech.model)
    wrong = [
        f"constraint {name!r} ({type(c).__name__})"
        for c, name in zip(mech.constraints, mech.constraint_names, strict=True)
        if not isinstance(c, (Closure, Rod, Coupling)) or c.t_stab is not None
    ]
    wrong += [f"the constraint that is switched off, {c.default_name!r}" for _, c in mech.parked]
    wrong += [
        f"force {name!r} ({type(f).__name__})"
        for f, name in zip(mech.forces, mech.force_names, strict=True)
        if not isinstance(f, tuple(_FORCES.values()))
    ]
    if mech.actuation is not None:
        wrong.append("motors given by a matrix, actuation=")
    if not np.allclose(model.gravity.vector, pin.Model().gravity.vector):
        wrong.append(f"gravity {model.gravity.linear.tolist()} (URDF's is -9.81 along z)")
    if wrong:
        raise InputError(f"{mech.name}: URDF and YAML cannot describe {listing(wrong, 6)}")


# ------------------------------------------------------------------------------------ URDF


def _urdf(mech: Mechanism, ends: list[tuple[str, pin.SE3, int]]) -> Iterator[str]:
    """Lines of the tree; `ends` are further frames: name, placement, joint."""
    model = plain(mech.model)
    links = link_names(model)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield f"<robot name={quoteattr(mech.name)}>"
    yield from urdf_link(links[0], model.inertias[0])
    for j in range(1, model.njoints):
        yield from _joint(mech, j, links)
        yield from urdf_link(links[j], model.inertias[j])
    taken = {*links, *model.names}
    for name, place, j in [*other_frames(model, links), *ends]:
        if name in taken:
            continue
        taken.add(name)
        joint = f"{name}_fixed"
        while joint in taken:
            joint += "_"
        taken.add(joint)
        yield f"  <link name={quoteattr(name)}/>"
        yield from _opened(joint, "fixed", place, links[j], name)
        yield "  </joint>"


def _joint(mech: Mechanism, j: int, links: list[str]) -> Iterator[str]:
    model = plain(mech.model)
    joint, turns = described_joint(model, j), model.nqs[j] == 2
    kind = {"free": "floating", "spherical": "spherical"}.get(joint.kind, joint.kind)
    parent = links[int(model.parents[j])]
    kind = "continuous" if turns else kind
    yield from _opened(joint.name, kind, model.jointPlacements[j], parent, links[j])
    if joint.kind not in ("free", "spherical"):
        iq, iv = int(model.idx_qs[j]), int(model.idx_vs[j])
        low, high = float(model.lowerPositionLimit[iq]), float(model.upperPositionLimit[iq])
        given = {"effort": float(model.upperEffortLimit[iv]),
                 "velocity": float(model.upperVelocityLimit[iv])}  # fmt: skip
        if mech.limits is None:
            low, high, given = -FREE, FREE, dict.fromkeys(given, 0.0)
        if not turns:
            given |= {"lower": max(low, -FREE), "upper": min(high, FREE)}
        finite = {word: x if abs(x) <= FREE else 0.0 for word, x in given.items()}
        text = " ".join(f'{word}="{x:.17g}"' for word, x in finite.items())
        yield f'    <axis xyz="{row_text(joint.axis)}"/>'
        yield f"    <limit {text}/>"
    yield "  </joint>"


def _opened(name: str, kind: str, place: pin.SE3, parent: str, child: str) -> Iterator[str]:
    yield f"  <joint name={quoteattr(name)} type={quoteattr(kind)}>"
    yield f"    <origin {_pose(place)}/>"
    yield f"    <parent link={quoteattr(parent)}/>"
    yield f"    <child link={quoteattr(child)}/>"


def _proposed(mech: Mechanism, c: Any, name: str) -> Iterator[str]:
    """A closure as the element that is proposed for urdfdom, with its axis along z of the origins
    in both links."""
    links = link_names(plain(mech.model))
    yield f"  <constraint name={quoteattr(name)} type={quoteattr(_PROPOSED[c.joint])}>"
    for end, frame, turned in zip(("parent", "child"), (c.a, c.b), (CYCLE, CYCLE.T), strict=True):
        at = resolve_frame(mech.model, frame, name)
        place = pin.SE3(at.placement.rotation, at.placement.translation)
        if c.joint == "universal":
            place = place * pin.SE3(turned, np.zeros(3))
        yield f"    <{end} link={quoteattr(links[at.joint])}/>"
        yield f"    <{end}_origin {_pose(place)}/>"
        if c.joint == "universal" or (c.joint in ("revolute", "prismatic") and end == "parent"):
            yield f'    <{end}_axis xyz="0 0 1"/>'
    yield "  </constraint>"


def _pose(place: pin.SE3) -> str:
    rpy = pin.rpy.matrixToRpy(place.rotation)
    return f'xyz="{row_text(place.translation)}" rpy="{row_text(rpy)}"'


# ------------------------------------------------------------------------------------ YAML


def _constraints(
    mech: Mechanism, ends: list[tuple[str, pin.SE3, int]], proposed: set[str]
) -> dict[str, Any]:
    """Closures, rods and couplings but the proposed ones; frames that have no name of their own are
    added to `ends`."""
    pairs, kinds, names, couplings = list[Any](), list[str](), list[str](), list[Any]()
    for c, name in zip(mech.constraints, mech.constraint_names, strict=True):
        if name in proposed:
            continue
        if isinstance(c, Coupling):
            terms = {k: float(x) for k, x in c.coefficients.items()}
            couplings.append({"name": name, "coefficients": terms, "offset": float(c.offset)})
            continue
        pairs.append([_end(mech, getattr(c, x), f"{name}_{x}", ends) for x in "ab"])
        kinds.append(_kind(mech, c))
        names.append(name)
    found: dict[str, Any] = {"closed_loop": pairs, "type": kinds, "closure_names": names}
    return found | ({"couplings": couplings} if couplings else {})


def _end(mech: Mechanism, frame: Any, name: str, ends: list[tuple[str, pin.SE3, int]]) -> str:
    if isinstance(frame, str):
        return frame
    at = resolve_frame(mech.model, frame, name)
    ends.append((name, pin.SE3(at.placement.rotation, at.placement.translation), at.joint))
    return name


def _kind(mech: Mechanism, c: Any) -> str:
    if isinstance(c, Rod):
        length = c.length
        if length is None:
            q, data = mech.reference, mech.model.createData()
            pin.forwardKinematics(plain(mech.model), data, q)
            a, b = (resolve_frame(mech.model, x, "rod") for x in (c.a, c.b))
            p, r = ((data.oMi[f.joint] * pin.SE3(f.placement.rotation, f.placement.translation))
                    .translation for f in (a, b))  # fmt: skip
            length = float(np.linalg.norm(p - r))
        return f"rod {length:.17g}"
    if c.joint == "screw":
        return f"screw {c.pitch:.17g}"
    return str(c.axes) if c.joint is None else _CLOSURES.get(c.joint, c.joint)


def _reference(mech: Mechanism) -> dict[str, Any]:
    model, found = plain(mech.model), dict[str, Any]()
    for j in range(1, model.njoints):
        x = mech.reference[int(model.idx_qs[j]) : int(model.idx_qs[j]) + int(model.nqs[j])]
        turns = (model.nqs[j], model.nvs[j]) == (2, 1)
        angle = float(np.arctan2(x[1], x[0])) if turns else 0.0
        found[str(model.names[j])] = angle if turns else float(x[0]) if x.size == 1 else x.tolist()
    return found


def _rotors(mech: Mechanism) -> dict[str, Any]:
    model = plain(mech.model)
    names = coordinate_names(model)
    found = {n: float(x) for n, x in zip(names, model.armature, strict=True) if x}
    return {"rotor_inertia": found} if found else {}


def _force(force: Any) -> dict[str, Any]:
    kind = next(word for word, cls in _FORCES.items() if isinstance(force, cls))
    found: dict[str, Any] = {"type": kind, "name": force.default_name}
    for field in fields(force):
        value = getattr(force, field.name)
        if field.name != "name" and value is not None:
            found[field.name] = _written(value)
    return found


def _limits(mech: Mechanism) -> dict[str, Any]:
    given = {what: getattr(mech.limits, what) for what in KINDS} if mech.limits else {}
    found = {what: _written(x) for what, x in given.items() if x is not None}
    return {"limits": found} if found else {}


def _written(value: Any) -> Any:
    """A value of a force or a limit as YAML has it."""
    if isinstance(value, Mapping):
        return {str(k): _written(x) for k, x in value.items()}
    if isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[1], pin.SE3):
        return [value[0], value[1].translation.tolist()]
    if isinstance(value, (tuple, list, np.ndarray)):
        return [_written(x) for x in value]
    return value if isinstance(value, (str, bool)) else float(value)
