"""A standalone page: the scene, a film of it and texts in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from holoctl.app.view import page_script, panel
from holoctl.app.view.geometry import Geometry
from holoctl.app.view.recorded_run import Recorded, filmed, frames
from holoctl.app.view.scene import Scene
from holoctl.app.view.server import start_server, stop_server
from holoctl.app.view.shown_motions import ShownMotion, motions, played
from holoctl.app.view.shown_posture import Posture
from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError
from holoctl.doctor.mobility_analysis import mobility

__all__ = ["standalone_page"]

RATE = 30.0
"""Pictures per second of the film."""

MOST = 9000
"""Largest number of pictures of a run; a longer run has fewer pictures per second."""

REST = 0.7
"""Seconds of rest between two motions."""

_STYLE = """
body #root { position: relative; height: 100vh; overflow: hidden; }
#holoctl-panel { position: fixed; top: 0; right: 0; width: 315px; z-index: 1000;
  max-height: calc(100vh - 42px); overflow-y: auto; box-sizing: border-box;
  background: #fff; color: #222; border-radius: 0 0 0 8px;
  box-shadow: 0 1px 6px rgba(0, 0, 0, 0.25); font: 15px/1.45 system-ui, sans-serif; }
#holoctl-panel > summary { padding: 0.5em 0.8em; font-weight: 600; cursor: pointer; }
#holoctl-panel h2 { font-size: 1em; margin: 0.6em 0.7em 0.1em; }
#holoctl-film { padding: 0.2em 0.8em; display: flex; justify-content: space-between; }
@media (prefers-color-scheme: dark) { #holoctl-panel { background: #242424; color: #ccc; } }
@media (min-width: 50em) {
  body:has(#holoctl-panel[open]) #root { width: calc(100vw - 315px); }
}
@media (max-width: 50em) {
  #holoctl-panel { width: 100vw; max-height: 45vh; border-radius: 0; }
  body:has(#holoctl-panel[open]) #root { top: 45vh; height: 55vh; }
}
"""


_TIME = """<div id="holoctl-film"><span id="holoctl-time"></span>
<label><input type="checkbox" id="holoctl-loop" checked> Loop</label></div>"""


def standalone_page(posture: Posture, geometry: Geometry, recorded: Recorded | None = None) -> str:
    """The page as text, with a film of a run or of each motion of the mechanism."""
    shown = motions(posture.mech, posture.q) if recorded is None and posture.closed else ()
    server = start_server(port=0, name=posture.mech.name)
    try:
        start = posture.q if recorded is None else recorded.at(recorded.start)
        pictures = list(_motions(posture, shown) if recorded is None else _run(recorded))
        scene = Scene(server, posture.mech, geometry, start, [q for q, _ in pictures])
        scene.show_open(start, 0.0 if recorded is None else recorded.start)
        t, red = (0.0, False) if recorded is None else (recorded.start, True)
        film = server.get_scene_serializer()
        for q, seconds in pictures:
            scene.show(q)
            if recorded is not None and (red or recorded.is_open(t)):
                scene.show_open(q, t)
                red = recorded.is_open(t)
            film.insert_sleep(seconds)
            t += seconds
        text: str = film.as_html()
    finally:
        stop_server(server)
    name = escape(posture.mech.name)
    film_of = recorded
    if recorded is None and pictures:
        times = np.cumsum([0.0, *(seconds for _, seconds in pictures[:-1])])
        film_of = filmed(posture, np.array([q for q, _ in pictures]), "", times)
    texts = f"<style>{_STYLE}</style>{_panel(posture, shown, geometry.words, recorded, film_of)}"
    texts += page_script.saved()
    # viser's page is light or dark as it is told; a saved one is as its reader prefers.
    dark = (
        "window.__VISER_EMBED_CONFIG__={darkMode:matchMedia('(prefers-color-scheme:dark)').matches}"
    )
    text = text.replace("window.__VISER_EMBED_CONFIG__={darkMode:false}", dark)
    text = re.sub("<title>.*?</title>", lambda _: f"<title>{name}</title>", text, count=1)
    at = text.rindex("</body>")
    return text[:at] + texts + text[at:]


def _run(recorded: Recorded) -> Iterator[tuple[Vector, float]]:
    """Configurations and the duration of each, s."""
    seconds = recorded.end - recorded.start
    rate = min(RATE, MOST / seconds) if seconds > 0.0 else RATE
    for q in frames(recorded, rate)[2]:
        yield q, 1.0 / rate


def _motions(posture: Posture, shown: Sequence[ShownMotion]) -> Iterator[tuple[Vector, float]]:
    for motion in shown:
        for q in played(posture.mech, posture.q, motion):
            yield q, 1.0 / RATE
        yield posture.q, REST


def _panel(
    posture: Posture,
    shown: Sequence[ShownMotion],
    left_out: Sequence[str],
    recorded: Recorded | None,
    film: Recorded | None,
) -> str:
    mech, q = posture.mech, posture.q
    if recorded is None:
        parts = ["<h2>At the start</h2>", panel.pose(posture)]
    else:
        parts = [panel.words(recorded.words, "holoctl-run")]
    if film is not None:
        told = [panel.words(film.words, "holoctl-run")] if recorded is None else []
        parts = [_TIME, panel.charts(film, saved=True), *told, *parts]
    if recorded is None and posture.closed:
        listed = "\n".join(f"- {motion.words}" for motion in shown) or "The mechanism cannot move."
        parts += ["<h2>Motions, one after the other</h2>", panel.words(listed, "holoctl-motions")]
        parts += ["<h2>Efforts that hold it at rest at the start</h2>", panel.held(posture)]
    try:
        report = str(mobility(mech, q))
    except HoloctlError as error:
        report = str(error)
    parts += ["<h2>The doctor, at the start</h2>", panel.words(report)]
    if left_out:
        parts += ["<h2>Not shown</h2>", panel.words("\n".join(left_out), "holoctl-left-out")]
    summary = f"<summary>{escape(mech.name)}</summary>"
    return f'<details id="holoctl-panel" open>{summary}{"".join(parts)}</details>'
