"""What a row between two frames is, as data: all that reads rows reads it here.

A row *along* a vector n is a wrench w at an arm s, and its error a projection on n:

    error  n . d                  w = (n, s x n)        d = p2 - p1, from frame 1 to frame 2
    error  n . s, no force        w = (0, s x n)        where s is a direction, not a point

| kind      | n                    | s                    | stays                                  |
|-----------|----------------------|----------------------|----------------------------------------|
| linear    | a, fixed in frame 1  | origin of frame 2    | the point 2 on a plane of body 1       |
| slot      | a, fixed in frame 2  | origin of frame 1    | the point 1 on a plane of body 2       |
| direction | a, fixed in frame 1  | b, fixed in frame 2  | a at right angles to b                 |
| rod       | d / L                | origin of frame 2    | the distance: error (d . d - L^2) / 2L |

Rows of an *orientation* (``2 x_i`` of the quaternion of R1^T R2) are a kind of their own. Errors,
rates and drift are derived in docs/derivations.md, "Closure rows" and "Rows in a tick".

A new kind along a vector is one line of `KINDS`, and a function that makes its `Row`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["KINDS", "Along", "Row", "direction", "linear", "orientation", "rod", "slot"]


@dataclass(frozen=True)
class Along:
    """Rows along a vector.

    Attributes
    ----------
    normal : int or None
        The frame, 1 or 2, that the vector a of a row is fixed in; None: n is d / L.
    point : bool
        Whether s is the origin of the other frame, and the row a length with a force; else s is
        the vector b of the row, fixed in the other frame, and the row is a cosine.
    """

    normal: int | None
    point: bool = True

    @property
    def arm(self) -> int:
        """The frame that s belongs to: the one that n is not fixed in."""
        return 1 if self.normal == 2 else 2


KINDS: dict[str, Along | None] = {
    "linear": Along(normal=1),
    "slot": Along(normal=2),
    "direction": Along(normal=1, point=False),
    "rod": Along(normal=None),
    "orientation": None,  # not along a vector
}


@dataclass(frozen=True)
class Row:
    """One row between frames 1 and 2: see `linear`, `slot`, `direction`, `orientation`, `rod`."""

    kind: str
    label: str
    a: tuple[float, float, float] = (0.0, 0.0, 0.0)
    b: tuple[float, float, float] = (0.0, 0.0, 0.0)
    component: int = 0
    length: float = 0.0


def linear(label: str, n: Sequence[float]) -> Row:
    """``n . (p2 - p1) = 0`` with n fixed in frame 1."""
    return Row("linear", label, a=(n[0], n[1], n[2]))


def slot(label: str, n: Sequence[float]) -> Row:
    """``n . (p2 - p1) = 0`` with n fixed in frame 2."""
    return Row("slot", label, a=(n[0], n[1], n[2]))


def direction(label: str, a: Sequence[float], b: Sequence[float]) -> Row:
    """``a . b = 0`` with a fixed in frame 1 and b in frame 2."""
    return Row("direction", label, a=(a[0], a[1], a[2]), b=(b[0], b[1], b[2]))


def orientation(label: str, component: int) -> Row:
    """``2 x_i = 0`` with (w, x) the quaternion of R1^T R2, w >= 0."""
    return Row("orientation", label, component=component)


def rod(label: str, length: float) -> Row:
    """``(d . d - L^2) / (2 L) = 0`` with d = p2 - p1: the distance stays L."""
    return Row("rod", label, length=length)
