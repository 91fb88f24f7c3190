"""Descriptions of constraints that make no sense are refused, at the latest by the Mechanism."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from refusals import KINDS, closing, refused
from zoo import at

import holoctl as hc


@pytest.mark.parametrize(
    "axes", ["", "w", "x,y", "xy", "x x", "X", "rx rx", 5, ["x", "y"], ("x",), b"x", np.eye(3)]
)
def test_axes_that_are_no_good_are_told_with_the_valid_ones(axes):
    refused(lambda: hc.Closure("a", "b", axes=axes), hc.InputError, "'a-b'", "x y z rx ry rz")


@pytest.mark.parametrize("both", [{}, {"joint": "weld", "axes": "x"}])
def test_a_closure_needs_one_of_joint_and_axes(both):
    refused(lambda: hc.Closure("a", "b", **both), hc.InputError, "joint=", "axes=", *KINDS)


def test_a_misspelt_joint_gets_a_suggestion():
    refused(lambda: hc.Closure("a", "b", joint="revolut"), hc.InputError, "did you mean 'revolute'")


@pytest.mark.parametrize(
    "frame",
    [None, 5, (), ("crank",), ("crank", np.eye(4)), ("crank", None), (None, at()), ["crank"],
     at(), {"crank": at()}, ("crank", at(), 1)],
)  # fmt: skip
@pytest.mark.parametrize("side", ["a", "b"])
def test_frames_that_are_no_good_are_refused(s, side, frame):
    """At the latest by the Mechanism, with the name of the closure."""
    frames = (frame, "rocker") if side == "a" else ("rocker", frame)
    refused(lambda: closing(s, *frames), hc.InputError, "'extra'")


@pytest.mark.parametrize("frame", [None, 5, (), ("crank",)])
def test_frames_that_are_no_good_are_refused_without_a_name_too(s, frame):
    def build():
        hc.Mechanism(s.mech.model, [hc.Closure(frame, "rocker", joint="weld")])

    refused(build, hc.InputError)


@pytest.mark.parametrize("name", [5, [], {}, b"pin"])
def test_names_of_constraints_must_be_strings(s, name):
    def closure():
        hc.Mechanism(s.mech.model, [hc.Closure("crank", "rocker", axes="x", name=name)])

    def coupling():
        hc.Mechanism(s.mech.model, [hc.Coupling({"crank": 1.0}, name=name)])

    refused(closure, hc.InputError, "name")
    refused(coupling, hc.InputError, "name")


@pytest.mark.parametrize(
    ("R", "word"),
    [
        (2.0 * np.eye(3), "orthogonal"),
        (np.diag([1.0, 1.0, -1.0]), "determinant 1"),
        (np.full((3, 3), np.nan), "not finite"),
    ],
)
def test_placements_that_are_no_placements_are_refused(s, R, word):
    refused(lambda: closing(s, ("crank", pin.SE3(R, np.zeros(3))), "rocker"), hc.InputError,
            "'extra'", "'crank'", word)  # fmt: skip


@pytest.mark.parametrize("coefficients", [{}, None, 5, "crank", [("crank", 1.0)], ["crank"]])
def test_coefficients_must_be_a_mapping(coefficients):
    refused(lambda: hc.Coupling(coefficients), hc.InputError, "coefficients")


def test_a_coefficient_too_small_to_divide_by_is_refused(s):
    """The row is scaled by its inverse, which must be a number."""

    def build():
        hc.Mechanism(s.mech.model, [hc.Coupling({"crank": 1e-310})])

    refused(build, hc.InputError, "coefficient", "'crank'")


@pytest.mark.parametrize("name", ["base[0]", "base[3]", "head[1]", "wheel"])
def test_couplings_of_rotations_are_refused(s, name):
    """Their position is not a number on a line."""
    refused(lambda: hc.Mechanism(s.floating.model, [hc.Coupling({name: 1.0, "hip": 1.0})]),
            hc.InputError, f"'{name}'", "number on a line")  # fmt: skip


def test_time_constants_of_contacts_and_rods_are_checked():
    assert hc.Contact("foot", t_stab=0.1).t_stab == 0.1
    for make in (lambda: hc.Contact("foot", t_stab=0.0), lambda: hc.Rod("a", "b", t_stab=-1.0)):
        with pytest.raises(hc.InputError, match="t_stab"):
            make()


def test_a_custom_scale_must_be_finite():
    with pytest.raises(hc.InputError, match="scale"):
        hc.Custom(lambda q: [q[0]], scale=float("inf"))
