"""C that keeps limits: their numbers, and the driver around the stages of a law.

The templates `templates/limits.c.in`, `nearest.c.in` and `limited.c.in` are the same in exported
libraries and for `hc.compile`. NU and HOLOCTL_DIVIDES must be defined before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.tolerances import OTHER_MOTION, TICKS_AHEAD
from holoctl.codegen.c_source import c_function, c_stages
from holoctl.codegen.c_text import arrays, filled, number
from holoctl.codegen.laws.limited import LimitedLaw, bounding_functions
from holoctl.codegen.precision import DOUBLE, Precision
from holoctl.control.limit_policies import LimitsLaw, effort_sizes
from holoctl.mechanism.bound_limits import BoundLimits

__all__ = [
    "LimitedC",
    "limited_c",
    "limits_c",
    "motor_limits_c",
    "nearest_c",
]


@dataclass(frozen=True)
class LimitedC:
    """The C of a law with limits: its stages, straight-line code that shares `shared` numbers, and
    the `driver` around them, ``<name>_limited``."""

    stages: str
    shared: int
    driver: str


def nearest_c(nu: int, n: int) -> str:
    """The C that finds the nearest point, of `nu` numbers, within their bounds and those of n
    rows, which may give way."""
    return filled("nearest.c", _nearest(nu, n))


def _nearest(nu: int, n: int) -> dict[str, object]:
    room = max(nu + n, 2)
    return {
        "limited": n, "bounds": nu + n, "unknowns": room, "square": room * room, "steps": 20,
        "rows_of_Y": max(n, 1), "softened": True, "warm": False,
    }  # fmt: skip


def limits_c(law: LimitsLaw, precision: Precision = DOUBLE) -> str:
    """The numbers of the limits, and the functions that need no law."""
    *braking, at_both_ends = (
        c_function(f, qualifier="static inline") for f in bounding_functions(law.dt)
    )
    bound = law.bound
    return filled("limits.c", {
        **precision.values,
        **_nearest(law.mech.nu, len(bound.names)), "scaled": law.policy == "scale",
        "moving": law.fast, "braking": "".join(braking), "at_both_ends": at_both_ends,
        "seconds": number(TICKS_AHEAD * law.dt), "other": number(OTHER_MOTION / law.dt),
        "motor_limits": motor_limits_c(bound),
        "effort_sizes": arrays(effort_size=effort_sizes(bound)),
        "joint_limits": arrays(
            position_limit=bound.position, velocity_limit=bound.velocity,
            acceleration_limit=bound.acceleration, braking=law.braking, length=bound.units,
        ),
    })  # fmt: skip


def motor_limits_c(bound: BoundLimits) -> str:
    """The numbers of the template effort_bounds.c."""
    curves = [np.zeros((2, 0)) if c is None else c for c in bound.curves]
    points = np.hstack([*curves, np.zeros((2, 1))])  # one more, which is never read
    return arrays(
        effort_limit=bound.effort,
        curve_speed=points[0],
        curve_effort=points[1],
        curve_start=np.cumsum([0, *(c.shape[1] for c in curves)]),
    )


def limited_c(
    found: LimitedLaw, law: LimitsLaw, doubtful: str, qualifier: str = "static",
    symbols: Any = None, precision: Precision = DOUBLE,
) -> LimitedC:  # fmt: skip
    """The C of a law with limits: at every tick the command, then the stages that the policy needs.

    `doubtful` is the result of a tick in which the response to held efforts is in doubt: ``NO_WAY``
    refuses it, ``found`` continues without. `qualifier` and `symbols` are those of `c_stages`.
    """
    f, scaled = found.function, law.policy == "scale"
    name = f.name()
    stages = [("asked", found.first), ("base", ["base"] * scaled), ("response", found.response)]
    made = c_stages(
        f, [(f"{name}_{x}", list(outputs)) for x, outputs in stages if outputs], qualifier, symbols
    )
    size = {f.name_out(i): max(f.numel_out(i), 1) for i in range(f.n_out())}
    inputs, kept = [f.name_in(i) for i in range(f.n_in())], found.response[:-1]
    late = {"q": "late_q", "v": "late_v", "t": "late_t"}
    others = [x for x in found.first if x not in ("asked", "guard")]
    driver = filled("limited.c", {
        "below_one": precision.values["below_one"],
        "name": name, "shared": made.size, "nq": law.mech.nq, "nv": law.mech.nv,
        "scaled": scaled, "nearest": law.policy != "raise", "moving": law.fast,
        "response": bool(found.response), "doubtful": doubtful,
        "kept": "".join(f"{x}[{size[x]}], " for x in kept),
        "kept_at": "".join(f"here->{x}, " for x in kept),
        "given": "".join(f"const double *{x}, " for x in [*inputs, "a"] if law.fast),
        "given_on": ", ".join([*inputs, "a"]),
        "ahead": "".join(map(c_function, found.ahead)),
        "late_t": f", late_t[1] = {{t[0] + {number(law.dt)}}}" if "t" in inputs else "",
        "late_inputs": ", ".join(late.get(x, x) for x in inputs),
        "late_outputs": ", ".join(["late_guard", *(f"late_{x}[{size[x]}]" for x in others)]),
        "late_into": ", ".join("&late_guard" if x == "guard" else f"late_{x}" for x in found.first),
    })  # fmt: skip
    return LimitedC(made.source, made.size, driver)
