"""Controllers near type-2 singularities: `margin` refuses, in Python, compiled and exported C."""

from __future__ import annotations

import dataclasses
import logging
import pickle
import sys

import numpy as np
import pinocchio as pin
import pytest
from exported import Exported
from scipy.linalg import null_space
from scipy.optimize import brentq
from support import shared
from zoo import add_body, at, bar, vertical

import holoctl as hc
from holoctl.dynamics.actuation_side import actuation_side
from holoctl.rows.evaluate import scaled_rows_at

SIZES = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]
MARGIN = 3e-3


def five_bar():
    """Two driven arms and two rods, whose tip can pass the line through the elbows."""
    m = vertical(pin.Model())
    for name, x in (("left", -0.1), ("right", 0.1)):
        add_body(m, 0, pin.JointModelRZ(), at(x), name, bar(0.2, 0.3))
        add_body(m, name, pin.JointModelRZ(), at(0.2), f"{name}_rod", bar(0.2, 0.3))
    m.addFrame(pin.Frame("tip", m.getJointId("left_rod"), 0, at(0.2), pin.FrameType.OP_FRAME))
    loop = hc.Closure(("left_rod", at(0.2)), ("right_rod", at(0.2)), name="loop", axes="x y")
    start = [2.0, -1.0, 1.1, 1.0]
    return hc.Mechanism(m, [loop], ["left", "right"], reference=start, name="five_bar")


def three_rrr():
    """A triangle on three legs in the plane, none like another."""
    m = vertical(pin.Model())
    base, corners = [(0.0, 0.0), (1.0, 0.1), (0.4, 0.9)], [(0.0, 0.0), (0.45, 0.0), (0.2, 0.4)]
    arms, rods = (0.4, 0.45, 0.42), (0.5, 0.4, 0.45)
    for i, place in enumerate(base):
        add_body(m, 0, pin.JointModelRZ(), at(*place), f"arm_{i}", bar(arms[i]))
        add_body(m, f"arm_{i}", pin.JointModelRZ(), at(arms[i]), f"rod_{i}", bar(rods[i]))
        if i == 0:
            add_body(m, "rod_0", pin.JointModelRZ(), at(rods[0]), "table", bar(0.4))
    loops = [
        hc.Closure(("table", at(*corners[i])), (f"rod_{i}", at(rods[i])), axes="x y", name=f"c{i}")
        for i in (1, 2)
    ]
    return hc.Mechanism(m, loops, ["arm_0", "arm_1", "arm_2"], name="three_rrr")


MECHANISMS = {
    "five_bar": five_bar,
    "three_rrr": three_rrr,
    "stewart": lambda: hc.load(hc.robot_file("stewart")),
}


EACH = ["five_bar", "stewart", pytest.param("three_rrr", marks=pytest.mark.slow)]


def signed(mech, rows, q):
    """The smallest singular value of N' B, scaled, with the sign of det [G; B']: by dense null
    spaces."""
    c = mech.column_scale
    G = hc.terms(mech, q, np.zeros(mech.nv)).rows.jacobian[rows] * c
    motors = c[:, None] * mech.B
    motors = motors / np.linalg.norm(motors, axis=0)
    value = np.linalg.svd(null_space(G).T @ motors, compute_uv=False)[-1]
    return value * np.linalg.slogdet(np.vstack([G / np.linalg.norm(G), motors.T]))[0]


def near(name):
    """Mechanism, partition, start, and states on both sides of a singularity: sigma to q."""

    def found():
        mech = MECHANISMS[name]()
        q0, _ = hc.assemble(mech)
        part, rng = hc.partition(mech, q0), np.random.default_rng(3)
        side = np.sign(signed(mech, part.rows, q0))

        def value(q):
            return signed(mech, part.rows, q) * side

        for k in range(9):  # a free motion across
            speed = hc.assemble(mech, q0, k * rng.normal(size=mech.nv))[1]
            run = hc.simulate(mech, None, q0, speed, 0.3)
            sizes = np.array([value(q) for q in run.q])
            last = int(np.argmax(sizes < -SIZES[0]))
            if last:
                break
        first = int(np.flatnonzero(sizes[:last] > SIZES[0])[-1])
        nodes = run.q[first : last + 1]

        def between(s):
            k = min(int(s), len(nodes) - 2)
            q = pin.interpolate(mech.model, nodes[k], nodes[k + 1], s - k)
            return hc.corrected(mech, q, np.zeros(mech.nv))[0]

        states = {}
        for sigma in [*SIZES, *(-x for x in SIZES)]:
            away = [value(between(k)) - sigma for k in range(len(nodes))]
            k = next(k for k in range(len(nodes) - 1) if away[k] * away[k + 1] <= 0.0)
            s = brentq(lambda s, x=sigma: value(between(s)) - x, k, k + 1, xtol=1e-14, rtol=1e-14)
            states[sigma] = between(s)
        return mech, part, q0, states

    return shared(f"near type 2, {name}", found)


