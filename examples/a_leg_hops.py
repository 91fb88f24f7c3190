"""A leg hops on the spot until it stands: its foot lands, holds and leaves in one run."""

from types import SimpleNamespace

import numpy as np
import pinocchio as pin

import holoctl as hc

# A body that slides up and down, and a foot below it on a spring with a damper, pushed by a motor.
model = pin.Model()
body = model.addJoint(0, pin.JointModelPZ(), pin.SE3.Identity(), "body")
foot = model.addJoint(body, pin.JointModelPZ(), pin.SE3.Identity(), "leg")
for joint, mass in ((body, 3.0), (foot, 0.4)):
    model.inertias[joint] = pin.Inertia(mass, np.zeros(3), 0.01 * np.eye(3))
LENGTH, STIFFNESS = 0.5, 1200.0
standing = hc.Mechanism(
    model,
    [hc.Contact("leg", tangents=False, ground=(0.0, 0.0, 0.0), name="foot")],
    ["leg"],
    reference=[LENGTH, -LENGTH],
    forces=[hc.JointSpring("leg", STIFFNESS, -LENGTH, damping=14.0)],
    name="hopper",
)
flying = standing.with_enabled(foot=False)  # the same leg, its contact parked

# Events know the time and the state. Which plant it is that moves, a program keeps itself: the
# reactions change it, and they are called once for each event.
now = SimpleNamespace(plant=flying, effort=np.zeros(1))
part = hc.partition(standing, standing.reference)


def push(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """In the first second the motor pushes while the leg gets longer."""
    rises = now.plant is standing and v[0] > 0.0 and t < 1.0
    now.effort[0] = -40.0 if rises else 0.0
    return now.effort


def height(t: float, q: np.ndarray, v: np.ndarray) -> float:
    return q[0] + q[1]


def land(t: float, q: np.ndarray, v: np.ndarray) -> tuple[hc.Mechanism, np.ndarray]:
    now.plant, hit = standing, hc.impulse(standing, q, v)
    print(f"{t:7.4f} s  lands at {v[0] + v[1]:6.3f} m/s, {-hit.energy:6.3f} J lost")
    return standing, hit.v


def carried(t: float, q: np.ndarray, v: np.ndarray) -> float:
    """The force of the ground, N: a foot only pushes. In the air nothing leaves."""
    if now.plant is flying:
        return 1.0
    tau = standing.B @ now.effort
    return hc.forward_dynamics(standing, q, v, tau, partition=part).multipliers[0]


def leave(t: float, q: np.ndarray, v: np.ndarray) -> tuple[hc.Mechanism, np.ndarray]:
    now.plant = flying
    print(f"{t:7.4f} s  leaves, its body at {v[0]:6.3f} m/s")
    return flying, v


run = hc.simulate(
    flying, push, [LENGTH + 0.1, -LENGTH], [0.0, 0.0], 4.0, frequency=250.0,
    events=[
        hc.Event(height, direction=-1, reaction=land),
        hc.Event(carried, direction=-1, reaction=leave),
    ],
)  # fmt: skip
print(run)
foot_height = run.q[:, 0] + run.q[:, 1]
print(f"the foot is up to {foot_height.max():.3f} m high, and at least {foot_height.min():.0e} m")
short, weighed = LENGTH - run.q[-1, 0], 9.81 * 3.0 / STIFFNESS
print(f"it stands: the spring is shorter by {short:.4f} m; the weight makes it {weighed:.4f} m")
