"""The motion on which motors, or a task, have the least hold, in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holoctl.base.checks import Vector, named, verb
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["LostMotion", "lost_motion"]

SHARE = 0.3
"""A coordinate is named in a motion if its scaled rate is more than this share of the largest."""

MOST_NAMED = 4
"""The largest number of coordinates that are named; with their ratio, if these are all."""


class LostMotion(NamedTuple):
    """The motion on which the motors, or a task, have the least hold.

    Attributes
    ----------
    value : float
        The smallest singular value, scaled.
    names : tuple of str
        The coordinates that move most, with the largest first.
    words : str
        A sentence part, ``"'a' and 'b' move while ..."``.
    """

    value: float
    names: tuple[str, ...]
    words: str


def lost_motion(mech: Mechanism, value: float, moving: Vector, held: str) -> LostMotion:
    """A motion in words, from its scaled rates, and what is held."""
    size = np.abs(moving)
    which = [i for i in np.argsort(-size).tolist() if size[i] > SHARE * size.max()]
    names = tuple(mech.coordinate_names[i] for i in which)
    rates = mech.column_scale[which] * moving[which]
    ratio = " : ".join(f"{x:.2g}" for x in (rates / rates[0]).tolist())
    at = f" ({ratio})" if 1 < len(which) <= MOST_NAMED else ""
    who = named(names, MOST_NAMED, "other")
    return LostMotion(value, names, f"{who} {verb(names, 'moves', 'move')}{at} while {held}")
