"""Mechanisms of several loops that move where counting says they do not.

A planar loop of hinges has three redundant rows, and so has a spherical one; where a source is
not given, mobility is that of the planar count 3 (bodies - joints) + joints, and what exceeds it
is said.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from overconstrained_drawing import Drawing, Truth, X, Y, Z, meet, on_circle, unit
from overconstrained_loops import axis, bennett_loop, with_length

import holoctl as hc

THIRDS = 2.0 * np.pi / 3.0 * np.arange(3) + 0.2

# ------------------------------------------------------------------------- guides and shafts


def rails(scale=1.0, n=2):
    """A table on n parallel rails: each after the first repeats five rows."""
    d = Drawing(f"rails_{n}", Truth(1, 5 * (n - 1)), ("rail_0",), scale)
    for i in range(n):
        d.slide(f"rail_{i}", "universe", "table", (0.4 * (i // 2), 0.3 * (i % 2), 0.02 * i), X)
    return d


def rods_and_bushes(scale=1.0):
    """A table on two parallel round rods: a bush leaves the turn free, the other takes it."""
    d = Drawing("rods_and_bushes", Truth(1, 3), ("rod_0[0]",), scale)
    for i in range(2):
        d.joint(f"rod_{i}", "cylindrical", "universe", "table", (0.1 * i, 0.3 * i, 0), X)
    return d


def door(scale=1.0, n=2):
    """A door on n hinges of one axis."""
    d = Drawing(f"door_{n}", Truth(1, 5 * (n - 1)), ("hinge_0",), scale)
    for i in range(n):
        d.hinge(f"hinge_{i}", "universe", "door", (0.3, 0.1, 0.8 * i))
    return d


# ----------------------------------------------------------------------------- planar, with hinges


def locomotive(scale=1.0, axles=2):
    """Axles with a coupling rod on each side, cranks a right angle apart, so without dead centre.

    The planar count is 6 - 3 axles, for parallelograms of equal cranks 1: so much more than the
    three rows for each of 2 axles - 2 loops.
    """
    redundant = 3 * (2 * axles - 2) + 3 * axles - 5
    d = Drawing(f"locomotive_{axles}", Truth(1, redundant), ("axle_0",), scale)
    for i in range(axles):
        x = 0.5 * i
        d.hinge(f"axle_{i}", "universe", f"wheels_{i}", (x, 0, 0), Y)
        d.hinge(f"left_{i}", f"wheels_{i}", "rod_left", (x + 0.12, 0.4, 0.09), Y)
        d.hinge(f"right_{i}", f"wheels_{i}", "rod_right", (x + 0.09, -0.4, -0.12), Y)
    return d


def four_bars(scale=1.0, n=3):
    """n equal four-bars side by side on one crank shaft and one rocker shaft.

    Each after the first has one row more than the three of a planar loop: the first moves both.
    """
    d = Drawing(f"four_bars_{n}", Truth(1, 4 * n - 1), ("base_crank",), scale)
    d.pins([("universe", "crank", (0, 0)), ("universe", "rocker", (0.5, 0))])
    for i in range(n):
        d.hinge(f"crank_{i}", "crank", f"coupler_{i}", (0.1, 0.17, 0.1 * i))
        d.hinge(f"rocker_{i}", f"coupler_{i}", "rocker", (0.55, 0.4, 0.1 * i))
    return d


def watt(scale=1.0):
    """Watt's six-bar: two four-bars in a row, on a rocker with three hinges."""
    d = Drawing("watt", Truth(1, 6), ("base_crank",), scale)
    return d.pins(
        [
            ("universe", "crank", (0, 0)), ("crank", "coupler", (0.1, 0.17)),
            ("coupler", "rocker", (0.55, 0.4)), ("universe", "rocker", (0.5, 0)),
            ("rocker", "rod", (0.75, 0.3)), ("rod", "follower", (1.1, 0.45)),
            ("universe", "follower", (1.0, 0.05)),
        ]
    )  # fmt: skip


