"""How long things take, in one run: holoctl beside Pinocchio, numpy, Drake and MuJoCo.

    make bench              writes benchmarks/RESULTS*.md and benchmarks/cost.png
    make bench PEERS=1      the same, beside Drake and MuJoCo, in an environment of its own
    .venv/bin/python benchmarks/bench.py --quick        fewer rounds of all, writes nothing
    .venv/bin/python benchmarks/bench.py --only laws    prints a section, or several of `SECTIONS`

Every result is compared with the exact one before it is timed; what disagrees is not timed.
All columns run in turn, each several times over all states, in an order that changes from round
to round, so that whatever else the machine does hits all of them alike. The first call of each
turn, with the caches full of other things, is told apart from those that follow.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before numpy: matrices are small

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boards
import certified
import contacts
import design
import encoders
import exported
import laws
import limits
import methods
import numpy as np
import report
import sweeps
from columns import AGREEMENT, KD, KP, Column, State, make_case, own_columns, path, prepared_torque
from figures import Figures
from mechanisms import MECHANISMS
from numpy.typing import NDArray
from peers import peer_columns

import holoctl as hc

SLOWEST_SHARE = 300_000
"""A column that takes longer than this, ns, is measured in fewer rounds."""

PASSES = 5
"""How often a column goes over all states in one turn."""

BLOCKS = 10
"""The ticks for the jitter are run in so many blocks, outside and inside in turn."""

JITTER = ("five_bar", "stewart")
"""Mechanisms whose jitter is measured."""

BATCHES = ("stewart", "biped")
"""Mechanisms that many states at once are measured of."""

SIMULATED = ("four_bar", "five_bar", "stewart")
"""Mechanisms that are simulated under a controller."""

DURATION = 0.5
"""s, of a simulation."""

BATCH = 40_000
"""States of a batch."""


@dataclass
class Plan:
    """How much to measure."""

    seconds: float = 4.0
    """For each mechanism, about."""
    ticks: int = 50_000
    """Of each run for the jitter."""
    peers: bool = False
    methods_seconds: float = 1.5
    """For each mechanism of the table of methods, about."""


# --------------------------------------------------------------------------------- measuring


def measure(name: str, plan: Plan) -> Figures:
    """Check all columns of a mechanism, then time those that agree."""
    with hc.realtime():
        case = make_case(name, MECHANISMS[name]())
        columns = own_columns(case) + (peer_columns(case) if plan.peers else [])
        return _measured(Figures(case, path=path(case)), columns, plan.seconds)


def measure_methods(name: str, plan: Plan) -> Figures:
    """The same for the methods of forward dynamics."""
    with hc.realtime():
        case = methods.make_case(name)
        figures = Figures(case, path=methods.path(case))
        return _measured(figures, methods.columns(case), plan.methods_seconds)


def _measured(figures: Figures, columns: list[Column], seconds: float) -> Figures:
    states = figures.case.states
    good = [c for c in columns if _agrees(c, states, figures)]
    for column, t in zip(good, timed(good, states, seconds), strict=True):
        figures.first[column.name], figures.times[column.name] = t[:, 0], t[:, 1:].ravel()
    return figures


def _agrees(column: Column, states: list[State], figures: Figures) -> bool:
    if column.missing:
        figures.refused[column.name] = column.missing
        return False
    off = column.difference(states)
    if column.expected is not None:
        figures.differences[column.name] = off
    if column.tolerance is not None and not off <= column.tolerance:
        figures.refused[column.name] = f"not timed: off by {off:.0e}"
        return False
    return True


def timed(columns: list[Column], states: list[State], seconds: float) -> list[NDArray[np.int64]]:
    """Times of all calls, ns, one array a column, one line a turn, one entry a state."""
    inputs = [[c.prepare(s) for s in states] for c in columns]
    calls = [c.call for c in columns]
    costs = [_cost(call, x) for call, x in zip(calls, inputs, strict=True)]
    strides = [max(1, round(cost / SLOWEST_SHARE)) for cost in costs]
    share = sum(cost / stride for cost, stride in zip(costs, strides, strict=True))
    calls_a_turn = PASSES * len(states)
    rounds = int(np.clip(1e9 * seconds / share / calls_a_turn, max(strides) * 5, 20_000))
    rng, clock = np.random.default_rng(0), time.perf_counter_ns
    times: list[list[list[int]]] = [[] for _ in columns]
    for n in range(rounds):
        order = PASSES * np.roll(np.arange(len(states)), n).tolist()
        for i in rng.permutation(len(columns)).tolist():
            if n % strides[i] == 0:
                call, turn = calls[i], []
                for x in [inputs[i][k] for k in order]:
                    start = clock()
                    call(x)
                    turn.append(clock() - start)
                times[i].append(turn)
    return [np.array(t) for t in times]


def _cost(call: Any, inputs: list[Any]) -> float:
    """Roughly what a call takes, ns, after warming up."""
    for x in inputs:
        call(x)
    start = time.perf_counter_ns()
    for x in inputs:
        call(x)
    return (time.perf_counter_ns() - start) / len(inputs)


def jitter(name: str, ticks: int) -> dict[str, NDArray[np.int64]]:
    """Times of many ticks in a row, ns, outside and inside `hc.realtime()`, in turn."""
    with hc.realtime():
        case = make_case(name, MECHANISMS[name]())
    torque = prepared_torque(case)
    runs: dict[str, list[NDArray[np.int64]]] = {"outside": [], "inside": []}
    for _ in range(BLOCKS):
        runs["outside"].append(_ticks(torque, case.states, ticks // BLOCKS))
        with hc.realtime():
            runs["inside"].append(_ticks(torque, case.states, ticks // BLOCKS))
    return {where: np.concatenate(blocks) for where, blocks in runs.items()}


def _ticks(torque: Any, states: list[State], ticks: int) -> NDArray[np.int64]:
    times, clock, n = [0] * ticks, time.perf_counter_ns, len(states)
    for s in states:
        torque(s)
    for i in range(ticks):
        s = states[i % n]
        start = clock()
        torque(s)
        times[i] = clock() - start
    return np.array(times)


def batch(name: str, seconds: float) -> dict[str, NDArray[np.float64]]:
    """Times of a state, us: the Python loop, and batches on one core and on two, in turn."""
    if importlib.util.find_spec("casadi") is None:
        return {}
    with hc.realtime():
        case = make_case(name, MECHANISMS[name]())
        fast = hc.compile(case.mech, ["inverse_dynamics"], partition=case.part)
        python, n = prepared_torque(case), len(case.states)
        which = np.arange(BATCH) % n
        tables = [np.array([getattr(case.states[i], x) for i in which]) for x in ("q", "v")]
        tables.append(np.array([case.states[i].target for i in which]))
        out = np.empty((BATCH, case.mech.nu))
        times: dict[str, list[float]] = {"loop": [], "one core": [], "two cores": []}
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(times["loop"]) < 5:
            start = time.perf_counter()
            for i in range(100 * n):
                python(case.states[i % n])
            times["loop"].append(1e6 * (time.perf_counter() - start) / (100 * n))
            for cores, where in enumerate(("one core", "two cores"), 1):
                start = time.perf_counter()
                fast.inverse_dynamics_batch(*tables, out=out, workers=cores)
                times[where].append(1e6 * (time.perf_counter() - start) / BATCH)
    return {where: np.array(t) for where, t in times.items()}


def simulation(name: str, seconds: float) -> dict[str, NDArray[np.float64]]:
    """Simulated seconds per second, at 1 kHz under a controller: in Python, with the dynamics
    compiled, and with the controller too, in turn."""
    if importlib.util.find_spec("casadi") is None:
        return {}
    with hc.realtime():
        mech = MECHANISMS[name]()
        q, v = hc.assemble(mech)
        controller = hc.ComputedTorque(mech, KP, KD)
        home, n = mech.motor_positions(q), mech.nu

        def reference(t: float) -> tuple[Any, Any, Any]:
            s, c = 0.1 * np.sin(3.0 * t), 0.3 * np.cos(3.0 * t)
            return home + s, np.full(n, c), np.full(n, -9.0 * s)

        fast = hc.compile(controller, ["forward_dynamics", "torque"])

        track = controller.track(reference)
        ways: dict[str, tuple[Any, Any]] = {
            "prepared": (track, None),
            "compiled dynamics": (track, fast),
            "and controller": (fast.track(reference), fast),
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        ends = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or len(found["prepared"]) < 3:
            for way, (control, dynamics) in ways.items():
                start = time.perf_counter()
                run = hc.simulate(mech, control, q, v, DURATION, plant=dynamics)
                found[way].append(DURATION / (time.perf_counter() - start))
                ends.append(run.q[-1])
        if not np.ptp(ends, axis=0).max() < AGREEMENT:
            raise RuntimeError(
                f"{name}: the simulations differ by {np.ptp(ends, axis=0).max():.0e}"
            )
    return {way: np.array(ratios) for way, ratios in found.items()}


# --------------------------------------------------------------------------------- the program


def progress(things: Iterable[str]) -> Iterable[str]:
    """A progress bar, where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return things
    return tqdm(list(things), leave=False)


