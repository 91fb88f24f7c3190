"""Loops, couplings and springs of URDF dialects; a warning lists elements that are not read.

    loop_joint             Drake's former readers, Isaac Sim: link1, link2 with xyz and rpy; axis
    loop, coupling         URDF+: predecessor, successor, each with an origin; axis; ratio
    constraint             proposed for urdfdom: parent, child, parent_origin, parent_axis, ...;
                           or GRBDA's: predecessor, successor, of type position or rolling
    drake:ball_constraint, drake:linear_spring_damper
    gazebo                 a joint of SDF; the spring of a joint that it refers to

A loop has a frame in each of its two links, and its axis has the same numbers in both.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, listing, suggestion
from holoctl.base.tolerances import SIX_DIGITS
from holoctl.constraints.closure import Closure
from holoctl.constraints.constraint_protocol import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.forces.joint_spring import JointSpring
from holoctl.forces.spring import Spring
from holoctl.io.friction_and_springs import FrictionAndSprings
from holoctl.io.reader_limits import LARGEST, MOST_CONSTRAINTS, FilePlace, check_count
from holoctl.io.rotations import CYCLE, z_to
from holoctl.io.sdf_elements import (
    GROUND,
    ROOT_JOINT,
    TYPES,
    check_words,
    child_of,
    number,
    ties_joints,
    triple,
)
from holoctl.io.sdf_forces import losses_of
from holoctl.io.sdf_frames import Drawing
from holoctl.io.sdf_linkage import placed_joint
from holoctl.io.urdf import SINGLE, Urdf, origin_of
from holoctl.io.xml import Element, blamed_on, decimals
from holoctl.tree.frames import FrameLike, resolve_frame

__all__ = ["Dialects", "read_dialects"]

Ties = list[tuple[Constraint, FilePlace]]
log = logging.getLogger(__name__)

_ENDS = {
    "loop_joint": (("link1", "link2"),),
    "loop": (("predecessor", "successor"),),
    "coupling": (("predecessor", "successor"),),
    "constraint": (("predecessor", "successor"), ("parent", "child")),
}
"""The elements that name the two links."""

_JOINTS = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "planar": "planar",
    "fixed": "weld", "link": "weld", "spherical": "spherical", "ball": "spherical",
    "position": "spherical", "universal": "universal",
}  # fmt: skip
"""Types of loops, and their names in `Closure`; a link that is cut is a weld."""

_OTHERS = (
    "link", "joint", "material", "transmission", "sensor", "ros2_control", "group", "group_state",
    "end_effector", "virtual_joint", "passive_joint", "camera", "frame", "fixed_frame",
)  # fmt: skip
"""Elements of <robot> that may name links and joints without constraining them."""

_TIES = (
    "loop",
    "constraint",
    "equality",
    "closure",
    "coupl",
    "mimic",
    "tendon",
    "spring",
    "bushing",
    "damper",
)


@dataclass(frozen=True)
class Dialects:
    """Loops, couplings and springs of a URDF, in addition to its tree.

    Attributes
    ----------
    urdf, replaced, free_flyer
        As for `read_dialects`.
    drawing : Drawing
        Its links at the initial configuration, and the joints of SDF that close loops.
    above : mapping of str to str
        The joint that carries each link.
    names : frozenset of str
        Names of links, joints, frames and the world.
    loops, couplings : list of (Constraint, FilePlace)
    springs : list of (JointSpring or Spring, FilePlace)
    left : list of str
        Elements that are not read but would change the motion.
    """

    urdf: Urdf
    replaced: Mapping[str, str]
    free_flyer: bool
    drawing: Drawing
    above: Mapping[str, str]
    names: frozenset[str]
    loops: Ties = field(default_factory=list)
    couplings: Ties = field(default_factory=list)
    springs: list[tuple[JointSpring | Spring, FilePlace]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def beside(self, closures: Ties, model: pin.Model) -> Ties:
        """The loops without those that the YAML file closes itself, which a warning names.

        A closure of the YAML file between the same two bodies, or of the same name, is the same
        loop.
        """
        known: dict[frozenset[int], str] = {}
        for closure, place in closures:
            with blamed_on(place):
                known[_bodies(closure, model)] = closure.default_name
        kept, twice = Ties(), list[str]()
        for loop, place in self.loops:
            name = loop.default_name
            if name in known.values() or _bodies(loop, model) in known:
                self.drawing.joints.pop(name, None)
                twice.append(name)
            else:
                kept.append((loop, place))
        if twice:
            log.warning(
                "%s: the YAML file also closes these loops of the URDF, or others between the same "
                "bodies, and takes precedence: %s",
                self.drawing.element.file, listing(twice),
            )  # fmt: skip
        return kept

    def add_to(self, losses: FrictionAndSprings) -> None:
        """Add springs, and friction of SDF joints, to those of the URDF's own joints."""
        found = losses_of(self.drawing, losses.file)
        losses.viscous.update(found.viscous)
        losses.coulomb.update(found.coulomb)
        losses.springs.extend([*self.springs, *found.springs])
        losses.left_out.update(found.left_out)

    def warn(self) -> None:
        """Log one warning about elements that are not read."""
        if self.left:
            more = f"; and {len(self.left) - 10} more" if len(self.left) > 10 else ""
            log.warning(
                "%s: these elements, which are not part of URDF, may change the motion and are "
                "not read: %s%s; give loops and couplings in the YAML file (closed_loop, "
                "couplings)",
                self.drawing.element.file, "; ".join(self.left[:10]), more,
            )  # fmt: skip


