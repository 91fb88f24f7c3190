"""RBDL's constraint sets: accelerations, multipliers and impacts at the states of its numbers.

Rows as tests/golden/rbdl/README.md tells RBDL's conventions; the methods of `saddle`. Rows of loops
with angular axes mix frames in RBDL, so that spatial6 is left out here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import holoctl as hc
from referee import saddle
from referee.finding import Finding, Question, each, off
from referee.plain_tree import Moved, Tree, inertia_and_bias, moved, point, tree_of

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import rbdl

Array = NDArray[np.float64]
State = dict[str, Any]
Solve = Callable[[Any], Any]
CASES = ("fourbar", "spatial3", "slider_gear", "biped_double", "biped_single")
OURS = ("projection", "direct", "range_space", "null_space")
SOURCE = (
    "Numbers of RBDL 3.1.3: tests/golden/rbdl, ten states each, five of them on the constraints; "
    "loops at those five for holoctl, whose rows are derivatives of errors off the constraints "
    "too. *numpy*: rows in RBDL's conventions and the three methods of its documentation, with "
    "our own H and C. *RBDL, null-space*: what that method of RBDL returns, beside its own other "
    "methods: multipliers and impulses are not theirs. Errors are relative to 1 + the largest "
    "entry. Impulses have the sign of forces; those of RBDL's direct method have the other one."
)


def plain(case: str) -> Tree:
    """The tree of a file, in numpy."""
    data = rbdl.golden(case)["model"]
    return tree_of(data["bodies"], data["gravity"])


def rows(case: str, m: Moved, q: Array, qd: Array) -> tuple[Array, Array, Array, Array]:
    """G, gamma, position errors, velocity errors, in RBDL's conventions."""
    found = [_row(c, m, q, qd, len(q)) for c in rbdl.golden(case)["constraints"]]
    lines = [line for several in found for line in several]
    return (
        np.array([line[0] for line in lines]), np.array([line[1] for line in lines]),
        np.array([line[2] for line in lines]), np.array([line[3] for line in lines]),
    )  # fmt: skip


def _row(c: Any, m: Moved, q: Array, qd: Array, n: int) -> list[tuple[Array, float, float, float]]:
    if c["type"] == "gear":
        G = np.zeros(n)
        G[c["driven"]], G[c["driver"]] = 1.0, -c["ratio"]
        return [(G, 0.0, float(G @ q - c["offset"]), float(G @ qd))]
    if c["type"] == "contact":
        _, v, a, J = point(m, c["body"], c["point"])
        e = np.array(c["normal"], float)
        return [(e @ J, float(-e @ a), 0.0, float(e @ v))]
    one, two = c["predecessor"], c["successor"]
    p1, v1, a1, J1 = point(m, one, c["predecessor_translation"])
    p2, v2, a2, J2 = point(m, two, c["successor_translation"])
    R1 = m.R[one] @ np.array(c["predecessor_rotation"], float)
    found = []
    for axis in c["axes"]:
        e = R1 @ np.array(axis[3:], float)
        turning = np.cross(m.w[one], e)
        gamma = -e @ (a2 - a1) - turning @ (v2 - v1)
        found.append((e @ (J2 - J1), float(gamma), float(e @ (p2 - p1)), float(e @ (v2 - v1))))
    return found


def system(
    case: str, tree: Tree, q: Array, qd: Array, tau: Array, T: float = 0.0
) -> tuple[Array, Array, Array, Array]:
    """H, G, tau - C and gamma; with the time constant T of Baumgarte's stabilisation, s, if any.

    gamma - 2 alpha phi' - beta^2 phi, alpha = beta = 1 / T.
    """
    m = moved(tree, q, qd)
    H, C = inertia_and_bias(tree, m)
    G, gamma, error, rate = rows(case, m, q, qd)
    if T:
        gamma = gamma - (2.0 / T) * rate - error / T**2
    return H, G, tau - C, gamma


def _arrays(s: Any) -> State:
    return {name: np.array(s[name], float) for name in ("q", "qd", "tau")} | {"file": s}


def answer(case: str) -> list[Finding]:
    """A line for each method."""
    lines = [_own(case, method) for method in OURS]
    lines += [_plain(case, method) for method in saddle.METHODS]
    return [*lines, _as_returned(case)]


