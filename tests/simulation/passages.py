"""Mechanisms whose motion passes singular configurations, and exact references of that motion.

Every body is a few point masses. A reference knows where they are for given minimal coordinates y
of a smooth branch, in closed form, and how y moves follows from that alone,

    J' D J ydd = J' D (g - xdd)        x: points, J = dx/dy, xdd: their acceleration at ydd = 0

with derivatives by truncated Taylor series: no tree, no rows, no multipliers, nothing of holoctl.
Planar mechanisms are right in x and y; angles count modulo a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from zoo import add_body, at

import holoctl as hc

# ------------------------------------------------------------------------------- Taylor series


class Jet:
    """Values with first and second derivatives along some directions: (..., K) arrays each."""

    __array_ufunc__ = None  # array * jet is a matter of the jet
    __slots__ = ("a", "b", "c")

    def __init__(self, a, b, c):
        self.a, self.b, self.c = a, b, c

    def __add__(self, o):
        if isinstance(o, Jet):
            return Jet(self.a + o.a, self.b + o.b, self.c + o.c)
        return Jet(self.a + o, self.b, self.c)

    __radd__ = __add__

    def __neg__(self):
        return Jet(-self.a, -self.b, -self.c)

    def __sub__(self, o):
        return self + (-o)

    def __rsub__(self, o):
        return (-self) + o

    def __mul__(self, o):
        if isinstance(o, Jet):
            return Jet(
                self.a * o.a,
                self.a * o.b + self.b * o.a,
                self.a * o.c + 2.0 * self.b * o.b + self.c * o.a,
            )
        return Jet(self.a * o, self.b * o, self.c * o)

    __rmul__ = __mul__

    def __truediv__(self, o):
        return self * (
            o.of(1.0 / o.a, -1.0 / o.a**2, 2.0 / o.a**3) if isinstance(o, Jet) else 1 / o
        )

    def of(self, f, f1, f2):
        """f of this, with the derivatives f1 and f2 of f there."""
        return Jet(f, f1 * self.b, f1 * self.c + f2 * self.b**2)


def _jet(x):
    return x if isinstance(x, Jet) else Jet(x, 0.0 * x, 0.0 * x)


def sin(x):
    s = np.sin(x.a)
    return x.of(s, np.cos(x.a), -s)


def cos(x):
    c = np.cos(x.a)
    return x.of(c, -np.sin(x.a), -c)


def sqrt(x):
    if not (x.a > 0.0).all():
        raise ValueError("the motion leaves the branch: circles do not meet")
    r = np.sqrt(x.a)
    return x.of(r, 0.5 / r, -0.25 / r**3)


def atan2(y, x):
    n, size = x.a * y.b - y.a * x.b, x.a**2 + y.a**2
    slope = 2.0 * (x.a * x.b + y.a * y.b) / size
    return Jet(np.arctan2(y.a, x.a), n / size, (x.a * y.c - y.a * x.c - n * slope) / size)


def variables(y, yd, free):
    """Jets of coordinates along each of the first `free` of them, and along the motion."""
    n = len(y)
    directions = np.column_stack([np.eye(n)[:, :free], yd])
    ones = np.ones(free + 1)
    return [Jet(y[i] * ones, directions[i], 0.0 * ones) for i in range(n)]


# --------------------------------------------------------------------------------- plane and space

Turn = tuple[Any, Any]
"""Cosine and sine."""


def turn(angle):
    return cos(angle), sin(angle)


def along(o, u, x, y=0.0):
    """The point o + R (x, y), with R of the turn u."""
    return o[0] + u[0] * x - u[1] * y, o[1] + u[1] * x + u[0] * y


def angle(p, q):
    """Of the direction from p to q."""
    return atan2(q[1] - p[1], q[0] - p[0])


def meeting(p, q, r, s, root):
    """Where circles about p and q of radii r and s meet; `root`: four times the area of the
    triangle, above zero to the left from p to q. Its square is (r+s)^2 - d^2 times d^2 - (r-s)^2.
    """
    x, y = q[0] - p[0], q[1] - p[1]
    square = x * x + y * y
    f, h = (square + (r**2 - s**2)) / square * 0.5, root / square * 0.5
    return p[0] + f * x - h * y, p[1] + f * y + h * x


def left(p, q, r, s, side=1.0):
    """`meeting` where the triangle never is flat."""
    x, y = q[0] - p[0], q[1] - p[1]
    square = x * x + y * y
    return meeting(p, q, r, s, side * sqrt(((r + s) ** 2 - square) * (square - (r - s) ** 2)))


def product(*factors):
    """Of rotations, (3, 3, K) each, or a rotation and points (3, n, K)."""
    first, *rest = factors
    for other in rest:
        mul = lambda x, y: np.einsum("ijk,jlk->ilk", x, y)  # noqa: E731
        first = Jet(
            mul(first.a, other.a),
            mul(first.a, other.b) + mul(first.b, other.a),
            mul(first.a, other.c) + 2.0 * mul(first.b, other.b) + mul(first.c, other.a),
        )
    return first


def constant(R, like):
    """A matrix that stays, as a jet."""
    a = np.repeat(np.asarray(R, float)[:, :, None], like.a.shape[-1], axis=2)
    return Jet(a, 0.0 * a, 0.0 * a)


def about(axis, x):
    """The rotation about a coordinate axis, 0 to 2."""
    c, s = cos(x), sin(x)
    i, j = (axis + 1) % 3, (axis + 2) % 3

    def filled(c, s, one):
        R = np.zeros((3, 3, c.size))
        R[axis, axis] = one
        R[i, i] = R[j, j] = c
        R[j, i], R[i, j] = s, -s
        return R

    return Jet(filled(c.a, s.a, 1.0), filled(c.b, s.b, 0.0), filled(c.c, s.c, 0.0))


# ------------------------------------------------------------------------------------------ bodies


@dataclass
class Sheet:
    """A tree that is being made, and the masses of its bodies."""

    gravity: Any = (0.0, 0.0, 0.0)
    model: Any = field(default_factory=pin.Model)
    bodies: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        self.model.gravity.linear = np.asarray(self.gravity, float)

    def add(self, name, parent, place=None, joint="RZ", length=0.3, mass=1.0):
        """A body of four masses spread over a length along x, not in line."""
        rng = np.random.default_rng(sum(map(ord, name)))
        points = rng.uniform(-0.04, 0.04, size=(4, 3))
        points[:, 0] += length * np.array([0.1, 0.4, 0.7, 1.0])
        masses = mass * rng.uniform(0.15, 0.35, size=4)
        com = masses @ points / masses.sum()
        r = points - com
        moments = sum(
            m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, r, strict=True)
        )
        kind = getattr(pin, f"JointModel{joint}")()
        inertia = pin.Inertia(masses.sum(), com, moments)
        add_body(self.model, parent, kind, at() if place is None else place, name, inertia)
        self.bodies[name] = points, masses

    def mechanism(self, constraints, motors, name):
        return hc.Mechanism(hc.renumbered(self.model), constraints, motors, name=name)

    def planar(self, **where):
        """Coordinates of the masses, (n, K) jets, of bodies at (origin, turn)."""
        found = []
        for name, (o, u) in where.items():
            p = self.bodies[name][0]
            found += [_jet(x) for x in along(o, u, p[:, :1], p[:, 1:2])]
        return found

    def spatial(self, **where):
        """Likewise, (3, n, K), of bodies at (origin (3, 1, K) or None, rotation (3, 3, K))."""
        found = []
        for name, (o, R) in where.items():
            p = product(R, constant(self.bodies[name][0].T, R))
            found.append(p if o is None else o + p)
        return found

    def weights(self, planar, names):
        """Masses and gravity for each of those coordinates, in order."""
        D, g = [], []
        for name in names:
            m = self.bodies[name][1]
            for i in range(2 if planar else 3):
                D.append(m)
                g.append(np.full(m.size, self.gravity[i]))
        return np.concatenate(D), np.concatenate(g)


@dataclass(frozen=True)
class Shape:
    """A branch at y: jets of the joints' coordinates and of the masses' coordinates.

    Of a joint: an angle or a length; ("wheel", angle) of a continuous one, ("ball", R) of a
    spherical one.
    """

    joints: Sequence[Any]
    masses: Sequence[Jet]


@dataclass(frozen=True)
class Passage:
    """A mechanism and a smooth branch of its motion.

    Attributes
    ----------
    name : str
    mech : hc.Mechanism
    sheet : Sheet
    shape : callable
        ``shape(y)`` of jets: a `Shape`.
    start : array
        A y, away from singular configurations.
    singular : callable
        ``singular(y)``: numbers, zero (with a change of sign) at singular configurations.
    order : tuple of str
        The bodies in the order of `Shape.masses`.
    planar : bool
        Masses have two coordinates, not three.
    timed : bool
        The last of y is time.
    """

    name: str
    mech: hc.Mechanism
    sheet: Sheet
    shape: Callable[[Sequence[Jet]], Shape]
    start: Any
    singular: Callable[[Any], Any]
    order: tuple[str, ...]
    planar: bool = True
    timed: bool = False

    @property
    def free(self):
        """Degrees of freedom."""
        return len(self.start) - self.timed

    def __post_init__(self):
        D, g = self.sheet.weights(self.planar, self.order)
        object.__setattr__(self, "_weights", (D, g))

    def _laid(self, y, yd):
        shape = self.shape(variables(np.asarray(y, float), np.asarray(yd, float), self.free))
        K = self.free + 1

        def laid(part):
            all_of = [np.broadcast_to(part(p), (*p.a.shape[:-1], K)) for p in shape.masses]
            return np.concatenate([x.reshape(-1, K) for x in all_of])

        return shape, laid(lambda p: p.a), laid(lambda p: p.b), laid(lambda p: p.c)

    def acceleration(self, y, yd):
        """ydd of the free coordinates."""
        _, _, first, second = self._laid(y, yd)
        D, g = self._weights
        J = first[:, : self.free]
        return np.linalg.solve((J.T * D) @ J, (J.T * D) @ (g - second[:, -1]))

    def energy(self, y, yd):
        """Kinetic and potential."""
        _, x, first, _ = self._laid(y, yd)
        D, g = self._weights
        return 0.5 * float(D @ first[:, -1] ** 2), -float((D * g) @ x[:, -1])

    def rate_to_turn_at(self, y0, y1):
        """The rate at y0 towards y1 of a motion (of one degree of freedom) that stops there."""
        potential = [self.energy(np.array([y]), np.zeros(1))[1] for y in (y0, y1)]
        inertia = 2.0 * self.energy(np.array([y0]), np.ones(1))[0]
        gained = potential[1] - potential[0]
        if not gained > 0.0:
            return None  # gravity does not stop it
        return float(np.sign(y1 - y0) * np.sqrt(2.0 * gained / inertia))

    def state(self, y, yd):
        """q and v."""
        q, v = [], []
        for joint in self._laid(y, yd)[0].joints:
            if not isinstance(joint, tuple):
                q.append(joint.a[-1])
                v.append(joint.b[-1])
            elif joint[0] == "wheel":
                q += [np.cos(joint[1].a[-1]), np.sin(joint[1].a[-1])]
                v.append(joint[1].b[-1])
            else:
                R, Rd = joint[1].a[..., -1], joint[1].b[..., -1]
                q += list(pin.Quaternion(R).coeffs())
                v += list(pin.unSkew(R.T @ Rd))
        return np.array(q), np.array(v)

    def full(self, y, yd):
        """With the time, where there is one."""
        return (np.append(y, 0.0), np.append(yd, 1.0)) if self.timed else (y, yd)

    def moved(self, y0, yd0, duration, rtol=1e-12):
        """The motion from y0 with rates yd0 (of the free coordinates)."""
        n = self.free
        y0, yd0 = np.asarray(y0, float)[:n], np.asarray(yd0, float)

        def f(t, z):
            y, yd = z[:n], z[n:]
            if self.timed:
                return np.concatenate([yd, self.acceleration(np.append(y, t), np.append(yd, 1.0))])
            return np.concatenate([yd, self.acceleration(y, yd)])

        size = 1e-14 * max(1.0, np.abs(yd0).max())
        found = solve_ivp(
            f, (0.0, duration), np.concatenate([y0, yd0]), method="DOP853", rtol=rtol, atol=size,
            dense_output=True, max_step=0.02 * duration,
        )  # fmt: skip
        assert found.success, found.message
        return Motion(self, duration, found)


@dataclass(frozen=True)
class Motion:
    """A motion of a reference."""

    passage: Passage
    duration: float
    found: Any

    def y(self, t):
        """y and yd, with the time."""
        n = self.passage.free
        z = self.found.sol(t)
        if not self.passage.timed:
            return z[:n], z[n:]
        return np.append(z[:n], t), np.append(z[n:], 1.0)

    def state(self, t):
        return self.passage.state(*self.y(t))

    def energies(self, count=101):
        return np.array([sum(self.passage.energy(*self.y(t)))
                         for t in np.linspace(0.0, self.duration, count)])  # fmt: skip

    def crossings(self, count=4000):
        """Instants of singular configurations, ascending, those that coincide once."""
        ts = np.linspace(0.0, self.duration, count)
        values = np.array([np.atleast_1d(self.passage.singular(self.y(t)[0])) for t in ts])
        instants = []
        for j in range(values.shape[1]):
            for i in np.flatnonzero(values[:-1, j] * values[1:, j] < 0.0):
                f = lambda t, j=j: np.atleast_1d(self.passage.singular(self.y(t)[0]))[j]  # noqa: E731
                instants.append(brentq(f, ts[i], ts[i + 1], xtol=1e-14, rtol=1e-14))
        instants = np.sort(instants)
        if len(instants) > 1:
            instants = instants[np.append(True, np.diff(instants) > 1e-9)]
        return instants


def apart(mech, q, other):
    """Largest difference of two configurations, angles modulo a turn."""
    d = pin.difference(mech.model, np.asarray(q), np.asarray(other))
    turning = mech.column_scale == 1.0
    d[turning] = (d[turning] + np.pi) % (2.0 * np.pi) - np.pi
    return float(np.abs(d).max())


# ------------------------------------------------------------------------------- planar four-bars

OBLIQUE = (2.1, -9.3, 0.0)


def _no(y):
    return np.ones(1)


def _four_bar(name, lengths, branch, start, singular, closure, gravity, extra=()):
    """Crank, coupler and rocker; `branch(y, a, b, c, g)`: jets of their three directions."""
    a, b, c, g = lengths
    sheet = Sheet(gravity)
    sheet.add("crank", 0, length=a)
    sheet.add("coupler", "crank", at(a), length=b, mass=2.0)
    sheet.add("rocker", 0, at(g), length=c, mass=1.5)
    kind = {"axes": closure} if closure == "x y" else {"joint": closure}
    loop = hc.Closure(("coupler", at(b)), ("rocker", at(c)), name="pin", **kind)
    mech = sheet.mechanism([loop, *extra], ["crank"], name=name)

    def shape(y):
        theta, beta, phi = branch(y[0], a, b, c, g)
        zero, u = (0.0, 0.0), turn(theta)
        masses = sheet.planar(
            crank=(zero, u), coupler=(along(zero, u, a), turn(beta)), rocker=((g, 0.0), turn(phi))
        )
        return Shape([theta, beta - theta, phi], masses)

    q0 = Passage(
        name, mech, sheet, shape, np.array([start]), singular, ("crank", "coupler", "rocker")
    )
    return _at_start(q0)


def _at_start(passage):
    """With the start as the reference of its mechanism."""
    y, yd = passage.full(passage.start[: passage.free], np.zeros(passage.free))
    q, _ = passage.state(y, yd)
    return replace(passage, mech=replace(passage.mech, reference=q))


def _parallel(y, a, b, c, g):
    return y, 0.0 * y, y


def _crossed(y, a, b, c, g):
    """tan(phi/2) = -k tan(theta/2), k = (g + a)/(g - a), as a smooth function of theta."""
    k = (g + a) / (g - a)
    s, c_ = sin(0.5 * y), cos(0.5 * y)
    phi = -1.0 * (y + 2.0 * atan2((k - 1.0) * s * c_, c_ * c_ + k * (s * s)))
    return y, angle(along((0.0, 0.0), turn(y), a), along((g, 0.0), turn(phi), a)), phi


def _symmetric(y, a, b, c, g):
    """A kite about the line from the crank's foot to the pin."""
    half = turn(0.5 * y)
    r = a * half[0] + sqrt(b**2 - a**2 * (half[1] * half[1]))
    tip = (r * half[0], r * half[1])
    return y, angle(along((0.0, 0.0), turn(y), a), tip), angle((g, 0.0), tip)


