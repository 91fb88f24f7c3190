"""How long things take, in one run: medians, and ratios to Pinocchio called from Python.

.venv/bin/python benchmarks/ticks.py
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.mechanism import constraint_rows


def median_us(f: Callable[[], object], seconds: float = 0.5) -> float:
    """Median time of a call, in microseconds."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times))


def row(name: str) -> str:
    """One line of the table."""
    mech = hc.load(hc.robot_file(name))
    rng = np.random.default_rng(0)
    q, v = hc.assemble(mech, None, rng.normal(size=mech.nv))
    part = hc.partition(mech, q)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0, partition=part)
    zero, tau, data = np.zeros(mech.nu), np.zeros(mech.nv), mech.model.createData()

    def pinocchio() -> None:
        pin.rnea(mech.model, data, q, v, tau)
        pin.computeJointJacobians(mech.model, data, q)

    unit = median_us(pinocchio)
    parts = [
        lambda: constraint_rows(mech, q, v),
        lambda: ctl.torque(q, v, q, zero, zero),
        lambda: hc.forward_dynamics(mech, q, v, tau, partition=part),
        lambda: hc.inverse_dynamics(mech, q, v, zero, partition=part),
    ]
    times = [median_us(f) for f in parts]
    cells = "".join(f"{t:>10.0f} ({t / unit:>4.0f} x)" for t in times)
    return f"{name:<12}{unit:>12.1f}{cells}"


def main() -> None:
    """Print the table."""
    print(f"{platform.platform()}, Python {platform.python_version()}, pin {pin.__version__}")
    print("median us; in brackets the ratio to rnea + computeJointJacobians\n")
    columns = ("rows", "controller", "forward, cert.", "inverse, cert.")
    print(f"{'robot':<12}{'rnea + J':>12}" + "".join(f"{c:>19}" for c in columns))
    for name in hc.robot_names():
        print(row(name))


if __name__ == "__main__":
    main()
