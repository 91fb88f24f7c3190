"""Compiled forces: the same answer as on the other paths, or theirs."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from all_forces import cut_joints, wind
from expressed import EXPRESSED
from forced import forced, meeting_ends, moving_states, off_by
from inside import general_path
from support import ANY_STATE, mechanism

import holoctl as hc
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.law_options import subject_of
from holoctl.codegen.laws.computed_torque import torque_function
from holoctl.codegen.laws.forward_dynamics import forward_function
from holoctl.codegen.laws.inverse_dynamics import inverse_function
from holoctl.codegen.laws.terms import terms_function
from holoctl.rows.state_limits import NOT_GIVEN

ca = pytest.importorskip("casadi")

SAME = 1e-9
"""Relative difference of two paths."""

FEW = ("five_bar", "floating_leg", "three_motors", "prismatic_chain")
"""All motors, passive motions, more motors than motions, cut joints that slide."""

NAMES = [
    n if n in FEW else pytest.param(n, marks=pytest.mark.slow)
    for n in EXPRESSED
    if n not in ("weighted", "general_motors", "feet_without_motors", "every_joint")
] + [pytest.param(n, marks=pytest.mark.slow) for n in ("general_motors", "every_joint")]


def numbers(outputs):
    return [np.array(x) for x in outputs]


# ------------------------------------------------------------------------------ expressions


@pytest.mark.parametrize("name", NAMES)
def test_laws_with_every_force_agree_with_the_other_paths(name):
    mech, part = forced(name)
    E, t = symbolic(mech, part), 0.3
    terms, forward = terms_function(E), forward_function(E)
    inverse = inverse_function(E, None, "project") if mech.nu else None
    prepared = hc.PreparedInverseDynamics(mech, part, None, "project", None, None)
    rng, trusted = np.random.default_rng(3), 0
    for q, v in moving_states(name):
        assert off_by(numbers(terms(q, v, t))[6], hc.terms(mech, q, v, t=t).F) < SAME
        tau = rng.normal(size=mech.nv)
        a, guard = numbers(forward(q, v, tau, t))
        if guard < 1.0:
            trusted += 1
            expected = hc.forward_dynamics(mech, q, v, tau, partition=part, t=t)
            assert off_by(a, expected.a) < 10.0 * SAME
        if inverse is None:
            continue
        target = rng.normal(size=mech.nu)
        u, _, guard = numbers(inverse(q, v, target, t))
        if guard < 1.0:
            assert off_by(u, prepared.torque(q, v, target, t)) < SAME
    assert trusted


@pytest.mark.parametrize("friction_at", ["reference", "measured"])
@pytest.mark.parametrize("name", NAMES)
def test_the_torque_takes_friction_where_the_controller_does(name, friction_at):
    mech, part = forced(name)
    if not mech.nu or mech.motors.missing or not mech.actuated:
        pytest.skip("its motors have no positions of their own")
    ctl = hc.ComputedTorque(mech, 10.0, 3.0, partition=part, friction_at=friction_at, **ANY_STATE)
    E, t = symbolic(mech, part), 0.3
    law = torque_function(E, subject_of(ctl, None, None, NOT_GIVEN, NOT_GIVEN, NOT_GIVEN))
    rng = np.random.default_rng(4)
    for q, v in moving_states(name):
        given = [mech.motor_positions(q) + 0.1, *rng.normal(size=(2, mech.nu))]
        for v_ref in (given[1], 0.03 * given[1], mech.motor_rates(v), np.zeros(mech.nu)):
            x = q, v, given[0], v_ref, given[2], t
            u, guard = numbers(law(*x))
            if guard < 1.0:
                assert off_by(u, ctl.torque(*x)) < SAME


def test_without_a_share_the_reference_is_the_measured_velocity():
    """Off the manifold too, where a reference has no part of what slides."""
    mech, part = forced("five_bar")
    E, rng = symbolic(mech, part), np.random.default_rng(5)
    measured, moved = (inverse_function(E, None, "project", None, x) for x in (False, True))
    prepared = hc.PreparedInverseDynamics(mech, part, None, "project", None, None)
    for q, v in moving_states("five_bar"):
        x, speed = pin.integrate(mech.model, q, 1e-3 * rng.normal(size=4)), v + 1e-3
        target, rates = rng.normal(size=(2, 2))
        at_v = numbers(moved(x, speed, target, rates, 0.0, 0.0))[0]
        assert np.array_equal(at_v, numbers(measured(x, speed, target, 0.0))[0])
        at_rates = numbers(moved(x, speed, target, rates, 1.0, 0.0))[0]
        expected = general_path(prepared, x, speed, target, 0.0, None, rates)
        assert off_by(at_rates, expected) < SAME
        assert off_by(at_rates, at_v) > 1e-3


# ----------------------------------------------------------------------------- machine code


@pytest.fixture(scope="module")
def five_bar():
    ctl = hc.ComputedTorque(forced("five_bar")[0], 400.0, 40.0)
    return hc.compile(ctl, flags=["-O0"])


def test_machine_code_agrees_and_pickles(five_bar):
    fast, rng = five_bar, np.random.default_rng(6)
    mech, ctl = fast.mech, fast.controller
    prepared = hc.PreparedInverseDynamics(mech, fast.partition, None, "project")
    for twin in (fast, pickle.loads(pickle.dumps(fast)), copy.deepcopy(fast)):
        for q, v in moving_states("five_bar"):
            target, t = rng.normal(size=2), 0.2
            u = twin.inverse_dynamics(q, v, target, t)
            assert off_by(u, prepared.torque(q, v, target, t)) < SAME
            x = q, v, mech.motor_positions(q), 0.1 * target, target, t
            assert off_by(twin.torque(*x), ctl.torque(*x)) < SAME
            T, found = hc.terms(mech, q, v, t=t), twin.terms(q, v, t)
            assert found[-1] is found.F
            for name in ("error", "rate", "jacobian", "drift", "M", "h", "F"):
                assert np.abs(getattr(found, name) - getattr(T, name)).max() < 1e-12
            a = twin.forward_dynamics(q, v, mech.B @ u, t)
            assert off_by(mech.B.T @ a, target) < SAME
    assert fast.fallbacks == 0
    c = fast.certificate(*moving_states("five_bar")[0], [1.0, 2.0], 0.2)
    assert c.ok


def test_terms_that_fall_back_have_their_forces():
    mech, part = forced("floating_leg")
    fast = hc.compile(mech, ["terms"], partition=part, flags=["-O0"])
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    q[3:7] *= 1.0 + 1e-9  # the quaternion of the floating base
    found, T = fast.terms(q, v), hc.terms(mech, q, v)
    assert fast.fallbacks == 1
    assert np.abs(found.F - T.F).max() == 0.0


def test_without_forces_F_is_zero():
    mech = mechanism("five_bar")
    fast = hc.compile(mech, ["terms"], flags=["-O0"])
    q, v = hc.assemble(mech)
    assert fast.terms(q, v).F.tolist() == [0.0] * 4


@pytest.mark.parametrize("name", ["five_bar", pytest.param("floating_leg", marks=pytest.mark.slow)])
def test_derivatives_are_those_of_differences(name):
    mech, part = forced(name)
    names = ["inverse_dynamics_derivatives", "forward_dynamics_derivatives"]
    fast = hc.compile(
        mech, [*names, "inverse_dynamics", "forward_dynamics"], partition=part,
        inconsistent="project", flags=["-O0"], **ANY_STATE,
    )  # fmt: skip
    h, rng = 1e-5, np.random.default_rng(8)
    for q, v in moving_states(name, 2):
        for derivatives, law, size in (
            (fast.inverse_dynamics_derivatives, fast.inverse_dynamics, mech.nu),
            (fast.forward_dynamics_derivatives, fast.forward_dynamics, mech.nv),
        ):
            given = rng.normal(size=size)
            by_q, by_v, _ = derivatives(q, v, given, 0.1)
            for step, found in ((True, by_q), (False, by_v)):
                expected = []
                for e in np.eye(mech.nv):
                    sides = []
                    for s in (h, -h):
                        x = pin.integrate(mech.model, q, s * e) if step else q
                        sides.append(law(x, v if step else v + s * e, given, 0.1))
                    expected.append((sides[0] - sides[1]) / (2.0 * h))
                assert off_by(found, np.column_stack(expected)) < 1e-5


def test_gravity_holds_springs_and_no_friction():
    mech, part = forced("five_bar")
    ctl = hc.ComputedTorque(mech, 40.0, 4.0, "gravity", part)
    fast = hc.compile(ctl, ["torque"], flags=["-O0"])
    (q, v), *_ = moving_states("five_bar")
    x = q, v, mech.motor_positions(q), mech.motor_rates(v), np.zeros(2)
    springs = [f for f in mech.forces if not isinstance(f, hc.JointFriction)]
    without = hc.ComputedTorque(mechanism("five_bar").with_forces(springs), 40.0, 4.0, "gravity")
    assert off_by(fast.torque(*x), ctl.torque(*x)) < SAME
    assert off_by(fast.torque(*x), without.torque(*x)) < SAME


def test_ends_of_a_spring_that_coincide_give_an_error():
    mech, q = meeting_ends()
    fast = hc.compile(mech, ["inverse_dynamics", "forward_dynamics"], flags=["-O0"], **ANY_STATE)
    v = np.zeros(mech.nv)
    assert np.isfinite(fast.inverse_dynamics(mech.reference, v, np.zeros(mech.nu))).all()
    for law, size in ((fast.inverse_dynamics, mech.nu), (fast.forward_dynamics, mech.nv)):
        with pytest.raises(hc.SingularityError, match="ends coincide"):
            law(q, v, np.zeros(size))


def test_a_rope_shorter_than_its_ends_can_be_told_apart():
    """Between its length and where a damper has no direction, and slack below."""
    base, q = meeting_ends()
    (band,) = base.forces
    rope = dataclasses.replace(band, length=1e-9, damping=5.0, unilateral=True)
    mech = base.without("band").with_forces([rope])
    fast = hc.compile(mech, ["inverse_dynamics"], flags=["-O0"], **ANY_STATE)
    v, target = np.ones(mech.nv), np.zeros(mech.nu)
    for step, refused in ((1e-13, False), (1e-8, True), (1e-3, False)):
        x = pin.integrate(mech.model, q, np.full(mech.nv, step))
        if refused:
            for law in (fast.inverse_dynamics, hc.PreparedInverseDynamics(mech).torque):
                with pytest.raises(hc.SingularityError, match="ends coincide"):
                    law(x, v, target)
        else:
            expected = hc.inverse_dynamics(mech, x, v, target).u
            assert off_by(fast.inverse_dynamics(x, v, target), expected) < SAME


# --------------------------------------------------------------------------------- refusals


def without(function):
    mech = mechanism("five_bar")
    return mech.with_forces([hc.CustomForce(wind, function, name="mine")])


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (None, r"force 'mine' cannot be compiled: its function is Python; give it casadi="),
        (lambda q, v, t: 0.2 * v, r"'mine' is not the force: its error is"),
        (lambda q, v, t: v[:2], r"'mine' must return a casadi.SX of 4 entries; got \(2, 1\)"),
        (lambda q, v, t: [0.0] * 4, r"must return a casadi.SX of 4 entries; got list"),
        (lambda q, v, t: v + ca.SX.sym("k"), r"depends on more than q, v and t: k"),
        (lambda q, v, t: v.nonsense, r"'mine' raised AttributeError"),
    ],
)
def test_expressions_that_are_not_the_force_are_refused_by_name(function, says, tmp_path):
    mech = without(function)
    with pytest.raises(hc.InputError, match=says):
        hc.compile(mech, ["inverse_dynamics"])
    with pytest.raises(hc.InputError, match=says):
        hc.export_c(mech, tmp_path)


def test_a_difference_that_shows_near_rest_alone_is_refused():
    mech = mechanism("five_bar").with_forces(
        [hc.CustomForce(stiction, lambda q, v, t: -ca.tanh(v / 1e-3), name="mine")]
    )
    with pytest.raises(hc.InputError, match="'mine' is not the force"):
        hc.compile(mech, ["inverse_dynamics"])


def test_a_difference_that_shows_at_speed_alone_is_refused():
    mech = mechanism("five_bar").with_forces(
        [hc.CustomForce(lambda q, v, t: -np.clip(v, -5.0, 5.0), lambda q, v, t: -v, name="mine")]
    )
    with pytest.raises(hc.InputError, match="'mine' is not the force"):
        hc.compile(mech, ["inverse_dynamics"])


def stiction(q, v, t):
    return -np.tanh(v / 2e-3)


@dataclasses.dataclass(frozen=True)
class Oil:
    """Friction of one's own, with an expression and a guard."""

    damping: float = 0.4
    name: str | None = None
    default_name = "oil"
    expressed: bool = True

    def bind(self, model, name, reference, closures):
        return (BoundOil if self.expressed else PlainOil)(self.damping, model.nv)


