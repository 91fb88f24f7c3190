"""C that follows the closed state from what is measured, around the functions of its law.

The driver is one text, `templates/closed_state.c.in`, in exported libraries and behind
`hc.compile` alike. It needs `largest` and, for quaternions, `normalise_all` in front of it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from holoctl.base.tolerances import (
    BACK_LONGEST,
    BACK_SHORTEST,
    BACK_TRIALS,
    BEND,
    BORDERS_WORN,
    CLOSED,
    CONTRACTION,
    DEAD_POINT_TICKS,
    DETERMINANT_CHANGE,
    FACTORED_TICK,
    FAR_TICK,
    FIRST_CORRECTION,
    FIRST_GAP,
    FIRST_SLOWED,
    FIRST_TICK,
    FIRST_TURN,
    FIRST_WAIT,
    FIRST_WAY,
    GAIN_LIMIT,
    JUMPS_BY,
    JUMPS_FROM,
    LEFT_OPEN,
    NEAR_TICK,
    PREDICTED_STEP,
    SENSORS_AGREE,
    SETTLED_TICK,
    SHORTEST_SUBSTEP,
    SIZE_FADES,
    TIGHT,
    TURNED_BACK,
    WAY_BACK,
)
from holoctl.codegen.c_text import array, filled, number
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.closed_state import ClosedState

__all__ = ["driver", "laws_of", "memory", "memory_type"]

NEARLY_SETTLED = 2e-7  # scaled
"""After a correction of this size compiled code takes the rows for closed, and looks."""


@dataclass(frozen=True)
class _Sizes:
    """Of arrays; what there is not has one entry."""

    P: str
    nq: int
    gammas: int
    sensors: int
    drifts: int
    A: int
    N: int


@dataclass(frozen=True)
class _Driver:
    """``closed_state.c``: sizes and tolerances of the C, by their names there.

    Attributes
    ----------
    arrays : str
        Scales of coordinates and sensors, and where the borders start.
    mend : str
        A statement that makes q of what was moved.
    taken_back : str
        A statement that takes a step of the sensors back.
    deciding : str
        The functions for borders.
    """

    P: str
    sensors: int
    numbers: int
    drifts: int
    held: int
    S: int
    kept: int
    seen: int
    idle: int
    phi: int
    left_out: int
    known: int
    weighed: int
    timed: int
    borders: int
    memory: int
    evaluations: int
    arrays: str
    mend: str
    taken_back: str
    deciding: str
    predicted: str = number(PREDICTED_STEP)
    first: str = number(FIRST_CORRECTION)
    contraction: str = number(CONTRACTION)
    change: str = number(DETERMINANT_CHANGE)
    shortest: str = number(SHORTEST_SUBSTEP)
    bend: str = number(BEND)
    settled: str = number(SETTLED_TICK)
    tight: str = number(TIGHT)
    nearly: str = number(NEARLY_SETTLED)
    gain: str = number(GAIN_LIMIT)
    near: str = number(NEAR_TICK)
    far: str = number(FAR_TICK)
    jumps_by: str = number(JUMPS_BY)
    jumps_from: str = number(JUMPS_FROM)
    fades: str = number(SIZE_FADES)
    dead_point: str = number(DEAD_POINT_TICKS)
    agree: str = number(SENSORS_AGREE)
    way_back: str = number(WAY_BACK)
    first_tick: str = number(FIRST_TICK)
    first_wait: str = number(FIRST_WAIT)
    first_slowed: str = number(FIRST_SLOWED)
    first_gap: str = number(FIRST_GAP)
    turned_back: str = number(TURNED_BACK)
    first_way: str = number(FIRST_WAY)
    first_turn: str = number(FIRST_TURN)
    back_longest: str = number(BACK_LONGEST)
    back_shortest: str = number(BACK_SHORTEST)
    back_trials: int = BACK_TRIALS
    worn: str = number(BORDERS_WORN)
    left_open: str = ""
    closed: str = ""


@dataclass(frozen=True)
class _Borders:
    """``closed_state_borders.c``."""

    P: str
    A: int
    N: int
    S: int
    Z: int
    idle_or_one: int


@dataclass(frozen=True)
class _Alone:
    """``closed_state_no_borders.c``."""

    P: str


def laws_of(law: ClosedState) -> list[object]:
    """The functions that the driver calls."""
    found = [law.difference, law.moving, law.closing, law.seeing, law.square]
    return [*found, *([] if law.reverse is None else [law.reverse])]


def memory(E: Expressions, law: ClosedState, P: str) -> str:
    """The type of what a loop remembers, ``<P>_memory``."""
    return filled("closed_state_memory.h", own=_sizes(E, law, P))


def memory_type(E: Expressions, law: ClosedState) -> np.dtype[Any]:
    """The same as numpy has it."""
    x = _sizes(E, law, "")
    doubles = [
        ("q", x.nq), ("t", 1), ("gamma", x.gammas), ("drift", x.drifts), ("before", x.gammas),
        ("step", x.sensors), ("A", x.A), ("N", x.N), ("decided", 1), ("det", 1), ("now", 1),
        ("past", 2), ("way", x.sensors), ("size", 1), ("open", 1),
    ]  # fmt: skip
    alone = ("t", "decided", "det", "now", "size", "open")
    reals = [(name, "f8") if name in alone else (name, "f8", (n,)) for name, n in doubles]
    whole = [(name, "i4") for name in ("known", "read", "refused", "latched")]
    return np.dtype([*reals, *whole], align=True)


def driver(E: Expressions, law: ClosedState, P: str) -> str:
    """The C behind the functions of the law and the type of the memory."""
    sizes = _sizes(E, law, P)
    deciding = filled("closed_state_no_borders.c", own=_Alone(P))
    if law.bordered:
        one = max(law.idle, 1)
        own = _Borders(P, sizes.A, sizes.N, law.square.numel_out(1), E.mech.nv * one, one)
        deciding = filled("closed_state_borders.c", own=own)
    mend = "for (int i = 0; i < NQ; i++) q[i] = moved[i];"
    if E.tree.unit_parts:
        mend = "normalise_all(moved, q);"
    taken_back = "for (int i = 0; i < NUMBERS; i++) numbers[i] = x[i] - step[i];"
    if law.reverse is not None:
        taken_back = "reverse(x, step, numbers);"
    doubles = sum(getattr(sizes, x.name) for x in fields(sizes) if x.name != "P")
    return filled(
        "closed_state.c",
        own=_Driver(
            P, sizes.sensors, law.sensing.sensors.numbers, sizes.drifts, law.held.size,
            law.square.numel_out(1), E.partition.rank, law.seen, law.idle,
            law.closing.numel_out(1), law.seeing.numel_out(3),
            int(law.known), int(law.weighed), int(law.timed), int(law.bordered),
            doubles + sizes.gammas + sizes.sensors + 13, FACTORED_TICK, _arrays(E, law), mend,
            taken_back, deciding,
            left_open=number(max(LEFT_OPEN, E.partition.tolerance)),
            closed=number(max(CLOSED, E.mech.tolerance)),
        ),
    )  # fmt: skip


def _sizes(E: Expressions, law: ClosedState, P: str) -> _Sizes:
    m = law.sensing.sensors.columns.size
    return _Sizes(
        P, E.mech.nq, E.mech.nv * m, m, law.seeing.numel_out(1),
        max(law.first.A.size, 1), max(law.held.size, 1),
    )  # fmt: skip


def _arrays(E: Expressions, law: ClosedState) -> str:
    sensors = law.sensing.sensors
    found = "/* What makes steps of coordinates and of sensors pure numbers. */\n"
    found += array("per_scale", 1.0 / E.mech.column_scale, "[NV]")
    found += array("unit", sensors.unit, "[M]") + array("per_unit", 1.0 / sensors.unit, "[M]")
    if not law.bordered:
        return found
    A, N = law.first.A.ravel(), law.first.N.ravel()[law.held]
    found += "\n/* Borders to start with, weights of sensors, and which entries N has. */\n"
    found += array("first_A", A if A.size else [0.0], f"[{max(A.size, 1)}]")
    found += array("first_N", N if N.size else [0.0], f"[{max(N.size, 1)}]")
    found += array("weight", law.sensing.weights, "[M]")
    held = ", ".join(map(str, law.held)) if law.held.size else "0"
    return found + f"static const int held[{max(law.held.size, 1)}] = {{{held}}};\n"
