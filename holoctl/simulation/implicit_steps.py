"""An accepted step by one of scipy's implicit solvers, for stiff forces.

They go on from where they are; a projected state, or other efforts, is a new start. They
ask for the derivative of the slope,

    x = (d, v)        d slope / d x = [0  I; A_q  A_v]        A_v = P (F_v - h_v)

P = da/dtau, by the efforts on the coordinates, on which the acceleration depends linearly. F_v,
which is what is stiff in friction and dampers, is known; what the constraints turn by the velocity
is left out, for an implicit method needs no exact derivative. A_q is by differences.
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
"""Accelerations are differenced by positions over this."""

PUT_IMPLICIT = (1e13, 1e5)
"""Implicit methods are put back where they are off by so many times rtol times `PUT_BACK`, or by
the second number times it: each time they start anew."""

COARSEST_STEPS = 1e-8
"""LSODA and BDF have tolerances of this at the most: with coarser ones each of their steps is put
back, so that they start anew, and errors add up."""


def implicit_step(motion: PlantMotion, stop: float, longest: float) -> StepSolution:
    """A step of scipy's solvers; they start anew where the state was put back, or efforts
    changed."""
    plant, nv, start = motion.plant, motion.plant.nv, motion.t
    while True:
        check_effort(motion)
        given = motion.solver
        if given is None or given.solver.t != start or longest > 4.0 * given.longest:
            given = ImplicitSolver(_solver(motion, stop, longest), motion.q, longest)
        motion.solver, (solver, q0, _) = given, given
        try:
            message = solver.step()
            if solver.status == "failed":
                raise InconsistentError(f"{plant.name}: the integrator gave up: {message}")
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
    """Implicit steps go on from where they are: each correction costs a new start."""
    return max(1.0, min(PUT_IMPLICIT[0] * motion.settings.rtol, PUT_IMPLICIT[1]))


def _slope_derivative(motion: PlantMotion) -> Callable[[float, Vector], Array]:
    """The derivative of the slope, a function (t, x) of states in the tangent space of where the
    motion is; see the head of this file."""
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
