"""The Mechanism and its frames: what it copies, keeps, names, refuses; and where rows vanish."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
import pytest
from zoo import ZOO, _add, _at, _bar, _inertia, _vertical, five_bar, floating_leg, four_bar

import holoctl as hc
from holoctl.mechanism.mechanism import constraint_rows, row_names

ROUNDING = 1e-12
"""Relative error of quantities that differ by the order of operations only."""


def unlike(a, b):
    """Largest difference of two arrays, relative to 1 + their size."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    return np.abs(a - b).max(initial=0.0) / (1.0 + np.abs(b).max(initial=0.0))


def closed_state(mech, seed=0):
    """A closed configuration near the reference, and an admissible velocity of order one."""
    rng = np.random.default_rng(seed)
    guess = pin.integrate(mech.model, mech.reference, 0.1 * rng.normal(size=mech.nv))
    return hc.assemble(mech, guess, rng.normal(size=mech.nv))


def rows_at(mech, q, v):
    """All constraint rows, as four arrays."""
    rows = constraint_rows(mech, q, v)[1]
    return rows.error, rows.rate, rows.jacobian, rows.drift


def numbers(mech, q, v):
    """All a user gets from a mechanism at a state, as arrays by name."""
    target = np.linspace(-1.0, 2.0, mech.nu)
    part = hc.partition(mech, q)
    P = hc.project(mech, q, v, partition=part)
    inverse = hc.inverse_dynamics(mech, q, v, target, inconsistent="project", projection=P)
    forward = hc.forward_dynamics(mech, q, v, mech.B @ inverse.u, projection=P)
    error, rate, jacobian, drift = rows_at(mech, q, v)
    return {
        "error": error, "rate": rate, "jacobian": jacobian, "drift": drift,
        "kept rows": part.rows, "independent": part.independent, "dependent": part.dependent,
        "rank": part.rank, "gamma": P.gamma, "bias": P.bias,
        "u": inverse.u, "multipliers": inverse.multipliers, "a": forward.a,
        "row scale": mech.row_scale, "column scale": mech.column_scale, "B": mech.B,
        "reference": mech.reference,
    }  # fmt: skip


def assert_same(one, other):
    """Two answers of `numbers` agree entry for entry."""
    assert one.keys() == other.keys()
    different = [k for k in one if not np.array_equal(one[k], other[k])]
    assert not different


def two_hinges(*frames):
    """A tree of two hinges with extra frames (name, joint, x, type)."""
    model = pin.Model()
    for name, x in (("left", 0.0), ("right", 0.5)):
        joint = model.addJoint(0, pin.JointModelRZ(), _at(x), name)
        model.addJointFrame(joint)
        model.appendBodyToJoint(joint, _bar(0.3), _at())
    for name, joint, x, kind in frames:
        model.addFrame(pin.Frame(name, model.getJointId(joint), 0, _at(x), kind), False)
    return model


BODY, OP, SENSOR = pin.FrameType.BODY, pin.FrameType.OP_FRAME, pin.FrameType.SENSOR


def gap_between(model, a, b):
    """Position of frame b seen from frame a at the neutral configuration."""
    mech = hc.Mechanism(model, [hc.Closure(a, b, axes="x y z")])
    return rows_at(mech, mech.reference, np.zeros(mech.nv))[0]


# ------------------------------------------------------------------------ a private copy


def test_changing_the_given_model_changes_nothing():
    model = four_bar().model.copy()
    mech = dataclasses.replace(four_bar(), model=model)
    state = closed_state(mech)
    before = numbers(mech, *state)
    model.gravity.linear = np.zeros(3)
    model.inertias[1] = pin.Inertia.Random()
    model.jointPlacements[2] = pin.SE3.Random()
    model.armature = np.ones(3)
    model.names[1] = "renamed"
    assert_same(numbers(mech, *state), before)
    assert mech.coordinate_names == ("crank", "coupler", "rocker")


def test_changing_the_given_arrays_and_lists_changes_nothing():
    one = four_bar()
    B, reference, loops = np.eye(3)[:, :1], np.array(one.reference), [*one.constraints]
    mech = hc.Mechanism(one.model, loops, actuation=B, reference=reference)
    state = closed_state(mech)
    before = numbers(mech, *state)
    B[:] = 7.0
    reference[:] = 7.0
    loops.clear()
    assert_same(numbers(mech, *state), before)


def test_changing_the_given_coefficients_changes_nothing():
    coefficients = {"crank": 1.0, "rocker": -2.0}
    mech = hc.Mechanism(four_bar().model, [hc.Coupling(coefficients, name="gear")])
    coefficients["crank"] = 5.0
    for m in (mech, pickle.loads(pickle.dumps(mech)), dataclasses.replace(mech)):
        assert rows_at(m, m.reference, np.zeros(3))[2].tolist() == [[1.0, 0.0, -2.0]]


def test_changing_the_placement_given_to_a_closure_changes_nothing():
    """Neither in the mechanism nor in the copies and variants made of it later."""
    place = _at(0.5)
    loop = hc.Closure(("coupler", place), ("rocker", _at(0.5)), axes="x y", name="pin")
    mech = dataclasses.replace(four_bar(), constraints=[loop])
    state = closed_state(mech)
    before = numbers(mech, *state)
    place.translation = np.array([9.0, 9.0, 9.0])
    for m in (mech, pickle.loads(pickle.dumps(mech)), dataclasses.replace(mech)):
        assert_same(numbers(m, *state), before)


def test_changing_a_returned_configuration_changes_nothing():
    mech = four_bar()
    q, _ = hc.assemble(mech)
    before = q.copy()
    q[:] = 0.0
    assert np.array_equal(hc.assemble(mech)[0], before)


def test_it_is_frozen():
    mech = four_bar()
    for f in dataclasses.fields(mech):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mech, f.name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del mech.model


@pytest.mark.parametrize("array", ["B", "reference", "row_scale", "column_scale"])
def test_its_arrays_are_not_writable(array):
    for mech in (four_bar(), hc.Mechanism(four_bar().model, actuation=np.eye(3))):
        for m in (mech, pickle.loads(pickle.dumps(mech)), copy.deepcopy(mech)):
            with pytest.raises(ValueError, match="read-only"):
                getattr(m, array)[...] = 1.0


def test_results_are_not_views_of_the_workspace():
    """A later call at another state must not reach into an earlier result."""
    mech = floating_leg()
    first, second = closed_state(mech, 1), closed_state(mech, 2)
    P = hc.project(mech, *first)
    inverse = hc.inverse_dynamics(mech, *first, np.ones(3), projection=P)
    forward = hc.forward_dynamics(mech, *first, mech.B @ inverse.u, projection=P)
    held = [
        P.gamma, P.bias, P.q, P.v, P.rows.jacobian, P.rows.error, P.rows.drift, P.kinematics.J,
        *(M.homogeneous for M in P.kinematics.placements),
        inverse.u, inverse.a, inverse.multipliers, forward.a, forward.multipliers,
    ]  # fmt: skip
    before = copy.deepcopy(held)
    numbers(mech, *second)
    assert all(np.array_equal(x, y) for x, y in zip(held, before, strict=True))
    now = [M.homogeneous for M in P.kinematics.placements]
    then = [M.homogeneous for M in hc.project(mech, *first).kinematics.placements]
    assert np.array_equal(now, then)


# --------------------------------------------------------------- pickle, copy, replace

