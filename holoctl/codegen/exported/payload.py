"""The C library of a payload estimator: mass and centre of mass from the motors, at every tick.

The closed state from measured joints (templates/closed_state.c.in), with the equations of a payload
around it (templates/payload.c.in). The numbers of the self-test come from Python.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array
from holoctl.base.errors import HoloctlError
from holoctl.codegen.batched_functions import batched_source
from holoctl.codegen.c_text import arrays, comment, normalised, number
from holoctl.codegen.casadi_import import casadi_module
from holoctl.codegen.closed_state_c import laws_of, state_values
from holoctl.codegen.exported.tables import measured_table, motor_table
from holoctl.codegen.exported.transmission import hashed_files
from holoctl.codegen.expressions import Expressions, symbolic
from holoctl.codegen.laws.border_expressions import estimator_with, sensing_of
from holoctl.codegen.laws.closed_state import closed_state
from holoctl.codegen.laws.measurement_model import unit_readings
from holoctl.codegen.laws.payload import payload_functions
from holoctl.estimation.momentum_observer import STEP_MISSED, TURNED_TICK
from holoctl.estimation.payload_estimator import PayloadEstimator
from holoctl.estimation.payload_law import CARRIED, FLOOR, SURE_MASS, WEAKEST
from holoctl.tree.position_rates import tangent

__all__ = ["payload_files"]

LAW = "HOLOCTL_DIVIDES static"

TICKS = 100
"""Of the self-test."""

WALK, SHORTEST_WALK = 2.0, 1e-3
"""Rates of the self-test, 1/s, scaled; the slowest if a singular configuration is close."""


def payload_files(payload: PayloadEstimator, prefix: str) -> dict[str, str]:
    """Name to text of every file."""
    mech, observer = payload.mech, payload.observer
    E = symbolic(mech, observer.partition)
    estimator = estimator_with(mech, E.partition, None, observer._given_estimator)
    sensing = sensing_of(estimator)
    law, sensors = closed_state(E, sensing), sensing.sensors
    noisy, k = payload.rate_noise > 0.0, E.partition.independent.size
    functions = payload_functions(E, payload.placed, noisy)
    values: dict[str, object] = {
        **state_values(E, law, prefix), "title": comment(mech.name),
        "frame": comment(payload.frame),
        "nq": mech.nq, "nv": mech.nv, "nu": mech.nu,
        "measured_table": measured_table(sensors), "motor_table": motor_table(mech),
        "timed": True, "controlled": False, "transmission": True, "plant": False,
        "unit_measured": normalised("x", unit_readings(E, sensors)),
        "normalise_unit": normalised("unit", E.tree.unit_parts), "references": "",
        "references_given": "", "start": arrays(start=sensing.start),
        "laws": batched_source([*laws_of(law), *functions], LAW), "motions": k, "noisy": noisy,
        "gammas_free": mech.nv * k, "J_size": 6 * mech.nv, "row_size": 5 * k,
        "W_size": k * k if noisy else 1, "constants": _constants(payload, E),
    }  # fmt: skip
    values |= _known(payload)
    return hashed_files("payload", prefix, values, "payload.md")


def _constants(payload: PayloadEstimator, E: Expressions) -> str:
    """Arrays and numbers of the law."""
    mech, c, free = payload.mech, payload.mech.column_scale, E.partition.independent
    T = np.array(casadi_module().Function("T", [E.q], [tangent(mech.model, E.q)])(E.samples[0]))
    q_scale, q_angle = np.zeros(mech.nq), np.ones(mech.nq, dtype=int)
    for i, row in enumerate(np.abs(T)):
        q_scale[i] = 1.0 / c[row > 0.0].max(initial=0.0) if row.any() else 1.0
        q_angle[i] = not np.isin(np.flatnonzero(row), mech.lengths[1]).any()
    for part in E.tree.unit_parts:
        q_angle[list(part)] = 0
        q_scale[list(part)] = (2.0 if len(part) == 4 else 1.0) / c.min()
    forget = 0.0 if payload.forgetting_time is None else 1.0 / payload.forgetting_time
    defines = {
        "TURN": number(2.0 * np.pi), "STEP_MISSED": number(STEP_MISSED),
        "TURNED": number(TURNED_TICK), "GAIN": number(payload.gain), "FORGET": number(forget),
        "RATE_NOISE": number(payload.rate_noise), "LENGTH": number(payload.length),
        "THRESHOLD": number(payload.threshold), "EVERY": str(payload.every),
        "WEAKEST": number(WEAKEST), "CARRIED": number(CARRIED), "FLOOR": number(FLOOR),
        "SURE_MASS": number(SURE_MASS),
    }  # fmt: skip
    return arrays(
        actuation=mech.B, spread=mech.B * payload.noise, gamma_scale=c[free] / c[:, None],
        q_scale=q_scale, q_angle=q_angle,
    ) + "".join(f"#define {name} {text}\n" for name, text in defines.items()) + "\n"  # fmt: skip


def _known(payload: PayloadEstimator) -> dict[str, object]:
    """The walk of the self-test, slower if a singular configuration is close."""
    size = WALK
    while True:
        try:
            return _walk(payload.fresh(), size)
        except HoloctlError:
            size = 0.5 * size
            if size < SHORTEST_WALK:
                raise


def _walk(payload: PayloadEstimator, size: float) -> dict[str, object]:
    """A smooth motion with some efforts, and the estimate at every tick."""
    mech, observer, own = payload.mech, payload.observer, payload.observer.estimator
    sensors, rng = own.readings, np.random.default_rng(38)
    m, along, dt = sensors.columns.size, np.zeros(mech.nv), observer.dt
    w, u = rng.uniform(10.0, 30.0, m), rng.normal(size=(TICKS, mech.nu))
    efforts = payload.noise * (u + 100.0 * rng.normal(size=mech.nu))
    of: dict[str, list[Array]] = {x: [] for x in (
        "measured_q", "measured_v", "statistic", "known", "estimate", "deviation",
    )}  # fmt: skip
    t = dt * np.arange(TICKS)
    for now, acted in zip(t, efforts, strict=True):
        x = sensors.at(pin.integrate(mech.model, own.q, dt * along))
        rates = size * np.sin(w * now) * sensors.unit
        payload.update_from_motors(x, rates, acted, now)
        along = observer._seen().v
        mass, deviation = payload.mass, payload.standard_deviations
        estimate = np.nan_to_num(np.array([mass, *payload.centre]))
        known = np.isfinite(deviation).astype(int)
        row = x, rates, payload.statistic, known, estimate, np.where(known, deviation, 0.0)
        for value, found in zip(row, of.values(), strict=True):
            found.append(np.asarray(value))
    return {"walk": arrays(**of, efforts=efforts, times=t), "ticks": TICKS}
