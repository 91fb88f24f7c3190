"""Motors that are dragged along the closed motions: on one branch, or stopped with words."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
import zoo

import holoctl as hc
from holoctl.app.view.dragging import motions_at
from holoctl.app.view.shown_posture import dragged, opened, sliders
from holoctl.closing.rank import scaled_jacobian

SHIPPED = ("four_bar", "five_bar", "delta", "stewart", "leg", "geared_arm", "ankle")
EXTRA = {
    "slider_crank": zoo.slider_crank,
    "parallelogram": zoo.parallelogram,
    "rocker": lambda: with_motors(zoo.four_bar(), "rocker"),
    "two_feet": lambda: zoo.feet(2, 4),
    "in_series": lambda: zoo.in_series(4),
    "geared": lambda: dataclasses.replace(
        zoo.five_bar(), actuated=(), actuation=[[2.0, 1.0], [0, 0], [0, -3.0], [0, 0]]
    ),
    "under": lambda: with_motors(zoo.five_bar(), "left"),
}
ALL = {name: lambda name=name: hc.load(hc.robot_file(name)) for name in SHIPPED}
ALL |= zoo.ZOO | EXTRA


def with_motors(mech, *names):
    return dataclasses.replace(mech, actuated=names)


def of_motors(mech, q):
    """``B' x`` of the coordinates, which are numbers."""
    return mech.B.T @ q if mech.nq == mech.nv else mech.motor_positions(q)


def sign(mech, q):
    """Of the determinant of rows and motors, where they are as many as coordinates; else 0."""
    K = np.vstack([scaled_jacobian(mech, q, 0.0)[0], mech.B.T * mech.column_scale])
    return np.sign(np.linalg.det(K)) if K.shape[0] == K.shape[1] else 0.0


def gap(mech, q):
    return np.abs(scaled_jacobian(mech, q, 0.0)[1]).max(initial=0.0)


def difference(mech, a, b):
    return np.abs(pin.difference(mech.model, a, b) / mech.column_scale).max()


def independent(mech, part, q):
    """Whether all motors are."""
    T = motions_at(mech, part, q)
    return np.linalg.matrix_rank((mech.B.T * mech.column_scale) @ T, 1e-6) == mech.nu


def random_drags(mech, count, seed):
    """Postures on a random way, from anywhere on a slider to anywhere."""
    rng, at = np.random.default_rng(seed), opened(mech)
    assert at.closed
    assert not at.words
    assert at.gap < 1e-11
    here = sliders(at)
    for _ in range(count):
        motor = int(rng.integers(mech.nu))
        low, high = np.maximum(here[motor].low, -20.0), np.minimum(here[motor].high, 20.0)
        target = rng.choice([low, high, rng.uniform(low, high)])
        new = dragged(at, motor, target)
        yield at, new, motor, target
        at = new


def stay_closed_and_on_their_branch(name, count):
    mech, most = ALL[name](), 1e-9
    start = sign(mech, opened(mech).q)
    for before, after, motor, target in random_drags(mech, count, len(name)):
        assert gap(mech, after.q) <= most
        assert after.closed
        assert after.gap == pytest.approx(gap(mech, after.q), abs=1e-11)
        there = of_motors(mech, after.q) if not mech.motors.missing else after.motors
        apart = (there - after.motors + np.pi) % (2.0 * np.pi) - np.pi  # turns count on
        assert np.abs(apart).max() < 1e-9
        if not after.words:
            assert after.motors[motor] == target
        if independent(mech, before.part, before.q):
            others = np.delete(np.abs(after.motors - before.motors), motor)
            assert (others <= 1e-9).all()
            assert before.part.rank == after.part.rank
            assert sign(mech, after.q) == start


