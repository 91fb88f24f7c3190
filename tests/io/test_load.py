"""Reading robots: what the files mean, and that every mistake in them is named with its line."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_robots import SHARED_ROBOT_NAMES, shared_robot

import holoctl as hc
from holoctl.constraints.closure import JOINTS
from holoctl.io.urdf import FREE, _with_balls

URDF = """\
<?xml version="1.0"?>
<robot name="two_arms">
  <link name="base"/>
  <link name="arm_a">
    <inertial>
      <origin xyz="0.1 0.02 0.03" rpy="0.1 0.2 0.3"/>
      <mass value="1.5"/>
      <inertia ixx="0.02" ixy="0.001" ixz="0" iyy="0.03" iyz="0.002" izz="0.04"/>
    </inertial>
  </link>
  <link name="fore_a">
    <inertial>
      <mass value="0.7"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>
    </inertial>
  </link>
  <link name="tip_a"/>
  <link name="arm_b">
    <inertial>
      <origin xyz="0.2 0 0"/>
      <mass value="1.2"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>
    </inertial>
  </link>
  <joint name="a" type="revolute">
    <origin xyz="0 0.1 0" rpy="0.3 -0.2 0.1"/>
    <parent link="base"/>
    <child link="arm_a"/>
    <axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" effort="11" velocity="3"/>
    <dynamics damping="0.4" friction="0.5"/>
  </joint>
  <joint name="elbow" type="revolute">
    <origin xyz="0.3 0 0" rpy="-0.4 0.5 0.6"/>
    <parent link="arm_a"/>
    <child link="fore_a"/>
    <axis xyz="0 3 4"/>
    <limit lower="-1" upper="2" effort="7" velocity="5"/>
    <dynamics damping="0.2"/>
  </joint>
  <joint name="mount" type="fixed">
    <origin xyz="0.25 0 0" rpy="0 0 1"/>
    <parent link="fore_a"/>
    <child link="tip_a"/>
  </joint>
  <joint name="b" type="continuous">
    <origin xyz="0.5 0 0"/>
    <parent link="base"/>
    <child link="arm_b"/>
    <axis xyz="0 0 1"/>
  </joint>
</robot>
"""

YAML = """\
closed_loop: [[tip_a, arm_b]]
type: [3d]
name_mot: [b, a]
"""


@pytest.fixture(autouse=True)
def _silence(capfd):
    """Nothing is ever printed."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def robot(tmp_path):
    """Write the two files; return a function that loads them."""

    def load(urdf=URDF, yaml=YAML, **options):
        (tmp_path / "arms.urdf").write_text(urdf, "utf-8")
        if yaml is not None:
            (tmp_path / "arms.yaml").write_text(yaml, "utf-8")
        return hc.load(tmp_path / "arms.urdf", **options)

    return load


def with_joint(before, after, urdf=URDF):
    assert before in urdf
    return urdf.replace(before, after, 1)


def placement(model, q, frame):
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return data.oMf[model.getFrameId(frame)]


def turned(axis, angle):
    return pin.SE3(pin.AngleAxis(angle, np.eye(3)["xyz".index(axis)]).matrix(), np.zeros(3))


def some_q(model, seed=0):
    rng = np.random.default_rng(seed)
    return pin.integrate(model, pin.neutral(model), rng.uniform(-1, 1, model.nv))


# ------------------------------------------------------------------------------- our robots


def test_robot_names_and_files():
    assert hc.robot_names() == ("delta", "five_bar", "four_bar", "geared_arm", "leg", "stewart")
    for name in hc.robot_names():
        assert hc.robot_file(name).is_file()
        assert hc.robot_file(name).with_suffix(".yaml").is_file()
        assert hc.load(hc.robot_file(name)).name == name


def test_unknown_robot_lists_the_names():
    with pytest.raises(hc.InputError, match=r"did you mean 'five_bar'.*'five_bar', 'four_bar'"):
        hc.robot_file("fivebar")


@pytest.mark.parametrize(
    ("name", "motors", "passive", "closure"),
    [
        ("five_bar", ("motor_left", "motor_right"), ("elbow_left", "elbow_right"), "tip_hinge"),
        ("four_bar", ("crank",), ("coupler", "rocker"), "pin"),
    ],
)
def test_our_robots(name, motors, passive, closure):
    mech = hc.load(hc.robot_file(name))
    assert mech.actuated == motors
    assert set(mech.coordinate_names) == {*motors, *passive}
    assert mech.constraint_names == (closure,)
    assert [c.joint for c in mech.constraints] == ["revolute"]
    for inertia in mech.model.inertias.tolist()[1:]:
        principal = np.linalg.eigvalsh(inertia.inertia)
        assert inertia.mass > 0.0
        assert principal[0] > 0.0
        assert principal[0] + principal[1] >= principal[2]
    q, _ = hc.assemble(mech)
    assert np.abs(q - mech.reference).max() < 0.01
    closure = mech.constraints[0]
    halves = [placement(mech.model, q, frame) for frame in (closure.a, closure.b)]
    assert np.abs(halves[0].translation - halves[1].translation).max() < 1e-9
    for half in halves:
        assert np.abs(half.rotation[:, 2] - [0, -1, 0]).max() < 1e-12
    assert hc.partition(mech, q).rank == 2


def test_five_bar_stands_as_its_drawing_says():
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    where = {f: placement(mech.model, q, f).translation for f in ("tip", "elbow_left")}
    where |= {f: placement(mech.model, q, f).translation for f in ("elbow_right", "motor_left")}
    assert where["motor_left"] == pytest.approx([-0.1, 0, 0])
    assert where["elbow_left"][0] < -0.1
    assert where["elbow_right"][0] > 0.1
    assert where["tip"][2] > max(where["elbow_left"][2], where["elbow_right"][2]) > 0.0
    left, right = mech.coordinate_names.index("motor_left"), 2
    assert where["elbow_left"] == pytest.approx(
        [-0.1 + 0.25 * np.cos(q[left]), 0.0, 0.25 * np.sin(q[left])]
    )
    assert mech.coordinate_names[right] == "motor_right"
    u = hc.inverse_dynamics(mech, q, v, target=[0.0, 0.0]).u
    assert u[0] < -0.1 < 0.1 < u[1], "gravity pulls the arms outwards"


def test_four_bar_crank_turns_all_the_way_round():
    mech = hc.load(hc.robot_file("four_bar"))
    q, rocker = mech.reference, []
    for angle in np.linspace(1.0, 1.0 + 2 * np.pi, 73):
        q = q.copy()
        q[0] = angle
        q, _ = hc.assemble(mech, q, locked=["crank"])
        rocker.append(q[2])
    assert rocker[-1] == pytest.approx(rocker[0], abs=1e-6)
    assert 0.3 < np.ptp(rocker) < np.pi / 2


# ------------------------------------------------------------------------------ shared robots


@pytest.mark.parametrize("name", SHARED_ROBOT_NAMES)
@pytest.mark.parametrize("free_flyer", [False, True])
def test_shared_robots_are_read_as_pinocchio_reads_them(name, free_flyer):
    path = shared_robot(name)
    mech = hc.load(path, free_flyer=free_flyer)
    root = [pin.JointModelFreeFlyer()] if free_flyer else []
    assert mech.model == pin.buildModelFromUrdf(str(path / "robot.urdf"), *root)
    assert all(c.joint == "weld" for c in mech.constraints)
    assert mech.nu > 0


def test_shared_robot_keeps_the_order_of_its_motors():
    assert hc.load(shared_robot("5bar_linkage_iso6d")).actuated == ("mot2", "mot1")


