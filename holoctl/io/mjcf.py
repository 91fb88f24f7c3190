"""MJCF, the format of MuJoCo: bodies, joints, equalities, motors and keyframes of one file.

Pinocchio reads MJCF too, but drops joint equalities and all bodies of the world but the
first, silently; so the tree is built here. What the words of MJCF mean, and which of them are
read, stands in `mjcf_elements`; docs/file-formats.md has the same as a table.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing, suggestion
from holoctl.constraints.closure import Closure
from holoctl.constraints.contract import Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.io.limits import (
    MOST_CONSTRAINTS,
    MOST_GEOMS,
    MOST_KEYS,
    MOST_PARTS,
    check_count,
    check_size,
)
from holoctl.io.mjcf_elements import (
    Defaults,
    Item,
    check_words,
    compiler_of,
    flattened,
    quaternion,
    unit,
)
from holoctl.io.mjcf_inertia import Lump, lump_of, scaled_to_total
from holoctl.io.rotations import z_to
from holoctl.io.xml import Element, blamed_on, check_root, parsed
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import coordinate_names

__all__ = ["read_mjcf"]

log = logging.getLogger(__name__)

Array = NDArray[np.float64]

_WORLD = "world"  # MuJoCo's name for what Pinocchio calls universe
_GROUND = "universe"
_FREE = 1e6  # bound of a joint without limits, rad or m: finite, so that q can be drawn
_MOST = sys.float_info.max  # bound of an effort or velocity without limits, as of Pinocchio
_TYPES = ("hinge", "slide", "ball", "free")
_SINGLE = ("hinge", "slide")


def read_mjcf(text: str, file: str, free_flyer: bool = False) -> Mechanism:
    """The mechanism of an MJCF text.

    Parameters
    ----------
    text, file : str
        The text, and the name of its file for messages.
    free_flyer : bool
        Let the first body of the world float on a joint "root_joint"; only for a file without
        a free joint, whose first body has no joint at all.

    Raises
    ------
    LoadError
        With the line, for anything that is not understood or makes no mechanism.
    """
    root = parsed(text, file)
    check_root(root, "mujoco", "an MJCF")
    check_words(root)
    _check_counts(root)
    defaults = Defaults(compiler_of(root))
    defaults.read(root)
    gravity, enabled = _options(root, defaults)
    tree = _Tree(root, defaults, free_flyer)
    tree.model.gravity.linear = gravity
    tree.build()
    rows = _equalities(root, tree)
    motors, B = _motors(root, tree)
    _check_tendons(root, tree)
    reference = _reference(root, tree)
    tree.warn()
    off = [i for i, (_, _, active) in enumerate(rows) if not (active and enabled)]
    with blamed_on(root):
        return Mechanism(
            tree.model,
            [c for i, (c, _, _) in enumerate(rows) if i not in off],
            motors if B is None else (),
            actuation=B,
            reference=reference,
            parked=[(i, rows[i][0]) for i in off],
        )


def _check_counts(root: Element) -> None:
    """Refuse a file that would take too long, or too much memory; of joints coordinates tell."""
    counts = Counter(element.tag for element in root.each())
    parts = sum(counts[tag] for tag in ("body", "frame", "site"))
    check_count(root, parts, MOST_PARTS, "bodies, frames and sites")
    check_count(root, counts["geom"], MOST_GEOMS, "geoms")
    check_count(root, counts["key"], MOST_KEYS, "keys")
    check_count(root, len(_sections(root, "equality")), MOST_CONSTRAINTS, "equalities")


def _sections(root: Element, tag: str) -> list[Element]:
    """The elements in all sections of one kind: a file may have several."""
    return [child for section in root.children if section.tag == tag for child in section.children]


def _options(root: Element, defaults: Defaults) -> tuple[Vector, bool]:
    """Gravity, and whether equalities hold at all."""
    gravity: tuple[float, ...] = (0.0, 0.0, -9.81)
    enabled, off, fluid = True, False, False
    for option in root.children:
        if option.tag == "option":
            item = defaults.plain(option)
            gravity = item.numbers("gravity", gravity)
            fluid |= item.size("density", 0.0) > 0.0 or item.size("viscosity", 0.0) > 0.0
            for flag in option.children:
                words = ("enable", "disable")
                item = defaults.plain(flag)
                off = item.word("gravity", words, words[off]) == "disable"
                enabled = item.word("equality", words, words[not enabled]) == "enable"
    if fluid:
        log.warning("%s: the drag of density and viscosity is not part of the equation", root.file)
    return np.zeros(3) if off else np.array(gravity), enabled


# ------------------------------------------------------------------------------------- tree

_Part = tuple[Element, pin.SE3, str]
"""An element in a body, the frame that it stands in, its default class."""
_Placed = tuple[int, pin.SE3]
"""A joint of the model, and a placement in it."""


@dataclass(frozen=True)
class _Body:
    """A body that waits to be added, and where the body is that it stands in."""

    element: Element
    frame: pin.SE3
    childclass: str
    above: _Placed
    in_world: bool = False
    floats: bool = False


@dataclass(frozen=True)
class _Joint:
    """A joint of the file: its index in the model, its type and the value where it is zero."""

    index: int
    type: str
    ref: float
    item: Item


@dataclass
class _Tree:
    """The model while it is built, and where bodies, sites and joints of the file are in it."""

    root: Element
    defaults: Defaults
    free_flyer: bool
    model: pin.Model = field(default_factory=pin.Model)
    bodies: dict[str, _Placed] = field(default_factory=dict)
    sites: dict[str, _Placed] = field(default_factory=dict)
    joints: dict[str, _Joint] = field(default_factory=dict)
    lumps: list[tuple[int, pin.SE3, Lump]] = field(default_factory=list)
    springs: list[str] = field(default_factory=list)
    lifted: list[str] = field(default_factory=list)
    q0: list[Vector] = field(default_factory=list)
    given: set[str] = field(default_factory=set)

    def build(self) -> None:
        """All bodies, depth first in the order of the file."""
        self.model.name = self.root.attributes.get("model", "") or "mujoco"
        self.bodies[_WORLD] = (0, pin.SE3.Identity())
        waiting = self._of_world()[::-1]
        if self.free_flyer and waiting:
            waiting[-1] = replace(waiting[-1], floats=True)
        while waiting:
            waiting += self._body(waiting.pop())[::-1]
        names = coordinate_names(self.model)
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise self.joints[twice[0]].item.error(
                f"the coordinate {twice[0]!r} of a ball or free joint has this name; choose another"
            )
        self._put_inertias()

    def _of_world(self) -> list[_Body]:
        """The bodies that stand in the world."""
        world = self.bodies[_WORLD]
        found = []
        for section in self.root.children:
            if section.tag == "worldbody":
                for element, frame, childclass in flattened(section, "main", self.defaults):
                    if element.tag == "body":
                        found.append(_Body(element, frame, childclass, world, in_world=True))
                    elif element.tag == "site":
                        self._site(element, frame, childclass, world)
                    elif element.tag in ("joint", "freejoint", "inertial"):  # in a <frame>
                        raise element.error(f"{element}: the world has no joints and no inertia")
        return found

    def _body(self, body: _Body) -> list[_Body]:
        """Add one body; the bodies that stand in it."""
        element, item = body.element, self.defaults.plain(body.element)
        childclass = self.defaults.known(element, "childclass", body.childclass)
        name = item.text("name") or self._made_up(f"body_{len(self.bodies)}")
        self._name(element, name, self.bodies)
        if item.true("mocap"):
            raise item.error("mocap bodies are moved from outside, which is not read")
        if item.number("gravcomp", 0.0) != 0.0:
            self.lifted.append(name)
        parts = list(flattened(element, childclass, self.defaults))
        here = self.bodies[name] = self._joints(body, name, parts)
        self._frame(name, here, pin.FrameType.BODY)
        for part, frame, part_class in parts:
            if part.tag == "site":
                self._site(part, frame, part_class, here)
        self._inertia(item, here, parts)
        return [_Body(*part, here) for part in parts if part[0].tag == "body"]

    def _frame(self, name: str, place: _Placed, kind: Any) -> None:
        joint = self.model.names[place[0]]
        above = self.model.getFrameId(joint, pin.FrameType.JOINT) if place[0] else 0
        self.model.addFrame(pin.Frame(name, place[0], above, place[1], kind), False)

    def _name(self, element: Element, name: str, taken: Collection[str]) -> str:
        """A name that is new and is not that of the world."""
        if name in (_WORLD, _GROUND):
            raise element.error(f"{element}: the name {name!r} stands for the world")
        if not name.isprintable():
            raise element.error(f"a name must have printable characters only; got {name[:60]!r}")
        if name in taken:
            raise element.error(f"two <{element.tag}> are called {name!r}")
        return name

    def _site(self, element: Element, frame: pin.SE3, childclass: str, body: _Placed) -> None:
        """A frame of the model, if it has a name."""
        item = self.defaults.item(element, "site", childclass)
        pose = item.pose()
        if "fromto" in item:
            ends = np.array(item.numbers("fromto", (0.0,) * 6))
            along = unit(item, "fromto", ends[:3] - ends[3:])
            pose = pin.SE3(z_to(along), 0.5 * (ends[:3] + ends[3:]))
        if item.text("name"):
            name = self._name(element, item.text("name"), self.sites)
            self.sites[name] = (body[0], body[1] * frame * pose)
            self._frame(name, self.sites[name], pin.FrameType.OP_FRAME)

    # ----------------------------------------------------------------------------- joints

    def _joints(self, body: _Body, name: str, parts: Sequence[_Part]) -> _Placed:
        """Add the joints of a body, one after the other; the last one, and the body in it."""
        found = [part for part in parts if part[0].tag in ("joint", "freejoint")]
        items = [(self._joint_item(e, c), frame) for e, frame, c in found]
        kinds = [_kind(item) for item, _ in items]
        placement = body.frame * self.defaults.plain(body.element).pose()
        if "free" in kinds:
            item = items[kinds.index("free")][0]
            if len(kinds) > 1 or not body.in_world:
                raise item.error("a free joint must be alone, in a body that stands in the world")
            if self.free_flyer:
                raise item.error(
                    "free_flyer: the file says itself that this body is free; leave it out"
                )
            return self._free(item.text("name") or self._made_up(f"{name}.free"), item, placement)
        if body.floats:
            if kinds:
                raise items[0][0].error(
                    "free_flyer: the first body has a joint to the world, so it cannot float"
                )
            return self._free("root_joint", self.defaults.plain(body.element), placement)
        joint, at = body.above[0], body.above[1] * placement  # the body, its joints at zero
        for (item, frame), kind in zip(items, kinds, strict=True):
            label = item.text("name") or self._made_up(f"{name}.{kind}")
            joint, at = self._single_or_ball(label, kind, item, frame, joint, at)
        return joint, at

    def _joint_item(self, element: Element, childclass: str) -> Item:
        if element.tag == "freejoint":
            item = self.defaults.plain(element)
            if item.word("align", ("auto", "false", "true"), "auto") == "true":
                raise item.error("align='true' is not read: it moves the frame that q describes")
            return item
        return self.defaults.item(element, "joint", childclass)

    def _made_up(self, first: str) -> str:
        """A name that nothing in the file has, such as ``arm.hinge``, ``arm.hinge_2``."""
        if not self.given:
            self.given.update(element.attributes.get("name", "") for element in self.root.each())
        label, i = first, 1
        while label in self.given:
            i += 1
            label = f"{first}_{i}"
        self.given.add(label)
        return label

    def _free(self, label: str, item: Item, placement: pin.SE3) -> _Placed:
        """A free joint: its configuration is the pose of the body in the world."""
        bounds = [_FREE] * 3 + [1.01] * 4
        joint = self._add(
            label, "free", item, 0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), bounds
        )
        self.q0[-1] = pin.SE3ToXYZQUAT(placement)
        return joint, pin.SE3.Identity()

    def _single_or_ball(
        self, label: str, kind: str, item: Item, frame: pin.SE3, above: int, at: pin.SE3
    ) -> _Placed:
        """A joint about or along an axis through a point of the body, or a ball there."""
        anchor = frame.act(np.array(item.numbers("pos", (0.0, 0.0, 0.0))))
        to_anchor = pin.SE3(np.eye(3), anchor)
        if kind == "ball":
            model, bounds = pin.JointModelSpherical(), [1.01] * 4
        else:
            axis = np.array(item.numbers("axis", (0.0, 0.0, 1.0)))
            model = _along(kind, frame.rotation @ unit(item, "axis", axis))
            bounds = [_FREE]
        joint = self._add(label, kind, item, above, model, at * to_anchor, bounds)
        return joint, to_anchor.inverse()

    def _add(
        self,
        label: str,
        kind: str,
        item: Item,
        above: int,
        joint: pin.JointModel,
        placement: pin.SE3,
        bounds: list[float],
    ) -> int:
        """A joint of the model with its limits, rotor inertia and losses."""
        self._name(item.element, label, self.joints)
        ref = item.number("ref", 0.0) * _unit(item, kind) if kind in _SINGLE else 0.0
        lower, upper = _bounds(item, kind, ref, bounds)
        n = joint.nv
        limits = [np.full(n, x) for x in (*_most_effort(item), -_MOST, _MOST)]
        losses = [np.full(n, x) for x in _losses(item)]
        index = self.model.addJoint(
            above, joint, placement, label, *limits, np.array(lower), np.array(upper), *losses
        )
        self.model.addJointFrame(index)
        check_size(item.element, self.model.nv)
        new = self.model.joints[index]
        rotor = item.size("armature", 0.0)
        if rotor and kind == "free":  # MuJoCo adds it in world axes: another equation of motion
            raise item.error("armature of a free joint is not read; MuJoCo advises <freejoint>")
        self.model.armature[new.idx_v : new.idx_v + n] = rotor
        stiff = item.numbers("stiffness", (0.0,) * 3, least=1)
        if any(stiff) or item.numbers("springdamper", (0.0, 0.0))[0] > 0.0:
            self.springs.append(label)
        self.joints[label] = _Joint(index, kind, ref, item)
        self.q0.append(np.array(new.nq * [0.0]) if n == 1 else np.array([0.0, 0.0, 0.0, 1.0]))
        return int(index)

    # ----------------------------------------------------------------------------- inertias

    def _inertia(self, body: Item, here: _Placed, parts: Sequence[_Part]) -> None:
        """Note the inertia of a body, where it matters: what does not move has none."""
        if not here[0] and self.defaults.compiler.settotalmass <= 0.0:
            return
        inertials = [(self.defaults.plain(e), f) for e, f, _ in parts if e.tag == "inertial"]
        geoms = [(self.defaults.item(e, "geom", c), f) for e, f, c in parts if e.tag == "geom"]
        self.lumps.append((*here, lump_of(body, inertials, geoms)))

    def _put_inertias(self) -> None:
        lumps = [lump for _, _, lump in self.lumps]
        total = self.defaults.compiler.settotalmass
        if total > 0.0:
            lumps = scaled_to_total(lumps, total)
        for (joint, placement, _), lump in zip(self.lumps, lumps, strict=True):
            if joint and lump.mass + sum(lump.moments) > 0.0:
                self.model.appendBodyToJoint(joint, lump.inertia, placement)

    def warn(self) -> None:
        """One record for forces that MuJoCo would add, and the equation of motion does not."""
        if self.springs:
            log.warning(
                "%s: springs are not part of the equation of motion; pass them as efforts: %s",
                self.root.file, listing(self.springs),
            )  # fmt: skip
        if self.lifted:
            log.warning(
                "%s: gravcomp is not part of the equation of motion; bodies: %s",
                self.root.file, listing(self.lifted),
            )  # fmt: skip

    @property
    def home(self) -> Vector:
        """The configuration that the file describes, MuJoCo's qpos0."""
        return np.concatenate(self.q0) if self.q0 else np.zeros(0)


