"""The command line: what it prints, and its exit codes."""

from __future__ import annotations

import csv
import importlib
import io
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from support import few

import holoctl as hc
from holoctl.app.cli import main

TOO_LONG = """<robot name="too_long">
  <link name="ground"/>
  <link name="bar"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="far"/>
  <joint name="pivot" type="continuous"><parent link="ground"/><child link="bar"/>
    <axis xyz="0 0 1"/></joint>
  <joint name="tip" type="fixed"><parent link="bar"/><child link="far"/>
    <origin xyz="0.9 0 0"/></joint>
  <link name="hook"/>
  <joint name="there" type="fixed"><parent link="ground"/><child link="hook"/>
    <origin xyz="0.5 0 0"/></joint>
</robot>
"""
COMMANDS = (
    "doctor", "assemble", "torque", "export", "modes", "simulate", "linearize", "retime",
    "excite", "map", "view", "new", "demo",
)  # fmt: skip
CLOSURES = "closed_loop: [[far, hook]]\ntype: [3d]\nname_mot: []\n"
NO_CLOSURES = "closed_loop: []\ntype: []\n"


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, capsys.readouterr()


@pytest.fixture
def too_long(tmp_path):
    (tmp_path / "too_long.yaml").write_text(CLOSURES)
    path = tmp_path / "too_long.urdf"
    path.write_text(TOO_LONG)
    return str(path)


@pytest.mark.parametrize("name", hc.robot_names())
def test_doctor_prints_the_report(capsys, name):
    code, out = run(capsys, "doctor", name)
    assert code == 0
    assert out.out == str(hc.mobility(hc.load(hc.robot_file(name)))) + "\n"


def test_doctor_takes_a_path_and_writes_json(capsys):
    code, out = run(capsys, "doctor", str(hc.robot_file("five_bar")), "--json")
    found = json.loads(out.out)
    assert code == 0
    assert found["dof"] == 2
    assert found["rows"] == 5
    assert found["active"] == 2
    assert found["redundant"] == ["tip_hinge.z", "tip_hinge.ry", "tip_hinge.rx"]


def test_doctor_says_with_its_exit_code_that_a_mechanism_does_not_close(capsys, too_long):
    code, out = run(capsys, "doctor", too_long)
    assert code == 1
    assert "Contradiction" in out.out
    assert "'far-hook.x'" in out.out
    code, out = run(capsys, "doctor", too_long, "--json")
    found = json.loads(out.out)
    assert code == 1
    assert not found["ok"]
    assert found["contradictions"] == ["far-hook.x"]


def test_doctor_looks_where_it_is_told(capsys):
    _, out = run(capsys, "doctor", "five_bar", "--set", "motor_left=2.0", "--json")
    assert json.loads(out.out)["q"][0] == pytest.approx(2.0, abs=1e-12)


def test_doctor_judges_the_sensors_it_is_told(capsys):
    code, out = run(capsys, "doctor", "five_bar", "--measured", "motor_left, tip_hinge", "--json")
    found = json.loads(out.out)["sensors"]
    assert code == 0
    assert found["measured"] == ["motor_left", "tip_hinge"]
    report = hc.mobility(hc.load(hc.robot_file("five_bar")), measured=["motor_left", "tip_hinge"])
    assert found["gain"] == report.sensors.gain
    code, out = run(capsys, "doctor", "five_bar", "--measured", "motor_left")
    assert code == 0
    assert "'motor_left' is not sufficient" in out.out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["motor_lift"], "motor_left"),
        (["motor_left,"], "separated by commas"),
        ([""], "separated by commas"),
        (["motor_left", "--out", "out.yaml"], "--out out.yaml replaces the report"),
        (["motor_left", "--snap", "out.yaml"], "--out out.yaml replaces the report"),
    ],
)
def test_doctor_refuses_sensors_that_are_none(capsys, given, said):
    code, out = run(capsys, "doctor", "five_bar", "--measured", *given)
    assert code == 1
    assert said in out.err
    assert not out.out