COPIES = {
    "pickle": lambda mech: pickle.loads(pickle.dumps(mech)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "replace": dataclasses.replace,
}


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", ZOO)
def test_a_copy_gives_the_same_numbers(name, how):
    mech = ZOO[name]()
    state = closed_state(mech)
    twin = COPIES[how](mech)
    assert twin is not mech
    assert repr(twin) == repr(mech)
    assert twin.name == mech.name
    assert twin.coordinate_names == mech.coordinate_names
    assert twin.constraint_names == mech.constraint_names
    assert twin.actuated == mech.actuated
    assert row_names(twin) == row_names(mech)
    assert_same(numbers(twin, *state), numbers(mech, *state))


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_owns_its_model(how):
    mech = four_bar()
    state = closed_state(mech)
    before = numbers(mech, *state)
    COPIES[how](mech).model.gravity.linear = np.zeros(3)
    assert_same(numbers(mech, *state), before)


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_keeps_a_general_actuation(how):
    B = np.array([[1.0, 0.5], [0.0, 2.0], [0.0, -1.0]])
    twin = COPIES[how](hc.Mechanism(four_bar().model, actuation=B))
    assert np.array_equal(twin.B, B)
    assert twin.actuator_names == ("u[0]", "u[1]")


def test_results_pickle_and_copy():
    mech = floating_leg()
    q, v = closed_state(mech)
    part = hc.partition(mech, q)
    P = hc.project(mech, q, v, partition=part)
    inverse = hc.inverse_dynamics(mech, q, v, np.ones(3), projection=P)
    forward = hc.forward_dynamics(mech, q, v, mech.B @ inverse.u, projection=P)
    run = hc.simulate(mech, lambda t, q, v: inverse.u, q, v, 0.002)
    for result in (part, P, inverse, inverse.certificate, forward, run):
        for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert type(twin) is type(result)
            for f in dataclasses.fields(result):
                value = getattr(result, f.name)
                if isinstance(value, np.ndarray | float | int | str):
                    assert np.array_equal(getattr(twin, f.name), value), f.name


def test_a_pickled_projection_can_be_shared():
    mech = five_bar()
    q, v = closed_state(mech)
    P = pickle.loads(pickle.dumps(hc.project(mech, q, v)))
    u = hc.inverse_dynamics(P.mechanism, q, v, [1.0, 2.0], projection=P).u
    assert unlike(u, hc.inverse_dynamics(mech, q, v, [1.0, 2.0]).u) < ROUNDING


def test_a_pickled_controller_gives_the_same_torque():
    mech = five_bar()
    q, v = closed_state(mech)
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    u = ctl.torque(q, v, [2.0, 1.0], [0.0, 0.0], [1.0, -1.0])
    for twin in (pickle.loads(pickle.dumps(ctl)), copy.deepcopy(ctl)):
        assert np.array_equal(twin.torque(q, v, [2.0, 1.0], [0.0, 0.0], [1.0, -1.0]), u)


def test_replace_the_model():
    """Twice the mass at the same inertia per mass: twice the torque, nothing else changes."""
    mech = four_bar()
    heavy = mech.model.copy()
    for j in range(1, heavy.njoints):
        body = heavy.inertias[j]
        heavy.inertias[j] = pin.Inertia(2.0 * body.mass, body.lever, 2.0 * body.inertia)
    twin = dataclasses.replace(mech, model=heavy)
    q, v = closed_state(mech)
    one, two = numbers(mech, q, v), numbers(twin, q, v)
    assert np.abs(one["u"]).min() > 0.1
    assert unlike(two.pop("u"), 2.0 * one.pop("u")) < ROUNDING
    assert unlike(two.pop("multipliers"), 2.0 * one.pop("multipliers")) < ROUNDING
    assert all(unlike(two[k], one[k]) < ROUNDING for k in one)


def test_replace_motors_constraints_and_name():
    mech = four_bar()
    assert dataclasses.replace(mech, actuated=["rocker"]).B[:, 0].tolist() == [0.0, 0.0, 1.0]
    assert dataclasses.replace(mech, constraints=[]).row_scale.shape == (0,)
    assert dataclasses.replace(mech, name="other").name == "other"
    general = dataclasses.replace(mech, actuated=[], actuation=np.eye(3))
    assert general.nu == 3
    back = dataclasses.replace(general, actuation=None, actuated=["crank"])
    assert np.array_equal(back.B, mech.B)


def test_replace_checks_again():
    with pytest.raises(hc.InputError, match="no_such_motor"):
        dataclasses.replace(four_bar(), actuated=["no_such_motor"])
    with pytest.raises(hc.InputError, match="reference"):
        dataclasses.replace(four_bar(), model=floating_leg().model, actuated=[], constraints=[])


# --------------------------------------------------------------------- names and motors


def one_of_each():
    """A free-flyer, a hinge, a ball, a continuous, a composite and a planar joint in a row."""
    rng = np.random.default_rng(5)
    composite = pin.JointModelComposite()
    for part in (pin.JointModelRX(), pin.JointModelSpherical(), pin.JointModelPY()):
        composite.addJoint(part)
    joints = {
        "base": pin.JointModelFreeFlyer(), "hinge": pin.JointModelRX(),
        "ball": pin.JointModelSpherical(), "wheel": pin.JointModelRUBZ(),
        "wrist": composite, "sled": pin.JointModelPlanar(),
    }  # fmt: skip
    model, parent = pin.Model(), 0
    for name, joint in joints.items():
        parent = _add(model, parent, joint, _at(0.2, 0.1), name, _inertia(rng))
    return model


def test_coordinate_names():
    mech = hc.Mechanism(one_of_each())
    assert mech.coordinate_names == (
        "base[0]", "base[1]", "base[2]", "base[3]", "base[4]", "base[5]", "hinge",
        "ball[0]", "ball[1]", "ball[2]", "wheel",
        "wrist[0]", "wrist[1]", "wrist[2]", "wrist[3]", "wrist[4]",
        "sled[0]", "sled[1]", "sled[2]",
    )  # fmt: skip
    assert (mech.nq, mech.nv, mech.nu) == (7 + 1 + 4 + 2 + 6 + 4, 19, 0)
    assert len(mech.column_scale) == 19


def test_translations_have_the_length_for_their_column_scale():
    mech = hc.Mechanism(one_of_each())
    moved = {n for n, c in zip(mech.coordinate_names, mech.column_scale, strict=True) if c != 1.0}
    assert moved == {"base[0]", "base[1]", "base[2]", "wrist[4]", "sled[0]", "sled[1]"}


def test_motors_on_coordinates_of_composite_joints():
    """B' v are the rates of the motors, in the order in which they were named."""
    motors = ["sled[1]", "wrist[0]", "base[2]", "wheel"]
    mech = hc.Mechanism(one_of_each(), actuated=motors)
    assert mech.actuator_names == tuple(motors)
    assert (mech.B.T @ np.arange(19.0)).tolist() == [17.0, 11.0, 2.0, 10.0]


@pytest.mark.parametrize("motors", [["left", "right"], ["right", "left"]])
def test_columns_of_b_and_entries_of_u_follow_actuated(motors):
    mech = dataclasses.replace(five_bar(), actuated=motors)
    q, v = closed_state(mech)
    by_name = {"left": 3.0, "right": -1.0}
    u = hc.inverse_dynamics(mech, q, v, [by_name[m] for m in motors]).u
    usual = hc.inverse_dynamics(five_bar(), q, v, [3.0, -1.0]).u
    assert unlike(u, usual[[["left", "right"].index(m) for m in motors]]) < ROUNDING
    assert abs(u[0] - u[1]) > 0.1
    for column, motor in enumerate(motors):
        assert mech.B[mech.coordinate_names.index(motor), column] == 1.0
    assert mech.B.sum() == 2.0


def test_iterators_are_as_good_as_lists():
    mech = four_bar()
    loops, motors = iter(mech.constraints), (name for name in ("rocker", "crank"))
    twin = hc.Mechanism(mech.model, loops, motors, reference=iter_free(mech.reference))
    assert twin.actuated == ("rocker", "crank")
    assert twin.constraint_names == ("pin",)


def iter_free(x):
    """A tuple: any array_like will do for a configuration."""
    return tuple(float(value) for value in x)


def test_general_actuation():
    """A differential in front of two motors: the same efforts, other inputs."""
    mech = five_bar()
    mix = np.array([[1.0, 1.0], [0.5, -0.5]])
    mixed = hc.Mechanism(mech.model, mech.constraints, actuation=mech.B @ mix)
    q, v = closed_state(mech)
    direct = hc.inverse_dynamics(mech, q, v, [1.0, 2.0])
    through = hc.inverse_dynamics(mixed, q, v, mix.T @ [1.0, 2.0])
    assert through.certificate.ok
    assert unlike(through.a, direct.a) < 1e-10
    assert unlike(mix @ through.u, direct.u) < 1e-10
    assert np.abs(direct.u).min() > 0.1


def test_no_motors():
    mech = hc.Mechanism(four_bar().model)
    assert mech.B.shape == (3, 0)
    assert mech.actuated == mech.actuator_names == mech.constraints == ()


def test_a_mechanism_without_constraints_is_the_tree():
    model = floating_leg().model
    mech = hc.Mechanism(model, actuation=np.eye(model.nv))
    rng = np.random.default_rng(1)
    q, v, a = closed_state(mech)[0], rng.normal(size=14), rng.normal(size=14)
    result = hc.inverse_dynamics(mech, q, v, a, coordinates="all")
    assert unlike(result.u, pin.rnea(model, model.createData(), q, v, a)) < 1e-10
    assert unlike(hc.forward_dynamics(mech, q, v, result.u).a, a) < 1e-9


def test_name_is_the_given_one_or_that_of_the_model():
    model = two_hinges()
    model.name = "hinges"
    assert hc.Mechanism(model).name == "hinges"
    assert hc.Mechanism(model, name="pair").name == "pair"
    assert "pair" in repr(hc.Mechanism(model, name="pair"))


def test_repr_tells_the_sizes():
    text = repr(ZOO["geared_slider"]())
    for part in ("geared_slider", "5 coordinates", "3 constraints", "4 rows", "1 motor"):
        assert part in text


def test_reference_is_neutral_unless_given():
    model = floating_leg().model
    assert np.array_equal(hc.Mechanism(model).reference, pin.neutral(model))
    assert np.array_equal(hc.Mechanism(four_bar().model, reference=[1, 2, 3]).reference, [1, 2, 3])


# --------------------------------------------------------------------- names of constraints


def test_constraints_with_the_same_name_are_refused():
    loops = [hc.Closure("left", "right", axes="x"), hc.Closure("left", "right", axes="y")]
    with pytest.raises(hc.InputError, match=r"'left-right'.*name="):
        hc.Mechanism(two_hinges(), loops)


def test_a_closure_and_a_coupling_with_the_same_name_are_refused():
    both = [
        hc.Closure("left", "right", axes="x", name="tie"),
        hc.Coupling({"left": 1.0, "right": 1.0}, name="tie"),
    ]
    with pytest.raises(hc.InputError, match="'tie'"):
        hc.Mechanism(two_hinges(), both)


def test_the_name_of_a_constraint_is_the_given_one_or_that_of_what_it_ties():
    loops = [
        hc.Closure("left", ("right", _at(0.1)), axes="x"),
        hc.Closure("left", "right", axes="y", name="second"),
        hc.Coupling({"right": 1.0, "left": 2.0}),
    ]
    mech = hc.Mechanism(two_hinges(), loops)
    assert mech.constraint_names == ("left-right", "second", "right-left")
    assert row_names(mech) == ("left-right.x", "second.y", "right-left.sum")


def test_one_description_serves_several_mechanisms():
    loop = four_bar().constraints[0]
    one, two = four_bar(), dataclasses.replace(four_bar(), constraints=[loop])
    q, v = closed_state(one)
    assert_same(numbers(one, q, v), numbers(two, q, v))


# ------------------------------------------------------------------------------------ frames


def test_a_joint_comes_before_a_body_of_its_name():
    """Seen from the right hinge, the left one is at -0.5; the body "left" would be at 0.2."""
    model = two_hinges(("left", "left", 0.7, BODY))
    assert gap_between(model, "right", "left").tolist() == [-0.5, 0.0, 0.0]


@pytest.mark.parametrize("order", [(BODY, OP, SENSOR), (SENSOR, BODY, OP), (OP, SENSOR, BODY)])
def test_a_body_comes_before_other_frames_of_its_name(order):
    place = {BODY: 0.3, OP: 0.1, SENSOR: 0.2}
    model = two_hinges(*(("tip", "left", place[kind], kind) for kind in order))
    assert unlike(gap_between(model, "right", "tip"), [-0.2, 0.0, 0.0]) < ROUNDING


def test_two_other_frames_of_one_name_are_ambiguous():
    model = two_hinges(("tip", "left", 0.1, OP), ("tip", "right", 0.2, SENSOR))
    with pytest.raises(hc.InputError, match=r"'tip'.*2 frames.*pin\.SE3"):
        hc.Mechanism(model, [hc.Closure("tip", "left", joint="weld")])
    hc.Mechanism(model, [hc.Closure(("left", _at(0.1)), ("right", _at(0.2)), joint="weld")])


def test_a_pair_is_a_placement_in_a_joint():
    model = two_hinges(("mark", "right", 0.25, OP))
    assert unlike(gap_between(model, ("left", _at(0.1, 0.2)), "mark"), [0.65, -0.2, 0]) < ROUNDING


def test_the_error_is_seen_from_a_in_the_axes_of_a():
    turned = _at(0.1, R=pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2))
    seen = gap_between(two_hinges(), ("left", turned), ("right", _at(0.0, 0.3)))
    assert unlike(seen, [0.3, -0.4, 0.0]) < ROUNDING


