"""Motion and forces on contacts as affine functions of the motor efforts.

    W y + g = A u + J' w        J y = c        tasks T y = t

with a = N y + a0, W = N' M N, g = N' (M a0 + h - F - known efforts), A = N' B. In coordinates x =
L' y, where W = L L', the inertia is the identity (Gauss): rows marked * are times L^-T. With the
independent rows first, J*' = Q [R, R X; 0], and Q = [Q1 Q2],

    x = Q1 xi + Q2 z            R' xi = c               z = Q2' (A* u - g*)
    R (w1 + X w2) = xi + Q1' (g* - A* u)                w2 free: forces that balance each other

so that z and w1 are affine in the unknowns s = (u, w2), and the tasks in u alone:

    T* Q2 Q2' A* u = t - T* (Q1 xi - Q2 Q2' g*)

Reference: docs/derivations-control.md, "Unilateral contacts".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from holoctl.base.checks import Array, Vector
from holoctl.base.linalg import largest

__all__ = ["SAME_RANK", "ContactMotion", "ReducedTerms", "bilateral_unknowns", "contact_motion"]

SAME_RANK = 1e-9
"""A direction that changes rows by less, relative to the largest change, leaves them unchanged."""


class ReducedTerms(NamedTuple):
    """The equation of motion of k motions, m rows of contacts and n rows of tasks.

    Attributes
    ----------
    W, g, A : (k, k), (k,) and (k, nu) arrays
    J, c : (m, k) and (m,) arrays
    T, t : (n, k) and (n,) arrays
    """

    W: Array
    g: Vector
    A: Array
    J: Array
    c: Vector
    T: Array
    t: Vector


class ContactMotion(NamedTuple):
    """Motion, forces and tasks as functions of s = (u, w2).

    Attributes
    ----------
    L : (k, k) array
        The lower factor of W.
    x0, X : (k,) and (k, nu) arrays
        ``x = x0 + X u``.
    w0, Y : (m,) and (m, nu + free) arrays
        ``w = w0 + Y s``.
    tasks, right : (n, nu) and (n,) arrays
        The tasks are met where ``tasks u = right``.
    off : float
        How much dependent rows of contacts contradict each other, relative to their size.
    condition : float
        Condition number of the independent rows of contacts.
    """

    L: Array
    x0: Vector
    X: Array
    w0: Vector
    Y: Array
    tasks: Array
    right: Vector
    off: float
    condition: float

    def at(self, s: Vector) -> tuple[Vector, Vector]:
        """y and w."""
        x = self.x0 + self.X.dot(s[: self.X.shape[1]])
        return lapack.dtrtrs(self.L, x, lower=1, trans=1)[0], self.w0 + self.Y.dot(s)


def contact_motion(r: ReducedTerms) -> ContactMotion | None:
    """The functions of the head of this module; None where W is not positive definite."""
    k, nu, m = r.W.shape[0], r.A.shape[1], r.c.size
    L, info = lapack.dpotrf(r.W, lower=1)
    if info:
        return None
    columns = np.concatenate([r.J.T, r.A, r.T.T, r.g[:, None]], axis=1)
    columns, _ = lapack.dtrtrs(L, columns, lower=1)
    rows, rest = columns[:, :m], columns[:, m:]
    order, rank, R, tau = np.zeros(0, dtype=int), 0, np.zeros((k, 0)), np.zeros(0)
    if m:
        R, order, tau, _, _ = lapack.dgeqp3(rows)
        order, pivots = order - 1, np.abs(R.diagonal())
        rank = int((pivots > SAME_RANK * pivots[0]).sum())
    if rank:
        reflectors = np.asfortranarray(R[:, :rank]), tau[:rank]
        rest, _, _ = lapack.dormqr("L", "T", *reflectors, rest, 64 * rest.shape[1])
    A1, A2 = rest[:rank, :nu], rest[rank:, :nu]
    T1, T2 = rest[:rank, nu:-1], rest[rank:, nu:-1]
    g1, g2 = rest[:rank, -1], rest[rank:, -1]
    c, upper = r.c[order], R[:rank, :rank]
    xi, X_of_w = np.zeros(0), np.zeros((0, m))
    w0, Y, off, condition = np.zeros(m), np.zeros((m, nu + m - rank)), 0.0, 1.0
    if rank:
        xi = lapack.dtrtrs(upper, c[:rank], trans=1)[0]
        solved, _ = lapack.dtrtrs(
            upper, np.concatenate([(xi + g1)[:, None], -A1, R[:rank, rank:m]], axis=1)
        )
        w0[order[:rank]], Y[order[:rank], :nu] = solved[:, 0], solved[:, 1 : nu + 1]
        X_of_w = solved[:, nu + 1 :]
        Y[order[:rank], nu:], Y[order[rank:], nu:] = -X_of_w, np.eye(m - rank)
        off = largest(c[rank:] - X_of_w.T.dot(c[:rank])) / (1.0 + largest(c))
        diagonal = np.abs(upper.diagonal())
        condition = float(diagonal[0] / diagonal[-1])
    elif m:
        off, Y[:, nu:] = largest(c) / (1.0 + largest(c)), np.eye(m)
    X, x0 = np.zeros((k, nu)), np.concatenate([xi, -g2])
    X[rank:] = A2
    if rank:  # x = Q (xi, z)
        both = np.concatenate([X, x0[:, None]], axis=1)
        both, _, _ = lapack.dormqr("L", "N", *reflectors, both, 64 * both.shape[1])
        X, x0 = both[:, :-1], both[:, -1]
    return ContactMotion(
        L, x0, X, w0, Y, T2.T.dot(A2), r.t - T1.T.dot(xi) + T2.T.dot(g2), off, condition
    )


def bilateral_unknowns(motion: ContactMotion, units: Vector) -> Vector:
    """s of the motion without inequalities: the tasks in least squares, then the smallest efforts
    in their `units`, then the smallest forces."""
    nu = units.size
    u = units * _shortest(motion.tasks * units, motion.right)
    w = motion.w0 + motion.Y[:, :nu].dot(u)
    free = motion.Y[:, nu:]
    return np.concatenate([u, _shortest(free, -w)] if free.shape[1] else [u])


def _shortest(A: Array, b: Vector) -> Vector:
    """The shortest of all x with the least ``|A x - b|``."""
    rows, n = A.shape
    right = np.zeros(max(rows, n))
    right[:rows] = b
    pivots = np.zeros(n, dtype=np.int32)
    work = 4 * n + 65 * (rows + n)
    _, x, _, _, _ = lapack.dgelsy(A, right, pivots, SAME_RANK, work)
    return np.asarray(x[:n])
