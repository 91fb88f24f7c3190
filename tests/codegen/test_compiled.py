"""Compiled laws against the Python path, which is their oracle."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib.util
import logging
import os
import pickle
import sys
import sysconfig
import threading
import time
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
import zoo
from support import (
    EPS,
    closed_states,
    difference,
    mechanism,
    open_states,
    relative,
    shared_partition,
)
from zoo import ZOO

import holoctl as hc
from holoctl.base.linalg import cholesky
from holoctl.codegen.compiled import extension, module_cache
from holoctl.constraints.wrench import stacked
from holoctl.dynamics.certificate import Certificate
from holoctl.dynamics.forward import accelerate
from holoctl.dynamics.inverse import actuation, driven_acceleration
from holoctl.projector.projection import projected

if importlib.util.find_spec("casadi") is None:
    pytest.skip("the extra holoctl[codegen] is not installed", allow_module_level=True)

import casadi as ca

from holoctl.codegen.c_source import PART, c_function
from holoctl.codegen.elimination import eliminate, pivot_order
from holoctl.codegen.laws import (
    derivatives,
    forward_function,
    holding_function,
    inverse_function,
    symbolic,
    terms_function,
)
from holoctl.codegen.tree import mass_matrix, symbolic_tree, tangent, tree_efforts

REFUSED = {"sine_gear": "'sine'.*casadi=", "timed_arm": "'bench'.*casadi=",
           "sine_chart": "explicit chart"}  # fmt: skip


def sine_expression(q):
    return q[1] - 2.0 * ca.sin(q[0])


def bench_expression(q, t):
    a, b, c = q[0], q[0] + q[1], q[0] + q[1] + q[2]
    height = 0.4 * ca.sin(a) + 0.4 * ca.sin(b) + 0.2 * ca.sin(c)
    return height - 0.5 - 0.05 * ca.sin(3.0 * t)


def _bench(q, t):
    return [float(bench_expression(q, t))]


def _bench_jacobian(q, t):
    a, b, c = np.cumsum(q)
    return [np.cumsum([0.2 * np.cos(c), 0.4 * np.cos(b), 0.4 * np.cos(a)])[::-1]]


def _bench_drift(q, v, t):
    angles, rates = np.cumsum(q), np.cumsum(v)
    return [-np.array([0.4, 0.4, 0.2]) * rates**2 @ np.sin(angles) + 0.45 * np.sin(3.0 * t)]


def _bench_rate(q, t):
    return [-0.15 * np.cos(3.0 * t)]


def with_expression(name):
    base = mechanism(name)
    (own,) = base.constraints
    if name == "sine_gear":
        own = dataclasses.replace(own, casadi=sine_expression)
    else:
        own = hc.Custom(
            _bench, _bench_jacobian, _bench_drift, rate_t=_bench_rate, time=True, name="bench",
            casadi=bench_expression,
        )  # fmt: skip
    return dataclasses.replace(base, constraints=[own])


EXTRA = {
    "sine_gear_expressed": lambda: with_expression("sine_gear"),
    "timed_arm_expressed": lambda: with_expression("timed_arm"),
    "stabilised": lambda: stabilised(),
    "weighted": lambda: mechanism("three_motors"),
    "general_motors": lambda: general_motors(),
    "no_constraints": lambda: open_arm(),
    "every_joint": lambda: every_joint(),
    "feet_without_motors": lambda: dataclasses.replace(mechanism("standing_leg"), actuated=()),
}
"""What the zoo does not have: name to mechanism."""

ANY_STATE = {"closure_limit": None, "velocity_limit": None}
"""The law is exact off the manifold too; these let it be asked there."""

OPTIONS = {"weighted": {"weights": [1.0, 2.0, 5.0]}}
EXPRESSED = [n for n in ZOO if n not in REFUSED] + list(EXTRA)


def stabilised():
    base = mechanism("weld_chain")
    return dataclasses.replace(
        base, constraints=[dataclasses.replace(c, t_stab=0.2) for c in base.constraints]
    )


def general_motors():
    """Motors that drive sums of coordinates, and a passive head."""
    base = mechanism("floating_leg")
    B = np.zeros((base.nv, 2))
    names = base.coordinate_names
    B[names.index("hip"), 0], B[names.index("motor_crank"), 0] = 1.0, -0.5
    B[names.index("motor_crank"), 1], B[names.index("wheel"), 1] = 2.0, 1.0
    return dataclasses.replace(base, actuated=(), actuation=B)


def open_arm():
    base = mechanism("spatial_arms")
    names = base.coordinate_names
    return dataclasses.replace(base, constraints=(), actuated=names)


def every_joint():
    """A chain of all kinds of joints, with rotors; a closure holds its end on a plane."""
    rng = np.random.default_rng(5)

    def axis():
        n = rng.normal(size=3)
        return n / np.linalg.norm(n)

    pair = pin.JointModelComposite(2)
    pair.addJoint(pin.JointModelRUBX(), pin.SE3.Random())
    pair.addJoint(pin.JointModelPlanar(), pin.SE3.Random())
    joints = [
        pin.JointModelPX(), pin.JointModelUniversal(np.eye(3)[0], np.eye(3)[1]),
        pin.JointModelSphericalZYX(), pin.JointModelPlanar(), pin.JointModelTranslation(),
        pin.JointModelHX(0.3), pin.JointModelHelicalUnaligned(axis(), 0.2),
        pin.JointModelRevoluteUnaligned(axis()), pin.JointModelRevoluteUnboundedUnaligned(),
        pin.JointModelPrismaticUnaligned(axis()), pair, pin.JointModelFreeFlyer(),
        pin.JointModelSpherical(), pin.JointModelRUBY(),
    ]  # fmt: skip
    m, parent = pin.Model(), 0
    for i, joint in enumerate(joints):
        place = zoo._at(0.1, 0.2, 0.05 * i, pin.exp3(rng.normal(size=3)))
        parent = zoo._add(m, parent, joint, place, f"j{i}", zoo._inertia(rng))
    m.armature = rng.uniform(0.1, 0.2, size=m.nv)
    end = hc.Contact((f"j{len(joints) - 1}", zoo._at(0.1)), normal=(0.2, 0.1, 1.0), name="end")
    names = hc.Mechanism(m).coordinate_names
    return hc.Mechanism(m, [end], names[3:], name="every_joint")


@cache
def case(name):
    """Mechanism and partition."""
    if name in ZOO:
        return mechanism(name), shared_partition(name)
    mech = EXTRA[name]()
    return mech, hc.partition(mech, hc.assemble(mech)[0])


def states(name, where, count):
    """Seeded states, closed or open, of a mechanism of the zoo or of EXTRA."""
    if name in ZOO:
        return (closed_states(name) if where == "closed" else open_states(name, count))[:count]
    mech, _ = case(name)
    rng, found = np.random.default_rng(2), []
    while len(found) < count:
        spread = 0.3 if where == "closed" else 0.6
        q = pin.integrate(mech.model, mech.reference, spread * rng.normal(size=mech.nv))
        v = rng.normal(size=mech.nv)
        if where == "closed":
            try:
                q, v = hc.assemble(mech, q, v, restarts=0)
            except hc.AssemblyError:
                continue
        found.append((q, v))
    return found


@cache
def compiled(name, functions=None, inconsistent="project"):
    mech, part = case(name)
    return hc.compile(
        mech, functions, partition=part, inconsistent=inconsistent, flags=["-O0"], **ANY_STATE,
        **OPTIONS.get(name, {}),
    )  # fmt: skip


@cache
def five_bar():
    return compiled("five_bar")


def forward_reference(mech, part, q, v, tau, t):
    """Acceleration by the general path, and the condition numbers on the way."""
    P = projected(mech, q, v, t, part)
    a, _ = accelerate(P, tau)
    M = P.terms.M
    reduced = cholesky(P.gamma.T @ M @ P.gamma).condition if P.k else 1.0
    b = P.gamma.T @ (tau - P.terms.h - M @ P.bias)
    size = np.abs(P.gamma.T) @ (np.abs(tau) + np.abs(P.terms.h) + np.abs(M) @ np.abs(P.bias))
    cancelled = size.max() / np.abs(b).max() if P.k else 1.0
    return a, P.condition**2 * reduced * max(cancelled, 1.0)


def inverse_reference(prepared, q, v, target, t):
    """u by the general path, and the condition numbers on the way, cancellation included."""
    mech, part = prepared.mech, prepared.partition
    u = prepared._by_the_general_path(q, v, target, t, None)
    P = projected(mech, q, v, t, part)
    act = actuation(P, prepared.weights)
    N, M = act.passive, P.terms.M
    passive = cholesky(N.T @ M @ N).condition if N.size else 1.0
    a = driven_acceleration(P, act, target, np.zeros(mech.nv), "project")
    w = pin.rnea(mech.model, mech.model.createData(), q, v, a)
    sums = np.abs(P.gamma.T @ w)
    cancelled = (np.abs(P.gamma.T) @ np.abs(w)).max() / sums.max()
    return u, P.condition * act.condition * passive * cancelled


def tolerance(condition):
    return max(1e-12, 100.0 * EPS * condition)


# ------------------------------------------------------------------------------ agreement


@pytest.mark.parametrize("name", EXPRESSED)
def test_terms_are_those_of_the_python_path(name):
    mech, _ = case(name)
    f, rng = compiled(name), np.random.default_rng(1)
    before = f.fallbacks
    for q, v in [*states(name, "closed", 5), *states(name, "open", 15)]:
        t = rng.uniform()
        T, got = hc.terms(mech, q, v, t=t), f.terms(q, v, t)
        size = 1.0 + np.abs(v).max() ** 2
        for x, y in zip(
            got, (T.error, T.rate, T.jacobian, T.drift, T.M, T.h), strict=True
        ):  # fmt: skip
            assert x.shape == y.shape
            assert np.abs(x - y).max(initial=0.0) < 1e-12 * (size + np.abs(y).max(initial=0.0))
    assert f.fallbacks == before
    assert np.abs(T.h).max() > 0.01


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", [n for n in EXPRESSED if n != "feet_without_motors"])
def test_inverse_dynamics_is_that_of_the_python_path(name, where):
    mech, part = case(name)
    f, rng = compiled(name), np.random.default_rng(2)
    prepared = hc.PreparedInverseDynamics(mech, part, f.weights, "project", **ANY_STATE)
    before, given = f.fallbacks, states(name, where, 40)
    for q, v in given:
        target, t, count = rng.normal(size=mech.nu), rng.uniform(), f.fallbacks
        u = f.inverse_dynamics(q, v, target, t)
        if f.fallbacks == count:
            expected, condition = inverse_reference(prepared, q, v, target, t)
            assert np.abs(expected).max() > 1e-6
            assert relative(u, expected) < tolerance(condition)
    # far off the manifold a split may be singular
    assert f.fallbacks - before <= (0.1 if where == "closed" else 0.4) * len(given)


@pytest.mark.parametrize("where", ["closed", "open"])
@pytest.mark.parametrize("name", EXPRESSED)
def test_forward_dynamics_is_that_of_the_python_path(name, where):
    mech, part = case(name)
    f, rng = compiled(name), np.random.default_rng(3)
    before, given = f.fallbacks, states(name, where, 40)
    for q, v in given:
        tau, t, count = rng.normal(size=mech.nv), rng.uniform(), f.fallbacks
        a = f.forward_dynamics(q, v, tau, t)
        if f.fallbacks == count:
            expected, condition = forward_reference(mech, part, q, v, tau, t)
            assert relative(a, expected) < tolerance(condition)
    assert f.fallbacks - before <= (0.1 if where == "closed" else 0.4) * len(given)


@pytest.mark.parametrize("name", ["four_bar", "floating_leg", "weld_chain", "three_motors"])
def test_forward_undoes_inverse(name):
    mech, part = case(name)
    f, rng = compiled(name), np.random.default_rng(4)
    for q, v in states(name, "closed", 10):
        P = hc.project(mech, q, v, partition=part)
        target = mech.B.T @ (P.gamma @ rng.normal(size=P.k) + P.bias)
        a = f.forward_dynamics(q, v, mech.B @ f.inverse_dynamics(q, v, target))
        assert relative(mech.B.T @ a, target) < 1e-9


@pytest.mark.parametrize("name", hc.robot_names())
def test_our_robots_compile(name):
    mech = hc.load(hc.robot_file(name))
    f = hc.compile(mech, ["inverse_dynamics"], flags=["-O0"])
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    target = np.ones(mech.nu)
    expected = hc.inverse_dynamics(mech, q, v, target, partition=f.partition).u
    assert relative(f.inverse_dynamics(q, v, target), expected) < 1e-11
    assert f.fallbacks == 0


@pytest.mark.parametrize(("name", "why"), REFUSED.items())
def test_what_has_no_expression_is_refused_by_name(name, why):
    with pytest.raises(hc.InputError, match=why):
        hc.compile(mechanism(name))


def test_rows_of_a_class_of_ones_own_are_refused_by_name():
    class Derived(hc.Coupling):
        def bind(self, model, name, reference):
            bound = super().bind(model, name, reference)
            return type("Other", (type(bound),), {})(
                bound.labels, bound.of_q, bound.offset, bound.jacobian
            )

    base = mechanism("geared_slider")
    gear = Derived({"wheel": 1.0, "crank": -2.0}, offset=0.1, name="my gear")
    mech = dataclasses.replace(base, constraints=[base.constraints[0], gear])
    with pytest.raises(hc.InputError, match=r"'my gear'.*Other"):
        symbolic(mech)


def test_rows_of_several_pairs_in_one_constraint():
    """A class of one's own may stack them."""

    class Both:
        name = t_stab = None
        default_name = "both"

        def bind(self, model, name, reference):
            tied = [c.bind(model, f"{name} {i}", reference) for i, c in enumerate(loops)]
            return stacked(tied)

    base = mechanism("third_bar")
    loops = base.constraints
    mech = dataclasses.replace(base, constraints=[Both()])
    f = terms_function(symbolic(mech))
    q, v = open_states("third_bar", 1)[0]
    T, got = hc.terms(base, q, v), f(q, v, 0.0)
    assert np.abs(np.array(got[2]) - T.jacobian).max() < 1e-14
    assert np.abs(np.array(got[3])[:, 0] - T.drift).max() < 1e-13 * np.abs(T.drift).max()