def _foot_of(y, a, b, c, g, root):
    A = along((0.0, 0.0), turn(y), a)
    tip = meeting(A, (g, 0.0), b, c, root)
    return y, angle(A, tip), angle((g, 0.0), tip)


def _neutral(y, a, b, c, g):
    """a + g = b + c: flat at theta = pi, generic otherwise."""
    assert abs(a + g - b - c) < 1e-15
    half = cos(0.5 * y)
    other = 2 * a * g * (1.0 - cos(y)) + ((a - g) ** 2 - (b - c) ** 2)
    return _foot_of(y, a, b, c, g, 2.0 * np.sqrt(a * g) * half * sqrt(other))


def _by_crank(y, a, b, c, g, side):
    """A crank that turns all around, the tip always on the same side of the diagonal."""
    s, c_ = sin(0.5 * y), cos(0.5 * y)
    one = 4 * a * g * (c_ * c_) + (b + c - a - g) * (a + b + c + g)
    two = 4 * a * g * (s * s) + (a - g - b + c) * (a - g + b - c)
    return _foot_of(y, a, b, c, g, side * sqrt(one) * sqrt(two))


def _by_rocker(y, a, b, c, g, side):
    """Likewise with the rocker's angle."""
    s, c_ = sin(0.5 * y), cos(0.5 * y)
    one = 4 * g * c * (s * s) + (a + b - c - g) * (a + b + c + g)
    two = 4 * g * c * (c_ * c_) + (c - g - a + b) * (c - g + a - b)
    B = along((g, 0.0), turn(y), c)
    tip = meeting(B, (0.0, 0.0), b, a, side * sqrt(one) * sqrt(two))
    return angle((0.0, 0.0), tip), angle(tip, B), y


