"""What the view shows of bodies: shapes of files stand where other readers put them, capsules on
the lines of the pictures; what cannot be shown is told."""

from __future__ import annotations

import itertools
import os
import re
import struct
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import zoo
from shared_robots import CASSIE_SDF_NAMES, SHARED_ROBOT_NAMES, cassie_sdf, shared_robot
from zoo import ZOO, one_of_each

import holoctl as hc
from holoctl.app.palette import MOTOR
from holoctl.app.skeleton import skeleton
from holoctl.app.view.capsules import slide_bars, thickness
from holoctl.app.view.geometry import capsules, read_geometry, shapes_of
from holoctl.app.view.joint_marks import joint_marks
from holoctl.app.view.labels import labels_of
from holoctl.app.view.shapes import color_of
from holoctl.app.view.triangles import ROUND

EMPTY_SHEET = "closed_loop: []\ntype: []\nname_mot: []\n"

INERTIAL = (
    '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    "</inertial>"
)

ARM = f"""<robot name="arm">
<material name="sky"><color rgba="0 0.5 1 1"/></material>
<link name="floor"><visual><origin xyz="0 0 -0.1"/><geometry><box size="2 1 0.2"/></geometry>
  </visual></link>
<link name="upper">{INERTIAL}<visual><origin xyz="0.2 0 0" rpy="0.1 -0.4 0.7"/>
  <geometry><cylinder radius="0.03" length="0.4"/></geometry><material name="sky"/></visual>
  <visual><geometry><sphere radius="0.05"/></geometry>
  <material name="own"><color rgba="1 0 0 0.5"/></material></visual></link>
<link name="plate">{INERTIAL}<collision><origin rpy="0 1.2 0" xyz="0 0.1 0"/>
  <geometry><box size="0.1 0.2 0.3"/></geometry></collision></link>
<link name="slide">{INERTIAL}</link>
<link name="finger">{INERTIAL}<visual><geometry><sphere radius="0.01"/></geometry>
  <material name="own"/></visual>
  <collision><geometry><box size="1 1 1"/></geometry></collision></link>
<joint name="shoulder" type="revolute"><origin xyz="0 0 0.5" rpy="0.3 0 0.2"/><parent link="floor"/>
  <child link="upper"/><axis xyz="0 1 0"/><limit effort="1" velocity="1" lower="-2" upper="2"/>
</joint>
<joint name="bolt" type="fixed"><origin xyz="0.4 0 0" rpy="0 0 1"/><parent link="upper"/>
  <child link="plate"/></joint>
<joint name="rail" type="prismatic"><origin xyz="0 0 0.1"/><parent link="plate"/>
  <child link="slide"/><axis xyz="0.6 0 0.8"/>
  <limit effort="1" velocity="1" lower="-0.1" upper="0.3"/></joint>
<joint name="pin" type="revolute"><origin xyz="0.1 0 0"/><parent link="slide"/>
  <child link="finger"/><axis xyz="1 0 0"/><limit effort="1" velocity="1" lower="-2" upper="2"/>
  <mimic joint="shoulder" multiplier="2"/></joint>
</robot>"""


def written(folder, name, text, sheet=EMPTY_SHEET):
    """A file, and its YAML file beside it; its path."""
    (folder / name).write_text(text, encoding="utf-8")
    (folder / name).with_suffix(".yaml").write_text(sheet, encoding="utf-8")
    return folder / name


def anywhere(mech, seed=0):
    """A configuration, most likely not closed."""
    rng = np.random.default_rng(seed)
    return pin.integrate(mech.model, mech.reference, 0.6 * rng.normal(size=mech.nv))


