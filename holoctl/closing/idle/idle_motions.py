"""Idle motions: spins of a body between two joints that move no other body.

An example is the spin of a rod between two spherical joints. Each joint must fix a point of the
axis; a link on a hinge and a slide is a pendulum, not a rod. A joint may be made of several, such
as a spherical joint of three hinges: the bodies within it move too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import null_space_by_svd
from holoctl.base.tolerances import IDLE_NEW
from holoctl.closing.body_graph import Bodies
from holoctl.closing.idle.tied_bodies import TiedBodies
from holoctl.closing.sampled_configurations import Sample, goes_on

__all__ = ["Idle", "idle_motions", "independent_spins"]

IDLE_RANK = 1e-7  # scaled
"""Smaller singular values of the rows on a group of bodies, with all others at rest, do not count
as constraining the group."""


@dataclass(frozen=True, eq=False)
class Idle:
    """Bodies that can move alone without effect.

    Attributes
    ----------
    group : frozenset of int
        All bodies that move.
    spinning : frozenset of int
        The bodies that spin between two joints.
    basis : (nv, n) array
        Their motions, scaled.
    apart : (n,) array of bool
        Whether joints fix the axis at separate points. If all fix it at the same point, as in a
        spherical linkage, the axis tilts during the motion, and other links turn with it.
    """

    group: frozenset[int]
    spinning: frozenset[int]
    basis: Array
    apart: NDArray[np.bool_]


def idle_motions(
    here: Bodies, at: Sample, held: Array, motions: Array
) -> dict[frozenset[int], Idle]:
    """The idle motions among some motions, by the bodies that move.

    Parameters
    ----------
    here : Bodies
    at : Sample
        The same configuration.
    held : (h, nv) array
        Rows of length one by scaled velocities that must be zero: of motors, of sensors.
    motions : (nv, n) array
        Orthonormal basis, scaled, of the motions in which those are zero. Bodies without relative
        motion in all of them count as one.
    """
    graph = TiedBodies(here, motions)
    K = np.vstack([at.G, held])
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
        looked = (graph.spins(main, arms, group, x) for x in _rotations(graph, main, basis))
        spins = [spin for spin in looked if spin is not None]
        if not spins:
            continue
        moving = graph.members(group)
        known = found.get(moving)
        spinning = graph.members({main}) | (known.spinning if known else frozenset())
        found[moving] = Idle(
            moving,
            spinning,
            np.array([spin.x for spin in spins]).T,
            np.array([spin.apart for spin in spins]),
        )
    return found


def independent_spins(
    here: Bodies, at: Sample, spaces: Iterable[Idle], t: float
) -> tuple[list[Idle], Array]:
    """All independent spins that continue as finite motions, those of few bodies first.

    Returns
    -------
    spins : list of Idle
        Each has one motion, of length one.
    basis : (nv, n) array
        Orthonormal basis of all of them, scaled.
    """
    found, basis = list[Idle](), np.zeros((here.mech.nv, 0))
    for idle in sorted(spaces, key=lambda idle: (len(idle.group), sorted(idle.group))):
        for x, apart in zip(idle.basis.T, idle.apart, strict=True):
            rest = x - basis @ (basis.T @ x)
            size = float(np.linalg.norm(rest))
            if size > IDLE_NEW and goes_on(here.mech, at, x, t):
                basis = np.column_stack([basis, rest / size])
                found.append(Idle(idle.group, idle.spinning, x[:, None], np.array([apart])))
    return found, basis


def _alone(here: Bodies, graph: TiedBodies, K: Array, group: set[int]) -> Array:
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


def _rotations(graph: TiedBodies, main: int, basis: Array) -> list[Vector]:
    """Motions in which the body turns, without their translation along the axis."""
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
