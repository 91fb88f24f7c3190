"""The rates of joints on which forces act: those of all coordinates, then those between frames.

    r = (v, J_c v)        F = (tau_v + J_c' tau_c)

J_c has a row for each coordinate of a joint that was cut, or is reversed in the tree (its bodies
are parent and child in the other order).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, read_only
from holoctl.base.tolerances import RANDOM_CONFIGURATIONS
from holoctl.constraints.joint_coordinates import AXES_OF, FramePair, Joint
from holoctl.forces.force_protocol import Between, column
from holoctl.tree.kinematics import Kinematics, kinematics
from holoctl.tree.live_motion import LiveMotion, add_vector

__all__ = ["JointRates", "along_rows", "joint_rates", "rows_of_pairs"]

CONSTANT_RATE = 1e-13
"""The rate of a cut joint depends on v by a constant matrix, as in planar mechanisms, if the
entries of this matrix change by no more than this."""


@dataclass(frozen=True, eq=False)
class JointRates:
    """All nv coordinates of a tree, followed by the coordinates of `pairs`.

    Attributes
    ----------
    nv : int
    pairs : tuple of FramePair
        Each joint once, with those of its coordinates that some force uses.
    constant : (count - nv, nv) array or None
        J_c, if it is the same at every configuration.
    """

    nv: int
    pairs: tuple[FramePair, ...]
    constant: Array | None

    @cached_property
    def count(self) -> int:
        """The number of rates."""
        return self.nv + sum(p.count for p in self.pairs)

    def places(self, joint: Joint) -> list[int]:
        """The indices of the rates of a joint."""
        if not isinstance(joint, FramePair):
            return [int(i) for i in joint.columns]
        before = [p.name for p in self.pairs].index(joint.name)
        start = self.nv + sum(p.count for p in self.pairs[:before])
        return [start + self.pairs[before].axes.index(x) for x in joint.axes]

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

    def tick(self, motion: LiveMotion) -> tuple[Array, Callable[[], None] | None]:
        """R (count, nv) with ``r = R v``, and a function that fills it from the motion at q; None
        if it is constant."""
        R = np.vstack([np.eye(self.nv), np.zeros((self.count - self.nv, self.nv))])
        if self.constant is not None:
            R[self.nv :] = self.constant
            return R, None
        axes = [(p, x) for p in self.pairs for x in p.axes]
        n_of, p_of = np.zeros((2, len(axes), 4 * motion.bodies))
        moved = np.array([p.moved for p, _ in axes])
        linear = np.array([x.linear for _, x in axes])[:, None]
        for i, (pair, x) in enumerate(axes):
            frame = pair.a if x.of == "a" else pair.b
            add_vector(n_of[i], frame, [*np.eye(3)[x.axis], 0.0])
            add_vector(p_of[i], pair.b, [0.0, 0.0, 0.0, 1.0])
        placements, J, turning, J_c = motion.placements, motion.J, motion.J[3:], R[self.nv :]
        wrenches = np.zeros((len(axes), 6))

        def about() -> None:
            np.multiply(n_of.dot(placements).dot(turning), moved, J_c)

        def any_axis() -> None:
            n, p = n_of.dot(placements), p_of.dot(placements)
            wrenches[:, :3] = n * linear
            wrenches[:, 3:] = np.where(linear, np.cross(p, n), n)
            np.multiply(wrenches.dot(J), moved, J_c)

        return R, any_axis if linear.any() else about


def joint_rates(model: pin.Model, used: Iterable[FramePair]) -> JointRates:
    """The rates of all coordinates and of the joints `used`, and whether J_c is constant.

    J_c is an analytic function of q: if it is equal at several random q, it is constant.
    """
    pairs = _each_once(used)
    if not pairs:
        return JointRates(model.nv, pairs, np.zeros((0, model.nv)))
    rng, data, found = np.random.default_rng(0), model.createData(), list[Array]()
    for _ in range(RANDOM_CONFIGURATIONS):
        q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
        kin = kinematics(model, data, q, np.zeros(model.nv), 0.0)
        found.append(np.vstack([p.jacobian(kin) for p in pairs]))
    same = np.ptp(found, axis=0).max() <= CONSTANT_RATE
    return JointRates(model.nv, pairs, read_only(found[0]) if same else None)


def _each_once(used: Iterable[FramePair]) -> tuple[FramePair, ...]:
    """Joints, and single coordinates of joints, as joints with all their used coordinates."""
    found: dict[str, FramePair] = {}
    for pair in used:
        axes = {*pair.axes, *(found[pair.name].axes if pair.name in found else ())}
        found[pair.name] = replace(pair, axes=tuple(x for x in AXES_OF[pair.kind] if x in axes))
    return tuple(found.values())


def along_rows(rows: Sequence[dict[int, Any]], laws: Sequence[Any], v: Any) -> Any:
    """``J' tau`` as a column of expressions, from the rows of J and a function r -> tau for each of
    their rates ``r = J v``; None for no effort."""
    efforts: dict[int, Any] = {}
    for row, law in zip(rows, laws, strict=True):
        if law is None:
            continue
        tau = law(sum((x * v[k] for k, x in row.items()), 0.0 * v[0]))
        for k, x in row.items():
            efforts[k] = efforts.get(k, 0.0) + x * tau
    return column(v, efforts)


def rows_of_pairs(pairs: Sequence[FramePair], between: Between) -> list[dict[int, Any]]:
    """The rows of J_c as mappings from coordinate to expression."""
    found: list[dict[int, Any]] = []
    for pair in pairs:
        seen = between(pair.a, pair.b)
        for x in pair.axes:
            n = (seen.Ra if x.of == "a" else seen.Rb)[:, x.axis]
            row: dict[int, Any] = {}
            for k, motion in seen.moves if x.linear else seen.turns:
                row[k] = n.T @ motion + row.get(k, 0.0)
            found.append({k: e for k, e in row.items() if not e.is_zero()})
    return found
