"""A05: the stiff flyball governor: a shaft, a slider on it, two rods with balls, two springs."""

from __future__ import annotations

from math import cos, hypot, pi, sin

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import holoctl as hc
from referee.problem import Problem, at, brick

Array = NDArray[np.float64]
G = 9.81
STIFFNESS, DAMPING, REST = 8e5, 4e4, 0.5
ROD, SLIDER, BALL, WIDTH, OFFSET = 0.3, 3.0, 5.0, 0.01, 0.05
"""Masses of shaft and rods, slider, ball, kg; section of shaft and rods, half the head, m."""
START = (0.5, pi / 6.0)
"""Height of the slider, m; rods below the horizontal, rad."""
RATE = 2.0 * pi
TIMES = np.linspace(0.0, 10.0, 101)


def make() -> tuple[hc.Mechanism, Array, Array]:
    """A tree of four coordinates; the springs are forces."""
    model = pin.Model()
    model.name, model.gravity.linear = "flyball_governor", np.array([0.0, 0.0, -G])

    def add(parent, kind, place, name, body):  # type: ignore[no-untyped-def]
        joint = model.addJoint(model.getJointId(parent), kind, place, name)
        model.appendBodyToJoint(joint, body, at())

    shaft = pin.Inertia(ROD, np.array([0.0, 0.0, 0.5]), brick(ROD, WIDTH, WIDTH, 1.0))
    slider = pin.Inertia(SLIDER, np.zeros(3), brick(SLIDER, 0.1, 0.1, 0.1))
    rod = pin.Inertia(ROD, np.array([0.5, 0.0, 0.0]), brick(ROD, 1.0, WIDTH, WIDTH))
    rod += pin.Inertia(BALL, np.array([1.0, 0.0, 0.0]), np.zeros((3, 3)))
    half_turn = np.diag([-1.0, -1.0, 1.0])
    add("universe", pin.JointModelRZ(), at(), "shaft", shaft)
    add("shaft", pin.JointModelPZ(), at(), "slider", slider)
    add("shaft", pin.JointModelRY(), at(OFFSET, 0.0, 1.0), "rod_1", rod)
    add("shaft", pin.JointModelRY(), at(-OFFSET, 0.0, 1.0, half_turn), "rod_2", rod)
    springs = [
        hc.Spring(("slider", at(side * OFFSET)), (name, at(0.5)), STIFFNESS, REST, DAMPING)
        for side, name in ((1.0, "rod_1"), (-1.0, "rod_2"))
    ]
    q = np.array([{"shaft": 0.0, "slider": START[0]}.get(n, START[1]) for n in model.names[1:]])
    v = np.array([RATE if n == "shaft" else 0.0 for n in model.names[1:]])
    return hc.Mechanism(model, [], forces=springs, reference=q), q, v


# Lagrange's equations by hand; both rods move alike, and the moment of momentum about the
# vertical is kept, so that the turn is in none of them. x = (s, a, s', a').

AXIAL, ACROSS = ROD * 2.0 * WIDTH**2 / 12.0, ROD * (1.0 + WIDTH**2) / 12.0
FIXED = ROD * 2.0 * WIDTH**2 / 12.0 + SLIDER * 0.02 / 12.0
SWING = 2.0 * (0.25 * ROD + ACROSS + BALL)


def _about(a: float) -> tuple[float, float]:
    """Moment of inertia about the vertical, and its derivative by a."""
    c, s = cos(a), sin(a)
    near, far = OFFSET + 0.5 * c, OFFSET + c
    value = FIXED + 2.0 * (ROD * near**2 + BALL * far**2 + AXIAL * s * s + ACROSS * c * c)
    slope = 2.0 * (-ROD * near * s - 2.0 * BALL * far * s + 2.0 * (AXIAL - ACROSS) * s * c)
    return value, slope


MOMENTUM = _about(START[1])[0] * RATE


def derivative(_: float, x: Array) -> list[float]:
    """x'."""
    s, a, ds, da = x.tolist()
    ca, sa = cos(a), sin(a)
    dx, dz = 0.5 * ca, 1.0 - 0.5 * sa - s
    L = hypot(dx, dz)
    L_s, L_a = -dz / L, (-0.5 * sa * dx - 0.5 * ca * dz) / L
    tension = STIFFNESS * (L - REST) + DAMPING * (L_s * ds + L_a * da)
    inertia, slope = _about(a)
    turn = MOMENTUM / inertia
    weight = 2.0 * G * (-0.5 * ROD * ca - BALL * ca)
    return [
        ds, da,
        -G - 2.0 * tension * L_s / SLIDER,
        (0.5 * slope * turn * turn - weight - 2.0 * tension * L_a) / SWING,
    ]  # fmt: skip


def motion(times: Array, method: str = "LSODA", rtol: float = 1e-12) -> Array:
    """(s, a, s', a') at the instants."""
    run = solve_ivp(
        derivative, (0.0, times[-1]), [*START, 0.0, 0.0], method=method, t_eval=times,
        rtol=rtol, atol=0.01 * rtol,
    )  # fmt: skip
    return run.y


def reference(times: Array = TIMES) -> Array:
    """The slider: s is what is published of this problem."""
    s = motion(times)[0]
    return np.stack([0.0 * s, 0.0 * s, s], axis=1)[:, None]


A05 = Problem(
    "A05, stiff flyball governor",
    "Data: IFToMM benchmark A05 (8e5 N/m, 4e4 N s/m, 2 pi rad/s, 10 s), read in "
    "RehabEngGroup/MBSbenchmarksInOpenSim; the geometry also in Exudyn's "
    "stiffFlyballGovernor.py, which has softer springs and another speed. Reference: Lagrange's "
    "equations of the symmetric motion by hand, LSODA at 1e-12 (Radau agrees to 1e-10).",
    make, ("slider",), TIMES, reference,
    options={"method": "LSODA", "rtol": 1e-10, "atol": 1e-12},
    steps={"Exudyn": 1e-3, "MuJoCo": 1e-4},
)  # fmt: skip
