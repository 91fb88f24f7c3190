"""The closed state from what is measured: the contract of `hc.ClosedStateEstimator`."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import overconstrained as oc
import overconstrained_loops as loops
import pinocchio as pin
import pytest
import zoo
from support import ZOO, few, mechanism, relative, rows

import holoctl as hc


def five_bar():
    return hc.load(hc.robot_file("five_bar"))


def sensors_of(mech):
    """The motors where they see all that moves, else joints of independent coordinates."""
    try:
        return hc.ClosedStateEstimator(mech)
    except hc.InputError:
        part, model = hc.partition(mech, hc.assemble(mech)[0]), mech.model
        names = []
        for i in part.independent:
            joint = int(mech.joint_of[i])
            flat = model.nqs[joint] == model.nvs[joint]
            names.append(mech.coordinate_names[i] if flat else model.names[joint])
        return hc.ClosedStateEstimator(mech, list(dict.fromkeys(names)))


def along(mech, assembly, count, speed=0.5, dt=1e-3, seed=3):
    """States (t, q, v) of a motion that the sensors see, by numpy alone."""
    q, t, rest = assembly.q, 0.0, np.zeros(mech.nv)
    push, c = np.random.default_rng(seed).normal(size=mech.nv), mech.column_scale
    kept = assembly.partition.rows
    for k in range(count):
        there = rows(mech, q, rest, t)
        G = (mech.row_scale[:, None] * there.jacobian * c)[kept]
        motions = np.linalg.svd(G)[2][kept.size :].T
        _, s, vt = np.linalg.svd(assembly.readings.jacobian(q) @ (c[:, None] * motions))
        seen = motions @ vt[: np.count_nonzero(s > 1e-3)].T  # idle motions stay at rest
        x = seen @ (seen.T @ push)
        given = np.linalg.lstsq(G, -(mech.row_scale * there.rate)[kept], rcond=None)[0]
        v = c * (speed * np.cos(0.002 * k) * x / np.abs(x).max() + given)
        yield t, q, v
        t += dt
        q, _ = hc.corrected(
            mech, pin.integrate(mech.model, q, dt * v), v, t=t, partition=assembly.partition
        )


@pytest.mark.parametrize("name", few(name for name in ZOO if name != "welded_arms"))
def test_the_state_is_the_one_that_closes_and_its_rates_are_its_slopes(name):
    mech = mechanism(name)
    assembly = sensors_of(mech)
    moved = 0.0
    for t, q, v in along(mech, assembly, 40):
        x, rates = assembly.readings.at(q), assembly.readings.rates(q, v)
        found, speed = assembly.state(x, rates, t)
        moved = max(moved, np.abs(v).max())
        assert np.abs(rows(mech, found, speed, t).error * mech.row_scale).max(initial=0.0) <= max(
            1e-12, assembly.partition.tolerance
        )
        if assembly.unseen:
            continue  # idle bodies may spin with the projection, and are held by the sensors
        assert np.abs(pin.difference(mech.model, q, found)).max() < 1e-9
        assert relative(speed, v) < 1e-8
    assert moved > 0.1


def test_a_start_where_the_sensors_hardly_tell():
    with pytest.raises(hc.BranchError, match="amplified by 2"):
        hc.ClosedStateEstimator(mechanism("welded_arms"))


def test_rates_are_exact_slopes():
    mech = five_bar()
    assembly = hc.ClosedStateEstimator(mech)
    x0, w = mech.motor_positions(mech.reference), np.array([0.7, -1.1])

    def q(t):
        return assembly.state(x0 + w * t)[0]

    h = 1e-2
    for k in range(20):
        t = 0.02 * k
        _, v = assembly.state(x0 + w * t, w)
        slope = (45.0 * (q(t + h) - q(t - h)) - 9.0 * (q(t + 2 * h) - q(t - 2 * h))
                 + q(t + 3 * h) - q(t - 3 * h)) / (60.0 * h)  # fmt: skip
        assert relative(v, slope) < 1e-9


def test_many_turns_of_a_continuous_motor():
    model = pin.Model()
    base = zoo.add_body(model, 0, pin.JointModelRUBY(), zoo.at(), "crank", zoo.bar(0.2))
    rod = zoo.add_body(model, base, pin.JointModelRY(), zoo.at(0.2), "rod", zoo.bar(0.5))
    other = zoo.add_body(model, 0, pin.JointModelRY(), zoo.at(0.5), "rocker", zoo.bar(0.4))
    assert rod
    assert other
    q0 = np.array([np.cos(0.7), np.sin(0.7), -0.5, -2.0])
    mech = hc.Mechanism(
        model, [hc.Closure(("rod", zoo.at(0.5)), ("rocker", zoo.at(0.4)), axes="x z", name="tip")],
        actuated=["crank"], reference=q0,
    )  # fmt: skip
    assembly = hc.ClosedStateEstimator(mech)
    start = assembly.q
    x0 = mech.motor_positions(start)[0]
    for turns in (1, -1):
        for k in range(1, 2001):
            q, _ = assembly.state([x0 + turns * 4.0 * np.pi * k / 1000.0])
        turned = pin.difference(mech.model, start, q) / (2.0 * np.pi)  # the rod turns with it
        assert np.abs(turned - np.round(turned)).max() < 1e-9
        again, _ = assembly.state([x0 + 1000.0 * 2.0 * np.pi])  # a thousand turns are none
        assert np.abs(pin.difference(mech.model, again, q)).max() < 1e-9


def test_more_sensors_than_motions_are_weighed():
    mech = five_bar()
    both = hc.ClosedStateEstimator(mech)
    more = hc.ClosedStateEstimator(mech, [*mech.actuated, mech.coordinate_names[1]])
    assert more.noise_gain(more.q) < 1.0
    assert 1.0 < both.noise_gain(both.q) < 1.4
    q, _ = hc.assemble(mech)
    x = more.readings.at(q)
    x[2] += 3e-3  # one encoder is off: the others pull it back
    found, _ = more.state(x)
    off = more.last.disagreement
    assert list(off) == [*mech.actuated, mech.coordinate_names[1]]
    assert 1e-4 < abs(off[mech.coordinate_names[1]]) < 3e-3
    assert np.abs(rows(mech, found, 0.0 * found).error).max() < 1e-12
    # the least sum of squares: nothing along the motions is left
    gamma = hc.project(mech, found, np.zeros(mech.nv)).gamma
    S = more.readings.jacobian(found)
    assert np.abs(gamma.T @ S.T @ np.array(list(off.values()))).max() < 1e-6
    heavy = hc.ClosedStateEstimator(mech, more.measured, weights={mech.coordinate_names[1]: 1e6})
    heavy.state(x)
    assert abs(heavy.last.disagreement[mech.coordinate_names[1]]) < 1e-6
    x[2] += 0.4
    with pytest.raises(hc.InconsistentError, match=mech.coordinate_names[1]):
        more.state(x)


def test_a_cut_joint_is_a_sensor():
    mech = mechanism("five_bar_revolute")
    cut = mech.constraint_names[0]
    assembly = hc.ClosedStateEstimator(mech, [mech.coordinate_names[0], cut])
    for t, q, v in along(mech, assembly, 30):
        angle = hc.joint_motion(mech, cut, q, v)
        found, speed = assembly.state([q[0], angle.value[0] + 2.0 * np.pi],
                                      [v[0], angle.rate[0]], t)  # fmt: skip
        assert np.abs(found - q).max() < 1e-9
        assert relative(speed, v) < 1e-8


def test_a_floating_base_is_measured_whole():
    mech = mechanism("floating_leg")
    assembly = sensors_of(mech)
    base = mech.model.names[1]
    assert assembly.measured[0] == base
    assert assembly.readings.numbers == assembly.readings.columns.size + 2  # and a ball, whole
    x = assembly.readings.at(hc.assemble(mech)[0])
    x[3:7] *= 2.0
    with pytest.raises(hc.InputError, match="norm"):
        assembly.state(x)


def test_unseen_motions_are_refused_unless_they_are_idle():
    mech = mechanism("idle_rod")
    assert len(hc.ClosedStateEstimator(mech).unseen) == 1
    with pytest.raises(hc.InputError, match="motor_right"):
        hc.ClosedStateEstimator(five_bar(), ["motor_left"])


@pytest.mark.parametrize(("links", "sensors"), [(n, k) for n in (5, 6, 7) for k in range(1, n - 3)])
def test_a_spherical_linkage_with_too_few_sensors_is_refused(links, sensors):
    """What is left may be a spherical four-bar: a link on a hinge, and three hinges behind it."""
    mech = loops.spherical(n=links).mechanism()
    for names in itertools.combinations(mech.coordinate_names, sensors):
        with pytest.raises(hc.InputError, match=r"do not determine how .* move"):
            hc.ClosedStateEstimator(mech, names)


@pytest.mark.parametrize("name", ["kaleidocycle_8", "pantograph", "shafts_and_rod", "rssr"])
def test_one_sensor_of_a_linkage_is_taken_only_where_what_it_misses_is_idle(name):
    drawing, mech = oc.drawn(name)
    taken = []
    for joint in mech.model.names[1:]:
        try:
            taken.append(len(hc.ClosedStateEstimator(mech, [joint]).unseen))
        except hc.InputError:
            continue
    assert max(taken, default=0) == drawing.truth.idle
    assert bool(taken) == (drawing.truth.idle > 0)


def test_a_jump_is_refused_and_the_last_state_stays():
    mech = five_bar()
    assembly = hc.ClosedStateEstimator(mech)
    x0, before = mech.motor_positions(mech.reference), assembly.q
    with pytest.raises((hc.BranchError, hc.AssemblyError)):
        assembly.state(x0 + np.array([2.9, -2.9]))
    assert np.array_equal(assembly.q, before)
    q, _ = assembly.state(x0 + 1e-3)  # it comes back
    assert np.abs(mech.motor_positions(q) - x0 - 1e-3).max() < 1e-15


def test_in_front_of_a_dead_point_it_is_lost_until_it_is_told():
    mech = zoo.slider_crank("slider")
    assembly = hc.ClosedStateEstimator(mech)
    start = assembly.q
    x = assembly.readings.at(start)[0]

    def go_on():
        for k in range(2000):
            assembly.state([x + 1e-3 * k])

    with pytest.raises(hc.BranchError) as told:
        go_on()
    assert told.value.why in ("dead point", "gain")
    back = assembly.readings.at(start)
    for other in (assembly, copy.copy(assembly), pickle.loads(pickle.dumps(assembly))):
        with pytest.raises(hc.BranchError, match="reset"):
            other.state(back)
        assert "lost" in repr(other)
    assert np.abs(assembly.fresh().state(back)[0] - start).max() < 1e-12
    assembly.reset(start)
    q, _ = assembly.state(back)
    assert np.abs(q - start).max() < 1e-12


def test_resynchronise_goes_farther_than_a_tick():
    mech = five_bar()
    near, far = hc.ClosedStateEstimator(mech), hc.ClosedStateEstimator(mech)
    x0 = mech.motor_positions(mech.reference)
    for k in range(1, 301):
        near.state(x0 + 0.001 * k * np.array([2.0, -1.0]))
    far.resynchronise(x0 + np.array([0.6, -0.3]))
    assert np.abs(near.q - far.q).max() < 1e-12


@pytest.mark.parametrize("seed", [4, 5])
def test_a_body_that_is_measured_whole_may_turn_far(seed):
    """And with sensors more than motions: half of the way is a turn by half of the angle."""
    mech = zoo.universal_rods()
    assembly = hc.ClosedStateEstimator(mech, ("turntable", "rod_1[0]", "rod_1[1]", "plate"))
    *_, (_, q, _) = along(mech, assembly, 500, dt=5e-3, seed=seed)
    assert np.linalg.norm(pin.difference(mech.model, assembly.q, q)[3:6]) > 0.7  # the ball
    assembly.resynchronise(assembly.readings.at(q))
    assert np.abs(assembly.q - q).max() < 1e-11


@pytest.mark.parametrize(
    ("make", "measured"),
    [
        (zoo.universal_rods, ("plate", "rod_1[0]", "turntable", "rod_1[1]")),
        (zoo.standing_leg, None),
        (zoo.floating_leg, ("wheel", "hip", "motor_crank", "head")),
        (lambda: zoo.five_bar("revolute"), ("tip", "left")),
    ],
)
def test_a_step_of_the_sensors_is_taken_back(make, measured):
    mech = make()
    assembly, rng = hc.ClosedStateEstimator(mech, measured), np.random.default_rng(0)
    sensors = assembly.readings
    x, own = sensors.at(assembly.q), sensors.columns >= 0
    for size in (1e-3, 0.3, 2.5):
        step = rng.normal(size=sensors.columns.size)
        step *= size / np.abs(step).max()
        before = sensors.taken_back()(x, step)
        q = sensors.placed(assembly.q, before)
        d = pin.difference(mech.model, q, sensors.placed(assembly.q, x))[sensors.columns[own]]
        np.testing.assert_allclose(d, step[own], atol=1e-12)
        cut = x[sensors.of_cut] - before[sensors.of_cut]
        np.testing.assert_allclose(cut, step[~own], atol=1e-12)


def test_the_report_of_a_call():
    mech = five_bar()
    assembly = hc.ClosedStateEstimator(mech)
    x = mech.motor_positions(mech.reference) + np.array([0.02, 0.01])
    assembly.state(x)
    last = assembly.last
    assert last.substeps == 1
    assert last.newton_steps >= 1
    assert last.factorisations >= 2
    assert last.closure < 1e-12
    assert last.contraction < 0.25
    assert last.reached == 1.0
    assert last.disagreement == {}
    assert 1.0 < last.gain < 2.0


BAD = {
    "nan": ([np.nan, 0.0], None, "q_measured"),
    "infinite": ([0.0, np.inf], None, "q_measured"),
    "shape": ([0.0, 0.0, 0.0], None, "q_measured"),
    "words": (["a", "b"], None, "q_measured"),
    "rates": ([0.0, 0.0], [np.nan, 0.0], "v_measured"),
    "shape of rates": ([0.0, 0.0], [0.0], "v_measured"),
    "huge": ([1e300, 0.0], None, "range"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_changes_nothing(case):
    x, v, match = BAD[case]
    assembly = hc.ClosedStateEstimator(five_bar())
    before = assembly.q
    with pytest.raises(hc.InputError, match=match):
        assembly.state(x, v)
    assert np.array_equal(assembly.q, before)
    assembly.state(assembly.readings.at(before))


@pytest.mark.parametrize(
    ("measured", "match"),
    [
        (["motor_left", "motor_rigth"], "did you mean 'motor_right'"),
        (["motor_left", "motor_left"], "twice"),
        ([], "one joint or more"),
        ("motor_left", "list of names"),
    ],
)
def test_names_are_checked(measured, match):
    with pytest.raises(hc.InputError, match=match):
        hc.ClosedStateEstimator(five_bar(), measured)


def test_a_start_must_be_closed():
    mech = five_bar()
    with pytest.raises(hc.InconsistentError, match="not closed"):
        hc.ClosedStateEstimator(mech, start=mech.reference + 0.1)
    assembly = hc.ClosedStateEstimator(mech)
    with pytest.raises(hc.InconsistentError, match="not closed"):
        assembly.reset(mech.reference + 0.1)
    with pytest.raises(hc.InputError, match="weights"):
        hc.ClosedStateEstimator(mech, weights=[1.0, -1.0])


def test_results_go_where_they_are_told():
    mech = five_bar()
    assembly, q, v = hc.ClosedStateEstimator(mech), np.zeros(4), np.zeros(4)
    x = mech.motor_positions(mech.reference)
    assert assembly.state(x, [0.1, 0.2], out=(q, v)) == (q, v)
    again = assembly.state(x, [0.1, 0.2])
    assert np.array_equal(q, again[0])
    assert np.array_equal(v, again[1])
    for bad in ((q,), 5, (q, q), (q, np.zeros(3))):
        with pytest.raises(hc.InputError, match="out"):
            assembly.state(x + 1e-3, out=bad)
    assert np.array_equal(assembly.q, again[0])  # it was not followed


@pytest.mark.parametrize("size", [0.03, 0.1, 0.2])
def test_a_glitch_of_one_tick_is_gone_in_the_next(size):
    mech = hc.load(hc.robot_file("stewart"))
    refused_at = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        assembly = hc.ClosedStateEstimator(mech)
        x, u = assembly.readings.at(assembly.q), assembly.readings.unit
        glitch, motion = (w / np.abs(w).max() * u for w in rng.normal(size=(2, x.size)))
        for k in range(16):
            try:
                assembly.state(x + 5e-4 * k * motion + (size * glitch if k == 6 else 0.0))
            except (hc.BranchError, hc.AssemblyError):
                refused_at.append(k)
    assert set(refused_at) <= {6}  # none for good
    assert refused_at or size < 0.1  # guard: some are refused


def test_no_rates_no_torque():
    ctl = hc.ComputedTorque(five_bar(), kp=1.0, kd=1.0)
    x = ctl.mech.motor_positions(ctl.mech.reference)
    with pytest.raises(hc.InputError, match="v_motors"):
        ctl.torque_from_motors(x, None, x, [0.0, 0.0], [0.0, 0.0])


def test_where_it_was_told_to_be_holds_for_what_is_made_from_it():
    mech = five_bar()
    modes = hc.assembly_modes(mech, dict(zip(mech.actuated, [2.2, 0.9], strict=True)), tries=30)
    other = modes.modes[1].q
    assembly = hc.ClosedStateEstimator(mech)
    assembly.reset(other)
    x = mech.motor_positions(other)
    for made in (assembly.fresh(), copy.copy(assembly),
                 hc.ComputedTorque(mech, kp=1.0, kd=1.0, estimator=assembly).loop()):  # fmt: skip
        assert np.abs(made.state(x)[0] - assembly.q).max() < 1e-12


@pytest.mark.parametrize("name", ["start", "readings", "scaled_weights", "system", "q"])
def test_what_it_goes_by_is_not_set_from_outside(name):
    """`reset` tells it where it is: an attribute that could be set would change nothing in it."""
    assembly = hc.ClosedStateEstimator(five_bar())
    with pytest.raises(AttributeError):
        setattr(assembly, name, None)
    for made in (assembly, assembly.fresh(), pickle.loads(pickle.dumps(assembly))):
        q = made.q
        with pytest.raises(ValueError, match="read-only"):
            made.start[0] += 0.1
        assert np.array_equal(made.q, q)


def test_weights_are_kept_as_they_were():
    mech = five_bar()
    names, w = [*mech.actuated, mech.coordinate_names[1]], np.ones(3)
    assembly = hc.ClosedStateEstimator(mech, names, weights=w)
    x = assembly.readings.at(assembly.q) + np.array([0.0, 0.0, 1e-3])
    before = assembly.state(x)[0]
    w[:] = 1e-6, 1e-6, 1.0
    assert np.abs(assembly.fresh().state(x)[0] - before).max() < 1e-12
    with pytest.raises(hc.InputError, match="weights"):
        hc.ClosedStateEstimator(mech, names, weights={"motor_left": [1.0, 2.0]})
    with pytest.raises(hc.InputError, match="did you mean"):
        hc.ClosedStateEstimator(mech, names, weights={"motor_lef": 1.0})


def test_copies_in_time():
    mech = mechanism("timed_arm")
    assembly = sensors_of(mech)
    q, _ = hc.assemble(mech, assembly.q, t=0.7)
    assembly.reset(q, 0.7)
    x = assembly.readings.at(assembly.q)
    for made in (assembly.fresh(), copy.copy(assembly), pickle.loads(pickle.dumps(assembly))):
        assert np.abs(made.state(x, t=0.7)[0] - assembly.q).max() < 1e-12
        assert np.abs(made.fresh().q - q).max() < 1e-9
