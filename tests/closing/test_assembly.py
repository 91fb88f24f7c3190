"""Assembly: closed, nearest, with what was locked kept, or an error that explains itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from scipy.optimize import minimize
from support import assert_rows_close, closed_states, few, mechanism, rows
from zoo import ZOO, add_body, at, bar, facing_away, triangle

import holoctl as hc

STILL = [n for n in ZOO if n != "timed_arm"]  # whose constraints do not depend on time


@pytest.fixture(params=few(ZOO))
def mech(request):
    return mechanism(request.param)


def test_error_and_rate_vanish(mech):
    rng = np.random.default_rng(0)
    for _ in range(10):
        guess = pin.integrate(mech.model, mech.reference, 0.3 * rng.normal(size=mech.nv))
        q, v = hc.assemble(mech, guess, rng.normal(size=mech.nv))
        r = rows(mech, q, v)
        assert_rows_close(mech, mech.row_scale * r.error, 0.0, 1e-12, (q, v), what="error")
        assert_rows_close(mech, mech.row_scale * r.rate, 0.0, 1e-12, (q, v), what="rate")
        assert np.abs(v).max() > 1e-3
        assert pin.isNormalized(mech.model, q, 1e-12)


@pytest.mark.parametrize("mech", STILL, indirect=True)
def test_a_closed_guess_is_kept(mech):
    q, v = hc.assemble(mech)
    again, v = hc.assemble(mech, q)
    assert np.abs(pin.difference(mech.model, q, again)).max() < 1e-12
    assert not v.any()


def test_the_guess_is_not_touched(mech):
    guess = mech.reference.copy()
    rate = np.ones(mech.nv)
    hc.assemble(mech, guess, rate)
    assert (guess == mech.reference).all()
    assert (rate == 1.0).all()


def test_q_is_a_local_minimum_of_the_weighted_distance(mech):
    """The gradient of the distance has no component along the manifold."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        guess = pin.integrate(mech.model, mech.reference, 0.2 * rng.normal(size=mech.nv))
        weights = rng.uniform(0.2, 3.0, size=mech.nv)
        q, v = hc.assemble(mech, guess, weights=weights)
        d = pin.difference(mech.model, guess, q)
        D = pin.dDifference(mech.model, guess, q, pin.ArgumentPosition.ARG1)
        gamma = hc.project(mech, q, v, "orthonormal", partition=hc.partition(mech, q)).gamma
        assert np.abs(d).max() > 1e-3
        assert np.abs(gamma.T @ (D.T @ (weights * d))).max() < 1e-8


def test_q_is_as_near_as_a_general_optimiser_finds():
    mech = mechanism("spatial_arms")
    rng = np.random.default_rng(2)
    for _ in range(3):
        guess = mech.reference + 0.3 * rng.normal(size=mech.nv)
        weights = rng.uniform(0.5, 2.0, size=mech.nv)
        q, _ = hc.assemble(mech, guess, weights=weights)
        best = minimize(
            lambda x, g=guess, w=weights: (w * (x - g) ** 2).sum(),
            q + 0.01 * rng.normal(size=mech.nv),
            jac=lambda x, g=guess, w=weights: 2.0 * w * (x - g),
            constraints={
                "type": "eq",
                "fun": lambda x: rows(mech, x, np.zeros(mech.nv)).error,
                "jac": lambda x: rows(mech, x, np.zeros(mech.nv)).jacobian,
            },
            method="SLSQP", options={"ftol": 1e-15, "maxiter": 500},
        )  # fmt: skip
        assert (weights * (q - guess) ** 2).sum() <= best.fun * (1.0 + 1e-8)
        assert np.abs(q - best.x).max() < 1e-5


@pytest.mark.parametrize("mech", STILL, indirect=True)
def test_v_solves_the_weighted_least_squares_problem(mech):
    rng = np.random.default_rng(3)
    q, _ = hc.assemble(mech)
    v0, w = rng.normal(size=mech.nv), rng.uniform(0.2, 3.0, size=mech.nv)
    _, v = hc.assemble(mech, q, v0, weights=w)
    G = rows(mech, q, v).jacobian
    s = 1.0 / np.sqrt(w)  # the nearest point of the null space in the metric W
    expected = v0 - s * (np.linalg.pinv(G * s, rcond=1e-10) @ (G @ v0))
    assert np.abs(v - expected).max() < 1e-10


