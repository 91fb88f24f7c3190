"""What is rendered: the stiffness against a static push, and the answer to a step."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import expm
from support import few
from task_mechanisms import of, partition_of, start_of

import holoctl as hc

ENDS = {
    "our four_bar": ("rocker_pin", None, "x"),
    "our five_bar": ("tip_right", None, "x z"),
    "our delta": ("tip", None, "x y z"),
    "our geared_arm": ("tip", None, "x y z"),
    "our leg": ("sole", None, "x y z"),
    "our stewart": ("tip", None, "x y z rx ry rz"),
    "three_motors": ("right_rod", pin.SE3(np.eye(3), np.array([0.4, 0.0, 0.0])), "x y"),
    "shared 5bar_linkage_iso6d": ("closedloop6D_1A", None, "x z"),
    "biped": ("base", pin.SE3(np.eye(3), np.array([0.0, 0.1, 0.3])), "x y z rx ry rz"),
}
"""Ends, where on them, and axes that can be moved there."""


def resting(mech, part, q, torque, push, free):
    """The closed configuration where a controller and a push are in balance, by Newton's method.

    `torque` of (q, v) at rest; `free`: whether motions may be left that nothing moves."""
    rest = np.zeros(mech.nv)

    def acceleration(q):
        u = torque(q, rest)
        return hc.forward_dynamics(mech, q, rest, mech.B @ u, f_ext=push(q), partition=part).a

    for _ in range(25):
        P = hc.project(mech, q, rest, partition=part)
        basis = np.linalg.qr(P.gamma / mech.column_scale[:, None])[0] * mech.column_scale[:, None]
        a, h = acceleration(q), 1e-5

        def along(step, q=q):
            near = hc.assemble(mech, pin.integrate(mech.model, q, step), restarts=0)[0]
            return acceleration(near)

        slope = np.column_stack([(along(h * g) - along(-h * g)) / (2.0 * h) for g in basis.T])
        y = np.linalg.lstsq(slope, -a, rcond=1e-6 if free else None)[0]
        q = hc.assemble(mech, pin.integrate(mech.model, q, basis @ y), restarts=0)[0]
        if np.abs(y).max() < 1e-9:
            break
    assert np.abs(acceleration(q) / mech.column_scale).max() < 1e-6
    return q


def pose_of(mech, q, frame, where=None):
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    if mech.model.existJointName(frame):  # not every joint is a frame
        found = data.oMi[mech.model.getJointId(frame)]
    else:
        found = data.oMf[mech.model.getFrameId(frame)]
    return found.copy() if where is None else found * where


@pytest.mark.parametrize("inertia", [False, True])
@pytest.mark.parametrize("name", few(ENDS, ["our five_bar", "our stewart", "three_motors"]))
def test_a_static_push_moves_the_end_by_its_compliance(name, inertia):
    """x - x_ref = K^-1 F, also where K couples the axes, of an exact plant at rest."""
    mech, part, (q, _) = of(name), partition_of(name), start_of(name)
    frame, where, axes = ENDS[name]
    task = hc.FrameTask(frame if where is None else (frame, where), axes)
    rows = len(task.axes)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, rows))
    K = 400.0 * (np.eye(rows) + 0.3 * X @ X.T)
    wanted = (np.eye(rows) + 0.1 * X.T @ X) if inertia else None
    home = pose_of(mech, q, frame, where)
    reference = home if "r" in axes else home.translation[["xyz".index(a) for a in axes.split()]]
    posture = mech.motor_positions(q)
    ctl = hc.Impedance(mech, task, K, "critical", wanted, posture=posture, partition=part)
    wrench = np.zeros(6)
    which = [("x", "y", "z", "rx", "ry", "rz").index(a) for a in task.axes]
    wrench[which] = 4.0 * rng.normal(size=rows)

    def push(q):
        """The same wrench at the end, told where its body has a name."""
        arm = pose_of(mech, q, frame, where).translation - pose_of(mech, q, frame).translation
        return {frame: (wrench[:3], wrench[3:] + np.cross(arm, wrench[:3]))}

    def torque(q, v):
        return ctl.torque(q, v, reference, f_ext=push(q))

    found = resting(mech, part, q, torque, push, part.actuation_rank > rows)
    there = pose_of(mech, found, frame, where)
    turned = pin.log3(there.rotation @ home.rotation.T)
    moved = np.concatenate([there.translation - home.translation, turned])[which]
    expected = np.linalg.solve(K, wrench[which])
    assert np.abs(expected).max() > 3e-3
    np.testing.assert_allclose(moved, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", few(["our five_bar", "our delta", "our stewart"],
                                     ["our five_bar"]))  # fmt: skip
def test_a_step_is_answered_as_a_mass_on_a_spring(name):
    """Ld xdd + D xd + K x = F(t): with a wanted inertia, in closed form, the push included."""
    mech, part, (q, v) = of(name), partition_of(name), start_of(name)
    frame, _, axes = ENDS[name]
    axes = [a for a in axes.split() if len(a) == 1]
    task = hc.FrameTask(frame, axes)
    which = ["xyz".index(a) for a in axes]
    n = len(axes)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, n))
    K, D, Ld = (
        80.0 * np.eye(n) + 5.0 * X @ X.T,
        6.0 * np.eye(n) + X @ X.T,
        np.eye(n) + 0.1 * X @ X.T,
    )
    step, force = 0.02 * rng.normal(size=n), np.zeros(3)
    force[which] = rng.normal(size=n)
    home = pose_of(mech, q, frame).translation[which]
    ctl = hc.Impedance(mech, task, K, D, Ld, partition=part)

    def controller(t, q, v):
        return ctl.torque(q, v, home + step, t, f_ext={frame: (force, np.zeros(3))})

    run = hc.simulate(
        mech,
        controller,
        q,
        v,
        0.25,
        frequency=100.0,
        integrator=hc.Integrator(rtol=1e-10, atol=1e-12, hold=False),
        plant=hc.Plant(f_ext=lambda t, q, v: {frame: (force, np.zeros(3))}),
    )
    A = np.block([[np.zeros((n, n)), np.eye(n)],
                  [-np.linalg.solve(Ld, K), -np.linalg.solve(Ld, D)]])  # fmt: skip
    rest = step + np.linalg.solve(K, force[which])
    start = np.concatenate([-rest, np.zeros(n)])
    size = np.abs(rest).max()
    for t, q in zip(run.t, run.q, strict=True):
        expected = rest + (expm(t * A) @ start)[:n]
        moved = pose_of(mech, q, frame).translation[which] - home
        assert np.abs(moved - expected).max() < 1e-6 * size
    assert np.abs(moved).max() > 0.3 * size


def test_a_step_of_task_space_control_decays_as_its_gains_say():
    """e'' + kd e' + kp e = 0 through the loops, from an error of position and of rate."""
    name = "our five_bar"
    mech, part = of(name), partition_of(name)
    task = hc.FrameTask("tip_right", "z x")
    q, v = hc.assemble(mech, None, 0.3 * np.ones(mech.nv))
    home = hc.task_terms(hc.project(mech, q, v, partition=part), task)
    ctl = hc.TaskSpaceControl(mech, task, [100.0, 50.0], [20.0, 4.0], partition=part)
    reference = lambda t: (home.value + [0.01, -0.02] + 0.1 * t, [0.1, 0.1], [0.0, 0.0])  # noqa: E731
    run = hc.simulate(
        mech, ctl.track(reference), q, v, 0.2, integrator=hc.Integrator(hold=False), frequency=100.0
    )
    for i, (kp, kd) in enumerate(((100.0, 20.0), (50.0, 4.0))):
        A = np.array([[0.0, 1.0], [-kp, -kd]])
        start = np.array([[0.01, -0.02][i], 0.1 - home.rate[i]])
        for t, x in zip(run.t, run.q, strict=True):
            e = reference(t)[0][i] - pose_of(mech, x, "tip_right").translation[[2, 0][i]]
            assert abs(e - (expm(t * A) @ start)[0]) < 1e-8
