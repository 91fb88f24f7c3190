"""A spring and a damper on the coordinates of a joint.

    tau = -stiffness e - damping r        e: value less rest        V = stiffness |e|^2 / 2

For an angle known up to multiples of 2 pi, e is wrapped to half a turn; for a spherical joint it is
the rotation vector from rest, which is the gradient of |e|^2 / 2 along the angular velocity.
Reference: docs/forces.md, "Joint springs".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2
from operator import mod
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin

from holoctl.base.angles import wrapped
from holoctl.base.checks import (
    Array,
    Vector,
    counted,
    number,
    numbers,
    plain_name,
    quoted,
    read_only,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.base.tolerances import HALF_TURN
from holoctl.constraints.joint_coordinates import Closures, FramePair, Joint, joint_called
from holoctl.forces.coefficients import coefficient
from holoctl.forces.force_protocol import Between, Efforts, Tick, column
from holoctl.forces.joint_rates import along_rows, rows_of_pairs
from holoctl.tree.coordinates import joint_of_coordinate
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["BoundJointSpring", "JointSpring"]

SMALL_TURN = 1e-8
"""The rotation vector is computed by a series where sin^2(angle / 2) is smaller."""


@dataclass(frozen=True, eq=False)
class JointSpring:
    """A spring and a damper on a joint of the tree, or on a cut joint: ``-k (x - rest) - d r``.

    Parameters
    ----------
    joint : str
        A joint of one coordinate or a spherical one, of the tree or a closure with ``joint=``; or
        one coordinate of another joint, ``joint[i]``.
    stiffness : float
        N m/rad or N/m, at least 0.
    rest : float or (3,) array_like, optional
        Position without effort, rad or m. For angles known up to multiples of 2 pi (continuous
        joints, cut joints) the difference is wrapped to half a turn, where the effort is
        discontinuous. For a spherical joint a rotation vector, rad; default: the frames agree.
    damping : float, optional
        N m s/rad or N s/m, at least 0.
    name : str, optional
        Default: ``"spring on"`` and the joint.

    Raises
    ------
    InputError
        For coefficients that are negative or not finite. Unknown joints, and joints of several
        coordinates, are refused by `Mechanism`.

    See Also
    --------
    Spring : a spring between two points.
    JointFriction : friction in joints.
    energy : the stored energy.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> sprung = mech.with_forces([hc.JointSpring("rocker", stiffness=4.0, rest=1.0)])
    >>> hc.energy(sprung, [1.0, -0.4, 1.5], [0.0, 0.0, 0.0]).springs
    0.5
    """

    joint: str
    stiffness: float
    rest: Any = 0.0
    damping: float = 0.0
    name: str | None = None

    def __post_init__(self) -> None:
        owner = f"JointSpring {quoted(self.default_name)}"
        if not isinstance(self.joint, str):
            raise InputError(
                f"{owner}: joint must be the name of a joint; got {quoted(self.joint)}"
            )
        for what in ("stiffness", "damping"):
            object.__setattr__(self, what, coefficient(f"{owner}: {what}", getattr(self, what)))
        rest = numbers(f"{owner}: rest", self.rest)
        kept: Any = number(f"{owner}: rest", rest.item()) if rest.ndim == 0 else None
        if kept is None:
            kept = tuple(vector(f"{owner}: rest", rest, 3, "a rotation vector").tolist())
        object.__setattr__(self, "rest", kept)

    @property
    def default_name(self) -> str:
        """The name as given, or ``"spring on"`` and the joint."""
        return self.name if self.name is not None else f"spring on {plain_name(self.joint)}"

    @property
    def joints(self) -> tuple[str, ...]:
        """The joint."""
        return (self.joint,)

    def bind(
        self, model: pin.Model, name: str, reference: Vector, closures: Closures
    ) -> BoundJointSpring:
        """This spring on `model`."""
        model, owner = plain(model), f"JointSpring {name!r}"
        joint = joint_called(model, self.joint, closures, owner)
        if joint is None:  # its closure is off
            return BoundJointSpring(None, model.nv, 0.0, 0.0, read_only(np.zeros(1)), "flat")
        sort = _sort(model, joint)
        if sort is None:
            raise InputError(
                f"{owner}: {self.joint!r} has {counted(joint.count, 'coordinate')}"
                f"{', which is no number in q' if joint.count == 1 else ''}; a spring is on one "
                "that is a length or an angle (joint[i] names one of several), or on a spherical "
                "joint"
            )
        size = 3 if sort == "rotation" else 1
        rest = np.zeros(3) if size == 3 and self.rest == 0.0 else np.atleast_1d(self.rest)
        if rest.shape != (size,):
            meaning = "a rotation vector, shape (3,)" if size == 3 else "a number"
            raise InputError(
                f"{owner}: rest of {self.joint!r} must be {meaning}; got {self.rest!r}"
            )
        return BoundJointSpring(
            joint, model.nv, self.stiffness, self.damping, read_only(rest.astype(float)), sort
        )


def _sort(model: pin.Model, joint: Joint) -> str | None:
    """The kind of position of a joint: a number, an angle up to multiples of 2 pi, or a
    rotation."""
    if isinstance(joint, FramePair):
        if joint.kind == "spherical" and joint.count == 3:
            return "rotation"
        if joint.count != 1 or joint.kind in ("spherical", "free"):
            return None
        return "flat" if joint.axes[0].linear else "turn"
    if joint.turning:
        return "turn" if joint.count == 1 else None
    if joint.count == 1:
        return "flat" if joint.places.size == 1 else None
    is_ball = model.joints[int(joint_of_coordinate(model)[joint.columns[0]])].shortname()
    return "rotation" if is_ball == "JointModelSpherical" else None


@dataclass(frozen=True, eq=False)
class BoundJointSpring:
    """A spring on a joint tied to a model; with joint None it has no effort."""

    friction: ClassVar[bool] = False

    joint: Joint | None
    nv: int
    stiffness: float
    damping: float
    rest: Vector
    sort: str

    @property
    def stores(self) -> bool:
        """Whether the stiffness is not zero."""
        return self.stiffness > 0.0

    def at(self, kin: Kinematics) -> Efforts:
        """``-J' k e`` and ``-J' d r``."""
        none = np.zeros(self.nv)
        if self.joint is None:
            return Efforts(none, none, none)
        x = self.joint.at(kin)
        e = self.away(x.value)
        J = x.jacobian.T
        return Efforts(-J @ (self.stiffness * e), -J @ (self.damping * x.rate), none)

    def energy(self, kin: Kinematics) -> float:
        """``k |e|^2 / 2``."""
        if self.joint is None:
            return 0.0
        e = self.away(self.joint.value(kin))
        return 0.5 * self.stiffness * float(e @ e)

    def by_velocity(self, kin: Kinematics) -> Array:
        """``-d J' J``."""
        if self.joint is None:
            return np.zeros((self.nv, self.nv))
        J = self.joint.at(kin).jacobian
        return -self.damping * (J.T @ J)

    def away(self, value: Vector) -> Vector:
        """e: the value minus rest."""
        if self.sort == "rotation":
            R = pin.Quaternion(value).toRotationMatrix()
            return np.asarray(pin.log3(pin.exp3(self.rest).T @ R))
        e = value - self.rest
        return np.asarray(wrapped(e) if self.sort == "turn" else e)

    def tick(self, motion: LiveMotion) -> Tick | None:
        """For one coordinate of the tree, with plain floats; None for joints between frames."""
        joint, k, d, efforts = self.joint, self.stiffness, self.damping, np.zeros(self.nv)
        if joint is None:
            return lambda q, v, t: efforts
        if isinstance(joint, FramePair) or self.sort == "rotation":
            return None
        column, place, rest = int(joint.columns[0]), int(joint.places[0]), float(self.rest[0])

        def on_line(q: Vector, v: Vector, t: float) -> Vector:
            efforts[column] = k * (rest - q.item(place)) - d * v.item(column)
            return efforts

        def turning(q: Vector, v: Vector, t: float) -> Vector:
            e = wrapped(atan2(q.item(place + 1), q.item(place)) - rest, mod)
            efforts[column] = -k * e - d * v.item(column)
            return efforts

        return turning if self.sort == "turn" else on_line

    def expression(self, q: Any, v: Any, t: Any, between: Between) -> Any:
        """The same as an expression."""
        joint = self.joint
        if joint is None:
            return column(v, {})
        if isinstance(joint, FramePair):
            value = _read(joint, between)
            rows = rows_of_pairs((joint,), between)
        else:
            value = [q[int(i)] for i in joint.places]
            rows = [{int(i): 1.0} for i in joint.columns]
        k, d = self.stiffness, self.damping
        return along_rows(rows, [lambda r, e=e: -k * e - d * r for e in self._away(value)], v)

    def guard(self, q: Any, v: Any, t: Any, between: Between) -> list[Any]:
        """For a spherical joint between frames: near half a turn its quaternion is inaccurate."""
        if not isinstance(self.joint, FramePair) or self.sort != "rotation":
            return []
        return [(HALF_TURN / _read(self.joint, between)[3]) ** 2]

    def _away(self, value: list[Any]) -> list[Any]:
        """e as expressions, from the entries of a joint in q, or their equivalents between
        frames."""
        import casadi as ca

        if self.sort == "rotation":
            return _rotation_vector(_relative(pin.exp3(self.rest), value))
        if self.sort == "turn":
            angle = ca.atan2(value[1], value[0]) - float(self.rest[0])
            return [wrapped(angle, lambda x, y: x - y * ca.floor(x / y))]
        return [value[0] - float(self.rest[0])]


