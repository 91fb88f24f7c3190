"""The law of limits, the same for every path: what was asked for, as it is or as near as it may be.

    within all limits     unchanged, bit by bit
    "nearest"             the nearest efforts by Gauss's principle: nearest_efforts.py
    "scale"               slower along what was asked for: the largest s in [0, 1] of
                          base + s (asked - base) within all bounds; else the nearest
    "raise"               an error that names the limits

Limits of efforts are hard. Limits of joints are bounds of accelerations (viability_kernel.py), and
give way where the motors cannot keep them. In scaled efforts, with S the largest effort of each
motor,

    H~ = nu S H S / trace(S H S) + EFFORT_REGULAR

and each row y of Y S is scaled so that y H~^-1 y' = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import InputError, LimitError
from holoctl.base.tolerances import (
    EFFORT_REGULAR,
    FARTHEST_ASKED,
    NEAR_SPEED,
    OTHER_MOTION,
    TICKS_AHEAD,
    UNMOVED,
)
from holoctl.control.effort_bounds import effort_bounds
from holoctl.control.nearest_efforts import EffortsQP, Solver, by_daqp
from holoctl.control.viability_kernel import acceleration_bounds, narrowed
from holoctl.laws.acceleration_bounds import LimitedCoordinates, caused
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["LIMIT_POLICIES", "LimitRequest", "LimitsLaw", "LimitsOutcome", "effort_sizes"]

ACTIVE_LIMIT = 1e-14
"""A limit counts as acting where its multiplier is above this share of the largest: where motors
are redundant, multipliers are as small as what their efforts are worth of their own."""

GIVEN_WAY = 1e-6
"""A limit of a joint counts as given way where the acceleration is past its bound by this share."""

WIDE_OPEN = 1e7  # N m, N
"""Limits of efforts from here on are as good as none: they are no unit to count efforts in."""


LIMIT_POLICIES = ("nearest", "scale", "raise")
LAST_BEFORE_ONE = float(np.nextafter(1.0, 0.0))
_NONE = np.zeros(0)
_LOOKS = 2  # at the end of a tick


class LimitRequest(NamedTuple):
    """What was asked for at a state, and what may be asked about it.

    Attributes
    ----------
    u : (nu,) array
    v : (nv,) array
    a : (nv,) array or None
        What u causes; None where no joint is limited.
    at : LimitedCoordinates or None
        Those that are limited; None where none is.
    response : function () -> (H, Y)
        (nu, nu) and (nv, nu): what efforts are worth, and what they do; only the first where no
        joint is limited. It may be asked twice.
    base : function () -> u
        The efforts of the motion that leaves the rates of the motors as they are.
    change : function (u, a) -> (n,) array
        By how much the accelerations of limited coordinates change within a tick where these
        efforts are held, which cause a (nv,).
    """

    u: Vector
    v: Vector
    a: Vector | None
    at: LimitedCoordinates | None
    response: Callable[[], tuple[Array, Array]]
    base: Callable[[], Vector]
    change: Callable[[Vector, Vector], Vector]

    @property
    def here(self) -> tuple[Vector, Vector]:
        """Positions and velocities of limited coordinates, each (n,)."""
        return (_NONE, _NONE) if self.at is None else self.at[:2]


class Bounds(NamedTuple):
    """Lower and upper bounds of efforts, and of the accelerations of limited coordinates."""

    lower: Vector
    upper: Vector
    least: Vector
    most: Vector


class LimitsOutcome(NamedTuple):
    """What came of it.

    Attributes
    ----------
    u : (nu,) array
        Within the limits of efforts, exactly.
    scale : float
        1 where nothing was limited, s of "scale", nan where it is the nearest.
    multipliers : (nu + n,) array
        Not zero for what limits: above zero where it is the upper bound, below where the lower.
    given_way : (n,) array
        By how much each acceleration is past its bound, of those that gave way; else zero.
    """

    u: Vector
    scale: float
    multipliers: Vector
    given_way: Vector

    @property
    def limiting(self) -> Vector:
        """The multipliers, without those that are zero but for rounding."""
        sizes = np.abs(self.multipliers)
        least = ACTIVE_LIMIT * float(sizes.max(initial=0.0))
        return np.where(sizes > least, self.multipliers, 0.0)


@dataclass(frozen=True, eq=False)
class LimitsLaw:
    """See the head of this module.

    Attributes
    ----------
    mech : Mechanism
    bound : BoundLimits
    braking : (2, n) array
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
    braking: Array
    policy: str = "nearest"
    metric: Array | None = None
    dt: float = 1e-3
    solver: Solver = by_daqp
    _constants: _Constants = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_constants", _constants(self.bound, self.dt))

    def bounds(self, asked: LimitRequest) -> Bounds:
        """At the present positions and rates."""
        lower, upper, least, most = self._constants.box
        if self._constants.curved:
            lower, upper = effort_bounds(self.bound, self.mech.B.T.dot(asked.v))
        if asked.at is not None:
            least, most = acceleration_bounds(self.bound, self.braking, *asked.here, self.dt)
        return Bounds(lower, upper, least, most)

    def outcome(self, asked: LimitRequest) -> LimitsOutcome:
        """Efforts within limits; near a limit of velocity, or where they lead there, also at the
        end of the tick.

        Raises
        ------
        InputError
            Where what is asked for is out of range of the program.
        LimitError
            With the policy "raise", past a limit.
        """
        bounds, k, (_, v) = self.bounds(asked), self._constants, asked.here
        a, at = asked.a, asked.at
        found = self._within(asked, bounds)
        if a is None or at is None or not k.fast:
            return found
        rise, fall, before = k.none_yet
        near = k.side * v > k.near
        for _ in range(_LOOKS):
            moved = a
            if found.scale != 1.0:
                moved = caused(a, asked.response()[1], found.u, asked.u)
            here = at.accelerations(moved)
            near |= k.side * (v + k.ahead * here) > k.near
            if before is None:
                if True not in near.ravel().tolist():
                    break
            elif (np.abs(here - before) <= k.other).all():
                break
            change, before = asked.change(found.u, moved), here
            rise, fall = np.maximum(rise, change), np.minimum(fall, change)
            least, most = narrowed(*bounds[2:], near, v, rise, fall, self.dt)
            found = self._within(asked, Bounds(*bounds[:2], least, most))
        return found

    def _within(self, asked: LimitRequest, bounds: Bounds) -> LimitsOutcome:
        """Efforts within these bounds."""
        u, a = asked.u, _NONE
        if asked.at is not None and asked.a is not None:
            a = asked.at.accelerations(asked.a)
        lower, upper, least, most = bounds
        if _is_within(u, lower, upper) and _is_within(a, least, most):
            return LimitsOutcome(u, 1.0, np.zeros(u.size + a.size), np.zeros(a.size))
        if self.policy == "raise":
            past = _past(u, lower, upper), _past(a, least, most)
            names = self.names(*asked.here, np.concatenate(past))
            raise LimitError(
                f"{self.mech.name}: what is asked for is past {listing(names)}; ask for less, or "
                "take the policy 'nearest' or 'scale'",
                names=names,
            )
        response = None
        if self.policy == "scale":
            if a.size:
                response = self._response(asked)
            found = _slower(asked, a, bounds, response)
            if found is not None:
                return found
        H, Y = response or self._response(asked)
        return self._nearest(u, a, bounds, H, Y)

    def _response(self, asked: LimitRequest) -> tuple[Array, Array]:
        """H, and what efforts do to the limited coordinates."""
        H, Y = asked.response()
        return H, Y if asked.at is None else asked.at.moved(Y)

    def nearest_in_box(self, u: Vector, H: Array) -> LimitsOutcome:
        """`outcome` of efforts that are past limits which are the same at all speeds, as if nothing
        else were limited."""
        box, n = self._constants.box, len(self.bound.names)
        found = self._nearest(u, box.least, box, H, self._constants.no_rows[0])
        if not n:
            return found
        none = np.zeros(n)
        return LimitsOutcome(found.u, found.scale, np.concatenate([found.multipliers, none]), none)

    @property
    def fast(self) -> bool:
        """Whether some velocity is limited."""
        return self._constants.fast

    @property
    def curved(self) -> bool:
        """Whether limits of efforts change with the speed."""
        return self._constants.curved

    def scaled_metric(self, H: Array) -> Array:
        """H~ (nu, nu), by what efforts are worth, H, where no metric was given."""
        k = self._constants
        if self.metric is not None:
            H = self.metric
        scaled: Array = k.SS * H
        scaled *= k.S.size / H.diagonal().dot(k.S2)
        scaled += k.regular
        return scaled

    def _nearest(self, u: Vector, a: Vector, bounds: Bounds, H: Array, Y: Array) -> LimitsOutcome:
        lower, upper, least, most = bounds
        k = self._constants
        scaled = self.scaled_metric(H)
        x_cmd = u * k.per_S
        if not max(map(abs, x_cmd.tolist())) <= FARTHEST_ASKED:
            raise InputError(
                f"{self.mech.name}: the efforts asked for are {np.abs(x_cmd).max():.2g} times "
                f"their limits; beyond {FARTHEST_ASKED:g} times the nearest is lost in rounding: "
                "an input or a gain is out of range"
            )
        x_lower, x_upper = (k.x_lower, k.x_upper) if not k.curved else (lower / k.S, upper / k.S)
        rows, y_lower, y_upper = k.no_rows
        if a.size:
            rows = Y * k.S
            _, worth, _ = lapack.dposv(scaled, rows.T)
            norms = np.sqrt(np.einsum("ji,ij->j", rows, worth))
            moved = np.abs(rows).max(axis=1) > UNMOVED  # else motors can do nothing about it
            norms = np.where(moved, norms, 1.0)
            rows /= norms[:, None]
            here = rows.dot(x_cmd)
            y_lower = np.where(moved, here + (least - a) / norms, -np.inf)
            y_upper = np.where(moved, here + (most - a) / norms, np.inf)
        found = self.solver(EffortsQP(scaled, x_cmd, x_lower, x_upper, rows, y_lower, y_upper))
        if found is None:
            raise InputError(
                f"{self.mech.name}: the program of the limits has no solution in floating-point "
                "numbers here: an input, a gain or a limit is out of range"
            )
        x = np.minimum(np.maximum(k.S * found.x, lower), upper)
        given_way = y_upper
        if a.size:
            reached = caused(a, Y, x, u)
            missed = reached - np.minimum(np.maximum(reached, least), most)
            size = 1.0 + np.minimum(np.abs(a), np.abs(reached))
            given_way = np.where(np.abs(missed) > GIVEN_WAY * size, missed, 0.0)
        acts = found.multipliers
        if not acts.any():  # past by less than a solver tells, or where motors can do nothing
            acts = np.concatenate([_past(u, lower, upper), _past(a, least, most)])
        return LimitsOutcome(x, np.nan, acts, given_way)

    def names(self, positions: Vector, velocities: Vector, limiting: Vector) -> tuple[str, ...]:
        """Names of what limits, of a `LimitsOutcome` or what is past (nu + n,): motors plainly,
        those of joints with what is limited."""
        nu = self.mech.nu
        motors = [self.mech.actuator_names[i] for i in np.flatnonzero(limiting[:nu]).tolist()]
        return *motors, *self._joint_names(positions, velocities, limiting[nu:])

    def given_way(
        self, positions: Vector, velocities: Vector, outcome: LimitsOutcome
    ) -> tuple[str, ...]:
        """The names of limits of joints that gave way, and of those that are passed already."""
        gave_way = self._joint_names(positions, velocities, outcome.given_way)
        return tuple(dict.fromkeys(gave_way + self.passed(positions, velocities)))

    def passed(self, positions: Vector, velocities: Vector) -> tuple[str, ...]:
        """``name.position`` and ``name.velocity`` of the limits that are passed at this state."""
        bound, found = self.bound, list[str]()
        for what, x in (("position", positions), ("velocity", velocities)):
            limits = zip(bound.names, x.tolist(), *getattr(bound, what).tolist(), strict=True)
            found += [f"{name}.{what}" for name, at, low, high in limits if at < low or at > high]
        return tuple(found)

    def _joint_names(
        self, positions: Vector, velocities: Vector, limiting: Vector
    ) -> tuple[str, ...]:
        """``name.position``, ``name.velocity`` or ``name.acceleration`` of the entries (n,) that
        are not zero: above zero the upper side acts, below the lower one."""
        if not limiting.any():
            return ()
        bound, found = self.bound, list[str]()
        anywhere = np.full(bound.position.shape, np.inf) * [[-1.0], [1.0]]
        every, of_speed = (
            acceleration_bounds(
                replace(bound, position=x), self.braking, positions, velocities, self.dt
            )
            for x in (bound.position, anywhere)
        )
        for i in np.flatnonzero(limiting).tolist():
            side, what = int(limiting[i] > 0.0), "position"
            if every[side][i] == bound.acceleration[side, i]:
                what = "acceleration"
            elif every[side][i] == of_speed[side][i]:
                what = "velocity"
            found.append(f"{bound.names[i]}.{what}")
        return tuple(found)


