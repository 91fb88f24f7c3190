"""Sets of constraints that change: a foot lifts off and lands."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from support import mechanism, relative
from zoo import feet

import holoctl as hc


def test_a_foot_lifts_off_and_lands():
    both = feet(2, 3)
    names = both.constraint_names
    right = [n for n in names if n.startswith("corner_1")]
    single = both.with_enabled(**dict.fromkeys(right, False))
    assert single.constraint_names == tuple(n for n in names if n not in right)
    assert len(single.row_scale) == 9
    assert [c.default_name for _, c in single.parked] == right
    landed = single.with_enabled(**dict.fromkeys(right, True))
    assert landed.constraint_names == names
    assert landed.parked == ()
    q, v = hc.assemble(both, None, np.ones(both.nv))
    u = np.ones(both.nu)
    for one, other in ((both, landed), (single, both.without(*right))):
        a = hc.forward_dynamics(one, q, v, one.B @ u).a
        assert relative(hc.forward_dynamics(other, q, v, other.B @ u).a, a) < 1e-12
    assert relative(
        hc.forward_dynamics(single, q, v, both.B @ u).a,
        hc.forward_dynamics(both, q, v, both.B @ u).a,
    ) > 1e-3  # fmt: skip


def test_a_partition_is_of_one_set():
    """A foot that lands adds rows: with the partition of before they would be ignored."""
    both = feet(2, 3)
    single = both.with_enabled(corner_1_0=False, corner_1_1=False, corner_1_2=False)
    other = both.with_enabled(corner_0_0=False, corner_0_1=False, corner_0_2=False)
    q, _ = hc.assemble(both)
    part, zero = hc.partition(single, q), np.zeros(both.nv)
    assert hc.partition(single.with_model(single.model), q).row_names == part.row_names
    for mech in (both, other):
        for call in (
            lambda mech=mech: hc.PreparedForwardDynamics(mech, part),
            lambda mech=mech: hc.PreparedInverseDynamics(mech, part),
            lambda mech=mech: hc.ComputedTorque(mech, 1.0, 1.0, partition=part),
            lambda mech=mech: hc.project(mech, q, zero, partition=part),
            lambda mech=mech: hc.forward_dynamics(mech, q, zero, zero, partition=part),
            lambda mech=mech: hc.impulse(mech, q, zero, partition=part),
        ):
            with pytest.raises(hc.InputError, match="another set of its constraints"):
                call()


def test_sets_keep_order_names_and_what_they_share():
    import copy
    import pickle

    mech = mechanism("geared_slider")
    off = mech.with_enabled(gear=False)
    for twin in (off, pickle.loads(pickle.dumps(off)), copy.deepcopy(off)):
        assert twin.constraint_names == ("pin", "rack")
        assert twin.with_enabled(gear=True).constraint_names == ("pin", "gear", "rack")
    assert off.without("gear").parked == ()
    assert off.without("pin").with_enabled(gear=True).constraint_names == ("gear", "rack")
    belt = hc.Coupling({"wheel": 1.0, "rod": 1.0}, name="belt")
    assert mech.with_constraints(belt).constraint_names == ("pin", "gear", "rack", "belt")
    heavy = mech.model.copy()
    heavy.inertias[1] = pin.Inertia(9.0, np.array([0.1, 0.0, 0.0]), 0.1 * np.eye(3))
    assert mech.with_model(heavy).model.inertias[1].mass == 9.0
    assert mech.constraint_names == ("pin", "gear", "rack")  # mechanisms do not change
    tendons = dataclasses.replace(mech, actuated=(), actuation=np.ones((5, 2)) + np.eye(5, 2))
    assert (tendons.with_enabled(gear=False).B == tendons.B).all()
    for call, word in (
        (lambda: mech.without("geer"), "did you mean 'gear'"),
        (lambda: mech.with_enabled(geer=False), "did you mean 'gear'"),
        (lambda: mech.with_enabled(gear=0), "True or False"),
        (lambda: off.with_constraints(dataclasses.replace(belt, name="gear")), "used twice"),
        (lambda: mech.with_constraints("gear"), "not a constraint"),
        (lambda: mech.with_constraints([belt]), r"one by one, with_constraints\(\*these\)"),
        (lambda: mech.with_model(mechanism("four_bar").model), "no joint|no coordinate|shape"),
        (lambda: hc.Mechanism(mech.model, parked=[belt]), "parked"),
        (lambda: hc.Mechanism(mech.model, parked=[(-1, belt)]), "place"),
    ):
        with pytest.raises(hc.InputError, match=word):
            call()
