"""The measurement model: positions and rates of measured joints, of the tree and cut ones.

    x = s(q)    the position numbers of each joint in order; for a continuous joint its angle
    S v         their rates: one for each coordinate

A joint that is measured whole may have more numbers than coordinates: a ball joint 4, a free
joint 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.angles import wrapped
from holoctl.base.checks import Array, Indices, Vector, listing, name_list, read_only
from holoctl.base.errors import InputError
from holoctl.constraints.closure import Closure
from holoctl.constraints.contact import Contact
from holoctl.constraints.joint_coordinates import (
    FramePair,
    Joint,
    TreeJoint,
    joint_called,
    part_names,
)
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.scales import loop_length
from holoctl.tree.configurations import checked_configuration
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = ["MeasurementModel", "measurement_model", "scalar_measurements"]


WHOLE = ("spherical", "free")
"""Kinds of cut joints whose coordinates cannot be measured one by one."""


@dataclass(frozen=True, eq=False)
class MeasurementModel:
    """Which joints are measured, in their order; `measurement_model` makes one.

    Attributes
    ----------
    mech : Mechanism
    names : tuple of str
        Joints, coordinates or closures.
    joints : tuple of TreeJoint or FramePair
        The joints of these names; a name may be that of several joints in series.
    labels : tuple of m str
        A name for each rate.
    columns : (m,) int array
        The coordinate of each rate; -1 for one of a cut joint.
    unit : (m,) array
        The unit that each rate is divided by: a length for m, 1 for rad.
    numbers : int
        The number p of position numbers.
    places : (..,) int array
        The indices in q of the numbers of tree joints; of a continuous joint that of its cosine.
    of_places : (..,) int array
        The indices in x of these numbers.
    turning : (..,) int array
        The indices in `places` of continuous joints.
    of_cut : (..,) int array
        The indices in x of the numbers of cut joints; their rates have ``columns < 0``.
    turns : (m,) bool array
        Which rates are those of angles that are known up to whole turns.
    """

    mech: Mechanism
    names: tuple[str, ...]
    joints: tuple[Joint, ...]
    labels: tuple[str, ...]
    columns: Indices
    unit: Vector
    numbers: int
    places: Indices = field(repr=False)
    of_places: Indices = field(repr=False)
    turning: Indices = field(repr=False)
    of_cut: Indices = field(repr=False)
    turns: NDArray[np.bool_] = field(repr=False)

    @property
    def cut(self) -> tuple[FramePair, ...]:
        """The cut joints."""
        return tuple(joint for joint in self.joints if isinstance(joint, FramePair))

    @property
    def flat(self) -> bool:
        """Whether x are entries of q, and differences of x are differences of these entries."""
        return not (self.whole or self.of_cut.size or self.turning.size)

    @property
    def whole(self) -> bool:
        """Whether some joint has more numbers than rates."""
        return self.numbers != self.columns.size

    def at(self, q: Vector) -> Vector:
        """The positions x = s(q) (p,), rad or m."""
        x = np.zeros(self.numbers)
        self._read_off(q, x)
        if self.of_cut.size:
            x[self.of_cut] = self.cut_values(self._kinematics(q))
        return x

    def rates(self, q: Vector, v: Vector) -> Vector:
        """The rates ``S v`` (m,), rad/s or m/s."""
        rates: Vector = self.jacobian(q).dot(v)
        return rates

    def jacobian(self, q: Vector) -> Array:
        """S (m, nv) at a configuration."""
        S = np.zeros((self.columns.size, self.mech.nv))
        own = np.flatnonzero(self.columns >= 0)
        S[own, self.columns[own]] = 1.0
        if self.of_cut.size:
            S[self.columns < 0] = self.cut_jacobian(self._kinematics(q))
        return S

    def scaled_jacobian(self, q: Vector) -> Array:
        """``S c / u`` (m, nv): scaled rates of the sensors by scaled velocities."""
        scaled: Array = self.jacobian(q) * self.mech.column_scale / self.unit[:, None]
        return scaled

    def placed(self, q: Vector, x: Vector) -> Vector:
        """A copy of q with the measured joints of the tree at the positions x."""
        found, there = q.copy(), self.places[self.turning]
        found[self.places] = x[self.of_places]
        angles = x[self.of_places[self.turning]]
        found[there], found[there + 1] = np.cos(angles), np.sin(angles)
        return found

    def differences(self) -> Callable[[Vector, Vector, Vector], Vector]:
        """A function (q, x, cut) that returns x - s(q) (m,), angles by the shorter way round;
        `cut` are the values of the cut joints at q."""
        places, model = self.places, self.mech.model
        own = self.columns >= 0
        columns, of_cut, angular, m = self.columns[own], self.of_cut, self.turns[~own], own.size
        if self.flat:
            return lambda q, x, cut: x - q.take(places)

        def differ(q: Vector, x: Vector, cut: Vector) -> Vector:
            found = np.zeros(m)
            found[own] = pin.difference(model, q, self.placed(q, x)).take(columns)
            if of_cut.size:
                off = x[of_cut] - cut
                found[~own] = np.where(angular, wrapped(off), off)
            return found

        return differ

    def taken_back(self) -> Callable[[Vector, Vector], Vector]:
        """A function (x, step) that returns the positions from which a step (m,) leads to x."""
        model, own, before = self.mech.model, self.columns >= 0, self.mech.reference
        if not self.whole:
            return lambda x, step: x - step
        columns, of_cut = self.columns[own], self.of_cut

        def take_back(x: Vector, step: Vector) -> Vector:
            found, back = x.copy(), np.zeros(model.nv)
            back[columns] = -step[own]
            self._read_off(pin.integrate(model, self.placed(before, x), back), found)
            found[of_cut] -= step[~own]
            return found

        return take_back

    def cut_values(self, kin: Kinematics) -> Vector:
        """The positions of the measured cut joints, rad or m."""
        return np.concatenate([np.zeros(0), *(joint.value(kin) for joint in self.cut)])

    def cut_jacobian(self, kin: Kinematics) -> Array:
        """The Jacobian of the positions of the measured cut joints."""
        return np.vstack(
            [np.zeros((0, self.mech.nv)), *(joint.jacobian(kin) for joint in self.cut)]
        )

    def checked(self, name: str, x: Vector) -> Vector:
        """A copy of measured positions with unit quaternions; for joints that are measured whole.

        Raises
        ------
        InputError
            For a quaternion, or cosine and sine, that is not of norm one.
        """
        mech = self.mech
        try:
            q = checked_configuration(mech.model, self.placed(mech.reference, x), name)
        except InputError as error:
            raise InputError(f"{mech.name}: {name} as a configuration: {error}") from None
        found = x.copy()
        rest = np.setdiff1d(np.arange(self.places.size), self.turning)
        found[self.of_places[rest]] = q[self.places[rest]]
        return found

    def _read_off(self, q: Vector, x: Vector) -> None:
        """Write the positions of the tree joints at q into x."""
        x[self.of_places] = q[self.places]
        there = self.places[self.turning]
        x[self.of_places[self.turning]] = np.arctan2(q[there + 1], q[there])

    def _kinematics(self, q: Vector) -> Kinematics:
        model = self.mech.model
        return kinematics(model, model.createData(), q, np.zeros(model.nv), 0.0)


def measurement_model(mech: Mechanism, measured: Iterable[str] | None = None) -> MeasurementModel:
    """The measurement model of joints, coordinates, and closures that are joints, by name.

    A floating base is measured whole, before all others if it is not named.

    Parameters
    ----------
    mech : Mechanism
    measured : iterable of str, optional
        Default: the motors.

    Returns
    -------
    MeasurementModel

    Raises
    ------
    InputError
        For a name that is no joint, repeats coordinates of another name, or has no position of its
        own; without names if the motors do not act on joints.
    """
    owner = f"{mech.name}: measured"
    names = [str(n) if isinstance(n, str) else n for n in _given(mech, measured, owner)]
    base = _floating_base(mech)
    if base is not None and base not in names:
        names.insert(0, base)
    closures = _closures(mech)
    parts = [part for name in names for part in part_names(mech.model, name) or (name,)]
    joints = [_joint(mech, part, closures, owner) for part in parts]
    return _put_together(mech, tuple(names), tuple(parts), tuple(joints), owner)


def scalar_measurements(mech: Mechanism) -> MeasurementModel | None:
    """All measurements by one number: joints of one coordinate, of the tree and cut ones, and
    single coordinates of other joints; None if there are none."""
    found = list[tuple[str, Joint]]()
    for name in mech.coordinate_names:
        joint = joint_called(mech.model, name, {}, "measured")
        if isinstance(joint, TreeJoint) and joint.places.size:
            found.append((name, joint))
    for name, closure in _closures(mech).items():
        if closure.joint is not None and not part_names(mech.model, name):
            joint = joint_called(mech.model, name, {name: closure}, "measured")
            if isinstance(joint, FramePair) and joint.count == 1:
                found.append((name, joint))
    if not found:
        return None
    names, joints = zip(*found, strict=True)
    return _put_together(mech, names, names, joints, "measured")


def _closures(mech: Mechanism) -> dict[str, Closure]:
    return {
        name: c
        for c, name in zip(mech.constraints, mech.constraint_names, strict=True)
        if isinstance(c, Closure)
    }


def _given(mech: Mechanism, measured: Any, owner: str) -> list[Any]:
    if measured is not None:
        names = name_list("measured", measured)
        if not names:
            raise InputError(f"{owner}: name one joint or more; got none")
        return names
    if not mech.actuated:
        why = "its motors act by an actuation matrix" if mech.nu else "it has no motors"
        raise InputError(f"{owner}: {why}, so name the joints that are measured")
    if mech.motors.missing:
        raise InputError(
            f"{owner}: motor {mech.motors.missing}, which has no position of its own; name the "
            "joints that are measured"
        )
    return list(mech.actuated)


def _floating_base(mech: Mechanism) -> str | None:
    """The floating base: the only joint at the world, if it is free and no constraint but contacts
    depends on it; None otherwise."""
    model = plain(mech.model)
    roots = [j for j in range(1, model.njoints) if model.parents[j] == 0]
    if len(roots) != 1 or model.joints[roots[0]].shortname() != "JointModelFreeFlyer":
        return None
    base = slice(model.idx_vs[roots[0]], model.idx_vs[roots[0]] + 6)
    for constraint, bound in zip(mech.constraints, mech.bound, strict=True):
        if not isinstance(constraint, Contact) and bound.support[:, base].any():
            return None
    return str(model.names[roots[0]])


def _joint(mech: Mechanism, name: Any, closures: dict[str, Closure], owner: str) -> Joint:
    joint = joint_called(mech.model, name, closures, owner)
    if joint is None:
        raise InputError(f"{owner}: {name!r} is switched off")
    if isinstance(joint, TreeJoint):
        if not joint.places.size:
            whole = plain(mech.model).names[int(mech.joint_of[joint.columns[0]])]
            raise InputError(
                f"{owner}: {name!r} is one coordinate of a joint that has no position number for "
                f"each coordinate; measure {whole!r} whole"
            )
        return joint
    if joint.kind in WHOLE:
        raise InputError(
            f"{owner}: {name!r} is a cut {joint.kind} joint, whose coordinates cannot be read off "
            "one by one; measure joints of one coordinate each"
        )
    if not joint.axes:
        raise InputError(f"{owner}: {name!r} is a weld, which does not move")
    return joint


def _put_together(
    mech: Mechanism, names: tuple[str, ...], parts: tuple[str, ...], joints: tuple[Joint, ...],
    owner: str,
) -> MeasurementModel:  # fmt: skip
    columns, unit, labels = list[int](), list[float](), list[str]()
    places, of_places, turning = list[int](), list[int](), list[int]()
    of_cut, turns, numbers = list[int](), list[bool](), 0
    for name, joint in zip(parts, joints, strict=True):
        labels += [name] if joint.count == 1 else [f"{name}[{i}]" for i in range(joint.count)]
        if isinstance(joint, TreeJoint):
            columns += joint.columns.tolist()
            unit += mech.column_scale[joint.columns].tolist()
            own = joint.places[:1] if joint.turning else joint.places
            turning += [len(places)] if joint.turning else []
            turns += [joint.turning] * joint.count
            places += own.tolist()
            of_places += range(numbers, numbers + own.size)
            numbers += own.size
        else:
            columns += [-1] * joint.count
            unit += [_length(mech, joint.name) if x.linear else 1.0 for x in joint.axes]
            of_cut += range(numbers, numbers + joint.count)
            turns += [not x.linear for x in joint.axes]
            numbers += joint.count
    own_columns = [c for c in columns if c >= 0]
    if len(set(own_columns)) < len(own_columns) or len(set(labels)) < len(labels):
        raise InputError(f"{owner} names a coordinate twice: {listing(names)}")

    def fixed(x: list[int]) -> Indices:
        return read_only(np.array(x, dtype=np.intp))

    return MeasurementModel(
        mech, names, joints, tuple(labels), fixed(columns), read_only(np.array(unit)), numbers,
        fixed(places), fixed(of_places), fixed(turning), fixed(of_cut),
        read_only(np.array(turns, dtype=bool)),
    )  # fmt: skip


def _length(mech: Mechanism, constraint: str) -> float:
    """The size of the loop that a constraint closes, m."""
    return loop_length(mech.bound, mech.constraint_names.index(constraint), mech.row_scale)
