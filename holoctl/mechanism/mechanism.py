"""The mechanism: a kinematic tree, the constraints that close it, and its motors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import (
    Array,
    Vector,
    counted,
    known_name,
    listing,
    made_again,
    name_list,
    numbers,
    quiet,
    read_only,
    shown,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.base.html_table import Cells, html_table, named
from holoctl.constraints.constraint_protocol import BoundChart, BoundRows, Constraint, offered
from holoctl.forces.force_protocol import BoundForce, Force
from holoctl.mechanism.bound_limits import applicable, bound_limits, without_joints
from holoctl.mechanism.description import (
    actuation_matrix,
    bound_force,
    bound_to,
    check_not_needed,
    check_unique,
    checked_constraints,
    checked_forces,
    checked_model,
    checked_motors,
    checked_parked,
    checked_reference,
    checked_tolerance,
    closures_among,
    unique_names,
)
from holoctl.mechanism.limits import Limits, checked_limits
from holoctl.mechanism.motors import MotorPlaces, motor_places, position_reader, positions_of
from holoctl.mechanism.rigid_constraints import closures_of, rigid_constraint_models
from holoctl.mechanism.row_blocks import Block, blocks_of
from holoctl.mechanism.scales import scales
from holoctl.tree.configurations import checked_configuration, checked_configurations, whole_rows
from holoctl.tree.coordinates import coordinate_names, joint_of_coordinate, translational
from holoctl.tree.frozen_model import plain

__all__ = ["Mechanism", "workspace"]

_Made = TypeVar("_Made")


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """A rigid-body tree with constraints, motors and forces.

    ``M a + h = B u + J^T f + F + G^T lambda``, with F the `forces` that belong to the mechanism.

    All arguments are checked here, once. A mechanism does not change; it can be pickled, copied,
    and shared between threads. ``dataclasses.replace(mech, model=...)`` makes a variant.

    Parameters
    ----------
    model : pin.Model
        The tree, with at least one joint, numbered depth-first (`hc.renumbered` makes such a copy)
        and without mimic joints. The axes of joints must have norm 1, and placements must be
        rotations, up to 1e-9: Pinocchio accepts others and silently computes wrong efforts. The
        model is copied. Its friction and damping are not part of the equation of motion: give them
        as `forces`. Inertias must be those of bodies: no negative mass or principal moment (about
        the centre of mass), none larger than the sum of the others, up to 1e-5 of the largest
        entry; points, rods and joints without a body are allowed. Rotor inertias are
        ``model.armature``, or if it is zero ``rotorGearRatio**2 * rotorInertia``.
    constraints : iterable of constraints, optional
        `Closure`, `Rod`, `Contact`, `Coupling`, `Custom`, `GammaQ`. Names must differ.
    actuated : iterable of str, optional
        Coordinates with a motor; the columns of B and the entries of u follow this order.
    actuation : (nv, nu) array_like, optional
        Instead of `actuated`, a general B: efforts on the coordinates = B u.
    reference : (nq,) array_like, optional
        A configuration near the usual assembled one: the default guess of `hc.assemble`.
        It need not be closed. Default: Pinocchio's neutral configuration.
    name : str, optional
        Default: the name of the model.
    parked : iterable of (int, constraint), optional
        Constraints that are switched off, with their index among all: see `with_enabled`.
    tolerance : float, optional
        Tolerance of the geometry, scaled (lengths over the size of their loop, rad), from 0 to less
        than 1e-2. Rows that depend on others to within it are redundant: the others close exactly
        and determine the motion, and the redundant ones may stay open by the tolerance. Default 0:
        exact geometry. `hc.load` uses 1e-4, since files are rounded.
    forces : iterable of forces, optional
        `JointFriction`, `JointSpring`, `Spring`, `CustomForce`: F in the equation of motion. Their
        names and those of the constraints must differ.
    limits : Limits, optional
        Limits of motors and joints. The mechanism stores them, and `limits_of` returns them;
        controllers keep the limits given to them. Efforts of coordinates without a motor may be
        among them: they apply once the coordinate has a motor.

    Attributes
    ----------
    model, constraints, actuated, reference, name, parked, tolerance, forces, limits
        As given (`constraints`, `actuated`, `parked` and `forces` as tuples).
    nq, nv, nu : int
        Sizes of a configuration, of a velocity, and of the motor efforts.
    B : (nv, nu) array
        Actuation matrix, read-only; ``B.T @ v`` are the rates of the motors.
    coordinate_names : tuple of nv str
        The joint's name, or ``joint[i]`` for a joint of several coordinates, in the order of v, not
        of q: see `motor_positions`.
    constraint_names, force_names : tuple of str
        One name for each constraint, and for each force.
    joint_of : (nv,) int array
        Index of the joint of each coordinate.
    row_scale : (m,) array
        Factor that makes each row a pure number: 1/L for lengths, 1 for angles, where L is
        the characteristic length of the loops that the row belongs to, m; for a coupling, the
        factor that makes its largest scaled coefficient 1.
    column_scale : (nv,) array
        L for translational coordinates, 1 for angular ones.
    scale : (m, nv) array
        Scale of each entry of G: the factor of its row times that of its column.
    bound : tuple of bound rows
        Each constraint bound to this model, in their order.
    bound_forces : tuple of bound forces
        Each force bound to this model, in their order.
    row_names : tuple of m str
        ``constraint.row``.
    blocks : tuple of Block
        The same rows grouped for evaluation: those between bodies in one table, others one by one.
    lengths : ((n,) int array, (n,) int array)
        The indices of translational coordinates in q, and in v.
    chart : bound rows or None
        The first explicit chart, which moves the state; None without one.
    stabilised : bool
        Whether some constraint has a time constant.
    slides : bool
        Whether some translational coordinate moves no frame of a row between bodies.
    motors : MotorPlaces
        The indices of the motors' positions in q.

    Raises
    ------
    InputError
        If any part of the description is invalid; the message states which part and why.

    See Also
    --------
    load : reads one from a file.
    Linkage : builds one from bodies and joints.
    assemble : finds a closed configuration.
    mobility : examines it.

    Examples
    --------
    >>> import pinocchio as pin, holoctl as hc
    >>> tree = pin.buildModelFromUrdf(str(hc.robot_file("four_bar")))
    >>> hinge = hc.Closure("coupler_pin", "rocker_pin", "revolute", name="pin")
    >>> hc.Mechanism(tree, [hinge], actuated=["crank"], reference=[1.0, -0.4, 1.5])
    <Mechanism 'four_bar': 3 coordinates, 1 constraint with 5 rows, 1 motor>
    """

    model: pin.Model
    constraints: Sequence[Constraint] = ()
    actuated: Sequence[str] = ()
    actuation: Any = None
    reference: Any = None
    name: str = ""
    parked: Sequence[tuple[int, Constraint]] = ()
    tolerance: float = 0.0
    forces: Sequence[Force] = ()
    limits: Limits | None = None

    nq: int = field(init=False)
    nv: int = field(init=False)
    nu: int = field(init=False)
    B: Array = field(init=False)
    coordinate_names: tuple[str, ...] = field(init=False)
    constraint_names: tuple[str, ...] = field(init=False)
    force_names: tuple[str, ...] = field(init=False)
    joint_of: NDArray[np.intp] = field(init=False)
    row_scale: Vector = field(init=False)
    column_scale: Vector = field(init=False)
    scale: Array = field(init=False)
    bound: tuple[BoundRows, ...] = field(init=False)
    bound_forces: tuple[BoundForce, ...] = field(init=False)
    row_names: tuple[str, ...] = field(init=False)
    blocks: tuple[Block, ...] = field(init=False)
    lengths: tuple[NDArray[np.intp], NDArray[np.intp]] = field(init=False)
    chart: BoundChart | None = field(init=False)
    stabilised: bool = field(init=False)
    slides: bool = field(init=False)
    motors: MotorPlaces = field(init=False)
    _local: threading.local = field(init=False)

    @quiet
    def __post_init__(self) -> None:
        """Check the arguments, once."""

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        model = checked_model(self.model)
        put("model", model)
        if not isinstance(self.name, str):
            raise InputError(f"Mechanism: name must be text; got {shown(self.name)!r}")
        put("name", self.name or model.name or "mechanism")
        put("tolerance", checked_tolerance(self.tolerance, "Mechanism"))
        put("nq", int(model.nq))
        put("nv", int(model.nv))
        put("coordinate_names", coordinate_names(model))
        several = " (a joint of several coordinates names them joint[i])"
        check_unique(self.coordinate_names, "coordinate names must differ", several)
        put("joint_of", read_only(joint_of_coordinate(model)))
        put("reference", read_only(checked_reference(model, self.reference)))
        put("constraints", checked_constraints(self.constraints))
        put("parked", checked_parked(self.parked))
        put("forces", checked_forces(self.forces))
        all_names = unique_names([*self.constraints, *self.forces, *(c for _, c in self.parked)])
        count = len(self.constraints)
        put("constraint_names", all_names[:count])
        put("force_names", all_names[count : count + len(self.forces)])
        named = zip(self.constraints, self.constraint_names, strict=True)
        put("bound", tuple(bound_to(c, name, model, self.reference) for c, name in named))
        cut = closures_among(self.constraints, self.parked)
        forces = zip(self.forces, self.force_names, strict=True)
        bound = (bound_force(f, name, model, self.reference, *cut) for f, name in forces)
        put("bound_forces", tuple(bound))
        charts = (b for b in self.bound if offered(b, "chart") and hasattr(b, "dependent"))
        put("chart", next(charts, None))
        put("stabilised", any(c.t_stab not in (None, False) for c in self.constraints))
        put("row_names", sum((bound.labels for bound in self.bound), ()))
        check_unique(self.row_names, "names of rows must differ")
        put("blocks", blocks_of(self.bound))
        put("lengths", _lengths(model))
        put("slides", _slides(self))
        put("_local", threading.local())
        if self.actuation is not None and name_list("Mechanism: actuated", self.actuated):
            raise InputError("Mechanism: give one of actuated= and actuation=, not both")
        put("actuated", checked_motors(self.actuated, self.coordinate_names))
        put("motors", motor_places(model, self.actuated))
        put("B", read_only(actuation_matrix(self.actuated, self.actuation, self.coordinate_names)))
        put("nu", int(self.B.shape[1]))
        if self.actuation is not None:
            put("actuation", self.B)
        row_scale, column_scale = scales(model, self.reference, self.bound)
        put("row_scale", read_only(row_scale))
        put("column_scale", read_only(column_scale))
        put("scale", read_only(row_scale[:, None] * column_scale))
        if self.limits is not None:
            limits = checked_limits(self.limits, self.name)
            try:
                bound_limits(self, applicable(self, limits))
            except InputError as error:
                raise InputError(
                    f"{error}. A variant of a mechanism keeps its limits, those of a file "
                    "too: dataclasses.replace(mech, ..., limits=None) removes them"
                ) from None

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """A name for each motor: its coordinate, or ``u[i]`` where B was given."""
        return tuple(self.actuated) or tuple(f"u[{i}]" for i in range(self.nu))

    def __repr__(self) -> str:
        forces = f", {counted(len(self.forces), 'force')}" if self.forces else ""
        return (
            f"<Mechanism {self.name!r}: {counted(self.nv, 'coordinate')}, "
            f"{counted(len(self.constraints), 'constraint')} with "
            f"{counted(len(self.row_scale), 'row')}, {counted(self.nu, 'motor')}"
            f"{forces}>"
        )

    def _repr_html_(self) -> str:
        return html_table(self, lambda: _parts(self))

    def __reduce__(self) -> tuple[Any, ...]:
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return made_again, (type(self), given | {"model": self.model.copy()})

    def motor_positions(self, q: Any) -> Array:
        """The positions of the motors, in the order of u: ``q_ref`` of `ComputedTorque`.

        Parameters
        ----------
        q : (nq,) or (..., nq) array_like
            Configuration, or many of them.

        Returns
        -------
        positions : (nu,) or (..., nu) array
            rad or m. The angle of a continuous joint is in (-pi, pi], without its full turns. Of
            many configurations, one with a number that is not finite (as a batch returns for a
            robot that has no result) gives NaN.

        Raises
        ------
        InputError
            For a wrong shape; for numbers of one configuration that are not finite; for a part that
            is not of unit norm; for motors without a position: on a coordinate of a spherical or a
            free joint, or given by a matrix.

        Examples
        --------
        >>> import holoctl as hc
        >>> mech = hc.load(hc.robot_file("five_bar"))
        >>> mech.motor_positions([2.2, -1.4, 0.9, 1.4]).tolist()
        [2.2, 0.9]
        >>> mech.motor_positions([[2.2, -1.4, 0.9, 1.4], [2.3, -1.4, 0.8, 1.4]]).tolist()
        [[2.2, 0.9], [2.3, 0.8]]
        """
        if type(q) is not np.ndarray:
            q = numbers("q", q, "configuration, nq entries")
        many = q.ndim > 1
        read = checked_configurations if many else checked_configuration
        x = read(self.model, q, "q")
        if self.actuation is not None or self.motors.missing:
            why = (
                f"motor {self.motors.missing}"
                if self.motors.missing
                else "its motors were given by a matrix, actuation="
            )
            raise InputError(
                f"{self.name}: {why}, so there is no position of its own to give; "
                "motor_rates(v) are the rates, and a controller takes a whole configuration"
            )
        if many:
            return positions_of(self.motors, x).reshape(*q.shape[:-1], self.nu)
        return position_reader(self.motors)(x)

    def motor_rates(self, v: Any) -> Array:
        """The rates of the motors: ``B.T @ v``, in the order of u.

        Parameters
        ----------
        v : (nv,) or (..., nv) array_like
            Velocity, rad/s or m/s, or many of them.

        Returns
        -------
        rates : (nu,) or (..., nu) array
            rad/s or m/s; for a general B the rates on which u does its work, ``u @ rates``. Of many
            velocities, one with a number that is not finite gives NaN.

        Raises
        ------
        InputError
            For a wrong shape; for numbers of one velocity that are not finite.
        """
        if type(v) is not np.ndarray:
            v = numbers("v", v, "velocity")
        rates: Array
        if v.ndim > 1:
            rows = whole_rows("v", v, self.nv, "velocities")
            rates = (rows @ self.B).reshape(*v.shape[:-1], self.nu)
        else:
            rates = self.B.T @ vector("v", v, self.nv, "velocity")
        return rates

    def per_thread(self, key: str, make: Callable[[], _Made]) -> _Made:
        """The result of `make`, which is called once for each thread: a workspace, or constants of
        the mechanism.

        Parameters
        ----------
        key : str
            Name under which the object is stored.
        make : function () -> object

        Returns
        -------
        object
            The object of this thread. It is not pickled, and is deleted with the mechanism.
        """
        held: dict[str, Any] = self._local.__dict__
        if key not in held:
            held[key] = make()
        made: _Made = held[key]
        return made

    # Changed sets of constraints, as when a foot lands: each method returns a new mechanism.

    def with_constraints(self, *constraints: Constraint) -> Mechanism:
        """This mechanism with more constraints, after those it has.

        Raises
        ------
        InputError
            As `Mechanism` does, such as for a name that is in use.
        """
        return replace(self, constraints=(*self.constraints, *constraints))

    def with_forces(self, forces: Iterable[Force]) -> Mechanism:
        """This mechanism with more forces, after those it has.

        Raises
        ------
        InputError
            As `Mechanism` does, such as for a name that is in use.
        """
        return replace(self, forces=(*self.forces, *checked_forces(forces)))

    def without(self, *names: str) -> Mechanism:
        """This mechanism without the constraints and forces of these names.

        The limits of closures that are joints are removed with them.

        Raises
        ------
        InputError
            For an unknown name, and for a closure on which a remaining force acts.
        """
        known = (*self._all_names(), *self.force_names)
        for name in names:
            known_name(name, known, "constraint or force", self.name)
        forces = [f for f in self.forces if f.default_name not in names]
        check_not_needed(forces, names, self.model, self.name)
        left = [c for c in self._all_constraints() if c.default_name not in names]
        off = {c.default_name for _, c in self.parked}
        if self.limits is None:
            return self._with(left, off, forces)
        return self._with(left, off, forces, limits=without_joints(self, self.limits, names))

    def with_enabled(self, **enabled: bool) -> Mechanism:
        """This mechanism with constraints switched on or off by name.

        Constraints that are switched off are kept in `parked`, and return to their index when
        switched on. Names that are not valid in Python are given as ``with_enabled(**{"left-foot":
        False})``.

        Raises
        ------
        InputError
            For an unknown name, or a value that is not True or False.
        """
        known = self._all_names()
        off = {c.default_name for _, c in self.parked}
        for name, on in enabled.items():
            known_name(name, known, "constraint", self.name)
            if not isinstance(on, (bool, np.bool_)):
                raise InputError(f"with_enabled: {name!r} must be True or False; got {on!r}")
            off = off - {name} if on else off | {name}
        return self._with(self._all_constraints(), off, self.forces)

    def with_model(self, model: pin.Model) -> Mechanism:
        """The same constraints and motors on another model, such as one with a payload.

        Raises
        ------
        InputError
            As `Mechanism` does, such as for a frame that the model does not have.
        """
        return replace(self, model=model)

    # Pinocchio's own constraints.

    def to_pinocchio(self) -> tuple[pin.Model, pin.StdVec_RigidConstraintModel]:
        """The tree and its constraints as Pinocchio's own, for `pin.constraintDynamics`.

        Spherical closures and contacts of three rows become CONTACT_3D, welds CONTACT_6D, and
        revolute closures two CONTACT_3D on the axis. Frame a is joint 1, frame b joint 2, but the
        world is always joint 2; reference frames are LOCAL. A `t_stab` of T gives Kp = 1 / T^2 and
        Kd = 2 / T. Motors, forces and constraints that are off are not part of the result.

        Returns
        -------
        model : pin.Model
            A copy.
        constraint_models : pin.StdVec_RigidConstraintModel
            With their names, in the order of `constraints`.

        Raises
        ------
        InputError
            For constraints that Pinocchio has no type for, by name, with what to do instead.

        Examples
        --------
        >>> import holoctl as hc
        >>> mech = hc.load(hc.robot_file("five_bar"))
        >>> model, constraint_models = mech.to_pinocchio()
        >>> [(one.name, str(one.type)) for one in constraint_models]
        [('tip_hinge', 'CONTACT_3D'), ('tip_hinge, axis', 'CONTACT_3D')]
        """
        models, others = rigid_constraint_models(
            self.model, self.constraints, self.constraint_names, self.bound
        )
        if others:
            ways = dict.fromkeys(others.values())
            each = "; ".join(f"{listing([n for n in others if others[n] == w])}: {w}" for w in ways)
            raise InputError(
                f"{self.name}: Pinocchio's RigidConstraintModel fixes points and whole frames, and "
                f"has no type for {counted(len(others), 'constraint')}. {each}"
            )
        return self.model.copy(), models

    @classmethod
    def from_pinocchio(
        cls,
        model: pin.Model,
        constraint_models: Iterable[pin.RigidConstraintModel],
        actuated: Iterable[str] = (),
        *,
        reference: Any = None,
        ground: str | None = None,
    ) -> Mechanism:
        """A mechanism from a tree and Pinocchio's constraint models.

        CONTACT_3D becomes a spherical `Closure`, CONTACT_6D a weld, with frame a on joint 1 and
        frame b on joint 2. The reference frame of a model, LOCAL or LOCAL_WORLD_ALIGNED, chooses
        axes of multipliers there; the motion is the same. ``dataclasses.replace`` adds what else a
        mechanism has.

        Parameters
        ----------
        model : pin.Model
            The model of the constraint models.
        constraint_models : iterable of pin.RigidConstraintModel
        actuated, reference
            As in `Mechanism`.
        ground : str, optional
            Of constraints between a joint and the world: ``"placement"``: the frame of the world
            is its placement; ``"reference"``: it is where the reference configuration has the frame
            of the joint. Default: the placement, but an error for one that was left at identity,
            as Pinocchio's constructors for one joint do, if the frame is not there at the
            reference.

        Returns
        -------
        Mechanism

        Raises
        ------
        InputError
            As above; for joints that the model does not have, desired placements, velocities and
            accelerations, and stabilisation that is not critically damped.

        Examples
        --------
        >>> import holoctl as hc
        >>> mech = hc.load(hc.robot_file("stewart"))
        >>> hc.Mechanism.from_pinocchio(*mech.to_pinocchio(), mech.actuated)
        <Mechanism 'stewart': 24 coordinates, 6 constraints with 18 rows, 6 motors>
        """
        tree = checked_model(model)
        reference = checked_reference(tree, reference)
        closures = closures_of(tree, constraint_models, reference, ground)
        return cls(tree, closures, tuple(name_list("actuated", actuated)), reference=reference)

    def _all_names(self) -> tuple[str, ...]:
        return tuple(c.default_name for c in self._all_constraints())

    def _all_constraints(self) -> list[Constraint]:
        found = list(self.constraints)
        for place, c in self.parked:
            found.insert(place, c)
        return found

    def _with(
        self, constraints: Sequence[Constraint], off: set[str], forces: Sequence[Force], **more: Any
    ) -> Mechanism:
        on = tuple(c for c in constraints if c.default_name not in off)
        parked = tuple((i, c) for i, c in enumerate(constraints) if c.default_name in off)
        return replace(self, constraints=on, parked=parked, forces=forces, **more)


def workspace(mech: Mechanism) -> pin.Data:
    """Pinocchio's workspace for this mechanism, one per thread."""
    return mech.per_thread("data", mech.model.createData)


