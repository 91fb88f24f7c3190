"""Mechanisms for those who come from elsewhere: SymPy's five, a yoke, a loop of RBDL."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import (
    BLUE,
    CLOSURE,
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
    turn,
)


def at(start: np.ndarray, angle: float, length: float) -> np.ndarray:
    return np.asarray(start) + length * np.array([np.cos(angle), np.sin(angle)])


def cut(ax: Axes, where: np.ndarray) -> None:
    """The joint that closes the loop: a hinge with a ring around it."""
    hinge(ax, where)
    ax.plot(*where, "o", markersize=15, markerfacecolor="none", color=CLOSURE, zorder=6)


def meeting(a: np.ndarray, b: np.ndarray, r: float, s: float) -> np.ndarray:
    """The point at r from a and s from b, to the left of a -> b."""
    d = b - a
    n = float(np.linalg.norm(d))
    x = (n * n + r * r - s * s) / (2 * n)
    return a + x * d / n + np.sqrt(r * r - x * x) * np.array([-d[1], d[0]]) / n


def four_bar(ax: Axes) -> None:
    a, d = np.zeros(2), np.array([0.5, 0.0])
    b = at(a, 1.0, 0.2)
    c = meeting(b, d, 0.5, 0.4)
    for ends, color in (((a, b), ORANGE), ((b, c), BLUE), ((d, c), BLUE)):
        bar(ax, *ends, color)
    hinge(ax, a, ground=True)
    hinge(ax, d, ground=True)
    hinge(ax, b)
    cut(ax, c)


def triangle(ax: Axes) -> None:
    a, d = np.zeros(2), np.array([0.6, 0.0])
    b = meeting(a, d, 0.5, 0.4)
    bar(ax, a, b)
    bar(ax, b, d)
    hinge(ax, a, ground=True)
    hinge(ax, b)
    hinge(ax, d, ground=True)
    cut(ax, d)


def two_balls(ax: Axes) -> None:
    a, foot = np.zeros(2), np.array([0.62, 0.08])
    head = np.array([0.2, 0.3])
    bar(ax, a, head)
    bar(ax, foot, head, GREEN)
    hinge(ax, a, ground=True)
    cut(ax, a)
    for ball in (foot, head):
        ax.plot(*ball, "o", markersize=11, color=INK, markerfacecolor=FAINT, zorder=5)
    ax.plot(*foot, marker=(3, 0, 0), markersize=17, color=FAINT, zorder=3)
    middle = (foot + head) / 2
    turn(ax, middle, 0.07, -2.2, 2.0, GREEN)


def umbrella(ax: Axes) -> None:
    hub, slider = np.array([0.0, 0.6]), np.array([0.0, 0.13])
    ax.plot([0, 0], [0.0, 0.62], color=FAINT, linewidth=4, zorder=1)
    for side, color in ((1.0, BLUE), (-0.75, PURPLE)):  # the second arm stands out of the paper
        middle = meeting(hub, slider, 0.3, 0.36)
        out = np.array([abs(middle[0]) * side, middle[1]])
        tip = hub + 2.0 * (out - hub)
        bar(ax, hub, tip, color, 4.0)
        bar(ax, slider, out, color, 4.0)
        cut(ax, out)
    hinge(ax, hub, ground=True)
    ax.plot(*slider, "s", markersize=12, color=INK, markerfacecolor="white", zorder=5)
    arrow(ax, (0.09, 0.04), (0.09, 0.22), GREEN)


def double_link(ax: Axes) -> None:
    a = np.zeros(2)
    b = at(a, 0.6, 0.45)
    bar(ax, a, b, BLUE, 9.0)
    bar(ax, a, b, ORANGE, 3.0)
    hinge(ax, a, ground=True)
    hinge(ax, b)
    cut(ax, a)
    turn(ax, a, 0.25, 0.75, 1.4, GREEN)


def sympy_five() -> Figure:
    """The five test cases; a red ring is the joint that closes the loop."""
    cases = (
        ("four-bar", "3 - 2 = 1", four_bar),
        ("triangle", "2 - 2 = 0", triangle),
        ("two balls", "6 - 5 = 1", two_balls),
        ("umbrella", "5 - 4 = 1", umbrella),
        ("double link", "2 - 1 = 1", double_link),
    )
    fig, axes = figure(7.0, 1.9, 1, 5)
    for ax, (name, count, draw) in zip(axes, cases, strict=True):
        sketch(ax, margin=0.15)
        draw(ax)
        ax.set_title(f"{name}\n{count}", loc="center", fontsize=8.5)
    return fig


def scotch_yoke() -> Figure:
    """A pin on the crank in the slot of a slide; y is the angle, s = r sin(angle) the slide."""
    fig, ax = figure(5.0, 2.3)
    sketch(ax)
    angle, r = 0.6, 0.5
    pin = at(np.zeros(2), np.pi / 2 - angle, r)
    ring = np.linspace(0, 2 * np.pi, 100)
    ax.plot(r * np.cos(ring), r * np.sin(ring), color=FAINT, linewidth=1.0)
    for x in (pin[0] - 0.06, pin[0] + 0.06):
        bar(ax, (x, -0.62), (x, 0.62), BLUE, 3.0)
    bar(ax, (pin[0] + 0.06, 0.0), (1.35, 0.0), BLUE, 3.0)
    for y in (-0.09, 0.09):
        ax.plot([0.9, 1.2], [y, y], color=SOFT, linewidth=4)
    bar(ax, (0, 0), pin, ORANGE)
    hinge(ax, (0, 0), motor=True, ground=True)
    hinge(ax, pin)
    ax.plot([0, 0], [0, 0.72], color=SOFT, linewidth=0.8, linestyle="--")
    turn(ax, (0, 0), 0.25, np.pi / 2, np.pi / 2 - angle, GREEN)
    note(ax, (0.02, 0.3), "$y$", GREEN, offset=(3, 0))
    arrow(ax, (0.0, -0.75), (pin[0], -0.75), PURPLE)
    note(ax, (pin[0], -0.75), "$s = r\\,\\sin y$", PURPLE, offset=(6, -3))
    note(ax, (1.35, 0.0), "slide", BLUE, offset=(5, -3))
    return fig


def rbdl_loop() -> Figure:
    """Frame a on the predecessor, frame b on the successor, the rows along the axes of a."""
    fig, ax = figure(6.0, 2.4)
    sketch(ax)
    tip, end = np.array([1.0, 0.55]), np.array([1.3, 0.75])
    bar(ax, (0.0, 0.0), tip, BLUE)
    bar(ax, (2.3, 0.0), end, GREEN)
    hinge(ax, (0.0, 0.0), ground=True)
    hinge(ax, (2.3, 0.0), ground=True)
    frame(ax, tip, 0.3, 0.42, "a")
    frame(ax, end, -0.9, 0.28)
    note(ax, end, "b", offset=(-3, 12))
    arrow(ax, end, end + np.array([0.45, 0.42]), PURPLE, width=2.2)
    note(ax, end + np.array([0.45, 0.42]), "$\\lambda$ acts on b", PURPLE, offset=(5, -2))
    note(ax, (0.35, 0.2), "predecessor", BLUE, offset=(12, -14))
    note(ax, (2.0, 0.25), "successor", GREEN, offset=(8, 4))
    ax.plot(*np.array([tip, end]).T, color=RED, linestyle=":", linewidth=1.6)
    note(ax, (1.02, 0.22), "error, along\nthe axes of a", RED, offset=(0, 0))
    return fig


PICTURES = {"sympy-five": sympy_five, "scotch-yoke": scotch_yoke, "rbdl-loop": rbdl_loop}
