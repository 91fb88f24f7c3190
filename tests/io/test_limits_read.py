"""Limits of files: URDF, MJCF, SDF, and the key `limits` of YAML."""

from __future__ import annotations

import dataclasses
import logging
import pickle

import numpy as np
import pytest
from documents import MIMIC, URDF, YAML, line_of, with_joint
from documents_mjcf import ARM
from documents_sdf import BOX, LOOP
from shared_robots import SHARED_ROBOT_NAMES, shared_robot

import holoctl as hc
from holoctl.io.repaired_yaml import repaired_yaml
from holoctl.mechanism.bound_limits import bound_limits

INF = np.inf


def told(caplog):
    return " | ".join(record.getMessage() for record in caplog.records)


def error_of(call, *words):
    with pytest.raises(hc.LoadError) as caught:
        call()
    error = caught.value
    assert not [word for word in words if word not in str(error)], str(error)
    return error


# ------------------------------------------------------------------------------------- URDF


def test_limits_of_a_urdf(robot):
    """Efforts of motors alone; the continuous joint has no limits."""
    mech = robot()
    assert mech.limits == hc.Limits(
        effort={"a": 11}, velocity={"a": 3, "elbow": 5}, position={"a": 2, "elbow": (-1, 2)}
    )
    assert hc.limits_of(mech) == mech.limits
    assert pickle.loads(pickle.dumps(mech)).limits == mech.limits
    b = bound_limits(mech, mech.limits)
    assert b.names == ("a", "elbow")
    assert b.effort.tolist() == [[-INF, -11.0], [INF, 11.0]]  # name_mot: [b, a]


def test_zero_and_huge_limits_of_a_urdf_are_none(robot):
    urdf = URDF.replace('effort="11"', 'effort="0"').replace('velocity="3"', 'velocity="0"')
    urdf = urdf.replace('lower="-2" upper="2"', 'lower="0" upper="0"')
    urdf = urdf.replace('velocity="5"', 'velocity="1e31"').replace('upper="2"', 'upper="1e6"')
    assert robot(urdf).limits == hc.Limits(position={"elbow": (-1, INF)})
    urdf = urdf.replace('lower="-1"', 'lower="-1e7"')
    assert robot(urdf).limits is None
    assert hc.limits_of(robot(urdf)) == hc.Limits()


def test_replaced_joints_have_the_limits_that_are_left(robot):
    balls = robot(yaml=YAML + "joint_name: [elbow]\njoint_type: [SPHERICAL]\n")
    assert balls.limits.velocity == {"a": 3, "elbow[0]": 5, "elbow[1]": 5, "elbow[2]": 5}
    assert balls.limits.position == {"a": 2}
    cross = robot(yaml=YAML + "joint_name: [elbow]\njoint_type: [UJOINT_XY]\n")
    assert cross.limits.velocity == {"a": 3, "elbow[0]": 5, "elbow[1]": 5}


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ('lower="3" upper="2" effort="7" velocity="5"', "lower 3 is above upper 2"),
        ('lower="1" effort="7" velocity="5"', "lower 1 is above upper 0"),
        ('effort="-7" velocity="5"', "effort must not be negative; got -7"),
        ('effort="7" velocity="-5"', "velocity must not be negative; got -5"),
        ('effort="much" velocity="5"', "effort must be a finite number; got 'much'"),
    ],
)
def test_bad_limits_of_a_urdf_tell_the_line(robot, limit, message):
    urdf = with_joint('lower="-1" upper="2" effort="7" velocity="5"', limit)
    error = error_of(lambda: robot(urdf), message, "elbow")
    assert error.line == line_of(urdf, f"    <limit {limit}")
    assert error.key == "elbow"


def test_bounds_of_a_joint_that_mimics_backwards_may_be_exchanged(robot, caplog):
    urdf = with_joint('lower="-1" upper="2" effort="7"', 'lower="4" upper="-6" effort="7"', MIMIC)
    assert robot(urdf).limits.position["elbow"] == (-6.0, 4.0)
    (told,) = [r.getMessage() for r in caplog.records if "exchanged" in r.getMessage()]
    assert "line" in told
    assert "'elbow'" in told
    forwards = urdf.replace('multiplier="-2"', 'multiplier="2"')
    error_of(lambda: robot(forwards), "lower 4 is above upper -6", "elbow")


