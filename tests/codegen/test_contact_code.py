"""Controllers on contacts in C, beside those in Python."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from contact_code import STATUSES, OnContacts
from exported import build_and_test, compilers
from standing import NAMES, Standing, biped, sole, standing
from zoo import at

import holoctl as hc
from holoctl.codegen.laws.task_rows import reference_value

SMALL = ("edge", "raise"), ("leg", "nearest")

CASES = [
    pytest.param(name, policy, marks=[] if (name, policy) in SMALL else pytest.mark.slow)
    for name in NAMES for policy in ("raise", "nearest")
]  # fmt: skip
SIZES = (0.1, 1.0, 5.0, 30.0)
SAME = 1e-8
"""Efforts of C and of Python, over the largest one; see test_contact_law_in_c.py."""


def controller(case, policy="raise", effort=1.0, **options):
    limits = hc.Limits(effort=effort * case.effort)
    return hc.ComputedTorque(
        case.mech, 100.0, 20.0, limits=limits, contacts=case.contacts, partition=case.part,
        policy=policy, **options,
    )  # fmt: skip


def tasks_on(case, tasks, weights, **options):
    return hc.TaskSpaceControl(
        case.mech, tasks, 100.0, 20.0, task_weights=weights, contacts=case.contacts,
        limits=hc.Limits(effort=case.effort), partition=case.part, **options,
    )  # fmt: skip


def in_python(call):
    """Status and u of a call of a controller."""
    try:
        return "GIVEN", call()
    except hc.LimitError:
        return "EXCLUDED", None
    except hc.InconsistentError:
        return "CONTACTS", None


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Controllers and their C, each made once."""
    known = {}

    def get(name, policy, effort=1.0):
        if (name, policy, effort) not in known:
            ctl = controller(standing(name), policy, effort)
            made = OnContacts(ctl, tmp_path_factory.mktemp("contacts"))
            known[name, policy, effort] = ctl, made
        ctl, code = known[name, policy, effort]
        code.act(2 ** len(ctl.contacts) - 1)
        return standing(name), ctl, code

    return get


def compare(case, ctl, code, states, seed=1, active=None, speed=0.2):
    """The statuses that were seen, and the largest difference."""
    rng, seen, off, mech = np.random.default_rng(seed), set(), 0.0, ctl.mech
    for i in range(states):
        q, v = case.state(rng, speed)
        home = mech.motor_positions(q) + 0.01 * rng.normal(size=mech.nu)
        rates, target = 0.1 * rng.normal(size=mech.nu), SIZES[i % 4] * rng.normal(size=mech.nu)
        expected, u = in_python(lambda x=(q, v, home, rates, target): ctl.torque(*x, active=active))
        status, found = code.call("torque", q, v, home, rates, target, warm=i % 2)
        seen.add(status)
        if u is None:
            assert status == expected
            continue
        assert status in ("OK", "LIMITED"), (i, status, expected)
        off = max(off, abs(found - u).max() / abs(u).max())
    assert off < SAME
    return seen


@pytest.mark.parametrize("states", [16, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "policy"), CASES)
def test_efforts_are_those_of_python(built, name, policy, states):
    case, ctl, code = built(name, policy)
    assert {"OK", "LIMITED"} <= compare(case, ctl, code, states)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["raise", "nearest"])
@pytest.mark.parametrize("name", NAMES)
def test_weak_motors_have_the_same_verdicts(built, name, policy):
    case, ctl, code = built(name, policy, 0.12)
    seen = compare(case, ctl, code, 120, seed=2, speed=6.0)
    assert seen >= ({"EXCLUDED", "LIMITED"} if policy == "raise" else {"LIMITED"})
    assert policy == "raise" or "EXCLUDED" not in seen


@pytest.mark.slow
def test_contacts_act_by_bits(built):
    case, ctl, code = built("biped", "nearest")
    for bits, active in (1, ["left"]), (2, ["right"]), (0, []), (3, None):
        code.act(bits)
        assert compare(case, ctl, code, 40, seed=3 + bits, active=active)
        if bits == 1:
            assert np.array_equal(code.forces[6:], np.zeros(6))
            assert code.forces[2] >= 0.0


