"""What the tests share: closed states, difference quotients, tolerances, guards."""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from zoo import ZOO

import holoctl as hc
import holoctl.rows.tick.fast_rows
from holoctl.constraints.constraint_protocol import Rows
from holoctl.tree.kinematics import kinematics

EPS = np.finfo(float).eps


def together(**options):
    """Options of `simulate`, named one by one: those of a plant and of an integrator as such."""
    plant = {x: options.pop(x) for x in ("dynamics", "limits", "f_ext", "efforts") if x in options}
    how = ("method", "rtol", "atol", "at_singular", "hold")
    integrator = {x: options.pop(x) for x in how if x in options}
    if plant:
        options["plant"] = hc.Plant(options.get("plant"), **plant)
    if integrator:
        options["integrator"] = hc.Integrator(**integrator)
    return options


SHORT = (
    "four_bar", "five_bar", "floating_leg", "geared_slider", "hung_plate", "standing_leg",
    "sine_gear", "timed_arm", "sine_chart", "three_motors", "screw_chain", "slotted_arms",
)  # fmt: skip
"""Of the zoo, those of the short run: in the plane, in space, afloat; rods, contacts, couplings, a
function of one's own, of time, a chart; rows that repeat each other, motors that do, screws,
slots."""


class Foreign:
    """An array of another library."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


def few(values, some=SHORT):
    """Parameters of a test: some of these in every run, all in the long one."""
    return [x if x in some else pytest.param(x, marks=pytest.mark.slow) for x in values]


ROOT = Path(__file__).resolve().parents[1]
"""The project."""

GOLDEN = Path(__file__).resolve().parent / "golden"
"""Numbers of other programs, one folder each."""

TOL = {
    "difference": 1e-8,  # against difference quotients, which are right to 1e-10
    "exact": 1e-12,  # identities that only rounding can break
    "solve": 1e-10,  # after a linear solve of modest condition
}


def solve_tolerance(condition):
    """Relative tolerance after a solve with the given condition number."""
    return max(TOL["solve"], 100.0 * EPS * condition)


GENERAL = ["direct", "range_space", "null_space"]
"""The methods of the constrained dynamics that take every mechanism."""

ALWAYS_GENERAL = {"sine_chart": "explicit chart"}
"""Mechanisms of the zoo without a fast path, and why."""

ANY_STATE = {"closure_limit": None, "velocity_limit": None}
"""The law is exact off the manifold too; these let it be asked there."""

SHARED = "HOLOCTL_TESTS_SHARED"
"""Environment variable: a folder where the processes of one test run leave results."""


def shared(name, make):
    """What `make` returns, from whichever process of this test run was first to need it."""
    folder = os.environ.get(SHARED)
    if folder is None:
        return make()
    path = Path(folder) / f"{name}.pickle"
    if path.exists():
        return pickle.loads(path.read_bytes())
    made = make()
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
        pickle.dump(made, file)
    os.replace(file.name, path)  # in one step: a process that looks meanwhile finds all or nothing
    return made


def public_names():
    """All public names, as after ``hc.``: ``assemble``, ``results.Certificate``."""
    return [
        *(
            name
            for name in hc.__all__
            if name not in {"__version__", "results", "protocols", "methods"}
        ),
        *(f"results.{name}" for name in hc.results.__all__),
        *(f"protocols.{name}" for name in hc.protocols.__all__),
        *(f"methods.{name}" for name in hc.methods.__all__),
    ]


def public(name):
    """What has this public name."""
    return attrgetter(name)(hc)


@cache
def mechanism(name):
    return ZOO[name]()


class ClosedStates(Sequence):
    """Seeded closed states (q, v) with G v = 0: far from each other, none at rest.

    They are assembled, some at a time, when they are first asked for, in this test run. Fewer of
    the same seed are the first of more.
    """

    def __init__(self, name, count, seed, spread):
        self.count, self.of = count, (name, seed, spread)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(self.count))]
        if not -self.count <= i < self.count:
            raise IndexError(i)
        block, place = divmod(i % self.count, AT_A_TIME)
        return _closed_states(block, *self.of)[0][place]


AT_A_TIME = 5


@cache
def closed_states(name, count=100, seed=0, spread=0.4):
    return ClosedStates(name, count, seed, spread)


@cache
def _closed_states(block, name, seed, spread):
    """Some states, and the generator that draws those behind them."""

    def make():
        rng = np.random.default_rng(seed)
        if block:
            rng = copy.deepcopy(_closed_states(block - 1, name, seed, spread)[1])
        mech, states = mechanism(name), []
        while len(states) < AT_A_TIME:
            guess = pin.integrate(mech.model, mech.reference, spread * rng.normal(size=mech.nv))
            try:
                q, v = hc.assemble(mech, guess, 2.0 * rng.normal(size=mech.nv), restarts=0)
            except hc.AssemblyError:
                continue
            states.append((q, v))
        return states, rng

    return shared(f"closed-{name}-{seed}-{spread}-{block}", make)


@cache
def shared_partition(name):
    mech = mechanism(name)
    return hc.partition(mech, hc.assemble(mech)[0])


def open_states(name, count=100, seed=1):
    """Seeded states off the manifold, away from half a turn, where orientation rows and screws
    jump."""
    mech = mechanism(name)
    rng = np.random.default_rng(seed)
    turns = [(mech.row_names.index(f"{name}.screw"), c.pitch)
             for c, name in zip(mech.constraints, mech.constraint_names, strict=True)
             if getattr(c, "pitch", None)]  # fmt: skip
    turning = [i for i, label in enumerate(mech.row_names) if label.endswith(("rx", "ry", "rz"))]
    states = []
    while len(states) < count:
        q = pin.integrate(mech.model, mech.reference, rng.normal(size=mech.nv))
        v = 2.0 * rng.normal(size=mech.nv)
        if any(abs(rows(mech, q, v).error[i]) > 0.7 * np.pi * pitch for i, pitch in turns):
            continue
        if len(turning) < 3 or np.linalg.norm(rows(mech, q, v).error[turning]) < 1.9:
            states.append((q, v))
    return states


def stretched(s):
    """The five-bar of the zoo with elbows at 0.8 cos(s)-ish: at s = 0 its rods are in line."""
    left, right = np.pi - s, s
    x, y = 0.1 + 0.3 * np.cos(s), 0.3 * np.sin(s)
    tip = y + np.sqrt(max(0.16 - x * x, 0.0))
    a, b = np.arctan2(tip - y, x), np.arctan2(tip - y, -x)
    return np.array([left, a - left, right, b - right])


def feasible_target(P, rng=None):
    """Random accelerations of the motors that the constraints allow, also for too many motors."""
    ydd = np.ones(P.k) if rng is None else 5.0 * rng.normal(size=P.k)
    return P.mechanism.B.T @ (P.gamma @ (P.scale * ydd) + P.bias)


def rows(mech, q, v, t=0.0):
    """All rows as each constraint defines them, by itself: the oracle of how they are evaluated."""
    kin = kinematics(mech.model, mech.model.createData(), q, v, t)
    found = [bound.rows(kin) for bound in mech.bound]
    if not found:
        return Rows(np.zeros(0), np.zeros(0), np.zeros((0, mech.nv)), np.zeros(0))
    return Rows(
        *(np.concatenate([getattr(r, of)[...] for r in found])
          for of in ("error", "rate", "jacobian", "drift"))
    )  # fmt: skip


def difference(f, h):
    """df/ds at 0 by the central difference of sixth order."""
    return (45.0 * (f(h) - f(-h)) - 9.0 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (
        60.0 * h
    )


def jacobian_by_differences(mech, q, v):
    """d(error)/d(step), column by column; central differences, right to some 1e-11."""

    rest = np.zeros_like(v)  # the error does not depend on v

    def error(step):
        return rows(mech, pin.integrate(mech.model, q, step), rest).error

    steps = 1e-5 * np.eye(mech.nv)
    return np.column_stack([(error(e) - error(-e)) / 2e-5 for e in steps])


def drift_by_differences(mech, q, v):
    """d(rate)/dt along constant v, which is zero acceleration."""
    return difference(lambda s: rows(mech, pin.integrate(mech.model, q, s * v), v, s).rate, 1e-3)


def rate_by_differences(mech, q, v):
    """d(error)/dt along constant v."""
    return difference(lambda s: rows(mech, pin.integrate(mech.model, q, s * v), v, s).error, 1e-3)


def potential_slope(mech, q, direction):
    """Derivative of the potential energy along a velocity."""
    data = mech.model.createData()

    def energy(s):
        x = pin.integrate(mech.model, q, s * direction)
        return pin.computePotentialEnergy(mech.model, data, x)

    return difference(energy, 1e-2 / np.abs(direction).max())


def relative(x, y):
    """Largest difference, relative to the largest entry."""
    x, y = np.asarray(x), np.asarray(y)
    size = max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0))
    return float(np.abs(x - y).max(initial=0.0) / size) if size else 0.0


def assert_rows_close(
    mech, found, expected, tol, state=None, *, what="rows", by_size=False, labels=None
):
    """A quantity of the rows, (m,) or (m, n), is within `tol` of what is expected.

    If not, the message names mechanism, state and the worst ``constraint.row``, with both numbers.
    With `by_size` as ``relative(found, expected) < tol``. `labels`: names of the rows, where they
    are not all of them in order. `state`: (q, v), or a word.
    """
    labels = mech.row_names if labels is None else labels
    _assert_close(mech, labels, found, expected, tol, state, what, by_size)


def assert_coordinates_close(
    mech, found, expected, tol, state=None, *, what="a", by_size=False, labels=None
):
    """As `assert_rows_close`, of a quantity of the coordinates, (nv,) or (nv, n)."""
    labels = mech.coordinate_names if labels is None else labels
    _assert_close(mech, labels, found, expected, tol, state, what, by_size)


def _assert_close(mech, labels, found, expected, tol, state, what, by_size):
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    expected = np.broadcast_to(expected, found.shape) if expected.ndim == 0 else expected
    assert found.shape == expected.shape, f"{mech.name}: {what}: {found.shape}, {expected.shape}"
    assert len(found) == len(labels), f"{mech.name}: {what}: {len(found)} for {len(labels)} names"
    off = np.abs(found - expected)
    worst = relative(found, expected) if by_size else off.max(initial=0.0)
    if worst < tol:
        return
    at = np.unravel_index(np.argmax(off), off.shape)  # the first NaN, where there is one
    where = labels[at[0]] + (f", column {at[1]}" if len(at) > 1 else "")
    raise AssertionError(
        f"{mech.name}: {what} of {where}: "
        f"found {float(found[at])!r}, expected {float(expected[at])!r}; "
        f"{'relatively ' if by_size else ''}off by {worst:.3g}, tolerance {tol:.3g}\n"
        + _told(state)
    )


def _told(state):
    """A state in full, to be pasted."""
    if state is None or isinstance(state, str):
        return f"state: {state}"
    return "\n".join(f"{x} = {np.asarray(y).tolist()}" for x, y in zip("qv", state, strict=True))


def dense_kkt(mech, q, v, tau):
    """Acceleration and G' lambda from one dense solve of the whole system, by numpy."""
    data = mech.model.createData()
    M = pin.crba(mech.model, data, q)
    h = pin.nonLinearEffects(mech.model, data, q, v).copy()
    r = rows(mech, q, v)
    D = np.concatenate([1.0 / mech.column_scale, np.ones(len(r.error))])
    G = mech.row_scale[:, None] * r.jacobian
    K = np.block([[M, -G.T], [G, np.zeros((len(G), len(G)))]])
    scaled = K / D / D[:, None]
    rhs = np.concatenate([tau - h, -mech.row_scale * r.drift]) / D
    x = np.linalg.lstsq(scaled, rhs, rcond=1e-13)[0] / D
    a, lam = x[: mech.nv], x[mech.nv :]
    return a, G.T @ lam


def prepare(name, **options):
    """The inverse dynamics of a mechanism of the zoo, for a control loop."""
    return hc.PreparedInverseDynamics(mechanism(name), shared_partition(name), **options)
