"""Simulation: energy, the manifold, sampling, and repeatability."""

from __future__ import annotations

import dataclasses
import inspect
import sys

import numpy as np
import pinocchio as pin
import pytest
from support import assert_rows_close, closed_states, few, mechanism, rows, together
from zoo import ZOO

import holoctl as hc
from holoctl.mechanism.open_tree import energy
from holoctl.simulation import motion


@pytest.mark.parametrize("name", few([n for n in ZOO if n != "timed_arm"]))
def test_energy_and_constraints_are_kept_without_efforts(name):
    mech = mechanism(name)
    q, v = closed_states(name, 20)[0]
    run = hc.simulate(mech, lambda t, q, v: np.zeros(mech.nu), q, v, 0.3, frequency=50.0)
    total = [sum(energy(mech, q, v)) for q, v in zip(run.q, run.v, strict=True)]
    kinetic = [energy(mech, q, v)[0] for q, v in zip(run.q, run.v, strict=True)]
    assert np.ptp(kinetic) > 1e-3
    assert np.ptp(total) < 1e-6 * np.ptp(kinetic)
    assert run.closure.max() < 1e-6
    for q, v in zip(run.q, run.v, strict=True):
        r = rows(mech, q, v)
        assert_rows_close(mech, mech.row_scale * r.error, 0.0, 1e-12, (q, v), what="error")
        assert_rows_close(mech, mech.row_scale * r.rate, 0.0, 1e-10, (q, v), what="rate")
        assert pin.isNormalized(mech.model, q, 1e-12)


def test_effort_is_held_between_ticks_and_sampled_at_them():
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    calls = []

    def controller(t, q, v):
        calls.append(t)
        return np.array([np.sin(t)])

    run = hc.simulate(mech, controller, q, v, 0.1, frequency=100.0)
    assert calls == pytest.approx(np.arange(11) / 100.0)
    assert run.u[:, 0] == pytest.approx(np.sin(run.t))
    assert run.t.shape == (11,)
    assert run.q.shape == (11, 3)
    continuous = hc.simulate(
        mech, controller, q, v, 0.1, frequency=100.0, integrator=hc.Integrator(hold=False)
    )
    assert np.abs(continuous.q[-1] - run.q[-1]).max() > 1e-8


def test_the_work_of_the_motors_is_the_energy_gained():
    mech = mechanism("five_bar")
    q, v = hc.assemble(mech)
    u = np.array([3.0, -2.0])
    run = hc.simulate(mech, lambda t, q, v: u, q, v, 0.2, frequency=200.0)
    work = u @ (mech.B.T @ pin.difference(mech.model, run.q[0], run.q[-1]))
    gained = sum(energy(mech, run.q[-1], run.v[-1])) - sum(energy(mech, run.q[0], run.v[0]))
    assert abs(work) > 1e-2
    assert gained == pytest.approx(work, rel=1e-7)


def test_a_call_has_few_parameters_and_a_plant_has_many_forms():
    assert len(inspect.signature(hc.simulate).parameters) <= 13
    mech = mechanism("four_bar")
    q, v = hc.assemble(mech)
    fast = hc.compile(mech, ["forward_dynamics"], flags=["-O0"])
    given = (None, mech, hc.Plant(), hc.Plant(mech), fast, hc.Plant(mech, fast))
    runs = [hc.simulate(mech, lambda t, q, v: [0.1], q, v, 0.05, plant=plant) for plant in given]
    for run in runs:
        assert np.abs(run.q - runs[0].q).max() < 1e-12
    pushed = hc.Plant(f_ext=lambda t, q, v: {"crank": [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]})
    other = hc.simulate(mech, lambda t, q, v: [0.1], q, v, 0.05, plant=pushed)
    assert np.abs(other.q - runs[0].q).max() > 1e-6


