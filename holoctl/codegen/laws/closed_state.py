"""The closed state from measured joints: the square system, eliminated with its structure.

    K = [G; A S; N']        closing    K d = [-phi; fitted; 0]        a correction
                            seeing     K gamma = [0; A; 0]            motions by the sensors
                                       K drift = [-phi_t; 0; 0]       ... and by time
                            square     K itself, for states where the order of pivots is inaccurate

G are the kept rows, S the Jacobian of the sensors, A what weighs sensors that are more than the
motions they see, N the idle motions. A and N are inputs, the *borders*; there is no A where
sensors are as many as motions. estimation/ has the law, and is the oracle in the tests; the C
around these functions is in codegen/templates/closed_state.c.in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Indices
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.elimination import Elimination, eliminate, pivot_order
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.border_expressions import BorderExpressions, Sensing, borders_at
from holoctl.codegen.laws.measurement_model import (
    difference_function,
    reverse_function,
    sensor_rows,
)
from holoctl.codegen.laws.tangent_step import placed_function
from holoctl.codegen.matrices import column, dense, scalars, total
from holoctl.projector.partition import most_condition

__all__ = ["ClosedStateLaw", "closed_state"]


@dataclass(frozen=True, eq=False)
class ClosedStateLaw:
    """CasADi functions, and what the code around them depends on.

    Attributes
    ----------
    sensing : Sensing
    first : BorderExpressions
        Where it starts.
    seen, idle : int
        How many motions the sensors see, and how many move nothing else and are held.
    known : bool
        Whether the steps of the sensors are steps of coordinates, so that nothing is fitted.
    held : (s,) int array
        Which entries of N (nv, i), row by row, are not zero always: the inputs of that name.
    timed : bool
        Whether constraints depend on time.
    difference : ``difference(q, x) -> step``
    reverse : ``reverse(x, step) -> numbers``
        From which a step of the sensors leads to x; None where that is x - step, or not needed.
    moving : ``moving(q, d) -> q``
    closing : ``closing(q, fitted, A, N, t) -> d, phi, det, guard``
        phi are the errors of the kept rows, scaled; ``fitted`` is ``A (x - s(q))``.
    seeing : ``seeing(q, A, N, t) -> gamma, drift, phi, left_out, det, guard``
        gamma (nv, m); left_out are the errors of all other rows, scaled.
    square : ``square(q, A, N, t) -> K, S, phi, by_time, left_out, guard``
        Scaled: K (nv, nv), S (m, nv) where there is an A, and phi_t of the kept rows.

    drifting : ``drifting(q, v, t) -> drift``
        Of the kept rows, scaled; for a transmission.

    Inputs that there are not have no entries; outputs that there are not have one, which is zero.
    """

    sensing: Sensing
    first: BorderExpressions
    seen: int
    idle: int
    known: bool
    held: Indices
    timed: bool
    difference: Any
    reverse: Any
    moving: Any
    closing: Any
    seeing: Any
    square: Any
    drifting: Any

    @property
    def bordered(self) -> bool:
        """Whether there are borders to be decided."""
        return self.weighed or self.idle > 0

    @property
    def weighed(self) -> bool:
        """Whether there is an A."""
        return self.sensing.sensors.columns.size > self.seen


def closed_state(E: Expressions, sensing: Sensing) -> ClosedStateLaw:
    """The functions for the measured joints; all unobserved motions must be idle."""
    ca, mech, part, sensors = casadi_module(), E.mech, E.partition, sensing.sensors
    first, *borders = borders_at(mech, part, sensing, list(E.samples))
    c, u = mech.column_scale, sensors.unit
    m, idle = sensors.columns.size, first.N.shape[1]
    b = part.independent.size - idle
    known = m == b and not sensors.of_cut.size
    N_used = np.any([x.N != 0.0 for x in (first, *borders)], axis=0)
    held_at = np.flatnonzero(N_used)
    N, A = ca.SX.sym("N", held_at.size), ca.SX.sym("A", b * m if m > b else 0)
    S = sensor_rows(E, sensors)
    weighed = m > b
    fits = _weighed(S, A, b) if weighed else S
    held: list[dict[int, SX]] = [{} for _ in range(idle)]
    for at, (i, j) in enumerate(zip(*np.nonzero(N_used), strict=True)):
        held[int(j)][int(i)] = N[at]
    rows = [*(dict(row) for row in E.rows.jacobian), *fits, *held]
    fit_unit = np.ones(b) if weighed else 1.0 / u
    row_unit = np.concatenate([mech.row_scale[part.rows], fit_unit, np.ones(idle)])
    K = _eliminated(E, rows, row_unit, (A, N), [(x.A.ravel(), x.N[N_used]) for x in borders])

    r, zero = len(E.rows.error), ca.SX(0.0)
    phi = [float(s) * x for s, x in zip(mech.row_scale[part.rows], E.rows.error, strict=True)]
    others = np.flatnonzero(~np.isin(E.open, part.rows))
    left_out = [float(mech.row_scale[E.open[i]]) * E.every.error[i] for i in others]
    by_time = [ca.substitute(x, E.v, ca.SX.zeros(mech.nv)) for x in E.rows.rate]
    drifts = [float(s) * x for s, x in zip(mech.row_scale[part.rows], E.rows.drift, strict=True)]
    moving = [float(s) * x for s, x in zip(mech.row_scale[part.rows], by_time, strict=True)]
    timed = bool(ca.depends_on(column([*phi, *left_out, *by_time]), E.t))

    def solved(of_rows: list[SX], of_sensors: list[SX]) -> SX:
        return column(K.solve([*of_rows, *of_sensors, *[zero] * idle]))

    fitted = ca.SX.sym("fitted", 0 if known else b)
    d = solved([-x for x in E.rows.error], [zero] * b if known else scalars(fitted))
    by_sensor = [[A[j * m + k] for j in range(b)] if weighed else _unit(k, b) for k in range(m)]
    gamma = ca.horzcat(*(solved([zero] * r, x) for x in by_sensor), ca.SX(mech.nv, 0))
    drift = solved([-x for x in by_time], [zero] * b) if timed else zero
    guard = total([*E.rows.guard, *K.guard])
    given, names = [A, N, E.t], ["A", "N", "t"]
    return ClosedStateLaw(
        sensing, first, b, idle, known, held_at, timed,
        difference_function(E, sensors),
        reverse_function(E, sensors) if sensors.whole and not known else None,
        _moving(E),
        ca.Function(
            "closing", [E.q, fitted, *given], [ca.densify(d), _dense(phi), K.determinant, guard],
            ["q", "fitted", *names], ["d", "phi", "det", "guard"],
        ),
        ca.Function(
            "seeing", [E.q, *given],
            [ca.densify(gamma), ca.densify(drift), _dense(phi), _dense(left_out), K.determinant,
             guard],
            ["q", *names], ["gamma", "drift", "phi", "left_out", "det", "guard"],
        ),
        ca.Function(
            "square", [E.q, *given],
            [_scaled(rows, row_unit, c), _scaled(S, 1.0 / u, c) if weighed else zero, _dense(phi),
             _dense(moving), _dense(left_out), total(E.rows.guard)],
            ["q", *names], ["K", "S", "phi", "by_time", "left_out", "guard"],
        ),
        ca.Function("drifting", [E.q, E.v, E.t], [_dense(drifts)], ["q", "v", "t"], ["drift"]),
    )  # fmt: skip


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


def _unit(k: int, n: int) -> list[SX]:
    ca = casadi_module()
    return [ca.SX(float(i == k)) for i in range(n)]


def _eliminated(
    E: Expressions, rows: list[dict[int, SX]], row_unit: Array, borders: tuple[SX, SX],
    values: list[tuple[Array, Array]],
) -> Elimination:  # fmt: skip
    """K eliminated, with pivots that are large at all samples of E, with these borders there."""
    ca, c = casadi_module(), E.mech.column_scale
    evaluate = ca.Function("K", [E.q, E.t, *borders], [dense(rows, len(rows))])
    scale = row_unit[:, None] * c
    found = [evaluate(q, 0.0, *there) for q, there in zip(E.samples, values, strict=True)]
    samples = np.array([scale * np.array(K) for K in found])
    order = pivot_order(samples[np.isfinite(samples).all(axis=(1, 2))])
    least = max(E.precision.least_pivot, 1.0 / most_condition(E.partition))
    return eliminate(rows, order, row_unit, c, least)


def _moving(E: Expressions) -> Any:
    """``moving(q, d) -> q (+) d``."""
    ca, nv = casadi_module(), E.mech.nv
    q, d = ca.SX.sym("q", E.mech.nq), ca.SX.sym("d", nv)
    placed, _, _ = placed_function(E).call([q, ca.vertcat(d, ca.SX.zeros(nv))], True, False)
    return ca.Function("moving", [q, d], [ca.densify(placed)], ["q", "d"], ["moved"])


def _scaled(rows: list[dict[int, SX]], row_unit: Array, column_unit: Array) -> SX:
    ca = casadi_module()
    scaled = [
        {k: float(unit * column_unit[k]) * x for k, x in row.items()}
        for unit, row in zip(row_unit, rows, strict=True)
    ]
    return ca.densify(dense(scaled, column_unit.size))


def _dense(entries: list[SX]) -> SX:
    """A column of them, with at least one entry."""
    ca = casadi_module()
    return ca.densify(column(entries)) if entries else ca.SX.zeros(1)
