"""Checks of joints and placements that Pinocchio itself accepts without a check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.errors import InputError

__all__ = ["check_joint", "check_placement"]

UNIT_AXIS = 1e-9
"""Largest error of the norm of an axis, and of the cosine of a right angle."""


def check_placement(what: str, placement: pin.SE3) -> None:
    """Raise `InputError` for numbers that are not finite, or a matrix that is not a rotation."""
    if not np.isfinite(placement.homogeneous).all():
        raise InputError(f"{what} is not finite")
    error = np.abs(placement.rotation.T @ placement.rotation - np.eye(3)).max()
    if error > 1e-9 or np.linalg.det(placement.rotation) < 0.0:
        raise InputError(
            f"{what} has a rotation that is not orthogonal with determinant 1 (off by {error:.1e})"
        )


def check_joint(what: str, joint: pin.JointModel) -> None:
    """Raise `InputError` for a joint, or a part of a composite one, that defines no motion.

    Pinocchio's constructors accept any axis, but its formulas hold for axes of norm 1; its default
    constructors leave axis and pitch uninitialised.
    """
    own = joint.extract() if isinstance(joint, pin.JointModel) else joint
    if isinstance(own, pin.JointModelComposite):
        parts = list(own.joints)
        if not parts:
            raise InputError(f"{what} is a composite joint without parts")
        for i, (part, placement) in enumerate(zip(parts, own.jointPlacements, strict=True)):
            check_placement(f"{what}: the placement of part {i}", placement)
            check_joint(f"{what}: part {i}", part)
        return
    axes = {a: getattr(own, a) for a in ("axis", "axis1", "axis2") if hasattr(own, a)}
    if isinstance(own, pin.JointModelRevoluteUnboundedUnaligned):  # does not show its axis
        axes["axis"] = _turning_axis(own)
    for name, axis in axes.items():
        norm = float(np.linalg.norm(axis))
        if not abs(norm - 1.0) <= UNIT_AXIS:
            raise InputError(
                f"{what}: {name} must be finite and have norm 1, and Pinocchio does not check "
                f"that; got {np.asarray(axis).tolist()}, norm {norm:.6g}; give "
                f"{name} / np.linalg.norm({name})"
            )
    if "axis2" in axes and abs(float(axes["axis1"] @ axes["axis2"])) > UNIT_AXIS:
        raise InputError(
            f"{what}: axis1 and axis2 must be at right angles; got {axes['axis1'].tolist()} and "
            f"{axes['axis2'].tolist()}; two revolute joints turn about any axes"
        )
    pitch = float(getattr(own, "pitch", 1.0))
    if not 1e-100 < abs(pitch) < np.inf:
        raise InputError(
            f"{what}: the pitch must be finite and not zero, m/rad; got {pitch:.6g}; a revolute "
            "joint turns without it"
        )


def _turning_axis(joint: Any) -> Vector:
    """The axis of a revolute joint, from its motion alone."""
    alone = pin.Model()
    alone.addJoint(0, joint, pin.SE3.Identity(), "joint")
    J = pin.computeJointJacobians(alone, alone.createData(), pin.neutral(alone))
    return np.asarray(J.reshape(6)[3:])
