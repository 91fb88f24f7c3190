"""Mechanisms and sensors on which the closed state from measurements is put to the test."""

from __future__ import annotations

from functools import cache

import overconstrained_loops as loops
import overconstrained_nets as nets
import zoo
from shared_robots import shared_robot

import holoctl as hc

SHIPPED = ("four_bar", "five_bar", "leg", "delta", "stewart", "geared_arm", "ankle")
SHARED = ("5bar_linkage", "5bar_linkage_iso6d", "cassie_like", "disney_like")


def _three_arms(cut=None):
    return nets.planar_3rrr().mechanism(**({"cut": cut} if cut else {}))


def _cut_five_bar():
    return zoo.five_bar("revolute"), ("left", "tip")


def _redundant_arms():
    mech = _three_arms()
    passive = [n for n in mech.coordinate_names if n not in mech.actuated and "rod" in n]
    return mech, (*mech.actuated, *passive[:2])


OWN = {
    "three_arms": lambda: (_three_arms(), None),
    "three_arms_5": _redundant_arms,
    "bricard": lambda: (zoo.bricard(), None),
    "bricard_cut": lambda: (zoo.bricard(), ("hinge",)),
    "line_bricard": lambda: (loops.line_symmetric_bricard().mechanism(), None),
    "bennett": lambda: (zoo.bennett(), None),
    "askew_four_bar": lambda: (loops.four_bar().mechanism(askew=True), None),
    "watt": lambda: (nets.watt().mechanism(), None),
    "stephenson": lambda: (nets.stephenson().mechanism(), None),
    "jansen": lambda: (nets.jansen().mechanism(), None),
    "cut_five_bar": _cut_five_bar,
    "five_bar_3": lambda: (zoo.five_bar(), ("left", "right", "left_rod")),
    "five_bar_4": lambda: (zoo.five_bar("revolute"), ("left", "right", "left_rod", "tip")),
    "floating_leg": lambda: (zoo.floating_leg(), ("hip", "motor_crank", "wheel", "head")),
    "geared_slider": lambda: (zoo.geared_slider(), None),
    "rack": lambda: (zoo.geared_slider(), ("rack",)),
    "slider_crank": lambda: (zoo.slider_crank("slider"), None),
    "timed_arm": lambda: (zoo.timed_arm(), None),
    "hung_plate": lambda: (zoo.hung_plate(), ("plate",)),
    "idle_rod": lambda: (zoo.idle_rod(), None),
    "universal_rods": lambda: (
        zoo.universal_rods(),
        ("turntable", "rod_1[0]", "rod_1[1]", "plate"),
    ),
    "screw_chain": lambda: (zoo.ZOO["screw_chain"](), None),
    "cylindrical_cut": lambda: (zoo.ZOO["cylindrical_chain"](), ("j3", "j0")),
    "parallelogram": lambda: (zoo.parallelogram(), None),
    "press": lambda: (loops.press().mechanism(), None),
    "wedges": lambda: (loops.wedges().mechanism(), None),
    "oldham": lambda: (loops.oldham().mechanism(), None),
    "shafts_and_rod": lambda: (nets.shafts_and_rod().mechanism(), None),
    "tripteron": lambda: (nets.tripteron().mechanism(), None),
    "rods_delta": lambda: (nets.delta(hinged=False).mechanism(), None),
}


@cache
def case(name):
    """A mechanism and the names of its sensors."""
    if name in OWN:
        mech, measured = OWN[name]()
    elif name in SHIPPED:
        mech, measured = hc.load(hc.robot_file(name)), None
    else:
        mech, measured = hc.load(shared_robot(name)), None
        if name == "disney_like":
            measured = (*mech.actuated, "free_universal4")
    return mech, measured


@cache
def prepared(name):
    """One `ClosedStateEstimator` for the tests that reset it first."""
    mech, measured = case(name)
    return hc.ClosedStateEstimator(mech, measured)