def _kind(item: Item) -> str:
    return "free" if item.element.tag == "freejoint" else item.word("type", _TYPES, "hinge")


def _unit(item: Item, kind: str) -> float:
    """rad in the unit of a hinge's angles; lengths are in m."""
    return item.compiler.angle if kind == "hinge" else 1.0


def _bounds(
    item: Item, kind: str, ref: float, widest: list[float]
) -> tuple[list[float], list[float]]:
    """Bounds of the position, which counts from `ref`."""
    if kind in _SINGLE and _limited(item, "range", "limited"):
        lower, upper = (x * _unit(item, kind) - ref for x in _ascending(item, "range"))
        return [lower], [upper]
    return [-b for b in widest], widest


def _most_effort(item: Item) -> tuple[float, float]:
    if _limited(item, "actuatorfrcrange", "actuatorfrclimited"):
        return _ascending(item, "actuatorfrcrange")
    return -_MOST, _MOST


def _losses(item: Item) -> tuple[float, float, float]:
    """Dry friction, down and up, and damping."""
    friction = item.size("frictionloss", 0.0)
    return -friction, friction, max(item.numbers("damping", (0.0,) * 3, least=1)[0], 0.0)


def _limited(item: Item, range_name: str, switch: str) -> bool:
    """Whether a range holds; without autolimits the file must say so."""
    word = item.word(switch, ("auto", "false", "true"), "auto")
    if word == "auto" and range_name in item and not item.compiler.autolimits:
        raise item.error(f"{range_name} without autolimits needs {switch} 'true' or 'false'")
    if word == "true" and range_name not in item:
        raise item.error(f"{switch} needs {range_name}")
    return range_name in item and word != "false"


