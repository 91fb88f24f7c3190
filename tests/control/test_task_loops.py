"""Laws of tasks in a loop: measured motors, limits, partitions, copies, threads, bad input."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
from inside import prepared_of_tasks
from motions import along_motion
from refusals import refused
from support import closed_states, few, mechanism, relative, shared_partition
from task_mechanisms import (
    WithoutTick,
    acceleration_of,
    doable,
    of,
    partition_of,
    reference_near,
    start_of,
    states_of,
)

import holoctl as hc

KINDS = {
    "task space": lambda mech, task, **o: hc.TaskSpaceControl(mech, task, 100.0, 20.0, **o),
    "natural": lambda mech, task, **o: hc.Impedance(mech, task, 100.0, 20.0, **o),
    "wanted": lambda mech, task, **o: hc.Impedance(mech, task, 100.0, "critical", 2.0, **o),
}
ROBOTS = few(["our five_bar", "our delta", "our stewart", "our leg", "our geared_arm", "biped"],
             ["our five_bar", "our stewart", "our leg"])  # fmt: skip
TIP = hc.FrameTask("tip_right", "x z")


def five_bar(kind="task space", **options):
    mech = of("our five_bar")
    return mech, KINDS[kind](mech, TIP, partition=partition_of("our five_bar"), **options)


def here(mech, task):
    q, _ = hc.assemble(mech)
    return hc.task_terms(hc.project(mech, q, np.zeros(mech.nv)), task).value


# ----------------------------------------------------------------------------- measured motors


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ROBOTS)
def test_from_motors_it_is_the_torque_of_the_closed_state(name, kind, general):
    mech, part, (task, _) = of(name), partition_of(name), doable(name)
    ctl = KINDS[kind](mech, WithoutTick(task) if general else task, partition=part)
    loop = ctl.loop()
    assembly = hc.ClosedStateEstimator(mech, partition=part)
    q, v = start_of(name)
    loop.reset(q)
    assembly.reset(q)
    reference = reference_near(mech, q, v, task)
    x, unit = mech.motor_positions(q), assembly.readings.unit[-mech.nu :]
    rates = unit * np.cos(np.arange(mech.nu))
    base = np.zeros(assembly.readings.unit.size - mech.nu)
    assert base.size == 0, "no robot here floats"
    for k in range(8):
        measured, t = x + 1e-3 * k * rates, 1e-3 * (k + 1)
        state = assembly.state(measured, rates, t)
        u = loop.torque_from_motors(measured, rates, reference, t)
        assert relative(u, ctl.torque(*state, reference, t)) < 1e-9
        np.testing.assert_array_equal(loop.estimator.q, assembly.q)
    assert loop.last.estimator is not None
    assert loop.last.damping == 0.0
    assert loop.measured == assembly.measured


def test_other_sensors_and_another_start():
    mech = of("our five_bar")
    q, v = hc.assemble(mech)
    names = list(mech.coordinate_names[:2])
    _, ctl = five_bar(estimator=hc.ClosedStateEstimator(mech, names, start=q))
    loop, reference = ctl.loop(), reference_near(mech, q, v, TIP)
    assert loop.measured == tuple(names)
    u = loop.torque_from_motors(q[:2], [0.0, 0.0], reference)
    assert relative(u, ctl.torque(q, v, reference)) < 1e-9
    assert isinstance(pickle.loads(pickle.dumps(ctl)).estimator, hc.ClosedStateEstimator)
    other = hc.ClosedStateEstimator(of("our delta"))
    refused(lambda: five_bar(estimator=other), hc.InputError, "another mechanism")


def test_every_thread_has_a_loop_of_its_own():
    mech, ctl = five_bar()
    q, v = hc.assemble(mech)
    x0, found, reference = mech.motor_positions(q), {}, reference_near(mech, q, v, TIP)

    def run(sign):
        u = None
        for k in range(100):
            u = ctl.torque_from_motors(x0 + sign * 1e-3 * k, [0.0, 0.0], reference)
        found[sign] = u

    threads = [threading.Thread(target=run, args=(sign,)) for sign in (1.0, -1.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alone = hc.ClosedStateEstimator(mech)
    start = alone.q
    for sign, u in found.items():
        alone.reset(start)
        for k in range(100):
            state = alone.state(x0 + sign * 1e-3 * k)
        assert relative(u, ctl.torque(*state, reference)) < 1e-10


def test_threads_do_not_disturb_each_other():
    """One controller, several states at once: the torques are those of one after the other."""
    name = "our stewart"
    mech, (task, good) = of(name), doable(name)
    ctl = KINDS["wanted"](mech, task, partition=partition_of(name))
    references = [reference_near(mech, q, v, task, i) for i, (q, v) in enumerate(good)]
    alone = [ctl.torque(q, v, r) for (q, v), r in zip(good, references, strict=True)]
    wrong = []

    def run(i):
        for _ in range(50):
            u = ctl.torque(*good[i], references[i])
            if not np.array_equal(u, alone[i]):
                wrong.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(good))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# -------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("policy", ["nearest", "scale"])
@pytest.mark.parametrize("kind", few(KINDS, ["task space", "wanted"]))
@pytest.mark.parametrize("name", few(["our five_bar", "our stewart", "our leg", "floating_leg"],
                                     ["our five_bar"]))  # fmt: skip
def test_efforts_keep_their_limits_and_these_are_named(name, kind, policy):
    """The efforts are those of the limited inverse dynamics for the motion that was asked for."""
    mech, part, (task, good) = of(name), partition_of(name), doable(name)
    free = KINDS[kind](mech, task, partition=part)
    for general in (False, True):
        for q, v in good:
            reference = reference_near(mech, q, v, task)
            u = free.torque(q, v, reference)
            target = mech.B.T @ hc.forward_dynamics(mech, q, v, mech.B @ u, partition=part).a
            i = int(np.abs(u).argmax())
            limits = hc.Limits(effort=[0.7 * abs(u[i]) if j == i else 2.0 * abs(x) + 1.0
                                       for j, x in enumerate(u)])  # fmt: skip
            ctl = KINDS[kind](mech, WithoutTick(task) if general else task, partition=part,
                              limits=limits, policy=policy)  # fmt: skip
            follow = ctl.track(lambda t: reference)  # noqa: B023
            limited = follow(0.0, q, v)
            lower, upper = np.array(limits.effort, dtype=float).reshape(mech.nu, -1)[:, [0, -1]].T
            upper, lower = np.abs(upper), -np.abs(lower)
            assert (limited >= lower).all()
            assert (limited <= upper).all()
            assert mech.actuator_names[i] in " ".join(follow.last.saturated)
            assert follow.last.scale != 1.0
            oracle = hc.limited_inverse_dynamics(
                mech,
                q,
                v,
                target,
                hc.WithinLimits(limits, policy),
                partition=part,
                inconsistent="project",
            )
            assert relative(limited, oracle.u) < 1e-6
            wide = KINDS[kind](mech, task, partition=part, limits=hc.Limits(effort=1e9))
            follow = wide.track(lambda t: reference)  # noqa: B023
            assert relative(follow(0.0, q, v), u) < 1e-12
            assert follow.last.saturated == ()
            assert follow.last.scale == 1.0


def test_past_a_limit_the_policy_raise_names_it():
    mech, ctl = five_bar()
    q, v = hc.assemble(mech)
    reference = reference_near(mech, q, v, TIP)
    u = ctl.torque(q, v, reference)
    motor = mech.actuated[int(np.abs(u).argmax())]
    limits = hc.Limits(effort={motor: 0.5 * np.abs(u).max()})
    _, strict = five_bar(limits=limits, policy="raise")
    out = np.array([7.0, 7.0])
    e = refused(lambda: strict.torque(q, v, reference, out=out), hc.LimitError, motor)
    assert e.names == (motor,)
    assert np.array_equal(out, [7.0, 7.0])


def test_limits_hold_where_the_state_is_found_too():
    mech, free = five_bar()
    q, v = hc.assemble(mech)
    reference = reference_near(mech, q, v, TIP)
    largest = 0.5 * np.abs(free.torque(q, v, reference)).max()
    _, ctl = five_bar(limits=hc.Limits(effort=float(largest)))
    loop = ctl.loop()
    u = loop.torque_from_motors(mech.motor_positions(q), [0.0, 0.0], reference)
    assert np.abs(u).max() <= largest
    assert loop.last.saturated
    assert relative(u, ctl.torque(*loop.state(mech.motor_positions(q)), reference)) < 1e-9


# ------------------------------------------------------------------------------ other partitions


@pytest.mark.parametrize("kind", ["task space", "natural"])
@pytest.mark.parametrize("name", few(["line_symmetric_bricard", "bennett", "tripteron"],
                                     ["bennett"]))  # fmt: skip
def test_the_torque_is_the_same_before_and_after_a_swap(name, kind):
    """Along a way on which partitions wear: the same, but for rounding, and none is left worn."""
    mech, swaps = oc.drawn(name)[1], 0
    law = KINDS[kind](mech, hc.PostureTask())
    for q, v, _ in along_motion(mech, 400):
        other = law.repartitioned(q, v)
        if other is not law:
            swaps += 1
            assert type(other) is type(law)
            reference = (mech.motor_positions(q) + 0.01, 0.9 * mech.motor_rates(v),
                         np.ones(mech.nu))  # fmt: skip
            u, after = (x.torque(q, v, reference) for x in (law, other))
            assert np.abs(after - u).max() < 1e-8 * max(1.0, np.abs(u).max())
            fresh = KINDS[kind](mech, hc.PostureTask(), partition=hc.partition(mech, q))
            u = fresh.torque(q, v, reference)
            assert np.abs(after - u).max() < 1e-8 * max(1.0, np.abs(u).max())
        law = other
    assert swaps


def test_a_swap_keeps_the_place_of_what_follows():
    mech, ctl = five_bar()
    q, v = hc.assemble(mech)
    reference = reference_near(mech, q, v, TIP)
    for track in (ctl.track, ctl.track_from_motors):
        tracking = track(lambda t: reference)
        assert tracking.repartitioned(q, v) is tracking  # nothing would be better
    assert ctl.repartitioned(q, v) is ctl
    refused(lambda: ctl.repartitioned(q[:2], v), hc.InputError, "q")


# ------------------------------------------------------------------------- values, and bad input


@pytest.mark.parametrize("kind", KINDS)
def test_a_controller_is_a_frozen_value_that_copies(kind):
    mech, ctl = five_bar(kind, posture=[0.1, 0.2], at_singular="damp", weights=[1.0, 2.0],
                         limits=hc.Limits(effort=1e4), policy="scale", dt=2e-3)  # fmt: skip
    q, v = hc.assemble(mech, None, np.ones(4))
    reference = reference_near(mech, q, v, TIP)
    u = ctl.torque(q, v, reference)
    for other in (pickle.loads(pickle.dumps(ctl)), copy.deepcopy(ctl), dataclasses.replace(ctl)):
        assert np.array_equal(other.torque(q, v, reference), u)
        assert other.at_singular == "damp"
        assert other.dt == 2e-3
    stiff = dataclasses.replace(ctl, **{"kp" if kind == "task space" else "stiffness": 400.0})
    assert relative(stiff.torque(q, v, reference), u) > 1e-2
    with pytest.raises(dataclasses.FrozenInstanceError):
        ctl.dt = 1.0
    out = np.zeros(2)
    assert ctl.torque(q, v, reference, out=out) is out
    assert np.array_equal(out, u)
    for inside in (ctl.loop(), prepared_of_tasks(ctl)):
        refused(lambda x=inside: pickle.dumps(x), hc.InputError, "cannot be copied or pickled")
    assert "<Loop of five_bar" in repr(ctl.loop())


def junk_references():
    whole, flat = hc.FrameTask("tip_right", "x z ry"), TIP
    X = pin.SE3.Identity()
    good = np.zeros(2)
    yield from (
        (flat, None, "numbers"),
        (flat, [0.0], "shape"),
        (flat, [0.0, np.nan], "finite"),
        (flat, [[0.0, 0.0]], "shape"),
        (flat, (good, good), "tuple of 2"),
        (flat, (good, good, good, good), "tuple of 4"),
        (flat, (good, [0.0], good), "rate of the reference"),
        (flat, (good, good, [np.inf, 0.0]), "acceleration of the reference"),
        (flat, (good, None, good), "rate of the reference"),
        (flat, "home", "numbers"),
        (whole, [0.0, 0.0, 0.0], "pin.SE3"),
        (whole, X.homogeneous, "pin.SE3"),
        (whole, (X, np.zeros(2), np.zeros(3)), "rate of the reference"),
        (whole, pin.SE3(np.diag([1.0, 1.0, -1.0]), np.zeros(3)), "rotation"),
    )


@pytest.mark.parametrize(("task", "bad", "words"), list(junk_references()))
def test_bad_references_change_nothing(task, bad, words):
    mech = of("our five_bar")
    q, v = hc.assemble(mech)
    ctl = hc.TaskSpaceControl(mech, task, 100.0, 20.0, partition=partition_of("our five_bar"))
    loop, out = ctl.loop(), np.array([7.0, 7.0])
    before, x = loop.estimator.q, mech.motor_positions(q)
    refused(lambda: ctl.torque(q, v, bad, out=out), hc.InputError, words)
    refused(lambda: ctl.track(lambda t: bad)(0.0, q, v), hc.InputError, words)
    refused(lambda: loop.torque_from_motors(x, [0.0, 0.0], bad, out=out), hc.InputError, words)
    assert np.array_equal(out, [7.0, 7.0])
    assert np.array_equal(loop.estimator.q, before)


BAD_STATES = [
    ({"q": np.zeros(3)}, "q"),
    ({"q": np.full(4, np.nan)}, "q"),
    ({"v": np.zeros(3)}, "v"),
    ({"v": np.array([0.0, np.inf, 0.0, 0.0])}, "v"),
    ({"q": "abcd"}, "q"),
    ({"t": "now"}, "t"),
    ({"t": np.nan}, "t"),
    ({"f_ext": {"nose": (np.zeros(3), np.zeros(3))}}, "'nose'"),
    ({"f_ext": {"tip_right": np.zeros(5)}}, "tip_right"),
    ({"f_ext": 5.0}, "f_ext"),
    ({"efforts": np.zeros(3)}, "efforts"),
    ({"efforts": [np.nan] * 4}, "efforts"),
    ({"out": np.zeros(3)}, "out"),
    ({"out": [0.0, 0.0]}, "out"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("changes", "words"), BAD_STATES)
def test_bad_states_and_loads_are_refused(kind, changes, words):
    mech, ctl = five_bar(kind)
    q, v = hc.assemble(mech)
    given = {"q": q, "v": v, "reference": here(mech, TIP)}
    u = ctl.torque(**given)
    refused(lambda: ctl.torque(**(given | changes)), hc.InputError, words)
    assert np.array_equal(ctl.torque(**given), u)


def test_what_is_open_is_refused():
    mech, ctl = five_bar()
    q, v = hc.assemble(mech)
    refused(lambda: ctl.torque(q + 0.1 * np.eye(4)[0], v, [0.0, 0.5]), hc.InconsistentError)
    refused(lambda: ctl.torque(q, v + np.eye(4)[0], [0.0, 0.5]), hc.InconsistentError)


BAD_LAWS = [
    ({"kp": -1.0}, "positive semidefinite"),
    ({"kp": [1.0]}, "shape"),
    ({"kp": [[1.0, 0.5], [0.0, 1.0]]}, "symmetric"),
    ({"kp": [[1.0, 2.0], [2.0, 1.0]]}, "positive semidefinite"),
    ({"kp": np.nan}, "finite"),
    ({"kp": "stiff"}, "gains"),
    ({"kd": None}, "gains"),
    ({"tasks": []}, "one task or more"),
    ({"tasks": "tip_right"}, "FrameTask"),
    ({"tasks": [TIP, None]}, "FrameTask"),
    ({"tasks": hc.FrameTask}, "FrameTask"),
    ({"tasks": [TIP, TIP], "kp": [1.0, 1.0, 1.0]}, "2 tasks"),
    ({"task_weights": [1.0, 1.0]}, "task_weights"),
    ({"task_weights": [0.0]}, "above zero"),
    ({"task_weights": [np.inf]}, "task_weights"),
    ({"posture": [0.0]}, "positions of the motors"),
    ({"posture": [np.nan, 0.0]}, "posture"),
    ({"posture_kp": -1.0}, "posture_kp"),
    ({"posture_kd": "a"}, "posture_kd"),
    ({"at_singular": "ignore"}, "'damp'"),
    ({"friction_at": "rest"}, "friction_at"),
    ({"policy": "best"}, "policy"),
    ({"dt": 0.0}, "dt"),
    ({"weights": [1.0]}, "weights"),
    ({"closure_limit": -1.0}, "closure_limit"),
    ({"estimator": "motors"}, "ClosedStateEstimator"),
    ({"limits": 5.0}, "limits"),
    ({"limits": hc.Limits(effort={"nose": 1.0})}, "nose"),
    ({"partition": "auto"}, "partition"),
    ({"mech": "five_bar"}, "Mechanism"),
]


@pytest.mark.parametrize(("changes", "words"), BAD_LAWS)
def test_bad_laws_are_refused(changes, words):
    mech = of("our five_bar")
    given = {"mech": mech, "tasks": TIP, "kp": 100.0, "kd": 20.0}
    refused(lambda: hc.TaskSpaceControl(**(given | changes)), hc.InputError, words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stiffness": [[1.0, 2.0], [2.0, 1.0]]}, "positive semidefinite"),
        ({"stiffness": -1.0}, "stiffness"),
        ({"damping": "over"}, "'critical'"),
        ({"damping": [1.0, -1.0]}, "damping"),
        ({"inertia": 0.0}, "positive definite"),
        ({"inertia": [[1.0, 1.0], [1.0, 1.0]]}, "positive definite"),
        ({"inertia": "natural"}, "inertia"),
        ({"task": [TIP]}, "task"),
        ({"at_singular": 1}, "at_singular"),
        ({"posture": [[0.0, 0.0]]}, "positions of the motors"),
    ],
)
def test_bad_impedances_are_refused(changes, words):
    mech = of("our five_bar")
    given = {"mech": mech, "task": TIP, "stiffness": 100.0, "damping": 20.0}
    refused(lambda: hc.Impedance(**(given | changes)), hc.InputError, words)


def test_without_motors_there_is_nothing_to_control():
    mech = dataclasses.replace(mechanism("five_bar"), actuated=[])
    task = hc.FrameTask("right_rod", "x y")
    for make in (hc.TaskSpaceControl, hc.Impedance):
        refused(lambda make=make: make(mech, task, 1.0, 1.0), hc.NotActuatedError, "no motors")


def test_a_partition_of_another_mechanism_is_refused():
    refused(lambda: hc.TaskSpaceControl(of("our five_bar"), TIP, 1.0, 1.0,
                                        partition=shared_partition("five_bar")),
            hc.InputError, "partition")  # fmt: skip


def test_what_follows_needs_a_function():
    _, ctl = five_bar()
    for junk in (None, 5, [0.0, 0.5]):
        for track in (ctl.track, ctl.track_from_motors):
            refused(lambda track=track, junk=junk: track(junk), hc.InputError, "reference")
    refused(lambda: hc.results.Tracking("five_bar", lambda t: None), hc.InputError, "controller")


def test_a_general_actuation_has_no_posture_in_positions():
    mech = of("our five_bar")
    mech = dataclasses.replace(mech, actuated=[], actuation=2.0 * mech.B)
    refused(lambda: hc.TaskSpaceControl(mech, TIP, 1.0, 1.0, posture=[0.0, 0.0]), hc.InputError)
    hc.TaskSpaceControl(mech, TIP, 1.0, 1.0, posture=mech.reference)
    refused(lambda: hc.PostureTask().bind(mech), hc.InputError, "name coordinates")


def test_redundant_actuation_from_the_outside_changes_no_law():
    """`efforts` and `f_ext` that say the same are compensated alike by task space control."""
    name = "our stewart"
    mech, part, (task, good) = of(name), partition_of(name), doable(name)
    ctl = KINDS["task space"](mech, task, partition=part)
    q, v = good[0]
    reference = reference_near(mech, q, v, task)
    data = mech.model.createData()
    frame, force = "tip", np.array([3.0, -2.0, 5.0])
    pin.computeJointJacobians(mech.model, data, q)
    pin.updateFramePlacements(mech.model, data)
    J = pin.getFrameJacobian(
        mech.model, data, mech.model.getFrameId(frame), pin.LOCAL_WORLD_ALIGNED
    )
    u = ctl.torque(q, v, reference, efforts=J[:3].T @ force)
    assert relative(ctl.torque(q, v, reference, f_ext={frame: (force, np.zeros(3))}), u) < 1e-10
    found = acceleration_of(mech, task, q, v, u, part, f_ext={frame: (force, np.zeros(3))})
    clean = acceleration_of(mech, task, q, v, ctl.torque(q, v, reference), part)
    assert relative(found, clean) < 1e-9


def test_states_of_the_zoo_are_not_changed_by_a_tick():
    """Read-only arguments are fine, and nothing writes into them."""
    mech, part, (task, good) = (
        of("floating_leg"),
        partition_of("floating_leg"),
        doable("floating_leg"),
    )
    for kind in KINDS.values():
        ctl = kind(mech, task, partition=part)
        for q, v in good:
            reference = reference_near(mech, q, v, task)
            frozen = [x.copy() for x in (q, v)]
            for x in frozen:
                x.flags.writeable = False
            u = ctl.torque(*frozen, reference)
            assert np.array_equal(ctl.torque(q, v, reference), u)
            assert all(np.array_equal(x, y) for x, y in zip(frozen, (q, v), strict=True))
    assert len(closed_states("floating_leg", 3, 5)) == len(states_of("floating_leg"))
