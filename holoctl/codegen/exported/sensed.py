"""The texts of a library that follows the closed state from what is measured."""

from __future__ import annotations

from dataclasses import dataclass

from holoctl.base.tolerances import FACTORED_TICK, SENSORS_AGREE
from holoctl.codegen.c_text import array, filled
from holoctl.codegen.closed_state_c import driver, memory
from holoctl.codegen.exported.contexts import Shared
from holoctl.codegen.exported.laws import Laws
from holoctl.codegen.exported.tables import measured_table
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.laws.readings import unit_readings
from holoctl.codegen.unit_parts import normalised

__all__ = ["Sensed", "sensed_texts"]


@dataclass(frozen=True)
class Sensed:
    """What header and source say of it; all empty where it is left out.

    Attributes
    ----------
    measured_sizes, measured_table, memory_type, memory_field, sensed_declaration : str
        In the header.
    closed_state, begin, sensed : str
        In the source: the driver, its start in init, and the public functions.
    from_motors : str
        In the README.
    """

    measured_sizes: str = ""
    measured_table: str = ""
    memory_type: str = ""
    memory_field: str = ""
    sensed_declaration: str = ""
    closed_state: str = ""
    begin: str = ""
    sensed: str = ""
    from_motors: str = ""


@dataclass(frozen=True)
class _Declaration:
    """``sensed.h``."""

    numbers: int
    rates: int
    evaluations: int
    redundant: str
    t_after: str
    torque_declaration: str


@dataclass(frozen=True)
class _Source:
    """``sensed.c``.

    Attributes
    ----------
    unit_measured, unit_given : str
        Statements that normalise, where there is something to normalise.
    instant, t_after : str
        The time, or 0; its parameter behind others.
    torque : str
        The function for the torque of a controller.
    """

    numbers: int
    unit_measured: str
    unit_given: str
    instant: str
    t_after: str
    torque: str


def sensed_texts(E: Expressions, laws: Laws, shared: Shared) -> Sensed:
    """The texts, for the laws of the closed state."""
    law, P, U = laws.closed_state, shared.P, shared.U
    if law is None:
        return Sensed()
    sensors, controlled = law.sensing.sensors, laws.controlled
    t_after, instant = (", double t", "t") if laws.timed else ("", "0.0")
    declaration = _Declaration(
        sensors.numbers,
        sensors.columns.size,
        FACTORED_TICK,
        _REDUNDANT.format(U=U, agree=SENSORS_AGREE) if law.weighed else "",
        t_after,
        filled("torque_from_motors.h", shared) if controlled else "",
    )
    parts = normalised("x", unit_readings(E, sensors))
    measured = f"  if (status == {U}_OK && !({parts})) status = {U}_NOT_NORMALISED;\n"
    given = (
        f"  double unit_q[NQ];\n  if (!normalise_all(q, unit_q)) return {U}_NOT_NORMALISED;\n"
        "  q = unit_q;\n"
    )
    source = _Source(
        sensors.numbers,
        measured if parts else "",
        given if E.tree.unit_parts else "",
        instant,
        t_after,
        filled("torque_from_motors.c", shared) if controlled else "",
    )
    how = _TORQUE if controlled else _STATE
    start = array("start", law.sensing.start, "[NQ]")
    return Sensed(
        f"enum {{ {U}_NUMBERS = {sensors.numbers}, {U}_RATES = {sensors.columns.size} }};\n",
        f" * What is measured, in the order of q_m, and of v_m:\n{measured_table(sensors)}\n *\n",
        memory(E, law, P),
        f"\n  {P}_memory memory; /* of state, torque_from_motors and reset */\n",
        filled("sensed.h", shared, declaration),
        driver(E, law, P) + start,
        "  c->sound = c->sound && begin(&c->memory, start, 0.0) == FOUND;\n",
        filled("sensed.c", shared, source),
        how.format(P=P, t=shared.t_given, given=shared.references_given),
    )


_TORQUE = """
Where the whole state is measured, this takes it, and remembers nothing:

    {P}_torque(&c, q, v, {given}, {t}u);
"""

_STATE = """
Where only what the header lists as measured is known, the others are found:

    {P}_state(&c, q_m, v_m, {t}q, v);
"""

_REDUNDANT = (
    "\n * Of sensors that are more than motions, the state that fits best counts; where they miss"
    "\n * it by more than {agree:g} (scaled) the status is {U}_CONTRADICTORY."
)
