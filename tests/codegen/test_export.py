"""Exported C: builds without a warning, agrees with Python, and always gives a torque."""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pinocchio as pin
import pytest
from exported import STATUSES, STRICT, Exported, build_and_test, cmake, compilers, run
from support import EPS, ROOT, closed_states, mechanism, stretched

import holoctl as hc
from holoctl.app.cli import main

pytest.importorskip("casadi")


def robot(name):
    return hc.load(hc.robot_file(name), free_flyer=name == "leg")


def controller(name, **options):
    return hc.ComputedTorque(robot(name), kp=400.0, kd=40.0, **options)


@pytest.fixture(scope="module")
def five_bar(tmp_path_factory):
    return Exported(controller("five_bar"), tmp_path_factory.mktemp("five_bar"))


@pytest.fixture(scope="module")
def leg(tmp_path_factory):
    return Exported(controller("leg"), tmp_path_factory.mktemp("leg"))


# ------------------------------------------------------------------------------ the build

ROBOTS = [
    "four_bar", "five_bar", "leg",
    *(pytest.param(x, marks=pytest.mark.slow) for x in ("stewart", "delta", "geared_arm")),
]  # fmt: skip


@pytest.mark.parametrize("name", ROBOTS)
def test_strict_build_and_self_test(name, tmp_path):
    cmake()
    hc.export_c(controller(name), tmp_path, plant=True)
    for compiler in compilers():
        printed = build_and_test(tmp_path, compiler)
        assert "all is well" in printed
        assert "100% tests passed" in printed


@pytest.mark.parametrize(
    "name", ["five_bar", "leg", *(pytest.param(x, marks=pytest.mark.slow) for x in ("stewart",))]
)
def test_sanitizers_find_nothing(name, tmp_path):
    cmake()
    hc.export_c(controller(name), tmp_path, plant=True)
    assert "all is well" in build_and_test(tmp_path, compilers()[0], "-DHOLOCTL_SANITIZE=ON")


def test_the_storm_of_the_self_test_must_see_torques_that_are_not_finite(five_bar, leg):
    """By most rates; were it refused for these, or were the numbers too small, it would not."""
    for exported in (five_bar, leg):
        text = next(x for x in exported.paths if x.name.endswith("_test.c")).read_text()
        assert '_OVERFLOW] > 0, "OVERFLOW in a storm")' in text


@pytest.mark.parametrize("compensation", ["full", "gravity"])
def test_a_continuous_motor_and_gravity(compensation, tmp_path):
    cmake()
    what = hc.ComputedTorque(robot("four_bar"), kp=40.0, kd=4.0, compensation=compensation)
    hc.export_c(what, tmp_path)
    assert "all is well" in build_and_test(tmp_path, compilers()[0])


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


def test_no_heap_no_output_no_global_state(leg, tmp_path):
    if not shutil.which("nm"):
        pytest.skip("no nm is here")
    made = tmp_path / "law.o"
    run(compilers()[0], "-std=c99", "-O2", "-c", leg.paths[1], "-o", made)
    symbols = [line.split() for line in run("nm", made).splitlines()]
    needed = {x[-1].split("@")[0] for x in symbols if x[-2] == "U"}
    assert needed <= {
        "sin", "cos", "sincos", "sqrt", "fabs", "floor", "atan2", "exp", "log", "pow",
        "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail", "memcpy", "memset",
    }  # fmt: skip
    assert not [x for x in symbols if x[-2] in "bBdDcCsSgG"], "nothing that can change"
    public = {x[-1] for x in symbols if x[-2] == "T"}
    names = ("init_checked", "torque", "inverse_dynamics", "status_text")
    assert public == {f"holoctl_leg_{x}" for x in names}


def test_no_function_calls_itself_and_no_array_has_a_variable_size(leg):
    source = leg.paths[1].read_text()
    sizes = re.findall(r"double \w+\[([^\]]+)\](?:, \w+\[([^\]]+)\])*", source)
    assert sizes
    for size in {x for found in sizes for x in found if x}:
        assert re.fullmatch(r"[A-Z0-9_ *]+|\d+", size), size
    for name, body in re.findall(r"^static \w+ (\w+)\(.*?\{\n(.*?)^\}", source, re.M | re.S):
        assert f" {name}(" not in body


# ------------------------------------------------------------------ flags, headers, no init

