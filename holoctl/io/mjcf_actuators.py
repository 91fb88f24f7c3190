"""Actuators of an MJCF as motors: each drives a joint, or those of a fixed tendon, by a gear.

The limits of u:

    u = gain ctrl       gain ctrlrange and forcerange bound u; gear is in B, or is 1
    u                   forcerange only: of servos, which add their own force
    efforts = B u       actuatorfrcrange of a joint bounds its effort, that of a tendon gear u

If several actuators are one motor, u is their sum.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import numpy as np

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.tolerances import LARGEST_LIMIT
from holoctl.io.file_limits import FileLimits
from holoctl.io.mjcf_compiled import CompiledMjcf, MjcfObject
from holoctl.io.mjcf_text import NO_MOTORS
from holoctl.io.mjcf_tree import SINGLE, MjcfTree, range_of
from holoctl.io.reader_limits import FilePlace

__all__ = ["MjcfMotors", "arms_of", "motors_of"]

log = logging.getLogger(__name__)

_Range = tuple[float, float]

_INF = float("inf")
_FREE: _Range = (-_INF, _INF)
_TRANSMISSIONS = ("joint", "jointinparent", "cranksite", "tendon", "site", "body", "site")  # mjtTrn
_PROPORTIONAL = (0, 2, 3)  # mjtDyn: none, and filters


@dataclass
class _Motor:
    """One coordinate of u: the efforts of its unit force, and the range of its force."""

    column: Vector
    range: _Range
    gear: float
    place: FilePlace


@dataclass
class MjcfMotors:
    """Coordinates with a motor, or a matrix B; actuators that are left out, and why, by name;
    limits of the motors."""

    names: list[str]
    B: Array | None
    limits: FileLimits
    left_out: dict[str, str] = field(default_factory=dict)


def motors_of(found: CompiledMjcf, tree: MjcfTree, skip: bool = False) -> MjcfMotors:
    """The motors in the order of the file.

    Parameters
    ----------
    found, tree
    skip : bool
        Leave out actuators that are not motors on joints, instead of raising an error. Their
        contribution to the inertia of a joint is not left out.

    Raises
    ------
    LoadError
        For actuators that are not motors on joints, unless they are left out; for mistakes in any
        case.
    """
    m, motors = found.model, dict[tuple[str, int], _Motor]()
    left_out: dict[str, str] = {}
    for t, tendon in enumerate(found.tendons):
        _add_rotor(tree, tendon, "tendon", found.arms(t), m.tendon_armature[t])
    for i, part in enumerate(found.actuators):
        kind, target = _TRANSMISSIONS[m.actuator_trntype[i]], int(m.actuator_trnid[i, 0])
        if kind == "jointinparent" and tree.kinds[target] in SINGLE:
            kind = "joint"
        gear, arms = np.array(m.actuator_gear[i]), arms_of(found, tree, i)
        of = f"{tree.kinds[target]} joint" if kind.startswith("joint") else kind
        what = kind if kind == "tendon" else f"motor on a {of}"
        _add_rotor(tree, part, what, arms, m.actuator_armature[i] * gear[0] ** 2)
        column, why = _column(found, tree, part, (kind, target), gear)
        before = motors.get((kind, target))
        if not why and before is not None and not np.array_equal(before.column, column):
            name = found.tendons[target].name if kind == "tendon" else tree.joint(target)
            why = f"another actuator drives {kind} {name!r} with another gear"
        if not why:
            force = _force_range(found, i)
            if before is not None:
                force = (before.range[0] + force[0], before.range[1] + force[1])
            motors[kind, target] = _Motor(column, force, gear[0], part.place)
        elif not skip:
            raise part.place.error(
                f"{part.place}: {why}; hc.load(..., actuators='skip') loads the file without it"
            )
        else:
            left_out[part.name or f"<{part.place.tag}> {i}"] = why
    for (kind, target), motor in motors.items():
        if kind == "tendon":
            _narrow_by_tendon(found, motor, target)
    columns = [motor.column for motor in motors.values()]
    if all(k == "joint" and tree.kinds[j] in SINGLE for k, j in motors) and all(
        column.max() == 1.0 for column in columns
    ):
        names, B = [tree.joint(j) for _, j in motors], None
    else:
        names, B = [], np.column_stack(columns)
        _warn_of_shared(found, tree, B)
    limits = FileLimits(found.text.root)
    for i, motor in enumerate(motors.values()):
        if motor.range != _FREE:
            name = names[i] if names else f"u[{i}]"
            limits.given.append(("effort", name, motor.range, motor.place))
    return MjcfMotors(names, B, limits, left_out)


def arms_of(found: CompiledMjcf, tree: MjcfTree, i: int) -> dict[int, float] | None:
    """The motion of an actuator, before its gear, per unit of each hinge and slide that it drives;
    None if it is not a sum of coordinates."""
    kind = _TRANSMISSIONS[found.model.actuator_trntype[i]]
    target = int(found.model.actuator_trnid[i, 0])
    if kind == "tendon":
        return found.arms(target)
    single = kind.startswith("joint") and tree.kinds[target] in SINGLE
    return {target: 1.0} if single else None


def _column(
    found: CompiledMjcf, tree: MjcfTree, part: MjcfObject, drives: tuple[str, int], gear: Vector
) -> tuple[Vector, str]:
    """The efforts of a unit force on all coordinates, and why there is no such column, or an empty
    string."""
    column, (kind, target) = np.zeros(tree.model.nv), drives
    matrix = "; or give the mechanism a matrix: dataclasses.replace(mech, actuation=B)"
    if part.place.tag in NO_MOTORS:
        return column, f"{part.place} in <actuator> is not read: {NO_MOTORS[part.place.tag]}"
    if kind == "tendon":
        arms = found.arms(target)
        if arms is None:
            return column, (
                f"its transmission 'tendon' is not read: {found.tendons[target].name!r} is not a "
                f"<fixed> tendon, so its arms change with the configuration{matrix}"
            )
        for j, arm in arms.items():
            column[tree.columns(j)] = gear[0] * arm
    elif kind not in ("joint", "jointinparent"):
        return column, (
            f"its transmission {kind!r} is not read; only 'joint' and 'tendon' are{matrix}"
        )
    else:
        of = tree.kinds[target]
        if of == "free" or (of == "ball" and kind == "jointinparent"):
            name = tree.joint(target)
            return column, f"{kind}: a motor on the {of} joint {name!r} is not read"
        where = tree.columns(target)
        column[where] = gear[: where.stop - where.start]
    return column, "" if column.any() else "gear is zero: this motor acts on no coordinate"


def _add_rotor(
    tree: MjcfTree, part: MjcfObject, what: str, arms: dict[int, float] | None, rotor: float
) -> None:
    """Add the inertia of a rotor that turns with a joint, or with the length of a tendon."""
    if rotor and (arms is None or len(arms) > 1):
        if what == "tendon":
            what = "tendon is not read; it would couple the joints"
        else:
            what = f"{what} is not read; give it to the joint"
        raise part.place.error(f"{part.place}: armature of a {what}")
    for j, arm in (arms or {}).items():
        tree.model.armature[tree.columns(j)] += rotor * arm**2


# ----------------------------------------------------------------------------------- limits


def _force_range(found: CompiledMjcf, i: int) -> _Range:
    """The range of the force of an actuator."""
    m, part = found.model, found.actuators[i]
    c = m.actuator_ctrladr[i]
    force, control = (
        _wide(range_of(part, f"{of}range", f"{of}limited", limited, values))
        for of, limited, values in (
            ("force", m.actuator_forcelimited[i], m.actuator_forcerange[i]),
            ("ctrl", m.actuator_ctrllimited[c], m.actuator_ctrlrange[c]),
        )
    )
    proportional = (
        (m.actuator_gaintype[i], m.actuator_biastype[i], m.actuator_ctrlnum[i]) == (0, 0, 1)
        and m.actuator_dyntype[i] in _PROPORTIONAL
        and not found.off("CLAMPCTRL")
    )
    gain = float(m.actuator_gainprm[i, 0]) if proportional else 0.0
    if not gain or control == _FREE:
        return force
    least, most = sorted(gain * x for x in control)
    return _common(force, (least, most), part.place)


def _wide(given: _Range | None) -> _Range:
    lower, upper = given or _FREE
    return (
        lower if lower > -LARGEST_LIMIT else -_INF,
        upper if upper < LARGEST_LIMIT else _INF,
    )


def _common(one: _Range, other: _Range, place: FilePlace) -> _Range:
    """The intersection of two ranges, which must not be empty."""
    lower, upper = max(one[0], other[0]), min(one[1], other[1])
    if lower < upper:
        return lower, upper
    raise place.error(
        f"no force of the actuator is within all its ranges: ({one[0]:g}, {one[1]:g}) and "
        f"({other[0]:g}, {other[1]:g})"
    )


def _narrow_by_tendon(found: CompiledMjcf, motor: _Motor, t: int) -> None:
    """Narrow the range of a motor to the forces that its tendon allows."""
    m, part = found.model, found.tendons[t]
    force = range_of(
        part,
        "actuatorfrcrange",
        "actfrclimited",
        m.tendon_actfrclimited[t],
        m.tendon_actfrcrange[t],
    )
    lower, upper = sorted(x / motor.gear for x in _wide(force))
    motor.range, motor.place = _common(motor.range, (lower, upper), part.place), part.place


def _warn_of_shared(found: CompiledMjcf, tree: MjcfTree, B: Array) -> None:
    """Log a warning about limits of joints that are not limits of a single motor."""
    shared = list[str]()
    for j in map(int, np.flatnonzero(found.model.jnt_actfrclimited)):
        acting = np.flatnonzero(B[tree.columns(j)].any(axis=0))
        if acting.size > 1 or any(np.count_nonzero(B[:, i]) > 1 for i in acting):
            shared.append(tree.joint(j))
    if shared:
        log.warning(
            "%s: actuatorfrcrange limits the sum of the efforts of several motors, or of one "
            "motor on several coordinates, on a joint; this is not a limit of one motor, and is "
            "left out: %s",
            found.text.root.file, listing(shared),
        )  # fmt: skip
