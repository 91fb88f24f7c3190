"""SDF, the format of Gazebo: a graph of links and joints, with loops, in a `Linkage`.

Versions 1.4 to 1.12. What an SDF says of motors is left to plugins, so motors, a reference
and further closures come from a YAML file beside it.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing, suggestion
from holoctl.constraints.contract import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.io.limits import LARGEST, MOST_PARTS, Place, check_count, check_size
from holoctl.io.rotations import quaternion, turn, z_to
from holoctl.io.sheet import Sheet, check_constraints, motors_of, read_sheet
from holoctl.io.xml import Element, blamed_on, check_root, decimals, parsed
from holoctl.io.yaml_entries import Entry
from holoctl.mechanism.linkage import Linkage
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.inertia import ROUNDED, nearest_moments

__all__ = ["read_sdf"]

log = logging.getLogger(__name__)

Array = NDArray[np.float64]

_GROUND = "universe"
_ROOT_JOINT = "root_joint"
_FREE = 1e6  # bound of a joint without limits, rad or m: finite, so that q can be drawn
_VERSIONS = tuple(f"1.{i}" for i in range(4, 13))
_LIGHT = 1e-3  # share of the masses, and of the moments, of the model that hardly counts
_FRAMES_SINCE = 7  # version 1.7: frames with relative_to and expressed_in

# ---------------------------------------------------------------------- what SDF may hold

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
    "dynamics": ("damping friction spring_stiffness", "spring_reference"),
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
    "gripper": "what a gripper holds is not known",
    "fluid_added_mass": "the mass of a fluid is no inertia of a rigid body",
}


def _check_words(root: Element) -> None:
    """Refuse what is not understood; what is ignored is not looked into, but for includes."""
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
                raise child.error(f"<{child.tag}> stands twice in {element}")
            seen.add(child.tag)


# ----------------------------------------------------------------------------------- values


def _child(element: Element, tag: str) -> Element | None:
    return next((child for child in element.children if child.tag == tag), None)


def _number(element: Element, tag: str, default: float, infinite: bool = False) -> float:
    """The number in a child element; `infinite` allows inf."""
    child = _child(element, tag)
    if child is None:
        return default
    word = child.text.strip().lower()
    if infinite and word.lstrip("+-") in ("inf", "infinity"):
        return -math.inf if word.startswith("-") else math.inf
    found = decimals(word, [1])
    if found is None or (not infinite and abs(found[0]) > LARGEST):
        most = "" if infinite else f" of at most {LARGEST:g} in size"
        raise child.error(
            f"{element}: {tag} must be a finite number{most}; got {child.text[:60]!r}"
        )
    return found[0]


def _triple(element: Element, tag: str, default: tuple[float, ...]) -> Vector:
    child = _child(element, tag)
    if child is None:
        return np.array(default)
    found = decimals(child.text, [3])
    if found is None or max(map(abs, found)) > LARGEST:
        raise child.error(
            f"{element}: {tag} must be three numbers of at most {LARGEST:g} in size; "
            f"got {child.text[:60]!r}"
        )
    return np.array(found)


def _true(element: Element, tag: str, default: bool) -> bool:
    child = _child(element, tag)
    return default if child is None else _yes(child, child.text, tag)


def _yes(place: Element, text: str, what: str) -> bool:
    word = text.strip().lower()
    if word not in ("0", "1", "false", "true"):
        raise place.error(f"{what} must be 0, 1, false or true; got {text[:60]!r}")
    return word in ("1", "true")


def _word(element: Element, tag: str) -> str:
    """The text in a child element that must be there."""
    child = _child(element, tag)
    if child is None or not child.text.strip():
        raise element.error(f"{element}: <{tag}> is missing or empty")
    return child.text.strip()


def _name(element: Element) -> str:
    name = element.attributes.get("name", "")
    reserved = name in ("world", _GROUND, _ROOT_JOINT) or name[:2] == name[-2:] == "__"
    if not name or not name.isprintable() or reserved:
        what = f"the name {name[:60]!r} is reserved" if reserved else "it needs a printable name"
        raise element.error(f"<{element.tag}>: {what}")
    return name


def _pose(element: Element) -> pin.SE3:
    """The numbers of the pose of an element: x y z and angles, or a quaternion."""
    pose = _child(element, "pose")
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
    degrees = _yes(pose, pose.attributes.get("degrees", "false"), "degrees")
    roll, pitch, yaw = (np.deg2rad(a) if degrees else a for a in found[3:])
    x_axis, y_axis, z_axis = np.eye(3)
    return pin.SE3(turn(z_axis, yaw) @ turn(y_axis, pitch) @ turn(x_axis, roll), at)


# ----------------------------------------------------------------------------------- frames


@dataclass
class _Model:
    """A model of the file: its links, joints and frames, and where they are drawn in it.

    `bodies` remembers what `body` found, so that long chains of frames are walked once.
    """

    element: Element
    version: int
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, Element] = field(default_factory=dict)
    frames: dict[str, Element] = field(default_factory=dict)
    placed: dict[str, pin.SE3] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    springs: list[str] = field(default_factory=list)
    odd: dict[str, Array] = field(default_factory=dict)

    def read(self) -> None:
        """Collect and check names, and resolve all poses."""
        groups = {"link": self.links, "joint": self.joints, "frame": self.frames}
        first: dict[str, Element] = {}
        for child in self.element.children:
            if child.tag in groups:
                name = _name(child)
                if name in first:
                    raise child.error(
                        f"{child}: {first[name]} of line {first[name].line} has this name too"
                    )
                groups[child.tag][name] = first[name] = child
                check_count(child, len(first), MOST_PARTS, "links, joints and frames")
        if self.frames and self.version < _FRAMES_SINCE:
            raise next(iter(self.frames.values())).error("<frame> is read from SDF 1.7 on")
        self.placed["__model__"] = pin.SE3.Identity()
        self.placed["world"] = _pose(self.element).inverse()
        for name, element in first.items():
            self._place(name, element, first)

    def _place(self, name: str, element: Element, known: Mapping[str, Element]) -> None:
        """The pose of a frame in the model, by way of all frames that it is relative to."""
        chain: dict[str, None] = {}
        while name not in self.placed:
            if name in chain:
                raise known[name].error(f"the pose of {name!r} is relative to itself")
            chain[name] = None
            element, name = known[name], self._relative_to(known[name])
            if name not in self.placed and name not in known:
                raise element.error(
                    f"{element}: there is no frame {name[:60]!r}{suggestion(name, known)}; "
                    f"valid: {listing(['__model__', *known])}"
                )
        for link in reversed(chain):
            self.placed[link] = self.placed[name] * _pose(known[link])
            name = link

    def _relative_to(self, element: Element) -> str:
        pose = _child(element, "pose")
        attributes = pose.attributes if pose is not None else {}
        if attributes.get("frame"):
            raise element.error(f"{element}: the attribute 'frame' of <pose> is not read")
        if "relative_to" in attributes and self.version < _FRAMES_SINCE:
            raise element.error(f"{element}: relative_to is read from SDF 1.7 on")
        given = attributes.get("relative_to", "")
        if given:
            return given
        if element.tag == "joint":
            return _word(element, "child")
        return element.attributes.get("attached_to") or "__model__"

    def body(self, name: str, place: Element) -> str:
        """The link, or the ground, that a frame is fixed to."""
        seen: set[str] = set()
        while name not in self.links:
            if name in self.bodies:
                name = self.bodies[name]
                break
            if name == "world":
                name = _GROUND
                break
            known = name == "__model__" or name in self.frames or name in self.joints
            if name in seen or not known:
                valid = [*self.links, *self.frames]
                raise place.error(
                    f"{place}: there is no link called {name[:60]!r}{suggestion(name, valid)}; "
                    f"valid names: {listing(valid)}"
                )
            seen.add(name)
            if name == "__model__":
                name = self.canonical
            elif name in self.joints:
                name = _word(self.joints[name], "child")
            else:
                name = self.frames[name].attributes.get("attached_to") or "__model__"
        self.bodies.update(dict.fromkeys(seen, name))
        return name

    @property
    def canonical(self) -> str:
        """The link that the model is held by: the one that is named, or the first."""
        name = self.element.attributes.get("canonical_link") or next(iter(self.links))
        if name not in self.links:
            raise self.element.error(
                f"canonical_link: there is no link {name[:60]!r}{suggestion(name, self.links)}"
            )
        return name

    def where(self, body: str) -> pin.SE3:
        """The pose of a link, or of the ground, in the model."""
        return self.placed["world" if body == _GROUND else body]

    def axis(self, joint: Element, tag: str) -> Vector:
        """The direction of an axis in the model, as drawn."""
        element = _child(joint, tag)
        if element is None:
            raise joint.error(f"{joint}: <{tag}> is missing")
        xyz = _triple(element, "xyz", (0.0, 0.0, 1.0))
        norm = float(np.linalg.norm(xyz))
        if not 1e-6 < norm < 1e6:
            raise element.error(f"{joint}: {tag} has no direction (its length should be 1)")
        frame = self._expressed_in(joint, element)
        direction: Vector = self.placed[frame].rotation @ (xyz / norm)
        return direction

    def _expressed_in(self, joint: Element, axis: Element) -> str:
        xyz, old = _child(axis, "xyz"), _child(axis, "use_parent_model_frame")
        given = xyz.attributes.get("expressed_in", "") if xyz is not None else ""
        if self.version >= _FRAMES_SINCE:
            if old is not None:
                raise old.error("use_parent_model_frame is of SDF before 1.7; use expressed_in")
            if given and given not in self.placed:
                raise axis.error(f"{joint}: expressed_in: there is no frame {given[:60]!r}")
            return given or joint.attributes["name"]
        if given:
            raise axis.error(f"{joint}: expressed_in is read from SDF 1.7 on")
        in_model = _true(axis, "use_parent_model_frame", self.version < 5)
        return "__model__" if in_model else joint.attributes["name"]


# ------------------------------------------------------------------------------------ reader

_TYPES = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic",
    "ball": "spherical", "fixed": "weld", "universal": "universal", "revolute2": "universal",
}  # fmt: skip
_REFUSED_TYPES = {
    "screw": "a screw couples a turn with a slide; use a cylindrical joint of hc.Linkage with "
    "a hc.Coupling",
    "piston": "use a cylindrical joint of hc.Linkage",
}


def read_sdf(text: str, file: str, document: Entry | None, free_flyer: bool) -> Mechanism:
    """The mechanism of an SDF text and of the YAML file beside it.

    Parameters
    ----------
    text, file : str
        The text, and the name of its file for messages.
    document : Entry or None
        The YAML file: motors, reference, closures, couplings, cut.
    free_flyer : bool
        Let the canonical link float, where no joint holds the model to the world; it is fixed
        otherwise.

    Raises
    ------
    LoadError
        With the line, for anything that is not understood or makes no mechanism.
    """
    root = parsed(text, file)
    check_root(root, "sdf", "an SDF")
    version = root.attributes.get("version", "")
    if version not in _VERSIONS:
        raise root.error(f"the version must be one of {', '.join(_VERSIONS)}; got {version[:60]!r}")
    _check_words(root)
    model = _Model(*_only_model(root), int(version.split(".")[1]))
    sheet = Sheet() if document is None else read_sheet(document, None)
    _check_model(model)
    model.read()
    if not model.links:
        raise model.element.error("there are no links")
    linkage = Linkage(sheet.name or _name(model.element), _gravity(root))
    _add_bodies(model, linkage)
    check_size(model.element, sum(map(len, _coordinates(model).values())))
    reference = _add_root(model, linkage, free_flyer)
    for name, joint in model.joints.items():
        with blamed_on(joint):
            _add_joint(name, joint, model, linkage)
    mech = _built(linkage, model, sheet, reference)
    _warn(model)
    return mech


def _only_model(root: Element) -> tuple[Element]:
    """The one model of the file."""
    worlds = [child for child in root.children if child.tag == "world"]
    found = [child for place in (root, *worlds) for child in place.children if child.tag == "model"]
    if len(found) != 1:
        place = found[1] if found else root
        names = [model.attributes.get("name", "") for model in found]
        raise place.error(f"one <model> is read; there are {len(found)}: {listing(names)}")
    return (found[0],)


def _check_model(model: _Model) -> None:
    """Refuse what would change the meaning of the model."""
    element = model.element
    if element.attributes.get("placement_frame"):
        raise element.error("placement_frame is not read; give the pose of the model itself")
    if _true(element, "static", False):
        raise element.error("a static model does not move, so it is no mechanism")
    pose = _child(element, "pose")
    if pose is not None and (pose.attributes.get("relative_to") or pose.attributes.get("frame")):
        raise pose.error("the pose of the model must be in the world, not relative to a frame")


def _gravity(root: Element) -> Vector:
    """That of the world; without a world the usual one."""
    gravity = np.array([0.0, 0.0, -9.81])
    for world in root.children:
        if world.tag == "world":
            gravity = _triple(world, "gravity", (0.0, 0.0, -9.8))  # SDF's default
            for physics in world.children:  # where gravity stood in the first versions
                if physics.tag == "physics":
                    gravity = _triple(physics, "gravity", tuple(gravity))
    return gravity


def _add_bodies(model: _Model, linkage: Linkage) -> None:
    """All links; moments that no body has are mended where nothing depends on them, else refused.

    Cassie's files have some, in links that carry the name of a frame and hardly any mass.
    """
    found = {name: _inertia(link) for name, link in model.links.items()}
    most = _LIGHT * sum(mass for mass, _, _ in found.values())
    most_moment = _LIGHT * sum(float(np.abs(moments).max()) for _, _, moments in found.values())
    for name, (mass, com, inertia) in found.items():
        small, middle, large = np.linalg.eigvalsh(inertia).tolist()
        odd = small >= 0.0 and small + middle < (1.0 - ROUNDED) * large
        used = inertia
        if odd and mass <= most and large <= most_moment:
            model.odd[name], used = inertia, nearest_moments(inertia)
        with blamed_on(model.links[name]):
            linkage.add_body(name, mass, com, used)


def _inertia(link: Element) -> tuple[float, Vector, Array]:
    """Mass, centre of mass, and inertia about it in the axes of the link."""
    if not _true(link, "gravity", True):
        raise link.error(f"{link}: a link without gravity is not read")
    if _true(link, "kinematic", False):
        raise link.error(f"{link}: a kinematic link is moved from outside, which is not read")
    inertial = _child(link, "inertial")
    if inertial is None:
        return 1.0, np.zeros(3), np.eye(3)  # what SDF says that such a link has
    if _yes(inertial, inertial.attributes.get("auto", "false"), "auto"):
        raise inertial.error(f"{link}: auto: the inertia of shapes is not computed; give it")
    pose = _child(inertial, "pose")
    if pose is not None and (pose.attributes.get("frame") or pose.attributes.get("relative_to")):
        raise pose.error(f"{link}: the pose of <inertial> must be in the link itself")
    frame, I = _pose(inertial), _child(inertial, "inertia")  # noqa: E741
    moments = np.eye(3)
    if I is not None:
        xx, yy, zz = (_number(I, tag, 1.0) for tag in ("ixx", "iyy", "izz"))
        xy, xz, yz = (_number(I, tag, 0.0) for tag in ("ixy", "ixz", "iyz"))
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    R = frame.rotation
    return _number(inertial, "mass", 1.0), frame.translation, R @ moments @ R.T


def _add_root(model: _Model, linkage: Linkage, free_flyer: bool) -> dict[str, list[float]]:
    """Tie the model to the world, where no joint does; the reference of that joint."""
    for joint in model.joints.values():
        ends = [model.body(_word(joint, end), joint) for end in ("parent", "child")]
        if joint.attributes.get("type") != "gearbox" and _GROUND in ends:
            if free_flyer:
                raise joint.error(f"free_flyer: {joint} holds the model to the world")
            return {}
    link = model.canonical
    pose = model.placed["world"].inverse() * model.placed[link]
    with blamed_on(model.links[link]):
        if free_flyer:
            linkage.add_joint(_ROOT_JOINT, "free", _GROUND, link)
            return {_ROOT_JOINT: pin.SE3ToXYZQUAT(pose).tolist()}
        linkage.add_joint(_ROOT_JOINT, "weld", _GROUND, link, pose)
    return {}


def _add_joint(name: str, joint: Element, model: _Model, linkage: Linkage) -> None:
    """One joint; its frame in both links is where it is drawn."""
    kind = joint.attributes.get("type", "")
    if kind == "gearbox":
        return
    if kind not in _TYPES:
        valid = [*_TYPES, "gearbox"]
        raise joint.error(
            f"{joint}: the type {kind[:60]!r} is not read: "
            + _REFUSED_TYPES.get(kind, f"valid: {', '.join(valid)}{suggestion(kind, valid)}")
        )
    parent, child = (model.body(_word(joint, end), joint) for end in ("parent", "child"))
    frame = model.placed[name]
    if _TYPES[kind] == "universal":
        frame = pin.SE3(_cross(joint, model), frame.translation)
    elif _TYPES[kind] in ("revolute", "prismatic"):
        R = z_to(frame.rotation.T @ model.axis(joint, "axis"))
        frame = frame * pin.SE3(R, np.zeros(3))
    at = (model.where(body).actInv(frame) for body in (parent, child))
    linkage.add_joint(name, _TYPES[kind], parent, child, *at)


def _cross(joint: Element, model: _Model) -> Array:
    """The axes of a universal joint: x turns first, then y."""
    first, second = model.axis(joint, "axis"), model.axis(joint, "axis2")
    if abs(first @ second) > 1e-6:
        raise joint.error(f"{joint}: axis and axis2 must be at right angles")
    second = second - (first @ second) * first
    second /= np.linalg.norm(second)
    return np.column_stack((first, second, np.cross(first, second)))


# ----------------------------------------------------------------------- gears, mimic joints


def _gears(model: _Model) -> list[tuple[Constraint, Place]]:
    """A `Coupling` for each gearbox and each mimic joint."""
    found: list[tuple[Constraint, Place]] = []
    for name, joint in model.joints.items():
        with blamed_on(joint):
            if joint.attributes.get("type") == "gearbox":
                found.append((_gearbox(name, joint, model), joint))
                continue
            for i, tag in enumerate(("axis", "axis2")):
                axis = _child(joint, tag)
                mimic = _child(axis, "mimic") if axis is not None else None
                if mimic is not None:
                    follower = _coordinate(joint, i, mimic)
                    found.append((_mimic(follower, mimic, model), mimic))
    return found


def _gearbox(name: str, joint: Element, model: _Model) -> Coupling:
    """``angle of the child = -ratio * angle of the parent``, both against the reference body."""
    body = model.body(_word(joint, "gearbox_reference_body"), joint)
    ratio = _number(joint, "gearbox_ratio", 1.0)
    coefficients: dict[str, float] = {}
    for end, tag, factor in (("child", "axis2", 1.0), ("parent", "axis", ratio)):
        other = model.body(_word(joint, end), joint)
        hinge, sign = _hinge_between(body, other, joint, tag, model)
        coefficients[hinge] = coefficients.get(hinge, 0.0) + sign * factor
    return Coupling(coefficients, name=name)


def _hinge_between(
    body: str, other: str, gearbox: Element, tag: str, model: _Model
) -> tuple[str, float]:
    """The revolute joint between two links, and 1, or -1 where its angle counts backwards."""
    for name, joint in model.joints.items():
        if _TYPES.get(joint.attributes.get("type", "")) == "revolute":
            ends = tuple(model.body(_word(joint, end), joint) for end in ("parent", "child"))
            if set(ends) == {body, other}:
                along = float(model.axis(gearbox, tag) @ model.axis(joint, "axis"))
                if abs(along) < 1.0 - 1e-6:
                    raise gearbox.error(f"{gearbox}: {tag} is not the axis of joint {name!r}")
                return name, math.copysign(1.0, along) * (1.0 if ends == (body, other) else -1.0)
    raise gearbox.error(
        f"{gearbox}: a gearbox is read where a revolute joint connects each of its links with "
        f"the reference body; none connects {body!r} and {other!r}"
    )


def _mimic(follower: str, mimic: Element, model: _Model) -> Coupling:
    """``follower = multiplier (leader - reference) + offset``."""
    name = mimic.attributes.get("joint", "")
    if name not in model.joints:
        raise mimic.error(f"mimic: there is no joint {name[:60]!r}{suggestion(name, model.joints)}")
    axis = mimic.attributes.get("axis", "axis")
    if axis not in ("axis", "axis2"):
        raise mimic.error(f"mimic: axis must be axis or axis2; got {axis[:60]!r}")
    leader = _coordinate(model.joints[name], int(axis == "axis2"), mimic)
    factor = _number(mimic, "multiplier", 1.0)
    offset = _number(mimic, "offset", 0.0) - factor * _number(mimic, "reference", 0.0)
    coefficients = {follower: 1.0} | ({leader: -factor} if factor else {})
    if leader == follower:
        raise mimic.error("mimic: a joint cannot mimic itself")
    return Coupling(coefficients, offset=offset, name=f"{follower}-mimic")


def _coordinate(joint: Element, axis: int, place: Element) -> str:
    """The name of the coordinate of an axis of a joint."""
    kind, name = _TYPES.get(joint.attributes.get("type", "")), joint.attributes["name"]
    if kind == "universal":
        return f"{name}[{axis}]"
    if kind not in ("revolute", "prismatic") or axis:
        raise place.error(f"mimic: joint {name!r} has no angle or length on that axis")
    return name


# --------------------------------------------------------------------------------- mechanism


def _built(
    linkage: Linkage, model: _Model, sheet: Sheet, reference: dict[str, list[float]]
) -> Mechanism:
    """The mechanism with motors, couplings and limits."""
    free = [f"{_ROOT_JOINT}[{i}]" for i in range(6)] if reference else []
    names = [*free, *(name for names in _coordinates(model).values() for name in names)]
    with blamed_on(model.element):
        mech = linkage.mechanism(reference=reference)
    motors = motors_of(sheet, names, mech.model)
    given = {name: entry.numbers() for name, entry in sheet.reference.items()}
    places = [*sheet.cut, *sheet.reference.values(), *sheet.motors]
    if places:
        with blamed_on(places[0]):
            cut = [entry.text() for entry in sheet.cut]
            mech = linkage.mechanism(cut, motors, {**reference, **given})
    extra = [*_gears(model), *sheet.closures, *sheet.couplings]
    with blamed_on(model.element):
        mech = mech.with_model(_completed(mech.model, model))
        check_constraints([*((c, model.element) for c in mech.constraints), *extra], mech.model)
        return mech.with_constraints(*(c for c, _ in extra)) if extra else mech


def _coordinates(model: _Model) -> dict[str, list[str]]:
    """The coordinates that each joint of the file has where it is not cut."""
    sizes = {"revolute": 1, "prismatic": 1, "universal": 2, "spherical": 3}
    found: dict[str, list[str]] = {}
    for name, joint in model.joints.items():
        size = sizes.get(_TYPES.get(joint.attributes.get("type", ""), ""), 0)
        found[name] = [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
    return found


def _completed(plain: pin.Model, model: _Model) -> pin.Model:
    """A copy of the model with the frames of the file, and limits and losses of tree joints."""
    new = plain.copy()
    for name, element in model.frames.items():
        link = model.body(name, element)
        joint, at = _place(new, link)
        at = at * model.where(link).actInv(model.placed[name])
        new.addFrame(pin.Frame(name, joint, 0, at, pin.FrameType.OP_FRAME), False)
    for joint in new.joints[1:]:
        if (joint.nq, joint.nv) == (1, 1):
            new.lowerPositionLimit[joint.idx_q] = -_FREE
            new.upperPositionLimit[joint.idx_q] = _FREE
    for name, element in model.joints.items():
        for i, tag in enumerate(("axis", "axis2")):
            axis = _child(element, tag)
            kind = _TYPES.get(element.attributes.get("type", ""), "")
            if axis is None or not kind or (i and kind != "universal"):
                continue
            for part in (f"{name}[{i}]",) if kind == "universal" else (name,):
                if new.existJointName(part):
                    _limit(new, part, element, axis)
            dynamics = _child(axis, "dynamics")
            if dynamics is not None and _number(dynamics, "spring_stiffness", 0.0):
                model.springs.append(name)
    return new


def _place(model: pin.Model, link: str) -> tuple[int, pin.SE3]:
    """The joint that moves a link, and the link in it."""
    if link == _GROUND:
        return 0, pin.SE3.Identity()
    frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)]
    return frame.parentJoint, frame.placement


def _limit(model: pin.Model, part: str, joint: Element, axis: Element) -> None:
    """Limits and losses of one joint of the model."""
    found = model.joints[model.getJointId(part)]
    of_v, single = slice(found.idx_v, found.idx_v + found.nv), found.nv == 1
    limit, losses = _child(axis, "limit"), _child(axis, "dynamics")
    lower, upper, most = -_FREE, _FREE, sys.float_info.max
    effort = speed = most
    if limit is not None:
        turns = joint.attributes["type"] == "continuous"
        lower = lower if turns else max(_number(limit, "lower", -math.inf, True), -_FREE)
        upper = upper if turns else min(_number(limit, "upper", math.inf, True), _FREE)
        if lower > upper:
            raise limit.error(f"{joint}: lower {lower:g} is above upper {upper:g}")
        effort, speed = (_number(limit, tag, -1.0, True) for tag in ("effort", "velocity"))
        effort, speed = (most if x < 0.0 else min(x, most) for x in (effort, speed))
    if single:
        model.lowerPositionLimit[found.idx_q] = lower
        model.upperPositionLimit[found.idx_q] = upper
    model.upperEffortLimit[of_v], model.lowerEffortLimit[of_v] = effort, -effort
    model.upperVelocityLimit[of_v], model.lowerVelocityLimit[of_v] = speed, -speed
    if losses is not None:
        friction = abs(_number(losses, "friction", 0.0))
        model.damping[of_v] = max(_number(losses, "damping", 0.0), 0.0)
        model.upperDryFrictionLimit[of_v] = friction
        model.lowerDryFrictionLimit[of_v] = -friction


def _warn(model: _Model) -> None:
    """One record for springs, which Gazebo would add, and one for inertias that cannot be."""
    if model.odd:
        given = next(iter(model.odd.values()))
        told, used = (
            ", ".join(f"{m:.3g}" for m in np.linalg.eigvalsh(moments))
            for moments in (given, nearest_moments(given))
        )
        log.warning(
            "%s: no body has the principal moments of inertia of these links, for one is larger "
            "than the sum of the others; they are a thousandth of the model at most, so the "
            "nearest that a body has are used: %s (the first: %s for %s kg m^2)",
            model.element.file, listing(list(model.odd)), used, told,
        )  # fmt: skip
    if model.springs:
        log.warning(
            "%s: springs are not part of the equation of motion; pass them as efforts: %s",
            model.element.file, listing(model.springs),
        )  # fmt: skip
