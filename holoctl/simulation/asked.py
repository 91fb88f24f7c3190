"""What a caller asked of a simulation, checked: instants, tolerances, compiled dynamics."""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import Vector, numbers, positive
from holoctl.base.errors import InputError
from holoctl.base.tolerances import MOST_TICKS
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["check_dynamics", "checked_output", "ticks_of", "tolerance"]

FINEST, COARSEST = 1e-14, 1e-2
"""Tolerances of a simulation are between these."""

LAST_TICK, ROUNDED_INSTANT = 1e-9, 1e-12  # a share of a tick; of the duration
"""A last tick that is shorter is no tick; an instant to record that is no farther from the end is
the end."""


def tolerance(name: str, value: Any) -> float:
    """`rtol` or `atol`, within what makes sense."""
    given = positive(name, value)
    if not FINEST <= given <= COARSEST:
        raise InputError(f"{name} must be from {FINEST:g} to {COARSEST:g}; got {given:g}")
    return given


def ticks_of(duration: float, rate: float) -> Vector:
    """The ticks, and the end."""
    count = max(1, int(np.ceil(duration * rate - LAST_TICK)))
    return np.append(np.arange(count) / rate, duration)


def checked_output(output: Any, duration: float) -> Vector:
    """The instants to record, s: ascending, from 0 to the duration."""
    instants = numbers("output", output, "instants, s")
    if instants.ndim != 1 or instants.size == 0:
        raise InputError(f"output must be instants in a row, s; got shape {instants.shape}")
    if not np.isfinite(instants).all():
        bad = int(np.flatnonzero(~np.isfinite(instants))[0])
        raise InputError(f"output must be finite, s; entry {bad} is {instants[bad]}")
    if instants.size > MOST_TICKS:
        raise InputError(f"output has {instants.size} instants; a run has at most {MOST_TICKS:.0e}")
    instants = instants.astype(float)
    if abs(instants[-1] - duration) <= ROUNDED_INSTANT * duration:  # 3 * 0.1 is more than 0.3
        instants[-1] = duration
    if not (np.diff(instants) > 0.0).all():
        bad = 1 + int(np.flatnonzero(~(np.diff(instants) > 0.0))[0])
        raise InputError(
            f"output must ascend, each instant after the one before; entry {bad}, "
            f"{instants[bad]:g} s, does not"
        )
    if not (instants[0] >= 0.0 and instants[-1] <= duration):
        raise InputError(
            f"output must be within 0 and the duration, {duration:g} s; got {instants[0]:g} to "
            f"{instants[-1]:g}"
        )
    return instants


def check_dynamics(dynamics: Any, plant: Mechanism) -> None:
    """Raise `InputError` unless it is compiled forward dynamics of this very plant."""
    if not isinstance(dynamics, Compiled):
        raise InputError(
            f"dynamics must be compiled forward dynamics; got {type(dynamics).__name__}; "
            'hc.compile(plant, ["forward_dynamics"]) makes them'
        )
    if "forward_dynamics" not in dynamics.functions:
        raise InputError(
            f"dynamics has {', '.join(dynamics.functions)}; "
            'hc.compile(plant, ["forward_dynamics"]) makes what is needed'
        )
    if dynamics.mech is not plant:
        raise InputError(
            f"dynamics was compiled for {dynamics.mech.name!r}, which is not the very plant, "
            f"{plant.name!r}"
        )
