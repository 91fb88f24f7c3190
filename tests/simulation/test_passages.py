"""Motions through singular configurations, by references of their own: `passages`.

First the references themselves; then the simulation.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from inside import rows_decided_by
from passages import (
    CROSSING,
    NEAR,
    REGULAR,
    SLOWLY,
    apart,
    duration_of,
    from_below,
    passage,
    random_start,
    rods_meet,
    singular_angles,
)  # fmt: skip
from scipy.optimize import brentq
from support import difference, few, together

import holoctl as hc

FEW = {"kite", "timed"}
"""The short run's."""


def pairs(names, values, short):
    """All pairs; those of a name of the short run with a value in `short` run there."""
    return [
        pytest.param(n, x, marks=() if n in FEW and x in short else pytest.mark.slow)
        for n in names
        for x in values
    ]


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


@pytest.mark.parametrize("name", few([*CROSSING, *REGULAR, *NEAR], FEW))
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


@pytest.mark.parametrize("name", few([*CROSSING, *REGULAR, *NEAR], FEW))
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


@pytest.mark.parametrize("name", few([*CROSSING, *REGULAR], FEW))
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


@pytest.mark.parametrize("name", few(NEAR, FEW))
def test_near_misses_miss(name):
    p, T = passage(name), duration_of(passage(name))
    motion = p.moved(*random_start(p, np.random.default_rng(1)), T)
    s = [least(p, motion, t)[0] for t in np.linspace(0.0, T, 301)]
    assert min(s) > 1e-8


# ---------------------------------------------------------------------------------- the simulation

RIGHT = 1e-6
"""Of states, relative to the largest rate, and of instants, s."""


@cache
def at_random(name, seed, duration=None):
    """A motion of the reference."""
    p = passage(name)
    start = random_start(p, np.random.default_rng(seed))
    return p.moved(*start, duration or duration_of(p))


def simulated(p, motion, **options):
    """A run on the instants of the comparison, and the states that the reference has there."""
    times = np.linspace(0.0, motion.duration, 21)
    states = [motion.state(t) for t in times]
    run = hc.simulate(
        p.mech, None, *states[0], motion.duration, output=times, **together(**options)
    )
    return run, states


def assert_right(p, motion, run, states, instants=True):
    """The motion of the reference, and the same crossings."""
    told = f"{p.name}: found {run.crossings.tolist()}, expected {motion.crossings().tolist()}"
    speed = max(1.0, *(np.abs(v).max() for _, v in states))
    for q, v, (q_ref, v_ref) in zip(run.q, run.v, states, strict=True):
        assert apart(p.mech, q, q_ref) < RIGHT, told
        assert np.abs(v - v_ref).max() < RIGHT * speed, told
    assert run.closure.max() < 1e-10
    if instants:
        of_rows = np.setdiff1d(run.crossings, run.type_2_at)  # the others are of the motors
        assert len(of_rows) == len(motion.crossings()), told
        assert np.abs(of_rows - motion.crossings()).max(initial=0.0) < RIGHT, told


@pytest.mark.parametrize(("name", "seed"), pairs([*CROSSING, *REGULAR], range(4), [0]))
def test_motions_cross_as_the_reference_does(name, seed):
    p = passage(name)
    motion = at_random(name, 1000 + seed)
    assert_right(p, motion, *simulated(p, motion, at_singular="cross"))


@pytest.mark.parametrize("at_singular", ["cross", "raise"])
@pytest.mark.parametrize(
    ("name", "seed"),
    [("nearly_0.01", 0), *(x for x in pairs(NEAR, range(2), []) if x.values != ("nearly_0.01", 0))],
)
def test_near_misses_are_integrated_as_they_are(name, seed, at_singular):
    p = passage(name)
    motion = at_random(name, 2000 + seed, 1.0)
    assert_right(p, motion, *simulated(p, motion, at_singular=at_singular))


@pytest.mark.parametrize(("name", "seed"), pairs([*CROSSING, *REGULAR], range(2), [0]))
def test_raise_stops_before_the_first_crossing(name, seed):
    p = passage(name)
    motion = at_random(name, 1000 + seed)
    if motion.crossings().size == 0:
        assert_right(p, motion, *simulated(p, motion, at_singular="raise"))
        return
    first = motion.crossings()[0]
    with pytest.raises(hc.SingularityError) as caught:
        simulated(p, motion, at_singular="raise")
    error = caught.value
    assert error.time < first + 1e-9
    assert error.time > 0.5 * first
    assert error.run.t[-1] <= error.time + 1e-12
    assert error.run.closure.max() < 1e-10
    for t, q, v in zip(error.run.t, error.run.q, error.run.v, strict=True):
        q_ref, v_ref = motion.state(t)
        assert apart(p.mech, q, q_ref) < RIGHT
        assert np.abs(v - v_ref).max() < RIGHT * max(1.0, np.abs(v_ref).max())


def never_wrong(p, motion, instants=True):
    """The right motion, or an error that says where; True for a motion."""
    try:
        run, states = simulated(p, motion, at_singular="cross")
    except (hc.SingularityError, hc.InconsistentError) as caught:
        run = getattr(caught, "run", None)  # none where the start itself is refused
    else:
        assert_right(p, motion, run, states, instants)
        return True
    for t, q in zip(run.t, run.q, strict=True) if run else ():
        assert apart(p.mech, q, motion.state(t)[0]) < RIGHT, f"{p.name} at {t}"
    return False


MORE = ("pantograph", "carried", "crossed", "pair", "timed", "wheels", "ball", "weightless")
ALONE = [name for name in CROSSING if not name.startswith(MORE)]
"""Of one degree of freedom, with weight."""


