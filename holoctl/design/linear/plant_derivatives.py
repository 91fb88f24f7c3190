"""Derivatives of the acceleration by the state, along the motions, and by the efforts.

    a_q gamma + a_v D        a_v gamma        a_tau B

They are exact with compiled derivatives; otherwise by differences (numeric_differentiation.py).
Reference: docs/derivations.md, "Linear models".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import largest
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.design.linear.minimal_coordinates import MinimalCoordinates
from holoctl.design.linear.numeric_differentiation import (
    STEPS_OF_RATES,
    STEPS_OF_STATES,
    check_kink,
    derivative,
)
from holoctl.dynamics.forward import accelerate
from holoctl.dynamics.tick.prepared_forward import PreparedForwardDynamics
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.projection import projected

__all__ = ["PlantDerivatives", "by_code", "by_differences"]

Acceleration = Callable[[Vector, Vector, Vector, float], Vector]


class PlantDerivatives(NamedTuple):
    """The acceleration at a point and its derivatives.

    Attributes
    ----------
    a : (nv,) array
        The acceleration at the point, rad/s^2 or m/s^2.
    by_y, by_yd : (nv, n) arrays
        Its derivatives by the minimal coordinates and their rates.
    by_u : (nv, nu) array
        Its derivative by the motor efforts.
    """

    a: Vector
    by_y: Array
    by_yd: Array
    by_u: Array


def by_code(
    code: Compiled, part: Partition, q: Vector, v: Vector, u: Vector, t: float,
    at: MinimalCoordinates,
) -> PlantDerivatives:  # fmt: skip
    """Exact derivatives of compiled forward dynamics; differences, or their error, if the guard of
    the compiled function refuses."""
    mech = code.mech
    B, tau = mech.B, mech.B @ u
    try:
        a_q, a_v, a_tau = code.forward_dynamics_derivatives(q, v, tau, t)
    except SingularityError:
        return by_differences(mech, part, q, v, u, t, at)
    a = code.forward_dynamics(q, v, tau, t)
    by_y, by_yd = a_q @ at.gamma + a_v @ at.change, a_v @ at.gamma
    if mech.forces:  # without forces the acceleration has no kink
        slopes = np.hstack([by_y, by_yd]).T / mech.column_scale
        directions = _directions(mech, part, q, v, tau, t, at, code.forward_dynamics)
        for slope, (f, what, unit) in zip(slopes, directions, strict=True):
            check_kink(f, slope * unit, f"{mech.name}: the acceleration along {what}")
    return PlantDerivatives(a, by_y, by_yd, a_tau @ B)


def by_differences(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, u: Vector, t: float,
    at: MinimalCoordinates,
) -> PlantDerivatives:  # fmt: skip
    """Derivatives by differences of the forward dynamics."""
    tau, c, n = mech.B @ u, mech.column_scale[:, None], part.independent.size
    prepared = PreparedForwardDynamics(mech, part)
    acceleration = _acceleration(prepared)
    columns = np.zeros((mech.nv, 2 * n))
    for j, (f, what, unit) in enumerate(_directions(mech, part, q, v, tau, t, at, acceleration)):
        steps = STEPS_OF_STATES if j < n else STEPS_OF_RATES
        columns[:, j] = derivative(f, steps, f"{mech.name}: the acceleration along {what}") / unit
    columns *= c
    response = prepared.at(q, v, t)
    none = response(np.zeros(mech.nv))
    by_u = np.array([response(b) - none for b in mech.B.T]).reshape(mech.nu, mech.nv)
    a = acceleration(q, v, tau, t)
    return PlantDerivatives(a, columns[:, :n], columns[:, n:], by_u.T)


def _acceleration(prepared: PreparedForwardDynamics) -> Acceleration:
    """Forward dynamics without stabilisation: along closed motions stabilisation would only add
    rounding errors, amplified by 1 / T^2."""
    mech, part = prepared.mech, prepared.partition
    if not mech.stabilised:
        return prepared.acceleration

    def unstabilised(q: Vector, v: Vector, tau: Vector, t: float) -> Vector:
        P = projected(mech, q, v, t, part, t_stab=False)
        return accelerate(P, tau + P.terms.F)[0]

    return unstabilised


def _directions(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, tau: Vector, t: float,
    at: MinimalCoordinates, acceleration: Acceleration,
) -> Iterator[tuple[Callable[[float], Vector], str, float]]:  # fmt: skip
    """For each y, then each yd: the scaled acceleration as a function of a scaled step, a name, and
    the step of y or yd that has the scaled size one."""
    c = mech.column_scale
    still = np.zeros(mech.nv)
    names = [mech.coordinate_names[i] for i in part.independent]
    for moves, changes, of in ((True, at.change, ""), (False, at.gamma, "the rate of ")):
        for x, xd, name in zip(at.gamma.T, changes.T, names, strict=True):
            unit = 1.0 / largest(x / c)
            step, change = (unit * x if moves else still), unit * xd

            def f(h: float, step: Vector = step, change: Vector = change) -> Vector:
                moved = pin.integrate(mech.model, q, h * step) if step.any() else q
                return acceleration(moved, v + h * change, tau, t) / c

            yield f, f"{of}{name}", unit
