"""What moves: joints that cannot, bodies that spin without anything else, motions without motor.

Everything is in scaled coordinates, at the configurations of the samples.
Reference: docs/doctor.md, "Motions".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from holoctl.base.checks import Vector
from holoctl.base.linalg import null_space_by_svd, pivoted_qr
from holoctl.closing.rank import manifold_rank
from holoctl.constraints.closure import Closure
from holoctl.constraints.wrench import WrenchRows
from holoctl.doctor.samples import Sample, Samples, travelled
from holoctl.mechanism.joint_coordinates import joint_motion, part_names
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import nonlinear_efforts
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics, support

__all__ = ["Motion", "Motions", "actuation", "motions"]

Array = NDArray[np.float64]

AT_REST = 1e-5
"""What moves by less than this share of a motion counts as at rest."""


LIGHT = 1e-6
"""Gravity works on a motion by more than this share of the weight of all times its size."""


@dataclass(frozen=True)
class Motion:
    """One motion, by the rates of the coordinates in it.

    Attributes
    ----------
    rates : tuple of (str, float)
        Coordinates and their rates, rad/s or m/s, the first one 1, then the largest first (lengths
        in units of the size of their loop).
    loaded : bool
        Whether gravity works on it at the configuration of the report.
    bodies : tuple of str
        For an idle motion: the bodies that move.
    """

    rates: tuple[tuple[str, float], ...]
    loaded: bool
    bodies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Motions:
    """What moves and what does not.

    Attributes
    ----------
    locked_joints : tuple of str
        Joints that never move.
    idle : tuple of Motion
        Motions that no motor drives and that move bodies between two others and nothing else:
        the spin of a rod between two ball joints.
    undriven : tuple of Motion
        The other motions that no motor drives.
    actuation_rank, generic_actuation_rank : int
        Rank of gamma' B, here and in general.
    """

    locked_joints: tuple[str, ...]
    idle: tuple[Motion, ...]
    undriven: tuple[Motion, ...]
    actuation_rank: int
    generic_actuation_rank: int


def motions(mech: Mechanism, s: Samples, t: float) -> Motions:
    """Look at all samples; what is said of motions holds at every one of them."""
    grips = [actuation(mech, at, T) for at, T in zip(s.generic, s.tangents, strict=True)]
    rank = max(grip.rank for grip in grips)
    usual = [(at, grip) for at, grip in zip(s.generic, grips, strict=True) if grip.rank == rank]
    # idle motions are looked for among all instantaneous ones, which are exact
    found = [
        _idle_spaces(_bodies(mech, at, t), actuation(mech, at, at.null).undriven) for at, _ in usual
    ]
    lasting = set.intersection(*({group for group, _ in spaces} for spaces in found))
    at, grip = usual[0]
    spaces = [x for x in found[0] if x[0] in lasting]
    idle, basis = _independent(_bodies(mech, at, t), spaces, t)
    return Motions(
        _locked_joints(mech, s, t),
        tuple(idle),
        _described(_bodies(mech, at, t), _without(grip.undriven, basis)),
        actuation(mech, s.here, s.here.null).rank,
        rank,
    )


@dataclass(frozen=True, eq=False)
class Actuation:
    """The motors on the admissible motions at one configuration.

    Attributes
    ----------
    rank : int
    values : array
        Singular values of gamma' B, for an orthonormal gamma and motors of unit length (scaled).
    undriven : (nv, n) array
        Orthonormal basis of the motions that move no motor, scaled coordinates.
    """

    rank: int
    values: Vector
    undriven: Array


def actuation(mech: Mechanism, at: Sample, gamma: Array) -> Actuation:
    """``gamma' B`` at one configuration, for motions gamma in scaled coordinates."""
    B = mech.column_scale[:, None] * mech.B
    A = (B / np.linalg.norm(B, axis=0)).T @ gamma  # (nu, k)
    rank = manifold_rank(A, at.error)
    values = np.linalg.svd(A, compute_uv=False) if A.size else np.zeros(0)
    return Actuation(rank, values, gamma @ null_space_by_svd(A, rank)[3])


