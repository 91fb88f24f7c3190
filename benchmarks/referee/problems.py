"""The problems, in the order of the table."""

from __future__ import annotations

from referee.andrews import A03
from referee.bricard import bricard
from referee.elsewhere import BARS, CAM
from referee.four_bar import REGULAR
from referee.four_bars import four_bars
from referee.governor import A05
from referee.pendulum import A01
from referee.problem import Problem
from referee.slider_cranks import EQUAL_BARS, SPATIAL

CUTS = tuple(f"h{i}" for i in range(1, 7))
"""The hinges of Bricard's mechanism."""
WINDOWS = (1, 2, 10, 40)
"""Of the N four-bars."""

PROBLEMS: tuple[Problem, ...] = (
    A01, *map(four_bars, WINDOWS), A03, *map(bricard, CUTS), A05, SPATIAL, EQUAL_BARS, REGULAR,
    CAM, BARS,
)  # fmt: skip
