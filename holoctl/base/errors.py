"""The error family. Every error that holoctl raises on purpose is a `HoloctlError`.

A message says what was given, what was expected, which names are valid, and the likely
cause. Members carry the data behind the message, so that a program can act on it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "AssemblyError",
    "BranchError",
    "HoloctlError",
    "InconsistentError",
    "InputError",
    "LimitError",
    "LoadError",
    "NotActuatedError",
    "SingularityError",
    "SweepError",
    "has_time",
]


class HoloctlError(Exception):
    """The base class of all errors that holoctl raises on purpose.

    See Also
    --------
    InputError : for invalid arguments.
    LoadError : for files that cannot be read.
    SingularityError : at singular configurations.

    Examples
    --------
    >>> import holoctl as hc
    >>> try:
    ...     hc.partition(hc.load(hc.robot_file("five_bar")), [0.0, 0.0, 0.0, 0.0])
    ... except hc.HoloctlError as error:
    ...     print(type(error).__name__)
    InconsistentError
    """


class InputError(HoloctlError, ValueError):
    """An argument has the wrong type, shape, unit, name or value.

    See Also
    --------
    HoloctlError : the base class of all errors.
    LoadError : for files that cannot be read.

    Examples
    --------
    >>> import holoctl as hc
    >>> try:
    ...     hc.JointSpring("crank", stiffness=-1.0)
    ... except hc.InputError as error:
    ...     print(error)
    JointSpring 'spring on crank': stiffness must not be negative; got -1
    """


class LoadError(HoloctlError):
    """A robot description cannot be read.

    Attributes
    ----------
    file, key : str or None
        The file, and the entry in it, that is at fault.
    line : int or None
        Line in the file, counted from 1.

    See Also
    --------
    load : raises it.
    InputError : for invalid arguments of a call.

    Examples
    --------
    >>> import holoctl as hc
    >>> try:
    ...     hc.load("missing.urdf")
    ... except hc.LoadError as error:
    ...     print(error.file)
    missing.urdf
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        key: str | None = None,
        line: int | None = None,
    ) -> None:
        where = ":".join(str(part) for part in (file, line) if part is not None)
        super().__init__(f"{where}: {message}" if where else message)
        self.file, self.key, self.line = file, key, line

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.args, self.__dict__))


