"""Outputs of a linear model, row by row.

    a joint, a motor      J gamma y                          J: its rate is J v
    its rate              (J gamma) yd + (dJ v + J D) y      dJ v from the drift, as in D
    a task                J gamma y
    a constraint          its multipliers, by differences of forward dynamics

Reference: docs/derivations.md, "Linear models".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, entries, known_name, listing
from holoctl.base.errors import InputError
from holoctl.base.linalg import largest
from holoctl.constraints.closure import Closure
from holoctl.constraints.joint_coordinates import Joint, joint_called
from holoctl.control.tasks.task_protocol import BoundTask
from holoctl.design.linear.minimal_coordinates import MinimalCoordinates
from holoctl.design.linear.numeric_differentiation import (
    STEPS_OF_RATES,
    STEPS_OF_STATES,
    derivative,
)
from holoctl.dynamics.forward import accelerate
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import inverse_tree_dynamics
from holoctl.projector.multipliers import multipliers
from holoctl.projector.partition import Partition
from holoctl.projector.projection import projected
from holoctl.rows.evaluate import rows_of
from holoctl.tree.kinematics import kinematics

__all__ = ["OperatingPoint", "outputs_of"]


class OperatingPoint(NamedTuple):
    """The state at which a mechanism is linearised, and its motions there.

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


class _Outputs(NamedTuple):
    names: list[str]
    C: Array
    D: Array


def outputs_of(
    mech: Mechanism, states: Sequence[str], wanted: Any, at: OperatingPoint
) -> tuple[tuple[str, ...], Array, Array]:
    """Names, C and D of the outputs.

    Raises
    ------
    InputError
        If an entry of `wanted` is no output, a name is unknown or ambiguous, or multipliers are not
        unique because of redundant constraints.
    """
    n = at.coordinates.gamma.shape[1]
    if wanted is None:
        return tuple(states), np.eye(2 * n), np.zeros((2 * n, mech.nu))
    listed = entries(wanted)
    parts = [_rows(mech, x, at) for x in ([wanted] if listed is None else listed)]
    names = [name for part in parts for name in part.names]
    if not names:
        raise InputError("outputs: got no entry; leave outputs out to get the states")
    if twice := [x for i, x in enumerate(names) if x in names[:i]]:
        raise InputError(f"outputs: {listing(sorted(set(twice)))} twice; names must differ")
    return tuple(names), np.vstack([p.C for p in parts]), np.vstack([p.D for p in parts])


def _rows(mech: Mechanism, wanted: Any, at: OperatingPoint) -> _Outputs:
    if not isinstance(wanted, str):
        return _of_task(mech, wanted, at)
    wanted = str(wanted)
    found = _meanings(mech, wanted, at)
    if len(found) > 1:
        raise InputError(
            f"outputs: {wanted!r} may mean {' or '.join(found)}; give the joint another name"
        )
    if not found:
        if wanted.startswith("force "):
            known = *mech.constraint_names, *mech.row_names
            known_name(wanted.removeprefix("force "), known, "constraint", "outputs")
        _joint(mech, wanted.removeprefix("d "))
    return next(iter(found.values()))()


def _meanings(
    mech: Mechanism, wanted: str, at: OperatingPoint
) -> dict[str, Callable[[], _Outputs]]:
    """The possible meanings of a name: in words, with a function that returns the rows."""
    BT, change = np.ascontiguousarray(mech.B.T), at.coordinates.change
    found: dict[str, Callable[[], _Outputs]] = {}
    if wanted in ("motors", "d motors"):
        names = [f"{wanted[:-1]} {x}" for x in mech.actuator_names]
        if not names:
            raise InputError(f"outputs: {wanted!r}: {mech.name} has no motors")
        of_all = _positions(names, BT, at), _rates(names, BT, BT @ change, at)
        found["all motors"] = lambda: of_all[wanted != "motors"]
    name = wanted.removeprefix("force ")
    if name != wanted and (name in mech.constraint_names or name in mech.row_names):
        found[f"the force of {name!r}"] = lambda: _forces(mech, name, at)
    if _is_joint(mech, wanted):
        found[f"the joint or coordinate {wanted!r}"] = lambda: _of_joint(mech, wanted, at)
    moving = wanted.removeprefix("d ")
    if moving != wanted and _is_joint(mech, moving):
        found[f"the rate of {moving!r}"] = lambda: _of_joint_rate(mech, moving, at)
    return found


def _is_joint(mech: Mechanism, name: str) -> bool:
    """Whether a joint has this name, also one that is switched off."""
    try:
        joint_called(mech.model, name, _closures(mech), "outputs")
    except InputError:
        return False
    return True


def _closures(mech: Mechanism) -> dict[str, Closure | None]:
    named = zip(mech.constraint_names, mech.constraints, strict=True)
    off = [c for _, c in mech.parked if isinstance(c, Closure) and c.joint is not None]
    return {n: c for n, c in named if isinstance(c, Closure)} | {c.default_name: None for c in off}


def _joint(mech: Mechanism, name: str) -> Joint:
    """A joint of the tree, one of its coordinates, or a cut joint."""
    try:
        joint = joint_called(mech.model, name, _closures(mech), "outputs")
    except InputError as error:
        raise InputError(
            f"{error}; an output is a coordinate, a joint or 'motors', the same with 'd ' before "
            "it for its rate, 'force NAME' for the force of a constraint, or a task such as "
            "hc.FrameTask"
        ) from None
    if joint is None:
        raise InputError(f"outputs: {name!r} is a closure that is switched off")
    return joint


