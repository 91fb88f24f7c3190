"""Friction and springs of files as forces: MuJoCo's numbers, closed forms, warnings, mistakes."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from documents import EMPTY_SHEET, URDF, YAML, some_q, with_joint
from random_losses import document

import holoctl as hc
from holoctl.io.mjcf import read_mjcf

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 100))]


def told(caplog):
    return [record.getMessage() for record in caplog.records]


def without_coulomb(mech):
    kept = [replace(f, coulomb=0.0) if isinstance(f, hc.JointFriction) else f for f in mech.forces]
    return replace(mech, forces=kept)


def F(mech, q, v):
    return hc.terms(mech, q, v).F


def some_v(mech, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, mech.nv)


# ----------------------------------------------------------------------------------- MuJoCo


@pytest.mark.parametrize("seed", SEEDS)
def test_efforts_are_those_of_mujoco(seed):
    mujoco = pytest.importorskip("mujoco", minversion="4.0")
    from compare_mujoco import ours, velocity_map

    text = document(seed)
    model = mujoco.MjModel.from_xml_string(text)
    data, kinds = mujoco.MjData(model), model.jnt_type.tolist()
    mech = read_mjcf(text, "r.xml", losses=True)
    smooth, rng = without_coulomb(mech), np.random.default_rng(seed)
    for _ in range(3):
        data.qpos[:] = model.qpos0
        mujoco.mj_integratePos(model, data.qpos, rng.uniform(-1.0, 1.0, model.nv), 1.0)
        data.qvel[:] = rng.uniform(-1.0, 1.0, model.nv)
        mujoco.mj_forward(model, data)
        q = ours(mech.model, kinds, model.qpos0, data.qpos)
        T = velocity_map(mech.model, kinds, q)
        v = np.linalg.solve(T, data.qvel)
        expected = T.T @ data.qfrc_passive
        size = 1.0 + np.abs(expected).max()
        assert np.abs(F(smooth, q, v) - expected).max() < 1e-12 * size
        dry = -(T.T @ model.dof_frictionloss) * np.tanh(v / 0.01)
        assert np.abs(F(mech, q, v) - F(smooth, q, v) - dry).max() < 1e-12 * size


def test_the_documents_have_what_is_compared():
    mechs = [read_mjcf(document(seed), "r.xml", losses=True) for seed in range(12)]
    forces = [f for mech in mechs for f in mech.forces]
    springs = [f for f in forces if isinstance(f, hc.Spring)]
    assert sum(isinstance(f, hc.JointSpring) for f in forces) > 20
    assert len(springs) > 10
    assert any(f.unilateral for f in springs)
    kinds = {j.shortname() for mech in mechs for j in mech.model.joints[1:]}
    assert {"JointModelSpherical", "JointModelFreeFlyer"} <= kinds


ARM = (
    '<mujoco><compiler angle="radian"/>{head}<worldbody><site name="w" pos="0 1 1"/>'
    '<body name="arm"><joint name="j" {joint}/><geom name="g" size="0.1"/>'
    '<site name="s" pos="0.2 0 0.3"/><site name="r" pos="0.1 0 0.3"/>'
    '<body name="hand" pos="0 0 0.3"><joint name="k" {second}/><geom size="0.1"/></body></body>'
    "</worldbody>{rest}</mujoco>"
)


def arm(joint="", second="", rest="", head="", losses=True):
    return read_mjcf(
        ARM.format(joint=joint, second=second, rest=rest, head=head), "arm.xml", losses=losses
    )


def tendon(words, path='<site site="w"/><site site="s"/>'):
    return f'<tendon><spatial name="t" {words}>{path}</spatial></tendon>'


def test_a_spring_rests_at_springref():
    mech = arm('stiffness="3" springref="0.4" ref="0.1" damping="0.5"')
    spring = next(f for f in mech.forces if isinstance(f, hc.JointSpring))
    assert (spring.stiffness, spring.rest) == (3.0, pytest.approx(0.3))
    assert mech.force_names == ("friction", "spring on j")
    assert F(mech, [0.7, 0.0], [2.0, 0.0]) == pytest.approx([-3.0 * 0.4 - 0.5 * 2.0, 0.0])


def test_names_that_are_taken_get_a_number():
    rest = '<equality><joint name="friction" joint1="j" joint2="k"/></equality>'
    mech = arm('damping="1"', rest=rest + tendon('stiffness="1"').replace('"t"', '"spring on j"'))
    assert mech.force_names == ("friction-2", "spring on j")
    both = arm('stiffness="1"', rest=tendon('stiffness="1"').replace('"t"', '"spring on j"'))
    assert both.force_names == ("spring on j", "spring on j-2")
    off = rest.replace("name=", 'active="false" name=')
    assert arm('damping="1"', rest=off).force_names == ("friction-2",)


def test_a_springdamper_is_what_mujoco_makes_of_the_inertia():
    mech = arm('springdamper="0.5 0.3"', 'springdamper="0.2 2" armature="0.1"')
    friction, *springs = mech.forces
    mujoco = pytest.importorskip("mujoco")
    text = ARM.format(joint='springdamper="0.5 0.3"', rest="", head="",
                      second='springdamper="0.2 2" armature="0.1"')  # fmt: skip
    model = mujoco.MjModel.from_xml_string(text)
    assert [spring.stiffness for spring in springs] == pytest.approx(model.jnt_stiffness)
    assert list(friction.viscous.values()) == pytest.approx(model.dof_damping)
    assert min(model.jnt_stiffness) > 0.0


def test_a_tendon_with_two_lengths_is_a_rope():
    mech = arm(rest=tendon('stiffness="5" springlength="0 0.8" damping="2"'))
    rope, damper = mech.forces
    assert (rope.length, rope.unilateral, rope.damping) == (0.8, True, 0.0)
    assert (damper.stiffness, damper.damping, damper.default_name) == (0.0, 2.0, "t damper")


def test_a_tendon_within_a_body_does_nothing(caplog):
    mech = arm(rest=tendon('stiffness="5"', '<site site="s"/><site site="r"/>'))
    assert mech.forces == ()
    assert told(caplog) == [NOTHING]


NOTHING = "arm.xml: losses=True reads nothing: no friction or spring acts"


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ('spring="disable"', ("friction",)),
        ('passive="disable"', ("friction",)),
        ('damper="disable" frictionloss="disable"', ("spring on j",)),
        ('passive="disable" frictionloss="disable"', ()),
    ],
)
def test_flags_switch_off(flags, names, caplog):
    head = f"<option><flag {flags}/></option>"
    words = 'stiffness="1" damping="1" frictionloss="1"'
    mech = arm(words, head=head)
    assert mech.force_names == names
    assert told(caplog) == ([] if names else [NOTHING])
    found = [f for f in mech.forces if isinstance(f, hc.JointFriction)]
    assert all(bool(f.viscous) == ("spring" in flags) for f in found)


LEFT_OUT = {
    'stiffness="1 2"': "stiffness of 'j' (a polynomial)",
    'damping="1 2 3"': "damping of 'j' (a polynomial)",
    'damping="-1"': "damping of 'j' (negative)",
    'stiffness="1" springyield="0.1"': "stiffness of 'j' (springyield: it is plastic)",
    'type="free" stiffness="1"': "stiffness of 'j' (a free joint)",
    'type="free" frictionloss="1"': "frictionloss of 'j' (a free joint, along axes of the world)",
}

LEFT_OUT_OF_TENDONS = {
    tendon('stiffness="1"', '<site site="w"/><site site="s"/><site site="r"/>'): "through 3 sites",
    tendon('damping="1"', '<site site="w"/><geom geom="g"/><site site="s"/>'): "around a geom",
    tendon('stiffness="1"', '<pulley divisor="2"/><site site="w"/><site site="s"/>'): "a pulley",
    tendon('stiffness="1" springlength="0.2 0.4"'): "a range, and it pushes below it",
    tendon('frictionloss="1"'): "frictionloss of tendon 't' (dry friction is that of joints)",
    tendon('stiffness="1" springyield="1"'): "it is plastic",
    tendon('stiffness="1 2"'): "stiffness of tendon 't' (a polynomial)",
    '<tendon><fixed stiffness="1" damping="2"><joint joint="j" coef="2"/></fixed></tendon>': (
        "stiffness and damping of tendon 'tendon 0' (a fixed tendon)"
    ),
    '<actuator><dcmotor joint="j" motorconst="1" resistance="1" lugre="1"/></actuator>': (
        "lugre of actuator '<dcmotor> 0' (of the motor itself)"
    ),
}


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("words", LEFT_OUT)
def test_what_is_left_out_of_joints_is_told(words, read, caplog):
    second = "" if "free" in words else 'damping="1"'
    text = ARM.format(joint=words, second=second, rest="", head="")
    mech = read_mjcf(text, "arm.xml", losses=read)
    assert len(mech.forces) == (1 if second and read else 0)
    (message,) = told(caplog)
    assert LEFT_OUT[words] in message


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("rest", LEFT_OUT_OF_TENDONS)
def test_what_is_left_out_of_tendons_is_told(rest, read, caplog):
    assert arm(rest=rest, losses=read).forces == ()
    (message,) = told(caplog)
    assert LEFT_OUT_OF_TENDONS[rest] in message
    assert "no force represents" in message


def test_damping_of_actuators_is_that_of_the_joint(caplog):
    rest = (
        '<tendon><fixed name="t"><joint joint="k" coef="2"/></fixed></tendon><actuator>'
        '<motor joint="j" gear="3" damping="0.5"/><position tendon="t" gear="2" damping="0.1"/>'
        "</actuator>"
    )
    mech = arm('damping="1"', rest=rest)
    assert dict(mech.forces[0].viscous) == {"j": pytest.approx(5.5), "k": pytest.approx(1.6)}
    assert told(caplog) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [('springlength="2 1"', "invalid springlength"), ('springlength="-2"', "ascending"),
     ('springlength="x"', "finite numbers")],
)  # fmt: skip
def test_mistakes_of_a_tendon_are_errors(words, message):
    with pytest.raises(hc.LoadError, match=message):
        arm(rest=tendon(f'stiffness="1" {words}'))


def test_ends_that_coincide_are_told_with_the_line():
    text = ARM.format(joint="", second="", head="", rest="\n" + tendon('damping="1"'))
    text = text.replace('name="w" pos="0 1 1"', 'name="w" pos="0.2 0 0.3"')
    with pytest.raises(hc.LoadError, match="coincide") as found:
        read_mjcf(text, "arm.xml", losses=True)
    assert found.value.line == 2


def test_a_mechanism_with_losses_pickles():
    mech = read_mjcf(document(3), "r.xml", losses=True)
    again = pickle.loads(pickle.dumps(mech))
    q, v = some_q(mech.model), some_v(mech)
    np.testing.assert_array_equal(F(again, q, v), F(mech, q, v))


def test_the_default_says_once_what_is_left_out(caplog):
    mech = arm('damping="1" frictionloss="2" stiffness="3"', 'damping="1"', losses=False)
    assert mech.forces == ()
    (message,) = told(caplog)
    assert message.startswith("arm.xml: friction and springs of the file are not part of")
    assert message.endswith(
        "hc.load(..., losses=True) reads damping of 'j', 'k'; Coulomb friction of 'j'; "
        "springs of 'j'"
    )
    caplog.clear()
    arm('damping="0" stiffness="0"', losses=False)
    assert told(caplog) == []


# ------------------------------------------------------------------------------------- URDF


def test_dynamics_of_a_urdf(robot, caplog):
    mech = robot(losses=True)
    q, v = some_q(mech.model), some_v(mech)
    viscous = dict(zip(mech.coordinate_names, np.zeros(3), strict=True)) | {"a": 0.4, "elbow": 0.2}
    expected = [-viscous[n] * x for n, x in zip(mech.coordinate_names, v, strict=True)]
    i = mech.coordinate_names.index("a")
    expected[i] -= 0.5 * np.tanh(v[i] / 0.01)
    assert F(mech, q, v) == pytest.approx(expected)
    assert mech.force_names == ("friction",)
    assert told(caplog) == []
    assert robot().forces == ()
    (message,) = told(caplog)
    assert message.endswith("reads damping of 'a', 'elbow'; Coulomb friction of 'a'")


@pytest.mark.parametrize(("kind", "count"), [("SPHERICAL", 3), ("UJOINT_xy", 2), ("FIXED", 0)])
def test_dynamics_of_a_joint_that_becomes_another(kind, count, robot, caplog):
    sheet = EMPTY_SHEET + f"joint_name: [elbow]\njoint_type: [{kind}]\n"
    mech = robot(yaml=sheet, losses=True)
    v = some_v(mech)
    found = F(mech, some_q(mech.model), v)
    of = [i for i, n in enumerate(mech.coordinate_names) if n.startswith("elbow")]
    assert len(of) == count
    assert found[of] == pytest.approx(-0.2 * v[of])
    assert told(caplog) == []


def test_dynamics_of_a_mimic_joint(robot):
    urdf = with_joint(
        '<dynamics damping="0.2"/>', '<dynamics damping="0.3"/><mimic joint="b" multiplier="-2"/>'
    )
    mech = robot(urdf, EMPTY_SHEET, losses=True)
    v = some_v(mech)
    i = mech.coordinate_names.index("elbow")
    assert F(mech, some_q(mech.model), v)[i] == pytest.approx(-0.3 * v[i])


def test_dynamics_without_a_meaning_are_told(robot, caplog):
    urdf = with_joint('type="revolute"', 'type="floating"')
    mech = robot(urdf, EMPTY_SHEET, losses=True)
    assert dict(mech.forces[0].viscous) == {"elbow": 0.2}
    (message,) = told(caplog)
    assert "damping of 'a' (a floating joint, of lengths and angles); friction of 'a'" in message
    caplog.clear()
    robot(with_joint('damping="0.2"', 'damping="-0.2"'), EMPTY_SHEET, losses=True)
    assert "damping of 'elbow' (negative)" in told(caplog)[0]


def test_losses_are_true_or_false(robot):
    with pytest.raises(hc.InputError, match="losses"):
        robot(losses="yes")


# -------------------------------------------------------------------------------------- SDF

BODY = (
    "<link name='{0}'><pose>{1}</pose><inertial><mass>1</mass><inertia><ixx>.1</ixx><iyy>.1</iyy>"
    "<izz>.1</izz></inertia></inertial></link>"
)
DYNAMICS = (
    "<dynamics><damping>{}</damping><friction>{}</friction><spring_stiffness>{}</spring_stiffness>"
    "<spring_reference>{}</spring_reference></dynamics>"
)


def hinge(name, parent, child, dynamics, at="0 0 0 0 0 0"):
    return (
        f"<joint name='{name}' type='revolute'><pose relative_to='{child}'>{at}</pose>"
        f"<parent>{parent}</parent><child>{child}</child><axis><xyz>0 1 0</xyz>"
        f"{DYNAMICS.format(*dynamics)}</axis></joint>"
    )


LOOP = {
    "a": ("base", "left", (0.4, 0.5, 3.0, 0.1)),
    "b": ("base", "right", (0.3, 0.0, 0.0, 0.0)),
    "c": ("left", "bar", (0.1, 0.2, 2.0, -0.2)),
    "d": ("bar", "right", (0.2, 0.3, 1.0, 0.3)),
}


def loop_sdf():
    links = "".join(
        BODY.format(*x)
        for x in (("base", "0 0 0 0 0 0"), ("left", "0 0 0 0 0 0"), ("right", "1 0 0 0 0 0"),
                  ("bar", "0 0 0.5 0 0 0"))
    )  # fmt: skip
    at = {"a": "0 0 0 0 0 0", "b": "0 0 0 0 0 0", "c": "0 0 0 0 0 0", "d": "0 0 0.5 0 0 0"}
    joints = "".join(hinge(n, p, c, x, at[n]) for n, (p, c, x) in LOOP.items())
    return f"<sdf version='1.9'><model name='loop'>{links}{joints}</model></sdf>"


@pytest.mark.parametrize("cut", ["a", "b", "c", "d"])
def test_dynamics_of_an_sdf_whatever_is_cut(cut, tmp_path):
    """The power of every joint, and what is stored, by the joint's own rate and value."""
    (tmp_path / "loop.sdf").write_text(loop_sdf())
    (tmp_path / "loop.yaml").write_text(f"cut: [{cut}]\n")
    mech = hc.load(tmp_path / "loop.sdf", losses=True)
    assert cut in mech.constraint_names
    assert mech.force_names == ("friction", "spring on a", "spring on c", "spring on d")
    q = some_q(mech.model, 1)
    v = some_v(mech)
    expected = np.zeros(mech.nv)
    for name, (_, _, (damping, friction, stiffness, rest)) in LOOP.items():
        at = hc.joint_motion(mech, name, q, v)
        effort = -damping * at.rate - friction * np.tanh(at.rate / 0.01)
        expected += at.jacobian.T @ (effort - stiffness * (at.value - rest))
    assert F(mech, q, v) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_losses_of_an_sdf_are_told(tmp_path, caplog):
    (tmp_path / "loop.sdf").write_text(loop_sdf())
    assert hc.load(tmp_path / "loop.sdf").forces == ()
    (message,) = told(caplog)
    assert "reads damping of 'a', 'b', 'c', 'd'; Coulomb friction of 'a', 'c', 'd'" in message
    assert "springs of 'a', 'c', 'd'" in message


