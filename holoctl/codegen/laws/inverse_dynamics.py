"""The laws of one mechanism as expressions: terms, inverse and forward dynamics, derivatives.

The kept rows and one row for each independent motion make a square matrix,

    K = [G; C']        K a = [-drift; c]        c: what is known of the acceleration

with C the actuation matrix B, or a selection of coordinates. One elimination of K solves for the
motion, and its transpose for the efforts: ``K' (y; u) = M a + h`` gives u beside the multipliers
of the kept rows, so that neither gamma nor X is formed. Where C selects the actuated coordinates,
the elimination of K is that of G_dep, entry by entry.

    rho = nu = k   C = B                    u from K' (y; u) = M a + h
    rho = nu < k   C = [B, E]               a = a0 + N z, N' (M a + h) = 0 along the passive motions
    rho = k < nu   C = E, N = gamma         least norm in u, least squares in the target
    forward        C = E, N = gamma         N' (M a + h - tau) = 0

docs/derivations.md, "In a tick" and "Inverse dynamics"; the Python path is the oracle in the
tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.errors import AssemblyError, InputError, NotActuatedError
from holoctl.base.linalg import pivoted_qr
from holoctl.closing.assembly import assemble
from holoctl.codegen.elimination import (
    Elimination,
    eliminate,
    factored,
    least_squares,
    pivot_order,
)
from holoctl.codegen.extra import SX, casadi_module
from holoctl.codegen.rows import SymbolicRows, check_rows, symbolic_rows
from holoctl.codegen.tree import Tree, mass_matrix, symbolic_tree, tangent, tree_efforts
from holoctl.constraints.custom import BoundCustom
from holoctl.dynamics.inverse import CONSISTENT, effort_scales
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
from holoctl.mechanism.mechanism import Mechanism, check_mechanism, rows_that_open
from holoctl.projector.projection import Partition, check_partition, partition, projected
from holoctl.rows.consistency import ALLOWANCE, TOLERANCES, StateLimits

__all__ = [
    "Expressions",
    "Measures",
    "broken_rows",
    "derivatives",
    "earlier",
    "forward_function",
    "holding_function",
    "inverse_function",
    "measures",
    "state_doubt",
    "symbolic",
    "terms_function",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

UNIT_NORM = 5e11
"""One over how far the square of a norm may be from one: what Pinocchio takes as normalised."""

REDUCED = 1e7
"""``N' M N`` is in doubt where a pivot is less than one over this of its diagonal entry."""

DERIVED = 3.0
"""Derivatives are in doubt at pivots so many times larger than their function."""

TURNED = 3.0
"""The largest sum of magnitudes along three axes, ``max_k sum_j |e_k . w_j|``, changes by so much
at most when the axes are turned: it is at least a third of the sum of all ``|w_j|``, and no more
than that sum."""

SAMPLES = 8
"""Pivots are chosen at so many closed configurations near the reference, besides it."""


@dataclass(frozen=True, eq=False)
class Expressions:
    """What the laws of one mechanism are made from; see `symbolic`.

    Attributes
    ----------
    mech : Mechanism
    partition : Partition
        Which rows count, decided once.
    q, v, t : (nq, 1), (nv, 1), (1, 1) symbols
    tree : Tree
    rows : SymbolicRows
        The kept rows; along other axes of the same span where that is cheaper.
    every : SymbolicRows
        All rows that can be off at all, redundant ones too, as they are defined.
    open : int array
        Which rows these are.
    samples : (s, nq) array
        The closed configurations at which pivots are chosen.
    doubt : tuple of expressions
        Of the state: each is below one where the state can be trusted.
    """

    mech: Mechanism
    partition: Partition
    q: SX
    v: SX
    t: SX
    tree: Tree
    rows: SymbolicRows
    every: SymbolicRows
    open: Indices
    samples: Array
    doubt: tuple[SX, ...]


