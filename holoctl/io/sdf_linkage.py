"""Links and joints of an SDF as bodies and joints of a `Linkage`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, suggestion
from holoctl.base.tolerances import SIX_DIGITS
from holoctl.io.rotations import z_to
from holoctl.io.sdf_elements import (
    GROUND,
    ROOT_JOINT,
    TYPES,
    child_of,
    number,
    pose_of,
    true,
    word,
    yes,
)
from holoctl.io.sdf_frames import Drawing
from holoctl.io.xml import Element, blamed_on
from holoctl.mechanism.linkage import Linkage
from holoctl.tree.inertia_checks import about_one_axis, nearest_moments, parallel

__all__ = ["add_bodies", "add_joint", "add_root", "coordinates", "placed_joint"]


_LIGHT = 1e-3  # negligible fraction of the masses, and of the moments, of the model
_REFUSED_TYPES = {
    "screw": "a screw couples a rotation with a translation; use a cylindrical joint of "
    "hc.Linkage with a hc.Coupling",
    "piston": "use a cylindrical joint of hc.Linkage",
}


def add_bodies(model: Drawing, linkage: Linkage, free_flyer: bool) -> None:
    """Add all links; impossible moments are corrected if they are negligible, else refused.

    Cassie's files have some, in links that represent frames and have hardly any mass. Links of
    planar mechanisms have a single moment: see `about_one_axis`.
    """
    found = {name: _inertia(link) for name, link in model.links.items()}
    most = _LIGHT * sum(mass for mass, *_ in found.values())
    most_moment = _LIGHT * sum(float(np.abs(moments).max()) for *_, moments in found.values())
    for name, (mass, com, R, moments) in found.items():
        flat, drawn = about_one_axis(moments), model.placed[name].rotation @ R
        if flat and _turns_about(name, drawn @ flat[0], model, free_flyer):
            model.flat.append(name)
            moments = flat[1]  # noqa: PLW2901
        used = inertia = R @ moments @ R.T
        small, middle, large = np.linalg.eigvalsh(inertia).tolist()
        odd = small >= 0.0 and small + middle < (1.0 - SIX_DIGITS) * large
        if odd and mass <= most and large <= most_moment:
            model.odd[name], used = inertia, nearest_moments(inertia)
        with blamed_on(model.links[name]):
            linkage.add_body(name, mass, com, used)
        if not true(model.links[name], "gravity", True):
            model.lifted[name] = mass, com


def _inertia(link: Element) -> tuple[float, Vector, Array, Array]:
    """Mass, centre of mass, axes in the link, and inertia about it in these axes."""
    if true(link, "kinematic", False):
        raise link.error(f"{link}: a kinematic link is moved from outside, which is not read")
    inertial = child_of(link, "inertial")
    if inertial is None:
        return 1.0, np.zeros(3), np.eye(3), np.eye(3)  # SDF's default
    if yes(inertial, inertial.attributes.get("auto", "false"), "auto"):
        raise inertial.error(f"{link}: auto: the inertia of shapes is not computed; give it")
    pose = child_of(inertial, "pose")
    if pose is not None and (pose.attributes.get("frame") or pose.attributes.get("relative_to")):
        raise pose.error(f"{link}: the pose of <inertial> must be in the link itself")
    frame, I = pose_of(inertial), child_of(inertial, "inertia")  # noqa: E741
    moments = np.eye(3)
    if I is not None:
        xx, yy, zz = (number(I, tag, 1.0) for tag in ("ixx", "iyy", "izz"))
        xy, xz, yz = (number(I, tag, 0.0) for tag in ("ixy", "ixz", "iyz"))
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return number(inertial, "mass", 1.0), frame.translation, frame.rotation, moments


def _turns_about(link: str, axis: Vector, model: Drawing, free_flyer: bool) -> bool:
    """Whether a link is tied to the ground only by joints that turn about one axis, or not at
    all."""
    tied: dict[str, list[str]] = {}
    for joint, a, b in _ties(model):
        kind = TYPES.get(joint.attributes.get("type", ""), "")
        about = kind == "revolute" and parallel(axis, model.axis(joint, "axis"))
        if about or kind in ("weld", "prismatic"):
            tied.setdefault(a, []).append(b)
            tied.setdefault(b, []).append(a)
    held = free_flyer or any(GROUND in ends for _, *ends in _ties(model))
    waiting = [GROUND if held else model.canonical]
    reached = set(waiting)
    while waiting:
        new = [body for body in tied.get(waiting.pop(), ()) if body not in reached]
        reached.update(new)
        waiting += new
    return link in reached


def _ties(model: Drawing) -> Iterator[tuple[Element, str, str]]:
    """The joints with the bodies of their parent and child."""
    for joint in model.joints.values():
        if joint.attributes.get("type") != "gearbox":
            parent, child = (model.body(word(joint, end), joint) for end in ("parent", "child"))
            yield joint, parent, child


def add_root(model: Drawing, linkage: Linkage, free_flyer: bool) -> dict[str, list[float]]:
    """Tie the model to the world if no joint does; returns the reference of that joint."""
    for joint, *ends in _ties(model):
        if GROUND in ends:
            if free_flyer:
                raise joint.error(f"free_flyer: {joint} ties the model to the world")
            return {}
    link = model.canonical
    pose = model.placed["world"].inverse() * model.placed[link]
    with blamed_on(model.links[link]):
        if free_flyer:
            linkage.add_joint(ROOT_JOINT, "free", GROUND, link)
            return {ROOT_JOINT: pin.SE3ToXYZQUAT(pose).tolist()}
        linkage.add_joint(ROOT_JOINT, "weld", GROUND, link, pose)
    return {}


def add_joint(name: str, joint: Element, model: Drawing, linkage: Linkage) -> None:
    """Add one joint; its frame in both links is that of the initial configuration."""
    kind = joint.attributes.get("type", "")
    if kind == "gearbox":
        return
    if kind not in TYPES:
        valid = [*TYPES, "gearbox"]
        raise joint.error(
            f"{joint}: the type {kind[:60]!r} is not read: "
            + _REFUSED_TYPES.get(kind, f"valid: {', '.join(valid)}{suggestion(kind, valid)}")
        )
    linkage.add_joint(name, *placed_joint(joint, model))


def placed_joint(joint: Element, model: Drawing) -> tuple[str, str, str, pin.SE3, pin.SE3]:
    """The type of a joint in `Linkage`, its parent and child, and its frame in both of them."""
    kind = TYPES[joint.attributes["type"]]
    parent, child = (model.body(word(joint, end), joint) for end in ("parent", "child"))
    frame = model.placed[joint.attributes["name"]]
    if kind == "universal":
        frame = pin.SE3(_cross(joint, model), frame.translation)
    elif kind in ("revolute", "prismatic"):
        R = z_to(frame.rotation.T @ model.axis(joint, "axis"))
        frame = frame * pin.SE3(R, np.zeros(3))
    at_parent, at_child = (model.where(body).actInv(frame) for body in (parent, child))
    return kind, parent, child, at_parent, at_child


def _cross(joint: Element, model: Drawing) -> Array:
    """The axes of a universal joint: x turns first, then y."""
    first, second = model.axis(joint, "axis"), model.axis(joint, "axis2")
    if abs(first @ second) > 1e-6:
        raise joint.error(f"{joint}: axis and axis2 must be at right angles")
    second = second - (first @ second) * first
    second /= np.linalg.norm(second)
    return np.column_stack((first, second, np.cross(first, second)))


def coordinates(model: Drawing) -> dict[str, list[str]]:
    """The coordinates of each joint of the file, if it is not cut."""
    sizes = {"revolute": 1, "prismatic": 1, "universal": 2, "spherical": 3}
    found: dict[str, list[str]] = {}
    for name, joint in model.joints.items():
        size = sizes.get(TYPES.get(joint.attributes.get("type", ""), ""), 0)
        found[name] = [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
    return found
