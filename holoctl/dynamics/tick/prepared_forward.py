"""Forward dynamics for loops and simulations: everything that does not change is laid out once.

The whole system at once, scaled by constants, so that its pivots are of order one:

    [M   G'] [   a    ]   [tau - h]
    [G   0 ] [-lambda ] = [-drift ]        kept rows only

by Pinocchio's sparse factorisation where the rows are those of anchors (rows/anchors.py), by a
dense LU otherwise, or where the sparse one has doubts. The general path, `accelerate`, gives the
same numbers, and takes over where the dense one has doubts too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import lapack

from holoctl.base.checks import Vector, as_given, finite, quiet, stored, vector
from holoctl.base.errors import InputError
from holoctl.base.tolerances import FORWARD_DOUBT, HEAVY
from holoctl.closing.assembly import assemble
from holoctl.dynamics.tick.general_path import general_acceleration
from holoctl.dynamics.tick.own_workspace import in_own_workspace
from holoctl.mechanism.checks import check_mechanism, state_in_a_tick
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import inertia
from holoctl.projector.partition import Partition, check_partition, partition
from holoctl.rows.anchors import anchored, anchors, motion_of_rows
from holoctl.rows.evaluate import constraint_rows
from holoctl.rows.tick.fast_rows import fast_rows, why_not
from holoctl.rows.tick.other_rows import check_ticks
from holoctl.tree.live_motion import live_motion

__all__ = ["PreparedForwardDynamics"]


Response = Callable[[Any], Vector]
"""a(tau): the acceleration at one state, for any efforts."""

_Tick = Callable[[Vector, Vector, Vector | None, float], Vector | Response | None]

_SparseTick = Callable[[Vector, Vector, Vector], Vector | None]


@dataclass(frozen=True, eq=False)
class PreparedForwardDynamics:
    """`forward_dynamics` at the rate of a control loop or of an integrator: a alone.

    The same numbers to rounding, without certificate and multipliers. States that are
    ill-conditioned, or input that is not usable, go through the general path, which takes an
    order of magnitude longer.

    Parameters
    ----------
    mech : Mechanism
    partition : Partition, optional
        Default: decided at the configuration assembled from ``mech.reference``.

    Raises
    ------
    InputError
        For a partition of another mechanism.
    AssemblyError
        If no partition is given and the reference configuration cannot be assembled.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> q, v = hc.assemble(mech)
    >>> a = hc.PreparedForwardDynamics(mech).acceleration(q, v, np.zeros(4))
    """

    mech: Mechanism
    partition: Partition = None  # type: ignore[assignment]
    _local: threading.local = field(init=False, repr=False)

    @quiet
    def __post_init__(self) -> None:
        check_mechanism(self.mech)
        if self.partition is None:
            object.__setattr__(self, "partition", partition(self.mech, assemble(self.mech)[0]))
        check_partition(self.mech, self.partition)
        check_ticks(self.mech)
        object.__setattr__(self, "_local", threading.local())

    def __reduce__(self) -> tuple[Any, ...]:
        return PreparedForwardDynamics, (self.mech, self.partition)

    @property
    def general(self) -> str:
        """Why every call goes through the general path; empty where the fast one serves."""
        return why_not(self.mech)

    @quiet
    def acceleration(
        self, q: Any, v: Any, tau: Any, t: float = 0.0, *, out: Vector | None = None
    ) -> Vector:
        """The acceleration that efforts on the coordinates cause.

        The first call in a thread lays out the workspaces of that thread.

        Parameters
        ----------
        q : (nq,) array_like
            Configuration; may be off the manifold, and is moved only by an explicit chart.
        v : (nv,) array_like
            Velocity, rad/s or m/s.
        tau : (nv,) array_like
            Efforts on the coordinates, N m or N; ``mech.B @ u`` for motors.
        t : float, optional
            Time, s, for constraints that depend on it.
        out : (nv,) array, optional
            Takes the result; left as it is where an error is raised.

        Returns
        -------
        a : (nv,) array
            rad/s^2 or m/s^2: `out`, or a new array.

        Raises
        ------
        InputError
            For wrong shapes, or numbers that are not finite.
        SingularityError
            Where the split is singular, or a motion has no inertia.
        """
        tau = as_given("tau", tau, self.mech.nv)
        a, q, v, t = self._tick(q, v, tau, t)
        if not isinstance(a, np.ndarray) or not finite(a):
            a = general_acceleration(self.mech, self.partition, q, v, tau, t)
        return a if out is None else stored("out", out, a)

    @quiet
    def at(self, q: Any, v: Any, t: float = 0.0) -> Response:
        """The same at one state for many efforts: everything but tau is solved once.

        Parameters
        ----------
        q, v, t
            As in `acceleration`.

        Returns
        -------
        function (tau) -> a
            tau and a of shape (nv,), as in `acceleration`. It keeps what it needs: later calls,
            at other states, do not touch it.

        Raises
        ------
        InputError
            For wrong shapes, or numbers that are not finite.
        SingularityError
            Where the split is singular, or a motion has no inertia.
        """
        response, q, v, t = self._tick(q, v, None, t)
        if response is not None and not isinstance(response, np.ndarray):
            return response
        mech, part = self.mech, self.partition
        general_acceleration(mech, part, q, v, np.zeros(mech.nv), t)  # raises, if anything does
        q, v = q.copy(), v.copy()
        return lambda tau: general_acceleration(mech, part, q, v, as_given("tau", tau, mech.nv), t)

    def _tick(
        self, q: Any, v: Any, tau: Vector | None, t: Any
    ) -> tuple[Vector | Response | None, Vector, Vector, float]:
        """The answer of the fast path, if it has one, and the state as it was checked."""
        q, v, t = state_in_a_tick(self.mech, q, v, t, of_any_size=True)
        found = in_own_workspace(self._local, _lay_out, self, q, v, tau, t)
        return found, q, v, t


def _lay_out(prepared: PreparedForwardDynamics) -> _Tick | None:
    """The tick of one thread, or None where only the general path serves."""
    dense = _dense(prepared)
    sparse = None if dense is None else _sparse(prepared)
    if dense is None or sparse is None:
        return dense

    def tick(q: Vector, v: Vector, tau: Vector | None, t: float) -> Vector | Response | None:
        a = None if tau is None else sparse(q, v, tau)
        return dense(q, v, tau, t) if a is None else a

    return tick


def _sparse(prepared: PreparedForwardDynamics) -> _SparseTick | None:
    """The tick where all rows are kept and are those of anchors: Pinocchio's factorisation.

    Its pivots are, up to the sign, parts of J M^-1 J' and of M. They are compared with the
    diagonals of these two at the reference.
    """
    mech = prepared.mech
    model, n = mech.model, mech.nv
    found = anchors(mech)
    if not found or prepared.partition.rank < len(mech.row_scale):
        return None
    held = anchored(model, found)
    models, datas, data, factors = held.models, held.datas, held.data, held.factors
    both = list(zip(models, datas, strict=True))
    rhs = np.zeros(len(mech.row_scale) + n)
    m = rhs.size - n
    extracted = [d.extract() for d in datas]
    ends = np.cumsum([anchor.rows.size for anchor in found])
    rights = [
        motion_of_rows(mech, anchor, at, rhs[end - anchor.rows.size : end])
        for anchor, at, end in zip(found, extracted, ends, strict=True)
    ]
    parts = [right for right in rights if right is not None]
    if len(parts) < len(rights):
        return None
    all_terms, h, f = pin.computeAllTerms, data.nle, rhs[m:]
    all_terms(model, data, mech.reference, np.zeros(n))
    for c, d in both:
        c.calc(model, data, d)
    factors.compute(model, data, models, datas)
    pivots, inertias = factors.D, np.diagonal(data.M)
    if not (pivots > 0.0)[m:].all() or not (pivots < 0.0)[:m].all():
        return None
    J = pin.getConstraintsJacobian(model, data, models, datas).reshape(m, n)
    mobility = (J * np.linalg.solve(inertia(mech, mech.reference), J.T).T).sum(axis=1)
    unit = 1.0 / np.concatenate([-mobility, inertias])
    unit_of_inertias, scaled, scaled_inertias = unit[m:].copy(), np.zeros(m + n), np.zeros(n)
    views = (factors.D, pivots), (data.nle, h), (np.diagonal(data.M), inertias)
    if not all(np.shares_memory(one, other) for one, other in views):
        return None  # a copy, which would not change with the workspace
    compute, solve = factors.compute, factors.solve

    def tick(q: Vector, v: Vector, tau: Vector) -> Vector | None:
        all_terms(model, data, q, v)
        for c, d in both:
            c.calc(model, data, d)
        for part in parts:
            if not part():
                return None
        compute(model, data, models, datas)
        np.multiply(inertias, unit_of_inertias, scaled_inertias)
        np.multiply(pivots, unit, scaled)
        sizes = scaled.tolist()
        if not (scaled_inertias.dot(scaled_inertias) < HEAVY**2 and max(sizes) < HEAVY):
            return None
        if not min(sizes) > 1.0 / FORWARD_DOUBT:
            return None
        np.subtract(tau, h, f)
        a: Vector = solve(rhs)[m:]
        return a

    return tick


def _dense(prepared: PreparedForwardDynamics) -> _Tick | None:
    """The tick for rows of any kind: LU of the whole system."""
    mech, part = prepared.mech, prepared.partition
    model, n, r = mech.model, mech.nv, part.rank
    motion = live_motion(model, model.createData())
    if prepared.general or motion is None:
        return None
    wanted = np.arange(n)[:, None] + n * np.arange(r)  # G'
    fast, data = fast_rows(mech, motion, part.rows, wanted), motion.data
    K, rhs = np.zeros((n + r, n + r), order="F"), np.zeros(n + r)
    M_here, G_here, GT_here, f, k = K[:n, :n], K[n:, :n], K[:n, n:], rhs[:n], rhs[n:]
    diagonal = np.diag(inertia(mech, mech.reference))
    least = 1e-9 * float(diagonal.max()) or 1.0
    scale = 1.0 / np.sqrt(np.maximum(diagonal, least))
    _, there = constraint_rows(mech, mech.reference, np.zeros(n))
    size = np.abs(mech.row_scale[:, None] * there.jacobian * scale)[part.rows].max(axis=1)
    size = np.maximum(size, 1e-3 * size.max(initial=0.0) + 1e-300)  # a row that vanishes there
    unit = np.concatenate([scale, 1.0 / size])
    units = np.asfortranarray(unit * unit[:, None])
    evaluate, GT, right = fast.evaluate, fast.entries, fast.right
    G, crba, nle = GT.T, pin.crba, pin.nonLinearEffects
    getrf, getrs = lapack.dgetrf, lapack.dgetrs
    back, inverse, inertias = unit[:n].copy(), np.zeros(n + r), K.diagonal()[:n]

    def tick(q: Vector, v: Vector, tau: Vector | None, t: float) -> Vector | Response | None:
        if not evaluate(q, v, t):
            return None
        M_here[:] = crba(model, data, q)
        G_here[:] = G
        GT_here[:] = GT
        K[n:, n:] = 0.0
        np.multiply(K, units, K)
        if not inertias.dot(inertias) < HEAVY**2:
            return None
        h = nle(model, data, q, v)
        factors, order, info = getrf(K, tau is not None)
        if info:
            return None
        np.divide(1.0, factors.diagonal(), inverse)
        if not inverse.dot(inverse) < FORWARD_DOUBT**2:
            return None
        if tau is None:
            if not (finite(h) and finite(right)):
                return None
            return response(factors, order, h, right * unit[n:])
        np.subtract(tau, h, f)
        k[:] = right
        np.multiply(rhs, unit, rhs)
        x, _ = getrs(factors, order, rhs)
        a: Vector = back * x[:n]
        return a

    def response(
        factors: NDArray[np.float64], order: NDArray[np.int32], h: Vector, scaled_right: Vector
    ) -> Response:
        """Owns its arrays: later calls do not reach into it."""

        @quiet
        def a(tau: Any) -> Vector:
            b = np.concatenate([back * (as_given("tau", tau, n) - h), scaled_right])
            x, _ = getrs(factors, order, b, 0, 1)
            found: Vector = back * x[:n]
            if not finite(found):
                vector("tau", tau, n, "efforts on the coordinates")
                raise InputError("the acceleration is not finite: tau is out of range")
            return found

        return a

    return tick
