"""`hc.Sensors`: what a controller is shown is what the sensors read, as they say, and no more."""

from __future__ import annotations

import dataclasses
import pickle
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from support import closed_states, mechanism, together
from zoo import add_body, at, bar, feet, lump

import holoctl as hc

RATE = 200.0


class Watching:
    """A controller that keeps what it was shown, and pushes by a law of time."""

    def __init__(self, nu, push=0.0):
        self.nu, self.push, self.shown = nu, push, []

    def __call__(self, t, x, rates):
        self.shown.append((t, x.copy(), rates.copy()))
        return self.push * np.sin(np.arange(1, self.nu + 1) + 7.0 * t)

    @property
    def t(self):
        return np.array([t for t, _, _ in self.shown])

    @property
    def x(self):
        return np.array([x for _, x, _ in self.shown])

    @property
    def rates(self):
        return np.array([r for _, _, r in self.shown])


def one_of_each():
    """A free joint, a hinge, a ball, a continuous, a composite and a planar joint in a row."""
    wrist = pin.JointModelComposite(pin.JointModelRX())
    wrist.addJoint(pin.JointModelPY())
    joints = {
        "base": pin.JointModelFreeFlyer(), "hinge": pin.JointModelRX(),
        "ball": pin.JointModelSpherical(), "wheel": pin.JointModelRUBZ(),
        "wrist": wrist, "sled": pin.JointModelPlanar(),
    }  # fmt: skip
    model, parent, rng = pin.Model(), 0, np.random.default_rng(5)
    for name, joint in joints.items():
        parent = add_body(model, parent, joint, at(0.2, 0.1), name, lump(rng))
    return hc.Mechanism(model, [], ["hinge", "wheel"], name="one_of_each")


@cache
def robot(name):
    """Of the zoo, or with all kinds of joints; or the five-bar whose tip is a cut hinge."""
    if name == "one_of_each":
        return one_of_each()
    if name == "shipped":
        return hc.load(hc.robot_file("five_bar"))
    return mechanism(name)


def start(name):
    mech = robot(name)
    if name == "one_of_each":
        rng = np.random.default_rng(2)
        q = pin.integrate(mech.model, pin.neutral(mech.model), rng.normal(size=mech.nv))
        return q, rng.normal(size=mech.nv)
    if name == "shipped":
        return hc.assemble(mech, None, [1.0, 0.0, -0.5, 0.0])
    return closed_states(name)[0]


def watched(name, sensors, duration=0.1, push=0.0, seed=0, **options):
    """A run, and what its controller was shown."""
    mech = robot(name)
    controller = Watching(mech.nu, push)
    given = together(**{"frequency": RATE, **options})
    given["sensors"] = sensors if sensors is None else dataclasses.replace(sensors, seed=seed)
    return hc.simulate(mech, controller, *start(name), duration, **given), controller


MEASURED = {
    "five_bar": [None, ["right_rod"], ["right", "left_rod", "left"]],
    "shipped": [None, ["tip_hinge"], ["tip_hinge", "motor_right", "motor_left"]],
    "geared_slider": [None, ["rack", "wheel"]],
    "floating_leg": [None, ["wheel"], ["knee", "base", "head"]],
    "one_of_each": [None, ["ball"], ["sled", "wheel", "wrist"]],
}
CASES = [(name, measured) for name, all_of in MEASURED.items() for measured in all_of]
SHORT = [
    ("five_bar", None), ("floating_leg", "all"),
    *(("one_of_each", measured) for measured in MEASURED["one_of_each"]),
]  # fmt: skip
"""Those whose noise is looked at in the short run."""


def expected(mech, measured, q, v):
    """What is measured at a state, by `joint_motion`, and its rates by the Jacobians there."""
    motions = [hc.joint_motion(mech, name, q, v) for name in measured]
    return np.concatenate([m.value for m in motions]), np.concatenate([m.rate for m in motions])


def names_of(mech, measured):
    """Of what is measured: the motors, and a floating base in front."""
    names = list(mech.actuated if measured is None else measured)
    floats = mech.name in ("floating_leg", "one_of_each") and "base" not in names
    return ["base", *names] if floats else names


# ----------------------------------------------------------------------------------- exact


