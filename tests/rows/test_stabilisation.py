"""Time constants of stabilisation, by name."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from zoo import ZOO

import holoctl as hc
from holoctl.rows.stabilisation import stabilisation, time_constants


def stabilised(**time_constants):
    base = ZOO["geared_slider"]()
    constraints = [
        dataclasses.replace(c, t_stab=time_constants.get(c.default_name)) for c in base.constraints
    ]
    return hc.Mechanism(base.model, constraints, base.actuated, reference=base.reference)


def test_time_constants_by_name_are_those_of_the_constraints():
    q, v = np.array([1.0, -1.4, 0.6, 2.0, 0.1]), np.array([0.5, -0.4, 0.3, 0.2, -0.1])
    plain, own = stabilised(), stabilised(pin=0.05, gear=0.2)
    given = {"pin": 0.05, "gear": 0.2}
    expected = hc.terms(own, q, v).stabilisation
    assert np.count_nonzero(expected) == 3  # two rows of the pin, one of the gear
    np.testing.assert_array_equal(hc.terms(plain, q, v, t_stab=given).stabilisation, expected)
    np.testing.assert_array_equal(hc.terms(own, q, v, t_stab={"pin": 0.05}).stabilisation, expected)
    np.testing.assert_array_equal(
        hc.terms(own, q, v, t_stab={"pin": False}).stabilisation[2:], expected[2:]
    )
    assert not hc.terms(own, q, v, t_stab={"pin": False}).stabilisation[:2].any()
    assert not hc.terms(own, q, v, t_stab=False).stabilisation.any()
    part = hc.partition(plain, hc.assemble(plain)[0])
    for call in (hc.forward_dynamics, hc.inverse_dynamics):
        x = np.ones(plain.nv if call is hc.forward_dynamics else plain.nu)
        a = call(plain, q, v, x, t_stab=given, partition=part).a
        b = call(own, q, v, x, partition=hc.partition(own, hc.assemble(own)[0])).a
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_time_constants_of_rows_are_inf_where_there_are_none():
    own, inf = stabilised(pin=0.05), np.inf
    for t_stab, expected in [
        (None, [0.05, 0.05, inf, inf]), (False, [inf] * 4), ({"pin": False}, [inf] * 4),
        ({"gear": 0.2}, [0.05, 0.05, 0.2, inf]), (0.1, [0.1] * 4),
    ]:  # fmt: skip
        np.testing.assert_array_equal(time_constants(own, t_stab), expected)


def test_the_formula_of_stabilisation_serves_numbers_arrays_and_expressions():
    ca = pytest.importorskip("casadi")
    rate, error, T = np.array([0.3, -2.0]), np.array([1e-3, 0.02]), np.array([0.1, 0.7])
    expected = 2.0 / T * rate + error / T**2
    np.testing.assert_allclose(stabilisation(rate, error, T), expected, rtol=1e-15)
    x, y = ca.SX.sym("rate"), ca.SX.sym("error")
    for i in range(2):
        one = stabilisation(float(rate[i]), float(error[i]), float(T[i]))
        f = ca.Function("f", [x, y], [stabilisation(x, y, float(T[i]))])
        np.testing.assert_allclose([one, float(f(rate[i], error[i]))], expected[i], rtol=1e-15)


@pytest.mark.parametrize(
    "wrong", [{"pn": 0.1}, {"pin": 0.0}, {"pin": "x"}, {"pin": None}, True, 0, {1: 0.1}]
)
def test_time_constants_that_are_none(wrong):
    mech = stabilised()
    with pytest.raises(hc.InputError, match="t_stab"):
        hc.terms(mech, mech.reference, np.zeros(5), t_stab=wrong)
