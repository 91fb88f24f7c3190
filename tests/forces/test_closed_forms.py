"""Forces against closed forms, and against Pinocchio's external forces."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from zoo import at, bar

import holoctl as hc

INERTIA, LENGTH = 0.3, 0.4


def pendulum(gravity=0.0, forces=()):
    """A point mass on an arm, about a horizontal axis; at zero it hangs."""
    model = pin.Model()
    model.gravity.linear = np.array([0.0, 0.0, -gravity])
    joint = model.addJoint(0, pin.JointModelRY(), at(), "hinge")
    mass = INERTIA / LENGTH**2
    body = pin.Inertia(mass, np.array([0.0, 0.0, -LENGTH]), np.zeros((3, 3)))
    model.appendBodyToJoint(joint, body, at())
    return hc.Mechanism(model, forces=forces, actuated=["hinge"])


def acceleration(mech, q, v):
    return hc.forward_dynamics(mech, [q], [v], [0.0]).a[0]


def moved(mech, q0, v0, duration):
    run = hc.simulate(
        mech,
        lambda t, q, v: np.zeros(mech.nu),
        q0,
        v0,
        duration,
        frequency=100.0,
        integrator=hc.Integrator(rtol=1e-11, atol=1e-13),
    )
    return run.t, run.q, run.v


def test_a_damped_pendulum():
    d, g = 0.7, 9.81
    mech = pendulum(g, [hc.JointFriction(viscous=d)])
    for q, v in ((0.3, -1.2), (2.0, 4.0), (-1.0, 0.0)):
        mass = INERTIA / LENGTH**2
        expected = (-d * v - mass * g * LENGTH * np.sin(q)) / INERTIA
        assert acceleration(mech, q, v) == pytest.approx(expected, rel=1e-12)


def test_a_damped_oscillation_in_time():
    d, k, rest = 0.25, 6.0, 0.4
    mech = pendulum(0.0, [hc.JointSpring("hinge", k, rest, damping=d)])
    t, q, _ = moved(mech, [1.1], [0.5], 3.0)
    s, w = -d / (2 * INERTIA), np.sqrt(k / INERTIA - (d / (2 * INERTIA)) ** 2)
    a, b = 1.1 - rest, (0.5 - s * (1.1 - rest)) / w
    expected = rest + np.exp(s * t) * (a * np.cos(w * t) + b * np.sin(w * t))
    assert np.abs(q[:, 0] - expected).max() < 1e-9
    assert np.abs(np.diff(np.sign(q[:, 0] - rest))).max() > 0  # it swings


def test_smoothed_coulomb_friction_in_time():
    """``sinh(w / tr)`` decays exponentially: I w' = -c tanh(w / tr)."""
    c, transition = 0.6, 0.8
    mech = pendulum(0.0, [hc.JointFriction(coulomb=c, transition=transition)])
    t, _, v = moved(mech, [0.0], [3.0], 3.0)
    decay = np.sinh(3.0 / transition) * np.exp(-c * t / (INERTIA * transition))
    assert np.abs(v[:, 0] - transition * np.arcsinh(decay)).max() < 1e-9
    slope = acceleration(mech, 0.0, 50.0)
    assert slope == pytest.approx(-c / INERTIA, rel=1e-12)  # far from the step: Coulomb's own


def test_stribeck():
    c, peak, speed, transition = 0.5, 0.9, 0.3, 1e-3
    mech = pendulum(0.0, [hc.JointFriction(0.1, c, (peak, speed), transition)])
    for v in (0.02, 0.3, -0.3, 1.0, -5.0):
        size = c + (peak - c) * np.exp(-((v / speed) ** 2))
        expected = -0.1 * v - size * np.tanh(v / transition)
        assert acceleration(mech, 0.0, v) * INERTIA == pytest.approx(expected, rel=1e-12)
    start = acceleration(mech, 0.0, 10 * transition) * INERTIA
    assert abs(start) == pytest.approx(peak, rel=2e-3)


def test_a_spring_pendulum():
    """A mass on a slide that turns: spring, centrifugal and gravity, in closed form."""
    model = pin.Model()
    turn = model.addJoint(0, pin.JointModelRY(), at(), "turn")
    slide = model.addJoint(turn, pin.JointModelPZ(), at(), "slide")
    m, k, length, d = 1.3, 80.0, 0.5, 2.0
    model.appendBodyToJoint(slide, pin.Inertia(m, np.zeros(3), np.zeros((3, 3))), at())
    spring = hc.Spring("universe", "slide", k, length, damping=d)
    mech = hc.Mechanism(model, forces=[spring], reference=[0.1, -0.6])
    for q, v in (([0.3, -0.6], [1.0, 0.5]), ([1.2, -0.45], [-2.0, -1.0])):
        r, rdot, w = -q[1], -v[1], v[0]
        rddot = r * w**2 + 9.81 * np.cos(q[0]) - (k * (r - length) + d * rdot) / m
        wdot = (-2.0 * rdot * w - 9.81 * np.sin(q[0])) / r
        a = hc.forward_dynamics(mech, q, v, [0.0, 0.0]).a
        assert a == pytest.approx([wdot, -rddot], rel=1e-12)
        stored = 0.5 * k * (r - length) ** 2
        assert hc.energy(mech, q, v).springs == pytest.approx(stored, rel=1e-12)


