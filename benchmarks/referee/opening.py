"""The beginning of the page: what is compared, and how it ends, in five sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from referee.disagreement import PAGE
from referee.histories import Compared
from referee.tables import filled

OPENING = """\
How exact and how fast is holoctl beside other programs? Mechanisms whose motion is known, by a
formula or from a publication, are simulated by holoctl and, where they can, by Exudyn, MuJoCo and
Pinocchio's constraintDynamics. *error* in the table below is the largest distance of the points of
the mechanism from where they should be. {verdict}"""

INTRODUCTION = """\
- [Single states and mobility](referee-states.md): accelerations, multipliers and impulses of
  spatial_v2, RBDL and SymPy; mobility of linkages from textbooks.
- [The spatial slider-crank](referee-slider-crank.md): six published histories that do not agree.
- [Surgical arms](referee-arms.md): parameters identified from published measurements.

Data and references have their sources below, and no reference uses holoctl. `make referee` measures
again and draws the pictures; `PEERS=1` in an environment with Exudyn and MuJoCo."""

ASTRAY = 1.0
"""What is further off, m, is on another branch."""


def opening(rows: Sequence[Sequence[Any]], compared: Compared | None) -> str:
    """What a newcomer reads first; then what is where. Of rows: problem, solver, time, error."""
    told = OPENING.format(verdict=" ".join((*verdict(rows), *between(compared)))) if rows else ""
    return "\n\n".join(x for x in ("# Published problems", filled(told), INTRODUCTION) if x)


def verdict(rows: Sequence[Sequence[Any]]) -> list[str]:
    """How holoctl did, beside the others."""
    problems: dict[str, list[tuple[bool, float, float]]] = {}
    for name, solver, seconds, error in rows:
        ours = solver.split(",")[0] == "holoctl"
        problems.setdefault(name, []).append((ours, seconds, error))
    holoctl = {name: lines[0] for name, lines in problems.items() if lines[0][0]}
    others = {
        name: [x for x in problems[name] if not x[0]] for name in holoctl if len(problems[name]) > 1
    }
    if not holoctl:
        return ["holoctl simulated none of them."]
    worst = max(error for _, _, error in holoctl.values())
    count = f"all {len(holoctl)}"
    if len(holoctl) < len(problems):
        count = f"{len(holoctl)} of {len(problems)}"  # it failed at the others
    said = f"holoctl's error is at most {worst:.0e} m in {count} simulations"
    if not others:
        return [f"{said}; no other program was there."]
    nearest = sum(holoctl[name][2] < min(x[2] for x in found) for name, found in others.items())
    quicker = sum(holoctl[name][1] > min(x[1] for x in found) for name, found in others.items())
    astray = sum(max(x[2] for x in found) > ASTRAY for found in others.values())
    return [
        f"{said}. It has the smallest error in {nearest} of the {len(others)} that others "
        f"simulated too. In {astray} of these another program is more than a metre off, on another "
        "branch of the motion.",
        f"It is not the fastest: in {quicker} of the {len(others)} another program takes less "
        "time, often with a larger error.",
    ]


def between(compared: Compared | None) -> list[str]:
    """That there is no truth in one case."""
    if compared is None:
        return []
    return [
        "Published motions do not always agree: six histories of [one mechanism]"
        f"({PAGE}) are up to {1e3 * max(x.distance for x in compared.pairs):.0f} mm apart."
    ]
