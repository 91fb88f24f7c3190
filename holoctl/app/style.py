"""`style`: matplotlib's settings for figures of papers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

from holoctl.app.figures import matplotlib_or_error
from holoctl.app.palette import CURVES, FAINT, INK, SOFT
from holoctl.base.checks import one_of, quoted
from holoctl.base.errors import InputError
from holoctl.io.xml import decimals

__all__ = ["LOOK", "SIZES", "look", "style"]

LOOK: Mapping[str, Any] = MappingProxyType(
    {
        "axes.axisbelow": True,
        "axes.edgecolor": SOFT,
        "axes.grid": True,
        "axes.labelcolor": INK,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes3d.xaxis.panecolor": "white",
        "axes3d.yaxis.panecolor": "white",
        "axes3d.zaxis.panecolor": "white",
        "figure.constrained_layout.use": True,
        "figure.facecolor": "white",
        "font.family": "DejaVu Sans",  # comes with matplotlib
        "grid.color": FAINT,
        "legend.frameon": False,
        "mathtext.fontset": "dejavusans",
        "pdf.fonttype": 42,  # fonts are embedded as TrueType, which publishers require
        "ps.fonttype": 42,
        "savefig.facecolor": "white",
        "text.color": INK,
        "xtick.color": SOFT,
        "xtick.labelcolor": INK,
        "ytick.color": SOFT,
        "ytick.labelcolor": INK,
    }
)
"""Settings of all styles, by matplotlib's names, without the colors of curves."""

_IN_PRINT: dict[str, Any] = {
    "axes.labelsize": 8.0, "axes.linewidth": 0.6, "axes.titlesize": 8.0, "font.size": 8.0,
    "grid.linewidth": 0.4, "legend.fontsize": 7.0, "lines.linewidth": 1.0, "lines.markersize": 4.0,
    "patch.linewidth": 0.6, "savefig.dpi": 600.0, "xtick.labelsize": 7.0,
    "xtick.major.width": 0.6, "ytick.labelsize": 7.0, "ytick.major.width": 0.6,
}  # fmt: skip
_ON_SCREEN: dict[str, Any] = {
    "axes.labelsize": 16.0, "axes.linewidth": 1.0, "axes.titlesize": 18.0, "font.size": 16.0,
    "grid.linewidth": 0.8, "legend.fontsize": 14.0, "lines.linewidth": 2.4,
    "lines.markersize": 9.0, "savefig.dpi": 150.0, "xtick.labelsize": 14.0,
    "ytick.labelsize": 14.0,
}  # fmt: skip

SIZES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "column": MappingProxyType(_IN_PRINT | {"figure.figsize": (3.5, 2.6)}),
        "page": MappingProxyType(_IN_PRINT | {"figure.figsize": (7.16, 3.0)}),
        "slide": MappingProxyType(_ON_SCREEN | {"figure.figsize": (10.0, 5.6)}),
    }
)
"""Sizes of each style, in points and inches. Widths of figures in journals of the IEEE: 3.5 in in
one column, 7.16 in in two."""

_INCH = 25.4  # mm
_UNITS = {"mm": 1.0 / _INCH, "cm": 10.0 / _INCH, "in": 1.0}


def style(
    name: str = "column", *, width: str | None = None, height: str | None = None
) -> AbstractContextManager[None]:
    """Figures for papers: settings of matplotlib within a ``with`` block. Needs ``holoctl[plot]``.

    They apply to the figures of this library and to any other figure that is made and saved within
    the block: size, fonts, line widths, colors that are distinct for the color-blind, and the
    constrained layout. Fonts are embedded in PDF and PostScript as TrueType.

    Parameters
    ----------
    name : str, optional
        ``"column"``: one column of a journal of the IEEE, 3.5 in (88.9 mm) wide; ``"page"``: both
        columns, 7.16 in (181.9 mm); letters of 7 to 8 points in both. ``"slide"``: 10 in wide,
        letters of 14 to 18 points.
    width, height : str, optional
        Another size of the figure, as ``"85 mm"``, ``"8.5 cm"`` or ``"3.35 in"``. `plot_run` makes
        figures of this width, and higher ones: one panel is about half as high.

    Returns
    -------
    context manager
        The former settings apply again after the block.

    Raises
    ------
    InputError
        For another name, a size that is not a positive number with its unit, or if matplotlib is
        missing.

    See Also
    --------
    draw : one configuration.
    plot_run : positions, rates and efforts over time.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> with hc.style("column", height="60 mm"):
    ...     ax = hc.draw(mech, hc.assemble(mech)[0])
    >>> [round(25.4 * float(size), 1) for size in ax.figure.get_size_inches()]
    [88.9, 60.0]
    """
    sizes = SIZES[one_of("style: name", name, tuple(SIZES))]
    matplotlib_or_error()
    import matplotlib as mpl

    usual = sizes["figure.figsize"]
    size = [
        length if given is None else _inches(word, given)
        for word, given, length in zip(("width", "height"), (width, height), usual, strict=True)
    ]
    settings: Any = {**look(), **sizes, "figure.figsize": size}
    return mpl.rc_context(settings)


def look() -> dict[str, Any]:
    """The settings of all styles, with the colors of curves."""
    from cycler import cycler

    return {**LOOK, "axes.prop_cycle": cycler(color=CURVES)}


def _inches(word: str, given: Any) -> float:
    """A length with its unit, in inches."""
    text = given.strip() if isinstance(given, str) else ""
    number, unit = decimals(text[:-2], [1]), _UNITS.get(text[-2:], 0.0)
    if number is None or not number[0] * unit > 0.0:
        raise InputError(
            f"style: {word} must be a positive length with its unit, as '88.9 mm', '8.89 cm' or "
            f"'3.5 in'; got {quoted(given)}"
        )
    return number[0] * unit
