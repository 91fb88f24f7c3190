"""`export_c`: a controller or a mechanism as a small C library that needs nothing but libm.

The laws are those of `expressions`, the code that of `c_source`; around them stands what a drive
needs that runs without a supervisor: every input is judged, every result too, and there is a
torque in all cases. The numbers of the self-test come from the Python path.
"""

from __future__ import annotations

import hashlib
import re
from importlib import metadata
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import one_of, quiet
from holoctl.base.errors import InputError
from holoctl.codegen.entries import dense
from holoctl.codegen.exported.laws import (
    STATES,
    Laws,
    States,
    exported_laws,
    golden_states,
    plant_functions,
)
from holoctl.codegen.exported.library import (
    MARK,
    array,
    comment,
    filled,
    identifier,
    number,
    source,
    stack_bytes,
    write_files,
)
from holoctl.codegen.expressions import Expressions, symbolic
from holoctl.codegen.extra import casadi_module
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.laws.measures import earlier
from holoctl.codegen.subject import subject_of
from holoctl.codegen.tree_dynamics import tree_efforts
from holoctl.control.computed_torque import ComputedTorque
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.projection import Partition
from holoctl.rows.consistency import (
    ALLOWANCE,
    NOT_GIVEN,
    TOLERANCES,
    NotGiven,
    StateLimits,
)
from holoctl.tree.kinematics import translational

__all__ = ["export_c"]

Array = NDArray[np.float64]

PIVOT_LIMIT = 0.02
"""With a smaller pivot, whatever their order, a state in doubt counts as singular: one over the
multiplier that is in doubt."""

LARGEST_REFERENCE = 1e6
"""Of the reference configuration, in rad and m: the states of the self-test, drawn around it, then
have ten digits left."""

POLICIES = ("hold", "zero")

LAW = "HOLOCTL_DIVIDES static"
"""What stands before the C functions of the laws; see ``templates/divides.c.in``."""


@quiet
def export_c(
    what: Mechanism | ComputedTorque,
    folder: str | PathLike[str],
    *,
    name: str | None = None,
    partition: Partition | None = None,
    weights: Any = None,
    closure_limit: float | NotGiven | None = NOT_GIVEN,
    velocity_limit: float | NotGiven | None = NOT_GIVEN,
    in_trouble: str = "hold",
    plant: bool = False,
) -> tuple[Path, ...]:
    """Write a C99 library of the controller: no dependency but libm, no allocation.

    Needs CasADi (the extra ``holoctl[codegen]``), and no compiler. Beside the header and the
    source there are a self-test with 64 states, for ``ctest``, a CMakeLists.txt and a README.
    The same input gives the same bytes. docs/embedded.md shows a loop around it.

    Parameters
    ----------
    what : Mechanism or ComputedTorque
        A controller gives ``holoctl_<name>_torque``, if its motors have positions of their own;
        both give ``holoctl_<name>_inverse_dynamics``.
    folder : str or path
        Made where it is missing. Files in it are overwritten only if they were written by holoctl.
    name : str, optional
        Default: that of the mechanism. Other characters than letters and digits become
        underscores.
    partition : Partition, optional
        Default: decided at the configuration assembled from the mechanism's reference. Not
        for a controller, which brings its own.
    weights : (nu,) array_like, optional
        For more motors than motions: as in `PreparedInverseDynamics`. Not for a controller.
    closure_limit, velocity_limit : float or None, optional
        There is no torque but a status where the state is open, or slides, by more; None for by
        any amount: as in `PreparedInverseDynamics`. May be changed in C. Default: 1e-2 and 0.1;
        not for a controller, which brings its own.
    in_trouble : str, optional
        What C gives without a torque: ``"hold"``, the last good one, or ``"zero"``. May be
        changed in C.
    plant : bool, optional
        Also write ``holoctl_<name>_plant.c``: the exact plant, for trials on a computer.

    Returns
    -------
    tuple of Path
        The files.

    Raises
    ------
    InputError
        Without CasADi; for arguments that do not fit; for joints and constraints that have no
        expressions, by name; where a file is in the way that holoctl did not write.
    NotActuatedError
        If the mechanism has no motors or no motion.
    AssemblyError
        If the reference configuration cannot be assembled.
    HoloctlError
        If the folder cannot be written.

    Examples
    --------
    >>> import tempfile, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(hc.export_c(ctl, folder)[0].name)
    holoctl_five_bar.h
    """
    if not isinstance(what, (Mechanism, ComputedTorque)):
        raise InputError(
            f"what must be a Mechanism or a ComputedTorque; got a {type(what).__name__}"
        )
    subject = subject_of(what, partition, weights, NOT_GIVEN, closure_limit, velocity_limit)
    mech, controller, limits = subject.mech, subject.controller, subject.limits
    one_of("in_trouble", in_trouble, POLICIES)
    try:
        place = Path(fspath(folder))
    except TypeError:
        raise InputError(f"folder must be a path; got {folder!r}") from None
    prefix = f"holoctl_{identifier(mech.name if name is None else name)}"
    weights = subject.weights
    _check_reference(mech)
    E = symbolic(mech, subject.partition)
    laws = exported_laws(E, controller, weights)
    values = _values(E, laws, prefix, limits, in_trouble)
    states = golden_states(E, laws, weights, limits)
    return write_files(place, _files(E, laws, states, values, plant, _symbols(E, weights)))


