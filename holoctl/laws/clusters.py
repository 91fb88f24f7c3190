"""The acceleration caused by efforts, ``gamma W^-1 gamma' w``, without ``W = gamma' M gamma``.

The rows of loops couple the coordinates of some bodies: these bodies are a cluster, and gamma is
block diagonal over the clusters. Each cluster is carried by one body of another cluster, its
*base*, so that the clusters form a tree. A is the acceleration of the base, x the motion of the
cluster relative to it:

    [ I  F  ] [A]   [ p ]       the inertia of the bodies of the cluster and of all that they carry,
    [ F' D  ] [x] = [ r ]       minus the yields F D^-1 F' of the clusters that they carry

and a Schur complement eliminates x from the equation of the base:

    leaf to root    base yields   F D^-1 F'        base is pushed by   p - F D^-1 r
    root to leaf    x = D^-1 (r - F' A)

This is the articulated-body algorithm with clusters in the place of joints. The number of
operations is proportional to the number of clusters, and the pivots of D are those of W, eliminated
from leaf to root.

References: R. Featherstone, Rigid Body Dynamics Algorithms, chapter 7; A. Jain, "Multibody graph
transformations and analysis, part II: closed-chain constraint embedding", 2012; M. Chignoli and
others, "Recursive rigid-body dynamics algorithms for systems with kinematic loops", 2023. Tests
compare with laws/forward.py, which uses W.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from holoctl.laws.operators import times

__all__ = ["Cluster", "ClusterTree", "add_to", "caused_by_clusters", "clusters_of"]


class Cluster(NamedTuple):
    """Bodies whose coordinates are coupled by rows.

    Attributes
    ----------
    base : int
        The body that carries them; 0 is the world.
    bodies : tuple of int
        Parents before children.
    """

    base: int
    bodies: tuple[int, ...]


class ClusterTree(Protocol):
    """The open tree at a state, and gamma. Wrenches (6,), accelerations (6,) and yields (6, 6: the
    reduction of a body's inertia by the motions of the bodies it carries) are in the axes of their
    body at its origin, linear part first; a body that is not in a table has zero."""

    @property
    def inertia(self) -> Callable[[Cluster, dict[int, Any]], tuple[Callable[[Any], Any], Any, Any]]:
        """b -> D^-1 b, F' (k, 6), and the yields of the bodies as one of the base (6, 6)."""
        ...

    @property
    def gathered(self) -> Callable[[Cluster, Any, dict[int, Any]], tuple[Any, Any]]:
        """r (k,) and p (6,) of efforts w (nv,) and of wrenches on the bodies."""
        ...

    @property
    def spread(self) -> Callable[[Cluster, Any, dict[int, Any], Any], None]:
        """Write the accelerations that x (k,) causes to the table of the bodies, which has the base
        already, and to the vector of the coordinates (nv,)."""
        ...

    @property
    def zeros(self) -> Callable[[int], Any]:
        """The function n -> a writable vector of n zeros."""
        ...


def clusters_of(parents: Sequence[int], coupled: Iterable[Iterable[int]]) -> list[Cluster]:
    """The smallest clusters, each after its base.

    Parameters
    ----------
    parents : sequence of int
        Of each body, parents before children; body 0 is the world.
    coupled : iterable of iterable of int
        The bodies that a row couples.
    """
    label = np.arange(len(parents))

    def merge(bodies: Iterable[int]) -> None:
        for i, j in pairwise(bodies):
            label[label == label[i]] = label[j]

    for bodies in coupled:
        merge(bodies)
    while True:
        groups = [np.flatnonzero(label == x).tolist() for x in dict.fromkeys(label[1:].tolist())]
        bases = [{parents[i] for i in group} - set(group) for group in groups]
        # a cluster carried by several bodies absorbs the outermost: it has one base only
        several = [(max(b), group[0]) for b, group in zip(bases, groups, strict=True) if len(b) > 1]
        if not several:
            return [Cluster(b.pop(), tuple(g)) for b, g in zip(bases, groups, strict=True)]
        for pair in several:
            merge(pair)


def caused_by_clusters(tree: ClusterTree, clusters: Sequence[Cluster]) -> Callable[[Any], Any]:
    """The function w -> ``gamma W^-1 gamma' w`` of efforts on the coordinates (nv,)."""
    yields: dict[int, Any] = {}
    factors = {}
    for c in reversed(clusters):
        solve, F_T, held = tree.inertia(c, yields)
        per_base = solve(F_T)
        factors[c] = solve, F_T, per_base
        add_to(yields, c.base, held + times(F_T.T, per_base))

    def caused(w: Any) -> Any:
        pushes: dict[int, Any] = {}
        at_rest = {}  # D^-1 r: x where the base rests
        for c in reversed(clusters):
            solve, F_T, _ = factors[c]
            r, p = tree.gathered(c, w, pushes)
            at_rest[c] = solve(r)
            add_to(pushes, c.base, p - times(F_T.T, at_rest[c]))
        a, accelerations = tree.zeros(w.shape[0]), {0: tree.zeros(6)}
        for c in clusters:
            _, _, per_base = factors[c]
            x = at_rest[c] - times(per_base, accelerations[c.base])
            tree.spread(c, x, accelerations, a)
        return a

    return caused


def add_to(table: dict[int, Any], body: int, x: Any) -> None:
    """Add x to the entry of a body."""
    table[body] = table[body] + x if body in table else x
