"""The limits law: the commanded efforts if they are within all limits, else by a policy.

    within all limits     unchanged, bit by bit
    "nearest"             the nearest efforts by Gauss's principle: nearest_efforts.py
    "scale"               the commanded motion, slower: the largest s in [0, 1] with
                          base + s (u_cmd - base) within all bounds; else the nearest
    "raise"               an error that names the limits

Limits of efforts are hard. Limits of joints are bounds of accelerations (viability_kernel.py), and
are softened (violated by a slack) if the motors cannot keep them. In scaled efforts, with S the
largest effort of each motor,

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
"""A limit is active if its multiplier is above this fraction of the largest. Multipliers of
redundant motors are small, of the order of the regularisation."""

SOFTENED = 1e-6
"""A limit of a joint is softened if the acceleration is beyond its bound by this fraction."""

WIDE_OPEN = 1e7  # N m, N
"""Larger limits of efforts do not scale efforts, as if there were none."""


LIMIT_POLICIES = ("nearest", "scale", "raise")
LAST_BEFORE_ONE = float(np.nextafter(1.0, 0.0))
_NONE = np.zeros(0)
_END_OF_TICK_ITERATIONS = 2


class LimitRequest(NamedTuple):
    """Commanded efforts at a state, and the functions that a policy needs there.

    Attributes
    ----------
    u : (nu,) array
        The commanded efforts, N m or N.
    v : (nv,) array
        The velocity.
    a : (nv,) array or None
        The acceleration that u causes; None if no joint is limited.
    at : LimitedCoordinates or None
        The limited coordinates; None if there are none.
    response : function () -> (H, Y)
        The Hessian of the cost of efforts (nu, nu), and the accelerations by the efforts (nv, nu);
        only H is used if no joint is limited. It may be called twice.
    base : function () -> u
        The efforts of the motion that does not accelerate the motors.
    change : function (u, a) -> (n,) array
        The change of the accelerations of limited coordinates within a tick in which the efforts u
        are held, which cause a (nv,) at its start.
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
    """Efforts within limits.

    Attributes
    ----------
    u : (nu,) array
        The efforts, exactly within their limits.
    scale : float
        1 if nothing was limited, s of "scale", nan for the nearest efforts.
    multipliers : (nu + n,) array
        Multipliers of the bounds: above zero at an upper bound, below zero at a lower one.
    slack : (n,) array
        The violation of each softened bound of an acceleration; zero for the others.
    """

    u: Vector
    scale: float
    multipliers: Vector
    slack: Vector

    @property
    def limiting(self) -> Vector:
        """The multipliers; those that are zero up to rounding are set to zero."""
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
        The accelerations of each limited coordinate downwards and upwards: `braking_limits`.
    policy : str
        One of `LIMIT_POLICIES`.
    metric : (nu, nu) array or None
        A metric of efforts instead of H.
    dt : float
        The tick, s.
    solver : Solver
        The solver of the quadratic program.
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

    def bounds(self, request: LimitRequest) -> Bounds:
        """The bounds at the present positions and rates."""
        lower, upper, least, most = self._constants.box
        if self._constants.curved:
            lower, upper = effort_bounds(self.bound, self.mech.B.T.dot(request.v))
        if request.at is not None:
            least, most = acceleration_bounds(self.bound, self.braking, *request.here, self.dt)
        return Bounds(lower, upper, least, most)

    def outcome(self, request: LimitRequest) -> LimitsOutcome:
        """Efforts within limits; near a limit of velocity, or if they lead there, also at the end
        of the tick.

        The acceleration changes within the tick under held efforts, by an amount that depends on
        the efforts. So the bounds are narrowed by the changes found so far, and the efforts are
        found again, at most twice, or until the accelerations stay the same.

        Raises
        ------
        InputError
            If the commanded efforts are out of range of the program.
        LimitError
            With the policy "raise", beyond a limit.
        """
        bounds, k, (_, v) = self.bounds(request), self._constants, request.here
        a, at = request.a, request.at
        found = self._within(request, bounds)
        if a is None or at is None or not k.fast:
            return found
        largest_change, least_change, previous = k.no_changes
        near = k.side * v > k.near
        for _ in range(_END_OF_TICK_ITERATIONS):
            caused_a = a
            if found.scale != 1.0:
                caused_a = caused(a, request.response()[1], found.u, request.u)
            present = at.accelerations(caused_a)
            near |= k.side * (v + k.ahead * present) > k.near
            if previous is None:
                if True not in near.ravel().tolist():
                    break
            elif (np.abs(present - previous) <= k.other).all():
                break
            change, previous = request.change(found.u, caused_a), present
            largest_change = np.maximum(largest_change, change)
            least_change = np.minimum(least_change, change)
            least, most = narrowed(*bounds[2:], near, v, largest_change, least_change, self.dt)
            found = self._within(request, Bounds(*bounds[:2], least, most))
        return found

    def _within(self, request: LimitRequest, bounds: Bounds) -> LimitsOutcome:
        """Efforts within these bounds."""
        u, a = request.u, _NONE
        if request.at is not None and request.a is not None:
            a = request.at.accelerations(request.a)
        lower, upper, least, most = bounds
        if _is_within(u, lower, upper) and _is_within(a, least, most):
            return LimitsOutcome(u, 1.0, np.zeros(u.size + a.size), np.zeros(a.size))
        if self.policy == "raise":
            past = _past(u, lower, upper), _past(a, least, most)
            names = self.names(*request.here, np.concatenate(past))
            raise LimitError(
                f"{self.mech.name}: the commanded motion exceeds the limits of {listing(names)}; "
                "command less, or take the policy 'nearest' or 'scale'",
                names=names,
            )
        response = None
        if self.policy == "scale":
            self._relative_command(u)
            if a.size:
                response = self._response(request)
            found = _slower(request, a, bounds, response)
            if found is not None:
                return found
        H, Y = response or self._response(request)
        return self._nearest(u, a, bounds, H, Y)

    def _response(self, request: LimitRequest) -> tuple[Array, Array]:
        """H, and the accelerations of the limited coordinates by the efforts."""
        H, Y = request.response()
        return H, Y if request.at is None else request.at.moved(Y)

    def nearest_in_box(self, u: Vector, H: Array) -> LimitsOutcome:
        """The nearest efforts to u within limits of efforts that hold at all speeds, without limits
        of joints."""
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
        """Whether limits of efforts depend on the speed."""
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

    def _relative_command(self, u: Vector) -> Vector:
        """The commanded efforts over the largest ones of the motors."""
        x: Vector = u * self._constants.per_S
        if not max(map(abs, x.tolist())) <= FARTHEST_ASKED:
            raise InputError(
                f"{self.mech.name}: the commanded efforts are {np.abs(x).max():.2g} times their "
                f"limits; beyond {FARTHEST_ASKED:g} times rounding makes the efforts within limits "
                "inaccurate: an input or a gain is out of range"
            )
        return x

    def _nearest(self, u: Vector, a: Vector, bounds: Bounds, H: Array, Y: Array) -> LimitsOutcome:
        lower, upper, least, most = bounds
        k = self._constants
        scaled = self.scaled_metric(H)
        x_cmd = self._relative_command(u)
        x_lower, x_upper = (k.x_lower, k.x_upper) if not k.curved else (lower / k.S, upper / k.S)
        rows, y_lower, y_upper = k.no_rows
        if a.size:
            rows = Y * k.S
            _, rows_per_H, _ = lapack.dposv(scaled, rows.T)  # H~^-1 y'
            norms = np.sqrt(np.einsum("ji,ij->j", rows, rows_per_H))
            moved = np.abs(rows).max(axis=1) > UNMOVED  # else the motors cannot accelerate it
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
        slack = y_upper
        if a.size:
            reached = caused(a, Y, x, u)
            missed = reached - np.minimum(np.maximum(reached, least), most)
            size = 1.0 + np.minimum(np.abs(a), np.abs(reached))
            slack = np.where(np.abs(missed) > SOFTENED * size, missed, 0.0)
        acts = found.multipliers
        if not acts.any():  # violations below the solver's accuracy, or that no motor can reduce
            acts = np.concatenate([_past(u, lower, upper), _past(a, least, most)])
        return LimitsOutcome(x, np.nan, acts, slack)

    def names(self, positions: Vector, velocities: Vector, limiting: Vector) -> tuple[str, ...]:
        """The names of the limits whose entry in `limiting` (nu + n,) is not zero: motors by name,
        joints as ``name.position``, ``name.velocity`` or ``name.acceleration``."""
        nu = self.mech.nu
        motors = [self.mech.actuator_names[i] for i in np.flatnonzero(limiting[:nu]).tolist()]
        return *motors, *self._joint_names(positions, velocities, limiting[nu:])

    def softened(
        self, positions: Vector, velocities: Vector, outcome: LimitsOutcome
    ) -> tuple[str, ...]:
        """The names of limits of joints that were softened, or that are exceeded already."""
        softened = self._joint_names(positions, velocities, outcome.slack)
        return tuple(dict.fromkeys(softened + self.passed(positions, velocities)))

    def passed(self, positions: Vector, velocities: Vector) -> tuple[str, ...]:
        """``name.position`` and ``name.velocity`` of the limits that are exceeded at this state."""
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
    request: LimitRequest, a: Vector, bounds: Bounds, response: tuple[Array, Array] | None
) -> LimitsOutcome | None:
    """The policy "scale": base + s (u_cmd - base) within all bounds; None if no s is."""
    lower, upper, least, most = bounds
    base, here = request.base(), request.u
    if response is not None:
        base = np.concatenate([base, caused(a, response[1], base, here)])
        here = np.concatenate([here, a])
        lower, upper = np.concatenate([lower, least]), np.concatenate([upper, most])
    s, which = _largest_scale(base, here, lower, upper)
    if s is None:
        return None
    if s == 1.0:  # the violation was rounded away
        s, which = LAST_BEFORE_ONE, int(np.argmax(np.abs(_past(here, lower, upper))))
    x = base + s * (here - base)
    acts = np.zeros(x.size)
    acts[which] = 1.0 if here[which] > base[which] else -1.0
    if response is not None:
        nu = request.u.size
        x, lower, upper = x[:nu], lower[:nu], upper[:nu]
    u = np.minimum(np.maximum(x, lower), upper)
    return LimitsOutcome(u, s, acts, np.zeros(a.size))


