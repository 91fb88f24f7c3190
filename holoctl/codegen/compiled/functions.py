"""The functions that can be compiled, by name: which are wanted, and their machine code."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from holoctl.base.checks import name_list, one_of
from holoctl.base.errors import InputError
from holoctl.codegen.c_source import c_function
from holoctl.codegen.compiled.extension import built
from holoctl.codegen.compiled.extension_source import Law, extension_source
from holoctl.codegen.compiled.interpreted import Interpreted, interpreted
from holoctl.codegen.compiled.limited_source import limited_source
from holoctl.codegen.curves import curves_together
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.law_options import Subject
from holoctl.codegen.laws.certified import certified_forward, certified_inverse
from holoctl.codegen.laws.derivatives import derivatives
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.laws.limited import limited_torque
from holoctl.codegen.laws.placed import placed_function
from holoctl.codegen.laws.terms import rows_function, terms_function
from holoctl.codegen.laws.torque import torque_function
from holoctl.rows.closure_limits import StateLimits

__all__ = ["MACHINES", "certified_code", "machine_code", "wanted_functions"]

FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "terms", "torque",
    "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "state",
)  # fmt: skip

TICKS = ("inverse_dynamics", "forward_dynamics", "torque", "rows")
"""Called in loops."""


def wanted_functions(functions: Any, subject: Subject) -> tuple[str, ...]:
    """The names that are given, checked, or those that everyone gets."""
    mech, controller = subject.mech, subject.controller
    if functions is None:
        motors = ("inverse_dynamics",) if mech.nu else ()
        return (*motors, "forward_dynamics", "terms", *(("torque",) if controller else ()))
    wanted = tuple(dict.fromkeys(name_list("functions", functions)))
    for name in wanted:
        one_of("functions", name, FUNCTIONS)
    if not wanted:
        raise InputError(f"functions: name one or more of {', '.join(FUNCTIONS)}")
    if "torque" in wanted and controller is None:
        raise InputError("torque is that of a controller: hc.compile(hc.ComputedTorque(...))")
    return wanted


MACHINES = ("c", "vm")
"""What evaluates the functions: machine code by a C compiler, or CasADi's virtual machine."""


def machine_code(
    E: Expressions, subject: Subject, wanted: tuple[str, ...], flags: tuple[str, ...], machine: str
) -> dict[str, tuple[Any, Law]]:
    """Extension module and law of each function that there are expressions for.

    With forward dynamics come the rows that a simulation watches, and whole steps.
    """
    with_rows = "forward_dynamics" in wanted and E.mech.row_scale.size
    functions = _functions(E, subject, (*wanted, "rows") if with_rows else wanted)
    if machine == "vm":
        return {f.name(): (_interpreted(E, f, _law_of(f)), _law_of(f)) for f in functions}
    sources = [curves_together(c_function(f)) for f in functions]
    laws = [_law_of(f) for f in functions]
    if subject.keeping is not None and "torque" in wanted:
        found = limited_torque(E, subject, subject.keeping)
        if found is not None:
            source, law = limited_source(found, subject.keeping)
            sources.append(curves_together(source))
            laws.append(law)
    if "forward_dynamics" in wanted:
        i = [law.name for law in laws].index("forward_dynamics")
        sources[i] = c_function(placed_function(E)) + sources[i]
        laws[i] = replace(laws[i], placed=True)
    with ThreadPoolExecutor() as pool:  # the compiler runs for several at once
        modules = list(
            pool.map(
                lambda source, law: built(partial(extension_source, source, law), flags),
                sources,
                laws,
            )
        )
    return {law.name: (module, law) for module, law in zip(modules, laws, strict=True)}


def _interpreted(E: Expressions, function: Any, law: Law) -> Interpreted:
    placed = placed_function(E) if law.name == "forward_dynamics" else None
    return interpreted(function, law, placed)


def certified_code(
    E: Expressions, subject: Subject, name: str, flags: tuple[str, ...], machine: str
) -> tuple[Any, Law]:
    """Extension module and law of inverse or forward dynamics with their certificate."""
    if name == "inverse_dynamics":
        f = certified_inverse(E, subject.weights, subject.inconsistent, subject.limits)
    else:
        f = certified_forward(E)
    law = replace(_law_of(f), tables=2)
    if machine == "vm":
        return interpreted(f, law), law
    return built(partial(extension_source, curves_together(c_function(f)), law), flags), law


def _functions(E: Expressions, subject: Subject, wanted: tuple[str, ...]) -> list[Any]:
    """The function of each name, as far as there are expressions for it."""

    def inverse(limits: StateLimits | None = None) -> Any:
        return inverse_function(E, subject.weights, subject.inconsistent, limits)

    make: dict[str, Callable[[], Any]] = {
        "inverse_dynamics": lambda: inverse(subject.limits),
        "forward_dynamics": lambda: forward_function(E),
        "terms": lambda: terms_function(E),
        "rows": lambda: rows_function(E),
        "torque": lambda: None if subject.keeping else torque_function(E, subject),
        "inverse_dynamics_derivatives": lambda: derivatives(E, inverse()),
        "forward_dynamics_derivatives": lambda: derivatives(E, forward_function(E)),
    }
    found = [make[name]() for name in wanted if name in make]
    return [f for f in found if f is not None]


def _law_of(function: Any) -> Law:
    """What the wrapper needs to know of a function."""
    count = function.n_in() - 1  # t is the last
    tick = function.name() in TICKS
    return Law(
        function.name(),
        tuple((function.name_in(i), function.numel_in(i)) for i in range(count)),
        tuple((function.name_out(i), function.numel_out(i)) for i in range(function.n_out())),
        tick=tick,
        tables=int(tick),
    )
