"""Single loops that move where counting says they do not.

Where not said otherwise, mobility is that of J. M. McCarthy and G. S. Soh, Geometric Design of
Linkages, and Y. Chen and Z. You, Motion Structures (spatial overconstrained loops: chapters on
Bennett, Goldberg, Myard, Bricard, Schatz). A loop of n joints of one freedom has 6 - n + dof
redundant rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from overconstrained_drawing import Drawing, Truth, X, Y, Z, unit

SINGLE = Truth(1, 1)
"""Six hinges that move."""


def step(a: float, alpha: float, theta: float = 0.0, offset: float = 0.0) -> pin.SE3:
    """Denavit and Hartenberg: Rz(theta) Tz(offset) Tx(a) Rx(alpha)."""
    turn = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, theta), np.array([0.0, 0.0, offset]))
    return turn * pin.SE3(pin.rpy.rpyToMatrix(alpha, 0.0, 0.0), np.array([a, 0.0, 0.0]))


def axis(frame: pin.SE3) -> tuple[Any, Any]:
    """The z axis of a frame: point, direction."""
    return frame.translation, frame.rotation[:, 2]


def closed_ring(links: Any, guess: Any) -> list[tuple[Any, Any]]:
    """Axes of a ring of links (a, alpha[, offset]) in a closed posture near these angles."""
    theta = np.array(guess, float)
    links = [(*link, 0.0)[:3] for link in links]
    for _ in range(100):
        frame, axes = pin.SE3.Identity(), []
        for (a, alpha, offset), angle in zip(links, theta, strict=True):
            axes.append(axis(frame))
            frame = frame * step(a, alpha, angle, offset)
        error = pin.log6(frame).vector
        if np.abs(error).max() < 1e-15:
            break
        J = np.column_stack([np.concatenate([np.cross(p, z), z]) for p, z in axes])
        theta -= np.linalg.lstsq(J, error, rcond=1e-5)[0]
    assert np.abs(error).max() < 1e-14
    return axes


# ---------------------------------------------------------------------------- Bennett and his heirs


def bennett_loop(start: pin.SE3, first: Any, second: Any, theta: float) -> list[pin.SE3]:
    """Four frames with z on the hinges of Bennett's loop.

    `start` lies on hinge 1 with x along the first link; links (a, alpha) go first, second, first,
    second; `theta` turns from the link that arrives at hinge 1 to the one that leaves it.
    """
    (a, alpha), (b, beta) = first, second
    assert abs(np.sin(alpha) * b - np.sin(beta) * a) < 1e-14
    K = np.sin((beta + alpha) / 2.0) / np.sin((beta - alpha) / 2.0)
    other = 2.0 * np.arctan(K / np.tan(theta / 2.0))
    two = start * step(a, alpha)
    three = two * step(b, beta, other)
    four = three * step(a, alpha, -theta)
    again = four * step(b, beta, -other) * step(0.0, 0.0, theta)
    assert np.allclose(again, start, atol=1e-13)
    return [start, two, three, four]


def with_length(length: float, ratio: float, obtuse: bool = False) -> tuple[float, float]:
    """A link whose twist has the sine length * ratio."""
    twist = np.arcsin(length * ratio)
    return length, float(np.pi - twist if obtuse else twist)


def turned(frame: pin.SE3, angle: float) -> pin.SE3:
    return frame * step(0.0, 0.0, angle)


def bennett(scale=1.0):
    """Bennett 1903: four hinges."""
    frames = bennett_loop(pin.SE3.Identity(), with_length(0.4, 1.2), with_length(0.6, 1.2), 1.2)
    return Drawing("bennett", Truth(1, 3), ("hinge_1",), scale).ring([axis(f) for f in frames])


def goldberg_frames(start, b, c, a, theta, delta):
    """Hinges D, A, B, E, F of Goldberg's loop: two of Bennett's that share the link from C to D.

    Their links at C become one (B to E), and the shared link goes. `start` is on D with x to A;
    x turned by `delta` goes to F.
    """
    d, at_a, at_b, at_c = bennett_loop(start, b, a, theta)
    _, at_f, at_e, again = bennett_loop(turned(start, delta), c, a, theta + delta)
    assert np.allclose(again.translation, at_c.translation, atol=1e-13)
    return d, at_a, at_b, at_e, at_f


def goldberg(scale=1.0):
    """Goldberg 1943: five hinges, one motion, two redundant rows."""
    b, c, a = (with_length(x, 1.1) for x in (0.5, 0.3, 0.65))
    frames = goldberg_frames(pin.SE3.Identity(), b, c, a, 1.1, 0.7)
    return Drawing("goldberg", Truth(1, 2), ("hinge_1",), scale).ring([axis(f) for f in frames])


def myard(scale=1.0):
    """Myard 1931: Goldberg's of two mirrored loops with a right angle in the shared link."""
    a = (0.5, np.pi / 2)
    b, c = with_length(0.3, 2.0), with_length(0.3, 2.0, obtuse=True)
    frames = goldberg_frames(pin.SE3.Identity(), b, c, a, 1.1, 0.8)
    return Drawing("myard", Truth(1, 2), ("hinge_1",), scale).ring([axis(f) for f in frames])