# ------------------------------------------------------------------------------ what is found


def test_reads_as_pinocchio_reads(robot, tmp_path):
    mech = robot()
    assert mech.model == pin.buildModelFromUrdf(str(tmp_path / "arms.urdf"))
    assert mech.name == "two_arms"
    assert mech.coordinate_names == ("a", "elbow", "b")
    assert mech.actuated == ("b", "a")
    assert mech.constraint_names == ("tip_a-arm_b",)
    assert np.array_equal(mech.reference, pin.neutral(mech.model))
    assert pickle.loads(pickle.dumps(mech)).model == mech.model


@pytest.mark.parametrize("seed", range(20))
def test_random_trees_are_read_as_pinocchio_reads_them(robot, seed):
    rng = np.random.default_rng(seed)
    triple = lambda: " ".join(map(repr, rng.normal(size=3).tolist()))  # noqa: E731
    n, text = 8, ""
    for i in range(n):
        second = np.cov(rng.normal(size=(3, 9)))  # of mass, which any body has
        I = np.trace(second) * np.eye(3) - second  # noqa: E741
        of = itertools.combinations_with_replacement(range(3), 2)
        body = "".join(f' i{"xyz"[i]}{"xyz"[j]}="{float(I[i, j])!r}"' for i, j in of)
        inertial = f'<origin rpy="{triple()}"/><mass value="{rng.random()!r}"/><inertia{body}/>'
        text += f'<link name="{n - i}"><inertial>{inertial}</inertial></link>\n'
    for i in rng.permutation(n - 1) + 1:
        type_ = rng.choice(["revolute", "continuous", "prismatic", "fixed", "floating", "planar"])
        axis = "0 0 1" if type_ == "planar" or rng.random() < 0.3 else triple()
        text += (
            f'<joint name="j{i * 7 % n}" type="{type_}"><origin xyz="{triple()}" rpy="{triple()}"/>'
            f'<parent link="{n - rng.integers(i)}"/><child link="{n - i}"/><axis xyz="{axis}"/>'
            f'<limit lower="-1" upper="{rng.random()!r}" effort="1e2" velocity=".5"/></joint>\n'
        )
    text = f'<robot name="r">{text}</robot>'
    expected = pin.buildModelFromXML(text)
    if expected.nv == 0:
        pytest.skip("all joints are fixed")
    assert robot(text, None).model == expected


def test_a_path_may_be_a_string_a_directory_or_relative(tmp_path, monkeypatch):
    (tmp_path / "robot.urdf").write_text(URDF)
    (tmp_path / "robot.yaml").write_text(YAML)
    (tmp_path / "other.urdf").write_text(URDF)
    monkeypatch.chdir(tmp_path)
    for path in (str(tmp_path / "robot.urdf"), tmp_path, ".", "robot.urdf", "other.urdf"):
        assert hc.load(path).nu == 2


def test_without_yaml_it_is_an_open_tree(robot):
    mech = robot(yaml=None)
    assert (mech.nu, len(mech.constraints), mech.nv) == (0, 0, 3)


def test_the_yaml_of_its_own_name_goes_first_and_closures_before_all(robot, tmp_path):
    (tmp_path / "robot.yaml").write_text("closed_loop: []\ntype: []\nname_mot: [elbow]\n")
    (tmp_path / "third.yaml").write_text("closed_loop: []\ntype: []\nname_mot: []\n")
    assert robot().actuated == ("b", "a")
    assert robot(closures=tmp_path / "robot.yaml").actuated == ("elbow",)
    assert robot(closures=str(tmp_path / "third.yaml")).actuated == ()
    (tmp_path / "arms.yaml").unlink()
    assert robot(yaml=None).actuated == ("elbow",)


def test_byte_order_mark_and_foreign_elements_are_no_matter(robot):
    extra = '<gazebo reference="arm_a"><mu1>0.2</mu1></gazebo>\n  <link name="base">'
    urdf = URDF.replace('<link name="base"/>', f"{extra}<visual><box/></visual></link>")
    assert robot("\ufeff" + urdf, "\ufeff" + YAML).model == robot().model


@pytest.mark.parametrize(
    "type_",
    [*(j for j in JOINTS if j != "screw"), "screw 0.02", "6d", "3D", "x y", "rz x y", "z rx ry"],
)
def test_every_closure_type(robot, type_):
    (c,) = robot(yaml=YAML.replace("3d", type_)).constraints
    expected = {"6d": "weld", "3D": "spherical", "screw 0.02": "screw"}.get(type_, type_)
    assert c.pitch == (0.02 if expected == "screw" else None)
    assert (c.a, c.b) == ("tip_a", "arm_b")
    assert (c.joint, c.axes) == ((expected, None) if expected in JOINTS else (None, expected))


def test_frames_may_be_joints_links_or_fixed_joints(robot):
    for frame in ("elbow", "tip_a", "mount"):
        robot(yaml=YAML.replace("tip_a", frame))
    (c,) = robot(yaml=YAML.replace("arm_b", "universe")).constraints
    assert c.b == "universe"


def test_own_keys(robot):
    mech = robot(
        yaml="name: pair\n"
        "description: free text\n"
        "source: {from: nowhere, year: 2020}\n" + YAML + "closure_names: [ball]\n"
        "couplings:\n"
        "  - {coefficients: {a: 1, elbow: -2.5}, offset: 1e-1, name: belt}\n"
        "  - coefficients: {b: 1.0, a: 1.0}\n"
        "reference: {a: -1e-1, elbow: +.5, b: 2}\n"
    )
    assert mech.name == "pair"
    assert mech.constraint_names == ("ball", "belt", "b-a")
    belt = mech.constraints[1]
    assert (belt.coefficients, belt.offset) == ({"a": 1.0, "elbow": -2.5}, 0.1)
    assert mech.nq == 3, "a continuous joint in a coupling counts its turns"
    assert np.array_equal(mech.reference, [-0.1, 0.5, 2.0])


def test_empty_lists(robot):
    mech = robot(yaml="closed_loop: []\ntype: []\nname_mot: []\njoint_name: []\njoint_type: []\n")
    assert (mech.nu, mech.constraints) == (0, ())


def test_free_flyer(robot):
    mech = robot(free_flyer=True)
    assert mech.model.names[1] == "root_joint"
    assert mech.coordinate_names[:6] == tuple(f"root_joint[{i}]" for i in range(6))
    assert np.array_equal(mech.reference, pin.neutral(mech.model))
    q = [1, 2, 3, 0.6, 0, 0, 0.8]
    mech = robot(yaml=YAML + f"reference: {{root_joint: {q}}}\n", free_flyer=True)
    assert mech.reference[:7] == pytest.approx(q)


def test_reference_of_a_continuous_joint_is_an_angle(robot):
    mech = robot(yaml=YAML + "reference: {b: 1.0}\n")
    assert mech.reference == pytest.approx([0, 0, np.cos(1.0), np.sin(1.0)])


def test_floating_and_planar_joints(robot):
    floating = with_joint('name="b" type="continuous"', 'name="b" type="floating"')
    yaml = YAML.replace("b, a", "a")
    assert robot(floating, yaml).nv == 8
    planar = with_joint('name="b" type="continuous"', 'name="b" type="planar"')
    mech = robot(planar, yaml + "reference: {b: [1, 2, 0.6, 0.8]}\n")
    assert mech.nv == 5
    assert mech.reference[-4:] == pytest.approx([1, 2, 0.6, 0.8])