def test_a_joint_without_expressions_is_refused_by_name():
    m = pin.Model()
    zoo._add(m, 0, pin.JointModelEllipsoid(0.1, 0.2, 0.3), zoo._at(), "egg", zoo._bar(0.1))
    with pytest.raises(hc.InputError, match=r"'egg'.*Ellipsoid"):
        symbolic_tree(m, ca.SX.sym("q", m.nq))


def test_motors_that_drive_too_little_are_refused():
    base = mechanism("idle_rod")
    mech = dataclasses.replace(base, actuated=["crank", "rocker"])
    with pytest.raises(hc.InputError, match="fewer than there are motors and motions"):
        hc.compile(mech, ["inverse_dynamics"])
    with pytest.raises(hc.NotActuatedError):
        hc.compile(dataclasses.replace(base, actuated=()), ["inverse_dynamics"])


def test_an_expression_that_is_none_is_refused():
    base = mechanism("sine_gear")
    (gear,) = base.constraints
    for bad, word in (
        (lambda q: 1.0, "casadi.SX"),
        (lambda q: ca.vertcat(q, q), "1 entries"),
    ):
        mech = dataclasses.replace(base, constraints=[dataclasses.replace(gear, casadi=bad)])
        with pytest.raises(hc.InputError, match=word):
            hc.compile(mech)
    wrong = dataclasses.replace(gear, casadi=lambda q: q[1] - 2.001 * ca.sin(q[0]))
    with pytest.raises(hc.InputError, match="'sine' is not its phi"):
        hc.compile(dataclasses.replace(base, constraints=[wrong]))
    with pytest.raises(hc.InputError, match="casadi must be a function"):
        dataclasses.replace(gear, casadi="sin")


