"""Which closed configurations are the same assembly mode, and the signs of their determinants.

With the motors held only idle motions remain, such as a rod that spins about itself. So modes are
compared by the poses of the bodies that rest in all idle motions; bodies between ball and universal
joints may have rolled.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Indices, Mask, Vector, listing
from holoctl.base.errors import NotActuatedError
from holoctl.base.linalg import largest, null_space_by_svd, pivoted_qr, singular_values
from holoctl.base.tolerances import RANK_OPEN
from holoctl.closing.axis_sign import axis_sign_rows
from holoctl.closing.body_graph import bodies_at
from holoctl.closing.idle.idle_motions import idle_motions
from holoctl.closing.least_squares import distance
from holoctl.closing.nearest_state import nearest_configuration
from holoctl.closing.newton import Problem
from holoctl.closing.sampled_configurations import sample
from holoctl.doctor.actuation import motor_rows
from holoctl.doctor.leg_spins import LegJoints, apart, joints_at, may_roll, rolled
from holoctl.doctor.mode_search import MODE_CLOSED, ClosedStart, ModeSearch, allowed, tried
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import kinematics

__all__ = ["Comparison", "ModeGroup", "grouped", "nearest_idle", "signs"]

MODE_SINGULAR = 1e-6  # scaled
"""An assembly mode is singular if its smallest active singular value is smaller, or smaller than
the tolerance of rounded geometry."""

SAME_MODE = (0.1, 1e-5)  # a share; scaled
"""Modes are the same if all resting bodies are nearer than this fraction of the smallest singular
value, within which the mode is isolated, or than the second number, the accuracy of singular
modes."""

MODE_STEP = 0.1  # scaled
"""The step, with motors held, that distinguishes an undriven motion from a singular mode."""

IDLE_SHARE = 1e-3
"""Motions with motors held, and coordinates in them, do not count below this fraction."""

NEARER_BY = 1e-6
"""A configuration of the same mode is nearer to the reference if it is by this fraction."""


@dataclass
class ModeGroup:
    """Starts that closed in the same mode.

    Attributes
    ----------
    q : (nq,) array
        The configuration nearest to the reference of all that were found.
    distance : float
        Its scaled distance from the reference.
    G : (m, nf) array
        Scaled Jacobian by the free coordinates at q.
    least : float
        The smallest singular value of G within the general rank of the modes.
    clear : float
        The mode is singular if `least` is not larger.
    inexact : float
        The scaled displacement that rows left open may cause.
    places : list of pin.SE3
        The poses of all bodies at q.
    joints : LegJoints or None
        The joints at q, once they are needed.
    count : int
        The number of starts.
    """

    q: Vector
    distance: float
    G: Array
    least: float
    clear: float
    inexact: float
    places: list[pin.SE3]
    joints: LegJoints | None = None
    count: int = 1

    def take_nearer(self, new: ModeGroup) -> None:
        """Take another configuration of this mode if it is nearer to the reference."""
        if new.distance < self.distance * (1.0 - NEARER_BY):
            vars(self).update(vars(new) | {"count": self.count})

    @property
    def singular(self) -> bool:
        """Whether the motors do not hold the configuration, to first order."""
        return self.least <= self.clear


class Comparison:
    """The comparison of closed configurations with the motors held.

    Attributes
    ----------
    rank : int
        The general rank of G by the free coordinates.
    idle : int
        The number of idle motions.
    resting : mask of bodies
        Bodies that rest in all idle motions.
    size : float
        The size of the mechanism, m.
    rolls : mask of bodies
        Bodies that may have rolled.
    some_rolled : bool
        Whether a body rolled in any comparison so far.
    """

    def __init__(self, p: Problem, closed: Sequence[ClosedStart]) -> None:
        """Raises `NotActuatedError` if the mechanism moves with motors held, other than idly."""
        mech, self.p = p.mech, p
        jacobians = [_jacobian(p, x.q) for x in closed]
        ranks = [_rank(p, x, G) for x, G in zip(closed, jacobians, strict=True)]
        first = ranks.index(max(ranks))
        idle = _idle(p, closed[first], jacobians[first], ranks[first])
        # a motion that is neither idle nor finite is a singularity; all configurations may have it
        self.idle = idle.shape[1]
        self.rank = min(p.free.size - self.idle, len(mech.row_names))
        self.resting = np.ones(int(mech.model.njoints), dtype=bool)
        if self.idle:
            self.resting &= _resting(p, closed[first].q, idle)
            for x, G, r in zip(closed, jacobians, ranks, strict=True):
                if r == self.rank:
                    self.resting &= _resting(p, x.q, _null(p, G, r))
        origins = np.array([X.translation for X in _places(mech, p.guess)])
        self.size = float(np.linalg.norm(np.ptp(origins, axis=0))) or 1.0
        self.rolls, self.some_rolled = may_roll(mech), False

    def group(self, x: ClosedStart) -> ModeGroup:
        """A group of one closed start."""
        p, mech, q = self.p, self.p.mech, _turned_back(self.p, x.q)
        G = _jacobian(p, q)[:, p.free]
        least = float(singular_values(G)[self.rank - 1]) if self.rank else 1.0
        # rows that were left out of rounded geometry may move it
        inexact = mech.tolerance if x.error > MODE_CLOSED else 0.0
        clear, far = _least_that_counts(mech, x.error), distance(mech, p.guess, q)
        return ModeGroup(q, far, G, least, clear, inexact, _places(mech, q))

    def group_at(self, q: Vector) -> ModeGroup:
        """A group of one configuration."""
        return self.group(ClosedStart(q, largest(self.p.scaled_rows(q)[0]), ()))

    def same(self, g: ModeGroup, new: ModeGroup) -> bool:
        """Whether the resting bodies have the same poses, or only rolled."""
        share, singular = SAME_MODE
        near = max(share * min(g.least, new.least), singular, 10.0 * max(g.inexact, new.inexact))
        pairs = zip(g.places, new.places, strict=True)
        moved = np.array([apart(A, B, self.size) > near for A, B in pairs]) & self.resting
        if not moved.any():
            return True
        if (moved & ~self.rolls).any():
            return False
        a, b = self._joints(g), self._joints(new)
        only_rolled = rolled(a, b, g.places, new.places, moved, near, self.size)
        self.some_rolled |= only_rolled
        return only_rolled

    def place(self, q: Vector) -> Vector:
        """The poses of the resting bodies as numbers, lengths in units of the size."""
        bodies = itertools.compress(_places(self.p.mech, q), self.resting)
        return np.concatenate(
            [np.append(X.translation / self.size, X.rotation.ravel()) for X in bodies]
        )

    def _joints(self, g: ModeGroup) -> LegJoints:
        if g.joints is None:
            g.joints = joints_at(self.p.mech, g.q, self.p.t, self.size)
        return g.joints


def grouped(found: ModeSearch, by: Comparison) -> tuple[list[ModeGroup], int]:
    """All modes, and the number of starts that closed in a configuration with additional finite
    motions."""
    p, groups, moving = found.problem, list[ModeGroup](), 0
    for x in found.closed:
        new = by.group(x)
        group = next((g for g in groups if by.same(g, new)), None)
        if group is not None:
            group.count += 1
            group.take_nearer(new)
        elif _moves(p, x, new.q, by.rank):
            moving += 1
        else:
            groups.append(new)
    for group in groups if by.some_rolled else ():
        _roll_back(group, by)
    return groups, moving


def _moves(p: Problem, x: ClosedStart, q: Vector, rank: int) -> bool:
    """Whether it moves there with its motors held, though other configurations do not."""
    r = _rank(p, x, G := _jacobian(p, x.q))
    return r < rank and _is_finite(p, q, *_null(p, G, r).T)


def _roll_back(group: ModeGroup, by: Comparison) -> None:
    """Turn rolled legs back towards the reference, one by one, so that they do not change signs."""
    p, model = by.p, plain(by.p.mech.model)
    axis_signs = axis_sign_rows(p.mech)
    parts = [slice(i, i + n) for i, n in zip(model.idx_qs, model.nqs, strict=True)]
    passive = [j for j in range(1, model.njoints) if model.idx_vs[j] in p.free]
    pairs = [(j, model.parents[j]) for j in passive if model.parents[j] in passive]
    for joints in [*((j,) for j in passive), *pairs]:
        start = group.q.copy()
        for j in joints:
            start[parts[j]] = p.guess[parts[j]]
        x = tried(p, start, axis_signs)
        if x is not None and x.error <= allowed(p.mech) and not x.opposite:
            new = by.group(x)
            if by.same(group, new):
                group.take_nearer(new)


def _jacobian(p: Problem, q: Vector) -> Array:
    """The scaled Jacobian (m, nv)."""
    return scaled_rows_at(p.mech, q, np.zeros(p.mech.nv), p.t).jacobian


def _rank(p: Problem, x: ClosedStart, G: Array) -> int:
    return int(
        np.count_nonzero(singular_values(G[:, p.free]) > _least_that_counts(p.mech, x.error))
    )


def _least_that_counts(mech: Mechanism, error: float) -> float:
    """The bound below which a singular value counts as zero: at a singular mode it is of the order
    of the square root of the error."""
    if error > MODE_CLOSED:
        return mech.tolerance
    return max(MODE_SINGULAR, RANK_OPEN * float(np.sqrt(error)))


def _null(p: Problem, G: Array, rank: int) -> Array:
    """The motions (nv, n) with the motors held, scaled."""
    basis = null_space_by_svd(G[:, p.free], rank)[3]
    Z = np.zeros((p.mech.nv, basis.shape[1]))
    Z[p.free] = basis
    return Z


def _idle(p: Problem, x: ClosedStart, G: Array, rank: int) -> Array:
    """The finite motions (nv, n) with the motors held, which must be idle.

    Raises
    ------
    NotActuatedError
        If one of them is not idle.
    """
    mech = p.mech
    Z = _null(p, G, rank)
    known = np.zeros((mech.nv, 0))
    if Z.shape[1] == 0:
        return known
    at = sample(mech, x.q, p.t, tolerance=mech.tolerance if x.error > MODE_CLOSED else 0.0)
    found = idle_motions(bodies_at(mech, at, p.t), at, motor_rows(mech), Z)
    idle = [one.basis for one in found.values()]
    if idle:
        u, s, _ = np.linalg.svd(np.hstack(idle), full_matrices=False)
        known = u[:, s > IDLE_SHARE]
    u, s, _ = np.linalg.svd(Z - known @ (known.T @ Z), full_matrices=False)
    others = u[:, s > IDLE_SHARE]
    directions = list(others.T)
    if len(directions) > 1:  # a combination may be a finite motion though no basis motion is
        mixed = np.random.default_rng(0).normal(size=(len(directions), 4))
        directions += list((others @ (mixed / np.linalg.norm(mixed, axis=0))).T)
    moving = [z for z in directions if _is_finite(p, x.q, z)]
    if not moving:
        return known
    size = np.abs(moving).max(axis=0)
    names = [mech.coordinate_names[i] for i in np.argsort(-size) if size[i] > IDLE_SHARE]
    raise NotActuatedError(
        f"{mech.name}: with its motors held, it still moves ({listing(names, 6)}), so its "
        "configurations are no separate modes but a continuum; give the coordinates that are to be "
        "held as motors (dataclasses.replace(mech, actuated=[...])), or lock them by a constraint"
    )


def _is_finite(p: Problem, q: Vector, *directions: Vector) -> bool:
    """Whether a closed configuration lies ahead in one of the directions; from a singular mode none
    does."""
    for direction in (side * z for z in directions for side in (1.0, -1.0)):
        step = MODE_STEP * direction[p.free] * p.mech.column_scale[p.free] / p.metric
        found = tried(p, p.moved(q, step), None)
        if found is None or found.error > allowed(p.mech):
            continue
        if 0.5 * MODE_STEP < distance(p.mech, q, found.q) < 2.0 * MODE_STEP:
            return True
    return False


def _resting(p: Problem, q: Vector, Z: Array) -> Mask:
    """The bodies that rest in the motions Z."""
    here = bodies_at(p.mech, sample(p.mech, q, p.t), p.t)
    bodies = range(int(p.mech.model.njoints))
    return np.array([np.abs(here.twist(i, Z)).max(initial=0.0) <= here.at_rest for i in bodies])


def _places(mech: Mechanism, q: Vector) -> list[pin.SE3]:
    return list(kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), 0.0).placements)


def _turned_back(p: Problem, q: Vector) -> Vector:
    """The same configuration without whole turns of hinges."""
    model, turned = plain(p.mech.model), q.copy()
    for j in range(1, model.njoints):
        i, at = model.idx_qs[j], model.idx_vs[j]
        slides = (p.mech.lengths[1] == at).any()
        if model.nqs[j] == model.nvs[j] == 1 and at in p.free and not slides:
            turned[i] -= 2.0 * np.pi * np.round((q[i] - p.guess[i]) / (2.0 * np.pi))
    return turned if _as_closed(p, q, turned) else q


def nearest_idle(p: Problem, q: Vector) -> Vector:
    """The configuration of the same mode whose idle coordinates are nearest to the reference."""
    x = nearest_configuration(p, q)
    return x if _as_closed(p, q, x) else q


def _as_closed(p: Problem, q: Vector, x: Vector) -> bool:
    return largest(p.scaled_rows(x)[0]) <= max(MODE_CLOSED, 2.0 * largest(p.scaled_rows(q)[0]))


# ------------------------------------------------------------------------------------------- signs


def signs(groups: list[ModeGroup], rank: int) -> tuple[Indices, Indices, list[int]]:
    """Rows, columns among the free coordinates, and the sign of ``det G[rows, columns]`` of each
    mode; the rows and columns are independent at all modes if possible."""
    regular = [g for g in groups if not g.singular]
    best: tuple[float, Indices, Indices] | None = None
    for at in regular:
        rows = np.sort(pivoted_qr(at.G.T, rank).pivots[:rank])
        columns = np.sort(pivoted_qr(at.G[rows], rank).pivots[:rank])
        worst = min(_least(g.G, rows, columns) / g.least for g in regular)
        if best is None or worst > best[0]:
            best = worst, rows, columns
        if rank == min(at.G.shape) == max(at.G.shape):
            break  # there is no choice
    if best is None:
        return np.zeros(0, np.intp), np.zeros(0, np.intp), [0] * len(groups)
    _, rows, columns = best
    found = []
    for g in groups:
        sub = g.G[np.ix_(rows, columns)]
        clear = _least(g.G, rows, columns) > g.clear
        found.append(int(np.linalg.slogdet(sub)[0]) if clear else 0)
    return rows, columns, found


def _least(G: Array, rows: Indices, columns: Indices) -> float:
    return float(singular_values(G[np.ix_(rows, columns)])[-1]) if rows.size else 1.0
