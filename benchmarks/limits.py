"""Within limits: what a tick takes more, beside cvxpy, programs of full size, and TSID.

One motor can give less than what is asked for, at every state; the others are far from their
limits. All ways run in turn over the same states, three times each at a state, of which the last
counts: single calls, so that what else the machine does makes some of them slow, not all.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import full_size
import numpy as np
import pinocchio as pin
from columns import Case, Textbook, make_case, motor_indices
from figures import judged, table
from mechanisms import robot
from numpy.typing import NDArray
from peers import joint_axis

import holoctl as hc
from holoctl.control.limited_tick import LimitedTick

Array = NDArray[np.float64]

ROBOTS = ("four_bar", "five_bar", "delta", "stewart", "biped", "cassie_like")
BESIDE = ("stewart", "biped", "cassie_like")
"""Compared with TSID: their loops are closed by balls, whose rows are independent."""

TSID: str | None = None
"""The Python of an environment that has TSID, see limits_tsid.py."""

ROUNDS, RUNS = 50, 3
"""Rounds over all states in a run; the median of the medians of so many runs."""

SLOW = ("cvxpy", "cvxpy, full size", "Clarabel, full size")
"""Run in one round of `SELDOM`; by the clock of the process, which is in their favour: on a busy
machine they would be interrupted in every call."""

SELDOM = 12


@dataclass(frozen=True)
class Task:
    """States, targets and limits, of which one motor's acts at all states."""

    case: Case
    states: list[tuple[Array, Array, Array]]
    lower: Array
    upper: Array
    motor: int
    most: float
    """Far from all efforts."""

    def controller(self, limits: hc.Limits | None, policy: str = "nearest") -> hc.ComputedTorque:
        """One that asks for the targets."""
        mech, part = self.case.mech, self.case.part
        return hc.ComputedTorque(mech, 400.0, 40.0, partition=part, limits=limits, policy=policy)

    @property
    def near(self) -> hc.Limits:
        """The limits."""
        return hc.Limits(effort=list(zip(self.lower.tolist(), self.upper.tolist(), strict=True)))


def task(name: str) -> Task:
    """The least target, of random direction, whose efforts can be limited so that the one motor
    can still do what the motion without acceleration takes."""
    mech = robot(name)
    case = make_case(name, mech)
    direction, size = np.random.default_rng(1).normal(size=mech.nu), 1.0
    while True:
        states = [(s.q, s.v, size * direction) for s in case.states]
        asked = np.array([_efforts(case, *s) for s in states])
        base = np.array([_efforts(case, q, v, 0.0 * target) for q, v, target in states])
        least, held = np.abs(asked).min(axis=0), np.abs(base).max(axis=0)
        motor = int(np.argmax(least / held))
        if least[motor] > 2.0 * held[motor]:
            break
        size *= 2.0
    far = 10.0 * float(np.abs(asked).max())
    most = np.full(mech.nu, far)
    most[motor] = np.sqrt(least[motor] * held[motor])
    return Task(case, states, -most, most, motor, far)


def _efforts(case: Case, q: Array, v: Array, target: Array) -> Array:
    found = hc.inverse_dynamics(
        case.mech, q, v, target, partition=case.part, inconsistent="project"
    )
    return np.asarray(found.u)


def with_joints(mech: hc.Mechanism, effort: Any) -> hc.Limits:
    """Of these efforts; and of positions, rates and accelerations of all motors, none near."""
    q, motors = mech.reference, {name: place(mech, name) for name in mech.actuated}
    position = {
        name: (float(q[i]) - 2.0, float(q[i]) + 2.0) for name, i in motors.items() if i is not None
    }
    rates, accelerations = dict.fromkeys(motors, 50.0), dict.fromkeys(motors, 1e4)
    return hc.Limits(effort, rates, position or None, accelerations)


def place(mech: hc.Mechanism, name: str) -> int | None:
    """Where the joint's one number stands in q; None where it has two."""
    joint = mech.model.getJointId(name)
    return int(mech.model.idx_qs[joint]) if mech.model.nqs[joint] == 1 else None


