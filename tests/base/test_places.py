"""Places for results: arrays that can take them, or an error, and then they stay as they are."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from refusals import refused

import holoctl as hc

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
