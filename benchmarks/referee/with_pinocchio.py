"""`pin.constraintDynamics` with scipy's DOP853, on the same model.

Rows as Pinocchio has them: a point for a ball joint or a hinge in the plane, two points on the
axis for a hinge in space; the proximal solver copes with those that repeat others.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import holoctl as hc
from holoctl.tree.frames import resolve_frame
from referee.outcome import Outcome, judged, timed
from referee.problem import ATOL, RTOL, Problem, at

Array = NDArray[np.float64]
NAME = "constraintDynamics, DOP853"
SETTINGS = (1e-12, 1e-10, 10)
LONGEST = 100.0
"""What is waited for, s."""


class Tired(Exception):
    """It takes too long."""


def contacts(mech: hc.Mechanism) -> Any:
    """The closures as Pinocchio's; None where it has none such."""
    found = pin.StdVec_RigidConstraintModel()
    for c in mech.constraints:
        if not isinstance(c, hc.Closure):
            return None
        a, b = (resolve_frame(mech.model, f, c.default_name) for f in (c.a, c.b))
        for z in (0.5, -0.5) if c.joint == "revolute" else (0.0,):
            ends = [
                (f.joint, f.placement * at(0.0, 0.0, z)) for f in (b, a)
            ]  # the body first, not the world
            found.append(
                pin.RigidConstraintModel(
                    pin.ContactType.CONTACT_3D, mech.model, *ends[0], *ends[1], pin.LOCAL
                )
            )
    return found


class Springs:
    """Efforts of springs and dampers between points."""

    def __init__(self, mech: hc.Mechanism) -> None:
        self.model, self.springs = mech.model, mech.forces
        self.ends = [
            [resolve_frame(mech.model, f, "spring") for f in (s.a, s.b)] for s in mech.forces
        ]

    def efforts(self, data: Any, q: Array, v: Array) -> Array:
        """At a state."""
        tau = np.zeros(self.model.nv)
        if not self.springs:
            return tau
        pin.computeJointJacobians(self.model, data, q)
        for spring, (a, b) in zip(self.springs, self.ends, strict=True):
            (p_a, J_a), (p_b, J_b) = (self._point(data, f) for f in (a, b))
            d = p_b - p_a
            length = np.linalg.norm(d)
            row = (d / length) @ (J_b - J_a)
            tension = spring.stiffness * (length - spring.length) + spring.damping * (row @ v)
            tau -= tension * row
        return tau

    def _point(self, data: Any, frame: Any) -> tuple[Array, Array]:
        p = data.oMi[frame.joint].act(frame.placement.translation)
        if frame.joint == 0:
            return p, np.zeros((3, self.model.nv))
        J = pin.getJointJacobian(self.model, data, frame.joint, pin.WORLD)
        return p, J[:3] - pin.skew(p) @ J[3:]


def outcome(problem: Problem, rtol: float = RTOL, atol: float = ATOL) -> Outcome:
    """The line of the table."""
    mech, q0, v0 = problem.make()
    models = contacts(mech)
    if models is None:
        return Outcome(NAME, word="no rods")
    model = pin.Model(mech.model)
    data, datas = model.createData(), pin.StdVec_RigidConstraintData()
    datas.extend([c.createData() for c in models])
    settings = pin.ProximalSettings(*SETTINGS)
    effort = mech.B @ np.array(problem.effort) if problem.effort else np.zeros(mech.nv)
    springs, n = Springs(mech), mech.nv
    end = time.process_time() + LONGEST
    pin.initConstraintDynamics(model, data, models, datas)

    def derivative(_: float, x: Array) -> Array:
        if time.process_time() > end:
            raise Tired
        q, v = x[:n], x[n:]
        tau = effort + springs.efforts(data, q, v)
        a = pin.constraintDynamics(model, data, q, v, tau, models, datas, settings)
        return np.concatenate([v, a])

    def integrated() -> Any:
        return solve_ivp(
            derivative, (0.0, problem.times[-1]), np.concatenate([q0, v0]), method="DOP853",
            t_eval=problem.times, rtol=rtol, atol=atol,
        )  # fmt: skip

    try:
        run, seconds = timed(integrated)
    except Tired:
        return Outcome(NAME, word=f"more than {LONGEST:g} s")
    except ValueError as error:
        return Outcome(NAME, word=str(error)[:40])
    if not run.success or run.y.shape[1] != len(problem.times):
        return Outcome(NAME, seconds=seconds, word="breaks down")
    return judged(problem, mech, NAME, run.y[:n].T, run.y[n:].T, seconds, evaluations=run.nfev)