def _sine(y):
    return np.sin(y[:1])


def _half_sine(y):
    return np.sin(0.5 * y[:1])


def parallelogram(gravity=OBLIQUE, closure="x y"):
    """Flat at 0 and pi, where it may get an antiparallelogram."""
    return _four_bar("parallelogram", (0.3, 0.5, 0.3, 0.5), _parallel, 0.7, _sine, closure, gravity)


def antiparallelogram(gravity=OBLIQUE):
    return _four_bar(
        "antiparallelogram", (0.3, 0.5, 0.3, 0.5), _crossed, 0.7, _sine, "x y", gravity
    )


def long_antiparallelogram(gravity=OBLIQUE):
    """Its cranks are longer than its ground: they turn the same way."""
    return _four_bar(
        "long_antiparallelogram", (0.5, 0.3, 0.5, 0.3), _crossed, 0.7, _sine, "x y", gravity
    )


def rhombus(gravity=OBLIQUE):
    """Four equal bars: three branches meet."""
    return _four_bar("rhombus", (0.4, 0.4, 0.4, 0.4), _parallel, 0.7, _sine, "x y", gravity)


def kite(gravity=OBLIQUE):
    """Two short bars, two long ones; at 0 the long ones may turn together."""
    return _four_bar("kite", (0.3, 0.5, 0.5, 0.3), _symmetric, 0.7, _half_sine, "x y", gravity)


def geared_kite(gravity=OBLIQUE):
    """A kite that drives a wheel by a gear."""
    lengths = a, b, c, g = 0.3, 0.5, 0.5, 0.3
    sheet = Sheet(gravity)
    sheet.add("crank", 0, length=a)
    sheet.add("coupler", "crank", at(a), length=b, mass=2.0)
    sheet.add("rocker", 0, at(g), length=c, mass=1.5)
    sheet.add("wheel", 0, at(-0.2, 0.1), length=0.1, mass=4.0)
    loops = [
        hc.Closure(("coupler", at(b)), ("rocker", at(c)), name="pin", axes="x y"),
        hc.Coupling({"wheel": 1.0, "crank": 1.5}, offset=0.3, name="gear"),
    ]
    mech = sheet.mechanism(loops, ["wheel"], name="geared_kite")

    def shape(y):
        theta, beta, phi = _symmetric(y[0], *lengths)
        wheel = 0.3 - 1.5 * theta
        zero, u = (0.0, 0.0), turn(theta)
        masses = sheet.planar(
            crank=(zero, u), coupler=(along(zero, u, a), turn(beta)), rocker=((g, 0.0), turn(phi)),
            wheel=((-0.2, 0.1), turn(wheel)),
        )  # fmt: skip
        return Shape([theta, beta - theta, phi, wheel], masses)

    order = ("crank", "coupler", "rocker", "wheel")
    return _at_start(Passage("geared_kite", mech, sheet, shape, np.array([0.7]), _half_sine, order))