def symbolic(mech: Mechanism, partition_: Partition | None = None) -> Expressions:
    """Symbols, tree and rows of a mechanism, for the functions of this module.

    Parameters
    ----------
    mech : Mechanism
    partition_ : Partition, optional
        Default: decided at the configuration assembled from ``mech.reference``.

    Returns
    -------
    Expressions

    Raises
    ------
    InputError
        Without CasADi; for a joint or a constraint that has no expressions, or wrong ones, by
        name; for a partition of another mechanism.
    AssemblyError
        If the reference configuration cannot be assembled.
    """
    ca = casadi_module()
    check_mechanism(mech)
    check_rows(mech)
    middle, _ = assemble(mech)
    part = partition(mech, middle) if partition_ is None else partition_
    check_partition(mech, part)
    q, v, t = ca.SX.sym("q", mech.nq), ca.SX.sym("v", mech.nv), ca.SX.sym("t")
    tree = symbolic_tree(mech.model, q)
    samples = _samples(mech, middle)
    _check_customs(mech, q, t, samples)
    rows = symbolic_rows(mech, tree, v, t, part.rows, same_space=True)
    can_open = np.flatnonzero(rows_that_open(mech))
    every = symbolic_rows(mech, tree, v, t, can_open)
    norms = [sum(q[i] * q[i] for i in unit) - 1.0 for unit in tree.unit_parts]
    doubt = (*rows.doubt, *((UNIT_NORM * x) ** 2 for x in norms))
    return Expressions(mech, part, q, v, t, tree, rows, every, can_open, samples, doubt)


def _check_customs(mech: Mechanism, q: SX, t: SX, samples: Array) -> None:
    """Raise `InputError` where the expression of a Custom is not its phi."""
    ca = casadi_module()
    for bound, name in zip(mech._bound, mech.constraint_names, strict=True):
        if not isinstance(bound, BoundCustom):
            continue
        phi = ca.Function("phi", [q, t], [bound.expression(q, t)])
        for i, sample in enumerate(samples):
            x = pin.integrate(mech.model, sample, np.full(mech.nv, 0.1))  # not where it is zero
            expected, found = bound.error(x, 0.1 * i), np.array(phi(x, 0.1 * i))[:, 0]
            if not np.abs(found - expected).max() <= 1e-9 * (1.0 + np.abs(expected).max()):
                raise InputError(
                    f"{mech.name}: casadi of constraint {name!r} is not its phi: at one "
                    f"configuration it gives {found}, phi gives {expected}"
                )


def _samples(mech: Mechanism, middle: Array) -> Array:
    """Closed configurations near one, from near to far."""
    rng, found = np.random.default_rng(0), [middle]
    for i in range(SAMPLES):
        step = (0.1, 0.2, 0.3, 0.4)[i % 4] * rng.normal(size=mech.nv) * mech.column_scale
        try:
            found.append(
                assemble(mech, pin.integrate(mech.model, middle, step), restarts=0, max_iter=50)[0]
            )
        except AssemblyError:
            continue
    return np.array(found)


# -------------------------------------------------------------------------------- functions


def terms_function(E: Expressions) -> Any:
    """``terms(q, v, t) -> error, rate, G, drift, M, h, doubt``: all rows, as they are defined."""
    ca = casadi_module()
    mech, m = E.mech, E.mech.row_scale.size
    rows = symbolic_rows(mech, E.tree, E.v, E.t, np.arange(m))
    G = ca.SX.zeros(m, mech.nv)
    for i, entries in enumerate(rows.jacobian):
        for k, x in entries.items():
            G[i, k] = x
    h = tree_efforts(E.tree, E.v, ca.SX.zeros(mech.nv))
    M = ca.densify(mass_matrix(E.tree))
    norms = E.doubt[len(E.rows.doubt) :]
    outputs = [_column(rows.error), _column(rows.rate), G, _column(rows.drift), M, h]
    return ca.Function(
        "terms", [E.q, E.v, E.t], [*outputs, _total([*rows.doubt, *norms])],
        ["q", "v", "t"], ["error", "rate", "G", "drift", "M", "h", "doubt"],
    )  # fmt: skip