@pytest.mark.parametrize("command", ["doctor", "assemble", "torque", "linearize"])
def test_a_folder_with_the_name_of_a_shipped_robot_hides_nothing(
    monkeypatch, capsys, caplog, tmp_path, command
):
    expected = run(capsys, command, "four_bar")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "four_bar").mkdir()
    (tmp_path / "four_bar" / "holoctl_four_bar.h").write_text("")
    assert run(capsys, command, "four_bar") == expected
    assert "four_bar: the shipped robot is read" in caplog.text
    assert "has no four_bar/robot.urdf" in caplog.text


def test_a_link_that_leads_nowhere_hides_no_shipped_robot(monkeypatch, capsys, caplog, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "four_bar").symlink_to(tmp_path / "gone")
    assert run(capsys, "assemble", "four_bar")[0] == 0
    assert "the shipped robot is read" in caplog.text


@pytest.mark.parametrize("place", ["four_bar", "four_bar/robot.urdf"])
def test_a_robot_here_is_read_before_a_shipped_one_of_its_name(
    monkeypatch, capsys, caplog, tmp_path, place
):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / place
    own.parent.mkdir(exist_ok=True)
    own.write_text(TOO_LONG)
    (own.parent / "robot.yaml").write_text(NO_CLOSURES + "name_mot: []\n")
    code, out = run(capsys, "assemble", "four_bar", "--json")
    assert (code, json.loads(out.out)["name"]) == (0, "too_long")
    assert f"{place} is read, and not the shipped robot" in caplog.text
    assert str(hc.robot_file("four_bar")) in caplog.text


def test_closures_and_free_flyer_reach_the_reader(capsys, tmp_path):
    yaml = tmp_path / "other.yaml"
    yaml.write_text("closed_loop: []\ntype: []\nname_mot: [hip_flexion]\n")
    arguments = ("doctor", "leg", "--closures", str(yaml), "--free-flyer", "--json")
    code, out = run(capsys, *arguments)
    found = json.loads(out.out)
    assert code == 0
    assert found["open_dof"] == 12
    assert found["rows"] == 0
    assert found["motors"] == ["hip_flexion"]


def test_assemble_prints_where_the_joints_are(capsys):
    held = ("--set", "motor_left=2.0")
    mech = hc.load(hc.robot_file("five_bar"))
    guess = mech.reference.copy()
    guess[0] = 2.0
    q, _ = hc.assemble(mech, guess, locked=["motor_left"])
    code, out = run(capsys, "assemble", "five_bar", *held, "--json")
    found = json.loads(out.out)
    assert code == 0
    np.testing.assert_allclose(found["q"], q, rtol=0, atol=1e-15)
    assert found["joints"]["motor_left"] == pytest.approx(2.0)
    assert found["error"] < 1e-12
    code, out = run(capsys, "assemble", "five_bar", *held, "--csv")
    rows = list(csv.reader(io.StringIO(out.out)))
    assert rows[0] == ["joint", "position"]
    np.testing.assert_allclose([float(r[1]) for r in rows[1:]], q, rtol=0, atol=1e-15)
    code, out = run(capsys, "assemble", "five_bar", *held)
    assert code == 0
    assert out.out.startswith("five_bar: closed")
    assert "motor_left              2" in out.out


@pytest.mark.parametrize("command", ["doctor", "assemble", "torque", "modes", "linearize"])
def test_what_is_printed_is_written_too(capsys, tmp_path, command):
    quick = ["--tries", "10"] if command == "modes" else []
    files = {kind: tmp_path / "new" / f"{command}.{kind}" for kind in ("json", "csv")}
    if command == "doctor":
        del files["csv"]
    out = [f"--out={path}" for path in files.values()]
    code, said = run(capsys, command, "five_bar", *quick, *out)
    assert code == 0
    for kind, path in files.items():
        assert f"written: {path}" in said.out
        code, printed = run(capsys, command, "five_bar", *quick, f"--{kind}", *out)
        assert (code, printed.out) == (0, path.read_text(encoding="utf-8"))