SHORT_OF = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0, -1e-6, -1e-4, -1e-2)
BESIDE = (1e-3, -1e-3, 1e-5, -1e-5, 1e-7, -1e-7, 1e-9, -1e-9)


@pytest.mark.parametrize(("name", "short_of"), pairs(ALONE, SHORT_OF, [1e-3, -1e-2]))
def test_motions_that_turn_back_at_a_singular_configuration(name, short_of):
    p = passage(name)
    for y1 in singular_angles(p):
        y0 = from_below(p, y1)
        stop = y1 - np.sign(y1 - y0) * short_of
        rate = p.rate_to_turn_at(y0, stop)
        if rate is None:
            continue
        motion = p.moved([y0], [rate], 1.0)
        # that touches is no crossing, but may be told as one
        never_wrong(p, motion, instants=abs(short_of) > 1e-5)


@pytest.mark.parametrize(("name", "beside"), pairs(ALONE, BESIDE, [1e-3]))
def test_starts_next_to_a_singular_configuration(name, beside):
    p = passage(name)
    for y1 in singular_angles(p):
        never_wrong(p, p.moved([y1 + beside], [3.0], 0.4))


@pytest.mark.parametrize(("name", "speed"), pairs(SLOWLY, (0.3, 1e-2, 1e-3), [0.3]))
def test_slow_passages(name, speed):
    p = SLOWLY[name]()
    for y1 in singular_angles(p):
        never_wrong(p, p.moved([y1 - speed], [speed], 2.0))


def test_where_the_motors_lose_the_platform_the_platform_does_not_notice():
    p = passage("planar_3rrr")
    y, yd = random_start(p, np.random.default_rng(4))
    motion = p.moved(y, yd, 0.4)
    signs = [rods_meet(p, motion.y(t)[0]) for t in np.linspace(0.0, 0.4, 50)]
    assert signs[0] > 0.0 > signs[-1]
    when = brentq(lambda t: rods_meet(p, motion.y(t)[0]), 0.0, 0.4, xtol=1e-14)
    q, v = motion.state(when)
    with pytest.raises((hc.NotActuatedError, hc.SingularityError)):
        hc.inverse_dynamics(p.mech, q, v, np.zeros(3))
    found = simulated(p, motion, at_singular="raise")
    assert_right(p, motion, *found)
    assert found[0].type_2_at == pytest.approx([when], abs=1e-6)


# ------------------------------------------------------------------------------------- sabotage


def _least(G, rows):
    return np.linalg.svd(G[list(rows)], compute_uv=False)[-1]


def never(usual, mech, part, *rest):
    """Rows stay, however dependent they get."""
    return part


def worst_rows(usual, mech, part, look, *rest):
    """The most dependent of all choices of rows, again and again."""
    G = look.last
    rows = min(combinations(range(len(G)), part.rank), key=lambda rows: _least(G, rows))
    return part if tuple(part.rows) == rows else replace(part, rows=np.array(rows))


def worst_coordinates(usual, mech, part, look, *rest):
    """The dependent coordinates that follow the others least."""
    kept, nv = look.last[part.rows], mech.nv
    dependent = min(combinations(range(nv), part.rank), key=lambda c: _least(kept.T, c))
    free = np.setdiff1d(np.arange(nv), dependent)
    if tuple(part.dependent) == dependent:
        return part
    return replace(part, dependent=np.array(dependent), independent=free)


def one_row_less(usual, mech, part, look, *rest):
    """A rank too low: the mechanism gets a freedom that it does not have."""
    if part.rank < mech.nv - 1:
        return part  # done already
    free = np.sort(np.append(part.independent, part.dependent[-1]))
    return replace(
        part, rank=part.rank - 1, rows=part.rows[:-1], dependent=part.dependent[:-1],
        independent=free,
    )  # fmt: skip


REDUNDANT = (
    "trammel", "weightless_trammel", "geared_slider", "geared_parallelogram", "bennett",
    "three_bars", "three_bars_hinged", "parallelogram_hinged", "tilted", "sheet_of_paper",
)  # fmt: skip
"""Mechanisms with more rows than their rank."""


@pytest.mark.parametrize(
    "decide", few([never, worst_rows, worst_coordinates, one_row_less], [worst_rows, one_row_less])
)
@pytest.mark.parametrize("name", few(REDUNDANT, ["trammel"]))
def test_no_wrong_motion_comes_of_a_partition_that_gets_bad_on_the_way(name, decide, monkeypatch):
    p = passage(name)
    motions = [at_random(name, seed, 0.8) for seed in (4000, 4001)]
    for motion in motions:
        times, calls = np.linspace(0.0, 0.8, 401), []

        def half_way(usual, *given, calls=calls):
            calls.append(1)
            return decide(usual, *given) if len(calls) > 6 else usual(*given)

        ended = False
        with monkeypatch.context() as patch:
            rows_decided_by(patch, never if decide is never else half_way)
            try:
                run = hc.simulate(
                    p.mech,
                    None,
                    *motion.state(0.0),
                    0.8,
                    output=times,
                    integrator=hc.Integrator(at_singular="cross"),
                )
            except (hc.SingularityError, hc.InconsistentError) as caught:
                run, ended = caught.run, True
        if ended:  # what came before may slide a little already: that is how it was found out
            assert run.closure.max() < 1e-5
            continue
        for t, q, v in zip(run.t, run.q, run.v, strict=True):
            q_ref, v_ref = motion.state(t)
            _, error, rate = scaled(p.mech, q, v, t)
            assert error < RIGHT
            assert rate < RIGHT * max(1.0, np.abs(v_ref).max())
            assert apart(p.mech, q, q_ref) < RIGHT
            assert np.abs(v - v_ref).max() < RIGHT * max(1.0, np.abs(v_ref).max())
