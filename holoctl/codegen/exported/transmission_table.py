"""The C library of a table of a transmission: Chebyshev series of motor positions.

The numbers of the self-test come from the table in Python (transmission/table.py).
"""

from __future__ import annotations

import numpy as np

from holoctl.base.checks import Array
from holoctl.base.tolerances import SELF_TEST_STATES
from holoctl.codegen.c_text import arrays, comment, number
from holoctl.codegen.exported.transmission import hashed_files
from holoctl.transmission.table import EDGE, TransmissionTable

__all__ = ["table_files"]

SAME_SUM = 1e-13
"""Largest difference of C and Python in the self-test, relative to the sum of sizes of terms."""


def table_files(table: TransmissionTable, prefix: str) -> dict[str, str]:
    """Name to text of every file."""
    p, nu = len(table.joints), len(table.motors)
    c = table.coefficients
    c = np.pad(c, [(0, int(n == 1)) for n in c.shape[:-1]] + [(0, 0)])  # C starts with two terms
    lanes = [int(np.prod(c.shape[i + 1 :])) for i in range(p)]
    sizes = [f"N_{i + 1} = {c.shape[i]}, LANES_{i + 1} = {lanes[i]}" for i in range(p)]
    known, tolerances = _known(table)
    values: dict[str, object] = {
        "title": comment(table.name), "what": "motor positions, Jacobian and curvature as a table",
        "joints": p, "nu": nu, "second": p > 1, "third": p > 2, "longest": max(c.shape[:-1]),
        "last": ("first", "second", "third")[p - 1], "sizes": ", ".join(sizes),
        "EDGE": number(EDGE), "size": " x ".join(str(n) for n in table.coefficients.shape),
        "numbers": arrays(
            middle=0.5 * (table.upper + table.lower), scales=2.0 / (table.upper - table.lower),
            place=3 ** np.arange(p)[::-1], coefficients=c.reshape(-1),
        ), "known": known, "tolerances": arrays(tolerances=tolerances),
        "joint_table": _joint_table(table), "motor_table": _motor_table(table),
        "ticks": SELF_TEST_STATES, "left_out": False, "left_out_items": "",
    }  # fmt: skip
    return hashed_files("table", prefix, values)


def _joint_table(table: TransmissionTable) -> str:
    return "\n".join(
        f" *   y[{i}]  {comment(name)}, {number(table.lower[i])} to {number(table.upper[i])}"
        for i, name in enumerate(table.joints)
    )


def _motor_table(table: TransmissionTable) -> str:
    errors = zip(
        table.motors, table.error, table.jacobian_error.max(axis=1),
        table.curvature_error.sum(axis=(1, 2)), strict=True,
    )  # fmt: skip
    return "\n".join(
        f" *   q_m[{i}]  {comment(name)}: {number(_up(a))}, {number(_up(b))}, {number(_up(c))}"
        for i, (name, a, b, c) in enumerate(errors)
    )


def _up(x: float) -> float:
    """Three digits, rounded up."""
    return float(f"{x * 1.005:.2e}")


def _known(table: TransmissionTable) -> tuple[str, Array]:
    """Postures of the self-test with results of Python; tolerances of positions, J and bend."""
    rng, p = np.random.default_rng(64), len(table.joints)
    y = rng.uniform(table.lower, table.upper, (SELF_TEST_STATES, p))
    yd = rng.normal(size=y.shape)
    found = table.motor_positions(y), table.jacobian(y), table.curvature(y, yd)
    size = np.abs(table.coefficients).max(axis=-1)
    k = np.indices(size.shape).max(axis=0)
    slope = k**2 * 2.0 / float((table.upper - table.lower).min())
    sums = [float((size * w).sum()) for w in (1.0, slope, slope**2)]
    rates = 1.0, 1.0, float((np.abs(yd).sum(axis=1) ** 2).max())
    known = arrays(
        lower=table.lower, upper=table.upper, known_y=y, known_yd=yd, known_q_m=found[0],
        known_jacobian=found[1].reshape(len(y), -1), known_bend=found[2],
    )  # fmt: skip
    return known, SAME_SUM * np.maximum(sums, 1.0) * rates