def _slower(
    asked: LimitRequest, a: Vector, bounds: Bounds, response: tuple[Array, Array] | None
) -> LimitsOutcome | None:
    """Along what was asked for, as far as all is within its bounds; None where nothing is."""
    lower, upper, least, most = bounds
    base, here = asked.base(), asked.u
    if response is not None:
        base = np.concatenate([base, caused(a, response[1], base, here)])
        here = np.concatenate([here, a])
        lower, upper = np.concatenate([lower, least]), np.concatenate([upper, most])
    s, which = _largest_scale(base, here, lower, upper)
    if s is None:
        return None
    if s == 1.0:  # past by so little that it was rounded away
        s, which = LAST_BEFORE_ONE, int(np.argmax(np.abs(_past(here, lower, upper))))
    x = base + s * (here - base)
    acts = np.zeros(x.size)
    acts[which] = 1.0 if here[which] > base[which] else -1.0
    if response is not None:
        nu = asked.u.size
        x, lower, upper = x[:nu], lower[:nu], upper[:nu]
    u = np.minimum(np.maximum(x, lower), upper)
    return LimitsOutcome(u, s, acts, np.zeros(a.size))


def _largest_scale(
    base: Vector, asked: Vector, lower: Vector, upper: Vector
) -> tuple[float | None, int]:
    """The largest s in [0, 1] that is within all bounds, None where none is; and the place of what
    limits it."""
    least, most, which = 0.0, 1.0, 0
    bounds = zip(base.tolist(), asked.tolist(), lower.tolist(), upper.tolist(), strict=True)
    for i, (x, y, lo, hi) in enumerate(bounds):
        d = y - x
        if d > 0.0:
            first, last = (lo - x) / d, (hi - x) / d
        elif d < 0.0:
            first, last = (hi - x) / d, (lo - x) / d
        elif lo <= x <= hi:
            continue
        else:
            return None, i
        if last < most:
            most, which = last, i
        least = max(least, first)
    return (most if least <= most else None), which


