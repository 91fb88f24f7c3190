"""A03: Andrews' squeezer, of the tests: angles and lengths as published, a constant torque."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

import holoctl as hc
from referee.problem import Problem, at, positions

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import squeezer

Array = NDArray[np.float64]
POINTS = (
    ("beta", at(0.007)), ("theta", at(-0.028)), ("phi", at()), ("omega", at()),
    ("gamma", at(0.02, -0.018)),
)  # fmt: skip


def make() -> tuple[hc.Mechanism, Array, Array]:
    """At rest; the torque acts on the first crank."""
    mech = squeezer.squeezer()
    q, v = hc.assemble(mech)
    return mech, q, v


def reference() -> Array:
    """The points at the published angles."""
    model: pin.Model = squeezer.squeezer().model
    q = np.array([squeezer.AFTER_30_MS[name] for name in list(model.names)[1:]])
    return positions(model, q, POINTS)


A03 = Problem(
    "A03, Andrews' squeezer",
    "Data and angles at 0.03 s: Test Set for IVP Solvers, and Hairer and Wanner II, VII.7. "
    "Five points of the mechanism at the published angles.",
    make, POINTS, np.array([0.03]), reference, effort=(squeezer.MOMENT,),
    steps={"Exudyn": 1e-5, "MuJoCo": 1e-5},
)  # fmt: skip
