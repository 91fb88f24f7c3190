"""Tasks: value, Jacobian and bias against differences along motions, closed and open."""

from __future__ import annotations

import pickle

import numpy as np
import pinocchio as pin
import pytest
import zoo
from refusals import refused
from support import few, mechanism, relative
from task_mechanisms import (
    NAMES,
    SOME,
    closed_path,
    derivatives,
    frame_pair,
    free_path,
    moved_frame,
    of,
    partition_of,
    placed,
    some_motion,
    states_of,
    step_of,
)

import holoctl as hc

SIX = ("x", "y", "z", "rx", "ry", "rz")
ORDERS = ("ry", "z", "rx", "x", "rz", "y"), ("z", "rx"), ("ry", "x", "rz"), ("y",)
FEW = few(NAMES, ("four_bar", "floating_leg", "universal_rods", "timed_arm", "sine_chart",
                  "our delta", "our stewart", "screw_chain"))  # fmt: skip


def frame_tasks(mech, local, others):
    """(task of all axes, frame, relative to what)."""
    for other in others:
        frame, one = frame_pair(mech, other=other)
        yield hc.FrameTask(frame, relative_to=one, local=local), frame, one


def bodies(mech):
    """The world, and a body that is not the last one, if there is one."""
    return (0, 1) if mech.model.njoints > 2 else (0,)


def rates_of(P):
    """yd: ``v = gamma yd + v_t``."""
    return np.linalg.lstsq(P.gamma, P.v - P.v_t, rcond=None)[0]


def near(found, expected, tol=1e-9):
    size = 1.0 + max(np.abs(found).max(initial=0.0), np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tol * size)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("name", SOME)
def test_frames_along_closed_motions(name, local):
    """xd = J_y yd + J v_t and xdd = J_y ydd + bias are the derivatives of where the frame is."""
    mech, t = of(name), 0.3 if name == "timed_arm" else 0.0
    for seed, state in enumerate(states_of(name)[:2]):
        q, v = hc.assemble(mech, *state, t=t) if t else state
        P = hc.project(mech, q, v, t=t, partition=partition_of(name))
        ydd, a = some_motion(P, seed)
        h = step_of(P.v, a)
        path = closed_path(name, P.q, P.v, a, h, t)
        for task, frame, one in frame_tasks(mech, local, bodies(mech)):
            terms = hc.task_terms(P, task)
            rate, xdd = moved_frame(mech, path, h, frame, one, local)
            near(terms.rate, rate)
            near(terms.jacobian @ ydd + terms.bias, xdd)
            motion = task.bind(mech).at(P.kinematics)
            near(terms.rate, terms.jacobian @ rates_of(P) + motion.jacobian @ P.v_t)
            X = placed(mech, P.q, one).actInv(placed(mech, P.q, frame))
            near(terms.value.homogeneous, X.homogeneous, 1e-14)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("name", SOME)
def test_frames_along_any_motion_of_the_tree(name, local):
    """J and drift need no closed state: along v and a that open the loops."""
    mech, rng = of(name), np.random.default_rng(1)
    q, _ = states_of(name)[0]
    c = mech.column_scale
    q = pin.integrate(mech.model, q, 0.3 * c * rng.normal(size=mech.nv))
    v, a = rng.normal(size=(2, mech.nv)) * c
    P = hc.project(mech, q, v, partition=partition_of(name))
    if name == "sine_chart":  # it puts the state back on itself
        q, v = P.q, P.v
    h = step_of(v, a)
    path = free_path(mech, q, v, a, h)
    for task, frame, one in frame_tasks(mech, local, bodies(mech)):
        motion = task.bind(mech).at(P.kinematics)
        rate, xdd = moved_frame(mech, path, h, frame, one, local)
        near(motion.jacobian @ v, rate)
        near(motion.jacobian @ a + motion.drift, xdd)


