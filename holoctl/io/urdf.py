"""URDF to a Pinocchio model: errors are detected here, with their line, then Pinocchio reads it.

Pinocchio's own parser writes to stderr and does not report the place of an error. So the text is
checked first, and Pinocchio reads a new document with only the elements that describe the
mechanism: links with their inertia, joints with origin, axis, limit and dynamics. Elements that are
not part of URDF are read by `urdf_dialects`.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, listing, suggestion
from holoctl.base.errors import LoadError
from holoctl.io.friction_and_springs import FrictionAndSprings
from holoctl.io.reader_limits import FREE, LARGEST, MOST_PARTS, check_count
from holoctl.io.xml import Element, blamed_on, check_root, decimals, parsed
from holoctl.tree.frames import AXES
from holoctl.tree.inertia_checks import about_one_axis, check_mass, check_moments, parallel

__all__ = [
    "FLAT",
    "NOISE_INERTIA",
    "SINGLE",
    "Urdf",
    "UrdfElement",
    "losses_of",
    "model_of",
    "origin_of",
    "read_urdf",
]

log = logging.getLogger(__name__)

# ------------------------------------------------------------------------ elements of URDF

_NUMBER, _TEXT = "a finite number", "a text"
_SIZE = f"a finite number of at most {LARGEST:g} in size"
_VECTOR = f"three finite numbers of at most {LARGEST:g} in size"

# The attributes of each element; "!" marks those that must be there.
_ATTRIBUTES: dict[str, dict[str, str]] = {
    "robot": {"name": _TEXT},
    "link": {"name!": _TEXT},
    "inertial": {},
    "origin": {"xyz": _VECTOR, "rpy": _VECTOR},
    "mass": {"value!": _SIZE},
    "inertia": dict.fromkeys(["ixx!", "ixy!", "ixz!", "iyy!", "iyz!", "izz!"], _SIZE),
    "joint": {"name!": _TEXT, "type!": _TEXT},
    "parent": {"link!": _TEXT},
    "child": {"link!": _TEXT},
    "axis": {"xyz!": _VECTOR},
    "limit": {"lower": _NUMBER, "upper": _NUMBER, "effort!": _NUMBER, "velocity!": _NUMBER},
    "dynamics": {"damping": _NUMBER, "friction": _NUMBER},
    "mimic": {"joint!": _TEXT, "multiplier": _SIZE, "offset": _SIZE},
}
# The elements in each element, at most one of a kind.
_CHILDREN: dict[str, tuple[str, ...]] = {
    "link": ("inertial",),
    "inertial": ("origin", "mass!", "inertia!"),
    "joint": ("origin", "parent!", "child!", "axis", "limit", "dynamics", "mimic"),
}
_OTHERS = (
    "visual", "collision", "material", "geometry", "calibration", "safety_controller", "quat_xyzw",
    "version",
)  # fmt: skip
"""Elements of URDF, or of its dialects, that do not describe the mechanism."""
FLAT = (
    "%s: these links have a single moment of inertia, and they turn about its axis only, so "
    "that the others have no influence: those of a flat body are used: %s"
)
"""Warning of a reader about links whose moments it completes: the file, and their names."""
_DEEPEST = 1000
SINGLE = ("revolute", "continuous", "prismatic")
"""Joints of one coordinate."""

_TYPES = (*SINGLE, "fixed", "floating", "planar")
_BALLS = ("ball", "spherical")  # of dialects
NOISE_INERTIA = 1e-15
"""kg m^2: below it, moments of a link without mass are rounding noise of the CAD, and taken as 0; a
grain of a milligram that is a millimetre wide has 1e-13."""


@dataclass(frozen=True)
class UrdfElement:
    """A checked element: its attributes as texts, numbers or triples, and its child elements.

    `owner` is the name of the link or joint that it belongs to.
    """

    tag: str
    file: str
    line: int
    owner: str
    values: dict[str, Any]
    parts: dict[str, UrdfElement]

    def error(self, message: str) -> LoadError:
        """An error at this place in the file."""
        return LoadError(message, file=self.file, key=self.owner, line=self.line)

    def changed(self, values: dict[str, Any], **parts: dict[str, Any]) -> UrdfElement:
        """A copy with other attributes, and with other attributes of the elements in it."""
        changed = {
            tag: UrdfElement(tag, self.file, self.line, self.owner, new, {})
            for tag, new in parts.items()
        }
        return UrdfElement(
            self.tag, self.file, self.line, self.owner, self.values | values, self.parts | changed
        )

    @property
    def parent(self) -> str:
        """The parent link of a joint."""
        return str(self.parts["parent"].values["link"])

    @property
    def child(self) -> str:
        """The child link of a joint."""
        return str(self.parts["child"].values["link"])


@dataclass(frozen=True)
class Urdf:
    """A checked URDF: links and joints by name, which form one tree.

    Mimic joints are as in the file; `model_of` leaves them free. `root` has all elements of the
    file. `balls` are the joints of type ball or spherical; they are continuous in `joints`, until
    `model_of` replaces them.
    """

    robot: UrdfElement
    links: dict[str, UrdfElement]
    joints: dict[str, UrdfElement]
    root: Element
    balls: tuple[str, ...] = ()


def read_urdf(text: str, file: str) -> Urdf:
    """Check a URDF text.

    Raises
    ------
    LoadError
        With the line: for XML that does not parse, elements and attributes that are missing or
        wrong, impossible inertias, unknown links and joint types, links that do not form one tree.
    """
    root = parsed(text, file)
    check_root(root, "robot", "a URDF")
    robot = _checked(root, file, "robot")
    if "name" not in robot.values:
        robot.values["name"] = Path(file).stem
        log.warning(
            "%s: <robot> has no attribute 'name'; its name is %r, that of the file",
            file, robot.values["name"],
        )  # fmt: skip
    count = sum(child.tag in ("link", "joint") for child in root.children)
    check_count(robot, count, MOST_PARTS, "links and joints")
    links, joints = _named(root, "link", file), _named(root, "joint", file)
    if not links:
        raise robot.error("there are no links")
    for link in links.values():
        _check_inertial(link)
    balls = tuple(name for name, joint in joints.items() if joint.values["type"] in _BALLS)
    for name in balls:
        joints[name].values["type"] = "continuous"  # a placeholder: see `model_of`
        joints[name].parts.pop("axis", None)
    for name, joint in joints.items():
        _check_joint(name, joint, links)
        _check_mimic(name, joint, joints)
    _check_tree(links, joints)
    _warn_of_rotors(root, file)
    _warn_of_attributes(root, file)
    _warn_of_mimics(joints, file)
    return Urdf(robot, links, joints, root, balls)


def _warn_of_rotors(root: Element, file: str) -> None:
    """Warn about rotor inertias, which dialects have but URDF has not: they are not ignored
    silently."""
    lines = [
        element.line
        for element in root.each()
        if any(map(_names_rotor, (element.tag, *element.attributes)))
    ]
    if lines:
        log.warning(
            "%s: rotor inertias are not part of URDF and are not read (line %s); give them in the "
            "YAML file, rotor_inertia and gear_ratio",
            file, ", ".join(map(str, lines[:10])),
        )  # fmt: skip


def _warn_of_attributes(root: Element, file: str) -> None:
    """Warn about attributes of limits, losses and couplings that are not part of URDF and not
    read."""
    for tag in ("limit", "dynamics", "mimic"):
        known = [name.rstrip("!") for name in _ATTRIBUTES[tag]]
        found = [
            f"{name!r} of joint {joint.attributes.get('name', '')!r} (line {part.line})"
            f"{suggestion(name, known)}"
            for joint in root.children
            if joint.tag == "joint"
            for part in joint.children
            if part.tag == tag
            for name in part.attributes
            if name not in known and not _names_rotor(name)
        ]
        if found:
            more = f" and {len(found) - 10} more" if len(found) > 10 else ""
            log.warning(
                "%s: attributes of <%s> that are not part of URDF are not read: %s%s; valid: %s",
                file, tag, ", ".join(found[:10]), more, ", ".join(known),
            )  # fmt: skip


def _warn_of_mimics(joints: Mapping[str, UrdfElement], file: str) -> None:
    """Warn about <mimic> with fixed joints: a fixed follower stays fixed, a fixed leader is at
    zero."""
    for name, joint in joints.items():
        if "mimic" not in joint.parts:
            continue
        mimic = joint.parts["mimic"]
        master = mimic.values["joint"]
        if joint.values["type"] == "fixed":
            log.warning(
                "%s: <mimic> of joint %r (line %s) is not read: the joint is fixed",
                file, name, mimic.line,
            )  # fmt: skip
        elif joints[master].values["type"] == "fixed":
            log.warning(
                "%s: <mimic> of joint %r (line %s): joint=%r is fixed, at zero, so the joint is "
                "held at offset=%g",
                file, name, mimic.line, master, mimic.values.get("offset", 0.0),
            )  # fmt: skip


def _names_rotor(word: str) -> bool:
    """Whether a tag or attribute is the name of a rotor inertia in a dialect of URDF."""
    plain = word.rpartition(":")[2].replace("_", "").lower()
    return plain in ("armature", "rotorinertia", "motorinertia")


# --------------------------------------------------------------------------------- elements


def _named(root: Element, tag: str, file: str) -> dict[str, UrdfElement]:
    """All links, or all joints, by name."""
    found: dict[str, UrdfElement] = {}
    for element in root.children:
        if element.tag.startswith("xacro:"):
            raise LoadError(
                "this is a xacro file; turn it into a URDF with the program xacro first",
                file=file,
                line=element.line,
            )
        if element.tag == "drake:joint":
            raise element.error(
                "<drake:joint> is not read: write a <joint>; joint_type in the YAML file makes "
                "it a spherical or a universal joint"
            )
        if element.tag == tag:
            part = _checked(element, file, element.attributes.get("name") or tag)
            if part.owner in found:
                first = found[part.owner].line
                raise part.error(f"two {tag}s are called {part.owner!r}; the first: line {first}")
            found[part.owner] = part
    return found


def _checked(element: Element, file: str, owner: str) -> UrdfElement:
    """An element with its attributes and children, checked."""
    tag = element.tag
    part = UrdfElement(tag, file, element.line, owner, {}, {})
    what = f"<{tag}> of {owner!r}"
    for wanted, kind in _ATTRIBUTES[tag].items():
        name, required = wanted.rstrip("!"), wanted.endswith("!")
        if name in element.attributes:
            part.values[name] = _value(element.attributes[name], kind)
            if part.values[name] is None:
                got = element.attributes[name][:60]
                raise part.error(f"{what}: {name} must be {kind}; got {got!r}")
        elif required:
            raise part.error(f"{what}: the attribute {name!r} is missing")
    if tag == "origin" and "quat_xyzw" in element.attributes:
        raise part.error(f"{what}: quat_xyzw is not read; give the rotation as rpy")
    _check_for_slips(element, part, what)
    for wanted in _CHILDREN.get(tag, ()):
        name, required = wanted.rstrip("!"), wanted.endswith("!")
        children = [_checked(c, file, owner) for c in element.children if c.tag == name]
        if len(children) > 1:
            raise children[1].error(f"{what}: <{name}> is given twice")
        if required and not children:
            raise part.error(f"{what}: <{name}> is missing")
        if children:
            part.parts[name] = children[0]
    return part


def _check_for_slips(element: Element, part: UrdfElement, what: str) -> None:
    """Raise an error for names that look misspelt: ignoring them would change the robot."""
    known = [name.rstrip("!") for name in _CHILDREN.get(element.tag, ())]
    for child in element.children:
        if child.tag not in (*known, *_OTHERS):
            meant = suggestion(child.tag, known) if known else ""
            if meant:
                raise LoadError(
                    f"{what}: there is no element <{child.tag}> in URDF{meant}",
                    file=part.file, key=part.owner, line=child.line,
                )  # fmt: skip
    if element.tag == "limit":  # see _warn_of_attributes
        return
    names = [name.rstrip("!") for name in _ATTRIBUTES[element.tag]]
    for name in element.attributes:
        if name not in (*names, *_OTHERS) and suggestion(name, names):
            raise part.error(f"{what}: there is no attribute {name!r}{suggestion(name, names)}")


def _value(text: str, kind: str) -> Any:
    """A text, number or triple as floats; None if the text is of another kind."""
    if kind == _TEXT:
        return text or None
    numbers = decimals(text, [3 if kind == _VECTOR else 1])
    if numbers is None or (kind != _NUMBER and max(map(abs, numbers)) > LARGEST):
        return None
    return numbers if kind == _VECTOR else numbers[0]


def _check_inertial(link: UrdfElement) -> None:
    """Raise an error for an impossible mass or inertia; all zero means no body, and is allowed."""
    if "inertial" not in link.parts:
        return
    mass, inertia = (link.parts["inertial"].parts[tag] for tag in ("mass", "inertia"))
    with blamed_on(mass):
        check_mass(f"link {link.owner!r}", mass.values["value"])
    moments = _moments(inertia)
    if mass.values["value"] == 0.0 and np.abs(moments).max() < NOISE_INERTIA:
        inertia.values.update(dict.fromkeys(inertia.values, 0.0))
        return
    if about_one_axis(moments) is None:  # else see _completed
        with blamed_on(inertia):
            check_moments(f"link {link.owner!r}: inertia", moments)


def _moments(inertia: UrdfElement) -> Array:
    """The moments of inertia and products of a link, (3, 3)."""
    xx, xy, xz, yy, yz, zz = (
        inertia.values[f"i{of}"] for of in ("xx", "xy", "xz", "yy", "yz", "zz")
    )
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


# ----------------------------------------------------------------------------- joints, tree


def _check_joint(name: str, joint: UrdfElement, links: Mapping[str, UrdfElement]) -> None:
    kind, here = joint.values["type"], f"joint {name!r}"
    if name == "universe":
        raise joint.error(f"{here}: this is the name of the world; choose another")
    if kind not in _TYPES:
        raise joint.error(
            f"{here}: there is no joint type {kind!r}{suggestion(kind, _TYPES)}; valid types: "
            f"{', '.join((*_TYPES, *_BALLS))}. For a universal joint write continuous here, and in "
            f"the YAML file joint_name: [{name}], joint_type: [UJOINT_XY]"
        )
    for end in (joint.parts["parent"], joint.parts["child"]):
        link = end.values["link"]
        if link not in links:
            raise end.error(
                f"{here}: there is no link called {link!r}{suggestion(link, links)}; "
                f"valid names: {listing(list(links))}"
            )
    if kind in ("revolute", "prismatic") and "limit" not in joint.parts:
        raise joint.error(f"{here}: a {kind} joint needs a <limit> with effort and velocity")
    if kind in SINGLE and "limit" in joint.parts:
        mimic = joint.parts["mimic"].values if "mimic" in joint.parts else {}
        backwards = mimic.get("multiplier", 1.0) < 0.0
        _check_limit(here, joint.parts["limit"], turns=kind == "continuous", backwards=backwards)
    axis_part = joint.parts.get("axis", joint)
    axis = axis_part.values.get("xyz", (1.0, 0.0, 0.0))  # URDF's default
    if kind in SINGLE and not 1e-6 < math.hypot(*axis) < 1e6:
        raise axis_part.error(f"{here}: the axis has no direction (its length should be 1)")
    if kind == "planar" and axis != (0.0, 0.0, 1.0):
        raise axis_part.error(
            f"{here}: Pinocchio moves planar joints in x and y of the joint frame; turn the "
            "origin so that the axis is 0 0 1"
        )


def _check_limit(here: str, limit: UrdfElement, turns: bool, backwards: bool) -> None:
    for name in ("effort", "velocity"):
        if limit.values[name] < 0.0:
            raise limit.error(
                f"{here}: {name} must not be negative; got {limit.values[name]:g}; 0 means no limit"
            )
    lower, upper = (limit.values.get(side, 0.0) for side in ("lower", "upper"))
    if lower > upper and backwards:
        limit.values.update(lower=upper, upper=lower)
        log.warning(
            "%s: %s (line %s): lower %g is above upper %g, because the joint mimics another one "
            "with a negative multiplier; they are exchanged",
            limit.file, here, limit.line, lower, upper,
        )  # fmt: skip
    elif lower > upper and not turns:
        raise limit.error(f"{here}: lower {lower:g} is above upper {upper:g}")


def _check_mimic(name: str, joint: UrdfElement, joints: Mapping[str, UrdfElement]) -> None:
    if "mimic" not in joint.parts:
        return
    mimic, kind = joint.parts["mimic"], joint.values["type"]
    if kind not in (*SINGLE, "fixed"):
        raise mimic.error(f"joint {name!r}: a {kind} joint cannot mimic another one")
    able = [n for n, j in joints.items() if j.values["type"] in SINGLE and n != name]
    fixed = [n for n, j in joints.items() if j.values["type"] == "fixed" and n != name]
    master = mimic.values["joint"]
    if master not in (*able, *fixed):
        raise mimic.error(
            f"joint {name!r}: there is no joint {master!r} that it could mimic"
            f"{suggestion(master, able)}; valid names: {listing(able)}"
        )


def _check_tree(links: Mapping[str, UrdfElement], joints: Mapping[str, UrdfElement]) -> None:
    """Check that every link but the root is the child of one joint, and that all are connected."""
    above: dict[str, UrdfElement] = {}
    below: dict[str, list[str]] = {name: [] for name in links}
    for name, joint in joints.items():
        if joint.child in above:
            raise joint.error(
                f"link {joint.child!r} is the child of two joints, {above[joint.child].owner!r} "
                f"and {name!r}; cut the loop there and close it in the YAML file (closed_loop)"
            )
        above[joint.child] = joint
        below[joint.parent].append(joint.child)
    roots = [name for name in links if name not in above]
    if len(roots) > 1:
        raise links[roots[1]].error(
            f"{len(roots)} links are the child of no joint: {listing(roots)}; "
            "only the root of the tree may be"
        )
    reached, level, depth = set(roots), roots, 0
    while level:
        level, depth = [child for link in level for child in below[link]], depth + 1
        reached.update(level)
        if level and depth == _DEEPEST:  # Pinocchio's parser is recursive and would crash
            raise links[level[0]].error(f"the tree is more than {_DEEPEST} links deep")
    ring = [name for name in links if name not in reached]
    if ring:
        raise above[ring[0]].error(f"these links form a cycle of parents: {listing(ring)}")
    if "universe" in above:
        raise links["universe"].error(
            "only the root may be called 'universe': this is the name of the world"
        )


def origin_of(part: UrdfElement) -> pin.SE3:
    """The pose of a joint, or of the inertia of a link, from ``<origin>``."""
    values = part.parts["origin"].values if "origin" in part.parts else {}
    none = (0.0, 0.0, 0.0)
    rotation = pin.rpy.rpyToMatrix(np.array(values.get("rpy", none)))
    return pin.SE3(rotation, np.array(values.get("xyz", none)))


def losses_of(urdf: Urdf, replaced: Mapping[str, str]) -> FrictionAndSprings:
    """The friction from ``<dynamics>`` of the joints; `replaced` as for `model_of`."""
    found = FrictionAndSprings(urdf.robot.file, urdf.robot)
    for name, joint in urdf.joints.items():
        if "dynamics" not in joint.parts or "fixed" in (joint.values["type"], replaced.get(name)):
            continue
        dynamics = joint.parts["dynamics"]
        for word, kind in (("damping", "viscous"), ("friction", "coulomb")):
            x = dynamics.values.get(word, 0.0)
            if x < 0.0:
                found.left_out[f"{word} of {name!r}"] = "negative"
            elif x and joint.values["type"] not in SINGLE:
                why = f"a {joint.values['type']} joint, of lengths and angles"
                found.left_out[f"{word} of {name!r}"] = why
            else:
                found.add(kind, name, x)
    return found


# ---------------------------------------------------------------------------- to Pinocchio


def model_of(
    urdf: Urdf,
    replaced: Mapping[str, str],
    counted: Collection[str] = (),
    free_flyer: bool = False,
) -> pin.Model:
    """The Pinocchio model of a checked URDF; its mimic joints are left free.

    Parameters
    ----------
    urdf : Urdf
    replaced : mapping of str to str
        Joints that are replaced: by "fixed", "spherical", or the two axes of a universal joint,
        such as "xy". Axes are those of the joint frame; a fixed joint stays at zero. The bounds of
        the position are dropped, those of effort and velocity apply to every coordinate.
    counted : collection of str
        Joints whose full turns count: continuous ones among them become revolute, without bounds.
    free_flyer : bool
        Add a free joint called "root_joint" for the root link, which is fixed otherwise.

    Notes
    -----
    A universal joint u becomes two joints ``u[0]`` and ``u[1]``, followed by a frame u: Pinocchio
    4.1 computes a wrong time derivative of the Jacobian of its composite joint.
    """
    document = ElementTree.Element("robot", name=urdf.robot.values["name"])
    for link in _completed(urdf, replaced, free_flyer):
        document.append(_xml(link))
    for name, joint in urdf.joints.items():
        for part in _rewritten(urdf, name, joint, replaced.get(name), name in counted):
            document.append(_xml(part))
    text = ElementTree.tostring(document, encoding="unicode")
    if free_flyer and "root_joint" in urdf.joints:
        raise urdf.joints["root_joint"].error(
            "joint 'root_joint': the joint of the free flyer has this name; choose another"
        )
    try:
        model = (
            pin.buildModelFromXML(text, pin.JointModelFreeFlyer(), "root_joint")
            if free_flyer
            else pin.buildModelFromXML(text)
        )
    except Exception as error:
        raise urdf.robot.error(f"Pinocchio cannot read it: {error}") from None
    balls = [name for name, kind in replaced.items() if kind == "spherical"]
    return _with_balls(model, balls) if balls else model


def _completed(urdf: Urdf, replaced: Mapping[str, str], free_flyer: bool) -> Iterator[UrdfElement]:
    """The links; missing moments without influence on the motion are those of a flat body."""
    above, found = {joint.child: joint for joint in urdf.joints.values()}, list[str]()
    for name, link in urdf.links.items():
        inertial = link.parts.get("inertial")
        flat = about_one_axis(_moments(inertial.parts["inertia"])) if inertial else None
        if inertial is None or flat is None:
            yield link
            continue
        axis, body = origin_of(inertial).rotation @ flat[0], name
        while body in above:
            joint = above[body]
            if not _keeps(joint, replaced.get(joint.owner, joint.values["type"]), axis):
                break
            axis, body = origin_of(joint).rotation @ axis, joint.parent
        if body in above or free_flyer:
            by = f"joint {above[body].owner!r}" if body in above else "the free flyer"
            raise inertial.parts["inertia"].error(
                f"link {name!r}: inertia: no body has a single moment; it is enough only if a "
                f"link turns about this axis only, but {by} turns it about others"
            )
        found.append(name)
        full = {f"i{a}{a}": x for a, x in zip("xyz", np.diag(flat[1]).tolist(), strict=True)}
        inertia = inertial.parts["inertia"].values | full
        parts = {**link.parts, "inertial": inertial.changed({}, inertia=inertia)}
        yield UrdfElement(link.tag, link.file, link.line, name, link.values, parts)
    if found:
        log.warning(FLAT, urdf.robot.file, listing(found))


def _keeps(joint: UrdfElement, kind: str, axis: Vector) -> bool:
    """Whether a joint turns its child only about an axis, in axes of the child, or not at all."""
    if kind not in ("revolute", "continuous", "planar"):
        return kind in ("fixed", "prismatic")
    own = joint.parts["axis"].values["xyz"] if "axis" in joint.parts else (1.0, 0.0, 0.0)
    return parallel(axis, np.array((0.0, 0.0, 1.0) if kind == "planar" else own))


def _rewritten(
    urdf: Urdf, name: str, joint: UrdfElement, replacement: str | None, counts: bool
) -> Iterator[UrdfElement]:
    """The joints and links that represent a joint in the document for Pinocchio."""
    given = joint.parts["limit"].values if "limit" in joint.parts else {}
    most = sys.float_info.max
    limit = {"effort": most, "velocity": most, **given, "lower": -FREE, "upper": FREE}
    if replacement == "fixed":
        yield joint.changed({"type": "fixed"})
    elif replacement == "spherical":
        yield joint.changed({"type": "continuous"}, axis={"xyz": AXES["x"]})  # see _with_balls
    elif replacement is not None:
        names = [f"{name}[0]", f"{name}[1]"]
        links = [f"{name}[0].link", f"{name}[1].link"]
        for taken in (*names, *links):
            if taken in urdf.links or taken in urdf.joints:
                raise joint.error(f"the universal joint {name!r} needs the name {taken!r} itself")
        for link in links:
            yield UrdfElement("link", joint.file, joint.line, name, {"name": link}, {})
        a, b = ({"xyz": AXES[axis]} for axis in replacement)
        first: dict[str, Any] = {"name": names[0], "type": "revolute"}
        yield joint.changed(first, child={"link": links[0]}, axis=a, limit=limit)
        second: dict[str, Any] = {"name": names[1], "type": "revolute"}
        between = {"parent": {"link": links[0]}, "child": {"link": links[1]}, "origin": {}}
        yield joint.changed(second, **between, axis=b, limit=limit)
        yield joint.changed({"type": "fixed"}, parent={"link": links[1]}, origin={})
    elif counts and joint.values["type"] == "continuous":
        yield joint.changed({"type": "revolute"}, limit=limit)
    else:
        yield joint


def _with_balls(model: pin.Model, balls: Collection[str]) -> pin.Model:
    """A copy of `model` in which some joints are spherical, with the same order and frames."""
    new = pin.Model()
    new.name, new.gravity = model.name, model.gravity
    for j in range(1, model.njoints):
        name, joint = model.names[j], model.joints[j]
        of_v = slice(joint.idx_v, joint.idx_v + joint.nv)
        of_q = slice(joint.idx_q, joint.idx_q + joint.nq)
        per_v = [getattr(model, limit)[of_v] for limit in _EFFORT_AND_VELOCITY]
        bounds = [model.lowerPositionLimit[of_q], model.upperPositionLimit[of_q]]
        losses = [getattr(model, loss)[of_v] for loss in _LOSSES]
        if name in balls:
            joint = pin.JointModelSpherical()
            per_v, losses = ([np.repeat(x, 3) for x in group] for group in (per_v, losses))
            bounds = [np.full(4, -1.01), np.full(4, 1.01)]  # Pinocchio's bounds of quaternions
        new.addJoint(
            model.parents[j], joint, model.jointPlacements[j], name, *per_v, *bounds, *losses
        )
    for j, inertia in enumerate(model.inertias.tolist()):
        new.inertias[j] = inertia
    for frame in model.frames.tolist()[1:]:
        new.addFrame(frame, False)
    return new


_EFFORT_AND_VELOCITY = (
    "lowerEffortLimit", "upperEffortLimit", "lowerVelocityLimit", "upperVelocityLimit",
)  # fmt: skip
_LOSSES = ("lowerDryFrictionLimit", "upperDryFrictionLimit", "damping")


def _xml(part: UrdfElement) -> ElementTree.Element:
    """A part as a URDF element; empty elements and mimic are left out."""
    element = ElementTree.Element(part.tag, {n: _words(v) for n, v in part.values.items()})
    for child in part.parts.values():
        if child.tag != "mimic" and (child.values or child.parts):
            element.append(_xml(child))
    return element


def _words(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(map(repr, value))
    return value if isinstance(value, str) else repr(value)
