"""A spring and a damper between two points.

    d = p_b - p_a    L = |d|    n = d / L    Ldot = n . (v_b - v_a)
    tension T = stiffness (L - length) + damping Ldot        F = -J_L' T        V = k (L - l)^2 / 2

J_L is the row of L: the wrench (n, p_b x n) on the body of b, its opposite on that of a.
Reference: docs/forces.md, "Springs between points".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, flag, quoted, read_only
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.renamed import former_names
from holoctl.constraints.joint_coordinates import Closures
from holoctl.forces.coefficients import coefficient
from holoctl.forces.force_protocol import Between, Efforts, Tick, column
from holoctl.tree.coordinates import support
from holoctl.tree.frames import (
    Frame,
    FrameLike,
    default_pair_name,
    frames_of_two_bodies,
    own_frame,
)
from holoctl.tree.kinematics import Kinematics, place
from holoctl.tree.live_motion import LiveMotion, add_vector

__all__ = ["BoundSpring", "Spring"]

COINCIDENT = 1e-6
"""If the ends of a spring are closer than this fraction of its length, the direction between them
is undefined."""


@former_names(a="frame_a", b="frame_b")
@dataclass(frozen=True)
class Spring:
    """A spring and a damper between two points, of bodies or of a body and the ground.

    The tension ``stiffness (L - length) + damping Ldot`` pulls the points together along the line
    between them if it is positive, and pushes them apart if it is negative.

    Parameters
    ----------
    a, b : str or (str, pin.SE3)
        Frames at whose origins the spring is attached, as in `Closure`; ``("universe", pin.SE3)``
        is a point of the ground.
    stiffness : float
        N/m, at least 0.
    length : float
        Length without tension, m, at least 0.
    damping : float, optional
        N s/m, at least 0.
    unilateral : bool, optional
        True for a rope: it has tension only if it is longer than `length`, and never pushes.
    name : str, optional
        Default: ``"spring a-b"``.

    Raises
    ------
    InputError
        For coefficients that are negative or not finite. Raised by `Mechanism` for unknown frames,
        two frames on one body, and ends that coincide although their direction is needed.

    See Also
    --------
    JointSpring : a spring on a joint.
    Counterbalance : a constant force against gravity.
    Rod : a constant distance.

    Examples
    --------
    >>> import pinocchio as pin, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> hook = ("universe", pin.SE3.Identity())
    >>> rope = hc.Spring(hook, "tip_right", stiffness=200.0, length=0.3, unilateral=True)
    >>> q, v = hc.assemble(mech)
    >>> round(hc.energy(mech.with_forces([rope]), q, v).springs, 3)
    2.261
    """

    a: FrameLike
    b: FrameLike
    stiffness: float
    length: float
    damping: float = 0.0
    unilateral: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        for what in ("a", "b"):
            object.__setattr__(self, what, own_frame(getattr(self, what)))
        owner = f"Spring {quoted(self.default_name)}"
        for what in ("stiffness", "damping", "length"):
            object.__setattr__(self, what, coefficient(f"{owner}: {what}", getattr(self, what)))
        flag(f"{owner}: unilateral", self.unilateral)

    @property
    def default_name(self) -> str:
        """The name as given, or ``"spring a-b"``."""
        if self.name is not None:
            return self.name
        return f"spring {default_pair_name(self.a, self.b)}"

    def bind(
        self, model: pin.Model, name: str, reference: Vector, closures: Closures
    ) -> BoundSpring:
        """This spring on `model`."""
        owner = f"Spring {name!r}"
        why = "that nothing stretches between them"
        a, b = frames_of_two_bodies(model, (self.a, self.b), owner, why)
        at = [place(model, reference, f).translation for f in (a, b)]
        apart = float(np.linalg.norm(at[1] - at[0]))
        size = max(self.length, apart if self.damping else 0.0)
        moved = support(model, b.joint).astype(float) - support(model, a.joint)
        bound = BoundSpring(owner, a, b, read_only(moved), self, COINCIDENT * size)
        if not self.unilateral and (self.length or self.damping) and apart <= COINCIDENT * size:
            raise InputError(
                f"{owner}: its ends coincide at the reference configuration, so that there is no "
                f"direction between them ({apart:.2g} m, with length {self.length:g} m); is a "
                "placement missing?"
            )
        return bound


class _Line(NamedTuple):
    """The line between the ends: its length, and the row of its rate."""

    L: float
    row: Vector


@dataclass(frozen=True, eq=False)
class BoundSpring:
    """A spring tied to a model."""

    friction: ClassVar[bool] = False

    owner: str
    a: Frame
    b: Frame
    moved: Vector
    description: Spring
    nearest: float
    """The direction between ends that are closer than this, m, is undefined."""

    @property
    def stores(self) -> bool:
        """Whether the stiffness is not zero."""
        return self.description.stiffness > 0.0

    def at(self, kin: Kinematics) -> Efforts:
        """``-J' k (L - l)`` and ``-J' d Ldot``."""
        none, line = np.zeros(self.moved.size), self._line(kin)
        if self._slack(line.L):
            return Efforts(none, none, none)
        pull, damp = self._tensions(kin, line)
        return Efforts(-pull * line.row, -damp * line.row, none)

    def tension(self, kin: Kinematics) -> float:
        """The tension T, N."""
        line = self._line(kin)
        return 0.0 if self._slack(line.L) else sum(self._tensions(kin, line))

    def _tensions(self, kin: Kinematics, line: _Line) -> tuple[float, float]:
        """The tensions of the spring and of the damper of a line that is not slack."""
        s = self.description
        pull, damp = s.stiffness * (line.L - s.length), s.damping * float(line.row @ kin.v)
        # a rope does not push
        return pull, max(damp, -pull) if s.unilateral else damp

    def energy(self, kin: Kinematics) -> float:
        """``k (L - l)^2 / 2``."""
        s = self.description
        d = kin.point(self.b) - kin.point(self.a)
        L = float(np.linalg.norm(d))
        return 0.0 if self._slack(L) else 0.5 * s.stiffness * (L - s.length) ** 2

    def by_velocity(self, kin: Kinematics) -> Array:
        """``-d J' J``."""
        s, line = self.description, self._line(kin)
        pull = s.stiffness * (line.L - s.length)
        rests = self._slack(line.L) or (
            s.unilateral and s.damping * float(line.row @ kin.v) < -pull
        )
        return -(0.0 if rests else s.damping) * np.outer(line.row, line.row)

    def _slack(self, L: float) -> bool:
        return self.description.unilateral and self.description.length >= L

    def _line(self, kin: Kinematics) -> _Line:
        p = kin.point(self.b)
        d = p - kin.point(self.a)
        L = float(np.linalg.norm(d))
        if self._undirected(L):
            raise SingularityError(
                f"{self.owner}: its ends coincide ({L:.2g} m apart), so that there is no direction "
                f"between them, and it has length {self.description.length:g} m; no force is given"
            )
        n = d / L if L > 0.0 else d
        row = np.concatenate([n, np.cross(p, n)]) @ (kin.J * self.moved)
        return _Line(L, row)

    def _undirected(self, L: float) -> bool:
        return not self._slack(L) and self.nearest >= L and self.nearest > 0.0

    def tick(self, motion: LiveMotion) -> Tick:
        """The same as a fast function for a control loop; nan if the ends coincide, so that `at`
        decides."""
        s, nearest = self.description, self.nearest
        k, length, c, rope = s.stiffness, s.length, s.damping, s.unilateral
        ends = np.zeros((2, 4 * motion.bodies))
        for line, f in zip(ends, (self.a, self.b), strict=True):
            add_vector(line, f, [0.0, 0.0, 0.0, 1.0])
        placements, J, moved, w = motion.placements, motion.J, self.moved, np.zeros(6)
        efforts, nothing, nowhere = np.zeros((3, moved.size))
        nowhere[:] = np.nan

        def tick(q: Vector, v: Vector, t: float) -> Vector:
            (ax, ay, az), (bx, by, bz) = ends.dot(placements).tolist()
            x, y, z = bx - ax, by - ay, bz - az
            L = sqrt(x * x + y * y + z * z)
            if rope and length >= L:
                return nothing
            if nearest >= L:
                return nowhere if nearest > 0.0 else nothing
            w[:] = x, y, z, by * z - bz * y, bz * x - bx * z, bx * y - by * x
            np.multiply(w.dot(J), moved, efforts)  # the row of L Ldot
            tension = k * (L - length) + (c / L * float(efforts.dot(v)) if c else 0.0)
            if rope and tension < 0.0:
                return nothing
            np.multiply(efforts, -tension / L, efforts)
            return efforts

        return tick

    def expression(self, q: Any, v: Any, t: Any, between: Between) -> Any:
        """The same as an expression."""
        import casadi as ca

        s, (L, row) = self.description, self._symbols(between)
        tension = s.stiffness * (L - s.length)
        if s.damping:
            tension = tension + s.damping * sum(x * v[k] for k, x in row.items())
        if s.unilateral:
            tension = ca.if_else(s.length >= L, 0.0, ca.fmax(tension, 0.0))
        return column(v, {k: -x * tension for k, x in row.items()})

    def guard(self, q: Any, v: Any, t: Any, between: Between) -> list[Any]:
        """Above one if the ends coincide, and their direction is undefined; a slack rope needs
        none."""
        import casadi as ca

        length, rope = self.description.length, self.description.unilateral
        if self.nearest == 0.0 or (rope and length >= self.nearest):
            return []
        L, _ = self._symbols(between)
        guard = (self.nearest / L) ** 2
        return [ca.if_else(length >= L, 0.0, guard) if rope else guard]

    def _symbols(self, between: Between) -> tuple[Any, dict[int, Any]]:
        """L and its row."""
        import casadi as ca

        seen = between(self.a, self.b)
        d = seen.pb - seen.pa
        L = ca.sqrt(ca.fmax(ca.dot(d, d), np.finfo(float).tiny))
        row: dict[int, Any] = {}
        for k, moves in seen.moves:
            row[k] = row.get(k, 0.0) + ca.dot(d, moves) / L
        return L, row
