"""`draw`: a mechanism at a configuration, as lines between its joints; closed or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from holoctl.app.figures import (
    AS_WRITTEN,
    check_axes,
    check_color,
    legend_below,
    matplotlib_or_error,
)
from holoctl.app.palette import AXES, BODY
from holoctl.app.skeleton import skeleton
from holoctl.app.skeleton_lines import (
    SkeletonLines,
    label,
    new_axes,
    scales,
    view_of,
    view_points,
)
from holoctl.base.checks import Array, Vector, entries, instant, quiet, shown
from holoctl.base.errors import InputError
from holoctl.control.tasks.frame_task import FrameTask
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import FrameLike, resolve_frame
from holoctl.tree.kinematics import place

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "draw_mechanism"]


ROOM = 1.2
"""Room above and below axes in space, whose names the layout does not see, in sizes of the font."""

FRAME_SHARE = 0.12
"""Length of the axes of a frame, as a share of the size of the picture."""


@quiet
def draw(
    mech: Mechanism,
    q: Any,
    ax: Axes | None = None,
    plane: str | None = None,
    *,
    frames: FrameTask | FrameLike | Iterable[FrameTask | FrameLike] = (),
    color: str = BODY,
    t: float = 0.0,
) -> Axes:
    """Draw a mechanism at a configuration, closed or not. Needs ``holoctl[plot]``.

    Bodies are lines between joints and the frames of closures; a body that ends there shows its
    fixed frames, or its centre of mass. Prismatic joints are thin lines along their travel. Motors
    are filled circles, closures are rings, and triangles are the ground. Constraints that
    do not hold at q are red: both ends, with a dashed line between them, and a sentence that names
    them. A constraint without frames, such as a `Coupling`, appears in that sentence alone.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration; it need not be closed. ``error.q`` of an `AssemblyError` is one.
    ax : matplotlib Axes, optional
        Axes to draw in, flat or with ``projection="3d"``. Default: new ones.
    plane : str, optional
        Two axes of the world, to the right and up, as ``"xz"``. Default: the plane of the
        mechanism, if all its joints rotate about one direction; else a view in space.
    frames : FrameTask, str or (str, pin.SE3), or iterable of these, optional
        Frames whose axes are drawn, x red, y green, z blue.
    color : str, optional
        Color of the bodies, a name of matplotlib.
    t : float, optional
        Time, s, for constraints that depend on it.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InputError
        For a wrong shape, plane or color, flat axes for a mechanism that is not planar, axes that
        are not linear, names that do not exist; if matplotlib is missing.

    See Also
    --------
    animate : a whole run, as a film.
    plot_run : a run over time.
    view : in the browser, with sliders.
    style : sizes and fonts for papers.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> ax = hc.draw(mech, hc.assemble(mech)[0], frames=["tip"])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('x (m)', 'z (m)')
    """
    check_mechanism(mech)
    q, t = check_configuration(mech, q, "q"), instant(t)
    shown = [resolve_frame(mech.model, f, "draw: frames") for f in _frames(frames)]
    matplotlib_or_error()
    check_color(color)
    if ax is not None:
        check_axes(ax)
    found = skeleton(mech, q, t)
    view, names = view_of(mech, q, plane, ax)
    own = ax is None
    ax = _new_axes(view) if ax is None else ax
    lines = SkeletonLines(ax, view, color)
    lines.put(found)
    size = FRAME_SHARE * float(np.ptp(found.points, axis=0).max(initial=0.0) or 1.0)
    for one in shown:
        X = place(mech.model, q, one)
        for axis, line_color in zip(X.rotation.T, AXES, strict=True):
            ends = view_points(np.array([X.translation, X.translation + size * axis]), view)
            ax.plot(*ends.T, color=line_color, linewidth=1.5, zorder=8)
        at: list[Any] = view_points(X.translation[None], view)[0].tolist()
        ax.text(*at, f" {one.name}", fontsize="small", **AS_WRITTEN)  # type: ignore[call-arg] # of three in space
    label(ax, names)
    if own:
        ax.set_title(mech.name, **AS_WRITTEN)
        legend_below(ax.figure, *lines.legend())  # type: ignore[arg-type]
    return ax


def _frames(given: Any) -> list[FrameLike]:
    """The frames in the argument `frames`, which has one or several frames or tasks."""
    alone = isinstance(given, (str, FrameTask)) or (
        isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], pin.SE3)
    )
    listed = [given] if alone else entries(given)
    if listed is None:
        raise InputError(f"frames must be names of frames, or FrameTasks; got {shown(given)!r}")
    return [f.frame if isinstance(f, FrameTask) else f for f in listed]


def _new_axes(view: Array) -> Axes:
    from matplotlib import pyplot as plt

    figure = plt.figure(layout="constrained")
    if len(view) == 3 and (engine := figure.get_layout_engine()) is not None:
        engine.set(h_pad=ROOM * plt.rcParams["font.size"] / 72.0)  # type: ignore[call-arg]
    return new_axes(figure, view)


def draw_mechanism(
    axes: Axes, mech: Mechanism, q: Vector, plane: tuple[int, int], **style: object
) -> None:
    """Draw bodies and prismatic joints as `draw` does, with lines alone."""
    times = scales()
    look: dict[str, object] = {
        "color": BODY, "marker": "o", "markersize": 4.0 * times["markersize"],
        "linewidth": 2.5 * times["linewidth"],
    }  # fmt: skip
    found = skeleton(mech, q)
    for line in (*found.bodies, *found.slides):
        axes.plot(*line[:, list(plane)].T, **{**look, **style})  # type: ignore[arg-type]
