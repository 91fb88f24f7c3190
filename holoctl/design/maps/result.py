"""The result of `motor_map`: a cut through it, and its pictures."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, counted, known_name, number, one_of, unpickled
from holoctl.base.errors import InputError
from holoctl.design.maps.grid_coordinates import GridAxis
from holoctl.mechanism.motor_units import common_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["QUANTITIES", "MotorMap", "cut_at", "drawn"]


QUANTITIES = ("torque", "condition", "velocity", "force")
ELLIPSES = 9
"""Largest number of ellipses along each axis of a picture."""

SHOWN = 3.0
"""Colours end at this multiple of the 90 % quantile of the values."""

SLENDER = 6.0
"""A picture whose axes differ in length by more than this factor is not drawn to scale."""

LONGEST_LINE = 20
"""Largest number of letters in a line beside the scale of colours."""

_TITLES = {
    "torque": "holding effort", "condition": "condition number", "velocity": "velocity",
    "force": "force", "reach": "reachable points",
    "singularity": "smallest singular value of gamma' B, by side",
}  # fmt: skip

_TURNS = ("rx", "ry", "rz")


@dataclass(frozen=True, eq=False)
class MotorMap:
    """The result of `motor_map`: arrays over a grid of shape S, nan at points out of reach.

    Attributes
    ----------
    mechanism : str
        Its name.
    axes : tuple of GridAxis
        Name, unit and values of each axis of the grid.
    what : tuple of str
        Names of the requested quantities.
    motors : tuple of nu str
        Names of the motors.
    rows : tuple of n str
        The rows of the task used for ellipsoids: its lengths (m), for any rotation meanwhile; or
        all rows if it has no lengths (rad).
    scaled : (bool, bool)
        Whether the velocity and the force ellipsoids are those at the limits of motor rates and of
        motor efforts; otherwise for rates, or efforts, of norm one (rad/s and m/s, N m and N).
    reachable : S bool array
        Whether the mechanism reaches the point on its branch, within its limits of positions.
    behind : S bool array
        Reachable, but only by passing a configuration in which the motors do not determine the
        motion; determined only if there are as many motors as motions.
    smallest_singular_value : S array
        The smallest singular value of gamma' B, scaled: 0 at a type-2 singularity, at which motors
        do not determine the motion.
    side : S int array
        1 on the side of type-2 singularities on which the map starts, -1 on the other one: the sign
        of the determinant of the rates of the motors by those of the axes. 0 if the number of
        motors is not that of the motions, exactly at a singularity, and out of reach.
    reasons : S array of str
        Why a point is not reachable; for a reachable one, reservations: efforts beyond limits,
        motors that do not hold it, no path within limits of positions, joints that are whole turns
        or a branch apart from those of a neighbour (if paths around a hole meet). Empty if there
        are none.
    q : S x (nq,) array
        The configurations.
    torque : S x (nu,) array or None
        Holding efforts, N m or N; with more motors than motions those of `inverse_dynamics`, of
        least norm with forces multiplied by the size of their loop.
    condition : S array or None
        With a task: condition number of the rates of the task by those of the motors, with rows in
        m over the size of the mechanism. Otherwise that of the rates of the motors by the motions,
        in scaled coordinates. At least 1; inf if motors do not determine the motion, or if the
        task does not move with the motors.
    velocity : S x (n,) array or None
        Semi-axes of the ellipsoid of the task's velocities, m/s or rad/s, decreasing.
    velocity_directions : S x (n, n) array or None
        Their directions, in columns.
    force, force_directions : likewise
        Ellipsoid of forces at the task that the motors balance, N or N m, in addition to `torque`.
    units : tuple of nu str
        Unit of the effort of each motor: ``"N m"``, ``"N"``, or empty if it acts on angles and
        lengths.

    See Also
    --------
    motor_map : returns it.
    inverse_kinematics : one pose.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> line = (hc.FrameTask("tip_right", "x z"), 0.0, np.linspace(0.4, 0.8, 5))
    >>> found = hc.motor_map(mech, line, "reach")
    >>> found.reachable.tolist()
    [True, True, False, False, False]
    """

    mechanism: str
    axes: tuple[GridAxis, ...]
    what: tuple[str, ...]
    motors: tuple[str, ...]
    rows: tuple[str, ...]
    scaled: tuple[bool, bool]
    reachable: NDArray[np.bool_]
    behind: NDArray[np.bool_]
    reasons: NDArray[np.object_]
    q: Array
    smallest_singular_value: Array
    side: NDArray[np.int_]
    torque: Array | None = None
    condition: Array | None = None
    velocity: Array | None = None
    velocity_directions: Array | None = None
    force: Array | None = None
    force_directions: Array | None = None
    units: tuple[str, ...] = ()

    __setstate__ = unpickled

    @property
    def smallest_at(self) -> tuple[float, ...]:
        """The values of the axes at which `smallest_singular_value` is least; empty if it has no
        value."""
        found = self.smallest_singular_value
        if not np.isfinite(found).any():
            return ()
        index = np.unravel_index(int(np.nanargmin(found)), found.shape)
        return tuple(float(a.values[i]) for a, i in zip(self.axes, index, strict=True))

    @property
    def good(self) -> NDArray[np.bool_]:
        """Points that are reachable without reservations (S bool array)."""
        found: NDArray[np.bool_] = self.reachable & (self.reasons == "")
        return found

    def __repr__(self) -> str:
        shape = " x ".join(str(axis.values.size) for axis in self.axes)
        names = ", ".join(axis.name for axis in self.axes)
        there = int(self.reachable.sum())
        parts = [f"{there} reachable"]
        if (less := there - int(self.good.sum())) > 0:
            parts.append(f"{less} of them with reservations")
        if (u := _numbers(self.torque)).size:
            parts.append(f"efforts up to {np.abs(u).max():.3g} {common_unit(self.units)}")
        if (condition := _numbers(self.condition)).size:
            parts.append(f"condition {condition.min():.3g} to {condition.max():.3g}")
        points = counted(self.reachable.size, "point")
        return f"<MotorMap of {self.mechanism!r}: {shape} = {points} over {names}: " + (
            ", ".join(parts) + ">"
        )

    def plot(self, what: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw a quantity: lines over one axis, colours over two. Needs matplotlib.

        Parameters
        ----------
        what : str, optional
            ``"torque"``: over two axes the largest effort of all motors; the name of a motor;
            ``"condition"``; ``"velocity"`` or ``"force"``: the smallest semi-axis, and ellipses at
            some points if the axes are those of the task; ``"singularity"``: the smallest singular
            value of gamma' B, with the sign of its side; ``"reach"``. Default: the first quantity
            of the map.
        ax : matplotlib.axes.Axes, optional
            Axes to draw in. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            If matplotlib is missing; for a quantity that is not in the map; for a map over three
            axes or more, which `cut` reduces.
        """
        return drawn(self, what, ax)

    def cut(self, axis: str, value: float) -> MotorMap:
        """The map at the value of one axis that is nearest to `value`.

        Parameters
        ----------
        axis : str
            The name of an axis.
        value : float
            Value on the axis, rad or m.

        Returns
        -------
        MotorMap
            A map with one axis less.

        Raises
        ------
        InputError
            For a name that is no axis, or the only one; a value beyond its ends.
        """
        return cut_at(self, axis, value)