def test_the_ending_of_a_file_says_what_it_is(capsys, tmp_path, caplog):
    for command, name in (
        ("torque", "x.png"),
        ("map", "x.npz"),
        ("view", "x.json"),
        ("doctor", "x"),
    ):
        arguments = [command, "five_bar", f"--out={tmp_path / name}"]
        with pytest.raises(SystemExit, match="2"):
            main([*arguments, "--grid=x=0:1:2"] if command == "map" else arguments)
        assert "the ending of a file must be one of ." in capsys.readouterr().err
    assert run(capsys, "linearize", "five_bar", "--picture", str(tmp_path / "modes.png"))[0] == 0
    assert "--picture is called --out now" in caplog.text
    assert (tmp_path / "modes.png").stat().st_size > 1000
    place = str(tmp_path / "fall")
    assert run(capsys, "simulate", "five_bar", "--duration=0.01", "--out", place)[0] == 0
    assert "the ending is missing" in caplog.text
    assert hc.Run.read(f"{place}.npz").t[-1] == pytest.approx(0.01)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_no_former_option(capsys, command):
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    said = capsys.readouterr().out
    assert f"example: holoctl {command}" in said
    assert not {"--picture", "--snap", "--save", "--rate"} & set(re.split(r"[\s,=\[\]]+", said))
    assert "%" not in said.replace("10 % heavier", "")


def test_assemble_gives_several_numbers_for_joints_that_have_them(capsys):
    placed = "0.1,0.2,0.9,0,0,0.6,0.8"
    arguments = ("assemble", "leg", "--free-flyer", "--set", f"root_joint={placed}")
    _, out = run(capsys, *arguments, "--json")
    expected = [float(x) for x in placed.split(",")]
    np.testing.assert_allclose(json.loads(out.out)["joints"]["root_joint"], expected, atol=1e-12)


def test_torque_prints_what_holds_the_robot_and_its_certificate(capsys):
    mech = hc.load(hc.robot_file("delta"))
    q, v = hc.assemble(mech)
    held = hc.inverse_dynamics(mech, q, v, np.zeros(mech.nv), coordinates="all")
    code, out = run(capsys, "torque", "delta", "--json")
    found = json.loads(out.out)
    assert code == 0
    np.testing.assert_allclose(list(found["efforts"].values()), held.u, rtol=1e-9)
    assert list(found["efforts"]) == list(mech.actuated)
    assert found["certificate"]["ok"]
    assert set(found["units"].values()) == {"N m"}
    code, out = run(capsys, "torque", "delta", "--csv")
    rows = list(csv.DictReader(io.StringIO(out.out)))
    np.testing.assert_allclose([float(r["effort"]) for r in rows], held.u, rtol=1e-9)
    assert {r["certified"] for r in rows} == {"True"}
    code, out = run(capsys, "torque", "delta")
    assert code == 0
    assert "This solution is certified" in out.out
    _, out = run(capsys, "torque", "stewart")
    assert out.out.count(" N\n") == 6


def test_torques_that_do_not_hold_the_robot_exit_with_1(capsys, tmp_path):
    yaml = tmp_path / "one_motor.yaml"
    yaml.write_text(
        "closed_loop: []\ntype: []\nname_mot: [hip_flexion]\nreference: {hip_flexion: 0.4}\n"
    )
    code, out = run(capsys, "torque", "leg", "--closures", str(yaml))
    assert code == 1
    assert "NOT certified" in out.out
    assert "left unbalanced" in out.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("doctor", "nowhere.urdf"), "no such file"),
        (("torque", "five_bar", "--set", "motor_left"), "JOINT=VALUE"),
        (("torque", "five_bar", "--set", "motor_lef=1"), "did you mean 'motor_left'"),
        (("torque", "five_bar", "--set", "motor_left=one"), "takes numbers"),
        (("torque", "five_bar", "--set", "motor_left=1,2"), "takes 1 numbers; got 2"),
        (("torque", "five_bar", "--set", "motor_left=nan"), "finite"),
        (("assemble", "four_bar", "--set", "crank=1", "--set", "rocker=-2"), "locked"),
        (("torque", "leg", "--closures", "nowhere.yaml"), "no such file"),
        (("doctor", "four_bar", "--set", "crank=1", "--set", "rocker=-2"), "locked"),
        (("doctor", "four_bar", "--set", "crank=1", "--set", "crank=2"), "set twice"),
    ],
)
def test_what_cannot_be_done_is_an_error_on_stderr(capsys, arguments, message):
    code, out = run(capsys, *arguments)
    assert code == 1
    assert message in out.err
    assert out.err.startswith("holoctl: ")
    assert not out.out


