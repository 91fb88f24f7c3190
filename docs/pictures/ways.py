"""Ways through the library as boxes: what comes from where, and what happens in a tick."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from style import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED, SOFT, arrow, figure, note


def board(width: float, height: float) -> tuple[Figure, Axes]:
    """Axes in inches, without anything around."""
    fig, ax = figure(width, height)
    ax.set_axis_off()
    ax.set_xlim(0.0, width)
    ax.set_ylim(0.0, height)
    ax.set_aspect("equal")
    return fig, ax


def box(
    ax: Axes, x: float, y: float, width: float, height: float, text: str, color: str = BLUE
) -> None:
    """A box around its middle, with a few words."""
    patch = FancyBboxPatch(
        (x - width / 2, y - height / 2),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.07",
        facecolor="white",
        edgecolor=color,
        linewidth=1.4,
        zorder=4,
    )
    ax.add_patch(patch)
    ax.text(x, y, text, ha="center", va="center", color=INK, fontsize=8.5, zorder=5)


def row(
    ax: Axes, y: float, texts: Sequence[str], xs: Sequence[float], color: str, width: float
) -> None:
    """Boxes beside each other, with arrows between."""
    for x, text in zip(xs, texts, strict=True):
        box(ax, x, y, width, 0.62, text, color)
    for left, right in itertools.pairwise(xs):
        arrow(ax, (left + width / 2 + 0.02, y), (right - width / 2 - 0.02, y), SOFT)


def on_pinocchio() -> Figure:
    """What is Pinocchio's and what is ours, along the way of a torque."""
    fig, ax = board(7.0, 2.5)
    xs = (0.75, 2.2, 3.65, 4.9, 6.25)
    for x, text in zip(xs[:2], ("pin.Model\nthe tree", "placements, V, A\nM, h"), strict=True):
        box(ax, x, 1.75, 1.2, 0.62, text, ORANGE)
    box(ax, 0.75, 0.7, 1.2, 0.62, "closures, rods,\ncouplings", BLUE)
    for x, text in zip(
        xs[2:],
        ("rows: error,\nG, drift", "rank,\ngamma, bias", "u, or a\n+ certificate"),
        strict=True,
    ):
        box(ax, x, 0.7, 1.12, 0.62, text, BLUE)
    arrow(ax, (1.37, 1.75), (1.58, 1.75), SOFT)
    arrow(ax, (1.37, 0.7), (3.07, 0.7), SOFT)
    arrow(ax, (2.6, 1.42), (3.3, 1.03), SOFT)
    arrow(ax, (2.82, 1.7), (5.75, 1.03), SOFT, bend=0.12)
    arrow(ax, (4.23, 0.7), (4.32, 0.7), SOFT)
    arrow(ax, (5.48, 0.7), (5.67, 0.7), SOFT)
    note(ax, (0.15, 2.22), "Pinocchio", ORANGE, offset=(0, 0), fontsize=10)
    note(ax, (0.15, 0.12), "holoctl", BLUE, offset=(0, 0), fontsize=10)
    return fig


def where_errors_come_from() -> Figure:
    """Steps of the way, and the errors that each raises."""
    fig, ax = board(7.0, 2.6)
    xs = (0.78, 2.14, 3.5, 4.86, 6.22)
    steps = (
        "load,\nMechanism",
        "assemble",
        "partition,\nproject",
        "torque,\na tick",
        "simulate,\nsweep",
    )
    row(ax, 2.0, steps, xs, BLUE, 1.1)
    errors = (
        "LoadError\nInputError",
        "AssemblyError",
        "SingularityError\nInconsistentError",
        "SingularityError\nInconsistentError\nBranchError\nLimitError\nNotActuatedError",
        "any of these, with\ntime and run;\nSweepError",
    )
    for x, text in zip(xs, errors, strict=True):
        arrow(ax, (x, 1.66), (x, 1.42), RED)
        ax.text(x, 1.34, text, ha="center", va="top", color=RED, fontsize=8.0)
    ax.text(0.25, 0.2, "wrong arguments are an InputError at every step", color=SOFT, fontsize=8.0)
    return fig