def test_an_axis_need_not_be_normalised(robot):
    mech = robot()
    data = mech.model.createData()
    J = pin.computeJointJacobians(mech.model, data, some_q(mech.model))
    assert np.linalg.norm(J[3:], axis=0) == pytest.approx(np.ones(3))


# ----------------------------------------------------------------------------- replacements


def replaced(joint, by):
    motors = YAML.replace("b, a", "b") if joint == "a" else YAML
    return motors + f"joint_name: [{joint}]\njoint_type: [{by}]\n"


def test_spherical(robot):
    mech, before = robot(yaml=replaced("elbow", "SPHERICAL")), robot().model
    model = mech.model
    assert mech.coordinate_names == ("a", "elbow[0]", "elbow[1]", "elbow[2]", "b")
    assert (model.nq, model.nv) == (7, 5)
    assert [f.name for f in model.frames] == [f.name for f in before.frames]
    assert list(model.upperEffortLimit[:4]) == [11, 7, 7, 7]
    assert list(model.upperVelocityLimit[:4]) == [3, 5, 5, 5]
    assert list(model.damping[:4]) == [0.4, 0.2, 0.2, 0.2]
    assert list(model.upperPositionLimit[:5]) == [2, 1.01, 1.01, 1.01, 1.01]
    q = some_q(model)
    ball = pin.SE3(pin.Quaternion(q[1:5]).matrix(), np.zeros(3))
    at_zero = pin.neutral(before)
    at_zero[0] = q[0]
    link = placement(before, at_zero, "fore_a")
    assert placement(model, q, "fore_a").isApprox(link * ball)
    tip = link.actInv(placement(before, at_zero, "tip_a"))
    assert placement(model, q, "tip_a").isApprox(link * ball * tip)
    half_turn = robot(
        yaml=replaced("elbow", "SPHERICAL") + "reference: {elbow: [0, 0.707, 0, 0.707]}"
    )
    assert half_turn.reference[1:5] == pytest.approx([0, np.sqrt(0.5), 0, np.sqrt(0.5)])


def test_rebuilding_without_a_ball_changes_nothing(robot):
    for free_flyer in (False, True):
        model = robot(free_flyer=free_flyer).model
        again = _with_balls(model, [])
        again_and_again = _with_balls(again, [])
        assert again == again_and_again
        assert list(again.frames) == list(model.frames)
        assert list(again.inertias) == list(model.inertias)
        for limits in (
            "lowerPositionLimit",
            "upperEffortLimit",
            "damping",
            "upperDryFrictionLimit",
        ):
            assert np.array_equal(getattr(again, limits), getattr(model, limits))


@pytest.mark.parametrize("by", ["UJOINT_XY", "UJOINT_xy", "ujoint_ZX", "UJOINT_yx", "UJOINT_YZ"])
def test_universal(robot, by):
    mech, before = robot(yaml=replaced("elbow", by)), robot().model
    model = mech.model
    assert mech.coordinate_names == ("a", "elbow[0]", "elbow[1]", "b")
    assert (model.nq, model.nv) == (5, 4)
    assert {"elbow", "fore_a", "tip_a", "mount"} <= {f.name for f in model.frames}
    assert list(model.upperEffortLimit[1:3]) == [7, 7]
    assert list(model.damping[1:3]) == [0.2, 0.2]
    assert list(model.upperPositionLimit[1:3]) == [FREE, FREE]
    q = some_q(model)
    at_zero = pin.neutral(before)
    at_zero[0] = q[0]
    first, second = by[-2:].lower()
    turn = turned(first, q[1]) * turned(second, q[2])
    link = placement(before, at_zero, "fore_a")
    assert placement(model, q, "fore_a").isApprox(link * turn)
    assert placement(model, q, "elbow").isApprox(link * turn)
    tip = link.actInv(placement(before, at_zero, "tip_a"))
    assert placement(model, q, "tip_a").isApprox(link * turn * tip)
    yaml = replaced("elbow", by).replace("tip_a", "elbow").replace("[b, a]", "['elbow[1]', a]")
    mech = robot(yaml=yaml + "reference: {elbow: [0.1, 0.2]}\n")
    assert mech.actuated == ("elbow[1]", "a")
    assert mech.reference[:3] == pytest.approx([0.0, 0.1, 0.2])
    mech = robot(yaml=replaced("elbow", by) + "reference: {'elbow[1]': 0.2}\n")
    assert mech.reference[:3] == pytest.approx([0.0, 0.0, 0.2])


@pytest.mark.parametrize("by", ["SPHERICAL", "UJOINT_XY", "UJOINT_ZY"])
def test_the_jacobian_of_a_replaced_joint_has_the_right_derivative(robot, by):
    """Pinocchio's composite joint fails this test, and closure rows need the derivative."""
    model = robot(yaml=replaced("elbow", by)).model
    data = model.createData()
    q, v, h = some_q(model), np.random.default_rng(1).normal(size=model.nv), 1e-5
    J = [
        pin.computeJointJacobians(model, data, pin.integrate(model, q, s * v)).copy()
        for s in (h, -h)
    ]
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    assert np.abs(data.dJ).max() > 0.1
    assert np.abs((J[0] - J[1]) / (2 * h) - data.dJ).max() < 1e-8


def test_fixed(robot):
    model, before = robot(yaml=replaced("elbow", "FIXED")).model, robot().model
    expected = pin.buildReducedModel(before, [before.getJointId("elbow")], pin.neutral(before))
    assert list(model.names) == ["universe", "a", "b"]
    assert (model.nq, model.nv) == (3, 2)
    q, v = some_q(model), np.array([0.3, -0.4])
    tau = [pin.rnea(m, m.createData(), q, v, v) for m in (model, expected)]
    assert tau[0] == pytest.approx(tau[1])
    for frame in ("elbow", "fore_a", "tip_a"):
        assert placement(model, q, frame).isApprox(placement(expected, q, frame))
    (c,) = robot(yaml=replaced("elbow", "FIXED").replace("tip_a", "elbow")).constraints
    assert c.a == "elbow"


def test_several_replacements_and_a_free_flyer(robot):
    yaml = YAML.replace("b, a", "") + "joint_name: [elbow, a, b]\n"
    mech = robot(yaml=yaml + "joint_type: [SPHERICAL, FIXED, UJOINT_ZX]\n", free_flyer=True)
    assert mech.coordinate_names[6:] == ("elbow[0]", "elbow[1]", "elbow[2]", "b[0]", "b[1]")
    mech = robot(yaml=yaml + "joint_type: [UJOINT_xz, SPHERICAL, SPHERICAL]\n")
    assert (mech.nq, mech.nv) == (10, 8)
    hc.assemble(mech)


def test_a_fixed_joint_may_become_a_ball(robot):
    yaml = YAML.replace("tip_a", "fore_a") + "joint_name: [mount]\njoint_type: [SPHERICAL]\n"
    assert "mount[2]" in robot(yaml=yaml).coordinate_names


# ---------------------------------------------------------------------------- mimic joints

MIMIC = with_joint('<dynamics damping="0.2"/>', '<mimic joint="b" multiplier="-2" offset="0.3"/>')


def test_mimic_becomes_a_coupling(robot):
    mech = robot(MIMIC)
    (_, mimic) = mech.constraints
    assert mech.constraint_names == ("tip_a-arm_b", "elbow-mimic")
    assert (mimic.coefficients, mimic.offset) == ({"elbow": 1.0, "b": 2.0}, 0.3)
    assert (mech.nq, mech.nv) == (3, 3), "the continuous joint counts its turns"
    b = mech.model.getJointId("b")
    i = mech.model.idx_qs[b]
    assert mech.model.lowerPositionLimit[i] == -FREE
    assert mech.model.upperPositionLimit[i] == FREE
    assert mech.model.upperEffortLimit[mech.model.idx_vs[b]] > 1e300
    assert np.isfinite(pin.randomConfiguration(mech.model)).all()