def in_world(mech, q, shapes):
    """Where shapes are at q."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    return [data.oMi[shape.joint] * shape.placement for shape in shapes]


def assert_well_formed(mech, shapes):
    for shape in shapes:
        assert 0 <= shape.joint < mech.model.njoints
        assert np.isfinite(shape.placement.homogeneous).all()
        assert len(shape.size) == {"box": 3, "sphere": 1, "mesh": 0}.get(shape.kind, 2)
        assert all(0.0 < x < np.inf for x in shape.size)
        assert len(shape.color) == 4
        assert all(0.0 <= x <= 1.0 for x in shape.color)
        assert (len(shape.faces) > 0) == (shape.kind == "mesh")
        assert np.isfinite(shape.vertices).all()


# ------------------------------------------------------------------------------------- URDF


@pytest.mark.parametrize("free_flyer", [False, True])
def test_a_urdf_is_shown_as_pinocchio_shows_it(tmp_path, free_flyer):
    file = written(tmp_path, "arm.urdf", ARM)
    mech = hc.load(file, free_flyer=free_flyer)
    shapes = [s for s in read_geometry(file, mech).shapes if s.body != "plate"]
    root = (pin.JointModelFreeFlyer(),) if free_flyer else ()
    model = pin.buildModelFromUrdf(str(file), *root)
    seen = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.VISUAL)
    found = seen.createData()
    assert len(shapes) == len(seen.geometryObjects)
    for seed in range(3):
        q = anywhere(mech, seed)
        pin.updateGeometryPlacements(model, model.createData(), seen, found, q)
        for shape, X, one, Y in zip(
            shapes, in_world(mech, q, shapes), seen.geometryObjects, found.oMg, strict=True
        ):
            assert one.name.startswith(shape.body)
            np.testing.assert_allclose(X.homogeneous, Y.homogeneous, atol=1e-14)
            if shape.kind == "box":
                np.testing.assert_allclose(shape.size, 2.0 * one.geometry.halfSide)
            else:
                assert shape.size[0] == one.geometry.radius


def test_a_posture_by_hand(tmp_path):
    """The shoulder at a quarter turn: x of the upper arm points down, in axes of its joint."""
    file = written(tmp_path, "arm.urdf", ARM.replace(' rpy="0.3 0 0.2"', ""))
    mech = hc.load(file)
    geometry = read_geometry(file, mech)
    assert geometry.words == ()
    q = np.array([np.pi / 2, 0.2, 0.0])
    places = in_world(mech, q, geometry.shapes)
    at = {s.body: X.translation for s, X in zip(geometry.shapes, places, strict=True)}
    np.testing.assert_allclose(at["floor"], [0, 0, -0.1])
    bolt = np.array([0, 0, 0.1])  # the shoulder at 0.5, less 0.4 of the upper arm
    y = np.array([0, np.cos(1.0), np.sin(1.0)])  # of the plate, turned by 1 rad about z of the arm
    assert y @ (at["plate"] - bolt) == pytest.approx(0.1)
    assert at["finger"] @ [1, 0, 0] == pytest.approx(0.1 + 0.2 * 0.8)  # z of the plate is x here


def test_colors_by_name_and_by_themselves(tmp_path):
    file = written(tmp_path, "arm.urdf", ARM)
    floor, tube, ball, plate, finger = read_geometry(file, hc.load(file)).shapes
    assert tube.color == (0.0, 0.5, 1.0, 1.0)
    assert ball.color == finger.color == (1.0, 0.0, 0.0, 0.5)
    assert floor.joint == 0
    assert floor.color != plate.color
    assert plate.joint == tube.joint  # a fixed joint makes one body of both


def test_bodies_without_a_drawing_are_capsules(tmp_path):
    file = written(tmp_path, "arm.urdf", ARM)
    mech = hc.load(file)
    geometry = shapes_of(mech, file)
    assert_well_formed(mech, geometry.shapes)
    (slide,) = [s for s in geometry.shapes if mech.model.names[s.joint] == "rail"]
    assert slide.kind == "capsule"
    assert length(slide) == pytest.approx(0.1)  # to the pin
    drawn = read_geometry(file, mech).shapes
    assert len(geometry.shapes) == len(drawn) + 1


def test_joints_that_become_others_keep_their_bodies(tmp_path):
    sheet = (
        "closed_loop: []\ntype: []\nname_mot: []\njoint_name: [shoulder, rail]\n"
        "joint_type: [UJOINT_YX, SPHERICAL]\n"
    )
    text = ARM.replace('<mimic joint="shoulder" multiplier="2"/>', "")
    file = written(tmp_path, "arm.urdf", text, sheet)
    mech = hc.load(file)
    shapes = read_geometry(file, mech).shapes
    names = {s.body: mech.model.names[s.joint] for s in shapes}
    assert names == {
        "floor": "universe", "upper": "shoulder[1]", "plate": "shoulder[1]", "finger": "pin"
    }  # fmt: skip
    plain = hc.load(written(tmp_path, "other.urdf", text))
    other = read_geometry(file, plain).shapes
    q, q0 = pin.neutral(mech.model), pin.neutral(plain.model)
    for X, Y in zip(in_world(mech, q, shapes), in_world(plain, q0, other), strict=True):
        np.testing.assert_allclose(X.homogeneous, Y.homogeneous, atol=1e-14)


# ----------------------------------------------------------------------------------- meshes

STL = """solid corner
facet normal 0 0 0
outer loop
vertex 0 0 0
vertex 1 0 0
vertex 0 2 0
endloop
endfacet
endsolid
"""
OBJ = "mtllib no.mtl\nusemtl x\nv 0 0 0\nv 1 0 0\nv 0 2 0\nf 1 2 3\n"


def one_link(tmp_path, filename, more=""):
    """A URDF of a link with a mesh; what is read of it."""
    text = (
        f'<robot name="r"><link name="base"/><link name="a">{INERTIAL}<visual><geometry>'
        f'<mesh filename="{filename}"{more}/></geometry></visual></link><joint name="j" '
        'type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>'
        "</robot>"
    )
    (tmp_path / "urdf").mkdir(exist_ok=True)
    file = written(tmp_path / "urdf", "r.urdf", text)
    return shapes_of(hc.load(file), file)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("../meshes/a.stl", "meshes/a.stl"),
        ("package://robot/meshes/a.STL", "robot/meshes/a.STL"),
        ("package://robot/meshes/a.obj", "meshes/a.obj"),
        ("package:///a.obj", "urdf/a.obj"),
        ("file://{}/my%20a.obj", "my a.obj"),
        ("{}/a.stl", "a.stl"),
    ],
)
def test_a_mesh_is_found(tmp_path, name, where):
    pytest.importorskip("trimesh")
    file = tmp_path / where
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(STL if file.suffix.lower() == ".stl" else OBJ)
    geometry = one_link(tmp_path, name.format(tmp_path), ' scale="0.1 0.1 -1"')
    assert geometry.words == ()
    (shape,) = geometry.shapes
    corners = shape.vertices[shape.faces[0]]
    # mirrored, the face is seen from the other side
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    np.testing.assert_allclose(normal, [0.0, 0.0, -0.02], atol=1e-9)
    assert {tuple(np.round(v, 6) + 0.0) for v in corners} == {(0, 0, 0), (0.1, 0, 0), (0, 0.2, 0)}


def test_a_package_is_where_the_environment_says(tmp_path, monkeypatch):
    pytest.importorskip("trimesh")
    (tmp_path / "else" / "share" / "robot").mkdir(parents=True)
    (tmp_path / "else" / "share" / "robot" / "a.obj").write_text(OBJ)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "else"))
    assert one_link(tmp_path, "package://robot/a.obj").words == ()


def stl_of_numbers(numbers):
    """A binary STL of one triangle: its normal, its corners."""
    return bytes(80) + struct.pack("<I12fH", 1, *numbers, 0)


DAE = """<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="decimeter" meter="0.1"/><up_axis>Y_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh><source id="p"><float_array id="f" count="9">0 0 0 10 0 0
0 20 0</float_array><technique_common><accessor source="#f" count="3" stride="3">
<param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
</accessor></technique_common></source><vertices id="v"><input semantic="POSITION" source="#p"/>
</vertices><triangles count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p>
</triangles></mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node><translate>0 0 10</translate>
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>
"""


def test_collada_is_in_its_unit_and_in_axes_as_they_are(tmp_path):
    """As viewers of URDF take it: turned by none of its words on what is up."""
    pytest.importorskip("coal")
    (tmp_path / "a.dae").write_text(DAE)
    geometry = one_link(tmp_path, "../a.dae")
    assert geometry.words == ()
    (shape,) = geometry.shapes
    corners = shape.vertices[shape.faces[0]]
    np.testing.assert_allclose(corners, [[0, 0, 1], [1, 0, 1], [0, 2, 1]], atol=1e-6)


BAD_MESHES = {
    "missing": ("gone.stl", None, "there is no mesh 'gone.stl'"),
    "nothing": ("", None, "the name of a mesh must be a path"),
    "far": ("http://robots.example/a.stl", None, "not downloaded"),
    "other": ("a.exe", b"MZ", "only stl, obj, dae, ply are"),
    "junk": ("a.stl", b"hello", "no triangles"),
    "empty": ("a.ply", b"ply\nformat ascii 1.0\n", "cannot be read"),
    "nan": ("a.stl", stl_of_numbers([0, 0, 1, 0, 0, 0, 1, 0, 0, 0, np.nan, 0]), "must be finite"),
    "torn": ("a.dae", b"<COLLADA><x>", "cannot be read"),
    "far corner": ("a.obj", b"v 0 0 0\nv 1 0 0\nv 0 2 0\nf 1 2 30\n", "a.obj"),
    "folder": ("..", None, "only stl, obj, dae, ply are|this is a directory"),
}


@pytest.mark.parametrize("name", BAD_MESHES)
def test_a_mesh_that_is_none_is_told_and_a_capsule_stands_in(tmp_path, name, capfd):
    pytest.importorskip("trimesh")
    filename, data, told = BAD_MESHES[name]
    (tmp_path / "urdf").mkdir()
    if data is not None:
        (tmp_path / "urdf" / filename).write_bytes(data)
    geometry = one_link(tmp_path, filename)
    (ball,) = (s for s in geometry.shapes if s.joint)
    assert ball.kind == "sphere"  # its centre of mass is in the joint
    (word,) = geometry.words
    assert any(part in word for part in told.split("|")), word
    assert "r.urdf:1: " in word
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_no_mesh(tmp_path):
    os.mkfifo(tmp_path / "a.stl")
    assert "this is a pipe" in one_link(tmp_path, "../a.stl").words[0]


def test_without_trimesh_meshes_are_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    (tmp_path / "a.stl").write_text(STL)
    geometry = one_link(tmp_path, "../a.stl")
    assert "pip install 'holoctl[view]'" in geometry.words[0]
    assert geometry.shapes


# ----------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('xyz="0.2 0 0"', 'xyz="nan 0 0"', "xyz must be 3 finite numbers"),
        ('rpy="0.1 -0.4 0.7"', 'rpy="1e400 0 0"', "rpy must be 3 finite numbers"),
        ('radius="0.03"', 'radius="-1"', "radius is required, and must be positive"),
        ('<cylinder radius="0.03" length="0.4"/>', "<cylindre/>", "did you mean 'cylinder'"),
        ('<cylinder radius="0.03" length="0.4"/>', "", "has 0"),
        ('rgba="1 0 0 0.5"', 'rgba="red"', "rgba must be three or four numbers"),
    ],
)
def test_a_visual_that_is_none_is_told_with_its_line(tmp_path, old, new, told):
    file = written(tmp_path, "arm.urdf", ARM.replace(old, new))
    mech = hc.load(file)
    geometry = shapes_of(mech, file)
    assert told in geometry.words[0]
    assert "arm.urdf:" in geometry.words[0]
    assert_well_formed(mech, geometry.shapes)
    assert {s.joint for s in geometry.shapes} == set(range(4))


def test_a_file_of_another_robot_is_told(tmp_path):
    file = written(tmp_path, "arm.urdf", ARM)
    mech = hc.load(hc.robot_file("five_bar"))
    geometry = shapes_of(mech, file)
    assert "do not belong to the mechanism" in geometry.words[0]
    assert "'plate'" in geometry.words[0]
    assert {s.joint for s in geometry.shapes} == {0, 1, 2, 3, 4}
    many = "".join(f'<visual name="{i}"/>' for i in range(30))
    file.write_text(f'<robot name="r"><link name="base">{many}</link></robot>')
    words = shapes_of(mech, file).words
    assert len(words) == 11
    assert words[-1] == "20 more are left out"


def test_a_file_that_is_no_robot_is_an_error(tmp_path):
    mech = hc.load(hc.robot_file("five_bar"))
    for name, text in (("a.urdf", "<sdf/>"), ("a.xml", "<robot/>"), ("a.sdf", "<sdf/>")):
        (tmp_path / name).write_text(text)
        with pytest.raises(hc.LoadError):
            shapes_of(mech, tmp_path / name)
    with pytest.raises(hc.LoadError, match="no such file"):
        shapes_of(mech, tmp_path / "gone.urdf")


# ------------------------------------------------------------------------------------- MJCF

MJCF = """<mujoco><compiler angle="degree" meshdir="m" eulerseq="zyx"/>
<default><geom rgba="1 0 0 1"/><default class="v"><geom type="box" size="0.1 0.2 0.3" group="2"/>
</default><default class="big"><mesh scale="2 -3 1"/></default></default>
<asset><mesh name="b" file="b.stl" refpos="0.1 0.2 0.3" refquat="0.5 0.5 -0.5 0.5" class="big"/>
<mesh file="b.stl" name="plain"/><mesh name="t" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
<worldbody><geom type="plane" size="1 1 1"/><geom name="g0" type="box" size=".1 .1 .1" pos="1 2 3"/>
<frame pos="0 0 1" euler="10 20 30">
<body pos="0.1 0.2 0.3" euler="30 40 50" childclass="v">
<joint name="h" axis="0 1 1" pos="0.1 0 0.2" ref="10"/>
<geom name="g1" pos="0.1 0 0" axisangle="1 1 0 40"/>
<geom name="g2" class="main" type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.02"/>
<geom name="g3" type="mesh" mesh="b" pos="0.1 0.2 0.3" euler="10 20 30"/>
<geom group="3" type="sphere" size="1"/><geom type="sphere" size="1" rgba="1 1 1 0"/>
<body pos="0.3 0 0"><geom name="g4" type="ellipsoid" size="0.1 0.2 0.3"/>
<body pos="0.3 0 0" name="x"><joint type="ball"/>
<inertial pos="0 0 0.1" mass="1" diaginertia="1 1 1"/>
<geom name="g5" group="3" type="cylinder" size="0.1 0.2" quat="1 1 0 0"/>
<body><joint type="slide" axis="1 2 3"/><inertial pos="0 0 0.1" mass="1" diaginertia="1 1 1"/>
<geom name="g6" type="mesh" mesh="plain" zaxis="1 1 0" class="main" rgba="0 1 0 1"/>
<geom name="g7" type="mesh" mesh="t"/></body></body></body></body></frame>
<body pos="1 1 1"><freejoint/><geom name="g8" size="0.1" class="main"/></body>
</worldbody></mujoco>"""


def mujoco_configuration(mech, q):
    """q in MuJoCo's order, with the one ref of the file."""
    found = q.copy()
    for name, joint in zip(mech.model.names, mech.model.joints, strict=True):
        i = joint.idx_q + joint.nq
        if joint.nq in (4, 7):
            found[i - 4 : i] = q[[i - 1, i - 4, i - 3, i - 2]]
        elif name == "h":
            found[i - 1] += np.deg2rad(10.0)
    return found


