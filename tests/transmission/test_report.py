"""Reports over the workspace, and the parallel joints of whole robots."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from ankles import PITCH_ROLL, alone, cranked, four_barred, humanoid, pushed
from zoo import add_body, at, lump

import holoctl as hc
from holoctl.transmission.robot import transmissions
from holoctl.transmission.transmission import Transmission


def limited(build, joints):
    mech = alone(build)
    return Transmission(dataclasses.replace(mech, limits=hc.Limits(effort=60.0)), joints)


@pytest.mark.parametrize(
    ("build", "joints", "box"),
    [(cranked, PITCH_ROLL, [0.4, 0.25]), (pushed, PITCH_ROLL, [0.6, 0.4]),
     (four_barred, ["knee"], [0.5])],
)  # fmt: skip
def test_errors_of_approximations_are_those_of_their_definitions(build, joints, box):
    tr, box = limited(build, joints), np.array(box)
    report = tr.report(-box, box, samples=50)
    assert report.reached == 1.0
    assert set(report.errors) >= {"constant J", "2x armature", "joint box", "no linkage"}
    assert all(0.0 <= median <= worst for median, worst in report.errors.values())
    assert report.errors["constant J"][1] > 0.01
    J0, J = tr.jacobian(tr.y_start), tr.jacobian(box)
    np.testing.assert_allclose(
        report.determinant.flat[-1],
        np.sqrt(np.linalg.det(J.T @ J) / np.linalg.det(J0.T @ J0)),
        rtol=1e-9,
    )
    assert len(report.polytopes) == (5 if len(joints) == 2 else 3)
    for y, polytope in report.polytopes:
        assert polytope.contains(tr.joint_efforts(np.full(len(tr.motors), 60.0), y))
    text = str(report)
    assert all(name in text for name in report.errors)
    assert "100.0 % of this domain" in text
    assert str(pickle.loads(pickle.dumps(report))) == text


def test_an_exact_approximation_has_no_error():
    """A gear: J is its ratio everywhere."""
    mech = hc.load(hc.robot_file("geared_arm"))
    tr = Transmission(mech, ["turntable"])
    report = tr.report([-1.0], [1.0], samples=20)
    assert report.errors["constant J"][1] < 1e-9
    assert report.errors["no velocity terms"][1] < 1e-9


@pytest.mark.slow
def test_what_is_not_reached_is_told_apart():
    tr = Transmission(alone(cranked), PITCH_ROLL)
    report = tr.report([-1.4, -0.1], [1.4, 0.1], samples=10)
    assert 0.2 < report.reached < 0.9
    assert (report.status == 1).any()
    assert np.isnan(report.determinant[report.status == 1]).all()
    assert report.noise_gain[report.status == 0].max() > 3.0
    assert "no effort limits" in str(report)
    knee = Transmission(alone(four_barred), ["knee"])
    with pytest.raises(hc.InputError, match="no posture"):
        knee.report([-2.1], [-2.0])


def test_the_motors_lose_control_where_a_crank_is_driven_through_its_dead_point():
    """The rocker of a four-bar as the motor of its crank: det J = 0 at two angles of a turn."""
    shipped = hc.load(hc.robot_file("four_bar"))
    mech = hc.Mechanism(shipped.model, shipped.constraints, actuated=["rocker"],
                        reference=shipped.reference)  # fmt: skip
    tr = Transmission(mech, ["crank"])
    report = tr.report(tr.y_start - 3.0, tr.y_start + 3.0, samples=10)
    assert (report.status == 2).any()
    assert (report.status == 1).sum() == 0
    lost = np.linspace(report.lower[0], report.upper[0], report.status.size)[report.status == 2]
    with pytest.raises(hc.BranchError, match="lose control") as caught:
        tr.motor_positions([lost[0]])
    assert caught.value.why == "control"


def test_all_parallel_joints_of_a_robot_are_found():
    mech = humanoid()
    q, _ = hc.assemble(mech)
    found = transmissions(mech, q)
    assert {tr.joints for tr in found} == {
        ("leg0 knee",), ("leg0 pitch", "leg0 roll"), ("leg1 knee",), ("leg1 pitch", "leg1 roll")
    }  # fmt: skip
    assert not found.unresolved
    loops = {"left", "right", "crank", "coupler"}
    assert len(found.serial_joints) == 6 + 2 * 5 + 3 * 4
    assert not any(loops & set(name.split()) for name in found.serial_joints)
    assert {tr.base for tr in found} == {"leg0 hip", "leg0 knee", "leg1 hip", "leg1 knee"}
    with pytest.raises(hc.InputError, match="no loops"):
        transmissions(mech.without(*mech.constraint_names))


def test_a_block_without_a_serial_chain_is_told():
    found = transmissions(hc.load(hc.robot_file("stewart")))
    assert len(found) == 0
    assert "do not determine" in next(iter(found.unresolved.values()))


def test_rods_on_hinges_are_the_cause_that_is_told(tmp_path):
    """An export without its universal joints: the ankle cannot move."""
    main = tmp_path / "ankle.urdf"
    main.write_text(hc.robot_file("ankle").read_text())
    sheet = hc.robot_file("ankle").with_suffix(".yaml").read_text().splitlines()
    kept = [line for line in sheet if not line.startswith(("joint_name", "joint_type"))]
    main.with_suffix(".yaml").write_text("\n".join(kept))
    mech = hc.load(main)
    assert hc.mobility(mech).dof == 0
    found = transmissions(mech)
    assert len(found) == 0
    (why,) = found.unresolved.values()
    assert "its loops cannot move: they have too many constraints" in why
    assert "holoctl doctor" in why
    with pytest.raises(hc.InputError, match="rod on a hinge"):
        hc.Transmission(mech, ["ankle_pitch", "ankle_roll"])


def test_contacts_are_no_loops():
    mech = humanoid(legs=1, arms=1)
    q, _ = hc.assemble(mech)
    standing = mech.with_constraints(hc.Contact("leg0 roll"))
    assert [tr.joints for tr in transmissions(standing, q)] == [
        tr.joints for tr in transmissions(mech, q)
    ]


def test_contacts_are_left_out_of_a_mechanism_on_the_ground():
    mech = alone(cranked)
    touching = mech.with_constraints(hc.Contact(("roll", at(0.1, 0, -0.05)), name="toe"))
    tr = Transmission(touching, PITCH_ROLL)
    assert "toe" not in tr.mech.constraint_names
    y = np.array([0.2, 0.1])
    np.testing.assert_allclose(
        tr.motor_positions(y), Transmission(mech, PITCH_ROLL).motor_positions(y), atol=1e-12
    )


def coupled_across():
    """A tendon that ties the first and last of three joints; the one between moves freely."""
    m, rng = pin.Model(), np.random.default_rng(0)
    for i, above in enumerate((0, "j0", "j1")):
        add_body(m, above, pin.JointModelRY(), at(0.3 * bool(i)), f"j{i}", lump(rng))
    tendon = hc.Coupling({"j0": 1.0, "j2": -1.0})
    return hc.Mechanism(m, [tendon], actuated=["j2", "j1"], name="tendon")


def test_loops_without_motors_are_refused_whatever_the_limits():
    mech = humanoid(legs=1, arms=1)
    q, _ = hc.assemble(mech)
    limits = hc.Limits(effort=10.0, velocity=[1.0, 2.0], speed_torque=[(0.0, 5.0)])
    arms = hc.Mechanism(
        mech.model, mech.constraints, actuated=["arm0 0", "arm0 1"], limits=limits
    )  # fmt: skip
    with pytest.raises(hc.NotActuatedError, match="no motor acts on the loops of 'leg0 knee'"):
        Transmission(arms, ["leg0 knee"], q)


def test_joints_that_hang_on_several_bodies_have_no_linkage_of_their_own():
    tr = Transmission(coupled_across(), ["j0"])
    np.testing.assert_allclose(tr.jacobian([0.3]), [[1.0]])
    for call in (
        lambda: tr.linkage_efforts([0.0], [0.0], [0.0]),
        lambda: tr.linkage_wrench([0.0], [0.0], [0.0]),
        lambda: tr.reflected_inertia([0.0]),
        lambda: tr.velocity_effort([0.0], [1.0]),
    ):
        with pytest.raises(hc.InputError, match=r"several bodies.*'universe', 'j1'"):
            call()
    assert tr.reflected_inertia([0.0], rotors=True).shape == (1, 1)


@pytest.mark.parametrize("low", [0.0, 5.0])
def test_the_overshoot_of_the_joint_box_is_relative_to_the_range_of_each_motor(low):
    mech, box = alone(cranked), np.array([0.1, 0.1])
    errors = []
    for limits in ([(low, 60.0), (low, 60.0)], 0.5 * (60.0 - low)):
        one = dataclasses.replace(mech, limits=hc.Limits(effort=limits))
        errors.append(Transmission(one, PITCH_ROLL).report(-box, box, samples=5).errors)
    found, symmetric = (np.array(e["joint box, overshoot"]) for e in errors)
    assert (found > 1.0).all()
    np.testing.assert_allclose(found, symmetric, rtol=0.05)


def test_forces_and_limits_come_with_the_joints_that_they_name():
    mech = humanoid(legs=1, arms=1)
    q, _ = hc.assemble(mech)
    forces = [
        hc.JointFriction(viscous={"leg0 knee": 0.5, "arm0 1": 0.4}, name="oil"),
        hc.JointSpring("leg0 pitch", 4.0), hc.JointSpring("arm0 2", 3.0),
        hc.Spring("leg0 hip", "leg0 knee", stiffness=50.0, length=0.1, name="tendon"),
    ]  # fmt: skip
    limits = hc.Limits(effort={"leg0 crank": 50.0, "arm0 0": 10.0}, velocity={"leg0 pitch": 5.0})
    mech = dataclasses.replace(mech, forces=forces, limits=limits)
    knee = Transmission(mech, ["leg0 knee"], q)
    assert knee.mech.force_names == ("oil", "tendon")
    assert dict(knee.mech.limits.effort) == {"leg0 crank": 50.0}
    still = np.zeros(1)
    moving = knee.linkage_efforts([0.1], [2.0], still) - knee.linkage_efforts([0.1], still, still)
    np.testing.assert_allclose(moving - knee.velocity_effort([0.1], [2.0]), 1.0, atol=1e-9)
    ankle = Transmission(mech, ["leg0 pitch", "leg0 roll"], q)
    assert ankle.mech.force_names == ("oil", "spring on leg0 pitch")
    far = dataclasses.replace(
        mech, forces=[hc.Spring("leg0 knee", "arm0 3", stiffness=1.0, length=0.1, name="band")]
    )
    with pytest.raises(hc.InputError, match="outside of this mechanism"):
        Transmission(far, ["leg0 knee"], q)
