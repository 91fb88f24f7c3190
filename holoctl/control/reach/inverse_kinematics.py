"""Inverse kinematics: the closed state with frames where they are asked to be.

    phi(q) = 0,   X(q) = X_ref,   lower <= x(q) <= upper,   q nearest to the posture
    G v + phi_t = 0,    J v = twist          G a + drift = 0,    J a + Jdot v = acceleration

The way goes from the closed guess, in short steps on the constraints, straight to the poses; what
they leave open slides to the nearest place; Newton's method does the last digits. v and a are two
linear problems.
Reference: docs/task-space.md, "Inverse kinematics".
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
from holoctl.mechanism.bound_limits import BoundLimits, applicable, bound_limits
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.default_limits import limits_of
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.limits import Limits, checked_limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import constraint_rows
from holoctl.tree.kinematics import Kinematics

__all__ = ["inverse_kinematics"]

REACH_DECIDED = 3
"""So many times which rows decide the motion is decided anew where a way ends."""

REACH_WORST = 1e-9  # scaled
"""Rates and accelerations may miss what is asked for by this share of 1 + the largest."""


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
    limits: Any = "model",
    t: float = 0.0,
    tol: float = 1e-9,
    restarts: int = 0,
    seed: int = 0,
) -> tuple[Vector, Vector, Vector]:
    """The closed state with one frame, or several, at given poses: q, and v and a that go with it.

    It is found from the guess: by short steps along the constraints, the frames straight towards
    their poses. So it is on the branch of the guess (elbow, assembly mode) where this way leads to
    the pose, and near it otherwise; no branch is promised. What the poses leave open is decided
    by the least distance from the posture. For loops that run in time, take `TaskSpaceControl`.

    Parameters
    ----------
    mech : Mechanism
    poses : mapping, or list of pairs
        ``{frame: pose}``. A frame is the name of a joint, body or frame, a pair (name, pin.SE3), or
        a `FrameTask`, which has its own axes. A list of pairs (frame, pose) takes what cannot be
        the key of a mapping. A pose is a `pin.SE3`, or a position (m) along the linear axes. Other
        tasks may be asked for, with their values: `PostureTask`.
    q_guess : (nq,) array_like, optional
        Where to start; it is closed first, as by `assemble`. Default: ``mech.reference``.
    v : mapping, list or (rows,) array_like, optional
        How the frames move: of each the rates of its rows, m/s and rad/s, as a task has them:
        velocity of the frame relative to `relative_to`, along the axes of that, at the origin of
        the frame. By the same keys, by names, or an entry for each pose in their order; of one
        pose the rates themselves. A `pin.Motion` along these axes serves too: of it the rows are
        read. Those of frames that are left out are zero. Default: all zero;
        where constraints that move with time forbid that, as nearly as can be.
    a : mapping, list or (rows,) array_like, optional
        The derivatives of these rates, likewise. Default: all zero; where more rows than motions
        forbid that, as nearly as can be.
    axes : str or mapping of name to str, optional
        Any of ``"x y z rx ry rz"``: the rows of frames that are given by name. Default: all six for
        a `pin.SE3`, ``"x y z"`` for a position. One angular axis is the angle about it, two leave
        open the turn about the third; see `FrameTask`.
    relative_to : str or (str, pin.SE3), optional
        In what poses are given, of frames given by name: ``"universe"``, the world, or a frame.
    posture : (nq,) array_like, optional
        The configuration that q shall be near to, as far as the poses leave it open; distance in
        scaled coordinates: rad, and m over the size of the loop. Default: `q_guess`.
    limits : "model", Limits or None, optional
        Positions of joints, cut ones too, that q keeps. Default: those of ``hc.limits_of(mech)``.
        Limits of efforts and rates mean nothing here. None: no limits.
    t : float, optional
        Time, s, for constraints that depend on it.
    tol : float, optional
        What may be left of the poses, scaled: rad, and m over the size of the mechanism.
    restarts : int, optional
        Where the way from the guess ends before the pose, so many seeded random starts around it
        are tried: they may be on other branches, so by default there are none.
    seed : int, optional
        Of these.

    Returns
    -------
    q : (nq,) array
        Closed as by `assemble`; positions are within their limits.
    v : (nv,) array
        ``G v + phi_t = 0``, ``J v`` as given; of all such the shortest in scaled coordinates.
    a : (nv,) array
        ``G a + drift = 0``, ``J a + Jdot v`` as given; the shortest likewise.

    Raises
    ------
    InputError
        For frames that do not exist, what is no pose, wrong shapes, numbers that are not finite.
    AssemblyError
        If the guess does not close, or the poses are not reached: it says how near they are, where
        the mechanism could not go on, and why; ``q`` is the nearest closed configuration found,
        ``residual`` what is left there (scaled), ``worst`` the rows.
    LimitError
        If limits of positions are what stands against it; by name, with how near it comes.
    InconsistentError
        If no motion of the closed mechanism has the rates `v`, or the accelerations `a`; with what
        is missing.

    Notes
    -----
    A least distance that is not zero is a local one. Rows that follow from the constraints, such
    as those across the plane of a planar mechanism, are welcome where they are met.

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
    for _ in range(REACH_DECIDED):
        meant = toleranced_rows(mech, start, t)
        p = replace(everywhere(mech, start, t), rows=None if meant is None else meant.rows)
        found = _reached(p, targets, bounds, start, tol)
        if isinstance(found, Shortfall):
            found = _from_elsewhere(p, targets, bounds, found, tol, restarts, seed)
        if isinstance(found, Shortfall):
            raise out_of_reach(p, targets, bounds, found)
        q = _settled(p, targets, bounds, wanted, found, tol)
        off = largest(everywhere(mech, q, t).scaled_rows(q)[0])
        if meant is None or off <= mech.tolerance:
            return q, *_motion(p, targets, q, twist, acceleration)
        start = assemble(mech, q, t=t)[0]  # rows that were left out as rounding open on the way
    raise AssemblyError(
        f"{mech.name}: where the poses are met, rows that repeat others open by {off:.2g} "
        f"(scaled), more than the tolerance of the geometry, {mech.tolerance:g}; hc.mobility tells "
        "more",
        residual=off, q=q,
    )  # fmt: skip


