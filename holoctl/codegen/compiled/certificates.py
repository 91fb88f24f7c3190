"""Certificates of compiled answers, measured in Python: the acceleration is that of the general
path, or the one to be judged; so are the efforts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holoctl.base.checks import Vector, quiet
from holoctl.dynamics.certificate import Certificate, certify
from holoctl.dynamics.forward import forward_dynamics
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import inverse_tree_dynamics
from holoctl.projector.multipliers import multipliers
from holoctl.projector.partition import Partition
from holoctl.rows.terms import Terms, terms

__all__ = ["forward_certificate", "inverse_certificate"]


@quiet
def inverse_certificate(
    mech: Mechanism, part: Partition, weights: Vector | None, inconsistent: str,
    state: tuple[Any, Any, Any, Any], efforts: Callable[[], Vector],
) -> Certificate:  # fmt: skip
    """Of the motor efforts that `efforts` gives, at (q, v, target, t).

    Raises
    ------
    InputError, SingularityError, InconsistentError, NotActuatedError
        As the function `inverse_dynamics`.
    """
    q, v, target, t = state
    T = terms(mech, q, v, t=t)
    general = inverse_dynamics(
        mech, q, v, target, inconsistent=inconsistent, weights=weights, t=t, partition=part,
        terms=T,
    )  # fmt: skip
    delivered = mech.B @ efforts() + T.F
    return _measured(T, part, general.a, delivered, general.certificate.condition)


@quiet
def forward_certificate(
    mech: Mechanism, part: Partition, state: tuple[Any, Any, Any, Any], a: Vector
) -> Certificate:
    """Of an acceleration, at (q, v, tau, t).

    Raises
    ------
    InputError, SingularityError
        As the function `forward_dynamics`.
    """
    q, v, tau, t = state
    T = terms(mech, q, v, t=t)
    general = forward_dynamics(mech, q, v, tau, t=t, partition=part, terms=T)
    return _measured(T, part, a, tau + T.F, general.certificate.condition)


def _measured(
    T: Terms, part: Partition, a: Vector, efforts: Vector, condition: float
) -> Certificate:
    w = inverse_tree_dynamics(T.mechanism, T.q, T.v, a)
    reactions, _ = multipliers(T, part, w - efforts)
    return certify(T, part, a, efforts, reactions, condition, w)
