"""Events against closed forms, and what they must not do."""

from __future__ import annotations

import numpy as np
import pytest
from hoppers import G, ball, bounces, of_bounces
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from support import closed_states, few, mechanism, together
from zoo import slider_crank

import holoctl as hc

EXPLICIT, IMPLICIT = ("auto", "DOP853", "RK45"), ("LSODA", "Radau", "BDF")
BALL = ball()


def dropped(events, duration, height=1.0, **options):
    return hc.simulate(BALL, None, [height], [0.0], duration, events=events, **together(**options))


@pytest.mark.parametrize("rate", [1000.0, 3.0])
@pytest.mark.parametrize("method", EXPLICIT + IMPLICIT)
def test_a_ball_bounces_as_in_closed_form(method, rate):
    """Whatever the first step after a bounce is: those at the end take 7 ms."""
    run = dropped(bounces(BALL, 0.5), 1.352, method=method, frequency=rate)
    at = of_bounces(0.5, 1.0, 9)
    assert run.events.shape == (9, 2)
    assert (run.events[:, 1] == 0.0).all()
    assert run.events[:, 0] == pytest.approx(at, abs=1e-6 if method in ("LSODA", "BDF") else 1e-9)
    assert run.q.min() > -1e-9
    speed = 0.5**9 * np.sqrt(2.0 * G) - G * (1.352 - at[-1])
    assert run.v[-1, 0] == pytest.approx(speed, abs=1e-8 if method in EXPLICIT else 1e-5)


def test_a_ball_that_bounces_ever_faster_does_not_fall_through_the_ground():
    for restitution in (0.5, 0.01, 0.0):
        with pytest.raises(hc.InconsistentError, match="event 0 goes through zero again") as e:
            dropped(bounces(BALL, restitution), 1.5)
        end = np.sqrt(2.0 / G) * (1.0 + 2.0 * restitution / (1.0 - restitution))
        assert e.value.time == pytest.approx(end, abs=1e-3)
        assert e.value.run.q.min() > -1e-8
        assert len(e.value.run.events) >= 1


def test_events_that_set_each_other_off_end_in_an_error():
    """A switch that is thrown back and forth by what it does."""
    count = [0]

    def there_and_back(t, q, v):
        count[0] += 1
        return BALL, 1e-5 * (-1.0) ** count[0] * np.ones(1)

    event = hc.Event(lambda t, q, v: q[0] - 1e-11 * np.sin(1e8 * t), reaction=there_and_back)
    with pytest.raises(hc.InconsistentError, match=r"event"):
        dropped(event, 1.0, 0.1)


def test_directions():
    """Of a ball thrown up: it passes a height twice."""
    up = np.roots([-0.5 * G, 5.0, -1.0]).min(), np.roots([-0.5 * G, 5.0, -1.0]).max()
    for direction, at in ((1, up[:1]), (-1, up[1:]), (0, up), (7.5, up[:1])):
        event = hc.Event(lambda t, q, v: q[0] - 1.0, direction=direction)
        run = hc.simulate(BALL, None, [0.0], [5.0], 1.2, events=event)
        assert run.events[:, 0] == pytest.approx(at, abs=1e-9)
        assert run.ended == ""
        assert run.t.size == 1201


@pytest.mark.parametrize("output", [None, [0.1, 1.0], [0.0]])
def test_a_run_ends_at_a_terminal_event(output):
    event = hc.Event(lambda t, q, v: q[0], terminal=True)
    run = dropped([hc.Event(lambda t, q, v: q[0] + 1.0), event], 2.0, output=output)
    assert run.ended == "event 1"
    assert run.t[-1] == run.events[-1, 0] == pytest.approx(np.sqrt(2.0 / G), abs=1e-9)
    assert abs(run.q[-1, 0]) < 1e-12
    assert run.events[:, 1] == pytest.approx([1.0])
    assert "1 event, ended by event 1" in repr(run)


def test_several_events_in_one_step_come_in_order():
    heights = [0.9, 0.1, 0.5, 0.5001, 0.9]
    events = [hc.Event(lambda t, q, v, h=h: q[0] - h) for h in heights]
    run = dropped(events, 0.45, method="DOP853", frequency=1.0)
    wanted = sorted((np.sqrt(2.0 * (1.0 - h) / G), i) for i, h in enumerate(heights))
    assert run.events == pytest.approx(np.array(wanted), abs=1e-9)
    assert run.steps < 40


def test_what_starts_at_zero():
    """It happens at once where it goes the way asked for, and not where it stays or goes away."""
    for off in (0.0, 1e-13, -1e-13):
        falls = hc.Event(lambda t, q, v: q[0], direction=-1, terminal=True)
        run = hc.simulate(BALL, None, [off], [0.0], 1.0, events=falls)
        assert run.t[-1] < 1e-6
        run = hc.simulate(BALL, None, [off], [2.0], 1.0, events=falls)
        assert run.t[-1] == pytest.approx(4.0 / G, abs=1e-9)
        rises = hc.Event(lambda t, q, v: q[0], direction=1, terminal=True)
        assert hc.simulate(BALL, None, [off], [2.0], 0.1, events=rises).t[-1] < 1e-6
    stays = hc.Event(lambda t, q, v: 1e-12 * np.sin(1e3 * t), terminal=True)
    assert dropped(stays, 0.3).ended == ""