def read_dialects(urdf: Urdf, replaced: Mapping[str, str], free_flyer: bool) -> Dialects:
    """Loops, couplings and springs of a URDF that are well defined; the rest is listed.

    Parameters
    ----------
    urdf : Urdf
    replaced : mapping of str to str
        Joints that the YAML file turns into others, as for `model_of`.
    free_flyer : bool
        Whether the root link floats.

    Raises
    ------
    LoadError
        With the line: for values that are not numbers, and unknown links.
    """
    frames = {e.attributes.get("name", "") for e in urdf.root.children if e.tag == "frame"}
    names = frozenset({*urdf.links, *urdf.joints, *frames, "world"})
    above = {joint.child: name for name, joint in urdf.joints.items()}
    found = Dialects(urdf, replaced, free_flyer, _drawn(urdf, above), above, names)
    for element in urdf.root.children:
        if element.tag in _ENDS:
            _loop(element, found)
        elif element.tag in ("drake:ball_constraint", "drake:linear_spring_damper"):
            _drake(element, found)
        elif element.tag == "gazebo" and "reference" in element.attributes:
            _about(element, found)
        elif element.tag == "gazebo":
            for child in element.children:
                (_of_sdf if child.tag == "joint" else _other)(child, found)
        elif element.tag == "ros2_control":
            for joint in (e for e in element.each() if e.tag == "joint"):
                if any(e.attributes.get("name") == "mimic" for e in joint.children):
                    _mimic(joint, {joint.attributes.get("name", "")}, found)
        elif element.tag not in _OTHERS and "collision" not in element.tag:
            _other(element, found)
    check_count(urdf.robot, len(found.loops) + len(found.couplings), MOST_CONSTRAINTS, "loops")
    return found


def _leave(element: Element, found: Dialects, why: str) -> None:
    found.left.append(f"{element} (line {element.line}: {why})")


# ------------------------------------------------------------------------------ places


def _drawn(urdf: Urdf, above: Mapping[str, str]) -> Drawing:
    """The links at their poses with all joints at zero, as links of a current SDF."""
    placed = {name: pin.SE3.Identity() for name in ("__model__", "world") if name not in urdf.links}
    for link in urdf.links:
        chain = [link]
        while chain[-1] not in placed and chain[-1] in above:
            chain.append(urdf.joints[above[chain[-1]]].parent)
        at = placed.setdefault(chain[-1], pin.SE3.Identity())
        for one in reversed(chain[:-1]):
            at = placed[one] = at * origin_of(urdf.joints[above[one]])
    of_joints = {name: joint.child for name, joint in urdf.joints.items()}
    placed |= {name: placed[link] for name, link in of_joints.items() if name not in placed}
    links = dict.fromkeys(urdf.links, urdf.root)
    return Drawing(urdf.root, 12, links=links, placed=placed, bodies=of_joints)


def _frame(link: str, at: pin.SE3, place: Element, found: Dialects) -> FrameLike:
    """A frame of a link, in the joint that moves it; ``world`` is the ground, unless a link has
    this name."""
    urdf, above = found.urdf, found.above
    if link not in urdf.links and link not in ("world", GROUND):
        raise place.error(
            f"{place}: there is no link called {link[:60]!r}{suggestion(link, urdf.links)}; "
            f"valid names: {listing(list(urdf.links))}"
        )
    while link in above:
        joint = urdf.joints[above[link]]
        kind = found.replaced.get(joint.owner, joint.values["type"])
        if kind != "fixed":
            parts = joint.owner in found.replaced and kind != "spherical"  # a universal joint
            return (f"{joint.owner}[1]" if parts else joint.owner), at
        link, at = joint.parent, origin_of(joint) * at
    return (ROOT_JOINT if found.free_flyer and link in urdf.links else GROUND), at