def test_weights_of_zero_let_coordinates_move_freely():
    mech = mechanism("five_bar")
    guess = mech.reference + np.array([0.2, 0.1, -0.1, 0.3])
    q, _ = hc.assemble(mech, guess, weights={"left_rod": 0.0, "right_rod": 0.0})
    assert np.abs((q - guess)[[0, 2]]).max() < 1e-9  # the motors need not move: the rods meet
    q, v = hc.assemble(mech, q, [1.0, 0.0, -1.0, 0.0], weights=[1.0, 0.0, 1.0, 0.0])
    assert np.abs(v[[0, 2]] - [1.0, -1.0]).max() < 1e-12


@pytest.mark.parametrize("mech", [n for n in ZOO if n != "hung_plate"], indirect=True)
def test_locked_coordinates_keep_position_and_rate(mech):
    name = mech.actuated[0]
    i = mech.coordinate_names.index(name)
    q, v = hc.assemble(mech, None, np.ones(mech.nv), locked=[name])
    assert pin.difference(mech.model, mech.reference, q)[i] == 0.0
    assert v[i] == 1.0
    r = rows(mech, q, v)
    assert max(np.abs(r.error).max(), np.abs(r.rate).max()) < 1e-11


def test_a_locked_joint_stays_as_a_whole():
    mech = mechanism("floating_leg")
    guess = pin.integrate(mech.model, mech.reference, 0.2 * np.ones(mech.nv))
    q, _ = hc.assemble(mech, guess, locked=["base", "hip"])
    assert (q[:7] == guess[:7]).all()
    with pytest.raises(hc.InputError, match="belong to one rotation"):
        hc.assemble(mech, guess, locked=["base[1]"])


def test_a_bar_that_is_too_long_is_named():
    mech = ZOO["four_bar"]()
    far = hc.Closure(("coupler", at(5.0)), ("rocker", at(0.1)), axes="x y", name="long bar")
    with pytest.raises(hc.AssemblyError, match="too long") as caught:
        hc.assemble(hc.Mechanism(mech.model, [far]))
    error = caught.value
    assert error.residual > 0.1
    assert error.worst[0][0].startswith("long bar.")
    assert error.q is not None
    assert error.q.shape == (3,)


def flat_pair(turn):
    """A four-bar whose closing pin has its second frame turned by `turn` about x."""
    mech = ZOO["four_bar"]()
    R = pin.rpy.rpyToMatrix(turn, 0.0, 0.0)
    loop = hc.Closure(("coupler", at(0.5)), ("rocker", at(0.4, R=R)), joint="revolute", name="pin")
    return hc.Mechanism(mech.model, [loop], reference=mech.reference)


def test_frames_that_face_opposite_ways_are_told():
    hc.assemble(flat_pair(0.0))
    with pytest.raises(hc.AssemblyError, match=r"'pin' in opposite directions"):
        hc.assemble(flat_pair(np.pi))


def test_closure_axes_are_parallel_from_any_start():
    """A spatial loop with a revolute closure: direction rows also vanish antiparallel."""
    rng = np.random.default_rng(4)
    m = pin.Model()
    parent = 0
    for i in range(7):
        R = pin.exp3(rng.normal(size=3))
        parent = add_body(m, parent, pin.JointModelRZ(), at(0.3, 0.1, 0.0, R), f"j{i}", bar(0.3))
    end = pin.SE3(pin.exp3(rng.normal(size=3)), np.array([0.3, 0.0, 0.0]))
    home = pin.SE3(pin.exp3(rng.normal(size=3)), np.array([0.5, 0.2, 0.4]))
    loop = hc.Closure(("universe", home), ("j6", end), joint="revolute")
    mech = hc.Mechanism(m, [loop])
    closed = 0
    for _ in range(30):
        q, _ = hc.assemble(mech, rng.uniform(-np.pi, np.pi, size=7), restarts=50)
        data = m.createData()
        pin.forwardKinematics(m, data, q)
        z1, z2 = home.rotation[:, 2], (data.oMi[7] * end).rotation[:, 2]
        closed += 1
        assert z1 @ z2 == pytest.approx(1.0, abs=1e-10)
    assert closed == 30


