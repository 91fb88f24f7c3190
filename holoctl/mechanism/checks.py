"""Checks of mechanisms, their states, and names of their coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import (
    Vector,
    as_given,
    instant,
    known_name,
    listing,
    name_list,
    shown,
    stored,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import FASTEST
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.configurations import checked_configuration
from holoctl.tree.frozen_model import check_unchanged, has_joint

__all__ = [
    "check_class",
    "check_configuration",
    "check_mechanism",
    "check_out",
    "check_range",
    "check_state",
    "coordinate_indices",
    "state_in_a_tick",
]

FARTHEST = 1e6  # m
"""Largest translational coordinate that is accepted."""


def check_mechanism(mech: Any, what: str = "mech") -> None:
    """Raise `InputError` for anything but a Mechanism, and for one whose model was changed."""
    check_class(mech, what)
    check_unchanged(mech.model, mech.name)


def check_class(mech: Any, what: str = "mech") -> None:
    """Raise `InputError` for anything but a Mechanism; `check_state` checks its model."""
    if not isinstance(mech, Mechanism):
        hint = "; hc.Mechanism(model, ...) makes one" if isinstance(mech, pin.Model) else ""
        raise InputError(f"{what} must be a Mechanism; got {type(mech).__name__}{hint}")


def check_state(
    mech: Mechanism, q: Any, v: Any, t: Any = 0.0, names: tuple[str, str] = ("q", "v")
) -> tuple[Vector, Vector, float]:
    """q, v and t as floats, checked: shapes, finite entries, unit quaternions."""
    q = check_configuration(mech, q, names[0])
    v = vector(names[1], v, mech.nv, "velocity")
    check_range(mech, q, v, names)
    return q, v, instant(t)


def check_range(mech: Mechanism, q: Vector, v: Vector, names: tuple[str, str] = ("q", "v")) -> None:
    """Raise `InputError` for lengths and speeds so large that rounding would be visible.

    Motions of bodies are computed about the origin of the world: a motion common to all bodies
    cancels in every torque, but its rounding does not.
    """
    in_q, in_v = mech.lengths
    for name, x, at, most, unit in (
        (names[0], q, in_q, FARTHEST, "m"), (names[1], v, in_v, FASTEST, "m/s"),
    ):  # fmt: skip
        if largest(x.take(at)) <= most:
            continue
        beyond = at[(np.abs(x[at]) > most) & np.isfinite(x[at])]
        if beyond.size:
            raise InputError(
                f"{name}: entry {beyond[0]} is {x[beyond[0]]:.3g} {unit}, more than {most:g} "
                f"{unit}: its rounding would be visible in the torques; is it a wrong unit, or a "
                "failed sensor? Else put the origin of the world nearer to the robot"
            )


def state_in_a_tick(mech: Mechanism, q: Any, v: Any, t: Any) -> tuple[Vector, Vector, float]:
    """q, v and t of a tick, checked: shapes, unit quaternions, sizes.

    Numbers that are not finite are detected in the result. The caller's arrays are returned if
    nothing has to be normalized. Only translational coordinates that no loop ties to the world are
    checked for their size; the closure error limits the others.
    """
    q, v, t = as_given("q", q, mech.nq), as_given("v", v, mech.nv), instant(t)
    if mech.nq != mech.nv and not pin.isNormalized(mech.model, q, 1e-12):
        q = check_configuration(mech, q)
    if mech.slides:  # the largest entry of each, which costs less
        x, xdot = q.take(mech.lengths[0]), v.take(mech.lengths[1])
        if not (x.dot(x) <= FARTHEST**2 and xdot.dot(xdot) <= FASTEST**2):
            check_range(mech, q, v)
    return q, v, t


def check_configuration(mech: Mechanism, q: Any, name: str = "q") -> Vector:
    """A configuration as floats, checked: shape, finite entries, unit quaternions."""
    check_mechanism(mech)
    return checked_configuration(mech.model, q, name)


def check_out(out: Any, mech: Mechanism) -> None:
    """Raise `InputError` for `out` arrays that cannot store q and v."""
    good = isinstance(out, (tuple, list)) and len(out) == 2
    if good and not np.may_share_memory(*out):
        for name, place, size in zip(("out[0]", "out[1]"), out, (mech.nq, mech.nv), strict=True):
            stored(name, place, as_given(name, place, size))
        return
    raise InputError(
        f"out must be two separate arrays, for q ({mech.nq},) and v ({mech.nv},); got "
        f"{type(out).__name__} {shown(out)!r}"
    )


def coordinate_indices(
    mech: Mechanism, names: Iterable[str], argument: str, joints_too: bool = True
) -> NDArray[np.intp]:
    """Indices into v of coordinate names; a joint's name means all its coordinates."""
    of_joint = mech.joint_of
    indices: list[int] = []
    given = name_list(argument, names)
    for name in given:
        if joints_too and has_joint(mech.model, name):
            indices += np.flatnonzero(of_joint == mech.model.getJointId(name)).tolist()
        elif (
            isinstance(name, str)
            and name in mech.constraint_names
            and name not in mech.coordinate_names
        ):
            raise InputError(
                f"{argument}: {name!r} is a constraint of {mech.name} (a joint that is cut), and "
                f"has no coordinate; valid names: {listing(mech.coordinate_names)}"
            )
        else:
            indices.append(
                mech.coordinate_names.index(
                    known_name(name, mech.coordinate_names, "coordinate", argument)
                )
            )
    if len(set(indices)) != len(indices):
        raise InputError(f"{argument} names a coordinate twice: {listing(given)}")
    return np.array(indices, dtype=np.intp)
