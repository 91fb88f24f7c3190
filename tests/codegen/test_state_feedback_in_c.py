"""State feedback in exported C, about a point and along a motion, beside the Python law."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pinocchio as pin
import pytest
import zoo
from exported import STRICT, compilers, last_line, library, robot, self_test

import holoctl as hc
from holoctl.results import StateFeedback

pytest.importorskip("casadi")


def regulator():
    mech = robot("five_bar")
    eq = hc.equilibrium(mech)
    return hc.lqr(hc.linearize(mech, eq.q, u=eq.u), [100.0, 100.0, 1.0, 1.0], 0.1, dt=1e-3)


def along_a_motion():
    mech = robot("five_bar")
    here = mech.motor_positions(hc.assemble(mech)[0])
    there = hc.Trajectory.through(mech, [here, here + np.array([0.3, -0.2])], [0.0, 0.05])
    return hc.lqr_along(mech, there, [100.0, 100.0, 1.0, 1.0], 0.1, models=5, dt=2e-3)


def made_up(nodes):
    """Of a body that floats, with an arm on a ball joint and a wheel that turns without end."""
    model, rng = pin.Model(), np.random.default_rng(1)
    base = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    arm = model.addJoint(base, pin.JointModelSpherical(), zoo.at(0.3), "arm")
    wheel = model.addJoint(arm, pin.JointModelRUBZ(), zoo.at(0.1), "wheel")
    plane = model.addJoint(0, pin.JointModelPlanar(), pin.SE3.Identity(), "plane")
    for joint in (base, arm, wheel, plane):
        model.addJointFrame(joint)
        model.appendBodyToJoint(joint, pin.Inertia.FromBox(2.0, 0.3, 0.2, 0.1), pin.SE3.Identity())
    mech = hc.Mechanism(model, [], ["wheel"])
    part, n = hc.partition(mech, mech.reference), model.nv
    states = tuple(mech.coordinate_names) + tuple(f"d {x}" for x in mech.coordinate_names)
    q = [pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))]
    for _ in range(nodes - 1):
        q.append(pin.integrate(model, q[-1], 0.3 * rng.normal(size=n)))
    shape = (nodes, 1, 2 * n)
    K, v, u = rng.normal(size=shape), rng.normal(size=(nodes, n)), rng.normal(size=(nodes, 1))
    if nodes == 1:
        return StateFeedback(mech, part, K[0], q[0], v[0], u[0], states, ("wheel",))
    times = 0.25 * np.arange(nodes)
    return StateFeedback(mech, part, K, q, v, u, states, ("wheel",), times, 0.25)


LAWS = {
    "point": regulator, "motion": along_a_motion, "floats": lambda: made_up(1),
    "floats along": lambda: made_up(4),
}  # fmt: skip


def in_c(law, folder):
    """``torque(q, v, t) -> status, u`` of the C."""
    shared = ctypes.CDLL(str(library(hc.export_c(law, folder, name="law"), folder)))
    content = int(
        re.search(r"CONTENT 0x([0-9a-f]+)", (folder / "holoctl_law.h").read_text())[1], 16
    )
    timed = [] if law.times is None else [ctypes.c_double]
    array = ctypes.POINTER(ctypes.c_double)
    shared.holoctl_law_torque_checked.argtypes = [ctypes.c_ulong, array, array, *timed, array]

    def torque(q, v, t=0.0):
        u = np.ones(law.mech.nu)
        given = [np.ascontiguousarray(x, dtype=float) for x in (q, v)]
        q, v, out = (x.ctypes.data_as(array) for x in (*given, u))
        status = shared.holoctl_law_torque_checked(content, q, v, *[t][: len(timed)], out)
        return status, u

    return torque


def states(law, rng):
    """Beside nodes and between them, before the motion and after it."""
    model, last = law.mech.model, 0 if law.times is None else law.times.size - 1
    end = 1.0 if law.times is None else law.times[-1]
    for t in (-1.0, 0.0, 0.3 * end, 0.5 * end - 1e-9, 0.5 * end, end - 1e-12, end, 2.0 * end):
        i = round(min(max(t, 0.0) / end, 1.0) * last)
        q, v = (law.q[i], law.v[i]) if last else (law.q, law.v)
        step = rng.uniform(-0.5, 0.5, model.nv)
        yield pin.integrate(model, q, step), v + rng.normal(size=model.nv), t


@pytest.mark.parametrize("name", LAWS)
def test_the_efforts_are_those_of_python(name, tmp_path):
    law = LAWS[name]()
    torque = in_c(law, tmp_path)
    for q, v, t in states(law, np.random.default_rng(3)):
        right = law.torque(q, v, t)
        status, u = torque(q, v, t)
        assert status == 0
        assert np.abs(u - right).max() < 1e-12 * max(1.0, np.abs(law.K).max())
        assert np.abs(right).max() > 1e-2


@pytest.mark.parametrize("name", ["motion", "floats along"])
def test_it_passes_its_self_test(name, tmp_path):
    paths = hc.export_c(LAWS[name](), tmp_path)
    assert paths[0].name.endswith("_feedback.h")
    program, said = self_test(tmp_path, paths, compilers()[0], *STRICT[1:], "-O1")
    assert program is not None, said
    assert last_line(program) == (0, "all is well")
    right = paths[1].read_text()
    assert right.count("] - sum;") == 1
    paths[1].write_text(right.replace("] - sum;", "] + sum;"))
    program, said = self_test(tmp_path, paths, compilers()[0], *STRICT[1:], "-O1")
    assert last_line(program)[0] == 1


def test_input_without_efforts_has_a_status(tmp_path):
    law = made_up(4)
    torque = in_c(law, tmp_path)
    q, v = law.q[0].copy(), law.v[0].copy()
    assert torque(q, v)[0] == 0
    model, turned = law.mech.model, np.zeros(law.mech.nv)
    turned[3] = 2.1
    far = pin.integrate(model, q, turned)
    long = np.concatenate([q[:3], 1.1 * q[3:7], q[7:]])
    bad = np.where(np.arange(v.size) == 2, np.nan, v)
    for given, status in (((far, v), 14), ((long, v), 2), ((q, bad), 1), ((q, v, np.inf), 1),
                          ((q, 1e308 * np.ones(v.size)), 6)):  # fmt: skip
        found, u = torque(*given)
        assert found == status
        assert not u.any()


def test_other_options_are_refused(tmp_path):
    law = regulator()
    for given in ({"plant": True}, {"functions": ["inertia"]}, {"precision": "single"}):
        with pytest.raises(hc.InputError, match="exported without"):
            hc.export_c(law, tmp_path, **given)
    assert not any(tmp_path.iterdir())
