"""A leg with a four-bar knee is a spring from pelvis to sole: dropped, and pushed. Draws both."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pinocchio as pin

import holoctl as hc

STIFFNESS, DAMPING = 4000.0, 120.0  # N/m, N s/m
DROP, PUSH = 0.05, 100.0  # m, N

leg = hc.load(hc.robot_file("leg"), free_flyer=True)
flying = leg.with_constraints(hc.Closure("universe", "pelvis", axes="x y rx ry rz", name="rail"))
q0, v0 = hc.assemble(flying)
home = leg.motor_positions(q0)
spring = hc.FrameTask("sole", "z", relative_to="pelvis")
rest = hc.task_terms(hc.project(flying, q0, v0), spring).value
floor = q0[2] + rest[0] - DROP


def law_of(plant: hc.Mechanism, q: np.ndarray) -> hc.Impedance:
    """The spring. Its model has no gravity, or the weight would be compensated: so the spring bears
    the weight, as it does every other push."""
    model = plant.model.copy()
    model.gravity = pin.Motion.Zero()
    return hc.Impedance(
        plant.with_model(model), spring, STIFFNESS, DAMPING,
        posture=home, partition=hc.partition(plant, q),
    )  # fmt: skip


now = SimpleNamespace(plant=flying, law=law_of(flying, q0), landed=0.0)
data = leg.model.createData()


def sole_at(q: np.ndarray) -> pin.SE3:
    pin.framesForwardKinematics(leg.model, data, q)
    return data.oMf[leg.model.getFrameId("sole")].copy()


def land(t: float, q: np.ndarray, v: np.ndarray) -> tuple[hc.Mechanism, np.ndarray]:
    """The sole stays where it is: another plant, and another law."""
    ground = hc.Closure(("universe", sole_at(q)), "sole", axes="x y z ry", name="ground")
    now.plant, now.landed = flying.with_constraints(ground), t
    now.law = law_of(now.plant, q)
    hit = hc.impulse(now.plant, q, v)
    print(f"{t:.4f} s: lands at {v[2]:.2f} m/s, {-hit.energy:.2f} J lost")
    return now.plant, hit.v


def push(t: float, q: np.ndarray, v: np.ndarray) -> dict:
    """Down on the pelvis, once the leg stands: more and more, then held."""
    s = min(max(t - 1.2, 0.0), 1.0)
    return {"pelvis": ([0.0, 0.0, -PUSH * s**2 * (3 - 2 * s)], [0.0, 0.0, 0.0])}


run = hc.simulate(
    flying,
    lambda t, q, v: now.law.torque(q, v, rest, t),
    q0,
    v0,
    2.6,
    plant=hc.Plant(f_ext=push),
    integrator=hc.Integrator(rtol=1e-7),
    events=hc.Event(lambda t, q, v: sole_at(q).translation[2] - floor, direction=-1, reaction=land),
)

# What the ground gives, and by how much the leg is shorter, at every fourth tick.
standing, part = now.plant, hc.partition(now.plant, run.q[-1])
stands = np.flatnonzero(run.t > now.landed)[::4]
ground = np.zeros(stands.size)
for i, at in enumerate(stands):
    q, v, t = run.q[at], run.v[at], run.t[at]
    moves = hc.forward_dynamics(
        standing, q, v, standing.B @ run.u[at], f_ext=push(t, q, v), partition=part
    )
    ground[i] = hc.methods.by_constraint(standing, moves.multipliers)["ground"][2]
short = np.array([sole_at(q).translation[2] - q[2] - rest[0] for q in run.q])
before, after = short[run.t <= 1.2][-1], short[-1]
print(f"the ground pushes with {ground.min():.0f} to {ground.max():.0f} N: it never pulls")
print(f"standing, the leg is {1e3 * before:.2f} mm shorter")
print(
    f"pushed with {PUSH:.0f} N, {1e3 * (after - before):.2f} mm more; "
    f"K^-1 F is {1e3 * PUSH / STIFFNESS:.2f} mm"
)

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure

    from holoctl.app.draw import draw_mechanism
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="75 mm"):
    figure = Figure()
    side, curve, line = figure.subplots(1, 3, width_ratios=(0.6, 1.0, 1.0))
    draw_mechanism(side, leg, q0, (0, 2), color="0.8")
    draw_mechanism(side, leg, run.q[short.argmax()], (0, 2), color="C0")
    side.axhline(floor, color="k", linewidth=1)
    side.set(aspect="equal", xlabel="x (m)", ylabel="z (m)", title="let go, and shortest")
    curve.plot(run.t, 1e3 * short)
    curve.set(xlabel="t (s)", ylabel="shorter by (mm)", title="landed, then pushed")
    x = np.array([0.0, short.max()])
    line.plot(1e3 * short[stands], ground, linewidth=1.0, label="in the run")
    weight = 9.81 * sum(body.mass for body in leg.model.inertias)
    line.plot(1e3 * x, weight + STIFFNESS * (x - before), "k:", label="K, at rest")
    line.set(xlabel="shorter by (mm)", ylabel="force of the ground (N)", title="the spring")
    line.legend()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/leg_as_a_spring.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