def _check_reference(mech: Mechanism) -> None:
    """The states of the self-test are around it; beyond some size doubles lie too far apart."""
    far = np.flatnonzero(~(np.abs(mech.reference) <= LARGEST_REFERENCE))
    if far.size:
        found = ", ".join(f"reference[{i}] = {mech.reference[i]:g}" for i in far)
        raise InputError(
            f"{mech.name}: numbers of the reference configuration must be within "
            f"{LARGEST_REFERENCE:g} for an export; got {found}. Likely causes: another unit than "
            "rad and m, or an angle that was summed up over many turns"
        )


# ------------------------------------------------------------------------------ the files


def _values(
    E: Expressions, laws: Laws, prefix: str, limits: StateLimits, in_trouble: str
) -> dict[str, object]:
    """What the templates are filled with."""
    mech, timed, controller = E.mech, laws.timed, laws.controller
    parts = E.tree.unit_parts
    calls = "q, v, q_ref, v_ref, a_ref" if controller is not None else "q, v, target"
    function = "torque" if controller is not None else "inverse_dynamics"
    gains = f"  double kp[{mech.nu}], kd[{mech.nu}]; /* of the export, at least 0 */\n"
    normalised = (
        "  double unit[NQ];\n"
        f"  if (!normalise_all(q, unit)) return refuse(c, {prefix.upper()}_NOT_NORMALISED, u);\n"
        "  q = unit;\n"
    )
    values: dict[str, object] = {
        "P": prefix,
        "U": prefix.upper(),
        "marker": f"{MARK} {metadata.version('holoctl')}: export again instead of editing.",
        "version": _version(metadata.version("holoctl")),
        "title": comment(mech.name),
        "what": " and computed torque" if controller is not None else "",
        "summary": "computed torque" if controller is not None else "inverse dynamics",
        "nq": mech.nq, "nv": mech.nv, "nu": mech.nu, "states": STATES,
        "rows": laws.matrix.size1_out(0), "closed": laws.law.numel_out(2),
        "kept": laws.law.numel_out(5),
        "closure_limit": _limit(limits.closure), "velocity_limit": _limit(limits.velocity),
        "pivot_limit": number(PIVOT_LIMIT),
        "earlier": number(earlier(E)),
        "allowance": number(ALLOWANCE), "tolerance": number(TOLERANCES["acceleration"]),
        "POLICY": in_trouble.upper(),
        "usual_call": f"{prefix}_{function}(&c, {calls}, {'t, ' if timed else ''}u);",
        "t_parameter": "double t, " if timed else "",
        "t_given": "t, " if timed else "",
        "t_refused": " || !isfinite(t)" if timed else "",
        "t_contract": "\n *   t            time, s" if timed else "",
        "state": "q, t" if timed else "q",
        "state_parameters": "const double *q, double t" if timed else "const double *q",
        "matrix_arguments": "q, &t" if timed else "q",
        "law_arguments": "q, v, target, &t" if timed else "q, v, target",
        "hold_arguments": "q, v, &t" if timed else "q, v",
        "normalised": normalised if parts else "",
        "gains": "" if controller is None else gains,
        "set_gains": "" if controller is None else _set_gains(controller),
        **_tables(mech),
    }  # fmt: skip
    values["parts"] = " && ".join(f"normalise(unit + {p[0]}, {len(p)})" for p in parts)
    values["normalise"] = filled("normalise.c", values) if parts else ""
    values["torque_declaration"] = values["torque"] = ""
    if controller is not None:
        full = controller.compensation == "full"
        values["law"] = " *   " + (
            "a_ref + kd (v_ref - B' v) + kp e = B' a\n *   gamma' B u = gamma' (M a + h)"
            if full
            else "u = u_gravity(q) + kd (v_ref - B' v) + kp e"
        )
        values["torque_declaration"] = filled("torque.h", values)
        values["torque"] = filled("torque_full.c" if full else "torque_gravity.c", values)
    return values


