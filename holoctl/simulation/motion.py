"""The motion of a plant: its state, and the conditions for accepting a step.

A step is accepted if its error is within the tolerance, the state at its end satisfies all rows,
the projection of that state onto the manifold changes it by next to nothing, and the rows did not
become singular within the step. The rank of the rows is then monitored (rank_monitor.py), and other
rows are selected if those kept become dependent.
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


JUMPS = (1e5, 1e-6)  # -; relative
"""The projection of a state may change its velocity by at most the first number times rtol plus the
second."""

JUMPS_NEAR = 1e-2
"""Factor of that limit close to a singular configuration, where another branch is near."""

MOST_JUMP = 0.1  # relative
"""Upper bound of that limit, whatever rtol is."""

OFF = 1e-6  # scaled
"""Largest closure error of an accepted state."""

PUT_BACK = (1e-12, 1e-12)  # scaled
"""A state is projected onto the manifold if its closure error exceeds the first number, or the rate
of that error the second."""

MOST_STEPS = 10_000
"""Largest number of evaluations of the dynamics within one tick; a run that needs more is given
up."""

HOPELESS_EVALUATIONS = 1000
"""A run is given up after this number of evaluations within one tick already, if the pace is that
of `HOPELESS_PACE` and the motion does not decay (`DECAYED`)."""

HOPELESS_PACE = 30.0
"""The whole tick would take more than this factor times `MOST_STEPS` evaluations."""

DECAYED = 0.01
"""A motion decays if its acceleration is below this share of the largest within the tick: a stiff
motion that decays continues in longer steps."""


Efforts = Vector | Callable[[float, Vector, Vector], Vector]
"""Efforts on the coordinates: an array if they are held, else a function tau(t, q, v)."""


@dataclass(frozen=True, eq=False)
class PlantDynamics:
    """Forward dynamics of a partition.

    Attributes
    ----------
    acceleration : function (q, v, tau, t) -> a
    rows : function (q, v, t) -> ScaledRows
        All rows.
    again : function (tau) -> a or None, or None
        The acceleration under other efforts at the state that was evaluated last, or None if it is
        not available there; None if there is no such function.
    step : Step or None
        Computes all stages of a step in one call, with held efforts; None if there is no such
        function.
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
    """A state of a motion, and the largest scaled error of its rows."""

    t: float
    q: Vector
    v: Vector
    closure: float


class StepSolution(NamedTuple):
    """An accepted step of a plant with the partition `part`: x(t) = (d, v) between its ends, in the
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
    """Counts of steps and evaluations of a run, and the instants, s, of repartitions, of crossings
    of singular configurations, and of type-2 singularities."""

    steps: int = 0
    evaluations: int = 0
    repartitions: list[float] = field(default_factory=list)
    crossings: list[float] = field(default_factory=list)
    type_2: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """How a motion is integrated.

    Attributes
    ----------
    dynamics : function (mech, partition) -> PlantDynamics
        Makes the forward dynamics of a partition.
    method : str
        One of `METHODS`.
    rtol, atol : float
        Tolerances of a step, as in `Integrator`.
    cross : bool
        Whether the motion may pass singular configurations.
    hold_side : bool
        Whether a run under a controller ends at a type-2 singularity.
    tick : float
        Period of the controller, s; evaluations are counted over one tick.
    ticks : bool
        Whether efforts are held for a tick.
    end : float
        Time at which the run ends, s.
    longest : float
        Largest length of a step, s; finite if efforts depend on time.
    target : str
        The targets of the controller, in words; empty if they are not known.
    """

    dynamics: Callable[[Mechanism, Partition], PlantDynamics]
    method: str
    rtol: float
    atol: float
    cross: bool
    hold_side: bool
    tick: float
    ticks: bool
    end: float
    longest: float
    target: str = ""


@dataclass
class PlantMotion:
    """The state of a plant on its constraints, and the data of its next step.

    Attributes
    ----------
    plant, part, settings, tally
        Mechanism, partition, `Settings` of the integration and counts of the run.
    usual : float
        The independence s of the rows in configurations that are not singular.
    t, q, v
        The state: s, (nq,) and (nv,).
    tau : Efforts
        Efforts on the coordinates from here on.
    dynamics : PlantDynamics
        Forward dynamics of the plant with its partition.
    in_tangent_space : function
        Turns an acceleration a(t, q, v) into the slope of x = (d, v).
    slope, stages : function
        Slope of x, and the stages of an explicit step, both under `tau`.
    monitor : RankMonitor
        Singular values of the rows at the state.
    closure : float
        Largest scaled error of the rows at the state.
    h : float
        Length of the next explicit step, s.
    method : str
        The integration method in use; ``"auto"`` is resolved, and may change to an implicit one.
    scale : function (x0, x) -> (2 nv,)
        Unit of the error of a step in each entry of x.
    first : (2 nv,) array or None
        The slope at the state; None if it is not known.
    evaluated : int
        The count of evaluations after the last explicit step; if it has not grown since, the last
        evaluation was at the state.
    nodes : list of AcceptedState
        The last accepted states under the same efforts.
    guess : function (t) -> (v, a), or None
        Prediction after a step over a singular configuration that ended before its polynomial did.
    missed : bool
        Whether the motion was found to pass next to the singular configuration, and not through it.
    ahead : float or None
        Instant of a singular configuration at which the run must stop, s; None if there is none.
    opened : float
        The error of the rows in the last attempt of a step over a singular configuration, scaled.
    stiff : int
        Number of recent explicit steps that were limited by stability.
    solver : ImplicitSolver or None
        The implicit solver at the state; None if it must be restarted.
    since : float
        Start of the interval in which evaluations are counted, s.
    spent : int
        The count of evaluations at `since`.
    sharpest : float
        Largest acceleration since then.
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
        """The current state."""
        return State(self.t, self.q, self.v, self.closure)


