"""``holoctl doctor --out FILE.yaml``, and the key ``moved`` of a YAML file."""

from __future__ import annotations

import shutil

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
import yaml
from refusals import refused
from shared_robots import cassie_sdf

import holoctl as hc
from holoctl.app.cli import main

SHEET = """# a Bennett linkage in six digits
closed_loop: [[tip, foot]]
type: [revolute]
closure_names: [pin]
name_mot: [hinge_1]
name: bennett six
"""


def bennett_urdf() -> str:
    """The three links of the drawing, in numbers of six decimals."""
    mech = oc.EVERY["bennett"]().mechanism(askew=True)
    closure = mech.constraints[0]
    inertia = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'  # noqa: E501
    links = {0: "ground"} | {j: f"link_{j}" for j in range(1, mech.model.njoints)}
    parts = [f'<link name="{name}">{inertia if j else ""}</link>' for j, name in links.items()]

    def joint(name: str, kind: str, parent: str, child: str, place: pin.SE3) -> str:
        rpy, xyz = pin.rpy.matrixToRpy(place.rotation), place.translation
        numbers = [" ".join(f"{x:.6f}" for x in v) for v in (xyz, rpy)]
        return (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{numbers[0]}" rpy="{numbers[1]}"/><axis xyz="0 0 1"/></joint>'
        )

    for j in range(1, mech.model.njoints):
        above = links[mech.model.parents[j]]
        place = mech.model.jointPlacements[j]
        parts.append(joint(mech.model.names[j], "continuous", above, links[j], place))
    for name, side in (("tip", closure.a), ("foot", closure.b)):
        found = hc.protocols.resolve_frame(mech.model, side, name)
        parts.append(f'<link name="{name}"/>')
        parts.append(joint(f"{name}_fix", "fixed", links[found.joint], name, found.placement))
    return f'<robot name="bennett">{"".join(parts)}</robot>'


@pytest.fixture
def robot(tmp_path):
    (tmp_path / "bennett.urdf").write_text(bennett_urdf())
    (tmp_path / "bennett.yaml").write_text(SHEET)
    return tmp_path / "bennett.urdf"


def assert_same_geometry(a: hc.Mechanism, b: hc.Mechanism) -> None:
    for one, other in zip(a.model.jointPlacements, b.model.jointPlacements, strict=True):
        np.testing.assert_allclose(one.homogeneous, other.homogeneous, rtol=0.0, atol=1e-15)
    for one, other in zip(a.bound, b.bound, strict=True):
        for f, g in ((one.frames1[0], other.frames1[0]), (one.frames2[0], other.frames2[0])):
            assert f.joint == g.joint
            np.testing.assert_allclose(
                f.placement.homogeneous, g.placement.homogeneous, rtol=0.0, atol=1e-15
            )


def test_the_file_that_is_written_gives_the_exact_mechanism(robot, tmp_path, capsys):
    out = tmp_path / "exact.yaml"
    assert main(["doctor", str(robot), "--out", str(out)]) == 0
    result = hc.repaired_geometry(hc.load(robot))
    printed = capsys.readouterr().out
    assert printed == f"{result}\n\nwritten: {out}\n"
    assert 1e-8 < result.error_before < 1e-5
    mech = hc.load(robot, closures=out)
    assert mech.tolerance == 0.0
    assert mech.name == "bennett six"
    assert mech.actuated == ("hinge_1",)
    assert mech.constraint_names == ("pin",)
    assert_same_geometry(mech, result.mech)
    report = hc.mobility(mech)
    assert (report.finite_dof, report.ok) == (1, True)
    given, written = (yaml.safe_load(p.read_text()) for p in (robot.with_suffix(".yaml"), out))
    assert written == given | {"tolerance": 0, "moved": written["moved"]}
    assert {"pin.a", "pin.b"} <= set(written["moved"])


