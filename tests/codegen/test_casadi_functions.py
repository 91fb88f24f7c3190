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


def test_a_state_that_cannot_be_closed_is_told_and_so_is_another_branch():
    slider = hc.casadi_functions(zoo.slider_crank())
    assert slider.coordinates == ("slider",)
    assert not float(slider["closed_state"](slider.y + 1.0, slider.z)[2]) < 1e-9
    functions = hc.casadi_functions(robot("five_bar"))
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