@pytest.mark.parametrize("world", ["universe", ("universe", _at(0.0))])
def test_the_universe_is_the_world(world):
    assert gap_between(two_hinges(), world, "right").tolist() == [0.5, 0.0, 0.0]
    assert gap_between(two_hinges(), "right", world).tolist() == [-0.5, 0.0, 0.0]


@pytest.mark.parametrize("tool", ["tool", "flange", ("elbow", _at(0.4))])
def test_a_frame_of_a_fixed_joint_moves_with_its_parent(tool):
    model = pin.buildModelFromXML("""
        <robot name="r"><link name="base"/><link name="arm"/><link name="tool"/>
        <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/>
          <axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
        <joint name="flange" type="fixed"><parent link="arm"/><child link="tool"/>
          <origin xyz="0.4 0 0"/></joint></robot>""")
    _add(model, "elbow", pin.JointModelRX(), _at(), "wrist", _bar(0.1))
    mech = hc.Mechanism(model, [hc.Closure("universe", tool, axes="x y")])
    error = rows_at(mech, np.array([np.pi / 6, 0.0]), np.zeros(2))[0]
    assert unlike(error, [0.4 * np.cos(np.pi / 6), 0.2]) < ROUNDING


@pytest.mark.parametrize(
    ("a", "b"),
    [("left", "left"), ("left", ("left", _at(0.3))), ("universe", ("universe", _at(1.0)))],
)
def test_two_frames_of_one_body_are_refused(a, b):
    with pytest.raises(hc.InputError, match="same body"):
        hc.Mechanism(two_hinges(), [hc.Closure(a, b, joint="weld")])


