"""The mechanism: a kinematic tree, the constraints that close it, and its motors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import (
    Vector,
    as_given,
    counted,
    instant,
    known_name,
    listing,
    name_list,
    number,
    numbers,
    quiet,
    shaped,
    vector,
    whole,
)
from holoctl.base.errors import InputError
from holoctl.constraints.contract import BoundChart, BoundRows, Constraint, Rows, offered
from holoctl.constraints.wrench import WrenchRows, stacked
from holoctl.mechanism.motors import MotorPlaces, motor_places, position_reader
from holoctl.tree.coordinates import coordinate_names, joint_of_coordinate, translational
from holoctl.tree.frozen_model import FrozenModel, check_unchanged, plain
from holoctl.tree.inertia import check_mass, check_moments
from holoctl.tree.joints import check_joint, check_placement
from holoctl.tree.kinematics import Kinematics, kinematics
from holoctl.tree.numbering import depth_first_order, is_depth_first

__all__ = [
    "FARTHEST",
    "FASTEST",
    "Mechanism",
    "by_constraint",
    "check_configuration",
    "check_mechanism",
    "check_range",
    "check_state",
    "constraint_rows",
    "coordinate_indices",
    "loop_sizes",
    "row_names",
    "rows_of",
    "rows_that_open",
    "state_in_a_tick",
    "workspace",
]

Array = NDArray[np.float64]
_T = TypeVar("_T", bound=np.generic)
_Made = TypeVar("_Made")

ALWAYS_CLOSED = 1e-11
"""A row between bodies whose scaled error is below this at random configurations is zero always."""

RANDOM_CONFIGURATIONS = 6
"""So many are asked."""

FARTHEST, FASTEST = 1e6, 1e4
"""Translational coordinates and their rates may be so large, m and m/s."""

SINGLE = 1e-6
"""Norms that miss one by this much are mended: quaternions in single precision."""


class Block(NamedTuple):
    """Rows that are evaluated together, and where they stand among all: `where` ascends."""

    rows: BoundRows
    where: NDArray[np.intp]

    @property
    def table(self) -> WrenchRows | None:
        """The rows as a table of rows between bodies; None where they are something else."""
        return self.rows if type(self.rows) is WrenchRows else None


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism:
    """A rigid-body tree with constraints and motors: ``M a + h = B u + J^T f + G^T lambda``.

    Everything is checked here, once. A mechanism does not change; it can be pickled, copied,
    and shared between threads. ``dataclasses.replace(mech, model=...)`` makes a variant.

    Parameters
    ----------
    model : pin.Model
        The tree, with at least one joint, numbered depth-first (`hc.renumbered` makes such a
        copy) and without mimic joints. The axes of joints must have norm 1, and placements must
        be rotations, up to 1e-9: Pinocchio takes others and gives wrong efforts without a word.
        A private copy is taken. Its friction and damping are
        not part of the equation of motion: add them to the efforts where they matter. Inertias
        must be those of bodies: no negative mass or principal moment (about the centre of mass),
        none larger than the sum of the others, up to 1e-5 of the largest entry; points, rods and
        joints without a body are allowed. Rotors count by ``model.armature``, or where it is zero
        by ``rotorGearRatio**2 * rotorInertia``.
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
        Constraints that are switched off, with their place among all: see `with_enabled`.

    Attributes
    ----------
    model, constraints, actuated, reference, name, parked
        As given (`constraints`, `actuated` and `parked` as tuples).
    nq, nv, nu : int
        Sizes of a configuration, of a velocity, and of the motor efforts.
    B : (nv, nu) array
        Actuation matrix, not writable; ``B.T @ v`` are the rates of the motors.
    coordinate_names : tuple of nv str
        The joint's name, or ``joint[i]`` for a joint of several coordinates. Places in v, not in
        q: see `motor_positions`.
    constraint_names : tuple of str
        One name for each constraint.
    joint_of : (nv,) int array
        Index of the joint of each coordinate.
    row_scale : (m,) array
        Factor that makes each row a pure number: 1/L for lengths, 1 for angles, where L is
        the characteristic length of the loops that the row belongs to, m; for a coupling, the
        factor that makes its largest scaled coefficient 1.
    column_scale : (nv,) array
        L for translational coordinates, 1 for angular ones.
    bound : tuple of bound rows
        What each constraint is on this model, in their order.
    row_names : tuple of m str
        ``constraint.row``.
    blocks : tuple of Block
        The same rows as they are evaluated: those between bodies in one table, others one by one.
    lengths : ((n,) int array, (n,) int array)
        Where translational coordinates stand in q, and in v.
    slides : bool
        Whether some translational coordinate is in no constraint.
    motors : MotorPlaces
        Where the positions of motors stand in q.

    Raises
    ------
    InputError
        If any part of the description is unusable; the message says which and why.
    """

    model: pin.Model
    constraints: Sequence[Constraint] = ()
    actuated: Sequence[str] = ()
    actuation: Any = None
    reference: Any = None
    name: str = ""
    parked: Sequence[tuple[int, Constraint]] = ()

    nq: int = field(init=False)
    nv: int = field(init=False)
    nu: int = field(init=False)
    B: Array = field(init=False)
    coordinate_names: tuple[str, ...] = field(init=False)
    constraint_names: tuple[str, ...] = field(init=False)
    joint_of: NDArray[np.intp] = field(init=False)
    row_scale: Vector = field(init=False)
    column_scale: Vector = field(init=False)
    bound: tuple[BoundRows, ...] = field(init=False)
    row_names: tuple[str, ...] = field(init=False)
    blocks: tuple[Block, ...] = field(init=False)
    lengths: tuple[NDArray[np.intp], NDArray[np.intp]] = field(init=False)
    slides: bool = field(init=False)
    motors: MotorPlaces = field(init=False)
    _local: threading.local = field(init=False)

    @quiet
    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        model = _checked_model(self.model)
        put("model", model)
        if not isinstance(self.name, str):
            raise InputError(f"Mechanism: name must be text; got {str(self.name)[:60]!r}")
        put("name", self.name or model.name or "mechanism")
        put("nq", int(model.nq))
        put("nv", int(model.nv))
        put("coordinate_names", _unique_coordinates(coordinate_names(model)))
        put("joint_of", _frozen(joint_of_coordinate(model)))
        put("reference", _frozen(_reference(model, self.reference)))
        put("constraints", _checked_constraints(self.constraints))
        put("parked", _checked_parked(self.parked))
        names = _unique_names([*self.constraints, *(c for _, c in self.parked)])
        put("constraint_names", names[: len(self.constraints)])
        named = zip(self.constraints, self.constraint_names, strict=True)
        put("bound", tuple(c.bind(model, name, self.reference) for c, name in named))
        put("row_names", sum((bound.labels for bound in self.bound), ()))
        put("blocks", _blocks(self.bound))
        put("lengths", _lengths(model))
        held = np.any([b.support.any(axis=0) for b in self.bound], axis=0) & np.ones(model.nv, bool)
        put("slides", not held[self.lengths[1]].all())
        put("_local", threading.local())
        if self.actuation is not None and name_list("Mechanism: actuated", self.actuated):
            raise InputError("Mechanism: give one of actuated= and actuation=, not both")
        put("actuated", _checked_motors(self.actuated, self.coordinate_names))
        put("motors", motor_places(model, self.actuated))
        put("B", _frozen(_actuation_matrix(self)))
        put("nu", int(self.B.shape[1]))
        if self.actuation is not None:
            put("actuation", self.B)
        row_scale, column_scale = _scales(self)
        put("row_scale", _frozen(row_scale))
        put("column_scale", _frozen(column_scale))

    @property
    def chart(self) -> BoundChart | None:
        """The first explicit chart, which moves the state; None without one."""
        charts: list[Any] = [b for b in self.bound if offered(b, "chart")]
        return charts[0] if charts else None

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """A name for each motor: its coordinate, or ``u[i]`` where B was given."""
        return tuple(self.actuated) or tuple(f"u[{i}]" for i in range(self.nu))

    def __repr__(self) -> str:
        return (
            f"<Mechanism {self.name!r}: {counted(self.nv, 'coordinate')}, "
            f"{counted(len(self.constraints), 'constraint')} with "
            f"{counted(len(self.row_scale), 'row')}, {counted(self.nu, 'motor')}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            Mechanism,
            (
                self.model.copy(),
                self.constraints,
                self.actuated,
                self.actuation,
                self.reference,
                self.name,
                self.parked,
            ),
        )

    def motor_positions(self, q: Any) -> Vector:
        """Where the motors are, in the order of u: what `ComputedTorque` takes as ``q_ref``.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration.

        Returns
        -------
        positions : (nu,) array
            rad or m. Of a continuous joint the angle in (-pi, pi], whatever its turns.

        Raises
        ------
        InputError
            For a wrong shape, numbers that are not finite or not of unit norm; where a motor
            has no position of its own: one on a coordinate of a ball or a free joint, and those
            that were given by a matrix.

        Examples
        --------
        >>> import holoctl as hc
        >>> mech = hc.load(hc.robot_file("five_bar"))
        >>> mech.motor_positions([2.2, -1.4, 0.9, 1.4]).tolist()
        [2.2, 0.9]
        """
        q = _checked_configuration(self.model, q, "q")
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
        return position_reader(self.motors)(q)

    def motor_rates(self, v: Any) -> Vector:
        """How fast the motors move: ``B.T @ v``, in the order of u.

        Parameters
        ----------
        v : (nv,) array_like
            Velocity.

        Returns
        -------
        rates : (nu,) array
            rad/s or m/s; for a general B the rates on which u does its work, ``u @ rates``.

        Raises
        ------
        InputError
            For a wrong shape, or numbers that are not finite.
        """
        rates: Vector = self.B.T @ vector("v", v, self.nv, "velocity")
        return rates

    def per_thread(self, key: str, make: Callable[[], _Made]) -> _Made:
        """What `make` makes, once for each thread: workspaces, which are written into.

        Parameters
        ----------
        key : str
            What it is, for all who ask for the same.
        make : function () -> object

        Returns
        -------
        object
            That of this thread; it is not pickled, and goes with the mechanism.
        """
        held: dict[str, Any] = self._local.__dict__
        if key not in held:
            held[key] = make()
        made: _Made = held[key]
        return made

    # Sets of constraints that change, as when a foot lands: each gives a new mechanism.

    def with_constraints(self, *constraints: Constraint) -> Mechanism:
        """This mechanism with more constraints, behind those it has.

        Raises
        ------
        InputError
            As `Mechanism` does, such as for a name that is in use.
        """
        return replace(self, constraints=(*self.constraints, *constraints))

    def without(self, *names: str) -> Mechanism:
        """This mechanism without the constraints of these names.

        Raises
        ------
        InputError
            For a name that no constraint has.
        """
        known = self._all_names()
        for name in names:
            known_name(name, known, "constraint", self.name)
        left = [c for c in self._all_constraints() if c.default_name not in names]
        off = {c.default_name for _, c in self.parked}
        return self._with(left, off)

    def with_enabled(self, **enabled: bool) -> Mechanism:
        """This mechanism with constraints switched on or off by name.

        What is switched off stays in `parked` and comes back at its place. Names that are no
        Python names go in as ``with_enabled(**{"left-foot": False})``.

        Raises
        ------
        InputError
            For a name that no constraint has, or a value that is not True or False.
        """
        known = self._all_names()
        off = {c.default_name for _, c in self.parked}
        for name, on in enabled.items():
            known_name(name, known, "constraint", self.name)
            if not isinstance(on, (bool, np.bool_)):
                raise InputError(f"with_enabled: {name!r} must be True or False; got {on!r}")
            off = off - {name} if on else off | {name}
        return self._with(self._all_constraints(), off)

    def with_model(self, model: pin.Model) -> Mechanism:
        """The same constraints and motors on another model, such as one with a payload.

        Raises
        ------
        InputError
            As `Mechanism` does, such as for a frame that the model does not have.
        """
        return replace(self, model=model)

    def _all_names(self) -> tuple[str, ...]:
        return tuple(c.default_name for c in self._all_constraints())

    def _all_constraints(self) -> list[Constraint]:
        found = list(self.constraints)
        for place, c in self.parked:
            found.insert(place, c)
        return found

    def _with(self, constraints: Sequence[Constraint], off: set[str]) -> Mechanism:
        on = tuple(c for c in constraints if c.default_name not in off)
        parked = tuple((i, c) for i, c in enumerate(constraints) if c.default_name in off)
        return replace(self, constraints=on, parked=parked)


# ------------------------------------------------------------------------------ evaluation


def workspace(mech: Mechanism) -> pin.Data:
    """Pinocchio's workspace for this mechanism, one per thread."""
    return mech.per_thread("data", mech.model.createData)