# ---------------------------------------------------------------------------------- locked


def _locked_joints(mech: Mechanism, s: Samples, t: float) -> tuple[str, ...]:
    """Joints without a part in any finite motion, and such coordinates of joints in series.

    Joints of the tree and cut ones are judged alike, by their rates.
    """
    found: list[str] = []
    for name, rates in _rates(mech, s.generic[0].q, t).items():
        moving = np.zeros(rates.shape[0], dtype=bool)
        for at, T in zip(s.generic, s.tangents, strict=True):
            J = _rates(mech, at.q, t, [name])[name] * mech.column_scale
            size = np.maximum(np.abs(J).max(axis=1, initial=0.0), 1e-9)
            moving |= (np.abs(J @ T) > AT_REST * size[:, None]).any(axis=1)
        if not moving.any():
            found.append(name)
        elif part_names(mech.model, name) != (name,) and _in_series(mech, name):
            found += [f"{name}[{i}]" for i in np.flatnonzero(~moving)]
    return tuple(found)


def _rates(
    mech: Mechanism, q: Vector, t: float, names: Iterable[str] | None = None
) -> dict[str, Array]:
    """For each joint, of the tree or cut, the rates of its coordinates by the velocity."""
    if names is None:
        tree = [_whole(mech.model, n) for n in plain(mech.model).names[1:]]
        cut = [
            name
            for name, c in zip(mech.constraint_names, mech.constraints, strict=True)
            if isinstance(c, Closure) and c.joint not in (None, "weld")
        ]
        names = dict.fromkeys([*tree, *cut])
    return {name: joint_motion(mech, name, q, t=t).jacobian for name in names}


def _whole(model: pin.Model, joint: str) -> str:
    """The joint that a joint of the model is a part of: ``name`` for ``name[i]``, or itself."""
    model = plain(model)
    name = joint.rpartition("[")[0]
    return name if joint in part_names(model, name) else joint


def _in_series(mech: Mechanism, name: str) -> bool:
    """Whether the coordinates are those of joints one after the other, not parts of a rotation."""
    kinds = dict(zip(mech.constraint_names, mech.constraints, strict=True))
    closure = kinds.get(name)
    return not (isinstance(closure, Closure) and closure.joint == "spherical")


# ------------------------------------------------------------------------------------ idle


def _idle_spaces(here: _Bodies, undriven: Array) -> list[tuple[frozenset[int], Array]]:
    """Sets of bodies that can move alone without effect, and a basis of their motions."""
    found: dict[frozenset[int], Array] = {}
    for body in here.moving(undriven):
        basis = _least(here, undriven, body)
        group = frozenset(here.moving(basis))
        if group not in found and all(_is_idle(here, group, x) for x in basis.T):
            found[group] = basis
    return list(found.items())


def _least(here: _Bodies, space: Array, body: int) -> Array:
    """The motions in `space` that move `body` and as little else as possible: far bodies rest."""
    for other in here.from_far(body):
        resting = space @ _null(here.twists(other, space))
        if resting.shape[1] and np.abs(here.twists(body, resting)).max() > AT_REST:
            space = resting
    return space


def _null(A: Array) -> Array:
    s = np.linalg.svd(A, compute_uv=False)
    return null_space_by_svd(A, int(np.count_nonzero(s > AT_REST)))[3]


def _is_idle(here: _Bodies, group: frozenset[int], x: Vector) -> bool:
    """Whether this motion is one of these bodies alone.

    The bodies lie between two different ones at rest. Either all move as one, or one of them
    turns about points (or an axis) of both ends, and the others, such as the parts of a ball
    joint made of three hinges, turn about a point of one end.
    """
    edges = here.boundary(group)
    if len({outside for outside, _ in edges}) < 2:
        return False
    twists = {body: here.twists(body, x[:, None])[:, 0] for body in group}
    size = max(float(np.abs(w).max()) for w in twists.values())
    same = next(iter(twists.values()))
    if all(np.abs(w - same).max() <= AT_REST * size for w in twists.values()):
        return True

    def ends(body: int) -> set[int]:
        """The bodies at rest whose joint with the group is a fixed point of this body."""
        w = twists[body]
        return {
            outside
            for outside, point in edges
            if np.abs(here.velocity(w, point)).max() <= AT_REST * size
        }

    fixed = {body: ends(body) for body in group}
    return all(fixed.values()) and any(len(e) > 1 for e in fixed.values())


