"""What accuracy costs: a problem with several tolerances or steps, for the picture."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace

from referee import own, with_exudyn, with_mujoco, with_pinocchio
from referee.bricard import bricard
from referee.outcome import Outcome
from referee.problem import Problem
from referee.slider_cranks import SPATIAL

PROBLEMS = (SPATIAL, bricard("h6"))
TOLERANCES = (1e-5, 1e-7, 1e-9, 1e-11)
STEPS = {"Exudyn": (4e-3, 2e-3, 1e-3, 5e-4), "MuJoCo": (4e-3, 2e-3, 1e-3, 5e-4, 2.5e-4)}
REPEATS = 3

Costs = dict[str, dict[str, list[tuple[float, float]]]]
"""Problem to solver to (seconds, error)."""


def runs(problem: Problem, peers: bool) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """Solvers with their settings."""
    for rtol in TOLERANCES:
        yield "holoctl", lambda r=rtol: own.outcome(problem, rtol=r, atol=0.01 * r)
    if not peers:
        return
    for rtol in TOLERANCES:
        yield (
            "constraintDynamics, DOP853",
            lambda r=rtol: with_pinocchio.outcome(problem, r, 0.01 * r),
        )
    for name, module in (("Exudyn", with_exudyn), ("MuJoCo", with_mujoco)):
        if importlib.util.find_spec(name.lower()) is not None:
            for step in STEPS[name]:
                at_step = replace(problem, steps={name: step})
                yield name, lambda p=at_step, m=module: m.outcome(p)


def costs(peers: bool) -> Costs:
    """Times are medians of three; runs that break down are left out."""
    found: Costs = {}
    for problem in PROBLEMS:
        curves: dict[str, list[tuple[float, float]]] = {}
        for name, run in runs(problem, peers):
            tries = [run() for _ in range(REPEATS)]
            if not tries[0].word:
                seconds = statistics.median(x.seconds for x in tries)
                curves.setdefault(name, []).append((seconds, tries[0].error))
        found[problem.name] = curves
    return found
