"""The joints of a linkage: their types, their coordinates, and the description of one."""

from __future__ import annotations

from dataclasses import dataclass

import pinocchio as pin

from holoctl.constraints.joint_coordinates import child_frame

__all__ = ["DOF", "GROUND", "IN_SERIES", "JOINT_TYPES", "OTHER_IF_REVERSED", "Joint"]

GROUND = "universe"
"""Pinocchio's name for the body that does not move."""

IN_SERIES: dict[str, tuple[str, ...]] = {
    "revolute": ("Rz",),
    "prismatic": ("Pz",),
    "cylindrical": ("Pz", "Rz"),
    "universal": ("Rx", "Ry"),
    "planar": ("Px", "Py", "Rz"),
}
"""Joints that are rotations (R) and translations (P) along axes of the joint frame, in series.
Pinocchio's composite and universal joints are not used, because their dJ is wrong; nor is its
planar joint, whose angle is a cosine and a sine."""

DOF = {name: len(parts) for name, parts in IN_SERIES.items()} | {
    "screw": 1, "spherical": 3, "weld": 0, "free": 6,
}  # fmt: skip

OTHER_IF_REVERSED = ("spherical", "free")
"""Joints that have other coordinates if they are reversed: the child body carries the parent."""

JOINT_TYPES = tuple(sorted(DOF))
"""The types of joints that `Linkage.add_joint` takes."""


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint as it was added; `at_parent` and `at_child` are its frame in the two bodies."""

    name: str
    type: str
    parent: str
    child: str
    at_parent: pin.SE3
    at_child: pin.SE3
    pitch: float | None = None

    @property
    def dof(self) -> int:
        """The number of its coordinates in a tree."""
        return DOF[self.type]

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of its coordinates in a tree."""
        several = tuple(f"{self.name}[{i}]" for i in range(self.dof))
        return several if self.dof != 1 else (self.name,)

    @property
    def new_names(self) -> set[str]:
        """All names that it may add to a model, whichever joint is cut; always with ``name[0]``,
        because another joint of that name would be taken for a part of this one."""
        return {self.name, *self.coordinates, f"{self.name}[0]", child_frame(self.name)}
