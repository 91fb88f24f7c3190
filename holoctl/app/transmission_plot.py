"""Pictures of transmissions: workspace, effort polytopes, and errors of approximations. Needs the
extra ``holoctl[plot]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.figures import AS_WRITTEN, default_size, new_figure
from holoctl.app.palette import BLUE, FAINT, INK, MOTOR, OPEN, PURPLE, SOFT, curve
from holoctl.app.style import look
from holoctl.base.checks import Array, Vector
from holoctl.transmission.report import OUT_OF_REACH, REACHED, UNCONTROLLED, TransmissionReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_transmission"]

BEYOND = (
    (OUT_OF_REACH, FAINT, "beyond a singular posture of the linkage"),
    (UNCONTROLLED, "#efb9bc", "motors lose control (det J = 0)"),
)
"""Parts of the domain that are not reached: status, color, and name."""

MOST_LEVELS = 4
"""Largest number of contours of a quantity."""

SMALLEST = 1e-4
"""Relative errors start here on their axis."""


def draw_transmission(report: TransmissionReport, lengths: Sequence[bool]) -> Figure:
    """A picture of a report of one or two joints, of which some have lengths as positions."""
    from matplotlib import rc_context

    settings: Any = look()
    with rc_context(settings):
        width = 1.9 * default_size()[0]
        figure = new_figure(width, 0.42 * width)
        panels = figure.subplots(1, 3, width_ratios=(1.0, 1.0, 0.9))
        places = [
            f"{n} ({'m' if y else 'rad'})" for n, y in zip(report.joints, lengths, strict=True)
        ]
        efforts = [
            f"{n} ({'N' if y else 'N m'})" for n, y in zip(report.joints, lengths, strict=True)
        ]
        if len(report.joints) == 1:
            _curves(panels[0], report, places[0])
            _intervals(panels[1], report, places[0], efforts[0])
        else:
            _workspace(panels[0], report, places)
            _polytopes(panels[1], report, efforts)
        _errors(panels[2], report)
        motors = ", ".join(report.motors)
        figure.suptitle(f"{', '.join(report.joints)} driven by {motors}", **AS_WRITTEN)
    return figure


# ------------------------------------------------------------------------------------ workspace


def _workspace(ax: Axes, report: TransmissionReport, labels: Sequence[str]) -> None:
    """Parts of the domain of two joints, and contours of determinant and noise gain."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    x, y = _axes(report)
    colors = ListedColormap(["white", *(color for _, color, _ in BEYOND)])
    ax.pcolormesh(x, y, report.status.T, cmap=colors, vmin=-0.5, vmax=2.5, shading="nearest")
    ax.grid(visible=False)
    handles: list[Any] = [
        Patch(facecolor=color, label=name)
        for status, color, name in BEYOND if (report.status == status).any()
    ]  # fmt: skip
    for values, color, style, name in (
        (report.determinant, BLUE, "-", "det J, relative to the start"),
        (report.noise_gain, PURPLE, "--", "noise gain of the linkage"),
    ):
        handles += _contours(ax, x, y, values, color, style, name)
    for i, (at, _) in enumerate(report.polytopes):
        ax.plot(*at, "o", color=curve(i), markeredgecolor="white", markersize=7, zorder=3)
    ax.set_xlabel(labels[0], **AS_WRITTEN)
    ax.set_ylabel(labels[1], **AS_WRITTEN)
    ax.set_title(f"workspace: {100.0 * report.reached:.0f} % reached")
    if handles:
        ax.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize="small"
        )


def _contours(
    ax: Axes, x: Vector, y: Vector, values: Array, color: str, style: Any, name: str
) -> list[Any]:
    """Contours of a quantity; the handle of its name."""
    from matplotlib.lines import Line2D

    low, high = np.nanmin(values), np.nanmax(values)
    levels = _levels(low, high)
    if not levels:
        return []
    drawn = ax.contour(x, y, values.T, levels, colors=color, linestyles=style, linewidths=1.2)
    ax.clabel(drawn, fmt=lambda level: f"{level:.3g}", fontsize="x-small")
    return [Line2D([], [], color=color, linestyle=style, label=name)]