@pytest.mark.parametrize(("name", "measured"), CASES)
def test_exact_sensors_read_the_state(name, measured):
    mech = robot(name)
    run, seen = watched(name, hc.Sensors(measured), push=0.2)
    assert (seen.t == run.t).all()
    names = names_of(mech, measured)
    for q, v, x, rates in zip(run.q, run.v, seen.x, seen.rates, strict=True):
        values, speeds = expected(mech, names, q, v)
        np.testing.assert_allclose(x, values, atol=1e-14)
        np.testing.assert_allclose(rates, speeds, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "measured"),
    [("floating_leg", ["head", "hip", "knee", "wheel"]), ("shipped", None),
     ("shipped", ["tip_hinge", "motor_left"])],
)  # fmt: skip
def test_the_order_is_that_of_the_prepared_assembly(name, measured):
    """From what a controller is shown it finds the state of the plant, tick by tick."""
    mech = robot(name)
    prepared = hc.ClosedStateEstimator(mech, measured, start=start(name)[0])
    assert list(prepared.measured) == names_of(mech, measured)
    run, seen = watched(name, hc.Sensors(measured))
    for q, v, x, rates in zip(run.q, run.v, seen.x, seen.rates, strict=True):
        found, speed = prepared.state(x, rates)
        np.testing.assert_allclose(pin.difference(mech.model, q, found), 0.0, atol=1e-9)
        np.testing.assert_allclose(speed, v, atol=1e-8)


@pytest.mark.parametrize("name", MEASURED)
def test_the_whole_state_is_the_state(name):
    run, seen = watched(name, hc.Sensors("all"), push=0.1)
    plain, there = watched(name, None, push=0.1)
    assert np.array_equal(run.q, plain.q)
    assert np.array_equal(seen.x, there.x)
    assert np.array_equal(seen.x, run.q)
    assert np.array_equal(seen.rates, run.v)


def test_what_is_shown_may_be_written_into():
    mech = robot("five_bar")

    def vandal(t, x, rates):
        x[:], rates[:] = 7.0, 7.0
        return np.zeros(2)

    for sensors in (hc.Sensors(), hc.Sensors("all"), hc.Sensors(delay=0.004)):
        run = hc.simulate(mech, vandal, *start("five_bar"), 0.01, sensors=sensors)
        plain = hc.simulate(mech, lambda t, q, v: np.zeros(2), *start("five_bar"), 0.01)
        assert np.array_equal(run.q, plain.q)


# ----------------------------------------------------------------------------------- noise


@pytest.mark.parametrize(
    ("name", "measured"),
    [
        pytest.param(*case, marks=() if case in SHORT else pytest.mark.slow)
        for case in [*CASES, ("floating_leg", "all")]
    ],
)
def test_noise_is_as_large_as_it_says_and_independent(name, measured):
    mech, sigma = robot(name), (1e-4, 3e-3)
    run, seen = watched(name, hc.Sensors(measured, sigma), 3.0, seed=3, **still(name))
    exact_x, exact_rates = run_again(name, measured, run)
    off = np.array([steps(mech, measured, *pair) for pair in zip(exact_x, seen.x, strict=True)])
    off_rates = seen.rates - exact_rates
    count = len(run.t)
    for found, size in ((off, 1e-4), (off_rates, 3e-3)):
        spread = 4.0 / np.sqrt(2.0 * count)  # four standard deviations of a standard deviation
        assert found.std(axis=0) == pytest.approx(size, rel=spread)
        assert np.abs(found.mean(axis=0)).max() < 4.5 * size / np.sqrt(count)
        assert np.abs(np.corrcoef(found.T) - np.eye(found.shape[1])).max() < 5.0 / np.sqrt(count)
        later = (found[1:] * found[:-1]).mean(axis=0) / size**2
        assert np.abs(later).max() < 5.0 / np.sqrt(count)


def still(name):
    """Some robots fall in eight seconds; their steps may be coarse: only noise is looked at."""
    return {"rtol": 1e-6, "atol": 1e-8, "at_singular": "cross"}


def run_again(name, measured, run):
    """What exact sensors read along a run."""
    mech = robot(name)
    if measured == "all":
        return run.q, run.v
    names = names_of(mech, measured)
    pairs = [expected(mech, names, q, v) for q, v in zip(run.q, run.v, strict=True)]
    return [np.array(x) for x in zip(*pairs, strict=True)]


