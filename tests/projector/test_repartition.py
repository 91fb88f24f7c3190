"""Partitions decided anew on the way: where, how often, and what they are then."""

from __future__ import annotations

import dataclasses
import pickle
from itertools import pairwise

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
from motions import along_motion
from support import closed_states, few, mechanism
from zoo import parallelogram, slider_crank, timed_arm

import holoctl as hc
from holoctl.projector.partition import PREFERENCE, SPLIT_LIMIT, check_partition
from holoctl.projector.repartition import (
    MOTORS_AGAIN,
    ROWS_ILL,
    decided_anew,
    independence,
    repartitioned,
)
from holoctl.rows.evaluate import scaled_rows_at

WEAR = ["bennett", "line_symmetric_bricard", "kaleidocycle_6", "trihedral_bricard", "wohlhart",
        "locomotive_2", "bennett_chain_3", "tripteron"]  # fmt: skip
"""Mechanisms whose kept rows get dependent on the way while the rank stays."""


def share(G, part):
    """The smallest singular value of the kept rows, over that of all."""
    of_all, of_kept = independence(G, part)
    return of_kept / of_all


def decided(mech, **options):
    return hc.partition(mech, hc.assemble(mech)[0], **options)


def swapped(mech, part, states):
    """The partitions along a way, one for each state."""
    for q, v, _ in states:
        part = repartitioned(mech, part, q, v)
        yield part


@pytest.mark.parametrize("name", few(WEAR, WEAR[:3]))
def test_rows_that_get_dependent_on_the_way_give_way_to_others(name):
    mech = oc.drawn(name)[1]
    first = part = decided(mech)
    swaps, worst, unswapped = 0, 1.0, 1.0
    for q, v, G in along_motion(mech, 400):
        other = repartitioned(mech, part, q, v)
        if other is not part:
            swaps += 1
            check_partition(mech, other)
            assert not np.array_equal(other.rows, part.rows) or other.condition < SPLIT_LIMIT
            kept = ("rank", "gap", "actuation_rank", "tolerance", "off", "row_names")
            assert all(getattr(other, name) == getattr(first, name) for name in kept)
            assert repartitioned(mech, other, q, v) is other
            again = pickle.loads(pickle.dumps(other))
            assert again.independence == other.independence <= 1.0
            part = other
        worst, unswapped = min(worst, share(G, part)), min(unswapped, share(G, first))
    assert 1 <= swaps <= 8
    assert worst > 0.2 * ROWS_ILL > unswapped


@pytest.mark.parametrize("cut", range(1, 7))
def test_a_bricard_that_is_cut_at_any_hinge_goes_all_the_way(cut):
    mech = oc.EVERY["line_symmetric_bricard"]().mechanism(cut=[f"hinge_{cut}"], actuated=())
    part, swaps, worst = decided(mech), 0, 1.0
    for q, v, G in along_motion(mech, 250):
        other = repartitioned(mech, part, q, v)
        swaps, part, worst = swaps + (other is not part), other, min(worst, share(G, other))
    assert 1 <= swaps <= 8
    assert worst > 0.3 * ROWS_ILL


@pytest.mark.parametrize("name", ["cardan_z", "four_bar", "rails_2", "oldham", "watt"])
def test_what_stays_good_stays_the_same(name):
    """Also where rows are redundant: nothing is decided for its own sake."""
    mech = oc.drawn(name)[1]
    part = decided(mech)
    assert all(p is part for p in swapped(mech, part, along_motion(mech, 150)))


def with_noise(mech, states, size, seed=5):
    rng = np.random.default_rng(seed)
    for q, v, G in states:
        yield pin.integrate(mech.model, q, size * rng.normal(size=mech.nv)), v, G


@pytest.mark.parametrize("noise", [1e-6, 1e-3])
def test_noise_does_not_flip_it(noise):
    """Neither on the way, nor where it stands still just there where it was decided anew."""
    mech = oc.drawn("line_symmetric_bricard")[1]
    states = list(along_motion(mech, 400))
    part, swaps = decided(mech), 0
    for state, (x, v, _) in zip(states, with_noise(mech, states, noise), strict=True):
        other = repartitioned(mech, part, x, v)
        if other is not part:
            swaps += 1
            part = other
            standing = with_noise(mech, [state] * 200, noise, seed=swaps)
            assert all(p is part for p in swapped(mech, part, standing))
    assert 3 <= swaps <= 6


