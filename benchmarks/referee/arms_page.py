"""docs/referee-arms.md: errors of identified arms beside the published ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from referee.identified import SOURCE, Outcome
from referee.surgical_arms import ARMS, Arm
from referee.tables import filled, table

PAGE = "referee-arms.md"
TITLES = {"psm": "The patient side manipulator", "mtm": "The master manipulator"}
JOINTS = range(1, 8)

OPENING = f"""\
How well are dynamic parameters identified from measurements of a real robot, beside a published
identification of the same data? Two arms of the da Vinci Research Kit have parallelograms, a
counterweight and cables; their measurements and results are in {SOURCE}. holoctl has them as
mechanisms with pins and cables. An *error* is the norm of predicted less measured efforts of a
motor, relative to that of the measured ones, on a motion that no fit has seen."""

MODELS = """\
- *published*: results of their notebooks, by least squares in base parameters, and by a
  semidefinite program that ended at its limit of iterations after 869 s and 334 s. Four rotor
  inertias of its result for the patient side are negative.
- *holoctl, least squares*: the same filter, friction and number of base parameters.
- *holoctl, consistent*: `hc.identify` on the same equations: every body has a positive definite
  pseudo-inertia, friction and rotors are not negative. The strength of the prior, rough guesses of
  masses, is chosen by held-out blocks of phase of the training motion, which repeats itself.
- *best, consistent*: the same from the mean period of the training motion, with one filter for
  efforts and equations, friction that changes its sign over a finite rate, a lag of each motor, and
  a filter of its rates. Widths, lags and cutoffs are chosen by held-out blocks of that period.
- *best, least squares*: the same without consistency.

The torque of the master's fourth cable is the polynomial of their notebook, for all."""

FOLDER = f"""\
The repository has no licence, and nothing of it is kept here but these errors. With a clone of
{SOURCE} in a folder, `make referee DVRK=folder` measures this page again, and no other."""


def page(found: Sequence[Outcome], note: str = "") -> str:
    """The whole page."""
    arms = {arm.name: arm for arm in ARMS}
    parts = ["# Surgical arms: parameters identified from published measurements",
             "Part of the [published problems](referee.md); written by `make referee`, not edited "
             "by hand.", filled(OPENING), MODELS]  # fmt: skip
    for x in found:
        parts += [f"## {TITLES[x.arm]}", _table(arms[x.arm], x), filled(_after(arms[x.arm], x))]
    parts.append(filled(FOLDER))
    if note:
        parts.append(filled(note))
    return "\n\n".join(parts) + "\n"


def _table(arm: Arm, x: Outcome) -> str:
    """Errors by joint."""
    rows = (
        ("published, least squares", arm.published),
        ("holoctl, least squares", x.least_squares),
        ("published, semidefinite", arm.semidefinite),
        ("holoctl, consistent", x.consistent),
        ("best, consistent", x.best),
        ("best, least squares", x.best_least_squares),
    )
    return table(
        ("model", *(f"joint {i}" for i in JOINTS)),
        [[name, *(f"{e:.4f}" for e in errors)] for name, errors in rows], 1,
    )  # fmt: skip


def _after(arm: Arm, x: Outcome) -> str:
    """What the table does not say."""
    c = x.choice
    lags = ", ".join(f"{1e3 * lag:.0f}" for lag in c.lags)
    cutoffs = ", ".join(f"{cutoff:.0f}" for cutoff in c.cutoffs)
    widths = ", ".join(f"{n} {w:g}" for n, w in zip(arm.rates, c.widths, strict=True))
    return (
        f"{x.base} base parameters (gap {x.gap:.0e}). The consistent fit took "
        f"{x.fit_seconds:.1f} s of processor time, with the choice of the strength "
        f"({x.strength:.2g}), after {x.rows_seconds:.0f} s for the equations; the least eigenvalue "
        f"of a pseudo-inertia is {x.least_eigenvalue:.0e}. Chosen lags, ms: {lags}; cutoffs, Hz: "
        f"{cutoffs}; widths of friction, rad/s or m/s: {widths}."
    )


def stored(found: Sequence[Outcome], note: str = "") -> str:
    """As JSON."""
    return json.dumps({"arms": [asdict(x) for x in found], "note": note}, indent=1) + "\n"


def kept(file: Path) -> tuple[list[Outcome], str]:
    """What `stored` wrote."""
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return [Outcome.of(x) for x in data["arms"]], data["note"]
