"""Bad input gets a clear error of the library's own family, and changes nothing."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import gc
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import (
    _add,
    _at,
    _bar,
    _vertical,
    closed_chain,
    five_bar,
    floating_leg,
    four_bar,
    standing_leg,
)

import holoctl as hc

# ------------------------------------------------------------------------------ mechanisms


def slider_crank(motor="slider"):
    """Crank 0.2, rod 0.5, slider on x; at crank = rod = 0 it stands in the dead centre."""
    model = _vertical(pin.Model())
    _add(model, 0, pin.JointModelRZ(), _at(), "crank", _bar(0.2))
    _add(model, "crank", pin.JointModelRZ(), _at(0.2), "rod", _bar(0.5))
    _add(model, 0, pin.JointModelPX(), _at(), "slider", _bar(0.1, 2.0))
    loop = hc.Closure(("rod", _at(0.5)), "slider", axes="x y", name="pin")
    return hc.Mechanism(model, [loop], [motor], reference=[1.0, -1.4, 0.6], name="slider_crank")


DEAD_CENTRE = [0.0, 0.0, 0.7]


def triangle(length=0.4):
    """Two bars on two hinges 0.5 apart, tips pinned: a rigid truss, with a motor on it."""
    model = _vertical(pin.Model())
    _add(model, 0, pin.JointModelRZ(), _at(), "left", _bar(0.4))
    _add(model, 0, pin.JointModelRZ(), _at(0.5), "right", _bar(length))
    loop = hc.Closure(("left", _at(0.4)), ("right", _at(length)), axes="x y", name="tip")
    return hc.Mechanism(model, [loop], ["left"], reference=[0.9, 2.2], name="triangle")


def parallelogram():
    """Opposite bars equal: folded at q = 0, where its rows lose rank."""
    return four_bar(lengths=(0.3, 0.5, 0.3, 0.5))


def facing_away():
    """A four-bar with revolute closure whose frames have opposite z: planar motion cannot turn
    one over, so its rows vanish only with the axes opposed."""
    mech = four_bar("revolute")
    over = _at(0.4, R=np.diag([1.0, -1.0, -1.0]))
    loop = hc.Closure(("coupler", _at(0.5)), ("rocker", over), joint="revolute", name="pin")
    return dataclasses.replace(mech, constraints=[loop])


def with_motors(mech, *motors):
    return dataclasses.replace(mech, actuated=motors)


# --------------------------------------------------------------------------------- helpers


def refused(call, error=hc.InputError, *words):
    """The error of a call: of the family, of the type asked for, with these words in it."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 (what it is, is asserted here)
        call()
    e = caught.value
    assert isinstance(e, hc.HoloctlError), f"{type(e).__name__}, not of the family: {e}"
    assert isinstance(e, error), f"{type(e).__name__} instead of {error.__name__}: {e}"
    assert not isinstance(e, hc.InputError) or isinstance(e, ValueError)
    missing = [word for word in words if not has_word(str(e), word)]
    assert not missing, f"{missing} not in: {e}"
    assert_same_error(pickle.loads(pickle.dumps(e)), e)
    return e


def has_word(text, word):
    """Whether `word` is in the text; one that is a name stands there as a word of its own."""
    edges = (r"(?<!\w)(?<!\w')", r"(?!\w)") if re.fullmatch(r"\w+", word) else ("", "")
    return re.search(re.escape(word).join(edges), text) is not None


def assert_same_error(twin, error):
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert twin.args == error.args
    assert twin.__dict__.keys() == error.__dict__.keys()
    for name, value in error.__dict__.items():
        np.testing.assert_equal(getattr(twin, name), value)


class Bench(SimpleNamespace):
    """A four-bar and what goes with it, with a repr that fits a message."""

    def __repr__(self):
        return "Bench()"


@pytest.fixture(scope="module")
def shared():
    """A four-bar at a closed state, and all that the functions take."""
    mech = four_bar()
    q, v = hc.assemble(mech, None, [1.0, 0.0, 0.0])
    part = hc.partition(mech, q)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    u = hc.inverse_dynamics(mech, q, v, [1.0]).u
    floating = floating_leg()
    return Bench(
        mech=mech, q=q, v=v, part=part, ctl=ctl, u=u, tau=np.array([1.0, 2.0, 3.0]),
        a=hc.inverse_dynamics(mech, q, v, [1.0]).a, one=np.array([1.0]), weights=np.ones(3),
        wrench=np.arange(6.0), B=np.eye(3)[:, :1], P=hc.project(mech, q, v, partition=part),
        floating=floating, fq=hc.assemble(floating)[0],
        forward=hc.PreparedForwardDynamics(mech, part),
        inverse=hc.PreparedInverseDynamics(mech, part), leg=standing_leg(),
        loop=mech.constraints[0], welded=hc.PreparedForwardDynamics(closed_chain("weld", 0)),
        eight=hc.assemble(closed_chain("weld", 0))[0],
    )  # fmt: skip


@pytest.fixture
def s(shared):
    """`shared`; afterwards every array in it, and the torque at the state, are as before."""
    arrays = {n: x for n, x in vars(shared).items() if isinstance(x, np.ndarray)}
    before = copy.deepcopy(arrays)
    yield shared
    for name, x in arrays.items():
        assert np.array_equal(x, before[name]), f"{name} was changed"
    u = hc.inverse_dynamics(shared.mech, shared.q, shared.v, [1.0], partition=shared.part).u
    assert np.array_equal(u, shared.u), "the mechanism was changed"


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
        s.mech, s.q, s.v, s.tau, {"rocker": x}
    ),
    "inverse_dynamics: f_ext['rocker']": lambda s, x: hc.inverse_dynamics(
        s.mech, s.q, s.v, s.one, {"rocker": x}
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
    "is_fully_actuated: q": lambda s, x: hc.is_fully_actuated(s.mech, x, partition=s.part),
    "constraint_wrenches: q": lambda s, x: hc.constraint_wrenches(s.mech, x, np.ones(2)),
    "constraint_wrenches: multipliers": lambda s, x: hc.constraint_wrenches(s.mech, s.q, x),
    "by_constraint: x": lambda s, x: hc.by_constraint(s.mech, x),
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


def relaxed(s, **changes):
    """The relaxed inverse dynamics of the four-bar."""
    arguments = {"q": s.q, "v": s.v, "target": s.one, "partition": s.part, **changes}
    return hc.inverse_dynamics_relaxed(s.mech, **arguments)


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
    "is_fully_actuated: t": lambda s, x: hc.is_fully_actuated(s.mech, s.q, t=x, partition=s.part),
    "acceleration: t": lambda s, x: s.forward.acceleration(s.q, s.v, s.tau, x),
    "at: t": lambda s, x: s.forward.at(s.q, s.v, x),
    "prepared torque: t": lambda s, x: s.inverse.torque(s.q, s.v, s.one, t=x),
    "holding: t": lambda s, x: s.inverse.holding(s.q, x),
    "run_at_rate: rate": lambda s, x: hc.run_at_rate(lambda t: True, x),
    "run_at_rate: duration": lambda s, x: hc.run_at_rate(lambda t: True, 1e3, x),
    "simulate: duration": lambda s, x: simulated(s, duration=x),
    "simulate: rate": lambda s, x: simulated(s, rate=x),
    "simulate: noise": lambda s, x: simulated(s, noise=x),
    "simulate: noise pair": lambda s, x: simulated(s, noise=(0.0, x)),
    "simulate: seed": lambda s, x: simulated(s, seed=x),
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
               "run_at_rate: duration"}  # fmt: skip

BY_NAME = MAY_BE_NONE - {"Closure: t_stab", "Coupling: t_stab", "run_at_rate: duration"}

BAD_NUMBERS = {
    "None": None, "a word": "soon", "digits in a word": "0.5", "NaN": np.nan, "infinity": np.inf,
    "a list": [1.0, 2.0], "an empty list": [], "complex": 1j, "a mapping": {},
    "an integer beyond floats": -(10**400),
}  # fmt: skip


