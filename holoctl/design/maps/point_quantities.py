"""The quantities of a motor map at a point, a closed configuration on the branch of the map.

With W the motions that change the chart (columns, orthonormal in scaled coordinates), A = D B' W
the rates of the motors in units D, and S = J W those of a task:

    torque       gamma' B u = gamma' (h - F), least norm
    condition    sigma_1 / sigma_r of A; with a task, of T = S R^-1, A = Q R
    velocity     {S z : |A z| <= 1}         semi-axes sigma(T), along its left singular vectors
    force        {f : |u| <= 1, A' u = S' f}         semi-axes 1 / sigma(T)

References: T. Yoshikawa, "Manipulability of robotic mechanisms", International Journal of Robotics
Research, 1985; C. Gosselin and J. Angeles, "Singularity analysis of closed-loop kinematic chains",
IEEE Transactions on Robotics and Automation, 1990.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from holoctl.base.checks import Array, Vector
from holoctl.base.errors import HoloctlError
from holoctl.base.linalg import null_space_by_svd, singular_values
from holoctl.base.tolerances import ACTUATION_SINGULAR, WITHIN_LIMIT
from holoctl.control.effort_bounds import effort_bounds
from holoctl.control.tasks.task_protocol import BoundTask
from holoctl.control.tasks.task_terms import bound_to
from holoctl.design.maps.grid_coordinates import MapChart, lengths_of
from holoctl.design.maps.neighbour_continuation import PartitionedConfiguration
from holoctl.dynamics.actuation import effort_scales
from holoctl.dynamics.actuation_side import hold_of_motors
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.limits import Limits
from holoctl.projector.projection import Projection, projected

__all__ = ["MapPoint", "MapRequest", "point_at"]


@dataclass(frozen=True, eq=False)
class MapRequest:
    """The quantities of a map that are requested.

    It can be pickled; the bound task and limits are made once in each process.

    Attributes
    ----------
    chart : MapChart
    what : tuple of str
        Names of quantities.
    limits : Limits or None
    task : Task or None
        The task of the ellipsoids and the condition.
    t : float
        Time, s.
    """

    chart: MapChart
    what: tuple[str, ...]
    limits: Limits | None
    task: Any
    t: float

    def __reduce__(self) -> tuple[Any, ...]:
        return MapRequest, (self.chart, self.what, self.limits, self.task, self.t)

    @cached_property
    def bound(self) -> BoundTask | None:
        """The task bound to the mechanism."""
        return None if self.task is None else bound_to(self.chart.mech, self.task)

    @cached_property
    def limited(self) -> BoundLimits | None:
        """The limits bound to the mechanism."""
        return None if self.limits is None else bound_limits(self.chart.mech, self.limits)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The rows of the task used for ellipsoids: its lengths, or all if it has no lengths."""
        if self.bound is None:
            return np.zeros(0, dtype=np.intp)
        lengths = lengths_of(self.bound)
        return np.flatnonzero(lengths) if lengths.any() else np.arange(lengths.size)

    @cached_property
    def rate_units(self) -> tuple[Vector, bool]:
        """Units of motor rates, and whether they are limits: limits if all motors have one, else
        1."""
        mech, bound = self.chart.mech, self.limited
        none = np.ones(mech.nu), False
        if bound is None or not mech.actuated:
            return none
        at = [bound.names.index(name) if name in bound.names else -1 for name in mech.actuated]
        if min(at) < 0:
            return none
        return _sizes(bound.velocity[:, at], none)

    @cached_property
    def effort_units(self) -> tuple[Vector, bool]:
        """Units of motor efforts, likewise."""
        none = np.ones(self.chart.mech.nu), False
        return none if self.limited is None else _sizes(self.limited.effort, none)


def _sizes(both: Array, none: tuple[Vector, bool]) -> tuple[Vector, bool]:
    """The smaller of lower and upper limit, if all are finite with zero between them."""
    nearer = np.minimum(-both[0], both[1])
    return (nearer, True) if (np.isfinite(nearer) & (nearer > 0.0)).all() else none


class MapPoint(NamedTuple):
    """A point of the map.

    Attributes
    ----------
    q : (nq,) array
    numbers : dict of str to array
        Quantities, by the names of `MotorMap`.
    beyond : str
        Positions that are beyond their limits, in words; empty if there are none.
    remarks : tuple of str
        Reservations about a point that was reached.
    side : int
        Sign of the determinant of motor rates by rates of the chart; 0 if it is not square.
    """

    q: Vector
    numbers: dict[str, Array]
    beyond: str
    remarks: tuple[str, ...]
    side: int


