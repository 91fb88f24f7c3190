"""`hc.assembly_modes` against circle intersections and other closed forms."""

from __future__ import annotations

import dataclasses

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
import zoo
from linkages import LINKAGES
from overconstrained_drawing import meet
from support import few, mechanism
from zoo import add_body, at, bar

import holoctl as hc


def same_sets(found, wanted, tol=1e-8):
    """Whether two lists of arrays are the same but for their order."""
    found, wanted = np.array(found), np.array(wanted)
    assert found.shape == wanted.shape
    d = np.abs(found[:, None] - wanted).reshape(len(found), len(wanted), -1).max(axis=2)
    assert (d.min(axis=0) < tol).all()
    assert (d.min(axis=1) < tol).all()


def place(mech, name, q, point=(0.0, 0.0, 0.0)):
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    return data.oMi[mech.model.getJointId(name)].act(np.array(point, float))


def book(found):
    """What holds of all results."""
    assert sum(m.found for m in found.modes) + found.open + found.moving == found.tries
    distances = [round(m.distance, 6) for m in found.modes]
    assert distances == sorted(distances)
    return found


# ------------------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("crank", [0.3, 1.0, 2.5, -2.0])
@pytest.mark.parametrize("name", ["four_bar", "four_bar_weldless", "six_row_four_bar"])
def test_a_four_bar_closes_where_two_circles_meet(name, crank):
    mech = mechanism(name)
    found = book(hc.assembly_modes(mech, [crank], tries=20))
    elbow = 0.2 * np.array([np.cos(crank), np.sin(crank)])
    wanted = [meet(elbow, 0.5, (0.5, 0.0), 0.4, side) for side in (1.0, -1.0)]
    same_sets([place(mech, "rocker", m.q, (0.4, 0, 0))[:2] for m in found.modes], wanted)
    assert sorted(m.sign for m in found.modes) == [-1, 1]
    for m in found.modes:
        assert hc.constraint_errors(mech, m.q).closure < 1e-12
        assert abs(m.q[0] - crank) < 1e-15
        assert not m.singular


@pytest.mark.parametrize("motors", [(2.2, 0.9), (1.0, 2.0), (-0.5, 2.9), (3.0, -2.0)])
def test_a_five_bar_closes_in_two_ways_not_four(motors):
    """Its motors place both elbows, so that two circles are left to meet."""
    mech = mechanism("five_bar")
    found = book(hc.assembly_modes(mech, motors, tries=20))
    elbows = [
        np.array([x + 0.3 * np.cos(a), 0.3 * np.sin(a)])
        for x, a in zip((-0.1, 0.1), motors, strict=True)
    ]
    wanted = [meet(elbows[0], 0.4, elbows[1], 0.4, side) for side in (1.0, -1.0)]
    same_sets([place(mech, "left_rod", m.q, (0.4, 0, 0))[:2] for m in found.modes], wanted)
    assert sorted(m.sign for m in found.modes) == [-1, 1]


def test_where_both_modes_meet_it_is_one_and_singular():
    mech = mechanism("five_bar")  # elbows 0.8 apart, rods in line
    found = book(hc.assembly_modes(mech, [np.pi, 0.0], tries=12))
    (mode,) = found.modes
    assert mode.singular
    assert mode.sign == 0
    assert mode.kind == "singular"
    assert np.abs(place(mech, "left_rod", mode.q, (0.4, 0, 0))[:2]).max() < 1e-6


def test_out_of_reach_the_best_residual_is_told():
    mech = mechanism("four_bar")
    short = zoo.four_bar(lengths=(0.2, 0.5, 0.4, 1.05))
    with pytest.raises(hc.AssemblyError, match=r"motors at crank 3\.1.*an error of") as caught:
        hc.assembly_modes(short, [3.14], tries=5)
    assert 0.01 < caught.value.residual < 1.0
    assert caught.value.worst[0][0] == "pin.x"
    assert caught.value.q.shape == (mech.nq,)
    away = zoo.facing_away()
    with pytest.raises(hc.AssemblyError, match="opposite directions") as caught:
        hc.assembly_modes(away, [1.0], tries=5)
    assert caught.value.opposite == ("pin",)


