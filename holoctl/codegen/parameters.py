"""Payload, gravity and friction as parameters of a law: symbols in the place of constants.

A body of mass m, first moment m c and second moment J (the integral of r r' about its origin)
carries a payload of mass m_p with its centre of mass at p and the inertia I_p about it, in the axes
of a frame that is at (R, o) on the body. With c_p = o + R p, both together have

    mass            m + m_p
    first moment    m c + m_p c_p
    second moment   J + R (tr(I_p) / 2 - I_p) R' + m_p c_p c_p'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, read_only
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.tree import Step, TreeSteps, constant, moments
from holoctl.constraints.joint_coordinates import AXES_OF
from holoctl.forces.joint_friction import BoundFriction
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.coordinates import translational
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import plain

__all__ = [
    "FRICTION", "INERTIA", "PAYLOAD", "LawParameters", "friction_parameters", "load_numbers",
    "mechanism_with", "usual_values", "with_parameters",
]  # fmt: skip

PAYLOAD = {"payload_mass": 1, "payload_centre": 3, "payload_inertia": 6}
"""The numbers of a payload: kg; m; kg m^2, in the order xx yy zz xy xz yz."""

ENTRIES = {
    "payload_mass": ("mass [kg]",),
    "payload_centre": ("x [m]", "y [m]", "z [m]"),
    "payload_inertia": tuple(f"{x} [kg m^2]" for x in ("xx", "yy", "zz", "xy", "xz", "yz")),
    "gravity": ("x [m/s^2]", "y [m/s^2]", "z [m/s^2]"),
}
"""What each number of a payload, in the axes of its frame, and of gravity is, with its unit."""

FRICTION = "friction_viscous", "friction_coulomb"
"""The coefficients of joint friction: N m s/rad or N s/m; N m or N."""

INERTIA = [[0, 3, 4], [3, 1, 5], [4, 5, 2]]
"""The places of the entries of an inertia matrix in that order."""


MOMENTS = 10
"""Numbers of a body: mass, first moment, and second moment in that order."""


@dataclass(frozen=True, eq=False)
class LawParameters:
    """What may change after code was made.

    Attributes
    ----------
    frame : Frame or None
        That of the payload; None without.
    symbols : dict of str to (n, 1) symbols
        The inputs of laws: ``payload_mass``, ``payload_centre``, ``payload_inertia``, ``gravity``
        and the two of friction, those that there are; or ``load``, the numbers of `load_numbers`.
    usual : dict of str to (n,) array
        The values of the model.
    entries : dict of str to tuple of n str
        What each number is, with its unit.
    """

    frame: Frame | None = None
    symbols: dict[str, SX] = field(default_factory=dict)
    usual: dict[str, Array] = field(default_factory=dict)
    entries: dict[str, tuple[str, ...]] = field(default_factory=dict)


def friction_parameters(mech: Mechanism) -> LawParameters:
    """The coefficients of the joint friction of a mechanism, of the rates that have some."""
    bound, *_ = (x for x in mech.bound_forces if isinstance(x, BoundFriction))
    names = list(zip(mech.coordinate_names, translational(mech.model), strict=True))
    for pair in bound.rates.pairs:
        of_kind = AXES_OF[pair.kind]
        for x in pair.axes:
            place = f"[{of_kind.index(x)}]" if len(of_kind) > 1 else ""
            names.append((pair.name + place, x.linear))
    kept = [names[k] for k in bound.acting]
    usual = {
        x: y[bound.acting] for x, y in zip(FRICTION, (bound.viscous, bound.coulomb), strict=True)
    }
    units = (("N m s/rad", "N s/m"), ("N m", "N"))
    return LawParameters(None, _symbols(usual), usual, {
        name: tuple(f"{joint} [{unit[bool(linear)]}]" for joint, linear in kept)
        for name, unit in zip(FRICTION, units, strict=True)
    })  # fmt: skip


def _symbols(usual: Mapping[str, Array]) -> dict[str, SX]:
    return {name: casadi_module().SX.sym(name, x.size) for name, x in usual.items()}


def usual_values(frame: Frame | None, gravity: Array | None) -> dict[str, Array]:
    """No payload where there is a frame for one, then gravity if it is given."""
    usual = {} if frame is None else {name: np.zeros(n) for name, n in PAYLOAD.items()}
    return usual if gravity is None else {**usual, "gravity": gravity}


def with_parameters(
    tree: TreeSteps, frame: Frame | None, gravity: bool, friction: LawParameters | None = None,
    together: bool = False,
) -> tuple[TreeSteps, LawParameters]:  # fmt: skip
    """The tree with a payload at a frame and, if it is wanted, gravity as symbols; `together` those
    of `load_numbers`; beside them the parameters of friction."""
    usual = usual_values(frame, tree.gravity if gravity else None)
    if together and usual:
        load = casadi_module().SX.sym("load", MOMENTS * (frame is not None) + 3 * gravity)
        tree, symbols = _with_load(tree, frame, gravity, load), {"load": load}
        return tree, LawParameters(frame, symbols, usual)
    symbols = _symbols(usual)
    if frame is not None:
        body = _carrying(_body(tree, frame), frame, *(symbols[name] for name in PAYLOAD))
        tree = _with_body(tree, frame, body)
    if gravity:
        tree = replace(tree, gravity=symbols["gravity"])
    more = friction or LawParameters()
    entries = {name: ENTRIES[name] for name in usual} | more.entries
    return tree, LawParameters(frame, symbols | more.symbols, usual | more.usual, entries)


def load_numbers(mech: Mechanism, frame: Frame | None, gravity: bool) -> Vector:
    """Payload and gravity of a mechanism that has them, as a law with one input reads them: mass,
    first and second moment of the body with its payload, which cost nothing in a tick, and gravity.
    """
    found = [np.array(mech.model.gravity.linear)] if gravity else []
    if frame is not None:
        mass, first, second = moments(plain(mech.model).inertias[frame.joint])
        six = np.zeros(6)
        six[np.array(INERTIA)] = second
        found = [np.array([mass]), first, six, *found]
    return read_only(np.concatenate(found))


def _with_load(tree: TreeSteps, frame: Frame | None, gravity: bool, load: SX) -> TreeSteps:
    """The tree with the numbers of `load_numbers` as symbols."""
    if frame is not None:
        own = {"mass": load[0], "first": load[1:4], "second": _symmetric(load[4:MOMENTS])}
        tree = _with_body(tree, frame, replace(_body(tree, frame), **own))
    return replace(tree, gravity=load[-3:]) if gravity else tree


def _body(tree: TreeSteps, frame: Frame) -> Step:
    return tree.steps[tree.of_joint[frame.joint]]


def _with_body(tree: TreeSteps, frame: Frame, body: Step) -> TreeSteps:
    """The tree with another body at a frame."""
    steps = list(tree.steps)
    steps[tree.of_joint[frame.joint]] = body
    return replace(tree, steps=tuple(steps))


def _symmetric(six: SX) -> SX:
    ca = casadi_module()
    return ca.vertcat(*(ca.horzcat(*(six[k] for k in row)) for row in INERTIA))


def _carrying(body: Step, frame: Frame, mass: SX, centre: SX, inertia: SX) -> Step:
    """A body with a payload."""
    ca = casadi_module()
    R, o = constant(frame.placement.rotation), constant(frame.placement.translation)
    c = o + R @ centre
    I = _symmetric(inertia)  # noqa: E741
    about_centre = R @ (0.5 * ca.trace(I) * ca.SX.eye(3) - I) @ R.T
    first, second = ca.SX(ca.DM(body.first)), ca.SX(ca.DM(body.second))
    return replace(
        body, mass=body.mass + mass, first=first + mass * c,
        second=second + about_centre + mass * (c @ c.T),
    )  # fmt: skip


def mechanism_with(mech: Mechanism, frame: Frame | None, values: Mapping[str, Array]) -> Mechanism:
    """The mechanism with these values of its parameters, and with the scales that it had."""
    model = mech.model.copy()
    if frame is not None:
        mass, centre, inertia = (values[name] for name in PAYLOAD)
        payload = pin.Inertia(float(mass[0]), centre, inertia[INERTIA])
        inertias = model.inertias
        inertias[frame.joint] = inertias[frame.joint] + frame.placement.act(payload)
    if "gravity" in values:
        model.gravity = pin.Motion(values["gravity"], np.zeros(3))
    found = mech.with_model(model)
    for name in ("row_scale", "column_scale", "scale"):
        object.__setattr__(found, name, getattr(mech, name))
    return found