SECTIONS: dict[str, Callable[[bool], str]] = {
    "encoders": encoders.section,
    "laws": laws.section,
    "certified": certified.section,
    "limits": limits.section,
    "contacts": contacts.section,
    "exported": exported.section,
    "boards": boards.section,
    "design": design.section,
    "sweeps": sweeps.section,
}
"""Parts of the pages that have a file of their own; whether to be quick -> text."""


def written(command: str, seconds: float, before: tuple[float, float, float]) -> str:
    """By what, in which time, and who else was at work."""
    after = os.getloadavg()
    return (
        f"`{command}` in {seconds:.0f} s; load average {before[0]:.1f} at the beginning, "
        f"{after[1]:.1f} over its last 5 minutes, of which it makes 1 itself and 2 where two cores "
        f"are compared, on {os.cpu_count()} cores"
    )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="How long things take.")
    parser.add_argument("--peers", action="store_true", help="Drake and MuJoCo too")
    parser.add_argument("--tsid", metavar="PYTHON", help="TSID too, see limits_tsid.py")
    parser.add_argument("--quick", action="store_true", help="a short run; writes nothing")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="these sections, printed")
    parser.add_argument("--out", type=Path, help="where to write RESULTS*.md and cost.png")
    given = parser.parse_args()
    limits.TSID = given.tsid
    names = given.only or list(SECTIONS)
    if given.only:
        print("\n\n".join(SECTIONS[name](given.quick) for name in progress(names)))
        return
    plan = Plan(0.8, 5_000, given.peers, 0.3) if given.quick else Plan(peers=given.peers)
    out = given.out or (None if given.quick else Path(__file__).parent)
    started, load = time.perf_counter(), os.getloadavg()
    figures = [measure(name, plan) for name in progress(MECHANISMS)]
    by_method = [measure_methods(name, plan) for name in progress(methods.NAMES)]
    ticks = {name: jitter(name, plan.ticks) for name in progress(JITTER)}
    batches = {name: batch(name, plan.seconds / 4) for name in progress(BATCHES)}
    simulations = {name: simulation(name, plan.seconds / 2) for name in progress(SIMULATED)}
    sections = {name: SECTIONS[name](given.quick) for name in progress(names)}
    flags = [f"--{name}" for name in ("peers", "quick", "tsid") if getattr(given, name)]
    command = " ".join(["python benchmarks/bench.py", *flags])
    by = written(command, time.perf_counter() - started, load)
    pages = report.results(figures, by_method, ticks, batches, simulations, by, sections)
    print("\n".join(pages.values()))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (out / name).write_text(text, encoding="utf-8")
        report.picture(figures, out / "cost.png")
        print(f"Written: {out / 'RESULTS.md'}, pages beside it, and cost.png", file=sys.stderr)


if __name__ == "__main__":
    main()