def test_custom_ignores_its_expression():
    plain, other = mechanism("sine_gear"), with_expression("sine_gear")
    q, v = closed_states("sine_gear")[0]
    assert (hc.terms(plain, q, v).drift == hc.terms(other, q, v).drift).all()
    assert pickle.loads(pickle.dumps(other)).constraints[0].casadi is sine_expression


# ---------------------------------------------------------------------------- the pieces


@pytest.mark.parametrize("name", ["every_joint", "floating_leg", "universal_rods"])
def test_the_symbolic_tree_is_pinocchios(name):
    model = case(name)[0].model
    q, v, a = (ca.SX.sym(x, n) for x, n in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
    tree = symbolic_tree(model, q)
    outputs = [tree_efforts(tree, v, a), ca.densify(mass_matrix(tree)), tangent(model, q) @ v]
    f, data, rng = (
        ca.Function("f", [q, v, a], outputs),
        model.createData(),
        np.random.default_rng(0),
    )
    for _ in range(10):
        q0 = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
        v0, a0 = rng.normal(size=(2, model.nv))
        w, M, rate = (np.array(x) for x in f(q0, v0, a0))
        assert relative(w[:, 0], pin.rnea(model, data, q0, v0, a0)) < 1e-13
        assert relative(M, pin.crba(model, data, q0)) < 1e-13
        along = difference(lambda s: pin.integrate(model, q0, s * v0), 1e-3)  # noqa: B023
        assert np.abs(rate[:, 0] - along).max() < 1e-9


@pytest.mark.parametrize("n", [1, 4, 9])
def test_elimination_solves_both_ways(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(5, n, n)) * (rng.uniform(size=(n, n)) < 0.6) + 3.0 * np.eye(n)[::-1]
    order = pivot_order(A)
    assert sorted(i for i, _ in order) == sorted(j for _, j in order) == list(range(n))
    x, b = ca.SX.sym("A", n, n), ca.SX.sym("b", n)
    rows = [{j: x[i, j] for j in range(n) if A[0, i, j]} for i in range(n)]
    e = eliminate(rows, order, np.ones(n), np.ones(n))
    f = ca.Function(
        "f", [x, b],
        [ca.vertcat(*e.solve([b[i] for i in range(n)])),
         ca.vertcat(*e.solve_transposed([b[i] for i in range(n)])), sum(e.doubt, ca.SX(0.0))],
    )  # fmt: skip
    for sample in A:
        right = rng.normal(size=n)
        y, z, doubt = (np.array(r).reshape(-1) for r in f(sample, right))
        assert relative(sample @ y, right) < 1e-11
        assert relative(sample.T @ z, right) < 1e-11
        assert doubt < 1.0


def test_a_long_function_in_parts_gives_the_same_numbers():
    """The C of a chain is longer than one part."""
    mech = zoo.in_series(16)
    f = hc.compile(mech, ["inverse_dynamics", "forward_dynamics"], flags=["-O0"])
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    g = forward_function(symbolic(mech, f.partition))
    assert g.n_instructions() > 2 * PART
    assert "_part2" in c_function(g)
    target = np.ones(mech.nu)
    u = hc.PreparedInverseDynamics(mech, f.partition).torque(q, v, target)
    assert relative(f.inverse_dynamics(q, v, target), u) < 1e-10
    assert relative(mech.B.T @ f.forward_dynamics(q, v, mech.B @ u), target) < 1e-7
    assert f.fallbacks == 0


def test_an_operation_without_counterpart_is_refused():
    x = ca.SX.sym("x")
    with pytest.raises(hc.InputError, match="ERF"):
        c_function(ca.Function("f", [x], [ca.erf(x)]))
    constants = (ca.SX(np.inf), ca.SX(np.nan), ca.SX(-2.5))
    text = c_function(ca.Function("f", [x], [ca.vertcat(x * 0.1, 0.1 * x, *constants)]))
    assert text.count("i0[0]") == 1  # read once, and one product for both
    assert all(word in text for word in ("INFINITY", "NAN", "(-2.5)"))


# ---------------------------------------------------------------------------- derivatives


@pytest.mark.parametrize("name", ["four_bar", "floating_leg", "weld_chain", "three_motors"])
def test_derivatives_are_those_of_differences(name):
    mech, part = case(name)
    E, rng = symbolic(mech, part), np.random.default_rng(6)
    q, v = states(name, "closed", 1)[0]
    for f, size in (
        (inverse_function(E, None, "project"), mech.nu),
        (forward_function(E), mech.nv),
    ):
        x, d = rng.normal(size=size), derivatives(E, f)
        dq, dv, dx, doubt = (np.array(r) for r in d(q, v, x, 0.2))
        assert doubt < 1.0
        for _ in range(3):
            sq, sv, sx = rng.normal(size=mech.nv), rng.normal(size=mech.nv), rng.normal(size=size)

            def along(s, f=f, sq=sq, sv=sv, sx=sx, x=x):
                return np.array(
                    f(pin.integrate(mech.model, q, s * sq), v + s * sv, x + s * sx, 0.2)[0]
                )[:, 0]

            found = dq @ sq + dv @ sv + dx @ sx
            assert relative(found, difference(along, 1e-3)) < 1e-8


def test_compiled_derivatives():
    mech, part = case("five_bar")
    names = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
    f = hc.compile(mech, names, partition=part, flags=["-O0"])
    q, v = closed_states("five_bar")[0]
    u_q, u_v, u_t = f.inverse_dynamics_derivatives(q, v, [1.0, 2.0])
    a_q, a_v, a_t = f.forward_dynamics_derivatives(q, v, np.ones(4))
    assert (u_q.shape, u_v.shape, u_t.shape) == ((2, 4), (2, 4), (2, 2))
    assert (a_q.shape, a_v.shape, a_t.shape) == ((4, 4),) * 3
    g, s = five_bar(), np.array([0.3, -0.2, 0.5, 0.1])
    along = difference(lambda h: g.inverse_dynamics(q + h * s, v, np.array([1.0, 2.0])), 1e-3)
    assert relative(u_q @ s, along) < 1e-8
    along = difference(lambda h: g.forward_dynamics(q, v + h * s, np.ones(4)), 1e-3)
    assert relative(a_v @ s, along) < 1e-8
    with pytest.raises(hc.InputError, match="v must be finite"):
        f.inverse_dynamics_derivatives(q, np.full(4, np.nan), [1.0, 2.0])
    with pytest.raises(hc.InputError, match="not compiled"):
        f.inverse_dynamics(q, v, [1.0, 2.0])


# --------------------------------------------------------------------------------- guard


def at_a_dead_point():
    """The four-bar driven at the rocker, and the slider-crank driven at the slider."""
    rocker = dataclasses.replace(mechanism("four_bar"), actuated=["rocker"])
    m = pin.Model()
    zoo._add(m, 0, pin.JointModelRZ(), zoo._at(), "crank", zoo._bar(0.3))
    zoo._add(m, "crank", pin.JointModelRZ(), zoo._at(0.3), "rod", zoo._bar(1.0))
    zoo._add(m, 0, pin.JointModelPX(), zoo._at(), "slider", zoo._bar(0.1))
    loop = hc.Closure(("rod", zoo._at(1.0)), "slider", axes="x y")
    slider = hc.Mechanism(m, [loop], ["slider"], reference=[0.8, -1.1, 1.1])
    return {
        "rocker": (rocker, hc.assemble(rocker, [0.9, 0.0, 1.6], locked=["coupler"])[0], "coupler"),
        "slider": (slider, np.array([0.0, 0.0, 1.3]), "crank"),
    }


@pytest.mark.parametrize("which", ["rocker", "slider"])
@pytest.mark.parametrize("off", [10.0**-i for i in range(2, 10)])
def test_near_a_dead_point_the_guard_trips_before_digits_are_lost(which, off):
    mech, dead, moving = at_a_dead_point()[which]
    f = hc.compile(mech, ["inverse_dynamics"], flags=["-O0"])
    prepared = hc.PreparedInverseDynamics(mech, f.partition)
    q = dead.copy()
    q[mech.coordinate_names.index(moving)] += off
    q, v = hc.assemble(mech, q, np.ones(mech.nv), locked=[moving])
    target = np.array([1.0])
    try:
        expected = prepared._by_the_general_path(q, v, target, 0.0, None)
    except hc.SingularityError:
        with pytest.raises(hc.SingularityError):
            f.inverse_dynamics(q, v, target)
        return
    u = f.inverse_dynamics(q, v, target)
    assert relative(u, expected) < 1e-8
    assert f.fallbacks == (off < 3e-5) or 1e-5 < off < 1e-3


def test_at_the_dead_point_itself_the_error_is_that_of_python():
    mech, dead, _ = at_a_dead_point()["rocker"]
    f = hc.compile(mech, ["inverse_dynamics"], flags=["-O0"])
    out = np.full(1, 7.0)
    with pytest.raises(hc.SingularityError, match="dead point"):
        f.inverse_dynamics(dead, np.zeros(3), np.ones(1), out=out)
    assert out == 7.0


@pytest.mark.parametrize(
    "name", ["spatial_arms", "standing_leg", "weld_chain", "universal_chain", "idle_rod"]
)
def test_just_before_the_guard_trips_the_answer_is_still_good(name):
    """Along lines of open states, to where the guard is about to trip; small pivots that are not
    singularities are among them."""
    mech, part = case(name)
    prepared = hc.PreparedInverseDynamics(mech, part, None, "project", **ANY_STATE)
    f = inverse_function(symbolic(mech, part), None, "project")
    rng, found = np.random.default_rng(8), 0
    for q, v in states(name, "closed", 30):
        step, target = 2.0 * rng.normal(size=mech.nv), rng.normal(size=mech.nu)

        def at(s, q=q, v=v, step=step, target=target):
            x = pin.normalize(mech.model, pin.integrate(mech.model, q, s * step))
            u, _, doubt = f(x, v, target, 0.0)
            return x, np.array(u)[:, 0], float(doubt)

        path = np.linspace(0.0, 1.0, 40)
        trips = [s for s in path if not at(s)[2] < 1.0]
        if not trips or trips[0] == 0.0:
            continue
        good, bad = path[list(path).index(trips[0]) - 1], trips[0]
        for _ in range(40):
            middle = 0.5 * (good + bad)
            good, bad = (middle, bad) if at(middle)[2] < 1.0 else (good, middle)
        x, u, doubt = at(good)
        try:
            expected = prepared._by_the_general_path(x, v, target, 0.0, None)
        except hc.SingularityError:
            pytest.fail("the guard took a singular state for a good one")
        assert doubt > 0.5
        assert relative(u, expected) < 1e-8
        found += 1
    assert found >= 3


def test_a_state_that_trips_the_guard_is_counted_and_told_once(caplog):
    mech, part = case("floating_leg")
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    q, v = closed_states("floating_leg")[0]
    rounded = q.astype(np.float32).astype(float)  # not normalised to double
    with caplog.at_level(logging.WARNING, "holoctl"):
        for _ in range(3):
            u = f.inverse_dynamics(rounded, v, np.ones(3))
    assert f.fallbacks == 3
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "floating_leg" in caplog.text
    assert relative(u, f.inverse_dynamics(q, v, np.ones(3))) < 1e-4
    with pytest.raises(hc.InputError, match="norm 1"):
        f.inverse_dynamics(1.1 * q, v, np.ones(3))


def test_orientation_rows_near_half_a_turn_take_the_python_path():
    mech, _ = case("weld_chain")
    f, rng, before = compiled("weld_chain"), np.random.default_rng(0), 0
    for _ in range(200):
        q = mech.reference + 2.0 * rng.normal(size=mech.nv)
        T, count = hc.terms(mech, q, q), f.fallbacks
        got = f.terms(q, q)
        assert np.abs(got.drift - T.drift).max() < 1e-10 * (1.0 + np.abs(T.drift).max())
        before += f.fallbacks > count
    assert before >= 3


def test_a_target_that_contradicts_the_constraints_is_refused_or_projected():
    mech, part = case("three_motors")
    q, v = closed_states("three_motors")[0]
    strict = compiled("three_motors", ("inverse_dynamics",), "raise")
    with pytest.raises(hc.InconsistentError):
        strict.inverse_dynamics(q, v, np.array([1.0, 2.0, 30.0]))
    P = hc.project(mech, q, v, partition=part)
    target, count = mech.B.T @ (P.gamma @ np.ones(2) + P.bias), strict.fallbacks
    u = strict.inverse_dynamics(q, v, target)
    assert strict.fallbacks == count
    assert relative(u, hc.inverse_dynamics(mech, q, v, target, partition=part).u) < 1e-10


# ------------------------------------------------------------------- arrays and arguments


def test_out_takes_the_result_and_may_be_an_input():
    f = five_bar()
    q, v = closed_states("five_bar")[0]
    target, out = np.array([1.0, 2.0]), np.zeros(2)
    u = f.inverse_dynamics(q, v, target)
    assert f.inverse_dynamics(q, v, target, out=out) is out
    assert (out == u).all()
    place = target.copy()
    assert f.inverse_dynamics(q, v, place, out=place) is place
    assert (place == u).all()
    strided = np.zeros(4)[::2]
    assert f.inverse_dynamics(q, v, target, out=strided) is strided
    assert (strided == u).all()
    assert (f.inverse_dynamics(q, v, target, 0.0, out=None) == u).all()
    out.setflags(write=False)
    for bad, word in ((out, "read-only"), (np.zeros(3), "out must be"), ([0.0, 0.0], "out must")):
        with pytest.raises(hc.InputError, match=word):
            f.inverse_dynamics(q, v, target, out=bad)


def test_any_form_of_numbers_is_taken():
    f = five_bar()
    before = f.fallbacks
    q, v = closed_states("five_bar")[0]
    u = f.inverse_dynamics(q, v, np.array([1.0, 2.0]))
    spread = np.repeat(q, 2)[::2]
    for given in (
        (q.tolist(), v.tolist(), [1, 2]),
        (spread, v[::-1].copy()[::-1], np.array([1, 2])),
        (q.astype(">f8"), v, np.array([1.0, 2.0], order="F")),
    ):
        assert (f.inverse_dynamics(*given) == u).all()
    assert (f.inverse_dynamics(q, v, target=[1.0, 2.0], t=1) == u).all()
    assert (f.inverse_dynamics(q=q, v=v, target=[1.0, 2.0]) == u).all()
    readable = q.copy()
    readable.setflags(write=False)
    assert (f.inverse_dynamics(readable, v, np.array([1.0, 2.0])) == u).all()
    assert f.fallbacks == before


def test_bad_arguments_are_refused_in_words():
    f = five_bar()
    q, v = closed_states("five_bar")[0]
    for args, word in (
        ((q[:3], v, [0.0, 0.0]), "q must have shape"),
        ((q, [0.0], [0.0, 0.0]), "v must have shape"),
        ((q, v, np.zeros((2, 1))), "target must have shape"),
        ((q, v, "ab"), "target must be an array"),
        ((q, v, [0.0, 0.0], "now"), "t "),
        ((q, v, [0.0, 0.0], np.nan), "t "),
    ):
        with pytest.raises(hc.InputError, match=word):
            f.inverse_dynamics(*args)
    with pytest.raises(hc.InputError, match="tau must have shape"):
        f.forward_dynamics(q, v, [1.0])
    for call in (lambda: f.inverse_dynamics(q, v), lambda: f.inverse_dynamics(q, v, q, 0.0, q, q)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError):
        f.inverse_dynamics(q, v, np.ones(2), place=q)
    with pytest.raises(hc.InputError, match="not compiled"):
        f.torque(q, v, q, v, v)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, in the Python path
def test_numbers_that_are_not_finite_never_become_a_torque(bad):
    """Every entry of every input: an error, also where it has no part in the torque."""
    f = compiled("floating_leg")
    q, v = closed_states("floating_leg")[0]
    good = {"q": q, "v": v, "target": np.ones(3)}
    out = np.full(3, 7.0)
    for which, x in good.items():
        for i in range(x.size):
            given = {**good, which: np.where(np.arange(x.size) == i, bad, x)}
            if np.isfinite(bad):  # squares overflow
                with contextlib.suppress(hc.HoloctlError):
                    assert np.isfinite(f.inverse_dynamics(*given.values())).all()
                continue
            with pytest.raises(hc.InputError, match=rf"{which}.*finite|norm 1"):
                f.inverse_dynamics(*given.values(), out=out)
            assert (out == 7.0).all()
            tables = [np.tile(x, (3, 1)) for x in given.values()]
            with pytest.raises(hc.InputError, match=rf"{which}.*finite|norm 1"):
                f.inverse_dynamics_batch(*tables)


# -------------------------------------------------------------------------------- control


@pytest.mark.parametrize("compensation", ["full", "gravity"])
@pytest.mark.parametrize("name", ["five_bar", "three_motors", "floating_leg", "wheel"])
def test_the_controller_is_that_of_python(name, compensation):
    mech = wheel() if name == "wheel" else mechanism(name)
    if name == "floating_leg" and compensation == "gravity":
        ctl = hc.ComputedTorque(mech, 50.0, 5.0, compensation)
        with pytest.raises(hc.InputError, match="passive"):
            hc.compile(ctl, ["torque"])
        return
    ctl = hc.ComputedTorque(mech, 50.0, 5.0, compensation, shared_partition(name)
                            if name in ZOO else None)  # fmt: skip
    f, rng = hc.compile(ctl, ["torque"], flags=["-O0"]), np.random.default_rng(1)
    for q, v in (
        states(name, "closed", 15)
        if name in ZOO
        else [(wheel_at(a), np.ones(1)) for a in (-3.0, 0.4, 3.1)]
    ):
        q_ref, v_ref, a_ref = rng.normal(size=(3, mech.nu))
        expected = ctl.torque(q, v, q_ref, v_ref, a_ref)
        assert relative(f.torque(q, v, q_ref, v_ref, a_ref), expected) < 1e-11
        whole = pin.integrate(mech.model, q, 0.1 * rng.normal(size=mech.nv))
        if mech.nq != mech.nu:
            expected = ctl.torque(q, v, whole, v_ref, a_ref)
            assert relative(f.torque(q, v, whole, v_ref, a_ref), expected) < 1e-12
    assert f.fallbacks == 0
    with pytest.raises(hc.InputError, match="v_ref must be finite"):
        f.torque(q, v, q_ref, v_ref * np.nan, a_ref)


def wheel():
    m = pin.Model()
    zoo._add(m, 0, pin.JointModelRUBY(), zoo._at(), "wheel", zoo._bar(0.2))
    return hc.Mechanism(m, (), ["wheel"])


def wheel_at(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def test_motors_without_a_position_take_the_controllers_own_way():
    mech = mechanism("hung_plate")
    ctl = hc.ComputedTorque(mech, 50.0, 5.0, partition=shared_partition("hung_plate"))
    f = hc.compile(ctl, ["torque"], flags=["-O0"])
    q, v = closed_states("hung_plate")[0]
    one = np.ones(1)
    assert f.torque(q, v, q, one, one) == pytest.approx(ctl.torque(q, v, q, one, one), rel=1e-12)


def test_a_compiled_controller_simulates():
    mech = mechanism("five_bar")
    ctl = hc.ComputedTorque(mech, 400.0, 40.0, partition=shared_partition("five_bar"))
    f = hc.compile(ctl, flags=["-O0"])
    q, v = hc.assemble(mech)
    runs = [
        hc.simulate(mech, lambda t, q, v, c=c: c.torque(q, v, [2.2, 0.9], [0.0, 0.0], [0.0, 0.0]),
                    q, v, 0.05)
        for c in (ctl, f)
    ]  # fmt: skip
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9
    assert "torque" in repr(f)


def test_a_controller_brings_its_own_partition():
    mech, part = case("five_bar")
    ctl = hc.ComputedTorque(mech, 1.0, 1.0, partition=part)
    with pytest.raises(hc.InputError, match="neither"):
        hc.compile(ctl, partition=part)
    with pytest.raises(hc.InputError, match="controller"):
        hc.compile(mech, ["torque"])
    with pytest.raises(hc.InputError, match="functions"):
        hc.compile(mech, ["inverse"])
    with pytest.raises(hc.InputError, match="name one"):
        hc.compile(mech, [])
    with pytest.raises(hc.InputError, match="Mechanism"):
        hc.compile(mech.model)


def test_holding_is_that_of_python():
    for name in ("five_bar", "spatial_arms", "three_motors"):
        mech, part = case(name)
        f, prepared = holding_function(symbolic(mech, part)), hc.PreparedInverseDynamics(mech, part)
        for q, _ in states(name, "closed", 5):
            u, doubt = f(q, 0.0)
            assert doubt < 1.0
            assert relative(np.array(u)[:, 0], prepared.holding(q)) < 1e-11


def test_the_certificate_is_there_on_demand():
    f = five_bar()
    q, v = closed_states("five_bar")[0]
    certificate = f.certificate(q, v, [1.0, 2.0])
    assert isinstance(certificate, Certificate)
    assert certificate.ok


# ---------------------------------------------------------------------------------- batch


def many(name, count, seed=0):
    mech, _ = case(name)
    rng, given = np.random.default_rng(seed), states(name, "closed", 20)
    which = rng.integers(0, len(given), count)
    Q, V = (np.array([given[i][k] for i in which]) for k in range(2))
    return Q, V, rng.normal(size=(count, mech.nu))


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_a_batch_is_the_loop(workers):
    f = compiled("floating_leg")
    Q, V, T = many("floating_leg", 500)
    expected = np.array([f.inverse_dynamics(*row) for row in zip(Q, V, T, strict=True)])
    out = np.zeros((500, 3))
    U = f.inverse_dynamics_batch(Q, V, T, workers=workers, out=out)
    assert U is out
    assert (expected == U).all()
    assert (f.inverse_dynamics_batch(Q.tolist(), np.asfortranarray(V), T) == expected).all()
    assert f.inverse_dynamics_batch(Q[:0], V[:0], T[:0]).shape == (0, 3)


def test_states_of_a_batch_that_trip_are_computed_in_python():
    f = compiled("floating_leg")
    Q, V, T = many("floating_leg", 50)
    expected = f.inverse_dynamics_batch(Q, V, T)
    Q[[3, 40]] = Q[[3, 40]].astype(np.float32)
    count = f.fallbacks
    U = f.inverse_dynamics_batch(Q, V, T)
    assert f.fallbacks == count + 2
    assert relative(U, expected) < 1e-4
    assert (U[4:40] == expected[4:40]).all()


def test_errors_of_a_batch_tell_the_state():
    f = five_bar()
    Q, V, T = many("five_bar", 30)
    V[17, 2] = np.nan
    with pytest.raises(hc.InputError, match=r"v.*finite") as caught:
        f.inverse_dynamics_batch(Q, V, T)
    assert "at state 17 of the batch" in caught.value.__notes__
    for args, word in (
        ((Q[:, :3], V, T), "Q must have shape"),
        ((Q[0], V, T), "Q must have shape"),
        ((Q, V[:5], T), "as many rows"),
        ((Q, V, "ab"), "T must be an array"),
    ):
        with pytest.raises(hc.InputError, match=word):
            f.inverse_dynamics_batch(*args)
    with pytest.raises(hc.InputError, match="workers"):
        f.inverse_dynamics_batch(Q, V, T, workers=0)
    with pytest.raises(hc.InputError, match="contiguous"):
        f.inverse_dynamics_batch(Q, V, T, out=np.zeros((60, 2))[::2])


def test_a_batch_shows_its_progress_if_asked(capsys, monkeypatch):
    f = five_bar()
    Q, V, T = many("five_bar", 30)
    f.inverse_dynamics_batch(Q, V, T)
    assert capsys.readouterr().err == ""
    f.inverse_dynamics_batch(Q, V, T, progress=True)
    assert "inverse dynamics" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    f.inverse_dynamics_batch(Q, V, T, progress=True)
    assert capsys.readouterr().err == ""


def test_a_batch_does_not_hold_the_interpreter():
    """Another thread goes on while one call works."""
    f = compiled("weld_chain")
    Q, V, T = (np.tile(x, (400, 1)) for x in many("weld_chain", 500))
    ticks, done = [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(1e-3)

    thread = threading.Thread(target=count)
    thread.start()
    start = time.perf_counter()
    module, _ = f._laws["inverse_dynamics"]
    module.batch(
        Q,
        V,
        T,
        0.0,
        np.empty_like(T),
        np.zeros(len(Q), np.uint8),
        np.zeros(1, np.int64),
        64,
        len(Q),
    )
    stop = time.perf_counter()
    done.set()
    thread.join()
    during = sum(start < t < stop for t in ticks)
    assert during > 0.05 * (stop - start) / 1e-3


def test_threads_share_one():
    f = compiled("weld_chain")
    given = states("weld_chain", "closed", 20)
    target = np.ones(2)
    expected, wrong = [f.inverse_dynamics(q, v, target) for q, v in given], []

    def work(seed):
        for i in np.random.default_rng(seed).integers(0, len(given), 1000):
            if (f.inverse_dynamics(*given[i], target) != expected[i]).any():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ------------------------------------------------------------------------------- building


def test_what_was_compiled_is_found_again(monkeypatch, tmp_path):
    mech, part = case("four_bar")
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path / "new"))
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    (kept,) = (p for p in (tmp_path / "new").iterdir() if p.suffix != ".sha256")
    changed = kept.stat().st_mtime_ns

    def never(*args):
        raise AssertionError("compiled again")

    monkeypatch.setattr(extension, "_compile", never)
    g = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    q, v = closed_states("four_bar")[0]
    assert f.inverse_dynamics(q, v, np.ones(1)) == g.inverse_dynamics(q, v, np.ones(1))
    assert kept.stat().st_mtime_ns == changed
    with pytest.raises(AssertionError, match="again"):  # other flags are another program
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O1"])


def test_it_pickles_and_copies():
    f = compiled("three_motors", ("inverse_dynamics",))
    q, v = closed_states("three_motors")[0]
    u = f.inverse_dynamics(q, v, np.ones(3))
    for twin in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), copy.copy(f)):
        assert (twin.inverse_dynamics(q, v, np.ones(3)) == u).all()
    ctl = hc.ComputedTorque(mechanism("four_bar"), 1.0, 1.0)
    g = hc.compile(ctl, ["torque"], flags=["-O0"])
    q, v = closed_states("four_bar")[0]
    args = q, v, np.ones(1), np.ones(1), np.ones(1)
    assert pickle.loads(pickle.dumps(g)).torque(*args) == g.torque(*args)
    with pytest.raises(dataclasses.FrozenInstanceError):
        f.weights = None