def stephenson(scale=1.0):
    """Stephenson's six-bar (III): a dyad on the coupler of a four-bar."""
    d = Drawing("stephenson", Truth(1, 6), ("base_crank",), scale)
    return d.pins(
        [
            ("universe", "crank", (0, 0)), ("crank", "coupler", (0.1, 0.17)),
            ("coupler", "rocker", (0.55, 0.4)), ("universe", "rocker", (0.5, 0)),
            ("coupler", "rod", (0.3, 0.6)), ("rod", "follower", (0.9, 0.7)),
            ("universe", "follower", (0.95, 0.1)),
        ]
    )  # fmt: skip


def jansen(scale=1.0):
    """Theo Jansen's leg with his numbers, in centimetres: planar, eight bars, one motion."""
    a, b, c, d, e, f, g, j, k, m = np.array(
        [38.0, 41.5, 39.3, 40.1, 55.8, 39.4, 36.7, 50.0, 61.9, 15.0]
    ) / 100.0  # fmt: skip
    hub, pivot = np.array([a, 0.078]), np.zeros(2)
    crank = hub + m * np.array([np.cos(0.8), np.sin(0.8)])
    top = meet(pivot, b, crank, j, 1.0)
    low = meet(pivot, c, crank, k, -1.0)
    side = meet(pivot, d, top, e, 1.0)
    knee = meet(side, f, low, g, -1.0)
    leg = Drawing("jansen", Truth(1, 9), ("base_crank",), scale)
    leg.pins(
        [
            ("universe", "crank", hub), ("crank", "j", crank), ("crank", "k", crank),
            ("universe", "hip", pivot), ("universe", "c", pivot), ("j", "hip", top),
            ("k", "c", low), ("c", "shin", low), ("hip", "f", side), ("f", "shin", knee),
        ]
    )  # fmt: skip
    return leg


def klann(scale=1.0):
    """Joe Klann's leg (US 6,260,862), a Stephenson six-bar (III); its proportions are others."""
    d = Drawing("klann", Truth(1, 6), ("base_crank",), scale)
    return d.pins(
        [
            ("universe", "crank", (0, 0)), ("crank", "rod", (-0.05, 0.25)),
            ("rod", "lower", (-0.62, -0.12)), ("universe", "lower", (-0.3, -0.32)),
            ("rod", "leg", (-1.25, 0.05)), ("leg", "upper", (-0.95, 0.75)),
            ("universe", "upper", (-0.35, 0.6)),
        ]
    )  # fmt: skip


def planar_3rrr(scale=1.0):
    """3-RRR: a platform with three motions in the plane, on three arms of hinges."""
    d = Drawing("planar_3rrr", Truth(3, 6), tuple(f"base_arm_{i}" for i in range(3)), scale)
    for i, angle in enumerate(THIRDS):
        d.pins(
            [
                ("universe", f"arm_{i}", on_circle(0.5, angle)[:2]),
                (f"arm_{i}", f"rod_{i}", on_circle(0.45, angle + 0.5 + 0.05 * i)[:2]),
                (f"rod_{i}", "platform", on_circle(0.15, angle + 0.2)[:2]),
            ]
        )
    return d


def pantograph(scale=1.0):
    """Scheiner's pantograph: four bars and a pivot, two motions."""
    d = Drawing("pantograph", Truth(2, 3), ("base_long", "long_arm"), scale)
    return d.pins(
        [
            ("universe", "long", (0, 0)), ("long", "arm", (0.4, 0.5)),
            ("long", "inner", (0.2, 0.25)), ("arm", "outer", (0.6, 0.2)),
            ("inner", "outer", (0.4, -0.05)),
        ]
    )  # fmt: skip


def peaucellier(scale=1.0, guided=False):
    """Peaucellier and Lipkin 1864: its tip runs on a line, so that a rail there changes nothing.

    With the rail the loop around it has four redundant rows, not three.
    """
    name = "peaucellier_guided" if guided else "peaucellier"
    d = Drawing(name, Truth(1, 13 if guided else 9), ("base_crank",), scale)
    origin, centre, crank = np.zeros(2), np.array([0.2, 0.0]), 0.2
    inner = centre + crank * np.array([np.cos(0.7), np.sin(0.7)])
    left = meet(origin, 0.7, inner, 0.4, 1.0)
    right = meet(origin, 0.7, inner, 0.4, -1.0)
    tip = left + right - inner
    d.pins(
        [
            ("universe", "crank", centre), ("universe", "long_1", origin),
            ("universe", "long_2", origin), ("long_1", "in_1", left), ("long_1", "out_1", left),
            ("long_2", "in_2", right), ("long_2", "out_2", right), ("crank", "in_1", inner),
            ("crank", "in_2", inner), ("out_1", "out_2", tip),
        ]
    )  # fmt: skip
    if guided:
        d.hinge("tip", "out_1", "runner", (*tip, 0.05))
        d.slide("rail", "universe", "runner", (*tip, 0.1), Y)
    return d