def test_an_mjcf_is_shown_as_mujoco_shows_it(tmp_path):
    mujoco, trimesh = pytest.importorskip("mujoco"), pytest.importorskip("trimesh")
    (tmp_path / "m").mkdir()
    brick = trimesh.creation.box((0.1, 0.2, 0.3))
    brick.apply_translation((0.3, 0.1, 0.0))
    brick.export(tmp_path / "m" / "b.stl")
    file = tmp_path / "r.xml"
    file.write_text(MJCF)
    mech = hc.load(file)
    geometry = read_geometry(file, mech)
    assert geometry.words == ()
    assert_well_formed(mech, geometry.shapes)
    theirs = mujoco.MjModel.from_xml_path(str(file))
    data, q = mujoco.MjData(theirs), anywhere(mech)
    data.qpos[:] = mujoco_configuration(mech, q)
    mujoco.mj_kinematics(theirs, data)
    places = in_world(mech, q, geometry.shapes)
    for i, (shape, X) in enumerate(zip(geometry.shapes, places, strict=True)):
        k = theirs.geom(f"g{i}").id
        Y = pin.SE3(data.geom_xmat[k].reshape(3, 3), data.geom_xpos[k])
        np.testing.assert_allclose(shape.color, theirs.geom_rgba[k])
        if theirs.geom_dataid[k] < 0:
            np.testing.assert_allclose(X.homogeneous, Y.homogeneous, atol=1e-12)
            half = {"box": (0.5, 0.5, 0.5)}.get(shape.kind, (1.0, 0.5))[: len(shape.size)]
            size = np.array(shape.size) * half
            size = size if size.size else np.abs(shape.vertices).max(axis=0)
            np.testing.assert_allclose(size, theirs.geom_size[k][: size.size], rtol=1e-12)
            continue
        mesh = theirs.mesh(theirs.geom_dataid[k].item())
        first, count = mesh.vertadr.item(), mesh.vertnum.item()
        wanted = [Y.act(v) for v in theirs.mesh_vert[first : first + count].astype(float)]
        found = np.array([X.act(v) for v in shape.vertices])
        off = np.linalg.norm(found[:, None] - np.array(wanted)[None], axis=2)
        assert max(off.min(axis=0).max(), off.min(axis=1).max()) < 1e-6  # of single precision
        assert trimesh.Trimesh(shape.vertices, shape.faces).volume > 0.0  # seen from outside


