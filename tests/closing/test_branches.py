"""Which branch: assembly stays on that of the guess, as often as least squares from there do."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import least_squares
from support import few, mechanism, rows
from zoo import ZOO, add_body, at, bar, vertical

import holoctl as hc

HARD = ["spatial_arms", "standing_leg", "weld_chain", "prismatic_chain", "welded_arms", "held_foot"]
"""Of the zoo, those where either leaves the branch now and then."""

QUICK = ["four_bar", "five_bar", "delta"]
"""The short run's."""


@cache
def robot(name):
    mech = mechanism(name) if name in ZOO else hc.load(hc.robot_file(name))
    return mech, hc.assemble(mech)[0]


def scaled(mech, q):
    r = rows(mech, q, np.zeros(mech.nv))
    return mech.row_scale * r.error, mech.row_scale[:, None] * r.jacobian * mech.column_scale


def moved(mech, q, step):
    return pin.normalize(mech.model, pin.integrate(mech.model, q, mech.column_scale * step))


def guesses(mech, q, off, count, seed):
    """Guesses whose coordinates are off by `off` rad (root mean square)."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        d = rng.normal(size=mech.nv)
        yield moved(mech, q, off * np.sqrt(mech.nv) * d / np.linalg.norm(d))


def away(mech, q, goal):
    """Scaled step from q to the goal, angles the short way round."""
    d = pin.difference(mech.model, q, goal)
    turns = [j.idx_v for j in mech.model.joints[1:] if j.nq == j.nv == 1 and "R" in j.shortname()]
    d[turns] = (d[turns] + np.pi) % (2.0 * np.pi) - np.pi
    return d / mech.column_scale


def connected(mech, q, goal):
    """Whether a path of closed configurations, in steps of 0.05, leads from q ever nearer to
    the goal and ends there; from either end."""
    return leads_to(mech, q, goal) or leads_to(mech, goal, q)


def leads_to(mech, q, goal, longest=0.05):
    d = away(mech, q, goal)
    for _ in range(600):
        if np.linalg.norm(d) < 1e-3:
            return True
        _, s, V = np.linalg.svd(scaled(mech, q)[1])
        Z = V[np.count_nonzero(s > 1e-5 * max(s[0], 1.0)) :].T
        step = Z @ (Z.T @ d)
        length = np.linalg.norm(step)
        if length < 1e-5:
            return False
        step *= min(1.0, longest / length)
        for fraction in (1.0, 0.5, 0.25, 0.1, 0.03):
            new = closed_again(mech, moved(mech, q, fraction * step), 0.5 * fraction * longest)
            if new is not None and np.linalg.norm(away(mech, new, goal)) < np.linalg.norm(d):
                q, d = new, away(mech, new, goal)
                break
        else:
            return False
    return False


def closed_again(mech, q, reach):
    """Closed by Newton's method within `reach`, or None: a path does not jump."""
    gone = 0.0
    for _ in range(8):
        error, G = scaled(mech, q)
        if np.abs(error).max() < 1e-9:
            return q
        step = -np.linalg.lstsq(G, error, rcond=1e-6)[0]
        gone += np.linalg.norm(step)
        if gone > reach:
            return None
        q = moved(mech, q, step)
    return None


def by_least_squares(mech, guess):
    def jacobian(s):
        D = pin.dIntegrate(mech.model, guess, mech.column_scale * s, pin.ArgumentPosition.ARG1)
        G = scaled(mech, moved(mech, guess, s))[1]
        return G @ (D * mech.column_scale / mech.column_scale[:, None])

    found = least_squares(
        lambda s: scaled(mech, moved(mech, guess, s))[0], np.zeros(mech.nv), jac=jacobian,
        xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=400,
    )  # fmt: skip
    return moved(mech, guess, found.x)


@cache
def on_the_branch(name, off=0.5, count=12, seed=41):
    """How often assembly ends on the branch of the reference, and how often least squares do."""
    mech, q = robot(name)
    ours = theirs = 0
    for guess in guesses(mech, q, off, count, seed):
        ours += connected(mech, q, hc.assemble(mech, guess)[0])
        other = by_least_squares(mech, guess)
        theirs += np.abs(scaled(mech, other)[0]).max() < 1e-8 and connected(mech, q, other)
    return ours, theirs


