"""The lines of a skeleton in axes of matplotlib, and the view of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.figures import AS_WRITTEN
from holoctl.app.palette import BODY, CLOSURE, FAINT, GROUND, JOINT, MOTOR, OPEN, ROD, SOFT
from holoctl.app.skeleton import Skeleton, normal_of_plane
from holoctl.base.checks import Array, Vector, quoted
from holoctl.base.errors import InputError
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import LETTERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["SkeletonLines", "frame", "label", "new_axes", "scales", "view_of", "view_points"]


_SUPPORT = ((0.0, 0.0), (-0.62, -1.0), (0.62, -1.0), (0.0, 0.0))
"""The marker of the ground: a triangle below the point."""

_LOOKS: dict[str, dict[str, Any]] = {
    "bodies": {"color": BODY, "linewidth": 2.5, "solid_capstyle": "round", "zorder": 2},
    "slides": {"color": BODY, "linewidth": 1.2, "zorder": 2, "label": "slide"},
    "rods": {"color": ROD, "linewidth": 1.2, "zorder": 2, "label": "rod"},
    "ground": {
        "marker": _SUPPORT, "color": GROUND, "markersize": 24, "linestyle": "", "zorder": 1,
        "label": "ground", "markeredgewidth": 0.0,
    },
    "joints": {
        "marker": "o", "markersize": 5, "markerfacecolor": "w", "markeredgecolor": JOINT,
        "markeredgewidth": 1.0, "linestyle": "", "zorder": 3, "label": "joint",
    },
    "motors": {
        "marker": "o", "markersize": 8, "color": MOTOR, "markeredgecolor": JOINT,
        "markeredgewidth": 1.0, "linestyle": "", "zorder": 4, "label": "motor",
    },
    "closures": {
        "marker": "o", "markersize": 10, "markerfacecolor": "none", "linestyle": "",
        "markeredgecolor": CLOSURE, "markeredgewidth": 2.0, "zorder": 5, "label": "closure",
    },
    "gaps": {"color": OPEN, "linewidth": 1.2, "linestyle": "--", "zorder": 6},
    "open_ends": {
        "marker": "X", "markersize": 8, "color": OPEN, "linestyle": "", "zorder": 7,
        "label": "does not meet",
    },
}  # fmt: skip
"""Style of each part of a skeleton, by matplotlib's names, at its default sizes."""

USUAL = {"linewidth": 1.5, "markersize": 6.0}
"""Line width and marker size of matplotlib, points. Those of the user, or of `style`, scale
pictures."""

ALONG_AN_AXIS = 1.0 - 1e-6
"""Cosine of the normal and a world axis above which a plane is seen along that axis."""

THINNEST = 0.4
"""Smallest side of a box in space, as a share of its longest side."""

TICK, MARGIN = 6.0, 3.0
"""Room of a number along a side of a box in space, and around a box for numbers and the names of
axes, in sizes of the font."""

NUMBERS, NAME = 0.8, 2.4
"""Distances of the numbers and of the name of an axis from a box in space, in sizes of the font."""

_TO_NUMBERS, _TO_NAME = 8.0, 21.0
"""What matplotlib adds to these distances, before it scales them with the box."""


# ----------------------------------------------------------------------- the view of it


def view_of(
    mech: Mechanism, q: Vector, plane: str | None, ax: Axes | None = None
) -> tuple[Array, tuple[str, ...]]:
    """The matrix (2, 3) or (3, 3) from points of the world to points of a picture, and the names of
    the axes.

    Raises
    ------
    InputError
        For a wrong plane, and axes in which it cannot be drawn.
    """
    in_space = None if ax is None else getattr(ax, "name", "") == "3d"
    if plane is not None:
        letters = tuple(plane) if isinstance(plane, str) else ()
        if len(letters) != 2 or letters[0] == letters[1] or not set(letters) <= set(LETTERS):
            raise InputError(
                f"plane must be two axes of the world, to the right and up, as 'xz'; got "
                f"{quoted(plane)}"
            )
        if in_space:
            raise InputError(f"plane={plane!r} needs flat axes; those given have projection='3d'")
        return np.eye(3)[[LETTERS.index(x) for x in letters]], letters
    normal = None if in_space else normal_of_plane(mech, q)
    if normal is not None:
        return _across(normal)
    if in_space is False:
        raise InputError(
            f"{mech.name} does not move in one plane: give plane='xz' (or another), or axes in "
            "space, figure.add_subplot(projection='3d')"
        )
    return np.eye(3), LETTERS


def _across(normal: Vector) -> tuple[Array, tuple[str, ...]]:
    """The view along a direction, with z up if z is visible."""
    if np.abs(normal).max() > ALONG_AN_AXIS:
        kept = [i for i in range(3) if i != int(np.argmax(np.abs(normal)))]
        return np.eye(3)[kept], tuple(LETTERS[i] for i in kept)
    up = np.array([0.0, 0.0, 1.0]) - normal[2] * normal
    up /= np.linalg.norm(up)
    right = np.cross(up, normal)
    names = ["along ({})".format(", ".join(f"{x:.2g}" for x in d + 0.0)) for d in (right, up)]
    return np.array([right, up]), tuple(names)


def view_points(points: Array, view: Array) -> Array:
    """(n, 2) or (n, 3): points of the world as they are seen."""
    seen: Array = points @ view.T
    return seen


