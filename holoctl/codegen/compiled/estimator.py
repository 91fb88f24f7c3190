"""The estimator of the closed state in machine code, with the Python estimator if C refuses.

Memories are exchanged: if C refuses, a `ClosedStateEstimator` continues from the memory of C, or
raises its error; its result is copied back to C. If it keeps other rows than the machine code was
made for, or is lost, it computes all further states until `reset`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, as_given, instant, quiet, stored
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.linalg import least_squares
from holoctl.codegen.closed_state_c import memory_type
from holoctl.codegen.compiled.extension import built
from holoctl.codegen.compiled.extension_source import estimator_source
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.border_expressions import sensing_of
from holoctl.codegen.laws.closed_state import ClosedStateLaw, closed_state
from holoctl.estimation.branch_continuation import placed_at
from holoctl.estimation.branch_guards import BranchMemory
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.estimator_system import Borders
from holoctl.mechanism.checks import check_out
from holoctl.mechanism.mechanism import Mechanism

__all__ = [
    "CompiledEstimator",
    "EstimatorCode",
    "Estimators",
    "estimator_code",
    "not_compiled",
]


@dataclass(frozen=True, eq=False)
class EstimatorCode:
    """The compiled estimator functions, which several loops share.

    Attributes
    ----------
    module : extension module
    law : ClosedStateLaw
    memory : numpy.dtype
        The type of the memory of a loop.
    estimator : ClosedStateEstimator
        The Python estimator of the same sensors and rows.
    """

    module: Any
    law: ClosedStateLaw
    memory: np.dtype[Any]
    estimator: ClosedStateEstimator


def estimator_code(
    estimator: ClosedStateEstimator, flags: tuple[str, ...], load: int = 0
) -> EstimatorCode:
    """Compile an estimator equivalent to `estimator`, for a torque with so many numbers of payload
    and gravity.

    Raises
    ------
    InputError, HoloctlError
        As `compile`.
    """
    E = symbolic(estimator.mech, estimator.partition)
    law = closed_state(E, sensing_of(estimator))
    module = built(lambda name: estimator_source(E, law, load, name), flags)
    memory = memory_type(E, law)
    if module.size() != memory.itemsize:
        raise HoloctlError(
            f"{estimator.mech.name}: the memory of the estimator has {module.size()} bytes in C "
            f"and {memory.itemsize} in numpy; a compiler flag may change the layout of structs"
        )
    return EstimatorCode(module, law, memory, estimator)


class Estimators:
    """Makes compiled estimators, one for each loop; the code is compiled on first use, also by
    several threads.

    `estimator` makes the Python estimator, `fell_back` is called when that computes a result,
    `load` is the number of payload and gravity of the torque.
    """

    def __init__(
        self, mech: Mechanism, estimator: Callable[[], ClosedStateEstimator],
        flags: tuple[str, ...], machine: str, fell_back: Callable[[str], None], load: int = 0,
    ) -> None:  # fmt: skip
        self._mech, self._estimator, self._flags, self._machine = mech, estimator, flags, machine
        self._fell_back, self._load, self._lock = fell_back, load, threading.Lock()
        self._code: EstimatorCode | None = None

    def code(self) -> EstimatorCode:
        """The machine code."""
        with self._lock:
            if self._code is None:
                self._code = estimator_code(self._estimator(), self._flags, self._load)
            return self._code

    def __call__(self, before: Any = None) -> CompiledEstimator:
        """A new estimator, for one loop; or that of the loop before, if it is made of this code."""
        if self._machine == "vm":
            raise InputError(
                f"{self._mech.name}: the virtual machine does not estimate the closed state; take "
                "controller.loop() in Python, or machine='c'"
            )
        code = self.code()
        if isinstance(before, CompiledEstimator) and before._code is code:
            return before
        return CompiledEstimator(code, self._fell_back)


@dataclass(frozen=True, eq=False, repr=False)
class CompiledEstimator:
    """A `ClosedStateEstimator` in machine code: for one loop, whose last state it remembers."""

    _code: EstimatorCode
    _fell_back: Callable[[str], None]
    _estimator: ClosedStateEstimator = field(init=False)
    _memory: NDArray[Any] = field(init=False)
    _rows: NDArray[np.intp] = field(init=False)
    _tick: Callable[..., tuple[Vector, Vector]] = field(init=False)
    _given: list[Borders] = field(init=False)  # of C, as the estimator has them

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        module, estimator = self._code.module, self._code.estimator.fresh()
        put("_estimator", estimator)
        put("_rows", estimator.partition.rows)
        put("_given", [])
        put("_memory", np.zeros(1, dtype=self._code.memory))
        self._begin(estimator.q, 0.0)
        # the C function replaces the method of the same name, and calls it if needed
        usual = type(self).state.__get__(self)
        put("_tick", module.bind(self._memory, usual, self._state_in_python))
        put("state", self._tick)

    def __repr__(self) -> str:
        return f"compiled {self._estimator!r}"

    @property
    def measured(self) -> tuple[str, ...]:
        """The measured joints, in the order of their readings."""
        return self._estimator.measured

    @property
    def q(self) -> Vector:
        """A copy of the last configuration."""
        if self._in_python:
            return self._estimator.q
        q: Vector = self._memory["position"][0].copy()
        return q

    def in_python(self) -> ClosedStateEstimator:
        """The Python estimator, at the same state."""
        if not self._in_python:
            self._give()
        return self._estimator

    def with_torque(
        self, pointer: Any, usual: Callable[..., Vector], torque: Callable[..., Vector],
        torque_in_python: Callable[..., Vector], *load: Vector,
    ) -> Callable[..., Vector]:  # fmt: skip
        """State and torque in one call.

        Parameters
        ----------
        pointer : capsule
            The law in machine code.
        usual : function (q_motors, v_motors, *references, t, *, out) -> u
            For arguments that C does not accept.
        torque, torque_in_python : functions (q, v, *references, t, *, out) -> u
            `Compiled.torque`, and its equivalent if the guard is in doubt.
        load : array, optional
            Payload and gravity, if the law has them as an input.
        """

        def doubtful(
            q_motors: Any, v_motors: Any, *references: Any, out: Vector | None = None
        ) -> Vector:
            q, v = self._state_in_python(q_motors, v_motors, *references[3:])
            return torque(q, v, *references, out=out)

        tick: Callable[..., Vector] = self._code.module.bind_torque(
            self._memory, usual, doubtful, pointer, torque_in_python, *load
        )
        return tick

    @quiet
    def state(
        self,
        q_measured: Any,
        v_measured: Any = None,
        t: float = 0.0,
        *,
        out: tuple[Vector, Vector] | None = None,
    ) -> tuple[Vector, Vector]:
        """The closed state in which the sensors read these values, as `ClosedStateEstimator.state`.

        Parameters
        ----------
        q_measured, v_measured, t, out
            As there.

        Returns
        -------
        q, v : (nq,) and (nv,) arrays

        Raises
        ------
        InputError, BranchError, AssemblyError, InconsistentError
            As there.
        """
        sensors, mech = self._estimator.readings, self._estimator.mech
        m, t = sensors.columns.size, instant(t)
        x = _plain("q_measured", q_measured, sensors.numbers)
        rates = np.zeros(m) if v_measured is None else _plain("v_measured", v_measured, m)
        if out is not None:
            check_out(out, mech)
        q, v = self._tick(x, rates, t)
        if v_measured is None:
            v = np.zeros(mech.nv)
        if out is None:
            return q, v
        return stored("out[0]", out[0], q), stored("out[1]", out[1], v)

    @quiet
    def reset(self, q: Any, t: float = 0.0) -> None:
        """Set the configuration of the mechanism, as `ClosedStateEstimator.reset`.

        Parameters
        ----------
        q, t
            As there.

        Raises
        ------
        InputError, InconsistentError, BranchError
            As there; then the last state is kept.
        """
        if not self._in_python:
            self._give()
        if not self._reset_with_rows_of_c(q, t):
            self._estimator.reset(q, t)
        self._begin(self._estimator.q, instant(t))

    @quiet
    def resynchronise(self, q_measured: Any, t: float = 0.0) -> None:
        """Follow the sensors, however far, as `ClosedStateEstimator.resynchronise`.

        Parameters
        ----------
        q_measured, t
            As there.

        Raises
        ------
        InputError, BranchError, AssemblyError, InconsistentError
            As there.
        """
        self._asked(lambda: self._estimator.resynchronise(q_measured, t))

    # ------------------------------------------------------------------------------- internals

    @property
    def _in_python(self) -> bool:
        return bool(self._memory["latched"][0])

    def _state_in_python(
        self, q_measured: Any, v_measured: Any, t: float = 0.0
    ) -> tuple[Vector, Vector]:
        """The state if C refuses, or the error of the Python estimator."""
        self._fell_back("state")
        found: tuple[Vector, Vector] = self._asked(
            lambda: self._estimator.state(q_measured, v_measured, t)
        )
        return found

    def _asked(self, what: Callable[[], Any]) -> Any:
        """Call the Python estimator with the memory of C, and copy its memory back."""
        if not self._in_python:
            self._give()
        try:
            return what()
        finally:
            self._take()

    def _reset_with_rows_of_c(self, q: Any, t: float) -> bool:
        """Replace a Python estimator that kept other rows by one with the rows of C; whether that
        was possible."""
        if np.array_equal(self._estimator.partition.rows, self._rows):
            return False
        estimator = self._code.estimator.fresh()
        try:
            estimator.reset(q, t)
        except HoloctlError:  # these rows do not determine the motion there
            return False
        object.__setattr__(self, "_estimator", estimator)
        return True

    def _begin(self, q: Vector, t: float) -> None:
        """Start the memory of C at the state of the Python estimator; if C refuses, Python
        continues."""
        same = np.array_equal(self._estimator.partition.rows, self._rows)
        if not (same and self._code.module.begin(self._memory, q, t)):
            self._memory["latched"] = 1

    def _give(self) -> None:
        """Set the estimator to the memory of C."""
        estimator, m, law = self._estimator, self._memory[0], self._code.law
        c, u = estimator.mech.column_scale, estimator.readings.unit
        see, count = estimator.system, u.size
        A = np.zeros((0, count)) if law.known else np.eye(count)
        if law.weighed:
            A = m["sensor_weights"].reshape(law.seen, count) * u
        N = np.zeros((estimator.mech.nv, law.idle))
        if law.idle:
            N.reshape(-1)[law.held] = m["idle_borders"]
        place = placed_at(see, m["position"].copy(), float(m["time"]), Borders(A, N * c[:, None]))
        now, before = m["past"].tolist()
        seen = np.eye(count) if see.known else A / u
        step, changed = seen @ m["step"], (m["gamma"] - m["before"]).reshape(-1, count)
        place = place._replace(
            decided=place.det * float(m["decided"] / m["det"]), determinant=now,
            bend=least_squares(seen.T, changed.T).T, step=step, square=float(step.dot(step)),
        )  # fmt: skip
        self._given[:] = [place.borders]
        # only the determinant of the state before is known
        other = place._replace(determinant=before) if m["known"] == 2 else None
        read, way, refused = int(m["read"]), m["way"].copy(), int(m["refused"])
        estimator.take_over(BranchMemory(place, other, read, way, float(m["size"]), refused))

    def _take(self) -> None:
        """Set the memory of C to that of the Python estimator if C can continue from it."""
        estimator, m = self._estimator, self._memory
        same, found = np.array_equal(estimator.partition.rows, self._rows), estimator.handed_over()
        if found is None or not same:
            m["latched"] = 1
            return
        place, before = found.place, found.before
        m["read"], m["refused"], m["size"] = found.read, found.refused, found.size
        if (
            np.array_equal(m["position"][0], place.q)
            and m["time"][0] == place.t
            and not m["latched"][0]
        ):
            return
        now = m["now"] = place.determinant
        m["position"], m["time"], m["way"] = place.q, place.t, found.way
        m["past"] = now, now if before is None else before.determinant
        m["known"] = 1 if before is None else 2
        kept = any(place.borders is given for given in self._given) and not m["latched"][0]
        m["latched"] = not self._code.module.resume(m, kept)
        if place.square > 0.0:  # the change of gamma in the last step
            see = estimator.system
            count = estimator.readings.unit.size
            seen = np.eye(count) if see.known else place.borders.A / estimator.readings.unit
            m["before"] = m["gamma"] - (place.bend @ seen).reshape(-1)
            m["step"] = least_squares(seen, place.step)


def not_compiled(name: str, how: str) -> InputError:
    """The error for a function that was not compiled."""
    return InputError(f"{name} was not compiled; {how} does it")


def _plain(name: str, value: Any, size: int) -> Array:
    """A vector in the form that C accepts."""
    return np.require(as_given(name, value, size), requirements=["C", "A"])
