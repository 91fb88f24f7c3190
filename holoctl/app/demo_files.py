"""The files of the demo: its runs, and a picture of the figure and the tracking error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holoctl.app.demo import Demo
from holoctl.app.draw import draw_mechanism
from holoctl.app.figures import legend_below, new_figure
from holoctl.app.palette import FAINT, INK, SOFT, curve
from holoctl.base.errors import HoloctlError
from holoctl.mechanism.motor_units import common_unit, motor_units

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["make_folder", "write"]


def write(result: Demo, out: Path) -> list[Path]:
    """Save the runs (.npz) and the picture (.png); return the paths."""
    make_folder(out)
    names = ("exact", "continuous", "encoders", "heavier", "limited")
    try:
        paths = [
            s.run.save(out / f"{result.mech.name}_{name}.npz")
            for s, name in zip(result.scenarios, names, strict=True)
        ]
        return [*paths, _tracking_picture(result, out / f"{result.mech.name}.png")]
    except OSError as error:
        raise HoloctlError(f"the demo cannot be written to {out}: {error}") from error


def make_folder(out: Path) -> None:
    """Create the output folder; `HoloctlError` if that fails. Called before the computation."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HoloctlError(f"the demo cannot be written to {out}: {error}") from error


def _tracking_picture(result: Demo, path: Path) -> Path:
    """Path, tracking error and motor efforts of a demo, as a PNG.

    If the figure is horizontal, it is shown from above and the robot from the side.
    """
    fig = new_figure(11.0, 7.5)
    grid = fig.add_gridspec(2, 2, width_ratios=(1.0, 1.25))
    plane = result.drawing.plane
    if 2 in plane:  # upright
        where = fig.add_subplot(grid[:, 0])
        _draw_robot(where, result, plane)
    else:
        where, side = fig.add_subplot(grid[0, 0]), fig.add_subplot(grid[1, 0])
        _draw_robot(side, result, (plane[1], 2))
        _draw_figure(side, result, (plane[1], 2))
        side.set(title="The robot from the side")
    _draw_figure(where, result, plane)
    where.set(title=f"{result.mech.name}: the figure and what was drawn")
    legend_below(fig, *where.get_legend_handles_labels())
    error, torque = fig.add_subplot(grid[0, 1]), fig.add_subplot(grid[1, 1])
    for i, s in enumerate(result.scenarios):
        error.semilogy(
            s.run.t, np.maximum(s.error, 1e-16), color=curve(i), linewidth=1.0, label=s.label
        )
    error.axvline(result.transient, color=SOFT, linestyle=":", linewidth=1)
    error.set(xlabel="t (s)", ylabel="distance from the figure (m)", title="Tracking error")
    error.grid(alpha=0.3)
    last, first = result.scenarios[-1], result.scenarios[0]
    for i, motor in enumerate(result.mech.actuator_names):
        torque.plot(last.run.t, last.run.u[:, i], color=curve(i), linewidth=1.2, label=motor)
        torque.plot(first.run.t, first.run.u[:, i], color=curve(i), linewidth=0.8, linestyle="--")
    for most in (-last.most, last.most):
        if -np.inf < most < np.inf:
            torque.axhline(most, color=INK, linestyle=":", linewidth=1)
    torque.set(
        xlabel="t (s)", ylabel=f"effort ({common_unit(motor_units(result.mech))})",
        title=f"Motor efforts: {last.label} (dashed: exact)",
    )  # fmt: skip
    torque.legend(fontsize="small")
    torque.grid(alpha=0.3)
    fig.savefig(path, dpi=120)
    return path


def _draw_robot(axes: Axes, result: Demo, plane: tuple[int, int]) -> None:
    """The robot at the start, and at half time in a lighter grey."""
    q = result.scenarios[-1].run.q
    draw_mechanism(axes, result.mech, q[len(q) // 2], plane, color=FAINT)
    draw_mechanism(axes, result.mech, q[0], plane)


def _draw_figure(axes: Axes, result: Demo, plane: tuple[int, int]) -> None:
    """The figure, and the path of the tip in each scenario."""
    x, y = plane
    axes.plot(*result.figure[:, [x, y]].T, color=INK, linewidth=4, alpha=0.25, label="figure")
    for i, s in enumerate(result.scenarios):
        axes.plot(*s.tip[:, [x, y]].T, color=curve(i), linewidth=1.2, label=s.label)
    axes.set(aspect="equal", xlabel=f"{'xyz'[x]} (m)", ylabel=f"{'xyz'[y]} (m)")
    axes.locator_params(nbins=5)
