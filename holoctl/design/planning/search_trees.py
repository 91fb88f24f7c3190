"""Two trees of closed configurations that grow towards one another.

A tree grows from its nearest node towards a random configuration, as far as steps are accepted;
then the other tree is the target. Where they meet, a path joins their roots.
Reference: J. Kuffner and S. LaValle, "RRT-Connect: an efficient approach to single-query path
planning", IEEE International Conference on Robotics and Automation, 2000.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from scipy.spatial import KDTree

from holoctl.base.checks import Array, Vector
from holoctl.design.planning.manifold_steps import ManifoldPlace, ManifoldSteps
from holoctl.tree.frozen_model import plain

__all__ = ["SearchTree", "Trees", "features"]

RUN = 30
"""Most steps towards a random configuration."""

MEET = 300
"""Most steps from one tree towards the other."""

SPREAD_TURNS, SPREAD_LENGTHS = np.pi, 1.0  # rad; scaled
"""Random configurations are at most this far from a node in each coordinate."""


def features(steps: ManifoldSteps, q: Array) -> Array:
    """Numbers of configurations (n, nq) whose distances tell neighbours: scaled, angles in which
    whole turns do not count as cosine and sine."""
    mech, model = steps.mech, plain(steps.mech.model)
    scale, turning = np.ones(mech.nq), np.zeros(mech.nq, dtype=bool)
    for j in range(1, model.njoints):
        at, v = model.idx_qs[j], model.idx_vs[j]
        count = model.nvs[j] if model.nqs[j] == model.nvs[j] else 3 * (model.nqs[j] == 7)
        scale[at : at + count] = mech.column_scale[v : v + count]
        if model.nqs[j] == model.nvs[j]:
            turning[at : at + count] = steps.turning[v : v + count]
    angles = q[:, turning]
    return np.hstack([(q / scale)[:, ~turning], np.cos(angles), np.sin(angles)])


@dataclass(eq=False)
class SearchTree:
    """Places that are joined to a root."""

    steps: ManifoldSteps
    places: list[ManifoldPlace] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    _features: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, parent: int, stops: list[ManifoldPlace]) -> int:
        """The last of places that follow one another after a node."""
        if not stops:
            return parent
        new = features(self.steps, np.array([stop.q for stop in stops]))
        count = len(self.places)
        if self._features.shape[0] < count + len(stops):
            table = np.full((2 * (count + len(stops)) + 256, new.shape[1]), np.inf)
            if count:
                table[:count] = self._features[:count]
            self._features = table
        self._features[count : count + len(stops)] = new
        for stop in stops:
            self.places.append(stop)
            self.parents.append(parent)
            parent = len(self.places) - 1
        return parent

    @property
    def features(self) -> Array:
        """Those of all places."""
        return self._features[: len(self.places)]

    def nearest(self, q: Vector) -> int:
        """The node nearest to a configuration."""
        off = self.features - features(self.steps, q[None])
        return int(np.argmin(np.einsum("ij,ij->i", off, off)))

    def path(self, at: int) -> list[ManifoldPlace]:
        """The places from the root to a node."""
        found = []
        while at >= 0:
            found.append(self.places[at])
            at = self.parents[at]
        return found[::-1]


class Trees:
    """The search between two places.

    Attributes
    ----------
    one, two : SearchTree
        From the start and from the goal.
    tried : int
        The number of steps that were tried.
    """

    def __init__(
        self, steps: ManifoldSteps, start: ManifoldPlace, goal: ManifoldPlace,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.steps, self.rng, self.tried = steps, rng, 0
        self.one, self.two = SearchTree(steps), SearchTree(steps)
        self.one.add(-1, [start])
        self.two.add(-1, [goal])

    def search(self, most: int) -> list[ManifoldPlace] | None:
        """The path; None if there is none after so many steps."""
        a, b = self.one, self.two
        found = self._joined(a, 0, b, 0)
        while found is None and self.tried < most:
            target = self._random(a)
            i = a.nearest(target)
            new = self._grown(a, i, target, RUN)[0]
            if new != i:
                found = self._joined(a, new, b, b.nearest(a.places[new].q))
            a, b = b, a
        return found

    def nearest(self) -> tuple[ManifoldPlace, ManifoldPlace]:
        """The places of both trees that are nearest to each other."""
        far, ends = KDTree(self.two.features).query(self.one.features)
        i = int(np.argmin(far))
        return self.one.places[i], self.two.places[int(np.asarray(ends)[i])]

    def _joined(self, a: SearchTree, i: int, b: SearchTree, j: int) -> list[ManifoldPlace] | None:
        """Grow tree a from node i towards node j of b: the path, if it gets there."""
        end, there = self._grown(a, i, b.places[j].q, MEET)
        if not there:
            return None
        ahead, back = a.path(end), b.path(j)[::-1]
        if a is self.one:
            return ahead + back[1:]
        return back[::-1] + ahead[::-1][1:]

    def _grown(self, tree: SearchTree, i: int, target: Vector, most: int) -> tuple[int, bool]:
        """Grow a tree from a node towards a target: the last new node, and whether it is there."""
        walk = self.steps.walk(tree.places[i], target, most)
        self.tried += max(walk.tried, 1)
        return tree.add(i, walk.stops), walk.arrived

    def _random(self, tree: SearchTree) -> Vector:
        """A random configuration, not closed, within the limits of the tree's coordinates."""
        steps, mech = self.steps, self.steps.mech
        base = tree.places[int(self.rng.integers(len(tree.places)))].q
        lengths = np.isin(np.arange(mech.nv), mech.lengths[1])
        reach = np.where(lengths, SPREAD_LENGTHS * mech.column_scale, SPREAD_TURNS)
        q: Vector = pin.integrate(mech.model, base, self.rng.uniform(-1.0, 1.0, mech.nv) * reach)
        if steps.bound is not None:
            places = steps.bound.places
            known = places >= 0
            lower, upper = steps.position[:, : places.size][:, known]
            q[places[known]] = np.clip(q[places[known]], lower, upper)
        return q