def _ascending(item: Item, name: str) -> tuple[float, float]:
    """A lower and an upper bound."""
    lower, upper = item.numbers(name, (0.0, 0.0))
    if lower >= upper:
        raise item.error(f"{name}: {lower} must be less than {upper}")
    return lower, upper


def _along(kind: str, axis: Vector) -> pin.JointModel:
    """A turn about, or a slide along, a unit vector."""
    letter, name = ("R", "Revolute") if kind == "hinge" else ("P", "Prismatic")
    for i, coordinate in enumerate("XYZ"):
        if axis[i] == 1.0:
            return getattr(pin, f"JointModel{letter}{coordinate}")()
    return getattr(pin, f"JointModel{name}Unaligned")(axis)


# -------------------------------------------------------------------------------- equalities

_Row = tuple[Constraint, Element, bool]
"""A constraint, its element, and whether it is active."""


def _equalities(root: Element, tree: _Tree) -> list[_Row]:
    """A `Closure` or `Coupling` for each equality, checked against the model."""
    data = tree.model.createData()
    pin.forwardKinematics(tree.model, data, tree.home)
    names: dict[str, int] = {}
    found: list[_Row] = []
    for element in _sections(root, "equality"):
        item = tree.defaults.item(element, "equality")
        make = _joint_equality if element.tag == "joint" else _closure
        with blamed_on(element):
            constraint = make(item, tree, data, names)
            constraint.bind(tree.model, constraint.default_name, tree.home)
        found.append((constraint, element, item.true("active", True)))
    return found


