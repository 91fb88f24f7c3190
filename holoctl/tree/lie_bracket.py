"""The Lie bracket of two velocities, joint by joint: the difference of steps in either order.

    [x, y] = lim ( (q (+) e x) (+) e y  -  (q (+) e y) (+) e x ) / e^2

It is zero for coordinates that add, the cross product for a ball joint, and the spatial cross
product for a free joint and, in its plane, for a planar joint (velocities in the axes of the moving
body).
Reference: docs/derivations.md, "Linear models".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.tree.frozen_model import plain

__all__ = ["adjoint_velocity", "bracket", "curved_joints"]


Curved = tuple[slice, Callable[[Vector], Array]]
"""The indices of a joint in v, and the matrix ad_x of its bracket [x, y] = ad_x y."""


def curved_joints(model: pin.Model) -> tuple[Curved, ...]:
    """The joints whose steps do not commute.

    Raises
    ------
    InputError
        For a joint whose bracket is not known here.
    """
    found: list[Curved] = []
    for joint in list(plain(model).joints)[1:]:
        _collect(joint, found)
    return tuple(found)


def _collect(joint: pin.JointModel, found: list[Curved]) -> None:
    own = joint.extract() if isinstance(joint, pin.JointModel) else joint
    if isinstance(own, pin.JointModelComposite):
        for part in own.joints:
            _collect(part, found)
        return
    at = slice(joint.idx_v, joint.idx_v + joint.nv)
    kind = joint.shortname().removeprefix("JointModel")
    if kind in _AD:
        found.append((at, _AD[kind]))
    elif joint.nq != joint.nv and joint.nv > 1:
        raise InputError(
            f"no linear model with a {joint.shortname()}: it is not known how its steps differ "
            "with their order; a planar, ball or free joint, or joints in series, can stand for it"
        )


def adjoint_velocity(model: pin.Model, x: Vector) -> Array:
    """ad_x, shape (nv, nv): ``[x, y] = ad_x y``."""
    ad = np.zeros((model.nv, model.nv))
    for at, of in curved_joints(model):
        ad[at, at] = of(x[at])
    return ad


def bracket(model: pin.Model, x: Array, y: Vector) -> Array:
    """``[x_j, y] = -ad_y x_j`` for each column of x (nv, k)."""
    return -adjoint_velocity(model, y) @ x


def _cross(w: Vector) -> Array:
    skew: Array = pin.skew(w)
    return skew


def _spatial(x: Vector) -> Array:
    ad: Array = pin.Motion(x).action
    return ad


def _planar(x: Vector) -> Array:
    vx, vy, w = x
    return np.array([[0.0, -w, vy], [w, 0.0, -vx], [0.0, 0.0, 0.0]])


_AD: dict[str, Callable[[Vector], Array]] = {
    "Spherical": _cross,
    "FreeFlyer": _spatial,
    "Planar": _planar,
}
