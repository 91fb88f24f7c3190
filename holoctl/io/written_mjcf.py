"""A mechanism as MJCF, which MuJoCo and `load` read.

    spherical closure, contact of 3 rows    connect of two sites
    weld                                    weld of two sites
    revolute closure                        two connects, on the axis of the hinge
    rod                                     tendon between two sites, of constant length
    coupling                                joint equality, or equality of a fixed tendon
    motor of one joint, of several          motor on the joint with gear, on a fixed tendon
    joint friction                          damping, frictionloss
    spring on a joint, between points       stiffness and springref, spatial tendon

All else that acts is refused by name. Lengths of tendons count from the configuration of the file,
where joints are at zero.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, listing
from holoctl.base.errors import InputError
from holoctl.base.tolerances import LARGEST_LIMIT
from holoctl.constraints.constraint_protocol import BoundRows, Constraint
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.rod import Rod
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.io.reader_limits import FREE
from holoctl.io.written_bodies import NOTHING, MjcfBodies, written_bodies
from holoctl.io.written_losses import MjcfLosses, losses_of
from holoctl.io.written_tree import described_joint, link_names, other_frames, row_text
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.rigid_constraints import ON_AXIS, hinge_point, instead, is_point, is_weld
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import plain

__all__ = ["written_mjcf"]

log = logging.getLogger(__name__)


@dataclass
class _MjcfParts:
    """The elements of a file that refer to bodies, and the sites that they need.

    Attributes
    ----------
    mech : Mechanism
    bodies : MjcfBodies
    sites : dict of str to Frame
        All sites by name.
    tendons, equalities, motors : list of str
        Lines of these sections.
    """

    mech: Mechanism
    bodies: MjcfBodies = field(default_factory=MjcfBodies)
    sites: dict[str, Frame] = field(default_factory=dict)
    tendons: list[str] = field(default_factory=list)
    equalities: list[str] = field(default_factory=list)
    motors: list[str] = field(default_factory=list)

    def site(self, frame: Frame, name: str) -> str:
        """The name of a site at a frame: the one of the frame's name, if it is there, or a new
        one."""
        there = self.sites.get(frame.name)
        if there is not None and there.joint == frame.joint and _same(there, frame):
            return frame.name
        label, k = name, 1
        while label in self.sites or label in self.bodies.names.values():
            k += 1
            label = f"{name}-{k}"
        self.add(label, frame)
        return label

    def add(self, name: str, frame: Frame) -> None:
        self.sites[name] = frame
        self.bodies.sites.setdefault(frame.joint, []).append((name, frame.placement))

    def tendon(self, name: str, ends: Sequence[Frame], attributes: str = "") -> None:
        """A line between two points."""
        sites = [self.site(f, f"{name}_{x}") for f, x in zip(ends, "ab", strict=True)]
        inner = "".join(f"<site site={quoteattr(s)}/>" for s in sites)
        self.tendons.append(f"<spatial name={quoteattr(name)}{attributes}>{inner}</spatial>")

    def fixed(self, name: str, arms: dict[str, float]) -> None:
        """A sum of coordinates of hinges and slides."""
        inner = "".join(f'<joint joint={quoteattr(j)} coef="{x:.17g}"/>' for j, x in arms.items())
        self.tendons.append(f"<fixed name={quoteattr(name)}>{inner}</fixed>")


def written_mjcf(mech: Mechanism) -> str:
    """The MJCF of a mechanism.

    Raises
    ------
    InputError
        For constraints, forces, joints and motors that MJCF does not have, by name.
    """
    model, document = plain(mech.model), _MjcfParts(mech)
    links = link_names(model)
    document.bodies.names = dict(enumerate(links))
    named = [(f.name, f.placement, 0) for f in model.frames[1:]
             if f.name == links[0] and f.parentJoint == 0]  # fmt: skip
    for name, placement, j in [*named, *other_frames(model, links)]:
        if name not in document.sites and name != model.names[0]:
            document.add(name, Frame(j, placement.copy(), name))
    refused = [*_constraints(document), *_forces(document), *_motors(document)]
    if refused:
        raise InputError(
            f"{mech.name}: MJCF has no counterpart of {'; '.join(refused)}. mech.without(name) "
            "leaves a constraint or force out"
        )
    _limit(document)
    return "\n".join([*_lines(document), ""])


def _lines(document: _MjcfParts) -> list[str]:
    mech, model = document.mech, plain(document.mech.model)
    lines = [
        f"<mujoco model={quoteattr(mech.name)}>",
        f'  <compiler angle="radian" autolimits="true" boundmass="{NOTHING:g}" '
        f'boundinertia="{NOTHING:g}"/>',
        f'  <option gravity="{row_text(model.gravity.linear)}"/>',
        "  <worldbody>",
        *written_bodies(model, document.bodies),
        "  </worldbody>",
    ]
    for tag, inner in (
        ("tendon", document.tendons),
        ("equality", document.equalities),
        ("actuator", document.motors),
        ("keyframe", [f'<key name="home" qpos="{row_text(_qpos(model, mech.reference))}"/>']),
    ):
        if inner:
            lines += [f"  <{tag}>", *(f"    {line}" for line in inner), f"  </{tag}>"]
    return [*lines, "</mujoco>"]


def _qpos(model: pin.Model, q: Vector) -> Vector:
    """A configuration as MuJoCo counts it: poses in the world, quaternions w first, angles."""
    found = list[float]()
    for j in range(1, model.njoints):
        x = q[int(model.idx_qs[j]) : int(model.idx_qs[j]) + int(model.nqs[j])]
        if x.size == 7:
            pose = pin.SE3ToXYZQUAT(model.jointPlacements[j] * pin.XYZQUATToSE3(x))
            found += [*pose[:3], pose[6], *pose[3:6]]
        elif x.size == 4:
            found += [x[3], *x[:3]]
        else:
            found.append(float(np.arctan2(x[1], x[0])) if x.size == 2 else float(x[0]))
    return np.array(found)


# ------------------------------------------------------------------------------------- equality


def _constraints(document: _MjcfParts) -> list[str]:
    """Write the constraints, also those that are off; those that cannot be written, in words."""
    mech, refused = document.mech, list[str]()
    on = list(zip(mech.constraints, mech.constraint_names, mech.bound, strict=True))
    active = [True] * len(on)
    for i, c in mech.parked:
        on.insert(i, (c, c.default_name, c.bind(mech.model, c.default_name, mech.reference)))
        active.insert(i, False)
    for (constraint, name, rows), acts in zip(on, active, strict=True):
        lines = _equality(document, constraint, name, rows)
        if not lines:
            refused.append(f"constraint {name!r} ({_what(constraint)}): {instead(constraint)}")
        document.equalities += lines if acts else [x[:-2] + ' active="false"/>' for x in lines]
    return refused


def _what(constraint: Constraint) -> str:
    kind = type(constraint).__name__
    joint = getattr(constraint, "joint", None) or getattr(constraint, "axes", None)
    return f"{kind}, {joint}" if joint else kind


def _equality(
    document: _MjcfParts, constraint: Constraint, name: str, rows: BoundRows
) -> list[str]:
    """Elements of one constraint; none where there is no such element."""
    if isinstance(constraint, Coupling):
        return [_coupling(document, constraint, name)]
    if type(rows) is not WrenchRows:
        return []
    a, b = rows.frames1[0], rows.frames2[0]
    if isinstance(constraint, Rod):
        document.tendon(name, (a, b))
        more = float(rows.size[0]) - _length_at_zero(document.mech.model, a, b)
        return [_of_tendon(name, more)]
    beside = hinge_point(rows)
    if not (is_weld(rows) or is_point(rows) or beside is not None):
        return []
    tag, points = "weld" if is_weld(rows) else "connect", [(name, np.zeros(3))]
    if beside is not None:
        points.append((f"{name}{ON_AXIS}", beside))
    lines = []
    for label, point in points:
        ends = (Frame(f.joint, f.placement * pin.SE3(np.eye(3), point), f.name) for f in (a, b))
        sites = [document.site(f, f"{label}_{x}") for f, x in zip(ends, "ab", strict=True)]
        lines.append(
            f"<{tag} name={quoteattr(label)} site1={quoteattr(sites[0])} "
            f"site2={quoteattr(sites[1])}/>"
        )
    return lines


def _coupling(document: _MjcfParts, c: Coupling, name: str) -> str:
    """``q1 = a0 + a1 q2`` where the first coefficient is one, else a sum of constant length."""
    (first, x), *rest = sorted(c.coefficients.items(), key=lambda item: item[1] != 1.0)
    if x == 1.0 and len(rest) <= 1:
        second = "".join(f" joint2={quoteattr(n)}" for n, _ in rest)
        line = -rest[0][1] if rest else 0.0
        return (
            f"<joint name={quoteattr(name)} joint1={quoteattr(first)}{second} "
            f'polycoef="{row_text(np.array([c.offset, line, 0.0, 0.0, 0.0]))}"/>'
        )
    document.fixed(name, dict(c.coefficients))
    return _of_tendon(name, float(c.offset))


def _of_tendon(name: str, more: float) -> str:
    """The length of a tendon is that in the drawing, and `more`."""
    return (
        f"<tendon name={quoteattr(name)} tendon1={quoteattr(name)} "
        f'polycoef="{row_text(np.array([more, 0.0, 0.0, 0.0, 0.0]))}"/>'
    )


def _length_at_zero(model: pin.Model, a: Frame, b: Frame) -> float:
    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(plain(model)))
    p, r = ((data.oMi[f.joint] * f.placement).translation for f in (a, b))
    return float(np.linalg.norm(r - p))


def _same(one: Frame, other: Frame) -> bool:
    return bool(
        np.array_equal(one.placement.rotation, other.placement.rotation)
        and np.array_equal(one.placement.translation, other.placement.translation)
    )


# ------------------------------------------------------------------------------ forces, motors


def _forces(document: _MjcfParts) -> list[str]:
    found: MjcfLosses = losses_of(document.mech)
    document.bodies.joints.update(found.joints)
    for name, ends, attributes in found.lines:
        document.tendon(name, ends, attributes)
    return found.refused


def _motors(document: _MjcfParts) -> list[str]:
    """Write the motors; those that cannot be written, in words."""
    mech, model, refused = document.mech, plain(document.mech.model), list[str]()
    bound = bound_limits(mech, limits_of(mech))
    for i, name in enumerate(mech.actuator_names):
        column, (low, high) = np.array(mech.B[:, i]), bound.effort[:, i]
        limit = ""
        if low > -LARGEST_LIMIT or high < LARGEST_LIMIT:
            bounds = [max(low, -LARGEST_LIMIT), min(high, LARGEST_LIMIT)]
            limit = f' ctrlrange="{row_text(np.array(bounds))}"'
        joints = sorted({int(mech.joint_of[k]) for k in np.flatnonzero(column)})
        kinds = [described_joint(model, j).kind for j in joints]
        if len(joints) == 1 and kinds[0] != "free":
            j = joints[0]
            first = int(model.idx_vs[j])
            gear = column[first : first + int(model.nvs[j])]
            on = f"joint={quoteattr(model.names[j])}"
            turns = "" if np.array_equal(gear, [1.0]) else f' gear="{row_text(gear)}"'
        elif {*kinds} <= {"revolute", "prismatic"} and joints:
            document.fixed(f"{name}, arms", {
                str(model.names[j]): float(column[int(model.idx_vs[j])]) for j in joints
            })  # fmt: skip
            on, turns = f"tendon={quoteattr(f'{name}, arms')}", ""
        else:
            refused.append(f"motor {name!r} on {listing([str(model.names[j]) for j in joints])}")
            continue
        document.motors.append(f"<motor name={quoteattr(name)} {on}{turns}{limit}/>")
    return refused


def _limit(document: _MjcfParts) -> None:
    """Write limits of position; a warning names those that MJCF does not have."""
    mech, model = document.mech, plain(document.mech.model)
    bound = bound_limits(mech, limits_of(mech))
    for i, (low, high) in enumerate(bound.position.T[: bound.columns.size]):
        j = int(mech.joint_of[bound.columns[i]])
        if np.isfinite([low, high]).any() and model.nqs[j] == 1:
            document.bodies.ranges[j] = (max(low, -FREE), min(high, FREE))
    left = [what for what, x in (("velocity", bound.velocity), ("acceleration", bound.acceleration))
            if np.isfinite(x).any()]  # fmt: skip
    left += ["speed_torque"] * any(c is not None for c in bound.curves)
    if np.isfinite(bound.position[:, bound.columns.size :]).any():
        left.append("position of cut joints")
    if left:
        log.warning("%s: MJCF has no limits of %s; they are left out", mech.name, ", ".join(left))
