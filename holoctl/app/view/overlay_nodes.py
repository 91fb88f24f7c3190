"""The overlays of a scene as nodes of a page, and their checkboxes.

`Scene.show` shows them with every configuration, so that they are never those of another one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from holoctl.app.palette import CLOSURE, FORCE, MOTOR, SOFT, curve, rgb
from holoctl.app.view.overlays import (
    KINDS,
    Instant,
    Kind,
    Scale,
    Shown,
    arrow_scale,
    centre_of_mass,
    shown_at,
    trace,
    traceable,
)
from holoctl.base.checks import Array, Vector
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.forces.counterbalance import BoundCounterbalance
from holoctl.forces.spring import BoundSpring
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.tree.frames import Frame

if TYPE_CHECKING:
    import viser

__all__ = ["Overlays", "add_overlay_boxes"]

COLORS = {"weight": SOFT, "motors": MOTOR, "constraints": FORCE, "forces": CLOSURE}

NAMES = {
    "weight": "Weight", "motors": "Motor efforts", "constraints": "Constraint forces",
    "forces": "Spring forces",
}  # fmt: skip
"""Labels of the checkboxes, by the kinds of arrows."""

DRAWN_FORCES = (BoundSpring, BoundCounterbalance)
"""Forces of a mechanism that act at points; others act on joints, and are not drawn."""

CENTRE = "centre"

POINT, SHAFT, HEAD, HEAD_LENGTH, PATH = 0.022, 0.005, 0.014, 0.035, 0.0035
"""Radius of the centre of mass, of the shaft and of the head of an arrow, length of the head, and
thickness of a trace, as shares of the size of the mechanism."""

SECOND_HEAD = 0.8
"""A moment has two heads; the second one is at this share of its length."""

LONGER = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Factors of the lengths of arrows."""


class Overlays:
    """The overlays of one scene. All are hidden at first, and cost nothing then.

    Parameters
    ----------
    server : viser.ViserServer
    mech : Mechanism
    size : float
        Size of the mechanism, m.
    """

    def __init__(self, server: viser.ViserServer, mech: Mechanism, size: float) -> None:
        self._server, self.mech, self._size = server, mech, size
        self._lock = threading.RLock()
        self._at: Instant | None = None
        self._part: Partition | None = None
        self._wanted, self._frames = set[str](), dict[str, Frame]()
        self._instants: Sequence[Instant] = ()
        self._first: Scale | None = None
        self._times = 1.0
        self._film: Sequence[Vector] | Array | None = None
        self._nodes, self._traces = dict[str, Any](), dict[str, Any]()
        self.text: Any = None
        """The handle of the text, if there is a panel."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of arrows that this mechanism may have."""
        mech = self.mech
        may = {
            "weight": bool(np.any(mech.model.gravity.linear)),
            "motors": mech.nu > 0,
            "constraints": any(isinstance(rows, WrenchRows) for rows in mech.bound),
            "forces": any(isinstance(f, DRAWN_FORCES) for f in mech.bound_forces),
        }
        return tuple(kind for kind in KINDS if may[kind])

    @property
    def at(self) -> Instant | None:
        """The shown instant."""
        return self._at

    @property
    def drawn(self) -> frozenset[str]:
        """The kinds of arrows and the frames of traces that are drawn now, and `CENTRE`."""
        with self._lock:
            return frozenset((*self._nodes, *self._traces))

    def show(self, at: Instant) -> None:
        """Show the overlays of an instant."""
        with self._lock:
            self._at = at
            if self._instants == ():
                self._instants = (at,)
            self._update()

    def expect(self, instants: Sequence[Instant]) -> None:
        """Let some instants determine the scale of the arrows, which is not changed later."""
        with self._lock:
            self._instants, self._first = instants, None

    def follow(self, film: Sequence[Vector] | Array | None) -> None:
        """Trace frames over a film; None: no film is shown, and traces vanish."""
        with self._lock:
            if film is not self._film:
                self._film = film
                self._update_traces()

    def want(self, name: str, shown: bool) -> None:
        """Show a kind of arrows, or `CENTRE`, or hide it."""
        with self._lock:
            (self._wanted.add if shown else self._wanted.discard)(name)
            self._update()

    def trace(self, frame: Frame, shown: bool) -> None:
        """Show the trace of a frame, or hide it."""
        with self._lock:
            if shown:
                self._frames[frame.name] = frame
            else:
                self._frames.pop(frame.name, None)
            self._update_traces()

    def traced(self) -> tuple[str, ...]:
        """Names of the frames whose traces are wanted."""
        with self._lock:
            return tuple(self._frames)

    def stretch(self, times: float) -> None:
        """Multiply the lengths of all arrows."""
        with self._lock:
            self._times = times
            self._update()

    @property
    def scale(self) -> Scale:
        """The scale of the arrows."""
        if self._first is None:
            self._first = arrow_scale(self.mech, self._size, self._instants)
        return Scale(self._first.force / self._times, self._first.moment / self._times)

    # ----------------------------------------------------------------------------------- nodes

    def _update(self) -> None:
        if self._at is None:
            return
        wanted = [kind for kind in self.kinds if kind in self._wanted]
        found = shown_at(self.mech, self._at, wanted, self._part) if wanted else Shown()
        self._part = found.part or self._part
        with self._server.atomic():
            for kind in KINDS:
                self._draw(kind, found)
            self._draw_centre()
        self._tell(found, bool(wanted))

    def _draw(self, kind: Kind, found: Shown) -> None:
        arrows = found.of(kind)
        if not arrows:
            self._remove(self._nodes, kind)
            return
        lines = list[tuple[Vector, Vector]]()
        for one in arrows:
            along = self.scale.length(one)
            lines.append((one.point, one.point + along))
            if one.moment:
                lines.append((one.point, one.point + SECOND_HEAD * along))
        points = np.array(lines, dtype=np.float32)
        if kind in self._nodes:
            self._nodes[kind].points = points
        else:
            self._nodes[kind] = self._server.scene.add_arrows(
                f"/overlays/{kind}", points, rgb(COLORS[kind]), shaft_radius=SHAFT * self._size,
                head_radius=HEAD * self._size, head_length=HEAD_LENGTH * self._size,
            )  # fmt: skip

    def _draw_centre(self) -> None:
        place = None
        if CENTRE in self._wanted and self._at is not None:
            place = centre_of_mass(self.mech, self._at.q)
        if place is None or not np.isfinite(place).all():
            self._remove(self._nodes, CENTRE)
            return
        at = tuple(place.tolist())
        if CENTRE in self._nodes:
            self._nodes[CENTRE].position = at
        else:
            self._nodes[CENTRE] = self._server.scene.add_icosphere(
                "/overlays/centre", POINT * self._size, rgb(SOFT), subdivisions=2, position=at
            )

    def _update_traces(self) -> None:
        with self._server.atomic():
            for name in list(self._traces):
                self._remove(self._traces, name)
            if self._film is None or len(self._film) < 2:
                return
            for i, (name, frame) in enumerate(self._frames.items()):
                path = trace(self.mech, frame, self._film)
                if not np.isfinite(path).all():
                    path = path[np.isfinite(path).all(axis=1)]
                lines = np.stack([path[:-1], path[1:]], axis=1).astype(np.float32)
                self._traces[name] = self._server.scene.add_line_segments(
                    f"/overlays/trace {i}", lines, rgb(curve(i)), thickness=PATH * self._size
                )

    @staticmethod
    def _remove(nodes: dict[str, Any], name: str) -> None:
        node = nodes.pop(name, None)
        if node is not None:
            node.remove()

    def _tell(self, found: Shown, arrows: bool) -> None:
        """The scale of the arrows, and why some are left out."""
        if self.text is None:
            return
        lines = [str(self.scale), *found.words] if arrows else []
        text = "".join(f"<p style='margin: 0.3em 0'>{escape(line)}</p>" for line in lines)
        content = f'<div id="holoctl-overlays" style="{TEXT}">{text}</div>'
        if self.text.content != content:
            self.text.content = content


