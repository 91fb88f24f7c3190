"""Assembly: a configuration and a velocity that satisfy the constraints, near a guess.

Closing a mechanism is a damped Newton iteration on the scaled rows with steps of least
weighted length (Levenberg-Marquardt; the damping vanishes with the square of the error, which
keeps convergence quadratic where rows are redundant). The closed point is then slid along the
constraint manifold to a local minimum of the weighted distance from the guess, by Newton's
method on the Lagrangian reduced to the null space of G.
References: J. Nocedal and S. Wright, Numerical Optimization, chapters on nonlinear least
squares and on equality-constrained problems; docs/derivations.md, "Assembly".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, listing, number, positive, quiet, vector, whole
from holoctl.base.errors import AssemblyError, InputError
from holoctl.base.linalg import in_range, least_squares, null_space_by_svd, singular_values
from holoctl.constraints.closure import Closure
from holoctl.constraints.coupling import Coupling
from holoctl.constraints.kinds import direction
from holoctl.constraints.wrench import WrenchRows, stacked, wrench_rows
from holoctl.mechanism.mechanism import (
    Mechanism,
    check_configuration,
    check_mechanism,
    constraint_rows,
    coordinate_indices,
    row_names,
    workspace,
)
from holoctl.tree.frames import AXES
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import kinematics

__all__ = [
    "RANK",
    "ROUNDED",
    "assemble",
    "configuration_along",
    "manifold_rank",
    "nearby_configurations",
    "opposite_closures",
    "scaled_jacobian",
]

Array = NDArray[np.float64]
log = logging.getLogger(__name__)

ROUNDING = 1e-15
"""A scaled error of this size is none."""

ROUNDED = 1e-16
"""A configuration that was closed by iteration is open by so much (scaled), even if its error
happens to be zero."""

RANK, RANK_OPEN = 1e-8, 10.0
"""Smaller singular values (scaled) do not count for the rank; at a configuration that is open by
e, nor do those below the second number times sqrt(e)."""

LONGEST_STEP = 0.5
"""A closing step is at most this long (scaled, about rad)."""

EASIER, HARDER = 0.2, 10.0
"""Factors of the damping after a step that helped, and after one that did not."""

FALLING = 0.25
"""Past the tolerance closing goes on while the squared error falls to this much of it."""

LIGHTEST = 1e-6
"""Weights below this share of the largest count as it, in the metric of steps."""


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
) -> tuple[Vector, Vector]:
    """Close the mechanism: the nearest q with phi(q) = 0, and the nearest v with G v + phi_t = 0.

    "Nearest" is a local minimum of ``sum w_i d_i^2`` with d the difference from the guess (for
    q, ``pinocchio.difference``). Redundant rows are welcome. The input is never changed.

    A mechanism can close in several postures (elbows in or out, the crossed rods of a Delta
    robot with its platform turned): the guess decides, so give one on the side that is meant.

    Parameters
    ----------
    mech : Mechanism
    q_guess : (nq,) array_like, optional
        Where to start. Default: ``mech.reference``.
    v_guess : (nv,) array_like, optional
        Default: zero.
    weights : (nv,) array_like or mapping of str to float, optional
        Weight w_i >= 0 of each coordinate, 1/rad^2 or 1/m^2 (a mapping: of those named, the
        default for the others). A coordinate of weight zero moves freely; ties are broken by the
        shortest step. Default: 1 for angles, 1/L^2 for lengths, L the size of the loop.
    locked : iterable of str, optional
        Coordinates, or joints, that keep the value and rate of the guess.
    t : float, optional
        Time, s, for constraints that depend on it.
    tol : float, optional
        Largest scaled error allowed (rows divided by the size of their loop).
    max_iter : int, optional
        Newton iterations for each start.
    restarts : int, optional
        How many seeded random starts around the guess are tried where it leads nowhere.
    seed : int, optional
        Seed of those starts.

    Returns
    -------
    q : (nq,) array
    v : (nv,) array

    Raises
    ------
    InputError
        For arguments of the wrong shape, names that do not exist, negative weights.
    AssemblyError
        If no start closes the mechanism, or only with closure axes that point in opposite
        directions, or the velocity rows contradict each other. It carries the residual, the
        worst rows by name, and the best configuration found.
    """
    check_mechanism(mech)
    guess = (
        mech.reference.copy() if q_guess is None else check_configuration(mech, q_guess, "q_guess")
    )
    v0 = np.zeros(mech.nv) if v_guess is None else vector("v_guess", v_guess, mech.nv, "velocity")
    t, tol = number("t", t, "time, s"), positive("tol", tol, "scaled error")
    max_iter, restarts = whole("max_iter", max_iter, 1), whole("restarts", restarts, 0)
    seed = whole("seed", seed, 0)
    problem = _Problem(mech, guess, t, tol, max_iter, _weights(mech, weights), _free(mech, locked))
    q = _nearest(problem, _closed(problem, restarts, seed))
    return q, _nearest_velocity(problem, q, v0)


@dataclass(frozen=True)
class _Problem:
    """What the steps below share. `metric` (nf,) are the step sizes that weigh the same.

    `rows` are those that count: all, where it is None. Combinations of rows with a singular value
    below `blind` ask for no step.
    """

    mech: Mechanism
    guess: Vector
    t: float
    tol: float
    max_iter: int
    weights: Vector
    free: NDArray[np.intp]
    rows: NDArray[np.intp] | None = None
    blind: float = 1e-10

    @cached_property
    def metric(self) -> Vector:
        floor = LIGHTEST * (self.weights * self.mech.column_scale**2).max()
        scaled = np.maximum(self.weights * self.mech.column_scale**2, floor if floor > 0 else 1.0)
        scale: Vector = (self.mech.column_scale / np.sqrt(scaled / scaled.max()))[self.free]
        return scale

    def moved(self, q: Vector, step: Vector) -> Vector:
        """q after a step in the metric of the free coordinates."""
        d = np.zeros(self.mech.nv)
        d[self.free] = self.metric * step
        new: Vector = pin.normalize(self.mech.model, pin.integrate(self.mech.model, q, d))
        return new

    def scaled_rows(self, q: Vector) -> tuple[Vector, Array]:
        """Scaled error, and its Jacobian by steps in the metric."""
        _, rows = constraint_rows(self.mech, q, np.zeros(self.mech.nv), self.t)
        r = self.mech.row_scale
        error, G = r * rows.error, r[:, None] * rows.jacobian[:, self.free] * self.metric
        return (error, G) if self.rows is None else (error[self.rows], G[self.rows])


def _weights(mech: Mechanism, weights: Any) -> Vector:
    if weights is None:
        return 1.0 / mech.column_scale**2
    if isinstance(weights, Mapping):
        w = 1.0 / mech.column_scale**2
        for name, value in weights.items():
            w[coordinate_indices(mech, [name], "weights")] = number(f"weights[{name!r}]", value)
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
                f"locked: the coordinates of joint {plain(mech.model).names[j]!r} are parts of one "
                "rotation and cannot be locked singly; lock the whole joint by its name"
            )
    return np.setdiff1d(np.arange(mech.nv), indices)


# --------------------------------------------------------------------------------- closing


def _closed(p: _Problem, restarts: int, seed: int) -> Vector:
    """A closed configuration with the right polarity, from the guess or starts around it."""
    best, best_error, opposite = p.guess, np.inf, ()  # type: Vector, float, tuple[str, ...]
    polarity = _polarity_rows(p.mech)
    for start in _starts(p, restarts, seed):
        q = _newton(p, start, polarity)
        q = _newton(p, q, None)
        error = _largest(p.scaled_rows(q)[0])
        flipped = _flipped(p, q, polarity)
        if error < best_error:
            best, best_error = q, error
        if error <= p.tol and not flipped:
            return q
        if error <= p.tol:
            opposite = flipped
    raise _unassembled(p, best, best_error, opposite)


def _starts(p: _Problem, restarts: int, seed: int) -> Iterator[Vector]:
    yield p.guess
    rng = np.random.default_rng(seed)
    for i in range(restarts):
        yield p.moved(p.guess, (0.2 + 2.0 * i / restarts) * rng.normal(size=p.free.size))


def _newton(p: _Problem, q: Vector, polarity: WrenchRows | None) -> Vector:
    """Levenberg-Marquardt on the scaled rows, with push-off rows if `polarity` is given.

    With the push-off it stops once the axes agree and the rows are nearly closed; without, it
    goes on past `tol` until the error no longer falls, so that little is left but rounding.
    """
    pushing = polarity is not None
    damping = 1e-3
    error, G = _residual(p, q, polarity)
    for _ in range(p.max_iter):
        size = float(error @ error)
        if _largest(error) <= ROUNDING or (pushing and size < 1e-8):
            break
        # not below, so that rows which vanish but for rounding ask for no step
        mu = max(damping * min(size, 1.0), p.blind**2)
        step = _damped_step(G, error, mu)
        length = float(np.linalg.norm(step))
        trial = p.moved(q, step * min(1.0, LONGEST_STEP / length) if length > 0.0 else step)
        new_error, new_G = _residual(p, trial, polarity)
        new_size = float(new_error @ new_error)
        if new_size < size:
            slow = _largest(error) <= p.tol and new_size > FALLING * size
            q, error, G = trial, new_error, new_G
            damping = max(EASIER * damping, 1e-12)
            if slow:
                break
        elif _largest(error) <= p.tol or damping > 1e12 or length < 1e-15:
            break
        else:
            damping *= HARDER
    return q


def _damped_step(G: Array, error: Vector, mu: float) -> Vector:
    """argmin |G step + error|^2 + mu |step|^2."""
    n = G.shape[1]
    stacked = np.vstack([G, np.sqrt(mu) * np.eye(n)])
    return least_squares(stacked, -np.append(error, np.zeros(n)))


def _residual(p: _Problem, q: Vector, polarity: WrenchRows | None) -> tuple[Vector, Array]:
    error, G = p.scaled_rows(q)
    if polarity is None:
        return error, G
    kin = kinematics(p.mech.model, workspace(p.mech), q, np.zeros(p.mech.nv), p.t)
    axes = polarity.rows(kin)
    # cos(angle) - 1 has no slope at 180 degrees; only axes more than 60 degrees apart push
    push = np.minimum(axes.error - 0.5, 0.0)
    slope = (push < 0.0)[:, None] * axes.jacobian[:, p.free] * p.metric
    return np.concatenate([error, push]), np.vstack([G, slope])


def _polarity_rows(mech: Mechanism) -> WrenchRows | None:
    """For each closure that keeps an axis parallel: the cosine between that axis of both."""
    tables = []
    for c, name, bound in zip(mech.constraints, mech.constraint_names, mech.bound, strict=True):
        axis = c.parallel_axis if isinstance(c, Closure) else None
        if axis is not None and isinstance(bound, WrenchRows):
            cosine = direction(axis, AXES[axis], AXES[axis])
            tables.append(
                wrench_rows(mech.model, bound.frames1[0], bound.frames2[0], [cosine], name)
            )
    return stacked(tables) if tables else None


def _flipped(p: _Problem, q: Vector, polarity: WrenchRows | None) -> tuple[str, ...]:
    if polarity is None:
        return ()
    kin = kinematics(p.mech.model, workspace(p.mech), q, np.zeros(p.mech.nv), p.t)
    cosines = polarity.rows(kin).error
    return tuple(label for label, c in zip(polarity.labels, cosines, strict=True) if c < 0.0)


def opposite_closures(mech: Mechanism, q: Vector, t: float) -> tuple[str, ...]:
    """Closures whose axes point in opposite directions at q."""
    labels = _flipped(_everywhere(mech, q, t), q, _polarity_rows(mech))
    return tuple(sorted({label.rsplit(".", 1)[0] for label in labels}))


def _unassembled(p: _Problem, q: Vector, error: float, opposite: tuple[str, ...]) -> AssemblyError:
    scaled = np.abs(p.scaled_rows(q)[0])
    names = row_names(p.mech)
    worst = [(names[i], float(scaled[i])) for i in np.argsort(-scaled)[:5] if scaled[i] > p.tol]
    rows = ", ".join(f"{name} {value:.2g}" for name, value in worst)
    if opposite:
        closures = sorted({label.rsplit(".", 1)[0] for label in opposite})
        return AssemblyError(
            f"{p.mech.name}: it closes only with the axes of {listing(closures)} in opposite "
            "directions; turn one of the two frames by half a turn about an axis across it",
            residual=error, worst=worst, q=q, opposite=closures,
        )  # fmt: skip
    causes = (
        "a guess too far away, too many locked coordinates, or bars that are too long or too "
        "short to meet"
    )
    couplings = {
        name for name, c in zip(p.mech.constraint_names, p.mech.constraints, strict=True)
        if isinstance(c, Coupling)
    }  # fmt: skip
    tilted = [name for name, _ in worst[:2] if name.rpartition(".")[2] in ("rx", "ry", "rz")]
    if tilted:
        causes = f"joint axes or frames that point elsewhere (see {listing(tilted)}), or {causes}"
    if p.free.size == 0:
        causes = "every coordinate is locked"
    elif worst and all(name.rsplit(".", 1)[0] in couplings for name, _ in worst):
        causes = "couplings that contradict each other, or a locked coordinate in them"
    return AssemblyError(
        f"{p.mech.name}: no configuration closes it near the guess; the best one is off by "
        f"{error:.2g} (scaled), worst rows: {rows}. Likely causes: {causes}",
        residual=error, worst=worst, q=q,
    )  # fmt: skip


# --------------------------------------------------------------------------- nearest point


def _nearest(p: _Problem, q: Vector) -> Vector:
    """Slide along the manifold to a local minimum of the weighted distance from the guess."""
    polarity = _polarity_rows(p.mech)
    distance = _distance(p, q)
    for _ in range(min(p.max_iter, 100)):
        Z, slope, multipliers = _reduced_gradient(p, q)
        if Z.shape[1] == 0 or np.linalg.norm(slope) <= 1e-11 * (1.0 + np.sqrt(distance)):
            return q
        values, vectors = np.linalg.eigh(in_range(_reduced_hessian(p, q, Z, multipliers)))
        values = np.maximum(np.abs(values), 1e-8 * max(1.0, float(np.abs(values).max())))
        step = -Z @ (vectors @ ((vectors.T @ slope) / values))
        step *= min(1.0, LONGEST_STEP / float(np.linalg.norm(step)))
        for fraction in 0.5 ** np.arange(20):
            trial = _newton(p, p.moved(q, fraction * step), None)
            new = _distance(p, trial)
            closed = _largest(p.scaled_rows(trial)[0]) <= p.tol
            if closed and new < distance and not _flipped(p, trial, polarity):
                q, distance = trial, new
                break
        else:
            if np.linalg.norm(slope) > 1e-6 * (1.0 + np.sqrt(distance)):
                log.warning(
                    "%s: closed, but the distance to the guess is not quite minimal "
                    "(slope %.1e)", p.mech.name, float(np.linalg.norm(slope)),
                )  # fmt: skip
            return q
    return q


def _distance(p: _Problem, q: Vector) -> float:
    d = pin.difference(p.mech.model, p.guess, q)
    return float(d @ (p.weights * d)) / _weight_unit(p)


def _weight_unit(p: _Problem) -> float:
    """Weights enter relative to the largest, in scaled coordinates."""
    unit = float((p.weights * p.mech.column_scale**2).max())
    return unit if unit > 0.0 else 1.0


def _gradient(p: _Problem, q: Vector) -> Vector:
    """Derivative of half the squared distance by steps in the metric."""
    d = pin.difference(p.mech.model, p.guess, q)
    D = pin.dDifference(p.mech.model, p.guess, q, pin.ArgumentPosition.ARG1)
    g: Vector = (D.T @ (p.weights * d))[p.free] * p.metric / _weight_unit(p)
    return g


def _reduced_gradient(p: _Problem, q: Vector) -> tuple[Array, Vector, Vector]:
    error, G = p.scaled_rows(q)
    rank = manifold_rank(G, _largest(error))
    U1, s, V1, Z = null_space_by_svd(G, rank)
    g = _gradient(p, q)
    return Z, Z.T @ g, U1 @ ((V1.T @ g) / s)


def _reduced_hessian(
    p: _Problem, q: Vector, Z: Array, multipliers: Vector, h: float = 1e-5
) -> Array:
    """Second derivative of distance - multipliers . error along Z, by central differences."""

    def slope(step: Vector) -> Vector:
        x = p.moved(q, step)
        return _gradient(p, x) - p.scaled_rows(x)[1].T @ multipliers

    H = np.column_stack([(slope(h * z) - slope(-h * z)) / (2.0 * h) for z in Z.T])
    reduced = Z.T @ H
    return 0.5 * (reduced + reduced.T)


def _nearest_velocity(p: _Problem, q: Vector, v0: Vector) -> Vector:
    """argmin (v - v0)' W (v - v0) subject to G v + phi_t = 0 and locked rates kept."""
    mech, metric = p.mech, p.metric
    _, rows = constraint_rows(mech, q, v0, p.t)
    if not rows.rate.any():
        return v0.copy()
    r = mech.row_scale
    G = r[:, None] * rows.jacobian[:, p.free] * metric
    U1, s, V1, Z = null_space_by_svd(G, manifold_rank(G, _largest(r * rows.error)))
    step = -V1 @ ((U1.T @ (r * rows.rate)) / s)
    w = np.sqrt(p.weights[p.free] / _weight_unit(p)) * metric
    step += Z @ least_squares(w[:, None] * Z, -w * step, rcond=1e-12)
    v = v0.copy()
    v[p.free] += metric * step
    left = r * constraint_rows(mech, q, v, p.t)[1].rate
    size = 1.0 + float(np.abs(r * rows.rate).max())
    if not _largest(left) <= 1e-9 * size:
        names = row_names(mech)
        worst = [(names[i], float(abs(left[i]))) for i in np.argsort(-np.abs(left))[:5]]
        raise AssemblyError(
            f"{mech.name}: no velocity satisfies the constraints at this configuration with "
            f"the locked rates; worst rows: {', '.join(f'{n} {e:.2g}' for n, e in worst)}",
            residual=_largest(left), worst=worst, q=q,
        )  # fmt: skip
    return in_range(v)


