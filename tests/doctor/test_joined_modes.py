"""`hc.joined_modes`: every path is gone again by other code, every parting compared with lines."""

from __future__ import annotations

import dataclasses

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
import zoo
from linkages import LINKAGES
from support import mechanism
from zoo import add_body, at, bar

import holoctl as hc


class Apart:
    """Points that closures hold together, by Pinocchio alone; those of a planar one in x, y."""

    def __init__(self, mech, axes=3):
        self.mech, self.axes, self.data = mech, axes, mech.model.createData()
        base = np.array([n.startswith("base") for n in mech.coordinate_names])
        self.free = np.flatnonzero((mech.B == 0.0).all(axis=1) & ~base)
        self.pairs = [(b.frames1[0], b.frames2[0]) for b in mech.bound]

    def errors(self, q):
        pin.forwardKinematics(self.mech.model, self.data, q)
        off = [
            self.data.oMi[b.joint].act(b.placement.translation)
            - self.data.oMi[a.joint].act(a.placement.translation)
            for a, b in self.pairs
        ]
        return np.concatenate([x[: self.axes] for x in off])

    def jacobian(self, q, h=1e-6):
        def after(d):
            return self.errors(pin.integrate(self.mech.model, q, d))

        steps = h * np.eye(self.mech.nv)[self.free]
        return np.array([(after(d) - after(-d)) / (2.0 * h) for d in steps]).T

    def places(self, q):
        pin.forwardKinematics(self.mech.model, self.data, q)
        return np.array([X.homogeneous for X in self.data.oMi])[1:]


def check_path(mech, found, joined, i, j, bodies, axes=3):
    """Closed, without jumps, without a change of sign, from mode to mode; halfway between too."""
    path, apart = joined.path(i, j), Apart(mech, axes)
    assert path.shape[1] == mech.nq
    dets = []
    for q, after in zip(path, [*path[1:], None], strict=True):
        assert hc.constraint_errors(mech, q).closure < 1e-9
        assert np.abs(apart.errors(q)).max() < 1e-9
        dets.append(np.linalg.det(apart.jacobian(q)))
        if after is None:
            break
        d = pin.difference(mech.model, q, after)
        assert np.abs(d / mech.column_scale).max() < 0.1
        x = pin.integrate(mech.model, q, 0.5 * d)  # where Newton's method stays near, motors held
        for _ in range(6):
            step = np.zeros(mech.nv)
            step[apart.free] = np.linalg.solve(apart.jacobian(x), -apart.errors(x))
            assert np.abs(step / mech.column_scale).max() < 0.03
            x = pin.integrate(mech.model, x, step)
        assert np.abs(apart.errors(x)).max() < 1e-9
        dets.append(np.linalg.det(apart.jacobian(x)))
    ratios = np.array(dets[1:]) / dets[:-1]
    assert ratios.min() > 0.4
    assert ratios.max() < 2.5
    wanted, names = found.modes, list(mech.model.names)[1:]
    for end, mode in ((path[0], wanted[i]), (path[-1], wanted[j])):
        off = apart.places(end) - apart.places(mode.q)
        assert np.abs(off[[names.index(b) for b in bodies]]).max() < 1e-7
        turned = mech.motor_positions(end) - found.motors
        hinges = [mech.model.joints[mech.model.getJointId(m)].shortname()[:14]
                  for m in mech.actuator_names]  # fmt: skip
        turned -= (
            2.0 * np.pi * np.round(turned / 2.0 / np.pi) * (np.array(hinges) != "JointModelPX")
        )
        assert np.abs(turned).max() < 1e-8
    return path


def book(found, joined):
    """What holds of all results."""
    n = len(found)
    assert sorted(i for g in joined.groups for i in g) == list(range(n))
    assert (joined.parted == joined.parted.T).all()
    for i in range(n):
        assert joined.between(i, i) == "joined"
        for j in range(n):
            together = any(i in g and j in g for g in joined.groups)
            assert not (together and joined.parted[i, j])
            what = "joined" if together else "parted" if joined.parted[i, j] else "not known"
            assert joined.between(i, j) == joined.between(j, i) == what
    return joined


def pairs_of(joined):
    return [(g[0], j) for g in joined.groups for j in g[1:]] + [
        g[-2:] for g in joined.groups if len(g) > 2
    ]


