"""Prepared forward dynamics against the general path."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
import pytest
import zoo
from inside import fast_path, general_path, sparse_path
from support import (
    closed_states,
    dense_kkt,
    few,
    mechanism,
    open_states,
    relative,
    shared_partition,
)
from zoo import ZOO

import holoctl as hc
from holoctl.rows import pinocchio_rows
from holoctl.rows.pinocchio_rows import anchors

WELDS = ("weld_chain", "welded_arms")
ANCHORED = (*WELDS, "held_foot", "spatial_arms", "universal_rods", "idle_rod")
"""Mechanisms whose rows are whole points and welds, or hold a foot as a weld does."""


def prepare(name):
    return hc.PreparedForwardDynamics(mechanism(name), shared_partition(name))


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", few(ZOO))
def test_it_is_forward_dynamics(name, where):
    prepared, rng = prepare(name), np.random.default_rng(0)
    mech, tick = prepared.mech, fast_path(prepared)
    states = closed_states(name)[:40] if where == "closed" else open_states(name, 40)
    fast = 0
    for q, v in states:
        tau, t = rng.normal(size=mech.nv), rng.uniform()
        try:
            expected = general_path(prepared, q, v, tau, t)
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


@pytest.mark.parametrize("moving", [True, False], ids=["moving", "at rest"])
@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", ANCHORED)
def test_whole_anchors_go_through_the_sparse_factorisation(name, where, moving):
    """On the manifold and off it: our acceleration, not that of Pinocchio's rows."""
    prepared, rng = prepare(name), np.random.default_rng(0)
    mech, sparse = prepared.mech, sparse_path(prepared)
    states = closed_states(name)[:30] if where == "closed" else open_states(name, 30)
    served = 0
    for q, speed in states:
        v, tau = float(moving) * speed, rng.normal(size=mech.nv)
        found = sparse(q, v, tau)
        assert (prepared.acceleration(q, v, tau) == found).all() or found is None
        condition = hc.project(mech, q, v, partition=prepared.partition).condition
        general = hc.forward_dynamics(mech, q, v, tau, partition=prepared.partition)
        tol = max(1e-10, 1e-14 * condition * general.certificate.condition)
        if found is not None:
            served += 1
            assert relative(found, general.a) < tol
            assert relative(found, dense_kkt(mech, q, v, tau)[0]) < tol
    assert served >= 0.9 * len(states)


@pytest.mark.parametrize("name", [*WELDS, "held_foot"])
def test_off_the_manifold_the_rows_make_a_difference(name, monkeypatch):
    """The twist of a weld that is open and moves has an acceleration along our rows, and the
    test above sees it."""
    prepared = prepare(name)
    sparse = sparse_path(prepared)
    states = open_states(name, 5)
    ours = [sparse(q, v, np.zeros(prepared.mech.nv)) for q, v in states]
    monkeypatch.setattr(pinocchio_rows, "ANCHOR_AT_REST", 1e9)
    for (q, v), a in zip(states, ours, strict=True):
        assert relative(sparse(q, v, np.zeros(prepared.mech.nv)), a) > 1e-3


def test_which_rows_are_anchors():
    """Six rows between two bodies are one, of however many constraints, if they are independent;
    what is left over, or redundant, is for the dense form."""
    sizes = {name: [a.rows.size for a in anchors(mechanism(name))] for name in ZOO}
    assert {name: s for name, s in sizes.items() if s} == {
        "weld_chain": [6], "welded_arms": [6, 3], "held_foot": [6], "spatial_arms": [3],
        "universal_rods": [3], "idle_rod": [3], "six_row_four_bar": [6],
    }  # fmt: skip
    assert sparse_path(prepare("six_row_four_bar")) is None
    arms = mechanism("spatial_arms")
    twice = arms.with_constraints(
        hc.Closure(("a3", zoo.at(0.3)), ("b3", zoo.at(0.25)), joint="spherical", name="again")
    )  # fmt: skip
    assert [a.rows.tolist() for a in anchors(twice)] == [[0, 1, 2], [3, 4, 5]]
    prepared = hc.PreparedForwardDynamics(twice)
    assert sparse_path(prepared) is None
    q, v = closed_states("spatial_arms")[0]
    tau = np.ones(arms.nv)
    assert relative(prepared.acceleration(q, v, tau), dense_kkt(arms, q, v, tau)[0]) < 1e-10


def test_where_the_sparse_form_has_doubts_the_dense_one_answers():
    rng = np.random.default_rng(0)
    prepared = prepare("weld_chain")
    mech, sparse = prepared.mech, sparse_path(prepared)
    q, _ = closed_states("weld_chain")[0]
    for nearly in (0.95, 0.999):  # the weld open by this part of half a turn
        turned = dataclasses.replace(mech.constraints[0], a=_turned(mech, q, nearly * np.pi))
        twisted = dataclasses.replace(mech, constraints=[turned])
        half = hc.PreparedForwardDynamics(twisted)
        v, tau = rng.normal(size=mech.nv), rng.normal(size=mech.nv)
        assert sparse_path(half)(q, v, tau) is None
        expected = general_path(half, q, v, tau, 0.0)
        assert relative(half.acceleration(q, v, tau), expected) < 1e-6
    assert sparse(np.full(mech.nq, np.nan), np.zeros(mech.nv), np.zeros(mech.nv)) is None

    foot = prepare("held_foot")
    q, _ = closed_states("held_foot")[0]
    tau = rng.normal(size=12)
    assert sparse_path(foot)(q, np.zeros(12), tau) is not None
    data = foot.mech.model.createData()
    pin.forwardKinematics(foot.mech.model, data, q)
    R = data.oMi[foot.mech.model.getJointId("leg_5")].rotation
    on_edge = pin.exp3(np.array([0.0, 0.5 * np.pi, 0.0])) @ R.T  # the sole stands upright
    base = on_edge @ pin.Quaternion(q[3:7]).toRotationMatrix()
    fallen = q.copy()
    fallen[3:7] = pin.Quaternion(base).coeffs()
    assert sparse_path(foot)(fallen, np.zeros(12), tau) is None
    with pytest.raises(hc.SingularityError):
        foot.acceleration(fallen, np.zeros(12), tau)


def _turned(mech, q, angle):
    """The frame a of the weld of `weld_chain`, turned so that it is open by an angle at q."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    weld = mech.constraints[0]
    end = data.oMi[mech.model.getJointId(weld.b[0])] * weld.b[1]
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    return ("universe", end * pin.SE3(pin.exp3(angle * axis), np.zeros(3)))


@pytest.mark.parametrize("name", ["welded_arms", "held_foot", "five_bar"])
def test_every_thread_has_its_own_workspace(name):
    prepared = prepare(name)
    states, tau = closed_states(name)[:20], np.ones(prepared.mech.nv)
    expected = [prepared.acceleration(q, v, tau) for q, v in states]

    def work(i):
        order = np.random.default_rng(i).permutation(len(states))
        return all(
            (prepared.acceleration(*states[k], tau) == expected[k]).all()
            for k in np.tile(order, 20).tolist()
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


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
    assert fast_path(prepared)(q, v, np.ones(3), 0.0) is not None
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
