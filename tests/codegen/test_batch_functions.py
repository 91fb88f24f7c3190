"""Laws for many robots in one call: the numbers of one state, a status for each robot."""

from __future__ import annotations

import copy
import pickle
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from expressed import (
    case,
    compiled,
    forward_reference,
    inverse_reference,
    states,
    tolerance,
    with_expression,
)
from support import ANY_STATE, Foreign, closed_states, few, mechanism, relative
from task_code import frame, laws, reference, robot
from task_code import states as states_of_robot

import holoctl as hc
from holoctl.codegen.laws.task_rows import reference_value
from holoctl.codegen.task_law_options import TaskSubject

DERIVED = "terms", "inverse_dynamics_derivatives", "forward_dynamics_derivatives"
Status = hc.results.BatchStatus


@cache
def built(name, functions=None):
    """One state in a call, and many, with the same options."""
    mech, part = case(name)
    options = {"partition": part, "inconsistent": "project", **ANY_STATE}
    return compiled(name, functions), hc.compile(
        mech, functions, device="cpu", workers=2, **options
    )


@cache
def five_bar():
    return hc.compile(mechanism("five_bar"), ["inverse_dynamics"], device="cpu", workers=2)


def inputs(name, count, seed=0):
    """Closed states and targets of `count` robots."""
    mech, rng, given = mechanism(name), np.random.default_rng(seed), closed_states(name)
    Q, V = (np.array([given[i % 20][k] for i in range(count)]) for k in range(2))
    return Q, V, rng.normal(size=(count, mech.nu))


# ---------------------------------------------------------------------------- agreement


@pytest.mark.parametrize(
    "name",
    few(["five_bar", "floating_leg", "weld_chain", "universal_rods", "timed_arm_expressed"],
        ["five_bar"]),
)  # fmt: skip
def test_each_robot_gets_what_it_gets_alone(name):
    mech, part = case(name)
    one, many = built(name)
    rng, t = np.random.default_rng(3), 0.4
    given = [*states(name, "closed", 12), *states(name, "open", 6)]
    Q, V = (np.array([s[k] for s in given]) for k in range(2))
    T, TAU = (rng.normal(size=(len(given), n)) for n in (mech.nu, mech.nv))
    U, of_u = many.inverse_dynamics(Q, V, T, t)
    A, of_a = many.forward_dynamics(Q, V, TAU, t)
    prepared = hc.PreparedInverseDynamics(mech, part, None, "project", **ANY_STATE)
    for i, (q, v) in enumerate(given):
        for x, status, call, third, python in (
            (U, of_u, one.inverse_dynamics, T,
             lambda *s: inverse_reference(prepared, *s)),
            (A, of_a, one.forward_dynamics, TAU,
             lambda *s: forward_reference(mech, part, *s)),
        ):  # fmt: skip
            before = one.fallbacks
            alone = call(q, v, third[i], t)
            assert status[i] == (Status.OK if one.fallbacks == before else Status.IN_DOUBT)
            if status[i] == Status.OK:
                expected, condition = python(q, v, third[i], t)
                assert np.abs(expected).max() > 1e-6
                assert relative(x[i], expected) < tolerance(condition)
                assert relative(x[i], alone) < tolerance(condition)
            else:
                assert np.isnan(x[i]).all()
    assert (of_u == 0).mean() > 0.6
    assert (of_a == 0).mean() > 0.6


@pytest.mark.parametrize("name", few(["five_bar", "floating_leg"], ["five_bar"]))
def test_terms_and_derivatives_too(name):
    mech, _ = case(name)
    one, many = built(name, DERIVED)
    given = states(name, "closed", 8)
    Q, V = (np.array([s[k] for s in given]) for k in range(2))
    T, TAU = (np.random.default_rng(4).normal(size=(8, n)) for n in (mech.nu, mech.nv))
    found, status = many.terms(Q, V)
    assert not status.any()
    for field in ("error", "rate", "jacobian", "drift", "M", "h", "F"):
        rows = np.array([getattr(one.terms(q, v), field) for q, v in given])
        assert getattr(found, field).shape == rows.shape
        np.testing.assert_allclose(getattr(found, field), rows, rtol=1e-12, atol=1e-12)
    assert np.abs(found.h).max() > 0.01
    bad = Q.copy()
    bad[3, 0] = np.nan
    none, status = many.terms(bad, V)
    assert status.tolist() == [0, 0, 0, Status.NOT_FINITE, 0, 0, 0, 0]
    assert all(np.isnan(x[3]).all() and np.isfinite(x[4:]).all() for x in none)
    for function, third in (("inverse_dynamics", T), ("forward_dynamics", TAU)):
        *parts, status = getattr(many, f"{function}_derivatives")(Q, V, third)
        assert not status.any()
        for k, part in enumerate(parts):
            alone = np.array([getattr(one, f"{function}_derivatives")(*s, x)[k]
                              for s, x in zip(given, third, strict=True)])  # fmt: skip
            assert part.shape == alone.shape
            assert np.abs(alone).max() > 1e-3
            assert relative(part, alone) < 1e-9