def simulated(s, **changes):
    """A short run of the four-bar without torque."""
    arguments = {"duration": 0.002, **changes}
    return hc.simulate(s.mech, lambda t, q, v: np.zeros(1), s.q, s.v, **arguments)


def is_bad(call, junk):
    """Whether this value is wrong for that number: some may be None, noise is two numbers, and
    time constants of a call may be given by name, of no constraint too."""
    if junk == "None":
        return call not in MAY_BE_NONE
    if junk == "a mapping":
        return call not in BY_NAME
    return junk != "a list" or call != "simulate: noise"


@pytest.mark.parametrize(
    ("call", "junk"), [(c, j) for c in NUMBERS for j in BAD_NUMBERS if is_bad(c, j)]
)
def test_numbers_that_are_no_good_are_refused_by_name(s, call, junk):
    argument = call.rpartition(": ")[2].removesuffix(" pair")
    refused(lambda: NUMBERS[call](s, BAD_NUMBERS[junk]), hc.InputError, argument)


POSITIVE = [
    "assemble: tol", "assemble: max_iter", "project: t_stab", "forward_dynamics: t_stab",
    "inverse_dynamics: t_stab", "simulate: duration", "simulate: rate", "Closure: t_stab",
    "Coupling: t_stab", "Coupling: coefficient of 'a'", "terms: t_stab", "relaxed: t_stab",
    "run_at_rate: rate", "run_at_rate: duration",
]  # fmt: skip


@pytest.mark.parametrize("call", POSITIVE)
def test_zero_is_refused_where_it_makes_no_sense(s, call):
    refused(lambda: NUMBERS[call](s, 0.0), hc.InputError, call.rpartition(": ")[2])


