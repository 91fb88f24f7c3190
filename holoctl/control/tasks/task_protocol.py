"""The protocol of tasks: rows with rates J v, and an error from a reference.

    xd = J v        xdd = J a + drift        drift = Jd v

A user-defined task is a description, and a bound task that it makes for a mechanism:

1. ``bind(mech)`` checks what needs the mechanism, and returns a value with
   ``labels`` (rows,), ``scale`` (rows,): 1 / length for rows in m, 1 for angles;
2. whose ``at(kin)`` gives a `TaskMotion` at a `Kinematics`: value, J and drift;
3. whose ``error(value, wanted)`` gives e (rows,), with de/dt = -xd if e is small; ``wanted``
   checks the value of a reference (its rates and accelerations have ``rows`` entries each).
4. Its ``tick(motion, beside)`` is the fast form for a loop: see `TaskTick`; if it returns None, a
   controller takes the general path. ``rows`` is None except for rates between two bodies.
5. An ``expression`` is optional: with one, `hc.compile` and `hc.export_c` accept the task; without,
   they refuse it by its name. An expression is compared with ``at`` and ``error``, and refused if
   it differs. See `BoundTask`.

No other module depends on the task. `frame_task.py` has all of these parts, `posture_task.py` only
the required ones.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import pinocchio as pin
from numpy import dtype, float64, ndarray, zeros
from numpy.typing import NDArray

from holoctl.base.checks import Vector, as_given, read_only
from holoctl.base.errors import InputError
from holoctl.base.renamed import former_names
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.scales import sizes
from holoctl.rows.tick.fast_rows import MoreRows
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = [
    "BoundTask",
    "FrameMotion",
    "ReferenceMotion",
    "Show",
    "Task",
    "TaskExpression",
    "TaskMotion",
    "TaskTick",
    "mechanism_size",
    "wanted_of",
]

Array = NDArray[float64]
_FLOAT = dtype(float64)


class TaskMotion(NamedTuple):
    """Value, Jacobian and drift of a task at a state.

    Attributes
    ----------
    value : pin.SE3 or (rows,) array
        The value, of the same kind as a reference.
    jacobian : (rows, nv) array
        J: rates are ``J v``.
    drift : (rows,) array
        ``Jd v``.

    See Also
    --------
    protocols.BoundTask : its `at` returns it.
    results.TaskTerms : the same in minimal coordinates.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> kin = hc.terms(mech, *hc.assemble(mech)).kinematics
    >>> hc.PostureTask().bind(mech).at(kin).jacobian.tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    """

    value: Any
    jacobian: Array
    drift: Vector


class ReferenceMotion(NamedTuple):
    """A reference of one task, checked.

    Attributes
    ----------
    value : object
        The checked value, as `BoundTask.wanted` returns it.
    rate, acceleration : (rows,) arrays
        m/s and rad/s, m/s^2 and rad/s^2.
    """

    value: Any
    rate: Vector
    acceleration: Vector


class TaskTick(NamedTuple):
    """A task prepared for the control loop of one thread.

    Attributes
    ----------
    evaluate : function (q, v, t) -> None
        Fills the arrays below, which are the same at every call, from the current `LiveMotion`.
    jacobian : (rows, nv) array
        Not filled if the rows are evaluated together with those of constraints.
    right : (rows,) array
        -drift.
    error : function (q, wanted) -> (rows,) array
        e at the state that was evaluated last.

    See Also
    --------
    protocols.BoundTask : its `tick` returns it.
    protocols.LiveMotion : what it reads.
    """

    evaluate: Callable[[Vector, Vector, float], None]
    jacobian: Array
    right: Vector
    error: Callable[[Vector, Any], Vector]


class FrameMotion(NamedTuple):
    """Frame 2 seen from frame 1, as expressions, all in the axes of one body; accelerations are
    those of joints that do not accelerate.

    Attributes
    ----------
    R1, p1, R2, p2 : (3, 3) and (3, 1) `casadi.SX`
        Axes and origins of the frames.
    linear : tuple of two (3, 1) `casadi.SX`
        Velocity and acceleration of the origin of frame 2 against the body of frame 1.
    angular : tuple of two (3, 1) `casadi.SX`
        Angular velocity and acceleration likewise.
    moves, turns : tuples of (int, `casadi.SX`)
        Coordinate, and the linear and angular velocity at its unit rate; omitted ones are zero.

    See Also
    --------
    protocols.BoundTask : its `expression` gets a function that returns this.
    protocols.TaskExpression : what it may return.
    """

    R1: Any
    p1: Any
    R2: Any
    p2: Any
    linear: tuple[Any, Any]
    angular: tuple[Any, Any]
    moves: tuple[tuple[int, Any], ...]
    turns: tuple[tuple[int, Any], ...]


Show = Callable[[Frame | None, Frame], FrameMotion]
"""show(a, b): the motion of frame b relative to frame a; if a is None, to the world, in world
axes."""


@former_names(guard="doubt")
class TaskExpression(NamedTuple):
    """A task as expressions, scalar ones of `casadi.SX`.

    Attributes
    ----------
    jacobian : (rows,) list of dict
        Coordinate to entry of J; omitted entries are zero.
    drift, rate, error : (rows,) lists
        ``Jd v``, ``J v`` and e.
    guard : list
        Each is below one if the reference is valid.

    See Also
    --------
    protocols.BoundTask : its `expression` returns it.
    protocols.FrameMotion : the frames that it is made of.
    compile : machine code of it.
    """

    jacobian: list[dict[int, Any]]
    drift: list[Any]
    rate: list[Any]
    error: list[Any]
    guard: list[Any]


class BoundTask(Protocol):
    """A task of one mechanism.

    Attributes
    ----------
    labels : tuple of str
        A name for each row.
    scale : (rows,) array
        The factor of each row: 1 / size of the mechanism for lengths, 1 for angles.
    rows : WrenchRows or None
        The rows of its rates, if these are rows between two bodies.

    See Also
    --------
    protocols.Task : its description, with an example.
    protocols.TaskMotion : what `at` returns.
    protocols.TaskTick : what `tick` returns.

    Notes
    -----
    It may also have

    ``expression(q, v, t, show, value)`` : q (nq, 1), v (nv, 1), t symbols, show a `Show`
        The value as a `casadi.SX` column of its rows, which is differentiated, and whose error is
        the reference less the value. Or a `TaskExpression` with derivatives and error; `value` are
        then the symbols of the numbers of a reference.
    ``numbers(wanted) -> (n,) array``
        The numbers of a checked reference for machine code; by default the reference itself, a
        number for each row.
    ``pose`` : tuple (coordinates, turns)
        If a reference may be a `pin.SE3`: a tuple of the coordinates of its position that are in
        these numbers, and whether its rotation follows, row by row.
    ``opaque`` : str
        Why there is no `expression`, for messages.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> motors = hc.PostureTask().bind(mech)
    >>> motors.labels, motors.error([2.2, 0.9], motors.wanted([2.3, 1.0])).round(6).tolist()
    (('motor_left', 'motor_right'), [0.1, 0.1])
    """

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each row."""
        ...

    @property
    def scale(self) -> Vector:
        """The factor of each row (rows,)."""
        ...

    @property
    def rows(self) -> WrenchRows | None:
        """The rows of its rates, if these are rows between two bodies."""
        ...

    def at(self, kin: Kinematics) -> TaskMotion:
        """The task at a state."""
        ...

    def wanted(self, value: Any) -> Any:
        """The value of a reference, checked."""
        ...

    def error(self, value: Any, wanted: Any) -> Vector:
        """e (rows,): from the value to the reference value."""
        ...

    def tick(self, motion: LiveMotion, beside: MoreRows | None) -> TaskTick | None:
        """The task prepared for a loop, or None if only `at` is available; `beside` are its `rows`
        if a tick evaluates them together with those of constraints."""
        ...