def hoekens(scale=1.0):
    """Hoekens' crank, whose coupler runs nearly straight, and carries a slide that is free."""
    d = Drawing("hoekens", Truth(1, 6), ("base_crank",), scale)
    crank = 0.1 * np.array([np.cos(0.9), np.sin(0.9)])
    pin_ = meet(crank, 0.25, (0.2, 0.0), 0.25, 1.0)
    tip = 2.0 * pin_ - crank
    d.pins(
        [
            ("universe", "crank", (0, 0)), ("crank", "coupler", crank), ("coupler", "rocker", pin_),
            ("universe", "rocker", (0.2, 0)), ("coupler", "shoe", tip),
        ]
    )  # fmt: skip
    d.slide("groove", "shoe", "slider", (*tip, 0.1), Y)
    d.slide("way", "universe", "slider", (*tip, 0.2), X)
    return d


def geared_parallelogram(scale=1.0):
    """A parallelogram whose cranks are geared one to one by an idler: that row holds anyway."""
    d = Drawing("geared_parallelogram", Truth(1, 4), ("base_left",), scale)
    d.pins(
        [
            ("universe", "left", (0, 0)), ("universe", "right", (0.5, 0)),
            ("universe", "idler", (0.25, 0.0)), ("left", "rod", (0.1, 0.2)),
            ("rod", "right", (0.6, 0.2)),
        ]
    )  # fmt: skip
    d.couplings.append(hc.Coupling({"base_left": 1.0, "base_idler": 1.0}, name="gear_1"))
    d.couplings.append(hc.Coupling({"base_idler": 1.0, "base_right": 1.0}, name="gear_2"))
    return d


def scissors(scale=1.0, stages=3):
    """A scissor lift; its lower corner runs on a rail."""
    d = Drawing(f"scissors_{stages}", Truth(1, 3 * stages), ("rail",), scale)
    w, h = 0.5, 0.3
    d.slide("rail", "universe", "shoe", (w, 0, -0.1), X)
    low = [("universe", 0.0), ("shoe", w)]
    for i in range(stages):
        rising, falling = f"rising_{i}", f"falling_{i}"
        d.pins(
            [
                (low[0][0], rising, (low[0][1], h * i)), (low[1][0], falling, (low[1][1], h * i)),
                (rising, falling, (w / 2, h * (i + 0.5))),
            ]
        )  # fmt: skip
        low = [(falling, 0.0), (rising, w)]
    return d


def hoberman(scale=1.0, n=6):
    """Hoberman's ring of n pairs of angulated bars (You and Pellegrino 1997): planar counting
    gives -3, and it has one motion."""
    d = Drawing(f"hoberman_{n}", Truth(1, 3 * n + 7), ("mid_0",), scale)
    half, middle, length = np.pi / n, 0.4, 0.35
    reach = np.sqrt(length**2 - (middle * np.sin(half)) ** 2)
    radii = middle * np.cos(half) + reach, middle * np.cos(half) - reach
    ones = ["universe", *(f"one_{i}" for i in range(1, n))]
    for i, one in enumerate(ones):
        here, line = f"two_{i}", 2.0 * half * i + 0.1
        after = (i + 1) % n
        d.hinge(f"mid_{i}", one, here, on_circle(middle, line, 0.05))
        # bar one goes from outside before to inside after, bar two the other way
        d.hinge(f"out_{i}", here, ones[after], on_circle(radii[0], line + half, 0.1))
        d.hinge(f"in_{i}", one, f"two_{after}", on_circle(radii[1], line + half, 0.02 * i))
    return d


# ------------------------------------------------------------------------------------- spatial


