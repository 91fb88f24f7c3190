"""Pictures of the tutorials: what their own blocks build, so that numbers stand in one place."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from style import (
    BLUE,
    BODY,
    CLOSURE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    RED,
    SOFT,
    arrow,
    bar,
    figure,
    frame,
    hinge,
    note,
    sketch,
    space,
    turn,
)  # fmt: skip

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@cache
def page(name: str, before: str) -> SimpleNamespace:
    """What the python blocks of a page define, up to a heading; files go to a folder of its own."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        for language, title, body in FENCE.findall(text[: text.index(f"\n{before}")]):
            if title:
                Path(title).write_text(body, encoding="utf-8")
            if language == "python":
                exec(body, names)  # our own page
    return SimpleNamespace(**names)


def length(
    ax: Axes, a: Any, b: Any, text: str, shift: tuple[float, float] = (0.0, 0.0), **options: Any
) -> None:
    """A dimension between two points, moved aside."""
    a, b = np.asarray(a, dtype=float) + shift, np.asarray(b, dtype=float) + shift
    look = {"arrowstyle": "<|-|>", "color": SOFT, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", a, b, arrowprops=look)
    ax.plot(*np.array([a, b]).T, alpha=0.0)
    note(ax, (a + b) / 2, text, **({"offset": (4, 3)} | options))


# ------------------------------------------------------------------------------------- the Delta


def delta_drawing() -> Figure:
    """One arm from the side, as it stands in the plane of its motor; the robot from above."""
    d = page("tutorial-delta", "## 5.")
    lengths = (d.BASE, d.ARM, d.ROD, d.BALLS, d.PAIR, d.TIP)
    base, arm, rod, balls, pair, tip = (1e3 * x for x in lengths)
    fig, (side, above) = figure(7.0, 3.5, 1, 2, width_ratios=(1.15, 1.0))
    low = -np.sqrt(rod**2 - (base + arm - balls) ** 2)

    sketch(side).set_title("one arm, from the side; mm")
    bar(side, (0, 0), (base, 0), FAINT, 9)
    bar(side, (base, 0), (base + arm, 0), BODY, 6)
    bar(side, (base + arm, 0), (balls, low), BODY, 3.5)
    bar(side, (0, low), (balls, low), BODY, 6)
    bar(side, (0, low), (0, low - tip), BODY, 2.5)
    hinge(side, (base, 0), motor=True)
    hinge(side, (base + arm, 0))
    hinge(side, (balls, low), CLOSURE)
    side.plot([0, 0], [25, low - tip - 15], color=SOFT, linewidth=0.8, linestyle="-.")
    length(side, (0, 0), (base, 0), f"{base:.0f}", (0, 26))
    length(side, (base, 0), (base + arm, 0), f"{arm:.0f}", (0, 26))
    length(side, (base + arm, 0), (balls, low), f"{rod:.0f}", (-17, 11), offset=(-26, 2))
    length(side, (0, low), (balls, low), f"{balls:.0f}", (0, 20), offset=(-6, 4))
    length(side, (0, low), (0, low - tip), f"{tip:.0f}", (-14, 0), offset=(-18, -3))
    note(side, (base, 0), "motor", ORANGE, offset=(-40, -20))
    note(side, (base + arm, 0), "elbow,\nuniversal", offset=(2, -32))
    cut = "ball, cut here:\nend on the rod,\nseat on the platform"
    note(side, (balls, low), cut, CLOSURE, offset=(18, -16))
    frame(side, (-0.9 * base, -0.35 * rod), 0.0, 34)
    note(side, (-0.9 * base, -0.35 * rod), "x out", RED, offset=(12, -12))
    note(side, (-0.9 * base, -0.35 * rod), "z up", BLUE, offset=(-24, 8))

    sketch(above).set_title("from above")
    corners = []
    for n in range(3):
        c, s = np.cos(2 * np.pi * n / 3), np.sin(2 * np.pi * n / 3)
        out, across = np.array([c, s]), np.array([-s, c])
        end, half = (base + arm) * out, pair / 2 * across
        bar(above, base * out, end, BODY, 6)
        bar(above, end - half, end + half, BODY, 4)
        for y in (pair / 2, -pair / 2):
            bar(above, end + y * across, balls * out + y * across, SOFT, 2)
            above.plot(*(balls * out + y * across), "o", color=CLOSURE, markersize=4, zorder=6)
            corners.append(balls * out + y * across)
        bar(above, np.zeros(2), base * out, FAINT, 9, zorder=1)
        hinge(above, base * out, motor=True)
        note(above, (base + arm) * out, f"arm {n + 1}", offset=[(-34, 20), (16, -8), (16, -2)][n])
    # the platform, through its six balls in turn
    ring = sorted(corners, key=lambda p: np.arctan2(p[1], p[0]))
    above.fill(*np.array([*ring, ring[0]]).T, color=BLUE, alpha=0.25, zorder=4)
    right = np.array([base + arm, pair / 2])
    length(above, right, right - (0, pair), f"{pair:.0f}", (14, 0), offset=(6, -3))
    return fig


def delta_drawn() -> Figure:
    import matplotlib.pyplot as plt

    import holoctl as hc

    d = page("tutorial-delta", "## 6.")
    fig = plt.figure(figsize=(4.6, 3.8), layout="constrained")
    ax = hc.draw(d.mech, d.q, space(fig, elevation=14, azimuth=-72), frames=["tip"])
    ax.set_axis_on()
    ax.set_box_aspect(None, zoom=1.1)
    ax.set_xlim(-0.2, 0.25)
    return fig


def delta_run() -> Figure:
    import matplotlib.pyplot as plt

    import holoctl as hc

    d = page("tutorial-delta", "## 9.")
    return hc.plot_run(d.mech, d.run, figure=plt.figure(figsize=(7.0, 5.0)))


# ---------------------------------------------------------------------------------- the five-bar


def five_bar_points(f: SimpleNamespace, q: Any) -> dict[str, np.ndarray]:
    """Where the joints are, m."""
    found = {}
    for side, x, i in (("left", -f.APART / 2, 0), ("right", f.APART / 2, 2)):
        motor = np.array([x, 0.0])
        elbow = motor + f.CRANK * np.array([np.cos(q[i]), np.sin(q[i])])
        found |= {f"motor_{side}": motor, f"elbow_{side}": elbow}
    found["tip"] = elbow + f.FOREARM * np.array([np.cos(q[2] + q[3]), np.sin(q[2] + q[3])])
    return found


def five_bar(ax: Axes, f: SimpleNamespace, q: Any, color: str = BODY) -> dict[str, np.ndarray]:
    at = five_bar_points(f, q)
    for side in ("left", "right"):
        bar(ax, at[f"motor_{side}"], at[f"elbow_{side}"], color, 6)
        bar(ax, at[f"elbow_{side}"], at["tip"], color, 4)
        hinge(ax, at[f"motor_{side}"], motor=True, ground=True)
        hinge(ax, at[f"elbow_{side}"])
    hinge(ax, at["tip"], CLOSURE)
    return at


def five_bar_drawing() -> Figure:
    f = page("tutorial-five-bar", "## 3.")
    fig, ax = figure(4.6, 3.2)
    at = five_bar(sketch(ax), f, f.q)
    apart = f"{1e3 * f.APART:.0f} mm"
    length(ax, at["motor_left"], at["motor_right"], apart, (0, -0.035), offset=(-14, -13))
    beside = np.array([0.07, -0.015])
    length(
        ax, at["motor_right"], at["elbow_right"], f"{1e3 * f.CRANK:.0f} mm", beside, offset=(8, -6)
    )
    beyond = np.array([0.016, 0.019])
    length(ax, at["elbow_right"], at["tip"], f"{1e3 * f.FOREARM:.0f} mm", beyond, offset=(8, 2))
    note(ax, at["motor_left"], "motor_left", ORANGE, offset=(-64, -4))
    note(ax, at["motor_right"], "motor_right", ORANGE, offset=(14, -16))
    note(ax, at["elbow_left"], "elbow_left", offset=(-58, 0))
    note(ax, at["elbow_right"], "elbow_right", offset=(14, -3))
    note(ax, at["tip"], "tip: the joint that is cut", CLOSURE, offset=(16, 12))
    frame(ax, (-0.30, 0.06), 0.0, 0.05)
    note(ax, (-0.30, 0.06), "x", RED, offset=(24, -11))
    note(ax, (-0.30, 0.06), "y", BLUE, offset=(-10, 18))
    for side, end in (("left", f.q[0]), ("right", f.q[2])):
        turn(ax, at[f"motor_{side}"], 0.05, 0.0, end, SOFT)
        middle = at[f"motor_{side}"] + 0.05 * np.array([np.cos(0.4 * end), np.sin(0.4 * end)])
        note(ax, middle, f"{end:.2f}", SOFT, offset=(4, 2), fontsize=7)
    return fig


def five_bar_circle() -> Figure:
    f = page("tutorial-five-bar", "## 5.")
    fig, (ax, curve) = figure(7.0, 3.0, 1, 2, width_ratios=(1.0, 1.5))
    sketch(ax)
    for i in (len(f.run.t) // 3, len(f.run.t) // 2):
        five_bar(ax, f, f.run.q[i], FAINT)
    five_bar(ax, f, f.start)
    ax.plot(*f.path.T, color=GREEN, linewidth=2, zorder=8)
    ax.set_title(f"once around in {f.DURATION:g} s")
    for i, name in enumerate(f.mech.actuator_names):
        curve.plot(f.run.t, f.run.u[:, i], label=name)
    for sign in (1, -1):
        curve.axhline(sign * f.mech.limits.effort, color=INK, linestyle=":", linewidth=1.2)
    note(curve, (0, f.mech.limits.effort), "limit", offset=(2, -11))
    curve.set(xlabel="t (s)", ylabel="torque (N m)", title="torques, from two noisy encoders")
    curve.legend(loc="lower left", ncols=2, bbox_to_anchor=(0.0, 0.02))
    return fig


def five_bar_dead_point() -> Figure:
    import holoctl as hc

    f = page("tutorial-five-bar", "## 7.")
    most, flat = f.mech.limits.effort, five_bar_points(f, f.flat)["tip"][1]
    heights, torques, x = np.geomspace(0.3, 1e-3, 40) + flat, [], f.q
    for height in heights:
        x, _, _ = hc.inverse_kinematics(f.mech, {f.tip: [0.0, height]}, x)
        torques.append(hc.inverse_dynamics(f.mech, x, f.v, f.still).u[1])
    fig, (ax, curve) = figure(7.0, 2.9, 1, 2, width_ratios=(1.0, 1.4))
    five_bar(sketch(ax), f, f.q, FAINT)
    at = five_bar(ax, f, f.flat)
    arrow(ax, at["tip"] + (0, 0.11), at["tip"] + (0, 0.015), RED)
    ax.set_title("forearms in line: a dead point")
    curve.semilogy(1e3 * heights, torques)
    curve.axhline(most, color=INK, linestyle=":", linewidth=1.2)
    note(curve, (380, most), "what the motors have", offset=(0, 4), ha="right")
    curve.axvline(1e3 * flat, color=RED, linewidth=1.2)
    note(curve, (1e3 * flat, 0.25), "in line", RED, offset=(5, 0))
    over = np.interp(most, torques, heights)
    curve.axvspan(1e3 * flat, 1e3 * over, color=RED, alpha=0.12, linewidth=0)
    curve.plot(1e3 * over, most, "o", color=GREEN)
    curve.set(xlabel="height of the tip (mm)", ylabel="torque (N m)", title="what holds it there")
    return fig


def gripper() -> Figure:
    """The gripper of the first page as `hc.draw` shows it, with the names of its file."""
    import matplotlib.pyplot as plt
    import pinocchio as pin

    import holoctl as hc

    d = page("tutorial-own-robot", "## 6.")
    fig = plt.figure(figsize=(6.0, 2.3), layout="constrained")
    ax = fig.add_subplot()
    hc.draw(d.mech, d.q, ax)
    model, data = d.mech.model, d.mech.model.createData()
    pin.forwardKinematics(model, data, d.q)
    crank, rocker, finger = (
        data.oMi[model.getJointId(f"{x}_l")].translation[[0, 2]]
        for x in ("crank", "rocker", "finger")
    )
    pivot = finger + rocker - crank  # of a parallelogram
    note(ax, (crank + finger) / 2, "crank_l", INK, offset=(-40, 6))
    note(ax, (rocker + pivot) / 2, "rocker_l", INK, offset=(8, -14))
    note(ax, (finger + pivot) / 2, "finger_l", INK, offset=(6, 6))
    note(ax, pivot, "pin_l, cut", INK, offset=(8, -14))
    note(ax, crank, "motor", INK, offset=(-14, 9))
    ax.annotate(
        "", crank * (-1, 1) + (0.004, 0.0), crank - (0.004, 0.0),
        arrowprops={"arrowstyle": "<->", "color": SOFT, "linestyle": "dashed"},
    )  # fmt: skip
    note(ax, crank * (0, 1), "gear pair (mimic)", SOFT, offset=(0, -18), ha="center")
    ax.set_xlim(-0.085, 0.085)
    return fig


PICTURES = {
    "gripper": gripper,
    "delta-drawing": delta_drawing,
    "delta-drawn": delta_drawn,
    "delta-run": delta_run,
    "five-bar-drawing": five_bar_drawing,
    "five-bar-circle": five_bar_circle,
    "five-bar-dead-point": five_bar_dead_point,
}
