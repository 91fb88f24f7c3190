"""Compile the controller of a five-bar, compare it with Python, and compute a whole table."""

import importlib.util
import logging
import sys
import time

import numpy as np

import holoctl as hc

if importlib.util.find_spec("casadi") is None:
    print("this example needs CasADi: pip install 'holoctl[codegen]'")
    sys.exit()

# Where Python answers for compiled code, a warning says so, once.
logging.basicConfig(stream=sys.stdout, format="warning: %(message)s")

mech = hc.load(hc.robot_file("five_bar"))
ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0)
start = time.perf_counter()
fast = hc.compile(ctl)  # expressions, C, compiler; the next time from the cache
print(f"{fast} in {time.perf_counter() - start:.1f} s")

# Closed states along a motion, and what the motors should do there.
rng = np.random.default_rng(0)
home, _ = hc.assemble(mech)
there = mech.motor_positions(home)
states = []
for _ in range(50):
    guess = home + 0.2 * rng.normal(size=mech.nq)
    states.append(hc.assemble(mech, guess, rng.normal(size=mech.nv)))


def per_call(law, count=2000):
    """Median time of a tick, us."""
    u, zero, times = np.zeros(mech.nu), np.zeros(mech.nu), []
    for i in range(count):
        q, v = states[i % len(states)]
        start = time.perf_counter()
        law.torque(q, v, there, zero, zero, out=u)
        times.append(time.perf_counter() - start)
    return 1e6 * np.median(times)


off = 0.0
for q, v in states:
    reference = there, np.zeros(2), np.zeros(2)
    off = max(off, np.abs(fast.torque(q, v, *reference) - ctl.torque(q, v, *reference)).max())
print(f"largest difference from Python: {off:.0e} N m")
print(f"a tick: {per_call(ctl):.1f} us in Python, {per_call(fast):.2f} us compiled")

# A table of torques, for many states at once, on all cores.
which = rng.integers(0, len(states), size=100_000)
Q, V = (np.array([states[i][k] for i in which]) for k in range(2))
T = rng.normal(size=(which.size, mech.nu))
start = time.perf_counter()
U = fast.inverse_dynamics_batch(Q, V, T)
print(f"{len(U)} torques in {1e3 * (time.perf_counter() - start):.0f} ms")

# At a state that the guard refuses, Python computes the torque, or raises an error.
try:
    fast.torque(np.full(mech.nq, np.nan), V[0], there, T[0], T[0])
except hc.InputError as error:
    print("refused:", error)
print("answers from Python:", fast.fallbacks)
print(fast.certificate(Q[0], V[0], T[0]))