def test_dynamics_of_a_universal_joint_and_a_ball(tmp_path, caplog):
    first, second = DYNAMICS.format(1, 0, 2, 0.1), DYNAMICS.format(3, 4, 0, 0)
    axes = f"<axis><xyz>1 0 0</xyz>{first}</axis><axis2><xyz>0 1 0</xyz>{second}</axis2>"
    joints = (
        f"<joint name='u' type='universal'><parent>base</parent><child>left</child>{axes}</joint>"
        "<joint name='o' type='ball'><parent>left</parent><child>bar</child><axis><xyz>1 0 0</xyz>"
        f"{DYNAMICS.format(1, 0, 0, 0)}</axis></joint>"
    )
    links = "".join(BODY.format(n, "0 0 0 0 0 0") for n in ("base", "left", "bar"))
    (tmp_path / "u.sdf").write_text(
        f"<sdf version='1.9'><model name='u'>{links}{joints}</model></sdf>"
    )
    mech = hc.load(tmp_path / "u.sdf", losses=True)
    assert dict(mech.forces[0].viscous) == {"u[0]": 1.0, "u[1]": 3.0}
    assert mech.force_names == ("friction", "spring on u[0]")
    assert "damping of 'o' (a spherical joint has no axis)" in told(caplog)[-1]