NOT_NEGATIVE = [
    *(c for c in POSITIVE if "coefficient" not in c), "assemble: restarts", "assemble: seed",
    "assemble: weights['crank']", "impulse: restitution['heel']", "simulate: noise pair",
    "simulate: seed", "simulate: rtol", "simulate: atol", "ComputedTorque: kp",
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


# ------------------------------------------------------------------- names and choices

COORDINATES = ("'crank'", "'coupler'", "'rocker'")
KINDS = ("'spherical'", "'revolute'", "'prismatic'", "'cylindrical'", "'universal'", "'planar'",
         "'weld'")  # fmt: skip


def closing(s, *frames):
    """The four-bar with one more closure, between these frames."""
    loop = hc.Closure(*frames, joint="weld", name="extra")
    return dataclasses.replace(s.mech, constraints=[*s.mech.constraints, loop])


def coupled(s, name):
    return hc.Mechanism(s.mech.model, [hc.Coupling({name: 1.0}, name="gear")])


NAMES = {
    "Mechanism: actuated": (lambda s, x: with_motors(s.mech, x), COORDINATES),
    "Closure: a": (lambda s, x: closing(s, x, "crank"), ("'extra'", "'universe'", *COORDINATES)),
    "Closure: b": (lambda s, x: closing(s, "crank", x), ("'extra'", "'universe'", *COORDINATES)),
    "Closure: pair": (
        lambda s, x: closing(s, (x, _at()), "crank"),
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
        lambda s, x: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, {x: s.wrench}),
        ("f_ext", "'universe'", *COORDINATES),
    ),
    "inverse_dynamics: f_ext": (
        lambda s, x: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, {x: s.wrench}),
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


# ------------------------------------------------------- places for results, loops at a rate

OUT = {
    "acceleration": (lambda s, x: s.forward.acceleration(s.q, s.v, s.tau, out=x), 3),
    "prepared torque": (lambda s, x: s.inverse.torque(s.q, s.v, s.one, out=x), 1),
    "holding": (lambda s, x: s.inverse.holding(s.q, out=x), 1),
    "torque": (lambda s, x: s.ctl.torque(s.q, s.v, s.one, s.one, s.one, out=x), 1),
    "torque, gravity": (
        lambda s, x: hc.ComputedTorque(s.mech, 1.0, 1.0, "gravity", s.part).torque(
            s.q, s.v, s.one, s.one, s.one, out=x
        ),
        1,
    ),
}
"""Every function that takes a place for its result, and the size of it."""

PLACES = {
    "a list": lambda n: [0.0] * n, "a word": lambda n: "out", "a number": lambda n: 0.0,
    "too long": lambda n: np.zeros(n + 1), "a column": lambda n: np.zeros((n, 1)),
    "single precision": lambda n: np.zeros(n, np.float32), "whole": lambda n: np.zeros(n, int),
    "a matrix": lambda n: np.zeros((n, n)).view(np.matrix) if n > 1 else np.matrix([[0.0]]),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("call", OUT)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_places_that_are_no_good_are_refused(s, call, place):
    use, size = OUT[call]
    out = PLACES[place](size)
    before = copy.deepcopy(out)
    refused(lambda: use(s, out), hc.InputError, "out", "floats", f"({size},)")
    np.testing.assert_equal(out, before)


@pytest.mark.parametrize("call", OUT)
def test_a_place_that_cannot_be_written_to_is_refused(s, call):
    use, size = OUT[call]
    out = np.zeros(size)
    out.flags.writeable = False
    refused(lambda: use(s, out), hc.InputError, "out", "read-only")
    assert not out.any()


OUT_AND_JUNK = {
    "acceleration": lambda s, x, out: s.forward.acceleration(s.q, s.v, x * s.tau, out=out),
    "prepared torque": lambda s, x, out: s.inverse.torque(s.q, s.v, x * s.one, out=out),
    "holding": lambda s, x, out: s.inverse.holding(x * s.q, out=out),
    "torque": lambda s, x, out: s.ctl.torque(s.q, s.v, s.one, s.one, x * s.one, out=out),
}


@pytest.mark.parametrize("call", OUT_AND_JUNK)
def test_a_place_stays_as_it_is_where_an_error_is_raised(s, call):
    out = np.full(OUT[call][1], 7.0)
    refused(lambda: OUT_AND_JUNK[call](s, np.nan, out), hc.InputError)
    assert (out == 7.0).all()
    assert OUT_AND_JUNK[call](s, 1.0, out) is out
    assert (out != 7.0).all()


@pytest.mark.parametrize("junk", [None, 5, "step", np.zeros(1)])
def test_a_loop_needs_a_function(junk):
    refused(lambda: hc.run_at_rate(junk, 1e3, 0.01), hc.InputError, "step", "function")


@pytest.mark.parametrize("returned", [0, 1, 1.0, "stop", [], np.zeros(1), hc.InputError])
def test_what_a_step_of_a_loop_must_not_return(returned):
    e = refused(lambda: hc.run_at_rate(lambda t: returned, 1e3, 0.01), hc.InputError, "step")
    assert "t = 0 s" in e.__notes__[0]


@pytest.mark.parametrize("rate", [1e-4, 1e7])
def test_rates_that_no_loop_keeps_are_refused(rate):
    refused(lambda: hc.run_at_rate(lambda t: True, rate), hc.InputError, "rate", "ticks per s")


def test_realtime_takes_nothing_and_passes_errors_on():
    with pytest.raises(TypeError):
        hc.realtime(1)
    before = gc.isenabled(), gc.get_freeze_count()
    with pytest.raises(hc.InputError, match="step"), hc.realtime():
        hc.run_at_rate(None, 1e3)
    assert (gc.isenabled(), gc.get_freeze_count()) == before


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


@pytest.mark.parametrize(
    "axes", ["", "w", "x,y", "xy", "x x", "X", "rx rx", 5, ["x", "y"], ("x",), b"x", np.eye(3)]
)
def test_axes_that_are_no_good_are_told_with_the_valid_ones(axes):
    refused(lambda: hc.Closure("a", "b", axes=axes), hc.InputError, "'a-b'", "x y z rx ry rz")


@pytest.mark.parametrize("both", [{}, {"joint": "weld", "axes": "x"}])
def test_a_closure_needs_one_of_joint_and_axes(both):
    refused(lambda: hc.Closure("a", "b", **both), hc.InputError, "joint=", "axes=", *KINDS)


def test_a_misspelt_joint_gets_a_suggestion():
    refused(lambda: hc.Closure("a", "b", joint="revolut"), hc.InputError, "did you mean 'revolute'")


@pytest.mark.parametrize(
    "frame",
    [None, 5, (), ("crank",), ("crank", np.eye(4)), ("crank", None), (None, _at()), ["crank"],
     _at(), {"crank": _at()}, ("crank", _at(), 1)],
)  # fmt: skip
@pytest.mark.parametrize("side", ["a", "b"])
def test_frames_that_are_no_good_are_refused(s, side, frame):
    """At the latest by the Mechanism, with the name of the closure."""
    frames = (frame, "rocker") if side == "a" else ("rocker", frame)
    refused(lambda: closing(s, *frames), hc.InputError, "'extra'")


@pytest.mark.parametrize("frame", [None, 5, (), ("crank",)])
def test_frames_that_are_no_good_are_refused_without_a_name_too(s, frame):
    def build():
        hc.Mechanism(s.mech.model, [hc.Closure(frame, "rocker", joint="weld")])

    refused(build, hc.InputError)


@pytest.mark.parametrize("name", [5, [], {}, b"pin"])
def test_names_of_constraints_must_be_strings(s, name):
    def closure():
        hc.Mechanism(s.mech.model, [hc.Closure("crank", "rocker", axes="x", name=name)])

    def coupling():
        hc.Mechanism(s.mech.model, [hc.Coupling({"crank": 1.0}, name=name)])

    refused(closure, hc.InputError, "name")
    refused(coupling, hc.InputError, "name")


@pytest.mark.parametrize(
    ("R", "word"),
    [
        (2.0 * np.eye(3), "orthogonal"),
        (np.diag([1.0, 1.0, -1.0]), "determinant 1"),
        (np.full((3, 3), np.nan), "not finite"),
    ],
)
def test_placements_that_are_no_placements_are_refused(s, R, word):
    refused(lambda: closing(s, ("crank", pin.SE3(R, np.zeros(3))), "rocker"), hc.InputError,
            "'extra'", "'crank'", word)  # fmt: skip


@pytest.mark.parametrize("coefficients", [{}, None, 5, "crank", [("crank", 1.0)], ["crank"]])
def test_coefficients_must_be_a_mapping(coefficients):
    refused(lambda: hc.Coupling(coefficients), hc.InputError, "coefficients")


def test_a_coefficient_too_small_to_divide_by_is_refused(s):
    """The row is scaled by its inverse, which must be a number."""

    def build():
        hc.Mechanism(s.mech.model, [hc.Coupling({"crank": 1e-310})])

    refused(build, hc.InputError, "coefficient", "'crank'")


@pytest.mark.parametrize("name", ["base[0]", "base[3]", "head[1]", "wheel"])
def test_couplings_of_rotations_are_refused(s, name):
    """Their position is not a number on a line."""
    refused(lambda: hc.Mechanism(s.floating.model, [hc.Coupling({name: 1.0, "hip": 1.0})]),
            hc.InputError, f"'{name}'", "number on a line")  # fmt: skip


# -------------------------------------------------------------------- things of wrong type

NEEDS_A_MECHANISM = {
    "assemble": lambda s, m: hc.assemble(m, s.q),
    "assemble, no guess": lambda s, m: hc.assemble(m),
    "partition": lambda s, m: hc.partition(m, s.q),
    "project": lambda s, m: hc.project(m, s.q, s.v),
    "project with partition": lambda s, m: hc.project(m, s.q, s.v, partition=s.part),
    "forward_dynamics": lambda s, m: hc.forward_dynamics(m, s.q, s.v, s.tau),
    "inverse_dynamics": lambda s, m: hc.inverse_dynamics(m, s.q, s.v, s.one),
    "ComputedTorque": lambda s, m: hc.ComputedTorque(m, 1.0, 1.0),
    "terms": lambda s, m: hc.terms(m, s.q, s.v),
    "impulse": lambda s, m: hc.impulse(m, s.q, s.v),
    "inverse_dynamics_relaxed": lambda s, m: hc.inverse_dynamics_relaxed(m, s.q, s.v, s.one),
    "is_fully_actuated": lambda s, m: hc.is_fully_actuated(m, s.q),
    "constraint_wrenches": lambda s, m: hc.constraint_wrenches(m, s.q, np.ones(2)),
    "by_constraint": lambda s, m: hc.by_constraint(m, np.ones(2)),
    "PreparedForwardDynamics": lambda s, m: hc.PreparedForwardDynamics(m),
    "PreparedForwardDynamics with partition": lambda s, m: hc.PreparedForwardDynamics(m, s.part),
    "PreparedInverseDynamics": lambda s, m: hc.PreparedInverseDynamics(m),
    "PreparedInverseDynamics with partition": lambda s, m: hc.PreparedInverseDynamics(m, s.part),
    "simulate": lambda s, m: hc.simulate(m, lambda t, q, v: s.one, s.q, s.v, 0.01),
    "simulate, plant": lambda s, m: hc.simulate(
        s.mech, lambda t, q, v: s.one, s.q, s.v, 0.01, plant=m
    ),
}


@pytest.mark.parametrize("junk", [pin.Model(), 0, "five_bar.urdf", hc.Mechanism])
@pytest.mark.parametrize("call", NEEDS_A_MECHANISM)
def test_what_is_no_mechanism_is_refused(s, call, junk):
    """A pin.Model in its place is an easy mistake."""
    refused(lambda: NEEDS_A_MECHANISM[call](s, junk), hc.InputError, "Mechanism")


@pytest.mark.parametrize("use", [hc.Mechanism, hc.renumbered])
@pytest.mark.parametrize("junk", [None, "robot.urdf", 5, pin.Data, four_bar()])
def test_what_is_no_model_is_refused(use, junk):
    refused(lambda: use(junk), hc.InputError, "Model", type(junk).__name__)


def test_a_model_without_joints_is_refused():
    refused(lambda: hc.Mechanism(pin.Model()), hc.InputError, "no joints")


@pytest.mark.parametrize("junk", [None, "loop", 5, [5], ["loop"], [None], [hc.Closure]])
def test_what_are_no_constraints_is_refused(s, junk):
    e = refused(lambda: hc.Mechanism(s.mech.model, junk))
    assert "constraint" in str(e)


def test_actuated_and_actuation_together_are_refused(s):
    refused(lambda: hc.Mechanism(s.mech.model, actuated=["crank"], actuation=s.B), hc.InputError,
            "actuated", "actuation")  # fmt: skip


def test_a_motor_on_nothing_is_refused(s):
    B = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    refused(lambda: hc.Mechanism(s.mech.model, actuation=B), hc.InputError, "column 1")


def broken(**changes):
    """The model of the four-bar with something in it that is no good."""
    model = four_bar().model.copy()
    if "mass" in changes:
        model.inertias[2] = pin.Inertia(changes["mass"], np.zeros(3), np.eye(3))
    if "lever" in changes:
        model.inertias[2] = pin.Inertia(1.0, np.full(3, changes["lever"]), np.eye(3))
    if "placement" in changes:
        model.jointPlacements[2] = _at(changes["placement"])
    if "armature" in changes:
        model.armature = np.array([0.0, changes["armature"], 0.0])
    if "gravity" in changes:
        model.gravity.linear = np.full(3, changes["gravity"])
    return model


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mass": -1.0}, ("'coupler'", "mass")),
        ({"mass": np.nan}, ("'coupler'", "mass")),
        ({"lever": np.nan}, ("'coupler'", "inertia")),
        ({"placement": np.inf}, ("'coupler'", "placement")),
        ({"armature": np.nan}, ("'coupler'", "armature")),
        ({"armature": -1.0}, ("'coupler'", "armature")),
        ({"gravity": np.nan}, ("gravity",)),
    ],
    ids=lambda x: "-".join(f"{k}={v}" for k, v in x.items()) if isinstance(x, dict) else "",
)
def test_models_with_numbers_that_are_no_good_are_refused(changes, words):
    refused(lambda: hc.Mechanism(broken(**changes)), hc.InputError, *words)