# -------------------------------------------------------------- depth-first numbering, mimic


def naive_four_bar():
    """A four-bar whose joints were added ground first: crank, rocker, coupler."""
    rng = np.random.default_rng(2)
    model = pin.Model()
    model.name = "naive"
    _add(model, 0, pin.JointModelRZ(), _at(0.0, 0.1), "crank", _inertia(rng))
    _add(model, 0, pin.JointModelSpherical(), _at(0.5), "rocker", _inertia(rng))
    _add(model, "crank", pin.JointModelPX(), _at(0.2), "coupler", _inertia(rng))
    _add(model, "rocker", pin.JointModelRUBY(), _at(0.1), "wheel", _inertia(rng))
    model.gravity.linear = np.array([1.0, -9.0, 2.0])
    for name in ("lowerPositionLimit", "upperPositionLimit", "positionLimitMargin"):
        setattr(model, name, rng.uniform(1.0, 2.0, model.nq))
    for name in PER_VELOCITY:
        setattr(model, name, rng.uniform(1.0, 2.0, model.nv))
    model.addFrame(pin.Frame("tip", model.getJointId("coupler"), 0, _at(0.3, 0.1), OP))
    model.addFrame(pin.Frame("world mark", 0, 0, _at(1.0), SENSOR))
    for name in ("home", "away"):
        model.referenceConfigurations[name] = pin.normalize(model, rng.normal(size=model.nq))
    return model


PER_VELOCITY = (
    "armature", "damping", "rotorInertia", "rotorGearRatio", "lowerEffortLimit",
    "upperEffortLimit", "lowerVelocityLimit", "upperVelocityLimit", "lowerDryFrictionLimit",
    "upperDryFrictionLimit",
)  # fmt: skip


def carried(old, new, x):
    """Entries of a configuration or velocity of the old model, in the order of the new one."""
    starts, sizes = (old.idx_qs, old.nqs) if len(x) == old.nq else (old.idx_vs, old.nvs)
    parts = [
        x[starts[j] : starts[j] + sizes[j]] for j in (old.getJointId(n) for n in new.names[1:])
    ]
    return np.concatenate(parts)


def test_joints_that_are_not_depth_first_are_refused_and_the_order_shown():
    model = naive_four_bar()
    assert not model.check(model.createData())  # the trap that the check is for
    valid = r"hc\.renumbered.*'crank', 'coupler', 'rocker', 'wheel'"
    with pytest.raises(hc.InputError, match=valid):
        hc.Mechanism(model)


def test_renumbered_mends_it():
    old = naive_four_bar()
    new = hc.renumbered(old)
    assert list(new.names) == ["universe", "crank", "coupler", "rocker", "wheel"]
    assert new.check(new.createData())
    assert hc.Mechanism(new).coordinate_names[:2] == ("crank", "coupler")
    assert list(old.names) == ["universe", "crank", "rocker", "coupler", "wheel"]


def test_renumbered_has_the_same_dynamics_entry_for_entry():
    old = naive_four_bar()
    new = hc.renumbered(old)
    rng = np.random.default_rng(3)
    for _ in range(5):
        q = pin.normalize(old, rng.normal(size=old.nq))
        v, a = rng.normal(size=(2, old.nv))
        expected = pin.rnea(old, old.createData(), q, v, a)
        tau = pin.rnea(new, new.createData(), *(carried(old, new, x) for x in (q, v, a)))
        assert unlike(tau, carried(old, new, expected)) < ROUNDING
        assert np.abs(tau).min() > 1e-3


def test_renumbered_has_the_right_inertia_matrix():
    """M by columns of rnea of the old model, which needs no numbering."""
    old = naive_four_bar()
    new = hc.renumbered(old)
    q = pin.normalize(old, np.random.default_rng(4).normal(size=old.nq))
    still = np.zeros(old.nv)
    data = old.createData()
    rest = pin.rnea(old, data, q, still, still).copy()
    M = np.array([
        carried(old, new, pin.rnea(old, data, q, still, e) - rest)
        for e in np.eye(old.nv)
    ])  # fmt: skip
    M = np.array([carried(old, new, column) for column in M.T])
    assert unlike(pin.crba(new, new.createData(), carried(old, new, q)), M) < ROUNDING


def test_renumbered_carries_gravity_limits_and_reference_configurations():
    old = naive_four_bar()
    new = hc.renumbered(old)
    assert new.name == old.name
    assert np.array_equal(new.gravity.vector, old.gravity.vector)
    for name in (*PER_VELOCITY, "lowerPositionLimit", "upperPositionLimit", "positionLimitMargin"):
        assert np.array_equal(getattr(new, name), carried(old, new, getattr(old, name))), name
    theirs = {e.key(): e.data() for e in old.referenceConfigurations}
    ours = {e.key(): e.data() for e in new.referenceConfigurations}
    assert ours.keys() == theirs.keys() == {"home", "away"}
    for name, q in theirs.items():
        assert np.array_equal(ours[name], carried(old, new, q))


def test_renumbered_carries_frames():
    old = naive_four_bar()
    new = hc.renumbered(old)
    q = pin.normalize(old, np.random.default_rng(6).normal(size=old.nq))
    data, moved = old.createData(), new.createData()
    pin.framesForwardKinematics(old, data, q)
    pin.framesForwardKinematics(new, moved, carried(old, new, q))
    assert [f.name for f in new.frames] == [f.name for f in old.frames]
    for f in old.frames:
        i, k = old.getFrameId(f.name, f.type), new.getFrameId(f.name, f.type)
        assert moved.oMf[k].isApprox(data.oMf[i], ROUNDING)
        assert new.names[new.frames[k].parentJoint] == old.names[f.parentJoint]


def test_renumbered_leaves_a_valid_model_as_it_is():
    for model in (floating_leg().model, five_bar().model, one_of_each()):
        q = pin.integrate(model, pin.neutral(model), np.linspace(-1.0, 1.0, model.nv))
        v = np.linspace(1.0, -2.0, model.nv)
        new = hc.renumbered(model)
        assert list(new.names) == list(model.names)
        expected = pin.rnea(model, model.createData(), q, v, v)
        assert unlike(pin.rnea(new, new.createData(), q, v, v), expected) < ROUNDING


