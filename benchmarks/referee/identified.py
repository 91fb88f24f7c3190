"""Dynamic parameters of the arms from their published measurements, in holoctl.

    make referee DVRK=folder        the folder is a clone of WPI-AIM/dvrk_dynamics_identification

The repository has no licence. Its measurements are read where they are, and none of them is kept
here: what is kept, in docs/referee-arms.json, are errors of models. An error is the norm of
predicted less measured efforts of a motor, relative to that of the measured ones, over the first
samples of the test motion.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

import holoctl as hc
from holoctl.identification.fit import Fit, identify
from holoctl.identification.regression import Regression, equations_at
from referee.surgical_arms import Arm

Array = NDArray[np.float64]
SOURCE = "github.com/WPI-AIM/dvrk_dynamics_identification"
RATE = 200.0
"""Samples per second, Hz."""
TRAIN, TEST = "one", "two"
CUT = 200
"""Samples that are left out at both ends, after filtering."""
AT_ONCE = 1e-12
"""The rate over which Coulomb friction changes its sign, where that is sudden, rad/s or m/s."""
VISIBLE = 0.05
"""The same, where random states are to have some between."""
THIN = 4
"""Every so many samples are used, after filtering."""
CUTOFFS = (10.0, 20.0, 40.0)
LAGS = tuple(0.005 * k for k in range(-2, 17))
WIDTHS = (0.001, 0.003, 0.01, 0.02, 0.03, 0.06, 0.1, 0.2, 0.3, 0.4, 0.6)
"""What is tried: Hz, s, rad/s or m/s."""
SWEEPS = 2
FOLDS = 5
NEAR = 10
"""Equations on both sides of a fold that are left out, too."""
RIDGE = 1e-7
"""Of the normal equations of a fold, relative to their mean diagonal."""
INDEPENDENT = 1e-9
"""The smallest singular value of the scaled equations that counts, relative to the largest."""


@dataclass(frozen=True)
class Motion:
    """A measured motion: positions, rates and efforts of motors, a row for each sample."""

    q: Array
    v: Array
    u: Array


@dataclass(frozen=True)
class Equations:
    """W (s, 7, p) and y (s, 7): filtered rows of motors."""

    W: Array
    y: Array

    def errors(self, p: Array, samples: int | None = None) -> Array:
        """By motor, over the first samples."""
        at = slice(samples)
        off = np.linalg.norm(self.y[at] - self.W[at] @ p, axis=0)
        found: Array = off / np.linalg.norm(self.y[at], axis=0)
        return found


# ----------------------------------------------------------------------------- measurements


def motion(folder: Path, arm: Arm, which: str) -> Motion:
    """One of the published files, the known torque of the cable taken from the efforts."""
    file = folder / "data" / arm.name / "measured_trajectory" / f"{which}_results.csv"
    x = np.loadtxt(file, delimiter=",", ndmin=2)
    if x.shape[1] != 21 or len(x) < 4 * CUT or not np.isfinite(x).all():
        raise ValueError(f"{file}: expected 21 finite columns: q, rates, efforts; got {x.shape}")
    q, v, u = x[:, :7], x[:, 7:14], x[:, 14:]
    if arm.cable:
        torque = np.polyval(cable(folder / f"main_{arm.name}.ipynb"), q @ np.array(arm.cable))
        u = u - torque[:, None] * np.array(arm.cable)
    return Motion(q, v, u)


def cable(notebook: Path) -> Array:
    """The polynomial of the torque of a cable, highest power first, from its notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    text = "".join("".join(cell["source"]) for cell in cells)
    found = re.search(r"^p = np\.array\(\[([-+.e\d,\s]*)\]\)", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"{notebook}: no polynomial of the cable's torque (p = np.array) in it")
    return np.array([float(x) for x in found[1].split(",")])


def smooth(x: Array, cutoff: float) -> Array:
    """Filtered forwards and backwards, cutoff in Hz."""
    found: Array = sosfiltfilt(butter(6, cutoff, fs=RATE, output="sos"), x, axis=0)
    return found


def derivative(x: Array) -> Array:
    """By four neighbours."""
    found = np.gradient(x, 1.0 / RATE, axis=0)
    found[2:-2] = (8.0 * (x[3:-1] - x[1:-3]) - x[4:] + x[:-4]) * (RATE / 12.0)
    return found


