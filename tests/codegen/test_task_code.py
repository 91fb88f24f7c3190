"""Compiled laws of tasks give the torques of their controllers, or the same refusals."""

from __future__ import annotations

import dataclasses
import pickle
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
import zoo
from expressed import ca, case
from support import few, mechanism, relative, shared
from task_code import TILTED, Law, frame, laws, reference, robot, states, zoo_law
from zoo import ZOO

import holoctl as hc
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.critical_damping import critically_damped
from holoctl.codegen.laws.task_rows import reference_value, task_rows
from holoctl.codegen.matrices import dense
from holoctl.control.task_space.law import critical_damping

ROBOTS = ("five_bar", "delta", "stewart", "leg", "geared_arm", "ankle")


# ------------------------------------------------------------------------------ the law


SOME_LAWS = ("whole", "other axes", "few, braked", "few, held", "mass", "natural", "full critical",
             "full inertia", "damped, critical")  # fmt: skip


@pytest.mark.parametrize("case", few(["some of five_bar", *ROBOTS], ["some of five_bar"]))
def test_the_law_is_that_of_the_controller(case):
    some, _, name = case.rpartition(" ")
    rng, doubted, seen = np.random.default_rng(3), 0, 0
    given = states(robot(name), 8, rng)
    for what in SOME_LAWS if some else laws(name):
        controller = laws(name)[what]
        law = Law(controller)
        for q, v in given:
            asked = reference(controller, q, v, rng)
            u, guard = law(q, v, asked)
            try:
                expected = controller.torque(q, v, asked)
            except (hc.SingularityError, hc.InconsistentError):
                assert not guard < 1.0, what
                continue
            seen += 1
            if guard < 1.0:
                assert relative(u, expected) < 1e-9, what
            else:
                doubted += 1
    assert seen > 50
    assert doubted < 0.1 * seen


AXES = ("rz", "rx ry", "y ry rz", "rz x rx", "rx ry rz", "rz z ry x rx y")


WHOSE = [("stewart", False), ("leg", True), ("stewart", True), ("leg", False)]


@pytest.mark.parametrize("case", few(WHOSE, WHOSE[1:2]), ids=str)
def test_rows_and_errors_are_those_of_the_task(case):
    name, local = case
    mech, rng = hc.load(hc.robot_file(name), free_flyer=name == "leg"), np.random.default_rng(2)
    E, given = symbolic(mech), states(mech, 3, rng)
    frames = [f.name for f in mech.model.frames][1:]
    for axes in AXES:
        one, two = rng.choice(frames, 2, replace=False)
        for other in ("universe", TILTED, str(one)):
            try:
                task = hc.FrameTask(str(two), axes, other, local).bind(mech)
            except hc.InputError:  # fixed to the same body
                continue
            value = ca.SX.sym("value", 12)
            rows = task_rows(E, task, value)
            columns = [ca.vertcat(*x) for x in (rows.drift, rows.rate, rows.error)]
            J = dense(rows.jacobian, mech.nv)
            f = ca.Function("f", [E.q, E.v, value], [J, *columns, ca.vertcat(*rows.guard)])
            for q, v in given:
                kin = hc.project(mech, q, v).kinematics
                motion = task.at(kin)
                for angle in (0.0, 1e-9, 0.5, 2.0, 3.1, np.pi - 1e-6):
                    axis = rng.normal(size=3)
                    turn = pin.exp3(angle * axis / np.linalg.norm(axis))
                    X = pin.SE3(turn @ motion.value.rotation, rng.normal(size=3))
                    wanted = task.wanted(X)
                    found = f(q, v, reference_value(task, wanted))
                    J, drift, rate, error, off = (np.array(x) for x in found)
                    size = 1.0 + np.abs(motion.drift).max()
                    assert np.abs(J - motion.jacobian).max() < 1e-13
                    assert np.abs(drift.ravel() - motion.drift).max() < 1e-12 * size
                    assert np.abs(rate.ravel() - motion.jacobian @ v).max() < 1e-12 * size
                    e = task.error(motion.value, wanted)
                    assert np.abs(error.ravel() - e).max() < (1e-8 if angle > 3.0 else 1e-13)
                    assert off.max() < 1e-4


DRIVEN = [
    n for n in ZOO
    if n not in ("sine_gear", "timed_arm", "sine_chart")  # without expressions
    and n not in ("floating_leg", "every_force")
]  # fmt: skip


