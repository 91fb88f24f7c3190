"""Errors and Ctrl-C on the way; what a simulation does not take; runs in files."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re

import numpy as np
import pinocchio as pin
import pytest
import zoo
from refusals import refused, simulated
from support import closed_states, mechanism, together

import holoctl as hc

LATE = 0.0105
WAYS = {
    "controller": lambda f: {"controller": lambda t, q, v: [0.0 * f(t)]},
    "analog": lambda f: {"controller": lambda t, q, v: [0.0 * f(t)], "hold": False},
    "event": lambda f: {"events": hc.Event(lambda t, q, v: 1.0 + f(t))},
    "event under ticks": lambda f: {
        "events": hc.Event(lambda t, q, v: 1.0 + f(t)), "controller": lambda t, q, v: [0.0]
    },
    "reaction": lambda f: {
        "events": hc.Event(lambda t, q, v: t - 0.012, reaction=lambda t, q, v: f(t))
    },
    "efforts": lambda f: {"efforts": lambda t, q, v: f(t) * np.ones(3)},
    "f_ext": lambda f: {"f_ext": lambda t, q, v: {"crank": f(t) * np.ones(6)}},
}  # fmt: skip


def ran(way, f, duration=0.05, **options):
    q, v = closed_states("four_bar")[0]
    options = {"controller": None, **WAYS[way](f), **options}
    return hc.simulate(
        mechanism("four_bar"), options.pop("controller"), q, v, duration, **together(**options)
    )


def late(error):
    def f(t):
        if t > LATE:
            raise error
        return 0.0

    return f


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_returns_what_there_is(way):
    run = ran(way, late(KeyboardInterrupt()))
    assert run.ended == "Ctrl-C"
    assert "ended by Ctrl-C" in repr(run)
    assert 0.0 < run.t[-1] < 0.0121
    whole = ran(way, lambda t: 0.0) if way != "reaction" else ran("efforts", lambda t: 0.0)
    assert run.q == pytest.approx(whole.q[: run.t.size], abs=1e-9) or way == "reaction"
    assert run.closure.max() < 1e-11


def test_ctrl_c_before_the_first_effort():
    def controller(t, q, v):
        raise KeyboardInterrupt

    q, v = closed_states("four_bar")[0]
    run = hc.simulate(mechanism("four_bar"), controller, q, v, 0.1)
    assert run.t.tolist() == [0.0]
    assert np.array_equal(run.q[0], q) or run.q[0] == pytest.approx(q, abs=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [ZeroDivisionError, StopIteration, hc.InputError, MemoryError])
def test_errors_pass_through_with_time_and_run(way, error):
    with pytest.raises(error, match="mine") as caught:
        ran(way, late(error("mine")))
    e = caught.value
    assert LATE < e.time < 0.05
    assert 0.0 < e.run.t[-1] <= e.time
    assert e.run.ended == "an error"
    (note,) = e.__notes__
    assert note == f"in the simulation of 'four_bar', at t = {e.time:.6g} s"
    twin = pickle.loads(pickle.dumps(e))
    assert twin.time == e.time
    assert twin.__notes__ == e.__notes__
    assert np.array_equal(twin.run.q, e.run.q)


class Closed(Exception):
    """Lets nothing be added."""

    def __setattr__(self, name, value):
        raise AttributeError(name)


@pytest.mark.parametrize("way", WAYS)
def test_errors_that_let_nothing_be_added_pass_through_too(way):
    with pytest.raises(Closed, match="mine"):
        ran(way, late(Closed("mine")))


@pytest.mark.parametrize("way", WAYS)
def test_floating_point_settings_are_the_callers_in_what_they_wrote_and_nowhere_else(way):
    seen = []

    def f(t):
        with pytest.raises(FloatingPointError):
            np.ones(1) / np.zeros(1)
        seen.append(np.geterr()["under"])
        return 0.0

    with np.errstate(all="raise"):
        if way == "reaction":
            refused(lambda: ran(way, f, 0.013), hc.InputError, "reaction")
        else:
            run = ran(way, f, 0.005)
            assert run.t[-1] == 0.005
        assert set(np.geterr().values()) == {"raise"}
    assert set(seen) == {"raise"}


def test_a_controller_that_goes_on_as_what_is_none():
    class Swaps:
        def __call__(self, t, q, v):
            return [0.5]

        def repartitioned(self, q, v, t):
            with pytest.raises(FloatingPointError):
                np.ones(1) / np.zeros(1)

    q, v = closed_states("four_bar")[0]
    with np.errstate(all="raise"):
        e = refused(lambda: hc.simulate(mechanism("four_bar"), Swaps(), q, 3.0 * v, 1.0),
                    hc.InputError, "repartitioned")  # fmt: skip
    assert e.time == e.run.t[-1] > 0.0


# -------------------------------------------------------------------------------- the door


@pytest.mark.parametrize("name", ["rtol", "atol"])
@pytest.mark.parametrize(
    "junk", [0.0, -1e-9, 1e-15, 0.1, np.nan, np.inf, None, "fine", True, [1e-6]]
)
def test_tolerances_out_of_range(s, name, junk):
    refused(lambda: simulated(s, **{name: junk}), hc.InputError, name)


def test_words_are_named(s):
    for word in ("rk45", "", None, 4, "RK23"):
        refused(lambda word=word: simulated(s, method=word), hc.InputError, "method", "'auto'",
                "'DOP853'", "'RK45'", "'LSODA'", "'Radau'", "'BDF'")  # fmt: skip
        refused(lambda word=word: simulated(s, at_singular=word), hc.InputError, "at_singular",
                "'raise'", "'cross'")  # fmt: skip


@pytest.fixture(scope="module")
def compiled():
    return hc.compile(mechanism("four_bar"), ["forward_dynamics"], flags=["-O0"])


def test_dynamics_that_do_not_match(s, compiled):
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    for junk in (5, "compiled", hc.PreparedForwardDynamics(mech), lambda q, v, tau: v):
        plant = hc.Plant(dynamics=junk)
        refused(lambda plant=plant: hc.simulate(mech, None, q, v, 0.01, plant=plant),
                hc.InputError, "dynamics", "forward_dynamics")  # fmt: skip
    for junk in (5, "compiled", hc.PreparedForwardDynamics(mech), lambda q, v, tau: v):
        refused(lambda junk=junk: hc.simulate(mech, None, q, v, 0.01, plant=junk),
                hc.InputError, "plant must be a Mechanism")  # fmt: skip
        refused(lambda junk=junk: hc.simulate(mech, None, q, v, 0.01, integrator=junk),
                hc.InputError, "hc.Integrator")  # fmt: skip
    plant = hc.Plant(copy.deepcopy(mech), compiled)
    refused(lambda: hc.simulate(mech, None, q, v, 0.01, plant=plant),
            hc.InputError, "dynamics", "four_bar")  # fmt: skip
    inverse = hc.compile(mech, ["inverse_dynamics"], flags=["-O0"])
    refused(lambda: hc.simulate(mech, None, q, v, 0.01, plant=inverse), hc.InputError,
            "inverse_dynamics", "forward_dynamics")  # fmt: skip


def test_compiled_dynamics_serve_until_something_changes(compiled):
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    plain = hc.simulate(mech, None, q, v, 0.3)
    assert hc.simulate(mech, None, q, v, 0.3, plant=compiled).q == pytest.approx(plain.q, abs=1e-9)
    other = hc.compile(
        mech, ["forward_dynamics"], partition=hc.partition(mech, q, independent=["rocker"])
    )
    assert hc.simulate(mech, None, q, v, 0.3, plant=other).q == pytest.approx(plain.q, abs=1e-9)
    heavy = dataclasses.replace(mech, actuated=mech.actuated)
    event = hc.Event(lambda t, q, v: t - 0.1234, reaction=lambda t, q, v: (heavy, v))
    run = hc.simulate(mech, None, q, v, 0.3, plant=compiled, events=event)
    assert run.q == pytest.approx(plain.q, abs=1e-8)


# ------------------------------------------------------------------------------------- files


def test_every_field_comes_back_from_a_file(tmp_path):
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    run = hc.simulate(
        mech, lambda t, q, v: [0.1], q, v, 0.05, sensors=hc.Sensors("all", (1e-6, 1e-6), seed=7),
        events=[hc.Event(lambda t, q, v: t - 0.01), hc.Event(lambda t, q, v: t - 0.04, 0, True)],
    )  # fmt: skip
    assert run.ended == "event 1"
    path = run.save(tmp_path / "deep" / "run.2")
    assert path.name == "run.2.npz"
    again = hc.Run.read(path)
    for field in dataclasses.fields(run):
        one, two = getattr(run, field.name), getattr(again, field.name)
        assert type(one) is type(two)
        np.testing.assert_equal(two, one)
    assert repr(again) == repr(run)
    assert np.array_equal(pickle.loads(pickle.dumps(run)).events, run.events)


def test_files_that_are_no_runs(tmp_path):
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.npz").write_text("a run")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 and then nothing")
    np.savez(tmp_path / "other.npz", t=np.zeros(3))
    q, v = closed_states("four_bar")[0]
    run = hc.simulate(mechanism("four_bar"), None, q, v, 0.002)
    values = {f.name: getattr(run, f.name) for f in dataclasses.fields(run)}
    np.savez(tmp_path / "kinds.npz", **{**values, "energy": np.zeros((2, 3))})
    names = ("array.npy", "empty.npz", "text.npz", "cut.npz", "other.npz", "kinds.npz", "none.npz")
    for name in (*names, "."):
        refused(lambda name=name: hc.Run.read(tmp_path / name), hc.InputError, "not a saved run")


def test_a_run_tells_what_it_took():
    mech = mechanism("bricard")
    q, v = closed_states("bricard")[0]
    run = hc.simulate(mech, None, q, 3.0 * v, 1.0)
    for i in (0, 500, -1):
        told = hc.energy(mech, run.q[i], run.v[i])
        for kind, values in run.energy.items():
            assert values[i] == pytest.approx(getattr(told, kind), abs=1e-10)
    assert ((run.repartitions > 0.0) & (run.repartitions < 1.0)).all()
    assert 12 * run.steps // 2 < run.evaluations < 20 * run.steps
    assert run.steps < 2000
    if len(run.repartitions):
        assert "rows selected again" in repr(run)
    assert all(word in run.versions for word in ("holoctl==", "pin==", "numpy==", "scipy=="))


# ------------------------------------------------------------------- targets that cannot be met


def lowered(plant, model, frame):
    """What a run says in which a frame is to go down by 1 m/s."""
    q, v = hc.assemble(plant)
    data = model.model.createData()
    pin.framesForwardKinematics(model.model, data, q)
    start = data.oMf[model.model.getFrameId(frame)].translation.copy()
    down = np.array([0.0, 0.0, -1.0])
    law = hc.TaskSpaceControl(model, hc.FrameTask(frame, "x y z"), kp=400.0, kd=40.0)
    controller = law.track(lambda t: (start + t * down, down, 0.0 * down))
    return refused(
        lambda: hc.simulate(plant, controller, q, v, 1.0), hc.InconsistentError,
        "too fast to integrate", f"the target of FrameTask '{frame}' contradict",
    )  # fmt: skip


def test_a_foot_that_is_held_while_the_trunk_is_to_go_down_is_named():
    plant = zoo.standing_leg()
    error = lowered(plant, dataclasses.replace(plant, constraints=[]), "trunk")
    assert re.search("contradict constraint '(heel|toe)', which takes most", str(error))
    assert 0.0 < error.time < 1.0
    assert error.run.evaluations < 16000  # most of them before it goes wild


def test_a_foot_that_is_to_move_while_nothing_holds_the_base_is_told():
    leg = dataclasses.replace(zoo.standing_leg(), constraints=[])
    error = lowered(leg, leg, "ankle")
    assert "contradict the base 'trunk', which floats" in str(error)
    assert "wrong unit" not in str(error)


def test_targets_of_motors_are_named_too():
    """With gains that ticks of 10 ms cannot hold."""
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    home, rest = mech.motor_positions(q), np.zeros(2)
    law = hc.ComputedTorque(mech, kp=1e12, kd=1e6, dt=0.01)
    controller = law.track(lambda t: (home + 0.1, rest, rest))
    through = hc.Integrator(at_actuation_singularity="record")  # it is thrown through several
    error = refused(
        lambda: hc.simulate(mech, controller, q, v, 1.0, frequency=100.0, integrator=through),
        hc.InconsistentError,
        "too fast to integrate", "gains too high for the rate",
        "the target of the motors 'motor_left', 'motor_right'",
    )  # fmt: skip
    assert error.run.evaluations < 5000


@pytest.mark.parametrize("tick", [0.01, 0.1, 1.0])
def test_a_stiff_motion_that_dies_away_at_the_beginning_of_a_tick_is_followed(tick):
    """A spring of 1e5 / tick rad/s with as much damping, in a tick that its motion is over in."""
    stiffness = 0.1 * (1e5 / tick) ** 2
    spring = hc.JointSpring("crank", stiffness, 0.0, 2.0 * stiffness * tick / 1e5)
    arms = hc.Linkage("arms")
    for parent, child, joint in (("universe", "arm", "crank"), ("arm", "fore", "elbow")):
        arms.add_body(child, mass=1.0, com=(0.15, 0.0, 0.0), inertia=0.01 * np.eye(3))
        place = pin.SE3(np.eye(3), np.array([0.3 * (child == "fore"), 0.0, 0.0]))
        arms.add_joint(joint, "revolute", parent, child, place)
    mech = arms.mechanism(forces=[spring])
    q = np.array([1e-3, 0.1])
    run = hc.simulate(mech, lambda t, q, v: np.zeros(0), q, 0.0 * q, tick, frequency=1.0 / tick)
    assert abs(run.q[-1, 0]) < 1e-6