def constraint_rows(
    mech: Mechanism, q: Vector, v: Vector, t: float = 0.0, kin: Kinematics | None = None
) -> tuple[Kinematics, Rows]:
    """Kinematics and all constraint rows at (q, v), rows in the order of the constraints."""
    if kin is None:
        kin = kinematics(mech.model, workspace(mech), q, v, t)
    if len(mech.blocks) == 1:
        return kin, mech.blocks[0].rows.rows(kin)
    m = len(mech.row_scale)
    error, rate, drift, G = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros((m, mech.nv))
    for block, where in mech.blocks:
        r = block.rows(kin)
        error[where], rate[where], drift[where] = r.error, r.rate, r.drift
        G[where] = r.jacobian
    return kin, Rows(error, rate, G, drift)


def row_names(mech: Mechanism) -> tuple[str, ...]:
    """Names of the m rows, ``constraint.row``."""
    return mech.row_names


def rows_that_open(mech: Mechanism) -> NDArray[np.bool_]:
    """Which of the m rows can be off at all; the others are zero whatever the configuration.

    Such as the rows of a hinge that keep a planar loop in its plane. Rows between bodies are
    analytic functions of q: one that vanishes at several random q does so everywhere.
    """
    opens = np.ones(mech.row_scale.size, dtype=bool)
    tables = [block for block in mech.blocks if block.table is not None]
    if not tables:
        return opens
    rng, (table, where) = np.random.default_rng(0), tables[0]
    largest, data = np.zeros(where.size), mech.model.createData()
    for _ in range(RANDOM_CONFIGURATIONS):
        step = rng.normal(size=mech.nv) * mech.column_scale
        q = pin.integrate(mech.model, pin.neutral(mech.model), step)
        error = table.rows(kinematics(mech.model, data, q, np.zeros(mech.nv), 0.0)).error
        largest = np.maximum(largest, np.abs(mech.row_scale[where] * error))
    opens[where] = largest > ALWAYS_CLOSED
    return opens


