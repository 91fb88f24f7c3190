"""The outcomes as docs/referee.md and the pages beside it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import report

from referee import disagreement
from referee.finding import QUANTITIES, Finding, Question
from referee.histories import Compared
from referee.opening import opening
from referee.outcome import Outcome
from referee.posed import Judged
from referee.problem import Problem
from referee.sympy_five import Counts
from referee.tables import count, figure, picture, table

PACKAGES = ("holoctl", "numpy", "scipy", "pin", "exudyn", "mujoco")
HEAD = (
    "problem", "solver", "error, m", "energy drift", "closure", "time, s", "steps", "evaluations",
    "crossings", "repartitions",
)  # fmt: skip

WRITTEN = "Written by `"
"""What comes after the beginning of the first page."""

STATES_PAGE = "referee-states.md"

MECHANISMS = "Mechanisms of this page, drawn by `hc.draw`"
COST = "Error over processor time for each solver, both logarithmic: the table, and two problems"
ENERGY = "Energy that nothing accounts for over 60 s of a four-bar, for each solver"

STATES = """\
One state at a time, without integration: largest errors over all states, and the processor time of
one acceleration, at the second call. holoctl's calls are the general ones with their certificates,
not those of a control loop ([benchmarks](../benchmarks/RESULTS.md)); numpy's and SymPy's check
nothing. Part of the [published problems](referee.md), and of the same run."""

METHODS = """\
*numpy*, *formula*: published methods, written for these pages from their equations; H and C by
Newton and Euler, body by body. *Baumgarte*: stabilisation of the constraints."""

FIVE = """\
The five mechanisms of the post "Kinematic loops": freedoms of the open tree less active rows give
the mobility. *SymPy*: the rank of the Jacobian of all rows of the joint that closes the loop, as
the post proposes."""

TEXTBOOK = """\
Gruebler's count, in space, is wrong for all linkages below. *mobility*: of the textbooks;
*by screws*: freedoms less the rank of the twists around the loops, in numpy; *holoctl*:
`hc.mobility`, with the redundant rows that it finds and their true number. *fact*: a property of
the linkage from the textbooks; *deviation*: the largest difference from it, m where no other unit
is given, over 22 postures that are assembled while the motors move. *time*: examination and
postures."""

NOTES = """\
- *error*: the largest distance of the points that are followed from the reference, over all
  instants that are compared (0.1 s apart on most problems).
- *energy drift*: the largest change of kinetic, gravity and spring energy that the work of the
  motors does not account for, relative to the largest kinetic energy. Empty with dampers.
- *closure*: the largest scaled error of a row at the instants of the comparison, over all rows,
  redundant ones too, by holoctl's rows for all. Where there are loops, all start from a state
  that `hc.assemble` closed; the references do not.
- *time*: processor time of one thread, for the simulation alone. Models are made beforehand;
  holoctl's call includes its decisions on rows and coordinates. Times below 3 s are medians of
  three runs in turn.
- *crossings*: singular configurations that were passed on the smooth branch
  (`at_singular="cross"`); in brackets, how many the motion has. The other programs have no such
  option: their rounding decides there. An error of a metre or more is another branch.
- holoctl and constraintDynamics with rtol 1e-9 and atol 1e-11; holoctl with LSODA at 1e-10 and
  1e-12 on A05. One thread for linear algebra, for all.
- *constraintDynamics*: Pinocchio's, proximal settings (1e-12, 1e-10, 10), with scipy's DOP853 and
  no stabilisation. A hinge in the plane is a point, a hinge in space two points.
- *Exudyn*: rigid bodies with redundant coordinates, generic joints, generalized alpha with
  spectral radius 0.95 and fixed steps; a dense solver that ignores singular Jacobians where a
  hinge in space is closed. Energy and closure are not read from it.
- *MuJoCo*: points as `connect`, hinges in space as two, springs and rods as tendons; RK4 with
  fixed steps, Newton, constraints as stiff as two steps allow. Thin bars and points have some
  inertia there about the axes that they do not turn about, in Exudyn too.
- *numpy*, *formula*: published methods, written for these pages from their equations; H and C by
  Newton and Euler, body by body, and scipy's DOP853 with the same tolerances.
- Fixed steps are those at which error and time are near the others'; they are not tuned."""


@dataclass(frozen=True)
class Found:
    """All that was measured."""

    problems: Sequence[Problem] = ()
    lines: Sequence[Sequence[Outcome]] = ()
    questions: Sequence[Question] = ()
    findings: Sequence[Sequence[Finding]] = ()
    counts: dict[str, tuple[Counts, Counts, Counts]] = field(default_factory=dict)
    linkages: Sequence[Judged] = ()
    histories: Compared | None = None

    def rows(self) -> list[tuple[str, str, float, float]]:
        """Problem, solver, time, s, and error, m, of what was simulated."""
        return [
            (problem.name, x.solver, x.seconds, x.error)
            for problem, lines in zip(self.problems, self.lines, strict=True)
            for x in lines
            if not x.word and not math.isnan(x.error)
        ]


