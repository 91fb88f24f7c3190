"""The columns of parameters: efforts on the coordinates for each parameter that is 1.

    M a + h - F = W theta + known

| parameters                       | column, of one that is 1                                 |
|----------------------------------|----------------------------------------------------------|
| of a body: m, m c, I             | Pinocchio's regressor of the joint torques, which is     |
|                                  | linear in them                                           |
| viscous, coulomb, stribeck       | J' r, J' tanh(r / transition), and with exp(-(r/speed)^2)|
| stiffness, damping of a spring   | J' e, J' r, e from the rest position                     |
| rotor                            | the acceleration of its coordinate                       |
| offset of a motor                | B e_i: a constant error of the measured effort           |

r = J v are rates of joints, cut ones too. Friction acts against the motion, so that the columns of
M a + h - F are positive. `known` are the efforts of forces that have no parameters here.
Reference: docs/derivations-identification.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, quoted, shaped
from holoctl.base.errors import InputError
from holoctl.closing.body_graph import link_names
from holoctl.constraints.closure import Closure
from holoctl.constraints.joint_coordinates import AXES_OF
from holoctl.forces.force_protocol import BoundForce
from holoctl.forces.joint_friction import TRANSITION, BoundFriction, JointFriction
from holoctl.forces.joint_rates import JointRates
from holoctl.forces.joint_spring import BoundJointSpring
from holoctl.forces.sum_of_forces import all_efforts
from holoctl.mechanism.description import closures_among
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.projector.projection import Projection
from holoctl.tree.frozen_model import plain

__all__ = [
    "BODY_PARAMETERS",
    "LENGTHS",
    "Columns",
    "FrictionLaw",
    "ParameterBlock",
    "body_block",
    "body_names",
    "friction_block",
    "friction_labels",
    "friction_laws",
    "friction_of",
    "known_efforts",
    "offset_block",
    "own_block",
    "rotor_block",
    "spring_block",
]

BODY_PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""The parameters of a body, in Pinocchio's order: mass, kg; first moment, kg m; inertia about the
origin of its joint, kg m^2; in the axes of the joint."""

LENGTHS = dict(zip(BODY_PARAMETERS, (0, 1, 1, 1, 2, 2, 2, 2, 2, 2), strict=True))
"""The power of length in the unit of each."""

Columns = Callable[[Projection, Vector], Array]
"""columns(P, a) -> (nv, n): the efforts ``M a + h - F`` of parameters that are 1."""


class ParameterBlock(NamedTuple):
    """Parameters of one sort, with their columns.

    Attributes
    ----------
    names : tuple of n str
    values : (n,) array
        In the mechanism.
    lower : float
        Lower bound of each: 0, or -inf.
    columns : function (P, a) -> (nv, n)
    """

    names: tuple[str, ...]
    values: Vector
    lower: float
    columns: Columns


# ------------------------------------------------------------------------------------- bodies


def body_names(mech: Mechanism) -> tuple[str, ...]:
    """A name for the body of each joint, from joint 1: its link, or the joint without one."""
    joints = range(1, mech.model.njoints)
    links = [_own_link(mech, j) for j in joints]
    taken = [x for x in links if x]
    names = [plain(mech.model).names[j] for j in joints]
    return tuple(
        link if link and taken.count(link) == 1 else name
        for link, name in zip(links, names, strict=True)
    )


def _own_link(mech: Mechanism, joint: int) -> str:
    """The first link of a body, but for those that stand between joints in series."""
    links = link_names(mech.model, joint)
    return next((x for x in links if not x.endswith("].link")), links[0] if links else "")


def body_block(mech: Mechanism, joints: Sequence[int]) -> ParameterBlock:
    """The inertia of the bodies of these joints."""
    model, names = mech.model, body_names(mech)
    places = [10 * j - 10 + i for j in joints for i in range(10)]

    def columns(P: Projection, a: Vector) -> Array:
        Y: Array = pin.computeJointTorqueRegressor(model, workspace(mech), P.q, P.v, a)
        return Y[:, places]

    values = [np.asarray(model.inertias[j].toDynamicParameters()) for j in joints]
    return ParameterBlock(
        tuple(f"{names[j - 1]}.{x}" for j in joints for x in BODY_PARAMETERS),
        np.concatenate([*values, np.zeros(0)]), -np.inf, columns,
    )  # fmt: skip


# ----------------------------------------------------------------------------------- friction