def test_mimic_defaults_to_one_to_one(robot):
    (_, mimic) = robot(MIMIC.replace(' multiplier="-2" offset="0.3"', "")).constraints
    assert (mimic.coefficients, mimic.offset) == ({"elbow": 1.0, "b": -1.0}, 0.0)
    (_, mimic) = robot(MIMIC.replace('"-2"', '"0"')).constraints
    assert (mimic.coefficients, mimic.offset) == ({"elbow": 1.0}, 0.3)


def test_mimic_holds_when_assembled(robot):
    mech = robot(MIMIC, "closed_loop: []\ntype: []\nname_mot: [b]\n")
    q, _ = hc.assemble(mech, [0.1, 0.2, 0.4])
    assert q[1] == pytest.approx(-2 * q[2] + 0.3)


# --------------------------------------------------------------------------- mistakes in YAML

TREE = "closed_loop: []\ntype: []\n"
MISTAKES = {  # the YAML text, the key, what the line starts with, words of the message
    "unknown key": (YAML + "motors: [a]\n", "motors", "motors", ["'motors'", "name_mot"]),
    "misspelt key": (YAML + "coupling: []\n", "coupling", "coupling", ["did you mean 'couplings'"]),
    "missing closed_loop": ("type: []\nname_mot: []\n", "closed_loop", "type", ["missing"]),
    "missing type": ("closed_loop: []\nname_mot: []\n", "type", "closed_loop", ["missing"]),
    "missing name_mot": (TREE, "name_mot", "closed_loop", ["missing", "name_mot: []"]),
    "key twice": (YAML + "name_mot: []\n", "name_mot", "name_mot: []", ["twice"]),
    "nested key twice": (
        YAML + "reference: {a: 1,\n  b: 1,\n  a: 2}\n", "reference", "  a: 2", ["'a'", "twice"],
    ),
    "not a mapping": ("- a\n- b\n", None, "- a", ["mapping", "got a list"]),
    "a text only": ("hello\n", None, "hello", ["mapping", "'hello'"]),
    "not YAML": (YAML + "name: [a\nname: b", None, "name: b", ["not YAML"]),
    "tab": (YAML + "couplings:\n\t- a\n", None, "\t- a", ["not YAML"]),
    "two documents": (YAML + "---\n" + YAML, None, "---", ["not YAML", "single document"]),
    "bad escape": (YAML + 'name: "\\UFFFFFFFF"\n', None, None, ["not YAML"]),
    "control character": (YAML + "name: a\x01b\n", None, "name", ["forbids"]),
    "nested deeply": (YAML + "name: " + "[" * 2000 + "]" * 2000, None, "name", ["deeply"]),
    "anchor": (YAML + "name: &x robot\n", None, "name: &x", ["anchors"]),
    "alias": (TREE + "name_mot: &x [a]\njoint_name: *x\n", None, "name_mot: &x", ["aliases"]),
    "tag": (YAML + "name: !!python/object:os.system ls\n", None, "name: !!", ["tags"]),
    "merge key": (YAML + "<<: {a: 1}\n", None, "<<", ["a text", "'<<'"]),
    "a number for a list": (
        "closed_loop: 3\ntype: []\nname_mot: []\n",
        "closed_loop", "closed_loop", ["list", "'3'"],
    ),
    "nothing for a list": (TREE + "name_mot:\n", "name_mot", "name_mot", ["list", "nothing"]),
    "a number for a name": (TREE + "name_mot: [1]\n", "name_mot", "name_mot", ["text", "quotes"]),
    "yes for a name": (TREE + "name_mot:\n- a\n- yes\n", "name_mot", "- yes", ["'yes'", "quotes"]),
    "a surrogate": (
        TREE + 'name_mot: ["\\ud800"]\n', "name_mot", "name_mot", ["printable", "ud800"],
    ),
    "beyond Unicode": (YAML + 'name: "\\U00110000"\n', None, None, ["not YAML"]),
    "an empty name": (TREE + "name_mot: ['']\n", "name_mot", "name_mot", ["text", "nothing"]),
    "a list for a name": (TREE + "name_mot: [[a]]\n", "name_mot", "name_mot", ["text", "a list"]),
    "no pair": (YAML.replace("tip_a, ", ""), "closed_loop", "closed_loop", ["pair", "'arm_b'"]),
    "unequal lengths": (YAML.replace("3d", "3d, 6d"), "type", "type", ["equal length", "2 and 1"]),
    "unknown closure": (
        YAML.replace("3d", "revolut"),
        "type", "type", ["did you mean 'revolute'", "6d", "weld", "x y z"],
    ),
    "unknown axis": (YAML.replace("3d", "x w"), "type", "type", ["x y z rx ry rz"]),
    "axis twice": (YAML.replace("3d", "x x"), "type", "type", ["each once"]),
    "5d": (YAML.replace("3d", "5d"), "type", "type", ["'5d'", "6d, 3d"]),
    "unknown frame": (
        YAML.replace("tip_a", "tip_b"),
        "closed_loop", "closed_loop", ["'tip_b'", "did you mean 'tip_a'", "'elbow'", "'mount'"],
    ),
    "one body": (YAML.replace("arm_b", "fore_a"), "closed_loop", "closed_loop", ["same body"]),
    "second closure": (
        "closed_loop:\n- [tip_a, arm_b]\n- [tip_a, nobody]\ntype: [3d, 3d]\nname_mot: []\n",
        "closed_loop", "- [tip_a, nobody", ["'nobody'"],
    ),
    "one pair twice": (
        "closed_loop:\n- [tip_a, arm_b]\n- [tip_a, arm_b]\ntype: [3d, 3d]\nname_mot: []\n",
        "closed_loop", "- [tip_a, arm_b]", ["'tip_a-arm_b'", "differ"],
    ),
    "too many closure names": (
        YAML + "closure_names: [a, b]\n",
        "closure_names", "closure_names", ["equal length"],
    ),
    "unknown motor": (
        TREE + "name_mot: [a,\n  bb]\n",
        "name_mot", "  bb", ["'bb'", "did you mean 'b'", "'elbow'"],
    ),
    "motor on a fixed joint": (
        TREE + "name_mot: [mount]\n",
        "name_mot", "name_mot", ["'mount'", "'a', 'elbow', 'b'"],
    ),
    "motor on a ball": (
        replaced("a", "SPHERICAL").replace("[b]", "[a]"),
        "name_mot", "name_mot", ["3 coordinates", "'a[0]', 'a[1]', 'a[2]'"],
    ),
    "motor on a universal joint": (
        replaced("a", "UJOINT_XY").replace("[b]", "[a]"),
        "name_mot", "name_mot", ["2 coordinates", "'a[1]'"],
    ),
    "motor twice": (TREE + "name_mot: [a, a]\n", "name_mot", "name_mot", ["'a'", "twice"]),
    "joint_name alone": (
        YAML + "joint_name: [a]\n",
        "joint_name", "joint_name", ["1", "0", "joint_type"],
    ),
    "joint_type alone": (
        YAML + "joint_type: [FIXED]\n",
        "joint_type", "joint_type", ["equal length"],
    ),
    "unknown joint": (
        replaced("elbo", "FIXED"),
        "joint_name", "joint_name", ["did you mean 'elbow'", "'mount'"],
    ),
    "joint twice": (
        replaced("elbow, elbow", "FIXED, FIXED"),
        "joint_name", "joint_name", ["twice"],
    ),
    "unknown joint type": (
        replaced("elbow", "BALL"),
        "joint_type", "joint_type", ["SPHERICAL", "FIXED", "UJOINT_XY"],
    ),
    "one axis twice": (replaced("elbow", "UJOINT_XX"), "joint_type", "joint_type", ["UJOINT_XX"]),
    "unknown coupled": (
        YAML + "couplings:\n- coefficients: {c: 1}\n",
        "couplings", "- coeff", ["'c'", "'a', 'elbow', 'b'"],
    ),
    "coupling key": (
        YAML + "couplings:\n- {factors: {a: 1}}\n",
        "couplings", "- {f", ["'factors'", "coefficients, offset, name"],
    ),
    "no coefficients": (
        YAML + "couplings:\n- {offset: 1}\n",
        "couplings", "- {o", ["coefficients"],
    ),
    "zero coefficient": (
        YAML + "couplings:\n- {coefficients: {a: 0}}\n",
        "couplings", "- {c", ["zero"],
    ),
    "no number": (
        YAML + "couplings:\n- {coefficients: {a: one}}\n",
        "couplings", "- {c", ["number", "'one'"],
    ),
    "octal": (YAML + "reference: {a: 0o17}\n", "reference", "reference", ["number", "'0o17'"]),
    "base 60": (YAML + "reference: {a: '1:30'}\n", "reference", "reference", ["number"]),
    "infinite": (YAML + "reference: {a: .inf}\n", "reference", "reference", ["finite", "'.inf'"]),
    "too large": (YAML + "reference: {a: 1e999}\n", "reference", "reference", ["finite"]),
    "coupled ball": (
        replaced("elbow", "SPHERICAL") + "couplings:\n- {coefficients: {'elbow[0]': 1}}\n",
        "couplings", "- {", ["elbow[0]"],
    ),
    "unknown in reference": (
        YAML + "reference:\n  a: 1\n  elbo: 1\n",
        "reference", "  elbo", ["'elbo'", "did you mean 'elbow'"],
    ),
    "list for a hinge": (
        YAML + "reference: {a: [1]}\n",
        "reference", "reference", ["number", "a list"],
    ),
    "number for a ball": (
        replaced("elbow", "SPHERICAL") + "reference: {elbow: 1}\n",
        "reference", "reference", ["a list"],
    ),
    "three for a ball": (
        replaced("elbow", "SPHERICAL") + "reference: {elbow: [0, 0, 1]}\n",
        "reference", "reference", ["4 numbers", "got 3"],
    ),
    "no rotation": (
        replaced("elbow", "SPHERICAL") + "reference: {elbow: [1, 1, 1, 1]}\n",
        "reference", "reference", ["'elbow'", "norm 1"],
    ),
    "null rotation": (
        replaced("elbow", "SPHERICAL") + "reference: {elbow: [0, 0, 0, 0]}\n",
        "reference", "reference", ["norm 1"],
    ),
    "empty": ("", None, None, ["empty"]),
    "comments only": ("# nothing\n", None, None, ["empty"]),
}  # fmt: skip