@pytest.mark.parametrize("local", [False, True])
def test_axes_are_rows_in_the_order_written(local):
    mech = of("our stewart")
    q, v = states_of("our stewart")[0]
    P = hc.project(mech, q, v)
    frame, one = frame_pair(mech, other=1)
    whole = hc.task_terms(P, hc.FrameTask(frame, relative_to=one, local=local))
    for axes in ORDERS:
        task = hc.FrameTask(frame, " ".join(axes), one, local)
        assert task == hc.FrameTask(frame, list(axes), one, local)
        terms, which = hc.task_terms(P, task), [SIX.index(axis) for axis in axes]
        assert task.bind(mech).labels == tuple(f"{mech.model.names[-1]}.{x}" for x in axes)
        for part in ("rate", "jacobian", "bias"):
            near(getattr(terms, part), getattr(whole, part)[which], 1e-13)
        if local or any(axis in SIX[3:] for axis in axes):
            assert terms.value == whole.value
        else:
            near(terms.value, whole.value.translation[which], 1e-15)


def hand_task(name):
    """A `CustomTask` of what a frame's position and two motors' product are, by Pinocchio."""
    mech = of(name)
    frame = frame_pair(mech)[0]
    model = mech.model.copy()
    data = model.createData()
    j = model.getJointId(frame[0])

    def function(q):
        pin.forwardKinematics(model, data, q)
        p = (data.oMi[j] * frame[1]).translation
        return [p[0] * p[2], p[1], np.exp(p[0])]

    return function


def of_position(name):
    """Other tasks of a mechanism, each with its value as a function of q."""
    mech = of(name)
    model = mech.model.copy()
    com = lambda q: pin.centerOfMass(model, model.createData(), q).copy()  # noqa: E731
    yield hc.CenterOfMassTask(), com
    yield hc.CenterOfMassTask("z x"), lambda q: com(q)[[2, 0]]
    custom = hand_task(name)
    scale = [1.0, 0.5, 2.0]
    yield hc.CustomTask(custom, rows=3, scale=scale), lambda q: np.array(custom(q))
    try:
        mech.motor_positions(mech.reference)
    except hc.InputError:
        return
    yield hc.PostureTask(), mech.motor_positions


@pytest.mark.parametrize("name", FEW)
def test_other_tasks_along_closed_and_any_motions(name):
    mech, t = of(name), 0.3 if name == "timed_arm" else 0.0
    q, v = states_of(name)[1]
    if t:
        q, v = hc.assemble(mech, q, v, t=t)
    P = hc.project(mech, q, v, t=t, partition=partition_of(name))
    ydd, a = some_motion(P)
    h = step_of(P.v, a)
    closed = closed_path(name, P.q, P.v, a, h, t)
    wild = a + np.random.default_rng(2).normal(size=mech.nv)
    open_ = free_path(mech, P.q, P.v, wild, h)
    for task, value in of_position(name):
        terms, bound = hc.task_terms(P, task), task.bind(mech)
        motion = bound.at(P.kinematics)
        start = value(P.q)
        turns = lambda x: (x + np.pi) % (2.0 * np.pi) - np.pi  # noqa: E731
        change = turns if isinstance(task, hc.PostureTask) else lambda x: x
        rate, xdd = derivatives([change(value(x) - start) for x in closed], h)
        near(terms.value, start, 1e-14)
        near(terms.rate, rate)
        near(terms.jacobian @ ydd + terms.bias, xdd, 1e-8)
        near(terms.rate, terms.jacobian @ rates_of(P) + motion.jacobian @ P.v_t)
        rate, xdd = derivatives([change(value(x) - start) for x in open_], h)
        near(motion.jacobian @ P.v, rate)
        near(motion.jacobian @ wild + motion.drift, xdd, 1e-8)
        e = bound.error(terms.value, bound.wanted(start + 0.1))
        near(e, np.full(e.size, 0.1), 1e-12)


@pytest.mark.parametrize("name", ["our five_bar", "our leg", "floating_leg", "universal_rods"])
def test_the_inertia_is_what_a_force_feels(name):
    """A force at the task accelerates it by Lambda^-1 f, all motors at rest."""
    mech, part = of(name), partition_of(name)
    q, v = states_of(name)[0]
    P = hc.project(mech, q, v, partition=part)
    frame, _ = frame_pair(mech)
    task = hc.FrameTask(frame, "x z")
    terms = hc.task_terms(P, task)
    J = task.bind(mech).at(P.kinematics).jacobian
    still = hc.forward_dynamics(mech, q, v, np.zeros(mech.nv), partition=part).a
    for f in np.eye(2):
        pushed = hc.forward_dynamics(mech, q, v, J.T @ f, partition=part).a
        near(terms.inertia @ (J @ (pushed - still)), f, 1e-8)
    assert np.abs(terms.inertia - terms.inertia.T).max() <= 1e-12 * np.abs(terms.inertia).max()


