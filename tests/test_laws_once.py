"""Each text of holoctl/laws over numbers and over expressions, beside the formulas with gamma."""

from __future__ import annotations

import warnings

import numpy as np
import pinocchio as pin
import pytest
from inside import laws_in_numbers, options_of, was_fast
from support import closed_states, few, mechanism, shared_partition
from zoo import ZOO

import holoctl as hc
from holoctl.codegen.laws.limited import bounding_functions
from holoctl.control.viability_kernel import FLOATS
from holoctl.dynamics.actuation import actuation
from holoctl.dynamics.effort_response import effort_response
from holoctl.dynamics.inverse import driven_acceleration
from holoctl.dynamics.tick.inverse_by_projection import general_efforts
from holoctl.laws import acceleration_bounds
from holoctl.laws.forward import forward, mobility, response
from holoctl.laws.inverse import holding, inverse

WITHOUT_A_TICK = {"sine_chart"}
WITHOUT_EXPRESSIONS = {"sine_gear", "timed_arm", "sine_chart"}
WEIGHTS = {"three_motors": [1.0, 2.0, 5.0]}
FRICTION = hc.JointFriction(0.3, 0.5, transition=0.05)

NAMES = [f"{name}{forced}" for name in ZOO for forced in ("", ", friction")]
SOME = ("four_bar", "three_motors, friction", "floating_leg, friction", "screw_chain",
        "spatial_arms, friction", "standing_leg")  # fmt: skip


@pytest.fixture(scope="module", params=few(NAMES, SOME))
def prepared(request):
    """Inverse dynamics of a mechanism of the zoo, perhaps with friction; closed states of it."""
    name, _, forced = request.param.partition(", ")
    mech, part = mechanism(name), shared_partition(name)
    if forced:
        try:
            mech = mech.with_forces([FRICTION])
        except hc.InputError:
            pytest.skip("no joint of it takes friction as one number")
        part = hc.partition(mech, hc.assemble(mech)[0])
    found = hc.PreparedInverseDynamics(mech, part, WEIGHTS.get(name), "project", None, None)
    return name, found, closed_states(name)[:3]


class Asked:
    """What is asked at a state, and what the formulas with gamma say."""

    def __init__(self, prepared, q, v, seed):
        self.mech, self.part, rng = prepared.mech, prepared.partition, np.random.default_rng(seed)
        self.q, self.v, nu, nv = q, v, self.mech.nu, self.mech.nv
        self.target, self.rates = 5.0 * rng.normal(size=nu), rng.normal(size=nu)
        self.pushed, self.tau = rng.normal(size=(2, nv))
        self.prepared, self.driven = (
            prepared,
            self.part.actuation_rank == self.part.independent.size,
        )

    def efforts(self, rates=None, known=None):
        return self._general(self.v, self.target, known, rates)

    def holding(self):
        return self._general(0.0 * self.v, None, None, None)

    def _general(self, v, target, known, rates):
        given = self.q, v, target, 0.0, known, rates
        return general_efforts(self.mech, self.part, options_of(self.prepared), *given)

    def others(self):
        P = hc.project(self.mech, self.q, self.v, partition=self.part)
        act = actuation(P, self.prepared.weights)
        found = effort_response(P, act, P.terms.F)
        forward = hc.forward_dynamics(self.mech, self.q, self.v, self.tau, projection=P)
        a = driven_acceleration(P, act, self.target, P.terms.F, "project")
        return {"a": a, "forward": forward.a, "H": found.H, "Y": found.Y}

    def oracle(self):
        found = {"u": self.efforts(), "u at rates": self.efforts(self.rates), **self.others()}
        if self.driven:
            found |= {"u pushed": self.efforts(known=-self.pushed), "holding": self.holding()}
        return found


def by_the_laws(K, tree, given, driven, none, copied):
    """The texts of laws; `given` are the target, rates, and efforts of `Asked`."""
    target, rates, pushed, tau = given
    u, a, _ = inverse(K, tree, K.of_motors(target), None, None)
    found = {"u": u, "a": copied(a)}
    found["u at rates"] = inverse(K, tree, K.of_motors(target), K.of_rates(rates), None)[0]
    found["forward"] = forward(K, tree, none, 2)(tau)
    found["H"], gamma, per_effort = response(K, tree)
    found["Y"] = gamma @ per_effort
    N, _ = mobility(K, tree)
    found["gamma"] = copied(N)
    if driven:
        found["u pushed"] = inverse(K, tree, K.of_motors(target), None, K.along(pushed))[0]
    return found