@pytest.mark.parametrize("name", few(DRIVEN, ["three_motors", "hung_plate", "geared_slider"]))
def test_the_law_is_that_of_the_controller_all_over_the_zoo(name):
    mech, rng = mechanism(name), np.random.default_rng(4)
    part = hc.partition(mech, hc.assemble(mech)[0])
    if not 0 < part.actuation_rank == part.independent.size:
        pytest.skip("passive motions, or none")
    controller, seen = zoo_law(name), 0
    law = Law(controller)
    for q, v in states(mech, 10, rng):
        asked = reference(controller, q, v, rng)
        u, guard = law(q, v, asked)
        try:
            expected = controller.torque(q, v, asked)
        except (hc.SingularityError, hc.InconsistentError):
            assert not guard < 1.0
            continue
        if guard < 1.0:
            assert relative(u, expected) < 1e-8
            seen += 1
    assert seen >= 5


def test_motors_that_are_more_than_motions():
    mech, rng = mechanism("three_motors"), np.random.default_rng(5)
    held = mech.motor_positions(mech.reference)
    point = "right_rod", pin.SE3(np.eye(3), np.array([0.2, 0.1, 0.1]))
    one, two = hc.FrameTask(point, "x"), hc.FrameTask(point, "x y")
    for controller in (
        hc.TaskSpaceControl(mech, one, 40.0, 4.0, posture=held),
        hc.TaskSpaceControl(mech, two, 40.0, 4.0, weights=[1.0, 2.0, 5.0]),
        hc.Impedance(mech, two, 40.0, 4.0),
    ):
        law = Law(controller)
        for q, v in states(mech, 5, rng):
            asked = reference(controller, q, v, rng)
            u, guard = law(q, v, asked)
            assert guard < 1.0
            assert relative(u, controller.torque(q, v, asked)) < 1e-9


@pytest.mark.parametrize("at", few(["reference", "measured"], ["reference"]))
def test_friction_at_the_rates_that_the_controller_takes(at):
    base, rng = robot("five_bar"), np.random.default_rng(6)
    rub = hc.JointFriction(viscous=0.3, coulomb={"motor_left": 0.5})
    mech = dataclasses.replace(base, forces=[rub])
    for axes in ("x z", "z"):
        controller = hc.TaskSpaceControl(mech, frame(mech, axes), 40.0, 4.0, friction_at=at)
        law, other = Law(controller), Law(dataclasses.replace(controller, friction_at="measured"))
        for q, v in states(mech, 5, rng):
            asked = reference(controller, q, v, rng)
            u, guard = law(q, v, asked)
            assert guard < 1.0
            assert relative(u, controller.torque(q, v, asked)) < 1e-9
            assert (relative(u, other(q, v, asked)[0]) > 1e-6) == (at == "reference")


@pytest.mark.parametrize("at", ["reference", "measured"])
def test_constraints_that_depend_on_time(at):
    base, rng = case("timed_arm_expressed")[0], np.random.default_rng(10)
    mech = dataclasses.replace(base, forces=[hc.JointFriction(viscous=0.2, coulomb=0.1)])
    controller = hc.TaskSpaceControl(mech, frame(mech, "x"), 40.0, 4.0, friction_at=at)
    law = Law(controller)
    for t in (0.3, 1.7):
        q, v = hc.assemble(mech, v_guess=rng.normal(size=3), t=t)
        asked = reference(controller, q, v, rng)
        u, guard = law(q, v, asked, t)
        assert guard < 1.0
        assert relative(u, controller.torque(q, v, asked, t)) < 1e-9


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_critical_damping_without_eigenvectors(n):
    rng, A, z = np.random.default_rng(n), ca.SX.sym("A", n, n), ca.SX.sym("z", n)
    X = rng.normal(size=(n, n))
    K = X @ X.T
    entries = [[A[i, j] for j in range(n)] for i in range(n)]
    found, guard = critically_damped(K, entries, [z[i] for i in range(n)])
    f = ca.Function("f", [A, z], [ca.vertcat(*found), sum(guard, ca.SX(0.0))])
    for spread in (0.0, 1.0, 3.0):
        Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        mobility, rate = (Q * 10.0 ** rng.uniform(-spread, spread, n)) @ Q.T, rng.normal(size=n)
        D, off = f(0.5 * (mobility + mobility.T), rate)
        expected = critical_damping(K, np.linalg.inv(mobility)) @ rate
        assert float(off) < 1e-3
        assert relative(np.array(D).ravel(), expected) < 1e-9


