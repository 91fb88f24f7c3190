"""The kernel of one law for many robots, around the C function that `compile` makes anyway.

Inputs are loaded, and the results stored, robot by robot; a result that is not valid becomes NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holoctl.codegen.batched_functions import batched_tanh_exp
from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import filled, normalised
from holoctl.codegen.closed_state_c import laws_of, state_values
from holoctl.codegen.compiled.extension_source import Law
from holoctl.codegen.devices.batch_status import BatchStatus
from holoctl.codegen.devices.kernels import Kernel, Program, program
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.closed_state import ClosedStateLaw
from holoctl.codegen.laws.measurement_model import unit_readings

__all__ = ["batch_program", "kernel_name", "results_of", "state_source"]

CODES: dict[str, object] = {x.name: int(x) for x in BatchStatus}

STORE_RESULT = """\
/* Store a result, row by row; NaN if it is not valid. */
static inline __noinline__ void store_result(
    double *y, int rows, int n, int code, table x, long long k) {
  for (int i = 0; i < rows * n && code; i++) y[i] = (double)NAN;
  for (int h = 0; h < rows; h++) store(y + h * n, n, x, k, h);
}
"""

ALONE = """\
#if defined(__GNUC__) && !defined(__CUDACC__) /* apart from its kernel, the law is faster */
static void {law}({parameters}) __attribute__((noinline));
#endif
"""


def kernel_name(law: Law) -> str:
    """The name of the kernel of a law."""
    return f"{law.name}_batch"


def results_of(law: Law) -> tuple[tuple[str, int], ...]:
    """Name and size of the outputs that are results: of a tick the first, else all but the
    guard."""
    return law.outputs[: law.tables] if law.tables else law.outputs[:-1]


def batch_program(
    source: str, law: Law, rows: Mapping[str, int], zeros: Sequence[str] = (), coded: bool = False
) -> Program:
    """The program of one kernel.

    It takes the inputs, t, the results, and the statuses.

    Parameters
    ----------
    source : str
        The C function of the law.
    law : Law
    rows : mapping of str to int
        Of the outputs that are matrices.
    zeros : sequence of str
        Outputs that are always zero, and that the C function does not have.
    coded : bool
        Whether a guard that refuses is the status itself.
    """
    inputs, results = law.inputs, results_of(law)
    found = [x for x, _ in law.outputs[:-1] if x not in zeros]
    shapes = [(x, rows.get(x, 1), n // rows.get(x, 1)) for x, n in results if n]
    body = filled("batch_kernel.c", {
        "arrays": ", ".join(
            f"{x}[{max(n, 1)}]" + " = {0.0}" * (x in zeros)
            for x, n in (*inputs, *law.outputs[:-1])
        ),
        "loads": "\n".join(f"  load({x}_of, k, 0, {n}, {x});" for x, n in inputs), "law": law.name,
        "given": ", ".join(x for x, _ in inputs), "found": ", ".join(found),
        "finite_inputs": " && ".join(f"all_numbers({x}, {n})" for x, n in inputs),
        "finite_outputs": " && ".join(f"all_numbers({x}, {n})" for x, n in results),
        "refused": "(int)guard" if coded else CODES["IN_DOUBT"],
        "stores": "\n".join(
            f"  store_result({x}, {rows}, {n}, code, {x}_of, k);" for x, rows, n in shapes
        ),
    } | CODES)  # fmt: skip
    parameters = (
        *(("table", f"{x}_of") for x, _ in inputs), ("double", "t"),
        *(("table", f"{x}_of") for x, _ in results), ("marks", "status"),
    )  # fmt: skip
    parts = ["const double *"] * (len(inputs) + 1) + ["double *"] * (len(found) + 1)
    alone = ALONE.format(law=law.name, parameters=", ".join(parts))
    return program(alone + source + STORE_RESULT, [Kernel(kernel_name(law), parameters, body)])


def state_source(E: Expressions, law: ClosedStateLaw) -> tuple[str, Law]:
    """The C function of the closed state from measured joints, started anew for each call."""
    sensors = law.sensing.sensors
    values = state_values(E, law, "law") | CODES | {
        "kernel": batched_tanh_exp("\n".join(c_function(f) for f in laws_of(law))),
        "nv": E.mech.nv,
        "normalise_unit": normalised("unit", E.tree.unit_parts),
        "unit_measured": normalised("x", unit_readings(E, sensors)),
    }  # fmt: skip
    inputs = (
        ("q_measured", sensors.numbers), ("v_measured", sensors.columns.size),
        ("start", E.mech.nq),
    )  # fmt: skip
    outputs = ("q", E.mech.nq), ("v", E.mech.nv), ("guard", 1)
    return filled("batch_state.c", values), Law("state", inputs, outputs, tables=2)
