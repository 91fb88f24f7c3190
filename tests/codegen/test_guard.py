"""The guard of compiled laws: it trips before digits are lost, and Python answers."""

from __future__ import annotations

import dataclasses
import logging
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from expressed import case, compiled, states
from inside import general_path
from support import ANY_STATE, assert_rows_close, closed_states, mechanism, relative
from zoo import slider_crank

import holoctl as hc
from holoctl.codegen.expressions import symbolic
from holoctl.codegen.laws.inverse_dynamics import inverse_function


@cache
def at_a_dead_point():
    """The four-bar driven at the rocker, and the slider-crank driven at the slider."""
    rocker = dataclasses.replace(mechanism("four_bar"), actuated=["rocker"])
    slider = slider_crank("slider", (0.3, 1.0), (0.8, -1.1, 1.1))
    return {
        "rocker": (rocker, hc.assemble(rocker, [0.9, 0.0, 1.6], locked=["coupler"])[0], "coupler"),
        "slider": (slider, np.array([0.0, 0.0, 1.3]), "crank"),
    }


@cache
def machine_code(which):
    """The inverse dynamics of one of them."""
    return hc.compile(at_a_dead_point()[which][0], ["inverse_dynamics"], flags=["-O0"])


@pytest.mark.parametrize("which", ["rocker", "slider"])
@pytest.mark.parametrize("off", [10.0**-i for i in range(2, 10)])
def test_near_a_dead_point_the_guard_trips_before_digits_are_lost(which, off):
    mech, dead, moving = at_a_dead_point()[which]
    f = machine_code(which)
    before = f.fallbacks
    prepared = hc.PreparedInverseDynamics(mech, f.partition)
    q = dead.copy()
    q[mech.coordinate_names.index(moving)] += off
    q, v = hc.assemble(mech, q, np.ones(mech.nv), locked=[moving])
    target = np.array([1.0])
    try:
        expected = general_path(prepared, q, v, target, 0.0, None)
    except hc.SingularityError:
        with pytest.raises(hc.SingularityError):
            f.inverse_dynamics(q, v, target)
        return
    u = f.inverse_dynamics(q, v, target)
    assert relative(u, expected) < 1e-8
    assert f.fallbacks - before == (off < 3e-5) or 1e-5 < off < 1e-3


def test_at_the_dead_point_itself_the_error_is_that_of_python():
    dead, f = at_a_dead_point()["rocker"][1], machine_code("rocker")
    out = np.full(1, 7.0)
    with pytest.raises(hc.SingularityError, match="dead point"):
        f.inverse_dynamics(dead, np.zeros(3), np.ones(1), out=out)
    assert out == 7.0


@pytest.mark.parametrize(
    "name", ["spatial_arms", "standing_leg", "weld_chain", "universal_chain", "idle_rod"]
)
def test_just_before_the_guard_trips_the_answer_is_still_good(name):
    """Along lines of open states, to where the guard is about to trip; small pivots that are not
    singularities are among them."""
    mech, part = case(name)
    prepared = hc.PreparedInverseDynamics(mech, part, None, "project", **ANY_STATE)
    f = inverse_function(symbolic(mech, part), None, "project")
    rng, found = np.random.default_rng(8), 0
    for q, v in states(name, "closed", 30):
        step, target = 2.0 * rng.normal(size=mech.nv), rng.normal(size=mech.nu)

        def at(s, q=q, v=v, step=step, target=target):
            x = pin.normalize(mech.model, pin.integrate(mech.model, q, s * step))
            u, _, guard = f(x, v, target, 0.0)
            return x, np.array(u)[:, 0], float(guard)

        path = np.linspace(0.0, 1.0, 40)
        trips = [s for s in path if not at(s)[2] < 1.0]
        if not trips or trips[0] == 0.0:
            continue
        good, bad = path[list(path).index(trips[0]) - 1], trips[0]
        for _ in range(40):
            middle = 0.5 * (good + bad)
            good, bad = (middle, bad) if at(middle)[2] < 1.0 else (good, middle)
        x, u, guard = at(good)
        try:
            expected = general_path(prepared, x, v, target, 0.0, None)
        except hc.SingularityError:
            pytest.fail("the guard took a singular state for a good one")
        assert guard > 0.5
        assert relative(u, expected) < 1e-8
        found += 1
    assert found >= 3


def test_a_state_that_trips_the_guard_is_counted_and_told_once(caplog):
    mech, part = case("floating_leg")
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"])
    q, v = closed_states("floating_leg")[0]
    rounded = q.astype(np.float32).astype(float)  # not normalised to double
    with caplog.at_level(logging.WARNING, "holoctl"):
        for _ in range(3):
            u = f.inverse_dynamics(rounded, v, np.ones(3))
    assert f.fallbacks == 3
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "floating_leg" in caplog.text
    assert relative(u, f.inverse_dynamics(q, v, np.ones(3))) < 1e-4
    with pytest.raises(hc.InputError, match="norm 1"):
        f.inverse_dynamics(1.1 * q, v, np.ones(3))


def test_orientation_rows_near_half_a_turn_take_the_python_path():
    mech, _ = case("weld_chain")
    f, rng, before = compiled("weld_chain", ("terms",)), np.random.default_rng(0), 0
    for _ in range(200):
        q = mech.reference + 2.0 * rng.normal(size=mech.nv)
        T, count = hc.terms(mech, q, q), f.fallbacks
        got = f.terms(q, q)
        tol = 1e-10 * (1.0 + np.abs(T.drift).max())
        assert_rows_close(mech, got.drift, T.drift, tol, (q, q), what="drift")
        before += f.fallbacks > count
    assert before >= 3


