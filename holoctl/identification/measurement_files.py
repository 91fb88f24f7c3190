"""Files of measurements: CSV, Parquet and npz, with columns by name.

    t        NAME.q        NAME.v        NAME.u        t_efforts

Times, positions, rates and efforts in SI units; rates and `t_efforts` are optional. A unit may
follow a name, ``NAME.q [rad]``, and is checked.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holoctl.base.checks import Vector, file_path, listing, name_list, quoted, suggestion
from holoctl.base.errors import InputError, LoadError

__all__ = ["columns_of"]

SEPARATORS = ",;\t"

UNITS = {
    "t": ("s",), "t_efforts": ("s",), ".q": ("rad", "m"), ".v": ("rad/s", "m/s"),
    ".u": ("N m", "Nm", "N", "A"),
}  # fmt: skip
"""Units of columns; A for currents, which `gain` makes efforts of."""


def columns_of(
    path: Any,
    measured: Iterable[str] | None,
    motors: Iterable[str] | None,
    columns: Mapping[str, str] | None,
) -> dict[str, Any]:
    """The arguments of `Measurements` from a file."""
    file = file_path("Measurements.load: path", path)
    if file.suffix.lower() not in _READERS:
        raise LoadError(
            f"measurements are read from {listing(sorted(_READERS))}; got {file.suffix!r}",
            file=str(file),
        )
    renamed = _renamed(columns)
    try:
        called_there, read = _READERS[file.suffix.lower()](file)
    except OSError as error:
        raise LoadError(error.strerror or "cannot be read", file=str(file)) from None
    of_file = _without_units(called_there, renamed.values(), file)
    names = list(of_file)
    there = {name: renamed.get(name, name) for name in (*names, *renamed)}

    def column(name: str) -> Vector:
        wanted = there.get(name, name)
        if wanted not in names:
            raise LoadError(
                f"there is no column {wanted!r}{suggestion(wanted, names)}; columns: "
                f"{listing(names)}; columns={{{name!r}: ...}} names another one",
                file=str(file), key=name,
            )  # fmt: skip
        return read(of_file[wanted])

    def called(end: str) -> list[str]:
        return [name[: -len(end)] for name in there if name.endswith(end) and name != end]

    joints = called(".q") if measured is None else name_list("load: measured", measured)
    drives = called(".u") if motors is None else name_list("load: motors", motors)
    for what, end, those in (("position", ".q", joints), ("effort", ".u", drives)):
        if not those:
            raise LoadError(
                f"no column is a {what}: they are called NAME{end}, with the name of a joint or "
                f"motor; columns: {listing(names)}; columns={{'NAME{end}': ...}} names them",
                file=str(file),
            )
    t = column("t")
    found = _rows(t, {"positions": np.column_stack([column(f"{x}.q") for x in joints])}, "t", file)
    has = [f"{x}.v" in there for x in joints]
    if all(has):
        v = np.column_stack([column(f"{x}.v") for x in joints])
        found["rates"] = _rows(t, {"rates": v}, "t", file)["rates"]
    clock = "t_efforts" if "t_efforts" in there else "t"
    u = {"efforts": np.column_stack([column(f"{x}.u") for x in drives])}
    own = _rows(column(clock), u, clock, file)
    present = np.isfinite(own["efforts"]).all(axis=1)
    if clock == "t" and 2 * np.count_nonzero(present) <= present.size:  # a slower rate
        own = {name: x[present] for name, x in own.items()}
        clock = "t_efforts"
    if clock == "t_efforts":
        found["t_efforts"] = own["t"]
    found["efforts"] = own["efforts"]
    return found | {"measured": tuple(joints), "motors": tuple(drives)}


def _without_units(names: Sequence[str], kept: Collection[str], file: Path) -> dict[str, str]:
    """The names of the file by names without units; those that are `kept` are given as they are."""
    found = {name: name for name in names}
    for name in names:
        bare, bracket, rest = name.rpartition(" [")
        kind = bare if bare in UNITS else bare[-2:]
        if not bracket or not rest.endswith("]") or name in kept or kind not in UNITS:
            continue
        if rest[:-1] not in UNITS[kind]:
            raise LoadError(
                f"column {name!r} must be in {' or '.join(UNITS[kind])}; got {rest[:-1]!r}: "
                "convert its numbers",
                file=str(file), key=bare,
            )  # fmt: skip
        if bare in found:
            raise LoadError(f"two columns are called {bare!r}", file=str(file), key=bare)
        del found[name]
        found[bare] = name
    return found


def _renamed(columns: Any) -> dict[str, str]:
    """The file's names by ours, checked."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise InputError(f"load: columns must be a mapping of names; got {quoted(columns)}")
    for name, other in columns.items():
        ours = isinstance(name, str) and (
            name in ("t", "t_efforts") or name[-2:] in (".q", ".v", ".u")
        )
        if not ours or not isinstance(other, str):
            raise InputError(
                "load: columns maps 't', 't_efforts', 'NAME.q', 'NAME.v' and 'NAME.u' to names of "
                f"the file; got {quoted(name)}: {quoted(other)}"
            )
    return dict(columns)


