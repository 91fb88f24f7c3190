"""What goes in and out of a mechanism is what it stores; loads from outside."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from zoo import at, five_bar

import holoctl as hc

FRICTION = hc.JointFriction(viscous=0.8, coulomb=0.3, transition=0.5)


def damped(more=()):
    mech = five_bar("revolute")
    cut = mech.constraint_names[0]
    friction = hc.JointFriction({cut: 0.2}, {cut: 0.1}, transition=0.5, name="of the cut joint")
    balance = hc.JointSpring(mech.actuated[0], 4.0, 0.8, damping=0.1)
    return mech.with_forces([FRICTION, friction, balance, *more])


def reference(q0):
    return lambda t: (
        q0 + 0.3 * np.sin(3.0 * t) * np.array([1.0, -0.7]),
        0.9 * np.cos(3.0 * t) * np.array([1.0, -0.7]),
        -2.7 * np.sin(3.0 * t) * np.array([1.0, -0.7]),
    )


def book(mech, run, load=None):
    """Work of the motors and from outside, losses, and the change of what is stored.

    Motors hold their efforts, so their work is exact; the powers that vary within a tick are
    integrated along with the motion, from each recorded state anew.
    """
    dynamics = hc.PreparedForwardDynamics(mech, hc.partition(mech, run.q[0]))
    n, work, moved = mech.nv, np.zeros(2), 0.0
    for i in range(run.t.size - 1):
        u = run.u[i]

        def rates(t, x, u=u):
            q, v = x[:n], x[n : 2 * n]
            known = np.zeros(n) if load is None else load(t, q, v)
            power = hc.power(mech, q, v, u, efforts=known, t=t)
            a = dynamics.acceleration(q, v, mech.B @ u + known, t)
            return np.concatenate([v, a, [power.losses, power.external]])

        start = np.concatenate([run.q[i], run.v[i], np.zeros(2)])
        span, h = run.t[i : i + 2], run.t[i + 1] - run.t[i]
        end = solve_ivp(rates, span, start, "DOP853", rtol=1e-11, atol=1e-13, first_step=h)
        work += end.y[2 * n :, -1]
        moved += u @ (mech.motor_positions(run.q[i + 1]) - mech.motor_positions(run.q[i]))
    first, last = (hc.energy(mech, run.q[i], run.v[i]).total for i in (0, -1))
    return moved, *work, last - first


def closes(mech, duration, rate, load=None):
    q0, v0 = hc.assemble(mech)
    motors = mech.motor_positions(q0)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    run = hc.simulate(
        mech,
        ctl.track(reference(motors)),
        q0,
        v0,
        duration,
        frequency=rate,
        integrator=hc.Integrator(rtol=1e-11, atol=1e-13),
        plant=hc.Plant(efforts=load),
    )
    motors, losses, external, stored = book(mech, run, load)
    size = abs(motors) + losses + abs(external)
    assert losses > 0.1 * size
    return abs(motors + external - losses - stored) / size


def test_the_energy_book_closes():
    assert closes(damped(), 0.3, 500.0) < 1e-9


def test_the_energy_book_closes_with_a_load():
    mech = damped()

    def load(t, q, v):
        return 0.4 * np.sin(7.0 * t) * np.ones(mech.nv)

    assert closes(mech, 0.3, 500.0, load) < 1e-9


@pytest.mark.slow
def test_the_energy_book_closes_over_ten_seconds():
    assert closes(damped(), 10.0, 500.0) < 1e-9


def test_forces_on_frames_are_efforts_on_coordinates():
    mech = damped()
    q, v = hc.assemble(mech)
    tip = mech.model.names[-1]
    force = np.array([3.0, -1.0, 0.0])

    def f_ext(t, q, v):
        return {tip: (np.sin(5.0 * t) * force, np.zeros(3))}

    def efforts(t, q, v):
        import pinocchio as pin

        data = mech.model.createData()
        joint = mech.model.getJointId(tip)
        J = pin.computeJointJacobian(mech.model, data, q, joint)
        pin.forwardKinematics(mech.model, data, q)
        return J[:3].T @ data.oMi[joint].rotation.T @ (np.sin(5.0 * t) * force)

    def quiet(t, q, v):
        return np.zeros(2)

    one = hc.simulate(mech, quiet, q, v, 0.2, plant=hc.Plant(f_ext=f_ext))
    two = hc.simulate(mech, quiet, q, v, 0.2, plant=hc.Plant(efforts=efforts))
    none = hc.simulate(mech, quiet, q, v, 0.2)
    assert np.abs(one.q - two.q).max() < 1e-8
    assert np.abs(one.q - none.q).max() > 1e-3


def test_a_controller_that_is_told_of_a_load_follows_its_reference():
    mech = damped()
    q, v = hc.assemble(mech)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0, friction_at="measured")
    known, target = np.linspace(-1.0, 1.0, mech.nv), np.array([0.5, -1.0])
    wanted = mech.motor_positions(q), mech.motor_rates(v)
    u = ctl.torque(q, v, *wanted, target, efforts=known)
    a = hc.forward_dynamics(mech, q, v, mech.B @ u + known).a
    assert mech.B.T @ a == pytest.approx(target, abs=1e-9)
    tip, load = mech.model.names[-1], np.array([1.0, 2.0, 0.0, 0.0, 0.0, 0.1])
    u = ctl.torque(q, v, *wanted, target, f_ext={tip: load})
    a = hc.forward_dynamics(mech, q, v, mech.B @ u, f_ext={tip: load}).a
    assert mech.B.T @ a == pytest.approx(target, abs=1e-9)
    gravity = hc.ComputedTorque(mech, 100.0, 20.0, "gravity")
    held = gravity.torque(q, v, *wanted, target, efforts=known)
    free = gravity.torque(q, v, *wanted, target)
    assert np.abs(held - free).max() > 0.1


def test_friction_at_the_reference_does_not_chatter():
    """A noisy rate near zero: compensation at the reference is steady, at the measured rate not."""
    mech = damped([hc.JointFriction(coulomb=2.0, transition=1e-3, name="dry")])
    q, _ = hc.assemble(mech)
    part, rng = hc.partition(mech, q), np.random.default_rng(0)
    motors, still = mech.motor_positions(q), np.zeros(2)
    spread = {}
    for at_ in ("measured", "reference"):
        ctl = hc.ComputedTorque(mech, 0.0, 0.0, partition=part, friction_at=at_)
        noisy = [0.02 * rng.normal(size=mech.nv) for _ in range(50)]
        spread[at_] = np.std([ctl.torque(q, e, motors, still, still) for e in noisy], axis=0).max()
    assert spread["measured"] > 1.0
    assert spread["reference"] < 0.1


def test_a_spring_on_the_tip_of_a_simulated_robot_settles():
    """Friction brings it to rest where springs balance."""
    mech = five_bar("revolute").with_forces(
        [
            hc.JointFriction(viscous=3.0),
            hc.Spring((five_bar().model.names[-1], at(0.1)), ("universe", at(0.3, 1.0)), 50.0, 0.2),
        ]
    )
    q, v = hc.assemble(mech)
    run = hc.simulate(mech, lambda t, q, v: np.zeros(2), q, v, 15.0, frequency=50.0)
    energies = [hc.energy(mech, *x).total for x in zip(run.q[::20], run.v[::20], strict=True)]
    assert (np.diff(energies) < 1e-7).all()
    assert np.abs(run.v[-1]).max() < 1e-3
    held = hc.inverse_dynamics(
        mech, run.q[-1], np.zeros(mech.nv), np.zeros(mech.nv), coordinates="all",
        inconsistent="project",
    )  # fmt: skip
    assert np.abs(held.u).max() < 1e-2


def test_friction_that_is_too_stiff_is_named():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech, v_guess=[0.1, 0.0, 0.0, 0.0])
    mech = mech.with_forces([hc.JointFriction(coulomb=1.0, transition=1e-6)])
    with pytest.raises(hc.InconsistentError, match=r"forces stiff \('friction'\), such as"):
        hc.simulate(
            mech,
            lambda t, q, v: [0, 0],
            q,
            v,
            0.02,
            frequency=100.0,
            integrator=hc.Integrator(rtol=1e-6, atol=1e-8),
        )
