"""A task in minimal coordinates: its value, its motion, and its task-space inertia.

    xd = J v        xdd = J_y ydd + bias        J_y = J gamma        bias = J P.bias + Jd v
    Lambda = (J_y W^-1 J_y')^-1                 W = gamma' M gamma

References: O. Khatib, "A unified approach for motion and force control of robot manipulators: the
operational space formulation", IEEE Journal of Robotics and Automation, 1987; R. Featherstone,
Rigid Body Dynamics Algorithms, chapter 8 (closed-loop systems); docs/derivations.md, "Task space".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, counted, quiet, shown
from holoctl.base.errors import InputError
from holoctl.base.linalg import Cholesky, cholesky, orthonormal_columns, singular_values
from holoctl.base.tolerances import TASK_SINGULAR
from holoctl.control.tasks.task_protocol import BoundTask, Task
from holoctl.control.tasks.task_singularity import condition_of, usual
from holoctl.projector.projection import Projection

__all__ = ["TaskTerms", "bound_to", "condition_at", "inertia_of", "task_terms"]


@dataclass(frozen=True, eq=False)
class TaskTerms:
    """The result of `task_terms`: a task at a state, in minimal coordinates.

    Attributes
    ----------
    value : pin.SE3 or (rows,) array
        The value, of the same kind as a reference.
    rate : (rows,) array
        ``J v``, m/s and rad/s.
    jacobian : (rows, k) array
        ``J gamma``: rates are ``jacobian yd + J v_t``.
    bias : (rows,) array
        The acceleration at ydd = 0: ``xdd = jacobian ydd + bias``.
    inertia : (rows, rows) array
        Lambda, kg and kg m^2: the task-space inertia, the resistance of the task to a force. nan
        if the task is singular: some direction of it cannot be moved.
    condition : float
        Condition number of the Jacobian in scaled rows, lengths over the size of the mechanism,
        and an orthonormal basis of the motions, so that it does not depend on the choice of
        coordinates; also large if closures hold still a direction that the tree could move; inf if
        there are more rows than motions.

    See Also
    --------
    task_terms : returns it.
    Impedance : uses the inertia.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech, [2.0, -1.2, 0.9, 1.4], [1.0, 0.0, 0.0, 0.0])
    >>> found = hc.task_terms(hc.project(mech, q, v), hc.FrameTask("tip_right", "x z"))
    >>> found.rate.round(3).tolist(), round(found.condition, 2)
    ([-0.151, -0.021], 1.28)
    """

    value: Any
    rate: Vector
    jacobian: Array
    bias: Vector
    inertia: Array
    condition: float

    def __repr__(self) -> str:
        rows, k = self.jacobian.shape
        return (
            f"<TaskTerms: {counted(rows, 'row')} of {counted(k, 'motion')}, condition number "
            f"{self.condition:.3g}>"
        )


@quiet
def task_terms(P: Projection, task: Task) -> TaskTerms:
    """Value, rate, Jacobian, bias and inertia of a task, in minimal coordinates.

    Parameters
    ----------
    P : Projection
        The result of `project` at a state.
    task : Task
        `FrameTask`, `PostureTask`, `CenterOfMassTask` or `CustomTask`.

    Returns
    -------
    TaskTerms

    Raises
    ------
    InputError
        If P is no projection, or `task` is no task of its mechanism.

    See Also
    --------
    FrameTask : the pose of a frame as a task.
    project : gamma and bias at the state.
    TaskSpaceControl : a controller of tasks.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> P = hc.project(mech, *hc.assemble(mech))
    >>> hc.task_terms(P, hc.FrameTask("tip_right", "z")).inertia.round(3).tolist()
    [[1.222]]
    """
    if not isinstance(P, Projection):
        raise InputError(f"P must be what hc.project makes; got {type(P).__name__}")
    bound = bound_to(P.mechanism, task)
    motion = bound.at(P.kinematics)
    J_y = motion.jacobian @ P.gamma
    L = cholesky(P.gamma.T @ P.terms.M @ P.gamma)
    scale = usual(P.mechanism, P.partition, task, bound).scale
    condition = condition_at(P, motion.jacobian, scale)
    inertia = inertia_of(J_y, L, bound.scale) if condition <= TASK_SINGULAR else None
    return TaskTerms(
        value=motion.value,
        rate=motion.jacobian @ P.v,
        jacobian=J_y,
        bias=motion.jacobian @ P.bias + motion.drift,
        inertia=np.full((bound.scale.size,) * 2, np.nan) if inertia is None else inertia,
        condition=condition,
    )


def bound_to(mech: Any, task: Any) -> BoundTask:
    """A task bound to a mechanism; raises `InputError` if `task` is no task."""
    bind = getattr(task, "bind", None)
    if isinstance(task, type) or not callable(bind):
        raise InputError(
            "a task is a FrameTask, PostureTask, CenterOfMassTask or CustomTask, or has their "
            f"method bind(mech); got {shown(task)!r}"
        )
    bound: BoundTask = bind(mech)
    return bound


def condition_at(P: Projection, J: Array, scale: Vector) -> float:
    """Condition number of a Jacobian (rows, nv) along the admissible motions, scaled."""
    if not 0 < scale.size <= P.k:
        return float("inf")
    c = P.mechanism.column_scale[:, None]
    scaled = scale[:, None] * J * c.T
    return condition_of(singular_values(scaled @ orthonormal_columns(P.gamma / c)))


def inertia_of(J_y: Array, L: Cholesky, scale: Vector) -> Array | None:
    """Lambda of a regular task, with ``W = L L'``; None if some motion has no inertia."""
    if not np.isfinite(L.condition):
        return None
    X = L.whitened(J_y * scale[:, None])
    inertia = scale[:, None] * cholesky(X @ X.T).solve(np.diag(scale))
    return np.asarray(0.5 * (inertia + inertia.T))
