"""Flags, headers, a missing init: what would change the numbers of exported C is noticed."""

from __future__ import annotations

import os
import platform
import re
import subprocess

import numpy as np
import pytest
from exported import STRICT, compilers, good_inputs, last_line, robot, run, self_test
from support import few, mechanism, stretched

import holoctl as hc

pytest.importorskip("casadi")


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

QUICK = [(FLAGS | HARMLESS).get(x) for x in ("fast", "finite", "single", "ours")]
"""The short run's."""


def known(compiler, flags):
    """Skips the test where the compiler has no such flag."""
    command = [compiler, "-Werror", *flags.split(), "-E", "-x", "c", os.devnull]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(f"{compiler} does not know {flags}")


@pytest.mark.parametrize("flags", few(FLAGS.values(), QUICK), ids=FLAGS)
def test_flags_that_change_numbers_stop_the_compiler_or_the_torque(five_bar, flags, tmp_path):
    for compiler in compilers():
        known(compiler, flags)
        for hidden in ("", SILENT):
            options = ["-O2", *flags.split(), *hidden.split()]
            program, said = self_test(tmp_path, five_bar.paths, compiler, *options)
            if program is None:
                assert "#error" in said or "must_be_double" in said
            else:
                assert last_line(program) == (1, f"HOLOCTL_FIVE_BAR_BUILD: {five_bar.text(7)}")
            assert program is None or hidden or compiler == "clang" or "mpc32" in flags


@pytest.mark.parametrize("flags", few(HARMLESS.values(), QUICK), ids=HARMLESS)
def test_flags_that_do_not_change_numbers_change_nothing(five_bar, flags, tmp_path):
    for compiler in compilers():
        known(compiler, flags)
        program, said = self_test(tmp_path, five_bar.paths, compiler, "-O2", *flags.split())
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
    program, said = self_test(tmp_path, five_bar.paths, compilers()[0], *short)
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
    from holoctl.codegen.c_text import filled

    flags = []
    if long_registers:
        if platform.machine() not in ("x86_64", "AMD64"):
            pytest.skip("such registers are those of another processor")
        flags = ["-std=gnu99", "-mfpmath=387", "-DSHORT"]
    code = filled("sines_cosines.c") if angles else ""
    (tmp_path / "main.c").write_text(ROUNDING.format(code=code + filled("arithmetic.c")))
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


def test_a_stale_header_is_found(five_bar, tmp_path):
    """A program compiled with the header of one export, and linked with another."""
    compiler = compilers()[0]
    new, old = tmp_path / "new", five_bar.paths[0].parent
    hc.export_c(hc.ComputedTorque(robot("five_bar"), kp=401.0, kd=40.0), new)
    source = new / "holoctl_five_bar.c"
    for folder, line in ((new, (0, "all is well")), (old, (1, "HOLOCTL_FIVE_BAR_BUILD"))):
        program = tmp_path / "program"
        test = folder / "holoctl_five_bar_test.c"
        run(compiler, "-std=c99", "-O1", test, source, "-o", program, "-lm")
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


@pytest.mark.slow
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
        assert "SINGULAR_DIVIDES static void singular_law" in sources[0].read_text()


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
    law = source[source.index("static void five_bar_law(") :].split("\n}\n")[0]
    blocks = re.split(r"\n  /\* (.*) \*/", law)[1:]
    said = dict(zip(blocks[::2], blocks[1::2], strict=True)) if blocks else {}
    named = {x for title in blocks[::2] if not title.startswith("for ") for x in
             re.findall(r"\w+\[[\d, ]+\]", title)}  # fmt: skip
    symbols = {x.partition("[")[0] for x in named}
    assert symbols >= {"G", "drift", "phi", "phi_rate", "a", "efforts", "u", "guard", "closed"}
    assert {"G[0, 0]", "a[1]", "u[0]", "u[1]", "guard[0]", "kept[1]"} <= named
    for title, lines in said.items():
        for store in re.findall(r"^  (u\[\d\]|guard\[0\]|kept\[\d\]) = x", lines, re.M):
            assert store in title