class Task(Protocol):
    """The description of a task, independent of a mechanism.

    See Also
    --------
    protocols.BoundTask : what `bind` returns.
    CustomTask : a task from a function, without a class.
    TaskSpaceControl : controls tasks.

    Examples
    --------
    A task that is its own bound task, the sum of two motor positions:

    >>> import numpy as np, holoctl as hc
    >>> class Sum:
    ...     labels, scale, rows = ("sum",), np.ones(1), None
    ...     def bind(self, mech):
    ...         return self
    ...     def at(self, kin):
    ...         J = np.array([[1.0, 0.0, 1.0, 0.0]])
    ...         return hc.protocols.TaskMotion(J @ kin.q, J, np.zeros(1))
    ...     def wanted(self, value):
    ...         return np.asarray(value, dtype=float)
    ...     def error(self, value, wanted):
    ...         return wanted - value
    ...     def tick(self, motion, beside):
    ...         return None
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> ctl = hc.TaskSpaceControl(mech, Sum(), kp=400.0, kd=40.0)
    >>> ctl.torque(*hc.assemble(mech), [3.0]).round(2).tolist()
    [-4.48, 0.13]
    """

    def bind(self, mech: Mechanism) -> BoundTask:
        """The task on a mechanism."""
        ...


def wanted_of(task: BoundTask, reference: Any) -> ReferenceMotion:
    """A given reference, a value or (value, rate, acceleration), checked."""
    rows = task.scale.size
    if type(reference) is not tuple:
        return ReferenceMotion(task.wanted(reference), _none(rows), _none(rows))
    if len(reference) != 3:
        raise InputError(
            f"a reference is a value, or the tuple (value, rate, acceleration); got a tuple of "
            f"{len(reference)} (a value of several numbers is a list or an array)"
        )
    value, rate, acceleration = reference
    if type(rate) is ndarray and type(acceleration) is ndarray:  # as a loop gives them
        alike = rate.dtype is _FLOAT and acceleration.dtype is _FLOAT
        if alike and rate.shape == acceleration.shape == (rows,):
            return ReferenceMotion(task.wanted(value), rate, acceleration)
    if isinstance(rate, pin.Motion) or isinstance(acceleration, pin.Motion):
        raise InputError(
            "rate and acceleration of a reference have an entry for each row of the task, in the "
            "order of its axes; a pin.Motion has six, in its own: give arrays"
        )
    of = f"of {task.labels[0]} ..."
    return ReferenceMotion(
        task.wanted(value),
        as_given("rate of the reference", rate, rows, of),
        as_given("acceleration of the reference", acceleration, rows, of),
    )


def mechanism_size(mech: Mechanism) -> float:
    """The diagonal of the box around joints and centres of mass at the reference, m."""
    return mech.per_thread("size", lambda: sizes(mech.model, mech.reference, mech.bound)[0])


@lru_cache(maxsize=100)
def _none(rows: int) -> Vector:
    """The rate or acceleration of a reference without one: zeros."""
    return read_only(zeros(rows))
