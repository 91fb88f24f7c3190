"""The efforts that hold a posture at rest, with their limits and the unbalanced rest.

    gamma' B u = gamma' (h - F)        v = 0, a = 0

``holoctl torque`` prints the same efforts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holoctl.app.units import motor_units, unbalanced_words
from holoctl.app.view.dragging import drag_model, motions_at
from holoctl.app.view.stop_reason import LED_SHARE, some
from holoctl.base.checks import Vector, quiet
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.linalg import largest, null_space_by_svd
from holoctl.base.tolerances import PRINTED_AS_ZERO, UNSEEN_MOTION
from holoctl.closing.rank import rank_within
from holoctl.dynamics.certificate import verdict
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, partition

__all__ = ["HoldingEffort", "HoldingEfforts", "holding_efforts"]


class HoldingEffort(NamedTuple):
    """The effort of a motor.

    Attributes
    ----------
    motor, unit : str
        The unit is ``"N m"`` or ``"N"``; empty if the motor acts on angles and lengths.
    effort : float
    limit : float or None
        The limit on the side of the effort, with its sign; None if there is none.
    past : bool
        Whether the effort is outside its limits.
    """

    motor: str
    unit: str
    effort: float
    limit: float | None
    past: bool


@dataclass(frozen=True, eq=False)
class HoldingEfforts:
    """The efforts that hold a posture at rest.

    Attributes
    ----------
    rows : tuple of HoldingEffort
        In the order of u; empty if there is no solution.
    certified : bool
        Whether the certificate accepts the efforts.
    words : str
        Reservations, or the error; empty if there are none.
    unbalanced : float
        Largest unbalanced effort on motions that no motor holds, N m or N.
    """

    rows: tuple[HoldingEffort, ...]
    certified: bool
    words: str
    unbalanced: float = 0.0


@quiet
def holding_efforts(mech: Mechanism, q: Vector, part: Partition | None = None) -> HoldingEfforts:
    """The efforts that hold a closed configuration at rest against gravity and springs.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        A closed configuration.
    part : Partition, optional
        That of a `Posture`. Default: the one chosen at q, which takes ten times as long.

    Returns
    -------
    HoldingEfforts
        Errors of the dynamics are in its words: at a dead point, for example, there are no efforts.

    Raises
    ------
    InputError
        If q is not a configuration of the mechanism.
    """
    rest = np.zeros(mech.nv)
    try:
        part = partition(mech, q) if part is None else part
        found = inverse_dynamics(mech, q, rest, rest, coordinates="all", partition=part)
    except InputError:
        raise
    except HoloctlError as error:
        return HoldingEfforts((), False, str(error))
    bounds = drag_model(mech).limits.effort.T.tolist()
    u = np.where(np.abs(found.u) > PRINTED_AS_ZERO * largest(found.u), found.u, 0.0)
    rows = tuple(
        _held(name, unit, effort, lower, upper)
        for name, unit, effort, (lower, upper) in zip(
            mech.actuator_names, motor_units(mech), u.tolist(), bounds, strict=True
        )
    )
    if found.certificate.ok:
        return HoldingEfforts(rows, True, "")
    words = [f"These efforts are {verdict(found.certificate)}."]
    if found.unbalanced.any():
        words += [f"{unbalanced_words(found)} {_passive(mech, q, part)}".strip()]
    return HoldingEfforts(rows, False, "\n".join(words), largest(found.unbalanced))


def _held(name: str, unit: str, u: float, lower: float, upper: float) -> HoldingEffort:
    near = upper if u > upper or (u >= lower and u >= 0.0) else lower
    limit = float(near) if np.isfinite(near) else None
    return HoldingEffort(name, unit, u, limit, not lower <= u <= upper)


def _passive(mech: Mechanism, q: Vector, part: Partition) -> str:
    """A sentence that names the coordinates that move while all motors are at rest."""
    T = motions_at(mech, part, q)
    S = drag_model(mech).rows @ T
    passive = np.linalg.norm(T @ null_space_by_svd(S, rank_within(S, UNSEEN_MOTION))[3], axis=1)
    if not passive.any():
        return ""
    order = [i for i in np.argsort(-passive).tolist() if passive[i] > LED_SHARE * passive.max()]
    return f"They move {some([mech.coordinate_names[i] for i in order])}."
