"""Documents in SDF that tests share, and a function that loads them."""

from __future__ import annotations

import pinocchio as pin

BOX = (
    "<inertial><pose>0.1 0.02 0 0.1 0.2 0.3</pose><mass>1.5</mass><inertia><ixx>0.02</ixx>"
    "<ixy>0.001</ixy><ixz>0</ixz><iyy>0.03</iyy><iyz>0.002</iyz><izz>0.04</izz></inertia></inertial>"
)


LOOP = f"""\
<?xml version="1.0"?>
<sdf version="1.9">
  <model name="loop" canonical_link="base">
    <pose>0.5 0 1 0 0 0.3</pose>
    <self_collide>true</self_collide>
    <frame name="corner" attached_to="base"><pose>0.4 0 0 0 0 0</pose></frame>
    <frame name="tip" attached_to="left"><pose relative_to="left">0 0 0.5 0.3 0 0</pose></frame>
    <link name="base">{BOX}<visual name="v"><geometry/></visual></link>
    <link name="left"><pose degrees="true">0 0 0 10 0 0</pose>{BOX}</link>
    <link name="right">
      <pose relative_to="corner">0 0 0 0 0.1 0</pose>
      {BOX}
    </link>
    <link name="bar">
      <pose relative_to="tip" rotation_format="quat_xyzw">0 0 0 0 0 0 1</pose>
      {BOX}
    </link>
    <link name="wheel"><pose>0 0 -0.5 0 0 0</pose>{BOX}</link>
    <joint name="a" type="revolute">
      <parent>base</parent>
      <child>left</child>
      <axis>
        <xyz expressed_in="__model__">1 0 0</xyz>
        <limit><lower>-1</lower><upper>2</upper><effort>11</effort><velocity>3</velocity></limit>
        <dynamics><damping>0.4</damping><friction>0.5</friction></dynamics>
      </axis>
    </joint>
    <joint name="b" type="universal">
      <parent>corner</parent>
      <child>right</child>
      <axis><xyz>1 0 0</xyz><limit><lower>-0.5</lower><upper>0.6</upper></limit></axis>
      <axis2><xyz>0 1 0</xyz></axis2>
    </joint>
    <joint name="c" type="ball"><parent>tip</parent><child>bar</child></joint>
    <joint name="d" type="ball">
      <pose relative_to="right">0 0 0.4 0 0 0</pose>
      <parent>right</parent>
      <child>bar</child>
    </joint>
    <joint name="w" type="continuous">
      <parent>base</parent>
      <child>wheel</child>
      <axis>
        <xyz>0 0 1</xyz>
        <mimic joint="a">
          <multiplier>2</multiplier><offset>0.1</offset><reference>0.3</reference>
        </mimic>
        <limit><lower>-9</lower><upper>9</upper></limit>
      </axis>
    </joint>
  </model>
</sdf>
"""


def place(model, q, frame):
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    return data.oMf[model.getFrameId(frame)]


def changed(before, after, text=LOOP):
    assert before in text
    return text.replace(before, after, 1)


def line_of(piece, text=LOOP):
    return 1 + text[: text.index(piece)].count("\n")


GEARS = """\
<sdf version="1.9"><model name="gears"><link name="base"/><link name="motor"/><link name="wheel"/>
<joint name="m" type="revolute"><parent>{m[0]}</parent><child>{m[1]}</child>
<axis><xyz>0 0 {sm}</xyz></axis></joint>
<joint name="w" type="revolute"><parent>{w[0]}</parent><child>{w[1]}</child>
<axis><xyz>0 0 {sw}</xyz></axis></joint>
<joint name="g" type="gearbox"><parent>motor</parent><child>wheel</child>
<gearbox_ratio>0.25</gearbox_ratio><gearbox_reference_body>base</gearbox_reference_body>
<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2></joint>
</model></sdf>"""


SHEET = """\
name_mot: [a, "b[1]"]
reference: {a: 0.1, b: [0.2, 0.3]}
couplings:
  - {coefficients: {w: 1, "b[0]": 2}, name: extra}
closed_loop: [[wheel, bar]]
type: [x]
closure_names: [tie]
name: other
"""
