"""Type-2 singularities in simulations: what is recorded, what ends a run, and what saturates."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import brentq
from support import shared
from zoo import add_body, at, bar, parallelogram, slider_crank, vertical
from zoo import five_bar as other_five_bar
from zoo import four_bar as crank_rocker

import holoctl as hc
from holoctl.dynamics.actuation_side import actuation_side, least_held_motion, same_side
from holoctl.rows.evaluate import scaled_rows_at
from holoctl.simulation.actuation_monitor import ActuationMonitor
from holoctl.simulation.motion import State

RECORD = hc.Integrator(at_actuation_singularity="record")


def five_bar():
    """Two driven arms and two rods, whose tip can pass the line through the elbows."""
    m = vertical(pin.Model())
    for name, x in (("left", -0.1), ("right", 0.1)):
        add_body(m, 0, pin.JointModelRZ(), at(x), name, bar(0.2, 0.3))
        add_body(m, name, pin.JointModelRZ(), at(0.2), f"{name}_rod", bar(0.2, 0.3))
    loop = hc.Closure(("left_rod", at(0.2)), ("right_rod", at(0.2)), name="loop", axes="x y")
    return hc.Mechanism(m, [loop], ["left", "right"], reference=[2.0, -1.0, 1.1, 1.0])


def double_rocker():
    return crank_rocker(lengths=(0.5, 0.3, 0.4, 0.5))


MECHANISMS = {
    "five_bar": five_bar,
    "other five_bar": other_five_bar,
    "shipped five_bar": lambda: hc.load(hc.robot_file("five_bar")),
    "double rocker": double_rocker,
    "slider-crank": slider_crank,
}


def free(name):
    """A free motion through type-2 singularities, from rest."""

    def run():
        mech = dataclasses.replace(MECHANISMS[name](), name=name)
        q, v = hc.assemble(mech)
        if name == "slider-crank":
            v = hc.assemble(mech, q, [8.0, 0.0, 0.0])[1]
        return mech, hc.simulate(mech, None, q, v, 1.0)

    return shared(f"free through type 2, {name}", run)


def kept_rows(mech, q):
    """G of the rows that are kept at the reference."""
    rows = shared(f"rows of {mech.name}", lambda: hc.partition(mech, hc.assemble(mech)[0]).rows)
    return hc.terms(mech, q, np.zeros(mech.nv)).rows.jacobian[rows]


def determinant(mech, q):
    """Of [G; B'], with independent rows."""
    return float(np.linalg.det(np.vstack([kept_rows(mech, q), mech.B.T])))


def near(name, back):
    """A configuration at rest, `back` seconds before the first crossing of the free motion."""
    mech, run = free(name)
    i = int(np.searchsorted(run.t, run.type_2_at[0] - back))
    return mech, run.q[i]


# ----------------------------------------------------------------------------- recorded


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_free_motion_records_every_change_of_side(name, tmp_path):
    """Against the determinant of all rows and motors, at every instant."""
    mech, run = free(name)
    signs = np.sign([determinant(mech, q) for q in run.q])
    changes = np.flatnonzero(signs[1:] != signs[:-1])
    assert changes.size > 0
    assert len(run.type_2_at) == changes.size
    assert ((run.t[changes] <= run.type_2_at) & (run.type_2_at <= run.t[changes + 1])).all()
    assert run.crossings.tolist() == run.type_2_at.tolist()
    assert run.least_singular_value == 0.0
    assert run.smallest_at in run.type_2_at
    assert f"{len(run.type_2_at)} type-2 crossing" in repr(run)
    found = hc.Run.read(run.save(tmp_path / name))
    assert found.type_2_at.tolist() == run.type_2_at.tolist()
    assert found.least_singular_value == 0.0
    assert found.saturated.shape == (0, 3)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_singular_value_is_that_of_an_orthonormal_basis(name):
    mech, run = free(name)
    c = mech.column_scale
    for i in range(0, run.t.size, 97):
        G = kept_rows(mech, run.q[i]) * c
        N = np.linalg.svd(G)[2][len(G) :].T
        motors = c[:, None] * mech.B
        E = N.T @ (motors / np.linalg.norm(motors, axis=0))
        value = np.linalg.svd(E, compute_uv=False)[-1]
        assert run.smallest_singular_value[i] == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert np.ptp(run.smallest_singular_value) > 0.1


def test_redundant_rows_and_other_rows_give_the_same_sides():
    """A closure given twice: the sign is continued when other rows are kept."""
    mech, run = free("five_bar")
    again = dataclasses.replace(mech.constraints[0], name="again")
    twice = mech.with_constraints(again)
    part = hc.partition(twice, run.q[0])
    assert part.rank < twice.row_scale.size
    rows = [scaled_rows_at(twice, q, np.zeros(4), 0.0).jacobian for q in run.q]
    side = actuation_side(twice, part)
    signs = [side(G).sign for G in rows]
    assert [same_side(twice, part, *pair) for pair in pairwise(rows)] == [
        one == other for one, other in pairwise(signs)
    ]
    assert len(set(signs)) == 2
    found = hc.simulate(twice, None, run.q[0], run.v[0], 1.0)
    assert found.type_2_at == pytest.approx(run.type_2_at, abs=1e-6)


def test_the_lost_motion_moves_while_the_motors_hold():
    mech, run = free("five_bar")
    i = int(np.searchsorted(run.t, run.type_2_at[0]))
    q = run.q[i - 1]
    G = scaled_rows_at(mech, q, np.zeros(4), 0.0).jacobian
    _, v = least_held_motion(mech, hc.partition(mech, q), G)
    assert np.abs(hc.terms(mech, q, v).rows.jacobian @ v).max() < 1e-12
    assert np.abs(mech.B.T @ v).max() < 0.02 * np.abs(v).max()


@pytest.mark.parametrize("depth", [1e-2, 1e-5, -1e-5, -1e-2])
def test_two_changes_of_side_within_one_step(depth):
    """A step that goes through the singularity and back, as long as the whole way; with a negative
    depth it only comes near."""
    mech, run = free("five_bar")
    part = hc.partition(mech, run.q[0])
    i = int(np.searchsorted(run.t, run.type_2_at[0]))
    place = brentq(lambda t: determinant(mech, on_the_way(mech, run, t)), run.t[i - 1], run.t[i])
    assert place == pytest.approx(run.type_2_at[0], abs=1e-6)

    def at_(t):  # 0 ... 1, turns at 0.5, at most `depth` beyond the place
        back = place + depth * 0.1 - 0.12 * (2.0 * t - 1.0) ** 2
        return on_the_way(mech, run, back), np.zeros(4)

    G = scaled_rows_at(mech, at_(0.0)[0], np.zeros(4), 0.0).jacobian
    monitor = ActuationMonitor(mech, part, 0.0, G)
    start, stop = (State(t, at_(t)[0], np.full(4, 10.0), 0.0) for t in (0.0, 1.0))
    piece = SimpleNamespace(start=start, stop=stop, part=part, at=at_)
    found = monitor.over(piece, None, 0.3, 0.3, None)
    monitor.move(found)
    assert len(found.changes) == (2 if depth > 0.0 else 0)
    assert monitor.side in (1.0, -1.0)
    if depth > 0.0:
        half = 0.5 * np.sqrt(depth * 0.1 / 0.12)
        assert found.changes == pytest.approx([0.5 - half, 0.5 + half], abs=1e-4)
    else:
        assert 0.0 < monitor.least[0] < 0.2
        assert monitor.least[1] == pytest.approx(0.5, abs=1e-3)


def on_the_way(mech, run, t):
    """A closed configuration of the free motion, also between its instants."""
    i = int(np.clip(np.searchsorted(run.t, t) - 1, 0, run.t.size - 2))
    share = (t - run.t[i]) / (run.t[i + 1] - run.t[i])
    between = pin.interpolate(mech.model, run.q[i], run.q[i + 1], share)
    return hc.corrected(mech, between, np.zeros(mech.nv)).q


def test_without_sides_there_is_the_singular_value_alone():
    mech = five_bar()
    q, v = hc.assemble(mech)
    passive = dataclasses.replace(mech, actuated=())
    run = hc.simulate(passive, None, q, v, 0.01)
    assert np.isinf(run.smallest_singular_value).all()
    assert "singular" not in repr(run)
    one = dataclasses.replace(mech, actuated=("left",))
    run = hc.simulate(one, lambda t, q, v: [np.sin(t)], q, v, 1.0)
    assert np.isfinite(run.smallest_singular_value).all()
    assert not len(run.type_2_at)


# ----------------------------------------------------------------------------- ended


def test_standing_near_one_with_weak_motors_ends_in_a_sentence():
    """The robot drops through it."""
    mech, q = near("five_bar", 0.003)
    home, rest = mech.motor_positions(q), np.zeros(2)
    hold = hc.ComputedTorque(mech, 400.0, 40.0)
    follow = hold.track(lambda t: (home, rest, rest))
    plant = hc.Plant(limits=hc.Limits(effort=0.02))
    with pytest.raises(hc.SingularityError, match=r"under its controller .* type-2") as caught:
        hc.simulate(mech, follow, q, np.zeros(4), 0.5, plant=plant)
    error = caught.value
    assert "'left_rod'" in str(error)
    assert "are at their limits" in str(error)
    assert error.time == error.run.t[-1] == error.run.type_2_at[-1] > 0.0
    assert abs(determinant(mech, error.run.q[-1])) < 1e-10
    assert error.run.smallest_singular_value[-1] < 1e-9
    assert error.run.ended == "an error"
    assert (error.kind, error.value) == ("type 2", 0.0)
    assert error.q.tolist() == error.run.q[-1].tolist()
    assert error.motion.startswith("'left_rod' and 'right_rod' move (1 : ")
    until = error.time + 0.002
    run = hc.simulate(mech, follow, q, np.zeros(4), until, plant=plant, integrator=RECORD)
    assert run.t[-1] == until
    assert run.type_2_at == pytest.approx([error.time], abs=1e-12)
    assert determinant(mech, run.q[-1]) * determinant(mech, q) < 0.0


def test_errors_at_other_singularities_have_the_time_of_the_run():
    """Those of the constraints, which know no time where they are raised."""
    mech = parallelogram()
    q, v = hc.assemble(mech, [1.0, -1.0, 1.0], [-4.0, 4.0, -4.0])
    with pytest.raises(hc.SingularityError, match="singular configuration") as caught:
        hc.simulate(mech, None, q, v, 1.0)
    assert 0.0 < caught.value.time == caught.value.run.t[-1]


@pytest.mark.parametrize("hold", [True, False])
def test_a_function_counts_as_control_where_its_efforts_change(hold):
    mech, q = near("five_bar", 0.05)
    by = hc.Integrator(hold=hold)
    constant = hc.simulate(mech, lambda t, q, v: [0.01, 0.0], q, np.zeros(4), 0.3, integrator=by)
    assert len(constant.type_2_at) > 0
    with pytest.raises(hc.SingularityError, match="under its controller"):
        hc.simulate(mech, lambda t, q, v: [0.01, t], q, np.zeros(4), 0.3, integrator=by)
    with pytest.raises(hc.InputError, match="at_actuation_singularity"):
        hc.Integrator(at_actuation_singularity="cross")


def test_an_event_before_it_comes_first():
    mech, q = near("five_bar", 0.05)

    def run(t_end):
        event = hc.Event(lambda t, q, v: t - t_end, terminal=True)
        return hc.simulate(mech, lambda t, q, v: [0.01, t], q, np.zeros(4), 0.3, events=event)

    with pytest.raises(hc.SingularityError) as caught:
        run(0.29)
    when = caught.value.time
    assert run(when - 1e-5).ended == "event 0"
    with pytest.raises(hc.SingularityError) as again:
        run(when + 1e-5)
    assert again.value.time == pytest.approx(when, abs=1e-9)
    assert not len(again.value.run.events)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_change_of_side_without_an_error_or_a_record(name):
    """Random controllers, limits and starts near singularities; the oracle continues a basis of the
    admissible velocities."""
    mech, free_run = free(name)
    rng, crossed = np.random.default_rng(5), 0
    places = np.searchsorted(free_run.t, free_run.type_2_at)
    for _ in range(60):
        i = max(0, int(rng.choice(places)) - int(rng.choice([0, 1, 5, 20])))
        q, v = free_run.q[i], free_run.v[i] * rng.choice([0.0, 1.0, -1.0])
        size, integrator = 10.0 ** rng.uniform(-1, 1), RECORD
        controller = random_controller(mech, q, size, rng)
        if told := rng.random() < 0.5:
            integrator = hc.Integrator()
        plant = hc.Plant(limits=hc.Limits(effort=size)) if rng.random() < 0.5 else None
        output, ended = np.linspace(0.0, 0.03, 301), ""
        try:
            run = hc.simulate(
                mech, controller, q, v, 0.03, plant=plant, output=output, integrator=integrator
            )
        except hc.HoloctlError as error:
            run, ended = error.run, str(error)  # a run that has begun has one
        told = told and "under its controller" in ended
        states = run.q[:-1] if told else run.q
        recorded = len(run.type_2_at) - told
        changes = changes_by_bases(mech, states)
        assert changes <= recorded, (name, i, ended, run.type_2_at)
        assert ended or changes == recorded or np.abs(run.v).max() > 50.0
        crossed += recorded + told
    assert crossed > 10


def random_controller(mech, q, size, rng):
    """A regulator near q, by holoctl or by gains at random, or a sine."""
    home, rest = mech.motor_positions(q) + 0.05 * rng.normal(size=mech.nu), np.zeros(mech.nu)
    kind = rng.integers(3)
    if kind == 0:
        kp = 10.0 ** rng.uniform(1, 4)
        return hc.ComputedTorque(mech, kp, 2.0 * kp**0.5).track(lambda t: (home, rest, rest))
    if kind == 1:
        push, rate = size * rng.normal(size=mech.nu), rng.uniform(5.0, 300.0)
        return lambda t, q, v: push * np.sin(rate * t + 1.0)
    K = 3.0 * size * rng.normal(size=(mech.nu, mech.nu))
    return lambda t, q, v: np.clip(K @ (home - mech.motor_positions(q)), -size, size)


def changes_by_bases(mech, states):
    """Changes of the sign of det N' B, with N turned onto its predecessor."""
    count, before, side = 0, None, 0.0
    for q in states:
        G = kept_rows(mech, q) * mech.column_scale
        N = np.linalg.svd(G)[2][len(G) :].T
        if before is not None:
            U, _, W = np.linalg.svd(N.T @ before)
            N = N @ (U @ W)
        now = np.sign(np.linalg.det(N.T @ (mech.column_scale[:, None] * mech.B)))
        count += now * side < 0.0
        before, side = N, now or side
    return count


# ----------------------------------------------------------------------------- saturation


def test_saturated_motors_are_told_with_their_times():
    mech = five_bar()
    q, v = hc.assemble(mech)
    u = hc.inverse_dynamics(mech, q, v, [0.0, 0.0]).u

    def controller(t, q, v):
        return [u[0] + (3.0 if 0.0095 < t < 0.0145 else 0.0), u[1]]

    limits = hc.Limits(effort=2.0)
    run = hc.simulate(mech, controller, q, v, 0.02, plant=hc.Plant(limits=limits))
    assert run.saturated == pytest.approx(np.array([[0.0, 0.01, 0.015]]))
    assert "1 motor saturated" in repr(run)
    assert "25% of the time" in getattr(run, "_repr_html_")()  # noqa: B009
    assert not len(hc.simulate(mech, controller, q, v, 0.02).saturated)
    home, limits = mech.motor_positions(q) + np.array([0.2, 0.0]), hc.Limits(effort=0.6)
    hold = hc.ComputedTorque(mech, 400.0, 40.0, limits=limits)
    run = hc.simulate(mech, hold.track(lambda t: (home, np.zeros(2), np.zeros(2))), q, v, 0.02)
    assert run.saturated[0, 1] == 0.0
    there = np.abs(run.u[:-1]).max(axis=1) > 0.6 * (1.0 - 1e-9)
    assert there.any()
    told = [(run.saturated[:, 1] <= t) & (t < run.saturated[:, 2]) for t in run.t[:-1]]
    assert np.array(told).any(axis=1).tolist() == there.tolist()


# ----------------------------------------------------------------------------- reports


@pytest.mark.parametrize("law", ["motors", "tip"])
def test_reports_tell_the_singular_value_and_the_side(law):
    mech, run = free("shipped five_bar")
    if law == "motors":
        tracking = hc.ComputedTorque(mech, 4.0, 4.0).track(lambda t: ([2.0, 1.0], [0, 0], [0, 0]))
    else:
        tip = hc.FrameTask("tip_right", "x z")
        tracking = hc.TaskSpaceControl(mech, tip, 4.0, 4.0).track(lambda t: [0.0, 0.5])
    assert np.isnan(tracking.last.smallest_singular_value)
    assert tracking.last.side == 0
    i = int(np.searchsorted(run.t, run.type_2_at[0]))
    buffer = np.empty(4)  # the caller's, overwritten after the tick
    for k, side in ((0, 1), (i - 40, 1), (i + 40, -1), (i - 40, 1)):
        tracking = tracking.repartitioned(run.q[k], run.v[k])
        buffer[:] = run.q[k]
        tracking(0.0, buffer, np.zeros(4))
        buffer[:] = np.nan
        last = tracking.last
        assert last.side == side
        assert last.smallest_singular_value == pytest.approx(run.smallest_singular_value[k])
    tracking.reset()
    assert np.isnan(tracking.last.smallest_singular_value)
