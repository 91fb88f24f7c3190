"""Inverse kinematics: the closed state with frames at given poses.

    phi(q) = 0,   X(q) = X_ref,   lower <= x(q) <= upper,   q nearest to the posture
    G v + phi_t = 0,    J v = twist          G a + drift = 0,    J a + Jdot v = acceleration

The path starts at the closed guess, and leads in short steps on the constraints straight to the
poses; motions that they leave free minimise the distance from the posture; Newton's method gives
the last digits. v and a are two linear problems.
Reference: docs/inverse-kinematics.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, counted, number, positive, quiet, whole
from holoctl.base.errors import AssemblyError, InconsistentError
from holoctl.base.linalg import in_range, largest, null_space_by_svd
from holoctl.base.tolerances import REACH_STALLED, WITHIN_LIMIT
from holoctl.closing.assembly import assemble
from holoctl.closing.closed_state import ClosedMotion
from holoctl.closing.nearest_state import nearest_velocity
from holoctl.closing.newton import Problem, everywhere, newton
from holoctl.closing.rank import manifold_rank
from holoctl.closing.toleranced_rows import toleranced_rows
from holoctl.control.reach.constrained_least_squares import (
    REACH_CLOSED,
    Descent,
    PositionBounds,
    closed_within,
    kinematics_at,
    least,
    no_bounds,
)
from holoctl.control.reach.out_of_reach import Shortfall, out_of_reach
from holoctl.control.reach.targets import Targets, rates_of, targets_of
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.limits import MODEL, Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import constraint_rows
from holoctl.tree.kinematics import Kinematics

__all__ = ["inverse_kinematics"]

REACH_ROW_CHOICES = 3
"""The number of times that the kept rows of rounded geometry are chosen, each at the end of the
previous path."""

REACH_WORST = 1e-9  # scaled
"""The error of requested rates and accelerations, relative to 1 + the largest of them."""


@quiet
def inverse_kinematics(
    mech: Mechanism,
    poses: Any,
    q_guess: Any = None,
    *,
    v: Any = None,
    a: Any = None,
    axes: Any = None,
    relative_to: Any = "universe",
    posture: Any = None,
    limits: Any = MODEL,
    t: float = 0.0,
    tol: float = 1e-9,
    restarts: int = 0,
    seed: int = 0,
) -> ClosedMotion:
    """The closed state with one frame, or several, at given poses: q, and the matching v and a.

    It is found from the guess by short steps along the constraints, the frames straight towards
    their poses. So it is on the branch of the guess (elbow, assembly mode) if this path leads to
    the pose, and near it otherwise; no branch is guaranteed. Motions that the poses leave free are
    determined by the least distance from the posture. For real-time loops use `TaskSpaceControl`.

    Parameters
    ----------
    mech : Mechanism
    poses : mapping, or list of pairs
        ``{frame: pose}``. A frame is the name of a joint, body or frame, a pair (name, pin.SE3), or
        a `FrameTask`, which has its own axes. A list of pairs (frame, pose) takes what cannot be
        the key of a mapping. A pose is a `pin.SE3`, or a position (m) along the linear axes. Other
        tasks are allowed too, with their values: `PostureTask`.
    q_guess : (nq,) array_like, optional
        The start; it is closed first, as by `assemble`. Default: ``mech.reference``.
    v : mapping, list or (rows,) array_like, optional
        The rates of the rows of each frame, m/s and rad/s, as in a task: velocity of the frame
        relative to `relative_to`, along its axes, at the origin of the frame. Given by the same
        keys, by names, or as a list with an entry for each pose; for a single pose the rates
        themselves. A `pin.Motion` along these axes is accepted too; its entries for the rows are
        taken. The rates of omitted frames are zero. Default: all zero, or as nearly as possible
        if constraints that move with time exclude zero.
    a : mapping, list or (rows,) array_like, optional
        The derivatives of these rates, given likewise. Default: all zero, or as nearly as possible
        if there are more rows than motions.
    axes : str or mapping of name to str, optional
        Any of ``"x y z rx ry rz"``: the rows of frames that are given by name. Default: all six for
        a `pin.SE3`, ``"x y z"`` for a position. One angular axis is the angle about it, two leave
        the turn about the third free; see `FrameTask`.
    relative_to : str or (str, pin.SE3), optional
        The frame in which poses of frames given by name are expressed: ``"universe"``, the world,
        or a frame.
    posture : (nq,) array_like, optional
        The configuration that q is to be near to, as far as the poses leave it free; distance in
        scaled coordinates: rad, and m over the size of the loop. Default: `q_guess`.
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        Those of positions of joints, cut ones too, hold for q; others are ignored.
    t : float, optional
        Time, s, for constraints that depend on it.
    tol : float, optional
        The tolerance of the poses, scaled: rad, and m over the size of the mechanism.
    restarts : int, optional
        The number of seeded random starts around the guess, if the path from the guess ends before
        the pose. They may be on other branches, so the default is none.
    seed : int, optional
        The seed of the random starts.

    Returns
    -------
    ClosedMotion
        ``q, v, a``, or with names: ``.q``, ``.v``, ``.a``. q is closed as by `assemble`, and within
        limits of positions; v is the shortest solution in scaled coordinates of ``G v + phi_t = 0``
        and ``J v`` as given; a is that of ``G a + drift = 0`` and ``J a + Jdot v`` as given.

    Raises
    ------
    InputError
        For unknown frames, invalid poses, wrong shapes, numbers that are not finite.
    AssemblyError
        If the guess does not close, or the poses are not reached: the message states the remaining
        distance and the cause; ``q`` is the nearest closed configuration found, ``residual`` the
        scaled residual there, ``worst`` its rows.
    LimitError
        If limits of positions prevent it; with their names, and the remaining distance.
    InconsistentError
        If no motion of the closed mechanism has the rates `v`, or the accelerations `a`; with the
        missing part.

    See Also
    --------
    TaskSpaceControl : follows poses in a control loop.
    FrameTask : a frame with some axes.
    assemble : closes a mechanism without a pose.
    motor_map : a whole workspace.

    Notes
    -----
    A least distance that is not zero is a local one. Rows that follow from the constraints, such
    as those across the plane of a planar mechanism, are allowed if they are satisfied.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> tip = hc.FrameTask("tip_right", "x z")
    >>> q, v, a = hc.inverse_kinematics(mech, {tip: [0.15, 0.35]}, v=[0.1, 0.0])
    >>> mech.motor_positions(q).round(3).tolist()
    [1.901, 0.235]
    """
    check_mechanism(mech)
    given = mech.reference.copy() if q_guess is None else q_guess
    guess = check_configuration(mech, given, "q_guess")
    wanted = guess if posture is None else check_configuration(mech, posture, "posture")
    t, tol = number("t", t, "time, s"), positive("tol", tol, "scaled")
    restarts, seed = whole("restarts", restarts, 0), whole("seed", seed, 0)
    targets = targets_of(mech, poses, axes, relative_to)
    twist, acceleration = rates_of(targets, v, "v"), rates_of(targets, a, "a")
    bounds = _bounds_of(mech, limits)

    start = _closed(mech, bounds.put(guess), guess, t)
    for _ in range(REACH_ROW_CHOICES):
        meant = toleranced_rows(mech, start, t)
        p = replace(everywhere(mech, start, t), rows=None if meant is None else meant.rows)
        found = _reached(p, targets, bounds, start, tol)
        if isinstance(found, Shortfall):
            found = _from_elsewhere(p, targets, bounds, found, tol, restarts, seed)
        if isinstance(found, Shortfall):
            raise out_of_reach(p, targets, bounds, found)
        q = _settled(p, targets, bounds, wanted, found, tol)
        error = largest(everywhere(mech, q, t).scaled_rows(q)[0])
        if meant is None or error <= mech.tolerance:
            return ClosedMotion(q, *_motion(p, targets, q, twist, acceleration))
        start = assemble(mech, q, t=t)[0]  # rows that were left out are violated at the end
    raise AssemblyError(
        f"{mech.name}: at the poses, redundant rows have an error of {error:.2g} (scaled), more "
        f"than the tolerance of the geometry, {mech.tolerance:g}; hc.mobility explains the rows",
        residual=error, q=q,
    )  # fmt: skip


# --------------------------------------------------------------------------------------- the pose


def _closed(mech: Mechanism, inside: Vector, guess: Vector, t: float) -> Vector:
    """The guess, closed from positions within their limits, else from the guess itself."""
    try:
        return assemble(mech, inside, t=t)[0]
    except AssemblyError:
        if np.array_equal(inside, guess):
            raise
        return assemble(mech, guess, t=t)[0]


def _bounds_of(mech: Mechanism, limits: Any) -> PositionBounds:
    """The limits of positions, scaled."""
    given = requested_limits(mech, limits, "inverse_kinematics")
    if given is None:
        return no_bounds(mech.nv)
    bound = bound_limits(mech, Limits(position=given.position))
    if not bound.names:
        return no_bounds(mech.nv)
    lower, upper = bound.position / bound.units
    return PositionBounds(
        lambda kin: _positions(mech, bound, kin), lower, upper,
        tuple(f"{name}.position" for name in bound.names), bound.units, bound.places,
        lambda q: _put(bound, q),
    )  # fmt: skip


def _put(bound: BoundLimits, q: Vector) -> Vector:
    """q with coordinates of the tree that are beyond a limit moved to that limit."""
    at, here = bound.places[bound.places >= 0], q.copy()
    own = bound.position[:, : bound.places.size][:, bound.places >= 0]
    here[at] = np.clip(q[at], *own)
    return here


def _positions(mech: Mechanism, bound: BoundLimits, kin: Kinematics) -> tuple[Vector, Array]:
    here = coordinates_at(mech, bound, kin.q, kin.v, kin.t, kin)
    return here.positions / bound.units, here.J / bound.units[:, None]


def _reached(
    p: Problem, targets: Targets, bounds: PositionBounds, start: Vector, tol: float
) -> Vector | Shortfall:
    """A closed q with the frames at their poses, within the limits; or why it was not reached."""
    if bounds.lower.size and largest(bounds.excess(kinematics_at(p, start))) > WITHIN_LIMIT:
        inside = _inward(p, bounds, start)
        if isinstance(inside, Descent):
            return Shortfall(start, inside, inside=False)
        start = inside
    way = least(p, targets.left, bounds, start)
    q = _there(p, targets, bounds, way, tol)
    if q is not None or not way.stopped_by:
        return Shortfall(start, way) if q is None else q
    none = no_bounds(p.mech.nv)  # a limit stopped the path, or the joint made a turn too many
    free = _there(p, targets, none, least(p, targets.left, none, start), tol)
    if free is None:
        return Shortfall(start, way)
    q = _turned_back(p, bounds, free)
    if largest(bounds.excess(kinematics_at(p, q))) <= WITHIN_LIMIT:
        return q
    inside = _inward(replace(p, also=targets.left), bounds, free)
    return Shortfall(start, way, beyond=free) if isinstance(inside, Descent) else inside


def _inward(p: Problem, bounds: PositionBounds, q: Vector) -> Vector | Descent:
    """A closed configuration near q within the limits; or the end of the path towards it."""
    way = least(p, _outside(bounds), bounds, q)
    inside = closed_within(p, bounds, way.q)
    return way if inside is None else inside


def _there(
    p: Problem, targets: Targets, bounds: PositionBounds, way: Descent, tol: float
) -> Vector | None:
    """The end of a path, refined to full accuracy, if it is the pose."""
    if largest(way.left) > max(REACH_STALLED, tol):
        return None
    q = closed_within(replace(p, also=targets.left), bounds, way.q)
    for x in (way.q,) if q is None else (q, way.q):
        if largest(targets.left(kinematics_at(p, x))[0]) <= tol:
            return x
    return None


def _turned_back(p: Problem, bounds: PositionBounds, q: Vector) -> Vector:
    """q with joints beyond their limits turned back by whole turns, if the poses stay the same."""
    x, at = q.copy(), bounds.places[bounds.places >= 0]
    over = bounds.excess(kinematics_at(p, q))[: bounds.places.size][bounds.places >= 0]
    x[at] -= np.sign(over) * 2.0 * np.pi * np.ceil(np.abs(over) / (2.0 * np.pi))
    pairs = zip(kinematics_at(p, q).placements, kinematics_at(p, x).placements, strict=True)
    same = all(one.isApprox(other, REACH_CLOSED) for one, other in pairs)
    return x if same and largest(p.scaled_rows(x)[0]) <= REACH_CLOSED else q


def _from_elsewhere(
    p: Problem,
    targets: Targets,
    bounds: PositionBounds,
    short: Shortfall,
    tol: float,
    restarts: int,
    seed: int,
) -> Vector | Shortfall:
    """`_reached` from random starts around the guess; the nearest shortfall if none succeeds."""
    rng = np.random.default_rng(seed)
    for i in range(restarts):
        step = (0.2 + 2.0 * i / restarts) * rng.normal(size=p.free.size)
        try:
            start, _ = assemble(p.mech, bounds.put(p.moved(p.guess, step)), t=p.t, restarts=0)
        except AssemblyError:
            continue
        start = newton(p, start, None)  # `assemble` may have kept other rows of rounded geometry
        if largest(p.scaled_rows(start)[0]) > REACH_CLOSED:
            continue
        found = _reached(p, targets, bounds, start, tol)
        if not isinstance(found, Shortfall):
            return found
        nearer = np.linalg.norm(found.way.left) < np.linalg.norm(short.way.left)
        if found.inside > short.inside or (found.inside == short.inside and nearer):
            short = found
    return short


def _settled(
    p: Problem, targets: Targets, bounds: PositionBounds, posture: Vector, q: Vector, tol: float
) -> Vector:
    """The q nearest to the posture of all with the frames at their poses, to full accuracy."""
    mech, c = p.mech, p.mech.column_scale
    held = replace(p, also=targets.left)
    if largest(held.scaled_rows(q)[0]) > REACH_CLOSED:  # met to within a tolerance only
        return bounds.put(q)

    def away(kin: Kinematics) -> tuple[Vector, Array]:
        d = pin.difference(mech.model, posture, kin.q)
        D = pin.dDifference(mech.model, posture, kin.q, pin.ArgumentPosition.ARG1)
        return d / c, D / c[:, None]

    slid = least(held, away, bounds, q, kicks=False).q
    last = closed_within(held, bounds, slid)
    for x in (slid,) if last is None else (last, slid):
        if largest(targets.left(kinematics_at(p, x))[0]) <= tol:
            return bounds.put(x)
    return bounds.put(q)


def _outside(bounds: PositionBounds) -> Any:
    """The excess of positions beyond their limits, as rows."""

    def rows(kin: Kinematics) -> tuple[Vector, Array]:
        over = bounds.excess(kin)
        return over, (over != 0.0)[:, None] * bounds.at(kin)[1]

    return rows


# ------------------------------------------------------------------------------------- its motion


def _motion(
    p: Problem, targets: Targets, q: Vector, twist: Vector | None, acceleration: Vector | None
) -> tuple[Vector, Vector]:
    """The shortest v and a that satisfy the constraints and move the frames as requested."""
    mech, c, r = p.mech, p.metric, p.mech.row_scale
    kept = slice(None) if p.rows is None else p.rows
    kin, rows = constraint_rows(mech, q, np.zeros(mech.nv), p.t)
    error, G = p.scaled(kin, rows)
    U1, s, V1, Z = null_space_by_svd(G, manifold_rank(G, largest(error)))
    left = min(largest(targets.left(kin)[0]), REACH_WORST)
    JZ = targets.rate(kin)[0] * c @ Z

    v = nearest_velocity(p, q, np.zeros(mech.nv))
    moves = targets.rate(kin)[0] @ v
    y = _through(mech, targets, JZ, moves, twist, left, "v", "/s")
    v = v + c * (Z @ y)

    kin, rows = constraint_rows(mech, q, v, p.t)
    drift = (r * rows.drift)[kept]
    a = -c * (V1 @ ((U1.T @ drift) / s))
    missing = largest(G @ (a / c) + drift)
    if missing > REACH_WORST * (1.0 + largest(drift)):
        raise InconsistentError(
            f"{mech.name}: no acceleration keeps the constraints at this state: {missing:.2g} "
            "(scaled) is missing; the configuration is singular, and this velocity violates the "
            "constraints to second order",
            residual=missing,
        )
    J, bias = targets.rate(kin)
    y = _through(mech, targets, JZ, J @ a + bias, acceleration, left, "a", "/s^2")
    return in_range(v), in_range(a + c * (Z @ y))


def _through(
    mech: Mechanism, targets: Targets, JZ: Array, there: Vector, wanted: Vector | None,
    left: float, name: str, per: str,
) -> Vector:  # fmt: skip
    """The shortest y with ``J Z y + there = wanted``, or an error that states the missing part;
    without `wanted`, the least-squares solution for zero."""
    rest = -there if wanted is None else wanted - there
    U1, s, V1, _ = null_space_by_svd(JZ, manifold_rank(JZ, left))
    y: Vector = V1 @ ((U1.T @ rest) / s)
    missing = rest - JZ @ y
    if wanted is None or largest(missing) <= REACH_WORST * (1.0 + largest(wanted) + largest(rest)):
        return y
    raise InconsistentError(
        f"{mech.name}: no motion of the closed mechanism has the requested {name}: "
        f"{targets.described(missing, per)} is missing; {counted(rest.size, 'row')} requested, and "
        f"at this configuration its motions move {s.size} of them independently",
        residual=largest(missing),
    )
