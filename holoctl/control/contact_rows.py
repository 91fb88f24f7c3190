"""The rows and the friction cones of unilateral contacts, stacked, at a state.

    d/dt (J v) = J a + drift = 0        cone f <= bound        efforts of the ground: J' f

Rows and forces f are along the axes of each contact (constraints/unilateral_contact.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import block_diag

from holoctl.base.checks import Array, Vector, entries, listing, shown
from holoctl.base.errors import InputError
from holoctl.constraints.unilateral_contact import UnilateralContact
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.kinematics import Kinematics

__all__ = ["ContactRows", "checked_contacts", "contact_rows"]


class ContactRows(NamedTuple):
    """The contacts at a state: m rows, and c conditions on the forces along them.

    Attributes
    ----------
    contacts : tuple of UnilateralContact
    jacobian : (m, nv) array
    drift : (m,) array
    cone : (c, m) array
    bound : (c,) array
    labels : tuple of c (str, int, str)
        Contact, index of its point, and what an active condition means: ``"slides"``, ``"lifts"``
        or ``"presses"``.
    """

    contacts: tuple[UnilateralContact, ...]
    jacobian: Array
    drift: Vector
    cone: Array
    bound: Vector
    labels: tuple[tuple[str, int, str], ...]

    def forces(self, f: Vector) -> dict[str, Array]:
        """The force on each point, (points, 3) for each contact, world axes, N."""
        found, at = {}, 0
        for contact in self.contacts:
            axes, n = contact.axes, len(contact.points)
            rows = n * len(axes)
            found[contact.default_name] = f[at : at + rows].reshape(n, -1) @ axes
            at += rows
        return found


def checked_contacts(contacts: Any) -> tuple[UnilateralContact, ...]:
    """The contacts that a caller gives.

    Raises
    ------
    InputError
        For anything else, and for two contacts of one name.
    """
    given = [contacts] if isinstance(contacts, UnilateralContact) else entries(contacts)
    if given is None or not all(isinstance(one, UnilateralContact) for one in given):
        raise InputError(
            f"contacts must be a list of hc.UnilateralContact; got {shown(contacts)!r}"
        )
    names = [contact.default_name for contact in given]
    if len(set(names)) < len(names):
        raise InputError(
            f"contacts must have different names; got {listing(names)}: give name= to some"
        )
    return tuple(given)


def contact_rows(
    mech: Mechanism, kin: Kinematics, contacts: Sequence[UnilateralContact]
) -> ContactRows:
    """The rows and cones of some contacts.

    Raises
    ------
    InputError
        For unknown frames, and frames of the world.
    """
    jacobian, drift = [np.zeros((0, mech.nv))], [np.zeros(0)]
    cones, bounds, labels = [], [np.zeros(0)], list[tuple[str, int, str]]()
    for contact in contacts:
        cone, bound = contact.cone
        kinds = [*(len(bound) - 2) * ["slides"], "lifts", "presses"]
        for i, point in enumerate(_bound(mech, contact)):
            rows = point.rows(kin)
            jacobian.append(rows.jacobian)
            drift.append(rows.drift)
            cones.append(cone)
            bounds.append(bound)
            labels += [(contact.default_name, i, kind) for kind in kinds]
    return ContactRows(
        tuple(contacts), np.concatenate(jacobian), np.concatenate(drift),
        block_diag(*cones) if cones else np.zeros((0, 0)), np.concatenate(bounds), tuple(labels),
    )  # fmt: skip


def _bound(mech: Mechanism, contact: UnilateralContact) -> tuple[WrenchRows, ...]:
    """The rows of each point, looked up once for each mechanism and thread."""
    known: WeakKeyDictionary[UnilateralContact, tuple[WrenchRows, ...]]
    known = mech.per_thread("unilateral_contacts", WeakKeyDictionary)
    if contact not in known:
        known[contact] = tuple(
            point.bind(mech.model, point.default_name, mech.reference)
            for point in contact.bilateral
        )
    return known[contact]
