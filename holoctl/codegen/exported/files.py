"""The files of a library, from its laws and the states of its self-test."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.tolerances import ALLOWANCE, SELF_TEST_STATES
from holoctl.codegen.c_text import array, comment, filled, number
from holoctl.codegen.casadi_extra import casadi_module
from holoctl.codegen.closed_state_c import laws_of
from holoctl.codegen.exported.contexts import (
    Build,
    GravityTorque,
    Header,
    KeptNoise,
    LimitedGravityTorque,
    LimitedSolve,
    PlantFile,
    PlantHeader,
    Readme,
    Shared,
    Solve,
    Source,
    TorqueDeclaration,
)
from holoctl.codegen.exported.laws import Laws
from holoctl.codegen.exported.left_out import in_header, in_readme
from holoctl.codegen.exported.limits import (
    LimitTexts,
    limit_fields,
    limit_texts,
    limits_contract,
    within_limits,
)
from holoctl.codegen.exported.plant import plant_functions
from holoctl.codegen.exported.self_test import self_test
from holoctl.codegen.exported.sensed import Sensed, sensed_texts
from holoctl.codegen.exported.states import States
from holoctl.codegen.exported.tables import motor_table, q_table, v_table
from holoctl.codegen.exported.tasks import task_declaration, task_torque
from holoctl.codegen.exported.ticks import Ticks
from holoctl.codegen.exported.write_files import MARK, stack_bytes
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.laws.measures import broken_at_least, earlier
from holoctl.codegen.laws.task import NAMES
from holoctl.codegen.matrices import dense
from holoctl.codegen.shared_steps import source
from holoctl.codegen.tree_dynamics import tree_efforts
from holoctl.codegen.unit_parts import normalising
from holoctl.control.computed_torque import ComputedTorque
from holoctl.rows.closure_limits import StateLimits

__all__ = ["library_files", "shared_context"]

PIVOT_LIMIT = 0.02
"""With a smaller pivot, whatever their order, a state in doubt counts as singular: one over the
multiplier that is in doubt."""


Array = NDArray[np.float64]


LAW = "HOLOCTL_DIVIDES static"
"""What stands before the C functions of the laws; see ``templates/divides.c.in``."""


def library_files(
    E: Expressions,
    laws: Laws,
    states: States,
    shared: Shared,
    plant: bool,
    weights: Array | None,
    ticks: Ticks | None,
    left_out: Sequence[str],
) -> dict[str, str]:
    """Name to text of every file; `left_out` are sentences of left_out.py."""
    P, symbols = shared.P, _symbols(E, weights)
    sensed = sensed_texts(E, laws, shared)
    body = filled("source.c", shared, _source(E, laws, states, shared, symbols, sensed))
    header = _header(E, laws, shared, stack_bytes(body), sensed, left_out)
    plant_files = _plant_files(E, laws.timed, shared, symbols) if plant else {}
    known = [filled("header.h", shared, header), body, *plant_files.values()]
    found = hashlib.sha256("".join(known).encode()).hexdigest()
    header = replace(header, hash=found[:32], content=f"0x{found[:8]}")
    row = f"| `{P}_plant.h`, `{P}_plant.c` | the exact plant, for trials on a computer |\n"
    summary = "inverse dynamics" if laws.controller is None else "computed torque"
    summary = summary if laws.task is None else "a law of one task"
    return {
        f"{P}.h": filled("header.h", shared, header),
        f"{P}.c": body,
        **plant_files,
        f"{P}_test.c": self_test(E, laws, states, shared, ticks),
        "CMakeLists.txt": filled("CMakeLists.txt", shared, Build(f" {P}_plant.c" if plant else "")),
        "README.md": filled(
            "README.md",
            shared,
            Readme(
                summary=summary,
                more_files=row if plant else "",
                from_motors=sensed.from_motors,
                within_limits=within_limits(laws),
                left_out=in_readme(left_out),
            ),
        ),
    }


def shared_context(
    E: Expressions, laws: Laws, prefix: str, limits: StateLimits, in_trouble: str, hold_limit: int
) -> Shared:
    """What several files are told."""
    mech, timed = E.mech, laws.timed
    P, U = prefix, prefix.upper()
    follow = NAMES if laws.task is not None else ("q_ref", "v_ref", "a_ref")
    given = ", ".join(follow)
    calls = f"q, v, {given}" if laws.controlled else "q, v, target"
    function = "torque" if laws.controlled else "inverse_dynamics"
    if laws.controlled and laws.closed_state is not None:
        function, calls = "torque_from_motors", f"q_m, v_m, {given}"
    normalised = (
        "  double unit[NQ];\n"
        f"  if (!normalise_all(q, unit)) return refuse(c, {U}_NOT_NORMALISED, u);\n"
        "  q = unit;\n"
    )
    return Shared(
        P=P,
        U=U,
        marker=f"{MARK} {metadata.version('holoctl')}: export again instead of editing.",
        title=comment(mech.name),
        nq=mech.nq,
        nv=mech.nv,
        nu=mech.nu,
        states=SELF_TEST_STATES,
        closure_limit=_limit(limits.closure),
        velocity_limit=_limit(limits.velocity),
        pivot_limit=number(PIVOT_LIMIT),
        earlier=number(earlier(E)),
        POLICY=in_trouble.upper(),
        hold_limit=f"{hold_limit}UL",
        usual_call=f"{P}_{function}(&c, {calls}, {'t, ' if timed else ''}u);",
        t_parameter="double t, " if timed else "",
        t_given="t, " if timed else "",
        t_refused=" || !isfinite(t)" if timed else "",
        t_contract="\n *   t            time, s" if timed else "",
        state="q, t" if timed else "q",
        normalised=normalised if E.tree.unit_parts else "",
        references=", ".join(f"const double *{x}" for x in follow),
        references_given=given,
        rates_parameter="const double *rates, const double *share, " if laws.at_reference else "",
        v_ref_given="v_ref, at_reference, " if laws.at_reference else "",
        or_a_force=", or a force is not defined" if E.forces.doubt else "",
        flags=filled("flags.c"),
        divides=filled("divides.c"),
        arithmetic=filled("arithmetic.c"),
    )


def _limit(limit: float | None) -> str:
    return "HUGE_VAL" if limit is None else number(limit)


# ------------------------------------------------------------------------- header and source


def _header(
    E: Expressions, laws: Laws, shared: Shared, stack: int, sensed: Sensed, left_out: Sequence[str]
) -> Header:
    mech, controller = E.mech, laws.controller
    gains, what, declaration = "", "", ""
    if controller is not None:
        gains = f"  double kp[{mech.nu}], kd[{mech.nu}]; /* of the export, at least 0 */\n"
        what = " and computed torque"
        text = _LAWS[controller.compensation]
        if mech.forces:
            text = _LAWS_OF_FORCES[controller.compensation]
        if laws.at_reference:
            text += _AT_REFERENCE
        law = TorqueDeclaration(" *   " + text)
        declaration = filled("torque.h", shared, law)
    if laws.task is not None:
        what, declaration = " and a law of one task", task_declaration(laws.task, shared)
    return Header(
        what=what,
        version=_version(metadata.version("holoctl")),
        q_table=q_table(mech),
        v_table=v_table(mech),
        motor_table=motor_table(mech),
        gains=gains,
        torque_declaration=declaration,
        or_forces=_OR_FORCES if E.forces.doubt else "",
        forces_contract=_FORCES if mech.forces else "",
        stack=stack,
        hash="",
        content="",
        measured_sizes=sensed.measured_sizes,
        measured_table=sensed.measured_table,
        memory_type=sensed.memory_type,
        memory_field=sensed.memory_field,
        sensed_declaration=sensed.sensed_declaration,
        limits_contract=limits_contract(laws, shared),
        limit_fields=limit_fields(laws),
        left_out=in_header(left_out),
    )


_LAWS = {
    "full": "a_ref + kd (v_ref - B' v) + kp e = B' a\n *   gamma' B u = gamma' (M a + h)",
    "gravity": "u = u_gravity(q) + kd (v_ref - B' v) + kp e",
}

_LAWS_OF_FORCES = {
    "full": "a_ref + kd (v_ref - B' v) + kp e = B' a\n *   gamma' B u = gamma' (M a + h - F)",
    "gravity": "u = u_hold(q) + kd (v_ref - B' v) + kp e\n"
    " *\n * where u_hold holds the mechanism at rest against gravity and springs",
}
_AT_REFERENCE = (
    "\n *\n * where F is of friction, springs and other forces of the mechanism: friction at the"
    "\n * motion whose motors have the rates v_ref, everything else at q and v"
)
_FORCES = (
    "\n * Friction, springs and other forces of the mechanism are compensated, all at q and v."
)
_OR_FORCES = (
    ";\n                            * or a force is not defined: the ends of a spring coincide"
)


def _source(
    E: Expressions, laws: Laws, states: States, shared: Shared, symbols: Any, sensed: Sensed
) -> Source:
    timed, controller = laws.timed, laws.controller
    limits = limit_texts(laws, LAW, symbols)
    functions = (
        [laws.errors, laws.matrix]
        if laws.limits
        else [laws.errors, laws.law, laws.hold, laws.matrix]
    )
    functions += [] if laws.task is None else [laws.task.function]
    functions = [f for f in functions if f is not None]
    if laws.closed_state is not None:
        functions += laws_of(laws.closed_state)
    rounded = E.partition.tolerance > 0.0
    arguments = "q, v, target" + ", rates, share" * laws.at_reference + ", &t" * timed
    noise = _NOISE if rounded else f"c->closure + c->velocity / {shared.earlier}"
    solve = filled("solve.c", shared, Solve(arguments, noise))
    if laws.limits:
        solve = filled(
            "solve_limited.c",
            shared,
            LimitedSolve(arguments, noise, limits.passed, **vars(limits.calls("law", arguments))),
        )
    torque = "" if controller is None else _torque(controller, timed, shared, limits)
    if laws.task is not None:
        torque = task_torque(laws.task, timed, shared, noise)
    return Source(
        rows=laws.matrix.size1_out(0),
        closed=laws.law.numel_out(2),
        kept=laws.law.numel_out(5),
        allowance=number(ALLOWANCE),
        tolerance=number(broken_at_least(E)),
        kept_noise=_kept_noise(E, shared) if rounded else "",
        laws=source(functions, LAW, symbols, limits.laws),
        largest=filled("largest.c"),
        normalise=normalising(E.tree.unit_parts),
        state_parameters="const double *q, double t" if timed else "const double *q",
        matrix_arguments="q, &t" if timed else "q",
        shares=_SHARES if laws.at_reference else "",
        rates_given="no_rates, as_measured, " if laws.at_reference else "",
        trial=_trial(states, timed),
        declare_t="  double t;\n" if timed else "",
        read_t="  read(trial_t, 1, &t);\n" if timed else "",
        set_gains="" if controller is None else _set_gains(controller),
        solve=solve,
        torque=torque,
        closed_state=sensed.closed_state,
        begin=sensed.begin,
        sensed=sensed.sensed,
        limits=limits.limits,
        limit_held=limits.held,
        limit_zero=limits.zero,
        set_limits=limits.set_limits,
    )


_SHARES = """
/* Whether friction is that of the reference, or of the measured rates. */
static const double at_reference[1] = {1.0}, as_measured[1] = {0.0}, no_rates[NU] = {0.0};
"""


_NOISE = "kept_noise(closed, moved, speed)"


def _kept_noise(E: Expressions, shared: Shared) -> str:
    """A function for how far kept rows are off: the others are, where geometry is rounded."""
    kept = np.flatnonzero(np.isin(E.open, E.partition.rows)).tolist()
    if not kept:
        return f"\n#define {_NOISE} 0.0\n"
    context = KeptNoise(", ".join(map(str, kept)), len(kept))
    return filled("kept_noise.c", shared, context)


def _torque(controller: ComputedTorque, timed: bool, shared: Shared, limits: LimitTexts) -> str:
    if controller.compensation == "full":
        return filled("torque_full.c", shared)
    if limits.limits:
        arguments = "q, v, command, &t" if timed else "q, v, command"
        own = LimitedGravityTorque(
            arguments, limits.passed_by_hold, **vars(limits.calls("hold", arguments))
        )
        return filled("torque_gravity_limited.c", shared, own)
    arguments = "q, v, &t" if timed else "q, v"
    return filled("torque_gravity.c", shared, GravityTorque(arguments))


def _set_gains(controller: ComputedTorque) -> str:
    lines = [
        f"  c->{gain}[{i}] = {number(float(x))};\n"
        for gain in ("kp", "kd")
        for i, x in enumerate(getattr(controller, gain))
    ]
    return "".join(lines)


def _trial(states: States, timed: bool) -> str:
    """The state at which init tries a tick: the first of the self-test."""
    given = [
        ("q", states.q, "NQ"), ("v", states.v, "NV"), ("target", states.target, "NU"),
        ("u", states.inverse, "NU"), ("tolerance", states.tolerance[:, None], "1"),
    ]  # fmt: skip
    if timed:
        given.append(("t", states.t[:, None], "1"))
    return "".join(f"  {array(f'trial_{x}', rows[0], f'[{size}]')}" for x, rows, size in given)


def _version(text: str) -> int:
    """A version as one number, for comparisons by the preprocessor: 0.1.2 is 102."""
    major, minor, patch = (int(x) for x in (*re.findall(r"\d+", text), "0", "0")[:3])
    return 10000 * major + 100 * minor + patch


def _symbols(E: Expressions, weights: Array | None) -> Any:
    """What the instructions of the laws compute on their way, for comments."""
    ca, mech, rows = casadi_module(), E.mech, E.rows
    target = ca.SX.sym("target", mech.nu)
    given = [E.q, E.v, target, E.t]
    _, a, _ = inverse_function(E, weights, "project").call(given, True, False)
    G = dense(rows.jacobian, mech.nv)
    columns = [ca.vertcat(*x) for x in (rows.error, rows.rate, rows.drift)]
    return ca.Function(
        "symbols", given, [*columns, G, a, tree_efforts(E.tree, E.v, a)],
        ["q", "v", "target", "t"], ["phi", "phi_rate", "drift", "G", "a", "efforts"],
    )  # fmt: skip


# --------------------------------------------------------------------------------- the plant


def _plant_files(E: Expressions, timed: bool, shared: Shared, symbols: Any) -> dict[str, str]:
    parts = "".join(f"  normalise(q + {p[0]}, {len(p)});\n" for p in E.tree.unit_parts)
    plant = PlantFile(
        laws=source(plant_functions(E, timed), LAW, symbols),
        norm=filled("plant_normalise.c") if parts else "",
        parts=parts or "  (void)q;\n",
        start=array("start", E.samples[0], "[NQ]"),
        t_ahead="t + h, " if timed else "",
        after="  const double after = t + dt;\n" if timed else "",
        motion_arguments="q, v, u, &t" if timed else "q, v, u",
        correction_arguments="q1, v1, &after" if timed else "q1, v1",
    )
    body = filled("plant.c", shared, plant)
    contract = "\n *   t      time at the start of the step, s" if timed else ""
    header = PlantHeader(contract, stack_bytes(body))
    return {
        f"{shared.P}_plant.h": filled("plant.h", shared, header),
        f"{shared.P}_plant.c": body,
    }