def steps(mech, measured, x, y):
    """From one reading to another in the tangent space, joint by joint."""
    if measured == "all":
        return pin.difference(mech.model, x, y)
    found, at_ = [], 0
    for name in names_of(mech, measured):
        joint = mech.model.existJointName(name) and mech.model.joints[mech.model.getJointId(name)]
        size = joint.nq if joint and (joint.nq, joint.nv) != (2, 1) else 1
        one, two = x[at_ : at_ + size], y[at_ : at_ + size]
        if joint and joint.nq != joint.nv and size > 1:
            whole = [mech.reference.copy(), mech.reference.copy()]
            for q, part in zip(whole, (one, two), strict=True):
                q[joint.idx_q : joint.idx_q + size] = part
            step = pin.difference(mech.model, *whole)[joint.idx_v : joint.idx_v + joint.nv]
        else:
            step = np.remainder(two - one + np.pi, 2.0 * np.pi) - np.pi
        found, at_ = [*found, step], at_ + size
    assert at_ == x.size == y.size
    return np.concatenate(found)


def test_noise_is_that_of_the_seed():
    seen = [watched("five_bar", hc.Sensors(noise=(1e-3, 1e-2)), seed=s)[1] for s in (1, 1, 2)]
    assert np.array_equal(seen[0].x, seen[1].x)
    assert np.array_equal(seen[0].rates, seen[1].rates)
    assert not np.isin(seen[0].x, seen[2].x).any()


def test_noise_of_each():
    sensors = hc.Sensors(noise=([0.0, 1e-3], [1e-2, 0.0]))
    run, seen = watched("five_bar", sensors)
    mech = robot("five_bar")
    x, rates = run_again("five_bar", None, run)
    assert np.array_equal(seen.x[:, 0], x[:, 0])
    assert np.array_equal(seen.rates[:, 1], rates[:, 1])
    assert (seen.x[:, 1] != x[:, 1]).all()
    assert (seen.rates[:, 0] != rates[:, 0]).all()
    assert mech.actuated == ("left", "right")


def test_noise_of_the_whole_state_is_a_step_in_the_tangent_space():
    """By the same random numbers: first of positions, then of rates, at each tick."""
    run, seen = watched("floating_leg", hc.Sensors("all", (1e-3, 1e-2)), seed=9)
    mech, rng = robot("floating_leg"), np.random.default_rng(9)
    for q, v, x, rates in zip(run.q, run.v, seen.x, seen.rates, strict=True):
        np.testing.assert_array_equal(
            x, pin.integrate(mech.model, q, 1e-3 * rng.normal(size=mech.nv))
        )
        np.testing.assert_array_equal(rates, v + 1e-2 * rng.normal(size=mech.nv))


def test_the_noise_of_one_sensor_does_not_reach_another():
    """The tip is a function of all coordinates, and read by an encoder of its own."""
    sensors = hc.Sensors(["tip_hinge", "motor_left"], ([0.0, 0.1], 0.0))
    run, seen = watched("shipped", sensors)
    x, _ = run_again("shipped", ["tip_hinge", "motor_left"], run)
    np.testing.assert_allclose(seen.x[:, 0], x[:, 0], atol=1e-14)
    assert np.abs(seen.x[:, 1] - x[:, 1]).max() > 0.05


# ---------------------------------------------------------------------------------- counts


@pytest.mark.parametrize("counts", [7, 1000, 2**17, 12345.6])
def test_positions_are_whole_counts(counts):
    run, seen = watched("shipped", hc.Sensors(["motor_left", "tip_hinge"], counts=counts))
    x, rates = run_again("shipped", ["motor_left", "tip_hinge"], run)
    turns = seen.x * counts / (2.0 * np.pi)
    np.testing.assert_allclose(turns, np.rint(turns), atol=1e-9)
    np.testing.assert_array_equal(seen.x, np.rint(x / (2 * np.pi / counts)) * (2 * np.pi / counts))
    assert np.abs(seen.x - x).max() <= np.pi / counts * (1.0 + 1e-9)
    np.testing.assert_allclose(seen.rates, rates, atol=1e-13)  # these are not rounded


def test_lengths_are_counted_by_the_metre():
    run, seen = watched("geared_slider", hc.Sensors(["rack", "wheel"], counts=500))
    rack, wheel = seen.x.T
    np.testing.assert_array_equal(rack, np.rint(run.q[:, 4] / 0.002) * 0.002)
    step = 2.0 * np.pi / 500
    np.testing.assert_array_equal(wheel, np.rint(run.q[:, 3] / step) * step)


@pytest.mark.parametrize("counts", [1e17, 1e300, 1.7e308, np.inf])
@pytest.mark.parametrize("measured", [None, "all"])
def test_more_counts_than_floats_have_change_nothing(counts, measured):
    _, seen = watched("geared_slider", hc.Sensors(measured, counts=counts))
    _, exact = watched("geared_slider", hc.Sensors(measured))
    assert np.array_equal(seen.x, exact.x)


