"""What a file has, or the caller asked for, is in exported C, or a line says that it is not."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import numpy as np
import pytest
from exported import Exported, controller, robot, short_self_test
from support import mechanism

import holoctl as hc
from holoctl.app.cli import main

pytest.importorskip("casadi")

BAR = """<robot name="bar"><link name="ground"/>
  <link name="rod"><inertial><origin xyz="0.5 0 0"/><mass value="10"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="hip" type="{kind}"><parent link="ground"/><child link="rod"/>
    <axis xyz="0 1 0"/><limit {limit}/>{dynamics}</joint>
</robot>
"""
SHEET = "closed_loop: []\ntype: []\nname_mot: [hip]\n"
LIMIT = 'effort="25" velocity="3"'
GAINS = ("--kp", "9", "--kd", "6")


@pytest.fixture(autouse=True)
def _short_self_test():
    with short_self_test():
        yield


@pytest.fixture
def bar(tmp_path):
    """A file of a rod on a motor that is too weak for its weight."""

    def written(limit=LIMIT, dynamics="", kind="continuous", sheet=SHEET):
        path = tmp_path / "bar.urdf"
        path.write_text(BAR.format(kind=kind, limit=limit, dynamics=dynamics))
        path.with_suffix(".yaml").write_text(sheet)
        return str(path)

    return written


@pytest.fixture
def export(tmp_path, capsys, caplog):
    """Run the command; exit code, what it printed, its warnings, and the header and README."""

    def ran(robot, *options):
        caplog.clear()
        code = main(["export", robot, "--out", str(tmp_path / "c"), *options])
        texts = [(tmp_path / "c" / f"holoctl_{robot_name(robot)}.h"), tmp_path / "c" / "README.md"]
        found = [re.sub(r"\s+(\* +)?", " ", x.read_text()) if x.exists() else "" for x in texts]
        warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        return code, capsys.readouterr(), warnings, found

    return ran


def robot_name(robot):
    return robot.rpartition("/")[2].removesuffix(".urdf")


def told(warnings):
    """What is not in the C, of the lines on the terminal."""
    return [x.partition(": not in the C: ")[2] for x in warnings if ": not in the C: " in x]


# ------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("gains", [(), GAINS])
def test_limits_of_the_file_are_in_by_default(bar, export, tmp_path, gains):
    code, out, warnings, (header, _) = export(bar(), *gains, "--policy", "scale", "--dt", "2e-3")
    assert code == 0
    assert not told(warnings)
    assert "u[0] -25 to 25: hip" in header
    assert "hip: velocity -3 to 3" in header
    assert "within the limits of the file" in out.out
    assert "by the policy 'scale', for ticks of 0.002 s" in out.out
    mech = hc.load(tmp_path / "bar.urdf")
    limits = {"limits": hc.limits_of(mech), "policy": "scale", "dt": 2e-3}
    what, options = mech, {"limits": hc.WithinLimits(**limits)}
    if gains:
        what, options = hc.ComputedTorque(mech, 9.0, 6.0, **limits), {}
    for path in hc.export_c(what, tmp_path / "same", measured="all", **options):
        assert path.read_bytes() == (tmp_path / "c" / path.name).read_bytes()


def test_inverse_dynamics_of_a_mechanism_within_limits(bar, tmp_path):
    mech = hc.load(bar())
    limits = hc.limits_of(mech)
    for policy in ("nearest", "scale"):
        c = Exported(
            mech, tmp_path / policy, limits=hc.WithinLimits(limits, policy), measured="all"
        )
        rng, seen = np.random.default_rng(3), set()
        for _ in range(60):
            q, v = angle(rng), rng.normal(size=1)
            target = 20.0 * rng.normal(size=1)
            status, u = c.call("inverse_dynamics", q, v, target)
            expected = hc.limited_inverse_dynamics(
                mech, q, v, target, hc.WithinLimits(limits, policy)
            )
            seen.add(status)
            assert abs(u[0]) <= 25.0
            np.testing.assert_allclose(u, expected.u, rtol=0.0, atol=1e-7)
        assert seen == {"OK", "LIMITED"}


def angle(rng):
    x = rng.uniform(-np.pi, np.pi)
    return np.array([np.cos(x), np.sin(x)])


def test_without_limits_a_line_says_so(bar, export):
    code, out, warnings, texts = export(bar(), *GAINS, "--no-limits")
    sentence = "limits of the description: effort of 'hip'; velocity of 'hip'"
    assert (code, told(warnings)) == (0, [sentence])
    assert all(sentence in text for text in texts)
    assert "within the limits" not in out.out
    assert "LIMITED, as" not in texts[1]


@pytest.mark.parametrize(
    "options", [("--no-limits", "--policy", "scale"), ("--no-limits", "--dt", "1e-3")]
)
def test_options_of_limits_that_are_left_out_are_refused(bar, export, options):
    code, out, _, texts = export(bar(), *options)
    assert (code, texts) == (1, ["", ""])
    assert "--no-limits leaves them out" in out.err
    assert "the file has none" in export(bar(limit='effort="0" velocity="0"'), *options[1:])[1].err
    assert "--dt (s) must be above zero" in export(bar(), "--dt", "0")[1].err


def test_positions_that_nothing_is_known_to_brake_are_left_out_with_a_line(bar, export):
    for velocity in (3, 0):
        file = bar(f'lower="-1" upper="1" effort="0" velocity="{velocity}"', kind="revolute")
        code, out, warnings, (header, _) = export(file)
        assert (code, told(warnings)) == (0, ["limits of the description: position of 'hip'"])
        assert ("hip: velocity -3 to 3" in header) == (velocity == 3)
        assert ("within the limits of the file" in out.out) == (velocity == 3)
        assert any("how hard it can be braked is not known" in x for x in warnings)


def test_every_kind_of_limit_is_compared(caplog, tmp_path):
    mech = robot("five_bar")
    known = hc.Limits(
        effort=20.0, speed_torque={"motor_right": [(0.0, 8.0), (4.0, 3.0)]},
        velocity={"elbow_left": 4.0, "tip_hinge": 3.0}, acceleration={"motor_left": 40.0},
        position={"elbow_left": (-1.0, 3.0)},
    )  # fmt: skip
    mech = replace(mech, limits=known)
    own = hc.Limits(effort={"motor_left": 30.0}, velocity={"elbow_left": 9.0})
    hc.export_c(hc.ComputedTorque(mech, 400.0, 40.0, limits=own), tmp_path)
    assert told(caplog.messages) == [
        "limits of the description: effort of 'motor_right'; velocity of 'tip_hinge'; position of "
        "'elbow_left'; acceleration of 'motor_left'; speed_torque of 'motor_right'"
    ]
    caplog.clear()
    hc.export_c(hc.ComputedTorque(mech, 400.0, 40.0, limits=known), tmp_path)
    assert not told(caplog.messages)


def test_limits_beside_a_controller_are_refused(tmp_path):
    ctl = controller("five_bar")
    limits, mech = hc.Limits(effort=1.0), ctl.mech
    for given in (limits, hc.WithinLimits(limits, "scale"), hc.WithinLimits(limits, dt=1e-4)):
        with pytest.raises(hc.InputError, match="a controller brings its own"):
            hc.export_c(ctl, tmp_path / "c", limits=given)
    for options in ({"policy": "scale"}, {"dt": 1e-4}):
        with pytest.raises(hc.InputError, match=r"any more: limits=hc\.WithinLimits\(limits, "):
            hc.export_c(mech, tmp_path / "c", **options)
    for options in ({"metric": [1.0, 1.0]}, {"preload": "least"}, {"solver": "cvxpy"}):
        with pytest.raises(hc.InputError, match="exported C has no metric, preload or solver"):
            hc.export_c(mech, tmp_path / "c", limits=hc.WithinLimits(limits, **options))
    with pytest.raises(hc.InputError, match="policy='raise' cannot be exported"):
        hc.export_c(mech, tmp_path / "c", limits=hc.WithinLimits(hc.Limits(effort=1.0), "raise"))
    assert not (tmp_path / "c").exists()


def test_a_law_of_tasks_tells_of_limits(caplog, tmp_path):
    mech = robot("five_bar")
    law = hc.Impedance(mech, hc.PostureTask(), stiffness=50.0, damping="critical")
    paths = hc.export_c(law, tmp_path)
    (sentence,) = told(caplog.messages)
    assert sentence.startswith("limits of the description: effort of 'motor_left', 'motor_right';")
    assert "effort of 'motor_left', 'motor_right';" in paths[0].read_text()


# ------------------------------------------------------------------------------- what else there is


def test_losses_of_a_file_that_has_none(bar, export, caplog):
    code, _, warnings, _ = export(bar(), *GAINS, "--losses", "--friction-at", "measured")
    assert code == 0
    assert any("losses=True reads nothing" in x for x in warnings)
    assert any("--friction-at: there is no friction" in x for x in warnings)
    damped = bar(dynamics='<dynamics damping="0.5"/>')
    code, _, warnings, _ = export(damped, *GAINS, "--friction-at", "measured")
    assert code == 0
    assert any("damping of 'hip'" in x for x in warnings)
    code, _, warnings, _ = export(damped, *GAINS, "--losses", "--friction-at", "measured")
    assert code == 0
    assert all("cannot hold the mechanism still" in x for x in warnings), warnings


def test_friction_that_gravity_compensation_leaves_out(bar, export):
    damped = bar(dynamics='<dynamics damping="0.5" friction="0.1"/>')
    _, _, warnings, texts = export(damped, *GAINS, "--losses", "--compensation", "gravity")
    assert told(warnings) == [
        "friction in the torque of the controller, 'friction': compensation='gravity' holds at rest"
    ]
    assert all("compensation='gravity' holds at rest" in text for text in texts)


@pytest.mark.parametrize("option", [("--compensation", "gravity"), ("--friction-at", "reference")])
def test_options_of_a_controller_need_its_gains(bar, export, option):
    code, out, _, texts = export(bar(), *option)
    assert (code, texts) == (1, ["", ""])
    assert f"{option[0]} needs a controller: give --kp and --kd" in out.err


@pytest.mark.parametrize(
    ("name", "motor", "options", "reason"),
    [
        ("five_bar", "motor_left", (), "'motor_left', do not determine how"),
        ("four_bar", "rocker", ("--set", "crank=0.685"), "noise would be amplified by"),
    ],
)
def test_a_closed_state_that_the_motors_do_not_tell(tmp_path, export, name, motor, options, reason):
    sheet = tmp_path / "one_motor.yaml"
    text = hc.robot_file(name).with_suffix(".yaml").read_text()
    sheet.write_text(re.sub(r"name_mot: .*", f"name_mot: [{motor}]", text))
    given = (name, *GAINS, "--closures", str(sheet), *options)
    code, _, warnings, (header, _) = export(*given)
    assert code == 0
    sentence = told(warnings)[-1]
    assert sentence.startswith("the closed state from the motors (state and torque_from_motors): ")
    assert reason in sentence
    assert "- the closed state from the motors (state and torque_from_motors): " in header
    code, _, warnings, _ = export(*given, "--measured", "all")
    assert not any("closed state" in x for x in told(warnings))


def test_gains_of_motors_without_positions(caplog, tmp_path):
    mech = mechanism("five_bar")
    B = np.zeros((4, 2))
    B[0] = 1.0, 1.0
    B[2] = 1.0, -1.0
    driven = hc.Mechanism(mech.model, mech.constraints, actuation=B, reference=mech.reference)
    hc.export_c(hc.ComputedTorque(driven, 400.0, 40.0), tmp_path, measured="all")
    (sentence,) = [x for x in told(caplog.messages) if "limits" not in x]
    assert sentence.startswith("the torque of the controller, with its gains: the motors act by a")


def test_constraints_that_are_switched_off(caplog, tmp_path):
    mech = robot("five_bar")
    braked = mech.with_constraints(hc.Coupling({"motor_left": 1.0}, offset=-2.0, name="brake"))
    free = braked.with_enabled(brake=False)
    hc.export_c(hc.ComputedTorque(free, 400.0, 40.0, limits=hc.limits_of(mech)), tmp_path)
    assert told(caplog.messages) == ["constraints that are switched off: 'brake'"]


def test_a_joint_that_is_set_is_not_held(export):
    _, _, warnings, _ = export("four_bar", "--set", "crank=1.2")
    assert any(
        x.startswith("--set crank=1.2: the exported C does not lock this joint") for x in warnings
    )


def test_hold_limit_of_the_command(bar, export):
    assert "hold_limit; /* number of consecutive calls" in export(bar(), "--hold-limit", "7")[3][0]
    assert "0: none. By init 7UL" in export(bar(), "--hold-limit", "7")[3][0]
    for wrong in ("1.5", "nan", "1_0"):
        with pytest.raises(SystemExit, match="2"):
            export(bar(), "--hold-limit", wrong)
    code, out, *_ = export(bar(), "--hold-limit", "-1")
    assert code == 1
    assert "hold_limit" in out.err