def _largest_scale(
    base: Vector, command: Vector, lower: Vector, upper: Vector
) -> tuple[float | None, int]:
    """The largest s in [0, 1] with base + s (command - base) within all bounds, None if there is
    none; and the index of the bound that limits it."""
    least, most, which = 0.0, 1.0, 0
    bounds = zip(base.tolist(), command.tolist(), lower.tolist(), upper.tolist(), strict=True)
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
    """Constants of the program.

    Attributes
    ----------
    S, per_S, SS, S2 : arrays
        `effort_sizes`, and its inverses, products and squares.
    regular : (nu, nu) array
        The regularisation of H~.
    box : Bounds
        The limits of efforts, without limits of joints.
    x_lower, x_upper : (nu,) arrays
        The limits of scaled efforts.
    no_rows : tuple of arrays
        Y, y_lower and y_upper of no rows.
    curved, fast : bool
        Whether limits of efforts depend on the speed; whether a velocity is limited.
    side : (2, 1) array
        -1 and 1, the direction of a limit.
    near : (2, n) array
        The speeds above which a coordinate is near its limit of velocity.
    ahead : float
        The time, s, within which it must not come near.
    other : (n,) array
        The change of an acceleration from which the end of a tick is evaluated again.
    no_changes : tuple
        The largest and least change so far, and the previous accelerations, before the first
        iteration of `LimitsLaw.outcome`.
    """

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
    no_changes: tuple[Vector, Vector, Vector | None]


def effort_sizes(bound: BoundLimits) -> Vector:
    """S: the largest effort of each motor; without a limit below `WIDE_OPEN`, that of the strongest
    other motor."""
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
    """Whether all of x is within its bounds; nan is not."""
    return all(((lower <= x) & (x <= upper)).tolist()) if x.size else True


def _past(x: Vector, lower: Vector, upper: Vector) -> Vector:
    """1 for x above its upper bound, -1 for x below its lower one or nan, else 0."""
    return np.asarray(x > upper, dtype=float) - ~(x >= lower)
