"""Numbers at the edge of floats, and masked ones: an answer or an error of the library's own.

Whatever numpy is told to do about floating-point errors, and whatever is done about warnings.
"""

from __future__ import annotations

import contextlib
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from refusals import refused
from support import few, mechanism, shared_partition
from zoo import ZOO

import holoctl as hc
from holoctl.base.linalg import least_squares, null_space_by_svd, singular_values

METHODS = ("projection", "direct", "range_space", "null_space", "kokkevis", "proximal")

NAMES = ["four_bar", "geared_slider", "floating_leg", "standing_leg", "sine_chart", "timed_arm",
         "held_foot", "three_motors"]  # fmt: skip


def general_calls(mech, part, q, v, target, tau):
    """Every function of a state, by its name."""
    last = mech.model.frames[mech.model.nframes - 1].name
    many = np.full(mech.row_scale.size, np.abs(v).max())
    forward = {
        f"forward {method}": lambda method=method: hc.forward_dynamics(
            mech, q, v, tau, method=method, partition=part
        )
        for method in METHODS
    }
    return forward | {
        "terms": lambda: hc.terms(mech, q, v).h,
        "project": lambda: hc.project(mech, q, v, partition=part),
        "project, qr": lambda: hc.project(mech, q, v, "qr", partition=part),
        "project, orthonormal": lambda: hc.project(mech, q, v, "orthonormal", partition=part),
        "project, t_stab": lambda: hc.project(mech, q, v, partition=part, t_stab=1e-3),
        "inverse": lambda: hc.inverse_dynamics(mech, q, v, target, partition=part),
        "inverse, f_ext": lambda: hc.inverse_dynamics(
            mech, q, v, target, f_ext={last: [1e300] * 6}, partition=part
        ),
        "inverse, all": lambda: hc.inverse_dynamics(
            mech, q, v, tau, coordinates="all", partition=part, inconsistent="project"
        ),
        "relaxed": lambda: hc.methods.inverse_dynamics_relaxed(mech, q, v, target, partition=part),
        "impulse": lambda: hc.impulse(mech, q, v, partition=part),
        "joint_motion": lambda: hc.joint_motion(mech, mech.model.names[1], q, v),
        "constraint_wrenches": lambda: hc.constraint_wrenches(mech, q, many),
        "assemble": lambda: hc.assemble(mech, q, v, restarts=0),
        "partition": lambda: hc.partition(mech, q),
        "is_fully_actuated": lambda: hc.methods.is_fully_actuated(mech, q, partition=part),
        "simulate": lambda: hc.simulate(mech, lambda t, q, v: 0.0 * target, q, v, 1e-3),
    }


def ticks(mech, part, q, v, target, tau):
    inverse = hc.PreparedInverseDynamics(mech, part, inconsistent="project")
    forward = hc.PreparedForwardDynamics(mech, part)
    ctl = hc.ComputedTorque(mech, 1.0, 1.0, partition=part)
    gravity = hc.ComputedTorque(mech, 1.0, 1.0, "gravity", partition=part)
    zero, q_ref = np.zeros(mech.nu), mech.reference
    return {
        "torque": lambda: inverse.torque(q, v, target),
        "holding": lambda: inverse.holding(q),
        "acceleration": lambda: forward.acceleration(q, v, tau),
        "computed torque": lambda: ctl.torque(q, v, q_ref, zero, target),
        "computed torque, rates": lambda: ctl.torque(q, v, q_ref, target, target),
        "gravity": lambda: gravity.torque(q, v, q_ref, target, zero),
    }


def arrays_in(result):
    values = vars(result).values() if hasattr(result, "__dict__") else result
    values = values if isinstance(values, tuple) or hasattr(result, "__dict__") else [result]
    found = [x for x in values if isinstance(x, np.ndarray)]
    return [x for x in found if x.dtype.names is None]  # not the table of events


@pytest.mark.parametrize("numpy_raises", [True, False])
@pytest.mark.parametrize("name", few(NAMES, NAMES[::2]))
def test_extreme_states_give_an_answer_or_our_error(name, numpy_raises):
    mech, part = mechanism(name), shared_partition(name)
    rng = np.random.default_rng(5)
    q0, v0 = hc.assemble(mech, v_guess=np.ones(mech.nv))
    sign, rate = np.sign(rng.normal(size=mech.nq)), rng.uniform(-1.0, 1.0, mech.nv)
    bad = []
    for size in (1e155, 1e200, 1.7e308):
        flat = mech.nq == mech.nv
        far = q0 + size * sign if flat else q0
        target, zero = size * rate[: mech.nu], np.zeros(mech.nu)
        # nu <= nv in all of these
        states = [(q0, size * rate, zero, 0.0 * v0), (q0, v0, target, size * rate)]
        states += [(far, v0, zero, 0.0 * v0), (far, size * rate, target, v0)] if flat else []
        for state in states:
            calls = general_calls(mech, part, *state) | ticks(mech, part, *state)
            for what, call in calls.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    try:
                        with np.errstate(all="raise") if numpy_raises else nullcontext():
                            found = call()
                    except hc.HoloctlError:
                        continue
                    except Exception as error:
                        bad.append(f"{what} at {size:g}: {type(error).__name__}: {error}")
                        continue
                certificate = getattr(found, "certificate", None)
                finite = all(np.isfinite(x).all() for x in arrays_in(found))
                if not finite and (certificate is None or certificate.ok):
                    bad.append(f"{what} at {size:g}: not finite")
    assert not bad, "\n".join(bad)


