"""The C library of parts of a model: kinematics, inertia, constraints, dynamics, linear models.

Each part is one function of q, v and so on without memory. The numbers of the self-test come from
Pinocchio, and from the Python path of constraints, forward dynamics and linear models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, one_of
from holoctl.base.errors import AssemblyError, SingularityError
from holoctl.closing.assembly import assemble
from holoctl.codegen.batched_functions import batched_source
from holoctl.codegen.c_text import arrays, comment, normalised, number
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.exported.linear_model_by_differences import linear_model_by_differences
from holoctl.codegen.exported.tables import motor_table, q_table, v_table
from holoctl.codegen.exported.transmission import hashed_files
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.kinematics import frames_for, kinematics_function
from holoctl.codegen.laws.linear_model import linear_model_function
from holoctl.codegen.matrices import dense, total
from holoctl.codegen.tree_dynamics import mass_matrix, tree_efforts
from holoctl.dynamics.forward import forward_dynamics
from holoctl.rows.evaluate import rows_at
from holoctl.tree.frames import Frame

__all__ = ["PARTS", "functions_files"]

PARTS = "kinematics", "inertia", "bias", "constraints", "forward_dynamics", "linearize"
"""What there are functions of."""

STATES = 20
"""Of the self-test."""

SAME_PART, SAME_MOTION = 256.0, 8192.0
"""Largest difference in the self-test, in eps of the largest number of the result, or of one; of
forward dynamics, which solves equations, and of linear models."""

DIFFERENCED = 1e-9
"""The least of these tolerances for linear models, whose self-test has differences, relative."""
REGULAR = 0.01
"""The guard of states at which linear models are compared: closer to a singularity, differences
lose digits."""


@dataclass(frozen=True)
class _Part:
    """One function: of symbols, and of numbers by the Python path."""

    name: str
    function: Any
    text: str


def functions_files(
    E: Expressions, parts: Sequence[str], frames: Sequence[str], prefix: str
) -> dict[str, str]:
    """Name to text of every file."""
    mech = E.mech
    for x in parts:
        one_of("functions", x, PARTS)
    placements = frames_for(mech, parts, frames, "export_c")
    made = [x for x in _parts(E, placements, frames) if x.name in parts]
    if "linearize" in parts:
        made.append(_linear_model(E))
    timed = any(x.function.name_in(i) == "t" for x in made for i in range(x.function.n_in()))
    values: dict[str, object] = {
        **E.precision.values, "title": comment(mech.name), "timed": timed,
        "what": "parts of its model as functions", "nq": mech.nq, "nv": mech.nv, "nu": mech.nu,
        "q_table": q_table(mech), "v_table": v_table(mech), "motor_table": motor_table(mech),
        "declared": "\n".join(_declared(x, prefix) for x in made),
        "laws": batched_source(
            [x.function for x in made], "HOLOCTL_DIVIDES static", precision=E.precision
        ),
        "defined": "\n".join(_defined(x, prefix, bool(E.tree.unit_parts)) for x in made),
        "unit_parts": E.tree.unit_parts, "normalise_unit": normalised("unit", E.tree.unit_parts),
        **_test(E, made, placements, prefix),
        "left_out": False, "left_out_items": "", "ticks": STATES,
    }  # fmt: skip
    return hashed_files("functions", prefix, values, precision=E.precision)


def _parts(E: Expressions, frames: Sequence[Frame], names: Sequence[str]) -> Iterator[_Part]:
    ca, mech = casadi_module(), E.mech
    sure, t = total(E.guard), [E.t]
    zero, u = ca.SX.zeros(mech.nv), ca.SX.sym("u", mech.nu)
    if frames:
        listed = ", ".join(comment(x) for x in names)
        text = (
            f"Frames, in this order: {listed}. For each p, its origin, m; R, its axes as columns,\n"
            " * column by column; J, a row for each rate: velocity of the origin and angular "
            "velocity;\n * all in the axes of the world."
        )
        yield _Part("kinematics", kinematics_function(E, frames), text)
    yield _Part("inertia", ca.Function(
        "inertia", [E.q], [ca.densify(mass_matrix(E.tree)), sure], ["q"], ["M", "guard"],
    ), "The inertia matrix M, row by row.")  # fmt: skip
    h = ca.densify(tree_efforts(E.tree, E.v, zero))
    yield _Part("bias", ca.Function(
        "bias", [E.q, E.v], [h, sure], ["q", "v"], ["h", "guard"],
    ), "Coriolis, centrifugal and gravity efforts h.")  # fmt: skip
    rows = E.every
    columns = [ca.vertcat(*x) if x else ca.SX.zeros(1) for x in (rows.error, rows.drift)]
    G = dense(rows.jacobian, mech.nv) if rows.jacobian else ca.SX.zeros(1, mech.nv)
    labels = ", ".join(comment(mech.row_names[i]) for i in E.open) or "none"
    on_time = any(bool(ca.depends_on(x, E.t)) for x in columns)
    more, label = (t, ["t"]) if on_time else ([], [])
    yield _Part("constraints", ca.Function(
        "constraints", [E.q, E.v, *more],
        [ca.densify(columns[0]), ca.densify(G), ca.densify(columns[1]), sure],
        ["q", "v", *label], ["phi", "G", "drift", "guard"],
    ), "Errors phi, Jacobian G (row by row) and drift of the constraint rows, G a + drift = 0,\n"
       f" * as defined: {labels}.")  # fmt: skip
    a, guard = forward_function(E).call([E.q, E.v, ca.SX(mech.B) @ u, E.t], True, False)
    more, label = (t, ["t"]) if bool(ca.depends_on(a, E.t)) else ([], [])
    yield _Part("forward_dynamics", ca.Function(
        "forward_dynamics", [E.q, E.v, u, *more], [ca.densify(a), guard], ["q", "v", "u", *label],
        ["a", "guard"],
    ), "The accelerations a that efforts u of the motors cause, with constraints kept and forces\n"
       " * of the mechanism.")  # fmt: skip


def _linear_model(E: Expressions) -> _Part:
    ca, mech, function = casadi_module(), E.mech, linear_model_function(E)
    q, v, u, t = (ca.SX.sym(x, function.numel_in(i)) for i, x in enumerate("qvut"))
    found = function.call([q, v, u, t], True, False)
    timed = bool(ca.depends_on(ca.vertcat(*map(ca.vec, found)), t))
    more, label = ([t], ["t"]) if timed else ([], [])
    names = [comment(mech.coordinate_names[k]) for k in E.partition.independent]
    return _Part("linearize", ca.Function(
        "linearize", [q, v, u, *more], found, ["q", "v", "u", *label], ["A", "B", "ydd", "guard"],
    ), f"The linear model along the motion, dx/dt = A x + B u of deviations x = (y, yd), and the\n"
       f" * accelerations ydd; y: {', '.join(names)}. A and B row by row. Only at closed states:\n"
       " * 0 where errors of rows or of their rates are too large.")  # fmt: skip


def _sizes(part: _Part) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    f = part.function
    ins = [(f.name_in(i), f.numel_in(i)) for i in range(f.n_in())]
    return ins, [(f.name_out(i), f.numel_out(i)) for i in range(f.n_out() - 1)]


def _head(part: _Part, prefix: str) -> str:
    ins, outs = _sizes(part)
    given = [f"double {x}" if x == "t" else f"const double *{x}" for x, _ in ins]
    return f"int {prefix}_{part.name}({', '.join([*given, *(f'double *{x}' for x, _ in outs)])})"


def _declared(part: _Part, prefix: str) -> str:
    ins, outs = _sizes(part)
    listed = ", ".join(f"{x}[{n}]" for x, n in ins if x != "t")
    given = ", ".join(f"{x}[{n}]" for x, n in outs)
    return f"/* {part.text}\n *\n *   {listed} -> {given} */\n{_head(part, prefix)};\n"


def _defined(part: _Part, prefix: str, normalise: bool) -> str:
    ins, outs = _sizes(part)
    q = "unit" if normalise else "q"
    places = {"q": q, "t": "&t"}
    arguments = ", ".join([*(places.get(x, x) for x, _ in ins), *(x for x, _ in outs)])
    checks = [f"all_finite({'&t' if x == 't' else x}, {n})" for x, n in ins]
    checks += ["normalise_all(q, unit)"] * normalise
    good = " && ".join(f"all_finite({x}, {n})" for x, n in outs)
    zeros = "\n".join(f"  for (int i = 0; i < {n}; i++) {x}[i] = 0.0;" for x, n in outs)
    unit = f"  double unit[{ins[0][1]}];\n" if normalise else ""
    return (
        f"{_head(part, prefix)} {{\n  double guard;\n{unit}"
        f"  if ({' && '.join(checks)}) {{\n"
        f"    {part.name}({arguments}, &guard);\n"
        f"    if (guard < 1.0 && {good}) return 1;\n  }}\n{zeros}\n  return 0;\n}}\n"
    )


def _test(
    E: Expressions, parts: Sequence[_Part], frames: Sequence[Frame], prefix: str
) -> dict[str, object]:
    """States with the results of Pinocchio and Python, and the checks of each function."""
    linear = any(x.name == "linearize" for x in parts)
    states = list(_states(E, REGULAR if linear else 0.5))
    found = dict[str, list[Array]]()
    data = E.mech.model.createData()
    for q, v, u in states:
        for part in parts:
            results = _expected(E, data, part.name, q, v, u, frames)
            for (name, _), x in zip(_sizes(part)[1], results, strict=True):
                found.setdefault(f"{part.name}_{name}", []).append(np.asarray(x).ravel())
    used = {x for part in parts for x, _ in _sizes(part)[0]}
    known = {
        f"known_{x}": np.array(y)
        for x, y in zip("qvu", zip(*states, strict=True), strict=True) if x in used
    }  # fmt: skip
    checks = list[str]()
    for part in parts:
        ins, outs = _sizes(part)
        solves = part.name in ("forward_dynamics", "linearize")
        tolerance = (SAME_MOTION if solves else SAME_PART) * E.precision.eps
        same = number(max(tolerance, DIFFERENCED * (part.name == "linearize")))
        given = ", ".join("0.0" if x == "t" else f"known_{x}[k]" for x, _ in ins)
        names = ", ".join(x for x, _ in outs)
        lines = [f"    double {x}[{n}];" for x, n in outs]
        lines.append(f'    check({prefix}_{part.name}({given}, {names}), "{part.name}");')
        lines += [f"    compare({x}, {part.name}_{x}[k], {n}, {same});" for x, n in outs]
        lines += [
            f"    check(!{prefix}_{part.name}({given.replace('known_q[k]', 'bad')}, {names}) && "
            f'{outs[0][0]}[0] == 0.0, "{part.name}: a q that is not finite");'
        ]
        checks += ["  {", *lines, "  }"]
    return {
        "known": arrays(**known, **{x: np.array(y) for x, y in found.items()}),
        "checks": "\n".join(checks),
    }


def _states(E: Expressions, most: float) -> Iterator[tuple[Array, Array, Array]]:
    """Closed states at which the guard of forward dynamics is below `most`."""
    mech, rng, made = E.mech, np.random.default_rng(64), 0
    forward = forward_function(E)
    for i in range(20 * STATES):
        step = 0.1 * rng.normal(size=mech.nv) * mech.column_scale
        guess = pin.integrate(mech.model, E.samples[i % len(E.samples)], step)
        try:
            q, v = assemble(mech, guess, rng.normal(size=mech.nv), restarts=0, max_iter=50)
        except AssemblyError:
            continue
        q, v, u = map(E.precision.rounded, (q, v, rng.normal(size=mech.nu)))
        if float(forward(q, v, mech.B @ u, 0.0)[1]) < most:
            yield q, v, u
            made += 1
        if made == STATES:
            return
    raise SingularityError(
        f"{mech.name}: too few regular states near the reference for a self-test"
    )


def _expected(
    E: Expressions, data: Any, name: str, q: Array, v: Array, u: Array, frames: Iterable[Frame]
) -> list[Array]:
    mech, model = E.mech, E.mech.model
    if name == "inertia":
        M = np.triu(pin.crba(model, data, q))
        return [M + np.triu(M, 1).T]
    if name == "bias":
        return [pin.nonLinearEffects(model, data, q, v)]
    if name == "constraints":
        rows = rows_at(mech, q, v)
        every = rows.error, rows.jacobian, rows.drift
        return [x[E.open] if len(E.open) else np.zeros(1) for x in every]
    if name == "forward_dynamics":
        return [forward_dynamics(mech, q, v, u=u).a]
    if name == "linearize":
        return list(linear_model_by_differences(mech, E.partition, q, v, u))
    pin.computeJointJacobians(model, data, q)
    found = []
    for x in frames:
        placed_at = data.oMi[x.joint] * x.placement
        J = pin.getJointJacobian(model, data, x.joint, pin.ReferenceFrame.LOCAL)
        J = data.oMi[x.joint].toActionMatrix() @ J
        J[:3] -= pin.skew(placed_at.translation) @ J[3:]
        found.append((placed_at.translation, placed_at.rotation.T, J))
    return [np.array(x) for x in zip(*found, strict=True)]
