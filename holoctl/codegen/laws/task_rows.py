"""Tasks as expressions: those of a bound task for the frames of a tree, compared with the task if
it is user-defined."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.errors import InputError
from holoctl.base.tolerances import DIFFERENCE_TIMES, EXPRESSIONS_AGREE, PHI_AGREES
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.matrices import column, dense, scalars, total
from holoctl.codegen.relative_motion import (
    StepMotion,
    moved,
    pair_between,
    placed,
    point_motion,
    see,
    turns,
)
from holoctl.codegen.tree import TreeSteps
from holoctl.constraints.constraint_protocol import offered
from holoctl.constraints.phi_expression import derivatives
from holoctl.constraints.user_constraints import of_library
from holoctl.control.tasks.task_protocol import BoundTask, FrameMotion, Show, TaskExpression
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import kinematics

__all__ = [
    "check_expressed",
    "reference_pose",
    "reference_size",
    "reference_value",
    "shown",
    "task_rows",
]

Vector = NDArray[np.float64]


def check_expressed(task: BoundTask) -> None:
    """Raise `InputError` for a task that has no expression, by name."""
    why: str = getattr(task, "opaque", "")
    if not why and offered(task, "expression", "at") is None:
        why = f"a {type(task).__name__.removeprefix('Bound')} has no expressions"
    if why:
        raise InputError(
            f"task {', '.join(task.labels)} cannot be compiled: {why}; FrameTask, PostureTask and "
            "CenterOfMassTask have"
        )


def reference_pose(task: BoundTask) -> tuple[tuple[int, ...], bool]:
    """What of a pose is read: coordinates of its position, in the order of the value, and whether
    its rotation follows."""
    found: tuple[tuple[int, ...], bool] = getattr(task, "pose", ((), False))
    return found


def reference_size(task: BoundTask) -> int:
    """How many numbers the value of a reference has in code."""
    along, turning = reference_pose(task)
    return len(along) + 9 * turning if along or turning else task.scale.size


def reference_value(task: BoundTask, wanted: Any) -> Vector:
    """The value of a reference that the task has checked, as the code takes it."""
    numbers = getattr(task, "numbers", None)
    return np.array(wanted if numbers is None else numbers(wanted), dtype=float)


def task_rows(E: Expressions, task: BoundTask, value: SX) -> TaskExpression:
    """The rows of a task, in its order; `value` is that of a reference.

    Raises
    ------
    InputError
        For a task that has no expression, or another one than itself, by name.
    """
    check_expressed(task)
    ca, mech, rows = casadi_module(), E.mech, task.scale.size
    owner = f"{mech.name}: expression of task {', '.join(task.labels)}"
    try:
        found: Any = task.expression(E.q, E.v, E.t, shown(E.tree, E.v), value)  # type: ignore[attr-defined]
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{owner} raised {type(error).__name__}: {error}") from error
    if type(found) is ca.SX and found.shape == (rows, 1):
        rate, J, drift = derivatives(mech.model, found, E.q, E.v, E.t)
        entries = [{k: J[i, k] for k in range(mech.nv) if not J[i, k].is_zero()}
                   for i in range(rows)]  # fmt: skip
        e = scalars(ca.densify(value - found))
        drifts, rates = (scalars(ca.densify(x)) for x in (drift, rate))
        found = TaskExpression(entries, drifts, rates, e, [])
    if type(found) is not TaskExpression or {len(x) for x in found[:4]} != {rows}:
        given = found.shape if type(found) is ca.SX else type(found).__name__
        raise InputError(
            f"{owner} must return a casadi.SX of shape ({rows}, 1), or a TaskExpression of {rows} "
            f"rows; got {given}"
        )
    if not of_library(task):
        _compare(E, task, owner, value, found)
    return found


def shown(tree: TreeSteps, v: SX) -> Show:
    """What shows frames to a task, of one tree."""
    ca, steps, from_world = (
        casadi_module(),
        dict[tuple[int, int], StepMotion](),
        dict[Any, StepMotion](),
    )

    def show(a: Frame | None, b: Frame) -> FrameMotion:
        if a is None:
            s, zero = see(tree, (0, 0), tree.of_joint[b.joint], v, from_world), ca.SX.zeros(3)
            R, p = placed(s, b)
            moves = tuple((c, u + ca.cross(w, p - o)) for c, w, u, o in s.columns)
            turning = tuple((c, w) for c, w, _, _ in s.columns)
            angular = s.omega, s.alpha
            return FrameMotion(
                ca.SX.eye(3), zero, R, p, point_motion(s, p), angular, moves, turning
            )
        pair = pair_between(tree, a, b, v, steps)
        (v1, a1), (v2, a2) = (point_motion(s, pair.p2) for s in (pair.one, pair.two))
        w1, U, dw = pair.one.omega, v2 - v1, pair.two.omega - pair.one.omega
        D = a2 - a1 - 2.0 * ca.cross(w1, U)
        dalpha = pair.two.alpha - pair.one.alpha - ca.cross(w1, dw)
        moves = tuple(moved(pair, pair.p2, pair.p2))
        return FrameMotion(
            pair.R1, pair.p1, pair.R2, pair.p2, (U, D), (dw, dalpha), moves, tuple(turns(pair))
        )

    return show


def _compare(E: Expressions, task: BoundTask, owner: str, value: SX, found: TaskExpression) -> None:
    """Raise `InputError` where an expression is not its task, on the manifold and beside it."""
    ca, mech, rng = casadi_module(), E.mech, np.random.default_rng(0)
    parts = [dense(found.jacobian, mech.nv), *(column(x) for x in found[1:4]), total(found.guard)]
    inputs = [E.q, E.v, value, E.t]
    known = {x.name() for x in ca.symvar(ca.veccat(*inputs))}
    if free := {x.name() for x in ca.symvar(ca.veccat(*parts))} - known:
        raise InputError(f"{owner} depends on more than its arguments: {', '.join(sorted(free))}")
    function = ca.Function("task", inputs, [ca.densify(x) for x in parts])
    data, times, compared = mech.model.createData(), cycle(DIFFERENCE_TIMES), 0
    why = "not finite, or refused by the guard"
    for sample in E.samples:
        t = next(times)
        q, other = (pin.integrate(mech.model, sample, 0.1 * rng.normal(size=mech.nv)) for _ in "01")
        v = rng.normal(size=mech.nv)
        try:
            motion = task.at(kinematics(mech.model, data, q, v, t))
            there = task.at(kinematics(mech.model, data, other, v, t)).value
            wanted = task.wanted(there)
            e = task.error(motion.value, wanted)
        except Exception as error:  # tasks need not be defined everywhere, and say so as they like
            why = f"{type(error).__name__}: {error}"
            continue
        J = np.asarray(motion.jacobian)
        expected = (J, np.asarray(motion.drift), J @ v, np.asarray(e))
        numbers = reference_value(task, wanted)
        if numbers.shape != (value.numel(),):
            raise InputError(
                f"{owner}: its reference must be {value.numel()} numbers, as its pose= says or one "
                f"for each row; got shape {numbers.shape}"
            )
        *here, guard = (np.array(x) for x in function(q, v, numbers, t))
        if not (all(np.isfinite(x).all() for x in expected) and guard.item() < 1.0):
            continue
        compared += 1
        for what, x, y in zip(("J", "drift", "rate", "error"), here, expected, strict=True):
            away, size = np.abs(x.reshape(y.shape) - y).max(), np.abs(y).max()
            same = PHI_AGREES if what == "error" else EXPRESSIONS_AGREE
            if not away <= same * (1.0 + size):
                raise InputError(
                    f"{owner} is not the task: its {what} differs by {away:.2g} from that of the "
                    f"task, which is at most {size:.4g}, at q = {q.round(4).tolist()}, "
                    f"v = {v.round(4).tolist()}, t = {t:g}"
                )
    if not compared:
        raise InputError(
            f"{owner} could not be compared with the task: at none of the configurations that the "
            f"law is prepared for both are defined ({why}); give the Mechanism another reference="
        )