def test_two_joints_of_one_name_are_refused():
    model = pin.Model()
    for _ in range(2):
        model.addJoint(0, pin.JointModelRX(), _at(), "hinge")
    refused(lambda: hc.Mechanism(model), hc.InputError, "'hinge'")


# ------------------------------------------------------- quaternions and cosine-sine pairs

STATEFUL = {
    "assemble": lambda m, q: hc.assemble(m, q),
    "partition": lambda m, q: hc.partition(m, q),
    "project": lambda m, q: hc.project(m, q, np.zeros(m.nv)),
    "forward_dynamics": lambda m, q: hc.forward_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nv)),
    "inverse_dynamics": lambda m, q: hc.inverse_dynamics(m, q, np.zeros(m.nv), np.zeros(m.nu)),
    "torque": lambda m, q: hc.ComputedTorque(m, 1.0, 1.0).torque(
        q, np.zeros(m.nv), np.zeros(m.nu), np.zeros(m.nu), np.zeros(m.nu)
    ),
    "torque, q_ref": lambda m, q: hc.ComputedTorque(m, 1.0, 1.0).torque(
        hc.assemble(m)[0], np.zeros(m.nv), q, np.zeros(m.nu), np.zeros(m.nu)
    ),
    "simulate": lambda m, q: hc.simulate(
        m, lambda t, q, v: np.zeros(m.nu), q, np.zeros(m.nv), 0.01
    ),
    "terms": lambda m, q: hc.terms(m, q, np.zeros(m.nv)),
    "impulse": lambda m, q: hc.impulse(m, q, np.zeros(m.nv)),
    "relaxed": lambda m, q: hc.inverse_dynamics_relaxed(m, q, np.zeros(m.nv), np.zeros(m.nu)),
    "is_fully_actuated": lambda m, q: hc.is_fully_actuated(m, q),
    "constraint_wrenches": lambda m, q: hc.constraint_wrenches(m, q, np.ones(len(m.row_scale))),
    "acceleration": lambda m, q: hc.PreparedForwardDynamics(m).acceleration(
        q, np.zeros(m.nv), np.zeros(m.nv)
    ),
    "at": lambda m, q: hc.PreparedForwardDynamics(m).at(q, np.zeros(m.nv)),
    "prepared torque": lambda m, q: hc.PreparedInverseDynamics(m).torque(
        q, np.zeros(m.nv), np.zeros(m.nu)
    ),
    "holding": lambda m, q: hc.PreparedInverseDynamics(m).holding(q),
    "Mechanism": lambda m, q: dataclasses.replace(m, reference=q),
}

UNIT_PARTS = {"base": (3, "quaternion"), "wheel": (11, "cosine-sine"), "head": (13, "quaternion")}
"""Where in q of the floating leg they start."""


@pytest.mark.parametrize("joint", UNIT_PARTS)
@pytest.mark.parametrize("call", STATEFUL)
def test_configurations_that_are_not_normalised_are_told(s, call, joint):
    start, kind = UNIT_PARTS[joint]
    q = s.fq.copy()
    q[start : start + (2 if kind == "cosine-sine" else 4)] *= 1.1
    before = q.copy()
    refused(lambda: STATEFUL[call](s.floating, q), hc.InputError, "q" if "M" not in call else
            "reference", f"'{joint}'", kind, "1.1", "normalize")  # fmt: skip
    assert np.array_equal(q, before)


@pytest.mark.parametrize("joint", UNIT_PARTS)
def test_configurations_of_zeros_are_told(s, joint):
    start, kind = UNIT_PARTS[joint]
    q = s.fq.copy()
    q[start : start + (2 if kind == "cosine-sine" else 4)] = 0.0
    refused(lambda: hc.project(s.floating, q, np.zeros(14)), hc.InputError, f"'{joint}'", kind)


def test_quaternions_in_single_precision_are_good_enough(s):
    """They are off the unit sphere by 1e-7; the result is as good as any other."""
    guess = pin.integrate(s.floating.model, s.fq, np.linspace(0.3, -0.4, 14))
    q, v = hc.assemble(s.floating, guess, np.linspace(-1.0, 1.0, 14))
    coarse = q.copy()
    for start, stop in ((3, 7), (11, 13), (13, 17)):
        coarse[start:stop] = q[start:stop].astype(np.float32)
    assert not pin.isNormalized(s.floating.model, coarse, 1e-9)
    for x in (q, coarse):
        assert hc.inverse_dynamics(s.floating, x, v, np.ones(3)).certificate.ok


def composite_and_ball():
    """A composite joint that holds a ball, then a ball: the culprit is told apart."""
    composite = pin.JointModelComposite()
    composite.addJoint(pin.JointModelSpherical())
    composite.addJoint(pin.JointModelRX())
    model = pin.Model()
    _add(model, 0, composite, _at(), "wrist", _bar(0.2))
    _add(model, "wrist", pin.JointModelSpherical(), _at(0.2), "ball", _bar(0.2))
    return hc.Mechanism(model)


@pytest.mark.parametrize(("joint", "start"), [("wrist", 0), ("ball", 5)])
def test_a_ball_in_a_composite_joint_is_checked(joint, start):
    mech = composite_and_ball()
    q = np.array([0.6, 0.8, 0.0, 0.0, 0.3, 0.6, 0.8, 0.0, 0.0])
    hc.project(mech, q, np.zeros(7))
    q[start : start + 4] *= 1.1
    refused(lambda: hc.project(mech, q, np.zeros(7)), hc.InputError, f"'{joint}'")


# -------------------------------------------------------------------------- external forces


def forces(*sizes):
    """A pin.StdVec_Force."""
    out = pin.StdVec_Force()
    for size in sizes:
        out.append(pin.Force(np.full(6, size)))
    return out


@pytest.mark.parametrize(
    "f_ext", [5, 1.0, "rocker", np.zeros(6), [np.zeros(6)] * 4, [pin.Force.Zero()] * 4, len, b""]
)
def test_forces_must_be_a_mapping_or_a_vector_of_forces(s, f_ext):
    for call in (
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, f_ext),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, f_ext),
    ):
        refused(call, hc.InputError, "f_ext", "mapping", "StdVec_Force")


@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_forces_must_be_one_for_each_joint(s, count):
    for call in (
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, forces(*[1.0] * count)),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, forces(*[1.0] * count)),
    ):
        refused(call, hc.InputError, "f_ext", "4", str(count), "universe")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_forces_that_are_not_finite_are_told(s, bad):
    refused(lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, forces(0.0, 0.0, bad, 0.0)),
            hc.InputError, "f_ext[2]")  # fmt: skip
    force = pin.Force(np.array([0.0, 0.0, 0.0, 0.0, 0.0, bad]))
    refused(lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, {"rocker": force}),
            hc.InputError, "f_ext['rocker']", "entry 5")  # fmt: skip


def test_forces_are_not_changed(s):
    given_forces, force = forces(1.0, 2.0, 3.0, 4.0), {"rocker": pin.Force(s.wrench)}
    hc.forward_dynamics(s.mech, s.q, s.v, s.tau, given_forces)
    hc.inverse_dynamics(s.mech, s.q, s.v, s.one, force)
    assert [f.vector[0] for f in given_forces] == [1.0, 2.0, 3.0, 4.0]
    assert np.array_equal(force["rocker"].vector, s.wrench)


# --------------------------------------------------------- decisions and projections shared


