"""The reduced dynamics of a closed-chain robot as CasADi functions, for optimisation.

In independent coordinates y, with q = start (+) d, d = (y, z) and the dependent ones z defined by

    phi(start (+) (y, z)) = 0                            the closed state, an implicit function
    dz/dy = -phi_z^-1 phi_y                              its derivative: not of Newton's steps

CasADi's root finder has these derivatives, of every order; J. Nocedal and S. Wright, Numerical
Optimization, the appendix on the implicit function theorem. Everything else is composed with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, quiet, quoted
from holoctl.base.errors import InputError
from holoctl.closing.assembly import assemble
from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.expressions import Expressions, symbolic
from holoctl.codegen.laws.bordered_elimination import eliminated
from holoctl.codegen.laws.constraints_and_tree import free_constraints
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.laws.tangent_step import placed_function
from holoctl.codegen.laws.task_rows import reference_size, task_rows
from holoctl.codegen.matrices import column, largest, total
from holoctl.codegen.may_change import check_friction, payload_frame
from holoctl.codegen.parameters import LawParameters
from holoctl.control.tasks.task_protocol import Task
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.projector.partition import partition as chosen
from holoctl.tree.coordinates import translational

__all__ = ["CasadiFunctions", "casadi_functions"]

SETTLED = 1e-12  # scaled
"""Closure error at which the root finder ends."""

NAMES = "closed_state", "rates", "dynamics", "inverse"
"""The functions of every mechanism."""

LABELS = {
    "closed_state": ["y"], "rates": ["y", "yd"], "dynamics": ["y", "yd", "u"],
    "inverse": ["y", "yd", "ydd"],
}  # fmt: skip
"""Their inputs before the guess."""

LOADED = "closed_state", "dynamics", "inverse"
"""Those that have the parameters."""

ITERATIONS = 40
"""The most Newton steps from one call to the next."""


@dataclass(frozen=True, eq=False)
class CasadiFunctions(Mapping[str, Any]):
    """Functions of a mechanism in independent coordinates, a mapping of ``casadi.Function``.

    Attributes
    ----------
    functions : dict of str to casadi.Function
    coordinates : tuple of k str
        The names of y: of scalar joints their positions, rad or m; of a ball joint or a floating
        base the rotation vector and displacement from `start`.
    units : tuple of k str
        ``"rad"`` or ``"m"``.
    motors : tuple of nu str
    start : (nq,) array
        The configuration whose branch is followed.
    y : (k,) array
        The coordinates at `start`.
    z : (n,) array
        The guess at `start`: zeros.
    parameters : dict of str to (n,) array
        The inputs after `guess`, with the values of the mechanism. Left out of a call by name,
        payloads are none, and gravity and friction not a number.
    entries : dict of str to tuple of n str
        What each number of a parameter is, with its unit.

    See Also
    --------
    casadi_functions : makes it.

    Examples
    --------
    >>> import holoctl as hc
    >>> functions = hc.casadi_functions(hc.load(hc.robot_file("four_bar")))
    >>> functions.coordinates, functions["dynamics"].name_in()
    (('crank',), ['y', 'yd', 'u', 'guess'])
    """

    functions: dict[str, Any]
    coordinates: tuple[str, ...]
    units: tuple[str, ...]
    motors: tuple[str, ...]
    start: Vector
    y: Vector
    z: Vector
    parameters: dict[str, Vector]
    entries: dict[str, tuple[str, ...]]

    def __getitem__(self, name: str) -> Any:
        return self.functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)


@quiet
def casadi_functions(
    mech: Mechanism,
    partition: Partition | None = None,
    start: Any = None,
    *,
    tasks: Mapping[str, Task] | None = None,
    payload: str | None = None,
    gravity: bool = False,
    friction: bool = False,
) -> CasadiFunctions:
    """Reduced dynamics, closed state and tasks as CasADi functions with exact derivatives.

    Of independent coordinates y (k,), their rates yd and accelerations ydd:

    - ``closed_state(y, guess) -> q, z, error, branch, guard``
    - ``rates(y, yd, guess) -> v``
    - ``dynamics(y, yd, u, guess) -> ydd``: forward dynamics with all forces of the mechanism
    - ``inverse(y, yd, ydd, guess) -> u``: inverse dynamics, if there are as many motors as motions
    - each task, ``NAME(y, yd, value, guess) -> e, rate``: its error, the rate of what it reads

    The guess is of z, the dependent coordinates (displacements from `start`), by which the implicit
    function is warm-started: that of the last call, or zeros. Results do not depend on it.
    `error` is the largest scaled closure error after at most 40 Newton steps: above about 1e-10
    there is no closed state, or the guess is too far. `branch` is the determinant of the dependent
    columns of G over that at `start`: zero or below, the state is not on its branch. `guard` is
    below 1 where the equations lose no digits. An optimiser can bound all three. ``f.generate()``
    of a function is C without CasADi.

    Parameters
    ----------
    mech : Mechanism
    partition : Partition, optional
        Which coordinates are independent. Default: chosen at `start`.
    start : (nq,) array_like, optional
        A configuration; the nearest closed one is taken. Default: the reference of `mech`.
    tasks : mapping of str to Task, optional
    payload : str, optional
        A frame of a body that moves, where a payload is mounted whose ``payload_mass``,
        ``payload_centre`` (3,) and ``payload_inertia`` (6,: xx, yy, zz, xy, xz, yz, about its
        centre), in the axes of the frame, are inputs.
    gravity : bool, optional
        Whether the acceleration of gravity (3,), in axes of the world, is an input.
    friction : bool, optional
        Whether ``friction_viscous`` and ``friction_coulomb`` are inputs, of each rate to which the
        `JointFriction` of the mechanism gives friction. Stribeck's peak exceeds Coulomb friction by
        as much as in the mechanism.

        With parameters, ``closed_state`` (for its guard), ``dynamics`` and ``inverse`` have them as
        last inputs, in this order; `parameters` and `entries` of the result tell sizes and units.

    Returns
    -------
    CasadiFunctions
        A mapping by name.

    Raises
    ------
    InputError
        Without CasADi; for what has no expressions, by name; for constraints and forces that depend
        on time; where a ball joint or a floating base is partly dependent; for an unknown frame of
        a payload; with a payload for a task of the centre of mass, with `gravity` for a
        `Counterbalance`, with `friction` without one `JointFriction`.
    AssemblyError
        If `start` cannot be closed.

    See Also
    --------
    linearize : the linear model at one state.
    compile : the laws in machine code, of the full state.

    Examples
    --------
    >>> import holoctl as hc
    >>> functions = hc.casadi_functions(hc.load(hc.robot_file("five_bar")))
    >>> sorted(functions)
    ['closed_state', 'dynamics', 'inverse', 'rates']
    """
    ca = casadi_module()
    check_mechanism(mech)
    wanted = _tasks(tasks)
    frame = payload_frame(mech, mech, payload, gravity, None, wanted.values())
    check_friction(mech, friction)
    q0, _ = assemble(mech, start)
    part = chosen(mech, q0) if partition is None else partition
    E = symbolic(mech, part, payload=frame, gravity=gravity, friction=friction)
    _refuse(E)
    free, dependent = part.independent, part.dependent
    y, z, yd = (ca.SX.sym(x, n) for x, n in zip(
        ("y", "z", "yd"), (free.size, dependent.size, free.size), strict=True))  # fmt: skip
    y0 = _positions(mech, q0)[free]
    d = ca.SX.zeros(mech.nv)
    for i, k in enumerate(free.tolist()):
        d[k] = y[i] - y0[i]
    for i, k in enumerate(dependent.tolist()):
        d[k] = z[i]
    v = ca.SX.sym("v", mech.nv)
    q, turning, _ = placed_function(E).call([ca.SX(q0), ca.vertcat(d, v)], True, False)
    closing, error, branch = _closing(E, q0, q, y, z)
    per_rate = ca.jacobian(turning, v)[free, free]
    moving = ca.solve(per_rate, yd)
    K = free_constraints(E)
    c = ca.SX.sym("c", free.size)
    all_rates = ca.Function("all_rates", [E.q, c], [K.velocity(c)])
    all_motion = ca.Function("all_motion", [E.q, E.v, c], [K.motion(c)])
    velocity = all_rates(q, moving)

    # rates of y by v change with the configuration: ydd = per_rate a + turned
    by_d = ca.Function("turning", [y, z, v], [turning])
    along = ca.vertcat(yd, by_d(y, z, velocity)[dependent])
    turned = ca.jtimes(turning[free], ca.vertcat(y, z), along)
    turned = ca.substitute(turned, v, velocity)

    u, a = ca.SX.sym("u", mech.nu), ca.SX.sym("ydd", free.size)
    forward, more = forward_function(E), tuple(E.parameters.symbols.values())
    caused = forward(q, velocity, ca.SX(mech.B) @ u, 0.0, *more)[0]
    inner = {
        "rates": ([y, yd], [velocity], ["v"]),
        "dynamics": ([y, yd, u], [per_rate @ caused[free] + turned], ["ydd"]),
    }
    if mech.nu == free.size == part.actuation_rank:
        motion = all_motion(q, velocity, ca.solve(per_rate, a - turned))
        target = ca.SX(mech.B.T) @ motion
        inverse = inverse_function(E, None, "project")(q, velocity, target, 0.0, *more)
        inner["inverse"] = [y, yd, a], [inverse[0]], ["u"]
    for name, task in wanted.items():
        value, found = _of_task(E, task, q, velocity)
        inner[name] = [y, yd, value], found, ["e", "rate"]
    still = ca.SX.zeros(mech.nv)
    flags = [error, branch, forward(q, still, still, 0.0, *more)[1]]
    inner["closed_state"] = [y], [q, z, *flags], ["q", "z", "error", "branch", "guard"]
    every = {x: _composed(x, closing, z, *inner[x], E.parameters) for x in ("closed_state", *inner)}
    length = translational(mech.model)[free]
    return CasadiFunctions(
        every, tuple(mech.coordinate_names[k] for k in free),
        tuple("m" if x else "rad" for x in length), tuple(mech.actuator_names), q0, y0,
        np.zeros(dependent.size), E.parameters.usual, E.parameters.entries,
    )  # fmt: skip


def _tasks(tasks: Any) -> dict[str, Task]:
    if not isinstance(tasks, Mapping | None):
        raise InputError(f"tasks must be a mapping from names to tasks; got {quoted(tasks)}")
    for name in tasks or {}:
        if name in NAMES:
            raise InputError(f"{name!r} is a name of these functions; give the task another one")
    return dict(tasks or {})


def _refuse(E: Expressions) -> None:
    """Raise `InputError` for what the functions do not carry."""
    ca, mech = casadi_module(), E.mech
    timed = ca.vertcat(*E.rows.error, *E.rows.drift, E.needed(ca.SX.zeros(mech.nv)))
    if bool(ca.depends_on(timed, E.t)):
        raise InputError(
            f"{mech.name}: its constraints or forces depend on time, and these functions do not"
        )
    free = set(E.partition.independent.tolist())
    for j in range(1, mech.model.njoints):
        at, n = mech.model.idx_vs[j], mech.model.nvs[j]
        own = free.intersection(range(at, at + n))
        if mech.model.nqs[j] != n and own and len(own) < n:
            raise InputError(
                f"{mech.name}: {mech.model.names[j]!r} has {n} coordinates of which {len(own)} are "
                "independent; give a partition that has all of them or none"
            )


def _positions(mech: Mechanism, q: Array) -> Array:
    """Of scalar joints the position, by coordinate; zero for others."""
    model, found = mech.model, np.zeros(mech.nv)
    for j in range(1, model.njoints):
        iq, iv, nq, nv = model.idx_qs[j], model.idx_vs[j], model.nqs[j], model.nvs[j]
        if nq == nv:
            found[iv : iv + nv] = q[iq : iq + nq]
        elif nv == 1:
            found[iv] = np.arctan2(q[iq + 1], q[iq])
    return found


def _closing(E: Expressions, q0: Vector, q: SX, y: SX, z: SX) -> tuple[Any, SX, SX]:
    """The root finder z(guess, y), the scaled closure error and the determinant over that at
    q0, both at (y, z)."""
    ca, mech, part = casadi_module(), E.mech, E.partition
    every = [float(s) * e for s, e in zip(mech.row_scale[E.open], E.every.error, strict=True)]
    if not z.numel():
        return None, ca.SX(0.0), ca.SX(1.0)
    place = {k: j for j, k in enumerate(part.dependent.tolist())}
    rows = [{place[k]: x for k, x in row.items() if k in place} for row in E.rows.jacobian]
    units = mech.row_scale[part.rows], mech.column_scale[part.dependent]
    det = ca.Function("det", [E.q], [eliminated(E, rows, *units).determinant])
    off = [float(s) * e for s, e in zip(units[0], E.rows.error, strict=True)]
    size = total(map(ca.fabs, every))  # not a number if one is not, which fmax leaves out
    worst = ca.if_else(size >= 0.0, largest(every), size)
    phi = ca.Function("phi", [E.q], [ca.vertcat(*off), worst])
    error, worst = phi(q)
    closing = ca.rootfinder(
        "closing", "fast_newton", {"x": z, "p": y, "g": error},
        {"abstol": SETTLED, "abstolStep": 0.0, "max_iter": ITERATIONS, "error_on_fail": False},
    )  # fmt: skip
    return closing, worst, det(q) / float(det(q0))


def _of_task(E: Expressions, task: Task, q: SX, velocity: SX) -> tuple[SX, list[SX]]:
    """The symbols of its reference, and error and rate."""
    ca, bound = casadi_module(), task.bind(E.mech)
    value = ca.SX.sym("value", reference_size(bound))
    rows = task_rows(E, bound, value)
    known = ca.Function("task", [E.q, E.v, value], [column(rows.error), column(rows.rate)])
    return value, list(known(q, velocity, value))


def _composed(
    name: str, closing: Any, z: SX, given: list[SX], results: list[SX], names: list[str],
    parameters: LawParameters,
) -> Any:  # fmt: skip
    """The function of the closed state, which the root finder gives."""
    ca = casadi_module()
    more = parameters.symbols if name in LOADED else {}
    inner = ca.Function(
        name, [given[0], z, *given[1:], *more.values()], [ca.densify(x) for x in results]
    )
    labels = [*LABELS.get(name, ["y", "yd", "value"]), "guess", *more]
    sizes = [x.numel() for x in (*given, z, *more.values())]
    symbols = [ca.MX.sym(x, n) for x, n in zip(labels, sizes, strict=True)]
    k = len(given)
    root = symbols[k] if closing is None else closing(symbols[k], symbols[0])
    results = inner.call([symbols[0], root, *symbols[1:k], *symbols[k + 1 :]], True, False)
    left_out = [0.0] * (k + 1) + [np.nan if parameters.usual[x].any() else 0.0 for x in more]
    return ca.Function(name, symbols, results, labels, names, {"default_in": left_out})
