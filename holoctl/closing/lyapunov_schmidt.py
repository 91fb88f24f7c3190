"""Closed configurations next to a closed one, by the reduction of Lyapunov and Schmidt.

The singular vectors of G at q split rows and coordinates into two parts:

    U1^T phi(x) = 0    determines the coordinates V1^T d, for given y = Z^T d:  x = x(y)
    f(y) = U2^T phi(x(y)) = 0    remains to be solved; f and its slope vanish at y = 0

where d is the step from q, and G Z = 0. For redundant rows f is zero everywhere: every y is closed.
If f is not zero, q is singular or infinitesimally mobile, and f determines the directions that
continue as finite motions, to any order. It is small, and separated from the rows that determine
x(y).
Reference: M. Golubitsky and D. Schaeffer, Singularities and Groups in Bifurcation Theory, vol. 1,
chapter VII.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import largest, least_squares, null_space_by_svd, singular_values
from holoctl.base.tolerances import ALLOWANCE, LATENT_ROOT, RANK, ROUNDING
from holoctl.closing.rank import manifold_rank, scaled_jacobian
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.scales import sizes
from holoctl.tree.frozen_model import plain

__all__ = ["ContinuationPlace", "Neighbourhood", "around", "followed", "neighbourhood"]

WALK_MIXTURES = 9
"""Number of random combinations of directions without a successful step that are tried with their
length prescribed."""

MOTION_REACH = 0.01  # scaled
"""Scaled length of the steps that decide whether an infinitesimal motion is finite."""

WALK_REACH = 0.1  # scaled
"""Scaled length of steps to other configurations in each direction: a term of fourth order is then
1e-4."""

OPEN_STILL = 1e-9  # scaled
"""A configuration with a larger error was not closed by a step of this file."""

WALK_ROUNDING = 1e-14  # scaled
"""A smaller error is rounding, for a mechanism near the origin of the world."""

WALK_STRONG_STEPS, WALK_STEPS, WALK_FLAT = 20, 60, 1e-3  # counts; -
"""Most Newton steps for the rows of x(y); most for f; slopes of f below this fraction of the
largest cause no step."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A closed q, and the coordinates y (k,) around it.

    `rows` are those that must close; None means all. f counts as zero up to `rounding`, plus `weak`
    for each unit of y, from rows too weak to count for the rank. Steps of `reach` decide whether a
    direction continues; they are longer with rounded geometry.
    """

    mech: Mechanism
    q: Vector
    t: float
    rows: Indices | None
    U1: Array
    U2: Array
    V1: Array
    Z: Array
    rounding: float
    weak: float
    reach: float

    @property
    def dof(self) -> int:
        """k, the number of infinitesimal motions."""
        return int(self.Z.shape[1])


@dataclass(frozen=True, eq=False)
class ContinuationPlace:
    """x(y), the remaining error f (p,) there, and its derivative by y (p, k)."""

    x: Vector
    y: Vector
    f: Vector
    slope: Array


def neighbourhood(
    mech: Mechanism,
    q: Vector,
    t: float,
    rows: Indices | None = None,
    rank: int | None = None,
    weak: float | None = None,
    tolerance: float = 0.0,
) -> Neighbourhood:
    """Split rows and coordinates at a closed q, with a rank that is given or determined here.

    `weak` is the largest singular value that does not count. It must be given for a q that was
    reached by a step, where that singular value may come from a term of high order. One that does
    not count only because of the error at q, not by its size, is judged by the steps.
    """
    G, error = scaled_jacobian(mech, q, t, rows)
    r = manifold_rank(G, largest(error), tolerance) if rank is None else rank
    U1, _, V1, Z = null_space_by_svd(G, r)
    U2 = null_space_by_svd(U1.T, r)[3] if r else np.eye(G.shape[0])
    if weak is None:
        s = singular_values(G)
        weak = min(largest(s[r:]), max(RANK, tolerance) * max(largest(s), 1.0))
    rounding = max(WALK_ROUNDING * _reach(mech), ALLOWANCE * largest(error), tolerance / ALLOWANCE)
    reach = max(MOTION_REACH, LATENT_ROOT * float(np.sqrt(tolerance)))
    return Neighbourhood(mech, q, t, rows, U1, U2, V1, Z, rounding, 2.0 * weak, reach)


def _reach(mech: Mechanism) -> float:
    """The distance from the origin of the world in units of the size of the mechanism, to which
    rounding is proportional."""
    placed = plain(mech.model).jointPlacements
    far = max(float(np.abs(placed[j].translation).max()) for j in range(1, mech.model.njoints))
    return 1.0 + far / sizes(mech.model, mech.reference, (), workspace(mech))[0]


def place(n: Neighbourhood, y: Vector, slope: bool = True) -> ContinuationPlace | None:
    """x(y), by Newton's method on the rows that are independent at q; None if they do not close."""
    model, columns = n.mech.model, n.mech.column_scale
    w, last = np.zeros(n.V1.shape[1]), np.inf
    for _ in range(WALK_STRONG_STEPS):
        d = n.Z @ y + n.V1 @ w
        x = pin.normalize(model, pin.integrate(model, n.q, columns * d))
        G, error = scaled_jacobian(n.mech, x, n.t, n.rows)
        D = pin.dIntegrate(model, n.q, columns * d, pin.ArgumentPosition.ARG1)
        G = G @ (D * columns / columns[:, None])
        size = largest(n.U1.T @ error)
        A = n.U1.T @ G @ n.V1
        if size <= ROUNDING or (size <= ALLOWANCE * n.rounding and size > 0.5 * last):
            break
        if not np.isfinite(size) or size > 1e3:
            return None
        step = least_squares(A, -n.U1.T @ error)
        w, last = w + step * min(1.0, 0.5 / max(float(np.linalg.norm(step)), 0.5)), size
    if size > OPEN_STILL:
        return None
    if not slope or not n.U2.shape[1]:
        return ContinuationPlace(x, y, n.U2.T @ error, np.zeros((n.U2.shape[1], n.dof)))
    follows = least_squares(A, n.U1.T @ G @ n.Z) if w.size else np.zeros((0, n.dof))
    return ContinuationPlace(x, y, n.U2.T @ error, n.U2.T @ G @ (n.Z - n.V1 @ follows))


