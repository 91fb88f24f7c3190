"""Exported C on other processors, in QEMU: self-test, bits, instructions and stack of a tick.

    make embedded                                           all shipped robots on all processors
    python benchmarks/boards.py five_bar delta --on "Cortex-M7" "AArch64"
    python benchmarks/boards.py path/of/an/exported/folder
    python benchmarks/bench.py --only boards                the table of instructions

Startup and linker script of the Cortex-M are those of examples/c/board (docs/boards.md).
Instructions are counted by SysTick, a timer of 25 MHz, while QEMU lets each instruction take 1 ns
(``-icount``); a loop of known length is counted first.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from figures import table
from mechanisms import robot

import holoctl as hc

BOARD = Path(__file__).parents[1] / "examples" / "c" / "board"
ROBOTS = ("four_bar", "five_bar", "leg", "ankle", "geared_arm", "delta", "stewart")
"""Those that come with the library."""

FLAGS = ("-std=c99", "-O2", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
WARNINGS = (
    "-Wall", "-Wextra", "-Wconversion", "-Wdouble-promotion", "-pedantic", "-Werror",
)  # fmt: skip

OWN_STACK = 8192
"""Bytes of stack for printf, libm and the self-test itself, beside the bound in the header."""

LONGEST = 300.0
"""s, of a program in QEMU."""

CLOCKS = {"Cortex-M4F": (168,), "Cortex-M7": (480, 600)}
"""MHz, of common boards with these processors."""

CYCLES = (1, 2)
"""Assumed cycles of an instruction, from tightly coupled memory to flash with waits."""


@dataclass(frozen=True)
class Processor:
    """How to build for a processor, and to run what was built."""

    name: str
    compiler: str
    flags: tuple[str, ...]
    emulator: tuple[str, ...]
    packages: str
    """Of Debian and Ubuntu."""
    rounds: tuple[str, ...] = ("double", "float")
    """Types whose arithmetic is rounded as IEEE 754 says. That of libgcc's software is not in rare
    differences of numbers whose exponents are 33 apart."""

    @property
    def bare(self) -> bool:
        """Whether there is no operating system."""
        return self.compiler.startswith("arm-none-eabi")


def _cortex(name: str, machine: str, *flags: str, rounds: tuple[str, ...]) -> Processor:
    packages = "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
    emulator = (
        "qemu-system-arm", "-M", machine, "-display", "none", "-monitor", "none", "-serial", "none",
        "-chardev", "stdio,id=console",
        "-semihosting-config", "enable=on,target=native,chardev=console", "-kernel",
    )  # fmt: skip
    flags = ("-mthumb", *flags)
    return Processor(name, "arm-none-eabi-gcc", flags, emulator, packages, rounds)


def _linux(name: str, triple: str, emulator: str, libc: str, *flags: str) -> Processor:
    packages = f"gcc-{triple} {libc} qemu-user"
    return Processor(name, f"{triple}-gcc", ("-static", *flags), (emulator,), packages)


PROCESSORS = (
    _cortex("Cortex-M7", "mps2-an500", "-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard",
            rounds=("double", "float")),
    _cortex("Cortex-M4F", "mps2-an386", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard",
            rounds=("float",)),
    _cortex("Cortex-M3", "mps2-an385", "-mcpu=cortex-m3", rounds=()),
    _linux("AArch64", "aarch64-linux-gnu", "qemu-aarch64", "libc6-dev-arm64-cross"),
    _linux("RISC-V 64", "riscv64-linux-gnu", "qemu-riscv64", "libc6-dev-riscv64-cross"),
    # There C99 has floats computed as doubles, FLT_EVAL_METHOD 1, if it is not told otherwise.
    _linux("s390x", "s390x-linux-gnu", "qemu-s390x", "libc6-dev-s390x-cross",
           "-fexcess-precision=fast"),
    _linux("ARM32", "arm-linux-gnueabihf", "qemu-arm", "libc6-dev-armhf-cross"),
)  # fmt: skip
COUNTED = (("Cortex-M7", "double"), ("Cortex-M4F", "single"), ("Cortex-M4F", "double"))
HERE = Processor("here", "cc", (), (), "gcc")
"""The processor of this computer, which the bits of the others are compared with."""

PROGRAM = r"""
#define main self_test
#include "@_test.c"
#undef main
#include <string.h>

typedef __typeof__(((@ *)0)->closure_limit) number;
enum { LOOP = 1000000 };
static number q_ref[NU], u[NU];
static const number at_rest[NU];
static unsigned long long bits = 14695981039346656037ULL; /* of all efforts: FNV-1a */

