"""Pictures of controller design. Needs the extra ``holoctl[plot]``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holoctl.app.plot import new_figure
from holoctl.base.errors import InputError
from holoctl.design.linear_model import Linearization

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_modes", "save"]


def save(figure: Figure, path: Path) -> None:
    """Write a picture.

    Raises
    ------
    InputError
        Where it cannot be written.
    """
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise InputError(f"--picture: {path} cannot be written: {error}") from None


def draw_modes(lin: Linearization) -> Figure:
    """Eigenvalues in the complex plane, each with what takes part in it."""
    figure = new_figure(7.0, 5.0)
    ax = figure.add_subplot()
    for mode in lin.modes():
        at = mode.value
        x = [at.real] if at.imag == 0.0 else [at.real, at.real]
        y = [0.0] if at.imag == 0.0 else [at.imag, -at.imag]
        points = ax.plot(x, y, "x", markersize=9, markeredgewidth=2)[0]
        points.set_color("tab:red" if not mode.drifts and not mode.stable else "tab:blue")
        ax.annotate(
            ", ".join(mode.coordinates[:2]), (x[0], y[0]), xytext=(6, 6),
            textcoords="offset points", fontsize=8,
        )  # fmt: skip
    ax.axvline(0.0, color="0.5", linewidth=1)
    ax.axhline(0.0, color="0.8", linewidth=1)
    reach = max([1.0, *(abs(mode.value) for mode in lin.modes() if np.isfinite(mode.value))])
    ax.set_xlim(-1.2 * reach, 1.2 * reach)
    ax.set_ylim(-1.2 * reach, 1.2 * reach)
    ax.set_xlabel("growth, 1/s")
    ax.set_ylabel("swing, rad/s")
    ax.set_title(f"{lin.mech.name}: modes at rest (red: they grow)")
    return figure