def inverse_function(
    E: Expressions,
    weights: Array | None = None,
    inconsistent: str = "raise",
    limits: StateLimits | None = None,
) -> Any:
    """``inverse_dynamics(q, v, target, t) -> u, a, doubt``, as `PreparedInverseDynamics.torque`.

    With limits, doubt tells of the state and of redundant rows too.

    Raises
    ------
    NotActuatedError
        If the mechanism has no motors, cannot move, or its motors drive nothing.
    InputError
        If the motors drive fewer motions than there are motors and motions.
    """
    ca = casadi_module()
    mech = E.mech
    target = ca.SX.sym("target", mech.nu)
    u, a, doubt = _inverse(E, weights, inconsistent, target)
    if limits is not None:
        doubt = _total([doubt, *state_doubt(E, limits), *_redundant_doubt(E, a)])
    return ca.Function(
        "inverse_dynamics", [E.q, E.v, target, E.t], [u, a, doubt],
        ["q", "v", "target", "t"], ["u", "a", "doubt"],
    )  # fmt: skip


def holding_function(E: Expressions, weights: Array | None = None) -> Any:
    """``holding(q, t) -> u, doubt``, as `PreparedInverseDynamics.holding`, of any state.

    Raises
    ------
    NotActuatedError, InputError
        As `inverse_function`; also where some motion is passive, which nothing may hold.
    """
    ca = casadi_module()
    u, _, doubt = _inverse(E, weights, "project", None)
    zero = ca.SX.zeros(E.mech.nv)
    u, doubt = ca.substitute([u, doubt], [E.v], [zero])
    return ca.Function("holding", [E.q, E.t], [u, doubt], ["q", "t"], ["u", "doubt"])


def forward_function(E: Expressions) -> Any:
    """``forward_dynamics(q, v, tau, t) -> a, doubt``, as `PreparedForwardDynamics.acceleration`."""
    ca = casadi_module()
    mech, part = E.mech, E.partition
    tau = ca.SX.sym("tau", mech.nv)
    free = part.independent
    K = _bordered(E, _selection(mech.nv, free), 1.0 / mech.column_scale[free])
    a, k = K.motion([ca.SX(0.0)] * free.size), free.size
    doubt = [*E.doubt, *K.doubt]
    if k:
        N = K.basis(k)
        w = tree_efforts(E.tree, E.v, a) - tau
        z, more, again = _follow(E, N, w)
        a, doubt = a + N @ z, [*doubt, *more]
        a = a + N @ again(tree_efforts(E.tree, E.v, a) - tau)  # what rounding left over
    return ca.Function(
        "forward_dynamics", [E.q, E.v, tau, E.t], [a, _total(doubt)],
        ["q", "v", "tau", "t"], ["a", "doubt"],
    )  # fmt: skip


def derivatives(E: Expressions, function: Any) -> Any:
    """Derivatives of the first output of a function of this module by its inputs but t.

    Along q they are by a step in the tangent space, nv columns, as `pin.integrate` takes it. The
    order of pivots is fixed, so the derivative is exact where the function is not in doubt.
    """
    ca = casadi_module()
    names = [function.name_in(i) for i in range(function.n_in())]
    inputs = [{"q": E.q, "v": E.v, "t": E.t}.get(n) for n in names]
    inputs = [
        ca.SX.sym(n, function.numel_in(i)) if x is None else x
        for i, (n, x) in enumerate(zip(names, inputs, strict=True))
    ]
    outputs = function.call(inputs, True, False)
    # a derivative goes with the square of what its function goes with: the guard trips earlier
    first, doubt = ca.vec(outputs[0]), DERIVED**2 * outputs[-1]
    found, labels = [], []
    for n, x in zip(names, inputs, strict=True):
        if n == "t":
            continue
        J = ca.jacobian(first, x)
        found.append(ca.densify(J @ tangent(E.mech.model, E.q) if n == "q" else J))
        labels.append(f"d{function.name_out(0)}_d{n}")
    return ca.Function(
        f"{function.name()}_derivatives", inputs, [*found, doubt], names, [*labels, "doubt"]
    )


