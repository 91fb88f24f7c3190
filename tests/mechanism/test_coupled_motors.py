"""Motors on joints that mimic others: told at the door, by the doctor, by tick and compiler."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pinocchio as pin
import pytest
import zoo

import holoctl as hc
from holoctl.mechanism.coupled_motors import coupled_motors

URDF = """
<robot name="gripper">
  <link name="palm"/>
  {links}
  <joint name="lift" type="prismatic"><parent link="palm"/><child link="a"/><axis xyz="0 0 1"/>
    <limit lower="-0.1" upper="0.3" effort="50" velocity="1"/></joint>
  <joint name="left" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
  <joint name="right" type="revolute"><parent link="a"/><child link="c"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/><mimic joint="left" multiplier="-1.0"/>
  </joint>
  <joint name="thumb" type="revolute"><parent link="a"/><child link="d"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/></joint>
</robot>
"""
LINK = """<link name="{}"><inertial><origin xyz="0.1 0 0"/><mass value="0.5"/>
  <inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


@pytest.fixture
def gripper(tmp_path):
    def load(motors):
        text = URDF.format(links="\n  ".join(LINK.format(name) for name in "abcd"))
        (tmp_path / "gripper.urdf").write_text(text)
        sheet = f"closed_loop: []\ntype: []\nname_mot: [{', '.join(motors)}]\n"
        (tmp_path / "gripper.yaml").write_text(sheet)
        return hc.load(tmp_path / "gripper.urdf")

    return load


def test_a_motor_on_a_joint_that_mimics_one_with_a_motor_is_told(gripper, caplog):
    mech = gripper(["right", "left", "lift"])
    assert coupled_motors(mech) == ("right",)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "gripper.yaml" in record.getMessage()
    assert "the motors 'right' add no motion" in record.getMessage()
    assert mech.actuated == ("right", "left", "lift")


@pytest.mark.parametrize("motors", [["left", "lift"], ["right", "lift"], ["lift", "thumb"]])
def test_one_motor_of_a_pair_is_enough(motors, gripper, caplog):
    assert coupled_motors(gripper(motors)) == ()
    assert not caplog.records


def test_the_doctor_the_tick_and_the_compiler_name_them(gripper):
    mech = gripper(["left", "right", "lift"])
    report = hc.mobility(mech)
    assert report.coupled_motors == ["right"]
    assert report.to_dict()["coupled_motors"] == ["right"]
    assert "'right' adds no motion: couplings connect" in " ".join(str(report).split())
    q, _ = hc.assemble(mech)
    prepared = hc.PreparedInverseDynamics(mech, hc.partition(mech, q))
    assert "'right': couplings tie" in prepared.general
    pytest.importorskip("casadi")
    from holoctl.codegen.expressions import symbolic
    from holoctl.codegen.laws.inverse_dynamics import inverse_function

    with pytest.raises(hc.InputError, match="'right': couplings tie"):
        inverse_function(symbolic(mech, hc.partition(mech, q)))
    fewer = dataclasses.replace(mech, actuated=["left", "lift"])
    assert hc.mobility(fewer).coupled_motors == []
    assert hc.PreparedInverseDynamics(fewer, hc.partition(fewer, q)).general == ""


def test_chains_differentials_and_joints_that_are_held():
    model = pin.Model()
    for name in "abcd":
        zoo.add_body(model, 0, pin.JointModelRZ(), zoo.at(), name, zoo.bar(0.3))
    every = list("abcd")
    chain = [hc.Coupling({"b": 1.0, "a": 2.0}), hc.Coupling({"c": 1.0, "b": -3.0}, offset=0.1)]
    assert coupled_motors(hc.Mechanism(model, chain, every)) == ("b", "c")
    differential = [hc.Coupling({"a": 1.0, "b": 1.0, "c": -2.0}, name="differential")]
    assert coupled_motors(hc.Mechanism(model, differential, every)) == ("a",)
    assert coupled_motors(hc.Mechanism(model, differential, ["b", "c", "d"])) == ()
    held = [hc.Coupling({"d": 1.0}, offset=0.2, name="held")]
    assert coupled_motors(hc.Mechanism(model, held, every)) == ("d",)
    B = np.array([[1.0, 0.0], [0.0, 5.0], [0.0, 0.0], [0.0, 0.0]])
    geared = hc.Mechanism(model, chain[:1], actuation=B)
    assert coupled_motors(geared) == ("u[1]",)
    assert coupled_motors(hc.Mechanism(model, [], every)) == ()