def test_renumbered_closes_the_same_loop():
    """The four-bar of the zoo, its joints in the naive order, gives the torque of the zoo."""
    zoo = four_bar()
    naive = _vertical(pin.Model())
    _add(naive, 0, pin.JointModelRZ(), _at(), "crank", _bar(0.2))
    _add(naive, 0, pin.JointModelRZ(), _at(0.5), "rocker", _bar(0.4, 1.5))
    _add(naive, "crank", pin.JointModelRZ(), _at(0.2), "coupler", _bar(0.5, 2.0))
    model = zoo.model.copy()
    for j in (1, 2, 3):
        naive.inertias[naive.getJointId(model.names[j])] = model.inertias[j]
        naive.jointPlacements[naive.getJointId(model.names[j])] = model.jointPlacements[j]
    with pytest.raises(hc.InputError, match="renumbered"):
        dataclasses.replace(zoo, model=naive)
    mended = dataclasses.replace(zoo, model=hc.renumbered(naive))
    state = closed_state(zoo)
    one, two = numbers(zoo, *state), numbers(mended, *state)
    assert all(unlike(two[k], one[k]) < ROUNDING for k in one)


def mimicking():
    """A tree in which the second hinge mimics the first."""
    return pin.transformJointIntoMimic(two_hinges(), 1, 2, 2.0, 0.1)


@pytest.mark.parametrize("use", [hc.Mechanism, hc.renumbered])
def test_mimic_joints_are_refused(use):
    with pytest.raises(hc.InputError, match=r"mimic.*Coupling"):
        use(mimicking())


# ------------------------------------------------------------------------------------ scales


def rack_slider(unit):
    """A slider-crank with a rack on the slider's crank; `unit` is the length of a metre."""
    model = pin.Model()
    _add(model, 0, pin.JointModelRZ(), _at(), "crank", _bar(0.2 * unit))
    _add(model, "crank", pin.JointModelRZ(), _at(0.2 * unit), "rod", _bar(0.5 * unit))
    _add(model, 0, pin.JointModelPX(), _at(), "slider", _bar(0.1 * unit))
    _add(model, 0, pin.JointModelPX(), _at(0, 0.4 * unit), "rack", _bar(0.1 * unit))
    pin_joint = hc.Closure(("rod", _at(0.5 * unit)), "slider", joint="revolute", name="pin")
    rack = hc.Coupling({"rack": 1.0, "crank": -0.05 * unit}, offset=0.01 * unit, name="rack")
    return hc.Mechanism(
        model, [pin_joint, rack], ["crank"], reference=[1.0, -1.4, 0.6 * unit, 0.1 * unit]
    )


def scaled_rows(mech, q, v):
    """All rows as pure numbers."""
    error, rate, jacobian, drift = rows_at(mech, q, v)
    r = mech.row_scale
    return r * error, r * rate, r[:, None] * jacobian * mech.column_scale, r * drift


@pytest.mark.parametrize(
    ("build", "lengths"),
    [
        (lambda unit: four_bar(lengths=np.array([0.2, 0.5, 0.4, 0.5]) * unit), [1, 1, 1]),
        (lambda unit: four_bar("revolute", np.array([0.2, 0.5, 0.4, 0.5]) * unit), [1, 1, 1]),
        (rack_slider, [1, 1, 1000, 1000]),
    ],
    ids=["four_bar", "four_bar_revolute", "rack_slider"],
)
def test_scaled_rows_are_the_same_in_metres_and_millimetres(build, lengths):
    metres, millimetres = build(1.0), build(1000.0)
    rng = np.random.default_rng(7)
    lengths = np.array(lengths, dtype=float)
    assert unlike(millimetres.column_scale, metres.column_scale * lengths) < ROUNDING
    for _ in range(3):
        q, v = metres.reference + 0.3 * rng.normal(size=metres.nq), rng.normal(size=metres.nv)
        one, two = scaled_rows(metres, q, v), scaled_rows(millimetres, q * lengths, v * lengths)
        for x, y in zip(one, two, strict=True):
            assert unlike(y, x) < ROUNDING
            assert np.abs(x).max() > 1e-3


def test_decisions_are_the_same_in_metres_and_millimetres():
    one, two = (hc.partition(m, hc.assemble(m)[0]) for m in (rack_slider(1.0), rack_slider(1e3)))
    assert np.array_equal(one.rows, two.rows)
    assert np.array_equal(one.independent, two.independent)
    assert one.rank == two.rank == 3
    assert 0.5 < one.condition / two.condition < 2.0  # LAPACK estimates it


@pytest.mark.parametrize("name", ZOO)
def test_scaled_jacobians_are_of_order_one(name):
    mech = ZOO[name]()
    sizes = np.abs(scaled_rows(mech, *closed_state(mech))[2]).max(axis=1)
    sizes = sizes[sizes > 0.0]  # out-of-plane rows of planar mechanisms are zero
    assert sizes.size > 0
    assert sizes.min() > 0.05
    assert sizes.max() < 20.0


# ----------------------------------------------------------------------------------- threads


def test_two_threads_get_the_numbers_of_one():
    mech = floating_leg()
    states = [closed_state(mech, seed) for seed in range(4)]
    part = hc.partition(mech, states[0][0])

    def job(state):
        out = []
        for _ in range(20):
            P = hc.project(mech, *state, partition=part)
            inverse = hc.inverse_dynamics(mech, *state, [1.0, -2.0, 3.0], projection=P)
            forward = hc.forward_dynamics(mech, *state, mech.B @ inverse.u, projection=P)
            out.append(np.concatenate([inverse.u, inverse.multipliers, forward.a, P.bias]))
        return np.array(out)

    sequential = [job(state) for state in states]
    assert not np.allclose(sequential[0], sequential[1])
    with ThreadPoolExecutor(2) as pool:
        threaded = list(pool.map(job, states))
    assert np.array_equal(sequential, threaded)


def test_one_controller_in_two_threads():
    mech = five_bar()
    ctl = hc.ComputedTorque(mech, 100.0, 20.0)
    states = [closed_state(mech, seed) for seed in range(4)]

    def job(state):
        return [ctl.torque(*state, [2.0, 1.0], [0.0, 0.0], [1.0, -1.0]) for _ in range(50)]

    sequential = [job(state) for state in states]
    with ThreadPoolExecutor(2) as pool:
        assert np.array_equal(list(pool.map(job, states)), sequential)


# ------------------------------------------------------------------------------ closure rows

FREEDOM = {
    "spherical": ["rx", "ry", "rz"],
    "revolute": ["rz"],
    "universal": ["rx", "ry"],
    "cylindrical": ["z", "rz"],
    "prismatic": ["z"],
    "planar": ["x", "y", "rz"],
    "weld": [],
}
"""What each joint leaves free of the motion of b seen from a."""

SIX = ("x", "y", "z", "rx", "ry", "rz")


def shifted(axis, by):
    """The placement that moves by `by` along, or turns by it about, an axis."""
    motion = np.zeros(6)
    motion[SIX.index(axis)] = by
    return pin.exp6(pin.Motion(motion))


def tied(kind, seen=None, seed=0):
    """Rows between two frames on the spatial arms, b placed at `seen` from a, and the state.

    `kind` is a joint, or an axis subset.
    """
    arms = ZOO["spatial_arms"]()
    rng = np.random.default_rng(seed)
    q, v = rng.normal(size=(2, 6))
    data = arms.model.createData()
    pin.forwardKinematics(arms.model, data, q)
    Ma = pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
    Mb = data.oMi[6].actInv(data.oMi[3] * Ma * (seen or pin.SE3.Identity()))
    which = {"joint": kind} if kind in FREEDOM else {"axes": kind}
    loop = hc.Closure(("a3", Ma), ("b3", Mb), name="tie", **which)
    mech = hc.Mechanism(arms.model, [loop])
    return mech, q, v


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("kind", [*FREEDOM, "x", "rz", "x rz", "rx ry", "ry z rz", "rx ry rz"])
def test_rows_vanish_for_coincident_frames(kind, seed):
    mech, q, v = tied(kind, seed=seed)
    error, _, jacobian, _ = rows_at(mech, q, v)
    count = 6 - len(FREEDOM[kind]) if kind in FREEDOM else len(kind.split())
    assert error.shape == (count,)
    assert np.abs(error).max() < 1e-13
    assert np.linalg.matrix_rank(jacobian, tol=1e-6) == count


