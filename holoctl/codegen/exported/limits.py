"""The texts of a library that keeps limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Vector
from holoctl.codegen.c_source import c_stages
from holoctl.codegen.c_text import array, comment
from holoctl.codegen.exported.contexts import Shared
from holoctl.codegen.exported.laws import Laws
from holoctl.codegen.limits_c import Calls, calls, limited_c, limits_c, stages_of
from holoctl.control.effort_bounds import least_efforts
from holoctl.control.limits_law import LimitsLaw

__all__ = [
    "LimitTexts",
    "limit_checks",
    "limit_fields",
    "limit_texts",
    "limits_contract",
    "resting",
    "within_limits",
]


@dataclass(frozen=True)
class LimitTexts:
    """What the source says of them; all empty without limits.

    Attributes
    ----------
    laws : tuple of str
        The laws in stages, straight-line code.
    passed, passed_by_hold : int
        How many numbers pass from stage to stage of `law`, and of `hold`.
    calls : function (name, arguments) -> Calls
        How the driver of a law is called.
    limits : str
        What is known of them, and what keeps them.
    held, zero, set_limits : str
        Statements for a torque that is held, for one without init, and of init.
    """

    laws: tuple[str, ...] = ()
    passed: int = 0
    passed_by_hold: int = 0
    calls: Callable[[str, str], Calls] = lambda name, arguments: Calls("", "", "")
    limits: str = ""
    held: str = ""
    zero: str = ""
    set_limits: str = ""


def limit_texts(laws: Laws, qualifier: str, symbols: Any) -> LimitTexts:
    """The texts, for laws with limits."""
    law, stages, drivers = laws.limits, {}, list[str]()
    if law is None:
        return LimitTexts()
    staged = {"law": laws.limited_law, "hold": laws.limited_hold}
    known = {name: found for name, found in staged.items() if found is not None}
    for name, found in known.items():
        stages[name] = c_stages(found.function, stages_of(found, law, name), qualifier, symbols)
        drivers.append(limited_c(found, law, name, stages[name].size, "found"))
    return LimitTexts(
        tuple(x.source for x in stages.values()),
        stages["law"].size,
        stages["hold"].size if "hold" in stages else 0,
        lambda name, arguments: calls(known[name], law.mech.nv, arguments),
        limits_c(law) + "".join(drivers),
        "  c->scale = HUGE_VAL;\n  keep_within(c->rates, u); /* the last ones that are known */\n",
        "  {\n    const double rest[NU] = {0.0};\n    keep_within(rest, u);\n  }\n",
        "  c->scale = HUGE_VAL;\n  for (int i = 0; i < NU; i++) c->rates[i] = 0.0;\n",
    )


def limit_fields(laws: Laws) -> str:
    """What the struct tells of them."""
    if laws.limits is None:
        return ""
    return (
        "  double scale;        /* what is left of what was asked for: 1 all of it, unchanged;\n"
        "                        * less along the way there; below 0 where u is the nearest */\n"
        f"  double rates[{laws.limits.mech.nu}];     /* of the motors, the last that are known */\n"
    )


def limits_contract(laws: Laws, shared: Shared) -> str:
    """Lines of documentation for the header."""
    law, U = laws.limits, shared.U
    if law is None:
        return ""
    lines = [
        f"u is within these limits whatever the status is. With {U}_LIMITED more was",
        _POLICIES[law.policy],
        "The certificate is that of what was asked for.",
        "Where u is zero, and zero is no effort within limits, it is the nearest that is. A torque",
        "that is held is within the limits at the last rates of motors that are known.",
        "",
        *_motors(law),
        *_joints(law),
        f"A tick is taken to last {law.dt:g} s.",
    ]
    return "".join(f" * {x}".rstrip() + "\n" for x in lines) + " *\n"


def within_limits(laws: Laws) -> str:
    """A paragraph for the README."""
    if laws.limits is None:
        return ""
    return (
        "\nThe torque is within the limits in the header, whatever the status is. `LIMITED` is as\n"
        "good as `OK`: more was asked for than limits allow; `c.scale` tells how much is left.\n"
    )


_POLICIES = {
    "nearest": "asked for: u causes what is nearest to it, in the metric of kinetic energy.",
    "scale": "asked for: u is slower along it, by c.scale, or the nearest where that is too much.",
}


def _motors(law: LimitsLaw) -> list[str]:
    lower, upper = law.bound.effort
    found = []
    for i, name in enumerate(law.mech.actuator_names):
        less = ", less with speed" if law.bound.curves[i] is not None else ""
        found.append(f"  u[{i}]  {lower[i]:g} to {upper[i]:g}{less}: {comment(name)}")
    return found


def _joints(law: LimitsLaw) -> list[str]:
    found = []
    for i, name in enumerate(law.bound.names):
        given = [
            f"{what} {values[0, i]:g} to {values[1, i]:g}"
            for what in ("position", "velocity", "acceleration")
            if np.isfinite((values := getattr(law.bound, what))[:, i]).any()
        ]
        found.append(f"  {comment(name)}: {', '.join(given)}; given up where motors cannot keep it")
    return found


def limit_checks(laws: Laws) -> tuple[str, str]:
    """For the self-test: arrays, and a condition for efforts past their limits."""
    law = laws.limits
    if law is None:
        return "", ""
    lower, upper = law.bound.effort
    arrays = array("effort_least", lower, "[NU]") + array("effort_most", upper, "[NU]")
    return arrays, " || u[i] < effort_least[i] || u[i] > effort_most[i]"


def resting(laws: Laws, nu: int) -> Vector:
    """What stands for no torque: zero, or what is nearest to it."""
    if laws.limits is None:
        return np.zeros(nu)
    return least_efforts(laws.limits.bound)