def line_of(text, start):
    """Number of the last line that starts like this (the later one of two is at fault)."""
    found = [i for i, line in enumerate(text.split("\n"), 1) if line.startswith(start)]
    assert found, start
    return found[-1]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_the_yaml(robot, tmp_path, mistake):
    text, key, start, words = MISTAKES[mistake]
    with pytest.raises(hc.LoadError) as caught:
        robot(yaml=text)
    error = caught.value
    assert error.file == str(tmp_path / "arms.yaml")
    assert error.key == key
    assert error.line == (None if start is None else line_of(text, start))
    for word in words:
        assert word in str(error)
    assert str(error).startswith(
        f"{error.file}:" if start is None else f"{error.file}:{error.line}: "
    )


# --------------------------------------------------------------------------- mistakes in URDF

FLAWS = {  # old text, new text, key, where the fault is, words of the message
    "root element": ("robot", "mujoco", None, "<mujoco", ["<robot>", "<mujoco>"]),
    "no robot name": (' name="two_arms"', "", "robot", "<robot", ["'name'", "missing"]),
    "not XML": (
        '<axis xyz="0 3 4"/>', '<axis xyz="0 3 4">',
        None, "</joint>", ["not XML", "mismatched"],
    ),
    "unquoted": ('name="mount"', "name=mount", None, "name=mount", ["not XML"]),
    "undefined entity": ("two_arms", "&xxe;", None, "&xxe;", ["not XML", "undefined entity"]),
    "document type": (
        "<robot", '<!DOCTYPE robot [<!ENTITY x "y">]>\n<robot',
        None, "<!DOCTYPE", ["entities"],
    ),
    "xacro": ('<link name="base"/>', '<xacro:arm/>', None, "<xacro", ["xacro"]),
    "link without name": (
        '<link name="tip_a"/>', "<link/>",
        "link", "<link/>", ["'name'", "missing"],
    ),
    "empty name": (
        '<link name="tip_a"/>', '<link name=""/>',
        "link", '<link name=""', ["name must be a text"],
    ),
    "link twice": (
        '<link name="tip_a"/>', '<link name="base"/>',
        "base", '<link name="base"', ["two links", "line 3"],
    ),
    "joint twice": ('name="mount"', 'name="a"', "a", 'name="a" type="fixed"', ["two joints"]),
    "no mass": ('<mass value="0.7"/>', "", "fore_a", '<inertial', ["<mass>", "missing"]),
    "mass twice": (
        '<mass value="0.7"/>', '<mass value="0.7"/>\n<mass value="7"/>',
        "fore_a", '<mass value="7"', ["twice"],
    ),
    "mass in words": (
        '<mass value="0.7"/>', '<mass value="heavy"/>',
        "fore_a", "heavy", ["finite number", "'heavy'"],
    ),
    "mass nan": (
        '<mass value="0.7"/>', '<mass value="nan"/>',
        "fore_a", '"nan"', ["finite number"],
    ),
    "mass overflow": (
        '<mass value="0.7"/>', '<mass value="1e999"/>',
        "fore_a", "1e999", ["finite"],
    ),
    "no izz": (' izz="0.04"', "", "arm_a", '<inertia ixx="0.02" ixy="0.001"', ["'izz'"]),
    "two coordinates": (
        'xyz="0.1 0.02 0.03"', 'xyz="0.1 0.02"',
        "arm_a", 'xyz="0.1', ["xyz", "three"],
    ),
    "quaternion": ('rpy="0 0 1"', 'quat_xyzw="0 0 0 1"', "mount", "quat_xyzw", ["rpy"]),
    "no type": (' type="fixed"', "", "mount", 'name="mount"', ["'type'", "missing"]),
    "unknown type": (
        '"fixed"', '"fixd"',
        "mount", "fixd", ["did you mean 'fixed'", "continuous", "joint_type"],
    ),
    "no parent": ('<parent link="fore_a"/>', "", "mount", 'name="mount"', ["<parent>", "missing"]),
    "unknown parent": (
        '<parent link="fore_a"/>', '<parent link="for_a"/>',
        "mount", "for_a", ["'for_a'", "did you mean 'fore_a'", "'tip_a'"],
    ),
    "unknown child": (
        '<child link="tip_a"/>', '<child link="tip"/>',
        "mount", '"tip"', ["'tip'", "'tip_a'"],
    ),
    "no limit": (
        '<limit lower="-2" upper="2" effort="11" velocity="3"/>', "",
        "a", 'name="a"', ["<limit>"],
    ),
    "no effort": (' effort="11"', "", "a", 'lower="-2"', ["'effort'"]),
    "no axis": ('<axis xyz="0 3 4"/>', '<axis xyz="0 0 0"/>', "elbow", '"0 0 0"', ["no direction"]),
    "joint universe": ('name="mount"', 'name="universe"', "universe", "universe", ["world"]),
    "link universe": ("tip_a", "universe", "universe", '<link name="universe"', ["world"]),
    "two parents": (
        '<child link="arm_b"/>', '<child link="tip_a"/>',
        "b", 'name="b"', ["'mount' and 'b'", "closed_loop"],
    ),
    "two roots": (
        '<link name="base"/>', '<link name="base"/>\n<link name="alone"/>',
        "alone", "alone", ["'base', 'alone'"],
    ),
    "ring": (
        '<parent link="base"/>\n    <child link="arm_b"/>',
        '<parent link="arm_b"/>\n    <child link="arm_b"/>',
        "b", 'name="b"', ["'arm_b'", "each other"],
    ),
    "planar": (
        'name="elbow" type="revolute"', 'name="elbow" type="planar"',
        "elbow", '"0 3 4"', ["0 0 1"],
    ),
    "mimic unknown": (
        '<dynamics damping="0.2"/>', '<mimic joint="c"/>',
        "elbow", "mimic", ["'c'", "'a', 'b'"],
    ),
    "mimic itself": (
        '<dynamics damping="0.2"/>', '<mimic joint="elbow"/>',
        "elbow", "mimic", ["'a', 'b'"],
    ),
    "mimic fixed": (
        '<dynamics damping="0.2"/>', '<mimic joint="mount"/>',
        "elbow", "mimic", ["'mount'"],
    ),
    "fixed mimic": (
        '<child link="tip_a"/>', '<child link="tip_a"/><mimic joint="a"/>',
        "mount", "mimic", ["fixed joint cannot"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("flaw", FLAWS)
def test_flaw_in_the_urdf(robot, tmp_path, flaw):
    old, new, key, where, words = FLAWS[flaw]
    text = (
        URDF.replace(old, new)
        if flaw in ("root element", "link universe")
        else with_joint(old, new)
    )
    with pytest.raises(hc.LoadError) as caught:
        robot(text)
    error = caught.value
    assert error.file == str(tmp_path / "arms.urdf")
    assert error.key == key
    lines = text.split("\n")
    assert where in lines[error.line - 1], (error.line, lines[error.line - 1], str(error))
    for word in words:
        assert word in str(error)


@pytest.mark.parametrize(
    ("urdf", "words"),
    [
        ("", "not XML"),
        ("\n\n", "not XML"),
        ("<robot", "not XML"),
        ("<robot/>", "'name'"),
        ('<robot name="r"/>', "no links"),
        ('<robot name="r"><link name="a"/></robot>', "no joints"),
        (URDF + "<more/>", "not XML"),
        (URDF.replace('"0.7"', '"-7"'), "negative mass"),
        (URDF.replace('"0.7"', '"1e308"').replace('"1.5"', '"1e308"'), "finite.*at most 1e"),
    ],
)
def test_no_mechanism(robot, urdf, words):
    yaml = "closed_loop: []\ntype: []\nname_mot: []\njoint_name: [elbow]\njoint_type: [FIXED]\n"
    with pytest.raises(hc.LoadError, match=words) as caught:
        robot(urdf, yaml if "elbow" in urdf and "1e308" in urdf else None)
    assert caught.value.file.endswith("arms.urdf")


def test_replacing_a_joint_of_a_mimic(robot, tmp_path):
    for joint in ("elbow", "b"):
        with pytest.raises(hc.LoadError, match=r"mimics 'b'.*neither") as caught:
            robot(MIMIC, replaced(joint, "FIXED").replace("b, a", "a"))
        assert caught.value.key == "elbow"
        assert "mimic" in MIMIC.split("\n")[caught.value.line - 1]


def test_names_that_the_reader_needs_itself(robot):
    with pytest.raises(hc.LoadError, match="root_joint"):
        robot(with_joint('name="mount"', 'name="root_joint"'), free_flyer=True)
    taken = with_joint('name="mount"', 'name="elbow[1]"')
    with pytest.raises(hc.LoadError, match=r"needs the name 'elbow\[1\]'"):
        robot(taken, replaced("elbow", "UJOINT_XY"))


def test_a_tree_too_deep_for_pinocchio(robot):
    n = 1001
    links = "".join(f'<link name="l{i}"/>' for i in range(n + 1))
    joint = '<joint name="j{0}" type="fixed"><parent link="l{0}"/><child link="l{1}"/></joint>'
    joints = "".join(joint.format(i, i + 1) for i in range(n))
    with pytest.raises(hc.LoadError, match="1000 links deep"):
        robot(f'<robot name="deep">{links}{joints}</robot>', None)


# ---------------------------------------------------------------------------------- bad files


def test_missing_files(tmp_path, robot):
    for path in (
        tmp_path / "no.urdf",
        tmp_path,
        tmp_path / "no" / "no.urdf",
        "a\0b.urdf",
        "x" * 5000,
    ):
        with pytest.raises(hc.LoadError) as caught:
            hc.load(path)
        assert caught.value.file
    with pytest.raises(hc.LoadError, match=r"robot_file\('five_bar'\)"):
        hc.load(tmp_path / "five_bar.urdf")
    with pytest.raises(hc.LoadError, match="no such file") as caught:
        robot(closures=tmp_path / "no.yaml")
    assert caught.value.file == str(tmp_path / "no.yaml")
    (tmp_path / "robot.yaml").symlink_to(tmp_path / "gone.yaml")
    (tmp_path / "arms.yaml").unlink()
    with pytest.raises(hc.LoadError, match="no such file"):
        robot(yaml=None)


def test_not_a_path():
    for path in (None, 3, ["a"], b"a.urdf"):
        with pytest.raises(hc.InputError, match="path must be a path"):
            hc.load(path)


def test_unreadable_files(tmp_path, robot):
    with pytest.raises(hc.LoadError, match="cannot be read"):
        robot(closures=tmp_path)
    with pytest.raises(hc.LoadError, match="give the URDF"):
        hc.load(tmp_path / "arms.yaml")
    (tmp_path / "arms.urdf").write_bytes(URDF.encode("utf-16"))
    with pytest.raises(hc.LoadError, match="UTF-8") as caught:
        hc.load(tmp_path / "arms.urdf")
    assert caught.value.line == 1
    (tmp_path / "arms.urdf").write_bytes(b"<robot\n name='\xe9'/>")
    with pytest.raises(hc.LoadError, match="UTF-8") as caught:
        hc.load(tmp_path / "arms.urdf")
    assert caught.value.line == 2
    (tmp_path / "arms.urdf").write_bytes(bytes(range(256)) * 10)
    with pytest.raises(hc.LoadError):
        hc.load(tmp_path / "arms.urdf")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root reads every file")
def test_file_without_permission(tmp_path, robot):
    robot()
    (tmp_path / "arms.yaml").chmod(0)
    with pytest.raises(hc.LoadError, match="cannot be read"):
        hc.load(tmp_path / "arms.urdf")


# ------------------------------------------------------------------------------------ mutations

WORDS = [
    "", " ", "\n", '"', "<", ">", "/>", "<!--", "]]>", "&amp;", "&#0;", "&#10;", "\x00", "é",
    "\U0001f980",
    "nan", "inf", "-1", "0", "1e308", "1e-320", "1e999", "0x1", "1_0", "universe", "root_joint",
    "robot", "link", "joint", "base", "arm_a", "elbow", "continuous", "floating", "planar",
    "prismatic",
    "fixed", '<mimic joint="a"/>', '<mimic joint="b" multiplier="1e300"/>', "<limit/>", "<link/>",
    '<link name="base"/>', "<axis/>", "<inertial/>", "<dynamics/>", "<safety_controller/>",
    "[", "]", "{", "}", ":", ": ", "- ", ",", "&a ", "*a", "!!int ", "!!python/name:os.system ",
    "|", ">",
    "%YAML 1.2", "---\n", "...\n", "\t", "null", "yes", "~", "<<: ", "? ", "SPHERICAL", "FIXED",
    "UJOINT_yz",
    "6d", "x", "rx", "weld", "elbow[0]", "tip_a", "2024-01-01", "1:30",
]  # fmt: skip
RICH = YAML + (
    "closure_names: [c]\njoint_name: [elbow]\njoint_type: [UJOINT_xz]\n"
    "couplings:\n  - {coefficients: {a: 1, b: -2}, offset: 0.1, name: gear}\n"
    "reference: {a: 0.1, elbow: [0.1, 0.2], b: 1}\n"
)
edits = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.sampled_from([0, 0, 1, 3, 8, 40]),
        st.one_of(st.sampled_from(WORDS), st.text(max_size=4)),
    ),
    min_size=1,
    max_size=4,
)


def edited(text, changes):
    for place, length, new in changes:
        i = int(place * len(text))
        text = text[:i] + new + text[i + length :]
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("which", ["urdf", "yaml"])
def test_mutated_files_give_a_mechanism_or_an_error_of_ours(which, tmp_path):
    texts = {"urdf": URDF, "yaml": RICH}
    for name, text in texts.items():
        (tmp_path / f"arms.{name}").write_bytes(text.encode())
    outcomes, blamed = {"loaded": 0, "refused": 0}, set()

    @settings(max_examples=300)
    @given(changes=edits, free_flyer=st.booleans())
    def mutate(changes, free_flyer):
        (tmp_path / f"arms.{which}").write_bytes(edited(texts[which], changes))
        try:
            mech = hc.load(tmp_path / "arms.urdf", free_flyer=free_flyer)
        except hc.LoadError as error:
            outcomes["refused"] += 1
            blamed.add(Path(error.file))
        else:
            outcomes["loaded"] += 1
            assert np.isfinite(mech.reference).all()

    mutate()
    assert min(outcomes.values()) > 10, outcomes
    assert tmp_path / f"arms.{which}" in blamed
    assert {file.parent for file in blamed} == {tmp_path}


def test_mutated_attributes_of_a_valid_document(tmp_path):
    """Well-formed XML with wrong values: what Pinocchio's parser would complain about."""
    pieces = URDF.split('"')
    values = range(1, len(pieces), 2)

    @settings(max_examples=200)
    @given(
        st.lists(st.tuples(st.sampled_from(values), st.sampled_from(WORDS)), min_size=1, max_size=3)
    )
    def mutate(changes):
        changed = list(pieces)
        for i, word in changes:
            changed[i] = word.replace("<", "").replace('"', "").replace("&", "")
        (tmp_path / "arms.urdf").write_text('"'.join(changed), "utf-8")
        with contextlib.suppress(hc.LoadError):
            hc.load(tmp_path / "arms.urdf")

    mutate()


@pytest.mark.parametrize(
    ("before", "after", "meant"),
    [
        ('<axis xyz="0 0 1"/>', '<axes xyz="0 0 1"/>', "axis"),
        ('<origin xyz="0.5 0 0"/>', '<orgin xyz="0.5 0 0"/>', "origin"),
        ('<origin xyz="0.5 0 0"/>', '<origin xzy="0.5 0 0"/>', "xyz"),
        ('<dynamics damping="0.2"/>', '<dynamics dampping="0.2"/>', "damping"),
    ],
)
def test_a_slip_of_the_pen_does_not_change_the_robot(robot, before, after, meant):
    with pytest.raises(hc.LoadError, match=f"did you mean '{meant}'") as caught:
        robot(with_joint(before, after))
    assert caught.value.line


def test_a_robot_that_is_almost_shipped():
    with pytest.raises(hc.LoadError, match="did you mean 'five_bar'"):
        hc.load("fiv_bar")


# ------------------------------------------------------------------------------------ inertias

NO_BODIES = {  # xx, yy, zz, xy, xz, yz and what is wrong
    "iyy below zero": ((1.0, -0.5, 1.0, 0.0, 0.0, 0.0), "negative principal moment"),
    "izz below zero": ((1.0, 1.0, -1.0, 0.0, 0.0, 0.0), "negative principal moment"),
    "large product": ((1.0, 1.0, 1.0, 9.0, 0.0, 0.0), "negative principal moment"),
    "one too large": ((1.0, 1.0, 2.1, 0.0, 0.0, 0.0), "larger than the sum"),
    "turned": ((1.0, 1.55, 1.55, 0.0, 0.0, 0.55), "larger than the sum"),  # 1, 1, 2.1
}
BODIES = {
    "point": (0.0,) * 6,
    "rod": (0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    "rounded rod": (-4e-6, 1.0, 1.000002, 0.0, 0.0, 0.0),
    "disk": (1.0, 1.0, 2.0, 0.0, 0.0, 0.0),
    "rounded disk": (1.0, 1.0, 2.00001, 0.0, 0.0, 0.0),
}


def hinged(suffix, moments, mass=1.0):
    """A file with one hinge, and a body of this inertia on it."""
    xx, yy, zz, xy, xz, yz = moments
    if suffix == "urdf":
        return (
            f'<robot name="r"><link name="base"/><link name="body"><inertial><mass value="{mass}"/>'
            f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="{xz}" iyz="{yz}"/>'
            '</inertial></link><joint name="j" type="continuous"><parent link="base"/>'
            '<child link="body"/><axis xyz="0 0 1"/></joint></robot>'
        )
    if suffix == "sdf":
        inertia = f"<ixx>{xx}</ixx><iyy>{yy}</iyy><izz>{zz}</izz>"
        inertia += f"<ixy>{xy}</ixy><ixz>{xz}</ixz><iyz>{yz}</iyz>"
        return (
            '<sdf version="1.9"><model name="m"><link name="base"/><link name="body"><inertial>'
            f"<mass>{mass}</mass><inertia>{inertia}</inertia></inertial></link>"
            '<joint name="j" type="revolute"><parent>base</parent><child>body</child>'
            "<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"
        )
    full = " ".join(map(str, moments))
    return (
        '<mujoco><worldbody><body name="body"><joint name="j" axis="0 0 1"/>'
        f'<inertial pos="0 0 0" mass="{mass}" fullinertia="{full}"/></body></worldbody></mujoco>'
    )


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml"])
@pytest.mark.parametrize("case", NO_BODIES)
def test_inertias_that_no_body_has_are_refused(suffix, case, tmp_path):
    moments, words = NO_BODIES[case]
    (tmp_path / f"r.{suffix}").write_text(hinged(suffix, moments), "utf-8")
    with pytest.raises(hc.LoadError) as caught:
        hc.load(tmp_path / f"r.{suffix}")
    assert caught.value.line
    if suffix != "xml":  # MuJoCo's own words
        assert words in str(caught.value)
        assert "'body'" in str(caught.value)
        smallest = np.linalg.eigvalsh(matrix_of(moments))[0]
        assert f"{smallest:.6g}" in str(caught.value)


def matrix_of(moments):
    xx, yy, zz, xy, xz, yz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
@pytest.mark.parametrize("case", BODIES)
def test_points_rods_and_rounded_inertias_are_bodies(suffix, case, tmp_path):
    (tmp_path / f"r.{suffix}").write_text(hinged(suffix, BODIES[case]), "utf-8")
    inertia = hc.load(tmp_path / f"r.{suffix}").model.inertias[1]
    assert inertia.inertia == pytest.approx(matrix_of(BODIES[case]), abs=1e-15)


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml"])
def test_negative_masses_are_refused_and_no_mass_is_not(suffix, tmp_path):
    (tmp_path / f"r.{suffix}").write_text(hinged(suffix, BODIES["disk"], -1.0), "utf-8")
    with pytest.raises(hc.LoadError, match="must not be negative; got -1") as caught:
        hc.load(tmp_path / f"r.{suffix}")
    assert caught.value.line
    (tmp_path / f"r.{suffix}").write_text(hinged(suffix, BODIES["disk"], 0.0), "utf-8")
    assert hc.load(tmp_path / f"r.{suffix}").model.inertias[1].mass == 0.0


def test_the_inertia_of_a_link_that_is_fixed_to_another_counts_by_itself(robot):
    """Together they would be a body: each must be one."""
    odd = '<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.003"/>'
    inertial = f'<inertial><mass value="0.1"/>{odd}</inertial>'
    urdf = URDF.replace('<link name="tip_a"/>', f'<link name="tip_a">{inertial}</link>')
    with pytest.raises(hc.LoadError, match=r"link 'tip_a'.*larger than the sum") as caught:
        robot(urdf)
    assert caught.value.line == 1 + urdf[: urdf.index(odd)].count("\n")


# ------------------------------------------------------------------------------------ warnings


def told(caplog):
    return " | ".join(record.getMessage() for record in caplog.records)


def test_a_urdf_without_yaml_is_told(robot, tmp_path, caplog):
    robot()
    robot(yaml=EMPTY_SHEET)
    assert told(caplog) == ""
    (tmp_path / "arms.yaml").unlink()
    robot(yaml=None)
    assert "no YAML file beside it (arms.yaml or robot.yaml)" in told(caplog)


EMPTY_SHEET = "closed_loop: []\ntype: []\nname_mot: []\n"


def test_the_other_suffix_of_yaml(tmp_path, caplog):
    (tmp_path / "arms.urdf").write_text(URDF)
    (tmp_path / "robot.yml").write_text(EMPTY_SHEET.replace("mot: []", "mot: [elbow]"))
    assert hc.load(tmp_path / "arms.urdf").actuated == ("elbow",)
    (tmp_path / "arms.yml").write_text(YAML)
    assert hc.load(tmp_path / "arms.urdf").actuated == ("b", "a")
    assert told(caplog) == ""
    (tmp_path / "arms.yaml").write_text(EMPTY_SHEET)
    assert hc.load(tmp_path / "arms.urdf").actuated == ()
    assert "arms.yaml is read, and arms.yml is not" in told(caplog)


@pytest.mark.parametrize("joint", ["a", "b"])  # b is continuous: its angle wraps
@pytest.mark.parametrize("angle", [6.2, -90.0])
def test_a_reference_of_more_than_a_turn_is_told(robot, caplog, joint, angle):
    mech = robot(yaml=EMPTY_SHEET + f"reference: {{{joint}: {angle}}}")
    assert hc.joint_motion(mech, joint, mech.reference).value[0] == pytest.approx(
        angle if joint == "a" else (angle + np.pi) % (2 * np.pi) - np.pi
    )
    assert (f"are these degrees? '{joint}': -90" in told(caplog)) == (angle == -90.0)


def test_turns_that_a_coupling_counts_are_no_matter(robot, caplog):
    couplings = "couplings:\n  - {coefficients: {a: 1, b: -10}}\n"
    robot(yaml=EMPTY_SHEET + couplings + "reference: {a: 10, b: 1}")
    assert told(caplog) == ""


@pytest.mark.parametrize("suffix", ["sdf", "xml"])
def test_a_reference_of_more_than_a_turn_in_other_formats(suffix, tmp_path, caplog):
    text = hinged(suffix, BODIES["disk"])
    if suffix == "xml":
        text = text.replace("</mujoco>", '<keyframe><key qpos="90"/></keyframe></mujoco>')
    else:
        (tmp_path / "r.yaml").write_text("reference: {j: 90}")
    (tmp_path / f"r.{suffix}").write_text(text)
    assert hc.load(tmp_path / f"r.{suffix}").reference == [90.0]
    assert "are these degrees? 'j': 90" in told(caplog)


@pytest.mark.parametrize(
    "rotor",
    [
        '<dynamics damping="0.2" armature="0.1"/>',
        '<dynamics damping="0.2"/><drake:rotor_inertia xmlns:drake="d" value="0.1"/>',
        '<dynamics damping="0.2"/><rotorInertia value="0.1"/>',
    ],
)
def test_rotors_in_dialects_of_urdf_are_told(robot, caplog, rotor):
    urdf = URDF.replace('<dynamics damping="0.2"/>', rotor)
    robot(urdf)
    line = 1 + urdf[: urdf.index(rotor)].count("\n")
    assert f"not read (line {line})" in told(caplog)


# --------------------------------------------------------------------------------------- words


def test_the_name_of_a_shipped_robot_is_no_path():
    with pytest.raises(
        hc.LoadError, match=r"there is no such file; .* hc.robot_file\('five_bar'\)"
    ):
        hc.load("five_bar")


@pytest.mark.parametrize(
    ("loops", "words"),
    [
        ("[tip_a, arm_b]", "list of pairs.*'tip_a' is no pair.*closed_loop: [[tip_a, arm_b]]"),
        ("[[tip_a, arm_b], a, b]", "list of pairs.*'a' is no pair.*closed_loop: [[a, b]]"),
        ("tip_a", "expected a list, such as [a, b]; got 'tip_a'.*is a list too: [tip_a]"),
    ],
)
def test_what_is_no_list_of_pairs_is_shown_as_one(robot, loops, words):
    with pytest.raises(hc.LoadError) as caught:
        robot(yaml=YAML.replace("[[tip_a, arm_b]]", loops))
    for part in words.split(".*"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("elbwo", "did you mean 'elbow'"),
        ("Elbow", "did you mean 'elbow'"),
        ("arm_a", "'arm_a' is a link, and a motor needs a coordinate; it moves with joint 'a'"),
        ("base", "'base' is a link, and a motor needs a coordinate; it does not move"),
    ],
)
def test_motors_that_are_no_coordinates(robot, name, words):
    with pytest.raises(hc.LoadError, match=words) as caught:
        robot(yaml=EMPTY_SHEET.replace("mot: []", f"mot: [{name}]"))
    assert "'a', 'elbow', 'b'" in str(caught.value)


def test_words_of_a_name_in_another_order(tmp_path):
    beside = hc.robot_file("five_bar").with_suffix(".yaml").read_text("utf-8")
    (tmp_path / "r.yaml").write_text(
        beside.replace("mot: [motor_left", "mot: [left_motor"), "utf-8"
    )
    with pytest.raises(hc.LoadError, match="did you mean 'motor_left'"):
        hc.load(hc.robot_file("five_bar"), closures=tmp_path / "r.yaml")
