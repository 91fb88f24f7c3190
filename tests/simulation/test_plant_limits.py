"""`hc.simulate(limits=)`: motors give what they can, and the run says what that was."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from refusals import refused
from support import together

import holoctl as hc

CURVE = [(0.0, 3.0), (2.0, 1.0), (4.0, 0.5)]


@cache
def robot():
    mech = hc.load(hc.robot_file("five_bar"))
    return mech, hc.assemble(mech)[0], np.zeros(mech.nv)


def waves(t, q=None, v=None):
    return np.array([6.0 * np.sin(9.0 * t), 5.0 * np.cos(7.0 * t)])


def simulated(controller, limits=None, duration=0.3, **options):
    mech, q, v = robot()
    return hc.simulate(mech, controller, q, v, duration, **together(limits=limits, **options))


def can_give(mech, run):
    """By the curve, at the rates of each instant: on the side to which a motor drives."""
    rates = run.v @ mech.B
    most = np.interp(np.abs(rates), *np.array(CURVE).T)
    stall = CURVE[0][1]
    upper = np.where(rates > 0.0, most, stall)
    return np.where(rates < 0.0, -most, -stall), upper


@pytest.mark.parametrize("hold", [True, False])
def test_what_acts_is_what_was_clipped(hold):
    """As if the controller had clipped it: the same motion, the same record."""
    limits = hc.Limits(effort=[2.0, (-1.0, 4.0)])
    mine = simulated(lambda t, q, v: np.clip(waves(t), [-2.0, -1.0], [2.0, 4.0]), hold=hold)
    run = simulated(waves, limits, hold=hold)
    assert np.array_equal(run.u, mine.u)
    assert np.allclose(run.q, mine.q, rtol=0.0, atol=1e-12)
    assert run.u[:, 0].max() == 2.0
    assert run.u[:, 1].min() == -1.0


def test_within_limits_nothing_changes():
    free, run = simulated(waves), simulated(waves, hc.Limits(effort=100.0))
    assert np.array_equal(run.u, free.u)
    assert np.array_equal(run.q, free.q)


@pytest.mark.parametrize("hold", [True, False])
def test_torque_falls_with_speed_at_every_instant(hold):
    """Between the ticks too, while what the controller asks for is held."""
    mech, _, _ = robot()
    times = np.linspace(0.0, 0.3, 301)
    run = simulated(waves, hc.Limits(speed_torque=CURVE), hold=hold, frequency=50.0, output=times)
    lower, upper = can_give(mech, run)
    asked = np.array([waves(np.floor(t * 50.0 + 1e-9) / 50.0 if hold else t) for t in times])
    assert np.abs(run.u[:-1] - np.clip(asked, lower, upper)[:-1]).max() < 1e-12
    assert (np.abs(run.u) < 3.0).any()
    assert (np.abs(run.v @ mech.B) > 2.0).any()


def test_the_energy_is_that_of_what_acts():
    """Work of the efforts that are recorded, by the rule of Simpson, is what the plant gains."""
    mech, _, _ = robot()
    times = np.linspace(0.0, 0.3, 2401)
    run = simulated(waves, hc.Limits(effort=2.5, speed_torque=CURVE), hold=False, output=times)
    power = np.einsum("ij,ij->i", run.u, run.v @ mech.B)
    work = (times[1] / 3.0) * (power[:-2:2] + 4.0 * power[1:-1:2] + power[2::2]).sum()
    stored = sum(run.energy.values())
    assert stored[-1] - stored[0] == pytest.approx(work, rel=1e-4)


def test_compiled_dynamics_serve():
    pytest.importorskip("casadi")
    mech, _, _ = robot()
    compiled = hc.compile(mech, ["forward_dynamics"])
    for limits in (hc.Limits(effort=2.0), hc.Limits(speed_torque=CURVE)):
        run, quick = simulated(waves, limits), simulated(waves, limits, dynamics=compiled)
        assert np.allclose(quick.q, run.q, rtol=0.0, atol=1e-9)
        assert np.allclose(quick.u, run.u, rtol=0.0, atol=1e-7)


def test_limits_are_those_of_the_plant():
    """Its motors turn with its own rates; the names are the same as those of the model."""
    mech, q, v = robot()
    model = mech.model.copy()
    for body in model.inertias[1:]:
        body.mass *= 3.0
    heavy = dataclasses.replace(mech, model=model)
    run = hc.simulate(
        mech,
        waves,
        q,
        v,
        0.3,
        plant=hc.Plant(heavy, limits=hc.Limits(effort={mech.actuated[1]: 0.5})),
    )
    assert np.abs(run.u[:, 1]).max() == 0.5
    assert np.abs(run.u[:, 0]).max() > 5.0


def test_a_cable_pulls_with_its_least():
    run = simulated(lambda t, q, v: np.zeros(2), hc.Limits(effort=(0.25, 5.0)))
    assert (run.u == 0.25).all()


def test_after_an_event_they_are_the_same():
    mech, q, v = robot()
    lighter = dataclasses.replace(mech, name="lighter")
    turns = hc.Event(lambda t, q, v: t - 0.1, reaction=lambda t, q, v: (lighter, v))
    run = hc.simulate(
        mech, waves, q, v, 0.3, plant=hc.Plant(limits=hc.Limits(effort=2.0)), events=[turns]
    )
    assert len(run.events) == 1
    assert np.abs(run.u[run.t > 0.1]).max() == 2.0


def test_joints_have_no_end_stops():
    """The same limits serve controller and plant; those of joints are the controller's."""
    mech, q, _ = robot()
    name = mech.actuated[0]
    narrow = (mech.motor_positions(q)[0] - 0.01, mech.motor_positions(q)[0] + 0.01)
    limits = hc.Limits(effort=2.0, position={name: narrow}, velocity=0.1)
    both = simulated(waves, limits), simulated(waves, hc.Limits(effort=2.0))
    assert np.array_equal(both[0].q, both[1].q)


def never(t, q, v):
    raise AssertionError("it was asked")


BAD = {
    "a number": (2.0, "hc.Limits"),
    "a mapping": ({"effort": 2.0}, "hc.Limits"),
    "too many": (hc.Limits(effort=[1.0, 2.0, 3.0]), "3"),
    "an unknown name": (hc.Limits(effort={"motor_lift": 1.0}), "motor_left"),
    "a joint without a motor": (hc.Limits(effort={"elbow_left": 1.0}), "motor"),
    "nothing": (hc.Limits(), "end stops"),
    "joints alone": (hc.Limits(velocity=1.0, position={"elbow_left": 1.0}), "end stops"),
    "no limit": (hc.Limits(effort=np.inf), "end stops"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_refused_before_anything_runs(case):
    limits, word = BAD[case]
    refused(lambda: simulated(never, limits), hc.InputError, word)


def test_they_need_a_controller():
    refused(lambda: simulated(None, hc.Limits(effort=2.0)), hc.InputError, "limits")
