"""Documents that the tests of readers share."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

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


def with_joint(before, after, urdf=URDF):
    assert before in urdf
    return urdf.replace(before, after, 1)


def line_of(text, start):
    """Number of the last line that starts like this (the later one of two is at fault)."""
    found = [i for i, line in enumerate(text.split("\n"), 1) if line.startswith(start)]
    assert found, start
    return found[-1]


EMPTY_SHEET = "closed_loop: []\ntype: []\nname_mot: []\n"


def placement(model, q, frame):
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return data.oMf[model.getFrameId(frame)]


def replaced(joint, by):
    motors = YAML.replace("b, a", "b") if joint == "a" else YAML
    return motors + f"joint_name: [{joint}]\njoint_type: [{by}]\n"


MIMIC = with_joint('<dynamics damping="0.2"/>', '<mimic joint="b" multiplier="-2" offset="0.3"/>')


def some_q(model, seed=0):
    rng = np.random.default_rng(seed)
    return pin.integrate(model, pin.neutral(model), rng.uniform(-1, 1, model.nv))


TREE = "closed_loop: []\ntype: []\n"


RICH = YAML + (
    "closure_names: [c]\njoint_name: [elbow]\njoint_type: [UJOINT_xz]\n"
    "couplings:\n  - {coefficients: {a: 1, b: -2}, offset: 0.1, name: gear}\n"
    "reference: {a: 0.1, elbow: [0.1, 0.2], b: 1}\n"
)