# --------------------------------------------------------------------------------------- examples


def three_rpr(base, sides, floating=False):
    """A triangle on three legs in the plane, whose lengths are driven."""
    a, b, c = sides
    x = (a * a + b * b - c * c) / (2.0 * a)
    corners, m = [(0.0, 0.0), (a, 0.0), (x, np.sqrt(b * b - x * x))], pin.Model()
    if floating:
        add_body(m, 0, pin.JointModelFreeFlyer(), at(0.0), "base", bar(1.0))
    for i, (bx, by) in enumerate(base):
        hung = "base" if floating else 0
        add_body(m, hung, pin.JointModelRZ(), at(bx, by), f"hinge_{i}", bar(0.1))
        add_body(m, f"hinge_{i}", pin.JointModelPX(), at(0.0), f"leg_{i}", bar(0.1))
        if i == 0:
            add_body(m, "leg_0", pin.JointModelRZ(), at(0.0), "table", bar(0.4))
    loops = [
        hc.Closure(("table", at(*corners[i])), (f"leg_{i}", at(0.0)), axes="x y", name=f"c{i}")
        for i in (1, 2)
    ]
    return hc.Mechanism(m, loops, ["leg_0", "leg_1", "leg_2"], name="three_rpr")


def innocenti():
    """The example of Innocenti and Parenti-Castelli, and of many after them."""
    mech = three_rpr([(0.0, 0.0), (15.91, 0.0), (0.0, 10.0)], (17.04, 20.84, 16.54))
    return mech, hc.assembly_modes(mech, [14.98, 15.38, 12.0], tries=100)


def three_rrr(base, corners, arm, rod, joint=pin.JointModelRZ):
    m = pin.Model()
    for i, (x, y) in enumerate(base):
        add_body(m, 0, joint(), at(x, y), f"arm_{i}", bar(arm))
        add_body(m, f"arm_{i}", pin.JointModelRZ(), at(arm), f"rod_{i}", bar(rod))
        if i == 0:
            add_body(m, "rod_0", pin.JointModelRZ(), at(rod), "table", bar(0.4))
    loops = [
        hc.Closure(("table", at(*corners[i])), (f"rod_{i}", at(rod)), axes="x y", name=f"c{i}")
        for i in (1, 2)
    ]
    return hc.Mechanism(m, loops, ["arm_0", "arm_1", "arm_2"], name="three_rrr")


@pytest.mark.parametrize("name", ["five_bar", "four_bar", "four_bar_weldless", "floating_leg"])
def test_where_two_circles_meet_both_modes_are_parted(name):
    mech = mechanism(name)
    found = hc.assembly_modes(mech, mech.motor_positions(hc.assemble(mech)[0]), tries=20)
    joined = book(found, hc.joined_modes(mech, found))
    assert joined.groups == ((0,), (1,))
    assert joined.between(0, 1) == "parted"
    assert joined.steps == 0
    with pytest.raises(hc.InputError, match="parted: no path joins them"):
        joined.path(0, 1)


def test_a_path_without_singularity():
    mech, found = innocenti()
    joined = book(found, hc.joined_modes(mech, found, steps=300, seed=8))
    ((i, j),) = pairs_of(joined)
    assert i != j
    assert found.modes[i].sign == found.modes[j].sign
    check_path(mech, found, joined, i, j, ["table"], axes=2)


