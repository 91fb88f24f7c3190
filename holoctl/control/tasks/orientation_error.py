"""The rotation error of a frame about the axes that a task names.

From R to R_ref the frame turns by ``D = R_ref R'`` in fixed axes, or by ``D = R' R_ref`` in its own
(local). With the quaternion (w, x) of D, w >= 0:

    three axes      e = 2 atan2(|x|, w) x / |x|            the rotation vector of D
    one axis i      e = 2 atan2(x_i, w)                    its twist about that axis
    two axes        e = rotation vector of the swing       D less its twist about the third axis k:
                                                           D = twist swing, local: swing twist

so that two axes align the third one, whatever the angle about it. For a constant reference de/dt
is minus the rates about the axes if e is small; for one axis if the whole rotation is small. At
half a turn e jumps to the other side, because both directions are equally short. The length of the
quaternion cancels out. The same functions evaluate floats and expressions, by `Operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import atan2, sqrt
from typing import Any, NamedTuple

from holoctl.base.errors import InputError
from holoctl.base.tolerances import NOT_A_ROTATION

__all__ = ["Operators", "check_rotation", "quaternion", "rotation_off", "turned_by"]

Numbers = Sequence[Any]
"""Floats, or expressions."""


class Operators(NamedTuple):
    """Operations that differ for floats and expressions.

    Attributes
    ----------
    atan2, sqrt : functions
    first : function (conditions, functions, x)
        The value at x of the function whose condition is the first that holds; the last function
        has no condition.
    upright : function (x)
        The list x, with all signs changed if the first entry is below zero.
    ratio : function (a, b, otherwise)
        a / b, or `otherwise` if b is not above zero.
    """

    atan2: Callable[[Any, Any], Any]
    sqrt: Callable[[Any], Any]
    first: Callable[[Numbers, Sequence[Callable[[Numbers], list[Any]]], Numbers], list[Any]]
    upright: Callable[[list[Any]], list[Any]]
    ratio: Callable[[Any, Any, float], Any]


def _first(
    conditions: Numbers, functions: Sequence[Callable[[Numbers], list[Any]]], x: Numbers
) -> list[Any]:
    if conditions[0]:
        return functions[0](x)
    return _first(conditions[1:], functions[1:], x) if len(functions) > 2 else functions[1](x)


FLOATS = Operators(
    atan2, sqrt, _first,
    lambda x: x if x[0] >= 0.0 else [-a for a in x],
    lambda a, b, otherwise: a / b if b > 0.0 else otherwise,
)  # fmt: skip


def turned_by(
    axes: Sequence[int], local: bool, do: Operators = FLOATS
) -> Callable[[Numbers], list[Any]]:
    """A function of D, nine numbers row by row, that gives e about these axes, in their order."""
    order = list(axes)
    if len(order) == 3:

        def of_all(D: Numbers) -> list[Any]:
            w, *x = quaternion(D, do)
            e = _rotation_vector(w, x, do)
            return [e[i] for i in order]

        return of_all
    if len(order) == 1:

        def twist(D: Numbers) -> list[Any]:
            found = quaternion(D, do)
            return [2.0 * do.atan2(found[1 + order[0]], found[0])]

        return twist
    (k,) = {0, 1, 2} - set(order)
    side = 1.0 if local else -1.0

    def swing(D: Numbers) -> list[Any]:
        w, *x = quaternion(D, do)
        n = do.sqrt(w * w + x[k] * x[k])
        c, s = do.ratio(w, n, 1.0), do.ratio(x[k], n, 0.0)
        i, j = (k + 1) % 3, (k + 2) % 3
        y: list[Any] = [
            0.0
        ] * 3  # c x - w s e_k - s (x cross e_k); the other way round: s (x cross e_k)
        y[i] = c * x[i] - side * s * x[j]
        y[j] = c * x[j] + side * s * x[i]
        e = _rotation_vector(n, y, do)
        return [e[i] for i in order]

    return swing


def _rotation_vector(w: Any, x: Numbers, do: Operators) -> list[Any]:
    n = do.sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    per = do.ratio(2.0 * do.atan2(n, w), n, 0.0)
    return [per * x[0], per * x[1], per * x[2]]


def quaternion(R: Numbers, do: Operators = FLOATS) -> list[Any]:
    """A multiple of the quaternion (w, x, y, z) of a rotation matrix, given as nine numbers row by
    row: w >= 0, length 2 to 4.

    The rows of 4 q q' are all multiples of q; a row with a large enough entry is taken.
    """
    xx, yy, zz = R[0], R[4], R[8]
    large = xx + yy + zz > 0.0, (xx >= yy) * (xx >= zz), yy >= zz
    return do.upright(do.first(large, (_of_w, _of_x, _of_y, _of_z), R))


def _of_w(R: Numbers) -> list[Any]:
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    return [1.0 + (xx + yy + zz), zy - yz, xz - zx, yx - xy]


def _of_x(R: Numbers) -> list[Any]:
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    return [zy - yz, 1.0 + xx - yy - zz, xy + yx, xz + zx]


def _of_y(R: Numbers) -> list[Any]:
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    return [xz - zx, xy + yx, 1.0 + yy - xx - zz, yz + zy]


def _of_z(R: Numbers) -> list[Any]:
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    return [yx - xy, xz + zx, yz + zy, 1.0 + zz - xx - yy]


def rotation_off(R: Numbers) -> tuple[Any, Any]:
    """The deviations of nine numbers from a rotation. With singular values s: sum s^2 = 3 and
    product s = 1 hold together only if all are one."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    squares = sum([x * x for x in R])
    volume = xx * (yy * zz - yz * zy) - xy * (yx * zz - yz * zx) + xz * (yx * zy - yy * zx)
    return squares - 3.0, volume - 1.0


def check_rotation(R: Numbers) -> None:
    """Raise `InputError` for nine numbers that are no rotation."""
    squares, volume = rotation_off(R)
    if not (abs(squares) < NOT_A_ROTATION and abs(volume) < NOT_A_ROTATION):
        raise InputError(
            f"the rotation of a pose must be a rotation matrix: finite, of determinant 1 (got "
            f"{1.0 + volume:.6g}, error {volume:.2g}) and with orthonormal columns (the squares "
            f"sum to {squares + 3.0:.6g} instead of 3, error {squares:.2g}); "
            "pin.Quaternion(R).normalized() makes one"
        )
