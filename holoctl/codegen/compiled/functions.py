"""The functions that can be compiled, by name: which are wanted, and their machine code."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from holoctl.base.checks import name_list, one_of
from holoctl.base.errors import InputError
from holoctl.codegen.batched_functions import batched_tanh_exp
from holoctl.codegen.c_source import c_function
from holoctl.codegen.c_text import filled
from holoctl.codegen.compiled.extension import built
from holoctl.codegen.compiled.extension_source import Law, extension_source
from holoctl.codegen.compiled.interpreted import interpreted
from holoctl.codegen.expressions import Expressions
from holoctl.codegen.law_options import Subject
from holoctl.codegen.laws.computed_torque import torque_function
from holoctl.codegen.laws.derivatives import derivatives
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.laws.law_with_certificate import certified_forward, certified_inverse
from holoctl.codegen.laws.limited import LimitedLaw, limited_torque
from holoctl.codegen.laws.tangent_step import placed_function
from holoctl.codegen.laws.terms import rows_function, terms_function
from holoctl.codegen.limits_c import limited_c, limits_c
from holoctl.control.limit_policies import LimitsLaw
from holoctl.rows.state_limits import StateLimits

__all__ = [
    "MACHINES",
    "certified_code",
    "law_of",
    "law_sources",
    "limited_source",
    "machine_code",
    "wanted_functions",
]

FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "terms", "torque",
    "inverse_dynamics_derivatives", "forward_dynamics_derivatives", "state", "kinematics",
)  # fmt: skip
"""The last one in batches only."""

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
    laws, makers = list[Law](), list[Callable[[], Any]]()
    for f in _functions(E, subject, (*wanted, "rows") if with_rows else wanted):
        placed = placed_function(E) if f.name() == "forward_dynamics" else None
        laws.append(replace(law_of(f), placed=placed is not None))
        makers.append(maker(f, laws[-1], flags, machine, placed))
    for source, law in _torque_within_limits(E, subject, wanted):
        laws.append(law)
        makers.append(partial(built, partial(extension_source, source, law), flags))
    with ThreadPoolExecutor() as pool:  # the compiler runs for several at once
        modules = list(pool.map(lambda make: make(), makers))
    return {law.name: (module, law) for module, law in zip(modules, laws, strict=True)}


def law_sources(E: Expressions, subject: Subject, wanted: tuple[str, ...]) -> list[tuple[str, Law]]:
    """The C function of each law that there are expressions for, and what callers need to know."""
    found = [(batched_tanh_exp(c_function(f)), law_of(f)) for f in _functions(E, subject, wanted)]
    return [*found, *_torque_within_limits(E, subject, wanted)]


def _torque_within_limits(
    E: Expressions, subject: Subject, wanted: tuple[str, ...]
) -> list[tuple[str, Law]]:
    """C and law of the torque of a controller with limits; empty without, or if there is none."""
    if subject.keeping is None or "torque" not in wanted:
        return []
    found = limited_torque(E, subject, subject.keeping)
    return [] if found is None else [limited_source(found, subject.keeping)]


def maker(
    function: Any, law: Law, flags: tuple[str, ...], machine: str, placed: Any = None
) -> Callable[[], Any]:
    """A function () that compiles a law, whose C is made now; or gives it for the virtual machine.

    `placed` is the function of laws/tangent_step.py, for whole steps.
    """
    if machine == "vm":
        made = interpreted(function, law, placed)
        return lambda: made
    source = batched_tanh_exp(c_function(function))
    source = source if placed is None else c_function(placed) + source
    return partial(built, partial(extension_source, source, law), flags)


def certified_code(
    E: Expressions, subject: Subject, name: str, flags: tuple[str, ...], machine: str
) -> tuple[Any, Law]:
    """Extension module and law of inverse or forward dynamics with their certificate."""
    if name == "inverse_dynamics":
        f = certified_inverse(E, subject.weights, subject.inconsistent, subject.limits)
    else:
        f = certified_forward(E)
    law = replace(law_of(f), tables=2)
    return maker(f, law, flags, machine)(), law


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


def limited_source(found: LimitedLaw, limits: LimitsLaw) -> tuple[str, Law]:
    """The C function ``torque`` within limits, with the same parameters as without.

    Where no way was found, or the policy is to raise, it is in doubt: Python answers.
    """
    made, mech, f = limited_c(found, limits, "NO_WAY"), limits.mech, found.function
    inputs = [f.name_in(i) for i in range(f.n_in())]
    text = filled("limited_torque.c", {
        "inputs": ", ".join(inputs),
        "parameters": ", ".join(f"const double *{x}" for x in inputs),
        "nu": mech.nu, "nv": mech.nv, "moving": limits.fast, "stages": made.stages,
        "shared": made.shared, "limits": limits_c(limits), "driver": made.driver,
    })  # fmt: skip
    return batched_tanh_exp(text), replace(
        law_of(found.function), outputs=(("u", mech.nu), ("guard", 1))
    )


def law_of(function: Any) -> Law:
    """What the wrapper needs to know of a function."""
    count = function.name_in().index("t")
    load = function.numel_in(count + 1) if function.n_in() > count + 1 else 0
    tick = function.name() in TICKS
    return Law(
        function.name(),
        tuple((function.name_in(i), function.numel_in(i)) for i in range(count)),
        tuple((function.name_out(i), function.numel_out(i)) for i in range(function.n_out())),
        tick=tick,
        tables=int(tick),
        load=load,
    )