@pytest.mark.slow
def test_a_planar_platform_goes_from_mode_to_mode_without_singularity():
    """Its singular configurations part all others in two: all modes of a sign are joined."""
    mech, found = innocenti()
    assert len(found) == 6
    joined = book(found, hc.joined_modes(mech, found))
    signs = [m.sign for m in found.modes]
    wanted = [tuple(i for i in range(6) if signs[i] == s) for s in (signs[0], -signs[0])]
    assert joined.groups == tuple(wanted)
    assert 0 < joined.steps <= 5000
    assert (joined.parted == (np.multiply.outer(signs, signs) < 0)).all()
    for i, j in pairs_of(joined):
        check_path(mech, found, joined, i, j, ["table"], axes=2)
    i, j = wanted[0][:2]
    assert np.array_equal(joined.path(i, j), joined.path(j, i)[::-1])
    assert np.array_equal(joined.path(0, j)[0], found.modes[0].q)
    assert "6 joined (" in repr(joined)
    assert "9 parted, 0 not known" in repr(joined)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_any_planar_platform(seed):
    rng = np.random.default_rng(seed)
    sides = rng.uniform(0.6, 1.0, 3)
    base = [(0.0, 0.0), (rng.uniform(0.7, 1.2), 0.0), tuple(rng.uniform(0.3, 1.0, 2))]
    mech = three_rpr(base, sides)
    found = hc.assembly_modes(mech, rng.uniform(0.6, 0.9, 3), tries=100)
    joined = book(found, hc.joined_modes(mech, found, seed=seed))
    assert len(joined.groups) == 2
    for i, j in pairs_of(joined):
        check_path(mech, found, joined, i, j, ["table"], axes=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("equal", "joint"),
    [(True, pin.JointModelRZ), (False, pin.JointModelRZ), (False, pin.JointModelRUBZ)],
)
def test_three_arms(equal, joint):
    turns = np.pi / 2 + np.arange(3) * 2.0 * np.pi / 3.0
    round_about = np.array([np.cos(turns), np.sin(turns)]).T
    base, corners = 0.6 * round_about, 0.25 * (round_about - round_about[0])
    if not equal:
        base = base + np.array([[0.0, 0.0], [0.1, 0.05], [0.0, -0.1]])
        corners = corners * [1.0, 0.8]
    mech = three_rrr(base.tolist(), corners.tolist(), 0.4, 0.45, joint)
    found = hc.assembly_modes(mech, [-1.0, 0.3, 2.6], tries=150)
    joined = book(found, hc.joined_modes(mech, found))
    signs = [m.sign for m in found.modes]
    assert len(joined.groups) == 2
    assert (joined.parted == (np.multiply.outer(signs, signs) < 0)).all()
    for i, j in pairs_of(joined):
        check_path(mech, found, joined, i, j, ["table"], axes=2)


@pytest.mark.slow
def test_a_base_that_floats_stays():
    mech = three_rpr([(0.0, 0.0), (1.0, 0.05), (0.1, 0.7)], (1.07, 1.31, 1.04), floating=True)
    found = hc.assembly_modes(mech, [0.94, 0.96, 0.75], tries=60)
    joined = book(found, hc.joined_modes(mech, found))
    assert len(joined.groups) == 2
    for i, j in pairs_of(joined):
        path = check_path(mech, found, joined, i, j, ["base", "table"], axes=2)
        assert np.ptp(path[:, :7], axis=0).max() < 1e-12