@pytest.mark.parametrize("junk", [5, "split", {"rank": 2}, hc.Partition])
def test_what_is_no_partition_is_refused(s, junk):
    for call in (
        lambda: hc.project(s.mech, s.q, s.v, partition=junk),
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, partition=junk),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, partition=junk),
        lambda: hc.ComputedTorque(s.mech, 1.0, 1.0, partition=junk),
        lambda: hc.impulse(s.mech, s.q, s.v, partition=junk),
        lambda: relaxed(s, partition=junk),
        lambda: hc.is_fully_actuated(s.mech, s.q, partition=junk),
        lambda: hc.PreparedForwardDynamics(s.mech, junk),
        lambda: hc.PreparedInverseDynamics(s.mech, junk),
    ):
        refused(call, hc.InputError, "partition")


@pytest.mark.parametrize("junk", [5, "terms", {"M": 1}, hc.Terms])
def test_what_are_no_terms_is_refused(s, junk):
    for call in (
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, partition=s.part, terms=junk),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, partition=s.part, terms=junk),
        lambda: hc.impulse(s.mech, s.q, s.v, partition=s.part, terms=junk),
        lambda: relaxed(s, terms=junk),
    ):
        refused(call, hc.InputError, "terms", "Terms")


def test_a_partition_of_another_mechanism_is_refused(s):
    """By its coordinates, or by rows that this one has not."""
    four_coordinates = hc.partition(five_bar(), hc.assemble(five_bar())[0])
    rows = np.array([0, 4])
    five_rows = dataclasses.replace(s.part, rows=rows)
    for other in (four_coordinates, five_rows):
        for call in (
            lambda other=other: hc.project(s.mech, s.q, s.v, partition=other),
            lambda other=other: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, partition=other),
            lambda other=other: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, partition=other),
            lambda other=other: hc.ComputedTorque(s.mech, 1.0, 1.0, partition=other),
            lambda other=other: hc.impulse(s.mech, s.q, s.v, partition=other),
            lambda other=other: relaxed(s, partition=other),
            lambda other=other: hc.is_fully_actuated(s.mech, s.q, partition=other),
            lambda other=other: hc.PreparedForwardDynamics(s.mech, other),
            lambda other=other: hc.PreparedInverseDynamics(s.mech, other),
        ):
            refused(call, hc.InputError, "partition", "another mechanism")


@pytest.mark.parametrize("junk", [5, "split", hc.Projection])
def test_what_is_no_projection_is_refused(s, junk):
    for call in (
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, projection=junk),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, projection=junk),
    ):
        refused(call, hc.InputError, "projection")


def test_a_projection_of_another_mechanism_is_refused(s):
    other = hc.project(four_bar(), s.q, s.v)
    refused(lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, projection=other), hc.InputError,
            "projection", "mechanism")  # fmt: skip


@pytest.mark.parametrize("which", ["q", "v", "t", "t_stab"])
def test_a_projection_of_another_state_is_refused(s, which):
    """Of another configuration, velocity, time or stabilisation than the call asks for."""
    other = {"t_stab": 0.1} if which == "t_stab" else {"t": 1.0} if which == "t" else {}
    q = s.q + 0.01 if which == "q" else s.q
    v = s.v + 0.01 if which == "v" else s.v
    for call in (
        lambda: hc.inverse_dynamics(s.mech, q, v, s.one, projection=s.P, **other),
        lambda: hc.forward_dynamics(s.mech, q, v, s.tau, projection=s.P, **other),
    ):
        refused(call, hc.InputError, "projection")


def test_independent_accelerations_need_coordinates(s):
    P = hc.project(s.mech, s.q, s.v, method="orthonormal")
    refused(
        lambda: hc.inverse_dynamics(
            s.mech, s.q, s.v, s.one, coordinates="independent", projection=P
        ),
        hc.InputError, "independent", "orthonormal",
    )  # fmt: skip


@pytest.mark.parametrize("names", [[], ["crank", "rocker"]])
def test_the_number_of_independent_coordinates_is_told(s, names):
    refused(lambda: hc.partition(s.mech, s.q, independent=names), hc.InputError,
            "independent", "rank 2", f"got {len(names)}")  # fmt: skip


def test_a_ball_is_locked_as_a_whole(s):
    refused(lambda: hc.assemble(s.floating, locked=["head[0]"]), hc.InputError, "locked", "'head'")


# ------------------------------------------------------------ no motors, no motion, no way


def test_no_motors_no_torques(s):
    idle = with_motors(s.mech)
    e = refused(lambda: hc.inverse_dynamics(idle, s.q, s.v, []), hc.NotActuatedError, "four_bar",
                "no motors", "actuated=")  # fmt: skip
    assert not isinstance(e, ValueError)
    refused(lambda: hc.ComputedTorque(idle, 1.0, 1.0), hc.NotActuatedError, "no motors")


def test_no_motors_no_trouble_with_motion(s):
    """Everything but torques works without motors."""
    idle = with_motors(s.mech)
    assert hc.forward_dynamics(idle, s.q, s.v, np.zeros(3)).certificate.ok
    assert hc.simulate(idle, lambda t, q, v: [], s.q, s.v, 0.005).u.shape == (6, 0)


@pytest.mark.parametrize("coordinates", ["actuated", "independent", "all"])
def test_no_degree_of_freedom_no_torques(coordinates):
    """A triangle of three bars stands still whatever its motor does."""
    mech = triangle()
    q, v = hc.assemble(mech)
    target = {"actuated": [0.0], "independent": [], "all": [0.0, 0.0]}[coordinates]
    refused(lambda: hc.inverse_dynamics(mech, q, v, target, coordinates=coordinates),
            hc.NotActuatedError, "triangle", "no degree of freedom")  # fmt: skip


def test_no_degree_of_freedom_no_controller():
    mech = triangle()
    q, v = hc.assemble(mech)

    def torque(compensation):
        ctl = hc.ComputedTorque(mech, 1.0, 1.0, compensation)
        return ctl.torque(q, v, [1.0], [0.0], [0.0])

    for law in ("full", "gravity"):
        refused(lambda law=law: torque(law), hc.NotActuatedError, "no degree of freedom")


def test_no_degree_of_freedom_is_no_trouble_elsewhere():
    mech = triangle()
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q, independent=[])
    assert part.rank == 2
    assert hc.project(mech, q, v).gamma.shape == (2, 0)
    result = hc.forward_dynamics(mech, q, v, [3.0, 0.0])
    assert np.abs(result.a).max() < 1e-12
    assert result.certificate.ok
    run = hc.simulate(mech, lambda t, q, v: [1.0], q, v, 0.003)
    assert np.abs(run.q - q).max() < 1e-12


def test_motors_that_drive_nothing():
    """The only motor sits on a joint that the loop holds still."""
    model = _vertical(pin.Model())
    _add(model, 0, pin.JointModelPX(), _at(), "held", _bar(0.1))
    _add(model, "held", pin.JointModelRZ(), _at(), "swing", _bar(0.3))
    stop = hc.Coupling({"held": 1.0}, name="stop")
    mech = hc.Mechanism(model, [stop], ["held"], name="jammed")
    refused(lambda: hc.inverse_dynamics(mech, [0.0, 0.0], [0.0, 0.0], [0.0]), hc.NotActuatedError,
            "jammed", "'held'")  # fmt: skip


# ---------------------------------------------------------------------------- singularities


@pytest.mark.parametrize("given_partition", [True, False])
def test_inverse_dynamics_at_the_dead_centre(given_partition):
    mech = slider_crank("slider")
    part = hc.partition(mech, hc.assemble(mech)[0]) if given_partition else None
    e = refused(
        lambda: hc.inverse_dynamics(mech, DEAD_CENTRE, np.zeros(3), [1.0], partition=part),
        hc.SingularityError, "slider_crank", "'slider'", "condition", "dead point",
    )  # fmt: skip
    assert e.condition > 1e10
    assert e.names == ("slider",)


def test_inverse_dynamics_at_the_dead_centre_is_fine_from_the_crank():
    mech = slider_crank("crank")
    assert hc.inverse_dynamics(mech, DEAD_CENTRE, np.zeros(3), [1.0]).certificate.ok


