"""The projection, or terms and partition, of a state: given by a caller, or computed.

Given ones are checked against the state of the call.
"""

from __future__ import annotations

from typing import Any

from holoctl.base.errors import InputError
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_determined, shared_partition
from holoctl.projector.projection import Projection, project
from holoctl.rows.stabilisation import TimeConstants
from holoctl.rows.terms import Terms, check_same_state, shared_terms

__all__ = ["shared_projection", "shared_state"]


def shared_state(
    mech: Mechanism,
    q: Any,
    v: Any,
    t: Any,
    t_stab: TimeConstants = None,
    partition: Partition | None = None,
    projection: Projection | None = None,
    terms: Terms | None = None,
) -> tuple[Terms, Partition]:
    """Terms and partition, for a law that needs no basis."""
    if projection is not None:
        P = shared_projection(mech, q, v, t, t_stab, partition, projection, terms)
        return P.terms, P.partition
    T = shared_terms(terms, mech, q, v, t, t_stab)
    part = shared_partition(partition, T)
    check_determined(T, part)
    return T, part


def shared_projection(
    mech: Mechanism,
    q: Any,
    v: Any,
    t: Any,
    t_stab: TimeConstants = None,
    partition: Partition | None = None,
    projection: Projection | None = None,
    terms: Terms | None = None,
) -> Projection:
    """The given projection, checked, or a new one.

    Parameters
    ----------
    mech, q, v, t
        The state given by a caller, unchecked.
    t_stab : float, False or mapping of str to float or False, optional
    partition : Partition, optional
        None: determined at the closed configuration nearest to q.
    projection : Projection, optional
    terms : Terms, optional
    """
    if projection is None:
        return project(mech, q, v, partition=partition, t_stab=t_stab, t=t, terms=terms)
    if not isinstance(projection, Projection) or projection.mechanism is not mech:
        raise InputError("projection must be a Projection of the same mechanism object")
    if partition is not None or t_stab is not None or terms is not None:
        raise InputError(
            "give partition=, t_stab= and terms= to project, not together with projection="
        )
    check_same_state(projection.terms, "projection was", q, v, t)
    return projection