def holding(mech, q):
    """The arguments of a torque that holds the mechanism at rest, by motors."""
    zero = np.zeros(mech.nu)
    return q, np.zeros(mech.nv), mech.motor_positions(q), zero, zero


def laws(mech, part, **more):
    """Functions q -> u of controllers."""
    given = {"partition": part, **more}
    zero = np.zeros(mech.nu)
    for compensation in ("full", "gravity"):
        yield motors_law(hc.ComputedTorque(mech, 400.0, 40.0, compensation, **given))
    wide = hc.Limits(effort=1e9)
    yield motors_law(hc.ComputedTorque(mech, 400.0, 40.0, limits=wide, **given))
    prepared = hc.PreparedInverseDynamics(mech, **given)
    yield lambda q: prepared.torque(q, np.zeros(mech.nv), zero)
    if mech.name == "five_bar":
        tip = hc.FrameTask("tip", "x y")
        for law in (
            hc.TaskSpaceControl(mech, tip, 400.0, 40.0, **given),
            hc.Impedance(mech, tip, 400.0, 40.0, **given),
        ):
            yield lambda q, law=law: law.torque(q, np.zeros(4), [0.0, 0.2])


def motors_law(law):
    return lambda q: law.torque(*holding(law.mech, q))


@pytest.mark.parametrize("name", EACH)
def test_below_the_margin_there_is_no_torque_and_above_the_same(name):
    mech, part, _, states = near(name)
    for sigma, q in states.items():
        below = laws(mech, part, margin=min(1.1 * abs(sigma), 0.99))
        for free, over, under in zip(
            laws(mech, part), laws(mech, part, margin=0.9 * abs(sigma)), below, strict=True
        ):
            u = free(q)
            assert np.abs(u).max() > 0.0
            np.testing.assert_array_equal(over(q), u)
            with pytest.raises(hc.SingularityError, match="below margin") as caught:
                under(q)
            error = caught.value
            assert error.kind == "type 2"
            assert error.value == pytest.approx(abs(sigma), rel=1e-8, abs=1e-12)
            np.testing.assert_array_equal(error.q, q)
            assert error.motion.endswith("while all motors hold")
            assert set(error.names) <= set(mech.coordinate_names)
            assert error.motion in str(error)


@pytest.mark.parametrize("name", EACH)
def test_holding_alone_grows_as_one_over_sigma_and_limits_bound_it(name):
    """No slower motion helps: at rest, without a command, efforts grow without bound."""
    mech, part, _, states = near(name)
    free = hc.ComputedTorque(mech, 400.0, 40.0, partition=part)
    small = [states[x] for x in SIZES[2:]]
    sizes = [np.abs(free.torque(*holding(mech, q))).max() for q in small]
    products = [x * sigma for x, sigma in zip(sizes, SIZES[2:], strict=True)]
    assert products == pytest.approx([products[-1]] * 4, rel=0.1)
    most = 2.0 * np.abs(free.torque(*holding(mech, hc.assemble(mech)[0]))).max()
    for policy in ("nearest", "scale"):
        limited = hc.ComputedTorque(
            mech, 400.0, 40.0, partition=part, limits=hc.Limits(effort=most), policy=policy
        )
        for q in small:
            assert np.abs(limited.torque(*holding(mech, q))).max() <= most


@pytest.mark.parametrize("independent", [["left", "right"], ["left", "left_rod"]])
def test_whatever_the_coordinates_and_the_motors_are(independent):
    """Also where motors are no independent coordinates, or act by a matrix."""
    mech, _, q0, states = near("five_bar")
    mixed = dataclasses.replace(mech, actuated=(), actuation=mech.B @ [[1.0, 0.3], [0.0, 2.0]])
    for of in (mech, mixed):
        part = hc.partition(of, q0, independent=independent)
        for sigma in (1e-1, 1e-2, -1e-1, -1e-2):
            q = states[sigma]
            value = abs(signed(of, part.rows, q))
            asked = q, np.zeros(4), np.ones(2)
            u = hc.PreparedInverseDynamics(of, part).torque(*asked)
            law = hc.PreparedInverseDynamics(of, part, margin=(1.0 - 1e-6) * value)
            np.testing.assert_array_equal(law.torque(*asked), u)
            law = hc.PreparedInverseDynamics(of, part, margin=(1.0 + 1e-6) * value)
            with pytest.raises(hc.SingularityError):
                law.torque(*asked)