def point_at(request: MapRequest, spot: PartitionedConfiguration, D: Array) -> MapPoint:
    """The requested quantities at a configuration.

    D (rows, nv) is the derivative of the chart by scaled coordinates. Quantities that are not
    defined there are left out, with a remark.
    """
    chart, (q, part) = request.chart, spot
    mech, rest = chart.mech, np.zeros(chart.mech.nv)
    beyond = _beyond(request, q)
    try:
        P = projected(mech, q, rest, request.t, part)
    except HoloctlError as error:
        return MapPoint(q, {}, beyond, (_first_sentence(error, mech.name),), 0)
    W, DW = _motions(P, D)
    A = mech.B.T @ W
    numbers, remarks = dict[str, Array](), list[str]()
    if "torque" in request.what:
        _torque(request, P, numbers, remarks)
    sizes = singular_values(effort_scales(mech)[0][:, None] * A)
    determined = sizes.size == A.shape[1] and sizes[-1] * ACTUATION_SINGULAR > sizes[0]
    if part.actuation_rank:
        numbers["smallest_singular_value"] = sizes[min(part.actuation_rank, sizes.size) - 1]
    if not determined and request.what != ("reach",):
        lost = f": {hold_of_motors(mech, part, q).words}" if part.actuation_rank else ""
        remarks.append(f"the motors do not determine the motion there{lost}")
    _of_rates(request, P, W, A if determined else None, sizes, numbers)
    square = mech.nu == A.shape[1] == DW.shape[0]
    side = int(np.sign(np.linalg.det(A)) * np.sign(np.linalg.det(DW))) if square else 0
    return MapPoint(q, numbers, beyond, tuple(remarks), side)


def _motions(P: Projection, D: Array) -> tuple[Array, Array]:
    """W (nv, r), unscaled: the motions that change the chart; and the rates of the chart by W."""
    c = P.mechanism.column_scale[:, None]
    T = np.linalg.qr(P.gamma * P.scale / c)[0]
    DT = D @ T
    V = null_space_by_svd(DT, D.shape[0])[2]
    return c * (T @ V), DT @ V


def _beyond(request: MapRequest, q: Vector) -> str:
    bound = request.limited
    if bound is None:
        return ""
    x = coordinates_at(
        request.chart.mech, bound, q, np.zeros(request.chart.mech.nv), request.t
    ).positions
    lower, upper = bound.position
    over = np.maximum(x - upper, lower - x) / bound.units
    return "; ".join(
        f"{bound.names[i]} = {x[i]:.4g}, limit {(upper if x[i] > upper[i] else lower)[i]:.4g}"
        for i in np.flatnonzero(over > WITHIN_LIMIT)
    )


def _torque(
    request: MapRequest, P: Projection, numbers: dict[str, Array], remarks: list[str]
) -> None:
    """Add holding efforts; a remark if they exceed limits, or if no efforts hold the mechanism."""
    mech = P.mechanism
    try:
        found = inverse_dynamics(
            mech, P.q, P.v, np.zeros(mech.nv), coordinates="all", inconsistent="project",
            t=request.t, projection=P,
        )  # fmt: skip
    except HoloctlError as error:
        remarks.append(_first_sentence(error, mech.name))
        return
    if not found.certificate.ok:
        remarks.append("the motors cannot hold it there")
        return
    numbers["torque"] = found.u
    if request.limited is None:
        return
    lower, upper = effort_bounds(request.limited, np.zeros(mech.nu))
    for i in np.flatnonzero((found.u > upper) | (found.u < lower)):
        limit = upper[i] if found.u[i] > upper[i] else lower[i]
        remarks.append(f"effort of {mech.actuator_names[i]} = {found.u[i]:.4g}, limit {limit:.4g}")


def _of_rates(
    request: MapRequest,
    P: Projection,
    W: Array,
    A: Array | None,
    sizes: Vector,
    numbers: dict[str, Array],
) -> None:
    """Add condition and ellipsoids; A is None if the motors do not determine the motion."""
    task = request.bound
    if task is None:
        if "condition" in request.what:
            condition = np.inf if A is None else sizes[0] / sizes[-1]
            numbers["condition"] = np.array(condition)
        return
    J = task.at(P.kinematics).jacobian @ W
    if "condition" in request.what:
        numbers["condition"] = np.array(np.inf)
        if A is not None:
            T = _by_motors(task.scale[:, None] * J, effort_scales(P.mechanism)[0][:, None] * A)
            s = singular_values(T)
            if T.shape[0] <= T.shape[1] and s[-1] * ACTUATION_SINGULAR > s[0]:
                numbers["condition"] = np.array(s[0] / s[-1])
    if A is None:
        return
    for name, unit in (
        ("velocity", 1.0 / request.rate_units[0]),
        ("force", request.effort_units[0]),
    ):
        if name not in request.what:
            continue
        T = _by_motors(J[request.rows], unit[:, None] * A)
        U, s, _ = np.linalg.svd(T, full_matrices=True)
        lengths = np.zeros(U.shape[0])
        lengths[: s.size] = s
        if name == "force":
            with np.errstate(divide="ignore"):
                lengths, U = (1.0 / lengths)[::-1], U[:, ::-1]
        numbers[name], numbers[f"{name}_directions"] = lengths, U


def _by_motors(S: Array, A: Array) -> Array:
    """T = S R^-1, A = Q R: rates of a task by motor rates, in an orthonormal basis of their
    range."""
    R = np.linalg.qr(A, mode="r")
    T: Array = solve_triangular(R, S.T, trans="T").T
    return T


def _first_sentence(error: HoloctlError, name: str) -> str:
    text = str(error).removeprefix(f"{name}: ")
    return text.split("; ")[0].split(": ")[0][:160]
