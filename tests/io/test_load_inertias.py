"""Masses and inertias in files, and what is worth a warning."""

from __future__ import annotations

import numpy as np
import pytest
from documents import EMPTY_SHEET, URDF, YAML

import holoctl as hc

# ----------------------------------------------------------------------------------------- inertias


NO_BODIES = {  # xx, yy, zz, xy, xz, yz and what is wrong
    "iyy below zero": ((1.0, -0.5, 1.0, 0.0, 0.0, 0.0), "negative principal moment"),
    "izz below zero": ((1.0, 1.0, -1.0, 0.0, 0.0, 0.0), "negative principal moment"),
    "large product": ((1.0, 1.0, 1.0, 9.0, 0.0, 0.0), "negative principal moment"),
    "one too large": ((1.0, 1.0, 2.1, 0.0, 0.0, 0.0), "larger than the sum"),
    "turned": ((1.0, 1.55, 1.55, 0.0, 0.0, 0.55), "larger than the sum"),  # 1, 1, 2.1
}


BODIES = {
    "point": (0.0,) * 6,
    "rod": (0.0, 1.0, 1.0, 0.0, 0.0, 0.0),
    "rounded rod": (-4e-6, 1.0, 1.000002, 0.0, 0.0, 0.0),
    "disk": (1.0, 1.0, 2.0, 0.0, 0.0, 0.0),
    "rounded disk": (1.0, 1.0, 2.00001, 0.0, 0.0, 0.0),
}


def hinged(suffix, moments, mass=1.0):
    """A file with one hinge, and a body of this inertia on it."""
    xx, yy, zz, xy, xz, yz = moments
    if suffix == "urdf":
        return (
            f'<robot name="r"><link name="base"/><link name="body"><inertial><mass value="{mass}"/>'
            f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="{xz}" iyz="{yz}"/>'
            '</inertial></link><joint name="j" type="continuous"><parent link="base"/>'
            '<child link="body"/><axis xyz="0 0 1"/></joint></robot>'
        )
    if suffix == "sdf":
        inertia = f"<ixx>{xx}</ixx><iyy>{yy}</iyy><izz>{zz}</izz>"
        inertia += f"<ixy>{xy}</ixy><ixz>{xz}</ixz><iyz>{yz}</iyz>"
        return (
            '<sdf version="1.9"><model name="m"><link name="base"/><link name="body"><inertial>'
            f"<mass>{mass}</mass><inertia>{inertia}</inertia></inertial></link>"
            '<joint name="j" type="revolute"><parent>base</parent><child>body</child>'
            "<axis><xyz>0 0 1</xyz></axis></joint></model></sdf>"
        )
    full = " ".join(map(str, moments))
    return (
        '<mujoco><worldbody><body name="body"><joint name="j" axis="0 0 1"/>'
        f'<inertial pos="0 0 0" mass="{mass}" fullinertia="{full}"/></body></worldbody></mujoco>'
    )


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml"])
@pytest.mark.parametrize("case", NO_BODIES)
def test_inertias_that_no_body_has_are_refused(suffix, case, tmp_path):
    moments, words = NO_BODIES[case]
    (tmp_path / f"r.{suffix}").write_text(hinged(suffix, moments), "utf-8")
    with pytest.raises(hc.LoadError) as caught:
        hc.load(tmp_path / f"r.{suffix}")
    assert caught.value.line
    if suffix != "xml":  # MuJoCo's own words
        assert words in str(caught.value)
        assert "'body'" in str(caught.value)
        smallest = np.linalg.eigvalsh(matrix_of(moments))[0]
        assert f"{smallest:.6g}" in str(caught.value)


def matrix_of(moments):
    xx, yy, zz, xy, xz, yz = moments
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
@pytest.mark.parametrize("case", BODIES)
def test_points_rods_and_rounded_inertias_are_bodies(suffix, case, tmp_path):
    (tmp_path / f"r.{suffix}").write_text(hinged(suffix, BODIES[case]), "utf-8")
    inertia = hc.load(tmp_path / f"r.{suffix}").model.inertias[1]
    assert inertia.inertia == pytest.approx(matrix_of(BODIES[case]), abs=1e-15)


@pytest.mark.parametrize("suffix", ["urdf", "sdf", "xml"])
def test_negative_masses_are_refused_and_no_mass_is_not(suffix, tmp_path):
    (tmp_path / f"r.{suffix}").write_text(hinged(suffix, BODIES["disk"], -1.0), "utf-8")
    with pytest.raises(hc.LoadError, match="must not be negative; got -1") as caught:
        hc.load(tmp_path / f"r.{suffix}")
    assert caught.value.line
    (tmp_path / f"r.{suffix}").write_text(hinged(suffix, BODIES["disk"], 0.0), "utf-8")
    assert hc.load(tmp_path / f"r.{suffix}").model.inertias[1].mass == 0.0