def _parts(mech: Mechanism) -> Iterator[Cells]:
    """The lines of a mechanism's table in a notebook."""
    rows = [
        f"{name} ({counted(len(bound.labels), 'row')})"
        for name, bound in zip(mech.constraint_names, mech.bound, strict=True)
    ]
    yield "coordinates", named(mech.coordinate_names)
    yield "motors", named(mech.actuator_names)
    yield "constraints", named(rows)
    if mech.forces:
        yield "forces", named(mech.force_names)
    yield "mass", f"{pin.computeTotalMass(plain(mech.model)):.4g} kg"
    if mech.tolerance:
        yield "tolerance of the geometry", f"{mech.tolerance:.0e} (scaled)"


def _slides(mech: Mechanism) -> bool:
    """Whether some translational coordinate moves no frame of a row between bodies. The closure
    error limits the other coordinates; rows of other kinds do not count."""
    held = np.zeros(mech.nv, dtype=bool)
    for block in mech.blocks:
        if block.table is not None:
            held |= block.table.support.any(axis=0)
    return not held[mech.lengths[1]].all()


def _lengths(model: pin.Model) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The indices of translational coordinates in q and in v; in q they are the first of their
    joint."""
    in_v = np.flatnonzero(translational(model))
    joint = joint_of_coordinate(model)[in_v]
    own = plain(model)
    first_q, first_v = np.array(list(own.idx_qs)), np.array(list(own.idx_vs))
    return read_only(in_v - first_v[joint] + first_q[joint]), read_only(in_v)
