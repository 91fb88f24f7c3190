"""The state from encoders along a motion that crosses type-2 singularities.

    away from a singularity           the closed-state estimator, which proves the branch
    within blind / 2 of one           none: the plan is followed without feedback
    until a settling time after it    Newton's method from the planned configuration

Motors alone do not determine the state at a type-2 singularity, so the last two assume that the
robot crossed as planned. With a passive joint measured too, the estimator serves everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, listing, vector
from holoctl.base.errors import BranchError, InputError
from holoctl.base.tolerances import GAIN_LIMIT
from holoctl.design.paths.inputs import coordinates_at
from holoctl.design.paths.path_continuation import System, node_at, system_of
from holoctl.design.paths.path_system import PathReference
from holoctl.design.paths.trajectory import Trajectory
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.measurement_model import measurement_model
from holoctl.estimation.observability import noise_gain, observability
from holoctl.projector.partition import Partition

__all__ = ["CrossingSensors"]

SETTLES = 0.05  # s
"""The closed-state estimator starts again this long after a blind time."""

BLIND_GAIN = 0.3 * GAIN_LIMIT
"""Largest amplification of noise at both ends of a blind time."""

MOST_BLIND = 0.2  # s
"""Longest blind time that is proposed."""


class CrossingSensors:
    """The state from encoders, tick by tick, along a trajectory.

    Attributes
    ----------
    names : tuple of str
    """

    def __init__(
        self, trajectory: Trajectory, part: Partition, measured: Iterable[str], blind: float
    ) -> None:
        mech = trajectory.mech
        self._trajectory, self._part, self._half = trajectory, part, 0.5 * blind
        self._estimator = ClosedStateEstimator(mech, measured, start=trajectory.q[0])
        self.names = self._estimator.measured
        self._system: System | None = None
        if blind:
            self._system = _newton(trajectory, part, self.names)
            self._check_blind()
        else:
            self._check_seen()
        self.reset()

    def reset(self) -> None:
        """Begin at the start of the trajectory."""
        self._estimator.reset(self._trajectory.q[0])
        self._last: Vector | None = None  # after a blind time

    def state(self, q: Any, v: Any, t: float) -> tuple[Vector, Vector] | None:
        """The closed state for readings; None in a blind time.

        Raises
        ------
        BranchError, AssemblyError, InconsistentError
            As `ClosedStateEstimator.state`; `BranchError` if no closed state near the planned one
            has these readings after a blind time.
        """
        since = min(
            (t - c.t for c in self._trajectory.crossings if t > c.t - self._half), default=np.inf
        )
        if self._system is None or since >= self._half + SETTLES:
            if self._last is not None:
                self._estimator.reset(self._last, t)
                self._last = None
            return self._estimator.state(q, v, t)
        if since < self._half:
            self._last = self._trajectory.state(t).q
            return None
        begin = self._trajectory.state(t).q if self._last is None else self._last
        return self._solved(self._system, begin, q, v, t)

    def _solved(
        self, system: System, begin: Vector, q: Any, v: Any, t: float
    ) -> tuple[Vector, Vector]:
        p, none = len(self.names), np.zeros(len(self.names))
        reading = PathReference(vector("q", q, p, "readings"), none, none)
        found = node_at(system, lambda s: reading, begin, 0.0)
        if found is None:
            raise BranchError(
                f"{self._trajectory.mech.name}: no closed state near the planned one has the "
                f"readings of {listing(self.names, 6)} at t = {t:.4g} s, after a crossing without "
                "feedback: the robot did not cross as planned",
                why="dead point",
            )
        self._last = found.q
        return found.q, found.gamma @ vector("v", v, p, "rates")

    def _gain(self, names: tuple[str, ...], q: Vector) -> float:
        mech, part = self._trajectory.mech, self._part
        sensors = measurement_model(mech, names)
        here = observability(mech, part, sensors, q, 0.0)
        if here.observed.shape[1] < part.independent.size:
            return np.inf
        return noise_gain(here, np.ones(sensors.unit.size))

    def _gain_with(self, name: str, q: Vector) -> float:
        """The amplification of noise with one encoder more; inf for a coordinate without one."""
        try:
            return self._gain((*self.names, name), q)
        except InputError:  # of a joint that is measured whole
            return np.inf

    def _check_seen(self) -> None:
        """Raise `InputError` if the sensors do not determine the state at a crossing."""
        mech, names = self._trajectory.mech, self.names
        for crossing in self._trajectory.crossings:
            if self._gain(names, crossing.q) <= GAIN_LIMIT:
                continue
            others = [name for name in mech.coordinate_names if name not in names]
            gains = {name: self._gain_with(name, crossing.q) for name in others}
            good = sorted((x for x in others if gains[x] <= GAIN_LIMIT), key=gains.__getitem__)
            blind = self._enough()
            other = (
                f", or give a blind time, blind={blind:.3g} s, which assumes that the robot "
                "crosses as planned"
            )
            raise InputError(
                f"{mech.name}: the sensors {listing(names, 6)} do not determine the state at the "
                f"type-2 singularity at t = {crossing.t:.4g} s, where {crossing.lost_motion}; "
                f"measure one joint more ({listing(good, 4)}){other if np.isfinite(blind) else ''}"
            )

    def _check_blind(self) -> None:
        """Raise `InputError` if noise is amplified too much at an end of a blind time."""
        enough = self._enough()
        if 2.0 * self._half < enough:
            raise InputError(
                f"{self._trajectory.mech.name}: blind = {2.0 * self._half:g} s is too short: at "
                f"its ends the sensors {listing(self.names, 6)} would amplify noise by more than "
                f"{BLIND_GAIN:g}; {self._needed(enough)}"
            )

    @staticmethod
    def _needed(enough: float) -> str:
        if np.isfinite(enough):
            return f"at least {enough:.3g} s is needed for this motion"
        return f"not even {MOST_BLIND:g} s would do: measure a passive joint too"

    def _enough(self) -> float:
        """The shortest blind time, s, in steps of 2 ms; inf above the longest."""
        for blind in np.arange(6, 1000.0 * MOST_BLIND + 1, 2.0) * 1e-3:
            ends = (c.t + 0.5 * x * blind for c in self._trajectory.crossings for x in (-1, 1))
            if all(self._gain(self.names, self._trajectory.state(t).q) <= BLIND_GAIN for t in ends):
                return float(blind)
        return np.inf


def _newton(trajectory: Trajectory, part: Partition, names: tuple[str, ...]) -> System:
    mech = trajectory.mech
    if len(names) != part.independent.size or not set(names) <= set(mech.coordinate_names):
        raise InputError(
            f"{mech.name}: with blind= as many single joints must be measured as there are motions,"
            f" {part.independent.size}; got {listing(names, 6)}"
        )
    columns = [mech.coordinate_names.index(name) for name in names]
    return system_of(mech, part, coordinates_at(mech, columns), np.zeros((mech.nv, 0)))
