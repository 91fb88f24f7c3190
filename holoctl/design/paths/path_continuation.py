"""Continuation from one closed configuration to the next along a path, on one branch.

    q(s + h) = q (+) (h q' + h^2 q'' / 2 + ... + h^4 q'''' / 24)        predictor
    K d = [-phi; w(s + h) - w(q); 0]                            corrector

A step is accepted by the rule of closing/continuation.py, and halved if it is not. In addition two
arms may not change their elbows in one step, which they can on a line of symmetry without a change
of the sign of the determinant: see `turned_over`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import BranchError, SingularityError
from holoctl.base.linalg import largest, turned_over
from holoctl.closing.continuation import Steps, corrected, determinant_kept
from holoctl.design.paths.path_singularity import singular_end
from holoctl.design.paths.path_system import (
    UNFACTORED,
    Coordinates,
    Drive,
    Factored,
    PartitionRows,
    PathReference,
    factored,
    partition_rows,
)
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.repartition import decided_anew
from holoctl.rows.evaluate import scaled_rows_at

__all__ = [
    "PathNode",
    "System",
    "as_far",
    "ends_singular",
    "filled_at",
    "followed",
    "gamma_of",
    "lost",
    "moved",
    "node_at",
    "system_of",
    "with_rows_of",
]

PATH_STALLED = 1e-11  # scaled
"""Newton's method on a path that no longer contracts is accepted at this residual."""


PATH_SHORTEST = 1e-4
"""A path ends if a step of this share of the interval to its next point is not accepted."""


Path = Callable[[float], PathReference]


@dataclass(frozen=True, eq=False)
class System:
    """The square system at every s; see path_system.py.

    Attributes
    ----------
    mech : Mechanism
    part : Partition
    rows : PartitionRows
    drive : Drive
    idle : (nv, i) array
        N, scaled, orthonormal.
    """

    mech: Mechanism
    part: Partition
    rows: PartitionRows
    drive: Drive
    idle: Array
    _work: tuple[Array, Array, Array, Array] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        r, p, n = self.part.rank, self.drive.scale.size, self.mech.nv
        K, unit = np.zeros((n, n), order="F"), np.zeros((n, p), order="F")
        K[r + p :] = self.idle.T
        unit[r + np.arange(p), np.arange(p)] = self.drive.scale
        column = self.mech.column_scale[:, None]
        object.__setattr__(self, "_work", (K, unit, column, np.zeros(n)))

    def filled(self, q: Vector, value: Any) -> tuple[Array, Vector, float]:
        """K and the right side at a configuration, and the largest error of all rows; the next call
        overwrites the arrays."""
        K, _, _, right = self._work
        r, p = self.part.rank, self.drive.scale.size
        G, errors, worst = self.rows.at(q)
        left, D = self.drive.left(q, value)
        K[:r], K[r : r + p] = G, D
        np.negative(errors, out=right[:r])
        right[r : r + p] = left
        return K, right, worst

    def gamma(self, K: Factored) -> Array:
        """The velocity by the rates of the driven rows, (nv, p)."""
        _, unit, column, _ = self._work
        found: Array = column * K.lu.solve(unit)
        return found


class PathNode(NamedTuple):
    """A closed configuration of a path.

    Attributes
    ----------
    s : float
    q : (nq,) array
    d1, d2, d3, d4 : (nv,) arrays
        q' and q'', exact, and estimates of the next two for the predictor: those of the polynomial
        of degree three through q' and q'' here and at the node before.
    gamma : (nv, p) array
        q' by the rates of the driven rows.
    worst : float
        The largest error of all rows, scaled.
    K : Factored
    """

    s: float
    q: Vector
    d1: Vector
    d2: Vector
    d3: Vector
    d4: Vector
    gamma: Array
    worst: float
    K: Factored


