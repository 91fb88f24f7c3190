"""Andrews' squeezer: seven bodies, three loops, a spring; a problem with a published solution."""

from __future__ import annotations

import numpy as np
import pytest
from squeezer import AFTER_30_MS, MOMENT, START, squeezer

import holoctl as hc


def test_after_thirty_milliseconds():
    mech = squeezer()
    q, v = hc.assemble(mech)
    names = mech.coordinate_names
    assert q == pytest.approx([START[n] for n in names], abs=1e-12)
    run = hc.simulate(mech, lambda t, q, v: [MOMENT], q, v, 0.03, frequency=1000.0)
    assert run.q[-1] == pytest.approx([AFTER_30_MS[n] for n in names], abs=1e-8)
    first, last = (hc.energy(mech, run.q[i], run.v[i]).total for i in (0, -1))
    work = MOMENT * (run.q[-1, 0] - run.q[0, 0])
    assert last - first == pytest.approx(work, rel=1e-8)
    assert hc.energy(mech, run.q[-1], run.v[-1]).springs > 1e-2


def test_the_first_accelerations():
    """At rest, where the spring is at its published length."""
    mech = squeezer()
    q, v = hc.assemble(mech)
    a = hc.forward_dynamics(mech, q, v, mech.B @ [MOMENT]).raise_if_bad().a
    published = {"beta": 14222.4439199541139, "theta": -10666.8329399655854}
    for name, x in published.items():
        assert a[mech.coordinate_names.index(name)] == pytest.approx(x, rel=1e-11)


def test_it_is_certified_on_the_way():
    mech = squeezer()
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    result = hc.forward_dynamics(mech, q, v, mech.B @ [MOMENT])
    assert result.certificate.ok
    back = hc.inverse_dynamics(mech, q, v, mech.B.T @ result.a)
    assert back.u == pytest.approx([MOMENT], rel=1e-9)