@pytest.mark.parametrize("name", hc.robot_names())
def test_limits_of_the_robots_that_are_shipped(name):
    mech = hc.load(hc.robot_file(name))
    assert set(mech.limits.effort) == set(mech.actuator_names)
    b = bound_limits(mech, mech.limits)
    assert (b.effort[1] > 0.9).all()
    assert np.isfinite(b.velocity).any()
    q = mech.reference[b.places[b.places >= 0]]
    low, high = b.position[:, : b.places.size][:, b.places >= 0]
    assert ((low <= q) & (q <= high)).all()


@pytest.mark.parametrize("name", SHARED_ROBOT_NAMES)
def test_limits_of_shared_robots(name):
    mech = hc.load(shared_robot(name))
    assert mech.limits.effort == dict.fromkeys(mech.actuator_names, 1.0)
    assert mech.limits.velocity == dict.fromkeys(mech.coordinate_names, 20.0)
    assert mech.limits.position is None


def test_other_motors_on_a_robot_that_was_loaded(robot):
    mech = dataclasses.replace(robot(), actuated=["elbow"])
    assert hc.limits_of(mech).effort is None
    B = np.zeros((mech.nv, 1))
    B[mech.coordinate_names.index("a")] = 4.0
    geared = dataclasses.replace(mech, actuated=[], actuation=B)
    assert hc.limits_of(geared).effort == {"u[0]": 11.0 / 4.0}


# ------------------------------------------------------------------------------------- YAML


FULL = YAML + (
    "limits:\n"
    "  effort: {a: 4, b: [0, 20]}\n"
    "  velocity: {elbow: 2.5, b: [-1, .inf]}\n"
    "  position: {a: [-inf, 0.5], elbow: inf}\n"
    "  acceleration: 30\n"
    "  speed_torque: {a: [[0, 4], [3, 2], [9, 0]]}\n"
)


def test_yaml_counts_before_the_file_name_by_name(robot):
    assert robot(yaml=FULL).limits == hc.Limits(
        effort={"a": 4, "b": (0, 20)}, velocity={"a": 3, "elbow": 2.5, "b": (-1, INF)},
        position={"a": (-INF, 0.5)}, acceleration={"b": 30, "a": 30},
        speed_torque={"a": [(0, 4), (3, 2), (9, 0)]},
    )  # fmt: skip


def test_yaml_for_every_motor(robot):
    limits = "limits: {effort: [-1, 5], speed_torque: [[0, 4], [3, 2]], velocity: 1}\n"
    mech = robot(yaml=YAML + limits)
    assert mech.limits == hc.Limits(
        effort={"a": (-1, 5), "b": (-1, 5)}, velocity={"a": 1, "b": 1, "elbow": 5},
        position={"a": 2, "elbow": (-1, 2)},
        speed_torque={"a": [(0, 4), (3, 2)], "b": [(0, 4), (3, 2)]},
    )  # fmt: skip
    assert bound_limits(mech, mech.limits).effort.tolist() == [[-1.0, -1.0], [4.0, 4.0]]


def test_yaml_of_cut_joints_and_of_joints_of_several_coordinates(robot):
    sheet = YAML.replace("3d", "cylindrical") + (
        "closure_names: [end]\njoint_name: [elbow]\njoint_type: [UJOINT_XY]\n"
        "limits: {velocity: {end: 3, elbow: 2}, position: {'end[1]': [-1, 2]}}\n"
    )
    mech = robot(yaml=sheet)
    assert mech.limits.velocity == {"a": 3, "elbow[0]": 2, "elbow[1]": 2, "end[0]": 3, "end[1]": 3}
    assert mech.limits.position == {"a": 2, "end[1]": (-1, 2)}
    assert bound_limits(mech, mech.limits).names == (
        "a",
        "elbow[0]",
        "elbow[1]",
        "end[0]",
        "end[1]",
    )


def test_yaml_says_nothing_where_it_is_empty(robot):
    for empty in ("limits: {}\n", "limits: {effort: {}}\n", ""):
        assert robot(yaml=YAML + empty).limits == robot().limits


