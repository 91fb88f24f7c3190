"""Random situations at the limits: mechanisms, states, targets, limits that are near."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pinocchio as pin
from zoo import ZOO, add_body, at, bar

import holoctl as hc

ROBOTS = ("five_bar", "delta", "stewart", "floating_leg", "five_motors")


@dataclass(frozen=True)
class Situation:
    mech: hc.Mechanism
    part: hc.results.Partition
    q: np.ndarray
    v: np.ndarray
    target: np.ndarray
    u: np.ndarray
    a: np.ndarray


def five_motors():
    """A platform in the plane on three arms with five motors: two more than it has motions."""
    m = pin.Model()
    m.gravity.linear = np.array([0.0, -9.81, 0.0])
    feet, ends = [(0.0, 0.0), (1.0, 0.1), (0.4, 0.9)], [(0.0, 0.0), (0.45, 0.0), (0.2, 0.4)]
    arms, rods = (0.4, 0.45, 0.42), (0.5, 0.4, 0.45)
    for i, (x, y) in enumerate(feet):
        add_body(m, 0, pin.JointModelRZ(), at(x, y), f"arm_{i}", bar(arms[i]))
        add_body(m, f"arm_{i}", pin.JointModelRZ(), at(arms[i]), f"rod_{i}", bar(rods[i]))
        if i == 0:
            add_body(m, "rod_0", pin.JointModelRZ(), at(rods[0]), "table", bar(0.4))
    loops = [
        hc.Closure(
            ("table", at(*ends[i])), (f"rod_{i}", at(rods[i])), joint="revolute", name=f"c{i}"
        )
        for i in (1, 2)
    ]
    motors = ["arm_0", "arm_1", "arm_2", "rod_0", "rod_1"]
    free = hc.Mechanism(m, loops, motors, name="five_motors")
    q, _ = hc.assemble(free)
    return hc.Mechanism(m, loops, motors, reference=q, name="five_motors")


@cache
def robot(name):
    if name == "five_motors":
        mech = five_motors()
    elif name in ("floating_leg", "three_motors", "four_bar"):
        mech = ZOO[name]()
    else:
        mech = hc.load(hc.robot_file(name))
    return mech, hc.partition(mech, hc.assemble(mech)[0])


def situation(name, rng):
    """A closed state off the reference, moving, and a target of the motors there."""
    mech, part = robot(name)
    while True:
        try:
            start = pin.integrate(mech.model, mech.reference, 0.2 * rng.normal(size=mech.nv))
            q, v = hc.assemble(mech, start, rng.normal(size=mech.nv), restarts=0)
            a = hc.project(mech, q, v, partition=part)
            wild = a.gamma @ (rng.normal(size=a.k) * 10.0 ** rng.uniform(-1, 1.5)) + a.bias
            target = mech.B.T @ wild
            found = hc.inverse_dynamics(mech, q, v, target, partition=part, inconsistent="project")
        except hc.HoloctlError:
            continue
        if found.certificate.ok:
            return Situation(mech, part, q, v, target, found.u, found.a)


def limits_near(s, rng):
    """Limits that are about as large as what is asked for, some of joints; not all of them hold."""
    size = np.abs(s.u).max() + 1e-3
    effort = [(-size * rng.uniform(0.1, 1.5), size * rng.uniform(0.1, 1.5)) for _ in s.u]
    if rng.random() < 0.3:
        return hc.Limits(effort=effort)
    names, places = _simple(s.mech)
    of = {"position": {}, "velocity": {}, "acceleration": {}}
    for i in rng.permutation(len(names))[: rng.integers(1, 4)]:
        name, x, rate = names[i], s.q[places[i][0]], s.v[places[i][1]]
        fast, hard = abs(rate) * rng.uniform(0.9, 2.0) + 0.1, rng.uniform(1.0, 60.0)
        of["acceleration"][name] = hard
        if rng.random() < 0.6:
            of["velocity"][name] = fast
        if rng.random() < 0.6:
            room = rng.choice([1e-3, 0.02, 0.3]) * rng.uniform(0.1, 1.0, 2)
            of["position"][name] = (x - room[0], x + room[1])
    return hc.Limits(effort=effort, **of)


def _simple(mech):
    """Coordinates with one number of their own, and where they stand in q and v."""
    found = [
        (mech.model.names[j], (mech.model.idx_qs[j], mech.model.idx_vs[j]))
        for j in range(1, mech.model.njoints)
        if mech.model.nqs[j] == mech.model.nvs[j] == 1
    ]
    return [n for n, _ in found], [p for _, p in found]
