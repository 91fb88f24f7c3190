"""Forward dynamics as expressions: the law of laws/forward.py, with the independent coordinates in
the border. What efforts cause goes by W or by clusters of loops, whichever takes fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.clusters import SymbolicClusters, loop_clusters
from holoctl.codegen.laws.constraints_and_tree import (
    SymbolicConstraints,
    SymbolicTree,
    free_constraints,
)
from holoctl.codegen.matrices import total
from holoctl.laws.clusters import caused_by_clusters
from holoctl.laws.forward import caused_by, forward

__all__ = ["by_clusters", "by_inertia", "forward_function"]

MOST_COUPLED = 10.0
"""Where W couples a motion with more motions that carry it, on average, the clusters are taken
without counting, as of a serial arm of 22 joints; they are ahead from 16 on."""

Way = Callable[[Expressions, SymbolicConstraints], tuple[Callable[[SX], SX], list[SX]]]
"""Of E and K the function w -> ``gamma W^-1 gamma' w``, and its guard."""


def forward_function(E: Expressions, ways: Sequence[Way] = ()) -> Any:
    """``forward_dynamics(q, v, tau, t) -> a, guard``, as `PreparedForwardDynamics.acceleration`.

    After t there are the parameters of E. `ways` are those to choose from; by default all that may
    take the fewest operations.
    """
    ca, mech = casadi_module(), E.mech
    tau, K, tree = ca.SX.sym("tau", mech.nv), free_constraints(E), SymbolicTree(E)
    found = [way(E, K) for way in ways or _ways(E)]
    caused, guard = found[0] if len(found) == 1 else min(found, key=lambda x: _operations(E, *x))
    a = forward(K, tree, ca.SX.zeros(K.unit.size), tree.steps, caused)(tau)
    return ca.Function(
        "forward_dynamics", [E.q, E.v, tau, *E.context.values()],
        [a, total([*E.guard, *K.guard, *guard])], ["q", "v", "tau", *E.context], ["a", "guard"],
    )  # fmt: skip


def by_inertia(E: Expressions, K: SymbolicConstraints) -> tuple[Callable[[SX], SX], list[SX]]:
    """W at once."""
    tree = SymbolicTree(E)
    return caused_by(K, tree), tree.guard


def by_clusters(E: Expressions, K: SymbolicConstraints) -> tuple[Callable[[SX], SX], list[SX]]:
    """From cluster to cluster."""
    tree = SymbolicClusters(E.tree, loop_clusters(E), K.basis())
    return caused_by_clusters(tree, tree.clusters), tree.guard


def _ways(E: Expressions) -> Sequence[Way]:
    """Those that may take the fewest operations."""
    clusters, free = loop_clusters(E), set(E.partition.independent.tolist())
    carrying, pairs = {0: 0}, 0
    for c in clusters:
        k = sum(x.coordinate in free for i in c.bodies for x in E.tree.steps[i].columns)
        pairs += k * carrying[c.base]
        carrying |= dict.fromkeys(c.bodies, carrying[c.base] + k)
    if len(clusters) < 2:
        return (by_inertia,)
    return (by_clusters,) if pairs > MOST_COUPLED * len(free) else (by_inertia, by_clusters)


def _operations(E: Expressions, caused: Callable[[SX], SX], guard: list[SX]) -> int:
    """The number of operations of the function, called as often as the law calls it."""
    ca = casadi_module()
    w = ca.SX.sym("w", E.mech.nv)
    found = [E.q, *E.context.values(), w], [caused(caused(w)), total(guard)]
    count: int = ca.Function("caused", *found).n_instructions()
    return count
