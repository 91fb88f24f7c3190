"""Linkages of the textbooks: what is known of their mobility, and a fact that holds exactly.

The mechanisms are drawings of tests/overconstrained_*.py, or drawn here. posed.py moves them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from referee.posed import Linkage, Posture

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import overconstrained_loops as loops
import overconstrained_nets as nets
from overconstrained_drawing import Drawing, Truth

Array = NDArray[np.float64]


# -------------------------------------------------------------------- closed forms in the plane


def circles(a: Array, ra: float, b: Array, rb: float, near: Array) -> Array:
    """Of the two points at these distances from a and b, the one that is nearer to a third."""
    d = float(np.linalg.norm(b - a))
    e = (b - a) / d
    s = (ra * ra - rb * rb + d * d) / (2.0 * d)
    up = np.sqrt(ra * ra - s * s) * np.array([-e[1], e[0]])
    return min((a + s * e + up, a + s * e - up), key=lambda p: float(np.linalg.norm(p - near)))


def dyad(p: Array, q: Array, drawn: tuple[Any, Any, Any], near: Array) -> Array:
    """Where two bars meet that hang on p and q: lengths from the three drawn points."""
    a, b, tip = (np.array(x, float) for x in drawn)
    return circles(p, float(np.linalg.norm(tip - a)), q, float(np.linalg.norm(tip - b)), near)


def carried(p: Array, q: Array, drawn: tuple[Any, Any, Any]) -> Array:
    """Where a point of a bar is when its two drawn points are at p and q."""
    a, b, c = (complex(*np.array(x, float)) for x in drawn)
    z = complex(*p) + (c - a) / (b - a) * (complex(*q) - complex(*p))
    return np.array([z.real, z.imag])


def turned(centre: Any, point: Any, angle: float) -> Array:
    """A point of a crank."""
    c, s = np.cos(angle), np.sin(angle)
    centre = np.array(centre, float)
    return centre + np.array([[c, -s], [s, c]]) @ (np.array(point, float) - centre)


def _gap(p: Posture, body: str, drawn: Any, theory: Array) -> float:
    return float(np.linalg.norm(p.at(body, drawn)[:2] - theory))


# ---------------------------------------------------------------------------------- planar ones


def watt(p: Posture) -> float:
    """Two four-bars in a row, by circles."""
    A, B, D = (0.1, 0.17), (0.55, 0.4), (0.5, 0.0)
    C, E, F = (0.75, 0.3), (1.1, 0.45), (1.0, 0.05)
    crank = turned((0.0, 0.0), A, p.moved)
    top = dyad(crank, np.array(D), (A, D, B), p.at("rocker", B)[:2])
    end = carried(np.array(D), top, (D, B, C))
    return _gap(p, "follower", E, dyad(end, np.array(F), (C, F, E), p.at("follower", E)[:2]))


def stephenson(p: Posture) -> float:
    """A dyad on the coupler of a four-bar, by circles."""
    A, B, D = (0.1, 0.17), (0.55, 0.4), (0.5, 0.0)
    C, E, F = (0.3, 0.6), (0.9, 0.7), (0.95, 0.1)
    crank = turned((0.0, 0.0), A, p.moved)
    top = dyad(crank, np.array(D), (A, D, B), p.at("rocker", B)[:2])
    end = carried(crank, top, (A, B, C))
    return _gap(p, "follower", E, dyad(end, np.array(F), (C, F, E), p.at("follower", E)[:2]))


def klann_foot(p: Posture) -> float:
    """Crank, rod with rocker, then the leg with the upper rocker, by circles."""
    A, B, C = (-0.05, 0.25), (-0.62, -0.12), (-0.3, -0.32)
    E, F, H = (-1.25, 0.05), (-0.95, 0.75), (-0.35, 0.6)
    foot = (-1.6, -0.9)
    crank = turned((0.0, 0.0), A, p.moved)
    low = dyad(crank, np.array(C), (A, C, B), p.at("rod", B)[:2])
    knee = carried(crank, low, (A, B, E))
    hip = dyad(knee, np.array(H), (E, H, F), p.at("leg", F)[:2])
    return _gap(p, "leg", foot, carried(knee, hip, (E, F, foot)))


def jansen_foot(p: Posture) -> float:
    """Jansen's numbers, by circles; the foot is on the shin, i and h from its two pins."""
    a, b, c, d, e, f, g, h, i, j, k, m = (
        x / 100.0 for x in (38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 65.7, 49.0, 50.0, 61.9, 15.0)
    )
    pivot, hub = np.zeros(2), np.array([a, 0.078])
    drawn = hub + m * np.array([np.cos(0.8), np.sin(0.8)])
    crank = turned(hub, drawn, p.moved)

    def legs(start: Array) -> tuple[Array, Array, Array, Array]:
        top = circles(pivot, b, start, j, np.array([0.0, 1.0]))
        low = circles(pivot, c, start, k, np.array([0.0, -1.0]))
        side = circles(pivot, d, top, e, np.array([-1.0, 0.0]))
        knee = circles(side, f, low, g, np.array([-1.0, -1.0]))
        return low, knee, side, circles(low, i, knee, h, np.array([0.0, -2.0]))

    return _gap(p, "shin", legs(drawn)[3], legs(crank)[3])


