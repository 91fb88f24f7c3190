"""What laws of tasks promise: the acceleration that was asked for, by independent dynamics."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest
from support import few, relative
from task_mechanisms import (
    NAMES,
    SOME,
    WithoutTick,
    acceleration_of,
    doable,
    of,
    partition_of,
    reference_near,
    states_of,
)

import holoctl as hc

FORCED = few(NAMES, ("floating_leg", "three_motors", "our stewart"))
PATHS = [False, True]  # whether only the general path serves
MOSTLY = few(PATHS, [False])
"""The short run asks the general path whether it agrees with the tick."""


def posed(name, rows=None, local=False):
    """Mechanism, partition, task, and states where it can be done; skips where there is none."""
    task, good = doable(name, rows, local)
    if not good:
        pytest.skip("no frame that motors can move well")
    return of(name), partition_of(name), task, good


def push_on(mech, task, seed=0):
    """A force and a moment at a frame somewhere on the way to the task."""
    force, moment = np.random.default_rng(seed).normal(size=(2, 3))
    return {mech.model.names[-1]: (5.0 * force, moment)}


def gain(rows, seed=0, size=100.0):
    """A symmetric positive definite matrix."""
    X = np.random.default_rng(seed).normal(size=(rows, rows))
    return size * (X @ X.T + np.eye(rows))


def asked_of(mech, task, part, q, v, reference):
    """e and ed of a task, and its terms."""
    value, rate, _ = reference
    bound = task.bind(mech)
    terms = hc.task_terms(hc.project(mech, q, v, partition=part), task)
    return bound.error(terms.value, bound.wanted(value)), rate - terms.rate, terms


def felt(mech, task, part, q, v, push, terms):
    """F = Lambda times what a push adds to the acceleration of the task."""
    zero = np.zeros(mech.nu)
    still = acceleration_of(mech, task, q, v, zero, part)
    return terms.inertia @ (acceleration_of(mech, task, q, v, zero, part, f_ext=push) - still)


def wrapped(task, general):
    return WithoutTick(task) if general else task


# --------------------------------------------------------------------- one task, as promised


@pytest.mark.parametrize("general", MOSTLY)
@pytest.mark.parametrize(("local", "less"), [(False, 0), (True, 1)])
@pytest.mark.parametrize("name", SOME)
def test_the_task_accelerates_as_it_was_asked(name, local, less, general):
    """xdd = a_ref + kd (v_ref - xd) + kp e, by the forward dynamics; f_ext is compensated."""
    rows = max(1, partition_of(name).actuation_rank - less) if less else None
    mech, part, task, good = posed(name, rows, local)
    n = len(task.axes)
    kp, kd = gain(n), gain(n, 1, 20.0)
    ctl = hc.TaskSpaceControl(mech, wrapped(task, general), kp, kd, partition=part)
    for q, v in good:
        reference = reference_near(mech, q, v, task)
        e, ed, _ = asked_of(mech, task, part, q, v, reference)
        xdd = reference[2] + kd @ ed + kp @ e
        u = ctl.torque(q, v, reference)
        assert relative(acceleration_of(mech, task, q, v, u, part), xdd) < 1e-9
        push = push_on(mech, task)
        u = ctl.torque(q, v, reference, f_ext=push)
        found = acceleration_of(mech, task, q, v, u, part, f_ext=push)
        assert relative(found, xdd) < 1e-9


@pytest.mark.parametrize("general", MOSTLY)
@pytest.mark.parametrize("damping", ["given", "critical"])
@pytest.mark.parametrize("name", FORCED)
def test_the_natural_inertia_feels_spring_and_push(name, damping, general):
    """Lambda (xdd - a_ref) = K e + D ed + F, passive motions or not; f_ext changes no torque."""
    mech, part, task, good = posed(name)
    n = len(task.axes)
    K, D = gain(n, 2, 200.0), gain(n, 3, 10.0)
    ctl = hc.Impedance(
        mech, wrapped(task, general), K, "critical" if damping == "critical" else D, partition=part
    )
    for q, v in good:
        reference = reference_near(mech, q, v, task)
        e, ed, terms = asked_of(mech, task, part, q, v, reference)
        push = push_on(mech, task)
        if damping == "critical":
            D = critical(K, terms.inertia)
        force = K @ e + D @ ed
        u = ctl.torque(q, v, reference)
        tol = 1e-9
        found = acceleration_of(mech, task, q, v, u, part) - reference[2]
        assert relative(found, np.linalg.solve(terms.inertia, force)) < tol
        F = felt(mech, task, part, q, v, push, terms)
        again = ctl.torque(q, v, reference, f_ext=push)
        assert relative(again, u) < tol
        found = acceleration_of(mech, task, q, v, u, part, f_ext=push) - reference[2]
        assert relative(found, np.linalg.solve(terms.inertia, force + F)) < tol


@pytest.mark.parametrize("general", MOSTLY)
@pytest.mark.parametrize("damping", ["given", "critical"])
@pytest.mark.parametrize("name", FORCED)
def test_a_wanted_inertia_answers_to_what_is_measured(name, damping, general):
    """Ld (xdd - a_ref) = K e + D ed + F, with F of f_ext and nothing of other efforts."""
    mech, part, task, good = posed(name)
    n = len(task.axes)
    K, Ld = gain(n, 2, 200.0), gain(n, 4, 1.5)
    D = critical(K, Ld) if damping == "critical" else gain(n, 3, 10.0)
    ctl = hc.Impedance(
        mech, wrapped(task, general), K, "critical" if damping == "critical" else D, Ld,
        partition=part,
    )  # fmt: skip
    for q, v in good:
        reference = reference_near(mech, q, v, task)
        e, ed, terms = asked_of(mech, task, part, q, v, reference)
        tol = 1e-9
        for push in (None, push_on(mech, task)):
            F = 0.0 if push is None else felt(mech, task, part, q, v, push, terms)
            u = ctl.torque(q, v, reference, f_ext=push)
            found = acceleration_of(mech, task, q, v, u, part, f_ext=push) - reference[2]
            assert relative(Ld @ found, K @ e + D @ ed + F) < tol


def critical(K, inertia):
    """D of damping ratio one along each axis of motion, by the eigenvectors of inertia^-1 K."""
    L = np.linalg.cholesky(inertia)
    X = np.linalg.solve(L, np.linalg.solve(L, K).T)
    sizes, axes = np.linalg.eigh(0.5 * (X + X.T))
    return 2.0 * L @ (axes * np.sqrt(sizes)) @ axes.T @ L.T


def test_critical_damping_is_critical():
    """Poles of Ld s^2 + D s + K are real and come in pairs."""
    mech, part, task, good = posed("our stewart")
    q, v = good[0]
    K, Ld = gain(6, 2, 200.0), gain(6, 4, 1.5)
    ctl = hc.Impedance(mech, task, K, "critical", Ld, partition=part)
    value = hc.task_terms(hc.project(mech, q, v, partition=part), task).value
    D = np.zeros((6, 6))
    still = acceleration_of(mech, task, q, v, ctl.torque(q, v, (value, 0 * K[0], 0 * K[0])), part)
    for i in range(6):
        u = ctl.torque(q, v, (value, np.eye(6)[i], np.zeros(6)))
        D[:, i] = Ld @ (acceleration_of(mech, task, q, v, u, part) - still)
    np.testing.assert_allclose(D, D.T, atol=1e-7 * np.abs(D).max())
    C = np.linalg.solve(Ld, np.hstack([K, D]))
    poles = np.linalg.eigvals(np.block([[np.zeros((6, 6)), np.eye(6)], [-C[:, :6], -C[:, 6:]]]))
    expected = np.sqrt(np.linalg.eigvals(np.linalg.solve(Ld, K)).real)
    by_size = np.sort(-poles.real)
    np.testing.assert_allclose(by_size, np.sort(np.repeat(expected, 2)), rtol=1e-3)
    assert np.abs(poles.imag).max() < 1e-3 * np.abs(poles).max()  # pairs, to half the digits


@pytest.mark.parametrize("name", SOME)
def test_the_tick_and_the_general_path_agree(name):
    mech, part, task, good = posed(name)
    n = len(task.axes)
    K, D = gain(n), gain(n, 1, 20.0)
    laws = [
        lambda x, **o: hc.TaskSpaceControl(mech, x, K, D, partition=part, **o),
        lambda x, **o: hc.Impedance(mech, x, K, D, partition=part, **o),
        lambda x, **o: hc.Impedance(mech, x, K, "critical", partition=part, **o),
        lambda x, **o: hc.Impedance(mech, x, K, "critical", gain(n, 5, 1.0), partition=part, **o),
    ]
    posture = None
    if mech.actuated and name != "hung_plate":
        posture = mech.motor_positions(good[0][0]) + 0.1
    for law in laws:
        fast, slow = (law(x, posture=posture) for x in (task, WithoutTick(task)))
        damped = law(task, posture=posture, at_singular="damp")
        for q, v in good:
            reference = reference_near(mech, q, v, task)
            options = {"f_ext": push_on(mech, task), "efforts": np.cos(np.arange(mech.nv))}
            u = slow.torque(q, v, reference, **options)
            assert relative(fast.torque(q, v, reference, **options), u) < 1e-10
            follow = damped.track(lambda t: reference)  # noqa: B023
            follow(0.0, q, v)
            if follow.last.damping == 0.0:
                assert relative(damped.torque(q, v, reference, **options), u) < 1e-10


@pytest.mark.parametrize("name", few(["our five_bar", "our leg", "our stewart", "floating_leg"],
                                     ["our leg"]))  # fmt: skip
@pytest.mark.parametrize("kind", ["posture", "mass", "custom"])
def test_other_tasks_accelerate_as_they_were_asked(name, kind):
    if (name, kind) == ("floating_leg", "mass"):
        pytest.skip("no motor moves the centre of mass of what floats")
    mech, part = of(name), partition_of(name)
    model = mech.model.copy()
    place = model.getJointId(mech.model.names[-1])
    if kind == "posture":
        task = hc.PostureTask()
    elif kind == "mass":
        task = hc.CenterOfMassTask("z")
    else:
        import pinocchio as pin

        data = model.createData()

        def height(q):
            pin.forwardKinematics(model, data, q)
            return [data.oMi[place].translation[2] - pin.centerOfMass(model, data, q)[2]]

        task = hc.CustomTask(height)
    for general in PATHS:
        ctl = hc.TaskSpaceControl(mech, wrapped(task, general), 100.0, 20.0, partition=part)
        for q, v in states_of(name):
            reference = reference_near(mech, q, v, task)
            e, ed, _ = asked_of(mech, task, part, q, v, reference)
            xdd = reference[2] + 20.0 * ed + 100.0 * e
            found = acceleration_of(mech, task, q, v, ctl.torque(q, v, reference), part)
            assert relative(found, xdd) < (1e-7 if kind == "custom" else 1e-9)


def test_time_is_imposed_and_the_task_holds():
    """Of the timed arm at several times, with the velocity that time imposes."""
    mech, part = of("timed_arm"), partition_of("timed_arm")
    task, good = doable("timed_arm")
    for general in PATHS:
        ctl = hc.TaskSpaceControl(mech, wrapped(task, general), 100.0, 20.0, partition=part)
        for (q, v), t in zip(good, (0.2, 0.5, 1.1), strict=False):
            q, v = hc.assemble(mech, q, v, t=t)  # noqa: PLW2901
            P = hc.project(mech, q, v, t=t, partition=part)
            assert np.abs(P.v_t).max() > 1e-3
            terms, bound = hc.task_terms(P, task), task.bind(mech)
            value, rate, a_ref = reference_near(mech, q, v, task)
            e = bound.error(terms.value, bound.wanted(value))
            xdd = a_ref + 20.0 * (rate - terms.rate) + 100.0 * e
            u = ctl.torque(q, v, (value, rate, a_ref), t)
            assert relative(acceleration_of(mech, task, q, v, u, part, t), xdd) < 1e-9


def general_actuation():
    """The five-bar driven by two motors that each push on both sides."""
    mech = of("our five_bar")
    B = mech.B @ np.array([[1.0, 0.5], [-0.3, 1.0]])
    return dataclasses.replace(mech, actuated=[], actuation=B)


@pytest.mark.parametrize("general", PATHS)
def test_a_general_actuation_matrix(general):
    mech = general_actuation()
    part, task = hc.partition(mech, hc.assemble(mech)[0]), hc.FrameTask("tip_right", "z x")
    for kind in (hc.TaskSpaceControl, hc.Impedance):
        ctl = kind(mech, wrapped(task, general), 100.0, 20.0, partition=part)
        for q, v in states_of("our five_bar"):
            reference = reference_near(mech, q, v, task)
            e, ed, terms = asked_of(mech, task, part, q, v, reference)
            command = 100.0 * e + 20.0 * ed
            if kind is hc.Impedance:
                command = np.linalg.solve(terms.inertia, command)
            found = acceleration_of(mech, task, q, v, ctl.torque(q, v, reference), part)
            assert relative(found, reference[2] + command) < 1e-9


# ------------------------------------------------------------------------------ several tasks


def two_tasks(name):
    """A task with priority, and another one that wants the same motions."""
    mech, part, task, good = posed(name)
    first = dataclasses.replace(task, axes=task.axes[: max(1, len(task.axes) // 2)])
    return mech, part, first, hc.CenterOfMassTask(), good


@pytest.mark.parametrize("name", few(
    [n for n in NAMES if not n.startswith("shared")],
    ["universal_rods", "standing_leg", "our leg"],
))  # fmt: skip
def test_the_second_task_does_not_disturb_the_first(name):
    mech, part, first, second, good = two_tasks(name)
    n = len(first.axes)
    one = hc.TaskSpaceControl(mech, first, 100.0, 20.0, partition=part)
    both = hc.TaskSpaceControl(
        mech, [first, second], [100.0, 50.0], [20.0, 5.0], partition=part, at_singular="damp"
    )
    for q, v in good:
        reference = reference_near(mech, q, v, first)
        xdd = acceleration_of(mech, first, q, v, one.torque(q, v, reference), part)
        for seed in range(3):
            other = reference_near(mech, q, v, second, seed, 1.0)
            u = both.torque(q, v, [reference, other])
            found = acceleration_of(mech, first, q, v, u, part)
            assert relative(found, xdd) < 1e-10 * max(1.0, np.abs(other[2]).max()), n


def test_two_tasks_that_fit_are_both_done():
    """Of the platform first where it is, then how it stands: six rows of six motions."""
    mech, part = of("our stewart"), partition_of("our stewart")
    tasks = [hc.FrameTask("tip", "x y z"), hc.FrameTask("tip", "rx ry rz")]
    whole = hc.FrameTask("tip")
    by_priority = hc.TaskSpaceControl(mech, tasks, 100.0, 20.0, partition=part)
    weighted = hc.TaskSpaceControl(
        mech, tasks, 100.0, [20.0, 20.0 * np.ones(3)], partition=part, task_weights=[3.0, 0.1]
    )
    at_once = hc.TaskSpaceControl(mech, whole, 100.0, 20.0, partition=part)
    for q, v in states_of("our stewart"):
        X, rate, a_ref = reference_near(mech, q, v, whole)
        parts = [(X.translation, rate[:3], a_ref[:3]), (X, rate[3:], a_ref[3:])]
        u = at_once.torque(q, v, (X, rate, a_ref))
        assert relative(by_priority.torque(q, v, parts), u) < 1e-9
        assert relative(weighted.torque(q, v, parts), u) < 1e-9


def test_what_does_not_fit_is_done_by_least_squares():
    """The second task in what the first leaves; or by weights: no motion does it better."""
    mech, part = of("our delta"), partition_of("our delta")
    first, second = hc.FrameTask("tip", "z"), hc.CenterOfMassTask()
    w = np.array([2.0, 0.3])
    strict = hc.TaskSpaceControl(mech, [first, second], 100.0, 20.0, partition=part)
    loose = hc.TaskSpaceControl(mech, [first, second], 100.0, 20.0, partition=part, task_weights=w)
    for q, v in states_of("our delta"):
        P = hc.project(mech, q, v, partition=part)
        wanted, J, bias, s = [], [], [], []
        references = [reference_near(mech, q, v, task) for task in (first, second)]
        for task, reference in zip((first, second), references, strict=True):
            e, ed, terms = asked_of(mech, task, part, q, v, reference)
            wanted.append(reference[2] + 20.0 * ed + 100.0 * e)
            J.append(terms.jacobian)
            bias.append(terms.bias)
            s.append(task.bind(mech).scale)
        found = []
        for ctl in (strict, loose):
            u = ctl.torque(q, v, references)
            a = hc.forward_dynamics(mech, q, v, mech.B @ u, partition=part).a
            found.append(np.linalg.lstsq(P.gamma, a - P.bias, rcond=None)[0])
        right = [x - b for x, b in zip(wanted, bias, strict=True)]
        base = np.linalg.lstsq(J[0], right[0], rcond=None)[0]
        N = np.linalg.svd(J[0])[2][1:].T
        more = np.linalg.lstsq(J[1] @ N, right[1] - J[1] @ base, rcond=None)[0]
        assert relative(found[0], base + N @ more) < 1e-8
        roots = np.concatenate([(w[i] ** 0.5) * s[i] for i in range(2)])
        best = np.linalg.lstsq(
            roots[:, None] * np.vstack(J), roots * np.concatenate(right), rcond=None
        )[0]
        assert relative(found[1], best) < 1e-8


def test_more_rows_than_motions_are_least_squares_and_told(caplog):
    mech = hc.load(hc.robot_file("five_bar"))  # one that was not told yet
    part, task = hc.partition(mech, hc.assemble(mech)[0]), hc.FrameTask("tip_right", "x z ry")
    with caplog.at_level(logging.WARNING, "holoctl"):
        ctl = hc.TaskSpaceControl(mech, task, 100.0, 20.0, partition=part)
    (record,) = caplog.records
    assert "3 rows" in record.getMessage()
    assert "least squares" in record.getMessage()
    for q, v in states_of("our five_bar"):
        reference = reference_near(mech, q, v, task)
        e, ed, terms = asked_of(mech, task, part, q, v, reference)
        right = reference[2] + 20.0 * ed + 100.0 * e - terms.bias
        s = task.bind(mech).scale
        best = np.linalg.lstsq(s[:, None] * terms.jacobian, s * right, rcond=None)[0]
        found = acceleration_of(mech, task, q, v, ctl.torque(q, v, reference), part)
        assert relative(found, terms.jacobian @ best + terms.bias) < 1e-8


# ---------------------------------------------------------------------- what moves no task


@pytest.mark.parametrize("kind", [hc.TaskSpaceControl, hc.Impedance])
@pytest.mark.parametrize("name", few(
    [n for n in NAMES if n not in ("hung_plate",) and not n.startswith("shared")],
    ["floating_leg", "standing_leg", "our delta"],
))  # fmt: skip
def test_the_posture_does_not_move_the_task(name, kind):
    """Of all motions that do the task the one nearest to the posture's, in the metric of W."""
    rows = max(1, partition_of(name).actuation_rank - 1)
    mech, part, task, good = posed(name, rows)
    none = kind(mech, task, 100.0, 20.0, partition=part)
    rng = np.random.default_rng(0)
    for q, v in good[:2]:
        reference = reference_near(mech, q, v, task)
        xdd = acceleration_of(mech, task, q, v, none.torque(q, v, reference), part)
        for general in PATHS:
            posture = mech.motor_positions(q) + rng.normal(size=mech.nu)
            ctl = kind(mech, wrapped(task, general), 100.0, 20.0, posture=posture,
                       partition=part, posture_kp=30.0, posture_kd=3.0)  # fmt: skip
            u = ctl.torque(q, v, reference)
            assert relative(acceleration_of(mech, task, q, v, u, part), xdd) < 1e-10
            if mech.nu == part.actuation_rank == mech.nv - part.rank:
                P = hc.project(mech, q, v, partition=part)
                terms = hc.task_terms(P, task)
                error = (posture - mech.motor_positions(q) + np.pi) % (2.0 * np.pi) - np.pi
                turning = np.abs(posture - mech.motor_positions(q)) > np.pi
                error = np.where(turning & (mech.model.nq > mech.model.nv), error,
                                 posture - mech.motor_positions(q))  # fmt: skip
                target = 30.0 * error - 3.0 * mech.motor_rates(v)
                wanted = np.linalg.solve(mech.B.T @ P.gamma, target - mech.B.T @ P.bias)
                a = hc.forward_dynamics(mech, q, v, mech.B @ u, partition=part).a
                ydd = np.linalg.lstsq(P.gamma, a - P.bias, rcond=None)[0]
                W = P.gamma.T @ P.terms.M @ P.gamma
                rest = np.linalg.svd(terms.jacobian)[2][len(task.axes) :]
                off = ydd - wanted
                if kind is hc.Impedance:  # the push of the spring comes besides
                    e, ed, _ = asked_of(mech, task, part, q, v, reference)
                    off = off - np.linalg.solve(W, terms.jacobian.T @ (100.0 * e + 20.0 * ed))
                size = np.abs(W).max() * max(np.abs(off).max(), np.abs(wanted).max())
                assert np.abs(rest @ W @ off).max(initial=0.0) < 1e-9 * size