TEXT = f"font-size: 0.85em; line-height: 1.4; padding: 0 0.8em; color: {SOFT}"


def add_overlay_boxes(gui: Any, overlays: Overlays) -> None:
    """Add the checkboxes of overlays to a panel, the length of arrows, and the choice of traces.

    Parameters
    ----------
    gui : viser.GuiApi
    overlays : Overlays
    """
    with gui.add_folder("Forces and mass"):
        for kind in overlays.kinds:
            box = gui.add_checkbox(NAMES[kind], initial_value=False, hint=HINTS[kind])
            box.on_update(partial(_want, overlays, kind))
        box = gui.add_checkbox("Centre of mass", initial_value=False, hint="of the whole robot")
        box.on_update(partial(_want, overlays, CENTRE))
        longer = gui.add_dropdown(
            "Length of arrows", tuple(f"{x:g} x" for x in LONGER), initial_value="1 x"
        )
        longer.on_update(lambda event: overlays.stretch(float(event.target.value.split()[0])))
        overlays.text = gui.add_html("")
    frames = {frame.name: frame for frame in traceable(overlays.mech)}
    if not frames:
        return
    with gui.add_folder("Traces"):
        names = tuple(frames)
        which = gui.add_dropdown("Frame", names, initial_value=names[0])
        traced = gui.add_checkbox(
            "Trace it", initial_value=False, hint="over the run, or the motion that plays"
        )
        which.on_update(lambda _: _set(traced, which.value in overlays.traced()))

        def choose(event: Any) -> None:
            if event.client is not None:  # else set by the choice of another frame
                overlays.trace(frames[which.value], bool(traced.value))

        traced.on_update(choose)


HINTS = {
    "weight": "at the centre of mass",
    "motors": "at rest those that hold the pose; in a run those recorded; on the body that a joint "
    "moves; two heads: a moment",
    "constraints": "on the second body of a closure, a rod or a contact; in a run without loads of "
    "another plant; two heads: a moment",
    "forces": "of springs between points, and counterbalances",
}


def _want(overlays: Overlays, name: str, event: Any) -> None:
    overlays.want(name, bool(event.target.value))


def _set(box: Any, value: bool) -> None:
    if box.value is not value:
        box.value = value
