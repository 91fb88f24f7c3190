"""Random jumps of the sensors from random closed configurations, judged by the oracle."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from branches import DOUBTFUL, Oracle
from fleet import case, prepared

import holoctl as hc

SAME = 1e-6
"""Configurations of one branch differ by less, scaled."""


class Judged(NamedTuple):
    """One jump: what became of it, and all that repeats it."""

    verdict: str
    reason: str
    name: str
    start: np.ndarray
    target: np.ndarray
    size: float
    apart: float


def starts(name, count, seed=0, spread=0.6):
    """Closed configurations at random, in which `PreparedAssembly` can start."""
    mech, _ = case(name)
    rng, found, here = np.random.default_rng(seed), [], prepared(name)
    for _ in range(20 * count):
        if len(found) == count:
            break
        guess = pin.integrate(
            mech.model, mech.reference, spread * rng.normal(size=mech.nv) * mech.column_scale
        )
        try:
            q, _ = hc.assemble(mech, guess, restarts=0)
            here.reset(q)
        except hc.HoloctlError:
            continue
        found.append(here.state(here._readings.at(here._place.q))[0])
    return found


def target(oracle, q, size, rng):
    """Where the sensors are to go: so far from q in a random direction, scaled.

    With more sensors than motions, where they lead that count first; None where that is unknown.
    """
    d = rng.normal(size=oracle.m)
    if oracle.b == oracle.m:
        return oracle.moved(oracle.at(q), size * d / np.linalg.norm(d) * oracle.unit)
    few = Oracle(oracle.mech, oracle.names, q)
    weights = np.full(oracle.m, 1e-9)
    T = few.jacobian(q) @ few._basis(few.rows(q)[1])
    chosen, left = [], T.copy()
    for _ in range(oracle.b):
        i = int(np.argmax((left * left).sum(axis=1)))
        chosen.append(i)
        n = left[i] / np.linalg.norm(left[i])
        left = left - np.outer(left @ n, n)
    weights[chosen] = 1.0
    step = np.zeros(oracle.m)
    step[chosen] = d[chosen]
    x = oracle.moved(oracle.at(q), size * step / np.linalg.norm(step) * oracle.unit)
    gone = few.way(q, x, weights=weights)
    return few.at(gone.q) if gone.sure else None


def judged(name, oracle, here, q, x, size, t=0.0):
    """One call from q, against the oracle."""
    way = oracle.way(q, x)
    try:
        found, _ = here.state(x, t=t)
    except hc.HoloctlError as error:
        kind = type(error).__name__
        budget = kind == "BranchError" and here.last.factorisations >= 40
        reason = f"{kind}: {getattr(error, 'why', '')}/{here._tally.why}" + budget * " budget"
        if not way.sure:
            return Judged("refused, no oracle", way.why, name, q, x, size, 0.0)
        if budget:
            return Judged("refused, budget", reason, name, q, x, size, 0.0)
        if way.gain <= DOUBTFUL:
            return Judged("needless", reason, name, q, x, size, way.gain)
        along = "along" if way.along <= DOUBTFUL else ""
        return Judged(f"refused, gain {along}", reason, name, q, x, size, way.gain)
    if not way.sure:
        return Judged("accepted, no oracle", way.why, name, q, x, size, 0.0)
    apart = oracle.apart(way.q, found, x, t)
    if apart > SAME:
        return Judged("FLIP", f"apart {apart:.2g} gain {way.gain:.3g}", name, q, x, size, apart)
    return Judged("same", "", name, q, x, size, apart)


def campaign(name, per_start, count, seed=0, low=1e-3, high=2.0):
    """All jumps of one robot, judged."""
    mech, _ = case(name)
    here, rng, found = prepared(name), np.random.default_rng(seed + 1), []
    for q in starts(name, count, seed):
        oracle = Oracle(mech, here.measured, q)
        for _ in range(per_start):
            size = float(np.exp(rng.uniform(np.log(low), np.log(high))))
            x = target(oracle, q, size, rng)
            if x is None:
                found.append(Judged("no target", "", name, q, q, size, 0.0))
                continue
            here.reset(q)
            found.append(judged(name, oracle, here, q, x, size))
    return found


def counted(found):
    """How many of each verdict and reason, as lines."""
    verdicts = Counter(j.verdict for j in found)
    lines = [f"{found[0].name if found else '?'}: {len(found)} jumps; " + ", ".join(
        f"{n} {v}" for v, n in sorted(verdicts.items())
    )]  # fmt: skip
    for (v, r), n in sorted(Counter((j.verdict, j.reason) for j in found).items()):
        if v in ("needless", "FLIP"):
            lines.append(f"    {v}: {n} x {r}")
    return lines
