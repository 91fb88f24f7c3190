"""Inverse dynamics for a control loop: everything that does not change is laid out once.

With the kept rows split into dependent and independent columns,

    G_dep a_dep = -drift - G_ind ydd       a from the motion
    w = M a + h                            recursive Newton-Euler
    G_dep' y = w_dep                       two vector solves in all: gamma is not formed
    gamma' B u = w_ind - G_ind' y

The general path (dynamics/tick/general_path.py) gives the same numbers, and takes over wherever the
fast one has doubts. Derivation: docs/derivations.md, "In a tick".
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching, reverse_cuthill_mckee

from holoctl.base.checks import Vector, as_given, finite, one_of, quiet, stored, vector
from holoctl.base.errors import NotActuatedError
from holoctl.base.linalg import in_place_band_lu, in_place_lu
from holoctl.base.tolerances import (
    CLOSURE_LIMIT,
    INVERSE_DOUBT,
    PASSIVE_DOUBT,
    TARGET_CONSISTENT,
    UNEQUAL_PIVOTS,
    VELOCITY_LIMIT,
)
from holoctl.closing.assembly import assemble
from holoctl.dynamics.actuation import effort_scales, effort_weights
from holoctl.dynamics.inverse import POLICIES
from holoctl.dynamics.tick.general_path import general_efforts
from holoctl.dynamics.tick.own_workspace import in_own_workspace
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_motors, check_partition, partition
from holoctl.rows.state_limits import StateLimits, state_limits
from holoctl.rows.tick.fast_rows import fast_rows, why_not
from holoctl.rows.tick.other_rows import check_ticks
from holoctl.tree.live_motion import LiveMotion, live_motion

__all__ = ["PreparedInverseDynamics", "answer"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


BAND_FROM = 16
"""From this many dependent coordinates on, a band is looked for."""


@dataclass(frozen=True, eq=False)
class PreparedInverseDynamics:
    """`inverse_dynamics` for a target of the motors, at the rate of a control loop.

    The same numbers to rounding, and no certificate, multipliers or copies of anything. States
    that are ill-conditioned, or input that is not usable, go through the general path, which
    takes an order of magnitude longer and gives the exact answer or the error that explains.

    Parameters
    ----------
    mech : Mechanism
    partition : Partition, optional
        Default: decided at the configuration assembled from ``mech.reference``.
    weights : (nu,) array_like, optional
        For more motors than motions: the efforts of least ``sum w_i u_i^2``, w_i > 0.
    inconsistent : str, optional
        What to do with a target that the constraints do not allow: ``"raise"``, or
        ``"project"`` to the nearest one that they do.
    closure_limit, velocity_limit : float or None, optional
        There is no torque where the state is open, or slides along a row, by more than this:
        `closure` and `velocity` of the certificate, over all rows. None: by any amount.

    Attributes
    ----------
    limits : StateLimits
        These two.

    Raises
    ------
    InputError
        For a partition of another mechanism, weights of the wrong shape, an unknown word, limits
        that are not above zero.
    NotActuatedError
        If the mechanism has no motors.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> prepared = hc.PreparedInverseDynamics(mech)
    >>> u = np.zeros(mech.nu)
    >>> u is prepared.torque(q, v, np.zeros(2), out=u)
    True
    """

    mech: Mechanism
    partition: Partition = None  # type: ignore[assignment]
    weights: Any = None
    inconsistent: str = "raise"
    closure_limit: float | None = CLOSURE_LIMIT
    velocity_limit: float | None = VELOCITY_LIMIT
    limits: StateLimits = field(init=False, repr=False)
    _local: threading.local = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        mech = self.mech
        check_mechanism(mech)
        one_of("inconsistent", self.inconsistent, POLICIES)
        if mech.nu == 0:
            raise NotActuatedError(f"{mech.name} has no motors, so there are no torques")
        object.__setattr__(self, "weights", effort_weights(mech, self.weights))
        limits = state_limits(self.closure_limit, self.velocity_limit)
        object.__setattr__(self, "limits", limits)
        if self.partition is None:
            object.__setattr__(self, "partition", partition(mech, assemble(mech)[0]))
        check_partition(mech, self.partition)
        check_motors(mech, self.partition)
        check_ticks(mech)
        object.__setattr__(self, "_local", threading.local())

    def __reduce__(self) -> tuple[Any, ...]:
        return PreparedInverseDynamics, (
            self.mech, self.partition, self.weights, self.inconsistent, self.closure_limit,
            self.velocity_limit,
        )  # fmt: skip

    @property
    def general(self) -> str:
        """Why every tick goes through the general path; empty where the fast one serves.

        `holding` goes through the general path also where some motion is passive.
        """
        return _reason(self.mech, self.partition)

    @quiet
    def torque(
        self,
        q: Any,
        v: Any,
        target: Any,
        t: float = 0.0,
        *,
        efforts: Any = None,
        out: Vector | None = None,
    ) -> Vector:
        """The motor efforts that cause the accelerations `target` of the motors.

        The first call in a thread lays out the workspaces of that thread.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration; may be off the manifold, and is moved only by an explicit chart.
        v : (nv,) array_like
            Velocity, rad/s or m/s.
        target : (nu,) array_like
            Accelerations of the motors, ``B' a``, rad/s^2 or m/s^2.
        t : float, optional
            Time, s, for constraints that depend on it.
        efforts : (nv,) array_like, optional
            Known efforts on the coordinates besides the motors' (external forces ``J' f``,
            friction), N m or N.
        out : (nu,) array, optional
            Takes the result; left as it is where an error is raised.

        Returns
        -------
        u : (nu,) array
            N m or N, in the order of ``mech.actuated``: `out`, or a new array.

        Raises
        ------
        InputError
            For wrong shapes, or numbers that are not finite.
        SingularityError
            Where the split or the actuation is singular, or nearly: condition numbers from a
            tenth of what the certificate tolerates; no torque is given there.
        InconsistentError
            If the state is past `closure_limit` or `velocity_limit`; if rows left out as
            redundant do not allow the motion at this state; if the constraints do not allow the
            target and ``inconsistent="raise"``.
        """
        mech = self.mech
        q, v, t = state_in_a_tick(mech, q, v, t)
        target = as_given("target", target, mech.nu)
        if efforts is not None:
            efforts = vector("efforts", efforts, mech.nv, "efforts on the coordinates")
        return answer(self, q, v, target, t, efforts, out)

    @quiet
    def holding(self, q: Any, t: float = 0.0, *, out: Vector | None = None) -> Vector:
        """The motor efforts that hold the mechanism at rest, as far as the motors can.

        Where some motion is passive this takes the general path, at its cost.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration.
        t, out
            As in `torque`.

        Returns
        -------
        u : (nu,) array
            N m or N: with a = v = 0, ``gamma' B u = gamma' g(q)``; what no motor can balance
            is left out (see ``unbalanced`` of `inverse_dynamics`).

        Raises
        ------
        InputError, SingularityError, InconsistentError
            As `torque`.
        """
        q, v, t = state_in_a_tick(self.mech, q, np.zeros(self.mech.nv), t)
        return answer(self, q, v, None, t, None, out)


def answer(
    prepared: PreparedInverseDynamics, q: Vector, v: Vector, target: Vector | None, t: float,
    efforts: Vector | None, out: Vector | None,
) -> Vector:  # fmt: skip
    """The motor efforts of a state that was checked: by the fast path, or where that gives nothing
    finite by the general one. Without a target, those that hold still."""
    mech, part = prepared.mech, prepared.partition
    u = in_own_workspace(prepared._local, _lay_out, prepared, q, v, target, t, efforts)
    if u is None or not finite(u):
        u = general_efforts(
            mech, part, q, v, target, t, efforts, weights=prepared.weights,
            inconsistent=prepared.inconsistent, limits=prepared.limits,
        )  # fmt: skip
    return u if out is None else stored("out", out, u)


# --------------------------------------------------------------------------------- layout

Tick = Callable[[Vector, Vector, Vector | None, float, Vector | None], Vector | None]
"""tick(q, v, target, t, efforts) -> u, or None where the general path is to decide. Without a
target, u holds the mechanism at rest, and v is judged only."""


def _reason(mech: Mechanism, part: Partition) -> str:
    """Why the fast path does not serve; empty where it does."""
    rho, k = part.actuation_rank, part.independent.size
    if rows := why_not(mech):
        return rows
    if rho == 0 or rho < min(mech.nu, k):
        return "the motors drive fewer motions than there are motors and motions"
    if rho < k and _motor_coordinates(mech, part) is None:
        return "some motion is passive, and not every motor drives an independent coordinate"
    return ""


def _lay_out(prepared: PreparedInverseDynamics) -> Tick | None:
    """The tick of one thread, or None where only the general path serves."""
    mech, part = prepared.mech, prepared.partition
    motion = live_motion(mech.model, mech.model.createData())
    if prepared.general or motion is None:
        return None
    motors = _motor_coordinates(mech, part)
    if motors is None:
        split = _split(mech, part, part.independent, motion, INVERSE_DOUBT, prepared.limits)
        return _tick(mech, split, _actuated(mech, split, prepared.weights, prepared.inconsistent))
    passive = np.setdiff1d(part.independent, motors)
    independent, doubt = (
        np.concatenate([motors, passive]),
        PASSIVE_DOUBT if passive.size else INVERSE_DOUBT,
    )
    return _tick(mech, _split(mech, part, independent, motion, doubt, prepared.limits), None)


def _motor_coordinates(mech: Mechanism, part: Partition) -> Indices | None:
    """The coordinate of each motor, if each drives an independent one of its own, at ratio 1."""
    motors = np.argmax(mech.B, axis=0)
    selection = np.zeros(mech.B.shape)
    selection[motors, np.arange(mech.nu)] = 1.0
    own = np.unique(motors).size == mech.nu and np.isin(motors, part.independent).all()
    return motors if own and np.array_equal(selection, mech.B) else None


class _Split(NamedTuple):
    """The scaled kept rows, ``G_dep a_dep + G_ind a_ind = right``, of one thread.

    `constrain` fills and factors them at a state; False is a reason for doubt.
    """

    constrain: Callable[[Vector, Vector, float], bool]
    solve: Callable[[Array, int], None]
    right: Vector
    G_ind: Array
    dependent: Indices
    independent: Indices
    data: pin.Data
    kept_by: Callable[[Vector, Vector], bool] | None


def _split(
    mech: Mechanism,
    part: Partition,
    independent: Indices,
    motion: LiveMotion,
    doubt: float,
    limits: StateLimits,
) -> _Split:
    nv, r, k = mech.nv, part.rank, independent.size
    rows, dependent, lower, upper = _ordered(mech, part)
    band = lower >= 0
    if band:
        i, j = np.indices((r, r))
        storage = np.full((2 * lower + upper + 1, r), -1)
        inside = (i - j <= lower) & (j - i <= upper)
        storage[(lower + upper + i - j)[inside], j[inside]] = (i * nv + dependent[j])[inside]
    else:
        storage = np.arange(r)[:, None] * nv + dependent
    others = np.arange(r)[:, None] * nv + independent
    wanted = np.concatenate([storage.reshape(-1, order="F"), others.reshape(-1)]).astype(np.intp)
    fast = fast_rows(mech, motion, rows, wanted, limits)
    G_dep = fast.entries[: storage.size].reshape(storage.shape, order="F")
    G_ind = fast.entries[storage.size :].reshape(r, k)
    unit = mech.column_scale[dependent]
    lu = in_place_band_lu(G_dep, lower, upper, unit) if band else in_place_lu(G_dep, unit)
    evaluate, factor, limit = fast.evaluate, lu.factor, doubt**2

    def constrain(q: Vector, v: Vector, t: float) -> bool:
        return evaluate(q, v, t) and factor() < limit

    return _Split(
        constrain, lu.solve, fast.right, G_ind, dependent, independent, motion.data, fast.kept_by
    )


def _ordered(mech: Mechanism, part: Partition) -> tuple[Indices, Indices, int, int]:
    """Rows and dependent coordinates, and the bandwidths of G_dep in their order (-1: none)."""
    dense = part.rows, part.dependent, -1, -1
    if part.rank < BAND_FROM:
        return dense
    support = np.concatenate([b.support for b in mech.bound])
    pattern = support[np.ix_(part.rows, part.dependent)]
    match = maximum_bipartite_matching(coo_array(pattern).tocsr(), perm_type="column")
    if (match < 0).any():
        return dense
    paired = pattern[:, match]  # row i and column match[i] go together
    order = reverse_cuthill_mckee(coo_array(paired | paired.T).tocsr(), symmetric_mode=True)
    i, j = np.nonzero(paired[np.ix_(order, order)])
    lower, upper = int((i - j).max()), int((j - i).max())
    if 3 * (2 * lower + upper + 1) > part.rank:
        return dense
    return part.rows[order], part.dependent[match[order]], lower, upper


# ----------------------------------------------------------------------------------- tick


class _Motors(NamedTuple):
    """``Y = gamma' B``, scaled, where it is not the identity; refilled by `factor`."""

    factor: Callable[[], bool]
    motion: Callable[[Vector], Vector | None]  # target to ydd
    share: Callable[[Vector], Vector | None]  # gamma' (M a + h) to u