def test_a_geom_that_cannot_be_shown_is_told(tmp_path):
    (tmp_path / "r.xml").write_text(
        '<mujoco><asset><mesh name="m" file="gone.stl"/><hfield name="h" file="x" '
        'size="1 1 1 1"/></asset>'
        '<worldbody><geom type="hfield" hfield="h"/><body name="a"><joint type="slide"/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom type="mesh" mesh="m"/>'
        '<geom type="mesh" mesh="n"/><geom type="sdf" size="1"/>'
        "</body></worldbody></mujoco>"
    )
    mech = hc.load(tmp_path / "r.xml")
    geometry = shapes_of(mech, tmp_path / "r.xml")
    told = ["no mesh 'gone.stl'", "mesh 'n' not found", "must have valid meshid"]
    assert len(geometry.words) == len(told)
    assert all(t in word for t, word in zip(told, geometry.words, strict=True)), geometry.words
    assert {s.joint for s in geometry.shapes} == {0, 1}  # a rod to slide on, and a ball


# -------------------------------------------------------------------------------------- SDF

SDF = """<sdf version="1.7"><model name="loop"><pose>0 0 1 0 0 0.5</pose>
<frame name="f"><pose>1 2 3 0.1 0.2 0.3</pose></frame>
<link name="a"><pose>0.1 0 0 0 0.4 0</pose><visual name="v"><pose>0 0 0.1 1 0 0</pose>
 <geometry><box><size>0.1 0.2 0.3</size></box></geometry>
 <material><diffuse>0.2 0.4 0.6 1</diffuse></material><transparency>0.5</transparency></visual>
</link>
<link name="b"><pose>0.5 0 0 0 0 0</pose><visual name="v"><pose relative_to="f"/>
 <geometry><cylinder><radius>0.1</radius><length>0.2</length></cylinder></geometry></visual></link>
<link name="c"><pose>0.5 0 0.5 0 0 0</pose><collision name="c">
 <geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry></collision></link>
<link name="d"><visual name="v"><geometry><plane/></geometry></visual>
 <visual name="w"><geometry><sphere><radius>-1</radius></sphere></geometry></visual></link>
<joint name="ab" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 1 0</xyz></axis>
</joint>
<joint name="bc" type="revolute"><parent>b</parent><child>c</child><axis><xyz>0 1 0</xyz></axis>
</joint>
<joint name="ca" type="revolute"><parent>c</parent><child>a</child><axis><xyz>0 1 0</xyz></axis>
</joint>
<joint name="weld" type="fixed"><parent>c</parent><child>d</child></joint>
</model></sdf>"""


