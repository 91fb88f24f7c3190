"""The elements of SDF: their valid children and attributes, and their values.

Elements that change the equation of motion are read or refused by name; elements that do not are
listed as ignored; all others are errors.
"""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, suggestion
from holoctl.io.reader_limits import LARGEST
from holoctl.io.rotations import quaternion, turn
from holoctl.io.xml import Element, decimals

__all__ = [
    "GROUND",
    "ROOT_JOINT",
    "TYPES",
    "check_words",
    "child_of",
    "name_of",
    "number",
    "pose_of",
    "ties_joints",
    "triple",
    "true",
    "word",
    "yes",
]

GROUND = "universe"
ROOT_JOINT = "root_joint"
"""The joint that ties a model to the ground if no joint of the file does."""

TYPES = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic",
    "ball": "spherical", "fixed": "weld", "universal": "universal", "revolute2": "universal",
}  # fmt: skip
"""Types of joints that are read, and their names in `Linkage`."""

_HARMLESS = "plugin sensor"
_CHILDREN: dict[str, tuple[str, str]] = {  # tag: elements read, elements ignored
    "sdf": ("world model", "actor light"),
    "world": (
        "model gravity physics",
        "actor atmosphere audio gui light magnetic_field plugin population road scene "
        "spherical_coordinates state wind",
    ),
    "model": (
        "link joint frame pose static",
        "allow_auto_disable enable_wind plugin self_collide",
    ),
    "link": (
        "pose inertial gravity kinematic",
        "audio_sink audio_source battery collision enable_wind light must_be_base_link "
        f"particle_emitter projector self_collide velocity_decay visual {_HARMLESS}",
    ),
    "inertial": ("pose mass inertia", "density"),
    "inertia": ("ixx ixy ixz iyy iyz izz", ""),
    "frame": ("pose", ""),
    "joint": (
        "pose parent child axis axis2 gearbox_ratio gearbox_reference_body",
        f"physics screw_thread_pitch thread_pitch {_HARMLESS}",
    ),
    "axis": ("xyz limit dynamics use_parent_model_frame mimic", "initial_position"),
    "limit": ("lower upper effort velocity", "dissipation stiffness"),
    "dynamics": ("damping friction spring_stiffness spring_reference", ""),
    "mimic": ("multiplier offset reference", ""),
}
_CHILDREN["axis2"] = _CHILDREN["axis"]
_ATTRIBUTES = {
    "sdf": "version",
    "world": "name",
    "model": "name canonical_link placement_frame namespace",
    "link": "name",
    "inertial": "auto",
    "joint": "name type",
    "frame": "name attached_to",
    "pose": "relative_to frame rotation_format degrees",
    "xyz": "expressed_in",
    "mimic": "joint axis",
}
_SEVERAL = ("world", "model", "link", "joint", "frame", "physics")
_WHY = {
    "include": "other files are not opened; paste the model here",
    "gripper": "the load of a gripper is unknown",
    "fluid_added_mass": "the mass of a fluid is not an inertia of a rigid body",
}


def check_words(root: Element) -> None:
    """Raise an error for unknown elements; ignored elements are checked for includes only."""
    for element in root.each():
        if element.tag == "include":
            raise element.error(f"<include> is not read: {_WHY['include']}")
    waiting = [root]
    while waiting:
        element = waiting.pop()
        valid = _ATTRIBUTES.get(element.tag, "").split()
        for name in element.attributes:
            if name not in valid and not name.startswith("xmlns"):
                raise element.error(
                    f"{element} has no attribute {name!r}{suggestion(name, valid)}; "
                    f"valid: {', '.join(valid) or 'none'}"
                )
        read, ignored = (words.split() for words in _CHILDREN.get(element.tag, ("", "")))
        seen: set[str] = set()
        for child in element.children:
            if child.tag in read:
                waiting += [child] if child.tag != "physics" else []
            elif child.tag not in ignored:
                known = [*read, *ignored]
                why = _WHY.get(child.tag) or (
                    "nested models are; give their links and joints in one model"
                    if child.tag == "model"
                    else f"valid: {', '.join(known) or 'none'}{suggestion(child.tag, known)}"
                )
                raise child.error(f"<{child.tag}> in {element} is not read: {why}")
            if child.tag in seen and child.tag in read and child.tag not in _SEVERAL:
                raise child.error(f"<{child.tag}> is given twice in {element}")
            seen.add(child.tag)


