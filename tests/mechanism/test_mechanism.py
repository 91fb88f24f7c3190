"""The Mechanism: what it names, scales, shares between threads, and refuses."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
import pytest
from compare import ROUNDING, assert_same, closed_state, numbers, rows_at, unlike
from zoo import ZOO, add_body, at, bar, five_bar, floating_leg, four_bar, one_of_each, two_hinges

import holoctl as hc


def test_coordinate_names():
    mech = hc.Mechanism(one_of_each())
    assert mech.coordinate_names == (
        "base[0]", "base[1]", "base[2]", "base[3]", "base[4]", "base[5]", "hinge",
        "ball[0]", "ball[1]", "ball[2]", "wheel",
        "wrist[0]", "wrist[1]", "wrist[2]", "wrist[3]", "wrist[4]",
        "sled[0]", "sled[1]", "sled[2]",
    )  # fmt: skip
    assert (mech.nq, mech.nv, mech.nu) == (7 + 1 + 4 + 2 + 6 + 4, 19, 0)
    assert len(mech.column_scale) == 19


def test_translations_have_the_length_for_their_column_scale():
    mech = hc.Mechanism(one_of_each())
    moved = {n for n, c in zip(mech.coordinate_names, mech.column_scale, strict=True) if c != 1.0}
    assert moved == {"base[0]", "base[1]", "base[2]", "wrist[4]", "sled[0]", "sled[1]"}


def test_motors_on_coordinates_of_composite_joints():
    """B' v are the rates of the motors, in the order in which they were named."""
    motors = ["sled[1]", "wrist[0]", "base[2]", "wheel"]
    mech = hc.Mechanism(one_of_each(), actuated=motors)
    assert mech.actuator_names == tuple(motors)
    assert (mech.B.T @ np.arange(19.0)).tolist() == [17.0, 11.0, 2.0, 10.0]


@pytest.mark.parametrize("motors", [["left", "right"], ["right", "left"]])
def test_columns_of_b_and_entries_of_u_follow_actuated(motors):
    mech = dataclasses.replace(five_bar(), actuated=motors)
    q, v = closed_state(mech)
    by_name = {"left": 3.0, "right": -1.0}
    u = hc.inverse_dynamics(mech, q, v, [by_name[m] for m in motors]).u
    usual = hc.inverse_dynamics(five_bar(), q, v, [3.0, -1.0]).u
    assert unlike(u, usual[[["left", "right"].index(m) for m in motors]]) < ROUNDING
    assert abs(u[0] - u[1]) > 0.1
    for column, motor in enumerate(motors):
        assert mech.B[mech.coordinate_names.index(motor), column] == 1.0
    assert mech.B.sum() == 2.0


def test_iterators_are_as_good_as_lists():
    mech = four_bar()
    loops, motors = iter(mech.constraints), (name for name in ("rocker", "crank"))
    twin = hc.Mechanism(mech.model, loops, motors, reference=iter_free(mech.reference))
    assert twin.actuated == ("rocker", "crank")
    assert twin.constraint_names == ("pin",)


def iter_free(x):
    """A tuple: any array_like will do for a configuration."""
    return tuple(float(value) for value in x)


def test_general_actuation():
    """A differential in front of two motors: the same efforts, other inputs."""
    mech = five_bar()
    mix = np.array([[1.0, 1.0], [0.5, -0.5]])
    mixed = hc.Mechanism(mech.model, mech.constraints, actuation=mech.B @ mix)
    q, v = closed_state(mech)
    direct = hc.inverse_dynamics(mech, q, v, [1.0, 2.0])
    through = hc.inverse_dynamics(mixed, q, v, mix.T @ [1.0, 2.0])
    assert through.certificate.ok
    assert unlike(through.a, direct.a) < 1e-10
    assert unlike(mix @ through.u, direct.u) < 1e-10
    assert np.abs(direct.u).min() > 0.1


def test_no_motors():
    mech = hc.Mechanism(four_bar().model)
    assert mech.B.shape == (3, 0)
    assert mech.actuated == mech.actuator_names == mech.constraints == ()