def test_moves_behind_moves(robot, tmp_path):
    """A file that moves already is made exact with the moves of both."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    moved = "moved: {hinge_2: [1e-6, 0, 0, 0, 2e-6, 0], pin.a: [0, 0, 1e-6, 0, 0, 0]}\n"
    first.write_text(SHEET + "tolerance: 2e-4\n" + moved)
    mech = hc.load(robot, closures=first)
    assert mech.tolerance == 2e-4
    plain = hc.load(robot)
    place = plain.model.jointPlacements[2].inverse() * mech.model.jointPlacements[2]
    np.testing.assert_allclose(place.translation, [1e-6, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(pin.log3(place.rotation), [0.0, 2e-6, 0.0], atol=1e-15)
    assert main(["doctor", str(robot), "--closures", str(first), "--out", str(second)]) == 0
    assert_same_geometry(hc.load(robot, closures=second), hc.repaired_geometry(mech).mech)


def test_a_closure_between_links_keeps_its_name_and_frames(robot, tmp_path):
    sheet = tmp_path / "moved.yaml"
    sheet.write_text(
        SHEET.replace("closure_names: [pin]\n", "") + "moved: {tip-foot.b: [0,0,1e-3,0,0,0]}\n"
    )
    mech = hc.load(robot, closures=sheet)
    assert mech.constraint_names == ("tip-foot",)
    name, place = mech.constraints[0].b
    assert name == "foot"
    assert place.translation.tolist() == [0.0, 0.0, 1e-3]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("moved: {hinge_9: [0, 0, 0, 0, 0, 0]}", ("hinge_9", "hinge_1", "pin.a")),
        ("moved: {pin.c: [0, 0, 0, 0, 0, 0]}", ("pin.c", "pin.a")),
        ("moved: {hinge_1: [0, 0, 0]}", ("six numbers", "hinge_1")),
        ("moved: {hinge_1: 3}", ("six numbers",)),
        ("moved: [hinge_1]", ("a mapping",)),
        ("moved: {hinge_1: [0, 0, 0, 0, 0, x]}", ("a finite number",)),
    ],
)
def test_what_moves_must_be_there(robot, tmp_path, line, words):
    sheet = tmp_path / "wrong.yaml"
    sheet.write_text(SHEET + line + "\n")
    error = refused(lambda: hc.load(robot, closures=sheet), hc.LoadError, *words)
    assert (error.key, error.line) == ("moved", SHEET.count("\n") + 1)


def test_a_file_that_is_there_stays(robot, tmp_path, capsys):
    out = tmp_path / "mine.yaml"
    out.write_text("mine")
    assert main(["doctor", str(robot), "--out", str(out)]) == 1
    assert "mine.yaml exists already" in capsys.readouterr().err
    assert out.read_text() == "mine"


def test_an_mjcf_has_no_sheet(tmp_path, capsys):
    path = tmp_path / "robot.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint name="j"/><inertial pos="0 0 0" mass="1" '
        'diaginertia="1 1 1"/></body></worldbody></mujoco>'
    )
    assert main(["doctor", str(path), "--out", str(tmp_path / "out.yaml")]) == 1
    err = capsys.readouterr().err
    assert "InputError" in err
    assert "hc.repaired_geometry" in err
    assert not (tmp_path / "out.yaml").exists()


def test_parts_that_do_not_fit_write_nothing(robot, tmp_path, capsys):
    text = robot.read_text()
    start = text.index('<origin xyz="', text.index('name="tip_fix"')) + len('<origin xyz="')
    robot.write_text(text[:start] + "0.05 " + text[start:].split(" ", 1)[1])
    assert main(["doctor", str(robot), "--out", str(tmp_path / "out.yaml")]) == 1
    assert "AssemblyError" in capsys.readouterr().err
    assert not (tmp_path / "out.yaml").exists()


def test_a_robot_without_a_sheet_gets_one(tmp_path, caplog):
    shutil.copy(hc.robot_file("four_bar"), tmp_path / "bare.urdf")
    out = tmp_path / "out.yaml"
    assert main(["doctor", str(tmp_path / "bare.urdf"), "--out", str(out)]) == 0
    assert yaml.safe_load(out.read_text()) == {
        "closed_loop": [], "type": [], "name_mot": [], "tolerance": 0, "moved": {},
    }  # fmt: skip
    assert hc.load(tmp_path / "bare.urdf", closures=out).constraints == ()


def test_an_sdf_moves_too(tmp_path):
    path, sheet = cassie_sdf("cassie_v2"), tmp_path / "moved.yaml"
    plain = hc.load(path)
    joint, closure = plain.model.names[3], plain.constraint_names[0]
    sheet.write_text(
        f"moved: {{{joint}: [1e-6, 0, 0, 0, 0, 2e-6], {closure}.a: [0, 1e-6, 0, 0, 0, 0]}}"
    )
    mech = hc.load(path, closures=sheet)
    place = plain.model.jointPlacements[3].inverse() * mech.model.jointPlacements[3]
    np.testing.assert_allclose(place.translation, [1e-6, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(pin.log3(place.rotation), [0.0, 0.0, 2e-6], atol=1e-15)
    before, after = (m.bound[0].frames1[0].placement for m in (plain, mech))
    shift = (before.inverse() * after).translation
    np.testing.assert_allclose(shift, [0.0, 1e-6, 0.0], atol=1e-15)