def hoeken_tip(p: Posture) -> float:
    """Crank 0.1, coupler and rocker 0.25, base 0.2 m; the tip is as far again beyond the pin."""
    pivot, start = np.array([0.2, 0.0]), 0.1 * np.array([np.cos(0.9), np.sin(0.9)])
    crank = turned((0.0, 0.0), start, p.moved)
    drawn = circles(start, 0.25, pivot, 0.25, np.array([0.2, 0.3]))
    joint = circles(crank, 0.25, pivot, 0.25, p.at("rocker", drawn)[:2])
    return _gap(p, "coupler", 2.0 * drawn - start, 2.0 * joint - crank)


def peaucellier_line(p: Posture) -> float:
    """The tip keeps its x, (0.7^2 - 0.4^2) / (2 * 0.2)."""
    inner = np.array([0.2, 0.0]) + 0.2 * np.array([np.cos(0.7), np.sin(0.7)])
    left = circles(np.zeros(2), 0.7, inner, 0.4, np.array([0.0, 1.0]))
    right = circles(np.zeros(2), 0.7, inner, 0.4, np.array([0.5, -1.0]))
    tip = left + right - inner
    return float(abs(p.at("out_1", tip)[0] - (0.49 - 0.16) / 0.4))


def chebyshev() -> Drawing:
    """Base 0.4, crossed arms 0.5, coupler 0.2 m, drawn in the middle."""
    d = Drawing("chebyshev", Truth(1, 3), ("base_left",))
    return d.pins(
        [
            ("universe", "left", (-0.2, 0.0)), ("left", "coupler", (0.1, 0.4)),
            ("universe", "right", (0.2, 0.0)), ("coupler", "right", (-0.1, 0.4)),
        ]
    )  # fmt: skip


CHEBYSHEV = float(0.5 * np.pi - np.arctan2(0.4, 0.3))
"""To the posture with the left arm upright, rad."""


def chebyshev_points(p: Posture) -> float:
    """In the middle and with an arm upright the middle of the coupler is on the line y = 0.4."""
    x, y, _ = p.at("coupler", (0.0, 0.4))
    if abs(p.moved - CHEBYSHEV) < 1e-12:
        return float(np.hypot(x + 0.2, y - 0.4))
    return float(np.hypot(x, y - 0.4)) if p.moved == 0.0 else 0.0


WATTS = 0.5, 0.4, 0.15
"""Half the base, the arms, half the coupler, m, of Watt's curve."""


def _watts_pins() -> tuple[Array, Array]:
    """Of the coupler, drawn with the middle on the centre of the curve."""
    half, arm, c = WATTS
    cosine = (half**2 + c**2 - arm**2) / (2.0 * half * c)
    left = c * np.array([-cosine, np.sqrt(1.0 - cosine**2)])
    return left, -left


def watts_curve() -> Drawing:
    """A four-bar with equal arms on the outside."""
    left, right = _watts_pins()
    return Drawing("watts_curve", Truth(1, 3), ("base_left",)).pins(
        [
            ("universe", "left", (-WATTS[0], 0.0)), ("left", "coupler", left),
            ("universe", "right", (WATTS[0], 0.0)), ("coupler", "right", right),
        ]
    )  # fmt: skip


def watts_equation(p: Posture) -> float:
    """r^2 = b^2 - (a sin t +- sqrt(c^2 - a^2 cos^2 t))^2 of the coupler's middle, in m^2."""
    a, b, c = WATTS
    x, y, _ = p.at("coupler", (0.0, 0.0))
    r2, t = x * x + y * y, np.arctan2(y, x)
    if r2 < 1e-12:  # it goes through the centre
        return float(np.sqrt(r2))
    under = c * c - (a * np.cos(t)) ** 2
    root = np.sqrt(max(under, 0.0))
    return float(min(abs(r2 - b * b + (a * np.sin(t) + s * root) ** 2) for s in (1.0, -1.0)))


