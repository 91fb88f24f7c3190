"""Arrays and numbers that are no good are refused by name, and nothing is changed."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
from refusals import refused, relaxed, simulated

import holoctl as hc

# ------------------------------------------------------------------ arrays that are no good

ARRAYS = {
    "assemble: q_guess": lambda s, x: hc.assemble(s.mech, x),
    "assemble: v_guess": lambda s, x: hc.assemble(s.mech, s.q, x),
    "assemble: weights": lambda s, x: hc.assemble(s.mech, s.q, weights=x),
    "partition: q": lambda s, x: hc.partition(s.mech, x),
    "project: q": lambda s, x: hc.project(s.mech, x, s.v, partition=s.part),
    "project: v": lambda s, x: hc.project(s.mech, s.q, x, partition=s.part),
    "forward_dynamics: q": lambda s, x: hc.forward_dynamics(s.mech, x, s.v, s.tau),
    "forward_dynamics: v": lambda s, x: hc.forward_dynamics(s.mech, s.q, x, s.tau),
    "forward_dynamics: tau": lambda s, x: hc.forward_dynamics(s.mech, s.q, s.v, x),
    "inverse_dynamics: q": lambda s, x: hc.inverse_dynamics(s.mech, x, s.v, s.one),
    "inverse_dynamics: v": lambda s, x: hc.inverse_dynamics(s.mech, s.q, x, s.one),
    "inverse_dynamics: target": lambda s, x: hc.inverse_dynamics(s.mech, s.q, s.v, x),
    "inverse_dynamics, independent: target": lambda s, x: hc.inverse_dynamics(
        s.mech, s.q, s.v, x, coordinates="independent"
    ),
    "inverse_dynamics, all: target": lambda s, x: hc.inverse_dynamics(
        s.mech, s.q, s.v, x, coordinates="all"
    ),
    "forward_dynamics: f_ext['rocker']": lambda s, x: hc.forward_dynamics(
        s.mech, s.q, s.v, s.tau, f_ext={"rocker": x}
    ),
    "inverse_dynamics: f_ext['rocker']": lambda s, x: hc.inverse_dynamics(
        s.mech, s.q, s.v, s.one, f_ext={"rocker": x}
    ),
    "torque: q": lambda s, x: s.ctl.torque(x, s.v, s.one, s.one, s.one),
    "torque: v": lambda s, x: s.ctl.torque(s.q, x, s.one, s.one, s.one),
    "torque: q_ref": lambda s, x: s.ctl.torque(s.q, s.v, x, s.one, s.one),
    "torque: v_ref": lambda s, x: s.ctl.torque(s.q, s.v, s.one, x, s.one),
    "torque: a_ref": lambda s, x: s.ctl.torque(s.q, s.v, s.one, s.one, x),
    "ComputedTorque: kp": lambda s, x: hc.ComputedTorque(s.mech, x, 1.0, partition=s.part),
    "ComputedTorque: kd": lambda s, x: hc.ComputedTorque(s.mech, 1.0, x, partition=s.part),
    "terms: q": lambda s, x: hc.terms(s.mech, x, s.v),
    "terms: v": lambda s, x: hc.terms(s.mech, s.q, x),
    "impulse: q": lambda s, x: hc.impulse(s.mech, x, s.v, partition=s.part),
    "impulse: v": lambda s, x: hc.impulse(s.mech, s.q, x, partition=s.part),
    "impulse: v_plus": lambda s, x: hc.impulse(s.mech, s.q, s.v, x, partition=s.part),
    "relaxed: q": lambda s, x: relaxed(s, q=x),
    "relaxed: v": lambda s, x: relaxed(s, v=x),
    "relaxed: target": lambda s, x: relaxed(s, target=x),
    "relaxed: stiffness": lambda s, x: relaxed(s, stiffness=x),
    "relaxed: f_ext['rocker']": lambda s, x: relaxed(s, f_ext={"rocker": x}),
    "is_fully_actuated: q": lambda s, x: hc.methods.is_fully_actuated(s.mech, x, partition=s.part),
    "constraint_wrenches: q": lambda s, x: hc.constraint_wrenches(s.mech, x, np.ones(2)),
    "constraint_wrenches: multipliers": lambda s, x: hc.constraint_wrenches(s.mech, s.q, x),
    "by_constraint: x": lambda s, x: hc.methods.by_constraint(s.mech, x),
    "acceleration: q": lambda s, x: s.forward.acceleration(x, s.v, s.tau),
    "acceleration: v": lambda s, x: s.forward.acceleration(s.q, x, s.tau),
    "acceleration: tau": lambda s, x: s.forward.acceleration(s.q, s.v, x),
    "at: q": lambda s, x: s.forward.at(x, s.v),
    "at: v": lambda s, x: s.forward.at(s.q, x),
    "response: tau": lambda s, x: s.forward.at(s.q, s.v)(x),
    "prepared torque: q": lambda s, x: s.inverse.torque(x, s.v, s.one),
    "prepared torque: v": lambda s, x: s.inverse.torque(s.q, x, s.one),
    "prepared torque: target": lambda s, x: s.inverse.torque(s.q, s.v, x),
    "prepared torque: efforts": lambda s, x: s.inverse.torque(s.q, s.v, s.one, efforts=x),
    "holding: q": lambda s, x: s.inverse.holding(x),
    "simulate: q0": lambda s, x: hc.simulate(s.mech, lambda t, q, v: s.one, x, s.v, 0.01),
    "simulate: v0": lambda s, x: hc.simulate(s.mech, lambda t, q, v: s.one, s.q, x, 0.01),
    "Mechanism: reference": lambda s, x: dataclasses.replace(s.mech, reference=x),
    "Mechanism: actuation": lambda s, x: hc.Mechanism(s.mech.model, actuation=x),
}
"""Every array argument of the public functions, and a call with everything else in order."""

OPTIONAL = {
    "assemble: q_guess", "assemble: v_guess", "assemble: weights", "Mechanism: reference",
    "Mechanism: actuation", "impulse: v_plus", "relaxed: stiffness", "prepared torque: efforts",
}  # fmt: skip

GOOD = {
    "target": np.array([1.0]), "q_ref": np.array([1.0]), "v_ref": np.array([1.0]),
    "a_ref": np.array([1.0]), "kp": np.array([1.0]), "kd": np.array([1.0]),
    "f_ext['rocker']": np.arange(6.0), "actuation": np.eye(3), "v_plus": np.ones(2),
    "multipliers": np.ones(2), "x": np.ones(2), "stiffness": np.eye(1),
}  # fmt: skip
"""A good value, where it is not three numbers."""


def put(x, value):
    """A copy of x with a last entry that is no good."""
    x = np.array(x, dtype=object if not isinstance(value, float) else float)
    x[(-1,) * x.ndim] = value
    return x


JUNK = {
    "None": lambda x: None,
    "a word": lambda x: "abc",
    "a mapping": lambda x: {"crank": 1.0},
    "a function": lambda x: len,
    "a set": lambda x: {1.0, 2.0},
    "too long": lambda x: np.vstack([x] * 9) if x.ndim == 2 else np.concatenate([x] * 9),
    "empty": lambda x: [],
    "a cube": lambda x: np.zeros((2, 2, 2)),
    "ragged": lambda x: [[1.0], [2.0, 3.0]],
    "NaN": lambda x: put(x, np.nan),
    "infinity": lambda x: put(x, np.inf),
    "minus infinity": lambda x: put(x, -np.inf),
    "words": lambda x: put(x, "one").tolist(),
    "digits in words": lambda x: x.astype(str).tolist(),
    "a None inside": lambda x: [None] * len(x),
    "complex": lambda x: x + 1j,
    "an integer beyond floats": lambda x: [10**400] * len(x),
}


def is_junk(call, junk):
    """Whether this value is wrong for that argument: None and mappings have their places."""
    if junk == "None":
        return call not in OPTIONAL
    if call == "by_constraint: x" and junk in ("NaN", "infinity", "minus infinity"):
        return False  # it only tells whose the numbers are
    return junk != "a mapping" or call != "assemble: weights"


def good_value(call):
    argument = call.rpartition(": ")[2]
    return np.ones(3) if "all: target" in call else GOOD.get(argument, np.ones(3))


@pytest.mark.parametrize(("call", "junk"), [(c, j) for c in ARRAYS for j in JUNK if is_junk(c, j)])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning", "ignore::RuntimeWarning")
def test_arrays_that_are_no_good_are_refused_by_name(s, call, junk):
    x = JUNK[junk](good_value(call))
    before = copy.deepcopy(x)
    refused(lambda: ARRAYS[call](s, x), hc.InputError, call.rpartition(": ")[2])
    np.testing.assert_equal(x, before)


@pytest.mark.parametrize("call", ARRAYS)
def test_shapes_are_told(s, call):
    """The message has the shape that is needed and the shape that was given."""
    argument = call.rpartition(": ")[2]
    need = "(3, nu)" if argument == "actuation" else str(good_value(call).shape)
    refused(lambda: ARRAYS[call](s, np.zeros((5, 4))), hc.InputError, argument, need, "(5, 4)")


def test_the_entry_that_is_not_finite_is_told(s):
    refused(lambda: hc.project(s.mech, [0.0, np.nan, 0.0], s.v), hc.InputError, "q", "entry 1")


def test_scalars_are_not_arrays(s):
    refused(lambda: hc.inverse_dynamics(s.mech, s.q, s.v, 1.0), hc.InputError, "target", "(1,)")


# ----------------------------------------------------------------- numbers that are no good

NUMBERS = {
    "assemble: t": lambda s, x: hc.assemble(s.mech, s.q, t=x),
    "assemble: tol": lambda s, x: hc.assemble(s.mech, s.q, tol=x),
    "assemble: max_iter": lambda s, x: hc.assemble(s.mech, s.q, max_iter=x),
    "assemble: restarts": lambda s, x: hc.assemble(s.mech, s.q, restarts=x),
    "assemble: seed": lambda s, x: hc.assemble(s.mech, s.q, seed=x),
    "assemble: weights['crank']": lambda s, x: hc.assemble(s.mech, weights={"crank": x}),
    "partition: t": lambda s, x: hc.partition(s.mech, s.q, t=x),
    "project: t": lambda s, x: hc.project(s.mech, s.q, s.v, t=x),
    "project: t_stab": lambda s, x: hc.project(s.mech, s.q, s.v, t_stab=x),
    "forward_dynamics: t": lambda s, x: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, t=x),
    "forward_dynamics: t_stab": lambda s, x: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, t_stab=x),
    "inverse_dynamics: t": lambda s, x: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, t=x),
    "inverse_dynamics: t_stab": lambda s, x: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, t_stab=x),
    "torque: t": lambda s, x: s.ctl.torque(s.q, s.v, s.one, s.one, s.one, t=x),
    "terms: t": lambda s, x: hc.terms(s.mech, s.q, s.v, t=x),
    "terms: t_stab": lambda s, x: hc.terms(s.mech, s.q, s.v, t_stab=x),
    "impulse: t": lambda s, x: hc.impulse(s.mech, s.q, s.v, t=x, partition=s.part),
    "impulse: restitution['heel']": lambda s, x: hc.impulse(
        s.leg, s.leg.reference, np.zeros(s.leg.nv), restitution={"heel": x}
    ),
    "relaxed: t": lambda s, x: relaxed(s, t=x),
    "relaxed: t_stab": lambda s, x: relaxed(s, t_stab=x),
    "is_fully_actuated: t": lambda s, x: hc.methods.is_fully_actuated(
        s.mech, s.q, t=x, partition=s.part
    ),
    "acceleration: t": lambda s, x: s.forward.acceleration(s.q, s.v, s.tau, x),
    "at: t": lambda s, x: s.forward.at(s.q, s.v, x),
    "prepared torque: t": lambda s, x: s.inverse.torque(s.q, s.v, s.one, t=x),
    "holding: t": lambda s, x: s.inverse.holding(s.q, x),
    "run_at_rate: frequency": lambda s, x: hc.run_at_rate(lambda t: True, x),
    "run_at_rate: duration": lambda s, x: hc.run_at_rate(lambda t: True, 1e3, x),
    "simulate: duration": lambda s, x: simulated(s, duration=x),
    "simulate: frequency": lambda s, x: simulated(s, frequency=x),
    "Sensors: noise": lambda s, x: hc.Sensors(noise=x),
    "Sensors: noise pair": lambda s, x: hc.Sensors(noise=(0.0, x)),
    "Sensors: delay": lambda s, x: hc.Sensors(delay=x),
    "Sensors: rate_bandwidth": lambda s, x: hc.Sensors(rate_bandwidth=x),
    "RateFilter: bandwidth": lambda s, x: hc.RateFilter(x, 1e-3),
    "RateFilter: dt": lambda s, x: hc.RateFilter(100.0, x),
    "Sensors: seed": lambda s, x: hc.Sensors(seed=x),
    "simulate: rtol": lambda s, x: simulated(s, rtol=x),
    "simulate: atol": lambda s, x: simulated(s, atol=x),
    "ComputedTorque: kp": lambda s, x: hc.ComputedTorque(s.mech, x, 1.0, partition=s.part),
    "ComputedTorque: kd": lambda s, x: hc.ComputedTorque(s.mech, 1.0, x, partition=s.part),
    "Closure: t_stab": lambda s, x: hc.Closure("a", "b", joint="weld", t_stab=x),
    "Coupling: t_stab": lambda s, x: hc.Coupling({"a": 1.0}, t_stab=x),
    "Coupling: offset": lambda s, x: hc.Coupling({"a": 1.0}, offset=x),
    "Coupling: coefficient of 'a'": lambda s, x: hc.Coupling({"a": x}),
}
"""Every number argument of the public functions."""

MAY_BE_NONE = {"project: t_stab", "forward_dynamics: t_stab", "inverse_dynamics: t_stab",
               "Closure: t_stab", "Coupling: t_stab", "terms: t_stab", "relaxed: t_stab",
               "run_at_rate: duration", "Sensors: rate_bandwidth"}  # fmt: skip

BY_NAME = {c for c in MAY_BE_NONE - {"Closure: t_stab", "Coupling: t_stab"} if "t_stab" in c}

BAD_NUMBERS = {
    "None": None, "a word": "soon", "digits in a word": "0.5", "NaN": np.nan, "infinity": np.inf,
    "a list": [1.0, 2.0], "an empty list": [], "complex": 1j, "a mapping": {},
    "an integer beyond floats": -(10**400),
}  # fmt: skip


def is_bad(call, junk):
    """Whether this value is wrong for that number: some may be None, noise is two numbers, and
    time constants of a call may be given by name, of no constraint too."""
    if junk == "None":
        return call not in MAY_BE_NONE
    if junk == "a mapping":
        return call not in BY_NAME
    return junk != "a list" or not call.startswith("Sensors: noise")


@pytest.mark.parametrize(
    ("call", "junk"), [(c, j) for c in NUMBERS for j in BAD_NUMBERS if is_bad(c, j)]
)
def test_numbers_that_are_no_good_are_refused_by_name(s, call, junk):
    argument = call.rpartition(": ")[2].removesuffix(" pair")
    refused(lambda: NUMBERS[call](s, BAD_NUMBERS[junk]), hc.InputError, argument)


POSITIVE = [
    "assemble: tol", "assemble: max_iter", "project: t_stab", "forward_dynamics: t_stab",
    "inverse_dynamics: t_stab", "simulate: duration", "simulate: frequency", "Closure: t_stab",
    "Coupling: t_stab", "Coupling: coefficient of 'a'", "terms: t_stab", "relaxed: t_stab",
    "run_at_rate: frequency", "run_at_rate: duration", "Sensors: rate_bandwidth",
    "RateFilter: bandwidth", "RateFilter: dt",
]  # fmt: skip


@pytest.mark.parametrize("call", POSITIVE)
def test_zero_is_refused_where_it_makes_no_sense(s, call):
    refused(lambda: NUMBERS[call](s, 0.0), hc.InputError, call.rpartition(": ")[2])


NOT_NEGATIVE = [
    *(c for c in POSITIVE if "coefficient" not in c), "assemble: restarts", "assemble: seed",
    "assemble: weights['crank']", "impulse: restitution['heel']", "Sensors: noise pair",
    "Sensors: delay", "Sensors: seed", "simulate: rtol", "simulate: atol", "ComputedTorque: kp",
    "ComputedTorque: kd",
]  # fmt: skip


@pytest.mark.parametrize("call", NOT_NEGATIVE)
def test_negative_numbers_are_refused_where_they_make_no_sense(s, call):
    argument = call.rpartition(": ")[2].removesuffix(" pair").partition("[")[0]
    refused(lambda: NUMBERS[call](s, -1), hc.InputError, argument)


@pytest.mark.parametrize("call", ["assemble: max_iter", "assemble: restarts", "assemble: seed"])
def test_counts_must_be_whole_numbers(s, call):
    refused(lambda: NUMBERS[call](s, 2.5), hc.InputError, call.rpartition(": ")[2])


def test_an_array_of_one_number_is_no_number(s):
    """float() of it is deprecated by numpy."""
    refused(lambda: hc.project(s.mech, s.q, s.v, t=np.array([0.5])), hc.InputError, "t")


@pytest.mark.parametrize(
    ("keyword", "now"),
    [
        ("rtol", r"integrator=hc.Integrator\(rtol="),
        ("limits", r"plant=hc.Plant\(limits="),
        ("seed", r"sensors=hc.Sensors\(seed="),
        ("policy", r"hc.WithinLimits\(limits, policy="),
        ("t", r"projection=hc.project\(mech, q, v, t="),
    ],
)
def test_a_keyword_of_before_says_what_is_written_now(keyword, now):
    law = hc.limited_inverse_dynamics if keyword in ("policy", "t") else hc.simulate
    with pytest.raises(hc.InputError, match=rf"{law.__name__} has no {keyword}= any more: {now}"):
        law(None, None, None, None, None, **{keyword: 1.0})
    with pytest.raises(TypeError, match="polcy"):
        law(None, None, None, None, None, polcy=1.0)
