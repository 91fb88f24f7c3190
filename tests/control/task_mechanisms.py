"""Mechanisms, states and tasks for the laws of task space: the zoo, our robots, others' and bipeds.

Frames and motions are computed here by Pinocchio alone, and by nothing that is tested.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
from shared_robots import SHARED_ROBOT_NAMES, shared_robot
from support import ROOT, closed_states, few, mechanism, rows, shared_partition
from zoo import ZOO

import holoctl as hc

ROBOTS = ("ankle", "delta", "five_bar", "four_bar", "geared_arm", "leg", "stewart")
NAMES = [
    *ZOO, *(f"our {n}" for n in ROBOTS), *(f"shared {n}" for n in SHARED_ROBOT_NAMES), "biped",
]  # fmt: skip
SOME = few(NAMES, ("five_bar", "floating_leg", "standing_leg", "timed_arm", "sine_chart",
                   "three_motors", "screw_chain", "our stewart"))  # fmt: skip
"""Of the short run: in the plane and in space, afloat, contacts, rows in time, a chart, redundant
motors, a screw."""

SPREAD = {"our geared_arm": 2.0, "our stewart": 0.05, "shared cassie_like": 0.05,
          "shared disney_like": 0.05, "biped": 0.05}  # fmt: skip
"""How far states are from the reference; rad, or parts of the size."""


@cache
def of(name):
    """A mechanism by its name."""
    if name == "biped":
        return _biped()
    kind, _, own = name.rpartition(" ")
    if kind == "shared":
        return hc.load(shared_robot(own))
    return hc.load(hc.robot_file(own)) if kind == "our" else mechanism(own)


def _biped():
    path = ROOT / "benchmarks" / "mechanisms.py"
    if "benchmark_mechanisms" not in sys.modules:
        spec = importlib.util.spec_from_file_location("benchmark_mechanisms", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["benchmark_mechanisms"] = module
        spec.loader.exec_module(module)
    return sys.modules["benchmark_mechanisms"].biped()


@cache
def partition_of(name):
    return shared_partition(name) if name in ZOO else hc.partition(of(name), start_of(name)[0])


@cache
def start_of(name):
    return hc.assemble(of(name), restarts=0 if name not in ZOO else 5)


@cache
def states_of(name, count=3):
    """Seeded closed states (q, v) with G v = 0, none at rest; scaled rates of one."""
    if name in ZOO:
        return [(q, 0.5 * v) for q, v in closed_states(name, count, 5)]
    mech, part, rng = of(name), partition_of(name), np.random.default_rng(0)
    q0, v0 = start_of(name)
    P = hc.project(mech, q0, v0, partition=part)
    found = []
    while len(found) < count:
        step, rate = (rng.normal(size=(2, P.k)) * P.scale) @ P.gamma.T
        guess = pin.integrate(mech.model, q0, SPREAD.get(name, 0.2) * step)
        found.append(hc.assemble(mech, guess, rate, restarts=0))
    return found


# ------------------------------------------------------------------------------------- frames


def frame_pair(mech, body=-1, other=0, seed=3):
    """A frame on a body, away from its joint, and one on another body or the world."""
    rng = np.random.default_rng(seed)
    turned = [pin.SE3(pin.exp3(rng.normal(size=3)), 0.2 * rng.normal(size=3)) for _ in range(2)]
    names = list(mech.model.names)
    return (names[body], turned[0]), (names[other], turned[1])


def placed(mech, q, frame):
    """World placement of (joint name, placement)."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    return data.oMi[mech.model.getJointId(frame[0])] * frame[1]


FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
SECOND = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])


def derivatives(x, h):
    """First and second derivative at 0 of nine values, from -4 h to 4 h, eighth order."""
    return FIRST @ np.array(x) / h, SECOND @ np.array(x) / (h * h)


def moved_frame(mech, path, h, frame, relative_to, local):
    """Rate and acceleration (6,) of a frame along nine configurations, as a `FrameTask` of all
    axes tells them."""
    poses = [placed(mech, q, relative_to).actInv(placed(mech, q, frame)) for q in path]
    R, p = poses[4].rotation, [X.translation for X in poses]
    pd, pdd = derivatives(p, h)
    w, wd = derivatives([pin.log3(X.rotation @ R.T) for X in poses], h)
    if local:  # d/dt (R' x) = R' (xd - w x x)
        pdd = pdd - np.cross(w, pd)
        pd, pdd, w, wd = (R.T @ x for x in (pd, pdd, w, wd))
    return np.concatenate([pd, w]), np.concatenate([pdd, wd])


# ------------------------------------------------------------------------------------ motions


def free_path(mech, q, v, a, h):
    """Nine configurations of the tree with velocity v and acceleration a in the middle one."""
    return [pin.integrate(mech.model, q, s * h * v + 0.5 * (s * h) ** 2 * a) for s in range(-4, 5)]


