"""Pictures, for where one would rather look than read. Needs the extra ``holoctl[plot]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holoctl.app.skeleton import skeleton
from holoctl.app.skeleton_lines import matplotlib_or_error
from holoctl.base.checks import Vector
from holoctl.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_mechanism", "new_figure"]


def new_figure(width: float, height: float) -> Figure:
    return matplotlib_or_error()(figsize=(width, height), layout="constrained")


def draw_mechanism(
    axes: Axes, mech: Mechanism, q: Vector, plane: tuple[int, int], **style: object
) -> None:
    """Draw bodies and slides, as `draw` does, as lines alone."""
    look: dict[str, object] = {"color": "0.55", "marker": "o", "markersize": 4, "linewidth": 2.5}
    found = skeleton(mech, q)
    for line in (*found.bodies, *found.slides):
        axes.plot(*line[:, list(plane)].T, **{**look, **style})  # type: ignore[arg-type]
