"""Margins of the rank of a mechanism: the singular values next to the rank decision."""

from __future__ import annotations

from dataclasses import dataclass

from holoctl.base.checks import Vector
from holoctl.base.tolerances import RANK, UNCERTAIN
from holoctl.closing.sampled_configurations import Samples
from holoctl.doctor.actuation import actuation
from holoctl.doctor.motion_types import Motions
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Margins", "margins"]


INF = float("inf")


@dataclass(frozen=True)
class Margins:
    """Singular values of the scaled rows, and of gamma' B; the fields are those of
    `MobilityReport`."""

    margin: float = INF
    usual_margin: float = INF
    gap: float = INF
    uncertain: bool = False
    actuation_margin: float = INF


def margins(mech: Mechanism, s: Samples, m: Motions) -> Margins:
    """The margins at this configuration; `usual_margin` at all samples."""
    here = s.here
    counted, left_out = here.values[: here.rank], here.values[here.rank :]
    gap = _gap(counted, left_out)
    should = min(mech.nu, s.finite_dof - len(m.idle))
    return Margins(
        margin=float(counted[-1]) if counted.size else INF,
        usual_margin=max(_smallest(at.values, at.rank) for at in s.generic),
        gap=gap,
        uncertain=gap < UNCERTAIN or _smallest(counted, here.rank) < UNCERTAIN * RANK,
        actuation_margin=_smallest(actuation(mech, here, here.null).values, should),
    )


def _gap(counted: Vector, left_out: Vector) -> float:
    if not counted.size or not left_out.size or left_out[0] == 0.0:
        return INF
    return float(counted[-1] / left_out[0])


def _smallest(values: Vector, count: int) -> float:
    """The smallest of the first `count` singular values; 0 if there are fewer."""
    if count == 0:
        return INF
    return float(values[count - 1]) if values.size >= count else 0.0