@pytest.mark.parametrize(
    "arguments", few([["--version"], ["--help"], ["doctor", "four_bar"]], [["--version"]])
)
def test_python_m_holoctl_is_the_command(capfd, arguments):
    done = subprocess.run(
        [sys.executable, "-m", "holoctl", *arguments], capture_output=True, text=True, check=False
    )
    try:
        code = main(arguments)
    except SystemExit as leaving:
        code = leaving.code
    assert (done.returncode, done.stdout, done.stderr) == (code, *capfd.readouterr())


def test_python_m_holoctl_leaves_with_the_code_of_the_command():
    command = [sys.executable, "-m", "holoctl", "doctor", "no_such_robot"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no_such_robot" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "holoctl", "torque", "damped.urdf"],
        ["-c", "import holoctl as hc; hc.load('damped.urdf')"],
    ],
)
def test_warnings_reach_the_terminal(tmp_path, command):
    text = TOO_LONG.replace('xyz="0 0 1"/>', 'xyz="0 0 1"/><dynamics damping="0.5"/>')
    (tmp_path / "damped.urdf").write_text(text)
    (tmp_path / "damped.yaml").write_text(NO_CLOSURES + "name_mot: [pivot]\n")
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "damping of 'pivot'" in done.stderr
    assert "damping" not in done.stdout


