"""What a law is called with: a state, and what was decided or computed there before.

Laws take many arguments that only mean something together; here they become one value, and are
checked or made anew once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from holoctl.base.errors import InputError
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_determined, shared_partition
from holoctl.projector.projection import Projection, finite_projection, projection_of
from holoctl.rows.stabilisation import TimeConstants
from holoctl.rows.terms import Terms, check_same_state, shared_terms

__all__ = ["Given", "given_projection", "given_terms"]


class Given(NamedTuple):
    """A state as a caller gives it, unchecked, and what there is to share.

    Attributes
    ----------
    mech, q, v, t
        The state.
    t_stab : float, False or mapping of str to float or False, optional
    partition : Partition, optional
        None: decided at the closed configuration nearest to q.
    projection : Projection, optional
    terms : Terms, optional
    """

    mech: Mechanism
    q: Any
    v: Any
    t: Any = 0.0
    t_stab: TimeConstants = None
    partition: Partition | None = None
    projection: Projection | None = None
    terms: Terms | None = None


def given_terms(x: Given) -> tuple[Terms, Partition]:
    """Terms and partition, for a law that needs no basis."""
    if x.projection is not None:
        P = given_projection(x)
        return P.terms, P.partition
    T = shared_terms(x.terms, x.mech, x.q, x.v, x.t, x.t_stab)
    part = shared_partition(x.partition, T)
    check_determined(T, part)
    return T, part


def given_projection(x: Given) -> Projection:
    """The projection: the one that was given, checked, or a new one."""
    P = x.projection
    if P is None:
        return finite_projection(projection_of(*given_terms(x)))
    if not isinstance(P, Projection) or P.mechanism is not x.mech:
        raise InputError("projection must be a Projection of this very mechanism")
    if x.partition is not None or x.t_stab is not None or x.terms is not None:
        raise InputError(
            "give partition=, t_stab= and terms= to project, not along with projection="
        )
    check_same_state(P.terms, "projection was", x.q, x.v, x.t)
    return P
