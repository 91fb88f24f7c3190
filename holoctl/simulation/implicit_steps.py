"""An accepted step by one of scipy's implicit solvers, for stiff forces.

A solver continues from its own last state; it is restarted after a projection of the state or a
change of the efforts. It needs the derivative of the slope,

    x = (d, v)        d slope / d x = [0  I; A_q  A_v]        A_v = P (F_v - h_v)

P = da/dtau, the derivative by the efforts on the coordinates, on which the acceleration depends
linearly. F_v, the stiff part of friction and dampers, is known in closed form. The derivative of
the drift of the constraints by v is left out, as an implicit method needs no exact derivative. A_q
is computed by differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import largest
from holoctl.forces.sum_of_forces import change_by_velocity
from holoctl.mechanism.mechanism import workspace
from holoctl.simulation.explicit_steps import from_rest
from holoctl.simulation.motion import (
    ImplicitSolver,
    PlantMotion,
    StepEnd,
    StepSolution,
    arrive,
    check_effort,
    efforts_at,
    judged,
    lost,
)
from holoctl.tree.kinematics import kinematics

__all__ = ["implicit_step"]

SHORTEST_STEP = 1e-14  # s
"""Steps are not shortened below this, times the larger of 1 and the time."""


SLOPE_STEP = 1e-7  # scaled
"""Step of the positions in the differences of accelerations."""

PUT_IMPLICIT = (1e13, 1e5)
"""States of implicit methods are projected onto the manifold if their error exceeds `PUT_BACK`
times the smaller of (the first number times rtol) and the second number; each projection restarts
the solver."""

COARSEST_STEPS = 1e-8
"""Largest tolerances of LSODA and BDF: with coarser ones each step would be projected, so that the
solver restarts at each step and errors add up."""


def implicit_step(motion: PlantMotion, stop: float, longest: float) -> StepSolution:
    """A step of one of scipy's solvers, restarted if the state was projected or efforts changed."""
    plant, nv, start = motion.plant, motion.plant.nv, motion.t
    while True:
        check_effort(motion)
        current = motion.solver
        if current is None or current.solver.t != start or longest > 4.0 * current.longest:
            current = ImplicitSolver(_solver(motion, stop, longest), motion.q, longest)
        motion.solver, (solver, q0, _) = current, current
        try:
            message = solver.step()
            if solver.status == "failed":
                raise InconsistentError(f"{plant.name}: the integrator failed: {message}")
            motion.tally.steps += 1
            landed = judged(motion, q0, solver.y, solver.t, _put_from(motion))
        except SingularityError as error:
            landed, step = error, min(longest, stop - start)
        else:
            step = solver.t - start
            if isinstance(landed, StepEnd) and step <= longest * (1.0 + 1e-9):
                break
        longest = longest if step > longest * (1.0 + 1e-9) else 0.5 * step
        motion.solver = None
        if not longest > SHORTEST_STEP * max(1.0, abs(start)):
            raise lost(motion) if isinstance(landed, StepEnd) else landed
    end = float(solver.t)
    far = plant.nq != nv and largest(solver.y[:nv]) > 1.0
    if landed.moved or far or solver.status != "running":
        motion.solver = None
    x = from_rest(landed.v)
    motion.first = motion.slope(end, landed.q, x, np.empty(x.size))
    return arrive(motion, end, landed, motion.first[nv:], end - start, q0, solver.dense_output())


def _solver(motion: PlantMotion, stop: float, longest: float) -> Any:
    from scipy import integrate

    q0, slope, settings, c = motion.q, motion.slope, motion.settings, motion.plant.column_scale
    rtol, atol = settings.rtol, settings.atol
    if motion.method != "Radau":
        rtol, atol = min(rtol, COARSEST_STEPS), min(atol, COARSEST_STEPS)
    errors = np.concatenate([(atol + rtol) * c, np.full(c.size, atol)])
    x0 = np.concatenate([np.zeros(c.size), motion.v])
    return getattr(integrate, motion.method)(
        lambda t, x: slope(t, q0, x, np.empty(x.size)), motion.t, x0, stop,
        max_step=longest, rtol=rtol, atol=errors, jac=_slope_derivative(motion),
    )  # fmt: skip


def _put_from(motion: PlantMotion) -> float:
    """The factor of `PUT_BACK` for implicit steps."""
    return max(1.0, min(PUT_IMPLICIT[0] * motion.settings.rtol, PUT_IMPLICIT[1]))


def _slope_derivative(motion: PlantMotion) -> Callable[[float, Vector], Array]:
    """The derivative of the slope, a function (t, x) in the tangent space of the current state; see
    the head of this file."""
    plant, q0, tau, acceleration = motion.plant, motion.q, motion.tau, motion.dynamics.acceleration
    model, nv, tally = plant.model, plant.nv, motion.tally
    data = workspace(plant)

    def derivative(t: float, x: Vector) -> Array:
        d, v = x[:nv], x[nv:]
        q = pin.integrate(model, q0, d)
        u = efforts_at(tau, t, q, v)
        a = acceleration(q, v, u, t)
        by_effort, by_position = np.empty((nv, nv)), np.empty((nv, nv))
        for i, unit in enumerate(np.eye(nv)):
            by_effort[:, i] = acceleration(q, v, u + unit, t) - a
            step = SLOPE_STEP * plant.column_scale[i]
            there = pin.integrate(model, q0, d + step * unit)
            u_there = efforts_at(tau, t, there, v)
            by_position[:, i] = (acceleration(there, v, u_there, t) - a) / step
        tally.evaluations += 2 * nv + 1
        F_v = change_by_velocity(plant.bound_forces, kinematics(model, data, q, v, t))
        h_v = np.array(pin.computeRNEADerivatives(model, data, q, v, np.zeros(nv))[1])
        found = np.zeros((2 * nv, 2 * nv))
        found[:nv, nv:] = np.eye(nv)
        found[nv:, :nv] = by_position
        found[nv:, nv:] = by_effort @ (F_v - h_v.reshape(nv, nv))
        return found

    return derivative