def _limit(limit: float | None) -> str:
    return "HUGE_VAL" if limit is None else number(limit)


def _set_gains(controller: ComputedTorque) -> str:
    lines = [
        f"  c->{gain}[{i}] = {number(float(x))};\n"
        for gain in ("kp", "kd")
        for i, x in enumerate(getattr(controller, gain))
    ]
    return "".join(lines)


def _tables(mech: Mechanism) -> dict[str, str]:
    """What each number of q, v and u is."""
    model, length = mech.model, translational(mech.model)
    q_lines, v_lines, motors = [], [], []
    for j in range(1, model.njoints):
        iq, nq, nv = model.idx_qs[j], model.nqs[j], model.nvs[j]
        unit = "m" if length[model.idx_vs[j] : model.idx_vs[j] + nv].all() else "rad"
        kind = model.joints[j].shortname().removeprefix("JointModel")
        q_lines.append((iq, nq, f"{model.names[j]}: {_meaning(kind, nq, nv, unit)}"))
    for i, name in enumerate(mech.coordinate_names):
        v_lines.append((i, 1, f"{name}, {'m/s' if length[i] else 'rad/s'}"))
    for i, name in enumerate(mech.actuator_names):
        kinds = set(np.where(length[mech.B[:, i] != 0.0], "N", "N m").tolist())
        motors.append((i, 1, f"{name}, {' and '.join(sorted(kinds))}"))
    return {
        "q_table": _lines("q", q_lines),
        "v_table": _lines("v", v_lines),
        "motor_table": _lines("u", motors),
    }


def _meaning(kind: str, nq: int, nv: int, unit: str) -> str:
    if (nq, nv) == (1, 1):
        return unit
    if (nq, nv) == (2, 1):
        return "cosine and sine of the angle"
    if kind == "FreeFlyer":
        return "position, m, and quaternion x y z w"
    if kind == "Spherical":
        return "quaternion x y z w"
    if kind == "Planar":
        return "x and y, m, cosine and sine of the angle"
    if kind == "Translation":
        return "x, y and z, m"
    return f"{nq} numbers of a {kind}, as Pinocchio has them"


def _lines(letter: str, rows: list[tuple[int, int, str]]) -> str:
    found = []
    for i, n, text in rows:
        place = f"{letter}[{i}]" if n == 1 else f"{letter}[{i}..{i + n - 1}]"
        found.append(f" *   {place:<10} {comment(text)}")
    return "\n".join(found)


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


