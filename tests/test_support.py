"""What the tests share is tested too: a comparison that fails says what and where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from longer import LONGER
from support import assert_coordinates_close, assert_rows_close, closed_states, mechanism, rows


def spoilt(name, entry, value):
    """Drift of a mechanism at a state, right and with one number of it wrong."""
    q, v = closed_states(name)[0]
    right = rows(mechanism(name), q, v).drift
    wrong = right.copy()
    wrong[entry] = value
    return (q, v), wrong, right


@pytest.mark.parametrize("by_size", [True, False])
@pytest.mark.parametrize("value", [17.5, -0.0625, np.nan])
def test_a_row_that_differs_is_named_with_mechanism_state_and_both_numbers(value, by_size):
    mech = mechanism("five_bar_revolute")
    (q, v), wrong, right = spoilt("five_bar_revolute", 1, value)
    assert_rows_close(mech, right, right, 1e-300, (q, v), by_size=by_size)
    with pytest.raises(AssertionError) as caught:
        assert_rows_close(mech, wrong, right, 1e-9, (q, v), what="drift", by_size=by_size)
    told = str(caught.value)
    assert told.startswith(f"five_bar: drift of {mech.constraint_names[0]}.y: found ")
    for number in (float(value), float(right[1])):
        assert repr(number) in told
    assert f"q = {q.tolist()}\nv = {v.tolist()}" in told


def test_the_worst_entry_is_named_of_matrices_and_of_coordinates_too():
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    G = rows(mech, q, v).jacobian
    wrong = G.copy()
    wrong[0, 1] += 1e-6
    wrong[1, 2] += 1e-3
    with pytest.raises(AssertionError, match=r"four_bar: G of pin\.y, column 2: .*\nstate: first"):
        assert_rows_close(mech, wrong, G, 1e-9, "first", what="G")
    with pytest.raises(AssertionError, match=r"four_bar: a of rocker: found 4\.0, expected 3\.0"):
        assert_coordinates_close(mech, [1.0, 2.0, 4.0], [1.0, 2.0, 3.0], 0.1)


def test_what_has_another_shape_is_not_close():
    mech = mechanism("four_bar")
    for found, expected in ((np.zeros(2), np.zeros(1)), (np.zeros(3), np.zeros(3)), ([[0.0]], 0.0)):
        with pytest.raises(AssertionError, match="four_bar: rows: "):
            assert_rows_close(mech, found, expected, 1.0)
    with pytest.raises(AssertionError, match=r"off by 0\.5, tolerance 0\.5"):  # as `<` says
        assert_rows_close(mech, [0.0, 0.5], 0.0, 0.5)


@pytest.mark.parametrize("file", LONGER)
def test_what_is_marked_slow_by_name_is_there(file):
    text = (Path(__file__).parent / file).read_text("utf-8")
    for entry in LONGER[file]:
        name = entry if isinstance(entry, str) else entry[0]
        assert f"def {name.partition('[')[0]}(" in text, name
