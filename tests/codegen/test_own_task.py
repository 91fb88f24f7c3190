"""A task of one's own is one file, and works on every machine: numbers, with a tick or without, the
virtual machine, compiled and exported C."""

from __future__ import annotations

import dataclasses
import pickle
import shutil
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from exported import STRICT, Exported, compilers, run
from expressed import ca
from inside import prepared_of_tasks, was_fast
from support import few, relative
from task_code import robot, states

import holoctl as hc


@dataclasses.dataclass(frozen=True)
class Distance:
    """How far a frame is from a point of the world, m."""

    frame: str
    point: tuple[float, float, float]
    ticks: bool = True

    def bind(self, mech):
        place = hc.FrameTask(self.frame, "x y z").bind(mech)
        return BoundDistance(place, np.array(self.point), self.ticks, place.scale[:1])


@dataclasses.dataclass(frozen=True, eq=False)
class BoundDistance:
    place: Any
    point: np.ndarray
    ticks: bool
    scale: np.ndarray
    labels = ("distance",)
    rows = None

    def at(self, kin):
        p, J, drift = self.place.at(kin)
        return hc.protocols.TaskMotion(*self._of(p, J, drift, kin.v))

    def _of(self, p, J, drift, v):
        away, rate = p - self.point, J @ v
        d = np.linalg.norm(away)
        n = away / d
        return (
            np.array([d]),
            (n @ J)[None],
            np.array([n @ drift + (rate @ rate - (n @ rate) ** 2) / d]),
        )

    def wanted(self, value):
        return np.asarray(value, dtype=float).reshape(1)

    def error(self, value, wanted):
        return wanted - value

    def tick(self, motion, beside):
        if not self.ticks:
            return None
        own = self.place.tick(motion, None)
        value, J, right = np.zeros(1), np.zeros((1, motion.J.shape[1])), np.zeros(1)

        def evaluate(q, v, t):
            own.evaluate(q, v, t)
            p = -own.error(q, self.place.wanted(np.zeros(3)))
            value[:], J[:], drift = self._of(p, own.jacobian, -own.right, v)
            right[:] = -drift

        return hc.protocols.TaskTick(evaluate, J, right, lambda q, wanted: wanted - value)

    def expression(self, q, v, t, show, value):
        table = self.place.table
        seen = show(None, table.frames2[0])
        return ca.norm_2(seen.p2 - self.point)


NAMES = {"five_bar": "tip_right", "delta": "platform", "stewart": "tip", "leg": None}
POINT = (0.3, -0.2, 1.1)


@cache
def controllers(name, ticks=True):
    mech = robot(name)
    task = Distance(NAMES[name] or mech.model.frames[-1].name, POINT, ticks)
    held = mech.motor_positions(mech.reference)
    return {
        "held": hc.TaskSpaceControl(mech, task, 400.0, 40.0, posture=held, posture_kp=7.0),
        "damped": hc.TaskSpaceControl(mech, task, 400.0, 40.0, at_singular="damp"),
        "natural": hc.Impedance(mech, task, 500.0, 30.0),
        "critical": hc.Impedance(mech, task, 500.0, "critical"),
        "wanted": hc.Impedance(mech, task, 500.0, "critical", inertia=2.0),
    }


def bound(controller):
    task = getattr(controller, "task", None) or controller.tasks[0]
    return task.bind(controller.mech)


def asked(controller, q, v, rng):
    task = bound(controller)
    value = task.at(hc.project(controller.mech, q, v).kinematics).value
    return value + 0.1 * rng.normal(size=1), rng.normal(size=1), 5.0 * rng.normal(size=1)


def situations(name, count=4):
    rng = np.random.default_rng(3)
    for what, controller in controllers(name).items():
        for q, v in states(robot(name), count, rng):
            yield what, controller, q, v, asked(controller, q, v, rng)


@pytest.mark.parametrize("name", few(list(NAMES), ["five_bar", "leg"]))
def test_in_numbers_with_a_tick_and_without(name):
    for what, controller, q, v, reference in situations(name):
        assert not controller.general
        u = controller.torque(q, v, reference)
        assert was_fast(prepared_of_tasks(controller))
        slow = controllers(name, False)[what]
        assert slow.general
        assert relative(u, slow.torque(q, v, reference)) < 1e-9


