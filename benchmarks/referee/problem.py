"""A problem: a mechanism and its start, points to follow, and where they should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc
from holoctl.tree.frames import FrameLike, resolve_frame

Array = NDArray[np.float64]

RTOL, ATOL = 1e-9, 1e-11
"""Of holoctl and of constraintDynamics with scipy, where a problem says no other."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is simulated, and what is known of it.

    Attributes
    ----------
    name : str
        As the table has it.
    source : str
        Where data and reference come from, and what was checked.
    make : callable
        ``make() -> (mech, q0, v0)``, closed.
    points : tuple of frames
        Origins that are compared with the reference.
    times : (n,) array
        Instants of the comparison, s; the last one ends the simulation.
    reference : callable
        ``reference() -> (n, points, 3)`` array, m. Knows nothing of holoctl.
    effort : tuple of float
        Constant efforts of the motors.
    options : mapping
        More arguments of `hc.simulate`.
    steps : mapping
        For each peer with a fixed step, its step, s.
    passages : callable
        ``passages() -> int``: singular configurations that the motion passes.
    peers : bool
        Whether others are asked too; false for variants that are the same to them.
    others : tuple of callable
        More solvers, ``solver(problem) -> Outcome``: published methods, written here.
    """

    name: str
    source: str
    make: Callable[[], tuple[hc.Mechanism, Array, Array]]
    points: tuple[FrameLike, ...]
    times: Array
    reference: Callable[[], Array]
    effort: tuple[float, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)
    passages: Callable[[], int] = int
    peers: bool = True
    others: tuple[Callable[[Any], Any], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "reference", cache(self.reference))
        object.__setattr__(self, "passages", cache(self.passages))


def positions(model: pin.Model, q: Array, points: tuple[FrameLike, ...]) -> Array:
    """Where the points are at each of the configurations: (n, points, 3)."""
    frames = [resolve_frame(model, p, "a point to follow") for p in points]
    data, q = model.createData(), np.atleast_2d(q)
    found = np.empty((len(q), len(frames), 3))
    for i, x in enumerate(q):
        pin.forwardKinematics(model, data, x)
        for k, frame in enumerate(frames):
            found[i, k] = data.oMi[frame.joint].act(frame.placement.translation)
    return found


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0, turn: Array | None = None) -> pin.SE3:
    """A placement."""
    return pin.SE3(np.eye(3) if turn is None else turn, np.array([x, y, z], float))


def brick(mass: float, x: float, y: float, z: float) -> Array:
    """Inertia of a homogeneous brick about its centre."""
    xx, yy, zz = x * x, y * y, z * z
    return mass / 12.0 * np.diag([yy + zz, xx + zz, xx + yy])