def test_the_condition_does_not_depend_on_the_choice_of_coordinates():
    name = "our stewart"
    mech, (q, v) = of(name), states_of(name)[0]
    task = hc.FrameTask("tip")
    first = hc.task_terms(hc.project(mech, q, v), task).condition
    other = hc.partition(mech, q, independent=[f"platform_{i}" for i in ()] or None)
    found = hc.task_terms(hc.project(mech, q, v, "orthonormal", partition=other), task).condition
    assert found == pytest.approx(first, rel=1e-9)
    assert 1.0 < first < 100.0


def test_a_singular_task_has_no_inertia():
    mech = of("our five_bar")  # in the plane x z
    P = hc.project(mech, *hc.assemble(mech))
    for axes in ("y z", "y", "rx rz"):
        terms = hc.task_terms(P, hc.FrameTask("tip_right", axes))
        assert terms.condition > 1e12
        assert np.isnan(terms.inertia).all()
    terms = hc.task_terms(P, hc.FrameTask("tip_right", "x z ry"))  # more rows than motions
    assert terms.condition == np.inf
    assert np.isnan(terms.inertia).all()


# ------------------------------------------------------------------- ticks are the same numbers


@pytest.mark.parametrize("name", FEW)
def test_the_tick_of_the_centre_of_mass_is_the_general_one(name):
    """The general one is Pinocchio's own, the tick made of the motions of the bodies."""
    from holoctl.tree.live_motion import live_motion

    mech, data = of(name), of(name).model.createData()
    motion = live_motion(mech.model, data)
    bound = hc.CenterOfMassTask("y z x").bind(mech)
    tick = bound.tick(motion, None)
    for q, v in states_of(name):
        P = hc.project(mech, q, v, partition=partition_of(name))
        here = bound.at(P.kinematics)
        pin.computeForwardKinematicsDerivatives(mech.model, data, P.q, P.v, np.zeros(mech.nv))
        tick.evaluate(P.q, P.v, 0.0)
        near(tick.jacobian, here.jacobian, 1e-14)
        near(tick.right, -here.drift, 1e-13)
        near(tick.error(P.q, np.ones(3)), bound.error(here.value, np.ones(3)), 1e-14)


# ----------------------------------------------------------------------------- functions given


def product(q):
    return [q[0] * q[1], np.sin(q[0])]


def product_jacobian(q):
    return [[q[1], q[0]], [np.cos(q[0]), 0.0]]


def product_drift(q, v):
    return [2.0 * v[0] * v[1], -np.sin(q[0]) * v[0] ** 2]


GIVEN = {"jacobian": product_jacobian, "drift": product_drift}