@pytest.mark.parametrize("name", ALL)
def test_drags_from_end_to_end_stay_closed_and_on_their_branch(name):
    stay_closed_and_on_their_branch(name, 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_many_drags(name):
    stay_closed_and_on_their_branch(name, 30)


@pytest.mark.parametrize("name", ["five_bar", "delta", "stewart", "spatial_arms", "idle_rod"])
def test_one_long_drag_is_many_short_ones_and_what_assembly_finds(name):
    mech = ALL[name]()
    start = opened(mech)
    one = sliders(start)[0]
    goal = one.value + 0.4 * (one.high - one.value)
    at_once = dragged(start, 0, goal)
    goal, steps, q = at_once.motors[0], start, start.q.copy()
    for x in np.linspace(one.value, goal, 21)[1:]:
        steps = dragged(steps, 0, x)
        before, q = q, mech_with_motor(mech, q, x)
        q, _ = hc.assemble(mech, q, locked=mech.actuated, weights=0.0 * mech.column_scale + 1.0)
        assert difference(mech, before, q) < 0.5
    idle = 1e-3 if name == "idle_rod" else 1e-7  # the rod may spin, and does nearly not
    assert difference(mech, at_once.q, steps.q) < idle
    if name != "idle_rod" and not at_once.words:
        assert difference(mech, at_once.q, q) < 1e-7


def mech_with_motor(mech, q, x):
    """q with the first motor at x."""
    q = q.copy()
    q[mech.motors.where[0]] = x
    return q


def tip(left, right):
    """Of the five-bar of the zoo, on the upper side of the line between its elbows."""
    a, b = (
        np.array([x, 0.0]) + 0.3 * np.array([np.cos(angle), np.sin(angle)])
        for x, angle in ((-0.1, left), (0.1, right))
    )
    half = 0.5 * (b - a)
    height = np.sqrt(0.4**2 - half @ half)
    return a + half + height * np.array([-half[1], half[0]]) / np.linalg.norm(half)


def test_the_five_bar_by_two_circles():
    mech, at = zoo.five_bar(), opened(zoo.five_bar())
    rng = np.random.default_rng(5)
    for motor, target in zip([0, 1] * 8, rng.uniform(0.3, 2.8, 16), strict=True):
        at = dragged(at, motor, target)
        left, left_rod = at.q[:2]
        found = np.array([-0.1, 0.0])
        found += 0.3 * np.array([np.cos(left), np.sin(left)])
        found += 0.4 * np.array([np.cos(left + left_rod), np.sin(left + left_rod)])
        assert found == pytest.approx(tip(*at.motors), abs=1e-9)
    assert mech.motor_positions(at.q) == pytest.approx(at.motors, abs=1e-12)


def wide_five_bar(apart=0.8):
    """Bases so far apart that both rods stretch before the arms have gone round."""
    m = zoo.vertical(pin.Model())
    for side, x in (("left", -0.5 * apart), ("right", 0.5 * apart)):
        zoo.add_body(m, 0, pin.JointModelRZ(), zoo.at(x), side, zoo.bar(0.3))
        zoo.add_body(m, side, pin.JointModelRZ(), zoo.at(0.3), f"{side}_rod", zoo.bar(0.4))
    loop = hc.Closure(("left_rod", zoo.at(0.4)), ("right_rod", zoo.at(0.4)), axes="x y", name="tip")
    return hc.Mechanism(m, [loop], ["left", "right"], reference=[1.6, -0.8, 1.5, 0.8])


def test_a_five_bar_stops_where_its_rods_are_in_line_and_says_so():
    start = opened(wide_five_bar())
    stop = dragged(start, 0, start.motors[0] + 2.5)
    assert "dead point" in stop.words
    assert "'left_rod' and 'right_rod' are in line" in stop.words
    assert stop.closed
    assert stop.gap < 1e-11
    # where the elbows are 0.8 apart, the rods are stretched; not beyond, and just before
    elbows = [
        x + 0.3 * np.array([np.cos(a), np.sin(a)])
        for x, a in zip(np.array([[-0.4, 0.0], [0.4, 0.0]]), stop.motors, strict=True)
    ]
    assert 0.8 - 1e-4 < np.linalg.norm(elbows[1] - elbows[0]) < 0.8
    for _ in range(5):  # pressed against it, it stays there
        pressed = dragged(stop, 0, start.motors[0] + 2.5)
        assert pressed.words
        assert difference(stop.mech, pressed.q, stop.q) < 0.02
        stop = pressed
    back = dragged(stop, 0, start.motors[0])
    assert not back.words
    assert back.q == pytest.approx(start.q, abs=1e-9)
    other = dragged(stop, 1, stop.motors[1] + 0.1)
    assert not other.words
    assert other.gap < 1e-11


def test_dead_points_of_linkages_are_told():
    rocker = dragged(opened(EXTRA["rocker"]()), 0, 4.0)
    assert "'coupler' and 'crank' are in line" in rocker.words
    slider = dragged(opened(zoo.slider_crank()), 0, 0.8)
    assert "'crank' and 'rod' are in line" in slider.words
    assert slider.motors[0] < 0.7
    flat = dragged(opened(zoo.parallelogram()), 0, -1.0)
    assert "singular configuration" in flat.words
    assert "paths of the mechanism cross" in flat.words
    assert 0.0 < flat.q[0] < 1e-3
    there = opened(zoo.slider_crank(reference=zoo.DEAD_CENTRE))
    assert "at its own dead point" in dragged(there, 0, 0.6).words


def test_right_in_front_of_a_dead_point_it_goes_back_in_one_event():
    start = opened(zoo.spatial_arms())
    for motor, target in ((0, -4.0), (1, -4.0), (2, -4.0)):
        stop = dragged(start, motor, target)
        assert "dead point" in stop.words
        for creep in 10.0 ** np.arange(-3.0, -9.0, -1.0):
            stop = dragged(stop, motor, stop.motors[motor] - creep)
        back = dragged(stop, motor, start.motors[motor])
        assert not back.words
        assert back.q == pytest.approx(start.q, abs=1e-8)


def test_more_motors_than_motions_follow_as_little_as_they_can():
    start = opened(zoo.three_motors())
    there = dragged(start, 0, start.motors[0] + 0.2)
    assert there.gap < 1e-11
    assert there.motors[0] == start.motors[0] + 0.2
    assert (np.abs(there.motors - start.motors)[1:] > 1e-3).all()
    # a step of the five-bar itself: the least |right|^2 + |left_rod|^2
    T = motions_at(start.mech, start.part, start.q)
    own = np.linalg.lstsq(T[[0]], [1.0], rcond=None)[0]
    Z = np.linalg.svd(T[[0]])[2][1:].T
    y = own - Z @ np.linalg.lstsq(T[[2, 1]] @ Z, T[[2, 1]] @ own, rcond=None)[0]
    little = dragged(start, 0, start.motors[0] + 1e-5)
    assert (little.q - start.q) / 1e-5 == pytest.approx(T @ y, abs=1e-3)
    back = dragged(there, 0, start.motors[0])
    assert back.q == pytest.approx(start.q, abs=1e-4)


def test_what_no_motor_drives_stays_still():
    start = opened(zoo.floating_leg())
    there = dragged(start, 1, start.motors[1] + 0.5)
    moved = pin.difference(start.mech.model, start.q, there.q)
    columns = {name: i for i, name in enumerate(start.mech.coordinate_names)}
    still = [i for name, i in columns.items() if name.startswith(("base", "head", "hip", "wheel"))]
    assert np.abs(moved[still]).max() < 1e-12
    assert abs(moved[columns["knee"]]) > 0.1
    rod = opened(zoo.idle_rod())
    there = dragged(rod, 0, rod.motors[0] + 0.3)
    idle = hc.mobility(rod.mech, rod.q).idle_motions[0]
    spin = np.zeros(rod.mech.nv)
    for name, rate in idle.rates:
        spin[rod.mech.coordinate_names.index(name)] = rate
    moved = pin.difference(rod.mech.model, rod.q, dragged(rod, 0, rod.motors[0] + 1e-4).q)
    assert abs(moved @ spin) < 1e-6 * np.linalg.norm(moved) * np.linalg.norm(spin)
    under = opened(EXTRA["under"]())
    step = dragged(under, 0, under.motors[0] + 1e-4)
    T = motions_at(under.mech, under.part, under.q)
    y = np.linalg.pinv(T[[0]]) @ [1e-4]  # the shortest of all that move the motor so
    assert step.q - under.q == pytest.approx(T @ y, abs=1e-7)


def test_a_standing_robot_moves_its_trunk_only_as_far_as_it_must():
    start = opened(zoo.held_foot())
    there = dragged(start, 3, start.motors[3] + 0.3)
    assert not there.words
    assert np.abs(np.delete(there.motors - start.motors, 3)).max() == 0.0
    assert np.linalg.norm(there.q[:3] - start.q[:3]) > 0.01  # the foot is held, the trunk is not


def test_limits_of_joints_stop_it_also_passive_ones():
    leg = opened(hc.load(hc.robot_file("leg")))
    stop = dragged(leg, 2, 1.5)
    knee = leg.mech.coordinate_names.index("knee")
    assert stop.words == "'knee' is at its limit, 0.1."
    assert 0.1 - 1e-6 < stop.q[knee] <= 0.1
    assert not dragged(stop, 2, leg.motors[2]).words
    assert dragged(stop, 2, 1.5).words == stop.words
    past = dataclasses.replace(
        leg.mech, limits=hc.Limits(position={"knee": (-1.6, leg.q[knee] - 0.1)})
    )
    out = opened(past)
    assert "'knee' is past its limit" in dragged(out, 2, out.motors[2] + 0.1).words
    assert not dragged(out, 2, out.motors[2] - 0.05).words
    cut = dataclasses.replace(
        zoo.five_bar("revolute"), limits=hc.Limits(position={"tip": (-2.2, 2.2)})
    )
    start = opened(cut)
    stop = dragged(start, 0, start.motors[0] + 2.0)
    assert stop.words.startswith("'tip' is at its limit")


def test_what_is_locked_or_does_not_close_says_so():
    truss = opened(zoo.triangle())
    assert truss.closed
    assert "locked" in dragged(truss, 0, 1.0).words
    base = zoo.six_row_four_bar()
    m = base.model.copy()
    fixed = hc.Coupling({"crank": 1.0}, offset=float(opened(base).q[0]), name="pin down")
    locked = opened(hc.Mechanism(m, [fixed], ["crank", "rocker"], reference=opened(base).q))
    assert "'crank' is locked" in dragged(locked, 0, 0.0).words
    assert not dragged(locked, 1, 0.2).words
    open_one = opened(zoo.four_bar(lengths=(0.2, 0.2, 0.2, 2.0)))
    assert not open_one.closed
    assert open_one.gap > 0.1
    assert "no configuration closes it" in open_one.words
    assert open_one.part is None
    assert np.isfinite(open_one.q).all()
    assert dragged(open_one, 0, 1.0) is open_one
    flat = opened(dataclasses.replace(zoo.parallelogram(), reference=[0.0, 0.0, 0.0]))
    assert flat.closed
    assert "singular" in flat.words
    assert dragged(flat, 0, 0.3).words == flat.words


def test_sliders():
    found = sliders(opened(hc.load(hc.robot_file("stewart"))))
    assert [(s.unit, s.low, s.high) for s in found] == [("m", 0.0, 0.2)] * 6
    crank = sliders(opened(hc.load(hc.robot_file("four_bar"))))[0]
    assert crank.unit == "rad"
    assert crank.high - crank.low == pytest.approx(2.0 * np.pi)
    rotor = sliders(opened(hc.load(hc.robot_file("geared_arm"))))[0]
    assert rotor.high == pytest.approx(50.0 * np.pi)  # half a turn of the turntable
    slide = sliders(opened(zoo.slider_crank()))[0]
    assert slide.unit == "m"
    assert 0.1 < slide.high - slide.low < 0.6
    turned = opened(zoo.four_bar())
    for k in range(1, 8):  # round and round: turns are counted
        turned = dragged(turned, 0, 1.0 + k)
    assert turned.motors[0] == 8.0
    with pytest.raises(hc.InputError, match="number of motors"):
        dragged(turned, 1, 0.0)
    with pytest.raises(hc.InputError, match="finite"):
        dragged(turned, 0, float("nan"))


@pytest.mark.parametrize("ends", [(-np.inf, -1.0), (1.0, np.inf), (5.0, 8.0), (-40.0, -9.0)])
@pytest.mark.parametrize("joint", [pin.JointModelPX, pin.JointModelRZ])
def test_a_slider_far_past_a_limit_leads_back_over_it(joint, ends):
    m = zoo.vertical(pin.Model())
    zoo.add_body(m, 0, joint(), zoo.at(), "one", zoo.bar(0.3))
    start = opened(hc.Mechanism(m, [], ["one"], limits=hc.Limits(position={"one": ends})))
    slider = sliders(start)[0]
    assert slider.low <= 0.0 <= slider.high
    inside = slider.low if ends[1] < 0.0 else slider.high
    assert ends[0] <= inside <= ends[1]
    back = dragged(start, 0, inside)
    assert not back.words
    assert back.motors[0] == inside
