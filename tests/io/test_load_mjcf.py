"""Reading MJCF: the numbers are MuJoCo's, and what is not understood is named with its line."""

from __future__ import annotations

import json
import logging
import sys
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from documents_mjcf import ARM, GRIPPER, MODELS

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows, rows_of

FILES = sorted(path.stem for path in MODELS.glob("*.xml"))
FREE, BALL, SLIDE, HINGE = range(4)


def golden(name):
    return json.loads((MODELS / f"{name}.json").read_text("utf-8"))


def ours(model, numbers, qpos):
    """A configuration of MuJoCo's in our coordinates."""
    q = np.array(qpos)
    for j, kind in enumerate(numbers["joint_types"], start=1):
        i = model.idx_qs[j]
        if kind in (SLIDE, HINGE):
            q[i] -= numbers["qpos0"][i]
        else:
            i += 3 * (kind == FREE)
            q[i : i + 4] = np.roll(q[i : i + 4], -1)
    return q


def velocity_map(model, numbers, q):
    """T with MuJoCo's v = T v: the linear velocity of a free body is in world axes there."""
    T = np.eye(model.nv)
    for j, kind in enumerate(numbers["joint_types"], start=1):
        if kind == FREE:
            R = pin.XYZQUATToSE3(q[model.idx_qs[j] : model.idx_qs[j] + 7]).rotation
            T[model.idx_vs[j] :, model.idx_vs[j] :][:3, :3] = R
    return T


def velocity_map_rate(model, numbers, q, v):
    rate = np.zeros(model.nv)
    for j, kind in enumerate(numbers["joint_types"], start=1):
        if kind == FREE:
            R = pin.XYZQUATToSE3(q[model.idx_qs[j] : model.idx_qs[j] + 7]).rotation
            i = model.idx_vs[j]
            rate[i : i + 3] = R @ np.cross(v[i + 3 : i + 6], v[i : i + 3])
    return rate


# -------------------------------------------------------------------------------- goldens


@pytest.mark.parametrize("name", FILES)
def test_inertia_matrix_bias_and_places_are_those_of_mujoco(name):
    mech, numbers = hc.load(MODELS / f"{name}.xml"), golden(name)
    model, data = mech.model, mech.model.createData()
    for state in numbers["states"]:
        q = ours(model, numbers, state["qpos"])
        T = velocity_map(model, numbers, q)
        v = np.linalg.solve(T, state["qvel"])
        M = T.T @ state["M"] @ T
        h = T.T @ (state["bias"] + np.array(state["M"]) @ velocity_map_rate(model, numbers, q, v))
        terms = hc.terms(mech, q, v)
        assert pytest.approx(M, rel=1e-11, abs=1e-12) == terms.M
        assert terms.h == pytest.approx(h, rel=1e-10, abs=1e-11)
        pin.framesForwardKinematics(model, data, q)
        for kind, places in (
            (pin.FrameType.BODY, state["bodies"]), (pin.FrameType.OP_FRAME, state["sites"])
        ):  # fmt: skip
            for frame, place in places.items():
                if frame:
                    found = data.oMf[model.getFrameId(frame, kind)].translation
                    assert found == pytest.approx(np.array(place), abs=1e-12)


@pytest.mark.parametrize("name", FILES)
def test_limits_losses_keys_and_home_are_those_of_mujoco(name):
    mech, numbers = hc.load(MODELS / f"{name}.xml"), golden(name)
    model = mech.model
    keys = numbers["keys"]
    expected = keys.get("home", next(iter(keys.values()), numbers["qpos0"]))
    off = pin.difference(model, mech.reference, ours(model, numbers, expected))
    assert np.abs(off).max() < 1e-12
    assert model.damping == pytest.approx(np.array(numbers["damping"]))
    assert model.upperDryFrictionLimit == pytest.approx(np.array(numbers["frictionloss"]))
    for j, bounds in enumerate(numbers["range"], start=1):
        i = model.idx_qs[j]
        if bounds is not None:
            low, high = model.lowerPositionLimit[i], model.upperPositionLimit[i]
            assert np.array([low, high]) + numbers["qpos0"][i] == pytest.approx(bounds)
    q = pin.randomConfiguration(model)
    assert np.isfinite(q).all()