def _files(
    E: Expressions,
    laws: Laws,
    states: States,
    values: dict[str, object],
    plant: bool,
    symbols: Any,
) -> dict[str, str]:
    """Name to text of every file."""
    prefix = values["P"]
    functions = [f for f in (laws.errors, laws.law, laws.hold, laws.matrix)
                 if f is not None]  # fmt: skip
    values |= {x: filled(f"{x}.c", {}) for x in ("flags", "divides", "arithmetic")}
    values |= {"laws": source(functions, LAW, symbols), **_trial(states, laws.timed)}
    files = dict[str, str]()
    if plant:
        files |= _plant_files(E, laws.timed, values, symbols)
    values["more_sources"] = f" {prefix}_plant.c" if plant else ""
    values["more_files"] = (
        f"| `{prefix}_plant.h`, `{prefix}_plant.c` | the exact plant, for trials on a computer |\n"
        if plant
        else ""
    )
    values["stack"] = stack_bytes(filled("source.c", values))
    library = {f"{prefix}.{x}": filled(template, values | {"hash": "", "content": ""})
               for x, template in (("h", "header.h"), ("c", "source.c"))}  # fmt: skip
    content = hashlib.sha256("".join([*library.values(), *files.values()]).encode()).hexdigest()
    values |= {"hash": content[:32], "content": f"0x{content[:8]}"}
    library = {f"{prefix}.h": filled("header.h", values), f"{prefix}.c": filled("source.c", values)}
    return {
        **library,
        **files,
        f"{prefix}_test.c": _test(laws, states, values),
        "CMakeLists.txt": filled("CMakeLists.txt", values),
        "README.md": filled("README.md", values),
    }


def _version(text: str) -> int:
    """A version as one number, for comparisons by the preprocessor: 0.1.2 is 102."""
    major, minor, patch = (int(x) for x in (*re.findall(r"\d+", text), "0", "0")[:3])
    return 10000 * major + 100 * minor + patch


def _trial(states: States, timed: bool) -> dict[str, object]:
    """The state at which init tries a tick: the first of the self-test."""
    names = {"q": "NQ", "v": "NV", "target": "NU", "u": "NU", "tolerance": "1"}
    given = {"q": states.q, "v": states.v, "target": states.target, "u": states.inverse}
    given["tolerance"] = states.tolerance[:, None]
    if timed:
        names["t"], given["t"] = "1", states.t[:, None]
    arrays = [array(f"trial_{x}", given[x][0], f"[{size}]") for x, size in names.items()]
    return {
        "trial": "".join(f"  {line}" for line in arrays),
        "declare_t": "  double t;\n" if timed else "",
        "read_t": "  read(trial_t, 1, &t);\n" if timed else "",
    }


def _plant_files(
    E: Expressions, timed: bool, values: dict[str, object], symbols: Any
) -> dict[str, str]:
    functions = plant_functions(E, timed)
    parts = "".join(f"  normalise(q + {p[0]}, {len(p)});\n" for p in E.tree.unit_parts)
    more = values | {
        "laws": source(functions, LAW, symbols),
        "parts": parts or "  (void)q;\n",
        "start": array("start", E.samples[0], "[NQ]"),
        "norm": filled("plant_normalise.c", values) if parts else "",
        "plant_t_contract": "\n *   t      time at the start of the step, s" if timed else "",
        "t_ahead": "t + h, " if timed else "",
        "motion_arguments": "q, v, u, &t" if timed else "q, v, u",
        "correction_arguments": "q1, v1, &after" if timed else "q1, v1",
        "after": "  const double after = t + dt;\n" if timed else "",
    }
    plant = filled("plant.c", more)
    more["stack"] = stack_bytes(plant)
    return {
        f"{values['P']}_plant.h": filled("plant.h", more),
        f"{values['P']}_plant.c": plant,
    }