# ------------------------------------------------------------------------------------- YAML

FORCES = """
forces:
  - {type: joint_friction, viscous: 0.1, coulomb: {a: 0.2, b: 0.3}, stribeck: {a: [0.4, 0.5]},
     transition: 0.02, name: oil}
  - {type: joint_spring, joint: b, stiffness: 4, rest: 0.5, damping: 0.6}
  - {type: spring, a: [universe, [0, 0, 1]], b: tip_a, stiffness: 7, length: 0.1}
  - {type: spring, a: arm_b, b: arm_a, stiffness: 1, length: 2, damping: 0.3,
     unilateral: true, name: rope}
"""


def in_code():
    return [
        hc.JointFriction(0.1, {"a": 0.2, "b": 0.3}, {"a": (0.4, 0.5)}, 0.02, name="oil"),
        hc.JointSpring("b", 4.0, 0.5, 0.6),
        hc.Spring(("universe", pin.SE3(np.eye(3), np.array([0, 0, 1.0]))), "tip_a", 7.0, 0.1),
        hc.Spring("arm_b", "arm_a", 1.0, 2.0, 0.3, unilateral=True, name="rope"),
    ]


def test_former_keys_of_a_spring_work_and_are_named(robot, caplog):
    former = FORCES.replace("a: arm_b", "frame_a: arm_b").replace("b: arm_a", "frame_b: arm_a")
    mech, now = robot(yaml=YAML + former), robot(yaml=YAML + FORCES)
    assert mech.forces[-1] == now.forces[-1]
    assert "the key 'frame_a' is called 'a' now" in caplog.text


