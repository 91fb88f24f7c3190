"""Kernels of many robots: memory of a thread on a GPU, and rates. `make gpu`.

NVIDIA's compiler tells, without a GPU, how many registers a thread takes, and how many bytes it
moves from registers to memory and back. Rates are those of the cores of this computer, and of a GPU
where there is one.
"""

from __future__ import annotations

import importlib
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import holoctl as hc
from holoctl.base.cores import cores
from holoctl.codegen.devices import batch_functions
from holoctl.codegen.devices.cuda import on_cuda
from holoctl.codegen.devices.host import Cores, on_cores
from holoctl.codegen.devices.kernels import Program
from holoctl.codegen.devices.nvrtc import thread_memory

Array = NDArray[np.float64]

ROBOTS = "five_bar", "leg", "ankle", "geared_arm", "delta", "stewart"
FUNCTIONS = "inverse_dynamics", "forward_dynamics", "torque", "state"
MODELS = ("forward_dynamics_derivatives",)
STATES, STEPS, H200 = 20_000, 50, 90
"""Of a batch; of a rollout; the compute capability that is compiled for."""


@dataclass
class Recorder:
    """A device that keeps the programs and runs nothing."""

    programs: list[Program] = field(default_factory=list)
    cores: Cores = field(default_factory=on_cores)

    def array(self, name: str, value: Any, dtype: Any = np.float64) -> Any:
        return self.cores.array(name, value, dtype)

    def empty(self, shape: Any, dtype: Any = np.float64) -> Any:
        return self.cores.empty(shape, dtype)

    def numpy(self, array: Any) -> Any:
        return array

    def build(self, program: Program) -> Recorder:
        self.programs.append(program)
        return self

    def run(self, *_: Any) -> None:
        """Nothing."""


def programs(make: Callable[[], Any]) -> list[Program]:
    """Those that a call would build."""
    found, own = Recorder(), {}
    places = batch_functions, importlib.import_module("holoctl.simulation.rollouts")
    for place in places:
        own[place] = place.device_named  # type: ignore[attr-defined]
        place.device_named = lambda *_: found  # type: ignore[attr-defined]
    try:
        make()
    finally:
        for place, usual in own.items():
            place.device_named = usual  # type: ignore[attr-defined]
    return found.programs


def controlled(name: str) -> hc.ComputedTorque:
    """A robot under computed torque."""
    mech = hc.load(hc.robot_file(name), free_flyer=False)
    return hc.ComputedTorque(mech, kp=400.0, kd=40.0)


def kernels(name: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Title and what makes it."""
    law = controlled(name)
    for x in FUNCTIONS:
        yield x, lambda x=x: hc.compile(law, [x], device="cpu")
    for x in MODELS:
        yield x, lambda x=x: hc.compile(law.mech, [x], device="cpu")
    yield "rollout of efforts", lambda: hc.Rollouts(law.mech, 1e-3)
    yield "rollout, exact state", lambda: hc.Rollouts(law, 1e-3)
    yield "rollout from motors", lambda: hc.Rollouts(law, 1e-3, sensors=hc.Sensors())


def memory(name: str) -> Iterator[str]:
    """Lines of the table of memory."""
    for title, make in kernels(name):
        (program,) = programs(make)
        began = time.perf_counter()
        found = thread_memory(program, H200)
        took = time.perf_counter() - began
        worst = max(x.spill_stores for x in found.values())
        kernel = max((x for x in found.values() if x.registers), key=lambda x: x.stack)
        yield (f"| {name} | {title} | {kernel.registers} | {kernel.stack} | {worst} | {took:.1f} |")


def rate(run: Callable[[], Any], count: int) -> float:
    """Calls of a robot per second, by the median of five runs."""
    run()
    took = []
    for _ in range(5):
        began = time.perf_counter()
        run()
        took.append(time.perf_counter() - began)
    return count / statistics.median(took)


def rates(name: str, device: str) -> str:
    """A line of the table of rates."""
    law = controlled(name)
    mech, rng = law.mech, np.random.default_rng(0)
    q, v = hc.assemble(mech)
    motors = mech.motor_positions(q) + 0.05 * rng.normal(size=(STATES, mech.nu))
    still = np.zeros(mech.nu)
    many = hc.compile(law, FUNCTIONS, device=device)
    Q, V, _ = many.state(motors, 0.1 * rng.normal(size=(STATES, mech.nu)))
    tau = np.zeros(mech.nv)
    found = [
        rate(lambda: many.inverse_dynamics(Q, V, still), STATES),
        rate(lambda: many.forward_dynamics(Q, V, tau), STATES),
        rate(lambda: many.torque(Q, V, motors, still, still), STATES),
        rate(lambda: many.state(motors), STATES),
    ]
    n = STATES // STEPS
    for sensors in (None, hc.Sensors()):
        robots = hc.Rollouts(law, 1e-3, sensors=sensors, device=device)
        found.append(rate(
            lambda robots=robots: robots.run(
                np.tile(q, (n, 1)), v, motors[0], still, still, ticks=STEPS, every=STEPS
            ), n * STEPS,
        ))  # fmt: skip
    return f"| {name} | " + " | ".join(f"{x:.1e}" for x in found) + " |"


def main() -> None:
    print("# Kernels of many robots\n")
    print(f"By `make gpu`, on {platform.machine()} with {cores()} cores.\n")
    print("## Rates\n")
    devices = ["cpu"]
    try:
        devices.append("cuda")
        print(f"The GPU is an {on_cuda().gpu}.\n")
    except hc.HoloctlError:
        devices.pop()
        print("No GPU was at hand: its rates are not known.\n")
    for device in devices:
        print(f"States, or steps of a rollout at 1 kHz, a second, `device=\"{device}\"`, arrays of "
              f"NumPy, {STATES:,} states:\n")  # fmt: skip
        print("| robot | inverse | forward | torque | state | steps | steps from motors |")
        print("|---|---|---|---|---|---|---|")
        for name in ROBOTS:
            print(rates(name, device), flush=True)
    print("\n## Memory of a thread\n")
    print("By NVRTC for compute capability 9.0 (H100, H200), in double precision: registers and "
          "stack of the kernel with all that it calls, the most bytes that one function moves from "
          "registers to memory, seconds to compile.\n")  # fmt: skip
    print("| robot | kernel | registers | stack, bytes | spills, bytes | s |")
    print("|---|---|---|---|---|---|")
    for name in ROBOTS:
        for line in memory(name):
            print(line, flush=True)


if __name__ == "__main__":
    main()