def _scale(plant: Mechanism, settings: Settings) -> Callable[[Vector, Vector], Vector]:
    """The unit of errors: positions by the scale of the coordinate, rates relative and absolute."""
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
    """Start a new count of evaluations at the current time."""
    motion.since, motion.spent, motion.sharpest = motion.t, motion.tally.evaluations, 0.0


def efforts_at(tau: Efforts, t: float, q: Vector, v: Vector) -> Vector:
    """The efforts on the coordinates at a state."""
    return tau if isinstance(tau, np.ndarray) else tau(t, q, v)


def new_efforts(motion: PlantMotion, tau: Efforts) -> None:
    """Set the efforts from here on; predictions from accelerations under the old ones are
    dropped."""
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
    """The slope at the current state under other efforts, if the last evaluation was there."""
    again, evaluated = motion.dynamics.again, motion.evaluated == motion.tally.evaluations
    if again is None or not evaluated or motion.first is None or callable(tau):
        return None
    a = again(tau)
    return None if a is None else np.concatenate([motion.first[: a.size], a])


def _at_once(step: Step, tau: Vector, one_by_one: Stages, tally: RunTally) -> Stages:
    """All stages in one call of `step`, with held efforts; `one_by_one` if that call refuses."""

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
    """The slope at the current state; it is stored for the next step."""
    if motion.first is None:
        x = from_rest(motion.v)
        motion.first = motion.slope(motion.t, motion.q, x, np.empty(x.size))
    return motion.first


# --------------------------------------------------------------------------- the end of a step


class StepEnd(NamedTuple):
    """The end of a step that may be accepted; `moved` if the state was projected."""

    q: Vector
    v: Vector
    rows: ScaledRows
    moved: bool


def judged(
    motion: PlantMotion, q0: Vector, x: Vector, end: float, put: float = 1.0
) -> StepEnd | SingularityError | InconsistentError:
    """The state that x = (d, v) from q0 leads to, or the error that says why it is not accepted.

    The state is projected onto the manifold if its errors exceed `put` times `PUT_BACK`.
    """
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
    near = put == 1.0 and motion.monitor.near_zero  # errors then grow with 1 / s
    if off <= put * PUT_BACK[0] and slip <= put * PUT_BACK[1] * speed and not near:
        return StepEnd(q, v, rows, False)
    try:
        q, v_back = projected_onto_manifold(plant, part.rows, q, v, end, CLOSEST)
    except (SingularityError, InconsistentError) as error:
        return error
    change = largest((v_back - v) / c)
    if not change <= jump * speed:
        return InconsistentError(
            f"{plant.name}: projecting the state onto the manifold changes its velocity by "
            f"{change:.1e} (scaled)",
            residual=change,
        )
    rows = motion.dynamics.rows(q, v_back, end)
    return StepEnd(q, v_back, rows, True) if largest(rows.error) <= allowed else _left(motion, rows)


