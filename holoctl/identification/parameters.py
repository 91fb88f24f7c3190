"""The parameters in which the equation of motion is linear.

    gamma' (M a + h - F) = gamma' (W theta + known)        theta = T p + constant

theta are all parameters, p those that may be unknown: bodies that are tied share theirs, and known
ones stay at their value.
Reference: docs/derivations-identification.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import (
    Array,
    Vector,
    counted,
    entries,
    flag,
    known_name,
    listing,
    name_list,
    positive,
    quiet,
    quoted,
    read_only,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.forces.joint_friction import BoundFriction, JointFriction
from holoctl.forces.joint_spring import BoundJointSpring, JointSpring
from holoctl.identification.columns import (
    BODY_PARAMETERS,
    FrictionLaw,
    ParameterBlock,
    body_block,
    body_names,
    friction_block,
    friction_labels,
    friction_laws,
    friction_of,
    known_efforts,
    offset_block,
    own_block,
    rotor_block,
    spring_block,
)
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.description import closures_among
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.projection import Projection

__all__ = ["Parameters", "parameter_rows"]

FRICTION = ("joints", "motors", "model")


@dataclass(frozen=True, eq=False, repr=False)
class Parameters:
    """The dynamic parameters of a mechanism that may be unknown.

    Geometry, constraints and motors are known, and so are forces without parameters here: springs
    between points, counterbalances, forces of the user.

    Parameters
    ----------
    mech : Mechanism
    bodies : iterable of str, optional
        Bodies with unknown inertia, by link (by joint, if that has no link). Default: all that have
        a mass. ``()``: none.
    friction : {"joints", "motors", "model"}, iterable of str or None, optional
        The joints with unknown viscous and Coulomb friction: all, cut ones too; those of motors;
        those that have some in the mechanism; or these, by coordinate, as in `JointFriction`.
        None: friction is known.
    transition : float, optional
        The rate over which unknown Coulomb friction changes its sign, rad/s or m/s. Default: as in
        the mechanism, or 0.01.
    stribeck : float, optional
        The speed at which the excess of friction at the start of a motion has decayed to 1/e,
        rad/s or m/s; the excess is then unknown too. Default: where the mechanism has it.
    rotors, springs, offsets : bool, optional
        Whether these are unknown: rotor inertias of motors; stiffness and damping of each
        `JointSpring` (its rest position is known); a constant error of each measured effort.
    known : iterable of str, optional
        Parameters that stay at their value, ``"thigh.m"``, or whole bodies, ``"thigh"``.
    tied : iterable of iterables of str, optional
        Bodies that are equal, such as the rods of a Delta robot: they have the same parameters in
        the axes of their joints, those of the first.
    columns : mapping of str to function, optional
        Own parameters. The function (projection, a) returns the efforts (nv,) on the coordinates
        for one unit, as a part of ``M a + h - F``; their value in the mechanism is 0.

    Attributes
    ----------
    names : tuple of p str
        ``"thigh.m"``, ``"knee.viscous"``, ``"knee.rotor"``, ...
    values : (p,) array
        In the mechanism, in SI units.
    lower : (p,) array
        Lower bounds: 0 for friction, stiffness, damping and rotors, else -inf.
    every : tuple of str
        The names of theta: known and tied parameters too.

    Raises
    ------
    InputError
        For unknown names, for one that is named twice, and if nothing is unknown.

    See Also
    --------
    base_parameters : those that motions can tell apart.
    regression : their equations along a measured motion.
    identify : their values.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> model = hc.Parameters(mech, friction="motors")
    >>> len(model.names), model.names[0], model.names[-1]
    (44, 'proximal_left.m', 'motor_right.coulomb')
    """

    mech: Mechanism
    bodies: Iterable[str] | None = None
    friction: Any = None
    transition: float | None = None
    stribeck: float | None = None
    rotors: bool = False
    springs: bool = False
    offsets: bool = False
    known: Iterable[str] = ()
    tied: Iterable[Iterable[str]] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)

    names: tuple[str, ...] = field(init=False)
    values: Vector = field(init=False)
    lower: Vector = field(init=False)
    every: tuple[str, ...] = field(init=False)
    _of_every: Array = field(init=False)
    _constant: Vector = field(init=False)
    _blocks: tuple[ParameterBlock, ...] = field(init=False)
    _laws: dict[str, FrictionLaw] = field(init=False)
    _known: Any = field(init=False)

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        check_mechanism(self.mech)
        mech = self.mech
        for what in ("rotors", "springs", "offsets"):
            put(what, flag(f"Parameters: {what}", getattr(self, what)))
        for what in ("transition", "stribeck"):
            if getattr(self, what) is not None:
                put(what, positive(f"Parameters: {what}", getattr(self, what), "rad/s or m/s"))
        if not isinstance(self.columns, Mapping):
            raise InputError(f"Parameters: columns must be a mapping; got {quoted(self.columns)}")
        put("columns", MappingProxyType(dict(self.columns)))
        put("bodies", self._checked_bodies())
        ties = self._checked_ties()
        put("tied", ties)
        put("_laws", self._unknown_friction())
        put("friction", self.friction if isinstance(self.friction, str) else tuple(self._laws))
        blocks = [body_block(mech, [1 + body_names(mech).index(x) for x in self._all_bodies()])]
        if self._laws:
            blocks.append(friction_block(mech, self._laws, self.stribeck is not None))
        if self.springs:
            blocks.append(spring_block(mech))
        if self.rotors:
            blocks.append(rotor_block(mech))
        if self.offsets:
            blocks.append(offset_block(mech))
        if self.columns:
            blocks.append(own_block(mech, self.columns))
        put("_blocks", tuple(blocks))
        put("every", sum((b.names for b in blocks), ()))
        twice = [x for x in self.every if self.every.count(x) > 1]
        if twice:
            raise InputError(f"{mech.name}: two parameters are called {twice[0]!r}")
        put("_known", self._known_part())
        self._choose(ties)

    def _choose(self, ties: tuple[tuple[str, ...], ...]) -> None:
        """Which parameters are unknown: names, values, and theta as a function of them."""

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        values = np.concatenate([b.values for b in self._blocks])
        lower = np.concatenate([np.full(len(b.names), b.lower) for b in self._blocks])
        given = tuple(name_list("Parameters: known", self.known))
        valid, bodies = [*self.every, *self._all_bodies()], self._all_bodies()
        fixed = {f"{n}.{x}" for n in bodies if n not in self.bodies for x in BODY_PARAMETERS}  # type: ignore[operator]
        for name in given:
            known_name(name, valid, "parameter or body", self.mech.name)
            fixed |= {f"{name}.{x}" for x in BODY_PARAMETERS} if name in bodies else {name}
        put("known", given)
        first = {f"{other}.{x}": f"{group[0]}.{x}" for group in ties for other in group[1:]
                 for x in BODY_PARAMETERS}  # fmt: skip
        if both := sorted(fixed & set(first)):
            raise InputError(
                f"{self.mech.name}: {both[0]!r} is tied to {first[both[0]]!r}; "
                "name that as known instead"
            )
        free = [x for x in self.every if x not in fixed and x not in first]
        if not free:
            raise InputError(
                f"{self.mech.name}: no parameter is unknown; name bodies, friction, rotors, "
                "springs, offsets or columns"
            )
        at = {name: i for i, name in enumerate(free)}
        T, constant = np.zeros((len(self.every), len(free))), np.zeros(len(self.every))
        for i, name in enumerate(self.every):
            free_one = first.get(name, name)
            if free_one in at:
                T[i, at[free_one]] = 1.0
            else:
                constant[i] = values[self.every.index(free_one)]
        places = [self.every.index(x) for x in free]
        put("names", tuple(free))
        put("values", read_only(values[places]))
        put("lower", read_only(lower[places]))
        put("_of_every", read_only(T))
        put("_constant", read_only(constant))

    def __repr__(self) -> str:
        return f"<Parameters of {self.mech.name!r}: {counted(len(self.names), 'unknown')}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameters, (
            self.mech, self.bodies, self.friction, self.transition, self.stribeck, self.rotors,
            self.springs, self.offsets, self.known, self.tied, dict(self.columns),
        )  # fmt: skip

    # ------------------------------------------------------------------- checks, and what is known

    def _checked_bodies(self) -> tuple[str, ...]:
        mech, names = self.mech, body_names(self.mech)
        if self.bodies is None:
            inertias = list(mech.model.inertias)[1:]
            return tuple(n for n, x in zip(names, inertias, strict=True) if x.mass > 0.0)
        given = name_list("Parameters: bodies", self.bodies)
        for name in given:
            known_name(name, names, "body", mech.name)
        return tuple(dict.fromkeys(given))

    def _checked_ties(self) -> tuple[tuple[str, ...], ...]:
        groups, seen = [], set[str]()
        every = entries(self.tied)
        if every is None:
            raise InputError(f"Parameters: tied must be lists of bodies; got {quoted(self.tied)}")
        for given in every:
            group = tuple(name_list("Parameters: tied", given))
            for name in group:
                known_name(name, self.bodies, "unknown body", self.mech.name)  # type: ignore[arg-type]
                if name in seen:
                    raise InputError(f"{self.mech.name}: {name!r} is tied twice")
                seen.add(name)
            if len(group) < 2:
                raise InputError(f"{self.mech.name}: tied bodies are two or more; got {group}")
            groups.append(group)
        return tuple(groups)

    def _all_bodies(self) -> tuple[str, ...]:
        """The bodies of theta: the unknown ones, and all others with a mass or an inertia, such as
        a rotor without a mass of its own."""
        names, inertias = body_names(self.mech), list(self.mech.model.inertias)[1:]
        return tuple(
            n for n, x in zip(names, inertias, strict=True)
            if n in self.bodies or np.any(x.toDynamicParameters())  # type: ignore[operator]
        )  # fmt: skip

    def _unknown_friction(self) -> dict[str, FrictionLaw]:
        """The laws of the rates with unknown friction: their values and widths."""
        mech, given = self.mech, self.friction
        if given is None:
            return {}
        own, labels = friction_laws(mech), friction_labels(mech)
        if isinstance(given, str):
            if given not in FRICTION:
                raise InputError(
                    f"Parameters: friction must be one of {FRICTION}, a list of joints, or None; "
                    f"got {given!r}"
                )
            motors = [x for x in labels if x in mech.actuated]
            wanted = {"joints": labels, "motors": motors, "model": list(own)}[given]
            if not wanted:
                raise InputError(
                    f"{mech.name}: friction={given!r}, but there is no such joint; "
                    f"joints: {listing(labels)}"
                )
        else:
            wanted = name_list("Parameters: friction", given)
            for name in wanted:
                known_name(name, labels, "coordinate of a joint", mech.name)
        found = {}
        for name in wanted:
            law = own.get(name, FrictionLaw())
            if self.transition is not None:
                law = law._replace(transition=self.transition)
            if self.stribeck is not None:
                law = law._replace(speed=self.stribeck)
            found[name] = law
        return found

    def _known_part(self) -> Any:
        """The efforts of forces without parameters, as a function of (P, a)."""
        mech, replaced, friction = self.mech, list[Any](), None
        if self._laws:
            replaced += [f for f in mech.bound_forces if isinstance(f, BoundFriction)]
            own = friction_laws(mech)
            if left := {name: law for name, law in own.items() if name not in self._laws}:
                closures = closures_among(mech.constraints, mech.parked)[0]
                friction = friction_of(left).bind(mech.model, "friction", mech.reference, closures)
        if self.springs:
            replaced += [f for f in mech.bound_forces if isinstance(f, BoundJointSpring)]
        return known_efforts(mech, replaced, friction, self.rotors)

    # ----------------------------------------------------------------------------------- for users

    def theta(self, p: Any) -> Vector:
        """All parameters, in the order of `every`.

        Parameters
        ----------
        p : (p,) array_like
            Values in the order of `names`.

        Returns
        -------
        (n,) array
        """
        found: Vector = self._of_every @ vector("p", p, len(self.names)) + self._constant
        return found

    def mechanism(self, p: Any) -> Mechanism:
        """The mechanism with these parameters.

        Offsets and own parameters are no part of a mechanism and are left out.

        Parameters
        ----------
        p : (p,) array_like
            Values in the order of `names`; bodies must be physically consistent.

        Returns
        -------
        Mechanism

        Raises
        ------
        InputError
            For an inertia that no body has, and for negative friction or rotor inertia.
        """
        of = dict(zip(self.every, self.theta(p), strict=True))
        mech, names = self.mech, body_names(self.mech)
        model = mech.model.copy()
        for name in self.bodies:  # type: ignore[union-attr]
            ten = np.array([of[f"{name}.{x}"] for x in BODY_PARAMETERS])
            j = 1 + names.index(name)
            model.inertias[j] = pin.Inertia.FromDynamicParameters(ten)
        if self.rotors:
            armature = np.array(model.armature)
            for i, name in enumerate(mech.coordinate_names):
                armature[i] = of.get(f"{name}.rotor", armature[i])
            model.armature = armature
        forces = list[Any]()
        for force, name in zip(mech.forces, mech.force_names, strict=True):
            if isinstance(force, JointSpring) and f"{name}.stiffness" in of:
                k, d = of[f"{name}.stiffness"], of[f"{name}.damping"]
                forces.append(replace(force, stiffness=k, damping=d))
            elif not (self._laws and isinstance(force, JointFriction)):
                forces.append(force)
        if self._laws:
            laws = friction_laws(mech) | {
                name: law._replace(
                    **{x: of[f"{name}.{x}"] for x in ("viscous", "coulomb", "stribeck")
                       if f"{name}.{x}" in of}
                ) for name, law in self._laws.items()
            }  # fmt: skip
            forces.append(friction_of(laws))
        return replace(mech, model=model, forces=forces)


def parameter_rows(
    model: Parameters, P: Projection, a: Vector, basis: Array | None = None
) -> tuple[Array, Vector]:
    """``N' W T`` (k, p) and ``N' (W constant + known)`` (k,) at the acceleration a, along the
    columns of a basis N (nv, k) of the admissible velocities; default: gamma."""
    N = P.gamma if basis is None else basis
    along = N.T @ np.hstack([b.columns(P, a) for b in model._blocks])
    return along @ model._of_every, along @ model._constant + model._known(P, a) @ N