@pytest.mark.parametrize(
    ("joint", "axis"), [(joint, axis) for joint, free in FREEDOM.items() for axis in free]
)
def test_rows_stay_zero_along_the_freedom_of_the_joint(joint, axis):
    for by in (0.4, -1.1):
        mech, q, v = tied(joint, shifted(axis, by))
        assert np.abs(rows_at(mech, q, v)[0]).max() < 1e-13


@pytest.mark.parametrize(
    ("joint", "axis"),
    [(joint, axis) for joint, free in FREEDOM.items() for axis in SIX if axis not in free],
)
def test_rows_notice_every_other_motion(joint, axis):
    """By the shift itself: lengths in m, small angles in rad."""
    for by in (1e-4, -1e-4):
        mech, q, v = tied(joint, shifted(axis, by))
        assert abs(np.abs(rows_at(mech, q, v)[0]).max() - 1e-4) < 1e-9


SUBSETS = [
    "x y z rx ry rz",
    "rz z ry y rx x",
    "z x",
    "rx ry",
    "rz rx",
    "y rz ry",
    "y rz",
    "rx",
    "ry",
]


@pytest.mark.parametrize("axis", SIX)
@pytest.mark.parametrize("axes", SUBSETS)
def test_axis_subsets_have_a_row_for_each_axis_in_the_order_written(axes, axis):
    """The row of the axis that was moved shows the size of the move; the others are zero."""
    for by in (1e-5, -1e-5):
        mech, q, v = tied(axes, shifted(axis, by))
        expected = [1e-5 if word == axis else 0.0 for word in axes.split()]
        assert np.abs(np.abs(rows_at(mech, q, v)[0]) - expected).max() < 1e-9


@pytest.mark.parametrize("axes", [*SUBSETS, "rz"])
def test_the_error_of_an_axis_has_the_sign_of_b_seen_from_a(axes):
    """Lengths and orientations grow with the motion; other angular rows are rad up to sign."""
    words = axes.split()
    oriented = sum(word[0] == "r" for word in words) == 3
    for word in words:
        mech, q, v = tied(axes, shifted(word, 1e-5))
        error = rows_at(mech, q, v)[0][words.index(word)]
        signed = word in "xyz" or oriented
        assert abs((error if signed else abs(error)) - 1e-5) < 1e-9, word


@pytest.mark.parametrize("joint", FREEDOM)
def test_the_rows_of_a_joint_are_named_after_what_they_fix(joint):
    fixed = [axis for axis in SIX if axis not in FREEDOM[joint]]
    for axis in fixed:
        mech, q, v = tied(joint, shifted(axis, 1e-5))
        labels = [name.partition(".")[2] for name in row_names(mech)]
        assert sorted(labels) == sorted(fixed)
        error = rows_at(mech, q, v)[0][labels.index(axis)]
        signed = axis in "xyz" or joint in ("weld", "prismatic")
        assert abs((error if signed else abs(error)) - 1e-5) < 1e-9, axis


def test_the_rows_of_one_axis_subset_are_a_permutation_of_another():
    (mech, q, v), (other, _, _) = tied("x z rx ry rz", seed=3), tied("rz x ry z rx", seed=3)
    assert row_names(mech) == ("tie.x", "tie.z", "tie.rx", "tie.ry", "tie.rz")
    assert row_names(other) == ("tie.rz", "tie.x", "tie.ry", "tie.z", "tie.rx")
    where = [row_names(mech).index(label) for label in row_names(other)]
    q = q + 0.1
    for x, y in zip(rows_at(mech, q, v), rows_at(other, q, v), strict=True):
        assert unlike(x[where], y) < ROUNDING


@pytest.mark.parametrize("name", ZOO)
def test_rows_follow_the_order_of_the_constraints(name):
    """Rows of several constraints are those of each alone, one after the other."""
    mech = ZOO[name]()
    extra = hc.Closure("universe", mech.model.names[-1], axes="rz z", name="extra")
    constraints = (extra, *mech.constraints[::-1])
    both = dataclasses.replace(mech, constraints=constraints)
    alone = [dataclasses.replace(mech, constraints=[c]) for c in constraints]
    q, v = closed_state(mech)
    q = pin.integrate(mech.model, q, 0.1 * np.ones(mech.nv))
    together = rows_at(both, q, v)
    apart = [np.concatenate(x) for x in zip(*(rows_at(m, q, v) for m in alone), strict=True)]
    for x, y in zip(together, apart, strict=True):
        assert unlike(x, y) < ROUNDING
    assert row_names(both) == sum((row_names(m) for m in alone), ())


def test_swapping_the_frames_of_a_spherical_closure_keeps_its_length():
    one, q, v = tied("spherical", pin.SE3.Random())
    c = one.constraints[0]
    two = dataclasses.replace(one, constraints=[dataclasses.replace(c, a=c.b, b=c.a)])
    x, y = rows_at(one, q, v)[0], rows_at(two, q, v)[0]
    assert unlike(np.linalg.norm(x), np.linalg.norm(y)) < ROUNDING
    assert np.linalg.norm(x) > 0.1


def test_a_closure_to_the_world_holds_a_frame_still():
    mech = floating_leg()
    q, v = closed_state(mech)
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, q)
    base = data.oMi[1].copy()
    held = hc.Mechanism(mech.model, [hc.Closure(("universe", base), "base", joint="weld")])
    error, _, jacobian, _ = rows_at(held, q, v)
    assert np.abs(error).max() < 1e-14
    assert np.array_equal(jacobian[:, 6:], np.zeros((6, 8)))
    assert np.linalg.matrix_rank(jacobian) == 6


def test_columns_of_common_ancestors_are_exactly_zero():
    mech = floating_leg()
    q, v = closed_state(mech)
    jacobian = rows_at(mech, q, v)[2]
    moving = np.flatnonzero((jacobian != 0.0).any(axis=0))
    names = {mech.coordinate_names[i] for i in moving}
    assert names == {"motor_crank", "push_rod", "knee"}


# ------------------------------------------------------------------------- one coordinate


def one_slider():
    """The smallest mechanism: one mass on a rail, tied to nothing."""
    model = pin.Model()
    _add(model, 0, pin.JointModelPX(), _at(), "slider", _bar(0.3, 2.0))
    return model


def test_a_mechanism_of_one_coordinate():
    mech = hc.Mechanism(one_slider(), actuated=["slider"])
    assert mech.column_scale.shape == (1,)
    assert unlike(hc.inverse_dynamics(mech, [0.0], [1.0], [3.0]).u, [6.0]) < ROUNDING
    assert unlike(hc.forward_dynamics(mech, [0.0], [1.0], [6.0]).a, [3.0]) < ROUNDING


