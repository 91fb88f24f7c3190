"""The view in a real browser: what is seen, dragged and read there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import zoo
from browser import chromium, drag, posture_in
from support import ROOT

import holoctl as hc

OUT = ROOT / "out"
pytestmark = pytest.mark.slow


def shot(page, name):
    OUT.mkdir(exist_ok=True)
    page.wait_for_timeout(600)
    page.screenshot(path=OUT / f"view_{name}.png")


def opened(page, view):
    page.goto(view.url)
    return posture_in(page)


def tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


def gap(mech, q):
    return np.abs(hc.constraint_errors(mech, q).position * mech.row_scale).max()


@pytest.mark.parametrize("robot", ["five_bar", "delta", "stewart", "leg"])
def test_a_slider_drags_the_robot_along_its_closed_motions(robot):
    path = hc.robot_file(robot)
    mech = hc.load(path)
    with hc.view(mech, geometry=path, port=0) as view, chromium() as (page, seen):
        before = opened(page, view)
        assert np.allclose(before, hc.assemble(mech)[0], atol=1e-9)
        shot(page, f"{robot}_start")
        at = page.locator("[role=slider]").first
        low, high, value = (
            float(at.get_attribute(f"aria-value{x}")) for x in ("min", "max", "now")
        )
        drag(page, 0, (value - low) / (high - low) + 0.04)
        page.wait_for_timeout(500)
        after = posture_in(page)
        moved = mech.motor_positions(after) - mech.motor_positions(before)
        assert abs(moved[0]) > 1e-3
        assert np.abs(moved[1:]).max(initial=0.0) < 1e-9
        assert gap(mech, after) < 1e-9
        assert np.array_equal(view.q, after)
        shot(page, f"{robot}_dragged")
        tab(page, "Doctor")
        page.wait_for_function(
            "document.querySelector('#holoctl-doctor').innerText.includes('It closes')"
        )
        for line in ("Mobility", "Motors"):
            assert line in page.inner_text("#holoctl-doctor")
        shot(page, f"{robot}_doctor")
        assert not seen.errors
        assert not seen.elsewhere(view.url, view.url.replace("http", "ws"))


def test_it_stops_where_the_motions_end_and_says_why():
    mech = zoo.slider_crank("slider", (0.2, 0.5))
    with hc.view(mech, port=0) as view, chromium() as (page, seen):
        start = opened(page, view)
        drag(page, 0, 1.0)
        page.wait_for_selector("#holoctl-stop", timeout=20_000)
        assert "slider" in page.inner_text("#holoctl-stop")
        q = posture_in(page)
        assert gap(mech, q) < 1e-9
        at = page.locator("[role=slider]").first  # it went back to where the motor is
        page.wait_for_timeout(300)
        assert float(at.get_attribute("aria-valuenow")) == pytest.approx(
            mech.motor_positions(q)[0], abs=0.02
        )
        shot(page, "stop_reason")
        page.get_by_role("button", name="Back to the start").click()
        page.wait_for_selector("#holoctl-stop", state="detached")
        assert np.array_equal(posture_in(page), start)
        assert not seen.errors


TOLD = "JSON.parse(document.querySelector('#holoctl-pose').dataset.q)"
SLIDERS = "[...document.querySelectorAll('[role=slider]')].map(x => +x.ariaValueNow)"


def test_motions_play_on_a_click_and_come_back():
    mech = hc.load(hc.robot_file("five_bar"))
    with hc.view(mech, port=0) as view, chromium() as (page, seen):
        before = opened(page, view)
        drawn = page.locator("canvas").first
        first = drawn.screenshot()
        page.wait_for_timeout(500)
        page.get_by_role("button", name="motor_left").click()
        deadline = time.monotonic() + 4.0
        while drawn.screenshot() == first:  # a busy machine draws few pictures in a second
            assert time.monotonic() < deadline
        page.wait_for_timeout(6000)
        assert np.array_equal(posture_in(page), before)
        page.get_by_role("button", name="motor_left").click()
        page.wait_for_function(f"Math.abs({TOLD}[0] - {float(before[0])!r}) > 0.02", timeout=3000)
        told, shown = page.evaluate(f"[{TOLD}, {SLIDERS}]")
        assert shown[: mech.nu] == pytest.approx(mech.motor_positions(np.array(told)), abs=1e-6)
        assert shown[0] != pytest.approx(mech.motor_positions(before)[0], abs=1e-3)
        tab(page, "Doctor")
        page.wait_for_selector("#holoctl-out-of-date", timeout=3000)
        page.wait_for_selector("#holoctl-out-of-date", state="detached", timeout=10_000)
        assert not seen.errors


PHONE = (390, 844)


@pytest.mark.parametrize("size", [(1400, 900), PHONE])
@pytest.mark.parametrize("robot", ["five_bar", "stewart"])
def test_the_panel_stands_beside_the_picture_and_clips_nothing(robot, size):
    path = hc.robot_file(robot)
    with hc.view(hc.load(path), geometry=path, port=0) as view, chromium(*size) as (page, seen):
        opened(page, view)
        drawn = page.locator("canvas").last.bounding_box()
        panel = page.locator("#holoctl-pose").bounding_box()
        beside = drawn["x"] + drawn["width"] <= panel["x"] + 1.0
        assert beside or drawn["y"] + drawn["height"] <= panel["y"] + 1.0
        assert drawn["width"] > 0.6 * size[0]
        if size == PHONE:
            assert panel["width"] > 0.9 * size[0]
        clipped = page.evaluate(
            "[...document.querySelectorAll('label, .mantine-NumberInput-input, #holoctl-pose')]"
            ".filter(x => x.scrollWidth > x.clientWidth + 1).map(x => x.textContent || x.value)"
        )
        assert not clipped
        tab(page, "Show")
        page.get_by_role("checkbox", name="Dark", exact=True).check()
        page.wait_for_selector("html[data-mantine-color-scheme=dark]")
        shot(page, f"{robot}_{size[0]}_dark")
        assert not seen.errors


TIME = "+document.querySelector('#holoctl-time').textContent.match(/t = (\\S+) s/)[1]"


def at_time(page, t, near=2e-3):
    page.wait_for_function(f"Math.abs({TIME} - {t!r}) <= {near!r}", timeout=5000)


def test_keys_and_the_chart_move_the_time_and_the_numbers_are_downloaded():
    mech = hc.load(hc.robot_file("five_bar"))
    run = hc.simulate(mech, None, *hc.assemble(mech), 0.5)
    with hc.view(mech, run, port=0) as view, chromium() as (page, seen):
        opened(page, view)
        page.wait_for_selector("#holoctl-chart svg")
        page.wait_for_timeout(500)
        for key, t in (("End", 0.5), ("ArrowLeft", 0.49), ("Home", 0.0), ("ArrowRight", 0.01),
                       ("ArrowRight", 0.02)):  # fmt: skip
            page.keyboard.press(key)
            at_time(page, t)
        assert np.array_equal(view.q, run.q[np.argmin(np.abs(run.t - 0.02))])
        page.get_by_label("Loop").check()
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(" ")
        page.get_by_role("button", name="Pause").wait_for()
        page.wait_for_timeout(1500)  # three times its length
        page.keyboard.press(" ")
        page.get_by_role("button", name="Play", exact=True).wait_for()
        page.locator("#holoctl-chart svg").first.scroll_into_view_if_needed()
        box = page.locator("#holoctl-chart rect").first.bounding_box()
        x, y = box["x"] + 0.2 * box["width"], box["y"] + 0.5 * box["height"]
        page.mouse.move(x, y)
        page.mouse.down()
        at_time(page, 0.1, 0.01)
        page.mouse.move(x + 0.6 * box["width"], y, steps=10)
        at_time(page, 0.4, 0.01)
        page.mouse.up()
        line = page.locator(".holoctl-cursor").first.bounding_box()
        assert line["x"] == pytest.approx(x + 0.6 * box["width"], abs=4.0)
        shot(page, "run_scrubbed")
        tab(page, "Show")
        with page.expect_download() as waited:
            page.get_by_role("button", name="Numbers (CSV)").click()
        text = waited.value.path().read_text("utf-8")
        assert len(text.splitlines()) == run.t.size + 1
        with page.expect_download() as waited:
            page.get_by_role("button", name="Picture (PNG)").click()
        assert waited.value.path().read_bytes()[:4] == b"\x89PNG"
        assert not seen.errors


def test_the_cursor_of_a_saved_page_follows_and_can_be_moved(tmp_path):
    mech = hc.load(hc.robot_file("five_bar"))
    run = hc.simulate(mech, None, *hc.assemble(mech), 1.0)
    saved = hc.save_view(mech, tmp_path / "run.html", run)
    with chromium() as (page, seen):
        page.emulate_media(color_scheme="dark")
        page.goto(saved.as_uri())
        page.wait_for_selector("html[data-mantine-color-scheme=dark]")
        page.wait_for_timeout(1500)
        page.keyboard.press(" ")  # pauses
        for key, t in (("Home", 0.0), ("ArrowRight", 0.01), ("End", 1.0), ("ArrowLeft", 0.99)):
            page.keyboard.press(key)
            at_time(page, t, 0.04)
        page.get_by_label("Loop").uncheck()
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Home")
        page.keyboard.press(" ")
        page.wait_for_timeout(4000)
        at_time(page, 1.0, 0.04)  # it stays at its end
        box = page.locator("#holoctl-chart rect").first.bounding_box()
        page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 20.0)
        at_time(page, 0.5, 0.03)
        line = page.locator(".holoctl-cursor").first.bounding_box()
        assert line["x"] == pytest.approx(box["x"] + 0.5 * box["width"], abs=8.0)
        assert not seen.errors


def test_layers_are_shown_and_hidden():
    mech = hc.load(hc.robot_file("five_bar"))
    with hc.view(mech, port=0) as view, chromium() as (page, seen):
        opened(page, view)
        tab(page, "Show")
        for name in ("Joints", "Frames", "Names"):
            page.get_by_label(name, exact=True).check()
        page.get_by_label("Bodies", exact=True).uncheck()
        shot(page, "layers")
        assert not seen.errors


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
def test_overlays_are_shown_and_follow(size):
    path = hc.robot_file("five_bar")
    mech = hc.load(path)
    with hc.view(mech, geometry=path, port=0) as view, chromium(*size) as (page, seen):
        opened(page, view)
        tab(page, "Show")
        for name in ("Weight", "Motor efforts", "Constraint forces", "Centre of mass", "Trace it"):
            page.get_by_role("checkbox", name=name, exact=True).check()
        page.wait_for_function(
            "document.querySelector('#holoctl-overlays').innerText.includes('An arrow of 0.1 m is')"
        )
        drawn = page.locator("canvas").last
        page.wait_for_timeout(1000)
        before = drawn.screenshot()
        page.get_by_role("checkbox", name="Weight", exact=True).uncheck()
        page.wait_for_timeout(1000)
        assert drawn.screenshot() != before
        shot(page, f"overlays_{size[0]}")
        assert not seen.errors


def test_a_contradiction_is_shown():
    mech = zoo.four_bar(lengths=(0.2, 0.5, 0.4, 2.0))  # the bars do not meet
    with hc.view(mech, port=0) as view, chromium() as (page, seen):
        opened(page, view)
        assert page.get_attribute("#holoctl-pose", "data-closed") == "false"
        assert (
            page.locator("[role=slider][data-disabled]").count()
            or page.locator("[role=slider][disabled]").count()
        )
        tab(page, "Doctor")
        page.wait_for_function(
            "!document.querySelector('#holoctl-doctor').innerText.includes('looking')"
        )
        assert "Contradiction" in page.inner_text("#holoctl-doctor")
        shot(page, "contradiction")
        assert not seen.errors


def minute():
    """A Stewart platform for 60 s, recorded a thousand times a second: a second, sixty times."""
    mech = hc.load(hc.robot_file("stewart"))
    q, v = hc.assemble(mech)
    home, rate = mech.motor_positions(q), 2.0 * np.pi * np.arange(1, 7) / 3.0

    def reference(t):
        s, c = np.sin(rate * t), np.cos(rate * t)
        return home + 0.02 * s, 0.02 * rate * c, -0.02 * rate**2 * s

    second = hc.simulate(
        mech, hc.ComputedTorque(mech, kp=400.0, kd=40.0).track(reference), q, 0 * v, 1.0
    )
    t = np.arange(60 * (len(second.t) - 1)) * 1e-3
    again = np.arange(len(t)) % (len(second.t) - 1)
    many = {name: getattr(second, name)[again] for name in ("q", "v", "u", "closure", "tick_time")}
    return mech, replace(second, t=t, **many)


def test_a_run_of_a_minute_is_there_in_two_seconds_and_plays():
    mech, run = minute()
    with chromium() as (page, seen):
        page.goto("about:blank")
        start = time.perf_counter()
        with hc.view(mech, run, port=0) as view:
            page.goto(view.url)
            page.wait_for_selector("#holoctl-chart polyline")
            took = time.perf_counter() - start
            print(f"a run of {run.t[-1]:.0f} s was there after {took:.2f} s")
            shot(page, "run")
            page.get_by_role("button", name="Play").click()
            page.wait_for_timeout(1500)
            at = page.locator("[role=slider]").first
            page.get_by_role("button", name="Pause").click()
            page.wait_for_timeout(300)
            assert float(at.get_attribute("aria-valuenow")) > 0.5
            drag(page, 0, 0.5)
            page.wait_for_timeout(500)
            wound = float(at.get_attribute("aria-valuenow"))
            assert 25.0 < wound < 35.0
            told = re.search(r"t = ([\d.]+) s", page.inner_text("#holoctl-time"))[1]
            assert float(told) == pytest.approx(wound, abs=0.01)
            shot(page, "run_wound")
            assert not seen.errors
    assert took < 30.0  # where nothing else runs it is less than two


HAND = """([x, y]) => new Promise(done => {
    const start = performance.now(), postures = [], pictures = [];
    let last = '';
    const look = now => {
        const q = document.querySelector('#holoctl-pose').dataset.q;
        pictures.push(now);
        if (q !== last) { postures.push(now); last = q; }
        if (now - start < 5000) requestAnimationFrame(look); else done([postures, pictures]);
    };
    const move = () => {
        const t = performance.now() - start;
        document.dispatchEvent(new MouseEvent(
            'mousemove', {clientX: x + 12 * Math.sin(t / 320), clientY: y, buttons: 1}));
        if (t < 5000) setTimeout(move, 16);
    };
    requestAnimationFrame(look);
    move();
})"""
"""A hand that never rests, as often as a mouse tells where it is; and what the page shows of it."""


@pytest.mark.parametrize(("width", "height"), [(800, 500), (1280, 800)])
def test_a_slider_moves_the_robot_many_times_a_second(width, height, capsys):
    """How often is printed: it depends on what else runs, and on who draws."""
    path = hc.robot_file("stewart")
    mech = hc.load(path)
    with hc.view(mech, geometry=path, port=0) as view, chromium(width, height) as (page, seen):
        opened(page, view)
        page.wait_for_timeout(3000)
        thumb = page.locator("[role=slider]").first.bounding_box()
        x, y = thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        postures, pictures = (len(seen_at) / 5.0 for seen_at in page.evaluate(HAND, [x, y]))
        page.mouse.up()
        with capsys.disabled():
            print(f"{width} x {height}: {postures:.0f} postures, {pictures:.0f} pictures a second")
        assert postures > 1.0
        assert gap(mech, posture_in(page)) < 1e-9
        assert not seen.errors


def test_a_page_that_is_saved_stands_alone(tmp_path):
    path = hc.robot_file("delta")
    mech = hc.load(path)
    saved = hc.save_view(mech, tmp_path / "delta.html", geometry=path)
    with chromium() as (page, seen):
        page.context.set_offline(True)
        page.goto(saved.as_uri())
        page.wait_for_selector("#holoctl-panel")
        assert "It closes" in page.inner_text("#holoctl-doctor")
        page.wait_for_timeout(3000)
        for width, height in ((1280, 800), (820, 500), (390, 780)):  # the panel hides nothing
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(500)
            drawn = page.locator("canvas").first.bounding_box()
            panel = page.locator("#holoctl-panel").bounding_box()
            beside = drawn["x"] + drawn["width"] <= panel["x"] + 1.0
            assert beside or panel["y"] + panel["height"] <= drawn["y"] + 1.0
            assert drawn["height"] > 0.4 * height
        shot(page, "saved")
        assert not seen.errors
        assert not seen.elsewhere("file:")


def test_the_command_serves_until_it_is_told_to_end():
    program = [sys.executable, "-m", "holoctl", "view", "four_bar", "--port", "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=ROOT,
                          env=os.environ | {"PYTHONPATH": str(ROOT)}) as served:  # fmt: skip
        said = served.stdout.readline()
        url = next(word for word in said.split() if word.startswith("http"))
        with chromium() as (page, seen):
            page.goto(url)
            posture_in(page)
            assert not seen.errors
        served.send_signal(signal.SIGINT)
        assert served.wait(timeout=20) == 0