def _rows(t: Vector, of: dict[str, Any], clock: str, file: Path) -> dict[str, Any]:
    """Rows that have a time; those without must be empty."""
    there = np.isfinite(t)
    for what, x in of.items():
        if len(x) != t.size:
            raise LoadError(f"{clock} has {t.size} entries, {what} {len(x)}", file=str(file))
        lost = np.flatnonzero(~there & np.isfinite(x).any(axis=1))
        if lost.size:
            raise LoadError(
                f"row {lost[0] + 1} has {what} without a time {clock!r}", file=str(file), key=clock
            )
    return {"t": t[there]} | {what: x[there] for what, x in of.items()}


# ------------------------------------------------------------------------------------- formats

Reader = tuple[Sequence[str], Callable[[str], Vector]]
"""The names of the columns, and a function that reads one."""


def _csv(file: Path) -> Reader:
    try:
        text = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise LoadError(f"is not text in UTF-8: {error.reason}", file=str(file)) from None
    if not text:
        raise LoadError("is empty", file=str(file))
    separator = max(SEPARATORS, key=text[0].count)
    names = [name.strip() for name in next(csv.reader([text[0]], delimiter=separator))]
    if twice := sorted({x for x in names if names.count(x) > 1}):
        raise LoadError(f"two columns are called {twice[0]!r}", file=str(file), line=1)
    lines = [(i, row) for i, row in enumerate(csv.reader(text, delimiter=separator), 1) if row][1:]
    for i, row in lines:
        if len(row) != len(names):
            raise LoadError(
                f"{len(row)} cells, but {len(names)} columns have a name in line 1",
                file=str(file), line=i,
            )  # fmt: skip

    def read(name: str) -> Vector:
        at, found = names.index(name), np.full(len(lines), np.nan)
        for k, (i, row) in enumerate(lines):
            cell = row[at].strip()
            try:
                if cell:
                    found[k] = float(cell)
            except ValueError:
                hint = "; decimals are separated by a point" if "," in cell else ""
                raise LoadError(
                    f"{cell[:40]!r} in column {name!r} is no number{hint}",
                    file=str(file), key=name, line=i,
                ) from None  # fmt: skip
        return found

    return names, read


def _npz(file: Path) -> Reader:
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = dict(archive.items())
    except (ValueError, EOFError) as error:
        raise LoadError(f"is no npz file of numbers: {error}", file=str(file)) from None
    except Exception as error:  # zipfile and zlib have their own errors
        if isinstance(error, OSError):
            raise
        raise LoadError(f"is no npz file: {error}", file=str(file)) from None

    def read(name: str) -> Vector:
        x = arrays[name]
        if x.ndim != 1 or x.dtype.kind not in "fiu":
            raise LoadError(
                f"{name!r} must be numbers on one axis, a column; got {x.dtype} of shape "
                f"{x.shape}: hc.Measurements(t, positions, efforts) takes tables",
                file=str(file), key=name,
            )  # fmt: skip
        column: Vector = x.astype(float)
        return column

    return tuple(arrays), read


def _parquet(file: Path) -> Reader:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise LoadError(
            "Parquet files require pyarrow: pip install 'holoctl[parquet]'", file=str(file)
        ) from None
    try:
        table = pq.read_table(file)
    except OSError:
        raise
    except Exception as error:  # pyarrow has its own errors
        raise LoadError(f"is no Parquet file: {error}", file=str(file)) from None

    def read(name: str) -> Vector:
        try:
            return np.asarray(table[name].to_numpy(), dtype=float)
        except (TypeError, ValueError):
            raise LoadError(
                f"column {name!r} is {table[name].type}, not numbers", file=str(file), key=name
            ) from None

    return tuple(map(str, table.column_names)), read


_READERS: dict[str, Callable[[Path], Reader]] = {
    ".csv": _csv, ".npz": _npz, ".parquet": _parquet
}  # fmt: skip