FLAGS = {
    "fast": "-ffast-math",
    "ofast": "-Ofast",
    "ofast, finite": "-Ofast -fno-finite-math-only",
    "unsafe": "-funsafe-math-optimizations",
    "associative": "-fassociative-math -fno-signed-zeros -fno-trapping-math",
    "finite": "-ffinite-math-only",
    "single": "-fsingle-precision-constant",
}
"""Flags that change numbers. A compiler tells of most of them by a macro."""

SILENT = "-U__FAST_MATH__ -U__ASSOCIATIVE_MATH__ -U__FINITE_MATH_ONLY__"
"""As with a compiler that has no such macros."""

HARMLESS = {
    "reciprocal": "-freciprocal-math",
    "ours": "-fno-math-errno -fno-trapping-math -fno-signed-zeros -ffp-contract=fast",
    "rounding": "-frounding-math",
    "packed": "-fpack-struct -fshort-enums",
}
"""With these the torques must be those of the self-test."""

if platform.machine() in ("x86_64", "AMD64"):
    FLAGS["24 bits"] = "-mfpmath=387 -mpc32"
    HARMLESS["long registers"] = "-mfpmath=387"
    HARMLESS["long registers, not by the standard"] = "-std=gnu99 -mfpmath=387"


def compiled(folder, paths, compiler, *flags):
    """The self-test as a program, or what the compiler says."""
    made = folder / f"self-test{abs(hash((compiler, *flags)))}"
    sources = [x for x in paths if x.suffix == ".c" and not x.stem.endswith("_plant")]
    command = [compiler, "-std=c99", "-w", *flags, *sources, "-o", made, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (made, "") if done.returncode == 0 else (None, done.stderr)


def known(compiler, flags):
    """Skips the test where the compiler has no such flag."""
    command = [compiler, "-Werror", *flags.split(), "-E", "-x", "c", os.devnull]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"{compiler} does not know {flags}")


def last_line(program):
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1]


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_flags_that_change_numbers_stop_the_compiler_or_the_torque(five_bar, flags, tmp_path):
    for compiler in compilers():
        known(compiler, flags)
        for hidden in ("", SILENT):
            options = ["-O2", *flags.split(), *hidden.split()]
            program, said = compiled(tmp_path, five_bar.paths, compiler, *options)
            if program is None:
                assert "#error" in said or "must_be_double" in said
            else:
                assert last_line(program) == (1, f"HOLOCTL_FIVE_BAR_BUILD: {five_bar.text(7)}")
            assert program is None or hidden or compiler == "clang" or "mpc32" in flags


@pytest.mark.parametrize("flags", HARMLESS.values(), ids=HARMLESS)
def test_flags_that_do_not_change_numbers_change_nothing(five_bar, flags, tmp_path):
    for compiler in compilers():
        known(compiler, flags)
        program, said = compiled(tmp_path, five_bar.paths, compiler, "-O2", *flags.split())
        assert program is not None, said
        assert last_line(program) == (0, "all is well")


def test_fast_math_for_the_linker_only_changes_nothing(five_bar, tmp_path):
    """It makes the processor flush numbers below 1e-308 to zero."""
    compiler, objects = compilers()[0], []
    for path in (x for x in five_bar.paths if x.suffix == ".c"):
        objects.append(tmp_path / f"{path.stem}.o")
        run(compiler, "-std=c99", "-O1", "-c", path, "-o", objects[-1])
    run(compiler, "-ffast-math", *objects, "-o", tmp_path / "linked", "-lm")
    assert last_line(tmp_path / "linked") == (0, "all is well")


def test_short_doubles_are_refused(five_bar, tmp_path):
    short = ("-U__DBL_MANT_DIG__", "-D__DBL_MANT_DIG__=24")
    program, said = compiled(tmp_path, five_bar.paths, compilers()[0], *short)
    assert program is None
    assert "IEEE 754" in said


PLANT_UNDER_FLAGS = """
#include "holoctl_five_bar_plant.h"
#include <fenv.h>
#include <stdio.h>
int main(void) {
  double q[4], v[4], u[2] = {1.0, 2.0};
  holoctl_five_bar_plant_start(q, v);
  printf("%d", holoctl_five_bar_plant_step(q, v, u, 1e-4));
  fesetround(FE_UPWARD);
  const int upward = holoctl_five_bar_plant_step(q, v, u, 1e-4);
  fesetround(FE_TONEAREST);
  printf("%d", upward);
  return 0;
}
"""