def rows_of(mech: Mechanism, name: Any) -> slice:
    """Where the rows of one constraint stand among all m."""
    i = mech.constraint_names.index(
        known_name(name, mech.constraint_names, "constraint", mech.name)
    )
    start = sum(len(bound.labels) for bound in mech.bound[:i])
    return slice(start, start + len(mech.bound[i].labels))


def by_constraint(mech: Mechanism, x: Any) -> dict[str, Vector]:
    """Numbers of all rows, such as multipliers or impulses, as one array for each constraint.

    Parameters
    ----------
    mech : Mechanism
    x : (m,) array_like
        One number for each row, finite or not; or True or False, as in ``result.unique``.

    Returns
    -------
    dict
        Constraint name to the numbers of its rows, in the order of ``mech.constraint_names``.

    Raises
    ------
    InputError
        For a wrong shape, or what is no numbers.
    """
    check_mechanism(mech)
    is_mask = isinstance(x, np.ndarray) and x.dtype == bool and not np.ma.is_masked(x)
    if not (is_mask and x.shape == mech.row_scale.shape):
        x = shaped("x", x, mech.row_scale.size, "one number for each row")
    return {name: x[rows_of(mech, name)] for name in mech.constraint_names}


def check_mechanism(mech: Any, what: str = "mech") -> None:
    """Raise `InputError` for what is no Mechanism."""
    if not isinstance(mech, Mechanism):
        hint = "; hc.Mechanism(model, ...) makes one" if isinstance(mech, pin.Model) else ""
        raise InputError(f"{what} must be a Mechanism; got {type(mech).__name__}{hint}")
    check_unchanged(mech.model, mech.name)


