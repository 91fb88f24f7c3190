"""Exported C builds without a warning and agrees with Python."""

from __future__ import annotations

import re
import shlex
import shutil
import sys

import numpy as np
import pinocchio as pin
import pytest
from exported import (
    Exported,
    build_and_test,
    cmake,
    compilers,
    controller,
    robot,
    run,
    short_self_test,
)
from support import EPS, ROOT, closed_states, few, mechanism

import holoctl as hc

pytest.importorskip("casadi")


# ------------------------------------------------------------------------------ the build

ROBOTS = ("four_bar", "five_bar", "leg", "stewart", "delta", "geared_arm", "ankle")


@pytest.mark.parametrize("name", few(ROBOTS, ["four_bar"]))
@pytest.mark.parametrize("which", few([0, -1], [0]))
def test_strict_build_and_self_test(name, which, tmp_path):
    cmake()
    hc.export_c(controller(name), tmp_path, plant=True)
    printed = build_and_test(tmp_path, compilers()[which])
    assert "all is well" in printed
    assert "100% tests passed" in printed


@pytest.mark.slow  # in every run those of a five-bar with limits do: see test_limited_code.py
@pytest.mark.parametrize("name", ["five_bar", "leg", "stewart"])
def test_sanitizers_find_nothing(name, tmp_path):
    cmake()
    hc.export_c(controller(name), tmp_path, plant=True)
    assert "all is well" in build_and_test(tmp_path, compilers()[0], "-DHOLOCTL_SANITIZE=ON")


def test_the_storm_of_the_self_test_must_see_torques_that_are_not_finite(five_bar, leg):
    """By most rates; were it refused for these, or were the numbers too small, it would not."""
    for exported in (five_bar, leg):
        text = next(x for x in exported.paths if x.name.endswith("_test.c")).read_text()
        assert '_OVERFLOW] > 0, "OVERFLOW in a storm")' in text


@pytest.mark.slow
@pytest.mark.parametrize("compensation", ["full", "gravity"])
def test_a_continuous_motor_and_gravity(compensation, tmp_path):
    cmake()
    what = hc.ComputedTorque(robot("four_bar"), kp=40.0, kd=4.0, compensation=compensation)
    hc.export_c(what, tmp_path)
    assert "all is well" in build_and_test(tmp_path, compilers()[0])


@pytest.mark.slow
def test_inverse_dynamics_alone(tmp_path):
    cmake()
    paths = hc.export_c(mechanism("floating_leg"), tmp_path)
    assert "_torque(" not in paths[0].read_text()
    assert "all is well" in build_and_test(tmp_path, compilers()[0])


def test_motors_without_positions_leave_the_inverse_dynamics(tmp_path):
    mech = mechanism("five_bar")
    mixed = hc.Mechanism(
        mech.model, mech.constraints, actuation=np.array([[1.0, 0.2], [0, 0], [0.3, 1.0], [0, 0]]),
        reference=mech.reference,
    )  # fmt: skip
    exported = Exported(hc.ComputedTorque(mixed, kp=1.0, kd=1.0), tmp_path, name="mixed")
    assert not exported.has_torque
    q, v = hc.assemble(mixed, v_guess=np.ones(4))
    expected = hc.PreparedInverseDynamics(mixed).torque(q, v, [1.0, 2.0])
    status, u = exported.call("inverse_dynamics", q, v, [1.0, 2.0])
    assert status == "OK"
    np.testing.assert_allclose(u, expected, rtol=1e-12)


@pytest.mark.parametrize("name", few(["five_bar", "leg"], ["five_bar"]))
def test_no_heap_no_output_no_global_state(name, request, tmp_path):
    exported = request.getfixturevalue(name)
    if not shutil.which("nm"):
        pytest.skip("no nm is here")
    made = tmp_path / "law.o"
    run(compilers()[0], "-std=c99", "-O2", "-c", exported.paths[1], "-o", made)
    symbols = [line.split() for line in run("nm", made).splitlines()]
    needed = {x[-1].split("@")[0] for x in symbols if x[-2] == "U"}
    assert needed <= {
        "sin", "cos", "sincos", "sqrt", "fabs", "floor", "atan2", "exp", "log", "pow",
        "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail", "memcpy", "memset",
    }  # fmt: skip
    assert not [x for x in symbols if x[-2] in "bBdDcCsSgG"], "nothing that can change"
    public = {x[-1] for x in symbols if x[-2] == "T"}
    names = (
        "init_checked", "torque", "inverse_dynamics", "status_text", "state", "reset",
        "torque_from_motors",
    )  # fmt: skip
    assert public == {f"{exported.prefix}_{x}" for x in names}


