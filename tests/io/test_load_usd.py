"""Stages with UsdPhysics are read to the mechanism that is built of the same parts in code."""

from __future__ import annotations

import logging

import numpy as np
import pinocchio as pin
import pytest
from support import relative
from zoo import at

import holoctl as hc

pytest.importorskip("pxr", reason="usd-core is missing: pip install 'holoctl[usd]'")

UNITS = {"m": (1.0, 1.0, "Z"), "cm": (0.01, 1.0, "Y"), "g": (1.0, 0.001, "Z")}


def numbers(x):
    return f"({', '.join(repr(float(y)) for y in x)})"


def quaternion(R):
    x, y, z, w = pin.Quaternion(R).coeffs()
    return numbers([w, x, y, z])


class Robot:
    """The same bodies and joints as text of a stage, and in a Linkage."""

    def __init__(self, metre=1.0, kilogram=1.0, up="Z", magnitude=None):
        self.metre, self.kilogram, self.up, self.magnitude = metre, kilogram, up, magnitude
        size = 9.81 if magnitude is None else magnitude
        gravity = np.array([0.0, -size, 0.0] if up == "Y" else [0.0, 0.0, -size])
        self.linkage, self.poses, self.text = hc.Linkage("robot", gravity), {}, []
        self.rng = np.random.default_rng(4)

    def body(self, name, pose, more=""):
        I = np.diag(m := self.rng.uniform(0.02, 0.03, 3))  # noqa: E741
        R, c, mass = pin.exp3(self.rng.normal(size=3)), self.rng.normal(size=3), 1.3
        self.linkage.add_body(name, mass, c, R @ I @ R.T)
        self.poses[name] = pose
        L, K = self.metre, self.kilogram
        self.text.append(f"""
    def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
    {{
        quatd xformOp:orient = {quaternion(pose.rotation)}
        double3 xformOp:translate = {numbers(pose.translation / L)}
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]
        float physics:mass = {mass / K}
        point3f physics:centerOfMass = {numbers(c / L)}
        float3 physics:diagonalInertia = {numbers(m / (K * L * L))}
        quatf physics:principalAxes = {quaternion(R)}
        {more}
    }}""")

    def joint(self, name, kind, parent, child, frame, more="", axis="Z", schemas=""):
        """A joint whose frame in both bodies is here now."""
        poses = [self.poses.get(x, pin.SE3.Identity()).actInv(frame) for x in (parent, child)]
        R = {"Z": np.eye(3), "X": pin.utils.rotate("y", np.pi / 2)}[axis]
        turned = [pose * pin.SE3(R, np.zeros(3)) for pose in poses]
        ours = "weld" if kind == "Fixed" else kind.lower()
        self.linkage.add_joint(name, ours, parent, child, *turned)
        lines = "" if kind in ("Fixed", "Spherical") else f'uniform token physics:axis = "{axis}"'
        for i, (body, pose) in enumerate(zip((parent, child), poses, strict=True)):
            if body != "universe":
                lines += f"\n        rel physics:body{i} = </robot/{body}>"
            lines += (
                f"\n        point3f physics:localPos{i} = {numbers(pose.translation / self.metre)}"
            )
            lines += f"\n        quatf physics:localRot{i} = {quaternion(pose.rotation)}"
        self.text.append(f"""
    def Physics{kind}Joint "{name}" {schemas}
    {{
        {lines}
        {more}
    }}""")

    def write(self, folder, more=""):
        head = f"""#usda 1.0
(
    metersPerUnit = {self.metre}
    kilogramsPerUnit = {self.kilogram}
    upAxis = "{self.up}"
)
"""
        if self.magnitude is not None:
            size = self.magnitude / self.metre
            head += (
                f'def PhysicsScene "scene" {{\n    float physics:gravityMagnitude = {size}\n}}\n'
            )
        path = folder / "robot.usda"
        path.write_text(head + 'def Xform "robot"\n{' + "".join(self.text) + more + "\n}\n")
        return path


