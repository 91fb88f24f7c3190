"""Payload and gravity that may change in exported C, beside mechanisms that have them built in."""

from __future__ import annotations

import re

import numpy as np
import pinocchio as pin
import pytest
from exported import STRICT, Exported, compilers, last_line, robot, self_test

import holoctl as hc

pytest.importorskip("casadi")

MASS, CENTRE, MOMENTS = 0.8, (0.05, -0.02, 0.08), (4e-3, 3e-3, 3.5e-3, 4e-4, -5e-4, 6e-4)
WALL = (9.81, 0.0, 0.0)
"""The gravity of a robot whose base is mounted on a wall."""

FRAMES = {"five_bar": "tip_right", "leg": "ankle", "delta": "tip", "stewart": "tip"}


def loaded(mech, frame, wall=False):
    """The mechanism whose model has the load built in, on a wall if it is asked for."""
    model, (xx, yy, zz, xy, xz, yz) = mech.model.copy(), MOMENTS
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    at = model.frames[model.getFrameId(frame)]
    model.appendBodyToJoint(at.parentJoint, pin.Inertia(MASS, np.array(CENTRE), inertia),
                            at.placement)  # fmt: skip
    if wall:
        model.gravity = pin.Motion(np.array(WALL), np.zeros(3))
    return mech.with_model(model)


def put_load(exported, wall=False):
    c = exported.c
    c.payload_mass, c.payload_centre[:], c.payload_inertia[:] = MASS, CENTRE, MOMENTS
    if wall:
        c.gravity[:] = WALL


def joints_bounded():
    return hc.Limits(effort=8.0, velocity={"elbow_left": 6.0}, position={"elbow_left": (-3.0, 0.5)},
                     acceleration={"elbow_left": 60.0})  # fmt: skip


LAWS = {
    "inverse": lambda mech: mech,
    "torque": lambda mech: hc.ComputedTorque(mech, kp=400.0, kd=40.0),
    "friction": lambda mech: hc.ComputedTorque(
        mech.with_forces([hc.JointFriction(0.3, 0.5)]), kp=400.0, kd=40.0
    ),
    "gravity": lambda mech: hc.ComputedTorque(mech, kp=40.0, kd=4.0, compensation="gravity"),
    "nearest": lambda mech: hc.ComputedTorque(mech, kp=400.0, kd=40.0, limits=joints_bounded()),
    "scale": lambda mech: hc.ComputedTorque(
        mech, kp=400.0, kd=40.0, limits=joints_bounded(), policy="scale"
    ),
    "held_scale": lambda mech: hc.ComputedTorque(
        mech, kp=40.0, kd=4.0, compensation="gravity", limits=joints_bounded(), policy="scale"
    ),
    "task": lambda mech: hc.TaskSpaceControl(mech, hc.FrameTask("tip_left", "x z"), kp=400, kd=40),
    "natural": lambda mech: hc.Impedance(
        mech, hc.FrameTask("tip_left", "x"), stiffness=300.0, damping="critical"
    ),
    "limited_task": lambda mech: hc.Impedance(
        mech, hc.FrameTask("tip_left", "x z"), stiffness=300.0, damping=15.0,
        limits=joints_bounded(),
    ),
}  # fmt: skip