def test_importing_main_starts_nothing(capsys):
    importlib.import_module("holoctl.__main__")
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_stops_early_is_no_crash():
    command = f"{sys.executable} -m holoctl doctor stewart --json | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == "{\n"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("given", ["nan", "inf", "-inf", "1e400", "1e308", "-1e7"])
@pytest.mark.parametrize("command", ["doctor", "assemble", "torque"])
def test_set_takes_positions_within_reason(capsys, command, given):
    code, out = run(capsys, command, "five_bar", f"--set=motor_left={given}")
    assert code == 1
    assert "--set" in out.err
    assert "motor_left" in out.err
    assert "q_guess" not in out.err


@pytest.mark.parametrize("given", ["0,0,1,0,0,2,1", "0,0,1,0,0,0,0", "0,0,nan,0,0,0,1"])
def test_set_speaks_of_itself_where_a_quaternion_is_wrong(capsys, given):
    code, out = run(capsys, "assemble", "leg", "--free-flyer", f"--set=root_joint={given}")
    assert code == 1
    assert out.err.startswith("holoctl: InputError: --set")


@pytest.mark.parametrize("option", ["--kp", "--kd", "--closure-limit"])
@pytest.mark.parametrize("given", ["nan", "inf", "-1", "1e400"])
def test_export_refuses_numbers_that_are_none(capsys, tmp_path, option, given):
    pytest.importorskip("casadi")
    gains = {"--kp": "1", "--kd": "1"} | {option: given}
    arguments = [f"{name}={value}" for name, value in gains.items()]
    code, out = run(capsys, "export", "five_bar", "--out", str(tmp_path / "c"), *arguments)
    assert code == 1
    assert out.err.startswith("holoctl: InputError: ")
    assert option[2:].replace("-", "_") in out.err
    assert not (tmp_path / "c").exists()


def test_export_is_told_where_friction_is_compensated(capsys, tmp_path):
    pytest.importorskip("casadi")
    robot = hc.robot_file("five_bar")
    for suffix in (".urdf", ".yaml"):
        there = tmp_path / f"five_bar{suffix}"
        there.write_text(robot.with_suffix(suffix).read_text(encoding="utf-8"), encoding="utf-8")
    with there.open("a", encoding="utf-8") as sheet:
        sheet.write("\nforces:\n  - {type: joint_friction, viscous: 0.1, coulomb: 0.2}\n")
    ways = {"default": (), "reference": ("--friction-at", "reference"),
            "measured": ("--friction-at", "measured")}  # fmt: skip
    law = {}
    for way, option in ways.items():
        out = tmp_path / way
        arguments = str(tmp_path / "five_bar.urdf"), "--out", str(out), "--kp=9", "--kd=6"
        assert run(capsys, "export", *arguments, *option)[0] == 0
        law[way] = (out / "holoctl_five_bar.c").read_bytes()
    assert law["default"] == law["reference"] != law["measured"]


@pytest.mark.parametrize(
    ("robot", "given", "passed"),
    [
        ("five_bar", (), {}),
        ("five_bar", ("motors",), {"measured": ("motor_left", "motor_right")}),
        ("five_bar", ("all",), {"measured": "all"}),
        ("five_bar", ("motor_left, tip_hinge",), {"measured": ["motor_left", "tip_hinge"]}),
        ("arm", (), {"measured": "all"}),
    ],
)
def test_export_is_told_what_is_measured(monkeypatch, capsys, tmp_path, robot, given, passed):
    module = importlib.import_module("holoctl.codegen.exported.export")
    options = {}
    monkeypatch.setattr(module, "export_c", lambda *a, **named: options.update(named) or ())
    arm = tmp_path / "arm.urdf"
    arm.write_text(TOO_LONG, encoding="utf-8")
    arm.with_suffix(".yaml").write_text(f"{NO_CLOSURES}name_mot: [pivot]\n")
    arguments = ["--out", str(tmp_path / "c"), *(f"--measured={x}" for x in given)]
    code, _ = run(capsys, "export", str(arm) if robot == "arm" else robot, *arguments)
    assert code == 0
    assert {k: v for k, v in options.items() if k == "measured"} == passed


def test_export_is_told_of_payload_and_gravity(monkeypatch, caplog, capsys, tmp_path):
    """Limits of positions go, with a line: a payload changes how hard they can be braked."""
    module = importlib.import_module("holoctl.codegen.exported.export")
    passed = []
    monkeypatch.setattr(module, "export_c", lambda *a, **named: passed.append(named) or ())
    for options in ([], ["--payload=tip"], ["--gravity"], ["--payload=tip", "--gravity"]):
        caplog.clear()
        assert run(capsys, "export", "five_bar", "--out", str(tmp_path / "c"), *options)[0] == 0
        found = passed[-1]
        payload = "tip" if "--payload=tip" in options else None
        assert (found["payload"], found["gravity"]) == (payload, "--gravity" in options)
        limits = found["limits"].limits
        assert limits.effort is not None
        assert (limits.position is None) == bool(options)
        assert ("how hard they can be braked" in caplog.text) == bool(options)


def test_export_refuses_motors_that_are_none(capsys, tmp_path):
    robot = tmp_path / "arm.urdf"
    robot.write_text(TOO_LONG, encoding="utf-8")
    robot.with_suffix(".yaml").write_text(f"{NO_CLOSURES}name_mot: []\n")
    arguments = "--out", str(tmp_path / "c"), "--measured", "motors"
    code, out = run(capsys, "export", str(robot), *arguments)
    assert code == 1
    assert "is a motor" in out.err
    assert not (tmp_path / "c").exists()


def test_exported_c_finds_the_others_from_what_is_measured(capsys, tmp_path):
    pytest.importorskip("casadi")
    header = {}
    for given in ("", "all", "motor_left,tip_hinge"):
        out = tmp_path / f"c{given[:3]}"
        option = [f"--measured={given}"] if given else []
        assert run(capsys, "export", "five_bar", "--out", str(out), *option)[0] == 0
        header[given] = (out / "holoctl_five_bar.h").read_text(encoding="utf-8")
    assert "holoctl_five_bar_state" not in header["all"]
    assert "holoctl_five_bar_state" in header[""]
    assert "holoctl_five_bar_state" in header["motor_left,tip_hinge"]
    assert header[""] != header["motor_left,tip_hinge"]
    arguments = "five_bar", "--out", str(tmp_path / "one"), "--measured=motor_left"
    code, told = run(capsys, "export", *arguments)
    assert code == 1
    assert "do not determine how" in told.err
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize("given", ["1_0", "\uff11\uff10", "0x1", "1e", ""])
def test_numbers_are_those_of_files(capsys, tmp_path, given):
    code, out = run(capsys, "assemble", "five_bar", f"--set=motor_left={given}")
    assert (code, "takes numbers" in out.err) == (1, True)
    for option in ("--kp", "--kd"):
        gains = {"--kp": "1", "--kd": "1"} | {option: given}
        arguments = [f"{name}={value}" for name, value in gains.items()]
        code, out = run(capsys, "export", "five_bar", "--out", str(tmp_path / "c"), *arguments)
        assert (code, f"{option} takes a number" in out.err) == (1, True)
    for command in (("export", "five_bar", "--out=c", "--closure-limit"), ("demo", "--duration")):
        with pytest.raises(SystemExit, match="2"):
            main([*command[:-1], f"{command[-1]}={given}"])
        assert "is not a number" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("export", "five_bar"), ("demo",)])
