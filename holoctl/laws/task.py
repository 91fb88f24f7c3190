"""Tasks: the motion that performs them, for the inverse dynamics.

    e = wanted - value        ed = rate of the reference - J v

    acceleration     xdd = a_ref + K e + D ed
    inertia Ld       xdd = a_ref + Ld^-1 (K e + D ed + F)
    natural inertia  xdd = a_ref, with K e + D ed as additional efforts

with F the external force at the task. In the coordinates c of K, ``J a = J_c c + J a0``, and with W
= N' M N the reduced inertia and A = J_c W^-1 J_c' the mobility of the task,

    as many rows as motions    J_c c = xdd - Jd v - J a0
    fewer, or damped           c = c_p + W^-1 J_c' A^-1 (xdd - Jd v - J a0 - J_c c_p)

where c_p is the motion of the posture: c is the motion nearest to it in the metric of W among all
that perform the task, so that the posture causes no acceleration of the task.

Several tasks, or more rows than motions, are performed by priority. In coordinates z whose inertia
is the identity, each level uses the motions F that the levels before it leave free, with J = J_z F,

    rows <= left    z += F J' (J J')^-1 (right - J_z z)        F := F Q2,  J' = [Q1 Q2] [R; 0]
    rows > left     z += F (J' J)^-1 J' (right - J_z z)        nothing is left

References: O. Khatib, "A unified approach for motion and force control of robot manipulators: the
operational space formulation", 1987; N. Hogan, "Impedance control: an approach to manipulation",
1985; docs/derivations.md, "Task space". Tests compare with control/task_space/law.py, which uses
gamma.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from holoctl.laws.forward import mobility
from holoctl.laws.operators import Constraints, TaskOperators, Tree, times

__all__ = ["LevelSolver", "TaskResult", "by_priority", "task_motion"]

LevelSolver = Callable[[slice, Any], tuple[Callable[[Any], Any], Any]]
"""solver(level, J) -> the function b -> ``J' (J J')^-1 b``, or the least-squares solution, and Q2
(left, left - rows), None if no motion is left."""


class TaskResult(NamedTuple):
    """The result of `task_motion`.

    Attributes
    ----------
    motion : (k,)
        c, in the coordinates of K.
    rates : (k,) or None
        The same of the velocity at which friction is evaluated; None: v.
    push : (k,) or None
        Efforts along the motions that the motors provide in addition.
    jacobian, right : (m, k), (m,)
        Of one task, ``J_c c = right`` if nothing is damped; a backend may have overwritten them.
    """

    motion: Any
    rates: Any
    push: Any
    jacobian: Any = None
    right: Any = None


def task_motion(
    K: Constraints, tree: Tree, task: TaskOperators, wanted: Any, outside: Any, at_reference: bool
) -> TaskResult:
    """The motion for a reference `wanted`: value, rate and acceleration. `outside` (nv,) are
    external efforts, if there are any, to which the task yields; with `at_reference` friction is
    evaluated at the rate of the reference."""
    J, Ja, Jv = K.rows(task.jacobian)
    factor, damping, levels = task.factor, task.damping, task.levels
    T: Any = None
    A: Any = None
    push: Any = None
    if levels is None and (factor is None or damping is None):
        _, per_inertia = mobility(K, tree)
        T = per_inertia(J.T)
        A = times(J, T)
    if task.damped is not None:
        A = task.damped(J, A)
    ed = wanted.rate - task.rate
    f = task.stiffness(task.error(wanted.value))
    f = f + (task.critical(A, ed) if damping is None else damping(ed))
    external = None if outside is None else K.along(outside)
    xdd = wanted.acceleration
    if task.natural:
        push = times(J.T, f)
        if external is not None:  # external efforts are not compensated
            push = push + external
    else:
        xdd = xdd + f
    if levels is not None:
        move = levels(J)
        c = move(xdd + task.right - Ja, K.of_motors(task.posture()))
        rates = move(wanted.rate - Jv, None) if at_reference else None
        return TaskResult(c, rates, push)
    if factor is not None:
        solve, solve_transposed = factor(J)
    else:
        solve_A = task.factor_mobility(J, A)

        def solve(x: Any) -> Any:
            return times(T, solve_A(x))

        def solve_transposed(x: Any) -> Any:
            return solve_A(times(T.T, x))

    if external is not None and task.per_inertia is not None:
        xdd = xdd + task.per_inertia(solve_transposed(external))
    right = xdd + task.right - Ja
    if factor is not None:
        c = solve(right)
    else:
        c_p = K.of_motors(task.posture())
        c = c_p + solve(right - times(J, c_p))
    rates = solve(wanted.rate - Jv) if at_reference else None
    return TaskResult(c, rates, push, J, right)


def by_priority(J: Any, levels: Sequence[slice], solver: LevelSolver) -> Callable[[Any, Any], Any]:
    """The function (right, z_p) -> z for the rows J_z of some levels: of all solutions the nearest
    to z_p, or to zero for None."""
    F: Any = None
    steps, left = list[tuple[slice, Any, Any]](), True
    for level in levels:
        solve, Q = solver(level, J[level] if F is None else times(J[level], F))
        steps.append((level, solve, F))
        if Q is None:
            left = False
            break
        F = Q if F is None else times(F, Q)

    def move(right: Any, z_p: Any) -> Any:
        z: Any = None
        for level, solve, F_level in steps:
            b = right[level] if z is None else right[level] - times(J[level], z)
            step = solve(b) if F_level is None else times(F_level, solve(b))
            z = step if z is None else z + step
        if not left:
            return z
        return z + times(F, times(F.T, -z if z_p is None else z_p - z))

    return move