def _label(item: Item, ends: Sequence[str], names: dict[str, int]) -> str:
    """The name of an equality, or its ends; numbered where several have the same ends."""
    given = item.text("name")
    label = given or "-".join(ends)
    names[label] = names.get(label, 0) + 1
    if names[label] == 1:
        return label
    if given:
        raise item.error(f"two equalities are called {label!r}")
    return _label(item, (*ends, str(names[label])), names)


def _closure(item: Item, tree: _Tree, data: pin.Data, names: dict[str, int]) -> Closure:
    """A connect (three rows) or a weld (six) between two bodies or two sites."""
    weld = item.element.tag == "weld"
    of_sites, of_bodies = (
        [n for n in group if n in item] for group in (("site1", "site2"), ("body1", "body2"))
    )
    if of_sites:
        if of_bodies or len(of_sites) < 2 or "anchor" in item or "relpose" in item:
            raise item.error("with sites: give site1 and site2, and no body, anchor or relpose")
        ends = [_known(item, name, tree.sites, "site") for name in ("site1", "site2")]
        (i, A), (j, B) = (tree.sites[end] for end in ends)
    else:
        if "body1" not in item or not (weld or "anchor" in item):
            needed = "body1" if weld else "body1 and anchor"
            raise item.error(f"give {needed} (body2 is the world by default), or site1 and site2")
        ends = [_known(item, "body1", tree.bodies, "body"), _WORLD]
        if "body2" in item:
            ends[1] = _known(item, "body2", tree.bodies, "body")
        (i, A), (j, B) = (tree.bodies[end] for end in ends)
        anchor = pin.SE3(np.eye(3), np.array(item.numbers("anchor", (0.0, 0.0, 0.0))))
        between = (data.oMi[i] * A).actInv(data.oMi[j] * B)  # of body 2 in body 1, as drawn
        if weld:
            A, B = A * _relative(item, between * anchor), B * anchor
        else:
            A, B = A * anchor, B * between.inverse() * anchor
    a, b = ((tree.model.names[k], X) for k, X in ((i, A), (j, B)))
    return Closure(a, b, joint="weld" if weld else "spherical", name=_label(item, ends, names))


