"""Configurations of a tree: shape, finite entries, quaternions of norm one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, numbers, vector
from holoctl.base.errors import InputError
from holoctl.tree.frozen_model import plain

__all__ = ["checked_configuration", "checked_configurations", "whole_rows"]

SINGLE_PRECISION = 1e-6
"""A norm that differs from one by at most this is corrected, as of quaternions in single
precision."""


def checked_configuration(model: pin.Model, given: Any, name: str) -> Vector:
    """A configuration as floats, checked: shape, finite entries, quaternions of norm 1."""
    model = plain(model)
    q = vector(name, given, model.nq, "configuration, nq entries")
    if model.nq == model.nv or pin.isNormalized(model, q, 1e-12):
        return q
    if pin.isNormalized(
        model, q, SINGLE_PRECISION
    ):  # accurate to single precision: normalized to double
        normalised: Vector = pin.normalize(model, q)
        return normalised
    for j in range(1, model.njoints):
        here = slice(model.idx_qs[j], model.idx_qs[j] + model.nqs[j])
        alone: Vector = pin.neutral(model)
        alone[here] = q[here]
        if not pin.isNormalized(model, alone, SINGLE_PRECISION):
            break
    kind, size = _unit_part(model.joints[j], q[here])
    raise InputError(
        f"{name}: the {kind} of joint {model.names[j]!r} must have norm 1{size}; "
        "pinocchio.normalize(model, q) gives the nearest valid one"
    )


def checked_configurations(model: pin.Model, given: Any, name: str) -> Array:
    """Configurations (..., nq) as rows (N, nq), each checked as by `checked_configuration`; but one
    with an entry that is not finite becomes NaN, and none is normalised."""
    model = plain(model)
    rows = whole_rows(name, given, model.nq, "configurations, nq entries each")
    if model.nq == model.nv:
        return rows
    for joint in list(model.joints)[1:]:
        if joint.nq == joint.nv:
            continue
        here = rows[:, joint.idx_q : joint.idx_q + joint.nq]
        if "Composite" in joint.shortname():
            off = np.isfinite(here).all(axis=1)
        else:
            norms = np.linalg.norm(here[:, -_unit_entries(joint) :], axis=1)
            off = np.abs(norms - 1.0) > 0.5 * SINGLE_PRECISION
        for i in np.flatnonzero(off):
            at = ", ".join(map(str, np.unravel_index(i, np.shape(given)[:-1])))
            checked_configuration(model, rows[i], f"{name}[{at}]")
    return rows


def whole_rows(name: str, given: Any, size: int, meaning: str) -> Array:
    """Numbers (..., size) as new rows (N, size): NaN throughout where an entry is not finite."""
    x = numbers(name, given, meaning)
    if x.shape[-1] != size:
        raise InputError(f"{name} ({meaning}) must have shape (..., {size}); got shape {x.shape}")
    rows = x.reshape(math.prod(x.shape[:-1]), size).copy()
    rows[~np.isfinite(rows).all(axis=1)] = np.nan
    return rows


def _unit_entries(joint: pin.JointModel) -> int:
    """How many entries at the end of a joint's configuration have unit norm: a cosine-sine pair,
    or a quaternion. Not of a composite joint."""
    pair = joint.nq - joint.nv == 1 and joint.nv in (1, 3) and "Spherical" not in joint.shortname()
    return 2 if pair else 4


def _unit_part(joint: pin.JointModel, part: Vector) -> tuple[str, str]:
    """The part of a joint's configuration that must have unit norm, and its norm, in words."""
    if "Composite" in joint.shortname():
        return "quaternion or cosine-sine pair", ""
    size = _unit_entries(joint)
    norm = np.linalg.norm(part[-size:])
    return "cosine-sine pair" if size == 2 else "quaternion", f"; it has {norm:.6g}"