@pytest.mark.parametrize("left_out", [("drift",), ("jacobian",), ("jacobian", "drift")])
def test_numerical_derivatives_replace_callbacks(left_out):
    mech = mechanism("sine_gear")
    exact = hc.CustomTask(product, rows=2, **GIVEN)
    given = {name: f for name, f in GIVEN.items() if name not in left_out}
    q, v = states_of("sine_gear")[0]
    P = hc.project(mech, q, v)
    one, two = (hc.task_terms(P, task) for task in (exact, hc.CustomTask(product, rows=2, **given)))
    near(two.jacobian, one.jacobian, 1e-11)
    near(two.bias, one.bias, 1e-9)
    motion = exact.bind(mech).at(P.kinematics)
    near(motion.drift, product_drift(q, v), 1e-15)


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("jacobian", lambda q: -np.array(product_jacobian(q))),
        ("jacobian", lambda q: 1.001 * np.array(product_jacobian(q))),
        ("jacobian", lambda q: np.zeros((2, 2))),
        ("drift", lambda q, v: np.zeros(2)),
        ("drift", lambda q, v: -np.array(product_drift(q, v))),
    ],
)
def test_derivatives_that_are_not_those_of_the_function_are_refused(what, wrong):
    mech = mechanism("sine_gear")
    hc.CustomTask(product, rows=2, **GIVEN).bind(mech)
    for others in (GIVEN, {}):
        task = hc.CustomTask(product, rows=2, **(others | {what: wrong}))
        refused(lambda task=task: task.bind(mech), hc.InputError,
                f"{what} of CustomTask 'product' is not the derivative of function")  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"function": 5}, "function must be a function"),
        ({"jacobian": "J"}, "jacobian must be a function"),
        ({"drift": 0.0}, "drift must be a function"),
        ({"rows": 0}, "rows"),
        ({"rows": 2.5}, "rows"),
        ({"scale": 0.0}, "above zero"),
        ({"scale": [1.0, 1.0, 1.0]}, "did you mean rows=3"),
        ({"scale": np.inf}, "finite"),
        ({"scale": "a"}, "scale"),
        ({"name": ""}, "name"),
        ({"name": 3}, "name"),
    ],
)
def test_bad_functions_are_refused(changes, words):
    given = {"function": product, "rows": 2} | changes
    refused(lambda: hc.CustomTask(**given), hc.InputError, "CustomTask", words)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda q: [1.0], "rows=2 states the number of rows"),
        (lambda q: [1.0, np.nan], "finite"),
        (lambda q: None, "numbers"),
        (lambda q: "ab", "numbers"),
        (lambda q: [[1.0, 2.0]], "shape"),
    ],
)
def test_what_a_function_must_not_return(function, words):
    task = hc.CustomTask(function, rows=2, name="mine")
    refused(lambda: task.bind(mechanism("sine_gear")), hc.InputError, "CustomTask 'mine'", words)


def test_the_name_of_a_function_is_that_of_its_rows():
    mech = mechanism("sine_gear")
    assert hc.CustomTask(product, rows=2).bind(mech).labels == ("product.0", "product.1")
    task = hc.CustomTask(product, rows=2, name="area", scale=[2.0, 1.0])
    assert task.bind(mech).labels == ("area.0", "area.1")
    assert task.bind(mech).scale.tolist() == [0.5, 1.0]


# -------------------------------------------------------------------------------- bad input


def test_bad_axes_and_frames_are_refused():
    mech = of("our five_bar")
    for axes, words in (("x w", "'w'"), ("x x", "twice"), ([], "any of"), (5, "any of")):
        refused(lambda axes=axes: hc.FrameTask("tip_right", axes), hc.InputError, words)
        refused(lambda axes=axes: hc.CenterOfMassTask(axes), hc.InputError, words)
    refused(lambda: hc.CenterOfMassTask("rx"), hc.InputError, "rx", "CenterOfMassTask")
    refused(lambda: hc.FrameTask("tip_right", local=1), hc.InputError, "local")
    refused(lambda: hc.FrameTask("tip_rigth").bind(mech), hc.InputError, "'tip_rigth'", "tip_right")
    refused(lambda: hc.FrameTask("tip_right", relative_to="bass").bind(mech), hc.InputError,
            "relative_to")  # fmt: skip
    refused(lambda: hc.FrameTask("tip_right", relative_to="tip_right").bind(mech), hc.InputError,
            "never moves")  # fmt: skip
    for junk in (None, mech.model, "five_bar"):
        for task in (hc.FrameTask("tip"), hc.CenterOfMassTask(), hc.CustomTask(product, rows=2)):
            refused(lambda junk=junk, task=task: task.bind(junk), hc.InputError)
    refused(lambda: hc.PostureTask([]), hc.InputError, "one or more")
    refused(lambda: hc.PostureTask(5), hc.InputError)
    refused(lambda: hc.PostureTask(["elbow"]).bind(mech), hc.InputError, "'elbow'")
    refused(lambda: hc.PostureTask(["head"]).bind(mechanism("floating_leg")), hc.InputError)


def massless():
    m = pin.Model()
    for name in ("a", "b"):
        zoo.add_body(m, (name == "b" and "a") or 0, pin.JointModelRZ(), zoo.at(0.3), name,
                     pin.Inertia(0.0, np.zeros(3), np.diag([0.1, 0.1, 0.1])))  # fmt: skip
    return hc.Mechanism(m, [], ["a", "b"], name="massless")


