"""What laws are laid out from does not change behind a mechanism."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from support import closed_states, mechanism, shared_partition

import holoctl as hc
from holoctl.base.checks import as_given


def test_what_laws_are_laid_out_from_cannot_be_written_to():
    """No array of a public field, for each is read once and would be another robot's later."""
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    weights = np.array([1.0, 2.0])
    laws = [
        hc.PreparedInverseDynamics(mech, part, weights),
        hc.PreparedForwardDynamics(mech, part),
        hc.ComputedTorque(mech, 1.0, 2.0, partition=part, weights=weights),
        hc.compile(mech, ["inverse_dynamics"], partition=part, weights=weights, flags=["-O0"]),
    ]
    values = [mech, part, *laws]
    arrays = 0
    for value in [*values, *(pickle.loads(pickle.dumps(x)) for x in [mech, part, *laws])]:
        for name in vars(value):
            entry = getattr(value, name)
            if isinstance(entry, np.ndarray) and not name.startswith("_"):
                assert not entry.flags.writeable, (type(value).__name__, name)
                arrays += 1
    assert arrays > 20
    weights[0] = 7.0  # the caller's own stays the caller's
    assert laws[0].weights[0] == 1.0
    own = np.array([0, 1])
    again = dataclasses.replace(part, rows=own)
    own[0] = 5
    assert again.rows[0] == 0


def test_arrays_that_went_through_a_pickle_are_those_of_before():
    """Their dtype is an equal one, but not the same object."""
    mech, (q, v) = mechanism("five_bar"), closed_states("five_bar")[0]
    prepared = hc.PreparedInverseDynamics(mech, shared_partition("five_bar"))
    q, v, target, out = pickle.loads(pickle.dumps((q, v, np.ones(2), np.zeros(2))))
    assert out.dtype is not np.zeros(2).dtype
    assert prepared.torque(q, v, target, out=out) is out
    assert (out == prepared.torque(q, v, target)).all()
    assert as_given("q", q, mech.nq) is q
    with pytest.raises(hc.InputError, match="out must be an array of 2 floats"):
        prepared.torque(q, v, target, out=np.zeros(2, dtype=">f8"))


def test_descriptions_do_not_change_behind_a_mechanism():
    """Else a variant or a pickle of the mechanism would be another robot, without a word."""
    place = pin.SE3(np.eye(3), np.array([0.1, 0.2, 0.3]))
    described = [
        hc.Closure(("a", place), ("b", place), joint="spherical"),
        hc.Rod(("a", place), "b", 1.0),
        hc.Contact(("a", place)),
    ]
    place.translation = np.zeros(3)  # the caller's own
    for c in described:
        frame = c.frame if isinstance(c, hc.Contact) else c.a
        for change in (
            lambda X: setattr(X, "translation", np.zeros(3)),
            lambda X: setattr(X, "rotation", np.eye(3)),
            lambda X: X.translation.__setitem__(0, 7.0),
            lambda X: X.rotation.__setitem__(0, 7.0),
            lambda X: X.setIdentity(),
            lambda X: X.setRandom(),
        ):
            for X in (frame[1], pickle.loads(pickle.dumps(frame[1])), copy.deepcopy(frame[1])):
                with pytest.raises((hc.InputError, ValueError), match=r"does not change|read-only"):
                    change(X)
        for again in (pickle.loads(pickle.dumps(c)), copy.copy(c), copy.deepcopy(c)):
            other = again.frame if isinstance(c, hc.Contact) else again.a
            assert other == frame
            assert other[1].translation.tolist() == [0.1, 0.2, 0.3]
        assert dataclasses.replace(c, name="new").name == "new"
    given = {"a": 1.0, "b": -2.0}
    gear = hc.Coupling(given, offset=0.1, t_stab=1.0)
    given["a"] = 7.0
    with pytest.raises(TypeError):
        gear.coefficients["a"] = 7.0
    for again in (gear, pickle.loads(pickle.dumps(gear)), copy.deepcopy(gear), copy.copy(gear),
                  dataclasses.replace(gear, name=None)):  # fmt: skip
        assert again.coefficients == {"a": 1.0, "b": -2.0}
        assert (again.offset, again.name, again.t_stab) == (0.1, None, 1.0)
        with pytest.raises(TypeError):
            again.coefficients["a"] = 7.0
    own = hc.Custom(lambda q: q[:2], rows=2, scale=[1.0, 2.0])
    assert own.scale == (1.0, 2.0)
