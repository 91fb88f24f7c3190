"""Friction and springs of the joints of an SDF, including those that close loops."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.forces.counterbalance import Counterbalance
from holoctl.forces.force_protocol import Force
from holoctl.forces.joint_spring import JointSpring
from holoctl.io.friction_and_springs import FrictionAndSprings
from holoctl.io.reader_limits import FilePlace
from holoctl.io.sdf_elements import TYPES, child_of, number
from holoctl.io.sdf_frames import Drawing
from holoctl.io.sdf_limits import place
from holoctl.io.xml import Element

__all__ = ["counterbalances", "losses_of"]


def counterbalances(model: Drawing, plain: pin.Model) -> list[tuple[Force, FilePlace]]:
    """Counterbalances of movable links that have mass but no gravity."""
    return [
        (Counterbalance((name, pin.SE3(np.eye(3), com)), mass), model.links[name])
        for name, (mass, com) in model.lifted.items()
        if mass and place(plain, name)[0] and plain.gravity.linear.any()
    ]


def losses_of(model: Drawing, file: str) -> FrictionAndSprings:
    """Friction and springs from ``<dynamics>`` of the axes.

    A cut joint has the same name as its closure, so names are valid in both cases.

    Raises
    ------
    LoadError
        With the line, for coefficients that are not numbers.
    """
    found = FrictionAndSprings(file, model.element)
    for name, joint in model.joints.items():
        kind = TYPES.get(joint.attributes.get("type", ""), "")
        for i, tag in enumerate(("axis", "axis2")):
            axis = child_of(joint, tag)
            dynamics = None if axis is None else child_of(axis, "dynamics")
            if dynamics is None or kind in ("", "weld") or (i and kind != "universal"):
                continue
            _axis(f"{name}[{i}]" if kind == "universal" else name, kind, dynamics, found)
    for name, link in model.links.items():
        decay = child_of(link, "velocity_decay")
        if decay and any(number(decay, word, 0.0) for word in ("linear", "angular")):
            found.left_out[f"velocity_decay of {name!r}"] = "of a body, not of a joint"
    return found


def _axis(coordinate: str, kind: str, dynamics: Element, found: FrictionAndSprings) -> None:
    words = {"damping": "viscous", "friction": "coulomb", "spring_stiffness": ""}
    for word, friction in words.items():
        x = number(dynamics, word, 0.0)
        if not x:
            continue
        if x < 0.0:
            found.left_out[f"{word} of {coordinate!r}"] = "negative"
        elif kind == "spherical":  # a spherical joint has no axes
            found.left_out[f"{word} of {coordinate!r}"] = "a spherical joint has no axis"
        elif friction:
            found.add(friction, coordinate, x)
        else:
            rest = number(dynamics, "spring_reference", 0.0)
            found.springs.append((JointSpring(coordinate, x, rest), dynamics))
