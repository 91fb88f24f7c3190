"""A law by CasADi's virtual machine: the functions of an extension module, without a compiler.

`Interpreted` replaces the C of extension_source.py: the same functions, of the same arguments, with
the same guard. It is slower than C, and usually faster than the tick in Python.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holoctl.base.casadi_virtual_machine import virtual_machine
from holoctl.base.checks import Array, Vector, finite, is_float
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.compiled.extension_source import Law
from holoctl.dynamics.tick.thread_workspace import in_own_workspace

__all__ = ["Interpreted", "interpreted"]


class _Machine:
    """A function of one thread: ``run(*inputs, t)`` fills `results`; both are parts of `flat`."""

    def __init__(self, function: Any, load: Vector | None = None) -> None:
        held = [] if load is None else [load]
        n = function.n_in() - len(held)
        sizes = [function.numel_in(i) for i in range(n)]
        sizes += [function.numel_out(i) for i in range(function.n_out())]
        self.flat = np.zeros(sum(sizes))
        parts = np.split(self.flat, np.cumsum(sizes)[:-1])
        self.results, self.guard = parts[n:], parts[-1]
        self.run = virtual_machine(function, self.results, parts[:n], held)

    def good(self) -> bool:
        """Whether the guard is not in doubt, and all inputs and outputs are finite: a function may
        be independent of an input."""
        return bool(self.guard[0] < 1.0) and finite(self.flat)


@dataclass(frozen=True, eq=False)
class Interpreted:
    """A law, and, if it gives accelerations, the function of laws/tangent_step.py; with the numbers
    of its payload and gravity, if it has such an input.

    Each thread has its own arrays; while they are in use the law cannot be called again there.
    """

    law: Law
    function: Any
    placed: Any = None
    load: Vector | None = None
    _own: threading.local = field(init=False, repr=False, default_factory=threading.local)
    _lock: threading.Lock = field(init=False, repr=False, default_factory=threading.Lock)

    def raw(self, *given: Any) -> None:
        """raw(in..., t, out...): fill arrays, without checks."""
        count = len(self.law.inputs) + 1

        def fill(machine: _Machine, *inputs: Any) -> bool:
            machine.run(*inputs)
            for place, x in zip(given[count:], machine.results, strict=True):
                place.reshape(-1)[:] = x
            return True

        given[-1].reshape(-1)[:] = np.inf  # in doubt until it is filled
        self._in_own(fill, *given[:count])

    def bind(self, unusual: Callable[..., Any], doubtful: Callable[..., Any]) -> Callable[..., Any]:
        """The tick, law(in..., [t], out=): arguments of another type or shape are passed to the
        first function, doubtful states to the second."""
        shapes = [(size,) for _, size in self.law.inputs]
        n, size, own = len(shapes), (self.law.outputs[0][1],), threading.local()

        def prepared() -> Callable[..., Vector | None]:
            machine = _Machine(self.function, self.load)
            run, good, first = machine.run, machine.good, machine.results[0]

            def answer(*inputs: Any) -> Vector | None:
                run(*inputs)
                return first.copy() if good() else None

            return answer

        def tick(*given: Any, **names: Any) -> Any:
            out = names.get("out") if names else None
            if not n <= len(given) <= n + 1 or (names and names.keys() != {"out"}):
                return unusual(*given, **names)
            for x, shape in zip(given, shapes, strict=False):
                if type(x) is not np.ndarray or x.shape != shape or not is_float(x.dtype):
                    return unusual(*given, **names)
            if out is not None and not (
                type(out) is np.ndarray and out.shape == size and is_float(out.dtype)
                and out.flags.carray
            ):  # fmt: skip
                return unusual(*given, **names)
            if len(given) == n:
                found = in_own_workspace(own, prepared, *given, 0.0)
            elif type(given[n]) is float and math.isfinite(given[n]):
                found = in_own_workspace(own, prepared, *given)
            else:
                return unusual(*given, **names)
            if found is None:
                return doubtful(*given, **names)
            if out is None:
                return found
            out[:] = found
            return out

        return tick

    def batch(self, *given: Any) -> None:
        """batch(in..., t, out..., flags, next, piece, count): many states, by one thread."""
        n, tables = len(self.law.inputs), self.law.tables
        *arrays, flags, taken, _, count = given
        inputs, t, outputs = arrays[:n], arrays[n], arrays[n + 1 : n + 1 + tables]

        def each(machine: _Machine) -> bool:
            for k in range(count):
                machine.run(*(x[k] for x in inputs), t)
                flags[k] = not machine.good()
                for table, x in zip(outputs, machine.results, strict=False):
                    table[k] = x
            return True

        with self._lock:
            if taken[0] < count:
                taken[0], flags[:] = count, True  # in doubt until they are filled
                self._in_own(each)

    def step(
        self, q: Vector, v: Vector, tau: Vector, t: float, h: float, A: Array, B: Vector,
        C: Vector, first: Vector | None, x: Vector, last: Vector, K: Array,
    ) -> bool:  # fmt: skip
        """The stages of an explicit step with efforts held, as simulation_steps.py has it."""
        nv, n = v.size, B.size
        start = np.concatenate([np.zeros(nv), v])

        def slope(machine: _Machine, x: Vector, t: float, found: Vector) -> bool:
            place = _machine_of(self._own, "placed", self.placed)
            place.run(q, x)
            machine.run(place.results[0], x[nv:], tau, t)
            found[:nv], found[nv:] = place.results[1], machine.results[0]
            return machine.good() and place.good()

        def stages(machine: _Machine) -> bool:
            last[:] = start
            if first is not None:
                K[0] = first
            elif not slope(machine, last, t, K[0]):
                return False
            for i in range(1, n + 1):
                here, weights = (last, A[i]) if i < n else (x, B)
                here[:] = start + h * weights[:i].dot(K[:i])
                if not slope(machine, here, t + C[i] * h if i < n else t + h, K[i]):
                    return False
            return True

        return bool(finite(tau) and self._in_own(stages))

    def _in_own(self, work: Callable[..., Any], *given: Any) -> Any:
        """``work(machine, *given)`` with the machine of this thread."""
        return in_own_workspace(self._own, self._laid_out, work, *given)

    def _laid_out(self) -> Callable[..., Any]:
        machine = _machine_of(self._own, "machine", self.function, self.load)

        def run(work: Callable[..., Any], *given: Any) -> Any:
            return work(machine, *given)

        return run


def _machine_of(
    own: threading.local, name: str, function: Any, load: Vector | None = None
) -> _Machine:
    found: _Machine | None = getattr(own, name, None)
    if found is None:
        found = _Machine(function, load)
        setattr(own, name, found)
    return found


def interpreted(function: Any, law: Law, placed: Any = None) -> Interpreted:
    """A law for the virtual machine: dense, matrices row by row as in C, common terms once."""
    return Interpreted(law, _prepared(function), None if placed is None else _prepared(placed))


def _prepared(function: Any) -> Any:
    ca = casadi_module()
    inputs: Sequence[Any] = [
        ca.SX.sym(function.name_in(i), function.numel_in(i)) for i in range(function.n_in())
    ]
    outputs = [ca.densify(x.T) for x in function.call(list(inputs), True, False)]
    return ca.Function(function.name(), list(inputs), outputs, {"cse": True})