def system_of(mech: Mechanism, part: Partition, drive: Drive, idle: Array) -> System:
    """A system with the rows of a partition."""
    return System(mech, part, partition_rows(mech, part.rows), drive, idle)


def followed(system: System, path: Path, start: PathNode, grid: Iterable[float]) -> list[PathNode]:
    """The nodes at each s of an increasing grid, from a node at its first s.

    Raises
    ------
    SingularityError
        If it ends at a singularity of the motors (type 2) or of the task (type 1).
    BranchError
        If it cannot be followed on this branch for another reason.
    """
    nodes = [start]
    for s in list(grid)[1:]:
        here = nodes[-1]
        system, there = as_far(system, path, here, float(s), PATH_SHORTEST * (s - here.s))
        if there.s < s:
            raise lost(system, path, there)
        nodes.append(there)
    return nodes


def node_at(system: System, path: Path, q: Vector, s: float) -> PathNode | None:
    """The node at s by Newton's method from a configuration close to it; None if it fails."""
    found = _corrected(system, path, q, s, None, None)
    if found is None and system.part.rank:
        found = _corrected(with_rows_of(system, q), path, q, s, None, None)
    return found


def moved(mech: Mechanism, q: Vector, step: Vector) -> Vector:
    """q with a step of its coordinates, not scaled."""
    x: Vector = q + step if mech.nq == mech.nv else pin.integrate(mech.model, q, step)
    return x


def as_far(
    system: System, path: Path, here: PathNode, goal: float, shortest: float
) -> tuple[System, PathNode]:
    """The last node toward a goal that is proved to be on this branch, and its system.

    Steps are as long as possible, with other rows if those in use are ill-conditioned. The node is
    before the goal if a step shorter than `shortest` would be needed. Unlike in `in_substeps`,
    steps are the interval divided by powers of two, so that nodes have round s.
    """
    whole, step = goal - here.s, goal - here.s
    rows_changed = False
    while here.s < goal:
        s = goal if step >= (1.0 - 1e-9) * (goal - here.s) else here.s + step
        there = _stepped(system, path, here, s)
        if there is not None:
            here, step = there, 2.0 * step
            continue
        step *= 0.5
        if step < shortest:
            other = None if rows_changed else _with_other_rows(system, path, here)
            if other is None:
                break
            system, here, rows_changed, step = *other, True, 0.5 * whole
    return system, here


def filled_at(system: System, values: list[Any], q: Array) -> tuple[Array, Array, Vector]:
    """K (n, nv, nv), right sides (n, nv) and largest errors of all rows (n,) at configurations."""
    n, nv = q.shape[0], system.mech.nv
    K, right, worst = np.zeros((n, nv, nv)), np.zeros((n, nv)), np.zeros(n)
    for i, value in enumerate(values):
        K[i], right[i], worst[i] = system.filled(q[i], value)
    return K, right, worst


def gamma_of(system: System, K: Array) -> Array:
    """The velocity by the rates of the driven rows, for many K, (n, nv, p); not finite for a
    singular K."""
    _, unit, column, _ = system._work
    try:
        found: Array = column * np.linalg.solve(K, np.broadcast_to(unit, (len(K), *unit.shape)))
    except np.linalg.LinAlgError:
        return np.array([system.gamma(factored(x)) for x in K])
    return found


def with_rows_of(system: System, q: Vector) -> System:
    """The system with the rows that are best conditioned at a configuration."""
    mech = system.mech
    G = scaled_rows_at(mech, q, np.zeros(mech.nv), 0.0).jacobian
    part = decided_anew(mech, system.part, G)
    return replace(system, part=part, rows=partition_rows(mech, part.rows))


def _with_other_rows(system: System, path: Path, here: PathNode) -> tuple[System, PathNode] | None:
    if not system.part.rank:
        return None
    other = with_rows_of(system, here.q)
    there = node_at(other, path, here.q, here.s)
    return None if there is None else (other, there)


