"""Repaired geometry: the least displacements of joints and frames that make rounded ones exact.

    U_k' (phi(q_k) + A_k d) = 0,  |d| least        k: along the motion; U_k: left null space of G'

The redundant combinations of rows must close everywhere along the motion. Gauss-Newton: all q_k
move to their least-squares points after each step, and directions of the stacked rows count if
their singular values are above the remaining error.
Derivation: docs/derivations.md, "Repaired geometry".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, quiet, whole
from holoctl.base.errors import AssemblyError, InputError
from holoctl.base.linalg import in_range, largest
from holoctl.base.tolerances import CLOSED_ALREADY, GEOMETRY_OF_FILES, ROUNDED, ROUNDING
from holoctl.closing.assembly import assemble
from holoctl.closing.least_squares import distance, least_squares_point
from holoctl.closing.newton import everywhere, newton
from holoctl.closing.placement_rows import Placements, placements_of, scaled_rows_by_placement
from holoctl.closing.random_paths import random_paths
from holoctl.closing.rank import manifold_rank, rank_within, scaled_jacobian
from holoctl.closing.toleranced_rows import LATENT_REACH, kept_rows
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.description import checked_tolerance
from holoctl.mechanism.frame_displacements import Move, moved
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["RepairedGeometry", "repaired_geometry"]

FEWEST_ON_PATHS = 6
"""With fewer configurations the motion is unknown."""

FRESH = 1000
"""Added to the seed for the configurations of the final check."""

SNAP_CUT = (1e3, 1e-9)  # a ratio; scaled
"""Directions of moves count if their singular value is above the first times the remaining error,
and above the second: smaller ones are errors of slopes at geometry that is not exact yet."""

SNAP_ASTRAY = 10.0
"""Largest error after a step relative to that before one of the last three steps, and largest move
relative to the tolerance: if conditions are quadratic, the error rises before it falls."""

SNAP_STEPS, MOST_STEPS_ASTRAY, SNAP_ROUNDS = 60, 8, 3
"""Most steps; most steps in a row without progress; how often configurations are added."""

SNAPPED = 1e-14  # scaled
"""Geometry is exact if no row is open by more."""

BARELY_MOVED = 1e-15  # scaled
"""A smaller move is rounding."""


@dataclass(frozen=True, eq=False)
class RepairedGeometry:
    """A mechanism with exact geometry; `print` it for a table of the moves.

    Attributes
    ----------
    mech : Mechanism
        Exact, with ``tolerance`` 0.
    moves : tuple of Move
        Joints and frames of constraints, each with its translation (m) and rotation vector (rad) in
        the frame's own axes; the largest move, in units of its loop, comes first. Empty if the
        geometry was exact.
    error_before, error_after : float
        Largest scaled error of a row along the motion, at least-squares solutions of all rows.
    tolerance : float
        The given tolerance of the geometry.

    See Also
    --------
    repaired_geometry : returns it.
    results.Move : one displacement.
    mobility : reports the rounding.

    Examples
    --------
    >>> import dataclasses, pinocchio as pin, holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> model = mech.model.copy()
    >>> model.jointPlacements[2].rotation = pin.utils.rotate("x", 3e-5)
    >>> repaired = hc.repaired_geometry(dataclasses.replace(mech, model=model))
    >>> repaired.error_before > 1e-6, repaired.error_after < 1e-9
    (True, True)
    """

    mech: Mechanism
    moves: tuple[Move, ...]
    error_before: float
    error_after: float
    tolerance: float

    def __str__(self) -> str:
        if not self.moves:
            return f"{self.mech.name}: exact already, no moves (error {self.error_after:.1g})"
        width = max(len("joint or frame"), *(len(move.name) for move in self.moves))
        rows = [
            f"  {move.name:<{width}}  {np.linalg.norm(move.translation):9.2g}  "
            f"{np.linalg.norm(move.rotation):11.2g}"
            for move in self.moves
        ]
        return "\n".join([
            f"{self.mech.name}: exact with {len(self.moves)} joints and frames moved",
            f"largest error along the motion: {self.error_before:.1g} before, "
            f"{self.error_after:.1g} after, of the size of its loop",
            "",
            f"  {'joint or frame':<{width}}   moved, m  turned, rad",
            *rows,
        ])  # fmt: skip


@quiet
def repaired_geometry(
    mech: Mechanism, q: Any = None, *, tolerance: Any = None, seed: int = 0
) -> RepairedGeometry:
    """Make rounded geometry exact: nearly redundant rows become exactly redundant.

    Axes and points move by the least amount, in units of their loops, with which all rows close
    together everywhere along the motion: the placements of all joints in their parents, and the
    frames of `Closure`, `Rod` and `Contact`. Other constraints do not change, and must hold.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like, optional
        A configuration near the usual closed one, at which paths start. Default:
        ``mech.reference``.
    tolerance : float, optional
        Tolerance of the geometry, scaled. Default: ``mech.tolerance``, or if that is 0, 1e-4 as for
        files.
    seed : int, optional
        Seed of the paths.

    Returns
    -------
    RepairedGeometry
        Its mechanism has ``tolerance`` 0.

    Raises
    ------
    InputError
        For arguments of the wrong kind.
    AssemblyError
        If the mechanism does not close to within the tolerance, and if no geometry within the
        tolerance is exact: then parts do not fit, which is not rounding. It carries the residual
        and the worst rows.

    See Also
    --------
    mobility : reports rounding.
    results.Move : one displacement.
    load : the tolerance of files.

    Notes
    -----
    Exactness is checked at configurations that were not used, on longer paths. Rows that are
    redundant to within the tolerance become redundant. Constraints that depend on time are repaired
    at t = 0. Constraints that are switched off (``mech.parked``) are ignored, and neither move nor
    become exact: switch them on first.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> hc.repaired_geometry(mech).moves
    ()
    """
    check_mechanism(mech)
    tau = mech.tolerance or GEOMETRY_OF_FILES
    if tolerance is not None and (tau := checked_tolerance(tolerance, "repaired_geometry")) == 0.0:
        raise InputError(
            "repaired_geometry: with tolerance=0 the geometry is exact by definition; "
            "give a tolerance above 0"
        )
    seed = whole("seed", seed, 0)
    exact = replace(mech, tolerance=0.0) if mech.tolerance else mech
    if mech.row_scale.size == 0:
        return RepairedGeometry(exact, (), 0.0, 0.0, tau)
    start, _ = assemble(replace(mech, tolerance=tau), q)
    p = everywhere(mech, start, 0.0)
    start, _ = least_squares_point(p, start, tau)
    if kept_rows(p, start, tau) is None:
        error, G = largest(p.scaled_rows(newton(p, start, None))[0]), p.scaled_rows(start)[1]
        guess = mech.reference if q is None else np.asarray(q, dtype=float)
        gone = distance(mech, guess, start)
        if gone > LATENT_REACH and rank_within(G, tau) == mech.nv:
            raise AssemblyError(
                f"{mech.name}: it does not close near q to within {tau:g}; it closes exactly at a "
                f"posture {gone:.2g} away (scaled) where it cannot move. Give a q nearer to that "
                "posture, if it is meant; else parts do not fit, or give a larger tolerance= "
                "(hc.mobility reports a sufficient one)",
                residual=largest(p.scaled_rows(guess)[0]), worst=[], q=start,
            )  # fmt: skip
        return RepairedGeometry(exact, (), error, error, tau)
    return _GeometryRepair(exact, start, tau, seed, placements_of(exact)).result()


@dataclass(frozen=True, eq=False)
class _Misfit:
    """The remaining error at configurations of one rank, and its derivative by the placements."""

    configurations: tuple[Vector, ...]
    errors: Array  # (N, m), scaled
    open: Vector  # U_k' phi_k, one after the other, over sqrt(N)
    slopes: Array  # U_k' A_k likewise

    @property
    def size(self) -> float:
        return float(np.linalg.norm(self.open))

    @property
    def worst(self) -> Vector:
        """The configuration with the largest error of a row."""
        return self.configurations[int(np.argmax(np.abs(self.errors).max(axis=1)))]

    @property
    def error(self) -> float:
        return largest(self.errors.ravel())


@dataclass(frozen=True, eq=False)
class _GeometryRepair:
    mech: Mechanism
    start: Vector
    tau: float
    seed: int
    places: Placements

    def result(self) -> RepairedGeometry:
        rank, qs = self._along(self.mech, self.start, 1, self.seed)
        before = self._misfit(self.mech, qs, rank)
        if rank < self.mech.nv and len(qs) < FEWEST_ON_PATHS:
            raise self._refused(
                self.mech, qs[0], "paths along its motions end where they start: a singular "
                "configuration, or rows that constrain the motion although they are redundant to "
                "first order",
            )  # fmt: skip
        mech, worst = self.mech, qs[0]
        for i in range(1, SNAP_ROUNDS + 1):
            d, fit = self._fitted(before, rank)
            self._check_size(d, fit)
            if fit.error > CLOSED_ALREADY:
                mech, worst = moved(self.mech, _moves(d, self.places)), fit.worst
                break
            moves = _moves(d, self.places)
            mech = moved(self.mech, moves)
            after, at = self._checked(mech, fit, rank)
            if at is None:
                return RepairedGeometry(mech, moves, before.error, after, self.tau)
            worst = at
            _, more = self._along(self.mech, self.start, 2 * i, self.seed + i)
            before = self._misfit(self.mech, (*before.configurations, *more), rank)
        raise self._refused(mech, worst, "no geometry near this one is exact")

    def _along(
        self, mech: Mechanism, q: Vector, times: int, seed: int
    ) -> tuple[int, tuple[Vector, ...]]:
        p, unknowns = everywhere(mech, q, 0.0), 6 * times * len(self.places.names)
        found = random_paths(p, q, self.tau, unknowns, seed)
        return found.rank, found.configurations

    def _misfit(self, mech: Mechanism, qs: tuple[Vector, ...], rank: int) -> _Misfit:
        errors, opens, slopes = [], [], []
        for q in qs:
            error, G, A = scaled_rows_by_placement(mech, q, self.places)
            U = np.linalg.svd(in_range(G))[0][:, rank:]
            errors.append(error)
            opens.append(U.T @ error)
            slopes.append(U.T @ A)
        n = np.sqrt(len(qs))
        return _Misfit(qs, np.array(errors), np.concatenate(opens) / n, np.concatenate(slopes) / n)

    def _fitted(self, before: _Misfit, rank: int) -> tuple[Vector, _Misfit]:
        """The smallest moves with which all rows close at these configurations."""
        best = here = np.zeros(6 * len(self.places.names)), before
        sizes, careful, astray = [before.size], 1.0, 0
        factors = np.linalg.svd(in_range(before.slopes), False)
        for _ in range(SNAP_STEPS):
            d, misfit = here
            if misfit.error <= SNAPPED or astray > MOST_STEPS_ASTRAY:
                break
            u, s, vt = factors
            counts = s > careful * max(SNAP_CUT[0] * misfit.size, SNAP_CUT[1])
            d = d - vt[counts].T @ ((u.T @ misfit.open)[counts] / s[counts])
            there = self._after(d, misfit, rank)
            if there is None or there.size > SNAP_ASTRAY * max(sizes[-3:]):
                careful *= 10.0
            else:
                careful, here = max(1.0, 0.3 * careful), (d, there)
                sizes.append(there.size)
                factors = np.linalg.svd(in_range(there.slopes), False)
            astray = 0 if here[1].size < 0.7 * best[1].size else astray + 1
            best = min(best, here, key=lambda found: found[1].size)
        return best

    def _after(self, d: Vector, before: _Misfit, rank: int) -> _Misfit | None:
        """The same configurations after moves, at least-squares solutions; None if moves are too
        large."""
        if largest(d) > SNAP_ASTRAY * self.tau:
            return None
        mech = moved(self.mech, _moves(d, self.places))
        p = everywhere(mech, self.start, 0.0)
        qs = tuple(least_squares_point(p, q, self.tau)[0] for q in before.configurations)
        return self._misfit(mech, qs, rank)

    def _checked(self, mech: Mechanism, fit: _Misfit, rank: int) -> tuple[float, Vector | None]:
        """Largest error along paths that were not used, and the configuration at which it is too
        large or the rank is not that of exact geometry."""
        _, fresh = self._along(mech, fit.configurations[0], 2, self.seed + FRESH)
        worst, at = 0.0, None
        for x in (*fit.configurations, *fresh):
            G, error = scaled_jacobian(mech, x, 0.0)
            wrong_rank = manifold_rank(G, max(largest(error), ROUNDED)) != rank
            if largest(error) > max(worst, CLOSED_ALREADY) or (wrong_rank and at is None):
                at = x
            worst = max(worst, largest(error))
        return worst, at

    def _check_size(self, d: Vector, fit: _Misfit) -> None:
        sizes = np.linalg.norm(d.reshape(-1, 2, 3), axis=2).max(axis=1)
        if largest(sizes) <= self.tau:
            return
        far = [f"{self.places.names[i]} {sizes[i]:.2g}" for i in np.argsort(-sizes)[:5]]
        raise self._refused(
            self.mech, fit.configurations[0],
            f"it would be exact only with moves beyond the tolerance: {', '.join(far)} (rad, or "
            "sizes of the loop)",
        )  # fmt: skip

    def _refused(self, mech: Mechanism, at: Vector, what: str) -> AssemblyError:
        error = np.abs(scaled_jacobian(mech, at, 0.0)[1])
        order = [i for i in np.argsort(-error)[:5] if error[i] > ROUNDING]
        worst = [(mech.row_names[i], float(error[i])) for i in order]
        rows = ", ".join(f"{name} {value:.2g}" for name, value in worst)
        return AssemblyError(
            f"{mech.name}: {what}. Rows that do not close: {rows or 'none, but the rank is less'} "
            f"(scaled). The tolerance of its geometry is {self.tau:g}: parts that do not "
            "fit are not due to rounding; or give another tolerance=, or a q away from singular "
            "configurations",
            residual=largest(error), worst=worst, q=at,
        )  # fmt: skip


def _moves(d: Vector, places: Placements) -> tuple[Move, ...]:
    """Scaled moves as values, the largest first, without those that are only rounding."""
    sizes = np.linalg.norm(d.reshape(-1, 6), axis=1)
    entries = (d * places.units).reshape(-1, 6)
    return tuple(
        Move(places.names[i], entries[i, :3], entries[i, 3:])
        for i in np.argsort(-sizes, kind="stable")
        if sizes[i] > BARELY_MOVED
    )