def neutral(gravity=OBLIQUE):
    """Shortest and longest bar as long as the two others: flat once a turn, nothing symmetric."""
    lengths = (0.25, 0.45, 0.30, 0.5)
    return _four_bar("neutral", lengths, _neutral, 2.2, lambda y: np.cos(0.5 * y), "x y", gravity)


def geared_parallelogram(gravity=OBLIQUE):
    """A gear keeps the cranks parallel, so that it is regular: its loop is flat at 0 and pi."""
    gear = hc.Coupling({"crank": 1.0, "rocker": -1.0}, name="gear")
    return _four_bar(
        "geared_parallelogram", (0.3, 0.5, 0.3, 0.5), _parallel, 0.7, _no, "x y", gravity, (gear,)
    )


def nearly(eps, gravity=OBLIQUE, start=0.7, closure="x y"):
    """A parallelogram with a rocker longer by eps (or shorter): never flat, it turns over into the
    antiparallelogram at 0 and pi. The shortest bar turns all around, so its angle serves."""
    lengths = (0.3, 0.5, 0.3 + eps, 0.5)
    if eps > 0.0:
        # of the parallelogram at this angle the tip is right of the way from A to the foot
        branch = lambda y, *bars: _by_crank(y, *bars, 1.0)  # noqa: E731
    else:
        branch = lambda y, *bars: _by_rocker(y, *bars, -1.0)  # noqa: E731
    return _four_bar(f"nearly_{eps:g}", lengths, branch, start, _no, closure, gravity)


def nearly_kite(eps, gravity=OBLIQUE):
    """A kite whose ground is longer by eps. The crank nearly stops at 0, where the two long bars
    turn about its tip."""
    lengths = (0.3, 0.5, 0.5, 0.3 + eps)
    branch = lambda y, *bars: _by_crank(y, *bars, 1.0)  # noqa: E731
    return _four_bar(f"nearly_kite_{eps:g}", lengths, branch, 0.7, _no, "x y", gravity)


def nearly_neutral(eps, gravity=OBLIQUE):
    """The generic one with a rocker longer by eps."""
    lengths = (0.25, 0.45, 0.30 + eps, 0.5)
    branch = lambda y, *bars: _by_crank(y, *bars, 1.0)  # noqa: E731
    return _four_bar(f"nearly_neutral_{eps:g}", lengths, branch, 2.2, _no, "x y", gravity)


# ------------------------------------------------------------------------- planar, of more bodies


def three_bars(gravity=OBLIQUE, closure="x y"):
    """Three parallel cranks under one bar: one row is redundant (seven, with hinges), two motions
    of first order where all lies flat, but no other branch."""
    sheet, a, feet = Sheet(gravity), 0.3, (0.0, 0.35, 0.8)
    for i, x in enumerate(feet):
        sheet.add(f"bar_{i}", 0, at(x), length=a, mass=1.0 + 0.2 * i)
    sheet.add("coupler", "bar_0", at(a), length=0.8, mass=2.0)
    kind = {"axes": closure} if closure == "x y" else {"joint": closure}
    loops = [
        hc.Closure(("coupler", at(feet[i])), (f"bar_{i}", at(a)), name=f"pin_{i}", **kind)
        for i in (1, 2)
    ]
    mech = sheet.mechanism(loops, ["bar_0"], name="three_bars")
    order = ("bar_0", "bar_1", "bar_2", "coupler")
    joints = list(mech.model.names)[1:]

    def shape(y):
        u = turn(y[0])
        masses = sheet.planar(
            **{f"bar_{i}": ((x, 0.0), u) for i, x in enumerate(feet)},
            coupler=(along((0.0, 0.0), u, a), (1.0, 0.0)),
        )
        angles = {"coupler": -y[0]}
        return Shape([angles.get(name, y[0]) for name in joints], masses)

    return _at_start(Passage("three_bars", mech, sheet, shape, np.array([0.7]), _sine, order))


def watt(gravity=OBLIQUE):
    """Watt's six-bar: a parallelogram whose rocker turns on as the crank of a four-bar."""
    sheet, (a, g) = Sheet(gravity), (0.3, 0.5)
    arm, bent, g2, rod, follower = 0.25, 0.05, 0.6, 0.55, 0.45
    sheet.add("crank", 0, length=a)
    sheet.add("coupler", "crank", at(a), length=g, mass=2.0)
    sheet.add("rocker", 0, at(g), length=a, mass=1.5)
    sheet.add("rod", "rocker", at(arm, bent), length=rod)
    sheet.add("follower", 0, at(g + g2), length=follower)
    loops = [
        hc.Closure(("coupler", at(g)), ("rocker", at(a)), axes="x y", name="first"),
        hc.Closure(("rod", at(rod)), ("follower", at(follower)), axes="x y", name="second"),
    ]
    mech = sheet.mechanism(loops, ["crank"], name="watt")

    def shape(y):
        u, zero, foot = turn(y[0]), (0.0, 0.0), (g + g2, 0.0)
        A = along((g, 0.0), u, arm, bent)
        B = left(A, foot, rod, follower)
        beta, phi = angle(A, B), angle(foot, B)
        masses = sheet.planar(
            crank=(zero, u), coupler=(along(zero, u, a), (1.0, 0.0)), rocker=((g, 0.0), u),
            rod=(A, turn(beta)), follower=(foot, turn(phi)),
        )  # fmt: skip
        return Shape([y[0], -y[0], y[0], beta - y[0], phi], masses)

    order = ("crank", "coupler", "rocker", "rod", "follower")
    return _at_start(Passage("watt", mech, sheet, shape, np.array([0.7]), _sine, order))