Way = Callable[[Array, Array, Array], Any]


def python_ways(t: Task) -> dict[str, Way]:
    """Ticks in Python."""
    controllers = {
        "plain": t.controller(None),
        "far": t.controller(hc.Limits(effort=t.most)),
        "far, joints": t.controller(with_joints(t.case.mech, t.most)),
        "nearest": t.controller(t.near),
        "nearest, joints": t.controller(with_joints(t.case.mech, t.near.effort)),
        "scale": t.controller(t.near, "scale"),
        "cvxpy": by_cvxpy(t),
    }
    return {name: _way(t, ctl.torque) for name, ctl in controllers.items()}


def by_cvxpy(t: Task) -> hc.ComputedTorque:
    """Our tick, whose program cvxpy solves."""
    ctl = t.controller(t.near)
    law = replace(ctl._limited.law, solver=full_size.small_by_cvxpy(t.case.mech.nu))
    object.__setattr__(ctl, "_limited", LimitedTick(law, ctl.partition))
    return ctl


def compiled_ways(t: Task) -> dict[str, Way]:
    """Compiled ticks."""
    return {
        "compiled": _way(t, hc.compile(t.controller(None)).torque),
        "compiled, scale": _way(t, hc.compile(t.controller(t.near, "scale")).torque),
        "compiled, nearest": _way(t, hc.compile(t.controller(t.near)).torque),
    }


def _way(t: Task, torque: Callable[..., Any]) -> Way:
    mech = t.case.mech
    given = {
        id(q): (mech.motor_positions(q), mech.motor_rates(v)) for q, v, _ in t.states
    }  # so that the target is what is asked for
    u = np.zeros(mech.nu)

    def call(q: Array, v: Array, target: Array) -> Any:
        return torque(q, v, *given[id(q)], target, out=u)

    return call


def full_ways(t: Task) -> dict[str, Way]:
    """Programs of full size."""
    book, B = Textbook(t.case), t.case.mech.B

    def equations() -> full_size.Equations:
        return full_size.Equations(book, B)

    return {
        "DAQP, full size": full_size.by_daqp(equations(), t.lower, t.upper),
        "Clarabel, full size": full_size.by_clarabel(equations(), t.lower, t.upper),
        "cvxpy, full size": full_size.by_cvxpy(book, B, t.lower, t.upper),
    }


def check(t: Task, ways: dict[str, Way]) -> None:
    """Raise where a way does not do what it is timed for."""
    limited = [name for name in ways if name not in ("plain", "far", "far, joints", "compiled")]
    mech, part = t.case.mech, t.case.part
    for q, v, target in t.states:
        reference = hc.limited_inverse_dynamics(
            mech,
            q,
            v,
            target,
            hc.WithinLimits(t.near, solver="cvxpy"),
            partition=part,
            inconsistent="project",
        )
        if reference.saturated != (mech.actuator_names[t.motor],):
            raise RuntimeError(f"{t.case.name}: {reference.saturated} limit, not one motor")
        size = np.abs(reference.u).max()
        for name in limited:
            u = np.array(ways[name](q, v, target))
            past = max((t.lower - u).max(), (u - t.upper).max())
            if not past <= 1e-5 * size:
                raise RuntimeError(f"{t.case.name}, {name}: past the limits by {past:.0e}")
            if "nearest" in name or name == "cvxpy":
                off = np.abs(u - reference.u).max() / size
                if not off < (1e-2 if name == "cvxpy" else 1e-5):  # as accurate as it is by default
                    raise RuntimeError(f"{t.case.name}, {name}: off by {off:.0e}")


