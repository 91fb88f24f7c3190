"""Pictures of the first page: closed loops, what a five-bar draws, and the torques it takes."""

from __future__ import annotations

from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import BODY, CLOSURE, FAINT, GREEN, bar, figure, hinge, note, sketch, space

import holoctl as hc

MOTORS = ("motor_left", "motor_right")
PERIOD = 1.2
"""Of the figure, s."""


@cache
def drawn() -> tuple[hc.Mechanism, hc.Run]:
    """A five-bar that draws an eight under torque control."""
    mech = hc.load(hc.robot_file("five_bar"))
    q, _ = hc.assemble(mech)
    home, size = mech.motor_positions(q), np.array([0.34, 0.34])
    rate = 2.0 * np.pi / PERIOD * np.array([1.0, 1.0])
    late = np.array([0.0, 1.9])

    def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        way = rate * t + late
        start = home - size * np.sin(late)
        return (
            start + size * np.sin(way),
            size * rate * np.cos(way),
            -size * rate**2 * np.sin(way),
        )

    q, v = hc.assemble(mech, q, v_guess=mech.B @ reference(0.0)[1], locked=MOTORS)
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    return mech, hc.simulate(mech, ctl.track(reference), q, v, duration=PERIOD)


def places(mech: hc.Mechanism, q: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """(n, 2): where frames are, x and z."""
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    return np.array([data.oMf[mech.model.getFrameId(n)].translation[[0, 2]] for n in names])


JOINTS = ("motor_left", "elbow_left", "tip_left", "elbow_right", "motor_right")


def posture(ax: Axes, points: np.ndarray, color: str, width: float, zorder: int) -> None:
    """The four moving bars of the five-bar."""
    for a, b in pairwise(points):
        bar(ax, a, b, color, width, zorder=zorder)


def five_bar_draws(ax: Axes) -> None:
    """Postures, the way of the tip, and the closing hinge."""
    mech, run = drawn()
    sketch(ax, margin=0.1)
    way = np.array([places(mech, q, ("tip_left",))[0] for q in run.q[::10]])
    for q in run.q[:: len(run.q) // 9]:
        posture(ax, places(mech, q, JOINTS), FAINT, 2.5, 1)
    ax.plot(*way.T, color=GREEN, linewidth=2.0, zorder=2)
    points = places(mech, run.q[0], JOINTS)
    posture(ax, points, BODY, 5.0, 3)
    for i in (0, 4):
        hinge(ax, points[i], motor=True, ground=True)
    for i in (1, 3):
        hinge(ax, points[i])
    hinge(ax, points[2], CLOSURE)
    note(ax, points[2], "closed here", CLOSURE, offset=(-9, 5), ha="right")


def first_look() -> Figure:
    """What it is about: a closed loop that draws, its torques, and other robots."""
    fig = plt.figure(figsize=(10.0, 3.5), layout="constrained")
    grid = fig.add_gridspec(2, 5, width_ratios=[1.25, 1.25, 1.9, 1.0, 1.0])
    ax = fig.add_subplot(grid[:, :2])
    five_bar_draws(ax)
    ax.set_title("a loop that follows a figure")
    _, run = drawn()
    ax = fig.add_subplot(grid[:, 2])
    ax.plot(run.t, run.u, label=["left motor", "right motor"])
    ax.set(xlabel="t (s)", title="its torques (N m)", xlim=(0.0, PERIOD))
    ax.legend(loc="lower right")
    robots = ("delta", "stewart", "leg", "geared_arm")
    for name, place in zip(robots, (grid[0, 3], grid[0, 4], grid[1, 3], grid[1, 4]), strict=True):
        small_robot(fig, place, name)
    return fig


def small_robot(fig: Figure, place: Any, name: str) -> None:
    """One of the robots, beside the figure."""
    robot(space(fig, place, 18.0, -65.0), name, 0.55)


def robot(ax: Any, name: str, size: float) -> None:
    """A robot that comes with the library, with its name."""
    mech = hc.load(hc.robot_file(name))
    q, _ = hc.assemble(mech)
    hc.draw(mech, q, ax)
    for line in ax.lines:
        line.set_markersize(size * line.get_markersize())
        line.set_markeredgewidth(size * line.get_markeredgewidth())
        line.set_linewidth((0.25 + size) * line.get_linewidth())
    ax.set_title(name, fontsize=8.5, y=1.02)


def one_robot(name: str) -> Figure:
    """A robot alone: in its plane, or in space."""
    if name in ("five_bar", "four_bar"):
        fig, ax = figure(3.0, 2.4)
        robot(ax, name, 1.0)
        sketch(ax, margin=0.17)
    else:
        fig = plt.figure(figsize=(3.0, 2.4))
        ax = space(fig, 111, 18.0, -65.0)
        ax.set_position((0.0, 0.0, 1.0, 0.92))
        robot(ax, name, 0.8)
        sides = [np.ptp(limits) for limits in (ax.get_xlim(), ax.get_ylim(), ax.get_zlim())]
        ax.set_box_aspect(sides, zoom=1.0)
    ax.set_title("")
    return fig


PICTURES = {
    "first-look": first_look,
    **{f"robot-{name}": partial(one_robot, name) for name in hc.robot_names()},
}