def check_state(
    mech: Mechanism, q: Any, v: Any, t: Any = 0.0, names: tuple[str, str] = ("q", "v")
) -> tuple[Vector, Vector, float]:
    """q, v and t as floats, checked: shapes, finite entries, unit quaternions."""
    q = check_configuration(mech, q, names[0])
    v = vector(names[1], v, mech.nv, "velocity")
    check_range(mech, q, v, names)
    return q, v, number("t", t, "time, s")


def check_range(mech: Mechanism, q: Vector, v: Vector, names: tuple[str, str] = ("q", "v")) -> None:
    """Raise `InputError` for lengths and speeds that leave no digits for what moves near by.

    Motions of bodies are taken about the origin of the world: a common motion of all drops out of
    every torque, but takes its share of the digits with it.
    """
    in_q, in_v = mech.lengths
    for name, x, at, most, unit in (
        (names[0], q, in_q, FARTHEST, "m"), (names[1], v, in_v, FASTEST, "m/s"),
    ):  # fmt: skip
        beyond = at[(np.abs(x[at]) > most) & np.isfinite(x[at])]
        if beyond.size:
            raise InputError(
                f"{name}: entry {beyond[0]} is {x[beyond[0]]:.3g} {unit}, more than {most:g} "
                f"{unit}: rounding there would be felt in the torques; is it a wrong unit, or a "
                "failed sensor? Else put the origin of the world nearer to the robot"
            )


