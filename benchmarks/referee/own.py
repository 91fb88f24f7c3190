"""holoctl on a problem."""

from __future__ import annotations

from typing import Any

import numpy as np

import holoctl as hc
from referee.outcome import Outcome, judged, timed
from referee.problem import ATOL, RTOL, Problem


def simulated(problem: Problem, **more: Any) -> tuple[hc.Mechanism, hc.Run, float]:
    """The run, without control, and how long it took; `more` overrides the problem's options."""
    simulate = hc.simulate  # imported here, not while the clock runs
    mech, q, v = problem.make()
    options: dict[str, Any] = {"rtol": RTOL, "atol": ATOL, **problem.options, **more}
    how = ("method", "rtol", "atol", "at_singular")
    integrator = hc.Integrator(**{x: options.pop(x) for x in how if x in options})
    times = problem.times
    options.setdefault("output", times if times[0] == 0.0 else np.append(0.0, times))
    if problem.effort:
        effort = mech.B @ np.array(problem.effort)
        options["plant"] = hc.Plant(efforts=lambda t, q, v: effort)
    run, seconds = timed(
        lambda: simulate(mech, None, q, v, times[-1], integrator=integrator, **options)
    )
    return mech, run, seconds


def outcome(problem: Problem, **more: Any) -> Outcome:
    """The line of holoctl."""
    try:
        mech, run, seconds = simulated(problem, **more)
    except hc.HoloctlError as error:
        return Outcome("holoctl", word=type(error).__name__)
    at = slice(-len(problem.times), None)
    return judged(
        problem, mech, f"holoctl, {problem.options.get('method', 'auto')}", run.q[at], run.v[at],
        seconds, steps=run.steps, evaluations=run.evaluations,
        crossings=len(run.crossings) - len(run.type_2_at), repartitions=len(run.repartitions),
    )  # fmt: skip
