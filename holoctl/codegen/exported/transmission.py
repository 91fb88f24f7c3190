"""The C library of a transmission: motors and joints, both ways, on one branch.

The closed state from measured joints (templates/closed_state.c.in) with J = B' gamma, Jdot yd and
efforts around it (templates/transmission.c.in). The numbers of the self-test come from Python.
"""

from __future__ import annotations

import hashlib
from importlib import metadata

import numpy as np

from holoctl.base.checks import Array
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.tolerances import SELF_TEST_STATES
from holoctl.codegen.batched_functions import batched_source
from holoctl.codegen.c_style import finished
from holoctl.codegen.c_text import arrays, comment, filled, normalised, number
from holoctl.codegen.closed_state_c import laws_of, state_values
from holoctl.codegen.exported.not_exported import in_header
from holoctl.codegen.exported.tables import measured_table, motor_table
from holoctl.codegen.exported.write_files import MARK, stack_bytes, version_number
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.border_expressions import Sensing
from holoctl.codegen.laws.closed_state import closed_state
from holoctl.codegen.precision import DOUBLE, Precision
from holoctl.estimation.closed_state_estimator import ClosedStateEstimator
from holoctl.estimation.measurement_model import measurement_model
from holoctl.transmission.transmission import CONTROL_LOST, SAME_POSITION, Transmission

__all__ = ["hashed_files", "transmission_files", "transmission_library"]

LAW = "HOLOCTL_DIVIDES static"

SETTLED_AT, ROUNDED_STEP, FURTHEST = 1e-13, 1e-9, 0.5  # rad, m
"""Newton's method from motors to joints: a step that ends it; one that may be rounding if it
decreases no more; the longest one."""

WALK, SHORTEST_WALK = 0.02, 1e-6
"""Step of the self-test from tick to tick, rad or m of a joint over the size of the mechanism; and
the shortest one."""


def transmission_files(tr: Transmission, prefix: str) -> dict[str, str]:
    """Name to text of every file."""
    return transmission_library(tr, prefix)[0]


def transmission_library(tr: Transmission, prefix: str) -> tuple[dict[str, str], dict[str, object]]:
    """Name to text of every file, and the values that filled their templates."""
    mech = tr.mech
    sensors = measurement_model(mech, tr.joints)
    if sensors.turning.size:
        names = [tr.joints[i] for i in np.flatnonzero(sensors.turns)]
        raise InputError(
            f"{mech.name}: {names} are continuous joints, which a transmission in C cannot have: "
            "make them revolute, with limits"
        )
    sensing = Sensing(sensors, sensors.unit**-2 / (sensors.unit**-2).max(), tr.start)
    E = symbolic(mech, tr.partition)
    law = closed_state(E, sensing)
    nu, p = len(tr.motors), len(tr.joints)
    left_out = [] if nu >= p else [
        f"joints from motors and motor efforts: {nu} motors do not determine {p} joints"
    ]  # fmt: skip
    motors, (u_scale, y_scale) = mech.motors, tr.scales
    defines = {
        "TURN": number(2.0 * np.pi), "DET_SIGN": number(tr.det_sign),
        "CONTROL_LOST": number(CONTROL_LOST), "SAME_POSITION": number(SAME_POSITION),
        "SETTLED_AT": number(SETTLED_AT), "ROUNDED_STEP": number(ROUNDED_STEP),
        "FURTHEST": number(FURTHEST),
    }  # fmt: skip
    values: dict[str, object] = {
        **state_values(E, law, prefix), "title": comment(mech.name),
        "what": "the transmission between motors and serial joints",
        "nq": mech.nq, "nv": mech.nv, "nu": nu,
        "joint_table": measured_table(sensors, "y"), "motor_table": motor_table(mech),
        "more": max(nu, p), "fewer": min(nu, p), "square": nu == p, "determined": nu >= p,
        "keeps_control": nu == p,
        "left_out": in_header(left_out),
        "left_out_items": "\n".join(f"- {x}" for x in left_out), "timed": False,
        "controlled": False, "unit_measured": "", "transmission": True,
        "normalise_unit": normalised("unit", E.tree.unit_parts), "references": "",
        "references_given": "", "start": arrays(start=sensing.start),
        "laws": batched_source([*laws_of(law), law.drifting], LAW),
        "by_motors": arrays(
            B=mech.B, motor_place=motors.where,
            motor_turns=np.isin(np.arange(nu), motors.turning).astype(int),
            motor_start=tr.motor_start, u_scale=u_scale, y_scale=y_scale,
        ) + "".join(f"#define {name} {text}\n" for name, text in defines.items()) + "\n",
    }  # fmt: skip
    values |= _known(tr)
    files = hashed_files("transmission", prefix, values)
    return files, values


def hashed_files(
    kind: str,
    prefix: str,
    values: dict[str, object],
    readme: str = "transmission.md",
    precision: Precision = DOUBLE,
) -> dict[str, str]:
    """Name to text of every file, from the templates of a kind, with a hash of header and source;
    what all kinds have is added to the values."""
    version = metadata.version("holoctl")
    values |= {
        "P": prefix, "U": prefix.upper(), "version": version_number(version), "plant": False,
        "marker": f"{MARK} {version}: export again instead of editing.",
    }  # fmt: skip
    made = precision.text
    source = made(filled(f"{kind}.c", values))
    values["stack"] = stack_bytes(source, precision.size)
    first = made(filled(f"{kind}.h", values | {"hash": "", "content": ""}))
    found = hashlib.sha256((first + source).encode()).hexdigest()
    values |= {"hash": found[:32], "content": f"0x{found[:8]}"}
    return {
        f"{prefix}.h": made(filled(f"{kind}.h", values)), f"{prefix}.c": finished(source, prefix),
        f"{prefix}_test.c": made(filled(f"{kind}_test.c", values)),
        "CMakeLists.txt": filled("CMakeLists.txt", values),
        "README.md": filled(readme, values),
    }  # fmt: skip


def _known(tr: Transmission) -> dict[str, object]:
    """The walk of the self-test, by shorter steps if a singular configuration is close."""
    size = WALK
    while True:
        try:
            return _walk(tr, size)
        except HoloctlError:
            size = 0.5 * size
            if size < SHORTEST_WALK:
                raise


def _walk(tr: Transmission, size: float) -> dict[str, object]:
    """Joints, motors and efforts of small steps from the start, followed in Python as C will."""
    rng, p, nu = np.random.default_rng(64), len(tr.joints), len(tr.motors)
    estimator = ClosedStateEstimator(tr.mech, tr.joints, partition=tr.partition, start=tr.start)
    y, yd = tr.y_start.copy(), np.zeros(p)
    of: dict[str, list[Array]] = {"joint_y": [], "joint_yd": [], "motor_q": [], "motor_v": [],
                                  "motor_bend": [], "motor_u": [], "effort_tau": []}  # fmt: skip
    if nu >= p:
        of["joint_tau"] = []
    for _ in range(SELF_TEST_STATES):
        yd = 0.8 * yd + 0.6 * rng.normal(size=p) * tr.scales[1]
        y, u = y + size * yd, rng.normal(size=nu)
        estimator.state(y)
        tau = tr.joint_efforts(u, y)
        u = tr.motor_efforts(tau, y).u if nu >= p else u
        row = y, yd, tr.motor_positions(y), tr.motor_rates(y, yd), tr.curvature(y, yd), u, tau, tau
        for x, found in zip(row, of.values(), strict=False):
            found.append(x)
    return {"walk": arrays(**of, start_q=tr.start), "ticks": SELF_TEST_STATES}
