"""Slower along what was asked for, until it is within limits.

    x(s) = base + s (asked - base)        lower <= x(s) <= upper,  the largest s in [0, 1]

for efforts and accelerations alike: both are affine in s. Every bound leaves an interval of s, so
the answer is in closed form.
"""

from __future__ import annotations

from holoctl.base.checks import Vector

__all__ = ["largest_scale"]


def largest_scale(
    base: Vector, asked: Vector, lower: Vector, upper: Vector
) -> tuple[float | None, int]:
    """The largest s in [0, 1] that is within all bounds, None where none is; and the place of what
    limits it."""
    least, most, which = 0.0, 1.0, 0
    bounds = zip(base.tolist(), asked.tolist(), lower.tolist(), upper.tolist(), strict=True)
    for i, (x, y, lo, hi) in enumerate(bounds):
        d = y - x
        if d > 0.0:
            first, last = (lo - x) / d, (hi - x) / d
        elif d < 0.0:
            first, last = (hi - x) / d, (lo - x) / d
        elif lo <= x <= hi:
            continue
        else:
            return None, i
        if last < most:
            most, which = last, i
        least = max(least, first)
    return (most if least <= most else None), which