def lines_of(mech, q):
    """The sign of the determinant of six lines between the legs' joints, by Pinocchio alone."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    lines = []
    for bound in mech.bound:
        leg, plate = (f[0] for f in (bound.frames1, bound.frames2))
        if "platform" in mech.model.names[leg.joint]:
            leg, plate = plate, leg
        head = data.oMi[leg.joint].act(leg.placement.translation)
        j = leg.joint  # down to the cross, at the foot of the leg
        while not mech.model.names[j].startswith(("foot", "elbow")):
            j = mech.model.parents[j]
        u = head - data.oMi[j].translation
        lines.append(np.append(u, np.cross(head, u)) / np.linalg.norm(u))
    return int(np.sign(np.linalg.det(lines)))


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("delta", 0),
        pytest.param("delta", 5000, marks=pytest.mark.slow),
        pytest.param("stewart", 5000, marks=pytest.mark.slow),
    ],
)
def test_platforms_on_six_legs_are_parted_by_the_lines_of_their_legs(name, steps):
    """The legs may roll, which turns the sign of the rows over, but not that of the lines."""
    mech = hc.load(hc.robot_file(name))
    home, tries = hc.assemble(mech)[0], 120 if steps else 25
    found = hc.assembly_modes(mech, mech.motor_positions(home), tries=tries)
    joined = book(found, hc.joined_modes(mech, found, steps=steps))
    lines = [lines_of(mech, m.q) for m in found.modes]
    assert len(found) >= 3
    assert 0 not in lines
    assert len(set(lines)) == 2
    assert (joined.parted == (np.multiply.outer(lines, lines) < 0)).all()
    for i, j in sorted(pairs_of(joined), key=lambda pair: len(joined.path(*pair)))[:2]:
        check_path(mech, found, joined, i, j, [n for n in mech.model.names if "platform" in n][-1:])


# ------------------------------------------------------------------------ what is not known, bounds


def test_signs_prove_nothing_of_what_spins_or_is_redundant():
    for mech in (mechanism("idle_rod"), oc.OVERCONSTRAINED["goldberg"]().mechanism()):
        found = hc.assembly_modes(mech, mech.motor_positions(hc.assemble(mech)[0]), tries=20)
        joined = book(found, hc.joined_modes(mech, found, steps=100))
        assert len(found) == 2
        assert joined.between(0, 1) == "not known"
        assert joined.steps <= 100
        with pytest.raises(hc.InputError, match="not known: no path was found"):
            joined.path(0, 1)


@pytest.mark.slow
def test_more_motors_than_motions():
    """Ways are those on which they agree: a motor that a leg drives through a gear."""
    mech, found = innocenti()
    m = mech.model.copy()
    add_body(m, 0, pin.JointModelPX(), at(3.0), "slave", bar(0.1))
    gear = hc.Coupling({"slave": 1.0, "leg_1": -1.0}, name="gear")
    motors = [*mech.actuator_names, "slave"]
    more = hc.Mechanism(m, [*mech.constraints, gear], motors, name="slaved")
    there = np.append(found.motors, found.motors[1])
    held = hc.assembly_modes(more, there, tries=100)
    joined = book(held, hc.joined_modes(more, held))
    assert len(held) == 6
    assert not joined.parted.any()
    assert len(joined.groups) <= 4
    for i, j in pairs_of(joined):
        assert held.modes[i].sign == held.modes[j].sign
        for q in joined.path(i, j)[::10]:
            assert hc.constraint_errors(more, q).closure < 1e-9


def test_singular_modes_are_parted_from_all():
    mech = mechanism("five_bar")
    found = hc.assembly_modes(mech, [np.pi, 0.0], tries=12)
    assert book(found, hc.joined_modes(mech, found)).groups == ((0,),)


def test_what_does_not_move_has_no_path():
    closed = LINKAGES["spherical_loop"]().mechanism()
    for truss in (dataclasses.replace(zoo.triangle(), actuated=[]), closed):
        found = hc.assembly_modes(truss, [], tries=10)
        assert len(found) >= 2
        assert book(found, hc.joined_modes(truss, found)).between(0, 1) == "parted"


def test_the_same_seed_gives_the_same_result_and_steps_are_bounded():
    mech, found = innocenti()
    a, b = (hc.joined_modes(mech, found, steps=200, seed=4) for _ in range(2))
    assert a.groups == b.groups
    assert a.steps == b.steps
    for i, j in pairs_of(a):
        assert np.array_equal(a.path(i, j), b.path(i, j))
    assert hc.joined_modes(mech, found, steps=0).groups == tuple((i,) for i in range(6))
    with pytest.raises(ValueError, match="read-only"):
        a.parted[0, 0] = True


def test_time():
    mech = mechanism("timed_arm")
    home, _ = hc.assemble(mech, t=0.7)
    found = hc.assembly_modes(mech, mech.motor_positions(home), tries=20, t=0.7)
    book(found, hc.joined_modes(mech, found, t=0.7, steps=50))
    with pytest.raises(hc.InputError, match="another time"):
        hc.joined_modes(mech, found, t=0.2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"found": None}, "what hc.assembly_modes"),
        ({"found": "four_bar"}, "modes of 'four_bar'"),
        ({"steps": -1}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"seed": "x"}, "seed"),
        ({"t": np.nan}, "finite"),
        ({"progress": 1}, "progress"),
        ({"mech": None}, "mech"),
    ],
)
def test_refusals(options, words):
    mech = mechanism("five_bar")
    found = hc.assembly_modes(mech, [2.2, 0.9], tries=10)
    if options.get("found") == "four_bar":
        options = {"found": hc.assembly_modes(mechanism("four_bar"), [1.0], tries=5)}
    with pytest.raises(hc.InputError, match=words):
        hc.joined_modes(**{"mech": mech, "found": found, **options})
    joined = hc.joined_modes(mech, found)
    for i in (2, -1, 0.5, None):
        with pytest.raises(hc.InputError, match="number of a mode"):
            joined.path(i, 0)