@pytest.mark.parametrize("kind", [hc.TaskSpaceControl, hc.Impedance])
def test_preload_does_not_move_the_task(kind):
    """Three motors on two motions: weights share the efforts in other ways, the task is the same;
    so it is with any efforts that balance each other."""
    mech, part, task, good = posed("three_motors")
    even = kind(mech, task, 100.0, 20.0, partition=part)
    uneven = kind(mech, task, 100.0, 20.0, partition=part, weights=[1.0, 10.0, 0.2])
    for q, v in good:
        reference = reference_near(mech, q, v, task)
        P = hc.project(mech, q, v, partition=part)
        u, other = (ctl.torque(q, v, reference) for ctl in (even, uneven))
        xdd = acceleration_of(mech, task, q, v, u, part)
        assert relative(u, other) > 1e-2
        assert relative(acceleration_of(mech, task, q, v, other, part), xdd) < 1e-10
        (preload,) = np.linalg.svd(P.gamma.T @ mech.B)[2][part.actuation_rank :]
        assert relative(acceleration_of(mech, task, q, v, u + preload, part), xdd) < 1e-10


# ------------------------------------------------------------------ what else acts is known


@pytest.mark.parametrize("kind", [hc.TaskSpaceControl, hc.Impedance])
@pytest.mark.parametrize("general", PATHS)
def test_known_efforts_are_compensated(kind, general):
    mech, part, task, good = posed("our stewart")
    ctl = kind(mech, wrapped(task, general), 100.0, 20.0, partition=part)
    for q, v in good:
        reference = reference_near(mech, q, v, task)
        payload = np.random.default_rng(0).normal(size=mech.nv)
        xdd = acceleration_of(mech, task, q, v, ctl.torque(q, v, reference), part)
        u = ctl.torque(q, v, reference, efforts=payload)
        a = hc.forward_dynamics(mech, q, v, mech.B @ u + payload, partition=part).a
        P = hc.project(mech, q, v, partition=part)
        motion = task.bind(mech).at(P.kinematics)
        assert relative(motion.jacobian @ a + motion.drift, xdd) < 1e-9


