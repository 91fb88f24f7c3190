"""One task: the motion that does it, for the inverse dynamics.

    e = wanted - value        ed = rate of the reference - J v

    acceleration     xdd = a_ref + K e + D ed
    inertia Ld       xdd = a_ref + Ld^-1 (K e + D ed + F)
    natural inertia  xdd = a_ref, and K e + D ed push

with F what pushes the task from outside. In the coordinates c of K, ``J a = J_c c + J a0``, and
with W = N' M N the reduced inertia and A = J_c W^-1 J_c' the mobility of the task,

    as many rows as motions    J_c c = xdd - Jd v - J a0
    fewer, or damped           c = c_p + W^-1 J_c' A^-1 (xdd - Jd v - J a0 - J_c c_p)

where c_p is the motion of the posture: of all motions that do the task the nearest to it in the
metric of W, so that what it adds is felt at no task.

References: O. Khatib, "A unified approach for motion and force control of robot manipulators: the
operational space formulation", 1987; N. Hogan, "Impedance control: an approach to manipulation",
1985; docs/derivations.md, "Task space". The oracle is control/task_space/law.py with gamma.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from holoctl.laws.contract import Constraints, TaskOperators, Tree, times
from holoctl.laws.response import mobility

__all__ = ["TaskResult", "task_motion"]


class TaskResult(NamedTuple):
    """What `task_motion` finds.

    Attributes
    ----------
    motion : (k,)
        c, in the coordinates of K.
    rates : (k,) or None
        The same of the velocity that friction is taken at; None: v.
    push : (k,) or None
        Efforts along the motions that the motors do the work of besides.
    jacobian, right : (m, k), (m,)
        ``J_c c = right`` where nothing is damped; a machine may have overwritten them.
    """

    motion: Any
    rates: Any
    push: Any
    jacobian: Any
    right: Any


def task_motion(
    K: Constraints, tree: Tree, task: TaskOperators, wanted: Any, outside: Any, at_reference: bool
) -> TaskResult:
    """The motion for a reference `wanted`: value, rate and acceleration. The task feels the efforts
    `outside` (nv,), if there are any; with `at_reference` friction is that of the reference."""
    J, Ja, Jv = K.rows(task.jacobian)
    square, damping = task.square, task.damping
    T: Any = None
    A: Any = None
    push: Any = None
    if square is None or damping is None:
        _, per_inertia = mobility(K, tree)
        T = per_inertia(J.T)
        A = times(J, T)
    if task.damped is not None:
        A = task.damped(J, A)
    ed = wanted.rate - task.rate
    f = task.stiffness(task.error(wanted.value))
    f = f + (task.critical(A, ed) if damping is None else damping(ed))
    felt = None if outside is None else K.along(outside)
    xdd = wanted.acceleration
    if task.natural:
        push = times(J.T, f)
        if felt is not None:  # it is not to be compensated
            push = push + felt
    else:
        xdd = xdd + f
    if square is not None:
        inverse, transposed = square(J)
    else:
        solve = task.solver(J, A)

        def inverse(x: Any) -> Any:
            return times(T, solve(x))

        def transposed(x: Any) -> Any:
            return solve(times(T.T, x))

    if felt is not None and task.per_inertia is not None:
        xdd = xdd + task.per_inertia(transposed(felt))
    right = xdd + task.right - Ja
    if square is not None:
        c = inverse(right)
    else:
        c_p = K.of_motors(task.posture())
        c = c_p + inverse(right - times(J, c_p))
    rates = inverse(wanted.rate - Jv) if at_reference else None
    return TaskResult(c, rates, push, J, right)