def test_without_a_compiler_the_error_says_so(monkeypatch):
    mech = mechanism("four_bar")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(hc.InputError, match=r"needs a C compiler.*no-such-compiler"):
        hc.compile(mech)
    monkeypatch.delenv("CC")
    monkeypatch.setattr(extension.shutil, "which", lambda name: None)
    with pytest.raises(hc.InputError, match=r"needs a C compiler.*install gcc"):
        hc.compile(mech)


def test_without_the_headers_of_python_the_error_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(hc.InputError, match=r"no Python\.h.*python3-dev"):
        hc.compile(mechanism("four_bar"))


def test_without_casadi_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(hc.InputError, match=r"holoctl\[codegen\]"):
        hc.compile(mechanism("four_bar"))


def test_a_compiler_that_fails_is_quoted():
    with pytest.raises(hc.HoloctlError, match="no-such-flag"):
        hc.compile(mechanism("four_bar"), ["terms"], flags=["--no-such-flag"])


def test_a_cache_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HOLOCTL_CACHE", str(blocked / "folder"))
    with pytest.raises(hc.HoloctlError, match="HOLOCTL_CACHE"):
        hc.compile(mechanism("four_bar"), ["terms"], flags=["-O0"])


def test_the_cache_is_in_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("HOLOCTL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert extension.cache_folder() == tmp_path / "holoctl"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert extension.cache_folder().parts[-3:] == ("Library", "Caches", "holoctl")


@pytest.mark.slow
def test_clang_gives_the_same_numbers(monkeypatch):
    if extension.shutil.which("clang") is None:
        pytest.skip("no clang here")
    mech, part = case("weld_chain")
    monkeypatch.setenv("CC", "clang")
    f = hc.compile(mech, partition=part)
    for q, v in states("weld_chain", "closed", 10):
        target = np.ones(2)
        u = compiled("weld_chain").inverse_dynamics(q, v, target)
        assert relative(f.inverse_dynamics(q, v, target), u) < 1e-11


def test_terms_function_is_dense_and_named():
    f = terms_function(symbolic(*case("four_bar")))
    assert f.name_out() == ["error", "rate", "G", "drift", "M", "h", "doubt"]
    assert all(f.sparsity_out(i).is_dense() for i in range(f.n_out()))


# --------------------------------------------------------------- what a hostile reader tried


@pytest.mark.parametrize("size", [1e-3, 1e-4])
def test_small_mechanisms_keep_their_inertia(size):
    """Moments of inertia below 1e-15 kg m^2 are small in no unit but ours."""
    link = hc.Linkage("tiny", gravity=(0.0, -9.81, 0.0))
    place = lambda x: pin.SE3(np.eye(3), np.array([x * size, 0.0, 0.0]))  # noqa: E731
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        mass = 1000.0 * 0.01 * length * size**3
        inertia = mass * size**2 * np.diag([1e-3, length**2 / 12, length**2 / 12])
        link.add_body(name, mass, (0.5 * length * size, 0, 0), inertia)
    link.add_joint("motor", "revolute", "universe", "crank")
    link.add_joint("elbow", "revolute", "crank", "coupler", place(0.2))
    link.add_joint("pivot", "revolute", "universe", "rocker", place(0.5))
    link.add_joint("pin", "revolute", "coupler", "rocker", place(0.5), place(0.4))
    mech = link.mechanism(["pin"], ["motor"], {"motor": 1.0, "elbow": -0.5, "pivot": 1.4})
    f = hc.compile(mech, ["inverse_dynamics", "forward_dynamics"], flags=["-O0"])
    q, _ = hc.assemble(mech)
    _, v = hc.assemble(mech, q, [20.0, 0, 0], locked=["motor"])
    exact = hc.inverse_dynamics(mech, q, v, [300.0])
    u = f.inverse_dynamics(q, v, [300.0])
    np.testing.assert_allclose(u, exact.u, rtol=1e-11)
    np.testing.assert_allclose(f.forward_dynamics(q, v, mech.B @ u), exact.a, rtol=1e-9)
    assert f.fallbacks == 0


def test_a_batch_may_write_into_its_targets():
    f = compiled("five_bar", ("inverse_dynamics",))
    states = [closed_states("five_bar")[i % 3] for i in range(40)]
    Q, V = (np.array([s[i] for s in states]) for i in range(2))
    Q[7] = np.add(mechanism("five_bar").reference, [np.pi, 0.3, -1.0, 2.0])  # far off
    T = np.random.default_rng(0).normal(size=(41, 2))
    wanted = f.inverse_dynamics_batch(Q, V, T[1:].copy())
    for first in (1, 0):  # the targets themselves, and the rows one ahead of them
        buffer = T.copy()
        out = buffer[first : first + 40]
        np.testing.assert_array_equal(f.inverse_dynamics_batch(Q, V, buffer[1:], out=out), wanted)


@pytest.mark.parametrize("weights", [[1e-9, 1.0, 1.0], [1e-6, 1.0, 1.0]])
def test_unequal_weights_lose_no_digits(weights):
    mech, part = case("three_motors")
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, weights=weights,
                   inconsistent="project", flags=["-O0"])  # fmt: skip
    prepared = hc.PreparedInverseDynamics(mech, part, weights, "project")
    rng = np.random.default_rng(3)
    for q, v in closed_states("three_motors")[:5]:
        target = rng.normal(size=3)
        u = f.inverse_dynamics(q, v, target)
        np.testing.assert_allclose(u, prepared.torque(q, v, target), rtol=1e-9, atol=1e-9)


