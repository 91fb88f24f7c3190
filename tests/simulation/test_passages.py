"""Motions through singular configurations, by references of their own: `passages`.

First the references themselves; then the simulation.
"""

from __future__ import annotations

import numpy as np
import pytest
from passages import CROSSING, NEAR, REGULAR, duration_of, passage, random_start
from support import difference

import holoctl as hc

FEW = {"parallelogram", "kite", "three_bars", "crossed_1", "timed", "trammel", "nearly_0.0001"}
"""The short run's."""


def few(names):
    return [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in names]


def scaled(mech, q, v, t=0.0):
    """G', and the largest scaled error and rate."""
    T = hc.terms(mech, q, v, t=t).rows
    r = mech.row_scale
    return mech.scale * T.jacobian, np.abs(r * T.error).max(), np.abs(r * T.rate).max()


def least(p, motion, t):
    """The singular value of G' that goes to zero at singular configurations, and the next one."""
    G, _, _ = scaled(p.mech, *motion.state(t), t)
    rank = p.mech.nv - p.free
    s = np.append(np.linalg.svd(G, compute_uv=False), 0.0)
    return s[rank - 1], s[rank]


# ---------------------------------------------------------------------------------- the references


@pytest.mark.parametrize("name", few([*CROSSING, *REGULAR, *NEAR]))
def test_the_reference_obeys_constraints_energy_and_equation_of_motion(name):
    p, T = passage(name), duration_of(passage(name))
    y0, yd0 = random_start(p, np.random.default_rng(1))
    motion = p.moved(y0, yd0, T)
    for t in np.linspace(0.0, T, 13):
        q, v = motion.state(t)
        _, error, rate = scaled(p.mech, q, v, t)
        assert error < 1e-13
        assert rate < 1e-13 * max(1.0, np.abs(v).max())
    energies = motion.energies()
    assert p.timed or np.ptp(energies) < 1e-9 * np.abs(energies).max()


@pytest.mark.parametrize("name", few([*CROSSING, *REGULAR, *NEAR]))
def test_the_reference_accelerates_as_the_forward_dynamics_of_the_rows(name):
    p = passage(name)
    rng = np.random.default_rng(2)
    for _ in range(3):
        y, yd = random_start(p, rng)
        y, yd = p.full(y, yd)
        ydd = np.append(p.acceleration(y, yd), np.zeros(int(p.timed)))
        q, v = p.state(y, yd)

        def later(s, y=y, yd=yd, ydd=ydd):
            return p.state(y + s * yd + 0.5 * s * s * ydd, yd + s * ydd)[1]

        expected = difference(later, 2e-4)
        a = hc.forward_dynamics(p.mech, q, v, np.zeros(p.mech.nv)).a
        assert np.abs(a - expected).max() < 1e-8 * max(1.0, np.abs(a).max())


@pytest.mark.parametrize("name", few([*CROSSING, *REGULAR]))
def test_rows_get_dependent_at_the_claimed_instants_and_only_there(name):
    p, T = passage(name), duration_of(passage(name))
    y0, yd0 = random_start(p, np.random.default_rng(1))
    motion = p.moved(y0, yd0, T)
    instants = motion.crossings()
    assert len(instants) > 0 or name in REGULAR
    for t in instants:
        assert least(p, motion, t)[0] < 1e-9
    for t in np.linspace(0.0, T, 301):
        s, beyond = least(p, motion, t)
        assert beyond < 1e-13
        near = np.abs(instants - t).min(initial=np.inf)
        assert s > 0.005 * min(1.0, near)


@pytest.mark.parametrize("name", few(NEAR))
def test_near_misses_miss(name):
    p, T = passage(name), duration_of(passage(name))
    motion = p.moved(*random_start(p, np.random.default_rng(1)), T)
    s = [least(p, motion, t)[0] for t in np.linspace(0.0, T, 301)]
    assert min(s) > 1e-8
