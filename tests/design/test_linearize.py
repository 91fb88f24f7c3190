"""Linear models: against differences of the reduced nonlinear dynamics, SymPy and closed forms."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from all_forces import AT_T, forced
from overconstrained import OVERCONSTRAINED, drawn, meant
from reduced import RESOLVED, Reduced
from shared_robots import SHARED_ROBOT_NAMES, shared_robot
from support import closed_states, few, mechanism, stretched
from zoo import ZOO, add_body, at, bar, four_bar, lump, triangle, vertical

import holoctl as hc
from holoctl.design.linear import linearize as of_linear_models
from holoctl.design.linear import minimal_coordinates as of_motions

TOLERANCE = 1e-8
DERIVATIVES = ["forward_dynamics", "forward_dynamics_derivatives", "terms"]
TURNING = [name for name in ZOO if ZOO[name]().nq != ZOO[name]().nv]
"""With joints whose steps do not add up."""

NEAR_SINGULAR = {("welded_arms", 1)}
"""States, condition numbers 1e4 and more, that the oracle resolves to 3e-8 only."""


def blocks(X, n):
    """A by rows (y, yd) and columns: each is judged by its own size."""
    return {"A11": X[:n, :n], "A12": X[:n, n:], "A21": X[n:, :n], "A22": X[n:, n:]}


def off(found, expected):
    return np.abs(found - expected).max(initial=0.0) / max(1.0, np.abs(expected).max(initial=0.0))


def check(mech, q, v, t=0.0, along="fixed", h=0.02, part=None):
    """A, B and rate are those of the reduced dynamics."""
    part = part or hc.partition(mech, q, t=t)
    u = np.random.default_rng(0).normal(size=mech.nu)
    lin = hc.linearize(mech, q, v, u, t=t, partition=part, along=along)
    assert off(lin.q, q) < 1e-6
    assert off(lin.v, v) < 1e-6
    reduced = Reduced(mech, part, lin.q, lin.v, t, along)
    A, B, unresolved = reduced.derivatives(u, h=h)
    assert unresolved < 2 * RESOLVED  # else this compares with noise
    n = part.independent.size
    expected = blocks(A, n)
    for name, block in blocks(lin.A, n).items():
        assert off(block, expected[name]) < TOLERANCE, name
    assert off(lin.B, B) < TOLERANCE
    assert off(lin.rate, reduced.f(reduced.point, u)) < TOLERANCE
    assert lin.gamma @ lin.v[part.independent] == pytest.approx(
        lin.v - hc.project(mech, lin.q, lin.v, "split", partition=part, t=t).v_t, abs=1e-9
    )
    return lin


def states(name, t=0.0):
    """Two closed states of the zoo, closed at this very time."""
    mech = mechanism(name)
    return [hc.assemble(mech, q, v, t=t, restarts=0) for q, v in closed_states(name, count=3)[:2]]


def near(mech, seed=0):
    """A closed and moving state of a robot near its reference."""
    rng = np.random.default_rng(seed)
    q, _ = hc.assemble(mech)
    for _ in range(20):
        guess = pin.integrate(mech.model, q, 0.15 * rng.normal(size=mech.nv))
        try:
            return hc.assemble(mech, guess, rng.normal(size=mech.nv), restarts=0)
        except hc.AssemblyError:
            continue
    raise AssertionError(f"{mech.name}: nothing closes near the reference")


# ------------------------------------------------------------------ the reduced nonlinear dynamics


@pytest.mark.parametrize("name", few(ZOO))
def test_linear_models_are_derivatives_of_the_reduced_dynamics(name):
    lin = check(mechanism(name), *states(name)[0])
    n = len(lin.states) // 2
    assert np.abs(lin.A[n:, :n]).max() > 0.05
    assert np.abs(lin.A[n:, n:]).max() > 1e-3 or name == "third_bar"  # which has no quadratic term
    assert np.abs(lin.B).max(initial=0.0) > 1e-3 or not lin.inputs
    assert np.abs(lin.v).max() > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("i", [0, 1])
@pytest.mark.parametrize("name", ZOO)
def test_at_rest_and_at_speed(name, i):
    if (name, i) in NEAR_SINGULAR:
        pytest.skip("the oracle does not resolve it")
    mech, (q, v) = mechanism(name), states(name)[i]
    for speed in (0.0, 1.0, 5.0):
        _, moving = hc.assemble(mech, q, speed * v, restarts=0)
        for along in ("fixed", "motion"):
            check(mech, q, moving, along=along)


@pytest.mark.parametrize("name", few(TURNING, ["floating_leg"]))
def test_about_a_reference_that_moves_on(name):
    mech, (q, v) = mechanism(name), states(name)[0]
    moving = check(mech, q, v, along="motion")
    fixed = hc.linearize(mech, q, v, along="fixed")
    n = len(fixed.states) // 2
    assert moving.A[:n, :n] == pytest.approx(2.0 * fixed.A[:n, :n], abs=1e-12)
    assert moving.rate[:n] == pytest.approx(np.zeros(n), abs=0.0)
    assert fixed.rate[:n] == pytest.approx(fixed.v[fixed.partition.independent], abs=0.0)
    if name == "floating_leg":
        assert np.abs(moving.A[:n, :n]).max() > 0.5  # zero there is wrong by order one


@pytest.mark.parametrize("speed", [0.0, 1.0])
@pytest.mark.parametrize("name", few(ZOO, ["four_bar", "geared_slider", "standing_leg"]))
def test_with_every_force(name, speed):
    mech = forced(name)
    q, v = hc.assemble(mech, *closed_states(name, count=3)[0], t=AT_T, restarts=0)
    _, v = hc.assemble(mech, q, speed * v, t=AT_T, restarts=0)
    check(mech, q, v, t=AT_T, h=0.01)
    without = hc.linearize(mechanism(name), q, v, t=AT_T)
    lin = hc.linearize(mech, q, v, t=AT_T)
    assert off(lin.A, without.A) > 1e-2


@pytest.mark.parametrize("speed", [0.0, 5e-4, 3e-3, 0.05, 1.0])
def test_friction_that_sets_in_within_a_small_rate(speed):
    """At rest it is viscous friction of coulomb / transition; moving, that of its slope there."""
    base, coulomb, transition = mechanism("five_bar"), 0.5, 1e-3
    q, v = hc.assemble(base, v_guess=speed * np.array([1.0, 0.5, -0.7, 0.2]))
    lin = hc.linearize(
        base.with_forces([hc.JointFriction(0.0, coulomb, transition=transition)]), q, v
    )
    slope = coulomb / transition / np.cosh(v / transition) ** 2
    rest = coulomb * np.tanh(v / transition) - slope * v
    same = base.with_forces([
        hc.JointFriction(dict(zip(base.coordinate_names, slope, strict=True))),
        hc.CustomForce(lambda q, v, t: -rest),
    ])  # fmt: skip
    expected = hc.linearize(same, q, v)
    assert off(lin.A, expected.A) < 1e-9
    assert off(lin.rate, expected.rate) < 1e-9
    if speed < 1e-3:
        assert np.abs(lin.A).max() > 1e3


@pytest.mark.parametrize("t", few([0.0, AT_T], [AT_T]))
def test_constraints_that_depend_on_time(t):
    mech = mechanism("timed_arm")
    for q, v in states("timed_arm", t):
        lin = check(mech, q, v, t=t)
        assert lin.t == t
        assert np.abs(hc.terms(mech, lin.q, lin.v, t=t).rate).max() < 1e-12
    if t:
        slowest = hc.linearize(mech, q, t=t)  # the bench moves, so the arm does
        assert np.abs(slowest.v).max() > 1e-3
        assert not slowest.at_equilibrium


@pytest.mark.slow
@pytest.mark.parametrize("name", hc.robot_names())
def test_robots(name):
    mech = hc.load(hc.robot_file(name))
    q, v = near(mech)
    for along in ("fixed", "motion"):
        check(mech, q, v, along=along)
    check(mech, q, 0.0 * v)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED_ROBOT_NAMES)
def test_shared_robots(name):
    mech = hc.load(shared_robot(name))
    q, v = near(mech)
    check(mech, q, v)
    check(mech, q, 0.0 * v)


@pytest.mark.parametrize("name", few(OVERCONSTRAINED, ["bennett"]))
def test_rounded_geometry(name):
    """Rows left out stay open by rounding; what is kept is linearised as ever."""
    _, exact = drawn(name)
    if not exact.nv - hc.partition(exact, hc.assemble(exact)[0]).rank:
        pytest.skip("it does not move")
    mech = meant(exact, 1e-6, 0)
    q, v = hc.assemble(mech, v_guess=np.random.default_rng(1).normal(size=mech.nv))
    part = hc.partition(mech, q)
    if name == "bennett":
        assert part.tolerance > 0.0
    if part.condition < 1e3:
        check(mech, q, v, part=part)


@pytest.mark.parametrize("independent", [["plate[2]"], ["plate[4]"]])
def test_other_independent_coordinates(independent):
    mech, (q, v) = mechanism("hung_plate"), states("hung_plate")[0]
    check(mech, q, v, along="motion", part=hc.partition(mech, q, independent=independent))


def test_joints_of_every_type():
    """A free-flyer, a ball, a composite, a continuous and a planar joint, closed by a rod."""
    rng, model, parent = np.random.default_rng(5), pin.Model(), 0
    wrist = pin.JointModelComposite()
    for part in (pin.JointModelRX(), pin.JointModelPY()):
        wrist.addJoint(part)
    kinds = {
        "base": pin.JointModelFreeFlyer(), "ball": pin.JointModelSpherical(), "wrist": wrist,
        "wheel": pin.JointModelRUBZ(), "sled": pin.JointModelPlanar(),
    }  # fmt: skip
    for name, joint in kinds.items():
        parent = add_body(model, parent, joint, at(0.2, 0.1), name, lump(rng))
    rod = hc.Rod(("universe", at(0.3, 1.0)), ("sled", at(0.1)))
    mech = hc.Mechanism(model, [rod], ["wheel"], name="one_of_each")
    q, v = hc.assemble(mech, v_guess=rng.normal(size=mech.nv))
    lin = check(mech, q, v, along="motion")
    assert len(lin.states) == 2 * (model.nv - 1)


def test_what_depends_on_the_way_is_needed(monkeypatch):
    """Without D, and without the bracket in it, models at speed are wrong by percent."""
    mech, (q, v) = mechanism("standing_leg"), states("standing_leg")[0]
    part = hc.partition(mech, q)
    right = hc.linearize(mech, q, v, partition=part).A
    with monkeypatch.context() as patch:
        patch.setattr(of_motions, "adjoint_velocity", lambda model, v: np.zeros((v.size, v.size)))
        no_bracket = hc.linearize(mech, q, v, partition=part).A
    with monkeypatch.context() as patch:
        motions = of_linear_models.minimal_coordinates

        def still(*given):
            found = motions(*given)
            return of_motions.MinimalCoordinates(found.gamma, 0.0 * found.change, found.turning)

        patch.setattr(of_linear_models, "minimal_coordinates", still)
        no_change = hc.linearize(mech, q, v, partition=part).A
    n = part.independent.size
    assert off(no_bracket[n:, :n], right[n:, :n]) > 0.02
    assert off(no_change[n:, :n], right[n:, :n]) > 0.02


@pytest.mark.parametrize("t_stab", [0.1, 1e-2, 1e-3, 1e-4])
def test_stabilised_constraints(t_stab):
    """Along closed motions stabilisation has nothing to say, however hard it is."""
    base, (q, v) = mechanism("five_bar"), states("five_bar")[0]
    loops = [dataclasses.replace(c, t_stab=t_stab) for c in base.constraints]
    found = hc.linearize(dataclasses.replace(base, constraints=loops), q, v)
    assert off(found.A, hc.linearize(base, q, v).A) < 1e-10


# --------------------------------------------------------------------------------- compiled: exact


COMPILED = ["four_bar", "five_bar", "floating_leg", "hung_plate", "geared_slider"]


@pytest.mark.parametrize("name", few(COMPILED, ["four_bar"]))
def test_compiled_derivatives(name):
    mech = forced(name) if name in ("five_bar", "geared_slider") else mechanism(name)
    code = hc.compile(mech, DERIVATIVES)
    q, v = states(name)[0]
    u = np.random.default_rng(0).normal(size=mech.nu)
    for speed in (0.0, 1.0):
        given = (q, speed * v, u, ["motors", "d motors"])
        exact, found = hc.linearize(code, *given), hc.linearize(mech, *given)
        assert exact.mech is mech
        for what in ("A", "B", "C", "D", "rate"):
            assert off(getattr(found, what), getattr(exact, what)) < 1e-9, what


@pytest.mark.slow
def test_compiled_without_derivatives():
    mech = mechanism("four_bar")
    with pytest.raises(hc.InputError, match=r"derivatives.*got 'forward_dynamics'"):
        hc.linearize(hc.compile(mech, ["forward_dynamics"]), states("four_bar")[0][0])


@pytest.mark.slow
def test_compiled_stewart():
    mech = hc.load(hc.robot_file("stewart"))
    code, (q, v) = hc.compile(mech, DERIVATIVES), near(mech)
    exact, found = hc.linearize(code, q, v), hc.linearize(mech, q, v, partition=code.partition)
    assert off(found.A, exact.A) < 1e-9
    assert off(found.B, exact.B) < 1e-9


# ------------------------------------------------------------------------------- other people's


def kane():
    """SymPy's equations of the four-bar of the zoo, with dependent coordinates and speeds."""
    sm = pytest.importorskip("sympy")
    import sympy.physics.mechanics as me

    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    torque = me.dynamicsymbols("T")
    N, origin = me.ReferenceFrame("N"), me.Point("O")
    foot = origin.locatenew("G", N.x / 2)
    for fixed in (origin, foot):
        fixed.set_vel(N, 0)
    lengths, masses = (
        (sm.Rational(1, 5), sm.Rational(1, 2), sm.Rational(2, 5)),
        (1, 2, sm.Rational(3, 2)),
    )
    turned, turning = (q[0], q[0] + q[1], q[2]), (u[0], u[0] + u[1], u[2])
    bodies, loads, ends = [], [], []
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        frame = N.orientnew(f"F{i}", "Axis", [turned[i], N.z])
        frame.set_ang_vel(N, turning[i] * N.z)
        start = ends[0] if i == 1 else (origin, None, foot)[i]
        centre = start.locatenew(f"C{i}", length / 2 * frame.x)
        end = start.locatenew(f"E{i}", length * frame.x)
        for point in (centre, end):
            point.v2pt_theory(start, N, frame)
        inertia = (me.inertia(frame, 0, 0, mass * length**2 / 12), centre)
        bodies.append(me.RigidBody(f"B{i}", centre, frame, mass, inertia))
        loads.append((centre, -sm.Rational(981, 100) * mass * N.y))
        ends.append(end)
    loads.append((bodies[0].frame, torque * N.z))
    loop = ends[1].pos_from(origin) - ends[2].pos_from(origin)
    opening = ends[1].vel(N) - ends[2].vel(N)
    method = me.KanesMethod(
        N, q_ind=q[:1], q_dependent=q[1:], u_ind=u[:1], u_dependent=u[1:],
        kd_eqs=[b - a.diff() for a, b in zip(q, u, strict=True)],
        configuration_constraints=[loop.dot(N.x), loop.dot(N.y)],
        velocity_constraints=[opening.dot(N.x), opening.dot(N.y)],
    )  # fmt: skip
    method.kanes_equations(bodies, loads)
    return method, q, u, torque, sm.Symbol("t")


