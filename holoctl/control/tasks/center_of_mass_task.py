"""The position of the centre of mass of a mechanism, as a task.

With m_b the mass of body b over that of all, s_b = m_b c_b its first moment, and (v, omega),
(a, alpha) its spatial velocity and acceleration at the origin of the world,

    xd  = sum m_b v_b + omega_b x s_b
    xdd = sum m_b a_b + alpha_b x s_b + omega_b x (m_b v_b + omega_b x s_b)

so column i of J is m J_v + J_omega x s, with mass and first moment of all bodies that coordinate i
moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, finite, numbers, read_only
from holoctl.base.errors import InputError
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.control.tasks.task_protocol import (
    Show,
    TaskExpression,
    TaskMotion,
    TaskTick,
    mechanism_size,
)
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.rows.tick.fast_rows import MoreRows
from holoctl.tree.frames import LETTERS, Frame, named_axes
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["BoundCenterOfMassTask", "CenterOfMassTask"]


@dataclass(frozen=True)
class CenterOfMassTask:
    """The centre of mass of all bodies that move, or some coordinates of it, in world axes.

    Parameters
    ----------
    axes : str or sequence of str, optional
        Any of ``"x y z"``, which become rows in the order written.

    Raises
    ------
    InputError
        For unknown axes, or axes named twice; by `bind` for a mechanism without mass.

    See Also
    --------
    FrameTask : the pose of a frame.
    task_terms : value, Jacobian and inertia of a task.
    TaskSpaceControl : a controller that takes tasks.

    Notes
    -----
    A reference is a position: the coordinates of the named axes, m. Bodies fixed to the world are
    not included.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> P = hc.project(mech, *hc.assemble(mech))
    >>> hc.task_terms(P, hc.CenterOfMassTask("z")).value.round(3).tolist()
    [0.215]
    """

    axes: str | tuple[str, ...] = "x y z"

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", named_axes("CenterOfMassTask", self.axes, LETTERS))

    def bind(self, mech: Mechanism) -> BoundCenterOfMassTask:
        """The task on a mechanism.

        Parameters
        ----------
        mech : Mechanism

        Returns
        -------
        BoundCenterOfMassTask

        Raises
        ------
        InputError
            For a mechanism whose bodies have no mass.
        """
        check_mechanism(mech)
        if not sum(inertia.mass for inertia in plain(mech.model).inertias[1:]) > 0.0:
            raise InputError(
                f"CenterOfMassTask: the bodies of {mech.name} have no mass, so they have no centre "
                "of mass"
            )
        scale = np.full(len(self.axes), 1.0 / mechanism_size(mech))
        return BoundCenterOfMassTask(mech, tuple(self.axes), read_only(scale))


@dataclass(frozen=True, eq=False)
class BoundCenterOfMassTask:
    """A `CenterOfMassTask` of one mechanism; see `BoundTask`.

    Attributes
    ----------
    mech : Mechanism
    axes : tuple of str
    scale : (rows,) array
    """

    mech: Mechanism
    axes: tuple[str, ...]
    scale: Vector
    _along: NDArray[np.intp] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        along = np.array([LETTERS.index(axis) for axis in self.axes], dtype=np.intp)
        object.__setattr__(self, "_along", along)

    @property
    def rows(self) -> WrenchRows | None:
        """None: the rates are no rows between two bodies."""
        return None

    @property
    def labels(self) -> tuple[str, ...]:
        """``center_of_mass.axis`` of each row."""
        return tuple(f"center_of_mass.{axis}" for axis in self.axes)

    def at(self, kin: Kinematics) -> TaskMotion:
        """Position, Jacobian and drift, by Pinocchio."""
        model, data, which = plain(self.mech.model), workspace(self.mech), self._along
        J = pin.jacobianCenterOfMass(model, data, kin.q, False).reshape(3, model.nv)[which]
        pin.centerOfMass(model, data, kin.q, kin.v, np.zeros(model.nv), False)
        return TaskMotion(data.com[0][which], J, data.acom[0][which])

    def wanted(self, value: Any) -> Vector:
        """A position: the coordinates of the axes."""
        x = numbers("reference", value)
        if x.shape != self._along.shape:
            raise InputError(
                f"{self.labels[0]}: the reference must be a position ({' '.join(self.axes)}) of "
                f"shape {self._along.shape}; got shape {x.shape}"
            )
        if not finite(x):
            raise InputError(f"{self.labels[0]}: the position of the reference is not finite")
        return x

    def error(self, value: Any, wanted: Vector) -> Vector:
        """The reference position less the position."""
        e: Vector = wanted - value
        return e

    def expression(self, q: Any, v: Any, t: Any, show: Show, value: Any) -> TaskExpression:
        """The mean of the centres of mass of all bodies, by their masses."""
        import casadi as ca

        model, zero = plain(self.mech.model), ca.SX.zeros(3)
        center, velocity, acceleration, columns = zero, zero, zero, dict[int, Any]()
        bodies = [j for j in range(1, model.njoints) if model.inertias[j].mass > 0.0]
        whole = sum(model.inertias[j].mass for j in bodies)
        for j in bodies:
            lever, part = model.inertias[j].lever, model.inertias[j].mass / whole
            seen = show(None, Frame(j, pin.SE3(np.eye(3), lever), model.names[j]))
            center, velocity = center + part * seen.p2, velocity + part * seen.linear[0]
            acceleration = acceleration + part * seen.linear[1]
            for c, x in seen.moves:
                columns[c] = columns.get(c, zero) + part * x
        which = self._along.tolist()
        rows = [{c: x[i] for c, x in columns.items() if not x[i].is_zero()} for i in which]
        error = [value[k] - center[i] for k, i in enumerate(which)]
        drift, rate = [acceleration[i] for i in which], [velocity[i] for i in which]
        return TaskExpression(rows, drift, rate, error, [])

    def tick(self, motion: LiveMotion, beside: MoreRows | None) -> TaskTick:
        """The task in a tick, from the motions of the bodies."""
        mass, of_bodies, of_moved, moved = _tables(self.mech, motion.bodies)
        of_all, which, rows = of_bodies.sum(axis=0), self._along, self._along.size
        placements, V, A = motion.placements, motion.velocities, motion.accelerations
        v, omega, a, alpha = V[:, :3], V[:, 3:], A[:, :3], A[:, 3:]
        J_v, J_omega, by_mass = motion.J[:3], motion.J[3:], mass[:, None]
        J, right = np.zeros((rows, motion.J.shape[1])), np.zeros(rows)
        around = [(i, (i + 1) % 3, (i + 2) % 3) for i in which.tolist()]

        def evaluate(q: Vector, velocity: Vector, t: float) -> None:
            s, sides = of_bodies.dot(placements), of_moved.dot(placements).T
            X = alpha.T.dot(s) + omega.T.dot(by_mass * v)
            xdd = mass.dot(a) + omega.T.dot((omega * s).sum(1)) - s.T.dot((omega * omega).sum(1))
            for row, (i, j, k) in enumerate(around):
                J[row] = moved * J_v[i] + J_omega[j] * sides[k] - J_omega[k] * sides[j]
                right[row] = X[k, j] - X[j, k] - xdd[i]

        def error(q: Vector, wanted: Vector) -> Vector:
            e: Vector = wanted - of_all.dot(placements).take(which)
            return e

        return TaskTick(evaluate, J, right, error)


def _tables(mech: Mechanism, bodies: int) -> tuple[Vector, Array, Array, Vector]:
    """The masses over that of all; two matrices whose products with `LiveMotion.placements` are the
    first moments of each body, and of all bodies that each coordinate moves; and the mass of the
    latter."""
    model = plain(mech.model)
    mass, of_bodies = np.zeros(bodies), np.zeros((bodies, 4 * bodies))
    for j in range(1, model.njoints):
        inertia = model.inertias[j]
        mass[j] = inertia.mass
        of_bodies[j, 4 * j : 4 * j + 4] = [*(inertia.mass * inertia.lever).tolist(), inertia.mass]
    of_bodies /= mass.sum()
    mass /= mass.sum()
    carried = np.eye(bodies)  # [j, b]: whether joint j moves body b
    for b in range(model.njoints - 1, 0, -1):
        carried[model.parents[b]] += carried[b]
    joints = np.repeat(np.arange(model.njoints), list(model.nvs))
    return mass, of_bodies, carried[joints] @ of_bodies, carried[joints] @ mass