@pytest.mark.parametrize("joint", ["weld", "prismatic", "revolute", "universal", "cylindrical"])
def test_every_joint_closes_a_floating_body(joint):
    """A free body tied to the world: what is left free is what the joint leaves free."""
    m = pin.Model()
    add_body(m, 0, pin.JointModelFreeFlyer(), at(), "body", bar(0.3))
    here = pin.SE3(pin.exp3(np.array([0.3, -0.2, 0.9])), np.array([0.1, 0.2, 0.3]))
    mech = hc.Mechanism(m, [hc.Closure(("universe", here), "body", joint=joint)])
    rng = np.random.default_rng(5)
    for _ in range(20):
        guess = pin.integrate(m, pin.neutral(m), rng.normal(size=6))
        q, v = hc.assemble(mech, guess)
        assert np.abs(rows(mech, q, v).error).max() < 1e-12
        expected = {"weld": 6, "prismatic": 5, "revolute": 5, "universal": 4, "cylindrical": 4}
        assert hc.partition(mech, q).rank == expected[joint]
        if joint == "weld":
            assert np.abs(pin.XYZQUATToSE3(q).homogeneous - here.homogeneous).max() < 1e-11


def test_a_rod_takes_its_length_from_the_reference():
    mech = mechanism("hung_plate")
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, mech.reference)

    def distance(rod):
        (_, hook), (_, corner) = rod.a, rod.b
        return np.linalg.norm(data.oMi[1].act(corner.translation) - hook.translation)

    given = [dataclasses.replace(rod, length=distance(rod)) for rod in mech.constraints]
    explicit = dataclasses.replace(mech, constraints=given)
    for q, v in closed_states("hung_plate", 5):  # rows have the length in their denominator
        one, other = rows(mech, q, v), rows(explicit, q, v)
        assert_rows_close(mech, one.error, other.error, 1e-12, (q, v), what="error")
        assert_rows_close(mech, one.jacobian, other.jacobian, 1e-12, (q, v), what="G")
    longer = hc.Rod(given[0].a, given[0].b, 1.1 * given[0].length)
    q, _ = hc.assemble(hc.Mechanism(mech.model, [longer]))
    pin.forwardKinematics(mech.model, data, q)
    assert distance(longer) == pytest.approx(longer.length, abs=1e-11)


def test_a_contact_holds_its_point_where_it_is_told():
    mech = mechanism("standing_leg")
    ground = np.array([0.05, 0.12, -0.02])
    foot = hc.Contact(("ankle", at(-0.06, 0, -0.05)), ground=ground)
    held = hc.Mechanism(mech.model, [foot], reference=mech.reference)
    q, v = hc.assemble(held, v_guess=np.ones(mech.nv))
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q, v)
    assert np.abs(data.oMi[5].act(np.array([-0.06, 0, -0.05])) - ground).max() < 1e-11
    slides = hc.Mechanism(mech.model, [hc.Contact(foot.frame, normal=(0, 0, 3), tangents=False)])
    assert len(slides.row_scale) == 1
    R = np.array([hc.Contact("f", normal=n).tangents for n in ((0, 0, 1), (1, 2, 3), (1, 0, 0))])
    for n, t in zip(((0, 0, 1), (1, 2, 3), (1, 0, 0)), R, strict=True):
        assert np.abs(t @ t.T - np.eye(2)).max() < 1e-12
        assert np.abs(t @ n).max() < 1e-12
    assert np.array(hc.Contact("f").tangents).tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hc.Rod("a", "b", 0.0), "length"),
        (lambda: hc.Rod("a", "b", "long"), "length"),
        (lambda: hc.Rod("a", "b", t_stab=-1.0), "t_stab"),
        (lambda: hc.Contact("a", normal=(0, 0, 0)), "normal must have a direction"),
        (lambda: hc.Contact("a", normal=(0, 1)), "normal"),
        (lambda: hc.Contact("a", tangents=[(0, 0, 2)]), "independent"),
        (lambda: hc.Contact("a", tangents="both"), "tangents"),
        (lambda: hc.Contact("a", ground=(0, 0, np.nan)), "ground"),
        (lambda: hc.Mechanism(mechanism("five_bar").model, [hc.Rod("left", "left")]), "same body"),
        (lambda: hc.Mechanism(mechanism("five_bar").model, [hc.Rod("nowhere", "left")]), "nowhere"),
        (lambda: hc.Mechanism(mechanism("five_bar").model, [hc.Contact("universe")]), "world"),
        (
            lambda: hc.Mechanism(
                mechanism("five_bar").model, [hc.Rod("left", ("left_rod", at(-0.3)))],
                reference=np.zeros(4),
            ),
            "coincide",
        ),
    ],
)  # fmt: skip
def test_rods_and_contacts_that_make_no_sense_are_refused(make, words):
    with pytest.raises(hc.InputError, match=words):
        make()


