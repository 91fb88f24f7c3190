"""Near singular tasks: an error by name, or damping that is told, and never a jump."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import refused
from support import closed_states, few, mechanism, relative, rows, shared_partition
from task_mechanisms import (
    WithoutTick,
    acceleration_of,
    of,
    partition_of,
    reference_near,
    states_of,
)

import holoctl as hc

TIP = ("right_rod", pin.SE3(np.eye(3), np.array([0.4, 0.0, 0.0])))
TASK = hc.FrameTask(TIP, "x y")
LABELS = ["right_rod.x", "right_rod.y"]
WANTED = (np.array([0.1, 0.6]), np.array([0.1, -0.2]), np.array([1.0, 2.0]))
LAWS = {
    "task space": lambda mech, **o: hc.TaskSpaceControl(mech, TASK, 100.0, 20.0, **o),
    "natural": lambda mech, **o: hc.Impedance(mech, TASK, 100.0, 20.0, **o),
    "critical": lambda mech, **o: hc.Impedance(mech, TASK, 100.0, "critical", **o),
    "wanted": lambda mech, **o: hc.Impedance(mech, TASK, 100.0, "critical", 2.0, **o),
}


def law(kind, **options):
    mech = mechanism("five_bar")
    return LAWS[kind](mech, partition=shared_partition("five_bar"), **options)


def bent(s, left=1.0):
    """The five-bar of the zoo with its left elbow at s: at zero that arm is stretched, and the tip
    cannot go out. The loops are as regular there as anywhere."""
    reach = [0.3 * np.exp(1j * left), 0.4 * np.exp(1j * (left + s))]
    d = -0.2 + sum(reach)  # from the right motor to the tip
    a, b, far = 0.3, 0.4, abs(d)
    inner = np.arccos((a * a + far * far - b * b) / (2.0 * a * far))
    elbow = np.pi - np.arccos((a * a + b * b - far * far) / (2.0 * a * b))
    return np.array([left, s, np.angle(d) - inner, elbow])


def along(controller, bends, rate):
    """Torques and damping along a way through the stretched arm."""
    mech, torques, damping = mechanism("five_bar"), [], []
    for s in bends:
        q = bent(s)
        P = hc.project(mech, q, np.zeros(4), partition=shared_partition("five_bar"))
        v = P.gamma @ np.linalg.lstsq(P.gamma[:2], [0.0, rate], rcond=None)[0]
        torques.append(controller(0.0, q, v))
        damping.append(controller.last.damping)
    return np.array(torques), np.array(damping)


def test_the_arm_is_stretched_and_the_loops_are_regular():
    mech = mechanism("five_bar")
    for s in (-0.3, 0.0, 0.3):
        assert np.abs(rows(mech, bent(s), np.zeros(4)).error).max() < 1e-15
        assert hc.partition(mech, bent(s)).condition < 10.0
    P = hc.project(mech, bent(0.0), np.zeros(4))
    assert hc.task_terms(P, TASK).condition > 1e10


@pytest.mark.parametrize("kind", LAWS)
def test_a_singular_task_is_refused_by_its_name(kind):
    ctl = law(kind)
    out = np.array([7.0, 7.0])
    for s in (0.0, 1e-9, -1e-6):
        e = refused(lambda s=s: ctl.torque(bent(s), np.zeros(4), WANTED, out=out),
                    hc.SingularityError, "five_bar", "at_singular='damp'", *LABELS)  # fmt: skip
        assert e.condition > 1e4
        assert list(e.names) == LABELS
        assert np.array_equal(out, [7.0, 7.0])
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    for s in (-2e-2, 3e-3):  # and right next to it what is asked for is exact
        u = ctl.torque(bent(s), np.zeros(4), WANTED)
        general = law(kind, closure_limit=None).torque(bent(s), np.zeros(4), WANTED)
        assert relative(u, general) < 1e-8
        if kind == "task space":
            e = WANTED[0] - hc.task_terms(hc.project(mech, bent(s), np.zeros(4)), TASK).value[:2]
            xdd = WANTED[2] + 20.0 * WANTED[1] + 100.0 * e
            found = acceleration_of(mech, TASK, bent(s), np.zeros(4), u, part)
            assert relative(found, xdd) < 1e-8


def steepest(controller, low, high, rate):
    """The largest slope of torques along a way, closer and closer to where it is steepest: at a
    jump each is larger than the one before by as much as the steps are shorter."""
    found = []
    for _ in range(6):
        bends = np.linspace(low, high, 31)
        u, _ = along(controller, bends, rate)
        slopes = np.abs(np.diff(u, axis=0)).max(axis=1) / (bends[1] - bends[0])
        i = int(slopes.argmax())
        found.append(slopes[i])
        low, high = bends[max(i - 1, 0)], bends[min(i + 2, 30)]
    return found


def check_no_jump(controller, rate):
    """Neither where it is steepest, nor where the damping sets in, nor at the posture itself."""
    u, damping = along(controller, np.linspace(-0.2, 0.2, 161), rate)
    assert np.isfinite(u).all()
    assert damping[0] == damping[-1] == 0.0
    assert damping.max() > 5e-5
    assert damping.argmax() == 80  # the arm is stretched there
    inside, edges = np.flatnonzero(damping > 0.0), np.linspace(-0.2, 0.2, 161)
    for low, high in ((-0.2, 0.2), (edges[inside[0] - 1], edges[inside[0]]),
                      (edges[inside[-1]], edges[inside[-1] + 1]), (-1e-6, 1e-6)):  # fmt: skip
        slopes = steepest(controller, low, high, rate)
        assert slopes[-1] < 1.05 * slopes[-2] + 1e3, (low, high)
        assert slopes[-1] < 1e7


@pytest.mark.parametrize("rate", few([0.0, 0.5], [0.5]))
@pytest.mark.parametrize("kind", few(LAWS, ["critical"]))
def test_damping_is_continuous_across(kind, rate):
    check_no_jump(law(kind, at_singular="damp").track(lambda t: WANTED), rate)


@pytest.mark.parametrize("weights", few([None, (1.0, 3.0)], [None]))
@pytest.mark.parametrize("axes", few(["x y", "y x"], ["x y"]))
def test_several_tasks_are_damped_without_a_jump_too(axes, weights):
    """By priority, each in what the one before it leaves, or together."""
    mech, order = mechanism("five_bar"), ["xy".index(a) for a in axes.split()]
    ctl = hc.TaskSpaceControl(
        mech, [hc.FrameTask(TIP, a) for a in axes.split()], 100.0, 20.0, at_singular="damp",
        partition=shared_partition("five_bar"), task_weights=weights,
    )  # fmt: skip
    parts = [tuple(x[i : i + 1] for x in WANTED) for i in order]
    check_no_jump(ctl.track(lambda t: parts), 0.5)


@pytest.mark.parametrize("kind", LAWS)
def test_away_from_there_damping_changes_nothing(kind):
    exact, damped = law(kind), law(kind, at_singular="damp")
    follow = damped.track(lambda t: WANTED)
    for q, v in [(bent(s), np.zeros(4)) for s in (-0.3, 0.3)]:
        assert relative(follow(0.0, q, v), exact.torque(q, v, WANTED)) < 1e-12
        assert follow.last.damping == 0.0


@pytest.mark.parametrize("kind", LAWS)
def test_a_task_that_nothing_moves_is_refused_or_left_alone(kind):
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    for axes in ("z", "rx", "x z"):
        task = hc.FrameTask(TIP, axes)
        rows_ = len(task.axes)
        critical = ("critical",) if kind in ("critical", "wanted") else (20.0,)
        given = (100.0, *critical, 2.0) if kind == "wanted" else (100.0, *critical)
        make = hc.TaskSpaceControl if kind == "task space" else hc.Impedance
        q, v = bent(0.5), np.zeros(4)
        reference, _, _ = reference_near(mech, q, v, task)
        reference = (reference, np.zeros(rows_), np.ones(rows_))
        still = axes.split()[-1]
        refused(lambda: make(mech, task, *given, partition=part).torque(q, v, reference),  # noqa: B023
                hc.SingularityError, f"no motion moves 'right_rod.{still}'")  # fmt: skip
        damped = make(mech, task, *given, partition=part, at_singular="damp")
        follow = damped.track(lambda t: reference)  # noqa: B023
        u = follow(0.0, q, v)
        assert np.isfinite(u).all()
        assert np.abs(u).max() < 1e4
        assert follow.last.damping > 0.0


def test_a_second_task_that_contradicts_the_first_is_told():
    """It is singular with what the first leaves, by name; damped, the first is untouched."""
    mech, part = of("our five_bar"), partition_of("our five_bar")
    first, second = hc.FrameTask("tip_right", "x"), hc.FrameTask("tip_right", "x")
    third = hc.FrameTask("tip_right", "x z")
    q, v = states_of("our five_bar")[0]
    one = hc.TaskSpaceControl(mech, first, 100.0, 20.0, partition=part)
    for other in (second, third):
        ctl = hc.TaskSpaceControl(mech, [first, other], 100.0, 20.0, partition=part)
        references = [reference_near(mech, q, v, task, i) for i, task in enumerate((first, other))]
        if other is second:
            refused(lambda ctl=ctl, r=references: ctl.torque(q, v, r), hc.SingularityError,
                    "tip_right.x", "with the motions that the tasks before it leave")  # fmt: skip
        ctl = hc.TaskSpaceControl(
            mech, [first, other], 100.0, 20.0, partition=part, at_singular="damp"
        )
        u = ctl.torque(q, v, references)
        xdd = acceleration_of(mech, first, q, v, one.torque(q, v, references[0]), part)
        assert relative(acceleration_of(mech, first, q, v, u, part), xdd) < 1e-10


@pytest.mark.parametrize("weights", [None, [1.0, 7.0, 0.3]])
def test_tasks_that_all_stand_still_are_refused(weights):
    """Also where they have more rows than there are motions, which least squares would take."""
    mech, part = mechanism("four_bar"), shared_partition("four_bar")
    q, v = closed_states("four_bar", 3, 5)[0]
    end = ("rocker", pin.SE3(pin.exp3(np.array([0.3, -0.5, 0.2])), np.array([0.1, 0.2, 0.3])))
    tasks = [hc.FrameTask(end, axes) for axes in ("rx", "ry", "z")]  # it moves in x y
    references = [reference_near(mech, q, v, task) for task in tasks]
    ctl = hc.TaskSpaceControl(mech, tasks, 100.0, 20.0, partition=part, task_weights=weights)
    refused(lambda: ctl.torque(q, v, references), hc.SingularityError, "no motion moves")
    whole = hc.FrameTask(end, "rx ry z")
    ctl = hc.TaskSpaceControl(mech, whole, 100.0, 20.0, partition=part)
    reference = reference_near(mech, q, v, whole)
    refused(lambda: ctl.torque(q, v, reference), hc.SingularityError, "no motion moves")


@pytest.mark.parametrize("at_singular", ["raise", "damp"])
def test_more_rows_than_motions_have_no_inertia(at_singular):
    """Then nothing is made of one: it was rounding."""
    mech, (q, v) = of("our five_bar"), states_of("our five_bar")[0]
    options = {"partition": partition_of("our five_bar"), "at_singular": at_singular}
    task = hc.FrameTask("tip_right", "x z ry")
    reference = reference_near(mech, q, v, task)
    for given in (("critical",), ("critical", 2.0), (20.0, 2.0)):
        refused(lambda given=given: hc.Impedance(mech, task, 100.0, *given, **options),
                hc.InputError, "3 rows", "2 motions", "fewer axes")  # fmt: skip
    # what needs none: gamma' B u is that of the push besides
    given = [hc.Impedance(mech, task, K, D, **options) for K, D in ((100.0, 20.0), (0.0, 0.0))]
    one, none = (ctl.torque(q, v, reference) for ctl in given)
    P = hc.project(mech, q, v, partition=options["partition"])
    terms, bound = hc.task_terms(P, task), task.bind(mech)
    e = bound.error(terms.value, bound.wanted(reference[0]))
    pushed = terms.jacobian.T @ (100.0 * e + 20.0 * (reference[1] - terms.rate))
    assert relative(P.gamma.T @ mech.B @ (one - none), pushed) < 1e-9


def test_a_mechanism_without_inertia_somewhere_is_refused():
    """Motions without any inertia have no task space either."""
    given = mechanism("five_bar")
    m = given.model.copy()
    for j in range(1, m.njoints):
        m.inertias[j] = pin.Inertia.Zero()
    mech = given.with_model(m)
    ctl = hc.Impedance(mech, TASK, 100.0, "critical", partition=hc.partition(mech, bent(0.5)))
    refused(lambda: ctl.torque(bent(0.5), np.zeros(4), WANTED), hc.SingularityError, "inertia")


def arm(n):
    """Bars of a metre in a plane, each on the one before it."""
    model, joint = pin.Model(), 0
    for i in range(n):
        down = np.array([0.0, 0.0, -1.0 if i else 0.0])
        joint = model.addJoint(joint, pin.JointModelRY(), pin.SE3(np.eye(3), down), f"j{i}")
        body = pin.Inertia(1.0, np.array([0.0, 0.0, -0.5]), 0.1 * np.eye(3))
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
    tip = pin.SE3(np.eye(3), np.array([0.1, 0.0, -1.0]))
    model.addFrame(pin.Frame("tip", joint, tip, pin.FrameType.OP_FRAME))
    return hc.Mechanism(
        model, actuated=[f"j{i}" for i in range(n)], reference=0.3 + 0.2 * np.arange(n)
    )


def test_a_tick_answers_nothing_that_is_refused():
    """Close to a stretched arm pivots share what is small: each looks good enough alone."""
    mech, rng, told = arm(3), np.random.default_rng(1), []
    task = hc.FrameTask("tip", "x z ry")
    laws = [hc.TaskSpaceControl(mech, t, 40.0, 4.0) for t in (task, WithoutTick(task))]
    for _ in range(100):
        bent_by = 10.0 ** rng.uniform(-7, 0) * rng.normal(size=3)
        q, v = np.r_[rng.normal(), np.pi * rng.integers(0, 2, 2)] + bent_by, rng.normal(size=3)
        value, rate, acceleration = reference_near(mech, q, v, task)
        found = []
        for controller in laws:
            try:
                found.append(controller.torque(q, v, (value, rate, acceleration)))
            except hc.SingularityError:
                found.append(None)
        assert (found[0] is None) == (found[1] is None), q.tolist()
        told.append(found[0] is None)
        if found[0] is not None:
            assert relative(*found) < 1e-7
    assert 20 < sum(told) < 80