def _tick(mech: Mechanism, split: _Split, motors: _Motors | None) -> Tick:
    """One tick. Without `motors`, motor i drives the ith independent coordinate, and those
    behind the last motor are passive: they follow the dynamics, see `_passive`."""
    constrain, solve, right, G_ind, dependent, independent, data, kept_by = split
    model, r, k, nu, G_ind_T = mech.model, dependent.size, independent.size, mech.nu, G_ind.T
    passive = _passive(mech, split) if motors is None and nu < k else None
    order = np.concatenate([dependent, independent])
    place = np.argsort(order)
    ordered_a, ordered_w, a = np.zeros(mech.nv), np.zeros(mech.nv), np.zeros(mech.nv)
    a_dep, ydd, driven = ordered_a[:r], ordered_a[r:], ordered_a[r : r + nu]
    w_dep, w_ind, of_rows = ordered_w[:r], ordered_w[r:], np.zeros(k)
    rest, rnea = np.zeros(mech.nv), pin.rnea

    def tick(
        q: Vector, v: Vector, target: Vector | None, t: float, efforts: Vector | None
    ) -> Vector | None:
        if not constrain(q, v, t) or (motors is not None and not motors.factor()):
            return None
        if target is None:
            if passive is not None:
                return None  # what rest leaves unbalanced takes the general path's least squares
            w = rnea(model, data, q, rest, rest)
        else:
            if motors is None:
                driven[:] = target
            else:
                motion = motors.motion(target)
                if motion is None:
                    return None
                ydd[:] = motion
            G_ind.dot(ydd, a_dep)
            np.subtract(right, a_dep, a_dep)
            solve(a_dep, 0)  # G_dep a_dep = right - G_ind ydd
            ordered_a.take(place, None, a, "clip")
            w = rnea(model, data, q, v, a)  # M a + h
            if efforts is not None:
                w -= efforts
            if passive is not None and not passive(q, w, a):
                return None
            if kept_by is not None and not kept_by(v, a):
                return None
        w.take(order, None, ordered_w, "clip")
        solve(w_dep, 1)  # G_dep' y = w_dep
        G_ind_T.dot(w_dep, of_rows)
        u = np.subtract(w_ind, of_rows)  # gamma' w
        if motors is not None:
            return motors.share(u)
        return u if passive is None else u[:nu]

    return tick


