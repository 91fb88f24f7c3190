"""What motors can give and joints may do: limits as a caller says them, and tied to a mechanism.

    effort         lower <= u <= upper                  of motors
    speed_torque   |u| <= curve(|rate|)                 of motors, where they drive
    velocity       lower <= rate <= upper               of any coordinate, and of cut joints
    position       lower <= value <= upper              likewise
    acceleration   lower <= d rate / dt <= upper        likewise

`Limits` knows no mechanism; `bound_limits` puts everything into the mechanism's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, counted, known_name, listing, made_again, number, read_only
from holoctl.base.errors import InputError
from holoctl.constraints.contract import BoundRows, Constraint
from holoctl.constraints.joint_coordinates import (
    AXES_OF,
    Closures,
    FramePair,
    joint_called,
    part_names,
)
from holoctl.mechanism.description import closures_among
from holoctl.mechanism.scales import loop_length
from holoctl.tree.frozen_model import plain

__all__ = [
    "BoundLimits",
    "Limits",
    "applicable",
    "bound_limits",
    "checked_limits",
    "coordinates_called",
    "without_joints",
]

Array = NDArray[np.float64]
Pair = tuple[float, float]

_OF_JOINTS = ("position", "velocity", "acceleration")
_RANGES = ("effort", "velocity", "position", "acceleration")
_INF = float("inf")


@dataclass(frozen=True, repr=False)
class Limits:
    """What motors can give, and how far, how fast and how suddenly joints may move.

    A limit is a number x, for -x ... x, or a pair (lower, upper); ``inf`` stands for none. Each of
    the first four is given as

    - a number, or a tuple (lower, upper): for every motor;
    - a list or array with an entry for each motor, a number or a pair;
    - a mapping from names to numbers or pairs.

    Parameters
    ----------
    effort : float, tuple, list or mapping, optional
        Of motors, N m or N. A mapping names motors (``mech.actuator_names``). Lower must be below
        upper; zero need not lie between them: ``{"cable": (10, 200)}`` is a cable that always
        pulls.
    velocity : float, tuple, list or mapping, optional
        rad/s or m/s; lower below zero, upper above. A mapping names any coordinate
        (``mech.coordinate_names``), any joint, for all its coordinates, and cut joints: closures
        with ``joint=``, or ``closure[i]``.
    position : float, tuple, list or mapping, optional
        rad or m, named as for `velocity`. Joints that turn without end, ball and free joints have
        none. The angle of a cut joint needs both, between -pi and pi.
    acceleration : float, tuple, list or mapping, optional
        rad/s^2 or m/s^2, signs and names as for `velocity`. Where a position is limited it says how
        hard may be braked.
    speed_torque : list of (float, float) or mapping, optional
        Break points (speed, effort) of a motor: speeds from 0 on, ascending, rad/s or m/s; efforts
        not negative, not ascending, N m or N. Between them lines, behind the last its effort. So
        large may be the effort of a motor that drives (effort and rate of one sign); one that
        brakes may give the effort at speed 0. One list for every motor, or a mapping from motors
        to lists. With `effort`, the smaller counts.

    Raises
    ------
    InputError
        For what is no number, a lower limit that is not below the upper one, zero or a negative
        number where -x ... x is meant, velocities and accelerations that exclude zero, break points
        out of order. Names, and how many motors there are, are looked at by `Mechanism`.

    Examples
    --------
    >>> import holoctl as hc
    >>> limits = hc.Limits(effort={"left": 2.0, "right": (0.0, 5.0)}, velocity=10.0)
    >>> limits.scaled(0.5)
    Limits(effort={'left': 1.0, 'right': (0.0, 2.5)}, velocity=5.0)
    """

    effort: Any = None
    velocity: Any = None
    position: Any = None
    acceleration: Any = None
    speed_torque: Any = None

    def __post_init__(self) -> None:
        for what in _RANGES:
            object.__setattr__(self, what, _canonical(what, getattr(self, what)))
        object.__setattr__(self, "speed_torque", _canonical_curves(self.speed_torque))

    def __repr__(self) -> str:
        shown = (f"{what}={x!r}" for what, x in self._given().items() if x is not None)
        return f"Limits({', '.join(shown)})"

    def __hash__(self) -> int:
        given = self._given().values()
        return hash(tuple(frozenset(x.items()) if isinstance(x, dict) else x for x in given))

    def __reduce__(self) -> tuple[Any, ...]:  # mappings that are read-only do not pickle
        return made_again, (type(self), self._given())

    def _given(self) -> dict[str, Any]:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {what: dict(x) if isinstance(x, Mapping) else x for what, x in given.items()}

    def scaled(self, factor: float) -> Limits:
        """Tighter limits, for a margin.

        Efforts (those of `speed_torque` too), velocities and accelerations are multiplied; a least
        effort on the other side of zero, such as that of a cable that must pull, stays. Ranges of
        positions shrink about their middle; one that is open on a side stays.

        Parameters
        ----------
        factor : float
            Above 0, at most 1.

        Returns
        -------
        Limits

        Raises
        ------
        InputError
            For another factor, and where nothing is left between a least effort and the largest.
        """
        f = number("Limits.scaled: factor", factor)
        if not 0.0 < f <= 1.0:
            raise InputError(f"Limits.scaled: factor must be above 0, at most 1; got {f:g}")
        if f == 1.0:
            return self

        def tightened(lower: float, upper: float) -> Pair:
            return f * lower if lower < 0.0 else lower, f * upper if upper > 0.0 else upper

        def shrunk(lower: float, upper: float) -> Pair:
            if np.isinf(lower) or np.isinf(upper):
                return lower, upper
            middle, half = 0.5 * lower + 0.5 * upper, f * (0.5 * upper - 0.5 * lower)
            return middle - half, middle + half

        def lowered(points: tuple[Pair, ...]) -> tuple[Pair, ...]:
            return tuple((speed, f * effort) for speed, effort in points)

        changed: dict[str, Any] = {
            what: _each(getattr(self, what), shrunk if what == "position" else tightened)
            for what in _RANGES
        }
        curves = self.speed_torque
        if isinstance(curves, Mapping):
            curves = {name: lowered(points) for name, points in curves.items()}
        elif curves is not None:
            curves = lowered(curves)
        try:
            return Limits(**changed, speed_torque=curves)
        except InputError as error:
            raise InputError(f"Limits.scaled({f:g}): {error}") from None


# -------------------------------------------------------------------------- as a caller says it


def _each(given: Any, change: Callable[[float, float], Pair]) -> Any:
    """A limit of any form with each of its pairs changed; of a number the upper side is."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {name: _each(x, change) for name, x in given.items()}
    if isinstance(given, float):
        return change(-given, given)[1]
    if _is_pair(given):
        return change(*given)
    return tuple(change(*x) for x in given)