def test_an_axis_that_points_elsewhere_is_among_the_likely_causes():
    link = hc.Linkage("tilted", gravity=(0, -9.81, 0))
    ends = {"crank": 0.2, "coupler": 0.5, "rocker": 0.4}
    for name, length in ends.items():
        link.add_body(name, 1.0, (length / 2, 0, 0), 0.01 * np.eye(3))

    def at(x, R=None):
        return pin.SE3(np.eye(3) if R is None else R, np.array([x, 0.0, 0.0]))

    link.add_joint("motor", "revolute", "universe", "crank")
    link.add_joint("elbow", "revolute", "crank", "coupler", at(0.2))
    link.add_joint("pivot", "revolute", "universe", "rocker", at(0.5))
    link.add_joint(
        "pin", "revolute", "coupler", "rocker", at(0.5), at(0.4, pin.utils.rotate("x", 0.5))
    )
    mech = link.mechanism(["pin"], reference={"motor": 1.0, "elbow": -0.5, "pivot": 1.4})
    with pytest.raises(
        hc.AssemblyError, match=r"joint axes or frames with wrong directions .see 'pin\.r"
    ):
        hc.assemble(mech)


# -------------------------------------------------------------------------- what does not close


def test_bars_too_long_to_meet():
    mech = triangle(length=2.0)
    guess = np.array([0.9, 2.2])
    e = refused(lambda: hc.assemble(mech, guess), hc.AssemblyError, "triangle", "tip.", "too long")
    assert guess.tolist() == [0.9, 2.2]
    assert 0.1 < e.residual < 1.0
    names = [name for name, _ in e.worst]
    assert names
    assert set(names) <= {"tip.x", "tip.y"}
    sizes = [size for _, size in e.worst]
    assert sizes == sorted(sizes, reverse=True)
    assert abs(sizes[0] - e.residual) < 1e-12
    assert e.q.shape == (2,)
    assert np.isfinite(e.q).all()


def test_the_best_configuration_of_a_failed_assembly_is_the_best():
    """Bars of 2.0 and 0.4 on hinges 0.5 apart miss each other by 1.1 at least."""
    mech = triangle(length=2.0)
    e = refused(lambda: hc.assemble(mech), hc.AssemblyError)
    tips = [np.array([0.4 * np.cos(e.q[0]), 0.4 * np.sin(e.q[0])]),
            np.array([0.5 + 2.0 * np.cos(e.q[1]), 2.0 * np.sin(e.q[1])])]  # fmt: skip
    assert abs(np.linalg.norm(tips[1] - tips[0]) - 1.1) < 0.02


def test_frames_that_face_opposite_ways():
    mech = facing_away()
    e = refused(lambda: hc.assemble(mech), hc.AssemblyError, "four_bar", "'pin'",
                "opposite directions", "half a turn")  # fmt: skip
    assert e.q.shape == (3,)
    assert np.isfinite(e.q).all()
    refused(lambda: hc.ComputedTorque(mech, 1.0, 1.0), hc.AssemblyError, "opposite directions")


def test_locked_coordinates_that_leave_no_way(s):
    wrong = s.q + np.array([0.1, 0.0, 0.0])
    e = refused(lambda: hc.assemble(s.mech, wrong, locked=["crank", "coupler", "rocker"]),
                hc.AssemblyError, "four_bar", "pin.", "locked")  # fmt: skip
    assert np.array_equal(e.q, wrong)
    assert e.worst