@pytest.mark.parametrize("general", MOSTLY)
@pytest.mark.parametrize("name", few(["our five_bar", "our stewart", "our leg", "floating_leg"],
                                     ["our five_bar", "floating_leg"]))  # fmt: skip
def test_friction_is_compensated(name, general):
    """At the measured rates exactly; at those of the reference where the task follows it."""
    smooth = of(name)
    friction = hc.JointFriction(0.2, 0.3, transition=0.1)
    spring = hc.JointSpring(smooth.actuated[0], 5.0, 0.3)
    mech = smooth.with_forces([friction, spring])
    part, (task, good) = hc.partition(mech, hc.assemble(mech)[0]), doable(name)
    n = len(task.axes)
    for kind in (hc.TaskSpaceControl, hc.Impedance):
        measured, followed = (
            kind(mech, wrapped(task, general), 100.0, 20.0, partition=part, friction_at=at)
            for at in ("measured", "reference")
        )
        for q, v in good:
            reference = reference_near(mech, q, v, task)
            e, ed, terms = asked_of(mech, task, part, q, v, reference)
            command = 100.0 * e + 20.0 * ed
            if kind is hc.Impedance:
                command = np.linalg.solve(terms.inertia, command)
            u = measured.torque(q, v, reference)
            found = acceleration_of(mech, task, q, v, u, part)
            assert relative(found, reference[2] + command) < 1e-9
            if n == mech.nv - part.rank:  # all that moves is in the reference
                there = (terms.value, terms.rate, reference[2])
                one, two = (ctl.torque(q, v, there) for ctl in (measured, followed))
                assert relative(one, two) < 1e-9
                assert relative(followed.torque(q, v, reference), u) > 1e-4