@pytest.mark.parametrize("losses", [False, True])
def test_forces_of_the_sheet(losses, robot):
    mech = robot(yaml=YAML + FORCES, losses=losses)
    plain = robot(losses=losses)
    expected = replace(plain, forces=[*in_code(), *plain.forces])
    assert mech.force_names == expected.force_names
    q, v = some_q(mech.model), some_v(mech)
    np.testing.assert_array_equal(F(mech, q, v), F(expected, q, v))
    assert F(mech, q, v).any()


def test_forces_on_closures_of_the_sheet(robot):
    sheet = YAML + "closure_names: [pin]\nforces: [{type: joint_friction, viscous: {pin: 2}}]\n"
    mech = robot(yaml=sheet)
    q, v = some_q(mech.model), some_v(mech)
    at = hc.joint_motion(mech, "pin", q, v)
    assert F(mech, q, v) == pytest.approx(at.jacobian.T @ (-2.0 * at.rate))


def test_friction_of_file_and_sheet(robot):
    sheet = YAML + "forces: [{type: joint_friction, viscous: 1}]\n"
    assert robot(yaml=sheet, losses=True).force_names == ("friction", "friction-2")


def test_forces_of_a_sheet_beside_an_sdf(tmp_path):
    (tmp_path / "loop.sdf").write_text(loop_sdf())
    (tmp_path / "loop.yaml").write_text(
        "cut: [d]\nforces: [{type: joint_spring, joint: d, stiffness: 2, name: s}]\n"
        "rotor_inertia: {a: 0.01}\ngear_ratio: {a: 30}\n"
    )
    mech = hc.load(tmp_path / "loop.sdf")
    assert mech.force_names == ("s",)
    assert mech.model.armature[mech.coordinate_names.index("a")] == pytest.approx(9.0)


