"""Each call of exported C returns a status, and a torque that is finite."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from exported import (
    STATUSES,
    STRICT,
    Exported,
    compilers,
    controller,
    good_inputs,
    last_line,
    self_test,
)
from support import mechanism, stretched

import holoctl as hc

pytest.importorskip("casadi")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_wherever_it_stands(leg, bad):
    for policy in (0, 1):
        leg.reset()
        leg.c.in_trouble = policy
        inputs = good_inputs(leg)
        status, first = leg.call("torque", *inputs)
        assert status == "OK"
        held = first if policy == 0 else np.zeros(leg.mech.nu)
        for k, x in enumerate(inputs):
            for i in range(x.size):
                spoilt = [y.copy() for y in inputs]
                spoilt[k][i] = bad
                status, u = leg.call("torque", *spoilt)
                assert status == "NOT_FINITE", (k, i)
                np.testing.assert_array_equal(u, held)
        count = sum(x.size for x in inputs)
        assert (leg.c.ticks, leg.c.troubles, leg.c.count[1]) == (count + 1, count, count)
        status, u = leg.call("torque", *inputs)
        assert (status, leg.c.troubles) == ("OK", 0)
        np.testing.assert_array_equal(u, first)


def test_zero_before_the_first_good_torque(five_bar):
    five_bar.reset()
    inputs = good_inputs(five_bar)
    inputs[0][0] = np.nan
    status, u = five_bar.call("torque", *inputs)
    assert status == "NOT_FINITE"
    assert not u.any()


def test_policy_of_the_export(tmp_path):
    exported = Exported(mechanism("five_bar"), tmp_path, in_trouble="zero", closure_limit=0.125)
    assert exported.c.in_trouble == 1
    assert exported.c.closure_limit == 0.125


def _spoilt(inputs, k=0):
    return [np.full_like(x, np.nan) if i == k else x for i, x in enumerate(inputs)]


@pytest.mark.parametrize("function", ["torque", "inverse_dynamics", "torque_from_motors"])
def test_a_torque_is_held_for_so_many_ticks_and_no_longer(five_bar, function):
    """Of all functions, and anew after a good tick; 100 by default."""
    five_bar.reset()
    mech = five_bar.mech
    q, v, *given = good_inputs(five_bar)
    if function == "torque_from_motors":
        q, v = mech.motor_positions(q), mech.motor_rates(v)
    inputs = [q, v, *(given if function != "inverse_dynamics" else given[:1])]
    assert five_bar.c.hold_limit == 100
    for most in (100, 7, 0, 1):
        five_bar.c.hold_limit = most
        status, good = five_bar.call(function, *inputs)
        assert (status, five_bar.c.troubles, five_bar.c.cause) == ("OK", 0, 0)
        assert good.all()
        for k in range(most + 5):
            status, u = five_bar.call(function, *_spoilt(inputs, k % 2))
            assert status == ("NOT_FINITE" if k < most else "EXPIRED"), k
            np.testing.assert_array_equal(u, good if k < most else np.zeros(2))
            assert STATUSES[five_bar.c.cause] == "NOT_FINITE"
            assert five_bar.c.troubles == k + 1
    assert sum(five_bar.c.count) == five_bar.c.ticks


def test_causes_in_turn_are_one_trouble_and_stay_known(five_bar):
    five_bar.reset()
    five_bar.c.hold_limit = 3
    inputs = good_inputs(five_bar)
    broken = [inputs[0] + np.array([0.0, 0.3, 0.0, 0.0]), *inputs[1:]]
    assert five_bar.call("torque", *inputs)[0] == "OK"
    seen = [five_bar.call("torque", *x)[0] for x in (broken, _spoilt(inputs)) * 3]
    assert seen == ["OPEN", "NOT_FINITE", "OPEN", "EXPIRED", "EXPIRED", "EXPIRED"]
    five_bar.call("torque", *broken)
    assert STATUSES[five_bar.c.cause] == "OPEN"
    five_bar.c.in_trouble = 1
    assert five_bar.call("torque", *broken)[0] == "OPEN"
    five_bar.c.in_trouble = 0
    status, u = five_bar.call("torque", *broken)
    assert (status, u.tolist()) == ("EXPIRED", [0.0, 0.0])


def test_the_counter_of_troubles_does_not_wrap(five_bar):
    five_bar.reset()
    inputs = good_inputs(five_bar)
    assert five_bar.call("torque", *inputs)[0] == "OK"
    five_bar.c.troubles = 2**64 - 2
    for _ in range(3):
        status, u = five_bar.call("torque", *_spoilt(inputs))
        assert (status, u.any(), five_bar.c.troubles) == ("EXPIRED", False, 2**64 - 1)


def test_a_build_that_init_refused_stays_one(five_bar):
    """Nothing was held that could expire."""
    five_bar.reset()
    five_bar.c.hold_limit, five_bar.c.sound = 2, 0
    for _ in range(5):
        status, u = five_bar.call("torque", *good_inputs(five_bar))
        assert (status, u.any()) == ("BUILD", False)


@pytest.mark.parametrize("most", [0, 2**32 - 1])
def test_hold_limit_of_the_export(tmp_path, most):
    exported = Exported(mechanism("four_bar"), tmp_path, self_test=True, hold_limit=most)
    assert exported.c.hold_limit == most
    program, _ = self_test(tmp_path, exported.paths, compilers()[0], *STRICT, "-O1")
    assert last_line(program) == (0, "all is well")


@pytest.mark.parametrize("most", [-1, 2**32, 1.0, True, "3", None, np.nan])
def test_a_hold_limit_that_is_none_is_refused(tmp_path, most):
    with pytest.raises(hc.InputError, match="hold_limit must be"):
        hc.export_c(mechanism("four_bar"), tmp_path / "c", hold_limit=most)


def test_open_states_are_refused(five_bar):
    five_bar.reset()
    q, v, *reference = good_inputs(five_bar)
    mech = five_bar.mech
    _, before = five_bar.call("torque", q, v, *reference)
    opened = 0
    for size in np.logspace(-4, 0, 30):
        q1 = q + size * np.array([0.3, 1.0, -0.4, 0.2])
        closure = hc.inverse_dynamics(
            mech, q1, v, np.zeros(2), inconsistent="project"
        ).certificate.closure  # fmt: skip
        status, u = five_bar.call("torque", q1, v, *reference)
        assert np.isfinite(u).all()
        if closure > 2e-2:
            opened += 1
            assert status == "OPEN"
            np.testing.assert_array_equal(u, before)
        if closure < 0.5e-2:
            assert status == "OK"
        if status == "OK":
            before = u
    assert opened > 5


def test_a_quaternion_out_of_norm_is_refused_and_rounding_is_mended(leg):
    leg.reset()
    inputs = good_inputs(leg)
    _, expected = leg.call("torque", *inputs)
    inputs[0][3:7] *= 1.0 + 5e-7
    status, u = leg.call("torque", *inputs)
    assert status == "OK"
    np.testing.assert_allclose(u, expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())
    inputs[0][3:7] *= 1.0 + 1e-5
    assert leg.call("torque", *inputs)[0] == "NOT_NORMALISED"


def test_a_dead_point_approached(tmp_path):
    mech = mechanism("five_bar")
    # any rates will do here, and the statuses that come one behind the other are all told
    exported = Exported(mech, tmp_path, velocity_limit=None, in_trouble="zero")
    part = hc.partition(mech, hc.assemble(mech)[0])
    rng, seen, agreed = np.random.default_rng(0), set(), 0
    for s in [*np.logspace(0, -12, 200), 0.0]:
        q = stretched(s)
        v, target = rng.normal(size=4) * s, rng.normal(size=2)
        status, u = exported.call("inverse_dynamics", q, v, target)
        assert np.isfinite(u).all()
        seen.add(status)
        if status == "OK":
            try:
                expected = hc.inverse_dynamics(
                    mech, q, v, target, inconsistent="project", partition=part
                ).u
            except hc.SingularityError:
                pytest.fail(f"C gives a torque at s = {s} where Python gives none")
            np.testing.assert_allclose(u, expected, atol=1e-8 * np.abs(expected).max())
            agreed += 1
    assert status == "SINGULAR"
    assert agreed > 20
    assert "OK" in seen
    assert "SINGULAR" in seen


def test_pivot_growth_is_told_from_singular(five_bar):
    five_bar.reset()
    five_bar.c.guard_limit = 0.0
    inputs = good_inputs(five_bar)
    assert five_bar.call("torque", *inputs)[0] == "PIVOT_GROWTH"
    assert 0.02 < five_bar.c.pivot <= 1.0
    five_bar.c.pivot_limit = 1.1
    assert five_bar.call("torque", *inputs)[0] == "SINGULAR"


@pytest.mark.parametrize("size", [1e100, 1e200, 1e300, sys.float_info.max])
def test_huge_inputs_never_give_a_number_that_is_not_finite(leg, size):
    leg.reset()
    leg.c.closure_limit = np.inf
    for k, x in enumerate(good_inputs(leg)):
        for i in range(x.size):
            for sign in (1.0, -1.0):
                inputs = good_inputs(leg)
                inputs[k][i] = sign * size
                _, u = leg.call("torque", *inputs)
                assert np.isfinite(u).all(), (k, i)
    if size > 1e160:  # whose square is not finite
        assert leg.c.count[STATUSES.index("OVERFLOW")] > 0


@pytest.mark.parametrize("size", [1e200, -1e300])
def test_gravity_is_held_whatever_finite_acceleration_is_wanted(size, tmp_path):
    """It has no part in the torque: all machines say so, also where its square overflows."""
    law = controller("five_bar", compensation="gravity")
    exported, virtual = Exported(law, tmp_path), hc.compile(law, ["torque"], machine="vm")
    inputs = good_inputs(exported)
    expected = law.torque(*inputs)
    inputs[4] = np.array([size, 0.0])
    np.testing.assert_array_equal(law.torque(*inputs), expected)
    for u in (virtual.torque(*inputs), exported.call("torque", *inputs)[1]):
        np.testing.assert_allclose(u, expected, rtol=1e-12)
    assert exported.c.cause == STATUSES.index("OK")


def test_a_gain_that_is_not_finite_is_an_overflow(five_bar):
    five_bar.reset()
    five_bar.c.kp[1] = np.inf
    assert five_bar.call("torque", *good_inputs(five_bar))[0] == "OVERFLOW"


def test_every_status_has_a_text(five_bar):
    texts = [five_bar.text(i) for i in range(len(STATUSES))]
    assert len(set(texts)) == len(STATUSES)
    assert five_bar.text(99) == "unknown status"


def test_u_may_be_one_of_the_inputs(five_bar):
    import ctypes

    five_bar.reset()
    inputs = [np.array(x) for x in good_inputs(five_bar)]
    _, expected = five_bar.call("torque", *inputs)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in inputs]
    five_bar.library["holoctl_five_bar_torque"](ctypes.byref(five_bar.c), *pointers, pointers[2])
    np.testing.assert_array_equal(inputs[2], expected)