def _relative(item: Item, drawn: pin.SE3) -> pin.SE3:
    """Where a weld holds the anchor of body 2 in body 1: at ``relpose``, or as drawn.

    MuJoCo takes the position of relpose for the anchor, not for the origin of body 2.
    """
    given = np.array(item.numbers("relpose", (0.0, 1.0, *(0.0,) * 5)))
    if not given[3:].any():  # MuJoCo's way to say that none is given
        return drawn
    return pin.SE3(quaternion(item, "relpose", given[3:]), given[:3])


def _joint_equality(item: Item, tree: _Tree, data: pin.Data, names: dict[str, int]) -> Coupling:
    """``q1 = a0 + a1 q2``, both counted from where the joints stand in the drawing."""
    first = _single(item, "joint1", tree)
    a0, a1, *higher = item.numbers("polycoef", (0.0, 1.0, 0.0, 0.0, 0.0), least=1)
    if "joint2" not in item:
        return Coupling({first: 1.0}, offset=a0, name=_label(item, [first], names))
    second = _single(item, "joint2", tree)
    if first == second:
        raise item.error("joint1 and joint2 are the same")
    if any(higher):
        raise item.error(
            "polycoef: only the first two coefficients are read, for a line; make a polynomial "
            "of higher order a hc.Custom and add it with mech.with_constraints"
        )
    coefficients = {first: 1.0, second: -a1} if a1 else {first: 1.0}
    return Coupling(coefficients, offset=a0, name=_label(item, [first, second], names))


