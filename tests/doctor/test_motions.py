"""Motors and motions: driven, idle, free, and how good independent coordinates are."""

from __future__ import annotations

import dataclasses

import numpy as np
import overconstrained as oc
import pinocchio as pin
import pytest
from examined import assembled, at_the_dead_centre, said
from linkages import LINKAGES
from shared_robots import shared_robot
from zoo import ZOO, at

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows

# ------------------------------------------------------------------------------------------- motors


def test_motors_too_many_and_too_few():
    case = LINKAGES["stewart_6ups"]()
    mech, q = assembled(case, actuated=("piston_1",))
    report = hc.mobility(mech, q)
    assert (report.actuation, report.actuation_rank) == ("under", 1)
    assert len(report.undriven) == 5
    mech = ZOO["three_motors"]()
    report = hc.mobility(mech)
    assert report.actuation == "redundantly"
    assert "so 1 motor is redundant" in said(report)
    rod = ZOO["idle_rod"]()
    driven_twice = hc.Mechanism(
        rod.model, rod.constraints, ["crank", "rocker"], reference=rod.reference
    )
    report = hc.mobility(driven_twice)
    assert (report.actuation, report.idle, report.undriven) == ("redundantly", ["rod"], [])
    leg = ZOO["floating_leg"]()
    motors = ["hip", "motor_crank", "push_rod"]
    report = hc.mobility(
        hc.Mechanism(leg.model, leg.constraints, motors, reference=leg.reference)
    )  # fmt: skip
    assert report.actuation == "both"
    assert "motor is redundant" in said(report)


def test_a_five_bar_with_one_motor_is_under_actuated_and_not_idle():
    base = ZOO["five_bar"]()
    mech = hc.Mechanism(base.model, base.constraints, ["left"], reference=base.reference)
    report = hc.mobility(mech)
    assert (report.actuation, report.idle) == ("under", [])
    (motion,) = report.undriven
    rates = dict(motion.rates)
    assert "left" not in rates
    assert set(rates) == {"left_rod", "right", "right_rod"}
    # the rates are those of a motion that the constraints allow
    q, _ = hc.assemble(mech)
    v = np.array([rates.get(n, 0.0) for n in mech.coordinate_names])
    _, rows = constraint_rows(mech, hc.mobility(mech, q).q, v)
    assert np.abs(rows.jacobian @ v).max() < 0.05  # told at a configuration nearby


@pytest.mark.parametrize("motor", ["hinge_1", "hinge_2", "hinge_4", "hinge_5"])
def test_a_spherical_linkage_with_one_motor_is_under_actuated_and_not_idle(motor):
    mech = oc.drawn("spherical_5")[1]
    report = hc.mobility(dataclasses.replace(mech, actuated=(motor,)))
    assert (report.actuation, report.idle, len(report.undriven)) == ("under", [], 1)
    assert (report.sensors.seen, report.sensors.idle, len(report.sensors.unseen)) == (1, 0, 1)


def test_a_free_body_is_not_idle():
    report = hc.mobility(ZOO["floating_leg"]())
    assert report.idle == []
    assert len(report.undriven) == 9


def test_an_open_tree():
    model = ZOO["four_bar"]().model
    report = hc.mobility(hc.Mechanism(model, actuated=["crank", "coupler", "rocker"]))
    assert (report.open_dof, report.rows, report.dof, report.actuation) == (3, 0, 3, "fully")
    assert "open tree" in said(report)


def test_what_is_said_of_motions_is_true_at_the_configuration_asked_about():
    """Gravity on a pendulum that hangs straight down, beside an arm with a motor."""
    m = pin.Model()
    body = pin.Inertia(1.0, np.array([0.0, 0.0, -0.3]), 0.01 * np.eye(3))
    for name, x in (("hang", 0.0), ("arm", 1.0)):
        j = m.addJoint(0, pin.JointModelRY(), at(x), name)
        m.appendBodyToJoint(j, body, pin.SE3.Identity())
    mech = hc.Mechanism(m, actuated=["arm"])
    for angle, loaded in ((0.0, False), (0.3, True)):
        q = np.array([angle, 0.5])
        (motion,) = hc.mobility(mech, q).undriven
        assert motion.rates == (("hang", 1.0),)
        assert motion.loaded == loaded
        held = hc.inverse_dynamics(mech, q, np.zeros(2), np.zeros(2), coordinates="all")
        assert held.certificate.ok == (not loaded)


def test_rates_of_motions_are_allowed_by_the_constraints():
    mech = hc.load(shared_robot("disney_like"))
    report = hc.mobility(mech)
    _, rows = constraint_rows(mech, report.q, np.zeros(mech.nv))
    for motion in (*report.undriven, *report.idle_motions):
        v = np.array([dict(motion.rates).get(n, 0.0) for n in mech.coordinate_names])
        assert np.abs(rows.jacobian @ v).max() < 1e-6


def test_rods_spin_alone_on_a_shaky_mechanism_too():
    """Legs with balls at both ends between parallel polygons: the top moves to first order."""
    link = hc.Linkage("polygons")
    link.add_body("top", 2.0, (0, 0, 1), 0.1 * np.eye(3))
    for i in range(6):
        c, s = np.cos(i * np.pi / 3), np.sin(i * np.pi / 3)
        foot, head = np.array([c, s, 0.0]), np.array([0.5 * c, 0.5 * s, 0.8])
        link.add_body(f"rod{i}", 0.5, (foot + head) / 2, 0.01 * np.eye(3))
        link.add_joint(f"foot{i}", "spherical", "universe", f"rod{i}", at(*foot), at(*foot))
        link.add_joint(f"head{i}", "spherical", f"rod{i}", "top", at(*head), at(*head))
    report = hc.mobility(link.mechanism())
    assert "shaky" in report.singular
    assert sorted(report.idle) == [f"rod{i}" for i in range(6)]


def test_a_closed_configuration_far_from_the_guess_is_told():
    case = LINKAGES["four_bar"]()
    near = hc.mobility(case.mechanism(), [1.0, -0.5, 1.4])
    assert near.far == []
    report = hc.mobility(case.mechanism(), [1.0, 2.5, 1.4])
    assert "elbow" in report.far
    assert "Far from the given configuration" in said(report)


# -------------------------------------------------------------------------- independent coordinates


def test_independent_coordinates_and_how_good_they_are():
    mech, q = assembled(LINKAGES["four_bar"]())
    report = hc.mobility(mech, q)
    part = hc.partition(mech, q)
    assert report.independent == [mech.coordinate_names[i] for i in part.independent]
    assert report.actuated_condition == pytest.approx(report.independent_condition)
    assert report.best_condition <= report.independent_condition
    assert hc.partition(mech, q, independent=report.best_independent).condition < 1e3


def test_motors_that_barely_tell_where_the_others_are_have_a_large_condition_number():
    base = at_the_dead_centre("slider")
    near, nearer = (
        hc.mobility(base, hc.assemble(base, [a, -0.3 * a, 0.7], locked=["crank"])[0])
        for a in (0.3, 0.03)
    )
    assert 5 < near.actuated_condition < 0.2 * nearer.actuated_condition < np.inf
    assert near.best_condition < 3
    assert near.best_independent != ["slider"]
    assert near.actuation_margin > 5 * nearer.actuation_margin