def test_the_certificate_is_that_of_the_compiled_efforts(monkeypatch):
    f = compiled("five_bar", ("inverse_dynamics",))
    q, v = closed_states("five_bar")[0]
    assert f.certificate(q, v, np.ones(2)).ok
    right = f.inverse_dynamics(q, v, np.ones(2))
    monkeypatch.setitem(f.__dict__, "inverse_dynamics", lambda *args: 1.001 * right)
    assert not f.certificate(q, v, np.ones(2)).ok


@pytest.mark.parametrize("harm", ["cut off", "changed", "empty", "another"])
def test_what_was_harmed_in_the_cache_is_not_loaded(monkeypatch, tmp_path, harm):
    mech, part = case("four_bar")
    folder = tmp_path / "cache"
    monkeypatch.setenv("HOLOCTL_CACHE", str(folder))
    q, v = closed_states("four_bar")[0]
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0", f"-DH={len(harm)}"])
    u = f.inverse_dynamics(q, v, np.ones(1))
    (kept,) = (p for p in folder.iterdir() if p.suffix != ".sha256")
    data = kept.read_bytes()
    kept.unlink()  # this process has it mapped
    kept.write_bytes({
        "cut off": data[: len(data) // 2], "empty": b"", "another": b"x" + data[1:],
        "changed": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    }[harm])  # fmt: skip
    module_cache.loaded.cache_clear()
    again = hc.compile(mech, ["inverse_dynamics"], partition=part,
                       flags=["-O0", f"-DH={len(harm)}"])  # fmt: skip
    np.testing.assert_array_equal(again.inverse_dynamics(q, v, np.ones(1)), u)
    assert len(kept.read_bytes()) == len(data)  # built anew


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files on this system")
def test_a_cache_that_others_may_write_to_is_refused(monkeypatch, tmp_path):
    mech, part = case("four_bar")
    folder = tmp_path / "open"
    monkeypatch.setenv("HOLOCTL_CACHE", str(folder))
    hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    folder.chmod(0o777)
    module_cache.loaded.cache_clear()
    with pytest.raises(hc.HoloctlError, match="others may write to"):
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])


