"""An accepted step by one of scipy's implicit solvers, for stiff forces.

They go on from where they are; a state that was put back, or other efforts, is a new start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import SHORTEST_STEP
from holoctl.simulation.motion import (
    Landed,
    Piece,
    PlantMotion,
    arrive,
    check_effort,
    judged,
    lost,
    slope_at,
    state_of,
)
from holoctl.simulation.slope_derivative import slope_derivative

__all__ = ["implicit_step"]

PUT_IMPLICIT = (1e13, 1e5)
"""Implicit methods are put back where they are off by so many times rtol times `PUT_BACK`, or by
the second number times it: each time they start anew."""

COARSEST_STEPS = 1e-8
"""LSODA and BDF have tolerances of this at the most: with coarser ones each of their steps is put
back, so that they start anew, and errors add up."""


def implicit_step(motion: PlantMotion, stop: float, longest: float) -> Piece:
    """A step of scipy's solvers; they start anew where the state was put back, or efforts
    changed."""
    plant, nv, start = motion.plant, motion.plant.nv, motion.t
    while True:
        check_effort(motion)
        held_back = longest > 4.0 * motion.longest
        if motion.solver is None or motion.solver.t != start or held_back:
            motion.solver, motion.q0, motion.longest = (
                _solver(motion, stop, longest),
                motion.q,
                longest,
            )
        solver, q0 = motion.solver, motion.q0
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
            if isinstance(landed, Landed) and step <= longest * (1.0 + 1e-9):
                break
        longest = longest if step > longest * (1.0 + 1e-9) else 0.5 * step
        motion.solver = None
        if not longest > SHORTEST_STEP * max(1.0, abs(start)):
            raise lost(motion) if isinstance(landed, Landed) else landed
    end, x, within = float(solver.t), solver.y, solver.dense_output()
    far = plant.nq != nv and largest(x[:nv]) > 1.0
    if landed.moved or far or solver.status != "running":
        motion.solver = None
    model, before, part = plant.model, state_of(motion), motion.part
    motion.first = slope_at(motion, end, landed.q, landed.v)
    arrive(motion, end, landed, motion.first[nv:], end - start)

    def at(t: float) -> tuple[Vector, Vector]:
        x = within(t)
        return pin.normalize(model, pin.integrate(model, q0, x[:nv])), x[nv:]

    return Piece(before, state_of(motion), at, part)


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
        max_step=longest, rtol=rtol, atol=errors, jac=slope_derivative(motion),
    )  # fmt: skip


def _put_from(motion: PlantMotion) -> float:
    """Implicit steps go on from where they are: each correction costs a new start."""
    return max(1.0, min(PUT_IMPLICIT[0] * motion.settings.rtol, PUT_IMPLICIT[1]))
