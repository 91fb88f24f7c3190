"""The methods of `TaskSpaceControl` and `Impedance`, once: functions that take either of them."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, TypeVar

from holoctl.base.checks import Vector, quiet
from holoctl.control.loop import (
    LoopFunctions,
    assembly_of,
    handed_over,
    loop_of_thread,
)
from holoctl.control.task_space.controller import TaskController
from holoctl.control.task_space.law import TaskNotes
from holoctl.control.task_space.loop import report_of
from holoctl.dynamics.tick.prepared_inverse import sensed
from holoctl.dynamics.tick.sensed import SensedDynamics

__all__ = ["general", "local", "loop_functions", "repartitioned", "torque", "torque_from_motors"]


class _Controller(Protocol):
    """`TaskSpaceControl` or `Impedance`."""

    _own: TaskController


_C = TypeVar("_C", bound=_Controller)


def general(self: _Controller) -> str:
    """Why every tick goes through the general path, at some ten times the cost; empty where the
    fast one serves."""
    return self._own.general


@quiet
def torque(
    self: _Controller, q: Any, v: Any, reference: Any, t: float = 0.0, *, f_ext: Any = None,
    efforts: Any = None, out: Vector | None = None,
) -> Vector:  # fmt: skip
    """The motor efforts for one tick.

    Parameters
    ----------
    q : (nq,) array_like
        Measured configuration.
    v : (nv,) array_like
        Measured velocity, rad/s or m/s.
    reference : object
        Of each task (for several: a sequence, one for each) its value, as the task has it, or
        (value, rate, acceleration), the latter (rows,), in m, rad and s.
    t : float, optional
        Time, s, for constraints that depend on it.
    f_ext : mapping or pin.StdVec_Force, optional
        External forces, as `inverse_dynamics` takes them. `TaskSpaceControl` compensates them. An
        `Impedance` yields to them: with the natural inertia by itself, so that they change
        nothing, with a wanted one by this measurement.
    efforts : (nv,) array_like, optional
        Known efforts on the coordinates, N m or N, to be compensated, such as those of a payload.
    out : (nu,) array, optional
        Takes the result; left as it is where an error is raised.

    Returns
    -------
    u : (nu,) array
        N m or N, in the order of ``mech.actuated``: `out`, or a new array.

    Raises
    ------
    InputError
        For wrong shapes, or input that is not finite.
    SingularityError
        Where the task is singular and ``at_singular="raise"``; where the split or the actuation is.
    InconsistentError
        Where the state is past its limits.
    LimitError
        With the policy "raise", past one of `limits`.
    """
    return self._own.at_state(q, v, reference, t, f_ext, efforts, out)


def local(self: _Controller) -> threading.local:
    """The loop of each thread."""
    return self._own.local


def loop_functions(self: _Controller, memory: TaskNotes | None = None) -> LoopFunctions:
    """What loops and trackings need."""
    own, notes = self._own, TaskNotes() if memory is None else memory
    given = own.mech, own.prepared.partition, own.assembly
    return LoopFunctions(
        memory=notes,
        torque=partial(_at_state, own, notes),
        behind=lambda found: partial(_at_estimate, own, notes, sensed(own.prepared, found)),
        estimator=lambda before: assembly_of(*given, before),
        report=partial(report_of, notes),
        spread=lambda wanted: (wanted,),
    )


@quiet
def _at_state(
    own: TaskController, notes: TaskNotes, q: Any, v: Any, reference: Any, t: float = 0.0, *,
    f_ext: Any = None, efforts: Any = None, out: Vector | None = None,
) -> Vector:  # fmt: skip
    return own.at_state(q, v, reference, t, f_ext, efforts, out, notes)


@quiet
def _at_estimate(
    own: TaskController, notes: TaskNotes, found: SensedDynamics, q_motors: Any, v_motors: Any,
    reference: Any, t: float = 0.0, *, f_ext: Any = None, out: Vector | None = None,
) -> Vector:  # fmt: skip
    return own.at_estimate(found, q_motors, v_motors, reference, t, f_ext, out, notes)


def torque_from_motors(
    self: _Controller, q_motors: Any, v_motors: Any, reference: Any, t: float = 0.0, *,
    f_ext: Any = None, out: Vector | None = None,
) -> Vector:  # fmt: skip
    """`Loop.torque_from_motors` of the loop of this thread, which the first call makes.

    Parameters
    ----------
    q_motors, v_motors, reference, t, f_ext, out
        As there.

    Returns
    -------
    u : (nu,) array
        N m or N.

    Raises
    ------
    InputError, SingularityError, InconsistentError, BranchError, AssemblyError, LimitError
        As there, and as `loop`.
    """
    own_loop = loop_of_thread(self)
    return own_loop.torque_from_motors(q_motors, v_motors, reference, t, f_ext=f_ext, out=out)


@quiet
def repartitioned(self: _C, q: Any, v: Any, t: float = 0.0) -> _C:
    """This controller, or where its partition is no longer good one with other rows or
    coordinates; see `PreparedInverseDynamics.repartitioned`.

    Parameters
    ----------
    q, v, t
        State, as in `torque`.

    Returns
    -------
    TaskSpaceControl or Impedance
        Itself where nothing is to be changed.

    Raises
    ------
    InputError
        For wrong shapes.
    """
    own = self._own
    prepared = own.prepared.repartitioned(q, v, t)
    if prepared is own.prepared:
        return self
    given: Any = self
    other: _C = replace(given, partition=prepared.partition)
    renewed = replace(other._own, prepared=prepared)  # which is laid out
    object.__setattr__(other, "_own", renewed)
    handed_over(self, other)
    return other
