"""Control the five-bar at 1 kHz in real time, with what to do when there is no torque."""

import signal
import threading

import numpy as np
import pinocchio as pin

import holoctl as hc

RATE, DURATION, PERIOD = 1000.0, 1.5, 0.5  # Hz, s, s
DAMPING = 0.5  # N m s/rad, of the law that takes over

mech = hc.load(hc.robot_file("five_bar"))
q_home, _ = hc.assemble(mech)
home = mech.motor_positions(q_home)
part = hc.partition(mech, q_home)
ctl = hc.ComputedTorque(mech, kp=400.0, kd=40.0, partition=part)


def reference(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Motor positions, rates and accelerations; they come back after one period."""
    A, w = np.array([0.2, -0.15]), 2.0 * np.pi / PERIOD
    return (
        home + A * (1.0 - np.cos(w * t)),
        A * w * np.sin(w * t),
        A * w**2 * np.cos(w * t),
    )


# In place of the robot: closed states along the reference, computed beforehand. It follows the
# reference exactly whatever the torque, so this shows the loop and its timing, not the control.
# Near the end one passive encoder fails, to show what happens then.
states = []
q = q_home
for i in range(round(RATE * PERIOD)):
    q_ref, v_ref, _ = reference(i / RATE)
    moved = pin.integrate(mech.model, q, mech.B @ (q_ref - mech.motor_positions(q)))
    q, v = hc.assemble(mech, moved, mech.B @ v_ref, locked=mech.actuated)
    states.append((q, v))
failed = states[0][0].copy()
failed[mech.model.idx_qs[mech.model.getJointId("elbow_left")]] = np.nan


def read_state(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Here the encoders would be read, and rates estimated."""
    q, v = states[round(RATE * t) % len(states)]
    return (failed, v) if t >= 1.4 else (q, v)


def send(u: np.ndarray) -> None:
    """Here the currents would go to the drives."""


u = np.zeros(mech.nu)
law = [ctl]  # the controller that serves now
refused: list[str] = []
stop = threading.Event()
signal.signal(signal.SIGINT, lambda *_: stop.set())  # Ctrl-C ends the loop between two ticks


def step(t: float) -> bool:
    """One tick. Once the controller has refused, the motors only damp, until the end."""
    q, v = read_state(t)
    if not refused:
        try:
            law[0].torque(q, v, *reference(t), out=u)
        except hc.HoloctlError as error:
            refused.append(f"at t = {t:.3f} s: {type(error).__name__}: {error}")
    if refused:
        known = np.where(np.isfinite(v), v, 0.0)  # a rate that is not known: no torque
        u[:] = -DAMPING * mech.motor_rates(known)
    send(u)
    if not refused:  # the torque is out: now there is time for another partition, if one is needed
        law[0] = law[0].repartitioned(q, v)
    return stop.is_set()


for i in range(100):  # warm up: the first calls lay out workspaces and fill caches
    ctl.torque(*states[i], *reference(i / RATE), out=u)
    ctl.repartitioned(*states[i])

try:
    with hc.realtime():
        statistics = hc.run_at_rate(step, RATE, DURATION)
finally:
    send(np.zeros(mech.nu))  # whatever happened
print(statistics)
for why in refused:
    print("damping took over", why)
