"""The reduced nonlinear dynamics of a mechanism, and their derivatives by differences.

x = (y, yd): y the steps of the independent coordinates from a point, closed by Newton's method of
its own; f(x) = dx/dt. Nothing of this uses the linear models that it is to judge.

Derivatives by C. J. F. Ridders, "Accurate computation of F'(x) and F'(x) F''(x)", Advances in
Engineering Software 4 (1982): central differences of halved steps, extrapolated, with an estimate
of what is left. The first step is shortened until that is small: next to a singular configuration,
or where friction sets in within little, a long one does not resolve what is there.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.linalg import expm

import holoctl as hc
from holoctl.tree.lie_bracket import adjoint_velocity

RESOLVED = 1e-9
"""Estimate of the error, relative, at which a derivative is taken."""


class Reduced:
    """About a closed point; `along` as in `hc.linearize`."""

    def __init__(self, mech, part, q, v, t=0.0, along="fixed"):
        self.mech, self.part, self.q, self.v, self.t = mech, part, q, v, t
        self.along = along
        at = hc.project(mech, q, np.zeros(mech.nv), "split", partition=part, t=t, t_stab=False)
        self.tangent = at.gamma

    def state(self, x):
        """The closed (q, v) of x."""
        mech, part = self.mech, self.part
        n = part.independent.size
        step = self.tangent @ x[:n]
        dep, keep = part.dependent, part.rows
        for _ in range(30):
            q = pin.integrate(mech.model, self.q, step)
            rows = hc.terms(mech, q, np.zeros(mech.nv), t=self.t, t_stab=False)
            if mech.chart is not None:
                break  # which moves q itself
            by_step = rows.jacobian @ pin.dIntegrate(mech.model, self.q, step)[1]
            error = mech.row_scale[keep] * rows.error[keep]
            if np.abs(error).max(initial=0.0) < 1e-15:
                break
            move = np.linalg.solve(mech.row_scale[keep, None] * by_step[np.ix_(keep, dep)], error)
            step[dep] -= move
            if np.abs(move / mech.column_scale[dep]).max(initial=0.0) < 1e-15:
                break
        q = pin.integrate(mech.model, self.q, step)
        P = hc.project(mech, q, np.zeros(mech.nv), "split", partition=part, t=self.t, t_stab=False)
        return P.q, P.gamma @ x[n:] + P.v_t

    def f(self, x, u):
        """dx/dt."""
        mech, part = self.mech, self.part
        q, v = self.state(x)
        a = hc.forward_dynamics(mech, q, v, mech.B @ u, partition=part, t=self.t).a
        ad = adjoint_velocity(mech.model, pin.difference(mech.model, self.q, q))
        if self.along == "motion":
            v = v - expm(-ad) @ self.v  # less the motion of the reference, seen from here
        yd = v + ad @ (v / 2.0 + ad @ (v / 12.0 - ad @ ad @ (v - ad @ ad @ v / 42.0) / 720.0))
        return np.concatenate([yd[part.independent], a[part.independent]])

    @property
    def point(self):
        """x of the point itself."""
        n = self.part.independent.size
        return np.concatenate([np.zeros(n), self.v[self.part.independent]])

    def derivatives(self, u, h=0.02):
        """A, B, and the largest estimate of the error of a column of A, as a share of A."""
        columns = self.along_states(lambda x: self.f(x, u), h)
        A = np.array([x for x, _ in columns]).T
        n, size = len(A), max(1.0, np.abs(A).max())
        B = np.array([
            self.f(self.point, u + e) - self.f(self.point, u) for e in np.eye(self.mech.nu)
        ]).reshape(self.mech.nu, n).T  # fmt: skip
        return A, B, max(off for _, off in columns) / size

    def along_states(self, f, h=0.02):
        """(df/dx_i, estimate of its error) for each state."""
        n = self.part.independent.size
        unit = np.tile(1.0 / np.abs(self.tangent / self.mech.column_scale[:, None]).max(0), 2)
        return [
            resolved(lambda s, e=e: f(self.point + s * e), h * unit[i])
            for i, e in enumerate(np.eye(2 * n))
        ]


def resolved(f, h):
    """f'(0) by the longest first step that resolves it, and an estimate of the error."""
    best, least = None, np.inf
    for shorter in (1.0, 0.1, 0.01, 1e-3):
        found, off = ridders(f, h * shorter)
        if off < least:
            best, least = found, off
        if off <= RESOLVED * max(1.0, np.abs(found).max()):
            break
    return best, least


def ridders(f, h, levels=5):
    """f'(0), and how far the extrapolations next to it are off it."""
    table, best, least = [], None, np.inf
    for k in range(levels):
        row = [(f(h) - f(-h)) / (2.0 * h)]
        for j in range(1, k + 1):
            row.append(row[-1] + (row[-1] - table[-1][j - 1]) / (4.0**j - 1.0))
            off = max(np.abs(row[-1] - x).max() for x in (row[-2], table[-1][j - 1]))
            if off <= least:
                best, least = row[-1], off
        table.append(row)
        h /= 2.0
    return best, least