def new_axes(figure: Figure, view: Array) -> Axes:
    """Axes of a figure for a view: flat, or in space with a faint grid on white."""
    from matplotlib import rc_context

    if len(view) == 2:
        return figure.add_subplot()
    with rc_context({"grid.color": FAINT, "grid.linewidth": 0.6}):
        space: Axes = figure.add_subplot(projection="3d")
    return space


def label(ax: Axes, names: tuple[str, ...]) -> None:
    """Names and units of the axes, and one scale for all."""
    for letter, name in zip(LETTERS, names, strict=False):
        getattr(ax, f"set_{letter}label")(f"{name} (m)")
    if len(names) == 2:
        ax.margins(0.08)
        both = all(
            len(x.get_siblings(ax)) > 1 for x in (ax.get_shared_x_axes(), ax.get_shared_y_axes())
        )
        ax.set_aspect("equal", adjustable="box" if both else "datalim")
        return
    limits = np.array([getattr(ax, f"get_{letter}lim")() for letter in LETTERS])
    frame(ax, limits.T)


def frame(ax: Axes, points: Array) -> None:
    """Limits around points (n, 2) or (n, 3), no side much shorter than another; one scale."""
    low, high = points.min(axis=0), points.max(axis=0)
    half, middle = (high - low) / 2.0, (high + low) / 2.0
    half = np.maximum(half, THINNEST * (half.max() or 1.0))
    for letter, m, h in zip(LETTERS, middle, half, strict=False):
        getattr(ax, f"set_{letter}lim")(m - h, m + h)
    ax.set_aspect("equal", adjustable="box")
    if len(half) == 3:
        _space(ax, half / half.max())


def _space(ax: Any, sides: Vector) -> None:
    """White walls, ticks that fit along each side, and names of axes beside the ticks."""
    from matplotlib import rcParams

    font = float(rcParams["font.size"])
    length = 72.0 * min(ax.bbox.width, ax.bbox.height) / ax.figure.dpi / font  # of the box
    ax.set_box_aspect(sides, zoom=max(0.5, 1.0 - MARGIN / length))
    for letter, side in zip(LETTERS, sides, strict=True):
        axis = getattr(ax, f"{letter}axis")
        axis.pane.set(fill=False, edgecolor=FAINT)
        axis.line.set_color(SOFT)
        ax.locator_params(axis=letter, nbins=max(1, round(side * length / TICK)))
        across = float(sides[[x != letter for x in LETTERS]].mean())
        ax.tick_params(axis=letter, labelsize="small", pad=NUMBERS * font / across - _TO_NUMBERS)
        axis.labelpad = NAME * font / across - _TO_NAME


def scales() -> dict[str, float]:
    """Factors of sizes of lines and markers, by the settings of matplotlib."""
    from matplotlib import rcParams

    settings: Any = rcParams
    found = {name: settings[f"lines.{name}"] / usual for name, usual in USUAL.items()}
    return {**found, "markeredgewidth": found["markersize"]}


class SkeletonLines:
    """The lines of one mechanism in one picture, drawn again as it moves."""

    def __init__(self, ax: Axes, view: Array, color: str = BODY) -> None:
        scale = scales()
        self.ax, self.view, self.had_data = ax, view, ax.has_data()
        nothing: list[list[float]] = [[]] * len(view)
        self.lines: dict[str, Any] = {}
        for part, look in _LOOKS.items():
            own = look | ({"color": color} if part in ("bodies", "slides") else {})
            sizes = {name: own[name] * times for name, times in scale.items() if name in own}
            (self.lines[part],) = ax.plot(*nothing, **{**own, **sizes, "label": "_"})
        where: dict[str, Any] = {
            "transform": ax.transAxes,
            "color": OPEN,
            "fontsize": "small",
            "in_layout": False,
            **AS_WRITTEN,
        }
        text: Any = ax.text2D if len(view) == 3 else ax.text  # type: ignore[attr-defined]
        self.message = text(0.01, 0.01, "", **where)

    def legend(self) -> tuple[list[Any], list[str]]:
        """The parts that are there, as a legend shows them, and their names."""
        from matplotlib.lines import Line2D

        there = [x for x in self.lines.values() if not str(x.get_label()).startswith("_")]
        size = self.lines["ground"].get_markersize() / 2.0
        support = Line2D([], [], marker="^", color=GROUND, markersize=size, linestyle="")
        shown = [support if x is self.lines["ground"] else x for x in there]
        return shown, [str(x.get_label()) for x in there]

    def put(self, found: Skeleton, rescale: bool = True) -> None:
        """Draw a skeleton; with `rescale` the limits of the axes follow it."""
        for part, line in self.lines.items():
            points = view_points(_joined(getattr(found, part)), self.view)
            if len(self.view) == 3:
                line.set_data_3d(*points.T)
            else:
                line.set_data(*points.T)
            known = _LOOKS[part].get("label", "_")
            line.set_label(known if len(points) else "_")
        self.message.set_text(found.off)
        if not rescale:
            return
        if len(self.view) == 3:
            points = view_points(found.points, self.view)
            self.ax.auto_scale_xyz(*points.T, self.had_data)  # type: ignore[attr-defined]
        else:
            self.ax.relim()
            self.ax.autoscale_view()


def _joined(x: Array) -> Array:
    """Points unchanged; lines one after the other, separated by nan."""
    if x.ndim == 2:
        return x
    cut = np.full((len(x), 1, 3), np.nan)
    return np.concatenate([x, cut], axis=1).reshape(-1, 3)