def state_in_a_tick(
    mech: Mechanism, q: Any, v: Any, t: Any, of_any_size: bool = False
) -> tuple[Vector, Vector, float]:
    """q, v and t of a tick: shapes, unit quaternions, sizes; finite or not, the result tells.

    They are the caller's own arrays where there is nothing to mend. What loops hold near the world
    is judged by their closure, so only coordinates that none holds are looked at for their size.
    """
    q, v, t = as_given("q", q, mech.nq), as_given("v", v, mech.nv), instant(t)
    if mech.nq != mech.nv and not pin.isNormalized(mech.model, q, 1e-12):
        q = check_configuration(mech, q)
    if mech.slides and not of_any_size:  # as one number each, which costs less
        x, xdot = q.take(mech.lengths[0]), v.take(mech.lengths[1])
        if not (x.dot(x) <= FARTHEST**2 and xdot.dot(xdot) <= FASTEST**2):
            check_range(mech, q, v)
    return q, v, t


def check_configuration(mech: Mechanism, q: Any, name: str = "q") -> Vector:
    """A configuration as floats, checked: shape, finite entries, unit quaternions."""
    check_mechanism(mech)
    return _checked_configuration(mech.model, q, name)


def coordinate_indices(
    mech: Mechanism, names: Iterable[str], argument: str, joints_too: bool = True
) -> NDArray[np.intp]:
    """Indices into v of coordinate names; a joint's name stands for all its coordinates."""
    of_joint = mech.joint_of
    indices: list[int] = []
    given = name_list(argument, names)
    for name in given:
        if joints_too and isinstance(name, str) and mech.model.existJointName(name):
            indices += np.flatnonzero(of_joint == mech.model.getJointId(name)).tolist()
        elif (
            isinstance(name, str)
            and name in mech.constraint_names
            and name not in mech.coordinate_names
        ):
            raise InputError(
                f"{argument}: {name!r} is a constraint of {mech.name} (a joint that is cut), and "
                f"has no coordinate; valid names: {listing(mech.coordinate_names)}"
            )
        else:
            indices.append(
                mech.coordinate_names.index(
                    known_name(name, mech.coordinate_names, "coordinate", argument)
                )
            )
    if len(set(indices)) != len(indices):
        raise InputError(f"{argument} names a coordinate twice: {listing(given)}")
    return np.array(indices, dtype=np.intp)


def loop_sizes(mech: Mechanism) -> tuple[float, list[float]]:
    """Size of the tree, and of each group of coupled loops, m.

    It is the diagonal of the box around joints, centres of mass and frames of closures, at
    ``mech.reference``.
    """
    model = mech.model
    kin = kinematics(model, workspace(mech), mech.reference, np.zeros(mech.nv), 0.0)
    found = []
    for columns, members in _coupled_groups(mech.bound, mech.nv):
        bound = [mech.bound[i] for i in members]
        if any(b.anchors for b in bound):
            found.append(_spread(mech, kin, columns, bound))
    return _spread(mech, kin, np.ones(mech.nv, dtype=bool), []), found


# ------------------------------------------------------------------------------- the door


def _frozen(x: NDArray[_T]) -> NDArray[_T]:
    x.setflags(write=False)
    return x