def test_the_settings_of_numpy_are_left_as_they_were():
    mech, part = mechanism("four_bar"), shared_partition("four_bar")
    q, v = hc.assemble(mech)
    seen = []

    def controller(t, q, v):
        seen.append(np.geterr()["over"])
        return [0.0]

    with np.errstate(over="raise"):
        hc.inverse_dynamics(mech, q, v, [1.0], partition=part)
        hc.simulate(mech, controller, q, v, 2e-3)
        hc.simulate(mech, controller, q, v, 1e-3, integrator=hc.Integrator(hold=False))
        assert np.geterr()["over"] == "raise"
    assert set(seen) == {"raise"}  # the controller is the caller's


@pytest.mark.parametrize("t_stab", [1e308, 1.7e308, 1e200])
def test_a_time_constant_beyond_squares_stabilises_hardly(t_stab):
    mech, part = mechanism("four_bar"), shared_partition("four_bar")
    q = mech.reference
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        slow = hc.project(mech, q, np.ones(3), partition=part, t_stab=t_stab)
    without = hc.project(mech, q, np.ones(3), partition=part, t_stab=False)
    np.testing.assert_allclose(slow.bias, without.bias, rtol=1e-12)


@pytest.mark.parametrize("t_stab", [1e-200, 5e-324])
@pytest.mark.parametrize("name", ["four_bar", "sine_chart"])
def test_a_time_constant_that_is_too_short_is_refused(name, t_stab):
    mech = mechanism(name)
    q = mech.reference + 0.1
    with pytest.raises(hc.InputError, match="not finite at this state"):
        hc.project(mech, q, np.ones(mech.nv), partition=shared_partition(name), t_stab=t_stab)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_factorisations_that_may_not_end_refuse_what_is_not_finite(bad):
    A = np.array([[1.0, 2.0], [3.0, bad]])
    with pytest.raises(hc.InputError, match="out of range"):
        least_squares(A, np.ones(2))
    with pytest.raises(hc.InputError, match="out of range"):
        least_squares(np.eye(2), A[1])
    with pytest.raises(hc.InputError, match="out of range"):
        singular_values(A)
    with pytest.raises(hc.InputError, match="out of range"):
        null_space_by_svd(A, 1)


# ---------------------------------------------------------------------------------- masked


def masked(x):
    x = np.ma.array(np.asarray(x, dtype=float))
    x[..., 0] = np.ma.masked
    return x


