"""Motion and forces on contacts as affine functions of the motor efforts.

    W y + g = A u + J' w        J y = c        tasks T y = t

with a = N y + a0, W = N' M N, g = N' (M a0 + h - F - known efforts), A = N' B. In coordinates x =
L' y, where W = L L', the inertia is the identity (Gauss): rows marked * are times L^-T. With the
independent rows first, J*' = Q [R, R X; 0], and Q = [Q1 Q2],

    x = Q1 xi + Q2 z            R' xi = c               z = Q2' (A* u - g*) = A2 u - g2
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
    L : (k, k) array, optional
        The lower factor of W.
    """

    W: Array
    g: Vector
    A: Array
    J: Array
    c: Vector
    T: Array
    t: Vector
    L: Array | None = None


class ContactMotion(NamedTuple):
    """Motion, forces and tasks as functions of s = (u, w2).

    Attributes
    ----------
    L : (k, k) array
        The lower factor of W.
    Q : tuple of arrays or None
        Householder reflectors of the rows of contacts, as LAPACK has them; None for no rows.
    xi, A2, g2 : arrays
        ``x = Q1 xi + Q2 (A2 u - g2)``.
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
    Q: tuple[Array, Vector] | None
    xi: Vector
    A2: Array
    g2: Vector
    w0: Vector
    Y: Array
    tasks: Array
    right: Vector
    off: float
    condition: float

    def wrenches(self, s: Vector) -> Vector:
        """w."""
        w: Vector = self.Y.dot(s)
        w += self.w0
        return w

    def motion(self, s: Vector) -> Vector:
        """y."""
        z = self.A2.dot(s[: self.A2.shape[1]]) - self.g2
        return self._from_z(np.concatenate([self.xi, z])[:, None])[:, 0]

    def motions(self) -> tuple[Vector, Array]:
        """y0 (k,) and Y_y (k, nu): ``y = y0 + Y_y u``."""
        rank, nu = self.xi.size, self.A2.shape[1]
        columns = np.zeros((rank + self.g2.size, nu + 1))
        columns[:rank, 0], columns[rank:, 0], columns[rank:, 1:] = self.xi, -self.g2, self.A2
        y = self._from_z(columns)
        return y[:, 0], y[:, 1:]

    def along_rows(self, X: Array) -> Array:
        """``Q1' X``: the part of motions x that moves the contacts, in the metric of the
        inertia."""
        if self.Q is None:
            return X[:0]
        return np.asarray(lapack.dormqr("L", "T", *self.Q, X, 64 * X.shape[1])[0][: self.xi.size])

    def _from_z(self, x: Array) -> Array:
        """y of (xi, z)."""
        if self.Q is not None:
            x, _, _ = lapack.dormqr("L", "N", *self.Q, x, 64 * x.shape[1])
        return np.asarray(lapack.dtrtrs(self.L, x, lower=1, trans=1)[0])


def contact_motion(r: ReducedTerms) -> ContactMotion | None:
    """The functions of the head of this module; None where W is not positive definite."""
    (k, nu), m = r.A.shape, r.c.size
    L, info = (r.L, 0) if r.L is not None else lapack.dpotrf(r.W, lower=1)
    if info:
        return None
    columns = np.empty((k, m + nu + r.t.size + 1), order="F")
    columns[:, :m], columns[:, m : m + nu] = r.J.T, r.A
    columns[:, m + nu : -1], columns[:, -1] = r.T.T, r.g
    columns, _ = lapack.dtrtrs(L, columns, lower=1, overwrite_b=1)
    rest, Q, rank, R = columns[:, m:], None, 0, columns[:, :0]
    order = np.arange(m)
    if m:
        R, order, tau, _, _ = lapack.dgeqp3(columns[:, :m])
        order -= 1
        pivots = np.abs(R.diagonal())
        rank = int((pivots > SAME_RANK * pivots[0]).sum())
    if rank:
        Q = R[:, :rank], tau[:rank]
        rest, _, _ = lapack.dormqr("L", "T", *Q, rest, 64 * rest.shape[1])
    A1, A2 = rest[:rank, :nu], rest[rank:, :nu]
    T1, T2 = rest[:rank, nu:-1], rest[rank:, nu:-1]
    g1, g2 = rest[:rank, -1], rest[rank:, -1]
    c, first, other, upper = r.c[order], order[:rank], order[rank:], R[:rank, :rank]
    xi, w0, Y = c[:0], np.zeros(m), np.zeros((m, nu + m - rank))
    Y[other, nu + np.arange(m - rank)] = 1.0
    of_dependent = np.zeros((rank, m - rank))
    condition = 1.0
    if rank:
        xi = lapack.dtrtrs(upper, c[:rank], trans=1)[0]
        columns = np.empty((rank, 1 + nu + m - rank), order="F")
        columns[:, 0], columns[:, 1 : nu + 1], columns[:, nu + 1 :] = xi + g1, A1, R[:rank, rank:m]
        columns, _ = lapack.dtrtrs(upper, columns, overwrite_b=1)
        w0[first], Y[first] = columns[:, 0], -columns[:, 1:]
        of_dependent = columns[:, nu + 1 :]
        condition = float(pivots[0] / pivots[rank - 1])
    off = 0.0
    if m > rank:
        off = largest(c[rank:] - of_dependent.T.dot(c[:rank])) / (1.0 + largest(c))
    right = r.t - T1.T.dot(xi) + T2.T.dot(g2)
    return ContactMotion(L, Q, xi, A2, g2, w0, Y, T2.T.dot(A2), right, off, condition)


def bilateral_unknowns(motion: ContactMotion, units: Vector) -> Vector:
    """s of the motion without inequalities: the tasks in least squares, then the smallest efforts
    in their `units`, then the smallest forces."""
    nu = units.size
    u = units * _shortest(motion.tasks * units, motion.right)
    free = motion.Y[:, nu:]
    if not free.shape[1]:
        return u
    return np.concatenate([u, _shortest(free, -motion.w0 - motion.Y[:, :nu].dot(u))])


def _shortest(A: Array, b: Vector) -> Vector:
    """The shortest of all x with the least ``|A x - b|``."""
    rows, n = A.shape
    right = np.zeros(max(rows, n))
    right[:rows] = b
    pivots = np.zeros(n, dtype=np.int32)
    work = 4 * n + 65 * (rows + n)
    _, x, _, _, _ = lapack.dgelsy(A, right, pivots, SAME_RANK, work)
    return np.asarray(x[:n])
