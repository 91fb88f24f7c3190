"""The C of a controller's torque within limits, with the same parameters as without.

Where no way was found, or the policy is to raise, it is in doubt: Python answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holoctl.codegen.c_source import c_function, c_stages
from holoctl.codegen.c_text import filled
from holoctl.codegen.compiled.extension_source import Law
from holoctl.codegen.laws.limited import Limited
from holoctl.codegen.limits_c import limited_c, limits_c, stages_of
from holoctl.control.limits_law import LimitsLaw

__all__ = ["limited_source"]


@dataclass(frozen=True)
class _Torque:
    """``limited_torque.c``; `shared` is the size of what the stages share."""

    shared: int


def limited_source(found: Limited, change: Any, law: LimitsLaw) -> tuple[str, Law]:
    """The C function ``torque``, and what the wrapper needs to know of it.

    `change` is `change_function`.
    """
    name, f = found.function.name(), found.function
    stages = c_stages(f, stages_of(law, name, found.first))
    parts = [
        filled("divides.c"), f"enum {{ NU = {law.mech.nu} }};\n", stages.source,
        "" if change is None else c_function(change), limits_c(law, -1),
        limited_c(law, name), filled("limited_torque.c", own=_Torque(stages.size)),
    ]  # fmt: skip
    inputs = tuple((f.name_in(i), f.numel_in(i)) for i in range(f.n_in() - 1))  # t is the last
    return "".join(parts), Law(name, inputs, (("u", law.mech.nu), ("doubt", 1)), tick=True)
