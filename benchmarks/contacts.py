"""Computed torque on contacts that only push: a tick in Python, by what happens at the contact.

The leg with a floating base stands on its sole. Where nothing acts, the torque is that of bilateral
contacts; where something acts, or contacts slip, a program is solved. All ways run in turn, in
blocks of ticks over the same closed moving states; the median of the blocks counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from figures import in_turn, table
from mechanisms import robot

import holoctl as hc

NAME, FRAME, FRICTION = "leg, floating", "sole", 0.6
CORNERS = [(x, y, 0.0) for x in (0.10, -0.06) for y in (0.04, -0.04)]  # m
EFFORT = 25.0  # N m
STATES, ROUNDS = 16, 21
WAYS = {"nothing acts": (0.1, 0.0), "acts": (20.0, 0.0), "slips": (0.1, 1000.0)}
"""Name to the standard deviation of the targets, rad/s^2, and a pull sideways, N."""


def states(held: hc.Mechanism) -> list[tuple[Any, Any]]:
    """Closed states around the reference, on the sole."""
    rng, found = np.random.default_rng(0), []
    while len(found) < STATES:
        step, speed = 0.05 * rng.normal(size=(2, held.nv)) * held.column_scale
        try:
            q = pin.integrate(held.model, held.reference, step)
            found.append(hc.assemble(held, q, speed, restarts=0))
        except hc.AssemblyError:
            continue
    return found


def happens(mech: hc.Mechanism, foot: hc.UnilateralContact, call: dict[str, Any]) -> str:
    """What happens in a tick: one of `WAYS`."""
    found = hc.contact_inverse_dynamics(
        mech, call["q"], call["v"], call["a_ref"], foot, hc.Limits(effort=EFFORT),
        f_ext=call["f_ext"], policy="nearest",
    )  # fmt: skip
    if np.abs(found.slip["foot"]).max() > 0.0:
        return "slips"
    return "acts" if found.saturated else "nothing acts"


def section(quick: bool) -> str:
    """The section of the results."""
    mech = robot(NAME)
    foot = hc.UnilateralContact(FRAME, CORNERS, friction=FRICTION, name="foot")
    held, limits = mech.with_constraints(*foot.bilateral), hc.Limits(effort=EFFORT)
    given, rng, zero = states(held), np.random.default_rng(1), np.zeros(mech.nu)
    controller = hc.ComputedTorque(mech, 0.0, 0.0, limits=limits, contacts=[foot], policy="nearest")
    bilateral = hc.ComputedTorque(held, 0.0, 0.0)
    ways: dict[str, Callable[[], float]] = {}

    def way(torque: Any, calls: list[dict[str, Any]]) -> Callable[[], float]:
        def run() -> float:
            start = time.process_time()
            for call in calls:
                torque(**call)
            return 1e6 * (time.process_time() - start) / len(calls)

        return run

    for name, (size, pull) in WAYS.items():
        f_ext = {FRAME: (pull, 0.0, 0.0, 0.0, 0.0, 0.0)} if pull else None
        calls = [
            {"q": q, "v": v, "q_ref": mech.motor_positions(q), "v_ref": zero,
             "a_ref": size * rng.normal(size=mech.nu), "f_ext": f_ext}
            for q, v in given
        ]  # fmt: skip
        calls = [call for call in calls if happens(mech, foot, call) == name]
        ways.setdefault("bilateral", way(bilateral.torque, calls))
        ways[name] = way(controller.torque, calls)
    for run in ways.values():
        run()
    with hc.realtime():
        times = in_turn(ways, 3 if quick else ROUNDS)
    base = times["bilateral"]
    cells = [f"{times[name]:.0f} ({times[name] / base:.1f} x)" for name in WAYS]
    return "\n\n".join([
        "## On contacts that only push",
        "Median time of a tick of `ComputedTorque`, us, and how many times that on the same "
        "contacts, bilateral: `contacts=` with limits of efforts, where no condition acts, where "
        "some act, and where the sole slips.",
        table(["robot", "bilateral", *WAYS], [[NAME, f"{base:.0f}", *cells]]),
    ])  # fmt: skip