def test_forth_and_back_asks_for_little():
    """To and fro over one place: with hysteresis there is at most one swap for each way."""
    mech = oc.drawn("bennett")[1]
    states = list(along_motion(mech, 300))
    part = decided(mech)
    parts = list(swapped(mech, part, states))
    first = next(i for i, p in enumerate(parts) if p is not part)
    there = states[first - 5 : first + 5]
    to_and_fro = (there + there[::-1]) * 20
    found = [parts[first - 6], *swapped(mech, parts[first - 6], to_and_fro)]
    assert sum(a is not b for a, b in pairwise(found)) == 1


# ----------------------------------------------------------------------------------- coordinates


def turning_crank(count=200):
    """Configurations of the slider-crank over whole turns of its crank, with velocities."""
    for angle in np.linspace(1.0, 1.0 + 4.0 * np.pi, count):
        rod = -angle - np.arcsin(0.4 * np.sin(angle))
        slider = 0.2 * np.cos(angle) + 0.5 * np.cos(angle + rod)
        q = np.array([angle, rod, slider])
        rod_rate = -1.0 - 0.4 * np.cos(angle) / np.cos(angle + rod)
        speed = -0.2 * np.sin(angle) - 0.5 * np.sin(angle + rod) * (1.0 + rod_rate)
        yield q, np.array([1.0, rod_rate, speed])


def test_coordinates_that_were_chosen_stay_until_they_are_bad():
    """The slider of a slider-crank does not tell the crank at its dead centres."""
    mech = slider_crank(motor="crank")
    part = first = decided(mech, independent=["slider"])
    assert first.chosen
    assert not first.motors_left_out
    worst, swaps = 0.0, 0
    for q, v in turning_crank():
        other = repartitioned(mech, part, q, v)
        swaps, part = swaps + (other is not part), other
        kept = scaled_rows_at(mech, q, v, 0.0).jacobian[part.rows]
        worst = max(worst, float(np.linalg.cond(kept[:, part.dependent])))
    assert swaps == 1
    assert part.independent.tolist() == [0]  # the crank, by preference
    assert not part.chosen
    assert worst < 1e3
    stays = decided(mech, independent=["crank"])
    states = ((q, v, None) for q, v in turning_crank())
    assert all(p is stays for p in swapped(mech, stays, states))


def test_motors_are_left_at_their_dead_point_and_are_independent_again_behind_it():
    """A motor on the slider: at the dead centre the crank is independent, elsewhere the motor."""
    mech = slider_crank(motor="slider")
    part = first = decided(mech)
    assert first.independent.tolist() == [2]
    assert not first.chosen
    seen = []
    for q, v in turning_crank(20001):
        other = repartitioned(mech, part, q, v)
        if other is not part:
            kept = scaled_rows_at(mech, q, v, 0.0).jacobian[part.rows]
            own, motor = (np.linalg.cond(kept[:, p.dependent]) for p in (part, first))
            seen.append(other.motors_left_out)
            if other.motors_left_out:
                assert motor > 0.3 * PREFERENCE
            else:
                assert motor < 3.0 * MOTORS_AGAIN * own
        part = other
    assert seen == [True, False] * 4  # two turns, two dead centres each


def test_passive_coordinates_change_and_motors_stay():
    """Ticks with passive motions need every motor among the independent coordinates."""
    mech = dataclasses.replace(oc.drawn("tripteron")[1], actuated=())
    motor = oc.drawn("tripteron")[1].actuator_names[0]
    mech = dataclasses.replace(mech, actuated=[motor])
    part, swaps = decided(mech), 0
    own = mech.coordinate_names.index(motor)
    for q, v, _ in along_motion(mech, 400):
        other = repartitioned(mech, part, q, v)
        if other is not part:
            swaps += not np.array_equal(other.independent, part.independent)
            assert own in other.independent
        part = other
    assert swaps >= 1


# ------------------------------------------------------------------- where nothing is to be done


def test_a_singular_configuration_leaves_it_as_it_is():
    """All rows lose rank there: no choice helps, and the torque says so as before."""
    mech = parallelogram()
    q, _ = hc.assemble(mech)
    part = hc.partition(mech, q)
    for angle in (1e-2, 1e-4, 1e-6, 1e-9, 0.0):
        folded = np.array([angle, -angle, angle])
        assert repartitioned(mech, part, folded, np.array([1.0, -1.0, 1.0])) is part
    law = hc.ComputedTorque(mech, 1.0, 1.0, partition=part)
    assert law.repartitioned(np.zeros(3), np.zeros(3)) is law
    with pytest.raises(hc.HoloctlError):
        law.torque(np.zeros(3), np.zeros(3), [0.0], [0.0], [1.0])