def wohlhart(scale=1.0):
    """Wohlhart 1991: two of Goldberg's loops that share the links at D, which go."""
    b, c = with_length(0.5, 1.1), with_length(0.3, 1.1)
    start = pin.SE3.Identity()
    _, at_a, b1, e1, at_f = goldberg_frames(start, b, c, with_length(0.65, 1.1), 1.1, 0.7)
    _, _, b2, e2, _ = goldberg_frames(start, b, c, with_length(0.8, 1.1), 2.0, 0.7)
    frames = [at_a, b1, e1, at_f, e2, b2]
    return Drawing("wohlhart", SINGLE, ("hinge_1",), scale).ring([axis(f) for f in frames])


def waldron(scale=1.0):
    """Waldron 1968: two of Bennett's loops on one hinge, which goes: six hinges."""
    one = bennett_loop(pin.SE3.Identity(), with_length(0.4, 1.2), with_length(0.6, 1.2), 1.2)
    other = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 2.5), np.array([0.0, 0.0, 0.2]))
    two = bennett_loop(other, with_length(0.5, 1.0), with_length(0.3, 1.0), 1.2 + 0.3)
    frames = [*one[1:], *two[:0:-1]]
    return Drawing("waldron", SINGLE, ("hinge_1",), scale).ring([axis(f) for f in frames])


# ------------------------------------------------------------------------------------ Bricard


def line_symmetric_bricard(scale=1.0):
    """Bricard 1927: three hinges, and the same turned by pi about a line (here z)."""
    half = [
        ((0.3, 0.1, 0.05), unit((0.2, 0.5, 0.9))),
        ((0.25, 0.35, 0.2), unit((0.8, -0.1, 0.4))),
        ((-0.1, 0.4, -0.1), unit((-0.3, 0.7, 0.2))),
    ]
    turn = np.diag([-1.0, -1.0, 1.0])
    axes = [*half, *((turn @ p, turn @ z) for p, z in half)]
    return Drawing("line_symmetric_bricard", SINGLE, ("hinge_1",), scale).ring(axes)


def plane_symmetric_bricard(scale=1.0):
    """Bricard 1927: two hinges in a plane (here y = 0), the others in mirrored pairs."""
    p2, z2 = np.array([0.2, 0.3, 0.1]), unit((0.3, 0.5, 0.9))
    p3, z3 = np.array([-0.1, 0.35, 0.3]), unit((0.9, 0.2, -0.3))
    mirror = np.diag([1.0, -1.0, 1.0])
    axes = [
        ((0.4, 0.0, -0.05), (0.4, 0.0, 1.0)), (p2, z2), (p3, z3),
        ((-0.35, 0.0, 0.2), (1.0, 0.0, 0.5)), (mirror @ p3, mirror @ z3),
        (mirror @ p2, mirror @ z2),
    ]  # fmt: skip
    return Drawing("plane_symmetric_bricard", SINGLE, ("hinge_1",), scale).ring(axes)


def trihedral_bricard(scale=1.0):
    """Bricard 1927, orthogonal: right angles, and lengths whose squares alternate to zero."""
    a = [0.3, 0.4, 0.5, 0.45, 0.35]
    a.append(np.sqrt(a[0] ** 2 - a[1] ** 2 + a[2] ** 2 - a[3] ** 2 + a[4] ** 2))
    links = [(x, np.pi / 2 * (-1.0) ** i) for i, x in enumerate(a)]
    axes = closed_ring(links, [1.0, 1.93, 1.0, 1.93, 1.0, 1.93])
    return Drawing("trihedral_bricard", SINGLE, ("hinge_1",), scale).ring(axes)


def kaleidocycle(scale=1.0, n=6):
    """A ring of n equal tetrahedra, hinged along opposite edges."""
    links = [(0.4, np.pi / 2 * (-1.0) ** i) for i in range(n)]
    guess = [1.0, 1.93] * 3 if n == 6 else [-0.9, 0.2, -0.7, 1.9, -1.5, 0.3, 1.4, 2.1]
    truth = SINGLE if n == 6 else Truth(n - 6, 0)
    motors = tuple(f"hinge_{i}" for i in range(1, n - 5)) if n > 6 else ("hinge_1",)
    axes = closed_ring(links, guess)
    return Drawing(f"kaleidocycle_{n}", truth, motors, scale).ring(axes)


def altmann(scale=1.0):
    """Altmann 1954: a line-symmetric loop of Bricard's with two links of no length."""
    links = [(0.4, np.pi / 2), (0.0, np.pi / 2), (0.3, -np.pi / 2)] * 2
    axes = closed_ring(links, [0.9, 1.5, 2.1] * 2)
    return Drawing("altmann", SINGLE, ("hinge_1",), scale).ring(axes)


def schatz(scale=1.0):
    """Schatz 1942, the mixer Turbula: parallel shafts, sqrt(3) of a link apart."""
    a, right = 0.3, np.pi / 2
    links = [
        (0.0, right, 0.1), (a, right), (a, right), (a, right), (0.0, right),
        (np.sqrt(3.0) * a, 0.0, -0.1),
    ]  # fmt: skip
    axes = closed_ring(links, [0.57, -0.97, -0.65, 2.34, -1.64, 0.74])
    return Drawing("schatz", SINGLE, ("hinge_1",), scale).ring(axes)


