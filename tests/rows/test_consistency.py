"""One rule for all paths: which states get a torque, and which do not."""

from __future__ import annotations

import dataclasses
import pickle
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from exported import Exported
from inside import general_path
from support import EPS, closed_states, few, mechanism, relative, shared_partition, stretched
from zoo import ZOO

import holoctl as hc
from holoctl.base.tolerances import CLOSURE_LIMIT, TOLERANCES, VELOCITY_LIMIT
from holoctl.rows.constraint_residuals import constraint_residuals
from holoctl.rows.state_limits import MOST_CONDITION, allowed_acceleration
from holoctl.rows.tick.nonzero_rows import rows_that_open

COMPILED = ["five_bar_revolute", "bennett", "floating_leg", "weld_chain", "geared_slider"]
"""With redundant rows, passive motions, orientation rows, couplings."""


@cache
def paths(name):
    """Every path to a torque but the exported one, as functions of (q, v, target)."""
    mech, part = mechanism(name), shared_partition(name)
    prepared = hc.PreparedInverseDynamics(mech, part, inconsistent="project")
    options = {"partition": part, "inconsistent": "project", "flags": ["-O0"]}
    compiled = hc.compile(mech, ["inverse_dynamics"], **options)
    return {
        "general": lambda q, v, x: general_path(prepared, q, v, x, 0.0, None),
        "prepared": prepared.torque,
        "compiled": compiled.inverse_dynamics,
    }


@pytest.fixture(scope="module")
def c_of_five_bar(tmp_path_factory):
    return Exported(mechanism("five_bar_revolute"), tmp_path_factory.mktemp("five_bar"))


def answer(path, q, v, target):
    """The torque, or the error instead of it."""
    try:
        return path(q, v, target)
    except (hc.InconsistentError, hc.SingularityError) as error:
        return error


def noisy(name, size, count, seed=0):
    """Closed states with noise on positions and rates."""
    mech, rng = mechanism(name), np.random.default_rng(seed)
    states = []
    for q, v in closed_states(name)[:count]:
        off = size * rng.normal(size=(2, mech.nv)) * mech.column_scale
        states.append((pin.integrate(mech.model, q, off[0]), v + 10.0 * off[1]))
    return states


# ------------------------------------------------------------------------------- the limits


def elbow_off():
    q, v = closed_states("five_bar_revolute")[0]
    return q + np.array([0.0, 1.0, 0.0, 0.0]), v


def failed_rate():
    q, v = closed_states("five_bar_revolute")[0]
    return q, v + np.array([0.0, 300.0, 0.0, 0.0])


def far_out():
    q, v = closed_states("five_bar_revolute")[0]
    return np.where([True, False, False, False], 1e200, q), v


@pytest.mark.parametrize(
    ("state", "words", "status"),
    [(elbow_off, "open by", "OPEN"), (failed_rate, "rates break", "SLIDING"),
     (far_out, "open by", "OPEN")],
)  # fmt: skip
def test_no_path_drives_an_open_or_sliding_state(state, words, status, c_of_five_bar):
    q, v = state()
    mech, part = mechanism("five_bar_revolute"), shared_partition("five_bar_revolute")
    for name, path in paths("five_bar_revolute").items():
        with pytest.raises(hc.InconsistentError, match=words) as caught:
            path(q, v, np.ones(2))
        assert caught.value.residual > 0.0, name
    for compensation in ("full", "gravity"):
        ctl = hc.ComputedTorque(mech, 400.0, 40.0, compensation=compensation, partition=part)
        out = np.full(2, 7.0)
        with pytest.raises(hc.InconsistentError, match=words):
            ctl.torque(q, v, np.zeros(2), np.zeros(2), np.zeros(2), out=out)
        assert (out == 7.0).all()
    c_of_five_bar.reset()
    found, u = c_of_five_bar.call("inverse_dynamics", q, v, np.ones(2))
    assert (found, *u) == (status, 0.0, 0.0)


