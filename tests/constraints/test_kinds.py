"""Kinds of rows: those that nobody knows are refused, one that was added is right on every path."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support import assert_rows_close, closed_states, difference, mechanism, relative

import holoctl as hc
from holoctl.constraints import wrench_rows
from holoctl.constraints.kinds import Composed, Row, direction


def test_a_kind_that_nobody_knows_is_refused_by_name():
    """A row is data that every path reads in one place: what is not there binds to nothing."""

    class Wobbly:
        name = t_stab = None
        default_name = "wobbly"

        def bind(self, model, name, reference):
            loop = mechanism("five_bar").constraints[0].bind(model, name, reference)
            row = Row("wobble", "y", a=(0.0, 1.0, 0.0))  # not a value of hc.protocols.kinds
            return wrench_rows.wrench_rows(model, loop.frames1[0], loop.frames2[0], [row], name)

    with pytest.raises(hc.InputError, match=r"'wobbly'.*kind of row 'y'.*Along.*'wobble'"):
        dataclasses.replace(mechanism("five_bar"), constraints=[Wobbly()])


BENT = Composed(
    (direction("c", (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)),),
    value=lambda x, size, atan2, floor: size * (x[0] + 0.5 * x[0] * x[0]),
    gradient=lambda x, size: (size * (1.0 + x[0]),),
    curvature=lambda x, xdot, size: size * xdot[0] * xdot[0],
    guard=lambda x: x[0] * x[0],
    point=False,
)
"""A function of a cosine that vanishes with it: the same motion as that of the cosine."""


def test_a_kind_that_was_added_is_right_on_every_path():
    """One value is all that a new kind takes."""
    found = []
    for row in (BENT.parts[0], Row(BENT, "y", size=2.0)):

        class Own:
            name = t_stab = None
            default_name = "own"

            def bind(self, model, name, reference, row=row):
                arms = mechanism("screw_chain").constraints[0].bind(model, name, reference)
                return wrench_rows.wrench_rows(model, arms.frames1[0], arms.frames2[0], [row], name)

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
        compiled = f.terms(off, v).drift
        assert_rows_close(mech, compiled, T.drift, 1e-12, (off, v), what="drift", by_size=True)
        drift = difference(lambda s: hc.terms(mech, off + s * v, v).rate, 1e-3)  # noqa: B023
        rate = difference(lambda s: hc.terms(mech, off + s * v, v).error, 1e-3)  # noqa: B023
        tol = 1e-8 * (1.0 + np.abs(T.drift).max())
        assert_rows_close(mech, T.drift, drift, tol, (off, v), what="drift")
        assert_rows_close(mech, T.rate, rate, 1e-9, (off, v), what="rate")
        found.append((q, hc.inverse_dynamics(mech, q, v, target, partition=part).u))
    for one, other in zip(*found, strict=True):
        assert relative(one, other) < 1e-9


def test_rows_of_a_subclass_are_asked():
    """Rows that another class evaluates are not merged with those of the library."""

    class Bound(wrench_rows.WrenchRows):
        def rows(self, kin):
            r = super().rows(kin)
            return dataclasses.replace(
                r, error=r.error + 1.5 * kin.t**2, rate=r.rate + 3.0 * kin.t, drift=r.drift + 3.0
            )

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