def test_locks_are_named_first_where_they_are_the_cause_and_not_at_all_where_there_are_none():
    mech = hc.load(hc.robot_file("five_bar"))
    q, _ = hc.assemble(mech)
    guess = q + np.array([0.3, 0.0, 0.0, 0.0])
    three = ["motor_left", "elbow_left", "motor_right"]
    locked = refused(lambda: hc.assemble(mech, guess, locked=three),
                     hc.AssemblyError, "five_bar", "worst rows")  # fmt: skip
    assert "Likely causes: locked coordinates that contradict each other" in str(locked)
    short = mech.with_constraints(hc.Rod("universe", "tip_left", 50.0, name="rod"))
    alone = refused(lambda: hc.assemble(short), hc.AssemblyError, "rod")
    assert "locked" not in str(alone)


def test_the_gap_of_a_loop_that_does_not_close_is_said_in_metres():
    """Two pins that are 30 mm apart across the plane of their loop."""
    mech = hc.load(hc.robot_file("five_bar"))
    (tip,) = mech.constraints
    apart = (tip.a, pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.03])))
    shifted = dataclasses.replace(mech, constraints=[dataclasses.replace(tip, a=apart)])
    error = refused(lambda: hc.assemble(shifted), hc.AssemblyError, "worst rows: tip_hinge.z")
    assert "(0.03 m)" in str(error)
    name, scaled = error.worst[0]
    assert name == "tip_hinge.z"
    scale = shifted.row_scale[shifted.row_names.index(name)]
    assert scaled / scale == pytest.approx(0.03, rel=1e-3)
    rod = hc.Rod("universe", "tip_left", 50.0, name="rod")
    far = refused(lambda: hc.assemble(mech.with_constraints(rod)), hc.AssemblyError, "rod.length")
    assert " m)" in str(far).partition("rod.length")[2]


def test_locked_rates_that_contradict_each_other(s):
    e = refused(
        lambda: hc.assemble(s.mech, s.q, [1.0, 0.0, 1.0], locked=["crank", "rocker"]),
        hc.AssemblyError, "velocity", "pin.",
    )  # fmt: skip
    assert e.residual > 1e-3
    assert {name for name, _ in e.worst} <= {"pin.x", "pin.y"}


def test_couplings_that_contradict_each_other(s):
    gears = [
        hc.Coupling({"crank": 1.0}, offset=0.1, name="one"),
        hc.Coupling({"crank": 1.0}, offset=0.3, name="two"),
    ]
    mech = hc.Mechanism(s.mech.model, gears)
    e = refused(lambda: hc.assemble(mech), hc.AssemblyError, "one.sum", "two.sum")
    assert abs(e.residual - 0.1) < 1e-3
    assert abs(e.q[0] - 0.2) < 1e-3


@pytest.mark.parametrize("name", few(("stewart", "delta", "five_bar", "leg"), ("stewart",)))
def test_what_is_closed_in_the_end_is_returned(name):
    """With few iterations every start may end open, and the last, patient search closes it."""
    mech = hc.load(hc.robot_file(name))
    rng, closed = np.random.default_rng(0), 0
    for _ in range(8):
        guess = pin.integrate(
            mech.model, mech.reference, 0.3 * mech.column_scale * rng.normal(size=mech.nv)
        )
        for iterations in (1, 2, 3, 4, 6):
            left = []
            try:
                q, _ = hc.assemble(mech, guess, max_iter=iterations, restarts=0)
            except hc.AssemblyError as error:
                q, left = error.q, error.worst
            found = hc.constraint_errors(mech, q).closure
            assert (found > 1e-12) == bool(left)
            closed += iterations < 4 and not left
    assert closed


def test_a_search_for_the_nearest_that_ends_early_is_told(caplog):
    mech = hc.load(hc.robot_file("four_bar"))
    guess = mech.reference + 0.8 * mech.column_scale * np.cos(np.arange(mech.nv))
    hc.assemble(mech, guess)
    assert not caplog.records
    hc.assemble(mech, guess, max_iter=2)
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "not quite minimal" in caplog.text


def test_failure_needs_no_log_and_no_guess(s, caplog):
    refused(lambda: hc.assemble(triangle(length=2.0)), hc.AssemblyError)
    assert not caplog.records