def states(mech, n, seed=3):
    """Closed and moving, with some numbers to request."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        step = 0.1 * rng.normal(size=mech.nv) * mech.column_scale
        guess = pin.integrate(mech.model, hc.assemble(mech)[0], step)
        yield (*hc.assemble(mech, guess, rng.normal(size=mech.nv) * mech.column_scale), rng)


def requests(law, q, v, rng):
    """Arguments of the functions of a library."""
    mech = getattr(law, "mech", law)
    yield "inverse_dynamics", (q, v, 10.0 * rng.normal(size=mech.nu))
    if isinstance(law, hc.ComputedTorque):
        positions = mech.motor_positions(q) + 0.05 * rng.normal(size=mech.nu)
        yield "torque", (q, v, positions, *rng.normal(size=(2, mech.nu)))
    elif law is not mech:
        task = law.task if isinstance(law, hc.Impedance) else law.tasks[0]
        at = hc.task_terms(hc.project(mech, q, v), task)
        rows = at.rate.size
        yield "torque", (q, v, at.value + 0.02 * rng.normal(size=rows),
                         at.rate + 0.1 * rng.normal(size=rows), rng.normal(size=rows))  # fmt: skip


def compared(law, one, other, n=20):
    """The largest difference of torques over the largest torque, which states are limited, and
    whether statuses are the same."""
    worst, limited, same, moved = 0.0, 0, True, 0.0
    for q, v, rng in states(getattr(law, "mech", law), n):
        for function, inputs in requests(law, q, v, rng):
            status, u = one.call(function, *inputs)
            expected, right = other.call(function, *inputs)
            assert {status, expected} <= {"OK", "LIMITED"}
            same &= status == expected
            limited += status == "LIMITED"
            worst = max(worst, np.abs(u - right).max() / np.abs(right).max())
            moved = max(moved, np.abs(right).max())
    assert moved > 0.1
    return worst, limited, same


@pytest.mark.slow
@pytest.mark.parametrize(("name", "which"), [
    *(("five_bar", x) for x in LAWS), ("leg", "inverse"), ("leg", "torque"), ("delta", "torque"),
    ("stewart", "inverse"),
])  # fmt: skip
def test_the_torques_are_those_of_a_model_with_the_load(name, which, tmp_path):
    mech, frame, law = robot(name), FRAMES[name], LAWS[which](robot(name))
    exported = Exported(law, tmp_path / "with", payload=frame, gravity=True)
    plain = Exported(law, tmp_path / "without")
    worst, limited, same = compared(law, exported, plain)
    assert worst < 1e-13
    assert same
    for wall in (False, True):
        put_load(exported, wall)
        other = Exported(LAWS[which](loaded(mech, frame, wall)), tmp_path / f"built in {wall}")
        worst, more, same = compared(law, exported, other)
        assert worst < 1e-12
        assert same
        assert compared(law, exported, plain)[0] > 1e-2
        limited += more
    assert (limited > 0) == ("limits" in repr(law) and law.limits is not None)


def test_payload_and_gravity_are_those_of_python(tmp_path):
    mech, frame = robot("five_bar"), FRAMES["five_bar"]
    exported = Exported(mech, tmp_path, payload=frame, gravity=True)
    parameters = exported.c
    assert parameters.payload_mass == 0.0
    assert not any((*parameters.payload_centre, *parameters.payload_inertia))
    assert list(parameters.gravity) == mech.model.gravity.linear.tolist()
    expected = [hc.PreparedInverseDynamics(x) for x in (
        mech, loaded(mech, frame), loaded(mech, frame, wall=True)
    )]  # fmt: skip
    for q, v, rng in states(mech, 5):
        target, found = 10.0 * rng.normal(size=mech.nu), []
        exported.reset()
        for i, python in enumerate(expected):
            if i:
                put_load(exported, wall=i == 2)
            status, u = exported.call("inverse_dynamics", q, v, target)
            assert status == "OK"
            right = python.torque(q, v, target)
            np.testing.assert_allclose(u, right, rtol=0.0, atol=1e-12 * np.abs(right).max())
            found.append(u)
        assert min(np.abs(np.diff(found, axis=0)).max(axis=1)) > 0.1


def refusals(exported, *inputs):
    """Fields with bad values, with the statuses."""
    c = exported.c
    for name, i, bad in (
        ("payload_mass", None, -0.1), ("payload_mass", None, np.nan), ("payload_centre", 2, np.inf),
        ("payload_inertia", 0, -1e-3), ("payload_inertia", 3, 1.0), ("payload_inertia", 5, np.nan),
        ("gravity", 1, -np.inf),
    ):  # fmt: skip
        exported.reset()
        put_load(exported)
        before = exported.call("inverse_dynamics", *inputs)
        if i is None:
            setattr(c, name, bad)
        else:
            getattr(c, name)[i] = bad
        yield (*before, *exported.call("inverse_dynamics", *inputs))


def test_a_payload_that_is_no_body_gives_no_torque(tmp_path):
    mech = robot("five_bar")
    exported = Exported(mech, tmp_path, payload=FRAMES["five_bar"], gravity=True)
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    found = list(refusals(exported, q, v, np.ones(mech.nu)))
    assert len(found) == 7
    for status, u, refused, held in found:
        assert status == "OK"
        assert refused == "NOT_FINITE"
        np.testing.assert_array_equal(held, u)
    exported.reset()
    exported.c.payload_inertia[:] = 0.2 * np.array([2, 2, 2, -1, -1, -1])  # a rod x = y = z
    assert exported.call("inverse_dynamics", q, v, np.ones(mech.nu))[0] == "OK"
    # entries in the order xx xy xz yy yz zz, as a URDF has them
    exported.c.payload_inertia[:] = 4e-3, 1e-4, 1e-4, 3e-3, 1e-4, 3.5e-3
    assert exported.call("inverse_dynamics", q, v, np.ones(mech.nu))[0] == "NOT_FINITE"


@pytest.mark.slow
@pytest.mark.parametrize(("which", "precision"), [
    (x, y) for x in LAWS for y in ("double", "single") if (x, y) != ("natural", "single")
])  # fmt: skip
def test_the_self_test_knows_states_with_a_load(which, precision, tmp_path):
    law = LAWS[which](robot("five_bar"))
    paths = hc.export_c(
        law, tmp_path, payload="tip_right", gravity=True, precision=precision, plant=True
    )
    program, said = self_test(tmp_path, paths, compilers()[-1], *STRICT[1:], "-O1")
    assert program is not None, said
    assert last_line(program) == (0, "all is well")
    test = next(x for x in paths if x.name.endswith("_test.c"))
    test.write_text(test.read_text().replace("    set_parameters(&c, k);\n", ""))
    program, said = self_test(tmp_path, paths, compilers()[-1], "-O1")
    assert "1 checks failed" in last_line(program)[1]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "fields"), [
    ({"payload": "ankle"}, "payload_mass payload_centre payload_inertia"),
    ({"gravity": True}, "gravity"),
])  # fmt: skip
def test_one_without_the_other(options, fields, tmp_path):
    paths = hc.export_c(robot("leg"), tmp_path, **options)
    found = re.findall(r"^  double (payload_\w+|gravity)\b", paths[0].read_text(), re.M)
    assert found == fields.split()
    program, said = self_test(tmp_path, paths, compilers()[0], *STRICT[1:], "-O1")
    assert program is not None, said
    assert last_line(program) == (0, "all is well")


def test_what_has_no_such_parameters_is_named(tmp_path):
    mech = robot("five_bar")
    bounded = hc.Limits(effort=8.0, position={"elbow_left": (-3.0, 0.5)})
    centre = hc.TaskSpaceControl(mech, hc.CenterOfMassTask("x z"), kp=100.0, kd=20.0)
    damped = hc.TaskSpaceControl(
        mech, hc.FrameTask("tip", "x z"), kp=100.0, kd=20.0, at_singular="damp"
    )
    carried = mech.with_forces([hc.Counterbalance("tip_right", mass=0.5)])
    ankle = hc.Transmission(robot("ankle"), ["ankle_pitch", "ankle_roll"])
    for what, options, message in (
        (mech, {"payload": "tip_rigth"}, r"no joint or frame called 'tip_rigth'.*tip_right"),
        (mech, {"payload": "universe"}, "'universe' is fixed to the world"),
        (mech, {"payload": ("tip", 1.0)}, "must be the name of a frame"),
        (mech, {"gravity": "yes"}, "gravity must be True or False"),
        (mech, {"payload": "tip", "limits": bounded}, "limits of position of 'elbow_left'"),
        (mech, {"gravity": True, "limits": bounded}, "gravity: limits of position of 'elbow_left'"),
        (centre, {"payload": "tip"}, "centre of mass of the task"),
        (damped, {"payload": "tip"}, "a damped task is damped by the inertia of the model"),
        (carried, {"gravity": True}, "counterbalance of tip_right' has the gravity of the model"),
        (ankle, {"payload": "foot"}, "exported without 'payload'"),
        (ankle, {"gravity": True}, "exported without 'gravity'"),
    ):
        with pytest.raises(hc.InputError, match=message):
            hc.export_c(what, tmp_path, **options)
    assert not any(tmp_path.iterdir())
