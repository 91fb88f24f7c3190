"""Never another branch: random jumps of the sensors, and walks in ticks, against an oracle."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pinocchio as pin
import pytest
from branches import Oracle
from fleet import OWN, SHARED, SHIPPED, case, prepared
from jumps import campaign, counted, starts, walked
from many_branches import ManyBranches, understood
from support import few

import holoctl as hc

FEW = ("five_bar", "leg", "bricard")
SLOW_WAY = ("timed_arm", "hung_plate", "universal_rods", "press", "screw_chain")
"""Rows that only the general oracle knows: fewer jumps."""
NEEDLESS_JUMPS, NEEDLESS_TICKS = 1e-3, 5e-4
ALL = (*SHIPPED, *SHARED, *OWN)


def check_jumps(found, allowed):
    print("\n".join(counted(found)))
    verdicts = Counter(j.verdict for j in found)
    flips = [j for j in found if j.verdict == "FLIP"]
    assert not flips, f"{flips[0].name}: from {flips[0].start} to {flips[0].target}"
    assert verdicts["same"] > 0
    assert verdicts["needless"] <= allowed


@pytest.mark.parametrize("name", FEW)
def test_jumps_end_on_their_branch_or_are_refused(name):
    check_jumps(campaign(name, 30, seed=1), 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_many_jumps(name):
    """All together 10^5 of them; Stewart's platform meets singular configurations in a third."""
    count = 300 if name in SLOW_WAY else 1500 if case(name)[0].nv > 15 else 3500
    check_jumps(campaign(name, count, seed=31), max(1, NEEDLESS_JUMPS * count))


@pytest.mark.parametrize("name", few(["five_bar", "bricard", "tripteron"], FEW))
def test_walks_in_ticks(name):
    found = walked(name, walkers=5, ticks=40, seed=3)
    assert not found["FLIP"]
    assert found["same"] > 150
    assert not found["needless"]


@pytest.mark.slow
def test_many_walks_in_ticks():
    """Ticks of at most 20 mrad: what is refused is at a dead point, or close to one."""
    total = Counter()
    for name in ALL:
        if understood(case(name)[0], prepared(name).measured):
            found = walked(name, walkers=20, ticks=100, seed=3)
            print(name, dict(found))
            total += found
    assert not total["FLIP"]
    assert total["needless"] <= NEEDLESS_TICKS * total["ticks"]
    assert total["newton"] <= 2.1 * total["same"]


@pytest.mark.parametrize(
    "name",
    few(
        ["five_bar", "delta", "cut_five_bar", "floating_leg", "5bar_linkage"],
        ["five_bar", "cut_five_bar", "floating_leg"],
    ),
)
def test_the_two_oracles_agree(name):
    """One by singular values of the library's rows, one by kinematics and rows of its own."""
    mech, _ = case(name)
    rng, q = np.random.default_rng(0), np.stack(starts(name, 4, 3))
    oracle = Oracle(mech, prepared(name).measured, q[0])
    dm = rng.normal(size=(len(q), oracle.m)) * oracle.unit
    dm *= 0.5 / np.linalg.norm(dm / oracle.unit, axis=1)[:, None]
    x = np.stack([oracle.moved(oracle.at(a), d) for a, d in zip(q, dm, strict=True)])
    many = ManyBranches(mech, prepared(name).measured, oracle).ways(q, x, dm)
    for i in range(len(q)):
        one = oracle.way(q[i], x[i])
        assert one.sure == many.sure[i]
        if one.sure:
            assert oracle.apart(one.q, many.q[i], x[i]) < 1e-8
            assert many.gain[i] == pytest.approx(one.gain, rel=1e-3)


def test_a_parallelogram_that_folds_is_where_branches_cross():
    """It goes straight on as a parallelogram, or on as one whose bars cross: both read the same."""
    mech, _ = case("parallelogram")
    here, q = prepared("parallelogram"), np.array([0.5, -0.5, 0.5])
    oracle = Oracle(mech, here.measured, q)
    many = ManyBranches(mech, here.measured, oracle)
    for crank, crosses in ((0.02, False), (-0.001, True), (-0.5, True), (1.2, False)):
        x = np.array([crank])
        one, two = oracle.way(q, x), many.ways(q[None], x[None], x[None] - q[:1], ranks=True)
        assert (one.crossed or one.why == "rows") is bool(two.crossed[0]) is crosses
        here.reset(q)
        if not crosses:
            np.testing.assert_allclose(here.state(x)[0], [crank, -crank, crank], atol=1e-12)
            continue
        with pytest.raises(hc.HoloctlError, match="singular"):
            here.resynchronise(x)


def test_rates_are_those_of_the_motion():
    """By Richardson's differences of the oracle."""
    for name in ("five_bar", "delta", "bricard_cut", "geared_slider", "stewart"):
        mech, _ = case(name)
        here, q = prepared(name), hc.assemble(case(name)[0])[0]
        oracle = Oracle(mech, here.measured, q)
        rate = np.random.default_rng(0).normal(size=oracle.m)
        rate /= np.linalg.norm(rate)
        x = oracle.at(q)

        def there(h, oracle=oracle, q=q, x=x, rate=rate):
            return oracle.way(q, oracle.moved(x, h * rate * oracle.unit), steps=10).q

        def slope(h, there=there, mech=mech, q=q):
            ends = [pin.difference(mech.model, q, there(s * h)) for s in (1.0, -1.0)]
            return (ends[0] - ends[1]) / (2.0 * h)

        h = 2e-3
        thirds = [(4.0 * slope(s * h / 2) - slope(s * h)) / 3.0 for s in (1.0, 2.0)]
        expected = (16.0 * thirds[0] - thirds[1]) / 15.0
        here.reset(q)
        _, v = here.state(x, rate * oracle.unit)
        assert np.abs((v - expected) / mech.column_scale).max() < 1e-9