@pytest.mark.parametrize("free_flyer", [False, True])
def test_an_sdf_is_shown_where_it_is_drawn(tmp_path, free_flyer):
    file = written(tmp_path, "loop.sdf", SDF, "name_mot: []\n")
    mech = hc.load(file, free_flyer=free_flyer)
    geometry = read_geometry(file, mech)
    (word,) = geometry.words
    assert "sizes must be positive" in word
    a, b, c = in_world(mech, mech.reference, geometry.shapes)

    def pose(x, y, z, *rpy):
        return pin.SE3(pin.rpy.rpyToMatrix(*map(float, rpy)), np.array([x, y, z]))

    model = pose(0, 0, 1, 0, 0, 0.5)
    for found, wanted in (
        (a, model * pose(0.1, 0, 0, 0, 0.4, 0) * pose(0, 0, 0.1, 1, 0, 0)),
        (b, model * pose(1, 2, 3, 0.1, 0.2, 0.3)),
        (c, model * pose(0.5, 0, 0.5, 0, 0, 0)),
    ):
        np.testing.assert_allclose(found.homogeneous, wanted.homogeneous, atol=1e-14)
    assert geometry.shapes[0].color == (0.2, 0.4, 0.6, 0.5)
    np.testing.assert_allclose(np.abs(geometry.shapes[2].vertices).max(axis=0), [1, 2, 3])


