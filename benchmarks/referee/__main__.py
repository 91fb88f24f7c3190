"""The scoreboard, in one run.

    make referee            writes docs/referee*.md and docs/referee.json, draws their pictures
    make referee PEERS=1    the same beside Exudyn, MuJoCo and pin.constraintDynamics
    make referee HISTORIES=folder       the published slider-crank histories measured again too
    make referee HISTORIES=folder REWRITE=1     these alone; the tables of the other pages stay
    make referee DVRK=folder            the surgical arms measured again: their page alone
    PYTHONPATH=benchmarks .venv/bin/python -m referee --only A02 A04     writes nothing

All solvers of a problem take turns; times of less than a few seconds are medians of three.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from threadpoolctl import threadpool_limits

from referee import (
    arms_page,
    histories,
    identified,
    own,
    pictures,
    posed,
    precision,
    rbdl_states,
    score,
    spatial_v2_states,
    sympy_five,
    sympy_motions,
    textbook,
    with_exudyn,
    with_mujoco,
    with_pinocchio,
)
from referee.disagreement import PAGE
from referee.disagreement import disagreement as histories_page
from referee.outcome import Outcome
from referee.problem import Problem
from referee.problems import PROBLEMS
from referee.surgical_arms import ARMS

SHORT = 3.0
"""What takes less, s, is run three times."""
REPEATS = 3
PEERS = (("pinocchio", with_pinocchio), ("exudyn", with_exudyn), ("mujoco", with_mujoco))

QUESTIONS = (*spatial_v2_states.QUESTIONS, *rbdl_states.QUESTIONS, *sympy_motions.QUESTIONS)
DOCS = Path(__file__).parents[2] / "docs"

Solver = Callable[[Problem], Outcome]


class HasName(Protocol):
    """A problem, a question, a linkage."""

    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=HasName)


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


def named(found: Sequence[Named], only: Sequence[str]) -> list[Named]:
    """Those whose name has one of these texts."""
    return [x for x in found if any(text in x.name for text in only)]


def measured(only: Sequence[str], peers: bool) -> score.Found:
    """All tables."""
    problems, questions = named(PROBLEMS, only), named(QUESTIONS, only)
    asked, found = [], []
    with threadpool_limits(1):
        for problem in problems:
            found.append(lines(problem, peers))
            for x in found[-1]:
                told(problem.name, replace(x, energy=()))
        for question in questions:
            asked.append(question.answer())
            told(question.name, *asked[-1])
        linkages = [posed.judged(x) for x in named(textbook.LINKAGES, only)]
        told(*linkages)
        whole = only == [""]
        five = sympy_five.FIVE if whole else ()
        return score.Found(
            problems, found, questions, asked, {name: counts(name) for name in five}, linkages
        )  # fmt: skip


def counts(name: str) -> tuple[sympy_five.Counts, sympy_five.Counts, sympy_five.Counts]:
    """Of the post, of SymPy, of holoctl."""
    return (
        sympy_five.published(name), sympy_five.sympy_counts(name), sympy_five.holoctl_counts(name)
    )  # fmt: skip


def disagreement(folder: Path | None, kept: Path, note: str) -> histories.Compared | None:
    """Of the published histories: measured, and kept, where their folder is told."""
    if folder is not None:
        with threadpool_limits(1):
            found = histories.compared(folder, note)
        kept.write_text(histories.stored(found), encoding="utf-8")
    return histories.kept(kept)


def drawn(names: Sequence[str]) -> None:
    """The pictures of the page."""
    files = [f"referee-{name}" for name in names]
    subprocess.run([sys.executable, DOCS / "pictures", *files], check=True)


def rewrite(page: Path, found: histories.Compared | None) -> None:
    """The beginning and the page of the histories, without a simulation of another problem."""
    if found is None:
        raise SystemExit("no histories are stored: give their folder (--histories)")
    rows = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))["table"]
    text = score.rewritten(page.read_text(encoding="utf-8"), rows, found)
    page.write_text(text, encoding="utf-8")
    page.with_name(PAGE).write_text(histories_page(found), encoding="utf-8")


def arms(folder: Path, page: Path, note: str) -> None:
    """The page of the identified arms, and what is kept of it."""
    with threadpool_limits(1):
        found = [identified.identified(folder, arm) for arm in ARMS]
    page.with_suffix(".json").write_text(arms_page.stored(found, note), encoding="utf-8")
    page.write_text(arms_page.page(found, note), encoding="utf-8")
    told(f"Written: {page} and its .json")


def told(*what: object) -> None:
    """While it runs."""
    print(*what, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="python -m referee", description="Published problems.")
    parser.add_argument("--peers", action="store_true", help="Exudyn, MuJoCo and Pinocchio too")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="problems with such a name")
    parser.add_argument(
        "--out", type=Path, help="the first page to write; others and data beside it"
    )
    parser.add_argument("--histories", type=Path, metavar="FOLDER", help="of the published files")
    parser.add_argument("--dvrk", type=Path, metavar="FOLDER", help="the page of the arms alone")
    parser.add_argument("--note", default="", help="with --histories, --dvrk: what to know of it")
    parser.add_argument("--rewrite", action="store_true", help="the page of the histories alone")
    given = parser.parse_args(arguments)
    out = given.out or (None if given.only else DOCS / "referee.md")
    if given.histories is not None and out is None:
        parser.error("--histories is of the whole page, --only writes none")
    if given.rewrite and out is None:
        parser.error("--rewrite is of the whole page, --only writes none")
    if given.dvrk is not None:
        arms(given.dvrk, given.out or DOCS / arms_page.PAGE, given.note)
        return
    compared = None
    if out is not None:
        kept = out.with_name(f"{out.stem}-histories.json")
        compared = disagreement(given.histories, kept, given.note)
    if given.rewrite:
        rewrite(out, compared)
        names: Sequence[str] = ("histories",)
    else:
        written(given, out, compared)
        names = pictures.NAMES
    if out == DOCS / "referee.md":
        drawn(names)


def written(
    given: argparse.Namespace, out: Path | None, compared: histories.Compared | None
) -> None:
    """All measured; the page printed, and kept."""
    started = time.perf_counter()
    found = replace(measured(given.only or [""], given.peers), histories=compared)
    with threadpool_limits(1):
        costs = {} if out is None else precision.costs(given.peers)
    command = "make referee PEERS=1" if given.peers else "make referee"
    pages = score.pages(found, command, time.perf_counter() - started)
    print("\n".join(pages.values()))
    if out is not None:
        for name, page in pages.items():
            path = out if name == "referee.md" else out.with_name(name)
            path.write_text(page, encoding="utf-8")
        out.with_suffix(".json").write_text(pictures.stored(found, costs), encoding="utf-8")
        told(f"Written: {out} and its .json")


main()