def forces(*entries):
    return YAML + "forces:\n" + "".join(f"  - {entry}\n" for entry in entries)


WRONG = {
    "{viscous: 1}": "the key 'type' is missing; valid: joint_friction, joint_spring, spring",
    "{type: jointfriction}": "joint_friction",
    "{type: joint_friction, viscos: 1}": "there is no key 'viscos' (did you mean 'viscous'?)",
    "{type: joint_friction, viscous: -1}": "viscous must not be negative",
    "{type: joint_friction, viscous: {elbo: 1}}": "elbow",
    "{type: joint_friction, stribeck: [1, 2, 3]}": "stribeck is a pair of numbers",
    "{type: joint_friction, coulomb: 2, stribeck: [1, 2]}": "peak of stribeck must be at least",
    "{type: joint_friction, transition: 0}": "transition",
    "{type: joint_spring, stiffness: 1}": "joint_spring: the key 'joint' is missing",
    "{type: joint_spring, joint: a, stiffness: x}": "expected a finite number; got 'x'",
    "{type: joint_spring, joint: a, stiffness: 1, rest: [1, 2, 3]}": "must be a number",
    "{type: spring, a: arm_a, b: nose, stiffness: 1, length: 1}": "nose",
    "{type: spring, a: [arm_a, 3], b: arm_b, stiffness: 1, length: 1}": (
        "a frame and a point in its axes"
    ),
    "{type: spring, a: arm_a, b: arm_b, stiffness: 1}": "'length' is missing",
    "{type: spring, a: arm_a, b: arm_b, stiffness: 1, length: 1, unilateral: 1}": (
        "expected true or false"
    ),
    "{type: joint_friction, name: tip_a-arm_b}": "give it another name",
    "joint_friction": "expected a mapping",
}