def three_rrr():
    """A triangle on three legs in the plane, none like another."""
    m = pin.Model()
    base = [(0.0, 0.0), (1.0, 0.1), (0.4, 0.9)]
    corners, arms, rods = [(0.0, 0.0), (0.45, 0.0), (0.2, 0.4)], (0.4, 0.45, 0.42), (0.5, 0.4, 0.45)
    for i, (x, y) in enumerate(base):
        add_body(m, 0, pin.JointModelRZ(), at(x, y), f"arm_{i}", bar(arms[i]))
        add_body(m, f"arm_{i}", pin.JointModelRZ(), at(arms[i]), f"rod_{i}", bar(rods[i]))
        if i == 0:
            add_body(m, "rod_0", pin.JointModelRZ(), at(rods[0]), "table", bar(0.4))
    loops = [
        hc.Closure(("table", at(*corners[i])), (f"rod_{i}", at(rods[i])), axes="x y", name=f"c{i}")
        for i in (1, 2)
    ]
    mech = hc.Mechanism(m, loops, ["arm_0", "arm_1", "arm_2"], name="three_rrr")
    return mech, base, corners, arms, rods


def poses_of_three_rrr(motors, base, corners, arms, rods, count=20_000):
    """By its turn: two corners' circles are left, less one another a line; then a scalar root."""
    elbows = np.array(base) + np.array(arms)[:, None] * np.array([np.cos(motors), np.sin(motors)]).T
    turns = np.linspace(-np.pi, np.pi, count + 1)

    def point(turn):
        R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        centre = elbows - np.array(corners) @ R.T  # of the circle of the table's corner 0
        A = 2.0 * (centre[1:] - centre[0])
        b = [rods[0] ** 2 - rods[i] ** 2 + centre[i] @ centre[i] - centre[0] @ centre[0]
             for i in (1, 2)]  # fmt: skip
        x = np.linalg.solve(A, b)
        return x, np.sum((x - centre[0]) ** 2) - rods[0] ** 2

    values = [point(turn)[1] for turn in turns]
    found = []
    for a, b, fa, fb in zip(turns, turns[1:], values, values[1:], strict=False):
        if fa * fb < 0.0 and max(abs(fa), abs(fb)) < 1.0:
            low, high, f_low = a, b, fa
            for _ in range(60):
                middle = 0.5 * (low + high)
                f = point(middle)[1]
                low, high, f_low = (middle, high, f) if f * f_low > 0.0 else (low, middle, f_low)
            found.append([*point(low)[0], np.cos(low), np.sin(low)])
    return found


@pytest.mark.parametrize(
    "motors", few([(1.2, 2.2, -1.0), (0.4, 1.5, -2.0), (0.8, 2.8, -0.6)], [(1.2, 2.2, -1.0)])
)
def test_three_rrr_closes_where_its_polynomial_has_roots(motors):
    mech, *sizes = three_rrr()
    wanted = poses_of_three_rrr(motors, *sizes)
    assert 2 <= len(wanted) <= 6
    found = book(hc.assembly_modes(mech, motors, tries=150))
    shown = []
    for m in found.modes:
        corner = place(mech, "table", m.q)
        along = place(mech, "table", m.q, (1.0, 0.0, 0.0)) - corner
        shown.append([*corner[:2], *along[:2]])
    same_sets(shown, wanted)
    assert sum(m.sign for m in found.modes) == 0  # roots of one function: signs alternate


def test_a_rod_that_spins_is_one_mode_for_each_place_of_its_ends():
    mech = mechanism("idle_rod")
    found = book(hc.assembly_modes(mech, {"crank": 0.7}, tries=40))
    tip = 0.2 * np.array([np.cos(0.7), np.sin(0.7), 0.0])
    # |p - tip| = 0.7 with p = (0.6, 0.4 cos, -0.2 + 0.4 sin)
    a, b = -0.8 * tip[1], -0.16 - 0.8 * tip[2]
    c = 0.49 - (0.6 - tip[0]) ** 2 - tip[1] ** 2 - (0.2 + tip[2]) ** 2 - 0.16
    middle, half = np.arctan2(b, a), np.arccos(c / np.hypot(a, b))
    wanted = np.exp(1j * np.array([[middle + half], [middle - half]]))
    rocker = mech.model.joints[mech.model.getJointId("rocker")].idx_q
    same_sets([[np.exp(1j * m.q[rocker])] for m in found.modes], wanted)
    again = hc.assembly_modes(mech, {"crank": 0.7}, tries=40, seed=5)  # the spin is no matter
    ends = [(0.0, 0.0, 0.0), (0.3, 0.2, 0.1)]
    shown = ([[place(mech, "rod", m.q, x) for x in ends] for m in f.modes] for f in (found, again))
    same_sets(*shown, 1e-6)