def test_without_mass_there_is_no_centre_of_it():
    refused(lambda: hc.CenterOfMassTask().bind(massless()), hc.InputError, "massless", "no mass")


TERMS = [None, 5, "x", pin.SE3.Identity(), hc.FrameTask, [hc.FrameTask("tip_right")]]


@pytest.mark.parametrize("junk", TERMS)
def test_what_is_no_task_is_refused(junk):
    mech = of("our five_bar")
    P = hc.project(mech, *hc.assemble(mech))
    refused(lambda: hc.task_terms(P, junk), hc.InputError, "task")
    refused(lambda: hc.task_terms(mech, hc.CenterOfMassTask()), hc.InputError, "hc.project")


BAD = [
    (hc.FrameTask("tip_right"), [0.0, 0.0, 0.0], "pin.SE3"),
    (hc.FrameTask("tip_right"), pin.SE3(2.0 * np.eye(3), np.zeros(3)), "rotation"),
    (hc.FrameTask("tip_right"), pin.SE3(np.diag([1.0, 1.0, -1.0]), np.zeros(3)), "rotation"),
    (hc.FrameTask("tip_right"), pin.SE3(np.eye(3), np.array([0.0, np.nan, 0.0])), "finite"),
    (hc.FrameTask("tip_right", "x z"), [0.0], "x z"),
    (hc.FrameTask("tip_right", "x z"), [0.0, np.inf], "finite"),
    (hc.FrameTask("tip_right", "x z"), "ab", "numbers"),
    (hc.FrameTask("tip_right", "x z", local=True), [0.0, 0.0], "x y z"),
    (hc.CenterOfMassTask("x z"), [0.0, 0.0, 0.0], "x z"),
    (hc.CenterOfMassTask("x z"), [0.0, np.nan], "finite"),
    (hc.CenterOfMassTask("x z"), None, "numbers"),
    (hc.CustomTask(lambda q: q[:2], rows=2), [0.0], "shape"),
    (hc.CustomTask(lambda q: q[:2], rows=2), [0.0, np.nan], "finite"),
    (hc.PostureTask(), [0.0], "posture"),
    (hc.PostureTask(), [0.0, np.nan], "finite"),
]


@pytest.mark.parametrize(("task", "value", "words"), BAD)
def test_bad_references_are_refused(task, value, words):
    bound = task.bind(of("our five_bar"))
    refused(lambda: bound.wanted(value), hc.InputError, words)


def test_descriptions_are_values():
    for task in (hc.FrameTask("tip", "x z", local=True), hc.CenterOfMassTask("z"),
                 hc.PostureTask(["elbow"])):  # fmt: skip
        assert pickle.loads(pickle.dumps(task)) == task
        assert hash(task) == hash(pickle.loads(pickle.dumps(task)))
    task = pickle.loads(pickle.dumps(hc.CustomTask(product, rows=2, **GIVEN)))
    assert task.jacobian is product_jacobian


def test_one_reference_configuration_serves_a_posture():
    mech = mechanism("floating_leg")
    q, _ = states_of("floating_leg")[0]
    bound = hc.PostureTask().bind(mech)
    np.testing.assert_array_equal(bound.wanted(q), mech.motor_positions(q))
    wheel = mech.motor_positions(q) + np.array([0.0, 0.0, 6.0 * np.pi])  # which turns without end
    assert np.abs(bound.error(mech.motor_positions(q), wheel)).max() < 1e-12


def test_the_sum_of_all_is_relative():
    """The pose of b in a, and of a in b, move oppositely; and there is no rate between the same."""
    mech, (q, v) = of("our delta"), states_of("our delta")[0]
    P = hc.project(mech, q, v)
    a, b = frame_pair(mech, other=1)
    one = hc.task_terms(P, hc.FrameTask(a, "rx ry rz", b))
    two = hc.task_terms(P, hc.FrameTask(b, "rx ry rz", a, local=True))
    assert relative(two.rate, -one.rate) < 1e-12
    assert relative(two.jacobian, -one.jacobian) < 1e-12
