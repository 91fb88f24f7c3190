"""Size and mass of a mechanism: the only quantities of the report that are not scaled."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

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
        The diagonal of the box around the joints and centres of mass of the tree, at the reference.
    loop_sizes : tuple of float
        The size of each group of coupled loops, with the frames of closures.
    mass : float
        The mass of all moving bodies.
    widest : str
        The joint that carries the body with the largest radius of gyration; empty without one.
    width : float
        Twice that radius, m: the diameter of a ring of the same mass and inertia.
    """

    size: float
    loop_sizes: tuple[float, ...]
    mass: float
    widest: str = ""
    width: float = 0.0


def dimensions(mech: Mechanism) -> Dimensions:
    """The size and mass of a mechanism, at the reference."""
    size, of_loops = sizes(mech.model, mech.reference, mech.bound, workspace(mech))
    model = plain(mech.model)
    bodies = list(zip(model.names, model.inertias, strict=True))[1:]
    mass = sum(float(inertia.mass) for _, inertia in bodies)
    widths = [(_width(inertia), str(name)) for name, inertia in bodies if inertia.mass > 0.0]
    width, widest = max(widths, default=(0.0, ""))
    return Dimensions(size, tuple(of_loops), mass, widest, width)


def _width(body: pin.Inertia) -> float:
    """Twice the largest radius of gyration about the centre of mass, m."""
    most = float(np.linalg.eigvalsh(body.inertia)[-1])
    return 2.0 * math.sqrt(max(most, 0.0) / float(body.mass))
