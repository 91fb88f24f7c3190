"""`animate`: a run as a film, one picture after the other, at the speed of the clock."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log10
from pathlib import Path
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.gif import LONGEST, write_gif
from holoctl.app.plot_run import check_run
from holoctl.app.skeleton import skeleton
from holoctl.app.skeleton_lines import (
    AS_WRITTEN,
    SkeletonLines,
    check_color,
    frame,
    label,
    matplotlib_or_error,
    view_of,
    view_points,
)
from holoctl.base.checks import Array, flag, one_of, positive, quiet
from holoctl.base.errors import InputError
from holoctl.base.progress import progress_bar
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.simulation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["animate"]


SUFFIXES = (".gif", ".mp4")
SIZE, DOTS = (6.0, 5.0), 100  # inches, dots per inch

HUNDREDTHS = 100
"""Of a second: the times of a gif are counted in these."""

QUICKEST = 2
"""Hundredths of a second that a picture of a gif stays at least: viewers slow down quicker ones."""

MOST_PICTURES = 100_000
"""Of a film: an hour."""


@quiet
def animate(
    run: Run,
    path: str | Path,
    *,
    mech: Mechanism,
    plane: str | None = None,
    speed: float = 1.0,
    rate: float = 25.0,
    color: str = "0.55",
    progress: bool = False,
) -> Path:
    """Write a run as a film, in real time unless told otherwise. Needs ``holoctl[plot]``.

    Each picture is what `draw` makes of the last instant recorded until then, and tells its time;
    nothing is made up in between. Constraints of `mech` that do not hold are red: of a foot that
    leaves the ground, give the mechanism without its contact (``mech.without(...)``).

    Parameters
    ----------
    run : Run
    path : str or Path
        A file ``.gif``, or ``.mp4``, which needs the program ffmpeg. Its folder is made.
    mech : Mechanism
        What was simulated. A run does not carry it.
    plane : str, optional
        As in `draw`.
    speed : float, optional
        1: real time; 0.1: ten times slower.
    rate : float, optional
        Pictures per second of film. In a gif they stay for whole hundredths of a second, two at
        the least: the nearest such rate is taken, and the time stays true.
    color : str, optional
        Of the bodies, as matplotlib names it.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        For another suffix, a wrong plane or color, more than 100,000 pictures, or such as stay
        longer than a gif can tell; what is no run, or none of this mechanism, without instants or
        with such as are not in order; a file that cannot be written; without matplotlib, or for mp4
        without ffmpeg.

    See Also
    --------
    draw : one configuration.
    plot_run : the same over time.
    """
    if not isinstance(path, (str, Path)):
        raise InputError(f"path must be that of a file; got {type(path).__name__}")
    path, speed = Path(path), positive("speed", speed)
    kind = one_of("animate: the suffix of path", path.suffix.lower(), SUFFIXES)
    rate, progress = positive("rate", rate, "pictures per s"), flag("progress", progress)
    check_mechanism(mech)
    check_run(run, mech)
    if not run.t.size:
        raise InputError("this run has no instants: there is nothing to show")
    new_figure = matplotlib_or_error()
    check_color(color)
    if kind == ".mp4":
        _ffmpeg_or_error()
    else:
        rate = HUNDREDTHS / _stay(rate)
    view, names = view_of(mech, run.q[0], plane)
    figure = new_figure(figsize=SIZE, layout="constrained")
    ax = figure.add_subplot(projection="3d" if len(view) == 3 else None)
    label(ax, names)
    lines = SkeletonLines(ax, view, color)
    shown = _shown(run, speed / rate)
    frame(ax, _reached(run, mech, view, shown))
    with progress_bar(len(shown), "animating", "pictures", show=progress) as bar:
        decimals = max(2, min(9, ceil(-log10(speed / rate))))
        pictures = _pictures(run, mech, lines, ax, shown, decimals, bar)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            (_write_mp4 if kind == ".mp4" else _write_gif)(figure, path, pictures, rate)
        except (OSError, SubprocessError) as error:
            raise InputError(f"animate: {path} cannot be written: {error}") from None
    return path


def _ffmpeg_or_error() -> None:
    from matplotlib.animation import FFMpegWriter

    if not FFMpegWriter.isAvailable():
        raise InputError(
            "a film .mp4 needs the program ffmpeg, which is not found; install it, or give a path "
            "that ends in .gif"
        )


def _stay(rate: float) -> int:
    """Hundredths of a second that a picture of a gif stays."""
    if not HUNDREDTHS / rate <= LONGEST:
        raise InputError(
            f"a picture of a gif stays for {LONGEST / HUNDREDTHS:g} s at most; rate={rate:g} "
            f"pictures per s is less than {HUNDREDTHS / LONGEST:.2g}"
        )
    return max(QUICKEST, round(HUNDREDTHS / rate))


def _shown(run: Run, step: float) -> list[int]:
    """The instant of each picture: the last one recorded until then, the last of all included."""
    pictures = float(run.t[-1] - run.t[0]) / step
    if pictures > MOST_PICTURES:
        raise InputError(
            f"this film would have {pictures:.3g} pictures, more than {MOST_PICTURES}: a larger "
            "speed or a lower rate makes it shorter"
        )
    times = run.t[0] + step * np.arange(int((run.t[-1] - run.t[0]) / step + 1e-9) + 1)
    at = np.searchsorted(run.t, times + 1e-9 * step, side="right") - 1
    found: list[int] = at.tolist()
    return found if found[-1] == run.t.size - 1 else [*found, run.t.size - 1]


def _reached(run: Run, mech: Mechanism, view: Array, shown: list[int]) -> Array:
    """Corners of what the film is to show, as it is seen: nothing leaves its frame."""
    low, high = np.full(len(view), np.inf), np.full(len(view), -np.inf)
    for i in set(shown):
        seen = view_points(skeleton(mech, run.q[i], float(run.t[i])).points, view)
        low, high = np.minimum(low, seen.min(axis=0)), np.maximum(high, seen.max(axis=0))
    room = 0.06 * float((high - low).max())
    return np.array([low - room, high + room])


def _pictures(
    run: Run, mech: Mechanism, lines: SkeletonLines, ax: Axes, shown: list[int], decimals: int,
    bar: Any,
) -> Iterator[None]:  # fmt: skip
    """Draws one picture after the other."""
    for k, i in enumerate(shown):
        t = float(run.t[i])
        lines.put(skeleton(mech, run.q[i], t), rescale=False)
        ax.set_title(f"{mech.name}, t = {t:.{decimals}f} s", **AS_WRITTEN)
        if k == 1:
            ax.figure.set_layout_engine("none")  # type: ignore[union-attr] # as the first one is
        yield
        bar.update()


def _write_gif(figure: Figure, path: Path, pictures: Iterator[None], rate: float) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(DOTS)
    canvas: Any = FigureCanvasAgg(figure)

    def drawn() -> Iterator[Image.Image]:
        for _ in pictures:
            canvas.draw()
            yield Image.fromarray(np.array(canvas.buffer_rgba())[..., :3])

    write_gif(path, drawn(), round(HUNDREDTHS / rate))


def _write_mp4(figure: Figure, path: Path, pictures: Iterator[None], rate: float) -> None:
    from matplotlib.animation import FFMpegWriter

    writer = FFMpegWriter(fps=rate)  # type: ignore[arg-type]
    with writer.saving(figure, str(path), DOTS):
        for _ in pictures:
            writer.grab_frame()