MASKED = {
    "assemble: q_guess": lambda s: hc.assemble(s.mech, masked(s.q)),
    "assemble: v_guess": lambda s: hc.assemble(s.mech, s.q, masked(s.v)),
    "assemble: weights": lambda s: hc.assemble(s.mech, s.q, weights=masked(s.v + 1)),
    "partition": lambda s: hc.partition(s.mech, masked(s.q)),
    "terms": lambda s: hc.terms(s.mech, s.q, masked(s.v)),
    "project": lambda s: hc.project(s.mech, masked(s.q), s.v),
    "inverse_dynamics": lambda s: hc.inverse_dynamics(s.mech, s.q, s.v, masked(s.one)),
    "a list of it": lambda s: hc.inverse_dynamics(s.mech, s.q, s.v, [np.ma.masked]),
    "weights": lambda s: hc.inverse_dynamics(s.mech, s.q, s.v, s.one, weights=masked(s.one)),
    "f_ext": lambda s: hc.inverse_dynamics(
        s.mech, s.q, s.v, s.one, f_ext={"rocker": masked([1] * 6)}
    ),
    "f_ext, a pair": lambda s: hc.inverse_dynamics(
        s.mech, s.q, s.v, s.one, f_ext={"rocker": (masked([1] * 3), [0, 0, 0])}
    ),
    "relaxed": lambda s: hc.methods.inverse_dynamics_relaxed(s.mech, s.q, s.v, masked(s.one)),
    "stiffness": lambda s: hc.methods.inverse_dynamics_relaxed(
        s.mech, s.q, s.v, s.one, stiffness=masked([[1.0]])
    ),
    "forward_dynamics": lambda s: hc.forward_dynamics(s.mech, s.q, s.v, masked(s.v)),
    "impulse": lambda s: hc.impulse(s.mech, s.q, s.v, v_plus=masked([1.0, 1.0])),
    "joint_motion": lambda s: hc.joint_motion(s.mech, "crank", masked(s.q)),
    "constraint_wrenches": lambda s: hc.constraint_wrenches(s.mech, s.q, masked([1.0, 1.0])),
    "by_constraint": lambda s: hc.methods.by_constraint(s.mech, masked([1.0, 1.0])),
    "by_constraint, bool": lambda s: hc.methods.by_constraint(
        s.mech, np.ma.array([True, True], mask=[True, False])
    ),
    "mobility": lambda s: hc.mobility(s.mech, masked(s.q)),
    "simulate": lambda s: hc.simulate(s.mech, lambda t, q, v: [0.0], masked(s.q), s.v, 0.01),
    "simulate: u": lambda s: hc.simulate(
        s.mech, lambda t, q, v: masked([0.0]), s.q, s.v, 0.01
    ),
    "Sensors: noise": lambda s: hc.Sensors(noise=masked([0.0, 0.0])),
    "Sensors: noise of each": lambda s: hc.Sensors(noise=(masked([0.0, 0.0]), 0.0)),
    "Sensors: counts": lambda s: hc.Sensors(counts=masked([1e4, 1e4])),
    "RateFilter": lambda s: hc.RateFilter(100.0, 1e-3).rate(masked([0.0, 0.0])),
    "torque: q": lambda s: s.inverse.torque(masked(s.q), s.v, s.one),
    "torque: v": lambda s: s.inverse.torque(s.q, masked(s.v), s.one),
    "torque: target": lambda s: s.inverse.torque(s.q, s.v, masked(s.one)),
    "torque: efforts": lambda s: s.inverse.torque(s.q, s.v, s.one, efforts=masked(s.v)),
    "holding": lambda s: s.inverse.holding(masked(s.q)),
    "acceleration": lambda s: s.forward.acceleration(s.q, s.v, masked(s.v)),
    "at": lambda s: s.forward.at(masked(s.q), s.v),
    "at: tau": lambda s: s.forward.at(s.q, s.v)(masked(s.v)),
    "ComputedTorque: kp": lambda s: hc.ComputedTorque(s.mech, masked([1.0]), 1.0),
    "computed torque: q": lambda s: s.ctl.torque(masked(s.q), s.v, s.one, s.one, s.one),
    "computed torque: q_ref": lambda s: s.ctl.torque(s.q, s.v, masked(s.one), s.one, s.one),
    "computed torque: q_ref, whole": lambda s: s.ctl.torque(s.q, s.v, masked(s.q), s.one, s.one),
    "computed torque: a_ref": lambda s: s.ctl.torque(s.q, s.v, s.one, s.one, masked(s.one)),
    "reference": lambda s: hc.Mechanism(s.mech.model, [], ["crank"], reference=masked(s.q)),
    "actuation": lambda s: hc.Mechanism(s.mech.model, [], actuation=masked(np.ones((3, 1)))),
    "Custom: scale": lambda s: hc.Custom(lambda q: q, rows=3, scale=masked([1.0] * 3)),
    "Custom: phi": lambda s: hc.Mechanism(s.mech.model, [hc.Custom(lambda q: masked(q[:1]))]),
    "Contact: at": lambda s: hc.Contact("rocker", normal=masked([0.0, 0.0, 1.0])),
    "Linkage: com": lambda s: hc.Linkage("x").add_body("b", 1.0, masked([0.0, 0.0, 0.0])),
    "Linkage: inertia": lambda s: hc.Linkage("x").add_body("b", 1.0, inertia=masked(np.eye(3))),
}  # fmt: skip


class Setting:
    mech = ZOO["four_bar"]()
    q, v = hc.assemble(mech)
    one = np.zeros(1)
    inverse, forward = hc.PreparedInverseDynamics(mech), hc.PreparedForwardDynamics(mech)
    ctl = hc.ComputedTorque(mech, 1.0, 1.0)


@pytest.mark.parametrize("what", MASKED)
def test_masked_entries_are_refused(what):
    with pytest.raises(hc.InputError, match=r"masked entries"):
        MASKED[what](Setting)


def test_a_masked_array_without_masked_entries_is_an_array():
    s = Setting
    whole = hc.inverse_dynamics(s.mech, np.ma.array(s.q), s.v, [1.0]).u
    np.testing.assert_array_equal(whole, hc.inverse_dynamics(s.mech, s.q, s.v, [1.0]).u)
    np.testing.assert_array_equal(s.inverse.torque(np.ma.array(s.q), s.v, s.one),
                                  s.inverse.torque(s.q, s.v, s.one))  # fmt: skip


# --------------------------------------------------- velocities whose squares are beyond floats


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_beyond_floats_is_given(s):
    """Where squares of velocities overflow: an error, or a certificate that says no."""
    v = 1e200 * s.v
    refused(lambda: s.ctl.torque(s.q, v, s.one, s.one, s.one), hc.InputError, "finite")
    refused(lambda: hc.project(s.mech, s.q, v, partition=s.part), hc.InputError, "finite")
    for call in (
        lambda: hc.inverse_dynamics(s.mech, s.q, v, s.one, partition=s.part),
        lambda: hc.forward_dynamics(s.mech, s.q, v, s.tau, partition=s.part),
    ):
        with contextlib.suppress(hc.InputError):
            assert not call().certificate.ok