def test_runs_repeat_and_noise_depends_on_the_seed(tmp_path):
    mech = mechanism("four_bar")
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    q, v = hc.assemble(mech)
    hold = ctl.track(lambda t: ([1.2], [0.0], [0.0]))
    noisy = [hc.Sensors("all", noise=(1e-4, 1e-3), seed=seed) for seed in (1, 1, 2)]
    runs = [hc.simulate(mech, hold, q, v, 0.05, sensors=sensors) for sensors in noisy]
    assert (runs[0].u == runs[1].u).all()
    assert np.abs(runs[0].u - runs[2].u).max() > 1e-3
    path = runs[0].save(tmp_path / "deeper" / "run")
    again = hc.Run.read(path)
    assert (again.q == runs[0].q).all()
    assert again.seed == 1
    assert "pin==" in again.versions
    with pytest.raises(hc.InputError, match="not a saved run"):
        hc.Run.read(tmp_path / "none.npz")


def test_a_progress_bar_writes_to_stderr_only(capfd):
    pytest.importorskip("tqdm")
    mech = mechanism("four_bar")
    q, v = hc.assemble(mech)
    hc.simulate(mech, lambda t, q, v: [0.0], q, v, 0.01, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "simulating" in err


def wheel():
    """One continuous motor: a rotation, which is integrated in pieces of a tick."""
    m = pin.Model()
    j = m.addJoint(0, pin.JointModelRUBZ(), pin.SE3.Identity(), "motor")
    m.appendBodyToJoint(j, pin.Inertia(1.0, np.zeros(3), 0.01 * np.eye(3)), pin.SE3.Identity())
    return hc.Mechanism(m, [], ["motor"], name="wheel")


@pytest.mark.parametrize("speed", [1e3, 1e5, 1e30, 1e300])
@pytest.mark.parametrize("torque", [0.0, 1.0])
def test_evaluations_are_counted_for_all_pieces_of_a_tick(monkeypatch, speed, torque):
    monkeypatch.setattr(motion, "MOST_STEPS", 300)
    mech = wheel()
    hc.simulate(mech, lambda t, q, v: [torque], [1.0, 0.0], [10.0], 0.1, frequency=10.0)
    with pytest.raises(hc.InconsistentError, match="300 evaluations within one tick") as caught:
        hc.simulate(mech, lambda t, q, v: [torque], [1.0, 0.0], [speed], 0.1, frequency=10.0)
    # gains and loops are to blame only where a motor acts
    assert ("gains" in str(caught.value)) == (torque != 0.0)
    assert ("no motor acts on it" in str(caught.value)) == (torque == 0.0)


def test_an_unstable_loop_ends_within_a_tick(monkeypatch):
    monkeypatch.setattr(motion, "MOST_STEPS", 2000)
    with pytest.raises(hc.InconsistentError, match="gains"):
        hc.simulate(wheel(), lambda t, q, v: 1.0 * v, [1.0, 0.0], [1.0], 10.0, frequency=100.0)


@pytest.mark.parametrize(("duration", "rate"), [(1e9, 1e3), (1e308, 1e3), (1.0, 1e9)])
def test_more_ticks_than_fit_into_memory_are_refused(duration, rate):
    with pytest.raises(hc.InputError, match="ticks; a run has at most 1e"):
        hc.simulate(wheel(), lambda t, q, v: [0.0], [1.0, 0.0], [0.0], duration, frequency=rate)


def test_a_controller_in_the_place_of_its_function_is_told_how():
    mech = mechanism("four_bar")
    ctl = hc.ComputedTorque(mech, 1.0, 1.0)
    with pytest.raises(hc.InputError, match=r"got a ComputedTorque; ctl\.track\(reference\)"):
        hc.simulate(mech, ctl, mech.reference, np.zeros(3), 0.1)
    with pytest.raises(hc.InputError, match=r"or None; got a Mechanism$"):
        hc.simulate(mech, mech, mech.reference, np.zeros(3), 0.1)


@pytest.mark.parametrize("method", ["torque", "track"])
def test_a_method_of_a_controller_is_no_controller(method):
    mech = hc.load(hc.robot_file("five_bar"))
    ctl = hc.ComputedTorque(mech, 1.0, 1.0)
    q, v = hc.assemble(mech)
    with pytest.raises(hc.InputError, match=rf"got a ComputedTorque.{method}; ctl.track"):
        hc.simulate(mech, getattr(ctl, method), q, v, 0.01)


@pytest.mark.parametrize("given", ["no", 0, None])
def test_what_is_neither_true_nor_false_is_refused(given):
    mech = hc.load(hc.robot_file("five_bar"))
    q, v = hc.assemble(mech)
    for what in ("hold", "progress"):
        with pytest.raises(hc.InputError, match=f"{what} must be True or False"):
            hc.simulate(mech, lambda t, q, v: np.zeros(2), q, v, 0.01, **together(**{what: given}))
    with pytest.raises(hc.InputError, match="free_flyer must be True or False"):
        hc.load(hc.robot_file("leg"), free_flyer=given)


@pytest.mark.parametrize("installed", [True, False])
def test_simulation_with_a_progress_bar_or_without_tqdm(installed, monkeypatch, capsys):
    if installed:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    mech = mechanism("five_bar")
    q, v = closed_states("five_bar")[0]
    run = hc.simulate(mech, lambda t, q, v: np.zeros(2), q, v, duration=0.003, progress=True)
    assert len(run.t) == 4
    assert ("instants" in capsys.readouterr().err) == installed


def test_simulation_refuses_a_start_that_is_open():
    mech = mechanism("five_bar")
    q, v = closed_states("five_bar")[0]
    idle = lambda t, q, v: np.zeros(2)  # noqa: E731
    with pytest.raises(hc.InconsistentError, match="assemble"):
        hc.simulate(mech, idle, q + 0.1, v, duration=0.01)


@pytest.mark.parametrize("tolerance", [0.0, 1e-4])
def test_a_tolerance_lets_no_start_of_exact_geometry_slide(tolerance):
    mech = dataclasses.replace(hc.load(hc.robot_file("four_bar")), tolerance=tolerance)
    q, v = hc.assemble(mech)
    idle = lambda t, q, v: np.zeros(1)  # noqa: E731
    assert len(hc.simulate(mech, idle, q, v, duration=0.002).t) == 3
    with pytest.raises(hc.InconsistentError, match="the start is not on the constraints"):
        hc.simulate(mech, idle, q, np.add(v, [5e-5, 0.0, 0.0]), duration=0.002)


def free(t, q, v):
    return np.zeros(1)


@pytest.mark.parametrize("controller", [None, free], ids=["alone", "in ticks"])
def test_only_what_is_asked_for_is_recorded(controller):
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    run = hc.simulate(mech, controller, q, v, 0.03, output=[0.0, 0.0105])
    assert run.t.tolist() == [0.0, 0.0105]


@pytest.mark.parametrize("controller", [None, free], ids=["alone", "in ticks"])
def test_an_instant_that_is_the_end_but_for_rounding_is_the_end(controller):
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]
    instants = 0.01 * np.arange(4) * (1.0 + 1e-15)
    assert instants[-1] > 0.03
    run = hc.simulate(mech, controller, q, v, 0.03, output=instants)
    assert run.t[-1] == 0.03
    with pytest.raises(hc.InputError, match="within 0 and the duration"):
        hc.simulate(mech, controller, q, v, 0.03, output=[0.0, 0.0301])