@pytest.mark.parametrize("law", ["full", "gravity"])
def test_computed_torque_at_the_dead_centre(law):
    ctl = hc.ComputedTorque(slider_crank("slider"), 100.0, 20.0, law)
    q = np.array(DEAD_CENTRE)
    e = refused(lambda: ctl.torque(q, np.zeros(3), [0.7], [0.0], [0.0]), hc.SingularityError,
                "slider_crank", "'slider'", "condition")  # fmt: skip
    assert e.condition > 1e10
    assert "slider" in e.names
    assert q.tolist() == DEAD_CENTRE


def test_a_split_that_is_singular_at_a_state():
    mech = slider_crank("slider")
    part = hc.partition(mech, hc.assemble(mech)[0])
    e = refused(
        lambda: hc.project(mech, DEAD_CENTRE, np.zeros(3), method="split", partition=part),
        hc.SingularityError, "'crank'", "'rod'", "'slider'", "condition", "method='qr'",
    )  # fmt: skip
    assert e.names == ("crank", "rod")
    assert e.condition > 1e12
    for method in ("auto", "qr", "orthonormal"):
        P = hc.project(mech, DEAD_CENTRE, np.zeros(3), method=method, partition=part)
        assert P.rank == 2


def test_independent_coordinates_that_do_not_determine_the_others():
    mech = slider_crank("crank")
    e = refused(lambda: hc.partition(mech, DEAD_CENTRE, independent=["slider"]),
                hc.SingularityError, "'slider'", "'crank'", "'rod'", "condition")  # fmt: skip
    assert e.names == ("crank", "rod")


def test_partition_of_a_folded_parallelogram():
    mech = parallelogram()
    e = refused(lambda: hc.partition(mech, [0.0, 0.0, 0.0]), hc.SingularityError, "four_bar",
                "rank 1", "2 nearby", "singular configuration")  # fmt: skip
    assert e.names == ("pin.x",)
    assert hc.partition(mech, hc.assemble(mech, [1.0, -1.0, 1.0])[0]).rank == 2


@pytest.mark.parametrize("method", ["auto", "split", "qr", "orthonormal"])
def test_projection_of_a_folded_parallelogram(method):
    """With a decision from elsewhere: the kept rows themselves are singular."""
    mech = parallelogram()
    part = hc.partition(mech, hc.assemble(mech, [1.0, -1.0, 1.0])[0])
    e = refused(
        lambda: hc.project(mech, np.zeros(3), np.zeros(3), method=method, partition=part),
        hc.SingularityError, "condition", "four_bar",
    )  # fmt: skip
    assert e.condition > 1e12
    assert e.names


def test_a_body_without_inertia():
    model = pin.Model()
    model.addJoint(0, pin.JointModelRX(), _at(), "ghost")
    mech = hc.Mechanism(model, actuated=["ghost"])
    refused(lambda: hc.forward_dynamics(mech, [0.0], [0.0], [1.0]), hc.SingularityError,
            "no inertia")  # fmt: skip


# ------------------------------------------------------------------- inconsistent questions


def test_a_target_for_all_that_tears_the_loop(s):
    wrong = s.a + np.array([0.0, 1.0, 0.0])
    e = refused(
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, wrong, coordinates="all"),
        hc.InconsistentError, "four_bar", "inconsistent='project'",
    )  # fmt: skip
    assert 0.1 < e.residual < 10.0
    assert not isinstance(e, ValueError)
    mended = hc.inverse_dynamics(s.mech, s.q, s.v, wrong, coordinates="all", inconsistent="project")
    assert mended.certificate.ok
    exact = hc.inverse_dynamics(s.mech, s.q, s.v, s.a, coordinates="all")
    assert np.abs(exact.u - s.u).max() < 1e-9


def test_targets_for_redundant_motors_that_contradict_each_other(s):
    """Crank and rocker are both driven: the loop ties their accelerations."""
    mech = with_motors(s.mech, "crank", "rocker")
    wrong = s.a[[0, 2]] + np.array([0.0, 1.0])
    e = refused(lambda: hc.inverse_dynamics(mech, s.q, s.v, wrong), hc.InconsistentError,
                "2 motors", "1 independent", "inconsistent='project'")  # fmt: skip
    assert e.residual > 0.1
    assert hc.inverse_dynamics(mech, s.q, s.v, wrong, inconsistent="project").certificate.ok
    assert hc.inverse_dynamics(mech, s.q, s.v, s.a[[0, 2]]).certificate.ok


def test_partition_at_an_open_configuration(s):
    e = refused(lambda: hc.partition(s.mech, s.q + np.array([0.1, 0.0, 0.0])), hc.InconsistentError,
                "four_bar", "not closed", "hc.assemble")  # fmt: skip
    assert 1e-3 < e.residual < 1.0


def test_simulation_from_an_open_configuration(s):
    controller = lambda t, q, v: np.zeros(1)  # noqa: E731
    e = refused(lambda: hc.simulate(s.mech, controller, s.q + 0.1, s.v, 0.01),
                hc.InconsistentError, "not on the constraints", "hc.assemble")  # fmt: skip
    assert e.residual > 1e-3
    e = refused(lambda: hc.simulate(s.mech, controller, s.q, s.v + np.array([1.0, 0.0, 0.0]), 0.01),
                hc.InconsistentError, "not on the constraints", "hc.assemble")  # fmt: skip
    assert e.residual > 1e-3


def test_a_bad_certificate_raises_on_request(s):
    opened = s.q + np.array([0.01, 0.0, 0.0])
    off = hc.inverse_dynamics(s.mech, opened, s.v, [1.0], partition=s.part)
    assert not off.certificate.ok
    refused(off.raise_if_bad, hc.InconsistentError, "NOT certified")
    refused(hc.forward_dynamics(s.mech, opened, s.v, s.tau).raise_if_bad,
            hc.InconsistentError, "NOT certified")  # fmt: skip


def test_no_false_alarm_in_free_fall(s):
    """Where M a and h cancel there is no effort to measure a residual by but rounding."""
    result = hc.inverse_dynamics(s.floating, s.fq, np.zeros(14), np.zeros(3))
    assert np.abs(result.a - np.eye(14)[2] * -9.81).max() < 1e-9
    assert result.certificate.ok, str(result.certificate)


# --------------------------------------------------------------------------------- assembly


def test_bars_too_long_to_meet():
    mech = triangle(length=2.0)
    guess = np.array([0.9, 2.2])
    e = refused(lambda: hc.assemble(mech, guess), hc.AssemblyError, "triangle", "tip.", "too long")
    assert guess.tolist() == [0.9, 2.2]
    assert 0.1 < e.residual < 1.0
    names = [name for name, _ in e.worst]
    assert names
    assert set(names) <= {"tip.x", "tip.y"}
    sizes = [size for _, size in e.worst]
    assert sizes == sorted(sizes, reverse=True)
    assert abs(sizes[0] - e.residual) < 1e-12
    assert e.q.shape == (2,)
    assert np.isfinite(e.q).all()


def test_the_best_configuration_of_a_failed_assembly_is_the_best():
    """Bars of 2.0 and 0.4 on hinges 0.5 apart miss each other by 1.1 at least."""
    mech = triangle(length=2.0)
    e = refused(lambda: hc.assemble(mech), hc.AssemblyError)
    tips = [np.array([0.4 * np.cos(e.q[0]), 0.4 * np.sin(e.q[0])]),
            np.array([0.5 + 2.0 * np.cos(e.q[1]), 2.0 * np.sin(e.q[1])])]  # fmt: skip
    assert abs(np.linalg.norm(tips[1] - tips[0]) - 1.1) < 0.02


def test_frames_that_face_opposite_ways():
    mech = facing_away()
    e = refused(lambda: hc.assemble(mech), hc.AssemblyError, "four_bar", "'pin'",
                "opposite directions", "half a turn")  # fmt: skip
    assert e.q.shape == (3,)
    assert np.isfinite(e.q).all()
    refused(lambda: hc.ComputedTorque(mech, 1.0, 1.0), hc.AssemblyError, "opposite directions")


