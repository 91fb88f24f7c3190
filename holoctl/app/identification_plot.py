"""`plot_fit`: identified bodies, efforts and residuals. Needs the extra ``holoctl[plot]``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin

from holoctl.app.figures import AS_WRITTEN, default_size, legend_below, new_figure
from holoctl.app.palette import BLUE, FAINT, INK, OPEN, ORANGE, SOFT
from holoctl.app.skeleton import skeleton
from holoctl.app.skeleton_lines import SkeletonLines, label, new_axes, view_of, view_points
from holoctl.app.style import look
from holoctl.base.checks import Array, Vector, quiet
from holoctl.base.errors import InputError
from holoctl.identification.columns import body_names
from holoctl.identification.fit import Fit
from holoctl.identification.inertia_ellipsoids import InertiaEllipsoid
from holoctl.identification.regression import Regression
from holoctl.mechanism.mechanism import workspace
from holoctl.mechanism.motor_units import motor_units

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_fit"]

MOST_MOTORS = 8
"""Largest number of rows of equations that are drawn."""

PAUSE = 1.5
"""Curves are interrupted where samples are further apart than this, in usual distances."""

PRIOR: dict[str, Any] = {"color": SOFT, "linestyle": "--", "linewidth": 1.0}
FITTED: dict[str, Any] = {"color": BLUE, "linestyle": "-", "linewidth": 1.2}


@quiet
def plot_fit(fit: Fit, data: Regression) -> Figure:
    """Draw a fit: bodies before and after, efforts, and what the fit leaves. Needs
    ``holoctl[plot]``.

    Left, at the first state of the data, an ellipsoid for each body: of uniform density, with its
    mass, centre and inertia, of the prior and of the fit. Then for each motor its measured and
    predicted efforts over time, the residuals of both, and those of the fit over the rate of the
    motor, where a step is Coulomb friction and a slope viscous friction that the model lacks.

    Parameters
    ----------
    fit : Fit
    data : Regression
        Of the parameters of the fit, best of another motion than that of the fit.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    InputError
        For other values, a regression of other parameters, and if matplotlib is missing.

    See Also
    --------
    identify : returns the fit.
    residual_diagnosis : what the residuals follow, in words.
    plot_run : a run over time.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> t = np.arange(0.0, 6.0, 0.002)
    >>> x, v, a = 1.0 + 0.3 * np.sin(6 * t), 1.8 * np.cos(6 * t), -10.8 * np.sin(6 * t)
    >>> sensors, inverse = hc.ClosedStateEstimator(mech), hc.PreparedInverseDynamics(mech)
    >>> u = [inverse.torque(*sensors.state([x[i]], [v[i]]), [a[i]])[0] for i in range(t.size)]
    >>> data = hc.regression(hc.Parameters(mech), hc.Measurements(t, x, u))
    >>> figure = hc.plot_fit(hc.identify(data, strength=25.0), data)
    >>> [ax.get_title() for ax in figure.axes][:2]
    ['four_bar', 'crank']
    """
    if not isinstance(fit, Fit):
        raise InputError(
            f"plot_fit: fit must be the result of hc.identify; got {type(fit).__name__}"
        )
    if not isinstance(data, Regression):
        raise InputError(
            f"plot_fit: data must be the result of hc.regression; got {type(data).__name__}"
        )
    fit.errors(data)  # refuses other parameters
    width, height = default_size()
    figure = new_figure(1.0, 1.0)
    from matplotlib import rc_context

    settings: Any = look()
    with rc_context(settings):
        shown = data.labels[:MOST_MOTORS]
        bodies = fit.method != "least squares"
        columns = len(shown) + bodies
        figure.set_size_inches(width * (0.15 + 0.6 * columns + 0.3 * bodies), 1.7 * height)
        grid = figure.add_gridspec(
            3, columns, width_ratios=[1.5] * bodies + [1.0] * len(shown), height_ratios=(3, 2, 2)
        )
        if bodies:
            _bodies(figure, grid[:, 0], fit, data)
        for i, name in enumerate(shown):
            axes = [figure.add_subplot(grid[k, i + bodies]) for k in range(3)]
            _efforts(axes, fit, data, i)
            axes[0].set_title(name, **AS_WRITTEN)
        _legend(figure, len(data.labels) - len(shown))
    return figure


def _legend(figure: Figure, more: int) -> None:
    from matplotlib.lines import Line2D

    lines: list[Any] = [
        Line2D([], [], color=ORANGE, linewidth=2.5), Line2D([], [], **PRIOR),
        Line2D([], [], **FITTED),
    ]  # fmt: skip
    names = ["measured", "prior", "fit"]
    if more > 0:
        lines.append(Line2D([], [], linestyle=""))
        names.append(f"({more} more)")
    legend_below(figure, lines, names)


# --------------------------------------------------------------------------------------- bodies


def _bodies(figure: Figure, place: Any, fit: Fit, data: Regression) -> None:
    """The mechanism at the first state, with the ellipsoids of its bodies."""
    mech, q = data.model.mech, data.q[0]
    view, names = view_of(mech, q, None)
    ax = new_axes(figure, view)
    ax.set_subplotspec(place)
    SkeletonLines(ax, view, FAINT).put(skeleton(mech, q))
    kept = workspace(mech)
    pin.forwardKinematics(mech.model, kept, q)
    for name, pair in fit.ellipsoids().items():
        X = kept.oMi[1 + body_names(mech).index(name)]
        for ellipsoid, how in zip(pair, (PRIOR, FITTED), strict=True):
            centre = view_points((X * ellipsoid.centre)[None], view)
            for line in _outlines(ellipsoid, X.rotation, view):
                ax.plot(*(centre + line).T, **how, zorder=9)
            ax.plot(*centre.T, ".", color=how["color"], markersize=5, zorder=9)
    label(ax, names)
    if len(view) == 2:
        ax.set_aspect("equal")
        ax.autoscale_view()
    ax.set_title(mech.name, **AS_WRITTEN)


def _outlines(ellipsoid: InertiaEllipsoid, R: Array, view: Array) -> list[Array]:
    """Lines about the centre: the outline in a plane, or three sections in space."""
    angle = np.linspace(0.0, 2.0 * np.pi, 49)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    M = view @ R @ ellipsoid.rotation * ellipsoid.semi_axes
    if len(view) == 2:
        U, s, _ = np.linalg.svd(M, full_matrices=False)
        return [circle @ (U * s).T]
    return [circle @ M[:, pair].T for pair in ([0, 1], [1, 2], [2, 0])]


# -------------------------------------------------------------------------------------- efforts


def _efforts(axes: list[Axes], fit: Fit, data: Regression, i: int) -> None:
    """Efforts and residuals of row i over time, and residuals over its rate."""
    mech, name = data.model.mech, data.labels[i]
    known = name in mech.actuator_names
    unit = motor_units(mech)[mech.actuator_names.index(name)] if known else "N m or N"
    prior, fitted = data.W[:, i] @ fit.prior, data.W[:, i] @ fit.p
    y = data.y[:, i]
    over, rest, rate = axes
    over.plot(*_interrupted(data, y), color=ORANGE, linewidth=2.5)
    for x, how in ((prior, PRIOR), (fitted, FITTED)):
        over.plot(*_interrupted(data, x), **how)
        rest.plot(*_interrupted(data, y - x), **how)
    over.set_ylabel(f"effort ({unit})")
    rest.set(ylabel=f"residual ({unit})", xlabel="t (s)")
    rest.sharex(over)
    if not known:
        rate.set_axis_off()
        return
    v = data.v @ mech.B[:, mech.actuator_names.index(name)]
    rate.plot(v, y - fitted, ".", color=BLUE, markersize=2.5)
    rate.axhline(0.0, color=INK, linewidth=0.6)
    rate.axvline(0.0, color=OPEN, linewidth=0.6, linestyle=":")
    rate.set(xlabel=f"rate ({'m/s' if unit == 'N' else 'rad/s'})", ylabel=f"residual ({unit})")


def _interrupted(data: Regression, x: Vector) -> tuple[Vector, Vector]:
    """Times and values, with nan where samples are missing between."""
    step = np.diff(data.t)
    at = 1 + np.flatnonzero(step > PAUSE * float(np.median(step)) if step.size else step)
    return np.insert(data.t, at, np.nan), np.insert(x, at, np.nan)