# ---------------------------------------------------------------------------- of everyday machines


def sarrus(scale=1.0):
    """Sarrus 1853: three parallel hinges, and three of another direction: a straight line."""
    axes = [
        ((0.1, -0.3, 0.0), X), ((0.0, -0.55, 0.25), X), ((-0.1, -0.25, 0.5), X),
        ((0.25, 0.1, 0.52), Y), ((0.6, 0.0, 0.2), Y), ((0.3, -0.1, 0.02), Y),
    ]  # fmt: skip
    return Drawing("sarrus", SINGLE, ("hinge_1",), scale).ring(axes)


def spherical(scale=1.0, n=4):
    """Hinges that meet in a point: n - 3 motions (McCarthy and Soh, chapter 7)."""
    angles = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False) + 0.3 * np.sin(np.arange(n))
    directions = [(np.cos(t), np.sin(t), 0.5 + 0.4 * np.cos(2.3 * t)) for t in angles]
    axes = [((0.3 + 0.1 * i) * unit(z), z) for i, z in enumerate(directions)]
    motors = tuple(f"hinge_{i}" for i in range(1, n - 2))
    return Drawing(f"spherical_{n}", Truth(n - 3, 3), motors, scale).ring(axes)


def miura_vertex(scale=1.0):
    """Four creases of a fold that lies flat twice: opposite sectors add up to pi."""
    one, two = 1.1, 0.8  # sectors one, two, pi - one, pi - two
    links = [(0.0, one), (0.0, two), (0.0, np.pi - one), (0.0, np.pi - two)]
    axes = [(0.25 * z, z) for _, z in closed_ring(links, [0.6, -0.5, 0.6, 0.5])]
    return Drawing("miura_vertex", Truth(1, 3), ("hinge_1",), scale).ring(axes)


def cardan(scale=1.0, crossed=False):
    """Two universal joints with their forks in phase, shafts parallel (Z) or mirrored (W).

    Equal angles at both joints: the shafts turn alike (Seherr-Thoss et al., Universal Joints and
    Driveshafts, section 1.1), so that they need no spline.
    """
    bend, phase, length = 0.5, 0.4, 0.5
    one = np.array([np.cos(bend), np.sin(bend), 0.0])
    two = one * [1.0, -1.0, 1.0] if crossed else one
    fork = np.cos(phase) * Z + np.sin(phase) * Y
    d = Drawing("cardan_w" if crossed else "cardan_z", SINGLE, ("shaft_in",), scale)
    d.hinge("shaft_in", "universe", "in", -0.2 * one, one)
    d.universal("cross_1", "in", "mid", (0, 0, 0), np.cross(one, fork), fork)
    d.universal("cross_2", "mid", "out", (length, 0, 0), fork, np.cross(two, fork))
    d.hinge("shaft_out", "out", "universe", length * X + 0.2 * two, two)
    return d


def oldham(scale=1.0):
    """Oldham 1821: two parallel shafts, a disc that slides across on both: planar."""
    d = Drawing("oldham", Truth(1, 3), ("shaft_in",), scale)
    groove = np.array([np.cos(0.4), np.sin(0.4), 0.0])
    d.hinge("shaft_in", "universe", "in", (0, 0, -0.1))
    d.slide("groove_1", "in", "disc", (0, 0, 0), groove)
    d.slide("groove_2", "disc", "out", (0.05, 0.03, 0.02), np.cross(Z, groove))
    d.hinge("shaft_out", "out", "universe", (0.08, 0.02, 0.1))
    return d


def four_bar(scale=1.0):
    """Four parallel hinges."""
    d = Drawing("four_bar", Truth(1, 3), ("base_crank",), scale)
    return d.pins(
        [
            ("universe", "crank", (0, 0)), ("crank", "coupler", (0.1, 0.17)),
            ("coupler", "rocker", (0.55, 0.4)), ("rocker", "universe", (0.5, 0)),
        ]
    )  # fmt: skip


def wedges(scale=1.0):
    """Three slides in a plane: one motion, four redundant rows."""
    d = Drawing("wedges", Truth(1, 4), ("bed",), scale)
    d.slide("bed", "universe", "wedge", (0, 0, 0), X)
    d.slide("slope", "wedge", "rest", (0.2, 0, 0.1), (1.0, 0.0, 0.4))
    d.slide("wall", "rest", "universe", (0.4, 0.05, 0.2), Z)
    return d


def press(scale=1.0):
    """A spindle that turns in the frame, in a nut that a rail guides: three joints along z."""
    d = Drawing("press", Truth(1, 4), ("bearing",), scale)
    d.hinge("bearing", "universe", "spindle", (0, 0, 0))
    d.joint("thread", "screw", "spindle", "nut", (0, 0, 0.2), Z, 0.01)
    d.slide("rail", "nut", "universe", (0.15, 0.05, 0.2))
    return d
