"""What `motor_map` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import counted, unpickled
from holoctl.design.maps.chart import GridAxis
from holoctl.design.maps.plot import cut_at, drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MotorMap"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MotorMap:
    """A mechanism over a grid of shape S; read-only arrays, nan where a point is not reachable.

    Attributes
    ----------
    mechanism : str
        Its name.
    axes : tuple of GridAxis
        Name, unit and values of each axis of the grid.
    what : tuple of str
        What was asked for.
    motors : tuple of nu str
    rows : tuple of n str
        The rows of the task that ellipsoids are of: its lengths (m), whatever turns meanwhile; or
        all where it has none (rad).
    scaled : (bool, bool)
        Whether ellipsoids are those for the limits of the motors, of their rates and of their
        efforts; else for rates, or efforts, of norm one (rad/s and m/s, N m and N).
    reachable : S bool array
        Whether the mechanism gets there on its branch, and is within its limits of positions there.
    behind : S bool array
        Reachable, but only by passing a configuration where the motors do not determine the motion;
        told where there are as many motors as motions.
    reasons : S array of str
        Why a point is not reachable; and of one that is, what else is not as it should be: efforts
        beyond limits, motors that do not hold it, no way there within limits of positions, joints
        that are whole turns or a branch apart from those of a neighbour, where ways around a hole
        meet. Empty where there is nothing to say.
    q : S x (nq,) array
        The configurations.
    torque : S x (nu,) array or None
        Holding efforts, N m or N; of more motors than motions those of `inverse_dynamics`, of least
        norm with forces counted times the size of their loop.
    condition : S array or None
        Of a map of a task: condition number of the rates of the task by those of the motors, rows
        in m over the size of the mechanism. Else that of the rates of the motors by the motions,
        in scaled coordinates. From 1; inf where motors do not determine the motion, or where motors
        that move do not move the task.
    velocity : S x (n,) array or None
        Semi-axes of the ellipsoid of the task's velocities, m/s or rad/s, descending.
    velocity_directions : S x (n, n) array or None
        Their directions, in columns.
    force, force_directions : likewise
        Of forces at the task that motors balance, N or N m, beside those of `torque`.
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
    torque: Array | None = None
    condition: Array | None = None
    velocity: Array | None = None
    velocity_directions: Array | None = None
    force: Array | None = None
    force_directions: Array | None = None

    __setstate__ = unpickled

    @property
    def good(self) -> NDArray[np.bool_]:
        """Where the mechanism gets, and nothing is to be said against it (S bool array)."""
        found: NDArray[np.bool_] = self.reachable & (self.reasons == "")
        return found

    def __repr__(self) -> str:
        shape = " x ".join(str(axis.values.size) for axis in self.axes)
        names = ", ".join(axis.name for axis in self.axes)
        there = int(self.reachable.sum())
        said = [f"{there} reachable"]
        if (less := there - int(self.good.sum())) > 0:
            said.append(f"{less} of them with reservations")
        if (u := _told(self.torque)).size:
            said.append(f"efforts up to {np.abs(u).max():.3g} N m or N")
        if (condition := _told(self.condition)).size:
            said.append(f"condition {condition.min():.3g} to {condition.max():.3g}")
        points = counted(self.reachable.size, "point")
        return f"<MotorMap of {self.mechanism!r}: {shape} = {points} over {names}: " + (
            ", ".join(said) + ">"
        )

    def plot(self, what: str | None = None, ax: Axes | None = None) -> Axes:
        """Draw a quantity: lines over one axis, colours over two. Needs matplotlib.

        Parameters
        ----------
        what : str, optional
            ``"torque"``, the largest of all motors over two axes; the name of a motor;
            ``"condition"``; ``"velocity"`` or ``"force"``, the least semi-axis, and ellipses at
            some points where the axes are those of the task; ``"reach"``. Default: the first that
            there is.
        ax : matplotlib.axes.Axes, optional
            Where to. Default: a new figure.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InputError
            Without matplotlib; for what is not in the map; over three axes and more: `cut` makes
            two of them.
        """
        return drawn(self, what, ax)

    def cut(self, axis: str, value: float) -> MotorMap:
        """The map where one axis has the value of its grid that is nearest to `value`.

        Parameters
        ----------
        axis : str
            The name of an axis.
        value : float
            rad or m.

        Returns
        -------
        MotorMap
            With an axis less.

        Raises
        ------
        InputError
            For a name that is no axis, or the only one; a value beyond its ends.
        """
        return cut_at(self, axis, value)


def _told(x: Array | None) -> Array:
    """The numbers that there are."""
    return np.zeros(0) if x is None else x[~np.isnan(x)]
