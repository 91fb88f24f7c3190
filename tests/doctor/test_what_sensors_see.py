"""The doctor on sensors: what they see, what noise does, and which one more helps most."""

from __future__ import annotations

import json

import numpy as np
import pytest
from examined import at_the_dead_centre, bars, folded_parallelogram, said
from linkages import LINKAGES
from shared_robots import shared_robot
from zoo import slider_crank

import holoctl as hc

ROBOTS = ["five_bar", "four_bar", "stewart", "delta", "geared_arm", "ankle"]


def robot(name):
    return hc.load(hc.robot_file(name))


def gain(mech, q, names):
    return hc.ClosedStateEstimator(mech, names, start=q).noise_gain(q)


def joints_of_one_coordinate(mech):
    tree = [n for n, j in zip(mech.model.names, mech.model.joints, strict=True) if j.nv == 1]
    cut = [
        name
        for name, c in zip(mech.constraint_names, mech.constraints, strict=True)
        if getattr(c, "joint", None) in ("revolute", "prismatic", "screw")
    ]
    return [n for n in tree + cut if n != "universe"]


def accepted(mech, q, names):
    """Whether a closed state can be followed with these sensors."""
    try:
        hc.ClosedStateEstimator(mech, names, start=q)
    except hc.InputError as error:
        assert "do not determine" in str(error)  # noqa: PT017
        return False
    return True


@pytest.mark.parametrize("name", ROBOTS)
def test_the_gains_are_those_of_the_closed_state_behind_the_sensors(name):
    mech = robot(name)
    report = hc.mobility(mech)
    s = report.sensors
    assert s.suffice
    assert s.measured == tuple(mech.actuated)
    assert (s.seen, s.idle, s.unseen) == (report.dof, 0, ())
    assert s.gain == pytest.approx(gain(mech, report.q, None), rel=1e-9)
    if s.more:
        assert s.more_gain == pytest.approx(gain(mech, report.q, [*s.measured, *s.more]), rel=1e-9)
        assert max(s.more_gain, s.more_nearby_gain) <= 0.9 * max(s.gain, s.nearby_gain)


@pytest.mark.parametrize("name", ["five_bar", "four_bar", "delta"])
def test_no_other_sensor_helps_more(name):
    mech = robot(name)
    report = hc.mobility(mech)
    s = report.sensors
    others = set(joints_of_one_coordinate(mech)) - set(s.measured)
    with_it = {x: gain(mech, report.q, [*s.measured, x]) for x in others}
    if s.more:  # nearby the order is the same in these robots
        assert s.more_gain == pytest.approx(min(with_it.values()), rel=1e-6)
    else:
        assert min(with_it.values()) > 0.85 * s.gain


def test_the_gain_is_the_noise_of_the_worst_coordinate():
    mech = robot("five_bar")
    report = hc.mobility(mech)
    loop, x = hc.ClosedStateEstimator(mech, start=report.q), mech.motor_positions(report.q)
    rng, sigma, off = np.random.default_rng(1), 1e-5, []
    for _ in range(3000):
        off.append(loop.state(x + sigma * rng.normal(size=2))[0] - report.q)
    worst = np.std(off, axis=0).max() / sigma
    assert worst == pytest.approx(report.sensors.gain, rel=0.05)


def test_a_five_bar_says_what_its_motors_see():
    text = said(hc.mobility(robot("five_bar")))
    assert "Sensors: the motors are sufficient; they observe both motions." in text
    assert "Noise gain of the worst coordinate: 1.3; it is 0.89 with 'tip_hinge' as one mo" in text


def test_one_motor_of_two_does_not_suffice_and_one_joint_more_does():
    mech = robot("five_bar")
    report = hc.mobility(mech, measured=["motor_left"])
    s = report.sensors
    assert not s.suffice
    assert (s.seen, len(s.unseen), s.gain) == (1, 1, np.inf)
    with_it = {
        x: gain(mech, report.q, ["motor_left", x])
        for x in joints_of_one_coordinate(mech)
        if x != "motor_left" and accepted(mech, report.q, ["motor_left", x])
    }
    assert s.more == (min(with_it, key=with_it.get),)
    assert s.more_gain == pytest.approx(min(with_it.values()), rel=1e-9)
    text = said(report)
    assert "Sensors: 'motor_left' is not sufficient; it observes 1 of 2 motions, not" in text
    assert f"All are observed with '{s.more[0]}' as one more sensor, at a noise gain of" in text


def test_a_robot_with_a_motion_that_its_motors_do_not_see():
    mech = hc.load(shared_robot("disney_like"))
    report = hc.mobility(mech)
    s = report.sensors
    assert (s.seen, s.idle, len(s.unseen)) == (6, 2, 1)
    assert s.unseen[0].rates[0][0] == "free_universal4"
    assert s.more == ("free_universal4",)
    assert not accepted(mech, report.q, None)
    cured = hc.ClosedStateEstimator(mech, [*mech.actuated, *s.more], start=report.q)
    assert cured.noise_gain(report.q) == pytest.approx(s.more_gain, rel=1e-6)
    assert len(cured.unseen) == 2
    text = said(report)
    assert (
        "the motors are not sufficient; they observe 6 of 7 motions (2 more are idle), not" in text
    )
    assert "All are observed with 'free_universal4' as one more sensor" in text


def test_hinges_of_a_ball_are_no_place_for_a_sensor():
    mech = hc.load(shared_robot("cassie_like"))
    report = hc.mobility(mech)
    s = report.sensors
    assert s.suffice
    assert s.idle == 2
    assert s.more == ("free_ankle",)
    hinge = [*mech.actuated, "foot_2_half_planta_rode_2_rev0"]
    assert gain(mech, report.q, hinge) < s.more_gain  # it would help more
    assert s.more_gain == pytest.approx(gain(mech, report.q, [*mech.actuated, *s.more]), rel=1e-6)