def _numbers(x: Array | None) -> Array:
    """The entries that are not nan."""
    return np.zeros(0) if x is None else x[~np.isnan(x)]


def cut_at(map_: MotorMap, axis: str, value: float) -> MotorMap:
    """See `MotorMap.cut`."""
    names = [a.name for a in map_.axes]
    k = names.index(known_name(axis, names, "axis", "MotorMap.cut"))
    if len(names) == 1:
        raise InputError("MotorMap.cut: the map has one axis only")
    x, values = number("MotorMap.cut: value", value), map_.axes[k].values
    if not values.min() <= x <= values.max():
        raise InputError(
            f"MotorMap.cut: {axis!r} goes from {values.min():g} to {values.max():g}; got {x:g}"
        )
    i = int(np.argmin(np.abs(values - x)))
    changed: dict[str, Any] = {"axes": (*map_.axes[:k], *map_.axes[k + 1 :])}
    for f in fields(map_):
        array = getattr(map_, f.name)
        if isinstance(array, np.ndarray):
            changed[f.name] = array.take(i, axis=k)
            changed[f.name].setflags(write=False)
    return replace(map_, **changed)


def drawn(map_: MotorMap, what: str | None, ax: Axes | None) -> Axes:
    """See `MotorMap.plot`."""
    always = ("reach", "singularity") if map_.motors else ("reach",)
    there = [word for word in (*QUANTITIES, *always) if word in (*map_.what, *always)]
    motors = map_.motors if map_.torque is not None else ()
    word = there[0] if what is None else one_of("what", what, (*there, *motors))
    map_, fixed = _without_single(map_)
    if len(map_.axes) > 2:
        names = ", ".join(axis.name for axis in map_.axes)
        raise InputError(
            f"a map over {len(map_.axes)} axes ({names}) cannot be drawn: cut it first, "
            f"map.cut({map_.axes[-1].name!r}, value)"
        )
    if ax is None:
        ax = _new_axes()
    if not hasattr(ax, "has_data"):
        raise InputError(f"ax must be axes of matplotlib; got {type(ax).__name__}")
    (_lines if len(map_.axes) == 1 else _colours)(map_, word, ax)
    lines = [f"{map_.mechanism}: {_TITLES.get(word, f'holding effort of {word}')}", *fixed]
    ax.set_title("\n".join(lines), fontsize="medium", parse_math=False)
    if not map_.reachable.any():
        ax.text(0.5, 0.5, "no point is reached", ha="center", va="center", transform=ax.transAxes)
    return ax


