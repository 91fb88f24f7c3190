"""The points of unilateral contacts at a state: their gaps, and their accelerations under forces.

    gap = n . (p - ground) >= 0        d/dt (J v) = W x + c
    W = J gamma H^-1 gamma' J'         c = J a + drift, a without contact forces

Rows are along (normal, tangent, tangent) of each point; gamma is that of the mechanism without its
contacts, so that loops hold exactly.
Derivation: docs/derivations-dynamics.md, "Simulation with contacts".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import cholesky
from holoctl.base.tolerances import SINGULAR
from holoctl.constraints.contact import Contact
from holoctl.constraints.unilateral_contact import UnilateralContact, checked_contacts
from holoctl.constraints.wrench_rows import WrenchRows, stacked
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.projector.partition import Partition
from holoctl.projector.projection import projected
from holoctl.tree.kinematics import kinematics

WORLD = "universe"

__all__ = ["ContactPoints", "FreeMotion", "PointMotion", "contact_points"]


class PointMotion(NamedTuple):
    """Positions relative to the ground and velocities of all points, (n, 3), along their axes."""

    position: Array
    velocity: Array


class FreeMotion(NamedTuple):
    """Accelerations c of the points without contact forces, (3n,), and what forces change; their
    velocity, (n, 3).

    `response(x)` is the change of the acceleration of the plant, (nv,), by forces x (3n,); with
    velocities instead of accelerations, by impulses.
    """

    W: Array
    c: Vector
    response: Callable[[Vector], Vector]
    a: Vector
    velocity: Array


@dataclass(frozen=True, eq=False)
class ContactPoints:
    """All points of the contacts of a run.

    Attributes
    ----------
    contacts : tuple of UnilateralContact
    rows : tuple of n Contact
        The bilateral rows of each point.
    labels : tuple of n (str, int)
        The contact and the index of the point in it.
    axes : (n, 3, 3) array
        Normal and tangents of each point, world.
    friction, restitution : (n,) arrays
    table : WrenchRows
        The rows of all points, bound to the model.
    """

    contacts: tuple[UnilateralContact, ...]
    rows: tuple[Contact, ...]
    labels: tuple[tuple[str, int], ...]
    axes: Array
    friction: Vector
    restitution: Vector
    table: WrenchRows

    def motion(self, plant: Mechanism, q: Vector, v: Vector, t: float) -> PointMotion:
        """Where the points are, and how fast."""
        rows = self.table.rows(kinematics(plant.model, workspace(plant), q, v, t))
        return PointMotion(rows.error.reshape(-1, 3), rows.rate.reshape(-1, 3))

    def free(
        self, plant: Mechanism, part: Partition, q: Vector, v: Vector, t: float, tau: Vector
    ) -> FreeMotion:
        """Their accelerations without contact forces; tau are the efforts on the coordinates."""
        P = projected(plant, q, v, t, part)
        T, gamma = P.terms, P.gamma
        H = cholesky(gamma.T @ T.M @ gamma)
        if H.condition > SINGULAR:
            raise SingularityError(
                f"{plant.name}: some motion that the constraints allow has no inertia (condition "
                f"number of gamma' M gamma {H.condition:.1e})",
                condition=H.condition,
            )
        rows = self.table.rows(T.kinematics)
        a = gamma @ H.solve(gamma.T @ (tau + T.F - T.h - T.M @ P.bias)) + P.bias
        reduced = rows.jacobian @ gamma
        half = H.whitened(reduced)
        return FreeMotion(
            half @ half.T, rows.jacobian @ a + rows.drift,
            lambda x: gamma @ H.solve(reduced.T @ x), a, rows.rate.reshape(-1, 3),
        )  # fmt: skip

    def forces(self, x: Array) -> dict[str, Array]:
        """Forces x (N, n, 3) along the axes of the points: by contact, (N, points, 3), world
        axes."""
        world = np.einsum("Nij,ijk->Nik", x, self.axes)
        found, start = dict[str, Array](), 0
        for contact in self.contacts:
            stop = start + len(contact.points)
            found[contact.default_name], start = world[:, start:stop].copy(), stop
        return found

    def name(self, i: int) -> str:
        """A point in words."""
        contact, index = self.labels[i]
        return f"point {index} of contact {contact!r}"


def contact_points(mech: Mechanism, contacts: Any) -> ContactPoints | None:
    """The points of the contacts that a caller gives; None without contacts.

    Raises
    ------
    InputError
        For anything else, for names that are not unique or those of constraints, unknown frames,
        and frames of the world.
    """
    given = checked_contacts(contacts)
    if not given:
        return None
    _check_names(mech, given)
    moving = [c.default_name for c in given if c.relative_to != WORLD]
    if moving:
        raise InputError(
            f"a simulation has the ground in the world; {listing(moving)} are relative to a body"
        )
    rows = tuple(
        replace(point, tangents=True, ground=contact.ground)
        for contact in given
        for point in contact.bilateral
    )
    bound = [row.bind(mech.model, row.default_name, mech.reference) for row in rows]
    each = [(contact, i) for contact in given for i in range(len(contact.points))]
    return ContactPoints(
        given, rows, tuple((contact.default_name, i) for contact, i in each),
        np.array([[row.normal, *row.tangents] for row in rows]),  # type: ignore[misc]
        np.array([contact.friction for contact, _ in each]),
        np.array([contact.restitution for contact, _ in each]), stacked(bound),
    )  # fmt: skip


def _check_names(mech: Mechanism, contacts: Sequence[UnilateralContact]) -> None:
    names = [row.default_name for contact in contacts for row in contact.bilateral]
    taken = sorted(set(names) & set(mech.constraint_names))
    if taken or len(set(names)) < len(names):
        raise InputError(
            f"{mech.name}: the points of contacts need names of their own, those of contacts with "
            f"_1, _2 and so on; {listing(taken or names)} are in use: give name= to the contacts"
        )