# ------------------------------------------------------------------------------------ rank


def scaled_jacobian(
    mech: Mechanism, q: Vector, t: float, rows: NDArray[np.intp] | None = None
) -> tuple[Array, Vector]:
    """G in scaled rows and scaled coordinates, and the scaled error, at q."""
    _, found = constraint_rows(mech, q, np.zeros(mech.nv), t)
    r = mech.row_scale
    G, error = r[:, None] * found.jacobian * mech.column_scale, r * found.error
    return (G, error) if rows is None else (G[rows], error[rows])


def manifold_rank(G: Array, error: float) -> int:
    """Rank of a scaled matrix at a configuration closed to within `error` (scaled).

    Overconstrained loops lose rank only when closed: open by e, a vanishing singular value
    grows like sqrt(e) or e, so the threshold is `RANK_OPEN` sqrt(e), at least `RANK`, times the
    largest. Scaled rows are of order one, so it is not less than that times 1: all of them may
    vanish together.
    """
    if G.size == 0:
        return 0
    s = singular_values(G)
    threshold = max(RANK, RANK_OPEN * np.sqrt(error)) * max(float(s[0]), 1.0)
    return int(np.count_nonzero(s > threshold))


def nearby_configurations(
    mech: Mechanism,
    q: Vector,
    t: float = 0.0,
    count: int = 4,
    step: float = 0.1,
    seed: int = 0,
    rows: NDArray[np.intp] | None = None,
) -> list[Vector]:
    """Other closed configurations near a closed q, for questions about generic rank.

    Steps of about `step` (scaled) along seeded random null vectors of G, both signs, closed
    again by Newton; points that did not move are left out. Empty for a rigid mechanism. With
    `rows`, only these are asked to close.
    """
    G, error = scaled_jacobian(mech, q, t, rows)
    Z = null_space_by_svd(G, manifold_rank(G, _largest(error)))[3]
    rng = np.random.default_rng(seed)
    steps: list[Vector] = []
    for _ in range(count if Z.shape[1] else 0):
        y = rng.normal(size=Z.shape[1])
        z = step * (Z @ y) / np.linalg.norm(y)
        steps += [z, -z]

    def moved(x: Vector) -> bool:
        d = pin.difference(mech.model, q, x) / mech.column_scale
        return 0.1 * step < float(np.linalg.norm(d)) < 5.0 * step

    reached = (configuration_along(mech, q, z, t, rows) for z in steps)
    found = [x for x in reached if x is not None and moved(x)]
    if not found:
        reached = (_ahead(mech, q, z, t, rows) for z in steps)
        found = [x for x in reached if x is not None and moved(x)]
    return found