@pytest.mark.parametrize("name", few(list(NAMES), ["five_bar", "leg"]))
def test_it_accelerates_as_it_was_asked(name):
    mech, rng = robot(name), np.random.default_rng(4)
    controller = controllers(name)["held"]
    task, part = bound(controller), controller.partition
    closed = [hc.assemble(mech, q, v) for q, v in states(mech, 4, rng)]
    for q, v in closed:
        value, rate, acceleration = asked(controller, q, v, rng)
        P = hc.project(mech, q, v, partition=part)
        here = task.at(P.kinematics)
        u = controller.torque(q, v, (value, rate, acceleration))
        a = hc.forward_dynamics(mech, q, v, mech.B @ u, partition=part).a
        e, ed = value - here.value, rate - here.jacobian @ v
        xdd = here.jacobian @ a + here.drift
        assert relative(xdd, acceleration + 40.0 * ed + 400.0 * e) < 1e-9


@pytest.mark.parametrize("machine", ["vm", "c"])
@pytest.mark.parametrize("name", few(["five_bar", "stewart"], ["five_bar"]))
def test_compiled_it_is_the_law_of_the_controller(name, machine):
    if machine == "c":
        compilers()
    fast = cache(lambda what: hc.compile(controllers(name)[what], machine=machine))
    for what, controller, q, v, reference in situations(name):
        out = np.zeros(controller.mech.nu)
        assert fast(what).torque(q, v, reference, out=out) is out
        assert relative(out, controller.torque(q, v, reference)) < 1e-9
        assert fast(what).fallbacks == 0
    again = pickle.loads(pickle.dumps(fast("held")))
    assert again.machine == machine


def test_laws_of_the_library_by_the_virtual_machine():
    mech, rng = robot("stewart"), np.random.default_rng(7)
    controller = hc.Impedance(mech, hc.FrameTask("platform"), 500.0, "critical")
    fast = hc.compile(controller, machine="vm")
    for q, v in states(mech, 4, rng):
        pose = hc.task_terms(hc.project(mech, q, v), controller.task).value
        u = controller.torque(q, v, pose)
        assert relative(fast.torque(q, v, pose), u) < 1e-9
    assert fast.fallbacks == 0
    with pytest.raises(hc.InputError, match=r"pin\.SE3"):
        fast.torque(q, v, np.zeros(3))
    with pytest.raises(hc.InconsistentError):
        fast.torque(q, v + 9.0, pose)
    assert fast.fallbacks == 1


def test_exported_it_is_the_law_of_the_controller(tmp_path):
    controller = controllers("five_bar")["held"]
    c, rng, mech = (
        Exported(controller, tmp_path / "law", self_test=True),
        np.random.default_rng(5),
        robot("five_bar"),
    )
    for q, v in states(mech, 5, rng):
        reference = asked(controller, q, v, rng)
        status, u = c.call("torque", q, v, *reference)
        assert status == "OK"
        assert relative(u, controller.torque(q, v, reference)) < 1e-9
    sources = [x for x in c.paths if x.suffix == ".c"]
    run(compilers()[0], *STRICT, "-O1", *sources, "-o", tmp_path / "test", "-lm")
    assert "all is well" in run(tmp_path / "test")


@dataclasses.dataclass(frozen=True)
class Pose:
    """A frame's position along z x and its rotation, from a pose; a number is a height in mm, at
    rest in the middle."""

    frame: str

    def bind(self, mech):
        return BoundPose(hc.FrameTask(self.frame, "x z rx ry rz").bind(mech))


@dataclasses.dataclass(frozen=True, eq=False)
class BoundPose:
    own: Any
    pose = (2, 0), True
    rows = None

    def __getattr__(self, name):
        return getattr(self.own, name)

    def wanted(self, value):
        if isinstance(value, float):
            value = pin.SE3(np.eye(3), np.array([0.0, 0.0, 1e-3 * value]))
        return self.own.wanted(value)

    def at(self, kin):
        return self.own.at(kin)

    def tick(self, motion, beside):
        return self.own.tick(motion, None)

    def numbers(self, wanted):
        x, z = wanted.position
        return np.array([z, x, *wanted.rotation.ravel()])

    def expression(self, q, v, t, show, value):
        x = [value[i] for i in range(11)]
        given = ca.vertcat(x[1], 0.0, x[0], *x[2:])
        return self.own.expression(q, v, t, show, given)