def test_an_event_at_the_last_instant_or_beyond():
    end = np.sqrt(2.0 / G)
    event = bounces(BALL, 1.0)
    assert len(dropped(event, end + 1e-9).events) == 1
    assert len(dropped(event, end - 1e-9).events) == 0


@pytest.mark.parametrize("rtol", few([1e-9, 1e-5, 1e-3], [1e-3]))
@pytest.mark.parametrize("method", ["DOP853", "RK45", "Radau"])
def test_events_happen_once_however_rough_the_run(method, rtol):
    """The end of the step that leads to one is where the function vanishes, not nearly."""
    mech = mechanism("four_bar")
    q, v = hc.assemble(mech, v_guess=[3.0, 0.0, 0.0])
    seen = []

    def reaction(t, q, v):
        seen.append(q[0])
        return mech, -v

    event = hc.Event(lambda t, q, v: q[0] - 0.5, reaction=reaction)
    options = {"method": method, "rtol": rtol, "atol": 1e-2 * rtol}
    run = hc.simulate(mech, None, q, v, 0.6, events=event, **together(**options))
    fine = hc.simulate(mech, None, q, v, 0.6, events=event)
    assert len(run.events) == len(fine.events) >= 1
    assert np.abs(np.array(seen) - 0.5).max() < 1e-9
    assert run.events[:, 0] == pytest.approx(fine.events[:, 0], abs=max(1e-8, 10.0 * rtol))


def test_an_event_that_jumps_at_a_tick_happens_there():
    mech = mechanism("four_bar")
    q, v = hc.assemble(mech)
    u = [0.0]

    def controller(t, q, v):
        u[0] = 1.0 if t > 0.0245 else 0.0
        return u

    event = hc.Event(lambda t, q, v: 0.5 - u[0], terminal=True)
    run = hc.simulate(mech, controller, q, v, 0.1, frequency=200.0, events=event)
    assert run.events.tolist() == [[0.025, 0.0]]
    assert run.t[-1] == 0.025


def test_events_on_the_way_over_a_singular_configuration():
    """A crank with equal bars passes its dead point; the event is there, and beside it."""
    mech = slider_crank("slider", (0.3, 0.3), (1.2, -2.4, 0.3))
    q, v = hc.assemble(mech, v_guess=[2.0, -4.0, 0.0])
    plain = hc.simulate(mech, None, q, v, 0.6, integrator=hc.Integrator(at_singular="cross"))
    assert len(plain.crossings) >= 1
    for off in (-0.03, -1e-4, 0.0, 1e-9, 1e-4, 0.03):
        event = hc.Event(lambda t, q, v, off=off: q[0] - 0.5 * np.pi - off)
        run = hc.simulate(
            mech, None, q, v, 0.6, integrator=hc.Integrator(at_singular="cross"), events=event
        )
        assert len(run.events) == 1
        assert len(run.crossings) == len(plain.crossings)
        assert run.crossings == pytest.approx(plain.crossings, abs=1e-5)
        assert run.q[-1] == pytest.approx(plain.q[-1], abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.3, 0.95), st.floats(0.01, 3.0), st.floats(2.0, 2000.0), st.integers(0, 4))
def test_any_ball_bounces_as_in_closed_form(restitution, height, rate, bounced):
    at = of_bounces(restitution, height, bounced + 2)
    end = 0.5 * (at[-2] + at[-1])
    run = hc.simulate(
        BALL, None, [height], [0.0], end, frequency=rate, events=bounces(BALL, restitution)
    )
    assert run.events[:, 0] == pytest.approx(at[:-1], abs=1e-9)
    assert run.q.min() > -1e-9


@settings(max_examples=15, deadline=None)
@given(st.floats(-1.0, 1.0), st.floats(-3.0, 3.0), st.sampled_from([-1, 0, 1]), st.booleans())
def test_events_are_those_that_a_fine_record_shows(offset, slope, direction, held):
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[3]

    def g(t, q, v):
        return np.sin(2.0 * q[0] + slope * t) - offset

    options = {"events": hc.Event(g, direction), "output": np.linspace(0.0, 0.3, 601)}
    run = hc.simulate(
        mech, (lambda t, q, v: [0.0]) if held else None, q, v, 0.3, **together(**options)
    )
    values = np.array([g(*state) for state in zip(run.t, run.q, run.v, strict=True)])
    before, after = values[:-1], values[1:]
    rises, falls = (before <= 0.0) & (after > 0.0), (before >= 0.0) & (after < 0.0)
    through = (rises & (direction >= 0)) | (falls & (direction <= 0))
    at = run.t[:-1][through]
    if len(at) != len(run.events):  # it touches zero between two instants
        assert np.abs(values).min() < 1e-6
        return
    assert ((run.events[:, 0] >= at - 1e-9) & (run.events[:, 0] <= at + 5e-4 + 1e-9)).all()