def test_limits_may_be_switched_off_and_are_kept():
    mech, part = mechanism("five_bar_revolute"), shared_partition("five_bar_revolute")
    off = {"closure_limit": None, "velocity_limit": None}
    q, v = elbow_off()
    prepared = hc.PreparedInverseDynamics(mech, part, **off)
    compiled = hc.compile(mech, ["inverse_dynamics"], partition=part, flags=["-O0"], **off)
    expected = hc.inverse_dynamics(mech, q, v, [1.0, 2.0], partition=part).u
    for path in (prepared.torque, compiled.inverse_dynamics):
        assert relative(path(q, v, [1.0, 2.0]), expected) < 1e-12
    assert compiled.fallbacks == 0
    again = pickle.loads(pickle.dumps(prepared))
    assert again.closure_limit is None
    assert again.velocity_limit is None
    assert pickle.loads(pickle.dumps(compiled)).limits == compiled.limits
    ctl = hc.ComputedTorque(mech, 1.0, 1.0, partition=part, closure_limit=0.2, velocity_limit=0.3)
    again = pickle.loads(pickle.dumps(ctl))
    assert (again.closure_limit, again.velocity_limit) == (0.2, 0.3)
    limits = hc.compile(ctl, ["torque"], flags=["-O0"]).limits
    assert (limits.closure, limits.velocity) == (0.2, 0.3)


@pytest.mark.parametrize("name", ["closure_limit", "velocity_limit"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "1", True])
def test_limits_that_are_none_are_refused(name, value):
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    for make in (
        lambda **x: hc.PreparedInverseDynamics(mech, part, **x),
        lambda **x: hc.ComputedTorque(mech, 1.0, 1.0, partition=part, **x),
        lambda **x: hc.compile(mech, ["inverse_dynamics"], partition=part, **x),
    ):
        with pytest.raises(hc.InputError, match=name):
            make(**{name: value})


def test_a_controller_brings_its_own_limits(tmp_path):
    ctl = hc.ComputedTorque(mechanism("five_bar"), 1.0, 1.0, partition=shared_partition("five_bar"))
    off = dataclasses.replace(ctl, closure_limit=None, velocity_limit=None)
    given = [{"closure_limit": 0.5}, {"velocity_limit": None}, {"closure_limit": CLOSURE_LIMIT},
             {"closure_limit": CLOSURE_LIMIT, "velocity_limit": VELOCITY_LIMIT}]  # fmt: skip
    for controller in (ctl, off):
        for limits in given:  # the usual ones too: who gives them wants them
            with pytest.raises(hc.InputError, match="brings its own closure_limit"):
                hc.compile(controller, ["torque"], **limits)
            with pytest.raises(hc.InputError, match="brings its own closure_limit"):
                hc.export_c(controller, tmp_path, **limits)
    compiled = hc.compile(off, ["torque"], flags=["-O0"])
    assert compiled.closure_limit is None
    assert compiled.velocity_limit is None
    compiled = hc.compile(off.mech, ["inverse_dynamics"], flags=["-O0"], velocity_limit=None)
    assert (compiled.closure_limit, compiled.velocity_limit) == (CLOSURE_LIMIT, None)


@pytest.mark.parametrize("name", few(COMPILED, ["bennett", "floating_leg"]))
def test_all_paths_draw_the_line_where_the_certificate_measures(name):
    """Noise on both sides of the limits: the same answer or the same refusal."""
    mech, rng, seen = mechanism(name), np.random.default_rng(1), set()
    states = [s for size in (1e-4, 2e-3, 6e-3, 2e-2) for s in noisy(name, size, 25)]
    for q, v in states:
        T, target = hc.terms(mech, q, v), rng.normal(size=mech.nu)
        closure, velocity = constraint_residuals(T)
        refused = closure > CLOSURE_LIMIT or velocity > VELOCITY_LIMIT
        found = {path: answer(f, q, v, target) for path, f in paths(name).items()}
        errors = {path: x for path, x in found.items() if isinstance(x, Exception)}
        assert len(errors) in (0, 3), (name, q, v, found)
        assert bool(errors) >= refused
        if not errors:
            assert relative(found["prepared"], found["general"]) < 1e-9
            assert relative(found["compiled"], found["general"]) < 1e-9
        seen.add((bool(errors), refused))
    assert {(True, True), (False, False)} <= seen
    # what is refused beside the limits is near a singular state, or its redundant rows count
    assert (True, False) not in seen or name in ("bennett",)


