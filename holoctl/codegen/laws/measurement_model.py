"""The measurement model as expressions: positions, their differences, their Jacobian.

    difference   x - s(q)        a step of the sensors (m,), the shorter way round
    reverse      x (+) (-step)   the numbers from which a step leads to x
    S            its rate by v

and single coordinates of cut joints with their motion.

The oracle is estimation/measurement_model.py, for cut joints constraints/joint_coordinates.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.tangent_step import FARTHEST_TURN, placed_joint, turn_and_shift
from holoctl.codegen.matrices import column, total
from holoctl.codegen.relative_motion import Pair, StepMotion, moved, pair_between, turns
from holoctl.constraints.joint_coordinates import AXES_OF, Axis, FramePair, TreeJoint
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain
from holoctl.tree.position_rates import of_quaternion, tangent

__all__ = [
    "JointReading",
    "difference_function",
    "joint_readings",
    "reverse_function",
    "sensor_rows",
    "step_between",
    "unit_readings",
]

SHIFTED = {"JointModelFreeFlyer": 3, "JointModelPlanar": 2}
"""Joints whose shift depends on their turn, and where the turn begins."""


def difference_function(E: Expressions, sensors: MeasurementModel) -> Any:
    """``difference(q, x) -> step``: how far the numbers x (p,) are from s(q), (m,)."""
    ca = casadi_module()
    x = ca.SX.sym("x", sensors.numbers)
    there, step = _with_numbers(E, sensors, x), ca.SX.zeros(E.mech.nv)
    found = [ca.SX(0.0)] * sensors.columns.size
    model = plain(E.mech.model)
    for j in sorted({int(E.mech.joint_of[k]) for k in sensors.columns if k >= 0}):
        _apart(model.joints[j], E.q, there, step)
    seen: dict[tuple[int, int], StepMotion] = {}
    numbers, rate = 0, 0
    for joint in sensors.joints:
        if isinstance(joint, TreeJoint):
            found[rate : rate + joint.count] = [step[int(k)] for k in joint.columns]
            numbers += 1 if joint.turning else joint.places.size
        else:
            for value, axis in zip(_values(E, joint, seen), joint.axes, strict=True):
                off = x[numbers] - value
                # as pinocchio's joints: continuous joints the shorter way round
                found[rate + joint.axes.index(axis)] = off if axis.linear else _shorter(off)
                numbers += 1
        rate += joint.count
    return ca.Function("difference", [E.q, x], [column(found)], ["q", "x"], ["step"])


def reverse_function(E: Expressions, sensors: MeasurementModel) -> Any:
    """``reverse(x, step) -> numbers``: from which a step (m,) leads to x (p,)."""
    ca, nv = casadi_module(), E.mech.nv
    x, step = ca.SX.sym("x", sensors.numbers), ca.SX.sym("step", sensors.columns.size)
    here, back, found = _with_numbers(E, sensors, x), ca.SX.zeros(nv), ca.SX(x)
    own = sensors.columns >= 0
    for k in np.flatnonzero(own):
        back[int(sensors.columns[k])] = -step[int(k)]
    there, model = ca.SX(here), plain(E.mech.model)
    for j in sorted({int(E.mech.joint_of[c]) for c in sensors.columns[own]}):
        placed_joint(model.joints[j], here, back, ca.SX.zeros(nv), there, ca.SX.zeros(nv))
    turning = set(sensors.turning.tolist())
    for i, (at, number) in enumerate(zip(sensors.places, sensors.of_places, strict=True)):
        value = there[int(at)]
        found[int(number)] = ca.atan2(there[int(at) + 1], value) if i in turning else value
    for number, k in zip(sensors.of_cut, np.flatnonzero(~own), strict=True):
        found[int(number)] -= step[int(k)]
    return ca.Function("reverse", [x, step], [ca.densify(found)], ["x", "step"], ["numbers"])


def sensor_rows(E: Expressions, sensors: MeasurementModel) -> list[dict[int, SX]]:
    """S (m, nv), row by row: coordinate to entry."""
    ca, rows = casadi_module(), list[dict[int, SX]]()
    seen: dict[tuple[int, int], StepMotion] = {}
    for joint in sensors.joints:
        if isinstance(joint, TreeJoint):
            rows += [{int(k): ca.SX(1.0)} for k in joint.columns]
        else:
            rows += [_row(_pair(E, joint, seen), axis) for axis in joint.axes]
    return rows


def unit_readings(E: Expressions, sensors: MeasurementModel) -> list[tuple[int, ...]]:
    """Which of the numbers have norm one together: quaternions, cosine-sine pairs."""
    number = dict(zip(sensors.places.tolist(), sensors.of_places.tolist(), strict=True))
    parts = [part for part in E.tree.unit_parts if all(i in number for i in part)]
    return [tuple(number[i] for i in part) for part in parts]


def _with_numbers(E: Expressions, sensors: MeasurementModel, x: SX) -> SX:
    """q with the joints of the tree at these numbers."""
    ca = casadi_module()
    there, turning = ca.SX(E.q), set(sensors.turning.tolist())
    for i, (at, number) in enumerate(zip(sensors.places, sensors.of_places, strict=True)):
        if i in turning:
            there[int(at)], there[int(at) + 1] = ca.cos(x[int(number)]), ca.sin(x[int(number)])
        else:
            there[int(at)] = x[int(number)]
    return there


def step_between(mech: Mechanism, q0: SX, q1: SX) -> tuple[SX, SX]:
    """The step from q0 to q1 (nv, 1), as `pin.difference`, and a guard: below one where no free or
    planar joint turns by more than the series are made for."""
    ca, model = casadi_module(), plain(mech.model)
    step, turned = ca.SX.zeros(model.nv), ca.SX(0.0)
    for j in range(1, model.njoints):
        joint = model.joints[j]
        _apart(joint, q0, q1, step)
        if joint.nv > 1 and (at := SHIFTED.get(joint.shortname())) is not None:
            turned += ca.sumsqr(step[joint.idx_v + at : joint.idx_v + joint.nv])
    return step, turned / FARTHEST_TURN**2


def _apart(joint: Any, q0: SX, q1: SX, step: SX) -> None:
    """Fill the step of one joint from q0 to q1, as `pin.difference`."""
    ca = casadi_module()
    kind = joint.shortname().removeprefix("JointModel")
    iq, iv = joint.idx_q, joint.idx_v
    if kind == "Composite":
        bare = joint.extract() if hasattr(joint, "extract") else joint
        for part in bare.joints:
            _apart(part, q0, q1, step)
    elif joint.nq == joint.nv:
        for i in range(joint.nv):
            step[iv + i] = q1[iq + i] - q0[iq + i]
    elif joint.nv == 1:
        step[iv] = _angle(q0[iq : iq + 2], q1[iq : iq + 2])
    elif kind == "Planar":
        c, s = q0[iq + 2], q0[iq + 3]
        x, y = q1[iq] - q0[iq], q1[iq + 1] - q0[iq + 1]
        turn = _angle(q0[iq + 2 : iq + 4], q1[iq + 2 : iq + 4])
        shift = turn_and_shift(
            ca.vertcat(0.0, 0.0, turn), ca.vertcat(c * x + s * y, c * y - s * x, 0.0)
        )
        step[iv], step[iv + 1], step[iv + 2] = shift[0], shift[1], turn
    elif kind == "FreeFlyer":
        one, two = q0[iq + 3 : iq + 7], q1[iq + 3 : iq + 7]
        turn = _turn(one, two)
        apart = of_quaternion(one).T @ (q1[iq : iq + 3] - q0[iq : iq + 3])
        step[iv : iv + 3], step[iv + 3 : iv + 6] = turn_and_shift(turn, apart), turn
    else:
        step[iv : iv + 3] = _turn(q0[iq : iq + 4], q1[iq : iq + 4])


def _angle(one: SX, two: SX) -> SX:
    """From one cosine-sine pair to another."""
    ca = casadi_module()
    return ca.atan2(one[0] * two[1] - one[1] * two[0], one[0] * two[0] + one[1] * two[1])


def _turn(one: SX, two: SX) -> SX:
    """The rotation vector from one quaternion x y z w to another, the shorter way round."""
    ca = casadi_module()
    u0, c0, u1, c1 = one[:3], one[3], two[:3], two[3]
    u = c0 * u1 - c1 * u0 - ca.cross(u0, u1)
    c = c0 * c1 + ca.dot(u0, u1)
    size = ca.sqrt(ca.sumsqr(u) + 1e-30)  # not zero, at rest either
    return ca.if_else(c < 0.0, -2.0, 2.0) * ca.atan2(size, ca.fabs(c)) / size * u


def _shorter(angle: SX) -> SX:
    ca = casadi_module()
    return ca.atan2(ca.sin(angle), ca.cos(angle))


# ---------------------------------------------------------------------------------- cut joints


@dataclass(frozen=True, eq=False)
class JointReading:
    """One coordinate of a joint.

    Attributes
    ----------
    value, rate : expressions
    row : dict
        ``rate = row v``: coordinate to entry.
    bias : expression
        ``d rate / dt = row a + bias``
    """

    value: SX
    row: dict[int, SX]
    rate: SX
    bias: SX


def joint_readings(
    E: Expressions, coordinates: Iterable[tuple[FramePair, int]]
) -> list[JointReading]:
    """Coordinates of cut joints, of each joint the one with this number; the value of one of a ball
    or free joint, which is no number of its own, is 0."""
    ca, seen, found = casadi_module(), dict[tuple[int, int], StepMotion](), list[JointReading]()
    moving = tangent(plain(E.mech.model), E.q) @ E.v
    for joint, i in coordinates:
        row = _row(_pair(E, joint, seen), joint.axes[i])
        rate = total(x * E.v[k] for k, x in row.items())
        alone = joint.kind not in ("spherical", "free")
        value = _values(E, joint, seen)[i] if alone else ca.SX(0.0)
        found.append(JointReading(value, row, rate, ca.jtimes(rate, E.q, moving)))
    return found


def _pair(E: Expressions, joint: FramePair, seen: dict[tuple[int, int], StepMotion]) -> Pair:
    return pair_between(E.tree, joint.a, joint.b, E.v, seen)


def _values(E: Expressions, joint: FramePair, seen: dict[tuple[int, int], StepMotion]) -> list[SX]:
    """Where frame b is against frame a, along and about the axes."""
    ca, pair = casadi_module(), _pair(E, joint, seen)
    R, p = pair.R1.T @ pair.R2, pair.R1.T @ (pair.p2 - pair.p1)
    if joint.kind == "universal":
        both = [ca.atan2(R[2, 1], R[1, 1]), ca.atan2(R[0, 2], R[0, 0])]
        return [both[AXES_OF["universal"].index(x)] for x in joint.axes]
    return [p[x.axis] if x.linear else ca.atan2(R[1, 0], R[0, 0]) for x in joint.axes]


def _row(pair: Pair, axis: Axis) -> dict[int, SX]:
    """What each coordinate does to one coordinate of a cut joint."""
    ca = casadi_module()
    n = (pair.R1 if axis.of == "a" else pair.R2)[:, axis.axis]
    parts = moved(pair, pair.p2, pair.p2) if axis.linear else turns(pair)
    found: dict[int, list[SX]] = {}
    for k, w in parts:
        found.setdefault(k, []).append(ca.dot(n, w))
    sums = {k: total(terms) for k, terms in found.items()}
    return {k: x for k, x in sums.items() if not x.is_zero()}