# -------------------------------------------------------------------------------- equations


def parameters(arm: Arm, mech: hc.Mechanism) -> hc.Parameters:
    """Bodies, friction of `arm.rates`, rotors, a spring, an offset of each motor."""
    joint, torque = arm.spring
    i = mech.coordinate_names.index(joint)

    def spring(P: Any, a: Array) -> Array:
        w = np.zeros(mech.nv)
        w[i] = torque(P.q[i])
        return w

    without = [f"{x}.rotor" for x in mech.actuated if x not in arm.rotors]
    return hc.Parameters(
        mech, friction="model", rotors=True, offsets=True, known=without,
        columns={"spring.stiffness": spring},
    )  # fmt: skip


def rows(model: hc.Parameters, q: Array, v: Array, a: Array, u: Array) -> Equations:
    """At every sample, unfiltered. All coordinates are linear in the motors: the loops are
    parallelograms and cables."""
    mech = model.mech
    part = hc.partition(mech, hc.assemble(mech)[0])
    by_motors = linear_in_motors(mech)
    W, y = [], []
    for i in range(len(q)):
        P = hc.project(mech, by_motors @ q[i], by_motors @ v[i], partition=part)
        found = equations_at(model, P, by_motors @ a[i] + P.bias, u[i])
        W.append(found[0])
        y.append(found[1])
    return Equations(np.array(W), np.array(y))


def linear_in_motors(mech: hc.Mechanism) -> Array:
    """The rates of all coordinates for each unit of rate of the motors (nv, 7)."""
    motors = [mech.coordinate_names.index(x) for x in mech.actuated]
    gamma = hc.project(mech, *hc.assemble(mech)).gamma
    found: Array = np.linalg.solve(gamma[motors].T, gamma.T).T
    return found


def published_rows(arm: Arm, model: hc.Parameters, found: Motion) -> Equations:
    """As published: positions, rates, accelerations and efforts are filtered, then the equations
    evaluated."""
    cutoff = np.pi * arm.frequency
    x = (found.q, found.v, derivative(found.v), found.u)
    return rows(model, *(smooth(part, cutoff)[CUT:-CUT] for part in x))


# --------------------------------------------------------------------------------------- fits


def least_squares(data: Equations, weights: Array) -> Array:
    """Of equations times the weights (7,) of motors; the shortest solution, columns scaled."""
    A = (data.W * weights[:, None]).reshape(-1, data.W.shape[2])
    size = np.linalg.norm(A, axis=0)
    size[size < INDEPENDENT * size.max()] = 1.0
    found: Array = np.linalg.lstsq(
        A / size, (data.y * weights).ravel(), rcond=INDEPENDENT
    )[0] / size  # fmt: skip
    return found


def consistent(arm: Arm, model: hc.Parameters, data: Equations, every: int = 1) -> Fit:
    """Physically consistent parameters from equations in order of phase, every so many samples; the
    strength of the prior is chosen by blocks of phase that are left out."""
    t = np.arange(len(data.y)) * (every / RATE)
    none, independent = np.zeros((0, 0)), 2.0 * np.pi * arm.frequency
    return identify(Regression(
        model, None, t, none, none, none, data.W, data.y, model.mech.actuated, independent
    ))  # fmt: skip


def by_phase(data: Equations, period: int) -> Equations:
    """In order of phase of a motion that repeats itself."""
    order = np.argsort(np.arange(len(data.y)) % period, kind="stable")
    return Equations(data.W[order], data.y[order])


# ---------------------------------------------------------------------- the best that we found


@dataclass(frozen=True)
class Choice:
    """What is chosen by folds of the training motion alone.

    Attributes
    ----------
    widths : tuple of float
        Over which the friction of each of `Arm.rates` changes its sign, rad/s or m/s.
    lags : tuple of float
        Of the measured effort of each motor, s.
    cutoffs : tuple of float
        For each motor, of the filter of rates and accelerations, Hz.
    """

    widths: tuple[float, ...]
    lags: tuple[float, ...]
    cutoffs: tuple[float, ...]


