"""The panel: texts next to the scene, as HTML. Names come from files, so all texts are escaped."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from holoctl.app.palette import BLUE, RED, curve
from holoctl.app.units import position_units
from holoctl.app.view.holding_efforts import holding_efforts
from holoctl.app.view.page_script import LEFT, RIGHT, WIDTH
from holoctl.app.view.recorded_run import thinned
from holoctl.app.view.shown_quantities import misfits
from holoctl.base.checks import Array, Vector
from holoctl.base.errors import HoloctlError

if TYPE_CHECKING:
    from holoctl.app.view.holding_efforts import HoldingEfforts
    from holoctl.app.view.recorded_run import Recorded
    from holoctl.app.view.shown_posture import Posture
    from holoctl.app.view.shown_quantities import Singularity

__all__ = ["charts", "doctor", "held", "holding_table", "marker", "pose", "singular", "words"]

_TEXT = "font-size: 0.85em; line-height: 1.4; padding: 0.2em 0.8em; overflow-wrap: anywhere"
_NUMBER = "text-align: right; font-variant-numeric: tabular-nums; padding-left: 0.8em"

HEIGHT = 110
"""Height of a chart, in its own units."""

WEAK = 0.02
"""Singular values below this are red, as the doctor warns of them."""

MOST_OF_A_HEAD = 30
"""Largest number of letters before the colon of a paragraph of the doctor with a heading."""

MOST_NAMES = 8
"""Largest number of curves in the legend of a chart, and of open closures in the text of a pose."""

SHORTEST_STEP = 0.01
"""Shortest step of the time by a key, s."""


def pose(posture: Posture, t: float = 0.0) -> str:
    """The misfit of the posture at time t, s, and why a drag stopped; the full q is in
    ``data-q``."""
    mech, color = posture.mech, "inherit" if posture.closed else RED
    off = misfits(mech, posture.q, t)
    state = "Closed" if posture.closed else "It does not close"
    lines = [f"{state}: largest error {posture.gap:.1e} (scaled)."]
    if posture.closed and off:
        far, turned = max(off, key=lambda x: x.distance), max(off, key=lambda x: x.angle)
        lines.append(f"Largest misfit of a closure: {_mm(far.distance)}, {_degrees(turned.angle)}.")
    if not posture.closed:
        worst = sorted(off, key=lambda x: -x.distance - x.angle)
        lines += [f"{x.name}: {_mm(x.distance)}, {_degrees(x.angle)}" for x in worst[:MOST_NAMES]]
    q = escape(json.dumps(posture.q.tolist()), quote=True)
    return (
        f'<div id="holoctl-pose" style="{_TEXT}; color: {color}" data-q="{q}" '
        f'data-gap="{posture.gap!r}" data-closed="{str(posture.closed).lower()}">'
        f"{'<br>'.join(map(escape, lines))}{_in_red(posture.words, 'holoctl-stop')}</div>"
    )


def singular(here: Singularity, point: str) -> str:
    """Bars of the singular values at a posture; without a bar and with a dash if undefined."""
    sides = {1: "on the side of the start", -1: "on the other side of the singularity"}
    side = f", {sides[here.side]}" if here.side else ""
    rows = [("Type 2 (parallel), motors", here.type_2, side)]
    if point:
        rows.append((f"Type 1 (serial), {point}", here.type_1, ""))
    data = escape(json.dumps([_number(here.type_2), here.side, _number(here.type_1)]), quote=True)
    bars = "".join(_bar(name, value, more) for name, value, more in rows)
    return f'<div id="holoctl-singular" style="{_TEXT}" data-values="{data}">{bars}</div>'


def _bar(name: str, value: float, more: str) -> str:
    is_known, color = np.isfinite(value), RED if value < WEAK else BLUE
    text = f"{value:.3g}" if is_known else "\N{EN DASH}"
    width = 100.0 * min(value, 1.0) if is_known else 0.0
    return (
        f'<div><span>{escape(name)}: <b style="color: {color if value < WEAK else "inherit"}">'
        f'{text}</b>{more}</span><div style="height: 6px; border-radius: 3px; overflow: hidden; '
        f'background: rgba(128, 128, 128, 0.25)"><div style="height: 100%; width: {width:.2f}%; '
        f'background: {color}"></div></div></div>'
    )


def held(posture: Posture) -> str:
    """The efforts that hold a posture at rest, or why there are none."""
    if not posture.closed:
        return words("It does not close, so there are no holding efforts.", "holoctl-holding")
    try:
        return holding_table(holding_efforts(posture.mech, posture.q, posture.part))
    except HoloctlError as error:
        return words(str(error), "holoctl-holding")


def holding_table(found: HoldingEfforts) -> str:
    """A table of the effort of each motor at rest, red past its limit."""
    lines = []
    for row in found.rows:
        style = f"color: {RED}; font-weight: 600" if row.past else ""
        most = "" if row.limit is None else _limit(row.limit, row.effort)
        lines.append(
            f'<tr style="{style}"><td>{escape(row.motor)}</td>'
            f'<td style="{_NUMBER}">{_signed(row.effort)}</td><td>{escape(row.unit)}</td>'
            f'<td style="{_NUMBER}">{most}</td></tr>'
        )
    table = f'<table style="border-spacing: 0">{"".join(lines)}</table>' if lines else ""
    text = _in_red(found.words, "holoctl-unheld")
    return f'<div id="holoctl-holding" style="{_TEXT}">{table}{text}</div>'


def words(text: str, name: str = "holoctl-doctor") -> str:
    """A text of several paragraphs."""
    return f'<div id="{escape(name)}" style="{_TEXT}">{_paragraphs(text)}</div>'


def doctor(text: str, fresh: bool) -> str:
    """The report of the doctor; unless `fresh`, with a note that it is of another configuration."""
    late = "" if fresh else (
        f'<p id="holoctl-out-of-date" style="color: {RED}; margin: 0.3em 0">Out of date: this '
        "report describes another configuration. The shown one is examined when it comes to "
        "rest.</p>"
    )  # fmt: skip
    return f'<div style="{_TEXT}">{late}</div>{words(text)}' if late else words(text)


def charts(run: Recorded, saved: bool = False) -> str:
    """Charts of efforts and positions of the motors over time, as SVG, with limits of efforts as
    dotted lines and a cursor; the time of the player of a saved page starts at zero."""
    first = run.start if saved else 0.0
    t, x = thinned(run.run.t, run.positions)
    units = sorted({unit or "rad, m" for unit in position_units(run.mech)})
    step = (run.end - run.start) / max(run.run.t.size - 1, 1)
    drawn = _chart(f"Efforts ({run.unit})", run.t, run.u, run.limits)
    drawn += _chart(f"Positions ({', '.join(units)})", t, x, None)
    legend = "&emsp; ".join(
        f'<span style="white-space: nowrap"><span style="color: {curve(k)}">&#9644;</span> '
        f"{escape(name)}</span>"
        for k, name in enumerate(run.names[:MOST_NAMES])
    )
    more = f"&emsp;({len(run.names) - MOST_NAMES} more)" if len(run.names) > MOST_NAMES else ""
    return (
        f'<div id="holoctl-chart" style="{_TEXT}" data-first="{first!r}" '
        f'data-start="{run.start - first!r}" data-end="{run.end - first!r}" '
        f'data-step="{max(step, SHORTEST_STEP)!r}">{drawn}<div>{legend}{more}</div></div>'
    )


def _chart(title: str, t: Vector, values: Array, limits: Array | None) -> str:
    """A chart with its title."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (-1.0, 1.0)
    if limits is not None:
        near = limits[np.isfinite(limits) & (np.abs(limits) <= 2.0 * max(-low, high, 1e-12))]
        low, high = min([low, *near.tolist()]), max([high, *near.tolist()])
    span = (high - low) or max(abs(high), 1.0)
    low, high = low - 0.05 * span, high + 0.05 * span
    start, end = (float(t[0]), float(t[-1])) if len(t) else (0.0, 1.0)

    def across(x: Array) -> Array:
        there: Array = LEFT + (WIDTH - LEFT) * (x - start) / ((end - start) or 1.0)
        return there

    def up(y: Array) -> Array:
        there: Array = HEIGHT * (high - y) / (high - low)
        return there

    parts = [f'<rect x="{LEFT}" width="{WIDTH - LEFT}" height="{HEIGHT}" fill="transparent" '
             'stroke="currentColor" stroke-opacity="0.25"/>']  # fmt: skip
    for level in _levels(low, high):
        y = float(up(np.array(level)))
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity="0.15"/><text x="{LEFT - 4}" y="{y + 3:.1f}" text-anchor="end" '
            f'font-size="9" fill="currentColor">{level:.4g}</text>'
        )
    for level in _levels(start, end) if end > start else []:
        x = float(across(np.array(level)))
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT + 11}" text-anchor="middle" font-size="9" '
            f'fill="currentColor">{level:.4g}</text>'
        )
    for k in range(values.shape[1]):
        color = curve(k)
        for piece in _pieces(across(t), up(values[:, k])):
            parts.append(
                f'<polyline points="{piece}" fill="none" stroke="{color}" stroke-width="1.3"/>'
            )
        for y in () if limits is None else up(limits[:, k]):
            if np.isfinite(y) and 0.0 <= y <= HEIGHT:
                parts.append(
                    f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="{color}" '
                    'stroke-dasharray="2 3"/>'
                )
    parts.append(
        f'<line class="holoctl-cursor" x1="{LEFT}" x2="{LEFT}" y1="0" y2="{HEIGHT}" '
        f'stroke="{RED}" stroke-width="1.5"/>'
    )
    return (
        f'<div>{escape(title)}</div><svg viewBox="0 -4 {WIDTH + RIGHT} {HEIGHT + 18}" '
        f'style="width: 100%; display: block">{"".join(parts)}</svg>'
    )