#ifdef COUNTED
#define SYSTICK ((volatile unsigned long *)0xE000E010u) /* control, reload value, value */
extern char stack_bottom[]; /* of the linker script */
static unsigned long now(void) { return SYSTICK[2]; }
static double since(unsigned long start) { return 40.0 * (double)((start - now()) & 0xffffffu); }
static char *painted(void) {
  char *const here = (char *)__builtin_frame_address(0) - 256;
  for (char *p = stack_bottom; p < here; p++) *p = 0x5a;
  return here;
}
static long used(const char *here) {
  const char *p = stack_bottom;
  while (p < here && *p == 0x5a) p++;
  return (long)(here - p);
}
#else
static unsigned long now(void) { return 0; }
static double since(unsigned long start) { return (double)start; }
static const char *painted(void) { return 0; }
static long used(const char *here) { return here != 0; }
#endif

/* A tick at the k-th state of the self-test's motion, towards it, or towards one that is far. */
static void one_tick(@ *c, int from_motors, int far, int k) {
  for (int i = 0; i < NU; i++)
    q_ref[i] = measured_q[k][i] + (number)(far ? k % 2 ? 100 : -100 : 0);
  if (from_motors)
    @_torque_from_motors(c, measured_q[k], measured_v[k], q_ref, measured_v[k], at_rest, u);
  else @_torque(c, closed_q[k], closed_v[k], q_ref, measured_v[k], at_rest, u);
}

static void begin(@ *c, int in_trouble) {
  @_init(c);
  if (in_trouble) c->guard_limit = 0;
}

static void counted(const char *name, int from_motors, int far, int in_trouble) {
  @ c;
  double mean, most = 0.0;
  unsigned long start;
  long stack;
  begin(&c, in_trouble);
  {
    const char *const here = painted();
    start = now();
    for (int k = 0; k < TICKS; k++) one_tick(&c, from_motors, far, k);
    mean = since(start) / TICKS;
    stack = used(here);
  }
  begin(&c, in_trouble);
  for (int k = 0; k < TICKS; k++) {
    start = now();
    one_tick(&c, from_motors, far, k);
    if (since(start) > most) most = since(start);
    for (int i = 0; i < NU; i++) {
      const double x = (double)u[i];
      unsigned long long of_x;
      memcpy(&of_x, &x, sizeof of_x);
      bits = (bits ^ of_x) * 1099511628211ULL;
    }
  }
  printf("%s %.0f %.0f %ld", name, mean, most, stack);
  for (int i = 0; i < STATUSES; i++) printf(" %llu", c.count[i]);
  printf("\n");
}

