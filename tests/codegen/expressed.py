"""Mechanisms as expressions: what the tests of compiled laws share."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
import zoo
from inside import general_path
from support import (
    ANY_STATE,
    EPS,
    SHORT,
    closed_states,
    mechanism,
    open_states,
    shared_partition,
)
from zoo import ZOO

import holoctl as hc
from holoctl.base.linalg import cholesky
from holoctl.dynamics.actuation import actuation
from holoctl.dynamics.forward import accelerate
from holoctl.dynamics.inverse import driven_acceleration
from holoctl.projector.projection import projected

ca = pytest.importorskip("casadi")

REFUSED = {"sine_gear": "'sine'.*casadi=", "timed_arm": "'bench'.*casadi=",
           "sine_chart": "explicit chart"}  # fmt: skip
"""What has no expression, and why."""


def sine_expression(q):
    return q[1] - 2.0 * ca.sin(q[0])


def bench_expression(q, t):
    a, b, c = q[0], q[0] + q[1], q[0] + q[1] + q[2]
    height = 0.4 * ca.sin(a) + 0.4 * ca.sin(b) + 0.2 * ca.sin(c)
    return height - 0.5 - 0.05 * ca.sin(3.0 * t)


def _bench(q, t):
    return [float(bench_expression(q, t))]


def _bench_jacobian(q, t):
    a, b, c = np.cumsum(q)
    return [np.cumsum([0.2 * np.cos(c), 0.4 * np.cos(b), 0.4 * np.cos(a)])[::-1]]


def _bench_drift(q, v, t):
    angles, rates = np.cumsum(q), np.cumsum(v)
    return [-np.array([0.4, 0.4, 0.2]) * rates**2 @ np.sin(angles) + 0.45 * np.sin(3.0 * t)]


def _bench_rate(q, t):
    return [-0.15 * np.cos(3.0 * t)]


def with_expression(name):
    base = mechanism(name)
    (own,) = base.constraints
    if name == "sine_gear":
        own = dataclasses.replace(own, casadi=sine_expression)
    else:
        own = hc.Custom(
            _bench, _bench_jacobian, _bench_drift, rate_t=_bench_rate, time=True, name="bench",
            casadi=bench_expression,
        )  # fmt: skip
    return dataclasses.replace(base, constraints=[own])


EXTRA = {
    "sine_gear_expressed": lambda: with_expression("sine_gear"),
    "timed_arm_expressed": lambda: with_expression("timed_arm"),
    "stabilised": lambda: stabilised(),
    "weighted": lambda: mechanism("three_motors"),
    "general_motors": lambda: general_motors(),
    "no_constraints": lambda: open_arm(),
    "every_joint": lambda: every_joint(),
    "feet_without_motors": lambda: dataclasses.replace(mechanism("standing_leg"), actuated=()),
}
"""What the zoo does not have: name to mechanism."""


OPTIONS = {"weighted": {"weights": [1.0, 2.0, 5.0]}}


EXPRESSED = [n for n in ZOO if n not in REFUSED] + list(EXTRA)

QUICK = {*SHORT, *EXTRA} - {
    "three_motors", "sine_gear_expressed", "third_bar", "hung_plate", "every_joint",
    "slotted_arms", "stabilised", "feet_without_motors", "screw_chain", "no_constraints",
}  # fmt: skip
"""Those of the short run; `weighted` has three motors, `timed_arm_expressed` an expression."""


def stabilised():
    base = mechanism("weld_chain")
    return dataclasses.replace(
        base, constraints=[dataclasses.replace(c, t_stab=0.2) for c in base.constraints]
    )


def general_motors():
    """Motors that drive sums of coordinates, and a passive head."""
    base = mechanism("floating_leg")
    B = np.zeros((base.nv, 2))
    names = base.coordinate_names
    B[names.index("hip"), 0], B[names.index("motor_crank"), 0] = 1.0, -0.5
    B[names.index("motor_crank"), 1], B[names.index("wheel"), 1] = 2.0, 1.0
    return dataclasses.replace(base, actuated=(), actuation=B)


def open_arm():
    base = mechanism("spatial_arms")
    names = base.coordinate_names
    return dataclasses.replace(base, constraints=(), actuated=names)


def every_joint():
    """A chain of all kinds of joints, with rotors; a closure holds its end on a plane."""
    rng = np.random.default_rng(5)

    def axis():
        n = rng.normal(size=3)
        return n / np.linalg.norm(n)

    pair = pin.JointModelComposite(2)
    pair.addJoint(pin.JointModelRUBX(), pin.SE3.Random())
    pair.addJoint(pin.JointModelPlanar(), pin.SE3.Random())
    joints = [
        pin.JointModelPX(), pin.JointModelUniversal(np.eye(3)[0], np.eye(3)[1]),
        pin.JointModelSphericalZYX(), pin.JointModelPlanar(), pin.JointModelTranslation(),
        pin.JointModelHX(0.3), pin.JointModelHelicalUnaligned(axis(), 0.2),
        pin.JointModelRevoluteUnaligned(axis()), pin.JointModelRevoluteUnboundedUnaligned(),
        pin.JointModelPrismaticUnaligned(axis()), pair, pin.JointModelFreeFlyer(),
        pin.JointModelSpherical(), pin.JointModelRUBY(),
    ]  # fmt: skip
    m, parent = pin.Model(), 0
    for i, joint in enumerate(joints):
        place = zoo.at(0.1, 0.2, 0.05 * i, pin.exp3(rng.normal(size=3)))
        parent = zoo.add_body(m, parent, joint, place, f"j{i}", zoo.lump(rng))
    m.armature = rng.uniform(0.1, 0.2, size=m.nv)
    end = hc.Contact((f"j{len(joints) - 1}", zoo.at(0.1)), normal=(0.2, 0.1, 1.0), name="end")
    names = hc.Mechanism(m).coordinate_names
    return hc.Mechanism(m, [end], names[3:], name="every_joint")


@cache
def case(name):
    """Mechanism and partition."""
    if name in ZOO:
        return mechanism(name), shared_partition(name)
    mech = EXTRA[name]()
    return mech, hc.partition(mech, hc.assemble(mech)[0])


def states(name, where, count):
    """Seeded states, closed or open, of a mechanism of the zoo or of EXTRA."""
    if name in ZOO:
        return (closed_states(name) if where == "closed" else open_states(name, count))[:count]
    mech, _ = case(name)
    rng, found = np.random.default_rng(2), []
    while len(found) < count:
        spread = 0.3 if where == "closed" else 0.6
        q = pin.integrate(mech.model, mech.reference, spread * rng.normal(size=mech.nv))
        v = rng.normal(size=mech.nv)
        if where == "closed":
            try:
                q, v = hc.assemble(mech, q, v, restarts=0)
            except hc.AssemblyError:
                continue
        found.append((q, v))
    return found


@cache
def compiled(name, functions=None, inconsistent="project"):
    mech, part = case(name)
    return hc.compile(
        mech, functions, partition=part, inconsistent=inconsistent, flags=["-O0"], **ANY_STATE,
        **OPTIONS.get(name, {}),
    )  # fmt: skip


@cache
def five_bar():
    return compiled("five_bar")


def forward_reference(mech, part, q, v, tau, t):
    """Acceleration by the general path, and the condition numbers on the way."""
    P = projected(mech, q, v, t, part)
    a, _ = accelerate(P, tau)
    M = P.terms.M
    reduced = cholesky(P.gamma.T @ M @ P.gamma).condition if P.k else 1.0
    b = P.gamma.T @ (tau - P.terms.h - M @ P.bias)
    size = np.abs(P.gamma.T) @ (np.abs(tau) + np.abs(P.terms.h) + np.abs(M) @ np.abs(P.bias))
    cancelled = size.max() / np.abs(b).max() if P.k else 1.0
    return a, P.condition**2 * reduced * max(cancelled, 1.0)


def inverse_reference(prepared, q, v, target, t):
    """u by the general path, and the condition numbers on the way, cancellation included."""
    mech, part = prepared.mech, prepared.partition
    u = general_path(prepared, q, v, target, t, None)
    P = projected(mech, q, v, t, part)
    act = actuation(P, prepared.weights)
    N, M = act.passive, P.terms.M
    passive = cholesky(N.T @ M @ N).condition if N.size else 1.0
    a = driven_acceleration(P, act, target, np.zeros(mech.nv), "project")
    w = pin.rnea(mech.model, mech.model.createData(), q, v, a)
    sums = np.abs(P.gamma.T @ w)
    cancelled = (np.abs(P.gamma.T) @ np.abs(w)).max() / sums.max()
    return u, P.condition * act.condition * passive * cancelled


def tolerance(condition):
    return max(1e-12, 100.0 * EPS * condition)
