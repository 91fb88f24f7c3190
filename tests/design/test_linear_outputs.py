"""Outputs of linear models: against differences along closed motions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pinocchio as pin
import pytest
from reduced import Reduced
from support import closed_states, few, mechanism
from zoo import add_body, at, bar, vertical

import holoctl as hc

EFFORTS = np.array([1.0, -2.0, 0.5, 0.7, 0.2, -0.4])


def model_of(name, outputs, along="fixed"):
    """The linear model of a mechanism of the zoo in motion, and its reduced dynamics."""
    mech = mechanism(name)
    q, v = closed_states(name, count=3)[0]
    part = hc.partition(mech, q)
    u = EFFORTS[: mech.nu]
    lin = hc.linearize(mech, q, v, u, outputs, partition=part, along=along)
    return lin, Reduced(mech, part, lin.q, lin.v, along=along), u


def by_state(reduced, value):
    """d value(q, v) / dx along closed motions."""
    return np.array([x for x, _ in reduced.along_states(lambda x: value(*reduced.state(x)))]).T


def check(lin, expected, tol=1e-8):
    size = max(1.0, np.abs(expected).max())
    assert lin.C.shape == expected.shape == (len(lin.outputs), len(lin.states))
    assert np.abs(lin.C - expected).max() < tol * size
    assert np.abs(expected).max() > 1e-2


def test_the_states_by_default():
    lin, _, _ = model_of("five_bar", None)
    assert lin.outputs == lin.states
    assert lin.states[2:] == tuple(f"d {x}" for x in lin.states[:2])
    assert np.array_equal(lin.C, np.eye(4))
    assert np.array_equal(lin.D, np.zeros((4, 2)))


JOINTS = {
    "five_bar": "left_rod",
    "five_bar_revolute": "tip",  # cut
    "geared_slider": "slider",
    "floating_leg": "wheel",  # continuous
    "cylindrical_chain": None,  # cut, of two coordinates
}


@pytest.mark.parametrize("name", few(JOINTS, ["five_bar_revolute", "geared_slider"]))
def test_joints_and_their_rates(name):
    mech = mechanism(name)
    joint = JOINTS[name] or mech.constraint_names[0]
    lin, reduced, _ = model_of(name, [joint, f"d {joint}"])

    def read(q, v):
        motion = hc.joint_motion(mech, joint, q, v)
        return np.concatenate([motion.value, motion.rate])

    check(lin, by_state(reduced, read))
    n = len(lin.states) // 2
    k = len(lin.outputs) // 2
    assert not lin.C[:k, n:].any()
    assert lin.C[k:, n:] == pytest.approx(lin.C[:k, :n], abs=1e-12)
    assert np.abs(lin.C[k:, :n]).max() > 1e-3 or joint == "wheel"
    assert lin.outputs[:k] == ((joint,) if k == 1 else tuple(f"{joint}[{i}]" for i in range(k)))
    assert not lin.D.any()


@pytest.mark.parametrize("joint", ["head", "base", "d head", "d base", "d base[4]", "d head[1]"])
def test_joints_whose_steps_do_not_add_up(joint):
    """Their positions count as the small motion in the axes of the body that moves."""
    mech = mechanism("floating_leg")
    lin, reduced, _ = model_of("floating_leg", joint)
    name = joint.removeprefix("d ")
    of = [i for i, x in enumerate(mech.coordinate_names) if x.startswith(name)]

    def read(q, v):
        return v[of] if joint.startswith("d ") else pin.difference(mech.model, lin.q, q)[of]

    check(lin, by_state(reduced, read))
    assert len(lin.outputs) == len(of)


@pytest.mark.parametrize("name", ["three_motors", "floating_leg"])
def test_motors(name):
    lin, reduced, _ = model_of(name, ["motors", "d motors"])
    mech = lin.mech
    names = mech.actuator_names
    assert lin.outputs == (*(f"motor {x}" for x in names), *(f"d motor {x}" for x in names))

    def read(q, v):
        return np.concatenate([mech.B.T @ pin.difference(mech.model, lin.q, q), mech.B.T @ v])

    check(lin, by_state(reduced, read))


def test_positions_of_a_frame():
    tip = ("left_rod", at(0.4))
    lin, reduced, _ = model_of("five_bar", hc.FrameTask(tip, axes="x y"))
    mech, data = lin.mech, lin.mech.model.createData()

    def read(q, v):
        pin.forwardKinematics(mech.model, data, q)
        return (data.oMi[2] * at(0.4)).translation[:2]

    check(lin, by_state(reduced, read))
    assert [x[-2:] for x in lin.outputs] == [".x", ".y"]


def test_orientation_of_a_frame():
    lin, reduced, _ = model_of("floating_leg", ["hip", hc.FrameTask("knee", axes="rx ry rz")])
    mech, data = lin.mech, lin.mech.model.createData()
    knee, hip = (mech.model.getJointId(x) for x in ("knee", "hip"))
    pin.forwardKinematics(mech.model, data, lin.q)
    first, start = data.oMi[knee].rotation.copy(), lin.q[mech.model.idx_qs[hip]]

    def read(q, v):
        pin.forwardKinematics(mech.model, data, q)
        turn = pin.log3(data.oMi[knee].rotation @ first.T)
        return np.append(q[mech.model.idx_qs[hip]] - start, turn)

    check(lin, by_state(reduced, read))


FORCES = {
    "five_bar": "tip",
    "hung_plate": "rod 2",
    "standing_leg": "heel",
    "five_bar_revolute": "tip.x",
    "sine_gear": "sine",
}


@pytest.mark.parametrize("name", few(FORCES, ["five_bar", "five_bar_revolute"]))
def test_forces_of_constraints(name):
    lin, reduced, u = model_of(name, f"force {FORCES[name]}")
    mech, part = lin.mech, lin.partition
    where = [mech.row_names.index(x.removeprefix("force ")) for x in lin.outputs]
    assert where

    def forces(q, v, u=u):
        found = hc.forward_dynamics(mech, q, v, mech.B @ u, partition=part)
        assert found.unique[where].all()
        return found.multipliers[where]

    check(lin, by_state(reduced, forces))
    here = forces(lin.q, lin.v)
    by_u = np.array([forces(lin.q, lin.v, u + e) - here for e in np.eye(mech.nu)]).T
    assert np.abs(lin.D - by_u).max() < 1e-9
    assert np.abs(by_u).max() > 1e-3


def test_forces_with_stabilisation_and_friction():
    """Along closed motions stabilisation gives nothing; without load there is nothing to give."""
    mech, (q, v) = mechanism("five_bar"), closed_states("five_bar", count=3)[0]
    friction = hc.JointFriction(0.3, 0.5, transition=1e-3)
    loops = [dataclasses.replace(c, t_stab=1e-3) for c in mech.constraints]
    plain = mech.with_forces([friction])
    hard = dataclasses.replace(plain, constraints=loops)
    expected = hc.linearize(plain, q, v, outputs="force tip")
    found = hc.linearize(hard, q, v, outputs="force tip")
    assert np.abs(found.C - expected.C).max() < 1e-8 * np.abs(expected.C).max()
    lin = hc.linearize(mechanism("four_bar"), hc.assemble(mechanism("four_bar"))[0])
    weightless = dataclasses.replace(lin.mech, model=_without_gravity(lin.mech.model))
    idle = hc.linearize(weightless, lin.q, outputs="force pin")
    assert np.abs(idle.C).max() < 1e-9
    assert np.abs(idle.D).max() > 0.1


def _without_gravity(model):
    model = model.copy()
    model.gravity = pin.Motion.Zero()
    return model


def named(names, closure="pin", driven=0):
    """The four-bar by other names."""
    model = vertical(pin.Model())
    for name, parent, x, length in zip(
        names, (0, names[0], 0), (0, 0.2, 0.5), (0.2, 0.5, 0.4), strict=True
    ):
        add_body(model, parent, pin.JointModelRZ(), at(x), name, bar(length))
    loop = hc.Closure((names[1], at(0.5)), (names[2], at(0.4)), joint="revolute", name=closure)
    mech = hc.Mechanism(model, [loop], [names[driven]], reference=[1.0, -0.5, 1.4])
    return mech, hc.assemble(mech)[0]


@pytest.mark.parametrize(
    ("names", "closure", "wanted"),
    [
        (["motors", "b", "c"], "pin", "motors"),
        (["motors", "b", "c"], "pin", "d motors"),
        (["a", "b", "force pin"], "pin", "force pin"),
        (["a", "d c", "c"], "pin", "d c"),
        (["a", "b", "d pin"], "pin", "d pin"),
    ],
)
def test_names_that_mean_two_things_are_refused(names, closure, wanted):
    mech, q = named(names, closure)
    with pytest.raises(hc.InputError, match=f"'{wanted}' may mean .* or .*another name"):
        hc.linearize(mech, q, outputs=wanted)


def test_names_that_look_like_others():
    mech, q = named(["a", "d e", "force f"])  # no 'e', no constraint 'f'
    lin = hc.linearize(mech, q, outputs=["d e", "d d e", "force f", "d force f"])
    n = len(lin.states) // 2
    assert lin.outputs == ("d e", "d d e", "force f", "d force f")
    assert lin.C[0, :n] == pytest.approx(lin.C[1, n:], abs=1e-15)
    assert not lin.C[[0, 2], n:].any()
    mech, q = named(["a", "b", "c"], closure="c")  # a joint of the tree comes first
    lin = hc.linearize(mech, q, outputs="c")
    assert lin.C[0, 0] == pytest.approx(lin.gamma[2, 0], abs=1e-15)


def test_refusals():
    mech, (q, v) = mechanism("five_bar_revolute"), closed_states("five_bar_revolute", count=3)[0]
    for wanted, words in [
        ("elbow", "no joint called 'elbow'.*'force NAME'"),
        ("d elbow", "no joint called 'elbow'"),
        ("force elbow", "no constraint called 'elbow'"),
        ("force tip", r"'tip\.z'.*depend on other rows.*one by one"),
        ([], "got no entry"),
        (["left", "left"], "'left' twice"),
        (["motors", "d left", "motors"], "twice; names must differ"),
        (3, "must be names.*got int"),
        ([None], "got NoneType"),
        (hc.FrameTask("nowhere"), "nowhere"),
    ]:
        with pytest.raises(hc.InputError, match=words):
            hc.linearize(mech, q, v, outputs=wanted)
    off = mech.with_enabled(tip=False)
    for wanted in ("tip", "d tip"):
        with pytest.raises(hc.InputError, match="switched off"):
            hc.linearize(off, q, v, outputs=wanted)
    free = hc.Mechanism(mech.model, mech.constraints, [])
    for wanted in ("motors", ["left", "d motors"]):
        with pytest.raises(hc.InputError, match="has no motors"):
            hc.linearize(free, q, v, outputs=wanted)
    names = hc.linearize(mech, q, v, outputs=np.array(["left", "right"])).outputs
    assert [type(x) for x in names] == [str, str]
