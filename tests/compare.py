"""All the numbers of a mechanism, to compare two of them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows

ROUNDING = 1e-12
"""Relative error of quantities that differ by the order of operations only."""


def unlike(a, b):
    """Largest difference of two arrays, relative to 1 + their size."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    return np.abs(a - b).max(initial=0.0) / (1.0 + np.abs(b).max(initial=0.0))


def closed_state(mech, seed=0):
    """A closed configuration near the reference, and an admissible velocity of order one."""
    rng = np.random.default_rng(seed)
    guess = pin.integrate(mech.model, mech.reference, 0.1 * rng.normal(size=mech.nv))
    return hc.assemble(mech, guess, rng.normal(size=mech.nv))


def rows_at(mech, q, v):
    """All constraint rows, as four arrays."""
    rows = constraint_rows(mech, q, v)[1]
    return rows.error, rows.rate, rows.jacobian, rows.drift


def numbers(mech, q, v):
    """All a user gets from a mechanism at a state, as arrays by name."""
    target = np.linspace(-1.0, 2.0, mech.nu)
    part = hc.partition(mech, q)
    P = hc.project(mech, q, v, partition=part)
    inverse = hc.inverse_dynamics(mech, q, v, target, inconsistent="project", projection=P)
    forward = hc.forward_dynamics(mech, q, v, mech.B @ inverse.u, projection=P)
    error, rate, jacobian, drift = rows_at(mech, q, v)
    return {
        "error": error, "rate": rate, "jacobian": jacobian, "drift": drift,
        "kept rows": part.rows, "independent": part.independent, "dependent": part.dependent,
        "rank": part.rank, "gamma": P.gamma, "bias": P.bias,
        "u": inverse.u, "multipliers": inverse.multipliers, "a": forward.a,
        "row scale": mech.row_scale, "column scale": mech.column_scale, "B": mech.B,
        "reference": mech.reference,
    }  # fmt: skip


def assert_same(one, other):
    """Two answers of `numbers` agree entry for entry."""
    assert one.keys() == other.keys()
    different = [k for k in one if not np.array_equal(one[k], other[k])]
    assert not different


PER_VELOCITY = (
    "armature", "damping", "rotorInertia", "rotorGearRatio", "lowerEffortLimit",
    "upperEffortLimit", "lowerVelocityLimit", "upperVelocityLimit", "lowerDryFrictionLimit",
    "upperDryFrictionLimit",
)  # fmt: skip


def carried(old, new, x):
    """Entries of a configuration or velocity of the old model, in the order of the new one."""
    starts, sizes = (old.idx_qs, old.nqs) if len(x) == old.nq else (old.idx_vs, old.nvs)
    parts = [
        x[starts[j] : starts[j] + sizes[j]] for j in (old.getJointId(n) for n in new.names[1:])
    ]
    return np.concatenate(parts)