def test_redundant_rows_count_too():
    """A weld of the plane: its kept rows closed, a redundant one open."""
    base = mechanism("five_bar_revolute")
    loop = base.constraints[0]
    name, place = loop.b
    lifted = pin.SE3(place.rotation, place.translation + np.array([0.0, 0.0, 0.05]))
    mech = dataclasses.replace(base, constraints=[dataclasses.replace(loop, b=(name, lifted))])
    part = shared_partition("five_bar_revolute")
    q, v = closed_states("five_bar_revolute")[0]
    T = hc.terms(mech, q, v)
    assert np.abs(T.error[part.rows]).max() < 1e-9
    assert constraint_residuals(T)[0] > CLOSURE_LIMIT
    with pytest.raises(hc.InconsistentError, match="open by"):
        hc.PreparedInverseDynamics(mech, part).torque(q, v, np.ones(2))


@pytest.mark.parametrize("name", few(ZOO))
def test_rows_that_never_open_are_the_ones_that_are_zero(name):
    mech, rng = mechanism(name), np.random.default_rng(11)
    opens, largest = rows_that_open(mech), np.zeros(mech.row_scale.size)
    for _ in range(20):
        q = pin.integrate(mech.model, pin.neutral(mech.model), 2.0 * rng.normal(size=mech.nv))
        try:
            T = hc.terms(mech, q, rng.normal(size=mech.nv))
        except hc.HoloctlError:
            continue  # a chart that is not defined there
        for x in (T.error, T.rate, T.drift, np.abs(T.jacobian).max(axis=1)):
            largest = np.maximum(largest, np.abs(x))
    assert (largest[~opens] < 1e-9).all()
    assert (largest[opens] > 1e-9).all()


@pytest.mark.parametrize(
    ("entry", "size", "words"), [("q", 1e7, "1e.07 m, more"), ("v", 1e5, "m/s")]
)
def test_a_base_so_far_or_fast_that_digits_are_lost_is_refused(entry, size, words):
    """The torque does not depend on either, but rounding about the origin of the world does."""
    mech = hc.load(hc.robot_file("leg"), free_flyer=True)
    q, v = hc.assemble(mech, v_guess=np.ones(mech.nv))
    part, target = hc.partition(mech, q), np.ones(mech.nu)
    prepared = hc.PreparedInverseDynamics(mech, part)
    expected = prepared.torque(q, v, target)
    for share, refused in ((1e-3, False), (1.0, True)):
        x, xdot = q.copy(), v.copy()
        (x if entry == "q" else xdot)[0] += share * size
        for path in (prepared.torque, lambda *s: hc.inverse_dynamics(mech, *s, partition=part).u):
            if refused:
                with pytest.raises(hc.InputError, match=words):
                    path(x, xdot, target)
            else:
                assert relative(path(x, xdot, target), expected) < 1e-8


def test_what_has_no_part_in_the_torque_must_be_finite_too():
    ctl = hc.ComputedTorque(mechanism("five_bar"), 1.0, 1.0, compensation="gravity",
                            partition=shared_partition("five_bar"))  # fmt: skip
    (q, v), zero = closed_states("five_bar")[0], np.zeros(2)
    for path in (ctl.torque, hc.compile(ctl, ["torque"], flags=["-O0"]).torque):
        with pytest.raises(hc.InputError, match="a_ref"):
            path(q, v, zero, zero, np.array([np.nan, 0.0]))


# ------------------------------------------------------------- what the certificate refuses


