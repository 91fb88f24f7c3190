"""A whole-body controller plans with pitch and roll; two motors behind rods move the ankle.

The controller knows a serial robot. A transmission tells where pitch and roll are by the encoders
of the motors, adds what rods, cranks and rotors need, and divides joint efforts among the motors.
Without the efforts of the linkage the same controller is off by 20 degrees.
"""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin

import holoctl as hc

mech = hc.load(hc.robot_file("ankle"))
joints = ["ankle_pitch", "ankle_roll"]
ankle = hc.Transmission(mech, joints)
print(ankle)

# The serial robot: pitch, roll and the foot. (A whole-body controller has it from its own URDF.)
serial = hc.serial_model(mech, masses="none", rotors="none", joint_limits="none").model
data = serial.createData()
J_start = ankle.jacobian(ankle.y_start)


def plan(t):
    """Positions, rates and accelerations of pitch and roll: a foot that swings fast."""
    w, size, middle = 2 * np.pi * np.array([2.0, 3.0]), np.array([0.5, 0.15]), np.array([-0.25, 0])
    return middle + size * np.sin(w * t), size * w * np.cos(w * t), -size * w**2 * np.sin(w * t)


def controller(linkage, varying=True):
    def law(t, q, v):
        y = ankle.joint_positions(mech.motor_positions(q))  # from encoders of the motors alone
        yd = ankle.joint_rates(y, mech.B.T @ v)
        wanted, rate, ydd = plan(t)
        ydd = ydd + 900.0 * (wanted - y) + 60.0 * (rate - yd)
        tau = pin.rnea(serial, data, y, yd, ydd)
        if linkage:
            tau = tau + ankle.linkage_efforts(y, yd, ydd)
        return ankle.motor_efforts(tau, y).u if varying else np.linalg.solve(J_start.T, tau)

    return law


y, yd, _ = plan(0.0)
q = ankle.configuration(y)
part = hc.partition(mech, q, independent=joints)
v = hc.project(mech, q, np.zeros(mech.nv), partition=part).gamma @ yd

laws = {
    "serial + linkage": controller(linkage=True),
    "J of the start": controller(linkage=True, varying=False),
    "no linkage": controller(linkage=False),
}
runs = {name: hc.simulate(mech, law, q, v, 0.5) for name, law in laws.items()}
for name, run in runs.items():
    off = np.rad2deg(run.q[:, :2] - np.array([plan(t)[0] for t in run.t]))
    print(f"{name:>16}: pitch and roll off by {abs(off).max(axis=0).round(2)} degrees at most")

try:
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="70 mm"):
    figure = Figure()
    efforts, pitch, motors = figure.subplots(1, 3)
    for posture in ([0.0, 0.0], [-0.7, 0.1], [-0.7, -0.1]):
        corners = ankle.effort_polytope(posture).vertices
        around = corners[np.argsort(np.arctan2(corners[:, 1], corners[:, 0]))]
        efforts.fill(*around.T, fill=False, edgecolor="C0", linewidth=1.0)
    efforts.set(xlabel="pitch (N m)", ylabel="roll (N m)", title="efforts that the motors can give")
    times = runs["no linkage"].t
    pitch.plot(times, [np.rad2deg(plan(t)[0][0]) for t in times], "k", label="plan")
    for i, (name, run) in enumerate(runs.items()):
        pitch.plot(run.t, np.rad2deg(run.q[:, 0]), f"C{i}", label=name)
    pitch.set(xlabel="t (s)", ylabel="pitch (degrees)", title="pitch")
    pitch.legend()
    motors.plot(runs["serial + linkage"].t, runs["serial + linkage"].u, label=ankle.motors)
    motors.set(xlabel="t (s)", ylabel="effort (N m)", title="motors, serial + linkage")
    motors.legend()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/parallel_ankle.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
