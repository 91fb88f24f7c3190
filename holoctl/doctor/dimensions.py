"""How large and heavy a mechanism is: the only numbers of the report that are not scaled."""

from __future__ import annotations

from dataclasses import dataclass

from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.scales import sizes
from holoctl.tree.frozen_model import plain

__all__ = ["Dimensions", "dimensions"]


@dataclass(frozen=True)
class Dimensions:
    """Sizes, m, and mass, kg.

    Attributes
    ----------
    size : float
        Of the tree: diagonal of the box around its joints and centres of mass, at the reference.
    loop_sizes : tuple of float
        The same for each group of coupled loops, with the frames of closures.
    mass : float
        Of all that moves.
    """

    size: float
    loop_sizes: tuple[float, ...]
    mass: float


def dimensions(mech: Mechanism) -> Dimensions:
    """Measure and weigh, at the reference."""
    size, of_loops = sizes(mech.model, mech.reference, mech.bound, workspace(mech))
    mass = sum(float(inertia.mass) for inertia in plain(mech.model).inertias[1:])
    return Dimensions(size, tuple(of_loops), mass)
