"""Forward dynamics: the motion that efforts cause.

    a = a0 + N z        N' (M a + h - F - tau) = 0        C = E, N = gamma

a0 is any motion that keeps the constraints, N the basis of those that keep them homogeneously;
see `Bordered`. docs/derivations.md, "In a tick"; the Python path is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holoctl.base.tolerances import REDUCED
from holoctl.codegen.casadi_extra import SX, casadi_module
from holoctl.codegen.elimination import Factors, factored
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.bordered import bordered, selection
from holoctl.codegen.matrices import column, scalars, total
from holoctl.codegen.tree_dynamics import mass_matrix

__all__ = ["following", "forward_function", "reduced_inertia"]


def forward_function(E: Expressions) -> Any:
    """``forward_dynamics(q, v, tau, t) -> a, doubt``, as `PreparedForwardDynamics.acceleration`."""
    ca = casadi_module()
    mech, part = E.mech, E.partition
    tau = ca.SX.sym("tau", mech.nv)
    free = part.independent
    K = bordered(E, selection(mech.nv, free), 1.0 / mech.column_scale[free])
    a, k = K.motion([ca.SX(0.0)] * free.size), free.size
    doubt = [*E.doubt, *K.doubt]
    if k:
        N = K.basis(k)
        z, more = following(E, N)
        a, doubt = a + N @ z(E.needed(a) - tau), [*doubt, *more]
        a = a + N @ z(E.needed(a) - tau)  # what rounding left over
    return ca.Function(
        "forward_dynamics", [E.q, E.v, tau, E.t], [a, total(doubt)],
        ["q", "v", "tau", "t"], ["a", "doubt"],
    )  # fmt: skip


def following(E: Expressions, N: SX) -> tuple[Callable[[SX], SX], list[SX]]:
    """A function w -> z with ``N' (w + M N z) = 0``, by which motions along N follow the dynamics.

    Also its doubt. Doubts add up, and errors multiply, so that a second step with what the first
    has left over keeps them small up to where the guard trips.
    """
    reduced, NT = reduced_inertia(E, N), N.T

    def z(w: SX) -> SX:
        return column(reduced.solve(scalars(-(NT @ w))))

    return z, reduced.doubt


def reduced_inertia(E: Expressions, N: SX) -> Factors:
    """``N' M N``, factored."""
    return factored(N.T @ (mass_matrix(E.tree) @ N), REDUCED)
