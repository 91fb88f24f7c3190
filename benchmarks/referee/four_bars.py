"""A02: N windows of four bars, 2 N + 1 links; flat twice a revolution, with N + 1 motions there.

The parallelograms stay parallelograms: that is the smooth branch, and a motion of one freedom.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import holoctl as hc
from referee.planar import bar, hinge, plane_model, started
from referee.problem import Problem, at

Array = NDArray[np.float64]
TIMES = np.linspace(0.0, 10.0, 101)
SPEED = -1.0
"""Of each crank, rad/s: the tips move at 1 m/s along x."""


def make(N: int) -> tuple[hc.Mechanism, Array, Array]:
    """Cranks on the ground, each with the coupler to the next; N points are cut."""
    model = plane_model(f"{N}_four_bars")
    for i in range(N + 1):
        hinge(model, "universe", f"crank_{i}", at(float(i)), bar(1.0, 1.0))
        if i < N:
            hinge(model, f"crank_{i}", f"coupler_{i}", at(1.0), bar(1.0, 1.0))
    tip = at(1.0)
    loops = [
        hc.Closure((f"crank_{i + 1}", tip), (f"coupler_{i}", tip), axes="x y", name=f"tip_{i + 1}")
        for i in range(N)
    ]
    up = [0.5 * np.pi if name.startswith("crank") else -0.5 * np.pi for name in model.names[1:]]
    return started(hc.Mechanism(model, loops, reference=up), {"crank_0": SPEED})


def angle(N: int, times: Array) -> tuple[Array, Array]:
    """Of all cranks, and the rate: a compound pendulum."""
    inertia = (N + 1) / 3.0 + N
    moment = 9.81 * (0.5 * (N + 1) + N)

    def derivative(_: float, x: Array) -> list[float]:
        return [x[1], -moment * np.cos(x[0]) / inertia]

    run = solve_ivp(
        derivative, (0.0, times[-1]), [0.5 * np.pi, SPEED], method="DOP853", t_eval=times,
        rtol=1e-13, atol=1e-14,
    )  # fmt: skip
    return run.y[0], run.y[1]


def passages(N: int, duration: float) -> int:
    """How often the mechanism lies flat."""
    a = angle(N, np.linspace(0.0, duration, 20001))[0]
    return int(np.abs(np.diff(np.floor(a / np.pi))).sum())


def reference(N: int, times: Array = TIMES) -> Array:
    """The tips of the first and of the last crank."""
    a = angle(N, times)[0]
    tip = np.stack([np.cos(a), np.sin(a), 0.0 * a], axis=1)
    return np.stack([tip, tip + np.array([float(N), 0.0, 0.0])], axis=1)


def four_bars(N: int) -> Problem:
    """The problem with N windows."""
    return Problem(
        f"A02, N four-bars, N = {N}",
        "Data: IFToMM benchmark A02 (links of 1 m and 1 kg, upright, tip at 1 m/s, 10 s), read in "
        "RehabEngGroup/MBSbenchmarksInOpenSim and in Exudyn's fourBarMechanismIftomm.py. "
        "Reference: the parallelograms as one pendulum, DOP853 at 1e-13; for N = 2 it agrees with "
        "the tip at 10 s that Exudyn's file gives, to the digits that have converged there.",
        lambda: make(N), (("crank_0", at(1.0)), (f"crank_{N}", at(1.0))), TIMES,
        lambda: reference(N), options={"at_singular": "cross"},
        steps={"Exudyn": 1e-3 if N < 40 else 2e-3, "MuJoCo": 1e-3},
        passages=lambda: passages(N, 10.0),
    )  # fmt: skip
