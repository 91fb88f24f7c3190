"""fdgq against numbers that spatial_v2 computed, and against the same constraints as rows."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp
from spatial_v2 import CASES, CHARTS, close, fourbar, geared6r, golden, planar2g, tree
from support import relative

import holoctl as hc


@pytest.mark.parametrize("name", CASES)
def test_accelerations_of_spatial_v2(name):
    data = golden(name)
    model, violating = tree(data), 0
    assert len(data["states"]) == 12
    for s in data["states"]:
        q0, v0 = np.array(s["q0"], float), np.array(s["qd0"], float)
        q, v, G, gs = CHARTS[name](model, q0, v0)
        for mine, theirs in ((q, "q"), (v, "qd"), (G, "G"), (gs, "gs")):
            assert close(mine, s[theirs]) < 1e-10
        a = hc.methods.fdgq(model, CHARTS[name], q0, v0, s["tau"], f_ext=s["f_ext"])
        assert close(a, s["qdd"]) < 1e-10
        assert close(a, s["qdd_free"]) > 1e-4  # guard: the constraint does something
        violating += s["violating"]
    assert violating == 6


def test_work_of_the_torque_is_the_kinetic_energy():
    """planar2g from rest with tau = (1, 0): after 5 s the kinetic energy is q1."""
    sim = golden("planar2g_sim")
    model = tree(golden("planar2g"))

    def derivative(t, x):
        return np.concatenate([x[2:], hc.methods.fdgq(model, planar2g, x[:2], x[2:], [1.0, 0.0])])

    times = np.array(sim["t"])
    end = solve_ivp(derivative, (0.0, 5.0), np.zeros(4), method="DOP853", t_eval=times,
                    rtol=1e-12, atol=1e-12)  # fmt: skip
    q, v = end.y[:2].T, end.y[2:].T
    data = model.createData()
    kinetic = pin.computeKineticEnergy(model, data, q[-1], v[-1])
    assert q[-1, 0] == pytest.approx(sim["final_q1"], abs=1e-9)
    assert kinetic == pytest.approx(q[-1, 0], abs=1e-9)
    assert np.abs(q - np.array(sim["q"])).max() < 1e-9
    assert np.abs(v - np.array(sim["qd"])).max() < 1e-9


def test_the_same_constraint_as_rows_gives_the_same_acceleration():
    """geared6r as three couplings, fourbar as a closure: implicit rows, explicit chart."""
    data = golden("geared6r")
    model, p = tree(data), data["constraint"]["params"]
    gears = []
    for i in (1, 3, 5):
        c = {f"q{i + 1}": 1.0}
        for column, y in enumerate(("q1", "q3", "q5")):
            if p["N"][i][column]:
                c[y] = -float(p["N"][i][column])
        gears.append(hc.Coupling(c, offset=p["c"][i], name=f"gear {i}"))
    geared = hc.Mechanism(model, gears)
    four = tree(golden("fourbar"))
    ends = [pin.SE3(np.eye(3), np.array([x, 0.0, 0.0])) for x in (0.9, 0.6)]
    pin_joint = hc.Closure(("q2", ends[0]), ("q3", ends[1]), axes="x y")
    for mech, states, chart in (
        (geared, data["states"], geared6r),
        (hc.Mechanism(four, [pin_joint]), golden("fourbar")["states"], fourbar),
    ):
        part = None
        for s in states:
            q, v = np.array(s["q"]), np.array(s["qd"])
            part = part or hc.partition(mech, q)
            a = hc.forward_dynamics(mech, q, v, s["tau"], partition=part).a
            assert relative(a, hc.methods.fdgq(mech.model, chart, q, v, s["tau"])) < 1e-10


def test_external_forces_are_those_of_the_body_at_the_base_origin():
    model = tree(golden("planar2g"))
    q, v, tau = np.array([0.3, 2 * np.sin(0.3)]), np.zeros(2), np.zeros(2)
    rng = np.random.default_rng(0)
    f = rng.normal(size=(2, 6))
    data = model.createData()
    pin.computeJointJacobians(model, data, q)
    efforts = np.zeros(2)
    for j in (1, 2):
        J = pin.getJointJacobian(model, data, j, pin.ReferenceFrame.WORLD)
        efforts += J.T @ np.concatenate([f[j - 1, 3:], f[j - 1, :3]])
    with_forces = hc.methods.fdgq(model, planar2g, q, v, tau, f_ext=f)
    assert relative(with_forces, hc.methods.fdgq(model, planar2g, q, v, efforts)) < 1e-12
    assert np.abs(with_forces).max() > 0.1


@pytest.mark.parametrize(
    ("chart", "words"),
    [
        (None, "gamma_q must be a function"),
        (lambda m, q, v: (q, v), "must return"),
        (lambda m, q, v: (q, v, np.eye(3), q), "shape"),
        (lambda m, q, v: (q, v, np.eye(2) * np.nan, q), "finite"),
        (lambda m, q, v: (q, v[:1], np.eye(2), q), "v of gamma_q"),
    ],
)
def test_bad_callbacks_are_told(chart, words):
    with pytest.raises(hc.InputError, match=words):
        hc.methods.fdgq(tree(golden("planar2g")), chart, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])


def test_only_plain_coordinates():
    model = pin.Model()
    model.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    with pytest.raises(hc.InputError, match="nq = nv"):
        hc.methods.fdgq(model, planar2g, np.zeros(4), np.zeros(3), np.zeros(3))