def test_locked_coordinates_that_leave_no_way(s):
    wrong = s.q + np.array([0.1, 0.0, 0.0])
    e = refused(lambda: hc.assemble(s.mech, wrong, locked=["crank", "coupler", "rocker"]),
                hc.AssemblyError, "four_bar", "pin.", "locked")  # fmt: skip
    assert np.array_equal(e.q, wrong)
    assert e.worst


def test_locked_rates_that_contradict_each_other(s):
    e = refused(
        lambda: hc.assemble(s.mech, s.q, [1.0, 0.0, 1.0], locked=["crank", "rocker"]),
        hc.AssemblyError, "velocity", "pin.",
    )  # fmt: skip
    assert e.residual > 1e-3
    assert {name for name, _ in e.worst} <= {"pin.x", "pin.y"}


def test_couplings_that_contradict_each_other(s):
    gears = [
        hc.Coupling({"crank": 1.0}, offset=0.1, name="one"),
        hc.Coupling({"crank": 1.0}, offset=0.3, name="two"),
    ]
    mech = hc.Mechanism(s.mech.model, gears)
    e = refused(lambda: hc.assemble(mech), hc.AssemblyError, "one.sum", "two.sum")
    assert abs(e.residual - 0.1) < 1e-3
    assert abs(e.q[0] - 0.2) < 1e-3


def test_failure_needs_no_log_and_no_guess(s, caplog):
    refused(lambda: hc.assemble(triangle(length=2.0)), hc.AssemblyError)
    assert not caplog.records


# ------------------------------------------------------------------------------ controllers

RETURNS = {
    "nothing": None, "a word": "full", "too many": np.zeros(2), "a matrix": np.zeros((1, 1)),
    "none": [], "NaN": [np.nan], "infinity": np.array([np.inf]), "words": ["a"],
}  # fmt: skip


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("junk", RETURNS)
def test_what_a_controller_must_not_return(s, junk, hold):
    """At once, or later: the note on the error has the name and the time."""

    def controller(t, q, v):
        return np.zeros(1) if t < 0.003 else RETURNS[junk]

    e = refused(lambda: hc.simulate(s.mech, controller, s.q, s.v, 0.01, hold=hold), hc.InputError,
                "controller")  # fmt: skip
    (note,) = e.__notes__
    assert "four_bar" in note
    assert "t = 0.003 s" in note or (not hold and "t = 0.002 s" in note)


def test_the_note_survives_pickling(s):
    e = refused(lambda: hc.simulate(s.mech, lambda t, q, v: None, s.q, s.v, 0.01))
    assert pickle.loads(pickle.dumps(e)).__notes__ == e.__notes__
    assert "t = 0 s" in e.__notes__[0]


def test_an_error_of_the_controller_itself_comes_through(s):
    def controller(t, q, v):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        hc.simulate(s.mech, controller, s.q, s.v, 0.01)


@pytest.mark.parametrize("hold", [True, False])
def test_a_controller_that_writes_into_its_arguments_moves_nothing(s, hold):
    def vandal(t, q, v):
        with contextlib.suppress(ValueError):  # read-only arguments are fine too
            q[:], v[:] = 7.0, 7.0
        return np.zeros(1)

    run = hc.simulate(s.mech, vandal, s.q, s.v, 0.003, hold=hold)
    assert np.array_equal(run.q, simulated(s, duration=0.003, hold=hold).q)


@pytest.mark.parametrize("junk", [None, 5, "track", np.zeros(1)])
def test_what_is_no_controller_is_refused(s, junk):
    refused(lambda: hc.simulate(s.mech, junk, s.q, s.v, 0.01), hc.InputError, "controller")


@pytest.mark.parametrize("junk", [None, 5, "circle", (1.0, 0.0, 0.0)])
def test_what_is_no_reference_is_refused(s, junk):
    refused(lambda: s.ctl.track(junk), hc.InputError, "reference")


@pytest.mark.parametrize(
    "returned",
    [None, 5, "abc", [], ([1.0], [0.0]), ([1.0], [0.0], [0.0], [0.0]), ([1.0], None, [0.0]),
     ([np.nan], [0.0], [0.0]), ([1.0, 2.0], [0.0], [0.0]), (["a"], [0.0], [0.0])],
)  # fmt: skip
def test_what_a_reference_must_not_return(s, returned):
    controller = s.ctl.track(lambda t: returned)
    refused(lambda: controller(0.0, s.q, s.v), hc.InputError)
    e = refused(lambda: hc.simulate(s.mech, controller, s.q, s.v, 0.01), hc.InputError)
    assert "t = 0 s" in e.__notes__[0]


def test_a_plant_that_does_not_match_is_refused(s):
    for plant, what in ((five_bar(), "coordinates"), (with_motors(s.mech, "rocker"), "motors")):
        refused(
            lambda plant=plant: hc.simulate(
                s.mech, lambda t, q, v: [0.0], s.q, s.v, 0.01, plant=plant
            ),
            hc.InputError, "plant", what,
        )  # fmt: skip


def test_motors_without_a_position_need_a_whole_reference(s):
    mech = with_motors(s.floating, "base[5]")
    ctl = hc.ComputedTorque(mech, 1.0, 1.0)
    refused(lambda: ctl.torque(s.fq, np.zeros(14), [0.0], [0.0], [0.0]), hc.InputError,
            "'base[5]'", f"({mech.nq},)")  # fmt: skip
    assert np.isfinite(ctl.torque(s.fq, np.zeros(14), s.fq, [0.0], [0.0])).all()


def test_a_general_actuation_needs_a_whole_reference(s):
    mech = hc.Mechanism(s.mech.model, s.mech.constraints, actuation=s.B, reference=s.q)
    ctl = hc.ComputedTorque(mech, 1.0, 1.0)
    refused(lambda: ctl.torque(s.q, s.v, [1.0], [0.0], [0.0]), hc.InputError, "q_ref", "(3,)")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_beyond_floats_is_given(s):
    """Where squares of velocities overflow: an error, or a certificate that says no."""
    v = 1e200 * s.v
    refused(lambda: s.ctl.torque(s.q, v, s.one, s.one, s.one), hc.InputError, "finite")
    refused(lambda: hc.project(s.mech, s.q, v, partition=s.part), hc.InputError, "finite")
    for call in (
        lambda: hc.inverse_dynamics(s.mech, s.q, v, s.one, partition=s.part),
        lambda: hc.forward_dynamics(s.mech, s.q, v, s.tau, partition=s.part),
    ):
        with contextlib.suppress(hc.InputError):
            assert not call().certificate.ok


# --------------------------------------------------------------------- the family of errors

FAMILY = {
    hc.HoloctlError: {},
    hc.InputError: {},
    hc.NotActuatedError: {},
    hc.LoadError: {"file": "robot.yaml", "key": "name_mot", "line": 7},
    hc.AssemblyError: {"residual": 0.5, "worst": [("pin.x", 0.5)], "q": np.arange(3.0)},
    hc.SingularityError: {"condition": 1e15, "names": ["crank", "rod"]},
    hc.InconsistentError: {"residual": 0.25},
}


def test_the_family_is_complete():
    public = {getattr(hc, name) for name in hc.__all__ if name.endswith("Error")}
    assert public == set(FAMILY)
    assert all(issubclass(cls, hc.HoloctlError) for cls in FAMILY)
    assert [cls for cls in FAMILY if issubclass(cls, ValueError)] == [hc.InputError]


@pytest.mark.parametrize("cls", FAMILY)
def test_errors_pickle_and_copy_with_their_data(cls):
    error = cls("what went wrong", **FAMILY[cls])
    error.add_note("in the simulation, at t = 0.5 s")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert_same_error(pickle.loads(pickle.dumps(error, protocol)), error)
    assert_same_error(copy.copy(error), error)
    assert_same_error(copy.deepcopy(error), error)