@pytest.mark.parametrize("folder", ["", " "])
def test_a_folder_without_a_name_is_refused(capsys, command, folder):
    with pytest.raises(SystemExit, match="2"):
        main([*command, "--out", folder])
    assert "the name of the folder is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", ["0", "-1", "nan", "inf", "-inf", "1e400", "1e308", "1e-308", "1e-3", "1e4"]
)
def test_demo_refuses_a_duration_that_is_none(capsys, tmp_path, given):
    code, out = run(capsys, "demo", f"--duration={given}", "--out", str(tmp_path))
    assert code == 1
    assert out.err.startswith("holoctl: InputError: duration")


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_demo_asks_for_its_folder_before_it_works(capsys, tmp_path, place):
    (tmp_path / "file").write_text("")
    code, out = run(capsys, "demo", "--out", str(tmp_path / place))
    assert code == 1
    assert "cannot be written to" in out.err


def test_help_prints_percent_signs_once(capsys):
    for command in ("", "demo"):
        with pytest.raises(SystemExit):
            main([*command.split(), "--help"])
        assert ("10 %" in capsys.readouterr().out) == (command == "demo")


def test_losses_of_the_file_act_where_asked_for(tmp_path, capsys):
    file = tmp_path / "arm.xml"
    file.write_text(
        '<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="j" stiffness="3" '
        'springref="0.5"/><geom size="0.1"/></body></worldbody><actuator><motor joint="j"/>'
        '</actuator><compiler angle="radian"/></mujoco>'
    )
    for options, effort in (([], 0.0), (["--losses"], -1.5)):
        assert main(["torque", str(file), "--json", *options]) == 0
        assert json.loads(capsys.readouterr().out)["efforts"] == {"j": pytest.approx(effort)}


def test_the_tolerance_of_the_geometry(tmp_path, capsys):
    text = hc.robot_file("four_bar").read_text().replace('xyz="0 -1 0"', 'xyz="1e-6 -1 0"', 1)
    (tmp_path / "arm.urdf").write_text(text)
    sheet = hc.robot_file("four_bar").with_suffix(".yaml").read_text()
    (tmp_path / "arm.yaml").write_text(sheet)
    file = str(tmp_path / "arm.urdf")
    assert main(["doctor", file]) == 0
    assert "redundant to within" in " ".join(capsys.readouterr().out.split())
    assert main(["doctor", file, "--tolerance", "0"]) == 1
    assert "Rounded?" in capsys.readouterr().out
    assert main(["doctor", file, "--tolerance", "1"]) != 0
    assert "tolerance" in capsys.readouterr().err