# ---------------------------------------------------------------------------- near singular


def nearly_singular():
    """States of the five-bar on a way to where its task is singular, the condition growing."""
    mech, rng = robot("five_bar"), np.random.default_rng(0)
    task = frame(mech, "x z")
    found = []
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    for _ in range(400):
        P = hc.project(mech, q, v, partition=part)
        here = hc.task_terms(P, task).condition
        found.append((here, q))
        if here > 1e7:
            break
        best = None
        for size in (0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-5, 1e-7):
            if best is not None and best[0] > 1.2 * here:
                break
            for sign in rng.normal(size=(6, 2)):
                try:
                    q2, _ = hc.assemble(
                        mech, pin.integrate(mech.model, q, size * P.gamma @ sign), restarts=0
                    )
                    other = hc.task_terms(hc.project(mech, q2, v, partition=part), task).condition
                except hc.HoloctlError:
                    continue
                if best is None or other > best[0]:
                    best = other, q2
        if best is None or best[0] <= here:
            break
        q = best[1]
    return found


@cache
def on_the_way():
    return shared("nearly-singular-task", nearly_singular)


def answer(torque, *given):
    """The torque, or the words of the refusal."""
    try:
        return torque(*given)
    except hc.SingularityError as error:
        return str(error)


@pytest.mark.parametrize(
    "what", few(["whole", "damped", "critical", "damped, critical"], ["whole"])
)
def test_near_singular_tasks_have_the_same_answer_or_the_same_refusal(what):
    mech = robot("five_bar")
    way = on_the_way()
    assert way[-1][0] > 1e4
    controller = laws("five_bar")[what]
    fast, refused = compiled(controller), 0
    for _, q in way:
        v, asked = np.zeros(mech.nv), [0.1, 0.5]
        expected, found = (answer(x.torque, q, v, asked) for x in (controller, fast))
        if isinstance(expected, str):
            refused += 1
            assert found == expected
        else:
            assert relative(found, expected) < 1e-7
    assert bool(refused) == (controller.at_singular == "raise")


def test_damping_in_the_code_is_that_of_the_general_path():
    """Where it is not zero; the code alone, nobody behind it."""
    controller, seen = laws("five_bar")["damped"], 0
    law, v = Law(controller), np.zeros(4)
    for condition, q in on_the_way():
        u, guard = law(q, v, [0.1, 0.5])
        if condition > 100.0 and guard < 1.0:
            assert relative(u, controller.torque(q, v, [0.1, 0.5])) < 1e-6
            seen += 1
    assert seen > 3


@pytest.mark.parametrize("mode", ["raise", "damp"])
def test_a_task_of_one_row_at_a_dead_centre(mode):
    mech, told = zoo.slider_crank("crank"), []
    task = hc.PostureTask(("slider",))
    for controller in (
        hc.TaskSpaceControl(mech, task, 100.0, 20.0, at_singular=mode),
        hc.Impedance(mech, task, 100.0, "critical", at_singular=mode),
    ):
        law = Law(controller)
        for a in (0.3, 0.03, 0.01, 1e-3, 1e-5, 1e-8, 0.0, -1e-8, -1e-3):
            b = -a - np.arcsin(0.4 * np.sin(a))
            q = np.array([a, b, 0.2 * np.cos(a) + 0.5 * np.cos(a + b)])
            asked = [q[2] + 0.01]
            u, guard = law(q, np.zeros(3), asked)
            expected = answer(controller.torque, q, np.zeros(3), asked)
            told.append(isinstance(expected, str))
            if told[-1]:
                assert not guard < 1.0
            elif guard < 1.0:
                assert np.abs(u - expected).max() < 1e-6 * max(1.0, np.abs(expected).max())
            assert mode == "raise" or guard < 1.0
    assert any(told) == (mode == "raise")


# ------------------------------------------------------------------------------ machine code


@cache
def compiled(controller):
    return hc.compile(controller, flags=["-O0"])


def plane():
    return laws("five_bar")["whole"]


