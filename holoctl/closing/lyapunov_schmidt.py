"""Short walks along a mechanism: closed configurations beside a closed one.

With the singular vectors of G at q, rows and coordinates part in two (Lyapunov and Schmidt):

    U1^T phi(x) = 0    determines the coordinates V1^T d, for given y = Z^T d:  x = x(y)
    f(y) = U2^T phi(x(y)) = 0    is what is left; f and its slope vanish at y = 0

where d is the way from q, G Z = 0. Redundant rows leave f zero everywhere: every y is closed. Where
f is not zero q is singular or shaky, and f tells which ways go on, to any order: it is small, and
what must hold is not mixed into it.
Reference: M. Golubitsky and D. Schaeffer, Singularities and Groups in Bifurcation Theory, vol. 1,
chapter VII.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.linalg import largest, least_squares, null_space_by_svd, singular_values
from holoctl.base.tolerances import ALLOWANCE, LATENT_ROOT, ROUNDING
from holoctl.closing.rank import manifold_rank, scaled_jacobian
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.scales import sizes
from holoctl.tree.frozen_model import plain

__all__ = ["ContinuationPlace", "Neighbourhood", "around", "followed", "neighbourhood"]

WALK_MIXTURES = 9
"""So many random mixtures of directions that no step went are tried, with their length held."""

MOTION_REACH = 0.01  # scaled
"""Scaled length of the steps that tell whether a motion goes on."""

WALK_REACH = 0.1  # scaled
"""Scaled length, for each direction, of steps to other configurations: a term of fourth order is
then 1e-4."""

OPEN_STILL = 1e-9  # scaled
"""A configuration that is open by more was not closed by a walk of the doctor."""

WALK_ROUNDING = 1e-14  # scaled
"""What is left open by less is rounding, on a walk of the doctor near the origin."""

WALK_STRONG_STEPS, WALK_STEPS, WALK_FLAT = 20, 60, 1e-3  # counts; -
"""Newton steps of a walk: for the rows that act where it starts, and for the others; slopes of
these below this share of the largest ask for no step."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """A closed q, and the coordinates y (k,) around it.

    `rows` are those that are asked to close: all, where it is None. f counts as zero up to
    `rounding`, and to `weak` for each unit of y: rows too weak to count for the rank. Steps of
    `reach` tell whether a way goes on: farther where geometry is rounded.
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
        """k, the number of motions to first order."""
        return int(self.Z.shape[1])


@dataclass(frozen=True, eq=False)
class ContinuationPlace:
    """x(y), what is left open there, f (p,), and its slope by y (p, k)."""

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
    """Part rows and coordinates at a closed q, at a rank that is known or decided here.

    `weak` is the largest singular value that does not count; not this one where q was reached on
    a walk, for there it may be what is left of a term of high order.
    """
    G, error = scaled_jacobian(mech, q, t, rows)
    r = manifold_rank(G, largest(error), tolerance) if rank is None else rank
    U1, _, V1, Z = null_space_by_svd(G, r)
    U2 = null_space_by_svd(U1.T, r)[3] if r else np.eye(G.shape[0])
    if weak is None:
        weak = largest(singular_values(G)[r:])
    rounding = max(WALK_ROUNDING * _reach(mech), ALLOWANCE * largest(error), tolerance / ALLOWANCE)
    reach = max(MOTION_REACH, LATENT_ROOT * float(np.sqrt(tolerance)))
    return Neighbourhood(mech, q, t, rows, U1, U2, V1, Z, rounding, 2.0 * weak, reach)


def _reach(mech: Mechanism) -> float:
    """How far from the origin it is, in units of its size: what rounding grows with."""
    placed = plain(mech.model).jointPlacements
    far = max(float(np.abs(placed[j].translation).max()) for j in range(1, mech.model.njoints))
    return 1.0 + far / sizes(mech.model, mech.reference, (), workspace(mech))[0]


def place(n: Neighbourhood, y: Vector, slope: bool = True) -> ContinuationPlace | None:
    """x(y), by Newton's method on the rows that act at q; None where they do not close."""
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
    """The closed configuration next to y: f = 0 by Newton's method; None where it stays open.

    It may be q again, and is no farther from y than q is: what is farther is not beside q. With
    `held`, a unit vector, it stays as far along it as y is.
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
    return largest(at.f) <= times * (n.rounding + weak)


def around(
    n: Neighbourhood, count: int = 6, seed: int = 0, reach: float = WALK_REACH
) -> list[ContinuationPlace]:
    """Closed configurations around q, on every path through it that was found.

    Random ways, forwards and back, that are closed again. Where none of them went along some
    direction, a path may cross there all the same: where f is quadratic, Newton's method shrinks
    a step back to q. Along these directions the length is held. Empty for what cannot move.
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
    share = least_squares(both, np.array(left), rcond=1e-3)  # of each direction, that was left
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
    """Some of these directions and of their mixtures, both ways."""
    s = never.shape[1]
    if s == 0:
        return []
    mixed = rng.normal(size=(s, WALK_MIXTURES if s > 1 else 0))
    ways = never @ np.column_stack([np.eye(s)[:, :3], mixed / np.linalg.norm(mixed, axis=0)])
    return [*ways.T, *-ways.T]
