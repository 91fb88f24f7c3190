"""What forces refuse, and how they say so."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from support import together
from zoo import at, five_bar, four_bar, held_foot

import holoctl as hc

MADE = {
    "negative viscous": (
        lambda: hc.JointFriction(viscous=-0.1),
        r"'friction': viscous must not be negative; got -0.1",
    ),
    "negative of a joint": (
        lambda: hc.JointFriction(coulomb={"a": 1.0, "b": -1.0}),
        "coulomb of 'b' must not be negative",
    ),
    "not finite": (lambda: hc.JointFriction(viscous=float("nan")), "viscous must be finite"),
    "a word": (lambda: hc.JointFriction(viscous="much"), "viscous must be a number"),
    "a list": (lambda: hc.JointFriction(viscous=[1.0, 2.0]), "viscous must be a number"),
    "transition": (lambda: hc.JointFriction(transition=0.0), "transition must be above zero"),
    "stribeck": (
        lambda: hc.JointFriction(stribeck=1.0),
        r"stribeck must be a pair \(peak, speed\)",
    ),
    "stribeck speed": (lambda: hc.JointFriction(stribeck=(1.0, 0.0)), "speed must be above zero"),
    "stiffness": (lambda: hc.JointSpring("a", -1.0), "stiffness must not be negative"),
    "damping": (lambda: hc.JointSpring("a", 1.0, damping=-1.0), "damping must not be negative"),
    "no joint": (lambda: hc.JointSpring(3, 1.0), "joint must be the name of a joint"),
    "rest": (lambda: hc.JointSpring("a", 1.0, rest=[1.0, 2.0]), r"rest .*shape \(3,\)"),
    "rest is nan": (lambda: hc.JointSpring("a", 1.0, rest=float("inf")), "rest must be finite"),
    "length": (lambda: hc.Spring("a", "b", 1.0, -0.2), "length must not be negative"),
    "unilateral": (
        lambda: hc.Spring("a", "b", 1.0, 0.2, unilateral="yes"),
        "unilateral must be True or False",
    ),
    "no function": (lambda: hc.CustomForce(3.0), "function must be a function"),
    "no casadi": (lambda: hc.CustomForce(lambda q, v, t: q, casadi=1), "casadi must be a function"),
    "time first": (
        lambda: hc.CustomForce(lambda t, q, v: q),
        r"takes \(t, q, v\), but it is called with \(q, v, t\), the time last",
    ),
    "two arguments": (lambda: hc.CustomForce(lambda q, v: q), r"must take \(q, v, t\); it takes"),
}


@pytest.mark.parametrize("case", MADE)
def test_descriptions(case):
    make, message = MADE[case]
    with pytest.raises(hc.InputError, match=message):
        make()


def nan(q, v, t):
    return np.full(v.size, np.nan)


def short(q, v, t):
    return np.zeros(v.size + 1)


BOUND = {
    "unknown joint": (
        lambda: hc.JointFriction(viscous={"crnk": 1.0}),
        r"there is no joint called 'crnk' \(did you mean 'crank'\?\)",
    ),
    "unknown spring": (lambda: hc.JointSpring("nowhere", 1.0), "no joint called 'nowhere'"),
    "closure by axes": (
        lambda: hc.JointFriction(viscous={"pin": 1.0}),
        "is a closure by axes, which is not a joint",
    ),
    "peak": (
        lambda: hc.JointFriction(coulomb=0.5, stribeck=(0.3, 0.1)),
        "peak of stribeck must be at least the Coulomb friction",
    ),
    "one body": (lambda: hc.Spring("crank", "crank", 1.0, 0.1), "fixed to the same body"),
    "unknown frame": (lambda: hc.Spring("crank", "moon", 1.0, 0.1), "called 'moon'"),
    "coincident": (
        lambda: hc.Spring("crank", "universe", 1.0, 0.1),
        "its ends coincide at the reference configuration",
    ),
    "coincident damper": (
        lambda: hc.Spring("crank", "universe", 1.0, 0.0, damping=1.0),
        "its ends coincide at the reference configuration",
    ),
    "not finite": (lambda: hc.CustomForce(nan), "'nan' must return finite numbers"),
    "wrong shape": (lambda: hc.CustomForce(short), r"'short' must return shape"),
    "no numbers": (lambda: hc.CustomForce(lambda q, v, t: None), "must be an array of real numb"),
    "not a force": (lambda: 3.0, "3.0 is not a force"),
    "a class": (lambda: hc.Spring, "is not a force"),
    "a constraint": (
        lambda: hc.Closure("crank", "rocker", axes="x"),
        "is a constraint; give it among constraints=",
    ),
}


@pytest.mark.parametrize("case", BOUND)
def test_forces_on_a_mechanism(case):
    make, message = BOUND[case]
    mech = four_bar()
    with pytest.raises(hc.InputError, match=message):
        mech.with_forces([make()])


def test_names_are_one_set():
    mech = four_bar()
    name = mech.constraint_names[0]
    with pytest.raises(hc.InputError, match="names must differ"):
        mech.with_forces([hc.JointFriction(name=name)])
    with pytest.raises(hc.InputError, match="names must differ"):
        mech.with_forces([hc.JointFriction(), hc.JointFriction()])
    with pytest.raises(hc.InputError, match="name of a force must be text"):
        mech.with_forces([hc.JointFriction(name=3)])
    with pytest.raises(hc.InputError, match="forces must be a list"):
        mech.with_forces(3)
    again = mech.with_forces([hc.JointFriction()]).with_forces([hc.JointFriction(name="more")])
    assert again.force_names == ("friction", "more")
    assert again.without("friction").force_names == ("more",)
    assert "2 forces" in repr(again)


def test_a_closure_by_axes_is_no_joint_when_it_is_off():
    mech = four_bar().with_enabled(pin=False)
    with pytest.raises(hc.InputError, match="is a closure by axes, which is not a joint"):
        mech.with_forces([hc.JointFriction(viscous={"pin": 1.0})])


def test_an_error_in_a_function_names_the_force():
    def wind(q, v, t):
        return q / 0.0 if t > 1.0 else 1 // int(t > 1.0)

    with pytest.raises(ZeroDivisionError) as caught:
        four_bar().with_forces([hc.CustomForce(wind)])
    assert caught.value.__notes__ == ["in the function of CustomForce 'wind'"]


def test_one_coordinate_is_named_once():
    mech = held_foot()
    joint = mech.model.names[1]
    with pytest.raises(hc.InputError, match="name the same coordinate"):
        mech.with_forces([hc.JointFriction(viscous={joint: 1.0, f"{joint}[0]": 2.0})])


def test_a_weld_has_no_friction():
    mech = five_bar()
    weld = hc.Closure(mech.model.names[1], ("universe", at(0.0)), "weld", name="weld")
    with pytest.raises(hc.InputError, match="'weld' is a weld, in which nothing moves"):
        mech.with_constraints(weld).with_forces([hc.JointFriction(viscous={"weld": 1.0})])


def test_a_spring_is_on_one_coordinate():
    mech = held_foot()
    joint = mech.model.names[1]  # a free joint
    with pytest.raises(hc.InputError, match="has 6 coordinates; a spring is on one"):
        mech.with_forces([hc.JointSpring(joint, 1.0)])
    with pytest.raises(
        hc.InputError, match="has 1 coordinate, which is no number in q; a spring is on one"
    ):
        mech.with_forces([hc.JointSpring(f"{joint}[0]", 1.0)])  # its value is no number in q


def carriage():
    model = pin.Model()
    slide = model.addJoint(0, pin.JointModelPX(), at(), "slide")
    model.appendBodyToJoint(slide, pin.Inertia(1.0, np.zeros(3), np.zeros((3, 3))), at())
    spring = hc.Spring("universe", "slide", 100.0, 0.5, name="coil")
    return hc.Mechanism(model, forces=[spring], reference=[0.6], actuated=["slide"])


def test_ends_that_meet_on_the_way_are_an_error_on_every_path():
    mech = carriage()
    part = hc.partition(mech, [0.6])
    inverse = hc.PreparedInverseDynamics(mech, part)
    forward = hc.PreparedForwardDynamics(mech, part)
    meet = "'coil': its ends coincide"
    for q in ([0.0], [1e-8]):
        for call in (
            lambda q=q: hc.terms(mech, q, [1.0]).F,
            lambda q=q: hc.inverse_dynamics(mech, q, [1.0], [0.0], partition=part),
            lambda q=q: hc.forward_dynamics(mech, q, [1.0], [0.0], partition=part),
            lambda q=q: inverse.torque(q, [1.0], [0.0]),
            lambda q=q: inverse.holding(q),
            lambda q=q: forward.acceleration(q, [1.0], [0.0]),
            lambda q=q: forward.at(q, [1.0])([0.0]),
            lambda q=q: hc.power(mech, q, [1.0], [0.0]),
        ):
            with pytest.raises(hc.SingularityError, match=meet):
                call()
    assert inverse.torque([1e-5], [1.0], [0.0])[0] == pytest.approx(-100.0 * 0.5, rel=1e-4)


def test_a_spring_without_length_goes_through_zero():
    mech = carriage()
    mech = mech.without("coil").with_forces([hc.Spring("universe", "slide", 100.0, 0.0)])
    forward = hc.PreparedForwardDynamics(mech, hc.partition(mech, [0.6]))
    for x in (1e-3, 0.0, -1e-9, -0.2):
        assert forward.acceleration([x], [1.0], [0.0])[0] == pytest.approx(-100.0 * x)
        assert hc.forward_dynamics(mech, [x], [1.0], [0.0]).a[0] == pytest.approx(-100.0 * x)


@pytest.mark.parametrize("argument", ["f_ext", "efforts"])
def test_loads_of_a_simulation(argument):
    mech = carriage()

    def quiet(t, q, v):
        return np.zeros(1)

    def run(load):
        return hc.simulate(mech, quiet, [0.6], [0.0], 0.01, **together(**{argument: load}))

    with pytest.raises(hc.InputError, match=rf"{argument} must be a function \(t, q, v\)"):
        run(np.zeros(1))
    wrong = {"moon": np.zeros(6)} if argument == "f_ext" else np.zeros(3)
    with pytest.raises(hc.InputError):
        run(lambda t, q, v: wrong)
    load = {"slide": np.full(6, np.nan)} if argument == "f_ext" else [np.nan]
    with pytest.raises(hc.InputError, match="finite"):
        run(lambda t, q, v: load)


def test_where_friction_is_compensated_is_one_of_two():
    with pytest.raises(hc.InputError, match="friction_at must be one of 'reference', 'measured'"):
        hc.ComputedTorque(carriage(), 1.0, 1.0, friction_at="desired")


def test_energy_and_power_beyond_floats():
    mech = five_bar().with_forces([hc.JointFriction(viscous=0.1)])
    q, far = mech.reference, np.full(mech.nv, 1e200)
    with pytest.raises(hc.InputError, match="the energy is not finite"):
        hc.energy(mech, q, far)
    with pytest.raises(hc.InputError, match="the power is not finite"):
        hc.power(mech, q, far, np.zeros(mech.nu))
