"""The C source of extension modules: of a law, of the torque of a law of tasks, of the estimator of
the closed state. The head of each template lists the functions of its module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holoctl.codegen.batched_functions import batched_tanh_exp
from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import filled, normalised
from holoctl.codegen.closed_state_c import laws_of, state_values
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.closed_state import ClosedStateLaw
from holoctl.codegen.laws.measurement_model import unit_readings

__all__ = ["Law", "estimator_source", "extension_source", "task_source"]


@dataclass(frozen=True)
class Law:
    """What the wrapper needs to know of one C function.

    Attributes
    ----------
    name : str
    inputs : tuple of (str, int)
        Name and size of each input but t and `load`.
    outputs : tuple of (str, int)
        The same of the outputs; the first is what the tick returns, the last is ``guard``.
    tick : bool
        Whether it is called in control loops, or its raw form is enough.
    placed : bool
        Whether the C function `placed` is defined before it.
    tables : int
        The number of outputs, the first ones, that ``batch`` computes for many states; 0: there is
        no ``batch``.
    load : int
        The number of payload and gravity, an input after t; 0: there is none.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[tuple[str, int], ...]
    tick: bool = True
    placed: bool = False
    tables: int = 1
    load: int = 0


def extension_source(kernel: str, law: Law, module: str) -> str:
    """The source of a module of this name around `kernel`, the C function of a law."""
    names, n, tables = [name for name, _ in law.inputs], len(law.inputs), law.tables
    outputs = [name for name, _ in law.outputs[:-1]]
    places = [f"p[{i}] + k * {size}" for i, (_, size) in enumerate(law.inputs)]
    methods = ["raw"] + ["bind", "pointer"] * law.tick
    methods += ["batch"] * (tables > 0) + ["step"] * law.placed
    sizes = dict(law.inputs)
    return filled("extension.c", _module(law.name, methods, module) | _raw(kernel, law) | {
        "tick": law.tick, "placed": law.placed, "tables": tables,
        "nq": sizes.get("q"), "nv": sizes.get("v"), "size": law.outputs[0][1],
        "results": "".join(f", {name}[{max(size, 1)}]" for name, size in law.outputs[:-1]),
        "take": "\n".join(
            f"  const double *{x} = vector(args[{i}], {size});"
            for i, (x, size) in enumerate(law.inputs)
        ),
        "refused": "".join(f"!{x} || " for x in names), "first": outputs[0],
        "call": _call(law, names, [*outputs, "&guard"]), "squares": _squares(law, names, 1),
        "batch_sizes": _sizes((*law.inputs, *law.outputs[:tables])),
        "batch_call": _call(law, places, [*outputs, "&guard"]),
        "batch_squares": _squares(law, places, tables),
        "copies": "\n".join(
            f"    memcpy(p[{n + i}] + k * {size}, {name}, {size} * sizeof(double));"
            for i, (name, size) in enumerate(law.outputs[:tables])
        ),
    })  # fmt: skip


def task_source(
    kernel: str, law: Law, along: Sequence[int], turns: bool, limited: bool, module: str
) -> str:
    """The source of a module around the torque of a law of tasks.

    Parameters
    ----------
    kernel : str
        The C function ``torque``.
    law : Law
        Of the inputs q, v, value, rate and acceleration.
    along : sequence of int
        Which coordinates of a pose's translation stand in the value, if any.
    turns : bool
        Whether its rotation follows.
    limited : bool
        Whether the kernel keeps limits.
    module : str
    """
    sizes = dict(law.inputs)
    values = _module(law.name, ["raw", "bind"], module) | _raw(kernel, law)
    return filled("extension_task.c", values | {
        "nq": sizes["q"], "nv": sizes["v"], "nu": law.outputs[0][1], "value": sizes["value"],
        "rows": sizes["rate"], "along": ", ".join(map(str, along)) or "0",
        "positions": len(along), "turns": int(turns), "limited": limited,
    })  # fmt: skip


def estimator_source(E: Expressions, law: ClosedStateLaw, load: int, module: str) -> str:
    """The source of a module that estimates the closed state from measured joints; `load` is that
    of the torque that may follow."""
    methods = ("size", "begin", "resume", "bind", "bind_torque")
    values = state_values(E, law, "law") | _module("law", methods, module) | {
        "kernel": batched_tanh_exp("\n".join(c_function(f) for f in laws_of(law))),
        "nv": E.mech.nv, "nu": max(E.mech.nu, 1), "load": load,
        "normalise_unit": normalised("unit", E.tree.unit_parts),
        "unit_measured": normalised("x", unit_readings(E, law.sensing.sensors)),
    }  # fmt: skip
    return filled("extension_estimator.c", values)


def _module(name: str, methods: Sequence[str], module: str) -> dict[str, object]:
    """Of the end of a source: its methods, of C functions ``<name>_<method>``, and the module."""
    table = (
        f'  {{"{x}", (PyCFunction)(void (*)(void)){name}_{x}, METH_FASTCALL, ""}},' for x in methods
    )
    return {"methods": "\n".join(table), "module": module}


def _raw(kernel: str, law: Law) -> dict[str, object]:
    """Of the C function ``raw`` of a law."""
    n, m = len(law.inputs), len(law.inputs) + len(law.outputs)
    places = [f"p[{i}]" for i in range(m)]
    return {
        "kernel": kernel, "name": law.name, "n": n, "m": m, "load": law.load,
        "sizes": _sizes((*law.inputs, *law.outputs)),
        "raw_call": _call(law, places[:n], places[n:]),
    }  # fmt: skip


def _sizes(named: Sequence[tuple[str, int]]) -> str:
    return ", ".join(str(size) for _, size in named)


def _call(law: Law, given: Sequence[str], outputs: Sequence[str]) -> str:
    return f"{law.name}({', '.join([*given, '&t', *(['load'] if law.load else []), *outputs])})"


def _squares(law: Law, given: Sequence[str], results: int) -> str:
    """Finite if all inputs and the first results are."""
    parts = [(x, size) for x, (_, size) in zip(given, law.inputs, strict=True)]
    return " + ".join(f"squares({x}, {n})" for x, n in [*parts, *law.outputs[:results]])