def marker(share: float | None, text: str) -> str:
    """The time of a film, as text and as the cursor of the charts; None hides the cursor."""
    seen = "hidden" if share is None else "visible"
    at = 0.0 if share is None else min(max(share, 0.0), 1.0)
    return (
        f"<style>:root {{ --holoctl-share: {at:.5f}; --holoctl-cursor: {seen}; }}</style>"
        f'<div id="holoctl-time" style="{_TEXT}">{escape(text)}</div>'
    )


def _pieces(x: Array, y: Array) -> list[str]:
    """Points of a curve, in pieces separated by values that are not finite."""
    there = np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]]).astype(int)))
    return [
        " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x[i:j].tolist(), y[i:j].tolist(), strict=True))
        for i, j in edges.reshape(-1, 2)
    ]


def _levels(low: float, high: float) -> list[float]:
    """Round numbers between `low` and `high`."""
    raw = (high - low) / 4.0
    unit = 10.0 ** np.floor(np.log10(raw))
    step = unit * next((s for s in (1.0, 2.0, 5.0) if s * unit >= raw), 10.0)
    first = int(np.ceil(low / step))
    return [step * k for k in range(first, int(np.floor(high / step)) + 1)]


def _limit(limit: float, effort: float) -> str:
    """A limit in words, with its sign if it differs from that of the effort."""
    same = limit * effort >= 0.0
    return f"of {abs(limit):.3g}" if same else f"limit {limit:+.3g}".replace("-", "\N{MINUS SIGN}")