def umbrella(scale=1.0, n=4):
    """A slider on the stick; rib, strut and three hinges on each of n sides: three redundant."""
    d = Drawing(f"umbrella_{n}", Truth(1, 3 * n), ("stick",), scale)
    d.slide("stick", "universe", "slider", (0, 0, 0.3))
    for i in range(n):
        angle = 2.0 * np.pi * i / n + 0.3
        out, side = on_circle(1.0, angle), on_circle(1.0, angle + np.pi / 2)
        d.hinge(f"hub_{i}", "universe", f"rib_{i}", 0.03 * out + 0.8 * Z, side)
        d.hinge(f"foot_{i}", "slider", f"strut_{i}", 0.05 * out + 0.3 * Z, side)
        d.hinge(f"pin_{i}", f"strut_{i}", f"rib_{i}", 0.3 * out + 0.65 * Z, side)
    return d


def miura(scale=1.0, m=3, n=3):
    """A sheet of m x n parallelograms with Miura's pattern (Schenk and Guest 2013): one motion."""
    loops, creases = (m - 1) * (n - 1), (m - 1) * n + m * (n - 1)
    rank = creases - loops - 1
    d = Drawing(f"miura_{m}x{n}", Truth(1, 5 * loops - rank), ("across_0_0",), scale)

    def corner(i, j):
        return np.array([0.25 * i, 0.3 * j + 0.1 * (i % 2), 0.12 * (j % 2)])

    def panel(i, j):
        return f"panel_{i}_{j}" if i or j else "universe"

    for i in range(m):
        for j in range(n):
            for name, di, dj in (("across", 1, 0), ("up", 0, 1)):
                if i + di < m and j + dj < n:
                    a, b = corner(i + di, j + dj), corner(i + 1, j + 1)
                    pair = panel(i, j), panel(i + di, j + dj)
                    d.hinge(f"{name}_{i}_{j}", *pair, 0.4 * a + 0.6 * b, unit(b - a))
    return d


def bennett_chain(scale=1.0, n=3):
    """n of Bennett's loops, each crossed with the next on a common hinge, as scissors."""
    d = Drawing(f"bennett_chain_{n}", Truth(1, 3 * n), ("hinge_0_0",), scale)
    start, theta = pin.SE3.Identity(), 1.2
    arriving, leaving = "universe", "bar_0"  # at hinge 0: links 3 and 0
    for k in range(n):
        lengths = (0.4 + 0.05 * k, 0.6 - 0.07 * k)
        frames = bennett_loop(start, *(with_length(x, 1.2) for x in lengths), theta)
        bodies = [leaving, f"one_{k}", f"two_{k}", arriving]  # link i goes from hinge i to i + 1
        for i, frame in enumerate(frames):
            if i or not k:
                d.hinge(f"hinge_{k}_{i}", bodies[i - 1], bodies[i], *axis(frame))
        turn = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 2.0 + 0.1 * k), np.array([0.0, 0.0, 0.1]))
        start, theta = frames[2] * turn, theta + 0.2
        arriving, leaving = bodies[1], bodies[2]
    return d


def parallel_bars(scale=1.0, n=3):
    """A table on n equal parallel bars with a cross at both ends: it swings in two directions.

    Legs of two crosses with parallel axes hold the turn about their normal and the distance:
    n legs have 2 n rows, of which four count.
    """
    d = Drawing(f"parallel_bars_{n}", Truth(2, 2 * n - 4), ("foot_0[0]", "foot_0[1]"), scale)
    bar = np.array([0.15, 0.1, 0.6])
    for i in range(n):
        foot = on_circle(0.3, 2.0 * np.pi * i / n + 0.3, 0.03 * i)
        side = unit(np.cross(X, bar))
        d.universal(f"foot_{i}", "universe", f"bar_{i}", foot, X, side)
        d.universal(f"head_{i}", f"bar_{i}", "table", foot + bar, side, X)
    return d


def tripteron(scale=1.0):
    """Kong and Gosselin 2002: three legs of a slide and three hinges along x, y and z: the table
    moves without turning, each slide along its axis."""
    d = Drawing("tripteron", Truth(3, 3), ("slide_0", "slide_1", "slide_2"), scale)
    for i, along in enumerate((X, Y, Z)):
        a, b = np.roll((X, Y, Z), -i - 1, axis=0)[:2]
        d.slide(f"slide_{i}", "universe", f"runner_{i}", -0.6 * (a + b), along)
        d.hinge(f"foot_{i}", f"runner_{i}", f"lower_{i}", -0.55 * a - 0.5 * b, along)
        d.hinge(f"knee_{i}", f"lower_{i}", f"upper_{i}", -0.1 * a - 0.6 * b + 0.1 * along, along)
        d.hinge(f"head_{i}", f"upper_{i}", "table", -0.1 * a - 0.05 * b, along)
    return d


