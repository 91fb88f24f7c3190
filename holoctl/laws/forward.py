"""Forward dynamics, and the response of the accelerations to the motor efforts.

    a = a0 + gamma z        gamma' (M a + h - F - tau) = 0
    H = A' W^-1 A           Y = gamma W^-1 A               W = gamma' M gamma, A = gamma' B

Reference: docs/derivations.md, "Inverse dynamics in a tick". Tests compare with
`forward_dynamics` and dynamics/effort_response.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holoctl.laws.operators import Constraints, Tree, times

__all__ = ["caused_by", "forward", "mobility", "response"]


def mobility(K: Constraints, tree: Tree) -> tuple[Any, Callable[[Any], Any]]:
    """gamma (nv, k), and the function b -> W^-1 b."""
    N = K.basis()
    return N, tree.cholesky(times(N.T, tree.inertia_times(N)))


def caused_by(K: Constraints, tree: Tree) -> Callable[[Any], Any]:
    """The function w -> ``gamma W^-1 gamma' w`` of efforts on the coordinates (nv,)."""
    N, per_inertia = mobility(K, tree)
    return lambda w: times(N, per_inertia(times(N.T, w)))


def forward(
    K: Constraints, tree: Tree, start: Any, steps: int,
    caused: Callable[[Any], Any] | None = None,
) -> Callable[[Any], Any]:  # fmt: skip
    """The function tau -> a of efforts on the coordinates (nv,). `start` is c of any motion; each
    further step of the iteration corrects the rounding of the one before. `caused` is `caused_by`,
    or the same by clusters."""
    caused = caused_by(K, tree) if caused is None else caused
    a0 = K.motion(start)
    needed_at_start = tree.needed(a0, None)

    def motion(tau: Any) -> Any:
        a = a0 + caused(tau - needed_at_start)
        for _ in range(steps - 1):
            a = a + caused(tau - tree.needed(a, None))
        return a

    return motion


def response(K: Constraints, tree: Tree) -> tuple[Any, Any, Any]:
    """H (nu, nu); and gamma (nv, k) and W^-1 A (k, nu), whose product is Y."""
    N, per_inertia = mobility(K, tree)
    A = K.actuation()
    moved = per_inertia(A)
    return times(A.T, moved), N, moved