def _known(item: Item, attribute: str, valid: Collection[str], what: str) -> str:
    """A name that an attribute holds and the file knows."""
    name = item.text(attribute)
    if name not in valid:
        raise item.error(
            f"{attribute}: there is no {what} called {name[:60]!r}{suggestion(name, valid)}; "
            f"valid names: {listing(list(valid))}"
        )
    return name


def _single(item: Item, attribute: str, tree: _Tree) -> str:
    """The name of a hinge or slide."""
    name = _known(item, attribute, tree.joints, "joint")
    if tree.joints[name].type not in _SINGLE:
        raise item.error(f"{attribute}: {name!r} is no hinge or slide")
    return name


# ----------------------------------------------------------------------------------- motors


def _motors(root: Element, tree: _Tree) -> tuple[list[str], Array | None]:
    """The coordinates with a motor, in the order of the file; a matrix B where one has a gear."""
    gears: dict[str, Vector] = {}
    for element in _sections(root, "actuator"):
        item = tree.defaults.item(element, "actuator")
        name = _driven(item, tree)
        joint = tree.joints[name]
        n = tree.model.nvs[joint.index]
        gear = np.array(item.numbers("gear", (1.0, *(0.0,) * 5), least=1)[:n])
        if not gear.any():
            raise item.error("gear is zero: a motor on nothing")
        _add_rotor(item, joint, gear, tree.model)
        if name in gears and not np.array_equal(gears[name], gear):
            raise item.error(f"another actuator drives joint {name!r} with another gear")
        gears[name] = gear
    if all(gear.size == 1 and gear[0] == 1.0 for gear in gears.values()):
        return list(gears), None
    B = np.zeros((tree.model.nv, len(gears)))
    for column, (name, gear) in enumerate(gears.items()):
        first = tree.model.idx_vs[tree.joints[name].index]
        B[first : first + gear.size, column] = gear
    return [], B