@pytest.mark.parametrize("speed", few([0.0, 2.0], [2.0]))
def test_sympy_linearises_a_four_bar_alike(speed):
    method, q, u, torque, t = kane()
    mech = four_bar()
    at_q, at_v = hc.assemble(mech, v_guess=[speed, 0.0, 0.0])
    a = hc.forward_dynamics(mech, at_q, at_v, mech.B @ [0.7]).a
    point = {torque: 0.7}
    for i in range(3):
        point |= {q[i]: at_q[i], q[i].diff(t): at_v[i], u[i]: at_v[i], u[i].diff(t): a[i]}
    A, B, inputs = method.linearize(op_point=point, A_and_B=True)
    lin = hc.linearize(mech, at_q, at_v, [0.7])
    assert list(inputs) == [torque]
    assert off(lin.A, np.array(A, dtype=float)) < 1e-10
    assert off(lin.B, np.array(B, dtype=float)) < 1e-10
    assert abs(lin.A[1, 0]) > 50.0


def riding_beam(m, carriage, k, length, gravity):
    """A beam whose ends ride on two spring-held carriages, 2 `length` apart, by closures."""
    inertia = m * (2 * length) ** 2 / 12
    model = vertical(pin.Model()) if gravity else pin.Model()
    if not gravity:
        model.gravity = pin.Motion.Zero()
    add_body(
        model, 0, pin.JointModelPY(), at(), "bounce", pin.Inertia(0.0, np.zeros(3), 0.0 * np.eye(3))
    )
    add_body(
        model,
        "bounce",
        pin.JointModelRZ(),
        at(),
        "pitch",
        pin.Inertia(m, np.zeros(3), inertia * np.eye(3)),
    )
    loops, springs = [], []
    rest = (m + 2 * carriage) * 9.81 / (2 * k) if gravity else 0.0
    for name, x in (("left", -length), ("right", length)):
        add_body(
            model, 0, pin.JointModelPY(), at(x), name, pin.Inertia(carriage, np.zeros(3), np.eye(3))
        )
        loops.append(hc.Closure((name, at()), ("pitch", at(x)), axes="y", name=f"{name}_end"))
        springs.append(hc.JointSpring(name, k, rest))
    return hc.Mechanism(model, loops, [], forces=springs, name="beam"), inertia


