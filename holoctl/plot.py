"""Pictures, for where one would rather look than read. Needs the extra ``holoctl[plot]``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from holoctl.checks import Vector
from holoctl.errors import InputError
from holoctl.mechanism import Mechanism, workspace
from holoctl.simulation import Run
from holoctl.tree import kinematics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_mechanism", "tracking_picture"]

Array = NDArray[np.float64]


class _Scenario(Protocol):
    @property
    def label(self) -> str: ...
    @property
    def run(self) -> Run: ...
    @property
    def tip(self) -> Array: ...
    @property
    def error(self) -> Vector: ...


class _Drawing(Protocol):
    @property
    def plane(self) -> tuple[int, int]: ...


class _Demo(Protocol):
    @property
    def mech(self) -> Mechanism: ...
    @property
    def figure(self) -> Array: ...
    @property
    def scenarios(self) -> Sequence[_Scenario]: ...
    @property
    def transient(self) -> float: ...
    @property
    def drawing(self) -> _Drawing: ...


def _new_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "pictures need matplotlib, which is not installed: pip install 'holoctl[plot]'"
        ) from None
    return Figure(figsize=(width, height), layout="constrained")


def draw_mechanism(
    axes: Axes, mech: Mechanism, q: Vector, plane: tuple[int, int], **style: object
) -> None:
    """Draw the links of a mechanism as lines between joints and closure frames."""
    kin = kinematics(mech.model, workspace(mech), q, np.zeros(mech.nv), 0.0)
    origin = [X.translation for X in kin.placements]
    look: dict[str, object] = {"color": "0.55", "marker": "o", "markersize": 4, "linewidth": 2.5}
    for j in range(1, mech.model.njoints):
        ends = [kin.point(f) for b in mech._bound for f in b.anchors if f.joint == j]
        ends += [origin[c] for c in mech.model.children[j]]
        for end in ends:
            line = np.array([origin[j], end])[:, list(plane)]
            axes.plot(line[:, 0], line[:, 1], **{**look, **style})  # type: ignore[arg-type]


def tracking_picture(result: _Demo, path: Path) -> Path:
    """Path, tracking error and torques of a demo, as a PNG."""
    fig = _new_figure(11.0, 7.5)
    grid = fig.add_gridspec(2, 2, width_ratios=(1.0, 1.25))
    where, error, torque = (
        fig.add_subplot(grid[:, 0]), fig.add_subplot(grid[0, 1]), fig.add_subplot(grid[1, 1]),
    )  # fmt: skip
    plane = result.drawing.plane
    last = result.scenarios[-1]
    draw_mechanism(where, result.mech, last.run.q[0], plane)
    draw_mechanism(where, result.mech, last.run.q[len(last.run.q) // 2], plane, color="0.8")
    where.plot(*result.figure.T, color="k", linewidth=4, alpha=0.25, label="figure")
    for s in result.scenarios:
        where.plot(*s.tip.T, linewidth=1.2, label=s.label)
        error.semilogy(s.run.t, np.maximum(s.error, 1e-16), linewidth=1.0, label=s.label)
    where.set(
        aspect="equal", xlabel=f"{'xyz'[plane[0]]} (m)", ylabel=f"{'xyz'[plane[1]]} (m)",
        title=f"{result.mech.name}: the figure and what was drawn",
    )  # fmt: skip
    where.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, fontsize=8)
    error.axvline(result.transient, color="0.6", linestyle=":", linewidth=1)
    error.set(xlabel="t (s)", ylabel="distance from the figure (m)", title="Tracking error")
    error.legend(fontsize=8)
    error.grid(alpha=0.3)
    for i, motor in enumerate(result.mech.actuator_names):
        (line,) = torque.plot(last.run.t, last.run.u[:, i], linewidth=1.2, label=motor)
        first = result.scenarios[0].run
        torque.plot(first.t, first.u[:, i], color=line.get_color(), linewidth=0.8, linestyle="--")
    torque.set(
        xlabel="t (s)", ylabel="motor effort (N m or N)",
        title=f"Motor efforts: {last.label} (dashed: exact)",
    )  # fmt: skip
    torque.legend(fontsize=8)
    torque.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=120)
    return path
