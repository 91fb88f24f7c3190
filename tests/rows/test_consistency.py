"""One rule for all paths: which states get a torque, and which do not."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from exported import Exported
from support import closed_states, difference, mechanism, relative, shared_partition, stretched
from zoo import ZOO

import holoctl as hc
from holoctl.base.checks import as_given
from holoctl.constraints import wrench
from holoctl.constraints.kinds import KINDS, Composed, Row, direction
from holoctl.dynamics.certificate import off_constraints
from holoctl.mechanism.mechanism import rows_that_open
from holoctl.rows.consistency import (
    CLOSURE_LIMIT,
    MOST_CONDITION,
    TOLERANCES,
    VELOCITY_LIMIT,
    allowed_acceleration,
)
from holoctl.rows.tick import fast_rows
from holoctl.tree.kinematics import live_motion

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
        "general": lambda q, v, x: prepared._by_the_general_path(q, v, x, 0.0, None),
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


@pytest.mark.parametrize("name", COMPILED)
def test_all_paths_draw_the_line_where_the_certificate_measures(name):
    """Noise on both sides of the limits: the same answer or the same refusal."""
    mech, rng, seen = mechanism(name), np.random.default_rng(1), set()
    states = [s for size in (1e-4, 2e-3, 6e-3, 2e-2) for s in noisy(name, size, 25)]
    for q, v in states:
        T, target = hc.terms(mech, q, v), rng.normal(size=mech.nu)
        closure, velocity = off_constraints(T)
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
    assert off_constraints(T)[0] > CLOSURE_LIMIT
    with pytest.raises(hc.InconsistentError, match="open by"):
        hc.PreparedInverseDynamics(mech, part).torque(q, v, np.ones(2))


@pytest.mark.parametrize("name", list(ZOO))
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


def check_against_certificate(name, states, seed=0):
    """No path gives a torque where the certificate refuses; how many states got one."""
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
            allowed = allowed_acceleration(c.closure, c.velocity)
            assert c.dynamics <= allowed, (path, q, v, c)
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
    given, early = check_against_certificate(name, states)
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


# ------------------------------------------------------------------- kinds nobody knows yet


def test_a_kind_that_nobody_knows_is_refused_by_name():
    """A row is data that every path reads in one place: what is not there binds to nothing."""

    class Wobbly:
        name = t_stab = None
        default_name = "wobbly"

        def bind(self, model, name, reference):
            loop = mechanism("five_bar").constraints[0].bind(model, name, reference)
            row = Row("wobble", "y", a=(0.0, 1.0, 0.0))
            return wrench.wrench_rows(model, loop.frames1[0], loop.frames2[0], [row], name)

    with pytest.raises(hc.InputError, match=r"'wobbly'.*kind of row 'y'.*'linear'.*'wobble'"):
        dataclasses.replace(mechanism("five_bar"), constraints=[Wobbly()])


BENT = Composed(
    (direction("c", (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)),),
    value=lambda x, size, atan2, floor: size * (x[0] + 0.5 * x[0] * x[0]),
    gradient=lambda x, size: (size * (1.0 + x[0]),),
    curvature=lambda x, xdot, size: size * xdot[0] * xdot[0],
    doubt=lambda x: x[0] * x[0],
    point=False,
)
"""A function of a cosine that vanishes with it: the same motion as that of the cosine."""


def test_a_kind_that_was_added_is_right_on_every_path(monkeypatch):
    """One entry of the table is all that a new kind takes."""
    monkeypatch.setitem(KINDS, "bent", BENT)
    found = []
    for row in (BENT.parts[0], Row("bent", "y", size=2.0)):

        class Own:
            name = t_stab = None
            default_name = "own"

            def bind(self, model, name, reference, row=row):
                arms = mechanism("screw_chain").constraints[0].bind(model, name, reference)
                return wrench.wrench_rows(model, arms.frames1[0], arms.frames2[0], [row], name)

        mech = dataclasses.replace(mechanism("screw_chain"), constraints=[Own()])
        q, v = hc.assemble(mech, v_guess=np.linspace(-1.0, 1.0, mech.nv))
        part, target = hc.partition(mech, q), np.ones(mech.nu)
        f = hc.compile(
            mech, ["inverse_dynamics", "terms"], partition=part, flags=["-O0"],
            closure_limit=None, velocity_limit=None,
        )  # fmt: skip
        assert hc.inverse_dynamics(mech, q, v, target, partition=part).certificate.ok
        prepared = hc.PreparedInverseDynamics(mech, part, closure_limit=None, velocity_limit=None)
        assert not prepared.general
        off = q + 0.1 * np.linspace(-1.0, 1.0, mech.nv)
        for x in (q, off):
            u = hc.inverse_dynamics(mech, x, v, target, partition=part).u
            for path in (prepared.torque, f.inverse_dynamics):
                assert relative(path(x, v, target), u) < 1e-10
        assert f.fallbacks == 0
        T = hc.terms(mech, off, v)
        assert relative(f.terms(off, v).drift, T.drift) < 1e-12
        drift = difference(lambda s: hc.terms(mech, off + s * v, v).rate, 1e-3)  # noqa: B023
        rate = difference(lambda s: hc.terms(mech, off + s * v, v).error, 1e-3)  # noqa: B023
        assert np.abs(drift - T.drift).max() < 1e-8 * (1.0 + np.abs(T.drift).max())
        assert np.abs(rate - T.rate).max() < 1e-9
        found.append((q, hc.inverse_dynamics(mech, q, v, target, partition=part).u))
    for one, other in zip(*found, strict=True):
        assert relative(one, other) < 1e-9


def test_rows_of_a_subclass_are_asked():
    """Rows that another class evaluates are not merged with those of the library."""

    class Bound(wrench.WrenchRows):
        def rows(self, kin):
            r = super().rows(kin)
            return dataclasses.replace(r, drift=r.drift + 3.0)

    class Shifted:
        name = t_stab = None
        default_name = "shifted"

        def bind(self, model, name, reference):
            loop = mechanism("five_bar").constraints[0].bind(model, name, reference)
            return Bound(**{f.name: getattr(loop, f.name) for f in dataclasses.fields(loop)})

    plain = mechanism("five_bar")
    mech = dataclasses.replace(plain, constraints=[Shifted()])
    q, v = closed_states("five_bar")[0]
    difference = hc.terms(mech, q, v).drift - hc.terms(plain, q, v).drift
    np.testing.assert_allclose(difference, 3.0)
    part = hc.partition(mech, q)
    u = hc.inverse_dynamics(mech, q, v, np.ones(2), partition=part).u
    assert relative(hc.PreparedInverseDynamics(mech, part).torque(q, v, np.ones(2)), u) < 1e-10
    with pytest.raises(hc.InputError, match=r"'shifted'.*rows of a Bound have no expressions"):
        hc.compile(mech, ["inverse_dynamics"])


# ------------------------------------------------------------------------------- the screw


def nut(pitch):
    """A nut that turns and slides, tied to a spindle along z by a screw."""
    link = hc.Linkage("nut")
    link.add_body("slider", 1.0, inertia=np.diag([0.01] * 3))
    link.add_body("nut", 2.0, (0.1, 0.0, 0.0), np.diag([0.02] * 3))
    link.add_joint("slide", "prismatic", "universe", "slider")
    link.add_joint("turn", "revolute", "slider", "nut")
    link.add_joint("thread", "screw", "universe", "nut", pitch=pitch)
    return link


@pytest.mark.parametrize("pitch", [0.02, -0.3])
def test_a_screw_counts_any_number_of_turns(pitch):
    mech = nut(pitch).mechanism(cut=["thread"], actuated=["turn"])
    for turns in (0.0, 0.4, 3.7, -25.2, 1000.3):
        q = np.zeros(2)
        q[mech.coordinate_names.index("turn")] = 2.0 * np.pi * turns
        q[mech.coordinate_names.index("slide")] = pitch * 2.0 * np.pi * turns
        T = hc.terms(mech, q, np.ones(2))
        assert np.abs(T.error).max() < 1e-10
        assert hc.partition(mech, q).rank == 1
        v = np.zeros(2)
        v[mech.coordinate_names.index("turn")] = 1.0
        v[mech.coordinate_names.index("slide")] = pitch
        assert np.abs(T.jacobian @ v).max() < 1e-12
        angle = hc.joint_motion(mech, "thread", q, v)
        assert np.cos(angle.value[0] - 2.0 * np.pi * turns) == pytest.approx(1.0)
        np.testing.assert_allclose(angle.rate, 1.0)


def test_a_screw_of_the_tree_is_the_screw_that_closes():
    """The same torque at the nut, cut or not, and upside down."""
    pitch, q_nut, target = 0.05, 0.7, 3.0
    closed = nut(pitch).mechanism(cut=["thread"], actuated=["turn"])
    q, v = hc.assemble(closed, np.array([pitch * q_nut, q_nut]), [2.0 * pitch, 2.0])
    expected = hc.inverse_dynamics(closed, q, v, [target]).raise_if_bad().u
    for upside in (False, True):
        link = hc.Linkage("tree")
        link.add_body("nut", 2.0, (0.1, 0.0, 0.0), np.diag([0.02] * 3))
        link.add_body("slider", 1.0, inertia=np.diag([0.01] * 3))
        ends = ("nut", "universe") if upside else ("universe", "nut")
        link.add_joint("thread", "screw", *ends, pitch=pitch)
        link.add_joint("turn", "revolute", "slider", "nut")
        link.add_joint("slide", "prismatic", "universe", "slider")
        mech = link.mechanism(cut=["slide"], actuated=["thread"])
        sign = -1.0 if upside else 1.0
        where = dict(zip(mech.coordinate_names, range(2), strict=True))
        q, v = np.zeros(2), np.zeros(2)
        q[where["thread"]], v[where["thread"]] = sign * q_nut, sign * 2.0
        q[where["turn"]], v[where["turn"]] = q_nut, 2.0
        u = hc.inverse_dynamics(mech, q, v, [sign * target]).raise_if_bad().u
        np.testing.assert_allclose(u, sign * expected, rtol=1e-9)


def test_screws_in_any_order_stay_apart():
    """Rows of a tick come in an order of their own: kept ones first, or along a band."""
    base = mechanism("screw_chain")
    loop = base.constraints[0]
    other = dataclasses.replace(loop, a=("j1", pin.SE3.Identity()), pitch=0.8, name="other")
    mech = base.with_constraints(other)
    m, data = mech.row_scale.size, mech.model.createData()
    order, wanted = np.arange(m)[::-1].copy(), np.arange(m * mech.nv)
    fast = fast_rows(mech, live_motion(mech.model, data), order, wanted)
    q, v = base.reference, np.linspace(-1.0, 1.0, mech.nv)
    assert fast.evaluate(q, v, 0.0)
    T = hc.terms(mech, q, v)
    G, right = mech.row_scale[:, None] * T.jacobian, -mech.row_scale * T.drift
    assert relative(fast.entries.reshape(m, -1), G[order]) < 1e-13
    assert relative(fast.right, right[order]) < 1e-13
    screws = [i for i, kind in enumerate(mech._blocks[0][0].kinds) if kind == "screw"]
    assert len(screws) == 2
    assert abs(right[screws[0]] - right[screws[1]]) > 1e-3


@pytest.mark.parametrize("pitch", [0.0, np.nan, np.inf, "1", None])
def test_a_screw_needs_a_pitch(pitch):
    link = nut(0.1)
    with pytest.raises(hc.InputError, match="pitch"):
        link.add_joint("other", "screw", "universe", "nut", pitch=pitch)
    with pytest.raises(hc.InputError, match="pitch"):
        hc.Closure("a", "b", joint="screw", pitch=pitch)
    with pytest.raises(hc.InputError, match="no other joint, has a pitch"):
        hc.Closure("a", "b", joint="revolute", pitch=0.1)


# ------------------------------------------------------------------------ the model as it is


def test_a_mechanism_that_somebody_changes_says_so():
    part, (q, v) = shared_partition("five_bar"), closed_states("five_bar")[0]
    for change in (
        lambda m: setattr(m.inertias[2], "mass", 50.0),
        lambda m: setattr(m.jointPlacements[1], "translation", np.ones(3)),
        lambda m: setattr(m.gravity, "linear", np.zeros(3)),
        lambda m: setattr(m.frames[3], "placement", pin.SE3.Random()),
        lambda m: m.frames.__setitem__(3, pin.Frame()),
        lambda m: m.parents.__setitem__(2, 0),
        lambda m: m.idx_vs.__setitem__(2, 0),
        lambda m: m.names.__setitem__(1, "other"),
        lambda m: m.joints.__setitem__(2, pin.JointModelPX()),
        lambda m: m.joints[2].setIndexes(2, 0, 0),
        lambda m: m.children[1].__setitem__(0, 4),
        lambda m: m.sparsity_pattern_vector[1].__setitem__(0, False),
        lambda m: m.referenceConfigurations.__setitem__("new", np.zeros(4)),
    ):
        mech = dataclasses.replace(mechanism("five_bar"))
        before = hc.inverse_dynamics(mech, q, v, np.ones(2), partition=part).u
        prepared = hc.PreparedInverseDynamics(mech, part)
        prepared.torque(q, v, np.ones(2))
        change(mech.model)
        assert relative(prepared.torque(q, v, np.ones(2)), before) < 1e-12  # what it was made for
        for call in (
            lambda mech=mech: hc.inverse_dynamics(mech, q, v, np.ones(2)),
            lambda mech=mech: hc.assemble(mech),
            lambda mech=mech: hc.compile(mech, ["inverse_dynamics"]),
            lambda mech=mech: hc.PreparedInverseDynamics(mech),
            lambda mech=mech: dataclasses.replace(mech),
        ):
            with pytest.raises(
                hc.InputError, match=r"of its model (was changed|were added).*with_model"
            ):
                call()


def test_what_pinocchio_itself_writes_into_a_model_is_noticed(tmp_path):
    """In C++ nothing is read-only."""
    mech = dataclasses.replace(mechanism("five_bar"))
    motor = mech.actuated[0]
    (tmp_path / "x.srdf").write_text(
        f'<robot name="x"><rotor_params><joint name="{motor}" mass="0.1" gear_ratio="10"/>'
        "</rotor_params></robot>"
    )
    q, v = closed_states("five_bar")[0]
    hc.inverse_dynamics(mech, q, v, np.ones(2))
    pin.loadRotorParameters(mech.model, str(tmp_path / "x.srdf"), False)
    assert np.abs(mech.model.armature).max() > 1.0
    for call in (lambda: hc.inverse_dynamics(mech, q, v, np.ones(2)),
                 lambda: hc.PreparedInverseDynamics(mech)):  # fmt: skip
        with pytest.raises(hc.InputError, match="written over"):
            call()


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m, "gravity", pin.Motion.Zero()),
        lambda m: setattr(m, "armature", np.ones(m.nv)),
        lambda m: m.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "more"),
        lambda m: m.appendBodyToJoint(1, pin.Inertia.FromSphere(1.0, 0.1), pin.SE3.Identity()),
    ],
)
def test_the_model_of_a_mechanism_cannot_be_changed(change):
    with pytest.raises(hc.InputError, match=r"does not change.*with_model"):
        change(mechanism("five_bar").model)


def test_a_model_that_has_grown_says_so():
    """Functions of the class reach the model itself; its size tells."""
    more, frame = pin.SE3.Identity(), pin.Frame("more", 1, pin.SE3.Identity(), pin.OP_FRAME)
    for change in (
        lambda m: pin.Model.addJoint(m, 0, pin.JointModelRZ(), more, "more"),
        lambda m: pin.Model.addFrame(m, frame),
    ):
        mech = dataclasses.replace(mechanism("five_bar"))
        change(mech.model)
        with pytest.raises(hc.InputError, match=r"of its model were added.*with_model"):
            hc.assemble(mech)


def test_to_look_at_a_model_changes_nothing():
    """Every property may be read; what is read is what the model is, and no complaint follows."""
    mech = dataclasses.replace(mechanism("five_bar"))
    own = mech.model.copy()
    for name, attribute in vars(pin.Model).items():
        if isinstance(attribute, property):
            getattr(mech.model, name)
    assert mech.model.names.tolist() == own.names.tolist()
    assert mech.model.frames.tolist() == own.frames.tolist()
    assert mech.model.joints.tolist() == own.joints.tolist()
    assert mech.model.names is mech.model.names
    hc.assemble(mech)
    again = hc.assemble(dataclasses.replace(mech))[0]
    np.testing.assert_array_equal(again, hc.assemble(mech)[0])


def test_the_library_looks_at_no_copies():
    """What nobody has looked at need not be compared at every door."""
    mech = hc.load(hc.robot_file("stewart"))
    q, v = hc.assemble(mech)
    hc.inverse_dynamics(mech, q, v, np.zeros(mech.nu))
    assert set(mech.model._shown) <= {"gravity"}


def test_arrays_of_the_model_are_read_only_and_a_copy_is_not():
    mech = mechanism("five_bar")
    with pytest.raises(ValueError, match="read-only"):
        mech.model.armature[0] = 1.0
    model = mech.model.copy()
    model.armature[0], model.inertias[1].mass = 1.0, 50.0
    heavy = mech.with_model(model)
    q, v = closed_states("five_bar")[0]
    u, more = (hc.inverse_dynamics(m, q, v, np.ones(2)).u for m in (mech, heavy))
    assert relative(u, more) > 0.1
    again = pickle.loads(pickle.dumps(mech.model))
    assert (again.armature == mech.model.armature).all()


# ------------------------------------------------------------------- what laws are laid out from


def test_what_laws_are_laid_out_from_cannot_be_written_to():
    """No array of a public field, for each is read once and would be another robot's later."""
    mech, part = mechanism("five_bar"), shared_partition("five_bar")
    weights = np.array([1.0, 2.0])
    laws = [
        hc.PreparedInverseDynamics(mech, part, weights),
        hc.PreparedForwardDynamics(mech, part),
        hc.ComputedTorque(mech, 1.0, 2.0, partition=part, weights=weights),
        hc.compile(mech, ["inverse_dynamics"], partition=part, weights=weights, flags=["-O0"]),
    ]
    values = [mech, part, *laws]
    arrays = 0
    for value in [*values, *(pickle.loads(pickle.dumps(x)) for x in [mech, part, *laws])]:
        for name in vars(value):
            entry = getattr(value, name)
            if isinstance(entry, np.ndarray) and not name.startswith("_"):
                assert not entry.flags.writeable, (type(value).__name__, name)
                arrays += 1
    assert arrays > 20
    weights[0] = 7.0  # the caller's own stays the caller's
    assert laws[0].weights[0] == 1.0
    own = np.array([0, 1])
    again = dataclasses.replace(part, rows=own)
    own[0] = 5
    assert again.rows[0] == 0