@pytest.mark.parametrize(
    "what", few(["whole", "other axes", "few, held", "natural"], ["whole", "other axes"])
)
def test_compiled_torque_is_that_of_the_controller(what):
    controller, rng = laws("five_bar")[what], np.random.default_rng(7)
    fast, before = compiled(controller), compiled(controller).fallbacks
    for q, v in states(controller.mech, 10, rng):
        asked = reference(controller, q, v, rng)
        u = fast.torque(q, v, asked)
        assert relative(u, controller.torque(q, v, asked)) < 1e-9
        out = np.zeros(2)
        assert fast.torque(q, v, asked, 0.0, out=out) is out
        np.testing.assert_array_equal(out, u)
        lists = (asked[0], list(asked[1]), list(asked[2]))
        np.testing.assert_array_equal(fast.torque(list(q), v, lists), u)
        value = fast.torque(q, v, asked[0])
        assert relative(value, controller.torque(q, v, asked[0])) < 1e-9
    assert fast.fallbacks == before


def test_a_pose_may_stand_for_a_position():
    controller = plane()
    q, v = hc.assemble(controller.mech)
    X = pin.SE3(np.eye(3), np.array([0.1, 9.0, 0.4]))
    np.testing.assert_array_equal(
        compiled(controller).torque(q, v, X),
        compiled(controller).torque(q, v, np.array([0.1, 0.4])),
    )


def test_what_the_controller_refuses_is_refused_in_the_same_words():
    controller = laws("five_bar")["other axes"]
    fast, mech = compiled(controller), controller.mech
    q, v = hc.assemble(mech)
    asked = reference(controller, q, v, np.random.default_rng(8))
    X, rate, _ = asked
    R = X.rotation.copy()
    R[0, 0] += 1e-3
    bad, nan = pin.SE3(R, X.translation), np.array([np.nan, 0.0])
    for given in (
        (q, v, np.zeros(2)), (q, v, (X, rate)), (q, v, (X, rate, [1.0])), (q, v, bad),
        (q, v, (X, nan, rate)), (q[:2], v, X), (q, v, X, np.nan), (q + np.nan, v, X),
        (q, np.full(4, np.inf), X), (q + 0.3, v, X), (q, [9.0, 0, 0, 0], X), (q, v, None),
    ):  # fmt: skip
        with pytest.raises(hc.HoloctlError) as expected:
            controller.torque(*given)
        with pytest.raises(type(expected.value)) as found:
            fast.torque(*given)
        assert str(found.value) == str(expected.value)
    with pytest.raises(TypeError):
        fast.torque(q, v, X, f_ext={})


def test_a_loop_finds_the_state():
    controller, rng = plane(), np.random.default_rng(9)
    fast, slow = compiled(controller).loop(), controller.loop()
    assert fast.measured == slow.measured
    q, _ = hc.assemble(controller.mech)
    start, out = controller.mech.motor_positions(q), np.zeros(2)
    for k in range(5):
        given = start + 0.02 * k, rng.normal(size=2), [0.1, 0.5]
        expected = slow.torque_from_motors(*given)
        assert relative(fast.torque_from_motors(*given), expected) < 1e-9
        u = compiled(controller).torque_from_motors(*given, out=out)
        assert u is out
        assert relative(u, expected) < 1e-9
    compiled(controller).reset(q)
    with pytest.raises(hc.InputError, match="v_motors"):
        fast.torque_from_motors(start, None, [0.1, 0.5])


def test_pickles_and_repr():
    fast = compiled(plane())
    again = pickle.loads(pickle.dumps(fast))
    q, v = hc.assemble(fast.mech)
    np.testing.assert_array_equal(again.torque(q, v, [0.1, 0.5]), fast.torque(q, v, [0.1, 0.5]))
    assert "five_bar" in repr(fast)
    assert fast.functions == ("torque",)


# ----------------------------------------------------------------------------------- limits


def limited_laws(name, policy, limits, friction):
    """Laws of an ankle's joints, or of a five-bar's tip, within limits."""
    mech = robot(name)
    if friction:
        mech = mech.with_forces([hc.JointFriction(viscous=0.5, coulomb=0.3)])
    ankle = hc.PostureTask(["ankle_pitch", "ankle_roll"])
    task = ankle if name == "ankle" else frame(mech, "x z")
    first, second = mech.actuated
    given = {
        "efforts": hc.Limits(effort=3.0),
        "rates": hc.Limits(effort=3.0, velocity={mech.coordinate_names[0]: 1.5}),
        "joints": hc.Limits(effort=5.0, velocity={first: 3.0}, acceleration={second: 50.0}),
    }[limits]
    options = {"limits": given, "policy": policy}
    yield hc.Impedance(mech, task, stiffness=200.0, damping=20.0, **options)
    if policy == "nearest":
        yield hc.TaskSpaceControl(mech, task, 400.0, 40.0, **options)
    else:
        yield hc.Impedance(mech, task, 200.0, 20.0, inertia=2.0, **options)


