"""What the pictures of the page are drawn from: docs/referee.json, for docs/pictures/referee.py."""

from __future__ import annotations

import json
from typing import Any

from referee.four_bar import REGULAR
from referee.precision import Costs
from referee.score import Found

NAMES = ("mechanisms", "cost", "energy", "histories")
EVERY = 5
"""Instants of the energy that are left out, but one of so many."""


def stored(found: Found, costs: Costs) -> str:
    """As JSON, numbers with the digits that can be seen."""
    data = {
        "table": [
            [name, solver(who), short(seconds), short(error)]
            for name, who, seconds, error in found.rows()
        ],
        "precision": {
            name: {who: [[short(s), short(e)] for s, e in runs] for who, runs in curves.items()}
            for name, curves in costs.items()
        },
        "energy": energy(found),
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


def short(x: float) -> float:
    """Five digits."""
    return float(f"{x:.5g}")