@pytest.mark.parametrize("name", [CASSIE_SDF_NAMES[0], pytest.param(
    CASSIE_SDF_NAMES[-1], marks=pytest.mark.slow)])  # fmt: skip
def test_cassie_is_shown(name):
    file = cassie_sdf(name)
    mech = hc.load(file, free_flyer=name == CASSIE_SDF_NAMES[0])  # the other is held
    geometry = shapes_of(mech, file)
    assert_well_formed(mech, geometry.shapes)
    assert geometry.words == ()


# --------------------------------------------------------------------------------- capsules


def robots():
    yield from ((name, make) for name, make in ZOO.items())
    yield from ((n, lambda n=n: hc.load(hc.robot_file(n))) for n in hc.robot_names())
    yield "one_of_each", lambda: hc.Mechanism(one_of_each())


MECHANISMS = dict(robots())


def ends(X, length):
    return np.array([X.act(np.array([0.0, 0.0, s * length / 2.0])) for s in (-1.0, 1.0)])


def length(capsule):
    """From tip to tip."""
    return capsule.size[1] + 2.0 * capsule.size[0]


def bar_ends(mech, q, bars):
    """Where bars of some length begin and end in the world at q."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    found = [
        np.array([data.oMi[j].act(p) for j, p in zip(bar.joints, bar.ends, strict=True)])
        for bar in bars
    ]
    return [line for line in found if np.linalg.norm(line[1] - line[0]) > 1e-9]


def rounded(lines):
    return {tuple(sorted(map(tuple, np.round(line, 7) + 0.0))) for line in lines}


def assert_on_the_lines(mech):
    """Capsules run along the lines of the pictures, from end to end, each of them once; slides
    along their rails on the ground, elsewhere as bars."""
    shapes = capsules(mech)
    assert_well_formed(mech, shapes)
    assert {s.joint for s in shapes} >= {
        j for j in range(1, mech.model.njoints) if not list(mech.model.children[j])
    }
    bars = [s for s in shapes if s.kind == "capsule" and s.joint]
    rods = [s for s in shapes if s.kind == "capsule" and not s.joint]
    for seed in range(2):
        q = anywhere(mech, seed)
        seen = skeleton(mech, q)
        found = [ends(X, length(s)) for s, X in zip(bars, in_world(mech, q, bars), strict=True)]
        assert rounded(found) == rounded(seen.bodies)
        for line in seen.bodies:
            off = [min(np.abs(f - line).max(), np.abs(f[::-1] - line).max()) for f in found]
            assert min(off) < 1e-12
        ways = [ends(X, length(s)) for s, X in zip(rods, in_world(mech, q, rods), strict=True)]
        between = bar_ends(mech, q, slide_bars(mech))
        assert rounded(between) <= rounded(seen.slides)
        for line in seen.slides:
            if rounded([line]) <= rounded(between):
                continue
            off = [np.abs(np.cross(line - a, (b - a) / np.linalg.norm(b - a))) for a, b in ways]
            assert min((o.max() for o in off), default=0.0) < 1e-12


@pytest.mark.parametrize("name", MECHANISMS)
def test_capsules_are_on_the_lines_of_the_pictures(name):
    mech = MECHANISMS[name]()
    assert_on_the_lines(mech)
    assert [s.color for s in capsules(mech)] == [s.color for s in shapes_of(mech).shapes]


@pytest.mark.parametrize("name", SHARED_ROBOT_NAMES)
def test_real_robots_without_their_meshes_are_capsules(name):
    file = shared_robot(name)
    mech = hc.load(file)
    geometry = shapes_of(mech, file)
    assert "there is no mesh" in geometry.words[0]
    assert {s.kind for s in geometry.shapes if s.joint} <= {"capsule", "sphere", "cylinder"}
    assert {s.kind for s in geometry.shapes if not s.joint} <= {"capsule", "mesh"}
    assert_on_the_lines(mech)


def test_the_rail_of_a_slide_on_the_ground_is_as_long_as_its_limits(tmp_path):
    text = ARM.replace('name="shoulder" type="revolute"', 'name="shoulder" type="prismatic"')
    text = text.replace('lower="-2" upper="2"', 'lower="-0.1" upper="0.3"', 1)
    mech = hc.load(written(tmp_path, "arm.urdf", text))
    (rail,) = [s for s in capsules(mech) if s.joint == 0]  # it is the base too
    place = mech.model.jointPlacements[mech.model.getJointId("shoulder")]
    wanted = [place.act(np.array([0.0, x, 0.0])) for x in (-0.1, 0.3)]
    np.testing.assert_allclose(ends(rail.placement, length(rail)), wanted, atol=1e-14)
    carriage = next(s for s in capsules(mech) if s.joint == 1 and s.kind == "cylinder")
    assert carriage.size[0] > rail.size[0]  # the rail goes through it, along the same axis
    X = mech.model.jointPlacements[1] * carriage.placement
    np.testing.assert_allclose(X.translation, place.translation, atol=1e-14)
    np.testing.assert_allclose(X.rotation[:, 2], place.rotation[:, 1], atol=1e-14)


@pytest.mark.parametrize("name", MECHANISMS)
def test_capsules_that_lie_on_each_other_differ_in_radius_unless_in_color(name):
    mech = MECHANISMS[name]()
    radius = {}
    for shape in capsules(mech):
        if shape.kind == "capsule" and shape.joint and shape.size[1] > 6.0 * shape.size[0]:
            radius.setdefault(shape.color, set()).add(round(shape.size[0] / thickness(mech), 9))
    assert all(len(sizes) == 1 for sizes in radius.values())
    found = sorted(size for sizes in radius.values() for size in sizes)
    facets = 1.0 / np.cos(np.pi / ROUND)  # a round bar is a prism
    assert all(b > facets * a for a, b in itertools.pairwise(found))


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_base_is_beside_what_is_fixed_to_the_world(name):
    mech = MECHANISMS[name]()
    model, thick = mech.model, thickness(mech)
    fixed = [
        model.jointPlacements[j].translation
        for j in range(1, model.njoints)
        if model.parents[j] == 0
        and model.nvs[j] == 1
        and "P" not in model.joints[j].shortname()[10:]
    ]
    base = [s for s in capsules(mech) if s.joint == 0 and s.kind == "mesh"]
    if fixed and base:
        (plate,) = base
        corners = plate.vertices.reshape(-1, 3, 3)
        middle = corners.mean(axis=1)
        normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normal /= np.linalg.norm(normal, axis=1)[:, None]
        for point in fixed:  # beside the plate, as far as the thickest bar needs
            outside = ((point - middle) * normal).sum(axis=1)
            assert outside.max() == pytest.approx(1.1 * thick, rel=1e-6)
            assert (outside > 0.0).sum() < len(outside) / 2


def test_a_floating_robot_has_no_base():
    mech = zoo.floating_leg()
    assert not [s for s in capsules(mech) if s.joint == 0]
    standing = zoo.standing_leg()  # on contacts
    assert not [s for s in capsules(standing) if s.joint == 0]


def test_marks_are_at_their_joints():
    """An axle along its axis, a collar where a motor drives a rod; motors in their color."""
    for name in hc.robot_names():
        mech = hc.load(hc.robot_file(name))
        q = anywhere(mech)
        data = mech.model.createData()
        pin.computeJointJacobians(mech.model, data, q)
        motors = {int(j) for j in mech.joint_of[np.abs(mech.B).max(axis=1) > 0.0]}
        marks = joint_marks(mech)
        assert {m.body for m in marks} >= {mech.model.names[j] for j in motors}
        for mark, X in zip(marks, in_world(mech, q, marks), strict=True):
            j = mech.model.getJointId(mark.body)
            assert (mark.color == color_of(MOTOR)) is (j in motors)
            if mark.kind == "sphere" or mark.joint != j:
                continue
            S = pin.getJointJacobian(mech.model, data, j, pin.WORLD)[:, mech.model.idx_vs[j]]
            if np.linalg.norm(S[3:]) > 0.5:
                np.testing.assert_allclose(X.translation, data.oMi[j].translation, atol=1e-12)
                assert abs(X.rotation[:, 2] @ S[3:]) == pytest.approx(1.0)


def test_labels_are_there_once_for_each_place():
    for name in (*hc.robot_names(), *SHARED_ROBOT_NAMES):
        mech = hc.load(hc.robot_file(name) if name in hc.robot_names() else shared_robot(name))
        found = labels_of(mech)
        q = hc.assemble(mech)[0]
        data = mech.model.createData()
        pin.forwardKinematics(mech.model, data, q)
        text = " ".join(one.text for one in found)
        for motor in mech.actuator_names:
            assert re.search(rf"{re.escape(motor.split('[')[0])}\b.*motor", text)
        assert len({one.text for one in found}) == len(found)
        places = [data.oMi[one.joint].act(one.place) for one in found]
        for a, b in itertools.combinations(range(len(places)), 2):
            assert np.linalg.norm(places[a] - places[b]) > 1e-9
    stewart = [one.text for one in labels_of(hc.load(hc.robot_file("stewart")))]
    assert "foot_1" in stewart
    assert "leg_1 (motor)" in stewart
    assert not [text for text in stewart if "[" in text]


def test_no_slide_of_a_leg_stands_out_beyond_its_joints():
    """From where it is at zero to where it is, at any length."""
    mech = hc.load(hc.robot_file("stewart"))
    geometry = shapes_of(mech, hc.robot_file("stewart"))
    assert len(geometry.bars) == 6
    for seed in range(3):
        q = anywhere(mech, seed)
        data = mech.model.createData()
        pin.forwardKinematics(mech.model, data, q)
        for bar, line in zip(geometry.bars, bar_ends(mech, q, geometry.bars), strict=True):
            parent, j = bar.joints
            assert mech.model.parents[j] == parent
            assert mech.model.joints[j].shortname().startswith("JointModelP")
            np.testing.assert_allclose(line[1], data.oMi[j].translation, atol=1e-12)
            length = np.linalg.norm(line[1] - line[0])
            assert length == pytest.approx(abs(q[mech.model.idx_qs[j]]))
    for shape in geometry.shapes:  # nothing of a leg is fixed in it and goes along its slide
        children = [
            j for j in mech.model.children[shape.joint] if j in {b.joints[1] for b in geometry.bars}
        ]
        for j in children:
            place = mech.model.jointPlacements[j].translation
            far = [
                shape.placement.act(np.array([0.0, 0.0, s * shape.size[-1] / 2.0])) for s in (-1, 1)
            ]
            assert max(x @ place for x in far) <= place @ place * (1.0 + 1e-9)


def test_slides_between_bodies_of_a_file_have_no_bar(tmp_path):
    file = written(tmp_path, "arm.urdf", ARM)
    mech = hc.load(file)
    assert len(shapes_of(mech).bars) == 1
    assert shapes_of(mech, file).bars == ()


def test_a_body_of_no_extent_is_a_ball():
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
    model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Identity())
    model.inertias[1] = pin.Inertia(1.0, np.zeros(3), np.eye(3))
    (shape,) = capsules(hc.Mechanism(model))
    assert (shape.kind, shape.joint, shape.body) == ("sphere", 1, "free")


def test_nothing_but_the_file_names_it(tmp_path, monkeypatch):
    """A relative path is that of the file, wherever the process stands."""
    pytest.importorskip("trimesh")
    (tmp_path / "a.stl").write_text(STL)
    assert one_link(tmp_path, "../a.stl").words == ()
    monkeypatch.chdir(tmp_path / "urdf")
    mech = hc.load("r.urdf")
    assert shapes_of(mech, Path("r.urdf")).words == ()