def _test(laws: Laws, states: States, values: dict[str, object]) -> str:
    prefix, timed = values["P"], laws.timed
    t = "x.t, " if timed else ""
    arrays = [
        array("state_q", states.q, "[STATES][NQ]"),
        array("state_v", states.v, "[STATES][NV]"),
        array("state_t", states.t, "[STATES]"),
        array("target", states.target, "[STATES][NU]"),
        array("expected_inverse", states.inverse, "[STATES][NU]"),
        array("tolerance", states.tolerance, "[STATES]"),
    ]
    copies = "  for (int i = 0; i < NU; i++) x.first[i] = target[k][i];\n"
    more = {
        "more_inputs": "", "more_bad": "", "golden_torque": "", "x_t": t,
        "tick": f"{prefix}_inverse_dynamics(c, x->q, x->v, x->first, "
        f"{'x->t, ' if timed else ''}u)",
    }  # fmt: skip
    if laws.controller is not None:
        arrays += [
            array(name, getattr(states, name), "[STATES][NU]")
            for name in ("q_ref", "v_ref", "a_ref")
        ]
        arrays.append(array("expected_torque", states.torque, "[STATES][NU]"))
        copies = (
            "  for (int i = 0; i < NU; i++) {\n    x.first[i] = q_ref[k][i];\n"
            "    x.v_ref[i] = v_ref[k][i];\n    x.a_ref[i] = a_ref[k][i];\n  }\n"
        )
        more |= {
            "more_inputs": ", v_ref[NU], a_ref[NU]",
            "more_bad": "  bad_numbers(x.v_ref, NU, &x);\n  bad_numbers(x.a_ref, NU, &x);\n",
            "tick": f"{prefix}_torque(c, x->q, x->v, x->first, x->v_ref, x->a_ref, "
            f"{'x->t, ' if timed else ''}u)",
            "golden_torque": f'    check(tick(&c, &x, u) == {values["U"]}_OK, "status");\n'
            "    d = difference(u, expected_torque[k]) / tolerance[k];\n"
            "    if (!(d <= worst)) worst = d;\n",
        }
    if timed:
        more["more_bad"] += "  bad_numbers(&x.t, 1, &x);\n"
    seen = f'  check(c.count[{values["U"]}_OVERFLOW] > 0, "OVERFLOW in a storm");\n'
    more["storm_seen"] = seen if states.overflow else ""
    return filled(
        "test.c",
        values
        | more
        | {"arrays": "\n".join(arrays), "copies": copies}
        | {"more_refused": _refused(laws, states, values)},
    )


def _refused(laws: Laws, states: States, values: dict[str, object]) -> str:
    """Checks of the self-test that not every mechanism has."""
    U, lines = values["U"], []
    if values["parts"]:
        place = str(values["parts"]).partition("unit + ")[2].partition(",")[0]
        lines += [
            "  x = good_input(0);",
            f"  x.q[{place}] += 2.0;",
            f'  check(tick(&c, &x, u) == {U}_NOT_NORMALISED && finite_u(u), "NOT_NORMALISED");',
        ]
    if laws.controller is not None:
        lines += [
            "  x = good_input(0);",
            f"  {values['P']}_init(&c);",
            "  c.kp[0] = HUGE_VAL;",
            f'  check(tick(&c, &x, u) == {U}_OVERFLOW && finite_u(u), "OVERFLOW");',
        ]
    if states.open is not None:
        numbers = ", ".join(number(float(x)) for x in states.open)
        lines += [
            "  {",
            f"    static const double open_q[NQ] = {{{numbers}}};",
            "    x = good_input(0);",
            "    for (int i = 0; i < NQ; i++) x.q[i] = open_q[i];",
            f"    {values['P']}_init(&c);",
            f'    check(tick(&c, &x, u) == {U}_OPEN && finite_u(u), "OPEN");',
            f'    check(c.closure > {values["closure_limit"]}, "closure of an open state");',
            "  }",
        ]
    if states.sliding is not None:
        numbers = ", ".join(number(float(x)) for x in states.sliding)
        lines += [
            "  {",
            f"    static const double sliding_v[NV] = {{{numbers}}};",
            "    x = good_input(0);",
            "    for (int i = 0; i < NV; i++) x.v[i] = sliding_v[i];",
            f"    {values['P']}_init(&c);",
            f'    check(tick(&c, &x, u) == {U}_SLIDING && finite_u(u), "SLIDING");',
            f'    check(c.velocity > {values["velocity_limit"]}, "velocity of a sliding state");',
            "  }",
        ]
    return "".join(f"{line}\n" for line in lines)