def _levels(low: float, high: float) -> list[float]:
    """Some round numbers between two positive ones."""
    steps = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0)
    found = [a * 10.0**k for k in range(-3, 4) for a in steps if low < a * 10.0**k < high]
    return found[:: max(1, -(-len(found) // MOST_LEVELS))]


def _curves(ax: Axes, report: TransmissionReport, label: str) -> None:
    """Determinant and noise gain over one joint."""
    (x,) = _axes(report)
    ax.semilogy(x, report.determinant, color=BLUE, label="J, relative to the start")
    ax.semilogy(x, report.noise_gain, color=PURPLE, ls="--", label="noise gain of the linkage")
    shown = np.concatenate([report.determinant, report.noise_gain])
    ax.set_yticks(_levels(0.8 * np.nanmin(shown), 1.2 * np.nanmax(shown)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    for status, color, name in BEYOND:
        if (report.status == status).any():
            where = report.status == status
            band = ax.get_xaxis_transform()
            ax.fill_between(x, 0.0, 1.0, where, color=color, lw=0, transform=band, label=name)
    ax.set_xlabel(label, **AS_WRITTEN)
    ax.set_title(f"workspace: {100.0 * report.reached:.0f} % reached")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize="small")


def _axes(report: TransmissionReport) -> list[Vector]:
    sizes = zip(report.lower, report.upper, report.status.shape, strict=True)
    return [np.linspace(low, high, n) for low, high, n in sizes]


# -------------------------------------------------------------------------------------- efforts


def _polytopes(ax: Axes, report: TransmissionReport, labels: Sequence[str]) -> None:
    """Joint efforts that motors can give at some postures, and the box of the approximation."""
    ax.set_title("joint efforts that motors can give")
    if not report.polytopes:
        _without_limits(ax)
        return
    from matplotlib.patches import Rectangle

    for i, (at, polytope) in enumerate(report.polytopes):
        found = polytope.vertices
        around = found[np.argsort(np.arctan2(*(found - polytope.center).T[::-1]))]
        name = ", ".join(f"{a + 0.0:.2f}" for a in at) + (" (start)" if i == 0 else "")
        closed = np.vstack([around, around[:1]])
        ax.plot(*closed.T, color=curve(i), label=name, linewidth=1.4)
    (x, y), (width, height) = _box(report)[0], np.subtract(*_box(report)[::-1])
    ax.add_patch(
        Rectangle((x, y), width, height, fill=False, edgecolor=OPEN, linestyle=":", linewidth=1.6,
                  label="joint limits, as a box")
    )  # fmt: skip
    ax.set_xlabel(labels[0], **AS_WRITTEN)
    ax.set_ylabel(labels[1], **AS_WRITTEN)
    ax.autoscale_view()
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize="small", ncols=2)


def _intervals(ax: Axes, report: TransmissionReport, label: str, effort: str) -> None:
    """The efforts of one joint at some postures."""
    ax.set_title("joint effort that motors can give")
    if not report.polytopes:
        _without_limits(ax)
        return
    for i, (at, polytope) in enumerate(report.polytopes):
        x = polytope.vertices[:, 0]
        name = f"{at[0]:.2f}" + (" (start)" if i == 0 else "")
        ax.plot([at[0], at[0]], x, "_-", color=curve(i), linewidth=3, markersize=12, label=name)
    for k, bound in enumerate(_box(report)):
        ax.axhline(bound[0], color=OPEN, linestyle=":", label="" if k else "joint limits, as a box")
    (x,) = _axes(report)
    there = x[report.status == REACHED]
    ax.set_xlim(there.min(), there.max())
    ax.set_xlabel(label, **AS_WRITTEN)
    ax.set_ylabel(effort, **AS_WRITTEN)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize="small", ncols=2)


def _box(report: TransmissionReport) -> tuple[Vector, Vector]:
    """The box of the largest joint efforts at the start."""
    found = report.polytopes[0][1].vertices
    return found.min(axis=0), found.max(axis=0)


def _without_limits(ax: Axes) -> None:
    ax.text(0.5, 0.5, "no effort limits of the motors", ha="center", color=SOFT,
            transform=ax.transAxes)  # fmt: skip
    ax.set_axis_off()


# --------------------------------------------------------------------------------------- errors


def _errors(ax: Axes, report: TransmissionReport) -> None:
    """Median and worst error of each approximation."""
    names = list(report.errors)
    median, worst = np.array(list(report.errors.values())).reshape(-1, 2).T
    at = np.arange(len(names))[::-1]
    ax.barh(at, np.maximum(worst, SMALLEST), color=FAINT, label="worst", height=0.7)
    ax.barh(at, np.maximum(median, SMALLEST), color=MOTOR, label="median", height=0.4)
    for y, m, w in zip(at, median, worst, strict=True):
        ax.annotate(f"{m:.2g}, {w:.2g}", (max(w, SMALLEST), y), xytext=(4, 0), color=INK,
                    textcoords="offset points", va="center", fontsize="x-small",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})  # fmt: skip
    most = max(1.0, float(worst.max(initial=0.0)))
    ax.set(
        xscale="log",
        xlim=(SMALLEST, 12.0 * most),
        yticks=at,
        xlabel="relative error of the approximation",
    )
    ax.set_yticklabels(names)
    ax.axvline(1.0, color=SOFT, linewidth=0.8, zorder=0)
    ax.grid(visible=False, axis="y")
    ax.set_title(f"errors over {report.samples} postures")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), fontsize="small", ncols=2)