def _bodies(mech: Mechanism, at: Sample, t: float) -> _Bodies:
    return _Bodies(mech, kinematics(mech.model, workspace(mech), at.q, np.zeros(mech.nv), t))


class _Bodies:
    """The bodies at one configuration: their twists, and what joins them.

    A body is the index of its joint; 0 is the world. Twists are in world axes, taken at the
    middle of the mechanism and with lengths in units of its size.
    """

    def __init__(self, mech: Mechanism, kin: Kinematics) -> None:
        self.mech, self.q = mech, kin.q
        origins = np.array([X.translation for X in kin.placements])
        self.size = float(np.linalg.norm(np.ptp(origins[1:], axis=0))) or 1.0
        self.middle = origins[1:].mean(axis=0)
        self.on = [support(mech.model, j) for j in range(mech.model.njoints)]
        J = kin.J * mech.column_scale
        self.J = np.vstack([(J[:3] - np.cross(self.middle, J[3:].T).T) / self.size, J[3:]])
        model = plain(mech.model)
        self.auxiliary = _auxiliary(model)
        # a joint of the tree or a closure: two bodies and a point, world; a free joint ties nothing
        self.edges = [
            (self._above(j), j, origins[j])
            for j in range(1, model.njoints)
            if model.nvs[j] < 6 and j not in self.auxiliary
        ]
        for rows in mech._bound:
            if isinstance(rows, WrenchRows):
                pairs = zip(rows.frames1, rows.frames2, strict=True)
                self.edges += [(a.joint, b.joint, kin.point(a)) for a, b in pairs]

    def _above(self, body: int) -> int:
        """The body that this one hangs from."""
        parent = int(plain(self.mech.model).parents[body])
        return self._above(parent) if parent in self.auxiliary else parent

    @cached_property
    def distances(self) -> NDArray[np.intp]:
        """Joints between any two bodies."""
        n = self.mech.model.njoints
        a, b = [e[0] for e in self.edges], [e[1] for e in self.edges]
        graph = coo_array((np.ones(len(a)), (a, b)), shape=(n, n)).tocsr()
        found = shortest_path(graph, directed=False, unweighted=True)
        return np.where(np.isfinite(found), found, n).astype(np.intp)

    def twists(self, body: int, x: Array) -> Array:
        """(6, n): the motion of a body for velocities x (nv, n), scaled coordinates."""
        w: Array = self.J[:, self.on[body]] @ x[self.on[body]]
        return w

    def velocity(self, twist: Vector, point: Vector) -> Vector:
        """Velocity of a point of a body, over the size of the mechanism."""
        v: Vector = twist[:3] + np.cross(twist[3:], (point - self.middle) / self.size)
        return v

    def moving(self, x: Array) -> list[int]:
        """Bodies that any of these motions moves."""
        bodies = [b for b in range(1, self.mech.model.njoints) if b not in self.auxiliary]
        return [b for b in bodies if np.abs(self.twists(b, x)).max(initial=0.0) > AT_REST]

    def from_far(self, body: int) -> Iterable[int]:
        """All other bodies, those behind most joints first."""
        order = np.argsort(-self.distances[body], kind="stable").tolist()
        return [b for b in order if b not in (0, body) and b not in self.auxiliary]

    def boundary(self, group: frozenset[int]) -> list[tuple[int, Vector]]:
        """Joints between the group and others: the body outside, and the point."""
        out = [(a, p) for a, b, p in self.edges if b in group and a not in group]
        return out + [(b, p) for a, b, p in self.edges if a in group and b not in group]

    def names(self, group: Iterable[int], x: Vector) -> tuple[str, ...]:
        """Names of the bodies that keep points of both ends at rest, or of all."""
        edges = self.boundary(frozenset(group))

        def ends(body: int) -> int:
            w = self.twists(body, x[:, None])[:, 0]
            still = [np.abs(self.velocity(w, p)).max() <= AT_REST for _, p in edges]
            return sum(still)

        shown = [b for b in group if ends(b) > 1] or list(group)
        links = [_link(self.mech.model, b) for b in shown]
        # without a link: an auxiliary body, such as half of one, or between joints in series
        return tuple(sorted(filter(None, links))) or tuple(
            sorted(plain(self.mech.model).names[b] for b in shown)
        )


