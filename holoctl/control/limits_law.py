"""The law of limits, the same for every path: what was asked for, as it is or as near as it may be.

    within all limits     unchanged, bit by bit
    "nearest"             the nearest efforts by Gauss's principle: nearest_efforts.py
    "scale"               slower along what was asked for: scaled_efforts.py; else the nearest
    "raise"               an error that names the limits

Limits of efforts are hard. Limits of joints are bounds of accelerations (viability.py), and give
way where the motors cannot keep them. In scaled efforts, with S the largest effort of each motor,

    H~ = nu S H S / trace(S H S) + EFFORT_REGULAR

and each row of Y S has norm one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import HoloctlError, LimitError
from holoctl.base.tolerances import (
    ACTIVE_EFFORT,
    EFFORT_REGULAR,
    GIVEN_WAY,
    ON_A_BOUND,
    UNMOVED,
)
from holoctl.control.effort_bounds import effort_bounds
from holoctl.control.limit_names import joint_limit_names, limit_names
from holoctl.control.nearest_efforts import Nearest, Program, Solver, by_daqp
from holoctl.control.scaled_efforts import largest_scale
from holoctl.control.viability import acceleration_bounds
from holoctl.mechanism.limits import BoundLimits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["LIMIT_POLICIES", "Asked", "LimitsLaw", "Outcome"]

Array = NDArray[np.float64]

LIMIT_POLICIES = ("nearest", "scale", "raise")


class Asked(NamedTuple):
    """What was asked for at a state, and what may be asked about it.

    Attributes
    ----------
    u : (nu,) array
    rates : (nu,) array
        Of the motors, ``B' v``.
    positions, velocities, accelerations : (n,) arrays
        Of the coordinates that are limited; the last where u acts.
    response : function () -> (H, Y)
        (nu, nu) and (n, nu): what efforts are worth, and what they do to these coordinates.
    base : function () -> u
        The efforts of the motion that leaves the rates of the motors as they are.
    """

    u: Vector
    rates: Vector
    positions: Vector
    velocities: Vector
    accelerations: Vector
    response: Callable[[], tuple[Array, Array]]
    base: Callable[[], Vector]


class Outcome(NamedTuple):
    """What came of it.

    Attributes
    ----------
    u : (nu,) array
        Within the limits of efforts, exactly.
    scale : float
        1 where nothing was limited, s of "scale", nan where it is the nearest.
    limiting : (nu + n,) array
        Not zero for what limits: above zero where it is the upper bound, below where the lower.
    given_way : (n,) array
        By how much each acceleration is past its bound, of those that gave way; else zero.
    """

    u: Vector
    scale: float
    limiting: Vector
    given_way: Vector


@dataclass(frozen=True, eq=False)
class LimitsLaw:
    """See the head of this module.

    Attributes
    ----------
    mech : Mechanism
    bound : BoundLimits
    brakes : (2, n) array
        How hard each limited coordinate can be accelerated downwards and upwards.
    policy : str
        Of `LIMIT_POLICIES`.
    metric : (nu, nu) array or None
        Instead of H.
    dt : float
        A tick, s.
    solver : Solver
    """

    mech: Mechanism
    bound: BoundLimits
    brakes: Array
    policy: str = "nearest"
    metric: Array | None = None
    dt: float = 1e-3
    solver: Solver = by_daqp

    def bounds(self, asked: Asked) -> tuple[Vector, Vector, Vector, Vector]:
        """Lower and upper bounds of efforts, and of the accelerations."""
        of_joints = acceleration_bounds(
            self.bound, self.brakes, asked.positions, asked.velocities, self.dt
        )
        return *effort_bounds(self.bound, asked.rates), *of_joints

    def outcome(self, asked: Asked) -> Outcome:
        """Efforts within limits.

        Raises
        ------
        LimitError
            With the policy "raise", past a limit.
        """
        lower, upper, least, most = self.bounds(asked)
        u, a = asked.u, asked.accelerations
        past = _past(np.concatenate([u, a]), [lower, least], [upper, most])
        if not past.any():
            return Outcome(u, 1.0, past, np.zeros(a.size))
        if self.policy == "raise":
            names = self.names(asked, past)
            raise LimitError(
                f"{self.mech.name}: what is asked for is past {listing(names)}; ask for less, or "
                "take the policy 'nearest' or 'scale'",
                names=names,
            )
        H, Y = asked.response()
        if self.policy == "scale":
            base = asked.base()
            both = np.concatenate([base, a + Y.dot(base - u)]), np.concatenate([u, a])
            s = largest_scale(*both, np.concatenate([lower, least]), np.concatenate([upper, most]))
            if s is not None:
                x = both[0] + s * (both[1] - both[0])
                found = np.minimum(np.maximum(x[: u.size], lower), upper)
                slack = ON_A_BOUND * np.abs(both[1] - both[0])
                acts = _past(x, [lower, least], [upper, most], -slack) * (past != 0.0)
                return Outcome(found, s, acts, np.zeros(a.size))
        return self._nearest(asked, H, Y, (lower, upper, least, most))

    def _nearest(
        self, asked: Asked, H: Array, Y: Array, bounds: tuple[Vector, Vector, Vector, Vector]
    ) -> Outcome:
        lower, upper, least, most = bounds
        u, a, S = asked.u, asked.accelerations, self.sizes
        if self.metric is not None:
            H = self.metric
        scaled = S[:, None] * H * S
        scaled *= u.size / scaled.trace()
        scaled.flat[:: u.size + 1] += EFFORT_REGULAR
        rows = Y * S
        norms = np.linalg.norm(rows, axis=1)
        moved = norms > UNMOVED  # else the motors can do nothing about it
        norms = np.where(moved, norms, 1.0)
        rows /= norms[:, None]
        x_cmd = u / S
        here = rows.dot(x_cmd)
        y_lower = np.where(moved, here + (least - a) / norms, -np.inf)
        y_upper = np.where(moved, here + (most - a) / norms, np.inf)
        program = Program(scaled, x_cmd, lower / S, upper / S, rows, y_lower, y_upper)
        found: Nearest | None = self.solver(program)
        if found is None:
            raise HoloctlError(f"{self.mech.name}: the program of the limits has no solution here")
        x = np.minimum(np.maximum(S * found.x, lower), upper)
        sizes = found.multipliers
        acts = np.where(np.abs(sizes) > ACTIVE_EFFORT * np.abs(sizes).max(initial=1.0), sizes, 0.0)
        reached = a + Y.dot(x - u)
        missed = reached - np.minimum(np.maximum(reached, least), most)
        given_way = np.where(np.abs(missed) > GIVEN_WAY * (1.0 + np.abs(a)), missed, 0.0)
        return Outcome(x, np.nan, acts, given_way)

    @property
    def sizes(self) -> Vector:
        """S: the largest effort of each motor; without a limit, that of the strongest other."""
        largest = np.abs(self.bound.effort).max(axis=0)
        finite = largest[np.isfinite(largest)]
        return np.where(np.isfinite(largest), largest, finite.max() if finite.size else 1.0)

    def names(self, asked: Asked, limiting: Vector) -> tuple[str, ...]:
        """The names of what limits, of an `Outcome` or what is past."""
        options = self.mech, self.bound, self.brakes, self.dt
        return limit_names(*options, asked.positions, asked.velocities, limiting)

    def given_way(self, asked: Asked, outcome: Outcome) -> tuple[str, ...]:
        """The names of limits of joints that gave way."""
        options = self.bound, self.brakes, self.dt
        return joint_limit_names(*options, asked.positions, asked.velocities, outcome.given_way)


def _past(
    x: Vector, lower: list[Vector], upper: list[Vector], slack: Vector | float = 0.0
) -> Vector:
    """1 where x is above its upper bound, -1 where it is below the lower one, by more than slack;
    what is no number is past as well."""
    below, above = np.concatenate(lower), np.concatenate(upper)
    return np.asarray(~(x <= above + slack), dtype=float) - ~(x >= below - slack)
