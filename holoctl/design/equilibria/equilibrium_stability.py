"""The stability of an equilibrium: its stiffness, and the motions that no motor holds.

    K = Z' d(w - G'^T lambda)/dq Z       lambda, u held;  w = Dc (h - F - B u) = G'^T lambda

If all efforts have a potential, K is its second derivative along the motions: an equilibrium is
stable if K > 0 (Lagrange, Dirichlet), with friction or without, and unstable if K has a negative
eigenvalue (Chetaev). If a rope becomes taut exactly at the equilibrium, K differs on its two sides
and does not decide the stability of all motions together; for a single motion the side with the
smaller stiffness is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.linalg import largest, least_squares, pivoted_qr
from holoctl.base.tolerances import RANK, TAKES_PART, WEIGHT_SHARE
from holoctl.design.equilibria.balance_residual import Balance
from holoctl.doctor.actuation import motor_rows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.tree.coordinates import support

__all__ = ["EquilibriumStability", "falls", "pulled_motion", "stability"]

STIFFNESS_STEP = 1e-4  # scaled
"""Step of the differences for the stiffness at an equilibrium."""

STIFFNESS_NONE = 1e-6
"""A stiffness up to this share of the efforts that act counts as zero."""

STIFFNESS_SYMMETRIC = 1e-5
"""Efforts have no potential if the stiffness misses symmetry by more than this share of its largest
entry."""

STIFFNESS_KINK = 1e-5
"""The stiffness is undefined if it differs between the two sides by more than this share of the
efforts that act: a rope becomes taut there, for example."""


Pull = Callable[[Vector], Vector]


class EquilibriumStability(NamedTuple):
    """The result of `stability`.

    Attributes
    ----------
    stable : bool or None
        Stability with constant efforts; None if the stiffness does not decide.
    unheld : tuple of str
        A sentence for each motion that no motor moves.
    """

    stable: bool | None
    unheld: tuple[str, ...]


def stability(balance: Balance, q: Vector) -> EquilibriumStability:
    """The stability of an equilibrium q under the constant efforts ``balance.u``."""
    mech, kin = balance.mech, balance.at(q)
    Z = balance.motions(kin, driven=True)
    if Z.shape[1] == 0:
        return EquilibriumStability(True, ())
    rest = _pull(balance, q)
    K, jump = _stiffness(rest, mech.nv)
    size = balance.acting(kin) + balance.carried(kin) + np.abs(K.diagonal())
    size = np.maximum(size, WEIGHT_SHARE * (largest(size) or 1.0))
    bent = largest(_over_size(Z, jump, size)[0]) > STIFFNESS_KINK
    apart = _apart(balance.motions(kin, driven=False), K, size)
    if bent:
        apart = [(_on_either_side(rest, x, size), x) for _, x in apart]
    sentences = tuple(
        f"{_named(mech, x)}: no motor moves it, and it is at an equilibrium, which is {_pushed(k)}"
        for k, x in apart
    )
    return EquilibriumStability(
        None if bent else _stable(mech, _over_size(Z, K, size)[0]), sentences
    )


def pulled_motion(balance: Balance, q: Vector) -> str:
    """The motion that is not in balance, and the effort that pulls it, in words; empty if r = 0."""
    mech, kin = balance.mech, balance.at(q)
    pull = balance.unit * balance.left(kin)
    if not pull.any():
        return ""
    one = pull / np.linalg.norm(pull)
    i = int(np.argmax(np.abs(one)))
    effort = float(np.linalg.norm(pull)) / (abs(one[i]) * mech.column_scale[i])
    unit = "N" if mech.column_scale[i] != 1.0 or i in mech.lengths[1] else "N m"
    return f"{_named(mech, one)} (pulled by {effort:.3g} {unit} at {mech.coordinate_names[i]!r})"


def falls(balance: Balance, q: Vector) -> bool:
    """Whether all bodies can fall together along gravity without a motor or force acting on that
    motion; there is then no equilibrium in any configuration."""
    mech, kin = balance.mech, balance.at(q)
    gravity = mech.model.gravity.linear
    size, n = float(np.linalg.norm(gravity)), mech.model.njoints
    if size == 0.0:
        return False
    twist = np.concatenate([gravity / size, np.zeros(3)])  # of every body, at the world's origin
    bodies = [support(mech.model, i) * kin.J for i in range(1, n)]
    x = least_squares(np.vstack(bodies), np.tile(twist, n - 1)) / mech.column_scale
    missed = [b @ (mech.column_scale * x) - twist for b in bodies]
    held = [balance.rows(kin) @ x, motor_rows(mech) @ x if mech.nu else np.zeros(0)]
    h, F, _ = balance.terms(kin)
    still = largest(np.concatenate([*missed, *held])) <= RANK * largest(x)
    return still and bool(abs(F @ x) <= RANK * abs(h @ x))


def _pull(balance: Balance, q: Vector) -> Pull:
    """``w - G'^T lambda`` after a scaled step from q, minus its rounding error at q."""
    mech = balance.mech

    def at(place: Vector) -> tuple[Vector, Array]:
        here = balance.at(place)
        h, F, Bu = balance.terms(here)
        return h - F - Bu, balance.rows(here)

    w, G = at(q)
    multipliers = least_squares(G.T, w) if G.size else np.zeros(0)
    left = w - multipliers @ G

    def rest(move: Vector) -> Vector:
        w, G = at(pin.integrate(mech.model, q, mech.column_scale * move))
        return w - multipliers @ G - left

    return rest


