"""Clusters of loops as expressions, for the recursion of laws/clusters.py.

Linear parts of wrenches, accelerations and S stand first; R and p are those of `Step`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from holoctl.base.tolerances import REDUCED
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.elimination import factored
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.matrices import column, scalars
from holoctl.codegen.tree import Step, TreeSteps, constant
from holoctl.codegen.tree_dynamics import composite_wrenches, fill_column, rotor_inertia, symmetric
from holoctl.laws.clusters import Cluster, add_to, clusters_of

__all__ = ["SymbolicClusters", "loop_clusters"]


def loop_clusters(E: Expressions) -> list[Cluster]:
    """The clusters of the kept rows; bodies are the steps of the tree."""
    steps = E.tree.steps
    of = {c.coordinate: i for i, s in enumerate(steps) for c in s.columns}
    return clusters_of([s.parent for s in steps], [[of[k] for k in row] for row in E.rows.jacobian])


@dataclass(frozen=True, eq=False)
class SymbolicClusters:
    """`laws.clusters.ClusterTree` as expressions.

    Attributes
    ----------
    tree : TreeSteps
    clusters : list of Cluster
    basis : (nv, k) expressions
        gamma; a column moves one cluster alone.
    guard : list of expressions
        Of the inertias that were computed; each is below one if they can be trusted.
    """

    tree: TreeSteps
    clusters: list[Cluster]
    basis: SX
    guard: list[SX] = field(default_factory=list)

    def inertia(self, c: Cluster, yields: dict[int, SX]) -> tuple[Callable[[SX], SX], SX, SX]:
        """``b -> D^-1 b``, F' (k, 6), and the yields of the bodies as one of the base (6, 6)."""
        ca, (at, gamma), (M, P) = casadi_module(), self._motions[c], self._rigid
        C, Q = ca.SX(*M.shape), ca.SX(*P.shape)
        felt = {i: yields[i] for i in c.bodies if i in yields}
        for i in reversed(c.bodies):
            if i not in felt:
                continue
            step, taken = self.tree.steps[i], felt[i] @ _subspace(self.tree.steps[i])
            for j, x in enumerate(step.columns):
                wrench = taken[:3, j], taken[3:, j]
                wrench = fill_column(C, self.tree, i, x.coordinate, *wrench, c.base)
                Q[:, x.coordinate] = ca.vertcat(*wrench)
            add_to(felt, step.parent, _yield_on_parent(step, felt[i]))
        W = gamma.T @ M[at, at] @ gamma
        factors = factored(W - gamma.T @ C[at, at] @ gamma, REDUCED, scalars(ca.diag(W)))
        self.guard.extend(factors.guard)

        def solve(b: SX) -> SX:
            return ca.horzcat(*(column(factors.solve(scalars(x))) for x in ca.horzsplit(b)))

        return solve, gamma.T @ (P[:, at] - Q[:, at]).T, felt.get(c.base, ca.SX(6, 6))

    def gathered(self, c: Cluster, w: SX, pushes: dict[int, SX]) -> tuple[SX, SX]:
        """r (k,), and p (6,) on the base."""
        ca, (at, gamma) = casadi_module(), self._motions[c]
        felt = {i: pushes[i] for i in c.bodies if i in pushes}
        efforts = self._per_body(c, w[at])
        for i in reversed(c.bodies):
            if i in felt:
                step = self.tree.steps[i]
                efforts[i] += _subspace(step).T @ felt[i]
                add_to(felt, step.parent, _wrench_on_parent(step, felt[i]))
        return gamma.T @ ca.vertcat(*efforts.values()), felt.get(c.base, ca.SX(6, 1))

    def spread(self, c: Cluster, x: SX, accelerations: dict[int, SX], a: SX) -> None:
        """Fill in what x (k,) accelerates: coordinates a (nv,), and bodies."""
        at, gamma = self._motions[c]
        a[at] = gamma @ x
        for i, own in self._per_body(c, a[at]).items():
            step = self.tree.steps[i]
            carried = _acceleration_on(step, accelerations[step.parent])
            accelerations[i] = carried + _subspace(step) @ own

    def zeros(self, n: int) -> SX:
        """A column of zeros."""
        return casadi_module().SX.zeros(n)

    @cached_property
    def _motions(self) -> dict[Cluster, tuple[list[int], SX]]:
        """The coordinates of each cluster, and gamma of its motions there."""
        found = {}
        for c in self.clusters:
            at = [x.coordinate for i in c.bodies for x in self.tree.steps[i].columns]
            rows = self.basis[at, :]
            found[c] = at, rows[:, [j for j in range(rows.shape[1]) if rows[:, j].nnz()]]
        return found

    @cached_property
    def _rigid(self) -> tuple[SX, SX]:
        """M within the clusters (nv, nv), and the wrench that unit acceleration of each coordinate
        takes at the base (6, nv), with all bodies that a body carries fixed to it."""
        ca, nv = casadi_module(), self.tree.nv
        M, P = ca.SX(nv, nv), ca.SX(6, nv)
        base = {i: c.base for c in self.clusters for i in c.bodies}
        for i, k, f, m in composite_wrenches(self.tree):
            P[:, k] = ca.vertcat(*fill_column(M, self.tree, i, k, f, m, base[i]))
        return M + rotor_inertia(self.tree), P

    def _per_body(self, c: Cluster, x: SX) -> dict[int, SX]:
        """The entries of a cluster's coordinates, body by body."""
        counts = [len(self.tree.steps[i].columns) for i in c.bodies]
        parts = casadi_module().vertsplit(x, np.cumsum([0, *counts]).tolist())
        return dict(zip(c.bodies, parts, strict=True))


def _subspace(s: Step) -> SX:
    """S (6, n) of a step."""
    return constant(np.array([[*c.linear, *c.angular] for c in s.columns]).T)


def _wrench_on_parent(s: Step, f: SX) -> SX:
    """A wrench on a step as one on its parent."""
    ca, force = casadi_module(), s.R @ f[:3]
    return ca.vertcat(force, s.R @ f[3:] + ca.cross(s.p, force))


def _acceleration_on(s: Step, a: SX) -> SX:
    """The acceleration of a step that is fixed to its parent, which has a."""
    ca = casadi_module()
    return ca.vertcat(s.R.T @ (a[:3] + ca.cross(a[3:], s.p)), s.R.T @ a[3:])


def _yield_on_parent(s: Step, C: SX) -> SX:
    """What takes accelerations of a step to wrenches on it, symmetric, as that of its parent."""
    ca, P = casadi_module(), casadi_module().skew(s.p)
    linear, mixed, angular = (s.R @ x @ s.R.T for x in (C[:3, :3], C[:3, 3:], C[3:, 3:]))
    linear = symmetric(linear)
    moved = mixed - linear @ P
    angular = symmetric(angular - mixed.T @ P + P @ moved)
    return ca.blockcat([[linear, moved], [moved.T, angular]])