def test_the_inertia_of_a_link_that_is_fixed_to_another_counts_by_itself(robot):
    """Together they would be a body: each must be one."""
    odd = '<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.001" iyz="0" izz="0.003"/>'
    inertial = f'<inertial><mass value="0.1"/>{odd}</inertial>'
    urdf = URDF.replace('<link name="tip_a"/>', f'<link name="tip_a">{inertial}</link>')
    with pytest.raises(hc.LoadError, match=r"link 'tip_a'.*larger than the sum") as caught:
        robot(urdf)
    assert caught.value.line == 1 + urdf[: urdf.index(odd)].count("\n")


# ------------------------------------------------------------------------------ one moment alone


def planar_arm(suffix, moments, axis="0 0 1", second=None, turned="0 0 0", slide="revolute"):
    """Two links of 0.5 m, 2 and 3 kg, their centres at 0.2 and 0.3 m."""
    names, second = ("xx", "yy", "zz"), second or axis
    if suffix == "urdf":
        full = " ".join(f'i{n}="{x}"' for n, x in zip(names, moments, strict=True))
        body = '<inertial><origin xyz="{} 0 0" rpy="{}"/><mass value="{}"/><inertia {} ixy="0" '
        body += 'ixz="0" iyz="0"/></inertial>'
        joint = '<joint name="{}" type="{}"><origin xyz="{} 0 0"/><parent link="{}"/><child '
        joint += 'link="{}"/><axis xyz="{}"/><limit effort="1" velocity="1"/></joint>'
        frame = '<robot name="r"><link name="base"/>{}</robot>'
    else:
        full = "".join(f"<i{n}>{x}</i{n}>" for n, x in zip(names, moments, strict=True))
        body = "<inertial><pose>{} 0 0 {}</pose><mass>{}</mass><inertia>{}</inertia></inertial>"
        joint = '<joint name="{}" type="{}"><pose>0 0 0 0 0 0</pose><!--{}--><parent>{}</parent>'
        joint += "<child>{}</child><axis><xyz>{}</xyz></axis></joint>"
        frame = '<sdf version="1.9"><model name="m"><link name="base"/>{}</model></sdf>'
    at = "<pose>0.5 0 0 0 0 0</pose>" if suffix == "sdf" else ""
    return frame.format(
        f'<link name="upper">{body.format(0.2, turned, 2.0, full)}</link>'
        f'<link name="fore">{at}{body.format(0.3, turned, 3.0, full)}</link>'
        + joint.format("j", slide, 0.0, "base", "upper", axis)
        + joint.format("k", "revolute", 0.5, "upper", "fore", second)
    )


@pytest.fixture
def read(tmp_path):
    def load(suffix, text, yaml=EMPTY_SHEET, **options):
        (tmp_path / f"r.{suffix}").write_text(text, "utf-8")
        (tmp_path / "r.yaml").write_text(yaml, "utf-8")
        return hc.load(tmp_path / f"r.{suffix}", **options)

    return load


ONE_MOMENT = {  # moments, the axis of both joints, how the moments are turned
    "z": ((0.0, 0.0, 0.04), "0 0 1", "0 0 0"),
    "y": ((0.0, 0.04, 0.0), "0 1 0", "0 0 0"),
    "turned": ((0.0, 0.0, 0.04), "0 1 0", "1.5708 0 0"),
    "backwards": ((0.0, 0.04, 0.0), "0 -1 0", "0 0 0"),
}


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
@pytest.mark.parametrize("case", ONE_MOMENT)
def test_one_moment_is_enough_where_links_turn_about_one_axis(suffix, case, read, caplog):
    """M of a double pendulum, by the book."""
    moments, axis, turned = ONE_MOMENT[case]
    mech = read(suffix, planar_arm(suffix, moments, axis, turned=turned))
    (warning,) = [r.getMessage() for r in caplog.records if "flat body" in r.getMessage()]
    assert "'upper', 'fore'" in warning
    for inertia in mech.model.inertias.tolist()[1:]:
        small, middle, large = np.linalg.eigvalsh(inertia.inertia)
        assert (small, middle, large) == pytest.approx((0.02, 0.02, 0.04), abs=1e-12)
    for q in ([0.0, 0.4], [1.0, -2.0]):
        c = 0.5 * 0.3 * np.cos(q[1])
        second = 0.04 + 3.0 * 0.3**2
        first = 0.04 + 2.0 * 0.2**2 + 3.0 * (0.5**2 + 2.0 * c) + second
        expected = [[first, second + 3.0 * c], [second + 3.0 * c, second]]
        assert np.abs(hc.terms(mech, q, np.zeros(2)).M - expected).max() < 1e-9