def test_a_target_that_contradicts_the_constraints_is_refused_or_projected():
    mech, part = case("three_motors")
    q, v = closed_states("three_motors")[0]
    strict = compiled("three_motors", ("inverse_dynamics",), "raise")
    with pytest.raises(hc.InconsistentError):
        strict.inverse_dynamics(q, v, np.array([1.0, 2.0, 30.0]))
    P = hc.project(mech, q, v, partition=part)
    target, count = mech.B.T @ (P.gamma @ np.ones(2) + P.bias), strict.fallbacks
    u = strict.inverse_dynamics(q, v, target)
    assert strict.fallbacks == count
    assert relative(u, hc.inverse_dynamics(mech, q, v, target, partition=part).u) < 1e-10


# ----------------------------------------------------------------------- small, unequal, turned


@pytest.mark.parametrize("size", [1e-3, 1e-4])
def test_small_mechanisms_keep_their_inertia(size):
    """Moments of inertia below 1e-15 kg m^2 are small in no unit but ours."""
    link = hc.Linkage("tiny", gravity=(0.0, -9.81, 0.0))
    place = lambda x: pin.SE3(np.eye(3), np.array([x * size, 0.0, 0.0]))  # noqa: E731
    for name, length in (("crank", 0.2), ("coupler", 0.5), ("rocker", 0.4)):
        mass = 1000.0 * 0.01 * length * size**3
        inertia = mass * size**2 * np.diag([1e-3, length**2 / 12, length**2 / 12])
        link.add_body(name, mass, (0.5 * length * size, 0, 0), inertia)
    link.add_joint("motor", "revolute", "universe", "crank")
    link.add_joint("elbow", "revolute", "crank", "coupler", place(0.2))
    link.add_joint("pivot", "revolute", "universe", "rocker", place(0.5))
    link.add_joint("pin", "revolute", "coupler", "rocker", place(0.5), place(0.4))
    mech = link.mechanism(["pin"], ["motor"], {"motor": 1.0, "elbow": -0.5, "pivot": 1.4})
    f = hc.compile(mech, ["inverse_dynamics", "forward_dynamics"], flags=["-O0"])
    q, _ = hc.assemble(mech)
    _, v = hc.assemble(mech, q, [20.0, 0, 0], locked=["motor"])
    exact = hc.inverse_dynamics(mech, q, v, [300.0])
    u = f.inverse_dynamics(q, v, [300.0])
    np.testing.assert_allclose(u, exact.u, rtol=1e-11)
    np.testing.assert_allclose(f.forward_dynamics(q, v, mech.B @ u), exact.a, rtol=1e-9)
    assert f.fallbacks == 0


@pytest.mark.parametrize("weights", [[1e-9, 1.0, 1.0], [1e-6, 1.0, 1.0]])
def test_unequal_weights_lose_no_digits(weights):
    mech, part = case("three_motors")
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, weights=weights,
                   inconsistent="project", flags=["-O0"])  # fmt: skip
    prepared = hc.PreparedInverseDynamics(mech, part, weights, "project")
    rng = np.random.default_rng(3)
    for q, v in closed_states("three_motors")[:5]:
        target = rng.normal(size=3)
        u = f.inverse_dynamics(q, v, target)
        np.testing.assert_allclose(u, prepared.torque(q, v, target), rtol=1e-9, atol=1e-9)


def turned(mech, q, angle):
    """A configuration with its floating base turned about the vertical through the world."""
    X = pin.SE3(pin.exp3(np.array([0.0, 0.0, angle])), np.zeros(3))
    return np.concatenate([pin.SE3ToXYZQUAT(X * pin.XYZQUATToSE3(q[:7])), q[7:]])


@pytest.mark.parametrize("hold", ["contact", "weld"])
def test_the_heading_of_a_robot_does_not_matter(hold):
    """Rows across a free joint are taken in its axes: its pivots do not turn with the robot."""
    mech = hc.load(hc.robot_file("leg"), free_flyer=True)
    q, _ = hc.assemble(mech)
    foot = mech.model.names[-1]
    if hold == "contact":
        extra = hc.Contact(foot, name="foot")
    else:
        data = mech.model.createData()
        pin.forwardKinematics(mech.model, data, q)
        extra = hc.Closure("universe", (foot, data.oMi[mech.model.getJointId(foot)].inverse()),
                           joint="spherical", name="foot")  # fmt: skip
    mech = dataclasses.replace(mech, reference=q).with_constraints(extra)
    part = hc.partition(mech, hc.assemble(mech)[0])
    f = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"], **ANY_STATE)
    prepared, rng = hc.PreparedInverseDynamics(mech, part, **ANY_STATE), np.random.default_rng(0)
    for degrees in (0, 45, 88, 89, 90, 91, 92, 135, 180, 270):
        x = turned(mech, hc.assemble(mech)[0], np.deg2rad(degrees))
        v, target = rng.normal(size=mech.nv), rng.normal(size=mech.nu)
        u = prepared.torque(x, v, target)
        assert relative(f.inverse_dynamics(x, v, target), u) < 1e-9
    assert f.fallbacks == 0
