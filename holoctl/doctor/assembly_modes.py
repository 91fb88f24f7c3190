"""Assembly modes: in how many ways a mechanism closes for the same positions of its motors.

The mechanism is closed from many starts with the motors held; closed configurations with the same
poses of the bodies are one mode.
References: J.-P. Merlet, Parallel Robots, the chapter on direct kinematics; C. Gosselin and
J. Angeles 1990, Singularity analysis of closed-loop kinematic chains (the determinant).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Vector,
    counted,
    flag,
    known_name,
    listing,
    number,
    quiet,
    read_only,
    unpickled,
    vector,
    whole,
)
from holoctl.base.errors import AssemblyError, InputError
from holoctl.closing.least_squares import distance
from holoctl.constraints.constraint_protocol import constraint_of
from holoctl.doctor.mode_comparison import Comparison, grouped, nearest_idle, signs
from holoctl.doctor.mode_search import ModeSearch, free_coordinates, held, search
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import placed
from holoctl.rows.evaluate import scaled_rows_at

__all__ = ["AssemblyMode", "AssemblyModes", "assembly_modes"]

MODE_ORDER = 6
"""The digits to which distances are rounded when modes are sorted."""


@dataclass(frozen=True, eq=False, repr=False)
class AssemblyMode:
    """An assembly mode: a closed configuration for the given positions of the motors.

    Attributes
    ----------
    q : (nq,) array
        A closed configuration with the given motor positions.
    sign : int
        The sign of the determinant of the scaled G of `AssemblyModes.rows` and
        `AssemblyModes.coordinates`: 1 or -1; 0 if that is singular. If no row is redundant, no
        motion is idle and no leg may roll, modes of different sign are parted by a singular
        configuration; those of equal sign may be parted, too. If the cross of a universal joint is
        turned over, the sign changes as well.
    singular : bool
        Whether the configuration is singular: its motors then do not hold it, to first order.
    found : int
        The number of starts that closed in this mode.
    distance : float
        The scaled distance from the reference.

    See Also
    --------
    assembly_modes : finds them.
    joined_modes : paths between them.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> found = hc.assembly_modes(mech, {"motor_left": 2.2, "motor_right": 0.9}, tries=30)
    >>> found.modes[0].q.round(2).tolist()
    [2.2, -1.44, 0.9, 1.46]
    """

    q: Vector
    sign: int
    singular: bool
    found: int
    distance: float

    __setstate__ = unpickled

    def __repr__(self) -> str:
        return (
            f"<AssemblyMode: {self.kind}, {self.distance:.2g} from the reference, found "
            f"{self.found}x>"
        )

    @property
    def kind(self) -> str:
        """``"+"``, ``"-"`` or ``"0"`` by its sign, or ``"singular"``."""
        return "singular" if self.singular else {1: "+", -1: "-"}.get(self.sign, "0")


@dataclass(frozen=True, eq=False, repr=False)
class AssemblyModes:
    """The assembly modes that `assembly_modes` found; there may be others.

    Attributes
    ----------
    modes : tuple of AssemblyMode
        The one nearest to the reference first.
    motors : (nu,) array
        Where the motors were held, rad or m.
    tries : int
        The number of starts.
    open : int
        The number of starts that did not close, or left the domain of user-defined constraints.
    moving : int
        The number of starts that closed in a configuration that moves with the motors held, though
        other configurations do not.
    rows, coordinates : tuple of str
        The rows and columns of the determinant; the same for all modes.
    name : str
        The name of the mechanism.

    See Also
    --------
    assembly_modes : returns it.
    joined_modes : which modes a path joins.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> found = hc.assembly_modes(mech, {"motor_left": 2.2, "motor_right": 0.9}, tries=30)
    >>> len(found.modes), sum(mode.found for mode in found.modes) + found.open
    (2, 30)
    """

    modes: tuple[AssemblyMode, ...]
    motors: Vector
    tries: int
    open: int
    moving: int
    rows: tuple[str, ...]
    coordinates: tuple[str, ...]
    name: str

    __setstate__ = unpickled

    def __len__(self) -> int:
        return len(self.modes)

    def __repr__(self) -> str:
        each = ", ".join(f"{m.found}x ({m.kind})" for m in self.modes[:8])
        more = ", ..." if len(self) > 8 else ""
        moving = f"; {self.moving} where it moves with its motors held" if self.moving else ""
        return (
            f"<AssemblyModes of {self.name!r}: {counted(len(self), 'mode')} found from "
            f"{counted(self.tries, 'start')}: {each}{more}{moving}; {self.open} did not close; "
            "others may exist>"
        )


@quiet
def assembly_modes(
    mech: Mechanism,
    motors: Any,
    *,
    tries: int = 200,
    seed: int = 0,
    t: float = 0.0,
    progress: bool = False,
) -> AssemblyModes:
    """The ways in which a mechanism closes for given positions of its motors.

    From the reference, and from random starts anywhere, it is closed with the motors held.
    Configurations that differ by whole turns, by the idle spin of a rod between ball joints, or by
    legs between ball and universal joints that rolled (about themselves, with their crosses turned
    over) are one mode, represented by the configuration nearest to the reference. The search is no
    proof: modes that few starts lead to may be missed, so check how often each was found, and
    increase `tries`.

    Parameters
    ----------
    mech : Mechanism
    motors : (nu,) array_like, or mapping of str to float
        Positions of the motors, rad or m, in the order of ``mech.actuator_names``, as
        ``mech.motor_positions`` gives them; or all of them by name.
    tries : int, optional
        Number of starts.
    seed : int, optional
        The seed of the random starts; the same seed gives the same modes in the same order.
    t : float, optional
        Time, s, for constraints that depend on it.
    progress : bool, optional
        Show a progress bar (needs tqdm).

    Returns
    -------
    AssemblyModes

    Raises
    ------
    InputError
        For a wrong shape, names that are no motors, motors that have no position of their own.
    AssemblyError
        If no start closes: the motor positions are out of reach, or contradict each other. It
        carries the best residual, its worst rows and configuration.
    NotActuatedError
        If the mechanism moves with its motors held, other than idly: its modes are a continuum.

    See Also
    --------
    joined_modes : which of them a path joins without a singularity.
    assemble : the one near a guess.

    Notes
    -----
    Coordinates that no constraint depends on, such as a floating base, stay at the reference. If
    the geometry is rounded, a mode satisfies the rows that determine the motion, and the others
    within ``mech.tolerance``.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> found = hc.assembly_modes(mech, {"motor_left": 2.2, "motor_right": 0.9}, tries=30)
    >>> sorted(mode.sign for mode in found.modes)
    [-1, 1]
    """
    check_mechanism(mech)
    positions = _positions(mech, motors)
    tries, seed, t = whole("tries", tries, 1), whole("seed", seed, 0), number("t", t, "time, s")
    progress = flag("progress", progress)
    q = check_configuration(mech, placed(mech.motors, mech.reference, positions), "motors")
    found = search(held(mech, q, t, free_coordinates(mech)), tries, seed, progress)
    if not found.closed:
        raise _not_closed(found, positions, tries)
    p, by = found.problem, Comparison(found.problem, found.closed)
    groups, moving = grouped(found, by)
    rows, columns, each = signs(groups, by.rank)
    modes = []
    for group, sign in zip(groups, each, strict=True):
        x = nearest_idle(p, group.q) if by.idle else group.q
        far = distance(mech, q, x)
        modes.append(AssemblyMode(read_only(x), sign, group.singular, group.count, far))
    modes.sort(key=lambda m: (round(m.distance, MODE_ORDER), *np.round(m.q, MODE_ORDER).tolist()))
    return AssemblyModes(
        tuple(modes), read_only(positions), tries, tries - len(found.closed), moving,
        tuple(mech.row_names[i] for i in rows),
        tuple(mech.coordinate_names[i] for i in p.free[columns]), mech.name,
    )  # fmt: skip


def _positions(mech: Mechanism, motors: Any) -> Vector:
    """The motor positions in the order of u, checked."""
    mech.motor_positions(mech.reference)  # raises an error for motors without a position
    names = mech.actuator_names
    if not isinstance(motors, Mapping):
        return vector("motors", motors, mech.nu, "positions of the motors")
    for name in motors:
        known_name(name, names, "motor", "motors")
    missing = [name for name in names if name not in motors]
    if missing:
        raise InputError(f"motors: positions of all motors are needed; {listing(missing)} missing")
    return np.array([number(f"motors[{name!r}]", motors[name]) for name in names])


def _not_closed(found: ModeSearch, positions: Vector, tries: int) -> AssemblyError:
    p, best = found.problem, found.best
    mech = p.mech
    scaled = np.abs(scaled_rows_at(mech, best.q, np.zeros(mech.nv), p.t).error)
    names = mech.row_names
    worst = [(names[i], float(scaled[i])) for i in np.argsort(-scaled)[:5] if scaled[i] > p.tol]
    where = ", ".join(
        f"{name} {x:.4g}" for name, x in zip(mech.actuator_names, positions, strict=True)
    )
    if best.opposite:
        closures = sorted({constraint_of(label) for label in best.opposite})
        return AssemblyError(
            f"{mech.name}: with the motors at {where} it closes only with the axes of "
            f"{listing(closures)} in opposite directions",
            residual=best.error, worst=worst, q=best.q, opposite=closures,
        )  # fmt: skip
    rows = ", ".join(f"{name} {value:.2g}" for name, value in worst)
    return AssemblyError(
        f"{mech.name}: none of {counted(tries, 'start')} closes with the motors at {where}; the "
        f"best one has an error of {best.error:.2g} (scaled), worst rows: {rows}. The motor "
        "positions may be out of reach, in a wrong unit, or contradict each other (more motors "
        "than motions)",
        residual=best.error, worst=worst, q=best.q,
    )  # fmt: skip
