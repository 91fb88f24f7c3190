"""Motions that tell dynamic parameters apart: `excitation`."""

from __future__ import annotations

import csv
import logging
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Array,
    Vector,
    file_path,
    flag,
    freeze,
    positive,
    quiet,
    whole,
)
from holoctl.base.errors import InputError, LimitError
from holoctl.base.progress import progress_bar
from holoctl.base.single_threaded_blas import one_thread
from holoctl.design.paths.closed_path import closed_curve, closed_path
from holoctl.design.paths.inputs import CheckedPath, start_of
from holoctl.design.paths.trajectory import Trajectory
from holoctl.identification.ascent import Candidate, Search, improved
from holoctl.identification.base_parameters import (
    BaseParameters,
    base_parameters,
    check_parameters,
)
from holoctl.identification.excited_states import (
    slack_names,
)
from holoctl.identification.parameters import Parameters
from holoctl.identification.random_motions import (
    best_random,
    search_from,
    smallest_and_condition,
    states_from,
    tightened,
)
from holoctl.mechanism.limits import MODEL, Limits

__all__ = ["Excitation", "excitation"]

log = logging.getLogger(__name__)

CHECKED = 40
"""Samples in a period of the highest harmonic at which limits are checked."""

FIRST_PART = 0.6
"""The share of the steps before the number of samples is doubled."""

APART, MOST = 0.1, 10_000
"""Limits are checked at places not farther apart than this (scaled), and at most so many."""

SHORTENED, NEARLY = 12, 2e-3
"""A motion that exceeds limits between its samples is made smaller in at most this number of
evaluations, to this share of it."""

NOT_SEEN = 1e8
"""A motion with a larger condition number does not tell some parameters apart, for rounding."""

_WEAK = (
    "%s: the motion hardly tells parameters apart (condition number %.1e), worst %s; more "
    "harmonics or iterations, a longer period, wider limits, or known parameters may help"
)

LEAST_EXCURSION = 1e-3
"""A motion that moves all motors by less than this, scaled, is none."""


@dataclass(frozen=True, eq=False, repr=False)
class Excitation:
    """A periodic motion that tells parameters apart, the result of `excitation`.

    Attributes
    ----------
    model : Parameters
    base : BaseParameters
        The b combinations that it is meant for; `base.unseen` are parameters that no motion
        excites.
    trajectory : Trajectory
        One period, at rest at both ends.
    t : (n,) array
        Times over one period, s.
    positions : (n, nu) array
        Of the motors, rad or m; (n, nq) configurations if a motor has no single position.
    names : tuple of p str
        The driven coordinates of the series.
    coefficients : (2 h, p) array
        a_1 ... a_h, b_1 ... b_h of each: ``x(0) + sum a_k sin(k w t) + b_k (cos(k w t) - 1)``.
    period : float
        s.
    information : float
        ``log det M``, M the mean over time of W'W of the base parameters, see `excitation`.
    smallest_singular_value : float
        Of the columns of W of which M is made: how much the combination that is seen worst changes
        the efforts, for a change by its size, over the noise.
    condition : float
        The ratio of the largest singular value to the smallest.
    least_seen : str
        The base parameter with the largest variance.
    of_random : tuple of float
        The smallest singular values of the random motions among which the search started.
    margin : dict of str to float
        The smallest distance from each limit, as a share of the range, beyond the margin that was
        asked for: motors by name (efforts), ``"name.position"``, ``"name.velocity"``,
        ``"name.acceleration"`` of joints; and from singularities.
    limits : Limits
        Those that were kept, less the margin.
    seed : int

    See Also
    --------
    excitation : returns it.

    Examples
    --------
    >>> import holoctl as hc
    >>> model = hc.Parameters(hc.load(hc.robot_file("four_bar")))
    >>> plan = hc.excitation(model, harmonics=2, starts=1, iterations=1)
    >>> plan.base.rank, plan.trajectory.duration, min(plan.margin.values()) >= 0.0
    (8, 5.0, True)
    """

    model: Parameters
    base: BaseParameters
    trajectory: Trajectory
    names: tuple[str, ...]
    coefficients: Array
    period: float
    information: float
    smallest_singular_value: float
    condition: float
    least_seen: str
    of_random: tuple[float, ...]
    margin: dict[str, float]
    limits: Limits
    seed: int
    t: Vector = field(init=False)
    positions: Array = field(init=False)

    def __post_init__(self) -> None:
        t = self.trajectory.t
        positions = np.array([self.trajectory.reference(x)[0] for x in t.tolist()])
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "positions", positions)
        freeze(self)

    def __repr__(self) -> str:
        return (
            f"<Excitation of {self.model.mech.name!r}: {self.period:g} s, "
            f"{len(self.coefficients) // 2} harmonics, {self.base.rank} base parameters, smallest "
            f"singular value {self.smallest_singular_value:.3g}, condition {self.condition:.3g}>"
        )

    def __str__(self) -> str:
        name, least = min(self.margin.items(), key=lambda x: x[1])
        lines = [repr(self)[1:-1], f"  nearest limit: {name} ({100.0 * least:.2g} % of the range)"]
        lines.append(f"  seen worst: {self.least_seen}")
        if self.base.unseen:
            lines.append("  no motion excites: " + ", ".join(self.base.unseen))
        return "\n".join(lines)

    def table(self, frequency: float = 1000.0) -> tuple[list[str], list[list[float]]]:
        """The motion as a table: times, positions, rates and accelerations of the motors.

        Parameters
        ----------
        frequency : float, optional
            Rows per second, Hz.

        Returns
        -------
        header : list of str
            ``t``, the motors, ``d`` and ``dd`` of each.
        rows : list of lists of float
            Those of one period; the next one follows without a jump.
        """
        dt = 1.0 / positive("frequency", frequency, "Hz")
        mech, names = self.model.mech, list(self.model.mech.actuator_names)
        first = names if self.positions.shape[1] == mech.nu else [
            f"q[{i}]" for i in range(mech.nq)
        ]  # fmt: skip
        header = ["t", *first, *(f"d {x}" for x in names), *(f"dd {x}" for x in names)]
        times = np.arange(int(np.ceil(self.period / dt - 1e-9))) * dt
        of = self.trajectory.reference
        return header, [[t, *np.concatenate(of(t)).tolist()] for t in times.tolist()]

    def save(self, file: Any, frequency: float = 1000.0) -> None:
        """Write `table` as CSV.

        Parameters
        ----------
        file : str or Path
        frequency : float, optional
            Rows per second, Hz.

        Raises
        ------
        InputError
            If it cannot be written.
        """
        path = file_path("file", file)
        header, rows = self.table(frequency)
        try:
            with path.open("w", newline="", encoding="utf-8") as to:
                writer = csv.writer(to, lineterminator="\n")
                writer.writerow(header)
                writer.writerows(rows)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror or error}") from None


