"""Closed configurations next to a closed one: steps along its null vectors, closed again.

If the rank is deficient here but full nearby, the configuration is singular; if it is deficient
nearby too, rows are redundant.
Derivation: docs/derivations.md, "Scaling and rank".
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest, null_space_by_svd
from holoctl.closing.least_squares import distance
from holoctl.closing.newton import damped_step, everywhere, newton
from holoctl.closing.rank import manifold_rank, scaled_jacobian
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["configuration_along", "nearby_configurations"]


def nearby_configurations(
    mech: Mechanism,
    q: Vector,
    t: float = 0.0,
    count: int = 4,
    step: float = 0.1,
    seed: int = 0,
) -> list[Vector]:
    """Other closed configurations near a closed q, to determine the generic rank.

    Steps of about `step` (scaled) along seeded random null vectors of G, both signs, closed
    again by Newton; points that did not move are left out. Empty for a rigid mechanism.
    """
    G, error = scaled_jacobian(mech, q, t)
    Z = null_space_by_svd(G, manifold_rank(G, largest(error)))[3]
    rng = np.random.default_rng(seed)
    steps: list[Vector] = []
    for _ in range(count if Z.shape[1] > 1 else Z.shape[1]):  # a single motion needs one direction
        y = rng.normal(size=Z.shape[1])
        z = step * (Z @ y) / np.linalg.norm(y)
        steps += [z, -z]

    def moved(x: Vector) -> bool:
        return 0.1 * step < distance(mech, q, x) < 5.0 * step

    reached = (configuration_along(mech, q, z, t) for z in steps)
    found = [x for x in reached if x is not None and moved(x)]
    if not found:
        reached = (_ahead(mech, q, z, t) for z in steps)
        found = [x for x in reached if x is not None and moved(x)]
    return found


def configuration_along(mech: Mechanism, q: Vector, step: Vector, t: float) -> Vector | None:
    """The closed configuration next to q moved by a scaled step (nv,); None if it stays open.

    It may be q again, if the mechanism cannot move along the step. Rows too weak to count for the
    rank do not prevent the motion: they may stay open by their small amount.
    """
    p = everywhere(mech, q, t)
    x = newton(p, p.moved(q, step), None)
    return x if largest(p.scaled_rows(x)[0]) <= p.tol else None


def _ahead(mech: Mechanism, q: Vector, z: Vector, t: float) -> Vector | None:
    """A closed configuration at the distance |z| along z, if there is one.

    At a crossing of paths the rows are quadratic in a step, and Newton's method shrinks it back to
    q. So an additional row prescribes the length along z, and the rest of the step is free.
    """
    length = float(np.linalg.norm(z))
    ahead = z / length
    p = everywhere(mech, q, t)

    def residual(x: Vector) -> tuple[Vector, Array]:
        error, G = p.scaled_rows(x)
        d = pin.difference(mech.model, q, x) / mech.column_scale
        return np.append(error, ahead @ d - length), np.vstack([G, ahead])

    x, damping = p.moved(q, z), 1e-3
    error, A = residual(x)
    for _ in range(100):
        if largest(error) <= 1e-10 or damping > 1e12:
            break
        step = damped_step(A, error, damping * min(1.0, float(error @ error)))
        trial = p.moved(x, step * min(1.0, 0.05 / max(float(np.linalg.norm(step)), 1e-300)))
        new_error, new_A = residual(trial)
        if new_error @ new_error < error @ error:
            x, error, A, damping = trial, new_error, new_A, max(0.2 * damping, 1e-12)
        else:
            damping *= 10.0
    return configuration_along(mech, x, np.zeros(mech.nv), t)
