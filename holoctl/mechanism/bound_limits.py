"""Limits tied to a mechanism: names looked up, arrays in the order of its motors and coordinates.

    BoundLimits      arrays over motors, and over the coordinates that have a limit
    a place          a coordinate of the tree, or of a joint given by two frames

`applicable` and `without_joints` remove limits that no longer apply after a change of motors or
constraints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, counted, known_name, listing, read_only
from holoctl.base.errors import InputError
from holoctl.constraints.constraint_protocol import BoundRows, Constraint
from holoctl.constraints.joint_coordinates import (
    AXES_OF,
    Closures,
    FramePair,
    joint_called,
    part_names,
)
from holoctl.mechanism.description import closures_among
from holoctl.mechanism.limits import Limits, Pair, checked_limits, is_pair
from holoctl.mechanism.scales import loop_length
from holoctl.tree.frozen_model import plain

__all__ = ["BoundLimits", "applicable", "bound_limits", "coordinates_called", "without_joints"]


_OF_JOINTS = ("position", "velocity", "acceleration")
_INF = float("inf")


class Limited(Protocol):
    """The attributes of a mechanism that limits use; other attributes are not set yet when limits
    are first bound."""

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
    """Limits in the order of a mechanism; arrays are read-only, ``inf`` means no limit.

    Attributes
    ----------
    limits : Limits
        The given limits.
    effort : (2, nu) array
        Lower and upper limits of the motors, with those of `curves` at standstill.
    curves : tuple of nu (2, p) arrays or None
        Speeds and efforts of the break points of each motor.
    names : tuple of n str
        The coordinates that have a limit: those of the tree, in the order of v, then those of cut
        joints.
    columns, places : (n_tree,) int array
        The indices of those of the tree in v, and in q; -1 for a coordinate that is not a number in
        q.
    cut : tuple of (FramePair, int)
        Each of the others: a joint whose `at` computes its motion, and the index of its coordinate.
        Spherical and free joints that are reversed in the tree are among them.
    position, velocity, acceleration : (2, n) array
        Lower and upper limits of the coordinates.
    units : (n,) array
        Scale of each coordinate: a length for m, 1 for rad.
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


def bound_limits(mech: Limited, limits: Limits) -> BoundLimits:
    """The limits of a mechanism's motors and joints, in its order.

    Closures that are switched off are checked too, but limit nothing.

    Raises
    ------
    InputError
        For an object other than `Limits`, names that are not the mechanism's or name a coordinate
        twice, lists of another length than nu, positions of joints that have none, a motor whose
        limits allow no effort.
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
    found: dict[_CoordinateKey, dict[str, Pair]] = {}
    for what in _OF_JOINTS:
        of: dict[_CoordinateKey, str] = {}
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
    """The coordinates that a name refers to, by their names in `BoundLimits`; closures that are
    switched off are treated as others.

    Raises
    ------
    InputError
        For a name that is not a joint, and for a weld.
    """
    all_on = closures_among(mech.constraints, mech.parked)[1]
    return tuple(place.label(mech) for place in _places(mech, name, all_on, owner))


def applicable(mech: Limited, limits: Limits) -> Limits:
    """Limits without those of removed motors, for a mechanism that was given other motors.

    Coordinates of the tree may be named among the motors. Such a limit applies to the effort on the
    coordinate. If one motor given by a matrix acts on that coordinate only, and no other motor acts
    on it, it is the limit of that motor, through its gear; otherwise it is removed.
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
    """Whether a name is that of a motor, or unknown; not that of a coordinate without a motor."""
    return name in mech.actuator_names or name not in mech.coordinate_names


