"""Assembly: a configuration and a velocity that satisfy the constraints, near a guess.

Newton's method closes a point between the guess and the constraint manifold, or the guess itself,
or random starts around it. A second iteration moves the closed point along the manifold to the one
nearest to the guess, and the velocity is projected onto the constraints there.
Derivation: docs/derivations.md, "Assembly".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import (
    Vector,
    flag,
    listing,
    number,
    positive,
    quiet,
    quoted,
    vector,
    whole,
)
from holoctl.base.errors import AssemblyError, InputError, LimitError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import CLOSURE_LIMIT, SAME_LEAST
from holoctl.closing.axis_sign import axis_sign_rows, flipped
from holoctl.closing.closed_state import ClosedState
from holoctl.closing.damped_start import damped_start
from holoctl.closing.least_squares import distance, least_squares_point
from holoctl.closing.nearest_state import nearest_configuration, nearest_velocity
from holoctl.closing.newton import Problem, at_rest, newton
from holoctl.closing.rank import rank_within
from holoctl.closing.toleranced_rows import LATENT_REACH, closed_by_kept_rows, kept_rows
from holoctl.constraints.closure import Closure
from holoctl.constraints.constraint_protocol import constraint_of
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.rod import Rod
from holoctl.mechanism.checks import check_configuration, check_mechanism, coordinate_indices
from holoctl.mechanism.limited_coordinates import LimitViolation, beyond_limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frozen_model import plain

__all__ = ["assemble"]

SAME_LEASTS = 12
"""No more starts are made after this number of starts has ended at the same least error."""


MEANT_STARTS = 6
"""Random starts from which rounded geometry is closed."""


log = logging.getLogger(__name__)


@quiet
def assemble(
    mech: Mechanism,
    q_guess: Any = None,
    v_guess: Any = None,
    *,
    weights: Any = None,
    locked: Iterable[str] = (),
    t: float = 0.0,
    tol: float = 1e-12,
    max_iter: int = 200,
    restarts: int = 20,
    seed: int = 0,
    within_limits: bool = False,
) -> ClosedState:
    """Close the mechanism: the nearest q with phi(q) = 0, and the nearest v with G v + phi_t = 0.

    "Nearest" is a local minimum of ``sum w_i d_i^2`` with d the difference from the guess (for q,
    ``pinocchio.difference``). Rows may be redundant. The input is never changed.

    If ``mech.tolerance`` is not 0 and the geometry turns out to be rounded, the rows that determine
    the motion close exactly, and those that depend on them up to rounding stay open by no more than
    the tolerance; v then satisfies the former. Exact geometry, and geometry that does not close in
    this way to within the tolerance, is closed as with tolerance 0.

    A mechanism can close in several postures (elbows in or out, the crossed rods of a Delta robot
    with its platform turned): the guess decides, so give one near the intended posture.

    Parameters
    ----------
    mech : Mechanism
    q_guess : (nq,) array_like, optional
        The start. Default: ``mech.reference``.
    v_guess : (nv,) array_like, optional
        Default: zero.
    weights : (nv,) array_like or mapping of str to float, optional
        Weight w_i >= 0 of each coordinate, 1/rad^2 or 1/m^2 (a mapping gives those of the named
        coordinates; the others have the default). A coordinate of weight zero moves freely; ties
        are broken by the shortest step. Default: 1 for angles, 1/L^2 for lengths, L the size of the
        loop.
    locked : iterable of str, optional
        Coordinates, or joints, that keep the value and rate of the guess.
    t : float, optional
        Time, s, for constraints that depend on it.
    tol : float, optional
        Largest scaled error allowed (rows divided by the size of their loop); with rounded
        geometry, of the rows that determine the motion.
    max_iter : int, optional
        Newton iterations for each start.
    restarts : int, optional
        The number of seeded random starts around the guess that are tried if the guess itself
        fails; fewer if many starts end at the same least error.
    seed : int, optional
        Seed of those starts.
    within_limits : bool, optional
        Whether all positions, also of cut joints, must be within ``hc.limits_of(mech)``. A
        coordinate that would be beyond its limit is held at the limit; if the mechanism then does
        not close, the branches reached from the random starts are tried, so q may be on another
        branch. Default: limits are ignored.

    Returns
    -------
    ClosedState
        ``q, v``, or with names: ``.q``, ``.v``.

    Raises
    ------
    InputError
        For arguments of the wrong shape, names that do not exist, negative weights.
    AssemblyError
        If no start closes the mechanism, or only with closure axes that point in opposite
        directions, or the velocity rows contradict each other. It carries the residual, the
        worst rows by name, and the best configuration found.
    LimitError
        With `within_limits`, if no configuration found is within the limits. It carries their
        names, and the configuration that is nearest without limits.

    See Also
    --------
    constraint_errors : the errors of a state.
    corrected : small errors, at every step of a loop.
    assembly_modes : all postures that were found.
    inverse_kinematics : the closed state for the pose of a frame.
    equilibrium : a closed configuration at rest, with the efforts that hold it.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech, [2.2, -1.4, 0.9, 1.4], locked=["motor_left", "motor_right"])
    >>> q.round(3).tolist()
    [2.2, -1.443, 0.9, 1.459]
    """
    check_mechanism(mech)
    guess = (
        mech.reference.copy() if q_guess is None else check_configuration(mech, q_guess, "q_guess")
    )
    v0 = np.zeros(mech.nv) if v_guess is None else vector("v_guess", v_guess, mech.nv, "velocity")
    t, tol = number("t", t, "time, s"), positive("tol", tol, "scaled error")
    max_iter, restarts = whole("max_iter", max_iter, 1), whole("restarts", restarts, 0)
    seed = whole("seed", seed, 0)
    if flag("assemble: within_limits", within_limits):
        return _within_limits(mech, guess, v0, restarts, seed, {
            "weights": weights, "locked": tuple(locked), "t": t, "tol": tol, "max_iter": max_iter,
        })  # fmt: skip
    problem = Problem(mech, guess, t, tol, max_iter, _weights(mech, weights), _free(mech, locked))
    between = damped_start(problem, axis_sign_rows(mech))
    if (as_meant := _as_meant(problem, between, restarts, seed)) is not None:
        held, q = as_meant
        return ClosedState(q, nearest_velocity(held, q, v0))
    q = nearest_configuration(problem, _closed(problem, between, restarts, seed))
    _warn_if_bent(problem, q)
    return ClosedState(q, nearest_velocity(problem, q, v0))


# ------------------------------------------------------------------------- weights and locks


def _weights(mech: Mechanism, weights: Any) -> Vector:
    if weights is None:
        return 1.0 / mech.column_scale**2
    if isinstance(weights, Mapping):
        w = 1.0 / mech.column_scale**2
        for name, value in weights.items():
            w[coordinate_indices(mech, [name], "weights")] = number(
                f"weights[{quoted(name)}]", value
            )
    else:
        w = vector("weights", weights, mech.nv, "one weight a coordinate")
    if (w < 0.0).any():
        name = mech.coordinate_names[int(np.argmin(w))]
        raise InputError(f"weights must not be negative; that of {name!r} is {w.min()}")
    return w


def _free(mech: Mechanism, locked: Iterable[str]) -> NDArray[np.intp]:
    indices = coordinate_indices(mech, locked, "locked")
    joints = mech.joint_of
    for j in np.unique(joints[indices]).tolist():
        count = int(np.count_nonzero(joints[indices] == j))
        nq, nv = plain(mech.model).nqs[j], plain(mech.model).nvs[j]
        if nq != nv and count < nv:
            raise InputError(
                f"locked: the coordinates of joint {plain(mech.model).names[j]!r} belong to one "
                "rotation and cannot be locked singly; lock the whole joint by its name"
            )
    return np.setdiff1d(np.arange(mech.nv), indices)


# ---------------------------------------------------------------------------------- closing


def _closed(p: Problem, between: Vector, restarts: int, seed: int) -> Vector:
    """A closed configuration whose axes point in the right direction, from `between`, the guess or
    random starts."""
    best, best_error, opposite = p.guess, np.inf, ()  # type: Vector, float, tuple[str, ...]
    axis_signs = axis_sign_rows(p.mech)
    ends: list[tuple[float, bool]] = []
    for start in _starts(p, between, restarts, seed):
        q = start if axis_signs is None else newton(p, start, axis_signs)
        q = newton(p, q, None)
        errors, G = p.scaled_rows(q)
        error = largest(errors)
        against = flipped(p.mech, q, p.t, axis_signs)
        if error < best_error:
            best, best_error = q, error
        if error <= p.tol and not against:
            return q
        if error <= p.tol:
            opposite = against
        ends.append((float(np.linalg.norm(errors)), at_rest(errors, G)))
        if _hopeless(ends):
            break
    # the message must describe the point of least error, not an intermediate one
    if best_error > p.tol:
        best = newton(p, best, None, patient=True)
        best_error = largest(p.scaled_rows(best)[0])
        if best_error <= p.tol:
            opposite = flipped(p.mech, best, p.t, axis_signs)
            if not opposite:
                return best
    raise _unassembled(p, best, best_error, opposite)


def _as_meant(
    p: Problem, between: Vector, restarts: int, seed: int
) -> tuple[Problem, Vector] | None:
    """The problem with the rows that determine the motion of rounded geometry, and its solution;
    None if the geometry is exact, or if no start closes to within the tolerance."""
    tau = p.mech.tolerance
    if tau == 0.0 or p.mech.row_scale.size == 0:
        return None
    axis_signs = axis_sign_rows(p.mech)
    for i, start in enumerate(_starts(p, between, min(restarts, MEANT_STARTS), seed)):
        q, error = least_squares_point(p, start, tau)
        if axis_signs is not None and flipped(p.mech, q, p.t, axis_signs):
            q, error = least_squares_point(p, newton(p, start, axis_signs), tau)
        if error > tau or flipped(p.mech, q, p.t, axis_signs):
            continue
        meant = kept_rows(p, q, tau, p.guess)
        if meant is None:
            return None
        # far from the guess, a rigid structure may close somewhere by chance
        if i == 0 or start is p.guess or (meant.rank < p.mech.nv and meant.latent.size == 0):
            return closed_by_kept_rows(p, meant)
    return None


def _within_limits(
    mech: Mechanism, guess: Vector, v0: Vector, restarts: int, seed: int, options: dict[str, Any]
) -> ClosedState:
    """`assemble` with positions within their limits."""
    first, v = assemble(mech, guess, v0, restarts=restarts, seed=seed, **options)
    if not (outside := beyond_limits(mech, first, options["t"])):
        return ClosedState(first, v)
    tried = _held_at_limits(mech, guess, outside, options)
    rng = np.random.default_rng(seed)
    for i in range(restarts + 1):
        if tried is not None and not beyond_limits(mech, tried, options["t"]):
            return assemble(mech, tried, v0, restarts=0, **options)
        d = (0.2 + 2.0 * i / max(restarts, 1)) * mech.column_scale * rng.normal(size=mech.nv)
        d[np.setdiff1d(np.arange(mech.nv), _free(mech, options["locked"]))] = 0.0
        start = pin.normalize(mech.model, pin.integrate(mech.model, guess, d))
        try:
            start, _ = assemble(mech, start, restarts=0, **options)
        except AssemblyError:
            tried = None
            continue
        tried = _held_at_limits(mech, start, beyond_limits(mech, start, options["t"]), options)
    raise LimitError(
        f"{mech.name}: it closes, but no configuration was found within the limits of its joints; "
        f"at the nearest one {'; '.join(map(str, outside[:5]))}",
        names=[f"{one.name}.position" for one in outside], q=first,
    )  # fmt: skip


def _held_at_limits(
    mech: Mechanism, guess: Vector, outside: tuple[LimitViolation, ...], options: dict[str, Any]
) -> Vector | None:
    """A closed configuration with coordinates held at limits that they would exceed; None if the
    mechanism does not close in this way."""
    start, held = guess.copy(), list[str](options["locked"])
    while outside:
        new = [x for x in outside if x.place >= 0 and mech.coordinate_names[x.column] not in held]
        if not new:
            return None
        for x in new:
            start[x.place] = min(max(x.position, x.lower), x.upper)
            held.append(mech.coordinate_names[x.column])
        try:
            q, _ = assemble(mech, start, restarts=0, **(options | {"locked": held}))
        except AssemblyError:
            return None
        outside, guess = beyond_limits(mech, q, options["t"]), q
    return guess


def _hopeless(ends: list[tuple[float, bool]]) -> bool:
    """Whether many starts have ended at rest at the same error, and none at a smaller one."""
    limit = (1.0 + SAME_LEAST) * min(size for size, _ in ends)
    return sum(resting and size <= limit for size, resting in ends) >= SAME_LEASTS


def _warn_if_bent(p: Problem, q: Vector) -> None:
    """Log a warning if a mechanism that does not close near the guess is closed far away and rigid
    there."""
    mech, tau = p.mech, p.mech.tolerance
    if tau == 0.0 or p.free.size < mech.nv or distance(mech, p.guess, q) <= LATENT_REACH:
        return
    if mech.row_scale.size > rank_within(p.scaled_rows(q)[1], tau) == mech.nv:
        log.warning(
            "%s: near the guess it does not close to within its tolerance, %g; it closes %.2g away "
            "(scaled), where it cannot move; hc.mobility reports whether that is rounding",
            mech.name, tau, distance(mech, p.guess, q),
        )  # fmt: skip


def _starts(p: Problem, between: Vector, restarts: int, seed: int) -> Iterator[Vector]:
    yield between
    if between is not p.guess:
        yield p.guess
    rng = np.random.default_rng(seed)
    for i in range(restarts):
        yield p.moved(p.guess, (0.2 + 2.0 * i / restarts) * rng.normal(size=p.free.size))


def _unassembled(p: Problem, q: Vector, error: float, opposite: tuple[str, ...]) -> AssemblyError:
    scaled = np.abs(p.scaled_rows(q)[0])
    names, scale = p.mech.row_names, p.mech.row_scale
    far = [i for i in np.argsort(-scaled)[:5] if scaled[i] > p.tol]
    worst = [(names[i], float(scaled[i])) for i in far]
    lengths = _lengths(p.mech)
    rows = ", ".join(
        f"{names[i]} {scaled[i]:.2g}"
        + (f" ({scaled[i] / scale[i]:.2g} m)" if names[i] in lengths else "")
        for i in far
    )
    if opposite:
        closures = sorted({constraint_of(label) for label in opposite})
        return AssemblyError(
            f"{p.mech.name}: it closes only with the axes of {listing(closures)} in opposite "
            "directions; rotate one of the two frames by half a turn about an axis perpendicular "
            "to the joint axis",
            residual=error, worst=worst, q=q, opposite=closures,
        )  # fmt: skip
    return AssemblyError(
        f"{p.mech.name}: no configuration closes it near the guess; the best one is off by "
        f"{error:.2g} (scaled), worst rows: {rows}. Likely causes: {_causes(p, error, worst)}",
        residual=error, worst=worst, q=q,
    )  # fmt: skip


def _lengths(mech: Mechanism) -> set[str]:
    """The rows of the library's constraints whose error is a length."""
    kinds = {name: type(c) for name, c in zip(mech.constraint_names, mech.constraints, strict=True)}
    return {
        row for row in mech.row_names
        if kinds.get(constraint_of(row)) in (Closure, Rod)
        and row.rpartition(".")[2] in ("x", "y", "z", "length")
    }  # fmt: skip


def _causes(p: Problem, error: float, worst: list[tuple[str, float]]) -> str:
    """Why the mechanism does not close, the likeliest cause first."""
    if p.free.size == 0:
        return "every coordinate is locked"
    couplings = {
        name for name, c in zip(p.mech.constraint_names, p.mech.constraints, strict=True)
        if isinstance(c, Coupling)
    }  # fmt: skip
    if worst and all(constraint_of(name) in couplings for name, _ in worst):
        return "couplings that contradict each other, or a locked coordinate in them"
    causes = list[str]()
    if p.free.size < p.mech.nv:
        causes.append(
            "locked coordinates that contradict each other (leave one free, and see where it goes)"
        )
    if error < CLOSURE_LIMIT:
        causes.append(
            f"geometry that is rounded by more than its tolerance, {p.mech.tolerance:g} "
            "(hc.mobility reports a sufficient one)"
        )
    if tilted := [name for name, _ in worst[:2] if name.rpartition(".")[2] in ("rx", "ry", "rz")]:
        causes.append(f"joint axes or frames with wrong directions (see {listing(tilted)})")
    causes += ["a guess too far away", "bars that are too long or too short to meet"]
    return ", ".join(causes) + ", or a frame in the wrong place"