FELT = {
    "another axis": {"second": "0 1 0"},
    "a little off": {"second": "0 0.001 1"},
    "the first off": {"axis": "1 0 0", "second": "0 0 1"},
}


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
@pytest.mark.parametrize("case", FELT)
def test_one_moment_is_refused_where_the_others_are_felt(suffix, case, read):
    text = planar_arm(suffix, (0.0, 0.0, 0.04), **FELT[case])
    with pytest.raises(hc.LoadError, match="no body has") as caught:
        read(suffix, text)
    assert caught.value.line
    link = "upper" if case == "the first off" else "fore"
    assert link in str(caught.value)


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
def test_one_moment_where_a_link_slides_floats_or_becomes_a_ball(suffix, read):
    text = planar_arm(suffix, (0.0, 0.0, 0.04), slide="prismatic", second="0 0 1", axis="1 0 0")
    assert read(suffix, text).nv == 2
    with pytest.raises(hc.LoadError, match="no body has"):
        read(suffix, text, free_flyer=True)
    for by in ("SPHERICAL", "UJOINT_xz") if suffix == "urdf" else ():
        with pytest.raises(hc.LoadError, match="joint 'k' turns it about others"):
            read(suffix, text, EMPTY_SHEET + f"joint_name: [k]\njoint_type: [{by}]\n")


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
def test_what_a_flat_body_has_besides_is_not_felt(suffix, read):
    """Closed: torques and reactions are those of any other body with the same moment."""
    close = "closed_loop: [[fore, base]]\ntype: [y rx ry]\nclosure_names: [pin]\nname_mot: [j]\n"
    one, other = (
        read(suffix, planar_arm(suffix, moments), close)
        for moments in ((0.0, 0.0, 0.04), (0.9, 0.9, 0.04))
    )
    q, v = hc.assemble(one, [0.5, -1.0], [1.0, 0.0])
    found = [hc.inverse_dynamics(m, q, v, [2.0]).raise_if_bad() for m in (one, other)]
    assert found[0].u == pytest.approx(found[1].u, rel=1e-12)
    assert found[0].multipliers == pytest.approx(found[1].multipliers, abs=1e-10)


# ----------------------------------------------------------------------------------------- warnings


def told(caplog):
    return " | ".join(record.getMessage() for record in caplog.records)


def test_a_urdf_without_yaml_is_told(robot, tmp_path, caplog):
    robot(losses=True)
    robot(yaml=EMPTY_SHEET, losses=True)
    assert told(caplog) == ""
    (tmp_path / "arms.yaml").unlink()
    robot(yaml=None)
    assert "no YAML file beside it (arms.yaml or robot.yaml)" in told(caplog)


def test_the_other_suffix_of_yaml(tmp_path, caplog):
    (tmp_path / "arms.urdf").write_text(URDF)
    (tmp_path / "robot.yml").write_text(EMPTY_SHEET.replace("mot: []", "mot: [elbow]"))
    assert hc.load(tmp_path / "arms.urdf", losses=True).actuated == ("elbow",)
    (tmp_path / "arms.yml").write_text(YAML)
    assert hc.load(tmp_path / "arms.urdf", losses=True).actuated == ("b", "a")
    assert told(caplog) == ""
    (tmp_path / "arms.yaml").write_text(EMPTY_SHEET)
    assert hc.load(tmp_path / "arms.urdf").actuated == ()
    assert "arms.yaml is read, and arms.yml is not" in told(caplog)


@pytest.mark.parametrize("joint", ["a", "b"])  # b is continuous: its angle wraps
@pytest.mark.parametrize("angle", [6.2, -90.0])
def test_a_reference_of_more_than_a_turn_is_told(robot, caplog, joint, angle):
    mech = robot(yaml=EMPTY_SHEET + f"reference: {{{joint}: {angle}}}")
    assert hc.joint_motion(mech, joint, mech.reference).value[0] == pytest.approx(
        angle if joint == "a" else (angle + np.pi) % (2 * np.pi) - np.pi
    )
    assert (f"are these degrees? '{joint}': -90" in told(caplog)) == (angle == -90.0)


def test_turns_that_a_coupling_counts_are_no_matter(robot, caplog):
    couplings = "couplings:\n  - {coefficients: {a: 1, b: -10}}\n"
    robot(yaml=EMPTY_SHEET + couplings + "reference: {a: 10, b: 1}", losses=True)
    assert told(caplog) == ""


