"""How hard joints can be braked, where only the efforts of the motors say it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from refusals import refused
from scipy.optimize import linprog

import holoctl as hc
from holoctl.control.braking_limits import braking_limits
from holoctl.dynamics.effort_response import response_at
from holoctl.mechanism.bound_limits import bound_limits

EFFORTS = {"five_bar": 6.0, "delta": (-1.0, 3.0), "stewart": 40.0, "leg": 12.0}


def at_rest(name, limited=None, **more):
    mech = hc.load(hc.robot_file(name))
    q, v = hc.assemble(mech)
    ends = dict(zip(mech.actuated, mech.motor_positions(q), strict=True))
    position = {m: (x - 0.5, x + 0.5) for m, x in ends.items() if limited is None or m in limited}
    limits = hc.Limits(effort=EFFORTS[name], position=position, **more)
    bound = bound_limits(mech, limits)
    response = response_at(mech, hc.partition(mech, q), q, v, 0.0, None)
    return bound, braking_limits(mech, bound), response.Y[bound.columns], response.a0[bound.columns]


def possible(bound, Y, a0, wanted):
    """Whether efforts within their limits make the limited coordinates accelerate so."""
    ends = list(zip(*bound.effort.tolist(), strict=True))
    return linprog(np.zeros(Y.shape[1]), A_eq=Y, b_eq=wanted - a0, bounds=ends).status == 0


@pytest.mark.parametrize("name", EFFORTS)
def test_all_joints_can_be_braked_at_once_in_any_directions(name):
    bound, brakes, Y, a0 = at_rest(name)
    found = [
        possible(bound, Y, a0, np.array(signs) * brakes[0])
        for signs in product([-0.999, 0.999], repeat=len(bound.names))
    ]
    assert all(found)
    farther = [
        possible(bound, Y, a0, np.array(signs) * brakes[0])
        for signs in product([-1.01, 1.01], repeat=len(bound.names))
    ]
    assert not all(farther)  # it is not less than there is


def test_one_alone_has_all_motors():
    _, brakes, Y, a0 = at_rest("five_bar", limited=["motor_left"])
    most = a0[0] + np.abs(Y[0]).sum() * 6.0
    least = a0[0] - np.abs(Y[0]).sum() * 6.0
    assert brakes[:, 0] == pytest.approx(min(most, -least))
    assert (brakes > at_rest("five_bar")[1][0, 0]).all()


def test_what_is_said_counts():
    said = {"motor_left": (-7.0, 9.0)}
    bound, brakes, *_ = at_rest("five_bar", acceleration=said)
    assert brakes[:, bound.names.index("motor_left")].tolist() == [7.0, 9.0]
    assert np.isfinite(brakes).all()


def test_motors_without_limits_say_nothing():
    mech = hc.load(hc.robot_file("five_bar"))
    limits = hc.Limits(effort={"motor_left": 6.0}, position={"motor_right": 3.0})
    refused(lambda: hc.ComputedTorque(mech, 1.0, 1.0, limits=limits), hc.InputError, "braked")
