"""What each number of q, v and u is, as lines of a comment of C."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import numpy as np

from holoctl.codegen.c_text import comment
from holoctl.constraints.joint_coordinates import FramePair
from holoctl.control.limit_policies import LimitsLaw
from holoctl.estimation.measurement_model import MeasurementModel
from holoctl.mechanism.bound_limits import BoundLimits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import translational
from holoctl.tree.frozen_model import plain

__all__ = [
    "limits_table",
    "measured_table",
    "motor_table",
    "name_size",
    "named_places",
    "names_in_c",
    "q_table",
    "v_table",
]


def q_table(mech: Mechanism) -> str:
    """Joint by joint."""
    model, length, lines = mech.model, translational(mech.model), []
    for j in range(1, model.njoints):
        iq, nq, nv = model.idx_qs[j], model.nqs[j], model.nvs[j]
        unit = "m" if length[model.idx_vs[j] : model.idx_vs[j] + nv].all() else "rad"
        kind = model.joints[j].shortname().removeprefix("JointModel")
        lines.append(_line("q", iq, nq, f"{model.names[j]}: {_meaning(kind, nq, nv, unit)}"))
    return "\n".join(lines)


def v_table(mech: Mechanism) -> str:
    """Coordinate by coordinate."""
    length = translational(mech.model)
    return "\n".join(
        _line("v", i, 1, f"{name}, {'m/s' if length[i] else 'rad/s'}")
        for i, name in enumerate(mech.coordinate_names)
    )


def motor_table(mech: Mechanism) -> str:
    """Motor by motor."""
    length, lines = translational(mech.model), []
    for i, name in enumerate(mech.actuator_names):
        kinds = set(np.where(length[mech.B[:, i] != 0.0], "N", "N m").tolist())
        lines.append(_line("u", i, 1, f"{name}, {' and '.join(sorted(kinds))}"))
    return "\n".join(lines)


def measured_table(sensors: MeasurementModel, letter: str = "q_m") -> str:
    """Sensor by sensor."""
    model, lines, number, rate = plain(sensors.mech.model), list[str](), 0, 0
    length = translational(sensors.mech.model)
    for joint in sensors.joints:
        labels = sensors.labels[rate : rate + joint.count]
        if isinstance(joint, FramePair):
            units, count = ["m" if x.linear else "rad" for x in joint.axes], joint.count
        else:
            units = ["m" if length[k] else "rad" for k in joint.columns]
            count = joint.count if joint.turning else joint.places.size
        if isinstance(joint, FramePair) or count == joint.count:
            named = zip(labels, units, strict=True)
            lines += [_line(letter, number + i, 1, f"{x}, {u}") for i, (x, u) in enumerate(named)]
        else:
            kind = model.joints[int(sensors.mech.joint_of[joint.columns[0]])].shortname()
            meaning = _meaning(kind.removeprefix("JointModel"), count, joint.count, "")
            lines.append(_line(letter, number, count, f"{joint.name}: {meaning}"))
        number, rate = number + count, rate + joint.count
    return "\n".join(lines)


def named_places(mech: Mechanism, sensors: MeasurementModel | None, upper: str) -> str:
    """Enumerations of motors and sensors by name; without names that C cannot tell apart."""
    kinds = [("MOTOR", mech.actuator_names), ("SENSOR", () if sensors is None else sensors.labels)]
    lines = []
    for kind, labels in kinds:
        known = [re.sub(r"[^A-Z0-9]+", "_", x.upper()).strip("_") for x in labels]
        own = {x: i for i, x in enumerate(known) if known.count(x) == 1}
        named = ", ".join(f"{upper}_{kind}_{x} = {i}" for x, i in own.items())
        lines += [f"enum {{ {named} }};"] if own else []
    return "\n".join(lines)


def name_size(labels: Iterable[str]) -> int:
    """The characters of the longest name in C, its end included."""
    return 1 + max((len(comment(x)) for x in labels), default=0)


def names_in_c(mech: Mechanism, sensors: MeasurementModel | None, prefix: str) -> str:
    """The data of the header: names of motors and sensors, places of motors."""
    driven = [np.flatnonzero(column) for column in mech.B.T]
    at = [int(x[0]) if x.size == 1 else -1 for x in driven]
    joint_of = mech.joint_of
    in_q = [mech.model.idx_qs[int(joint_of[k])] if k >= 0 else -1 for k in at]
    of_sensors = () if sensors is None else sensors.labels
    text = list[str]()
    for kind, labels in (("motors", mech.actuator_names), ("sensors", of_sensors)):
        if labels:
            listed = ", ".join(json.dumps(comment(x)) for x in labels)
            size = f"[{len(labels)}][{name_size(labels)}]"
            text.append(f"const char {prefix}_{kind}{size} = {{{listed}}};")
    for kind, places in (("motor_q", in_q), ("motor_v", at)):
        text.append(f"const int {prefix}_{kind}[] = {{{', '.join(map(str, places))}}};")
    return "\n".join(text) + "\n"


def limits_table(law: LimitsLaw) -> str:
    """Motor by motor, and joint by joint."""
    bound, lines = law.bound, [efforts_table(law.mech, law.bound)]
    for i, name in enumerate(bound.names):
        sides = ((x, getattr(bound, x)[:, i]) for x in ("position", "velocity", "acceleration"))
        given = [f"{x} {low:g} to {up:g}" for x, (low, up) in sides if np.isfinite([low, up]).any()]
        kept = f"{comment(name)}: {', '.join(given)}; given up where motors cannot keep it"
        lines.append(f" *   {kept}")
    return "\n".join(lines)


def efforts_table(mech: Mechanism, bound: BoundLimits) -> str:
    """Motor by motor."""
    lines = []
    for i, name in enumerate(mech.actuator_names):
        lower, upper = bound.effort[:, i]
        less = ", less with speed" if bound.curves[i] is not None else ""
        lines.append(f" *   u[{i}]  {lower:g} to {upper:g}{less}: {comment(name)}")
    return "\n".join(lines)


def _meaning(kind: str, nq: int, nv: int, unit: str) -> str:
    if (nq, nv) == (1, 1):
        return unit
    if (nq, nv) == (2, 1):
        return "cosine and sine of the angle"
    if kind == "FreeFlyer":
        return "position, m, and quaternion x y z w"
    if kind == "Spherical":
        return "quaternion x y z w"
    if kind == "Planar":
        return "x and y, m, cosine and sine of the angle"
    if kind == "Translation":
        return "x, y and z, m"
    return f"{nq} numbers of a {kind}, as Pinocchio has them"


def _line(letter: str, i: int, n: int, text: str) -> str:
    place = f"{letter}[{i}]" if n == 1 else f"{letter}[{i}..{i + n - 1}]"
    return f" *   {place:<10} {comment(text)}"
