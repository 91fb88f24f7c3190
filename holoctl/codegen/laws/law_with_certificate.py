"""A law and its certificate: the measures of dynamics/certificate.py as expressions.

    closure, velocity    max |r phi|, max |r rate| / speed
    acceleration         max |r (G a + drift)| / size
    dynamics             max |c (M a + h - efforts - G' lambda)| / size

of all rows as they are defined, whatever axes the law takes its rows along. G' y comes from the
elimination of the law; where rows are redundant, lambda is the shortest of all that serve,

    G_red = E G_keep + D        (I + E E') l_red = E y        G' lambda = G_keep' y + D' l_red

in scaled rows and coordinates; D is what is left of redundant rows along the motions, N N' G_red'
with N orthonormal. It is zero on the manifold. The Python path is the oracle in the tests.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array
from holoctl.base.tolerances import REDUCED, WEIGHT_SHARE
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.elimination import factored, least_squares
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.bordered_elimination import bordered, selection
from holoctl.codegen.laws.constraints_and_tree import motor_border
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.matrices import column, columns, dense, scalars, total
from holoctl.codegen.rows import SymbolicRows
from holoctl.codegen.stabilised_drift import stabilised_drift
from holoctl.codegen.tree_dynamics import tree_efforts
from holoctl.dynamics.certificate import largest_size, weight
from holoctl.rows.stabilisation import stiffness
from holoctl.rows.state_limits import StateLimits

__all__ = ["certified_forward", "certified_inverse"]

NO_SIZE = 1e-300
"""What is not finite puts a certificate in doubt: squares count by so much, which finite ones do
not feel; and sizes that would be zero are taken for this."""


def certified_inverse(
    E: Expressions,
    weights: Array | None = None,
    inconsistent: str = "raise",
    limits: StateLimits | None = None,
) -> Any:
    """``inverse_dynamics_certified(q, v, target, t) -> u, certificate, guard``.

    The certificate is (5,): the numbers of `BatchCertificate`, in its order.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`.
    """
    ca, mech = casadi_module(), E.mech
    target = ca.SX.sym("target", mech.nu)
    law = inverse_function(E, weights, inconsistent, limits)
    u, a, guard = law.call([E.q, E.v, target, *E.context.values()], True, False)
    border, delivered = motor_border(E), ca.SX(mech.B) @ u
    w = tree_efforts(E.tree, E.v, a)
    # the efforts of the motors beside the multipliers, as the law finds them
    right = E.forces.minus(w, E.v)
    right = right - delivered if border.redundant else right
    effort, more = _constraint_effort(E, border.C, border.unit, right)
    found, broken = _measured(E, a, w, delivered, effort)
    return ca.Function(
        "inverse_dynamics_certified", [E.q, E.v, target, *E.context.values()],
        [u, found, total([guard, *more, *E.every.guard, broken])],
        ["q", "v", "target", *E.context], ["u", "certificate", "guard"],
    )  # fmt: skip


def certified_forward(E: Expressions) -> Any:
    """``forward_dynamics_certified(q, v, tau, t) -> a, certificate, guard``, likewise."""
    ca, mech = casadi_module(), E.mech
    tau, free = ca.SX.sym("tau", mech.nv), E.partition.independent
    given = [E.q, E.v, tau, *E.context.values()]
    a, guard = forward_function(E).call(given, True, False)
    w = tree_efforts(E.tree, E.v, a)
    C, unit = selection(mech.nv, free), 1.0 / mech.column_scale[free]
    effort, more = _constraint_effort(E, C, unit, E.forces.minus(w, E.v) - tau)
    found, broken = _measured(E, a, w, tau, effort)
    return ca.Function(
        "forward_dynamics_certified", given,
        [a, found, total([guard, *more, *E.every.guard, broken])],
        ["q", "v", "tau", *E.context], ["a", "certificate", "guard"],
    )  # fmt: skip


# ------------------------------------------------------------------------------- the measures


def _measured(E: Expressions, a: SX, w: SX, given: SX, effort: SX) -> tuple[SX, SX]:
    """The certificate of a motion a under the efforts `given`, and its guard, for numbers that are
    not finite; w is ``M a + h``, `effort` G' lambda."""
    ca, mech, part = casadi_module(), E.mech, E.partition
    stiff, kept = stiffness(mech), np.isin(E.open, part.rows)
    of_rows = _of_rows(E, a)
    counted = kept if part.tolerance > 0.0 else np.ones_like(kept)
    missed, size = _of_dynamics(E, w, given, effort)
    numbers = [
        *(_largest(of_rows.of(name, counted)) / of_rows.sizes[name] for name in of_rows.sizes),
        _largest(missed) / size,
        ca.fmax(
            ca.fmax(
                _largest(of_rows.of("closure", ~kept)),
                _largest(of_rows.of("velocity", ~kept)) / of_rows.sizes["velocity"],
            ),
            _largest(of_rows.of("acceleration", ~kept)) / (stiff * of_rows.sizes["acceleration"]),
        ),
    ]
    every = [*(x for entries in of_rows.entries.values() for x in entries), *missed]
    return column(numbers), NO_SIZE * _in_pairs(operator.add, [x * x for x in every])


@dataclass(frozen=True, eq=False)
class _OfRows:
    """Entries of the rows that can open, scaled, and what they are compared with, by measure."""

    entries: dict[str, list[SX]]
    sizes: dict[str, SX]

    def of(self, name: str, which: NDArray[np.bool_]) -> list[SX]:
        """Those of some rows."""
        return [x for x, wanted in zip(self.entries[name], which, strict=True) if wanted]


def _of_rows(E: Expressions, a: SX) -> _OfRows:
    ca, mech, rows = casadi_module(), E.mech, E.every
    scales = mech.row_scale[E.open].tolist()

    def products(x: SX) -> list[list[SX]]:
        return [
            [r * g * x[k] for k, g in row.items()]
            for r, row in zip(scales, rows.jacobian, strict=True)
        ]

    def size(terms: list[list[SX]]) -> SX:
        return 1.0 + _largest(total(map(ca.fabs, row)) for row in terms)

    def scaled(entries: list[SX]) -> list[SX]:
        return [r * x for r, x in zip(scales, entries, strict=True)]

    needed, terms = scaled(stabilised_drift(mech, rows, E.open)), products(a)
    missing = [total(row) + x for row, x in zip(terms, needed, strict=True)]
    return _OfRows(
        {"closure": scaled(rows.error), "velocity": scaled(rows.rate), "acceleration": missing},
        {
            "closure": ca.SX(1.0),
            "velocity": size(products(E.v)),
            "acceleration": size(terms) + _largest(needed),
        },
    )


def _of_dynamics(E: Expressions, w: SX, given: SX, effort: SX) -> tuple[list[SX], SX]:
    """What is left of ``w = given + F + effort``, scaled, and the size of its terms."""
    ca, mech = casadi_module(), E.mech
    c, nothing = ca.SX(mech.column_scale), ca.SX.zeros(mech.nv)
    h = tree_efforts(E.tree, E.v, nothing)
    efforts = given - E.forces.minus(nothing, E.v)
    terms = (w - h, h, efforts, effort)
    size = total(_largest(scalars(c * x)) for x in terms) + WEIGHT_SHARE * _weight(E)
    return scalars(c * (w - efforts - effort)), ca.fmax(size, NO_SIZE)


def _weight(E: Expressions) -> SX | float:
    """As `weight`, with the parameters of E."""
    if not E.parameters.symbols:
        return weight(E.mech)
    mass = total(step.mass for step in E.tree.steps)
    g = casadi_module().norm_2(casadi_module().SX(E.tree.gravity))
    return mass * g * largest_size(E.mech)


def _largest(terms: Iterable[SX]) -> SX:
    """The largest magnitude; zero where there are no terms."""
    ca = casadi_module()
    return _in_pairs(ca.fmax, [ca.fabs(x) for x in terms])


def _in_pairs(operation: Callable[[SX, SX], SX], terms: list[SX]) -> SX:
    """All terms together, in pairs of pairs: a chain of as many steps would be waited for."""
    found = terms or [casadi_module().SX(0.0)]
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=False)
        found = [operation(x, y) for x, y in pairs] + found[len(found) // 2 * 2 :]
    return found[0]


# ------------------------------------------------------------------------ what constraints give


def _constraint_effort(E: Expressions, C: Array, unit: Array, right: SX) -> tuple[SX, list[SX]]:
    """``G' lambda`` of the multipliers of ``[G_keep' C] (y; x) = right``, and its guard."""
    ca, mech, part = casadi_module(), E.mech, E.partition
    left = np.flatnonzero(~np.isin(E.open, part.rows))
    alone = not left.size or not part.independent.size or part.tolerance > 0.0
    if not alone:  # which multipliers are shortest depends on the axes
        E = replace(E, rows=_as_defined(E))
    K, rank = bordered(E, C, unit), part.rank
    y = K.elimination.solve_transposed(scalars(right))[:rank]
    kept = dense(E.rows.jacobian, mech.nv)
    effort = kept.T @ column(y) if rank else ca.SX.zeros(mech.nv)
    if alone:
        return effort, []
    c, r = mech.column_scale, mech.row_scale
    k = part.independent.size
    N = ca.SX(np.diag(1.0 / c)) @ K.basis(k) @ ca.SX(np.diag(1.0 / unit[-k:]))
    Q, _, guard = least_squares(columns(N))
    along = ca.horzcat(*(column(x) for x in Q))
    scaled = dense([E.every.jacobian[i] for i in left], mech.nv)
    scaled = ca.SX(np.diag(r[E.open[left]])) @ scaled @ ca.SX(np.diag(c))
    Z = scaled @ along  # D = Z N'
    spanned = (scaled - Z @ along.T) @ ca.SX(np.diag(1.0 / c))
    shares = [  # E, of the kept rows in each redundant one
        K.elimination.solve_transposed(scalars(spanned[i, :].T))[:rank] for i in range(left.size)
    ]
    by_row = ca.horzcat(*map(column, shares)).T @ ca.SX(np.diag(1.0 / r[part.rows]))
    factors = factored(ca.SX.eye(left.size) + by_row @ by_row.T, REDUCED)
    on_kept = ca.SX(np.diag(1.0 / r[part.rows])) @ column(y)
    on_left = column(factors.solve(scalars(by_row @ on_kept)))
    effort = effort + ca.SX(np.diag(1.0 / c)) @ (along @ (Z.T @ on_left))
    return effort, [*K.guard, *guard, *factors.guard]


def _as_defined(E: Expressions) -> SymbolicRows:
    """The kept rows along their own axes."""
    places = np.flatnonzero(np.isin(E.open, E.partition.rows)).tolist()
    every = E.every

    def kept(entries: list[Any]) -> list[Any]:
        return [entries[i] for i in places]

    return SymbolicRows(
        kept(every.error), kept(every.rate), kept(every.drift), kept(every.jacobian), every.guard
    )
