"""What a simulation gave, and what is asked of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows
from referee.problem import Problem, positions

Array = NDArray[np.float64]
NAN = float("nan")


@dataclass(frozen=True)
class Outcome:
    """A line of the table.

    Attributes
    ----------
    solver : str
        Who, with the step or the method.
    error : float
        Largest distance of a point from the reference, at any instant, m.
    drift : float
        Largest change of the energy that nothing accounts for, relative to the largest kinetic
        energy; NaN where dampers lose energy.
    closure : float
        Largest scaled error of a row, all rows, of the states at the instants of the comparison.
    seconds : float
        Time of the processor for the simulation: median where there were several.
    steps, evaluations, crossings, repartitions : int or None
        None where it is not told.
    word : str
        Instead of figures: why there are none.
    energy : tuple of float
        The change of the energy at the instants of the comparison, as `drift` has it.
    """

    solver: str
    error: float = NAN
    drift: float = NAN
    closure: float = NAN
    seconds: float = NAN
    steps: int | None = None
    evaluations: int | None = None
    crossings: int | None = None
    repartitions: int | None = None
    word: str = ""
    energy: tuple[float, ...] = ()


def timed(call: Callable[[], object]) -> tuple[object, float]:
    """What it returns, and how much time of the processor it took."""
    start = time.process_time()
    found = call()
    return found, time.process_time() - start


def error(problem: Problem, points: Array) -> float:
    """Largest distance from the reference."""
    return float(np.linalg.norm(points - problem.reference(), axis=2).max())


def damped(mech: hc.Mechanism) -> bool:
    """Whether a force of the mechanism loses energy."""
    return any(getattr(force, "damping", 0.0) > 0.0 for force in mech.forces)


def energy_changes(problem: Problem, mech: hc.Mechanism, Q: Array, V: Array) -> Array:
    """Of the energy, at each state since the start, what no work accounts for.

    Relative to the largest kinetic energy.
    """
    _, q0, v0 = problem.make()
    effort = mech.B @ np.array(problem.effort) if problem.effort else np.zeros(mech.nv)
    at_first = stored(mech, q0, v0)
    fastest, changes = at_first[0], []
    for q, v in zip(Q, V, strict=True):
        now = stored(mech, q, v)
        work = float(effort @ pin.difference(mech.model, q0, q))
        fastest = max(fastest, now[0])
        changes.append(sum(now) - sum(at_first) - work)
    return np.array(changes) / fastest


def drift(problem: Problem, mech: hc.Mechanism, Q: Array, V: Array) -> float:
    """The largest of these."""
    return float(np.abs(energy_changes(problem, mech, Q, V)).max())


def stored(mech: hc.Mechanism, q: Array, v: Array) -> tuple[float, float]:
    """Kinetic and potential energy, springs included, J."""
    model, data = mech.model, mech.model.createData()
    kinetic = pin.computeKineticEnergy(model, data, q, v)
    potential = pin.computePotentialEnergy(model, data, q)
    for s in mech.forces:
        (p_a, p_b) = positions(model, q, (s.a, s.b))[0]
        potential += 0.5 * s.stiffness * (np.linalg.norm(p_b - p_a) - s.length) ** 2
    return float(kinetic), float(potential)


def closure(mech: hc.Mechanism, Q: Array, V: Array) -> float:
    """Largest scaled error of a row at these states; NaN where there are no rows."""
    worst = 0.0 if mech.constraints else NAN
    for q, v in zip(Q, V, strict=True):
        _, rows = constraint_rows(mech, q, v)
        if rows.error.size:
            worst = max(worst, float(np.abs(mech.row_scale * rows.error).max()))
    return worst


def judged(
    problem: Problem, mech: hc.Mechanism, solver: str, Q: Array, V: Array, seconds: float,
    **told: int,
) -> Outcome:  # fmt: skip
    """The line of a run in the mechanism's own coordinates."""
    if not (np.isfinite(Q).all() and np.isfinite(V).all()):
        return Outcome(solver, seconds=seconds, word="breaks down")
    energy = np.empty(0) if damped(mech) else energy_changes(problem, mech, Q, V)
    return Outcome(
        solver,
        error(problem, positions(mech.model, Q, problem.points)),
        float(np.abs(energy).max(initial=0.0)) if energy.size else NAN,
        closure(mech, Q, V),
        seconds,
        energy=tuple(energy.tolist()),
        **told,
    )