def test_a_single_joint_may_be_closed_to_the_world():
    """One hinge, tied to the world at an angle: rows are evaluated, assembly finds the angle."""
    model = pin.Model()
    _add(model, 0, pin.JointModelRZ(), _at(), "hinge", _bar(0.3))
    post = ("universe", _at(0.3 * np.cos(0.4), 0.3 * np.sin(0.4)))
    mech = hc.Mechanism(model, [hc.Closure(post, ("hinge", _at(0.3)), axes="x y")])
    q, _ = hc.assemble(mech, [0.1])
    assert unlike(q, [0.4]) < ROUNDING
    assert hc.partition(mech, q).rank == 1
    a = hc.forward_dynamics(mech, q, [0.0], [5.0]).a
    assert np.abs(a).max() < ROUNDING


def test_a_single_joint_may_bear_an_external_force():
    mech = hc.Mechanism(one_slider(), actuated=["slider"])
    result = hc.forward_dynamics(mech, [0.0], [0.0], [0.0], {"slider": [6.0, 0, 0, 0, 0, 0]})
    assert unlike(result.a, [3.0]) < ROUNDING


def test_two_coordinates_of_one_name_are_refused():
    m = pin.Model()
    body = pin.Inertia(1.0, np.zeros(3), np.eye(3))
    for joint, name in ((pin.JointModelSpherical(), "b"), (pin.JointModelRX(), "b[0]")):
        j = m.addJoint(0, joint, pin.SE3.Identity(), name)
        m.appendBodyToJoint(j, body, pin.SE3.Identity())
    with pytest.raises(hc.InputError, match=r"used twice: 'b\[0\]'"):
        hc.Mechanism(m)


def test_a_placement_may_be_given_in_a_body_whose_joint_has_other_axes():
    """A body of a linkage need not have the axes of the joint that carries it."""
    turned = pin.SE3(pin.utils.rotate("x", 0.7), np.array([0.1, 0.0, 0.2]))
    link = hc.Linkage("foot")
    link.add_body("foot", 1.0, (0, 0, 0), np.eye(3) * 0.1)
    link.add_joint("ankle", "free", "universe", "foot", None, turned)
    mech = link.mechanism()
    toe = pin.SE3(np.eye(3), np.array([0.14, 0.0, -0.08]))
    on_foot = hc.Contact(("foot", toe), ground=(0, 0, 0), name="toe")
    on_joint = hc.Contact(("ankle", turned.inverse() * toe), ground=(0, 0, 0), name="toe")
    q = pin.randomConfiguration(mech.model, -np.ones(7), np.ones(7))
    rows = [hc.terms(mech.with_constraints(c), q, np.arange(6.0)).rows for c in (on_foot, on_joint)]
    np.testing.assert_allclose(rows[0].error, rows[1].error, atol=1e-14)
    np.testing.assert_allclose(rows[0].jacobian, rows[1].jacobian, atol=1e-14)
    with pytest.raises(hc.InputError, match="did you mean 'foot'"):
        mech.with_constraints(hc.Contact(("fot", toe)))
    with pytest.raises(hc.InputError, match="3 is no name"):
        mech.with_constraints(hc.Contact((3, toe)))


def test_a_cut_joint_has_no_coordinate_to_lock():
    link = hc.Linkage("pair")
    for name in ("a", "b"):
        link.add_body(name, 1.0, (0.1, 0, 0), 0.1 * np.eye(3))
    place = pin.SE3(np.eye(3), np.array([0.2, 0.0, 0.0]))
    link.add_joint("j1", "revolute", "universe", "a")
    link.add_joint("j2", "revolute", "a", "b", place)
    link.add_joint("j3", "revolute", "b", "universe", place)
    mech = link.mechanism(["j3"], reference={"j2": np.pi})
    with pytest.raises(hc.InputError, match=r"'j3' is a constraint of pair .a joint that is cut"):
        hc.assemble(mech, locked=["j3"])


# -------------------------------------------------------------------------- inertias and rotors


def hinge_with(inertia, placement=None):
    """A hinge about z with one body on it; `placement` is that of the body in the joint."""
    model = pin.Model()
    j = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "hinge")
    model.appendBodyToJoint(j, inertia, placement or pin.SE3.Identity())
    model.addBodyFrame("plate", j, pin.SE3.Identity(), 0)
    return model


def body(mass, lever, inertia):
    """An inertia that Pinocchio's constructor may refuse, without a name; its setters do not."""
    found = pin.Inertia.Zero()
    found.mass, found.lever, found.inertia = mass, np.array(lever), 0.5 * (inertia + inertia.T)
    return found


def turned(moments, seed=0):
    """An inertia with these principal moments, in axes of no kind."""
    R = pin.exp3(np.random.default_rng(seed).normal(size=3))
    return R @ np.diag(moments) @ R.T


@pytest.mark.parametrize(
    ("moments", "words"),
    [
        ([1.0, 1.0, -1.0], "no negative principal moment.*-1, 1, 1 kg"),
        ([1.0, 1.0, -2e-5], "no negative principal moment.*-2e-05, 1, 1 kg"),
        ([1.0, 1.0, 2.1], "larger than the sum.*1, 1, 2.1 kg"),
        ([0.0, 0.0, 1e-9], "larger than the sum.*1e-09 kg"),
    ],
)
@pytest.mark.parametrize("place", [None, pin.SE3(np.eye(3), np.array([3.0, 1.0, 2.0]))])
def test_an_inertia_that_no_body_has_is_refused(moments, words, place):
    """The moments about the centre of mass count: those about the joint may look well."""
    model = hinge_with(body(1.0, [0.1, 0.0, 0.0], turned(moments)), place)
    for build in (hc.Mechanism, hc.Mechanism(hinge_with(pin.Inertia.FromSphere(1, 1))).with_model):
        with pytest.raises(hc.InputError, match=f"'hinge' \\('plate'\\).*{words}"):
            build(model)


def test_a_negative_mass_is_refused():
    with pytest.raises(hc.InputError, match=r"'hinge'.*mass .* not be negative; got -1"):
        hc.Mechanism(hinge_with(pin.Inertia(-1.0, np.zeros(3), np.eye(3))))


@pytest.mark.parametrize(
    "inertia",
    [
        pin.Inertia.Zero(),
        pin.Inertia(0.0, np.zeros(3), turned([1.0, 2.0, 2.5])),
        pin.Inertia(2.0, np.array([0.3, 0.2, 0.1]), np.zeros((3, 3))),
        pin.Inertia(2.0, np.array([0.3, 0.2, 0.1]), turned([0.0, 1.0, 1.0])),
        pin.Inertia(2.0, np.array([0.3, 0.2, 0.1]), turned([1.0, 1.0, 2.0])),
        body(2.0, [0.3, 0.2, 0.1], turned([-4e-6, 1.0, 1.000002])),
        pin.Inertia(1e-300, np.zeros(3), 1e-305 * turned([1.0, 1.0, 2.0])),
        pin.Inertia(1e200, np.zeros(3), 1e200 * turned([1.0, 1.0, 2.0])),
    ],
    ids=["nothing", "rotor", "point", "rod", "disk", "rounded", "tiny", "huge"],
)
def test_what_is_a_body(inertia):
    model = hinge_with(inertia)
    mech = hc.Mechanism(model)
    again = (
        dataclasses.replace(mech, name="again"), mech.with_model(model), copy.deepcopy(mech),
        pickle.loads(pickle.dumps(mech)),
    )  # fmt: skip
    assert all(other.model.inertias[1] == model.inertias[1] for other in (mech, *again))


