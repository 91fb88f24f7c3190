"""A Stewart platform that is to rise level, with one leg too weak for it: how far it tilts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from scipy.interpolate import make_interp_spline

import holoctl as hc

WEAK, RATE = "leg_1", 500.0
NEAREST, SCALED = 1 / 3, 1 / 50  # of what it tilts where its efforts are clipped


@cache
def platform():
    """The mechanism, standing, and the lengths of its legs by the height of the level platform."""
    mech = hc.load(hc.robot_file("stewart"))
    q, _ = hc.assemble(mech)
    heights = np.linspace(-0.01, 0.06, 15)
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    home = data.oMf[mech.model.getFrameId("tip")]
    lengths, guess = [], q
    for z in heights:
        place = ("universe", pin.SE3(home.rotation, home.translation + np.array([0, 0, z])))
        hold = hc.Closure(place, "tip", axes="x y z rx ry rz", name="hold")
        held = hc.Mechanism(mech.model, [*mech.constraints, hold])
        guess = hc.assemble(held, guess, restarts=0)[0]
        lengths.append(mech.motor_positions(guess))
    return mech, q, make_interp_spline(heights, lengths, k=5)


def up_and_down(lengths, by, period):
    """It rises by so much, m, and sinks again, in a period, s."""
    first, second, w = lengths.derivative(1), lengths.derivative(2), 2 * np.pi / period

    def reference(t):
        z, speed = 0.5 * by * (1 - np.cos(w * t)), 0.5 * by * w * np.sin(w * t)
        bend = second(z) * speed**2
        return lengths(z), first(z) * speed, first(z) * 0.5 * by * w**2 * np.cos(w * t) + bend

    return reference


def tilts(mech, run):
    """Angles of the platform against the level one, degrees."""
    of = mech.model.getJointId("platform_pose")
    start = mech.model.joints[of].idx_q + 3
    return np.degrees([2 * np.arcsin(np.linalg.norm(q[start : start + 3])) for q in run.q])


@pytest.mark.parametrize(("most", "up"), [(10.5, 1.0), (11.0, 4.0), (12.0, 4.0), (12.0, 8.0)])
def test_the_acceleration_of_the_tilt_is_a_third_or_nothing(most, up):
    """From rest, upwards by so many m/s^2, with so many N of the weak leg."""
    mech, q, lengths = platform()
    rest, target = np.zeros(mech.nv), lengths(0.0, nu=1) * up
    limits = hc.Limits(effort={WEAK: most})
    asked = hc.inverse_dynamics(mech, q, rest, target).u
    bounds = np.where(np.array(mech.actuated) == WEAK, most, np.inf)
    clipped = np.clip(asked, -bounds, bounds)
    assert (clipped != asked).sum() == 1
    turning = {"clipped": hc.forward_dynamics(mech, q, rest, mech.B @ clipped).a[-3:]}
    for policy in ("nearest", "scale"):
        found = hc.limited_inverse_dynamics(mech, q, rest, target, hc.WithinLimits(limits, policy))
        assert found.saturated == (WEAK,)
        turning[policy] = found.a[-3:]
    size = {how: np.linalg.norm(a) for how, a in turning.items()}
    assert size["nearest"] <= NEAREST * size["clipped"]
    assert size["scale"] <= SCALED * size["clipped"]


@pytest.mark.parametrize(("most", "period"), [(11.0, 2 / 3), (12.0, 0.5)])
def test_a_motion_tilts_a_third_or_hardly_at_all(most, period):
    mech, q, lengths = platform()
    limits = hc.Limits(effort={WEAK: most})
    laws = {
        "clipped": hc.ComputedTorque(mech, 400.0, 40.0),
        "nearest": hc.ComputedTorque(mech, 400.0, 40.0, limits=limits, dt=1 / RATE),
        "scale": hc.ComputedTorque(mech, 400.0, 40.0, limits=limits, policy="scale", dt=1 / RATE),
    }
    worst = {}
    for how, law in laws.items():
        follow = law.track(up_and_down(lengths, 0.05, period))
        rest = np.zeros(mech.nv)
        run = hc.simulate(
            mech,
            follow,
            q,
            rest,
            1.0,
            plant=hc.Plant(limits=limits),
            frequency=RATE,
            integrator=hc.Integrator(rtol=1e-7),
        )
        worst[how] = tilts(mech, run).max()
        at_limit = run.u[:, mech.actuated.index(WEAK)]
        assert at_limit.max() == most
    assert worst["clipped"] > 5.0  # degrees
    assert worst["nearest"] <= NEAREST * worst["clipped"]
    assert worst["scale"] <= SCALED * worst["clipped"]
