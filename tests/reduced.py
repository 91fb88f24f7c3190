"""The reduced nonlinear dynamics of a mechanism, and their derivatives by Richardson's differences.

x = (y, yd): y the steps of the independent coordinates from a point, closed by Newton's method of
its own; f(x) = dx/dt. Nothing of this uses the linear models that it is to judge.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.linalg import expm

import holoctl as hc
from holoctl.tree.lie_bracket import adjoint_velocity


class Reduced:
    """About a closed point; `along` as in `hc.linearize`."""

    def __init__(self, mech, part, q, v, t=0.0, along="fixed"):
        self.mech, self.part, self.q, self.v, self.t = mech, part, q, v, t
        self.along = along

    def state(self, x):
        """The closed (q, v) of x."""
        mech, part = self.mech, self.part
        n = part.independent.size
        step = np.zeros(mech.nv)
        step[part.independent] = x[:n]
        dep, keep = part.dependent, part.rows
        for _ in range(30):
            q = pin.integrate(mech.model, self.q, step)
            T = hc.terms(mech, q, np.zeros(mech.nv), t=self.t, t_stab=False)
            by_step = T.jacobian @ pin.dIntegrate(mech.model, self.q, step)[1]
            error = mech.row_scale[keep] * T.error[keep]
            move = np.linalg.solve(mech.row_scale[keep, None] * by_step[np.ix_(keep, dep)], error)
            step[dep] -= move
            if np.abs(move).max(initial=0.0) < 1e-14:
                break
        q = pin.integrate(mech.model, self.q, step)
        P = hc.project(mech, q, np.zeros(mech.nv), "split", partition=part, t=self.t, t_stab=False)
        return q, P.gamma @ x[n:] + P.v_t

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

    def derivatives(self, u, x0=None, h=0.02, levels=5):
        """A and B."""
        n = self.part.independent.size
        x0 = np.concatenate([np.zeros(n), self.v[self.part.independent]]) if x0 is None else x0
        A = np.array([
            richardson(lambda s, e=e: self.f(x0 + s * e, u), h, levels) for e in np.eye(2 * n)
        ]).T  # fmt: skip
        B = np.array([
            self.f(x0, u + e) - self.f(x0, u) for e in np.eye(self.mech.nu)
        ]).reshape(self.mech.nu, 2 * n).T  # fmt: skip
        return A, B


def richardson(f, h, levels):
    """f'(0) by central differences of halved steps, extrapolated."""
    table = [[(f(h / 2**k) - f(-h / 2**k)) / (2.0 * h / 2**k)] for k in range(levels)]
    for j in range(1, levels):
        for k in range(j, levels):
            a, b = table[k][j - 1], table[k - 1][j - 1]
            table[k].append(a + (a - b) / (4.0**j - 1.0))
    return table[-1][-1]
