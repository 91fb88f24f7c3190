"""Prepared forward dynamics against the general path."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pytest
import zoo
from support import closed_states, mechanism, open_states, relative, shared_partition
from zoo import ZOO

import holoctl as hc
from holoctl.dynamics import prepared_forward as module


def prepare(name):
    return hc.PreparedForwardDynamics(mechanism(name), shared_partition(name))


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", list(ZOO))
def test_it_is_forward_dynamics(name, where):
    prepared, rng = prepare(name), np.random.default_rng(0)
    mech, tick = prepared.mech, module._lay_out(prepared)
    states = closed_states(name)[:40] if where == "closed" else open_states(name, 40)
    fast = 0
    for q, v in states:
        tau, t = rng.normal(size=mech.nv), rng.uniform()
        try:
            expected = prepared._by_the_general_path(q, v, tau, t)
        except hc.SingularityError:
            with pytest.raises(hc.SingularityError):
                prepared.acceleration(q, v, tau, t)
            continue
        found = hc.forward_dynamics(mech, q, v, tau, t=t, partition=prepared.partition)
        assert relative(expected, found.a) < 1e-12
        condition = hc.project(mech, q, v, partition=prepared.partition, t=t).condition
        tol = max(1e-10, 1e-14 * condition * found.certificate.condition)
        assert relative(prepared.acceleration(q, v, tau, t), expected) < tol
        fast += tick is not None and tick(q, v, tau, t) is not None
    assert (fast >= 0.8 * len(states)) == (prepared.general == "")


def test_a_chain_and_a_mechanism_without_constraints():
    mech = zoo.in_series(8)
    q, v = hc.assemble(mech, None, np.ones(mech.nv))
    prepared = hc.PreparedForwardDynamics(mech)
    a = hc.forward_dynamics(mech, q, v, np.ones(mech.nv), partition=prepared.partition).a
    assert relative(prepared.acceleration(q, v, np.ones(mech.nv)), a) < 1e-11
    free = dataclasses.replace(mechanism("five_bar"), constraints=[])
    q, v = closed_states("five_bar")[0]
    a = hc.forward_dynamics(free, q, v, np.ones(4)).a
    assert relative(hc.PreparedForwardDynamics(free).acceleration(q, v, np.ones(4)), a) < 1e-12


@pytest.mark.parametrize("name", ["five_bar", "floating_leg", "weld_chain", "sine_chart"])
def test_many_efforts_at_one_state(name):
    prepared, rng = prepare(name), np.random.default_rng(0)
    mech = prepared.mech
    states = closed_states(name)[:5]
    responses = [prepared.at(q, v) for q, v in states]
    for (q, v), response in zip(states, responses, strict=True):  # later states do not reach in
        for tau in rng.normal(size=(3, mech.nv)):
            assert relative(response(tau), prepared.acceleration(q, v, tau)) < 1e-11
        assert relative(response(list(tau)), response(tau)) == 0.0
        with pytest.raises(hc.InputError, match="tau must have shape"):
            response(tau[1:])
        with pytest.raises(hc.InputError, match="finite"):
            response(np.full(mech.nv, np.nan))
    with pytest.raises(hc.InputError, match="finite"):
        prepared.at(np.full(mech.nq, np.nan) if mech.nq == mech.nv else q, np.full(mech.nv, np.nan))


def test_a_prepared_controller_undoes_it():
    for name in ("five_bar", "floating_leg", "weld_chain"):
        mech, part = mechanism(name), shared_partition(name)
        inverse = hc.PreparedInverseDynamics(mech, part)
        forward = hc.PreparedForwardDynamics(mech, part)
        for q, v in closed_states(name)[:10]:
            target = np.linspace(1.0, 2.0, mech.nu)
            a = forward.acceleration(q, v, mech.B @ inverse.torque(q, v, target))
            assert relative(mech.B.T @ a, target) < 1e-9


def test_a_motion_without_inertia_is_reported():
    base = mechanism("five_bar")
    model = base.model.copy()
    for inertia in model.inertias:
        inertia.mass, inertia.inertia = 0.0, np.zeros((3, 3))
    light = base.with_model(model)
    q, v = closed_states("five_bar")[0]
    with pytest.raises(hc.SingularityError, match="no inertia"):
        hc.PreparedForwardDynamics(light).acceleration(q, v, np.ones(4))


def test_a_reference_without_inertia_is_no_measure():
    """A mass on the axis at the reference, far out at the state, behind two parallel hinges."""
    import pinocchio as pin

    m = pin.Model()
    for name, joint in (("a", pin.JointModelRZ()), ("b", pin.JointModelRZ())):
        m.addJoint(m.njoints - 1, joint, pin.SE3.Identity(), name)
    m.addJoint(2, pin.JointModelPX(), pin.SE3.Identity(), "c")
    m.inertias[3] = pin.Inertia(1.0, np.zeros(3), np.zeros((3, 3)))
    prepared = hc.PreparedForwardDynamics(hc.Mechanism(m, []))
    with pytest.raises(hc.SingularityError):
        prepared.acceleration([0.3, 0.4, 7.3], [0.1, 0.2, 0.3], [1.0, 0.5, 2.0])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_size_does_not_matter(size):
    """A four-bar of millimetres is no reason for doubt."""
    lengths = tuple(size * x for x in (0.2, 0.5, 0.4, 0.5))
    mech = zoo.four_bar(lengths=lengths)
    q, v = hc.assemble(mech, None, np.ones(3))
    prepared = hc.PreparedForwardDynamics(mech)
    assert module._lay_out(prepared)(q, v, np.ones(3), 0.0) is not None
    a = hc.forward_dynamics(mech, q, v, np.ones(3), partition=prepared.partition).a
    assert relative(prepared.acceleration(q, v, np.ones(3)), a) < 1e-10


def test_out_copies_and_bad_input():
    prepared = prepare("floating_leg")
    mech = prepared.mech
    q, v = closed_states("floating_leg")[0]
    tau, out = np.ones(mech.nv), np.full(mech.nv, 7.0)
    a = prepared.acceleration(q, v, tau)
    with pytest.raises(hc.InputError, match="finite"):
        prepared.acceleration(q, v, np.full(mech.nv, np.nan), out=out)
    assert (out == 7.0).all()
    assert prepared.acceleration(q, v, tau, out=out) is out
    assert (out == a).all()
    for twin in (pickle.loads(pickle.dumps(prepared)), copy.deepcopy(prepared)):
        assert (twin.acceleration(q, v, tau) == a).all()
    for args, word in (
        ((q[:-1], v, tau), "q must have shape"),
        ((q, v, tau[1:]), "tau must have shape"),
        ((0.9 * q, v, tau), "norm 1"),
        ((q, v, tau, np.nan), "t "),
    ):
        with pytest.raises(hc.InputError, match=word):
            prepared.acceleration(*args)
    with pytest.raises(hc.InputError, match="Mechanism"):
        hc.PreparedForwardDynamics(mech.model)
    with pytest.raises(hc.InputError, match="another mechanism"):
        hc.PreparedForwardDynamics(mech, shared_partition("five_bar"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        prepared.mech = None