# ----------------------------------------------------------------------------- as expressions


def _read(joint: FramePair, between: Between) -> list[Any]:
    """The position of a joint between frames: a length, cosine and sine, or a quaternion."""
    import casadi as ca

    seen = between(joint.a, joint.b)
    R, p = seen.Ra.T @ seen.Rb, seen.Ra.T @ (seen.pb - seen.pa)
    if joint.kind == "spherical":
        w = 0.5 * ca.sqrt(1.0 + ca.trace(R))
        xyz = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
        return [*(x / (4.0 * w) for x in xyz), w]
    if joint.axes[0].linear:
        return [p[joint.axes[0].axis]]
    return list(joint.sine_cosine(joint.axes[0], R))[::-1]


def _relative(rest: Array, value: list[Any]) -> list[Any]:
    """The quaternion x y z w relative to rest: the conjugate of rest times it."""
    import casadi as ca

    x, y, z, w = (float(c) for c in pin.Quaternion(rest).coeffs())
    of_rest, u = ca.DM([x, y, z]), ca.vertcat(*value[:3])
    turned = w * u - value[3] * of_rest - ca.cross(ca.SX(of_rest), u)
    return [turned[0], turned[1], turned[2], w * value[3] + ca.dot(of_rest, u)]


def _rotation_vector(quaternion: list[Any]) -> list[Any]:
    """``2 atan2(n, |w|) / n`` times the vector part, n its norm: at most half a turn."""
    import casadi as ca

    *u, w = quaternion
    side = ca.if_else(w < 0.0, -1.0, 1.0)
    w, nn = side * w, u[0] ** 2 + u[1] ** 2 + u[2] ** 2
    n = ca.sqrt(ca.fmax(nn, SMALL_TURN))
    size = ca.if_else(
        nn < SMALL_TURN, 2.0 / w * (1.0 - nn / (3.0 * w * w)), 2.0 * ca.atan2(n, w) / n
    )
    return [side * size * x for x in u]