def test_a_mechanism_without_constraints_is_the_tree():
    model = floating_leg().model
    mech = hc.Mechanism(model, actuation=np.eye(model.nv))
    rng = np.random.default_rng(1)
    q, v, a = closed_state(mech)[0], rng.normal(size=14), rng.normal(size=14)
    result = hc.inverse_dynamics(mech, q, v, a, coordinates="all")
    assert unlike(result.u, pin.rnea(model, model.createData(), q, v, a)) < 1e-10
    assert unlike(hc.forward_dynamics(mech, q, v, result.u).a, a) < 1e-9


def test_name_is_the_given_one_or_that_of_the_model():
    model = two_hinges()
    model.name = "hinges"
    assert hc.Mechanism(model).name == "hinges"
    assert hc.Mechanism(model, name="pair").name == "pair"
    assert "pair" in repr(hc.Mechanism(model, name="pair"))


def test_repr_tells_the_sizes():
    text = repr(ZOO["geared_slider"]())
    for part in ("geared_slider", "5 coordinates", "3 constraints", "4 rows", "1 motor"):
        assert part in text


def test_reference_is_neutral_unless_given():
    model = floating_leg().model
    assert np.array_equal(hc.Mechanism(model).reference, pin.neutral(model))
    assert np.array_equal(hc.Mechanism(four_bar().model, reference=[1, 2, 3]).reference, [1, 2, 3])


# --------------------------------------------------------------------- names of constraints


def test_constraints_with_the_same_name_are_refused():
    loops = [hc.Closure("left", "right", axes="x"), hc.Closure("left", "right", axes="y")]
    with pytest.raises(hc.InputError, match=r"'left-right'.*name="):
        hc.Mechanism(two_hinges(), loops)


def test_a_closure_and_a_coupling_with_the_same_name_are_refused():
    both = [
        hc.Closure("left", "right", axes="x", name="tie"),
        hc.Coupling({"left": 1.0, "right": 1.0}, name="tie"),
    ]
    with pytest.raises(hc.InputError, match="'tie'"):
        hc.Mechanism(two_hinges(), both)


def test_the_name_of_a_constraint_is_the_given_one_or_that_of_what_it_ties():
    loops = [
        hc.Closure("left", ("right", at(0.1)), axes="x"),
        hc.Closure("left", "right", axes="y", name="second"),
        hc.Coupling({"right": 1.0, "left": 2.0}),
    ]
    mech = hc.Mechanism(two_hinges(), loops)
    assert mech.constraint_names == ("left-right", "second", "right-left")
    assert mech.row_names == ("left-right.x", "second.y", "right-left.sum")


def test_one_description_serves_several_mechanisms():
    loop = four_bar().constraints[0]
    one, two = four_bar(), dataclasses.replace(four_bar(), constraints=[loop])
    q, v = closed_state(one)
    assert_same(numbers(one, q, v), numbers(two, q, v))


# ------------------------------------------------------------------------------------ scales


def rack_slider(unit):
    """A slider-crank with a rack on the slider's crank; `unit` is the length of a metre."""
    model = pin.Model()
    add_body(model, 0, pin.JointModelRZ(), at(), "crank", bar(0.2 * unit))
    add_body(model, "crank", pin.JointModelRZ(), at(0.2 * unit), "rod", bar(0.5 * unit))
    add_body(model, 0, pin.JointModelPX(), at(), "slider", bar(0.1 * unit))
    add_body(model, 0, pin.JointModelPX(), at(0, 0.4 * unit), "rack", bar(0.1 * unit))
    pin_joint = hc.Closure(("rod", at(0.5 * unit)), "slider", joint="revolute", name="pin")
    rack = hc.Coupling({"rack": 1.0, "crank": -0.05 * unit}, offset=0.01 * unit, name="rack")
    return hc.Mechanism(
        model, [pin_joint, rack], ["crank"], reference=[1.0, -1.4, 0.6 * unit, 0.1 * unit]
    )


def scaled_rows(mech, q, v):
    """All rows as pure numbers."""
    error, rate, jacobian, drift = rows_at(mech, q, v)
    r = mech.row_scale
    return r * error, r * rate, r[:, None] * jacobian * mech.column_scale, r * drift


