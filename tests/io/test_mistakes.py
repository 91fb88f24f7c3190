"""Every mistake in a URDF or its sheet is named, with its line."""

from __future__ import annotations

import os

import pytest
from documents import EMPTY_SHEET, MIMIC, TREE, URDF, YAML, line_of, replaced, with_joint

import holoctl as hc

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
    "motor at a closure": (
        YAML.replace("name_mot: [", "closure_names: [pin]\nname_mot: [pin, "),
        "name_mot", "name_mot", ["'pin' is a closure", "another joint", "'a', 'elbow', 'b'"],
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


# --------------------------------------------------------------------------------- mistakes in URDF


FLAWS = {  # old text, new text, key, where the fault is, words of the message
    "root element": ("robot", "mujoco", None, "<mujoco", ["<robot>", "<mujoco>"]),
    "robot name misspelt": (
        'robot name="two_arms"', 'robot nmae="two_arms"', "robot", "<robot", ["'nmae'", "'name'"],
    ),
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
        "b", 'name="b"', ["'arm_b'", "cycle of parents"],
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
        ("<robot/>", "no links"),
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


# ---------------------------------------------------------------------------------------- bad files


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


# -------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize("folder", [False, True])
def test_the_name_of_a_shipped_robot_is_no_path(monkeypatch, tmp_path, folder):
    monkeypatch.chdir(tmp_path)
    if folder:
        (tmp_path / "five_bar").mkdir()
    with pytest.raises(
        hc.LoadError, match=r"there is no such file; .* hc.robot_file\('five_bar'\)"
    ):
        hc.load("five_bar")


@pytest.mark.parametrize(
    ("loops", "words"),
    [
        ("[tip_a, arm_b]", "list of pairs.*'tip_a' is not a pair.*closed_loop: [[tip_a, arm_b]]"),
        ("[[tip_a, arm_b], a, b]", "list of pairs.*'a' is not a pair.*closed_loop: [[a, b]]"),
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
