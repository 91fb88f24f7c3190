"""Reading robots: what the files mean."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pinocchio as pin
import pytest
from documents import URDF, YAML, placement, some_q, with_joint
from shared_robots import SHARED_ROBOT_NAMES, shared_robot

import holoctl as hc
from holoctl.constraints.closure import JOINTS

# ------------------------------------------------------------------------------- our robots


def test_robot_names_and_files():
    names = ("ankle", "delta", "five_bar", "four_bar", "geared_arm", "leg", "stewart")
    assert hc.robot_names() == names
    for name in names:
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


def test_a_rod_has_its_length_in_its_type_and_its_ends_in_moved(robot):
    mech = robot(yaml=YAML.replace("3d", "rod 0.25") + "closure_names: [strut]\n")
    assert mech.constraints == (hc.Rod("tip_a", "arm_b", 0.25, "strut"),)
    assert mech.row_names == ("strut.length",)
    yaml = YAML.replace("3d", "rod 0.25") + "moved: {arm_b-tip_a.b: [0.1, 0, 0, 0, 0, 0]}\n"
    with pytest.raises(hc.LoadError, match=r"'tip_a-arm_b\.b'"):
        robot(yaml=yaml)
    (rod,) = robot(yaml=yaml.replace("arm_b-tip_a", "tip_a-arm_b")).constraints
    assert (rod.length, rod.b[0], rod.b[1].translation[0]) == (0.25, "arm_b", 0.1)


def test_a_rod_of_a_file_is_the_rod_of_a_program(robot):
    """A length that the reference does not have: assembling stretches the arms to it."""
    mech = robot(yaml=YAML.replace("3d", "rod 0.3"))
    q, _ = hc.assemble(mech)
    ends = [placement(mech.model, q, frame).translation for frame in ("tip_a", "arm_b")]
    assert np.linalg.norm(ends[1] - ends[0]) == pytest.approx(0.3, abs=1e-11)


@pytest.mark.parametrize(
    ("type_", "said"),
    [
        ("rod", "a rod takes its length, m, as in 'rod 0.25'"),
        ("rod long", "the length of a rod must be a number, m; got 'long'"),
        ("rod -1", r"Rod 'tip_a-arm_b': length \(m\) must be .* got -1"),
        ("screw x", "the pitch of a screw must be a number, m/rad; got 'x'"),
        ("slot", "there is no closure 'slot'.* screw, rod, or any of 'x y z rx ry rz'"),
    ],
)
def test_types_with_a_number(robot, type_, said):
    with pytest.raises(hc.LoadError, match=said):
        robot(yaml=YAML.replace("3d", type_))


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