def test_no_function_calls_itself_and_no_array_has_a_variable_size(leg):
    source = leg.paths[1].read_text()
    sizes = re.findall(r"double \w+\[([^\]]+)\](?:, \w+\[([^\]]+)\])*", source)
    assert sizes
    for size in {x for found in sizes for x in found if x}:
        assert re.fullmatch(r"[A-Z0-9_ *]+|\d+", size), size
    for name, body in re.findall(r"^static \w+ (\w+)\(.*?\{\n(.*?)^\}", source, re.M | re.S):
        assert f" {name}(" not in body


# -------------------------------------------------------------------------------- numbers

QUICK = ("geared_slider", "three_motors", "floating_leg", "screw_chain")
SLOW = (
    "third_bar", "four_bar", "five_bar_revolute", "slotted_arms", "spatial_arms", "universal_rods",
    "hung_plate", "standing_leg", "bennett", "six_row_four_bar", "idle_rod", "weld_chain",
    "prismatic_chain", "planar_chain", "welded_arms", "held_foot",
)  # fmt: skip


@pytest.mark.parametrize("name", few([*QUICK, *SLOW], QUICK[:2]))
def test_random_states_agree_with_python(name, tmp_path):
    mech, rng = mechanism(name), np.random.default_rng(7)
    exported = Exported(mech, tmp_path, name=name, closure_limit=0.1)
    part = hc.partition(mech, hc.assemble(mech)[0])
    python = hc.PreparedInverseDynamics(mech, part, inconsistent="project")
    good = 0
    for i, (closed_q, closed_v) in enumerate(closed_states(name, 40)):
        q, v = closed_q, closed_v
        if i % 2:
            step = 1e-3 * rng.normal(size=mech.nv) * mech.column_scale
            q, v = pin.integrate(mech.model, q, step), v + 1e-2 * rng.normal(size=mech.nv)
        target = 5.0 * rng.normal(size=mech.nu)
        status, u = exported.call("inverse_dynamics", q, v, target)
        assert np.isfinite(u).all()
        if status != "OK":
            continue
        good += 1
        result = hc.inverse_dynamics(
            mech, q, v, target, partition=part, inconsistent="project"
        )  # fmt: skip
        expected = python.torque(q, v, target)
        tolerance = max(1e-12, 100.0 * EPS * result.certificate.condition)
        off = np.abs(u - expected).max() / np.abs(expected).max()
        assert off < tolerance, (i, off, tolerance)
        # what is compared with the size of its terms is so along other axes, to the safe side
        for measure, most in (("closure", 1.0), ("velocity_residual", 9.0), ("acceleration", 9.0)):
            found, wanted = getattr(exported.c, measure), getattr(result.certificate, measure)
            assert (1.0 - 1e-9) * wanted - 1e-12 < found < most * (1.0 + 1e-9) * wanted + 1e-12
    assert good > 15


def test_torque_of_the_controller_agrees_with_python(leg):
    mech, rng = leg.mech, np.random.default_rng(3)
    ctl = controller("leg")
    for _ in range(30):
        guess = pin.integrate(mech.model, mech.reference, 0.1 * rng.normal(size=mech.nv))
        q, v = hc.assemble(mech, guess, rng.normal(size=mech.nv))
        reference = rng.normal(size=(3, mech.nu))
        status, u = leg.call("torque", q, v, *reference)
        assert status == "OK"
        expected = ctl.torque(q, v, *reference)
        np.testing.assert_allclose(u, expected, rtol=0.0, atol=1e-12 * np.abs(expected).max())


