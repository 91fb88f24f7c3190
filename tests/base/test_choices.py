"""Names, lists and choices that are none are refused, and the valid ones told."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import KINDS, closing, refused, with_motors
from zoo import at, five_bar, four_bar

import holoctl as hc

# -------------------------------------------------------------------------------- names and choices


COORDINATES = ("'crank'", "'coupler'", "'rocker'")


def coupled(s, name):
    return hc.Mechanism(s.mech.model, [hc.Coupling({name: 1.0}, name="gear")])


NAMES = {
    "Mechanism: actuated": (lambda s, x: with_motors(s.mech, x), COORDINATES),
    "Closure: a": (lambda s, x: closing(s, x, "crank"), ("'extra'", "'universe'", *COORDINATES)),
    "Closure: b": (lambda s, x: closing(s, "crank", x), ("'extra'", "'universe'", *COORDINATES)),
    "Closure: pair": (
        lambda s, x: closing(s, (x, at()), "crank"),
        ("'extra'", "'universe'", *COORDINATES),
    ),
    "Coupling: coefficients": (lambda s, x: coupled(s, x), ("'gear'", *COORDINATES)),
    "assemble: locked": (lambda s, x: hc.assemble(s.mech, locked=[x]), ("locked", *COORDINATES)),
    "assemble: weights": (
        lambda s, x: hc.assemble(s.mech, weights={x: 1.0}),
        ("weights", *COORDINATES),
    ),
    "partition: independent": (
        lambda s, x: hc.partition(s.mech, s.q, independent=[x]),
        ("independent", *COORDINATES),
    ),
    "forward_dynamics: f_ext": (
        lambda s, x: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, f_ext={x: s.wrench}),
        ("f_ext", "'universe'", *COORDINATES),
    ),
    "inverse_dynamics: f_ext": (
        lambda s, x: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, f_ext={x: s.wrench}),
        ("f_ext", "'universe'", *COORDINATES),
    ),
}
"""Every argument that takes names: a call, and what its message must hold."""


@pytest.mark.parametrize("call", NAMES)
def test_unknown_names_are_told_with_the_valid_ones(s, call):
    use, words = NAMES[call]
    refused(lambda: use(s, "elbow"), hc.InputError, "'elbow'", "valid names", *words)


@pytest.mark.parametrize("call", NAMES)
def test_misspelt_names_get_a_suggestion(s, call):
    refused(lambda: NAMES[call][0](s, "rokcer"), hc.InputError, "did you mean 'rocker'")


@pytest.mark.parametrize("name", [None, 0, 1.5, b"crank", "", ("crank",), ("crank", 1, 2)])
@pytest.mark.parametrize("call", NAMES)
def test_names_must_be_strings(s, call, name):
    refused(lambda: NAMES[call][0](s, name), hc.InputError)


OF_CONSTRAINTS = {
    "without": lambda s, x: s.mech.without(x),
    "with_enabled": lambda s, x: s.mech.with_enabled(**{x: False}),
    "terms.of": lambda s, x: hc.terms(s.mech, s.q, s.v).of(x),
    "restitution": lambda s, x: hc.impulse(s.mech, s.q, s.v, restitution={x: 0.5}),
}
"""Every argument that takes names of constraints."""


@pytest.mark.parametrize("call", OF_CONSTRAINTS)
def test_unknown_constraints_are_told_with_the_valid_ones(s, call):
    use = OF_CONSTRAINTS[call]
    valid = ("none",) if call == "restitution" else ("'pin'",)  # it has no contact
    refused(lambda: use(s, "elbow"), hc.InputError, "'elbow'", *valid)
    if call != "restitution":
        refused(lambda: use(s, "pni"), hc.InputError, "did you mean 'pin'", "valid names")


@pytest.mark.parametrize("name", [None, 0, b"pin", ("pin",), ""])
@pytest.mark.parametrize("call", OF_CONSTRAINTS)
def test_names_of_constraints_to_look_up_must_be_strings(s, call, name):
    if call == "with_enabled" and not isinstance(name, str):
        return  # Python itself refuses them as keywords
    refused(lambda: OF_CONSTRAINTS[call](s, name), hc.InputError)


@pytest.mark.parametrize("value", [None, 0, 1, "yes", [True], np.nan])
def test_a_constraint_is_switched_on_or_off_by_a_bool(s, value):
    refused(lambda: s.mech.with_enabled(pin=value), hc.InputError, "'pin'", "True or False")


@pytest.mark.parametrize(
    "junk", [None, "gear", 5, [hc.Coupling({"crank": 1.0})], hc.Coupling, pin.Model()]
)
def test_constraints_to_add_must_be_constraints(s, junk):
    e = refused(lambda: s.mech.with_constraints(junk), hc.InputError)
    assert "constraint" in str(e)
    refused(lambda: s.mech.with_constraints(s.loop), hc.InputError, "'pin'")  # its name is taken


@pytest.mark.parametrize("junk", [None, "robot.urdf", 5, pin.Data, four_bar()])
def test_a_model_to_change_to_must_be_a_model(s, junk):
    refused(lambda: s.mech.with_model(junk), hc.InputError, "Model", type(junk).__name__)


def test_a_model_to_change_to_must_have_what_is_used(s):
    refused(lambda: s.mech.with_model(five_bar().model), hc.InputError)


@pytest.mark.parametrize("junk", [5, "heel", [0.5], ("heel", 0.5), len])
def test_restitution_must_be_a_mapping(s, junk):
    refused(
        lambda: hc.impulse(s.mech, s.q, s.v, restitution=junk), hc.InputError, "restitution",
        "mapping",
    )  # fmt: skip


# ---------------------------------------------------------------------------- lists and choices


LISTS = {
    "actuated": lambda s, x: hc.Mechanism(s.mech.model, actuated=x),
    "locked": lambda s, x: hc.assemble(s.mech, locked=x),
    "independent": lambda s, x: hc.partition(s.mech, s.q, independent=x),
    "constraints": lambda s, x: hc.Mechanism(s.mech.model, x),
}


@pytest.mark.parametrize("junk", ["crank", 5, 1.0, len, hc.Coupling({"crank": 1.0})])
@pytest.mark.parametrize("argument", LISTS)
def test_lists_must_be_lists(s, argument, junk):
    """A string is not a list of names; a constraint is not a list of constraints."""
    refused(lambda: LISTS[argument](s, junk), hc.InputError)


@pytest.mark.parametrize("argument", ["actuated", "locked", "constraints"])
def test_none_is_no_list(s, argument):
    refused(lambda: LISTS[argument](s, None), hc.InputError, argument)


@pytest.mark.parametrize("argument", ["actuated", "locked", "independent"])
def test_names_given_twice_are_told(s, argument):
    refused(
        lambda: LISTS[argument](s, ["crank", "crank"]), hc.InputError, argument, "twice", "'crank'"
    )


CHOICES = {
    "project: method": (
        lambda s, x: hc.project(s.mech, s.q, s.v, method=x),
        ("'auto'", "'split'", "'qr'", "'orthonormal'"),
    ),
    "forward_dynamics: method": (
        lambda s, x: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, method=x),
        ("'projection'",),
    ),
    "inverse_dynamics: coordinates": (
        lambda s, x: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, coordinates=x),
        ("'actuated'", "'independent'", "'all'"),
    ),
    "inverse_dynamics: inconsistent": (
        lambda s, x: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, inconsistent=x),
        ("'raise'", "'project'"),
    ),
    "ComputedTorque: compensation": (
        lambda s, x: hc.ComputedTorque(s.mech, 1.0, 1.0, compensation=x),
        ("'full'", "'gravity'"),
    ),
    "Closure: joint": (lambda s, x: hc.Closure("a", "b", joint=x), KINDS),
    "impulse: method": (
        lambda s, x: hc.impulse(s.mech, s.q, s.v, method=x),
        ("'direct'", "'range_space'", "'null_space'"),
    ),
    "constraint_wrenches: axes": (
        lambda s, x: hc.constraint_wrenches(s.mech, s.q, np.ones(2), x),
        ("'world'", "'body'", "'frame'"),
    ),
}


@pytest.mark.parametrize("choice", ["no_such_choice", 3, ["split"], ("split",), {}])
@pytest.mark.parametrize("call", CHOICES)
def test_unknown_choices_are_told_with_the_valid_ones(s, call, choice):
    use, valid = CHOICES[call]
    word = call.rpartition(": ")[2]
    refused(lambda: use(s, choice), hc.InputError, word, *valid, str(choice))