@pytest.mark.parametrize("name", few(["ankle", "five_bar"], ["ankle"]))
@pytest.mark.parametrize("friction", few([False, True], [True]))
@pytest.mark.parametrize("limits", few(["efforts", "rates", "joints"], ["joints"]))
@pytest.mark.parametrize("policy", ["nearest", "scale"])
def test_a_compiled_law_of_a_task_keeps_limits_as_in_python(name, policy, limits, friction):
    rng, acted = np.random.default_rng(6), 0
    for controller in limited_laws(name, policy, limits, friction):
        mech = controller.mech
        fast = hc.compile(controller, flags=["-O0"])
        q0, _ = hc.assemble(mech)
        part = hc.partition(mech, q0)
        free = dataclasses.replace(controller, limits=None)
        for _ in range(8):
            step = 0.2 * rng.normal(size=mech.nv) * mech.column_scale
            q, _ = hc.assemble(mech, pin.integrate(mech.model, q0, step))
            P = hc.project(mech, q, np.zeros(mech.nv), partition=part)
            v = P.gamma @ (2.0 * rng.normal(size=P.k))
            value = 0.3 * rng.normal(size=2) + (np.zeros(2) if mech.nu > 2 else [0.0, 0.2])
            reference = value, np.zeros(2), 50.0 * rng.normal(size=2)
            u = controller.torque(q, v, reference)
            found = fast.torque(q, v, reference)
            np.testing.assert_allclose(found, u, rtol=1e-9, atol=1e-9)
            acted += np.abs(free.torque(q, v, reference) - u).max() > 1e-3
        assert fast.fallbacks == 0
    assert acted > 4


# ------------------------------------------------------------------------------ refused by name


def test_what_cannot_be_compiled_or_exported_is_refused_by_name(tmp_path):
    mech, passive = robot("five_bar"), mechanism("floating_leg")
    x, z, both = (frame(mech, axes) for axes in ("x", "z", "x z"))
    limited = hc.TaskSpaceControl(mech, both, 4.0, 4.0, limits=hc.Limits(effort=5.0))
    told = dataclasses.replace(limited, policy="raise")
    with pytest.raises(hc.InputError, match="policy='raise' cannot be exported"):
        hc.export_c(told, tmp_path)
    with pytest.raises(hc.InputError, match="machine='vm' has no torque within limits"):
        hc.compile(limited, machine="vm")
    several = hc.TaskSpaceControl(mech, [x, z], 4.0, 4.0)
    custom = hc.CustomTask(lambda q: [q[0]], name="own")
    cases = {
        "2 tasks.*one FrameTask": several,
        "own.*cannot be compiled": hc.TaskSpaceControl(mech, custom, 4.0, 4.0),
        "3 rows.*2 motions": hc.TaskSpaceControl(mech, frame(mech, "x z ry"), 4.0, 4.0),
        "passive": hc.TaskSpaceControl(passive, hc.PostureTask([passive.actuated[0]]), 4.0, 4.0),
    }
    for message, controller in cases.items():
        with pytest.raises(hc.InputError, match=message):
            hc.compile(controller)
        with pytest.raises(hc.InputError, match=message.replace("compiled", "(compiled|exported)")):
            hc.export_c(controller, tmp_path)
    with pytest.raises(hc.SingularityError, match="every configuration"):
        hc.compile(hc.TaskSpaceControl(mech, frame(mech, "y"), 4.0, 4.0))
    for options in ({"partition": plane().partition}, {"weights": [1, 2]}, {"closure_limit": 1.0}):
        with pytest.raises(hc.InputError, match="brings its own"):
            hc.compile(plane(), **options)
        with pytest.raises(hc.InputError, match="brings its own"):
            hc.export_c(plane(), tmp_path, **options)
    with pytest.raises(hc.InputError, match="brings its own"):
        hc.compile(plane(), inconsistent="project")
    with pytest.raises(hc.InputError, match="functions of a law of tasks"):
        hc.compile(plane(), ["inverse_dynamics"])
    with pytest.raises(hc.InputError, match="torque was not compiled"):
        hc.compile(plane(), ["state"])