def closed_path(name, q, v, a, h, t=0.0):
    """The same, closed at every one: what is off by the third order is put back."""
    mech, c = of(name), of(name).column_scale
    rank, rest, path = partition_of(name).rank, np.zeros(mech.nv), []
    for s, guess in zip(range(-4, 5), free_path(mech, q, v, a, h), strict=True):
        x = guess
        for _ in range(20):
            r = rows(mech, x, rest, t + s * h)
            error = mech.row_scale * r.error
            if np.abs(error).max(initial=0.0) < 1e-15:
                break
            u, sizes, vt = np.linalg.svd(
                mech.row_scale[:, None] * r.jacobian * c, full_matrices=False
            )
            back = vt[:rank].T @ (u[:, :rank].T @ error / sizes[:rank])
            x = pin.integrate(mech.model, x, -c * back)
            if np.abs(back).max() < 1e-15:
                break
        path.append(x)
    return path


def some_motion(P, seed=0):
    """ydd, and the acceleration with it."""
    ydd = np.random.default_rng(seed).normal(size=P.k) * P.scale
    return ydd, P.gamma @ ydd + P.bias


def step_of(v, a):
    """A step in which nothing moves far."""
    return 1.5e-2 / max(1.0, np.abs(v).max(), np.abs(a).max() ** 0.5)


# ------------------------------------------------------------------------ tasks that can be done


@dataclass(frozen=True)
class WithoutTick:
    """A task that only the general path serves."""

    task: Any

    def bind(self, mech):
        return _Bound(self.task.bind(mech))


@dataclass(frozen=True)
class _Bound:
    own: Any

    def __getattr__(self, name):
        return getattr(self.own, name)

    def tick(self, motion, beside):
        return None


def responses(mech, q, v, part, t=0.0):
    """What a unit of each motor adds to the acceleration (nv, nu)."""
    options = {"t": t, "partition": part}
    base = hc.forward_dynamics(mech, q, v, np.zeros(mech.nv), **options).a
    return np.column_stack(
        [hc.forward_dynamics(mech, q, v, mech.B[:, i], **options).a - base for i in range(mech.nu)]
    )


@cache
def doable(name, rows=None, local=False):
    """A `FrameTask` that the motors can do at the states of a mechanism, with so many rows or as
    many as go, in a mixed order; and the states where they can."""
    mech, part, states = of(name), partition_of(name), states_of(name)
    most = part.actuation_rank if rows is None else rows
    unheld = part.actuation_rank < mech.nv - part.rank and mech.model.nqs[1] == 7
    moved_by = [_efforts(name, i) for i in range(len(states))]
    found, axes, others = None, [], []
    for body in range(mech.model.njoints - 1, unheld, -1):  # seen from a base that no motor holds
        frames = frame_pair(mech, body, other=int(unheld))
        moved = _moved(mech, *states[0], part, frames, local, moved_by[0])
        found_axes = []
        for axis in ("rz", "x", "ry", "z", "rx", "y"):
            wider = [*found_axes, axis]
            if len(wider) <= most and _condition(moved[wider]) < 30.0:
                found_axes = wider
        if len(found_axes) > len(axes):
            axes, found = found_axes, frames
        if len(axes) == most:
            break
    if found is None:
        return None, []
    others = [
        _moved(mech, q, v, part, found, local, X)
        for (q, v), X in zip(states, moved_by, strict=True)
    ]
    good = [s for s, x in zip(states, others, strict=True) if _condition(x[axes]) < 100.0]
    return hc.FrameTask(found[0], axes, relative_to=found[1], local=local), good


@cache
def _efforts(name, i):
    """Accelerations by unit efforts at a state, scaled, each of norm one."""
    mech = of(name)
    X = responses(mech, *states_of(name)[i], partition_of(name))
    return X / np.linalg.norm(X / mech.column_scale[:, None], axis=0)


class _Rows(dict):
    def __getitem__(self, names):
        return np.array([dict.__getitem__(self, n) for n in names])


def _moved(mech, q, v, part, frames, local, X):
    task = hc.FrameTask(frames[0], relative_to=frames[1], local=local).bind(mech)
    P = hc.project(mech, q, v, partition=part)
    x = task.scale[:, None] * task.at(P.kinematics).jacobian @ X
    return _Rows(zip(("x", "y", "z", "rx", "ry", "rz"), x, strict=True))


def _condition(x):
    sizes = np.linalg.svd(x, compute_uv=False)
    full = x.shape[0] <= x.shape[1] and sizes[-1] > 1e-9 and sizes[0] > 1e-3
    return sizes[0] / sizes[-1] if full else np.inf


def reference_near(mech, q, v, task, seed=0, reach=0.1):
    """A reference close to where a task is: value, rate and acceleration, and what it is."""
    rng = np.random.default_rng(seed)
    bound = task.bind(mech)
    value = hc.task_terms(hc.project(mech, q, v), task).value
    n = len(bound.labels)
    if isinstance(value, pin.SE3):
        step = pin.SE3(pin.exp3(reach * rng.normal(size=3)), reach * rng.normal(size=3))
        value = value * step
    else:
        value = value + reach * rng.normal(size=n)
    return value, rng.normal(size=n), rng.normal(size=n)


def acceleration_of(mech, task, q, v, u, part, t=0.0, **options):
    """xdd of a task under motor efforts, by the forward dynamics."""
    fd = hc.forward_dynamics(mech, q, v, mech.B @ u, t=t, partition=part, **options)
    motion = task.bind(mech).at(hc.project(mech, q, v, t=t, partition=part).kinematics)
    return motion.jacobian @ fd.a + motion.drift
