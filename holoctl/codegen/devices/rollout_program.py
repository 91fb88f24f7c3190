"""A controller in closed loop with its plant, for many robots: the exported C, in one kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

from holoctl.base.errors import InputError
from holoctl.codegen.batched_functions import batched_tanh_exp
from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import filled, number
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.devices.kernels import Kernel, Program, program
from holoctl.codegen.exported.c_sources import Library, library_files
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.residuals import measures
from holoctl.codegen.laws.task_rows import reference_size
from holoctl.codegen.matrices import largest
from holoctl.estimation.measurement_model import MeasurementModel

__all__ = ["CONTEXT", "PLANT_REFUSED", "RolloutProgram", "rollout_program"]

CONTEXT = 65536
"""Bytes for the struct of a controller."""

PLANT_REFUSED = 100
"""The status of a robot whose plant could not make a step."""

CLOSED = 1e-3  # scaled
"""The largest error of closures, and of their rates beside the speed, of a start: what a step of
the plant accepts before its correction, and may leave of rates."""


@dataclass(frozen=True)
class RolloutProgram:
    """Kernels ``prepare(context, ended)`` and ``rollout(...)``, and the sizes of its tables.

    Attributes
    ----------
    program : Program
    followed : dict of str to int
        What comes at every tick: references of the controller, or ``u``.
    controller, plant : dict of str to int
        Parameters.
    statuses : dict of int to str
        The names of the statuses.
    """

    program: Program
    followed: dict[str, int]
    controller: dict[str, int]
    plant: dict[str, int]
    statuses: dict[int, str]


def rollout_program(lib: Library, sensors: MeasurementModel | None) -> RolloutProgram:
    """The program of a library with a plant; of a mechanism the motors' efforts are given.

    Raises
    ------
    InputError
        For sensors of cut joints, and of joints that have more numbers than rates.
    """
    laws, mech, P = lib.laws, lib.E.mech, lib.prefix
    followed = {"u": mech.nu}
    if laws.controlled:
        count, rows = mech.nu, mech.nu
        if laws.task is not None:
            bound = laws.task.subject.task
            count, rows = reference_size(bound), len(bound.labels)
        followed = dict(zip(laws.references, (count, rows, rows), strict=True))
    plant = {name: x.size for name, x in laws.parameters.items()}
    gains = {"kp": mech.nu, "kd": mech.nu} if laws.controller is not None else {}
    controller = {**gains, **plant} if laws.controlled else {}
    files = library_files(lib)
    used = [f"{P}.h", *([f"{P}.c"] if laws.controlled else []), f"{P}_plant.h", f"{P}_plant.c"]
    values: dict[str, object] = {
        "P": P, "U": P.upper(), "nq": mech.nq, "nv": mech.nv, "nu": mech.nu, "timed": laws.timed,
        "sources": "\n".join(f'#include "{x}"' for x in used), "controlled": laws.controlled,
        "plant_refused": PLANT_REFUSED, "payload": "payload_mass" in plant,
        "measured": sensors is not None, **({} if sensors is None else _sensing(sensors)),
        "declared": _declared(followed, plant, sensors), "loaded": _loaded(controller, plant),
        "finite": _finite(gains, plant), "start_law": _start_law(lib.E),
        "closed": number(max(CLOSED, lib.E.partition.tolerance)),
        "followed": "\n".join(f"    load(follow_{x}, k, h, {n}, {_local(x)});"
                              for x, n in followed.items()),
        "references_given": ", ".join(map(_local, followed)),
        "plant_given": "".join(f", plant_{x}" for x in plant),
        "plant_parameters": "".join(f", const double *{x}" for x in plant),
        "plant_names": "".join(f", {x}" for x in plant),
        "references": ", ".join(f"const double *{x}" for x in followed),
        "reference_names": ", ".join(followed),
    }  # fmt: skip
    tables = [
        *_START, *(f"follow_{x}" for x in followed), *(f"{x}_of_controller" for x in controller),
        *(f"{x}_of_plant" for x in plant), *_SENSORS,
    ]  # fmt: skip
    parameters = (
        *(("table", x) for x in tables), *_COUNTS, *(("table", x) for x in _RESULTS),
        ("marks", "ended"), ("marks", "context"),
    )  # fmt: skip
    kernels = [Kernel("rollout", parameters, filled("rollout.c", values))]
    if laws.controlled:
        body = (
            f"  {P} *c = ({P} *)context.at;\n"
            f"  ended.at[k] = (unsigned char)(sizeof *c <= {CONTEXT} ? (int){P}_init(c) : 255);"
        )
        kernels.append(Kernel("prepare", (("marks", "ended"), ("marks", "context")), body))
    made = program(filled("rollout_laws.c", values), kernels, {x: files[x] for x in used})
    return RolloutProgram(made, followed, controller, plant, _statuses(files[f"{P}.h"], P))


_START = "q_start", "v_start"
_SENSORS = "sensor_noise", "sensor_steps"
_COUNTS = (
    ("double", "start"), ("double", "dt"), ("long long", "ticks"), ("long long", "substeps"),
    ("long long", "every"), ("long long", "seed"), ("long long", "first_robot"),
)  # fmt: skip
_RESULTS = "q_rows", "v_rows", "u_rows", "counts"


def _statuses(header: str, prefix: str) -> dict[int, str]:
    """Those that the header of a library defines, and that of a plant."""
    every = "".join(re.findall(rf"typedef enum \{{([^}}]*)\}} {prefix}_status;", header))
    found = re.findall(rf"\b{prefix.upper()}_([A-Z_]+) = (\d+)\b", every)
    return {int(code): name for name, code in found} | {PLANT_REFUSED: "PLANT_REFUSED"}


def _local(name: str) -> str:
    return "u" if name == "u" else f"now_{name}"


def _declared(
    followed: dict[str, int], plant: dict[str, int], sensors: MeasurementModel | None
) -> str:
    lines = [f"  double {_local(x)}[{n}];" for x, n in followed.items() if x != "u"]
    lines += [f"  double plant_{x}[{n}];" for x, n in plant.items()]
    if sensors is not None:
        lines += [
            "  double noise[M], rate_noise[M], steps[M];",
            "  load(sensor_noise, k, 0, M, noise);",
            "  load(sensor_noise, k, 1, M, rate_noise);",
            "  load(sensor_steps, k, 0, M, steps);",
        ]
    else:
        lines += ["  (void)sensor_noise;", "  (void)sensor_steps;", "  (void)seed;",
                  "  (void)first_robot;"]  # fmt: skip
    return "\n".join(lines)


def _loaded(controller: dict[str, int], plant: dict[str, int]) -> str:
    lines = [
        f"  load({x}_of_controller, k, 0, {n}, {'&' if x == 'payload_mass' else ''}c.{x});"
        for x, n in controller.items()
    ]
    lines += [f"  load({x}_of_plant, k, 0, {n}, plant_{x});" for x, n in plant.items()]
    return "\n".join(lines)


def _finite(gains: dict[str, int], plant: dict[str, int]) -> str:
    """Whether the state and what a plant or a controller does not check itself are numbers."""
    given = ["q, NQ", "v, NV", *(f"c.{x}, {n}" for x, n in gains.items())]
    given += [f"plant_{x}, {n}" for x, n in plant.items()]
    return " && ".join(f"all_numbers({x})" for x in given)


def _start_law(E: Expressions) -> str:
    """``start_errors(q, v, t) -> off, slip, norm``: the largest closure error, and the largest rate
    of one beside the speed, over all rows, also those that the plant leaves out as redundant; by
    how much the square of the norm of a quaternion or a cosine-sine pair is off one."""
    off = measures(E)
    norm = largest(sum(E.q[i] * E.q[i] for i in part) - 1.0 for part in E.tree.unit_parts)
    found = casadi_module().Function(
        "start_errors", [E.q, E.v, E.t], [off.closure, off.velocity, norm], ["q", "v", "t"],
        ["off", "slip", "norm"],
    )  # fmt: skip
    return batched_tanh_exp(c_function(found))


def _sensing(sensors: MeasurementModel) -> dict[str, object]:
    if sensors.of_cut.size or sensors.whole:
        raise InputError(
            f"{sensors.mech.name}: rollouts read sensors of single joints of the tree; got "
            f"{', '.join(sensors.names)}"
        )
    turning = set(sensors.turning.tolist())
    readings = [
        f"  x[{number}] = atan2(q[{at + 1}], q[{at}]);" if i in turning
        else f"  x[{number}] = q[{at}];"
        for i, (at, number) in enumerate(zip(sensors.places.tolist(), sensors.of_places.tolist(),
                                             strict=True))
    ]  # fmt: skip
    return {
        "m": sensors.columns.size, "readings": "\n".join(readings),
        "columns": ", ".join(map(str, sensors.columns.tolist())),
    }  # fmt: skip
