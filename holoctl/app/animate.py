"""`animate`: a run as a film, in real time."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log10
from pathlib import Path
from subprocess import SubprocessError
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.figures import AS_WRITTEN, check_color, legend_below, matplotlib_or_error
from holoctl.app.gif import LONGEST, write_gif
from holoctl.app.palette import BODY
from holoctl.app.plot_run import check_run
from holoctl.app.skeleton import skeleton
from holoctl.app.skeleton_lines import (
    SkeletonLines,
    frame,
    label,
    new_axes,
    view_of,
    view_points,
)
from holoctl.base.checks import Array, flag, one_of, positive, quiet
from holoctl.base.errors import InputError
from holoctl.base.progress import progress_bar
from holoctl.base.renamed import former_names, former_order
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
"""Time units of a gif in a second."""

QUICKEST = 2
"""Shortest duration of a picture in a gif, hundredths of a second: viewers show shorter ones
slower."""

MOST_PICTURES = 100_000
"""Largest number of pictures of a film, about an hour."""


@former_order(Run, "run", "path")
@former_names(frequency="rate")
@quiet
def animate(
    mech: Mechanism,
    path: str | Path,
    run: Run,
    *,
    plane: str | None = None,
    speed: float = 1.0,
    frequency: float = 25.0,
    color: str = BODY,
    progress: bool = False,
) -> Path:
    """Write a run as a film, by default in real time. Needs ``holoctl[plot]``.

    Each picture shows the last recorded instant, as `draw` draws it, and its time; states between
    recorded instants are not interpolated. Constraints of `mech` that do not hold are red: for a
    foot that leaves the ground, give the mechanism without its contact (``mech.without(...)``).

    Parameters
    ----------
    mech : Mechanism
        The simulated mechanism, which is not part of a run.
    path : str or Path
        A file ``.gif``, or ``.mp4``, which needs the program ffmpeg. Its folder is created.
    run : Run
    plane : str, optional
        As in `draw`.
    speed : float, optional
        1: real time; 0.1: ten times slower.
    frequency : float, optional
        Pictures per second of film. In a gif a picture lasts whole hundredths of a second, at least
        two: the nearest such rate is taken, without a change of the speed.
    color : str, optional
        Color of the bodies, a name of matplotlib.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        For another suffix, a wrong plane or color, more than 100,000 pictures, or pictures that
        last longer than a gif allows; for a value that is not a run, a run of another mechanism,
        without instants or with instants out of order; if the file cannot be written; if matplotlib
        is missing, or ffmpeg for mp4.

    See Also
    --------
    draw : one configuration.
    plot_run : positions, rates and efforts over time.
    view : a run in the browser.

    Examples
    --------
    >>> import pathlib, tempfile, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> run = hc.simulate(mech, None, *hc.assemble(mech), 0.02)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hc.animate(mech, pathlib.Path(folder, "swing.gif"), run).suffix
    '.gif'
    """
    if not isinstance(path, (str, Path)):
        raise InputError(f"path must be that of a file; got {type(path).__name__}")
    path, speed = Path(path), positive("speed", speed)
    kind = one_of("animate: the suffix of path", path.suffix.lower(), SUFFIXES)
    rate = positive("frequency", frequency, "pictures per s")
    progress = flag("progress", progress)
    check_mechanism(mech)
    check_run(run, mech)
    if not run.t.size:
        raise InputError("this run has no instants, so there is nothing to show")
    new_figure = matplotlib_or_error()
    check_color(color)
    if kind == ".mp4":
        _ffmpeg_or_error()
    else:
        rate = HUNDREDTHS / _stay(rate)
    view, names = view_of(mech, run.q[0], plane)
    figure = new_figure(figsize=SIZE, layout="constrained")
    ax = new_axes(figure, view)
    label(ax, names)
    lines = SkeletonLines(ax, view, color)
    shown = _shown(run, speed / rate)
    frame(ax, _reached(run, mech, view, shown))
    lines.put(skeleton(mech, run.q[0], float(run.t[0])), rescale=False)
    legend_below(figure, *lines.legend())
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
    """Duration of a picture in a gif, hundredths of a second."""
    if not HUNDREDTHS / rate <= LONGEST:
        raise InputError(
            f"a picture of a gif lasts at most {LONGEST / HUNDREDTHS:g} s; frequency={rate:g} "
            f"pictures per s is less than {HUNDREDTHS / LONGEST:.2g}"
        )
    return max(QUICKEST, round(HUNDREDTHS / rate))


def _shown(run: Run, step: float) -> list[int]:
    """The recorded instant of each picture: the last one before its time; the last of all is
    added."""
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
    """Corners of a frame, as it is seen, that contains the mechanism in all pictures."""
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
    """Draw one picture after the other."""
    for k, i in enumerate(shown):
        t = float(run.t[i])
        lines.put(skeleton(mech, run.q[i], t), rescale=False)
        ax.set_title(f"{mech.name}, t = {t:.{decimals}f} s", **AS_WRITTEN)
        if k == 1:
            ax.figure.set_layout_engine("none")  # type: ignore[union-attr] # keep the first layout
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