def _unique_coordinates(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(
            f"Mechanism: coordinate names must differ; used twice: {listing(twice)} (a joint of "
            "several coordinates names them joint[i])"
        )
    return names


def _checked_model(model: Any) -> pin.Model:
    if not isinstance(model, pin.Model):
        raise InputError(
            f"Mechanism: model must be a pinocchio.Model; got {type(model).__name__} "
            "(to read a file use hc.load)"
        )
    if isinstance(model, FrozenModel):  # that of another mechanism
        check_unchanged(model, "Mechanism")
        model = plain(model)
    for j in range(1, model.njoints):
        # first of all: Pinocchio's createData ends the process for a composite without parts
        check_joint(f"Mechanism: joint {model.names[j]!r}", model.joints[j])
    if model.njoints < 2 or model.nv == 0:
        raise InputError("Mechanism: the model has no joints, so there is nothing to move")
    if len(model.mimicking_joints):
        raise InputError(
            "Mechanism: the model has mimic joints, which Pinocchio's Jacobians get wrong; "
            "build it without (mimic=False) and impose each as a hc.Coupling"
        )
    if not is_depth_first(model) or not model.check(model.createData()):
        order = [model.names[j] for j in depth_first_order(model)[1:]]
        raise InputError(
            "Mechanism: the joints of the model are not numbered depth-first, and Pinocchio's "
            "inertia matrix and Jacobians would be silently wrong; hc.renumbered(model) makes "
            f"a copy in a valid order, such as: {listing(order)}"
        )
    names = list(model.names)
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"Mechanism: joint names must differ; used twice: {listing(twice)}")
    for j in range(1, model.njoints):
        _check_body(model, j)
        what = f"Mechanism: the placement of joint {names[j]!r}"
        check_placement(what, model.jointPlacements[j])
    for frame in model.frames:
        check_placement(f"Mechanism: the placement of frame {frame.name!r}", frame.placement)
    gravity = model.gravity
    if not np.isfinite(gravity.vector).all():
        raise InputError("Mechanism: the gravity of the model is not finite")
    if gravity.angular.any():
        raise InputError(
            "Mechanism: the gravity of the model has an angular part, which no gravity has; got "
            f"{gravity.angular.tolist()} (model.gravity.linear is the acceleration, m/s^2)"
        )
    copy = model.copy()
    copy.armature = _rotors(model)
    return FrozenModel(copy)


def _check_body(model: pin.Model, j: int) -> None:
    """Refuse an inertia of a joint's body, all links on it together, that no body has."""
    inertia = model.inertias[j]
    try:
        check_mass("it", inertia.mass)
        if not np.isfinite(inertia.matrix()).all():
            raise InputError(
                f"the inertia about the joint is not finite, with {inertia.mass:.6g} kg and the "
                f"centre of mass at {inertia.lever.tolist()} m"
            )
        away = inertia.mass * float(inertia.lever @ inertia.lever)
        check_moments("the inertia about the centre of mass", inertia.inertia, away)
    except InputError as error:
        body = pin.FrameType.BODY
        links = [f.name for f in model.frames if f.parentJoint == j and f.type == body]
        raise InputError(
            f"Mechanism: the body of joint {model.names[j]!r}"
            f"{f' ({listing(links, 5)})' if links else ''}: {error}"
        ) from None


def _rotors(model: pin.Model) -> Vector:
    """Rotor inertia of each coordinate: the armature; where it is zero, that of rotor and gear.

    Pinocchio's own convention: what it reads from an SRDF it stores as rotor inertia, gear ratio
    and, as armature, ratio^2 times rotor inertia; its dynamics know the armature alone.
    """
    for what in ("armature", "rotorInertia", "rotorGearRatio"):
        size = np.size(getattr(model, what))
        if size != model.nv:
            raise InputError(
                f"Mechanism: model.{what} must have {model.nv} entries, one for each coordinate; "
                f"got {size}"
            )
    armature = np.array(model.armature)
    rotor, ratio = np.asarray(model.rotorInertia), np.asarray(model.rotorGearRatio)
    behind = (armature == 0.0) & (rotor != 0.0)
    names = coordinate_names(model)
    for i in np.flatnonzero(behind).tolist():
        if not 0.0 < rotor[i] < np.inf or not 0.0 < abs(ratio[i]) < np.inf:
            raise InputError(
                f"Mechanism: {names[i]!r} has a rotor without armature; its rotorInertia must be "
                f"positive and its rotorGearRatio not zero, both finite; got {rotor[i]:.6g} kg m^2 "
                f"and {ratio[i]:.6g}"
            )
    armature[behind] = ratio[behind] ** 2 * rotor[behind]
    wrong = ~((armature >= 0.0) & (armature < np.inf))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(
            f"Mechanism: the armature (rotor inertia) of {names[i]!r} must be finite and not "
            f"negative; got {armature[i]:.6g} kg m^2"
        )
    return armature


