"""Three of SymPy's five mechanisms in motion: accelerations.

`KanesMethod`, with the active rows, beside closed forms.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.physics import mechanics as me

import holoctl as hc
from referee.by_hand import Moving, accelerations
from referee.finding import Finding, Question, each, off

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import linkages

Array = NDArray[np.float64]
G = 9.81


@dataclass(frozen=True)
class Motion:
    """A mechanism that moves: what drives the closed forms, and where it is looked at.

    Attributes
    ----------
    name, driver : str
        Of the linkage, and of the coordinate that the closed forms are functions of.
    bodies, coordinates : callable
        Closed forms; coordinates in the order of the mechanism.
    gravity : (2,) tuple
        In the plane of the closed forms, m/s^2.
    at : tuple of (float, float)
        Values of the driver and its rates.
    method : callable
        ``method() -> (KanesMethod, coordinates, speeds)``.
    """

    name: str
    driver: str
    bodies: Callable[[], list[Moving]]
    coordinates: Callable[[], dict[str, Any]]
    at: tuple[tuple[float, float], ...]
    method: Callable[[], tuple[me.KanesMethod, list[Any], list[Any]]]


def _thin(length: float, mass: float) -> float:
    return mass * (length**2 / 12 + 1e-4)


def _bar(length: float, x: Any, y: Any, angle: Any) -> Moving:
    """A bar of 2 kg/m that starts at (x, y)."""
    half = length / 2
    return Moving(
        2.0 * length, _thin(length, 2.0 * length), lambda a: x(a) + half * mp.cos(angle(a)),
        lambda a: y(a) + half * mp.sin(angle(a)), angle,
    )  # fmt: skip


def _nothing(_: Any) -> Any:
    return mp.mpf(0)


# Crank 0.2, coupler 0.5, rocker 0.4, base 0.5 m.


def _bar_angle(a: Any) -> Any:
    return a


def _tip(a: Any) -> tuple[Any, Any]:
    x, y = mp.mpf("0.2") * mp.cos(a), mp.mpf("0.2") * mp.sin(a)
    dx, dy = mp.mpf("0.5") - x, -y
    d2 = dx**2 + dy**2
    d = mp.sqrt(d2)
    along = (mp.mpf("0.25") - mp.mpf("0.16") + d2) / (2 * d)
    up = mp.sqrt(mp.mpf("0.25") - along**2)
    return x + (along * dx - up * dy) / d, y + (along * dy + up * dx) / d


def _coupler(a: Any) -> Any:
    x, y = _tip(a)
    return mp.atan2(y - mp.mpf("0.2") * mp.sin(a), x - mp.mpf("0.2") * mp.cos(a))


def _rocker(a: Any) -> Any:
    x, y = _tip(a)
    return mp.atan2(y, x - mp.mpf("0.5"))


def _four_bar_bodies() -> list[Moving]:
    return [
        _bar(0.2, _nothing, _nothing, _bar_angle),
        _bar(0.5, lambda a: 0.2 * mp.cos(a), lambda a: 0.2 * mp.sin(a), _coupler),
        _bar(0.4, lambda a: mp.mpf("0.5"), _nothing, _rocker),
    ]


# The arms of the umbrella: rods of 0.6 m from the hub at 1 m, struts of 0.35 m to their middles.


def _strut_height(h: Any) -> Any:
    return mp.sqrt(mp.mpf("0.1225") - (mp.mpf("0.3") * mp.cos(h)) ** 2)


def _slider(h: Any) -> Any:
    return 1 + mp.mpf("0.3") * mp.sin(h) - _strut_height(h)


def _strut(h: Any) -> Any:
    return mp.atan2(_strut_height(h), mp.mpf("0.3") * mp.cos(h))


def _umbrella_bodies() -> list[Moving]:
    arm = [
        _bar(0.6, _nothing, lambda h: mp.mpf(1), _bar_angle),
        _bar(0.35, _nothing, _slider, _strut),
    ]
    return [*arm, *arm, Moving(1.0, 0.0, _nothing, _slider, _nothing)]


def _double_bodies() -> list[Moving]:
    second = Moving(
        0.5, _thin(0.4, 0.5), lambda a: 0.2 * mp.cos(a), lambda a: 0.2 * mp.sin(a), _bar_angle
    )
    return [_bar(0.4, _nothing, _nothing, _bar_angle), second]


def _rigid(name: str, frame: Any, centre: Any, mass: float, length: float) -> me.RigidBody:
    thin = _thin(length, mass)
    about = me.inertia(frame, mass * 1e-4, thin, thin)
    return me.RigidBody(name, centre, frame, mass, (about, centre))


def _kane(
    N: Any, down: Any, q: list[Any], u: list[Any], free: int, bodies: list[Any], gaps: list[Any],
) -> tuple[me.KanesMethod, list[Any], list[Any]]:  # fmt: skip
    """The coordinates before `free` are independent; `gaps` are zero."""
    t = me.dynamicsymbols._t
    kinematic = [x.diff(t) - w for x, w in zip(q, u, strict=True)]
    rates = {x.diff(t): w for x, w in zip(q, u, strict=True)}
    method = me.KanesMethod(
        N, q[:free], u[:free], kinematic, q_dependent=q[free:], u_dependent=u[free:],
        configuration_constraints=gaps, velocity_constraints=[g.diff(t).subs(rates) for g in gaps],
    )  # fmt: skip
    loads = [(b.masscenter, b.mass * G * down) for b in bodies]
    method.kanes_equations(bodies, loads)
    return method, q, u


def _four_bar_kane() -> tuple[me.KanesMethod, list[Any], list[Any]]:
    q, u = list(me.dynamicsymbols("q:3")), list(me.dynamicsymbols("u:3"))
    N = me.ReferenceFrame("N")
    A = N.orientnew("A", "Axis", (q[0], N.z))
    B = A.orientnew("B", "Axis", (q[1], A.z))
    C = N.orientnew("C", "Axis", (q[2], N.z))
    for frame, over, w in ((A, N, u[0]), (B, A, u[1]), (C, N, u[2])):
        frame.set_ang_vel(over, w * N.z)
    O = me.Point("O")  # noqa: E741
    O.set_vel(N, 0)
    elbow, pivot = O.locatenew("elbow", 0.2 * A.x), O.locatenew("pivot", 0.5 * N.x)
    tip, head = elbow.locatenew("tip", 0.5 * B.x), pivot.locatenew("head", 0.4 * C.x)
    pivot.set_vel(N, 0)
    elbow.v2pt_theory(O, N, A)
    bodies = []
    for name, frame, start, length in (
        ("crank", A, O, 0.2), ("coupler", B, elbow, 0.5), ("rocker", C, pivot, 0.4),
    ):  # fmt: skip
        centre = start.locatenew(f"{name}_centre", length / 2 * frame.x)
        centre.v2pt_theory(start, N, frame)
        bodies.append(_rigid(name, frame, centre, 2 * length, length))
    gaps = list(tip.pos_from(head).to_matrix(N)[:2])
    return _kane(N, -N.y, q, u, 1, bodies, gaps)


def _umbrella_kane() -> tuple[me.KanesMethod, list[Any], list[Any]]:
    """Coordinates: shaft, then hub and foot of both arms."""
    q, u = list(me.dynamicsymbols("q:5")), list(me.dynamicsymbols("u:5"))
    N = me.ReferenceFrame("N")
    O = me.Point("O")  # noqa: E741
    O.set_vel(N, 0)
    seat = O.locatenew("seat", (q[0] + 0.4) * N.z)
    seat.set_vel(N, u[0] * N.z)
    hub = O.locatenew("hub", N.z)
    hub.set_vel(N, 0)
    bodies = [_rigid("slider", N, seat, 1.0, 0.1)]
    gaps = []
    for i, turn in enumerate((0.3, 0.3 + np.pi)):
        side = N.orientnew(f"side{i}", "Axis", (turn, N.z))
        plane = side.orientnew(f"plane{i}", "Axis", (sp.pi / 2, side.x))  # y up the shaft
        rod = plane.orientnew(f"rod{i}", "Axis", (q[1 + 2 * i], plane.z))
        strut = plane.orientnew(f"strut{i}", "Axis", (q[2 + 2 * i], plane.z))
        rod.set_ang_vel(plane, u[1 + 2 * i] * plane.z)
        strut.set_ang_vel(plane, u[2 + 2 * i] * plane.z)
        for name, frame, start, length in (("rod", rod, hub, 0.6), ("strut", strut, seat, 0.35)):
            centre = start.locatenew(f"{name}{i}_centre", length / 2 * frame.x)
            centre.v2pt_theory(start, N, frame)
            bodies.append(_rigid(f"{name}{i}", frame, centre, 2 * length, length))
        gap = hub.locatenew("middle", 0.3 * rod.x).pos_from(seat.locatenew("end", 0.35 * strut.x))
        gaps += [gap.dot(plane.x), gap.dot(plane.y)]
    return _kane(N, -N.z, q, u, 1, bodies, gaps)


def _double_kane() -> tuple[me.KanesMethod, list[Any], list[Any]]:
    """Of the five rows one is active: L sin(q2)."""
    q, u = list(me.dynamicsymbols("q:2")), list(me.dynamicsymbols("u:2"))
    N = me.ReferenceFrame("N")
    A = N.orientnew("A", "Axis", (q[0], N.z))
    B = A.orientnew("B", "Axis", (q[1], A.z))
    A.set_ang_vel(N, u[0] * N.z)
    B.set_ang_vel(A, u[1] * N.z)
    O = me.Point("O")  # noqa: E741
    O.set_vel(N, 0)
    fold = O.locatenew("fold", 0.4 * A.x)
    fold.v2pt_theory(O, N, A)
    one, two = O.locatenew("one", 0.2 * A.x), fold.locatenew("two", 0.2 * B.x)
    one.v2pt_theory(O, N, A)
    two.v2pt_theory(fold, N, B)
    bodies = [_rigid("a", A, one, 0.8, 0.4), _rigid("b", B, two, 0.5, 0.4)]
    return _kane(N, -N.y, q, u, 1, bodies, [0.4 * sp.sin(q[1])])


MOTIONS = (
    Motion(
        "four_bar", "motor", _four_bar_bodies,
        lambda: {"motor": _bar_angle, "elbow": lambda a: _coupler(a) - a, "pivot": _rocker},
        tuple((x, 2.0 - 0.3 * x) for x in np.linspace(0.3, 2.8, 8)), _four_bar_kane,
    ),
    Motion(
        "umbrella", "hub_1", _umbrella_bodies,
        lambda: {"shaft": lambda h: _slider(h) - mp.mpf("0.4"), "hub_1": _bar_angle,
                 "foot_1": _strut, "hub_2": _bar_angle, "foot_2": _strut},
        tuple((x, 1.5 + x) for x in np.linspace(-0.9, -0.2, 8)), _umbrella_kane,
    ),
    Motion(
        "double_link", "base", _double_bodies,
        lambda: {"base": _bar_angle, "fold": lambda a: mp.pi},
        tuple((x, 1.0 + x) for x in np.linspace(0.3, 2.0, 8)), _double_kane,
    ),
)  # fmt: skip


def answer(motion: Motion) -> list[Finding]:
    """holoctl and SymPy, at the same states, beside the closed forms."""
    closed = motion.coordinates()
    names = list(closed)
    exact = [
        accelerations(motion.bodies(), list(closed.values()), a, r, (0.0, -G)) for a, r in motion.at
    ]
    mech = linkages.LINKAGES[motion.name]().mechanism()
    to = [names.index(n) for n in mech.coordinate_names]
    part = hc.partition(mech, np.array(exact[0][0])[to])
    zero = np.zeros(mech.nv)

    def own(x: Any) -> Array:
        q, v, _ = (np.array(y)[to] for y in x)
        return hc.forward_dynamics(mech, q, v, zero, partition=part).a

    start = time.process_time()
    method, q, u = motion.method()
    matrix = sp.lambdify([q, u], [method.mass_matrix, method.forcing], "numpy", cse=True)
    derived = time.process_time() - start

    def theirs(x: Any) -> Array:
        M, f = matrix(x[0], x[1])
        return np.linalg.solve(np.array(M, float), np.array(f, float).ravel())

    found = []
    for solver, solve, order in (
        ("holoctl, forward_dynamics", own, to),
        (f"SymPy, KanesMethod ({derived:.1f} s to derive)", theirs, list(range(len(names)))),
    ):
        answers, seconds = each(solve, exact)
        error = max(off(a, np.array(x[2])[order]) for a, x in zip(answers, exact, strict=True))
        found.append(Finding(solver, {"acceleration": error}, len(exact), seconds))
    return found


SOURCE = (
    '"Kinematic loops", Google Summer of Code 2022; lengths and masses are ours, '
    "tests/linkages.py. Reference of accelerations: one freedom, closed forms of all bodies, "
    "derivatives in 40 digits. *KanesMethod* has the active rows alone, chosen by hand."
)
QUESTIONS = tuple(
    Question(f"SymPy's {m.name.replace('_', ' ')}", SOURCE, lambda m=m: answer(m)) for m in MOTIONS
)