@pytest.mark.parametrize("name", FILES)
def test_rows_are_the_equalities_of_mujoco(name):
    mech, numbers = hc.load(MODELS / f"{name}.xml"), golden(name)
    for state in numbers["states"]:
        q = ours(mech.model, numbers, state["qpos"])
        error = constraint_rows(mech, q, np.zeros(mech.nv))[1].error
        for theirs, label in zip(state["equalities"], mech.constraint_names, strict=True):
            assert theirs["name"] in (label, "")
            mine, pos = error[rows_of(mech, label)], np.array(theirs["pos"])
            assert mine.shape == pos.shape
            if pos.size == 1:
                assert mine == pytest.approx(pos, abs=1e-12)
            else:  # in world axes there, in those of the first frame here
                assert np.linalg.norm(mine[:3]) == pytest.approx(np.linalg.norm(pos[:3]))
            if pos.size == 6:
                turned = np.linalg.norm(mine[3:]) / 2.0
                assert turned == pytest.approx(np.linalg.norm(pos[3:]), rel=1e-9)


def test_names_of_equalities_and_which_are_off():
    mech = hc.load(MODELS / "closed.xml")
    assert mech.constraint_names == (
        "bracket-rocker", "tie", "grip", "dock", "hold", "gear", "crank",
    )  # fmt: skip
    assert [(i, c.name) for i, c in mech.parked] == [(1, "pin"), (3, "glue")]


def test_motors_are_those_of_mujoco():
    mech, numbers = hc.load(MODELS / "closed.xml"), golden("closed")
    moment = np.array(numbers["moment"])  # the servo has two actuators on one joint
    assert pytest.approx(moment[[0, 2, 3, 4]]) == mech.B.T
    assert mech.actuator_names == ("u[0]", "u[1]", "u[2]", "u[3]")


def test_total_mass():
    mech = hc.load(MODELS / "total.xml")
    fixed = golden("total")["masses"][1]
    assert pin.computeTotalMass(mech.model) + fixed == pytest.approx(12.0)


@pytest.fixture
def robot(tmp_path):
    """Write a text; return a function that loads it."""

    def load(text=ARM, suffix=".xml", **options):
        (tmp_path / f"arm{suffix}").write_text(text, "utf-8")
        return hc.load(tmp_path / f"arm{suffix}", **options)

    return load


def with_line(after, line, text=ARM):
    """The text with one line more."""
    assert after in text
    return text.replace(after, f"{after}\n{line}", 1)


def with_section(line, text=ARM):
    return with_line("</worldbody>", line, text)


@pytest.mark.parametrize("suffix", [".xml", ".mjcf", ".MJCF"])
def test_suffixes(robot, suffix):
    mech = robot(suffix=suffix)
    assert mech.name == "arm"
    assert mech.coordinate_names == ("shoulder", "elbow")
    assert mech.model.existFrame("lower", pin.FrameType.BODY)
    assert mech.model.existFrame("pin", pin.FrameType.OP_FRAME)


def test_pinocchio_reads_the_same_where_it_reads_all(robot, tmp_path):
    """One body in the world, hinges along axes, an inertial: Pinocchio's own reader is right."""
    text = ARM.replace('<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0"/>',
                       '<inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.2 0.25"/>')  # fmt: skip
    mech = robot(text)
    theirs = pin.buildModelFromMJCF(str(tmp_path / "arm.xml"))
    q, v = np.array([0.3, -0.4]), np.array([1.0, 2.0])
    terms, data = hc.terms(mech, q, v), theirs.createData()
    assert pytest.approx(pin.crba(theirs, data, q)) == terms.M
    assert terms.h == pytest.approx(pin.nonLinearEffects(theirs, data, q, v))


def test_two_bodies_in_the_world_and_a_joint_equality_are_kept(robot):
    """Pinocchio's reader drops both, silently."""
    text = with_line("<worldbody>", '<body><joint name="w" axis="0 0 1"/><geom size="1"/></body>')
    mech = robot(with_section('<equality><joint joint1="w" joint2="elbow"/></equality>', text))
    assert mech.coordinate_names == ("w", "shoulder", "elbow")
    assert mech.constraint_names == ("w-elbow",)
    assert dict(mech.constraints[0].coefficients) == {"w": 1.0, "elbow": -1.0}


def test_names_are_made_up_where_there_are_none(robot):
    text = ARM.replace('name="elbow" ', "").replace('name="lower" ', "")
    text = with_line("<worldbody>", '<body name="ball"><freejoint/><geom size="1"/></body>', text)
    mech = robot(text)
    assert list(mech.model.names)[1:] == ["ball.free", "shoulder", "body_3.hinge"]