def _own(case: str, method: str) -> Finding:
    """holoctl. Of contacts it holds the points where they are at the state, as RBDL does."""
    contacts = case in rbdl.BIPEDS
    states = [_arrays(s) for s in rbdl.comparable(case)]
    mechs = [rbdl.build(case, s["q"]) if contacts else rbdl.mechanism(case) for s in states]
    parts = [hc.partition(m, s["q"]) if contacts else rbdl.partition(case)
             for m, s in zip(mechs, states, strict=True)]  # fmt: skip
    placed = list(zip(mechs, parts, states, strict=True))
    T = rbdl.golden(case)["baumgarte_time_constant"]

    def forward(x: Any, t_stab: float | None = None) -> tuple[Array, Array]:
        mech, part, s = x
        r = hc.forward_dynamics(
            mech, s["q"], s["qd"], s["tau"], method=method, t_stab=t_stab, partition=part
        )
        return r.a, r.multipliers

    def impact(x: Any) -> tuple[Array, Array]:
        mech, part, s = x
        v, v_plus = _hit(s)
        r = hc.impulse(mech, s["q"], v, v_plus, method=method, partition=part)
        return r.v, r.impulses

    name = f"holoctl, {method.replace('_', '-')}"
    if method == "projection":
        return _line(name, states, placed, forward, None, lambda x: forward(x, T))
    return _line(name, states, placed, forward, impact, lambda x: forward(x, T))


def _plain(case: str, method: str) -> Finding:
    """numpy."""
    tree, solve = plain(case), saddle.METHODS[method]
    states = [_arrays(s) for s in rbdl.states(case)]
    T = rbdl.golden(case)["baumgarte_time_constant"]

    def forward(s: Any, T: float = 0.0) -> tuple[Array, Array]:
        return solve(*system(case, tree, s["q"], s["qd"], s["tau"], T))

    def impact(s: Any) -> tuple[Array, Array]:
        v, v_plus = _hit(s)
        H, G, _, _ = system(case, tree, s["q"], s["qd"], s["tau"])
        return solve(H, G, H @ v, v_plus)

    return _line(f"numpy, {method}", states, states, forward, impact, lambda s: forward(s, T))


def _line(
    solver: str, states: list[State], given: list[Any], forward: Solve, impact: Solve | None,
    stabilised: Solve,
) -> Finding:  # fmt: skip
    answers, seconds = each(forward, given)
    files = [s["file"] for s in states]
    exact = [f["forward"]["direct"] for f in files]
    errors = {
        "acceleration": _most(answers, 0, [x["qdd"] for x in exact]),
        "multipliers": _most(answers, 1, [x["lambda"] for x in exact]),
    }
    if impact:
        struck, _ = each(impact, given)
        after = [f["impulse"][1]["range_space"] for f in files]
        errors["velocity after impact"] = _most(struck, 0, [x["qd_plus"] for x in after])
        errors["impulses"] = _most(struck, 1, [x["impulse"] for x in after])
    held, _ = each(stabilised, given)
    errors["with Baumgarte"] = _most(held, 0, [f["forward"]["baumgarte"]["qdd"] for f in files])
    return Finding(solver, errors, len(states), seconds)


def _most(answers: list[Any], k: int, exact: list[Any]) -> float:
    return max(off(a[k], b) for a, b in zip(answers, exact, strict=True))


def _hit(s: State) -> tuple[Array, Array]:
    """Velocity before, and the rates of the rows after."""
    hit = s["file"]["impulse"][1]
    return np.array(hit["qd_minus"]), np.array(hit["v_plus"])


def _as_returned(case: str) -> Finding:
    """What RBDL's null-space method returns, beside its own direct and range-space methods."""
    files = [_arrays(s)["file"] for s in rbdl.states(case)]
    forward = [(f["forward"]["null_space"], f["forward"]["direct"]) for f in files]
    impact = [(f["impulse"][1]["null_space"], f["impulse"][1]["range_space"]) for f in files]
    return Finding(
        "RBDL, null-space",
        {
            "acceleration": max(off(a["qdd"], b["qdd"]) for a, b in forward),
            "multipliers": max(off(a["lambda_as_returned"], b["lambda"]) for a, b in forward),
            "velocity after impact": max(off(a["qd_plus"], b["qd_plus"]) for a, b in impact),
            "impulses": max(off(a["impulse_as_returned"], b["impulse"]) for a, b in impact),
        },
        len(files),
    )


QUESTIONS = tuple(
    Question(f"RBDL, {case}", SOURCE, lambda case=case: answer(case)) for case in CASES
)