int main(void) {
#ifdef COUNTED
  unsigned long start, n = LOOP;
  SYSTICK[1] = 0xffffffu;
  SYSTICK[2] = 0;
  SYSTICK[0] = 5; /* on, by the clock of the processor */
  start = now();
  __asm volatile("1: subs %0, #1\n bne 1b" : "+r"(n) : : "cc");
  printf("loop %.4f\n", since(start) / LOOP);
#endif
  counted("torque", 0, 0, 0);
  counted("from_motors", 1, 0, 0);
  counted("far", 0, 1, 0);
  counted("far_from_motors", 1, 1, 0);
  counted("in_trouble", 0, 0, 1);
  printf("bits %016llx\n", bits);
  return 0;
}
"""
"""Runs ticks over the motion of a self-test; ``@`` is the prefix of the library."""


class BoardError(Exception):
    """A tool is missing, or a program could not be built, or failed."""


def missing(processor: Processor) -> str:
    """What is not here of the tools for a processor, and where it is to be had; else empty."""
    tools = (processor.compiler, *processor.emulator[:1])
    lost = [tool for tool in tools if not shutil.which(tool)]
    return f"{' and '.join(lost)} not found: apt-get install {processor.packages}" if lost else ""


def export(name: str, folder: Path, *, limits: bool = True, **options: Any) -> Path:
    """The controller of a shipped robot as C, with the limits of its file or none, and options of
    `hc.export_c`."""
    mech = robot(name)
    within = hc.limits_of(mech) if limits else None
    hc.export_c(hc.ComputedTorque(mech, kp=400.0, kd=40.0, limits=within), folder, **options)
    return folder


def prefix_of(folder: Path) -> str:
    """The prefix of the library in a folder."""
    found = [path.stem.removesuffix("_test") for path in folder.glob("*_test.c")]
    if len(found) != 1:
        raise BoardError(f"{folder}: expected one *_test.c of an export, found {len(found)}")
    return found[0]


def number_type(folder: Path) -> str:
    """The type of numbers of the library in a folder, double or float."""
    header = (folder / f"{prefix_of(folder)}.h").read_text("utf-8")
    found = re.search(r"^ +(double|float) closure_limit;", header, re.MULTILINE)
    if found is None:
        raise BoardError(f"{folder}: the header states no type of closure_limit")
    return found[1]


def build(folder: Path, source: Path, processor: Processor, *more: str) -> Path:
    """The library in a folder and a program that calls it, for a processor."""
    if lost := missing(processor):
        raise BoardError(lost)
    prefix = prefix_of(folder)
    command = [processor.compiler, *processor.flags, *FLAGS, f"-I{folder}"]
    sources: list[str | Path] = [source, folder / f"{prefix}.c"]
    if processor.bare:
        bound = re.search(r"takes at most (\d+) bytes", (folder / f"{prefix}.h").read_text("utf-8"))
        if bound is None:
            raise BoardError(f"{prefix}.h states no stack")
        sources += [BOARD / "startup.c", BOARD / "semihosting.c"]
        command += ["-nostartfiles", "--specs=nosys.specs", "-T", str(BOARD / "mps2.ld"),
                    f"-Wl,--defsym=stack_size={int(bound[1]) + OWN_STACK}"]  # fmt: skip
    made = folder / f"{source.stem}-{processor.name.replace(' ', '-')}"
    done = subprocess.run(
        [*command, *more, *sources, "-o", made, "-lm"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BoardError(
            f"{processor.name}: {source.name} does not compile (if a header is missing: "
            f"apt-get install {processor.packages})\n{done.stderr[-2000:]}"
        )
    return made


def run(program: Path, processor: Processor, *more: str) -> str:
    """What a program prints; an error where it fails, or does not end."""
    before, last = processor.emulator[:-1], processor.emulator[-1:]
    try:
        done = subprocess.run(
            [*before, *more, *last, program], capture_output=True, text=True, check=False,
            timeout=LONGEST, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise BoardError(f"{processor.name}: {program.name} ran for {LONGEST:.0f} s") from error
    if done.returncode:
        raise BoardError(
            f"{processor.name}: {program.name} returned {done.returncode}\n"
            f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout


def self_test(folder: Path, processor: Processor, *more: str) -> str:
    """What the self-test of an exported folder prints on a processor; an error where it fails."""
    source = folder / f"{prefix_of(folder)}_test.c"
    return run(build(folder, source, processor, *WARNINGS, *more), processor)


@dataclass(frozen=True)
class Ticks:
    """Instructions of ticks over a motion, bytes of stack, and how often each status came."""

    mean: int
    most: int
    stack: int
    statuses: tuple[int, ...]


def ticks(folder: Path, processor: Processor) -> tuple[dict[str, Ticks], str]:
    """Ticks by name, with counts on a processor without a system; and the bits of all efforts."""
    prefix = prefix_of(folder)
    source = folder / "ticks.c"
    text = PROGRAM.replace("STATUSES", f"{prefix.upper()}_STATUSES").replace("@", prefix)
    source.write_text(text, encoding="utf-8")
    flags, counting = (["-DCOUNTED"], ["-icount", "shift=0"]) if processor.bare else ([], [])
    printed = run(build(folder, source, processor, *flags), processor, *counting)
    lines = [line.split() for line in printed.splitlines()]
    found = {name: numbers for name, *numbers in lines}
    if processor.bare and abs(float(found["loop"][0]) - 2.0) > 1e-3:
        raise BoardError(f"a loop of 2 instructions is counted as {found['loop'][0]}")
    counts = {
        name: Ticks(*(int(x) for x in numbers[:3]), tuple(int(x) for x in numbers[3:]))
        for name, numbers in found.items()
        if name not in ("loop", "bits")
    }
    return counts, found["bits"][0]


def check(folder: Path, processor: Processor, expected: str) -> str:
    """Self-test and bits on a processor, in a line; an error where one is wrong."""
    last = self_test(folder, processor).splitlines()[-1]
    if number_type(folder) not in processor.rounds:
        return last
    bits = ticks(folder, processor)[1]
    if bits != expected:
        raise BoardError(f"{processor.name}: efforts have other bits than here: {bits}, {expected}")
    return f"{last}, same bits as here"


# ---------------------------------------------------------------------------- table of results


def counts(name: str, processor: Processor, precision: str) -> dict[str, Ticks]:
    """All counts of a robot on a processor: `ticks` without limits, and beyond them."""
    with tempfile.TemporaryDirectory() as place:
        plain = export(name, Path(place) / "plain", limits=False, precision=precision)
        within = export(name, Path(place) / "within", precision=precision)
        free, limited = ticks(plain, processor)[0], ticks(within, processor)[0]
    good, beyond = free["from_motors"].statuses, limited["far_from_motors"].statuses
    if good[0] != sum(good) or beyond[0]:
        raise BoardError(f"{name}: statuses {good} without limits, {beyond} beyond them")
    return free | {"limited": limited["far_from_motors"]}


def section(quick: bool) -> str:
    """The section of the results; a line that says so where something is missing."""
    processors = {p.name: p for p in PROCESSORS}
    head = "## Instructions of exported C on Cortex-M"
    lost = {x: None for name, _ in COUNTED if (x := missing(processors[name]))}
    if lost:
        return f"{head}\n\nNot counted: {' '.join(lost)}."
    parts = [
        head,
        "Instructions of a tick in QEMU, computed torque, gcc -O2: mean over the 64 states of the "
        "motion of the self-test, in brackets the largest, to within 40. *torque*: at a known "
        "state. *from motors*: with the closed state. *a limit acts*: from motors, far beyond the "
        "limits of the file. *in trouble*: torque where the guard refuses the state. Stack: what "
        "was written of it, of the largest of these ticks. Times, us: *from motors*, the largest, "
        f"if an instruction takes {CYCLES[0]} to {CYCLES[1]} cycles. This is an assumption, of "
        "memory without waits to flash with them; QEMU has no model of time. The Cortex-M4F "
        "computes doubles by software.",
    ]
    for name, precision in COUNTED:
        clocks = CLOCKS[name]
        rows = [
            _row(robot_name, counts(robot_name, processors[name], precision), clocks)
            for robot_name in (ROBOTS[1:2] if quick else ROBOTS)
        ]
        columns = ["robot", "torque", "from motors", "a limit acts", "in trouble", "stack, kB",
                   *(f"us at {clock} MHz" for clock in clocks)]  # fmt: skip
        parts += [f"### {name}, {precision} precision", table(columns, rows)]
    return "\n\n".join(parts)


def _row(name: str, found: dict[str, Ticks], clocks: Sequence[int]) -> list[str]:
    shown = [found[x] for x in ("torque", "from_motors", "limited", "in_trouble")]
    most = found["from_motors"].most
    return [
        name,
        *(f"{x.mean} ({x.most})" for x in shown),
        f"{max(x.stack for x in found.values()) / 1024:.1f}",
        *(" to ".join(f"{cycles * most / clock:.0f}" for cycles in CYCLES) for clock in clocks),
    ]


# --------------------------------------------------------------------------------- the program


def checked(name: str, place: Path, processors: Sequence[Processor], precision: str) -> bool:
    """Whether a robot, or a folder, passes on all processors; a line for each of them."""
    folder = Path(place / name) if name in ROBOTS else Path(shutil.copytree(name, place / "given"))
    if name in ROBOTS:
        export(name, folder, precision=precision)
    expected = ticks(folder, HERE)[1]
    good = True
    for processor in processors:
        start = time.perf_counter()
        try:
            verdict = check(folder, processor, expected)
        except BoardError as error:
            verdict, good = f"FAILED: {error}", False
        seconds = time.perf_counter() - start
        print(f"{name:<12} {processor.name:<11} {seconds:5.1f} s  {verdict}", flush=True)
    return good


def main() -> int:
    """Check robots on processors; 1 where one fails, 2 where a tool is missing."""
    parser = argparse.ArgumentParser(description="Exported C on other processors, in QEMU.")
    parser.add_argument("what", nargs="*", help="robots or exported folders; else all robots")
    names = [p.name for p in PROCESSORS]
    parser.add_argument("--on", nargs="+", choices=names, default=names, metavar="PROCESSOR",
                        help=f"else on all: {', '.join(names)}")  # fmt: skip
    parser.add_argument("--single", action="store_true", help="robots in single precision")
    given = parser.parse_args()
    precision = "single" if given.single else "double"
    processors = [p for p in PROCESSORS if p.name in given.on]
    lost = {x: None for p in (HERE, *processors) if (x := missing(p))} if processors else {}
    if lost:
        print("\n".join(lost), file=sys.stderr)
        return 2
    for name in given.what:
        if name not in ROBOTS and not Path(name).is_dir():
            parser.error(f"{name} is neither a folder nor one of {', '.join(ROBOTS)}")
    good = True
    for name in given.what or ROBOTS:
        with tempfile.TemporaryDirectory() as place:
            good &= checked(name, Path(place), processors, precision)
    print("all is well" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
