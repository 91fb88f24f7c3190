"""The definition of rows between two frames, as data that all evaluations of rows use.

A row *along* a vector n is a wrench w at an arm s, and its error a projection on n:

    error  n . d                  w = (n, s x n)        d = p2 - p1, from frame 1 to frame 2
    error  n . s, no force        w = (0, s x n)        where s is a direction, not a point

| kind      | n                    | s                    | stays                                  |
|-----------|----------------------|----------------------|----------------------------------------|
| linear    | a, fixed in frame 1  | origin of frame 2    | the point 2 on a plane of body 1       |
| slot      | a, fixed in frame 2  | origin of frame 1    | the point 1 on a plane of body 2       |
| direction | a, fixed in frame 1  | b, fixed in frame 2  | a at right angles to b                 |
| rod       | d / L                | origin of frame 2    | the distance: error (d . d - L^2) / 2L |

If n and s belong to the same frame, a row is the velocity along, or about, an axis of that frame.
It is not the rate of any position, so it has no error, and only tasks use it: `own_axes`.

A row *composed* of such rows x is a function f(x), by the chain rule:

    error f(x)        w = f_x w_x        drift = f_x drift_x + xdot' f_xx xdot

| kind      | f                                                                                    |
|-----------|--------------------------------------------------------------------------------------|
| screw     | pitch wrap(z / pitch - angle): z is the linear row along z of frame 1, the angle     |
|           | that of frame 2 about it, atan2(y1 . x2 - x1 . y2, x1 . x2 + y1 . y2)                |

Rows of an *orientation* (``2 x_i`` of the quaternion of R1^T R2) are a kind of their own. Errors,
rates and drift are derived in docs/derivations.md, "Closure rows" and "Rows in a tick".

A new kind is a value of `Along` or `Composed`, and a function that makes its `Row`. No other code
depends on the kind: a user-defined one is as fast as these, and compiles.

See Also
--------
protocols.wrench_rows : binds rows to a model.
protocols.Constraint : a constraint of your own.

Examples
--------
>>> import holoctl as hc
>>> row = hc.protocols.kinds.rod("distance", length=0.3)
>>> row.label, row.size, row.kind.point
('distance', 0.3, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holoctl.base.checks import number, quoted, vector
from holoctl.base.errors import InputError
from holoctl.base.renamed import former_names

__all__ = [
    "DIRECTION",
    "LINEAR",
    "ORIENTATION",
    "ROD",
    "SCREW",
    "SLOT",
    "Along",
    "Composed",
    "Kind",
    "Orientation",
    "Row",
    "direction",
    "linear",
    "orientation",
    "rod",
    "screw",
    "slot",
]

OPPOSITE_AXES = 0.2
"""The angle of a screw is in doubt if 1 + z1 . z2 of its axes is smaller."""

SHORTEST_NORMAL = 1e-12
"""The direction of a shorter vector of a row is undefined."""


@dataclass(frozen=True)
class Along:
    """Rows along a vector.

    Attributes
    ----------
    normal : int or None
        The frame, 1 or 2, in which the vector a of a row is fixed; None: n is d / L. For cosines
        always 1, because frame 2 would give the same row with its vectors exchanged.
    point : bool
        Whether s is the origin of the other frame, and the row a length with a force; else s is
        the vector b of the row, fixed in the other frame, and the row is a cosine.
    own_axes : bool
        Whether s belongs to the frame that n is fixed in, and the row is a rate only.
    """

    normal: int | None
    point: bool = True
    own_axes: bool = False

    def __post_init__(self) -> None:
        there_are = (1, 2, None) if self.point else (1,)
        if self.normal not in ((1, 2) if self.own_axes else there_are):
            raise InputError(f"no such rows along a vector: normal={self.normal}, {self.point=}")

    @property
    def arm(self) -> int:
        """The frame that s belongs to."""
        if self.own_axes and self.normal is not None:
            return self.normal
        return 1 if self.normal == 2 else 2


@former_names(guard="doubt")
@dataclass(frozen=True)
class Composed:
    """Rows that are a function f of rows along vectors between the same frames.

    Attributes
    ----------
    parts : tuple of Row
        The rows x.
    value : function (x, size, atan2, floor) -> f
        It uses arithmetic and these two functions only, because x are floats or CasADi expressions;
        `size` is that of the `Row`.
    gradient : function (x, size) -> f_x
    curvature : function (x, xdot, size) -> float
        ``xdot' f_xx xdot``.
    guard : function (x) -> number
        Not negative; at one or more, the row is refused, because f is nearly not smooth.
    point : bool
        Whether the row is a length; else an angle.
    analytic : bool
        Whether f has no stops or dwells, so that a row which is zero in a region is zero always.
    """

    parts: tuple[Row, ...]
    value: Callable[[Sequence[Any], float, Callable[..., Any], Callable[..., Any]], Any]
    gradient: Callable[[Sequence[float], float], Sequence[float]]
    curvature: Callable[[Sequence[float], Sequence[float], float], float]
    guard: Callable[[Sequence[Any]], Any]
    point: bool = True
    analytic: bool = False

    def __post_init__(self) -> None:
        parts: Any = self.parts
        object.__setattr__(self, "parts", tuple(parts) if isinstance(parts, Sequence) else ())
        for what in ("value", "gradient", "curvature", "guard"):
            function: Any = getattr(self, what)
            if not callable(function) or type(function).__hash__ is None:
                raise InputError(f"a composed row: {what} must be a function, and hashable")
        if not self.parts or not all(
            isinstance(part, Row) and isinstance(part.kind, Along) for part in self.parts
        ):
            raise InputError("a composed row is made of rows along vectors, one or more")


@dataclass(frozen=True)
class Orientation:
    """Rows of the rotation between the frames; angles."""

    point: bool = False


Kind = Along | Composed | Orientation
"""The kind of a row: one of three sorts, with its parameters."""

LINEAR = Along(normal=1)
SLOT = Along(normal=2)
DIRECTION = Along(normal=1, point=False)
ROD = Along(normal=None)
ORIENTATION = Orientation()


@dataclass(frozen=True)
class Row:
    """One row between frames 1 and 2: made by `linear`, `slot`, `direction`, `orientation`, `rod`,
    `screw`; `size` is the length of a rod, m, or the pitch of a screw, m/rad."""

    kind: Kind
    label: str
    a: Sequence[float] = (0.0, 0.0, 0.0)
    b: Sequence[float] = (0.0, 0.0, 0.0)
    component: int = 0
    size: float = 0.0

    def __post_init__(self) -> None:
        owner = f"row {self.label!r}"
        if not isinstance(self.label, str):
            raise InputError(f"the label of a row must be text; got {quoted(self.label)}")
        for what in ("a", "b"):
            x = vector(f"{owner}: {what}", getattr(self, what), 3, "axes of its frame")
            object.__setattr__(self, what, tuple(x.tolist()))
        object.__setattr__(self, "size", number(f"{owner}: size", self.size))
        if self.component not in (0, 1, 2):
            raise InputError(f"{owner}: component must be 0, 1 or 2; got {quoted(self.component)}")
        if isinstance(self.kind, Along) and (wrong := _wrong(self.kind, self)):
            raise InputError(f"{owner}: {wrong}")


def _wrong(kind: Along, row: Row) -> str:
    """The fault in the numbers of a row along a vector; empty if there is none."""
    if kind.normal is None:
        return "" if row.size > 0.0 else f"its length must be above zero; got {row.size:.6g} m"
    vectors = {"a": row.a} if kind.point else {"a": row.a, "b": row.b}
    none = [what for what, x in vectors.items() if not math.hypot(*x) > SHORTEST_NORMAL]
    return f"vector {none[0]} has no direction; got {vectors[none[0]]}" if none else ""


def linear(label: str, n: Sequence[float]) -> Row:
    """``n . (p2 - p1) = 0`` with n fixed in frame 1."""
    return Row(LINEAR, label, a=n)


def slot(label: str, n: Sequence[float]) -> Row:
    """``n . (p2 - p1) = 0`` with n fixed in frame 2."""
    return Row(SLOT, label, a=n)


def direction(label: str, a: Sequence[float], b: Sequence[float]) -> Row:
    """``a . b = 0`` with a fixed in frame 1 and b in frame 2."""
    return Row(DIRECTION, label, a=a, b=b)


def orientation(label: str, component: int) -> Row:
    """``2 x_i = 0`` with (w, x) the quaternion of R1^T R2, w >= 0."""
    return Row(ORIENTATION, label, component=component)


def rod(label: str, length: float) -> Row:
    """``(d . d - L^2) / (2 L) = 0`` with d = p2 - p1: the distance stays L."""
    return Row(ROD, label, size=length)


def screw(label: str, pitch: float) -> Row:
    """``pitch wrap(z / pitch - angle) = 0``: the frames turn about z as they move along it."""
    if number(f"row {label!r}: pitch", pitch) == 0.0:
        raise InputError(f"row {label!r}: the pitch must not be zero, m/rad")
    return Row(SCREW, label, size=pitch)


# ------------------------------------------------------------------------------- the screw

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def _sine_cosine(x: Sequence[Any]) -> tuple[Any, Any]:
    """Sine and cosine of the angle of frame 2 about z of frame 1, times 1 + z1 . z2."""
    _, yx, xy, xx, yy = x
    return yx - xy, xx + yy


def _screw(
    x: Sequence[Any], pitch: float, atan2: Callable[..., Any], floor: Callable[..., Any]
) -> Any:
    turns = x[0] / pitch - atan2(*_sine_cosine(x))
    return pitch * (turns - 2.0 * math.pi * floor((turns + math.pi) / (2.0 * math.pi)))


def _screw_gradient(x: Sequence[float], pitch: float) -> Sequence[float]:
    S, C = _sine_cosine(x)
    along_S, along_C = -pitch * C / (S * S + C * C), pitch * S / (S * S + C * C)
    return (1.0, along_S, -along_S, along_C, along_C)


def _screw_curvature(x: Sequence[float], xdot: Sequence[float], pitch: float) -> float:
    (S, C), (Sdot, Cdot) = _sine_cosine(x), _sine_cosine(xdot)
    N = S * S + C * C
    found: float = 2.0 * pitch * (C * Sdot - S * Cdot) * (S * Sdot + C * Cdot) / (N * N)
    return found


def _screw_guard(x: Sequence[Any]) -> Any:
    """Large if the axes are nearly opposite, where the angle is undefined."""
    S, C = _sine_cosine(x)
    return OPPOSITE_AXES**2 / (S * S + C * C)


SCREW = Composed(
    (linear("z", _Z), direction("yx", _Y, _X), direction("xy", _X, _Y),
     direction("xx", _X, _X), direction("yy", _Y, _Y)),
    _screw, _screw_gradient, _screw_curvature, _screw_guard, analytic=True,
)  # fmt: skip
