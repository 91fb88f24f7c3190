"""Machine code on a long motion: it keeps its rows, hands over or refuses, and is never wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import overconstrained as oc
import pytest
from exported import Exported
from motions import along_motion

import holoctl as hc

SAME = 1e-9


@pytest.fixture(scope="module")
def law():
    return hc.ComputedTorque(oc.drawn("line_symmetric_bricard")[1], 20.0, 3.0)


def states(law):
    """States on the way, with a reference, and the torque of a law that changes its rows."""
    for q, v, _ in along_motion(law.mech, 400):
        law = law.repartitioned(q, v)
        reference = law.mech.motor_positions(q), np.zeros(1), np.ones(1)
        yield (q, v, *reference), law, law.torque(q, v, *reference)


def close(u, expected):
    return np.abs(u - expected).max() <= SAME * max(1.0, np.abs(expected).max())


def test_compiled_code_serves_as_long_as_its_rows_are_kept(law):
    """As docs/realtime.md has it: compiled where it was made for, else the one that goes on."""
    fast, served = hc.compile(law, ["torque"], flags=["-O0"]), Counter()
    for state, other, u in states(law):
        serves = other.partition is fast.partition
        served[serves] += 1
        assert close((fast if serves else other).torque(*state), u)
        assert close(fast.torque(*state), u)  # by its guard, where its rows are not too bad
    assert min(served[True], served[False]) > 20
    assert fast.fallbacks > 0


def test_exported_code_refuses_where_its_rows_are_worn(law, tmp_path):
    exported, statuses = Exported(law, tmp_path), Counter()
    for state, _, u in states(law):
        status, found = exported.call("torque", *state)
        statuses[status] += 1
        assert status != "OK" or close(found, u)
    assert statuses.keys() == {"OK", "PIVOT_GROWTH", "SINGULAR"}
    assert statuses["OK"] > 350
