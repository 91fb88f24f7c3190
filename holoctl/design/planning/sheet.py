"""The signs that tell sheets apart: those of the determinants of [G; B'] and [G; J], by blocks.

    type 2    det [G; B'] = 0      the mechanism moves while all motors hold
    type 1    det [G; J]  = 0      it moves while the task, with the Jacobian J, holds

A sheet is a set of closed configurations that paths join without such a singularity. By a fixed
order of rows and columns the matrix is block triangular, wherever it is evaluated: each strong
component of its pattern is a block, as the elbow of each leg. Its determinant is the product of
those of the blocks, and each of them keeps its sign on a sheet.
References: C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE
Transactions on Robotics and Automation, 1990; A. Pothen and C.-J. Fan, "Computing the block
triangular form of a sparse matrix", ACM Transactions on Mathematical Software, 1990.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from holoctl.base.checks import Array, Indices, Vector, listing, quiet
from holoctl.base.errors import InputError
from holoctl.base.linalg import largest, singular_values
from holoctl.base.tolerances import CLOSED
from holoctl.closing.assembly import assemble
from holoctl.closing.rank import scaled_jacobian
from holoctl.control.tasks.task_terms import bound_to
from holoctl.doctor.assembly_mode_paths import NO_ROW, proven_by_rows
from holoctl.doctor.mode_search import held, starts
from holoctl.dynamics.actuation import scaled_motors
from holoctl.dynamics.actuation_side import actuation_side
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.projector.partition import Partition, partition
from holoctl.tree.kinematics import kinematics

__all__ = ["SheetSigns", "sheet", "sheet_partition"]

BLOCK_SINGULAR = 1e-9  # scaled
"""A block whose smallest singular value is below this has no sign."""

CONSTANT = 1e-9
"""A block whose determinant varies by no more than this has the same sign everywhere."""

PATTERNS = 6
"""Number of configurations, not closed, at which the pattern of a matrix is found."""


@dataclass(frozen=True, eq=False, repr=False)
class SheetSigns:
    """The signs of a configuration that tell its sheet from others.

    Attributes
    ----------
    signs : tuple of int
        1 or -1 for each block; 0 where it is singular.
    names : tuple of str
        What each of them is: the type of the singularity at which it changes, and the coordinates
        that move there.
    side : int
        The sign of the determinant of [G; B'], which the configurations of one side of all type-2
        singularities have in common; 0 at one, and if the motors are not as many as the motions.
    sigma : float
        The smallest singular value of gamma' B, scaled; inf without motors.
    proof : bool
        Whether a different sign proves that no path without a singularity joins two
        configurations. Not if some rows are redundant, or user-defined.

    See Also
    --------
    sheet : returns it.
    connect : a path on one sheet.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> found = hc.sheet(mech, hc.assemble(mech)[0])
    >>> found.signs, found.names
    ((-1,), ("type 2: 'elbow_left', 'elbow_right'",))
    """

    signs: tuple[int, ...]
    names: tuple[str, ...]
    side: int
    sigma: float
    proof: bool

    def __repr__(self) -> str:
        each = "; ".join(f"{name}: {x:+d}" for name, x in zip(self.names, self.signs, strict=True))
        return f"<SheetSigns: {each or 'no signs'}; smallest singular value {self.sigma:.2g}>"

    def apart(self, other: SheetSigns) -> tuple[str, ...]:
        """The names of the signs that differ from those of another configuration.

        Parameters
        ----------
        other : SheetSigns
            Of the same mechanism and task.

        Returns
        -------
        tuple of str
            Empty if all are equal, which is necessary for a path on one sheet, and not sufficient.

        Raises
        ------
        InputError
            For signs of something else.
        """
        if not isinstance(other, SheetSigns) or other.names != self.names:
            raise InputError("other must be what hc.sheet returns for the same mechanism and task")
        pairs = zip(self.names, self.signs, other.signs, strict=True)
        return tuple(name for name, one, two in pairs if one * two < 0)


class SignBlock(NamedTuple):
    """A diagonal block of a matrix: its rows, its columns, and its name."""

    rows: Indices
    columns: Indices
    name: str


@quiet
def sheet(mech: Mechanism, q: Any, task: Any = None) -> SheetSigns:
    """The signs that tell the sheet of a configuration from others.

    A path on which no sign passes zero meets no singularity, so it keeps them all. Configurations
    with different signs lie on different sheets. Those with equal signs may lie on different ones,
    too: `connect` finds out.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        A closed configuration.
    task : Task, optional
        What the mechanism is for, such as ``hc.FrameTask("tip", "x y")``, with as many rows as
        there are motions. Its type-1 singularities divide working modes, as of the elbows of legs.
        Default: the signs of type 2 only, which divide the assembly modes of the motors.

    Returns
    -------
    SheetSigns

    Raises
    ------
    InputError
        For a configuration that is not closed, a task with another number of rows.
    AssemblyError
        If the reference does not close: the rows are those that are chosen there.

    See Also
    --------
    connect : a path on one sheet.
    assembly_modes : all configurations for given positions of the motors.

    Notes
    -----
    Where rows are redundant the signs are those of the rows chosen at the reference, which may
    become dependent where others are not.

    References
    ----------
    C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE
    Transactions on Robotics and Automation, 1990.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> hc.sheet(mech, hc.assemble(mech)[0], hc.FrameTask("tip_left", "x z")).names[1]
    "type 1: 'motor_left', 'elbow_left'"
    """
    q = check_configuration(mech, q)
    part = sheet_partition(mech)
    G, error = scaled_jacobian(mech, q, 0.0)
    if not largest(error) <= max(CLOSED, part.tolerance):
        raise InputError(f"{mech.name}: sheet: q is not closed; hc.assemble closes it")
    side = actuation_side(mech, part)(G)
    signs, names = list[int](), list[str]()
    for kind, last in (("type 2", None), ("type 1", task)):
        if kind == "type 1" and task is None:
            continue
        for name, sign in _signs(mech, part, q, last):
            signs.append(sign)
            names.append(f"{kind}: {name}")
    labels = [mech.row_names[i] for i in part.rows]
    proof: bool = mech.per_thread("sheet proof", lambda: proven_by_rows(mech, labels, 0.0))
    return SheetSigns(tuple(signs), tuple(names), int(side.sign), float(side.sigma), proof)


def sheet_partition(mech: Mechanism) -> Partition:
    """The partition at the reference, whose rows all signs of a mechanism have."""
    found: Partition = mech.per_thread(
        "sheet partition", lambda: partition(mech, assemble(mech)[0])
    )
    return found


def _signs(mech: Mechanism, part: Partition, q: Vector, task: Any = None) -> list[tuple[str, int]]:
    """The name and the sign of each block of [G; J], or of [G; B'] without a task; empty if the
    motors are not as many as the motions."""
    if task is None and mech.nu != mech.nv - part.rank:
        return []
    key = f"sheet blocks {part.rows.tolist()}"
    blocks: list[SignBlock] = (
        mech.per_thread(key, lambda: _blocks(mech, part, None))
        if task is None
        else _blocks(mech, part, task)
    )
    K, found = _matrix(mech, part, q, task), []
    for block in blocks:
        own = K[np.ix_(block.rows, block.columns)]
        regular = singular_values(own)[-1] > BLOCK_SINGULAR
        found.append((block.name, int(np.linalg.slogdet(own)[0]) if regular else 0))
    return found


def _matrix(mech: Mechanism, part: Partition, q: Vector, task: Any) -> Array:
    G = scaled_jacobian(mech, q, 0.0, part.rows)[0]
    if task is None:
        return np.vstack([G, scaled_motors(mech).T])
    at = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), 0.0)
    J = bound_to(mech, task).at(at).jacobian * mech.column_scale
    if len(J) != mech.nv - part.rank:
        raise InputError(
            f"{mech.name}: sheet: the task has {len(J)} rows, and the mechanism "
            f"{mech.nv - part.rank} motions; name as many axes"
        )
    return np.vstack([G, J])


def _blocks(mech: Mechanism, part: Partition, task: Any) -> list[SignBlock]:
    """The diagonal blocks whose signs may change, by the pattern at random configurations."""
    places = starts(held(mech, mech.reference, 0.0, np.arange(mech.nv)), PATTERNS, 0)
    matrices = np.array([_matrix(mech, part, q, task) for q in places])
    pattern = np.abs(matrices).max(axis=0) > NO_ROW
    match = maximum_bipartite_matching(csr_array(pattern), perm_type="row")  # the row of a column
    if (match < 0).any():
        return []  # singular everywhere
    after = pattern[match]  # row i of this matrix is matched with column i
    count, member = connected_components(csr_array(after), directed=True, connection="strong")
    found = []
    for i in range(count):
        columns = np.flatnonzero(member == i)
        rows = np.sort(match[columns])
        values = np.linalg.det(matrices[:, rows[:, None], columns])
        if np.ptp(values) > CONSTANT:
            names = listing([mech.coordinate_names[j] for j in columns], 6)
            found.append(SignBlock(rows.astype(np.intp), columns.astype(np.intp), names))
    return found
