"""Configurations of a tree: shape, finite entries, quaternions of norm one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, vector
from holoctl.base.errors import InputError
from holoctl.tree.frozen_model import plain

__all__ = ["checked_configuration"]

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


def _unit_part(joint: pin.JointModel, part: Vector) -> tuple[str, str]:
    """The part of a joint's configuration that must have unit norm, and its norm, in words."""
    if "Composite" in joint.shortname():
        return "quaternion or cosine-sine pair", ""
    pair = joint.nq - joint.nv == 1 and joint.nv in (1, 3) and "Spherical" not in joint.shortname()
    tail = part[-2:] if pair else part[-4:]
    return "cosine-sine pair" if pair else "quaternion", f"; it has {np.linalg.norm(tail):.6g}"
