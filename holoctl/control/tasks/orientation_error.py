"""How far a frame is turned from where it should be, about the axes that a task names.

From R to R_ref the frame turns by ``D = R_ref R'`` in fixed axes, or by ``D = R' R_ref`` in its own
(local). With the quaternion (w, x) of D, w >= 0:

    three axes      e = 2 atan2(|x|, w) x / |x|            the rotation vector of D
    one axis i      e = 2 atan2(x_i, w)                    its twist about that axis
    two axes        e = rotation vector of the swing       D less its twist about the third axis k:
                                                           D = twist swing, local: swing twist

so that two axes bring the third one in line, whatever the angle about it. Towards a reference at
rest de/dt is minus the rates about the axes where e is small; about one axis where the whole turn
is small. At half a turn e jumps to the other side: there are two ways back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import atan2, hypot, sqrt

from holoctl.base.errors import InputError
from holoctl.base.tolerances import NOT_A_ROTATION

__all__ = ["check_rotation", "quaternion", "turned_by"]

Numbers = Sequence[float]


def turned_by(axes: Sequence[int], local: bool) -> Callable[[Numbers], list[float]]:
    """A function of D, nine numbers row by row, that gives e about these axes, in their order."""
    if len(axes) == 3:
        order = list(axes)

        def of_all(D: Numbers) -> list[float]:
            w, *x = quaternion(D)
            e = _rotation_vector(w, x)
            return [e[i] for i in order]

        return of_all
    if len(axes) == 1:
        i = axes[0]

        def twist(D: Numbers) -> list[float]:
            found = quaternion(D)
            return [2.0 * atan2(found[1 + i], found[0])]

        return twist
    (k,) = {0, 1, 2} - set(axes)
    side, order = (1.0 if local else -1.0), list(axes)

    def swing(D: Numbers) -> list[float]:
        w, *x = quaternion(D)
        n = hypot(w, x[k])
        c, s = (w / n, x[k] / n) if n > 0.0 else (1.0, 0.0)
        i, j = (k + 1) % 3, (k + 2) % 3
        y = [0.0, 0.0, 0.0]  # c x - w s e_k - s (x cross e_k); the other way round: s (x cross e_k)
        y[i] = c * x[i] - side * s * x[j]
        y[j] = c * x[j] + side * s * x[i]
        e = _rotation_vector(n, y)
        return [e[i] for i in order]

    return swing


def _rotation_vector(w: float, x: Numbers) -> list[float]:
    n = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2])
    per = 2.0 * atan2(n, w) / n if n > 0.0 else 0.0
    return [per * x[0], per * x[1], per * x[2]]


def quaternion(R: Numbers) -> tuple[float, float, float, float]:
    """(w, x, y, z) of a rotation matrix, nine numbers row by row, w >= 0."""
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    if (trace := xx + yy + zz) > 0.0:
        s = 2.0 * sqrt(1.0 + trace)
        w, x, y, z = 0.25 * s, (zy - yz) / s, (xz - zx) / s, (yx - xy) / s
    elif xx >= yy and xx >= zz:
        s = 2.0 * sqrt(1.0 + xx - yy - zz)
        w, x, y, z = (zy - yz) / s, 0.25 * s, (xy + yx) / s, (xz + zx) / s
    elif yy >= zz:
        s = 2.0 * sqrt(1.0 + yy - xx - zz)
        w, x, y, z = (xz - zx) / s, (xy + yx) / s, 0.25 * s, (yz + zy) / s
    else:
        s = 2.0 * sqrt(1.0 + zz - xx - yy)
        w, x, y, z = (yx - xy) / s, (xz + zx) / s, (yz + zy) / s, 0.25 * s
    return (w, x, y, z) if w >= 0.0 else (-w, -x, -y, -z)


def check_rotation(R: Numbers) -> None:
    """Raise `InputError` for nine numbers that are no rotation.

    With singular values s: sum s^2 = 3 and product s = 1 are so together only where all are one.
    """
    xx, xy, xz, yx, yy, yz, zx, zy, zz = R
    squares = sum([x * x for x in R])
    volume = xx * (yy * zz - yz * zy) - xy * (yx * zz - yz * zx) + xz * (yx * zy - yy * zx)
    if not (abs(squares - 3.0) < NOT_A_ROTATION and abs(volume - 1.0) < NOT_A_ROTATION):
        raise InputError(
            f"the rotation of a pose must be one: finite, of determinant 1 (got {volume:.6g}, off "
            f"by {volume - 1.0:.2g}) and with columns at right angles (squares sum to "
            f"{squares:.6g} instead of 3, off by {squares - 3.0:.2g}); "
            "pin.Quaternion(R).normalized() makes one"
        )