def test_in_flight_and_on_the_ground(built):
    (case, ctl, code), rng = built("leg", "nearest"), np.random.default_rng(4)
    q, v = case.state(rng)
    target = rng.normal(size=4)
    code.act(0)
    status, u = code.call("inverse", q, v, target)
    free = hc.inverse_dynamics(case.mech, q, v, target, partition=case.part)
    assert status == "OK"
    assert abs(u - free.u).max() < 1e-10
    code.act(1)
    home = case.mech.motor_positions(q)
    expected = case.solved(q, v, target, ctl.limits)
    status, u = code.call("torque", q, v, home, case.mech.B.T @ v, target)
    assert abs(u - expected.u).max() < SAME * abs(u).max()
    total = expected.forces["foot"].sum(axis=0)
    assert code.forces[2] == pytest.approx(total @ case.contacts[0].normal, rel=1e-7)
    assert code.slip == 0.0


@pytest.mark.parametrize("name", ["leg", pytest.param("biped", marks=pytest.mark.slow)])
def test_a_warm_start_takes_fewer_steps_to_the_same_efforts(built, name):
    case, _, code = built(name, "nearest")
    rng = np.random.default_rng(5)
    (q, v), target = case.state(rng, speed=0.0), 20.0 * rng.normal(size=case.mech.nu)
    cold, warm = [], []
    for i in range(40):
        now = pin.integrate(case.mech.model, q, 1e-4 * i * np.ones(case.mech.nv))
        given = now, v, target * (1.0 + 0.01 * np.sin(0.2 * i))
        status, u = code.call("inverse", *given, warm=True)
        assert status == "LIMITED"
        warm.append(code.steps)
        last, again = code.call("inverse", *given)
        cold.append(code.steps)
        assert last == status
        assert abs(again - u).max() < SAME * abs(u).max()
    assert np.mean(warm[1:]) <= min(2.0, 0.5 * np.mean(cold))
    assert max(cold) <= 60


def test_what_has_no_efforts_is_a_status(built):
    for name, policy in SMALL:
        case, _, code = built(name, policy)
        q, v = case.state(np.random.default_rng(6))
        target = np.zeros(case.mech.nu)
        tilted = pin.integrate(case.mech.model, q, 0.2 * np.eye(case.mech.nv)[4])
        turning = v + np.eye(case.mech.nv)[3:6].sum(axis=0)
        if name == "edge":  # its points move against each other
            assert code.call("inverse", q, turning, target)[0] == "CONTACTS"
        else:
            assert code.call("inverse", tilted, v, target)[0] == "CONTACTS"
        status, u = code.call("inverse", q, 1e3 * v, target)
        assert status in ("EXCLUDED", "CONTACTS") if policy == "raise" else status == "LIMITED"
        assert abs(u).max() <= case.effort
        assert code.call("inverse", np.inf * q, v, target)[0] == "NOT_FINITE"
        assert code.call("inverse", q, v, np.full(target.shape, np.inf))[0] == "NOT_FINITE"
        assert not (np.isfinite(code.forces) & (code.forces < 1e300)).any()
        words = [code.library.words(i) for i in range(len(STATUSES))]
        assert len(set(words)) == len(STATUSES)