def test_a_stewart_platform():
    mech = hc.load(hc.robot_file("stewart"))
    home, _ = hc.assemble(mech)
    found = book(hc.assembly_modes(mech, mech.motor_positions(home), tries=120))
    assert 4 <= len(found) <= 40
    assert np.abs(found.modes[0].q - home).max() < 1e-6
    top = mech.model.njoints - 1
    poses = []
    for m in found.modes:
        assert hc.constraint_errors(mech, m.q).closure < 1e-10
        assert np.abs(mech.motor_positions(m.q) - mech.motor_positions(home)).max() < 1e-12
        data = mech.model.createData()
        pin.forwardKinematics(mech.model, data, m.q)
        poses.append(np.array([X.homogeneous for X in data.oMi])[1 : top + 1])
    gaps = [np.abs(a - b).max() for i, a in enumerate(poses) for b in poses[:i]]
    assert min(gaps) > 1e-2
    assert "others may exist" in repr(found)
    assert repr(found.modes[0]).startswith("<AssemblyMode: ")


def test_signs_are_those_of_the_lines_of_the_legs():
    """Of a platform on legs between ball joints: Pluecker's coordinates of six lines."""
    mech = LINKAGES["stewart_6sps"]().mechanism()
    home, _ = hc.assemble(mech)
    found = book(hc.assembly_modes(mech, mech.motor_positions(home), tries=80))
    assert len(found) == 8
    names, signs = list(mech.model.names), []
    for m in found.modes:
        data = mech.model.createData()
        pin.forwardKinematics(mech.model, data, m.q)
        heads = {1: data.oMi[names.index("head_1")].translation}
        for i, bound in enumerate(mech.bound, start=2):
            frame = bound.frames1[0]
            heads[i] = data.oMi[frame.joint].act(frame.placement.translation)
        feet = [data.oMi[names.index(f"foot_{i}")].translation for i in range(1, 7)]
        legs = [(heads[i] - foot, heads[i]) for i, foot in enumerate(feet, start=1)]
        lines = [np.append(u, np.cross(p, u)) / np.linalg.norm(u) for u, p in legs]
        signs.append(m.sign * int(np.sign(np.linalg.det(lines))))
    assert signs == [signs[0]] * 8


# -------------------------------------------------------------------------- what is the same mode


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("stephenson", 4),
        ("parallel_bars_3", 1),
        pytest.param("tripteron", 8, marks=pytest.mark.slow),
    ],
)
def test_modes_do_not_depend_on_the_cut_or_on_redundant_rows(name, count):
    linkage = oc.OVERCONSTRAINED[name]().linkage()
    motors = oc.OVERCONSTRAINED[name]().motors
    for choice in (None, 0):
        options = {}
        if choice is not None:
            usual = linkage.mechanism(actuated=motors).constraint_names
            cut = [j for j in usual if j not in motors]
            other = [j for j in linkage.joints if j not in (*cut, *motors)]
            try:
                linkage.mechanism(actuated=motors, cut=[*cut[1:], other[choice]])
            except hc.InputError:
                continue  # that leaves no tree
            options = {"cut": [*cut[1:], other[choice]]}
        mech = linkage.mechanism(actuated=motors, **options)
        home, _ = hc.assemble(mech)
        found = book(hc.assembly_modes(mech, mech.motor_positions(home), tries=100))
        assert len(found) == count


@pytest.mark.parametrize(
    "scale", [1.0, *(pytest.param(x, marks=pytest.mark.slow) for x in (1e-3, 1e3))]
)
def test_legs_that_rolled_are_one_mode_in_any_unit(scale):
    """A car's axle: for each side four places of the upright, and of its tie rod one each."""
    mech = oc.OVERCONSTRAINED["wishbones"](scale=scale).mechanism()
    home, _ = hc.assemble(mech)
    found = book(hc.assembly_modes(mech, mech.motor_positions(home), tries=100))
    assert len(found) == 16


def test_what_moves_with_its_motors_held_is_no_mode():
    """Peaucellier's rhombus may fold: its tip is then free to turn."""
    mech = oc.OVERCONSTRAINED["peaucellier"]().mechanism()
    home, _ = hc.assemble(mech)
    found = book(hc.assembly_modes(mech, mech.motor_positions(home), tries=60))
    assert found.moving > 10
    assert not any(m.singular for m in found.modes)
    assert "moves with its motors held" in repr(found)


def test_a_base_that_floats_stays_and_wheels_that_turn_without_end_are_motors():
    mech = mechanism("floating_leg")
    motors = {"hip": 0.2, "motor_crank": 0.3, "wheel": 2.0}
    found = book(hc.assembly_modes(mech, motors, tries=20))
    assert len(found) == 2
    for m in found.modes:
        assert np.abs(m.q[:7] - mech.reference[:7]).max() < 1e-15
        assert np.abs(mech.motor_positions(m.q) - [0.2, 0.3, 2.0]).max() < 1e-12