@quiet
def excitation(
    model: Parameters,
    limits: Any = MODEL,
    period: float = 5.0,
    harmonics: int = 5,
    seed: int = 0,
    *,
    start: Any = None,
    margin: float = 0.05,
    noise: Any = None,
    starts: int = 16,
    iterations: int = 30,
    progress: bool = False,
) -> Excitation:
    """A periodic motion within limits that tells parameters apart as well as possible.

    Each motor follows a Fourier series that starts and ends at rest at `start`, without
    acceleration, so that periods follow each other, or rest, without a jump. The coefficients
    maximise ``log det M``,

        M = mean over a period of W' C^-1 W

    with the columns W of the base parameters, scaled by the sizes that the values in the mechanism
    suggest, and the covariance C of the measured efforts: the volume of the confidence ellipsoid is
    then the smallest.

    Parameters
    ----------
    model : Parameters
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits,
        which is refused. Of efforts, for the values in the mechanism, and of positions, velocities
        and accelerations of any joint, also of passive and cut joints. They hold between samples
        too.
    period : float, optional
        s.
    harmonics : int, optional
        h, at least 2: rest without acceleration takes up one sine and one cosine.
    seed : int, optional
        Of the random motions from which the search starts.
    start : (nq,) array_like, optional
        Where the motion starts, on the desired branch. Default: assembled from ``mech.reference``.
    margin : float, optional
        Share of the limits that is left to a controller, from 0 to below 1.
    noise : (nu,) array_like, optional
        Standard deviations of the measured efforts, N m or N. Default: in the ratio of the limits
        of efforts; M is then in shares of these. Motors without a limit: the mean of the others, 1
        if none has one.
    starts : int, optional
        The number of random motions; the search continues from the best.
    iterations : int, optional
        The largest number of steps of the search. It is no time, so the result is the same on any
        machine.
    progress : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    Excitation

    Raises
    ------
    InputError
        For arguments of a wrong type or size, limits that limit nothing, a model without parameters
        that any motion excites, and a period too short for the limits.
    LimitError
        If the start is beyond a limit, or limits leave no motion around it.
    SingularityError
        At a singular start.
    NotActuatedError
        For a mechanism with motions that no motor drives.
    AssemblyError
        If the start does not close.

    See Also
    --------
    base_parameters : what can be told apart at all.
    regression : the equations of a measured motion.
    retime : the fastest motion along a path.

    Notes
    -----
    Along the motion the smallest singular values of the constraints and of gamma' B are at least a
    fifth of those at the start: it stays away from singularities, and on the branch. Columns depend
    on the sizes of parameters, ``log det M`` only by a constant.

    References
    ----------
    J. Swevers et al., "Optimal robot excitation and identification", IEEE Transactions on Robotics
    and Automation, 1997. K. Park, "Fourier-based optimal excitation trajectories for the dynamic
    identification of robots", Robotica, 2006 (rest at both ends).

    Examples
    --------
    >>> import holoctl as hc
    >>> model = hc.Parameters(hc.load(hc.robot_file("four_bar")))
    >>> plan = hc.excitation(model, harmonics=2, starts=1, iterations=1)
    >>> plan.base.rank, plan.trajectory.duration, min(plan.margin.values()) >= 0.0
    (8, 5.0, True)
    """
    check_parameters(model)
    period, seed = positive("period", period, "s"), whole("seed", seed, 0)
    harmonics = whole("harmonics", harmonics, 1)
    if harmonics < 2:
        raise InputError(
            "harmonics must be at least 2: a start at rest without acceleration takes up one sine "
            f"and one cosine of each motor; got {harmonics}"
        )
    starts, iterations = whole("starts", starts, 1), whole("iterations", iterations, 0)
    bound = tightened(model, limits, margin)
    begin = start_of(model.mech, start, None)
    show = flag("progress", progress)
    states, first = states_from(model, begin, bound, noise)
    with one_thread(), progress_bar(starts + iterations, "excitation", "step", show=show) as bar:
        base = base_parameters(model, begin.q)
        if not base.rank:
            raise InputError(
                f"{model.mech.name}: no motion excites any of the parameters of the model"
            )
        search = search_from(states, first, base, period, harmonics)
        search, best, of_random = best_random(search, base, starts, seed, bar)
        coarse = int(FIRST_PART * iterations)
        best = improved(search, best, coarse, bar)
        fine = replace(search, samples=2 * search.samples)
        best = _checked(fine, best, fine.samples)
        best = improved(fine, best, iterations - coarse, bar)
        return _result(fine, base, best, of_random, seed)