def test_arrays_that_went_through_a_pickle_are_those_of_before():
    """Their dtype is an equal one, but not the same object."""
    mech, (q, v) = mechanism("five_bar"), closed_states("five_bar")[0]
    prepared = hc.PreparedInverseDynamics(mech, shared_partition("five_bar"))
    q, v, target, out = pickle.loads(pickle.dumps((q, v, np.ones(2), np.zeros(2))))
    assert out.dtype is not np.zeros(2).dtype
    assert prepared.torque(q, v, target, out=out) is out
    assert (out == prepared.torque(q, v, target)).all()
    assert as_given("q", q, mech.nq) is q
    with pytest.raises(hc.InputError, match="out must be an array of 2 floats"):
        prepared.torque(q, v, target, out=np.zeros(2, dtype=">f8"))


def test_descriptions_do_not_change_behind_a_mechanism():
    """Else a variant or a pickle of the mechanism would be another robot, without a word."""
    place = pin.SE3(np.eye(3), np.array([0.1, 0.2, 0.3]))
    described = [
        hc.Closure(("a", place), ("b", place), joint="spherical"),
        hc.Rod(("a", place), "b", 1.0),
        hc.Contact(("a", place)),
    ]
    place.translation = np.zeros(3)  # the caller's own
    for c in described:
        frame = c.point if isinstance(c, hc.Contact) else c.a
        for change in (
            lambda X: setattr(X, "translation", np.zeros(3)),
            lambda X: setattr(X, "rotation", np.eye(3)),
            lambda X: X.translation.__setitem__(0, 7.0),
            lambda X: X.rotation.__setitem__(0, 7.0),
            lambda X: X.setIdentity(),
            lambda X: X.setRandom(),
        ):
            for X in (frame[1], pickle.loads(pickle.dumps(frame[1])), copy.deepcopy(frame[1])):
                with pytest.raises((hc.InputError, ValueError), match=r"does not change|read-only"):
                    change(X)
        for again in (pickle.loads(pickle.dumps(c)), copy.copy(c), copy.deepcopy(c)):
            other = again.point if isinstance(c, hc.Contact) else again.a
            assert other == frame
            assert other[1].translation.tolist() == [0.1, 0.2, 0.3]
        assert dataclasses.replace(c, name="new").name == "new"
    given = {"a": 1.0, "b": -2.0}
    gear = hc.Coupling(given, offset=0.1, t_stab=1.0)
    given["a"] = 7.0
    with pytest.raises(TypeError):
        gear.coefficients["a"] = 7.0
    for again in (gear, pickle.loads(pickle.dumps(gear)), copy.deepcopy(gear), copy.copy(gear),
                  dataclasses.replace(gear, name=None)):  # fmt: skip
        assert again.coefficients == {"a": 1.0, "b": -2.0}
        assert (again.offset, again.name, again.t_stab) == (0.1, None, 1.0)
        with pytest.raises(TypeError):
            again.coefficients["a"] = 7.0
    own = hc.Custom(lambda q: q[:2], rows=2, scale=[1.0, 2.0])
    assert own.scale == (1.0, 2.0)
