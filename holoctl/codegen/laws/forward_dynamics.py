"""Forward dynamics as expressions: the law of laws/response.py, with the independent coordinates in
the border. What efforts cause goes by W or by clusters of loops, whichever takes fewer operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holoctl.codegen.casadi_extra import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.clusters import SymbolicClusters, loop_clusters
from holoctl.codegen.laws.motor_constraints import (
    SymbolicConstraints,
    SymbolicTree,
    free_constraints,
)
from holoctl.codegen.matrices import total
from holoctl.laws.clusters import caused_by_clusters
from holoctl.laws.response import caused_by, forward

__all__ = ["forward_function"]

MOST_COUPLED = 10.0
"""Where W couples each motion with more others that carry it, on average, the clusters are taken
without counting: so are those of a serial arm of 22 joints, and they are ahead from 16 on."""


def forward_function(E: Expressions) -> Any:
    """``forward_dynamics(q, v, tau, t) -> a, doubt``, as `PreparedForwardDynamics.acceleration`."""
    ca, mech = casadi_module(), E.mech
    tau, K, tree = ca.SX.sym("tau", mech.nv), free_constraints(E), SymbolicTree(E)
    caused, doubt = _cheaper(E, K)
    a = forward(K, tree, ca.SX.zeros(K.unit.size), tree.steps, caused)(tau)
    return ca.Function(
        "forward_dynamics", [E.q, E.v, tau, E.t], [a, total([*E.doubt, *K.doubt, *doubt])],
        ["q", "v", "tau", "t"], ["a", "doubt"],
    )  # fmt: skip


def _cheaper(E: Expressions, K: SymbolicConstraints) -> tuple[Callable[[SX], SX], list[SX]]:
    """The function w -> ``gamma W^-1 gamma' w``, and its doubt."""
    by_inertia, by_clusters = SymbolicTree(E), SymbolicClusters(E.tree, loop_clusters(E), K.basis())
    if len(by_clusters.clusters) < 2:
        return caused_by(K, by_inertia), by_inertia.doubt
    found = [(caused_by_clusters(by_clusters, by_clusters.clusters), by_clusters.doubt)]
    if by_clusters.coupled < MOST_COUPLED:
        found.append((caused_by(K, by_inertia), by_inertia.doubt))
    return min(found, key=lambda x: _operations(E, *x))


def _operations(E: Expressions, caused: Callable[[SX], SX], doubt: list[SX]) -> int:
    ca = casadi_module()
    w = ca.SX.sym("w", E.mech.nv)
    count: int = ca.Function("f", [E.q, E.t, w], [caused(w), total(doubt)]).n_instructions()
    return count