def arms():
    """Two arms of balls and hinges, and points on them."""
    model = pin.Model()
    rng = np.random.default_rng(5)
    for side in ("left", "right"):
        parent = 0
        for i, joint in enumerate((pin.JointModelSpherical(), pin.JointModelRX())):
            X = pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
            parent = model.addJoint(parent, joint, X, f"{side}_{i}")
            model.appendBodyToJoint(parent, bar(0.4), at())
    return model


def test_a_spring_is_a_pair_of_opposite_forces():
    """Against external forces at its ends, as Pinocchio applies them."""
    model = arms()
    one, two = ("left_1", at(0.1, 0.2, -0.1)), ("right_1", at(-0.3, 0.1, 0.2))
    k, length, d = 40.0, 0.7, 3.0
    free = hc.Mechanism(model)
    mech = hc.Mechanism(model, forces=[hc.Spring(one, two, k, length, damping=d)])
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v, tau = (
            pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq)),
            *(rng.normal(size=(2, model.nv))),
        )
        data = model.createData()
        pin.forwardKinematics(model, data, q, v)
        p, u = [], []
        for name, X in (one, two):
            j = model.getJointId(name)
            p.append(data.oMi[j].act(X.translation))
            frame = pin.SE3(data.oMi[j].rotation.T, np.zeros(3)).inverse()
            u.append(frame.rotation @ X.inverse().act(data.v[j]).linear)
        line = p[1] - p[0]
        L, n = np.linalg.norm(line), line / np.linalg.norm(line)
        pull = (k * (L - length) + d * n @ (u[1] - u[0])) * n
        nothing = np.zeros(3)
        named = free.with_model(_with_frames(model, {"one": one, "two": two}))
        loads = {"one": (pull, nothing), "two": (-pull, nothing)}
        a = hc.forward_dynamics(named, q, v, tau, f_ext=loads).a
        assert hc.forward_dynamics(mech, q, v, tau).a == pytest.approx(a, rel=1e-11, abs=1e-11)
        assert np.linalg.norm(pull) > 1.0


def _with_frames(model, frames):
    model = model.copy()
    for name, (joint, X) in frames.items():
        model.addFrame(pin.Frame(name, model.getJointId(joint), 0, X, pin.FrameType.OP_FRAME))
    return model


def test_a_rope_pulls_and_never_pushes():
    model = pin.Model()
    slide = model.addJoint(0, pin.JointModelPX(), at(), "slide")
    model.appendBodyToJoint(slide, pin.Inertia(1.0, np.zeros(3), np.zeros((3, 3))), at())
    rope = hc.Spring("universe", "slide", 100.0, 0.5, damping=5.0, unilateral=True)
    mech = hc.Mechanism(model, forces=[rope], reference=[0.6])

    def force(x, v):
        return hc.terms(mech, [x], [v]).F[0]

    assert force(0.7, 0.0) == pytest.approx(-20.0)
    assert force(0.7, 2.0) == pytest.approx(-30.0)
    assert force(0.7, -10.0) == 0.0  # the damper would push
    assert force(0.4, -3.0) == force(0.4, 3.0) == 0.0
    assert force(0.0, 1.0) == 0.0  # slack, wherever its ends are
    assert hc.energy(mech, [0.4], [0.0]).springs == 0.0


def test_an_angle_takes_the_shorter_way():
    model = pin.Model()
    wheel = model.addJoint(0, pin.JointModelRUBZ(), at(), "wheel")
    model.appendBodyToJoint(wheel, pin.Inertia(1.0, np.zeros(3), np.eye(3)), at())
    mech = hc.Mechanism(model, forces=[hc.JointSpring("wheel", 2.0, rest=3.0)])
    for angle, e in ((3.2, 0.2), (-3.1, 2 * np.pi - 6.1), (0.5, -2.5), (9.0, 6.0 - 2 * np.pi)):
        q = [np.cos(angle), np.sin(angle)]
        assert hc.terms(mech, q, [0.0]).F[0] == pytest.approx(-2.0 * e)
        assert hc.energy(mech, q, [0.0]).springs == pytest.approx(e * e)


