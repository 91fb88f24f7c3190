"""Never another branch in C either: random jumps of the sensors in exported C, as it is.

What one tick reaches is compared with small steps along the same way; where these say otherwise,
and now and then, the oracle of tests/estimation/branches.py judges, and Python.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from branches import Oracle
from exported import compilers, run
from fleet import OWN, SHARED, SHIPPED, case, prepared
from jumps import SAME, starts
from many_branches import ManyBranches, understood
from support import few

import holoctl as hc

pytest.importorskip("casadi")

OTHERWISE, ALONE, REFUSED, CHOSEN = range(4)
LARGE = ("stewart", "disney_like", "cassie_like", "rods_delta")
JUDGED = 15


def driven(name, folder, count, seed):
    """How many jumps ended how, and those that are to be judged: (how, q, x, q found)."""
    mech, _ = case(name)
    here = prepared(name)
    oracle = Oracle(mech, here.measured, here.q)
    if oracle.b < oracle.m or any(kind == "whole" for kind, _, _ in oracle.kinds):
        pytest.skip("not every step of these sensors is a jump")
    try:
        source = hc.export_c(mech, folder, measured=here.measured)[1]
    except hc.InputError as error:
        pytest.skip(str(error))
    np.stack(starts(name, 40, seed)).tofile(folder / "starts")
    driver = Path(__file__).with_name("closed_state_jumps.c")
    run(
        compilers()[0], "-O1", "-w", f'-DSOURCE="{source}"', f"-DREMEMBERED={source.stem}_memory",
        "-I", folder, driver, "-o", folder / "jumps", "-lm",
    )  # fmt: skip
    said = run(folder / "jumps", count, seed, folder / "starts", folder / "report")
    told = np.fromfile(folder / "report").reshape(-1, 1 + 2 * mech.nq + oracle.m)
    return oracle, [int(n) for n in said.split()], told


def judged(name, oracle, told, most):
    """How many of those that C reached the oracle knows, and that all of these are right."""
    mech, known = case(name)[0], 0
    for kind in (OTHERWISE, ALONE, CHOSEN):
        some = told[told[:, 0] == kind][:most]
        if not len(some):
            continue
        q, x, found = np.split(some[:, 1:], [mech.nq, mech.nq + oracle.m], axis=1)
        if understood(mech, prepared(name).measured):
            dm = np.stack([oracle.off(*one) for one in zip(q, x, strict=True)])
            way = ManyBranches(mech, prepared(name).measured, oracle).ways(q, x, dm)
            ends, sure = way.q, way.sure
        else:
            ways = [oracle.way(*one) for one in zip(q, x, strict=True)]
            ends, sure = [w.q for w in ways], [w.sure for w in ways]
        for i in np.flatnonzero(sure):
            known += 1
            assert oracle.apart(ends[i], found[i], x[i]) < SAME, f"FLIP from {q[i]} to {x[i]}"
    return known


def check(name, folder, count, seed, most):
    oracle, counts, told = driven(name, folder, count, seed)
    jumps, same, otherwise, alone, refused, ended = counts
    known = judged(name, oracle, told, most)
    print(f"{name}: {jumps} jumps, {same} as small steps, {otherwise} otherwise, {alone} reached "
          f"where small steps end, {refused} refused, {ended} of them where small steps go on; "
          f"the oracle judged {known}")  # fmt: skip
    assert jumps > 0.9 * count
    assert same + otherwise + alone + refused == jumps
    assert same + otherwise > 0.3 * jumps
    assert alone <= 1e-3 * jumps
    if not oracle.idle:  # else where bodies spin depends on the steps
        assert not otherwise


@pytest.mark.parametrize("name", few(["five_bar", "three_arms"], ["five_bar"]))
def test_jumps_in_c_end_on_their_branch_or_are_refused(name, tmp_path):
    check(name, tmp_path, 5000, 1, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHIPPED, *SHARED, *OWN])
def test_many_jumps_in_c(name, tmp_path):
    """Some 10^6 of them, all together."""
    check(name, tmp_path, 15_000 if name in LARGE else 35_000, 2, JUDGED)
