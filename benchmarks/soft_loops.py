"""Loops that are springs, as MuJoCo and MJX have them, beside exact ones: `python soft_loops.py`.

The same robot (`hc.save`) follows the same motion of its motors by the same computed torque, a
second at 1 kHz, with Runge and Kutta's method. Told are the largest error of the closures on the
way, and, at the states of the exact motion, by how much the efforts that a simulator with soft
loops needs for the same accelerations of the motors differ from the exact ones, of the largest
effort.
Closures are those of MuJoCo's defaults, or the hardest that it takes: a time constant of twice the
step and an impedance of 0.9999. There are no stops of joints.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import holoctl as hc

Array = NDArray[np.float64]
DT, TICKS = 1e-3, 1000
ROBOTS = "four_bar", "five_bar", "leg", "ankle"
HARD = {"usual": (0.02, (0.9, 0.95)), "hardest": (2.0 * DT, (0.9999, 0.9999))}
"""Time constant, s, and impedances."""


class Soft:
    """A robot in MuJoCo."""

    def __init__(self, mech: hc.Mechanism, how: str) -> None:
        self.mujoco = importlib.import_module("mujoco")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.xml"
            hc.save(mech, path)
            self.model = self.mujoco.MjModel.from_xml_path(str(path))
        self.model.opt.timestep = DT
        self.model.opt.integrator = self.mujoco.mjtIntegrator.mjINT_RK4
        self.model.opt.tolerance, self.model.opt.iterations = 1e-14, 200
        constant, impedance = HARD[how]
        self.model.eq_solref[:] = constant, 1.0
        self.model.eq_solimp[:, :2] = impedance
        self.model.actuator_ctrllimited[:] = 0
        self.model.jnt_limited[:] = 0
        self.data = self.mujoco.MjData(self.model)

    def acceleration(self, q: Array, v: Array, u: Array) -> Array:
        """That of all coordinates at a state."""
        self.data.qpos, self.data.qvel, self.data.ctrl = q, v, u
        self.data.qacc_warmstart[:] = 0.0
        self.mujoco.mj_forward(self.model, self.data)
        return np.array(self.data.qacc)

    def step(self, q: Array, v: Array, u: Array) -> tuple[Array, Array]:
        """The state after a step."""
        self.data.qpos, self.data.qvel, self.data.ctrl = q, v, u
        self.mujoco.mj_step(self.model, self.data)
        return np.array(self.data.qpos), np.array(self.data.qvel)


class SoftOnAccelerators(Soft):
    """The same in MJX, in double precision."""

    def __init__(self, mech: hc.Mechanism, how: str) -> None:
        super().__init__(mech, how)
        jax, mjx = importlib.import_module("jax"), importlib.import_module("mujoco.mjx")
        jax.config.update("jax_enable_x64", True)
        model, data = mjx.put_model(self.model), mjx.make_data(self.model)

        def placed(q: Any, v: Any, u: Any) -> Any:
            return data.replace(qpos=q, qvel=v, ctrl=u)

        self._forward = jax.jit(lambda *x: mjx.forward(model, placed(*x)).qacc)
        self._step = jax.jit(lambda *x: mjx.step(model, placed(*x)))

    def acceleration(self, q: Array, v: Array, u: Array) -> Array:
        return np.array(self._forward(q, v, u))

    def step(self, q: Array, v: Array, u: Array) -> tuple[Array, Array]:
        found = self._step(q, v, u)
        return np.array(found.qpos), np.array(found.qvel)


def wanted(mech: hc.Mechanism, home: Array, t: float) -> tuple[Array, Array, Array]:
    """Positions, rates and accelerations of the motors."""
    size, rate = 0.1 * np.arange(1, mech.nu + 1), 2.0 * np.pi
    return (
        home + size * (1.0 - np.cos(rate * t)), size * rate * np.sin(rate * t),
        size * rate**2 * np.cos(rate * t),
    )  # fmt: skip


def off(mech: hc.Mechanism, q: Array) -> float:
    """The largest error of a closure, m or rad."""
    return float(np.abs(hc.terms(mech, q, np.zeros(mech.nv)).error).max())


def needed(mech: hc.Mechanism, soft: Soft, q: Array, v: Array, target: Array) -> Array:
    """The efforts that give the motors these accelerations: those are linear in the efforts."""
    free = mech.B.T @ soft.acceleration(q, v, np.zeros(mech.nu))
    columns = [mech.B.T @ soft.acceleration(q, v, x) - free for x in np.eye(mech.nu)]
    return np.linalg.solve(np.array(columns).T, target - free)


def compared(name: str, make: Callable[[hc.Mechanism, str], Soft], how: str) -> str:
    """A line of the table."""
    mech = hc.load(hc.robot_file(name))
    law = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
    q, v = hc.assemble(mech)
    home = mech.motor_positions(q)
    references = [np.array(x) for x in zip(
        *(wanted(mech, home, h * DT) for h in range(TICKS)), strict=True
    )]  # fmt: skip
    exact = hc.Rollouts(law, DT).run(q, v, *references)
    soft, largest = make(mech, how), 0.0
    loose = hc.PreparedInverseDynamics(
        mech, inconsistent="project", closure_limit=None, velocity_limit=None
    )
    for h in range(TICKS):
        e = references[0][h] - mech.motor_positions(q)
        target = references[2][h] + 40.0 * (references[1][h] - mech.B.T @ v) + 400.0 * e
        q, v = soft.step(q, v, loose.torque(q, v, target))
        largest = max(largest, off(mech, q))
    apart = max(
        np.abs(needed(mech, soft, exact.q[0, h], exact.v[0, h], references[2][h])
               - hc.inverse_dynamics(mech, exact.q[0, h], exact.v[0, h], references[2][h]).u).max()
        for h in range(0, TICKS, 50)
    ) / np.abs(exact.u).max()  # fmt: skip
    drift = max(off(mech, x) for x in exact.q[0, ::10])
    return f"| {name} | {how} | {largest:.1e} | {100.0 * apart:.2g} % | {drift:.0e} |"


def main() -> None:
    kinds: list[tuple[str, str, Callable[[hc.Mechanism, str], Soft]]] = [
        ("MuJoCo", "mujoco", Soft), ("MJX", "mujoco.mjx", SoftOnAccelerators),
    ]  # fmt: skip
    for label, module, make in kinds:
        try:
            importlib.import_module(module)
        except ImportError:
            print(f"{label}: not installed", file=sys.stderr)
            continue
        print(f"\n{label}\n\n| robot | closures | loops open by | efforts off by | exact loops |")
        print("|---|---|---|---|---|")
        for name in ROBOTS:
            for how in HARD:
                print(compared(name, make, how), flush=True)


if __name__ == "__main__":
    main()
