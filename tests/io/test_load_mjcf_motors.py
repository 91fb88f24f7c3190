"""Actuators of an MJCF: on joints, on fixed tendons, and those that are left out."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from documents_mjcf import ARM

import holoctl as hc

TENDONS = """
<tendon>
  <fixed name="both"><joint joint="shoulder" coef="2"/><joint joint="elbow" coef="-0.5"/></fixed>
  <fixed name="one"><joint joint="elbow" coef="3"/></fixed>
  <spatial name="string"><site site="pin"/><site site="ground"/></spatial>
</tendon>
"""


@pytest.fixture
def robot(tmp_path):
    """Write sections after the bodies of an arm; return a function that loads the file."""

    def load(sections, text=ARM, **options):
        text = text.replace("<worldbody>", '<worldbody><site name="ground"/>')
        text = text.replace("</worldbody>", f"</worldbody>{TENDONS}{sections}")
        (tmp_path / "arm.xml").write_text(text, "utf-8")
        return hc.load(tmp_path / "arm.xml", **options)

    return load


def actuators(*elements):
    return f"<actuator>{''.join(elements)}</actuator>"


def told(caplog):
    return " | ".join(record.getMessage() for record in caplog.records)


def test_a_fixed_tendon_pulls_its_joints(robot):
    motors = actuators('<motor tendon="both" gear="10"/>', '<motor joint="elbow"/>')
    mech = robot(motors)
    assert mech.actuator_names == ("u[0]", "u[1]")
    assert (np.array([[20.0, 0.0], [-5.0, 1.0]]) == mech.B).all()


def test_servos_on_one_tendon_are_one_motor(robot):
    servos = ('<position tendon="both" kp="3"/>', '<velocity tendon="both"/>')
    assert (robot(actuators(*servos)).B == [[2.0], [-0.5]]).all()
    with pytest.raises(hc.LoadError, match="another actuator drives tendon 'both' with another"):
        robot(actuators(servos[0], '<motor tendon="both" gear="2"/>'))


def test_equalities_of_fixed_tendons_are_couplings(robot):
    mech = robot(
        '<equality><tendon tendon1="both" tendon2="one" polycoef="0.1 0.5"/>'
        '<tendon name="held" tendon1="one"/></equality>'
    )
    line, held = mech.constraints
    assert (line.name, dict(line.coefficients), line.offset) == (
        "both-one", {"shoulder": 2.0, "elbow": -2.0}, 0.1,
    )  # fmt: skip
    assert (held.name, dict(held.coefficients), held.offset) == ("held", {"elbow": 3.0}, 0.0)


def test_a_tendon_between_two_sites_of_constant_length_is_a_rod(robot):
    mech = robot('<equality><tendon name="tie" tendon1="string" polycoef="0.1"/></equality>')
    (tie,) = mech.constraints
    assert isinstance(tie, hc.Rod)
    error = float(hc.terms(mech, mech.reference, np.zeros(mech.nv)).of("tie").error[0])
    drawn = np.sqrt(tie.length**2 + 2.0 * tie.length * error)
    assert drawn > 0.1
    assert tie.length == pytest.approx(drawn + 0.1, rel=1e-12)


@pytest.mark.parametrize(
    ("equality", "message"),
    [
        ('tendon1="one" tendon2="string"', "'string' is not a <fixed> tendon"),
        ('tendon1="one" tendon2="one"', "element 'one' is repeated in equality"),
        ('tendon1="one" tendon2="both" polycoef="0 1 1"', "make a polynomial of higher order"),
        ('tendon1="two"', "unknown element 'two' in equality constraint"),
        ('joint1="elbow"', "unrecognized attribute: 'joint1'"),
    ],
)
def test_equalities_of_tendons_that_are_refused(robot, equality, message):
    with pytest.raises(hc.LoadError, match=message):
        robot(f"<equality><tendon {equality}/></equality>")


def test_an_equality_that_cancels_is_refused(robot):
    tendons = '<tendon><fixed name="t"><joint joint="elbow" coef="1.5"/></fixed></tendon>'
    with pytest.raises(hc.LoadError, match="its coordinates cancel each other"):
        robot(tendons + '<equality><tendon tendon1="one" tendon2="t" polycoef="0 2"/></equality>')


def test_a_rotor_behind_a_tendon_of_one_joint_is_that_of_the_joint(robot):
    mech = robot(actuators('<motor tendon="one" gear="2" armature="0.25"/>'))
    assert mech.model.armature.tolist() == [0.0, 9.0]
    rotor = '<tendon><fixed armature="2"><joint joint="elbow" coef="3"/></fixed></tendon>'
    assert robot(rotor).model.armature.tolist() == [0.0, 18.0]


@pytest.mark.parametrize("skip", [{}, {"actuators": "skip"}])
@pytest.mark.parametrize(
    "motor", ['<motor tendon="both" armature="1"/>', '<muscle tendon="string" armature="1"/>',
              '<motor site="pin" armature="1"/>']
)  # fmt: skip
def test_a_rotor_that_would_couple_joints_is_refused_in_any_case(robot, motor, skip):
    with pytest.raises(
        hc.LoadError, match=r"armature (of a .* is not read|requires joint or tendon)"
    ):
        robot(actuators(motor), **skip)


LEFT_OUT = {
    '<motor name="m" tendon="string"/>': "'string' is not a <fixed> tendon",
    '<motor name="m" site="pin"/>': "transmission 'site' is not read",
    '<general name="m" body="upper"/>': "transmission 'body' is not read",
    '<motor name="m" cranksite="pin" slidersite="ground" cranklength="1"/>': "'cranksite' is not",
    '<motor name="m" joint="shoulder" gear="0"/>': "gear is zero",
    '<muscle name="m" joint="shoulder"/>': "a muscle is not a motor",
    '<adhesion name="m" body="upper"/>': "adhesion is not a motor",
    '<damper name="m" joint="shoulder"/>': "a damper is not a motor",
    '<plugin name="m" joint="shoulder"><config key="a" value="b"/></plugin>': "effect of a plugin",
    '<motor name="m" joint="elbow" gear="4"/>': "another actuator drives joint 'elbow'",
}


@pytest.mark.parametrize("motor", LEFT_OUT)
def test_actuators_that_are_no_motors_are_left_out_by_name(robot, motor, caplog):
    motors = actuators('<motor joint="elbow"/>', motor)
    with pytest.raises(hc.LoadError, match=r"hc\.load\(\.\.\., actuators='skip'\)") as error:
        robot(motors)
    assert LEFT_OUT[motor] in str(error.value)
    assert error.value.key == "m"
    with caplog.at_level(logging.WARNING, "holoctl"):
        mech = robot(motors, actuators="skip")
    assert mech.actuated == ("elbow",)
    assert "arm.xml: loaded without the motors of 1 actuator: 'm' (" in told(caplog)
    assert LEFT_OUT[motor] in told(caplog)


def test_many_that_are_left_out_are_counted(robot, caplog):
    robot(actuators(*('<motor site="pin"/>',) * 12), actuators="skip")
    assert "without the motors of 12 actuators: '<motor> 0' (" in told(caplog)
    assert told(caplog).endswith("; and 2 more")


@pytest.mark.parametrize(
    "motor", ['<motor joint="elbo"/>', '<motor tendon="x"/>', "<motor/>", '<motor jont="elbow"/>',
              '<motor joint="elbow" tendon="one"/>', '<motor joint="elbow" gear="x"/>']
)  # fmt: skip
def test_mistakes_are_not_left_out(robot, motor):
    with pytest.raises(hc.LoadError):
        robot(actuators(motor), actuators="skip")


def test_a_rotor_of_an_actuator_that_is_left_out_is_not(robot):
    mech = robot(actuators('<muscle joint="elbow" gear="3" armature="0.1"/>'), actuators="skip")
    assert mech.model.armature == pytest.approx([0.0, 0.9])
    assert mech.actuated == ()


def test_the_argument(robot, tmp_path):
    with pytest.raises(hc.InputError, match=r"actuators must be one of 'all', 'skip'"):
        robot("", actuators="some")
    with pytest.raises(hc.InputError, match="actuators='skip' is for an MJCF"):
        hc.load(tmp_path / "arm.urdf", actuators="skip")
