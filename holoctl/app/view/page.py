"""The page: sliders, buttons and texts around a scene, and their event handlers.

The page shows a pose, or an instant of a film: of a run, or of a motion. One lock guards the
posture, which is the shown configuration in both cases. All that is shown of it (scene, sliders,
misfit, singular values, efforts, time) is sent to the browser in one update, with each picture of a
film and each step of a drag. The doctor examines the configuration when all is at rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.view import page_script, panel
from holoctl.app.view.overlay_nodes import add_overlay_boxes
from holoctl.app.view.recorded_run import csv_text, filmed
from holoctl.app.view.scene import LAYERS, SHOWN, Scene
from holoctl.app.view.shown_motions import ShownMotion, motions, played
from holoctl.app.view.shown_posture import Posture, dragged, moved, opened, sliders
from holoctl.app.view.shown_quantities import points, singularity
from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError
from holoctl.doctor.mobility_analysis import mobility

if TYPE_CHECKING:
    import viser

    from holoctl.app.view.recorded_run import Recorded

__all__ = ["Page"]

RATE = 30.0
"""Pictures per second of a film that plays."""

BETWEEN = 0.025
"""Seconds for which a drag is shown at half its distance: viser's sliders send twenty values per
second."""

EXAMINED_EVERY = 0.1
"""Seconds between two looks at whether the doctor has to examine the configuration."""

AT_REST = 0.4
"""Seconds without a move after which the doctor examines the configuration."""

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")

STEPS = 2000
"""Smallest number of steps of a slider, which are powers of ten."""

SCALED_BY = 12
"""Number of instants of a run that determine the scale of the arrows."""

RUN = "the run"
"""The button that shows the run, next to those of the motions."""

NO_POINT = "no point"


class Page:
    """The controls and texts of a page.

    Parameters
    ----------
    server : viser.ViserServer
    scene : Scene
    posture : Posture
        The first posture.
    recorded : Recorded, optional
        A run, which can be played.
    words : sequence of str
        Sentences on shapes that could not be shown.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        scene: Scene,
        posture: Posture,
        recorded: Recorded | None = None,
        words: Sequence[str] = (),
    ) -> None:
        self._server, self._scene = server, scene
        self.posture = self._home = posture
        self._t = 0.0  # time of the shown configuration, s
        self._film = self._recorded = recorded  # the film of the charts, and the run
        self._in_film, self._plays = False, False  # whether an instant of it is shown; and plays
        self._before_film = posture
        self._values = list[float]()  # of the sliders, as this page has set them
        self._examined: Vector | None = None  # the configuration of the doctor's report
        self._moved_at, self._report_current, self._report = -np.inf, True, ""
        self._found, self._points = dict[str, ShownMotion](), points(posture.mech)
        self._is_red = False
        self._lock = threading.RLock()
        self._ended = threading.Event()
        gui = server.gui
        self._theme(dark=False)
        gui.set_panel_label(posture.mech.name)
        gui.main_panel.dock_right()
        gui.add_html(page_script.in_page())
        if recorded is not None:
            self._add_time()
        tabs = gui.add_tab_group()
        with tabs.add_tab("Pose"):
            self._add_pose()
        with tabs.add_tab("Doctor"):
            self._doctor = gui.add_html(panel.words("The doctor is examining the mechanism."))
        with tabs.add_tab("Show"):
            self._add_layers()
            if words:
                gui.add_html(panel.words("\n".join(words), "holoctl-not-shown"))
        if recorded is None:
            self._add_time()
            self._show(posture)
        else:
            times = np.linspace(recorded.start, recorded.end, SCALED_BY)
            scene.overlays.expect([recorded.instant(float(t)) for t in times])
            self._load(recorded, posture)
        self._threads = [
            threading.Thread(target=target, name=f"holoctl view: {name}", daemon=True)
            for name, target in (("clock", self._run), ("doctor", self._examine))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def q(self) -> Vector:
        """(nq,): the shown configuration."""
        with self._lock:
            return self.posture.q.copy()

    def close(self) -> None:
        """End the threads; controls have no effect from now on."""
        self._ended.set()
        with self._lock:  # waits for the end of a drag
            self._plays = False
        for thread in self._threads:
            thread.join(timeout=5.0)

    def _theme(self, dark: bool) -> None:
        self._server.gui.configure_theme(
            show_logo=False, show_share_button=False, control_width="large", dark_mode=dark
        )

    # ------------------------------------------------------------------------------- the pose

    def _add_pose(self) -> None:
        gui = self._server.gui
        self._pose_text = gui.add_html("")
        self._sliders: list[Any] = []  # viser's handles: setting a value updates the browser
        for i, one in enumerate(sliders(self.posture)):
            handle = gui.add_slider(
                f"{one.name} ({one.unit})", min=one.low, max=one.high,
                step=_step(one.high - one.low), initial_value=one.value,
                disabled=not self.posture.closed,
            )  # fmt: skip
            handle.on_update(partial(self._dragged, i))
            self._sliders.append(handle)
            self._values.append(float(handle.value))
        if self._sliders:
            gui.add_button("Back to the start").on_click(lambda _: self._go(self._home))
        with gui.add_folder("Efforts that hold it at rest"):
            self._held = gui.add_html("")
        with gui.add_folder("Singular values"):
            self._singular = gui.add_html("")
            names = (*self._points, NO_POINT)
            self._point = gui.add_dropdown("Point", names, hint="whose velocity type 1 is about")
            self._point.on_update(lambda _: self._show_singular())

    def _dragged(self, motor: int, event: Any) -> None:
        if event.client is None:  # set by this page
            return
        with self._lock:
            if self._ended.is_set():
                return
            self._come_to_rest()
            here = sliders(self.posture)[motor]
            target = float(self._sliders[motor].value)  # the newest value of several events
            if target == here.value:
                return
            # Typed numbers may be outside the range, where a drag would take too long.
            low, high = min(here.low, here.value), max(here.high, here.value)
            keep = motor if low <= target <= high else None
            target, start = min(max(target, low), high), time.monotonic()
            try:
                between = dragged(self.posture, motor, 0.5 * (here.value + target))
                self._go(between, keep)
                if not between.words:
                    time.sleep(max(BETWEEN - (time.monotonic() - start), 0.0))
                    self._go(dragged(between, motor, target), keep)
            except HoloctlError as error:
                self._go(replace(self.posture, words=str(error)))

    def _go(self, posture: Posture, keep: int | None = None) -> None:
        """Show a pose; the slider `keep`, which the user drags, keeps its value."""
        with self._lock:
            if not self._ended.is_set():
                self._pause()
                self._show(posture, keep=keep)

    def _show(self, posture: Posture, t: float | None = None, keep: int | None = None) -> None:
        """Show a posture, at time t of the film if it is an instant of one, and all that the page
        says of it."""
        with self._server.atomic():
            self.posture, self._in_film = posture, t is not None
            self._t = 0.0 if t is None else t
            film, run = self._film if self._in_film else None, self._recorded
            runs = run.instant(self._t) if run is not None and film is run else None
            self._scene.show(posture.q, runs)
            self._scene.overlays.follow(None if film is None else film.run.q)
            if not posture.closed or self._is_red:
                self._scene.show_open(posture.q, self._t)
            self._is_red = not posture.closed
            self._set_sliders(keep)
            self._pose_text.content = panel.pose(posture, self._t)
            self._held.content = panel.held(posture)
            self._show_singular()
            self._show_time()
            self._mark()
        self._moved_at = time.monotonic()

    def _show_singular(self) -> None:
        name, home = str(self._point.value), self._home
        found = singularity(self.posture, home, self._points.get(name))
        self._singular.content = panel.singular(found, "" if name == NO_POINT else name)

    def _set_sliders(self, keep: int | None) -> None:
        """Show the posture in the sliders, except `keep`, and in a film except those that the user
        has just moved, whose event is still to come."""
        for i, (handle, one) in enumerate(zip(self._sliders, sliders(self.posture), strict=True)):
            if handle.disabled is self.posture.closed:
                handle.disabled = not self.posture.closed
            if self._in_film and float(handle.value) != self._values[i]:
                continue
            if (i != keep or self.posture.words) and handle.value != one.value:
                if not handle.min <= one.value <= handle.max:  # after whole turns
                    handle.min, handle.max = min(handle.min, one.value), max(handle.max, one.value)
                handle.value = one.value
            self._values[i] = float(handle.value)

    def _come_to_rest(self) -> None:
        """Stop what plays; the shown configuration can then be dragged."""
        self._pause()
        here = self.posture
        if self._in_film and here.closed and self._film is self._recorded:
            there = opened(here.mech, here.q)  # instants have the closure errors of the plant
            motors = moved(here, there.q).motors
            self.posture = replace(there, motors=motors, ranges=here.ranges)

    # ------------------------------------------------------------------------------ the doctor

    def _examine(self) -> None:
        """Update the doctor's report and the buttons of motions when another pose is at rest."""
        pause = 0.0
        while not self._ended.wait(pause):
            pause = EXAMINED_EVERY
            with self._lock:
                at, t = self.posture, self._t
                still = time.monotonic() - self._moved_at > AT_REST
                if self._plays or not still or self._is_examined():
                    continue
            found, text = tuple[ShownMotion, ...](), ""
            try:
                report = mobility(at.mech, at.q, t=t)
                text = str(report)
                if at.closed and not self._ended.is_set():
                    found = motions(at.mech, at.q, report)
            except HoloctlError as error:
                text = f"{text}\n{error}" if text else str(error)
            with self._lock:
                if not self._ended.is_set():
                    self._examined, self._report = at.q, text
                    self._offer(found)
                    self._mark(renewed=True)

    def _is_examined(self) -> bool:
        there = self._examined
        return there is not None and np.array_equal(there, self.posture.q, equal_nan=True)

    def _mark(self, renewed: bool = False) -> None:
        """Mark whether the doctor's report and the motions are those of the shown configuration."""
        current = self._is_examined()
        if renewed or (self._examined is not None and current is not self._report_current):
            self._doctor.content = panel.doctor(self._report, current)
            self._motions.label = "Motions" if current else "Motions, of the last pose at rest"
            self._report_current = current

    # --------------------------------------------------------------------------------- the films

    def _add_time(self) -> None:
        gui = self._server.gui
        self._motions = gui.add_folder("Motions")
        with self._motions:
            self._choice = gui.add_button_group("Play", ("",), visible=False)
            self._choice.on_click(lambda event: self._choose(str(event.target.value)))
            self._nothing = gui.add_html(panel.words("The motions are being computed."))
        self._controls = gui.add_folder("Time", visible=False)
        with self._controls:
            self._button = gui.add_button("Play", hint="space")
            self._button.on_click(lambda _: self._play_or_pause())
            self._time: Any = gui.add_slider(
                "t (s)", min=0.0, max=1.0, step=1e-3, initial_value=0.0
            )
            self._time.on_update(self._wound)
            self._speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1")
            self._loop = gui.add_checkbox("Loop", initial_value=False)
            self._clock = gui.add_html("")
            self._charts = gui.add_html("")
            self._film_text = gui.add_html("")

    def _offer(self, found: tuple[ShownMotion, ...]) -> None:
        """Offer the run and each motion."""
        self._found = dict[str, ShownMotion]()
        for motion in found:
            count = sum(x.words == motion.words for x in self._found.values())
            self._found[motion.words + (f" ({count + 1})" if count else "")] = motion
        options = (*([RUN] if self._recorded is not None else []), *self._found)
        if options and options != tuple(self._choice.options):
            self._choice.options = options
        self._choice.visible, self._nothing.visible = bool(options), not found
        self._nothing.content = panel.words("The mechanism cannot move.", "holoctl-motions")

    def _choose(self, name: str) -> None:
        """Play the run or a motion."""
        if name in self._found:
            self._play(self._found[name])
            return
        with self._lock:
            if self._recorded is not None and not self._ended.is_set():
                self._pause()
                self._load(self._recorded, self._home)
                self._play_or_pause()

    def _play(self, motion: ShownMotion) -> None:
        """Play a motion; it begins where a motion that is shown began."""
        with self._lock:
            if self._ended.is_set():
                return
            self._come_to_rest()
            shows_motion = self._in_film and self._film is not self._recorded
            at = replace(self._before_film if shows_motion else self.posture, words="")
            try:
                pictures = played(at.mech, at.q, motion)
                if (pictures == pictures[0]).all():
                    why = f"No motion is possible here by {motion.words}: {_why(motion)}"
                    self._go(replace(at, words=why))
                    return
                self._load(filmed(at, pictures, f"Motion: {motion.words}."), at)
                self._play_or_pause()
            except HoloctlError as error:
                self._go(replace(at, words=str(error)))

    def _load(self, film: Recorded, before: Posture) -> None:
        """Show the start of a film, and its charts."""
        with self._server.atomic():
            self._film, self._before_film = film, before
            self._time.min, self._time.max = film.start, film.end
            self._time.step = step = _step(film.end - film.start)
            self._time.precision = max(round(-np.log10(step)), 0)
            self._charts.content = panel.charts(film)
            self._film_text.content = panel.words(film.words, "holoctl-run")
            self._controls.visible = True
            self._show_instant(film.start)

    def _show_instant(self, t: float) -> None:
        """Show the recorded instant nearest to t."""
        if (film := self._film) is None:
            return
        self._time.value = t = min(max(t, film.start), film.end)
        i = film.index(t)
        here, known = moved(self.posture, film.run.q[i], float(film.run.t[i])), film.positions[i]
        motors = np.where(np.isfinite(known), known, here.motors)
        self._show(replace(here, motors=motors), float(film.run.t[i]))

    def _show_time(self) -> None:
        """The cursor of the charts and the words beside it; no cursor if another pose is shown."""
        if (film := self._film) is None:
            return
        what = "run" if film is self._recorded else "motion"
        share, text = None, f"The shown pose is not an instant of the {what}."
        if self._in_film:
            t = float(self._time.value)
            share = (t - film.start) / ((film.end - film.start) or 1.0)
            text = film.status(t)
        self._clock.content = panel.marker(share, text)

    def _wound(self, event: Any) -> None:
        if event.client is None:
            return
        with self._lock:
            if not self._ended.is_set():
                self._pause()
                self._show_instant(float(self._time.value))

    def _pause(self) -> None:
        self._plays, self._button.label = False, "Play"

    def _play_or_pause(self) -> None:
        with self._lock:
            if self._plays or self._film is None:
                self._pause()
                return
            if float(self._time.value) >= self._film.end:
                self._show_instant(self._film.start)
            self._plays, self._button.label = True, "Pause"

    def _advance(self, passed: float) -> None:
        """Show the instant of a film after some seconds more."""
        if (film := self._film) is None:
            return
        t = float(self._time.value) + passed * float(self._speed.value)  # also one set by the user
        if t >= film.end and self._loop.value:
            t = film.start + (t - film.end) % ((film.end - film.start) or 1.0)
        self._show_instant(t)
        if t >= film.end:
            self._pause()

    def _run(self) -> None:
        """Show the pictures of a film that plays, until the page is closed."""
        last = time.monotonic()
        while not self._ended.wait(1.0 / RATE):
            with self._lock:
                now = time.monotonic()
                if self._plays:
                    self._advance(now - last)
                last = now

    # ------------------------------------------------------------------------------- the layers

    def _add_layers(self) -> None:
        gui = self._server.gui
        for layer in LAYERS:
            box = gui.add_checkbox(layer.capitalize(), initial_value=layer in SHOWN)
            box.on_update(partial(self._layer, layer))
        rich = gui.add_checkbox(
            "Shadows", initial_value=False, hint="and reflections: they need a graphics card"
        )
        rich.on_update(lambda event: self._scene.light(bool(event.target.value)))
        dark = gui.add_checkbox("Dark", initial_value=False)
        dark.on_update(self._darken)
        gui.add_button("Picture (PNG)").on_click(self._picture)
        gui.add_button("Numbers (CSV)", hint="of the film, or of the pose").on_click(self._numbers)
        add_overlay_boxes(gui, self._scene.overlays)

    def _darken(self, event: Any) -> None:
        dark = bool(event.target.value)
        self._theme(dark)
        self._scene.dark(dark)

    def _layer(self, layer: str, event: Any) -> None:
        self._scene.layer(layer, bool(event.target.value))

    def _picture(self, event: Any) -> None:
        """Send the drawing as the reader sees it."""
        import imageio.v3  # a dependency of viser

        client = event.client
        camera = client.camera
        seen = client.get_render(camera.image_height, camera.image_width, transport_format="png")
        png = imageio.v3.imwrite("<bytes>", seen, extension=".png")
        client.send_file_download(f"{self._home.mech.name}.png", png, save_immediately=True)

    def _numbers(self, event: Any) -> None:
        """Send the film that is shown, or the pose."""
        with self._lock:
            here, film = self.posture, self._film if self._in_film else None
        film = filmed(here, here.q[None], "") if film is None else film
        text = csv_text(film).encode()
        event.client.send_file_download(f"{here.mech.name}.csv", text, save_immediately=True)


def _step(span: float) -> float:
    """The step of a slider, a power of ten, so that its numbers are short."""
    return float(10.0 ** np.floor(np.log10(span / STEPS))) if span > 0.0 else 1.0


def _why(motion: ShownMotion) -> str:
    """Why a motion cannot be played, the end of a sentence."""
    if motion.finite:
        return "a limit of a joint, or a dead point, is on both sides."
    return "it is infinitesimal only, or its continuation is unknown."