def which_page() -> Figure:
    """What one wants to do, and the page that says how."""
    fig, ax = board(7.0, 2.6)
    xs = (0.78, 2.14, 3.5, 4.86, 6.22)
    steps = ("describe", "check", "compute", "control", "take along")
    row(ax, 2.2, steps, xs, BLUE, 1.1)
    pages = (
        "file-formats\nclosing-axes\nforces\nfrom-...",
        "doctor\ntroubleshooting\nglossary",
        "notation\nderivations\ndesign",
        "realtime\nlimits\ntask-space\nsimulation",
        "embedded\n(C, 10 kHz)",
    )
    for x, text in zip(xs, pages, strict=True):
        ax.plot([x, x], [1.85, 1.65], color=FAINT, linewidth=1.2)
        ax.text(x, 1.58, text, ha="center", va="top", color=GREEN, fontsize=8.5, linespacing=1.4)
    box(ax, 3.5, 0.3, 6.5, 0.42, "a robot of your own, from drawing to torque: the tutorials", SOFT)
    return fig


def scope() -> Figure:
    """In the middle what is in, around it what is not."""
    fig, ax = board(7.0, 3.1)
    box(ax, 3.5, 1.55, 3.5, 1.75, "", GREEN)
    inside = (
        "rigid bodies in a tree",
        "constraints  $\\phi(q, t) = 0$,  both ways",
        "motors: fewer, as many, more",
        "friction, springs, limits",
        "torques, forces, certificates",
        "control, simulation, design",
    )
    for i, text in enumerate(inside):
        ax.text(3.5, 2.2 - 0.26 * i, text, ha="center", va="center", fontsize=9.0, zorder=5)
    outside = {
        (0.85, 2.55): "rolling,\nnonholonomic",
        (0.85, 1.55): "contacts that\nonly push",
        (0.85, 0.55): "collision",
        (6.15, 2.55): "flexible links",
        (6.15, 1.55): "backlash,\nsticking",
        (6.15, 0.55): "currents,\nbuses, drives",
    }
    for (x, y), text in outside.items():
        ax.text(x, y, text, ha="center", va="center", color=SOFT, fontsize=9.0)
    ax.text(3.5, 2.7, "in", ha="center", color=GREEN, fontsize=10)
    ax.text(0.12, 2.95, "out", color=SOFT, fontsize=10, va="top")
    return fig


def tick_in_c() -> Figure:
    """One call of the exported library."""
    fig, ax = board(7.0, 2.9)
    xs = (0.7, 2.1, 3.5, 4.9, 6.3)
    texts = (
        "encoders\n$q_m$, $v_m$",
        "closed state\nq, v",
        "law: target,\ninverse dynamics",
        "guard",
        "u\nto the drives",
    )
    for x, text, color in zip(xs, texts, (ORANGE, BLUE, BLUE, RED, ORANGE), strict=True):
        box(ax, x, 1.75, 1.2, 0.62, text, color)
    for left, right in itertools.pairwise(xs):
        arrow(ax, (left + 0.61, 1.75), (right - 0.61, 1.75), SOFT)
    box(ax, 3.5, 2.58, 1.5, 0.42, "$q_{ref}$, $v_{ref}$, $a_{ref}$", GREEN)
    arrow(ax, (3.5, 2.36), (3.5, 2.08), SOFT)
    box(ax, 2.1, 0.75, 1.12, 0.5, "memory:\nlast state", SOFT)
    arrow(ax, (1.95, 1.42), (1.95, 1.02), SOFT)
    arrow(ax, (2.25, 1.02), (2.25, 1.42), SOFT)
    box(ax, 4.9, 0.75, 1.5, 0.5, "status is not OK:\nHOLD or ZERO", RED)
    arrow(ax, (4.9, 1.42), (4.9, 1.02), RED)
    arrow(ax, (5.67, 0.75), (6.3, 1.42), RED, bend=-0.25)
    ax.text(
        3.5,
        0.18,
        "one call; no allocation, a bounded number of steps",
        ha="center",
        color=SOFT,
        fontsize=8.0,
    )
    return fig


