"""The outcomes as docs/referee.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

import report

from referee.outcome import Outcome
from referee.problem import Problem

PACKAGES = ("holoctl", "numpy", "scipy", "pin", "exudyn", "mujoco")
HEAD = (
    "problem", "solver", "error, m", "energy drift", "closure", "time, s", "steps", "evaluations",
    "crossings", "repartitions",
)  # fmt: skip

INTRODUCTION = """\
Published problems of multibody dynamics, simulated by holoctl and, where they were there, by
others on the same model: the data and the references have their sources below, and no reference
knows anything of holoctl. `make referee` measures again; `PEERS=1` in an environment with Exudyn
and MuJoCo."""

NOTES = """\
- *error*: the largest distance of the points that are followed from the reference, over all
  instants that are compared (0.1 s apart on most problems).
- *energy drift*: the largest change of kinetic, gravity and spring energy that the work of the
  motors does not account for, relative to the largest kinetic energy. Dampers: none is told.
- *closure*: the largest scaled error of a row at the instants of the comparison, over all rows,
  redundant ones too.
- *time*: of the processor, one thread, for the simulation alone; models are made beforehand, and
  holoctl's call includes its decisions on rows and coordinates. Those below 3 s are medians of
  three runs in turn.
- *crossings*: singular configurations that were passed on the smooth branch
  (`at_singular="cross"`); in brackets, how many the motion has. The others are not told that
  there are any: what they do there comes of their rounding. An error of a metre or more is
  another branch.
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
- Fixed steps are those at which error and time are near the others'; they are not tuned."""


def page(
    problems: Sequence[Problem], lines: Sequence[Sequence[Outcome]], command: str, seconds: float
) -> str:
    """All of it."""
    rows = [
        row(problem, outcome, first=i == 0)
        for problem, outcomes in zip(problems, lines, strict=True)
        for i, outcome in enumerate(outcomes)
    ]
    sources: dict[str, list[str]] = {}
    for problem in problems:
        sources.setdefault(problem.source, []).append(problem.name)
    told = "\n".join(f"- **{common(names)}.** {source}" for source, names in sources.items())
    return (
        f"# Published problems\n\n{INTRODUCTION}\n\n"
        f"Written by `{command}` in {seconds:.0f} s; nothing here is edited by hand.\n\n"
        f"{report.machine(PACKAGES)}\n\n## The table\n\n{table(rows)}\n\n"
        f"## What the columns are\n\n{NOTES}\n\n## Data and references\n\n{told}\n"
    )


def common(names: Sequence[str]) -> str:
    """What the names of variants of one problem begin with."""
    return names[0] if len(names) == 1 else names[0].rsplit(",", 1)[0]


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


def figure(x: float, how: str = ".0e") -> str:
    """A number, or nothing."""
    return "" if math.isnan(x) else format(x, how)


def count(x: int | None) -> str:
    """A whole number, or nothing."""
    return "" if x is None else str(x)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Aligned Markdown."""
    widths = [max(map(len, column)) for column in zip(HEAD, *rows, strict=True)]
    rule = [("-" * w) if i < 2 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    lines = [HEAD, rule, *rows]
    return "\n".join(
        "| " + " | ".join(
            x.ljust(w) if i < 2 else x.rjust(w)
            for i, (x, w) in enumerate(zip(line, widths, strict=True))
        ) + " |"
        for line in lines
    )  # fmt: skip