@pytest.mark.parametrize("name", few([*hc.robot_names(), *HARD], QUICK))
def test_the_branch_is_kept_as_often_as_by_least_squares(name):
    ours, theirs = on_the_branch(name)
    assert ours >= theirs
    assert ours >= 8


@pytest.mark.slow
def test_the_comparison_decides_something():
    """Least squares leave the branch, so there is one to leave, and assembly does so less."""
    counts = np.array([on_the_branch(name) for name in [*hc.robot_names(), *HARD]])
    ours, theirs = counts.sum(axis=0)
    assert theirs <= 12 * len(counts) - 10
    assert ours >= theirs + 8


def test_a_posture_with_the_other_elbow_is_another_branch():
    mech = mechanism("four_bar")
    q = hc.assemble(mech)[0]
    other = hc.assemble(mech, [q[0], q[1] + 2.5, -q[2]], locked=["crank"])[0]
    assert connected(mech, q, hc.assemble(mech, q + np.array([0.5, 0.0, 0.0]))[0])
    assert not connected(mech, q, other)


@pytest.mark.parametrize("name", few(hc.robot_names(), QUICK))
def test_a_guess_a_little_off_stays_on_the_branch(name):
    ours, _ = on_the_branch(name, off=0.2)
    assert ours == 12


@pytest.mark.parametrize("name", few([*hc.robot_names(), *HARD], QUICK))
def test_guesses_far_off_are_closed(name):
    mech, q = robot(name)
    for guess in guesses(mech, q, 1.5, 12, seed=42):
        closed, _ = hc.assemble(mech, guess)
        assert np.abs(scaled(mech, closed)[0]).max() <= 1e-12


def test_what_is_found_is_hardly_ever_farther_than_the_branch_of_the_reference():
    """The platform of the Delta robot hangs on six rods, which may cross."""
    mech, q = robot("delta")
    nearer = 0
    for guess in guesses(mech, q, 0.5, 12, seed=43):
        found = np.linalg.norm(away(mech, guess, hc.assemble(mech, guess)[0]))
        x = q
        for _ in range(300):  # along the manifold towards the guess, as far as that goes
            _, s, V = np.linalg.svd(scaled(mech, x)[1])
            Z = V[np.count_nonzero(s > 1e-5) :].T
            x = closed_again(mech, moved(mech, x, 0.2 * Z @ (Z.T @ away(mech, x, guess))), 1.0)
        nearer += found <= np.linalg.norm(away(mech, guess, x)) + 1e-3
    assert nearer >= 11


# ------------------------------------------------------------------------------ giving up


def reaching(radius, calls):
    """An arm of three links of 0.4 whose tip is to be `radius` away from its base."""
    m = vertical(pin.Model())
    for i in range(3):
        add_body(m, i, pin.JointModelRZ(), at(0.4 if i else 0.0), f"j{i}", bar(0.4))

    def off(q):
        calls.append(1)
        a = np.cumsum(q)
        tip = 0.4 * np.array([np.cos(a).sum(), np.sin(a).sum()])
        return [tip @ tip - radius**2]

    return hc.Mechanism(m, [hc.Custom(off, scale=1.0, name="reach")], reference=[0.3, 0.5, 0.4])


def test_it_gives_up_where_start_after_start_ends_at_the_same_least_error():
    """The tip reaches 1.2 m and no farther: the least error is 1.5^2 - 1.2^2."""
    calls: list[int] = []
    mech = reaching(1.5, calls)
    calls.clear()
    with pytest.raises(hc.AssemblyError) as caught:
        hc.assemble(mech)
    few = len(calls)
    assert caught.value.residual == pytest.approx(1.5**2 - 1.2**2, abs=1e-6)
    calls.clear()
    with pytest.raises(hc.AssemblyError):
        hc.assemble(mech, restarts=200)
    assert len(calls) <= 1.5 * few  # it does not wait for the rest of its starts


@pytest.mark.parametrize("bent", [1e-3, 1e-5, 1e-7])
def test_a_stretched_arm_is_no_least_error(bent):
    """All but straight, the slope of the error is small, but a step gets away from there."""
    mech = reaching(0.9, [])
    q, _ = hc.assemble(mech, [0.0, bent, -bent], restarts=0)
    assert np.abs(scaled(mech, q)[0]).max() <= 1e-12