def test_the_plant_does_not_move_under_such_flags(tmp_path):
    """Nor with another rounding mode."""
    folder, compiler = tmp_path / "out", compilers()[0]
    plant = next(
        x for x in hc.export_c(mechanism("five_bar"), folder, name="five_bar", plant=True)
        if x.name.endswith("_plant.c")
    )  # fmt: skip
    (tmp_path / "main.c").write_text(PLANT_UNDER_FLAGS)
    run(compiler, "-std=c99", "-O1", f"-I{folder}", "-c", tmp_path / "main.c",
        "-o", tmp_path / "main.o")  # fmt: skip
    for flags, moves in (("-O1", "10"), (f"-O1 {FLAGS['associative']} {SILENT}", "00")):
        run(compiler, "-std=c99", *flags.split(), plant, tmp_path / "main.o", "-o",
            tmp_path / "moving", "-lm")  # fmt: skip
        assert run(tmp_path / "moving") == moves
    done = subprocess.run(
        [compiler, "-funsafe-math-optimizations", "-c", plant, "-o", tmp_path / "x.o"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "#error" in done.stderr


@pytest.mark.parametrize("mode", [1, 2, 3], ids=["downward", "upward", "toward zero"])
def test_another_rounding_mode_gives_no_torque(five_bar, mode):
    """The sines round to the nearest by it; set after init, by another library say."""
    import ctypes

    if platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("the numbers of the modes are those of another processor")
    five_bar.reset()
    inputs = good_inputs(five_bar)
    status, good = five_bar.call("torque", *inputs)
    assert status == "OK"
    libm = ctypes.CDLL(None)
    try:
        assert libm.fesetround(mode * 0x400) == 0
        ticked, initialised = five_bar.call("torque", *inputs), five_bar.init()
        without = five_bar.call("inverse_dynamics", *inputs[:3])
    finally:
        libm.fesetround(0)
    assert ticked[0] == initialised == without[0] == "BUILD"
    np.testing.assert_array_equal(ticked[1], good)  # held
    assert not without[1].any()  # after an init that failed there is nothing to hold
    five_bar.reset()
    np.testing.assert_array_equal(five_bar.call("torque", *inputs)[1], good)


ROUNDING = """
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
{code}
int main(void) {{
  const int modes[4] = {{FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}};
  int found[6];
  for (int i = 0; i < 4; i++) {{
    fesetround(modes[i]);
    found[i] = rounds();
  }}
  fesetround(FE_TONEAREST);
  found[4] = arithmetic_is_sound();
  found[5] = 0;
#ifdef SHORT /* registers of 24 bits, as a library for drawing may leave them behind */
  const unsigned short word = 0x007f;
  __asm__ volatile("fldcw %0" : : "m"(word));
  found[5] = rounds();
  __asm__ volatile("fninit");
#endif
  for (int i = 0; i < 6; i++) printf("%d", found[i]);
  return 0;
}}
"""


@pytest.mark.parametrize("long_registers", [False, True], ids=["", "long registers"])
@pytest.mark.parametrize("angles", [True, False], ids=["angles", "no angles"])
def test_each_tick_looks_at_the_sums_themselves(angles, long_registers, tmp_path):
    """Also where nothing is reduced, or by a floor, which is the same in every mode."""
    from holoctl.codegen.exported.library import filled

    flags = []
    if long_registers:
        if platform.machine() not in ("x86_64", "AMD64"):
            pytest.skip("such registers are those of another processor")
        flags = ["-std=gnu99", "-mfpmath=387", "-DSHORT"]
    code = filled("sines_cosines.c", {}) if angles else ""
    (tmp_path / "main.c").write_text(ROUNDING.format(code=code + filled("arithmetic.c", {})))
    usable = [c for c in compilers() if c == "gcc" or not long_registers]  # clang has none such
    if not usable:
        pytest.skip("no compiler for such registers is here")
    for compiler in usable:
        for level in ("-O0", "-O2"):
            run(compiler, "-std=c99", level, *flags, tmp_path / "main.c", "-o",
                tmp_path / "main", "-lm")  # fmt: skip
            assert run(tmp_path / "main") == "100010"


def test_the_header_says_that_traps_must_be_off(five_bar):
    assert "traps must be off" in five_bar.paths[0].read_text()


@pytest.mark.parametrize("function", ["torque", "inverse_dynamics"])
def test_without_init_there_is_no_torque(five_bar, function):
    import ctypes

    inputs = good_inputs(five_bar)[: 5 if function == "torque" else 3]
    for filling in (0x00, 0xFF, 0x5A):
        ctypes.memset(ctypes.byref(five_bar.c), filling, ctypes.sizeof(five_bar.c))
        before = bytes(five_bar.c)
        status, u = five_bar.call(function, *inputs)
        assert status == "BUILD"
        np.testing.assert_array_equal(u, np.zeros(2))
        assert bytes(five_bar.c) == before
    five_bar.reset()
    assert five_bar.call(function, *inputs)[0] == "OK"


def test_init_refuses_the_struct_of_another_header(five_bar):
    """And writes nothing beyond its first field, for it may be shorter."""
    import ctypes

    right = {"size": ctypes.sizeof(five_bar.c), "content": five_bar.content}
    word = ctypes.sizeof(ctypes.c_ulong)
    for wrong in ({"size": right["size"] - 8}, {"content": right["content"] ^ 1}):
        ctypes.memset(ctypes.byref(five_bar.c), 0x5A, right["size"])
        assert five_bar.init(**(right | wrong)) == "BUILD"
        assert bytes(five_bar.c)[word:] == b"\x5a" * (right["size"] - word)
        status, u = five_bar.call("inverse_dynamics", *good_inputs(five_bar)[:3])
        assert (status, *u) == ("BUILD", 0.0, 0.0)
    five_bar.reset()


def test_a_stale_header_is_found(tmp_path):
    """A program compiled with the header of one export, and linked with another."""
    compiler = compilers()[0]
    for kp in (400.0, 401.0):
        hc.export_c(hc.ComputedTorque(robot("five_bar"), kp=kp, kd=40.0), tmp_path / f"{kp:.0f}")
    new = tmp_path / "401" / "holoctl_five_bar.c"
    for folder, line in (("401", (0, "all is well")), ("400", (1, "HOLOCTL_FIVE_BAR_BUILD"))):
        program = tmp_path / f"with{folder}"
        test = tmp_path / folder / "holoctl_five_bar_test.c"
        run(compiler, "-std=c99", "-O1", test, new, "-o", program, "-lm")
        code, said = last_line(program)
        assert (code, said.partition(":")[0]) == line


def test_counters_do_not_wrap_where_a_long_has_32_bits(five_bar):
    five_bar.reset()
    five_bar.c.ticks = five_bar.c.count[0] = 2**32 - 1
    assert five_bar.call("torque", *good_inputs(five_bar))[0] == "OK"
    assert five_bar.c.ticks == five_bar.c.count[0] == 2**32
    header = five_bar.paths[0].read_text()
    assert re.findall(r"unsigned (long long|long|int) (\w+)", header[header.index("last[") :])[
        :3
    ] == [("long long", x) for x in ("ticks", "troubles", "count")]


def test_the_version_is_a_number_for_the_preprocessor(five_bar, tmp_path):
    parts = [int(x) for x in hc.__version__.split(".")[:3]]
    number = 10000 * parts[0] + 100 * parts[1] + parts[2]
    (tmp_path / "version.c").write_text(
        f'#include "{five_bar.paths[0]}"\n#if HOLOCTL_FIVE_BAR_VERSION != {number} || '
        "HOLOCTL_FIVE_BAR_CONTENT == 0\n#error\n#endif\n"
    )
    run(compilers()[0], *STRICT, "-c", tmp_path / "version.c", "-o", tmp_path / "version.o")


WARNINGS = (
    "-Wsign-conversion", "-Wfloat-conversion", "-Wshadow", "-Wundef",
    "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wcast-qual",
)  # fmt: skip


def test_more_warnings_and_divisions_by_zero(tmp_path):
    """Singular states divide by zero, as they must; no sanitizer complains in a tick."""
    ctl = hc.ComputedTorque(mechanism("five_bar"), kp=4.0, kd=1.0)
    paths = hc.export_c(ctl, tmp_path, name="singular", plant=True)
    sources = [x for x in paths if x.suffix == ".c"]
    (tmp_path / "main.c").write_text(SINGULAR.replace("@", ", ".join(map(str, stretched(0.0)))))
    for compiler in compilers():
        for source in sources:
            run(compiler, *STRICT, *WARNINGS, "-c", source, "-o", tmp_path / "x.o")
        sanitizers = "-fsanitize=undefined,float-divide-by-zero"
        run(compiler, "-std=c99", "-O1", sanitizers, "-fno-sanitize-recover=all", *sources[:2],
            tmp_path / "main.c", f"-I{tmp_path}", "-o", tmp_path / "main", "-lm")  # fmt: skip
        assert run(tmp_path / "main") == "4 0"
        assert "HOLOCTL_DIVIDES static void law" in sources[0].read_text()


SINGULAR = """
#include "holoctl_singular.h"
#include "holoctl_singular_plant.h"
#include <stdio.h>
int main(void) {
  holoctl_singular c;
  double q[4] = {@}, v[4] = {0.0}, w[2] = {0.0}, u[2];
  if (holoctl_singular_init(&c)) return 1;
  printf("%d", holoctl_singular_torque(&c, q, v, w, w, w, u));
  q[0] = q[1] = q[2] = q[3] = 0.0; /* all rods in line */
  holoctl_singular_torque(&c, q, v, w, w, w, u);
  printf(" %d", holoctl_singular_plant_step(q, v, u, 1e-3));
  return 0;
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_the_stack_is_what_the_header_says(leg, level, tmp_path):
    if compilers()[0] != "gcc":
        pytest.skip("-fstack-usage is gcc's")
    header = leg.paths[0].read_text()
    promised = int(re.search(r"Stack: a call takes at most (\d+) bytes", header)[1])
    run("gcc", "-std=c99", level, "-fstack-usage", "-c", leg.paths[1], "-o", tmp_path / "law.o")
    found = [int(x.split("\t")[1]) for x in (tmp_path / "law.su").read_text().splitlines()]
    assert max(found) < sum(found) < promised < 4 * sum(found) * (1 if level == "-O0" else 9)


def test_comments_name_what_each_block_computes(five_bar):
    """The instructions that follow do define it: the stores of outputs stand in their blocks."""
    source = five_bar.paths[1].read_text()
    law = source[source.index("static void law(") :].split("\n}\n")[0]
    blocks = re.split(r"\n  /\* (.*) \*/", law)[1:]
    said = dict(zip(blocks[::2], blocks[1::2], strict=True)) if blocks else {}
    named = {x for title in blocks[::2] if not title.startswith("for ") for x in
             re.findall(r"\w+\[[\d, ]+\]", title)}  # fmt: skip
    symbols = {x.partition("[")[0] for x in named}
    assert symbols >= {"G", "drift", "phi", "phi_rate", "a", "efforts", "u", "doubt", "closed"}
    assert {"G[0, 0]", "a[1]", "u[0]", "u[1]", "doubt[0]", "kept[1]"} <= named
    for title, lines in said.items():
        for store in re.findall(r"^  (u\[\d\]|doubt\[0\]|kept\[\d\]) = x", lines, re.M):
            assert store in title


# -------------------------------------------------------------------------------- numbers

QUICK = ("five_bar_revolute", "geared_slider", "three_motors", "third_bar", "floating_leg",
         "screw_chain", "slotted_arms")  # fmt: skip
SLOW = (
    "four_bar", "spatial_arms", "universal_rods", "hung_plate", "standing_leg", "bennett",
    "six_row_four_bar", "idle_rod", "weld_chain", "prismatic_chain", "planar_chain",
    "welded_arms", "held_foot",
)  # fmt: skip


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW)])
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
        for measure, most in (("closure", 1.0), ("velocity", 9.0), ("acceleration", 9.0)):
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


def test_time_is_an_argument_where_a_constraint_depends_on_it(tmp_path):
    cmake()
    base = mechanism("sine_gear")
    bench = hc.Custom(_bench_numbers, time=True, casadi=_bench, name="bench")
    mech = hc.Mechanism(
        base.model, [bench], ["shoulder"], reference=[0.3, 0.6], name="timed two-link/arm"
    )
    exported = Exported(mech, tmp_path, plant=True)
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
    from holoctl.codegen.exported.library import filled

    code = filled("sines_cosines.c", {})
    for i, text in enumerate((code, code.replace("FLT_EVAL_METHOD == 0", "0"))):
        path = tmp_path / f"sines{i}.c"
        path.write_text(SINES.format(code=text))
        run(compilers()[0], "-std=c99", "-O2", path, "-o", path.with_suffix(""), "-lm")
        assert float(run(path.with_suffix(""))) < 2.3e-16


# ------------------------------------------------------------------------------- statuses


def good_inputs(exported):
    mech = exported.mech
    q, v = hc.assemble(mech, v_guess=0.1 * np.ones(mech.nv))
    return [q, v, np.full(mech.nu, 0.3), np.zeros(mech.nu), np.ones(mech.nu)]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_wherever_it_stands(leg, bad):
    for policy in (0, 1):
        leg.reset()
        leg.c.in_trouble = policy
        inputs = good_inputs(leg)
        status, first = leg.call("torque", *inputs)
        assert status == "OK"
        held = first if policy == 0 else np.zeros(leg.mech.nu)
        for k, x in enumerate(inputs):
            for i in range(x.size):
                spoilt = [y.copy() for y in inputs]
                spoilt[k][i] = bad
                status, u = leg.call("torque", *spoilt)
                assert status == "NOT_FINITE", (k, i)
                np.testing.assert_array_equal(u, held)
        count = sum(x.size for x in inputs)
        assert (leg.c.ticks, leg.c.troubles, leg.c.count[1]) == (count + 1, count, count)
        status, u = leg.call("torque", *inputs)
        assert (status, leg.c.troubles) == ("OK", 0)
        np.testing.assert_array_equal(u, first)


def test_zero_before_the_first_good_torque(five_bar):
    five_bar.reset()
    inputs = good_inputs(five_bar)
    inputs[0][0] = np.nan
    status, u = five_bar.call("torque", *inputs)
    assert status == "NOT_FINITE"
    assert not u.any()


def test_policy_of_the_export(tmp_path):
    exported = Exported(mechanism("five_bar"), tmp_path, in_trouble="zero", closure_limit=0.125)
    assert exported.c.in_trouble == 1
    assert exported.c.closure_limit == 0.125


def test_open_states_are_refused(five_bar):
    five_bar.reset()
    q, v, *reference = good_inputs(five_bar)
    mech = five_bar.mech
    _, before = five_bar.call("torque", q, v, *reference)
    opened = 0
    for size in np.logspace(-4, 0, 30):
        q1 = q + size * np.array([0.3, 1.0, -0.4, 0.2])
        closure = hc.inverse_dynamics(
            mech, q1, v, np.zeros(2), inconsistent="project"
        ).certificate.closure  # fmt: skip
        status, u = five_bar.call("torque", q1, v, *reference)
        assert np.isfinite(u).all()
        if closure > 2e-2:
            opened += 1
            assert status == "OPEN"
            np.testing.assert_array_equal(u, before)
        if closure < 0.5e-2:
            assert status == "OK"
        if status == "OK":
            before = u
    assert opened > 5


def test_a_quaternion_out_of_norm_is_refused_and_rounding_is_mended(leg):
    leg.reset()
    inputs = good_inputs(leg)
    _, expected = leg.call("torque", *inputs)
    inputs[0][3:7] *= 1.0 + 5e-7
    status, u = leg.call("torque", *inputs)
    assert status == "OK"
    np.testing.assert_allclose(u, expected, rtol=0.0, atol=1e-11 * np.abs(expected).max())
    inputs[0][3:7] *= 1.0 + 1e-5
    assert leg.call("torque", *inputs)[0] == "NOT_NORMALISED"


def test_a_dead_point_approached(tmp_path):
    mech = mechanism("five_bar")
    exported = Exported(mech, tmp_path, velocity_limit=None)  # any rates will do here
    part = hc.partition(mech, hc.assemble(mech)[0])
    rng, seen, agreed = np.random.default_rng(0), set(), 0
    for s in [*np.logspace(0, -12, 200), 0.0]:
        q = stretched(s)
        v, target = rng.normal(size=4) * s, rng.normal(size=2)
        status, u = exported.call("inverse_dynamics", q, v, target)
        assert np.isfinite(u).all()
        seen.add(status)
        if status == "OK":
            try:
                expected = hc.inverse_dynamics(
                    mech, q, v, target, inconsistent="project", partition=part
                ).u
            except hc.SingularityError:
                pytest.fail(f"C gives a torque at s = {s} where Python gives none")
            np.testing.assert_allclose(u, expected, atol=1e-8 * np.abs(expected).max())
            agreed += 1
    assert status == "SINGULAR"
    assert agreed > 20
    assert "OK" in seen
    assert "SINGULAR" in seen


def test_pivot_growth_is_told_from_singular(five_bar):
    five_bar.reset()
    five_bar.c.doubt_limit = 0.0
    inputs = good_inputs(five_bar)
    assert five_bar.call("torque", *inputs)[0] == "PIVOT_GROWTH"
    assert 0.02 < five_bar.c.pivot <= 1.0
    five_bar.c.pivot_limit = 1.1
    assert five_bar.call("torque", *inputs)[0] == "SINGULAR"


@pytest.mark.parametrize("size", [1e100, 1e200, 1e300, sys.float_info.max])
def test_huge_inputs_never_give_a_number_that_is_not_finite(leg, size):
    leg.reset()
    leg.c.closure_limit = np.inf
    for k, x in enumerate(good_inputs(leg)):
        for i in range(x.size):
            for sign in (1.0, -1.0):
                inputs = good_inputs(leg)
                inputs[k][i] = sign * size
                _, u = leg.call("torque", *inputs)
                assert np.isfinite(u).all(), (k, i)
    if size > 1e160:  # whose square is not finite
        assert leg.c.count[STATUSES.index("OVERFLOW")] > 0


def test_a_gain_that_is_not_finite_is_an_overflow(five_bar):
    five_bar.reset()
    five_bar.c.kp[1] = np.inf
    assert five_bar.call("torque", *good_inputs(five_bar))[0] == "OVERFLOW"


def test_every_status_has_a_text(five_bar):
    texts = [five_bar.text(i) for i in range(len(STATUSES))]
    assert len(set(texts)) == len(STATUSES)
    assert five_bar.text(99) == "unknown status"


def test_u_may_be_one_of_the_inputs(five_bar):
    import ctypes

    five_bar.reset()
    inputs = [np.array(x) for x in good_inputs(five_bar)]
    _, expected = five_bar.call("torque", *inputs)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in inputs]
    five_bar.library["holoctl_five_bar_torque"](ctypes.byref(five_bar.c), *pointers, pointers[2])
    np.testing.assert_array_equal(inputs[2], expected)


# ---------------------------------------------------------------------------------- files


def test_the_same_input_gives_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        hc.export_c(controller("five_bar"), tmp_path / name, plant=True)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    first = (tmp_path / "one" / "holoctl_five_bar.h").read_text()
    hc.export_c(
        hc.ComputedTorque(robot("five_bar"), kp=401.0, kd=40.0), tmp_path / "two", plant=True
    )
    hashes = [re.search(r'HASH "(\w+)"', text)[1] for text in
              (first, (tmp_path / "two" / "holoctl_five_bar.h").read_text())]  # fmt: skip
    assert hashes[0] != hashes[1]


def test_only_files_of_our_own_are_overwritten(tmp_path):
    hc.export_c(controller("four_bar"), tmp_path)
    hc.export_c(controller("four_bar"), tmp_path)
    (tmp_path / "README.md").write_text("my notes\n")
    before = (tmp_path / "holoctl_four_bar.c").read_bytes()
    what = hc.ComputedTorque(robot("four_bar"), kp=1.0, kd=1.0)
    with pytest.raises(hc.InputError, match=r"README\.md: there already"):
        hc.export_c(what, tmp_path)
    assert (tmp_path / "README.md").read_text() == "my notes\n"
    assert (tmp_path / "holoctl_four_bar.c").read_bytes() == before


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(hc.InputError, match="not a folder"):
        hc.export_c(mechanism("five_bar"), tmp_path / "file")
    with pytest.raises(hc.HoloctlError, match="cannot be written"):
        hc.export_c(mechanism("five_bar"), tmp_path / "file" / "below")
    with pytest.raises(hc.InputError, match="folder must be a path"):
        hc.export_c(mechanism("five_bar"), 3)


def test_names_that_end_comments_or_are_no_identifiers(tmp_path):
    cmake()
    mech = mechanism("five_bar")
    odd = hc.Mechanism(
        mech.model, mech.constraints, ["left", "right"], reference=mech.reference,
        name="5-Bar */ #error\\\n\u00e4 --> ??/",
    )  # fmt: skip
    paths = hc.export_c(odd, tmp_path)
    assert paths[0].name == "holoctl_5_bar_error.h"
    build_and_test(tmp_path, compilers()[0])
    with pytest.raises(hc.InputError, match="C identifier"):
        hc.export_c(odd, tmp_path, name="???")


@pytest.mark.parametrize(
    ("what", "options", "says"),
    [
        (lambda: 3, {}, "must be a Mechanism or a ComputedTorque"),
        (lambda: controller("five_bar"), {"weights": [1, 1]}, "brings its own"),
        (lambda: mechanism("five_bar"), {"in_trouble": "panic"}, "hold"),
        (lambda: mechanism("five_bar"), {"closure_limit": -1.0}, "closure_limit"),
        (lambda: mechanism("sine_chart"), {}, "cannot be compiled"),
    ],
)
def test_what_cannot_be_exported(what, options, says, tmp_path):
    with pytest.raises(hc.InputError, match=says):
        hc.export_c(what(), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("limit", [1e-5, 1e-7])
def test_narrow_limits_have_states_for_the_self_test(limit, tmp_path):
    for i, name in enumerate(("closure_limit", "velocity_limit")):
        exported = Exported(mechanism("five_bar"), tmp_path / f"{i}", **{name: limit})
        program, _ = compiled(tmp_path, exported.paths, compilers()[0], "-O1")
        assert last_line(program) == (0, "all is well")


def test_limits_below_rounding_are_named(tmp_path):
    says = "past closure_limit 0.01 or velocity_limit 1e-18 .* too narrow"
    with pytest.raises(hc.HoloctlError, match=says):
        hc.export_c(mechanism("five_bar"), tmp_path, velocity_limit=1e-18)


def test_a_reference_far_out_is_refused_at_once(tmp_path):
    mech = mechanism("five_bar")
    reference = np.array([1e308, 0.1, 0.2, 0.1])
    far = hc.Mechanism(mech.model, mech.constraints, mech.actuator_names, reference=reference)
    with pytest.raises(hc.InputError, match=r"within 1e\+06 for an export; .*\[0\] = 1e\+308"):
        hc.export_c(far, tmp_path)


def test_without_casadi_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(hc.InputError, match=r"holoctl\[codegen\]"):
        hc.export_c(mechanism("five_bar"), tmp_path)


# --------------------------------------------------------------------------- command line


def test_the_command_writes_what_the_function_writes(tmp_path, capsys):
    command = ["export", "five_bar", "--out", str(tmp_path / "a"), "--kp", "400", "--kd", "40,40"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    paths = hc.export_c(controller("five_bar"), tmp_path / "b")
    for path in paths:
        assert (tmp_path / "a" / path.name).read_bytes() == path.read_bytes()
        assert path.name in printed


def test_the_command_refuses(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert main(["export", "five_bar", *out, "--kp", "400"]) == 1
    assert "belong together" in capsys.readouterr().err
    assert main(["export", "five_bar", *out, "--kp", "x", "--kd", "1"]) == 1
    assert "--kp takes a number" in capsys.readouterr().err
    assert main(["export", "leg", "--free-flyer", *out, "--kp", "1", "--kd", "1",
                 "--compensation", "gravity"]) == 1  # fmt: skip
    assert "passive" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_command_without_gains_writes_the_inverse_dynamics(tmp_path, capsys):
    assert main(["export", "five_bar", "--out", str(tmp_path), "--set", "motor_left=2.0"]) == 0
    assert "inverse dynamics" in capsys.readouterr().out
    assert "_torque(" not in (tmp_path / "holoctl_five_bar.h").read_text()


# ------------------------------------------------------------------- the plant and the page


def test_the_plant_moves_as_python_says(tmp_path):
    import ctypes

    mech = robot("leg")
    paths = hc.export_c(hc.ComputedTorque(mech, kp=1.0, kd=1.0), tmp_path, plant=True)
    source = next(p for p in paths if p.name.endswith("_plant.c"))
    run(compilers()[0], "-std=c99", "-O1", "-fPIC", "-shared", source, "-o", tmp_path / "p.so",
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
