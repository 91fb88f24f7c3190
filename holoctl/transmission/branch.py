"""The closed configuration as a function of the positions of some joints, in any order of calls.

    K(q) d = right(q)        along the straight line from the start to x

A result is given only if every step was proved to stay on the branch (closing/continuation.py), and
det J of the motors by these joints to keep its sign by the same rule. Two paths to the same x may
lead to different configurations without passing a singular one, around a cusp of the singular
curves; so every call begins at the start, whatever was asked before.
Reference: C. Innocenti and V. Parenti-Castelli, Singularity-free evolution from one configuration
to another in serial and fully-parallel manipulators, J. Mech. Design 120, 1998.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, counted, listing, read_only
from holoctl.base.errors import BranchError, HoloctlError, InputError
from holoctl.base.linalg import largest
from holoctl.base.tolerances import LEFT_OPEN
from holoctl.closing.continuation import determinant_kept
from holoctl.estimation.branch_continuation import FollowedState, Tally, following
from holoctl.estimation.closed_state_estimator import first_state
from holoctl.estimation.measurement_model import measurement_model
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.rows.evaluate import rows_at
from holoctl.rows.tick.user_rows import check_ticks

__all__ = ["JointBranch", "control_lost", "named_positions"]

SERIAL = "the joints", "name"
"""The words of messages for the joints of a branch: see `observability.MEASURED`."""

FACTORED_CALL = 20_000
"""Most factorisations in a call: a path across the workspace takes some tens, a hundred turns of a
joint some thousands."""


CLOSED = 1e-12  # rad, m
"""A step of Newton's method after which the rows are not evaluated again: it changes the Jacobian
by a few parts in 1e12."""

STILL = 1e-9
"""A joint does not move if its rate, by those of the motions (scaled), is smaller."""


class JointBranch:
    """The closed configurations on the branch of a start, by the positions of some joints.

    It has workspaces: one for each thread.

    Parameters
    ----------
    mech : Mechanism
        Without constraints that depend on time.
    names : tuple of p str
        Joints or coordinates that determine all motions but idle ones.
    start : (nq,) array
        A closed configuration.
    part : Partition, optional
        Its rows are kept, and `names` may be more than the motions: least squares. Default: chosen
        at the start.

    Attributes
    ----------
    names : tuple of str
    start : (nq,) array
        The start, closed to rounding.
    first : (p,) array
        The positions there.
    part : Partition

    Raises
    ------
    HoloctlError
        As `ClosedStateEstimator`.
    """

    def __init__(
        self, mech: Mechanism, names: tuple[str, ...], start: Vector, part: Partition | None = None
    ) -> None:
        check_ticks(mech)
        sensors, q = measurement_model(mech, names), check_configuration(mech, start, "start")
        even = np.ones(sensors.columns.size)
        found, _, system, place = first_state(mech, sensors, even, part, q, 0.0, SERIAL)
        if part is None:
            _check_count(mech, names, place.gamma)
        self.mech, self.names, self.part = mech, names, found
        self.system, self._start = system, place
        self._model, self._last = sensors, place
        self._follow = following(mech, system, self._controlled)
        self._B = np.asarray(mech.B)
        self.start = read_only(self._start.q.copy())
        self.first = self._model.at(self.start)
        self._bent = self._second_derivatives()
        self._x = b""  # the positions at which the system is factored, as bytes

    def at(self, x: Vector) -> FollowedState:
        """The configuration at positions x (p,), rad or m; the system is factored there.

        Raises
        ------
        BranchError
            If the straight line from the start does not lead to x on this branch.
        """
        given = x.tobytes()
        if given == self._x:
            return self._last
        self._x, tally, place = b"", Tally(FACTORED_CALL), self._start
        way = self.system.difference(place.q, x, place.cut)
        step = self.system.combined(place.borders, way)
        place = place._replace(bend=self._bent.dot(step), step=step, square=float(step.dot(step)))
        found = self._follow(place, x, way, 0.0, tally)
        if found is None and tally.why == "control":
            raise control_lost(self.mech, self.names, x)
        if found is None:
            raise _out_of_reach(self, x, tally)
        self._last = self._refined(found, x)
        self._check_left_out()
        self._x = given
        return self._last

    def _controlled(self, here: FollowedState, there: FollowedState) -> bool:
        """Whether the determinant of the rates of the motors by those of the joints keeps its sign,
        and changes by a limited factor, on a substep; always if there are more of one of them."""
        if self._B.shape[1] != here.gamma.shape[1]:
            return True
        before, after = (_determinant(place.gamma.T.dot(self._B)) for place in (here, there))
        return determinant_kept(after / before)

    def positions(self, q: Vector) -> Vector:
        """The positions (p,) of the joints of `names` at a configuration, rad or m."""
        return self._model.at(q)

    def bias(self, q: Vector, v: Vector) -> Vector:
        """The acceleration (nv,) with the joints of `names` at constant rates; q is the last
        configuration."""
        system, r, fast = self.system, self.part.rank, self.system.rows.fast
        right = np.zeros(system.unknown.size)
        if fast is not None and fast.moved(q, v, 0.0):
            right[:r] = fast.right
        else:
            drift = self.mech.row_scale * rows_at(self.mech, q, v, 0.0).drift
            right[:r] = -drift[self.part.rows]
        return system.solved(right).copy()

    def idle(self) -> Array:
        """The idle motions at the last configuration, (nv, i), with the joints at rest."""
        n, i = self.system.unknown.size, self._start.borders.N.shape[1]
        columns = []
        for j in range(i):
            right = np.zeros(n)
            right[n - i + j] = 1.0
            columns.append(self.system.solved(right).copy())
        return np.array(columns).reshape(i, self.mech.nv).T

    def _second_derivatives(self) -> Array:
        """Those of a step at the start by the step of the sensors, (nv, b, b), by polarisation of
        the bias, which is quadratic in the rates."""
        start, b = self._start, self._start.gamma.shape[1]
        self.system.evaluate(start.q, 0.0)
        self.system.factor(start.borders)
        along = [self.bias(start.q, g) for g in start.gamma.T]
        found = np.zeros((self.mech.nv, b, b))
        for i, j in product(range(b), repeat=2):
            both = self.bias(start.q, start.gamma[:, i] + start.gamma[:, j])
            found[:, i, j] = 0.5 * (both - along[i] - along[j])
        return found

    def _refined(self, place: FollowedState, x: Vector) -> FollowedState:
        """The place after one more Newton step: closed to rounding."""
        system = self.system
        right, _ = system.right(place.q, x, place.borders)
        d = system.solved(right)
        flat = self.mech.nq == self.mech.nv
        q = place.q + d if flat else pin.integrate(self.mech.model, place.q, d)
        if largest(d) <= CLOSED:
            return place._replace(q=q)
        system.evaluate(q, 0.0)
        system.factor(place.borders)
        return place._replace(q=q, gamma=system.gamma())

    def _check_left_out(self) -> None:
        """Raise `BranchError` if rows that were left out as redundant are open."""
        if not self.system.redundant:
            return
        error = self.system.open(slice(self.system.rank, None))
        if error > max(LEFT_OPEN, self.part.tolerance):
            raise BranchError(
                f"{self.mech.name}: rows left out as redundant would have an error of "
                f"{error:.1e} (scaled): the rows that are kept do not determine the motion there; "
                "start from a configuration nearby",
                why="rows",
            )


def _determinant(a: Array) -> float:
    """Of a small matrix: `np.linalg.det` takes ten times as long for two rows."""
    if len(a) == 2:
        (p, q), (r, s) = a.tolist()
        return float(p * s - q * r)
    return float(a[0, 0]) if len(a) == 1 else float(np.linalg.det(a))


def _check_count(mech: Mechanism, names: tuple[str, ...], gamma: Array) -> None:
    """Raise `InputError` if there are more joints than motions, the columns of gamma (nv, k)."""
    motions = gamma.shape[1]
    still = [n for n in names if largest(gamma[mech.coordinate_names.index(n)]) < STILL]
    hinge = (
        "mobility, or holoctl doctor, names the locked joints. A common cause is a rod on a hinge "
        "that should be a ball or a universal joint"
    )
    if motions == 0:
        raise InputError(
            f"{mech.name}: its loops cannot move: they have too many constraints. {hinge}"
        )
    if still:
        raise InputError(f"{mech.name}: the loops do not let {listing(still)} move. {hinge}")
    if len(names) > motions:
        raise InputError(
            f"{mech.name}: {listing(names)} are {len(names)} joints for "
            f"{counted(motions, 'motion')}, so they depend on each other; leave out "
            f"{len(names) - motions} of them"
        )


def control_lost(mech: Mechanism, joints: tuple[str, ...], y: Vector) -> BranchError:
    """The error for joint positions at or beyond a configuration in which motors do not hold
    them."""
    return BranchError(
        f"{mech.name}: at {named_positions(joints, y)} the motors lose control of a joint, or have "
        "lost it between the start and there: det J is zero there or on the way (a type-2, "
        "parallel singularity)",
        why="control",
    )


def named_positions(names: tuple[str, ...], x: Vector) -> str:
    """``name = position`` of each joint, for messages."""
    return ", ".join(f"{n} = {a:.4g}" for n, a in zip(names, x, strict=True))


def _out_of_reach(branch: JointBranch, x: Vector, tally: Tally) -> HoloctlError:
    """The error for positions that no path from the start leads to."""
    if tally.factored >= tally.most:
        return BranchError(
            f"{branch.mech.name}: the way from the start to these positions is too long for one "
            f"call ({tally.most} factorisations): are they degrees?",
            why="reach",
        )
    wanted = named_positions(branch.names, x)
    first = ", ".join(f"{a:.4g}" for a in branch.first)
    far = largest(x - branch.first)
    return BranchError(
        f"{branch.mech.name}: {wanted} is not reached on the branch of the start ({first}): after "
        f"{100.0 * tally.reached:.0f} % of the straight line from there the mechanism comes to a "
        f"singular configuration, or nearly. Likely causes: positions out of reach (the largest "
        f"is {far:.3g} rad or m from the start), degrees for rad, or another order than "
        f"{listing(branch.names)}",
        why="reach",
    )