def test_counts_of_each():
    sensors = hc.Sensors(["left", "right", "left_rod"], counts=[10, np.inf, 1000])
    run, seen = watched("five_bar", sensors)
    exact = run.q[:, [0, 2, 1]]
    steps_ = [2.0 * np.pi / 10, 0.0, 2.0 * np.pi / 1000]
    np.testing.assert_array_equal(seen.x[:, 1], exact[:, 1])
    for i in (0, 2):
        np.testing.assert_array_equal(seen.x[:, i], np.rint(exact[:, i] / steps_[i]) * steps_[i])


def test_what_has_no_position_for_each_coordinate_is_not_rounded():
    """A floating base and a ball; the wheel beside them turns without end."""
    names = ["base", "head", "wheel"]
    run, seen = watched("floating_leg", hc.Sensors(names, counts=50))
    x, _ = run_again("floating_leg", names, run)
    np.testing.assert_allclose(seen.x[:, :11], x[:, :11], atol=1e-14)
    turns = seen.x[:, 11] * 50 / (2.0 * np.pi)
    np.testing.assert_allclose(turns, np.rint(turns), atol=1e-9)
    mech = robot("floating_leg")
    q0, v0 = start("floating_leg")
    bad = hc.Sensors(names, counts=[*[np.inf] * 8, 3.0, 50])
    refused(
        lambda: hc.simulate(mech, Watching(3), q0, v0, 0.01, sensors=bad),
        hc.InputError, "counts", "head[2]", "inf",
    )  # fmt: skip
    good = hc.Sensors(names, counts=[*[np.inf] * 9, 50])
    assert np.array_equal(watched("floating_leg", good)[1].x, seen.x)


def test_the_whole_state_is_rounded_where_it_is_angles_and_lengths():
    counts = 100
    run, seen = watched("one_of_each", hc.Sensors("all", counts=counts))
    model, step = robot("one_of_each").model, 2.0 * np.pi / counts
    q, x = run.q, seen.x
    hinge, wheel, wrist = (
        model.joints[model.getJointId(n)].idx_q for n in ("hinge", "wheel", "wrist")
    )
    np.testing.assert_array_equal(x[:, hinge], np.rint(q[:, hinge] / step) * step)
    angle = np.arctan2(q[:, wheel + 1], q[:, wheel])
    rounded = np.rint(angle / step) * step
    np.testing.assert_allclose(x[:, wheel], np.cos(rounded), atol=1e-15)
    np.testing.assert_allclose(x[:, wheel + 1], np.sin(rounded), atol=1e-15)
    for i, width in ((wrist, step), (wrist + 1, 1.0 / counts)):  # it turns, and slides
        np.testing.assert_array_equal(x[:, i], np.rint(q[:, i] / width) * width)
    rest = np.setdiff1d(np.arange(model.nq), [hinge, wheel, wheel + 1, wrist, wrist + 1])
    np.testing.assert_array_equal(x[:, rest], q[:, rest])
    assert all(pin.isNormalized(model, one, 1e-12) for one in x)


def test_noise_is_rounded_too():
    run, seen = watched("five_bar", hc.Sensors(noise=(0.05, 0.0), counts=100), seed=4)
    _, free = watched("five_bar", hc.Sensors(noise=(0.05, 0.0)), seed=4)
    step = 2.0 * np.pi / 100
    np.testing.assert_array_equal(seen.x, np.rint(free.x / step) * step)
    assert run.u.shape == (21, 2)


# ----------------------------------------------------------------------------------- delay


@pytest.mark.parametrize("name", ["five_bar", "floating_leg"])
@pytest.mark.parametrize("ticks", [1, 3, 7])
@pytest.mark.parametrize("measured", [None, "all"])
def test_a_delay_of_whole_ticks_shows_the_state_at_an_earlier_tick(name, ticks, measured):
    run, seen = watched(name, hc.Sensors(measured, delay=ticks / RATE), push=0.2)
    x, rates = run_again(name, measured, run)
    earlier = np.maximum(np.arange(len(run.t)) - ticks, 0)
    np.testing.assert_allclose(seen.x, x[earlier], atol=1e-14)
    np.testing.assert_allclose(seen.rates, rates[earlier], atol=1e-13)
    assert np.array_equal(seen.t, run.t)
    if measured == "all":
        assert np.array_equal(seen.x, x[earlier])