def _passive(mech: Mechanism, split: _Split) -> Callable[[Vector, Vector, Vector], bool]:
    """A function (q, w, a) that adds to ``w = M a + h`` and a what the passive motions change.

    They move so that no effort acts along them: with N their columns of gamma,

        N' (w + M N z) = 0
    """
    solve, model, data = split.solve, mech.model, split.data
    coordinates, dependent = split.independent[mech.nu :], split.dependent
    count = coordinates.size
    N = np.zeros((mech.nv, count))
    N[coordinates, np.arange(count)] = 1.0
    NT, G_passive = N.T, split.G_ind[:, mech.nu :]
    X = np.zeros((dependent.size, count), order="F")
    crba, posv, most = pin.crba, lapack.dposv, INVERSE_DOUBT**2

    def follow(q: Vector, w: Vector, a: Vector) -> bool:
        X[:] = G_passive
        solve(X, 0)
        N[dependent] = -X
        MN = crba(model, data, q).dot(N)
        reduced = NT.dot(MN)
        factor, z, info = posv(reduced, NT.dot(w))
        pivots = factor.diagonal()
        if info or not (reduced.diagonal() / (pivots * pivots)).max() < most:
            return False
        w -= MN.dot(z)
        a -= N.dot(z)
        return True

    return follow