class FrictionLaw(NamedTuple):
    """Friction of one rate; `stribeck` is the excess of the peak over Coulomb friction."""

    viscous: float = 0.0
    coulomb: float = 0.0
    stribeck: float = 0.0
    speed: float = 1.0
    transition: float = TRANSITION


def friction_labels(mech: Mechanism) -> tuple[str, ...]:
    """The names of all rates on which friction can act, but for those of free joints: coordinates
    of the tree, then of closures that are joints."""
    model = plain(mech.model)
    kinds = [model.joints[int(j)].shortname() for j in mech.joint_of]
    pairs = zip(mech.coordinate_names, kinds, strict=True)
    tree = [name for name, kind in pairs if kind != "JointModelFreeFlyer"]
    cut = [c for c in mech.constraints if isinstance(c, Closure) and c.joint not in (None, "free")]
    return (*tree, *(x for c in cut for x in _labels(c.default_name, str(c.joint))))


def _labels(name: str, kind: str) -> list[str]:
    n = len(AXES_OF[kind])
    return [name] if n == 1 else [f"{name}[{i}]" for i in range(n)]


def _rate_labels(mech: Mechanism, rates: JointRates) -> list[str]:
    """A label for each of the rates."""
    found = list(mech.coordinate_names)
    for pair in rates.pairs:
        every = _labels(pair.name, pair.kind)
        found += [every[AXES_OF[pair.kind].index(x)] for x in pair.axes]
    return found


def friction_laws(mech: Mechanism) -> dict[str, FrictionLaw]:
    """The friction of a mechanism by label of its rate: the sum of all its `JointFriction`."""
    found: dict[str, FrictionLaw] = {}
    for force in mech.bound_forces:
        if not isinstance(force, BoundFriction):
            continue
        excess = force.peak - force.coulomb
        of = zip(force.viscous, force.coulomb, excess, force.speed, force.transition, strict=True)
        for label, (viscous, coulomb, stribeck, speed, transition) in zip(
            _rate_labels(mech, force.rates), of, strict=True
        ):
            if not (viscous or coulomb or stribeck):
                continue
            law = FrictionLaw(*map(float, (viscous, coulomb, stribeck, speed, transition)))
            found[label] = _both(label, found.get(label), law, mech.name)
    return found


def _both(label: str, one: FrictionLaw | None, other: FrictionLaw, owner: str) -> FrictionLaw:
    """The sum of two laws on one rate."""
    if one is None:
        return other
    for what, amount in (("transition", "coulomb"), ("speed", "stribeck")):
        widths = [getattr(x, what) for x in (one, other) if getattr(x, amount) or x.stribeck]
        if len(set(widths)) > 1:
            raise InputError(
                f"{owner}: two JointFriction on {label!r} have different widths ({what} "
                f"{widths[0]:g} and {widths[1]:g}), so no single law has them as its parameters; "
                "describe this friction by one"
            )
    first = one if one.coulomb or one.stribeck else other
    return FrictionLaw(
        one.viscous + other.viscous, one.coulomb + other.coulomb, one.stribeck + other.stribeck,
        (one if one.stribeck else other).speed, first.transition,
    )  # fmt: skip


def friction_of(laws: Mapping[str, FrictionLaw]) -> JointFriction:
    """The description of these laws as one force."""
    dry = {name: x for name, x in laws.items() if x.coulomb or x.stribeck}
    excess = {n: (x.coulomb + x.stribeck, x.speed) for n, x in dry.items() if x.stribeck}
    return JointFriction(
        viscous={name: x.viscous for name, x in laws.items()},
        coulomb={name: x.coulomb for name, x in laws.items()},
        stribeck=excess or None,
        transition={name: x.transition for name, x in dry.items()},
    )


