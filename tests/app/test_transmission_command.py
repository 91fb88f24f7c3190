"""`holoctl transmission`: the numbers of `Transmission.report`, its pictures, and refusals."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

import holoctl as hc
from holoctl.app.cli import main
from holoctl.app.transmission_plot import BEYOND, draw_transmission

KNEE = ["transmission", "leg", "--joints", "knee", "--samples", "10"]


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, capsys.readouterr()


def knee():
    return hc.Transmission(hc.load(hc.robot_file("leg")), ["knee"])


def test_the_report_is_printed(capsys):
    code, out = run(capsys, *KNEE)
    assert code == 0
    assert out.out == f"{knee().report(samples=10)}\n"


def test_the_transmission_is_exported_too(capsys, tmp_path):
    code, out = run(capsys, *KNEE, "--c", str(tmp_path / "one"))
    files = hc.export_c(knee(), tmp_path / "other")
    assert code == 0
    assert out.out.endswith("".join(f"written: {tmp_path / 'one' / f.name}\n" for f in files))
    for file in files:
        assert (tmp_path / "one" / file.name).read_text() == file.read_text()
    code, out = run(capsys, "transmission", "leg", "--c", str(tmp_path / "all"))
    assert code == 1
    assert "--c: name the joints of one transmission too, --joints; found: knee" in out.err
    assert not (tmp_path / "all").exists()


def test_a_package_of_ros_2_has_the_name_of_its_folder(capsys, tmp_path):
    code, out = run(capsys, *KNEE, "--ros2", str(tmp_path / "left_knee"))
    files = hc.export_ros2(knee(), tmp_path / "other", package="left_knee")
    assert code == 0
    for file in files:
        place = file.relative_to(tmp_path / "other")
        assert f"written: {tmp_path / 'left_knee' / place}\n" in out.out
        assert (tmp_path / "left_knee" / place).read_text() == file.read_text()
    code, out = run(capsys, *KNEE, "--ros2", str(tmp_path / "Knee"))
    assert code == 1
    assert "package must begin with a lower-case letter" in out.err
    code, out = run(capsys, "transmission", "leg", "--ros2", str(tmp_path / "all"))
    assert code == 1
    assert "--ros2: name the joints of one transmission too" in out.err
    assert not {"Knee", "all"} & {path.name for path in tmp_path.iterdir()}


def test_ranges_and_the_start_are_those_of_the_options(capsys):
    code, out = run(capsys, *KNEE, "--range", "knee=-1.2:-0.4", "--set", "knee=-1.0", "--json")
    found, leg = json.loads(out.out), hc.load(hc.robot_file("leg"))
    assert code == 0
    q = leg.reference.copy()
    q[leg.coordinate_names.index("knee")] = -1.0
    tr = hc.Transmission(leg, ["knee"], hc.assemble(leg, q, locked=["knee"])[0])
    report = tr.report([-1.2], [-0.4], samples=10)
    assert (found["lower"], found["upper"]) == ([-1.2], [-0.4])
    np.testing.assert_allclose(found["determinant"], report.determinant, rtol=1e-9)
    assert found["errors"]["constant J"]["worst"] == pytest.approx(
        report.errors["constant J"][1], rel=1e-9
    )
    assert len(found["polytopes"]) == 3


def test_a_row_for_each_posture(capsys, tmp_path):
    path = tmp_path / "knee.csv"
    code, _ = run(capsys, *KNEE, "--out", str(path))
    rows = list(csv.reader(io.StringIO(path.read_text())))
    assert code == 0
    assert rows[0] == ["knee", "status", "determinant", "noise gain"]
    y, _, determinant, _ = np.array(rows[1:], dtype=float).T
    tr = knee()
    first = abs(tr.jacobian(tr.y_start)[0, 0])
    assert determinant[50] == pytest.approx(abs(tr.jacobian(y[50:51])[0, 0]) / first, rel=1e-9)


def texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_picture_of_an_ankle(capsys, tmp_path):
    path = tmp_path / "ankle.png"
    code, out = run(
        capsys, "transmission", "ankle", "--joints", "ankle_pitch,ankle_roll", "--samples", "3",
        "--range", "ankle_pitch=-1.2:1.2", "--out", str(path),
    )  # fmt: skip
    assert code == 0
    assert out.out.endswith(f"written: {path}\n")
    assert path.stat().st_size > 10_000


def test_the_box_of_joint_limits_touches_the_polytope_of_the_start():
    tr = hc.Transmission(hc.load(hc.robot_file("ankle")), ["ankle_pitch", "ankle_roll"])
    report = tr.report([-0.1, -0.05], [0.1, 0.05], samples=3)
    workspace, efforts, errors = draw_transmission(report, [False, False]).axes
    assert workspace.get_xlabel() == "ankle_pitch (rad)"
    assert efforts.get_ylabel() == "ankle_roll (N m)"
    (box,) = efforts.patches
    corners = report.polytopes[0][1].vertices
    np.testing.assert_allclose(box.get_xy(), corners.min(axis=0))
    np.testing.assert_allclose(
        [box.get_width(), box.get_height()], np.ptp(corners, axis=0), rtol=1e-12
    )
    drawn = [line.get_xydata()[:-1] for line in efforts.lines]
    for outline, (_, polytope) in zip(drawn, report.polytopes, strict=True):
        assert sorted(map(tuple, outline)) == sorted(map(tuple, polytope.vertices))
    assert [label.get_text() for label in errors.get_yticklabels()] == list(report.errors)


def test_both_kinds_of_singular_configurations_are_drawn_apart():
    """The crank of a four-bar is driven through its dead point; its rocker does not go round."""
    shipped = hc.load(hc.robot_file("four_bar"))
    turned = hc.Mechanism(shipped.model, shipped.constraints, actuated=["rocker"],
                          reference=shipped.reference)  # fmt: skip
    for mech, joint, (_, _, name) in ((shipped, "rocker", BEYOND[0]), (turned, "crank", BEYOND[1])):
        tr = hc.Transmission(mech, [joint])
        report = tr.report(tr.y_start - 3.0, tr.y_start + 3.0, samples=3)
        assert texts(draw_transmission(report, [False]).axes[0])[-1] == name


def test_the_transmissions_of_a_robot_are_listed(capsys):
    code, out = run(capsys, "transmission", "leg")
    assert code == 0
    assert out.out.splitlines()[:2] == [
        "knee: driven by knee_motor, on hip_flexion",
        "serial joints: hip_abduction, hip_flexion, knee, ankle",
    ]
    _, out = run(capsys, "transmission", "leg", "--json")
    assert json.loads(out.out)["transmissions"][0]["joints"] == ["knee"]
    code, out = run(capsys, "transmission", "stewart")
    assert code == 0
    assert out.out.startswith("unresolved: foot_1[0], foot_1[1], leg_1, ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["leg", "--joints", "kne"], "'knee'"),
        (["leg", "--joints", "knee,"], "names of joints separated by commas"),
        (["leg", "--joints", "knee", "--range", "hip=0:1"], "--range"),
        (["leg", "--joints", "knee", "--range", "knee=0"], "JOINT=FROM:TO"),
        (["leg", "--joints", "knee", "--range", "knee=1:0"], "below"),
        (["leg", "--joints", "knee", "--range", "knee=0:1", "--range", "knee=0:1"], "twice"),
        (["leg", "--range", "knee=0:1"], "--joints; found: knee"),
        (["leg", "--out", "leg.png"], "--joints; found: knee"),
        (["stewart", "--joints", "leg_1,leg_2,leg_3", "--out", "x.png"], "one or two joints"),
    ],
)
def test_what_the_command_refuses(capsys, arguments, says):
    code, out = run(capsys, "transmission", *arguments)
    assert code == 1
    assert says in out.err


def test_readings_are_compared(capsys, tmp_path):
    tr, file = knee(), tmp_path / "knee.csv"
    rows = [(y, float(tr.motor_positions([y])[0]) + 0.05) for y in (-1.1, -0.7, -0.4)]
    file.write_text("knee_motor,knee\n" + "".join(f"{q!r},{y!r}\n" for y, q in rows))
    code, out = run(capsys, *KNEE, "--measured", str(file))
    assert code == 0
    assert (
        out.out == f"{tr.check(*([[x] for x in column] for column in zip(*rows, strict=True)))}\n"
    )
    assert "constant offsets of the motors, 'knee_motor' +0.05" in out.out
    code, out = run(capsys, *KNEE, "--measured", str(file), "--json")
    assert np.shape(json.loads(out.out)["misfit"]) == (3, 1)
    file.write_text("knee\n0.1\n")
    code, out = run(capsys, *KNEE, "--measured", str(file))
    assert code == 1
    assert "must have a column for each of 'knee', 'knee_motor'; got 'knee'" in out.err
    code, out = run(capsys, *KNEE, "--measured", str(file), "--range", "knee=0:1")
    assert "compares readings alone" in out.err
    code, out = run(capsys, "transmission", "leg", "--measured", str(file))
    assert "--measured: name the joints" in out.err
