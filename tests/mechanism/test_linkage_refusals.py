"""What is no body, no joint, no cut, no linkage."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from cut_loops import closed_by, refused
from linkages import add_lump, four_bar, umbrella
from zoo import at

import holoctl as hc


def test_an_inertia_may_be_rounded():
    """A rod whose smallest moment came out below zero; Pinocchio's constructor raises for it."""
    link = hc.Linkage("rod")
    link.add_body("rod", 1.0, inertia=np.diag([-4e-6, 1.0, 1.000002]))
    link.add_joint("hinge", "revolute", "universe", "rod")
    for actuated in ([], ["hinge"]):
        assert link.mechanism(actuated=actuated).model.inertias[1].inertia[0, 0] == pytest.approx(
            -4e-6
        )


def test_what_is_no_body():
    link = four_bar().linkage
    before = (link.bodies, link.joints)
    add = link.add_body
    refused("a body of 'four_bar' has this name", add, "crank", 1.0)
    refused("a joint of 'four_bar' has this name", add, "motor", 1.0)
    refused("is the name of the ground", add, "universe", 1.0)
    refused("text", add, "", 1.0)
    refused("text", add, 3, 1.0)
    refused("must not be negative; got -1", add, "x", -1.0)
    refused("finite", add, "x", np.inf)
    refused("number", add, "x", "1")
    refused(r"com .*shape \(3,\)", add, "x", 1.0, (0, 0))
    refused("finite", add, "x", 1.0, (0, 0, np.nan))
    refused(r"shape \(3, 3\)", add, "x", 1.0, inertia=[1, 1, 1])
    refused("finite", add, "x", 1.0, inertia=np.full((3, 3), np.nan))
    refused("symmetric", add, "x", 1.0, inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]])
    refused("no negative principal moment.* -1, 1, 1", add, "x", 1.0, inertia=np.diag([1, -1, 1]))
    refused("sum of the others.* 1, 1, 3", add, "x", 1.0, inertia=np.diag([1, 3, 1]))
    assert (link.bodies, link.joints) == before
    add("rod", 1.0, inertia=np.diag([0.0, 0.123457, 0.123456]))  # rounded in a file
    add("point", 0.0)


def test_what_is_no_joint():
    link = four_bar().linkage
    before = (link.bodies, link.joints)
    add = link.add_joint
    refused("a joint of 'four_bar' has this name", add, "pin", "revolute", "crank", "rocker")
    refused("a body of 'four_bar' has this name", add, "crank", "revolute", "crank", "rocker")
    refused("did you mean 'revolute'", add, "x", "revolut", "crank", "rocker")
    refused("planar", add, "x", None, "crank", "rocker")
    refused("same body 'crank'", add, "x", "revolute", "crank", "crank")
    refused("is the name of the ground", add, "universe", "weld", "rocker", "crank")
    refused("pinocchio.SE3; got list", add, "x", "weld", "rocker", "crank", [0, 0, 0])
    bad = pin.SE3(1.1 * np.eye(3), np.zeros(3))
    refused("placement_child has a rotation", add, "x", "weld", "rocker", "crank", None, bad)
    refused("not finite", add, "x", "weld", "rocker", "crank", at(np.nan))
    refused("parent must be a text", add, "x", "weld", 3, "crank")
    assert (link.bodies, link.joints) == before
    refused(r"gravity.*shape \(3,\)", hc.Linkage, "x", -9.81)
    refused("text", hc.Linkage, None)


def test_bodies_that_hang_on_nothing():
    link = four_bar().linkage
    add_lump(link, "stone", 1.0)
    refused("'stone'; is a joint missing.*free joint from 'universe'", link.mechanism)
    link.add_joint("tip", "revolute", "rocker", "stne")
    refused("joint 'tip': there is no body called 'stne'.*'stone'", link.mechanism)
    refused("no joints", hc.Linkage().mechanism)