def _of_joint(mech: Mechanism, name: str, at: OperatingPoint) -> _Outputs:
    J = _joint(mech, name).at(_kinematics(mech, at, at.q, at.v)).jacobian
    return _positions(_numbered(name, J), J, at)


def _of_joint_rate(mech: Mechanism, name: str, at: OperatingPoint) -> _Outputs:
    joint = _joint(mech, name)
    J = joint.at(_kinematics(mech, at, at.q, at.v)).jacobian
    by_y = [_change_of_rate(mech, joint, at, j) for j in range(at.coordinates.gamma.shape[1])]
    return _rates(_numbered(f"d {name}", J), J, np.array(by_y).reshape(-1, len(J)).T, at)


def _numbered(name: str, J: Array) -> list[str]:
    return [name] if len(J) == 1 else [f"{name}[{i}]" for i in range(len(J))]


def _of_task(mech: Mechanism, wanted: Any, at: OperatingPoint) -> _Outputs:
    bind = getattr(wanted, "bind", None)
    if bind is None:
        raise InputError(
            "outputs must be names (coordinates, joints, 'motors', 'd NAME', 'force NAME') or "
            f"tasks such as hc.FrameTask('tool'); got {type(wanted).__name__}"
        )
    task: BoundTask = bind(mech)
    motion = task.at(_kinematics(mech, at, at.q, at.v))
    return _positions(list(task.labels), motion.jacobian, at)


def _positions(names: list[str], J: Array, at: OperatingPoint) -> _Outputs:
    gamma = at.coordinates.gamma
    return _Outputs(names, np.hstack([J @ gamma, np.zeros((len(J), gamma.shape[1]))]), _none(J, at))


def _rates(names: list[str], J: Array, by_y: Array, at: OperatingPoint) -> _Outputs:
    return _Outputs(names, np.hstack([by_y, J @ at.coordinates.gamma]), _none(J, at))


def _none(J: Array, at: OperatingPoint) -> Array:
    return np.zeros((len(J), at.u.size))


def _kinematics(mech: Mechanism, at: OperatingPoint, q: Vector, v: Vector) -> Any:
    return kinematics(mech.model, workspace(mech), q, v, at.t)


def _change_of_rate(mech: Mechanism, joint: Joint, at: OperatingPoint, j: int) -> Vector:
    """The derivative of a rate J v by y_j, at the same yd."""
    x, xd = at.coordinates.gamma[:, j], at.coordinates.change[:, j]

    def rate(h: float) -> Vector:
        q = pin.integrate(mech.model, at.q, h * x)
        return joint.at(_kinematics(mech, at, q, at.v + h * xd)).rate

    what = f"{mech.name}: the rate of the joint {joint.name!r}"
    return _differenced(rate, x / mech.column_scale, STEPS_OF_STATES, what)


def _differenced(
    f: Callable[[float], Vector], x: Vector, steps: tuple[float, ...], what: str, floor: float = 1.0
) -> Vector:
    """The derivative along x (scaled)."""
    unit = 1.0 / largest(x)
    return derivative(lambda h: f(unit * h), steps, what, floor) / unit


def _forces(mech: Mechanism, name: str, at: OperatingPoint) -> _Outputs:
    """The multipliers of a constraint, or of one row: its forces, N or N m."""
    if name in mech.constraint_names:
        where = rows_of(mech, name)
    else:
        where = slice(mech.row_names.index(name), mech.row_names.index(name) + 1)
    labels = list(mech.row_names[where])
    if not labels:
        raise InputError(f"outputs: 'force {name}': this constraint has no rows")
    efforts = mech.B @ at.u

    def forces(q: Vector, v: Vector, tau: Vector) -> tuple[Vector, NDArray[np.bool_]]:
        P = projected(mech, q, v, at.t, at.part, "split", t_stab=False)
        a, _ = accelerate(P, tau + P.terms.F)
        w = inverse_tree_dynamics(mech, P.terms.q, P.terms.v, a)
        lam, unique = multipliers(P.terms, at.part, w - tau - P.terms.F)
        return lam[where], unique[where]

    here, unique = forces(at.q, at.v, efforts)
    if not unique.all():
        open_ones = [x for x, known in zip(labels, unique, strict=True) if not known]
        raise InputError(
            f"outputs: 'force {name}': {listing(open_ones)} depend on other rows, so their forces "
            "are no function of the state; name independent rows, one by one"
        )
    gamma, change = at.coordinates.gamma, at.coordinates.change
    c, n = mech.column_scale, gamma.shape[1]
    floor = max(largest(here), float(pin.computeTotalMass(mech.model)))  # the force for 1 m/s^2
    C = np.zeros((len(labels), 2 * n))
    for j in range(n):
        x, xd = gamma[:, j], change[:, j]

        def by_y(h: float, x: Vector = x, xd: Vector = xd) -> Vector:
            return forces(pin.integrate(mech.model, at.q, h * x), at.v + h * xd, efforts)[0]

        def by_yd(h: float, x: Vector = x) -> Vector:
            return forces(at.q, at.v + h * x, efforts)[0]

        of = mech.coordinate_names[at.part.independent[j]]
        what = f"{mech.name}: the force of {name!r}, along {of},"
        C[:, j] = _differenced(by_y, x / c, STEPS_OF_STATES, what, floor)
        C[:, n + j] = _differenced(by_yd, x / c, STEPS_OF_RATES, what, floor)
    D = np.array([forces(at.q, at.v, efforts + b)[0] - here for b in mech.B.T])
    return _Outputs([f"force {x}" for x in labels], C, D.reshape(mech.nu, len(labels)).T)
