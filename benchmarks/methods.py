"""Forward dynamics by every method, on the mechanisms that RBDL gave reference numbers for.

The mechanisms and their states are those of tests/rbdl.py. A contact holds its point wherever a
state has it: its rows depend on directions only, so the result is certified with the contacts
placed at that state.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from columns import Array, Case, Column, constraint_dynamics
from mechanisms import Loop

import holoctl as hc
from holoctl.dynamics.tick.forward_tick import Response, prepare
from holoctl.tree.frames import Frame, resolve_frame

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import rbdl

NAMES = rbdl.CASES

METHODS = ("projection", "direct", "range_space", "null_space", "kokkevis", "proximal")

SPECIAL = {"kokkevis": "contacts only", "proximal": "cannot express"}
"""Methods that do not take every mechanism, and what the cell then says."""

JOINTS = {"x y z": "spherical", "rx ry rz x y z": "weld"}
"""Axes of a closure, and the joint with the same rows, by which the columns know it."""


@dataclass
class Given:
    """A state on the manifold with efforts, the certified answer, and what is made beforehand."""

    q: Array
    v: Array
    tau: Array
    a: Array
    terms: hc.results.Terms
    response: Response


# ---------------------------------------------------------------------------------- mechanisms


def make_case(name: str) -> Case:
    """A mechanism of the golden files with its states on the manifold."""
    mech, states = _mechanism(name), rbdl.states(name, True)
    part = hc.partition(mech, states[0]["q"])
    prepared = hc.PreparedForwardDynamics(mech, part)
    return Case(name, mech, part, [_given(name, prepared, s) for s in states], _loops(mech))


def _given(name: str, prepared: hc.PreparedForwardDynamics, state: Any) -> Given:
    q, v, tau = (rbdl.array(state[x]) for x in ("q", "qd", "tau"))
    exact = hc.forward_dynamics(_mechanism(name, q), q, v, tau).raise_if_bad()
    return Given(q, v, tau, exact.a, hc.terms(prepared.mech, q, v), prepared.at(q, v))


def _mechanism(name: str, reference: Array | None = None) -> hc.Mechanism:
    """As in the tests, but points and welds are named as such."""
    mech = rbdl.build(name, reference)
    constraints = [_named(c) for c in mech.constraints]
    return hc.Mechanism(mech.model, constraints, mech.actuated, reference=mech.reference)


def _named(constraint: Any) -> Any:
    joint = JOINTS.get(getattr(constraint, "axes", ""))
    return constraint if joint is None else replace(constraint, axes=None, joint=joint)


def path(case: Case) -> str:
    """At how many states the fast path of the forward dynamics answers."""
    prepared = hc.PreparedForwardDynamics(case.mech, case.part)
    tick = prepare(prepared.mech, prepared.partition)
    if tick is None:
        return f"general: {prepared.general}"
    answers = [tick(s.q, s.v, s.tau, 0.0) for s in case.states]
    served = sum(a is not None and bool(np.isfinite(a).all()) for a in answers)
    return f"fast {served}/{len(answers)}"


# ------------------------------------------------------------------- the same motion in Pinocchio


def _loops(mech: hc.Mechanism) -> list[Loop]:
    """Points and welds that allow the same motions; none where Pinocchio has no such constraint.

    That they do allow the same is seen from the result, which is checked before it is timed.
    """
    found = [c for c in mech.constraints if isinstance(c, hc.Closure)]
    loops = [
        Loop(c.default_name, c.joint == "weld", _frame(mech, c.a), _frame(mech, c.b)) for c in found
    ]
    contacts = [c for c in mech.constraints if isinstance(c, hc.Contact)]
    if len(found) + len(contacts) < len(mech.constraints):
        return []
    for _, members in groupby(contacts, lambda c: _frame(mech, c.frame).joint):
        loops += _held(mech, list(members))
    return loops


def _held(mech: hc.Mechanism, contacts: list[hc.Contact]) -> list[Loop]:
    """The contacts of one body: a point each, or one weld if six rows hold the whole body."""
    rows = sum(1 + len(c.tangents or ()) for c in contacts)
    ground = _frame(mech, ("universe", pin.SE3.Identity()))
    loops = [Loop(c.default_name, False, ground, _frame(mech, c.frame)) for c in contacts]
    return [replace(loops[0], weld=True)] if rows == 6 else loops


def _frame(mech: hc.Mechanism, frame: Any) -> Frame:
    return resolve_frame(mech.model, frame, mech.name)


def more_rows(case: Case) -> bool:
    """Whether Pinocchio's constraints have more rows than the mechanism."""
    return sum(6 if loop.weld else 3 for loop in case.loops) > len(case.mech.row_scale)


# ----------------------------------------------------------------------------------- columns


def columns(case: Case) -> list[Column]:
    """Every way from efforts to accelerations."""
    return [
        _pinocchio(case),
        *_prepared(case),
        *(_general(case, method) for method in METHODS),
        _general(case, "direct", shared=False),
    ]


def _pinocchio(case: Case) -> Column:
    if not case.loops:
        return _absent("constraintDynamics", "cannot express")
    return constraint_dynamics(case)


def _prepared(case: Case) -> list[Column]:
    """For one state and effort after the other, and for many efforts at one state."""
    prepared, out = hc.PreparedForwardDynamics(case.mech, case.part), np.zeros(case.mech.nv)

    def one(s: Given) -> Array:
        return prepared.acceleration(s.q, s.v, s.tau, out=out)

    def many(s: Given) -> Array:
        return s.response(s.tau)

    return [Column("prepared", one, lambda s: s.a), Column("prepared, shared", many, lambda s: s.a)]


def _general(case: Case, method: str, shared: bool = True) -> Column:
    """The general path, with terms made beforehand or not."""
    mech, part = case.mech, case.part
    name = method if shared else f"{method}, own terms"

    def call(s: Given) -> Array:
        terms = s.terms if shared else None
        return hc.forward_dynamics(
            mech, s.q, s.v, s.tau, method=method, partition=part, terms=terms
        ).a

    if method in SPECIAL:
        try:
            call(case.states[0])
        except hc.InputError:
            return _absent(name, SPECIAL[method])
    return Column(name, call, lambda s: s.a)


def _absent(name: str, why: str) -> Column:
    return Column(name, lambda s: None, missing=why)
