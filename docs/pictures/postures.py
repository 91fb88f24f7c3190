"""Postures: what the doctor calls singular, what does not close, and the words for a five-bar."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
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

import holoctl as hc


def ghost(ax: Axes, points: list[tuple[float, float]]) -> None:
    """Another posture, in the background."""
    ax.plot(*np.array(points).T, color=FAINT, linewidth=3.0, zorder=1)


def dead_point(ax: Axes) -> None:
    """A slider-crank whose motor is the slider: crank and rod in one line."""
    ghost(ax, [(0, 0), (0.32, 0.24), (1.05, 0)])
    bar(ax, (0, 0), (0.4, 0))
    bar(ax, (0.4, 0), (1.17, 0))
    hinge(ax, (0, 0), ground=True)
    hinge(ax, (0.4, 0))
    ax.plot(1.17, 0, "s", markersize=13, color=INK, markerfacecolor=ORANGE, zorder=5)
    arrow(ax, (1.5, 0.0), (1.27, 0.0), ORANGE)
    for way in (0.14, -0.14):
        arrow(ax, (0.4, 0.35 * way), (0.4, 0.35 * way + way), RED)


def bifurcation(ax: Axes) -> None:
    """A parallelogram, flat: it may open parallel, or crossed."""
    ghost(ax, [(0, 0), (0.33, 0.22), (1.13, 0.22), (0.8, 0)])
    ghost(ax, [(0, 0), (0.33, 0.22), (0.98, -0.3), (0.8, 0)])
    bar(ax, (0, 0.0), (0.4, 0.0))
    bar(ax, (0.4, 0.035), (1.2, 0.035), GREEN, 4.0)
    bar(ax, (0.8, 0.0), (1.2, 0.0), PURPLE)
    for x, ground in ((0, True), (0.4, False), (0.8, True), (1.2, False)):
        hinge(ax, (x, 0), motor=x == 0, ground=ground)
    arrow(ax, (1.22, 0.06), (1.16, 0.2), RED)
    arrow(ax, (1.22, -0.06), (1.1, -0.24), RED)


def shaky(ax: Axes) -> None:
    """Two bars stretched flat between two pins: a little way gives, nothing more."""
    bar(ax, (0, 0), (0.6, 0))
    bar(ax, (0.6, 0), (1.2, 0))
    for x in (0.0, 1.2):
        hinge(ax, (x, 0), ground=True)
    hinge(ax, (0.6, 0))
    for way in (0.2, -0.2):
        arrow(ax, (0.6, 0.35 * way), (0.6, way), RED)


def locked(ax: Axes) -> None:
    """A triangle."""
    bar(ax, (0, 0), (0.45, 0.42))
    bar(ax, (0.45, 0.42), (1.1, 0))
    hinge(ax, (0, 0), motor=True, ground=True)
    hinge(ax, (0.45, 0.42))
    hinge(ax, (1.1, 0), ground=True)


def singular_postures() -> Figure:
    """Four words of the doctor."""
    fig, axes = figure(7.0, 1.7, 1, 4)
    cases = (
        ("dead point", "type-2 (parallel) singularity", dead_point),
        ("bifurcation", "paths cross", bifurcation),
        ("shaky", "infinitesimally mobile", shaky),
        ("rigid", "a locked structure", locked),
    )
    for ax, (name, what, draw) in zip(axes, cases, strict=True):
        sketch(ax, margin=0.12)
        draw(ax)
        ax.set_title(f"{name}\n", loc="center", fontsize=9.5)
        ax.text(0.5, 1.02, what, transform=ax.transAxes, ha="center", color=SOFT, fontsize=8.0)
    return fig


def at(x: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([x, 0.0, 0.0]))


def does_not_close() -> Figure:
    """What `hc.draw(mech, error.q)` shows where a coupler is too short."""
    model = pin.Model()
    for name, parent, x, length in (
        ("crank", 0, 0.0, 0.2),
        ("coupler", 1, 0.2, 0.2),
        ("rocker", 0, 0.7, 0.2),
    ):
        j = model.addJoint(parent, pin.JointModelRZ(), at(x), name)
        model.appendBodyToJoint(j, pin.Inertia.FromSphere(1.0, 0.05), at(length / 2))
    closure = hc.Closure(("coupler", at(0.2)), ("rocker", at(0.2)), axes="x y", name="pin")
    mech = hc.Mechanism(model, [closure], ["crank"], name="four-bar")
    fig, ax = figure(5.5, 1.8)
    ax.grid(visible=False)
    try:
        hc.assemble(mech, [0.9, -0.7, 2.2])
    except hc.AssemblyError as error:
        hc.draw(mech, error.q, ax=ax, plane="xy")
    ax.set_title("four-bar, at error.q", fontsize=9.0)
    return fig


def modes() -> Figure:
    """The two ways in which the five-bar closes for the same motors, with their signs."""
    mech = hc.load(hc.robot_file("five_bar"))
    found = hc.assembly_modes(mech, {"motor_left": 2.2, "motor_right": 0.9}, tries=30)
    fig, axes = figure(5.6, 2.4, 1, len(found.modes))
    for ax, mode, color in zip(axes, found.modes, (BLUE, PURPLE), strict=True):
        hc.draw(mech, mode.q, ax=ax, plane="xz", color=color)
        ax.set_axis_off()
        sign = "+" if mode.sign > 0 else "-"
        ax.set_title(f"determinant {sign}", loc="center", fontsize=9.0)
    boxes = [ax.dataLim for ax in axes]
    for ax in axes:  # one scale
        ax.set_aspect("equal", adjustable="box")
        ax.set_xlim(min(b.x0 for b in boxes) - 0.05, max(b.x1 for b in boxes) + 0.05)
        ax.set_ylim(min(b.y0 for b in boxes) - 0.05, max(b.y1 for b in boxes) + 0.05)
    return fig


def words() -> Figure:
    """The five-bar with its words."""
    fig, ax = figure(7.0, 3.6)
    sketch(ax, margin=0.1)
    ground, far = np.array([0.0, 0.0]), np.array([0.8, 0.0])
    left, right = np.array([-0.35, 0.65]), np.array([1.15, 0.65])
    tip = np.array([0.4, 1.2])
    for a, b, color in (
        (ground, left, BLUE),
        (left, tip, BLUE),
        (far, right, PURPLE),
        (right, tip, PURPLE),
    ):
        bar(ax, a, b, color)
    for point, motor, held in (
        (ground, True, True),
        (far, True, True),
        (left, False, False),
        (right, False, False),
    ):
        hinge(ax, point, motor=motor, ground=held)
    hinge(ax, tip)
    ax.plot(*tip, "o", markersize=16, markerfacecolor="none", color=CLOSURE, zorder=6)
    frame(ax, tip, 0.5, 0.3)
    turn(ax, ground, 0.2, 0.2, 1.9, ORANGE)
    turn(ax, far, 0.2, 0.2, 1.2, ORANGE)
    labels = (
        (ground, "motor, independent:\n$y_1$", ORANGE, (-110, 2)),
        (far, "motor, independent:\n$y_2$", ORANGE, (34, 2)),
        (left, "passive joint,\ndependent", BLUE, (-88, 0)),
        (right, "passive joint", PURPLE, (14, 0)),
        (tip, "cut joint: a closure\nwith frames a and b", CLOSURE, (-135, 14)),
        (tip, "rows: x, y count;\nz, rx, ry are redundant", INK, (62, 12)),
        ((0.02, 0.95), "tree: two chains", SOFT, (30, -20)),
        ((0.4, 0.0), "ground, universe", SOFT, (-42, -22)),
    )
    for where, text, color, offset in labels:
        note(ax, where, text, color, offset=offset)
    ax.plot([-0.1, 0.9], [-0.09, -0.09], color=FAINT, linewidth=3, zorder=1)
    return fig


def two_sides() -> Figure:
    """A five-bar on both sides of a type-2 singularity, and in it."""
    fig, axes = figure(7.0, 2.0, 1, 3)
    left, right = np.array([-0.2, 0.0]), np.array([0.2, 0.0])
    for ax, height, title in zip(
        axes, (0.16, 0.0, -0.16), ("one side: +", "singular: 0", "other side: -"), strict=True
    ):
        sketch(ax, margin=0.12)
        spread = np.sqrt(0.4**2 - height**2)
        top = np.sqrt(0.4**2 - (spread - 0.2) ** 2)
        elbows = [np.array([x * spread, top]) for x in (-1.0, 1.0)]
        tip = np.array([0.0, top + height])
        for motor, elbow, color in zip((left, right), elbows, (BLUE, PURPLE), strict=True):
            bar(ax, motor, elbow, color)
            bar(ax, elbow, tip, color)
            hinge(ax, motor, motor=True, ground=True)
            hinge(ax, elbow)
        hinge(ax, tip)
        if not height:
            for way in (0.16, -0.16):
                arrow(ax, (0.0, tip[1] + 0.3 * way), (0.0, tip[1] + way), RED)
        ax.set_title(title, loc="center", fontsize=9.5)
    return fig


PICTURES = {
    "two-sides": two_sides,
    "singular-postures": singular_postures,
    "does-not-close": does_not_close,
    "modes": modes,
    "words": words,
}