def _without_single(map_: MotorMap) -> tuple[MotorMap, list[str]]:
    """The map without axes of one value, as long as an axis is left; and a line that names them."""
    fixed = list[str]()
    for axis in map_.axes:
        if axis.values.size == 1 and len(map_.axes) > 1:
            map_ = cut_at(map_, axis.name, float(axis.values[0]))
            fixed.append(f"{axis.name} = {axis.values[0]:.4g} {axis.unit}")
    return map_, [", ".join(fixed)] if fixed else []


def _new_axes() -> Axes:
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise InputError(
            "pictures need matplotlib, which is not installed: pip install 'holoctl[plot]'"
        ) from None
    return plt.figure(layout="constrained").add_subplot()


def _title(map_: MotorMap, word: str) -> str:
    turns = bool(map_.rows) and all(row.rpartition(".")[2] in _TURNS for row in map_.rows)
    wide = len(map_.axes) == 2
    largest = "largest " if wide and len(map_.motors) > 1 else ""
    smallest = "smallest " if wide and len(map_.rows) > 1 else ""
    of_rates = "at the limits of motor rates" if map_.scaled[0] else "for motor rates of norm 1"
    of_efforts = "at the limits of efforts" if map_.scaled[1] else "for efforts of norm 1"
    words = {
        "torque": f"{largest}holding effort ({common_unit(map_.units)})",
        "condition": "condition number",
        "velocity": f"{smallest}velocity ({'rad/s' if turns else 'm/s'}) {of_rates}",
        "force": f"{smallest}{'moment (N m)' if turns else 'force (N)'} {of_efforts}",
        "reach": "reachable",
        "singularity": "smallest singular value, negative on the other side",
    }
    unit = dict(zip(map_.motors, map_.units, strict=False)).get(word, "")
    return words.get(word, f"holding effort ({common_unit([unit])})")


def _curves(map_: MotorMap, word: str) -> dict[str, Array]:
    """The curves of a quantity over one axis, by their labels."""
    if word == "torque" and map_.torque is not None:
        return {name: map_.torque[..., i] for i, name in enumerate(map_.motors)}
    if word in ("velocity", "force"):
        sizes = getattr(map_, word)
        return {f"semi-axis {i + 1}": sizes[..., i] for i in range(sizes.shape[-1])}
    return {word: _field(map_, word)}


def _field(map_: MotorMap, word: str) -> Array:
    """One number for each point."""
    if word == "reach":
        return map_.reachable.astype(float)
    found = map_.condition
    if word == "singularity":
        return map_.smallest_singular_value * np.where(map_.side < 0, -1.0, 1.0)
    if word == "torque" or word in map_.motors:
        u = np.zeros((*map_.reachable.shape, 0)) if map_.torque is None else map_.torque
        found = np.abs(u).max(axis=-1) if word == "torque" else u[..., map_.motors.index(word)]
    elif word in ("velocity", "force"):
        found = getattr(map_, word).min(axis=-1)
    return np.zeros(map_.reachable.shape) if found is None else found