class _Constants(NamedTuple):
    """Of the program: S are the `effort_sizes`. Beyond the speeds `near`, to the `side` -1 or 1,
    now or a time `ahead`, coordinates are near a limit of velocity; `other` are accelerations that
    make the end of a tick another one."""

    S: Vector
    per_S: Vector
    SS: Array
    S2: Vector
    regular: Array
    box: Bounds
    x_lower: Vector
    x_upper: Vector
    no_rows: tuple[Array, Vector, Vector]
    curved: bool
    fast: bool
    side: Array
    near: Array
    ahead: float
    other: Vector
    none_yet: tuple[Vector, Vector, Vector | None]


def effort_sizes(bound: BoundLimits) -> Vector:
    """S: the largest effort of each motor; without a limit, or with one that is wide open, that of
    the strongest other."""
    largest = np.abs(bound.effort).max(axis=0)
    known = largest < WIDE_OPEN
    strongest = float(largest[known].max(initial=0.0))
    return np.where(known, largest, strongest if strongest > 0.0 else 1.0)


def _constants(bound: BoundLimits, dt: float) -> _Constants:
    lower, upper = bound.effort
    S, none = effort_sizes(bound), np.zeros(0)
    curved = any(curve is not None for curve in bound.curves)
    return _Constants(
        S, 1.0 / S, np.outer(S, S), S * S, EFFORT_REGULAR * np.eye(S.size),
        Bounds(lower, upper, none, none), lower / S, upper / S,
        (np.zeros((0, S.size)), none, none), curved,
        bool(np.isfinite(bound.velocity).any()), np.array([[-1.0], [1.0]]),
        NEAR_SPEED * np.abs(bound.velocity), TICKS_AHEAD * dt,
        OTHER_MOTION / dt * np.abs(bound.velocity).min(axis=0),
        (np.full(len(bound.names), -np.inf), np.full(len(bound.names), np.inf), None),
    )  # fmt: skip


def _is_within(x: Vector, lower: Vector, upper: Vector) -> bool:
    """Whether all of x is within its bounds; what is no number is not."""
    return all(((lower <= x) & (x <= upper)).tolist()) if x.size else True


def _past(x: Vector, lower: Vector, upper: Vector) -> Vector:
    """1 where x is above its upper bound, -1 where it is below the lower one, or is no number."""
    return np.asarray(x > upper, dtype=float) - ~(x >= lower)