# -------------------------------------------------------------------------------- the state


@dataclass(frozen=True, eq=False)
class Measures:
    """What a certificate is made of, as expressions; scaled, an entry for each row.

    The kept rows of the law may stand along other axes than those of the constraint. Errors and
    rates are of the rows as they are defined; what they are compared with is taken along the axes
    of the law, where it is computed already, and divided by `TURNED` to be on the safe side.

    Attributes
    ----------
    errors, rates : lists
    speed : expression
        What the largest rate is compared with.
    """

    errors: list[SX]
    rates: list[SX]
    speed: SX

    @property
    def closure(self) -> SX:
        """`closure` of the certificate."""
        return _largest(self.errors)

    @property
    def velocity(self) -> SX:
        """`velocity` of the certificate, or up to `earlier` times it."""
        return _largest(self.rates) / self.speed


def measures(E: Expressions) -> Measures:
    """How far the state is off, over all rows."""
    scales, rows = E.mech.row_scale[E.open], E.every
    return Measures(
        [float(s) * e for s, e in zip(scales, rows.error, strict=True)],
        [float(s) * r for s, r in zip(scales, rows.rate, strict=True)],
        1.0 + _largest(_row_sums(_terms(E, _scalars(E.v)))) / _safety(E),
    )


def _safety(E: Expressions) -> float:
    return TURNED if E.rows.turned else 1.0


def earlier(E: Expressions) -> float:
    """How many times `velocity` and `acceleration` may be larger than those of the certificate."""
    return _safety(E) ** 2


def broken_rows(E: Expressions, a: SX) -> tuple[list[SX], list[SX], SX]:
    """``G a + drift`` of kept and of redundant rows, scaled, and what it is compared with.

    Baumgarte's terms are added where a constraint asks for them.
    """
    mech, kept, redundant = E.mech, E.partition.rows, _left_out(E)
    needed = [
        *_needed(mech, E.rows, kept),
        *(_needed(mech, E.every, E.open)[i] for i in redundant),
    ]
    scales = mech.row_scale[np.concatenate([kept, E.open[redundant]])]
    needed = [float(s) * x for s, x in zip(scales, needed, strict=True)]
    terms = _terms(E, _scalars(a))
    size = _largest(_row_sums(terms)) + _largest(needed)
    left = [_total(row) + x for row, x in zip(terms, needed, strict=True)]
    safe = 1.0 + size / _safety(E)
    return left[: len(kept)], left[len(kept) :], safe


def _left_out(E: Expressions) -> Indices:
    """Places, among the rows that can be off, of those that are not kept."""
    return np.flatnonzero(~np.isin(E.open, E.partition.rows))


def _terms(E: Expressions, x: list[SX]) -> list[list[SX]]:
    """Products of the entries of kept and redundant rows, scaled, with those of a vector."""
    kept, redundant = E.partition.rows, _left_out(E)
    rows = [*E.rows.jacobian, *(E.every.jacobian[i] for i in redundant)]
    scales = E.mech.row_scale[np.concatenate([kept, E.open[redundant]])]
    return [
        [float(s) * g * x[k] for k, g in row.items()] for s, row in zip(scales, rows, strict=True)
    ]


def _row_sums(terms: list[list[SX]]) -> list[SX]:
    return [_total(map(_magnitude, row)) for row in terms]


def state_doubt(E: Expressions, limits: StateLimits) -> list[SX]:
    """Terms whose sum is below one only where the state is within its limits."""
    found, off = [], measures(E)
    if limits.closure is not None:
        found += [(e / limits.closure) ** 2 for e in off.errors]
    if limits.velocity is not None:
        found += [(r / (limits.velocity * off.speed)) ** 2 for r in off.rates]
    return found


