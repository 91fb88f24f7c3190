"""Thumbnails of the gallery of examples: what an example draws, or the mechanism that it works on.

Their pictures of full size are those of the examples themselves, in docs/.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import BODY, CLOSURE, FAINT, GREEN, INK, SOFT, arrow, bar, figure, hinge, sketch, turn

import holoctl as hc
from holoctl.app.draw import draw_mechanism

DOCS = Path(__file__).resolve().parents[1]
SIZE = 2.13, 1.4
"""Inches: 320 points wide."""


def part_of(name: str, left: float, right: float, top: float, bottom: float) -> Figure:
    """A part of a picture of docs/, from and to shares of its width and of its height."""
    whole = plt.imread(DOCS / name)
    high, wide = whole.shape[:2]
    part = whole[int(top * high) : int(bottom * high), int(left * wide) : int(right * wide)]
    fig = plt.figure(figsize=(SIZE[0], SIZE[0] * part.shape[0] / part.shape[1]))
    ax = fig.add_axes((0.0, 0.0, 1.0, 1.0))
    ax.imshow(part, interpolation="lanczos", aspect="auto")
    ax.set_axis_off()
    return fig


def alone() -> tuple[Figure, Axes]:
    """A sketch without title."""
    fig, ax = figure(*SIZE)
    return fig, sketch(ax)


def screw() -> Figure:
    """A nut on a screw of variable pitch."""
    fig, ax = alone()
    turns = np.linspace(0.0, 12.0 * np.pi, 600)
    along = 0.05 * turns + 0.09 * np.sin(turns / 3.0)
    bar(ax, (-0.15, 0.0), (2.05, 0.0), FAINT, 13.0)
    ax.plot(along, 0.13 * np.sin(turns), color=SOFT, linewidth=1.3, zorder=2)
    bar(ax, (0.85, -0.24), (0.85, 0.24), CLOSURE, 15.0, zorder=3)
    arrow(ax, (0.85, 0.42), (1.35, 0.42), GREEN)
    turn(ax, (-0.15, 0.0), 0.27, 1.9, 4.3, GREEN)
    return fig


def two_links() -> Figure:
    """Two links whose second angle follows from the first: planar2g."""
    fig, ax = alone()
    for y, color in ((0.15, FAINT), (0.4, FAINT), (0.75, BODY)):
        elbow = np.array([np.cos(y), np.sin(y)])
        end = y + 2.0 * np.sin(y)
        bar(ax, (0.0, 0.0), elbow, color)
        bar(ax, elbow, elbow + np.array([np.cos(end), np.sin(end)]), color)
    elbow = np.array([np.cos(0.75), np.sin(0.75)])
    hinge(ax, (0.0, 0.0), motor=True, ground=True)
    hinge(ax, elbow, CLOSURE)
    return fig


def upright() -> Figure:
    """The five-bar at its upright equilibrium, and beside it."""
    mech = hc.load(hc.robot_file("five_bar"))
    q = hc.assemble(mech)[0]
    fig, ax = alone()
    aside = q + mech.B @ [-0.25, -0.25]
    off = hc.assemble(mech, aside, locked=list(mech.actuator_names))[0]
    draw_mechanism(ax, mech, off, (0, 2), color=FAINT)
    with mpl.rc_context({"lines.markersize": 4.0}):
        hc.draw(mech, q, ax)
    ax.margins(0.2)
    return fig


def hops() -> Figure:
    """A body on a leg, on the ground and above it; the height of both over time."""
    fig, ax = alone()
    times = np.linspace(0.0, 3.0, 200)
    ax.plot(times, 0.9 + 0.6 * np.abs(np.sin(np.pi * times)), color=GREEN, linewidth=1.2, zorder=1)
    ax.plot([-0.4, 3.4], [0.0, 0.0], color=INK, linewidth=1.2)
    for t, up in ((0.0, 0.0), (0.5, 0.6), (1.0, 0.0), (1.5, 0.6), (2.0, 0.0), (2.5, 0.6)):
        bar(ax, (t, up), (t, 0.9 + up), BODY, 3.0)
        hinge(ax, (t, up), CLOSURE if up == 0.0 else INK)
        ax.plot(t, 0.9 + up, "s", markersize=11, color=INK, markerfacecolor=BODY, zorder=5)
    return fig


PICTURES = {
    "example-robots": partial(part_of, "robots.png", 0.0, 1.0, 0.0, 1.0),
    "example-limits": partial(part_of, "limits.png", 0.0, 1.0, 0.0, 0.48),
    "example-spring": partial(part_of, "leg-spring.png", 0.0, 0.61, 0.0, 1.0),
    "example-fastest-way": partial(part_of, "fastest-way.png", 0.0, 0.43, 0.12, 0.9),
    "example-workspace": partial(part_of, "workspace.png", 0.0, 0.325, 0.0, 1.0),
    "example-identified": partial(part_of, "identified.png", 0.0, 1.0, 0.0, 1.0),
    "example-biped": partial(part_of, "biped-stands.png", 0.0, 1.0, 0.33, 1.0),
    "example-jumps": partial(part_of, "leg-jumps.png", 0.0, 1.0, 0.0, 0.63),
    "example-crossed": partial(part_of, "crossed.png", 0.0, 0.4, 0.07, 1.0),
    "example-ankle": partial(part_of, "ankle.png", 0.0, 0.67, 0.0, 1.0),
    "example-plans": partial(part_of, "plans.png", 0.0, 1.0, 0.05, 0.5),
    "example-learns": partial(part_of, "learns.png", 0.5, 1.0, 0.0, 1.0),
    "example-postures": partial(part_of, "postures.png", 0.0, 0.5, 0.0, 1.0),
    "example-predicts": partial(part_of, "predicts.png", 0.0, 1.0, 0.05, 0.52),
    "example-screw": screw,
    "example-planar2g": two_links,
    "example-upright": upright,
    "example-hops": hops,
}
