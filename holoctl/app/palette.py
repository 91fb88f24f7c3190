"""Colors of all pictures, of the view and of the pictures of the documentation.

The hues differ for the color-blind, and most of them in grey; in pictures of mechanisms the markers
differ too: a motor is a filled circle, a closure a ring, an open end a cross.
"""

from __future__ import annotations

__all__ = [
    "ALLOWED",
    "AXES",
    "BLUE",
    "BODIES",
    "BODY",
    "CLOSURE",
    "CURVES",
    "FAINT",
    "FORCE",
    "GREEN",
    "GROUND",
    "INK",
    "JOINT",
    "MOTOR",
    "OPEN",
    "ORANGE",
    "PALE",
    "PURPLE",
    "RED",
    "ROD",
    "SKY",
    "SOFT",
    "curve",
    "dash",
    "rgb",
]

INK = "#1f2a37"
"""Text, and lines in the foreground."""
SOFT = "#6b7786"
"""Axes and notes."""
FAINT = "#d5dbe2"
"""Grids, and other postures in the background."""
PALE = "#eef1f4"
"""Surfaces: the floor of the view, backgrounds."""
BLUE = "#0b5fa5"
ORANGE = "#e69000"
GREEN = "#12a378"
PURPLE = "#aa3377"
SKY = "#56b4e9"
RED = "#c8202f"

BODY = "#97a0ab"
"""Bodies in one color."""
BODIES = ("#8fb0d9", "#cfc36a", "#7fb894", "#9fd3e6", "#c59ab8")
"""Bodies in different colors, muted so that motors and closures are distinct from them."""
GROUND = "#4b5563"
"""Points and bodies that are fixed to the world."""
JOINT = INK
"""Joints without motors."""
MOTOR = ORANGE
"""Motors, and their efforts."""
CLOSURE = BLUE
"""Closures that hold, and other constraints between bodies."""
ROD = SOFT
"""Rods: constraints that keep a distance."""
OPEN = RED
"""Constraints that do not hold, limits that are exceeded, errors."""
FORCE = PURPLE
"""Contact forces, loads, and constraint forces."""
ALLOWED = GREEN
"""References, and what is within limits."""
AXES = (RED, GREEN, BLUE)
"""The axes x, y, z of a frame."""
CURVES = (BLUE, ORANGE, GREEN, PURPLE, SKY, SOFT)
"""Curves, in this order."""


def curve(i: int) -> str:
    """The color of curve i, from 0."""
    return CURVES[i % len(CURVES)]


def dash(i: int) -> str:
    """The line style of curve i, by matplotlib's names: two of one style differ in grey."""
    return ("-", "-", "--", "--", "-.", "-.")[i % len(CURVES)]


def rgb(color: str) -> tuple[int, int, int]:
    """Red, green and blue of a color of this file, each from 0 to 255."""
    red, green, blue = bytes.fromhex(color.removeprefix("#"))
    return red, green, blue
