"""The bodies of a mechanism at one configuration: their twists, joints and names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from holoctl.base.checks import Array
from holoctl.base.linalg import null_space_by_svd
from holoctl.base.tolerances import BODY_AT_REST
from holoctl.closing.sampled_configurations import Sample
from holoctl.constraints.joint_coordinates import part_names
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["Bodies", "Edge", "bodies_at", "link_names", "whole_joint"]

Labels = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Edge:
    """A joint between two bodies, of the tree or cut.

    Attributes
    ----------
    a, b : int
        The bodies.
    free : (6, f) array
        Orthonormal basis of the relative twists that it allows.
    rates : (6, nv) array
        The relative twist, by the scaled velocities.
    """

    a: int
    b: int
    free: Array
    rates: Array


class Bodies:
    """The bodies at one configuration: their twists, and the joints between them.

    A body is the index of its joint; 0 is the world. Twists are in world axes, at the middle of the
    mechanism and with lengths in units of its size. A body that moves by less than the fraction
    `at_rest` of a motion is at rest.
    """

    def __init__(self, mech: Mechanism, kin: Kinematics, tolerance: float = 0.0) -> None:
        self.mech, self.q = mech, kin.q
        self.tolerance, self.at_rest = tolerance, max(BODY_AT_REST, tolerance)
        model = plain(mech.model)
        origins = np.array([X.translation for X in kin.placements])
        self.size = float(np.linalg.norm(np.ptp(origins[1:], axis=0))) or 1.0
        self.middle = origins[1:].mean(axis=0)
        J = kin.J * mech.column_scale
        self.J = np.vstack([(J[:3] - np.cross(self.middle, J[3:].T).T) / self.size, J[3:]])
        self.parents = np.array(model.parents.tolist(), dtype=np.intp)
        self.columns = [
            np.arange(i, i + n)
            for i, n in zip(model.idx_vs.tolist(), model.nvs.tolist(), strict=True)
        ]
        self.columns[0] = np.zeros(0, dtype=np.intp)
        # the coordinates that move a body
        self.on = np.zeros((model.njoints, model.nv), dtype=bool)
        for j in range(1, model.njoints):
            self.on[j] = self.on[self.parents[j]]
            self.on[j, self.columns[j]] = True
        self.within = _within(model)
        inner = {part for parts in self.within.values() for part in parts}
        edges = [self._of_tree(j) for j in range(1, model.njoints) if j not in inner]
        for rows in mech.bound:
            if isinstance(rows, WrenchRows):
                edges += self._cut(rows, kin)
        a, b = ([e[i] for e in edges if e[2].shape[1] == 0] for i in (0, 1))
        graph = coo_array((np.ones(len(a)), (a, b)), shape=(model.njoints,) * 2)
        self.welded: Labels = connected_components(graph, directed=False)[1].astype(np.intp)
        """A number for each body; bodies that are welded together have the same number."""
        self.edges = [
            Edge(a, b, free, rates)
            for a, b, free, rates in edges
            if 0 < free.shape[1] < 6 and self.welded[a] != self.welded[b]
        ]

    def _of_tree(self, body: int) -> tuple[int, int, Array, Array]:
        joints = [*self.within.get(body, ()), body]
        columns = np.concatenate([self.columns[j] for j in joints])
        rates = np.zeros(self.J.shape)
        rates[:, columns] = self.J[:, columns]
        return int(self.parents[joints[0]]), body, _basis(self.J[:, columns], self.at_rest), rates

    def _cut(self, rows: WrenchRows, kin: Kinematics) -> list[tuple[int, int, Array, Array]]:
        W = np.asarray(rows.rows(kin).wrenches)
        found = []
        for i, (a, b) in enumerate(zip(rows.frames1, rows.frames2, strict=True)):
            # a wrench at the middle, its moment in units of the size
            force, moment = W[rows.pair == i, :3], W[rows.pair == i, 3:]
            moment = (moment - np.cross(self.middle, force)) / self.size
            held = np.hstack([force, moment])
            held /= np.maximum(np.linalg.norm(held, axis=1), 1e-300)[:, None]
            free = _null(held, self.at_rest)
            found.append((a.joint, b.joint, free, self.J * rows.S[i]))
        return found

    def twist(self, body: int, x: Array) -> Array:
        """(6, ...): the motion of a body for scaled velocities x (nv, ...)."""
        mask = self.on[body]
        w: Array = self.J[:, mask] @ x[mask]
        return w

    def names(self, bodies: Iterable[int]) -> tuple[str, ...]:
        """Names of the links; of joints for bodies without a link, as between joints in series."""
        shown = sorted(bodies)
        links = [x for b in shown for x in link_names(self.mech.model, b)[:1]]
        return tuple(sorted(links)) or tuple(sorted(plain(self.mech.model).names[b] for b in shown))


def bodies_at(mech: Mechanism, at: Sample, t: float) -> Bodies:
    kin = kinematics(mech.model, workspace(mech), at.q, np.zeros(mech.nv), t)
    return Bodies(mech, kin, at.tolerance)


def _basis(A: Array, at_rest: float) -> Array:
    """An orthonormal basis of the range."""
    u, s, _ = np.linalg.svd(A, full_matrices=False)
    basis: Array = u[:, s > at_rest * max(float(s.max(initial=0.0)), 1e-300)]
    return basis


def _null(A: Array, at_rest: float) -> Array:
    s = np.linalg.svd(A, compute_uv=False)
    return null_space_by_svd(A, int(np.count_nonzero(s > at_rest)))[3]


def _within(model: pin.Model) -> dict[int, list[int]]:
    """Bodies without mass between the parts ``name[0], name[1], ...`` of one joint, from above, by
    the body that follows them."""

    def whole(j: int) -> str:
        return whole_joint(model, model.names[j])

    found: dict[int, list[int]] = {}
    for j in range(2, model.njoints):
        above = int(model.parents[j])
        part = above > 0 and whole(j) != model.names[j] and whole(j) == whole(above)
        if part and model.inertias[above].mass == 0.0:
            found[j] = [*found.pop(above, []), above]
    return found


def link_names(model: pin.Model, joint: int) -> list[str]:
    """The names of the links that the joint carries."""
    body = pin.FrameType.BODY
    frames = plain(model).frames
    return [f.name for f in frames if f.parentJoint == joint and f.type == body]


def whole_joint(model: pin.Model, joint: str) -> str:
    """The joint that a joint of the model is a part of: ``name`` for ``name[i]``, or itself."""
    model = plain(model)
    name = joint.rpartition("[")[0]
    return name if joint in part_names(model, name) else joint