@dataclasses.dataclass(frozen=True)
class PlainOil:
    damping: float
    nv: int
    stores = False
    friction = True

    def at(self, kin):
        none = np.zeros(self.nv)
        return hc.protocols.Efforts(none, -self.damping * kin.v**3, none)

    def energy(self, kin):
        return 0.0

    def by_velocity(self, kin):
        return -np.diag(3.0 * self.damping * kin.v**2)


class BoundOil(PlainOil):
    def expression(self, q, v, t, between):
        return -self.damping * v**3

    def guard(self, q, v, t, between):
        return [(v[0] / 50.0) ** 2]

    at = PlainOil.at


class OtherOil(BoundOil):
    def at(self, kin):
        none = np.zeros(self.nv)
        return hc.protocols.Efforts(none, -2.0 * self.damping * kin.v**3, none)

    def by_velocity(self, kin):
        return -np.diag(6.0 * self.damping * kin.v**2)


def test_friction_of_ones_own_goes_to_the_reference_with_its_guard():
    mech = mechanism("five_bar").with_forces([Oil()])
    ctl = hc.ComputedTorque(mech, 40.0, 4.0, **ANY_STATE)
    fast = hc.compile(ctl, ["torque", "inverse_dynamics"], flags=["-O0"])
    q, v = hc.assemble(mech, v_guess=np.ones(4))
    x = [q, v, mech.motor_positions(q), np.array([1.0, -2.0]), np.zeros(2)]
    assert off_by(fast.torque(*x), ctl.torque(*x)) < SAME
    assert fast.fallbacks == 0
    x[3] = np.array([100.0, 0.0])  # past the guard there, not at v
    assert off_by(fast.torque(*x), ctl.torque(*x)) < SAME
    assert fast.fallbacks == 1


def test_a_class_without_an_expression_of_its_own_efforts_is_refused():
    plain = mechanism("five_bar").with_forces([Oil(expressed=False)])
    with pytest.raises(hc.InputError, match="force 'oil' cannot be compiled: a PlainOil has no"):
        hc.compile(plain)

    @dataclasses.dataclass(frozen=True)
    class Changed(Oil):
        def bind(self, model, name, reference, closures):
            return OtherOil(self.damping, model.nv)

    with pytest.raises(hc.InputError, match="a OtherOil has no expression"):
        hc.compile(mechanism("five_bar").with_forces([Changed()]))


def test_the_zoo_has_cut_joints_with_friction():
    assert cut_joints(mechanism("five_bar_revolute"))