def test_a_task_reads_references_as_it_likes(tmp_path):
    mech, rng = robot("stewart"), np.random.default_rng(8)
    controller = hc.TaskSpaceControl(mech, Pose("platform"), 400.0, 40.0)
    machines = [hc.compile(controller, machine="vm")]
    if shutil.which("cc"):
        machines.append(hc.compile(controller))
    for q, v in states(mech, 3, rng):
        for reference in (310.0, (310.0, rng.normal(size=5), rng.normal(size=5))):
            u = controller.torque(q, v, reference)
            for fast in machines:
                assert relative(fast.torque(q, v, reference), u) < 1e-9
    assert not any(fast.fallbacks for fast in machines)


def test_a_pose_of_fewer_coordinates_is_checked_in_c_too(tmp_path):
    mech, rng = robot("stewart"), np.random.default_rng(8)
    controller = hc.TaskSpaceControl(mech, Pose("platform"), 400.0, 40.0)
    c = Exported(controller, tmp_path / "law")
    q, v = states(mech, 1, rng)[0]
    zero = np.zeros(5)
    value = np.array([0.31, 0.0, *np.eye(3).ravel()])
    status, u = c.call("torque", q, v, value, zero, zero)
    assert status == "OK"
    assert relative(u, controller.torque(q, v, 310.0)) < 1e-9
    value[2] = 1.001
    assert c.call("torque", q, v, value, zero, zero)[0] == "NOT_NORMALISED"


# --------------------------------------------------------------------------------- refused


def wrong(expression):
    """A controller whose task says this of itself."""

    class Bound(BoundDistance):
        pass

    Bound.expression = expression

    class Own(Distance):
        def bind(self, mech):
            right = super().bind(mech)
            return Bound(right.place, right.point, right.ticks, right.scale)

    return hc.TaskSpaceControl(robot("five_bar"), Own("tip_right", POINT), 400.0, 40.0)


def seen(task, show):
    return show(None, task.place.table.frames2[0]).p2 - task.point


WRONG = {
    "its error differs": lambda self, q, v, t, show, x: 1e-6 + ca.norm_2(seen(self, show)),
    "must return a casadi.SX of shape": lambda self, q, v, t, show, x: ca.SX.zeros(2),
    "must return.*got float": lambda self, q, v, t, show, x: 1.0,
    "raised KeyError: 'oh'": lambda self, q, v, t, show, x: {}["oh"],
    "depends on more.*other": lambda self, q, v, t, show, x: ca.SX.sym("other"),
    "its drift differs": lambda self, q, v, t, show, x: hc.protocols.TaskExpression(
        *_with_another_drift(self, q, v, show, x)
    ),
}


def _with_another_drift(task, q, v, show, x):
    frame = show(None, task.place.table.frames2[0])
    away = frame.p2 - task.point
    d = ca.norm_2(away)
    rows = {k: ca.dot(away, u) / d for k, u in frame.moves}
    return (
        [rows],
        [ca.dot(away, frame.linear[1]) / d],
        [ca.dot(away, frame.linear[0]) / d],
        [x - d],
        [],
    )


@pytest.mark.parametrize("message", WRONG)
def test_an_expression_that_is_not_the_task_is_refused(message):
    with pytest.raises(hc.InputError, match=f"(?s)expression of task distance.*{message}"):
        hc.compile(wrong(WRONG[message]), machine="vm")


def test_a_task_without_an_expression_is_refused_by_name(tmp_path):
    class Bound(BoundDistance):
        def at(self, kin):  # an expression of the class below need not be that of this one
            return super().at(kin)

    class Own(Distance):
        def bind(self, mech):
            right = super().bind(mech)
            return Bound(right.place, right.point, right.ticks, right.scale)

    controller = hc.TaskSpaceControl(robot("five_bar"), Own("tip_right", POINT), 400.0, 40.0)
    for attempt in (hc.compile, lambda c: hc.export_c(c, tmp_path)):
        with pytest.raises(hc.InputError, match="task distance cannot be compiled"):
            attempt(controller)