def test_gains_may_change_in_c(five_bar):
    mech = five_bar.mech
    five_bar.reset()
    five_bar.c.kp[0], five_bar.c.kd[1] = 7.0, 3.0
    ctl = hc.ComputedTorque(mech, kp=[7.0, 400.0], kd=[40.0, 3.0])
    q, v = hc.assemble(mech, v_guess=[1.0, 0, 0, 0])
    _, u = five_bar.call("torque", q, v, [1.0, 2.0], [0.5, 0.1], [1.0, -1.0])
    expected = ctl.torque(q, v, np.array([1.0, 2.0]), [0.5, 0.1], [1.0, -1.0])
    np.testing.assert_allclose(u, expected, rtol=1e-12)
    five_bar.reset()


def _bench(q, t):
    import casadi

    a, b = q[0], q[0] + q[1]
    return 0.5 * casadi.sin(a) + 0.4 * casadi.sin(b) - 0.3 - 0.05 * casadi.sin(3.0 * t)


def _bench_numbers(q, t):
    height = 0.5 * np.sin(q[0]) + 0.4 * np.sin(q[0] + q[1])
    return [height - 0.3 - 0.05 * np.sin(3.0 * t)]


@pytest.mark.slow
def test_time_is_an_argument_where_a_constraint_depends_on_it(tmp_path):
    cmake()
    base = mechanism("sine_gear")
    bench = hc.Custom(_bench_numbers, time=True, casadi=_bench, name="bench")
    mech = hc.Mechanism(
        base.model, [bench], ["shoulder"], reference=[0.3, 0.6], name="timed two-link/arm"
    )
    exported = Exported(mech, tmp_path, self_test=True, plant=True)
    assert exported.prefix == "holoctl_timed_two_link_arm"
    assert "all is well" in build_and_test(tmp_path, compilers()[0])
    python = hc.PreparedInverseDynamics(mech)
    for t in (0.0, 0.4, 2.0):
        q, v = hc.assemble(mech, v_guess=[1.0, 0.0], t=t)
        status, u = exported.call("inverse_dynamics", q, v, [2.0], t=t)
        assert status == "OK"
        # Python takes differences of phi, C its derivatives
        np.testing.assert_allclose(u, python.torque(q, v, [2.0], t), rtol=1e-6)
    assert exported.call("inverse_dynamics", q, v, [2.0], t=np.nan)[0] == "NOT_FINITE"


SINES = """
#include <float.h>
#include <math.h>
#include <stdio.h>
{code}
int main(void) {{
  double worst = 0.0;
  for (int i = -400000; i < 400000; i++) {{
    const double x[4] = {{i * 1e-5, i * 0.00123, i * 0.011, i * 0.24}};
    double s[4], c[4];
    sines_cosines(x, 4, s, c);
    for (int k = 0; k < 4; k++) {{
      worst = fmax(worst, fabs(s[k] - sin(x[k])));
      worst = fmax(worst, fabs(c[k] - cos(x[k])));
    }}
  }}
  printf("%g", worst);
  return 0;
}}
"""


def test_sines_and_cosines(tmp_path):
    """Ours with those of libm, from -1e5 to 1e5; with and without extended precision."""
    from holoctl.codegen.c_text import filled

    code = filled("sines_cosines.c")
    for i, text in enumerate((code, code.replace("FLT_EVAL_METHOD == 0", "0"))):
        path = tmp_path / f"sines{i}.c"
        path.write_text(SINES.format(code=text))
        run(compilers()[0], "-std=c99", "-O2", path, "-o", path.with_suffix(""), "-lm")
        assert float(run(path.with_suffix(""))) < 2.3e-16


# ------------------------------------------------------------------- the plant and the page