def delta(scale=1.0, hinged=True):
    """Clavel's Delta, the forearms parallelograms of hinges, or pairs of bars between balls.

    With balls counting is right; with hinges a leg is R-R-Pa-R, of four freedoms: three rows too
    many for a table that moves without turning, and three in each parallelogram.
    """
    name, truth = ("delta_hinged", Truth(3, 12)) if hinged else ("delta", Truth(9, 0, idle=6))
    d = Drawing(name, truth, ("base_0", "base_1", "base_2"), scale)
    for i, angle in enumerate(THIRDS):
        out, side = on_circle(1.0, angle), on_circle(1.0, angle + np.pi / 2)
        elbow = 0.45 * out - (0.1 + 0.02 * i) * Z
        wrist = 0.08 * out - 0.6 * Z
        d.hinge(f"base_{i}", "universe", f"arm_{i}", 0.2 * out, side)
        if not hinged:
            for k, w in enumerate((0.06, -0.06)):
                bar = f"bar_{i}_{k}"
                d.bar(bar, f"arm_{i}", "table", elbow + w * side, wrist + w * side)
            continue
        across = np.cross(side, wrist - elbow)
        d.hinge(f"elbow_{i}", f"arm_{i}", f"top_{i}", elbow, side)
        for k, w in enumerate((0.06, -0.06)):
            d.hinge(f"upper_{i}_{k}", f"top_{i}", f"bar_{i}_{k}", elbow + w * side, across)
            d.hinge(f"lower_{i}_{k}", f"bar_{i}_{k}", f"bottom_{i}", wrist + w * side, across)
        d.hinge(f"wrist_{i}", f"bottom_{i}", "table", wrist, side)
    return d


def shafts_and_rod(scale=1.0):
    """Two skew shafts, each in two bearings, tied by a bar with balls, which may spin: a bearing
    of each shaft would do."""
    d = Drawing("shafts_and_rod", Truth(2, 10, idle=1), ("one_0",), scale)
    for name, foot, along in (
        ("one", (0.0, 0.0, 0.0), unit((0.1, 0.2, 1.0))),
        ("two", (0.7, 0.1, -0.1), unit((1.0, -0.3, 0.2))),
    ):
        for i in range(2):
            d.hinge(f"{name}_{i}", "universe", name, foot + 0.25 * i * along, along)
    d.bar("rod", "one", "two", (0.2, 0.05, 0.02), (0.6, 0.4, 0.1))
    return d


def wishbones(scale=1.0):
    """The front axle of a car: each wishbone on two bushes of one axis, of which one would do.

    A rack and two tie rods; wheels and rack move: three motions, and five rows a bush too many.
    """
    d = Drawing("wishbones", Truth(3, 20), ("rack", "lower_l_front", "lower_r_front"), scale)
    d.slide("rack", "universe", "rack_bar", (-0.12, 0, 0.2), Y)
    for side, s in (("l", 1.0), ("r", -1.0)):
        for name, z, y in (("upper", 0.35, 0.62), ("lower", 0.1, 0.7)):
            for end, x in (("front", -0.15), ("rear", 0.2)):
                at_x = np.array([x, s * (0.32 + 0.1 * x), z + 0.2 * x * (name == "upper")])
                axis_ = np.array([1.0, 0.1 * s, 0.2 * (name == "upper")])
                d.hinge(f"{name}_{side}_{end}", "universe", f"{name}_{side}", at_x, axis_)
            ball = np.array([0.02 * (z - 0.1), s * y, z - 0.02])
            d.ball(f"{name}_{side}_ball", f"{name}_{side}", f"upright_{side}", ball)
        inner, outer = np.array([-0.12, s * 0.3, 0.2]), np.array([-0.14, s * 0.66, 0.19])
        d.universal(f"tie_{side}_in", "rack_bar", f"tie_{side}", inner, X, Z)
        d.ball(f"tie_{side}_out", f"tie_{side}", f"upright_{side}", outer)
    return d