def _signed(x: float) -> str:
    return f"{x:+.4g}".replace("-", "\N{MINUS SIGN}")


def _mm(length: float) -> str:
    return f"{1e3 * length:.3g} mm"


def _degrees(angle: float) -> str:
    return f"{np.degrees(angle):.3g}\N{DEGREE SIGN}"


def _number(x: float) -> float | None:
    return x if np.isfinite(x) else None


def _in_red(text: str, name: str) -> str:
    """A red paragraph; empty for an empty text."""
    if not text:
        return ""
    inside = escape(text).replace("\n", "<br>")
    return f'<p id="{name}" style="color: {RED}; margin: 0.3em 0">{inside}</p>'


def _paragraphs(text: str) -> str:
    """The lines of a report as paragraphs: indented lines continue one, a dash starts a list
    item."""
    found = list[str]()
    for line in text.splitlines():
        if line.startswith("  ") and not line.lstrip().startswith("- ") and found:
            found[-1] += " " + line.strip()
        elif line.strip():
            found.append(line.strip())
    return "".join(map(_paragraph, found))


def _paragraph(line: str) -> str:
    if line.startswith("- "):
        return f'<p style="margin: 0.2em 0 0.2em 1em">{escape(line[2:])}</p>'
    head, colon, rest = line.partition(": ")
    if colon and len(head) <= MOST_OF_A_HEAD:
        return f'<p style="margin: 0.5em 0"><b>{escape(head)}:</b> {escape(rest)}</p>'
    return f'<p style="margin: 0.5em 0">{escape(line)}</p>'
