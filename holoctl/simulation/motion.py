"""A motion of a plant: where it is, and what an accepted step must be.

A step is accepted if its error is within the tolerance, the state at its end satisfies all rows,
its projection onto the manifold moves it by next to nothing, and the rows did not get singular on
the way. Then the rank of the rows is monitored (rank_monitor.py), and rows are selected anew where
those kept get dependent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import InconsistentError, SingularityError
from holoctl.base.linalg import largest, least_squares
from holoctl.base.tolerances import CLOSEST, FASTEST
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.codegen.compiled.simulation_steps import Step
from holoctl.constraints.constraint_protocol import constraint_of
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import ScaledRows, scaled_rows_at
from holoctl.simulation.collocation import PREDICTED_BY, AcceptedState, States
from holoctl.simulation.explicit_steps import (
    Acceleration,
    Coefficients,
    Slope,
    Stages,
    by_slopes,
    from_rest,
    in_tangent_space,
)
from holoctl.simulation.rank_monitor import (
    RankMonitor,
    after_step,
    better_rows,
    monitor_at,
    passed_zero,
)

__all__ = [
    "Efforts",
    "ImplicitSolver",
    "PlantDynamics",
    "PlantMotion",
    "RunTally",
    "Settings",
    "State",
    "StepEnd",
    "StepSolution",
    "arrive",
    "begin_tick",
    "check_effort",
    "efforts_at",
    "judged",
    "largest_jump",
    "lost",
    "new_efforts",
    "slope_here",
    "state_at",
    "too_fast",
]

NEAR_SINGULAR = 0.05
"""Rows are close to a singularity if their smallest singular value s is below this fraction of its
usual value in the run."""


JUMPS, JUMPS_NEAR = (1e5, 1e-6), 1e-2
"""Putting a state back may change its velocity by so many times rtol and this, relative; close to a
singular configuration, where another path is near, by that times the last."""

MOST_JUMP = 0.1
"""But never by more than this."""

OFF = 1e-6  # scaled
"""A state that is open by more is no result."""

PUT_BACK = (1e-12, 1e-12)  # scaled
"""States are put back where they are open, or slide, by more."""

MOST_STEPS = 10_000
"""Evaluations of the dynamics within one tick before a run counts as gone wild."""

HOPELESS = (1000, 30.0, 0.01)  # a count; -; -
"""It counts as that after so many already, where all of the tick would take as many times the most
at the same pace, and accelerations are not below this part of the largest within the tick."""


Efforts = Vector | Callable[[float, Vector, Vector], Vector]
"""tau on the coordinates, where they are held; or tau(t, q, v)."""


@dataclass(frozen=True, eq=False)
class PlantDynamics:
    """Forward dynamics of a partition, and what it can do in one call.

    Attributes
    ----------
    acceleration : function (q, v, tau, t) -> a
    rows : function (q, v, t) -> ScaledRows
        All rows.
    again : function (tau) -> a or None, or None
        With other efforts at the state that was evaluated last; None where it cannot.
    step : Step or None
        Whole steps with efforts held.
    """

    acceleration: Callable[[Vector, Vector, Vector, float], Vector]
    rows: Callable[[Vector, Vector, float], ScaledRows]
    again: Callable[[Vector], Vector | None] | None = None
    step: Step | None = None


class ImplicitSolver(NamedTuple):
    """A solver of scipy, in the tangent space of q0, with steps up to `longest`, s."""

    solver: Any
    q0: Vector
    longest: float


class State(NamedTuple):
    """Where a motion was, and how far its rows were off (scaled)."""

    t: float
    q: Vector
    v: Vector
    closure: float


class StepSolution(NamedTuple):
    """What one step covered, made with the partition `part`: x(t) = (d, v) between its ends, in the
    tangent space of q0."""

    start: State
    stop: State
    plant: Mechanism
    part: Partition
    q0: Vector
    x: Callable[[float], Vector]

    def at(self, t: float) -> tuple[Vector, Vector]:
        """The state at any instant of it."""
        if not self.start.t < t < self.stop.t:
            end = self.start if t <= self.start.t else self.stop
            return end.q, end.v
        return state_at(self.plant.model, self.q0, self.x(t))


def state_at(model: pin.Model, q0: Vector, x: Vector) -> tuple[Vector, Vector]:
    """The state (q, v) that x = (d, v) leads to from q0."""
    return pin.normalize(model, pin.integrate(model, q0, x[: model.nv])), x[model.nv :]


@dataclass
class RunTally:
    """What a run took, and what happened on the way."""

    steps: int = 0
    evaluations: int = 0
    repartitions: list[float] = field(default_factory=list)
    crossings: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """How a motion is integrated.

    Attributes
    ----------
    dynamics : function (mech, partition) -> PlantDynamics
        Makes the forward dynamics of a partition.
    method : str
        One of `METHODS`.
    cross : bool
        Whether it goes over singular configurations.
    tick : float
        s; evaluations are counted for that long.
    ticks : bool
        Whether efforts are held for a tick.
    end : float
        When the run ends, s.
    longest : float
        s; no step is longer, as what acts depends on time.
    target : str
        What the controller follows, in words; empty where that is not known.
    """

    dynamics: Callable[[Mechanism, Partition], PlantDynamics]
    method: str
    rtol: float
    atol: float
    cross: bool
    tick: float
    ticks: bool
    end: float
    longest: float
    target: str = ""


@dataclass
class PlantMotion:
    """The state of a plant on its way, on its constraints, and what its next step needs.

    `tau` are the efforts that act; `monitor` is the rank monitor, `usual` the independence of rows
    where nothing is singular. `first` is the slope where it is, None where it is not known; `nodes`
    are the last accepted states, under the same efforts. `guess` tells v and a beyond a step over a
    singular configuration, `ahead` when such a one stops it; `missed`, that it passes beside.
    """

    plant: Mechanism
    part: Partition
    usual: float
    settings: Settings
    tally: RunTally
    t: float
    q: Vector
    v: Vector
    tau: Efforts

    dynamics: PlantDynamics = field(init=False)
    in_tangent_space: Callable[[Acceleration], Slope] = field(init=False)
    slope: Slope = field(init=False)
    stages: Stages = field(init=False)
    monitor: RankMonitor = field(init=False)
    closure: float = field(init=False)
    h: float = field(init=False)
    method: str = field(init=False)
    scale: Callable[[Vector, Vector], Vector] = field(init=False)
    first: Vector | None = None
    evaluated: int = -1
    nodes: list[AcceptedState] = field(default_factory=list)
    guess: States | None = None
    missed: bool = False
    ahead: float | None = None
    opened: float = 0.0
    stiff: int = 0
    solver: ImplicitSolver | None = None
    since: float = 0.0
    spent: int = 0
    sharpest: float = 0.0

    def __post_init__(self) -> None:
        plant, settings, t, q, v = self.plant, self.settings, self.t, self.q, self.v
        self.monitor = monitor_at(plant, self.part, q, v, None, t)
        self.dynamics = settings.dynamics(plant, self.part)
        self.in_tangent_space, self.scale = in_tangent_space(plant), _scale(plant, settings)
        self.h, self.method = settings.tick, settings.method
        if self.method == "auto":
            self.method = "RK45" if settings.ticks else "DOP853"
        self.closure = largest(scaled_rows_at(plant, q, v, t).error)
        new_efforts(self, self.tau)
        begin_tick(self)

    @property
    def state(self) -> State:
        """Where it is."""
        return State(self.t, self.q, self.v, self.closure)


def _scale(plant: Mechanism, settings: Settings) -> Callable[[Vector, Vector], Vector]:
    """What errors are counted by: angles by one, rates by themselves."""
    nv, rtol, atol = plant.nv, settings.rtol, settings.atol
    positions = (atol + rtol) * plant.column_scale

    def scale(x0: Vector, x: Vector) -> Vector:
        sizes = np.maximum(np.abs(x0), np.abs(x))
        np.multiply(sizes, rtol, sizes)
        np.add(sizes, atol, sizes)
        sizes[:nv] = positions
        return sizes

    return scale


def begin_tick(motion: PlantMotion) -> None:
    """Count evaluations anew from here on."""
    motion.since, motion.spent, motion.sharpest = motion.t, motion.tally.evaluations, 0.0


def efforts_at(tau: Efforts, t: float, q: Vector, v: Vector) -> Vector:
    """The efforts on the coordinates at a state."""
    return tau if isinstance(tau, np.ndarray) else tau(t, q, v)


def new_efforts(motion: PlantMotion, tau: Efforts) -> None:
    """Other efforts from here on: accelerations so far say nothing of those to come."""
    dynamics, tally, held = motion.dynamics, motion.tally, isinstance(tau, np.ndarray)
    motion.first = _first_with(motion, tau)
    motion.tau, motion.solver, motion.nodes = tau, None, []

    def acceleration(t: float, q: Vector, v: Vector) -> Vector:
        tally.evaluations += 1
        return dynamics.acceleration(q, v, efforts_at(tau, t, q, v), t)

    motion.slope = motion.in_tangent_space(acceleration)
    motion.stages = by_slopes(motion.slope)
    if held and dynamics.step is not None:
        motion.stages = _at_once(dynamics.step, tau, motion.stages, tally)  # type: ignore[arg-type]


def _first_with(motion: PlantMotion, tau: Efforts) -> Vector | None:
    """The slope where the motion is with other efforts, if the last evaluation was there."""
    again, evaluated = motion.dynamics.again, motion.evaluated == motion.tally.evaluations
    if again is None or not evaluated or motion.first is None or callable(tau):
        return None
    a = again(tau)
    return None if a is None else np.concatenate([motion.first[: a.size], a])


def _at_once(step: Step, tau: Vector, one_by_one: Stages, tally: RunTally) -> Stages:
    """All stages in one call, with efforts held; one by one where that has doubts."""

    def stages(
        method: Coefficients, t: float, q0: Vector, v0: Vector, first: Vector | None, h: float
    ) -> tuple[Vector, Vector, Array]:
        count, size = method.C.size, 2 * v0.size
        x, last, K = np.empty(size), np.empty(size), np.empty((count + 1, size))
        if not step(q0, v0, tau, t, h, method.A, method.B, method.C, first, x, last, K):
            return one_by_one(method, t, q0, v0, first, h)
        tally.evaluations += count if first is not None else count + 1
        return x, last, K

    return stages


def slope_here(motion: PlantMotion) -> Vector:
    """The slope where the motion is; kept for its next step."""
    if motion.first is None:
        x = from_rest(motion.v)
        motion.first = motion.slope(motion.t, motion.q, x, np.empty(x.size))
    return motion.first


# --------------------------------------------------------------------------- the end of a step


class StepEnd(NamedTuple):
    """The end of a step that may be accepted; `moved` where it was put back."""

    q: Vector
    v: Vector
    rows: ScaledRows
    moved: bool


def judged(
    motion: PlantMotion, q0: Vector, x: Vector, end: float, put: float = 1.0
) -> StepEnd | SingularityError | InconsistentError:
    """The state that x = (d, v) from q0 leads to, put back on the constraints where it is off by
    more than `put` times what is usual; or why it is none."""
    plant, part, nv = motion.plant, motion.part, motion.plant.nv
    model, c = plant.model, plant.column_scale
    d, v = x[:nv], x[nv:]
    q = q0 + d if plant.nq == nv else pin.normalize(model, pin.integrate(model, q0, d))
    rows = motion.dynamics.rows(q, v, end)
    if passed_zero(motion.monitor, part, rows.jacobian):
        return lost(motion)
    off, slip, speed = largest(rows.error), largest(rows.rate), 1.0 + largest(v / c)
    allowed, jump = max(OFF, part.tolerance), largest_jump(motion)
    if not (off <= allowed and slip <= (jump + part.tolerance) * speed):
        return _left(motion, rows)
    near = put == 1.0 and motion.monitor.near_zero  # then errors count more, by one over s
    if off <= put * PUT_BACK[0] and slip <= put * PUT_BACK[1] * speed and not near:
        return StepEnd(q, v, rows, False)
    try:
        q, v_back = projected_onto_manifold(plant, part.rows, q, v, end, CLOSEST)
    except (SingularityError, InconsistentError) as error:
        return error
    change = largest((v_back - v) / c)
    if not change <= jump * speed:
        return InconsistentError(
            f"{plant.name}: putting the state back on the constraints changes its velocity by "
            f"{change:.1e} (scaled)",
            residual=change,
        )
    rows = motion.dynamics.rows(q, v_back, end)
    return StepEnd(q, v_back, rows, True) if largest(rows.error) <= allowed else _left(motion, rows)


def largest_jump(motion: PlantMotion) -> float:
    """By how much putting a state back may change its velocity, relative."""
    jump = min(JUMPS[0] * motion.settings.rtol + JUMPS[1], MOST_JUMP)
    near = motion.monitor.of_all.value < NEAR_SINGULAR * motion.usual
    return jump * JUMPS_NEAR if near else jump


def arrive(
    motion: PlantMotion, t: float, landed: StepEnd, a: Vector, h: float, q0: Vector,
    x: Callable[[float], Vector],
) -> StepSolution:  # fmt: skip
    """Take an accepted state, h later, with the acceleration a there; update the rank monitor,
    and select rows anew if need be. The step to it is ``x(t)`` from q0."""
    plant, q, v, start, part = motion.plant, landed.q, landed.v, motion.state, motion.part
    motion.t, motion.q, motion.v, motion.closure = t, q, v, largest(landed.rows.error)
    motion.nodes = [*motion.nodes[1 - PREDICTED_BY :], AcceptedState(t, v, a)]
    if t - motion.since > motion.settings.tick * (1.0 - 1e-9):
        begin_tick(motion)
    motion.sharpest = max(motion.sharpest, largest(a))
    motion.monitor = after_step(plant, part, motion.monitor, landed.rows.jacobian, q, v, a, t, h)
    motion.usual = max(motion.usual, motion.monitor.of_all.value)
    if motion.monitor.of_all.rate > 0.0:
        motion.missed = False
    better = better_rows(plant, part, motion.monitor, h)
    if better is not part:
        motion.part, motion.dynamics = better, motion.settings.dynamics(plant, better)
        motion.tally.repartitions.append(t)
        nodes, first = motion.nodes, motion.first
        new_efforts(motion, motion.tau)
        motion.nodes, motion.first = nodes, first  # the motion is the same
        motion.monitor = monitor_at(plant, better, q, v, a, t)
    return StepSolution(start, motion.state, plant, part, q0, x)


# ------------------------------------------------------------------------------------ errors


def check_effort(motion: PlantMotion) -> None:
    """Raise where a motion asks for too many evaluations within one tick, or would at this pace;
    and where it is so fast that no law takes it."""
    if largest(motion.v[motion.plant.lengths[1]]) > FASTEST:
        raise too_fast(motion)
    spent = motion.tally.evaluations - motion.spent
    share = (motion.t - motion.since) / motion.settings.tick
    few, times, dying = HOPELESS
    slow = spent > few and spent > times * MOST_STEPS * share
    # a stiff motion that dies away goes on in longer steps
    goes_on = not motion.nodes or largest(motion.nodes[-1].a) > dying * motion.sharpest
    if spent > MOST_STEPS or (slow and goes_on):
        raise too_fast(motion)


def lost(motion: PlantMotion) -> SingularityError:
    """The error of a motion at a singular configuration, or too near by one."""
    s = motion.monitor.of_all.value
    return SingularityError(
        f"{motion.plant.name}: the motion is at a singular configuration, or passes one by so "
        f"little that it cannot be told (the least singular value that counts is {s:.1e}, usual "
        f"are {motion.usual:.1e})",
        condition=motion.usual / s if s > 0.0 else float("inf"),
    )


def _left(motion: PlantMotion, rows: ScaledRows) -> InconsistentError:
    plant, part = motion.plant, motion.part
    off = np.abs(rows.error)
    worst = int(np.argmax(off))
    if part.tolerance > 0.0 and worst in part.left_out:
        return InconsistentError(
            f"{plant.name}: {plant.row_names[worst]} was left out as it repeats other rows nearly, "
            f"but it is open by {off[worst]:.1e} now, more than the tolerance of the geometry, "
            f"{part.tolerance:g}: it holds the mechanism after all",
            residual=float(off[worst]),
        )
    return InconsistentError(
        f"{plant.name}: the motion leaves its constraints: {plant.row_names[worst]} is open by "
        f"{off[worst]:.1e} (scaled), and rows slide by up to {largest(rows.rate):.1e}",
        residual=float(off[worst]),
    )


def too_fast(motion: PlantMotion) -> InconsistentError:
    """The error of a motion that asks for too many steps, with what may be the cause."""
    plant = motion.plant
    cause = "are the gains too high for the rate, or is the loop unstable?"
    tau = efforts_at(motion.tau, motion.t, motion.q, motion.v)
    if not tau.any():
        cause = (
            "no motor acts on it: is it close to a singular configuration, has a body next to no "
            "inertia, or is a tick (1 / rate) too long?"
        )
    elif motion.settings.target:
        cause = (
            "is the loop unstable, with gains too high for the rate, or does the target "
            f"{motion.settings.target} contradict {_what_holds(motion, tau)}?"
        )
    if plant.forces:
        cause += (
            f" Or are forces stiff ({listing(plant.force_names)}), such as friction with a small "
            "transition in joints with little inertia?"
        )
    fast, pushed = (int(np.argmax(np.abs(x))) for x in (motion.v / plant.column_scale, tau))
    return InconsistentError(
        f"{plant.name}: the motion is too fast to integrate "
        f"(more than {MOST_STEPS} evaluations within one tick, or than {FASTEST:g} m/s): "
        f"{plant.coordinate_names[fast]!r} moves at {motion.v[fast]:.2g} (rad/s or m/s), under "
        f"efforts of up to {abs(tau[pushed]):.2g} N m or N, on {plant.coordinate_names[pushed]!r}; "
        f"{cause}"
    )


def _what_holds(motion: PlantMotion, tau: Vector) -> str:
    """The constraint that bears most of the efforts; a base that floats, where nothing holds it."""
    plant, found = motion.plant, "what its motors can give"
    if plant.model.joints[1].shortname() == "JointModelFreeFlyer":
        found = f"the base {plant.model.names[1]!r}, which floats, and which no motor drives"
    G = scaled_rows_at(plant, motion.q, motion.v, motion.t).jacobian
    if not G.size or not np.isfinite(G).all():
        return found
    sizes = np.abs(least_squares(G.T, plant.column_scale * tau))  # all of them N m, or N
    name = constraint_of(plant.row_names[int(np.argmax(sizes))])
    return f"constraint {name!r}, which takes most of these efforts; or {found}"
