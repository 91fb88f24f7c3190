"""Reading SDF: loops become closures, frames mean what they say, mistakes are named."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from documents_sdf import BOX, GEARS, LOOP, SHEET, changed, line_of, place

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows

# ---------------------------------------------------------------------------------- meaning


def test_a_loop_with_frames_and_all_joints(robot):
    mech = robot()
    assert mech.name == "loop"
    assert mech.coordinate_names[:1] == ("a",)
    assert {"b[0]", "b[1]", "w"} < set(mech.coordinate_names)
    names = {c.name for c in mech.constraints}
    assert names in ({"c", "w-mimic"}, {"d", "w-mimic"})
    # Where things are drawn, by hand.
    X = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 0.3), np.array([0.5, 0, 1]))
    left = X * pin.SE3(pin.rpy.rpyToMatrix(np.deg2rad(10), 0, 0), np.zeros(3))
    tip = left * pin.SE3(pin.rpy.rpyToMatrix(0.3, 0, 0), np.array([0, 0, 0.5]))
    right = X * pin.SE3(pin.rpy.rpyToMatrix(0, 0.1, 0), np.array([0.4, 0, 0]))
    for frame, expected in (("left", left), ("tip", tip), ("bar", tip), ("right", right)):
        assert place(mech.model, mech.reference, frame).isApprox(expected, 1e-12), frame
    corner = place(mech.model, mech.reference, "corner").translation
    assert corner == pytest.approx(right.translation)


def test_loop_moves_as_its_joints_say(robot):
    mech = robot()
    drawn = {link: place(mech.model, mech.reference, link) for link in ("left", "right", "bar")}
    # d is drawn open: assembly closes it.
    q, _ = hc.assemble(mech)
    end = np.array([0, 0, 0.4])
    right, bar, left = (place(mech.model, q, link) for link in ("right", "bar", "left"))
    in_bar = drawn["bar"].actInv(drawn["right"].act(end))
    assert right.act(end) == pytest.approx(bar.act(in_bar), abs=1e-9)
    assert left.act(np.array([0, 0, 0.5])) == pytest.approx(bar.translation, abs=1e-9)
    rows = constraint_rows(mech, q, np.zeros(mech.nv))[1]
    assert np.abs(rows.error).max() < 1e-11


def test_mimic(robot):
    mech = robot()
    coupling = next(c for c in mech.constraints if isinstance(c, hc.Coupling))
    assert dict(coupling.coefficients) == {"w": 1.0, "a": -2.0}
    assert coupling.offset == pytest.approx(0.1 - 2 * 0.3)
    text = changed('<mimic joint="a">', '<mimic joint="b" axis="axis2">')
    coupling = next(c for c in robot(text).constraints if isinstance(c, hc.Coupling))
    assert dict(coupling.coefficients) == {"w": 1.0, "b[1]": -2.0}


def test_limits_and_losses(robot):
    model = robot().model

    def of(name):
        return model.joints[model.getJointId(name)].idx_q, model.joints[
            model.getJointId(name)
        ].idx_v

    q, v = of("a")
    assert (model.lowerPositionLimit[q], model.upperPositionLimit[q]) == (-1.0, 2.0)
    assert (model.upperEffortLimit[v], model.upperVelocityLimit[v]) == (11.0, 3.0)
    assert (model.damping[v], model.upperDryFrictionLimit[v]) == (0.4, 0.5)
    q, v = of("b[0]")
    assert (model.lowerPositionLimit[q], model.upperPositionLimit[q]) == (-0.5, 0.6)
    for unlimited in ("b[1]", "w"):
        assert model.upperPositionLimit[of(unlimited)[0]] == 1e6
    assert np.isfinite(pin.randomConfiguration(model)).all()


ARM_URDF = """\
<robot name="arm"><link name="base"/>
<link name="one">{box}</link><link name="two">{box}</link>
<joint name="j1" type="revolute"><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><parent link="base"/>
<child link="one"/><axis xyz="0 3 4"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
<joint name="j2" type="prismatic"><origin xyz="0.3 0 0" rpy="0.1 0 0.2"/><parent link="one"/>
<child link="two"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="9" velocity="9"/></joint>
</robot>"""
BOX_URDF = (
    '<inertial><origin xyz="0.1 0.02 0" rpy="0.1 0.2 0.3"/><mass value="1.5"/><inertia ixx="0.02" '
    'ixy="0.001" ixz="0" iyy="0.03" iyz="0.002" izz="0.04"/></inertial>'
)
ARM_SDF = f"""\
<sdf version="1.7"><model name="arm"><link name="base"/>
<joint name="j1" type="revolute"><pose relative_to="base">0.1 0.2 0.3 0.4 0.5 0.6</pose>
<parent>base</parent><child>one</child><axis><xyz>0 3 4</xyz></axis></joint>
<link name="one"><pose relative_to="j1"/>{BOX}</link>
<joint name="j2" type="prismatic"><pose relative_to="one">0.3 0 0 0.1 0 0.2</pose>
<parent>one</parent><child>two</child><axis><xyz>1 0 0</xyz></axis></joint>
<link name="two"><pose relative_to="j2"/>{BOX}</link></model></sdf>"""


@pytest.mark.parametrize("free_flyer", [False, True])
def test_a_tree_is_the_same_as_in_urdf(robot, tmp_path, free_flyer):
    (tmp_path / "arm.urdf").write_text(ARM_URDF.format(box=BOX_URDF), "utf-8")
    ours = robot(ARM_SDF.replace('<link name="base"/>', f'<link name="base">{BOX}</link>'),
                 free_flyer=free_flyer)  # fmt: skip
    text = ARM_URDF.format(box=BOX_URDF)
    text = text.replace('<link name="base"/>', f'<link name="base">{BOX_URDF}</link>')
    (tmp_path / "arm.urdf").write_text(text, "utf-8")
    theirs = hc.load(tmp_path / "arm.urdf", free_flyer=free_flyer)
    assert ours.coordinate_names == theirs.coordinate_names
    rng = np.random.default_rng(1)
    for _ in range(3):
        q = pin.integrate(theirs.model, theirs.reference, rng.uniform(-1, 1, theirs.nv))
        v = rng.uniform(-1, 1, theirs.nv)
        mine, other = hc.terms(ours, q, v), hc.terms(theirs, q, v)
        assert pytest.approx(other.M, abs=1e-12) == mine.M
        assert mine.h == pytest.approx(other.h, abs=1e-12)


@pytest.mark.parametrize(
    ("version", "switch", "in_model"),
    [
        ("1.4", "", True),
        ("1.5", "", False),
        ("1.6", "<use_parent_model_frame>1</use_parent_model_frame>", True),
        ("1.6", "<use_parent_model_frame>false</use_parent_model_frame>", False),
        ("1.7", "", False),
        ("1.11", "expressed", True),
    ],
)
def test_axes_of_all_versions(robot, version, switch, in_model):
    xyz = "<xyz>1 0 0</xyz>" + switch
    if switch == "expressed":
        xyz = '<xyz expressed_in="__model__">1 0 0</xyz>'
    mech = robot(
        f'<sdf version="{version}"><model name="m"><link name="a"/><link name="b">'
        "<pose>0 0 0 0 0 1.5707963267948966</pose></link>"
        f'<joint name="j" type="revolute"><parent>a</parent><child>b</child><axis>{xyz}</axis>'
        "</joint></model></sdf>"
    )
    q = np.array([0.3])
    turned = place(mech.model, q, "b").rotation @ place(mech.model, np.zeros(1), "b").rotation.T
    assert pin.log3(turned) == pytest.approx([0.3, 0, 0] if in_model else [0, 0.3, 0], abs=1e-12)


def test_a_closed_loop_moves_as_in_mjcf(robot, tmp_path):
    """A planar four-bar in both formats: the same accelerations."""
    places = {"crank": "0 0 0", "coupler": "0 0 0.2", "rocker": "0.5 0 0"}
    axes = {"crank": "0 1 0", "coupler": "0 1 0", "rocker": "0 1 0"}
    parents = {"crank": "world", "coupler": "crank", "rocker": "world"}
    links = "".join(f'<link name="{n}"><pose>{p} 0 0 0</pose>{BOX}</link>'
                    for n, p in places.items())  # fmt: skip
    joints = "".join(
        f'<joint name="{n}_joint" type="revolute"><parent>{parents[n]}</parent><child>{n}</child>'
        f"<axis><xyz>{a}</xyz></axis></joint>" for n, a in axes.items()
    )  # fmt: skip
    close = (
        '<joint name="tip" type="ball"><pose relative_to="rocker">0 0 0.25 0 0 0</pose>'
        "<parent>coupler</parent><child>rocker</child></joint>"
    )
    model = f'<model name="bars">{links}{joints}{close}</model>'
    sdf = robot(
        f'<sdf version="1.9"><world name="w"><gravity>0 1 -9</gravity>{model}</world></sdf>',
        yaml="name_mot: [crank_joint]\n",
    )
    inertial = (
        '<inertial pos="0.1 0.02 0" mass="1.5" diaginertia="0.02 0.03 0.04" euler="0.1 0.2 0.3"/>'
    )
    body = '<body name="{0}" pos="{1}"><joint name="{0}_joint" axis="{2}"/>' + inertial
    (tmp_path / "bars.xml").write_text(
        '<mujoco><compiler angle="radian" eulerseq="XYZ"/><option gravity="0 1 -9"/><worldbody>'
        + body.format("crank", "0 0 0", axes["crank"])
        + body.format("coupler", "0 0 0.2", axes["coupler"]) + "</body></body>"
        + body.format("rocker", "0.5 0 0", axes["rocker"]) + "</body></worldbody>"
        '<equality><connect name="tip" body1="rocker" body2="coupler" anchor="0 0 0.25"/>'
        '</equality><actuator><motor joint="crank_joint"/></actuator></mujoco>',
        "utf-8",
    )  # fmt: skip
    (tmp_path / "loop.sdf").write_text(
        (tmp_path / "loop.sdf").read_text("utf-8").replace("<ixy>0.001<", "<ixy>0<")
        .replace("<iyz>0.002<", "<iyz>0<"), "utf-8",
    )  # fmt: skip
    sdf, mjcf = hc.load(tmp_path / "loop.sdf"), hc.load(tmp_path / "bars.xml")
    assert sdf.coordinate_names == mjcf.coordinate_names
    q = hc.assemble(sdf, np.array([0.05, 0.1, 0.02]))[0]
    assert hc.assemble(mjcf, q)[0] == pytest.approx(q, abs=1e-10)
    v = hc.assemble(sdf, q, [1.0, 0.0, 0.0])[1]
    assert np.abs(v).max() > 0.1
    one, other = (hc.forward_dynamics(m, q, v, m.B @ [0.7]) for m in (sdf, mjcf))
    assert np.abs(one.a).max() > 0.1
    assert one.a == pytest.approx(other.a, rel=1e-9)


def test_links_without_inertia_have_that_of_sdf(robot):
    mech = robot(ARM_SDF.replace(BOX, "", 1))
    assert pin.computeTotalMass(mech.model) == pytest.approx(1.0 + 1.5)


@pytest.mark.parametrize(
    ("m", "w", "sm", "sw", "signs"),
    [
        (("base", "motor"), ("base", "wheel"), 1, 1, (1, 1)),
        (("base", "motor"), ("base", "wheel"), -1, 1, (-1, 1)),
        (("motor", "base"), ("base", "wheel"), 1, 1, (-1, 1)),
        (("base", "motor"), ("wheel", "base"), 1, -1, (1, 1)),
    ],
)
def test_gearbox(robot, m, w, sm, sw, signs):
    mech = robot(GEARS.format(m=m, w=w, sm=sm, sw=sw))
    (gear,) = mech.constraints
    assert gear.name == "g"
    assert dict(gear.coefficients) == {"m": 0.25 * signs[0], "w": 1.0 * signs[1]}


def test_gearbox_that_cannot_be_read(robot):
    text = GEARS.format(m=("base", "motor"), w=("motor", "wheel"), sm=1, sw=1)
    with pytest.raises(hc.LoadError, match="none connects 'base' and 'wheel'"):
        robot(text)
    text = GEARS.format(m=("base", "motor"), w=("base", "wheel"), sm=1, sw=1)
    with pytest.raises(hc.LoadError, match="axis2 is not the axis of joint 'w'"):
        robot(text.replace("<axis2><xyz>0 0 1", "<axis2><xyz>0 1 1"))


def test_gravity(robot):
    def gravity(before, after):
        text = LOOP.replace("<model", f"{before}<model").replace("</model>", f"</model>{after}")
        return robot(text).model.gravity.linear.tolist()

    assert gravity("", "") == [0, 0, -9.81]
    assert gravity('<world name="w">', "</world>") == [0, 0, -9.8]
    assert gravity('<world name="w"><gravity>0 1 2</gravity>', "</world>") == [0, 1, 2]


ARM_OF_TWO = """\
<sdf version="1.9"><model name="arm"><link name="base">{g[0]}{box}</link>
<link name="upper">{g[1]}{box}</link><link name="fore"><pose>0.5 0 0 0 0 0</pose>{g[2]}{box}</link>
<joint name="j" type="revolute"><parent>base</parent><child>upper</child>
<axis><xyz>0 1 0</xyz></axis></joint>
<joint name="k" type="revolute"><parent>upper</parent><child>fore</child>
<axis><xyz>0 0.6 0.8</xyz></axis></joint></model></sdf>"""


@pytest.mark.parametrize("off", [(0, 0, 1), (0, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1), (1, 0, 0)])
def test_links_without_gravity_have_inertia_and_no_weight(robot, off):
    """The same model, computed without gravity, and the weights by hand: heights differenced."""
    weights = ["<gravity>false</gravity>" if x else "" for x in off]
    mech = robot(ARM_OF_TWO.format(g=weights, box=BOX))
    plain = robot(ARM_OF_TWO.format(g=[""] * 3, box=BOX)).model.copy()
    plain.gravity.linear = np.zeros(3)
    q, v, g = np.array([0.4, -0.7]), np.array([1.3, 0.6]), 9.81

    def potential(q):
        heights = [place(plain, q, n).act(np.array([0.1, 0.02, 0.0]))[2] for n in ("upper", "fore")]
        return sum(1.5 * g * z for z, x in zip(heights, off[1:], strict=True) if not x)

    slope = [(potential(q + d) - potential(q - d)) / 2e-6 for d in 1e-6 * np.eye(2)]
    expected = pin.nonLinearEffects(plain, plain.createData(), q, v) + slope
    terms = hc.terms(mech, q, v)
    assert terms.h - terms.F == pytest.approx(expected, rel=1e-8, abs=1e-8)
    assert np.abs(terms.M - pin.crba(plain, plain.createData(), q)).max() < 1e-12
    stored = hc.energy(mech, q, v)
    rest = hc.energy(mech, 0.0 * q, v)
    book = stored.gravity + stored.springs - rest.gravity - rest.springs
    assert book == pytest.approx(potential(q) - potential(0.0 * q), abs=1e-12)
    assert len(mech.forces) == (0 if all(off) else sum(off[1:]))


def test_links_without_gravity_that_float(robot):
    text = ARM_OF_TWO.format(g=["", "", "<gravity>0</gravity>"], box=BOX)
    mech = robot(text, free_flyer=True)
    (force,) = mech.force_names
    assert force == "counterbalance of fore"
    all_of = pin.computeTotalMass(mech.model)
    terms = hc.terms(mech, mech.reference, np.zeros(mech.nv))
    held = (terms.h - terms.F)[:3]
    assert np.linalg.norm(held) == pytest.approx((all_of - 1.5) * 9.81)


def test_a_link_called_world_that_stands_in_the_world_is_the_world(robot, caplog):
    joint = '<joint name="held" type="{}"><parent>world</parent><child>base</child>{}</joint>'
    text = changed("</model>", joint.format("revolute", "<axis/>") + "</model>")
    link = '<link name="world"><pose relative_to="world"/>' + BOX + "</link>"
    plain, mech = robot(text), robot(changed("<link", link + "<link", text))
    assert "'world'" in caplog.records[-1].getMessage() + caplog.records[-2].getMessage()
    assert mech.model == plain.model
    assert mech.constraint_names == plain.constraint_names


def test_bounds_of_a_joint_that_mimics_backwards_may_be_exchanged(robot, caplog):
    text = changed("<multiplier>2<", "<multiplier>-2<")
    text = changed("<lower>-9</lower><upper>9</upper>", "<lower>2</lower><upper>-4</upper>", text)
    text = changed('<joint name="w" type="continuous">', '<joint name="w" type="revolute">', text)
    assert robot(text).limits.position["w"] == (-4.0, 2.0)
    (told,) = [r.getMessage() for r in caplog.records if "exchanged" in r.getMessage()]
    assert f"line {line_of('<lower>2<', text)}" in told
    with pytest.raises(hc.LoadError, match="lower 2 is above upper -4"):
        robot(changed("<multiplier>-2<", "<multiplier>2<", text))


def test_what_slows_bodies_and_plugins_that_tie_joints_are_told(robot, caplog):
    slow = "<velocity_decay><linear>0.1</linear></velocity_decay>"
    tie = '<plugin name="p" filename="libmimic.so"/><plugin name="r" filename="record.so"/>'
    robot(changed("<inertial>", f"{slow}<inertial>", changed("</model>", tie + "</model>")))
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "velocity_decay of 'base'" in told
    assert "'p'" in told
    assert "'r'" not in told


def test_free_flyer(robot):
    fixed, floating = robot(), robot(free_flyer=True)
    assert floating.nv == fixed.nv + 6
    X = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 0.3), np.array([0.5, 0, 1]))
    start = floating.model.idx_qs[floating.model.getJointId("root_joint")]
    assert floating.reference[start : start + 7] == pytest.approx(pin.SE3ToXYZQUAT(X))
    joint = '<joint name="{}" type="fixed"><parent>world</parent><child>base</child></joint>'
    text = changed("</model>", joint.format("held") + "</model>")
    assert robot(text).nv == fixed.nv
    assert place(robot(text).model, robot(text).reference, "base").isApprox(X)
    with pytest.raises(hc.LoadError, match=r"free_flyer: <joint> 'held' ties the model"):
        robot(text, free_flyer=True)


# --------------------------------------------------------------------------------------------- YAML


def test_motors_reference_and_more_from_yaml(robot):
    mech = robot(yaml=SHEET)
    assert mech.name == "other"
    assert mech.actuated == ("a", "b[1]")
    assert mech.constraint_names[-3:] == ("w-mimic", "tie", "extra")
    values = dict(zip(mech.coordinate_names, mech.reference, strict=False))
    assert values["a"] == 0.1
    q = [
        mech.reference[mech.model.joints[mech.model.getJointId(n)].idx_q] for n in ("b[0]", "b[1]")
    ]
    assert q == [0.2, 0.3]


@pytest.mark.parametrize("cut", ["a", "b", "c", "d"])
def test_any_joint_may_be_cut(robot, cut):
    """The cut does not change the motion: here the energy of gravity at the closed pose."""
    text = LOOP.replace("<mimic", "<!--").replace("</mimic>", "-->").replace(
        '<!-- joint="a">', "<!--"
    )  # fmt: skip
    mech = robot(text, yaml=f"cut: [{cut}]\n")
    assert [c.name for c in mech.constraints] == [cut]
    q, _ = hc.assemble(mech)
    weight = pin.computePotentialEnergy(mech.model, mech.model.createData(), q)
    first = robot(text, yaml="cut: [d]\n")
    assert weight == pytest.approx(
        pin.computePotentialEnergy(first.model, first.model.createData(), hc.assemble(first)[0])
    )


@pytest.mark.parametrize(
    ("sheet", "message", "line"),
    [
        ("name_mot: [a, x]\n", "no coordinate called 'x'", 1),
        ("name_mot: [a, a]\n", "'a' is given twice", 1),
        ("\nname_mot: [b]\n", r"joint 'b' has 2 coordinates", 2),
        ("cut: [x]\n", "no joint called 'x'", 1),
        ("cut: [a, b, c]\n", "separates", 1),
        ("\nreference: {x: 1}\n", "no joint called 'x'", 2),
        ("reference: {b: 1}\n", "shape", 1),
        ("joint_name: [a]\n", "no key 'joint_name'", 1),
        ("\n\ncouplings: [{coefficients: {x: 1}}]\n", "no coordinate called 'x'", 3),
        ("closed_loop: [[x, bar]]\ntype: [3d]\n", "no joint or frame called 'x'", 1),
        ("closed_loop: [[wheel, bar]]\n", "equal length", 1),
    ],
)
def test_errors_in_yaml_name_the_line(robot, sheet, message, line):
    with pytest.raises(hc.LoadError, match=message) as error:
        robot(yaml=sheet)
    assert error.value.file.endswith("loop.yaml")
    assert error.value.line == line


# ----------------------------------------------------------------------------------- errors

BALL_C = '<joint name="c" type="ball"><parent>tip</parent><child>bar</child></joint>'
ERRORS = [
    ('<sdf version="1.9">', '<sdf version="1.3">', "the version must be one of 1.4"),
    ('<sdf version="1.9">', "<sdf>", "the version must be one of"),
    ("<self_collide>true", "<static>1</static><self_collide>true", "a static model does not move"),
    ("<self_collide>", '<include><uri>model://x</uri></include><self_collide>', "not opened"),
    ("<self_collide>", '<model name="x"/><self_collide>', "nested models are"),
    ("<self_collide>", "<gripper/><self_collide>", "<gripper> in <model> 'loop' is not read"),
    ("<self_collide>", "<selfcollide/><self_collide>", r"did you mean 'self_collide'"),
    ('canonical_link="base"', 'canonical_link="bass"', "did you mean 'base'"),
    ('canonical_link="base"', 'placement_frame="bar"', "placement_frame is not read"),
    ('canonical_link="base"', 'canonical="base"', r"no attribute 'canonical' \(did you mean"),
    ("<pose>0.5 0 1 0 0 0.3</pose>", "<pose>0.5 0 1</pose>", "a pose has 6 finite numbers"),
    ("<pose>0.5 0 1 0 0 0.3</pose>", "<pose>0 0 1 0 0 nan</pose>", "a pose has 6 finite numbers"),
    ("<pose>0.5 0 1 0 0 0.3</pose>", '<pose relative_to="x"/>', "must be in the world"),
    ('<link name="wheel">', '<link name="left">', "<link> 'left' of line 9 has this name too"),
    ('<link name="wheel">', '<link name="world">', "the name 'world' is reserved"),
    ('<link name="wheel">', '<link name="__x__">', "is reserved"),
    ('<link name="wheel">', "<link>", "it needs a printable name"),
    ('relative_to="corner"', 'relative_to="corne"', r"no frame 'corne' \(did you mean 'corner'"),
    ('relative_to="corner"', 'relative_to="right"', "the pose of 'right' is relative to itself"),
    ('relative_to="corner"', 'relative_to="b"', "relative to itself"),
    ('relative_to="corner"', 'frame="corner"', "the attribute 'frame' of <pose> is not read"),
    ("0 0 0 0 0 0 1<", "0 0 0 0 0 0 2<", "the quaternion has norm 2, not 1"),
    ('rotation_format="quat_xyzw"', 'rotation_format="rpy"', "rotation_format must be"),
    ('degrees="true"', 'degrees="yes"', "degrees must be 0, 1, false or true"),
    ('type="universal"', 'type="screw"', "'screw' is not read: a screw couples a rotation with"),
    ('type="universal"', 'type="univers"', r"did you mean 'universal'"),
    ("<axis2><xyz>0 1 0", "<axis2><xyz>1 1 0", "must be at right angles"),
    ("<axis2><xyz>0 1 0</xyz></axis2>", "", "<axis2> is missing"),
    ("<axis2><xyz>0 1 0", "<axis2><xyz>0 0 0", "axis2 has no direction"),
    ("<axis2><xyz>0 1 0", "<axis2><xyz>0 1", "xyz must be three numbers"),
    ('expressed_in="__model__"', 'expressed_in="x"', "expressed_in: there is no frame 'x'"),
    ("<upper>2</upper>", "<upper>-2</upper>", "lower -1 is above upper -2"),
    ("<upper>2</upper>", "<upper>two</upper>", "upper must be a finite number; got 'two'"),
    ("<upper>2</upper>", "<upper>2</upper><upper>3</upper>", "<upper> is given twice"),
    (BALL_C, BALL_C.replace("tip", "tp"), r"no link called 'tp' \(did you mean 'tip'"),
    (BALL_C, BALL_C.replace("<parent>tip</parent>", ""), "<parent> is missing or empty"),
    (BALL_C, BALL_C.replace("bar", "left"), "same body 'left'"),
    ('<mimic joint="a">', '<mimic joint="x">', "mimic: there is no joint 'x'"),
    ('<mimic joint="a">', '<mimic joint="w">', "a joint cannot mimic itself"),
    ('<mimic joint="a">', '<mimic joint="c">', "joint 'c' has no angle or length"),
    ('<mimic joint="a">', '<mimic joint="a" axis="x">', "axis must be axis or axis2"),
    ("<mass>1.5", "<mass>-1.5", "mass .* must not be negative"),
    ("<ixx>0.02", "<ixx>-0.02", "must have no negative principal moment"),
    ("<inertial>", '<inertial auto="true">', "the inertia of shapes is not computed"),
    ("<inertial>", "<gravity>no</gravity><inertial>", "gravity must be 0, 1, false or true"),
    ('<link name="base">', '<link name="world"/><link name="base">', "its pose is not"),
    (
        '<link name="base">',
        '<link name="world"><pose relative_to="world"/></link>'
        '<joint name="x" type="fixed"><parent>base</parent><child>world</child></joint>'
        '<link name="base">',
        "no joint may tie it",
    ),
    ("<inertial>", "<kinematic>1</kinematic><inertial>", "a kinematic link is moved from outside"),
    ("<inertial>", "<fluid_added_mass/><inertial>", "the mass of a fluid"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "message"), ERRORS)
def test_errors_name_the_place(robot, before, after, message):
    with pytest.raises(hc.LoadError, match=message) as error:
        robot(changed(before, after))
    assert error.value.file.endswith("loop.sdf")
    assert error.value.line is not None


def test_lines(robot):
    for before, after in (("<upper>2", "<upper>two"), ('type="universal"', 'type="screw"')):
        with pytest.raises(hc.LoadError) as error:
            robot(changed(before, after))
        assert error.value.line == line_of(before)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<robot/>", "an SDF starts with <sdf>; this file starts with <robot>"),
        ('<sdf version="1.6"/>', "one <model> is read; there are 0: none"),
        ('<sdf version="1.6"><model name="m"/></sdf>', "there are no links"),
        (
            '<sdf version="1.6"><model name="m"/><world name="w"><model name="n"/></world></sdf>',
            "one <model> is read; there are 2: 'm', 'n'",
        ),
        ('<sdf version="1.6"><model name="m"><link name="a"/></model></sdf>', "has no joints"),
        (
            '<sdf version="1.6"><model name="m"><link name="a"/><link name="b"/></model></sdf>',
            "nothing connects these bodies to the ground: 'b'",
        ),
        (
            '<sdf version="1.6"><model name="m"><frame name="f"/><link name="a"/></model></sdf>',
            "<frame> is read from SDF 1.7 on",
        ),
        ('<!DOCTYPE sdf SYSTEM "x"><sdf version="1.6"/>', "document types and entities"),
    ],
)
def test_other_documents(robot, text, message):
    with pytest.raises(hc.LoadError, match=message):
        robot(text)


@pytest.fixture
def robot(tmp_path):
    """Write the two files; return a function that loads them."""

    def load(text=LOOP, yaml=None, **options):
        (tmp_path / "loop.sdf").write_text(text, "utf-8")
        if yaml is not None:
            (tmp_path / "loop.yaml").write_text(yaml, "utf-8")
        return hc.load(tmp_path / "loop.sdf", **options)

    return load


LIGHT = """<link name="mark"><inertial><mass>{}</mass><inertia><ixx>{}</ixx><ixy>0</ixy>
<ixz>0</ixz><iyy>1e-6</iyy><iyz>0</iyz><izz>1e-6</izz></inertia></inertial></link>
<joint name="m" type="revolute"><parent>wheel</parent><child>mark</child>
<axis><xyz>0 0 1</xyz></axis></joint>"""


def test_odd_inertias_of_light_links_are_mended_and_told(robot, caplog):
    """The nearest that a body has: one of 5 beside 1 and 1 shares what it has too much."""
    mech = robot(LOOP.replace("</model>", LIGHT.format(1e-3, 5e-6) + "</model>"))
    mark = mech.model.inertias[mech.model.getJointId("m")]
    moments = np.linalg.eigvalsh(mark.inertia)
    assert mark.mass == 1e-3
    assert moments == pytest.approx([2e-6, 2e-6, 4e-6], rel=1e-9)
    told = caplog.records[0].getMessage()
    assert "'mark' (the first: 2e-06, 2e-06, 4e-06 for 1e-06, 1e-06, 5e-06 kg m^2)" in told


@pytest.mark.parametrize(
    ("mass", "moment", "words"),
    [
        (0.1, 5e-6, "larger than the sum"),  # heavy
        (1e-3, 5e-3, "larger than the sum"),  # a flywheel
        (1e-3, -5e-6, "negative principal moment"),
    ],
)
def test_other_inertias_that_no_body_has_are_refused(robot, mass, moment, words):
    with pytest.raises(hc.LoadError, match=f"body 'mark'.*{words}"):
        robot(LOOP.replace("</model>", LIGHT.format(mass, moment) + "</model>"))