def never(*args):
    raise AssertionError("it was built")


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files on this system")
@pytest.mark.parametrize("place", ["cache", "above"])
@pytest.mark.parametrize("mode", [0o777, 0o757, 0o1777])
def test_nothing_is_built_where_others_may_write(monkeypatch, tmp_path, place, mode):
    """In the folder, or above it, where another folder could be put in its place."""
    above, folder = tmp_path / "above", tmp_path / "above" / "cache"
    folder.mkdir(parents=True)
    above.chmod(mode if place == "above" else 0o700)
    folder.chmod(mode if place == "cache" else 0o700)
    monkeypatch.setenv("HOLOCTL_CACHE", str(folder))
    monkeypatch.setattr(extension, "_compile", never)
    sticky = place == "above" and mode & 0o1000  # as /tmp is: nobody else can rename ours
    with pytest.raises(AssertionError if sticky else hc.HoloctlError,
                       match="built" if sticky else "others may write to"):  # fmt: skip
        hc.compile(mechanism("four_bar"), ["terms"], flags=["-O0"])


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files on this system")
def test_nothing_is_built_in_a_folder_of_another_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path))
    monkeypatch.setattr(extension, "_compile", never)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 12345)
    if os.getuid() == 0:
        os.chown(tmp_path, 54321, 54321)
    with pytest.raises(hc.HoloctlError, match="belongs to another user"):
        hc.compile(mechanism("four_bar"), ["terms"], flags=["-O0"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes and links on this system")
@pytest.mark.parametrize("which", ["module", "hash"])
@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "device", "writable"])
def test_what_is_no_file_of_ours_in_the_cache_is_refused(monkeypatch, tmp_path, which, kind):
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path / "new" / "cache"))
    old = os.umask(0)
    try:
        folder = module_cache.private_folder(module_cache.cache_folder())
    finally:
        os.umask(old)
    assert [p.stat().st_mode & 0o777 for p in (folder, folder.parent)] == [0o700, 0o700]
    path = folder / "holoctl_law_x.so"
    module_cache.keep(path, b"code")
    assert module_cache.kept(path) == b"code"
    assert len(list(folder.iterdir())) == 2  # nothing is left behind
    at = path if which == "module" else module_cache._mark(path)
    content = at.read_bytes()
    at.unlink()
    if kind == "pipe":
        os.mkfifo(at)
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        at.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        at.mkdir()
    elif kind == "device":
        at.symlink_to("/dev/zero")
    else:
        at.write_bytes(content)
        at.chmod(0o666)
    with pytest.raises(hc.HoloctlError, match="HOLOCTL_CACHE"):
        module_cache.kept(path)


