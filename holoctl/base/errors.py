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
]


class HoloctlError(Exception):
    """Root of the family: catch this to catch everything holoctl raises on purpose."""


class InputError(HoloctlError, ValueError):
    """An argument has the wrong type, shape, unit, name or value."""


class LoadError(HoloctlError):
    """A robot description cannot be read.

    Attributes
    ----------
    file, key : str or None
        The file, and the entry in it, that is at fault.
    line : int or None
        Line in the file, counted from 1.
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
    """

    def __init__(self, message: str, *, why: str = "") -> None:
        super().__init__(message)
        self.why = why


class SingularityError(HoloctlError):
    """The matrix of a linear system is singular, or nearly, at this state.

    Attributes
    ----------
    condition : float
        Condition number of the scaled matrix (inf if it is rank-deficient).
    names : tuple of str
        The joints or rows concerned.
    """

    def __init__(
        self, message: str, *, condition: float = float("inf"), names: Iterable[str] = ()
    ) -> None:
        super().__init__(message)
        self.condition, self.names = condition, tuple(names)


class InconsistentError(HoloctlError):
    """A state, target or result contradicts the constraints or the equation of motion.

    Attributes
    ----------
    residual : float
        Size of the contradiction, in the scaled units that the message names.
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
        ``"name.velocity"`` or ``"name.acceleration"``.
    residual : float
        For a requested pose, the remaining error, scaled.
    q : ndarray or None, shape (nq,)
        For a requested pose, the nearest configuration found.
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
    """Torques were requested of a mechanism that has no motor, or no motion for motors to drive."""


class SweepError(HoloctlError):
    """An item of a sweep has no value for a technical reason: its worker process died, or its
    arguments or its result cannot be pickled.

    Attributes
    ----------
    item : int or None
        The index of the item, if it is known.
    """

    def __init__(self, message: str, *, item: int | None = None) -> None:
        super().__init__(message)
        self.item = item


def _rebuild(
    cls: type[HoloctlError], args: tuple[object, ...], state: dict[str, object]
) -> HoloctlError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error
