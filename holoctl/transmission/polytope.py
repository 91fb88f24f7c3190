"""Sets of efforts and rates of joints that the limits of motors allow: convex polytopes.

    { J' u : lower <= u <= upper }        a zonotope about J' (lower + upper) / 2
    { yd : lower <= J yd <= upper }

The normals of the facets of a zonotope of rank r are the vectors that are perpendicular to r - 1 of
its generators. Directions without width become equalities.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

from holoctl.base.checks import Array, Vector, counted, freeze, listing, unpickled, vector
from holoctl.base.errors import InputError, LimitError

__all__ = ["Polytope", "between", "zonotope"]

FLAT = 1e-9
"""A singular value of generators, relative to the largest, that counts as zero."""

MOST_FACETS = 100_000
"""The largest number of pairs of facets that is enumerated."""


@dataclass(frozen=True, eq=False)
class Polytope:
    """A convex set of efforts or rates of the serial joints: ``A x <= b``, ``E x = d``.

    Attributes
    ----------
    joints : tuple of p str
    A, b : (m, p) and (m,) arrays
        Halfspaces; the rows of A are of norm one.
    E, d : (e, p) and (e,) arrays
        Equalities, for directions in which the set has no width; rows of norm one.
    center : (p,) array
        A point inside.

    See Also
    --------
    Transmission : its ``effort_polytope`` and ``rate_polytope`` return it.
    Limits : limits of motors and joints.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("ankle"))
    >>> ankle = hc.Transmission(mech, ["ankle_pitch", "ankle_roll"])
    >>> efforts = ankle.effort_polytope([0.0, 0.0])
    >>> efforts.contains([80.0, 0.0]), efforts.contains([80.0, 40.0])
    (True, False)
    """

    joints: tuple[str, ...]
    A: Array
    b: Vector
    E: Array
    d: Vector
    center: Vector

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        flat = f", {counted(len(self.d), 'equality', 'equalities')}" if self.d.size else ""
        return (
            f"<Polytope over {listing(self.joints, 6)}: {counted(len(self.b), 'halfspace')}{flat}>"
        )

    def contains(self, x: Any, tolerance: float = 1e-9) -> bool:
        """Whether a point (p,) is in the set, up to a tolerance relative to its size.

        Raises
        ------
        InputError
            For a wrong shape, or numbers that are not finite.
        """
        x = vector("x", x, self.center.size, f"a point of {listing(self.joints)}")
        size = tolerance * (1.0 + float(np.abs(self.b).max(initial=0.0)) + float(np.abs(x).max()))
        inside = (self.A @ x <= self.b + size).all() and (abs(self.E @ x - self.d) <= size).all()
        return bool(inside)

    @property
    def vertices(self) -> Array:
        """The corners (n, p).

        Raises
        ------
        LimitError
            If the set is not bounded.
        """
        N = _along(self.E, self.center.size)  # x = center + N z
        A, b = self.A @ N, self.b - self.A @ self.center
        if N.shape[1] == 0:
            return self.center[None].copy()
        if N.shape[1] == 1:
            a = A[:, 0]
            high = (b[a > 0.0] / a[a > 0.0]).min(initial=np.inf)
            low = (b[a < 0.0] / a[a < 0.0]).max(initial=-np.inf)
            z = np.array([[low], [high]])
        else:
            try:
                found = HalfspaceIntersection(np.column_stack([A, -b]), np.zeros(N.shape[1]))
                z = found.intersections
                z = z[ConvexHull(z).vertices]
            except QhullError:
                z = np.full((1, N.shape[1]), np.inf)
        if not np.isfinite(z).all():
            raise LimitError(
                f"the set is not bounded: some motion of {listing(self.joints)} is not limited",
                names=self.joints,
            )
        return self.center + z @ N.T

    @property
    def volume(self) -> float:
        """Its volume: a length, area or volume in the units of the joints; 0 if it is flat."""
        if self.d.size:
            return 0.0
        x = self.vertices
        return float(np.ptp(x)) if x.shape[1] == 1 else float(ConvexHull(x).volume)

    def box(self) -> tuple[Vector, Vector]:
        """Lower and upper bounds (p,) of the axis-aligned box of largest volume inside.

        Raises
        ------
        LimitError
            If the set is flat or not bounded.
        """
        cp: Any = import_module("cvxpy")
        p = self._solid().center.size
        middle, half = cp.Variable(p), cp.Variable(p, pos=True)
        inside = self.A @ middle + np.abs(self.A) @ half <= self.b
        _solve(cp, cp.Maximize(cp.sum(cp.log(half))), [inside])
        center, size = np.array(middle.value), np.array(half.value)
        return center - size, center + size

    def ellipsoid(self) -> tuple[Vector, Array]:
        """Centre (p,) and shape (p, p) of the ellipsoid of largest volume inside: ``center + shape
        z`` with ``|z| <= 1``; the shape is symmetric.

        Raises
        ------
        LimitError
            If the set is flat or not bounded.
        """
        cp: Any = import_module("cvxpy")
        p = self._solid().center.size
        middle, shape = cp.Variable(p), cp.Variable((p, p), PSD=True)
        inside = [cp.norm(shape @ a) + a @ middle <= b for a, b in zip(self.A, self.b, strict=True)]
        _solve(cp, cp.Maximize(cp.log_det(shape)), inside)
        return np.array(middle.value), np.array(shape.value)

    def _solid(self) -> Polytope:
        if self.d.size:
            raise LimitError(
                "the set is flat: its equalities E x = d leave no box or ellipsoid of full "
                f"dimension in {listing(self.joints)}",
                names=self.joints,
            )
        _ = self.vertices  # bounded
        return self


def zonotope(joints: tuple[str, ...], J: Array, lower: Vector, upper: Vector) -> Polytope:
    """``{ J' u : lower <= u <= upper }``, with J (nu, p) and finite bounds (nu,)."""
    center, generators = J.T @ (0.5 * (lower + upper)), J.T * (0.5 * (upper - lower))
    U, s, _ = np.linalg.svd(generators)
    rank = int(np.count_nonzero(s > FLAT * max(float(s.max(initial=0.0)), 1e-300)))
    basis, E = U[:, :rank], U[:, rank:].T
    if not rank:
        return Polytope(joints, np.zeros((0, len(joints))), np.zeros(0), E, E @ center, center)
    inside = basis.T @ generators  # (rank, nu)
    used = np.flatnonzero(np.linalg.norm(inside, axis=0) > FLAT * s[0])
    if comb(used.size, rank - 1) > MOST_FACETS:
        raise InputError(
            f"a set of {used.size} motors over {rank} joints has too many facets to enumerate"
        )
    normals = list[Vector]()
    for which in combinations(used, rank - 1):
        _, size, vt = np.linalg.svd(inside[:, which].T, full_matrices=True)
        if rank == 1 or size[-1] > FLAT * s[0]:
            n = vt[-1] if rank > 1 else np.ones(1)
            if not any(np.linalg.norm(n - (n @ m) * m) < FLAT for m in normals):
                normals.append(n)
    A = np.array([sign * n for n in normals for sign in (1.0, -1.0)]) @ basis.T
    return Polytope(
        joints, A, A @ center + np.abs(A @ generators).sum(axis=1), E, E @ center, center
    )


def between(joints: tuple[str, ...], J: Array, lower: Vector, upper: Vector) -> Polytope:
    """``{ yd : lower <= J yd <= upper }``, with J (nu, p) and bounds (nu,) about zero."""
    size = np.linalg.norm(J, axis=1)
    rows, bounds = list[Vector](), list[float]()
    for row, n, low, high in zip(J, size, lower, upper, strict=True):
        if n <= FLAT * size.max(initial=0.0):
            continue
        for sign, bound in ((1.0, high), (-1.0, -low)):
            if np.isfinite(bound):
                rows.append(sign * row / n)
                bounds.append(float(bound / n))
    p = len(joints)
    A = np.array(rows).reshape(-1, p)
    return Polytope(joints, A, np.array(bounds), np.zeros((0, p)), np.zeros(0), np.zeros(p))


def _along(E: Array, p: int) -> Array:
    """An orthonormal basis of ``E x = 0``, (p, p - e)."""
    if not E.size:
        return np.eye(p)
    _, _, vt = np.linalg.svd(E)
    return vt[E.shape[0] :].T


def _solve(cp: Any, objective: Any, constraints: list[Any]) -> None:
    problem = cp.Problem(objective, constraints)
    problem.solve(solver="CLARABEL")
    if problem.status != "optimal":
        raise LimitError(f"no largest set inside was found: the solver ended with {problem.status}")
