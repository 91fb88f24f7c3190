"""Inverse dynamics: the motor efforts that cause a motion.

    a = K.motion(c)                  G a = -drift        C' a = c
    w = M a + h - F
    u = K.share(K.along(w))          gamma' B u = gamma' w

Passive motions, which no motor drives, follow the dynamics: with N their columns of gamma,

    N' (w + M N z) = 0

Reference: docs/derivations.md, "Inverse dynamics" and "Inverse dynamics in a tick". Tests
compare with the formula with gamma, `inverse_dynamics`.
"""

from __future__ import annotations

from typing import Any

from holoctl.laws.operators import Constraints, Tree, times

__all__ = ["holding", "inverse"]


def inverse(K: Constraints, tree: Tree, c: Any, rates: Any, push: Any) -> tuple[Any, Any, Any]:
    """The efforts of the motors u (nu,) for the motion ``C' a = c``; a (nv,), and the velocity
    (nv,) at which friction was evaluated, None for v.

    With `rates`, friction is evaluated at the velocity with ``C' v = rates``, at which passive
    motions keep their momentum (dynamics/friction_velocity.py). `push` are further efforts along
    the motions, which the motors provide in addition.
    """
    a = K.motion(c)
    at = K.velocity(rates) if rates is not None and tree.friction else None
    if K.undriven is None:
        w = tree.needed(a, at)
    else:
        N = K.undriven()
        MN = tree.inertia_times(N)
        per_inertia = tree.cholesky(times(N.T, MN))
        if at is not None:
            at = at + times(N, per_inertia(times(MN.T, tree.v - at)))
        w = tree.needed(a, at)
        for _ in range(tree.steps):
            z = per_inertia(times(N.T, w))
            a, w = a - times(N, z), w - times(MN, z)
    if K.keeps is not None:
        K.keeps(a)
    x = K.along(w)
    return K.share(x if push is None else x + push), a, at


def holding(K: Constraints, tree: Tree) -> Any:
    """The efforts u (nu,) that hold the mechanism at rest."""
    return K.share(K.along(tree.at_rest()))
