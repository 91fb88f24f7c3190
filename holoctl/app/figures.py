"""Figures and axes of matplotlib: made, checked, and their legends. Needs ``holoctl[plot]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holoctl.base.checks import quoted, shown
from holoctl.base.errors import InputError
from holoctl.tree.frames import LETTERS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "AS_WRITTEN",
    "check_axes",
    "check_color",
    "default_size",
    "legend_below",
    "matplotlib_or_error",
    "new_figure",
]

AS_WRITTEN: dict[str, Any] = {"parse_math": False, "usetex": False}
"""Style of texts with names, in which `$` and `_` are not mathematics."""

MOST_COLUMNS = 6
"""Largest number of columns in a legend."""

LETTER, REST = 0.6, 3.6
"""Width of a letter of a legend, and of an entry without its name, over the size of the font."""


def matplotlib_or_error() -> type[Figure]:
    """Matplotlib's class Figure; `InputError` if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "pictures need matplotlib, which is not installed: pip install 'holoctl[plot]'"
        ) from None
    return Figure


def default_size() -> tuple[float, float]:
    """Width and height of a figure in inches, as `style` or the user sets them."""
    from matplotlib import rcParams

    width, height = rcParams["figure.figsize"]
    return float(width), float(height)


def new_figure(width: float | None = None, height: float | None = None) -> Figure:
    """A figure of a width and a height in inches, by default those of matplotlib's settings;
    `InputError` if matplotlib is missing."""
    kind = matplotlib_or_error()
    usual = default_size()
    size = (usual[0] if width is None else width, usual[1] if height is None else height)
    return kind(figsize=size, layout="constrained")


def legend_below(figure: Figure, lines: Sequence[Any], names: Sequence[str]) -> None:
    """One legend for all axes of a figure, below them, with all names, also those with "_", which
    matplotlib skips."""
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size=_font_size()).get_size_in_points()
    inches = figure.bbox.width / figure.dpi
    entry = size * (REST + LETTER * max((len(x) for x in names), default=0))
    columns = max(1, min(MOST_COLUMNS, len(names), int(72.0 * inches / entry)))
    legend = figure.legend(
        lines, ["."] * len(lines), loc="outside lower center", ncols=columns, fontsize=size,
        frameon=False, handlelength=1.6, columnspacing=1.2,
    )  # fmt: skip
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=name, **AS_WRITTEN)


def _font_size() -> Any:
    """That of the user's settings for legends; matplotlib's own, "medium", is too large."""
    from matplotlib import rcParams

    found = rcParams["legend.fontsize"]
    return "small" if found == "medium" else found


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


def check_color(color: Any) -> None:
    """Raise `InputError` for a value that is not a color of matplotlib."""
    from matplotlib.colors import is_color_like

    if not isinstance(color, str) or not is_color_like(color):
        raise InputError(
            f"color must be a color of matplotlib, as 'tab:blue' or '0.8'; got {shown(color)!r}"
        )
