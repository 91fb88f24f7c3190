"""A run as a table: columns by the names of joints and motors, with units.

    t [s]        NAME.q [rad]        NAME.v [rad/s]        NAME.u [N m]

A free or ball joint has NAME.x, .y, .z [m] and the quaternion NAME.qx ... NAME.qw instead of one
position, and rates NAME[i].v. `Measurements.load` reads these files.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, Vector, file_path, quoted
from holoctl.base.errors import InputError
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motor_units import motor_units
from holoctl.tree.coordinates import translational
from holoctl.tree.frozen_model import plain

__all__ = ["columns_of_motion", "write_table"]

_POSE = ("x [m]", "y [m]", "z [m]", "qx [1]", "qy [1]", "qz [1]", "qw [1]")


def columns_of_motion(
    mech: Mechanism, t: Vector, q: Array, v: Array, u: Array
) -> dict[str, Vector]:
    """Columns of a motion of this mechanism, by name."""
    check_mechanism(mech)
    sizes = (q.shape[1], v.shape[1], u.shape[1])
    if sizes != (mech.nq, mech.nv, mech.nu):
        raise InputError(
            f"table: the run is of another mechanism than {mech.name!r}: it has nq, nv, nu = "
            f"{sizes}, the mechanism {(mech.nq, mech.nv, mech.nu)}"
        )
    slides = translational(mech.model)
    found = {"t [s]": t} | _positions(mech, q, slides)
    for i, name in enumerate(mech.coordinate_names):
        found[f"{name}.v [{'m/s' if slides[i] else 'rad/s'}]"] = v[:, i]
    for i, (name, unit) in enumerate(zip(mech.actuator_names, motor_units(mech), strict=True)):
        found[f"{name}.u [{unit}]" if unit else f"{name}.u"] = u[:, i]
    return found


def _positions(mech: Mechanism, q: Array, slides: NDArray[np.bool_]) -> dict[str, Vector]:
    """The positions of all joints; angles of continuous joints count turns."""
    model, found = plain(mech.model), dict[str, Vector]()
    for j in range(1, model.njoints):
        name, n = str(model.names[j]), int(model.nqs[j])
        x = q[:, int(model.idx_qs[j]) : int(model.idx_qs[j]) + n]
        unit = "m" if slides[int(model.idx_vs[j])] else "rad"
        if n == 1:
            found[f"{name}.q [{unit}]"] = x[:, 0]
        elif (n, model.nvs[j]) == (2, 1):
            found[f"{name}.q [rad]"] = np.unwrap(np.arctan2(x[:, 1], x[:, 0]))
        elif n in (4, 7) and model.nvs[j] == n - 1:
            for k, part in enumerate(_POSE[-n:]):
                found[f"{name}.{part}"] = x[:, k]
        else:
            for k in range(n):
                found[f"{name}.q{k}"] = x[:, k]
    return found


def write_table(columns: Mapping[str, Vector], path: Any) -> Path:
    """Write columns as ``.csv``, ``.parquet`` or ``.npz``."""
    to = file_path("save_table: path", path)
    if to.suffix not in _WRITERS:
        raise InputError(
            f"save_table: path must end with {' or '.join(_WRITERS)}; got {quoted(str(to))}"
        )
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        _WRITERS[to.suffix](columns, to)
    except OSError as error:
        raise InputError(f"{quoted(str(to))} cannot be written: {error}") from None
    return to


def _csv(columns: Mapping[str, Vector], to: Path) -> None:
    """Numbers are written so that they are read as the same; one that is missing is empty."""
    with to.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        for row in zip(*(x.tolist() for x in columns.values()), strict=True):
            table.writerow(["" if isnan(x) else repr(x) for x in row])


def _npz(columns: Mapping[str, Vector], to: Path) -> None:
    arrays: dict[str, Any] = dict(columns)
    np.savez_compressed(to, **arrays)


def _parquet(columns: Mapping[str, Vector], to: Path) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("Parquet files require pyarrow: pip install 'holoctl[parquet]'") from None
    try:
        pq.write_table(pa.table(dict(columns)), to)
    except pa.ArrowException as error:
        raise InputError(f"{quoted(str(to))} cannot be written: {error}") from None


_WRITERS: dict[str, Callable[[Mapping[str, Vector], Path], None]] = {
    ".csv": _csv, ".parquet": _parquet, ".npz": _npz
}  # fmt: skip
