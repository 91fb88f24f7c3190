"""The pieces of the laws as expressions, and what has no expression."""

from __future__ import annotations

import dataclasses
import pickle

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
import zoo
from expressed import REFUSED, case, five_bar, sine_expression, states, with_expression
from support import closed_states, difference, mechanism, open_states, relative, shared_partition

import holoctl as hc
from holoctl.codegen.c_source import PART, c_function
from holoctl.codegen.elimination import eliminate, pivot_order
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.derivatives import derivatives
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.laws.terms import terms_function
from holoctl.codegen.tree import symbolic_tree
from holoctl.codegen.tree_dynamics import mass_matrix, tree_efforts
from holoctl.constraints.wrench_rows import stacked
from holoctl.tree.position_rates import tangent

# ----------------------------------------------------------------------- what has no expression


@pytest.mark.parametrize(("name", "why"), REFUSED.items())
def test_what_has_no_expression_is_refused_by_name(name, why):
    with pytest.raises(hc.InputError, match=why):
        hc.compile(mechanism(name))


def own_gear(**methods):
    """The geared slider with a gear of a class of one's own."""

    class Derived(hc.Coupling):
        def bind(self, model, name, reference):
            bound = super().bind(model, name, reference)
            return type("Other", (type(bound),), methods)(
                bound.labels, bound.of_q, bound.offset, bound.jacobian
            )

    base = mechanism("geared_slider")
    gear = Derived({"wheel": 1.0, "crank": -2.0}, offset=0.1, name="my gear")
    return dataclasses.replace(base, constraints=[base.constraints[0], gear, base.constraints[2]])


def test_rows_of_a_class_of_ones_own_are_refused_by_name():
    """What is offered belongs to the rows beside which it was written."""
    with pytest.raises(hc.InputError, match=r"'my gear'.*Other"):
        symbolic(own_gear(rows=lambda self, kin: super(type(self), self).rows(kin)))


def test_a_class_that_has_the_rows_of_another_has_its_expression():
    q, v = closed_states("geared_slider")[0]
    own, part = own_gear(), shared_partition("geared_slider")
    u = hc.inverse_dynamics(mechanism("geared_slider"), q, v, [1.0], partition=part).u
    f = hc.compile(own, ["inverse_dynamics"], flags=["-O0"])
    assert relative(f.inverse_dynamics(q, v, np.ones(1)), u) < 1e-11
    assert f.fallbacks == 0


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
    zoo.add_body(m, 0, pin.JointModelEllipsoid(0.1, 0.2, 0.3), zoo.at(), "egg", zoo.bar(0.1))
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
        with pytest.raises(hc.InputError, match=word):
            dataclasses.replace(base, constraints=[dataclasses.replace(gear, casadi=bad)])
    wrong = dataclasses.replace(gear, casadi=lambda q: q[1] - 2.001 * ca.sin(q[0]))
    with pytest.raises(hc.InputError, match="'sine' is not its phi"):
        dataclasses.replace(base, constraints=[wrong])
    with pytest.raises(hc.InputError, match="casadi must be a function"):
        dataclasses.replace(gear, casadi="sin")


def test_an_expression_that_leaves_its_phi_far_from_the_reference_is_refused():
    """Seeded states near the reference do not show it: those that are assembled do."""
    base = mechanism("sine_gear")
    (gear,) = base.constraints
    bent = dataclasses.replace(
        gear, casadi=lambda q: sine_expression(q) + ca.if_else(ca.fabs(q[0]) > 2.5, 1e-6, 0.0)
    )
    far = dataclasses.replace(base, constraints=[bent])
    far.per_thread("samples of expressions", lambda: np.array([[2.6, 2.0 * np.sin(2.6)]]))
    with pytest.raises(hc.InputError, match="casadi of constraint 'sine' is not its phi"):
        hc.compile(far)


def test_an_expression_serves_in_the_place_of_the_callbacks():
    plain, other = mechanism("sine_gear"), with_expression("sine_gear")
    q, v = closed_states("sine_gear")[0]
    assert relative(hc.terms(other, q, v).drift, hc.terms(plain, q, v).drift) < 1e-14
    assert pickle.loads(pickle.dumps(other)).constraints[0].casadi is sine_expression


# --------------------------------------------------------------------------------------- the pieces


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
         ca.vertcat(*e.solve_transposed([b[i] for i in range(n)])), sum(e.guard, ca.SX(0.0))],
    )  # fmt: skip
    for sample in A:
        right = rng.normal(size=n)
        y, z, guard = (np.array(r).reshape(-1) for r in f(sample, right))
        assert relative(sample @ y, right) < 1e-11
        assert relative(sample.T @ z, right) < 1e-11
        assert guard < 1.0


def test_a_long_function_in_parts_gives_the_same_numbers():
    """The C of a chain is longer than one part."""
    mech = zoo.in_series(22)
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


# -------------------------------------------------------------------------------------- derivatives


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
        dq, dv, dx, guard = (np.array(r) for r in d(q, v, x, 0.2))
        assert guard < 1.0
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


def test_terms_function_is_dense_and_named():
    f = terms_function(symbolic(*case("four_bar")))
    assert f.name_out() == ["error", "rate", "G", "drift", "M", "h", "guard"]
    assert all(f.sparsity_out(i).is_dense() for i in range(f.n_out()))
