"""Pictures of controller design. Needs the extra ``holoctl[plot]``."""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.palette import BLUE, FAINT, OPEN, SOFT, curve
from holoctl.app.skeleton_lines import new_figure
from holoctl.base.errors import InputError
from holoctl.base.tolerances import NOT_DAMPED
from holoctl.design.linear.model import Linearization
from holoctl.design.maps.result import MotorMap
from holoctl.design.paths.trajectory import Trajectory
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.default_limits import limits_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_result", "save"]


def save(figure: Figure, path: Path) -> None:
    """Write a picture.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:
        raise InputError(f"--picture: {path} cannot be written: {error}") from None


@singledispatch
def draw_result(result: Any) -> Figure:
    """A picture of the result of a command."""
    raise TypeError(f"no picture of {type(result).__name__}")


@draw_result.register(Linearization)
def _modes(lin: Linearization) -> Figure:
    """Eigenvalues in the complex plane, each with a number and a sentence."""
    modes = lin.modes()
    figure = new_figure(7.0, 5.0 + 0.22 * len(modes))
    ax = figure.add_subplot()
    for i, mode in enumerate(modes, start=1):
        at = mode.value
        x, y = (at.real, at.real), (at.imag, -at.imag)
        color = OPEN if mode.damping < -NOT_DAMPED else BLUE
        ax.plot(
            x, y, "x", color=color, markersize=9, markeredgewidth=2, label=f"{i}  {mode.sentence}"
        )
        aside = (9, -4) if i % 2 else (-15, -4)
        ax.annotate(f"{i}", (x[0], y[0]), xytext=aside, textcoords="offset points")
    ax.axvline(0.0, color=SOFT, linewidth=1, zorder=0)
    ax.axhline(0.0, color=FAINT, linewidth=1, zorder=0)
    reach = 1.2 * max([1.0, *(abs(mode.value) for mode in modes if np.isfinite(mode.value))])
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set(xlabel="growth, 1/s", ylabel="swing, rad/s", title=f"{lin.mech.name}: modes at rest")
    figure.legend(loc="outside lower left", fontsize=8, frameon=False)
    return figure


@draw_result.register(Trajectory)
def _trajectory(trajectory: Trajectory) -> Figure:
    """Positions, rates and efforts of the motors over time, efforts with their limits."""
    mech, t = trajectory.mech, trajectory.t
    figure = new_figure(8.0, 8.0)
    axes = figure.subplots(3, 1, sharex=True)
    times = np.union1d(t, np.linspace(0.0, trajectory.duration, 400))
    motion = np.array([np.concatenate(trajectory.reference(x)[:2]) for x in times])
    positions, rates = np.split(motion, [motion.shape[1] - mech.nu], axis=1)
    bounds = bound_limits(mech, limits_of(mech))
    for i, name in enumerate(mech.actuator_names):
        color = curve(i)
        if positions.shape[1] == mech.nu:
            axes[0].plot(times, positions[:, i] - positions[0, i], color=color, label=name)
        axes[1].plot(times, rates[:, i], color=color)
        axes[2].plot(t, trajectory.u[:, i], color=color)
        for limit in bounds.effort[:, i]:
            if np.isfinite(limit):
                axes[2].axhline(limit, color=color, linewidth=1, linestyle=":")
    axes[0].set(ylabel="motors, rad or m", title=f"{mech.name}: {trajectory.duration:.4g} s")
    axes[0].legend(fontsize=8)
    axes[1].set(ylabel="their rates, 1/s")
    axes[2].set(ylabel="efforts, N m or N", xlabel="s")
    return figure


@draw_result.register(MotorMap)
def _map(found: MotorMap) -> Figure:
    """All quantities of the map, side by side."""
    figure = new_figure(4.5 * len(found.what), 4.2)
    for ax, what in zip(
        figure.subplots(1, len(found.what), squeeze=False)[0], found.what, strict=True
    ):
        found.plot(what, ax=ax)
    return figure