@pytest.mark.parametrize("name", EACH)
def test_value_and_sign_are_those_of_the_determinant(name):
    """Of all rows and motors, whether motors drive coordinates of their own or not."""
    mech, part, _, states = near(name)
    turned = np.triu(np.ones((mech.nu, mech.nu)))
    turned[0, 0] = -1.0
    for of in (mech, dataclasses.replace(mech, actuated=(), actuation=mech.B @ turned)):
        side = actuation_side(of, part)
        for q in states.values():
            found = side(scaled_rows_at(of, q, np.zeros(of.nv), 0.0).jacobian)
            value = signed(of, part.rows, q)
            assert found.sign == np.sign(value) != 0.0
            assert found.sigma == pytest.approx(abs(value), rel=1e-7, abs=1e-13)


def test_in_loops_and_runs():
    mech, part, q0, states = near("five_bar")
    law = hc.ComputedTorque(mech, 400.0, 40.0, partition=part, margin=0.2)
    zero, there = np.zeros(2), mech.motor_positions(states[1e-1])
    home = mech.motor_positions(q0)
    follow = law.track(lambda t: (home + min(t / 0.3, 1.0) * (there - home), zero, zero))
    with pytest.raises(hc.SingularityError, match="below margin") as caught:
        hc.simulate(mech, follow, q0, np.zeros(4), 1.0, frequency=500.0)
    assert caught.value.time == caught.value.run.t[-1] > 0.0
    assert 0.15 < caught.value.value < 0.2
    loop = law.loop()
    u = loop.torque_from_motors(home, zero, home, zero, zero)
    np.testing.assert_allclose(u, law.torque(q0, np.zeros(4), home, zero, zero), rtol=1e-10)
    loop.reset(states[1e-1])
    with pytest.raises(hc.SingularityError, match="below margin"):
        loop.torque_from_motors(there, zero, there, zero, zero)


def test_what_a_margin_may_be():
    mech, part, *_ = near("five_bar")
    for wrong in (0.0, -0.1, np.nan, 1.0, 3.0):
        with pytest.raises(hc.InputError, match="margin"):
            hc.ComputedTorque(mech, 400.0, 40.0, partition=part, margin=wrong)
    more = dataclasses.replace(mech, actuated=("left", "right", "left_rod"))
    fewer = dataclasses.replace(mech, actuated=("left",))
    for other in (more, fewer):
        with pytest.raises(hc.InputError, match="as many motors as motions"):
            hc.PreparedInverseDynamics(other, margin=0.1)
    tip = hc.FrameTask("tip", "x y")
    for law in (
        hc.ComputedTorque(mech, 400.0, 40.0, margin=0.1),
        hc.TaskSpaceControl(mech, tip, 400.0, 40.0, margin=0.1),
        hc.Impedance(mech, tip, 400.0, 40.0, margin=0.1),
        hc.PreparedInverseDynamics(mech, margin=0.1),
    ):
        assert pickle.loads(pickle.dumps(law)).margin == 0.1


# ---------------------------------------------------------------------- compiled, and in C

MACHINES = [
    pytest.param("five_bar", "vm"),
    pytest.param("three_rrr", "vm", marks=pytest.mark.slow),
    pytest.param("stewart", "vm", marks=pytest.mark.slow),
    pytest.param("five_bar", "c", marks=pytest.mark.slow),
    pytest.param("three_rrr", "c", marks=pytest.mark.slow),
    pytest.param("stewart", "c", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "machine"), MACHINES)
@pytest.mark.parametrize("compensation", ["full", "gravity"])
def test_compiled_laws_refuse_the_same_states(name, machine, compensation):
    pytest.importorskip("casadi")
    mech, part, q0, states = near(name)
    law = hc.ComputedTorque(mech, 400.0, 40.0, compensation, partition=part, margin=MARGIN)
    fast, zero = hc.compile(law, machine=machine), np.zeros(mech.nu)
    python, follow = (
        x.track(lambda t: (mech.motor_positions(q0), zero, zero)) for x in (law, fast)
    )
    for q in (q0, states[0.1], states[-0.1]):
        for tracking in (python, follow):
            tracking(0.0, q, np.zeros(mech.nv))
        assert follow.last.side == python.last.side != 0
        sigma = python.last.smallest_singular_value
        assert follow.last.smallest_singular_value == sigma > 0.09
    assert fast.fallbacks == 0
    for sigma, q in states.items():
        if abs(sigma) < MARGIN:
            with pytest.raises(hc.SingularityError, match="below margin"):
                fast.torque(*holding(mech, q))
        else:
            u = law.torque(*holding(mech, q))
            np.testing.assert_allclose(fast.torque(*holding(mech, q)), u, rtol=1e-8)