def largest_jump(motion: PlantMotion) -> float:
    """Largest relative change of the velocity by a projection of the state."""
    jump = min(JUMPS[0] * motion.settings.rtol + JUMPS[1], MOST_JUMP)
    near = motion.monitor.of_all.value < NEAR_SINGULAR * motion.usual
    return jump * JUMPS_NEAR if near else jump


def arrive(
    motion: PlantMotion, t: float, landed: StepEnd, a: Vector, h: float, q0: Vector,
    x: Callable[[float], Vector],
) -> StepSolution:  # fmt: skip
    """Move to an accepted state, h later, with the acceleration a; update the rank monitor, and
    select other rows if need be. The step to that state is ``x(t)`` from q0."""
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
    """Raise `InconsistentError` if a motion needs too many evaluations within one tick, would need
    them at its present pace, or is faster than `FASTEST`."""
    if largest(motion.v[motion.plant.lengths[1]]) > FASTEST:
        raise too_fast(motion)
    spent = motion.tally.evaluations - motion.spent
    share = (motion.t - motion.since) / motion.settings.tick
    slow = spent > HOPELESS_EVALUATIONS and spent > HOPELESS_PACE * MOST_STEPS * share
    decayed = bool(motion.nodes) and not largest(motion.nodes[-1].a) > DECAYED * motion.sharpest
    if spent > MOST_STEPS or (slow and not decayed):
        raise too_fast(motion)


def lost(motion: PlantMotion) -> SingularityError:
    """The error of a motion at a singular configuration, or too close to one."""
    s = motion.monitor.of_all.value
    return SingularityError(
        f"{motion.plant.name}: the motion is at a singular configuration, or so close to one that "
        f"its branch is not determined (smallest nonzero singular value of the rows {s:.1e}, "
        f"usually {motion.usual:.1e})",
        condition=motion.usual / s if s > 0.0 else float("inf"),
    )


def _left(motion: PlantMotion, rows: ScaledRows) -> InconsistentError:
    plant, part = motion.plant, motion.part
    off = np.abs(rows.error)
    worst = int(np.argmax(off))
    if part.tolerance > 0.0 and worst in part.left_out:
        return InconsistentError(
            f"{plant.name}: {plant.row_names[worst]} was left out as nearly dependent on other "
            f"rows, but its error is {off[worst]:.1e} now, more than the tolerance of the "
            f"geometry, {part.tolerance:g}: it does constrain the motion and may not be left out",
            residual=float(off[worst]),
        )
    return InconsistentError(
        f"{plant.name}: the motion leaves its constraints: the error of {plant.row_names[worst]} "
        f"is {off[worst]:.1e} (scaled), the largest velocity error {largest(rows.rate):.1e}",
        residual=float(off[worst]),
    )


def too_fast(motion: PlantMotion) -> InconsistentError:
    """The error of a motion that needs too many steps, with possible causes."""
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
            f"{motion.settings.target} contradict {_opposing_constraint(motion, tau)}?"
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


def _opposing_constraint(motion: PlantMotion, tau: Vector) -> str:
    """The constraint that bears most of the efforts; if there is none, a floating base."""
    plant, found = motion.plant, "what its motors can give"
    if plant.model.joints[1].shortname() == "JointModelFreeFlyer":
        found = f"the base {plant.model.names[1]!r}, which floats, and which no motor drives"
    G = scaled_rows_at(plant, motion.q, motion.v, motion.t).jacobian
    if not G.size or not np.isfinite(G).all():
        return found
    sizes = np.abs(least_squares(G.T, plant.column_scale * tau))  # N m, or N, for all rows
    name = constraint_of(plant.row_names[int(np.argmax(sizes))])
    return f"constraint {name!r}, which takes most of these efforts; or {found}"