def _checked_configuration(model: pin.Model, given: Any, name: str) -> Vector:
    model = plain(model)
    q = vector(name, given, model.nq, "configuration, nq entries")
    if model.nq == model.nv or pin.isNormalized(model, q, 1e-12):
        return q
    if pin.isNormalized(model, q, SINGLE):  # good to single precision: made good to double
        normalised: Vector = pin.normalize(model, q)
        return normalised
    for j in range(1, model.njoints):
        here = slice(model.idx_qs[j], model.idx_qs[j] + model.nqs[j])
        alone: Vector = pin.neutral(model)
        alone[here] = q[here]
        if not pin.isNormalized(model, alone, SINGLE):
            break
    kind, size = _unit_part(model.joints[j], q[here])
    raise InputError(
        f"{name}: the {kind} of joint {model.names[j]!r} must have norm 1{size}; "
        "pinocchio.normalize(model, q) gives the nearest valid one"
    )


def _unit_part(joint: pin.JointModel, part: Vector) -> tuple[str, str]:
    """What of a joint's configuration must have unit norm, and the norm it has."""
    if "Composite" in joint.shortname():
        return "quaternion or cosine-sine pair", ""
    pair = joint.nq - joint.nv == 1 and joint.nv in (1, 3) and "Spherical" not in joint.shortname()
    tail = part[-2:] if pair else part[-4:]
    return "cosine-sine pair" if pair else "quaternion", f"; it has {np.linalg.norm(tail):.6g}"


def _reference(model: pin.Model, reference: Any) -> Vector:
    if reference is None:
        neutral: Vector = pin.neutral(model)
        return neutral
    return _checked_configuration(model, reference, "reference")


def _checked_constraints(constraints: Any) -> tuple[Constraint, ...]:
    try:
        found = tuple(constraints)
    except TypeError:
        raise InputError(
            f"Mechanism: constraints must be a list of constraints; got {constraints!r}"
        ) from None
    for c in found:
        parts = ("bind", "name", "default_name", "t_stab")
        if isinstance(c, type) or not all(hasattr(c, part) for part in parts):
            raise InputError(
                f"Mechanism: {c!r} is not a constraint; expected hc.Closure, Rod, Contact, "
                "Coupling, Custom or GammaQ, or a class of your own that follows "
                "holoctl/constraints/contract.py"
            )
    return found


def _checked_parked(parked: Any) -> tuple[tuple[int, Constraint], ...]:
    try:
        pairs = tuple((whole("parked: place", place, 0), c) for place, c in parked)
    except (TypeError, ValueError):
        raise InputError(
            f"Mechanism: parked must be a list of (place, constraint); got {parked!r}"
        ) from None
    _checked_constraints([c for _, c in pairs])
    return tuple(sorted(pairs, key=lambda pair: pair[0]))