def _bodies(closure: Constraint, model: pin.Model) -> frozenset[int]:
    if not isinstance(closure, Closure):
        return frozenset()
    owner = f"Closure {closure.default_name!r}"
    return frozenset(resolve_frame(model, end, owner).joint for end in (closure.a, closure.b))


def _triple(element: Element, name: str, default: tuple[float, ...]) -> Vector:
    given = element.attributes.get(name)
    found = default if given is None else decimals(given, [3])
    if found is None or max(map(abs, found)) > LARGEST:
        raise element.error(
            f"{element}: {name} must be three finite numbers of at most {LARGEST:g} in size; "
            f"got {str(given)[:60]!r}"
        )
    return np.array(found)


def _pose(element: Element) -> pin.SE3:
    rpy = _triple(element, "rpy", (0.0, 0.0, 0.0))
    return pin.SE3(pin.rpy.rpyToMatrix(rpy), _triple(element, "xyz", (0.0, 0.0, 0.0)))


# -------------------------------------------------------------------- loops and couplings


def _loop(element: Element, found: Dialects) -> None:
    """A loop between frames of two links, or a coupling."""
    ends = [pair for pair in _ENDS[element.tag] if all(child_of(element, tag) for tag in pair)]
    kind = "rolling" if element.tag == "coupling" else element.attributes.get("type", "")
    if element.tag == "constraint":
        kind = kind.removesuffix("_joint")  # as the parser of the proposal writes it
    if not ends or (kind not in _JOINTS and kind != "rolling"):
        why = f"the type {kind[:60]!r} is not known" if ends else "its words are not known"
        return _leave(element, found, why)
    links, poses, read = list[str](), list[pin.SE3](), {"axis", "ratio", "verbose", *ends[0]}
    read |= {f"{tag}_{part}" for tag in ends[0] for part in ("origin", "axis")}
    for attribute in element.attributes.keys() - {"name", "type"}:
        _leave(element, found, f"its attribute {attribute!r}")
    if why := _unclear(element, ends[0]):
        return _leave(element, found, why)
    for tag in ends[0]:
        end = child_of(element, tag) or element
        links.append(end.attributes.get("link") or end.attributes.get("name", ""))
        origins = (child_of(element, f"{tag}_origin"), child_of(end, "origin"), end)
        poses.append(_pose(next(o for o in origins if o is not None)))
    for child in element.children:
        if child.tag not in read:
            _leave(child, found, f"in {element}")
    if kind == "rolling":
        return _coupling(element, links, found)
    axes = _axes(element, ends[0], _JOINTS[kind])
    if axes is None:
        return _leave(element, found, f"{kind} needs an axis that is the same in both links")
    turned = (pose * pin.SE3(R, np.zeros(3)) for pose, R in zip(poses, axes, strict=True))
    _close(element, _JOINTS[kind], links, list(turned), found)
    return None


def _unclear(element: Element, ends: tuple[str, ...]) -> str:
    """Why a loop is ambiguous: an unknown name, or a part that is given twice."""
    there = list[str]()
    for part in element.children:
        own = {"link", "name", "xyz", "rpy"} if part.tag in ends else set[str]()
        for one in (part, *(part.children if own else ())):
            kind = one.tag.rpartition("_")[2]
            known = {"origin": {"xyz", "rpy"}, "axis": {"xyz"}, "ratio": {"value"}}.get(kind, own)
            if known and (others := one.attributes.keys() - known):
                return f"{min(others)!r} of {one} is not known"
            if one is not part and one.tag != "origin":
                return f"{one} is not known there"
        there.append(part.tag)
        placed = own and part.attributes.keys() & {"xyz", "rpy"}
        there += [f"{part.tag}_origin"] * (len(part.children if own else ()) + bool(placed))
    twice = sorted({tag for tag in there if there.count(tag) > 1})
    return f"it has more than one of {listing(twice)}" if twice else ""