def test_made_up_names_are_new(robot):
    joints = '<joint axis="1 0 0"/><joint axis="0 1 0"/><joint name="lower.hinge_2"/>'
    mech = robot(ARM.replace(JOINT, joints).replace('name="upper"', 'name="body_1"'))
    assert mech.coordinate_names[1:] == ("lower.hinge", "lower.hinge_3", "lower.hinge_2")
    ball = with_line("<worldbody>", '<body><joint type="ball"/><geom size="1"/></body>')
    assert robot(ball).coordinate_names[0] == "body_1.ball[0]"
    with pytest.raises(hc.LoadError, match=r"coordinate 'x\[1\]' of a ball or free joint"):
        robot(ball.replace("<joint type", '<joint name="x" type').replace('"elbow"', '"x[1]"'))


def test_switched_off_equalities_wait_in_parked(robot):
    text = with_section(
        "<equality>"
        '<connect name="on" body1="lower" anchor="0.2 0 0"/>'
        '<connect name="off" body1="lower" anchor="0.1 0 0" active="false"/></equality>'
    )
    mech = robot(text)
    assert mech.constraint_names == ("on",)
    both = mech.with_enabled(off=True)
    assert both.constraint_names == ("on", "off")
    flags = '<option><flag equality="disable" gravity="disable"/></option>'
    mech = robot(with_section(flags, text))
    assert mech.constraint_names == ()
    assert [c.name for _, c in mech.parked] == ["on", "off"]
    assert not mech.model.gravity.vector.any()


def test_a_flag_that_switches_all_constraints_off_switches_equalities_off(robot):
    """As MuJoCo does: no force of a constraint, nor dry friction, is left."""
    text = with_section('<equality><joint joint1="elbow" joint2="shoulder"/></equality>')
    text = text.replace('name="elbow"', 'name="elbow" frictionloss="2"')
    flag = '<option><flag constraint="{}"/></option>'
    mech = robot(with_section(flag.format("disable"), text), losses=True)
    assert mech.constraint_names == ()
    assert [c.default_name for _, c in mech.parked] == ["elbow-shoulder"]
    assert all(not f.coulomb for f in mech.forces)
    again = flag.format("disable") + flag.format("enable")
    kept = robot(with_section(again, text), losses=True)
    assert kept.constraint_names == ("elbow-shoulder",)
    assert any(f.coulomb for f in kept.forces)
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(with_section(flag.format("disable"), text))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = (0.2, 0.5), (1.0, 2.0)
    mujoco.mj_forward(model, data)
    assert not data.qfrc_constraint.any()


WAIST = (
    '<tendon><fixed name="waist" limited="true" range="-0.01 0.01"><joint joint="shoulder" '
    'coef="0.5"/><joint joint="elbow" coef="-1"/></fixed></tendon>'
)


def test_limits_of_tendons_are_told(robot, caplog):
    """They would couple joints, up to some backlash."""
    text = with_section(WAIST)
    assert not robot(text).constraints
    (told,) = [r.getMessage() for r in caplog.records if "limits of" in r.getMessage()]
    line = 1 + text[: text.index("<fixed")].count("\n")
    assert f"'waist' (line {line}): +0.5 'shoulder' -1 'elbow' within -0.01 and 0.01" in told
    for off in (
        WAIST.replace("true", "false"),
        WAIST.replace('limited="true" range', "springlength"),
    ):
        caplog.clear()
        robot(with_section(off))
        assert "within" not in " ".join(r.getMessage() for r in caplog.records)
    rope = '<tendon><spatial><site site="pin"/><site site="top"/></spatial></tendon>'
    top = with_line("<worldbody>", '<site name="top"/>')
    robot(with_section('<default><tendon range="-1 1"/></default>' + rope, top))
    assert "within -1 and 1" in caplog.records[-1].getMessage()


def test_several_equalities_between_the_same_bodies_are_numbered(robot):
    connect = '<connect body1="lower" anchor="0.2 {} 0"/>'
    text = "<equality>" + "".join(connect.format(y) for y in (0, 1, 2)) + "</equality>"
    mech = robot(with_section(text))
    assert mech.constraint_names == ("lower-world", "lower-world-2", "lower-world-3")


