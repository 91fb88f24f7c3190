"""Pictures of the derivations and of the notation: what the letters mean, drawn."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, FancyBboxPatch
from style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    RED,
    SOFT,
    arrow,
    bar,
    figure,
    frame,
    hinge,
    note,
    sketch,
)

GROUND, CRANK, COUPLER, ROCKER = 3.0, 1.2, 3.2, 2.2
"""Lengths of the four-bar that is drawn."""


def elbow(a: np.ndarray, b: np.ndarray, to_a: float, to_b: float) -> np.ndarray:
    """The point above the line from a to b at these distances from both."""
    along = (b - a) / np.linalg.norm(b - a)
    d = float(np.linalg.norm(b - a))
    x = (d * d + to_a * to_a - to_b * to_b) / (2.0 * d)
    up = np.array([-along[1], along[0]])
    return a + x * along + np.sqrt(max(to_a * to_a - x * x, 0.0)) * up


def four_bar(crank: float) -> tuple[np.ndarray, ...]:
    """The four hinges at an angle of the crank, rad."""
    o, p = np.zeros(2), np.array([GROUND, 0.0])
    tip = CRANK * np.array([np.cos(crank), np.sin(crank)])
    return o, tip, elbow(tip, p, COUPLER, ROCKER), p


def cut_loop() -> Figure:
    """A four-bar, closed, and cut at one hinge."""
    fig, (left, right) = figure(7.0, 2.9, 1, 2)
    o, tip, top, p = four_bar(1.15)
    for ax in (left, right):
        sketch(ax)
        ax.plot([o[0], p[0]], [0.0, 0.0], color=FAINT, linewidth=2.0)
        bar(ax, o, tip)
    bar(left, tip, top)
    bar(left, top, p)
    for at, motor in ((tip, False), (top, False)):
        hinge(left, at, motor=motor)
    for ax in (left, right):
        hinge(ax, o, ground=True, motor=True)
        hinge(ax, p, ground=True)
    left.set_title("A loop: four hinges")

    turned = np.array([[np.cos(0.16), -np.sin(0.16)], [np.sin(0.16), np.cos(0.16)]])
    b = tip + turned @ (top - tip)
    bar(right, tip, b, GREEN)
    bar(right, p, top, BLUE)
    hinge(right, tip)
    frame(right, top, -0.3, 0.55)
    frame(right, b, 0.35, 0.55)
    right.plot(*np.array([top, b]).T, color=RED, linestyle=":", linewidth=2.0)
    note(right, top, "a", RED, offset=(-14, -8), weight="bold")
    note(right, b, "b", RED, offset=(-13, 5), weight="bold")
    note(right, 0.5 * (top + b), "open by d", RED, offset=(22, 0))
    note(right, 0.6 * p + 0.4 * top, "body 1", BLUE, offset=(10, -4))
    note(right, 0.6 * tip + 0.4 * b, "body 2", GREEN, offset=(-30, 12))
    right.set_title("A tree, and rows that hold b at a")
    return fig


def body(ax: Axes, at: tuple[float, float], color: str, angle: float = 0.0) -> None:
    """A body: a soft blob."""
    look = {"facecolor": color, "edgecolor": color, "alpha": 0.18, "zorder": 1}
    ax.add_patch(Ellipse(at, 2.3, 1.25, angle=angle, **look))


def rows_and_signs() -> Figure:
    """Frames a and b, the two linear rows in the plane, and what their multipliers do."""
    fig, (left, right) = figure(7.0, 2.35, 1, 2)
    a, b = np.zeros(2), np.array([1.15, 0.62])
    for ax in (left, right):
        ax.set_axis_off()
        ax.set_aspect("equal")
        body(ax, (-0.75, -0.2), BLUE, 15.0)
        body(ax, (1.85, 0.95), GREEN, 20.0)
        note(ax, (-1.4, -0.35), "body 1", BLUE, offset=(0, 0))
        note(ax, (2.1, 1.1), "body 2", GREEN, offset=(0, 0))
        ax.set_xlim(-2.1, 3.2)
        ax.set_ylim(-1.05, 1.75)
    frame(left, a, 0.0, 0.75)
    frame(left, b, 0.25, 0.55)
    note(left, a, "a", offset=(-11, -11), weight="bold")
    note(left, b, "b", offset=(6, -12), weight="bold")
    left.plot([0, b[0]], [0, b[1]], color=INK, linestyle=":", linewidth=1.4)
    note(left, 0.5 * b, "$d$", offset=(-6, 5))
    for x, end in ((0.0, a[1]), (b[0], b[1])):
        left.plot([x, x], [-0.62, end], color=SOFT, linestyle="--", linewidth=0.9)
    arrow(left, (0.0, -0.55), (b[0], -0.55), RED)
    note(left, (b[0], -0.55), r"row x: $\phi = x_1 \cdot d$", RED, offset=(6, -4))
    left.set_title("A row is where b is, along the axes of a")

    hinge(right, b, INK)
    force = np.array([1.25, 0.0])
    arrow(right, b, b + force, PURPLE, width=2.4)
    note(right, b + force, r"$\lambda\, x_1$ on body 2", PURPLE, offset=(-40, -14))
    arrow(right, b, b - force, SOFT, width=2.4)
    note(right, b - force, r"$-\lambda\, x_1$ on body 1", SOFT, offset=(-34, 8))
    note(right, b, "b", offset=(-3, -15), weight="bold")
    right.set_title(r"$\lambda > 0$ pushes the body of b along $+x_1$")
    return fig


def box(ax: Axes, x: float, words: str, below: str, color: str, width: float = 1.3) -> None:
    """A step: what comes out, and how it is computed below."""
    look = {"boxstyle": "round,pad=0.05,rounding_size=0.12", "linewidth": 1.4}
    ax.add_patch(
        FancyBboxPatch((x, 0.0), width, 0.8, facecolor="white", edgecolor=color, **look, zorder=2)
    )
    middle = {"ha": "center", "va": "center", "zorder": 7}
    ax.text(x + 0.5 * width, 0.4, words, color=color, fontsize=10.0, **middle)
    ax.text(x + 0.5 * width, -0.5, below, color=SOFT, fontsize=8.0, **middle)


def way_of_a_torque() -> Figure:
    """State, rows, basis, motion, torque."""
    fig, ax = figure(7.0, 1.7)
    ax.set_axis_off()
    ax.set_aspect("equal")
    steps = [
        (r"$q,\ v,\ t$", "measured, or\nassembled", INK, 1.2),
        (r"$\phi,\ G$, drift", "rows of the\nconstraints", BLUE, 1.75),
        (r"$\gamma$, bias", "what the rows\nleave", GREEN, 1.35),
        (r"$a = \gamma\,\ddot y + $bias", "the target of\nthe motors", GREEN, 2.2),
        (r"$w = M a + h - J^T f - F$", "one pass of\nNewton-Euler", PURPLE, 2.75),
        (r"$u$", r"$\gamma^T B u = \gamma^T w$", ORANGE, 0.9),
    ]
    x = 0.0
    for i, (words, below, color, width) in enumerate(steps):
        box(ax, x, words, below, color, width)
        if i:
            arrow(ax, (x - 0.42, 0.4), (x - 0.08, 0.4), SOFT)
        x += width + 0.5
    ax.set_xlim(-0.15, x - 0.35)
    ax.set_ylim(-1.0, 1.0)
    return fig


def manifold() -> Figure:
    """Closed configurations, tangent, bias, drift of an integration, and correction."""
    fig, ax = figure(6.4, 3.4)
    sketch(ax)
    angle = np.linspace(2.75, 0.45, 200)
    ax.plot(3.0 * np.cos(angle), 3.0 * np.sin(angle), color=BLUE, linewidth=2.4)
    note(ax, 3.0 * np.array([np.cos(2.7), np.sin(2.7)]), r"closed: $\phi(q) = 0$", BLUE,
         offset=(12, -6))  # fmt: skip
    q = 3.0 * np.array([np.cos(2.0), np.sin(2.0)])
    along, out = np.array([np.sin(2.0), -np.cos(2.0)]), np.array([np.cos(2.0), np.sin(2.0)])
    ax.plot(*q, "o", color=INK, markersize=7, zorder=8)
    note(ax, q, "q", offset=(-14, 0), weight="bold")
    arrow(ax, q, q + 1.5 * along, GREEN, width=2.4)
    note(ax, q + 1.5 * along, r"$v = \gamma\,\dot y$, along the tangent", GREEN, offset=(-20, 8))
    arrow(ax, q, q - 0.85 * out, PURPLE, width=2.4)
    note(ax, q - 0.85 * out, "bias: bends the motion\n" r"along, $G\,$bias $= -$drift", PURPLE,
         offset=(8, -4))  # fmt: skip
    along_it = np.linspace(2.0, 0.95, 100)
    radius = 3.0 + 0.42 * ((2.0 - along_it) / 1.05) ** 2
    astray = np.array([radius * np.cos(along_it), radius * np.sin(along_it)])
    ax.plot(*astray, color=RED, linestyle="--", linewidth=1.4)
    end, foot = astray[:, -1], 3.0 * np.array([np.cos(0.95), np.sin(0.95)])
    ax.plot(*end, "o", color=RED, markersize=6, zorder=8)
    note(ax, end, "an integration\ndrifts off", RED, offset=(8, 0))
    arrow(ax, end, foot, ORANGE, width=2.4)
    note(ax, foot, "correction", ORANGE, offset=(-64, -8))
    return fig


def dead_point() -> Figure:
    """Crank and coupler in line: the rocker turns back."""
    fig, (left, right) = figure(7.0, 3.0, 1, 2, width_ratios=(1.25, 1.0))
    sketch(left)
    p = np.array([GROUND, 0.0])
    top = elbow(np.zeros(2), p, CRANK + COUPLER, ROCKER)
    dead = float(np.arctan2(top[1], top[0]))
    for turn, color in ((dead - 0.45, FAINT), (dead + 0.45, FAINT), (dead, BLUE)):
        o, tip, top, _ = four_bar(turn)
        bar(left, o, tip, ORANGE if color == BLUE else color)
        bar(left, tip, top, color)
        bar(left, top, p, color)
        if color == BLUE:
            for at in (tip, top):
                hinge(left, at)
    hinge(left, o, ground=True)
    hinge(left, p, ground=True)
    note(left, 0.5 * tip, "crank", ORANGE, offset=(-34, 4))
    note(left, 0.5 * (tip + top), "coupler", BLUE, offset=(-36, 8))
    note(left, 0.5 * (top + p), "rocker", BLUE, offset=(7, -6))
    left.set_title("Crank and coupler in line")

    angles = np.linspace(dead - 1.3, dead + 1.3, 300)
    tops = np.array([four_bar(x)[2] - p for x in angles])
    rocker = np.degrees(np.arctan2(tops[:, 1], tops[:, 0]))
    right.plot(np.degrees(angles - dead), rocker, color=BLUE)
    least = float(rocker.min())
    right.plot(0.0, least, "o", color=RED, markersize=7)
    right.axhline(least, color=RED, linewidth=0.9, linestyle=":")
    note(right, (0.0, least), "the rocker stands still:\nno coordinate, no place\nfor a motor", RED,
         offset=(-50, 88))  # fmt: skip
    right.set_xlabel("crank from the dead point, degrees")
    right.set_ylabel("rocker, degrees")
    return fig


def two_by_one() -> Figure:
    """The ladder, and its configurations with G, gamma and bias."""
    fig, (left, right) = figure(7.0, 3.2, 1, 2)
    x, z = 0.6, 0.8
    sketch(left)
    left.plot([0, 0, 1.1], [1.1, 0, 0], color=FAINT, linewidth=4.0, zorder=1)
    bar(left, (x, 0), (0, z))
    hinge(left, (x, 0), motor=True)
    hinge(left, (0, z))
    arrow(left, (x, -0.09), (x + 0.4, -0.09), GREEN, width=2.2)
    note(left, (x + 0.4, -0.09), "0.8 m/s", GREEN, offset=(-30, -12))
    arrow(left, (-0.09, z), (-0.09, z - 0.3), GREEN, width=2.2)
    note(left, (-0.09, z - 0.3), "-0.6 m/s", GREEN, offset=(-38, -10))
    note(left, (x, 0), "x = 0.6 m", offset=(4, 9))
    note(left, (0, z), "z = 0.8 m", offset=(9, 4))
    left.set_title("A ladder of 1 m")

    sketch(right)
    angle = np.linspace(0.1, np.pi / 2, 100)
    right.plot(np.cos(angle), np.sin(angle), color=BLUE, linewidth=2.4)
    note(right, (np.cos(0.2), np.sin(0.2)), r"$x^2 + z^2 = 1$", BLUE, offset=(-58, -4))
    q = np.array([x, z])
    right.plot(*q, "o", color=INK, markersize=7, zorder=8)
    note(right, q, "q", offset=(-13, -11), weight="bold")
    size = 0.4
    arrow(right, q, q + size * np.array([0.6, 0.8]), ORANGE, width=2.4)
    note(right, q + size * np.array([0.6, 0.8]), "G = [0.6  0.8]", ORANGE, offset=(-88, -6))
    arrow(right, q, q + size * np.array([1.0, -0.75]), GREEN, width=2.4)
    note(right, q + size * np.array([1.0, -0.75]), r"$\gamma$ = (1, -0.75)", GREEN, offset=(-8, 12))
    arrow(right, q, q + size * np.array([0.0, -1.25]), PURPLE, width=2.4)
    note(right, q + size * np.array([0.0, -1.25]), "bias = (0, -1.25)", PURPLE, offset=(-78, -10))
    right.set_title("Its configurations: the plane of x and z")
    return fig


PICTURES = {
    "cut-loop": cut_loop,
    "rows-and-signs": rows_and_signs,
    "way-of-a-torque": way_of_a_torque,
    "manifold": manifold,
    "dead-point": dead_point,
    "two-by-one": two_by_one,
}