@pytest.mark.slow
@pytest.mark.parametrize("tasks", ["leg", "biped"])
def test_tasks_share_their_least_squares(tasks, tmp_path):
    case, rng = standing(tasks), np.random.default_rng(7)
    home = case.mech.motor_positions(case.held.reference)
    several = [hc.CenterOfMassTask(), hc.PostureTask()]
    ctl = tasks_on(case, several, (1.0, 1e-3))
    if tasks == "biped":
        several = hc.FrameTask("foot_left", "x y z rx ry rz")
        ctl = tasks_on(case, several, None, posture=home)
    code = OnContacts(ctl, tmp_path)
    bound = [one.bind(case.mech) for one in (several if isinstance(several, list) else [several])]
    for _ in range(8 if tasks == "leg" else 100):
        q, v = case.state(rng)
        P = hc.project(case.mech, q, v, partition=case.part)
        values = [task.at(P.kinematics).value for task in bound]
        moved = [
            x * pin.exp6(pin.Motion(0.02 * rng.normal(size=6)))
            if isinstance(x, pin.SE3) else x + 0.02 * rng.normal(size=len(x))
            for x in values
        ]  # fmt: skip
        rates = [0.1 * rng.normal(size=len(task.labels)) for task in bound]
        given = [(x, rate, 2.0 * rate) for x, rate in zip(moved, rates, strict=True)]
        u = ctl.torque(q, v, given if len(given) > 1 else given[0])
        numbers = [
            reference_value(task, task.wanted(x)) for task, x in zip(bound, moved, strict=True)
        ]
        rate = np.concatenate(rates)
        status, found = code.call("torque", q, v, np.concatenate(numbers), rate, 2.0 * rate)
        assert status in ("OK", "LIMITED")
        assert abs(found - u).max() < SAME * abs(u).max()


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["raise", "nearest"])
def test_redundant_rows_are_checked(policy, tmp_path):
    ends = ("rod_left", at(0, 0, -0.3)), ("knee_left", at(0.06))
    mech = biped().with_constraints(hc.Closure(*ends, axes="x z", name="twice"))
    feet = [sole(f"foot_{side}", side, friction=0.8) for side in ("left", "right")]
    case, rng = Standing(mech, feet, 60.0), np.random.default_rng(8)
    code = OnContacts(controller(case, policy, effort=0.05), tmp_path)
    slipped = 0
    for _ in range(30):
        q, v = case.state(rng, 6.0)
        target = 10.0 * rng.normal(size=12)
        status, _ = code.call("inverse", q, v, target)
        if status == "EXCLUDED":
            assert policy == "raise"
            continue
        assert status == "LIMITED"
        slipped += code.slip > 1e-6
        found = case.solved(q, v, target, hc.Limits(effort=0.05 * case.effort), policy=policy)
        a = found.a[case.part.independent]
        assert abs(code.motion(a.size) - a).max() < 1e-6 * (1.0 + abs(a).max())
    assert bool(slipped) == (policy == "nearest")


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["raise", "nearest"])
@pytest.mark.parametrize("name", ["edge", "sole", "leg", "biped"])
def test_the_self_test_passes_without_warnings(name, policy, tmp_path):
    case = standing(name)
    compiler = compilers()[0]
    folder = tmp_path / "c"
    hc.export_c(controller(case, policy), folder)
    assert "all is well" in build_and_test(folder, compiler)
    several = [hc.CenterOfMassTask(), hc.PostureTask()]
    folder = tmp_path / "tasks"
    hc.export_c(tasks_on(case, several, (1.0, 1e-3), policy=policy), folder)
    assert "all is well" in build_and_test(folder, compiler, "-DHOLOCTL_SANITIZE=ON")


def test_what_c_does_not_have_is_refused(tmp_path):
    case = standing("leg")
    joints = hc.Limits(effort=10.0, velocity=3.0)
    beside = hc.ComputedTorque(
        case.mech, 1.0, 1.0, contacts=case.contacts, partition=case.part, limits=joints
    )
    for what, options, told in (
        (beside, {}, "limits of efforts on contacts"),
        (controller(case), {"plant": True}, "plant"),
        (controller(case), {"measured": ["knee"]}, "whole robot|measured"),
        (controller(case), {"limits": "model"}, "brings its own"),
        (controller(case), {"gravity": True}, "on contacts has no such parameters"),
    ):
        with pytest.raises(hc.InputError, match=told):
            hc.export_c(what, tmp_path, **options)
    for what in controller(case), tasks_on(case, hc.PostureTask(), None):
        with pytest.raises(hc.InputError, match="Python"):
            hc.compile(what)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["raise", "nearest"])
def test_contacts_of_all_kinds_and_none(policy, tmp_path):
    case, rng = standing("leg"), np.random.default_rng(9)
    triangle = [(0.1, 0.02, 0.0), (0.0, 0.0, 0.0), (0.0, 0.05, 0.0)]
    kinds = [
        hc.UnilateralContact("sole", triangle, friction=0.0, name="ice"),
        hc.UnilateralContact("sole", name="point", facets=3, most=300.0),
    ]
    for contacts in kinds, []:
        ctl = hc.ComputedTorque(
            case.mech, 100.0, 20.0, contacts=contacts, partition=case.part, policy=policy
        )
        folder = tmp_path / f"{len(contacts)}"
        folder.mkdir()
        code = OnContacts(ctl, folder)
        for _ in range(20):
            q, v = case.state(rng)
            target = 10.0 * rng.normal(size=4)
            given = case.mech.motor_positions(q), case.mech.B.T @ v, target
            u = ctl.torque(q, v, *given)
            status, found = code.call("torque", q, v, *given)
            assert status in ("OK", "LIMITED")
            assert abs(found - u).max() < SAME * abs(u).max()