def test_what_was_hashed_is_what_is_loaded(monkeypatch, tmp_path):
    """Whatever is put in the place of the file after it was judged."""
    mech, part = case("four_bar")
    monkeypatch.setenv("HOLOCTL_CACHE", str(tmp_path / "cache"))
    q, v = closed_states("four_bar")[0]
    u = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    module_cache.loaded.cache_clear()
    load = module_cache.loaded

    def swapped(module, data, folder):
        for kept in folder.iterdir():
            kept.unlink()
            kept.write_bytes(b"not what was hashed")
        return load(module, data, folder)

    monkeypatch.setattr(extension, "loaded", swapped)
    again = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    target = np.ones(1)
    assert again.inverse_dynamics(q, v, target) == u.inverse_dynamics(q, v, target)


def test_a_cache_of_no_user_is_refused(monkeypatch):
    monkeypatch.setenv("HOLOCTL_CACHE", "~there-is-no-such-user/cache")
    with pytest.raises(hc.HoloctlError, match="HOLOCTL_CACHE"):
        hc.compile(mechanism("four_bar"), ["terms"], flags=["-O0"])


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_flags_that_remove_the_guard_are_refused(flag):
    mech, part = case("four_bar")
    with pytest.raises(hc.HoloctlError, match="would remove the guard"):
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=[flag])


