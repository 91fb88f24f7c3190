"""The bodies of an MJCF: joints, inertias and sites of a tree, as nested elements.

Axes of a body are those of its joint in Pinocchio, so q, v and all placements keep their numbers.
Inertias are written in principal axes, since MuJoCo refuses a full matrix with a moment of zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin

from holoctl.base.errors import InputError
from holoctl.io.written_tree import described_joint, row_text
from holoctl.tree.frozen_model import plain

__all__ = ["NOTHING", "MjcfBodies", "pose_text", "written_bodies"]

NOTHING = 1.1e-15  # kg, kg m^2
"""Mass and moments of bodies that have none: MuJoCo requires more than 1e-15 of moving bodies, and
`hc.load` takes as much for none."""

ROUNDED = 1e-12
"""A moment above the sum of the others by this part of it is rounding, and is lowered to the sum:
MuJoCo refuses it."""


@dataclass
class MjcfBodies:
    """What the bodies have beside joints and inertias, by index of the joint; 0 is the world.

    Attributes
    ----------
    names : dict of int to str
        Names of bodies. Default: that of the joint with ``_link``.
    sites : dict of int to list of (str, pin.SE3)
    joints : dict of int to dict of str to float
        Attributes of joints: damping, springs.
    ranges : dict of int to (float, float)
        Limits of position, rad or m.
    """

    names: dict[int, str] = field(default_factory=dict)
    sites: dict[int, list[tuple[str, pin.SE3]]] = field(default_factory=dict)
    joints: dict[int, dict[str, float]] = field(default_factory=dict)
    ranges: dict[int, tuple[float, float]] = field(default_factory=dict)


def written_bodies(model: pin.Model, bodies: MjcfBodies) -> list[str]:
    """The lines inside ``<worldbody>``.

    Raises
    ------
    InputError
        For joints and rotor inertias that MJCF does not have, and inertias that MuJoCo refuses, by
        name.
    """
    return [*_sites(bodies.sites.get(0, ()), "    "), *_below(plain(model), 0, bodies, "    ")]


def _below(model: pin.Model, parent: int, bodies: MjcfBodies, indent: str) -> Iterator[str]:
    for j in range(1, model.njoints):
        if model.parents[j] != parent:
            continue
        name = bodies.names.get(j, f"{model.names[j]}_link")
        yield f"{indent}<body name={quoteattr(name)} {pose_text(model.jointPlacements[j])}>"
        yield f"{indent}  {_joint(model, j, bodies)}"
        if model.inertias[j].mass or model.inertias[j].inertia.any():
            yield f"{indent}  {_inertial(model.inertias[j], name)}"
        yield from _sites(bodies.sites.get(j, ()), indent + "  ")
        yield from _below(model, j, bodies, indent + "  ")
        yield f"{indent}</body>"


def _joint(model: pin.Model, j: int, bodies: MjcfBodies) -> str:
    joint, iv = described_joint(model, j), int(model.idx_vs[j])
    rotors = np.array(model.armature[iv : iv + model.nvs[j]])
    if (rotors != rotors[0]).any() or (joint.kind == "free" and rotors.any()):
        raise InputError(
            f"joint {joint.name!r}: MJCF has one rotor inertia for all coordinates of a ball joint,"
            f" and none for those of a free one; got {rotors.tolist()}"
        )
    own: Mapping[str, float] = bodies.joints.get(j, {})
    own = ({"armature": float(rotors[0])} if rotors[0] else {}) | dict(own)
    more = "".join(f' {word}="{x:.17g}"' for word, x in own.items())
    if joint.kind == "free":
        if model.parents[j]:
            raise InputError(
                f"joint {joint.name!r} is free and hangs on {model.names[model.parents[j]]!r}; in "
                "MJCF only bodies of the world are free"
            )
        return f"<freejoint name={quoteattr(joint.name)}/>"
    if joint.kind == "spherical":
        return f'<joint name={quoteattr(joint.name)} type="ball"{more}/>'
    limit = f' range="{row_text(np.array(bodies.ranges[j]))}"' if j in bodies.ranges else ""
    kind = "slide" if joint.kind == "prismatic" else "hinge"
    return (
        f'<joint name={quoteattr(joint.name)} type="{kind}" axis="{row_text(joint.axis)}"'
        f"{limit}{more}/>"
    )


def _inertial(inertia: pin.Inertia, name: str) -> str:
    """Mass, centre of mass and principal moments of a body."""
    I = np.array(inertia.inertia)  # noqa: E741
    moments, axes = np.diag(I).copy(), np.eye(3)
    if (np.diag(moments) != I).any():
        moments, axes = np.linalg.eigh(I)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
    moments = np.maximum(moments, 0.0)
    largest = int(np.argmax(moments))
    others = float(np.delete(moments, largest).sum())
    if moments[largest] > others * (1.0 + ROUNDED) + NOTHING:
        raise InputError(
            f"body {name!r}: a principal moment of {moments[largest]:g} kg m^2 is above the sum of "
            f"the others, {others:g}; MuJoCo refuses such bodies: correct its inertia"
        )
    moments[largest] = min(moments[largest], others)
    turn = pin.SE3(axes, np.array(inertia.lever))
    return (
        f'<inertial {pose_text(turn)} mass="{inertia.mass:.17g}" '
        f'diaginertia="{row_text(moments)}"/>'
    )


def _sites(sites: Sequence[tuple[str, pin.SE3]], indent: str) -> Iterator[str]:
    for name, placement in sites:
        yield f"{indent}<site name={quoteattr(name)} {pose_text(placement)}/>"


def pose_text(place: pin.SE3) -> str:
    """``pos`` and ``quat``; without what is identity."""
    x, y, z, w = pin.Quaternion(place.rotation).coeffs()
    turned = bool((place.rotation != np.eye(3)).any())
    quat = f' quat="{row_text(np.array([w, x, y, z]))}"' if turned else ""
    return f'pos="{row_text(place.translation)}"{quat}'