def _axes(element: Element, ends: tuple[str, ...], joint: str) -> tuple[Array, Array] | None:
    """The axes of a closure in the frames of both links; None if they are ambiguous."""
    one, own = child_of(element, "axis"), [child_of(element, f"{end}_axis") for end in ends]
    if joint in ("weld", "spherical"):
        return np.eye(3), np.eye(3)
    given = [axis for axis in (one, *own) if axis is not None]
    # URDF's default, if the axis is URDF's: a loop of the proposal must give it
    found = [_triple(axis, "xyz", (1.0, 0.0, 0.0)) for axis in given]
    if not given and element.tag != "constraint":
        found = [np.array([1.0, 0.0, 0.0])]
    if not found or min(map(np.linalg.norm, found)) < 1e-6:
        return None
    a, b = (x / np.linalg.norm(x) for x in (found[0], found[-1]))
    if joint == "universal":  # x of the one at right angles to y of the other
        return (z_to(a) @ CYCLE.T, z_to(b) @ CYCLE) if all(own) else None
    return (z_to(a), z_to(a)) if np.linalg.norm(a - b) < SIX_DIGITS else None


def _close(
    element: Element, joint: str, links: list[str], poses: list[pin.SE3], found: Dialects
) -> None:
    """Add a closure, unless both of its frames are fixed to one body."""
    a, b = (_frame(link, at, element, found) for link, at in zip(links, poses, strict=True))
    if a[0] == b[0]:
        return _leave(element, found, "it ties parts of one body, and constrains nothing")
    name = element.attributes.get("name") or "-".join(links)
    if "name" not in element.attributes and name in (c.default_name for c, _ in found.loops):
        name = f"{name}-{len(found.loops) + 1}"
    if name in found.urdf.joints:
        raise element.error(f"{element}: a joint is also called {name!r}; choose another name")
    with blamed_on(element):
        found.loops.append((Closure(a, b, joint=joint, name=name), element))
    return None


def _coupling(element: Element, links: list[str], found: Dialects) -> None:
    """``successor = ratio * predecessor``: each the sum of the joints from their nearest common
    ancestor link."""
    urdf, above, ways = found.urdf, found.above, list[list[str]]()
    for end in links:
        _frame(end, pin.SE3.Identity(), element, found)
        link, way = end, list[str]()
        while link in above:
            way.append(above[link])
            link = urdf.joints[above[link]].parent
        ways.append(way)
    if (given := child_of(element, "ratio")) is None:
        return _leave(element, found, "<ratio> is needed")
    ratio = decimals(given.attributes.get("value", ""), [1])
    if ratio is None or abs(ratio[0]) > LARGEST:
        raise given.error(f"{element}: the value of <ratio> must be a finite number")
    coefficients: dict[str, float] = {}
    for way, others, x in ((ways[1], ways[0], 1.0), (ways[0], ways[1], -ratio[0])):
        for joint in (name for name in way if name not in others):
            kind = urdf.joints[joint].values["type"]
            if joint in found.replaced or kind not in (*SINGLE, "fixed"):
                return _leave(element, found, f"joint {joint!r} has not one coordinate")
            if kind != "fixed" and x:
                coefficients[joint] = x
    if not coefficients:
        return _leave(element, found, "no joint is between its links")
    with blamed_on(element):
        name = element.attributes.get("name") or "-".join(links)
        found.couplings.append((Coupling(coefficients, name=name), element))
    return None


# --------------------------------------------------------------------------------- Drake, SDF


def _drake(element: Element, found: Dialects) -> None:
    """Two points of two links tied together, or with a spring and a damper between them."""
    values = dict[str, Element]()
    for child in element.children:
        values[child.tag.removeprefix(f"{element.tag}_")] = child
    needed = {"body_A", "body_B", "p_AP", "p_BQ"}
    if element.tag != "drake:ball_constraint":
        needed |= {"free_length", "stiffness", "damping"}
    ours = all(e.attributes.keys() <= {"name", "value"} for e in (element, *element.children))
    if values.keys() != needed or len(element.children) > len(needed) or not ours:
        return _leave(element, found, f"it must have {listing(sorted(needed))}, each once")
    links = [values[end].attributes.get("name", "") for end in ("body_A", "body_B")]
    points = [_triple(values[p], "value", (np.inf,) * 3) for p in ("p_AP", "p_BQ")]
    poses = [pin.SE3(np.eye(3), point) for point in points]
    if element.tag == "drake:ball_constraint":
        return _close(element, "spherical", links, poses, found)
    numbers = dict[str, float]()
    for word in ("free_length", "stiffness", "damping"):
        text = values[word].attributes.get("value", "") if word in values else ""
        x = decimals(text, [1])
        if x is None:
            return _leave(element, found, f"{word} is needed, a number")
        numbers[word] = x[0]
    a, b = (_frame(link, at, element, found) for link, at in zip(links, poses, strict=True))
    if a[0] == b[0]:
        return None  # its length never changes
    name = element.attributes.get("name") or f"spring {'-'.join(links)}"
    with blamed_on(element):
        length, k, c = numbers["free_length"], numbers["stiffness"], numbers["damping"]
        found.springs.append((Spring(a, b, k, length, c, name=name), element))
    return None


