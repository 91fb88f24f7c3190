"""Pictures of docs/referee.md, from docs/referee.json: `make referee` writes both."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter
from style import BLUE, GREEN, INK, ORANGE, PURPLE, SOFT, figure, space

DOCS = Path(__file__).resolve().parents[1]
COLOURS = {
    "holoctl": BLUE, "constraintDynamics": ORANGE, "constraintDynamics, DOP853": ORANGE,
    "Exudyn": GREEN, "MuJoCo": PURPLE, "published methods": SOFT,
}  # fmt: skip
READINGS = {"a": BLUE, "b": GREEN, "c": ORANGE}
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
    fig, axes = figure(8.0, 3.6, 1, 3)
    table = data()["table"]
    for name in ("holoctl", "constraintDynamics", "Exudyn", "MuJoCo", "published methods"):
        points = np.array([[s, max(e, 1e-13)] for _, who, s, e in table if who == name])
        if len(points):
            look = {"color": COLOURS[name], "label": name, "alpha": 0.85}
            axes[0].plot(*points.T, "o", markersize=4, linestyle="none", **look)
    axes[0].set_title("every row of the table")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    for ax, (problem, curves) in zip(axes[1:], data()["precision"].items(), strict=False):
        for name, runs in curves.items():
            ax.plot(*np.array(runs).T, "o-", markersize=4, color=COLOURS[name])
        ax.set_title(problem.replace("rigid ", "").replace(", cut at h6", ", 10 s"))
    for ax in axes:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.xaxis.set_minor_formatter(NullFormatter())
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


def histories() -> Any:
    """Distances of the published slider-crank histories: from our runs, and from each other."""
    file = DOCS / "referee-histories.json"
    found = json.loads(file.read_text(encoding="utf-8"))
    names = [h["name"] for h in found["histories"]]
    fig, (bars, field) = figure(8.0, 3.7, 1, 2)
    rows = np.arange(len(names))
    for k, (key, color) in enumerate(READINGS.items()):
        far = [1e3 * h["whole"][key] for h in found["histories"]]
        soon = [1e3 * h["soon"][key] for h in found["histories"]]
        at = rows + 0.27 * (k - 1)
        bars.barh(at, far, 0.24, left=1e-4, color=color, alpha=0.45, label=f"reading {key}")
        bars.plot(soon, at, "|", color=color, markersize=8, markeredgewidth=2.0)
    bars.set_xscale("log")
    bars.set_xlim(5e-4, 200.0)
    bars.set_yticks(rows, names)
    bars.invert_yaxis()
    bars.grid(visible=False, axis="y")
    bars.set_xlabel("distance from holoctl (mm); |: in the first second")
    bars.set_title("largest distance from each reading")
    bars.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    apart = np.full((len(names), len(names)), np.nan)
    for x in found["pairs"]:
        i, k = sorted((names.index(x["one"]), names.index(x["other"])))
        apart[i, k] = apart[k, i] = 1e3 * x["distance"]
        when = "never" if x["first"] is None else f"{x['first']:.2f} s"
        field.text(k, i, f"{1e3 * x['distance']:.0f}", ha="center", va="center", color=INK)
        field.text(i, k, when, ha="center", va="center", color=INK, fontsize=8)
    field.imshow(np.log10(apart), cmap="Oranges", vmin=0.0, vmax=3.0)
    field.set_xticks(rows, names, rotation=40, ha="right")
    field.set_yticks(rows, names)
    field.grid(visible=False)
    field.set_title("apart (mm); below: by 1 mm, from")
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
    "referee-cost": cost, "referee-energy": energy, "referee-histories": histories,
    "referee-mechanisms": mechanisms,
}  # fmt: skip
