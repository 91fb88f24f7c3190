"""From encoders to torque: the closed state and the torque from the motors alone, beside others.

A motion of 2 rad/s (or of half the size of the robot) is read at 1 kHz. All ways run in turn, in
blocks of 50 ticks of the same motion. The worst is a reading that jumps as far as makes the closed
state, and then the torque, take longest, refused or not. The ways without memory are those that
one would write oneself: scipy's Levenberg-Marquardt from the last state, and `hc.assemble` with the
motors locked.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from exported import CLOCK, FLAGS
from figures import table
from mechanisms import robot
from scipy.optimize import least_squares

import holoctl as hc

ROBOTS = ("four_bar", "five_bar", "leg", "delta", "stewart")
TICKS, BLOCK, ROUNDS, AMPLITUDE = 2000, 50, 5, 0.2

LOOP = CLOCK + r"""
enum { TICKS = 2000, BLOCK = 50, BLOCKS = 1000 };
static double x[TICKS][SIZE_X], r[TICKS][SIZE_R], zero[SIZE_U], home[SIZE_U], u[SIZE_U];
static double unit[SIZE_X];
static double times[BLOCKS];
int main(void) {
  @ c;
  int k = 0;
  if (@_init(&c)) return 1;
  if (fread(x, sizeof x, 1, stdin) != 1 || fread(r, sizeof r, 1, stdin) != 1 ||
      fread(home, sizeof home, 1, stdin) != 1 || fread(unit, sizeof unit, 1, stdin) != 1) return 1;
  for (int b = 0; b < BLOCKS; b++) {
    const double start = now();
    for (int i = 0; i < BLOCK; i++, k = (k + 1) % TICKS)
      @_torque_from_motors(&c, x[k], r[k], home, zero, zero, u);
    times[b] = (now() - start) / BLOCK;
  }
  qsort(times, BLOCKS, sizeof times[0], by_size);
  printf("%.17g %llu ", times[BLOCKS / 2], c.ticks - c.count[0]);
  double worst = 0.0;
  for (int jump = -20; jump <= 20; jump++) {
    double far[SIZE_X];
    const @_memory here = c.memory;
    if (jump > -2 && jump < 2) continue;
    for (int i = 0; i < SIZE_X; i++) far[i] = x[k][i] + (i % 2 ? -0.15 : 0.15) * jump * unit[i];
    for (int b = 0; b < 101; b++) {
      const double start = now();
      @_torque_from_motors(&c, far, r[k], home, zero, zero, u);
      times[b] = now() - start;
      c.memory = here;
    }
    qsort(times, 101, sizeof times[0], by_size);
    if (times[50] > worst) worst = times[50];
  }
  printf("%.17g\n", worst);
  return 0;
}
"""  # fmt: skip


def motion(assembly: hc.ClosedStateEstimator, size: float = AMPLITUDE) -> tuple[Any, Any]:
    """What the sensors read, and their rates: smooth, and closed after the last tick."""
    q, sensors = assembly.q, assembly.readings
    x0, u = sensors.at(q), np.where(sensors.turns | (sensors.unit == 1.0), 1.0, 0.2 * sensors.unit)
    t = np.arange(TICKS)[:, None] * 1e-3
    w = 2.0 * np.pi / (TICKS * 1e-3) * np.array([1.0 + i % 3 for i in range(x0.size)])
    turn = np.arange(x0.size)
    x = x0 + size * u * (np.sin(w * t + turn) - np.sin(turn))
    return x, size * u * w * np.cos(w * t + turn)


def by_scipy(mech: hc.Mechanism, q0: Any) -> Callable[[Any], Any]:
    """Levenberg-Marquardt on the passive coordinates, from the last state."""
    motors = np.flatnonzero((mech.B != 0.0).any(axis=1))
    passive = np.setdiff1d(np.arange(mech.nv), motors)
    scale, last = mech.row_scale, [np.zeros(passive.size)]
    rest = np.zeros(mech.nv)

    def state(x: Any) -> Any:
        d = rest.copy()
        d[motors] = x - mech.motor_positions(q0)

        def moved(y: Any) -> Any:
            d[passive] = y
            return pin.integrate(mech.model, q0, d)

        def errors(y: Any) -> Any:
            return scale * hc.terms(mech, moved(y), rest).error

        found = least_squares(errors, last[0], method="lm", xtol=1e-12, ftol=1e-12, gtol=1e-12)
        last[0] = found.x
        return moved(found.x)

    return state


def in_c(
    ctl: hc.ComputedTorque, x: Any, rates: Any, home: Any, unit: Any
) -> dict[str, Callable[[], tuple[float, float]]]:
    """Functions that run a program in C, and give ns for a tick, and for the worst call."""
    folder = Path(tempfile.mkdtemp())
    prefix = hc.export_c(ctl, folder)[0].stem
    (folder / "loop.c").write_text(LOOP.replace("@", prefix))
    sizes = f"-DSIZE_X={x.shape[1]}", f"-DSIZE_R={rates.shape[1]}", f"-DSIZE_U={home.size}"
    np.concatenate([x.ravel(), rates.ravel(), home, unit]).tofile(folder / "states")
    found = {}
    for label, flags in FLAGS.items():
        program = folder / label.replace(", ", "_")
        subprocess.run(
            ["gcc", "-std=c99", *flags, *sizes, folder / "loop.c", folder / f"{prefix}.c", "-o",
             program, "-lm"],
            check=True,
        )  # fmt: skip

        def run(program: Path = program) -> tuple[float, float]:
            with (folder / "states").open("rb") as file:
                done = subprocess.run([program], stdin=file, capture_output=True, check=True)
            median, refused, worst = done.stdout.split()
            if int(refused):
                raise RuntimeError(f"{prefix}: C refused {refused.decode()} ticks")
            return float(median), float(worst)

        found[label] = run
    return found


def measure(name: str, rounds: int) -> dict[str, float]:
    """us for a tick by each way (C: ns)."""
    mech = robot(name)
    ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    loop, assembly = ctl.loop(), hc.ClosedStateEstimator(mech)
    x, rates = motion(assembly)
    home, zero, u = mech.motor_positions(assembly.q), np.zeros(mech.nu), np.zeros(mech.nu)
    q0 = assembly.q
    states = [assembly.state(a, b) for a, b in zip(x, rates, strict=True)]
    steps = np.mean([_newton(assembly, a, b) for a, b in zip(x, rates, strict=True)])
    fast = hc.compile(ctl)
    compiled = fast.loop()
    lm = by_scipy(mech, q0)
    locked = list(mech.actuated)

    def assembled(k: int) -> None:
        there = states[k][0]
        hc.assemble(mech, there, locked=locked)

    ways: dict[str, Callable[[int], Any]] = {
        "torque": lambda k: ctl.torque(*states[k], home, zero, zero, out=u),
        "from motors": lambda k: loop.torque_from_motors(x[k], rates[k], home, zero, zero, out=u),
        "state": lambda k: assembly.state(x[k], rates[k]),
        "compiled torque": lambda k: fast.torque(*states[k], home, zero, zero, out=u),
        "compiled from motors": lambda k: compiled.torque_from_motors(
            x[k], rates[k], home, zero, zero, out=u
        ),
        "Levenberg-Marquardt": lambda k: lm(x[k]),
        "assemble": assembled,
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    found: dict[str, float] = {}
    with hc.realtime():
        for start in range(0, TICKS, BLOCK):
            for way, call in ways.items():
                slow = way in ("Levenberg-Marquardt", "assemble")
                if slow and start >= 4 * BLOCK:
                    continue
                ticks = range(start, start + BLOCK)
                if way == "assemble":
                    ticks = range(start, start + 5)
                began = time.process_time()
                for k in ticks:
                    call(k)
                times[way].append((time.process_time() - began) / len(ticks))
        found = {way: 1e6 * float(np.median(t)) for way, t in times.items()}
        for label, run in in_c(ctl, x, rates, home, assembly.readings.unit).items():
            tick, worst = np.median([run() for _ in range(rounds)], axis=0)
            found[label], found[f"{label}, worst"] = float(tick), float(worst)
        found["worst"] = _worst(assembly, x[-1])
    found["newton"] = float(steps)
    return found


def _worst(assembly: hc.ClosedStateEstimator, x: Any) -> float:
    """us for the call that takes longest, refused or not."""
    times, here = [], assembly.q
    unit = assembly.readings.unit * np.where(np.arange(x.size) % 2, -1.0, 1.0)
    for jump in 0.15 * np.arange(-20, 21):
        began = time.process_time()
        with suppress(hc.HoloctlError):
            assembly.state(x + jump * unit)
        times.append(time.process_time() - began)
        assembly.reset(here)
    return 1e6 * max(times)


def _newton(assembly: hc.ClosedStateEstimator, x: Any, rates: Any) -> int:
    assembly.state(x, rates)
    return assembly.last.newton_steps


def section(quick: bool) -> str:
    """The section of the results."""
    rows, in_c = [], []
    for name in ROBOTS:
        f = measure(name, 1 if quick else ROUNDS)
        from_motors, fast = f["from motors"], f["compiled from motors"]
        rows.append([
            name, f"{f['torque']:.1f}", f"{from_motors:.1f} ({from_motors / f['torque']:.2f} x)",
            f"{f['compiled torque']:.2f}", f"{fast:.2f} ({fast / f['compiled torque']:.2f} x)",
            f"{f['state']:.1f}", f"{f['worst']:.0f} ({f['worst'] / f['state']:.1f} x)",
            *(f"{f[way]:.0f} ({f[way] / f['state']:.0f} x)"
              for way in ("Levenberg-Marquardt", "assemble")),
            f"{f['newton']:.2f}",
        ])  # fmt: skip
        cells = [
            f"{f[flags]:.0f}"
            if not worst
            else f"{f[f'{flags}, worst']:.0f} ({f[f'{flags}, worst'] / f[flags]:.1f} x)"
            for flags in FLAGS
            for worst in (False, True)
        ]
        in_c.append([name, *cells])
    return "\n\n".join([
        "## From encoders to torque",
        "Median time of a tick along a motion at 1 kHz, us. *From motors*: closed state and torque "
        "from the motors alone (`torque_from_motors`), beside the torque of the whole state by the "
        "same path. *State*: the closed state alone. Beside it *worst*: a reading that jumps as "
        "far as makes it take longest, refused or not; Levenberg-Marquardt: scipy's, on the rows "
        "in Python, from the last state; `assemble` likewise, with the motors locked.",
        table(
            ["robot", "torque, us", "from motors, us", "compiled torque, us",
             "compiled from motors, us", "state, us", "worst state, us", "Levenberg-Marquardt, us",
             "assemble, us", "Newton steps"], rows,
        ),
        "### From encoders to torque, in C",
        "`torque_from_motors`, ns: median of blocks of 50 ticks of the same motion, and the worst "
        "reading, as above, by the median of 101 calls. *native*: for the processor of the "
        "machine.",
        table(["robot", "tick, ns", "worst tick, ns", "native tick, ns", "native worst tick, ns"],
              in_c),
    ])  # fmt: skip