def _of_sdf(joint: Element, found: Dialects) -> None:
    """A joint of SDF between links of the URDF, with the elements of SDF 1.7 and later."""
    drawing, name = found.drawing, joint.attributes.get("name", "")
    ends = [end.text.strip() for tag in ("parent", "child") if (end := child_of(joint, tag))]
    known = (*drawing.links, *drawing.bodies, "world", "__model__")
    ours = joint.attributes.get("type") in TYPES and len(ends) == 2 and set(ends) <= set(known)
    if not ours or not name:
        return _leave(joint, found, "its name, its type or its links are not known")
    axes = [axis for tag in ("axis", "axis2") if (axis := child_of(joint, tag))]
    if any(child_of(axis, tag) for axis in axes for tag in ("mimic", "use_parent_model_frame")):
        return _leave(joint, found, "mimic and use_parent_model_frame are not read here")
    check_words(joint)
    drawing.joints[name] = joint
    drawing.place(name, joint, {name: joint})
    kind, parent, child, *poses = placed_joint(joint, drawing)
    _close(joint, kind, [parent, child], poses, found)
    if name not in (loop.default_name for loop, _ in found.loops):
        del drawing.joints[name]
    elif any(_turned(axis, drawing.placed[name]) for axis in axes):
        log.warning(
            "%s: the axes of %s (line %s) are read in the axes of the joint, as in SDF 1.7; before "
            "1.5 they are in those of the model, which differ",
            joint.file, joint, joint.line,
        )  # fmt: skip
    return None


def _turned(axis: Element, frame: pin.SE3) -> bool:
    """Whether an axis has another direction in the axes of a frame than in those of the model."""
    xyz = child_of(axis, "xyz")
    here = triple(axis, "xyz", (0.0, 0.0, 1.0))
    stated = xyz is not None and "expressed_in" in xyz.attributes
    return not stated and not np.allclose(frame.rotation @ here, here, rtol=0.0, atol=SIX_DIGITS)


# ------------------------------------------------------------------------------ other elements


def _about(gazebo: Element, found: Dialects) -> None:
    """A <gazebo> element of a link or joint: the spring of a joint, the gravity of a link."""
    name, urdf = gazebo.attributes["reference"], found.urdf
    for part in gazebo.children:
        if part.tag in ("joint", "link", "model"):
            _leave(part, found, f"in the <gazebo> element of {name!r}")
    if child_of(gazebo, "springStiffness"):
        kind = urdf.joints[name].values["type"] if name in urdf.joints else ""
        if kind not in SINGLE or name in found.replaced:
            return _leave(gazebo, found, "springStiffness of no joint with one coordinate")
        k, rest = (number(gazebo, f"spring{w}", 0.0) for w in ("Stiffness", "Reference"))
        if k < 0.0:
            _leave(gazebo, found, f"springStiffness of joint {name!r} is negative")
        elif k > 0.0:
            found.springs.append((JointSpring(name, k, rest), gazebo))
    link = urdf.links.get(name)
    heavy = link is not None and "inertial" in link.parts
    for tag, off in (("turnGravityOff", True), ("gravity", False), ("kinematic", True)):
        child = child_of(gazebo, tag)
        if (
            heavy
            and child
            and child.text.strip().lower() in (("1", "true") if off else ("0", "false"))
        ):
            _leave(child, found, f"of link {name!r}")
    return None


def _other(element: Element, found: Dialects) -> None:
    """List an element as not read, if it constrains links or joints, or may do so."""
    words = {w for e in element.each() for w in (*e.attributes.values(), *e.text.split())}
    if element.tag == "plugin":  # plugins name joints for many reasons
        if ties_joints(element):
            _mimic(element, words, found)
        return
    named = words & found.names
    adds = element.tag in ("link", "model", "include")  # of a <gazebo>
    if (
        adds
        or len(named) > 1
        or any(tie in one.tag.lower() for one in element.each() for tie in _TIES)
    ):
        _leave(element, found, f"names {listing(sorted(named), 4)}" if named else "not known")


def _mimic(element: Element, words: Collection[str], found: Dialects) -> None:
    """List an element that couples joints as not read, unless the URDF has the same <mimic>."""
    joints = [found.urdf.joints[name] for name in sorted(words) if name in found.urdf.joints]
    if not any("mimic" in joint.parts for joint in joints):
        _leave(element, found, f"names {listing([j.owner for j in joints], 4)}")
