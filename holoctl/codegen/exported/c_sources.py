"""The files of a library: what its templates are filled with, from its laws and their states."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import numpy as np

from holoctl.base.checks import Array
from holoctl.base.tolerances import SELF_TEST_STATES
from holoctl.codegen.batched_functions import batched_source
from holoctl.codegen.c_style import finished
from holoctl.codegen.c_text import arrays, comment, filled, normalised, number
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.closed_state_c import laws_of, state_values
from holoctl.codegen.exported.laws import Laws, TaskExport
from holoctl.codegen.exported.not_exported import in_header
from holoctl.codegen.exported.plant import plant_functions, plant_terms
from holoctl.codegen.exported.self_test import test_values
from holoctl.codegen.exported.self_test_states import States
from holoctl.codegen.exported.self_test_ticks import Ticks
from holoctl.codegen.exported.standing import standing_values
from holoctl.codegen.exported.tables import (
    efforts_table,
    limits_table,
    measured_table,
    motor_table,
    name_size,
    named_places,
    names_in_c,
    q_table,
    v_table,
)
from holoctl.codegen.exported.write_files import MARK, stack_bytes, version_number
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.laws.measurement_model import unit_readings
from holoctl.codegen.laws.residuals import broken_at_least, earlier
from holoctl.codegen.laws.task_rows import reference_pose, reference_size
from holoctl.codegen.limits_c import limited_c, limits_c
from holoctl.codegen.matrices import dense
from holoctl.codegen.precision import DOUBLE
from holoctl.codegen.tree_dynamics import tree_efforts
from holoctl.dynamics.actuation_side import AT_SINGULARITY, has_sides
from holoctl.rows.state_limits import StateLimits

__all__ = ["Library", "library_files"]

PIVOT_LIMIT = 0.02
"""With a smaller pivot, whatever their order, a state in doubt counts as singular: one over the
multiplier that is in doubt."""


LAW = "HOLOCTL_DIVIDES static"
"""The qualifier of the C functions of the laws; see ``templates/divides.c.in``."""


@dataclass(frozen=True, eq=False)
class Library:
    """What is exported.

    Attributes
    ----------
    prefix : str
        The prefix of its names and files.
    E : Expressions
    laws : Laws
    weights : (nu,) array or None
    limits : StateLimits
        The limits of closure and velocity error.
    in_trouble : str
    hold_limit : int
        The output without a valid torque, and the number of calls for which it is held.
    states : States
    ticks : Ticks or None
        The states and ticks of the self-test.
    plant : bool
        Whether the plant is written, too.
    left_out : sequence of str
        Sentences: parts of the description, or of the request, that the C does not have.
    """

    prefix: str
    E: Expressions
    laws: Laws
    weights: Array | None
    limits: StateLimits
    in_trouble: str
    hold_limit: int
    states: States
    ticks: Ticks | None
    plant: bool
    left_out: Sequence[str]


def library_files(lib: Library) -> dict[str, str]:
    """Name to text of every file."""
    P, values, precision = lib.prefix, library_values(lib), lib.E.precision
    made = precision.text
    source = made(filled("source.c", values))
    values["stack"], files = stack_bytes(source, precision.size), {f"{P}.c": finished(source, P)}
    if lib.plant:
        exact = values | DOUBLE.values  # for a computer, in double precision
        plant = filled("plant.c", exact)
        values["plant_stack"] = exact["plant_stack"] = stack_bytes(plant)
        files |= {
            f"{P}_plant.h": filled("plant.h", exact),
            f"{P}_plant.c": finished(plant, f"{P}_plant"),
        }
    known = made(filled("header.h", values | {"hash": "", "content": ""})), *files.values()
    found = hashlib.sha256("".join(known).encode()).hexdigest()
    header = made(filled("header.h", values | {"hash": found[:32], "content": f"0x{found[:8]}"}))
    files = {f"{P}.h": header, **files, f"{P}_test.c": made(filled("test.c", values))}
    return files | {x: filled(x, values) for x in ("CMakeLists.txt", "README.md")}


def library_values(lib: Library) -> dict[str, object]:
    """The values of the templates; the head of each template explains its values."""
    E, laws, sensing = lib.E, lib.laws, lib.laws.closed_state
    symbols = _symbols(E, lib.weights)
    values: dict[str, object] = {} if sensing is None else {
        **state_values(E, sensing, lib.prefix),
        "measured_table": measured_table(sensing.sensing.sensors),
        "unit_measured": normalised("x", unit_readings(E, sensing.sensing.sensors)),
    }  # fmt: skip
    start = "" if sensing is None else arrays(start=sensing.sensing.start)
    return {
        **E.precision.values, "weighed": False, "transmission": False, **values, "start": start,
        **_contract(lib),
        **_parameters(lib),
        **_kinds(lib),
        **_code(lib, symbols), **test_values(E, laws, lib.states, lib.ticks),
        **({} if laws.task is None else _task(laws.task)),
        **_standing(lib),
        **(_plant(lib, symbols) if lib.plant else {}),
    }  # fmt: skip


def _kinds(lib: Library) -> dict[str, object]:
    """The conditions of the templates: which parts a library has."""
    E, laws = lib.E, lib.laws
    compensation = "" if laws.controller is None else laws.controller.compensation
    turns = laws.task is not None and reference_pose(laws.task.subject.task)[1]
    return {
        "timed": laws.timed, "at_reference": laws.at_reference, "sensed": laws.closed_state,
        "controlled": laws.controlled, "computed_torque": laws.controller, "tasked": laws.task,
        "turns": turns, "gravity": compensation == "gravity",
        "limited": laws.limits, "limited_hold": laws.limited_hold, "plant": lib.plant,
        "standing": laws.standing, "bounded": laws.limits or laws.standing,
        "standing_tasks": laws.standing is not None and laws.tasked is not None, "slipping": False,
        "scaled": laws.limits is not None and laws.limits.policy == "scale",
        "moving": laws.limits is not None and laws.limits.fast,
        "forces": E.mech.forces, "guarded": E.forces.guard, "unit_parts": E.tree.unit_parts,
        "sided": has_sides(E.mech, E.partition),
        "rounded": E.partition.tolerance > 0.0, "left_out": in_header(lib.left_out),
    }  # fmt: skip


def _contract(lib: Library) -> dict[str, object]:
    """Names, sizes, configuration and tables."""
    mech, laws, follow = lib.E.mech, lib.laws, ", ".join(lib.laws.references)
    version, law, precision = metadata.version("holoctl"), laws.limits, lib.E.precision
    state = laws.closed_state
    sensors = None if state is None else state.sensing.sensors
    call, given = "inverse_dynamics", "q, v, target"
    computes, summary = "", "inverse dynamics"
    if laws.controlled:
        call = "torque_from_motors" if state else "torque"
        given = f"q_m, v_m, {follow}" if state else f"q, v, {follow}"
        summary = "computed torque" if laws.tasked is None else "a law of one task"
        if laws.standing is not None:
            summary = f"{'computed torque' if laws.tasked is None else 'tasks'} on contacts"
        computes = f" and {summary}"
    return {
        "P": lib.prefix, "U": lib.prefix.upper(), "title": comment(mech.name),
        "marker": f"{MARK} {version}: export again instead of editing.",
        "version": version_number(version), "computes": computes, "summary": summary,
        "usual_call": f"{lib.prefix}_{call}(&c, {given}, {'t, ' if laws.timed else ''}u);",
        "references": ", ".join(f"const double *{x}" for x in laws.references),
        "references_given": follow, "nq": mech.nq, "nv": mech.nv, "nu": mech.nu,
        "states": SELF_TEST_STATES, "q_table": q_table(mech), "v_table": v_table(mech),
        "motor_table": motor_table(mech), "limits_table": _limits_table(lib),
        "named_places": named_places(mech, sensors, lib.prefix.upper()),
        "motor_letters": name_size(mech.actuator_names),
        "sensor_letters": name_size(() if sensors is None else sensors.labels),
        "names": names_in_c(mech, sensors, lib.prefix),
        "statuses": 15 if laws.standing is None else 18,
        "dt": f"{law.dt:g}" if law is not None else "",
        "left_out_items": "\n".join(f"- {comment(x)}" for x in lib.left_out),
        "closure_limit": number(np.inf if lib.limits.closure is None else lib.limits.closure),
        "velocity_limit": number(np.inf if lib.limits.velocity is None else lib.limits.velocity),
        "lost_least": f"{20.0 * mech.nv * precision.eps:.1e}",
        "lost_most": f"{precision.most_condition * precision.eps:.1e}",
        "pivot_limit": number(PIVOT_LIMIT), "earlier": number(earlier(lib.E)),
        "margin": number(-1.0 if lib.limits.margin is None else lib.limits.margin),
        "at_singularity": number(AT_SINGULARITY), "side_sign": number(_side_at_export(lib)),
        "width": mech.nv + mech.nu,
        "POLICY": lib.in_trouble.upper(), "hold_limit": f"{lib.hold_limit}UL",
    }  # fmt: skip


def _parameters(lib: Library) -> dict[str, object]:
    """Payload and gravity, and their values at the states of the self-test."""
    frame, usual, states = lib.E.parameters.frame, lib.laws.parameters, lib.states
    entries = [(x, i) for x, values in usual.items() for i in range(values.size)]
    return {
        "parametric": usual,
        "payload_frame": "" if frame is None else comment(frame.name),
        "usual_gravity": ", ".join(number(float(x)) for x in usual.get("gravity", ())),
        "state_parameters": arrays(state_parameters=states.parameters) if usual else "",
        "set_parameters": "".join(
            f"  c->{_entry(*at)} = state_parameters[k][{n}];\n" for n, at in enumerate(entries)
        ),
        "parameter_count": len(entries),
        "parameter_places": ", ".join(f"&c->{_entry(*at)}" for at in entries),
    }


def _entry(name: str, i: int) -> str:
    """An entry of a parameter in the struct."""
    return name if name == "payload_mass" else f"{name}[{i}]"


def _standing(lib: Library) -> dict[str, object]:
    laws = lib.laws
    if laws.standing is None:
        return {}
    return standing_values(lib.E, laws.standing, lib.prefix, laws.timed)


def _limits_table(lib: Library) -> str:
    laws = lib.laws
    if laws.standing is not None:
        return efforts_table(lib.E.mech, laws.standing.paths.law.bound)
    return "" if laws.limits is None else limits_table(laws.limits)


def _side_at_export(lib: Library) -> float:
    """The sign of the determinant of `Laws.matrix` at the configuration of the export; 1 where
    there are no sides, or at a singularity."""
    if not has_sides(lib.E.mech, lib.E.partition):
        return 1.0
    K = np.array(lib.laws.matrix.call([lib.E.samples[0], *([0.0] if lib.laws.timed else [])])[0])
    return float(np.linalg.slogdet(K)[0]) or 1.0


def _code(lib: Library, symbols: Any) -> dict[str, object]:
    """The template values of the laws, and of the code around them."""
    E, laws, states, limits = lib.E, lib.laws, lib.states, lib.laws.limits
    functions = [laws.errors, laws.matrix]
    more, shared = list[str](), dict[str, object]()
    text = ""
    if limits is None:
        functions = [laws.errors, laws.law, laws.hold, laws.matrix]
    else:
        text = limits_c(limits, E.precision)
        of_task = None if laws.task is None else laws.task.limited
        for found in filter(None, (laws.limited_law, laws.limited_hold, of_task)):
            made = limited_c(found, limits, "found", LAW, symbols, E.precision)
            more.append(made.stages)
            text += made.driver
            shared[f"{found.function.name()}_shared"] = made.shared
    functions += [] if laws.task is None or limits is not None else [laws.task.function]
    if laws.standing is not None:
        standing = laws.standing
        functions = [laws.errors, standing.terms, standing.of_tasks, standing.broken, laws.matrix]
    functions += [] if laws.closed_state is None else laws_of(laws.closed_state)
    deciding = np.flatnonzero(np.isin(E.open, E.partition.rows)).tolist()
    noise = f"c->closure + c->velocity_residual / {number(earlier(E))}"
    first = states.tolerance[:: states.cases]
    known = states.cases * int(first.argmin())  # the state that init looks at
    trial = {"q": states.q, "v": states.v, "target": states.target, "u": states.inverse}
    trial |= {"tolerance": states.tolerance[:, None]}
    trial |= {"t": states.t[:, None]} if laws.timed else {}
    gains = [(x, getattr(laws.controller, x)) for x in ("kp", "kd") if laws.controller is not None]
    gains += laws.parameters.items()
    held = ["q", "v", *(["command"] if limits is not None else [])]
    return {
        **shared, "limits": text,
        "laws": batched_source(
            [f for f in functions if f is not None], LAW, symbols, more, E.precision
        ),
        "law_inputs": _inputs(["q", "v", "target", *["rates", "share"] * laws.at_reference], laws),
        "hold_inputs": _inputs(held, laws), "state": "q, t" if laws.timed else "q",
        "task_inputs": _inputs(["q", "v", *laws.references], laws),
        "rows": laws.matrix.size1_out(0), "closed": laws.law.numel_out(2),
        "kept": laws.law.numel_out(5), "tolerance": number(broken_at_least(E)),
        "noise": "kept_noise(closed, moved, speed)" if E.partition.tolerance > 0.0 else noise,
        "deciding": len(deciding), "deciding_rows": ", ".join(map(str, deciding)),
        "normalise_unit": normalised("unit", E.tree.unit_parts),
        "trial": "".join(f"  {arrays(**{f'trial_{x}': rows[known]})}" for x, rows in trial.items()),
        "gains": "".join(
            f"  c->{_entry(name, i)} = {number(float(x))};\n"
            for name, values in gains for i, x in enumerate(values)
        ),
    }  # fmt: skip


def _inputs(names: Sequence[str], laws: Laws) -> str:
    """Arguments of a law."""
    parameters = [f"&c->{_entry(x, 0)}" for x in laws.parameters]
    return ", ".join([*names, *["&t"] * laws.timed, *parameters])


def _task(task: TaskExport) -> dict[str, object]:
    """A law of one task."""
    bound, law = task.subject.task, task.subject.law
    (along, _), count = reference_pose(bound), reference_size(bound)
    return {
        "task_rows": len(bound.labels), "value_size": count,
        "task_table": "\n".join(f" *   {i}  {comment(x)}" for i, x in enumerate(bound.labels)),
        "natural": law.natural, "inertia": law.inertia is not None, "damped": law.damped,
        "posture": len(bound.labels) < task.subject.partition.actuation_rank,
        "positions": len(along), "letters": " ".join("xyz"[i] for i in along),
    }  # fmt: skip


def _plant(lib: Library, symbols: Any) -> dict[str, object]:
    E = replace(lib.E, precision=DOUBLE)
    parts = [f"  normalise(q + {p[0]}, {len(p)});\n" for p in E.tree.unit_parts]
    names, timed, rows = list(lib.laws.parameters), lib.laws.timed, len(E.partition.rows)
    functions = [*plant_functions(E, timed), *([plant_terms(E, timed)] if rows else [])]
    return {
        "plant_laws": batched_source(functions, LAW, symbols),
        "plant_rows": rows,
        "plant_free": E.mech.nv - rows,
        "plant_width": E.mech.nv + 3,
        "plant_units": ", ".join(map(number, E.mech.column_scale.tolist())),
        "normalise_parts": "".join(parts) or "  (void)q;\n",
        "plant_start": arrays(start=lib.E.samples[0]),
        "plant_parameters": "".join(f", const double *{x}" for x in names),
        "plant_given": "".join(f", {x}" for x in names),
    }


def _symbols(E: Expressions, weights: Array | None) -> Any:
    """What the instructions of the laws compute on their way, for comments."""
    ca, mech, rows = casadi_module(), E.mech, E.rows
    target = ca.SX.sym("target", mech.nu)
    given = [E.q, E.v, target, *E.context.values()]
    _, a, _ = inverse_function(E, weights, "project").call(given, True, False)
    G = dense(rows.jacobian, mech.nv)
    columns = [ca.vertcat(*x) for x in (rows.error, rows.rate, rows.drift)]
    return ca.Function(
        "symbols", given, [*columns, G, a, tree_efforts(E.tree, E.v, a)],
        ["q", "v", "target", *E.context], ["phi", "phi_rate", "drift", "G", "a", "efforts"],
    )  # fmt: skip
