"""Examples of spatial_v2 and of RBDL, simulated: a cam between two joints, and a four-bar.

spatial_v2's planar2g is driven by a constant torque on its first joint, whose work, in N m, is then
q1 in rad. RBDL integrates with Baumgarte's stabilisation, or without any.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import holoctl as hc
from referee import rbdl_states, saddle, spatial_v2_states
from referee.one_freedom import OneFreedom, Pose, one_freedom
from referee.plain_run import integrated
from referee.planar import pose, started
from referee.problem import Problem, at
from referee.rbdl_states import rbdl
from referee.spatial_v2_states import spatial_v2

Array = NDArray[np.float64]

# -------------------------------------------------------------------------------- spatial_v2

TORQUE = 1.0
STABILISED = 0.1
"""The time constant of planar2g, s."""
_HISTORY = spatial_v2.golden("planar2g_sim")
CAM_TIMES = np.array(_HISTORY["t"])


def make_cam() -> tuple[hc.Mechanism, Array, Array]:
    """At rest at zero; q2 = 2 sin q1."""
    model = spatial_v2.tree(spatial_v2.golden("planar2g"))
    chart = hc.GammaQ(spatial_v2.planar2g, ["q1"], t_stab=STABILISED)
    return hc.Mechanism(model, [chart], ["q1"]), np.zeros(2), np.zeros(2)


def cam_reference() -> Array:
    """The elbow and the tip at the angles of spatial_v2's history; links of 1 m along x."""
    q = np.array(_HISTORY["q"])
    elbow = np.stack([np.cos(q[:, 0]), np.sin(q[:, 0]), 0.0 * q[:, 0]], axis=1)
    both = q.sum(axis=1)
    tip = elbow + np.stack([np.cos(both), np.sin(both), 0.0 * both], axis=1)
    return np.stack([elbow, tip], axis=1)


_CAM_TREE = spatial_v2_states.plain("planar2g")
_CAM_MODEL = spatial_v2.tree(spatial_v2.golden("planar2g"))
_DRIVE = np.array([TORQUE, 0.0])
CAM = Problem(
    "spatial_v2's planar2g, 5 s",
    "Data: the example of spatial_v2's documentation on gamma_q, q2 = 2 sin q1, torque (1, 0) from "
    "rest, stabilised with 0.1 s. Reference: its own history in Octave, Runge-Kutta of fourth "
    "order with 1e-4 s: tests/golden/fdgq/planar2g_sim.json; ode45 at 1e-12 agrees to 2e-13. "
    "*fdgq*: `hc.methods.fdgq`, *formula*: the same equation in numpy; both with scipy's DOP853.",
    make_cam, ("q2", ("q2", at(1.0))), CAM_TIMES, cam_reference, effort=(TORQUE,), peers=False,
    others=(
        integrated(
            "holoctl's fdgq, DOP853",
            lambda q, v: hc.methods.fdgq(_CAM_MODEL, spatial_v2.planar2g, q, v, _DRIVE),
        ),
        integrated(
            "formula, numpy, DOP853",
            lambda q, v: spatial_v2_states.fdgq(_CAM_TREE, spatial_v2.planar2g, q, v, _DRIVE),
        ),
    ),
)  # fmt: skip

# -------------------------------------------------------------------------------------- RBDL

LINKS, BASE = (0.35, 0.9, 0.7), 1.0
"""Crank, coupler, rocker, base, m: as in tests/golden/rbdl/fourbar.json."""
BAR_START, BAR_RATE = 1.0, 4.0
BAR_TIMES = np.linspace(0.0, 4.0, 41)
BAUMGARTE = float(rbdl.golden("fourbar")["baumgarte_time_constant"])


def _angles(a: float) -> tuple[float, float]:
    """Of coupler and rocker, from the x axis: two circles, the upper cut."""
    crank, coupler, rocker = LINKS
    x, y = crank * np.cos(a), crank * np.sin(a)
    dx, dy = BASE - x, -y
    d = np.hypot(dx, dy)
    along = (coupler**2 - rocker**2 + d * d) / (2.0 * d)
    up = np.sqrt(coupler**2 - along**2)
    tx, ty = (along * dx - up * dy) / d, (along * dy + up * dx) / d
    return float(np.arctan2(ty, tx)), float(np.arctan2(y + ty, x + tx - BASE))


def _bar_poses(a: float) -> list[Pose]:
    """Of the centres of mass, which lie beside the bars."""
    c, r = _angles(a)
    found = []
    for body, (x, y), angle in zip(
        rbdl.golden("fourbar")["model"]["bodies"],
        ((0.0, 0.0), (LINKS[0] * np.cos(a), LINKS[0] * np.sin(a)), (BASE, 0.0)), (a, c, r),
        strict=True,
    ):  # fmt: skip
        com = np.array(body["com"])
        centre, R = pose(x, y, angle)
        found.append((centre + R @ com, R))
    return found


def bars() -> OneFreedom:
    """The motion of one freedom, the angle of the crank."""
    data = rbdl.golden("fourbar")["model"]
    bodies = [(float(b["mass"]), np.array(b["inertia_com"])) for b in data["bodies"]]
    return one_freedom(_bar_poses, bodies, np.array(data["gravity"]), 512)


def make_bars() -> tuple[hc.Mechanism, Array, Array]:
    """The mechanism of RBDL's numbers, without motors."""
    c, r = _angles(BAR_START)
    model = rbdl.tree("fourbar")
    loops = rbdl.constraints("fourbar", model)
    mech = hc.Mechanism(model, loops, reference=[BAR_START, c - BAR_START, r])
    return started(mech, {"crank": BAR_RATE})


def bar_reference() -> Array:
    """The ends of crank and rocker."""
    a, _ = bars().motion(BAR_TIMES, BAR_START, BAR_RATE)
    r = np.array([_angles(x)[1] for x in a])
    zero = 0.0 * a
    crank = np.stack([LINKS[0] * np.cos(a), LINKS[0] * np.sin(a), zero], axis=1)
    rocker = np.stack([BASE + LINKS[2] * np.cos(r), LINKS[2] * np.sin(r), zero], axis=1)
    return np.stack([crank, rocker], axis=1)


_BAR_TREE = rbdl_states.plain("fourbar")


def _solved(method: str, T: float) -> object:
    solve = saddle.METHODS[method]
    return lambda q, v: solve(*rbdl_states.system("fourbar", _BAR_TREE, q, v, np.zeros(3), T))[0]


BARS = Problem(
    "RBDL's four-bar, 4 s",
    "Data: the four-bar of tests/golden/rbdl, crank 0.35 m, coupler 0.9 m, rocker 0.7 m, base 1 m, "
    "centres of mass beside the bars; crank at 1 rad and 4 rad/s, no torque. Reference: one "
    "freedom, the angle of the crank, DOP853 at 1e-13. *numpy*: RBDL's rows and methods as in the "
    "table of states, without stabilisation and with Baumgarte's, by scipy's DOP853.",
    make_bars, (("crank", at(LINKS[0])), ("rocker", at(LINKS[2]))), BAR_TIMES, bar_reference,
    steps={"Exudyn": 1e-3, "MuJoCo": 1e-3},
    others=(
        integrated("numpy, null-space, DOP853", _solved("null-space", 0.0)),
        integrated(f"numpy, direct, Baumgarte {BAUMGARTE:g} s", _solved("direct", BAUMGARTE)),
    ),
)  # fmt: skip
