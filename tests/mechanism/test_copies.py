"""A mechanism is a private copy, and copies of it are as good."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from compare import ROUNDING, assert_same, closed_state, numbers, rows_at, unlike
from zoo import ZOO, at, five_bar, floating_leg, four_bar

import holoctl as hc

# ----------------------------------------------------------------------------------- a private copy


def test_changing_the_given_model_changes_nothing():
    model = four_bar().model.copy()
    mech = dataclasses.replace(four_bar(), model=model)
    state = closed_state(mech)
    before = numbers(mech, *state)
    model.gravity.linear = np.zeros(3)
    model.inertias[1] = pin.Inertia.Random()
    model.jointPlacements[2] = pin.SE3.Random()
    model.armature = np.ones(3)
    model.names[1] = "renamed"
    assert_same(numbers(mech, *state), before)
    assert mech.coordinate_names == ("crank", "coupler", "rocker")


def test_changing_the_given_arrays_and_lists_changes_nothing():
    one = four_bar()
    B, reference, loops = np.eye(3)[:, :1], np.array(one.reference), [*one.constraints]
    mech = hc.Mechanism(one.model, loops, actuation=B, reference=reference)
    state = closed_state(mech)
    before = numbers(mech, *state)
    B[:] = 7.0
    reference[:] = 7.0
    loops.clear()
    assert_same(numbers(mech, *state), before)


def test_changing_the_given_coefficients_changes_nothing():
    coefficients = {"crank": 1.0, "rocker": -2.0}
    mech = hc.Mechanism(four_bar().model, [hc.Coupling(coefficients, name="gear")])
    coefficients["crank"] = 5.0
    for m in (mech, pickle.loads(pickle.dumps(mech)), dataclasses.replace(mech)):
        assert rows_at(m, m.reference, np.zeros(3))[2].tolist() == [[1.0, 0.0, -2.0]]


def test_changing_the_placement_given_to_a_closure_changes_nothing():
    """Neither in the mechanism nor in the copies and variants made of it later."""
    place = at(0.5)
    loop = hc.Closure(("coupler", place), ("rocker", at(0.5)), axes="x y", name="pin")
    mech = dataclasses.replace(four_bar(), constraints=[loop])
    state = closed_state(mech)
    before = numbers(mech, *state)
    place.translation = np.array([9.0, 9.0, 9.0])
    for m in (mech, pickle.loads(pickle.dumps(mech)), dataclasses.replace(mech)):
        assert_same(numbers(m, *state), before)


def test_changing_a_returned_configuration_changes_nothing():
    mech = four_bar()
    q, _ = hc.assemble(mech)
    before = q.copy()
    q[:] = 0.0
    assert np.array_equal(hc.assemble(mech)[0], before)


def test_it_is_frozen():
    mech = four_bar()
    for f in dataclasses.fields(mech):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mech, f.name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del mech.model


@pytest.mark.parametrize("array", ["B", "reference", "row_scale", "column_scale"])
def test_its_arrays_are_not_writable(array):
    for mech in (four_bar(), hc.Mechanism(four_bar().model, actuation=np.eye(3))):
        for m in (mech, pickle.loads(pickle.dumps(mech)), copy.deepcopy(mech)):
            with pytest.raises(ValueError, match="read-only"):
                getattr(m, array)[...] = 1.0


def test_results_are_not_views_of_the_workspace():
    """A later call at another state must not reach into an earlier result."""
    mech = floating_leg()
    first, second = closed_state(mech, 1), closed_state(mech, 2)
    P = hc.project(mech, *first)
    inverse = hc.inverse_dynamics(mech, *first, np.ones(3), projection=P)
    forward = hc.forward_dynamics(mech, *first, mech.B @ inverse.u, projection=P)
    held = [
        P.gamma, P.bias, P.q, P.v, P.rows.jacobian, P.rows.error, P.rows.drift, P.kinematics.J,
        *(M.homogeneous for M in P.kinematics.placements),
        inverse.u, inverse.a, inverse.multipliers, forward.a, forward.multipliers,
    ]  # fmt: skip
    before = copy.deepcopy(held)
    numbers(mech, *second)
    assert all(np.array_equal(x, y) for x, y in zip(held, before, strict=True))
    now = [M.homogeneous for M in P.kinematics.placements]
    then = [M.homogeneous for M in hc.project(mech, *first).kinematics.placements]
    assert np.array_equal(now, then)


# ---------------------------------------------------------------------------- pickle, copy, replace


COPIES = {
    "pickle": lambda mech: pickle.loads(pickle.dumps(mech)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "replace": dataclasses.replace,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", ZOO)
def test_a_copy_gives_the_same_numbers(name, how):
    mech = ZOO[name]()
    state = closed_state(mech)
    twin = COPIES[how](mech)
    assert twin is not mech
    assert repr(twin) == repr(mech)
    assert twin.name == mech.name
    assert twin.coordinate_names == mech.coordinate_names
    assert twin.constraint_names == mech.constraint_names
    assert twin.actuated == mech.actuated
    assert twin.row_names == mech.row_names
    assert_same(numbers(twin, *state), numbers(mech, *state))


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_owns_its_model(how):
    mech = four_bar()
    state = closed_state(mech)
    before = numbers(mech, *state)
    COPIES[how](mech).model.gravity.linear = np.zeros(3)
    assert_same(numbers(mech, *state), before)


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_keeps_a_general_actuation(how):
    B = np.array([[1.0, 0.5], [0.0, 2.0], [0.0, -1.0]])
    twin = COPIES[how](hc.Mechanism(four_bar().model, actuation=B))
    assert np.array_equal(twin.B, B)
    assert twin.actuator_names == ("u[0]", "u[1]")


def test_results_pickle_and_copy():
    mech = floating_leg()
    q, v = closed_state(mech)
    part = hc.partition(mech, q)
    P = hc.project(mech, q, v, partition=part)
    inverse = hc.inverse_dynamics(mech, q, v, np.ones(3), projection=P)
    forward = hc.forward_dynamics(mech, q, v, mech.B @ inverse.u, projection=P)
    run = hc.simulate(mech, lambda t, q, v: inverse.u, q, v, 0.002)
    for result in (part, P, inverse, inverse.certificate, forward, run):
        for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert type(twin) is type(result)
            for f in dataclasses.fields(result):
                value = getattr(result, f.name)
                if isinstance(value, np.ndarray | float | int | str):
                    assert np.array_equal(getattr(twin, f.name), value), f.name


def test_a_pickled_projection_can_be_shared():
    mech = five_bar()
    q, v = closed_state(mech)
    P = pickle.loads(pickle.dumps(hc.project(mech, q, v)))
    u = hc.inverse_dynamics(P.mechanism, q, v, [1.0, 2.0], projection=P).u
    assert unlike(u, hc.inverse_dynamics(mech, q, v, [1.0, 2.0]).u) < ROUNDING


def test_a_pickled_controller_gives_the_same_torque():
    mech = five_bar()
    q, v = closed_state(mech)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    u = ctl.torque(q, v, [2.0, 1.0], [0.0, 0.0], [1.0, -1.0])
    for twin in (pickle.loads(pickle.dumps(ctl)), copy.deepcopy(ctl)):
        assert np.array_equal(twin.torque(q, v, [2.0, 1.0], [0.0, 0.0], [1.0, -1.0]), u)


def test_replace_the_model():
    """Twice the mass at the same inertia per mass: twice the torque, nothing else changes."""
    mech = four_bar()
    heavy = mech.model.copy()
    for j in range(1, heavy.njoints):
        body = heavy.inertias[j]
        heavy.inertias[j] = pin.Inertia(2.0 * body.mass, body.lever, 2.0 * body.inertia)
    twin = dataclasses.replace(mech, model=heavy)
    q, v = closed_state(mech)
    one, two = numbers(mech, q, v), numbers(twin, q, v)
    assert np.abs(one["u"]).min() > 0.1
    assert unlike(two.pop("u"), 2.0 * one.pop("u")) < ROUNDING
    assert unlike(two.pop("multipliers"), 2.0 * one.pop("multipliers")) < ROUNDING
    assert all(unlike(two[k], one[k]) < ROUNDING for k in one)


def test_replace_motors_constraints_and_name():
    mech = four_bar()
    assert dataclasses.replace(mech, actuated=["rocker"]).B[:, 0].tolist() == [0.0, 0.0, 1.0]
    assert dataclasses.replace(mech, constraints=[]).row_scale.shape == (0,)
    assert dataclasses.replace(mech, name="other").name == "other"
    general = dataclasses.replace(mech, actuated=[], actuation=np.eye(3))
    assert general.nu == 3
    back = dataclasses.replace(general, actuation=None, actuated=["crank"])
    assert np.array_equal(back.B, mech.B)


def test_replace_checks_again():
    with pytest.raises(hc.InputError, match="no_such_motor"):
        dataclasses.replace(four_bar(), actuated=["no_such_motor"])
    with pytest.raises(hc.InputError, match="reference"):
        dataclasses.replace(four_bar(), model=floating_leg().model, actuated=[], constraints=[])
