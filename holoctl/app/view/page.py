"""The page: sliders, buttons and texts around a scene, and their event handlers.

The page shows a pose, an instant of a motion that plays, or an instant of a run (`_Source`). One
lock guards the posture, which is the shown configuration in all three cases. Texts and tables are
updated by a clock thread, at most ten times per second; the scene follows every move of a slider.
The doctor examines the configuration when all is at rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.view import panel
from holoctl.app.view.scene import LAYERS, SHOWN, Scene
from holoctl.app.view.shown_motions import ShownMotion, motions, played
from holoctl.app.view.shown_posture import Posture, dragged, moved, opened, sliders
from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError
from holoctl.doctor.mobility_analysis import mobility

if TYPE_CHECKING:
    import viser

    from holoctl.app.view.recorded_run import Recorded

__all__ = ["Page"]

RATE = 30.0
"""Pictures per second of a motion or a run that plays."""

BETWEEN = 0.025
"""Seconds for which a drag is shown at half its distance: viser's sliders send twenty values per
second."""

TEXTS_EVERY = 0.1
"""Seconds between two updates of the texts while the configuration changes."""

AT_REST = 0.4
"""Seconds without a move after which the doctor examines the configuration."""

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "5")

STEPS = 2000
"""Number of steps of a slider."""


class _Source(Enum):
    """Where the shown configuration comes from."""

    POSE = "a pose"
    MOTION = "a motion that plays; it began at the pose `_before_motion`"
    RUN = "an instant of the run"


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
        self._pending: Vector | None = None  # shown, but not yet in `posture` and the texts
        self._source, self._before_motion = _Source.POSE, posture
        self._values = list[float]()  # of the sliders, as this page has set them
        self._examined: Vector | None = None  # the configuration of the doctor's report
        self._moved_at, self._report_current, self._report = -np.inf, True, ""
        self._found, self._buttons = tuple[ShownMotion, ...](), list[Any]()
        self._recorded = recorded
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._film: Callable[[], bool] | None = None  # shows the next picture of a film, if any
        self._texts_outdated = True
        gui = server.gui
        gui.configure_theme(
            show_logo=False, show_share_button=False, control_width="large", dark_mode=False
        )
        gui.set_panel_label(posture.mech.name)
        gui.main_panel.dock_right()
        tabs = gui.add_tab_group()
        if recorded is not None:
            with tabs.add_tab("Run"):
                self._add_run(recorded)
        with tabs.add_tab("Pose"):
            self._add_pose()
        with tabs.add_tab("Doctor"):
            self._doctor = gui.add_html(panel.words("The doctor examines the mechanism ..."))
        with tabs.add_tab("Show"):
            self._add_layers()
            if words:
                gui.add_html(panel.words("\n".join(words), "holoctl-not-shown"))
        self._is_red = False
        if recorded is None:
            self._red(posture.q, not posture.closed)
        else:
            self._show_instant(recorded.start)
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
            return self._shown_q().copy()

    def _shown_q(self) -> Vector:
        return self.posture.q if self._pending is None else self._pending

    def close(self) -> None:
        """End the threads; controls have no effect from now on."""
        self._ended.set()
        with self._lock:  # waits for the end of a drag
            self._film = None
        for thread in self._threads:
            thread.join(timeout=5.0)

    # ------------------------------------------------------------------------------- the pose

    def _add_pose(self) -> None:
        gui = self._server.gui
        self._pose_text = gui.add_html(panel.pose(self.posture))
        self._sliders: list[Any] = []  # viser's handles: setting a value updates the browser
        for i, one in enumerate(sliders(self.posture)):
            handle = gui.add_slider(
                f"{one.name} ({one.unit})", min=one.low, max=one.high,
                step=(one.high - one.low) / STEPS or 1.0, initial_value=one.value,
                disabled=not self.posture.closed,
            )  # fmt: skip
            handle.on_update(partial(self._dragged, i))
            self._sliders.append(handle)
            self._values.append(float(handle.value))
        if self._sliders:
            gui.add_button("Back to the start").on_click(lambda _: self._go(self._home))
        with gui.add_folder("Efforts that hold it at rest"):
            self._held = gui.add_html("")
        self._motions = gui.add_folder("Motions")

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
        """Show a posture; the slider `keep`, which the user drags, keeps its value."""
        with self._lock:
            if self._ended.is_set():
                return
            self._stop()
            self._pending, self.posture = None, posture
            self._t, self._source = 0.0, _Source.POSE
            self._scene.show(posture.q)
            self._red(posture.q, not posture.closed)
            self._update_pose(keep)
            if self._recorded is not None:
                self._clock.content = panel.marker(
                    self._share(float(self._time.value)), "Shown is another pose, not the run."
                )
            self._moved_at, self._texts_outdated = time.monotonic(), True

    def _put(self, q: Vector, t: float = 0.0) -> None:
        """Show a configuration of a motion or a run; the clock thread updates the texts."""
        self._scene.show(q)
        self._pending, self._t = q, t
        self._moved_at, self._texts_outdated = time.monotonic(), True

    def _catch_up(self) -> None:
        """Make the shown configuration the posture, and update sliders and texts."""
        if self._pending is not None:
            self.posture, self._pending = moved(self.posture, self._pending, self._t), None
            self._update_pose(hand=True)

    def _update_pose(self, keep: int | None = None, hand: bool = False) -> None:
        """Show the posture in the sliders, except `keep`, and in the text; with `hand` also except
        sliders that the user has just moved, whose event is still to come."""
        for i, (handle, one) in enumerate(zip(self._sliders, sliders(self.posture), strict=True)):
            if handle.disabled is self.posture.closed:
                handle.disabled = not self.posture.closed
            if hand and float(handle.value) != self._values[i]:
                continue
            if (i != keep or self.posture.words) and handle.value != one.value:
                if not handle.min <= one.value <= handle.max:  # after whole turns
                    handle.min, handle.max = min(handle.min, one.value), max(handle.max, one.value)
                handle.value = one.value
            self._values[i] = float(handle.value)
        self._pose_text.content = panel.pose(self.posture)

    def _stop(self) -> None:
        """Stop a motion or a run that plays."""
        self._film = None
        if self._recorded is not None:
            self._button.label = "Play"

    def _come_to_rest(self) -> None:
        """Stop what plays; the posture is then the shown configuration, and can be dragged."""
        self._stop()
        self._catch_up()
        here = self.posture
        if self._source is _Source.MOTION:
            self._source = _Source.POSE
        if here.closed and self._source is _Source.RUN:
            there = opened(here.mech, here.q)  # instants have the closure errors of the plant
            motors = moved(here, there.q).motors
            self.posture = replace(there, motors=motors, ranges=here.ranges)

    def _red(self, q: Vector, is_open: bool, t: float = 0.0) -> None:
        """Show constraints that do not hold at q in red; nothing if all hold."""
        if is_open or self._is_red:
            self._scene.show_open(q, t)
        self._is_red = is_open

    # ------------------------------------------------------------------------------ the doctor

    def _examine(self) -> None:
        """Update the doctor's report and the buttons of motions when another pose is at rest."""
        pause = 0.0
        while not self._ended.wait(pause):
            pause = TEXTS_EVERY
            with self._lock:
                at, t = self.posture, self._t
                if self._moves() or self._is_examined():
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

    def _moves(self) -> bool:
        still = time.monotonic() - self._moved_at > AT_REST
        return self._film is not None or self._pending is not None or not still

    def _is_examined(self) -> bool:
        q = self._shown_q()
        return self._examined is not None and np.array_equal(self._examined, q, equal_nan=True)

    def _mark(self, renewed: bool = False) -> None:
        """Mark whether the doctor's report is about the shown configuration."""
        current = self._is_examined()
        if renewed or (self._examined is not None and current is not self._report_current):
            self._doctor.content = panel.doctor(self._report, current)
            self._report_current = current

    def _offer(self, found: tuple[ShownMotion, ...]) -> None:
        """Add a button for each motion; existing buttons are kept if their labels are the same."""
        alike = [m.words for m in found] == [m.words for m in self._found]
        self._found = found
        if self._buttons and alike:
            return
        for old in self._buttons:
            old.remove()
        with self._motions:
            gui = self._server.gui
            self._buttons = [gui.add_button(motion.words) for motion in found]
            for i, button in enumerate(self._buttons):
                button.on_click(lambda event, i=i: self._play(self._found[i], event))
            if not found:
                self._buttons = [gui.add_html(panel.words("Nothing moves.", "holoctl-motions"))]

    def _play(self, motion: ShownMotion, _: Any) -> None:
        with self._lock:
            if self._ended.is_set():
                return
            at = self._before_motion
            if self._source is not _Source.MOTION:
                self._come_to_rest()
                at = self.posture
            try:
                film = played(at.mech, at.q, motion)
            except HoloctlError as error:
                self._go(replace(at, words=str(error)))
                return
            if (film == film[0]).all():
                self._go(replace(at, words=f"Nothing moves here by {motion.words}: {_why(motion)}"))
                return
            frames, home = iter(film), at

            def show_next() -> bool:
                if (q := next(frames, None)) is None:
                    self._go(home)
                    return False
                self._put(q)
                return True

            self._go(replace(at, words=""))
            self._film = show_next
            self._source, self._before_motion = _Source.MOTION, at

    # --------------------------------------------------------------------------------- the run

    def _add_run(self, recorded: Recorded) -> None:
        gui, end = self._server.gui, recorded.end
        self._button = gui.add_button("Play")
        self._button.on_click(lambda _: self._start_or_pause())
        self._speed = gui.add_dropdown("Speed", SPEEDS, initial_value="1")
        self._time: Any = gui.add_slider(
            "t (s)", min=recorded.start, max=end, step=(end - recorded.start) / STEPS or 1.0,
            initial_value=recorded.start,
        )  # fmt: skip
        self._time.on_update(self._wound)
        self._clock = gui.add_html(panel.marker(0.0, recorded.status(recorded.start)))
        gui.add_html(panel.chart(recorded))
        self._run_text = gui.add_html(panel.words(recorded.words, "holoctl-run"))

    def _wound(self, event: Any) -> None:
        if event.client is None or self._recorded is None:
            return
        with self._lock:
            if self._ended.is_set():
                return
            self._stop()
            self._show_instant(float(self._time.value))

    def _show_instant(self, t: float) -> None:
        recorded = self._recorded
        if recorded is None:
            return
        t = min(max(t, recorded.start), recorded.end)
        at = float(recorded.run.t[recorded.index(t)])
        self._put(recorded.at(t), at)
        self._source = _Source.RUN
        self._red(recorded.at(t), recorded.is_open(t), at)
        self._clock.content = panel.marker(self._share(t), recorded.status(t))

    def _share(self, t: float) -> float:
        """The share of a run before t."""
        run = self._recorded
        return 0.0 if run is None else (t - run.start) / ((run.end - run.start) or 1.0)

    def _start_or_pause(self) -> None:
        recorded = self._recorded
        if recorded is None:
            return
        with self._lock:
            if self._button.label == "Pause":
                self._film, self._button.label = None, "Play"
                return
            t = max(float(self._time.value), recorded.start)
            t = recorded.start if t >= recorded.end else t
            last, put = time.monotonic(), float(self._time.value)

            def show_next() -> bool:
                nonlocal t, last, put
                now, here = time.monotonic(), float(self._time.value)
                # keep a value that the user has just set: the event for `_wound` is still to come
                t = here if here != put else t + (now - last) * float(self._speed.value)
                t, last = min(max(t, recorded.start), recorded.end), now
                self._time.value = put = t
                self._show_instant(t)
                if t >= recorded.end:
                    self._button.label = "Play"
                return t < recorded.end

            self._film, self._button.label = show_next, "Pause"

    # ------------------------------------------------------------------------------- the layers

    def _add_layers(self) -> None:
        for layer in LAYERS:
            box = self._server.gui.add_checkbox(layer.capitalize(), initial_value=layer in SHOWN)
            box.on_update(partial(self._layer, layer))
        rich = self._server.gui.add_checkbox(
            "Shadows", initial_value=False, hint="and reflections: they need a graphics card"
        )
        rich.on_update(lambda event: self._scene.light(bool(event.target.value)))

    def _layer(self, layer: str, event: Any) -> None:
        self._scene.layer(layer, bool(event.target.value))

    # -------------------------------------------------------------------------------- the clock

    def _run(self) -> None:
        """Show the pictures of a film and update texts, until the page is closed."""
        texts = 0.0
        while not self._ended.wait(1.0 / RATE):
            with self._lock:
                if self._film is not None and not self._film():
                    self._film = None
                now = time.monotonic()
                if not self._texts_outdated or now - texts < TEXTS_EVERY:
                    continue
                self._catch_up()
                self._mark()
                self._texts_outdated, posture, texts = False, self.posture, now
            self._held.content = panel.held(posture)


def _why(motion: ShownMotion) -> str:
    """Why a motion cannot be played, the end of a sentence."""
    if motion.finite:
        return "a limit of a joint, or a dead point, is on both sides."
    return "it is infinitesimal only, or its continuation is unknown."
