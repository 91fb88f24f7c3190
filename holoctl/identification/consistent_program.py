"""The nearest parameters that bodies can have: a convex program with matrix inequalities.

    minimise   |R p - r|^2 + strength D(p)        D the distance from the prior
    subject to J_b(p) = L_b (1 + Z_b) L_b',  1 + Z_b >= margin,   friction, rotors, springs >= 0

D is ``|Z|^2`` ("pullback": the squared distance in the metric of the prior), or ``tr Z - log det(1
+ Z)`` ("entropic"), summed over bodies; of other parameters ``|x|^2``, relative to their scale. The
equations are compressed by QR before, so the program does not grow with the samples.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve_triangular

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InconsistentError
from holoctl.base.linalg import least_squares, null_space_by_svd
from holoctl.identification.columns import BODY_PARAMETERS
from holoctl.identification.noise import compressed
from holoctl.identification.parameters import Parameters
from holoctl.identification.pseudo_inertia import (
    floored_factor,
    in_basis,
    pseudo_inertia,
    relative_parameters,
    symmetric_basis,
)

__all__ = ["MARGIN", "Consistent", "body_parameters", "consistent_program"]

MARGIN = 1e-4
"""Least eigenvalue of 1 + Z: second moments of a body are at least this times those of the prior in
every direction, which also absorbs what a solver leaves of the inequality."""

BINDS = 1e-2
"""An inequality of a body binds if the least eigenvalue of 1 + Z is below this."""

AT_BOUND = 1e-4
"""Likewise for a bound of one parameter, relative to its scale."""

WEAKEST = 0.1
"""The scale of a parameter that is no body is its prior value, at least this part of what would
explain all measured efforts by itself."""

_ONE = in_basis(np.eye(4))


@dataclass(frozen=True)
class Consistent:
    """The program of a model and a prior: ``p = centre + S x``, x = (z of bodies, then others).

    Attributes
    ----------
    bodies : tuple of str
        Those with unknown parameters; of tied ones the first.
    factors : (n, 4, 4) array
        L of each.
    centre : (p,) array
        The prior, pseudo-inertias floored.
    S : (p, x) array
    lower : (x,) array
    shortest, free : (x,) and (x, w) array
        x = shortest + free w: parameters that are known of a body with unknown ones.
    """

    model: Parameters
    bodies: tuple[str, ...]
    factors: Array
    centre: Vector
    S: Array
    lower: Vector
    shortest: Vector
    free: Array

    def solve(self, Rr: Array, strength: float, method: str) -> Vector:
        """p for compressed equations ``Rr`` (rows, p + 1): the last column is r.

        Raises
        ------
        InconsistentError
            If the solver ends without a solution, or with one that no bodies have.
        """
        A = Rr[:, :-1] @ self.S
        b = Rr[:, -1] - Rr[:, :-1] @ (self.centre + self.S @ self.shortest)
        A = A @ self.free
        w, R = self._unbounded(A, b, strength if method == "pullback" else 0.5 * strength)
        if method == "entropic" or not self._inside(self.shortest + self.free @ w):
            w = self._bounded(A, b, w, R, strength, method)
        x = self.shortest + self.free @ w
        worst = min(self.eigenvalues(x), default=1.0)
        if not worst > 0.5 * MARGIN:
            raise InconsistentError(
                f"{self.model.mech.name}: the fit is not physically consistent: the solver left "
                f"an eigenvalue of {worst:.2g} relative to the prior; give a larger strength",
                residual=MARGIN - worst,
            )
        above = np.where(self.lower > -np.inf, np.maximum(x, self.lower), x)
        found: Vector = self.centre + self.S @ above
        return np.maximum(found, self.model.lower)

    def _unbounded(self, A: Array, b: Vector, strength: float) -> tuple[Vector, Array]:
        """w* and R with ``|A w - b|^2 + strength |w|^2 = |R (w - w*)|^2 + constant``."""
        n = A.shape[1]
        below = np.eye(n, n + 1) * strength**0.5
        R = compressed(np.vstack([np.column_stack([A, b]), below]))[:n]
        w: Vector = solve_triangular(R[:, :n], R[:, n])
        return w, R[:, :n]

    def eigenvalues(self, x: Vector) -> Vector:
        """The least eigenvalue of 1 + Z of each body."""
        z = x[: 10 * len(self.bodies)].reshape(-1, 10)
        Z = np.einsum("bn,nij->bij", z + _ONE, symmetric_basis())
        return np.linalg.eigvalsh(Z)[:, 0] if len(z) else np.zeros(0)

    def _inside(self, x: Vector) -> bool:
        """Whether x satisfies all inequalities: it is the solution then, if it is without them."""
        least = float(self.eigenvalues(x).min(initial=1.0))
        return bool((x >= self.lower).all() and least >= MARGIN)

    def _bounded(
        self, A: Array, b: Vector, near: Vector, R: Array, strength: float, method: str
    ) -> Vector:
        """The solution with inequalities, by Clarabel, in u = R (w - near) / size: the cost is
        ``|u|^2``, or to second order with log det. The prior satisfies all, so |u| is between 0
        and that of the prior; with precise data that is far from 1."""
        far = max(1.0, float(np.linalg.norm(R @ near)))
        back, status = solve_triangular(R, np.eye(len(R))), ""
        for size in (1.0, far**0.5, far):
            u, status = self._by_clarabel(
                A @ back, (b - A @ near) / size, size * (self.free @ back),
                self.shortest + self.free @ near, strength / size**2, method,
            )  # fmt: skip
            if u is not None:
                found: Vector = near + size * (back @ u)
                return found
        why = "give a larger strength"
        if status == "infeasible":
            why = "known parameters leave no bodies, or only points and rods without extent"
        raise InconsistentError(
            f"{self.model.mech.name}: Clarabel found no physically consistent parameters "
            f"({status}); {why}"
        )

    def _by_clarabel(
        self, A: Array, gap: Vector, back: Array, start: Vector, strength: float, method: str
    ) -> tuple[Vector | None, str]:
        """u and the status for x = start + back u, and for log det also ``|A u - gap|^2``."""
        cp: Any = import_module("cvxpy")
        u = cp.Variable(back.shape[1])
        x = start + back @ u
        E = symmetric_basis().reshape(10, 16).T
        n, rules = 10 * len(self.bodies), list[Any]()
        cost = cp.sum_squares(u) if method == "pullback" else cp.sum_squares(A @ u - gap)
        for i in range(len(self.bodies)):
            M = cp.Variable((4, 4), symmetric=True)
            rules += [cp.vec(M, order="F") == E @ (x[10 * i : 10 * i + 10] + _ONE)]
            rules += [MARGIN * np.eye(4) << M]
            if method == "entropic":
                cost += strength * (cp.trace(M) - 4.0 - cp.log_det(M))
        if method == "entropic" and len(self.lower) > n:
            cost += 0.5 * strength * cp.sum_squares(x[n:])
        at = np.flatnonzero(self.lower > -np.inf)
        if at.size:
            rules.append(x[at] >= self.lower[at])
        problem = cp.Problem(cp.Minimize(cost), rules)
        with warnings.catch_warnings(), suppress(cp.SolverError):
            warnings.simplefilter("ignore")  # the status shows an inaccurate solution
            problem.solve(solver=cp.CLARABEL)
        good = problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE)
        return (u.value if good else None), str(problem.status)

    def active(self, p: Vector) -> tuple[str, ...]:
        """The bodies and parameters whose bounds bind at p."""
        tens = body_parameters(self.model, p)
        bodies = [
            body
            for body, L in zip(self.bodies, self.factors, strict=True)
            if eigh(pseudo_inertia(tens[body]), L @ L.T, eigvals_only=True)[0] < BINDS
        ]
        scale = self.S.max(axis=1)
        model = self.model
        near = (model.lower > -np.inf) & (p - model.lower <= AT_BOUND * scale)
        return (*bodies, *(model.names[i] for i in np.flatnonzero(near)))


def consistent_program(model: Parameters, prior: Vector, effect: Vector) -> Consistent:
    """The program about a prior p (p,).

    Parameters
    ----------
    effect : (p,) array
        For each parameter the value that explains all measured efforts by itself; inf for those
        without influence.
    """
    at, tens = {name: i for i, name in enumerate(model.names)}, body_parameters(model, prior)
    bodies = [x for x in tens if any(f"{x}.{w}" in at for w in BODY_PARAMETERS)]
    of_bodies = {f"{x}.{w}" for x in bodies for w in BODY_PARAMETERS}
    others = [i for i, name in enumerate(model.names) if name not in of_bodies]
    masses = [ten[0] for ten in tens.values() if ten[0] > 0.0]
    mass = float(np.mean(masses)) if masses else 1.0
    length = float(model.mech.column_scale.max())
    n = 10 * len(bodies)
    centre, S = np.array(prior, dtype=float), np.zeros((len(at), n + len(others)))
    rows, wanted, factors = list[Vector](), list[float](), list[Any]()
    for b, body in enumerate(bodies):
        L = floored_factor(tens[body], mass, length)
        A = relative_parameters(L)
        start = A @ _ONE
        factors.append(L)
        for row, value, word, known in zip(A, start, BODY_PARAMETERS, tens[body], strict=True):
            i = at.get(f"{body}.{word}")
            if i is not None:
                centre[i] = value
                S[i, 10 * b : 10 * b + 10] = row
            else:
                full = np.zeros(n + len(others))
                full[10 * b : 10 * b + 10] = row
                size = float(np.linalg.norm(row))
                rows.append(full / size)
                wanted.append((known - value) / size)
    for k, i in enumerate(others):
        usual = WEAKEST * effect[i] if np.isfinite(effect[i]) else 0.0
        S[i, n + k] = max(abs(prior[i]), usual) or 1.0
    lower = np.full(n + len(others), -np.inf)
    for k, i in enumerate(others):
        lower[n + k] = (model.lower[i] - centre[i]) / S[i, n + k]
    shortest, free = np.zeros(S.shape[1]), np.eye(S.shape[1])
    if rows:
        E = np.array(rows)
        shortest = least_squares(E, np.array(wanted))
        free = null_space_by_svd(E, len(rows))[3]
    return Consistent(
        model, tuple(bodies), np.array(factors).reshape(-1, 4, 4), centre, S, lower, shortest, free
    )


def body_parameters(model: Parameters, p: Vector) -> dict[str, Vector]:
    """The ten parameters of each body at p."""
    theta = dict(zip(model.every, model.theta(p), strict=True))
    return {
        body: np.array([theta[f"{body}.{word}"] for word in BODY_PARAMETERS])
        for body in model._all_bodies()
    }
