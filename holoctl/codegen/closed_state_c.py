"""C that estimates the closed state from measured joints, around the functions of its law.

The driver is one template, `templates/closed_state.c.in`, for exported libraries and for
`hc.compile`. `largest` and, for quaternions, `normalise_all` must be defined before it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from holoctl.codegen.c_text import arrays, filled, number
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.closed_state import ClosedStateLaw

__all__ = ["laws_of", "memory_type", "state_values"]


def laws_of(law: ClosedStateLaw) -> list[object]:
    """The functions that the driver calls."""
    found = [law.difference, law.moving, law.closing, law.seeing, law.square]
    return [*found, *([] if law.reverse is None else [law.reverse])]


def state_values(E: Expressions, law: ClosedStateLaw, P: str) -> dict[str, object]:
    """What the templates of the closed state are filled with; `P` begins the name of the memory,
    the type of what a loop remembers."""
    sensors, sizes, one = law.sensing.sensors, _sizes(E, law), max(law.idle, 1)
    return {
        "P": P, **sizes, "numbers": sensors.numbers, "seen": law.seen, "idle": law.idle,
        "phi": law.closing.numel_out(1), "left_out_rows": law.seeing.numel_out(3),
        "kept_rows": E.partition.rank, "known": int(law.known), "weighed": int(law.weighed),
        "with_time": int(law.timed), "borders": int(law.bordered), "held": law.held.size,
        "keeps_control": False,
        "S": law.square.numel_out(1), "Z": E.mech.nv * one, "idle_or_one": one,
        "memory": -(-memory_type(E, law).itemsize // 8),
        "unit_parts": E.tree.unit_parts, "reverse": law.reverse is not None,
        "scales": arrays(
            per_scale=1.0 / E.mech.column_scale, sensor_unit=sensors.unit,
            per_unit=1.0 / sensors.unit,
        ),
        "border_arrays": arrays(
            first_A=law.first.A.ravel(), first_N=law.first.N.ravel()[law.held],
            weight=law.sensing.weights, held=law.held,
        ),
        "left_open": number(max(E.precision.left_open, E.partition.tolerance)),
        "start_open": number(max(E.precision.closed, E.mech.tolerance)),
        "nearly_settled": number(E.precision.nearly_settled),
    }  # fmt: skip


def memory_type(E: Expressions, law: ClosedStateLaw) -> np.dtype[Any]:
    """What a loop remembers, as numpy has it: read off the struct of C."""
    text = filled("closed_state_memory.h", {"P": "", **_sizes(E, law)})
    kinds = {"double": "f8", "int": "i4"}
    return np.dtype([
        (name, kinds[kind], (int(size),) if size else ())
        for kind, names in re.findall(r"^  (double|int) ([^;]*);", text, re.MULTILINE)
        for name, size in re.findall(r"(\w+)(?:\[(\d+)\])?", names)
    ], align=True)  # fmt: skip


def _sizes(E: Expressions, law: ClosedStateLaw) -> dict[str, int]:
    """Of arrays; what there is not has one entry."""
    m = law.sensing.sensors.columns.size
    return {
        "nq": E.mech.nq, "gammas": E.mech.nv * m, "sensors": m, "drifts": law.seeing.numel_out(1),
        "A": max(law.first.A.size, 1), "N": max(law.held.size, 1),
    }  # fmt: skip
