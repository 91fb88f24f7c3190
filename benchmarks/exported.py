"""Exported C: time of a tick in a C loop beside the compiled call, code size, build time.

Each block of 64 ticks, over 64 closed moving states, is timed as a whole, for the clock takes as
long as a tick does. C and the compiled call from Python run in turn, over the same states.

The worst tick that there is, "in trouble": the guard refuses, so that one more elimination follows,
the angles are so large that sines and cosines are libm's, and products of velocities are subnormal,
which processors are slow with.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from figures import judged, table
from mechanisms import robot

import holoctl as hc

ROBOTS = ("four_bar", "five_bar", "delta", "stewart", "leg, floating", "biped", "cassie_like")
JUDGED = ("four_bar", "five_bar")
STATES, ROUNDS = 64, 5

FLAGS = {
    "C": ("-O2", "-fno-math-errno", "-fno-trapping-math", "-fvect-cost-model=dynamic"),
    "C, native": (
        "-O2", "-fno-math-errno", "-fno-trapping-math", "-fvect-cost-model=dynamic",
        "-march=native", "-ffp-contract=fast",
    ),
}  # fmt: skip

CLOCK = r"""
#define _POSIX_C_SOURCE 200112L
#include "@.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}
static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
"""
"""What a program that times itself begins with; ``@`` is the prefix of the library."""

LOOP = CLOCK + r"""
enum { STATES = 64, BLOCKS = 1000 };
static double times[BLOCKS];
static double large[SIZE_Q], q[STATES][SIZE_Q], v[STATES][SIZE_V], x[3][STATES][SIZE_U], u[SIZE_U];
int main(void) {
  @ c;
  unsigned long long good = 0;
  if (@_init(&c)) return 1;
  if (fread(q, sizeof q, 1, stdin) != 1 || fread(v, sizeof v, 1, stdin) != 1 ||
      fread(x, sizeof x, 1, stdin) != 1 || fread(large, sizeof large, 1, stdin) != 1) return 1;
  for (int function = 0; function < 4; function++) {
    const int blocks = function < 2 ? BLOCKS : BLOCKS / 10;
    if (function == 2) {
      good = c.ticks - c.count[0];
      c.guard_limit = 0.0;
      c.closure_limit = 1e300;
    }
    if (function == 3)
      for (int k = 0; k < STATES; k++) {
        for (int i = 0; i < SIZE_Q; i++) q[k][i] += large[i];
        for (int i = 0; i < SIZE_V; i++) v[k][i] *= 1e-155; /* squares lose their digits */
      }
    for (int b = 0; b < blocks; b++) {
      const double start = now();
      for (int k = 0; k < STATES; k++) {
        if (function == 1) @_torque(&c, q[k], v[k], x[0][k], x[1][k], x[2][k], u);
        else @_inverse_dynamics(&c, q[k], v[k], x[0][k], u);
      }
      times[b] = (now() - start) / STATES;
    }
    qsort(times, (size_t)blocks, sizeof times[0], by_size);
    printf("%.17g %.17g ", times[blocks / 2], times[blocks * 99 / 100]);
  }
  printf("%llu\n", good);
  return 0;
}
"""  # fmt: skip


def states(ctl: hc.ComputedTorque) -> list[np.ndarray]:
    """Rows of q, v, and of three arrays for each motor, small."""
    mech, rng = ctl.mech, np.random.default_rng(5)
    middle, _ = hc.assemble(mech)
    rows = []
    for _ in range(STATES):
        guess = hc.assemble(mech, middle, rng.normal(size=mech.nv))
        rows.append((*guess, *rng.normal(size=(3, mech.nu))))
    return [np.array(column) for column in zip(*rows, strict=True)]


def in_c(folder: Path, prefix: str, ctl: hc.ComputedTorque, given: Sequence[np.ndarray]) -> dict:
    """Programs that time the ticks, by label."""
    mech = ctl.mech
    sizes = (f"-DSIZE_Q={mech.nq}", f"-DSIZE_V={mech.nv}", f"-DSIZE_U={mech.nu}")
    (folder / "loop.c").write_text(LOOP.replace("@", prefix))
    large = np.zeros(mech.nq)
    large[_angles(mech)] = 1e22  # hard to reduce
    np.concatenate([x.ravel() for x in (*given, large)]).tofile(folder / "states")
    found = {}
    for label, flags in FLAGS.items():
        program = folder / label.replace(", ", "_")
        subprocess.run(
            ["gcc", "-std=c99", *flags, *sizes, folder / "loop.c", folder / f"{prefix}.c", "-o",
             program, "-lm"],
            check=True,
        )  # fmt: skip
        found[label] = program
    return found


def _angles(mech: hc.Mechanism) -> list[int]:
    """Where q has angles."""
    model, along = mech.model, ("PX", "PY", "PZ", "PrismaticUnaligned")
    return [
        model.idx_qs[j]
        for j in range(1, model.njoints)
        if (model.nqs[j], model.nvs[j]) == (1, 1)
        and model.joints[j].shortname().removeprefix("JointModel") not in along
    ]


def stack(folder: Path, prefix: str) -> int:
    """Bytes of stack of all functions of the library together, as ``FLAGS["C"]`` compile it."""
    object_file = folder / "stack.o"
    subprocess.run(
        ["gcc", "-std=c99", *FLAGS["C"], "-fstack-usage", "-c", folder / f"{prefix}.c", "-o",
         object_file],
        check=True,
    )  # fmt: skip
    lines = object_file.with_suffix(".su").read_text().splitlines()
    return sum(int(line.split("\t")[1]) for line in lines)


def build(folder: Path, prefix: str) -> tuple[float, int]:
    """Seconds to configure and build library and self-test, and bytes of code of the library."""
    start = time.perf_counter()
    _quiet("cmake", "-S", folder, "-B", folder / "build")
    _quiet("cmake", "--build", folder / "build")
    seconds = time.perf_counter() - start
    _quiet("ctest", "--test-dir", folder / "build")
    printed = subprocess.run(
        ["size", folder / "build" / f"lib{prefix}.a"], check=True, capture_output=True, text=True
    ).stdout
    return seconds, int(printed.splitlines()[1].split()[0])


def _quiet(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def from_python(ctl: hc.ComputedTorque, given: Sequence[np.ndarray]) -> list:
    """Functions that time a block of the compiled calls, ns for each: inverse dynamics, torque."""
    fast = hc.compile(ctl, ["inverse_dynamics", "torque"])
    u, rows = np.zeros(ctl.mech.nu), list(zip(*given, strict=True))
    calls = [(fast.inverse_dynamics, [r[:3] for r in rows]), (fast.torque, rows)]

    def block(call, arguments) -> float:
        start = time.perf_counter_ns()
        for x in arguments:
            call(*x, out=u)
        return (time.perf_counter_ns() - start) / STATES

    return [lambda c=c, a=a: np.median([block(c, a) for _ in range(300)]) for c, a in calls]


def _numbers(program: Path, states: Path) -> list[float]:
    with states.open("rb") as file:
        done = subprocess.run([program], stdin=file, capture_output=True, check=True)
    return [float(x) for x in done.stdout.split()]


def measure(name: str, rounds: int) -> dict:
    """All numbers of one robot."""
    mech = robot(name)
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        start = time.perf_counter()
        prefix = hc.export_c(ctl, folder)[0].stem
        written = time.perf_counter() - start
        seconds, size = build(folder, prefix)
        given, used = states(ctl), stack(folder, prefix)
        programs, python = in_c(folder, prefix, ctl, given), from_python(ctl, given)
        found: dict[str, list] = {label: [] for label in [*programs, "python"]}
        with hc.realtime():
            for _ in range(rounds):
                for label, program in programs.items():
                    found[label].append(_numbers(program, folder / "states"))
                found["python"].append([f() for f in python])
    return {
        "name": name, "export": written, "build": seconds, "size": size, "stack": used,
        **{label: np.median(x, axis=0) for label, x in found.items()},
    }  # fmt: skip


def section(quick: bool) -> str:
    """The section of the results; a line that says so where something is missing."""
    missing = [x for x in ("gcc", "cmake", "size") if not shutil.which(x)]
    if missing:
        return f"## Exported C\n\nNot measured: {', '.join(missing)} not found."
    found = [measure(name, 1 if quick else ROUNDS) for name in ROBOTS]
    rows, sizes, targets = [], [], []
    for f in found:
        c, native, python = f["C"], f["C, native"], f["python"]
        cells = [
            cell
            for i in range(2)
            for cell in (
                f"{c[2 * i]:.0f} / {c[2 * i + 1]:.0f}",
                f"{native[2 * i]:.0f} / {native[2 * i + 1]:.0f}",
                f"{python[i]:.0f} ({python[i] / native[2 * i]:.1f} x)",
            )
        ]
        trouble = [f"{max(x[4], x[6]):.0f}" for x in (c, native)]
        rows.append([f["name"], *cells, *trouble])
        sizes.append([f["name"], f"{f['size'] / 1024:.1f}", f"{f['stack'] / 1024:.1f}",
                      f"{f['export']:.1f}", f"{f['build']:.1f}"])  # fmt: skip
        if f["name"] in JUDGED:
            targets += [
                judged(
                    f"{f['name']}, {what}: native / compiled call", native[2 * i] / python[i], 0.2
                )
                for i, what in enumerate(("inverse dynamics", "torque"))
            ]
    targets.append(judged("build of the slowest", max(f["build"] for f in found), 30.0, " s"))
    return "\n\n".join([
        "## Exported C",
        "Time of a tick, ns: median / 99th percentile of blocks of 64 ticks in a C loop, beside "
        "the median of the compiled call from Python (`hc.compile`) over the same states, in "
        "brackets how many times as long as native. "
        "*native*: `-DHOLOCTL_NATIVE=ON`, for the processor of the machine, as `hc.compile` "
        "does. In trouble (median): inverse dynamics where the guard refuses the "
        "state, so that an elimination with complete pivoting follows, with angles of 1e22 rad, "
        "whose sines are libm's, and subnormal products of velocities: the slowest tick that was "
        "found.",
        table(["robot", "inverse, ns", "native inverse, ns", "compiled inverse, ns", "torque, ns",
               "native torque, ns", "compiled torque, ns", "in trouble, ns",
               "native in trouble, ns"], rows),
        "### Size and build of exported C",
        "Code: of the library, tables of the self-test not counted. Stack: of all functions of the "
        "library together. Build: CMake, library and self-test, one job.",
        table(["robot", "code, kB", "stack, kB", "export, s", "build, s"], sizes),
        "Targets:",
        "\n".join(targets),
    ])  # fmt: skip