def scissors(stages=2, gravity=OBLIQUE):
    """A scissor lift that passes the ground: stages - 1 flat rhombi at once; and where it stands
    upright, its shoe at the corner, as many as stages."""
    sheet, half = Sheet(gravity), 0.25
    sheet.add("shoe", 0, joint="PX", length=0.1, mass=2.0)
    loops, order = [], ["shoe"]
    for i in range(stages):
        left_, right = (0, "shoe") if i == 0 else (f"falling_{i - 1}", f"rising_{i - 1}")
        tip = at() if i == 0 else at(2 * half)
        sheet.add(f"rising_{i}", left_, tip, length=2 * half)
        sheet.add(f"falling_{i}", right, tip, length=2 * half, mass=1.2)
        loops.append(
            hc.Closure(
                (f"rising_{i}", at(half)), (f"falling_{i}", at(half)), axes="x y", name=f"pin_{i}"
            )
        )
        order += [f"rising_{i}", f"falling_{i}"]
    mech = sheet.mechanism(loops, ["shoe"], name=f"scissors_{stages}")
    joints = list(mech.model.names)[1:]

    def shape(y):
        up, down = y[0], np.pi - y[0]
        u, d = turn(up), turn(down)
        w, h = 2 * half * u[0], 2 * half * u[1]
        masses, angles = {"shoe": ((w, 0.0), (1.0, 0.0))}, {"shoe": w}
        for i in range(stages):
            masses[f"rising_{i}"], masses[f"falling_{i}"] = ((0.0, i * h), u), ((w, i * h), d)
            angles[f"rising_{i}"] = up if i == 0 else up - down
            angles[f"falling_{i}"] = down if i == 0 else down - up
        return Shape([angles[name] for name in joints], sheet.planar(**masses))

    singular = (lambda y: np.sin(2.0 * y)) if stages > 1 else (lambda y: np.cos(y))
    return _at_start(
        Passage(mech.name, mech, sheet, shape, np.array([0.7]), singular, tuple(order))
    )


def trammel(gravity=OBLIQUE):
    """Scott Russell's line and the elliptic trammel at once: a rod on two slides, and a crank that
    carries its middle. One row is redundant, another one from place to place; it is regular."""
    sheet, half = Sheet(gravity), 0.3
    sheet.add("across", 0, joint="PX", length=0.1, mass=2.0)
    sheet.add("rod", "across", length=2 * half)
    sheet.add("up", 0, joint="PY", length=0.1, mass=1.5)
    sheet.add("crank", 0, length=half)
    loops = [
        hc.Closure(("rod", at(2 * half)), "up", axes="x y", name="end"),
        hc.Closure(("rod", at(half)), ("crank", at(half)), axes="x y", name="middle"),
    ]
    mech = sheet.mechanism(loops, ["crank"], name="trammel")

    def shape(y):
        u, zero = turn(y[0]), (0.0, 0.0)
        d = turn(np.pi - y[0])
        w, h = 2 * half * u[0], 2 * half * u[1]
        masses = sheet.planar(
            across=((w, 0.0), (1.0, 0.0)),
            rod=((w, 0.0), d),
            up=((0.0, h), (1.0, 0.0)),
            crank=(zero, u),
        )
        return Shape([w, np.pi - y[0], h, y[0]], masses)

    order = ("across", "rod", "up", "crank")
    return _at_start(Passage("trammel", mech, sheet, shape, np.array([0.7]), _no, order))


def geared_slider(gravity=OBLIQUE):
    """Slider-crank of equal bars with a gear between crank and rod (Cardan's circles): regular
    where the loop alone is singular."""
    sheet, half = Sheet(gravity), 0.3
    sheet.add("crank", 0, length=half)
    sheet.add("rod", "crank", at(half), length=half)
    sheet.add("slider", 0, joint="PX", length=0.1, mass=2.0)
    loops = [
        hc.Closure(("rod", at(half)), "slider", axes="x y", name="pin"),
        hc.Coupling({"rod": 1.0, "crank": 2.0}, name="gear"),
    ]
    mech = sheet.mechanism(loops, ["crank"], name="geared_slider")

    def shape(y):
        u, d = turn(y[0]), turn(-y[0])
        slider = 2 * half * u[0]
        masses = sheet.planar(
            crank=((0.0, 0.0), u),
            rod=(along((0.0, 0.0), u, half), d),
            slider=((slider, 0.0), (1.0, 0.0)),
        )
        return Shape([y[0], -2.0 * y[0], slider], masses)

    order = ("crank", "rod", "slider")
    return _at_start(Passage("geared_slider", mech, sheet, shape, np.array([0.7]), _no, order))


def pantograph(gravity=OBLIQUE):
    """Two motions; its parallelogram gets flat where both sides point one way."""
    sheet, side, other = Sheet(gravity), 0.25, 0.3
    sheet.add("long", 0, length=2 * side)
    sheet.add("arm", "long", at(2 * side), length=2 * other)
    sheet.add("inner", "long", at(side), length=other)
    sheet.add("outer", "inner", at(other), length=side)
    loop = hc.Closure(("outer", at(side)), ("arm", at(other)), axes="x y", name="pin")
    mech = sheet.mechanism([loop], ["long", "arm"], name="pantograph")

    def shape(y):
        u, d, zero = turn(y[0]), turn(y[1]), (0.0, 0.0)
        half = along(zero, u, side)
        masses = sheet.planar(
            long=(zero, u), arm=(along(zero, u, 2 * side), d), inner=(half, d),
            outer=(along(half, d, other), u),
        )  # fmt: skip
        bend = y[1] - y[0]
        return Shape([y[0], bend, bend, -bend], masses)

    singular = lambda y: np.sin(y[1:2] - y[:1])  # noqa: E731
    return _at_start(
        Passage(
            "pantograph",
            mech,
            sheet,
            shape,
            np.array([1.3, 0.5]),
            singular,
            ("long", "arm", "inner", "outer"),
        )
    )


def carried(arms=1, gravity=OBLIQUE, branch=_parallel, name="carried", eps=0.0):
    """A parallelogram, or a crossed one, on an arm of hinges; or one that is so nearly."""
    sheet, (a, g), length = Sheet(gravity), (0.3, 0.5), 0.35
    parent, order = 0, []
    for i in range(arms):
        sheet.add(f"arm_{i}", parent, at() if i == 0 else at(length), length=length, mass=2.0)
        parent = f"arm_{i}"
        order.append(parent)
    sheet.add("crank", parent, at(0.05, 0.1), length=a)
    sheet.add("coupler", "crank", at(a), length=g, mass=0.8)
    sheet.add("rocker", parent, at(0.05 + g, 0.1), length=a, mass=0.7)
    loop = hc.Closure(("coupler", at(g)), ("rocker", at(a + eps)), axes="x y", name="pin")
    mech = sheet.mechanism([loop], [*order, "crank"], name=f"{name}_{arms}")
    joints = list(mech.model.names)[1:]

    def shape(y):
        o, absolute, where, angles = (0.0, 0.0), 0.0, {}, {}
        for i in range(arms):
            absolute = absolute + y[i]
            u = turn(absolute)
            where[f"arm_{i}"], angles[f"arm_{i}"] = (o, u), y[i]
            last, o = o, along(o, u, length)
        theta, beta, phi = branch(y[-1], a, g, a + eps, g)
        foot = along(last, u, 0.05, 0.1)
        crank = turn(absolute + theta)
        where["crank"] = (foot, crank)
        where["coupler"] = (along(foot, crank, a), turn(absolute + beta))
        where["rocker"] = (along(last, u, 0.05 + g, 0.1), turn(absolute + phi))
        angles |= {"crank": theta, "coupler": beta - theta, "rocker": phi}
        return Shape([angles[n] for n in joints], sheet.planar(**where))

    start = np.array([*[0.4, -0.6, 0.3][:arms], 0.7])
    singular = _no if eps else lambda y: np.sin(y[-1:])
    return _at_start(
        Passage(
            mech.name, mech, sheet, shape, start, singular, (*order, "crank", "coupler", "rocker")
        )
    )


