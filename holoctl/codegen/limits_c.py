"""C that keeps limits: what it knows of them, and the driver around the stages of a law.

The texts `templates/limits.c.in`, `nearest.c.in` and `limited.c.in` are the same in exported
libraries and behind `hc.compile`. They need NU and HOLOCTL_DIVIDES in front of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from holoctl.base.tolerances import (
    EFFORT_REGULAR,
    FARTHEST_ASKED,
    NEAR_SPEED,
    OTHER_MOTION,
    SOFT_ROWS,
    TICKS_AHEAD,
    UNMOVED,
)
from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import array, filled, number
from holoctl.codegen.laws.limited import LimitedLaw, bounding_functions
from holoctl.control.limits_law import LimitsLaw, effort_sizes

__all__ = ["Calls", "calls", "limited_c", "limits_c", "nearest_c", "stages_of"]

OFF_A_BOUND = 1e-14
"""In machine code, by so much of the largest number of the program it may miss a bound, scaled."""

DEPENDENT_BOUND = 1e-20
"""In machine code, a bound depends on others where they leave less than this of its square."""


Array = NDArray[np.float64]


@dataclass(frozen=True)
class Calls:
    """How the driver of a law is called: arguments that it is `given`; and where velocities are
    limited, the acceleration as it is `declared`, and as another output of the law (`moved`)."""

    given: str
    declared: str
    moved: str


def nearest_c(nu: int, n: int) -> str:
    """What finds the nearest point, of `nu` numbers, within their bounds and those of n rows."""
    room = max(nu + n, 2)
    own = SimpleNamespace(
        limited=n, bounds=nu + n, room=room, square=room * room, rows_of_Y=max(n, 1),
        rho=number(SOFT_ROWS), farthest=number(FARTHEST_ASKED), off=number(OFF_A_BOUND),
        dependent=number(DEPENDENT_BOUND),
    )  # fmt: skip
    return filled("nearest.c", own=own)


def limits_c(law: LimitsLaw) -> str:
    """What is known of the limits, and the functions that need no law."""
    *braking, at_both_ends = (
        c_function(f, qualifier="static inline") for f in bounding_functions(law.dt)
    )
    own = SimpleNamespace(
        arrays=_arrays(law), braking="".join(braking), regular=number(EFFORT_REGULAR),
        unmoved=number(UNMOVED),
    )  # fmt: skip
    texts = [nearest_c(law.mech.nu, len(law.bound.names)), filled("limits.c", own=own)]
    if law.policy == "scale":
        texts.append(filled("largest_scale.c"))
    if law.fast:
        near = SimpleNamespace(
            near_speed=number(NEAR_SPEED), ahead=number(TICKS_AHEAD * law.dt),
            other=number(OTHER_MOTION / law.dt),
        )  # fmt: skip
        texts += [at_both_ends, filled("narrowed.c", own=near)]
    return "".join(texts)


def stages_of(found: LimitedLaw, law: LimitsLaw, name: str) -> list[tuple[str, list[str]]]:
    """The stages of a law, as `c_stages` takes them: at every tick these outputs, then what the
    policy needs."""
    stages = [(f"{name}_asked", list(found.first))]
    if law.policy == "scale":
        stages.append((f"{name}_base", ["base"]))
    if found.response:
        stages.append((f"{name}_response", list(found.response)))
    return stages


def calls(found: LimitedLaw, nv: int, arguments: str) -> Calls:
    """How ``<name>_limited`` is called by one who gave the law these arguments."""
    if not found.ahead:
        return Calls("", "", "")
    return Calls(f"{arguments}, a, ", f", a[{nv}]", ", a")


def limited_c(found: LimitedLaw, law: LimitsLaw, name: str, shared: int, doubtful: str) -> str:
    """``<name>_limited``, around the stages of the law, which share so many numbers.

    `doubtful` is what becomes of a tick where what held efforts cause is in doubt: ``NO_WAY`` gives
    it up, ``found`` goes on without.
    """
    of_law, f, scaled = SimpleNamespace(name=name), found.function, law.policy == "scale"
    tried = {"scale": ["scale", "nearest"], "nearest": ["nearest"], "raise": []}[law.policy]
    size = {f.name_out(i): max(f.numel_out(i), 1) for i in range(f.n_out())}
    inputs, before, keep = [f.name_in(i) for i in range(f.n_in())], "", ""
    given, twice, again = "", "  {\n", "    return found;\n"
    if found.response:
        matrices = found.response[:-1]
        own = SimpleNamespace(
            name=name, arrays="".join(f"{x}[{size[x]}], " for x in matrices),
            into="".join(f"here->{x}, " for x in matrices),
            base="base[ROOM], " if scaled else "", based="based, " if scaled else "",
            rest=filled("rest.c", own=of_law) if scaled else "",
            first=f"  {name}_rest(w, here);\n" if scaled else "",
        )  # fmt: skip
        before = filled("respond.c", own=own)
        keep = f"  {name}_efforts here;\n  here.{'based = here.' if scaled else ''}known = 0;\n"
    if found.ahead:
        given = "".join(f"const double *{x}, " for x in [*inputs, "a"])
        late = {"q": "late_q", "v": "late_v", "t": "late_t"}
        others = [x for x in found.first if x not in ("asked", "doubt")]
        own = SimpleNamespace(
            name=name, given=given, shared=shared, nq=law.mech.nq, nv=law.mech.nv,
            late_t=f", late_t[1] = {{t[0] + {number(law.dt)}}}" if "t" in inputs else "",
            late_based="late.based = " if scaled else "",
            outputs=", ".join(["late_doubt", *(f"late_{x}[{size[x]}]" for x in others)]),
            at=", ".join(late.get(x, x) for x in inputs),
            into=", ".join("&late_doubt" if x == "doubt" else f"late_{x}" for x in found.first),
        )  # fmt: skip
        before += "".join(c_function(x) for x in found.ahead) + filled("change.c", own=own)
        arrays = ("rise", "fall", "least", "most", "now", "before", "change")
        keep += f"  double {', '.join(f'{x}[LIMITED]' for x in arrays)};\n"
        keep += "  int near[2][LIMITED] = {{0}}, again = 0;\n"
        twice = "  for (;;) { /* near a limit of velocity up to three times */\n"
        of_scaled = _OF_SCALED if scaled else ""
        options = {"given": ", ".join([*inputs, "a"]), "doubtful": doubtful, "of_scaled": of_scaled}
        again = _AGAIN.format(name=name, **options)
    otherwise = "".join(filled(f"limited_{x}.c", own=of_law) for x in tried)
    own = SimpleNamespace(
        name=name, given=given, keep=keep, otherwise=otherwise, twice=twice, again=again
    )
    return before + filled("limited.c", own=own)


_AGAIN = """\
    if (again == 2 || found == NO_WAY) return found;
    for (int j = 0; j < LIMITED; j++) now[j] = asked[NU + j];
{of_scaled}    if (found == NEAREST) {name}_caused(asked, here.Y, u, now);
    if (!near_speed(x_rate, now, near) || (again && !other_motion(now, before))) return found;
    {name}_respond(w, &here);
    if (!{name}_change({given}, asked, &here, u, now, change)) return {doubtful};
    if (!again) acceleration_bounds(x, x_rate, least, most);
    for (int j = 0; j < LIMITED; j++) {{
      rise[j] = !again || change[j] > rise[j] ? change[j] : rise[j];
      fall[j] = !again || change[j] < fall[j] ? change[j] : fall[j];
      before[j] = now[j];
      lower[NU + j] = least[j];
      upper[NU + j] = most[j];
    }}
    narrow(near, x_rate, rise, fall, lower + NU, upper + NU);
    again++;
"""

_OF_SCALED = """\
    if (found == SCALED)
      for (int j = 0; j < LIMITED; j++)
        now[j] = here.base[NU + j] + *scale * (now[j] - here.base[NU + j]);
"""


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
        table("brake", law.braking),
        array("length", bound.units if n else np.zeros(1), f"[{max(n, 1)}]"),
    ])  # fmt: skip
