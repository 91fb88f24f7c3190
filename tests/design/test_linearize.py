"""Linear models: against Richardson differences of the reduced nonlinear dynamics."""

from __future__ import annotations

import numpy as np
import pytest
from reduced import Reduced
from support import closed_states, few, mechanism
from zoo import ZOO

import holoctl as hc


def compared(mech, q, v, t=0.0, seed=0, along="fixed", h=0.02):
    """The largest difference of A and of B from those by differences, relative."""
    part = hc.partition(mech, q, t=t)
    u = np.random.default_rng(seed).normal(size=mech.nu)
    lin = hc.linearize(mech, q, v, u, t=t, partition=part, along=along)
    A, B = Reduced(mech, part, lin.q, lin.v, t, along).derivatives(u, h=h)
    size = max(1.0, np.abs(A).max())
    return np.abs(lin.A - A).max() / size, np.abs(lin.B - B).max(initial=0.0), lin


@pytest.mark.parametrize("name", few(ZOO))
def test_linear_models_are_derivatives_of_the_reduced_dynamics(name):
    mech = mechanism(name)
    for q, v in closed_states(name, count=3)[:2]:
        for speed in (0.0, 1.0):
            a, b, _ = compared(mech, q, speed * v)
            assert a < 1e-8
            assert b < 1e-8