@pytest.mark.parametrize("at_singular", ["raise", "cross"])
def test_a_run_may_end_before_it_comes_to_a_singular_configuration(at_singular):
    mech = slider_crank("slider", (0.3, 0.3), (1.2, -2.4, 0.3))
    q, v = hc.assemble(mech, v_guess=[2.0, -4.0, 0.0])
    for off in (0.1, 0.01, 1e-3, 1e-5):
        event = hc.Event(lambda t, q, v, off=off: q[0] - 0.5 * np.pi + off, terminal=True)
        run = hc.simulate(
            mech, None, q, v, 0.6, integrator=hc.Integrator(at_singular=at_singular), events=event
        )
        assert run.ended == "event 0"
        assert run.q[-1, 0] == pytest.approx(0.5 * np.pi - off, abs=1e-9)


# --------------------------------------------------------------------------------- refusals


JUNK = {"None": None, "two": [1.0, 2.0], "none": [], "NaN": np.nan, "infinity": np.inf,
        "a word": "1.0", "a truth": True, "complex": 1j, "an object": object()}  # fmt: skip


@pytest.mark.parametrize("junk", JUNK)
def test_what_a_function_must_not_return(junk):
    event = hc.Event(lambda t, q, v: 1.0 if t < 0.0305 else JUNK[junk])
    e = refused(lambda: dropped([bounces(BALL, 1.0), event], 1.0), hc.InputError, "event 1",
                "one finite number")  # fmt: skip
    assert 0.0305 <= e.time < 1.0
    assert e.run.t[-1] <= e.time
    assert "'ball'" in e.__notes__[0]


@pytest.mark.parametrize("number", [np.float32(1), np.array([1.0]), np.array(1.0), 1, [[1.0]]])
def test_one_number_is_one_however_it_is_given(number):
    assert dropped(hc.Event(lambda t, q, v: number), 0.01).events.size == 0


RETURNS = {
    "None": None, "a mechanism": BALL, "three": (BALL, [0.0], 1), "the other way": ([0.0], BALL),
    "a list": [BALL, [0.0]], "too many": (BALL, [0.0, 1.0]), "NaN": (BALL, [np.nan]),
    "a word": (BALL, "up"), "another plant": (mechanism("four_bar"), np.zeros(3)),
}  # fmt: skip


@pytest.mark.parametrize("junk", RETURNS)
def test_what_a_reaction_must_not_return(junk):
    event = hc.Event(lambda t, q, v: q[0], reaction=lambda t, q, v: RETURNS[junk])
    e = refused(lambda: dropped(event, 1.0), hc.InputError, "reaction of event 0")
    assert e.time == e.run.t[-1] == pytest.approx(np.sqrt(2.0 / G), abs=1e-9)
    assert e.run.events[:, 1].tolist() == [0.0]


def test_what_is_no_event():
    for junk in (5, "lands", None, lambda t, q: 0.0, lambda: 0.0):
        refused(lambda junk=junk: hc.Event(junk), hc.InputError, "event")
        if junk is not None:
            refused(lambda junk=junk: hc.Event(lambda t, q, v: 0.0, reaction=junk), hc.InputError,
                    "reaction")  # fmt: skip
    for junk in (np.nan, "down", None, True, [1.0]):
        refused(lambda junk=junk: hc.Event(lambda t, q, v: 0.0, junk), hc.InputError, "direction")
    refused(lambda: hc.Event(lambda t, q, v: 0.0, terminal=1), hc.InputError, "terminal")
    for junk in (5, None, "ab", [lambda t, q, v: 0.0], [None]):
        refused(lambda junk=junk: dropped(junk, 0.1), hc.InputError, "events")


@pytest.mark.parametrize("kind", ["function", "reaction"])
@pytest.mark.parametrize("raised", [ZeroDivisionError("mine"), hc.InputError("mine")])
def test_errors_of_ones_own_pass_through(kind, raised):
    def fails(t, q, v):
        if t > 0.3:
            raise raised
        return q[0]

    options = {"reaction": fails} if kind == "reaction" else {}
    function = (lambda t, q, v: q[0] - 0.2) if kind == "reaction" else fails
    with pytest.raises(type(raised), match="mine") as caught:
        dropped(hc.Event(function, **options), 1.0)
    e = caught.value
    assert e.time > 0.3
    assert 0.0 < e.run.t[-1] <= e.time
    del e.__notes__, e.time, e.run  # the very same one is raised again


def test_functions_that_write_into_their_arguments_move_nothing():
    def vandal(t, q, v):
        value = q[0]
        q[:], v[:] = 7.0, 7.0
        return value

    def reaction(t, q, v):
        kept = -0.5 * v
        q[:], v[:] = 7.0, 7.0
        return BALL, kept

    run = dropped(hc.Event(vandal, direction=-1, reaction=reaction), 1.2)
    assert np.array_equal(run.q, dropped(bounces(BALL, 0.5), 1.2).q)
