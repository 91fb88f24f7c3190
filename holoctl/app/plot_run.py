"""`plot_run`: a simulated motion over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.drawing_tolerance import closure_limit
from holoctl.app.figures import (
    AS_WRITTEN,
    default_size,
    legend_below,
    matplotlib_or_error,
    new_figure,
)
from holoctl.app.palette import FORCE, INK, SOFT, curve, dash
from holoctl.base.checks import Array, Vector
from holoctl.base.errors import InputError
from holoctl.base.renamed import former_order
from holoctl.dynamics.certificate import limit
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import MODEL, Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motor_units import common_unit, motor_units
from holoctl.simulation.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_run", "draw_bounds", "draw_curves", "draw_legend", "draw_limits", "plot_run"]


PANEL = 0.48
"""Height of a panel, as a share of the usual height of a figure."""

LETTERS_PER_INCH = 100.0
"""Number of letters in an inch of the title, times their size in points."""

MOST_NAMES = 12
"""Largest number of names in a legend; more would take the place of the curves."""

SAME_VALUE = 1e-9
"""A smallest singular value that changes by less is the same at all configurations."""

FLOOR = 1e-17
"""Value at which a closure error of zero is drawn on its logarithmic axis."""


@former_order(Run, "run", "mech")
def plot_run(
    mech: Mechanism | None,
    run: Run,
    *,
    limits: Any = MODEL,
    figure: Figure | None = None,
) -> Figure:
    """Draw a run over time: positions, rates, efforts, closure errors. Needs ``holoctl[plot]``.

    With `mech`, positions and rates are those of its motors, by name, and limits of efforts are
    dotted lines; without it, or without motors, they are all entries of q and v. Turns of motors on
    continuous joints are counted; between two instants their number follows from the rates. A
    dotted line among the closure errors is the limit of a `Certificate`, with `mech` that of its
    geometry, exact or rounded. Above them is the smallest singular value of gamma' B, with `mech`
    if it has motors and the value changes. Vertical lines are events, singular configurations that
    were crossed, those of type 2 too, and instants at which other rows were selected.

    Parameters
    ----------
    mech : Mechanism or None
        The simulated mechanism, which is not part of a run; None if it is not known.
    run : Run
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        Those of efforts are drawn.
    figure : matplotlib Figure, optional
        Figure to draw in, such as ``plt.figure()``, which ``plt.show()`` shows; if it has no
        layout, it gets the constrained one. Default: a new one; a notebook shows it if it is the
        last value of a cell.

    Returns
    -------
    matplotlib Figure
        ``figure.savefig("run.png")`` writes it.

    Raises
    ------
    InputError
        For a value that is not a run, a run of another mechanism, or one whose instants are not in
        order; if matplotlib is missing.

    See Also
    --------
    animate : a run as a film.
    simulate : returns runs.
    view : a run in the browser.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> run = hc.simulate(mech, None, *hc.assemble(mech), 0.1)
    >>> [ax.get_ylabel() for ax in hc.plot_run(mech, run).axes]
    ['position (rad)', 'rate (rad/s)', 'effort (N m)', 'closure (scaled)']
    """
    check_run(run, mech)
    matplotlib_or_error()
    if isinstance(limits, Limits) and mech is None:
        raise InputError("limits need their mechanism: give mech too")
    if figure is not None and not hasattr(figure, "subplots"):
        raise InputError(f"figure must be one of matplotlib; got {type(figure).__name__}")
    panels = list(_panels(run, mech))
    if figure is None:
        from matplotlib import pyplot as plt  # noqa: F401 (a notebook then shows figures)

        figure = new_figure(height=PANEL * default_size()[1] * (len(panels) + 1))
    elif hasattr(figure, "set_layout_engine") and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")  # otherwise legends are outside the figure
    axes = figure.subplots(len(panels) + 1, 1, sharex=True, squeeze=False)[:, 0].tolist()
    for ax, (what, names, values) in zip(axes, panels, strict=False):
        draw_curves(ax, run.t, names, values)
        ax.set_ylabel(what)
        if mech is not None and what.startswith("effort"):
            draw_limits(ax, mech, limits)
    axes[-1].semilogy(run.t, np.maximum(run.closure, FLOOR), color=INK)
    most = _most_open(run, mech)
    axes[-1].axhline(most, color=INK, linewidth=1.0, linestyle=":")  # limit of a certificate
    axes[-1].set(ylabel="closure (scaled)", xlabel="t (s)", ylim=(FLOOR, None))
    axes[-1].grid(alpha=0.3)
    if mech is not None and mech.nu:
        _draw_singular_value(axes[-1], run)
    _marks(axes, run)
    draw_legend(figure, axes, [names for _, names, _ in panels])
    name = "" if mech is None else f"{mech.name}, "
    ended = f", ended by {run.ended}" if run.ended else ""
    last = f"{run.t[-1]:.4g} s" if run.t.size else "no time"
    size = axes[0].title.get_size()  # errors have long messages
    letters = max(20, int(LETTERS_PER_INCH * figure.bbox.width / figure.dpi / size))
    axes[0].set_title(fill(f"{name}{last}{ended}", letters), fontsize="medium", **AS_WRITTEN)
    return figure


def _draw_singular_value(ax: Axes, run: Run) -> None:
    """Draw the smallest singular value of gamma' B, if it is not the same at all instants, with its
    name on the curve."""
    sigma = np.maximum(run.smallest_singular_value, FLOOR)
    if not (sigma.size and np.isfinite(sigma).all() and np.ptp(sigma) > SAME_VALUE):
        return
    ax.semilogy(run.t, sigma, color=SOFT, linewidth=1.2)
    ax.annotate(
        "smallest singular value of gamma' B", (run.t[-1], sigma[-1]), (-2.0, -4.0),
        textcoords="offset points", ha="right", va="top", fontsize="small", color=SOFT,
    )  # fmt: skip


def check_run(run: Any, mech: Any) -> None:
    """Raise `InputError` for a value that is not a run, and for a run of another mechanism."""
    if not isinstance(run, Run):
        raise InputError(f"run must be a Run (hc.simulate); got {type(run).__name__}")
    _check_instants(run)
    if mech is None:
        return
    check_mechanism(mech)
    sizes = {"nq": run.q.shape[1], "nv": run.v.shape[1], "nu": run.u.shape[1]}
    if any(getattr(mech, name) != size for name, size in sizes.items()):
        own = ", ".join(f"{name} {getattr(mech, name)}" for name in sizes)
        theirs = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InputError(f"this run is of another mechanism: {theirs}; {mech.name} has {own}")
    if not (there := np.isfinite(run.q).all(axis=1)).all():
        i = int(np.argmin(there))
        raise InputError(f"q of this run is not finite at instant {i}, t = {run.t[i]:g} s")


def _check_instants(run: Run) -> None:
    """Raise `InputError` unless there is a row for each instant, and instants are in order."""
    n = run.t.size
    for name in ("q", "v", "u", "closure"):
        if len(rows := getattr(run, name)) != n:
            raise InputError(f"this run has {n} instants, but {len(rows)} rows of {name}")
    if not (np.isfinite(run.t).all() and (np.diff(run.t) >= 0.0).all()):
        raise InputError("the instants t of this run must be finite and must not decrease")


def _panels(run: Run, mech: Mechanism | None) -> Iterator[tuple[str, Sequence[str], Array]]:
    """The panels over time: label, names of the curves, and (N, n) values."""
    n, nq, nu = run.v.shape[1], run.q.shape[1], run.u.shape[1]
    own = "q (rad or m)" if nq == n else "q (as in the model)"  # with cosines, sines, quaternions
    if mech is None:
        yield own, [f"[{i}]" for i in range(nq)], run.q
        yield "v (rad/s or m/s)", [f"[{i}]" for i in range(n)], run.v
        if nu:
            yield "effort (N m or N)", [f"[{i}]" for i in range(nu)], run.u
        return
    if not nu:
        unit = _unit(mech, np.eye(mech.nv))
        same = mech.nq == mech.nv
        names = mech.coordinate_names if same else [f"q[{i}]" for i in range(nq)]
        yield f"position ({unit})" if same else own, names, run.q
        yield f"rate ({_per_second(unit)})", mech.coordinate_names, run.v
        return
    unit = _unit(mech, mech.B)
    if mech.actuation is None and not mech.motors.missing:
        at = [mech.motor_positions(q) for q in run.q]
        turns = mech.motors.turning
        positions = np.array(at).reshape(-1, nu)
        positions[:, turns] = _turned(run.t, positions[:, turns], (run.v @ mech.B)[:, turns])
        yield f"position ({unit})", mech.actuator_names, positions
    yield f"rate ({_per_second(unit)})", mech.actuator_names, run.v @ mech.B
    yield f"effort ({common_unit(motor_units(mech))})", mech.actuator_names, run.u


def _most_open(run: Run, mech: Mechanism | None) -> float:
    """The largest closure error that a certificate accepts."""
    exact = limit("closure", 0.0)
    if mech is None or not (run.closure > exact).any():
        return exact
    most = limit("closure", mech.tolerance)
    i = int(np.argmax(np.where(run.closure <= most, run.closure, -1.0)))
    return closure_limit(mech, run.q[i], float(run.t[i]), float(run.closure[i]))


def _turned(t: Vector, angles: Array, rates: Array) -> Array:
    """Angles (N, n), rad, with turns counted so that steps are nearest to those of the rates."""
    steps = np.diff(angles, axis=0)
    moved = np.diff(t)[:, None] * (rates[1:] + rates[:-1]) / 2.0
    turns = np.round((np.nan_to_num(moved) - steps) / (2.0 * np.pi))
    counted = angles.copy()
    counted[1:] += 2.0 * np.pi * np.cumsum(turns, axis=0)
    return counted


def _unit(mech: Mechanism, B: Array) -> str:
    """The unit of the coordinates with a row in B: rad, m, or both."""
    length = np.zeros(mech.nv, dtype=bool)
    length[mech.lengths[1]] = True
    moved = (B != 0.0).any(axis=1)
    if not (moved & length).any():
        return "rad"
    return "rad or m" if (moved & ~length).any() else "m"


def _per_second(unit: str) -> str:
    return " or ".join(f"{one}/s" for one in unit.split(" or "))


def draw_curves(ax: Axes, t: Vector, names: Sequence[str], values: Array) -> None:
    """Curves over time, each with the color of its place among the names."""
    for i, name in enumerate(names):
        look: dict[str, Any] = {"color": curve(i), "linestyle": dash(i)}
        ax.plot(t, values[:, i], **look, label=name if i < MOST_NAMES else "_")
    ax.grid(alpha=0.3)


def draw_limits(ax: Axes, mech: Mechanism, limits: Any = MODEL) -> None:
    """Draw limits of efforts as dotted lines."""
    draw_bounds(
        ax, bound_limits(mech, requested_limits(mech, limits, "plot_run") or Limits()).effort
    )


def draw_bounds(ax: Axes, bounds: Array) -> None:
    """Draw lower and upper limits (2, n) of curves as dotted lines."""
    label = "limit"
    for i, (low, high) in enumerate(bounds.T):
        for most in (low, high):
            if np.isfinite(most):
                ax.axhline(
                    most, color=curve(i), linewidth=1.0, linestyle=":", zorder=1, label=label
                )
                label = "_"


def draw_legend(figure: Figure, axes: Sequence[Axes], names: Sequence[Sequence[str]]) -> None:
    """One legend below the figure, with the names of the curves of each of the first axes; names
    that differ between axes appear one after the other."""
    lines, shown = list[Any](), list[str]()
    for ax, there in zip(axes, names, strict=False):
        fresh = [i for i, name in enumerate(there[:MOST_NAMES]) if name not in shown]
        lines += [ax.lines[i] for i in fresh]
        shown += [there[i] for i in fresh]
    more = max((len(there) for there in names), default=0) - MOST_NAMES
    if more > 0:
        lines += axes[0].plot([], [], " ", label="_")
        shown.append(f"({more} more)")
    for ax in axes:
        for line, name in zip(*ax.get_legend_handles_labels(), strict=True):
            if name not in shown:
                lines.append(line)
                shown.append(name)
    if lines:
        legend_below(figure, lines, shown)


def _marks(axes: Sequence[Axes], run: Run) -> None:
    """Draw events and other instants as vertical lines, with one legend."""
    marks = [
        (run.crossings, FORCE, "-.", "singular configuration crossed"),  # type 2 too
        (run.repartitions, SOFT, ":", "other rows or coordinates"),
    ]
    for k in np.unique(run.events[:, 1]).astype(int) if len(run.events) else ():
        at = run.events[run.events[:, 1] == k, 0]
        marks.append((at, curve(k + 3), "--", f"event {k}"))
    shown = [mark for mark in marks if len(mark[0])]
    for instants, color, style, what in shown:
        for ax in axes:  # one line for all of them: thousands would take long
            where = np.repeat(instants, 3)
            up = np.tile([0.0, 1.0, np.nan], len(instants))
            name = what if ax is axes[-1] else "_"
            ax.plot(
                where, up, color=color, linestyle=style, linewidth=1.0, label=name, zorder=0,
                transform=ax.get_xaxis_transform(),
            )  # fmt: skip
