"""Reduced dynamics as CasADi functions: beside the laws; derivatives beside differences."""

from __future__ import annotations

import dataclasses
import subprocess

import numpy as np
import pinocchio as pin
import pytest
import zoo
from exported import compilers, robot
from support import few

import holoctl as hc

pytest.importorskip("casadi")

MECHANISMS = {
    "five_bar": lambda: robot("five_bar"), "leg": lambda: robot("leg"),
    "delta": lambda: robot("delta"), "geared_arm": lambda: robot("geared_arm"),
    "stewart": lambda: robot("stewart"), "slider_crank": zoo.slider_crank,
    "spatial_arms": zoo.spatial_arms, "floating_leg": zoo.floating_leg,
}  # fmt: skip
SOME = few(MECHANISMS, ["five_bar"])


def states(functions, mech, n=3, seed=3):
    """y, yd, u and the guess that belongs to y."""
    rng, k = np.random.default_rng(seed), functions.y.size
    size = 0.04 * mech.column_scale[hc.partition(mech, functions.start).independent]
    for _ in range(n):
        y = functions.y + size * rng.normal(size=k)
        yd, u = rng.normal(size=k), rng.normal(size=mech.nu)
        yield y, yd, u, np.array(functions["closed_state"](y, functions.z)[1]).ravel()


def call(function, *given):
    return np.array(function(*given)).ravel()


@pytest.mark.parametrize("name", SOME)
def test_they_agree_with_the_laws(name):
    mech = MECHANISMS[name]()
    functions = hc.casadi_functions(mech)
    for y, yd, u, z in states(functions, mech):
        found = functions["closed_state"](y, z)
        q, _, error, branch, guard = (np.array(x).ravel() for x in found)
        assert guard[0] < 1.0
        assert error[0] < 1e-11
        assert branch[0] > 0.1
        v = call(functions["rates"], y, yd, z)
        assert hc.constraint_errors(mech, q, v).closure < 1e-10
        ydd, h = call(functions["dynamics"], y, yd, u, z), 1e-4
        a = hc.forward_dynamics(mech, q, v, u=u).a
        assert np.abs(a).max() > 0.1
        on = [(y + s * h * yd + 0.5 * h * h * ydd, yd + s * h * ydd) for s in (-1.0, 1.0)]
        ahead = [call(functions["rates"], *x, z) for x in on]
        assert (ahead[1] - ahead[0]) / (2.0 * h) == pytest.approx(a, abs=1e-5 * np.abs(a).max())
        if "inverse" in functions:
            assert call(functions["inverse"], y, yd, ydd, z) == pytest.approx(u, abs=1e-9)


def slopes(function, y, yd, u, z, i):
    """Differences of the sixth order along y_i, by a long and by a short step."""
    for h in (1e-3, 2e-4):
        at = [
            np.array(function(y + s * h * np.eye(y.size)[i], yd, u, z)).ravel(order="F")
            for s in (1, 2, 3, -1, -2, -3)
        ]
        yield (45.0 * (at[0] - at[3]) - 9.0 * (at[1] - at[4]) + at[2] - at[5]) / (60.0 * h)


@pytest.mark.parametrize("name", SOME)
def test_derivatives_go_through_the_closure(name):
    """As differences say, also of the Jacobian itself."""
    mech = MECHANISMS[name]()
    functions = hc.casadi_functions(mech)
    motion, k = functions["dynamics"], functions.y.size
    first = motion.factory("first", motion.name_in(), ["jac:ydd:y"])
    second = first.factory("second", first.name_in(), ["jac:jac_ydd_y:y"])
    y, yd, u, z = next(states(functions, mech, 1))
    for function, exact in ((motion, first), (first, second)):
        found = np.array(exact(y, yd, u, z))
        for i in range(k):
            off = [np.abs(found[:, i] - x).max() for x in slopes(function, y, yd, u, z, i)]
            assert min(off) < 1e-9 * max(1.0, np.abs(found).max())
        assert np.abs(found).max() > 1e-3


