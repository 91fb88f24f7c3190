"""Exported C of mechanisms with forces: its self-test, and torques as by Python."""

from __future__ import annotations

import numpy as np
import pytest
from all_forces import every_force
from exported import Exported, build_and_test, cmake, compilers, robot
from forced import meeting_ends, off_by
from support import few
from zoo import at

import holoctl as hc

pytest.importorskip("casadi")


def forced_robot(name):
    mech = robot(name)
    return mech.with_forces(every_force(mech))


@pytest.mark.parametrize("which", few([0, -1], [-1]))
@pytest.mark.parametrize("name", few(["five_bar", "leg", "delta"], ["five_bar"]))
def test_strict_build_and_self_test(name, which, tmp_path):
    """The five-bar has friction and a spring in the hinge that was cut."""
    cmake()
    mech = forced_robot(name)
    if name == "five_bar":
        assert {"cut", "spring on tip_hinge"} <= set(mech.force_names)
    hc.export_c(hc.ComputedTorque(mech, 400.0, 40.0), tmp_path, plant=True)
    assert "all is well" in build_and_test(tmp_path, compilers()[which])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["five_bar", "leg"])
def test_sanitizers_find_nothing(name, tmp_path):
    cmake()
    what = hc.ComputedTorque(forced_robot(name), 400.0, 40.0, friction_at="measured")
    hc.export_c(what, tmp_path, plant=True)
    assert "all is well" in build_and_test(tmp_path, compilers()[0], "-DHOLOCTL_SANITIZE=ON")


@pytest.mark.parametrize(
    ("compensation", "friction_at"),
    [
        ("full", "reference"),
        pytest.param("full", "measured", marks=pytest.mark.slow),
        pytest.param("gravity", "reference", marks=pytest.mark.slow),
    ],
)
def test_torques_near_rest_are_those_of_python(compensation, friction_at, tmp_path):
    mech = forced_robot("five_bar")
    ctl = hc.ComputedTorque(mech, 400.0, 40.0, compensation, friction_at=friction_at)
    exported = Exported(ctl, tmp_path)
    prepared = hc.PreparedInverseDynamics(mech, ctl.partition, None, "project")
    rng = np.random.default_rng(2)
    for size in (1.0, 0.03, -0.03, 1e-5, 0.0):
        q, v = hc.assemble(mech, v_guess=size * rng.normal(size=mech.nv))
        for v_ref in (rng.normal(size=2), 0.01 * rng.normal(size=2), np.zeros(2)):
            x = q, v, mech.motor_positions(q), v_ref, rng.normal(size=2)
            status, u = exported.call("torque", *x, t=0.4)
            assert status == "OK"
            assert off_by(u, ctl.torque(*x, t=0.4)) < 1e-9
        status, u = exported.call("inverse_dynamics", q, v, x[-1], t=0.4)
        assert status == "OK"  # at the measured rates, whatever the torque does
        assert off_by(u, prepared.torque(q, v, x[-1], 0.4)) < 1e-9


def test_where_friction_is_taken_makes_a_difference(tmp_path):
    mech = robot("five_bar").with_forces([hc.JointFriction(viscous=0.3, coulomb=0.5)])
    found = []
    for friction_at in ("reference", "measured"):
        ctl = hc.ComputedTorque(mech, 400.0, 40.0, friction_at=friction_at)
        exported = Exported(ctl, tmp_path / friction_at)
        q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
        found.append(exported.call("torque", q, v, mech.motor_positions(q), -np.ones(2), v[:2])[1])
        assert ("const double *rates" in exported.paths[1].read_text()) == (
            friction_at == "reference"
        )
    assert off_by(*found) > 0.01


def test_ends_of_a_spring_that_coincide_are_a_status(tmp_path):
    mech, q = meeting_ends()
    exported = Exported(mech, tmp_path, name="band")
    v, target = np.zeros(mech.nv), np.zeros(mech.nu)
    assert exported.call("inverse_dynamics", mech.reference, v, target)[0] == "OK"
    held = exported.call("inverse_dynamics", mech.reference, v, target)[1]
    status, u = exported.call("inverse_dynamics", q, v, target)
    assert status == "PIVOT_GROWTH"
    np.testing.assert_array_equal(u, held)
    assert "a force is not defined" in exported.text(5)
    assert "ends of a spring coincide" in exported.paths[0].read_text()


def test_without_forces_nothing_is_said_of_them(tmp_path):
    paths = hc.export_c(hc.ComputedTorque(robot("five_bar"), 1.0, 1.0), tmp_path, plant=True)
    for path in paths:
        text = path.read_text()
        assert "tangent" not in text
        assert "rates)" not in text
        assert "force" not in text.replace("forces of", "")


@pytest.mark.slow
def test_the_same_forces_give_the_same_bytes(tmp_path):
    ends = ("left_rod", at(0.1, 0.0, 0.0)), ("universe", at(0.3, -0.5, 0.0))
    mech = robot("five_bar")
    names = list(mech.model.names[1:])
    rope = hc.Spring((names[-1], ends[0][1]), ends[1], 30.0, 0.2, unilateral=True, name="rope")
    written = [
        [p.read_bytes() for p in hc.export_c(mech.with_forces([rope]), tmp_path / str(i))]
        for i in range(2)
    ]
    assert written[0] == written[1]


@pytest.mark.slow
def test_states_that_a_reference_alone_has_no_torque_at_are_left_out(tmp_path):
    """At a stretched reference the export says what it lacks, not what one tick lacked."""
    capsule = '<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" mass="1"/>'
    bodies = "".join(
        f'<body name="{name}" pos="{x} 0 0"><joint name="j{name}" axis="0 1 0"/>{capsule}{end}'
        for name, x, end in (("a", 0.0, ""), ("b", 0.3, "</body></body>"), ("c", 0.5, "</body>"))
    )
    robot_file = tmp_path / "stretched.xml"
    robot_file.write_text(
        f"<mujoco><worldbody>{bodies}</worldbody>"
        '<equality><connect body1="b" body2="c" anchor="0.2 0 0"/></equality>'
        '<actuator><motor joint="ja"/></actuator></mujoco>'
    )
    mech = hc.load(robot_file)
    with pytest.raises(hc.HoloctlError, match="states for the self-test"):
        hc.export_c(hc.ComputedTorque(mech, 40.0, 4.0), tmp_path / "c")
