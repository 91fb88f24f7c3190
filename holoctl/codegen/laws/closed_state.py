"""The closed state from what is measured: the square system, eliminated with its structure.

    K = [G; A S; N']        closing    K d = [-phi; fitted; 0]        a correction
                            seeing     K gamma = [0; A; 0]            motions by the sensors
                                       K drift = [-phi_t; 0; 0]       ... and by time
                            bordering  K X = [0; I; 0], K Z = [0; 0; I], S X

G are the kept rows, S the Jacobian of the sensors, A what weighs sensors that are more than the
motions they see, N the idle motions. A and N are inputs, the *borders*; there is no A where
sensors are as many as motions. estimation/ has the law, and is the oracle in the tests; the C
around these functions is in codegen/exported/templates/closed_state.c.in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.tolerances import LEAST_PIVOT
from holoctl.codegen.casadi_extra import SX, casadi_module
from holoctl.codegen.elimination import Elimination, eliminate, pivot_order
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.placed import placed_function
from holoctl.codegen.laws.readings import difference_function, sensor_rows
from holoctl.codegen.matrices import column, dense, scalars, total
from holoctl.estimation.readings import Readings
from holoctl.projector.partition import most_condition

__all__ = ["Borders", "ClosedState", "closed_state"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Borders:
    """A and N at some configuration.

    Attributes
    ----------
    A : (b, m) array
        By rates of sensors in their own units; empty, (0, m), where sensors are no more than the
        motions they see.
    N : (nv, i) array
        By rates in their own units.
    """

    A: Array
    N: Array


@dataclass(frozen=True, eq=False)
class ClosedState:
    """CasADi functions, and what the code around them depends on.

    Attributes
    ----------
    sensors : Readings
    seen, idle : int
        How many motions the sensors see, and how many move nothing else and are held.
    known : bool
        Whether the steps of the sensors are steps of coordinates, so that nothing is fitted.
    support : (s,) int array
        Which entries of N, row by row, are not zero always: the inputs of that name.
    timed : bool
        Whether there is a t.
    difference : ``difference(q, x) -> step``
    moving : ``moving(q, d) -> q``
    closing : ``closing(q[, fitted][, A][, N][, t]) -> d, phi, det, doubt``
        phi are the errors of the kept rows, scaled; ``fitted`` is ``A (x - s(q))``.
    seeing : ``seeing(q[, A][, N][, t]) -> gamma, phi, left_out, det, doubt[, drift]``
        gamma (nv, m); left_out are the errors of all other rows, scaled.
    bordering : ``bordering(q[, A][, N][, t]) -> X, SX, Z, det``, or None without borders
    """

    sensors: Readings
    seen: int
    idle: int
    known: bool
    support: Indices
    timed: bool
    difference: Any
    moving: Any
    closing: Any
    seeing: Any
    bordering: Any

    @property
    def weighed(self) -> bool:
        """Whether there is an A."""
        return self.sensors.columns.size > self.seen


def closed_state(E: Expressions, sensors: Readings, borders: list[Borders]) -> ClosedState:
    """The functions; `borders` are those at the samples of E.

    Raises
    ------
    InputError
        For a cut joint that has no expressions.
    """
    ca, mech, part = casadi_module(), E.mech, E.partition
    m, idle = sensors.columns.size, borders[0].N.shape[1]
    b = part.independent.size - idle
    known = m == b and not sensors.of_cut.size
    N_used = np.any([x.N != 0.0 for x in borders], axis=0)
    support = np.flatnonzero(N_used)
    N, A = ca.SX.sym("N", support.size), ca.SX.sym("A", b * m)
    S = sensor_rows(E, sensors)
    weighed = m > b
    fits = _weighed(S, A, b) if weighed else S
    held: list[dict[int, SX]] = [{} for _ in range(idle)]
    for at, (i, j) in enumerate(zip(*np.nonzero(N_used), strict=True)):
        held[int(j)][int(i)] = N[at]
    rows = [*(dict(row) for row in E.rows.jacobian), *fits, *held]
    fit_unit = np.ones(b) if weighed else 1.0 / sensors.unit
    row_unit = np.concatenate([mech.row_scale[part.rows], fit_unit, np.ones(idle)])
    more = [(A, "A", [x.A.ravel() for x in borders])] if weighed else []
    more += [(N, "N", [x.N[N_used] for x in borders])] if idle else []
    K = _eliminated(E, rows, row_unit, more)

    r, zero = len(E.rows.error), ca.SX(0.0)
    scales = mech.row_scale[part.rows]
    phi = [float(s) * x for s, x in zip(scales, E.rows.error, strict=True)]
    moving = [ca.substitute(x, E.v, ca.SX.zeros(mech.nv)) for x in E.rows.rate]
    fitted = ca.SX.sym("fitted", b)
    d = K.solve([*(-x for x in E.rows.error), *([zero] * b if known else scalars(fitted)),
                 *[zero] * idle])  # fmt: skip
    gamma = [
        K.solve([*[zero] * r, *(_column_of(A, k, b, m) if weighed else _unit(k, b)), *[zero] * idle])
        for k in range(m)
    ]
    drift = K.solve([*(-x for x in moving), *[zero] * (b + idle)])
    others = np.flatnonzero(~np.isin(E.open, part.rows))
    left_out = [float(mech.row_scale[E.open[i]]) * E.every.error[i] for i in others]
    doubt = total([*E.rows.doubt, *K.doubt])
    timed = bool(ca.depends_on(ca.vertcat(column(phi), column(left_out), column(moving)), E.t))
    given, names = _inputs([*((x, name) for x, name, _ in more), *([(E.t, "t")] if timed else [])])
    of_closing, closing_names = ([], []) if known else ([fitted], ["fitted"])
    by_row = ca.vertcat(*(ca.horzcat(*(gamma[k][i] for k in range(m))) for i in range(mech.nv)))
    outputs = [ca.densify(by_row), _dense(phi), _dense(left_out), K.determinant, doubt]
    labels = ["gamma", "phi", "left_out", "det", "doubt"]
    moves = timed and any(not x.is_zero() for x in drift)
    if moves:
        outputs.append(ca.densify(column(drift)))
        labels.append("drift")
    return ClosedState(
        sensors, b, idle, known, support, timed,
        difference_function(E, sensors),
        _moving(E),
        ca.Function(
            "closing", [E.q, *of_closing, *given],
            [ca.densify(column(d)), _dense(phi), K.determinant, doubt],
            ["q", *closing_names, *names], ["d", "phi", "det", "doubt"],
        ),
        ca.Function("seeing", [E.q, *given], outputs, ["q", *names], labels),
        _bordering(E, K, S, (r, b, idle), (given, names)) if more else None,
    )  # fmt: skip


def _inputs(pairs: list[tuple[SX, str]]) -> tuple[list[SX], list[str]]:
    return [x for x, _ in pairs], [name for _, name in pairs]


def _weighed(S: list[dict[int, SX]], A: SX, b: int) -> list[dict[int, SX]]:
    """``A S``, row by row."""
    found: list[dict[int, SX]] = []
    for j in range(b):
        row: dict[int, list[SX]] = {}
        for k, sensor in enumerate(S):
            for i, x in sensor.items():
                row.setdefault(i, []).append(A[j * len(S) + k] * x)
        found.append({i: total(terms) for i, terms in row.items()})
    return found


def _column_of(A: SX, k: int, b: int, m: int) -> list[SX]:
    return [A[j * m + k] for j in range(b)]


def _unit(k: int, n: int) -> list[SX]:
    ca = casadi_module()
    return [ca.SX(float(i == k)) for i in range(n)]


def _eliminated(
    E: Expressions, rows: list[dict[int, SX]], row_unit: Array,
    more: list[tuple[SX, str, list[Array]]],
) -> Elimination:  # fmt: skip
    """K eliminated, with pivots that are large at all samples of E."""
    ca, c = casadi_module(), E.mech.column_scale
    evaluate = ca.Function("K", [E.q, E.t, *(x for x, _, _ in more)], [dense(rows, len(rows))])
    scale = row_unit[:, None] * c
    samples = np.array([
        scale * np.array(evaluate(q, 0.0, *(values[k] for _, _, values in more)))
        for k, q in enumerate(E.samples)
    ])  # fmt: skip
    order = pivot_order(samples[np.isfinite(samples).all(axis=(1, 2))])
    least = max(LEAST_PIVOT, 1.0 / most_condition(E.partition))
    return eliminate(rows, order, row_unit, c, least)


def _moving(E: Expressions) -> Any:
    """``moving(q, d) -> q (+) d``."""
    ca, nv = casadi_module(), E.mech.nv
    q, d = ca.SX.sym("q", E.mech.nq), ca.SX.sym("d", nv)
    placed, _, _ = placed_function(E).call([q, ca.vertcat(d, ca.SX.zeros(nv))], True, False)
    return ca.Function("moving", [q, d], [ca.densify(placed)], ["q", "d"], ["moved"])


def _bordering(
    E: Expressions, K: Elimination, S: list[dict[int, SX]], sizes: tuple[int, int, int],
    inputs: tuple[list[SX], list[str]],
) -> Any:  # fmt: skip
    ca, (r, b, idle), n = casadi_module(), sizes, E.mech.nv
    given, names = inputs
    columns = [K.solve(_unit(k, n)) for k in range(r, n)]
    X = ca.horzcat(*(column(x) for x in columns[:b]), ca.SX(n, 0))
    Z = ca.horzcat(*(column(x) for x in columns[b:]), ca.SX(n, 0))
    return ca.Function(
        "bordering", [E.q, *given],
        [ca.densify(X), ca.densify(dense(S, n) @ X), ca.densify(Z) if idle else ca.SX.zeros(1),
         K.determinant],
        ["q", *names], ["X", "SX", "Z", "det"],
    )  # fmt: skip


def _dense(entries: list[SX]) -> SX:
    """A column of them, with at least one entry."""
    ca = casadi_module()
    return ca.densify(column(entries)) if entries else ca.SX.zeros(1)
