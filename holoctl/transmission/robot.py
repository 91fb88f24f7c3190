"""The parallel joints of a whole robot, and the serial robot that remains.

Each block of loops becomes a transmission of a chain of joints in it: from the base of the block to
the body that carries the rest of the robot, as many as the block has motions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Indices, Vector, counted, listing, quiet
from holoctl.base.errors import HoloctlError, InputError
from holoctl.closing.assembly import assemble
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.transmission.block import blocks
from holoctl.transmission.transmission import Transmission
from holoctl.tree.frozen_model import plain

__all__ = ["RobotTransmissions", "transmissions"]


@dataclass(frozen=True, eq=False)
class RobotTransmissions:
    """The parallel joints of a robot: the result of `transmissions`, iterable.

    Attributes
    ----------
    found : tuple of Transmission
        One for each block of loops.
    serial_joints : tuple of str
        The coordinates of the serial robot that remains, in the order of v: those of no block, and
        the joints of the transmissions.
    unresolved : mapping of tuple of str to str
        The coordinates of blocks without a serial chain, and why.

    See Also
    --------
    transmissions : returns it.

    Examples
    --------
    >>> import holoctl as hc
    >>> found = hc.transmissions(hc.load(hc.robot_file("leg")))
    >>> found.serial_joints
    ('hip_abduction', 'hip_flexion', 'knee', 'ankle')
    """

    found: tuple[Transmission, ...]
    serial_joints: tuple[str, ...]
    unresolved: Mapping[tuple[str, ...], str]

    def __iter__(self) -> Iterator[Transmission]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __repr__(self) -> str:
        names = "; ".join(listing(tr.joints, 3) for tr in self.found)
        left = f", {len(self.unresolved)} unresolved" if self.unresolved else ""
        return (
            f"<RobotTransmissions: {counted(len(self.found), 'transmission')} ({names}){left}, "
            f"{counted(len(self.serial_joints), 'serial coordinate')}>"
        )


@quiet
def transmissions(mech: Mechanism, start: Any = None) -> RobotTransmissions:
    """The transmissions of all loops of a robot.

    Loops are grouped by structure: two belong to the same block if they share a joint. The joints
    of a block are a chain from its base to one of its bodies that determines its motors: one that
    carries other joints of the robot, else one without motors, else the one that carries most mass.
    Where another chain is wanted, name its joints: ``hc.Transmission(mech, joints)``.

    Parameters
    ----------
    mech : Mechanism
        A robot, with a fixed or a floating base. Contacts do not count as loops.
    start : (nq,) array_like, optional
        A closed configuration on the wanted branch. Default: assembled from ``mech.reference``.

    Returns
    -------
    RobotTransmissions

    Raises
    ------
    InputError
        For a robot without loops.
    AssemblyError
        If no start is given and the reference cannot be assembled.

    See Also
    --------
    Transmission : one of them, with joints that are named.
    mobility : explains which motions and motors a robot has.

    Examples
    --------
    >>> import holoctl as hc
    >>> for tr in hc.transmissions(hc.load(hc.robot_file("leg"))):
    ...     print(tr.joints, tr.motors, tr.base)
    ('knee',) ('knee_motor',) hip_flexion
    """
    check_mechanism(mech)
    q = assemble(mech)[0] if start is None else check_configuration(mech, start, "start")
    groups = blocks(mech)
    if not groups:
        raise InputError(f"{mech.name} has no loops, so it has no transmissions")
    found, unresolved, inside = list[Transmission](), dict[tuple[str, ...], str](), set[int]()
    for columns in groups:
        made = _resolved(mech, columns, q)
        names = tuple(mech.coordinate_names[i] for i in columns)
        inside |= set(columns.tolist())
        if isinstance(made, str):
            unresolved[names] = made
            continue
        found.append(made)
        inside -= {mech.coordinate_names.index(name) for name in made.joints}
    serial = tuple(n for i, n in enumerate(mech.coordinate_names) if i not in inside)
    return RobotTransmissions(tuple(found), serial, unresolved)


def _resolved(mech: Mechanism, columns: Indices, q: Vector) -> Transmission | str:
    """The transmission of a block, or why there is none."""
    why = ""
    for chain in _chains(mech, columns):
        names = [mech.coordinate_names[i] for i in chain]
        try:
            return Transmission(mech, names, q)
        except HoloctlError as error:
            why = str(error)
    return why


def _chains(mech: Mechanism, columns: Indices) -> list[list[int]]:
    """The coordinates of each chain from the base of a block to one of its bodies, in the order of
    `transmissions`."""
    model, driven = plain(mech.model), (mech.B != 0.0).any(axis=1)
    own = set(mech.joint_of[columns].tolist())
    found = list[tuple[bool, bool, float, list[int]]]()
    for j in sorted(own):
        chain = [k for k in list(model.supports[j]) if k in own]
        at = [int(i) for k in chain for i in np.flatnonzero(mech.joint_of == k)]
        behind = list(model.subtrees[j])
        mass = sum(model.inertias[k].mass for k in behind)
        found.append((own.issuperset(behind), bool(driven[at].any()), -mass, at))
    return [at for *_, at in sorted(found)]