# --------------------------------------------------------------------------------------- the pose


def _closed(mech: Mechanism, inside: Vector, guess: Vector, t: float) -> Vector:
    """The guess closed: with its positions within their limits at first, if that closes."""
    try:
        return assemble(mech, inside, t=t)[0]
    except AssemblyError:
        if np.array_equal(inside, guess):
            raise
        return assemble(mech, guess, t=t)[0]


def _bounds_of(mech: Mechanism, limits: Any) -> PositionBounds:
    """The limits of positions, scaled."""
    if limits is None:
        return no_bounds(mech.nv)
    if isinstance(limits, str) and limits == "model":
        given = limits_of(mech)
    else:
        given = applicable(mech, checked_limits(limits, "inverse_kinematics"))
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
    """q with coordinates of the tree that are beyond their limits put there."""
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
    """A closed q with the frames there, within the limits; or where the way to it ended."""
    if bounds.lower.size and largest(bounds.excess(kinematics_at(p, start))) > WITHIN_LIMIT:
        inside = _inward(p, bounds, start)
        if isinstance(inside, Descent):
            return Shortfall(start, inside, inside=False)
        start = inside
    way = least(p, targets.left, bounds, start)
    q = _there(p, targets, bounds, way, tol)
    if q is not None or not way.stopped_by:
        return Shortfall(start, way) if q is None else q
    none = no_bounds(p.mech.nv)  # a limit in the way, or one turn too many
    free = _there(p, targets, none, least(p, targets.left, none, start), tol)
    if free is None:
        return Shortfall(start, way)
    q = _turned_back(p, bounds, free)
    if largest(bounds.excess(kinematics_at(p, q))) <= WITHIN_LIMIT:
        return q
    inside = _inward(replace(p, also=targets.left), bounds, free)
    return Shortfall(start, way, beyond=free) if isinstance(inside, Descent) else inside


def _inward(p: Problem, bounds: PositionBounds, q: Vector) -> Vector | Descent:
    """A closed configuration near q that is within the limits; or where the way to it ended."""
    way = least(p, _outside(bounds), bounds, q)
    inside = closed_within(p, bounds, way.q)
    return way if inside is None else inside


def _there(
    p: Problem, targets: Targets, bounds: PositionBounds, way: Descent, tol: float
) -> Vector | None:
    """The end of a way, with every digit, if it is the pose."""
    if largest(way.left) > max(REACH_STALLED, tol):
        return None
    q = closed_within(replace(p, also=targets.left), bounds, way.q)
    for x in (way.q,) if q is None else (q, way.q):
        if largest(targets.left(kinematics_at(p, x))[0]) <= tol:
            return x
    return None


def _turned_back(p: Problem, bounds: PositionBounds, q: Vector) -> Vector:
    """The same place with joints that turned past their limits back by whole turns, if it is."""
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
    """The same from random starts around the guess; the nearest end of all if none leads there."""
    rng = np.random.default_rng(seed)
    for i in range(restarts):
        step = (0.2 + 2.0 * i / restarts) * rng.normal(size=p.free.size)
        try:
            start, _ = assemble(p.mech, bounds.put(p.moved(p.guess, step)), t=p.t, restarts=0)
        except AssemblyError:
            continue
        start = newton(p, start, None)  # rounded geometry may have closed by other rows
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
    """Of all q with the frames there one that is nearest to the posture, with every digit."""
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
    """Rows that are what positions are beyond their limits."""

    def rows(kin: Kinematics) -> tuple[Vector, Array]:
        over = bounds.excess(kin)
        return over, (over != 0.0)[:, None] * bounds.at(kin)[1]

    return rows


# ------------------------------------------------------------------------------------- its motion


def _motion(
    p: Problem, targets: Targets, q: Vector, twist: Vector | None, acceleration: Vector | None
) -> tuple[Vector, Vector]:
    """The shortest v and a that are closed and move the frames as asked."""
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
            "(scaled) is missing; the configuration is singular, and this velocity leads away",
            residual=missing,
        )
    J, bias = targets.rate(kin)
    y = _through(mech, targets, JZ, J @ a + bias, acceleration, left, "a", "/s^2")
    return in_range(v), in_range(a + c * (Z @ y))


def _through(
    mech: Mechanism, targets: Targets, JZ: Array, there: Vector, asked: Vector | None, left: float,
    name: str, per: str,
) -> Vector:  # fmt: skip
    """The shortest y with ``J Z y + there = asked``, or an error that says how much of it is
    missing; where nothing is asked for, zero as nearly as can be."""
    rest = -there if asked is None else asked - there
    U1, s, V1, _ = null_space_by_svd(JZ, manifold_rank(JZ, left))
    y: Vector = V1 @ ((U1.T @ rest) / s)
    missing = rest - JZ @ y
    if asked is None or largest(missing) <= REACH_WORST * (1.0 + largest(asked) + largest(rest)):
        return y
    raise InconsistentError(
        f"{mech.name}: no motion of the closed mechanism has the {name} that is asked for: "
        f"{targets.told(missing, per)} is missing; {counted(rest.size, 'row')} asked for, and at "
        f"this configuration its motions move {s.size} of them independently",
        residual=largest(missing),
    )