def _check_tendons(root: Element, tree: _Tree) -> None:
    """Tendons only pull where an actuator or a spring does; a rotor on one is an inertia."""
    for i, element in enumerate(_sections(root, "tendon")):
        item = tree.defaults.item(element, "tendon")
        if item.size("armature", 0.0):
            raise item.error("armature of a tendon is not read; it would couple the joints")
        if any(item.numbers("stiffness", (0.0,) * 3, least=1)):
            tree.springs.append(item.text("name") or f"tendon {i}")


def _driven(item: Item, tree: _Tree) -> str:
    """The joint that an actuator drives."""
    others = [
        n for n in ("tendon", "site", "refsite", "slidersite", "cranksite", "body") if n in item
    ]
    if others:
        raise item.error(
            f"its transmission {others[0]!r} is not read; only 'joint' is. Leave the actuator "
            "out and give the mechanism a matrix: dataclasses.replace(mech, actuation=B)"
        )
    given = [n for n in ("joint", "jointinparent") if n in item]
    if len(given) != 1:
        raise item.error("an actuator drives one joint: give joint=")
    name = _known(item, given[0], tree.joints, "joint")
    kind = tree.joints[name].type
    if kind == "free" or (kind == "ball" and given[0] == "jointinparent"):
        raise item.error(f"{given[0]}: a motor on the {kind} joint {name!r} is not read")
    return name


def _add_rotor(item: Item, joint: _Joint, gear: Vector, model: pin.Model) -> None:
    """The rotor inertia of an actuator, seen through its gear."""
    rotor = item.size("armature", 0.0)
    if rotor and gear.size > 1:
        raise item.error("armature of a motor on a ball joint is not read; give it to the joint")
    model.armature[model.idx_vs[joint.index]] += rotor * gear[0] ** 2


# -------------------------------------------------------------------------------- reference


def _reference(root: Element, tree: _Tree) -> Vector:
    """The key called "home", or the first with a qpos, or the drawing."""
    keys = [tree.defaults.plain(element) for element in _sections(root, "keyframe")]
    given = [item for item in keys if "qpos" in item]
    found = [(item, _from_qpos(item, tree)) for item in given]
    named = [q for item, q in found if item.text("name") == "home"]
    return (named or [q for _, q in found] or [tree.home])[0]


def _from_qpos(item: Item, tree: _Tree) -> Vector:
    """A configuration from MuJoCo's qpos: its order of quaternions, and ref taken off."""
    q = np.array(item.numbers("qpos", (0.0,) * tree.model.nq))
    for joint in tree.joints.values():
        first = tree.model.idx_qs[joint.index]
        q[first] -= joint.ref
        if joint.type in ("ball", "free"):
            last = first + tree.model.nqs[joint.index]
            w, x, y, z = unit(item, "qpos", q[last - 4 : last])
            q[last - 4 : last] = x, y, z, w
    return q
