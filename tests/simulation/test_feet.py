"""Feet that land and leave in one run: plants that change, with closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hoppers import BODY, FOOT, hopper, hops, of_hops
from support import together

import holoctl as hc

IDLE = {"alone": None, "under a controller": lambda t, q, v: [0.0]}


def hopped(h, height, duration, controller=None, **options):
    q = h.standing.reference.copy()
    q[h.up] += height
    v = np.zeros(h.flying.nv)
    return hc.simulate(h.flying, controller, q, v, duration, events=hops(h), **together(**options))


@pytest.mark.parametrize(
    ("controller", "method"),
    [("alone", "auto"), ("alone", "LSODA"), ("under a controller", "auto")],
)
@pytest.mark.parametrize("floating", [False, True])
def test_a_foot_lands_leaves_and_lands_again_as_in_closed_form(floating, controller, method):
    h = hopper(floating)
    at, lost = of_hops(0.2)
    run = hopped(h, 0.2, at[-1] - 1e-3, IDLE[controller], method=method)
    assert run.events[:, 1].tolist() == [0.0, 1.0]
    assert run.events[:, 0] == pytest.approx(at[:2], abs=1e-9 if method == "auto" else 1e-6)
    foot = run.q[:, h.up] + run.q[:, -1]
    assert foot.min() > -1e-9
    stands = (run.t > at[0]) & (run.t < at[1])
    assert np.abs(foot[stands]).max() < 1e-11
    assert run.closure.max() < 1e-11
    total = sum(run.energy.values())
    book = np.where(run.t > at[0], lost, 0.0)
    assert total + book == pytest.approx(total[0], abs=1e-7 if method == "auto" else 1e-5)
    again = hopped(h, 0.2, at[-1] + 0.1, IDLE[controller], method=method)
    assert again.events[2, 0] == pytest.approx(at[2], abs=1e-9 if method == "auto" else 1e-6)
    assert again.events[:3, 1].tolist() == [0.0, 1.0, 0.0]
    total = sum(again.energy.values())
    assert (np.diff(total) < 1e-5).all()


def test_a_foot_that_stands_does_not_land():
    h = hopper(False)
    q, v = hc.assemble(h.standing)
    events = hops(h)[:1]
    run = hc.simulate(h.standing, None, q, v, 1.0, events=events)
    assert len(run.events) == 0
    for method in ("LSODA", "Radau"):  # they keep to the ground less exactly
        run = hc.simulate(
            h.standing,
            None,
            q,
            v,
            1.0,
            events=events,
            integrator=hc.Integrator(method=method, rtol=1e-5, atol=1e-7),
        )
        assert len(run.events) == 0


def test_energy_is_that_of_the_plant_that_serves():
    """Of another mass in flight: whatever the energies, they are those of `energy`."""
    h = hopper(False)
    run = hopped(h, 0.1, 0.6)
    assert len(run.events) >= 2
    for i in range(0, run.t.size, 40):
        told = hc.energy(h.standing, run.q[i], run.v[i])  # contacts store nothing
        for kind, values in run.energy.items():
            assert values[i] == pytest.approx(getattr(told, kind), abs=1e-12)


def test_a_load_is_picked_up():
    """A reaction may change inertias; kinetic energy is then of the new ones."""
    h = hopper(False)
    model = h.flying.model.copy()
    model.inertias[1].mass = 2.0 * BODY
    heavy = h.flying.with_model(model)
    q, v = h.flying.reference.copy(), np.zeros(2)
    share = (BODY + FOOT) / (2.0 * BODY + FOOT)
    event = hc.Event(lambda t, q, v: t - 0.1005, reaction=lambda t, q, v: (heavy, share * v))
    run = hc.simulate(h.flying, None, q, v, 0.2, events=event)
    for i, mech in ((50, h.flying), (100, h.flying), (101, heavy), (-1, heavy)):
        assert run.energy["kinetic"][i] == pytest.approx(
            hc.energy(mech, run.q[i], run.v[i]).kinetic, rel=1e-12
        )
    # at an instant of the record, the state after it counts
    event = hc.Event(lambda t, q, v: t - 0.1, reaction=lambda t, q, v: (heavy, share * v))
    run = hc.simulate(h.flying, None, q, v, 0.2, events=event, output=[0.0, 0.1, 0.2])
    after = hc.energy(heavy, run.q[1], run.v[1]).kinetic
    assert run.energy["kinetic"][1] == pytest.approx(after, rel=1e-12)


def test_a_motor_makes_it_hop_higher():
    """Under a controller that is told by what it does when it stands."""
    h = hopper(False)

    def pushes(t, q, v):
        return [-150.0 if q[0] < 0.55 and v[0] > 0.0 else 0.0]

    heights = []
    for controller in (IDLE["under a controller"], pushes):
        run = hopped(h, 0.1, 1.2, controller)
        assert (run.q[:, 0] + run.q[:, 1]).min() > -1e-9
        assert len(run.events) >= 3
        heights.append(run.q[run.t > 0.4, 0].max())
    assert heights[1] > heights[0] + 0.05


def test_two_feet_that_land_at_once():
    """One is told first; its reaction holds both, so the other does not land after it."""
    h = hopper(False)
    first = hops(h)[0]
    again = hc.Event(first.function, -1, reaction=first.reaction)
    q = np.add(h.standing.reference, [0.2, 0.0])
    run = hc.simulate(h.flying, None, q, np.zeros(2), 0.3, events=[first, again])
    assert run.events[:, 1].tolist() == [0.0]
    # where the first holds nothing, the other comes right after it
    idle = hc.Event(first.function, -1, reaction=lambda t, q, v: (h.flying, v))
    run = hc.simulate(h.flying, None, q, np.zeros(2), 0.3, events=[idle, first])
    assert run.events[:, 1].tolist() == [0.0, 1.0]
    assert run.events[:, 0] == pytest.approx(of_hops(0.2)[0][0], abs=1e-9)


def test_a_velocity_that_breaks_the_contact_is_refused():
    h = hopper(False)
    lands = hops(h)[0]
    wrong = hc.Event(lands.function, -1, reaction=lambda t, q, v: (h.standing, v))
    q = np.add(h.standing.reference, [0.2, 0.0])
    with pytest.raises(hc.InconsistentError, match="not on the constraints") as caught:
        hc.simulate(h.flying, None, q, np.zeros(2), 1.0, events=wrong)
    e = caught.value
    assert e.time == e.run.t[-1] == pytest.approx(of_hops(0.2)[0][0], abs=1e-9)
    assert "reaction of event 0" in e.__notes__[0]
    far = hc.Event(lambda t, q, v: q[0] - 0.7, reaction=lambda t, q, v: (h.standing, 0.0 * v))
    with pytest.raises(hc.InconsistentError, match="not on the constraints"):
        hc.simulate(h.flying, None, q, np.zeros(2), 1.0, events=far)
