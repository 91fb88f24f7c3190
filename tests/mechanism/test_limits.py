"""Limits: what a caller may say, what is refused, and their order on a mechanism."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pinocchio as pin
import pytest
from cut_loops import closed_by
from refusals import refused
from zoo import add_body, at, five_bar, lump, one_of_each

import holoctl as hc
from holoctl.mechanism.bound_limits import bound_limits
from holoctl.mechanism.mechanism import workspace
from holoctl.tree.kinematics import kinematics

INF = np.inf
CURVE = [(0, 10), (5.0, 4), (20, 0)]

# ------------------------------------------------------------------------------ values alone

SAME = {
    "numbers": ({"effort": 5}, {"effort": 5.0}),
    "numpy": ({"effort": np.float32(5)}, {"effort": 5.0}),
    "pairs": ({"effort": (0, 200)}, {"effort": (0.0, np.int64(200))}),
    "lists": ({"velocity": [2, (-1, 3)]}, {"velocity": ((-2.0, 2.0), (-1.0, 3.0))}),
    "arrays": ({"velocity": np.array([2.0, 3.0])}, {"velocity": [2.0, 3.0]}),
    "rows": ({"position": np.array([[0.0, 1.0], [2.0, 3.0]])}, {"position": [(0, 1), [2, 3]]}),
    "mappings": ({"position": {"a": (0, 1), "b": 2}}, {"position": {"b": 2.0, "a": [0, 1]}}),
    "curves": ({"speed_torque": CURVE}, {"speed_torque": np.array(CURVE)}),
    "curves by name": ({"speed_torque": {"a": CURVE}}, {"speed_torque": {"a": tuple(CURVE)}}),
    "nothing": ({}, {"effort": None, "speed_torque": None, "velocity": {}}),
}


@pytest.mark.parametrize("case", SAME)
def test_what_was_given_decides_whether_limits_are_equal(case):
    one, other = (hc.Limits(**given) for given in SAME[case])
    assert one == other
    assert hash(one) == hash(other)
    for twin in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), dataclasses.replace(one)):
        assert twin == one
        assert hash(twin) == hash(one)
        assert repr(twin) == repr(one)
    assert eval(repr(one), {"Limits": hc.Limits}) == one  # our own
    assert one != hc.Limits(acceleration=1.0)


def test_a_tuple_of_two_numbers_is_a_pair_and_a_list_an_entry_for_each_motor():
    pair, each = hc.Limits(effort=(3, 4)), hc.Limits(effort=[3, 4])
    assert pair != each
    assert bound_limits(five_bar(), pair).effort.tolist() == [[3.0, 3.0], [4.0, 4.0]]
    assert bound_limits(five_bar(), each).effort.tolist() == [[-3.0, -4.0], [3.0, 4.0]]


def test_limits_do_not_change():
    given = {"left": 2.0}
    limits = hc.Limits(effort=given)
    given["left"] = 9.0
    assert limits.effort["left"] == 2.0
    with pytest.raises(TypeError):
        limits.effort["left"] = 9.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        limits.velocity = 3.0
    assert dataclasses.replace(limits, effort=5).effort == 5.0


WRONG = {
    "zero": ({"effort": 0}, "effort", "above zero"),
    "negative": ({"velocity": -2.0}, "velocity", "above zero", "-2"),
    "nan": ({"effort": INF - INF}, "effort", "nan"),
    "nan in a pair": ({"position": (0.0, np.nan)}, "position", "nan"),
    "swapped": ({"position": {"knee": (1, -1)}}, "knee", "below the upper", "(1, -1)"),
    "empty range": ({"effort": {"a": (0, 0)}}, "'a'", "below the upper"),
    "infinite and wrong": ({"effort": (INF, INF)}, "below the upper"),
    "rates exclude zero": ({"velocity": (1, 2)}, "velocity", "zero", "(1, 2)"),
    "braking only": ({"acceleration": {"a": (-1, 0)}}, "acceleration", "zero", "(-1, 0)"),
    "text": ({"effort": "5"}, "effort", "'5'", "mapping"),
    "text in a mapping": ({"effort": {"a": "5"}}, "'a'", "number or a pair"),
    "true": ({"effort": True}, "effort", "mapping"),
    "true in a list": ({"effort": [True, 2.0]}, "entry 0", "number or a pair"),
    "none in a list": ({"effort": [None, 2.0]}, "entry 0", "number or a pair"),
    "three numbers": ({"effort": {"a": (1, 2, 3)}}, "'a'", "number or a pair"),
    "a tuple of three": ({"effort": (1, 2, 3)}, "tuple", "list"),
    "a mixed tuple": ({"effort": (1, (2, 3))}, "tuple", "list"),
    "a pair as a list": ({"effort": [-5, 5]}, "entry 0", "tuple (lower, upper)"),
    "an array": ({"effort": np.ones((2, 2, 2))}, "entry 0", "number or a pair"),
    "no dimension": ({"effort": np.array(3.0)}, "effort", "mapping"),
    "masked": ({"effort": np.ma.masked_array([1.0, 2.0], [True, False])}, "entry 0"),
    "a set": ({"effort": {1.0, 2.0}}, "effort", "mapping"),
    "names": ({"effort": {3: 1.0}}, "names", "3"),
    "complex": ({"effort": 1j}, "effort", "mapping"),
    "no points": ({"speed_torque": []}, "speed_torque", "break points"),
    "a number for a curve": ({"speed_torque": 5.0}, "speed_torque", "break points"),
    "points of three": ({"speed_torque": [(0, 1, 2)]}, "break points"),
    "starts late": ({"speed_torque": [(1, 5), (2, 3)]}, "first speed", "1"),
    "speeds": ({"speed_torque": {"a": [(0, 5), (2, 3), (2, 2)]}}, "'a'", "increasing", "2 after 2"),
    "efforts": ({"speed_torque": [(0, 5), (2, 6)]}, "increase", "6 after 5"),
    "no stall": ({"speed_torque": [(0, 0)]}, "above zero"),
    "regenerates": ({"speed_torque": [(0, 5), (2, -1)]}, "negative"),
    "infinite speed": ({"speed_torque": [(0, 5), (INF, 1)]}, "finite"),
    "nan effort": ({"speed_torque": [(0, np.nan)]}, "finite"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_value_that_cannot_be_meant_is_refused(case):
    given, *words = WRONG[case]
    refused(lambda: hc.Limits(**given), hc.InputError, *words)


def test_scaled():
    limits = hc.Limits(
        effort={"a": 4.0, "cable": (10, 200), "push": (-200, -10), "one": (-INF, 8)},
        velocity=(-1, 2), acceleration=[2, (-4, 6)], position={"a": (1, 3), "b": (0, INF), "c": 2},
        speed_torque={"a": CURVE},
    )  # fmt: skip
    assert limits.scaled(0.5) == hc.Limits(
        effort={"a": 2.0, "cable": (10, 100), "push": (-100, -10), "one": (-INF, 4)},
        velocity=(-0.5, 1), acceleration=[1, (-2, 3)],
        position={"a": (1.5, 2.5), "b": (0, INF), "c": 1},
        speed_torque={"a": [(0, 5), (5, 2), (20, 0)]},
    )  # fmt: skip
    assert limits.scaled(1) == limits
    assert hc.Limits(speed_torque=CURVE).scaled(0.1).speed_torque[0] == (0.0, 1.0)
    refused(lambda: limits.scaled(0.04), hc.InputError, "scaled(0.04)", "cable")
    for factor in (0.0, -1.0, 1.1, np.nan, "0.5", True):
        refused(lambda factor=factor: limits.scaled(factor), hc.InputError, "factor")


# ------------------------------------------------------------------------------ on a mechanism


def test_everything_stands_in_the_order_of_the_mechanism():
    mech = five_bar("revolute")
    limits = hc.Limits(
        effort={"right": (0, 7)}, velocity={"tip": 3, "right": 4, "right_rod": INF},
        position={"right": (-1, 2), "left_rod": (-2.5, INF), "tip": (-3, 1)}, acceleration=50,
        speed_torque={"left": CURVE},
    )  # fmt: skip
    b = bound_limits(mech, limits)
    assert b.limits is limits
    assert b.effort.tolist() == [[-10.0, 0.0], [10.0, 7.0]]
    assert b.curves[1] is None
    assert b.curves[0].tolist() == [[0.0, 5.0, 20.0], [10.0, 4.0, 0.0]]
    assert b.names == ("left", "left_rod", "right", "tip")
    assert b.columns.tolist() == [0, 1, 2]
    assert b.places.tolist() == [0, 1, 2]
    assert b.position.tolist() == [[-INF, -2.5, -1.0, -3.0], [INF, INF, 2.0, 1.0]]
    assert b.velocity.tolist() == [[-INF, -INF, -4.0, -3.0], [INF, INF, 4.0, 3.0]]
    assert b.acceleration.tolist() == [[-50.0, -INF, -50.0, -INF], [50.0, INF, 50.0, INF]]
    assert b.units.tolist() == [1.0] * 4
    assert [(joint.name, i) for joint, i in b.cut] == [("tip", 0)]
    arrays = [getattr(b, f.name) for f in dataclasses.fields(b)] + [b.curves[0]]
    assert not any(x.flags.writeable for x in arrays if isinstance(x, np.ndarray))
    twin = pickle.loads(pickle.dumps(b))
    assert twin.names == b.names
    assert np.array_equal(twin.position, b.position)


def test_nothing_is_no_limit():
    mech = five_bar()
    b = bound_limits(mech, hc.Limits())
    assert b.effort.tolist() == [[-INF, -INF], [INF, INF]]
    assert b.names == b.cut == ()
    assert b.curves == (None, None)
    assert [x.shape for x in (b.columns, b.places, b.units)] == [(0,)] * 3
    assert [x.shape for x in (b.position, b.velocity, b.acceleration)] == [(2, 0)] * 3


def test_the_stall_effort_is_a_limit_and_the_smaller_counts():
    limits = hc.Limits(effort=[(3, 40), (-40, -3)], speed_torque=CURVE)
    assert bound_limits(five_bar(), limits).effort.tolist() == [[3.0, -10.0], [10.0, -3.0]]
    weak = hc.Limits(effort={"left": (11, 40)}, speed_torque=CURVE)
    refused(lambda: bound_limits(five_bar(), weak), hc.InputError, "'left'", "standstill", "10")


def test_coordinates_of_every_kind_of_joint():
    """Rates of all may be limited, positions of those that are numbers of q."""
    mech = hc.Mechanism(one_of_each(), actuated=["hinge"])
    b = bound_limits(mech, hc.Limits(velocity={"base": 1, "ball": 2, "wheel": 3, "sled[2]": 4}))
    assert b.names == (
        "base[0]", "base[1]", "base[2]", "base[3]", "base[4]", "base[5]",
        "ball[0]", "ball[1]", "ball[2]", "wheel", "sled[2]",
    )  # fmt: skip
    assert b.places.tolist() == [-1] * 11
    assert b.columns.tolist() == [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 18]
    assert b.velocity[1].tolist() == [1.0] * 6 + [2.0] * 3 + [3.0, 4.0]
    assert np.array_equal(b.units, mech.column_scale[b.columns])
    assert b.units[0] != 1.0
    b = bound_limits(mech, hc.Limits(position=(-1, 1)))
    assert (b.names, b.columns.tolist(), b.places.tolist()) == (("hinge",), [6], [7])
    for name in ("base[0]", "ball", "ball[1]", "wheel", "wrist[4]", "sled[0]"):
        limits = hc.Limits(position={name: (-1, 1)})
        why = "continuous" if name == "wheel" else "is not a number"
        refused(lambda x=limits: bound_limits(mech, x), hc.InputError, f"'{name}'", why)
    assert bound_limits(mech, hc.Limits(position={"wheel": INF, "ball": INF})).names == ()
    wheel = dataclasses.replace(mech, actuated=["hinge", "wheel"])
    refused(lambda: bound_limits(wheel, hc.Limits(position=1.0)), hc.InputError, "'wheel'")


def test_places_in_q_behind_joints_of_more_numbers():
    mech = hc.Mechanism(one_of_each())
    model = mech.model.copy()
    body = lump(np.random.default_rng(3))
    add_body(model, model.njoints - 1, pin.JointModelPZ(), at(0.1), "slide", body)
    b = bound_limits(hc.Mechanism(model), hc.Limits(position={"slide": (0, 0.2), "hinge": 1}))
    assert b.names == ("hinge", "slide")
    assert b.columns.tolist() == [6, 19]
    assert b.places.tolist() == [7, 24]
    q = np.arange(model.nq, dtype=float)
    assert q[b.places].tolist() == [model.idx_qs[2], model.idx_qs[model.njoints - 1]]


@pytest.mark.parametrize("kind", ["prismatic", "cylindrical", "universal", "planar", "screw"])
def test_coordinates_of_cut_joints(kind):
    """A joint, or one of its coordinates; its motion is that of `joint_motion`."""
    link, reference, _ = closed_by(kind)
    mech = link.mechanism(cut=["end"], reference=reference)
    b = bound_limits(mech, hc.Limits(velocity={"end": 2}))
    q, v = hc.assemble(mech)
    motion = hc.joint_motion(mech, "end", q, v)
    count = motion.rate.size
    assert b.names == (("end",) if count == 1 else tuple(f"end[{i}]" for i in range(count)))
    assert b.velocity.tolist() == [[-2.0] * count, [2.0] * count]
    assert [i for _, i in b.cut] == list(range(count))
    found = b.cut[-1][0].at(kinematics(mech.model, workspace(mech), q, v, 0.0))
    assert np.array_equal(found.value, motion.value)
    assert np.array_equal(found.jacobian, motion.jacobian)
    linear = {"prismatic": [True], "cylindrical": [True, False], "planar": [True, True, False]}
    lengths = 1.0 / mech.row_scale[mech.row_scale != 1.0]
    for unit, is_linear in zip(b.units, linear.get(kind, [False] * count), strict=True):
        assert unit == (lengths[0] if is_linear else 1.0)
    last = f"end[{count - 1}]"
    one = bound_limits(mech, hc.Limits(position={last: (-1, 1)}))
    assert [i for _, i in one.cut] == [count - 1]
    assert one.cut[0][0].count == count
    twice = hc.Limits(velocity={"end": 1, last: 2})
    refused(lambda: bound_limits(mech, twice), hc.InputError, "'end'", f"'{last}'", "same")
    far = hc.Limits(position={last: (-4, 1)})
    if kind == "prismatic":
        assert bound_limits(mech, far).position.tolist() == [[-4.0], [1.0]]
    else:
        refused(lambda: bound_limits(mech, far), hc.InputError, "pi", "cut")
    refused(lambda: bound_limits(mech, hc.Limits(velocity={f"end[{count}]": 1})), hc.InputError,
            "numbered from 0")  # fmt: skip


def test_cut_balls_have_rates_and_no_positions():
    link, reference, _ = closed_by("spherical")
    mech = link.mechanism(cut=["end"], reference=reference)
    assert bound_limits(mech, hc.Limits(velocity={"end[1]": 2})).names == ("end[1]",)
    refused(lambda: bound_limits(mech, hc.Limits(position={"end[1]": 1})), hc.InputError, "end[1]")
    link, reference, _ = closed_by("weld")
    mech = link.mechanism(cut=["end"], reference=reference)
    refused(lambda: bound_limits(mech, hc.Limits(velocity={"end": 1})), hc.InputError, "weld")


def test_a_ball_upside_down_has_the_rates_of_the_ball_that_was_described():
    link = hc.Linkage("arm")
    for name in ("upper", "lower"):
        link.add_body(name, 1.0, [0.1, 0.02, 0.03], 0.01 * np.eye(3))
    link.add_joint("shoulder", "revolute", "universe", "upper")
    link.add_joint("ball", "spherical", "lower", "upper", at(0.3), at(0.2))
    mech = link.mechanism()
    b = bound_limits(mech, hc.Limits(velocity={"ball": 2, "shoulder": 1}))
    assert b.names == ("shoulder", "ball[0]", "ball[1]", "ball[2]")
    assert b.columns.tolist() == [0]
    assert [(joint.name, i) for joint, i in b.cut] == [("ball", 0), ("ball", 1), ("ball", 2)]
    assert b.units.tolist() == [1.0] * 4


def test_closures_that_are_switched_off_limit_nothing():
    mech = five_bar("revolute").with_enabled(tip=False)
    limits = hc.Limits(velocity={"tip": 2, "left": 1})
    assert bound_limits(mech, limits).names == ("left",)
    refused(lambda: bound_limits(mech, hc.Limits(velocity={"tip[1]": 1})), hc.InputError, "tip[1]")
    assert bound_limits(mech.with_enabled(tip=True), limits).names == ("left", "tip")


def test_motors_by_a_matrix():
    mech = dataclasses.replace(five_bar(), actuated=[], actuation=np.eye(4)[:, :3])
    b = bound_limits(mech, hc.Limits(effort={"u[2]": (0, 3)}, velocity={"left": 2}))
    assert b.effort.tolist() == [[-INF, -INF, 0.0], [INF, INF, 3.0]]
    assert b.names == ("left",)
    assert bound_limits(mech, hc.Limits(effort=3)).effort.tolist() == [[-3.0] * 3, [3.0] * 3]
    refused(lambda: bound_limits(mech, hc.Limits(velocity=2)), hc.InputError, "matrix", "mapping")


MISFITS = {
    "no limits": ({"left": 2.0}, "hc.Limits", "dict"),
    "unknown motor": (hc.Limits(effort={"lefft": 2}), "'lefft'", "did you mean 'left'", "right"),
    "no motor there": (hc.Limits(effort={"left_rod": 2}), "'left_rod'", "motor"),
    "unknown motor of a curve": (hc.Limits(speed_torque={"knee": CURVE}), "'knee'", "motor"),
    "unknown joint": (hc.Limits(velocity={"lefft": 2}), "velocity", "'lefft'", "did you mean"),
    "a closure by axes": (hc.Limits(position={"tip": 2}), "'tip'", "no joint"),
    "too few": (hc.Limits(effort=[2]), "1 for 2 motors", "'left', 'right'"),
    "too many": (hc.Limits(velocity=[2, 3, 4]), "3 for 2 motors"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_what_does_not_fit_the_mechanism_is_refused(case):
    limits, *words = MISFITS[case]
    refused(lambda: bound_limits(five_bar(), limits), hc.InputError, *words)


def test_every_motor_of_none():
    mech = dataclasses.replace(five_bar(), actuated=[])
    for what in ("effort", "velocity", "position", "acceleration"):
        limits = hc.Limits(**{what: 2})
        refused(lambda limits=limits: bound_limits(mech, limits), hc.InputError, what, "none")
    refused(lambda: bound_limits(mech, hc.Limits(speed_torque=CURVE)), hc.InputError, "none")
    assert bound_limits(mech, hc.Limits(velocity={"left": 2})).names == ("left",)
