"""Paths of closed, regular configurations along straight lines of the motors.

    y += dy,  max |gamma dy / c| <= step        follow: estimation/branch_continuation.py

A step is accepted only if the continuation proves it: the determinant of the closing system with
the motors held keeps its sign, and its inverse stays bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.angles import wrapped
from holoctl.base.checks import Indices, Vector
from holoctl.base.linalg import largest
from holoctl.base.tolerances import ROUNDING
from holoctl.closing.newton import Problem
from holoctl.doctor.mode_search import allowed
from holoctl.estimation.branch_continuation import FollowedState, Tally, following, placed_at
from holoctl.estimation.estimator_system import Borders, estimator_system_of
from holoctl.estimation.measurement_model import MeasurementModel, measurement_model
from holoctl.estimation.observability import checked_observability, first_borders
from holoctl.projector.partition import partition
from holoctl.tree.frozen_model import plain

__all__ = ["ModePathPoint", "ModeWalker", "driven", "held_still"]

PATH_FACTORED = 8
"""Most factorisations for each step of a path between assembly modes."""

PATH_MET = 1e-9  # scaled
"""Largest distance of two sets of motor positions that count as the same."""


PATH_LONGEST = 10_000
"""The largest number of steps of a straight part of a path."""

OFF_WAY = 0.5
"""The fraction of a step by which motors may miss it if there are more motors than motions."""


class ModePathPoint(NamedTuple):
    """A closed configuration on a path.

    Attributes
    ----------
    q : (nq,) array
        Configuration.
    y : (n,) array
        The displacement of the motors' coordinates since the mode at the start.
    borders : Borders
        The borders of the estimator system there.
    """

    q: Vector
    y: Vector
    borders: Borders


class ModeWalker:
    """Paths that start from one mode.

    Attributes
    ----------
    start : ModePathPoint
        The mode.
    columns : (n,) int array
        The coordinates that motors drive.
    turning : (n,) mask
        Which of them are angles, which may make whole turns.
    """

    def __init__(self, p: Problem, sensors: MeasurementModel, q: Vector) -> None:
        mech = p.mech
        part = partition(mech, q, t=p.t)
        here = checked_observability(mech, part, sensors, q, p.t)
        weights = np.ones(sensors.columns.size)
        self.p, self._sensors = p, sensors
        self._see = estimator_system_of(
            mech, part, sensors, weights, here.observed.shape[1], here.unobserved.shape[1]
        )
        self._follow = following(mech, self._see)
        self.columns = driven(p)
        self.turning = ~np.isin(self.columns, mech.lengths[1])
        borders = first_borders(here, weights, self._see.known)
        self.start = ModePathPoint(q, np.zeros(self.columns.size), borders)

    def left(self, y: Vector, target: Vector) -> Vector:
        """The displacement from y to the target, angles by the shorter way round."""
        way = target - y
        return np.where(self.turning, wrapped(way), way)

    def walk(
        self, start: ModePathPoint, way: Vector, step: float, most: int
    ) -> tuple[list[ModePathPoint], int, bool]:
        """Follow a straight line of the motors in steps of a scaled length.

        Returns
        -------
        stops : list of ModePathPoint
            The configurations after `start`.
        taken : int
            The number of steps that were tried.
        there : bool
            Whether the last configuration is at the end of the line.
        """
        see, c, stops = self._see, self.p.mech.column_scale, list[ModePathPoint]()
        place, y, end = placed_at(see, start.q, self.p.t, start.borders), start.y, start.y + way
        taken, d = 0, np.zeros(self.p.mech.nv)
        while self._far(end - y):
            if taken >= most:
                return stops, taken, False
            taken += 1
            d[self.columns] = end - y
            moving = place.gamma @ see.combined(place.borders, d[self._sensors.columns])
            share = min(1.0, step / max(largest(moving / c), ROUNDING))
            there = self._stepped(place, share * d)
            if there is None:
                return stops, taken, False
            moved = pin.difference(self.p.mech.model, place.q, there.q)
            missed = largest((moved - share * d)[self.columns] / c[self.columns])
            if largest(moved / c) > 2.0 * step or missed > OFF_WAY * share * largest(d / c):
                return stops, taken, False
            place, y = there, y + moved[self.columns]
            stops.append(ModePathPoint(place.q, y, place.borders))
        return stops, taken, True

    def _far(self, way: Vector) -> bool:
        return largest(way / self.p.mech.column_scale[self.columns]) > PATH_MET

    def _stepped(self, place: FollowedState, d: Vector) -> FollowedState | None:
        mech, t = self.p.mech, self.p.t
        x = self._sensors.at(pin.integrate(mech.model, place.q, d))
        way = d[self._sensors.columns]
        there = self._follow(place, x, way, t, Tally(PATH_FACTORED))
        if there is None or not self._see.redundant:
            return there
        return there if largest(self.p.scaled_rows(there.q)[0]) <= allowed(mech) else None

    def followed(self, ways: Iterable[Vector], step: float) -> list[ModePathPoint] | None:
        """All configurations from the mode along consecutive lines; None if one is incomplete."""
        stops = [self.start]
        for way in ways:
            new, _, there = self.walk(stops[-1], way, step, PATH_LONGEST)
            if not there:
                return None
            stops += new
        return stops


def held_still(p: Problem) -> MeasurementModel:
    """The measurement model of the held coordinates: those of the motors, and those that no row
    depends on. Joints without a position number for each coordinate are measured whole."""
    mech, model = p.mech, plain(p.mech.model)
    names = dict[str, None]()
    for i in np.setdiff1d(np.arange(mech.nv), p.free):
        j = int(mech.joint_of[i])
        whole = model.nvs[j] > 1 and model.nqs[j] != model.nvs[j]
        names[model.names[j] if whole else mech.coordinate_names[i]] = None
    return measurement_model(mech, list(names))


def driven(p: Problem) -> Indices:
    """The coordinates that motors drive."""
    return np.flatnonzero((p.mech.B != 0.0).any(axis=1)).astype(np.intp)
