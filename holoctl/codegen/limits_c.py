"""C that keeps limits: what it knows of them, and the driver around the stages of a law.

The texts `templates/limits.c.in`, `nearest.c.in` and `limited.c.in` are the same in exported
libraries and behind `hc.compile`. They need NU and HOLOCTL_DIVIDES in front of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holoctl.base.tolerances import (
    BRAKE_SHARE,
    DEPENDENT_BOUND,
    EFFORT_REGULAR,
    FARTHEST_ASKED,
    LED_BACK_TICKS,
    NEAR_SPEED,
    OFF_A_BOUND,
    POSITION_MARGIN,
    SOFT_ROWS,
    TICKS_AHEAD,
    UNMOVED,
    VELOCITY_MARGIN,
)
from holoctl.codegen.c_text import array, filled, number
from holoctl.control.limits_law import LimitsLaw, effort_sizes

__all__ = ["limited_c", "limits_c", "nearest_c", "stages_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Nearest:
    """``nearest.c``: sizes and tolerances of the C, by their names there."""

    limited: int
    bounds: int
    room: int
    square: int
    rows_of_Y: int
    rho: str = number(SOFT_ROWS)
    farthest: str = number(FARTHEST_ASKED)
    off: str = number(OFF_A_BOUND)
    dependent: str = number(DEPENDENT_BOUND)


@dataclass(frozen=True)
class _Limits:
    """``limits.c``: likewise; `arrays` are the limits."""

    arrays: str
    ahead: str
    back: str
    brake_share: str = number(BRAKE_SHARE)
    position_margin: str = number(POSITION_MARGIN)
    velocity_margin: str = number(VELOCITY_MARGIN)
    regular: str = number(EFFORT_REGULAR)
    unmoved: str = number(UNMOVED)


@dataclass(frozen=True)
class _Stage:
    """What may be tried past a limit; `name` is that of the law."""

    name: str


@dataclass(frozen=True)
class _Limited:
    """``limited.c``; `otherwise` are statements for what is past a limit, with what they `keep`;
    `again` those near a limit of velocity."""

    name: str
    keep: str
    otherwise: str
    again: str


@dataclass(frozen=True)
class _Narrowed:
    """``narrowed.c``; `doubtful` is what it returns where the guard is in doubt."""

    doubtful: int
    near_speed: str = number(NEAR_SPEED)


def nearest_c(nu: int, n: int) -> str:
    """What finds the nearest point, of `nu` numbers, within their bounds and those of n rows."""
    bounds = nu + n
    room = max(bounds, 2)
    return filled("nearest.c", own=_Nearest(n, bounds, room, room * room, max(n, 1)))


def limits_c(law: LimitsLaw, doubtful: int) -> str:
    """What is known of the limits, and the functions that need no law but, where velocities are
    limited, ``change_in_a_tick``.

    `doubtful` is what becomes of a tick where that is in doubt: -1 gives it up, 0 goes on without.
    """
    own = _Limits(_arrays(law), number(TICKS_AHEAD * law.dt), number(LED_BACK_TICKS * law.dt))
    scaling = filled("largest_scale.c") if law.policy == "scale" else ""
    nearest = nearest_c(law.mech.nu, len(law.bound.names))
    narrowed = filled("narrowed.c", own=_Narrowed(doubtful)) if _fast(law) else ""
    return nearest + filled("limits.c", own=own) + scaling + narrowed


def stages_of(law: LimitsLaw, name: str, asked: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The stages of a law, as `c_stages` takes them: at every tick these outputs, then what the
    policy needs."""
    found = [(f"{name}_asked", list(asked))]
    if law.policy == "scale":
        found.append((f"{name}_base", ["base"]))
    if law.policy != "raise":
        found.append((f"{name}_response", ["H", "Y", "response_doubt"]))
    return found


def limited_c(law: LimitsLaw, name: str) -> str:
    """``<name>_limited``, around the stages of the law."""
    tried = {"scale": ["scale", "nearest"], "nearest": ["nearest"], "raise": []}[law.policy]
    texts = [filled(f"limited_{x}.c", own=_Stage(name)) for x in tried]
    keep, again = "".join(_KEPT[x] for x in tried), _AGAIN if _fast(law) else _ONCE
    return filled("limited.c", own=_Limited(name, keep, "".join(texts), again))


_KEPT = {
    "scale": "  double base[ROOM] = {0.0};\n  int based = 0;\n",
    "nearest": "  double H[NU * NU] = {0.0}, Y[ROWS_OF_Y * NU] = {0.0}, doubt = HUGE_VAL;\n"
    "  int responded = 0;\n",
}
_AGAIN = """\
    if (again || found == NO_WAY) return found;
    again = narrowed(q, v, u, t, x_rate, lower + NU, upper + NU);
    if (again <= 0) return again ? NO_WAY : found;
"""
_ONCE = """\
    again = 1; /* no velocity is limited */
    (void)q, (void)v, (void)t;
    if (again) return found;
"""


def _fast(law: LimitsLaw) -> bool:
    """Whether some velocity is limited."""
    return bool(np.isfinite(law.bound.velocity).any())


def _arrays(law: LimitsLaw) -> str:
    """Limits of motors and joints; what there is not has one entry."""
    bound, nu, n = law.bound, law.mech.nu, len(law.bound.names)
    curves = [np.zeros((2, 0)) if c is None else c for c in bound.curves]
    starts = np.cumsum([0, *(c.shape[1] for c in curves)]).tolist()
    points = np.hstack([*curves, np.zeros((2, 1))])  # one more, that nobody reads
    names = ", ".join(map(str, starts))

    def table(name: str, rows: Array) -> str:
        return array(name, rows if n else np.zeros((2, 1)), f"[2][{max(n, 1)}]")

    return "".join([
        "/* Of motors: lower and upper limits, the largest; curves of effort by speed. */\n",
        array("effort_limit", bound.effort, f"[2][{nu}]"),
        array("effort_size", effort_sizes(bound), f"[{nu}]"),
        array("curve_speed", points[0], f"[{points.shape[1]}]"),
        array("curve_effort", points[1], f"[{points.shape[1]}]"),
        f"static const int curve_start[{nu + 1}] = {{{names}}};\n",
        "\n/* Of joints: lower and upper limits, braking downwards and upwards, sizes. */\n",
        table("position_limit", bound.position),
        table("velocity_limit", bound.velocity),
        table("acceleration_limit", bound.acceleration),
        table("brake", law.brakes),
        array("length", bound.units if n else np.zeros(1), f"[{max(n, 1)}]"),
    ])  # fmt: skip