CUT = "uniform bool physics:excludeFromArticulation = 1"
DRIVEN = '(prepend apiSchemas = ["PhysicsDriveAPI:angular"])'


def crank(units="m", closing=CUT, **more):
    """A crank, a rod on a ball joint, and a slider, which a hinge closes; a plate on the rod."""
    robot = Robot(*UNITS[units], **more)
    A, B, C, D = (at(*x) for x in ((0, 0, 0), (0.3, 0.1, 0.0), (0.8, 0.2, 0.4), (0.5, 0.1, 0.2)))
    robot.body("crank", at(0.1, 0.2, 0.0, R=pin.exp3(np.array([0.3, 0.2, 0.1]))))
    robot.body("rod", at(0.5, 0.0, 0.1, R=pin.exp3(np.array([-0.2, 0.4, 0.1]))))
    robot.body("block", C)
    robot.body("plate", at(0.4, 0.4, 0.2))
    L, K = robot.metre, robot.kilogram
    drive = f"float drive:angular:physics:maxForce = {7.0 / (K * L * L)}\n"
    drive += "float physics:lowerLimit = -90\nfloat physics:upperLimit = 45"
    robot.joint("motor", "Revolute", "universe", "crank", A, drive, "X", DRIVEN)
    robot.joint("ball", "Spherical", "crank", "rod", B)
    robot.joint("slide", "Prismatic", "universe", "block", C, "", "X")
    robot.joint("glue", "Fixed", "rod", "plate", D)
    robot.joint("hinge", "Spherical", "rod", "block", C, closing)
    return robot


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("magnitude", [None, 3.7])
def test_a_stage_is_read_to_the_mechanism_of_its_parts(units, magnitude, tmp_path):
    robot = crank(units, magnitude=magnitude)
    mech = hc.load(robot.write(tmp_path))
    expected = robot.linkage.mechanism(["hinge"], ["motor"])
    assert mech.constraint_names == ("hinge",)
    assert (mech.coordinate_names, mech.actuated) == (expected.coordinate_names, ("motor",))
    q, v = hc.assemble(expected, v_guess=np.ones(mech.nv))
    one, other = (hc.terms(m, q, v) for m in (mech, expected))
    for x in ("M", "h", "jacobian", "drift"):
        assert relative(getattr(one, x), getattr(other, x)) < 1e-6  # floats of the stage
        assert np.abs(getattr(other, x)).max() > 0.01
    assert np.abs(mech.reference - expected.reference).max() < 1e-6
    limits = hc.limits_of(mech)
    assert limits.effort["motor"] == pytest.approx(7.0, rel=1e-6)
    assert limits.position["motor"] == pytest.approx((-np.pi / 2, np.pi / 4), rel=1e-6)


def test_the_reference_is_where_the_stage_is(tmp_path):
    robot = Robot()
    robot.body("arm", at(R=pin.utils.rotate("z", 0.4)))
    robot.joint("hinge", "Revolute", "universe", "arm", at())
    path = robot.write(tmp_path)
    text = path.read_text()
    wrong = quaternion(pin.utils.rotate("z", -0.4))
    path.write_text(text.replace(f"localRot1 = {wrong}", f"localRot1 = {quaternion(np.eye(3))}"))
    mech = hc.load(path)
    assert mech.reference == pytest.approx([0.4], abs=1e-6)


def test_a_loop_that_is_not_marked_is_cut_by_the_rule_of_linkage(tmp_path):
    robot = crank(closing="")
    mech = hc.load(robot.write(tmp_path))
    assert mech.constraint_names == robot.linkage.mechanism((), ["motor"]).constraint_names


def test_a_robot_without_a_joint_to_the_world_is_fixed_or_floats(tmp_path, caplog):
    robot = Robot()
    robot.body("base", at(1.0, 2.0, 3.0))
    robot.body("arm", at(1.0, 2.0, 4.0))
    robot.joint("hinge", "Revolute", "base", "arm", at(1.0, 2.0, 3.5))
    path = robot.write(tmp_path)
    with caplog.at_level(logging.WARNING):
        fixed = hc.load(path)
    assert "no joint ties the robot to the world, so 'base' is fixed" in caplog.text
    assert fixed.coordinate_names == ("hinge",)
    floating = hc.load(path, free_flyer=True)
    assert floating.nv == 7
    assert floating.reference[:3] == pytest.approx([1.0, 2.0, 3.0])
    with pytest.raises(hc.LoadError, match="a joint ties the robot to the world"):
        hc.load(crank().write(tmp_path), free_flyer=True)