def test_a_ball_is_pulled_along_its_rotation_vector():
    model = pin.Model()
    ball = model.addJoint(0, pin.JointModelSpherical(), at(), "ball")
    model.appendBodyToJoint(ball, pin.Inertia(1.0, np.zeros(3), np.eye(3)), at())
    rest, away = np.array([0.4, -0.2, 0.9]), np.array([-0.7, 0.5, 1.1])
    mech = hc.Mechanism(model, forces=[hc.JointSpring("ball", 3.0, rest, damping=0.5)])
    for sign in (1.0, -1.0):  # of the quaternion: the same rotation
        q = sign * pin.Quaternion(pin.exp3(rest) @ pin.exp3(away)).coeffs()
        F = hc.terms(mech, q, [1.0, 2.0, 3.0]).F
        assert pytest.approx(-3.0 * away - 0.5 * np.array([1.0, 2.0, 3.0])) == F
        assert hc.energy(mech, q, np.zeros(3)).springs == pytest.approx(1.5 * away @ away)


def test_a_number_is_for_all_coordinates_of_a_joint_of_six():
    arm = pin.JointModelComposite()
    for i in range(6):
        joint = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)[i % 3]()
        arm.addJoint(joint, pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.2])))
    model = pin.Model()
    parent = model.addJoint(0, arm, pin.SE3.Identity(), "arm")
    model.appendBodyToJoint(parent, pin.Inertia(1.0, np.ones(3), np.eye(3)), pin.SE3.Identity())
    mech = hc.Mechanism(model, forces=[hc.JointFriction(viscous=0.5)])
    v = np.arange(1.0, 7.0)
    assert np.allclose(hc.terms(mech, np.zeros(6), v).F, -0.5 * v)


def taut_rope(taut, rate):
    """A pendulum whose rope is longer than its length by `taut`."""
    q, v = np.array([0.3]), np.array([rate])
    tip, post = ("hinge", at(z=-LENGTH)), ("universe", at(x=0.5, z=-1.0))
    end = np.array([-LENGTH * np.sin(q[0]), 0.0, -LENGTH * np.cos(q[0])])
    length = float(np.linalg.norm(end - [0.5, 0.0, -1.0])) - taut
    rope = hc.Spring(tip, post, 50.0, length, damping=1.0, unilateral=True)
    return pendulum(9.81, [rope]), q, v


@pytest.mark.parametrize("rate", [1.0, -1.0])
@pytest.mark.parametrize("taut", [-1e-2, -1e-3, -1e-6, 0.0, 1e-6, 1e-3, 1e-2])
def test_a_rope_that_gets_taut_is_certified(taut, rate):
    """Its energy has a kink within the step of the power balance."""
    mech, q, v = taut_rope(taut, rate)
    hc.inverse_dynamics(mech, q, v, [0.4]).raise_if_bad()
    hc.forward_dynamics(mech, q, v, [0.4]).raise_if_bad()


@pytest.mark.parametrize("taut", [1e-3, 1e-2])
def test_a_wrong_energy_is_seen_beside_a_kink(taut, monkeypatch):
    mech, q, v = taut_rope(taut, 1.0)
    right = type(mech.bound_forces[0]).energy
    monkeypatch.setattr(type(mech.bound_forces[0]), "energy", lambda self, kin: -right(self, kin))
    assert hc.inverse_dynamics(mech, q, v, [0.4]).certificate.failures == ("power",)


@pytest.mark.parametrize("beside", [-1e-2, -1e-4, 0.0, 1e-4, 1e-2])
def test_half_a_turn_from_rest_is_certified(beside):
    model = pin.Model()
    wheel = model.addJoint(0, pin.JointModelRUBZ(), at(), "wheel")
    model.appendBodyToJoint(wheel, pin.Inertia(1.0, np.zeros(3), np.eye(3)), at())
    mech = hc.Mechanism(
        model, actuated=["wheel"], forces=[hc.JointSpring("wheel", 2.0, 0.7 + np.pi)]
    )
    angle = 0.7 + beside
    hc.inverse_dynamics(mech, [np.cos(angle), np.sin(angle)], [1.5], [0.3]).raise_if_bad()


ROTORED = [
    pin.JointModelRX(),
    pin.JointModelRUBZ(),
    pin.JointModelRevoluteUnaligned(np.array([0.6, 0.8, 0.0])),
    pin.JointModelPY(),
    pin.JointModelPrismaticUnaligned(np.array([0.6, 0.0, 0.8])),
    pin.JointModelHZ(0.2),
    pin.JointModelHelicalUnaligned(np.array([0.0, 0.6, 0.8]), 0.2),
    pin.JointModelSpherical(),
    pin.JointModelPlanar(),
    pin.JointModelUniversal(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])),
]


