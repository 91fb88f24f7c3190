"""The C of a controller's torque within limits, with the same parameters as without.

Where no way was found, or the policy is to raise, it is in doubt: Python answers.
"""

from __future__ import annotations

from types import SimpleNamespace

from holoctl.codegen.c_source import c_stages
from holoctl.codegen.c_text import filled
from holoctl.codegen.compiled.extension_source import Law
from holoctl.codegen.laws.limited import LimitedLaw
from holoctl.codegen.limits_c import calls, limited_c, limits_c, stages_of
from holoctl.control.limits_law import LimitsLaw

__all__ = ["limited_source"]


def limited_source(found: LimitedLaw, law: LimitsLaw) -> tuple[str, Law]:
    """The C function ``torque``, and what the wrapper needs to know of it."""
    name, f, nu = found.function.name(), found.function, law.mech.nu
    stages = c_stages(f, stages_of(found, law, name))
    called = calls(found, law.mech.nv, ", ".join(f.name_in(i) for i in range(f.n_in())))
    parts = [
        filled("divides.c"), f"enum {{ NU = {nu} }};\n", stages.source, limits_c(law),
        limited_c(found, law, name, stages.size, "NO_WAY"),
        filled("limited_torque.c", own=SimpleNamespace(shared=stages.size, **vars(called))),
    ]  # fmt: skip
    inputs = tuple((f.name_in(i), f.numel_in(i)) for i in range(f.n_in() - 1))  # t is the last
    return "".join(parts), Law(name, inputs, (("u", nu), ("doubt", 1)), tick=True)
