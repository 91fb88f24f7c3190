"""The functions of `compile` by CasADi's virtual machine: the numbers and the guard of C."""

from __future__ import annotations

import pickle
import threading
from functools import cache

import numpy as np
import pytest
from expressed import EXPRESSED, OPTIONS, case, states
from expressed import compiled as in_c
from support import ANY_STATE, few, relative

import holoctl as hc

QUICK = ["four_bar", "floating_leg", "third_bar", "weighted", "timed_arm_expressed"]


@cache
def virtual(name, functions=None):
    mech, part = case(name)
    return hc.compile(
        mech, functions, partition=part, inconsistent="project", machine="vm", **ANY_STATE,
        **OPTIONS.get(name, {}),
    )  # fmt: skip


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", few(EXPRESSED, QUICK))
def test_all_functions_are_those_of_c(name, where):
    mech, _ = case(name)
    c, vm, rng = in_c(name), virtual(name), np.random.default_rng(1)
    assert vm.functions == c.functions
    for q, v in states(name, where, 10):
        t, before = rng.uniform(), (c.fallbacks, vm.fallbacks)
        for x, y in zip(vm.terms(q, v, t), c.terms(q, v, t), strict=True):
            assert relative(x, y) < 1e-12
        tau, target = rng.normal(size=mech.nv), rng.normal(size=mech.nu)
        assert relative(vm.forward_dynamics(q, v, tau, t), c.forward_dynamics(q, v, tau, t)) < 1e-9
        if "inverse_dynamics" in c.functions:
            u = vm.inverse_dynamics(q, v, target, t)
            assert relative(u, c.inverse_dynamics(q, v, target, t)) < 1e-9
            assert np.abs(u).max() > 1e-6
        assert vm.fallbacks - before[1] == c.fallbacks - before[0]


def five_bar():
    mech = hc.load(hc.robot_file("five_bar"))
    return mech, *hc.assemble(mech, v_guess=np.ones(mech.nv))


def test_the_torque_of_a_controller_is_that_of_python():
    mech, q, v = five_bar()
    for forces in ((), (hc.JointFriction(viscous=0.1),)):
        given = hc.Mechanism(
            mech.model, mech.constraints, mech.actuated, reference=mech.reference, forces=forces
        )
        for compensation in ("full", "gravity"):
            ctl = hc.ComputedTorque(given, kp=100.0, kd=20.0, compensation=compensation)
            fast = hc.compile(ctl, machine="vm")
            at = q[[mech.coordinate_names.index(motor) for motor in mech.actuated]]
            reference = at + 0.1, [0.3, -0.2], [1.0, 2.0]
            u = fast.torque(q, v, *reference)
            assert relative(u, ctl.torque(q, v, *reference)) < 1e-12
            assert fast.fallbacks == 0


def test_what_is_not_finite_is_refused_where_nothing_depends_on_it():
    """Gravity compensation has no part of a_ref, nor dynamics of where a floating base is. A finite
    a_ref is taken: test_gravity_is_held_whatever_finite_acceleration_is_wanted."""
    mech, q, v = five_bar()
    ctl = hc.ComputedTorque(mech, kp=100.0, kd=20.0, compensation="gravity")
    fast, rest = hc.compile(ctl, machine="vm"), np.zeros(2)
    for value in (np.nan, np.inf):
        for torque in (ctl.torque, fast.torque):
            with pytest.raises(hc.InputError, match="finite"):
                torque(q, v, mech.motor_positions(q), rest, np.array([0.0, value]))
    mech, part = case("floating_leg")
    law = hc.PreparedInverseDynamics(mech, part, inconsistent="project")
    vm, target = virtual("floating_leg"), np.ones(mech.nu)
    assert np.isfinite(vm.inverse_dynamics(*states("floating_leg", "closed", 1)[0], target)).all()
    for closed, v in states("floating_leg", "closed", 3):
        q = np.r_[np.nan, closed[1:]]
        for torque in (law.torque, vm.inverse_dynamics):
            with pytest.raises(hc.InputError, match="finite"):
                torque(q, v, target)
        with pytest.raises(hc.InputError, match="finite"):
            vm.inverse_dynamics_batch(np.array([q]), np.array([v]), np.array([target]))


