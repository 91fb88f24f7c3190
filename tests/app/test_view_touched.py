"""What a page does when it is touched, without a browser: its sliders and buttons called."""

from __future__ import annotations

import dataclasses
import time
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
import zoo

import holoctl as hc

pytest.importorskip("viser")

BY_HAND = SimpleNamespace(client=object())


def slide(page, motor, value):
    """What a hand on a slider, or a number that is typed, does."""
    handle = page._sliders[motor]
    handle._impl.value = value  # as it comes from a browser
    page._dragged(motor, BY_HAND)


def shown(page):
    """(njoints, 7) where the bodies are in the page."""
    return np.array([[*body.position, *body.wxyz] for body in page._scene._bodies])


@pytest.fixture
def page():
    with hc.view(zoo.five_bar(), port=0) as view:
        yield view._page


@pytest.mark.parametrize("typed", [1e5, -1e5, 1e300, float("inf"), -float("inf")])
def test_a_number_past_the_end_of_a_slider_goes_to_its_end_at_once(page, typed):
    low, high = page._sliders[0].min, page._sliders[0].max
    start = time.perf_counter()
    slide(page, 0, typed)
    assert time.perf_counter() - start < 2.0
    end = high if typed > 0.0 else low
    if not page.posture.words:
        assert page.posture.motors[0] == pytest.approx(end)
    assert page._sliders[0].value == pytest.approx(page.posture.motors[0])
    assert page.posture.gap < 1e-11


def test_no_number_is_told(page):
    before = page.posture.q
    slide(page, 0, float("nan"))
    assert np.array_equal(page.posture.q, before)
    assert "finite" in page._told.content
    slide(page, 0, 1.5)
    assert page.posture.motors[0] == 1.5
    assert "finite" not in page._told.content


def test_a_motion_that_cannot_be_played_says_so():
    hinge = zoo.vertical(pin.Model())
    zoo.add_body(hinge, 0, pin.JointModelRZ(), zoo.at(), "one", zoo.bar(0.3))
    limits = hc.Limits(position={"one": (0.0, 1e-9)})
    with hc.view(hc.Mechanism(hinge, [], ["one"], limits=limits), port=0) as view:
        motion = hc_motions(view)[0]
        view._page._play(motion, BY_HAND)
        assert "Nothing moves here by motor one" in view._page._told.content


def hc_motions(view):
    from holoctl.app.view.motions import motions

    return motions(view._page.posture.mech, view.q)


def fall(mech, seconds=0.2):
    return hc.simulate(mech, None, *hc.assemble(mech), seconds)


def test_a_drag_ends_the_run_and_its_button_plays_again():
    mech = zoo.five_bar()
    run = fall(mech)
    with hc.view(mech, run, port=0) as view:
        page = view._page
        page._start_or_pause()
        assert page._button.label == "Pause"
        slide(page, 0, page.posture.motors[0] + 0.1)
        assert page._button.label == "Play"
        assert page._film is None
        data = mech.model.createData()
        pin.forwardKinematics(mech.model, data, view.q)
        places = np.array([X.translation for X in data.oMi])
        assert shown(page)[:, :3] == pytest.approx(places, abs=1e-6)
        page._start_or_pause()
        assert page._button.label == "Pause"
        for typed in (99.0, -99.0):
            page._time._impl.value = typed
            page._wound(BY_HAND)
            t = run.t[-1] if typed > 0 else run.t[0]
            assert f"t = {t:.3f} s" in page._clock.content


def test_a_run_of_one_instant_is_shown():
    mech = zoo.five_bar()
    run = fall(mech, 0.01)
    names = ("t", "q", "v", "u", "closure", "tick_time")
    one = dataclasses.replace(
        run, **{x: getattr(run, x)[:1] for x in names},
        energy={kind: x[:1] for kind, x in run.energy.items()},
    )  # fmt: skip
    with hc.view(mech, one, port=0) as view:
        view._page._start_or_pause()
        time.sleep(0.2)
        assert "t = 0.000 s" in view._page._clock.content


def test_what_of_a_run_is_open_is_red_there_and_only_there():
    mech = zoo.five_bar()
    run = fall(mech)
    q, closure = run.q.copy(), run.closure.copy()
    q[-1, 0] += 0.3
    closure[-1] = 0.1
    with hc.view(mech, dataclasses.replace(run, q=q, closure=closure), port=0) as view:
        page = view._page
        for t, red in ((0.0, False), (run.t[-1], True), (0.05, False)):
            page._time._impl.value = t
            page._wound(BY_HAND)
            assert bool(page._scene._open) == red


def test_what_is_touched_after_the_end_does_nothing(page, recwarn):
    motion = hc_motions(SimpleNamespace(_page=page, q=page.posture.q))[0]
    before = page.posture
    page.close()
    slide(page, 0, 1.5)
    page._play(motion, BY_HAND)
    page._go(before)
    assert page.posture is before
    assert page._film is None
    assert not recwarn.list


def test_rods_are_bars_that_move_with_their_ends():
    mech = hung()
    with hc.view(mech, port=0) as view:
        page = view._page
        for target in (None, 0.5):
            if target is not None:
                slide(page, 0, page.posture.motors[0] + 0.2)
            data = mech.model.createData()
            pin.forwardKinematics(mech.model, data, view.q)
            ends = page._scene._ends_of_rods(data)
            assert len(ends) == len(page._scene._rods) == 1
            for bar, (a, b) in zip(page._scene._rods, ends, strict=True):
                assert np.array(bar.position) == pytest.approx((a + b) / 2.0, abs=1e-6)
                w, x, y, z = bar.wxyz
                along = pin.Quaternion(w, x, y, z).matrix()[:, 2]
                assert np.linalg.norm(np.cross(along, b - a)) < 1e-6


def hung():
    """A four-bar whose coupler is a rod."""
    m = zoo.vertical(pin.Model())
    zoo.add_body(m, 0, pin.JointModelRZ(), zoo.at(), "crank", zoo.bar(0.2))
    zoo.add_body(m, 0, pin.JointModelRZ(), zoo.at(0.5), "rocker", zoo.bar(0.4))
    rod = hc.Rod(("crank", zoo.at(0.2)), ("rocker", zoo.at(0.4)), name="coupler")
    return hc.Mechanism(m, [rod], ["crank"], reference=[1.0, 1.2])
