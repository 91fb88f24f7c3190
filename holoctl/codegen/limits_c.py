"""C that keeps limits: what it knows of them, and the driver around the stages of a law.

The texts `templates/limits.c.in`, `nearest.c.in` and `limited.c.in` are the same in exported
libraries and behind `hc.compile`. They need NU and HOLOCTL_DIVIDES in front of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holoctl.base.tolerances import (
    DEPENDENT_BOUND,
    EFFORT_REGULAR,
    FARTHEST_ASKED,
    NEAR_SPEED,
    OFF_A_BOUND,
    SOFT_ROWS,
    UNMOVED,
)
from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import array, filled, number
from holoctl.codegen.laws.limited import LimitedLaw, bounding_functions
from holoctl.control.limits_law import LimitsLaw, effort_sizes

__all__ = ["Calls", "calls", "limited_c", "limits_c", "nearest_c", "stages_of"]

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
    """``limits.c``: likewise; `arrays` are the limits, `braking` the laws of their bounds."""

    arrays: str
    braking: str
    regular: str = number(EFFORT_REGULAR)
    unmoved: str = number(UNMOVED)


@dataclass(frozen=True)
class _OfLaw:
    """What may be tried past a limit; `name` is that of the law."""

    name: str


@dataclass(frozen=True)
class _Respond:
    """``respond.c``: whether all coordinates are told of, too, and the base of "scale", whose stage
    comes `before`; `first` is a function for it."""

    name: str
    all_of: str = ""
    all: str = ""
    into: str = ""
    base_of: str = ""
    base: str = ""
    based: str = ""
    first: str = ""
    before: str = ""


@dataclass(frozen=True)
class _Limited:
    """``limited.c``; `given` are parameters, `otherwise` statements for what is past a limit, with
    what they `keep`; `twice` and `again` are around them near a limit of velocity."""

    name: str
    given: str
    keep: str
    otherwise: str
    twice: str
    again: str


@dataclass(frozen=True)
class _Change:
    """``change.c``: the law once more; `outputs` are arrays for it, `at` and `into` arguments."""

    name: str
    given: str
    shared: int
    nq: int
    nv: int
    late_t: str
    late_based: str
    outputs: str
    at: str
    into: str


@dataclass(frozen=True)
class _Narrowed:
    """``narrowed.c``."""

    near_speed: str = number(NEAR_SPEED)


@dataclass(frozen=True)
class Calls:
    """How the driver of a law is called: arguments that it is `given`; and where velocities are
    limited, the acceleration as it is `declared`, and as another output of the law (`moved`)."""

    given: str
    declared: str
    moved: str


def nearest_c(nu: int, n: int) -> str:
    """What finds the nearest point, of `nu` numbers, within their bounds and those of n rows."""
    bounds = nu + n
    room = max(bounds, 2)
    return filled("nearest.c", own=_Nearest(n, bounds, room, room * room, max(n, 1)))


def limits_c(law: LimitsLaw) -> str:
    """What is known of the limits, and the functions that need no law."""
    scaling = filled("largest_scale.c") if law.policy == "scale" else ""
    *braking, at_both_ends = (
        c_function(f, qualifier="static inline") for f in bounding_functions(law.dt)
    )
    nearest = nearest_c(law.mech.nu, len(law.bound.names))
    limits = filled("limits.c", own=_Limits(_arrays(law), "".join(braking)))
    narrowed = at_both_ends + filled("narrowed.c", own=_Narrowed()) if law.fast else ""
    return nearest + limits + scaling + narrowed


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
    tried = {"scale": ["scale", "nearest"], "nearest": ["nearest"], "raise": []}[law.policy]
    texts = [filled(f"limited_{x}.c", own=_OfLaw(name)) for x in tried]
    f, fast, scaled = found.function, bool(found.ahead), law.policy == "scale"
    inputs = [f.name_in(i) for i in range(f.n_in())]
    given = "".join(f"const double *{x}, " for x in [*inputs, "a"]) if fast else ""
    keep = before = ""
    if found.response:
        told, k = (_OF_ALL, f.size2_out("gamma")) if fast else ({}, 0)
        told = {x: y.format(nv=law.mech.nv, k=k) for x, y in told.items()}
        keep = f"  {name}_efforts here;\n  here.known = 0;\n"
        if scaled:
            told |= _BASE | {"first": filled("rest.c", own=_OfLaw(name))}
            told["before"] = f"  {name}_rest(w, here);\n"
            keep += "  here.based = 0;\n"
        before = filled("respond.c", own=_Respond(name, **told))
    twice, again = "  {\n", "    return found;\n"
    if fast:
        change = _change(found, law, name, given, shared)
        before += "".join(c_function(x) for x in found.ahead) + filled("change.c", own=change)
        keep += "  int again = 0;\n"
        twice = "  for (;;) { /* near a limit of velocity twice */\n"
        again = _AGAIN.format(name=name, given=", ".join([*inputs, "a"]), doubtful=doubtful)
    return before + filled(
        "limited.c", own=_Limited(name, given, keep, "".join(texts), twice, again)
    )


_OF_ALL = {
    "all_of": ", those of all",
    "all": "gamma[{nv} * {k}], per_effort[{k} * NU], ",
    "into": "here->gamma, here->per_effort, ",
}
_BASE = {"base_of": ", the base of scaling", "base": "base[ROOM], ", "based": "based, "}
_AGAIN = """\
    if (again || found == NO_WAY || !near_speed(x_rate)) return found;
    double change[LIMITED];
    {name}_respond(w, &here);
    if (!{name}_change({given}, asked, &here, u, change)) return {doubtful};
    narrow(x_rate, change, lower + NU, upper + NU);
    again = 1;
"""


def _change(found: LimitedLaw, law: LimitsLaw, name: str, given: str, shared: int) -> _Change:
    """The same law a tick later: its outputs but for doubt, of no use there, have arrays of their
    own."""
    f, mech = found.function, law.mech
    inputs = [f.name_in(i) for i in range(f.n_in())]
    size = {f.name_out(i): f.numel_out(i) for i in range(f.n_out())}
    others = [x for x in found.first if x not in ("asked", "doubt")]
    late = {"q": "late_q", "v": "late_v", "t": "late_t"}
    return _Change(
        name, given, shared, mech.nq, mech.nv,
        f", late_t[1] = {{t[0] + {number(law.dt)}}}" if "t" in inputs else "",
        "late.based = " if law.policy == "scale" else "",
        ", ".join(["late_doubt", *(f"late_{x}[{max(size[x], 1)}]" for x in others)]),
        ", ".join(late.get(x, x) for x in inputs),
        ", ".join("&late_doubt" if x == "doubt" else f"late_{x}" for x in found.first),
    )  # fmt: skip


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
