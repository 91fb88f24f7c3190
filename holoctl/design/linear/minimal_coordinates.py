"""The derivative of the velocity v = gamma yd + v_t by the minimal coordinates y.

    D = d(gamma yd + v_t) / dy        independent rows: 0
    G_dep D_dep,j = -1/4 [drift(v + gamma_j) - drift(v - gamma_j)] - 1/2 G [gamma_j, v]

as dG[gamma_j] v, the change of ``G v`` along gamma_j, is half its symmetric part, which follows
from the drift (quadratic in v), plus half the Lie bracket. Only kept rows are used. The term 2
phi_tq v of constraints that depend on time is included in the drift. Reference:
docs/derivations.md, "Linear models".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import largest, lu
from holoctl.base.tolerances import SINGULAR
from holoctl.closing.rank import scaled_size
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.tree.lie_bracket import adjoint_velocity

__all__ = ["MinimalCoordinates", "RowsAt", "minimal_coordinates"]

SLIDES_AGAINST = 1e-5  # scaled
"""The motions of a partition are motions of the mechanism only if no row has a larger rate along
them."""


RowsAt = Callable[[Vector], tuple[Array, Vector]]
"""(m, nv) G and (m,) drift of all rows at one configuration, at any velocity."""


class MinimalCoordinates(NamedTuple):
    """The motions of a partition at a state.

    Attributes
    ----------
    gamma : (nv, n) array
    change : (nv, n) array
        D: the derivative of the velocity by y, at the same yd.
    turning : (nv, nv) array
        ad_v, joint by joint: see tree/lie_bracket.py.
    """

    gamma: Array
    change: Array
    turning: Array


def minimal_coordinates(
    mech: Mechanism, part: Partition, v: Vector, rows_at: RowsAt
) -> MinimalCoordinates:
    """gamma, and the derivative of the velocity along it.

    Raises
    ------
    SingularityError
        If the dependent coordinates do not follow from the independent ones here.
    InputError
        If rows that the partition leaves out do not allow its motions.
    """
    c, keep, dep, ind = mech.column_scale, part.rows, part.dependent, part.independent
    ad = adjoint_velocity(mech.model, v)
    n = ind.size
    gamma, change = np.zeros((mech.nv, n)), np.zeros((mech.nv, n))
    gamma[ind] = np.eye(n)
    if dep.size == 0:
        return MinimalCoordinates(gamma, change, ad)
    r = mech.row_scale[keep, None]
    G_all = mech.row_scale[:, None] * rows_at(v)[0] * c
    G = G_all.take(keep, 0)
    factors = lu(G.take(dep, 1), scaled_size(G))
    if factors.condition > SINGULAR:
        names = [mech.coordinate_names[i] for i in dep]
        raise SingularityError(
            f"{mech.name}: the dependent coordinates do not follow from the independent ones here "
            f"(condition number {factors.condition:.1e}); give a partition decided at this "
            "configuration, hc.partition(mech, q), or move away from it",
            condition=factors.condition, names=names,
        )  # fmt: skip
    gamma[dep] = c[dep, None] * factors.solve(-(G.take(ind, 1) / c[ind]))
    _check_rows(mech, part, G_all @ (gamma / c[:, None]), gamma / c[:, None])
    sums = [rows_at(v + x)[1].take(keep) - rows_at(v - x)[1].take(keep) for x in gamma.T]
    moved = 0.25 * r * np.array(sums).T - 0.5 * (G / c) @ (ad @ gamma)  # [gamma_j, v] = -ad_v gamma
    change[dep] = c[dep, None] * factors.solve(-moved)
    return MinimalCoordinates(gamma, change, ad)


def _check_rows(mech: Mechanism, part: Partition, opening: Array, moves: Array) -> None:
    """Raise `InputError` if a row (scaled) opens along the motions of the partition."""
    limit = max(SLIDES_AGAINST, part.tolerance) * largest(moves)
    if largest(opening) <= limit:
        return
    worst = mech.row_names[int(np.argmax(np.abs(opening).max(1)))]
    raise InputError(
        f"{mech.name}: the motions of this partition open {worst} (by {largest(opening):.1e}, "
        "scaled): it leaves out rows that are independent at this configuration; take "
        "hc.partition(mech, q)"
    )