@pytest.mark.parametrize("kind", ROTORED, ids=lambda j: j.shortname())
def test_rotors_store_energy_once(kind):
    """Pinocchio's kinetic energy has the rotors of aligned joints, not those of others."""
    model, rng = pin.Model(), np.random.default_rng(0)
    joint = model.addJoint(0, kind, at(), "joint")
    body = pin.Inertia(1.3, np.array([0.1, 0.2, 0.3]), np.diag([0.05, 0.06, 0.07]))
    model.appendBodyToJoint(joint, body, at())
    model.armature = 0.3 + rng.random(model.nv)
    mech = hc.Mechanism(model)
    for _ in range(3):
        q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
        v = rng.normal(size=model.nv)
        expected = 0.5 * v @ hc.terms(mech, q, v).M @ v
        assert hc.energy(mech, q, v).kinetic == pytest.approx(expected, rel=1e-12)
        hc.forward_dynamics(mech, q, v, np.ones(model.nv)).raise_if_bad()


@pytest.mark.parametrize("given", ["armature", "ratio"])
def test_a_rotor_of_a_pendulum(given):
    model, rotor = pendulum(9.81).model.copy(), 0.5
    if given == "armature":
        model.armature = np.array([rotor])
    else:
        model.rotorInertia, model.rotorGearRatio = np.array([rotor / 100.0]), np.array([10.0])
    mech = hc.Mechanism(model, actuated=["hinge"])
    q, v = np.array([0.3]), np.array([1.5])
    assert hc.energy(mech, q, v).kinetic == pytest.approx(0.5 * (INERTIA + rotor) * v[0] ** 2)
    result = hc.inverse_dynamics(mech, q, v, [2.0]).raise_if_bad()
    assert result.u[0] == pytest.approx(
        (INERTIA + rotor) * 2.0 + INERTIA / LENGTH * 9.81 * np.sin(0.3)
    )


# -------------------------------------------------------------------------- counterbalances


def test_a_counterbalance_takes_the_weight_and_leaves_the_inertia():
    mass, g = INERTIA / LENGTH**2, 9.81
    for share in (0.0, 0.4, 1.0, 2.0):
        force = hc.Counterbalance(("hinge", at(0.0, 0.0, -LENGTH)), share * mass)
        mech = pendulum(g, [force])
        for q, v in ((0.3, -1.2), (2.0, 4.0)):
            expected = -(1.0 - share) * mass * g * LENGTH * np.sin(q) / INERTIA
            assert acceleration(mech, q, v) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert mech.force_names == ("counterbalance of hinge",)


def test_counterbalances_are_what_mujoco_calls_gravcomp():
    mujoco = pytest.importorskip("mujoco")
    text = (
        '<mujoco><compiler angle="radian"/><option gravity="1 2 -9"/><worldbody><body name="a">'
        '<joint name="j" axis="0 1 0"/><inertial pos="0.1 0.2 0.3" mass="1.5" diaginertia="1 1 1"/>'
        '<body name="b" pos="0 0 0.3" gravcomp="0.7"><joint name="k" axis="0 0.6 0.8"/>'
        '<joint name="s" type="slide" axis="1 0 0"/>'
        '<inertial pos="0.3 0.1 0.2" mass="2.5" diaginertia="1 1 1"/></body></body></worldbody>'
        "</mujoco>"
    )
    from holoctl.io.mjcf import read_mjcf

    force = hc.Counterbalance(("b", at(0.3, 0.1, 0.2)), 0.7 * 2.5)
    mech = read_mjcf(text, "r.xml").with_forces([force])
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for q in np.random.default_rng(2).uniform(-2.0, 2.0, (4, 3)):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        terms = hc.terms(mech, q, np.zeros(3))
        assert pytest.approx(data.qfrc_gravcomp, abs=1e-12) == terms.F
        assert np.abs(terms.F).max() > 1.0


@pytest.mark.parametrize("mass", [-1.0, np.nan, np.inf, "heavy"])
def test_masses_that_no_counterbalance_carries(mass):
    with pytest.raises(hc.InputError, match="mass"):
        hc.Counterbalance("hinge", mass)


def test_a_counterbalance_on_the_ground_is_refused():
    with pytest.raises(hc.InputError, match="fixed to the ground"):
        pendulum(9.81, [hc.Counterbalance(("universe", at(0.0, 0.0, 1.0)), 1.0)])
    with pytest.raises(hc.InputError, match="no joint or frame called 'hing'"):
        pendulum(9.81, [hc.Counterbalance("hing", 1.0)])
