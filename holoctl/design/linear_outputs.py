"""Outputs of a linear model: what is seen of the state, row by row.

    a joint, a motor      J gamma y                          J: its rate is J v
    its rate              (J gamma) yd + (dJ v + J D) y      by the drift, as in D
    a task                J gamma y
    a constraint          its multipliers, by differences of forward dynamics

Reference: docs/derivations.md, "Linear models".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, known_name, listing, suggestion
from holoctl.base.errors import InputError
from holoctl.base.tolerances import STEPS_OF_RATES, STEPS_OF_STATES
from holoctl.constraints.closure import Closure
from holoctl.constraints.joint_coordinates import Joint, joint_called
from holoctl.control.tasks.contract import BoundTask
from holoctl.design.minimal_coordinates import MinimalCoordinates
from holoctl.design.plant_derivatives import derivative
from holoctl.dynamics.forward import accelerate
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import inverse_tree_dynamics
from holoctl.projector.multipliers import multipliers
from holoctl.projector.partition import Partition
from holoctl.projector.projection import projected
from holoctl.rows.evaluate import rows_of
from holoctl.tree.kinematics import kinematics

__all__ = ["Point", "outputs_of"]

Array = NDArray[np.float64]


class Point(NamedTuple):
    """Where a mechanism is linearised.

    Attributes
    ----------
    q, v, u : arrays
    t : float
    part : Partition
    coordinates : MinimalCoordinates
    """

    q: Vector
    v: Vector
    u: Vector
    t: float
    part: Partition
    coordinates: MinimalCoordinates


class _Rows(NamedTuple):
    names: list[str]
    C: Array
    D: Array


def outputs_of(
    mech: Mechanism, states: Sequence[str], wanted: Any, at: Point
) -> tuple[tuple[str, ...], Array, Array]:
    """Names, C and D.

    Raises
    ------
    InputError
        For what is no output; names that are none; multipliers that redundancy leaves open.
    """
    n = at.coordinates.gamma.shape[1]
    if wanted is None:
        return tuple(states), np.eye(2 * n), np.zeros((2 * n, mech.nu))
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        wanted = [wanted]
    parts = [_rows(mech, x, at) for x in wanted]
    names = [name for part in parts for name in part.names]
    if not names:
        raise InputError("outputs: none is named; leave it out for the states themselves")
    if twice := [x for i, x in enumerate(names) if x in names[:i]]:
        raise InputError(f"outputs: {listing(sorted(set(twice)))} twice; names must differ")
    return tuple(names), np.vstack([p.C for p in parts]), np.vstack([p.D for p in parts])


def _rows(mech: Mechanism, wanted: Any, at: Point) -> _Rows:
    if not isinstance(wanted, str):
        return _of_task(mech, wanted, at)
    if wanted == "motors":
        names = [f"motor {x}" for x in mech.actuator_names]
        return _positions(mech, names, np.ascontiguousarray(mech.B.T), at)
    if wanted == "d motors":
        names = [f"d motor {x}" for x in mech.actuator_names]
        BT = np.ascontiguousarray(mech.B.T)
        return _rates(mech, names, BT, BT @ at.coordinates.change, at)
    if wanted.startswith("force "):
        return _forces(mech, wanted.removeprefix("force "), at)
    name = wanted.removeprefix("d ")
    joint = _joint(mech, name, wanted)
    kin = _kinematics(mech, at, at.q, at.v)
    J = joint.at(kin).jacobian
    names = [wanted] if len(J) == 1 else [f"{wanted}[{i}]" for i in range(len(J))]
    if wanted == name:
        return _positions(mech, names, J, at)
    by_y = [_change_of_rate(mech, joint, at, j) for j in range(at.coordinates.gamma.shape[1])]
    return _rates(mech, names, J, np.array(by_y).reshape(-1, len(J)).T, at)


def _joint(mech: Mechanism, name: str, wanted: str) -> Joint:
    """A joint of the tree, one of its coordinates, or one that was cut."""
    closures = {
        n: c
        for n, c in zip(mech.constraint_names, mech.constraints, strict=True)
        if isinstance(c, Closure)
    }
    try:
        joint = joint_called(mech.model, name, closures, "outputs")
    except InputError as error:
        raise InputError(
            f"{error}; an output is a coordinate, a joint, 'motors', with 'd ' before it its "
            "rate, 'force NAME' for what a constraint gives, or a task such as hc.FrameTask"
        ) from None
    if joint is None:
        raise InputError(f"outputs: {wanted!r} is a closure that is switched off")
    return joint


def _of_task(mech: Mechanism, wanted: Any, at: Point) -> _Rows:
    bind = getattr(wanted, "bind", None)
    if bind is None:
        raise InputError(
            "outputs must be names (coordinates, joints, 'motors', 'd NAME', 'force NAME') or "
            f"tasks such as hc.FrameTask('tool'); got {type(wanted).__name__}"
        )
    task: BoundTask = bind(mech)
    motion = task.at(_kinematics(mech, at, at.q, at.v))
    return _positions(mech, list(task.labels), motion.jacobian, at)


def _positions(mech: Mechanism, names: list[str], J: Array, at: Point) -> _Rows:
    gamma = at.coordinates.gamma
    return _Rows(names, np.hstack([J @ gamma, np.zeros((len(J), gamma.shape[1]))]), _none(mech, J))


def _rates(mech: Mechanism, names: list[str], J: Array, by_y: Array, at: Point) -> _Rows:
    return _Rows(names, np.hstack([by_y, J @ at.coordinates.gamma]), _none(mech, J))


def _none(mech: Mechanism, J: Array) -> Array:
    return np.zeros((len(J), mech.nu))


def _kinematics(mech: Mechanism, at: Point, q: Vector, v: Vector) -> Any:
    return kinematics(mech.model, workspace(mech), q, v, at.t)


def _change_of_rate(mech: Mechanism, joint: Joint, at: Point, j: int) -> Vector:
    """The derivative of a rate J v by y_j, at the same yd."""
    x, xd = at.coordinates.gamma[:, j], at.coordinates.change[:, j]

    def rate(h: float) -> Vector:
        q = pin.integrate(mech.model, at.q, h * x)
        return joint.at(_kinematics(mech, at, q, at.v + h * xd)).rate

    return _differenced(rate, x / mech.column_scale, STEPS_OF_STATES, at.v, "rate of a joint")


def _differenced(
    f: Callable[[float], Vector], x: Vector, steps: tuple[float, ...], noise: Vector, what: str
) -> Vector:
    size = 1.0 / float(np.abs(x).max())
    return derivative(f, size * np.array(steps), float(np.abs(noise).max(initial=0.0)), what)


def _forces(mech: Mechanism, name: str, at: Point) -> _Rows:
    """The multipliers of a constraint: what its rows give, N or N m."""
    known_name(name, mech.constraint_names, "constraint", "outputs")
    where = rows_of(mech, name)
    efforts = mech.B @ at.u

    def forces(q: Vector, v: Vector, tau: Vector) -> tuple[Vector, NDArray[np.bool_]]:
        P = projected(mech, q, v, at.t, at.part, "split")
        a, _ = accelerate(P, tau + P.terms.F)
        w = inverse_tree_dynamics(mech, P.terms.q, P.terms.v, a)
        lam, unique = multipliers(P.terms, at.part, w - tau - P.terms.F)
        return lam[where], unique[where]

    here, unique = forces(at.q, at.v, efforts)
    labels = list(mech.row_names[where])
    if not unique.all():
        open_ones = [x for x, known in zip(labels, unique, strict=True) if not known]
        raise InputError(
            f"outputs: redundancy leaves the forces of {listing(open_ones)} open, so they are no "
            "function of the state; those of others can be asked for, "
            f"{suggestion(name, mech.constraint_names)}".rstrip(", ")
        )
    gamma, change = at.coordinates.gamma, at.coordinates.change
    c, n = mech.column_scale, gamma.shape[1]
    C = np.zeros((len(labels), 2 * n))
    for j in range(n):
        x, xd = gamma[:, j], change[:, j]

        def by_y(h: float, x: Vector = x, xd: Vector = xd) -> Vector:
            return forces(pin.integrate(mech.model, at.q, h * x), at.v + h * xd, efforts)[0]

        def by_yd(h: float, x: Vector = x) -> Vector:
            return forces(at.q, at.v + h * x, efforts)[0]

        what = f"forces of {name} along {mech.coordinate_names[at.part.independent[j]]}"
        C[:, j] = _differenced(by_y, x / c, STEPS_OF_STATES, here, what)
        C[:, n + j] = _differenced(by_yd, x / c, STEPS_OF_RATES, here, what)
    D = np.array([forces(at.q, at.v, efforts + b)[0] - here for b in mech.B.T])
    return _Rows([f"force {x}" for x in labels], C, D.reshape(mech.nu, len(labels)).T)