class AssemblyError(HoloctlError):
    """No configuration (or velocity) that satisfies the constraints was found.

    Attributes
    ----------
    residual : float
        Largest scaled constraint error at the best point.
    worst : tuple of (str, float)
        Rows with the largest scaled error, worst first.
    q : ndarray or None, shape (nq,)
        The best configuration found.
    opposite : tuple of str
        Closures whose axes point in opposite directions in every closed configuration found.

    See Also
    --------
    assemble : raises it if no start closes the mechanism.
    draw : shows ``error.q``, with the open constraints in red.
    mobility : explains why a mechanism does not close.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> try:
    ...     hc.assemble(mech, [1.0, 2.0, 0.0], locked=["crank", "coupler"])
    ... except hc.AssemblyError as error:
    ...     print(f"open by {error.residual:.2f}, most at {error.worst[0][0]!r}")
    open by 0.78, most at 'pin.x'
    """

    def __init__(
        self,
        message: str,
        *,
        residual: float = float("nan"),
        worst: Iterable[tuple[str, float]] = (),
        q: NDArray[np.float64] | None = None,
        opposite: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.residual, self.worst, self.q = residual, tuple(worst), q
        self.opposite = tuple(opposite)


class BranchError(HoloctlError):
    """The measurements do not determine on which branch (assembly mode) the mechanism is.

    Attributes
    ----------
    why : str
        ``"jump"``: too far from the last state for one call; ``"dead point"``: the mechanism is
        close to a configuration from which it may continue on several branches; ``"gain"``: noise
        would be amplified too much; ``"time"``: the time went back, as at the start of another run;
        ``"lost"``: one of the last three was raised by an earlier call; ``"rows"``: rows that were
        left out as redundant would open; ``"reach"``: no path of closed states leads there;
        ``"control"``: the motors lose control of a joint on the way.
    q : ndarray or None, shape (nq,)
        For `connect`: the configuration nearest to the other end that was reached.
    distance : float
        For `connect`: the distance that is left, scaled; nan otherwise.
    steps : int
        For `connect`: the number of steps of the search.
    apart : tuple of str
        For `connect`: signs that prove that there is no path without a singularity.

    See Also
    --------
    ClosedStateEstimator : raises it, and keeps its last state.
    SingularityError : for a singular configuration.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> try:
    ...     hc.ClosedStateEstimator(mech).state([0.5, 2.5], [0.0, 0.0])
    ... except hc.BranchError as error:
    ...     print(error.why)
    jump
    """

    def __init__(
        self,
        message: str,
        *,
        why: str = "",
        q: NDArray[np.float64] | None = None,
        distance: float = float("nan"),
        steps: int = 0,
        apart: Iterable[str] = (),
    ) -> None:
        super().__init__(message)
        self.why, self.q, self.distance = why, q, distance
        self.steps, self.apart = steps, tuple(apart)


class SingularityError(HoloctlError):
    """The matrix of a linear system is singular, or nearly, at this state.

    Attributes
    ----------
    condition : float
        Condition number of the scaled matrix (inf if it is rank-deficient).
    names : tuple of str
        The joints or rows concerned; for a path, the coordinates that move most in `motion`.
    kind : str
        For a path or a run: ``"type 2"`` (motors do not determine the motion), ``"type 1"`` (the
        task does not), ``"type 1 and type 2"``; otherwise empty.
    value : float
        For a path or a run: the smallest singular value there, scaled, of gamma' B, or of the task.
    place, time : float
        For a path: its parameter there, and the time, s; nan if the path has no times yet. In a
        simulation the time.
    q : ndarray or None, shape (nq,)
        For a path or a run: the configuration there, or the last one that was reached before.
    motion : str
        For a path or a run: the motion that is lost, in words.

    See Also
    --------
    partition : raises it if the chosen coordinates do not determine the others.
    mobility : examines singular configurations.
    retime : refuses paths that meet one.
    BranchError : for measurements that do not determine the branch.

    Examples
    --------
    The rocker of a four-bar does not determine the crank where crank and coupler are in line:

    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> q, _ = hc.assemble(mech, [0.5, 0.0, 1.0], locked=["coupler"])
    >>> try:
    ...     hc.partition(mech, q, independent=["rocker"])
    ... except hc.SingularityError as error:
    ...     print(error.names)
    ('crank', 'coupler')
    """

    def __init__(
        self,
        message: str,
        *,
        condition: float = float("inf"),
        names: Iterable[str] = (),
        kind: str = "",
        value: float = float("nan"),
        place: float = float("nan"),
        time: float = float("nan"),
        q: NDArray[np.float64] | None = None,
        motion: str = "",
    ) -> None:
        super().__init__(message)
        self.condition, self.names, self.kind = condition, tuple(names), kind
        self.value, self.place, self.time, self.q, self.motion = value, place, time, q, motion


class InconsistentError(HoloctlError):
    """A state, target or result contradicts the constraints or the equation of motion.

    Attributes
    ----------
    residual : float
        Size of the contradiction, in the scaled units that the message names.

    See Also
    --------
    partition : raises it for a configuration that is not closed.
    corrected : projects a state onto the constraints.
    assemble : closes larger errors.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> try:
    ...     hc.partition(mech, mech.reference + 0.01)
    ... except hc.InconsistentError as error:
    ...     print(f"{error.residual:.0e}")
    2e-02
    """

    def __init__(self, message: str, *, residual: float = float("nan")) -> None:
        super().__init__(message)
        self.residual = residual


class LimitError(HoloctlError):
    """The request exceeds limits of motors or joints.

    Attributes
    ----------
    names : tuple of str
        The limits that are exceeded: motors by name, those of joints as ``"name.position"``,
        ``"name.velocity"`` or ``"name.acceleration"``; unilateral contacts as ``"name.slides"``,
        ``"name.lifts"`` or ``"name.presses"``.
    residual : float
        For a requested pose, the remaining error, scaled.
    q : ndarray or None, shape (nq,)
        For a requested pose, the nearest configuration found.

    See Also
    --------
    limited_inverse_dynamics : raises it under the policy ``"raise"``.
    assemble : raises it with ``within_limits=True``.
    Limits : limits of motors and joints.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> strict = hc.WithinLimits(hc.Limits(effort=0.5), policy="raise")
    >>> try:
    ...     hc.limited_inverse_dynamics(mech, *hc.assemble(mech), [0.0, 0.0], strict)
    ... except hc.LimitError as error:
    ...     print(error.names)
    ('motor_left', 'motor_right')
    """

    def __init__(
        self,
        message: str,
        *,
        names: Iterable[str] = (),
        residual: float = float("nan"),
        q: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__(message)
        self.names, self.residual, self.q = tuple(names), residual, q


class NotActuatedError(HoloctlError):
    """Torques were requested of a mechanism that has no motor, or no motion for motors to drive.

    See Also
    --------
    methods.is_fully_actuated : whether motors determine every motion.
    mobility : names the motions that no motor drives.

    Examples
    --------
    >>> import dataclasses, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> passive = dataclasses.replace(mech, actuated=(), limits=None)
    >>> try:
    ...     hc.PreparedInverseDynamics(passive)
    ... except hc.NotActuatedError as error:
    ...     print(error)
    five_bar has no motors, so there are no torques
    """


class SweepError(HoloctlError):
    """An item of a sweep has no value for a technical reason: its worker process died, or its
    arguments or its result cannot be pickled.

    Attributes
    ----------
    item : int or None
        The index of the item, if it is known.

    See Also
    --------
    sweep : returns it in the place of a value.
    results.Sweep : lists the items that failed.
    """

    def __init__(self, message: str, *, item: int | None = None) -> None:
        super().__init__(message)
        self.item = item


def has_time(error: BaseException) -> bool:
    """Whether an error got the time of a run, as those of a caller's functions do."""
    time = getattr(error, "time", float("nan"))
    return isinstance(time, (int, float)) and bool(np.isfinite(time))


def _rebuild(
    cls: type[HoloctlError], args: tuple[object, ...], state: dict[str, object]
) -> HoloctlError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error
