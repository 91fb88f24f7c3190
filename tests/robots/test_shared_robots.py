"""The robots of the shared folder: rank, assembly, and torques that hold them."""

from __future__ import annotations

import numpy as np
import pytest
from shared_robots import shared_robot
from support import assert_rows_close, potential_slope, rows

import holoctl as hc

EXPECTED = {  # nq = nv, closure rows, rank, motors
    "5bar_linkage": (6, 6, 3, 2),
    "5bar_linkage_iso6d": (8, 6, 6, 2),
    "cassie_like": (19, 12, 12, 5),
    "disney_like": (27, 18, 18, 6),
}


@pytest.mark.parametrize("name", list(EXPECTED))
@pytest.mark.parametrize("free_flyer", [False, True])
def test_it_assembles_and_has_its_rank(name, free_flyer):
    nv, m, rank, nu = EXPECTED[name]
    mech = hc.load(shared_robot(name), free_flyer=free_flyer)
    assert (mech.nv, len(mech.row_scale), mech.nu) == (nv + 6 * free_flyer, m, nu)
    q, v = hc.assemble(mech)
    assert_rows_close(mech, rows(mech, q, v).error, 0.0, 1e-10, (q, v), what="error")
    part = hc.partition(mech, q)
    assert part.rank == rank
    assert not part.uncertain
    assert part.actuation_rank == nu


@pytest.mark.parametrize("name", ["5bar_linkage", "5bar_linkage_iso6d"])
def test_holding_torques_are_certified_and_balance_gravity(name):
    mech = hc.load(shared_robot(name))
    q, rest = hc.assemble(mech)
    part = hc.partition(mech, q)
    P = hc.project(mech, q, rest, partition=part)
    res = hc.inverse_dynamics(mech, q, rest, rest, coordinates="all", projection=P)
    assert res.certificate.ok, str(res.certificate)
    assert np.abs(res.u).max() > 1.0
    for column in P.gamma.T:  # virtual work along every motion
        slope = potential_slope(mech, q, column)
        assert res.u @ (mech.B.T @ column) == pytest.approx(slope, rel=1e-7, abs=1e-4)


@pytest.mark.parametrize("name", list(EXPECTED))
def test_forward_undoes_inverse(name):
    mech = hc.load(shared_robot(name))
    rng = np.random.default_rng(0)
    q, v = hc.assemble(mech, None, rng.normal(size=mech.nv))
    part = hc.partition(mech, q)
    target = rng.normal(size=mech.nu)
    inverse = hc.inverse_dynamics(mech, q, v, target, partition=part).raise_if_bad()
    forward = hc.forward_dynamics(mech, q, v, mech.B @ inverse.u, partition=part)
    assert np.abs(forward.a - inverse.a).max() < 1e-7 * np.abs(inverse.a).max()
    assert np.abs(mech.B.T @ forward.a - target).max() < 1e-7


def test_a_motion_that_gravity_drives_and_no_motor_holds_is_reported():
    """disney_like: holding all coordinates still is not possible, and is not certified."""
    mech = hc.load(shared_robot("disney_like"))
    q, rest = hc.assemble(mech)
    res = hc.inverse_dynamics(mech, q, rest, rest, coordinates="all")
    assert not res.certificate.ok
    assert "dynamics" in res.certificate.failures
    assert np.abs(res.unbalanced).max() > 1e-5
    with pytest.raises(hc.InconsistentError, match="motors cannot produce"):
        res.raise_if_bad()
