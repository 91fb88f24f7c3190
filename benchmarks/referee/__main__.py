"""The scoreboard, in one run.

    make referee            writes docs/referee.md
    make referee PEERS=1    the same beside Exudyn, MuJoCo and pin.constraintDynamics
    PYTHONPATH=benchmarks .venv/bin/python -m referee --only A02 A04     writes nothing

All solvers of a problem take turns; times of less than a few seconds are medians of three.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from threadpoolctl import threadpool_limits

from referee import own, score, with_exudyn, with_mujoco, with_pinocchio
from referee.outcome import Outcome
from referee.problem import Problem
from referee.problems import PROBLEMS

SHORT = 3.0
"""What takes less, s, is run three times."""
REPEATS = 3
PEERS = (("pinocchio", with_pinocchio), ("exudyn", with_exudyn), ("mujoco", with_mujoco))

Solver = Callable[[Problem], Outcome]


def solvers(problem: Problem, peers: bool) -> list[Solver]:
    """holoctl, and those that are there."""
    found: list[Solver] = [own.outcome]
    for name, module in PEERS if peers and problem.peers else ():
        here = importlib.util.find_spec(name) is not None
        found.append(module.outcome if here else absent(name))
    return [*found, *problem.others]


def absent(name: str) -> Solver:
    """Of a peer without a wheel here."""
    return lambda problem: Outcome(name, word="missing")


def lines(problem: Problem, peers: bool) -> list[Outcome]:
    """The outcome of each solver, with the median of its times."""
    asked = solvers(problem, peers)
    first = [solve(problem) for solve in asked]
    times = [[x.seconds] for x in first]
    for turn in range(1, REPEATS):
        for i in range(len(asked)):
            k = (i + turn) % len(asked)
            if not first[k].word and first[k].seconds < SHORT:
                times[k].append(asked[k](problem).seconds)
    return [replace(x, seconds=statistics.median(t)) for x, t in zip(first, times, strict=True)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m referee", description="Published problems.")
    parser.add_argument("--peers", action="store_true", help="Exudyn, MuJoCo and Pinocchio too")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="problems with such a name")
    parser.add_argument("--out", type=Path, help="the page to write")
    given = parser.parse_args(arguments)
    only = given.only or [""]
    problems = [p for p in PROBLEMS if any(text in p.name for text in only)]
    out = given.out or (None if given.only else Path(__file__).parents[2] / "docs" / "referee.md")
    started, found = time.perf_counter(), []
    for problem in problems:
        with threadpool_limits(1):
            found.append(lines(problem, given.peers))
        for x in found[-1]:
            print(problem.name, x, file=sys.stderr, flush=True)
    command = "make referee PEERS=1" if given.peers else "make referee"
    page = score.page(problems, found, command, time.perf_counter() - started)
    print(page)
    if out is not None:
        out.write_text(page, encoding="utf-8")
        print(f"Written: {out}", file=sys.stderr)


main()