def _redundant_doubt(E: Expressions, a: SX) -> list[SX]:
    """Likewise where the motion keeps the redundant rows, as far as the state allows."""
    if not _left_out(E).size:
        return []
    _, left, size = broken_rows(E, a)
    off = measures(E)
    allowed = casadi_module().fmax(
        TOLERANCES["acceleration"], ALLOWANCE * (off.closure + off.velocity / earlier(E))
    )
    return [(x / (allowed * size)) ** 2 for x in left]


# --------------------------------------------------------------------------------- the laws


def _inverse(
    E: Expressions, weights: Array | None, inconsistent: str, target: SX | None
) -> tuple[SX, SX, SX]:
    """u, a and doubt; without a target, of holding still."""
    mech, part = E.mech, E.partition
    # the same checks, in the same words
    prepared = PreparedInverseDynamics(mech, part, weights, inconsistent)
    rho, k, nu = part.actuation_rank, part.independent.size, mech.nu
    if k == 0 or rho == 0:
        raise NotActuatedError(f"{mech.name}: the motors drive none of its {k} motions")
    if rho < min(nu, k):
        raise InputError(
            f"{mech.name}: its {nu} motors drive {rho} of {k} motions, fewer than there are motors "
            "and motions, so the inverse dynamics cannot be compiled (other functions can); "
            "PreparedInverseDynamics takes it"
        )
    if rho < nu:
        return _redundant(E, prepared.weights, inconsistent, target)
    if rho < k and target is None:
        raise InputError(
            f"{mech.name}: some of its motions are passive, so nothing may hold it still and no "
            "law for that can be compiled; PreparedInverseDynamics.holding takes it"
        )
    return _driven(E, target)


def _driven(E: Expressions, target: SX | None) -> tuple[SX, SX, SX]:
    """As many motors as motions, or fewer: u beside the multipliers, ``K' (y; u) = M a + h``."""
    ca = casadi_module()
    mech = E.mech
    u_scale, _ = effort_scales(mech)
    passive = _passive_coordinates(E)
    C = np.hstack([mech.B, _selection(mech.nv, passive)])
    unit = np.concatenate([u_scale, 1.0 / mech.column_scale[passive]])
    K = _bordered(E, C, unit)
    doubt = [*E.doubt, *K.doubt]
    if target is None:
        a = ca.SX.zeros(mech.nv)
    else:
        a = K.motion([*_scalars(target), *[ca.SX(0.0)] * passive.size])
    w = tree_efforts(E.tree, E.v, a)
    if passive.size:
        N = K.basis(passive.size)
        z, more, again = _follow(E, N, w)
        a, doubt = a + N @ z, [*doubt, *more]
        w = tree_efforts(E.tree, E.v, a)
        moved = N @ again(w)  # what rounding left over
        a, w = a + moved, w + _inertia_times(E, moved)
    u = K.efforts(w)[: mech.nu]
    return _column(u), a, _total(doubt)


def _follow(E: Expressions, N: SX, w: SX) -> tuple[SX, list[SX], Callable[[SX], SX]]:
    """z with ``N' (w + M N z) = 0``: the motions along N follow the dynamics.

    Also the solve as a function: doubts add up, and errors multiply, so that a second step with
    what the first has left over keeps them small up to where the guard trips.
    """
    NT = N.T
    reduced = factored(NT @ (mass_matrix(E.tree) @ N), REDUCED)

    def again(w: SX) -> SX:
        return _column(reduced.solve(_scalars(-(NT @ w))))

    return again(w), reduced.doubt, again


def _inertia_times(E: Expressions, a: SX) -> SX:
    """``M a``, without forming M."""
    return tree_efforts(E.tree, casadi_module().SX.zeros(E.mech.nv), a, gravity=False)


