"""A biped with four-bar knees and parallel ankles squats, shifts its weight, lifts a foot and is
pushed: its torques keep the limits of the motors and the friction cones of its feet, at 1 kHz."""

from pathlib import Path

import numpy as np
import pinocchio as pin

import holoctl as hc

THIGH, SHANK, ARM, HALF = 0.35, 0.32, 0.05, 0.04  # m
HEIGHT, TICK = 0.06, 1e-3  # of the ankle above the sole, m; s


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([x, y, z]))


def bar(mass: float, length: float) -> pin.Inertia:
    """A bar below its joint."""
    about = mass * (length**2 / 12.0 + 4e-4) * np.eye(3)
    return pin.Inertia(mass, np.array([0.0, 0.0, -0.5 * length]), about)


# One leg after the other below a free trunk. The knee is a four-bar, driven by a crank in the hip;
# two cranks on the shank push the foot by rods, as on many humanoids.
model = pin.Model()
trunk = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "trunk")
model.appendBodyToJoint(trunk, pin.Inertia.FromBox(20.0, 0.2, 0.3, 0.4), at(z=0.2))
loops, motors, feet, planned, bent = [], [], [], [], {}
for side, y in (("left", 0.1), ("right", -0.1)):
    chain = [
        ("trunk", pin.JointModelRZ(), at(y=y), "yaw", 0.5, 0.05),
        ("yaw", pin.JointModelRX(), at(), "roll", 0.5, 0.05),
        ("roll", pin.JointModelRY(), at(), "hip", 3.0, THIGH),
        ("hip", pin.JointModelRY(), at(), "crank", 0.3, ARM),
        ("crank", pin.JointModelRY(), at(ARM), "rod", 0.2, THIGH),
        ("hip", pin.JointModelRY(), at(z=-THIGH), "knee", 2.0, SHANK),
        ("knee", pin.JointModelRY(), at(z=-SHANK), "pitch", 0.2, 0.02),
        ("pitch", pin.JointModelRX(), at(), "foot", 0.8, HEIGHT),
        ("knee", pin.JointModelRY(), at(y=HALF, z=-0.1), "outer", 0.2, 0.03),
        ("knee", pin.JointModelRY(), at(y=-HALF, z=-0.1), "inner", 0.2, 0.03),
    ]
    for parent, kind, place, name, mass, length in chain:
        above = trunk if parent == "trunk" else model.getJointId(f"{parent}_{side}")
        joint = model.addJoint(above, kind, place, f"{name}_{side}")
        model.appendBodyToJoint(joint, bar(mass, length), pin.SE3.Identity())
    ends = (f"rod_{side}", at(z=-THIGH)), (f"knee_{side}", at(ARM))
    loops.append(hc.Closure(*ends, axes="x z", name=f"knee_bar_{side}"))
    for crank, out in (("outer", HALF), ("inner", -HALF)):
        ends = (f"{crank}_{side}", at(-ARM)), (f"foot_{side}", at(-ARM, out))
        loops.append(hc.Rod(*ends, name=f"{crank}_rod_{side}"))
    motors += [f"{name}_{side}" for name in ("yaw", "roll", "hip", "crank", "outer", "inner")]
    for contacts, inset, friction in ((feet, 0.0, 0.7), (planned, 0.01, 0.5)):  # with a margin
        xs, ys = (0.13 - inset, inset - 0.07), (0.05 - inset, inset - 0.05)
        corners = [(x, y, -HEIGHT) for x in xs for y in ys]
        contacts.append(hc.UnilateralContact(f"foot_{side}", corners, friction=friction, name=side))
    angles = {"hip": -0.5, "crank": 1.0, "rod": -1.0, "knee": 1.0, "pitch": -0.5}
    bent |= {f"{name}_{side}": angle for name, angle in angles.items()}
reference = pin.neutral(model)
for name, angle in bent.items():
    reference[model.joints[model.getJointId(name)].idx_q] = angle
data = model.createData()
pin.forwardKinematics(model, data, reference)
reference[2] -= (data.oMi[model.getJointId("foot_left")] * at(z=-HEIGHT)).translation[2]
limits = hc.Limits(effort=dict.fromkeys(motors, 90.0))
biped = hc.Mechanism(model, loops, motors, reference=reference, limits=limits, name="biped")
q, rest = hc.assemble(biped)