def _ahead(
    mech: Mechanism, q: Vector, z: Vector, t: float, rows: NDArray[np.intp] | None
) -> Vector | None:
    """A closed configuration that is ahead by the length of z along it, if there is one.

    Where paths cross, the rows are quadratic in a step, and Newton's method shrinks it back to q.
    So the length along z is held, by a row of its own, and the rest of the step is free.
    """
    length = float(np.linalg.norm(z))
    ahead = z / length
    p = _everywhere(mech, q, t, rows)

    def residual(x: Vector) -> tuple[Vector, Array]:
        error, G = p.scaled_rows(x)
        d = pin.difference(mech.model, q, x) / mech.column_scale
        return np.append(error, ahead @ d - length), np.vstack([G, ahead])

    x, damping = p.moved(q, z), 1e-3
    error, A = residual(x)
    for _ in range(100):
        if _largest(error) <= 1e-10 or damping > 1e12:
            break
        step = _damped_step(A, error, damping * min(1.0, float(error @ error)))
        trial = p.moved(x, step * min(1.0, 0.05 / max(float(np.linalg.norm(step)), 1e-300)))
        new_error, new_A = residual(trial)
        if new_error @ new_error < error @ error:
            x, error, A, damping = trial, new_error, new_A, max(0.2 * damping, 1e-12)
        else:
            damping *= 10.0
    return configuration_along(mech, x, np.zeros(mech.nv), t, rows)


def configuration_along(
    mech: Mechanism, q: Vector, step: Vector, t: float, rows: NDArray[np.intp] | None = None
) -> Vector | None:
    """The closed configuration next to q moved by a scaled step (nv,); None where it stays open.

    It may be q again, where the mechanism does not go along. Rows too weak to count for the rank
    do not turn it back: they may stay open by what they amount to.
    """
    p = _everywhere(mech, q, t, rows)
    x = _newton(p, p.moved(q, step), None)
    return x if _largest(p.scaled_rows(x)[0]) <= p.tol else None


def _everywhere(
    mech: Mechanism, q: Vector, t: float, rows: NDArray[np.intp] | None = None
) -> _Problem:
    """All coordinates are free and weigh the same."""
    everything, weights = np.arange(mech.nv), 1.0 / mech.column_scale**2
    return _Problem(mech, q, t, 1e-9, 50, weights, everything, rows, RANK)


def _largest(x: Vector) -> float:
    return float(np.abs(x).max()) if x.size else 0.0
