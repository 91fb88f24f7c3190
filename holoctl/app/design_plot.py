"""Pictures of controller design. Needs the extra ``holoctl[plot]``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.figures import AS_WRITTEN, default_size, legend_below, new_figure
from holoctl.app.palette import BLUE, FAINT, OPEN, PALE, SOFT
from holoctl.app.plot_run import PANEL, draw_bounds, draw_curves, draw_legend, draw_limits
from holoctl.app.style import look
from holoctl.base.checks import Array
from holoctl.base.tolerances import NOT_DAMPED
from holoctl.design.linear.model import Linearization
from holoctl.design.maps.result import MotorMap
from holoctl.design.paths.trajectory import Trajectory
from holoctl.identification.excitation import Excitation
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.motor_units import common_unit, motor_units

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_result"]


@singledispatch
def draw_result(result: Any) -> Figure:
    """A picture of the result of a command."""
    raise TypeError(f"no picture of {type(result).__name__}")


@draw_result.register(Linearization)
def _modes(lin: Linearization) -> Figure:
    """Eigenvalues in the complex plane, each with a number and a sentence."""
    modes = lin.modes()
    size = default_size()[0]
    figure = new_figure(height=0.75 * size + 0.22 * len(modes))
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
    ax.set(xlabel="real part (1/s)", ylabel="imaginary part (rad/s)")
    ax.axvspan(0.0, reach, color=PALE, zorder=-1, label="not stable")
    ax.set_title(f"{lin.mech.name}: eigenvalues at rest", **AS_WRITTEN)
    legend_below(figure, *ax.get_legend_handles_labels())
    return figure


@draw_result.register(Trajectory)
def _trajectory(trajectory: Trajectory) -> Figure:
    """Positions, rates and efforts of the motors over time, efforts with their limits."""
    mech, t = trajectory.mech, trajectory.t
    figure = new_figure(height=3 * PANEL * default_size()[1])
    axes = figure.subplots(3, 1, sharex=True)
    times = np.union1d(t, np.linspace(0.0, trajectory.duration, 400))
    motion = np.array([np.concatenate(trajectory.reference(x)[:2]) for x in times])
    positions, rates = np.split(motion, [motion.shape[1] - mech.nu], axis=1)
    names, unit = mech.actuator_names, common_unit(motor_units(mech))
    moved = {"N m": "rad", "N": "m"}.get(unit, "rad or m")
    if positions.shape[1] == mech.nu:
        draw_curves(axes[0], times, names, positions - positions[0])
    draw_curves(axes[1], times, names, rates)
    draw_curves(axes[2], t, names, trajectory.u)
    draw_limits(axes[2], mech)
    axes[0].set_ylabel(f"from start ({moved})")
    axes[0].set_title(f"{mech.name}: {trajectory.duration:.4g} s", **AS_WRITTEN)
    axes[1].set_ylabel(f"rate ({'rad/s or m/s' if ' or ' in moved else f'{moved}/s'})")
    axes[2].set(ylabel=f"effort ({unit})", xlabel="t (s)")
    draw_legend(figure, axes, [(), names])
    return figure


@draw_result.register(Excitation)
def _excitation(plan: Excitation) -> Figure:
    """Positions, rates and efforts of the motors over a period, each with its limits."""
    mech, t = plan.model.mech, plan.t
    figure = new_figure(height=3 * PANEL * default_size()[1])
    axes = figure.subplots(3, 1, sharex=True)
    names, unit = mech.actuator_names, common_unit(motor_units(mech))
    moved = {"N m": "rad", "N": "m"}.get(unit, "rad or m")
    rates = np.array([plan.trajectory.reference(x)[1] for x in t.tolist()])
    bound = bound_limits(mech, plan.limits)
    if plan.positions.shape[1] == mech.nu:
        draw_curves(axes[0], t, names, plan.positions)
        draw_bounds(axes[0], _of_motors(bound, bound.position, names))
    draw_curves(axes[1], t, names, rates)
    draw_bounds(axes[1], _of_motors(bound, bound.velocity, names))
    draw_curves(axes[2], t, names, plan.trajectory.u)
    draw_bounds(axes[2], bound.effort)
    axes[0].set_ylabel(f"position ({moved})")
    axes[0].set_title(f"{mech.name}: excitation, {plan.period:.4g} s", **AS_WRITTEN)
    axes[1].set_ylabel(f"rate ({'rad/s or m/s' if ' or ' in moved else f'{moved}/s'})")
    axes[2].set(ylabel=f"effort ({unit})", xlabel="t (s)")
    draw_legend(figure, axes, [names, names, names])
    return figure


def _of_motors(bound: BoundLimits, limits: Array, names: Sequence[str]) -> Array:
    """The limits (2, nu) of the joints of motors; infinite without one."""
    found = np.full((2, len(names)), np.inf)
    for i, name in enumerate(names):
        if name in bound.names:
            found[:, i] = limits[:, bound.names.index(name)]
    return found


@draw_result.register(MotorMap)
def _map(found: MotorMap) -> Figure:
    """All quantities of the map, side by side."""
    from matplotlib import rc_context

    figure = new_figure(4.5 * len(found.what), 4.2)
    with rc_context({"axes.prop_cycle": look()["axes.prop_cycle"]}):
        panels = figure.subplots(1, len(found.what), squeeze=False)[0]
    for ax, what in zip(panels, found.what, strict=True):
        found.plot(what, ax=ax)
    return figure