def _stiffness(rest: Pull, nv: int) -> tuple[Array, Array]:
    """``d(w - G'^T lambda)/dq`` by differences of fourth order in scaled coordinates, (nv, nv); and
    the jump of that derivative at q, by differences of third order."""
    h, K, jump = STIFFNESS_STEP, np.zeros((nv, nv)), np.zeros((nv, nv))
    for j, e in enumerate(np.eye(nv)):
        near, back, far, far_back = (rest(x * h * e) for x in (1.0, -1.0, 2.0, -2.0))
        K[:, j] = (8.0 * (near - back) - (far - far_back)) / (12.0 * h)
        jump[:, j] = (2.0 * (near + back) - 0.5 * (far + far_back)) / h
    return K, jump


def _on_either_side(rest: Pull, x: Vector, size: Vector) -> float:
    """The smaller of the stiffnesses along a motion in its two directions, over the efforts that
    act."""
    h = STIFFNESS_STEP / np.linalg.norm(x)
    return float(min(x @ rest(h * x), -x @ rest(-h * x)) / (h * (size * x) @ x))


def _over_size(Z: Array, K: Array, size: Vector) -> tuple[Array, Array]:
    """The stiffness along motions Z over the sizes of the efforts that act there (dimensionless),
    and Z in a basis in which these sizes are one."""
    factor = np.linalg.cholesky(Z.T @ (size[:, None] * Z))
    Y = np.linalg.solve(factor, Z.T).T
    return Y.T @ K @ Y, Y


def _stable(mech: Mechanism, K: Array) -> bool | None:
    """Whether the stiffness along all motions makes the equilibrium stable; None if undecided."""
    others = [force for force in mech.bound_forces if not (force.stores or force.friction)]
    twisted = largest(K - K.T) > max(STIFFNESS_NONE, STIFFNESS_SYMMETRIC * largest(K))
    if others or may_depend_on_time(mech) or twisted:
        return None
    least = float(np.linalg.eigvalsh(0.5 * (K + K.T))[0])
    return None if abs(least) <= STIFFNESS_NONE else least > 0.0


def _apart(Z: Array, K: Array, size: Vector) -> list[tuple[float, Vector]]:
    """Principal stiffnesses, over the efforts that act, and their motions. The motions of zero
    stiffness are given in a basis in which each moves one coordinate alone."""
    if Z.shape[1] == 0:
        return []
    reduced, Y = _over_size(Z, K, size)
    values, vectors = np.linalg.eigh(0.5 * (reduced + reduced.T))
    free = np.abs(values) <= STIFFNESS_NONE
    found = [(float(k), Y @ x) for k, x in zip(values[~free], vectors.T[~free], strict=True)]
    space = np.linalg.qr(Y @ vectors[:, free])[0]
    if space.size:
        own = np.sort(pivoted_qr(space.T, space.shape[1]).pivots[: space.shape[1]])
        found += [(0.0, x) for x in np.linalg.solve(space[own].T, space.T)]
    return found


def _named(mech: Mechanism, x: Vector) -> str:
    """The name of a motion: the coordinates with the largest parts in it."""
    order = np.argsort(-np.abs(x), kind="stable")
    most = [i for i in order if abs(x[i]) >= TAKES_PART * abs(x[order[0]])]
    return "the motion of " + listing([mech.coordinate_names[i] for i in most], 4)


def _pushed(stiffness: float) -> str:
    if abs(stiffness) <= STIFFNESS_NONE:
        return "neutral (no restoring force)"
    return "stable" if stiffness > 0.0 else "unstable"