def test_motors_without_gear_keep_their_names(robot):
    text = with_section(
        '<actuator><motor joint="elbow"/><position joint="shoulder" kp="9"/>'
        '<velocity joint="shoulder"/></actuator>'
    )
    mech = robot(text)
    assert mech.actuated == ("elbow", "shoulder")
    assert pytest.approx(np.array([[0.0, 1.0], [1.0, 0.0]])) == mech.B


def test_a_key_called_home_comes_first(robot):
    keys = '<keyframe><key qpos="1 2"/><key name="home" qpos="3 4"/><key name="x"/></keyframe>'
    assert robot(with_section(keys)).reference == pytest.approx([3, 4])
    assert robot(with_section(keys.replace("home", "other"))).reference == pytest.approx([1, 2])
    assert robot(with_section("<keyframe/>")).reference == pytest.approx([0, 0])


def test_springs_are_told_and_left_out(robot, caplog):
    text = ARM.replace('name="elbow"', 'name="elbow" stiffness="3" springref="0.1"')
    with caplog.at_level(logging.WARNING, "holoctl"):
        mech = robot(text.replace('name="lower"', 'name="lower" gravcomp="1"'))
    losses, lifted = (record.getMessage() for record in caplog.records)
    assert "friction and springs of the file are not part of the equation of motion" in losses
    assert "losses=True) reads damping of 'shoulder'; springs of 'elbow'" in losses
    assert "gravcomp" in lifted
    assert "'lower'" in lifted
    assert hc.terms(mech, [0.5, 0.5], [0, 0]).h == pytest.approx(
        hc.terms(robot(), [0.5, 0.5], [0, 0]).h
    )
    caplog.clear()
    still = ARM.replace(' damping="0.1"', ' damping="0"')
    robot(still.replace('name="elbow"', 'name="elbow" stiffness="0"'))
    assert not caplog.records


def test_limits_and_losses(robot):
    text = ARM.replace(
        'name="elbow"',
        'name="elbow" range="-1 2" ref="0.5" frictionloss="0.2" armature="0.3" '
        'actuatorfrcrange="-5 6"',
    )
    model = robot(text).model
    assert model.lowerPositionLimit == pytest.approx([-1e6, -1.5])
    assert model.upperPositionLimit == pytest.approx([1e6, 1.5])
    assert model.damping == pytest.approx([0.1, 0.0])
    assert model.armature == pytest.approx([0.0, 0.3])
    assert model.upperDryFrictionLimit == pytest.approx([0.0, 0.2])
    assert (model.lowerEffortLimit[1], model.upperEffortLimit[1]) == (-5.0, 6.0)


def test_free_flyer(robot):
    with pytest.raises(hc.LoadError, match=r"arm.xml:5: .*first body has a joint"):
        robot(free_flyer=True)
    text = ARM.replace('<joint name="shoulder" axis="0 1 0" damping="0.1"/>', "")
    mech = robot(text, free_flyer=True)
    assert list(mech.model.names)[1:] == ["root_joint", "elbow"]
    assert mech.reference == pytest.approx([0, 0, 1, 0, 0, 0, 1, 0])
    free = ARM.replace('<joint name="shoulder" axis="0 1 0" damping="0.1"/>', "<freejoint/>")
    assert robot(free).reference == pytest.approx(mech.reference)
    with pytest.raises(hc.LoadError, match="this body is free in the file"):
        robot(free, free_flyer=True)
    pair = with_line("<worldbody>", '<body name="z"><geom size="1"/></body>', free)
    with pytest.raises(hc.LoadError, match="this body is free in the file"):
        robot(pair, free_flyer=True)


def test_closures_argument_is_refused(robot, tmp_path):
    with pytest.raises(hc.InputError, match="an MJCF has an <equality>"):
        robot(closures=tmp_path / "arm.yaml")


def test_a_gripper_with_a_tendon(robot):
    """The words of a real gripper: all are known, and the tendon is a motor on its joint."""
    mech = robot(GRIPPER)
    assert mech.constraint_names == ("follower-right_coupler", "right-left")
    assert mech.actuator_names == ("u[0]",)
    assert mech.B[:, 0] == pytest.approx([0.5, 0, 0, 0])
    assert mech.model.armature == pytest.approx([0.005, 0, 0, 0.005])
    q, _ = hc.assemble(mech)
    assert q == pytest.approx(mech.reference)
    assert robot(GRIPPER.replace('tendon="split" ', 'joint="right" ')).actuated == ("right",)