# The centre of mass first, then trunk and free foot, a little posture. One program at each tick.
mass, upright, foot = hc.CenterOfMassTask(), hc.FrameTask("trunk", "rx ry rz"), "foot_right"
swing, posture = hc.FrameTask(foot), hc.PostureTask()
control = hc.TaskSpaceControl(
    biped, [mass, upright, swing, posture], kp=[100.0, 100.0, 200.0, 50.0],
    kd=[20.0, 20.0, 28.0, 14.0], task_weights=[1.0, 1.0, 1.0, 1e-4], contacts=planned,
    limits="model", dt=TICK,
)  # fmt: skip
here = hc.terms(biped, q, rest).kinematics
start, sole = mass.bind(biped).at(here).value, swing.bind(biped).at(here).value
home = biped.motor_positions(q)
lifts, pushed, end = 1.3, 1.7, 2.0  # s


def smooth(t: float, begin: float, finish: float) -> np.ndarray:
    """From 0 to 1: value, rate and acceleration."""
    s, T = np.clip((t - begin) / (finish - begin), 0.0, 1.0), finish - begin
    rate, acceleration = 30.0 * (s * (1.0 - s)) ** 2, 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s)
    return np.array([s**3 * (10.0 - 15.0 * s + 6.0 * s * s), rate / T, acceleration / T**2])


def wanted(t: float) -> list:
    """A squat of 5 cm, the weight over the left foot, then the right foot 8 cm up."""
    down = np.outer(smooth(t, 0.1, 0.5) - smooth(t, 0.5, 0.9), [0.0, 0.0, -0.05])
    across = np.outer(smooth(t, 0.1, lifts), [0.0, start[1] + 0.075, 0.0])
    up = smooth(t, lifts, 1.65) * 0.08
    above = sole * pin.SE3(np.eye(3), np.array([0.0, 0.0, up[0]]))
    value, rate, acceleration = down + across
    along = [np.array([0.0, 0.0, x, 0.0, 0.0, 0.0]) for x in up[1:]]
    return [(start + value, rate, acceleration), pin.SE3.Identity(), (above, *along), home]


def push(t: float, q: np.ndarray, v: np.ndarray) -> dict:
    """From behind, 25 N for 0.15 s."""
    return {"trunk": ((25.0 if pushed <= t < pushed + 0.15 else 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))}


run = hc.simulate(
    biped, control.track(wanted, active=lambda t: ["left", "right"] if t < lifts else ["left"]),
    q, rest, end, frequency=1.0 / TICK, plant=hc.Plant(f_ext=push), contacts=feet,
)  # fmt: skip
centre = np.array([mass.bind(biped).at(hc.terms(biped, *x).kinematics).value
                   for x in zip(run.q[::20], run.v[::20], strict=True)])  # fmt: skip
load = {name: f[:, :, 2].sum(axis=1) for name, f in run.contact_forces.items()}
print(run)
print(f"largest torque {abs(run.u).max():.1f} of 90 N m")
for name, forces in run.contact_forces.items():
    total = forces.sum(axis=1)[load[name] > 20.0]
    used = np.linalg.norm(total[:, :2], axis=1) / (0.7 * total[:, 2])
    print(f"{name} foot: up to {100.0 * used.max():.0f} % of its friction")
print(
    f"the push moves the centre of mass by {1e3 * np.ptp(centre[run.t[::20] >= pushed, 0]):.1f} mm"
)

try:
    from matplotlib import pyplot as plt
except ImportError:  # the plot is extra
    plt = None
if plt is not None:
    fig, (above, middle, below) = plt.subplots(3, 1, sharex=True, figsize=(7.0, 6.0))
    for i, name in enumerate(("forward", "left", "up")):
        above.plot(run.t[::20], 1e3 * (centre[:, i] - start[i]), label=name)
    above.set_ylabel("centre of mass, mm")
    for name, force in load.items():
        middle.plot(run.t, force, label=f"{name} foot")
    middle.set_ylabel("load, N")
    below.plot(run.t, abs(run.u).max(axis=1), color="tab:gray", label="largest of 12 motors")
    below.axhline(90.0, color="tab:red", linestyle="--", label="limit")
    below.set_ylabel("torque, N m")
    below.set_xlabel("time, s")
    for ax in (above, middle, below):
        ax.legend(loc="upper left", fontsize=8)
        ax.axvspan(pushed, pushed + 0.15, color="tab:orange", alpha=0.3)
    fig.tight_layout()
    Path("out").mkdir(exist_ok=True)
    fig.savefig("out/a_biped_stands.png", dpi=100)
    print("out/a_biped_stands.png")
