"""Rates of the entries of q as expressions of q: ``qdot = T(q) v``, for derivatives along v."""

from __future__ import annotations

from typing import Any

import pinocchio as pin

from holoctl.tree.frozen_model import plain

__all__ = ["of_quaternion", "tangent"]

SX = Any
"""A `casadi.SX`: a matrix of expressions."""


def of_quaternion(xyzw: SX) -> SX:
    """R of a unit quaternion, by the convention of Pinocchio and Eigen."""
    import casadi as ca

    x, y, z, w = (xyzw[i] for i in range(4))
    x2, y2, z2 = 2.0 * x, 2.0 * y, 2.0 * z
    wx, wy, wz, xx, xy, xz = w * x2, w * y2, w * z2, x * x2, x * y2, x * z2
    yy, yz, zz = y * y2, y * z2, z * z2
    return ca.vertcat(
        ca.horzcat(1.0 - (yy + zz), xy - wz, xz + wy),
        ca.horzcat(xy + wz, 1.0 - (xx + zz), yz - wx),
        ca.horzcat(xz - wy, yz + wx, 1.0 - (xx + yy)),
    )


def tangent(model: pin.Model, q: SX) -> SX:
    """(nq, nv) T: the rates of the entries of q are ``T v``."""
    import casadi as ca

    model = plain(model)
    T = ca.SX(model.nq, model.nv)
    for j in range(1, model.njoints):
        _fill_tangent(T, model.joints[j], model.names[j], q)
    return T


def _fill_tangent(T: SX, joint: Any, name: str, q: SX) -> None:
    kind = joint.shortname().removeprefix("JointModel")
    iq, iv = joint.idx_q, joint.idx_v
    if kind == "Composite":
        bare = joint.extract() if hasattr(joint, "extract") else joint
        for part in bare.joints:
            _fill_tangent(T, part, name, q)
    elif joint.nq == joint.nv:
        for i in range(joint.nv):
            T[iq + i, iv + i] = 1.0
    elif joint.nv == 1:
        T[iq, iv], T[iq + 1, iv] = -q[iq + 1], q[iq]
    elif kind == "Planar":
        c, s = q[iq + 2], q[iq + 3]
        T[iq, iv], T[iq, iv + 1], T[iq + 1, iv], T[iq + 1, iv + 1] = c, -s, s, c
        T[iq + 2, iv + 2], T[iq + 3, iv + 2] = -s, c
    else:
        if kind == "FreeFlyer":
            T[iq : iq + 3, iv : iv + 3] = of_quaternion(q[iq + 3 : iq + 7])
            iq, iv = iq + 3, iv + 3
        x, y, z, w = (q[iq + i] for i in range(4))
        half = ((w, -z, y), (z, w, -x), (-y, x, w), (-x, -y, -z))
        for i, row in enumerate(half):
            for k, entry in enumerate(row):
                T[iq + i, iv + k] = 0.5 * entry
