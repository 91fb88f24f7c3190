"""Friction and springs of an MJCF: MuJoCo's passive forces, and ``frictionloss``.

Positions of hinges and slides are relative to ``ref`` here, so a spring rests at ``springref -
ref``.
"""

from __future__ import annotations

from typing import Any

from holoctl.forces.joint_spring import JointSpring
from holoctl.forces.spring import Spring
from holoctl.io.friction_and_springs import FrictionAndSprings
from holoctl.io.mjcf_actuators import arms_of
from holoctl.io.mjcf_compiled import CompiledMjcf
from holoctl.io.mjcf_tendons import not_straight
from holoctl.io.mjcf_tree import SINGLE, MjcfTree

__all__ = ["losses_of"]


def losses_of(found: CompiledMjcf, tree: MjcfTree) -> FrictionAndSprings:
    """Friction and springs of joints, tendons and actuators."""
    losses = FrictionAndSprings(found.text.root.file, found.text.root)
    springs, dampers = not found.off("SPRING"), not found.off("DAMPER")
    friction = not found.off("CONSTRAINT", "FRICTIONLOSS")
    for j in range(len(found.joints)):
        _joint(found, tree, j, losses, (springs, dampers, friction))
    for t in range(len(found.tendons)):
        _tendon(found, tree, t, losses, (springs, dampers, friction))
    if dampers:
        for i in range(len(found.actuators)):
            _actuator(found, tree, i, losses)
    return losses


def _linear(first: Any, higher: Any, what: str, losses: FrictionAndSprings) -> float:
    """The first coefficient of a polynomial that is linear; else 0, and the polynomial is listed as
    left out."""
    if higher.any():
        losses.left_out[what] = "a polynomial"
    elif first < 0.0:
        losses.left_out[what] = "negative"
    else:
        return float(first)
    return 0.0


def _joint(
    found: CompiledMjcf,
    tree: MjcfTree,
    j: int,
    losses: FrictionAndSprings,
    acting: tuple[bool, bool, bool],
) -> None:
    m, name, (springs, dampers, friction) = found.model, tree.joint(j), acting
    dof, first, kind = m.jnt_dofadr[j], m.jnt_qposadr[j], tree.kinds[j]
    if dampers:
        x = _linear(m.dof_damping[dof], m.dof_dampingpoly[dof], f"damping of {name!r}", losses)
        losses.add("viscous", name, x)
    if springs:
        what = f"stiffness of {name!r}"
        stiffness = _linear(m.jnt_stiffness[j], m.jnt_stiffnesspoly[j], what, losses)
        if stiffness and kind == "free":
            losses.left_out[what] = "a free joint"
        elif stiffness and m.jnt_springyield[j]:
            losses.left_out[what] = "springyield: it is plastic"
        elif stiffness:
            rest = float(m.qpos_spring[first] - m.qpos0[first]) if kind in SINGLE else 0.0
            losses.springs.append((JointSpring(name, stiffness, rest), found.joints[j].place))
    loss = float(m.dof_frictionloss[dof]) if friction else 0.0
    if loss and kind == "free":
        what = f"frictionloss of {name!r}"
        losses.left_out[what] = "a free joint, along axes of the world"
    else:
        losses.add("coulomb", name, loss)


def _tendon(
    found: CompiledMjcf,
    tree: MjcfTree,
    t: int,
    losses: FrictionAndSprings,
    acting: tuple[bool, bool, bool],
) -> None:
    """Add a spring between two sites; other properties of a tendon are listed as left out."""
    m, part, (springs, dampers, friction) = found.model, found.tendons[t], acting
    name = part.name or f"tendon {t}"
    what = f"tendon {name!r}"
    stiffness = damping = 0.0
    if springs:
        word = f"stiffness of {what}"
        stiffness = _linear(m.tendon_stiffness[t], m.tendon_stiffnesspoly[t], word, losses)
    if dampers:
        word = f"damping of {what}"
        damping = _linear(m.tendon_damping[t], m.tendon_dampingpoly[t], word, losses)
    if friction and m.tendon_frictionloss[t]:
        losses.left_out[f"frictionloss of {what}"] = "dry friction is that of joints"
    if not (stiffness or damping):
        return
    why = not_straight(found, t)
    first, (least, most) = m.tendon_adr[t], m.tendon_lengthspring[t].tolist()
    if most < 0.0:
        raise part.place.error(
            f"{part.place}: springlength must be one length, or an ascending pair of them, or -1 "
            f"for that where the springs of joints rest; got {least:g} {most:g}"
        )
    ends = [] if why else [tree.sites[m.wrap_objid[i]] for i in (first, first + 1)]
    if ends and ends[0][0] == ends[1][0]:
        return  # both sites on one body: its length never changes
    if stiffness and m.tendon_springyield[t]:
        why = why or "springyield: it is plastic"
    if not why and 0.0 < least < most and stiffness:
        why = "springlength is a range, and it pushes below it"
    if why:
        words = " and ".join(w for w, x in (("stiffness", stiffness), ("damping", damping)) if x)
        losses.left_out[f"{words} of {what}"] = why
        return
    a, b = ((tree.model.names[joint], at) for joint, at in ends)
    rope = bool(stiffness) and least < most
    length = most if stiffness else 0.0
    spring = Spring(a, b, stiffness, length, 0.0 if rope else damping, unilateral=rope, name=name)
    losses.springs.append((spring, part.place))
    if rope and damping:  # also while slack, as in MuJoCo
        damper = Spring(a, b, 0.0, 0.0, damping, name=f"{name} damper")
        losses.springs.append((damper, part.place))


def _actuator(found: CompiledMjcf, tree: MjcfTree, i: int, losses: FrictionAndSprings) -> None:
    """Add the damping of an actuator, through its gear."""
    m, part = found.model, found.actuators[i]
    what = f"actuator {part.name or f'<{part.place.tag}> {i}'!r}"
    for word in ("lugre", "cogging"):
        if part.place.tag == "dcmotor" and word in part.place.attributes:
            losses.left_out[f"{word} of {what}"] = "of the motor itself"
    word = f"damping of {what}"
    damping = _linear(m.actuator_damping[i], m.actuator_dampingpoly[i], word, losses)
    if not damping:
        return
    arms = arms_of(found, tree, i)
    if arms is None or len(arms) != 1:
        losses.left_out[word] = "it is not on one hinge or slide"
        return
    for j, arm in arms.items():
        losses.add("viscous", tree.joint(j), float(damping * m.actuator_gear[i, 0] ** 2 * arm**2))