def friction_block(
    mech: Mechanism, laws: Mapping[str, FrictionLaw], stribeck: bool
) -> ParameterBlock:
    """Viscous and Coulomb friction of these rates; with `stribeck` the excess of all of them,
    otherwise of those that have some."""
    every = {name: law._replace(viscous=1.0, coulomb=1.0) for name, law in laws.items()}
    closures = closures_among(mech.constraints, mech.parked)[0]
    bound = friction_of(every).bind(mech.model, "friction", mech.reference, closures)
    rates, labels = bound.rates, _rate_labels(mech, bound.rates)
    at = np.array([labels.index(name) for name in laws], dtype=int)
    fall = np.array([bool(stribeck or law.stribeck) for law in laws.values()], dtype=bool)
    width = np.array([law.transition for law in laws.values()])
    speed = np.array([law.speed for law in laws.values()])
    names = [f"{n}.viscous" for n in laws] + [f"{n}.coulomb" for n in laws]
    names += [f"{n}.stribeck" for n, has in zip(laws, fall, strict=True) if has]
    values = [x.viscous for x in laws.values()] + [x.coulomb for x in laws.values()]
    values += [x.stribeck for x, has in zip(laws.values(), fall, strict=True) if has]

    def columns(P: Projection, a: Vector) -> Array:
        r, J = rates.at(P.kinematics)
        along = np.vstack([np.eye(mech.nv), J])[at].T
        r = r[at]
        step = np.tanh(r / width)
        excess = np.exp(-((r / speed) ** 2)) * step
        return np.hstack([along * r, along * step, (along * excess)[:, fall]])

    return ParameterBlock(tuple(names), np.array(values), 0.0, columns)


# --------------------------------------------------------------- springs, rotors, offsets, own


def spring_block(mech: Mechanism) -> ParameterBlock:
    """Stiffness and damping of each spring on a joint."""
    of = {n: f for n, f in zip(mech.force_names, mech.bound_forces, strict=True)
          if isinstance(f, BoundJointSpring) and f.joint is not None}  # fmt: skip
    names = tuple(f"{n}.{x}" for n in of for x in ("stiffness", "damping"))

    def columns(P: Projection, a: Vector) -> Array:
        found = []
        for force in of.values():
            x = force.joint.at(P.kinematics)  # type: ignore[union-attr]  # filtered above
            found += [x.jacobian.T @ force.away(x.value), x.jacobian.T @ x.rate]
        return np.array(found).reshape(len(found), mech.nv).T

    values = np.array([x for f in of.values() for x in (f.stiffness, f.damping)])
    return ParameterBlock(names, values, 0.0, columns)


def rotor_block(mech: Mechanism) -> ParameterBlock:
    """The rotor inertia of each motor that is on one coordinate, and of coordinates that have one
    in the model."""
    armature = plain(mech.model).armature
    has = [i for i, name in enumerate(mech.coordinate_names)
           if name in mech.actuated or armature[i]]  # fmt: skip
    if not has:
        raise InputError(f"{mech.name}: rotors=True, but no motor is on one coordinate")

    def columns(P: Projection, a: Vector) -> Array:
        found = np.zeros((mech.nv, len(has)))
        found[has, range(len(has))] = a[has]
        return found

    names = tuple(f"{mech.coordinate_names[i]}.rotor" for i in has)
    return ParameterBlock(names, np.array(armature[has]), 0.0, columns)


def offset_block(mech: Mechanism) -> ParameterBlock:
    """A constant error of each measured effort: measured = true + offset."""
    names = tuple(f"{name}.offset" for name in mech.actuator_names)
    return ParameterBlock(names, np.zeros(mech.nu), -np.inf, lambda P, a: mech.B)


def own_block(mech: Mechanism, columns: Mapping[str, Any]) -> ParameterBlock:
    """Parameters of the user: a function (P, a) -> (nv,) for each."""
    for name, function in columns.items():
        if not isinstance(name, str) or not callable(function):
            raise InputError(
                f"{mech.name}: columns must map names to functions (projection, a); "
                f"got {quoted(name)}: {type(function).__name__}"
            )

    def all_of_them(P: Projection, a: Vector) -> Array:
        found = [shaped(f"columns[{name!r}]", f(P, a), mech.nv) for name, f in columns.items()]
        return np.array(found).reshape(len(found), mech.nv).T

    return ParameterBlock(tuple(columns), np.zeros(len(columns)), -np.inf, all_of_them)


# ------------------------------------------------------------------------------- known efforts


def known_efforts(
    mech: Mechanism,
    replaced: Collection[BoundForce],
    friction: BoundFriction | None,
    rotors: bool,
) -> Callable[[Projection, Vector], Vector]:
    """``known`` as a function of (P, a): the forces that are not replaced, `friction`, and rotors
    unless they are parameters."""
    left = [f for f in mech.bound_forces if f not in replaced]
    left += [] if friction is None else [friction]
    armature = np.zeros(mech.nv) if rotors else np.array(plain(mech.model).armature)

    def known(P: Projection, a: Vector) -> Vector:
        w = armature * a
        return w - all_efforts(left, P.kinematics).total if left else w

    return known