@pytest.mark.parametrize("cls", FAMILY)
def test_errors_need_no_data(cls):
    error = cls("what went wrong")
    assert str(error) == "what went wrong"
    assert_same_error(pickle.loads(pickle.dumps(error)), error)


def test_errors_hold_their_data():
    e = hc.AssemblyError("no", **FAMILY[hc.AssemblyError])
    assert (e.residual, e.worst, e.q.tolist()) == (0.5, (("pin.x", 0.5),), [0.0, 1.0, 2.0])
    e = hc.SingularityError("no", **FAMILY[hc.SingularityError])
    assert (e.condition, e.names) == (1e15, ("crank", "rod"))
    e = hc.LoadError("no", **FAMILY[hc.LoadError])
    assert str(e) == "robot.yaml:7: no"
    assert (e.file, e.key, e.line) == ("robot.yaml", "name_mot", 7)
    assert hc.InconsistentError("no", residual=0.25).residual == 0.25


def test_errors_of_a_worker_process_arrive_whole():
    """Pickling is what makes them pass from a pool of processes; here by hand."""
    e = refused(lambda: hc.assemble(triangle(length=2.0)), hc.AssemblyError)
    twin = pickle.loads(pickle.dumps(e))
    assert twin.worst == e.worst
    assert np.array_equal(twin.q, e.q)


# ------------------------------------------------------------------------- anything at all

numbers = st.one_of(
    st.floats(), st.floats(-2.0, 2.0), st.integers(), st.sampled_from([1e300, -1e160, 10**400])
)
no_numbers = st.one_of(st.none(), st.text(max_size=2), st.sampled_from([np.nan, np.inf, 1e300]))
nothing_good = st.one_of(
    st.none(), st.text(max_size=5), st.booleans(), numbers, st.binary(max_size=3),
    st.complex_numbers(), st.dictionaries(st.text(max_size=3), numbers, max_size=2),
    st.recursive(
        st.one_of(numbers, st.none(), st.text(max_size=2)),
        lambda inner: st.lists(inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from([Ellipsis, len, np.zeros((3, 3)), np.array("a"), np.ones(3, dtype=object)]),
)  # fmt: skip


def anything(size):
    """Junk of any kind, and arrays of the right size with all sorts of numbers in them."""
    if size == 0:  # motor efforts: anything but large numbers, which take their time to integrate
        return st.one_of(no_numbers, st.lists(no_numbers, max_size=3))
    right = st.lists(numbers, min_size=size, max_size=size)
    tame = st.lists(st.floats(-4.0, 4.0), min_size=size, max_size=size)
    return st.one_of(nothing_good, right, tame, tame.map(np.array))


def is_proper(value):
    """Finite arrays, or a certificate that warns."""
    certificate = getattr(value, "certificate", None)
    if certificate is not None and not certificate.ok:
        return True
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    parts = [getattr(value, f.name) for f in fields] or list(np.atleast_1d(value))
    arrays = [x for x in parts if isinstance(x, np.ndarray | float) and np.size(x)]
    return bool(arrays) and all(np.isfinite(x).all() for x in arrays if np.asarray(x).dtype != bool)


SIZES = {
    "assemble": (3, 3, 3), "partition": (3,), "project": (3, 3), "forward_dynamics": (3, 3, 3, 6),
    "inverse_dynamics": (3, 3, 1, 6), "inverse_dynamics, all": (3, 3, 3, 6),
    "torque": (3, 3, 1, 1, 1), "ComputedTorque": (1, 1), "simulate": (3, 3),
    "controller": (0,), "Mechanism": (3, 3), "Coupling": (1, 1), "impulse": (3, 3, 2),
    "relaxed": (3, 3, 1, 1, 6), "acceleration": (3, 3, 3), "acceleration, weld": (8, 8, 8),
    "prepared torque": (3, 3, 1, 3), "constraint_wrenches": (3, 2),
}  # fmt: skip

FUNCTIONS = {
    "assemble": lambda s, q, v, w: hc.assemble(s.mech, q, v, weights=w, restarts=2, max_iter=30),
    "partition": lambda s, q: hc.partition(s.mech, q),
    "project": lambda s, q, v: hc.project(s.mech, q, v, partition=s.part),
    "forward_dynamics": lambda s, q, v, tau, f: hc.forward_dynamics(
        s.mech, q, v, tau, {"rocker": f}, partition=s.part
    ),
    "inverse_dynamics": lambda s, q, v, a, f: hc.inverse_dynamics(
        s.mech, q, v, a, {"rocker": f}, partition=s.part
    ),
    "inverse_dynamics, all": lambda s, q, v, a, f: hc.inverse_dynamics(
        s.mech, q, v, a, {"rocker": f}, "all", inconsistent="project", partition=s.part
    ),
    "torque": lambda s, *x: s.ctl.torque(*x),
    "ComputedTorque": lambda s, kp, kd: hc.ComputedTorque(s.mech, kp, kd, partition=s.part),
    "impulse": lambda s, q, v, v_plus: hc.impulse(s.mech, q, v, v_plus, partition=s.part),
    "relaxed": lambda s, q, v, a, W, f: relaxed(
        s, q=q, v=v, target=a, stiffness=W, f_ext={"rocker": f}
    ),
    "acceleration": lambda s, *x: s.forward.acceleration(*x),
    "acceleration, weld": lambda s, *x: s.welded.acceleration(*x),
    "prepared torque": lambda s, q, v, a, tau: s.inverse.torque(q, v, a, efforts=tau),
    "constraint_wrenches": lambda s, q, x: hc.constraint_wrenches(s.mech, q, x)["pin"][1].force,
    "simulate": lambda s, q, v: hc.simulate(s.mech, lambda t, q, v: [0.0], q, v, 0.002),
    "controller": lambda s, u: hc.simulate(s.mech, lambda t, q, v: u, s.q, s.v, 0.002),
    "Mechanism": lambda s, q, B: hc.Mechanism(s.mech.model, reference=q, actuation=B),
    "Coupling": lambda s, c, b: hc.Mechanism(s.mech.model, [hc.Coupling({"crank": c}, b)]),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers beyond floats on the way
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@settings(max_examples=150)
@given(data=st.data())
def test_anything_at_all_gives_a_proper_result_or_an_error_of_the_family(shared, function, data):
    """One to all of the array arguments are junk; the others are what they should be."""
    s = shared
    good = {
        "assemble": (s.q, s.v, s.weights), "partition": (s.q,), "project": (s.q, s.v),
        "forward_dynamics": (s.q, s.v, s.tau, s.wrench),
        "inverse_dynamics": (s.q, s.v, s.one, s.wrench),
        "inverse_dynamics, all": (s.q, s.v, s.a, s.wrench),
        "torque": (s.q, s.v, s.one, s.one, s.one), "ComputedTorque": (s.one, s.one),
        "simulate": (s.q, s.v), "controller": (s.u,), "Mechanism": (s.q, s.B),
        "Coupling": (1.0, 0.0), "impulse": (s.q, s.v, np.zeros(2)),
        "relaxed": (s.q, s.v, s.one, np.eye(1), s.wrench), "acceleration": (s.q, s.v, s.tau),
        "acceleration, weld": (s.eight, np.zeros(8), np.ones(8)),
        "prepared torque": (s.q, s.v, s.one, s.tau), "constraint_wrenches": (s.q, np.ones(2)),
    }[function]  # fmt: skip
    first = data.draw(st.integers(0, len(good) - 1), "which")
    arguments = [
        data.draw(anything(n) if i == first or data.draw(st.booleans()) else st.just(x))
        for i, (n, x) in enumerate(zip(SIZES[function], good, strict=True))
    ]
    before = copy.deepcopy(arguments)
    result = None
    with contextlib.suppress(hc.HoloctlError):
        result = FUNCTIONS[function](s, *arguments)
    assert result is None or is_proper(result)
    np.testing.assert_equal(arguments, before)
