"""What becomes of an equilibrium that is pushed: its stiffness, and motions that no motor holds.

    K = Z' d(w - G'^T lambda)/dq Z       lambda, u held;  w = Dc (h - F - B u) = G'^T lambda

Where all efforts have an energy K is its second derivative along the motions: an equilibrium is
stable where K > 0 (Lagrange, Dirichlet), friction or not, and is not where K has an eigenvalue
below zero (Chetaev). Where a rope gets taut just there K is another one on each side, and tells
nothing of all motions together; of one motion the side counts that pulls back less.
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

__all__ = ["EquilibriumStability", "falls", "pulled_motion", "standing"]

STIFFNESS_STEP = 1e-4  # scaled
"""Step of the differences of what pulls back, at an equilibrium."""

STIFFNESS_NONE, STIFFNESS_SYMMETRIC = 1e-6, 1e-5
"""A motion is pulled back, or falls, by more than the first share of the largest stiffness, or of
the weight on a lever; stiffness that misses symmetry by the second has no energy."""

STIFFNESS_KINK = 1e-5
"""Stiffness that jumps by more than this share of what acts, from one side to the other, is none:
a rope gets taut there."""


Pull = Callable[[Vector], Vector]


class EquilibriumStability(NamedTuple):
    """What `standing` finds.

    Attributes
    ----------
    stable : bool or None
        With the efforts held; None where the stiffness does not tell.
    unheld : tuple of str
        A sentence for each motion that no motor moves.
    """

    stable: bool | None
    unheld: tuple[str, ...]


def standing(balance: Balance, q: Vector) -> EquilibriumStability:
    """Look at an equilibrium; ``balance.u`` are the efforts there."""
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
        f"{_named(mech, x)}: no motor moves it; it is in balance by itself, and {_pushed(k)}"
        for k, x in apart
    )
    return EquilibriumStability(
        None if bent else _stable(mech, _over_size(Z, K, size)[0]), sentences
    )


def pulled_motion(balance: Balance, q: Vector) -> str:
    """The motion that is not in balance, and the effort that pulls it; empty where all is."""
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
    """Whether all bodies can move together along gravity, and neither motors nor forces act then:
    whatever the configuration, there is no rest."""
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
    """``w - G'^T lambda`` after a scaled move from q, less what rounding leaves of it at q."""
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
    """``d(w - G'^T lambda)/dq`` by steps of scaled coordinates, (nv, nv), of fourth order; and by
    how much it is another one behind than ahead, of third order."""
    h, K, jump = STIFFNESS_STEP, np.zeros((nv, nv)), np.zeros((nv, nv))
    for j, e in enumerate(np.eye(nv)):
        near, back, far, far_back = (rest(x * h * e) for x in (1.0, -1.0, 2.0, -2.0))
        K[:, j] = (8.0 * (near - back) - (far - far_back)) / (12.0 * h)
        jump[:, j] = (2.0 * (near + back) - 0.5 * (far + far_back)) / h
    return K, jump


def _on_either_side(rest: Pull, x: Vector, size: Vector) -> float:
    """The least stiffness along a motion, ahead and behind, over the size of what acts."""
    h = STIFFNESS_STEP / np.linalg.norm(x)
    return float(min(x @ rest(h * x), -x @ rest(-h * x)) / (h * (size * x) @ x))


def _over_size(Z: Array, K: Array, size: Vector) -> tuple[Array, Array]:
    """The stiffness along motions Z over the sizes of what acts there, a pure number, and Z in a
    basis in which these sizes are one."""
    factor = np.linalg.cholesky(Z.T @ (size[:, None] * Z))
    Y = np.linalg.solve(factor, Z.T).T
    return Y.T @ K @ Y, Y


def _stable(mech: Mechanism, K: Array) -> bool | None:
    """What the stiffness along all motions tells."""
    others = [force for force in mech.bound_forces if not (force.stores or force.friction)]
    twisted = largest(K - K.T) > max(STIFFNESS_NONE, STIFFNESS_SYMMETRIC * largest(K))
    if others or may_depend_on_time(mech) or twisted:
        return None
    least = float(np.linalg.eigvalsh(0.5 * (K + K.T))[0])
    return None if abs(least) <= STIFFNESS_NONE else least > 0.0


def _apart(Z: Array, K: Array, size: Vector) -> list[tuple[float, Vector]]:
    """Principal motions of a stiffness: its value, over the size of what acts, and the motion.
    Those that nothing pulls each with a coordinate of their own."""
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
    """A motion by the coordinates that take part most."""
    order = np.argsort(-np.abs(x), kind="stable")
    most = [i for i in order if abs(x[i]) >= TAKES_PART * abs(x[order[0]])]
    return "the motion of " + listing([mech.coordinate_names[i] for i in most], 4)


def _pushed(stiffness: float) -> str:
    if abs(stiffness) <= STIFFNESS_NONE:
        return "nothing pulls it back"
    return "is pulled back to it" if stiffness > 0.0 else "falls away from it"