def limited(effort=3.0):
    mech = mechanism("five_bar")
    return hc.ComputedTorque(mech, 100.0, 20.0, limits=hc.Limits(effort=effort))


def test_computed_torque_of_many_and_within_limits():
    mech = mechanism("five_bar")
    Q, V, A_REF = inputs("five_bar", 30)
    rng = np.random.default_rng(5)
    Q_REF = np.array([mech.motor_positions(q) for q in Q]) + 0.05 * rng.normal(size=(30, 2))
    free = hc.ComputedTorque(mech, 100.0, 20.0)
    for controller in (free, limited()):
        many = hc.compile(controller, ["torque"], device="cpu", workers=1)
        U, status = many.torque(Q, V, Q_REF, np.zeros(2), A_REF)
        assert not status.any()
        for i in range(30):
            expected = controller.torque(Q[i], V[i], Q_REF[i], np.zeros(2), A_REF[i])
            assert relative(U[i], expected) < 1e-9
        late, _ = many.torque(Q, V, Q_REF, np.zeros(2), A_REF, 2.0)  # time changes nothing here
        np.testing.assert_array_equal(late, U)
    assert np.abs(U).max() <= 3.0 + 1e-12
    robots = zip(Q, V, Q_REF, A_REF, strict=True)
    unlimited = [free.torque(q, v, r, np.zeros(2), a) for q, v, r, a in robots]
    assert np.abs(unlimited).max() > 4.0


def references(controller, given, rng):
    """References of robots, and the same as numbers."""
    of_robots = [reference(controller, q, v, rng) for q, v in given]
    subject = TaskSubject(controller)
    wanted = [subject.own.wanted(x)[0] for x in of_robots]
    value = np.array([reference_value(subject.task, x.value) for x in wanted])
    rates = np.array([x.rate for x in wanted]), np.array([x.acceleration for x in wanted])
    return of_robots, (value, *rates)


@pytest.mark.parametrize(
    "which", few(["five_bar whole", "stewart whole", "limited"], ["five_bar whole", "limited"])
)
def test_laws_of_tasks_of_many(which):
    name = which.split()[0] if which != "limited" else "five_bar"
    controller, rng = laws(name)["whole"], np.random.default_rng(6)
    if which == "limited":
        controller = hc.TaskSpaceControl(
            robot(name), frame(robot(name), "x z"), 400.0, 40.0, limits=hc.Limits(effort=500.0)
        )
    given = states_of_robot(robot(name), 10, rng)
    many = hc.compile(controller, device="cpu", workers=1)
    assert many.controller is controller
    Q, V = (np.array([s[k] for s in given]) for k in range(2))
    of_robots, as_numbers = references(controller, given, rng)
    U, status = many.torque(Q, V, as_numbers)
    assert (status == 0).sum() > 5
    for i, (q, v) in enumerate(given):
        if status[i] == 0:
            assert relative(U[i], controller.torque(q, v, of_robots[i])) < 1e-9
    value, rate = as_numbers[:2]
    held, status = many.torque(Q, V, value[0], 1.0)
    rest, _ = many.torque(Q, V, (value[0], 0.0 * rate, 0.0 * rate[0]), t=1.0)
    np.testing.assert_array_equal(held, rest)
    assert np.isfinite(held).any()
    if name == "stewart":
        poses = [x[0] for x in of_robots]
        assert isinstance(poses[0], pin.SE3)
        np.testing.assert_array_equal(many.torque(Q, V, poses)[0], many.torque(Q, V, value)[0])
        one, _ = many.torque(Q, V, poses[0])
        np.testing.assert_array_equal(one, many.torque(Q, V, value[0])[0])
        bad = value.copy()
        bad[2, 3] += 0.1  # no rotation
        assert many.torque(Q, V, bad)[1][2] == Status.IN_DOUBT


