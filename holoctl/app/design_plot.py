"""Pictures of controller design. Needs the extra ``holoctl[plot]``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holoctl.app.plot import new_figure
from holoctl.base.errors import InputError
from holoctl.base.tolerances import NOT_MOVING
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
    """Eigenvalues in the complex plane, with a number and a sentence each."""
    modes = lin.modes()
    figure = new_figure(7.0, 5.0 + 0.22 * len(modes))
    ax = figure.add_subplot()
    for i, mode in enumerate(modes, start=1):
        at = mode.value
        x, y = (at.real, at.real), (at.imag, -at.imag)
        color = "tab:red" if mode.damping < -NOT_MOVING else "tab:blue"
        ax.plot(
            x, y, "x", color=color, markersize=9, markeredgewidth=2, label=f"{i}  {mode.sentence}"
        )
        ax.annotate(f"{i}", (x[0], y[0]), xytext=(5, 6 + 9 * (i % 2)), textcoords="offset points")
    ax.axvline(0.0, color="0.5", linewidth=1, zorder=0)
    ax.axhline(0.0, color="0.8", linewidth=1, zorder=0)
    reach = 1.2 * max([1.0, *(abs(mode.value) for mode in modes if np.isfinite(mode.value))])
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set(xlabel="growth, 1/s", ylabel="swing, rad/s", title=f"{lin.mech.name}: modes at rest")
    figure.legend(loc="outside lower left", fontsize=8, frameon=False)
    return figure