def assert_as_the_oracle(found, asked):
    expected = asked.oracle()
    assert set(expected) <= set(found)
    for what, value in expected.items():
        size = 1.0 + np.abs(value).max()
        assert found[what] == pytest.approx(value, rel=0.0, abs=1e-9 * size), what
    G = hc.project(asked.mech, asked.q, asked.v, partition=asked.part).rows.jacobian
    assert np.abs(G @ found["gamma"]).max(initial=0.0) < 1e-9 * (1.0 + np.abs(G).max(initial=0.0))


def test_the_laws_over_numbers_are_the_formulas_with_gamma(prepared):
    name, prepared, states = prepared
    at = laws_in_numbers(prepared)
    if at is None:
        assert name in WITHOUT_A_TICK or prepared.general
        return
    for seed, (q, v) in enumerate(states):
        asked, none = Asked(prepared, q, v, seed), np.zeros(prepared.partition.independent.size)
        K, tree = at(q, v, 0.0)
        given = asked.target, asked.rates, asked.pushed, asked.tau
        found = by_the_laws(K, tree, given, asked.driven, none, np.copy)
        if asked.driven:
            found["holding"] = holding(K, tree)
        timed = name == "timed_arm" and tree.friction
        assert tree.here.doubtful == timed  # its rows bring no rate of their own
        if timed:
            found["u at rates"] = asked.efforts(asked.rates)
        assert_as_the_oracle(found, asked)


def test_the_laws_over_expressions_are_the_formulas_with_gamma(prepared):
    ca = pytest.importorskip("casadi")
    from holoctl.codegen.expressions import symbolic
    from holoctl.codegen.laws.constraints_and_tree import SymbolicTree, motor_constraints
    from holoctl.codegen.matrices import total

    name, prepared, states = prepared
    mech, part = prepared.mech, prepared.partition
    if name in WITHOUT_EXPRESSIONS:
        with pytest.raises(hc.InputError):
            symbolic(mech, part)
        return
    E = symbolic(mech, part)
    if part.actuation_rank < min(mech.nu, part.independent.size):
        with pytest.raises(hc.InputError, match="cannot be compiled"):
            motor_constraints(E)
        return
    K, tree = motor_constraints(E, prepared.weights, "project"), SymbolicTree(E)
    sizes = {"target": mech.nu, "rates": mech.nu, "pushed": mech.nv, "tau": mech.nv}
    given = [ca.SX.sym(n, size) for n, size in sizes.items()]
    driven = part.actuation_rank == part.independent.size
    found = by_the_laws(K, tree, given, driven, ca.SX.zeros(K.unit.size), lambda x: x)
    if driven:
        found["holding"] = ca.substitute(holding(K, tree), E.v, ca.SX.zeros(mech.nv))
    guard = total([*E.guard, *K.guard, *tree.guard])
    law = ca.Function("law", [E.q, E.v, *given, E.t], [*found.values(), guard])
    for seed, (q, v) in enumerate(states):
        asked = Asked(prepared, q, v, seed)
        *values, doubtful = law(q, v, asked.target, asked.rates, asked.pushed, asked.tau, 0.0)
        assert float(doubtful) < 1.0
        as_arrays = [np.array(x).reshape(x.shape if x.shape[1] > 1 else -1) for x in values]
        shaped = dict(zip(found, as_arrays, strict=True))
        for what in ("H", "Y", "gamma"):
            shaped[what] = shaped[what].reshape(found[what].shape)
        assert_as_the_oracle(shaped, asked)


