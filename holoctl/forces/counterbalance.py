"""A constant force that carries a mass against gravity.

    F = -m J_p' g        V = m g . p        g the gravity of the model, p the point

A body whose own mass it carries has inertia and no weight.
Reference: docs/forces.md, "Counterbalances".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, quoted, read_only
from holoctl.base.errors import InputError
from holoctl.constraints.joint_coordinates import Closures
from holoctl.forces.coefficients import coefficient
from holoctl.forces.force_protocol import Between, Efforts, Tick, column
from holoctl.tree.coordinates import support
from holoctl.tree.frames import Frame, FrameLike, default_pair_name, own_frame, resolve_frame
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion, add_vector

__all__ = ["BoundCounterbalance", "Counterbalance"]


@dataclass(frozen=True)
class Counterbalance:
    """A constant force against gravity at a point of a body: it carries a mass there.

    It compensates the weight and leaves the inertia. At the centre of mass of a body, with the mass
    of the body, it makes the body weightless.

    Parameters
    ----------
    frame : str or (str, pin.SE3)
        The frame at whose origin it acts, as in `Closure`.
    mass : float
        The mass that it carries, kg, at least 0: the force is `mass` times the gravity of the
        model, in the opposite direction.
    name : str, optional
        Default: ``"counterbalance of frame"``.

    Raises
    ------
    InputError
        For a mass that is negative or not finite. Raised by `Mechanism` for an unknown frame, and
        for a frame of the ground.

    See Also
    --------
    Spring : a spring between two points, such as one that balances an arm.
    JointSpring : a spring on a joint.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> carried = mech.with_forces([hc.Counterbalance("tip_right", mass=0.5)])
    >>> hc.inverse_dynamics(carried, q, v, [0.0, 0.0]).u.round(2).tolist()
    [-1.45, 1.45]
    """

    frame: FrameLike
    mass: float
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", own_frame(self.frame))
        owner = f"Counterbalance {quoted(self.default_name)}: mass"
        object.__setattr__(self, "mass", coefficient(owner, self.mass))

    @property
    def default_name(self) -> str:
        """The name as given, or ``"counterbalance of frame"``."""
        if self.name is not None:
            return self.name
        return f"counterbalance of {default_pair_name(self.frame)}"

    def bind(
        self, model: pin.Model, name: str, reference: Vector, closures: Closures
    ) -> BoundCounterbalance:
        """This force on `model`."""
        owner = f"Counterbalance {name!r}"
        frame = resolve_frame(model, self.frame, owner)
        if frame.joint == 0:
            raise InputError(f"{owner}: {frame.name!r} is fixed to the ground, which carries it")
        weight = self.mass * np.array(model.gravity.linear)
        moved = support(model, frame.joint).astype(float)
        return BoundCounterbalance(frame, read_only(moved), read_only(weight))


@dataclass(frozen=True, eq=False)
class BoundCounterbalance:
    """A counterbalance tied to a model; `weight` (3,) is m g, N, world axes."""

    friction: ClassVar[bool] = False
    stores: ClassVar[bool] = True

    frame: Frame
    moved: Vector
    weight: Vector

    def at(self, kin: Kinematics) -> Efforts:
        """``-J_p' m g``, as efforts with a stored energy."""
        none = np.zeros(self.moved.size)
        wrench = np.concatenate([self.weight, np.cross(kin.point(self.frame), self.weight)])
        return Efforts(-(wrench @ kin.J) * self.moved, none, none)

    def energy(self, kin: Kinematics) -> float:
        """``m g . p``."""
        return float(self.weight @ kin.point(self.frame))

    def by_velocity(self, kin: Kinematics) -> Array:
        """Zero: the force does not depend on v."""
        return np.zeros((self.moved.size, self.moved.size))

    def tick(self, motion: LiveMotion) -> Tick:
        """The same as a fast function for a control loop."""
        x, y, z = self.weight.tolist()
        point = np.zeros(4 * motion.bodies)
        add_vector(point, self.frame, [0.0, 0.0, 0.0, 1.0])
        placements, J, lifted, w = motion.placements, motion.J, -self.moved, np.zeros(6)
        efforts = np.zeros(self.moved.size)

        def tick(q: Vector, v: Vector, t: float) -> Vector:
            px, py, pz = point.dot(placements).tolist()
            w[:] = x, y, z, py * z - pz * y, pz * x - px * z, px * y - py * x
            np.multiply(w.dot(J), lifted, efforts)
            return efforts

        return tick

    def expression(self, q: Any, v: Any, t: Any, between: Between) -> Any:
        """The same as an expression."""
        import casadi as ca

        seen = between(Frame(0, pin.SE3.Identity(), "universe"), self.frame)
        weight = ca.mtimes(seen.Ra, ca.DM(self.weight))
        efforts: dict[int, Any] = {}
        for k, moves in seen.moves:
            efforts[k] = efforts.get(k, 0.0) - ca.dot(weight, moves)
        return column(v, efforts)
