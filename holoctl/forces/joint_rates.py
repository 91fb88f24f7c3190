"""The rates of joints that forces act by: those of all coordinates, then those read off frames.

    r = (v, J_c v)        F = (tau_v + J_c' tau_c)

J_c has a row for each coordinate of a joint that was cut, or hangs upside down in the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector
from holoctl.constraints.joint_coordinates import FramePair, Joint
from holoctl.forces.contract import Between
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["JointRates"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointRates:
    """All nv coordinates of a tree, and behind them the coordinates of `pairs`.

    Attributes
    ----------
    nv : int
    pairs : tuple of FramePair
    """

    nv: int
    pairs: tuple[FramePair, ...]

    @cached_property
    def count(self) -> int:
        """How many rates."""
        return self.nv + sum(p.count for p in self.pairs)

    def places(self, joint: Joint) -> list[int]:
        """Where the rates of a joint stand."""
        if not isinstance(joint, FramePair):
            return [int(i) for i in joint.columns]
        before = self.pairs.index(joint)
        start = self.nv + sum(p.count for p in self.pairs[:before])
        return list(range(start, start + joint.count))

    def at(self, kin: Kinematics) -> tuple[Vector, Array]:
        """The rates r (count,), and J_c."""
        if not self.pairs:
            return kin.v, np.zeros((0, self.nv))
        J = np.vstack([p.jacobian(kin) for p in self.pairs])
        return np.concatenate([kin.v, J @ kin.v]), J

    def efforts(self, tau: Vector, J: Array) -> Vector:
        """``tau_v + J_c' tau_c``, of efforts on the rates (count,)."""
        found: Vector = tau[: self.nv] + tau[self.nv :] @ J
        return found

    def tick(self, motion: LiveMotion) -> Callable[[], Array]:
        """A function that gives J_c from the motion at q; the array is the same at every call."""
        axes = [(p, x) for p in self.pairs for x in p.axes]
        n_of, p_of = np.zeros((2, len(axes), 4 * motion.bodies))
        moved = np.array([p.moved for p, _ in axes])
        linear = np.array([x.linear for _, x in axes])
        for i, (pair, x) in enumerate(axes):
            frame = pair.a if x.of == "a" else pair.b
            n_of[i, 4 * frame.joint :][:3] = frame.placement.rotation[:, x.axis]
            p_of[i, 4 * pair.b.joint :][:4] = *pair.b.placement.translation, 1.0
        placements, J = motion.placements, motion.J
        turning = J[3:]
        wrenches, found = np.zeros((len(axes), 6)), np.zeros((len(axes), self.nv))

        def about() -> Array:
            np.multiply(n_of.dot(placements).dot(turning), moved, found)
            return found

        def any_axis() -> Array:
            n, p = n_of.dot(placements), p_of.dot(placements)
            wrenches[:, :3] = n * linear[:, None]
            wrenches[:, 3:] = np.where(linear[:, None], np.cross(p, n), n)
            np.multiply(wrenches.dot(J), moved, found)
            return found

        return any_axis if linear.any() else about

    def expressions(self, between: Between) -> list[dict[int, Any]]:
        """The rows of J_c: coordinate to entry."""
        found: list[dict[int, Any]] = []
        for pair in self.pairs:
            seen = between(pair.a, pair.b)
            for x in pair.axes:
                n = (seen.Ra if x.of == "a" else seen.Rb)[:, x.axis]
                row: dict[int, Any] = {}
                for k, motion in seen.moves if x.linear else seen.turns:
                    entry = (n.T @ motion) + row.get(k, 0.0)
                    row[k] = entry
                found.append({k: e for k, e in row.items() if not e.is_zero()})
        return found
