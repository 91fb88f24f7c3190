"""The start of the search for a motion: limits, noise, units, and random motions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, number, vector
from holoctl.base.errors import InputError, LimitError, SingularityError
from holoctl.design.paths.inputs import PathStart, driven
from holoctl.design.paths.path_continuation import system_of
from holoctl.identification.ascent import Candidate, Search, random_start
from holoctl.identification.base_parameters import BaseParameters
from holoctl.identification.columns import BODY_PARAMETERS, LENGTHS, body_names
from holoctl.identification.excited_states import (
    Excited,
    ExcitedStates,
    slack_names,
    smallest_singular_values,
)
from holoctl.identification.fourier import Series
from holoctl.identification.parameters import Parameters
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limits import Limits

__all__ = ["best_random", "search_from", "smallest_and_condition", "states_from", "tightened"]

SAMPLES = 8
"""Samples in a period of the highest harmonic, of the first steps of the search."""

SINGULAR_START = 1e-4
"""A start is singular if a singular value of the constraints or of gamma' B, scaled, is below."""


def tightened(model: Parameters, limits: Any, margin: Any) -> BoundLimits:
    """The limits less the margin."""
    mech, share = model.mech, number("margin", margin, "share of the limits")
    if not 0.0 <= share < 1.0:
        raise InputError(f"margin must be from 0 to below 1; got {share:g}")
    given = requested_limits(mech, limits, "excitation") or Limits()
    bound = bound_limits(mech, given.scaled(1.0 - share))
    of_joints = (bound.position, bound.velocity, bound.acceleration)
    if not np.isfinite(bound.effort).any() and not any(np.isfinite(x).any() for x in of_joints):
        raise InputError(
            f"{mech.name}: excitation: nothing limits the motion; give limits: "
            "hc.Limits(position=..., velocity=..., effort=...)"
        )
    return bound


def states_from(
    model: Parameters, begin: PathStart, bound: BoundLimits, noise: Any
) -> tuple[ExcitedStates, Excited]:
    """The evaluation of motions, and that of rest at the start, which is checked."""
    mech = model.mech
    if noise is None:
        strong = np.abs(bound.effort).max(axis=0)
        known = strong[np.isfinite(strong)]
        sigma = np.where(np.isfinite(strong), strong, known.mean() if known.size else 1.0)
    else:
        sigma = vector("noise", noise, mech.nu, "a standard deviation of each measured effort")
        if not sigma.min() > 0.0:
            raise InputError(f"noise must be above zero; got {sigma.tolist()}")
    drive = driven(begin, mech.nu)
    system = system_of(mech, begin.part, drive, begin.idle)
    rest = Series(drive.at(begin.q), np.zeros((2, drive.scale.size)), 1.0)
    states = ExcitedStates(model, system, begin.q, bound, sigma, np.ones(2))
    path = states.motion(rest, 2)
    least = smallest_singular_values(path)[0]
    if not least.min() > SINGULAR_START:
        raise SingularityError(
            f"{mech.name}: the start is close to a singular configuration: the smallest singular "
            f"values of the constraints and of gamma' B are {least[0]:.2g} and {least[1]:.2g} "
            "(scaled); give another start",
            condition=float(1.0 / max(least.min(), 1e-300)), names=mech.actuator_names,
        )  # fmt: skip
    states = ExcitedStates(model, system, path.q[0], bound, sigma, least)
    first = states.excited(path)
    names, slack = slack_names(bound, mech.actuator_names), first.slack[0]
    if not slack.min() > 0.0:
        outside = tuple(dict.fromkeys(names[i] for i in np.flatnonzero(~(slack > 0.0))))
        raise LimitError(
            f"{mech.name}: the start is at or beyond limits (less the margin): "
            f"{', '.join(outside)} (by {-slack.min():.2g} of the range); give another start, or "
            "a smaller margin",
            names=outside, residual=float(-slack.min()), q=path.q[0].copy(),
        )  # fmt: skip
    return states, first


def search_from(
    states: ExcitedStates, first: Excited, base: BaseParameters, period: float, harmonics: int
) -> Search:
    """The search, with the units of the driven coordinates: half the ranges of their positions, or
    1 rad, or the length of their loop."""
    drive, bound = states.system.drive, states.bound
    unit = 1.0 / drive.scale
    for i, name in enumerate(drive.labels):
        if name in bound.names:
            half = 0.5 * float(np.diff(bound.position[:, bound.names.index(name)])[0])
            unit[i] = min(unit[i], half)
    rows = first.W.shape[1]
    samples = max(SAMPLES * harmonics, -(-2 * base.rank // rows))
    value = np.asarray(states.system.drive.at(first.path.q[0]))  # type: ignore[attr-defined]
    return Search(states, value, unit, np.zeros((0, 0)), period, harmonics, samples)


def best_random(
    search: Search, base: BaseParameters, starts: int, seed: int, bar: Any
) -> tuple[Search, Candidate, tuple[float, ...]]:
    """The search with scaled columns, its best random motion, and the smallest singular values of
    all of them."""
    model, rng, found = base.model, np.random.default_rng(seed), list[Candidate]()
    search = _with_basis(search, base, np.ones(len(model.names)))
    first = random_start(search, np.random.default_rng(0))  # sizes do not depend on the seed
    for _ in range(starts):
        one = random_start(search, rng)
        bar.update(1)
        if one is not None:
            found.append(one)
    if not found or first is None:
        raise LimitError(
            f"{model.mech.name}: limits leave no motion around the start: none of {starts} random "
            "motions, however small, is within them; give another start, other limits, or a longer "
            "period"
        )
    search = _with_basis(search, base, _sizes(model, first.excited.W))
    found = [search.valued(one.y, one.excited) for one in found]
    best = max(found, key=lambda one: one.value)
    return search, best, tuple(smallest_and_condition(one.R)[0] for one in found)


def _with_basis(search: Search, base: BaseParameters, sizes: Vector) -> Search:
    """The search with the columns of the independent parameters, times the sizes of their
    combinations."""
    names = base.model.names
    at = [names.index(name) for name in base.independent]
    basis = np.zeros((len(names), base.rank))
    basis[at, range(base.rank)] = np.linalg.norm(base.matrix * sizes, axis=1)
    return replace(search, basis=basis)


def _sizes(model: Parameters, W: Array) -> Vector:
    """The sizes of parameters (p,): for bodies m, m r and m r^2 with their mass and radius of
    gyration; for others the value, or if that is zero, what has an effect as large as the noise."""
    effect = np.sqrt((W**2).mean(axis=(0, 1)))
    found = np.where(model.values != 0.0, np.abs(model.values), 1.0 / np.maximum(effect, 1e-12))
    inertias = list(model.mech.model.inertias)[1:]
    bodies = dict(zip(body_names(model.mech), inertias, strict=True))
    masses = [x.mass for x in bodies.values() if x.mass > 0.0]
    for i, name in enumerate(model.names):
        body, _, what = name.rpartition(".")
        if body not in bodies or what not in BODY_PARAMETERS:
            continue
        inertia = bodies[body]
        mass = inertia.mass if inertia.mass > 0.0 else float(np.mean(masses or [1.0]))
        radius = float(
            np.sqrt(0.5 * np.trace(inertia.inertia) / mass + inertia.lever @ inertia.lever)
        )
        found[i] = mass * (radius or 1.0) ** LENGTHS[what]
    return found


def smallest_and_condition(R: Array) -> tuple[float, float]:
    """The smallest singular value of R, and the condition number."""
    w = np.linalg.svd(R, compute_uv=False)
    return float(w[-1]), float(w[0] / max(w[-1], 1e-300))