@pytest.mark.parametrize("gravity", [False, True])
def test_frequencies_of_a_beam_on_springs(gravity):
    m, carriage, k, length = 3.0, 0.4, 120.0, 0.7
    mech, inertia = riding_beam(m, carriage, k, length, gravity)
    for independent in (["bounce", "pitch"], ["left", "right"]):
        part = hc.partition(mech, np.zeros(4), independent=independent)
        lin = hc.linearize(mech, np.zeros(4), partition=part)
        assert lin.at_equilibrium
        bounce = np.sqrt(2 * k / (m + 2 * carriage))
        pitch = np.sqrt(2 * k * length**2 / (inertia + 2 * carriage * length**2))
        found = lin.modes()
        assert [x.frequency for x in found] == pytest.approx(sorted([bounce, pitch]), rel=1e-10)
        assert [x.damping for x in found] == pytest.approx([0.0, 0.0], abs=1e-10)
        assert "not damped" in found[0].sentence


def test_damping_of_a_hanging_parallelogram():
    """Two bars and a coupler that hangs level; friction in all four hinges, one of them cut."""
    m, M, length, d = 0.8, 2.5, 0.3, 0.05
    model = vertical(pin.Model())
    add_body(model, 0, pin.JointModelRZ(), at(), "one", bar(length, m))
    add_body(model, "one", pin.JointModelRZ(), at(length), "coupler", bar(0.5, M))
    add_body(model, 0, pin.JointModelRZ(), at(0.5), "other", bar(length, m))
    loop = hc.Closure(("coupler", at(0.5)), ("other", at(length)), joint="revolute", name="cut")
    friction = hc.JointFriction(dict.fromkeys(["one", "coupler", "other", "cut"], d))
    q = np.array([-np.pi / 2, np.pi / 2, -np.pi / 2])
    mech = hc.Mechanism(model, [loop], ["one"], reference=q, forces=[friction])
    lin = hc.linearize(mech, q)
    assert lin.at_equilibrium
    inertia = (2 * m / 3 + M) * length**2
    w = np.sqrt((m + M) * 9.81 * length / inertia)
    (mode,) = lin.modes()
    assert mode.frequency == pytest.approx(w, rel=1e-10)
    assert mode.damping == pytest.approx(4 * d / (2 * w * inertia), rel=1e-10)
    assert lin.B[:, 0] * inertia == pytest.approx([0.0, 1.0], rel=1e-10)