@pytest.mark.parametrize("ratio", [1.0, 1e5, 1e9, 1e13])
def test_where_an_inertia_has_lost_its_digits_the_response_is_doubtful(ratio):
    """Sliders on each other, the middle one heavy: a force on the first moves that alone."""
    model = pin.Model()
    for i, mass in enumerate((1.0, ratio, 1.0)):
        j = model.addJoint(i, pin.JointModelPX(), pin.SE3.Identity(), f"slider_{i}")
        body = pin.Inertia(mass, np.zeros(3), 0.01 * mass * np.eye(3))
        model.appendBodyToJoint(j, body, pin.SE3.Identity())
    mech = hc.Mechanism(model, actuated=["slider_0", "slider_1", "slider_2"])
    K, tree = laws_in_numbers(hc.PreparedInverseDynamics(mech))(np.zeros(3), np.zeros(3), 0.0)
    H, *_ = response(K, tree)
    assert tree.here.doubtful or H[0, 0] == pytest.approx(1.0, abs=1e-9)
    assert tree.here.doubtful == (ratio > 1e8)


@pytest.mark.parametrize("dt", [2.5e-4, 4e-3])
def test_bounds_of_limits_are_the_same_as_expressions(dt):
    """Every bound of one coordinate, within its limits, beyond them, and where it just turns."""
    rng, words = (
        np.random.default_rng(5),
        ("room", "v", "v_min", "v_max", "brake", "size", "change"),
    )
    for function in bounding_functions(dt):
        law = getattr(acceleration_bounds, function.name())
        names = [function.name_in(i) for i in range(function.n_in())]
        for k in range(400):
            given = dict(
                zip(words, rng.normal(size=7) * rng.choice([1e-4, 1.0, 30.0]), strict=True)
            )
            given |= {"v_min": -abs(given["v_min"]), "v_max": abs(given["v_max"]), "size": 0.3}
            given |= {"brake": abs(given["brake"]), "least": given["v"] - 2.0, "most": given["v"]}
            given["room"] = abs(given["room"]) * (-1.0 if function.name() == "led_back" else 1.0)
            if k % 4 == 0:
                given |= {"v_min": -np.inf, "v_max": np.inf}
            values = [float(given[x]) for x in names]
            found, expected = float(function(*values)), law(FLOATS, *values, dt)
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


BAD = {
    "a target that contradicts itself": (0.0, lambda P: 5.0 * np.array([1.0, -1.0, 2.0])),
    "not a number": (0.0, lambda P: np.full(3, np.nan)),
    "open": (0.3, lambda P: np.zeros(3)),
}


@pytest.mark.parametrize("what", BAD)
def test_a_refusal_leaves_nothing_behind(what):
    """The next answer is that of a fresh one, bit by bit, by the fast path."""
    mech, part = mechanism("three_motors"), shared_partition("three_motors")
    open_by, target_of = BAD[what]
    (q, v), good = closed_states("three_motors")[0], np.zeros(3)
    P = hc.project(mech, q, v, partition=part)
    good = mech.B.T @ P.bias
    prepared, fresh = (hc.PreparedInverseDynamics(mech, part) for _ in range(2))
    first = prepared.torque(q, v, good)
    kept = first.copy()
    with pytest.raises(hc.HoloctlError):
        prepared.torque(q + open_by, v, target_of(P))
    again = prepared.torque(q, v, good)
    assert was_fast(prepared)
    assert again.tobytes() == fresh.torque(q, v, good).tobytes() == kept.tobytes()
    assert first.tobytes() == kept.tobytes()  # an answer does not change later


@pytest.mark.parametrize("name", few(["four_bar", "floating_leg", "three_motors"], ["four_bar"]))
def test_arrays_of_any_layout_are_read_the_same(name):
    mech, part = mechanism(name), shared_partition(name)
    (q, v), rng = closed_states(name)[0], np.random.default_rng(0)
    prepared = hc.PreparedInverseDynamics(mech, part, inconsistent="project")
    target = rng.normal(size=mech.nu).astype(np.float32).astype(float)
    expected = prepared.torque(q, v, target).copy()

    def spread(x):
        return np.repeat(x, 2)[::2]

    def turned(x):
        return x[::-1].copy()[::-1]

    for layout in (spread, turned):
        u = prepared.torque(layout(q), layout(v), layout(target))
        assert u == pytest.approx(expected, rel=1e-13, abs=1e-13)
        assert was_fast(prepared)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        u = prepared.torque(q, v, target.astype(np.float32))
    assert u.tobytes() == expected.tobytes()
    u[:] = np.nan  # the caller's own
    assert prepared.torque(q, v, target).tobytes() == expected.tobytes()
