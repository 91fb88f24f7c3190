"""One look for all pictures of the documentation: colors, sizes, and what mechanisms are drawn of.

A topic module draws with these, or with plain matplotlib on the axes of `figure`:

    from style import BLUE, bar, figure, hinge, sketch

    def a_bar():
        fig, ax = figure(4.0, 2.5)
        sketch(ax)
        bar(ax, (0, 0), (1, 0.5), BLUE)
        hinge(ax, (0, 0), ground=True)
        return fig

    PICTURES = {"a-bar": a_bar}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from holoctl.app.palette import (
    BLUE,
    BODY,
    CLOSURE,
    FAINT,
    GREEN,
    INK,
    MOTOR,
    ORANGE,
    PURPLE,
    RED,
    SOFT,
)
from holoctl.app.style import look

__all__ = [
    "BLUE",
    "BODY",
    "CLOSURE",
    "FAINT",
    "GREEN",
    "INK",
    "LOOK",
    "MOTOR",
    "ORANGE",
    "PURPLE",
    "RED",
    "SOFT",
    "arrow",
    "bar",
    "figure",
    "frame",
    "hinge",
    "note",
    "sketch",
    "space",
    "turn",
]

LOOK = {
    **look(),
    "axes.titlelocation": "left",
    "axes.titlesize": 10.0,
    "figure.constrained_layout.use": False,  # sketches place their axes themselves
    "font.size": 9.0,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
}
"""matplotlib's settings while a picture is drawn; `python docs/pictures` sets them."""

Point = Sequence[float] | np.ndarray


def figure(
    width: float = 7.0, height: float = 3.6, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """A figure, inches (a page is 7 wide), and its axes, as `plt.subplots` gives them."""
    from matplotlib import pyplot as plt

    with mpl.rc_context(LOOK):
        return plt.subplots(rows, columns, figsize=(width, height), layout="constrained", **options)


def space(fig: Figure, place: Any = 111, elevation: float = 20.0, azimuth: float = -60.0) -> Any:
    """Axes in space on a figure, without walls; of `plt.figure(...)` or where a subplot was."""
    ax = fig.add_subplot(place, projection="3d")
    ax.view_init(elevation, azimuth)
    ax.set_axis_off()
    return ax


def sketch(ax: Axes, *, margin: float = 0.08) -> Axes:
    """Axes for a drawing: nothing around it, one scale both ways."""
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(margin)
    return ax


def bar(
    ax: Axes, a: Point, b: Point, color: str = BODY, width: float = 5.0, **options: Any
) -> None:
    """A body between two points."""
    ends = np.array([a, b])
    ax.plot(*ends.T, color=color, linewidth=width, solid_capstyle="round", **options)


def hinge(
    ax: Axes, at: Point, color: str = INK, *, motor: bool = False, ground: bool = False
) -> None:
    """A hinge: a ring; filled where a motor drives it; on a triangle where the world holds it."""
    if ground:
        ax.plot(at[0], at[1], marker=(3, 0, 0), markersize=17, color=FAINT, zorder=3)
    face = MOTOR if motor else "white"
    ax.plot(at[0], at[1], "o", markersize=8, color=color, markerfacecolor=face, zorder=5)


def arrow(
    ax: Axes, start: Point, end: Point, color: str = INK, *, width: float = 1.6, bend: float = 0.0
) -> None:
    """An arrow from start to end; bent to the left by `bend`, as a share of its length."""
    look = {"arrowstyle": "-|>", "color": color, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    look["connectionstyle"] = f"arc3,rad={-bend}"
    ax.annotate("", end, start, arrowprops=look, zorder=6)
    ax.plot([start[0], end[0]], [start[1], end[1]], alpha=0.0)  # so that the axes know of it


def turn(
    ax: Axes, centre: Point, radius: float, start: float, end: float, color: str = INK
) -> None:
    """An arc with an arrow's head, from one angle to another, rad from the x axis."""
    angles = np.linspace(start, end, 40)
    x, y = centre[0] + radius * np.cos(angles), centre[1] + radius * np.sin(angles)
    ax.plot(x[:-1], y[:-1], color=color, linewidth=1.4, zorder=6)
    arrow(ax, (x[-3], y[-3]), (x[-1], y[-1]), color, width=1.4)


def frame(ax: Axes, at: Point, angle: float = 0.0, size: float = 0.2, name: str = "") -> None:
    """A frame of two axes, x red and z blue (as `holoctl.draw` shows them), with its name."""
    for way, color in ((angle, RED), (angle + np.pi / 2, BLUE)):
        tip = np.asarray(at) + size * np.array([np.cos(way), np.sin(way)])
        arrow(ax, at, tip, color)
    if name:
        note(ax, at, name, offset=(-9, -11))


def note(
    ax: Axes, at: Point, text: str, color: str = INK, *, offset: Point = (6, 6), **options: Any
) -> None:
    """A word at a point, moved from it by points of print; `$q$` sets mathematics."""
    ax.annotate(text, at, offset, textcoords="offset points", color=color, zorder=7, **options)
