"""The C library of a state feedback: about a point, or along a motion with gains that change.

    u = u0 - K (x - x0)        x = (y, yd)        y - y0 = S difference(q0, q)

The tables are those of the law, interpolated as it does (design/feedback/state_feedback.py); the
numbers of the self-test are its efforts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector
from holoctl.base.tolerances import SELF_TEST_STATES, TICK_ROUNDED
from holoctl.codegen.batched_functions import batched_source
from holoctl.codegen.c_text import arrays, comment, normalised, number
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.exported.tables import motor_table, q_table, v_table
from holoctl.codegen.exported.transmission import hashed_files
from holoctl.codegen.laws.measurement_model import step_between
from holoctl.codegen.tree import symbolic_tree
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["GainSchedule", "feedback_files"]

SAME_EFFORT = 1e-11
"""Largest difference in the self-test, relative to the largest effort in it."""

AWAY = 0.1
"""Deviations in the self-test, scaled."""


@runtime_checkable
class GainSchedule(Protocol):
    """What a state feedback has; see `StateFeedback`."""

    mech: Mechanism
    partition: Partition
    K: Array
    q: Array
    v: Array
    u: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    times: Vector | None

    def torque(self, q: Any, v: Any, t: float = 0.0) -> Vector:
        """The efforts at a state."""


def feedback_files(law: GainSchedule, prefix: str) -> dict[str, str]:
    """Name to text of every file."""
    mech, free = law.mech, law.partition.independent
    ca, timed = casadi_module(), law.times is not None
    tree = symbolic_tree(mech.model, ca.SX.sym("q", mech.nq))
    q0 = ca.SX.sym("q0", mech.nq)
    step, far = step_between(mech, q0, tree.q)
    deviation = ca.Function(
        "deviation", [q0, tree.q], [ca.densify(step[free]), far], ["q0", "q"], ["x", "far"]
    )
    q, rates, u, K = (np.reshape(x, (-1, *np.shape(x)[timed:])) for x in (
        law.q, law.v[..., free], law.u, law.K
    ))  # fmt: skip
    tables = {
        "independent": free.astype(int), "gains": K.reshape(len(K), -1), "reference": q,
        "rates": rates, "efforts": u,
    }  # fmt: skip
    if timed:
        model = mech.model
        tables["ahead"] = np.array(
            [*(pin.difference(model, a, b)[free] for a, b in pairwise(q)), np.zeros(free.size)]
        )
        tables |= {
            x: np.concatenate([y, y[-1:]]) for x, y in tables.items() if x in ("gains", "rates")
        }
    values: dict[str, object] = {
        "title": comment(mech.name), "what": "a state feedback", "timed": timed,
        "nq": mech.nq, "nv": mech.nv, "nu": mech.nu, "motions": free.size, "states": 2 * free.size,
        "q_table": q_table(mech), "v_table": v_table(mech), "motor_table": motor_table(mech),
        "states_table": comment(", ".join(law.states)),
        "table_bytes": 8 * sum(x.size for x in tables.values()), "tables": arrays(**tables),
        "laws": batched_source([deviation], "HOLOCTL_DIVIDES static"),
        "unit_parts": tree.unit_parts, "normalise_unit": normalised("unit", tree.unit_parts),
        "left_out": False, "left_out_items": "", **_times(law), **_known(law),
    }  # fmt: skip
    return hashed_files("state_feedback", prefix, values)


def _times(law: GainSchedule) -> dict[str, object]:
    if law.times is None:
        return {}
    return {
        "nodes": law.times.size, "last": law.times.size - 1, "TICK_ROUNDED": number(TICK_ROUNDED),
        "duration": number(law.times[-1]), "step": number(law.times[1] - law.times[0]),
    }  # fmt: skip


def _known(law: GainSchedule) -> dict[str, object]:
    """States around the reference, before, along and after the motion, with the efforts."""
    mech, rng = law.mech, np.random.default_rng(64)
    of: dict[str, list[Any]] = {"known_q": [], "known_v": [], "known_t": [], "known_u": []}
    for _ in range(SELF_TEST_STATES):
        t, q, v = 0.0, law.q, law.v
        if law.times is not None:
            t = float(rng.uniform(-0.1, 1.1) * law.times[-1])
            i = min(int(law.times.searchsorted(t)), law.times.size - 1)
            q, v = law.q[i], law.v[i]
        q = pin.integrate(mech.model, q, AWAY * rng.normal(size=mech.nv) * mech.column_scale)
        v = v + rng.normal(size=mech.nv) * mech.column_scale
        for x, found in zip((q, v, t, law.torque(q, v, t)), of.values(), strict=True):
            found.append(x)
    known = {x: np.array(y) for x, y in of.items() if x != "known_t" or law.times is not None}
    size = max(1.0, float(np.abs(known["known_u"]).max()))
    return {
        "known": arrays(**known), "tolerance": number(SAME_EFFORT * size),
        "ticks": SELF_TEST_STATES,
    }  # fmt: skip
