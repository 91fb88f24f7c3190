"""The fastest motion along a path within the limits of motors and joints.

    min T      u, rates, accelerations within their limits,   sd = 0 at both ends

limit_rows.py has the limits as rows, convex_programs.py the programs. Limits are imposed at both
ends of each interval, with its acceleration; then they are checked between nodes, and nodes are
added in intervals in which a limit is exceeded.
Reference: docs/trajectories.md.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from holoctl.base.checks import flag, number, one_of, quiet, whole
from holoctl.base.errors import InputError, LimitError
from holoctl.design.paths.closed_path import (
    ClosedPath,
    between,
    closed_curve,
    closed_path,
    grid_of,
    near_ends,
    turning_points,
    with_nodes,
)
from holoctl.design.paths.curve import Curve
from holoctl.design.paths.inputs import checked_path, start_of
from holoctl.design.paths.path_continuation import System
from holoctl.design.paths.trajectory import Trajectory
from holoctl.design.paths.type_2 import type_2_along, type_2_error
from holoctl.design.retiming.crossing_plan import planned_crossing
from holoctl.design.retiming.limit_rows import limited_along
from holoctl.design.retiming.payload import with_payload
from holoctl.design.retiming.result import CheckedSolution, checked, trajectory_of
from holoctl.design.retiming.solve import RETIME_OVER, RetimingProblem, fastest
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import MODEL, Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition

__all__ = ["retime"]

RETIME_REFINED = 5
"""Largest number of times that nodes are added where a trajectory exceeds limits between its nodes
by more than `RETIME_OVER`."""

RETIME_TIGHTENED = 5
"""Largest number of times that limits are then tightened there."""

RETIME_CHECKED = 100
"""Smallest number of places between nodes at which a trajectory is checked."""


log = logging.getLogger(__name__)

METHODS = ("cvxpy", "toppra")


@quiet
def retime(
    mech: Mechanism,
    path: Any,
    limits: Any = MODEL,
    points: int = 200,
    method: str = "cvxpy",
    *,
    start: Any = None,
    f_ext: Any = None,
    payload: Any = None,
    margin: float = 0.0,
    partition: Partition | None = None,
    cross: bool = False,
) -> Trajectory:
    """The fastest motion along a path, at rest at both ends, within limits.

    Parameters
    ----------
    mech : Mechanism
    path : function, array_like or (task, values)
        The path:

        - a function of s in [0, 1] that returns positions of the motors (nu,), or a configuration
          (nq,); its derivatives are computed. Or it returns a tuple (value, d, dd) with
          derivatives by s, for positions of the motors;
        - way-points (n, nu) or (n, nq), two or more, connected by a cubic spline in chord length;
        - ``(hc.FrameTask("tool"), poses)``: two or more poses as the task takes them, connected by
          cubic splines of positions and of rotations. Any other task likewise, with its values.

        If nu = nq, values are positions of motors. Passive joints follow, on one branch.
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits,
        which is refused, as nothing then limits the speed. Efforts, also those of `speed_torque`;
        velocities, accelerations and positions of any joint, also of cut joints.
    points : int, optional
        Number of intervals of the path; more are added if needed.
    method : str, optional
        ``"cvxpy"``, a cone program; or ``"toppra"``, faster, with the package of this name.
    start : (nq,) array_like, optional
        A configuration on the desired branch. Default: ``mech.reference``; for whole configurations
        the first.
    f_ext : mapping, optional
        Known external forces, which act all the time, as `inverse_dynamics` takes them.
    payload : (frame, mass) or (frame, pin.Inertia), optional
        The payload: a mass at the origin of a frame, kg, or an inertia in its axes. The
        trajectory is that of ``trajectory.mech``, which has it.
    margin : float, optional
        Share of the limits that is left to a controller, from 0 to below 1: of efforts, velocities
        and accelerations.
    partition : Partition, optional
        Its rows determine the motion. Default: the one chosen at the start.
    cross : bool, optional
        Plan a motion through the type-2 singularities that a path of poses or of configurations
        crosses, instead of an error: efforts are within limits and continuous there too, and
        ``trajectory.crossings`` has them. `CrossingControl` controls it.

    Returns
    -------
    Trajectory

    Raises
    ------
    InputError
        For a wrong type of path; a path that stands still somewhere, is not smooth, or is not
        closed; limits that do not limit the speed; toppra if it is not installed.
    NotActuatedError
        For a mechanism with motions that no motor drives, which cannot follow a path.
    LimitError
        If the limits allow no motion along the path, however slow, or none through a singularity:
        the message states where, which limit, and by how much; if a position is past its limit.
    SingularityError
        If the path meets a type-2 singularity, at which motors do not determine the motion (with
        ``cross=True``: if it does not cross it from one side to the other); if it ends at one, as a
        path of motors does at the end of the workspace; if a path of poses ends at a type-1
        singularity, at which the task does not determine the motion. The error has the place, the
        value and the motion that is lost.
    BranchError, AssemblyError
        If the path cannot be followed for another reason; if the start does not close.

    See Also
    --------
    Trajectory : the result, or one through given nodes.
    ComputedTorque : tracks it.
    lqr_along : a regulator along it.
    CrossingControl : controls it through a singularity, with ``cross=True``.
    motor_map : the workspace.

    Notes
    -----
    With more motors than motions the efforts are within their limits, with the least sum of squares
    of efforts over limits; a controller then needs `limits` too. Friction is that at the speed of
    the motion. Forces that depend on time are taken at t = 0. Crossings are planned by cvxpy with
    either method; the squared speed is then a smooth function of s, and the motion a little slower.

    References
    ----------
    D. Verscheure et al., "Time-optimal path tracking for robots: a convex optimization approach",
    IEEE Transactions on Automatic Control, 2009.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> here = mech.motor_positions(hc.assemble(mech)[0])
    >>> limits = hc.Limits(acceleration=10.0)
    >>> fast = hc.retime(mech, [here, here + [0.3, -0.1]], limits=limits, points=20)
    >>> round(fast.duration, 2), list(fast.at_limits)
    (0.35, ['motor_left.acceleration'])
    """
    check_mechanism(mech)
    points = whole("points", points, 4)
    one_of("method", method, METHODS)
    flag("cross", cross)
    margin = number("margin", margin, "share of the limits")
    if not 0.0 <= margin < 1.0:
        raise InputError(f"margin must be from 0 to below 1; got {margin:g}")
    mech = with_payload(mech, payload)
    given = requested_limits(mech, limits, "retime") or Limits()
    bound = bound_limits(mech, given.scaled(1.0 - margin))
    whole_range = bound_limits(mech, given)
    _check_bounded(mech, bound)
    begin = start_of(mech, start, partition)
    wanted = checked_path(begin, path, start is not None, cross)
    nodes = closed_path(wanted, grid_of(wanted.knots, points))
    if mech.bound_forces:  # friction changes fast near rest, and its sign at turning points
        nodes = with_nodes(nodes, near_ends(nodes.s))
        nodes = with_nodes(nodes, turning_points(nodes))
    task = RetimingProblem(bound, f_ext, method)
    if cross:
        found = type_2_along(mech, nodes.system.part, closed_curve(nodes)[0])
        if found.places:
            _check_positions(nodes, whole_range)
            return planned_crossing(task, nodes, found)
    return trajectory_of(task, _refined(task, nodes, whole_range, cross), cross)


def _check_type_2(system: System, curve: Curve) -> None:
    """Raise `SingularityError` before anything is optimised, if the path meets a type-2
    singularity."""
    found = type_2_along(system.mech, system.part, curve)
    error = type_2_error(system.mech, system.part, curve, found)
    if error is not None:
        raise error


def _refined(
    task: RetimingProblem, nodes: ClosedPath, whole_range: BoundLimits, cross: bool
) -> CheckedSolution:
    """The fastest motion, with nodes added, and then limits tightened, until limits are kept
    between nodes; if that fails, the best motion that was found, with a warning."""
    best: CheckedSolution | None = None
    for turn in range(RETIME_REFINED + RETIME_TIGHTENED):
        curve, middle = closed_curve(nodes)
        if not (turn or cross):
            _check_type_2(nodes.system, curve)
        places = _places(nodes, curve, middle)
        for part in (nodes, *places.values()):
            _check_positions(part, whole_range)
        try:
            found = checked(task, fastest(task, nodes), curve, places)
        except LimitError as error:
            if best is None or (task.tight is None and error.residual > 0.0):
                raise
            break
        worst = float(found.over.max())
        if best is None or worst < float(best.over.max()):
            best = found
        over = found.over > RETIME_OVER
        if not over.any():
            return found
        near = over | np.append(over[1:], False) | np.append(False, over[:-1])
        if turn < RETIME_REFINED:
            nodes = with_nodes(nodes, 0.5 * (nodes.s[1:] + nodes.s[:-1])[near])
            log.info(_MORE, 100.0 * worst, int(near.sum()))
            continue
        tight = np.zeros(nodes.s.size - 1) if task.tight is None else task.tight
        task = replace(task, tight=tight + np.where(near, worst, 0.0))
        log.info(_TIGHTER, 100.0 * worst, int(near.sum()))
    if best is None:  # pragma: no cover - the first turn finds one, or raises
        raise LimitError(f"{nodes.system.mech.name}: no motion along the path was found")
    at, s = int(np.argmax(best.over)), best.profile.path.s
    log.warning(_STILL, s.size, 100.0 * float(best.over.max()), float(s[at]))
    return best


def _places(nodes: ClosedPath, curve: Curve, middle: ClosedPath) -> dict[float, ClosedPath]:
    """The path at which a solution is checked, by the share of the interval between nodes:
    half-way, and at more shares if there are few nodes. `middle` is half-way between the nodes of
    the curve, which may differ from `nodes`."""
    own = np.array_equal(curve.x, nodes.s)
    along = curve if own else nodes.curve()
    count = 2 * (RETIME_CHECKED // (2 * (nodes.s.size - 1))) + 1
    shares = (np.arange(count) + 1.0) / (count + 1.0)
    return {x: middle if own and x == 0.5 else between(nodes, along, x)[0] for x in shares.tolist()}


_MORE = "retime: limits are exceeded by up to %.2g %% between nodes; %d more nodes"
_TIGHTER = "retime: limits are exceeded by up to %.2g %% between nodes; tighter in %d intervals"
_STILL = "retime: with %d nodes limits are exceeded by %.2g %% between them, near s = %.4g"


def _check_bounded(mech: Mechanism, bound: BoundLimits) -> None:
    efforts = np.isfinite(bound.effort).any()
    joints = np.isfinite(bound.velocity).any() or np.isfinite(bound.acceleration).any()
    if not (efforts or joints):
        raise InputError(
            f"{mech.name}: retime: nothing limits how fast a path is followed; give limits of "
            "efforts, velocities or accelerations: hc.Limits(effort=..., velocity=...), or "
            'limits="model" for those of the mechanism'
        )


def _check_positions(path: ClosedPath, bound: BoundLimits) -> None:
    """Raise `LimitError` if a position is past its limit."""
    if not bound.names or not np.isfinite(bound.position).any():
        return
    x, _, _ = limited_along(path, bound)
    over = np.maximum(x - bound.position[1], bound.position[0] - x) / bound.units
    i, j = np.unravel_index(int(np.argmax(over)), over.shape)
    if over[i, j] > 1e-9:
        names = tuple(f"{bound.names[k]}.position" for k in np.flatnonzero(over.max(axis=0) > 1e-9))
        lower, upper = bound.position[:, j]
        raise LimitError(
            f"{path.system.mech.name}: the path leads past a limit: at s = {path.s[i]:.4g} "
            f"{bound.names[j]!r} is at {x[i, j]:.5g}, its limits are {lower:.5g} to {upper:.5g} "
            f"(past by {over[i, j] * bound.units[j]:.2g})",
            names=names, residual=float(over[i, j]), q=path.q[i].copy(),
        )  # fmt: skip