def scissor_height(p: Posture) -> float:
    """n stages on a base of w: n sqrt(L^2 - w^2), L the length of a bar."""
    w = 0.5 + p.coordinate("rail")
    top = p.at("falling_2", (0.0, 0.9))
    return float(np.hypot(top[0], top[1] - 3.0 * np.sqrt(0.5**2 + 0.3**2 - w * w)))


def pantograph_ratio(p: Posture) -> float:
    """The pen goes twice as far as the point that is led."""
    pen, led = p.at("arm", (0.8, -0.1)), p.at("inner", (0.4, -0.05))
    return float(np.linalg.norm(pen[:2] - 2.0 * led[:2]))


def oldham_turn(p: Posture) -> float:
    """Both shafts turn alike."""
    return abs(p.angle("out") - p.angle("in"))


# ---------------------------------------------------------------------------------- spatial ones


def bennett_angles(p: Posture) -> float:
    """tan(t / 2) tan(u / 2) = sin((b + a) / 2) / sin((b - a) / 2), a and b the twists."""
    a, b = (loops.with_length(x, 1.2)[1] for x in (0.4, 0.6))
    K = np.sin(0.5 * (b + a)) / np.sin(0.5 * (b - a))
    drawn = 2.0 * np.arctan(K / np.tan(0.6))
    theory = 2.0 * np.arctan(K / np.tan(0.5 * (1.2 + p.coordinate("hinge_1"))))
    return float(abs(drawn + p.coordinate("hinge_2") - theory))


def sarrus_line(p: Posture) -> float:
    """The table moves along z and does not turn."""
    place = p.place("link_3")
    return float(max(np.abs(place.translation[:2]).max(), np.abs(place.rotation - np.eye(3)).max()))


def shafts_alike(p: Posture) -> float:
    """Two joints with their forks in phase: the shafts turn alike."""
    return abs(abs(p.coordinate("shaft_in")) - abs(p.coordinate("shaft_out")))


def tripteron_moves(p: Posture) -> float:
    """Each slide moves the table along its axis by as much."""
    place = p.place("table")
    slides = np.array([p.coordinate(f"slide_{i}") for i in range(3)])
    return float(
        max(np.abs(place.translation - slides).max(), np.abs(place.rotation - np.eye(3)).max())
    )


LINKAGES = (
    Linkage("Watt's six-bar", nets.watt, {"base_crank": (-0.6, 0.6)},
            "its last pin, by circles", watt),
    Linkage("Stephenson's six-bar", nets.stephenson, {"base_crank": (-0.6, 0.6)},
            "its last pin, by circles", stephenson),
    Linkage("Watt's curve", watts_curve, {"base_left": (-0.2, 0.2)},
            "middle of the coupler on the curve of sixth order, m^2", watts_equation),
    Linkage("Chebyshev's line", chebyshev, {"base_left": (-0.2, CHEBYSHEV)},
            "on the line in the middle and with an arm upright", chebyshev_points),
    Linkage("Hoeken's line", nets.hoekens, {"base_crank": (-1.0, 1.0)},
            "its tip, by circles", hoeken_tip),
    Linkage("Peaucellier's inversor", nets.peaucellier, {"base_crank": (-1.2, 0.6)},
            "tip on a straight line", peaucellier_line),
    Linkage("Jansen's leg", nets.jansen, {"base_crank": (-3.1, 3.1)},
            "its foot, by circles", jansen_foot),
    Linkage("Klann's leg", nets.klann, {"base_crank": (-0.6, 0.6)},
            "its foot, by circles", klann_foot),
    Linkage("scissor lift, 3 stages", nets.scissors, {"rail": (-0.3, 0.05)},
            "its top, 3 sqrt(L^2 - w^2)", scissor_height),
    Linkage("pantograph", nets.pantograph, {"base_long": (-0.3, 0.3), "long_arm": (0.2, -0.2)},
            "pen goes twice as far", pantograph_ratio),
    Linkage("Oldham's coupling", loops.oldham, {"shaft_in": (-1.5, 1.5)},
            "shafts turn alike, rad", oldham_turn),
    Linkage("two Cardan joints", loops.cardan, {"shaft_in": (-1.5, 1.5)},
            "shafts turn alike, rad", shafts_alike),
    Linkage("Bennett's loop", loops.bennett, {"hinge_1": (-0.8, 0.8)},
            "tan(t/2) tan(u/2) constant, rad", bennett_angles),
    Linkage("Sarrus' linkage", loops.sarrus, {"hinge_1": (-0.4, 0.4)},
            "table on a straight line, without turning", sarrus_line),
    Linkage("tripteron", nets.tripteron,
            {"slide_0": (-0.1, 0.1), "slide_1": (0.05, -0.1), "slide_2": (-0.1, 0.08)},
            "table moves as its slides do", tripteron_moves),
)  # fmt: skip