@dataclass(frozen=True)
class Signals:
    """Of a motion, before the choice, in rows of samples.

    Attributes
    ----------
    others : mapping of float to (s, 7, p) array
        Filtered equations by cutoff of rates and accelerations; columns of friction are not used.
    rates : (s, r) array
        Of the joints with friction, not filtered any further.
    by_motor : (r, 7) array
        Their rates for each unit of rate of the motors.
    u : (s, 7) array
        Filtered efforts.
    smooth : function
        The filter of both.
    """

    others: dict[float, Array]
    rates: Array
    by_motor: Array
    u: Array
    smooth: Callable[[Array], Array]


def signals(arm: Arm, model: hc.Parameters, found: Motion, periodic: bool) -> Signals:
    """Of a motion, which repeats itself or not."""
    n = len(found.q)

    def around(function: Callable[[Array], Array], x: Array) -> Array:
        return function(np.concatenate([x, x, x]))[n : 2 * n] if periodic else function(x)

    def filtered(x: Array, cutoff: float) -> Array:
        return around(lambda y: smooth(y, cutoff), x)

    others, final, sharpest = {}, np.pi * arm.frequency, max(CUTOFFS)
    for cutoff in CUTOFFS:
        v = filtered(found.v, cutoff)
        table = rows(model, filtered(found.q, sharpest), v, around(derivative, v), found.u)
        others[cutoff] = filtered(table.W, final)
    by_motor = rates_by_motor(arm, model.mech)
    rates = filtered(found.v, sharpest) @ by_motor.T
    return Signals(
        others, rates, by_motor, filtered(found.u, final), lambda x: filtered(x, final)
    )  # fmt: skip


def rates_by_motor(arm: Arm, mech: hc.Mechanism) -> Array:
    """The rate of each joint with friction for each unit of rate of the motors (r, 7)."""
    moved = linear_in_motors(mech)
    of = dict(zip(mech.coordinate_names, moved, strict=True))
    return np.array([of[x] if x in of else of["jaw_2"] - of["jaw_1"] for x in arm.rates])


def chosen_equations(
    arm: Arm, model: hc.Parameters, x: Signals, choice: Choice, at: NDArray[np.int64]
) -> Equations:
    """The equations of a choice at these samples."""
    W = np.stack([x.others[cutoff][:, k] for k, cutoff in enumerate(choice.cutoffs)], axis=1)
    steps = x.smooth(np.tanh(x.rates / np.array(choice.widths)))
    slow = x.smooth(x.rates)
    for j, name in enumerate(arm.rates):
        for what, column in (("viscous", slow), ("coulomb", steps)):
            W[:, :, model.names.index(f"{name}.{what}")] = column[:, j, None] * x.by_motor[j]
    return Equations(delayed(W, choice.lags, at), x.u[at])


def delayed(W: Array, lags: Sequence[float], at: NDArray[np.int64]) -> Array:
    """The rows of each motor at samples less its lag, between samples linearly; beyond the ends the
    motion begins again."""
    found = np.empty((len(at), *W.shape[1:]))
    for k, lag in enumerate(lags):
        whole, part = divmod(-lag * RATE, 1.0)
        i = (at + int(whole)) % len(W)
        found[:, k] = (1.0 - part) * W[i, k] + part * W[(i + 1) % len(W), k]
    return found


def fold_errors(data: Equations) -> Array:
    """By motor, of blocks of the period that are predicted from the others; equations close to a
    block are left out."""
    n, weights = len(data.y), 1.0 / np.ptp(data.y, axis=0)
    A, y = data.W * weights[:, None], data.y * weights
    size = np.linalg.norm(A.reshape(-1, A.shape[2]), axis=0)
    A = A / np.where(size > INDEPENDENT * size.max(), size, 1.0)
    missed, phase = np.zeros(y.shape[1]), np.arange(n)
    for first, last in zip(*(np.linspace(0, n, FOLDS + 1)[i] for i in (slice(-1), slice(1, None))),
                           strict=True):  # fmt: skip
        out = (phase >= first) & (phase < last)
        away = (phase - first + NEAR) % n >= last - first + 2 * NEAR
        X = A[away].reshape(-1, A.shape[2])
        H = X.T @ X
        p = np.linalg.solve(H + RIDGE * np.trace(H) / len(H) * np.eye(len(H)),
                            X.T @ y[away].ravel())  # fmt: skip
        missed += np.sum((y[out] - A[out] @ p) ** 2, axis=0)
    return np.sqrt(missed / np.sum(y**2, axis=0))