@pytest.mark.parametrize(
    ("build", "lengths"),
    [
        (lambda unit: four_bar(lengths=np.array([0.2, 0.5, 0.4, 0.5]) * unit), [1, 1, 1]),
        (lambda unit: four_bar("revolute", np.array([0.2, 0.5, 0.4, 0.5]) * unit), [1, 1, 1]),
        (rack_slider, [1, 1, 1000, 1000]),
    ],
    ids=["four_bar", "four_bar_revolute", "rack_slider"],
)
def test_scaled_rows_are_the_same_in_metres_and_millimetres(build, lengths):
    metres, millimetres = build(1.0), build(1000.0)
    rng = np.random.default_rng(7)
    lengths = np.array(lengths, dtype=float)
    assert unlike(millimetres.column_scale, metres.column_scale * lengths) < ROUNDING
    for _ in range(3):
        q, v = metres.reference + 0.3 * rng.normal(size=metres.nq), rng.normal(size=metres.nv)
        one, two = scaled_rows(metres, q, v), scaled_rows(millimetres, q * lengths, v * lengths)
        for x, y in zip(one, two, strict=True):
            assert unlike(y, x) < ROUNDING
            assert np.abs(x).max() > 1e-3


def test_decisions_are_the_same_in_metres_and_millimetres():
    one, two = (hc.partition(m, hc.assemble(m)[0]) for m in (rack_slider(1.0), rack_slider(1e3)))
    assert np.array_equal(one.rows, two.rows)
    assert np.array_equal(one.independent, two.independent)
    assert one.rank == two.rank == 3
    assert 0.5 < one.condition / two.condition < 2.0  # LAPACK estimates it


@pytest.mark.parametrize("name", ZOO)
def test_scaled_jacobians_are_of_order_one(name):
    mech = ZOO[name]()
    sizes = np.abs(scaled_rows(mech, *closed_state(mech))[2]).max(axis=1)
    sizes = sizes[sizes > 0.0]  # out-of-plane rows of planar mechanisms are zero
    assert sizes.size > 0
    assert sizes.min() > 0.05
    assert sizes.max() < 20.0


# ----------------------------------------------------------------------------------- threads


def test_two_threads_get_the_numbers_of_one():
    mech = floating_leg()
    states = [closed_state(mech, seed) for seed in range(4)]
    part = hc.partition(mech, states[0][0])

    def job(state):
        out = []
        for _ in range(20):
            P = hc.project(mech, *state, partition=part)
            inverse = hc.inverse_dynamics(mech, *state, [1.0, -2.0, 3.0], projection=P)
            forward = hc.forward_dynamics(mech, *state, mech.B @ inverse.u, projection=P)
            out.append(np.concatenate([inverse.u, inverse.multipliers, forward.a, P.bias]))
        return np.array(out)

    sequential = [job(state) for state in states]
    assert not np.allclose(sequential[0], sequential[1])
    with ThreadPoolExecutor(2) as pool:
        threaded = list(pool.map(job, states))
    assert np.array_equal(sequential, threaded)


def test_one_controller_in_two_threads():
    mech = five_bar()
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    states = [closed_state(mech, seed) for seed in range(4)]

    def job(state):
        return [ctl.torque(*state, [2.0, 1.0], [0.0, 0.0], [1.0, -1.0]) for _ in range(50)]

    sequential = [job(state) for state in states]
    with ThreadPoolExecutor(2) as pool:
        assert np.array_equal(list(pool.map(job, states)), sequential)


# ------------------------------------------------------------------------- one coordinate


def one_slider():
    """The smallest mechanism: one mass on a rail, tied to nothing."""
    model = pin.Model()
    add_body(model, 0, pin.JointModelPX(), at(), "slider", bar(0.3, 2.0))
    return model


def test_a_mechanism_of_one_coordinate():
    mech = hc.Mechanism(one_slider(), actuated=["slider"])
    assert mech.column_scale.shape == (1,)
    assert unlike(hc.inverse_dynamics(mech, [0.0], [1.0], [3.0]).u, [6.0]) < ROUNDING
    assert unlike(hc.forward_dynamics(mech, [0.0], [1.0], [6.0]).a, [3.0]) < ROUNDING


