"""Linkages of which something is known: moved by their motors, assembled, and judged.

Motors are moved in steps and each posture is assembled. A fact is a function of body placements
that should be zero.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc
from referee import screws

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from overconstrained_drawing import Drawing

Array = NDArray[np.float64]
STEPS = 21
Fact = Callable[["Posture"], float]


@dataclass(frozen=True, eq=False)
class Posture:
    """Bodies as they stand: `at(body, point)` tells where a point of the drawing has gone."""

    mech: hc.Mechanism
    q: Array
    moved: float

    @cached_property
    def data(self) -> pin.Data:
        data = self.mech.model.createData()
        pin.framesForwardKinematics(self.mech.model, data, self.q)
        return data

    def place(self, body: str) -> pin.SE3:
        """Of a body, from where it was drawn."""
        return self.data.oMf[self.mech.model.getFrameId(body)]

    def at(self, body: str, point: Any) -> Array:
        """A point of a body; planar ones may be given by two numbers."""
        return np.asarray(self.place(body).act(np.r_[np.array(point, float), 0.0][:3]))

    def angle(self, body: str) -> float:
        """By which a body has turned about z."""
        R = self.place(body).rotation
        return float(np.arctan2(R[1, 0], R[0, 0]))

    def coordinate(self, name: str) -> float:
        """A joint coordinate."""
        return float(self.q[self.mech.coordinate_names.index(name)])


@dataclass(frozen=True)
class Linkage:
    """A mechanism, how far its motors are moved, and what should be zero there.

    Attributes
    ----------
    name : str
    drawing : callable
    span : mapping of str to (float, float)
        Motor to its first and last place, from the posture drawn.
    fact : str
        What is told.
    deviation : callable
        ``deviation(posture) -> float``, m or rad.
    """

    name: str
    drawing: Callable[[], Drawing]
    span: Mapping[str, tuple[float, float]]
    fact: str
    deviation: Fact


@dataclass(frozen=True)
class Judged:
    """The line of a linkage."""

    linkage: Linkage
    joints: int
    truth: int
    gruebler: int
    screws: int
    holoctl: int
    redundant: tuple[int, int]
    deviation: float
    postures: int
    seconds: float


def postures(linkage: Linkage, mech: hc.Mechanism, steps: int = STEPS) -> list[Posture]:
    """From the posture drawn to one end, and to the other; each from the one before."""
    found = []
    for end in (0, 1):
        q = mech.reference
        for share in np.linspace(0.0, 1.0, steps // 2 + 1):
            guess = np.array(q)
            for motor, span in linkage.span.items():
                guess[mech.coordinate_names.index(motor)] = share * span[end]
            q, _ = hc.assemble(mech, guess, locked=tuple(linkage.span))
            found.append(Posture(mech, q, float(share * next(iter(linkage.span.values()))[end])))
    return found


def judged(linkage: Linkage) -> Judged:
    """Examine it, and move it."""
    start = time.process_time()
    drawing = linkage.drawing()
    mech = drawing.mechanism()
    report = hc.mobility(mech)
    moved = postures(linkage, mech)
    seconds = time.process_time() - start
    joints = [(kind, a, b, p.rotation, p.translation) for _, kind, a, b, p, _ in drawing.joints]
    truth = drawing.truth
    return Judged(
        linkage, len(joints), truth.dof, int(report.gruebler), screws.mobility(joints),
        int(report.dof), (truth.redundant, len(report.redundant)),
        max(linkage.deviation(p) for p in moved), len(moved), seconds,
    )  # fmt: skip
