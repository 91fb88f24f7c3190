"""The estimator of the closed state from measured joints, at the rate of a control loop.

It remembers the last state, and follows the readings from there (branch_continuation.py). Its
memory belongs to one loop; each loop needs its own estimator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Vector,
    as_given,
    finite,
    instant,
    known_name,
    listing,
    number,
    quiet,
    read_only,
    stored,
    vector,
)
from holoctl.base.errors import (
    BranchError,
    HoloctlError,
    InconsistentError,
    InputError,
)
from holoctl.base.linalg import largest
from holoctl.base.tolerances import (
    CLOSED,
    FACTORED_TICK,
    FAR_TICK,
    FIRST_GAP,
    FIRST_TICK,
    GAIN_LIMIT,
    JUMPS_BY,
    JUMPS_FROM,
    LEFT_OPEN,
    SENSORS_AGREE,
)
from holoctl.closing.assembly import assemble
from holoctl.closing.manifold_projection import projected_onto_manifold
from holoctl.closing.rank import scaled_jacobian
from holoctl.estimation.branch_continuation import (
    FollowedState,
    Tally,
    following,
    placed_at,
    velocity_at,
)
from holoctl.estimation.branch_guards import BranchMemory, dead_point_ahead, dead_point_passed
from holoctl.estimation.estimator_errors import (
    FACTORED_START,
    LOST,
    dead_point_since,
    not_followed,
    rows_open,
    sensors_disagree,
    too_close,
    went_back,
)
from holoctl.estimation.estimator_system import EstimatorSystem, estimator_system_of
from holoctl.estimation.measurement_model import MeasurementModel, measurement_model
from holoctl.estimation.observability import (
    MEASURED,
    Observability,
    checked_observability,
    first_borders,
    moved_by,
    noise_gain,
    observability,
)
from holoctl.mechanism.checks import check_configuration, check_mechanism, check_out
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_partition, partition
from holoctl.projector.repartition import better_rows, independence, repartitioned
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.rows.tick.user_rows import check_ticks

__all__ = ["ClosedStateEstimator", "EstimatorReport", "check_estimator", "first_state"]


@dataclass(frozen=True)
class EstimatorReport:
    """The computational work and the accuracy of a call of `ClosedStateEstimator`.

    Attributes
    ----------
    substeps : int
        The number of substeps of the path; 0 if none was accepted.
    newton_steps : int
        The number of Newton corrections of all substeps.
    factorisations : int
        The number of factorisations of the square system; it is bounded in a call.
    contraction : float
        The largest ratio of a correction to the previous one.
    gain : float
        Standard deviation of the worst coordinate (scaled) divided by that of the sensors.
    closure : float
        The largest remaining error of a row, scaled.
    disagreement : dict of str to float
        If there are more sensors than motions: each reading less the value that the estimated
        state predicts, rad or m.
    reached : float
        The fraction of the path that was followed; 1 after success.

    See Also
    --------
    ClosedStateEstimator : returns it, as ``last``.
    results.TaskReport : holds it, for a law of tasks.

    Examples
    --------
    >>> import holoctl as hc
    >>> sensors = hc.ClosedStateEstimator(hc.load(hc.robot_file("five_bar")))
    >>> q, v = sensors.state([2.2, 0.94], [0.0, 0.0])
    >>> sensors.last.reached, sensors.last.closure < 1e-9
    (1.0, True)
    """

    substeps: int
    newton_steps: int
    factorisations: int
    contraction: float
    gain: float
    closure: float
    disagreement: dict[str, float]
    reached: float


class ClosedStateEstimator:
    """The closed state on the branch of `start` from measured joints, tick by tick.

    The state follows the measurements from the last state by a continuation, which accepts a step
    only if it proves that the branch is the same, in bounded time. If the branch cannot be proved
    an error is raised and the last state is kept; the state of another branch is never returned.

    Passive joints follow from the constraints, so the error of the state is that of the sensors
    times `noise_gain`. Bodies that spin between two joints, which no sensor observes, are held
    still.

    An estimator remembers its last state: use one for each loop. `fresh` makes another one.

    Parameters
    ----------
    mech : Mechanism
    measured : iterable of str, optional
        Joints, coordinates of joints, and closures that are joints, ``"name"`` or ``"name[i]"``.
        Default: the motors. A floating base is measured whole: the 7 numbers of its joint and its
        twist, before all others if it is not named.
    weights : (m,) array_like or mapping of str to float, optional
        For more sensors than motions: the state minimises ``sum w_i (x_i - s_i(q))^2``, w_i > 0,
        1/rad^2 or 1/m^2, such as one over the variance. Default: the same for all, lengths over
        the size of the mechanism. The weighting is linearised at an earlier configuration: its
        error is some per cent of the disagreement of the sensors.
    partition : Partition, optional
        Its rows are kept; other rows are chosen if they become ill-conditioned. Default: chosen at
        `start`.
    start : (nq,) array_like, optional
        The closed configuration of the mechanism, on the intended branch. The first readings are
        checked as those after `reset`. Default: assembled from ``mech.reference``.

    Attributes
    ----------
    mech : Mechanism
    measured : tuple of str
        The order of ``q_measured``.
    partition : Partition
    unseen : tuple of str
        The idle motions that the sensors do not observe, by the coordinates that they move.

    Raises
    ------
    InputError
        For names that are no joints, for wrong shapes, and if some motion that is not idle is not
        observed.
    InconsistentError
        For a start that is not closed.
    BranchError
        For a start at a dead point, or so close to one that noise would be amplified by more than
        a factor of 100.
    SingularityError
        For a start that is a singular configuration.
    AssemblyError
        If no start is given and the reference cannot be assembled.

    See Also
    --------
    MomentumObserver : external efforts from the same measurements.
    RateFilter : rates for drives that measure positions only.
    results.EstimatorReport : the work and the accuracy of a call.
    corrected : projects a whole measured state onto the constraints.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> sensors = hc.ClosedStateEstimator(mech)
    >>> sensors.measured
    ('motor_left', 'motor_right')
    >>> q, v = sensors.state([2.2, 0.94], [0.1, 0.2])
    >>> v.round(3).tolist()
    [0.1, 0.03, 0.2, -0.151]
    """

    mech: Mechanism
    measured: tuple[str, ...]
    partition: Partition
    unseen: tuple[str, ...]
    _readings: MeasurementModel
    _scaled_weights: Vector
    _start: Vector  # the configuration of the last `reset`, or of the start
    _system: EstimatorSystem
    _memory: BranchMemory
    _disagreement: tuple[float, ...]  # of redundant sensors, in the last call

    @quiet
    def __init__(
        self,
        mech: Mechanism,
        measured: Iterable[str] | None = None,
        weights: Any = None,
        partition: Partition | None = None,
        start: Any = None,
    ) -> None:
        check_mechanism(mech)
        check_ticks(mech)
        sensors = measurement_model(mech, measured)
        begin = assemble(mech)[0] if start is None else check_configuration(mech, start, "start")
        self.mech, self.measured = mech, sensors.names
        self._readings, given = sensors, _weights_given(sensors, weights)
        scaled = given * sensors.unit**2
        self._scaled_weights = read_only(scaled / scaled.max())
        self._per_unit, self._given_weights, self._busy = 1.0 / sensors.unit, given, False
        self._alike = bool((sensors.unit == 1.0).all())
        self._whole = sensors.whole
        self._begin(begin, partition)
        self._first = self.partition, self.place.q
        self._start, self._start_time = read_only(self.q), 0.0

    def __repr__(self) -> str:
        return (
            f"<ClosedStateEstimator of {self.mech.name}: {listing(self.measured, 6)}; "
            f"{'lost' if self._latched else 'on its branch'}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.mech, self.measured, self._given_weights, *self._first
        start = self._start, self._start_time
        return _copy_of, (given, start, (self.place.q, self.place.t), self._latched)

    def fresh(self) -> ClosedStateEstimator:
        """Another estimator of the same sensors, at the configuration of the last `reset` of this
        one, or at its start."""
        given = self.mech, self.measured, self._given_weights, *self._first
        start = self._start, self._start_time
        return _copy_of(given, start, start, "")

    # ------------------------------------------------------------------------------- in a loop

    @quiet
    def state(
        self,
        q_measured: Any,
        v_measured: Any = None,
        t: float = 0.0,
        *,
        out: tuple[Vector, Vector] | None = None,
    ) -> tuple[Vector, Vector]:
        """The closed state in which the sensors read these values.

        To be called at every tick: between two calls the sensors are assumed to move on a straight
        line, and a dead point that was passed while ticks were missing is not detected.

        After an error the last state is kept, and the next call continues from it. After a
        `BranchError` at a dead point, for noise, or because `t` decreased, the branch is unproven,
        and every call raises that error until `reset`.

        Parameters
        ----------
        q_measured : (p,) array_like
            Positions in the order of `measured`, rad or m; angles of continuous joints, and of
            cut revolute joints, may include any number of turns.
        v_measured : (m,) array_like, optional
            Rates, rad/s or m/s. Default: v is zero.
        t : float, optional
            Time, s, for constraints that depend on it.
        out : (array, array), optional
            Arrays for q (nq,) and v (nv,); unchanged if an error is raised.

        Returns
        -------
        q, v : (nq,) and (nv,) arrays
            `out`, or new arrays.

        Raises
        ------
        InputError
            For wrong shapes, or numbers that are not finite.
        BranchError
            If the sensors moved too far for one call; if the mechanism may be at a dead point
            within three more calls like this one; if by its rates it may have passed a dead point
            before a first reading; if noise would be amplified by more than a factor of 100; if
            `t` is earlier than that of the last state by more than 0.01 s.
        AssemblyError
            If no closed state on this branch has these readings.
        InconsistentError
            If there are more sensors than motions, and they contradict each other by more than
            0.05 rad.
        """
        if out is not None:
            check_out(out, self.mech)
        q, v = self.state_in_place(q_measured, v_measured, t)
        if out is None:
            return q.copy(), v
        return stored("out[0]", out[0], q), stored("out[1]", out[1], v)

    def state_in_place(self, q_measured: Any, v_measured: Any, t: float) -> tuple[Vector, Vector]:
        """`state`, for callers that do not write to the arrays that it returns."""
        x, rates, t = self._checked(q_measured, v_measured, t)
        last = self._memory.place.t
        if not self._latched and t < last - FIRST_TICK:
            raise self._noted(went_back(self.mech, last, t))
        place = self._followed(x, rates, t, FACTORED_TICK)
        return place.q, velocity_at(self._system, place, rates)

    @property
    def place(self) -> FollowedState:
        """The last state, with the quantities that its continuation needs."""
        return self._memory.place

    @property
    def system(self) -> EstimatorSystem:
        """The system that evaluates the last state; another one after a change of the rows."""
        return self._system

    @property
    def readings(self) -> MeasurementModel:
        """The measurement model: the joints of the names, and their positions in q."""
        return self._readings

    @property
    def scaled_weights(self) -> Vector:
        """The scaled weights of the sensors (m,); the largest is 1."""
        return self._scaled_weights

    @property
    def start(self) -> Vector:
        """The configuration (nq,) of the last `reset`, or of the start; read-only."""
        return self._start

    def with_rows(self, part: Partition) -> ClosedStateEstimator:
        """Another estimator of the same sensors, weights and start, with the rows of `part`."""
        given = self.mech, self.measured, self._given_weights
        return ClosedStateEstimator(*given, part, self._start)

    def of_other(self, mech: Mechanism) -> ClosedStateEstimator:
        """Another estimator of the same sensors, weights and start, of a mechanism that differs in
        masses or gravity alone."""
        return ClosedStateEstimator(
            mech, self.measured, self._given_weights, self.partition, self._start
        )

    def handed_over(self) -> BranchMemory | None:
        """A copy of the memory, for another loop that continues; None if the branch is lost."""
        return None if self._latched else replace(self._memory)

    def take_over(self, memory: BranchMemory) -> None:
        """Continue from the memory of another loop of the same sensors and rows."""
        self._memory, self._latched = replace(memory), ""

    @property
    def q(self) -> Vector:
        """A copy of the last configuration (nq,)."""
        return self.place.q.copy()

    @quiet
    def resynchronise(self, q_measured: Any, t: float = 0.0) -> None:
        """Follow the sensors to these readings, however far, with at most 25 times the work of a
        tick.

        For start-up: from a known posture to that of the robot, along a straight line of the
        sensors.

        Parameters
        ----------
        q_measured, t
            As in `state`.

        Raises
        ------
        InputError, BranchError, AssemblyError, InconsistentError
            As `state`.
        """
        x, _, t = self._checked(q_measured, None, t)
        self._followed(x, None, t, FACTORED_START)
        self._memory.forget()
        self._memory.size = 0.0

    @quiet
    def reset(self, q: Any, t: float = 0.0) -> None:
        """Set the configuration of the mechanism: q becomes the last state.

        The mechanism may pass a dead point between `reset` and the first readings. So each of the
        first two readings with rates is extrapolated backwards along a straight line, with its
        rates held constant, and refused if a dead point lies within 2 (t - t of `reset`) before
        it, at least 0.01 s and at most 0.5 s; within 0.05 s if `t` does not give the time between.
        This assumes what no sensor can measure: that the mechanism was at q at the time of `reset`
        (without `t`: at most 0.05 s before the first reading), and that its rates have not fallen
        by more than half since. If the rates lead farther than 0.5 (scaled) in that time, or in
        0.05 s, the velocity must hardly change on the way. Readings without rates prove nothing.

        Parameters
        ----------
        q : (nq,) array_like
            A closed configuration; it is projected onto the manifold.
        t : float, optional
            Time, s.

        Raises
        ------
        InputError
            For a wrong shape, or numbers that are not finite.
        InconsistentError
            For a configuration that is not closed.
        BranchError
            For a dead point, or so close to one that noise would be amplified by more than 100.
        SingularityError
            For a singular configuration.
        """
        self._check_free()
        q, t = check_configuration(self.mech, q), instant(t)
        self._begin(q, _better_rows(self.mech, self.partition, q, t) or self.partition, t)
        self._start, self._start_time = read_only(self.q), t

    @property
    def last(self) -> EstimatorReport:
        """The report on the last call whose readings were followed, also if that failed."""
        tally, place = self._tally, self.place
        disagreement = dict(zip(self._readings.labels, self._disagreement, strict=False))
        return EstimatorReport(
            tally.substeps, tally.newton, tally.factored, tally.contraction,
            self._system.gain(place.gamma, place.borders), tally.closure, disagreement,
            tally.reached,
        )  # fmt: skip

    @quiet
    def noise_gain(self, q: Any, t: float = 0.0) -> float:
        """The factor by which noise of the sensors is amplified at a closed configuration.

        The standard deviation of the least accurate coordinate divided by that of the sensors,
        which are assumed independent and equally accurate, lengths over the size of the mechanism.

        Parameters
        ----------
        q : (nq,) array_like
            A closed configuration.
        t : float, optional
            Time, s.

        Returns
        -------
        float
            Infinite at a dead point.

        Raises
        ------
        InputError
            For a wrong shape, or numbers that are not finite.
        InconsistentError
            For a configuration that is not closed.
        """
        mech = self.mech
        q, t = _closed(mech, check_configuration(mech, q), t)
        here = observability(mech, self.partition, self._readings, q, t)
        if here.observed.shape[1] < self.place.gamma.shape[1]:
            return float("inf")
        return noise_gain(here, self._scaled_weights)

    # ------------------------------------------------------------------------------- internals

    def _begin(self, q: Vector, part: Partition | None, t: float = 0.0) -> None:
        """Start from a closed configuration without history; nothing changes if that fails."""
        mech, sensors = self.mech, self._readings
        weights = self._scaled_weights
        part, here, system, place = first_state(mech, sensors, weights, part, q, t, MEASURED)
        self.partition, self.unseen = part, moved_by(mech, here.unobserved)
        self._system, self._follow = system, following(mech, system)
        self._memory = BranchMemory(place, None, 0, np.zeros(sensors.columns.size), 0.0, 0)
        self._latched, self._tally, self._disagreement = "", Tally(0, reached=1.0), ()

    def _checked(
        self, q_measured: Any, v_measured: Any, t: Any
    ) -> tuple[Vector, Vector | None, float]:
        try:
            sensors, t = self._readings, instant(t)
            x = as_given("q_measured", q_measured, sensors.numbers)
            m = sensors.columns.size
            rates = None if v_measured is None else as_given("v_measured", v_measured, m)
            if not finite(x) or (rates is not None and not finite(rates)):
                vector("q_measured", x, sensors.numbers, "positions of the sensors")
                if rates is not None:
                    vector("v_measured", rates, m, "rates of the sensors")
                raise InputError("q_measured or v_measured is out of range")
            return sensors.checked("q_measured", x) if self._whole else x, rates, t
        except InputError:
            self._memory.refuse()  # the mechanism moved on all the same
            raise

    def _followed(self, x: Vector, rates: Vector | None, t: float, most: int) -> FollowedState:
        """The state that the readings lead to; it is remembered unless an error is raised."""
        if self._latched:
            raise BranchError(self._latched, why="lost")
        self._check_free()
        self._busy = True
        try:
            return self._one_call(x, rates, t, most)
        finally:
            self._busy = False

    def _check_free(self) -> None:
        if self._busy:
            raise InputError(
                "called while another call was under way, from another thread or a signal "
                "handler: a ClosedStateEstimator belongs to one loop; `fresh` makes another one"
            )

    def _one_call(self, x: Vector, rates: Vector | None, t: float, most: int) -> FollowedState:
        """`_followed`, with other rows if it fails because of the kept ones."""
        error = self._tried(x, rates, t, most)
        while error is not None and self._with_other_rows():
            error = self._tried(x, rates, t, most)
        if error is None:
            return self._memory.place
        self._memory.refuse(self._moved)
        raise self._noted(error)

    def _tried(self, x: Vector, rates: Vector | None, t: float, most: int) -> HoloctlError | None:
        """Follow the readings and remember the state; the error if they cannot be followed."""
        mech, system, tally = self.mech, self._system, Tally(most)
        self._tally, self._disagreement, self._moved = tally, (), np.inf
        memory = self._memory
        here = memory.place
        if t - here.t > FIRST_GAP:
            memory.forget()
        way = system.difference(here.q, x, here.cut)
        size = largest(way if self._alike else way * self._per_unit)
        if here.drift is not None:
            size = max(size, largest(here.drift * (t - here.t) / mech.column_scale))
        there, back = self._follow(here, x, way, t, tally), False
        dead = there is None
        if there is not None:
            dead, back = dead_point_ahead(memory, there, way, self._per_unit)
        if there is None or (dead and size <= FAR_TICK):
            # sensors slow down near a dead point: a step much longer than before may be a glitch
            jump, self._moved = size > max(JUMPS_BY * memory.size, JUMPS_FROM), size
            return not_followed(mech, self.measured, here, there, tally, t, size, jump)
        if system.redundant and (error := self._redundant_rows_error()):
            return rows_open(mech, error)
        if system.redundant:
            self._check_agreement(there, x)
        doubtful = memory.read < 2 or size > JUMPS_FROM  # else the history proves the branch
        if (
            doubtful
            and rates is not None
            and dead_point_passed(mech, system, memory, there, rates, size)
        ):
            return dead_point_since(mech, self.measured)
        memory.follow(there, way, size, back, rates)
        return None

    def _redundant_rows_error(self) -> float:
        """The scaled error of the rows left out as redundant; 0 if it is within tolerance."""
        system = self._system
        error = system.open(slice(system.rank, None))
        self._tally.closure = max(self._tally.closure, error)
        return 0.0 if error <= max(LEFT_OPEN, self.partition.tolerance) else error

    def _check_agreement(self, there: FollowedState, x: Vector) -> None:
        """Raise `InconsistentError` for sensors that contradict each other."""
        sensors = self._readings
        if sensors.columns.size == there.gamma.shape[1]:
            return
        error = self._system.difference(there.q, x, there.cut)
        self._disagreement = tuple(error.tolist())
        if not largest(error / sensors.unit) <= SENSORS_AGREE:
            self._memory.refuse()
            raise sensors_disagree(self.mech, sensors, error)

    def _with_other_rows(self) -> bool:
        """Take other rows if they are clearly better at the last state; whether that was done.

        If the kept rows become dependent, the determinant vanishes without a dead point.
        """
        mech, here, before = self.mech, self.place, self._memory.before
        part = _better_rows(mech, self.partition, here.q, here.t)
        if part is None:
            return False
        try:
            there = observability(mech, part, self._readings, here.q, here.t)
            if there.observed.shape[1] != here.gamma.shape[1]:
                return False
            system, place = _prepared(
                mech, self._readings, self._scaled_weights, part, there, here.q, here.t
            )
        except HoloctlError:
            return False
        if before is not None:  # the determinant of the earlier state with the new rows
            system.evaluate(before.q, before.t)
            det = system.factor(place.borders)
            before = before._replace(det=det, determinant=det / place.det)
            place = placed_at(system, place.q, place.t, place.borders)
        self._memory.place, self._memory.before = place, before
        self._system, self._follow, self.partition = system, following(mech, system), part
        return True

    def _noted(self, error: HoloctlError) -> HoloctlError:
        """The error itself; after those of `LOST` every call is refused until `reset`."""
        if isinstance(error, BranchError) and error.why in LOST:
            self._latched = str(error)
        return error


def first_state(
    mech: Mechanism,
    sensors: MeasurementModel,
    weights: Vector,
    part: Partition | None,
    q: Vector,
    t: float,
    words: tuple[str, str],
) -> tuple[Partition, Observability, EstimatorSystem, FollowedState]:
    """The first state of a continuation by the positions of some joints, from a closed q.

    Parameters
    ----------
    mech, sensors
    weights : (m,) array
        Scaled weights of the joints.
    part : Partition or None
        Its rows are kept. None: chosen at q.
    q : (nq,) array
    t : float
        Time, s.
    words : (str, str)
        How messages name the joints, such as `observability.MEASURED`.

    Returns
    -------
    part : Partition
    here : Observability
    system : EstimatorSystem
    place : FollowedState

    Raises
    ------
    InputError, InconsistentError, BranchError, SingularityError
        As `ClosedStateEstimator`.
    """
    q, t = _closed(mech, q, t)
    part = partition(mech, q, t=t) if part is None else part
    check_partition(mech, part)
    here = checked_observability(mech, part, sensors, q, t, words)
    system, place = _prepared(mech, sensors, weights, part, here, q, t)
    gain = system.gain(place.gamma, place.borders)
    if not gain <= GAIN_LIMIT:
        raise too_close(mech, sensors.names, gain)
    return part, here, system, place


def _prepared(
    mech: Mechanism,
    sensors: MeasurementModel,
    weights: Vector,
    part: Partition,
    here: Observability,
    q: Vector,
    t: float,
) -> tuple[EstimatorSystem, FollowedState]:
    b, i = here.observed.shape[1], here.unobserved.shape[1]
    system = estimator_system_of(mech, part, sensors, weights, b, i)
    q, _ = projected_onto_manifold(mech, part.rows, q, np.zeros(mech.nv), t)
    return system, placed_at(system, q, t, first_borders(here, weights, system.known))


def _copy_of(
    given: tuple[Any, ...], start: tuple[Vector, float], here: tuple[Vector, float], latched: str
) -> ClosedStateEstimator:
    """An estimator with the arguments, the start (q, t) and the last state (q, t) of another one;
    lost if `latched` has the message of its error."""
    made = ClosedStateEstimator(*given)
    if not latched:
        made.reset(*here)
    made._start, made._start_time = read_only(start[0]), start[1]
    made._latched = latched
    return made


def _better_rows(mech: Mechanism, part: Partition, q: Vector, t: float) -> Partition | None:
    """A partition whose rows are clearly better conditioned at a configuration, or None.

    The condition of the kept rows is not evaluated first: the vanishing determinant indicates it
    already, and the rank does not change.
    """
    if part.tolerance > 0.0:  # rounded geometry: rows are chosen from several configurations
        found = repartitioned(mech, part, q, np.zeros(mech.nv), t)
        return None if np.array_equal(found.rows, part.rows) else found
    G = scaled_rows_at(mech, q, np.zeros(mech.nv), t).jacobian
    if part.rank == G.shape[0] or not np.isfinite(G).all():
        return None
    return better_rows(mech, part, G, independence(G, part).of_kept)


def _closed(mech: Mechanism, q: Vector, t: float) -> tuple[Vector, float]:
    """q and t, checked: q must be closed."""
    t = instant(t)
    _, error = scaled_jacobian(mech, q, t)
    if not largest(error) <= max(CLOSED, mech.tolerance):
        raise InconsistentError(
            f"{mech.name}: this configuration is not closed (largest scaled error "
            f"{largest(error):.1e}), so it is on no branch; call hc.assemble(mech, q) first",
            residual=largest(error),
        )
    return q, t


def _weights_given(sensors: MeasurementModel, given: Any) -> Vector:
    """Weights of the sensors (m,), 1/rad^2 or 1/m^2."""
    u, m = sensors.unit, sensors.columns.size
    w: Vector = 1.0 / (u * u)
    if isinstance(given, Mapping):
        for name, x in given.items():
            known_name(name, sensors.labels, "sensor", "weights")
            w[sensors.labels.index(name)] = number(f"weights[{name!r}]", x)
    elif given is not None:
        w = vector("weights", given, m, "of the sensors")
    if not (w > 0.0).all():
        raise InputError(f"weights must be above zero; got {w}")
    return read_only(w)


def check_estimator(mech: Mechanism, estimator: Any, owner: str) -> None:
    """Check the estimator that was given to a controller or an observer.

    Parameters
    ----------
    mech : Mechanism
        The mechanism of the owner.
    estimator : ClosedStateEstimator or None
        None: the owner makes its own.
    owner : str
        The object that the estimator was given to, for the message, such as ``"controller"``.

    Raises
    ------
    InputError
        If it is no `ClosedStateEstimator`, or one of another mechanism.
    """
    if estimator is None:
        return
    if not isinstance(estimator, ClosedStateEstimator):
        raise InputError(
            f"estimator must be a ClosedStateEstimator; got {type(estimator).__name__}: "
            "hc.ClosedStateEstimator(mech, measured=[...]) makes one"
        )
    if estimator.mech is not mech:
        raise InputError(
            f"estimator is that of another mechanism object, {estimator.mech.name}; make it from "
            f"the same object as the {owner}, {mech.name}"
        )