def pair(gravity=OBLIQUE):
    """Two parallelograms that know nothing of each other, in one mechanism."""
    sheet, sizes = Sheet(gravity), ((0.3, 0.5), (0.25, 0.4))
    loops, order = [], []
    for i, (a, g) in enumerate(sizes):
        sheet.add(f"crank_{i}", 0, at(2.0 * i), length=a)
        sheet.add(f"coupler_{i}", f"crank_{i}", at(a), length=g, mass=2.0)
        sheet.add(f"rocker_{i}", 0, at(2.0 * i + g), length=a, mass=1.5)
        ends = (f"coupler_{i}", at(g)), (f"rocker_{i}", at(a))
        loops.append(hc.Closure(*ends, axes="x y", name=f"pin_{i}"))
        order += [f"crank_{i}", f"coupler_{i}", f"rocker_{i}"]
    mech = sheet.mechanism(loops, ["crank_0", "crank_1"], name="pair")
    joints = list(mech.model.names)[1:]

    def shape(y):
        where, angles = {}, {}
        for i, (a, g) in enumerate(sizes):
            u, o = turn(y[i]), (2.0 * i, 0.0)
            where[f"crank_{i}"] = (o, u)
            where[f"coupler_{i}"] = (along(o, u, a), (1.0, 0.0))
            where[f"rocker_{i}"] = ((2.0 * i + g, 0.0), u)
            angles |= {f"crank_{i}": y[i], f"coupler_{i}": -y[i], f"rocker_{i}": y[i]}
        return Shape([angles[n] for n in joints], sheet.planar(**where))

    return _at_start(
        Passage("pair", mech, sheet, shape, np.array([0.7, 0.9]), np.sin, tuple(order))
    )


def nearly_carried(eps):
    """A parallelogram with a longer rocker on an arm."""
    branch = lambda y, *bars: _by_crank(y, *bars, 1.0)  # noqa: E731
    return carried(1, branch=branch, name=f"nearly_carried_{eps:g}", eps=eps)


SWING, PULSE = 0.6, 4.0


def swung(q, t):
    """The base of `timed` swings."""
    return [q[0] - SWING * np.sin(PULSE * t)]


def swung_jacobian(q, t):
    return [[1.0, 0.0, 0.0, 0.0]]


def swung_drift(q, v, t):
    return [SWING * PULSE**2 * np.sin(PULSE * t)]


def swung_rate(q, t):
    return [-SWING * PULSE * np.cos(PULSE * t)]


def timed(gravity=OBLIQUE):
    """A parallelogram on a base whose angle is given as a function of time."""
    sheet, (a, g) = Sheet(gravity), (0.3, 0.5)
    sheet.add("base", 0, length=0.3)
    sheet.add("crank", "base", at(0.05, 0.1), length=a)
    sheet.add("coupler", "crank", at(a), length=g, mass=0.8)
    sheet.add("rocker", "base", at(0.05 + g, 0.1), length=a, mass=0.7)
    names = ("base", "crank", "coupler", "rocker")
    assert list(sheet.model.names)[1:] == list(names)
    loops = [
        hc.Closure(("coupler", at(g)), ("rocker", at(a)), axes="x y", name="pin"),
        hc.Custom(swung, swung_jacobian, swung_drift, rate_t=swung_rate, time=True, name="swing"),
    ]
    mech = sheet.mechanism(loops, ["crank"], name="timed")

    def shape(y):
        zero = (0.0, 0.0)
        base = SWING * sin(PULSE * y[1])
        u, crank = turn(base), turn(base + y[0])
        foot = along(zero, u, 0.05, 0.1)
        masses = sheet.planar(
            base=(zero, u), crank=(foot, crank), coupler=(along(foot, crank, a), u),
            rocker=(along(zero, u, 0.05 + g, 0.1), crank),
        )  # fmt: skip
        return Shape([base, y[0], -y[0], y[0]], masses)

    return _at_start(
        Passage("timed", mech, sheet, shape, np.array([0.7, 0.0]), _sine, names, timed=True)
    )


def wheels(gravity=OBLIQUE):
    """A parallelogram of continuous joints on a continuous base."""
    sheet, (a, g) = Sheet(gravity), (0.3, 0.5)
    sheet.add("base", 0, joint="RUBZ", length=0.3)
    sheet.add("crank", "base", at(0.05, 0.1), joint="RUBZ", length=a)
    sheet.add("coupler", "crank", at(a), joint="RUBZ", length=g, mass=0.8)
    sheet.add("rocker", "base", at(0.05 + g, 0.1), joint="RUBZ", length=a, mass=0.7)
    names = ("base", "crank", "coupler", "rocker")
    loop = hc.Closure(("coupler", at(g)), ("rocker", at(a)), axes="x y", name="pin")
    mech = sheet.mechanism([loop], ["base", "crank"], name="wheels")

    def shape(y):
        u, crank, zero = turn(y[0]), turn(y[0] + y[1]), (0.0, 0.0)
        foot = along(zero, u, 0.05, 0.1)
        masses = sheet.planar(
            base=(zero, u), crank=(foot, crank), coupler=(along(foot, crank, a), u),
            rocker=(along(zero, u, 0.05 + g, 0.1), crank),
        )  # fmt: skip
        return Shape([("wheel", x) for x in (y[0], y[1], -y[1], y[1])], masses)

    return _at_start(
        Passage("wheels", mech, sheet, shape, np.array([0.3, 0.7]), lambda y: np.sin(y[1:]), names)
    )


