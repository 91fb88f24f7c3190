"""The linear model along a motion by differences of the projected dynamics, for self-tests.

    f(h) = S a(q (+) h gamma_j, V, u)        f'(0) = sum w_k [f(k h) - f(-k h)] / h    k = 1, 2, 3

of sixth order; of several steps that which agrees best with the next. V is the velocity that the
constraints allow there; a step along gamma opens them by h^2, which no odd difference sees.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest
from holoctl.dynamics.forward import accelerate
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.projection import projected
from holoctl.tree.lie_bracket import adjoint_velocity

__all__ = ["linear_model_by_differences"]

WEIGHTS = 45.0 / 60.0, -9.0 / 60.0, 1.0 / 60.0
"""Of the differences over one, two and three steps."""

STEPS = 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5  # scaled; the last ones for friction next to rest
"""Steps of differences, scaled, 1 or 1/s."""


def linear_model_by_differences(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, u: Vector
) -> tuple[Array, Array, Vector]:
    """A (2n, 2n), B (2n, nu) and ydd (n,) at a closed state."""
    free, none = part.independent, np.zeros(mech.nv)
    n, tau, c = free.size, mech.B @ u, mech.column_scale

    def motion(q: Vector, yd: Vector, tau: Vector) -> Vector:
        at = projected(mech, q, none, 0.0, part, "split", t_stab=False)
        P = projected(mech, q, at.gamma @ yd + at.v_t, 0.0, part, "split", t_stab=False)
        found: Vector = accelerate(P, tau + P.terms.F)[0][free]
        return found

    yd, ones = v[free], np.eye(n)
    gamma = projected(mech, q, v, 0.0, part, "split").gamma
    ydd = motion(q, yd, tau)
    A, B = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, mech.nu))
    A[:n, :n], A[:n, n:] = -(adjoint_velocity(mech.model, v) @ gamma)[free], np.eye(n)
    for j, along in enumerate(gamma.T):
        unit = 1.0 / largest(along / c)

        def by_y(h: float, along: Vector = along) -> Vector:
            return motion(pin.integrate(mech.model, q, h * along), yd, tau)

        def by_yd(h: float, one: Vector = ones[j]) -> Vector:
            return motion(q, yd + h * one, tau)

        A[n:, j], A[n:, n + j] = _slope(by_y, unit), _slope(by_yd, unit)
    for j, b in enumerate(mech.B.T):
        B[n:, j] = motion(q, yd, tau + b) - ydd
    return A, B, ydd


def _slope(f: Callable[[float], Vector], unit: float) -> Vector:
    found = []
    for step in STEPS:
        h = unit * step
        pairs = [(f(k * h) - f(-k * h)) * w for k, w in enumerate(WEIGHTS, 1)]
        found.append(np.sum(pairs, axis=0) / h)
    off = [largest(x - y) for x, y in pairwise(found)]
    return np.asarray(found[int(np.argmin(off))])