@pytest.mark.parametrize("delay", [0.3, 1.6, 4.05])
@pytest.mark.parametrize("method", ["auto", "DOP853", "Radau"])
def test_a_delay_within_a_tick_shows_the_state_there(delay, method):
    """As the same run records it at these instants."""
    sensors = hc.Sensors(delay=delay / RATE)
    mech, (q, v) = robot("five_bar"), start("five_bar")
    instants = np.arange(21) / RATE
    then = np.maximum(instants - delay / RATE, 0.0)
    controller = Watching(2, 0.2)
    run = hc.simulate(
        mech,
        controller,
        q,
        v,
        0.1,
        frequency=RATE,
        sensors=sensors,
        integrator=hc.Integrator(method=method),
        output=np.unique([*then, *instants]),
    )
    at_ = np.searchsorted(run.t, then)
    np.testing.assert_allclose(controller.x, run.q[at_][:, [0, 2]], atol=1e-12)
    np.testing.assert_allclose(controller.rates, run.v[at_][:, [0, 2]], atol=1e-11)


def test_before_the_start_it_is_the_start():
    _, seen = watched("five_bar", hc.Sensors(delay=1e9, noise=(1e-6, 0.0)))
    q, _ = start("five_bar")
    off = seen.x - q[[0, 2]]
    assert np.abs(off).max() < 1e-5
    assert (np.diff(off, axis=0) != 0.0).all()  # the sensors are still noisy


def test_the_last_tick_may_be_shorter():
    duration = 0.1 + 0.3 / RATE
    run, seen = watched("five_bar", hc.Sensors(delay=2.0 / RATE), duration)
    exact, _ = watched("five_bar", None, duration, output=[0.1 - 2.0 / RATE, duration - 2.0 / RATE])
    assert seen.t[-1] == run.t[-1] == duration
    np.testing.assert_allclose(seen.x[-2:], exact.q[:, [0, 2]], atol=1e-12)


@pytest.mark.parametrize(("share", "grows"), [(0.9, False), (1.1, True)])
def test_a_loop_bears_a_delay_up_to_its_phase_margin(share, grows):
    """A hinge under ``wn^2 + 2 d wn s`` crosses over at wc, and bears ``atan(2 d wc / wn) / wc``,
    of which the ticks take half of one."""
    m = pin.Model()
    j = m.addJoint(0, pin.JointModelRZ(), at(), "arm")
    m.appendBodyToJoint(j, bar(0.3), at())
    mech = hc.Mechanism(m, [], ["arm"], name="arm")
    inertia = float(hc.terms(mech, [0.0], [0.0]).M[0, 0])
    wn, d = 20.0, 0.7
    wc = wn * np.sqrt(2.0 * d**2 + np.sqrt(4.0 * d**4 + 1.0))
    margin = np.arctan(2.0 * d * wc / wn) / wc

    def loop(t, x, rate):
        return inertia * (wn**2 * (0.0 - x) - 2.0 * d * wn * rate)

    sensors = hc.Sensors(delay=share * margin - 0.5e-3)
    run = hc.simulate(
        mech,
        loop,
        [0.1],
        [0.0],
        3.0,
        sensors=sensors,
        integrator=hc.Integrator(rtol=1e-6, atol=1e-8),
    )
    first, last = (np.abs(run.q[part]).max() for part in (slice(500, 1000), slice(-500, None)))
    assert (last > 2.0 * first) if grows else (last < 0.5 * first)


def test_events_change_what_is_read_when_the_delay_has_passed():
    """A foot that is stopped: rates jump at the event, and are read later."""
    mech, (q, v) = robot("five_bar"), start("five_bar")
    event = hc.Event(lambda t, q, v: t - 0.0512, reaction=lambda t, q, v: (mech, 0.0 * v))
    controller = Watching(2)
    run = hc.simulate(
        mech, controller, q, v, 0.1, frequency=RATE, events=event, sensors=hc.Sensors(delay=0.02)
    )
    jump = int(np.argmax(run.t > 0.0512))
    earlier = np.maximum(np.arange(21) - 4, 0)
    np.testing.assert_allclose(controller.rates, run.v[earlier][:, [0, 2]], atol=1e-14)
    speed = np.abs(controller.rates).max(axis=1)
    assert speed[jump + 4] < 0.5 * speed[jump + 3]


