"""What the doctor says of friction, springs and other forces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from examined import said

import holoctl as hc


def five_bar(*forces):
    return replace(hc.load(hc.robot_file("five_bar")), forces=forces)


def push(q, v, t):
    return np.array([0.1 * np.sin(t), 0.0, 0.0, 0.0])


def test_nothing_is_said_where_there_are_no_forces():
    report = hc.mobility(five_bar())
    assert report.forces.joints == 0
    assert "riction" not in str(report)
    assert "Springs" not in str(report)


def test_friction_in_all_joints():
    report = hc.mobility(five_bar(hc.JointFriction(viscous=0.1)))
    tree = hc.load(hc.robot_file("five_bar")).coordinate_names
    assert report.forces.viscous == tree
    assert (report.forces.coulomb, report.forces.joints) == ((), 5)
    assert report.forces.smooth == ("tip_hinge",)
    text = said(report)
    assert f"Friction: viscous in '{tree[0]}', " in text
    assert "(4 of 5 joints)." in text
    assert "- Joints without motor and without friction: 'tip_hinge' (1 of 5 joints). " in text


def test_friction_of_cut_joints_counts():
    mech = five_bar(hc.JointFriction(viscous=0.1), hc.JointSpring("tip_hinge", 0.0, damping=0.2))
    found = hc.mobility(mech)
    assert found.forces.smooth == found.forces.springs == ()
    assert "Friction: viscous in all 5 joints." in said(found)
    cut = hc.mobility(five_bar(hc.JointFriction(coulomb={"tip_hinge": 1.0, "motor_left": 0.5})))
    assert cut.forces.coulomb == ("motor_left", "tip_hinge")
    assert "Friction: Coulomb in 'motor_left' and 'tip_hinge' (2 of 5 joints)." in said(cut)
    assert set(cut.forces.smooth) | {"motor_left", "motor_right", "tip_hinge"} == {
        *five_bar().coordinate_names, "tip_hinge",
    }  # fmt: skip


def test_friction_without_any_in_motors_is_no_hint():
    assert hc.mobility(five_bar(hc.JointFriction(viscous={"tip_hinge": 1.0}))).forces.smooth == ()


def test_springs_and_other_forces():
    report = hc.mobility(five_bar(hc.JointSpring("motor_left", 3.0), hc.CustomForce(push)))
    assert report.forces.springs == ("spring on motor_left",)
    assert report.forces.others == ("push",)
    text = said(report)
    assert (
        "Friction: none in joints. Springs: 'spring on motor_left'. Other forces: 'push'." in text
    )
    assert report.to_dict()["forces"]["springs"] == ["spring on motor_left"]


def test_stribeck_alone_is_dry_friction():
    friction = hc.JointFriction(stribeck={"motor_left": (0.5, 0.1)})
    assert hc.mobility(five_bar(friction)).forces.coulomb == ("motor_left",)


def test_floating_bases_and_locked_joints_are_no_hint(tmp_path):
    body = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    text = (
        f'<mujoco><worldbody><body name="b"><freejoint name="f"/>{body}<body name="c">'
        f'<joint name="j" damping="1"/>{body}<body name="d" pos="0 0 1"><joint name="k" '
        f'axis="1 0 0"/>{body}</body></body></body></worldbody>'
        '<equality><joint joint1="k"/></equality><actuator><motor joint="j"/></actuator></mujoco>'
    )
    (tmp_path / "r.xml").write_text(text)
    report = hc.mobility(hc.load(tmp_path / "r.xml", losses=True))
    assert report.locked_joints == ["k"]
    assert (report.forces.joints, report.forces.smooth) == (2, ())


@pytest.mark.parametrize("name", ["universal", "spherical"])
def test_joints_of_several_coordinates_are_one(name):
    linkage = hc.Linkage("arm")
    linkage.add_body("link", 1.0, [0, 0, 0.1], np.eye(3) * 0.1)
    linkage.add_joint("u", name, "universe", "link")
    mech = replace(linkage.mechanism(), forces=[hc.JointFriction(viscous={"u[1]": 1.0})])
    report = hc.mobility(mech)
    assert (report.forces.joints, report.forces.viscous) == (1, ("u",))
    assert "Friction: viscous in 'u' (1 of 1 joint)." in said(report)


def test_what_does_not_close_has_forces_too():
    mech = five_bar(hc.JointFriction(viscous=0.1))
    far = replace(mech, constraints=[*mech.constraints, hc.Rod("universe", "distal_left", 50.0)])
    report = hc.mobility(far)
    assert not report.closed
    assert report.forces.viscous
    assert "Friction: viscous" in said(report)
