"""What the pictures of the page are drawn from: docs/referee.json, for docs/pictures/referee.py."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from referee import histories
from referee.four_bar import REGULAR
from referee.precision import Costs
from referee.score import Found

NAMES = ("mechanisms", "cost", "energy", "slider-cranks")
DENSE = (np.linspace(0.0, 1.1, 221), np.linspace(4.45, 5.0, 111))
"""s, of the curves beside the histories."""
EVERY = 5
"""Instants of the energy that are left out, but one of so many."""


def stored(found: Found, costs: Costs) -> str:
    """As JSON, numbers with the digits that can be seen."""
    data = {
        "table": [
            [problem.name, solver(x.solver), short(x.seconds), short(x.error)]
            for problem, lines in zip(found.problems, found.lines, strict=True)
            for x in lines
            if not x.word and not math.isnan(x.error)
        ],
        "precision": {
            name: {who: [[short(s), short(e)] for s, e in runs] for who, runs in curves.items()}
            for name, curves in costs.items()
        },
        "energy": energy(found),
        "histories": slider_cranks() if found.histories else {},
    }
    return json.dumps(data, separators=(",", ":")) + "\n"


def solver(name: str) -> str:
    """Without its step or its method."""
    known = ("holoctl", "constraintDynamics", "Exudyn", "MuJoCo")
    return next((k for k in known if name.startswith(f"{k},")), "published methods")


def energy(found: Found) -> dict[str, Any]:
    """Of the regular four-bar."""
    for problem, lines in zip(found.problems, found.lines, strict=True):
        if problem is REGULAR:
            return {
                "t": [short(t) for t in problem.times[::EVERY]],
                "of": {solver(x.solver): [short(e) for e in x.energy[::EVERY]]
                       for x in lines if x.energy},
            }  # fmt: skip
    return {}


def slider_cranks() -> dict[str, Any]:
    """Curves of the motions of one freedom, and the histories."""
    return {
        "t": [[short(t) for t in times] for times in DENSE],
        "curves": {
            key: [[short(x) for x in histories.theory(r, times)] for times in DENSE]
            for key, r in histories.READINGS.items()
        },
        "published": {
            name: [[short(t), short(x)] for t, x in zip(*histories.instants(name), strict=True)]
            for name in histories.PUBLISHED
        },
    }


def short(x: float) -> float:
    """Five digits."""
    return float(f"{x:.5g}")