def test_an_event_at_a_tick_is_read_as_it_is_after_it():
    mech, (q, v) = robot("five_bar"), start("five_bar")
    event = hc.Event(lambda t, q, v: t - 0.05, reaction=lambda t, q, v: (mech, 0.0 * v))
    for delay in (0.005, 0.01):
        controller = Watching(2)
        run = hc.simulate(
            mech,
            controller,
            q,
            v,
            0.1,
            frequency=RATE,
            events=event,
            sensors=hc.Sensors(delay=delay),
        )
        earlier = np.maximum(np.arange(21) - round(delay * RATE), 0)
        assert np.array_equal(controller.rates, run.v[earlier][:, [0, 2]])


# ----------------------------------------------------------------------------------- rates


def test_rates_from_positions_are_those_of_the_filter():
    sensors = hc.Sensors(noise=(1e-5, 0.0), counts=2**14, delay=0.0025, rate_bandwidth=80.0)
    run, seen = watched("shipped", sensors, 0.102, seed=2)
    filter_ = hc.RateFilter(80.0, 1.0 / RATE)
    _, rates = run_again("shipped", None, run)
    filter_.reset(seen.x[0], rates[0])
    for i in range(1, 21):
        np.testing.assert_allclose(seen.rates[i], filter_.rate(seen.x[i]), atol=1e-12)
    assert seen.rates[21] == pytest.approx(filter_.rate(seen.x[21], 0.002))
    np.testing.assert_allclose(seen.rates[0], rates[0])


def test_a_filter_goes_over_turns_and_leaves_a_base_to_its_own_rates():
    names = ["base", "wheel", "hip"]
    mech, (q, v) = robot("floating_leg"), start("floating_leg")
    v = v.copy()
    wheel = mech.coordinate_names.index("wheel")
    v[wheel] = 50.0
    controller = Watching(3)
    sensors = hc.Sensors(names, noise=(0.0, 1e-9), rate_bandwidth=2000.0)
    run = hc.simulate(mech, controller, q, v, 0.5, sensors=sensors)
    x, rates = run_again("floating_leg", names, run)
    assert np.ptp(x[:, 7]) > 6.0  # it went round
    assert (controller.rates[:, :6] != rates[:, :6]).all()
    np.testing.assert_allclose(controller.rates[:, :6], rates[:, :6], atol=1e-8)
    late = hc.RateFilter(2000.0, 1e-3).delay
    slope = np.abs(np.diff(rates[:, 6:], axis=0)).max(axis=0) * 1e3
    off = np.abs(controller.rates[:, 6:] - rates[:, 6:]).max(axis=0)
    assert (off < 1.5 * slope * late + 1e-6).all()


def test_the_whole_state_may_have_filtered_rates():
    run, seen = watched("one_of_each", hc.Sensors("all", rate_bandwidth=80.0))
    mech, filter_ = robot("one_of_each"), hc.RateFilter(80.0, 1.0 / RATE)
    iq, iv = (mech.model.joints[mech.model.getJointId("wheel")].idx_q,
              mech.model.joints[mech.model.getJointId("wheel")].idx_v)  # fmt: skip
    angle = np.arctan2(run.q[:, iq + 1], run.q[:, iq])
    filter_.reset(angle[:1], run.v[0, iv : iv + 1])
    for i in range(1, 21):
        np.testing.assert_allclose(seen.rates[i, iv], filter_.rate(angle[i : i + 1])[0], atol=1e-12)
    assert np.array_equal(seen.x, run.q)
    assert np.array_equal(seen.rates[:, :6], run.v[:, :6])


# --------------------------------------------------------------------------- in a closed loop


def swing(mech, q, amplitude):
    home = mech.motor_positions(q)
    size, w = amplitude * np.arange(1, mech.nu + 1), 6.0

    def reference(t):
        return (
            home + size * (1.0 - np.cos(w * t)), size * w * np.sin(w * t),
            size * w**2 * np.cos(w * t),
        )  # fmt: skip

    return reference