REFUSED = {  # what is replaced in the stage, by what, and what is said
    "mass": ("float physics:mass = 1.3", "", r"physics:mass must be given"),
    "centre": ("point3f physics:centerOfMass", "point3f other", "physics:centerOfMass must be"),
    "inertia": ("float3 physics:diagonal", "float3 other:", "physics:diagonalInertia must be"),
    "kind": ("PhysicsPrismaticJoint", "PhysicsDistanceJoint", "PhysicsDistanceJoint is not read"),
    "generic": ("PhysicsPrismaticJoint", "PhysicsJoint", "PhysicsJoint is not read"),
    "gear": ("PhysicsPrismaticJoint", "PhysxPhysicsGearJoint", "GearJoint is not read"),
    "mimic": ('"PhysicsDriveAPI:angular"', '"PhysxMimicJointAPI:rotX"', "Mimic.* is not read"),
    "armature": (CUT, "float physxJoint:armature = 0.2", "armature is not read, 0.2"),
    "other armature": (CUT, "float newton:armature = 0.2", "newton:armature is not read, 0.2"),
    "equality": ('"PhysicsDriveAPI:angular"', '"MjcEqualityJointAPI"', "MjcEquality.* is not read"),
    "no schema": ('["PhysicsRigidBodyAPI", "PhysicsMassAPI"]', '["PhysicsRigidBodyAPI"]',
                  "physics:mass and physics:centerOfMass and .* must be given"),
    "principal axes": ("quatf physics:principalAxes = (", "quatf physics:principalAxes = "
                       "(nan, 0, 0, 0) #", r"must be a quaternion .* got \(nan"),
    "no turn": ("quatf physics:localRot0 = (", "quatf physics:localRot0 = (0, 0, 0, 0) #",
                r"must be a quaternion .* got \(0, 0"),
    "direction": ('def Xform "robot"', 'def PhysicsScene "s" {\nvector3f physics:gravityDirection '
                  '= (nan, 0, 0)\n}\ndef Xform "robot"', "gravityDirection .* must be numbers"),
    "target": ("</robot/rod>", "</robot/rot>", "there is no prim '/robot/rot'"),
    "scale": ('["xformOp:translate", ', '["xformOp:scale", "xformOp:translate", ', "scaled"),
    "kinematic": ("float physics:mass", "bool physics:kinematicEnabled = 1\nfloat physics:mass",
                  "kinematic body"),
    "axis": ('physics:axis = "X"', 'physics:axis = "W"', "must be X, Y or Z; got 'W'"),
    "unit": ("metersPerUnit = 1.0", "metersPerUnit = 0", "metersPerUnit .* must be above zero"),
    "number": ("float physics:mass = 1.3", "float physics:mass = nan", "mass"),
    "turn": ("quatf physics:localRot0 = (", "quatf physics:localRot0 = (nan, 0, 0, 0) #",
             r"must be a quaternion .* got \(nan"),
    "limit": ("physics:lowerLimit = -90", "physics:lowerLimit = 90", "lower"),
    "same body": ("</robot/rod>", "</robot/crank>", "same body"),
    "text": ("#usda 1.0", "#usda", "OpenUSD cannot read it"),
    "no bodies": ("PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "there are no rigid bodies"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_read_is_refused_with_its_place(what, tmp_path):
    old, new, said = REFUSED[what]
    path = crank().write(tmp_path)
    text = path.read_text()
    assert old in text
    if what == "scale":
        new = new.replace('["xf', '["xf')
        text = text.replace("double3 xformOp:translate", "double3 xformOp:scale = (1, 2, 1)\n"
                            "        double3 xformOp:translate")  # fmt: skip
    path.write_text(text.replace(old, new))
    with pytest.raises(hc.LoadError, match=said) as found:
        hc.load(path)
    assert found.value.file == str(path)


@pytest.mark.parametrize("units", UNITS)
def test_gravity_below_zero_is_that_of_the_earth(units, tmp_path):
    metre, kilogram, up = UNITS[units]
    robot = Robot(metre, kilogram, up, magnitude=-1.0)
    robot.body("arm", at())
    robot.joint("hinge", "Revolute", "universe", "arm", at())
    down = [0.0, -9.81, 0.0] if up == "Y" else [0.0, 0.0, -9.81]
    assert hc.load(robot.write(tmp_path)).model.gravity.linear == pytest.approx(down)


def test_a_pose_over_time_counts_where_it_begins(tmp_path):
    robot = Robot()
    robot.body("arm", at(0.0, 0.0, 0.25))
    robot.joint("slide", "Prismatic", "universe", "arm", at())
    path = robot.write(tmp_path)
    text = path.read_text()
    old = "double3 xformOp:translate = (0.0, 0.0, 0.25)"
    assert old in text
    new = "double3 xformOp:translate.timeSamples = {0: (0, 0, 0.75), 1: (0, 0, 2)}"
    path.write_text(text.replace(old, new))
    assert hc.load(path).reference == pytest.approx([0.5])


LEFT_OUT = {  # what is replaced in the stage, by what, and the warning
    "drive": ('["PhysicsDriveAPI:angular"]', '["PhysicsDriveAPI:rotX"]',
              "drives and limits that are not read: 'PhysicsDriveAPI:rotX of /robot/motor'"),
    "limit": ('Joint "ball" ', 'Joint "ball" (prepend apiSchemas = ["PhysicsLimitAPI:rotY"])',
              "drives and limits that are not read: 'PhysicsLimitAPI:rotY of /robot/ball'"),
    "friction": (CUT, CUT + "\nfloat physxJoint:jointFriction = 0.5",
                 "friction and springs are not read: 'physxJoint:jointFriction of /robot/hinge'"),
    "file": ('def Xform "robot"', 'def "more" (references = @none.usda@) {\n}\ndef Xform "robot"',
             "OpenUSD leaves out what it cannot compose: 'Could not open asset @none.usda@"),
    "apart": ("localPos0 = (0.0, 0.0, 0.0)", "localPos0 = (9, 0, 0)",
              "/robot/motor: its bodies are 9 m or rad away"),
}  # fmt: skip


@pytest.mark.parametrize("what", LEFT_OUT)
def test_what_does_not_count_is_named(what, tmp_path, caplog, capfd):
    old, new, said = LEFT_OUT[what]
    path = crank().write(tmp_path)
    with caplog.at_level(logging.WARNING):
        hc.load(path)
    assert not caplog.text
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with caplog.at_level(logging.WARNING):
        hc.load(path)
    assert said in caplog.text
    if what == "file":
        assert "Could not open" in capfd.readouterr().err  # of OpenUSD itself


def test_joints_that_are_off_are_named_and_other_options_refused(tmp_path, caplog):
    cone = "float physics:coneAngle0Limit = 30\nbool physics:jointEnabled = 0"
    path = crank(closing=cone).write(tmp_path)
    path.write_text(path.read_text().replace('Joint "ball" \n    {', 'Joint "ball" \n    {\n'
                    "        float physics:coneAngle0Limit = 30"))  # fmt: skip
    with caplog.at_level(logging.WARNING):
        mech = hc.load(path)
    assert "joints that are switched off are left out: /robot/hinge" in caplog.text.replace("'", "")
    assert "limit cones of spherical joints are not read: /robot/ball" in (
        caplog.text.replace("'", "")
    )
    assert not mech.constraints
    with pytest.raises(hc.InputError, match="a USD has its joints"):
        hc.load(path, closures=tmp_path / "x.yaml")
    with pytest.raises(hc.LoadError, match="there is no such file"):
        hc.load(tmp_path / "none.usd")
