"""Measurements: arrays and files, what is refused, and what is told."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

import holoctl as hc

T = np.arange(0.0, 0.5, 0.01)
X = np.column_stack([np.sin(3.0 * T), np.cos(2.0 * T)])
U = np.column_stack([np.cos(T), 2.0 * np.cos(T)])
NAMES = ("left", "right")


def test_tables_and_gains():
    data = hc.Measurements(T, X, U, NAMES, motors=NAMES, gain={"left": 2.0, "right": -0.5})
    assert np.allclose(data.efforts, U * [2.0, -0.5])
    assert np.allclose(hc.Measurements(T, X, U, gain=3.0).efforts, 3.0 * U)
    assert data.order_of(("right", "left")).tolist() == [1, 0]
    again = pickle.loads(pickle.dumps(data))
    assert np.array_equal(again.efforts, data.efforts)
    assert not data.positions.flags.writeable
    coarse = hc.Measurements(T, np.round(X / 0.01) * 0.01, U)
    assert np.allclose(coarse.resolution, 0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": np.append(T[:-1], T[-2])}, r"t\[49\] = 0.48 repeats the time before"),
        ({"t": np.concatenate([T[:25], T[:25]])}, r"t\[25\] = 0 is earlier .* two logs in one"),
        ({"t": np.where(T > 0.3, T + 40.0, T)}, "t jumps by 40.01 s at sample 31.* clock"),
        ({"t": np.where(T[7] == T, np.nan, T)}, r"t\[7\] is nan"),
        ({"t": T[:3]}, "4 times or more"),
        ({"positions": X[:-1]}, r"a row for each of 50 times; got shape \(49, 2\)"),
        ({"positions": np.where(X > 0.99, np.inf, X)}, r"positions\[.*\] is inf; nan means"),
        ({"positions": np.full(X.shape, np.nan)}, "fewer than 4 rows without nan"),
        ({"efforts": U[:, 0], "motors": NAMES}, "a column for each of 'left', 'right'; got 1"),
        ({"rates": X[:, :1]}, "rates must have the shape of positions"),
        ({"gain": [1.0]}, "gain"),
        ({"gain": {"left": 1.0}}, "requires motors="),
        ({"gain": {"left": 1.0}, "motors": NAMES}, "no entry for 'right'"),
        ({"gain": {"up": 1.0}, "motors": NAMES}, "no motor called 'up'"),
        ({"effort_limits": -1.0}, "above zero"),
        ({"motors": "left"}, "list of names"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(change, message):
    with pytest.raises(hc.InputError, match=message):
        hc.Measurements(**({"t": T, "positions": X, "efforts": U} | change))


def test_a_pause_at_rest_or_with_motion_is_no_jump_of_the_clock():
    late = np.where(T > 0.3, T + 4.0, T)
    moved = np.column_stack([np.sin(3.0 * late), np.cos(2.0 * late)])
    assert hc.Measurements(late, moved, U).t.size == T.size
    assert hc.Measurements(late, np.ones(X.shape), U).t.size == T.size


# --------------------------------------------------------------------------------------- files


COLUMNS = {"t": T, "left.q": X[:, 0], "right.q": X[:, 1], "left.u": U[:, 0], "right.u": U[:, 1]}


def written(file, columns, separator=","):
    longest = max(len(x) for x in columns.values())
    rows = [separator.join(columns)]
    for i in range(longest):
        cells = [x[i] if i < len(x) else np.nan for x in columns.values()]
        rows.append(separator.join("" if np.isnan(x) else repr(float(x)) for x in cells))
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("kind", ["csv", "semicolons", "npz", "parquet"])
def test_a_file_is_read_by_the_names_of_its_columns(kind, tmp_path):
    file = tmp_path / f"log.{'csv' if kind == 'semicolons' else kind}"
    if kind == "npz":
        np.savez(file, **COLUMNS)
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(COLUMNS), file)
    else:
        written(file, COLUMNS, ";" if kind == "semicolons" else ",")
    data = hc.Measurements.load(file)
    assert data.measured == data.motors == NAMES
    assert np.array_equal(data.t, T)
    assert np.array_equal(data.positions, X)
    assert np.array_equal(data.efforts, U)
    one = hc.Measurements.load(file, ["right"], ["left"], gain=2.0)
    assert np.array_equal(one.positions[:, 0], X[:, 1])
    assert np.array_equal(one.efforts[:, 0], 2.0 * U[:, 0])


def test_other_names_rates_empty_cells_and_efforts_at_a_slower_rate(tmp_path):
    u = U.copy()
    u[np.arange(T.size) % 4 > 0] = np.nan
    x = X.copy()
    x[7, 0] = np.nan
    columns = {"stamp": T, "enc": x[:, 0], "speed": X[:, 1], "amps": u[:, 0], "note": T}
    file = written(tmp_path / "log.csv", columns)
    names = {"t": "stamp", "left.q": "enc", "left.v": "speed", "left.u": "amps"}
    data = hc.Measurements.load(file, columns=names)
    assert np.isnan(data.positions[:, 0]).tolist() == np.isnan(x[:, 0]).tolist()
    assert np.array_equal(data.rates[:, 0], X[:, 1])
    assert np.array_equal(data.t_efforts, T[::4])
    assert np.array_equal(data.efforts[:, 0], U[::4, 0])
    own = {"t": T, "left.q": X[:, 0], "t_efforts": T[:30] + 0.003, "left.u": U[:30, 0]}
    data = hc.Measurements.load(written(file, own))
    assert np.array_equal(data.t_efforts, T[:30] + 0.003)
    assert data.efforts.shape == (30, 1)


def test_files_that_cannot_be_read_are_refused_with_the_place(tmp_path, monkeypatch):
    file = tmp_path / "log.csv"
    text = "t,left.q,left.u\n0.0,1.0,2.0\n"

    def refused(message, content=None, name="log.csv", **options):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises((hc.LoadError, hc.InputError), match=message):
            hc.Measurements.load(path, **options)

    refused("No such file", name="none.csv")
    refused(r"read from '.csv', '.npz', '.parquet'; got '.txt'", text, "log.txt")
    refused("is empty", "")
    refused(r"log.csv:3: 2 cells, but 3 columns", text + "0.1,1.0\n")
    refused(r"log.csv:3: 'x' in column 'left.q' is no number", text + "0.1,x,2\n")
    refused("separated by a point", "t;left.q;left.u\n0,1;2;3\n")
    refused("two columns are called 't'", "t,t,left.u\n0,1,2\n")
    refused("no column is a position: .* NAME.q", "t,a,left.u\n0,1,2\n")
    refused(r"no column 't'.*columns=.'t'", "time,left.q,left.u\n0,1,2\n")
    refused(r"no column 'left.w' .did you mean", text, columns={"left.q": "left.w"})
    refused("columns maps", text, columns={"angle": "left.q"})
    refused("effort|position", text, measured=[])
    refused("row 2 has positions without a time", text + ",1.0,2.0\n")
    refused("UTF-8", b"t,left.q,left.u\n\xff\xfe")
    refused("no npz file", b"nothing", "log.npz")
    np.savez(tmp_path / "table.npz", **{"t": T, "left.q": X, "left.u": U[:, 0]})
    refused("on one axis", name="table.npz")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    refused(r"pip install 'holoctl.parquet.'", b"PAR1", "log.parquet")
    assert file.exists()
