"""Pictures of closing-axes.md: a joint that is cut, what each holds, spins, axes, where to cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from style import (
    BLUE,
    BODY,
    CLOSURE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    RED,
    SOFT,
    arrow,
    bar,
    figure,
    frame,
    hinge,
    note,
    sketch,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cut_joint() -> Figure:
    """The same two bars: with their hinge; cut, each with a frame; with what is between them."""
    fig, panels = figure(7.0, 2.1, 1, 3)
    left, right, apart = np.array([-0.8, -0.5]), np.array([0.8, -0.5]), np.array([0.75, 0.5])
    titles = ("a hinge", "cut: frame a, frame b", "two of its rows: not zero yet")
    for ax, title in zip(panels, titles, strict=True):
        sketch(ax, margin=0.1).set_title(title)
    bar(panels[0], left, (0, 0), BLUE)
    bar(panels[0], right, (0, 0), GREEN)
    hinge(panels[0], (0, 0))
    for ax in panels[1:]:
        bar(ax, left, (0, 0), BLUE)
        bar(ax, right + apart, apart, GREEN)
        frame(ax, (0, 0), 0.25, 0.38)
        frame(ax, apart, 0.9, 0.38)
        note(ax, (0, 0), "a", BLUE, offset=(-2, -15))
        note(ax, apart, "b", GREEN, offset=(10, -6))
    way = np.array([np.cos(0.25), np.sin(0.25)])
    x = (apart @ way) * way
    ax = panels[2]
    ax.plot(*np.array([np.zeros(2), x, apart]).T, color=RED, linestyle="--", linewidth=1.3)
    note(ax, 0.7 * x, "row x", RED, offset=(0, -14))
    note(ax, 0.5 * (x + apart), "row y", RED, offset=(-36, 0))
    return fig


def table() -> Figure:
    """Which of the six axes each joint holds: from the table of the library itself."""
    from holoctl.constraints.closure import JOINTS

    columns = ("x", "y", "z", "rx", "ry", "rz")
    fig, ax = figure(5.2, 3.2)
    ax.grid(visible=False)
    for j, rows in enumerate(JOINTS.values()):
        held = {row.label for row in rows}
        for i, column in enumerate(columns):
            tied = "screw" in held and column in ("z", "rz")
            color = ORANGE if tied else BLUE if column in held else "white"
            edge = FAINT if color == "white" else color
            ax.add_patch(
                Rectangle((i - 0.42, j - 0.38), 0.84, 0.76, facecolor=color, edgecolor=edge)
            )
        note(ax, (5.75, j), f"{len(rows)} rows", SOFT, offset=(0, -3), annotation_clip=False)
    ax.set(xlim=(-0.6, 6.5), ylim=(len(JOINTS) - 0.5, -0.6))
    ax.set_xticks(range(6), columns)
    ax.set_yticks(range(len(JOINTS)), list(JOINTS))
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelcolor=INK)
    for side in ax.spines.values():
        side.set_visible(False)
    words = ((BLUE, "\u25a0 held"), (ORANGE, "\u25a0 tied to each other"), (SOFT, "\u25a1 free"))
    for x, (color, word) in zip((0.02, 0.24, 0.62), words, strict=True):
        ax.text(x, -0.04, word, color=color, transform=ax.transAxes, va="top")
    return fig


def ball(ax: Axes, at: Any, way: float) -> None:
    """A ball in its cup, which opens along a direction."""
    at = np.asarray(at, dtype=float)
    angles = way + np.linspace(0.9, 2 * np.pi - 0.9, 50)
    ax.plot(at[0] + 0.17 * np.cos(angles), at[1] + 0.17 * np.sin(angles), color=SOFT, linewidth=3)
    ax.plot(*at, "o", color=INK, markersize=10, zorder=6)


def cross(ax: Axes, at: Any) -> None:
    """A universal joint: two axes across each other."""
    x, y = at
    for dx, dy in ((0.16, 0.0), (0.0, 0.16)):
        ax.plot([x - dx, x + dx], [y - dy, y + dy], color=INK, linewidth=4, zorder=6)
    ax.plot([x], [y], "o", color=INK, markersize=5, zorder=7)


def spin() -> Figure:
    """A rod with two balls, with a universal joint and a ball, and as a distance."""
    fig, panels = figure(7.0, 1.9, 1, 3)
    titles = (
        "ball, ball: it may spin",
        "universal, ball: it may not",
        "hc.Rod: a distance, no body",
    )
    for ax, title in zip(panels, titles, strict=True):
        sketch(ax, margin=0.12).set_title(title)
        for x in (0.0, 2.0):
            bar(ax, (x, -0.75), (x, -0.12), FAINT, 7)
    for ax in panels[:2]:
        bar(ax, (0, 0), (2, 0), BLUE, 5)
        ball(ax, (2, 0), np.pi)
    ball(panels[0], (0, 0), 0.0)
    cross(panels[1], (0, 0))
    angles = np.linspace(-2.4, 2.4, 60)
    panels[0].plot(1 + 0.12 * np.cos(angles), 0.42 * np.sin(angles), color=RED, linewidth=1.5)
    end = (1 + 0.12 * np.cos(2.4), 0.42 * np.sin(2.4))
    arrow(panels[0], (end[0] + 0.03, end[1] + 0.06), (end[0] - 0.03, end[1] - 0.06), RED)
    note(panels[0], (1, 0.42), "idle", RED, offset=(10, 0))
    ax = panels[2]
    ax.plot([0, 2], [0, 0], color=BLUE, linestyle="--", linewidth=1.6)
    ax.plot([0, 2], [0, 0], "o", color=INK, markersize=7)
    note(ax, (1, 0), "length: one row", BLUE, offset=(-34, 6))
    for ax in panels:
        ax.plot([0], [0.6], alpha=0.0)
    return fig


def axis(ax: Axes, at: Any, way: float, color: str, name: str, size: float = 0.75) -> None:
    """An axis z with its name at the end."""
    end = np.asarray(at) + size * np.array([np.cos(way), np.sin(way)])
    arrow(ax, at, end, color, width=2.2)
    note(ax, end, name, color, offset=(5, -4))


def which_way() -> Figure:
    """Frames of a hinge seen across its pin."""
    fig, panels = figure(7.0, 2.2, 1, 3)
    titles = ("the same way: closes", "opposite ways: refused", "across the pin: another joint")
    up, down, side = np.pi / 2, -np.pi / 2, 0.0
    for ax, title, ways in zip(panels, titles, ((up, up), (up, down), (side, side)), strict=True):
        sketch(ax, margin=0.14).set_title(title)
        ax.plot([0, 0], [-0.75, 0.75], color=BODY, linewidth=9, solid_capstyle="butt", zorder=2)
        bar(ax, (-1.3, 0.18), (0, 0.18), BLUE, 10)
        bar(ax, (0, -0.18), (1.3, -0.18), GREEN, 10)
        right = title.startswith("across")
        axis(ax, (-0.12, 0.18), ways[0], BLUE, "" if right else "z of a", 0.8)
        axis(ax, (0.12, -0.18), ways[1], GREEN, "z of b", 1.7 if right else 0.8)
        if right:
            note(ax, (0.7, 0.18), "z of a", BLUE, offset=(3, 3))
        ax.plot([0, 0], [-1.1, 1.1], alpha=0.0)
    return fig


def where() -> Figure:
    """The five-bar cut at three places; the two branches of the tree in their colours."""
    fig, panels = figure(7.0, 2.5, 1, 3)
    at = {"motor_left": (-0.5, 0.0), "elbow_left": (-1.0, 0.8), "tip": (0.0, 1.6),
          "elbow_right": (1.0, 0.8), "motor_right": (0.5, 0.0)}  # fmt: skip
    names = list(at)
    said = {"tip": "at the tip: two short branches", "elbow_left": "at an elbow: as good",
            "motor_left": "at a motor: better not"}  # fmt: skip
    for ax, (cut, title) in zip(panels, said.items(), strict=True):
        sketch(ax, margin=0.12).set_title(title)
        k = names.index(cut)
        for i in range(4):
            # bars before the cut hang from the left motor, those behind it from the right one
            bar(ax, at[names[i]], at[names[i + 1]], BLUE if i < k else GREEN)
        for name, place in at.items():
            motor = name.startswith("motor")
            hinge(ax, place, CLOSURE if name == cut else INK, motor=motor, ground=motor)
            if name == cut:
                ax.plot(*place, "x", color=CLOSURE, markersize=17, markeredgewidth=2.2, zorder=8)
    return fig


PICTURES = {
    "closing-cut-joint": cut_joint,
    "closing-table": table,
    "closing-spin": spin,
    "closing-z": which_way,
    "closing-where": where,
}