def _unique_names(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    names = tuple(c.default_name for c in constraints)
    for c in constraints:
        if c.name is not None and (not isinstance(c.name, str) or not c.name):
            raise InputError(f"Mechanism: the name of a constraint must be text; got {c.name!r}")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(
            f"Mechanism: constraint names must differ; used twice: {listing(twice)}; "
            "give the constraints a name="
        )
    return names


def _blocks(bound: Sequence[BoundRows]) -> tuple[Block, ...]:
    """All rows between bodies as one table, the other constraints one by one."""
    starts = np.cumsum([0, *(len(b.labels) for b in bound)])
    where = [np.arange(start, stop) for start, stop in pairwise(starts)]
    # a subclass may evaluate otherwise, so only the very type may be merged
    tables = {i: b for i, b in enumerate(bound) if type(b) is WrenchRows}
    others = [Block(b, where[i]) for i, b in enumerate(bound) if i not in tables]
    if not tables:
        return tuple(others)
    of_all = np.concatenate([where[i] for i in tables])
    return (Block(stacked(tables.values()), of_all), *others)


def _lengths(model: pin.Model) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where translational coordinates stand in q and in v; in q they come first of their joint."""
    in_v = np.flatnonzero(translational(model))
    joint = joint_of_coordinate(model)[in_v]
    own = plain(model)
    first_q, first_v = np.array(list(own.idx_qs)), np.array(list(own.idx_vs))
    return in_v - first_v[joint] + first_q[joint], in_v


def _checked_motors(actuated: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    motors = tuple(name_list("Mechanism: actuated", actuated))
    for motor in motors:
        known_name(motor, names, "coordinate", "Mechanism: actuated")
    if len(set(motors)) != len(motors):
        raise InputError(f"Mechanism: actuated names a coordinate twice: {listing(motors)}")
    return motors


def _actuation_matrix(mech: Mechanism) -> Array:
    if mech.actuation is None:
        B = np.zeros((mech.nv, len(mech.actuated)))
        for column, motor in enumerate(mech.actuated):
            B[mech.coordinate_names.index(motor), column] = 1.0
        return B
    B = numbers("Mechanism: actuation", mech.actuation).copy()
    if B.ndim != 2 or B.shape[0] != mech.nv:
        raise InputError(
            f"Mechanism: actuation must have shape ({mech.nv}, nu), a row for each "
            f"coordinate; got {B.shape}"
        )
    if not np.isfinite(B).all():
        raise InputError("Mechanism: actuation must be finite")
    idle = np.flatnonzero(~(B != 0.0).any(axis=0))
    if idle.size:
        raise InputError(f"Mechanism: column {idle[0]} of actuation is zero: a motor on nothing")
    return B


# --------------------------------------------------------------------------------- scales


def _scales(mech: Mechanism) -> tuple[Vector, Vector]:
    """Row and column scales from a characteristic length for each group of coupled loops."""
    model, nv = mech.model, mech.nv
    kin = kinematics(model, model.createData(), mech.reference, np.zeros(nv), 0.0)
    everything = np.ones(nv, dtype=bool)
    length = np.full(nv, _spread(mech, kin, everything, []))
    row_length: list[Vector] = [np.zeros(0)] * len(mech.bound)
    for columns, members in _coupled_groups(mech.bound, nv):
        L = _spread(mech, kin, columns, [mech.bound[i] for i in members])
        length[columns] = L
        for i in members:
            row_length[i] = np.full(len(mech.bound[i].labels), L)
    column_scale = np.where(translational(model), length, 1.0)
    rows = [b.scale(n, column_scale) for b, n in zip(mech.bound, row_length, strict=True)]
    return np.concatenate(rows) if rows else np.zeros(0), column_scale


def _coupled_groups(
    bound: Sequence[BoundRows], nv: int
) -> list[tuple[NDArray[np.bool_], list[int]]]:
    """Constraints that share coordinates, directly or through others, with those coordinates."""
    groups: list[tuple[NDArray[np.bool_], list[int]]] = []
    for i, b in enumerate(bound):
        columns: NDArray[np.bool_] = np.asarray(b.support.any(axis=0))
        members, apart = [i], []
        for other, theirs in groups:
            if (other & columns).any():
                columns, members = np.logical_or(columns, other), theirs + members
            else:
                apart.append((other, theirs))
        groups = [*apart, (columns, members)]
    return groups


def _spread(
    mech: Mechanism, kin: Kinematics, columns: NDArray[np.bool_], bound: Sequence[BoundRows]
) -> float:
    """Diagonal of the box around joint origins, centres of mass and closure frames, m."""
    model = mech.model
    joints = np.unique(mech.joint_of[columns]).tolist()
    points, inertias = [kin.placements[j].translation for j in joints], plain(model).inertias
    points += [kin.placements[j].act(inertias[j].lever) for j in joints if inertias[j].mass > 0.0]
    points += [kin.point(frame) for b in bound for frame in b.anchors]
    if not points:
        return 1.0
    diagonal = float(np.linalg.norm(np.ptp(np.array(points), axis=0)))
    return diagonal if diagonal > 0.0 else 1.0
