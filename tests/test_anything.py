"""Anything at all gives a proper result or an error of the family."""

from __future__ import annotations

import contextlib
import copy
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import relaxed
from support import few

import holoctl as hc

numbers = st.one_of(
    st.floats(), st.floats(-2.0, 2.0), st.integers(), st.sampled_from([1e300, -1e160, 10**400])
)


no_numbers = st.one_of(st.none(), st.text(max_size=2), st.sampled_from([np.nan, np.inf, 1e300]))


nothing_good = st.one_of(
    st.none(), st.text(max_size=5), st.booleans(), numbers, st.binary(max_size=3),
    st.complex_numbers(), st.dictionaries(st.text(max_size=3), numbers, max_size=2),
    st.recursive(
        st.one_of(numbers, st.none(), st.text(max_size=2)),
        lambda inner: st.lists(inner, max_size=4),
        max_leaves=12,
    ),
    st.sampled_from([Ellipsis, len, np.zeros((3, 3)), np.array("a"), np.ones(3, dtype=object)]),
)  # fmt: skip


def anything(size):
    """Junk of any kind, and arrays of the right size with all sorts of numbers in them."""
    if size == 0:  # motor efforts: anything but large numbers, which take their time to integrate
        return st.one_of(no_numbers, st.lists(no_numbers, max_size=3))
    right = st.lists(numbers, min_size=size, max_size=size)
    tame = st.lists(st.floats(-4.0, 4.0), min_size=size, max_size=size)
    return st.one_of(nothing_good, right, tame, tame.map(np.array))


def is_proper(value):
    """Finite arrays, or a certificate that warns."""
    certificate = getattr(value, "certificate", None)
    if certificate is not None and not certificate.ok:
        return True
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    parts = [getattr(value, f.name) for f in fields] or list(np.atleast_1d(value))
    arrays = [x for x in parts if isinstance(x, np.ndarray | float) and np.size(x)]
    return bool(arrays) and all(np.isfinite(x).all() for x in arrays if np.asarray(x).dtype != bool)


SIZES = {
    "assemble": (3, 3, 3), "partition": (3,), "project": (3, 3), "forward_dynamics": (3, 3, 3, 6),
    "inverse_dynamics": (3, 3, 1, 6), "inverse_dynamics, all": (3, 3, 3, 6),
    "torque": (3, 3, 1, 1, 1), "ComputedTorque": (1, 1), "simulate": (3, 3),
    "controller": (0,), "Mechanism": (3, 3), "Coupling": (1, 1), "impulse": (3, 3, 2),
    "relaxed": (3, 3, 1, 1, 6), "acceleration": (3, 3, 3), "acceleration, weld": (8, 8, 8),
    "prepared torque": (3, 3, 1, 3), "constraint_wrenches": (3, 2), "corrected": (3, 3, 1),
    "constraint_errors": (3, 3), "assembly_modes": (1,),
}  # fmt: skip


FUNCTIONS = {
    "assemble": lambda s, q, v, w: hc.assemble(s.mech, q, v, weights=w, restarts=2, max_iter=30),
    "partition": lambda s, q: hc.partition(s.mech, q),
    "project": lambda s, q, v: hc.project(s.mech, q, v, partition=s.part),
    "forward_dynamics": lambda s, q, v, tau, f: hc.forward_dynamics(
        s.mech, q, v, tau, f_ext={"rocker": f}, partition=s.part
    ),
    "inverse_dynamics": lambda s, q, v, a, f: hc.inverse_dynamics(
        s.mech, q, v, a, f_ext={"rocker": f}, partition=s.part
    ),
    "inverse_dynamics, all": lambda s, q, v, a, f: hc.inverse_dynamics(
        s.mech,
        q,
        v,
        a,
        f_ext={"rocker": f},
        coordinates="all",
        inconsistent="project",
        partition=s.part,
    ),
    "torque": lambda s, *x: s.ctl.torque(*x),
    "ComputedTorque": lambda s, kp, kd: hc.ComputedTorque(s.mech, kp, kd, partition=s.part),
    "impulse": lambda s, q, v, v_plus: hc.impulse(s.mech, q, v, v_plus, partition=s.part),
    "relaxed": lambda s, q, v, a, W, f: relaxed(
        s, q=q, v=v, target=a, stiffness=W, f_ext={"rocker": f}
    ),
    "acceleration": lambda s, *x: s.forward.acceleration(*x),
    "acceleration, weld": lambda s, *x: s.welded.acceleration(*x),
    "prepared torque": lambda s, q, v, a, tau: s.inverse.torque(q, v, a, efforts=tau),
    "constraint_wrenches": lambda s, q, x: hc.constraint_wrenches(s.mech, q, x)["pin"][1].force,
    "corrected": lambda s, q, v, t: np.concatenate(hc.corrected(s.mech, q, v, t=t)),
    "constraint_errors": lambda s, q, v: hc.constraint_errors(s.mech, q, v),
    "assembly_modes": lambda s, u: hc.assembly_modes(s.mech, u, tries=3),
    "simulate": lambda s, q, v: hc.simulate(s.mech, lambda t, q, v: [0.0], q, v, 0.002),
    "controller": lambda s, u: hc.simulate(s.mech, lambda t, q, v: u, s.q, s.v, 0.002),
    "Mechanism": lambda s, q, B: hc.Mechanism(s.mech.model, reference=q, actuation=B),
    "Coupling": lambda s, c, b: hc.Mechanism(s.mech.model, [hc.Coupling({"crank": c}, b)]),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numbers beyond floats on the way
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("count", few([50, 150], [50]))
def test_anything_at_all_gives_a_proper_result_or_an_error_of_the_family(bench, function, count):
    @settings(max_examples=count)
    @given(data=st.data())
    def run(data):
        check(bench, function, data)

    run()


def check(bench, function, data):
    """One to all of the array arguments are junk; the others are what they should be."""
    s = bench
    good = {
        "assemble": (s.q, s.v, s.weights), "partition": (s.q,), "project": (s.q, s.v),
        "forward_dynamics": (s.q, s.v, s.tau, s.wrench),
        "inverse_dynamics": (s.q, s.v, s.one, s.wrench),
        "inverse_dynamics, all": (s.q, s.v, s.a, s.wrench),
        "torque": (s.q, s.v, s.one, s.one, s.one), "ComputedTorque": (s.one, s.one),
        "simulate": (s.q, s.v), "controller": (s.u,), "Mechanism": (s.q, s.B),
        "Coupling": (1.0, 0.0), "impulse": (s.q, s.v, np.zeros(2)),
        "relaxed": (s.q, s.v, s.one, np.eye(1), s.wrench), "acceleration": (s.q, s.v, s.tau),
        "acceleration, weld": (s.eight, np.zeros(8), np.ones(8)),
        "prepared torque": (s.q, s.v, s.one, s.tau), "constraint_wrenches": (s.q, np.ones(2)),
        "corrected": (s.q, s.v, 0.0), "constraint_errors": (s.q, s.v),
        "assembly_modes": (s.one,),
    }[function]  # fmt: skip
    first = data.draw(st.integers(0, len(good) - 1), "which")
    arguments = [
        data.draw(anything(n) if i == first or data.draw(st.booleans()) else st.just(x))
        for i, (n, x) in enumerate(zip(SIZES[function], good, strict=True))
    ]
    before = copy.deepcopy(arguments)
    result = None
    with contextlib.suppress(hc.HoloctlError):
        result = FUNCTIONS[function](s, *arguments)
    assert result is None or is_proper(result)
    np.testing.assert_equal(arguments, before)
