"""A constraint of your own. A nut on a screw whose pitch varies, like a cam:
z = lead * turn + depth * sin(turn). First as a class that follows
holoctl/constraints/contract.py, then as hc.Custom; the numbers in brackets are its steps."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.constraints.contract import Rows
from holoctl.mechanism.mechanism import constraint_rows
from holoctl.tree.coordinates import coordinate_names
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import Kinematics


@dataclass(frozen=True)
class Screw:  # [1]: names and numbers, no model
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
        for coordinate in (self.nut, self.turn):
            if coordinate not in coordinate_names(model):
                raise hc.InputError(f"Screw {name!r}: there is no coordinate {coordinate!r}")
        joints = [model.joints[model.getJointId(c)] for c in (self.nut, self.turn)]
        if any(j.nq != 1 for j in joints):
            raise hc.InputError(f"Screw {name!r}: needs joints with one number each")
        at = [(j.idx_q, j.idx_v) for j in joints]
        return BoundScrew(self.lead, self.depth, at, (f"{name}.nut",), model.nv)


@dataclass(frozen=True)
class BoundScrew:
    """A `Screw` on one model; `at` holds (index into q, index into v) of nut and turn."""

    lead: float
    depth: float
    at: list[tuple[int, int]]
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

# [6] Derivatives against differences along a path q + s v + s^2 a / 2, off the manifold.
rng = np.random.default_rng(0)
q, v, a = rng.normal(size=(3, model.nv))
h = 1e-3


def path(s: float) -> float:
    """phi after the time s."""
    return float(constraint_rows(own, q + s * v + s**2 / 2 * a, v)[1].error[0])


_, r = constraint_rows(own, q, v)
first = (path(h) - path(-h)) / (2 * h)
second = (path(h) - 2 * path(0.0) + path(-h)) / h**2
rate_off = abs(r.rate[0] - first)
drift_off = abs((r.jacobian @ a + r.drift)[0] - second)
print(f"off the manifold by {r.error[0]:+.3f} m, against differences:")
print(f"  own:    rate off by {rate_off:.0e}, G a + drift by {drift_off:.0e}")
_, numeric = constraint_rows(custom, q, v)
print(
    f"  custom: G off by {abs(numeric.jacobian - r.jacobian).max():.0e}, drift by "
    f"{abs(numeric.drift - r.drift)[0]:.0e}"
)

# In use: the torque that accelerates the spindle by 10 rad/s^2, the pendulum swinging freely.
for name, mech in (("own", own), ("custom", custom)):
    q, v = hc.assemble(mech, [0.8, 0.0, 0.5], [5.0, 0.0, 1.5], locked=["spindle", "pendulum"])
    result = hc.inverse_dynamics(mech, q, v, target=[10.0]).raise_if_bad()
    print(f"{name:<7} torque {result.u[0]:.6f} N m, accelerations", result.a.round(6))
    print(f"        the screw lifts with {result.multipliers[0]:.4f} N")
