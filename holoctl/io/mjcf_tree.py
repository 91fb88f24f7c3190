"""Bodies, joints and sites of an MJCF as a `pin.Model`, depth first in the order of the file."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.io.limits import FREE, check_size
from holoctl.io.mjcf_compiled import CompiledFile
from holoctl.io.mjcf_elements import Defaults, Item, flattened, unit
from holoctl.io.mjcf_inertia import Lump, lump_of, scaled_to_total
from holoctl.io.rotations import z_to
from holoctl.io.xml import Element
from holoctl.tree.coordinates import coordinate_names

__all__ = ["SINGLE", "WORLD", "MjcfJoint", "MjcfTree", "Part", "ascending", "limited"]

WORLD = "world"  # MuJoCo's name for what Pinocchio calls universe
_GROUND = "universe"
_MOST = sys.float_info.max  # bound of an effort or velocity without limits, as of Pinocchio
_TYPES = ("hinge", "slide", "ball", "free")
SINGLE = ("hinge", "slide")
"""Joints of one coordinate, whose position is a number."""

Part = tuple[Element, pin.SE3, str]
"""An element in a body, the frame that it stands in, its default class."""

Placed = tuple[int, pin.SE3]
"""A joint of the model, and a placement in it."""


@dataclass(frozen=True)
class _Body:
    """A body that waits to be added, and where the body is that it stands in."""

    element: Element
    frame: pin.SE3
    childclass: str
    above: Placed
    in_world: bool = False
    floats: bool = False


@dataclass(frozen=True)
class MjcfJoint:
    """A joint of the file: its index in the model, its type and the value where it is zero.

    `rest` is where its spring has no effort, counted from there.
    """

    index: int
    type: str
    ref: float
    item: Item
    rest: float = 0.0


@dataclass
class MjcfTree:
    """The model while it is built, and where bodies, sites and joints of the file are in it.

    `geoms` are those of each body, each with the frame that it stands in and its default class.
    Without `compiled` bodies get no inertias.
    """

    root: Element
    defaults: Defaults
    free_flyer: bool
    compiled: CompiledFile | None
    model: pin.Model = field(default_factory=pin.Model)
    bodies: dict[str, Placed] = field(default_factory=dict)
    sites: dict[str, Placed] = field(default_factory=dict)
    joints: dict[str, MjcfJoint] = field(default_factory=dict)
    geoms: dict[str, list[Part]] = field(default_factory=dict)
    lumps: list[tuple[int, pin.SE3, Lump]] = field(default_factory=list)
    lifted: list[str] = field(default_factory=list)
    placed: list[str] = field(default_factory=list)
    idle: list[str] = field(default_factory=list)
    q0: list[Vector] = field(default_factory=list)
    given: set[str] = field(default_factory=set)

    def build(self) -> None:
        """All bodies, depth first in the order of the file."""
        self.model.name = self.root.attributes.get("model", "") or "mujoco"
        self.bodies[WORLD] = (0, pin.SE3.Identity())
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
        world, geoms = self.bodies[WORLD], self.geoms.setdefault(WORLD, [])
        found = []
        for section in self.root.children:
            if section.tag == "worldbody":
                for element, frame, childclass in flattened(section, "main", self.defaults):
                    if element.tag == "body":
                        found.append(_Body(element, frame, childclass, world, in_world=True))
                    elif element.tag == "site":
                        self._site(element, frame, childclass, world)
                    elif element.tag == "geom":
                        geoms.append((element, frame, childclass))
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
            self._check_mocap(body, item)
            self.placed.append(name)
        if item.number("gravcomp", 0.0) != 0.0:
            self.lifted.append(name)
        parts = list(flattened(element, childclass, self.defaults))
        here = self.bodies[name] = self._joints(body, name, parts)
        self._frame(name, here, pin.FrameType.BODY)
        for part, frame, part_class in parts:
            if part.tag == "site":
                self._site(part, frame, part_class, here)
        self.geoms[name] = [part for part in parts if part[0].tag == "geom"]
        self._inertia(item, here, parts)
        return [_Body(*part, here) for part in parts if part[0].tag == "body"]

    def _check_mocap(self, body: _Body, item: Item) -> None:
        """A mocap body stands in the world where it is put; here it stays where it is drawn."""
        joints = [
            part
            for part, _, _ in flattened(body.element, "main", self.defaults)
            if part.tag in ("joint", "freejoint")
        ]
        if not body.in_world or joints:
            raise item.error("a mocap body stands in the world and has no joints")
        if body.floats:
            raise item.error("free_flyer: the first body is a mocap body, which cannot float")

    def _frame(self, name: str, place: Placed, kind: Any) -> None:
        joint = self.model.names[place[0]]
        above = self.model.getFrameId(joint, pin.FrameType.JOINT) if place[0] else 0
        self.model.addFrame(pin.Frame(name, place[0], above, place[1], kind), False)

    def _name(self, element: Element, name: str, taken: Collection[str]) -> str:
        """A name that is new and is not that of the world."""
        if name in (WORLD, _GROUND):
            raise element.error(f"{element}: the name {name!r} stands for the world")
        if not name.isprintable():
            raise element.error(f"a name must have printable characters only; got {name[:60]!r}")
        if name in taken:
            raise element.error(f"two <{element.tag}> are called {name!r}")
        return name

    def _site(self, element: Element, frame: pin.SE3, childclass: str, body: Placed) -> None:
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

    def _joints(self, body: _Body, name: str, parts: Sequence[Part]) -> Placed:
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

    def _free(self, label: str, item: Item, placement: pin.SE3) -> Placed:
        """A free joint: its configuration is the pose of the body in the world."""
        bounds = [FREE] * 3 + [1.01] * 4
        joint = self._add(
            label, "free", item, 0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), bounds
        )
        self.q0[-1] = pin.SE3ToXYZQUAT(placement)
        return joint, pin.SE3.Identity()

    def _single_or_ball(
        self, label: str, kind: str, item: Item, frame: pin.SE3, above: int, at: pin.SE3
    ) -> Placed:
        """A joint about or along an axis through a point of the body, or a ball there."""
        anchor = frame.act(np.array(item.numbers("pos", (0.0, 0.0, 0.0))))
        to_anchor = pin.SE3(np.eye(3), anchor)
        if kind == "ball":
            model, bounds = pin.JointModelSpherical(), [1.01] * 4
        else:
            axis = np.array(item.numbers("axis", (0.0, 0.0, 1.0)))
            model = _along(kind, frame.rotation @ unit(item, "axis", axis))
            bounds = [FREE]
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
        ref = item.number("ref", 0.0) * _unit(item, kind) if kind in SINGLE else 0.0
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
        rest = item.number("springref", 0.0) * _unit(item, kind) - ref if kind in SINGLE else 0.0
        self.joints[label] = MjcfJoint(index, kind, ref, item, rest)
        self.q0.append(np.array(new.nq * [0.0]) if n == 1 else np.array([0.0, 0.0, 0.0, 1.0]))
        return int(index)

    # ----------------------------------------------------------------------------- inertias

    def _inertia(self, body: Item, here: Placed, parts: Sequence[Part]) -> None:
        """Note the inertia of a body, where it matters: what does not move has none."""
        unmoved = not here[0] and self.defaults.compiler.settotalmass <= 0.0
        if self.compiled is None or unmoved:
            return
        inertials = [(self.defaults.plain(e), f) for e, f, _ in parts if e.tag == "inertial"]
        geoms = [(self.defaults.item(e, "geom", c), f) for e, f, c in parts if e.tag == "geom"]
        index = len(self.bodies) - 1  # depth first, as in MuJoCo; the world is 0
        self.lumps.append((*here, lump_of(body, inertials, geoms, index, self.compiled)))

    def _put_inertias(self) -> None:
        lumps = [lump for _, _, lump in self.lumps]
        total = self.defaults.compiler.settotalmass
        if total > 0.0:
            lumps = scaled_to_total(lumps, total)
        for (joint, placement, _), lump in zip(self.lumps, lumps, strict=True):
            if joint and lump.mass + sum(lump.moments) > 0.0:
                self.model.appendBodyToJoint(joint, lump.inertia, placement)

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
    if kind in SINGLE and limited(item, "range", "limited"):
        lower, upper = (x * _unit(item, kind) - ref for x in ascending(item, "range"))
        return [lower], [upper]
    return [-b for b in widest], widest


def _most_effort(item: Item) -> tuple[float, float]:
    if limited(item, "actuatorfrcrange", "actuatorfrclimited"):
        return ascending(item, "actuatorfrcrange")
    return -_MOST, _MOST


def _losses(item: Item) -> tuple[float, float, float]:
    """Dry friction, down and up, and damping."""
    friction = item.size("frictionloss", 0.0)
    return -friction, friction, max(item.numbers("damping", (0.0,) * 3, least=1)[0], 0.0)


def limited(item: Item, range_name: str, switch: str) -> bool:
    """Whether a range holds; without autolimits the file must say so."""
    word = item.word(switch, ("auto", "false", "true"), "auto")
    if word == "auto" and range_name in item and not item.compiler.autolimits:
        raise item.error(f"{range_name} without autolimits needs {switch} 'true' or 'false'")
    if word == "true" and range_name not in item:
        raise item.error(f"{switch} needs {range_name}")
    return range_name in item and word != "false"


def ascending(item: Item, name: str) -> tuple[float, float]:
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