def _canonical(what: str, given: Any) -> Any:
    """A limit in its one form, which is a valid argument itself: a float, a pair of floats for all
    motors, a tuple of pairs, one for each motor, or a mapping to floats and pairs."""
    owner = f"Limits: {what}"
    if given is None:
        return None
    if isinstance(given, Mapping):
        by_name = {_name(owner, n): _one(f"{owner} of {n!r}", what, x) for n, x in given.items()}
        return MappingProxyType(by_name) if by_name else None
    if _is_number(given) or (isinstance(given, tuple) and _is_pair(given)):
        return _one(owner, what, given)
    if isinstance(given, tuple) and any(_is_number(x) for x in given):
        raise InputError(
            f"{owner}: a tuple is a pair (lower, upper) for every motor; got {_shown(given)}; a "
            "list has an entry for each motor"
        )
    if not _is_list(given):
        raise InputError(
            f"{owner} must be a number, a tuple (lower, upper), a list with an entry for each "
            f"motor, or a mapping from names; got {_shown(given)}"
        )
    both: list[Pair] = []
    for i, x in enumerate(given):
        try:
            found = _one(f"{owner}: entry {i}", what, x)
        except InputError as error:
            hint = "; one pair for all is a tuple (lower, upper)" if _is_pair(given) else ""
            raise InputError(f"{error}{hint}") from None
        both.append((-found, found) if isinstance(found, float) else found)
    return tuple(both)


def _one(name: str, what: str, x: Any) -> float | Pair:
    """A number, for both sides, or a pair; checked."""
    if _is_number(x):
        both = _bound(name, x)
        if both <= 0.0:
            raise InputError(
                f"{name} must be above zero, for -x ... x; got {both:g}; limits that differ are "
                "a pair (lower, upper)"
            )
        return both
    if not _is_pair(x):
        raise InputError(f"{name} must be a number or a pair (lower, upper); got {_shown(x)}")
    lower, upper = (_bound(name, side) for side in x)
    if not lower < upper:
        raise InputError(
            f"{name}: the lower limit must be below the upper one; got ({lower:g}, {upper:g})"
        )
    if what in ("velocity", "acceleration") and not lower < 0.0 < upper:
        raise InputError(
            f"{name}: the lower limit must be below zero and the upper one above; got "
            f"({lower:g}, {upper:g})"
        )
    return lower, upper