def test_efforts_at_an_error_are_those_that_act_or_not_told():
    mech = mechanism("four_bar")
    q, v = closed_states("four_bar")[0]

    def fails_later(t, q, v):
        if t > 0.02:
            raise RuntimeError("out of torque")
        return np.ones(1)

    with pytest.raises(RuntimeError) as error:
        hc.simulate(mech, fails_later, q, v, 0.05, integrator=hc.Integrator(hold=False))
    u = error.value.run.u  # type: ignore[attr-defined]
    assert u.size
    assert np.all((u == 1.0) | np.isnan(u))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"no archive"])
def test_a_file_that_is_no_run_is_refused(content, tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(hc.InputError, match="is not a saved run"):
        hc.Run.read(path)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(hc.InputError, match="is not a saved run"):
        hc.Run.read(path)


def test_a_start_that_hardly_moves_is_at_rest():
    """The rates of singular values are differences over a step that is as long as v is small."""
    mech = mechanism("four_bar")
    q, v = hc.assemble(mech)
    tiny = np.array([0.0, 0.0, np.finfo(float).tiny])
    run = hc.simulate(mech, None, q, tiny, 0.01)
    np.testing.assert_allclose(run.q, hc.simulate(mech, None, q, v, 0.01).q, atol=1e-9)
