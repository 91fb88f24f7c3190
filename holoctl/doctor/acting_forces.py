"""Which forces act besides motors and constraints: friction, joint by joint, springs, others.

The only warning is for joints without a motor and without friction, if motors have friction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from holoctl.base.checks import Vector
from holoctl.closing.body_graph import whole_joint
from holoctl.constraints.joint_coordinates import FramePair, Joint
from holoctl.doctor.locked_joints import all_joints
from holoctl.forces.joint_friction import BoundFriction
from holoctl.forces.joint_spring import BoundJointSpring
from holoctl.forces.spring import BoundSpring
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

__all__ = ["ActingForces", "acting_forces"]


@dataclass(frozen=True)
class ActingForces:
    """Forces of a mechanism, by name, and the joints that have friction.

    Attributes
    ----------
    joints : int
        The number of joints, including cut ones, without free joints.
    viscous, coulomb : tuple of str
        Joints with viscous friction or a damper, and with dry friction.
    smooth : tuple of str
        Joints that have no motor and no friction and are not locked, if joints with a motor have
        friction.
    springs : tuple of str
        Springs, and dampers between points.
    others : tuple of str
        All other forces, except friction in joints.
    """

    joints: int = 0
    viscous: tuple[str, ...] = ()
    coulomb: tuple[str, ...] = ()
    smooth: tuple[str, ...] = ()
    springs: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def acting_forces(mech: Mechanism, locked: Collection[str] = ()) -> ActingForces:
    """Examine the forces of a mechanism; `locked` are joints that cannot move."""
    if not mech.forces:
        return ActingForces()
    joints = all_joints(mech, most=5)  # without free joints
    viscous, coulomb = set[str](), set[str]()
    springs, others = list[str](), list[str]()
    for name, force in zip(mech.force_names, mech.bound_forces, strict=True):
        if isinstance(force, BoundFriction):
            viscous.update(_where(mech, force, force.viscous))
            coulomb.update(_where(mech, force, force.peak))
        elif isinstance(force, BoundJointSpring):
            if force.joint is not None and force.damping:
                viscous.add(_name(mech, force.joint))
            if force.stores:
                springs.append(name)
        elif isinstance(force, BoundSpring):
            springs.append(name)
        else:
            others.append(name)
    driven = {_of_coordinate(mech, i) for i in np.flatnonzero(mech.B.any(axis=1)).tolist()}
    rough = viscous | coulomb
    smooth = [j for j in joints if j not in driven | rough | set(locked)] if driven & rough else []
    return ActingForces(
        len(joints),
        tuple(j for j in joints if j in viscous),
        tuple(j for j in joints if j in coulomb),
        tuple(smooth),
        tuple(springs),
        tuple(others),
    )


def _where(mech: Mechanism, force: BoundFriction, coefficient: Vector) -> Iterator[str]:
    """The joints whose rates have a coefficient that is not zero."""
    pairs = [pair for pair in force.rates.pairs for _ in range(pair.count)]
    for i in np.flatnonzero(coefficient).tolist():
        if i < mech.nv:
            yield _of_coordinate(mech, i)
        else:
            yield pairs[i - mech.nv].name


def _of_coordinate(mech: Mechanism, i: int) -> str:
    return whole_joint(mech.model, plain(mech.model).names[int(mech.joint_of[i])])


def _name(mech: Mechanism, joint: Joint) -> str:
    """The name of the whole joint."""
    return joint.name if isinstance(joint, FramePair) else _of_coordinate(mech, joint.columns[0])
