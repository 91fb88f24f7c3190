"""Published methods in numpy, integrated in q and q' by scipy's DOP853: solvers of a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from referee.outcome import Outcome, judged, timed
from referee.problem import ATOL, RTOL, Problem

Array = NDArray[np.float64]
Acceleration = Callable[[Array, Array], Array]
"""q and q' to q''; efforts are in it."""


def integrated(name: str, acceleration: Acceleration) -> Callable[[Problem], Outcome]:
    """A solver by that name."""

    def outcome(problem: Problem) -> Outcome:
        mech, q0, v0 = problem.make()
        n = len(q0)

        def derivative(_: float, x: Array) -> Array:
            return np.concatenate([x[n:], acceleration(x[:n], x[n:])])

        def run() -> Any:
            return solve_ivp(
                derivative, (0.0, problem.times[-1]), np.concatenate([q0, v0]), method="DOP853",
                t_eval=problem.times, rtol=RTOL, atol=ATOL,
            )  # fmt: skip

        found: Any
        found, seconds = timed(run)
        return judged(
            problem, mech, name, found.y[:n].T, found.y[n:].T, seconds, evaluations=found.nfev
        )

    return outcome