def planar_3rrr(gravity=OBLIQUE):
    """A platform on three arms of two hinges: three motions, regular wherever no arm is straight.

    Where its three rods meet in a point the motors at the feet cannot hold it; free, it does not
    notice.
    """
    sheet, upper, rod = Sheet(gravity), 0.35, 0.4
    thirds = 2.0 * np.pi / 3.0 * np.arange(3) + 0.2
    feet = 0.5 * np.column_stack([np.cos(thirds), np.sin(thirds)])
    corners = 0.15 * np.column_stack([np.cos(thirds + 0.4), np.sin(thirds + 0.4)])
    for i in range(3):
        sheet.add(f"arm_{i}", 0, at(*feet[i]), length=upper)
        sheet.add(f"rod_{i}", f"arm_{i}", at(upper), length=rod)
    sheet.add("platform", "rod_0", at(rod), length=0.2, mass=2.0)
    loops = [
        hc.Closure(
            ("platform", at(*(corners[i] - corners[0]))), (f"rod_{i}", at(rod)), axes="x y",
            name=f"corner_{i}",
        )
        for i in (1, 2)
    ]  # fmt: skip
    mech = sheet.mechanism(loops, [f"arm_{i}" for i in range(3)], name="planar_3rrr")
    joints = list(mech.model.names)[1:]

    def shape(y):
        u = turn(y[2])
        where, angles = {}, {}
        for i in range(3):
            tip = along((y[0], y[1]), u, *corners[i])
            elbow = left(feet[i], tip, upper, rod)
            alpha, beta = angle(feet[i], elbow), angle(elbow, tip)
            where[f"arm_{i}"], where[f"rod_{i}"] = (feet[i], turn(alpha)), (elbow, turn(beta))
            angles |= {f"arm_{i}": alpha, f"rod_{i}": beta - alpha}
            if i == 0:
                where["platform"], angles["platform"] = (tip, u), y[2] - beta
        return Shape([angles[n] for n in joints], sheet.planar(**where))

    order = ("arm_0", "rod_0", "platform", "arm_1", "rod_1", "arm_2", "rod_2")
    return _at_start(
        Passage("planar_3rrr", mech, sheet, shape, np.array([0.03, -0.02, 0.1]), _no, order)
    )


def rods_meet(passage, y):
    """Of `planar_3rrr`: zero where its motors lose the platform, by the lines of its rods."""
    zero = np.zeros(3)
    found = passage.shape(variables(np.asarray(y, float), zero, 3))
    thirds = 2.0 * np.pi / 3.0 * np.arange(3) + 0.2
    angles = dict(zip(list(passage.mech.model.names)[1:], found.joints, strict=True))
    lines = []
    for i in range(3):
        alpha = angles[f"arm_{i}"].a[-1]
        beta = alpha + angles[f"rod_{i}"].a[-1]
        p = 0.5 * np.array([np.cos(thirds[i]), np.sin(thirds[i])])
        p = p + 0.35 * np.array([np.cos(alpha), np.sin(alpha)])
        e = np.array([np.cos(beta), np.sin(beta)])
        lines.append([e[0], e[1], (p[0] - y[0]) * e[1] - (p[1] - y[1]) * e[0]])
    return float(np.linalg.det(lines))


# ----------------------------------------------------------------------------------------- in space

TILT = pin.rpy.rpyToMatrix(0.4, -0.7, 0.3)
FALL = (2.1, -6.3, -5.2)


def tilted(gravity=FALL):
    """A parallelogram in an oblique plane, closed by a hinge: five rows, of which two count."""
    sheet, (a, g) = Sheet(TILT @ np.array(gravity)), (0.3, 0.5)
    o = np.array([0.1, 0.2, -0.3])
    sheet.add("crank", 0, pin.SE3(TILT, o), length=a)
    sheet.add("coupler", "crank", at(a, 0.0, 0.05), length=g, mass=2.0)
    sheet.add("rocker", 0, pin.SE3(TILT, o + TILT @ [g, 0.0, 0.0]), length=a, mass=1.5)
    loop = hc.Closure(
        ("coupler", at(g)), ("rocker", at(a, 0.0, 0.05)), joint="revolute", name="pin"
    )
    mech = sheet.mechanism([loop], ["crank"], name="tilted")

    def shape(y):
        whole = constant(TILT, y[0])
        R = product(whole, about(2, y[0]))
        tip = product(R, constant([[a], [0.0], [0.05]], y[0]))
        masses = sheet.spatial(
            crank=(o[:, None, None], R), coupler=(tip + o[:, None, None], whole),
            rocker=((o + TILT @ [g, 0.0, 0.0])[:, None, None], R),
        )  # fmt: skip
        return Shape([y[0], -y[0], y[0]], masses)

    return _at_start(
        Passage(
            "tilted",
            mech,
            sheet,
            shape,
            np.array([0.7]),
            _sine,
            ("crank", "coupler", "rocker"),
            planar=False,
        )
    )


def ball(gravity=FALL, hinged=False):
    """A parallelogram on a body that turns about a ball joint."""
    sheet, (a, g) = Sheet(gravity), (0.3, 0.5)
    sheet.add("base", 0, joint="Spherical", length=0.3, mass=3.0)
    sheet.add("crank", "base", at(0.05, 0.1), length=a)
    sheet.add("coupler", "crank", at(a), length=g, mass=0.8)
    sheet.add("rocker", "base", at(0.05 + g, 0.1), length=a, mass=0.7)
    kind = {"joint": "revolute"} if hinged else {"axes": "x y"}
    loop = hc.Closure(("coupler", at(g)), ("rocker", at(a)), name="pin", **kind)
    mech = sheet.mechanism([loop], ["crank"], name="ball")
    names = ("base", "crank", "coupler", "rocker")

    def shape(y):
        base = product(about(2, y[0]), about(1, y[1]), about(0, y[2]))
        R = product(base, about(2, y[3]))
        foot = product(base, constant([[0.05], [0.1], [0.0]], y[0]))
        tip = foot + product(R, constant([[a], [0.0], [0.0]], y[0]))
        other = product(base, constant([[0.05 + g], [0.1], [0.0]], y[0]))
        masses = sheet.spatial(
            base=(None, base), crank=(foot, R), coupler=(tip, base), rocker=(other, R)
        )
        return Shape([("ball", base), y[3], -y[3], y[3]], masses)

    return _at_start(
        Passage(
            "ball",
            mech,
            sheet,
            shape,
            np.array([0.3, -0.2, 0.4, 0.7]),
            lambda y: np.sin(y[3:]),
            names,
            planar=False,
        )
    )


def _ring(name, links, relation, start, singular, gravity):
    """A ring of four hinges, Rz(angle) Tx(a) Rx(alpha) for each link; `relation(y)`: the jets of
    the first three angles."""
    sheet = Sheet(gravity)
    ends = [at(a, R=pin.rpy.rpyToMatrix(alpha, 0.0, 0.0)) for a, alpha in links]
    for i in range(3):
        place = at() if i == 0 else ends[i - 1]
        sheet.add(f"link_{i}", i and f"link_{i - 1}", place, length=0.3, mass=1.0 + 0.3 * i)
    ground = ends[3].inverse()
    loop = hc.Closure(("universe", ground), ("link_2", ends[2]), joint="revolute", name="hinge")
    mech = sheet.mechanism([loop], ["link_0"], name=name)
    order = tuple(f"link_{i}" for i in range(3))

    def shape(y):
        angles = relation(y[0])
        R, o, where = None, None, {}
        for i, x in enumerate(angles):
            R = about(2, x) if R is None else product(R, about(2, x))
            where[f"link_{i}"] = (o, R)
            step = product(R, constant(ends[i].translation[:, None], y[0]))
            o = step if o is None else o + step
            R = product(R, constant(ends[i].rotation, y[0]))
        return Shape(angles, sheet.spatial(**where))

    return _at_start(
        Passage(name, mech, sheet, shape, np.array([start]), singular, order, planar=False)
    )


