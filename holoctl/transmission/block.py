"""One closed mechanism of a robot: the joints that its loops tie together, by structure.

    constraint -- coordinate        if a row of it depends on the coordinate at any configuration

The connected components of this graph are the blocks of a robot. Numbers do not enter, since a
coefficient may vanish at one configuration. Contacts with the ground do not count. The joints of a
block hang on one body, its base, unless a coupling or custom constraint ties joints across others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Indices, Vector, listing, read_only
from holoctl.base.errors import InputError, NotActuatedError
from holoctl.constraints.contact import Contact
from holoctl.forces.counterbalance import Counterbalance
from holoctl.forces.force_protocol import Force
from holoctl.forces.joint_friction import JointFriction
from holoctl.forces.joint_spring import JointSpring
from holoctl.forces.spring import Spring
from holoctl.mechanism.limits import KINDS, RANGES, Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import resolve_frame
from holoctl.tree.frozen_model import plain
from holoctl.tree.numbering import with_locked_joints

__all__ = ["LoopBlock", "block_of", "blocks"]


@dataclass(frozen=True, eq=False)
class LoopBlock:
    """A closed mechanism of a robot.

    Attributes
    ----------
    mech : Mechanism
        Its joints alone: all others are locked at the reference of the robot, and the base does
        not move.
    base : str
        The joint of the robot that carries it; ``"universe"`` for the ground.
    placement : pin.SE3
        The base in `mech`: its axes and origin in world axes at the reference.
    carriers : tuple of str
        All joints of the robot that carry joints of it: several for couplings across other joints.
    """

    mech: Mechanism
    base: str
    placement: pin.SE3
    carriers: tuple[str, ...]


def blocks(mech: Mechanism) -> tuple[Indices, ...]:
    """The coordinates of each block, ascending; blocks by their first coordinate."""
    group = np.arange(mech.nv)
    tied = np.zeros(mech.nv, dtype=bool)
    for constraint, bound in zip(mech.constraints, mech.bound, strict=True):
        if isinstance(constraint, Contact):
            continue
        columns = np.flatnonzero(np.asarray(bound.support).any(axis=0))
        if columns.size:
            tied[columns] = True
            group[np.isin(group, group[columns])] = group[columns].min()
    for joint in np.unique(mech.joint_of[tied]):  # a joint moves as a whole
        columns = np.flatnonzero(mech.joint_of == joint)
        tied[columns] = True
        group[np.isin(group, group[columns])] = group[columns].min()
    return tuple(
        read_only(np.flatnonzero(tied & (group == first))) for first in np.unique(group[tied])
    )


def block_of(mech: Mechanism, columns: Iterable[int], owner: str) -> LoopBlock:
    """The block that these coordinates belong to, as a mechanism of its own.

    Raises
    ------
    InputError
        For coordinates of several blocks, or of none; for forces of which it is not known whether
        they act on the block.
    NotActuatedError
        For a part of a robot without motors.
    """
    wanted = set(columns)
    found = [b for b in blocks(mech) if wanted & set(b.tolist())]
    names = [mech.coordinate_names[i] for i in sorted(wanted)]
    if not found:
        raise InputError(
            f"{owner}: no loop contains {listing(names)}: these joints have no transmission"
        )
    alone = sorted(wanted - {i for b in found for i in b.tolist()})
    if len(found) > 1 or alone:
        parts = [[mech.coordinate_names[i] for i in b if i in wanted] for b in found]
        parts += [[mech.coordinate_names[i]] for i in alone]
        raise InputError(
            f"{owner}: {listing(names)} belong to independent mechanisms; make a transmission of "
            f"each: {'; '.join(listing(p) for p in parts)}"
        )
    return _block(mech, found[0], names, owner)


def _block(mech: Mechanism, columns: Indices, wanted: list[str], owner: str) -> LoopBlock:
    """The block of these columns, named after the serial joints that are wanted."""
    model = plain(mech.model)
    joints = sorted(set(mech.joint_of[columns].tolist()))
    above = sorted({int(model.parents[j]) for j in joints} - set(joints))
    base, carriers = above[0], tuple(str(model.names[j]) for j in above)
    if columns.size == mech.nv:
        contacts = [
            n for c, n in zip(mech.constraints, mech.constraint_names, strict=True)
            if isinstance(c, Contact)
        ]  # fmt: skip
        alone = mech.without(*contacts) if contacts else mech
        return LoopBlock(alone, "universe", pin.SE3.Identity(), carriers)
    q = np.asarray(mech.reference)
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    reduced = with_locked_joints(model, joints, q)
    names = {mech.coordinate_names[i] for i in columns} | {str(model.names[j]) for j in joints}
    inside = [
        (c, n)
        for c, n, b in zip(mech.constraints, mech.constraint_names, mech.bound, strict=True)
        if not isinstance(c, Contact) and np.asarray(b.support)[:, columns].any()
    ]
    names |= {n for _, n in inside}
    if mech.actuation is not None:
        raise InputError(
            f"{owner}: the motors of {mech.name} act by a matrix, actuation=, so the motors of one "
            "of its mechanisms are not known; give that mechanism alone, with actuated="
        )
    kept = [_kept(force, mech, names, joints, base, owner) for force in mech.forces]
    motors = [a for a in mech.actuated if a in names]
    if not motors:
        own = listing([mech.coordinate_names[i] for i in columns])
        raise NotActuatedError(f"{owner}: no motor acts on the loops of {own}")
    small = Mechanism(
        reduced,
        constraints=[c for c, _ in inside],
        actuated=motors,
        reference=_entries(model, joints, q),
        name=f"{mech.name} {'+'.join(wanted)}",
        tolerance=mech.tolerance,
        forces=[f for f in kept if f is not None],
        limits=_limits(mech, names),
    )
    return LoopBlock(small, str(model.names[base]), data.oMi[base].copy(), carriers)


def _entries(model: pin.Model, joints: Sequence[int], q: Vector) -> Vector:
    """The entries of q that belong to some joints, in order."""
    return np.concatenate([q[model.idx_qs[j] : model.idx_qs[j] + model.nqs[j]] for j in joints])


def _kept(
    force: Force, mech: Mechanism, names: set[str], joints: Sequence[int], base: int, owner: str
) -> Force | None:
    """The force, as far as it acts on the block; None if it does not."""
    if isinstance(force, JointFriction):
        given = {f.name: getattr(force, f.name) for f in fields(force)}
        kept: dict[str, Any] = {
            what: {n: y for n, y in x.items() if n in names}
            for what, x in given.items()
            if isinstance(x, Mapping)
        }
        return replace(force, **kept)
    if isinstance(force, JointSpring):
        return force if force.joint in names else None
    ends = set[int]()
    if isinstance(force, (Spring, Counterbalance)):
        frames = (force.a, force.b) if isinstance(force, Spring) else (force.frame,)
        ends = {resolve_frame(mech.model, frame, owner).joint for frame in frames}
        if not ends & set(joints):
            return None
    if not ends or ends - {*joints, base}:
        raise InputError(
            f"{owner}: the force {force.default_name!r} ({type(force).__name__}) may also act on "
            f"bodies outside of this mechanism; leave it out, mech.without({force.default_name!r})"
        )
    return force


def _limits(mech: Mechanism, names: set[str]) -> Limits | None:
    """The limits of the motors and joints of the block."""
    given = mech.limits
    if given is None:
        return None
    motors = [i for i, name in enumerate(mech.actuator_names) if name in names]

    def kept(what: str) -> Any:
        x = getattr(given, what)
        if isinstance(x, Mapping):
            return {name: y for name, y in x.items() if {name, name.partition("[")[0]} & names}
        by_motor = what in RANGES and isinstance(x, tuple) and isinstance(x[0], tuple)
        return [x[i] for i in motors] if by_motor else x

    return Limits(**{what: kept(what) for what in KINDS})