def _redundant(
    E: Expressions, weights: Array | None, inconsistent: str, target: SX | None
) -> tuple[SX, SX, SX]:
    """More motors than motions: the nearest motion, and the efforts of least norm."""
    ca = casadi_module()
    mech, independent = E.mech, E.partition.independent
    unit = mech.column_scale[independent]
    u_scale, cost = effort_scales(mech, weights)
    K = _bordered(E, _selection(mech.nv, independent), 1.0 / unit)
    N = K.basis(independent.size)
    Y = ca.SX(np.diag(u_scale)) @ ca.SX(mech.B.T) @ N @ ca.SX(np.diag(unit))  # (nu, k), scaled
    Q, R, doubt = least_squares(_columns(Y))
    a = ca.SX.zeros(mech.nv)
    if target is not None:
        bias = K.motion([ca.SX(0.0)] * independent.size)
        left = _scalars(ca.SX(u_scale) * (target - ca.SX(mech.B.T) @ bias))
        y = []
        for column in Q:  # Q' (target - B' bias), and what is left of it
            y.append(ca.dot(_column(column), _column(left)))
            left = [x - y[-1] * c for x, c in zip(left, column, strict=True)]
        if inconsistent == "raise":
            doubt = [*doubt, *((x / (0.1 * CONSISTENT)) ** 2 for x in left)]
        ydd = ca.SX(unit) * _column(_upper_solve(R, y))
        a = bias + N @ ydd
    w = _scalars(ca.SX(unit) * (N.T @ tree_efforts(E.tree, E.v, a)))
    if weights is not None:
        Q, R, more = least_squares(_columns(ca.SX(np.diag(1.0 / cost)) @ Y))
        # weights are unequal by intention, so pivots may be a hundred times smaller here
        doubt = [*doubt, *((0.01 / float(cost.min())) ** 2 * x for x in more)]
    A = Y if weights is None else ca.SX(np.diag(1.0 / cost)) @ Y
    x, left = ca.SX.zeros(mech.nu), _column(w)
    for _ in range(1 if weights is None else 2):  # with unequal weights Q loses digits
        s = _lower_solve(R, _scalars(left))
        x = x + sum((s[j] * _column(Q[j]) for j in range(len(Q))), ca.SX.zeros(mech.nu))
        left = _column(w) - A.T @ x
    u = ca.SX(u_scale / cost) * x
    return u, a, _total([*E.doubt, *K.doubt, *doubt])


# ------------------------------------------------------------------------- bordered matrix


@dataclass(frozen=True, eq=False)
class _Bordered:
    """``K = [G; C']`` eliminated."""

    elimination: Elimination
    right: list[SX]

    @property
    def doubt(self) -> list[SX]:
        return self.elimination.doubt

    def motion(self, c: list[SX]) -> SX:
        """a with ``G a = -drift`` and ``C' a = c``."""
        return _column(self.elimination.solve([*self.right, *c]))

    def efforts(self, w: SX) -> list[SX]:
        """x with ``[G' C] (y; x) = w``."""
        return self.elimination.solve_transposed(_scalars(w))[len(self.right) :]

    def basis(self, count: int) -> SX:
        """The motions that the last `count` rows of C' alone measure, a column each."""
        ca = casadi_module()
        n = len(self.elimination.order)
        columns = []
        for k in range(n - count, n):
            unit = [ca.SX(float(i == k)) for i in range(n)]
            columns.append(ca.sparsify(_column(self.elimination.solve(unit))))
        return ca.horzcat(*columns)


def _bordered(E: Expressions, C: Array, unit: Array) -> _Bordered:
    """Eliminate ``[G; C']``; `unit` scales the rows of C'."""
    ca = casadi_module()
    mech, part = E.mech, E.partition
    rows: list[dict[int, SX]] = [dict(row) for row in E.rows.jacobian]
    rows += [{int(i): ca.SX(float(c[i])) for i in np.flatnonzero(c)} for c in C.T]
    row_unit = np.concatenate([mech.row_scale[part.rows], unit])
    at = ca.SX.zeros(mech.nv, mech.nv)
    for i, row in enumerate(rows):
        for j, x in row.items():
            at[i, j] = x
    evaluate = ca.Function("K", [E.q, E.t], [at])
    scale = row_unit[:, None] * mech.column_scale
    samples = np.array([scale * np.array(evaluate(q, 0.0)) for q in E.samples])
    order = pivot_order(samples[np.isfinite(samples).all(axis=(1, 2))])
    elimination = eliminate(rows, order, row_unit, mech.column_scale)
    return _Bordered(elimination, _right(E))


