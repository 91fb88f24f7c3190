"""The efforts of the linkage: what rods, cranks and rotors add to a serial robot.

    tau = gamma' (M a + h - F)        of the mechanism with its serial bodies weightless

Serial bodies are those that the serial joints alone move; without the loops they are what remains
of the tree. On a moving base the tree hangs on six more coordinates, whose motion is given.
Counterbalances act from the outside, against the gravity there; all other forces are between bodies
of the mechanism and its base.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Vector, listing
from holoctl.base.errors import InputError
from holoctl.base.linalg import least_squares
from holoctl.forces.counterbalance import BoundCounterbalance, Counterbalance
from holoctl.forces.sum_of_forces import all_efforts
from holoctl.mechanism.mechanism import Mechanism
from holoctl.transmission.block import LoopBlock
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import kinematics

__all__ = ["BaseMotion", "LinkageDynamics", "linkage_of", "serial_bodies"]


class BaseMotion(NamedTuple):
    """Motion of the base, in its own axes and at its origin.

    Attributes
    ----------
    twist : (6,) array
        Linear and angular velocity, m/s and rad/s.
    acceleration : (6,) array
        Its spatial acceleration (Pinocchio's ``a`` of a free-flyer), m/s^2 and rad/s^2.
    gravity : (3,) array
        m/s^2.
    """

    twist: Vector
    acceleration: Vector
    gravity: Vector


class LinkageDynamics(NamedTuple):
    """The open tree without its serial bodies, on a moving base; for one thread.

    Attributes
    ----------
    mech : Mechanism
    model : pin.Model
        A free joint, and the tree of `mech` behind it.
    data : pin.Data
    free : (7,) array
        The configuration of the free joint: at its origin.
    at_rest : BaseMotion
        The base of `mech` itself.
    carried : tuple of (int, (3,) array, float)
        Of each counterbalance the joint of `model`, the point in its axes (m), and the mass (kg).
    """

    mech: Mechanism
    model: pin.Model
    data: pin.Data
    free: Vector
    at_rest: BaseMotion
    carried: tuple[tuple[int, Vector, float], ...]

    def needed(self, q: Vector, v: Vector, a: Vector, base: BaseMotion) -> Vector:
        """``M a + h`` less counterbalances, (6 + nv,): the wrench at the base in its axes, N and
        N m, then efforts."""
        self.model.gravity.linear = base.gravity
        x = np.concatenate([self.free, q])
        outside = [pin.Force.Zero() for _ in range(self.model.njoints)]
        if self.carried:
            pin.forwardKinematics(self.model, self.data, x)
        for j, point, mass in self.carried:
            lifted = -mass * (self.data.oMi[j].rotation.T @ base.gravity)
            outside[j] += pin.Force(lifted, np.cross(point, lifted))
        found: Vector = pin.rnea(
            self.model,
            self.data,
            x,
            np.concatenate([base.twist, v]),
            np.concatenate([base.acceleration, a]),
            outside,
        )
        return found

    def forces(self, q: Vector, v: Vector) -> Vector:
        """F (nv,): friction, springs and other forces of the mechanism, without counterbalances."""
        bound = [f for f in self.mech.bound_forces if not isinstance(f, BoundCounterbalance)]
        if not bound:
            return np.zeros(self.mech.nv)
        model = self.mech.model
        return all_efforts(bound, kinematics(model, model.createData(), q, v, 0.0)).total

    def with_idle(
        self, q: Vector, v: Vector, a: Vector, base: BaseMotion, idle: Array, forces: bool = True
    ) -> Vector:
        """``a + N z`` such that idle motions N follow the dynamics: ``N' (M a + h - F) = 0``, with
        or without F."""
        if not idle.shape[1]:
            return a
        rest = self.needed(q, v, a, base)[6:]
        moved = np.array([self.needed(q, v, a + n, base)[6:] - rest for n in idle.T]).T
        off = idle.T @ ((self.forces(q, v) if forces else 0.0) - rest)
        return a + idle @ least_squares(idle.T @ moved, off)


def serial_bodies(mech: Mechanism, columns: Indices) -> list[int]:
    """The joints whose bodies the serial joints alone move, ascending.

    Raises
    ------
    InputError
        If a serial joint hangs on a body that other joints move too.
    """
    model, own = plain(mech.model), set(mech.joint_of[columns].tolist())
    found = [0]
    for j in range(1, model.njoints):
        if model.parents[j] in found and j in own:
            found.append(j)
    if missing := sorted(own - set(found)):
        names = [str(model.names[j]) for j in missing]
        above = str(model.names[model.parents[missing[0]]])
        raise InputError(
            f"{mech.name}: {listing(names)} hang on {above!r}, which is no serial joint, so the "
            "tree has no serial robot in it: cut the loops at the ends of the rods instead, so "
            "that the serial joints stay in the tree from the base to the last body"
        )
    return found[1:]


def linkage_of(block: LoopBlock, columns: Indices) -> LinkageDynamics:
    """The linkage of a block with these serial coordinates.

    Raises
    ------
    InputError
        As `serial_bodies`; for joints that hang on several bodies of the robot.
    """
    if len(block.carriers) > 1:
        raise InputError(
            f"{block.mech.name}: its joints hang on several bodies of the robot, those of "
            f"{listing(block.carriers)}, which move against each other, so the linkage has no "
            "efforts of its own; positions, rates and efforts of motors are valid. Use "
            "inverse_dynamics of the whole robot"
        )
    mech, tree, model = block.mech, plain(block.mech.model), pin.Model()
    serial, joints, inertias = serial_bodies(mech, columns), list(tree.joints), list(tree.inertias)
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base of the linkage")
    for j in range(1, tree.njoints):
        above, place = int(tree.parents[j]), tree.jointPlacements[j]
        place = place if above else block.placement.inverse() * place
        model.addJoint(above + 1, joints[j], place, f"joint {j}")
        if j not in serial:
            model.appendBodyToJoint(j + 1, inertias[j], pin.SE3.Identity())
    rotors = tree.armature.copy()
    rotors[columns] = 0.0
    model.armature = np.concatenate([np.zeros(6), rotors])
    gravity = block.placement.rotation.T @ np.asarray(tree.gravity.linear)
    at_rest = BaseMotion(np.zeros(6), np.zeros(6), gravity)
    carried = tuple(
        (bound.frame.joint + 1, bound.frame.placement.translation, float(force.mass))
        for force, bound in zip(mech.forces, mech.bound_forces, strict=True)
        if isinstance(force, Counterbalance) and isinstance(bound, BoundCounterbalance)
    )
    free = np.array([0.0] * 6 + [1.0])
    return LinkageDynamics(mech, model, model.createData(), free, at_rest, carried)
