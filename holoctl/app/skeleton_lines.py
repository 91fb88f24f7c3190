"""The lines of a skeleton in axes of matplotlib, and the view of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.palette import BODY, CLOSURE, GROUND, JOINT, MOTOR, OPEN, ROD
from holoctl.app.skeleton import Skeleton, normal_of_plane
from holoctl.base.checks import Array, Vector, quoted, shown
from holoctl.base.errors import InputError
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import LETTERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "AS_WRITTEN",
    "SkeletonLines",
    "check_axes",
    "check_color",
    "frame",
    "label",
    "matplotlib_or_error",
    "new_figure",
    "view_of",
    "view_points",
]


_LOOKS: dict[str, dict[str, Any]] = {
    "bodies": {"color": BODY, "linewidth": 2.5, "solid_capstyle": "round", "zorder": 2},
    "slides": {"color": BODY, "linewidth": 1.2, "zorder": 2, "label": "slide"},
    "rods": {"color": ROD, "linewidth": 1.2, "zorder": 2, "label": "rod"},
    "ground": {
        "marker": "^", "color": GROUND, "markersize": 11, "linestyle": "", "zorder": 1,
        "label": "fastened to the world",
    },
    "joints": {
        "marker": "o", "markersize": 5, "markerfacecolor": "w", "markeredgecolor": JOINT,
        "linestyle": "", "zorder": 3, "label": "joint",
    },
    "motors": {
        "marker": "o", "markersize": 8, "color": MOTOR, "linestyle": "", "zorder": 4,
        "label": "motor",
    },
    "closures": {
        "marker": "o", "markersize": 9, "markerfacecolor": "none", "linestyle": "",
        "markeredgecolor": CLOSURE, "markeredgewidth": 1.8, "zorder": 5, "label": "closure",
    },
    "gaps": {"color": OPEN, "linewidth": 1.2, "linestyle": "--", "zorder": 6},
    "open_ends": {
        "marker": "X", "markersize": 8, "color": OPEN, "linestyle": "", "zorder": 7,
        "label": "does not meet",
    },
}  # fmt: skip
"""Style of each part of a skeleton, by matplotlib's names."""

AS_WRITTEN: dict[str, Any] = {"parse_math": False, "usetex": False}
"""Style of texts with names, in which `$` and `_` are not mathematics."""

ALONG_AN_AXIS = 1.0 - 1e-6
"""Cosine of the normal and a world axis above which a plane is seen along that axis."""

THINNEST = 0.4
"""Smallest side of a box in space, as a share of its longest side."""


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
    ax.locator_params(nbins=5)


def frame(ax: Axes, points: Array) -> None:
    """Limits around points (n, 2) or (n, 3), no side much shorter than another; one scale."""
    low, high = points.min(axis=0), points.max(axis=0)
    half, middle = (high - low) / 2.0, (high + low) / 2.0
    half = np.maximum(half, THINNEST * (half.max() or 1.0))
    for letter, m, h in zip(LETTERS, middle, half, strict=False):
        getattr(ax, f"set_{letter}lim")(m - h, m + h)
    ax.set_aspect("equal", adjustable="box")


class SkeletonLines:
    """The lines of one mechanism in one picture, drawn again as it moves."""

    def __init__(self, ax: Axes, view: Array, color: str = BODY) -> None:
        self.ax, self.view, self.had_data = ax, view, ax.has_data()
        nothing: list[list[float]] = [[]] * len(view)
        self.lines: dict[str, Any] = {}
        for part, look in _LOOKS.items():
            own = look | ({"color": color} if part in ("bodies", "slides") else {})
            (self.lines[part],) = ax.plot(*nothing, **{**own, "label": "_"})
        where: dict[str, Any] = {
            "transform": ax.transAxes,
            "color": OPEN,
            "fontsize": 8,
            "in_layout": False,
            **AS_WRITTEN,
        }
        text: Any = ax.text2D if len(view) == 3 else ax.text  # type: ignore[attr-defined]
        self.message = text(0.01, 0.01, "", **where)

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


# --------------------------------------------------------------------------- matplotlib


def check_axes(ax: Any) -> None:
    """Raise `InputError` for a value that is not axes, and for axes that are not to scale."""
    if not hasattr(ax, "has_data"):
        raise InputError(f"ax must be axes of matplotlib; got {type(ax).__name__}")
    kind = getattr(ax, "name", "")
    if kind not in ("rectilinear", "3d"):
        raise InputError(f"ax must be flat, or have projection='3d'; got {quoted(kind)}")
    for letter in LETTERS[: 3 if kind == "3d" else 2]:
        if (scale := getattr(ax, f"get_{letter}scale")()) != "linear":
            raise InputError(
                f"a mechanism is drawn to scale, on linear axes; that of {letter} is {scale!r}"
            )


def matplotlib_or_error() -> type[Figure]:
    """Matplotlib's class Figure; `InputError` if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "pictures need matplotlib, which is not installed: pip install 'holoctl[plot]'"
        ) from None
    return Figure


def new_figure(width: float, height: float) -> Figure:
    """A figure of a width and a height in inches; `InputError` if matplotlib is missing."""
    return matplotlib_or_error()(figsize=(width, height), layout="constrained")


def check_color(color: Any) -> None:
    """Raise `InputError` for a value that is not a color of matplotlib."""
    from matplotlib.colors import is_color_like

    if not isinstance(color, str) or not is_color_like(color):
        raise InputError(
            f"color must be a color of matplotlib, as 'tab:blue' or '0.8'; got {shown(color)!r}"
        )
