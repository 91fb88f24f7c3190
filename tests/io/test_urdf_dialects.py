"""Loops, couplings and springs in dialects of URDF, against kinematics written out here."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from documents import EMPTY_SHEET, URDF, YAML, line_of

import holoctl as hc

SHEET = EMPTY_SHEET.replace("name_mot: []", "name_mot: [a]")
NODE = 'xyz="0.1 -0.2 0.05" rpy="0.2 0.4 -0.3"'
OTHER = 'xyz="-0.05 0.1 0.15" rpy="-0.5 0.1 0.7"'
AXIS, SECOND = (0.6, 0.0, 0.8), (0.0, -1.0, 0.0)
X, Y = (0.1, -0.2, 0.05, 0.2, 0.4, -0.3), (-0.05, 0.1, 0.15, -0.5, 0.1, 0.7)


def words(numbers):
    return " ".join(map(str, numbers))


def rotation(axis, angle):
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def place(x, y, z, roll, pitch, yaw):
    T = np.eye(4)
    T[:3, :3] = rotation((0, 0, 1), yaw) @ rotation((0, 1, 0), pitch) @ rotation((1, 0, 0), roll)
    T[:3, 3] = x, y, z
    return T


def turn(axis, angle):
    T = np.eye(4)
    T[:3, :3] = rotation(axis, angle)
    return T


def links(q):
    """The links of `URDF` in the world: numbers as they stand there."""
    a, elbow, b = q
    found = {"base": np.eye(4), "world": np.eye(4)}
    found["arm_a"] = place(0, 0.1, 0, 0.3, -0.2, 0.1) @ turn((0, 0, 1), a)
    found["fore_a"] = found["arm_a"] @ place(0.3, 0, 0, -0.4, 0.5, 0.6) @ turn((0, 3, 4), elbow)
    found["tip_a"] = found["fore_a"] @ place(0.25, 0, 0, 0, 0, 1)
    found["arm_b"] = place(0.5, 0, 0, 0, 0, 0) @ turn((0, 0, 1), b)
    return found


def with_element(*elements):
    limit = '<limit effort="1" velocity="1" lower="-9" upper="9"/>'
    base = URDF.replace('name="b" type="continuous">', f'name="b" type="revolute">{limit}')
    head = base.replace('name="two_arms"', 'name="two_arms" xmlns:drake="http://drake.mit.edu"')
    return head.replace("</robot>", "\n".join(elements) + "\n</robot>")


LOOP = '<loop name="l" type="{}"><predecessor link="tip_a"><origin {}/></predecessor>'
LOOP += '<successor link="arm_b"><origin {}/></successor>{}</loop>'
LOOP_JOINT = '<loop_joint name="l" type="{}"><link1 link="tip_a" {}/><link2 link="arm_b" {}/>{}'
LOOP_JOINT += "</loop_joint>"
PROPOSED = '<constraint name="l" type="{}"><parent link="tip_a"/><parent_origin {}/>'
PROPOSED += '<child link="arm_b"/><child_origin {}/>{}</constraint>'
BALL = """<drake:ball_constraint><drake:ball_constraint_body_A name="tip_a"/>
<drake:ball_constraint_p_AP value="0.1 -0.2 0.05"/><drake:ball_constraint_body_B name="arm_b"/>
<drake:ball_constraint_p_BQ value="-0.05 0.1 0.15"/></drake:ball_constraint>"""
ONE = f'<axis xyz="{words(AXIS)}"/>'
PARENT, CHILD = f'<parent_axis xyz="{words(AXIS)}"/>', f'<child_axis xyz="{words(AXIS)}"/>'

LOOPS = {  # the element, what it is, the axes in the two frames
    "loop": (LOOP.format("revolute", NODE, OTHER, ONE), "revolute", AXIS, AXIS),
    "loop, no end of turns": (LOOP.format("continuous", NODE, OTHER, ONE), "revolute", AXIS, AXIS),
    "loop, axis x": (LOOP.format("revolute", NODE, OTHER, ""), "revolute", (1, 0, 0), (1, 0, 0)),
    "loop, plane": (LOOP.format("planar", NODE, OTHER, ONE), "planar", AXIS, AXIS),
    "loop, slide": (LOOP.format("prismatic", NODE, OTHER, ONE), "prismatic", AXIS, AXIS),
    "loop, fixed": (LOOP.format("fixed", NODE, OTHER, ""), "weld", AXIS, AXIS),
    "loop_joint": (LOOP_JOINT.format("continuous", NODE, OTHER, ONE), "revolute", AXIS, AXIS),
    "loop_joint, ball": (LOOP_JOINT.format("spherical", NODE, OTHER, ""), "spherical", AXIS, AXIS),
    "proposed": (PROPOSED.format("revolute", NODE, OTHER, PARENT), "revolute", AXIS, AXIS),
    "proposed, both": (
        PROPOSED.format("revolute", NODE, OTHER, PARENT + CHILD), "revolute", AXIS, AXIS,
    ),
    "proposed, cut link": (PROPOSED.format("link", NODE, OTHER, ""), "weld", AXIS, AXIS),
    "proposed, cross": (
        PROPOSED.format(
            "universal", NODE, OTHER, f'{PARENT}<child_axis xyz="{words(SECOND)}"/>'
        ),
        "universal", AXIS, SECOND,
    ),
    "GRBDA": (
        LOOP.format("position", NODE, OTHER, "").replace("loop", "constraint"),
        "spherical", AXIS, AXIS,
    ),
    "Drake": (BALL, "spherical", AXIS, AXIS),
}  # fmt: skip


def measured(joint, A, B, n, m):
    """Sizes of the parts of the error of a closure that do not depend on the choice of x and y."""
    d = A[:3, :3].T @ (B[:3, 3] - A[:3, 3])
    n, m = np.array(n) / np.linalg.norm(n), np.array(m) / np.linalg.norm(m)
    a, b = A[:3, :3] @ n, B[:3, :3] @ m
    apart, across = np.linalg.norm(d), np.linalg.norm(np.cross(n, d))
    return {
        "revolute": [apart, np.linalg.norm(np.cross(a, b))],
        "spherical": [apart],
        "universal": [apart, abs(a @ b)],
        "planar": [abs(n @ d), np.linalg.norm(np.cross(a, b))],
        "prismatic": [across],
        "weld": [apart],
    }[joint]


PARTS = {
    "revolute": (3, 2), "spherical": (3,), "universal": (3, 1), "planar": (1, 2),
    "prismatic": (2, 3), "weld": (3, 3),
}  # fmt: skip


def sizes(error, joint):
    """Norms of the parts of an error."""
    ends = np.cumsum((0, *PARTS[joint]))
    assert len(error) == ends[-1]
    return [np.linalg.norm(error[i:j]) for i, j in pairwise(ends)]


def states(n=4):
    return np.random.default_rng(5).uniform(-1.0, 1.0, (n, 3))


@pytest.mark.parametrize("free_flyer", [False, True])
@pytest.mark.parametrize("case", LOOPS)
def test_a_loop_is_the_joint_that_is_meant(case, free_flyer, robot, caplog):
    text, joint, n, m = LOOPS[case]
    mech = robot(with_element(text), SHEET, free_flyer=free_flyer, losses=True)
    assert not caplog.records
    assert mech.constraint_names == (("tip_a-arm_b" if case == "Drake" else "l"),)
    for q in states():
        at = links(q)
        A, B = at["tip_a"] @ place(*X), at["arm_b"] @ place(*Y)
        if case == "Drake":
            A, B = at["tip_a"] @ place(*X[:3], 0, 0, 0), at["arm_b"] @ place(*Y[:3], 0, 0, 0)
        full = [*mech.reference[:7], *q] if free_flyer else q
        error = hc.terms(mech, full, np.zeros(mech.nv)).error
        expected = measured(joint, A, B, n, m)
        assert sizes(error, joint)[: len(expected)] == pytest.approx(expected, abs=1e-12)
        if joint in ("prismatic", "weld"):  # the three rows of an orientation
            turned = hc.Closure(mech.constraints[0].a, mech.constraints[0].b, axes="rx ry rz")
            angle = np.arccos((np.trace(A[:3, :3].T @ B[:3, :3]) - 1.0) / 2.0)
            rows = hc.terms(mech.without("l").with_constraints(turned), full, np.zeros(mech.nv))
            assert error[-3:] == pytest.approx(rows.error, abs=1e-14)
            assert np.linalg.norm(error[-3:]) == pytest.approx(2.0 * np.sin(angle / 2.0), rel=1e-9)


SDF_JOINT = (
    '<gazebo><joint name="l" type="{}">{}<parent>{}</parent><child>{}</child>{}</joint></gazebo>'
)
OF_SDF = {  # pose, parent, child, axis, and the frame that the pose is in, the axis in the joint
    "in the child": ("<pose>0.1 -0.2 0.05 0.2 0.4 -0.3</pose>", "arm_b", "tip_a", "", "tip_a"),
    "relative to a link": (
        '<pose relative_to="base">0.1 -0.2 0.05 0.2 0.4 -0.3</pose>', "arm_b", "tip_a", "", "base",
    ),
    "relative to a joint": (
        '<pose relative_to="elbow">0.1 -0.2 0.05 0.2 0.4 -0.3</pose>', "arm_b", "tip_a", "",
        "fore_a",
    ),
    "against the ground": ("<pose>0.1 -0.2 0.05 0.2 0.4 -0.3</pose>", "world", "b", "", "arm_b"),
    "axis of the model": (
        "<pose>0.1 -0.2 0.05 0.2 0.4 -0.3</pose>", "arm_b", "tip_a",
        ' expressed_in="__model__"', "tip_a",
    ),
}  # fmt: skip


@pytest.mark.parametrize("joint", ["revolute", "fixed", "ball", "prismatic"])
@pytest.mark.parametrize("case", OF_SDF)
def test_a_joint_of_sdf_closes_the_loop_where_it_is_drawn(case, joint, robot, caplog):
    pose, parent, child, stated, base = OF_SDF[case]
    axis = f"<axis><xyz{stated}>{words(AXIS)}</xyz></axis>"
    mech = robot(with_element(SDF_JOINT.format(joint, pose, parent, child, axis)), SHEET)
    told = [r for r in caplog.records if "SDF 1.7" in r.getMessage()]
    assert bool(told) == (not stated)
    drawn, child = links((0.0, 0.0, 0.0)), {"b": "arm_b"}.get(child, child)
    J = drawn[base] @ place(*X)
    n = J[:3, :3].T @ AXIS if stated else AXIS
    kind = {"ball": "spherical", "fixed": "weld"}.get(joint, joint)
    assert hc.terms(mech, np.zeros(3), np.zeros(3)).error == pytest.approx(0.0, abs=1e-12)
    for q in states():
        at = links(q)
        A, B = (at[link] @ np.linalg.inv(drawn[link]) @ J for link in (parent, child))
        error = hc.terms(mech, q, np.zeros(3)).error
        expected = measured(kind, A, B, n, n)
        assert sizes(error, kind)[: len(expected)] == pytest.approx(expected, abs=1e-12)


def test_limits_and_friction_of_a_joint_of_sdf_are_those_of_the_closure(robot):
    axis = (
        "<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>2</upper><velocity>3</velocity>"
        "</limit><dynamics><damping>0.3</damping></dynamics></axis>"
    )
    text = with_element(SDF_JOINT.format("revolute", "", "arm_b", "tip_a", axis))
    mech = robot(text, SHEET, losses=True)
    assert mech.limits.velocity["l"] == 3.0
    assert mech.limits.position["l"] == (-1.0, 2.0)
    friction = mech.forces[0]
    assert friction.viscous["l"] == 0.3


def test_a_loop_to_the_base_floats_with_it(robot):
    text = LOOP.format("fixed", NODE, OTHER, "").replace("tip_a", "base")
    fixed, floating = (robot(with_element(text), SHEET, free_flyer=f) for f in (False, True))
    assert fixed.constraints[0].a[0] == "universe"
    assert floating.constraints[0].a[0] == "root_joint"
    world = robot(with_element(text.replace("base", "world")), SHEET, free_flyer=True)
    assert world.constraints[0].a[0] == "universe"


@pytest.mark.parametrize(("by", "frame"), [("FIXED", "a"), ("UJOINT_xz", "elbow[1]")])
def test_a_loop_hangs_on_what_becomes_of_a_joint(by, frame, robot):
    sheet = SHEET + f"joint_name: [elbow]\njoint_type: [{by}]\n"
    text = with_element(LOOP.format("revolute", NODE, OTHER, ONE))
    closure = robot(text, sheet).constraints[0]
    assert closure.a[0] == frame
    plain = robot(text, SHEET)
    mech = robot(text, sheet)
    expected = hc.terms(plain, [0.3, 0.0, 0.2], np.zeros(3)).error
    q = [0.3, 0.2] if by == "FIXED" else [0.3, 0.0, 0.0, 0.2]
    assert hc.terms(mech, q, np.zeros(mech.nv)).error == pytest.approx(expected, abs=1e-12)


def test_couplings_are_sums_of_joints(robot):
    text = '<coupling name="belt"><predecessor link="arm_b"/><successor link="tip_a"/>'
    text += '<ratio value="-2.5"/></coupling>'
    rolling = text.replace("coupling", "constraint").replace('"belt"', '"belt" type="rolling"')
    for element in (text, rolling):
        mech = robot(with_element(element), SHEET)
        a, elbow, b = 0.3, -0.4, 0.7
        error = hc.terms(mech, [a, elbow, b], np.zeros(3)).error
        assert error == pytest.approx([a + elbow + 2.5 * b], abs=1e-14)
    chain = text.replace("arm_b", "arm_a")
    mech = robot(with_element(chain), SHEET)  # what both hang on does not count
    assert dict(mech.constraints[0].coefficients) == {"elbow": 1.0}


def test_springs_of_dialects(robot, caplog):
    damper = "drake:linear_spring_damper"
    values = {
        "body_A": "tip_a", "body_B": "world", "p_AP": "0.1 -0.2 0.05", "p_BQ": "0.5 0.6 0.7",
        "free_length": "0.2", "stiffness": "30", "damping": "0",
    }  # fmt: skip
    inside = "".join(
        f'<{damper}_{word} {"name" if word[:4] == "body" else "value"}="{value}"/>'
        for word, value in values.items()
    )
    gazebo = '<gazebo reference="b"><springStiffness>4</springStiffness>'
    gazebo += "<springReference>0.3</springReference></gazebo>"
    text = with_element(f"<{damper}>{inside}</{damper}>", gazebo)
    mech = robot(text, SHEET, losses=True)
    assert "spring tip_a-world" in mech.force_names
    assert "spring on b" in mech.force_names

    def stored(q):
        p = links(q)["tip_a"] @ [0.1, -0.2, 0.05, 1.0]
        length = np.linalg.norm(p[:3] - [0.5, 0.6, 0.7])
        return 15.0 * (length - 0.2) ** 2 + 2.0 * (q[2] - 0.3) ** 2

    for q in states():
        h = 1e-6 * np.eye(3)
        slope = [(stored(q + d) - stored(q - d)) / 2e-6 for d in h]
        efforts = hc.terms(mech, q, np.zeros(3)).applied.springs
        assert efforts == pytest.approx(-np.array(slope), rel=1e-6, abs=1e-6)
    caplog.clear()
    robot(text, SHEET)
    assert "spring tip_a-world" in caplog.records[0].getMessage()


# ------------------------------------------------------------------------- YAML beside it


def test_a_loop_that_the_yaml_file_closes_too_is_read_from_there(robot, caplog):
    text = with_element(LOOP.format("revolute", NODE, OTHER, ONE))
    mech = robot(text, YAML)
    assert mech.constraint_names == ("tip_a-arm_b",)
    assert "'l'" in "".join(r.getMessage() for r in caplog.records if "takes precedence" in r.msg)
    between = YAML.replace("tip_a", "arm_a") + "closure_names: [other]\n"
    assert robot(text, between).constraint_names == ("other", "l")
    named = between.replace("other", "l")
    assert robot(text, named).constraint_names == ("l",)


def test_without_a_yaml_file_the_loops_are_closed(robot, caplog):
    robot(with_element(BALL), None)
    text = caplog.records[-1].getMessage()
    assert "there are no motors" in text
    assert "nothing is closed" not in text


# ------------------------------------------------------------------------------ what is told

FLAT = BALL.replace("\n", "")
LEFT = {  # what stands in the file, and words of the warning; its first line is told
    "tendon": (
        '<drake:tendon_constraint><drake:tendon_constraint_joint name="a" a="2"/>'
        "</drake:tendon_constraint>", "<drake:tendon_constraint>",
    ),
    "bushing": (
        '<drake:linear_bushing_rpy><drake:bushing_frameA name="arm_a"/>'
        '<drake:bushing_frameC name="arm_b"/></drake:linear_bushing_rpy>', "'arm_a', 'arm_b'",
    ),
    "another dialect": (
        '<tie kind="rope"><end body="arm_a"/><end body="arm_b"/></tie>', "<tie>",
    ),
    "former GRBDA": (
        '<loop_constraint name="c"><parent link="arm_a"/></loop_constraint>',
        "<loop_constraint> 'c'",
    ),
    "unknown type": (LOOP.format("screw", NODE, OTHER, ONE), "'screw' is not known"),
    "unknown words": (LOOP_JOINT.replace("link1", "first").format("fixed", NODE, OTHER, ""), "'l'"),
    "no axis": (PROPOSED.format("revolute", NODE, OTHER, ""), "needs an axis"),
    "two axes": (
        PROPOSED.format("revolute", NODE, OTHER, f'{PARENT}<child_axis xyz="1 0 0"/>'),
        "needs an axis",
    ),
    "half a cross": (PROPOSED.format("universal", NODE, OTHER, PARENT), "needs an axis"),
    "one body": (LOOP.format("fixed", NODE, OTHER, "").replace("arm_b", "fore_a"), "one body"),
    "quaternion": (LOOP.format("fixed", 'quat_xyzw="0 0 1 0"', OTHER, ""), "'quat_xyzw'"),
    "axis elsewhere": (
        LOOP.format("revolute", NODE, OTHER, "").replace("</pred", f"{ONE}</pred"), "<axis>",
    ),
    "axis twice": (LOOP.format("revolute", NODE, OTHER, ONE + ONE), "more than one of 'axis'"),
    "two places": (
        LOOP_JOINT.format("fixed", NODE, OTHER, "").replace("/><link2", '><origin/></link1><link2'),
        "more than one of 'link1_origin'",
    ),
    "no ratio": (
        '<coupling name="c"><predecessor link="arm_b"/><successor link="tip_a"/></coupling>',
        "<ratio> is needed",
    ),
    "ball, switched off": (FLAT.replace("straint>", 'straint enabled="0">', 1), "each once"),
    "ball in a frame": (FLAT.replace("value=", 'frame="base" value=', 1), "each once"),
    "SDF joint of a link": (
        '<gazebo reference="arm_a"><joint name="j" type="fixed"/></gazebo>', "<joint> 'j'",
    ),
    "spring that pushes": (
        '<gazebo reference="a"><springStiffness>-1</springStiffness></gazebo>', "is negative",
    ),
    "MuJoCo": (
        '<mujoco><equality><joint joint1="a"/></equality></mujoco>', "<mujoco>",
    ),
    "plugin": (
        '<gazebo><plugin name="p" filename="libmimic_joint.so"><joint>a</joint>'
        "<mimicJoint>b</mimicJoint></plugin></gazebo>", "<plugin> 'p'",
    ),
    "ros2_control": (
        '<ros2_control name="r"><joint name="b"><param name="mimic">a</param></joint>'
        "</ros2_control>", "<joint> 'b'",
    ),
    "SDF link": ('<gazebo><link name="x"><pose>0 0 0 0 0 0</pose></link></gazebo>', "<link> 'x'"),
    "SDF screw": (SDF_JOINT.format("screw", "", "arm_b", "tip_a", ""), "not known"),
    "SDF of another link": (SDF_JOINT.format("fixed", "", "arm_b", "rod", ""), "not known"),
    "weightless": (
        '<gazebo reference="arm_a"><turnGravityOff>true</turnGravityOff></gazebo>', "'arm_a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_what_is_not_read_is_told_by_name_and_line(case, robot, caplog):
    text, named = LEFT[case]
    whole = with_element(text)
    mech = robot(whole, SHEET, losses=True)
    assert mech.nu == 1
    assert not mech.constraints
    (record,) = caplog.records
    assert "not part of URDF" in record.msg
    assert named in record.getMessage()
    assert f"(line {line_of(whole, text[:12])}" in record.getMessage()


def test_what_a_loop_has_besides_is_told(robot, caplog):
    text = with_element(LOOP.format("revolute", NODE, OTHER, ONE + '<limit lower="1"/>'))
    assert robot(text, SHEET, losses=True).constraint_names == ("l",)
    assert "<limit>" in caplog.records[0].getMessage()
    text = with_element(LOOP.format("fixed", NODE, OTHER, "").replace(' type="', ' on="no" type="'))
    assert robot(text, SHEET, losses=True).constraint_names == ("l",)
    assert "attribute 'on'" in caplog.records[-1].getMessage()


HARMLESS = (
    '<transmission name="t"><joint name="a"/><joint name="b"/></transmission>',
    '<drake:collision_filter_group name="g"><drake:member link="arm_a"/>'
    '<drake:member link="arm_b"/></drake:collision_filter_group>',
    '<gazebo><plugin name="d" filename="drive.so"><left>a</left><right>b</right></plugin></gazebo>',
    '<gazebo reference="arm_a"><material>Gazebo/Red</material><mu1>0.2</mu1></gazebo>',
    '<sensor name="s"><parent link="arm_a"/></sensor>',
    '<ros2_control name="r"><joint name="b"/><joint name="a"/></ros2_control>',
    '<mujoco><compiler balanceinertia="true"/></mujoco>',
)


def test_what_ties_nothing_is_not_told(robot, caplog):
    robot(with_element(*HARMLESS), SHEET, losses=True)
    assert not caplog.records


MISTAKES = {
    "no link": (LOOP.format("fixed", NODE, OTHER, "").replace("tip_a", "tip_b"), "'tip_a'"),
    "no number": (LOOP.format("fixed", 'xyz="0 0 x"', OTHER, ""), "three finite numbers"),
    "too large": (LOOP.format("fixed", 'xyz="0 0 1e99"', OTHER, ""), "three finite numbers"),
    "name of a joint": (LOOP.format("fixed", NODE, OTHER, "").replace('"l"', '"a"'), "'a'"),
    "twice": (LOOP.format("fixed", NODE, OTHER, "") * 2, "two constraints are called 'l'"),
    "no ratio": (
        '<coupling name="c"><predecessor link="arm_b"/><successor link="tip_a"/>'
        '<ratio value="x"/></coupling>', "<ratio> must be a finite number",
    ),
    "a joint of Drake": (
        '<drake:joint name="d" type="ball"><parent link="base"/><child link="c"/></drake:joint>',
        "joint_type in the YAML file",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_have_a_line(case, robot):
    text, named = MISTAKES[case]
    whole = with_element(text)
    with pytest.raises(hc.LoadError) as caught:
        robot(whole, SHEET)
    assert named in str(caught.value)
    assert caught.value.line == line_of(whole, text[:8])