def test_limits_are_kept_in_what_snap_writes(robot, tmp_path):
    mech = robot(yaml=FULL)
    assert robot(yaml=repaired_yaml(tmp_path / "arms.urdf", [])).limits == mech.limits


BAD = {
    "a list": ("[1, 2]", "mapping"),
    "nothing": ("", "mapping"),
    "a word": ("{torque: 3}", "no key 'torque'"),
    "unknown motor": ("{effort: {aa: 3}}", "motor called 'aa'", "'a'"),
    "no motor there": ("{effort: {elbow: 3}}", "motor called 'elbow'"),
    "no motor for a curve": ("{speed_torque: {elbow: [[0, 3]]}}", "motor called 'elbow'"),
    "unknown joint": ("{velocity: {elbo: 3}}", "'elbo'", "did you mean 'elbow'"),
    "no position": ("{position: {b: [0, 1]}}", "'b'", "is continuous"),
    "zero": ("{effort: {a: 0}}", "above zero"),
    "negative": ("{effort: -3}", "above zero"),
    "swapped": ("{position: {a: [2, 1]}}", "below the upper"),
    "speeds of one sign": ("{velocity: {a: [1, 2]}}", "below zero"),
    "text": ("{effort: {a: big}}", "finite number", "'big'"),
    "nan": ("{effort: {a: .nan}}", "finite number"),
    "too large": ("{effort: {a: 1e13}}", "1e+12"),
    "three": ("{effort: {a: [1, 2, 3]}}", "pair [lower, upper]", "3"),
    "a list for all": ("{velocity: [1, 2, 3]}", "name them"),
    "a mapping in a mapping": ("{effort: {a: {b: 1}}}", "finite number"),
    "no points": ("{speed_torque: {a: []}}", "break points"),
    "flat points": ("{speed_torque: {a: [0, 3]}}", "[[0, 2], [10, 0]]"),
    "rising": ("{speed_torque: [[0, 3], [1, 4]]}", "must not increase"),
    "twice": ("{velocity: {elbow: 1, elbow: 2}}", "twice"),
    "a closure without a name": ("{velocity: {end: 1}}", "'end'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_limits_in_yaml_tell_the_line(robot, case):
    value, *words = BAD[case]
    sheet = f"{YAML}limits: {value}\n"
    error = error_of(lambda: robot(yaml=sheet), *words)
    assert error.file.endswith("arms.yaml")
    assert error.key == "limits"
    assert error.line == 4


def test_the_line_is_that_of_the_entry(robot):
    sheet = YAML + "limits:\n  effort:\n    a: 3\n    b:\n      [4,\n       2]\n"
    assert error_of(lambda: robot(yaml=sheet), "below the upper").line == 8
    sheet = YAML + "limits:\n  effort:\n    a: 3\n    bb: 2\n"
    assert error_of(lambda: robot(yaml=sheet), "'bb'").line == 7
    sheet = YAML + "limits:\n  velocity:\n    elbow: 3\n    elbow[0]: 2\n"
    sheet += "joint_name: [elbow]\njoint_type: [UJOINT_XY]\n"
    assert error_of(lambda: robot(yaml=sheet), "'elbow'", "same").line == 7
    sheet = YAML + "limits:\n  effort: {a: [10, 20]}\n  speed_torque: {a: [[0, 5]]}\n"
    assert error_of(lambda: robot(yaml=sheet), "'a'", "standstill").line == 5


# ------------------------------------------------------------------------------------- MJCF


def mjcf(tmp_path, motors="", joint="", tendon="", head="", of="shoulder", **options):
    text = ARM.replace(f'<joint name="{of}"', f'<joint {joint} name="{of}"')
    text = text.replace(' damping="0.1"', "")
    text = text.replace("<worldbody>", f"{head}<worldbody>")
    tendons = f'<tendon><fixed name="both" {tendon}><joint joint="shoulder" coef="2"/>'
    tendons += '<joint joint="elbow" coef="-0.5"/></fixed></tendon>'
    text = text.replace("</mujoco>", f"{tendons}<actuator>{motors}</actuator></mujoco>")
    (tmp_path / "arm.xml").write_text(text, "utf-8")
    return hc.load(tmp_path / "arm.xml", **options)


EFFORTS = {  # what stands in the file, and the limits of u
    "none": ('<motor joint="elbow"/>', None),
    "ctrlrange": ('<motor joint="elbow" ctrlrange="-2 3"/>', {"elbow": (-2, 3)}),
    "forcerange": ('<motor joint="elbow" forcerange="-2 3"/>', {"elbow": (-2, 3)}),
    "both": ('<motor joint="elbow" forcerange="-2 3" ctrlrange="-1 9"/>', {"elbow": (-1, 3)}),
    "one sign": ('<motor joint="elbow" ctrlrange="0 1"/>', {"elbow": (0, 1)}),
    "gear": ('<motor joint="elbow" gear="50" ctrlrange="-1 1"/>', {"u[0]": 1}),
    "gear and force": ('<motor joint="elbow" gear="-50" forcerange="-1 2"/>', {"u[0]": (-1, 2)}),
    "gain": ('<general joint="elbow" gainprm="40" ctrlrange="-1 2"/>', {"elbow": (-40, 80)}),
    "negative gain": ('<general joint="elbow" gainprm="-4" ctrlrange="-1 2"/>', {"elbow": (-8, 4)}),
    "gain and gear": (
        '<general joint="elbow" gear="3" gainprm="40" ctrlrange="-1 2" forcerange="-50 50"/>',
        {"u[0]": (-40, 50)},
    ),
    "position": ('<position joint="elbow" kp="100" ctrlrange="-1 1"/>', None),
    "position and force": (
        '<position joint="elbow" kp="9" ctrlrange="-1 1" forcerange="-7 7"/>', {"elbow": 7},
    ),
    "affine": ('<general joint="elbow" biastype="affine" biasprm="0 -9" ctrlrange="0 1"/>', None),
    "integrator": ('<general joint="elbow" dyntype="integrator" ctrlrange="0 1"/>', None),
    "filter": ('<general joint="elbow" dyntype="filter" ctrlrange="0 1"/>', {"elbow": (0, 1)}),
    "off": ('<motor joint="elbow" ctrllimited="false" ctrlrange="-2 3"/>', None),
    "no range": ('<motor joint="elbow" ctrlrange="0 0" forcerange="0 0"/>', None),
    "tendon": ('<motor tendon="both" gear="5" ctrlrange="-2 3"/>', {"u[0]": (-2, 3)}),
    "two on a joint": (
        '<position joint="elbow" forcerange="-7 7"/><motor joint="elbow" ctrlrange="0 2"/>',
        {"elbow": (-7, 9)},
    ),
    "one of two is free": (
        '<position joint="elbow" forcerange="-7 7"/><motor joint="elbow"/>', None,
    ),
    "huge": ('<motor joint="elbow" ctrlrange="-1e33 2"/>', {"elbow": (-INF, 2)}),
    "gears of two": (
        '<motor joint="elbow" ctrlrange="-1 1"/>'
        '<motor joint="shoulder" gear="9" ctrlrange="-1 2"/>',
        {"u[0]": 1, "u[1]": (-1, 2)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EFFORTS)
def test_efforts_of_an_mjcf(tmp_path, case):
    motors, expected = EFFORTS[case]
    mech = mjcf(tmp_path, motors)
    assert hc.limits_of(mech) == hc.Limits(effort=expected)
    assert (mech.limits is None) == (expected is None)


def test_defaults_and_joints_of_an_mjcf(tmp_path):
    head = '<default><motor ctrlrange="-1 1"/><general gainprm="50"/></default>'
    mech = mjcf(
        tmp_path, '<motor joint="elbow"/><general joint="shoulder"/>', 'range="-0.5 1"', head=head
    )
    assert mech.limits == hc.Limits(
        effort={"elbow": 1, "shoulder": 50}, position={"shoulder": (-0.5, 1)}
    )
    counted = mjcf(tmp_path, joint='range="-0.5 1" ref="0.2"')
    assert counted.limits == hc.Limits(position={"shoulder": (-0.5 - 0.2, 1 - 0.2)})
    off = '<option><flag clampctrl="disable"/></option>'
    assert mjcf(tmp_path, '<motor joint="elbow" ctrlrange="-1 1"/>', head=off).limits is None


def test_what_all_actuators_of_a_joint_may_give(tmp_path, caplog):
    """It is an effort behind the gear, where u is a force in front of it."""
    bound = 'actuatorfrcrange="-6 12"'
    direct = mjcf(tmp_path, '<motor joint="shoulder" ctrlrange="-9 9"/>', bound)
    assert direct.limits.effort == {"shoulder": (-6, 9)}
    geared = mjcf(tmp_path, '<motor joint="shoulder" gear="3" ctrlrange="-9 3"/>', bound)
    assert geared.limits.effort == {"u[0]": (-2, 3)}
    turned = mjcf(tmp_path, '<motor joint="shoulder" gear="-3"/>', bound)
    assert turned.limits.effort == {"u[0]": (-4, 2)}
    assert not caplog.records
    both = '<motor joint="shoulder" ctrlrange="-9 3"/><motor tendon="both"/>'
    with caplog.at_level(logging.WARNING, "holoctl"):
        shared = mjcf(tmp_path, both, bound)
    assert shared.limits.effort == {"u[0]": (-9, 3)}
    assert "'shoulder'" in told(caplog)
    assert "actuatorfrcrange" in told(caplog)
    passive = mjcf(tmp_path, '<motor joint="elbow"/>', bound)
    assert hc.limits_of(passive) == hc.Limits()


def test_what_all_actuators_of_a_tendon_may_give(tmp_path):
    mech = mjcf(
        tmp_path, '<motor tendon="both" gear="-4" ctrlrange="-9 1"/>',
        tendon='actuatorfrcrange="-6 12"',
    )  # fmt: skip
    assert mech.limits.effort == {"u[0]": (-3, 1)}


WRONG = {
    "swapped": '<motor joint="elbow" ctrlrange="3 -2"/>',
    "equal": '<motor joint="elbow" forcerange="3 3"/>',
    "one number": '<motor joint="elbow" forcerange="3"/>',
    "no number": '<motor joint="elbow" forcerange="-a 3"/>',
    "limited by nothing": '<motor joint="elbow" ctrllimited="true"/>',
    "limited by zero": '<motor joint="elbow" ctrllimited="true" ctrlrange="0 0"/>',
    "a word": '<motor joint="elbow" ctrllimited="yes" ctrlrange="0 1"/>',
    "nothing in common": '<motor joint="elbow" ctrlrange="0 1" forcerange="2 3"/>',
    "gain": '<general joint="elbow" gainprm="x" ctrlrange="0 1"/>',
}


@pytest.mark.parametrize("case", WRONG)
def test_bad_limits_of_an_mjcf_tell_the_line(tmp_path, case):
    error = error_of(lambda: mjcf(tmp_path, WRONG[case]))
    text = (tmp_path / "arm.xml").read_text("utf-8")
    assert WRONG[case] in text.split("\n")[error.line - 1]


def test_a_joint_that_leaves_its_motor_nothing(tmp_path):
    motor = '<motor joint="shoulder" ctrlrange="7 9"/>'
    error_of(lambda: mjcf(tmp_path, motor, 'actuatorfrcrange="-6 5"'), "shoulder", "below")


# ------------------------------------------------------------------------------------- SDF


def test_limits_of_an_sdf(tmp_path):
    (tmp_path / "loop.sdf").write_text(LOOP, "utf-8")
    (tmp_path / "loop.yaml").write_text("name_mot: [a]\nlimits: {velocity: {c: 7}}\n", "utf-8")
    mech = hc.load(tmp_path / "loop.sdf")
    assert mech.limits.effort == {"a": 11}
    assert mech.limits.position["a"] == (-1, 2)
    assert mech.limits.position["b[0]"] == (-0.5, 0.6)
    assert mech.limits.velocity["a"] == 3
    assert [x for n, x in mech.limits.velocity.items() if n.startswith("c")] == [7, 7, 7]
    bound_limits(mech, mech.limits)


LIMIT = "<limit><lower>{}</lower><upper>{}</upper><velocity>{}</velocity></limit></axis>"


def four_bar(cut, ends):
    """A planar loop of hinges with a limit on one of them."""
    hinge = '<joint name="{0}" type="revolute"><pose relative_to="world">{3} 0 0 0 0 0</pose>'
    hinge += "<parent>{1}</parent><child>{2}</child><axis><xyz>0 1 0</xyz>"
    joints = [("h0", "world", "p"), ("h1", "p", "q"), ("h2", "q", "r"), ("h3", "world", "r")]
    text = '<sdf version="1.9"><model name="bars">'
    text += "".join(f'<link name="{n}">{BOX}</link>' for n in "pqr")
    for i, (name, parent, child) in enumerate(joints):
        limit = LIMIT.format(*ends) if name == "h2" else "</axis>"
        text += hinge.format(name, parent, child, 0.1 * i * i) + limit + "</joint>"
    return text + "</model></sdf>", f"cut: [{cut}]\nname_mot: [h0]\n"


def load_four_bar(tmp_path, cut, ends):
    sdf, sheet = four_bar(cut, ends)
    (tmp_path / "bars.sdf").write_text(sdf, "utf-8")
    (tmp_path / "bars.yaml").write_text(sheet, "utf-8")
    return hc.load(tmp_path / "bars.sdf")


def test_limits_of_an_sdf_stay_where_its_joints_are_cut(tmp_path, caplog):
    for cut in ("h1", "h2", "h3"):
        mech = load_four_bar(tmp_path, cut, (-1, 2, 5))
        assert mech.limits == hc.Limits(position={"h2": (-1, 2)}, velocity={"h2": 5})
        b = bound_limits(mech, mech.limits)
        assert [joint.name for joint, _ in b.cut] == (["h2"] if cut == "h2" else [])
    assert load_four_bar(tmp_path, "h2", (0, 0, 0)).limits is None
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "holoctl"):
        mech = load_four_bar(tmp_path, "h2", (-1, 4, -1))
    assert mech.limits is None
    assert "'h2'" in told(caplog)
    assert "-pi and pi" in told(caplog)
    assert load_four_bar(tmp_path, "h1", (-1, 4, -1)).limits.position == {"h2": (-1, 4)}


# ------------------------------------------------------------------------------------- MuJoCo

SERVOS = ("position", "affine", "integrator", "filter", "one of two is free", "two on a joint")
"""Which give what their own law says, or after a while, not what the control is times a gain."""


@pytest.mark.parametrize("case", EFFORTS)
@pytest.mark.parametrize("bound", ["", 'actuatorfrcrange="-6 12" actuatorfrclimited="true"'])
def test_efforts_are_those_that_mujoco_allows(tmp_path, case, bound):
    """Whatever is asked for, the efforts are B u of a u within the limits; and all of them come."""
    mujoco = pytest.importorskip("mujoco")
    motors, _ = EFFORTS[case]
    mech = mjcf(tmp_path, motors, bound, of="elbow")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    data, rng = mujoco.MjData(model), np.random.default_rng(2)
    lower, upper = bound_limits(mech, hc.limits_of(mech)).effort
    found = []
    for _ in range(300):
        data.ctrl[:] = rng.choice([-1e6, 1e6, 0.3, -0.3], model.nu)
        data.qpos[:], data.qvel[:] = rng.uniform(-1, 1, 2), rng.uniform(-9, 9, 2)
        mujoco.mj_forward(model, data)
        u, residual, *_ = np.linalg.lstsq(mech.B, data.qfrc_actuator, rcond=None)
        clamped = bound and "tendon" in motors  # the bound of a joint bends what a tendon gives
        if not clamped:
            assert residual.sum() < 1e-12
            assert (u >= lower - 1e-9).all()
            assert (u <= upper + 1e-9).all()
        found.append(u)
    if not case.startswith(SERVOS) and not clamped:
        least, most = np.min(found, axis=0), np.max(found, axis=0)
        assert np.allclose(least[np.isfinite(lower)], lower[np.isfinite(lower)])
        assert np.allclose(most[np.isfinite(upper)], upper[np.isfinite(upper)])
