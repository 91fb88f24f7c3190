"""A five-bar is not as drawn: masses and friction are identified, and its controller improves."""

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin

import holoctl as hc

drawn = hc.load(hc.robot_file("five_bar"))
home, rest = hc.assemble(drawn)

# The robot: bodies of 0.8 to 1.3 times the masses in the file, and friction of its drives.
model = drawn.model.copy()
for j, factor in enumerate((1.3, 0.8, 1.15, 1.25), start=1):
    ten = factor * model.inertias[j].toDynamicParameters()
    model.inertias[j] = pin.Inertia.FromDynamicParameters(ten)
friction = hc.JointFriction(
    viscous={"motor_left": 0.3, "motor_right": 0.2}, coulomb={"motor_left": 0.6, "motor_right": 0.4}
)
built = drawn.with_model(model).with_forces([friction])


def controlled(mech, motion, duration):
    """The robot under a controller that has the masses and friction of `mech`."""
    follow = hc.ComputedTorque(mech, kp=400.0, kd=40.0).track(motion)
    return hc.simulate(mech, follow, home, rest, duration, plant=built, frequency=500.0)


def log(run):
    """What its drives tell: encoders of 17 bits, and efforts with a noise of 0.05 N m."""
    step, noise = 2.0 * np.pi / 2**17, np.random.default_rng(0)
    x = step * np.round([drawn.motor_positions(q) / step for q in run.q])
    return hc.Measurements(run.t, x, run.u + 0.05 * noise.standard_normal(run.u.shape))


def other(t):
    """Another motion, to test the fit."""
    A, w = np.array([0.3, 0.25]), np.array([4.0, 5.5])
    x = drawn.motor_positions(home)
    return x + A * (1 - np.cos(w * t)), A * w * np.sin(w * t), A * w**2 * np.cos(w * t)


def off(run):
    """The largest distance of the motors from that motion, rad."""
    x = np.array([drawn.motor_positions(q) for q in run.q])
    return np.abs(x - np.array([other(t)[0] for t in run.t])).max()


parameters = hc.Parameters(drawn, friction="motors")
plan = hc.excitation(parameters, period=4.0, harmonics=4, margin=0.2, starts=4, iterations=4)
measured = log(controlled(drawn, lambda t: plan.trajectory.reference(t % plan.period), plan.period))
before = controlled(drawn, other, 2.0)

fit = hc.identify(hc.regression(parameters, measured))
test = hc.regression(parameters, log(before))
print(fit)
for name, error in fit.errors(test).items():
    print(f"{name}: efforts of the other motion are predicted to {error:.1%}")
after = controlled(fit.mechanism(), other, 2.0)
print(f"off by {1e3 * off(before):.1f} mrad as drawn, by {1e3 * off(after):.1f} mrad as identified")

path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/identify_five_bar.png")
path.parent.mkdir(parents=True, exist_ok=True)
try:
    hc.plot_fit(fit, test).savefig(path, dpi=100)
except hc.InputError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None
print(f"the picture: {path}")