def _canonical_curves(given: Any) -> Any:
    owner = "Limits: speed_torque"
    if given is None:
        return None
    if isinstance(given, Mapping):
        by_name = {_name(owner, n): _points(f"{owner} of {n!r}", x) for n, x in given.items()}
        return MappingProxyType(by_name) if by_name else None
    return _points(owner, given)


def _points(name: str, given: Any) -> tuple[Pair, ...]:
    """Break points of one motor, checked."""
    rows = list(given) if _is_list(given) else []
    if not rows or not all(_is_pair(x) for x in rows):
        raise InputError(
            f"{name} must be a list of break points (speed, effort), one or more; got "
            f"{_shown(given)}"
        )
    points = tuple(
        (number(f"{name}: speed {i}", s), number(f"{name}: effort {i}", e))
        for i, (s, e) in enumerate(rows)
    )
    (first, stall), steps = points[0], list(pairwise(points))
    if first != 0.0:
        raise InputError(
            f"{name}: the first speed must be 0, where the motor stalls; got {first:g}"
        )
    for (s, e), (faster, less) in steps:
        if not s < faster:
            raise InputError(f"{name}: speeds must ascend; got {faster:g} behind {s:g}")
        if less > e:
            raise InputError(
                f"{name}: efforts must not ascend with the speed; got {less:g} behind {e:g}"
            )
    if not stall > 0.0:
        raise InputError(f"{name}: the effort at speed 0 must be above zero; got {stall:g}")
    if points[-1][1] < 0.0:
        raise InputError(f"{name}: efforts must not be negative; got {points[-1][1]:g}")
    return points


def _name(owner: str, name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"{owner}: names must be text; got {_shown(name)}")
    return str(name)


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


def _is_list(x: Any) -> bool:
    return isinstance(x, (list, tuple)) or (isinstance(x, np.ndarray) and x.ndim > 0)


def _is_pair(x: Any) -> bool:
    return _is_list(x) and len(x) == 2 and all(_is_number(side) for side in x)


def _bound(name: str, x: Any) -> float:
    """A number that may be infinite."""
    try:
        found = float(x)
    except OverflowError:
        found = _INF if x > 0 else -_INF
    if np.isnan(found):
        raise InputError(f"{name} must be a number; got nan")
    return found


def _shown(x: Any) -> str:
    return repr(str(x)[:60]) if isinstance(x, str) else str(x)[:60]


# --------------------------------------------------------------------------- tied to a mechanism