@pytest.mark.parametrize("name", ["five_bar", "delta", "stewart"])
def test_a_robot_follows_by_its_motors_alone(name):
    mech = hc.load(hc.robot_file(name))
    q, v = hc.assemble(mech)
    reference = swing(mech, q, 0.005 if name == "stewart" else 0.1)
    ctl = hc.ComputedTorque(mech, 400.0, 40.0)
    exact = hc.simulate(mech, ctl.track(reference), q, 0.0 * v, 0.3)
    own = ctl.track_from_motors(reference)
    own.loop.reset(q)
    run = hc.simulate(mech, own, q, 0.0 * v, 0.3, sensors=hc.Sensors())
    np.testing.assert_allclose(run.q, exact.q, atol=1e-9)
    np.testing.assert_allclose(run.u, exact.u, atol=1e-7 * np.abs(exact.u).max())
    coarse = ctl.track_from_motors(reference)
    coarse.loop.reset(q)
    sensors = hc.Sensors(counts=2**17 if name != "stewart" else 1e6, rate_bandwidth=1500.0)
    run = hc.simulate(mech, coarse, q, 0.0 * v, 0.3, sensors=sensors)
    off = [mech.motor_positions(x) - reference(t)[0] for x, t in zip(run.q, run.t, strict=True)]
    assert np.abs(off).max() < 5e-3


def test_a_controller_is_told_what_it_is_made_for():
    mech, (q, v) = robot("shipped"), start("shipped")
    home = (mech.motor_positions(q), [0.0, 0.0], [0.0, 0.0])
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    whole, own = ctl.track(lambda t: home), ctl.track_from_motors(lambda t: home)

    def refuses(controller, sensors, *words, **options):
        options = together(**options)
        refused(
            lambda: hc.simulate(mech, controller, q, v, 0.01, sensors=sensors, **options),
            hc.InputError, *words,
        )  # fmt: skip

    refuses(whole, hc.Sensors(), "whole state", "motor_left", "track_from_motors")
    refuses(own, None, "hc.Sensors", "motor_left", "ctl.track(reference)")
    refuses(own, None, "hc.Sensors", hold=False)
    refuses(own, hc.Sensors("all"), "hc.Sensors(measured)")
    refuses(own, hc.Sensors(["motor_right", "motor_left"]), "in this order")
    refuses(own, hc.Sensors(["tip_hinge"]), "tip_hinge", "in this order")
    refuses(own, hc.Sensors(), "hold=True", hold=False)
    refuses(None, hc.Sensors(), "controller")


def test_a_controller_that_asks_for_another_partition_is_shown_the_same():
    class Asked:
        def __init__(self):
            self.shown, self.asked = {}, []

        def __call__(self, t, x, rates):
            self.shown[t] = x
            return np.zeros(1)

        def repartitioned(self, x, rates, t):
            self.asked.append((t, x.copy()))
            x[:] = 7.0
            return self

    mech, (q, v) = mechanism("four_bar"), closed_states("four_bar")[0]
    asked = Asked()
    hc.simulate(mech, asked, q, v, 0.5, sensors=hc.Sensors(noise=(1e-6, 0.0)))
    assert asked.asked
    for t, x in asked.asked:
        assert np.array_equal(x, asked.shown[t])


# ------------------------------------------------------------------------- another plant


def test_sensors_are_those_of_the_plant():
    """Of a plant whose links are longer the tip hinge reads another angle."""
    mech, (q, v) = robot("shipped"), start("shipped")
    plant = mech.with_forces([hc.JointFriction(viscous={"tip_hinge": 0.1})])
    controller = Watching(2)
    sensors = hc.Sensors(["tip_hinge"])
    run = hc.simulate(mech, controller, q, v, 0.05, plant=plant, sensors=sensors)
    for x, there in zip(controller.x, run.q, strict=True):
        np.testing.assert_allclose(x, hc.joint_motion(plant, "tip_hinge", there).value, atol=1e-14)
    loose = mech.without("tip_hinge")
    refused(
        lambda: hc.simulate(mech, controller, q, v, 0.05, plant=loose, sensors=sensors),
        hc.InputError, "tip_hinge",
    )  # fmt: skip


def test_contacts_that_come_and_go_change_no_sensor():
    """A robot that floats is measured with its base, whether a foot stands or not."""
    standing = feet(1, 3)
    lifted = standing.without(*standing.constraint_names)
    q, v = hc.assemble(standing)
    lifts = hc.Event(lambda t, q, v: t - 0.013, reaction=lambda t, q, v: (lifted, v))
    for delay in (0.0, 0.004):
        controller = Watching(standing.nu, push=1.0)
        sensors = hc.Sensors(delay=delay)
        run = hc.simulate(standing, controller, q, v, 0.02, events=lifts, sensors=sensors)
        earlier = np.maximum(np.arange(21) - round(1000 * delay), 0)
        np.testing.assert_array_equal(controller.x, run.q[earlier])
        np.testing.assert_allclose(controller.rates, run.v[earlier], atol=1e-14)
        assert np.abs(run.v[-1, :6]).max() > 1e-3


