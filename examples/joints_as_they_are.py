"""A five-bar whose joints have friction: what a controller gains by knowing it.

The plant has friction in every joint, the one that closes its loop too, and a spring that helps a
motor. Three controllers follow the same slow motion: one that knows of none of it, and two that
compensate friction, at the measured rates and at those of the reference.
"""

import numpy as np

import holoctl as hc

ideal = hc.load(hc.robot_file("five_bar"))
joints = [*ideal.coordinate_names, "tip_hinge"]  # "tip_hinge" is cut: it has no coordinate
plant = ideal.with_forces(
    [
        hc.JointFriction(
            viscous=dict.fromkeys(joints, 0.02),
            coulomb=dict.fromkeys(joints, 0.12),
            transition=0.02,
        ),
        hc.JointSpring("motor_left", stiffness=1.5, rest=1.8),
    ]
)
print(plant)

q, v = hc.assemble(plant)
home, amplitude = plant.motor_positions(q), np.array([0.02, -0.015])


def reference(t):
    """A slow swing: each motor turns back, where friction changes its side."""
    s, w = amplitude, 4.0
    return (
        home + s * (1.0 - np.cos(w * t)), s * w * np.sin(w * t), s * w**2 * np.cos(w * t),
    )  # fmt: skip


controllers = {
    "knows nothing": hc.ComputedTorque(ideal, kp=100.0, kd=20.0),
    "friction as measured": hc.ComputedTorque(plant, 100.0, 20.0, friction_at="measured"),
    "friction of the reference": hc.ComputedTorque(plant, 100.0, 20.0),
}
for name, controller in controllers.items():
    run = hc.simulate(
        ideal,
        controller.track(reference),
        q,
        0 * v,
        1.0,
        plant=plant,
        frequency=500.0,
        sensors=hc.Sensors("all", noise=(1e-6, 0.02)),
        integrator=hc.Integrator(rtol=1e-6, atol=1e-8),
    )
    wanted = np.array([reference(t)[0] for t in run.t])
    off = np.array([plant.motor_positions(x) for x in run.q]) - wanted
    chatter = np.abs(np.diff(run.u, axis=0)).mean()
    print(
        f"{name:>26}: at most {1e3 * np.abs(off).max():5.2f} mrad off, "
        f"torque changes by {1e3 * chatter:4.0f} mN m a tick"
    )

k = 400
spent = hc.power(plant, run.q[k], run.v[k], run.u[k])
stored = hc.energy(plant, run.q[k], run.v[k]).springs
print(
    f"at {run.t[k]} s: motors give {1e3 * spent.motors:.1f} mW, friction takes "
    f"{1e3 * spent.losses:.1f} mW, the spring holds {stored:.3f} J"
)
