"""Random trees with random closures: no uncertified wrong torque, no crash.

Each mechanism is closed by construction: a configuration is drawn first, then the second frame
of every closure is placed where the first one is there. Half of them have parallel axes, half a
constraint that is there twice: redundant rows. What comes back certified is compared
with one dense KKT solve by numpy, in coordinates and rows scaled to unit size.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import EPS, rows

import holoctl as hc

JOINTS = ["revolute", "prismatic", "continuous", "spherical", "free_flyer", "universal"]
CLOSURES = [
    "spherical", "revolute", "universal", "cylindrical", "prismatic", "planar", "weld",
    "x", "x z", "rz", "rx ry", "rx ry rz", "x y rz", "y z rx rz", "rod", "contact", "coupling",
]  # fmt: skip
TREES = st.lists(st.tuples(st.sampled_from(JOINTS), st.integers(0, 6)), min_size=2, max_size=7)
LOOPS = st.lists(
    st.tuples(st.sampled_from(CLOSURES), st.integers(0, 7), st.integers(1, 7)),
    min_size=1, max_size=3,
)  # fmt: skip
ILL = 1e12
"""A KKT system worse conditioned than this says nothing about a solution."""

COUNTS: Counter[str] = Counter()


def joint(rng, kind, planar):
    axis = rng.normal(size=3)
    if planar:
        axis = axis * [1.0, 1.0, 0.0] if kind == "prismatic" else np.array([0.0, 0.0, 1.0])
    axis /= np.linalg.norm(axis)
    continuous = [pin.JointModelRUBZ, pin.JointModelRUBX, pin.JointModelRUBY]
    if kind == "universal":
        made = pin.JointModelComposite(2)
        made.addJoint(pin.JointModelRX())
        made.addJoint(pin.JointModelRY())
        return made
    return {
        "revolute": lambda: pin.JointModelRevoluteUnaligned(axis),
        "prismatic": lambda: pin.JointModelPrismaticUnaligned(axis),
        "continuous": continuous[0 if planar else rng.integers(3)],
        "spherical": pin.JointModelSpherical,
        "free_flyer": pin.JointModelFreeFlyer,
    }[kind]()


def placement(rng, planar, size=0.5):
    turn = [0.0, 0.0, 1.0] if planar else np.ones(3)
    return pin.SE3(pin.exp3(turn * rng.normal(size=3)), size * rng.normal(size=3))


def body(rng):
    """Mass 0.01 to 100 kg; second moments of a solid of 3 cm to 30 cm."""
    mass, size = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-1.5, -0.5)
    moments = mass * size**2 * rng.uniform(0.1, 1.0, size=3)
    R = pin.exp3(rng.normal(size=3))
    return pin.Inertia(mass, size * rng.normal(size=3), R @ np.diag(moments.sum() - moments) @ R.T)


def tree(rng, joints, planar):
    model, branch = pin.Model(), [0]  # from the world to the last joint: possible parents
    for i, (kind, up) in enumerate(joints):
        branch = branch[: 1 + (len(branch) - 1 - up) % len(branch)]
        j = model.addJoint(
            branch[-1], joint(rng, kind, planar), placement(rng, planar), f"j{i + 1}"
        )
        model.appendBodyToJoint(j, body(rng), pin.SE3.Identity())
        branch.append(j)
    return model


def loop(rng, model, planar, places, q, kind, a, b, name):
    """A constraint that holds at q; None where the drawn joints do not allow its kind."""
    a, b = a % model.njoints, 1 + (b - 1) % (model.njoints - 1)
    if kind == "coupling":
        line = [j for j in range(1, model.njoints) if model.nqs[j] == model.nvs[j]]
        names = [n for n in hc.Mechanism(model).coordinate_names if n.split("[")[0] in
                 {model.names[j] for j in line}]  # fmt: skip
        if len(names) < 2:
            return None
        chosen = rng.choice(names, size=2, replace=False).tolist()
        ratios = rng.uniform(0.5, 2.0, size=2) * rng.choice([-1.0, 1.0], size=2)
        at = np.concatenate([q[model.idx_qs[j] :][: model.nqs[j]] for j in line])
        offset = sum(c * at[names.index(n)] for c, n in zip(ratios, chosen, strict=True))
        return hc.Coupling(dict(zip(chosen, ratios, strict=True)), offset=offset, name=name)
    F = placement(rng, planar, 0.3)
    if kind == "contact":
        ground = (places[b] * F).translation
        tangents = [True, False, [np.cross([0.0, 0.0, 1.0], rng.normal(size=3))]]
        return hc.Contact(
            (model.names[b], F), ground=ground, tangents=tangents[rng.integers(3)], name=name
        )
    if a == b:
        a = b - 1
    there = places[a] * F
    length = None
    if kind == "rod":
        d = rng.normal(size=3)
        there.translation = there.translation + d
        length = float(np.linalg.norm(d))
    ends = (model.names[a], F), (model.names[b], places[b].actInv(there))
    if kind == "rod":
        return hc.Rod(*ends, length=length, name=name)
    how = "axes" if kind.split()[0] in ("x", "y", "z", "rx", "ry", "rz") else "joint"
    return hc.Closure(*ends, **{how: kind}, name=name)


def mechanism(joints, loops, planar, again, seed):
    """A random mechanism and a configuration that closes it."""
    rng = np.random.default_rng(seed)
    model = tree(rng, joints, planar)
    q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    made = [loop(rng, model, planar, data.oMi, q, *drawn, f"c{i}") for i, drawn in enumerate(loops)]
    nu = int(rng.integers(1, 1 + min(3, model.nv)))
    names = hc.Mechanism(model).coordinate_names
    if rng.random() < 0.5:
        motors = {"actuated": rng.choice(names, size=nu, replace=False).tolist()}
    else:
        motors = {"actuation": rng.normal(size=(model.nv, nu))}
    reference = q if rng.random() < 0.5 else None
    found = [c for c in made if c is not None]
    if again and found:
        found.append(dataclasses.replace(found[0], name="again"))
    return hc.Mechanism(model, found, reference=reference, **motors), q, rng


def kkt(mech, q, v, tau):
    """Acceleration from one dense solve, the scales of its parts, and the condition number."""
    data = mech.model.createData()
    M = pin.crba(mech.model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.nonLinearEffects(mech.model, data, q, v)
    r = rows(mech, q, v)
    d = 1.0 / np.sqrt(np.diag(M))
    units = np.abs(mech.row_scale[:, None] * r.jacobian * mech.column_scale)
    alive = units.max(axis=1, initial=0.0) > 1e-10  # the others vanish but for rounding
    G = (r.jacobian * d)[alive]
    e = 1.0 / np.linalg.norm(G, axis=1)
    G = e[:, None] * G
    K = np.block([[M * d * d[:, None], -G.T], [G, np.zeros((len(G), len(G)))]])
    rhs = np.concatenate([d * (tau - h), -e * r.drift[alive]])
    x, _, rank, s = np.linalg.lstsq(K, rhs, rcond=1e-13)
    terms = max(np.abs(x).max(), np.abs(d * tau).max(), np.abs(d * h).max(), np.abs(rhs).max())
    return d * x[: mech.nv], d, terms, s[0] / s[rank - 1]


def compared(mech, q, v, tau, a, kind, counts):
    """Whether a certified acceleration is the one that the dense KKT system gives."""
    counts[f"{kind} certified"] += 1
    expected, d, terms, condition = kkt(mech, q, v, tau)
    if condition > ILL:
        counts[f"{kind} skipped"] += 1
        return
    counts[f"{kind} compared"] += 1
    off = np.abs((a - expected) / d).max()
    assert off <= max(1e-6, 1e3 * EPS * condition) * terms, (kind, off / terms, condition)


def check(joints, loops, planar, again, seed, counts):
    mech, q, rng = mechanism(joints, loops, planar, again, seed)
    counts["examples"] += 1
    closed, v = hc.assemble(mech, q, rng.normal(size=mech.nv))  # it is closed: must not fail
    assert np.abs(pin.difference(mech.model, q, closed) / mech.column_scale).max() < 1e-9
    target, tau = 5.0 * rng.normal(size=mech.nu), 5.0 * rng.normal(size=mech.nv)
    good = 0
    try:
        res = hc.inverse_dynamics(mech, closed, v, target)
    except hc.HoloctlError as e:
        counts[f"inverse {type(e).__name__}"] += 1
    else:
        counts["inverse returned"] += 1
        if res.certificate.ok:
            compared(mech, closed, v, mech.B @ res.u, res.a, "inverse", counts)
            rate = mech.B.T @ res.a
            size = np.abs(target).max() + (np.abs(mech.B.T) @ np.abs(res.a)).max()
            assert np.abs(rate - target).max() <= 1e-8 * size
            good += 1
    try:
        res = hc.forward_dynamics(mech, closed, v, tau)
    except hc.HoloctlError as e:
        counts[f"forward {type(e).__name__}"] += 1
    else:
        counts["forward returned"] += 1
        if res.certificate.ok:
            compared(mech, closed, v, tau, res.a, "forward", counts)
            good += 1
    counts["any certified"] += good > 0


quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=80, suppress_health_check=quiet)
@given(TREES, LOOPS, st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_what_is_certified_is_right(joints, loops, planar, again, seed):
    check(joints, loops, planar, again, seed, COUNTS)


@pytest.mark.slow
@settings(max_examples=2000, suppress_health_check=quiet)
@given(TREES, LOOPS, st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_what_is_certified_is_right_at_length(joints, loops, planar, again, seed):
    check(joints, loops, planar, again, seed, COUNTS)


def test_a_loop_that_constrains_nothing_leaves_the_tree_free():
    """Rows that vanish but for rounding, and no others: found by the tests above."""
    model = pin.Model()
    model.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    turned = pin.SE3(pin.exp3(np.array([0.0, 0.0, 0.3])), np.array([0.3, 0.1, 0.2]))
    model.addJoint(1, pin.JointModelRZ(), turned, "hinge")
    solid = pin.Inertia(1.0, np.array([0.1, 0.2, 0.05]), np.diag([0.1, 0.12, 0.15]))
    for j in (1, 2):
        model.appendBodyToJoint(j, solid, pin.SE3.Identity())
    q = np.append(pin.Quaternion(pin.exp3(np.array([0.3, -0.4, 0.5]))).coeffs(), 0.7)
    in_plane = pin.SE3(np.eye(3), np.array([0.0, 0.0, -0.2]))
    loop = hc.Closure("ball", ("hinge", in_plane), joint="planar")
    mech = hc.Mechanism(model, [loop], ["hinge"], reference=q)
    v, tau = np.array([0.5, 0.3, -0.8, 0.4]), np.array([1.0, 2.0, 3.0, 4.0])
    assert hc.partition(mech, q).rank == 0
    free = pin.aba(model, model.createData(), q, v, tau)
    assert hc.forward_dynamics(mech, q, v, tau).a == pytest.approx(free, rel=1e-10)


def test_most_examples_were_certified_and_compared():
    """Guard: the tests above compare, they do not merely pass."""
    print(dict(COUNTS))
    if not COUNTS["examples"]:
        pytest.skip("the tests that count did not run")
    for kind in ("inverse", "forward"):
        certified, skipped = COUNTS[f"{kind} certified"], COUNTS[f"{kind} skipped"]
        assert COUNTS[f"{kind} compared"] >= 0.6 * COUNTS["examples"]
        assert skipped < 0.3 * certified