# --------------------------------------------------------------------------------------- the door


def test_the_state_is_put_back_on_its_branch():
    mech, (q, v) = mechanism("floating_leg"), states("floating_leg")[0]
    part = hc.partition(mech, q)
    away = pin.integrate(mech.model, q, 2e-7 * np.ones(mech.nv))
    lin = hc.linearize(mech, away, v + 1e-8, partition=part)
    found = hc.terms(mech, lin.q, lin.v)
    assert np.abs(found.error).max() < 1e-12
    assert np.abs(found.rate).max() < 1e-12
    assert np.abs(pin.difference(mech.model, q, lin.q)).max() < 1e-6
    assert lin.gamma == pytest.approx(
        hc.project(mech, lin.q, lin.v, "split", partition=part).gamma, abs=1e-12
    )


def test_what_has_no_motion_motor_or_constraint():
    rigid = hc.linearize(triangle(), hc.assemble(triangle())[0])
    assert rigid.A.shape == (0, 0)
    assert rigid.B.shape == (0, 1)
    assert rigid.modes() == ()
    assert rigid.at_equilibrium
    free = hc.linearize(hc.Mechanism(four_bar().model, [], []), [0.1, 0.2, 0.3], [1.0, 0.0, 0.5])
    assert free.A.shape == (6, 6)
    assert free.B.shape == (6, 0)
    assert free.gamma == pytest.approx(np.eye(3), abs=0.0)
    assert free.discretized(0.01).B.shape == (6, 0)