def _result(
    search: Search, base: BaseParameters, best: Candidate, of_random: tuple[float, ...], seed: int
) -> Excitation:
    """The result, within limits between samples too."""
    states, mech = search.states, base.model.mech
    fastest = float(np.abs(best.excited.path.d1 / mech.column_scale).max())
    samples = min(max(CHECKED * search.harmonics, int(fastest * search.period / APART)), MOST)
    best = _checked(search, best, samples)
    series, dense = search.series(best.y), best.excited
    margins = between_samples(dense.slack)
    least, condition = smallest_and_condition(best.R)
    names = slack_names(states.bound, mech.actuator_names)
    smallest = dict[str, float]()
    for name, x in zip(names, margins.tolist(), strict=True):
        smallest[name] = min(x, smallest.get(name, np.inf))
    excursion = float(np.abs(dense.path.q - dense.path.q[0]).max())
    if excursion < LEAST_EXCURSION:
        nearest = min(smallest, key=lambda name: smallest[name])
        raise InputError(
            f"{mech.name}: limits leave nearly no motion: at most {excursion:.2g} rad or m in a "
            f"period of {search.period:g} s, by the limit of {nearest!r}; give a longer period, "
            "fewer harmonics, or another start"
        )
    spread = np.linalg.norm(np.linalg.solve(best.R, np.eye(len(best.R))), axis=1)
    seen_worst = base.expressions[int(spread.argmax())]
    if condition > NOT_SEEN:
        log.warning(_WEAK, mech.name, condition, seen_worst)
    grid = np.linspace(0.0, search.period, CHECKED * search.harmonics + 1)
    nodes = closed_path(CheckedPath(states.system, series, grid, states.start), grid, still=True)
    curve, _ = closed_curve(nodes)
    trajectory = Trajectory(
        mech, nodes.s, nodes.q, nodes.d1, nodes.d2, states.excited(nodes).u, nodes.system.part,
        (), 0.0, curve,
    )  # fmt: skip
    return Excitation(
        base.model, base, trajectory, states.system.drive.labels, series.coefficients,
        search.period, best.value, least, condition,
        seen_worst, of_random, smallest, states.bound.limits, seed,
    )  # fmt: skip


def _checked(search: Search, best: Candidate, samples: int) -> Candidate:
    """The motion, made smaller until it is within limits at this number of samples, and between
    them."""
    search = replace(search, samples=samples)
    good, low, high, scale = None, 0.0, 1.0, 1.0
    for _ in range(SHORTENED):
        found = search.at(scale * best.y)
        away = -1.0 if found is None else float(between_samples(found.excited.slack).min())
        if away >= 0.0:
            low, good = scale, found
        else:
            high = scale
        if high - low < NEARLY * high:
            break
        shorter = min(max(-1.5 * away, NEARLY), 0.3)
        scale = 0.5 * (low + high) if low else scale * (1.0 - shorter)
    if good is None:
        raise LimitError(
            f"{search.states.model.mech.name}: no motion within limits between its samples was "
            "found; give more harmonics, a longer period, or another start"
        )
    return good


def between_samples(slack: Array) -> Vector:
    """The smallest distances (m,) over a period, by parabolas through three samples."""
    before, after = np.roll(slack, 1, axis=0), np.roll(slack, -1, axis=0)
    bend, slope = before - 2.0 * slack + after, 0.5 * (after - before)
    least = (slack <= before) & (slack <= after) & (bend > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(least, slack - 0.5 * slope**2 / bend, slack)
    found: Vector = lower.min(axis=0)
    return found