def test_a_mesh_that_has_the_mass_is_opened_and_others_are_not(robot):
    """None of the gripper is there, and none is needed but where a body has no <inertial>."""
    text = GRIPPER.replace('<inertial mass="0.01" pos="0 0.02 0" diaginertia="2e-6 1.6e-6 4e-7"/>',
                           "", 1)  # fmt: skip
    text = text.replace('file="driver.stl"', 'file="driver.stl" name="driver"')
    with pytest.raises(hc.LoadError, match=r"<mesh> 'driver': .* there is no mesh") as error:
        robot(text)
    assert error.value.line == 4


def test_without_mujoco_it_is_told_what_to_install(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(hc.LoadError, match=r'MuJoCo.s compiler: pip install "holoctl\[mjcf\]"'):
        robot()
    monkeypatch.setitem(sys.modules, "mujoco", SimpleNamespace(__version__="3.9.1"))
    with pytest.raises(hc.LoadError, match=r"MuJoCo 4 or newer; this is 3\.9\.1: pip install"):
        robot()


# ---------------------------------------------------------------------------------- errors

JOINT = '<joint name="elbow" axis="0 1 0"/>'
GEOM = '<geom type="capsule" size="0.02" fromto="0 0 0 0.2 0 0"/>'
BODY = '<body name="lower" pos="0.3 0 0">'
IN_BODY = [  # instead of a line of ARM, and what is said of it
    (JOINT, '<joint name="elbow" axis="0 1"/>', "attribute 'axis' does not have enough data"),
    (JOINT, '<joint name="elbow" axis="0 0 0"/>', "axis too small in joint"),
    (
        JOINT,
        '<joint name="elbow" axis="0 nan 0"/>',
        "axis must be finite numbers, of no more .*; got '0 nan 0'",
    ),
    (JOINT, '<joint name="elbow" type="hing"/>', "invalid keyword: 'hing'"),
    (
        JOINT,
        '<joint name="elbow" axi="0 1 0"/>',
        r"unrecognized attribute: 'axi' \(did you mean 'axis'\?\)",
    ),
    (JOINT, '<joint name="shoulder"/>', "repeated name 'shoulder' in joint"),
    (JOINT, '<joint name="universe"/>', "the name 'universe' is that of the world"),
    (JOINT, '<joint class="fast"/>', "unknown default class name 'fast'"),
    (JOINT, '<joint armature="-1"/>', "armature must not be negative"),
    (JOINT, '<joint range="1 0"/>', "range: 1.0 must be less than 0.0"),
    (JOINT, '<joint limited="true"/>', "range.0. should be smaller than range.1. in joint"),
    (JOINT, '<joint type="free"/>', "free joint can only be used on top level"),
    (JOINT, "<freejoint/>", "free joint can only be used on top level"),
    (JOINT, '<plugin plugin="x"/>', "<plugin> in <body> is not read: the effect of a plugin is"),
    (JOINT, "<composite/>", "<composite>: .* unrecognized element"),
    (JOINT, "<flexcomp/>", "<flexcomp> in <body> is not read"),
    (JOINT, '<attach model="x"/>', "required attribute missing: 'prefix'"),
    (JOINT, "<join/>", r"<join>: .* unrecognized element \(did you mean 'joint'\?\)"),
    (JOINT, '<include file="/etc/passwd"/>', "'/etc/passwd' is not read: file= must be a path rel"),
    (GEOM, '<geom type="capsule" size="0.02"/>', "size 1 must be positive in geom"),
    (GEOM, '<geom type="box" size="1 0 1"/>', "size 1 must be positive in geom"),
    (
        GEOM,
        '<geom type="sphere" size="1" fromto="0 0 0 1 1 1"/>',
        "fromto requires capsule, cylinder, box or ellipsoid",
    ),
    (
        GEOM,
        '<geom type="capsule" size="1" fromto="1 1 1 1 1 1"/>',
        "fromto points too close in geom",
    ),
    (GEOM, '<geom type="plane" size="1 1 1"/>', "plane only allowed in static bodies"),
    (GEOM, '<geom mesh="x" type="mesh"/>', "mesh 'x' not found"),
    (GEOM, '<geom mesh="x" type="box"/>', "mesh 'x' not found"),
    (GEOM, '<geom hfield="x" type="hfield"/>', "hfield 'x' not found"),
    (GEOM, '<geom size="0.1" mass="-1"/>', "mass must not be negative"),
    (GEOM, '<inertial pos="0 0 0" mass="1"/>', "mass and inertia of moving bodies must be larger"),
    (GEOM, '<inertial mass="1" diaginertia="1 1 1"/>', "required attribute missing: 'pos'"),
    (
        GEOM,
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 3"/>',
        "inertia must satisfy A . B >= C",
    ),
    (
        GEOM,
        '<inertial pos="0 0 0" mass="1" fullinertia="1 1 1 2 0 0"/>',
        "inertia must have positive eigenvalues",
    ),
    (
        GEOM,
        '<inertial pos="0 0 0" mass="1" quat="1 1 0 0" fullinertia="1 1 1 0 0 0"/>',
        "at most one of 'fullinertia', 'quat'",
    ),
    (
        GEOM,
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1" fullinertia="1 1 1 0 0 0"/>',
        "fullinertia and diagonal inertia cannot both",
    ),
    (BODY, '<body name="upper">', "repeated name 'upper' in body"),
    (BODY, '<body name="world">', "repeated name 'world' in body"),
    (BODY, '<body mocap="true">', "mocap body .* is not a fixed child of world"),
    (
        BODY,
        '<body quat="1 0 0 0" euler="0 0 0">',
        "multiple orientation specifiers are not allowed",
    ),
    (BODY, '<body quat="0 0 0 0">', "zero quaternion is not allowed"),
    (BODY, '<body xyaxes="1 0 0 1 0 0">', "yaxis too small"),
    (BODY, '<body pos="0 0 1e999">', "pos must be finite numbers"),
    (BODY, '<body childclass="no">', "unknown default childclass"),
    (BODY, '<body coordinate="1">', "unrecognized attribute: 'coordinate'"),
]
OF_THE_BODY = (
    "free joint can only be used on top level",
    "mass and inertia of moving bodies must be larger",
    "inertia must satisfy A . B >= C",
    "inertia must have positive eigenvalues",
    "fullinertia and diagonal inertia cannot both",
)
SECTIONS = [
    ('<equality><tendon tendon1="a"/></equality>', "unknown element 'a' in equality constraint"),
    ('<equality><flex flex="a"/></equality>', "<flex> in <equality> is not read"),
    ("<equality><distance/></equality>", "<distance> in <equality> is not read: use hc.Rod"),
    (
        '<equality><connect body1="lower"/></equality>',
        "'site1', 'site2'., .'body1', 'anchor'. must be specified",
    ),
    ('<equality><connect body1="low" anchor="0 0 0"/></equality>', "did you mean 'lower'"),
    (
        '<equality><connect site1="pin"/></equality>',
        "'site1', 'site2'., .'body1', 'anchor'. must be specified",
    ),
    (
        '<equality><weld site1="pin" site2="x"/></equality>',
        "unknown element 'x' in equality constraint",
    ),
    (
        '<equality><weld body1="lower" relpose="0 0 0 0 0 0 1 1"/></equality>',
        "attribute 'relpose' has too much data",
    ),
    (
        '<equality><connect body1="lower" body2="lower" anchor="0 0 0"/></equality>',
        "element 'lower' is repeated in equality",
    ),
    (
        '<equality><joint joint1="elbow" joint2="shoulder" polycoef="0 1 2"/></equality>',
        "make a polynomial of higher order a hc.Custom",
    ),
    (
        '<equality><joint joint1="elbow" joint2="elbow"/></equality>',
        "element 'elbow' is repeated in equality",
    ),
    ('<equality><joint joint1="elbo"/></equality>', "did you mean 'elbow'"),
    (
        '<equality><weld name="a" body1="lower"/><weld name="a" body1="upper"/></equality>',
        "repeated name 'a' in equality",
    ),
    ('<actuator><motor site="pin"/></actuator>', "its transmission 'site' is not read"),
    ('<actuator><motor tendon="t"/></actuator>', "target 't' not found in actuator"),
    ("<actuator><motor/></actuator>", "missing transmission target for actuator"),
    (
        '<actuator><motor joint="elbow" gear="0"/></actuator>',
        "gear is zero: this motor acts on no coordinate",
    ),
    (
        '<actuator><motor joint="elbow" gear="2"/><motor joint="elbow"/></actuator>',
        "another actuator drives joint 'elbow' with another gear",
    ),
    ('<actuator><muscle joint="elbow"/></actuator>', "<muscle> in <actuator> is not read"),
    ('<actuator><damper joint="elbow"/></actuator>', "<damper> in <actuator> is not read"),
    ('<actuator><plugin joint="elbow"/></actuator>', "<plugin> in <actuator> is not read"),
    (
        '<tendon><fixed armature="1"><joint joint="elbow" coef="1"/><joint joint="shoulder" '
        'coef="1"/></fixed></tendon>',
        "armature of a tendon is not read",
    ),
    ("<tendon><fixed/></tendon>", "path cannot be empty"),
    (
        '<tendon><fixed><joint joint="elbow"/></fixed></tendon>',
        "required attribute missing: 'coef'",
    ),
    ('<tendon><fixed><joint joint="elbo" coef="1"/></fixed></tendon>', "did you mean 'elbow'"),
    (
        '<tendon><fixed><joint join="elbow" coef="1"/></fixed></tendon>',
        r"attribute: 'join' \(did you mean 'joint'\?\)",
    ),
    (
        '<tendon><fixed name="a"><joint joint="elbow" coef="1"/></fixed>'
        '<spatial name="a"/></tendon>',
        "repeated name 'a' in tendon",
    ),
    ('<keyframe><key qpos="1 2 3"/></keyframe>', "qpos must be 2 finite numbers"),
    ('<compiler coordinate="global"/>', "global coordinates no longer supported"),
    ('<compiler eulerseq="xy"/>', "'eulerseq' must have exactly 3 characters"),
    ('<compiler angle="grad"/>', "invalid keyword: 'grad'"),
    ('<default class="x"/>', "top-level default class 'main' cannot be renamed"),
    ("<default><default/></default>", "<default>: .* empty class name"),
    ('<default><default class="main"/></default>', "repeated default class name"),
    ("<deformable><flex/></deformable>", "<flex> in <deformable> is not read: a deformable body"),
    ('<option gravity="0 0"/>', "attribute 'gravity' does not have enough data"),
    ('<option><flag gravity="off"/></option>', "invalid keyword: 'off'"),
    ("<sensors/>", r"<sensors>: .* unrecognized element \(did you mean 'sensor'"),
    ("<worldbody><joint/></worldbody>", "World body cannot have joints"),
    ('<worldbody pos="0 0 1"/>', "World body cannot have attributes"),
    ('<asset><include file="x"/></asset>', "there is no file 'x' in the folder of the main"),
]


@pytest.mark.parametrize(("line", "instead", "message"), IN_BODY)
def test_errors_in_bodies_name_the_line(robot, line, instead, message):
    number = 1 + ARM[: ARM.index(line)].count("\n")
    of_body = 1 + ARM[: ARM.index(BODY)].count("\n")  # what MuJoCo finds when it compiles a body
    with pytest.raises(hc.LoadError, match=message) as error:
        robot(ARM.replace(line, instead))
    assert error.value.line == (of_body if message in OF_THE_BODY else number)
    assert error.value.file.endswith("arm.xml")


@pytest.mark.parametrize(("section", "message"), SECTIONS)
def test_errors_in_sections_name_the_line(robot, section, message):
    number = 2 + ARM[: ARM.index("</worldbody>")].count("\n")
    with pytest.raises(hc.LoadError, match=message) as error:
        robot(with_section(section))
    assert error.value.line == number


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this is not XML: no element found"),
        ("<mujoco>", "this is not XML"),
        ("<robot/>", "an MJCF starts with <mujoco>; .* <robot>, whose suffix should be .urdf"),
        ("<mujoco/>", "the model has no joints"),
        ('<!DOCTYPE m [<!ENTITY a "b">]><mujoco model="&a;"/>', "document types and entities"),
        ("<mujoco>" + "<worldbody>" * 500, "nested more than 400 deep"),
    ],
)
def test_other_documents(robot, text, message):
    with pytest.raises(hc.LoadError, match=message):
        robot(text)