def ties_joints(plugin: Element) -> bool:
    """Whether a plugin couples joints or closes loops, judging by its names."""
    words = {*plugin.attributes.values(), *(element.tag for element in plugin.each())}
    return any(tie in text.lower() for text in words for tie in ("mimic", "loop"))


def child_of(element: Element, tag: str) -> Element | None:
    """The first child element with this tag."""
    return next((child for child in element.children if child.tag == tag), None)


def number(element: Element, tag: str, default: float, infinite: bool = False) -> float:
    """The number in a child element; `infinite` allows inf."""
    child = child_of(element, tag)
    if child is None:
        return default
    digits = child.text.strip().lower()
    if infinite and digits.lstrip("+-") in ("inf", "infinity"):
        return -math.inf if digits.startswith("-") else math.inf
    found = decimals(digits, [1])
    if found is None or (not infinite and abs(found[0]) > LARGEST):
        most = "" if infinite else f" of at most {LARGEST:g} in size"
        raise child.error(
            f"{element}: {tag} must be a finite number{most}; got {child.text[:60]!r}"
        )
    return found[0]


def triple(element: Element, tag: str, default: tuple[float, ...]) -> Vector:
    """The three numbers in a child element."""
    child = child_of(element, tag)
    if child is None:
        return np.array(default)
    found = decimals(child.text, [3])
    if found is None or max(map(abs, found)) > LARGEST:
        raise child.error(
            f"{element}: {tag} must be three numbers of at most {LARGEST:g} in size; "
            f"got {child.text[:60]!r}"
        )
    return np.array(found)


def true(element: Element, tag: str, default: bool) -> bool:
    """The truth value of a child element."""
    child = child_of(element, tag)
    return default if child is None else yes(child, child.text, tag)


def yes(place: Element, text: str, what: str) -> bool:
    """The truth value of a text; `what` is its name for messages."""
    answer = text.strip().lower()
    if answer not in ("0", "1", "false", "true"):
        raise place.error(f"{what} must be 0, 1, false or true; got {text[:60]!r}")
    return answer in ("1", "true")


def word(element: Element, tag: str) -> str:
    """The text in a child element that must be there."""
    child = child_of(element, tag)
    if child is None or not child.text.strip():
        raise element.error(f"{element}: <{tag}> is missing or empty")
    return child.text.strip()


def name_of(element: Element) -> str:
    """The name of an element, which must be printable and not reserved."""
    name = element.attributes.get("name", "")
    reserved = name in ("world", GROUND, ROOT_JOINT) or name[:2] == name[-2:] == "__"
    if not name or not name.isprintable() or reserved:
        what = f"the name {name[:60]!r} is reserved" if reserved else "it needs a printable name"
        raise element.error(f"<{element.tag}>: {what}")
    return name


def pose_of(element: Element) -> pin.SE3:
    """The numbers of the pose of an element: x y z and angles, or a quaternion."""
    pose = child_of(element, "pose")
    if pose is None or not pose.text.strip():
        return pin.SE3.Identity()
    form = pose.attributes.get("rotation_format", "euler_rpy")
    if form not in ("euler_rpy", "quat_xyzw"):
        raise pose.error(f"rotation_format must be euler_rpy or quat_xyzw; got {form[:60]!r}")
    size = 6 if form == "euler_rpy" else 7
    found = decimals(pose.text, [size])
    if found is None or max(map(abs, found)) > LARGEST:
        raise pose.error(
            f"{element}: a pose has {size} finite numbers of at most {LARGEST:g} in size; "
            f"got {pose.text[:80]!r}"
        )
    at = np.array(found[:3])
    if size == 7:
        x, y, z, w = found[3:]
        norm = math.hypot(x, y, z, w)
        if not abs(norm - 1.0) < 1e-2:
            raise pose.error(f"{element}: the quaternion has norm {norm:g}, not 1")
        return pin.SE3(quaternion(w / norm, x / norm, y / norm, z / norm), at)
    degrees = yes(pose, pose.attributes.get("degrees", "false"), "degrees")
    roll, pitch, yaw = (np.deg2rad(a) if degrees else a for a in found[3:])
    x_axis, y_axis, z_axis = np.eye(3)
    return pin.SE3(turn(z_axis, yaw) @ turn(y_axis, pitch) @ turn(x_axis, roll), at)
