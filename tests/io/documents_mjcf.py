"""Documents in MJCF that tests share."""

from __future__ import annotations

from support import GOLDEN

MODELS = GOLDEN / "mjcf"


ARM = """\
<mujoco model="arm">
  <compiler angle="radian"/>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0"/>
      <site name="pin" pos="0.3 0 0"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


GRIPPER = """\
<mujoco model="gripper">
  <compiler angle="radian" meshdir="assets" autolimits="true"/>
  <option impratio="10"/>
  <asset><mesh class="finger" file="driver.stl"/></asset>
  <default>
    <default class="finger">
      <mesh scale="0.001 0.001 0.001"/>
      <general biastype="affine"/>
      <joint axis="1 0 0"/>
      <default class="driver"><joint range="0 0.8" armature="0.005" damping="0.1"
         solimplimit="0.95 0.99 0.001" solreflimit="0.005 1"/></default>
      <default class="visual"><geom type="mesh" contype="0" conaffinity="0" group="2"/></default>
    </default>
  </default>
  <worldbody>
    <light pos="0 0 1"/>
    <body name="base" childclass="finger" quat="1 0 0 -1">
      <geom class="visual" mesh="base"/>
      <body name="right"><joint name="right" class="driver"/><geom class="visual" mesh="driver"/>
        <inertial mass="0.01" pos="0 0.02 0" diaginertia="2e-6 1.6e-6 4e-7"/>
        <body name="right_coupler" pos="0 0.03 0"><joint name="right_coupler"/>
          <inertial mass="0.01" pos="0 0.02 0" diaginertia="2e-6 1.6e-6 4e-7"/></body></body>
      <body name="follower" pos="0 0 0.02"><joint name="follower"/>
        <inertial mass="0.01" pos="0 0.02 0" diaginertia="2e-6 1.6e-6 4e-7"/></body>
      <body name="left" pos="0 -0.1 0" quat="0 0 0 1"><joint name="left" class="driver"/>
        <inertial mass="0.01" pos="0 0.02 0" diaginertia="2e-6 1.6e-6 4e-7"/></body>
    </body>
  </worldbody>
  <contact><exclude body1="base" body2="left"/></contact>
  <tendon><fixed name="split"><joint joint="right" coef="0.5"/></fixed></tendon>
  <equality>
    <connect anchor="0 0.03 0" body1="follower" body2="right_coupler" solref="0.005 1"/>
    <joint joint1="right" joint2="left" polycoef="0 1 0 0 0" solimp="0.95 0.99 0.001"/>
  </equality>
  <actuator>
    <general class="finger" name="fingers" tendon="split" ctrlrange="0 255" gainprm="0.3 0 0"/>
  </actuator>
</mujoco>
"""