@pytest.mark.parametrize("x", [np.nan, np.inf, 1e300])
def test_a_state_out_of_range_leaves_it_as_it_is(x):
    mech = mechanism("four_bar")
    part = decided(mech)
    q, v = closed_states("four_bar", 1)[0]
    broken = q.copy()
    broken[1] = x
    with np.errstate(all="ignore"):
        assert repartitioned(mech, part, broken, v) is part
        assert repartitioned(mech, part, q, np.full(3, x)) is part


@pytest.mark.parametrize("name", ["sine_chart", "timed_arm", "floating_leg", "three_motors"])
def test_charts_rows_in_time_and_quaternions(name):
    """Same rank, valid indices, whatever the kind of rows."""
    mech = mechanism(name)
    part = decided(mech)
    for q, v in closed_states(name, 30):
        other = repartitioned(mech, part, q, v, 0.0)
        check_partition(mech, other)
        assert other.rank == part.rank
        assert repartitioned(mech, other, q, v, 0.0) is other


def test_without_constraints_nothing_is_decided():
    mech = dataclasses.replace(mechanism("five_bar"), constraints=[])
    part = decided(mech)
    assert part.rank == 0
    assert repartitioned(mech, part, mech.reference, np.ones(4)) is part


def test_time_counts():
    """Rows are looked at where they are at that time."""
    mech = timed_arm()
    q, v = hc.assemble(mech, t=0.3)
    part = hc.partition(mech, q, t=0.3)
    assert repartitioned(mech, part, q, v, 0.3) is part


@pytest.mark.parametrize("name", ["bennett", "locomotive_2"])
def test_a_jacobian_decides_as_hc_partition_does(name):
    """Where the partition of the whole procedure was decided, pivots give the same."""
    mech = oc.drawn(name)[1]
    q, v = hc.assemble(mech)
    part = hc.partition(mech, q)
    again = decided_anew(mech, part, scaled_rows_at(mech, q, v, 0.0).jacobian)
    assert np.array_equal(again.rows, part.rows)
    assert np.array_equal(again.independent, part.independent)
    assert again.independence == pytest.approx(part.independence, rel=1e-9)


# ------------------------------------------------------------------------------ rounded geometry


def along_kept_rows(mech, part, count):
    """States closed by the kept rows alone; `send` the partition to go on with."""
    q, heading = hc.assemble(mech)[0], np.random.default_rng(0).normal(size=mech.nv)
    c, rest = mech.column_scale, np.zeros(mech.nv)
    for _ in range(count):
        G = scaled_rows_at(mech, q, rest, 0.0).jacobian
        motions = np.linalg.svd(G[part.rows])[2][part.rank :]
        heading = motions.T @ (motions @ heading)
        heading /= np.linalg.norm(heading)
        part = yield q, 1.3 * c * heading, G
        q = pin.integrate(mech.model, q, 0.03 * c * heading)
        for _ in range(20):
            rows = scaled_rows_at(mech, q, rest, 0.0)
            step = np.linalg.lstsq(rows.jacobian[part.rows], rows.error[part.rows], rcond=None)[0]
            q = pin.integrate(mech.model, q, -c * step)
            if np.abs(rows.error[part.rows]).max() < 1e-13:
                break


@pytest.mark.parametrize("name", ["bennett", "line_symmetric_bricard", "bennett_chain_3"])
def test_rounded_geometry_gets_rows_that_tell_its_motion(name):
    """Worn rows tell another motion there, and the law refuses it; with others it does not."""
    mech = dataclasses.replace(oc.rounded(oc.drawn(name)[1], 1e-6), tolerance=1e-4)
    law = first = hc.ComputedTorque(mech, 1.0, 1.0)
    assert law.partition.tolerance == 1e-4
    swaps, refused, unswapped = 0, 0, 0
    states = along_kept_rows(mech, law.partition, 350)
    state, one = next(states), np.ones(mech.nu)
    while state is not None:
        q, v, _ = state
        other = law.repartitioned(q, v)
        if other is not law:
            swaps += 1
            assert other.partition.tolerance == 1e-4
            assert other.partition.off == law.partition.off
        law = other
        for which in (law, first):
            try:
                which.torque(q, v, mech.motor_positions(q), 0 * one, one)
            except hc.HoloctlError:
                refused, unswapped = refused + (which is law), unswapped + (which is first)
        try:
            state = states.send(law.partition)
        except StopIteration:
            state = None
    assert 2 <= swaps <= 8
    assert refused == 0 < unswapped
