"""The bodies of a mechanism at one configuration: how they move, what joins them, their names."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from holoctl.base.checks import Vector
from holoctl.base.tolerances import BODY_AT_REST
from holoctl.constraints.wrench import WrenchRows
from holoctl.doctor.samples import Sample
from holoctl.mechanism.joint_coordinates import part_names
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.coordinates import support
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["Bodies", "bodies_at", "whole_joint"]

Array = NDArray[np.float64]


class Bodies:
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
        for rows in mech.bound:
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
        return [b for b in bodies if np.abs(self.twists(b, x)).max(initial=0.0) > BODY_AT_REST]

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
            still = [np.abs(self.velocity(w, p)).max() <= BODY_AT_REST for _, p in edges]
            return sum(still)

        shown = [b for b in group if ends(b) > 1] or list(group)
        links = [_link(self.mech.model, b) for b in shown]
        # without a link: an auxiliary body, such as half of one, or between joints in series
        return tuple(sorted(filter(None, links))) or tuple(
            sorted(plain(self.mech.model).names[b] for b in shown)
        )


def bodies_at(mech: Mechanism, at: Sample, t: float) -> Bodies:
    return Bodies(mech, kinematics(mech.model, workspace(mech), at.q, np.zeros(mech.nv), t))


def _auxiliary(model: pin.Model) -> frozenset[int]:
    """Bodies between the parts ``name[0], name[1], ...`` of one joint: they have no mass."""
    model = plain(model)

    def whole(j: int) -> str:
        return whole_joint(model, model.names[j])

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


def whole_joint(model: pin.Model, joint: str) -> str:
    """The joint that a joint of the model is a part of: ``name`` for ``name[i]``, or itself."""
    model = plain(model)
    name = joint.rpartition("[")[0]
    return name if joint in part_names(model, name) else joint
