"""Joints that cannot move, of the tree and cut ones alike."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from holoctl.base.checks import Array, Vector
from holoctl.base.tolerances import BODY_AT_REST
from holoctl.closing.body_graph import whole_joint
from holoctl.closing.sampled_configurations import Samples
from holoctl.constraints.closure import Closure
from holoctl.constraints.joint_coordinates import part_names
from holoctl.mechanism.joint_motion import joint_motion
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

__all__ = ["all_joints", "locked_joints"]


def locked_joints(mech: Mechanism, s: Samples, t: float) -> tuple[str, ...]:
    """Joints that move in no finite motion, and coordinates of joints in series that do not.

    Joints of the tree and cut joints are judged in the same way, by their rates.
    """
    found: list[str] = []
    if mech.row_scale.size == 0:
        return ()
    for name, rates in _rates(mech, s.generic[0].q, t).items():
        moving = np.zeros(rates.shape[0], dtype=bool)
        for at, T in zip(s.generic, s.tangents, strict=True):
            J = _rates(mech, at.q, t, [name])[name] * mech.column_scale
            size = np.maximum(np.abs(J).max(axis=1, initial=0.0), 1e-9)
            moving |= (np.abs(J @ T) > max(BODY_AT_REST, at.tolerance) * size[:, None]).any(axis=1)
        if not moving.any():
            found.append(name)
        elif part_names(mech.model, name) != (name,) and _in_series(mech, name):
            found += [f"{name}[{i}]" for i in np.flatnonzero(~moving)]
    return tuple(found)


def _rates(
    mech: Mechanism, q: Vector, t: float, names: Iterable[str] | None = None
) -> dict[str, Array]:
    """The Jacobian of the coordinates of each joint, of the tree or cut."""
    names = all_joints(mech) if names is None else names
    return {name: joint_motion(mech, name, q, t=t).jacobian for name in names}


def all_joints(mech: Mechanism, most: int = 6) -> list[str]:
    """The joints of the tree with at most `most` coordinates, then the cut joints."""
    model = plain(mech.model)
    found = [
        whole_joint(mech.model, name)
        for name, joint in zip(model.names[1:], model.joints[1:], strict=True)
        if joint.nv <= most
    ]
    for name, c in zip(mech.constraint_names, mech.constraints, strict=True):
        if isinstance(c, Closure) and c.joint not in (None, "weld"):
            found.append(name)
    return list(dict.fromkeys(found))


def _in_series(mech: Mechanism, name: str) -> bool:
    """Whether the coordinates are those of joints in series, not parts of one rotation."""
    kinds = dict(zip(mech.constraint_names, mech.constraints, strict=True))
    closure = kinds.get(name)
    return not (isinstance(closure, Closure) and closure.joint == "spherical")
