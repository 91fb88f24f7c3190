"""Pictures of docs/referee.md, from docs/referee.json: `make referee` writes both."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from style import BLUE, GREEN, INK, ORANGE, PURPLE, RED, SOFT, figure, space

DOCS = Path(__file__).resolve().parents[1]
COLOURS = {
    "holoctl": BLUE, "constraintDynamics": ORANGE, "constraintDynamics, DOP853": ORANGE,
    "Exudyn": GREEN, "MuJoCo": PURPLE, "published methods": SOFT,
}  # fmt: skip
READINGS = {"a": INK, "b": GREEN, "c": ORANGE}
HISTORIES = {
    "Gonzalez": (BLUE, "o"), "Masarati": (PURPLE, "s"), "Masoudi": (GREEN, "D"),
    "Bushan": (ORANGE, "^"), "Chaojie": (RED, "v"), "Zhou": (SOFT, "P"),
}  # fmt: skip
IN_SPACE = {
    "Bricard", "flyball governor", "spatial slider-crank", "two Cardan joints", "Bennett's loop",
    "Sarrus' linkage", "tripteron",
}  # fmt: skip


@cache
def data() -> Any:
    """What was measured."""
    return json.loads((DOCS / "referee.json").read_text(encoding="utf-8"))


def cost() -> Any:
    """Error over time: all problems, then two with several settings."""
    fig, axes = figure(8.0, 3.3, 1, 3)
    table = data()["table"]
    for name in ("holoctl", "constraintDynamics", "Exudyn", "MuJoCo", "published methods"):
        points = np.array([[s, max(e, 1e-13)] for _, who, s, e in table if who == name])
        if len(points):
            look = {"color": COLOURS[name], "label": name, "alpha": 0.85}
            axes[0].plot(*points.T, "o", markersize=4, linestyle="none", **look)
    axes[0].set_title("every row of the table")
    axes[0].legend(loc="lower left", bbox_to_anchor=(0.0, 0.0), fontsize=7)
    for ax, (problem, curves) in zip(axes[1:], data()["precision"].items(), strict=False):
        for name, runs in curves.items():
            ax.plot(*np.array(runs).T, "o-", markersize=4, color=COLOURS[name])
        ax.set_title(problem.replace("rigid ", "").replace(", cut at h6", ", 10 s"))
    for ax in axes:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("processor time (s)")
    axes[0].set_ylabel("largest error (m)")
    return fig


def energy() -> Any:
    """The change of the energy, relative to the largest kinetic energy."""
    fig, ax = figure(7.0, 3.0)
    found = data()["energy"]
    for name, values in found["of"].items():
        seen = np.maximum(np.abs(values), 1e-13)
        ax.semilogy(found["t"][1:], seen[1:], color=COLOURS[name], label=name, linewidth=1.2)
    ax.set_xlabel("time (s)")
    ax.set_ylabel("change of energy")
    ax.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.15))
    return fig


def slider_cranks() -> Any:
    """The slider: points as published, lines by reading; below, the end."""
    fig, axes = figure(7.5, 5.0, 2, 1)
    found = data()["histories"]
    for ax, part in zip(axes, (0, 1), strict=True):
        times = np.array(found["t"][part])
        for key, curves in found["curves"].items():
            ax.plot(times, curves[part], color=READINGS[key], linewidth=1.2, label=f"reading {key}")
        for name, points in found["published"].items():
            colour, marker = HISTORIES[name]
            t, x = np.array([p for p in points if times[0] <= p[0] <= times[-1]]).T
            look = {"markersize": 4, "color": colour, "linestyle": "none", "label": name}
            ax.plot(t, x, marker, markerfacecolor="white", **look)
        ax.set_ylabel("slider (m)")
    axes[0].set_title("the first second")
    axes[1].set_title("the last half")
    axes[1].set_xlabel("time (s)")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
    return fig


def mechanisms() -> Any:
    """Small drawings, each in the posture in which it starts."""
    # before this folder, in which there is a referee too
    sys.path[:0] = [str(DOCS.parent / "benchmarks"), str(DOCS.parent / "tests")]
    from referee import (
        andrews,
        bricard,
        elsewhere,
        four_bar,
        four_bars,
        governor,
        pendulum,
        slider_cranks,
        textbook,
    )

    import holoctl as hc

    drawn: list[tuple[str, Any]] = [
        ("simple pendulum", pendulum.make),
        ("N four-bars, N = 3", lambda: four_bars.make(3)),
        ("Andrews' squeezer", andrews.make),
        ("Bricard", lambda: bricard.make("h6")),
        ("flyball governor", governor.make),
        ("spatial slider-crank", slider_cranks.make_spatial),
        ("equal bars", slider_cranks.make_equal),
        ("regular four-bar", four_bar.make),
        ("spatial_v2's planar2g", elsewhere.make_cam),
        ("RBDL's four-bar", elsewhere.make_bars),
    ]
    for x in textbook.LINKAGES:
        mech = x.drawing().mechanism()
        drawn.append((x.name, lambda mech=mech: (mech, mech.reference)))
    fig, axes = figure(8.0, 8.0, 5, 5)
    for ax, (name, make) in zip(axes.flat, drawn, strict=True):
        mech, q = make()[:2]
        if name in IN_SPACE:
            place = ax.get_subplotspec()
            ax.remove()
            ax = space(fig, place)  # noqa: PLW2901
        hc.draw(mech, q, ax=ax)
        ax.set_axis_off()
        ax.set_title(name, fontsize=7, loc="center")
    return fig


PICTURES = {
    "referee-cost": cost, "referee-energy": energy, "referee-slider-cranks": slider_cranks,
    "referee-mechanisms": mechanisms,
}  # fmt: skip
