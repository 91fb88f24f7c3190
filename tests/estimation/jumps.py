"""Random jumps of the sensors from random closed configurations, judged by the oracle."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from branches import DOUBTFUL, Oracle
from fleet import case, prepared
from many_branches import ManyBranches, Ways, understood

import holoctl as hc

SAME = 1e-6
"""Configurations of one branch differ by less, scaled."""
BUDGET = 40
"""Factorisations of a call."""


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
    """Closed configurations at random, in which `ClosedStateEstimator` can start."""
    mech, _ = case(name)
    rng, found, here = np.random.default_rng(seed), [], prepared(name)
    rank = here.partition.rank
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
        if np.linalg.matrix_rank(hc.terms(mech, q, np.zeros(mech.nv)).rows.jacobian, 1e-7) == rank:
            found.append(q)  # else it is rigid there, or singular
    return found


def leading(oracle, q):
    """Weights of the sensors: one for as many as there are motions, the most independent ones."""
    left = oracle.jacobian(q) @ oracle.basis(q)
    weights = np.zeros(oracle.m)
    for _ in range(oracle.b):
        i = int(np.argmax((left * left).sum(axis=1)))
        weights[i] = 1.0
        n = left[i] / np.linalg.norm(left[i])
        left = left - np.outer(left @ n, n)
    return weights


def directions(oracle, q, sizes, rng):
    """Steps of the sensors, so long (scaled) in random directions, and the weights they count by;
    of more sensors than motions some lead, and the others follow."""
    d = rng.normal(size=(len(sizes), oracle.m))
    weights = None
    if oracle.b < oracle.m:
        weights = np.stack([leading(oracle, y) for y in q])
        d = d * weights
    d *= (np.asarray(sizes) / np.linalg.norm(d, axis=1))[:, None]
    return d * oracle.unit, weights


def ways(name, q, dm, weights):
    """Where straight ways of the sensors lead: targets x and `Ways`, stacked."""
    mech, _ = case(name)
    here = prepared(name)
    oracle = Oracle(mech, here.measured, q[0])
    if understood(mech, here.measured):
        many = ManyBranches(mech, here.measured, oracle)
        x = np.stack([oracle.moved(oracle.at(a), b) for a, b in zip(q, dm, strict=True)])
        if weights is None:
            return oracle, x, many.ways(q, x, dm)
        lead = many.ways(q, x, dm, weights=weights)
        x = np.stack([oracle.at(a) for a in lead.q])
        dm = np.stack([oracle.off(a, b) for a, b in zip(q, x, strict=True)])
        found = many.ways(q, x, dm)
        found.sure[~lead.sure] = False
        return oracle, x, found
    x, found = [], []
    for i, (a, b) in enumerate(zip(q, dm, strict=True)):
        there = oracle.moved(oracle.at(a), b)
        way = oracle.way(a, there, weights=None if weights is None else weights[i] + 1e-12)
        if weights is not None and way.sure:
            there = oracle.at(way.q)
            way = oracle.way(a, there)
        x.append(there)
        found.append(way)
    return oracle, np.stack(x), Ways(*(
        np.array([getattr(w, n) for w in found])
        for n in ("q", "sure", "gain", "along", "why", "crossed")
    ))  # fmt: skip


def crosses(name, oracle, q, x):
    """Whether rows lose rank on each of these ways, or finer steps are not followed: branches may
    cross there, so that a refusal is due."""
    mech, measured = case(name)[0], prepared(name).measured
    if not understood(mech, measured):
        every = [oracle.way(*one) for one in zip(q, x, strict=True)]
        return [way.crossed or not way.sure for way in every]
    dm = np.stack([oracle.off(*one) for one in zip(q, x, strict=True)])
    every = ManyBranches(mech, measured, oracle).ways(q, x, dm, ranks=True)
    return every.crossed | ~every.sure


def judged(name, oracle, here, q, x, size, way, i):
    """One call from q to x, against way i of the oracle."""
    sure, gain = way.sure[i], way.gain[i]
    try:
        found, _ = here.state(x)
    except hc.HoloctlError as error:
        kind = type(error).__name__
        budget = kind == "BranchError" and here.last.factorisations >= BUDGET
        reason = f"{kind}: {getattr(error, 'why', '')}" + ", budget" * budget
        if not sure:
            return Judged("refused, no oracle", str(way.why[i]), name, q, x, size, 0.0)
        if gain > DOUBTFUL:
            return Judged("refused, gain", reason, name, q, x, size, gain)
        return Judged("over budget" if budget else "needless", reason, name, q, x, size, gain)
    if not sure:
        return Judged("accepted, no oracle", str(way.why[i]), name, q, x, size, 0.0)
    apart = oracle.apart(way.q[i], found, x)
    if apart > SAME:
        return Judged("FLIP", f"apart {apart:.2g} gain {gain:.3g}", name, q, x, size, apart)
    return Judged("same", "", name, q, x, size, apart)


def campaign(name, count, seed=0, low=1e-3, high=2.0, batch=500):
    """So many jumps on one robot, each after a reset, judged."""
    here, rng, found = prepared(name), np.random.default_rng([seed, 1]), []
    begin = starts(name, max(8, count // 25), seed)
    while len(found) < count:
        n = min(batch, count - len(found))
        q = np.stack([begin[i] for i in rng.integers(len(begin), size=n)])
        sizes = np.exp(rng.uniform(np.log(low), np.log(high), size=n))
        oracle = Oracle(case(name)[0], here.measured, q[0])
        dm, weights = directions(oracle, q, sizes, rng)
        oracle, x, way = ways(name, q, dm, weights)
        some = []
        for i in range(n):
            here.reset(q[i])
            some.append(judged(name, oracle, here, q[i], x[i], sizes[i], way, i))
        refused = [i for i in range(n) if some[i].verdict in ("needless", "over budget")]
        if refused:
            for i, due in zip(refused, crosses(name, oracle, q[refused], x[refused]), strict=True):
                if due:
                    some[i] = Judged("refused, branches cross", *some[i][1:])
        found += some
    return found


def walked(name, walkers, ticks, seed, low=1e-4, high=0.02, steps=6):
    """Walks of several estimators in ticks of such lengths, never reset but after refusals.

    Refused needlessly: six times the tick leads on with small gains, and rows keep their rank; else
    it is near a dead point.
    """
    mech, _ = case(name)
    q0 = starts(name, walkers, seed)
    every, q, rng = [prepared(name).fresh() for _ in q0], np.stack(q0), np.random.default_rng(seed)
    for here, y in zip(every, q0, strict=True):
        here.reset(y)
    oracle = Oracle(mech, prepared(name).measured, q[0])
    many = ManyBranches(mech, oracle.names, oracle)
    heading, found = rng.normal(size=(len(q), oracle.m)), Counter()
    for _ in range(ticks):
        heading = 0.9 * heading + 0.45 * rng.normal(size=heading.shape)
        sizes = np.exp(rng.uniform(np.log(low), np.log(high), size=len(q)))
        weights = None if oracle.b == oracle.m else np.stack([leading(oracle, y) for y in q])
        dm = heading * oracle.unit * (1.0 if weights is None else weights)
        dm *= (sizes / np.linalg.norm(dm / oracle.unit, axis=1))[:, None]
        x = np.stack([oracle.moved(oracle.at(a), d) for a, d in zip(q, dm, strict=True)])
        way = many.ways(q, x, dm, steps, weights)
        for i, here in enumerate(every):
            found["ticks"] += 1
            verdict, y = _tick(oracle, here, way, i, x[i] if weights is None else None)
            if verdict == "refused" and way.sure[i] and way.gain[i] <= DOUBTFUL:
                far = 6.0 * dm[i : i + 1]
                end = oracle.moved(oracle.at(q[i]), far[0])[None]
                lead = None if weights is None else weights[i : i + 1]
                ahead = many.ways(q[i : i + 1], end, far, 60, lead, ranks=True)
                clear = ahead.sure[0] and ahead.gain[0] <= DOUBTFUL and not ahead.crossed[0]
                verdict = "needless" if clear else "near a dead point"
            found[verdict] += 1
            if verdict == "same":
                found["newton"] += here.last.newton_steps
                q[i] = y
            else:
                heading[i] *= -1.0
                here.reset(q[i])
    return found


def _tick(oracle, here, way, i, x):
    if x is None:  # more sensors than motions: the others follow those that lead
        if not way.sure[i]:
            return "no oracle", None
        x = oracle.at(way.q[i])
    try:
        y, _ = here.state(x)
    except hc.HoloctlError:
        return "refused" if way.sure[i] else "no oracle", None
    if not way.sure[i]:
        return "no oracle", None
    return ("same" if oracle.apart(way.q[i], y, x) <= SAME else "FLIP"), y


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