def files() -> Figure:
    """Which file brings what."""
    fig, ax = board(7.0, 2.9)
    sources = {
        2.45: ("robot.urdf", "tree, inertias, limits"),
        1.75: ("robot.yaml", "closures, motors, reference, forces"),
        1.05: ("robot.xml (MJCF)", "tree, equalities, actuators"),
        0.35: ("robot.sdf", "graph with loops"),
    }
    for y, (name, what) in sources.items():
        color = ORANGE if "yaml" in name else BLUE
        box(ax, 0.95, y, 1.6, 0.46, name, color)
        ax.text(1.85, y + 0.12, what, color=SOFT, fontsize=8.0)
    box(ax, 5.95, 1.4, 1.6, 1.0, "Mechanism\ntree + closures\n+ motors + limits", GREEN)
    box(ax, 4.35, 0.35, 0.95, 0.46, "cut loops", SOFT)
    for y, end in ((2.45, 1.75), (1.75, 1.5), (1.05, 1.25)):
        arrow(ax, (1.8, y), (5.12, end), SOFT)
    arrow(ax, (1.8, 0.35), (3.84, 0.35), SOFT)
    arrow(ax, (4.86, 0.35), (5.3, 0.86), SOFT)
    arrow(ax, (0.95, 1.98), (0.95, 2.2), ORANGE)
    ax.text(1.05, 2.06, "beside it", color=ORANGE, fontsize=7.5)
    return fig


def ticks() -> Figure:
    """A loop over the clock: ticks that are on time, one that is missed, one that is skipped."""
    fig, ax = board(7.0, 2.0)
    x0, step = 0.6, 0.95
    calls = (
        (0, 0.0, 0.35, GREEN),
        (1, 0.05, 0.35, GREEN),
        (2, 0.0, 2.35, RED),
        (4, 0.27, 0.35, ORANGE),
        (5, 0.0, 0.35, GREEN),
        (6, 0.04, 0.3, GREEN),
    )
    for i in range(7):
        x = x0 + step * i
        ax.plot([x, x], [0.55, 1.45], color=FAINT, linewidth=1.0)
        ax.text(x, 0.38, f"{i} ms", ha="center", va="top", color=SOFT, fontsize=8.0)
    for i, late, spent, color in calls:
        a = x0 + step * (i + late)
        ax.fill_between([a, a + step * spent * 0.95], 0.75, 1.15, color=color, zorder=3)
    ax.text(
        x0 + step * 3.2,
        1.55,
        "missed: ends after the next was due",
        ha="center",
        color=RED,
        fontsize=8.0,
    )
    ax.text(
        x0 + step * 3.0,
        0.12,
        "skipped: its period had passed",
        ha="center",
        color=SOFT,
        fontsize=8.0,
    )
    ax.text(x0 + step * 4.85, 1.27, "late, at once", ha="center", color=ORANGE, fontsize=8.0)
    ax.text(x0 + step * 0.6, 1.27, "on time", ha="center", color=GREEN, fontsize=8.0)
    ax.plot([x0, x0 + step * 6.3], [0.55, 0.55], color=SOFT, linewidth=1.2)
    return fig


def house() -> Figure:
    """The layers, and what each adds."""
    fig, ax = board(7.0, 3.7)
    layers = (
        ("app, simulation, design", "command line, view; simulation; offline design", PURPLE),
        ("codegen, transmission", "machine code; parallel joints between motors and joints", GREEN),
        ("control, doctor", "controllers; explanations", GREEN),
        ("dynamics, estimation", "u, a, impacts, certificates; the state from encoders", GREEN),
        ("projector, closing, rows", "gamma and bias; closed states, rank; G and drift", BLUE),
        ("io, mechanism", "files; tree, constraints, motors, all checked", BLUE),
        ("forces, constraints", "rows of constraints; friction, springs", ORANGE),
        ("tree, laws, base", "a plain pin.Model; each law once; errors, linear algebra", SOFT),
    )
    for i, (name, what, color) in enumerate(layers):
        y = 3.4 - 0.43 * i
        box(ax, 1.25, y, 2.2, 0.34, name, color)
        ax.text(2.5, y, what, va="center", fontsize=8.5)
    arrow(ax, (6.75, 3.4), (6.75, 0.4), SOFT)
    ax.text(6.65, 1.9, "imports", rotation=90, ha="right", va="center", color=SOFT, fontsize=8.5)
    return fig


PICTURES = {
    "on-pinocchio": on_pinocchio,
    "where-errors-come-from": where_errors_come_from,
    "which-page": which_page,
    "scope": scope,
    "tick-in-c": tick_in_c,
    "files": files,
    "ticks": ticks,
    "house": house,
}
