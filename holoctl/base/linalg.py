"""The factorisations that the library needs, by direct calls of LAPACK.

Each is factored once and applied often. Nothing here forms an inverse. Condition numbers are 1-norm
estimates from the factors (LAPACK ``gecon``, ``trcon``): they cost a few solves. They are relative
to the norm of the matrix, or to `size` if that is larger: a matrix of one entry, or one whose
entries are all small, is close to singular only relative to its usual size. Solves go triangle by
triangle with BLAS ``trsm``: OpenBLAS hands even the smallest ``getrs``, ``potrs``, ``trtrs`` and
``laswp`` to a second thread, which costs milliseconds on a busy machine.
Reference: E. Anderson et al., LAPACK Users' Guide; G. Golub and C. Van Loan, Matrix Computations,
the sections on LU with partial pivoting and QR with column pivoting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from holoctl.base.checks import Array
from holoctl.base.errors import InputError

__all__ = [
    "LU",
    "Cholesky",
    "InPlaceLU",
    "PivotedQR",
    "RowQR",
    "cholesky",
    "in_place_band_lu",
    "in_place_lu",
    "in_range",
    "largest",
    "least_squares",
    "lu",
    "null_space_by_svd",
    "one_norm",
    "orthonormal_columns",
    "pivoted_qr",
    "row_qr",
    "singular_values",
    "solved",
    "turned_over",
]


class LU(NamedTuple):
    """``A[order] = L U`` of a square matrix, with an estimate of its condition number."""

    factors: Array
    order: NDArray[np.intp]
    condition: float

    def solve(self, b: Array) -> Array:
        """x with ``A x = b``."""
        if b.size == 0:
            return np.zeros(b.shape)
        x = _triangular(self.factors, b.take(self.order, 0), lower=True, unit=True)
        return _triangular(self.factors, x)


def lu(a: Array, size: float = 0.0) -> LU:
    """Factor a square matrix; ``condition`` is inf where a pivot is exactly zero."""
    n = a.shape[0]
    if n == 0:
        return LU(np.zeros((0, 0)), np.zeros(0, dtype=np.intp), 1.0)
    factors, pivots, info = lapack.dgetrf(a)
    order = list(range(n))
    for i, p in enumerate(pivots.tolist()):
        order[i], order[p] = order[p], order[i]
    rcond = 0.0
    if info == 0:
        rcond, _ = lapack.dgecon(factors, max(one_norm(a), size))
    return LU(factors, np.array(order), 1.0 / rcond if rcond > 0.0 else float("inf"))


def _triangular(
    a: Array, b: Array, lower: bool = False, unit: bool = False, transposed: bool = False
) -> Array:
    """Solve with a triangle of `a`."""
    if b.ndim == 1:
        y: Array = blas.dtrsv(a, b, lower=lower, trans=transposed, diag=unit)
        return y
    x: Array = blas.dtrsm(1.0, a, b, lower=lower, trans_a=transposed, diag=unit)
    return x


def solved(a: Array, b: Array) -> Array:
    """x with ``A x = b`` of a small square matrix that is far from singular; nan if a pivot is
    exactly zero."""
    _, _, x, info = lapack.dgesv(a, b)
    return x if info == 0 else np.full(b.shape, np.nan)


class Cholesky(NamedTuple):
    """``A = L L^T`` of a symmetric positive definite matrix."""

    factor: Array
    condition: float

    def solve(self, b: Array) -> Array:
        """x with ``A x = b``."""
        if b.size == 0:
            return np.zeros(b.shape)
        x = _triangular(self.factor, b, lower=True)
        return _triangular(self.factor, x, lower=True, transposed=True)

    def whitened(self, J: Array) -> Array:
        """``J L^-T``: rows J by coordinates z = L^T x, in which A is the identity."""
        return _triangular(self.factor, J.T, lower=True).T if J.size else J


def cholesky(a: Array) -> Cholesky:
    """Factor; ``condition`` is inf where the matrix is not positive definite.

    The condition number is that of the matrix with unit diagonal: units drop out of it, and
    it is what the accuracy of the solve depends on (van der Sluis' scaling).
    """
    if a.shape[0] == 0:
        return Cholesky(np.zeros((0, 0)), 1.0)
    diagonal = a.diagonal()
    if not diagonal.min() > 0.0:
        return Cholesky(a, float("inf"))
    s = 1.0 / np.sqrt(diagonal)
    scaled = a * s * s[:, None]
    unit, info = lapack.dpotrf(scaled, lower=1, clean=1)
    if info != 0:
        return Cholesky(a, float("inf"))
    rcond, _ = lapack.dpocon(unit, one_norm(scaled), uplo="L")
    return Cholesky(unit / s[:, None], 1.0 / rcond if rcond > 0.0 else float("inf"))


class PivotedQR(NamedTuple):
    """``A P = Q [R1 R2; 0 ~0]`` with column pivoting, cut at a given rank r.

    Attributes
    ----------
    q : (m, m) array
        Orthogonal. Columns 0..r-1 span the range of A, the others its complement.
    factors : (m, n) array
        R on and above the diagonal; entries below the diagonal are not part of it.
    rank : int
    pivots : (n,) int array
        Column order; the first r are the pivot columns.
    diagonal : (min(m, n),) array
        Sizes of the pivots, largest first.
    size : float
        The condition number is relative to this norm if it is larger than that of R1.
    """

    q: Array
    factors: Array
    rank: int
    pivots: NDArray[np.intp]
    diagonal: Array
    size: float = 0.0

    @property
    def r1(self) -> Array:
        """(r, r), upper triangular."""
        return np.where(_upper(self.rank), self.factors[: self.rank, : self.rank], 0.0)

    @property
    def r2(self) -> Array:
        """(r, n - r)."""
        return self.factors[: self.rank, self.rank :]

    @property
    def condition(self) -> float:
        """Condition number of R1."""
        if self.rank == 0:
            return 1.0
        rcond, _ = lapack.dtrcon(self.factors[: self.rank, : self.rank])
        if rcond <= 0.0:
            return float("inf")
        own = _norm_of_triangle("1", self.factors[: self.rank, : self.rank])
        return max(own, self.size) / (own * float(rcond))

    def solve_r1(self, b: Array, transposed: bool = False) -> Array:
        """x with ``R1 x = b`` (or ``R1^T x = b``)."""
        if b.size == 0:
            return np.zeros(b.shape)
        return _triangular(self.factors[: self.rank, : self.rank], b, transposed=transposed)

    def fitted(self, b: Array) -> Array:
        """x (n,) of least ``|A x - b|``, zero beyond the pivot columns."""
        x = np.zeros(self.pivots.size)
        x[self.pivots[: self.rank]] = self.solve_r1(b.dot(self.q[:, : self.rank]))
        return x

    def shortest(self, b: Array) -> Array:
        """The shortest x with ``A^T x = b``, where A has full column rank."""
        rank = self.rank
        x: Array = self.q[:, :rank] @ self.solve_r1(b[self.pivots[:rank]], transposed=True)
        return x


def pivoted_qr(a: Array, rank: int | None = None, tol: float = 0.0, size: float = 0.0) -> PivotedQR:
    """QR with column pivoting, cut at `rank`, or at pivots below `tol` x the first (or `size`)."""
    m, n = a.shape
    if m == 0 or n == 0:
        return PivotedQR(np.eye(m), np.zeros((m, n)), 0, np.arange(n), np.zeros(0))
    factors, jpvt, tau, _, _ = lapack.dgeqp3(a)
    diagonal = np.abs(factors.diagonal())
    if rank is None:
        rank = int(np.count_nonzero(diagonal > tol * max(float(diagonal[0]), size)))
    square = factors[:, :m]
    if n < m:
        square = np.zeros((m, m), order="F")
        square[:, :n] = factors
    q, _, _ = lapack.dorgqr(square, tau)
    return PivotedQR(q, factors, rank, jpvt.astype(np.intp) - 1, diagonal, size)


class RowQR(NamedTuple):
    """``A^T = Q R`` of a matrix with independent rows, for the shortest x with ``A x = b``.

    Attributes
    ----------
    q : (n, m) array
        Orthonormal columns.
    r : (m, m) array
        Upper triangular; entries below the diagonal are not part of it.
    """

    q: Array
    r: Array

    def shortest(self, b: Array) -> Array:
        """The shortest x with ``A x = b``."""
        x: Array = self.q.dot(_triangular(self.r, b, transposed=True)) if b.size else np.zeros(0)
        return x

    def condition(self, size: float = 0.0) -> float:
        """Condition number, relative to the norm of R or to `size` where that is larger."""
        if self.r.size == 0:
            return 1.0
        rcond = float(lapack.dtrcon(self.r)[0])
        if not rcond > 0.0:
            return float("inf")
        own = _norm_of_triangle("1", self.r)
        return max(own, size) / (own * rcond)


def row_qr(a: Array) -> RowQR:
    """Factor a matrix that has no more rows than columns, without pivoting."""
    m = a.shape[0]
    if m == 0:
        return RowQR(np.zeros((a.shape[1], 0)), np.zeros((0, 0)))
    factors, tau, _, _ = lapack.dgeqrf(a.T)
    q, _, _ = lapack.dorgqr(factors, tau)
    return RowQR(q, factors[:m])


@lru_cache(maxsize=100)
def _upper(n: int) -> NDArray[np.bool_]:
    """Mask of the upper triangle of a square matrix."""
    return np.asfortranarray(np.triu(np.ones((n, n), dtype=bool)))


def orthonormal_columns(a: Array) -> Array:
    """An orthonormal basis of the range of a matrix of full column rank."""
    if a.shape[1] == 0:
        return a
    qr, tau, _, _ = lapack.dgeqrf(a)
    q: Array
    q, _, _ = lapack.dorgqr(qr, tau)
    return q


def largest(x: Array) -> float:
    """The largest magnitude of the entries; zero where there are none, nan where one is nan."""
    return _norm("M", x) if x.size else 0.0


def one_norm(a: Array) -> float:
    """The largest sum of the magnitudes of a column; zero where there are no entries."""
    return _norm("1", a) if a.size else 0.0


_norm: Callable[[str, Array], float] = lapack.dlange  # type: ignore[assignment]  # as LAPACK has it
_norm_of_triangle: Callable[[str, Array], float] = lapack.dlantr


def in_range(a: Array) -> Array:
    """`a`, or an `InputError` if an entry is not finite: LAPACK's iterations may not end on it."""
    if not np.isfinite(a).all():
        raise InputError(
            "an intermediate result exceeds the range of floats: "
            "an input or the model is out of range"
        )
    return a


def least_squares(a: Array, b: Array, rcond: float | None = None) -> Array:
    """The shortest x of least ``|a x - b|``; singular values below `rcond` x the first are zero.

    Raises
    ------
    InputError
        For numbers that are not finite.
    """
    return np.asarray(np.linalg.lstsq(in_range(a), in_range(b), rcond=rcond)[0], dtype=float)


def singular_values(a: Array) -> Array:
    """In descending order; an `InputError` for numbers that are not finite."""
    return np.asarray(np.linalg.svd(in_range(a), compute_uv=False)) if a.size else np.zeros(0)


def null_space_by_svd(a: Array, rank: int) -> tuple[Array, Array, Array, Array]:
    """``(U1, s, V1, V2)`` of the SVD of `a` cut at `rank`; V2 spans its null space.

    For decisions that are made once (rank, redundancy), never in a control tick. Raises an
    `InputError` for numbers that are not finite.
    """
    m, n = a.shape
    if m == 0 or n == 0:
        return np.zeros((m, 0)), np.zeros(0), np.zeros((n, 0)), np.eye(n)
    u, s, vt = np.linalg.svd(in_range(a), full_matrices=True)
    return u[:, :rank], s[:rank], vt[:rank].T, vt[rank:].T


# ----------------------------------------------------------------------------- in a tick


@dataclass(frozen=True, eq=False)
class InPlaceLU:
    """LU of a matrix whose array is filled, factored and applied at every tick.

    Attributes
    ----------
    factor : function () -> float
        Overwrites the matrix with its factors. Returns the sum of the squares of the inverse
        pivots, inf if one is zero: a cheap indicator of ill-conditioning, not a condition number.
    solve, solve_transposed : function (b) -> None
        Overwrites b (n,) or (n, k), F-ordered, with the solution of ``A x = b``, or of
        ``A^T x = b``.
    """

    factor: Callable[[], float]
    solve: Callable[[Array], None]
    solve_transposed: Callable[[Array], None]


def in_place_lu(a: Array, unit: Array) -> InPlaceLU:
    """For a square F-ordered matrix; its pivots are multiplied by `unit` (n,) to be judged."""
    n = a.shape[0]
    if n == 0:
        return InPlaceLU(lambda: 0.0, _nothing, _nothing)
    inverse, pivots, size = 1.0 / unit, a.T.reshape(-1)[:: n + 1], np.zeros(n)
    order = np.zeros(n, dtype=np.int32)
    getrf, getrs = lapack.dgetrf, lapack.dgetrs

    def factor() -> float:
        nonlocal order
        _, order, info = getrf(a, 1)
        if info:
            return float("inf")
        np.divide(inverse, pivots, size)
        return float(size.dot(size))

    def solve(b: Array) -> None:
        getrs(a, order, b, 0, 1)

    def solve_transposed(b: Array) -> None:
        getrs(a, order, b, 1, 1)

    return InPlaceLU(factor, solve, solve_transposed)


def _nothing(_: Array) -> None:
    """The solution for no unknowns."""


def in_place_band_lu(ab: Array, lower: int, upper: int, unit: Array) -> InPlaceLU:
    """For a band matrix in LAPACK's storage: A[i, j] at ``ab[lower + upper + i - j, j]``."""
    inverse, pivots, size = 1.0 / unit, ab[lower + upper], np.zeros(ab.shape[1])
    order = np.zeros(ab.shape[1], dtype=np.int32)
    gbtrf, gbtrs = lapack.dgbtrf, lapack.dgbtrs

    def factor() -> float:
        nonlocal order
        _, order, info = gbtrf(ab, lower, upper, overwrite_ab=1)
        if info:
            return float("inf")
        np.divide(inverse, pivots, size)
        return float(size.dot(size))

    def solve(b: Array) -> None:
        gbtrs(ab, lower, upper, b, order, overwrite_b=1)

    def solve_transposed(b: Array) -> None:
        gbtrs(ab, lower, upper, b, order, trans=1, overwrite_b=1)

    return InPlaceLU(factor, solve, solve_transposed)


def turned_over(change: Array) -> bool:
    """Whether a square matrix may become singular between K and K', ``change = K^-1 K'``.

    ``det(K + s (K' - K)) = det K det(1 + s (change - 1))`` vanishes for an s from 0 to 1 only where
    `change` has an eigenvalue that is negative or zero. Every eigenvalue left of the imaginary axis
    counts, so the answer is conservative. The sign of the determinant would not show two that
    vanish together.
    """
    if not np.isfinite(change).all():
        return True
    if np.linalg.norm(change - np.eye(change.shape[0])) < 1.0:
        return False
    return bool(np.linalg.eigvals(change).real.min() <= 0.0)