FRAMES = {"five_bar": "tip_right", "leg": "ankle", "delta": "tip", "stewart": "tip"}
RUBBED = {
    "five_bar": {"motor_left": (0.2, 0.3), "elbow_right": (0.0, 0.1), "tip_hinge": (0.1, 0.0)},
}
LOAD = {
    "payload_mass": [0.8], "payload_centre": [0.05, -0.02, 0.08],
    "payload_inertia": [4e-3, 3e-3, 3.5e-3, 4e-4, -5e-4, 6e-4], "gravity": [9.0, 1.0, -3.0],
}  # fmt: skip


def friction(rubbed, times=1.0):
    """Joint friction with Stribeck's in one joint, whose excess is the same."""
    viscous, coulomb = ({x: times * y[i] for x, y in rubbed.items()} for i in (0, 1))
    joint, *_ = rubbed
    return hc.JointFriction(viscous, coulomb, {joint: (coulomb[joint] + 0.2, 0.5)}, transition=0.4)


def really(mech, frame, rubbed):
    """The mechanism that has the load, the gravity and three times the friction built in."""
    model, (xx, yy, zz, xy, xz, yz) = mech.model.copy(), LOAD["payload_inertia"]
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    at = model.frames[model.getFrameId(frame)]
    body = pin.Inertia(LOAD["payload_mass"][0], np.array(LOAD["payload_centre"]), inertia)
    model.appendBodyToJoint(at.parentJoint, body, at.placement)
    model.gravity = pin.Motion(np.array(LOAD["gravity"]), np.zeros(3))
    return dataclasses.replace(mech.with_model(model), forces=[friction(rubbed, 3.0)])


def with_parameters(name):
    """Functions with all parameters, the values of a load, and functions of what really has it."""
    mech = MECHANISMS[name]()
    rubbed = RUBBED.get(name) or dict.fromkeys(mech.actuated, (0.2, 0.3))
    mech = mech.with_forces([friction(rubbed)])
    part = hc.partition(mech, hc.assemble(mech)[0])
    functions = hc.casadi_functions(
        mech, part, payload=FRAMES[name], gravity=True, friction=True
    )  # fmt: skip
    values = dict(functions.parameters) | {x: np.array(y) for x, y in LOAD.items()}
    for x in ("friction_viscous", "friction_coulomb"):
        values[x] = 3.0 * values[x]
    other = really(mech, FRAMES[name], rubbed)
    return mech, functions, values, hc.casadi_functions(other, part, functions.start)


PARAMETRISED = few(FRAMES, ["five_bar"])


@pytest.mark.parametrize("name", PARAMETRISED)
def test_parameters_give_what_a_mechanism_has_that_is_really_loaded(name):
    mech, functions, values, loaded = with_parameters(name)
    plain = hc.casadi_functions(mech, hc.partition(mech, functions.start))
    assert functions.parameters.keys() == functions.entries.keys() == values.keys()
    for y, yd, u, z in states(plain, mech):
        for which, one in (("dynamics", u), ("inverse", yd)):
            if which not in functions:  # the leg floats
                continue
            given, usual = values.values(), functions.parameters.values()
            right = call(loaded[which], y, yd, one, z)
            found = call(functions[which], y, yd, one, z, *given)
            assert np.abs(found - right).max() < 1e-12 * max(1.0, np.abs(right).max())
            before = call(plain[which], y, yd, one, z)
            found = call(functions[which], y, yd, one, z, *usual)
            assert np.abs(found - before).max() < 1e-12 * max(1.0, np.abs(before).max())
            assert np.abs(before - right).max() > 1e-2
        guard = float(functions["closed_state"](y, z, *values.values())[4])
        assert guard == pytest.approx(float(loaded["closed_state"](y, z)[4]), rel=0.2)


