"""The efforts of a controller whose mechanism stands on unilateral contacts.

`ContactPaths` takes the place of the inverse dynamics (dynamics/tick/inverse_with_fallback.py): the
reduced terms come from the tick of the rows of constraints, contacts and tasks, or from a
projection if that is in doubt; the law is contact_law.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector, finite, listing, name_list, shown, suggestion
from holoctl.base.errors import InputError
from holoctl.constraints.unilateral_contact import checked_contacts
from holoctl.constraints.wrench_rows import stacked
from holoctl.control.contact_inverse_dynamics import reduced_terms
from holoctl.control.contact_joints import JointRows, joint_rows
from holoctl.control.contact_law import ContactSolution, active_conditions, contact_solution
from holoctl.control.contact_motion import ReducedTerms
from holoctl.control.contact_rows import (
    BoundContact,
    ContactRows,
    bound_contacts,
    check_tilt,
    cones,
    contact_rows,
)
from holoctl.control.controller_limits import limits_law
from holoctl.control.effort_bounds import effort_bounds
from holoctl.control.limit_policies import LimitsLaw
from holoctl.dynamics.actuation import effort_scales
from holoctl.dynamics.certificate import off_rows
from holoctl.dynamics.tick.constraints_and_tree import TickState, numeric_constraints, numeric_tree
from holoctl.dynamics.tick.inverse_tick import PASSIVE_DOUBT
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
from holoctl.dynamics.tick.thread_workspace import in_own_workspace
from holoctl.mechanism.checks import check_state
from holoctl.mechanism.limited_coordinates import coordinates_at
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.coordinate_split import split_rows
from holoctl.projector.partition import Partition
from holoctl.projector.projection import Projection, projection_of
from holoctl.rows.constraint_residuals import constraint_residuals
from holoctl.rows.state_limits import StateLimits, check_solution
from holoctl.rows.terms import check_finite, terms_at
from holoctl.rows.tick.fast_rows import Beside, why_not
from holoctl.tree.live_motion import LiveMotion, add_vector, live_motion

__all__ = [
    "ContactLimiting",
    "ContactPaths",
    "Motions",
    "WeightedRows",
    "acting",
    "contact_paths",
    "motor_rows",
]

Motions = Callable[[Any, Vector, Vector, float], tuple[Array, Vector]]
"""motions(target, q, v, t): scaled rows of tasks (n, nv), and their wanted accelerations less the
drift (n,)."""


class WeightedRows(NamedTuple):
    """The rows of tasks, weighted and scaled, and their wanted accelerations.

    Attributes
    ----------
    at : function (P, target) -> (T, t)
        T (n, nv), and the accelerations less the drift (n,).
    prepare : function (motion) -> Motions or None
        The same in a tick; None if a task has none.
    """

    at: Callable[[Projection, Any], tuple[Array, Vector]]
    prepare: Callable[[LiveMotion], Motions | None]


def motor_rows(mech: Mechanism) -> WeightedRows:
    """The rows of accelerations of the motors; the target are these."""
    scale = effort_scales(mech)[0]
    rows = scale[:, None] * mech.B.T
    return WeightedRows(
        lambda P, target: (rows, scale * target),
        lambda motion: lambda target, q, v, t: (rows, scale * target),
    )


class HereOnContacts(NamedTuple):
    """What the law needs at a state.

    Attributes
    ----------
    terms : ReducedTerms
    ground : ContactRows
    joints : JointRows or None
    keeps : function (y) -> bool, or None
        Whether a motion satisfies the redundant rows too; the general path raises an error. None
        without redundant rows.
    """

    terms: ReducedTerms
    ground: ContactRows
    joints: JointRows | None
    keeps: Callable[[Vector], bool] | None


Reduce = Callable[[Vector, Vector, float, Vector | None, Any], HereOnContacts | None]
"""reduce(q, v, t, known, target); None if the general path must be used."""


class ContactLimiting(NamedTuple):
    """The active conditions of a tick, for its report; their names are made when they are read."""

    mech: Mechanism
    ground: ContactRows
    found: ContactSolution
    joints: JointRows | None

    @property
    def saturated(self) -> tuple[str, ...]:
        """Motors and contacts, as in `ContactInverseDynamics`."""
        return active_conditions(self.mech, self.ground, self.found, self.joints)

    @property
    def softened(self) -> tuple[str, ...]:
        """Contacts that may slip, because they could not all be kept."""
        return tuple(one.name for one in self.ground.contacts) if self.found.slipping else ()

    @property
    def scale(self) -> float:
        """The motion is the nearest one, no fraction of the commanded one."""
        return float("nan")


@dataclass(frozen=True, eq=False)
class ContactPaths:
    """`Paths` on contacts.

    Attributes
    ----------
    mech : Mechanism
    partition : Partition
    contacts : tuple of BoundContact
        Those that act.
    limits : StateLimits
        Of the closure and velocity errors of a state.
    law : LimitsLaw
        The limits of motors and joints.
    policy : str
        ``"raise"`` or ``"nearest"``.
    tasks : WeightedRows
    """

    mech: Mechanism
    partition: Partition
    contacts: tuple[BoundContact, ...]
    limits: StateLimits
    law: LimitsLaw
    policy: str
    tasks: WeightedRows
    _local: threading.local = field(init=False, repr=False, default_factory=threading.local)
    _others: dict[tuple[str, ...], ContactPaths] = field(
        init=False, repr=False, default_factory=dict
    )

    def acting(self, names: Any) -> ContactPaths:
        """The same with some of the contacts; with all for None.

        Raises
        ------
        InputError
            For names of no contact.
        """
        if names is None:
            return self
        given = (names,) if isinstance(names, str) else tuple(name_list("active", names))
        if given not in self._others:
            known = [one.name for one in self.contacts]
            for name in given:
                if not isinstance(name, str) or name not in known:
                    raise InputError(
                        f"active: there is no contact {shown(name)!r}{suggestion(name, known)}; "
                        f"contacts of this controller: {listing(known)}"
                    )
            chosen = tuple(one for one in self.contacts if one.name in given)
            self._others[given] = replace(self, contacts=chosen)
        return self._others[given]

    def efforts(
        self, target: Any, rates: Vector | None, q: Vector, v: Vector, t: float,
        known: Vector | None,
    ) -> Vector:  # fmt: skip
        """See `Paths`. Friction of the mechanism is evaluated at v."""
        here = in_own_workspace(self._local, self._prepared, q, v, t, known, target)
        found = None
        if here is not None and finite(here.terms.g):
            found = self._solved(here, v)
        if found is None:
            found = self._solved(self._in_general(q, v, t, known, target), v)
        if found is None or not finite(found.u):
            raise InputError("the torque is not finite: an input or the model is out of range")
        return found.u

    def _solved(self, here: HereOnContacts, v: Vector) -> ContactSolution | None:
        """The solution; None if its motion does not satisfy the redundant rows."""
        if not finite(here.terms.t):
            raise InputError(
                f"{self.mech.name}: a target is not finite, or out of range, so no torque is given"
            )
        bounds = effort_bounds(self.law.bound, self.mech.B.T.dot(v))
        found = contact_solution(
            self.mech, here.terms, here.ground, bounds, self.policy, joints=here.joints
        )
        if here.keeps is not None and not here.keeps(found.motion()):
            return None
        self._local.last = ContactLimiting(self.mech, here.ground, found, here.joints)
        return found

    def last(self) -> None:
        """See `Paths`: there are no further results."""

    def limiting(self) -> ContactLimiting | None:
        """The active conditions of the last call in this thread; None without any."""
        last: ContactLimiting = self._local.last
        return None if last.found.multipliers is None else last

    def _in_general(
        self, q: Vector, v: Vector, t: float, known: Vector | None, target: Any
    ) -> HereOnContacts:
        q, v, t = check_state(self.mech, q, v, t)
        T = terms_at(self.mech, q, v, t)
        check_finite(T)
        off = constraint_residuals(T)
        self.limits.check(self.mech.name, *off)
        P = projection_of(T, self.partition)
        ground = contact_rows(P.kinematics, self.contacts)
        tasks = self.tasks.at(P, target)
        efforts = T.F if known is None else T.F + known
        N, terms = reduced_terms(P, ground, tasks, efforts)
        allowed = T.stiffness * self.partition.tolerance

        def keeps(y: Vector) -> bool:
            broken = off_rows(T, P.bias + N @ y)
            check_solution(self.mech.name, *off, broken, 0.0, P.condition, allowed)
            return True

        return HereOnContacts(terms, ground, self._joints(P.q, P.v, t, N, P.bias), keeps)

    def _joints(self, q: Vector, v: Vector, t: float, N: Array, a0: Vector) -> JointRows | None:
        law = self.law
        if not law.bound.names:
            return None
        return joint_rows(law, coordinates_at(self.mech, law.bound, q, v, t), N, a0)

    def _prepared(self) -> Reduce | None:
        """The tick of this thread; None if only the general path can be used."""
        mech, part = self.mech, self.partition
        motion = live_motion(mech.model, mech.model.createData())
        if motion is None or why_not(mech, motion):
            return None
        motions = self.tasks.prepare(motion)
        if motions is None:
            return None
        tables = [task.rows for one in self.contacts for task in one.rows]
        scale = np.concatenate([np.zeros(0), *(one.scale for one in self.contacts)])
        more = Beside(stacked(tables), scale) if tables else None
        k, nv = part.independent.size, mech.nv
        split = split_rows(mech, part, part.independent, motion, PASSIVE_DOUBT, self.limits, more)
        here = TickState()
        K = numeric_constraints(mech, part, split, here, False, None, "project")
        tree = numeric_tree(mech, split.data, motion, here)
        flat, rest, BT = _tilts(self.contacts, motion), np.zeros(k), np.ascontiguousarray(mech.B.T)
        still, kept_by = (np.zeros((0, k)), np.zeros(0)), split.kept_by
        ground = ContactRows(
            self.contacts, np.zeros((0, nv)), np.zeros(0), *cones(self.contacts), scale
        )

        def reduce(
            q: Vector, v: Vector, t: float, known: Vector | None, target: Any
        ) -> HereOnContacts | None:
            if not split.constrain(q, v, t):
                return None
            here.at(q, v, t, known)
            flat()
            T, wanted = motions(target, q, v, t)
            a0 = K.motion(rest).copy()
            g = K.along(tree.needed(a0, None))
            N = K.basis()
            W = N.T.dot(tree.inertia_times(N))
            J, c = still
            if split.more is not None:
                J, Ja, _ = K.rows((split.more.dep, split.more.ind))
                c = split.more.rows.right - Ja
            L = tree.lower(W)
            if here.doubtful:
                return None
            terms = ReducedTerms(W, g, BT.dot(N).T, J, c, T.dot(N), wanted - T.dot(a0), L)
            keeps = None if kept_by is None else lambda y: kept_by(v, a0 + N.dot(y))
            return HereOnContacts(terms, ground, self._joints(q, v, t, N, a0), keeps)

        return reduce


def contact_paths(
    options: Any, prepared: PreparedInverseDynamics, tasks: WeightedRows
) -> ContactPaths:
    """The paths of a controller with these options.

    Raises
    ------
    InputError
        For contacts and limits as `contact_inverse_dynamics`, and for options that contacts
        exclude.
    """
    mech = prepared.mech
    for name, excluded in (
        ("policy 'scale'", options.policy == "scale"),
        ("compensation 'gravity'", getattr(options, "compensation", "full") == "gravity"),
        ("an integral ki", np.any(getattr(options, "ki", 0.0))),
        ("weights of efforts", options.weights is not None),
        ("an estimator", options.estimator is not None),
        ("a margin", options.margin is not None),
        ("at_singular 'damp'", getattr(options, "at_singular", "raise") == "damp"),
    ):
        if excluded:
            raise InputError(f"{mech.name}: {name}: not together with contacts")
    law = limits_law(mech, options.limits or Limits(), "nearest", options.dt)
    standing = bound_contacts(mech, checked_contacts(options.contacts))
    return ContactPaths(
        mech, prepared.partition, standing, prepared.limits, law, options.policy, tasks
    )


def acting(standing: ContactPaths | None, names: Any) -> ContactPaths | None:
    """The paths on those contacts that act now; None for a controller without contacts.

    Raises
    ------
    InputError
        For names of no contact.
    """
    if standing is not None:
        return standing.acting(names)
    if names is not None:
        raise InputError("active: this controller has no contacts; give it contacts=")
    return None


def _tilts(contacts: Sequence[BoundContact], motion: LiveMotion) -> Callable[[], None]:
    """A function that raises `InconsistentError` for a sole that is tilted."""
    soles = [one for one in contacts if one.sole is not None]
    choice = np.zeros((2 * len(soles), motion.placements.shape[0]))
    for i, one in enumerate(soles):
        z = one.sole.placement.rotation[:, 2] if one.sole else np.zeros(3)
        add_vector(choice[2 * i], one.frame, [*z, 0.0])
        add_vector(choice[2 * i + 1], one.ground, [0.0, 0.0, 1.0, 0.0])

    def check() -> None:
        axes = choice.dot(motion.placements)
        for one, cosine in zip(soles, np.vecdot(axes[::2], axes[1::2]).tolist(), strict=True):
            check_tilt(one, cosine)

    return check
