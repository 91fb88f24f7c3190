"""Poses of links, joints and frames of an SDF, resolved from relative poses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, listing, suggestion
from holoctl.base.tolerances import SIX_DIGITS
from holoctl.io.reader_limits import MOST_PARTS, check_count
from holoctl.io.sdf_elements import GROUND, child_of, name_of, pose_of, triple, true, word
from holoctl.io.xml import Element

__all__ = ["Drawing"]


FRAMES_SINCE = 7  # version 1.7: frames with relative_to and expressed_in


@dataclass
class Drawing:
    """A model of the file: its links, joints and frames, and their poses in it.

    `bodies` stores results of `body`, so that long chains of frames are followed once. Links whose
    moments were corrected (`odd`) or completed (`flat`), and mass and centre of mass of those
    without gravity (`lifted`), are stored when bodies are made of them. `ground` is a link called
    world.
    """

    element: Element
    version: int
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, Element] = field(default_factory=dict)
    frames: dict[str, Element] = field(default_factory=dict)
    placed: dict[str, pin.SE3] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    odd: dict[str, Array] = field(default_factory=dict)
    flat: list[str] = field(default_factory=list)
    lifted: dict[str, tuple[float, Vector]] = field(default_factory=dict)
    ground: Element | None = None

    def read(self) -> None:
        """Collect and check names, and resolve all poses."""
        groups = {"link": self.links, "joint": self.joints, "frame": self.frames}
        first: dict[str, Element] = {}
        for child in self.element.children:
            if child.tag == "link" and child.attributes.get("name") == "world":
                self.ground = child
            elif child.tag in groups:
                name = name_of(child)
                if name in first:
                    raise child.error(
                        f"{child}: {first[name]} of line {first[name].line} has this name too"
                    )
                groups[child.tag][name] = first[name] = child
                check_count(child, len(first), MOST_PARTS, "links, joints and frames")
        if self.frames and self.version < FRAMES_SINCE:
            raise next(iter(self.frames.values())).error("<frame> is read from SDF 1.7 on")
        self.placed["__model__"] = pin.SE3.Identity()
        self.placed["world"] = pose_of(self.element).inverse()
        if self.ground is not None:
            self._check_ground(self.ground, first)
        for name, element in first.items():
            self.place(name, element, first)

    def _check_ground(self, link: Element, known: Mapping[str, Element]) -> None:
        """A link called world is the world, if it is at its origin and no joint ties it."""
        self.place("__ground__", link, {**known, "__ground__": link})
        at = self.placed.pop("__ground__")
        held = any(word(joint, "child") == "world" for joint in self.joints.values())
        if held or not at.isApprox(self.placed["world"], SIX_DIGITS):
            why = "no joint may tie it" if held else "its pose is not that of the world"
            raise link.error(f"<link>: the name 'world' is reserved, for the world itself; {why}")

    def place(self, name: str, element: Element, known: Mapping[str, Element]) -> None:
        """Compute the pose of a frame in the model, through all frames to which it is relative."""
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
            self.placed[link] = self.placed[name] * pose_of(known[link])
            name = link

    def _relative_to(self, element: Element) -> str:
        pose = child_of(element, "pose")
        attributes = pose.attributes if pose is not None else {}
        if attributes.get("frame"):
            raise element.error(f"{element}: the attribute 'frame' of <pose> is not read")
        if "relative_to" in attributes and self.version < FRAMES_SINCE:
            raise element.error(f"{element}: relative_to is read from SDF 1.7 on")
        given = attributes.get("relative_to", "")
        if given:
            return given
        if element.tag == "joint":
            return word(element, "child")
        return element.attributes.get("attached_to") or "__model__"

    def body(self, name: str, place: Element) -> str:
        """The link, or the ground, that a frame is fixed to."""
        seen: set[str] = set()
        while name not in self.links:
            if name in self.bodies:
                name = self.bodies[name]
                break
            if name == "world":
                name = GROUND
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
                name = word(self.joints[name], "child")
            else:
                name = self.frames[name].attributes.get("attached_to") or "__model__"
        self.bodies.update(dict.fromkeys(seen, name))
        return name

    @property
    def canonical(self) -> str:
        """The link by which the model is fixed: the named one, or the first."""
        name = self.element.attributes.get("canonical_link") or next(iter(self.links))
        if name not in self.links:
            raise self.element.error(
                f"canonical_link: there is no link {name[:60]!r}{suggestion(name, self.links)}"
            )
        return name

    def where(self, body: str) -> pin.SE3:
        """The pose of a link, or of the ground, in the model."""
        return self.placed["world" if body == GROUND else body]

    def axis(self, joint: Element, tag: str) -> Vector:
        """The direction of an axis in the model, at the initial configuration."""
        element = child_of(joint, tag)
        if element is None:
            raise joint.error(f"{joint}: <{tag}> is missing")
        xyz = triple(element, "xyz", (0.0, 0.0, 1.0))
        norm = float(np.linalg.norm(xyz))
        if not 1e-6 < norm < 1e6:
            raise element.error(f"{joint}: {tag} has no direction (its length should be 1)")
        frame = self._expressed_in(joint, element)
        direction: Vector = self.placed[frame].rotation @ (xyz / norm)
        return direction

    def _expressed_in(self, joint: Element, axis: Element) -> str:
        xyz, old = child_of(axis, "xyz"), child_of(axis, "use_parent_model_frame")
        given = xyz.attributes.get("expressed_in", "") if xyz is not None else ""
        if self.version >= FRAMES_SINCE:
            if old is not None:
                raise old.error("use_parent_model_frame is of SDF before 1.7; use expressed_in")
            if given and given not in self.placed:
                raise axis.error(f"{joint}: expressed_in: there is no frame {given[:60]!r}")
            return given or joint.attributes["name"]
        if given:
            raise axis.error(f"{joint}: expressed_in is read from SDF 1.7 on")
        in_model = true(axis, "use_parent_model_frame", self.version < 5)
        return "__model__" if in_model else joint.attributes["name"]
