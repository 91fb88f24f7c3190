"""Graph of bodies and joints in which idle motions are searched.

A joint may be made of several, such as a spherical joint of three hinges: an arm of the graph
passes through the bodies within it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.closing.body_graph import Bodies, Edge
from holoctl.closing.idle.held_axes import can_hold, held_points
from holoctl.tree.frozen_model import plain

__all__ = ["Arm", "Spin", "TiedBodies"]

HELD_APART = 1e-4  # of the size of the mechanism
"""Points closer together than this do not fix an axis: it may tilt about them."""

MASS_OF_PARTS = 1e-6
"""Bodies between the hinges of a composed spherical joint are parts of the joint if their mass is
below this fraction of that of the spinning body; heavier ones are links, and so are all if the
spinning body has no mass."""


Arm = Sequence[tuple[Array, int, bool]]
"""Steps of `TiedBodies.arm`."""


class Spin(NamedTuple):
    """A motion, scaled, and whether its axis is fixed at separate points: at a single one it may
    tilt."""

    x: Vector
    apart: bool


class TiedBodies:
    """Bodies as nodes: those without relative motion in all of the `motions` are one node."""

    def __init__(self, here: Bodies, motions: Array) -> None:
        self.here = here
        n = here.mech.model.njoints
        root = list(range(n))

        def find(body: int) -> int:
            while root[body] != body:
                root[body] = body = root[root[body]]
            return body

        first = {int(label): i for i, label in reversed(list(enumerate(here.welded)))}
        for body, label in enumerate(here.welded.tolist()):
            root[find(body)] = find(first[label])
        moving = np.linalg.norm(motions, axis=1) > here.at_rest
        joining = []
        for edge in here.edges:
            used = np.abs(edge.rates).max(axis=0) > 0.0
            still = not (used & moving).any()
            if still or np.abs(edge.rates[:, used] @ motions[used]).max() <= here.at_rest:
                if find(edge.a) and find(edge.b):  # a node with the ground keeps the ground's index
                    root[find(edge.b)] = find(edge.a)
            else:
                joining.append(edge)
        self.node = [find(body) for body in range(n)]
        self.bodies: dict[int, set[int]] = {}
        for body, node in enumerate(self.node):
            self.bodies.setdefault(node, set()).add(body)
        self.edges: dict[int, list[Edge]] = {node: [] for node in self.bodies}
        self.holding = {id(edge): can_hold(edge.free, here.at_rest) for edge in joining}
        for edge in joining:
            a, b = self.node[edge.a], self.node[edge.b]
            if a != b:
                self.edges[a].append(edge)
                self.edges[b].append(edge)

    def candidates(self) -> Iterator[int]:
        """Moving bodies with two or more joints."""
        ground = self.node[0]
        yield from (node for node, ties in self.edges.items() if node != ground and len(ties) > 1)

    def other(self, node: int, edge: Edge) -> int:
        a, b = self.node[edge.a], self.node[edge.b]
        return b if node == a else a

    def arm(self, main: int, edge: Edge) -> Iterator[tuple[Array, int, bool]]:
        """Joints that may be made of several: the allowed twists so far, the next body, and whether
        the arm may pass through it to a farther one: it has two joints, which together can fix a
        point of an axis."""
        node, free, seen = self.other(main, edge), edge.free, {main}
        while True:
            ties = [tie for tie in self.edges[node] if tie is not edge]
            beyond = node != self.node[0] and len(ties) == 1
            following = self.other(node, ties[0]) if beyond else node
            beyond = beyond and self.holding[id(ties[0])]
            wider = _range(np.hstack([free, ties[0].free]), self.here.at_rest) if beyond else free
            beyond = beyond and following not in seen and can_hold(wider, self.here.at_rest)
            yield free, node, beyond
            if not beyond:
                return
            seen.add(node)
            node, edge, free = following, ties[0], wider

    def order(self, arms: Sequence[Arm], node: int) -> tuple[int, str]:
        """Sort key: far bodies first, which may be the resting ones; equally far ones by name."""
        depth = min(
            i for arm in arms for i, (_, n, _) in enumerate(arm) if n == node
        )  # fmt: skip
        return -depth, min(self.here.names(self.bodies[node]))

    def twist(self, node: int, x: Array) -> Array:
        return self.here.twist(min(self.bodies[node]), x)

    def members(self, group: set[int]) -> frozenset[int]:
        return frozenset(body for node in group for body in self.bodies[node])

    def spins(self, main: int, arms: Sequence[Arm], group: set[int], x: Vector) -> Spin | None:
        """The spin of a body about an axis fixed by joints to two bodies at rest, or None.

        Links with mass may be parts of a joint only if the axis is fixed at separate points. On the
        axis of a hinge, three more hinges through one of its points make a spherical four-bar, and
        all of its links move; likewise if all points coincide.
        """
        w = self.twist(main, x)
        ends, points = set[int](), list[float]()
        for edge, arm in zip(self.edges[main], arms, strict=True):
            resting = next((step for step in arm if step[1] not in group), None)
            if resting is None:  # as in a floating ring, all bodies move
                continue
            free, node, _ = resting
            last = self._last(edge, arm, node)
            held = held_points(free, w, self.here.at_rest)
            if held is not None:
                ends.add(int(self.here.welded[last]))
                points += held
        if len(ends) < 2:
            return None
        apart = max(points) - min(points) > max(HELD_APART, self.here.tolerance)
        if not (apart and np.isfinite(points).all()) and self._with_links(main, group):
            return None
        return Spin(x, apart)

    def _with_links(self, main: int, group: set[int]) -> bool:
        """Whether other bodies with mass move, which are more than parts of a joint."""
        inertias = plain(self.here.mech.model).inertias

        def mass(node: int) -> float:
            return sum(float(inertias[body].mass) for body in self.bodies[node])

        few = MASS_OF_PARTS * mass(main)
        return any(mass(node) >= few for node in group - {main})

    def _last(self, edge: Edge, arm: Arm, node: int) -> int:
        """The body within the node at which the arm ends."""
        before = None
        for _, found, _ in arm:
            if found == node:
                break
            before = found
        if before is not None:
            (edge,) = [e for e in self.edges[before] if self.other(before, e) == node][:1]
        return edge.a if self.node[edge.a] == node else edge.b


def _range(A: Array, at_rest: float) -> Array:
    u, s, _ = np.linalg.svd(A, full_matrices=False)
    return np.asarray(u[:, s > at_rest])