@pytest.mark.parametrize("name", PARAMETRISED)
def test_derivatives_by_parameters_are_exact(name):
    mech, functions, values, loaded = with_parameters(name)
    motion = functions["dynamics"]
    y, yd, u, z = next(states(loaded, mech, 1))
    for x, value in values.items():
        slopes = motion.factory("slopes", motion.name_in(), [f"jac:ydd:{x}"])
        found = np.array(slopes(y, yd, u, z, *values.values()))
        size = np.abs(value).max()
        for i in range(value.size):
            on = np.eye(value.size)[i]
            off = []
            for h in (1e-2 * size, 1e-3 * size):
                at = [
                    call(motion, y, yd, u, z, *(values | {x: value + s * h * on}).values())
                    for s in (1, 2, 3, -1, -2, -3)
                ]
                slope = (45.0 * (at[0] - at[3]) - 9.0 * (at[1] - at[4]) + at[2] - at[5]) / 60.0 / h
                off.append(np.abs(found[:, i] - slope).max())
            assert min(off) < 1e-9 * max(1.0, np.abs(found).max())
        turns = name != "delta" or x not in ("payload_centre", "payload_inertia")
        assert (np.abs(found).max() > 1e-3) == turns  # the platform of the Delta never turns


def test_parameters_are_told_by_name_size_and_unit():
    _, functions, *_ = with_parameters("five_bar")
    joints = ["motor_left", "elbow_right", "tip_hinge"]
    assert functions.entries["friction_viscous"] == tuple(f"{x} [N m s/rad]" for x in joints)
    assert functions.entries["friction_coulomb"] == tuple(f"{x} [N m]" for x in joints)
    assert functions.parameters["friction_viscous"] == pytest.approx([0.2, 0.0, 0.1])
    for name in ("closed_state", "dynamics", "inverse"):
        one, k = functions[name], len(functions.parameters)
        assert one.name_in()[-k:] == list(functions.parameters)
        sizes = [one.numel_in(i) for i in range(one.n_in())]
        assert sizes[-k:] == [len(x) for x in functions.entries.values()]
    assert functions["rates"].name_in() == ["y", "yd", "guess"]
    left_out = functions["dynamics"](y=functions.y, guess=functions.z)["ydd"]
    assert np.isnan(np.array(left_out)).all()
    slide = zoo.slider_crank().with_forces([hc.JointFriction(coulomb={"slider": 1.0})])
    assert hc.casadi_functions(slide, friction=True).entries["friction_coulomb"] == ("slider [N]",)


@pytest.mark.parametrize(("given", "why"), [
    ({"payload": "tip_rigth"}, r"no joint or frame called 'tip_rigth'.*tip_right"),
    ({"payload": "universe"}, "'universe' is fixed to the world"),
    ({"payload": 1.0}, "must be the name of a frame"),
    ({"gravity": "no"}, "gravity must be True or False"),
    ({"friction": 0.1}, "friction must be True or False"),
    ({"friction": True}, "coefficients of its JointFriction, but it has 0 of them"),
    ({"payload": "tip_right", "tasks": {"com": hc.CenterOfMassTask("x z")}}, "centre of mass"),
])  # fmt: skip
def test_parameters_that_cannot_be_are_refused(given, why):
    with pytest.raises(hc.InputError, match=why):
        hc.casadi_functions(robot("five_bar"), **given)


def test_friction_must_be_one_and_counterbalances_know_gravity():
    mech = robot("five_bar")
    two = [hc.JointFriction(0.1), hc.JointFriction(0.2, name="b")]
    for forces, why in (([hc.JointFriction()], "one without friction"), (two, "2 of them")):
        with pytest.raises(hc.InputError, match=why):
            hc.casadi_functions(mech.with_forces(forces), friction=True)
    lifted = mech.with_forces([hc.Counterbalance("tip_right", 1.0)])
    with pytest.raises(hc.InputError, match="gravity of the model"):
        hc.casadi_functions(lifted, gravity=True)


def test_a_state_that_cannot_be_closed_is_told_and_so_is_another_branch():
    slider = hc.casadi_functions(zoo.slider_crank())
    assert slider.coordinates == ("slider",)
    assert not float(slider["closed_state"](slider.y + 1.0, slider.z)[2]) < 1e-9
    functions = hc.casadi_functions(robot("five_bar"))
    for y in (np.nan * functions.y, functions.y + np.array([0.0, np.nan])):
        assert np.isnan([float(x) for x in functions["closed_state"](y, functions.z)[2:]]).all()
    near = functions["closed_state"](functions.y, functions.z)
    assert float(near[2]) < 1e-12
    assert float(near[3]) == pytest.approx(1.0)
    mech = hc.load(hc.robot_file("five_bar"))
    other = hc.assembly_modes(mech, dict(zip(functions.coordinates, functions.y, strict=True)))
    branches = [
        float(functions["closed_state"](functions.y, _guess(mech, functions, x.q))[3])
        for x in other.modes
    ]
    assert min(branches) < 0.0 < max(branches)


