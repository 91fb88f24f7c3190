"""Joints whose steps do not just add: how q (+) w(s) moves.

    v = sum_k c_k b_k      a = sum_k c_k e_k      c_k = (-1)^k / (k + 1)!
    b_0 = w',  b_k = [w, b_k-1]      e_0 = w'',  e_k = [w', b_k-1] + [w, e_k-1]

[.,.] is the bracket joint by joint (tree/lie_bracket.py), here for many nodes at once.
Reference: J. Sola, J. Deray and D. Atchuthan, "A micro Lie theory for state estimation in
robotics", 2018: the right Jacobian.
"""

from __future__ import annotations

from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bernoulli

from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.lie_bracket import adjoint_velocity

__all__ = ["Brackets", "brackets", "moved_by", "seen_from"]

Array = NDArray[np.float64]

_TERMS = tuple((-1.0) ** k / float(np.prod(range(1, k + 2))) for k in range(16))
_INVERSE = tuple(float(x) / factorial(k) for k, x in enumerate(bernoulli(24)))
_NONE = 1e-17


class Brackets(NamedTuple):
    """``[x, y] = (sign x[one] y[two]) @ sums``."""

    one: NDArray[np.intp]
    two: NDArray[np.intp]
    sign: Array
    sums: Array

    def of(self, x: Array, y: Array) -> Array:
        """[x, y] of arrays (.., nv)."""
        found: Array = (self.sign * x[..., self.one] * y[..., self.two]) @ self.sums
        return found


def brackets(mech: Mechanism) -> Brackets:
    """The brackets of a mechanism."""
    found: Brackets = mech.per_thread("path brackets", lambda: _constants(mech))
    return found


def _constants(mech: Mechanism) -> Brackets:
    found = [
        (i, j, sign, k)
        for i, unit in enumerate(np.eye(mech.nv))
        for (k, j), sign in np.ndenumerate(adjoint_velocity(mech.model, unit))
        if sign
    ]
    sums = np.zeros((len(found), mech.nv))
    for row, (_, _, _, k) in enumerate(found):
        sums[row, k] = 1.0
    one, two, sign = ([entry[n] for entry in found] for n in range(3))
    left, right = np.array(one, dtype=np.intp), np.array(two, dtype=np.intp)
    return Brackets(left, right, np.array(sign, dtype=float), sums)


def moved_by(b: Brackets, w: Array, d: Array, dd: Array) -> tuple[Array, Array]:
    """v and a of w, w', w'': arrays (.., nv)."""
    v, a = d.copy(), dd.copy()
    if not b.one.size:
        return v, a
    bk, ek = d, dd
    for c in _TERMS[1 : _count(w)]:
        bk, ek = b.of(w, bk), b.of(d, bk) + b.of(w, ek)
        v += c * bk
        a += c * ek
    return v, a


def seen_from(b: Brackets, w: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """w' and w'' that have these v and a; w is shorter than half a turn."""
    if not b.one.size:
        return v.copy(), a.copy()
    d = _back(b, w, v)
    return d, _back(b, w, a - moved_by(b, w, d, np.zeros_like(d))[1])


def _back(b: Brackets, w: Array, v: Array) -> Array:
    """w' of v: ``v + [w, v] / 2 + sum_k B_k / k! [w, [w, ... v]]``, B_k the Bernoulli numbers."""
    d, bk = v.copy(), v
    for k, c in enumerate(_INVERSE[1 : _count(w) + 4], 1):
        bk = b.of(w, bk)
        if c:
            d += (-c if k == 1 else c) * bk
    return d


def _count(w: Array) -> int:
    """So many terms matter."""
    size, term, k = float(np.abs(w).max(initial=0.0)) * 1.8, 1.0, 1
    while term > _NONE and k < len(_TERMS):
        term *= size / (k + 1)
        k += 1
    return k