def _right(E: Expressions) -> list[SX]:
    """``-drift`` of the kept rows, less Baumgarte's terms where a constraint asks for them."""
    return [-x for x in _needed(E.mech, E.rows, E.partition.rows)]


def _needed(mech: Mechanism, rows: SymbolicRows, which: Indices) -> list[SX]:
    """Drift and Baumgarte's terms of rows."""
    found = []
    for i, time in enumerate(_time_constants(mech)[which]):
        x = rows.drift[i]
        if np.isfinite(time):
            x = x + (2.0 / time) * rows.rate[i] + rows.error[i] / (time * time)
        found.append(x)
    return found


def _time_constants(mech: Mechanism) -> Array:
    """t_stab of each row, s; inf for none."""
    times = [
        np.full(len(b.labels), np.inf if c.t_stab is None else c.t_stab)
        for b, c in zip(mech._bound, mech.constraints, strict=True)
    ]
    return np.concatenate([np.zeros(0), *times])


def _passive_coordinates(E: Expressions) -> Indices:
    """Coordinates that tell the passive motions apart best; none where there are no such."""
    mech, part = E.mech, E.partition
    count = part.independent.size - part.actuation_rank
    if count <= 0:
        return np.zeros(0, dtype=np.intp)
    P = projected(mech, E.samples[0], np.zeros(mech.nv), 0.0, part, "orthonormal")
    c = mech.column_scale[:, None]
    gamma = P.gamma / c
    driven = pivoted_qr(gamma.T @ (c * mech.B), part.actuation_rank)
    passive = gamma @ driven.q[:, part.actuation_rank :]
    return np.sort(pivoted_qr(passive.T, count).pivots[:count])


def _selection(nv: int, coordinates: Indices) -> Array:
    chosen: Array = np.eye(nv)[:, coordinates]
    return chosen


# ----------------------------------------------------------------------------- expressions


def _column(scalars: Iterable[SX]) -> SX:
    ca = casadi_module()
    found = list(scalars)
    return ca.vertcat(*found) if found else ca.SX.zeros(0)


def _scalars(x: SX) -> list[SX]:
    return [x[i] for i in range(x.numel())]


def _columns(A: SX) -> list[list[SX]]:
    dense = casadi_module().densify(A)
    return [[dense[i, j] for i in range(A.shape[0])] for j in range(A.shape[1])]


def _total(terms: Iterable[SX]) -> SX:
    total = casadi_module().SX(0.0)
    for x in terms:
        total = total + x
    return total


def _magnitude(x: SX) -> SX:
    return casadi_module().fabs(x)


def _largest(terms: Iterable[SX]) -> SX:
    """The largest magnitude; zero where there are no terms."""
    ca = casadi_module()
    found = ca.SX(0.0)
    for x in terms:
        found = ca.fmax(found, ca.fabs(x))
    return found


def _upper_solve(R: list[list[SX]], b: list[SX]) -> list[SX]:
    x = list(b)
    for j in reversed(range(len(b))):
        x[j] = x[j] / R[j][j]
        for i in range(j):
            x[i] = x[i] - R[i][j] * x[j]
    return x


def _lower_solve(R: list[list[SX]], b: list[SX]) -> list[SX]:
    """x with ``R' x = b``."""
    x = list(b)
    for j in range(len(b)):
        x[j] = x[j] / R[j][j]
        for i in range(j + 1, len(b)):
            x[i] = x[i] - R[j][i] * x[j]
    return x