def test_cuts_that_make_no_tree():
    link = umbrella().linkage
    refused("no joint called 'pin'", link.mechanism, cut=["pin", "pin_2"])
    refused("twice", link.mechanism, cut=["pin_1", "pin_1"])
    refused("list of names", link.mechanism, cut="pin_1")
    refused(
        "cut 'pin_1' leaves 1 loop: 'pin_2' closes the loop 'pin_2', 'hub_2', 'shaft', 'foot_2'",
        link.mechanism, cut=["pin_1"],
    )  # fmt: skip
    refused(
        "separates 'strut_1' from the ground; keep one of 'foot_1', 'pin_1'",
        link.mechanism, cut=["pin_1", "foot_1"],
    )  # fmt: skip
    refused("separates", link.mechanism, cut=["pin_1", "pin_2", "foot_1"])
    link = hc.Linkage()
    add_lump(link, "a", 1.0)
    add_lump(link, "b", 1.0)
    link.add_joint("1", "free", "universe", "a")
    link.add_joint("2", "revolute", "a", "b")
    refused("separates 'a', 'b' from the ground; keep '1'", link.mechanism, cut=["1"])
    link.add_joint("3", "spherical", "universe", "b")
    refused("free joint '1' would be cut", link.mechanism, cut=["1"])
    assert link.mechanism().constraint_names == ("3",)


def test_loops_that_are_none():
    link = hc.Linkage()
    for name in "abc":
        add_lump(link, name, 1.0)
    link.add_joint("1", "revolute", "universe", "a")
    link.add_joint("2", "weld", "a", "b")
    link.add_joint("3", "weld", "b", "c")
    link.add_joint("4", "revolute", "a", "c")
    refused("'4' closes the loop '4', '3', '2', where welds make one body", link.mechanism)
    assert link.mechanism(cut=["2"]).constraint_names == ("2",)
    link = hc.Linkage()
    add_lump(link, "a", 1.0)
    add_lump(link, "b", 1.0)
    for name, ends in (("1", ("universe", "a")), ("2", ("universe", "b")), ("3", ("a", "b"))):
        link.add_joint(name, "free", *ends)
    refused("free joint '3' would be cut", link.mechanism)


@pytest.mark.parametrize("kind", ["universal", "revolute", "spherical", "weld"])
def test_names_that_joints_need_themselves(kind):
    link = hc.Linkage()
    add_lump(link, "a", 1.0)
    add_lump(link, "u[0]", 1.0)
    link.add_joint("u", kind, "universe", "a")
    link.add_joint("x", "revolute", "a", "u[0]")
    refused("need these names themselves.*: 'u\\[0\\]'", link.mechanism)


def test_motors_and_references_that_do_not_fit():
    case = four_bar()
    link = case.linkage
    refused("did you mean 'motor'", link.mechanism, actuated=["moto"])
    refused("twice", link.mechanism, actuated=["motor", "motor"])
    refused("'pin' is cut in this mechanism", link.mechanism, reference={"pin": 1.0})
    refused("no joint called 'pn'", link.mechanism, reference={"pn": 1.0})
    refused("mapping", link.mechanism, reference=[1.0, 2.0, 3.0])
    refused(r"reference\['motor'\].*shape \(1,\)", link.mechanism, reference={"motor": [1, 2]})
    refused("finite", link.mechanism, reference={"motor": np.nan})
    link, _, _ = closed_by("spherical")
    refused("valid names.*'end\\[0\\]'", link.mechanism, actuated=["end"])
    refused(r"shape \(4,\)", link.mechanism, cut=["j1"], reference={"end": 1.0})
    refused("norm 1", link.mechanism, cut=["j1"], reference={"end": [0, 0, 0, 2]})
    link, _, _ = closed_by("spherical", outwards=False)
    refused(
        "'body_4' is carried by 'universe'.*'end\\[1\\]' would act in other axes",
        link.mechanism, cut=["j1"], actuated=["end[1]"],
    )  # fmt: skip
    refused("other axes", link.mechanism, cut=["end"], actuated=["end[1]"])
    refused("is zero", link.mechanism, cut=["j1"], reference={"end": [0, 0, 0, 0]})
    link = hc.Linkage()
    add_lump(link, "a", 1.0)
    add_lump(link, "b", 1.0)
    link.add_joint("1", "revolute", "universe", "a")
    link.add_joint("2", "weld", "a", "b")
    refused("a weld has no coordinate", link.mechanism, reference={"2": 1.0})