def test_more_motors_than_motions():
    mech = mechanism("three_motors")
    home, _ = hc.assemble(mech)
    motors = mech.motor_positions(home)
    assert len(book(hc.assembly_modes(mech, motors, tries=10))) == 1
    with pytest.raises(hc.AssemblyError, match="contradict"):
        hc.assembly_modes(mech, np.add(motors, [0.0, 0.0, 0.1]), tries=5)


def test_without_motors_a_truss_has_modes_and_what_moves_has_none():
    truss = dataclasses.replace(zoo.triangle(), actuated=[])
    assert len(book(hc.assembly_modes(truss, [], tries=10))) == 2
    loose = dataclasses.replace(zoo.four_bar(), actuated=[])
    with pytest.raises(hc.NotActuatedError, match="it still moves"):
        hc.assembly_modes(loose, {}, tries=3)


@pytest.mark.parametrize(
    ("name", "moving"), [("universal_rods", "rod_2"), ("standing_leg", "trunk")]
)
def test_passive_motions_are_a_continuum(name, moving):
    mech = mechanism(name)
    with pytest.raises(hc.NotActuatedError, match=r"continuum.*actuated") as caught:
        hc.assembly_modes(mech, mech.motor_positions(hc.assemble(mech)[0]), tries=3)
    assert moving in str(caught.value)


def test_rounded_geometry_closes_as_it_is_meant():
    exact = oc.OVERCONSTRAINED["goldberg"]().mechanism()
    mech = dataclasses.replace(oc.in_digits(exact, 4), tolerance=1e-3)
    home, _ = hc.assemble(exact)
    motors = exact.motor_positions(home)
    wanted = hc.assembly_modes(exact, motors, tries=30)
    found = book(hc.assembly_modes(mech, motors, tries=30))
    assert len(found) == len(wanted) == 2
    same_sets([m.q for m in found.modes], [m.q for m in wanted.modes], 1e-2)
    assert 1e-9 < hc.constraint_errors(mech, found.modes[0].q).closure < 1e-3


def test_starts_where_a_constraint_is_not_defined_do_not_close():
    model = mechanism("sine_gear").model
    root = hc.Custom(lambda q: np.array([q[1] - np.sqrt(1.5 - q[0] ** 2)]), name="root")
    mech = hc.Mechanism(model, [root], ["elbow"], reference=[0.5, 1.1])
    found = book(hc.assembly_modes(mech, [1.1], tries=30))
    same_sets([m.q[0] for m in found.modes], [np.sqrt(0.29), -np.sqrt(0.29)])
    assert 0 < found.open < 30


def test_time():
    mech = mechanism("timed_arm")
    for t in (0.0, 0.7):
        home, _ = hc.assemble(mech, t=t)
        found = book(hc.assembly_modes(mech, mech.motor_positions(home), tries=20, t=t))
        for m in found.modes:
            assert hc.constraint_errors(mech, m.q, t=t).closure < 1e-10


def test_the_same_seed_gives_the_same_result():
    mech = mechanism("universal_chain")
    motors = mech.motor_positions(hc.assemble(mech)[0])
    a, b = (hc.assembly_modes(mech, motors, tries=60, seed=3) for _ in range(2))
    assert len(a) == 4
    for x, y in zip(a.modes, b.modes, strict=True):
        assert np.array_equal(x.q, y.q)
        assert (x.sign, x.found) == (y.sign, y.found)
    assert len(a.rows) == len(a.coordinates) == 4
    with pytest.raises(ValueError, match="read-only"):
        a.modes[0].q[0] = 0.0


@pytest.mark.parametrize(
    ("motors", "words"),
    [
        ([1.0], r"motors.*shape \(2,\)"),
        ([1.0, np.nan], "must be finite"),
        ({"left": 1.0}, "'right' missing"),
        ({"left": 1.0, "rihgt": 2.0}, "did you mean 'right'"),
        ({"left": 1.0, "right": "2"}, "right"),
        (None, "motors"),
    ],
)
def test_refusals(motors, words):
    with pytest.raises(hc.InputError, match=words):
        hc.assembly_modes(mechanism("five_bar"), motors, tries=2)


def test_motors_without_a_position_are_named():
    with pytest.raises(hc.InputError, match=r"'plate\[0\]'"):
        hc.assembly_modes(mechanism("hung_plate"), [0.0])
    base = zoo.five_bar()
    by_matrix = hc.Mechanism(base.model, base.constraints, actuation=np.eye(4)[:, :2])
    with pytest.raises(hc.InputError, match="given by a matrix"):
        hc.assembly_modes(by_matrix, [0.0, 0.0])
    with pytest.raises(hc.InputError, match="tries"):
        hc.assembly_modes(base, [2.2, 0.9], tries=0)
    with pytest.raises(hc.InputError, match="progress"):
        hc.assembly_modes(base, [2.2, 0.9], progress="yes")
