"""A regular four-bar, a crank and rocker, for a minute: no singular configuration, no damping."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import holoctl as hc
from referee.one_freedom import OneFreedom, Pose, one_freedom
from referee.planar import GRAVITY, bar, hinge, plane_model, pose, started
from referee.problem import Problem, at

Array = NDArray[np.float64]
CRANK, COUPLER, ROCKER, BASE = 0.25, 0.8, 0.6, 0.9
MASSES = (1.0, 2.0, 1.5)
START, RATE = 0.5, 8.0
TIMES = np.linspace(0.0, 60.0, 601)


def _tip(a: float) -> tuple[float, float, float]:
    """Where coupler and rocker meet, and the angle of the coupler: two circles, the upper cut."""
    x, y = CRANK * np.cos(a), CRANK * np.sin(a)
    dx, dy = BASE - x, -y
    d = np.hypot(dx, dy)
    along = (COUPLER**2 - ROCKER**2 + d * d) / (2.0 * d)
    up = np.sqrt(COUPLER**2 - along**2)
    tx, ty = (along * dx - up * dy) / d, (along * dy + up * dx) / d
    return x + tx, y + ty, np.arctan2(ty, tx)


def _poses(a: float) -> list[Pose]:
    x, y = CRANK * np.cos(a), CRANK * np.sin(a)
    tx, ty, coupler = _tip(a)
    rocker = np.arctan2(ty, tx - BASE)
    return [
        pose(0.5 * x, 0.5 * y, a), pose(0.5 * (x + tx), 0.5 * (y + ty), coupler),
        pose(0.5 * (BASE + tx), 0.5 * ty, rocker),
    ]  # fmt: skip


def make() -> tuple[hc.Mechanism, Array, Array]:
    """Crank, coupler and rocker; the point where the last two meet is cut."""
    model = plane_model("regular_four_bar")
    lengths = (CRANK, COUPLER, ROCKER)
    crank, coupler, rocker = (bar(n, m) for n, m in zip(lengths, MASSES, strict=True))
    hinge(model, "universe", "crank", at(), crank)
    hinge(model, "crank", "coupler", at(CRANK), coupler)
    hinge(model, "universe", "rocker", at(BASE), rocker)
    x, y, angle = _tip(START)
    tip = hc.Closure(("rocker", at(ROCKER)), ("coupler", at(COUPLER)), axes="x y", name="tip")
    start = [START, angle - START, np.arctan2(y, x - BASE)]
    return started(hc.Mechanism(model, [tip], reference=start), {"crank": RATE})


def motion() -> OneFreedom:
    """Of one freedom, the angle of the crank."""
    bodies = [
        (m, np.diag([0.0, 1.0, 1.0]) * m * n**2 / 12.0)
        for n, m in zip((CRANK, COUPLER, ROCKER), MASSES, strict=True)
    ]
    return one_freedom(_poses, bodies, GRAVITY)


def reference(times: Array = TIMES) -> Array:
    """The end of the crank, and where coupler and rocker meet."""
    a, _ = motion().motion(times, START, RATE)
    crank = np.stack([CRANK * np.cos(a), CRANK * np.sin(a), 0.0 * a], axis=1)
    tips = np.array([[*_tip(x)[:2], 0.0] for x in a])
    return np.stack([crank, tips], axis=1)


REGULAR = Problem(
    "regular four-bar, 60 s",
    "Our own data: crank 0.25 m, coupler 0.8 m, rocker 0.6 m, base 0.9 m; 1, 2 and 1.5 kg. "
    "Reference: one freedom, the angle of the crank, DOP853 at 1e-13.",
    make, (("crank", at(CRANK)), ("rocker", at(ROCKER))), TIMES, reference,
    steps={"Exudyn": 1e-3, "MuJoCo": 1e-3},
)  # fmt: skip
