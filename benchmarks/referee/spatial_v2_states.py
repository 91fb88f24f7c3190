"""spatial_v2: the acceleration under q = gamma(y), by FDgq, at the states of its reference numbers.

    q'' = G (G' H G)^-1 G' (tau - C - H gs) + gs

`fdgq` here is written from that formula, as the documentation of gamma_q derives it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import holoctl as hc
from referee.finding import Finding, Question, each, off
from referee.plain_tree import Tree, inertia_and_bias, moved, tree_of

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import spatial_v2

Array = NDArray[np.float64]
Chart = Callable[[Any, Array, Array], tuple[Array, Array, Array, Array]]
SOURCE = (
    "Numbers of spatial_v2 in GNU Octave 7.3: tests/golden/fdgq, 12 states, of which six are off "
    "the constraint. *formula, numpy*: the equation of the documentation of gamma_q, with our own "
    "H and C in numpy. Errors are relative to 1 + the largest entry."
)


def fdgq(tree: Tree, chart: Chart, q0: Array, v0: Array, tau: Array) -> Array:
    """The formula."""
    q, v, G, gs = chart(None, q0, v0)
    H, C = inertia_and_bias(tree, moved(tree, q, v))
    ydd = np.linalg.solve(G.T @ H @ G, G.T @ (tau - C - H @ gs))
    return G @ ydd + gs


def plain(case: str) -> Tree:
    """The tree of a file, in numpy."""
    data = spatial_v2.golden(case)["tree"]
    return tree_of(data["bodies"], data["gravity"], first=1)


def answer(case: str) -> list[Finding]:
    """holoctl's `fdgq`, its forward dynamics with the chart as a constraint, the formula."""
    data, chart = spatial_v2.golden(case), spatial_v2.CHARTS[case]
    model, tree = spatial_v2.tree(data), plain(case)
    states = [
        {name: np.array(s[name], float) for name in ("q0", "qd0", "tau", "qdd")}
        for s in data["states"]
    ]
    free = [f"q{i}" for i in data["constraint"]["independent_joints"]]
    T = data["constraint"]["Tstab"]
    mech = hc.Mechanism(model, [hc.GammaQ(chart, free, t_stab=T)])
    part = hc.partition(mech, np.array(data["states"][0]["q0"], float))
    solvers = {
        "holoctl, fdgq": lambda s: hc.methods.fdgq(model, chart, s["q0"], s["qd0"], s["tau"]),
        "holoctl, forward_dynamics": lambda s: (
            hc.forward_dynamics(mech, s["q0"], s["qd0"], s["tau"], partition=part).a
        ),
        "formula, numpy": lambda s: fdgq(tree, chart, s["q0"], s["qd0"], s["tau"]),
    }
    lines = []
    for name, solve in solvers.items():
        found, seconds = each(solve, states)
        error = max(off(a, s["qdd"]) for a, s in zip(found, states, strict=True))
        lines.append(Finding(name, {"acceleration": error}, len(states), seconds))
    return lines


QUESTIONS = tuple(
    Question(f"spatial_v2, {case}", SOURCE, lambda case=case: answer(case))
    for case in spatial_v2.CASES
)