@pytest.mark.slow
def test_compiled_tasks_refuse_the_same_states():
    pytest.importorskip("casadi")
    mech, part, _, states = near("five_bar")
    tip = hc.FrameTask("tip", "x y")
    law = hc.TaskSpaceControl(mech, tip, 400.0, 40.0, partition=part, margin=MARGIN)
    fast = hc.compile(law, machine="vm")
    for sigma, q in states.items():
        asked = q, np.zeros(4), [0.0, 0.2]
        if abs(sigma) < MARGIN:
            with pytest.raises(hc.SingularityError, match="below margin"):
                fast.torque(*asked)
        else:
            np.testing.assert_allclose(fast.torque(*asked), law.torque(*asked), rtol=1e-7)


@pytest.mark.parametrize(
    "name", ["five_bar", *(pytest.param(x, marks=pytest.mark.slow) for x in list(MECHANISMS)[1:])]
)
def test_exported_c_has_sigma_and_side_of_python(name, tmp_path, caplog):
    pytest.importorskip("casadi")
    mech, part, q0, states = near(name)
    law = hc.ComputedTorque(mech, 400.0, 40.0, partition=part, margin=MARGIN)
    with caplog.at_level(logging.ERROR):
        exported = Exported(law, tmp_path)
    python = law.track(lambda t: (mech.motor_positions(q0), np.zeros(mech.nu), np.zeros(mech.nu)))
    free = dataclasses.replace(law, margin=None).track(python.reference)
    free(0.0, q0, np.zeros(mech.nv))
    assert exported.c.margin == MARGIN
    for sigma, q in {1.0: q0, **states}.items():
        status, u = exported.call("torque", *holding(mech, q))
        if abs(sigma) < MARGIN:
            assert status == "NEAR_SINGULAR"
        else:
            assert status == "OK"
            np.testing.assert_allclose(u, law.torque(*holding(mech, q)), rtol=1e-8)
        free(0.0, q, np.zeros(mech.nv))
        assert exported.c.sigma == pytest.approx(free.last.smallest_singular_value, abs=1e-12)
        assert exported.c.side == free.last.side == np.sign(sigma)
        assert exported.c.sigma == pytest.approx(abs(signed(mech, part.rows, q)), abs=1e-12)
    exported.c.margin = 0.0  # tells, and refuses nothing
    status, _ = exported.call("torque", *holding(mech, states[1e-6]))
    assert status in ("OK", "SINGULAR", "PIVOT_GROWTH")
    assert exported.c.sigma == pytest.approx(1e-6, abs=1e-12)
    exported.c.margin = -1.0
    assert exported.call("torque", *holding(mech, q0))[0] == "OK"
    assert (exported.c.sigma, exported.c.side) == (np.inf, 0.0)
    exported.c.margin = 0.0
    assert exported.call("torque", *holding(mech, q0))[0] == "OK"
    assert exported.c.sigma > MARGIN
    assert exported.call("torque", np.full(mech.nq, np.nan), *holding(mech, q0)[1:])[0] != "OK"
    assert (exported.c.sigma, exported.c.side) == (np.inf, 0.0)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="shared libraries by gcc")
@pytest.mark.parametrize("kind", ["gravity", "limited", "limited gravity", "task", "mechanism"])
def test_every_exported_law_has_them(kind, tmp_path):
    pytest.importorskip("casadi")
    mech, part, q0, states = near("five_bar")
    given = {"partition": part, "margin": MARGIN}
    if "limited" in kind:
        given["limits"] = hc.Limits(effort=50.0)
    options = {}
    if kind == "task":
        law = hc.TaskSpaceControl(mech, hc.FrameTask("tip", "x y"), 400.0, 40.0, **given)
    elif kind == "mechanism":
        law, options = mech, {"partition": part}
    else:
        law = hc.ComputedTorque(
            mech, 400.0, 40.0, "gravity" if "gravity" in kind else "full", **given
        )
    exported = Exported(law, tmp_path, **options)
    assert exported.c.margin == (-1.0 if kind == "mechanism" else MARGIN)
    exported.c.margin = MARGIN
    side = np.sign(signed(mech, part.rows, q0))
    for sigma, q in states.items():
        asked = holding(mech, q)
        if kind == "task":
            asked = *asked[:2], [0.0, 0.2], *asked[3:]
        if kind == "mechanism":
            status, _ = exported.call("inverse_dynamics", *asked[:3])
        else:
            status, _ = exported.call("torque", *asked)
        assert (status == "NEAR_SINGULAR") == (abs(sigma) < MARGIN)
        assert exported.c.sigma == pytest.approx(abs(signed(mech, part.rows, q)), abs=1e-12)
        assert exported.c.side == np.sign(sigma) == side * np.sign(signed(mech, part.rows, q))