def _half(y, k):
    """The angle with tan(x/2) = k tan(y/2), smooth in y."""
    s, c = sin(0.5 * y), cos(0.5 * y)
    return y + 2.0 * atan2((k - 1.0) * s * c, c * c + k * (s * s))


def bennett(gravity=FALL):
    """Bennett's loop, all around: five rows, of which two count, always."""
    a, b, alpha = 0.4, 0.6, 0.5
    beta = np.arcsin(b / a * np.sin(alpha))
    K = np.sin((beta + alpha) / 2.0) / np.sin((beta - alpha) / 2.0)

    def relation(y):
        # tan(y/2) tan(x/2) = K: half a turn ahead of one that runs the other way
        return [y, np.pi + _half(-1.0 * y, 1.0 / K), -1.0 * y]

    return _ring("bennett", [(a, alpha), (b, beta)] * 2, relation, 1.2, _no, gravity)


def sheet_of_paper(gravity=FALL, other=False):
    """Four creases that meet in a point, opposite sectors pi together: it lies flat at 0 and pi.

    There two motions part: either pair of opposite creases bends the same way.
    """
    one, two = 1.1, 0.8
    links = [(0.0, one), (0.0, two), (0.0, np.pi - one), (0.0, np.pi - two)]
    if other:
        k, sign = np.sin(0.5 * (one + two)) / np.sin(0.5 * (one - two)), -1.0
    else:
        k, sign = -np.cos(0.5 * (one + two)) / np.cos(0.5 * (one - two)), 1.0

    def relation(y):
        return [y, _half(y, k) if k > 0.0 else -1.0 * _half(y, -k), sign * y]

    name = "other_sheet_of_paper" if other else "sheet_of_paper"
    return _ring(name, links, relation, 0.7, np.sin, gravity)


# ------------------------------------------------------------------------------------------ tables

WEIGHTLESS = (0.0, 0.0, 0.0)
STEEP = (-9.3, 2.1, 0.0)
"""Gravity nearly along the ground."""

CROSSING = {
    "parallelogram": parallelogram,
    "parallelogram_hinged": lambda: parallelogram(STEEP, "revolute"),
    "antiparallelogram": antiparallelogram,
    "long_antiparallelogram": long_antiparallelogram,
    "rhombus": rhombus,
    "kite": kite,
    "geared_kite": geared_kite,
    "neutral": neutral,
    "weightless_neutral": lambda: neutral(WEIGHTLESS),
    "three_bars": three_bars,
    "three_bars_hinged": lambda: three_bars(STEEP, "revolute"),
    "watt": watt,
    "scissors_1": lambda: scissors(1),
    "scissors_2": scissors,
    "scissors_3": lambda: scissors(3, STEEP),
    "pantograph": pantograph,
    "carried_1": carried,
    "carried_2": lambda: carried(2),
    "crossed_1": lambda: carried(1, branch=_crossed, name="crossed"),
    "weightless_crossed": lambda: carried(1, WEIGHTLESS, _crossed, "crossed"),
    "pair": pair,
    "weightless_pair": lambda: pair(WEIGHTLESS),
    "timed": timed,
    "wheels": wheels,
    "tilted": tilted,
    "ball": ball,
    "ball_hinged": lambda: ball(hinged=True),
    "sheet_of_paper": sheet_of_paper,
    "other_sheet_of_paper": lambda: sheet_of_paper(other=True),
}
"""Mechanisms that pass singular configurations."""

REGULAR = {
    "geared_parallelogram": geared_parallelogram,
    "geared_slider": geared_slider,
    "trammel": trammel,
    "weightless_trammel": lambda: trammel(WEIGHTLESS),
    "planar_3rrr": lambda: planar_3rrr(WEIGHTLESS),
    "bennett": bennett,
}
"""Mechanisms that never do."""

NEAR = {
    f"{make.__name__}_{eps:g}": lambda make=make, eps=eps: make(eps)
    for make, sizes in (
        (nearly, (1e-2, -1e-2, 1e-3, -1e-3, 1e-4, 1e-5, -1e-5, 1e-6, 1e-7, -1e-7)),
        (nearly_neutral, (1e-2, 1e-4, 1e-6, 1e-7)),
        (nearly_kite, (1e-2, 1e-3, 1e-4)),
        (nearly_carried, (1e-2, 1e-4, 1e-6)),
    )
    for eps in sizes
}
"""Mechanisms that come close to one, with bars longer by this."""

SLOWLY = {
    make.__name__: partial(make, gravity=WEIGHTLESS)
    for make in (
        parallelogram, antiparallelogram, kite, neutral, three_bars, watt, scissors, tilted,
        sheet_of_paper,
    )
}  # fmt: skip
"""Without gravity, to pass at any rate."""


@cache
def passage(name):
    """One of all, by its name."""
    return (CROSSING | REGULAR | NEAR)[name]()


def random_start(p, rng, speed=5.0):
    """y and yd of a motion that is likely to cross."""
    while True:
        y = np.array(p.start[: p.free])
        if p.name == "planar_3rrr":
            y[2] = rng.uniform(1.4, 1.8)
            return y, np.array([*rng.uniform(-0.05, 0.05, 2), rng.uniform(1.0, 2.0)])
        if p.name == "ball":
            y = y + rng.uniform(-0.3, 0.3, 4)
            yd = np.append(rng.uniform(-0.7, 0.7, 3), speed * rng.choice([-1.0, 1.0]))
        else:
            y = rng.uniform(-np.pi, np.pi, p.free)
            yd = speed * rng.uniform(0.6, 1.3, p.free) * rng.choice([-1.0, 1.0], p.free)
        if np.abs(np.atleast_1d(p.singular(y))).min() > 0.15:
            return y, yd


def duration_of(p):
    """s, of a motion with some crossings."""
    return 0.4 if p.name == "planar_3rrr" else 1.0 if p.free > 2 else 1.5


def singular_angles(p):
    """Of one degree of freedom: y in (-pi, pi] at which the rows get dependent."""
    ys = np.linspace(-3.0, 3.3, 64) + 1e-3
    f = lambda y: float(np.atleast_1d(p.singular(np.array([y])))[0])  # noqa: E731
    values = [f(y) for y in ys]
    pairs = zip(range(63), values[:-1], values[1:], strict=True)
    return [brentq(f, ys[i], ys[i + 1], xtol=1e-15) for i, a, b in pairs if a * b < 0.0]


def from_below(p, y1, away=0.6):
    """The y at this distance from y1 from where gravity holds back a motion to y1."""
    potential = lambda y: p.energy(np.array([y]), np.zeros(1))[1]  # noqa: E731
    return min((y1 - away, y1 + away), key=potential)