def test_arrays_that_are_not_aligned_are_taken():
    f = compiled("five_bar", ("inverse_dynamics",))
    q, v = closed_states("five_bar")[0]
    raw = np.zeros(8 * 4 + 1, dtype=np.uint8)[1:].view(float)
    raw[:] = q
    assert not raw.flags.aligned
    wanted = f.inverse_dynamics(q, v, np.ones(2))
    np.testing.assert_array_equal(f.inverse_dynamics(raw, v, np.ones(2)), wanted)


def test_a_compiler_that_is_no_command(monkeypatch):
    mech, part = case("four_bar")
    monkeypatch.setenv("CC", '"gcc')
    with pytest.raises(hc.InputError, match="is no command"):
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])


def turned(mech, q, angle):
    """A configuration with its floating base turned about the vertical through the world."""
    X = pin.SE3(pin.exp3(np.array([0.0, 0.0, angle])), np.zeros(3))
    return np.concatenate([pin.SE3ToXYZQUAT(X * pin.XYZQUATToSE3(q[:7])), q[7:]])


@pytest.mark.parametrize("hold", ["contact", "weld"])
def test_the_heading_of_a_robot_does_not_matter(hold):
    """Rows across a free joint are taken in its axes: its pivots do not turn with the robot."""
    mech = hc.load(hc.robot_file("leg"), free_flyer=True)
    q, _ = hc.assemble(mech)
    foot = mech.model.names[-1]
    if hold == "contact":
        extra = hc.Contact(foot, name="foot")
    else:
        data = mech.model.createData()
        pin.forwardKinematics(mech.model, data, q)
        extra = hc.Closure("universe", (foot, data.oMi[mech.model.getJointId(foot)].inverse()),
                           joint="spherical", name="foot")  # fmt: skip
    mech = dataclasses.replace(mech, reference=q).with_constraints(extra)
    part = hc.partition(mech, hc.assemble(mech)[0])
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"], **ANY_STATE)
    prepared, rng = hc.PreparedInverseDynamics(mech, part, **ANY_STATE), np.random.default_rng(0)
    for degrees in (0, 45, 88, 89, 90, 91, 92, 135, 180, 270):
        x = turned(mech, hc.assemble(mech)[0], np.deg2rad(degrees))
        v, target = rng.normal(size=mech.nv), rng.normal(size=mech.nu)
        u = prepared.torque(x, v, target)
        assert relative(f.inverse_dynamics(x, v, target), u) < 1e-9
    assert f.fallbacks == 0


def test_a_compiler_that_makes_nothing(monkeypatch):
    mech, part = case("four_bar")
    monkeypatch.setenv("CC", "echo")
    with pytest.raises(hc.HoloctlError, match=r"^echo ended .* made nothing"):
        hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