def test_the_plant_moves_as_python_says(tmp_path):
    import ctypes

    mech = robot("leg")
    with short_self_test():
        paths = hc.export_c(hc.ComputedTorque(mech, kp=1.0, kd=1.0), tmp_path, plant=True)
    source = next(p for p in paths if p.name.endswith("_plant.c"))
    run(compilers()[0], "-std=c99", "-O0", "-fPIC", "-shared", source, "-o", tmp_path / "p.so",
        "-lm")  # fmt: skip
    library = ctypes.CDLL(str(tmp_path / "p.so"))

    def pointer(x):
        return ctypes.c_void_p(x.ctypes.data)

    q, v = np.zeros(mech.nq), np.ones(mech.nv)
    library.holoctl_leg_plant_start(pointer(q), pointer(v))
    assert not v.any()
    np.testing.assert_allclose(q, hc.assemble(mech)[0], atol=1e-9)
    q, v = hc.assemble(mech, q, 0.5 * np.ones(mech.nv))
    u = np.linspace(-3.0, 5.0, mech.nu)
    run_ = hc.simulate(mech, lambda t, q, v: u, q, v, duration=0.02)
    for _ in range(200):
        assert library.holoctl_leg_plant_step(
            pointer(q), pointer(v), pointer(u), ctypes.c_double(1e-4)
        )
    np.testing.assert_allclose(q, run_.q[-1], atol=1e-6)
    np.testing.assert_allclose(v, run_.v[-1], atol=1e-4)
    assert np.isfinite(q).all()
    before = q.copy()
    u[0] = np.nan
    assert not library.holoctl_leg_plant_step(
        pointer(q), pointer(v), pointer(u), ctypes.c_double(1e-4)
    )
    np.testing.assert_array_equal(q, before)


@pytest.mark.slow
def test_the_plant_refuses_steps_that_leave_the_loops_open(tmp_path):
    import ctypes

    mech = robot("five_bar")
    source = next(x for x in hc.export_c(mech, tmp_path, plant=True) if x.stem.endswith("_plant")
                  and x.suffix == ".c")  # fmt: skip
    run(compilers()[0], "-std=c99", "-O1", "-fPIC", "-shared", source, "-o", tmp_path / "p.so",
        "-lm")  # fmt: skip
    library = ctypes.CDLL(str(tmp_path / "p.so"))

    def step(q, v, dt):
        given = [ctypes.c_void_p(x.ctypes.data) for x in (q, v, np.zeros(mech.nu))]
        return library.holoctl_five_bar_plant_step(*given, ctypes.c_double(dt))

    def closure(q):
        result = hc.inverse_dynamics(
            mech, q, np.zeros(mech.nv), np.zeros(mech.nu), inconsistent="project"
        )
        return result.certificate.closure

    went = {True: 0, False: 0}
    middle = hc.assemble(mech)[0]
    for dt in (1e-3, 1e-2, 3e-2, 0.1, 0.3):
        for speed in np.linspace(-13.0, 13.0, 16):
            q, v = hc.assemble(mech, middle, np.array([speed, 0.0, 0.0, 0.0]))
            before = q.copy(), v.copy()
            moved = bool(step(q, v, dt))
            went[moved] += 1
            if moved:
                assert closure(q) < 1e-5, (dt, speed)
            else:
                np.testing.assert_array_equal((q, v), before)
    assert min(went.values()) > 10
    slightly, far = middle.copy(), middle.copy()
    slightly[0] += 1e-3
    far[0] += 1e-2
    assert step(slightly, np.zeros(mech.nv), 1e-4)
    assert closure(slightly) < 1e-5
    assert not step(far, np.zeros(mech.nv), 1e-4)


PAGE = (ROOT / "docs" / "embedded.md").read_text(encoding="utf-8")


def test_the_page_has_the_program_of_the_examples():
    assert (ROOT / "examples" / "c" / "five_bar_loop.c").read_text(encoding="utf-8") in PAGE


def test_the_commands_of_the_page_run(tmp_path):
    cmake()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed = {}
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL):
        for line in block.splitlines():
            command = shlex.split(line)
            command = [x if x != "2" else "0.5" for x in command]  # a shorter run
            if command[0] == "holoctl":
                command = [sys.executable, "-m", "holoctl.app.cli", *command[1:]]
            if command[0] == "cc":
                command[0] = compilers()[0]
            printed[line] = run(*command, cwd=tmp_path)
    found = printed["./five_bar_loop 2"]
    assert "5000 ticks at 10000 Hz, 5000 of them good" in found
    error = float(re.search(r"second half: (\S+) rad", found)[1])
    assert error < 2e-3
    assert "tick: median" in printed["./five_bar_loop 2 paced"]
