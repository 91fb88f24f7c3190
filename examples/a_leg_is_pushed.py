"""A leg drops on its sole, stands, is pushed: its foot slides, or the whole leg tips over."""

import numpy as np

import holoctl as hc

mech = hc.load(hc.robot_file("leg"), free_flyer=True)
corners = [(x, y, 0.0) for x in (0.10, -0.06) for y in (0.04, -0.04)]
q0, rest = hc.assemble(mech)
q0[2] += 0.87  # the sole is some 2 cm above the ground, z = 0
home = mech.motor_positions(q0)
KP, KD = np.array([200.0, 200.0, 200.0, 40.0]), np.array([8.0, 8.0, 8.0, 0.8])
PUSH = 0.3  # s, from here on for 0.1 s


def hold(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return KP * (home - mech.motor_positions(q)) - KD * (mech.B.T @ v)


def pushed(newtons: float) -> hc.Plant:
    """A push backwards at the ankle."""

    def load(t: float, q: np.ndarray, v: np.ndarray) -> dict:
        now = newtons if PUSH < t < PUSH + 0.1 else 0.0
        return {"sole": ((-now, 0.0, 0.0), (0.0, 0.0, 0.0))}

    return hc.Plant(f_ext=load)


for friction, newtons in ((0.6, 20.0), (0.15, 40.0)):
    foot = hc.UnilateralContact("sole", corners, friction=friction, name="foot")
    run = hc.simulate(mech, hold, q0, rest, 0.6, contacts=[foot], plant=pushed(newtons))
    print(f"friction {friction}, pushed by {newtons:.0f} N: {run}")
    later = run.contact_events[run.contact_events["t"] >= PUSH]
    for what in ("slides", "sticks", "leaves", "lands"):
        when = later["t"][later["what"] == what]
        if when.size:
            print(f"  {what:<6} {when.size} times, first at {when[0]:.4f} s")
    force = run.contact_forces["foot"].sum(axis=1)
    used = np.hypot(force[:, 0], force[:, 1]) / np.maximum(friction * force[:, 2], 1e-9)
    print(f"  of friction up to {used.max():.0%} is used")
