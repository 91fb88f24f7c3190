"""Idle motions: a body that spins between two joints, and moves nothing else.

The spin of a rod between two ball joints is one. No motor drives it, and none needs to. Each joint
must hold a point of the axis at rest; a link on a hinge and a slide is a pendulum, not a rod. A
joint may be made of several, such as a ball joint of three hinges: the bodies within move too.
What is tied how is read off the joints, of the tree and cut ones alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.linalg import least_squares, null_space_by_svd
from holoctl.base.tolerances import IDLE_RANK, MOST_FREE
from holoctl.doctor.bodies import Bodies, Edge
from holoctl.doctor.motion import Motion, described
from holoctl.doctor.samples import Sample, goes_on
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Idle", "idle_motions", "independent_motions"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Idle:
    """Bodies that can move alone without effect.

    Attributes
    ----------
    group : frozenset of int
        All that move.
    spinning : frozenset of int
        Those that spin between two joints.
    basis : (nv, n) array
        Their motions, scaled.
    """

    group: frozenset[int]
    spinning: frozenset[int]
    basis: Array


def idle_motions(here: Bodies, at: Sample, undriven: Array) -> dict[frozenset[int], Idle]:
    """The idle ones among the motions with all motors at rest, by the bodies that move."""
    graph = _Graph(here, undriven)
    K = np.vstack([at.G, _motors(here.mech)])
    found: dict[frozenset[int], Idle] = {}
    for main in graph.candidates():
        if sum(graph.holding[id(edge)] for edge in graph.edges[main]) < 2:
            continue
        arms = [list(graph.arm(main, edge)) for edge in graph.edges[main]]
        group = {main, *(node for arm in arms for _, node, beyond in arm if beyond)}
        basis = _alone(here, graph, K, group)
        if not _moves(graph.twist(main, basis), here.at_rest):
            continue
        for node in sorted(group - {main}, key=lambda node: graph.order(arms, node)):
            fewer = _alone(here, graph, K, group - {node})
            if _moves(graph.twist(main, fewer), here.at_rest):
                group, basis = group - {node}, fewer
        basis = basis[:, _columns_moving(graph.twist(main, basis), here.at_rest)]
        spins = [x for x in _rotations(graph, main, basis) if graph.spins(main, arms, group, x)]
        if not spins:
            continue
        moving = graph.members(group)
        known = found.get(moving)
        spinning = graph.members({main}) | (known.spinning if known else frozenset())
        found[moving] = Idle(moving, spinning, np.array(spins).T)
    return found


def independent_motions(
    here: Bodies, at: Sample, spaces: Sequence[Idle], t: float
) -> tuple[list[Motion], Array]:
    """As many motions as are independent and go on, those of few bodies first, and their basis."""
    found, basis = list[Motion](), np.zeros((here.mech.nv, 0))
    for idle in sorted(spaces, key=lambda idle: (len(idle.group), sorted(idle.group))):
        for x in idle.basis.T:
            rest = x - basis @ (basis.T @ x)
            size = float(np.linalg.norm(rest))
            if size > 1e-3 and goes_on(here.mech, at, x, t):
                basis = np.column_stack([basis, rest / size])
                (motion,) = described(here, x[:, None])
                found.append(replace(motion, bodies=here.names(idle.spinning)))
    return found, basis


class _Graph:
    """Bodies as nodes: those that never move against each other, motors at rest, are one."""

    def __init__(self, here: Bodies, undriven: Array) -> None:
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
        moving = np.linalg.norm(undriven, axis=1) > here.at_rest
        joining = []
        for edge in here.edges:
            used = np.abs(edge.rates).max(axis=0) > 0.0
            still = not (used & moving).any()
            if still or np.abs(edge.rates[:, used] @ undriven[used]).max() <= here.at_rest:
                if find(edge.a) and find(edge.b):  # what is tied to the ground keeps its name
                    root[find(edge.b)] = find(edge.a)
            else:
                joining.append(edge)
        self.node = [find(body) for body in range(n)]
        self.bodies: dict[int, set[int]] = {}
        for body, node in enumerate(self.node):
            self.bodies.setdefault(node, set()).add(body)
        self.edges: dict[int, list[Edge]] = {node: [] for node in self.bodies}
        self.holding = {id(edge): _can_hold(edge.free, here.at_rest) for edge in joining}
        for edge in joining:
            a, b = self.node[edge.a], self.node[edge.b]
            if a != b:
                self.edges[a].append(edge)
                self.edges[b].append(edge)

    def candidates(self) -> Iterator[int]:
        """Bodies with two joints or more that move."""
        ground = self.node[0]
        yield from (node for node, ties in self.edges.items() if node != ground and len(ties) > 1)

    def other(self, node: int, edge: Edge) -> int:
        a, b = self.node[edge.a], self.node[edge.b]
        return b if node == a else a

    def arm(self, main: int, edge: Edge) -> Iterator[tuple[Array, int, bool]]:
        """What can be a joint of several: allowed twists so far, the next body, and whether it
        may be passed on the way to a farther one: it has two joints, which together can hold a
        point of an axis."""
        node, free, seen = self.other(main, edge), edge.free, {main}
        while True:
            ties = [tie for tie in self.edges[node] if tie is not edge]
            beyond = node != self.node[0] and len(ties) == 1
            following = self.other(node, ties[0]) if beyond else node
            beyond = beyond and self.holding[id(ties[0])]
            wider = _range(np.hstack([free, ties[0].free]), self.here.at_rest) if beyond else free
            beyond = beyond and following not in seen and _can_hold(wider, self.here.at_rest)
            yield free, node, beyond
            if not beyond:
                return
            seen.add(node)
            node, edge, free = following, ties[0], wider

    def order(
        self, arms: Sequence[Sequence[tuple[Array, int, bool]]], node: int
    ) -> tuple[int, str]:
        """Far ones first, for what is to rest; equally far ones by name."""
        depth = min(
            i for arm in arms for i, (_, n, _) in enumerate(arm) if n == node
        )  # fmt: skip
        return -depth, min(self.here.names(self.bodies[node]))

    def twist(self, node: int, x: Array) -> Array:
        return self.here.twist(min(self.bodies[node]), x)

    def members(self, group: set[int]) -> frozenset[int]:
        return frozenset(body for node in group for body in self.bodies[node])

    def spins(
        self,
        main: int,
        arms: Sequence[Sequence[tuple[Array, int, bool]]],
        group: set[int],
        x: Vector,
    ) -> bool:
        """Whether the body turns about an axis that joints with two others at rest hold."""
        w = self.twist(main, x)
        ends = set()
        for edge, arm in zip(self.edges[main], arms, strict=True):
            resting = next((step for step in arm if step[1] not in group), None)
            if resting is None:  # as in a ring that floats: all of it moves
                continue
            free, node, _ = resting
            last = self._last(edge, arm, node)
            if _holds(free, w, self.here.at_rest):
                ends.add(int(self.here.welded[last]))
        return len(ends) > 1

    def _last(self, edge: Edge, arm: Sequence[tuple[Array, int, bool]], node: int) -> int:
        """The body itself, of those that make up the node, that the arm ends at."""
        before = None
        for _, found, _ in arm:
            if found == node:
                break
            before = found
        if before is not None:
            (edge,) = [e for e in self.edges[before] if self.other(before, e) == node][:1]
        return edge.a if self.node[edge.a] == node else edge.b


def _holds(free: Array, w: Vector, at_rest: float) -> bool:
    """Whether a joint that allows these twists keeps a point of the axis of w on the axis."""
    v, omega = w[:3], w[3:]
    size = float(np.linalg.norm(omega))
    if size <= at_rest or abs(v @ omega) > at_rest * size * float(np.linalg.norm(w)):
        return False  # a slide, or a screw
    n, foot = omega / size, np.cross(omega, v) / size**2

    def across(u: Array) -> Array:
        return (u - np.outer(u @ n, n)).ravel()

    a = across(free[:3].T + np.cross(free[3:].T, foot))
    b = across(np.cross(free[3:].T, n))
    along = -float(a @ b) / float(b @ b) if float(b @ b) > at_rest**2 else 0.0
    return float(np.abs(a + along * b).max(initial=0.0)) <= at_rest * (1.0 + abs(along))


def _can_hold(free: Array, at_rest: float) -> bool:
    """Whether there is an axis of which a joint that allows these twists holds a point: they are
    turns about a point, and at most one slide, along the axis."""
    if free.shape[1] > MOST_FREE:
        return False
    _, s, vt = np.linalg.svd(free[3:])
    turning = int(np.count_nonzero(s > at_rest))
    if turning == 0 or free.shape[1] > turning + 1:
        return False
    twists = free @ vt[:turning].T
    along = twists[3:, 0] if turning == 1 else np.zeros(3)
    if free.shape[1] > turning:
        along = free[:3] @ vt[turning]
    n = along / max(float(np.linalg.norm(along)), 1e-300)
    P = np.eye(3) - np.outer(n, n)
    A = np.vstack([-P @ _skew(omega) for omega in twists[3:].T])
    b = (P @ twists[:3]).T.ravel()
    return bool(np.abs(A @ least_squares(A, -b, rcond=at_rest) + b).max() <= at_rest)


def _skew(w: Vector) -> Array:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def _alone(here: Bodies, graph: _Graph, K: Array, group: set[int]) -> Array:
    """(nv, n): the motions of these bodies with all others at rest."""
    inside = np.zeros(len(graph.node), dtype=bool)
    inside[list(graph.members(group))] = True
    for body, parts in here.within.items():
        inside[parts] = inside[body] or inside[here.parents[parts[0]]]
    touched = np.flatnonzero(inside | inside[here.parents])
    touched = touched[touched > 0]
    columns = np.concatenate([here.columns[j] for j in touched])
    A = K[:, columns]
    resting = []
    for j in touched[~inside[touched]].tolist():
        x = np.zeros((here.mech.nv, columns.size))
        x[columns, np.arange(columns.size)] = 1.0
        resting.append(here.twist(j, x))
    A = np.vstack([A[np.abs(A).max(axis=1, initial=0.0) > 0.0], *resting])
    s = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(0)
    basis = null_space_by_svd(A, int(np.count_nonzero(s > max(IDLE_RANK, here.tolerance))))[3]
    x = np.zeros((here.mech.nv, basis.shape[1]))
    x[columns] = basis
    return x


def _rotations(graph: _Graph, main: int, basis: Array) -> list[Vector]:
    """Motions in which the body turns; of those that also slide along the axis, without that."""
    if basis.shape[1] < 2:
        return list(basis.T)
    w = graph.twist(main, basis)
    _, s, vt = np.linalg.svd(w[3:])
    turning = int(np.count_nonzero(s > graph.here.at_rest))
    slides = vt[turning:].T
    found = []
    for y in vt[:turning]:
        v, omega = (w @ y)[:3], (w @ y)[3:]
        along = omega @ w[:3] @ slides
        if float(along @ along) > graph.here.at_rest**2:
            pure = y - slides @ along * float(v @ omega) / float(along @ along)
            found.append(basis @ pure / np.linalg.norm(pure))
        else:
            found.append(basis @ y)
    return found


def _moves(w: Array, at_rest: float) -> bool:
    return float(np.abs(w).max(initial=0.0)) > at_rest


def _columns_moving(w: Array, at_rest: float) -> NDArray[np.bool_]:
    moving: NDArray[np.bool_] = np.abs(w).max(axis=0, initial=0.0) > at_rest
    return moving


def _range(A: Array, at_rest: float) -> Array:
    u, s, _ = np.linalg.svd(A, full_matrices=False)
    return np.asarray(u[:, s > at_rest])


def _motors(mech: Mechanism) -> Array:
    B = mech.column_scale[:, None] * mech.B
    rows: Array = (B / np.linalg.norm(B, axis=0)).T
    return rows
