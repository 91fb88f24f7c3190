"""The self-test of an exported library: a program that knows states and their torques."""

from __future__ import annotations

from numpy.typing import ArrayLike

from holoctl.codegen.c_text import arrays
from holoctl.codegen.exported.laws import Laws
from holoctl.codegen.exported.self_test_states import States
from holoctl.codegen.exported.self_test_ticks import Ticks
from holoctl.codegen.expressions import Expressions
from holoctl.control.effort_bounds import least_efforts

__all__ = ["test_values"]


def test_values(
    E: Expressions, laws: Laws, states: States, ticks: Ticks | None
) -> dict[str, object]:
    """What the template of the program is filled with."""
    of_task = laws.tasked
    sizes = ["NU"] * 3 if of_task is None else [str(of_task.numel_in(i)) for i in (2, 3, 4)]
    known: dict[str, ArrayLike | None] = {
        "state_q": states.q, "state_v": states.v, "state_t": states.t, "target": states.target,
        "expected_inverse": states.inverse, "tolerance": states.tolerance,
    }  # fmt: skip
    rest = [0.0] * E.mech.nu
    bound = None if laws.limits is None else laws.limits.bound
    bound = bound if laws.standing is None else laws.standing.paths.law.bound
    if bound is not None:
        known |= {"effort_least": bound.effort[0], "effort_most": bound.effort[1]}
        rest = least_efforts(bound).tolist()
    if laws.controlled:
        names = [f"given_{x}" for x in laws.references]
        known |= dict(zip(names, states.reference, strict=True))
        known |= {"expected_torque": states.torque}
    known |= {"open_q": states.open, "sliding_v": states.sliding}
    sensed: dict[str, ArrayLike | None] = {} if ticks is None else {
        "measured_q": ticks.measured_q, "measured_v": ticks.measured_v, "closed_q": ticks.q,
        "closed_v": ticks.v, "start_q": ticks.start, "measured_t": ticks.t if laws.timed else None,
    }  # fmt: skip
    return {
        "test_arrays": arrays(**known, resting=rest), "sensed_arrays": arrays(**sensed),
        **{f"ref{i}": x for i, x in enumerate(laws.references)},
        **{f"n{i}": x for i, x in enumerate(sizes)},
        "tick": "torque" if laws.controlled else "inverse_dynamics",
        "first_unit": E.tree.unit_parts[0][0] if E.tree.unit_parts else 0,
        "open_q": states.open is not None, "sliding_v": states.sliding is not None,
        "overflow_seen": states.overflow, "limited_seen": states.limited,
        "ticks": 0 if ticks is None else len(ticks.t),
    }  # fmt: skip
