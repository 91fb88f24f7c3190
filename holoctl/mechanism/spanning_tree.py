"""The graph of bodies and joints: a spanning tree, rooted in the ground, and the loops.

Kruskal's algorithm: the joints are taken in order of preference; a joint whose bodies are connected
already closes a loop, and is cut.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from holoctl.mechanism.joint_types import GROUND, Joint

__all__ = [
    "TreeBranch",
    "branches",
    "distances",
    "hanging_parts",
    "loop_of",
    "preferred",
    "spanning_tree",
]


@dataclass(frozen=True, eq=False)
class TreeBranch:
    """A joint of the tree, from the body above to the body below.

    With `part`, the joint carries only a part of the body below, which a weld ties to the rest.
    """

    joint: Joint
    below: str
    part: bool = False

    @property
    def above(self) -> str:
        """The body that carries the other."""
        return self.joint.child if self.reversed else self.joint.parent

    @property
    def reversed(self) -> bool:
        """Whether the child of the joint carries its parent."""
        return self.below == self.joint.parent


def preferred(joints: Iterable[Joint], motors: Iterable[str]) -> list[Joint]:
    """The joints in the order of preference for the tree."""
    joints, driven = list(joints), set(motors)
    far = distances(joints)
    first = {"free": 0, "weld": 1}

    def key(j: Joint) -> tuple[int, bool, int, float, str]:
        depth = far.get(j.parent, np.inf) + far.get(j.child, np.inf)
        return first.get(j.type, 2), j.name not in driven, j.dof, depth, j.name

    return sorted(joints, key=key)


def spanning_tree(order: Iterable[Joint]) -> tuple[list[Joint], dict[str, tuple[str, ...]]]:
    """The joints of the tree, by Kruskal's algorithm in this order, and the loop that each other
    joint closes."""
    group: dict[str, list[str]] = {}
    tree: list[Joint] = []
    rest: list[Joint] = []
    for j in order:
        one, other = (group.setdefault(body, [body]) for body in (j.parent, j.child))
        if one is other:
            rest.append(j)
            continue
        tree.append(j)
        small, large = sorted((one, other), key=len)
        large += small
        group.update(dict.fromkeys(small, large))
    return tree, {j.name: loop_of(j, tree) for j in rest}


def loop_of(joint: Joint, tree: Iterable[Joint]) -> tuple[str, ...]:
    """The joints around the loop that a joint closes with a tree, beginning with that joint."""
    near = _neighbours(tree)
    before: dict[str, tuple[str, str]] = {joint.parent: ("", "")}
    stack = [joint.parent]
    while stack:
        body = stack.pop()
        for j, other in near.get(body, ()):
            if other not in before:
                before[other] = (j.name, body)
                stack.append(other)
    around, body = [joint.name], joint.child
    while body != joint.parent:
        name, body = before[body]
        around.append(name)
    return tuple(around)


def branches(tree: Iterable[Joint]) -> list[TreeBranch]:
    """The joints of the tree, each with the body that it carries."""
    near = _neighbours(tree)
    found: list[TreeBranch] = []
    seen, stack = {GROUND}, [GROUND]
    while stack:
        for joint, other in near.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
                found.append(TreeBranch(joint, other))
    return found


def hanging_parts(joints: Iterable[Joint]) -> list[TreeBranch]:
    """The cut joints with a motor, each with the part of a body that it carries; the ground is not
    divided."""
    return [TreeBranch(j, j.parent if j.child == GROUND else j.child, part=True) for j in joints]


def distances(joints: Iterable[Joint]) -> dict[str, int]:
    """The distance of each connected body from the ground, in joints."""
    far, level = {GROUND: 0}, [GROUND]
    near = _neighbours(joints)
    while level:
        found = [other for body in level for _, other in near.get(body, ()) if other not in far]
        far.update(dict.fromkeys(found, far[level[0]] + 1))
        level = list(dict.fromkeys(found))
    return far


def _neighbours(joints: Iterable[Joint]) -> dict[str, list[tuple[Joint, str]]]:
    """Body to the joints on it, each with the body at its other end."""
    near: dict[str, list[tuple[Joint, str]]] = {}
    for j in joints:
        near.setdefault(j.parent, []).append((j, j.child))
        near.setdefault(j.child, []).append((j, j.parent))
    return near
