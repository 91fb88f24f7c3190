"""Mechanisms for the tests: each is small, and each has something that breaks naive code."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.constraints.kinds import slot
from holoctl.constraints.wrench_rows import wrench_rows
from holoctl.tree.frames import resolve_frame


def lump(rng, mass=1.0):
    """A generic body: no symmetry, centre of mass off the joint."""
    A = rng.normal(size=(3, 3))
    second = 0.01 * (A @ A.T + 3.0 * np.eye(3))  # moments of the mass itself: any body has some
    return pin.Inertia(mass, rng.normal(size=3) * 0.1, np.trace(second) * np.eye(3) - second)


def bar(length, mass=1.0):
    """A slender bar along x with a little thickness, from the joint to x = length."""
    return pin.Inertia(
        mass,
        np.array([length / 2, 0, 0]),
        mass * np.diag([1e-3, length**2 / 12 + 1e-3, length**2 / 12]),
    )


def at(x=0.0, y=0.0, z=0.0, R=None, scale=1.0):
    """A placement, lengths times `scale`."""
    return pin.SE3(np.eye(3) if R is None else np.asarray(R), scale * np.array([x, y, z], float))


def add_body(model, parent, joint, placement, name, inertia):
    parent = model.getJointId(parent) if isinstance(parent, str) else parent
    j = model.addJoint(parent, joint, placement, name)
    model.addJointFrame(j)
    model.appendBodyToJoint(j, inertia, pin.SE3.Identity())
    return j


def vertical(model):
    """Gravity in the plane of the planar mechanisms (they move in x-y)."""
    model.gravity.linear = np.array([0.0, -9.81, 0.0])
    return model


def four_bar(closure="x y", lengths=(0.2, 0.5, 0.4, 0.5)):
    """Crank, coupler, rocker; the crank is driven."""
    crank, coupler, rocker, ground = lengths
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ(), at(), "crank", bar(crank))
    add_body(m, "crank", pin.JointModelRZ(), at(crank), "coupler", bar(coupler, 2.0))
    add_body(m, 0, pin.JointModelRZ(), at(ground), "rocker", bar(rocker, 1.5))
    kind = {"joint": closure} if closure[0] not in "xyz" or len(closure) > 6 else {"axes": closure}
    loop = hc.Closure(("coupler", at(coupler)), ("rocker", at(rocker)), name="pin", **kind)
    return hc.Mechanism(m, [loop], ["crank"], reference=[1.0, -0.5, 1.4], name="four_bar")


def five_bar(closure="x y"):
    """Two driven arms that meet in a tip."""
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ(), at(-0.1), "left", bar(0.3))
    add_body(m, "left", pin.JointModelRZ(), at(0.3), "left_rod", bar(0.4, 0.7))
    add_body(m, 0, pin.JointModelRZ(), at(0.1), "right", bar(0.3, 1.2))
    add_body(m, "right", pin.JointModelRZ(), at(0.3), "right_rod", bar(0.4, 0.8))
    kind = {"axes": closure} if closure == "x y" else {"joint": closure}
    loop = hc.Closure(("left_rod", at(0.4)), ("right_rod", at(0.4)), name="tip", **kind)
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
            place = at(x, 0, 0.1, R) if i == 0 else at(0.35, 0.05 * i, 0.02, R)
            parent = add_body(m, parent, pin.JointModelRZ(), place, f"{arm}{i + 1}", lump(rng))
    loop = hc.Closure(("a3", at(0.3)), ("b3", at(0.25)), joint="spherical", name="tips")
    return hc.Mechanism(m, [loop], ["a1", "a2", "a3"], name="spatial_arms")


def floating_leg():
    """A floating base with a leg whose knee is driven through a four-bar; a continuous wheel
    and a spherical head make nq differ from nv three times."""
    rng = np.random.default_rng(11)
    m = pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "base", lump(rng, 8.0))
    add_body(m, "base", pin.JointModelRY(), at(0, 0.1, -0.1), "hip", lump(rng, 2.0))
    add_body(m, "hip", pin.JointModelRY(), at(0.05, 0, -0.05), "motor_crank", lump(rng, 0.4))
    add_body(m, "motor_crank", pin.JointModelRY(), at(0.06), "push_rod", lump(rng, 0.3))
    add_body(m, "hip", pin.JointModelRY(), at(0, 0, -0.35), "knee", lump(rng, 1.0))
    add_body(m, "knee", pin.JointModelRUBY(), at(0, 0, -0.3), "wheel", lump(rng, 0.5))
    add_body(m, "base", pin.JointModelSpherical(), at(0, 0, 0.3), "head", lump(rng, 0.7))
    loop = hc.Closure(("push_rod", at(0, 0, -0.3)), ("knee", at(0.06)), axes="x z", name="knee_bar")
    reference = pin.neutral(m)
    reference[:3] = 0.1, -0.2, 0.9
    return hc.Mechanism(
        m, [loop], ["hip", "motor_crank", "wheel"], reference=reference, name="floating_leg"
    )


def geared_slider():
    """A slider-crank with a wheel geared to the crank and a rack geared to the wheel."""
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ(), at(), "crank", bar(0.2))
    add_body(m, "crank", pin.JointModelRZ(), at(0.2), "rod", bar(0.5))
    add_body(m, 0, pin.JointModelPX(), at(), "slider", bar(0.1, 2.0))
    add_body(m, 0, pin.JointModelRZ(), at(0, 0.3), "wheel", bar(0.1, 0.5))
    add_body(m, 0, pin.JointModelPX(), at(0, 0.4), "rack", bar(0.1, 0.5))
    return hc.Mechanism(
        m,
        [
            hc.Closure(("rod", at(0.5)), "slider", axes="x y", name="pin"),
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

    add_body(m, 0, pin.JointModelRZ(), at(0, 0, 0), "turntable", lump(rng, 2.0))
    add_body(m, "turntable", universal(), at(0.3, 0, 0), "rod_1", lump(rng))
    add_body(m, "rod_1", pin.JointModelSpherical(), at(0, 0, 0.5), "plate", lump(rng))
    add_body(m, "turntable", universal(), at(-0.3, 0, 0), "rod_2", lump(rng))
    loop = hc.Closure(("plate", at(-0.6)), ("rod_2", at(0, 0, 0.5)), joint="spherical", name="ball")
    return hc.Mechanism(m, [loop], ["turntable", "rod_1[0]", "rod_1[1]"], name="universal_rods")


def hung_plate():
    """A plate that hangs on five rods from the world; one motion is left, a driven one."""
    rng = np.random.default_rng(21)
    m = pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "plate", lump(rng, 3.0))
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
        hc.Rod(("universe", at(*hook)), ("plate", at(*corner)), name=f"rod {i}")
        for i, (hook, corner) in enumerate(zip(hooks, corners, strict=True))
    ]
    return hc.Mechanism(m, rods, ["plate[0]"], name="hung_plate")


def standing_leg():
    """A leg on the ground with a heel and a toe: a point that sticks, and one row beside it."""
    rng = np.random.default_rng(31)
    m = pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "trunk", lump(rng, 9.0))
    add_body(m, "trunk", pin.JointModelRX(), at(0, 0.1, -0.1), "abduction", lump(rng, 1.0))
    add_body(m, "abduction", pin.JointModelRY(), at(0, 0, -0.05), "hip", lump(rng, 2.0))
    add_body(m, "hip", pin.JointModelRY(), at(0, 0, -0.4), "knee", lump(rng, 1.5))
    add_body(m, "knee", pin.JointModelRY(), at(0, 0, -0.4), "ankle", lump(rng, 0.5))
    reference = pin.neutral(m)
    reference[:3] = 0.0, 0.0, 0.9
    reference[7:] = 0.1, -0.4, 0.8, -0.4
    heel = hc.Contact(("ankle", at(-0.06, 0, -0.05)), name="heel")
    toe = hc.Contact(
        ("ankle", at(0.12, 0, -0.05)), normal=(0.0, 0.1, 2.0), tangents=[(0, 1, 0)], name="toe"
    )
    return hc.Mechanism(
        m, [heel, toe], ["abduction", "hip", "knee", "ankle"], reference=reference,
        name="standing_leg",
    )  # fmt: skip


def sine(q):
    return [q[1] - 2.0 * np.sin(q[0])]


def sine_jacobian(q):
    return [[-2.0 * np.cos(q[0]), 1.0]]


def sine_drift(q, v):
    return [2.0 * np.sin(q[0]) * v[0] ** 2]


def sine_gear():
    """A two-link arm whose elbow turns with the sine of the shoulder: callbacks for all."""
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ(), at(), "shoulder", bar(1.0))
    add_body(m, "shoulder", pin.JointModelRZ(), at(1.0), "elbow", bar(1.0))
    gear = hc.Custom(sine, sine_jacobian, sine_drift, name="sine")
    return hc.Mechanism(m, [gear], ["shoulder"], reference=[0.3, 0.6], name="sine_gear")


def tip_height(q, t):
    a, b, c = q[0], q[0] + q[1], q[0] + q[1] + q[2]
    height = 0.4 * np.sin(a) + 0.4 * np.sin(b) + 0.2 * np.sin(c)
    return [height - 0.5 - 0.05 * np.sin(3.0 * t)]


def timed_arm():
    """A three-link arm whose tip rides on a bench that goes up and down: phi(q, t), no more
    given than phi itself."""
    m = vertical(pin.Model())
    add_body(m, 0, pin.JointModelRZ(), at(), "a", bar(0.4))
    add_body(m, "a", pin.JointModelRZ(), at(0.4), "b", bar(0.4))
    add_body(m, "b", pin.JointModelRZ(), at(0.4), "c", bar(0.2))
    bench = hc.Custom(tip_height, time=True, scale=1.0, name="bench")
    return hc.Mechanism(m, [bench], ["a", "b"], reference=[1.0, -0.8, 0.4], name="timed_arm")


def along_sine(model, q0, v0):
    q = np.array([q0[0], 2.0 * np.sin(q0[0])])
    G = np.array([1.0, 2.0 * np.cos(q0[0])])
    return q, G * v0[0], G, np.array([0.0, -2.0 * np.sin(q0[0]) * v0[0] ** 2])


def sine_chart():
    """The sine gear as an explicit chart."""
    base = sine_gear()
    chart = hc.GammaQ(along_sine, independent=["shoulder"])
    return hc.Mechanism(
        base.model, [chart], ["shoulder"], reference=base.reference, name="sine_chart"
    )


def ring_of_hinges(links, angles, name):
    """A ring of hinges in Denavit-Hartenberg's way: Rz(theta) Tx(a) Rx(alpha) for each link;
    the last hinge is the cut one, the last link the ground."""

    def across(a, alpha):
        return at(a, R=pin.rpy.rpyToMatrix(alpha, 0.0, 0.0))

    rng = np.random.default_rng(17)
    m = pin.Model()
    place, parent = pin.SE3.Identity(), 0
    for i, link in enumerate(links[:-1]):
        parent = add_body(m, parent, pin.JointModelRZ(), place, f"hinge_{i + 1}", lump(rng))
        place = across(*link)
    ground = across(*links[-1]).inverse()
    loop = hc.Closure(
        ("universe", ground), (f"hinge_{len(links) - 1}", place), joint="revolute", name="hinge"
    )
    return hc.Mechanism(m, [loop], ["hinge_1"], reference=angles, name=name)


def bennett_ring():
    """Links (a, alpha) and angles of four hinges in space that move where counting says -2:
    sin(alpha) / a = sin(beta) / b."""
    a, b, alpha = 0.4, 0.6, 0.5
    beta = np.arcsin(b / a * np.sin(alpha))
    K = np.sin((beta + alpha) / 2.0) / np.sin((beta - alpha) / 2.0)
    first = 1.2
    return [(a, alpha), (b, beta)] * 2, [first, 2.0 * np.arctan(K / np.tan(first / 2.0)), -first]


def bennett():
    return ring_of_hinges(*bennett_ring(), "bennett")


def bricard_ring():
    """Links and angles of six hinges with threefold symmetry, twists of a right angle: one
    motion, counted 0."""
    first = 1.0
    second = np.arccos(-np.cos(first) / (1.0 + np.cos(first)))
    links = [(0.4, np.pi / 2 * (-1.0) ** i) for i in range(6)]
    return links, [first, second, first, second, first]


def bricard():
    return ring_of_hinges(*bricard_ring(), "bricard")


def third_bar():
    """A parallelogram with a third parallel bar: ten rows of which three count."""
    m = vertical(pin.Model())
    for i, x in enumerate((0.0, 0.3, 0.6)):
        add_body(m, 0, pin.JointModelRZ(), at(x), f"bar_{i}", bar(0.25, 1.0 + 0.2 * i))
        if i == 0:
            add_body(m, "bar_0", pin.JointModelRZ(), at(0.25), "coupler", bar(0.6, 2.0))
    loops = [
        hc.Closure(("coupler", at(0.3 * i)), (f"bar_{i}", at(0.25)), joint="revolute")
        for i in (1, 2)
    ]
    return hc.Mechanism(m, loops, ["bar_0"], reference=[1.1, -1.1, 1.1, 1.1], name="third_bar")


def six_row_four_bar():
    """A four-bar whose pin is a joint of the tree, closed by a weld: six rows of rank three."""
    base = four_bar()
    m = base.model.copy()
    add_body(m, "rocker", pin.JointModelRZ(), at(0.4), "pin", bar(0.05, 0.1))
    # the pin's frame turns to match the coupler's, so the weld leaves the four-bar's motion
    loop = hc.Closure(("coupler", at(0.5)), "pin", joint="weld", name="weld")
    order = [list(m.names).index(n) for n in ("crank", "coupler", "rocker", "pin")]
    assert order == [1, 2, 3, 4]
    reference = np.append(base.reference, -0.9)
    return hc.Mechanism(m, [loop], ["crank"], reference=reference, name="six_row_four_bar")


def idle_rod():
    """Crank and rocker in different planes, tied by a rod that may spin about itself."""
    rng = np.random.default_rng(23)
    m = pin.Model()
    add_body(m, 0, pin.JointModelRZ(), at(), "crank", lump(rng))
    add_body(m, "crank", pin.JointModelSpherical(), at(0.2), "rod", lump(rng))
    add_body(m, 0, pin.JointModelRX(), at(0.6, 0.0, -0.2), "rocker", lump(rng))
    loop = hc.Closure(("rod", at(0.7)), ("rocker", at(0.0, 0.4, 0.0)), joint="spherical")
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
        place = at(0.25, 0.05 * i, 0.03, pin.exp3(rng.normal(size=3)))
        parent = add_body(m, parent, kind, place, f"j{i}", lump(rng))
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
            place = at(x, 0, 0.1) if i == 0 else at(0.3, 0.05, 0.02, pin.exp3(rng.normal(size=3)))
            parent = add_body(m, parent, pin.JointModelRY(), place, f"{arm}{i + 1}", lump(rng))
    reference, data = 0.5 * rng.normal(size=m.nv), m.createData()
    pin.forwardKinematics(m, data, reference)
    a3, b3 = (m.getJointId(name) for name in ("a3", "b3"))
    tip = at(0.2, 0.1, 0.05)
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
            place = at(x, 0, 0.1, R) if i == 0 else at(0.3, 0.05 * i, 0.02, R)
            parent = add_body(m, parent, pin.JointModelRZ(), place, f"{arm}{i + 1}", lump(rng))
    reference, data = 0.5 * rng.normal(size=m.nv), m.createData()
    pin.forwardKinematics(m, data, reference)
    a6, b6, b4, c3 = (m.getJointId(name) for name in ("a6", "b6", "b4", "c3"))
    end = at(0.2, 0.1, 0.05, pin.exp3(rng.normal(size=3)))
    point = at(0.1, 0.0, 0.2, pin.exp3(rng.normal(size=3)))
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
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "trunk", lump(rng, 10.0))
    parent, axes = "trunk", "ZXYYYX"
    for i, axis in enumerate(axes):
        kind = getattr(pin, f"JointModelR{axis}")()
        place = at(0.02, 0.05 * i, -0.05 if i in (1, 2, 5) else -0.35)
        add_body(m, parent, kind, place, f"leg_{i}", lump(rng, 1.5))
        parent = f"leg_{i}"
    corners = [(0.12, 0.05, ((1, 0, 0), (0, 1, 0))), (0.12, -0.05, ()), (-0.08, 0.01, ((0, 1, 0),))]
    contacts = [
        hc.Contact(
            (parent, at(x, y, -0.04)), tangents=tangents or False, name=f"corner_{i}"
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
    m = vertical(pin.Model())
    carrier, loops, reference = 0, [], []
    for i in range(n):
        start = 0.05 if i else 0.0
        add_body(m, carrier, pin.JointModelRZ(), at(start), f"crank_{i}", bar(0.2, 0.9**i))
        add_body(m, f"crank_{i}", pin.JointModelRZ(), at(0.2), f"coupler_{i}", bar(0.5, 0.9**i))
        add_body(m, carrier, pin.JointModelRZ(), at(start + 0.5), f"rocker_{i}", bar(0.4, 0.9**i))
        loops.append(hc.Closure((f"coupler_{i}", at(0.5)), (f"rocker_{i}", at(0.4)), axes="x y"))
        reference += [1.0 + 0.1 * (i % 3), -0.5, 1.4]
        carrier = f"rocker_{i}"
    motors = [f"crank_{i}" for i in range(n)]
    return hc.Mechanism(m, loops, motors, reference=reference, name=f"{n}_in_series")


def slider_crank(motor="slider", lengths=(0.2, 0.5), reference=(1.0, -1.4, 0.6)):
    """Crank, rod, and a slider on x; at crank = rod = 0 it stands in the dead centre."""
    crank, rod = lengths
    model = vertical(pin.Model())
    add_body(model, 0, pin.JointModelRZ(), at(), "crank", bar(crank))
    add_body(model, "crank", pin.JointModelRZ(), at(crank), "rod", bar(rod))
    add_body(model, 0, pin.JointModelPX(), at(), "slider", bar(0.1, 2.0))
    loop = hc.Closure(("rod", at(rod)), "slider", axes="x y", name="pin")
    return hc.Mechanism(model, [loop], [motor], reference=reference, name="slider_crank")


DEAD_CENTRE = [0.0, 0.0, 0.7]
"""Of the slider-crank."""


def triangle(length=0.4):
    """Two bars on two hinges 0.5 apart, tips pinned: a rigid truss, with a motor on it."""
    model = vertical(pin.Model())
    add_body(model, 0, pin.JointModelRZ(), at(), "left", bar(0.4))
    add_body(model, 0, pin.JointModelRZ(), at(0.5), "right", bar(length))
    loop = hc.Closure(("left", at(0.4)), ("right", at(length)), axes="x y", name="tip")
    return hc.Mechanism(model, [loop], ["left"], reference=[0.9, 2.2], name="triangle")


def parallelogram():
    """Opposite bars equal: folded at q = 0, where its rows lose rank."""
    return four_bar(lengths=(0.3, 0.5, 0.3, 0.5))


def facing_away():
    """A four-bar with revolute closure whose frames have opposite z: planar motion cannot turn
    one over, so its rows vanish only with the axes opposed."""
    mech = four_bar("revolute")
    over = at(0.4, R=np.diag([1.0, -1.0, -1.0]))
    loop = hc.Closure(("coupler", at(0.5)), ("rocker", over), joint="revolute", name="pin")
    return dataclasses.replace(mech, constraints=[loop])


def feet(n, points):
    """A trunk on n legs of six joints, each foot held at its corners by points with two tangents:
    every foot has 3 x points rows, of which six count."""
    rng = np.random.default_rng(5)
    m = pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "trunk", lump(rng, 20.0))
    kinds = [pin.JointModelRZ, pin.JointModelRX, *3 * [pin.JointModelRY], pin.JointModelRX]
    names = ["yaw", "roll", "hip", "knee", "ankle", "foot"]
    places = [(0, 0, 0), (0, 0, -0.05), (0, 0, -0.05), (0, 0, -0.4), (0, 0, -0.4), (0, 0, -0.05)]
    contacts, motors = [], []
    for side in range(n):
        parent = "trunk"
        for kind, name, place in zip(kinds, names, places, strict=True):
            X = at(0.0, 0.1 - 0.2 * side, -0.1) if parent == "trunk" else at(*place)
            add_body(m, parent, kind(), X, f"{name}_{side}", lump(rng, 1.5))
            parent = f"{name}_{side}"
            motors.append(parent)
        corners = [(0.12, 0.05), (0.12, -0.05), (-0.08, 0.05), (-0.08, -0.05)][:points]
        contacts += [
            hc.Contact((parent, at(x, y, -0.04)), name=f"corner_{side}_{i}")
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
        parent = add_body(model, parent, joint, at(0.2, 0.1), name, lump(rng))
    return model


BODY, OP, SENSOR = pin.FrameType.BODY, pin.FrameType.OP_FRAME, pin.FrameType.SENSOR


def two_hinges(*frames):
    """A tree of two hinges with extra frames (name, joint, x, type)."""
    model = pin.Model()
    for name, x in (("left", 0.0), ("right", 0.5)):
        joint = model.addJoint(0, pin.JointModelRZ(), at(x), name)
        model.addJointFrame(joint)
        model.appendBodyToJoint(joint, bar(0.3), at())
    for name, joint, x, kind in frames:
        model.addFrame(pin.Frame(name, model.getJointId(joint), 0, at(x), kind), False)
    return model


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
