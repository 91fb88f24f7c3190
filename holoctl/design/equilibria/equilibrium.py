"""Equilibria: closed configurations at rest, and the efforts that hold them.

    phi(q) = 0        gamma' (h - F - B u) = 0        v = 0

If u is given, there are as many equations as motions. If u is to be found, the motions that no
motor moves must be in balance by themselves, r = N' (h - F) = 0 with N the null basis of ``[G;
B']``, and u is the vector of least norm that balances the others. From the closed guess the search
takes short steps on the manifold to a minimum of |r|; Newton's method on both equations gives the
last digits; if the equilibria form a set, the search ends at the one nearest to the guess.
Reference: docs/equilibria.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holoctl.base.checks import (
    Vector,
    listing,
    name_list,
    number,
    quiet,
    read_only,
    unpickled,
    vector,
    whole,
)
from holoctl.base.errors import (
    AssemblyError,
    InconsistentError,
    NotActuatedError,
)
from holoctl.base.linalg import largest
from holoctl.base.renamed import former_names
from holoctl.base.tolerances import CLOSED
from holoctl.closing.assembly import assemble
from holoctl.closing.newton import everywhere
from holoctl.design.equilibria.balance_residual import Balance
from holoctl.design.equilibria.equilibrium_search import BALANCED_NEARLY, balanced
from holoctl.design.equilibria.equilibrium_stability import pulled_motion, stability
from holoctl.dynamics.actuation import actuation
from holoctl.mechanism.checks import check_configuration, check_mechanism, coordinate_indices
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_motors, check_partition
from holoctl.projector.partition import partition as decided
from holoctl.projector.projection import projected
from holoctl.rows.evaluate import rows_at

__all__ = ["Equilibrium", "equilibrium"]

MOVES_BY_ITSELF = 1e-9  # 1/s, 1/s^2, scaled
"""Constraints that impose a larger rate or acceleration at rest allow no equilibrium."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A closed configuration at rest, and the efforts that hold it, as `equilibrium` returns it:
    ``q, v, u = hc.equilibrium(mech)``, or with names.

    Attributes
    ----------
    q : (nq,) array
    v : (nv,) array
        Zero.
    u : (nu,) array
        Motor efforts, N m or N.
    held : int
        Number of independent motions that the motors move: those that u holds, or could hold.
    unheld : tuple of str
        A sentence for each motion that no motor moves: it is in balance by itself, and the sentence
        says whether it returns after a push.
    stable : bool or None
        Whether the mechanism stays near q after a push, with constant u and no controller. None if
        the stiffness does not decide: no effort pulls some motion back, or the efforts have no
        potential.
    residual : float
        Largest residual of the balance, as a share of the efforts that act.
    mech : Mechanism
    partition : Partition
    t : float
        Time, s.

    See Also
    --------
    equilibrium : returns it.
    linearize : the linear model about it.

    Examples
    --------
    >>> import holoctl as hc
    >>> eq = hc.equilibrium(hc.load(hc.robot_file("four_bar")))
    >>> eq.held, eq.stable
    (1, False)
    """

    q: Vector
    v: Vector
    u: Vector
    held: int
    unheld: tuple[str, ...]
    stable: bool | None
    residual: float
    mech: Mechanism
    partition: Partition
    t: float = 0.0

    __setstate__ = unpickled

    def __iter__(self) -> Iterator[Vector]:
        """q, v and u, for ``q, v, u = hc.equilibrium(mech)``."""
        return iter((self.q, self.v, self.u))

    def __repr__(self) -> str:
        stable = {True: "stable", False: "not stable", None: "stability not decided"}[self.stable]
        unheld = f", {len(self.unheld)} unheld" if self.unheld else ""
        return (
            f"<Equilibrium of {self.mech.name!r}: efforts up to {largest(self.u):.3g} N m or N, "
            f"{self.held} held{unheld}, {stable}>"
        )


@former_names(locked="fixed")
@quiet
def equilibrium(
    mech: Mechanism,
    q_guess: Any = None,
    u: Any = None,
    locked: Iterable[str] = (),
    *,
    t: float = 0.0,
    partition: Partition | None = None,
    restarts: int = 10,
    seed: int = 0,
) -> Equilibrium:
    """A closed configuration at rest near a guess, with the efforts that hold it.

    Springs and other forces act; friction is zero at rest. If motors move all motions, every closed
    configuration is an equilibrium, and the nearest one to the guess is taken.

    Parameters
    ----------
    mech : Mechanism
    q_guess : (nq,) array_like, optional
        Default: ``mech.reference``. Of several equilibria one near the guess is found.
    u : (nu,) array_like, optional
        Motor efforts, N m or N: q is then a configuration that they hold. Default: the efforts of
        least norm that hold q (as `inverse_dynamics` shares them); motions that no motor moves must
        be in balance by themselves, and q moves from the closed guess until they are.
    locked : iterable of str, optional
        Coordinates, or joints, that keep the value of the guess.
    t : float, optional
        Time, s. Constraints that move by themselves at this instant allow no rest.
    partition : Partition, optional
        Default: the one chosen at q.
    restarts : int, optional
        Number of seeded random starts around the guess, nearer ones first, if the search from the
        guess finds no equilibrium; fewer if several starts end at the same minimum.
    seed : int, optional
        Seed of these starts.

    Returns
    -------
    Equilibrium

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not finite, unknown names.
    AssemblyError
        If the guess does not close, with the locked coordinates where they are.
    NotActuatedError
        If motions that no motor moves are in balance nowhere near; the message names them and the
        effort that pulls.
    InconsistentError
        If the given efforts hold the mechanism nowhere near, or constraints move by themselves.
    SingularityError
        At a singular configuration, or one at which motors move fewer motions than nearby.

    See Also
    --------
    assemble : a closed configuration, without a balance of efforts.
    linearize : the linear model about it.
    lqr : a regulator that holds it.

    References
    ----------
    docs/equilibria.md.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> hc.equilibrium(mech).u.round(2).tolist()
    [-2.3, 2.3]
    """
    check_mechanism(mech)
    given = mech.reference.copy() if q_guess is None else q_guess
    guess, t = check_configuration(mech, given, "q_guess"), number("t", t, "time, s")
    efforts = None if u is None else vector("u", u, mech.nu, "motor efforts")
    names = name_list("locked", locked)
    at = coordinate_indices(mech, names, "locked")
    restarts, seed = whole("restarts", restarts, 0), whole("seed", seed, 0)
    start, _ = assemble(mech, guess, locked=names, t=t)
    if partition is not None:
        check_partition(mech, partition)
        check_motors(mech, partition)
    part = decided(mech, start, t=t) if partition is None else partition
    balance = Balance(mech, part, efforts, t)
    balance = replace(balance, unit=balance.usual(start))
    q = balanced(balance, start, at, restarts, seed)
    if q is None:
        raise _none_found(balance, start, names)
    if partition is None:
        part = decided(mech, q, t=t)
        if part.tolerance > 0.0:  # the choice among nearly dependent rows changes the equilibrium
            balance = replace(balance, part=part)
            q = balanced(balance, q, at, 0, seed)
            if q is None:
                raise _none_found(balance, start, names)
    return _judged(balance, q, part)


# ------------------------------------------------------------------------------------- the result


def _judged(balance: Balance, q: Vector, part: Partition) -> Equilibrium:
    """The result, after checks of rest, closure and balance at q."""
    mech, t = balance.mech, balance.t
    _check_rest(mech, q, t)
    off = largest(everywhere(mech, q, t).scaled_rows(q)[0])
    if not off <= max(CLOSED, part.tolerance):
        raise AssemblyError(
            f"{mech.name}: at the equilibrium the error of rows that depend on others is {off:.2g} "
            f"(scaled), more than the tolerance of the geometry, {mech.tolerance:g}; hc.mobility "
            "explains which",
            residual=off, q=q,
        )  # fmt: skip
    if part.actuation_rank > balance.part.actuation_rank or part.rank != balance.part.rank:
        balance = replace(balance, part=part)  # ranks at the start differ from those at q
    u = _holding(mech, part, q, t) if balance.u is None else balance.u
    there = replace(balance, part=part, u=u)
    residual = there.off(there.at(q))
    if not residual <= BALANCED_NEARLY:
        raise InconsistentError(
            f"{mech.name}: the efforts found leave a residual of {residual:.1e} (a share of the "
            "efforts that act): the motors move other motions at the equilibrium than at the "
            "guess; give a guess nearer to it",
            residual=residual,
        )
    found = stability(there, q)
    return Equilibrium(
        read_only(q.copy()), read_only(np.zeros(mech.nv)), read_only(np.array(u, dtype=float)),
        part.actuation_rank, found.unheld, found.stable, residual, mech, part, t,
    )  # fmt: skip


def _holding(mech: Mechanism, part: Partition, q: Vector, t: float) -> Vector:
    """The efforts of least norm that balance the motions which motors move."""
    P = projected(mech, q, np.zeros(mech.nv), t, part, t_stab=False)
    if P.k == 0 or part.actuation_rank == 0:
        return np.zeros(mech.nu)
    return actuation(P).efforts(P.terms.h - P.terms.F)


def _check_rest(mech: Mechanism, q: Vector, t: float) -> None:
    """Raise `InconsistentError` if constraints move by themselves."""
    if mech.row_scale.size == 0:
        return
    rows = rows_at(mech, q, np.zeros(mech.nv), t)
    for x, what, unit in ((rows.rate, "moves", "1/s"), (rows.drift, "accelerates", "1/s^2")):
        off = np.abs(mech.row_scale * x)
        if not largest(off) <= MOVES_BY_ITSELF:
            i = int(np.argmax(off))
            raise InconsistentError(
                f"{mech.name}: rest is impossible at t = {t:g} s: the constraint "
                f"{mech.row_names[i]!r} {what} by itself, by {off[i]:.3g} {unit} (scaled); take an "
                "instant at which it rests, or linearize along the motion",
                residual=float(off[i]),
            )


def _none_found(balance: Balance, start: Vector, fixed: list[str]) -> Exception:
    mech, kin = balance.mech, balance.at(start)
    residual = balance.off(kin)
    pulled = pulled_motion(balance, start) or "some motion"
    kept = f" with {listing(fixed)} locked" if fixed else ""
    if balance.u is not None:
        return InconsistentError(
            f"{mech.name}: the given efforts hold it nowhere near the guess{kept}; at the guess "
            f"{pulled} is out of balance by {residual:.2g} of the efforts that act. Give other "
            "efforts, a guess nearer to an equilibrium, or no efforts, so that they are computed",
            residual=residual,
        )
    more = "fewer locked coordinates, " if fixed else ""
    return NotActuatedError(
        f"{mech.name}: no equilibrium was found near the guess{kept}: no motor holds {pulled}. "
        f"Likely causes: {more or ''}a mechanism that falls (a floating base without contact), or "
        "a guess too far away"
    )