def _auxiliary(model: pin.Model) -> frozenset[int]:
    """Bodies between the parts ``name[0], name[1], ...`` of one joint: they have no mass."""
    model = plain(model)

    def whole(j: int) -> str:
        return _whole(model, model.names[j])

    return frozenset(
        int(model.parents[j])
        for j in range(2, model.njoints)
        if model.parents[j] > 0
        and whole(j) != model.names[j]
        and whole(j) == whole(model.parents[j])
        and model.inertias[model.parents[j]].mass == 0.0
    )


def _link(model: pin.Model, joint: int) -> str:
    """The first link that the joint carries, or nothing."""
    model = plain(model)
    links = (
        f.name for f in model.frames if f.parentJoint == joint and f.type == pin.FrameType.BODY
    )
    return str(next(links, ""))


def _independent(
    here: _Bodies, spaces: Sequence[tuple[frozenset[int], Array]], t: float
) -> tuple[list[Motion], Array]:
    """As many motions as are independent and go on, those of few bodies first, and their basis."""
    found, basis = list[Motion](), np.zeros((here.mech.nv, 0))
    for group, space in sorted(spaces, key=lambda x: (len(x[0]), sorted(x[0]))):
        for x in space.T:
            rest = x - basis @ (basis.T @ x)
            size = float(np.linalg.norm(rest))
            if size > 1e-3 and _goes_on(here, x, t):
                basis = np.column_stack([basis, rest / size])
                (motion,) = _described(here, x[:, None])
                found.append(replace(motion, bodies=here.names(group, x)))
    return found, basis


def _goes_on(here: _Bodies, x: Vector, t: float) -> bool:
    d = travelled(here.mech, here.q, x, t)
    return d is None or float(x @ d) > 0.5


# -------------------------------------------------------------------------------- undriven


def _without(space: Array, known: Array) -> Array:
    """An orthonormal basis of what `space` has beside `known`."""
    rest = space - known @ (known.T @ space)
    u, s, _ = np.linalg.svd(rest, full_matrices=False)
    return u[:, s > 1e-3]


def _described(here: _Bodies, space: Array) -> tuple[Motion, ...]:
    """Motions by coordinates: each has one coordinate of its own, with rate 1."""
    mech = here.mech
    gravity = mech.column_scale * nonlinear_efforts(mech, here.q, np.zeros(mech.nv))
    weight = pin.computeTotalMass(mech.model) * np.linalg.norm(mech.model.gravity.linear)
    if space.shape[1] == 0:
        return ()
    qr = pivoted_qr(space.T, space.shape[1])
    own = qr.pivots[: space.shape[1]]
    basis = np.linalg.solve(space[own].T, space.T)  # rows: motions
    found = []
    for i, x in sorted(zip(own.tolist(), basis, strict=True), key=lambda motion: motion[0]):
        rates = x * mech.column_scale / mech.column_scale[i]
        parts = np.flatnonzero(np.abs(x) > 1e-9 * np.abs(x).max())
        order = sorted(parts.tolist(), key=lambda j: (j != i, -abs(x[j])))
        named = tuple((mech.coordinate_names[j], float(rates[j])) for j in order)
        heavy = abs(gravity @ x) > LIGHT * weight * here.size * np.abs(x).max()
        found.append(Motion(named, bool(heavy)))
    return tuple(found)
