"""A loop that knows its motors only: it remembers where the mechanism is, and gives the torque."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holoctl.base.checks import Vector, as_given, instant, quiet, stored
from holoctl.base.errors import InputError
from holoctl.control.commanded import LoopReport, Memory, commanded, report_of
from holoctl.control.limited_tick import LimitedTick
from holoctl.control.reference_law import ReferenceLaw, check_finite
from holoctl.dynamics.tick.sensed import Sensed
from holoctl.estimation.prepared_assembly import PreparedAssembly
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["Loop", "assembly_of"]


@dataclass(frozen=True, eq=False, repr=False)
class Loop:
    """One loop of a `ComputedTorque`, whose motors, or what its `assembly` says, are measured.

    It belongs to one thread: ``ctl.loop()`` makes one for each.

    Attributes
    ----------
    measured : tuple of str
        The order of what is measured.
    assembly : PreparedAssembly
        How the state is found; it remembers the last one.

    Raises
    ------
    None
        ``ctl.loop()`` says what it raises.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> loop = hc.ComputedTorque(mech, kp=400.0, kd=40.0).loop()
    >>> q_motors = mech.motor_positions(mech.reference)
    >>> u = loop.torque_from_motors(q_motors, [0.0, 0.0], q_motors, [0.0, 0.0], [0.0, 0.0])
    """

    _law: ReferenceLaw
    _limited: LimitedTick | None
    _sensed: Sensed
    _memory: Memory
    _torque: Callable[..., Vector]

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            "a Loop remembers where its mechanism is, for one thread: it is neither copied nor "
            "pickled; ctl.loop() makes another one"
        )

    def __repr__(self) -> str:
        return f"<Loop of {self._law.mech.name}: {self.assembly!r}>"

    @property
    def assembly(self) -> PreparedAssembly:
        """How the state is found."""
        return self._sensed.assembly

    @property
    def measured(self) -> tuple[str, ...]:
        """The order of what is measured."""
        return self.assembly.measured

    @property
    def last(self) -> LoopReport:
        """What the last tick was like: what limited it, and what it took to find the state."""
        return report_of(self._memory, self.assembly.last)

    def state(
        self, q_measured: Any, v_measured: Any = None, t: float = 0.0
    ) -> tuple[Vector, Vector]:
        """`PreparedAssembly.state`, remembered by this loop."""
        return self.assembly.state(q_measured, v_measured, t)

    def reset(self, q: Any, t: float = 0.0) -> None:
        """`PreparedAssembly.reset`: tell where the mechanism is. An integral begins anew."""
        self.assembly.reset(q, t)
        self._memory.clear()

    def resynchronise(self, q_measured: Any, t: float = 0.0) -> None:
        """`PreparedAssembly.resynchronise`: go where the sensors read this, however far."""
        self.assembly.resynchronise(q_measured, t)

    def torque(
        self, q: Any, v: Any, q_ref: Any, v_ref: Any, a_ref: Any, *more: Any, **by_name: Any
    ) -> Vector:
        """`ComputedTorque.torque`, where the whole state is known: of it nothing is remembered, but
        the integral goes on."""
        return self._torque(q, v, q_ref, v_ref, a_ref, *more, **by_name)

    @quiet
    def torque_from_motors(
        self,
        q_motors: Any,
        v_motors: Any,
        q_ref: Any,
        v_ref: Any,
        a_ref: Any,
        t: float = 0.0,
        *,
        out: Vector | None = None,
    ) -> Vector:
        """The closed state from what is measured, and the motor efforts there, in one tick.

        Where the state is found and the torque is not, the state is remembered all the same.

        Parameters
        ----------
        q_motors, v_motors : array_like
            Positions and rates in the order of `measured`; rad or m, rad/s or m/s.
        q_ref, v_ref, a_ref : array_like
            As in `ComputedTorque.torque`.
        t : float, optional
            Time, s.
        out : (nu,) array, optional
            Takes the result; left as it is where an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N, in the order of ``mech.actuated``: `out`, or a new array.

        Raises
        ------
        InputError, SingularityError, InconsistentError, LimitError
            As `ComputedTorque.torque`.
        BranchError, AssemblyError
            As `PreparedAssembly.state`.
        """
        nu, t = self._law.mech.nu, instant(t)
        v_ref, a_ref = as_given("v_ref", v_ref, nu), as_given("a_ref", a_ref, nu)
        q, v = self._sensed.state(q_motors, v_motors, t)
        try:
            sensed, limited, memory = self._sensed, self._limited, self._memory
            integral = memory.integral
            if limited is None and integral is None:
                return self._law.torque(sensed.efforts, q, v, q_ref, v_ref, a_ref, t, out)
            given = q, v, t, None, q_ref, v_ref, a_ref, integral
            u, found = commanded(self._law, limited, sensed.efforts, sensed.behind, *given)
            u = u if out is None else stored("out", out, u)
            memory.last = found  # nothing can go wrong any more
            if integral is not None:
                memory.integrate(self._law.error_of(q, q_ref))
            return u
        except InputError:
            check_finite(q_ref=q_ref, v_ref=v_ref, a_ref=a_ref)
            raise


def assembly_of(
    mech: Mechanism, part: Partition, given: PreparedAssembly | None
) -> PreparedAssembly:
    """How a new loop finds the state: in the given way, or by the motors.

    Raises
    ------
    InputError
        For a general actuation matrix.
    """
    if not mech.actuated:
        raise InputError(
            f"{mech.name}: its motors act by an actuation matrix, so they have no positions to "
            "follow; find the state by hc.PreparedAssembly(mech, measured=[...]), and the "
            "torque by `torque`"
        )
    return PreparedAssembly(mech, partition=part) if given is None else given.fresh()