def test_a_single_joint_may_be_closed_to_the_world():
    """One hinge, tied to the world at an angle: rows are evaluated, assembly finds the angle."""
    model = pin.Model()
    add_body(model, 0, pin.JointModelRZ(), at(), "hinge", bar(0.3))
    post = ("universe", at(0.3 * np.cos(0.4), 0.3 * np.sin(0.4)))
    mech = hc.Mechanism(model, [hc.Closure(post, ("hinge", at(0.3)), axes="x y")])
    q, _ = hc.assemble(mech, [0.1])
    assert unlike(q, [0.4]) < ROUNDING
    assert hc.partition(mech, q).rank == 1
    a = hc.forward_dynamics(mech, q, [0.0], [5.0]).a
    assert np.abs(a).max() < ROUNDING


def test_a_single_joint_may_bear_an_external_force():
    mech = hc.Mechanism(one_slider(), actuated=["slider"])
    result = hc.forward_dynamics(mech, [0.0], [0.0], [0.0], f_ext={"slider": [6.0, 0, 0, 0, 0, 0]})
    assert unlike(result.a, [3.0]) < ROUNDING


def test_two_coordinates_of_one_name_are_refused():
    m = pin.Model()
    body = pin.Inertia(1.0, np.zeros(3), np.eye(3))
    for joint, name in ((pin.JointModelSpherical(), "b"), (pin.JointModelRX(), "b[0]")):
        j = m.addJoint(0, joint, pin.SE3.Identity(), name)
        m.appendBodyToJoint(j, body, pin.SE3.Identity())
    with pytest.raises(hc.InputError, match=r"used twice: 'b\[0\]'"):
        hc.Mechanism(m)


def test_a_placement_may_be_given_in_a_body_whose_joint_has_other_axes():
    """A body of a linkage need not have the axes of the joint that carries it."""
    turned = pin.SE3(pin.utils.rotate("x", 0.7), np.array([0.1, 0.0, 0.2]))
    link = hc.Linkage("foot")
    link.add_body("foot", 1.0, (0, 0, 0), np.eye(3) * 0.1)
    link.add_joint("ankle", "free", "universe", "foot", None, turned)
    mech = link.mechanism()
    toe = pin.SE3(np.eye(3), np.array([0.14, 0.0, -0.08]))
    on_foot = hc.Contact(("foot", toe), ground=(0, 0, 0), name="toe")
    on_joint = hc.Contact(("ankle", turned.inverse() * toe), ground=(0, 0, 0), name="toe")
    q = pin.randomConfiguration(mech.model, -np.ones(7), np.ones(7))
    rows = [hc.terms(mech.with_constraints(c), q, np.arange(6.0)).rows for c in (on_foot, on_joint)]
    np.testing.assert_allclose(rows[0].error, rows[1].error, atol=1e-14)
    np.testing.assert_allclose(rows[0].jacobian, rows[1].jacobian, atol=1e-14)
    with pytest.raises(hc.InputError, match="did you mean 'foot'"):
        mech.with_constraints(hc.Contact(("fot", toe)))
    with pytest.raises(hc.InputError, match="3 is no name"):
        mech.with_constraints(hc.Contact((3, toe)))


def test_a_cut_joint_has_no_coordinate_to_lock():
    link = hc.Linkage("pair")
    for name in ("a", "b"):
        link.add_body(name, 1.0, (0.1, 0, 0), 0.1 * np.eye(3))
    place = pin.SE3(np.eye(3), np.array([0.2, 0.0, 0.0]))
    link.add_joint("j1", "revolute", "universe", "a")
    link.add_joint("j2", "revolute", "a", "b", place)
    link.add_joint("j3", "revolute", "b", "universe", place)
    mech = link.mechanism(["j3"], reference={"j2": np.pi})
    with pytest.raises(hc.InputError, match=r"'j3' is a constraint of pair .a joint that is cut"):
        hc.assemble(mech, locked=["j3"])
