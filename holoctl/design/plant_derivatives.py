"""How the acceleration changes with the state, along the motions, and with the efforts.

    a_q gamma + a_v D        a_v gamma        a_tau B

exactly, by compiled derivatives, or by central differences of sixth order along each motion:

    f'(0) ~ ( 45 [f(h) - f(-h)] - 9 [f(2h) - f(-2h)] + [f(3h) - f(-3h)] ) / (60 h)

The same values give a difference of fourth order. Where the two do not agree the step is too long
(friction that sets in within a small rate), and shorter ones are tried.
Reference: docs/derivations.md, "Linear models".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.base.errors import SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import (
    NOT_SMOOTH,
    SMOOTH_ENOUGH,
    STEPS_OF_RATES,
    STEPS_OF_STATES,
)
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.design.minimal_coordinates import MinimalCoordinates
from holoctl.dynamics.tick.prepared_forward import PreparedForwardDynamics
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["PlantDerivatives", "by_code", "by_differences", "derivative"]

Array = NDArray[np.float64]


class PlantDerivatives(NamedTuple):
    """See the head of this module.

    Attributes
    ----------
    a : (nv,) array
        The acceleration at the point, rad/s^2 or m/s^2.
    by_y, by_yd : (nv, n) arrays
    by_u : (nv, nu) array
    """

    a: Vector
    by_y: Array
    by_yd: Array
    by_u: Array


def by_code(
    code: Compiled, part: Partition, q: Vector, v: Vector, u: Vector, t: float,
    at: MinimalCoordinates,
) -> PlantDerivatives:  # fmt: skip
    """Exact derivatives, of compiled forward dynamics; where their guard is in doubt, differences,
    or the error that explains."""
    B = code.mech.B
    tau = B @ u
    try:
        a_q, a_v, a_tau = code.forward_dynamics_derivatives(q, v, tau, t)
    except SingularityError:
        return by_differences(code.mech, part, q, v, u, t, at)
    a = code.forward_dynamics(q, v, tau, t)
    return PlantDerivatives(a, a_q @ at.gamma + a_v @ at.change, a_v @ at.gamma, a_tau @ B)


def by_differences(
    mech: Mechanism, part: Partition, q: Vector, v: Vector, u: Vector, t: float,
    at: MinimalCoordinates,
) -> PlantDerivatives:  # fmt: skip
    """Differences of the prepared forward dynamics."""
    prepared = PreparedForwardDynamics(mech, part)
    tau, model, c = mech.B @ u, mech.model, mech.column_scale

    def along(x: Vector, xd: Vector) -> Callable[[float], Vector]:
        def a(h: float) -> Vector:
            moved = q if not h or not x.any() else pin.integrate(model, q, h * x)
            return prepared.acceleration(moved, v + h * xd, tau, t)

        return a

    still = np.zeros(mech.nv)
    a = prepared.acceleration(q, v, tau, t)
    noise, names = largest(a), [mech.coordinate_names[i] for i in part.independent]
    by_y, by_yd = np.zeros_like(at.gamma), np.zeros_like(at.gamma)
    for j, (x, xd) in enumerate(zip(at.gamma.T, at.change.T, strict=True)):
        unit = 1.0 / largest(x / c)
        for out, f, steps, what in (
            (by_y, along(x, xd), STEPS_OF_STATES, names[j]),
            (by_yd, along(still, x), STEPS_OF_RATES, f"the rate of {names[j]}"),
        ):
            out[:, j] = derivative(f, unit * np.array(steps), noise, f"{mech.name}: along {what}")
    response = prepared.at(q, v, t)
    by_u = np.array([response(mech.B[:, i]) for i in range(mech.nu)]).reshape(mech.nu, mech.nv)
    by_u -= response(np.zeros(mech.nv))
    return PlantDerivatives(a, by_y, by_yd, by_u.T)


def derivative(
    f: Callable[[float], Vector], steps: Sequence[float] | Vector, noise: float, what: str
) -> Vector:
    """f'(0) by the longest of the steps, which descend, that is short enough.

    Parameters
    ----------
    f : function of a number
    steps : (k,) array
    noise : float
        Size of what f is rounded to: its values, or what they are the difference of.
    what : str
        For the message.

    Raises
    ------
    SingularityError
        Where f is not smooth, by whatever step.
    """
    best, least = np.zeros(0), np.inf
    for h in steps:
        one, two, three = (f(k * h) - f(-k * h) for k in (1, 2, 3))
        sixth = (45.0 * one - 9.0 * two + three) / (60.0 * h)
        fourth = (8.0 * one - two) / (12.0 * h)
        rounding = np.finfo(float).eps * noise / h
        off = max(largest(sixth - fourth), rounding) / max(largest(sixth), 1.0, noise)
        if off < least:
            best, least = sixth, off
        if off <= SMOOTH_ENOUGH:
            break
    if not least <= NOT_SMOOTH:
        raise SingularityError(
            f"{what} the acceleration is not smooth at this state: differences of it do not agree "
            f"(by {least:.1e}, relative). Is there a force with a kink here, such as friction or a "
            "stop, or is it next to a singular configuration? Move away from it"
        )
    return best