def _guess(mech, functions, q):
    """The dependent displacements of a configuration from the start."""
    part = hc.partition(mech, functions.start)
    return pin.difference(mech.model, functions.start, np.asarray(q))[part.dependent]


def test_tasks_are_functions_by_name():
    mech = robot("five_bar")
    functions = hc.casadi_functions(mech, tasks={"tip": hc.FrameTask("tip", "x z")})
    y, yd, _, z = next(states(functions, mech))
    q = call(lambda *x: functions["closed_state"](*x)[0], y, z)
    data = mech.model.createData()
    pin.framesForwardKinematics(mech.model, data, q)
    place = data.oMf[mech.model.getFrameId("tip")].translation[[0, 2]]
    e, rate = functions["tip"](y, yd, [0.1, 0.2], z)
    assert np.array([0.1, 0.2]) - np.array(e).ravel() == pytest.approx(place)
    assert np.abs(np.array(rate)).max() > 0.01


@pytest.mark.slow
def test_they_are_generated_as_c(tmp_path):
    import casadi

    functions = hc.casadi_functions(robot("five_bar"))
    motion = functions["dynamics"]
    with_jacobian = motion.factory("f", motion.name_in(), ["ydd", "jac:ydd:y", "jac:ydd:u"])
    with_jacobian.generate("f.c")
    source, made = tmp_path / "f.c", tmp_path / "f.so"
    source.write_bytes((source.parent.cwd() / "f.c").read_bytes())
    (source.parent.cwd() / "f.c").unlink()
    command = [compilers()[0], "-O1", "-fPIC", "-shared", source, "-o", made, "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    compiled = casadi.external("f", str(made))
    y, yd, u, z = next(states(functions, robot("five_bar")))
    for one, other in zip(compiled(y, yd, u, z), with_jacobian(y, yd, u, z), strict=True):
        assert np.array(one) == pytest.approx(np.array(other), abs=1e-11)


def test_what_they_do_not_carry_is_named():
    mech = robot("five_bar")
    with pytest.raises(hc.InputError, match="mech must be a Mechanism"):
        hc.casadi_functions("five_bar")
    with pytest.raises(hc.InputError, match="tasks must be a mapping"):
        hc.casadi_functions(mech, tasks=[hc.FrameTask("tip", "x z")])
    with pytest.raises(hc.InputError, match="'dynamics' is a name of these functions"):
        hc.casadi_functions(mech, tasks={"dynamics": hc.FrameTask("tip", "x z")})
    with pytest.raises(hc.InputError, match="cannot be compiled"):
        hc.casadi_functions(zoo.timed_arm())
    wind = hc.CustomForce(
        lambda q, v, t: t * np.ones(4), name="wind", casadi=lambda q, v, t: t + 0.0 * q
    )
    with pytest.raises(hc.InputError, match="depend on time"):
        hc.casadi_functions(dataclasses.replace(mech, forces=[wind]))


@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
def test_the_branch_is_that_of_the_start(name):
    """Also where the reference of the mechanism is on another one."""
    mech, signs = robot(name), set()
    for seed in range(4):
        q, _ = hc.assemble(mech, np.random.default_rng(seed).uniform(-3.0, 3.0, mech.nq))
        functions = hc.casadi_functions(mech, start=q)
        found = functions["closed_state"](functions.y, functions.z)
        assert float(found[3]) == pytest.approx(1.0, abs=1e-9)
        part = hc.partition(mech, q)
        other = hc.casadi_functions(mech, part, mech.reference)
        z = pin.difference(mech.model, other.start, q)[part.dependent]
        signs.add(float(other["closed_state"](functions.y, z)[3]) > 0.0)
    assert signs == {True, False}