@pytest.mark.parametrize("entry", WRONG)
def test_mistakes_in_forces_name_the_line(entry, robot):
    with pytest.raises(hc.LoadError) as found:
        robot(yaml=forces("{type: joint_friction, name: first}", entry))
    assert WRONG[entry] in str(found.value)
    assert (found.value.key, found.value.line) == ("forces", YAML.count("\n") + 3)


def test_two_forces_of_one_name(robot):
    with pytest.raises(hc.LoadError, match="two are called 'friction'"):
        robot(yaml=forces("{type: joint_friction}", "{type: joint_friction}"))


# ----------------------------------------------------------------------------------- rotors


def test_rotors_stand_in_the_inertia_matrix(robot):
    sheet = YAML + "rotor_inertia: {a: 2e-3, b: 0.5}\ngear_ratio: {a: -50}\n"
    mech, plain = robot(yaml=sheet), robot()
    q = some_q(mech.model)
    v = np.zeros(mech.nv)
    more = np.diag(hc.terms(mech, q, v).M - hc.terms(plain, q, v).M)
    expected = {"a": 5.0, "b": 0.5, "elbow": 0.0}
    assert more == pytest.approx([expected[n] for n in mech.coordinate_names])
    i = mech.coordinate_names.index("a")
    assert (mech.model.rotorInertia[i], mech.model.rotorGearRatio[i]) == (2e-3, -50.0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("rotor_inertia: {elbo: 1}", "did you mean 'elbow'"),
        ("rotor_inertia: {elbow: 0}", "must be above zero"),
        ("rotor_inertia: {elbow: -1}", "must be above zero"),
        ("rotor_inertia: {elbow: 1}\ngear_ratio: {elbow: 0}", "must not be zero"),
        ("gear_ratio: {elbow: 3}", "'elbow' has no rotor_inertia"),
        ("rotor_inertia: 3", "expected a mapping"),
        ("rotor_inertia: {elbow: x}", "expected a finite number"),
    ],
)
def test_mistakes_in_rotors(keys, message, robot):
    with pytest.raises(hc.LoadError, match=message):
        robot(yaml=YAML + keys)


def test_a_rotor_on_a_ball_is_refused(robot):
    sheet = EMPTY_SHEET + "joint_name: [elbow]\njoint_type: [SPHERICAL]\n"
    with pytest.raises(hc.LoadError, match="coordinate of a spherical"):
        robot(yaml=sheet + "rotor_inertia: {'elbow[0]': 1}")


def test_a_second_rotor_is_refused():
    from holoctl.io.yaml_entries import yaml_document
    from holoctl.io.yaml_rotors import put_rotors

    model = pin.buildModelFromXML(URDF)
    model.armature = np.full(model.nv, 0.25)
    given = yaml_document("a: 1", "r.yaml").fields()
    with pytest.raises(hc.LoadError, match=r"a rotor of 0\.25"):
        put_rotors(model, given, {})


def test_rotors_of_dialects_point_to_the_sheet(robot, caplog):
    robot(with_joint('<dynamics damping="0.2"/>', '<dynamics damping="0.2" armature="1"/>'))
    assert "rotor_inertia and gear_ratio" in told(caplog)[0]