def _lines(map_: MotorMap, word: str, ax: Axes) -> None:
    axis = map_.axes[0]
    curves = _curves(map_, word)
    for name, values in curves.items():
        ax.plot(axis.values, values, ".-", label=name)
    if word == "condition" and _wide(next(iter(curves.values()))):
        ax.set_yscale("log")
        _plain_decades(ax.yaxis)
    if word == "reach":
        ax.set(ylim=(-0.1, 1.1), yticks=(0, 1), yticklabels=("no", "yes"))
    if len(curves) > 1:
        ax.legend(fontsize="small")
    ax.set(xlabel=f"{axis.name} ({axis.unit})", ylabel=_title(map_, word))
    ax.grid(alpha=0.3)


def _colours(map_: MotorMap, word: str, ax: Axes) -> None:
    from matplotlib.colors import LogNorm

    one, two = map_.axes
    field = np.where(np.isfinite(found := _field(map_, word)), found, np.nan)
    look: dict[str, Any] = {"shading": "nearest", "cmap": "viridis"}
    cut = False
    if word == "reach":
        look |= {"vmin": 0.0, "vmax": 1.0}
    elif word == "condition" and _wide(field):
        look["norm"] = LogNorm(np.nanmin(field), np.nanmax(field))
    elif np.isfinite(field).any():
        cut, look["vmin"], look["vmax"] = _range(field)
    mesh = ax.pcolormesh(one.values, two.values, field.T, **look)
    ax.set(xlabel=f"{one.name} ({one.unit})", ylabel=f"{two.name} ({two.unit})")
    if one.unit == two.unit and 1.0 / SLENDER < np.ptp(one.values) / np.ptp(two.values) < SLENDER:
        ax.set_aspect("equal", adjustable="box")
    if word != "reach":
        scale = ax.inset_axes((1.03, 0.0, 0.05, 1.0))  # as high as the picture, for any aspect
        bar = ax.figure.colorbar(mesh, cax=scale, extend="max" if cut else "neither")
        bar.set_label(fill(_title(map_, word), LONGEST_LINE), fontsize="small")
        if "norm" in look:
            _plain_decades(scale.yaxis)
    if word in ("velocity", "force"):
        _ellipses(map_, word, ax)


def _plain_decades(axis: Axis) -> None:
    """Numbers as 1, 2, 5, 10 on a logarithmic axis."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


def _wide(field: Array) -> bool:
    """Whether positive numbers span more than a factor of ten, so that a logarithm is drawn."""
    finite = field[np.isfinite(field)]
    return bool(finite.size) and float(finite.max()) > 10.0 * float(finite.min())


def _range(field: Array) -> tuple[bool, float, float]:
    """The range of colours: whether some points are above it, its start and its end. It is bounded,
    as a few points near a singular configuration are so large that all others would look equal."""
    finite = field[np.isfinite(field)]
    bound = SHOWN * float(np.quantile(np.abs(finite), 0.9))
    lower, upper = max(float(finite.min()), -bound), min(float(finite.max()), bound)
    return float(finite.max()) > upper, lower, upper


def _ellipses(map_: MotorMap, word: str, ax: Axes) -> None:
    """Draw ellipses at some points, if the axes are the rows of the task; with a common scale."""
    from matplotlib.patches import Ellipse

    sizes, directions = getattr(map_, word), getattr(map_, f"{word}_directions")
    if tuple(axis.name for axis in map_.axes) != map_.rows or not np.isfinite(sizes).any():
        return
    one, two = (axis.values for axis in map_.axes)
    steps = [max(1, -(-x.size // ELLIPSES)) for x in (one, two)]
    room = 0.45 * min(
        steps[0] * np.ptp(one) / max(one.size - 1, 1), steps[1] * np.ptp(two) / max(two.size - 1, 1)
    )
    usual = float(np.nanmedian(np.where(np.isfinite(sizes), sizes, np.nan).max(axis=-1)))
    for i in range(steps[0] // 2, one.size, steps[0]):
        for j in range(steps[1] // 2, two.size, steps[1]):
            s, U = sizes[i, j], directions[i, j]
            if not np.isfinite(s).all():
                continue
            s = room * s / max(usual, float(s.max()))
            turn = np.degrees(np.arctan2(U[1, 0], U[0, 0]))
            ax.add_patch(
                Ellipse((one[i], two[j]), 2 * s[0], 2 * s[1], angle=turn, fill=False, color="w")
            )