def test_refusals():
    mech, (q, v) = mechanism("five_bar"), states("five_bar")[0]
    part, away = hc.partition(mech, q), np.array([0.0, 1e-3, 0.0, 0.0])
    for given, error, words in [
        ((mech, q + away), hc.InconsistentError, "not closed|open"),
        ((mech, q, v + away), hc.InconsistentError, "the velocity error of v is"),
        ((mech, q, [np.nan, 0, 0, 0]), hc.InputError, "finite"),
        ((mech, [np.inf, 0, 0, 0]), hc.InputError, "finite"),
        ((mech, q, v, [np.nan, 0.0]), hc.InputError, "finite"),
        ((mech, q[:3]), hc.InputError, "shape"),
        ((mech, q, v[:2]), hc.InputError, "shape"),
        ((mech, q, v, [1.0]), hc.InputError, "shape"),
        ((mech, q, v, None, None, "now"), hc.InputError, "number"),
        ((mech.model, q), hc.InputError, "Mechanism"),
    ]:
        with pytest.raises(error, match=words):
            hc.linearize(*given)
    for options, words in [
        ({"along": "moving"}, "'fixed'.*'motion'|along"),
        ({"partition": hc.partition(mechanism("four_bar"), states("four_bar")[0][0])}, "partition"),
        ({"partition": 3}, "partition|Partition"),
    ]:
        with pytest.raises(hc.InputError, match=words):
            hc.linearize(mech, q, v, **options)
    with pytest.raises(hc.InconsistentError, match="closure error of q"):
        hc.linearize(mech, q + away, partition=part)


def test_singular_configurations():
    mech = mechanism("five_bar")
    part = hc.partition(mech, states("five_bar")[0][0])
    for s in (0.0, 1e-9, 1e-7):
        for options in ({}, {"partition": part}):
            with pytest.raises(hc.SingularityError):
                hc.linearize(mech, stretched(s), **options)


def test_a_partition_that_leaves_out_what_counts():
    mech, (q, v) = mechanism("five_bar_revolute"), states("five_bar_revolute")[0]
    part = hc.partition(mech, q)
    fewer = dataclasses.replace(
        part, rank=1, rows=part.rows[:1], independent=np.array([0, 1, 2]), dependent=np.array([3])
    )
    with pytest.raises(hc.InputError, match=r"open tip\..*leaves out rows that are independent"):
        hc.linearize(mech, q, v, partition=fewer)


def test_a_coordinate_called_as_a_rate():
    model = pin.Model()
    for name in ("x", "d x"):
        add_body(model, 0, pin.JointModelRZ(), at(), name, bar(0.2))
    mech = hc.Mechanism(model, [], [])
    with pytest.raises(hc.InputError, match="has the name of the rate"):
        hc.linearize(mech, [0.0, 0.0])
