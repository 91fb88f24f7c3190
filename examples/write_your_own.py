"""Constraints of your own, three ways; the numbers in brackets are the steps of
holoctl/constraints/constraint_protocol.py.

A peg on a cylinder keeps its distance from the axis: rows between two bodies, as data.
A nut on a screw whose pitch varies, like a cam, z = lead * turn + depth * sin(turn): first as a
class that evaluates its row itself, then as hc.Custom."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.protocols import (
    BoundRows,
    Frame,
    Kinematics,
    LiveMotion,
    Rows,
    kinds,
    resolve_frame,
    wrench_rows,
)

# A kind of row: a function of rows along vectors, here of the coordinates x, y of the peg seen
# from the cylinder, f = (x^2 + y^2 - r^2) / 2 r, with its derivatives. Its size is the radius r.
ON_CYLINDER = kinds.Composed(
    parts=(kinds.linear("x", (1.0, 0.0, 0.0)), kinds.linear("y", (0.0, 1.0, 0.0))),
    value=lambda x, r, atan2, floor: (x[0] * x[0] + x[1] * x[1] - r * r) / (2.0 * r),
    gradient=lambda x, r: (x[0] / r, x[1] / r),
    curvature=lambda x, xdot, r: (xdot[0] * xdot[0] + xdot[1] * xdot[1]) / r,
    guard=lambda x: 0.0,
)


@dataclass(frozen=True)
class Peg:  # [1]: names and numbers, no model
    """The origin of frame `peg` stays at a distance from the z axis of frame `cylinder`."""

    cylinder: str
    peg: str
    radius: float  # m
    name: str | None = None
    t_stab: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.radius < np.inf:
            raise hc.InputError(f"Peg {self.default_name!r}: the radius must be above zero")

    @property
    def default_name(self) -> str:
        return self.name or f"{self.cylinder}-{self.peg}"

    def bind(self, model: pin.Model, name: str, reference: np.ndarray) -> BoundRows:  # [2]
        one, two = (resolve_frame(model, f, f"Peg {name!r}") for f in (self.cylinder, self.peg))
        row = kinds.Row(ON_CYLINDER, "radius", size=self.radius)
        return wrench_rows(model, one, two, [row], name)  # and all is done


@dataclass(frozen=True)
class Screw:  # [1]
    """``nut - lead * turn - depth * sin(turn) = 0``, m."""

    nut: str
    turn: str
    lead: float  # m/rad
    depth: float  # m
    name: str | None = None
    t_stab: float | None = None

    def __post_init__(self) -> None:
        if not np.isfinite([self.lead, self.depth]).all():
            raise hc.InputError(f"Screw {self.default_name!r}: lead and depth must be finite")

    @property
    def default_name(self) -> str:
        return self.name or f"{self.nut}-{self.turn}"

    def bind(self, model: pin.Model, name: str, reference: np.ndarray) -> "BoundScrew":  # [2]
        for joint in (self.nut, self.turn):
            if not model.existJointName(joint):
                raise hc.InputError(f"Screw {name!r}: there is no joint {joint!r}")
        joints = [model.joints[model.getJointId(c)] for c in (self.nut, self.turn)]
        if any(j.nq != 1 for j in joints):
            raise hc.InputError(f"Screw {name!r}: needs joints with one number each")
        at = tuple((j.idx_q, j.idx_v) for j in joints)
        return BoundScrew(self.lead, self.depth, at, (f"{name}.nut",), model.nv)


@dataclass(frozen=True)
class BoundScrew:
    """A `Screw` on one model; `at` holds (index into q, index into v) of nut and turn."""

    lead: float
    depth: float
    at: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]
    nv: int
    anchors: tuple[Frame, ...] = ()  # [3]: no frames that tell the size of a loop

    @property
    def support(self) -> np.ndarray:  # [3]: the coordinates that matter
        mask = np.zeros((1, self.nv), dtype=bool)
        mask[0, [v for _, v in self.at]] = True
        return mask

    def scale(self, length: np.ndarray, columns: np.ndarray) -> np.ndarray:  # [4]
        return 1.0 / length  # the error is a length

    def rows(self, kin: Kinematics) -> Rows:  # [5]: exact, also where the error is not zero
        (nut, nut_v), (turn, turn_v) = self.at
        z, x, xd = kin.q[nut], kin.q[turn], kin.v[turn_v]
        G = np.zeros((1, self.nv))
        G[0, nut_v] = 1.0
        G[0, turn_v] = -(self.lead + self.depth * np.cos(x))
        return Rows(
            error=np.array([z - self.lead * x - self.depth * np.sin(x)]),
            rate=G @ kin.v,
            jacobian=G,
            drift=np.array([self.depth * np.sin(x) * xd**2]),
        )

    def tick(  # [7]: the same in a control loop, into arrays that stay where they are
        self, motion: LiveMotion, rows: Rows
    ) -> Callable[[np.ndarray, np.ndarray, float], None]:
        (nut, nut_v), (turn, turn_v) = self.at
        rows.jacobian[0, nut_v] = 1.0

        def evaluate(q: np.ndarray, v: np.ndarray, t: float) -> None:
            z, x, zd, xd = q[nut], q[turn], v[nut_v], v[turn_v]
            bend, slope = self.depth * np.sin(x), self.lead + self.depth * np.cos(x)
            rows.error[0], rows.rate[0] = z - self.lead * x - bend, zd - slope * xd
            rows.jacobian[0, turn_v], rows.drift[0] = -slope, bend * xd * xd

        return evaluate

    def expression(self, q: Any, t: Any, place: Any) -> Any:  # [7]: phi, for machine code
        import casadi

        (nut, _), (turn, _) = self.at
        return q[nut] - self.lead * q[turn] - self.depth * casadi.sin(q[turn])


LEAD, DEPTH = 0.02, 0.01


def screw(q: np.ndarray) -> float:
    """The same, with derivatives left to hc.Custom."""
    return float(q[1] - LEAD * q[0] - DEPTH * np.sin(q[0]))


# A vertical spindle, and a carriage of 3 kg on it with a pendulum.
model = pin.Model()
spindle = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "spindle")
carriage = model.addJoint(0, pin.JointModelPZ(), pin.SE3.Identity(), "carriage")
pendulum = model.addJoint(carriage, pin.JointModelRY(), pin.SE3.Identity(), "pendulum")
model.inertias[spindle] = pin.Inertia(1.0, np.zeros(3), 1e-3 * np.eye(3))
model.inertias[carriage] = pin.Inertia(3.0, np.zeros(3), 1e-2 * np.eye(3))
model.inertias[pendulum] = pin.Inertia(0.5, np.array([0.0, 0.0, -0.2]), 1e-3 * np.eye(3))

own = hc.Mechanism(model, [Screw("carriage", "spindle", LEAD, DEPTH)], ["spindle"])
custom = hc.Mechanism(model, [hc.Custom(screw, scale=0.2)], ["spindle"])  # scale: its size, m

# Two arms in space; the tip of the second slides around a drum on the first.
arms = pin.Model()
at = {"first": 0, "second": 0}
for name, x, joint in (
    ("first", 0.0, pin.JointModelRX()), ("turn", 0.6, pin.JointModelRZ()),
    ("lift", 0.0, pin.JointModelRY()),
):  # fmt: skip
    below = arms.getJointId("turn") if name == "lift" else 0
    at[name] = arms.addJoint(below, joint, pin.SE3(np.eye(3), np.array([x, 0.0, 0.0])), name)
    arms.inertias[at[name]] = pin.Inertia(1.0, np.array([0.1, 0.0, 0.1]), 1e-2 * np.eye(3))
tip = pin.SE3(np.eye(3), np.array([-0.5, 0.0, 0.1]))
arms.addFrame(pin.Frame("tip", at["lift"], tip, pin.FrameType.OP_FRAME))
drum = hc.Mechanism(arms, [Peg("first", "tip", 0.15)], ["first", "turn"])

# [6] Derivatives against differences along a path q + s v + s^2 a / 2, off the manifold.
h = 1e-3
for name, mech in (("nut", own), ("peg", drum)):
    q, v, a = np.random.default_rng(0).normal(size=(3, mech.nv))

    def path(s: float, mech: hc.Mechanism = mech, q: Any = q, v: Any = v, a: Any = a) -> float:
        """phi after the time s."""
        return float(hc.terms(mech, q + s * v + s**2 / 2 * a, v).error[0])

    r = hc.terms(mech, q, v)
    first = (path(h) - path(-h)) / (2 * h)
    second = (path(h) - 2 * path(0.0) + path(-h)) / h**2
    print(
        f"{name}: off the manifold by {r.error[0]:+.3f} m; against differences the rate is off by "
        f"{abs(r.rate[0] - first):.0e}, G a + drift by "
        f"{abs((r.jacobian @ a + r.drift)[0] - second):.0e}"
    )

# In use: the torque that accelerates the spindle by 10 rad/s^2, the pendulum swinging freely.
for name, mech in (("own", own), ("custom", custom)):
    q, v = hc.assemble(mech, [0.8, 0.0, 0.5], [5.0, 0.0, 1.5], locked=["spindle", "pendulum"])
    result = hc.inverse_dynamics(mech, q, v, target=[10.0]).raise_if_bad()
    print(f"{name:<7} torque {result.u[0]:.6f} N m, accelerations", result.a.round(6))
    print(f"        the screw lifts with {result.multipliers[0]:.4f} N")

# [7] The same torques in a control loop, and in machine code where CasADi is installed.
for name, mech in (("nut", own), ("peg", drum)):
    q, v = hc.assemble(mech, v_guess=np.full(mech.nv, 0.5))
    target = np.ones(mech.nu)
    u = hc.inverse_dynamics(mech, q, v, target).u
    loop = hc.PreparedInverseDynamics(mech)
    line = (
        f"{name}: {u.round(4)} N m; in a loop off by {abs(loop.torque(q, v, target) - u).max():.0e}"
    )
    try:
        compiled = hc.compile(mech, ["inverse_dynamics"])
    except hc.InputError:  # without CasADi
        print(line)
        continue
    machine = compiled.inverse_dynamics(q, v, target)
    print(f"{line}, in machine code by {abs(machine - u).max():.0e}")