@pytest.mark.parametrize("suffix", ["sdf", "xml"])
def test_a_reference_of_more_than_a_turn_in_other_formats(suffix, tmp_path, caplog):
    text = hinged(suffix, BODIES["disk"])
    if suffix == "xml":
        text = text.replace("</mujoco>", '<keyframe><key qpos="90"/></keyframe></mujoco>')
    else:
        (tmp_path / "r.yaml").write_text("reference: {j: 90}")
    (tmp_path / f"r.{suffix}").write_text(text)
    assert hc.load(tmp_path / f"r.{suffix}").reference == [90.0]
    assert "are these degrees? 'j': 90" in told(caplog)


@pytest.mark.parametrize(
    "rotor",
    [
        '<dynamics damping="0.2" armature="0.1"/>',
        '<dynamics damping="0.2"/><drake:rotor_inertia xmlns:drake="d" value="0.1"/>',
        '<dynamics damping="0.2"/><rotorInertia value="0.1"/>',
    ],
)
def test_rotors_in_dialects_of_urdf_are_told(robot, caplog, rotor):
    urdf = URDF.replace('<dynamics damping="0.2"/>', rotor)
    robot(urdf)
    line = 1 + urdf[: urdf.index(rotor)].count("\n")
    assert f"not read (line {line})" in told(caplog)


def test_a_urdf_without_a_name_is_called_after_its_file(robot, caplog):
    mech = robot(URDF.replace(' name="two_arms"', ""))
    assert mech.name == "arms"
    assert "<robot> has no attribute 'name'; its name is 'arms', that of the file" in told(caplog)


def test_unknown_attributes_of_a_limit_are_told(robot, caplog):
    urdf = URDF.replace("<limit", '<limit command_effort="9" jerk="1"', 1)
    mech, plain = robot(urdf), robot()
    line = 1 + urdf[: urdf.index("command_effort")].count("\n")
    assert (
        f"arms.urdf: attributes of <limit> that are not part of URDF are not read: "
        f"'command_effort' of joint 'a' (line {line}) (did you mean 'effort'?), 'jerk'"
        in told(caplog)
    )
    for bound in ("upperEffortLimit", "upperVelocityLimit", "upperPositionLimit"):
        assert (getattr(mech.model, bound) == getattr(plain.model, bound)).all()


def test_what_a_fixed_joint_mimics_is_told_and_has_no_effect(robot, caplog):
    mimic = '<child link="tip_a"/><mimic joint="a"/>'
    urdf = URDF.replace('<child link="tip_a"/>', mimic)
    assert robot(urdf).constraint_names == robot().constraint_names
    line = 1 + urdf[: urdf.index(mimic)].count("\n")
    assert f"<mimic> of joint 'mount' (line {line}) is not read: the joint is fixed" in told(caplog)


def test_what_mimics_a_fixed_joint_stands_at_its_offset(robot, caplog):
    mimic = '<mimic joint="mount" multiplier="3" offset="0.25"/>'
    urdf = URDF.replace('<dynamics damping="0.2"/>', mimic)
    mech = robot(urdf)
    (held,) = (c for c in mech.constraints if isinstance(c, hc.Coupling))
    assert (dict(held.coefficients), held.offset) == ({"elbow": 1.0}, 0.25)
    line = 1 + urdf[: urdf.index(mimic)].count("\n")
    assert (
        f"<mimic> of joint 'elbow' (line {line}): joint='mount' is fixed, at zero, so the "
        "joint is held at offset=0.25" in told(caplog)
    )


@pytest.mark.parametrize(
    ("mass", "moments", "said"),
    [
        (0.0, (0.0, 0.0, 0.0, 1.1e-22, -3.4e-20, 0.0), None),  # a frame, as SolidWorks writes it
        (0.0, (1e-19, -2e-19, 0.0, 0.0, 0.0, 0.0), None),
        (1e-9, (0.0, 0.0, 0.0, 1.1e-22, -3.4e-20, 0.0), "no negative principal moment"),
        (0.0, (0.0, 0.0, 0.0, 0.0, -3.4e-14, 0.0), "no negative principal moment"),
    ],
)
def test_noise_in_a_link_without_mass_is_zero(tmp_path, mass, moments, said):
    path = tmp_path / "r.urdf"
    path.write_text(hinged("urdf", moments, mass))
    path.with_suffix(".yaml").write_text(EMPTY_SHEET)
    if said is not None:
        with pytest.raises(hc.LoadError, match=said):
            hc.load(path)
        return
    (inertia,) = hc.load(path).model.inertias.tolist()[1:]
    assert not inertia.toDynamicParameters().any()