def test_a_yaml_beside_an_mjcf_is_not_read_and_that_is_told(robot, tmp_path, caplog):
    (tmp_path / "arm.yaml").write_text("name_mot: [elbow]\n")
    with caplog.at_level("WARNING", logger="holoctl"):
        robot()
    assert "so arm.yaml is not read" in caplog.text


@pytest.mark.parametrize("ends", [
    'body1="upper" body2="lower" anchor="0.1 0.2 0.3" relpose="0.4 0.5 0.6 1 0.2 0.1 0.3"',
    'body1="upper" body2="lower" anchor="0.1 0.2 0.3"', 'body1="lower"', 'site1="pin" site2="tip"',
])  # fmt: skip
def test_a_weld_without_torque_is_a_point(robot, ends):
    """torquescale="0" leaves the rows of the anchor; another factor changes no row of ours."""
    text = with_line("<worldbody>", '<site name="tip" pos="0.1 0.3 -0.2" euler="1 2 3"/>')
    weld = f"<equality><weld {ends}/></equality>"
    q, v = np.array([0.3, -0.4]), np.zeros(2)
    whole = constraint_rows(robot(with_section(weld, text)), q, v)[1]
    point = constraint_rows(
        robot(with_section(weld.replace("/>", ' torquescale="0"/>'), text)), q, v
    )[1]
    assert (whole.error.size, point.error.size) == (6, 3)
    assert point.error == pytest.approx(whole.error[:3], abs=1e-15)
    assert point.jacobian == pytest.approx(whole.jacobian[:3], abs=1e-15)
    for scale in ("0.3", "5", "-1"):
        scaled = robot(with_section(weld.replace("/>", f' torquescale="{scale}"/>'), text))
        assert (constraint_rows(scaled, q, v)[1].jacobian == whole.jacobian).all()


