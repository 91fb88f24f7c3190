"""The state that a step d in the tangent space leads to, and the rate of d there.

    q = q0 (+) d        d' = D(d)^-1 v        D: the right Jacobian of the joint spaces

Of a rotation vector w, s = |w|^2, all coefficients are even: power series in s, the same formula
at rest and everywhere. With J = I + B [w] + C [w]^2, the left Jacobian,

    A = sin|w| / |w|        B = (1 - cos|w|) / s        C = (|w| - sin|w|) / |w|^3
    J^-1 = I - [w] / 2 + E [w]^2        E = (1 - A / (2 B)) / s
    turn: J(-w) w' = omega        shift: p = p0 + R0 J r,  J r' + (dJ / dt) r = R(w) v

Reference: J. Sola, J. Deray, D. Atchuthan, A micro Lie theory for state estimation in robotics.
"""

from __future__ import annotations

from math import factorial
from typing import Any

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.matrices import total
from holoctl.tree.frozen_model import plain
from holoctl.tree.position_rates import of_quaternion

__all__ = ["FARTHEST_TURN", "placed_function", "placed_joint", "turn_and_shift"]

FARTHEST_TURN, TURN_TERMS = 2.0, 12  # rad; a count
"""The largest rotation of a body in a compiled step, and the number of terms of its series: exact
to rounding up to that angle."""


def placed_function(E: Expressions) -> Any:
    """``placed(q0, x) -> q, rate, guard`` of x = (d, v), as `pin.integrate` and the rate of d."""
    ca = casadi_module()
    model = plain(E.mech.model)
    q0, x = ca.SX.sym("q0", model.nq), ca.SX.sym("x", 2 * model.nv)
    q, rate, guard = ca.SX(q0), ca.SX(x[model.nv :]), list[SX]()
    for j in range(1, model.njoints):
        guard += placed_joint(model.joints[j], q0, x[: model.nv], x[model.nv :], q, rate)
    return ca.Function(
        "placed", [q0, x], [q, rate, total(guard)], ["q0", "x"], ["q", "rate", "guard"]
    )


def placed_joint(joint: Any, q0: SX, d: SX, v: SX, q: SX, rate: SX) -> list[SX]:
    """Fill what is of one joint in q and rate; its guard."""
    ca = casadi_module()
    kind = joint.shortname().removeprefix("JointModel")
    iq, iv = joint.idx_q, joint.idx_v
    if kind == "Composite":
        bare = joint.extract() if hasattr(joint, "extract") else joint
        return [x for part in bare.joints for x in placed_joint(part, q0, d, v, q, rate)]
    if joint.nq == joint.nv:
        for i in range(joint.nv):
            q[iq + i] = q0[iq + i] + d[iv + i]
        return []
    if joint.nv == 1:
        q[iq], q[iq + 1] = _turned_pair(q0[iq], q0[iq + 1], d[iv])
        return []
    if kind == "Planar":
        c, s = q0[iq + 2], q0[iq + 3]
        w, turn = ca.vertcat(0.0, 0.0, d[iv + 2]), ca.vertcat(0.0, 0.0, v[iv + 2])
        r, move = (ca.vertcat(y[iv], y[iv + 1], 0.0) for y in (d, v))
        p, along = _shifted(w, r, turn, move)
        q[iq], q[iq + 1] = q0[iq] + c * p[0] - s * p[1], q0[iq + 1] + s * p[0] + c * p[1]
        q[iq + 2], q[iq + 3] = _turned_pair(c, s, d[iv + 2])
        rate[iv], rate[iv + 1] = along[0], along[1]
        return [ca.sumsqr(w) / FARTHEST_TURN**2]
    if kind == "FreeFlyer":
        w, omega = d[iv + 3 : iv + 6], v[iv + 3 : iv + 6]
        turn = _turn_rate(w, omega)
        p, along = _shifted(w, d[iv : iv + 3], turn, v[iv : iv + 3])
        q[iq : iq + 3] = q0[iq : iq + 3] + of_quaternion(q0[iq + 3 : iq + 7]) @ p
        rate[iv : iv + 3] = along
        iq, iv = iq + 3, iv + 3
    else:
        w, omega = d[iv : iv + 3], v[iv : iv + 3]
        turn = _turn_rate(w, omega)
    q[iq : iq + 4] = _turned(q0[iq : iq + 4], w)
    rate[iv : iv + 3] = turn
    return [ca.sumsqr(w) / FARTHEST_TURN**2]


# ---------------------------------------------------------------------------------- rotations


def _series(s: SX, first: int) -> SX:
    """``sum (-s)^k / (2 k + first)!``: cos, A, B, C for first = 0, 1, 2, 3."""
    found = casadi_module().SX(0.0)
    for k in reversed(range(TURN_TERMS)):
        found = 1.0 / factorial(2 * k + first) - s * found
    return found


def _one_over(s: SX) -> SX:
    """E, by the series of ``(2 B - A) / s``."""
    found = casadi_module().SX(0.0)
    for k in reversed(range(1, TURN_TERMS)):
        found = (1.0 / factorial(2 * k + 1) - 2.0 / factorial(2 * k + 2)) - s * found
    return found / (2.0 * _series(s, 2))


def _turned_pair(c: SX, s: SX, angle: SX) -> tuple[SX, SX]:
    ca = casadi_module()
    x, y = ca.cos(angle), ca.sin(angle)
    return c * x - s * y, s * x + c * y


def _turned(q0: SX, w: SX) -> SX:
    """The quaternion (x, y, z, w) turned by a rotation vector in its own axes."""
    ca = casadi_module()
    quarter = 0.25 * ca.sumsqr(w)
    u, c = 0.5 * _series(quarter, 1) * w, _series(quarter, 0)
    u0, c0 = q0[:3], q0[3]
    return ca.vertcat(c0 * u + c * u0 + ca.cross(u0, u), c0 * c - ca.dot(u0, u))


def _turn_rate(w: SX, omega: SX) -> SX:
    """w' of a rotation vector in a body that turns at omega, in its axes."""
    ca = casadi_module()
    across = ca.cross(w, omega)
    return omega + 0.5 * across + _one_over(ca.sumsqr(w)) * ca.cross(w, across)


def turn_and_shift(w: SX, p: SX) -> SX:
    """r with ``J r = p``: the shift that, beside a turn by w, leads to p."""
    ca = casadi_module()
    across = ca.cross(w, p)
    return p - 0.5 * across + _one_over(ca.sumsqr(w)) * ca.cross(w, across)


def _shifted(w: SX, r: SX, turn: SX, v: SX) -> tuple[SX, SX]:
    """``J r`` and r', of a body that moves at v in its axes while w' = turn."""
    ca = casadi_module()
    symbols = ca.SX.sym("w", 3)
    moved = _left(symbols, r)
    changes = ca.jtimes(moved, symbols, turn)
    p, changed = (ca.substitute(y, symbols, w) for y in (moved, changes))
    s = ca.sumsqr(w)
    spun = ca.cross(w, v)
    b = v + _series(s, 1) * spun + _series(s, 2) * ca.cross(w, spun) - changed  # R(w) v - J' r
    across = ca.cross(w, b)
    return p, b - 0.5 * across + _one_over(s) * ca.cross(w, across)


def _left(w: SX, r: SX) -> SX:
    """``J r``."""
    ca = casadi_module()
    s, across = ca.sumsqr(w), ca.cross(w, r)
    return r + _series(s, 2) * across + _series(s, 3) * ca.cross(w, across)
