"""Mechanisms for the tests: each is small, and each has something that breaks naive code."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.constraints.kinds import slot
from holoctl.constraints.wrench import wrench_rows
from holoctl.tree.kinematics import resolve_frame


def _inertia(rng, mass=1.0):
    """A generic body: no symmetry, centre of mass off the joint."""
    A = rng.normal(size=(3, 3))
    second = 0.01 * (A @ A.T + 3.0 * np.eye(3))  # moments of the mass itself: any body has some
    return pin.Inertia(mass, rng.normal(size=3) * 0.1, np.trace(second) * np.eye(3) - second)


def _bar(length, mass=1.0):
    """A slender bar along x with a little thickness, from the joint to x = length."""
    return pin.Inertia(
        mass,
        np.array([length / 2, 0, 0]),
        mass * np.diag([1e-3, length**2 / 12 + 1e-3, length**2 / 12]),
    )


def _at(x=0.0, y=0.0, z=0.0, R=None):
    return pin.SE3(np.eye(3) if R is None else R, np.array([x, y, z], dtype=float))


def _add(model, parent, joint, placement, name, inertia):
    parent = model.getJointId(parent) if isinstance(parent, str) else parent
    j = model.addJoint(parent, joint, placement, name)
    model.addJointFrame(j)
    model.appendBodyToJoint(j, inertia, pin.SE3.Identity())
    return j


def _vertical(model):
    """Gravity in the plane of the planar mechanisms (they move in x-y)."""
    model.gravity.linear = np.array([0.0, -9.81, 0.0])
    return model


def four_bar(closure="x y", lengths=(0.2, 0.5, 0.4, 0.5)):
    """Crank, coupler, rocker; the crank is driven."""
    crank, coupler, rocker, ground = lengths
    m = _vertical(pin.Model())
    _add(m, 0, pin.JointModelRZ(), _at(), "crank", _bar(crank))
    _add(m, "crank", pin.JointModelRZ(), _at(crank), "coupler", _bar(coupler, 2.0))
    _add(m, 0, pin.JointModelRZ(), _at(ground), "rocker", _bar(rocker, 1.5))
    kind = {"joint": closure} if closure[0] not in "xyz" or len(closure) > 6 else {"axes": closure}
    loop = hc.Closure(("coupler", _at(coupler)), ("rocker", _at(rocker)), name="pin", **kind)
    return hc.Mechanism(m, [loop], ["crank"], reference=[1.0, -0.5, 1.4], name="four_bar")


def five_bar(closure="x y"):
    """Two driven arms that meet in a tip."""
    m = _vertical(pin.Model())
    _add(m, 0, pin.JointModelRZ(), _at(-0.1), "left", _bar(0.3))
    _add(m, "left", pin.JointModelRZ(), _at(0.3), "left_rod", _bar(0.4, 0.7))
    _add(m, 0, pin.JointModelRZ(), _at(0.1), "right", _bar(0.3, 1.2))
    _add(m, "right", pin.JointModelRZ(), _at(0.3), "right_rod", _bar(0.4, 0.8))
    kind = {"axes": closure} if closure == "x y" else {"joint": closure}
    loop = hc.Closure(("left_rod", _at(0.4)), ("right_rod", _at(0.4)), name="tip", **kind)
    return hc.Mechanism(
        m, [loop], ["left", "right"], reference=[2.2, -1.2, 0.9, 1.2], name="five_bar"
    )


def spatial_arms(seed=3):
    """Two spatial arms of three skew hinges, tips joined by a point; the first is driven."""
    rng = np.random.default_rng(seed)
    m = pin.Model()
    for arm, x in (("a", -0.3), ("b", 0.3)):
        parent = 0
        for i in range(3):
            R = pin.exp3(rng.normal(size=3))
            place = _at(x, 0, 0.1, R) if i == 0 else _at(0.35, 0.05 * i, 0.02, R)
            parent = _add(m, parent, pin.JointModelRZ(), place, f"{arm}{i + 1}", _inertia(rng))
    loop = hc.Closure(("a3", _at(0.3)), ("b3", _at(0.25)), joint="spherical", name="tips")
    return hc.Mechanism(m, [loop], ["a1", "a2", "a3"], name="spatial_arms")


def floating_leg():
    """A floating base with a leg whose knee is driven through a four-bar; a continuous wheel
    and a spherical head make nq differ from nv three times."""
    rng = np.random.default_rng(11)
    m = pin.Model()
    _add(m, 0, pin.JointModelFreeFlyer(), _at(), "base", _inertia(rng, 8.0))
    _add(m, "base", pin.JointModelRY(), _at(0, 0.1, -0.1), "hip", _inertia(rng, 2.0))
    _add(m, "hip", pin.JointModelRY(), _at(0.05, 0, -0.05), "motor_crank", _inertia(rng, 0.4))
    _add(m, "motor_crank", pin.JointModelRY(), _at(0.06), "push_rod", _inertia(rng, 0.3))
    _add(m, "hip", pin.JointModelRY(), _at(0, 0, -0.35), "knee", _inertia(rng, 1.0))
    _add(m, "knee", pin.JointModelRUBY(), _at(0, 0, -0.3), "wheel", _inertia(rng, 0.5))
    _add(m, "base", pin.JointModelSpherical(), _at(0, 0, 0.3), "head", _inertia(rng, 0.7))
    loop = hc.Closure(
        ("push_rod", _at(0, 0, -0.3)), ("knee", _at(0.06)), axes="x z", name="knee_bar"
    )
    reference = pin.neutral(m)
    reference[:3] = 0.1, -0.2, 0.9
    return hc.Mechanism(
        m, [loop], ["hip", "motor_crank", "wheel"], reference=reference, name="floating_leg"
    )


def geared_slider():
    """A slider-crank with a wheel geared to the crank and a rack geared to the wheel."""
    m = _vertical(pin.Model())
    _add(m, 0, pin.JointModelRZ(), _at(), "crank", _bar(0.2))
    _add(m, "crank", pin.JointModelRZ(), _at(0.2), "rod", _bar(0.5))
    _add(m, 0, pin.JointModelPX(), _at(), "slider", _bar(0.1, 2.0))
    _add(m, 0, pin.JointModelRZ(), _at(0, 0.3), "wheel", _bar(0.1, 0.5))
    _add(m, 0, pin.JointModelPX(), _at(0, 0.4), "rack", _bar(0.1, 0.5))
    return hc.Mechanism(
        m,
        [
            hc.Closure(("rod", _at(0.5)), "slider", axes="x y", name="pin"),
            hc.Coupling({"wheel": 1.0, "crank": -2.0}, offset=0.1, name="gear"),
            hc.Coupling({"rack": 1.0, "wheel": -0.05}, name="rack"),
        ],
        ["crank"],
        reference=[1.0, -1.4, 0.6, 2.0, 0.1],
        name="geared_slider",
    )


def universal_rods(seed=8):
    """A plate on two rods with universal joints (composite joints, axes that move within the
    joint), closed by ball joints; gravity moves it, three coordinates are driven."""
    rng = np.random.default_rng(seed)
    m = pin.Model()

    def universal():
        joint = pin.JointModelComposite(2)
        joint.addJoint(pin.JointModelRX())
        joint.addJoint(pin.JointModelRY())
        return joint

    _add(m, 0, pin.JointModelRZ(), _at(0, 0, 0), "turntable", _inertia(rng, 2.0))
    _add(m, "turntable", universal(), _at(0.3, 0, 0), "rod_1", _inertia(rng))
    _add(m, "rod_1", pin.JointModelSpherical(), _at(0, 0, 0.5), "plate", _inertia(rng))
    _add(m, "turntable", universal(), _at(-0.3, 0, 0), "rod_2", _inertia(rng))
    loop = hc.Closure(
        ("plate", _at(-0.6)), ("rod_2", _at(0, 0, 0.5)), joint="spherical", name="ball"
    )
    return hc.Mechanism(m, [loop], ["turntable", "rod_1[0]", "rod_1[1]"], name="universal_rods")


def hung_plate():
    """A plate that hangs on five rods from the world; one motion is left, a driven one."""
    rng = np.random.default_rng(21)
    m = pin.Model()
    _add(m, 0, pin.JointModelFreeFlyer(), _at(), "plate", _inertia(rng, 3.0))
    corners = [(0.3, 0.2, 0.0), (-0.3, 0.25, 0.02), (-0.28, -0.2, 0.0), (0.3, -0.22, 0.05)]
    corners.append((0.0, 0.3, 0.0))
    hooks = [
        (0.5, 0.4, 1.0),
        (-0.4, 0.5, 1.1),
        (-0.5, -0.2, 0.9),
        (0.2, -0.5, 1.0),
        (0.5, 0.6, 0.1),
    ]
    rods = [
        hc.Rod(("universe", _at(*hook)), ("plate", _at(*corner)), name=f"rod {i}")
        for i, (hook, corner) in enumerate(zip(hooks, corners, strict=True))
    ]
    return hc.Mechanism(m, rods, ["plate[0]"], name="hung_plate")


def standing_leg():
    """A leg on the ground with a heel and a toe: a point that sticks, and one row beside it."""
    rng = np.random.default_rng(31)
    m = pin.Model()
    _add(m, 0, pin.JointModelFreeFlyer(), _at(), "trunk", _inertia(rng, 9.0))
    _add(m, "trunk", pin.JointModelRX(), _at(0, 0.1, -0.1), "abduction", _inertia(rng, 1.0))
    _add(m, "abduction", pin.JointModelRY(), _at(0, 0, -0.05), "hip", _inertia(rng, 2.0))
    _add(m, "hip", pin.JointModelRY(), _at(0, 0, -0.4), "knee", _inertia(rng, 1.5))
    _add(m, "knee", pin.JointModelRY(), _at(0, 0, -0.4), "ankle", _inertia(rng, 0.5))
    reference = pin.neutral(m)
    reference[:3] = 0.0, 0.0, 0.9
    reference[7:] = 0.1, -0.4, 0.8, -0.4
    heel = hc.Contact(("ankle", _at(-0.06, 0, -0.05)), name="heel")
    toe = hc.Contact(
        ("ankle", _at(0.12, 0, -0.05)), normal=(0.0, 0.1, 2.0), tangents=[(0, 1, 0)], name="toe"
    )
    return hc.Mechanism(
        m, [heel, toe], ["abduction", "hip", "knee", "ankle"], reference=reference,
        name="standing_leg",
    )  # fmt: skip


def _sine(q):
    return [q[1] - 2.0 * np.sin(q[0])]


def _sine_jacobian(q):
    return [[-2.0 * np.cos(q[0]), 1.0]]


def _sine_drift(q, v):
    return [2.0 * np.sin(q[0]) * v[0] ** 2]


def sine_gear():
    """A two-link arm whose elbow turns with the sine of the shoulder: callbacks for all."""
    m = _vertical(pin.Model())
    _add(m, 0, pin.JointModelRZ(), _at(), "shoulder", _bar(1.0))
    _add(m, "shoulder", pin.JointModelRZ(), _at(1.0), "elbow", _bar(1.0))
    gear = hc.Custom(_sine, _sine_jacobian, _sine_drift, name="sine")
    return hc.Mechanism(m, [gear], ["shoulder"], reference=[0.3, 0.6], name="sine_gear")


def _tip_height(q, t):
    a, b, c = q[0], q[0] + q[1], q[0] + q[1] + q[2]
    height = 0.4 * np.sin(a) + 0.4 * np.sin(b) + 0.2 * np.sin(c)
    return [height - 0.5 - 0.05 * np.sin(3.0 * t)]


def timed_arm():
    """A three-link arm whose tip rides on a bench that goes up and down: phi(q, t), no more
    given than phi itself."""
    m = _vertical(pin.Model())
    _add(m, 0, pin.JointModelRZ(), _at(), "a", _bar(0.4))
    _add(m, "a", pin.JointModelRZ(), _at(0.4), "b", _bar(0.4))
    _add(m, "b", pin.JointModelRZ(), _at(0.4), "c", _bar(0.2))
    bench = hc.Custom(_tip_height, time=True, scale=1.0, name="bench")
    return hc.Mechanism(m, [bench], ["a", "b"], reference=[1.0, -0.8, 0.4], name="timed_arm")


def _sine_chart(model, q0, v0):
    q = np.array([q0[0], 2.0 * np.sin(q0[0])])
    G = np.array([1.0, 2.0 * np.cos(q0[0])])
    return q, G * v0[0], G, np.array([0.0, -2.0 * np.sin(q0[0]) * v0[0] ** 2])


def sine_chart():
    """The sine gear as an explicit chart."""
    base = sine_gear()
    chart = hc.GammaQ(_sine_chart, independent=["shoulder"])
    return hc.Mechanism(
        base.model, [chart], ["shoulder"], reference=base.reference, name="sine_chart"
    )


def _hinges(links, angles, name):
    """A ring of hinges in Denavit-Hartenberg's way: Rz(theta) Tx(a) Rx(alpha) for each link;
    the last hinge is the cut one, the last link the ground."""

    def across(a, alpha):
        return _at(a, R=pin.rpy.rpyToMatrix(alpha, 0.0, 0.0))

    rng = np.random.default_rng(17)
    m = pin.Model()
    place, parent = pin.SE3.Identity(), 0
    for i, link in enumerate(links[:-1]):
        parent = _add(m, parent, pin.JointModelRZ(), place, f"hinge_{i + 1}", _inertia(rng))
        place = across(*link)
    ground = across(*links[-1]).inverse()
    loop = hc.Closure(
        ("universe", ground), (f"hinge_{len(links) - 1}", place), joint="revolute", name="hinge"
    )
    return hc.Mechanism(m, [loop], ["hinge_1"], reference=angles, name=name)


def bennett():
    """Four hinges in space that move where counting says -2: sin(alpha) / a = sin(beta) / b."""
    a, b, alpha = 0.4, 0.6, 0.5
    beta = np.arcsin(b / a * np.sin(alpha))
    K = np.sin((beta + alpha) / 2.0) / np.sin((beta - alpha) / 2.0)
    first = 1.2
    second = 2.0 * np.arctan(K / np.tan(first / 2.0))
    return _hinges(
        [(a, alpha), (b, beta), (a, alpha), (b, beta)], [first, second, -first], "bennett"
    )


def bricard():
    """Six hinges with threefold symmetry, twists of a right angle: one motion, counted 0."""
    first = 1.0
    second = np.arccos(-np.cos(first) / (1.0 + np.cos(first)))
    links = [(0.4, np.pi / 2 * (-1.0) ** i) for i in range(6)]
    return _hinges(links, [first, second, first, second, first], "bricard")


def third_bar():
    """A parallelogram with a third parallel bar: ten rows of which three count."""
    m = _vertical(pin.Model())
    for i, x in enumerate((0.0, 0.3, 0.6)):
        _add(m, 0, pin.JointModelRZ(), _at(x), f"bar_{i}", _bar(0.25, 1.0 + 0.2 * i))
        if i == 0:
            _add(m, "bar_0", pin.JointModelRZ(), _at(0.25), "coupler", _bar(0.6, 2.0))
    loops = [
        hc.Closure(("coupler", _at(0.3 * i)), (f"bar_{i}", _at(0.25)), joint="revolute")
        for i in (1, 2)
    ]
    return hc.Mechanism(m, loops, ["bar_0"], reference=[1.1, -1.1, 1.1, 1.1], name="third_bar")


def six_row_four_bar():
    """A four-bar whose pin is a joint of the tree, closed by a weld: six rows of rank three."""
    base = four_bar()
    m = base.model.copy()
    _add(m, "rocker", pin.JointModelRZ(), _at(0.4), "pin", _bar(0.05, 0.1))
    # the pin's frame turns to match the coupler's, so the weld leaves the four-bar's motion
    loop = hc.Closure(("coupler", _at(0.5)), "pin", joint="weld", name="weld")
    order = [list(m.names).index(n) for n in ("crank", "coupler", "rocker", "pin")]
    assert order == [1, 2, 3, 4]
    reference = np.append(base.reference, -0.9)
    return hc.Mechanism(m, [loop], ["crank"], reference=reference, name="six_row_four_bar")


def idle_rod():
    """Crank and rocker in different planes, tied by a rod that may spin about itself."""
    rng = np.random.default_rng(23)
    m = pin.Model()
    _add(m, 0, pin.JointModelRZ(), _at(), "crank", _inertia(rng))
    _add(m, "crank", pin.JointModelSpherical(), _at(0.2), "rod", _inertia(rng))
    _add(m, 0, pin.JointModelRX(), _at(0.6, 0.0, -0.2), "rocker", _inertia(rng))
    loop = hc.Closure(("rod", _at(0.7)), ("rocker", _at(0.0, 0.4, 0.0)), joint="spherical")
    reference = [0.4, 0.0, 0.0, 0.0, 1.0, 0.6]
    return hc.Mechanism(m, [loop], ["crank"], reference=reference, name="idle_rod")


def three_motors():
    """The five-bar with three motors on two motions."""
    base = five_bar()
    return hc.Mechanism(
        base.model, base.constraints, ["left", "right", "left_rod"], reference=base.reference,
        name="three_motors",
    )  # fmt: skip


def closed_chain(joint, free):
    """A serial arm with skew axes, every third one prismatic, whose end a joint ties to the
    world, closed by construction; two motions are left."""
    rng = np.random.default_rng(len(joint))
    n = 6 - free + 2
    m = pin.Model()
    parent = 0
    for i in range(n):
        kind = pin.JointModelPZ() if i % 3 == 2 else pin.JointModelRZ()
        place = _at(0.25, 0.05 * i, 0.03, pin.exp3(rng.normal(size=3)))
        parent = _add(m, parent, kind, place, f"j{i}", _inertia(rng))
    reference = 0.5 * rng.normal(size=n)
    data = m.createData()
    pin.forwardKinematics(m, data, reference)
    end = pin.SE3(pin.exp3(rng.normal(size=3)), 0.2 * rng.normal(size=3))
    a, b = ("universe", data.oMi[n] * end), (f"j{n - 1}", end)
    loop = hc.Closure(a, b, joint=joint, pitch=0.3 if joint == "screw" else None)
    return hc.Mechanism(m, [loop], ["j0", "j1"], reference=reference, name=f"{joint}_chain")


@dataclass(frozen=True)
class Slot:
    """A point of a moving body that stays in a slot of another one: its normal turns with that.

    A constraint of one's own that is made of the library's kinds of rows.
    """

    point: tuple[str, pin.SE3]
    groove: tuple[str, pin.SE3]
    name: str | None = None
    t_stab: float | None = None

    @property
    def default_name(self):
        return self.name or "slot"

    def bind(self, model, name, reference):
        a, b = (resolve_frame(model, frame, name) for frame in (self.point, self.groove))
        return wrench_rows(model, a, b, [slot("y", [0, 1, 0]), slot("z", [0, 0, 1])], name)


def slotted_arms():
    """Two spatial arms; the tip of one slides along a groove of the other."""
    rng = np.random.default_rng(21)
    m = pin.Model()
    for arm, x in (("a", -0.3), ("b", 0.3)):
        parent = 0
        for i in range(3):
            place = _at(x, 0, 0.1) if i == 0 else _at(0.3, 0.05, 0.02, pin.exp3(rng.normal(size=3)))
            parent = _add(m, parent, pin.JointModelRY(), place, f"{arm}{i + 1}", _inertia(rng))
    reference, data = 0.5 * rng.normal(size=m.nv), m.createData()
    pin.forwardKinematics(m, data, reference)
    a3, b3 = (m.getJointId(name) for name in ("a3", "b3"))
    tip = _at(0.2, 0.1, 0.05)
    groove = data.oMi[b3].actInv(data.oMi[a3] * tip)
    loop = Slot(("a3", tip), ("b3", groove))
    motors = ["a1", "a2", "b1", "b2"]
    return hc.Mechanism(m, [loop], motors, reference=reference, name="slotted_arms")


def welded_arms():
    """Two arms of six skew hinges with their ends welded, and a third of three that holds a point
    of the second: frames that all move, a weld beside a point."""
    rng = np.random.default_rng(4)
    m = pin.Model()
    for arm, x, n in (("a", -0.3, 6), ("b", 0.3, 6), ("c", 0.0, 3)):
        parent = 0
        for i in range(n):
            R = pin.exp3(rng.normal(size=3))
            place = _at(x, 0, 0.1, R) if i == 0 else _at(0.3, 0.05 * i, 0.02, R)
            parent = _add(m, parent, pin.JointModelRZ(), place, f"{arm}{i + 1}", _inertia(rng))
    reference, data = 0.5 * rng.normal(size=m.nv), m.createData()
    pin.forwardKinematics(m, data, reference)
    a6, b6, b4, c3 = (m.getJointId(name) for name in ("a6", "b6", "b4", "c3"))
    end = _at(0.2, 0.1, 0.05, pin.exp3(rng.normal(size=3)))
    point = _at(0.1, 0.0, 0.2, pin.exp3(rng.normal(size=3)))
    loops = [
        hc.Closure(
            ("a6", end), ("b6", data.oMi[b6].actInv(data.oMi[a6] * end)), joint="weld", name="ends"
        ),
        hc.Closure(
            ("c3", point), ("b4", data.oMi[b4].actInv(data.oMi[c3] * point)), joint="spherical",
            name="point",
        ),
    ]  # fmt: skip
    motors = [f"a{i}" for i in range(1, 7)]
    return hc.Mechanism(m, loops, motors, reference=reference, name="welded_arms")


def held_foot():
    """A trunk on one leg of six hinges whose foot is held by three contacts with six rows in all,
    3, 2 and 1: as by a weld."""
    rng = np.random.default_rng(6)
    m = pin.Model()
    _add(m, 0, pin.JointModelFreeFlyer(), _at(), "trunk", _inertia(rng, 10.0))
    parent, axes = "trunk", "ZXYYYX"
    for i, axis in enumerate(axes):
        kind = getattr(pin, f"JointModelR{axis}")()
        place = _at(0.02, 0.05 * i, -0.05 if i in (1, 2, 5) else -0.35)
        _add(m, parent, kind, place, f"leg_{i}", _inertia(rng, 1.5))
        parent = f"leg_{i}"
    corners = [(0.12, 0.05, ((1, 0, 0), (0, 1, 0))), (0.12, -0.05, ()), (-0.08, 0.01, ((0, 1, 0),))]
    contacts = [
        hc.Contact(
            (parent, _at(x, y, -0.04)), tangents=tangents or False, name=f"corner_{i}"
        )
        for i, (x, y, tangents) in enumerate(corners)
    ]  # fmt: skip
    reference = pin.neutral(m)
    reference[2] = 1.2
    reference[7:] = [0.1, 0.05, -0.5, 1.0, -0.5, -0.05]
    return hc.Mechanism(
        m, contacts, [f"leg_{i}" for i in range(6)], reference=reference, name="held_foot"
    )  # fmt: skip


def in_series(n):
    """n four-bars, each carried by the rocker of the one before: not in ZOO, for its size."""
    m = _vertical(pin.Model())
    carrier, loops, reference = 0, [], []
    for i in range(n):
        start = 0.05 if i else 0.0
        _add(m, carrier, pin.JointModelRZ(), _at(start), f"crank_{i}", _bar(0.2, 0.9**i))
        _add(m, f"crank_{i}", pin.JointModelRZ(), _at(0.2), f"coupler_{i}", _bar(0.5, 0.9**i))
        _add(m, carrier, pin.JointModelRZ(), _at(start + 0.5), f"rocker_{i}", _bar(0.4, 0.9**i))
        loops.append(hc.Closure((f"coupler_{i}", _at(0.5)), (f"rocker_{i}", _at(0.4)), axes="x y"))
        reference += [1.0 + 0.1 * (i % 3), -0.5, 1.4]
        carrier = f"rocker_{i}"
    motors = [f"crank_{i}" for i in range(n)]
    return hc.Mechanism(m, loops, motors, reference=reference, name=f"{n}_in_series")


ZOO = {
    "four_bar": four_bar,
    "five_bar": five_bar,
    "five_bar_revolute": lambda: five_bar("revolute"),
    "four_bar_weldless": lambda: four_bar("revolute"),
    "spatial_arms": spatial_arms,
    "floating_leg": floating_leg,
    "geared_slider": geared_slider,
    "universal_rods": universal_rods,
    "hung_plate": hung_plate,
    "standing_leg": standing_leg,
    "sine_gear": sine_gear,
    "timed_arm": timed_arm,
    "sine_chart": sine_chart,
    "bennett": bennett,
    "bricard": bricard,
    "third_bar": third_bar,
    "six_row_four_bar": six_row_four_bar,
    "idle_rod": idle_rod,
    "three_motors": three_motors,
    "weld_chain": lambda: closed_chain("weld", 0),
    "prismatic_chain": lambda: closed_chain("prismatic", 1),
    "revolute_chain": lambda: closed_chain("revolute", 1),
    "cylindrical_chain": lambda: closed_chain("cylindrical", 2),
    "universal_chain": lambda: closed_chain("universal", 2),
    "planar_chain": lambda: closed_chain("planar", 3),
    "screw_chain": lambda: closed_chain("screw", 1),
    "slotted_arms": slotted_arms,
    "welded_arms": welded_arms,
    "held_foot": held_foot,
}


def slider_crank(motor="slider"):
    """Crank 0.2, rod 0.5, slider on x; at crank = rod = 0 it stands in the dead centre."""
    model = _vertical(pin.Model())
    _add(model, 0, pin.JointModelRZ(), _at(), "crank", _bar(0.2))
    _add(model, "crank", pin.JointModelRZ(), _at(0.2), "rod", _bar(0.5))
    _add(model, 0, pin.JointModelPX(), _at(), "slider", _bar(0.1, 2.0))
    loop = hc.Closure(("rod", _at(0.5)), "slider", axes="x y", name="pin")
    return hc.Mechanism(model, [loop], [motor], reference=[1.0, -1.4, 0.6], name="slider_crank")


DEAD_CENTRE = [0.0, 0.0, 0.7]


def triangle(length=0.4):
    """Two bars on two hinges 0.5 apart, tips pinned: a rigid truss, with a motor on it."""
    model = _vertical(pin.Model())
    _add(model, 0, pin.JointModelRZ(), _at(), "left", _bar(0.4))
    _add(model, 0, pin.JointModelRZ(), _at(0.5), "right", _bar(length))
    loop = hc.Closure(("left", _at(0.4)), ("right", _at(length)), axes="x y", name="tip")
    return hc.Mechanism(model, [loop], ["left"], reference=[0.9, 2.2], name="triangle")


def parallelogram():
    """Opposite bars equal: folded at q = 0, where its rows lose rank."""
    return four_bar(lengths=(0.3, 0.5, 0.3, 0.5))


def facing_away():
    """A four-bar with revolute closure whose frames have opposite z: planar motion cannot turn
    one over, so its rows vanish only with the axes opposed."""
    mech = four_bar("revolute")
    over = _at(0.4, R=np.diag([1.0, -1.0, -1.0]))
    loop = hc.Closure(("coupler", _at(0.5)), ("rocker", over), joint="revolute", name="pin")
    return dataclasses.replace(mech, constraints=[loop])


def feet(n, points):
    """A trunk on n legs of six joints, each foot held at its corners by points with two tangents:
    every foot has 3 x points rows, of which six count."""
    rng = np.random.default_rng(5)
    m = pin.Model()
    _add(m, 0, pin.JointModelFreeFlyer(), _at(), "trunk", _inertia(rng, 20.0))
    kinds = [pin.JointModelRZ, pin.JointModelRX, *3 * [pin.JointModelRY], pin.JointModelRX]
    names = ["yaw", "roll", "hip", "knee", "ankle", "foot"]
    places = [(0, 0, 0), (0, 0, -0.05), (0, 0, -0.05), (0, 0, -0.4), (0, 0, -0.4), (0, 0, -0.05)]
    contacts, motors = [], []
    for side in range(n):
        parent = "trunk"
        for kind, name, place in zip(kinds, names, places, strict=True):
            at = _at(0.0, 0.1 - 0.2 * side, -0.1) if parent == "trunk" else _at(*place)
            _add(m, parent, kind(), at, f"{name}_{side}", _inertia(rng, 1.5))
            parent = f"{name}_{side}"
            motors.append(parent)
        corners = [(0.12, 0.05), (0.12, -0.05), (-0.08, 0.05), (-0.08, -0.05)][:points]
        contacts += [
            hc.Contact((parent, _at(x, y, -0.04)), name=f"corner_{side}_{i}")
            for i, (x, y) in enumerate(corners)
        ]
    reference = pin.neutral(m)
    reference[2] = 1.0
    reference[7:] = n * [0.1, 0.05, -0.5, 1.0, -0.5, -0.05]
    return hc.Mechanism(m, contacts, motors, reference=reference, name=f"{n}_feet")


def one_of_each():
    """A free-flyer, a hinge, a ball, a continuous, a composite and a planar joint in a row."""
    rng = np.random.default_rng(5)
    composite = pin.JointModelComposite()
    for part in (pin.JointModelRX(), pin.JointModelSpherical(), pin.JointModelPY()):
        composite.addJoint(part)
    joints = {
        "base": pin.JointModelFreeFlyer(), "hinge": pin.JointModelRX(),
        "ball": pin.JointModelSpherical(), "wheel": pin.JointModelRUBZ(),
        "wrist": composite, "sled": pin.JointModelPlanar(),
    }  # fmt: skip
    model, parent = pin.Model(), 0
    for name, joint in joints.items():
        parent = _add(model, parent, joint, _at(0.2, 0.1), name, _inertia(rng))
    return model


def two_hinges(*frames):
    """A tree of two hinges with extra frames (name, joint, x, type)."""
    model = pin.Model()
    for name, x in (("left", 0.0), ("right", 0.5)):
        joint = model.addJoint(0, pin.JointModelRZ(), _at(x), name)
        model.addJointFrame(joint)
        model.appendBodyToJoint(joint, _bar(0.3), _at())
    for name, joint, x, kind in frames:
        model.addFrame(pin.Frame(name, model.getJointId(joint), 0, _at(x), kind), False)
    return model


BODY, OP, SENSOR = pin.FrameType.BODY, pin.FrameType.OP_FRAME, pin.FrameType.SENSOR
