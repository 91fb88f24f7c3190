"""Mechanisms beside the overconstrained ones: singular where they are drawn, and generic."""

from __future__ import annotations

import numpy as np
from overconstrained_drawing import Drawing, Truth, on_circle, unit

# ------------------------------------------------------------------- singular in the posture drawn


def folded_parallelogram(scale=1.0):
    """All hinges in line: parallelogram and antiparallelogram part here (a bifurcation)."""
    d = Drawing("folded_parallelogram", Truth(1, 3, here=2), ("base_left",), scale)
    return d.pins(
        [
            ("universe", "left", (0, 0)), ("left", "rod", (0.3, 0)), ("rod", "right", (0.8, 0)),
            ("universe", "right", (0.5, 0)),
        ]
    )  # fmt: skip


def flat_miura_vertex(scale=1.0):
    """Four creases of a sheet that lies flat: all in one plane, two ways to fold."""
    d = Drawing("flat_miura_vertex", Truth(1, 3, here=2), ("hinge_1",), scale)
    angles = np.cumsum([0.0, 1.1, 0.8, np.pi - 1.1])
    return d.ring([(on_circle(0.25, t), on_circle(1.0, t)) for t in angles])


def stretched_bars(scale=1.0):
    """Two bars in line between two hinges: rigid, but soft across (shaky)."""
    d = Drawing("stretched_bars", Truth(0, 3, here=1, shaky=1), (), scale)
    return d.pins(
        [("universe", "one", (0, 0)), ("one", "two", (0.3, 0)), ("two", "universe", (0.7, 0))]
    )


def equal_bars(scale=1.0, n=4):
    """A table on n equal parallel bars between balls: it swings in two directions; that it turns
    about the bars is of first order, wherever it swings to."""
    d = Drawing(f"equal_bars_{n}", Truth(2 + n, n - 4, idle=n, here=3 + n, shaky=1), (), scale)
    bar = np.array([0.15, 0.1, 0.6])
    for i in range(n):
        foot = on_circle(0.3 + 0.05 * i, 2.0 * np.pi * i / n + 0.3, 0.03 * i)
        d.bar(f"bar_{i}", "universe", "table", foot, foot + bar)
    return d


def wren(scale=1.0, n=6):
    """Wren's platform: n equal bars between balls, lines of one regulus, which have rank 3: it
    screws up and down, and two more motions are of first order."""
    d = Drawing(f"wren_{n}", Truth(1 + n, n - 5, idle=n, here=3 + n, shaky=2), (), scale)
    for i in range(n):
        t = 2.0 * np.pi * i / n + 0.3
        d.bar(f"bar_{i}", "universe", "table", on_circle(0.4, t), on_circle(0.4, t + 0.7, 0.6))
    return d


# ---------------------------------------------------------------------- generic: counting is right


def rssr(scale=1.0):
    """Crank and rocker, skew, tied by a bar with a ball at both ends, which may spin."""
    d = Drawing("rssr", Truth(2, 0, idle=1), ("crank",), scale)
    d.hinge("crank", "universe", "one", (0, 0, 0), (0.1, 0.2, 1.0))
    d.bar("rod", "one", "two", (0.2, 0.05, 0.02), (0.6, 0.4, 0.1))
    d.hinge("rocker", "two", "universe", (0.7, 0.1, -0.1), (1.0, -0.3, 0.2))
    return d


def rscr(scale=1.0):
    """A crank, a ball, a sleeve that slides and turns, a rocker: seven freedoms in a loop."""
    d = Drawing("rscr", Truth(1, 0), ("crank",), scale)
    d.hinge("crank", "universe", "one", (0, 0, 0), (0.1, 0.2, 1.0))
    d.ball("ball", "one", "rod", (0.2, 0.05, 0.02))
    d.joint("sleeve", "cylindrical", "rod", "two", (0.5, 0.3, 0.1), (0.7, 0.5, 0.2))
    d.hinge("rocker", "two", "universe", (0.7, 0.1, -0.1), (1.0, -0.3, 0.2))
    return d


def seven_hinges(scale=1.0):
    """A loop of seven hinges anywhere."""
    rng = np.random.default_rng(5)
    turns = 2.0 * np.pi * np.arange(7) / 7
    axes = [(on_circle(0.4, t, rng.uniform(-0.2, 0.2)), unit(rng.normal(size=3))) for t in turns]
    return Drawing("seven_hinges", Truth(1, 0), ("hinge_1",), scale).ring(axes)


def upu(scale=1.0):
    """Tsai 1996: three legs U-P-U with outer axes parallel and inner axes parallel; the table
    moves without turning, and counting says 3 as well."""
    d = Drawing("upu", Truth(3, 0), ("leg_0", "leg_1", "leg_2"), scale)
    for i, angle in enumerate(2.0 * np.pi / 3.0 * np.arange(3) + 0.2):
        foot, side = on_circle(0.5, angle), on_circle(1.0, angle + np.pi / 2)
        head = on_circle(0.2, angle, 0.6) + np.array([0.05, 0.03, 0.0])
        inner = unit(np.cross(side, head - foot))
        d.universal(f"foot_{i}", "universe", f"low_{i}", foot, side, inner)
        d.slide(f"leg_{i}", f"low_{i}", f"high_{i}", 0.5 * (foot + head), head - foot)
        d.universal(f"head_{i}", f"high_{i}", "table", head, inner, side)
    return d