# ------------------------------------------------------------------------------- a value


def test_sensors_are_a_value():
    one, two = (hc.Sensors(["a", "b"], np.array([0.1, 0.2]), [3.0, np.inf], 0.5) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != hc.Sensors(["b", "a"], (0.1, 0.2), (3.0, np.inf), 0.5)
    assert pickle.loads(pickle.dumps(one)) == one
    assert dataclasses.replace(one, delay=0).delay == 0.0
    assert hc.Sensors(n for n in ("a", "b")).measured == ("a", "b")
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.delay = 1.0
    assert repr(hc.Sensors()) == (
        "Sensors(measured=None, noise=(0.0, 0.0), counts=None, delay=0.0, rate_bandwidth=None)"
    )


def test_a_run_says_what_the_controller_was_shown(tmp_path):
    sensors = hc.Sensors(counts=4096, delay=1e-3)
    run, _ = watched("five_bar", sensors, 0.02)
    assert run.sensors == repr(sensors)
    assert hc.Run.read(run.save(tmp_path / "run")).sensors == run.sensors
    assert watched("five_bar", None, 0.02)[0].sensors == ""


# ------------------------------------------------------------------------------- refusals

BAD = {
    "measured": ["left", "", 5, [], [1], [["left"]], {"left": 1}, np.eye(2), b"left", [None]],
    "noise": [None, 0.1, "ab", (0.1,), (0.1, 0.2, 0.3), (-0.1, 0.0), (0.0, np.nan), (np.inf, 0.0),
              ([[0.1]], 0.0), ([], 0.0), ("a", "b"), {0.1, 0.2}, {"q": 0.1, "v": 0.2}, (1j, 0.0),
              (True, 0.0), (10**400, 0.0)],
    "counts": [0, -5, "many", np.nan, [], [[5.0]], [5.0, 0.0], [5.0, np.nan], -np.inf, 1j, {5},
               True, [None]],
    "delay": [None, -1e-3, "1", np.nan, np.inf, [0.1], True],
    "rate_bandwidth": [0.0, -1.0, "1", np.nan, np.inf, [0.1], True],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "bad"), [pytest.param(n, x, id=f"{n}-{x!s:.20}") for n in BAD for x in BAD[n]]
)
def test_what_is_no_good_is_refused_by_name(name, bad):
    refused(lambda: hc.Sensors(**{name: bad}), hc.InputError, name)


@pytest.mark.parametrize("junk", [5, "all", (0.1, 0.1), {"noise": (0.1, 0.1)}, hc.Sensors, True])
def test_what_are_no_sensors_is_refused(junk):
    mech, (q, v) = robot("five_bar"), start("five_bar")
    refused(
        lambda: hc.simulate(mech, Watching(2), q, v, 0.01, sensors=junk), hc.InputError, "sensors"
    )


UNFIT = {
    "a name": ({"measured": ["lefd"]}, ["lefd", "left"]),
    "a name twice": ({"measured": ["left", "left"]}, ["twice"]),
    "noise of others": ({"noise": ([0.1, 0.1, 0.1], 0.0)}, ["noise", "(2,)", "(3,)"]),
    "noise of rates of others": ({"noise": (0.1, [0.1])}, ["noise", "(2,)", "(1,)"]),
    "no counts": ({"counts": 5e-324}, ["counts", "too small"]),
    "counts of others": ({"counts": [100.0]}, ["counts", "(2,)", "(1,)"]),
    "a bandwidth beyond the ticks": ({"rate_bandwidth": 3142.0}, ["rate_bandwidth", "pi / dt"]),
    "noise of rates that nobody measures": (
        {"noise": (0.0, 0.1), "rate_bandwidth": 100.0}, ["rate_bandwidth", "measured"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", UNFIT)
def test_sensors_that_do_not_fit_are_refused(what):
    options, words = UNFIT[what]
    mech, (q, v) = robot("five_bar"), start("five_bar")
    sensors = hc.Sensors(**options)
    refused(
        lambda: hc.simulate(mech, Watching(2), q, v, 0.01, sensors=sensors), hc.InputError, *words
    )


def test_noise_is_no_longer_an_argument():
    mech, (q, v) = robot("five_bar"), start("five_bar")
    with pytest.raises(TypeError, match="noise"):
        hc.simulate(mech, Watching(2), q, v, 0.01, noise=(0.1, 0.1))