def test_what_is_unusual_is_taken_as_c_takes_it():
    mech, q, v = five_bar()
    vm, target = hc.compile(mech, machine="vm"), np.array([1.0, 2.0])
    u, out = vm.inverse_dynamics(q, v, target), np.zeros(2)
    assert vm.inverse_dynamics(q, v, target, out=out) is out
    assert np.array_equal(out, u)
    for given in (
        (list(q), v, target), (q.astype(np.float32).astype(float), v, [1, 2]), (q, v, target, 0),
        (np.repeat(q, 2)[::2], v, target),
    ):  # fmt: skip
        assert relative(vm.inverse_dynamics(*given), u) < 1e-6
    assert np.array_equal(vm.inverse_dynamics(q=q, v=v, target=target), u)
    with pytest.raises(hc.InputError, match="target"):
        vm.inverse_dynamics(q, v, np.zeros(1))  # numpy would make two of it
    with pytest.raises(hc.InputError):
        vm.inverse_dynamics(q, v, target, np.nan)
    with pytest.raises(hc.InputError):
        vm.inverse_dynamics(q * np.nan, v, target)
    with pytest.raises(hc.InputError, match="out"):
        vm.inverse_dynamics(q, v, target, out=np.zeros(3))
    first = vm.inverse_dynamics(q, v, target)
    vm.inverse_dynamics(q, v, -target)
    assert np.array_equal(first, u)  # what was handed out does not change


def test_where_the_guard_is_in_doubt_python_answers_or_refuses():
    mech, q, v = five_bar()
    vm = hc.compile(mech, machine="vm")
    with pytest.raises(hc.InconsistentError):
        vm.inverse_dynamics(q + 0.3, v, np.zeros(2))
    assert vm.fallbacks == 1
    Q, V, T = np.array([q, q + 0.3, q]), np.array([v, v, v]), np.zeros((3, 2))
    with pytest.raises(hc.InconsistentError) as refused:
        vm.inverse_dynamics_batch(Q, V, T)
    assert "at state 1" in refused.value.__notes__[0]


def test_a_batch_with_certificates_is_that_of_c():
    mech, q, v = five_bar()
    Q, V = np.repeat(q[None], 50, 0), np.linspace(-1, 1, 50)[:, None] * v
    T = np.random.default_rng(3).normal(size=(50, 2))
    found = [
        hc.compile(mech, machine=machine).inverse_dynamics_batch(
            Q, V, T, certificate=True, workers=workers
        )
        for machine, workers in (("c", 1), ("vm", 1), ("vm", 3))
    ]
    for u, certificates in found[1:]:
        assert relative(u, found[0][0]) < 1e-12
        assert np.array_equal(certificates.ok, found[0][1].ok)
        assert certificates.ok.all()


def test_a_simulation_by_it_is_that_of_c():
    mech, q, v = five_bar()
    runs = [
        hc.simulate(
            mech,
            None,
            q,
            v,
            0.2,
            integrator=hc.Integrator(method="RK45"),
            plant=hc.compile(mech, machine=m),
        )
        for m in ("c", "vm")
    ]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9
    assert np.abs(runs[0].q[-1] - runs[0].q[0]).max() > 1e-2


def test_threads_share_it_and_pickles_build_it_anew():
    mech, q, v = five_bar()
    vm, targets = hc.compile(mech, machine="vm"), np.random.default_rng(4).normal(size=(4, 200, 2))
    expected = [[vm.inverse_dynamics(q, v, x) for x in some] for some in targets]
    found = [None] * 4

    def work(i):
        found[i] = [vm.inverse_dynamics(q, v, x) for x in targets[i]]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(found, expected)
    other = pickle.loads(pickle.dumps(vm))
    assert other.machine == "vm"
    assert np.array_equal(other.inverse_dynamics(q, v, targets[0, 0]), expected[0][0])


def test_no_compiler_is_needed(monkeypatch):
    monkeypatch.setenv("CC", "there_is_no_such_compiler")
    mech, q, v = five_bar()
    assert hc.compile(mech, machine="vm").inverse_dynamics(q, v, np.zeros(2)).shape == (2,)


def test_what_it_has_not_is_refused_by_name():
    mech, _, _ = five_bar()
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    with pytest.raises(hc.InputError, match="machine must be one of 'c', 'vm'"):
        hc.compile(mech, machine="gpu")
    with pytest.raises(hc.InputError, match="closed state"):
        hc.compile(mech, ["state"], machine="vm")
    with pytest.raises(hc.InputError, match=r"controller.loop\(\)"):
        hc.compile(ctl, machine="vm").loop()
    limited = hc.ComputedTorque(mech, 100.0, 20.0, limits=hc.Limits(effort=5.0))
    with pytest.raises(hc.InputError, match="limits"):
        hc.compile(limited, machine="vm")
    tip = hc.FrameTask(mech.model.frames[-1].name, axes=["x", "z"])
    task = hc.TaskSpaceControl(mech, tip, 100.0, 20.0)
    with pytest.raises(hc.InputError, match="closed state"):
        hc.compile(task, ["torque", "state"], machine="vm")
    with pytest.raises(hc.InputError, match=r"controller.loop\(\)"):
        hc.compile(task, machine="vm").loop()
    limited = hc.TaskSpaceControl(mech, tip, 100.0, 20.0, limits=hc.Limits(effort=5.0))
    with pytest.raises(hc.InputError, match="limits"):
        hc.compile(limited, machine="vm")