def _only_motor(mech: Limited, coordinate: str) -> int | None:
    """The motor given by a matrix that acts on this coordinate alone, if no other motor does."""
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
    """Limits without those of cut joints that are removed: the closures of these names."""
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
    """Names of joints or coordinates with their limits; limits for every motor, by motor name."""
    if isinstance(given, Mapping):
        for name, x in given.items():
            yield name, _both(x)
    elif given is not None:
        pairs = _for_motors(mech, given, owner)
        if not mech.actuated:
            raise InputError(
                f"{owner}: the motors act by a matrix, actuation=, so none belongs to one joint; "
                "name the coordinates in a mapping"
            )
        yield from zip(mech.actuated, pairs, strict=True)


def _for_motors(mech: Limited, given: Any, owner: str) -> list[Pair]:
    """A pair for each motor, from limits that were not given by name."""
    _check_motors(mech, owner)
    if isinstance(given, float) or is_pair(given):
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
class _CoordinateKey:
    """A coordinate of the tree, or of a joint given by two frames.

    Attributes
    ----------
    column : int
        Its index in v, or among the coordinates of the joint.
    joint : FramePair or None
        The whole joint; None for a coordinate of the tree.
    """

    column: int
    joint: FramePair | None = None

    @property
    def _key(self) -> tuple[str, int]:
        return ("" if self.joint is None else self.joint.name, self.column)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _CoordinateKey) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def rank(self, mech: Limited) -> tuple[int, int, int]:
        """The order: the tree, then joints that are reversed in it, then cut joints in their
        order."""
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
        """Raise `InputError` for a coordinate without a position that is a number, and for an angle
        of a cut joint beyond half a turn."""
        if self.joint is None:
            if _in_q(mech, self.column) < 0:
                model, j = plain(mech.model), int(mech.joint_of[self.column])
                why = (
                    "is continuous, so it has no position limits"
                    if model.nvs[j] == 1
                    else f"is of a {model.joints[j].shortname()}, whose position is not a number"
                )
                raise InputError(
                    f"{owner}: {mech.coordinate_names[self.column]!r} {why}; limit its velocity"
                )
        elif self.joint.kind in ("spherical", "free"):
            raise InputError(
                f"{owner} is of a {self.joint.kind} joint, whose position is not a number; limit "
                "its velocity"
            )
        elif not self.joint.axes[self.column].linear and not -np.pi < pair[0] < pair[1] < np.pi:
            raise InputError(
                f"{owner}: {self.label(mech)!r} is an angle of a cut joint, known between -pi and "
                f"pi only, so both limits must lie there; got ({pair[0]:g}, {pair[1]:g}). For "
                "others, cut the loop at another joint"
            )


def _places(mech: Limited, name: str, closures: Closures, owner: str) -> list[_CoordinateKey]:
    """The coordinates that a name refers to."""
    joint = joint_called(mech.model, name, closures, owner)
    if joint is None or not joint.count:
        raise InputError(f"{owner}: {name!r} is a weld, in which nothing moves")
    if not isinstance(joint, FramePair):
        return [_CoordinateKey(int(column)) for column in joint.columns]
    every = AXES_OF[joint.kind]
    whole = replace(joint, axes=every)
    return [_CoordinateKey(every.index(axis), whole) for axis in joint.axes]


def _in_q(mech: Limited, column: int) -> int:
    """The index of a coordinate of the tree in q; -1 if it is not a number in q."""
    model, j = plain(mech.model), int(mech.joint_of[column])
    flat = model.nqs[j] == model.nvs[j]
    return int(model.idx_qs[j] + column - model.idx_vs[j]) if flat else -1


def _length(mech: Limited, joint: FramePair) -> float:
    """The size of the loop of a cut joint, or of the tree for a joint in it, m."""
    if part_names(mech.model, joint.name):
        return float(mech.column_scale[_first_column(joint)])
    return loop_length(mech.bound, mech.constraint_names.index(joint.name), mech.row_scale)


def _first_column(joint: FramePair) -> int:
    """The first coordinate, in v, of a joint that is reversed in the tree."""
    return int(np.flatnonzero(joint.moved)[0])
