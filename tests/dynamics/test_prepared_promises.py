"""What a control loop can rely on: no state kept, one workspace a thread, no wrong torque."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading

import numpy as np
import pinocchio as pin
import pytest
from inside import fast_path, general_path, was_fast
from support import (
    ANY_STATE,
    closed_states,
    mechanism,
    open_states,
    prepare,
    relative,
    shared_partition,
)
from zoo import add_body, at, bar, vertical

import holoctl as hc
import holoctl.rows.tick.fast_rows


def test_a_singular_state_is_reported_by_the_general_path():
    """A dead point: crank and coupler in line, the rocker drives."""
    base = mechanism("four_bar")
    mech = dataclasses.replace(base, actuated=["rocker"])
    q0, _ = hc.assemble(mech)
    prepared = hc.PreparedInverseDynamics(mech, hc.partition(mech, q0))
    dead, _ = hc.assemble(mech, [0.9, 0.0, 1.6], locked=["coupler"])
    out = np.full(1, 7.0)
    with pytest.raises(hc.SingularityError):
        prepared.torque(dead, np.zeros(3), [1.0], out=out)
    assert out == 7.0


def test_redundant_motors_at_a_dead_point_give_no_torque():
    """Twin motors on the rocker of a four-bar, decided near the dead point and asked at it."""
    B = np.zeros((3, 2))
    B[2] = 1.0, 2.0
    mech = dataclasses.replace(mechanism("four_bar"), actuated=(), actuation=B)
    dead, _ = hc.assemble(mech, [0.9, 0.0, 1.6], locked=["coupler"])
    near, _ = hc.assemble(mech, dead + np.array([1e-3, 0.0, 0.0]), locked=["crank"])
    prepared = hc.PreparedInverseDynamics(mech, hc.partition(mech, near), inconsistent="project")
    for call in (lambda: prepared.holding(dead), lambda: prepared.torque(dead, 0 * dead, [1, 2])):
        with pytest.raises(hc.SingularityError):
            call()


def test_passive_motions_near_a_singular_split_take_the_general_path():
    """Their inertia squares the condition number of the split: digits would be lost."""
    prepared = prepare("standing_leg", **ANY_STATE)
    tick, rng, doubtful = fast_path(prepared), np.random.default_rng(0), 0
    for q, v in open_states("standing_leg", 3000):
        target = rng.normal(size=4)
        u = tick(q, v, target, 0.0, None)
        if u is None:
            doubtful += 1
        else:
            expected = general_path(prepared, q, v, target, 0.0, None)
            assert relative(u, expected) < 2e-10
    assert 5 < doubtful < 300


def test_a_call_within_a_call_is_refused():
    """From a callback, or a signal handler: the workspace of the thread is in use."""
    base, holder = mechanism("sine_gear"), []

    def phi(q):
        if holder:
            holder[0].torque([0.3, 0.6], [0.0, 0.0], [1.0])
        return [q[1] - 2.0 * np.sin(q[0])]

    mech = dataclasses.replace(base, constraints=[hc.Custom(phi, name="sine")])
    prepared = hc.PreparedInverseDynamics(mech)
    q, v = closed_states("sine_gear")[0]
    u = prepared.torque(q, v, [1.0])
    holder.append(prepared)
    with pytest.raises(hc.InputError, match="under way"):
        prepared.torque(q, v, [1.0])
    holder.clear()
    assert (prepared.torque(q, v, [1.0]) == u).all()


def test_weights_that_leave_no_digits_are_refused():
    with pytest.raises(hc.InputError, match="differ by a factor"):
        prepare("three_motors", weights=[1e-20, 1.0, 1e20])


@pytest.mark.parametrize("name", ["five_bar", "floating_leg", "weld_chain", "three_motors"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.filterwarnings("error")
def test_numbers_that_are_not_finite_never_become_a_torque(name, bad):
    """Every entry of every input: an error that names it, or a torque that it has no part in."""
    prepared = prepare(name, inconsistent="project")
    mech = prepared.mech
    q, v = closed_states(name)[0]
    good = {"q": q, "v": v, "target": np.ones(mech.nu)}
    out = np.full(mech.nu, 7.0)
    refused = 0
    for which, x in good.items():
        for i in range(x.size):
            given = {**good, which: np.where(np.arange(x.size) == i, bad, x)}
            try:
                u = prepared.torque(**given)
            except hc.InputError as error:
                assert f"{which}" in str(error)  # noqa: PT017
                refused += 1
            else:
                assert np.isfinite(u).all()
            with pytest.raises(hc.InputError, match=r"finite|norm 1"):
                prepared.torque(**{**given, "target": np.full(mech.nu, bad)}, out=out)
    assert refused >= 0.7 * (mech.nq + mech.nv + mech.nu)
    assert (out == 7.0).all()


@pytest.mark.parametrize("inconsistent", ["raise", "project"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_target_of_a_motor_that_moves_nothing_is_looked_at_too(bad, inconsistent):
    """A crank, and a motor on a joint that a coupling holds where it is."""
    model = vertical(pin.Model())
    add_body(model, 0, pin.JointModelRZ(), at(), "crank", bar(1.0))
    add_body(model, "crank", pin.JointModelRZ(), at(1.0), "held", bar(1.0))
    motors = ["crank", "held"]
    mech = hc.Mechanism(model, [hc.Coupling({"held": 1.0})], motors)
    q, v = hc.assemble(mech, [0.3, 0.0], [0.7, 0.0])
    prepared = hc.PreparedInverseDynamics(mech, inconsistent=inconsistent)
    assert np.isfinite(prepared.torque(q, v, [2.0, 0.0])).all()
    assert was_fast(prepared)
    with pytest.raises(hc.InputError, match=r"target .* must be finite"):
        prepared.torque(q, v, [2.0, bad])
    controller = hc.ComputedTorque(mech, 100.0, 20.0)
    with pytest.raises(hc.InputError, match="a_ref must be finite"):
        controller.torque(q, v, q, v, [2.0, bad])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("which", ["q_ref", "v_ref", "a_ref"])
@pytest.mark.filterwarnings("error")
def test_a_controller_names_the_reference_that_is_not_finite(which, bad):
    ctl = hc.ComputedTorque(mechanism("five_bar"), 10.0, 2.0)
    q, v = closed_states("five_bar")[0]
    for i in range(2):
        refs = {"q_ref": np.ones(2), "v_ref": np.ones(2), "a_ref": np.ones(2)}
        refs[which][i] = bad
        out = np.full(2, 7.0)
        with pytest.raises(hc.InputError, match=f"{which} must be finite"):
            ctl.torque(q, v, **refs, out=out)
        assert (out == 7.0).all()


@pytest.mark.parametrize(
    "out",
    [np.zeros(3), np.zeros(2, int), np.zeros((1, 2)), [0.0, 0.0], np.zeros(2, np.float32), "u"],
)
def test_an_unusable_out_is_refused(out):
    prepared = prepare("five_bar")
    q, v = closed_states("five_bar")[0]
    ctl = hc.ComputedTorque(prepared.mech, 1.0, 1.0, partition=prepared.partition)
    gravity = dataclasses.replace(ctl, compensation="gravity")
    zero = np.zeros(2)
    for call in (
        lambda: prepared.torque(q, v, zero, out=out),
        lambda: prepared.holding(q, out=out),
        lambda: ctl.torque(q, v, q, zero, zero, out=out),
        lambda: gravity.torque(q, v, q, zero, zero, out=out),
    ):
        with pytest.raises(hc.InputError, match="out must be"):
            call()


def test_out_takes_the_result_and_a_read_only_one_is_refused():
    prepared = prepare("five_bar")
    q, v = closed_states("five_bar")[0]
    target = np.array([1.0, 2.0])
    fresh = prepared.torque(q, v, target)
    again = prepared.torque(q, v, target)
    assert fresh is not again
    assert not np.shares_memory(fresh, again)
    out = np.zeros(4)[::2]  # any layout will do
    assert prepared.torque(q, v, target, out=out) is out
    assert (out == fresh).all()
    ctl = hc.ComputedTorque(prepared.mech, 1.0, 1.0, partition=prepared.partition)
    for law in (ctl, dataclasses.replace(ctl, compensation="gravity")):
        u = law.torque(q, v, q + 0.1, target, target)
        place = target.copy()
        assert law.torque(q, v, q + 0.1, target, place, out=place) is place  # may be an input
        assert (place == u).all()
    out.setflags(write=False)
    with pytest.raises(hc.InputError, match="read-only"):
        prepared.torque(q, v, target, out=out)


def test_nothing_is_carried_from_one_tick_to_the_next():
    """The same bits whatever was asked in between, errors included."""
    for name in ("five_bar", "floating_leg", "weld_chain", "geared_slider", "timed_arm"):
        prepared = prepare(name)
        states = closed_states(name)[:5]
        target = np.ones(prepared.mech.nu)
        first = [prepared.torque(q, v, target) for q, v in states]
        with pytest.raises(hc.InputError):
            prepared.torque(*states[0], np.full(prepared.mech.nu, np.nan))
        for (q, v), u in reversed(list(zip(states, first, strict=True))):
            assert (prepared.torque(q, v, target) == u).all()


def test_threads_have_workspaces_of_their_own():
    prepared = prepare("weld_chain")
    states = closed_states("weld_chain")[:20]
    target = np.ones(2)
    expected = [prepared.torque(q, v, target) for q, v in states]
    wrong: list[int] = []

    def work(seed: int) -> None:
        for i in np.random.default_rng(seed).integers(0, len(states), 300):
            if (prepared.torque(*states[i], target) != expected[i]).any():
                wrong.append(int(i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_it_is_a_frozen_value_that_copies():
    prepared = prepare("three_motors", weights=[1.0, 2.0, 3.0], inconsistent="project")
    q, v = closed_states("three_motors")[0]
    u = prepared.torque(q, v, np.ones(3))
    for twin in (pickle.loads(pickle.dumps(prepared)), copy.deepcopy(prepared)):
        assert (twin.torque(q, v, np.ones(3)) == u).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        prepared.weights = None


def test_bad_input_is_refused():
    mech, q = mechanism("five_bar"), mechanism("five_bar").reference
    bare = dataclasses.replace(mech, actuated=())
    with pytest.raises(hc.NotActuatedError, match="no motors"):
        hc.PreparedInverseDynamics(bare)
    with pytest.raises(hc.InputError, match="Mechanism"):
        hc.PreparedInverseDynamics(mech.model)
    with pytest.raises(hc.InputError, match="inconsistent"):
        hc.PreparedInverseDynamics(mech, inconsistent="ignore")
    with pytest.raises(hc.InputError, match="another mechanism"):
        hc.PreparedInverseDynamics(mech, shared_partition("four_bar"))
    with pytest.raises(hc.InputError, match="weights"):
        hc.PreparedInverseDynamics(mech, weights=[1.0, -1.0])
    prepared = prepare("five_bar")
    zero = np.zeros(4)
    for args, word in (
        ((q[:3], zero, [0.0, 0.0]), "q must have shape"),
        ((q, [0.0], [0.0, 0.0]), "v must have shape"),
        ((q, zero, [0.0]), "target must have shape"),
        ((q, zero, "ab"), "target must be an array"),
    ):
        with pytest.raises(hc.InputError, match=word):
            prepared.torque(*args)
    with pytest.raises(hc.InputError, match="efforts"):
        prepared.torque(q, zero, [0.0, 0.0], efforts=[1.0])
    for t in (np.nan, "now"):
        with pytest.raises(hc.InputError, match="t "):
            prepared.torque(q, zero, [0.0, 0.0], t)
    leg = prepare("floating_leg")
    q, v = closed_states("floating_leg")[0]
    with pytest.raises(hc.InputError, match="norm 1"):
        leg.torque(np.where(np.arange(q.size) == 3, 0.9, q), v, np.ones(3))
    rounded = q.astype(np.float32)
    assert relative(leg.torque(rounded, v, np.ones(3)), leg.torque(q, v, np.ones(3))) < 1e-4