def chosen(arm: Arm, model: hc.Parameters, x: Signals) -> Choice:
    """Widths, lags and cutoffs one after the other, by the product of the errors of the folds."""
    at = np.arange(0, len(x.u), THIN)
    choice = Choice((0.03,) * len(arm.rates), (0.0,) * 7, (max(CUTOFFS),) * 7)

    def cost(c: Choice) -> float:
        return float(np.log(fold_errors(chosen_equations(arm, model, x, c, at))).sum())

    best = cost(choice)
    for _ in range(SWEEPS):
        for what, grid in (("cutoffs", CUTOFFS), ("lags", LAGS), ("widths", WIDTHS)):
            for k in range(len(getattr(choice, what))):
                for value in grid:
                    values = list(getattr(choice, what))
                    values[k] = value
                    other = replace(choice, **{what: tuple(values)})
                    if (found := cost(other)) < best - 1e-6:
                        best, choice = found, other
    return choice


# ------------------------------------------------------------------------------------ measured


@dataclass(frozen=True)
class Outcome:
    """Of one arm: errors of seven motors on the test motion for each model, and times, s."""

    arm: str
    base: int
    gap: float
    least_squares: tuple[float, ...]
    consistent: tuple[float, ...]
    strength: float
    least_eigenvalue: float
    fit_seconds: float
    rows_seconds: float
    best: tuple[float, ...]
    best_least_squares: tuple[float, ...]
    choice: Choice

    @classmethod
    def of(cls, kept: dict[str, Any]) -> Outcome:
        """From what was written as JSON."""
        choice = Choice(**{k: tuple(x) for k, x in kept["choice"].items()})
        given = {k: tuple(x) if isinstance(x, list) else x for k, x in kept.items()}
        return cls(**given | {"choice": choice})


def identified(folder: Path, arm: Arm) -> Outcome:
    """All of one arm."""
    mech = arm.make(dict.fromkeys(arm.rates, AT_ONCE))
    model = parameters(arm, mech)
    base = hc.base_parameters(parameters(arm, arm.make(dict.fromkeys(arm.rates, VISIBLE))))
    train, test = (motion(folder, arm, which) for which in (TRAIN, TEST))
    begin = replace(
        test, **{x: getattr(test, x)[: 3 * CUT + arm.period] for x in ("q", "v", "u")}
    )  # fmt: skip
    started = time.process_time()
    equations = published_rows(arm, model, train)
    rows_seconds = time.process_time() - started
    judge = published_rows(arm, model, begin)
    weights = 1.0 / np.ptp(equations.y, axis=0) if arm.weighted else np.ones(7)
    plain = judge.errors(least_squares(equations, weights), arm.period)

    started = time.process_time()
    fit = consistent(arm, model, by_phase(equations, arm.repeats))
    fit_seconds = time.process_time() - started

    mean = mean_motion(train, arm.repeats)
    x, y = signals(arm, model, mean, True), signals(arm, model, begin, False)
    choice = chosen(arm, model, x)
    learnt = chosen_equations(arm, model, x, choice, np.arange(0, len(x.u), THIN))
    predicted = chosen_equations(arm, model, y, choice, np.arange(CUT, CUT + arm.period))
    best = consistent(arm, model, learnt, THIN)
    free = least_squares(learnt, 1.0 / np.ptp(learnt.y, axis=0))
    return Outcome(
        arm.name, base.rank, base.gap, told(plain), told(judge.errors(fit.p, arm.period)),
        fit.strength, min(fit.least_eigenvalues.values()), fit_seconds, rows_seconds,
        told(predicted.errors(best.p)), told(predicted.errors(free)), choice,
    )  # fmt: skip


def told(errors: Array) -> tuple[float, ...]:
    """As they are kept."""
    return tuple(round(float(e), 6) for e in errors)


def mean_motion(found: Motion, period: int) -> Motion:
    """One period, the mean of all whole ones."""
    n = len(found.q) // period
    return Motion(*(
        x[: n * period].reshape(n, period, 7).mean(axis=0) for x in (found.q, found.v, found.u)
    ))  # fmt: skip