@pytest.mark.parametrize("name", ["stewart_6sps", "spherical_loop", "bennett", "third_bar"])
def test_sensors_suffice_where_the_closed_state_is_found_with_them(name):
    mech = LINKAGES[name](1.0).mechanism()
    q = hc.assemble(mech)[0]
    names, rng = joints_of_one_coordinate(mech), np.random.default_rng(5)
    if not names or hc.mobility(mech).dof == 0:
        pytest.skip("nothing to measure")
    for _ in range(4):
        chosen = rng.permutation(names)[: rng.integers(1, len(names) + 1)].tolist()
        s = hc.mobility(mech, q, measured=chosen).sensors
        assert s.suffice == accepted(mech, q, chosen), chosen
        if not s.suffice and s.more:
            assert accepted(mech, q, [*chosen, *s.more]), (chosen, s.more)


def test_where_one_sensor_is_not_enough_there_are_several():
    link = bars("arm", [0.4, 0.3, 0.3, 0.4], 0.9)
    mech = link.mechanism(["last"], reference={"hinge_0": 1.5, "hinge_1": -1.0, "hinge_2": -0.9})
    q = hc.assemble(mech)[0]
    chain = hc.Mechanism(mech.model.copy(), name="open", reference=q)
    s = hc.mobility(chain, measured=["hinge_1"]).sensors
    assert (s.seen, len(s.unseen)) == (1, 3)
    assert sorted(s.more) == ["hinge_0", "hinge_2", "hinge_3"]
    assert s.more_gain == pytest.approx(1.0)
    assert "as 3 more sensors" in said(hc.mobility(chain, measured=["hinge_1"]))


def test_a_dead_point_of_the_sensors_is_told_and_what_cures_it():
    mech = at_the_dead_centre("slider")
    report = hc.mobility(mech, measured=["slider"])
    s = report.sensors
    assert s.suffice
    assert s.gain == np.inf
    assert s.nearby_gain < np.inf
    assert len(s.more) == 1
    assert s.more_gain == pytest.approx(gain(mech, report.q, ["slider", *s.more]), rel=1e-6)
    assert "This is a singularity (dead point) of the sensor" in said(report)


def test_where_paths_cross_the_gain_is_that_nearby():
    report = hc.mobility(folded_parallelogram())
    assert report.singular == ["bifurcation"]
    assert report.sensors.gain == np.inf
    assert report.sensors.nearby_gain < np.inf
    assert "dead point" not in said(report)
    assert f"coordinate: {report.sensors.nearby_gain:.2g} nearby" in said(report)


def test_nothing_is_said_where_nothing_is_asked():
    for mech in (
        hc.Mechanism(robot("five_bar").model.copy(), robot("five_bar").constraints),
        hc.Mechanism(
            robot("five_bar").model.copy(),
            robot("five_bar").constraints,
            actuation=np.eye(4)[:, :2],
        ),
    ):
        q = hc.assemble(mech, robot("five_bar").reference)[0]
        assert hc.mobility(mech, q).sensors.measured == ()
        assert "Sensors" not in said(hc.mobility(mech, q))
        assert hc.mobility(mech, q, measured=["motor_left", "motor_right"]).sensors.suffice


def test_names_are_checked_at_the_door():
    with pytest.raises(hc.InputError, match="motor_left"):
        hc.mobility(robot("five_bar"), measured=["motor_lift"])
    with pytest.raises(hc.InputError, match="one joint or more"):
        hc.mobility(robot("five_bar"), measured=[])


def test_sensors_do_not_depend_on_the_unit_of_length():
    small, large = (hc.mobility(LINKAGES["four_bar"](x).mechanism()) for x in (1.0, 1000.0))
    if not small.sensors.measured:
        names = joints_of_one_coordinate(LINKAGES["four_bar"](1.0).mechanism())[:1]
        small, large = (
            hc.mobility(LINKAGES["four_bar"](x).mechanism(), measured=names) for x in (1.0, 1000.0)
        )
    assert small.sensors.more == large.sensors.more
    assert small.sensors.gain == pytest.approx(large.sensors.gain, rel=1e-6)


def test_slides_and_turns_are_compared_by_the_size_of_the_mechanism():
    mech = slider_crank("crank")
    report = hc.mobility(mech)
    assert report.sensors.gain == pytest.approx(gain(mech, report.q, None), rel=1e-9)


def test_a_floating_base_is_measured_in_front():
    mech = hc.load(hc.robot_file("leg"), free_flyer=True)
    report = hc.mobility(mech)
    s = report.sensors
    assert s.measured == ("root_joint", *mech.actuated)
    assert s.suffice
    assert s.seen == report.dof
    assert "Sensors: 'root_joint' and the motors are sufficient; they observe all" in said(report)


def test_what_is_rigid_or_open_has_nothing_to_see():
    mech = bars("rigid", [0.3, 0.4], 0.5).mechanism(["last"], ["hinge_0"], {"hinge_0": 0.9})
    report = hc.mobility(mech)
    assert report.finite_dof == 0
    assert "Sensors" not in said(report)


def test_the_report_of_sensors_is_data():
    found = json.loads(json.dumps(hc.mobility(robot("five_bar")).to_dict()))["sensors"]
    assert found["measured"] == ["motor_left", "motor_right"]
    assert found["seen"] == 2
    assert found["more"] == ["tip_hinge"]
    assert found["gain"] == pytest.approx(1.3154, abs=1e-4)
