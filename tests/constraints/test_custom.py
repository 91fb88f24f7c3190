"""Constraints of one's own: callbacks, numerical derivatives, time."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
import pytest
import zoo
from support import assert_rows_close, closed_states, mechanism, relative, rows

import holoctl as hc


def without(*parts):
    """The sine gear with some of its callbacks left to differences."""
    given = {"jacobian": zoo.sine_jacobian, "drift": zoo.sine_drift}
    kept = {name: f for name, f in given.items() if name not in parts}
    mech = mechanism("sine_gear")
    return hc.Mechanism(mech.model, [hc.Custom(zoo.sine, **kept)], ["shoulder"])


@pytest.mark.parametrize("left_out", [("drift",), ("jacobian",), ("jacobian", "drift")])
def test_numerical_derivatives_replace_callbacks(left_out):
    exact, numeric = mechanism("sine_gear"), without(*left_out)
    for q, v in closed_states("sine_gear")[:20]:
        a, b = rows(exact, q, v), rows(numeric, q, v)
        assert_rows_close(exact, b.jacobian, a.jacobian, 1e-11, (q, v), what="G")
        tol = 1e-8 * (1.0 + np.abs(a.drift).max())
        assert_rows_close(exact, b.drift, a.drift, tol, (q, v), what="drift")
    assert np.abs(a.drift).max() > 1e-2


def test_numerical_derivatives_are_along_v_for_quaternions_too():
    """A ball joint kept upright: phi from the quaternion, rate from the angular velocity."""
    m = pin.Model()
    j = m.addJoint(0, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    m.inertias[j] = pin.Inertia(1.0, np.array([0.0, 0.0, 0.3]), np.diag([0.1, 0.2, 0.3]))

    def lean(q):
        return [(pin.Quaternion(q[3], q[0], q[1], q[2]).matrix() @ [0.0, 0.0, 1.0])[0]]

    custom = hc.Mechanism(m, [hc.Custom(lean)], ["ball[1]"])
    q, v = hc.assemble(custom, pin.integrate(m, pin.neutral(m), np.array([0.4, 0.3, -0.2])),
                       [1.0, 2.0, 3.0])  # fmt: skip
    R = pin.Quaternion(q[3], q[0], q[1], q[2]).matrix()
    expected = np.array([1.0, 0.0, 0.0]) @ R @ -pin.skew(np.array([0.0, 0.0, 1.0]))
    assert np.abs(rows(custom, q, v).jacobian[0] - expected).max() < 1e-10
    res = hc.forward_dynamics(custom, q, v, np.zeros(3))
    assert res.certificate.ok


def _rate_t(q, t):
    return [-0.15 * np.cos(3.0 * t)]


def _wave(q, t):
    return [q[1] - 2.0 * np.sin(q[0]) - 0.05 * np.sin(3.0 * t)]


def _wave_jacobian(q, t):
    return zoo.sine_jacobian(q)


def _wave_drift(q, v, t):
    return [zoo.sine_drift(q, v)[0] + 0.45 * np.sin(3.0 * t)]


WAVE = {"jacobian": _wave_jacobian, "rate_t": _rate_t, "drift": _wave_drift}


@pytest.mark.parametrize(
    ("what", "wrong"),
    [
        ("jacobian", lambda q, t: -np.array(_wave_jacobian(q, t))),
        ("jacobian", lambda q, t: 1.001 * np.array(_wave_jacobian(q, t))),
        ("jacobian", lambda q, t: [[0.0, 1.0]]),
        ("rate_t", lambda q, t: [0.0]),
        ("drift", lambda q, v, t: np.zeros(1)),
        ("drift", lambda q, v, t: zoo.sine_drift(q, v)),  # the terms of time forgotten
        ("drift", lambda q, v, t: -np.array(_wave_drift(q, v, t))),
    ],
)
def test_derivatives_that_are_not_those_of_phi_are_refused(what, wrong):
    """A wrong one was certified: the certificate takes rows as they are given."""
    model = mechanism("sine_gear").model
    hc.Mechanism(model, [hc.Custom(_wave, **WAVE, time=True, name="wave")], ["shoulder"])
    for others in (WAVE, {}):
        given = hc.Custom(_wave, **(others | {what: wrong}), time=True, name="wave")
        with pytest.raises(hc.InputError, match=f"^{what} of Custom 'wave' is not the derivative"):
            hc.Mechanism(model, [given], ["shoulder"])


def test_derivatives_are_compared_where_phi_is_defined():
    def phi(q):
        if abs(q[1]) > 1e-3:
            raise ValueError("outside")
        return [q[0] - np.sqrt(1e-6 - q[1] ** 2)]

    def jacobian(q):
        return [[1.0, q[1] / np.sqrt(1e-6 - q[1] ** 2)]]

    model = mechanism("sine_gear").model
    hc.Mechanism(model, [hc.Custom(phi, jacobian)])
    with pytest.raises(hc.InputError, match="jacobian of Custom 'phi'"):
        hc.Mechanism(model, [hc.Custom(phi, lambda q: -np.array(jacobian(q)))])


def test_rows_of_any_size_are_compared_by_their_own():
    """One row in other units must not hide what is wrong with another."""
    model = mechanism("sine_gear").model

    def phi(q):
        return [1e6 * q[0], 1e-3 * np.sin(q[1])]

    def custom(factor):
        def jacobian(q):
            return [[1e6, 0.0], [0.0, factor * 1e-3 * np.cos(q[1])]]

        return hc.Custom(phi, jacobian, rows=2)

    hc.Mechanism(model, [custom(1.0)])
    for factor in (2.0, 1.001, 0.0):
        with pytest.raises(hc.InputError, match="jacobian @ v of row 1 is"):
            hc.Mechanism(model, [custom(factor)])


def test_a_constraint_in_time_drives_the_mechanism():
    """Simulated, the tip follows the bench; its velocity is the imposed one."""
    mech = mechanism("timed_arm")
    q, v = hc.assemble(mech, t=0.0)
    run = hc.simulate(mech, lambda t, q, v: np.zeros(2), q, v, 0.5, frequency=50.0)
    for t, q, v in zip(run.t, run.q, run.v, strict=True):
        assert abs(zoo.tip_height(q, t)[0]) < 1e-10
        r = rows(mech, q, v, t)
        assert abs(r.rate[0]) < 1e-9
        assert r.jacobian @ v == pytest.approx(0.15 * np.cos(3.0 * t), abs=1e-8)
    part = hc.partition(mech, run.q[-1], t=0.5)
    res = hc.inverse_dynamics(mech, run.q[-1], run.v[-1], [1.0, 2.0], t=0.5, partition=part)
    assert res.certificate.ok, str(res.certificate)
    assert res.certificate.power < 1e-8
    back = hc.forward_dynamics(mech, run.q[-1], run.v[-1], mech.B @ res.u, t=0.5, partition=part)
    assert relative(mech.B.T @ back.a, [1.0, 2.0]) < 1e-8


def test_named_callbacks_pickle():
    mech = mechanism("timed_arm")
    again = pickle.loads(pickle.dumps(mech))
    q, v = closed_states("timed_arm")[0]
    assert (rows(again, q, v).drift == rows(mech, q, v).drift).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hc.Custom(None), "phi must be a function"),
        (lambda: hc.Custom(zoo.sine, jacobian=3), "jacobian must be a function"),
        (lambda: hc.Custom(zoo.sine, rows=0), "rows"),
        (lambda: hc.Custom(zoo.sine, scale=0.0), "scale"),
        (lambda: hc.Custom(zoo.sine, scale=[1.0, 2.0]), "scale"),
        (lambda: hc.Custom(zoo.sine, rate_t=zoo.sine), "time=True"),
        (lambda: hc.Custom(zoo.sine, t_stab=0.0), "t_stab"),
        (lambda: arm(hc.Custom(lambda q: [1.0, 2.0], name="two")), "phi of Custom 'two'"),
        (lambda: arm(hc.Custom(lambda q: [np.nan], name="nan")), "finite"),
        (lambda: arm(hc.Custom(zoo.sine, lambda q: [[1.0]], name="thin")), "jacobian of Custom"),
        (lambda: arm(hc.Custom(lambda q: "high", name="word")), "real numbers"),
    ],
)
def test_callbacks_that_make_no_sense_are_refused(make, words):
    with pytest.raises(hc.InputError, match=words):
        make()


def arm(custom):
    return hc.Mechanism(mechanism("sine_gear").model, [custom])


@pytest.mark.parametrize("scale", [[1.0, 1.0], [1.0, 2.0, 3.0]])
def test_more_scales_than_rows_are_told_about_rows(scale):
    with pytest.raises(hc.InputError, match=rf"rows=1.*did you mean rows={len(scale)}\?"):
        hc.Custom(lambda q: q[: len(scale)], scale=scale)


def test_more_numbers_than_rows_are_told_about_rows():
    mech = zoo.ZOO["four_bar"]()
    with pytest.raises(hc.InputError, match=r"got \(2,\); rows=1 states the number"):
        mech.with_constraints(hc.Custom(lambda q: q[:2]))


# ------------------------------------------------------------------ an expression beside phi


def differential(names, at, sin, cos, tan):
    """Two motors a, b turn and tilt a hip through bevels that are no plain gears."""
    a, b, r, p = (at[n] for n in names)

    def phi(q):
        return [
            sin(q[r]) * cos(0.5 * q[p]) - sin(0.5 * (q[a] - q[b])) + 0.1 * sin(q[p]) * sin(q[r]),
            tan(0.5 * q[p]) - sin(0.25 * (q[a] + q[b])) + 0.1 * (1.0 - cos(q[r])) * sin(q[a]),
        ]

    return phi


def push_rods(names, at, sin, cos, tan):
    """Cranks a, b hold a foot, which tilts (p) and rolls (r), by two rods."""
    cranks, (p, r) = (at[names[0]], at[names[1]]), (at[names[2]], at[names[3]])

    def phi(q):
        def rod(side, crank):
            x = -0.05 * cos(q[p]) + 0.04 * side * sin(q[p]) * sin(q[r]) + 0.05 * cos(q[crank])
            y = 0.04 * side * (cos(q[r]) - 1.0)
            z = 0.05 * sin(q[p]) + 0.04 * side * cos(q[p]) * sin(q[r]) - 0.05 * sin(q[crank])
            return (x**2 + y**2 + (z - 0.25) ** 2 - 0.25**2) / 0.5

        return [rod(side, crank) for side, crank in zip((-1.0, 1.0), cranks, strict=True)]

    return phi


def leg(expressed=True, calls=None, wrong=0.0):
    """Yaw, hip differential, knee, ankle on rods: 10 coordinates, 4 rows of four motors, 6 motors.

    `calls` counts calls of the callbacks; by `wrong` the expression of the rods is off.
    """
    m, end = pin.Model(), [0]
    tree = [("yaw", "Z", 0, 1.0), ("a", "Y", 1, 0.2), ("b", "Y", 1, 0.2), ("roll", "X", 1, 0.5),
            ("pitch", "Y", 4, 3.0), ("knee", "Y", 5, 2.0), ("c", "Y", 6, 0.2), ("d", "Y", 6, 0.2),
            ("tilt", "Y", 6, 0.1), ("foot", "X", 9, 0.5)]  # fmt: skip
    for name, axis, parent, mass in tree:
        place = zoo.at(0.02 * parent, 0.0, -0.3 if name in ("knee", "tilt") else -0.03)
        joint = getattr(pin, f"JointModelR{axis}")()
        inertia = pin.Inertia(mass, np.array([0.01, 0.0, -0.1]), 0.01 * mass * np.eye(3))
        end.append(zoo.add_body(m, end[parent], joint, place, name, inertia))
    at, found = {name: i for i, (name, *_) in enumerate(tree)}, []
    made = [("hip", differential, ("a", "b", "roll", "pitch"), 0.0),
            ("ankle", push_rods, ("c", "d", "tilt", "foot"), wrong)]  # fmt: skip
    for name, make, joints, off in made:
        by_numpy = make(joints, at, np.sin, np.cos, np.tan)

        def phi(q, by_numpy=by_numpy, name=name):
            if calls is not None:
                calls.append(name)
            return by_numpy(q)

        def casadi(q, make=make, joints=joints, off=off):
            import casadi as ca

            return ca.vertcat(*make(joints, at, ca.sin, ca.cos, ca.tan)(q)) + off * q[0]

        given = {"casadi": casadi} if expressed else {}
        found.append(hc.Custom(phi, rows=2, name=name, **given))
    return hc.Mechanism(m, found, ["yaw", "a", "b", "knee", "c", "d"], name="leg")


def leg_states(mech, count=10):
    rng = np.random.default_rng(2)
    for _ in range(count):
        guess, speed = 0.3 * rng.normal(size=(2, mech.nv))
        yield hc.assemble(mech, guess, 20.0 * speed)


def test_rows_by_an_expression_are_those_of_the_callbacks():
    pytest.importorskip("casadi")
    expressed, plain = leg(), leg(expressed=False)
    fast = 0.0
    for q, v in leg_states(plain):
        a, b = rows(expressed, q + 0.1, v), rows(plain, q + 0.1, v)  # off the manifold
        for what in ("error", "rate", "jacobian", "drift"):
            off = np.abs(getattr(a, what) - getattr(b, what)).max()
            assert off < 1e-9 * (1.0 + np.abs(getattr(b, what)).max()), what
        fast = max(fast, np.abs(b.drift).max())
    assert fast > 1.0


def test_an_expression_serves_in_ticks_and_simulations_without_a_call_of_phi():
    """At 5 ms for a tick, a second of tracking took three minutes."""
    pytest.importorskip("casadi")
    calls = []
    mech, plain = leg(calls=calls), leg(expressed=False)
    home, _ = hc.assemble(mech)
    part = hc.partition(mech, home)
    controller = hc.ComputedTorque(mech, 100.0, 20.0, partition=part)
    oracle = hc.ComputedTorque(plain, 100.0, 20.0, partition=hc.partition(plain, home))
    zero, goal = np.zeros(mech.nu), mech.motor_positions(home)
    for i, (q, v) in enumerate(leg_states(mech)):
        if i:
            calls.clear()
        u = controller.torque(q, v, goal, zero, zero)
        assert not (i and calls), "the callbacks were asked"
        assert relative(u, oracle.torque(q, v, goal, zero, zero)) < 1e-9
        by_general_path = hc.inverse_dynamics(mech, q, v, zero, partition=part)
        assert by_general_path.certificate.ok
    forward = hc.PreparedForwardDynamics(mech, part)
    a = forward.acceleration(q, v, np.zeros(mech.nv))
    slow = hc.forward_dynamics(plain, q, v, np.zeros(mech.nv))
    assert relative(a, slow.a) < 1e-9
    calls.clear()
    run = hc.simulate(mech, lambda t, q, v: controller.torque(q, v, goal, zero, zero), q, v, 0.1)
    assert len(calls) < 200  # where it starts and ends; by differences it was some 300,000
    assert run.closure.max() < 1e-8


def test_without_casadi_the_callbacks_serve(monkeypatch):
    plain = leg(expressed=False)
    monkeypatch.setitem(sys.modules, "casadi", None)
    calls = []
    without_casadi = leg(calls=calls)
    q, v = next(leg_states(plain))
    calls.clear()
    a, b = rows(without_casadi, q, v), rows(plain, q, v)
    assert calls
    assert (a.jacobian == b.jacobian).all()
    assert (a.drift == b.drift).all()


def sine_expression(q):
    import casadi as ca

    return q[1] - 2.0 * ca.sin(q[0])


def with_sine():
    gear = hc.Custom(zoo.sine, casadi=sine_expression)
    return hc.Mechanism(mechanism("sine_gear").model, [gear], ["shoulder"])


def sine_drift_at(q, v):
    return np.array(zoo.sine_drift(np.array(q), np.array(v)))


def test_an_expression_survives_pickles_and_copies():
    pytest.importorskip("casadi")
    mech = with_sine()
    q, v = closed_states("sine_gear")[0]
    twins = [pickle.loads(pickle.dumps(mech)), copy.copy(mech), copy.deepcopy(mech),
             dataclasses.replace(mech, name="twin")]  # fmt: skip
    for twin in twins:
        assert (rows(twin, q, v).drift == rows(mech, q, v).drift).all()
        assert relative(rows(twin, q, v).drift, sine_drift_at(q, v)) < 1e-14
    before = rows(mech, q, v)
    kept = before.jacobian.copy()
    rows(mech, q + 0.3, v)
    assert (before.jacobian == kept).all(), "a result changed behind the caller's back"


def test_an_expression_serves_several_threads():
    pytest.importorskip("casadi")
    mech = leg()
    part = hc.partition(mech, hc.assemble(mech)[0])
    controller = hc.ComputedTorque(mech, 100.0, 20.0, partition=part)
    zero, states = np.zeros(mech.nu), list(leg_states(mech))

    def torques(k):
        found = []
        for q, v in states[k:] + states[:k]:
            u = [controller.torque(q, v, zero, zero, zero) for _ in range(20)]
            assert all((x == u[0]).all() for x in u)
            found.append(np.concatenate([u[0], rows(mech, q, v).drift]))
        return np.roll(found, k, axis=0)

    with ThreadPoolExecutor(4) as crew:
        found = list(crew.map(torques, range(8)))
    for other in found:
        assert (other == torques(0)).all()


def all_kinds():
    """Free body, ball, plane, wheel without end, and a time that comes in."""
    m, parent = pin.Model(), 0
    joints = [pin.JointModelFreeFlyer(), pin.JointModelSpherical(), pin.JointModelPlanar(),
              pin.JointModelRUBY(), pin.JointModelPX()]  # fmt: skip
    for i, joint in enumerate(joints):
        parent = zoo.add_body(m, parent, joint, zoo.at(0.1, 0.2), f"j{i}", zoo.bar(0.3))
    return m


def mixed(q, t, sin, cos):
    return [
        q[0] * q[3] + q[6] * sin(t) + q[8] * q[9] - 0.1,
        q[11] * q[13] + q[14] ** 2 * q[15] - cos(2.0 * t) * q[16] + q[4] * q[5] * q[2],
    ]


def test_an_expression_is_differentiated_along_v_for_every_joint_and_in_time():
    ca = pytest.importorskip("casadi")
    m, rng = all_kinds(), np.random.default_rng(0)
    numbers = {"phi": lambda q, t: mixed(q, t, np.sin, np.cos), "rows": 2, "time": True}
    expression = {"casadi": lambda q, t: ca.vertcat(*mixed(q, t, ca.sin, ca.cos))}
    plain = hc.Mechanism(m, [hc.Custom(**numbers, name="mixed")])
    expressed = hc.Mechanism(m, [hc.Custom(**numbers, **expression, name="mixed")])
    for t in (0.0, 0.4, 3.0):
        q = pin.integrate(m, pin.neutral(m), rng.normal(size=m.nv))
        v = rng.normal(size=m.nv)
        a, b = rows(expressed, q, v, t), rows(plain, q, v, t)
        for what in ("error", "rate", "jacobian", "drift"):
            off = np.abs(getattr(a, what) - getattr(b, what)).max()
            assert off < 1e-9 * (1.0 + np.abs(getattr(b, what)).max()), (what, t)


@pytest.mark.parametrize(
    ("casadi", "words"),
    [
        (lambda ca, q: q[1] - 2.001 * ca.sin(q[0]), "is not its phi: its phi is off by"),
        (lambda ca, q: q[1] - 2.0 * ca.sin(q[0]) + 1e-7, "is not its phi"),
        (lambda ca, q: ca.if_else(q[0] > 9.0, q[1], q[0]), "is not its phi"),
        (lambda ca, q: q, "must return 1 entries"),
        (lambda ca, q: 1.0, "must return a casadi.SX; got float"),
        (lambda ca, q: q[17], "casadi of constraint 'sine' raised"),
        (lambda ca, q: q[1] - 2.0 * ca.sin(q[0]) + ca.SX.sym("x"), r"it has the symbols \[.x.\]"),
    ],
)
def test_an_expression_that_is_not_phi_is_refused(casadi, words):
    ca = pytest.importorskip("casadi")
    with pytest.raises(hc.InputError, match=f"casadi of constraint 'sine'.*{words}|{words}"):
        arm(hc.Custom(zoo.sine, casadi=lambda q: casadi(ca, q), name="sine"))


def test_a_small_row_of_an_expression_is_compared_by_its_own_size():
    ca = pytest.importorskip("casadi")

    def custom(factor):
        return hc.Custom(
            lambda q: [1e6 * q[0], 1e-6 * np.sin(q[1])], rows=2, name="two",
            casadi=lambda q: ca.vertcat(1e6 * q[0], factor * 1e-6 * ca.sin(q[1])),
        )  # fmt: skip

    arm(custom(1.0))
    with pytest.raises(hc.InputError, match=r"'two' is not its phi: .* in row 1"):
        arm(custom(1.0 + 1e-6))


def test_an_expression_that_leaves_phi_away_from_the_reference_is_told():
    """What is certified is compared with phi itself, wherever it is."""
    ca = pytest.importorskip("casadi")
    bent = hc.Custom(
        zoo.sine, casadi=lambda q: sine_expression(q) + ca.if_else(ca.fabs(q[0]) > 2.5, 1e-4, 0.0)
    )
    mech = hc.Mechanism(mechanism("sine_gear").model, [bent], ["shoulder"])
    part = hc.partition(mech, hc.assemble(mech)[0])
    hc.inverse_dynamics(mech, [0.1, 2.0 * np.sin(0.1)], np.zeros(2), [1.0], partition=part)
    with pytest.raises(hc.InputError, match="casadi of constraint 'sine' is not its phi"):
        hc.inverse_dynamics(mech, [2.6, 2.0 * np.sin(2.6)], np.zeros(2), [1.0], partition=part)


def test_where_an_expression_is_not_finite_the_callbacks_serve():
    """sin(x) / x, which numpy.sinc knows at zero."""
    ca = pytest.importorskip("casadi")

    def phi(q):
        return [q[1] - np.sinc(q[0] / np.pi)]

    model = mechanism("sine_gear").model
    both, plain = (
        hc.Mechanism(model, [hc.Custom(phi, name="sinc", casadi=casadi)], ["shoulder"])
        for casadi in (lambda q: q[1] - ca.sin(q[0]) / q[0], None)
    )
    part, at_zero, v = hc.partition(plain, [0.0, 1.0]), np.array([0.0, 1.0]), np.array([2.0, 0.0])
    a, b = rows(both, at_zero, v), rows(plain, at_zero, v)
    assert (a.jacobian == b.jacobian).all()
    part = hc.partition(both, at_zero)
    tick = hc.PreparedInverseDynamics(both, part).torque(at_zero, v, [1.0])
    u = hc.inverse_dynamics(plain, at_zero, v, [1.0]).u
    assert relative(tick, u) < 1e-12