def test_a_mocap_body_stays_where_it_is_drawn(robot, caplog):
    mocap = '<body name="hand" mocap="true" pos="0.5 0 1"><geom size="0.1"/></body>'
    text = with_section(
        '<equality><connect body1="hand" body2="lower" anchor="0 0 0"/></equality>',
        with_line("<worldbody>", mocap),
    )
    with caplog.at_level(logging.WARNING, "holoctl"):
        mech = robot(text)
    assert "arm.xml: mocap bodies, which are moved from outside, stay at" in caplog.text
    assert "'hand'" in caplog.text
    assert mech.coordinate_names == ("shoulder", "elbow")
    assert constraint_rows(mech, np.zeros(2), np.zeros(2))[1].error == pytest.approx(0.0)
    for wrong in ("<freejoint/>", "<frame><joint/></frame>"):
        with pytest.raises(hc.LoadError, match="is not a fixed child of world"):
            robot(text.replace('<geom size="0.1"/>', f'<geom size="0.1"/>{wrong}'))
    with pytest.raises(hc.LoadError, match="the first body is a mocap body, which cannot float"):
        robot(text, free_flyer=True)


def test_an_inertial_counts_where_geoms_have_no_mass(robot):
    """Also with inertiafromgeom="true", as in MuJoCo, which takes the geoms where there are any."""
    inertial = '<inertial pos="0 0 0" mass="3" diaginertia="1 1 1"/>'
    setting = '<compiler inertiafromgeom="true"/>'
    text = ARM.replace(GEOM, inertial).replace("<worldbody>", setting + "<worldbody>")
    assert robot(text).model.inertias[2].mass == 3.0
    assert robot(text.replace(inertial, inertial + GEOM)).model.inertias[2].mass != 3.0


def test_a_bound_puts_the_mass_of_a_body_without_any_at_its_pos(robot):
    setting = '<compiler boundmass="0.5" boundinertia="0.01"/>'
    lower = robot(ARM.replace(GEOM, "").replace("<worldbody>", setting + "<worldbody>"))
    assert lower.model.inertias[2].mass == 0.5
    assert lower.model.inertias[2].lever == pytest.approx([0.3, 0, 0])


def test_an_equality_between_parts_of_one_body_is_left_out_by_name(robot, caplog):
    text = ARM.replace(GEOM, f'{GEOM}<body name="tip" pos="0.2 0 0"/>')
    text = with_section(
        '<equality><weld body1="lower" body2="tip"/><weld body1="tip" body2="lower" name="glue"/>'
        '<connect body1="tip" anchor="0 0 0"/></equality>', text,
    )  # fmt: skip
    with caplog.at_level(logging.WARNING, "holoctl"):
        mech = robot(text)
    assert mech.constraint_names == ("tip-world",)
    assert "constrain nothing, and are left out: 'lower-tip', 'glue'" in caplog.text
