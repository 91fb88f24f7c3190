"""The family of errors: complete, with data, and whole after pickling and copying."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from refusals import assert_same_error, refused
from zoo import triangle

import holoctl as hc

FAMILY = {
    hc.HoloctlError: {},
    hc.InputError: {},
    hc.NotActuatedError: {},
    hc.LoadError: {"file": "robot.yaml", "key": "name_mot", "line": 7},
    hc.AssemblyError: {"residual": 0.5, "worst": [("pin.x", 0.5)], "q": np.arange(3.0)},
    hc.BranchError: {"why": "dead point"},
    hc.LimitError: {"names": ["crank", "rod.position"]},
    hc.SingularityError: {"condition": 1e15, "names": ["crank", "rod"]},
    hc.InconsistentError: {"residual": 0.25},
    hc.results.SweepError: {"item": 3},
}


def test_the_family_is_complete():
    public = {getattr(hc, name) for name in hc.__all__ if name.endswith("Error")}
    assert public | {hc.results.SweepError} == set(FAMILY)
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
