"""A leg with a heel and a toe lands: the impact, the forces of the ground, sets that change."""

import numpy as np
import pinocchio as pin

import holoctl as hc


def at(x: float = 0.0, z: float = 0.0) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([x, 0.0, z]))


def bar(mass: float, length: float) -> pin.Inertia:
    """A slender bar downwards from its joint."""
    across = mass * length**2 / 12.0 + 1e-3
    return pin.Inertia(mass, np.array([0.0, 0.0, -length / 2]), np.diag([across, across, 1e-3]))


# A trunk that slides and turns in the x-z plane, and three driven joints.
model = pin.Model()
parent = 0
for name, joint, place, inertia in (
    ("trunk_x", pin.JointModelPX(), at(), pin.Inertia.Zero()),
    ("trunk_z", pin.JointModelPZ(), at(), pin.Inertia.Zero()),
    ("trunk_pitch", pin.JointModelRY(), at(), pin.Inertia(10.0, np.zeros(3), 0.3 * np.eye(3))),
    ("hip", pin.JointModelRY(), at(), bar(3.0, 0.4)),
    ("knee", pin.JointModelRY(), at(0.0, -0.4), bar(2.0, 0.4)),
    ("ankle", pin.JointModelRY(), at(0.0, -0.4), bar(0.8, 0.08)),
):
    parent = model.addJoint(parent, joint, place, name)
    model.inertias[parent] = inertia

HEEL, TOE = ("ankle", at(-0.06, -0.08)), ("ankle", at(0.14, -0.08))
motors = ["hip", "knee", "ankle"]
reference = np.array([0.0, 0.83, 0.0, -0.5, 1.0, -0.5])
standing = hc.Mechanism(
    model,
    [
        hc.Contact(HEEL, tangents=[(1, 0, 0)], name="heel"),
        hc.Contact(TOE, tangents=False, name="toe"),
    ],
    motors,
    reference=reference,
    name="leg",
)
flying = standing.with_enabled(heel=False, toe=False)  # the same leg, its contacts parked
print(flying, "-", standing)

# It falls on its heel, a little forwards, then the toe comes down as well.
q, _ = hc.assemble(standing)
falling = np.array([0.4, -1.2, 0.0, 0.0, 0.0, 0.0])
on_heel = flying.with_enabled(heel=True)
for title, mech, e in (
    ("heel", on_heel, 0.0),
    ("heel, e = 0.3", on_heel, 0.3),
    ("both", standing, 0.0),
):
    hit = hc.impulse(mech, q, falling, restitution=dict.fromkeys(mech.constraint_names, e))
    named = hc.methods.by_constraint(mech, hit.impulses)
    told = ", ".join(f"{name} {p.round(2)} N s" for name, p in named.items())
    print(f"{title:<14} {told}; {-hit.energy:.1f} J lost")

# Then it stands: which torques hold it, and what the ground does. Feet only push: a leg that
# would have to pull is told by a negative normal force.
rest = np.zeros(model.nv)
held = hc.inverse_dynamics(standing, q, rest, rest, coordinates="all").raise_if_bad()
print("torques", dict(zip(motors, held.u.round(2).tolist(), strict=True)), "N m")
wrenches = hc.constraint_wrenches(standing, q, held.multipliers)
for name, (_, on_foot) in wrenches.items():
    print(f"{name:<5} carries {on_foot.force[2]:6.1f} N at x = {on_foot.point[0]:.2f} m")
weight = 9.81 * sum(inertia.mass for inertia in model.inertias)
carried = sum(on_foot.force[2] for _, on_foot in wrenches.values())
print(f"together {carried:.1f} N; the weight is {weight:.1f} N")

# All methods agree, here at one state with shared terms.
terms = hc.terms(standing, q, rest)
part = hc.partition(standing, q)
tau = standing.B @ (0.5 * held.u)
found = {
    method: hc.forward_dynamics(
        standing, q, rest, tau, method=method, terms=terms, partition=part
    ).a
    for method in ("projection", "direct", "range_space", "null_space", "kokkevis")
}
spread = max(np.abs(a - found["direct"]).max() for a in found.values())
print(f"with half the torques it collapses at {found['direct'][1]:.2f} m/s^2; spread {spread:.0e}")