def followed(n: Neighbourhood, y: Vector, held: Vector | None = None) -> ContinuationPlace | None:
    """The closed configuration next to y: f = 0 by Newton's method; None if it stays open.

    It may be q again. It is no farther from y than q is: a farther one is not next to q. With
    `held`, a unit vector, its component along it is that of y.
    """
    at, farthest = place(n, y), 1.01 * float(np.linalg.norm(y))
    for _ in range(WALK_STEPS):
        if at is None or _closed(n, at):
            return at
        slope = at.slope if held is None else at.slope - np.outer(at.slope @ held, held)
        step = least_squares(slope, -at.f, rcond=WALK_FLAT)
        step *= min(
            1.0, 0.5 * float(np.linalg.norm(at.y)) / max(float(np.linalg.norm(step)), 1e-300)
        )
        for part in (1.0, 0.5, 0.25, 0.1, 0.01):
            if np.linalg.norm(at.y + part * step - y) > farthest:
                continue
            new = place(n, at.y + part * step)
            if new is not None and np.linalg.norm(new.f) < (1 - 0.1 * part) * np.linalg.norm(at.f):
                at = new
                break
        else:
            break
    return at if at is not None and _closed(n, at, ALLOWANCE) else None


def _closed(n: Neighbourhood, at: ContinuationPlace, times: float = 1.0) -> bool:
    weak = n.weak * float(np.linalg.norm(at.y))
    return largest(at.f) <= times * n.rounding + weak


def around(
    n: Neighbourhood, count: int = 6, seed: int = 0, reach: float = WALK_REACH
) -> list[ContinuationPlace]:
    """Closed configurations around q, on every path through it that was found.

    Random steps, forwards and backwards, that are closed again. If none of them moved along some
    direction, a path may cross there nevertheless: if f is quadratic, Newton's method shrinks a
    step back to q. Along these directions the length is prescribed. Empty for a rigid structure.
    """
    k = n.dof
    if k == 0:
        return []
    rng = np.random.default_rng(seed)
    ways = reach * np.clip(rng.normal(size=(count, k)), -2.0, 2.0)
    found, left = list[ContinuationPlace](), list[Vector]()
    both = np.concatenate([ways, -ways])
    for way in both:
        at = followed(n, way)
        left.append(way if at is None else way - at.y)
        if at is not None and _went(at, way):
            found.append(at)
    share = least_squares(both, np.array(left), rcond=1e-3)  # remaining fraction of each direction
    _, sizes, vt = np.linalg.svd(share)
    never = vt[sizes > 0.5].T
    for way in _mixed(never, rng):
        at = followed(n, reach * way, held=way)
        if at is not None and _went(at, reach * way):
            found.append(at)
    return found


def _went(at: ContinuationPlace, way: Vector) -> bool:
    return float(np.linalg.norm(at.y)) > 0.1 * float(np.linalg.norm(way))


def _mixed(never: Array, rng: np.random.Generator) -> list[Vector]:
    """Some of these directions and of their combinations, with both signs."""
    s = never.shape[1]
    if s == 0:
        return []
    mixed = rng.normal(size=(s, WALK_MIXTURES if s > 1 else 0))
    ways = never @ np.column_stack([np.eye(s)[:, :3], mixed / np.linalg.norm(mixed, axis=0)])
    return [*ways.T, *-ways.T]