def pages(found: Found, command: str, seconds: float) -> dict[str, str]:
    """All pages by their names, the first one as ``referee.md``."""
    parts = [
        f"{opening(found.rows(), found.histories)}\n\n"
        f"{WRITTEN}{command}` in {seconds:.0f} s, {load()}; nothing here is edited by hand."
        "\n\n"
        f"{report.machine(PACKAGES)}\n\n{picture(MECHANISMS, 'mechanisms')}",
        simulated(found) if found.problems else "",
        f"## What the columns are\n\n{NOTES}",
        sources(found.problems),
    ]
    made = {"referee.md": "\n\n".join(part for part in parts if part) + "\n"}
    if found.questions or found.counts or found.linkages:
        made[STATES_PAGE] = states_page(found)
    if found.histories:
        made[disagreement.PAGE] = disagreement.disagreement(found.histories)
    return made


def states_page(found: Found) -> str:
    """Of what is not simulated."""
    parts = [
        "# Single states and mobility",
        states(found) if found.questions else "",
        mobility(found) if found.counts or found.linkages else "",
        sources(found.questions, linkages=bool(found.linkages)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def load() -> str:
    """Who else was at work: what is above 1 slows the times down."""
    return f"load average {os.getloadavg()[2]:.1f}" if hasattr(os, "getloadavg") else "load unknown"


def simulated(found: Found) -> str:
    """The table of simulations."""
    rows = [
        row(problem, outcome, first=i == 0)
        for problem, outcomes in zip(found.problems, found.lines, strict=True)
        for i, outcome in enumerate(outcomes)
    ]
    return (
        f"## Simulations\n\n{table(HEAD, rows, 2)}\n\n{picture(COST, 'cost')}\n\n"
        f"{picture(ENERGY, 'energy')}"
    )


def states(found: Found) -> str:
    """The table of states."""
    head = ("problem", "solver", *QUANTITIES, "states", "time, ms")
    rows = [
        [
            question.name if i == 0 else "", x.solver,
            *(figure(x.errors.get(q, math.nan)) for q in QUANTITIES), count(x.count),
            figure(1e3 * x.seconds, ".2g"),
        ]
        for question, lines in zip(found.questions, found.findings, strict=True)
        for i, x in enumerate(lines)
    ]  # fmt: skip
    return (
        f"{STATES}\n\n## Accelerations of spatial_v2, RBDL, SymPy\n\n{table(head, rows, 2)}\n\n"
        f"{METHODS}"
    )


def mobility(found: Found) -> str:
    """SymPy's five, and the textbooks."""
    five = [[name.replace("_", " "), *map(str, c)] for name, c in found.counts.items()]
    head = ("mechanism", "the post", "SymPy", "holoctl")
    known = (
        "linkage", "joints", "Gruebler", "mobility", "by screws", "holoctl", "redundant rows",
        "fact", "deviation", "time, s",
    )  # fmt: skip
    rows = [
        [
            x.linkage.name, count(x.joints), count(x.gruebler), count(x.truth), count(x.screws),
            count(x.holoctl), f"{x.redundant[1]} of {x.redundant[0]}", x.linkage.fact,
            figure(x.deviation), figure(x.seconds, ".2f"),
        ]
        for x in found.linkages
    ]  # fmt: skip
    return (
        f"## Mobility of linkages from SymPy and textbooks\n\n{FIVE}\n\n{table(head, five, 1)}\n\n"
        f"{TEXTBOOK}\n\n{table(known, rows, 1, left=(7,))}"
    )


def rewritten(text: str, rows: Sequence[Sequence[Any]], compared: Compared) -> str:
    """The first page as it was, but its beginning."""
    _, written, rest = text.partition(WRITTEN)
    if not written:
        raise ValueError(f"the page has no {WRITTEN!r}")
    return f"{opening(rows, compared)}\n\n{written}{rest}"


def sources(asked: Sequence[Problem | Question], *, linkages: bool = False) -> str:
    """Data and references."""
    found: dict[str, list[str]] = {}
    for x in asked:
        found.setdefault(x.source, []).append(x.name)
    lines = [f"- **{common(names)}.** {source}" for source, names in found.items()]
    if linkages:
        lines.append(
            "- **Linkages.** tests/overconstrained_loops.py and overconstrained_nets.py draw them "
            "and cite the sources of their mobility; facts and closed forms: "
            "benchmarks/referee/textbook.py."
        )
    return "## Data and references\n\n" + "\n".join(lines)


def common(names: Sequence[str]) -> str:
    """What the names of variants of one problem begin with."""
    if len(names) == 1:
        return names[0]
    return names[0].rsplit(",", 1)[0] if "," in names[0] else ", ".join(names)


def row(problem: Problem, x: Outcome, *, first: bool) -> list[str]:
    """The cells of a line."""
    name = problem.name if first else ""
    if x.word:
        time = figure(x.seconds, ".2f")
        return [name, x.solver, x.word, "", "", time, "", "", "", ""]
    crossings = count(x.crossings)
    if x.crossings is not None and (passed := problem.passages()):
        crossings += f" ({passed})"
    return [
        name, x.solver, figure(x.error), figure(x.drift), figure(x.closure),
        figure(x.seconds, ".2f"), count(x.steps), count(x.evaluations), crossings,
        count(x.repartitions),
    ]  # fmt: skip