def ends_singular(system: System, path: Path, q: Vector, s: float) -> SingularityError | None:
    """The error for a path that ends at a singularity of motors or task; None if it does not."""
    K = system.filled(q, path(s).value)[0].copy()
    task = () if isinstance(system.drive, Coordinates) else system.drive.labels
    return singular_end(system.mech, system.part, system.drive.scale.size, task, K, q, s)


def lost(system: System, path: Path, here: PathNode) -> BranchError | SingularityError:
    """The error for a path that cannot be followed beyond a node."""
    singular = ends_singular(system, path, here.q, here.s)
    if singular is not None:
        return singular
    mech, c = system.mech, system.mech.column_scale
    rates = np.abs(here.d1 / c)
    names, fast = [mech.coordinate_names[i] for i in np.argsort(-rates)[:3]], float(rates.max())
    return BranchError(
        f"{mech.name}: the path cannot be followed beyond s = {here.s:.6g} on this branch: it "
        "leaves the workspace of the mechanism there, or comes to a dead point or a singular "
        f"configuration, or it jumps (fastest there: {', '.join(names)}, {fast:.3g} for each unit "
        "of s)",
        why="dead point",
    )


def _stepped(system: System, path: Path, here: PathNode, s: float) -> PathNode | None:
    """The node at s after one step; None if it is not proved to be on this branch."""
    h = s - here.s
    step = h * (here.d1 + h * (0.5 * here.d2 + h * (here.d3 / 6.0 + (h / 24.0) * here.d4)))
    there = _corrected(system, path, here.q, s, here, step / system.mech.column_scale)
    if there is None:
        return None
    slope = 6.0 * (here.d1 - there.d1) / h
    third = (slope + 2.0 * here.d2 + 4.0 * there.d2) / h
    return there._replace(d3=third, d4=(2.0 * slope + 6.0 * (here.d2 + there.d2)) / (h * h))


def _corrected(
    system: System, path: Path, q: Vector, s: float, before: PathNode | None, step: Vector | None
) -> PathNode | None:
    """The node at s by the corrector, from q with a scaled first step; `before` is the node before
    it on this branch, or None."""
    mech, wanted = system.mech, path(s)
    K, last, worst = np.zeros((0, 0)), UNFACTORED, 0.0

    def linearised(q: Vector) -> tuple[Vector, float] | str:
        nonlocal K, last, worst
        K, right, worst = system.filled(q, wanted.value)
        last = factored(K)
        if not last.sign or not (before is None or determinant_kept(last.over(before.K))):
            return "singular"
        return right, largest(right)

    def solved(right: Vector) -> Vector:
        return last.lu.solve(right)

    def scaled_move(q: Vector, d: Vector) -> Vector:
        return moved(mech, q, mech.column_scale * d)

    steps = Steps(solved, largest, scaled_move, PATH_STALLED)
    step = np.zeros(mech.nv) if step is None else step
    why, q, *_ = corrected(steps, linearised, q, step)
    if why or (before is not None and turned_over(before.K.lu.solve(K))):
        return None
    if mech.nq != mech.nv:
        q = pin.normalize(mech.model, q)
    return _node(system, s, q, wanted, last, worst)


def _node(
    system: System, s: float, q: Vector, wanted: PathReference, K: Factored, worst: float
) -> PathNode:  # fmt: skip
    """A node with the derivatives of q by s, exact on the manifold."""
    drive, r, n = system.drive, system.part.rank, system.mech.nv
    p, gamma, rest, right = drive.scale.size, system.gamma(K), np.zeros(n), np.zeros(n)
    d1 = gamma.dot(wanted.rate)
    right[:r] = system.rows.right(q, d1)
    right[r : r + p] = drive.scale * (wanted.acceleration - drive.drift(q, d1))
    d2 = system.mech.column_scale * K.lu.solve(right)
    return PathNode(s, q, d1, d2, rest, rest, gamma, worst, K)
