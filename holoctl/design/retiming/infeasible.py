"""Why a path cannot be followed at any speed: where, which limit, and by how much.

    min e      a sdd + b sd^2 + c <= e,   sd = 0 at both ends

A linear program; its multipliers tell the rows that stand against it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from holoctl.base.errors import LimitError
from holoctl.design.paths.dynamics import Dynamics
from holoctl.design.retiming.rows import RetimingRows

__all__ = ["infeasible"]


def infeasible(dyn: Dynamics, rows: RetimingRows) -> LimitError:
    """The error to be raised where the fastest way was not found."""
    mech, s = dyn.path.system.mech, dyn.path.s
    n, m = rows.c.shape
    known = rows.most[np.isfinite(rows.most)]
    size = float(np.median(known)) if known.size else 1.0
    h = np.diff(s)[:, None] / size
    i, k = (x.ravel() for x in np.indices((n - 1, m)))
    row, column, value, right = [], [], [], []
    for j in range(2):
        a, b, c = rows.a[j : n - 1 + j], rows.b[j : n - 1 + j] * size, rows.c[j : n - 1 + j]
        at = j * (n - 1) * m + i * m + k
        left, ahead = -a / (2.0 * h), a / (2.0 * h)
        left, ahead = (left + b, ahead) if j == 0 else (left, ahead + b)
        row += [at, at, at]
        column += [i, i + 1, np.full(at.size, n)]
        value += [left.ravel(), ahead.ravel(), np.full(at.size, -1.0)]
        right.append(-c.ravel())
    table = (np.concatenate(value), (np.concatenate(row), np.concatenate(column)))
    A = coo_array(table, shape=(2 * (n - 1) * m, n + 1)).tocsr()
    lower, upper = np.zeros(n + 1), np.append(rows.most / size, np.inf)
    upper[[0, n - 1]], lower[n] = 0.0, -np.inf
    cost = np.append(np.zeros(n), 1.0)
    solve: Any = linprog
    found = solve(
        cost, A_ub=A, b_ub=np.concatenate(right), bounds=np.stack([lower, upper], axis=1),
        method="highs",
    )  # fmt: skip
    if found.status != 0 or found.x[-1] <= 0.0:
        return LimitError(
            f"{mech.name}: no way along the path within its limits was found, although these may "
            "leave one, which is very slow somewhere, or hard to compute: leave the limits some "
            "room, give more points, or take the other method"
        )
    force = np.abs(np.asarray(found.ineqlin.marginals))
    worst = int(np.argmax(force))
    j, at, which = worst // ((n - 1) * m), (worst // m) % (n - 1), worst % m
    share = np.bincount(np.tile(k, 2), weights=force, minlength=m)
    names = tuple(dict.fromkeys(rows.names[x] for x in np.argsort(-share) if share[x] > 0.05))
    place = float(s[at + j])
    missing = found.x[-1] * rows.size[at + j, which]
    unit = "rad/s^2 or m/s^2" if rows.names[which].endswith(".acceleration") else "N m or N"
    how = "at any speed" if place not in (s[0], s[-1]) else "at rest"
    return LimitError(
        f"{mech.name}: the path cannot be followed within its limits, {how}: at s = {place:.4g} "
        f"{rows.names[which]!r} would have to go {missing:.4g} {unit} beyond "
        "its limit at least; take a path elsewhere, less payload, or other limits",
        names=names, residual=float(found.x[-1]),
    )  # fmt: skip