class Tsid:
    """TSID in a process of its own, which runs when it is told to."""

    def __init__(self, python: str, t: Task) -> None:
        self.file = Path(tempfile.mkdtemp()) / "given"
        self.file.write_bytes(pickle.dumps(given_to_tsid(t)))
        self.process = subprocess.Popen(
            [python, Path(__file__).with_name("limits_tsid.py"), self.file],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": "", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self._check(t, np.array(self._line()))

    def _check(self, t: Task, efforts: Array) -> None:
        past = np.maximum(efforts - t.upper, t.lower - efforts).max() / np.abs(efforts).max()
        if not past < 1e-6:
            raise RuntimeError(f"{t.case.name}, TSID: past the limits by {past:.0e}")
        if any(loop.weld for loop in t.case.loops):
            return  # its foot may be lifted
        same = full_ways(t)["DAQP, full size"]
        exact = np.array([same(*state) for state in t.states])
        off = np.abs(efforts - exact).max() / np.abs(exact).max()
        if not off < 1e-5:
            raise RuntimeError(f"{t.case.name}, TSID: off by {off:.0e}")

    def _line(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("TSID ended; see above")
        return json.loads(line)

    def run(self) -> list[float]:
        """Times of all states, s."""
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return [1e-9 * x for x in self._line()]

    def close(self) -> None:
        """No more."""
        self.process.stdin.close()
        self.process.wait(10)


def given_to_tsid(t: Task) -> dict[str, Any]:
    """The robot and its states, in what any numpy reads."""
    mech, model = t.case.mech, t.case.mech.model
    joints = []
    for j in range(1, model.njoints):
        axis, body, at = joint_axis(model, j), model.inertias[j], model.jointPlacements[j]
        kind = "floats" if axis is None else "turns" if axis.turns else "slides"
        joints.append({
            "kind": kind, "axis": [] if axis is None else axis.axis.tolist(),
            "name": model.names[j], "parent": int(model.parents[j]),
            "placement": at.homogeneous, "mass": body.mass, "lever": body.lever,
            "inertia": body.inertia,
        })  # fmt: skip
    frames, balls, feet = [], [], []
    for loop in t.case.loops:
        names = [f"{loop.name}_{end}" for end in "ab"]
        for name, f in zip(names, (loop.frame_a, loop.frame_b), strict=True):
            frames.append((name, int(f.joint), f.placement.homogeneous))
        if loop.weld:
            feet.append((loop.name, names[1]))
        else:
            balls.append((loop.name, names))
    q, v, _ = t.states[0]
    data, base = model.createData(), 6 if joints[0]["kind"] == "floats" else 0
    M = pin.crba(model, data, q)
    return {
        "joints": joints, "gravity": model.gravity.linear, "frames": frames, "balls": balls,
        "feet": feet, "states": t.states, "lower": t.lower, "upper": t.upper,
        "driven": [i - base for i in motor_indices(mech)],
        "M": np.triu(M) + np.triu(M, 1).T, "h": pin.nonLinearEffects(model, data, q, v),
    }  # fmt: skip


def timed(rounds: int, t: Task, ways: dict[str, Way], tsid: Tsid | None) -> dict[str, float]:
    """Medians, us."""
    rng = np.random.default_rng(0)
    times: dict[str, list[float]] = {name: [] for name in ways}
    if tsid is not None:
        times["TSID"] = []
    for n in range(rounds):
        for name in rng.permutation(list(times)).tolist():
            if name in SLOW and n % SELDOM:
                continue
            if name == "TSID":
                times[name] += tsid.run()
                continue
            call, clock = ways[name], time.process_time if name in SLOW else time.perf_counter
            for state in t.states:
                for _ in range(3):
                    start = clock()
                    call(*state)
                    end = clock()
                times[name].append(end - start)
    return {name: 1e6 * float(np.median(x)) for name, x in times.items()}


def prepare(name: str, python: str | None) -> tuple[Task, dict[str, Way], Tsid | None]:
    """What is timed, laid out and checked."""
    t = task(name)
    ways = {**python_ways(t), **compiled_ways(t), **full_ways(t)}
    check(t, ways)
    nothing = {"nothing": lambda q, v, target: None}
    return t, {**nothing, **ways}, Tsid(python, t) if python and name in BESIDE else None


def measure(quick: bool, python: str | None) -> dict[str, dict[str, float]]:
    """us of a tick by each way, the median of several runs, of each robot; in a run one robot comes
    after the other, so that a slow minute of the machine is in one run of each at most."""
    with hc.realtime():
        prepared = {name: prepare(name, python) for name in ROBOTS}
        rounds, runs_each = (SELDOM, 1) if quick else (ROUNDS, RUNS)
        runs = [
            {name: timed(rounds, *given) for name, given in prepared.items()}
            for _ in range(runs_each)
        ]
        for _, _, tsid in prepared.values():
            if tsid is not None:
                tsid.close()
    found = {}
    for name in ROBOTS:
        us = {way: float(np.median([run[name][way] for run in runs])) for way in runs[0][name]}
        clock = us.pop("nothing")
        found[name] = {way: x - (0.0 if way == "TSID" else clock) for way, x in us.items()}
    return found


def against_targets(name: str, f: dict[str, float]) -> list[str]:
    """What was to be reached, and whether it was."""
    plain, fast, nearest = f["plain"], f["compiled"], f["nearest"]
    found = [
        ("far - plain", f["far"] - plain, 3.0, " us"),
        ("far, joints - plain", f["far, joints"] - plain, 3.0, " us"),
        ("nearest - plain", nearest - plain, 15.0, " us"),
        ("scale - plain", f["scale"] - plain, 15.0, " us"),
        ("compiled scale / compiled", f["compiled, scale"] / fast, 1.3, " x"),
        ("compiled nearest - compiled", f["compiled, nearest"] - fast, 5.0, " us"),
        ("nearest / cvxpy", nearest / f["cvxpy"], 0.05, " x"),
    ]
    if "TSID" in f:
        found += [
            ("nearest / TSID", nearest / f["TSID"], 1 / 3, " x"),
            ("compiled nearest / TSID", f["compiled, nearest"] / f["TSID"], 1 / 3, " x"),
        ]
    return [judged(f"{name}: {text}", *rest) for text, *rest in found]


def section(quick: bool) -> str:
    """The section of the results."""
    others = ("cvxpy", "cvxpy, full size", "Clarabel, full size", "DAQP, full size", "TSID")
    acting = ("far", "far, joints", "nearest", "nearest, joints", "scale")
    rows: list[list[str]] = []
    targets: list[str] = []
    for name, f in measure(quick, TSID).items():
        targets += against_targets(name, f)
        plain, nearest, fast = f["plain"], f["nearest"], f["compiled"]
        rows.append([
            name, f"{plain:.1f}", *(f"{f[way] - plain:+.1f}" for way in acting), f"{fast:.2f}",
            *(f"{f[f'compiled, {way}'] - fast:+.2f}" for way in ("scale", "nearest")),
            *(f"{f[way]:.0f} ({f[way] / nearest:.1f} x)" if way in f else "-" for way in others),
        ])  # fmt: skip
    return "\n\n".join([
        "## Within limits",
        "Median time of a tick, us; with `+`, the time in addition to the tick without limits. "
        "*Far*: limits that do not act, of efforts alone, or also of positions, rates and "
        "accelerations of all motors. *Nearest*, *scale*: one motor gives less than the request; "
        "*joints*, the other limits there too. "
        "Compiled: `hc.compile`, called from Python. *cvxpy*: the same tick, its program solved "
        "by cvxpy (Clarabel) with parameters; *full size*: a, u and multipliers as unknowns, M, h "
        "and rows from Pinocchio, by cvxpy with parameters, by Clarabel and by DAQP, its cost the "
        "square of what the motors miss; cvxpy and Clarabel by the clock of the process. "
        "TSID, where an environment with it is given (`--tsid`): "
        "`computeProblemData`, `solve`, `getActuatorForces`, with its Pinocchio, in a process of "
        "its own. In brackets: how many times as long as *nearest* in Python.",
        table(["robot", "plain", *acting, "compiled", "compiled scale", "compiled nearest",
               *others], rows),
        "Targets:",
        "\n".join(targets),
    ])  # fmt: skip