def check_against_certificate(name, states, seed=0, rounding=lambda q: 0.0):
    """No path gives a torque where the certificate refuses; how many states got one.

    `rounding` (q) is what the certificate's residual cannot be told from zero by.
    """
    mech, part, rng = mechanism(name), shared_partition(name), np.random.default_rng(seed)
    given = early = 0
    for q, v in states:
        target = 10.0 * rng.normal(size=mech.nu)
        try:
            certificate = hc.inverse_dynamics(
                mech, q, v, target, inconsistent="project", partition=part
            ).certificate
        except (hc.SingularityError, hc.InconsistentError):
            certificate = None
        for path, f in paths(name).items():
            u = answer(f, q, v, target)
            if isinstance(u, Exception):
                early += certificate is not None and certificate.condition < 0.9 * MOST_CONDITION
                continue
            given += 1
            assert certificate is not None, (path, q, v)
            c = certificate
            assert c.condition <= TOLERANCES["condition"], (path, q, v, c)
            assert c.closure <= CLOSURE_LIMIT, (path, q, v, c)
            # both of all rows, which off the manifold contradict each other a little
            allowed = allowed_acceleration(c.closure, c.velocity_residual)
            assert c.dynamics <= allowed + rounding(q), (path, q, v, c)
            assert c.acceleration <= 1.001 * allowed, (path, q, v, c)
    return given, early


def test_near_a_dead_point():
    """A five-bar with its rods in line to within s: huge torques, and last of all none."""
    mech, states, rng = mechanism("five_bar_revolute"), [], np.random.default_rng(3)
    part, worst, refused = shared_partition("five_bar_revolute"), 0.0, 0
    for s in np.logspace(-1, -12, 120):
        q, v = stretched(s), s * rng.normal(size=4)
        states += [(q, v), (q, 0.0 * v)]
        try:
            found = hc.inverse_dynamics(mech, q, v, np.ones(2), partition=part)
            worst = max(worst, found.certificate.condition)
        except hc.SingularityError:
            refused += 1
    assert worst > MOST_CONDITION
    assert refused
    given, early = check_against_certificate("five_bar_revolute", states)
    of = len(states) * len(paths("five_bar_revolute"))
    assert 0.5 * of < given < 0.9 * of
    assert early < 0.2 * of


def test_the_torque_of_a_state_that_was_given_by_accident():
    mech = hc.load(hc.robot_file("five_bar"))
    q = np.array([1.1592794808088933, -2.0183210293788476, 1.9823131173107735, 3.4418305856431557])
    v, target = np.array([-0.064, -0.189, -0.194, -0.172]), np.array([-9.08, 7.93])
    prepared = hc.PreparedInverseDynamics(mech)
    compiled = hc.compile(mech, ["inverse_dynamics"], flags=["-O0"])
    for path in (prepared.torque, compiled.inverse_dynamics):
        with pytest.raises(hc.SingularityError, match="condition"):
            path(q, v, target)


def test_links_folded_flat():
    """A parallelogram with a third bar folds flat: there its redundant rows count."""
    name = "third_bar"
    rng, states = np.random.default_rng(5), []
    q = np.array([6.283185291622706, -2.0359159313157945e-09, -3.6668235972139846e-08,
                  6.283185249399995])  # fmt: skip
    for path in paths(name).values():
        assert isinstance(answer(path, q, np.zeros(4), np.array([-772.45])), Exception)
    for s in np.logspace(-1, -9, 60):
        states.append((s * rng.normal(size=4), s * rng.normal(size=4)))
        states.append((s * rng.normal() * np.array([1.0, -1.0, 1.0, 1.0]), np.zeros(4)))
        states.append((s * rng.normal(size=4), np.zeros(4)))
    # The multipliers of redundant rows are solved from rows that are as small as the distance to
    # the fold is: rounding over that is what the residual of the whole tree is known to there.
    given, early = check_against_certificate(
        name, states, rounding=lambda q: EPS / np.abs(q).max() if np.abs(q).max() < 1e-7 else 0.0
    )
    assert given > 100
    assert early < 0.75 * len(states) * len(paths(name))  # most: redundant rows count there


@pytest.mark.parametrize("name", ["bennett", "bricard", "third_bar", "six_row_four_bar"])
def test_noise_does_not_take_the_torque_of_a_good_robot(name):
    """Redundant rows contradict the kept ones off the manifold: as far as that, they may."""
    mech, part, rng = mechanism(name), shared_partition(name), np.random.default_rng(2)
    prepared, refused = hc.PreparedInverseDynamics(mech, part, inconsistent="project"), 0
    states = noisy(name, 5e-4, 100)
    for q, v in states:
        refused += isinstance(answer(prepared.torque, q, v, rng.normal(size=mech.nu)), Exception)
    assert refused <= 0.05 * len(states)
