"""Partitions, terms and projections that a caller gives: of this mechanism and this state."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from refusals import refused, relaxed
from support import closed_states, mechanism, shared_partition
from zoo import five_bar, four_bar

import holoctl as hc


@pytest.mark.parametrize("junk", [5, "split", {"rank": 2}, hc.results.Partition])
def test_what_is_no_partition_is_refused(s, junk):
    for call in (
        lambda: hc.project(s.mech, s.q, s.v, partition=junk),
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, partition=junk),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, partition=junk),
        lambda: hc.ComputedTorque(s.mech, 1.0, 1.0, partition=junk),
        lambda: hc.impulse(s.mech, s.q, s.v, partition=junk),
        lambda: relaxed(s, partition=junk),
        lambda: hc.methods.is_fully_actuated(s.mech, s.q, partition=junk),
        lambda: hc.PreparedForwardDynamics(s.mech, junk),
        lambda: hc.PreparedInverseDynamics(s.mech, junk),
    ):
        refused(call, hc.InputError, "partition")


@pytest.mark.parametrize("junk", [5, "terms", {"M": 1}, hc.results.Terms])
def test_what_are_no_terms_is_refused(s, junk):
    for call in (
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, partition=s.part, terms=junk),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, partition=s.part, terms=junk),
        lambda: hc.impulse(s.mech, s.q, s.v, partition=s.part, terms=junk),
        lambda: relaxed(s, terms=junk),
    ):
        refused(call, hc.InputError, "terms", "Terms")


def test_a_partition_of_another_mechanism_is_refused(s):
    """By its coordinates, or by rows that this one has not."""
    four_coordinates = hc.partition(five_bar(), hc.assemble(five_bar())[0])
    rows = np.array([0, 4])
    five_rows = dataclasses.replace(s.part, rows=rows)
    for other in (four_coordinates, five_rows):
        for call in (
            lambda other=other: hc.project(s.mech, s.q, s.v, partition=other),
            lambda other=other: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, partition=other),
            lambda other=other: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, partition=other),
            lambda other=other: hc.ComputedTorque(s.mech, 1.0, 1.0, partition=other),
            lambda other=other: hc.impulse(s.mech, s.q, s.v, partition=other),
            lambda other=other: relaxed(s, partition=other),
            lambda other=other: hc.methods.is_fully_actuated(s.mech, s.q, partition=other),
            lambda other=other: hc.PreparedForwardDynamics(s.mech, other),
            lambda other=other: hc.PreparedInverseDynamics(s.mech, other),
        ):
            refused(call, hc.InputError, "partition", "another mechanism")


@pytest.mark.parametrize("junk", [5, "split", hc.results.Projection])
def test_what_is_no_projection_is_refused(s, junk):
    for call in (
        lambda: hc.forward_dynamics(s.mech, s.q, s.v, s.tau, projection=junk),
        lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, projection=junk),
    ):
        refused(call, hc.InputError, "projection")


def test_a_projection_of_another_mechanism_is_refused(s):
    other = hc.project(four_bar(), s.q, s.v)
    refused(lambda: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, projection=other), hc.InputError,
            "projection", "mechanism")  # fmt: skip


@pytest.mark.parametrize("which", ["q", "v", "t", "t_stab"])
def test_a_projection_of_another_state_is_refused(s, which):
    """Of another configuration, velocity, time or stabilisation than the call asks for."""
    other = {"t_stab": 0.1} if which == "t_stab" else {"t": 1.0} if which == "t" else {}
    q = s.q + 0.01 if which == "q" else s.q
    v = s.v + 0.01 if which == "v" else s.v
    for call in (
        lambda: hc.inverse_dynamics(s.mech, q, v, s.one, projection=s.P, **other),
        lambda: hc.forward_dynamics(s.mech, q, v, s.tau, projection=s.P, **other),
    ):
        refused(call, hc.InputError, "projection")


def test_independent_accelerations_need_coordinates(s):
    P = hc.project(s.mech, s.q, s.v, method="orthonormal")
    refused(
        lambda: hc.inverse_dynamics(
            s.mech, s.q, s.v, s.one, coordinates="independent", projection=P
        ),
        hc.InputError, "independent", "orthonormal",
    )  # fmt: skip


@pytest.mark.parametrize("names", [[], ["crank", "rocker"]])
def test_the_number_of_independent_coordinates_is_told(s, names):
    refused(lambda: hc.partition(s.mech, s.q, independent=names), hc.InputError,
            "independent", "rank 2", f"got {len(names)}")  # fmt: skip


def test_a_ball_is_locked_as_a_whole(s):
    refused(lambda: hc.assemble(s.floating, locked=["head[0]"]), hc.InputError, "locked", "'head'")


def test_independent_coordinates_need_a_basis_with_coordinates():
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    q, v = closed_states("five_bar")[0]
    P = hc.project(mech, q, v, "orthonormal", partition=part)
    with pytest.raises(hc.InputError, match="orthonormal"):
        hc.inverse_dynamics(mech, q, v, [0.0, 0.0], coordinates="independent", projection=P)
