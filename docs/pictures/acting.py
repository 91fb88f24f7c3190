"""What acts and what limits: friction, springs, brakes; a motion that crosses singular places."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from matplotlib.figure import Figure
from style import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED, SOFT, figure, note

import holoctl as hc


def friction_and_springs() -> Figure:
    """The formulas of forces.md."""
    fig, (ax, bx) = figure(7.0, 2.8, 1, 2)
    r = np.linspace(-1.0, 1.0, 2001)
    transition, coulomb, viscous, peak, speed = 0.05, 0.5, 0.35, 0.8, 0.18
    smooth = np.tanh(r / transition)
    ax.plot(r, -viscous * r, label="viscous", color=SOFT)
    ax.plot(r, -coulomb * smooth, label="Coulomb")
    ax.plot(
        r,
        -(coulomb + (peak - coulomb) * np.exp(-((r / speed) ** 2))) * smooth,
        label="with Stribeck's peak",
    )
    creep = transition * np.arctanh(0.5)
    ax.plot(creep, -0.5 * coulomb, "o", color=RED, markersize=5)
    note(
        ax,
        (creep, -0.5 * coulomb),
        "creeps under half\nthe Coulomb friction",
        RED,
        offset=(14, 62),
        fontsize=7.5,
    )
    ax.set(xlabel="rate r, rad/s", ylabel="effort, N m", title="joint friction")
    ax.legend(loc="lower left", fontsize=7.5)
    L = np.linspace(0.0, 0.5, 500)
    rope = np.maximum(300.0 * (L - 0.2), 0.0)
    bx.plot(L, rope, label="unilateral: a rope", color=ORANGE, linewidth=5.0, alpha=0.5)
    bx.plot(L, 300.0 * (L - 0.2), label="Spring", color=BLUE)
    bx.axvline(0.2, color=FAINT)
    note(bx, (0.2, 0), "length", SOFT, offset=(5, -26))
    bx.set(xlabel="distance of the ends, m", ylabel="tension, N", title="between two points")
    bx.legend(loc="upper left", fontsize=7.5)
    return fig


def brake_in_time() -> Figure:
    """From where a joint can still stop before its limit, and how fast it may be."""
    fig, ax = figure(5.2, 2.9)
    lower, upper, fastest, brake = -0.4, 0.4, 5.0, 40.0
    x = np.linspace(lower, upper, 800)
    top = np.minimum(np.sqrt(2 * brake * (upper - x)), fastest)
    bottom = -np.minimum(np.sqrt(2 * brake * (x - lower)), fastest)
    ax.fill_between(x, bottom, top, color=GREEN, alpha=0.15, linewidth=0)
    ax.plot(x, top, color=GREEN)
    ax.plot(x, bottom, color=GREEN)
    for limit in (lower, upper):
        ax.axvline(limit, color=RED, linewidth=1.2)
    v = np.linspace(4.2, 0.0, 60)
    ax.plot(upper - v**2 / (2 * brake) - 0.004, v, color=BLUE)
    ax.plot([-0.15, upper - 4.2**2 / (2 * brake) - 0.004], [4.2, 4.2], color=BLUE)
    note(ax, (-0.15, 4.2), "as asked", BLUE, offset=(2, -13))
    note(ax, (0.33, 2.2), "brakes", BLUE, offset=(-40, -4))
    note(ax, (0.0, 5.0), "velocity limit", GREEN, offset=(-34, 4))
    note(ax, (upper, -4.5), "position limit", RED, offset=(-74, 0))
    ax.set(xlabel="position, rad", ylabel="rate, rad/s", ylim=(-6, 6))
    return fig


def at(x: float) -> pin.SE3:
    return pin.SE3(np.eye(3), np.array([x, 0.0, 0.0]))


def crossing() -> Figure:
    """The parallelogram of simulation.md: its angles, its energies."""
    model = pin.Model()
    model.gravity.linear = np.array([0.0, -9.81, 0.0])
    for name, parent, x, length in (
        ("crank", 0, 0.0, 0.3),
        ("coupler", 1, 0.3, 0.5),
        ("rocker", 0, 0.5, 0.3),
    ):
        j = model.addJoint(parent, pin.JointModelRZ(), at(x), name)
        bar = pin.Inertia(1.0, np.array([length / 2, 0, 0]), length**2 / 12 * np.eye(3))
        model.appendBodyToJoint(j, bar, pin.SE3.Identity())
    closure = hc.Closure(("coupler", at(0.5)), ("rocker", at(0.3)), axes="x y", name="pin")
    mech = hc.Mechanism(model, [closure], ["crank"], name="parallelogram")
    q0, v0 = hc.assemble(mech, [0.9, -0.9, 0.9], v_guess=[-1, 1, -1])
    often = np.linspace(0.0, 2.0, 201)
    run = hc.simulate(
        mech,
        None,
        q0,
        v0,
        duration=2.0,
        integrator=hc.Integrator(at_singular="cross"),
        output=often,
    )
    fig, (ax, bx) = figure(7.0, 2.7, 1, 2)
    for i, name in enumerate(("crank", "coupler", "rocker")):
        ax.plot(run.t, run.q[:, i], label=name, linestyle=":" if name == "rocker" else "-")
    bx.plot(run.t, run.energy["kinetic"], label="kinetic", color=ORANGE)
    bx.plot(run.t, run.energy["gravity"], label="gravity", color=PURPLE)
    bx.plot(run.t, sum(run.energy.values()), label="sum", color=INK)
    for t in run.crossings:
        for axes in (ax, bx):
            axes.axvline(t, color=RED, linewidth=0.9, linestyle="--")
    note(ax, (float(run.crossings[-1]), -3.6), "folded flat", RED, offset=(-58, 0), fontsize=8)
    ax.set(xlabel="t, s", ylabel="rad")
    bx.set(xlabel="t, s", ylabel="J")
    for axes in (ax, bx):
        axes.legend(loc="lower center", ncols=3, bbox_to_anchor=(0.5, 1.0))
    return fig


PICTURES = {
    "friction-and-springs": friction_and_springs,
    "brake-in-time": brake_in_time,
    "crossing": crossing,
}