@pytest.mark.parametrize("seed", range(5))
def test_a_point_whose_inertia_was_moved_is_a_body(seed):
    """From the origin to the centre of mass: a difference of large numbers, not quite zero."""
    rng = np.random.default_rng(seed)
    for size in 10.0 ** np.arange(-3, 4):
        mass, lever = 10.0 * rng.random(), size * rng.normal(size=3)
        about_origin = mass * (lever @ lever * np.eye(3) - np.outer(lever, lever))
        steiner = mass * pin.skew(lever) @ pin.skew(lever)
        hc.Mechanism(hinge_with(body(mass, lever, about_origin + steiner)))


def test_rotor_and_gear_count_where_there_is_no_armature():
    """As in an SRDF that Pinocchio reads: armature = ratio^2 rotor inertia, in M and the torque."""
    mech = five_bar()
    model, plain = mech.model.copy(), mech.model.copy()
    rng = np.random.default_rng(0)
    rotor, ratio = rng.uniform(0.01, 0.02, model.nv), np.array([3.0, -5.0, 1.0, 2.0])
    model.armature = np.array([0.0, 0.0, 0.7, 0.0])  # where one is given it counts alone
    model.rotorInertia, model.rotorGearRatio = rotor, ratio
    expected = np.where(model.armature == 0.0, ratio**2 * rotor, model.armature)
    plain.armature = expected
    geared, given = mech.with_model(model), mech.with_model(plain)
    for one in (geared, pickle.loads(pickle.dumps(geared)), dataclasses.replace(geared, name="x")):
        assert np.array_equal(one.model.armature, expected)
    q, v = closed_state(mech)
    M = [hc.terms(m, q, v).M for m in (mech, geared)]
    assert np.diag(M[1] - M[0]) == pytest.approx(expected, rel=1e-12)
    target = [2.0, -1.0]
    u = [hc.inverse_dynamics(m, q, v, target=target).u for m in (mech, geared, given)]
    assert u[1] == pytest.approx(u[2], rel=1e-12)
    assert np.abs(u[1] - u[0]).max() > 0.1
    tick = hc.PreparedInverseDynamics(geared)
    assert tick.torque(q, v, target=target) == pytest.approx(u[1], rel=1e-9)


@pytest.mark.parametrize(
    ("rotor", "ratio"), [(-1.0, 1.0), (np.nan, 1.0), (1.0, 0.0), (1.0, np.inf)]
)
def test_a_rotor_that_is_none_is_refused(rotor, ratio):
    model = hinge_with(pin.Inertia.FromSphere(1.0, 0.1))
    model.rotorInertia, model.rotorGearRatio = np.array([rotor]), np.array([ratio])
    with pytest.raises(hc.InputError, match=r"'hinge'.*rotorInertia.*rotorGearRatio"):
        hc.Mechanism(model)


# ------------------------------------------------------------- joints that no motion belongs to


def arm_of(joint, placement=None, frame=None):
    """A body on this joint."""
    model = pin.Model()
    model.addJoint(0, joint, placement or pin.SE3.Identity(), "lower")
    model.appendBodyToJoint(1, _inertia(np.random.default_rng(0)), pin.SE3.Identity())
    model.addFrame(pin.Frame("tool", 1, 0, frame or pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    return model


def composite(*joints, placement=None):
    made = pin.JointModelComposite()
    for joint in joints:
        made.addJoint(joint, placement or pin.SE3.Identity())
    return made


LONG, X, Y = np.array([1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
MIRROR = pin.SE3(np.diag([1.0, 1.0, -1.0]), np.zeros(3))
ROUNDED = pin.SE3(pin.utils.rotate("z", 0.7).round(3), np.zeros(3))
NOTHING = pin.SE3(np.zeros((3, 3)), np.zeros(3))


@pytest.mark.parametrize(
    ("joint", "words"),
    [
        (pin.JointModelRevoluteUnaligned(LONG), "axis must .* axis / np.linalg.norm.axis."),
        (pin.JointModelPrismaticUnaligned(0.5 * X), "axis must .* norm 0.5"),
        (pin.JointModelRevoluteUnaligned(np.full(3, np.nan)), "axis must be finite"),
        (pin.JointModelHelicalUnaligned(LONG, 0.1), "axis must"),
        (pin.JointModelHelicalUnaligned(X, np.nan), "pitch must be finite"),
        (pin.JointModelHX(0.0), "pitch must be finite and not zero"),
        (pin.JointModelUniversal(2.0 * X, Y), "axis1 must"),
        (pin.JointModelUniversal(X, 2.0 * Y), "axis2 must"),
        (pin.JointModelUniversal(X, LONG / np.sqrt(2.0)), "right angles"),
        (composite(pin.JointModelRX(), pin.JointModelRevoluteUnaligned(LONG)), "part 1: axis must"),
        (composite(composite(pin.JointModelHY(np.inf))), "part 0: part 0: the pitch"),
        (composite(pin.JointModelRX(), placement=MIRROR), "placement of part 0 has a rotation"),
        (composite(), "without parts"),
        (composite(pin.JointModelRX(), composite()), "part 1 is a composite joint without parts"),
    ],
)
def test_a_joint_that_pinocchio_gets_wrong_is_refused(joint, words):
    with pytest.raises(hc.InputError, match=f"joint 'lower'.*{words}"):
        hc.Mechanism(arm_of(joint), [])


def test_joints_of_unit_axes_are_taken():
    axis = np.array([1.0, 2.0, -2.0]) / 3.0
    for joint in (
        pin.JointModelRevoluteUnaligned(axis), pin.JointModelHelicalUnaligned(axis, -0.1),
        pin.JointModelUniversal(X, Y), pin.JointModelHZ(0.1), pin.JointModelRUBX(),
        composite(pin.JointModelRX(), composite(pin.JointModelPY(), pin.JointModelSpherical())),
    ):  # fmt: skip
        assert hc.Mechanism(arm_of(joint), []).nv == joint.nv


@pytest.mark.parametrize("placement", [MIRROR, ROUNDED, NOTHING])
def test_a_placement_that_is_no_rotation_is_refused(placement):
    with pytest.raises(hc.InputError, match="placement of joint 'lower' has a rotation"):
        hc.Mechanism(arm_of(pin.JointModelRX(), placement), [])
    with pytest.raises(hc.InputError, match="placement of frame 'tool' has a rotation"):
        hc.Mechanism(arm_of(pin.JointModelRX(), frame=placement), [])


def test_gravity_that_turns_is_refused():
    model = arm_of(pin.JointModelRX())
    model.gravity = pin.Motion(np.ones(6))
    with pytest.raises(hc.InputError, match="angular part"):
        hc.Mechanism(model, [])


@pytest.mark.parametrize("what", ["armature", "rotorInertia", "rotorGearRatio"])
@pytest.mark.parametrize("size", [0, 3])
def test_rotors_of_another_number_are_refused(what, size):
    model = arm_of(pin.JointModelRX())
    setattr(model, what, np.ones(size))
    with pytest.raises(hc.InputError, match=f"model.{what} must have 1 entries.*got {size}"):
        hc.Mechanism(model, [])


def test_names_that_are_no_text_are_refused():
    with pytest.raises(hc.InputError, match="name must be text"):
        hc.Mechanism(arm_of(pin.JointModelRX()), [], name=np.array(["a", "b"]))
    mech = five_bar()
    records = np.rec.fromarrays([["left"], [1]], names="a,b")
    for locked in (np.array([mech.coordinate_names[:2]]), records):
        with pytest.raises(hc.InputError, match="locked"):
            hc.assemble(mech, mech.reference, locked=locked)