class Limited(Protocol):
    """What limits need to know of a mechanism, which is not finished when they are first tied."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> pin.Model: ...
    @property
    def nu(self) -> int: ...
    @property
    def B(self) -> Array: ...
    @property
    def actuated(self) -> Sequence[str]: ...
    @property
    def actuator_names(self) -> tuple[str, ...]: ...
    @property
    def coordinate_names(self) -> tuple[str, ...]: ...
    @property
    def joint_of(self) -> NDArray[np.intp]: ...
    @property
    def constraints(self) -> Sequence[Constraint]: ...
    @property
    def constraint_names(self) -> tuple[str, ...]: ...
    @property
    def parked(self) -> Sequence[tuple[int, Constraint]]: ...
    @property
    def bound(self) -> tuple[BoundRows, ...]: ...
    @property
    def row_scale(self) -> Vector: ...
    @property
    def column_scale(self) -> Vector: ...


@dataclass(frozen=True, eq=False)
class BoundLimits:
    """Limits in the order of a mechanism; arrays are read-only, ``inf`` stands for none.

    Attributes
    ----------
    limits : Limits
        What was given.
    effort : (2, nu) array
        Lower and upper limits of the motors, with those of `curves` at standstill.
    curves : tuple of nu (2, p) arrays or None
        Speeds and efforts of the break points of each motor.
    names : tuple of n str
        The coordinates that have a limit: those of the tree, in the order of v, then those of cut
        joints.
    columns, places : (n_tree,) int array
        Where those of the tree stand in v, and in q; -1 for what has no number of its own there.
    cut : tuple of (FramePair, int)
        Each of the others: a joint whose `at` tells its motion, and which coordinate of it. Ball
        and free joints that hang upside down in the tree are among them.
    position, velocity, acceleration : (2, n) array
        Lower and upper limits of the coordinates.
    units : (n,) array
        What makes each coordinate a pure number: a length for m, 1 for rad.
    """

    limits: Limits
    effort: Array
    curves: tuple[Array | None, ...]
    names: tuple[str, ...]
    columns: NDArray[np.intp]
    places: NDArray[np.intp]
    cut: tuple[tuple[FramePair, int], ...]
    position: Array
    velocity: Array
    acceleration: Array
    units: Vector


def checked_limits(limits: Any, owner: str) -> Limits:
    """`limits` if they are some, or an `InputError`."""
    if isinstance(limits, Limits):
        return limits
    raise InputError(
        f"{owner}: limits must be hc.Limits(effort=..., velocity=..., ...); got "
        f"{type(limits).__name__}"
    )


def bound_limits(mech: Limited, limits: Limits) -> BoundLimits:
    """The limits of a mechanism's motors and joints, in its order.

    Closures that are switched off must fit too, and limit nothing.

    Raises
    ------
    InputError
        For what are no `Limits`, names that are not the mechanism's or name a coordinate twice,
        lists of another length than nu, positions of joints that have none, a motor without any
        effort that it may give.
    """
    checked_limits(limits, mech.name)
    owner = f"{mech.name}: limits"
    curves = _curves(mech, limits.speed_torque, f"{owner}: speed_torque")
    effort = _efforts(mech, limits.effort, f"{owner}: effort")
    for i, curve in enumerate(curves):
        if curve is not None:
            stall = float(curve[1, 0])
            effort[:, i] = max(effort[0, i], -stall), min(effort[1, i], stall)
            if not effort[0, i] < effort[1, i]:
                raise InputError(
                    f"{owner}: {mech.actuator_names[i]!r} can give no effort: speed_torque allows "
                    f"{stall:g} at standstill, which is outside its effort limits"
                )
    on, all_on = closures_among(mech.constraints, mech.parked)
    found: dict[_Place, dict[str, Pair]] = {}
    for what in _OF_JOINTS:
        of: dict[_Place, str] = {}
        for name, pair in _by_joint(mech, getattr(limits, what), f"{owner}: {what}"):
            off = joint_called(mech.model, name, on, f"{owner}: {what}") is None
            for place in _places(mech, name, all_on, f"{owner}: {what}"):
                if place in of:
                    raise InputError(
                        f"{owner}: {what}: {of[place]!r} and {name!r} name the same coordinate"
                    )
                of[place] = name
                if np.isinf(pair).all():
                    continue
                if what == "position":
                    place.check_position(mech, pair, f"{owner}: position: {name!r}")
                if not off:
                    found.setdefault(place, {})[what] = pair
    order = sorted(found, key=lambda place: place.rank(mech))
    columns = [place.column for place in order if place.joint is None]
    bounds = {
        what: np.array([found[p].get(what, (-_INF, _INF)) for p in order]).reshape(-1, 2).T.copy()
        for what in _OF_JOINTS
    }
    return BoundLimits(
        limits=limits,
        effort=read_only(effort),
        curves=curves,
        names=tuple(place.label(mech) for place in order),
        columns=read_only(np.array(columns, dtype=np.intp)),
        places=read_only(np.array([_in_q(mech, c) for c in columns], dtype=np.intp)),
        cut=tuple((place.joint, place.column) for place in order if place.joint is not None),
        units=read_only(np.array([place.unit(mech) for place in order], dtype=float)),
        **{what: read_only(x) for what, x in bounds.items()},
    )


def coordinates_called(mech: Limited, name: str, owner: str) -> tuple[str, ...]:
    """The names of the coordinates that a name stands for, as `BoundLimits` has them; closures
    that are switched off are as others.

    Raises
    ------
    InputError
        For a name that is no joint, or a weld.
    """
    all_on = closures_among(mech.constraints, mech.parked)[1]
    return tuple(place.label(mech) for place in _places(mech, name, all_on, owner))


def applicable(mech: Limited, limits: Limits) -> Limits:
    """Limits without those of motors that are gone, for a mechanism that was given other motors.

    Coordinates of the tree may be named among the motors. What such a limit says is of the effort
    on the coordinate. If a motor that was given by a matrix acts there and nowhere else, and no
    other motor does, it is the limit of that motor, through its gear; else it says nothing.
    """
    changed: dict[str, Any] = {}
    for what, through in (("effort", _effort_through), ("speed_torque", _curve_through)):
        given = getattr(limits, what)
        if isinstance(given, Mapping) and not set(mech.actuator_names).issuperset(given):
            own = {name: x for name, x in given.items() if _is_no_drive(mech, name)}
            for name in given.keys() - own.keys():
                motor = _only_motor(mech, name)
                if motor is not None and mech.actuator_names[motor] not in own:
                    gear = float(mech.B[mech.coordinate_names.index(name), motor])
                    own[mech.actuator_names[motor]] = through(given[name], gear)
            changed[what] = own
    return replace(limits, **changed) if changed else limits


def _is_no_drive(mech: Limited, name: str) -> bool:
    """Whether it is a motor, or nothing at all; not a coordinate without a motor of its name."""
    return name in mech.actuator_names or name not in mech.coordinate_names


def _only_motor(mech: Limited, coordinate: str) -> int | None:
    """The motor that acts on this coordinate alone, if no other does; never one that has a name."""
    row = mech.coordinate_names.index(coordinate)
    acting = np.flatnonzero(mech.B[row])
    if acting.size != 1 or np.count_nonzero(mech.B[:, acting[0]]) != 1:
        return None
    return int(acting[0])


def _effort_through(x: float | Pair, gear: float) -> float | Pair:
    if isinstance(x, float):
        return x / abs(gear)
    lower, upper = sorted((x[0] / gear, x[1] / gear))
    return lower, upper


def _curve_through(points: tuple[Pair, ...], gear: float) -> tuple[Pair, ...]:
    return tuple((speed * abs(gear), effort / abs(gear)) for speed, effort in points)


def without_joints(mech: Limited, limits: Limits, closures: Sequence[str]) -> Limits:
    """Limits without those of cut joints that go: the closures of these names."""
    changed: dict[str, Any] = {}
    for what in _OF_JOINTS:
        given = getattr(limits, what)
        if isinstance(given, Mapping):
            changed[what] = {
                name: x
                for name, x in given.items()
                if not {name, name.rpartition("[")[0]} & set(closures)
                or part_names(mech.model, name)
                or name in mech.coordinate_names
            }
    return replace(limits, **changed)


def _efforts(mech: Limited, given: Any, owner: str) -> Array:
    """Lower and upper limits (2, nu)."""
    found = np.repeat([[-_INF], [_INF]], mech.nu, axis=1)
    if isinstance(given, Mapping):
        for name, x in given.items():
            known_name(name, mech.actuator_names, "motor", owner)
            found[:, mech.actuator_names.index(name)] = _both(x)
    elif given is not None:
        found[:] = np.array(_for_motors(mech, given, owner)).T
    return found


def _curves(mech: Limited, given: Any, owner: str) -> tuple[Array | None, ...]:
    if given is None:
        return (None,) * mech.nu
    if not isinstance(given, Mapping):
        _check_motors(mech, owner)
        given = dict.fromkeys(mech.actuator_names, given)
    for name in given:
        known_name(name, mech.actuator_names, "motor", owner)
    return tuple(
        read_only(np.array(given[name]).T.copy()) if name in given else None
        for name in mech.actuator_names
    )


def _by_joint(mech: Limited, given: Any, owner: str) -> Iterator[tuple[str, Pair]]:
    """Names of joints or coordinates with their limits; what is for motors, by their names."""
    if isinstance(given, Mapping):
        for name, x in given.items():
            yield name, _both(x)
    elif given is not None:
        pairs = _for_motors(mech, given, owner)
        if not mech.actuated:
            raise InputError(
                f"{owner}: the motors act by a matrix, actuation=, so none is that of one joint; "
                "name the coordinates in a mapping"
            )
        yield from zip(mech.actuated, pairs, strict=True)


def _for_motors(mech: Limited, given: Any, owner: str) -> list[Pair]:
    """A pair for each motor, of what was not given by name."""
    _check_motors(mech, owner)
    if isinstance(given, float) or _is_pair(given):
        return [_both(given)] * mech.nu
    if len(given) != mech.nu:
        hint = "; one pair for all is a tuple (lower, upper)" if len(given) == 2 else ""
        raise InputError(
            f"{owner}: a list has an entry for each motor; got {len(given)} for "
            f"{counted(mech.nu, 'motor')}: {listing(mech.actuator_names)}{hint}"
        )
    return list(given)


def _check_motors(mech: Limited, owner: str) -> None:
    if not mech.nu:
        raise InputError(f"{owner}: this is for every motor, and there is none; name coordinates")


def _both(x: float | Pair) -> Pair:
    return (-x, x) if isinstance(x, float) else x


# ---------------------------------------------------------------------- coordinates that have some


@dataclass(frozen=True, eq=False)
class _Place:
    """A coordinate of the tree, or of a joint that is read off two frames.

    Attributes
    ----------
    column : int
        In v, or among the coordinates of the joint.
    joint : FramePair or None
        The whole joint; None for a coordinate of the tree.
    """

    column: int
    joint: FramePair | None = None

    @property
    def _key(self) -> tuple[str, int]:
        return ("" if self.joint is None else self.joint.name, self.column)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def rank(self, mech: Limited) -> tuple[int, int, int]:
        """The tree first, then what hangs upside down in it, then cut joints in their order."""
        if self.joint is None:
            return 0, self.column, 0
        if part_names(mech.model, self.joint.name):
            return 1, _first_column(self.joint), self.column
        return 2, mech.constraint_names.index(self.joint.name), self.column

    def label(self, mech: Limited) -> str:
        if self.joint is None:
            return mech.coordinate_names[self.column]
        return f"{self.joint.name}[{self.column}]" if self.joint.count > 1 else self.joint.name

    def unit(self, mech: Limited) -> float:
        if self.joint is None:
            return float(mech.column_scale[self.column])
        return _length(mech, self.joint) if self.joint.axes[self.column].linear else 1.0

    def check_position(self, mech: Limited, pair: Pair, owner: str) -> None:
        """Raise `InputError` for a coordinate whose position nobody can read, or not so far."""
        if self.joint is None:
            if _in_q(mech, self.column) < 0:
                model, j = plain(mech.model), int(mech.joint_of[self.column])
                why = (
                    "turns without end, so no position is its last one"
                    if model.nvs[j] == 1
                    else f"is of a {model.joints[j].shortname()}, where no number is its position"
                )
                raise InputError(
                    f"{owner}: {mech.coordinate_names[self.column]!r} {why}; limit its velocity"
                )
        elif self.joint.kind in ("spherical", "free"):
            raise InputError(
                f"{owner} is of a {self.joint.kind} joint, where no number is its position; limit "
                "its velocity"
            )
        elif not self.joint.axes[self.column].linear and not -np.pi < pair[0] < pair[1] < np.pi:
            raise InputError(
                f"{owner}: {self.label(mech)!r} is an angle of a cut joint, known between -pi and "
                f"pi only, so both limits must lie there; got ({pair[0]:g}, {pair[1]:g}). For "
                "others, cut the loop at another joint"
            )


def _places(mech: Limited, name: str, closures: Closures, owner: str) -> list[_Place]:
    """The coordinates that a name stands for."""
    joint = joint_called(mech.model, name, closures, owner)
    if joint is None or not joint.count:
        raise InputError(f"{owner}: {name!r} is a weld, in which nothing moves")
    if not isinstance(joint, FramePair):
        return [_Place(int(column)) for column in joint.columns]
    every = AXES_OF[joint.kind]
    whole = replace(joint, axes=every)
    return [_Place(every.index(axis), whole) for axis in joint.axes]


def _in_q(mech: Limited, column: int) -> int:
    """Where a coordinate of the tree stands in q; -1 where it has no number of its own."""
    model, j = plain(mech.model), int(mech.joint_of[column])
    flat = model.nqs[j] == model.nvs[j]
    return int(model.idx_qs[j] + column - model.idx_vs[j]) if flat else -1


def _length(mech: Limited, joint: FramePair) -> float:
    """The size of what a joint belongs to, m: of its loop, or of the tree where it hangs in it."""
    if part_names(mech.model, joint.name):
        return float(mech.column_scale[_first_column(joint)])
    return loop_length(mech.bound, mech.constraint_names.index(joint.name), mech.row_scale)


def _first_column(joint: FramePair) -> int:
    """The first coordinate, in v, of a joint that hangs upside down in the tree."""
    return int(np.flatnonzero(joint.moved)[0])