def _actuated(mech: Mechanism, split: _Split, weights: Vector | None, inconsistent: str) -> _Motors:
    """Any actuation matrix that drives all motions; more motors than these share the effort."""
    nu, k, r = mech.nu, split.independent.size, split.dependent.size
    solve, right, G_ind_T = split.solve, split.right, split.G_ind.T
    unit = mech.column_scale[split.independent]
    u_scale, cost = effort_scales(mech, weights)
    B_dep, B_ind = mech.B[split.dependent], mech.B[split.independent]
    X, Y = np.zeros((r, nu), order="F"), np.zeros((k, nu), order="F")
    square = in_place_lu(Y, np.ones(k)) if k == nu else None

    def factor() -> bool:
        X[:] = B_dep
        solve(X, 1)  # G_dep' X = B_dep
        Y[:] = unit[:, None] * (B_ind - G_ind_T.dot(X)) * u_scale
        if square is not None:
            return square.factor() < INVERSE_DOUBT**2
        triangle, _, _, _ = lapack.dgeqrf(Y.T)
        return bool(np.abs(triangle.diagonal()).min() > 1.0 / INVERSE_DOUBT)

    def motion(target: Vector) -> Vector | None:
        wanted = u_scale * (target - X.T.dot(right))  # Y' ydd = target - B' bias
        if square is not None:
            square.solve(wanted, 1)
            ydd: Vector = unit * wanted
            return ydd
        _, x, _ = lapack.dgels(Y.T, wanted)
        if inconsistent == "raise" and np.abs(x[k:]).max() > 0.1 * TARGET_CONSISTENT:
            return None
        nearest: Vector = unit * x[:k]
        return nearest

    def share(w: Vector) -> Vector | None:
        u = unit * w
        if square is not None:
            square.solve(u, 0)
        else:
            triangle, u, _ = lapack.dgels(Y / cost, np.concatenate([u, np.zeros(nu - k)]))
            pivots = np.abs(triangle.diagonal())
            if not pivots.min() * UNEQUAL_PIVOTS > pivots.max():
                return None
            u /= cost
        u *= u_scale
        return u

    return _Motors(factor, motion, share)
