"""A headless Chromium, the one of the machine: nothing is brought along."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
DRAWN_BY_THE_CPU = ("--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader")
"""As on a machine without a graphics card."""


@contextmanager
def chromium(width=1280, height=800):
    """A page of its own; what it complains of, and what it asked for elsewhere, come with it."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=list(DRAWN_BY_THE_CPU))
        page = browser.new_page(viewport={"width": width, "height": height})
        seen = Seen(page)
        try:
            yield page, seen
        finally:
            browser.close()


class Seen:
    """What happened in a page."""

    def __init__(self, page):
        self.errors, self.asked = [], []
        page.on("console", lambda m: m.type == "error" and self.errors.append(m.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("requestfailed", lambda request: self.errors.append(request.url))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("websocket", lambda socket: self.asked.append(socket.url))

    def elsewhere(self, *own):
        return [x for x in self.asked if not x.startswith((*own, "data:", "blob:"))]


def posture_in(page):
    """(nq,) what the page says is shown."""
    page.wait_for_selector("#holoctl-pose", timeout=20_000)
    return np.array(json.loads(page.get_attribute("#holoctl-pose", "data-q")))


def drag(page, which, share, moves=30):
    """Take the thumb of a slider to a share of its track, in steps, with the mouse."""
    thumb = page.locator("[role=slider]").nth(which)
    box = thumb.bounding_box()
    track = thumb.locator("xpath=..").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    end = track["x"] + share * track["width"]
    page.mouse.move(x, y)
    page.mouse.down()
    for k in range(1, moves + 1):
        page.mouse.move(x + (end - x) * k / moves, y)
    page.mouse.up()
