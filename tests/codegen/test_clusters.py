"""Forward dynamics by clusters of loops, beside those by W and the general path."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from expressed import EXPRESSED, QUICK, case, states
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import few, relative
from zoo import add_body, at, bar, in_series, lump

import holoctl as hc
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.clusters import loop_clusters
from holoctl.codegen.laws.forward_dynamics import by_clusters, by_inertia, forward_function
from holoctl.laws.clusters import clusters_of


def both_ways(mech, part=None):
    """Expressions of a mechanism, and its forward dynamics by W and by clusters."""
    E = symbolic(mech, part)
    return E, forward_function(E, [by_inertia]), forward_function(E, [by_clusters])


def asked(function, *state):
    a, guard = function(*state)
    return np.array(a)[:, 0], float(guard)


# ----------------------------------------------------------------------------------- the clusters

SERIAL = [0, 0, 1, 2, 3]
BRANCHED = [0, 0, 1, 2, 1, 4, 5]
"""Of each body the one that it stands on."""


@pytest.mark.parametrize(
    ("parents", "coupled", "expected"),
    [
        (SERIAL, [], [(0, (1,)), (1, (2,)), (2, (3,)), (3, (4,))]),
        (SERIAL, [(2, 3)], [(0, (1,)), (1, (2, 3)), (3, (4,))]),
        (SERIAL, [(1, 3)], [(0, (1, 2, 3)), (3, (4,))]),  # 2 stands between them
        (SERIAL, [(1, 2), (3, 4), (2, 3)], [(0, (1, 2, 3, 4))]),
        (SERIAL, [(), (4,)], [(0, (1,)), (1, (2,)), (2, (3,)), (3, (4,))]),
        (BRANCHED, [(2, 4)], [(0, (1,)), (1, (2, 4)), (2, (3,)), (4, (5,)), (5, (6,))]),
        (BRANCHED, [(3, 5)], [(0, (1,)), (1, (2, 3, 4, 5)), (5, (6,))]),  # two branches
        (BRANCHED, [(2, 4), (3, 5)], [(0, (1,)), (1, (2, 3, 4, 5)), (5, (6,))]),
        (BRANCHED, [(1, 6)], [(0, (1, 4, 5, 6)), (1, (2,)), (2, (3,))]),
        ([0, 0, 0, 1, 2], [(3, 4)], [(0, (1, 2, 3, 4))]),
        ([0], [], []),
    ],
)
def test_clusters_are_the_smallest_that_stand_on_one_body(parents, coupled, expected):
    assert clusters_of(parents, coupled) == expected


def test_each_cell_of_a_chain_is_a_cluster_on_the_rocker_before_it():
    found = loop_clusters(symbolic(in_series(3)))
    assert found == [(0, (1, 2, 3)), (3, (4, 5, 6)), (6, (7, 8, 9))]


# ------------------------------------------------------------------------------------ the results


@pytest.mark.parametrize("name", few(EXPRESSED, QUICK))
def test_clusters_give_what_the_inertia_and_the_general_path_give(name):
    mech, part = case(name)
    _, by_W, clustered = both_ways(mech, part)
    rng = np.random.default_rng(4)
    for q, v in states(name, "closed", 5):
        tau = rng.normal(size=mech.nv)
        (a, guard), (b, guard_b) = (asked(f, q, v, tau, 0.2) for f in (by_W, clustered))
        assert 0.1 * guard < guard_b + 1e-6 < 10.0 * guard + 1e-5
        expected = hc.forward_dynamics(mech, q, v, tau, partition=part, t=0.2).a
        assert max(relative(b, a), relative(b, expected)) < 1e-10


def hinge(model, rng, carrier, i):
    add_body(model, carrier, pin.JointModelRY(), placed(rng), f"hinge_{i}", lump(rng))
    return [], {f"hinge_{i}": 0.3}


def slider(model, rng, carrier, i):
    joint = pin.JointModelPrismaticUnaligned(np.array([0.0, 0.6, 0.8]))
    add_body(model, carrier, joint, placed(rng), f"slider_{i}", lump(rng))
    return [], {}


def ball(model, rng, carrier, i):
    add_body(model, carrier, pin.JointModelSpherical(), placed(rng), f"ball_{i}", lump(rng))
    return [], {}


def cross(model, rng, carrier, i):
    """A joint in two steps, of which the first has no mass."""
    joint = pin.JointModelComposite(2)
    joint.addJoint(pin.JointModelRX())
    joint.addJoint(pin.JointModelRY())
    add_body(model, carrier, joint, placed(rng), f"cross_{i}", lump(rng))
    return [], {}


def cell(model, rng, carrier, i):
    """A four-bar in a plane of its own."""
    where = placed(rng)
    add_body(model, carrier, pin.JointModelRZ(), where, f"crank_{i}", bar(0.2))
    add_body(model, f"crank_{i}", pin.JointModelRZ(), at(0.2), f"coupler_{i}", bar(0.5))
    add_body(model, carrier, pin.JointModelRZ(), where * at(0.5), f"rocker_{i}", bar(0.4))
    ends = (f"coupler_{i}", at(0.5)), (f"rocker_{i}", at(0.4))
    angles = {f"crank_{i}": 1.0, f"coupler_{i}": -0.5, f"rocker_{i}": 1.4}
    return [hc.Closure(*ends, axes="x y", name=f"pin_{i}")], angles


def truss(model, rng, carrier, i):
    """Two struts that hold each other: a cluster without motions."""
    where = placed(rng)
    add_body(model, carrier, pin.JointModelRZ(), where, f"strut_{i}", bar(0.3))
    add_body(model, carrier, pin.JointModelRZ(), where * at(0.4), f"brace_{i}", bar(0.35))
    ends = (f"strut_{i}", at(0.3)), (f"brace_{i}", at(0.35))
    angles = {f"strut_{i}": 1.01, f"brace_{i}": 2.33}
    return [hc.Closure(*ends, axes="x y", name=f"knot_{i}")], angles


def geared(model, rng, carrier, i):
    """A hinge that follows one that is there already, wherever that stands."""
    followed = [n for n in model.names if n.startswith(("hinge", "geared", "crank"))]
    add_body(model, carrier, pin.JointModelRX(), placed(rng), f"geared_{i}", lump(rng))
    if not followed:
        return [], {}
    first = followed[rng.integers(len(followed))]
    return [hc.Coupling({first: 1.0, f"geared_{i}": -0.7}, offset=0.1, name=f"gear_{i}")], {}


def placed(rng):
    return pin.SE3(pin.exp3(rng.normal(size=3)), 0.3 * rng.normal(size=3))


PIECES = {f.__name__: f for f in (hinge, slider, ball, cross, cell, truss, geared)}


def grown(pieces, afloat, seed):
    """A tree of clusters: each piece stands on some body of those before it."""
    rng, model, loops, angles = np.random.default_rng(seed), pin.Model(), [], {}
    if afloat:
        add_body(model, 0, pin.JointModelFreeFlyer(), at(), "base", lump(rng))
    for i, (kind, up) in enumerate(pieces):
        carrier = max(model.njoints - 1 - up, 0)
        made, more = PIECES[kind](model, rng, model.names[carrier], i)
        loops, angles = loops + made, angles | more
    model.armature = rng.uniform(0.0, 0.1, size=model.nv) * (rng.random(model.nv) < 0.3)
    model = hc.renumbered(model)
    reference = pin.neutral(model)
    for name, angle in angles.items():
        reference[model.joints[model.getJointId(name)].idx_q] = angle
    return hc.Mechanism(model, loops, reference=reference, name="grown"), rng


def check_grown(pieces, afloat, seed):
    mech, rng = grown(pieces, afloat, seed)
    E, by_W, clustered = both_ways(mech)
    for q in E.samples[:3]:
        tau, v = 5.0 * rng.normal(size=(2, mech.nv))
        (a, guard), (b, guard_b) = (asked(f, q, v, tau, 0.0) for f in (by_W, clustered))
        assert 0.1 * guard < guard_b + 1e-6 < 10.0 * guard + 1e-5
        if guard_b < 1.0:
            expected = hc.forward_dynamics(mech, q, v, tau, partition=E.partition)
            assert expected.certificate.condition > 1e6 or relative(b, expected.a) < 1e-9
            assert relative(b, a) < 1e-8


TREES = st.lists(
    st.tuples(st.sampled_from(list(PIECES)), st.integers(0, 5)), min_size=2, max_size=8
)
quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=6, suppress_health_check=quiet, deadline=None)
@given(TREES, st.booleans(), st.integers(0, 2**32 - 1))
def test_random_trees_of_clusters(pieces, afloat, seed):
    check_grown(pieces, afloat, seed)


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=quiet, deadline=None)
@given(TREES, st.booleans(), st.integers(0, 2**32 - 1))
def test_random_trees_of_clusters_at_length(pieces, afloat, seed):
    check_grown(pieces, afloat, seed)


def test_every_piece_on_every_other():
    kinds = [*PIECES, *reversed(PIECES)]
    check_grown([(kind, i % 3) for i, kind in enumerate(kinds)], True, 7)
    check_grown([(kind, 0) for kind in kinds], False, 8)


@pytest.mark.parametrize("machine", ["c", "vm"])
def test_compiled_by_clusters(machine):
    mech = in_series(8)
    f = hc.compile(mech, ["forward_dynamics"], flags=["-O0"], machine=machine)
    clustered = forward_function(symbolic(mech, f.partition), [by_clusters])
    rng = np.random.default_rng(1)
    q, v = hc.assemble(mech, v_guess=rng.normal(size=mech.nv))
    tau = rng.normal(size=(20, mech.nv))
    a = f.forward_dynamics_batch(np.tile(q, (20, 1)), np.tile(v, (20, 1)), tau)
    assert (a[3] == asked(clustered, q, v, tau[3], 0.0)[0]).all() or machine == "c"
    for one, w in zip(a, tau, strict=True):
        expected = hc.forward_dynamics(mech, q, v, w, partition=f.partition).a
        assert relative(one, expected) < 1e-10
    assert f.fallbacks == 0


# -------------------------------------------------------------------------- operations and guard


@cache
def operations(n, *ways):
    return forward_function(symbolic(in_series(n)), ways).n_instructions()


def test_operations_grow_as_the_mechanism_does():
    assert operations(16) < 2.2 * operations(8)


def test_the_way_of_fewer_operations_is_taken():
    assert operations(3) == operations(3, by_inertia) < operations(3, by_clusters)
    assert operations(8) == operations(8, by_clusters) < operations(8, by_inertia)


@cache
def wrists(massless):
    """Forward dynamics, by W and by clusters, of three wrists one after another, parts of which
    have so little mass."""
    model = pin.Model()
    for i in range(9):
        joint = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRX)[i % 3]()
        body = pin.Inertia(1.0, np.array([0.1, 0.02, 0.05]), np.diag([0.01, 0.012, 0.015]))
        body = body if i % 3 == 2 else pin.Inertia(massless, 0.0 * body.lever, massless * np.eye(3))
        add_body(model, i, joint, at(z=0.0 if i % 3 else 0.3), f"j{i}", body)
    return both_ways(hc.Mechanism(model, reference=np.full(9, 0.7)))[1:]


@pytest.mark.parametrize("off", [10.0**-i for i in range(8)])
@pytest.mark.parametrize("massless", [1e-3, 1e-9, 1e-14])
def test_the_guard_refuses_what_it_refuses_with_the_inertia(off, massless):
    """Arms of three wrists, near where two axes of a wrist are one and its parts are light: what is
    left of the inertia of a part is small beside what stands on it, not beside itself."""
    by_W, clustered = wrists(massless)
    q, rng = np.full(9, 0.7), np.random.default_rng(0)
    q[1::3] = off
    v, tau = rng.normal(size=(2, 9))
    (a, guard), (b, guard_b) = (asked(f, q, v, tau, 0.0) for f in (by_W, clustered))
    assert 0.2 * guard < guard_b < 5.0 * guard
    if guard_b < 1.0:
        assert relative(b, a) < 1e-9
