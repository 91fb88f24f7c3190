"""What tests of refusals share: an error and its words, and a four-bar with what functions take."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
from types import SimpleNamespace

import numpy as np
import pytest
from support import together
from zoo import closed_chain, floating_leg, four_bar, standing_leg

import holoctl as hc

KINDS = ("'spherical'", "'revolute'", "'prismatic'", "'cylindrical'", "'universal'", "'planar'",
         "'weld'")  # fmt: skip
"""The joints that can close, as messages name them."""


def with_motors(mech, *motors):
    return dataclasses.replace(mech, actuated=motors)


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
        pair = getattr(twin, name), value
        np.testing.assert_equal(*(vars(x) if isinstance(x, hc.Run) else x for x in pair))


class Bench(SimpleNamespace):
    """A four-bar and what goes with it, with a repr that fits a message."""

    def __repr__(self):
        return "Bench()"


@pytest.fixture(scope="module")
def bench():
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
def s(bench):
    """The bench; afterwards every array in it, and the torque at the state, are as before."""
    arrays = {n: x for n, x in vars(bench).items() if isinstance(x, np.ndarray)}
    before = copy.deepcopy(arrays)
    yield bench
    for name, x in arrays.items():
        assert np.array_equal(x, before[name]), f"{name} was changed"
    u = hc.inverse_dynamics(bench.mech, bench.q, bench.v, [1.0], partition=bench.part).u
    assert np.array_equal(u, bench.u), "the mechanism was changed"


def relaxed(s, **changes):
    """The relaxed inverse dynamics of the four-bar."""
    arguments = {"q": s.q, "v": s.v, "target": s.one, "partition": s.part, **changes}
    return hc.methods.inverse_dynamics_relaxed(s.mech, **arguments)


def simulated(s, **changes):
    """A short run of the four-bar without torque."""
    arguments = {"duration": 0.002, **changes}
    return hc.simulate(s.mech, lambda t, q, v: np.zeros(1), s.q, s.v, **together(**arguments))


def closing(s, *frames):
    """The four-bar with one more closure, between these frames."""
    loop = hc.Closure(*frames, joint="weld", name="extra")
    return dataclasses.replace(s.mech, constraints=[*s.mech.constraints, loop])