@pytest.mark.parametrize(
    "name",
    few(["five_bar", "floating_leg", "standing_leg", "three_motors"], ["five_bar", "floating_leg"]),
)
def test_the_closed_state_from_the_motors(name):
    mech = mechanism(name)
    measured = ("hip", "motor_crank", "wheel", "head") if name == "floating_leg" else None
    many = hc.compile(mech, ["state"], measured=measured, device="cpu", workers=2)
    estimator = hc.ClosedStateEstimator(mech, measured)
    rng, start = np.random.default_rng(7), estimator.q
    steps = 0.02 * rng.normal(size=(12, mech.nv)) * mech.column_scale
    given = [hc.assemble(mech, pin.integrate(mech.model, start, d), d, restarts=0) for d in steps]
    X = np.array([estimator.readings.at(q) for q, _ in given])
    rates = np.array([estimator.readings.rates(*s) for s in given])
    Q, V, status = many.state(X, rates)
    ok = 0
    for i in range(12):
        estimator.reset(start)
        try:
            q, v = estimator.state(X[i], rates[i])
        except hc.HoloctlError:
            continue
        assert status[i] == Status.OK
        np.testing.assert_allclose(Q[i], q, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(V[i], v, rtol=0.0, atol=1e-10)
        ok += 1
    assert ok > 8
    assert np.abs(Q - start).max() > 1e-3
    at_rest, V, _ = many.state(X)
    assert not V[status == 0].any()
    again, _, status = many.state(X, start=Q)  # a shorter way to the same states
    assert (status == 0).sum() >= ok
    np.testing.assert_allclose(again[status == 0], at_rest[status == 0], rtol=0.0, atol=1e-10)


def test_a_closed_state_that_is_not_found_says_why():
    mech = mechanism("five_bar")
    many = hc.compile(mech, ["state"], device="cpu", workers=2)
    start = hc.ClosedStateEstimator(mech).q
    x = mech.motor_positions(start)
    X = np.tile(x, (6, 1))
    X[1] += [5.0, 1.0]  # out of reach
    X[2, 0] = np.inf
    starts = np.tile(start, (6, 1))
    starts[3, 1] += 0.1
    starts[4, 0] = np.nan
    Q, V, status = many.state(X, start=starts)
    assert status.tolist() == [
        Status.OK, Status.FAR, Status.NOT_FINITE, Status.START_OPEN, Status.NOT_FINITE, Status.OK,
    ]  # fmt: skip
    bad = status != 0
    assert np.isnan(Q[bad]).all()
    assert np.isnan(V[bad]).all()
    np.testing.assert_array_equal(Q[5], many.state(x)[0][0])
    said = many.describe(status)
    assert said.startswith("2 of 6 robots OK; 2 robots (the first 2): NOT_FINITE")
    assert "START_OPEN, the configuration to start from is not closed" in said
    for wrong in ([0, 77], [[0, 1]], [0.5], "OK"):
        with pytest.raises(hc.InputError, match="status must be"):
            many.describe(wrong)


def test_a_dead_point_and_sensors_that_disagree():
    mech = robot("four_bar")
    many = hc.compile(mech, ["state"], measured=["rocker"], device="cpu", workers=1)
    start = hc.ClosedStateEstimator(mech, ["rocker"]).q
    q, _ = hc.assemble(mech, [0.67383, 0.0, 1.52078], restarts=0)  # crank and coupler in line
    x = np.array([start[2], start[2] - 0.8, q[2]])  # beyond the dead point, and at it
    _, _, status = many.state(x[:, None], start=np.array([start, start, q]))
    assert status.tolist() == [Status.OK, Status.LOST, Status.START_SINGULAR]
    mech = mechanism("three_motors")
    many = hc.compile(mech, ["state"], device="cpu", workers=1)
    X = np.tile(mech.motor_positions(hc.ClosedStateEstimator(mech).q), (2, 1))
    X[1, 0] += 0.3
    assert many.state(X)[2].tolist() == [Status.OK, Status.CONTRADICTORY]


# ------------------------------------------------------------------- one robot and the others


def test_no_robot_stops_or_changes_another():
    many = five_bar()
    Q, V, T = inputs("five_bar", 40)
    good, status = many.inverse_dynamics(Q, V, T)
    assert not status.any()
    bad_q, bad_t = Q.copy(), T.copy()
    bad_q[3, 1] = np.nan
    bad_q[7] += 0.3  # open
    bad_q[11] = [np.pi / 2, 0.0, np.pi / 2, 0.0]  # stretched arms: singular, and open
    bad_t[20, 0] = -np.inf
    U, status = many.inverse_dynamics(bad_q, V, bad_t)
    expected = {3: Status.NOT_FINITE, 7: Status.IN_DOUBT, 11: Status.IN_DOUBT,
                20: Status.NOT_FINITE}  # fmt: skip
    assert {i: status[i] for i in np.flatnonzero(status)} == expected
    assert np.isnan(U[list(expected)]).all()
    rest = np.setdiff1d(np.arange(40), list(expected))
    np.testing.assert_array_equal(U[rest], good[rest])


def test_a_singular_robot_is_in_doubt():
    """All links in one line, however far open a state may be."""
    mech = mechanism("five_bar")
    many = hc.compile(mech, ["inverse_dynamics"], device="cpu",
                        closure_limit=None, velocity_limit=None)  # fmt: skip
    q, v = hc.assemble(mech)
    Q = np.tile(q, (3, 1))
    Q[1] = 0.0
    U, status = many.inverse_dynamics(Q, v, [1.0, 1.0])
    assert status.tolist() == [0, Status.IN_DOUBT, 0]
    assert np.isnan(U[1]).all()


def test_the_number_of_threads_changes_no_bit():
    mech = mechanism("five_bar")
    Q, V, T = inputs("five_bar", 333)
    expected, _ = five_bar().inverse_dynamics(Q, V, T)
    for workers in (None, 1, 3, 7):
        many = hc.compile(mech, ["inverse_dynamics"], device="cpu", workers=workers)
        for _ in range(2):
            np.testing.assert_array_equal(many.inverse_dynamics(Q, V, T)[0], expected)
    for i in (0, 200):
        alone, _ = five_bar().inverse_dynamics(Q[i], V[i], T[i])
        np.testing.assert_array_equal(alone[0], expected[i])


# ------------------------------------------------------------------------------------ arrays


def test_any_form_of_array():
    many = five_bar()
    Q, V, T = inputs("five_bar", 25)
    expected, _ = many.inverse_dynamics(Q, V, T)
    wide = np.full((50, 9), np.nan)
    wide[::2, 1::2] = Q
    packed = np.zeros(25, dtype=[("v", "f8", 4), ("mark", "i4")])  # strides are no whole numbers
    packed["v"] = V
    for given in (
        (Q.tolist(), V, T),
        (wide[::2, 1::2], np.asfortranarray(V), T.T.copy().T),
        (Q[::-1].copy()[::-1], packed["v"], T.astype(">f8")),
        (Foreign(Q), Foreign(np.asfortranarray(V)), Foreign(T)),
    ):
        found, status = many.inverse_dynamics(*given)
        assert type(found) is type(status) is np.ndarray
        np.testing.assert_array_equal(found, expected)
        assert status.dtype == np.uint8
    single, _ = many.inverse_dynamics(Q.astype(np.float32), Foreign(V.astype(np.float32)), T)
    assert relative(single, expected) < 1e-4


def test_what_has_no_axis_of_robots_is_for_all():
    many = five_bar()
    Q, V, T = inputs("five_bar", 6)
    Q[:], V[:] = Q[0], V[0]
    expected, _ = many.inverse_dynamics(Q, V, T)
    np.testing.assert_array_equal(many.inverse_dynamics(Q[0], V[0], T)[0], expected)
    np.testing.assert_array_equal(many.inverse_dynamics(Q[0], V, T)[0], expected)
    one, status = many.inverse_dynamics(Q[0], V[0], T[2])
    assert one.shape == (1, 2)
    assert status.shape == (1,)
    np.testing.assert_array_equal(one[0], expected[2])
    none, status = many.inverse_dynamics(Q[:0], V[0], T[:0])
    assert none.shape == (0, 2)
    assert status.shape == (0,)
    assert many.describe(status) == "0 of 0 robots OK"


def test_out_takes_the_result():
    many = five_bar()
    Q, V, T = inputs("five_bar", 20)
    expected, _ = many.inverse_dynamics(Q, V, T)
    out = np.zeros((40, 2))[::2]
    found, _ = many.inverse_dynamics(Q, V, T, out=out)
    assert found is out
    np.testing.assert_array_equal(out, expected)
    buffer = np.vstack([np.zeros((1, 2)), T])
    found, _ = many.inverse_dynamics(Q, V, buffer[1:], out=buffer[:-1])  # one robot behind
    np.testing.assert_array_equal(found, expected)
    frozen = np.zeros((20, 2))
    frozen.setflags(write=False)
    for bad in (frozen, np.zeros((19, 2)), np.zeros((20, 2), np.float32), [[0.0, 0.0]] * 20):
        with pytest.raises(hc.InputError, match="out must be a writable array of float64"):
            many.inverse_dynamics(Q, V, T, out=bad)


def test_wrong_arrays_are_refused_by_name():
    many = five_bar()
    Q, V, T = inputs("five_bar", 6)
    for given, said in (
        ((Q[:, :3], V, T), r"q must have shape \(N, 4\) or \(4,\); got \(6, 3\)"),
        ((Q, V[:5], T), "6 of q, 5 of v and 6 of target"),
        ((Q, V, 1.0), r"target must have shape \(N, 2\)"),
        ((Q, V, T[None]), "target must have shape"),
        ((Q, V, 1j * T), "target must be an array of real numbers"),
        ((Q, V, Foreign(1j * T)), "target must be an array of real numbers"),
        ((Q, V, "ab"), "target must be an array of real numbers"),
        ((Q, V, T, np.nan), "t .* must be finite"),
        ((Q, V, T, [0.0]), "t .* must be a number"),
    ):
        with pytest.raises(hc.InputError, match=said):
            many.inverse_dynamics(*given)


# ---------------------------------------------------------------------------- what is built


def test_a_pickle_is_the_same_and_says_what_it_is():
    many = five_bar()
    again = pickle.loads(pickle.dumps(many))
    given = inputs("five_bar", 9)
    np.testing.assert_array_equal(again.inverse_dynamics(*given)[0],
                                  many.inverse_dynamics(*given)[0])  # fmt: skip
    assert copy.deepcopy(many) is many
    assert again.workers == many.workers == 2
    assert repr(again) == "<BatchFunctions 'five_bar' on cpu: inverse_dynamics>"
    tasks = hc.compile(laws("five_bar")["whole"], device="cpu")
    assert pickle.loads(pickle.dumps(tasks)).functions == ("torque",)


def test_what_was_not_compiled_is_said():
    many = five_bar()
    Q, V, T = inputs("five_bar", 2)
    for ask in (
        lambda: many.forward_dynamics(Q, V, np.zeros(4)), lambda: many.terms(Q, V),
        lambda: many.torque(Q, V, T, T, T), lambda: many.state(T),
    ):  # fmt: skip
        with pytest.raises(hc.InputError, match=r"was not compiled; hc.compile.*device='cpu'"):
            ask()
    with pytest.raises(hc.InputError, match=r"q_ref, v_ref, a_ref.* got 2 values"):
        hc.compile(limited(), ["torque"], device="cpu").torque(Q, V, T, T)


def test_options_that_a_batch_does_not_have_are_refused():
    mech = mechanism("five_bar")
    integral = hc.ComputedTorque(mech, 100.0, 20.0, ki=1.0)
    timed = with_expression("timed_arm")
    for what, options, said in (
        (mech, {"device": "gpu"}, "device must be one of 'cpu', 'cuda'; got 'gpu'"),
        (mech, {"device": "cpu", "flags": ["-O1"]}, "flags"),
        (mech, {"device": "cpu", "machine": "vm"}, "machine"),
        (mech, {"device": "cpu", "payload": "tip"}, "payload"),
        (mech, {"device": "cpu", "gravity": True}, "gravity"),
        (mech, {"device": "cpu", "workers": 0}, "workers must be a whole number"),
        (mech, {"device": "cuda", "workers": 2}, "workers is the number of threads of 'cpu'"),
        (mech, {"workers": 2}, "workers is the number of threads of device='cpu'"),
        (mech, {"device": "cpu", "functions": ["torque"]}, "torque is that of a controller"),
        (mech, {"device": "cpu", "functions": ["torqe"]}, "functions must be one of"),
        (integral, {"device": "cpu"}, "integral action ki remembers"),
        (timed, {"device": "cpu", "functions": ["state"]}, "constraints depend on time"),
        (laws("five_bar")["whole"], {"device": "cpu", "weights": [1.0, 1.0]}, "brings its own"),
        (laws("five_bar")["whole"], {"device": "cpu", "functions": ["terms"]}, "must be one of"),
    ):
        with pytest.raises(hc.InputError, match=said):
            hc.compile(what, **options)
