"""Control the five-bar at 1 kHz from its two motor encoders, with what to do without a torque."""

import signal
import threading

import numpy as np

import holoctl as hc

RATE, DURATION, PERIOD = 1000.0, 1.5, 0.5  # Hz, s, s
DAMPING = 0.5  # N m s/rad, of the law that takes over
COUNTS = 2**16  # of an encoder, a turn

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


def read_encoders(t: float) -> tuple[np.ndarray, np.ndarray]:
    """Positions and rates of the motors, all that is measured; the passive joints follow.

    In place of the robot: it stands exactly where the reference is, whatever the torque, so this
    shows the loop and its timing, not the control. Near the end one encoder fails.
    """
    q_ref, v_ref, _ = reference(t)
    q_motors = np.round(q_ref * COUNTS / (2.0 * np.pi)) * (2.0 * np.pi / COUNTS)
    if t >= 1.4:
        q_motors[1] = np.nan
    return q_motors, v_ref


def send(u: np.ndarray) -> None:
    """Here the currents would go to the drives."""


u = np.zeros(mech.nu)
loop = ctl.loop()  # remembers where the mechanism is; it starts at the reference configuration
refused: list[str] = []
stop = threading.Event()
signal.signal(signal.SIGINT, lambda *_: stop.set())  # Ctrl-C ends the loop between two ticks


def step(t: float) -> bool:
    """One tick. Once the controller has refused, the motors only damp, until the end."""
    q_motors, v_motors = read_encoders(t)
    if not refused:
        try:
            loop.torque_from_motors(q_motors, v_motors, *reference(t), out=u)
        except hc.HoloctlError as error:
            refused.append(f"at t = {t:.3f} s: {type(error).__name__}: {error}")
    if refused:
        u[:] = -DAMPING * np.where(np.isfinite(v_motors), v_motors, 0.0)
    send(u)
    return stop.is_set()


for i in range(round(RATE * PERIOD)):  # warm up: the first calls allocate memory, fill caches
    loop.torque_from_motors(*read_encoders(i / RATE), *reference(i / RATE), out=u)
loop.reset(q_home)
loop.torque_from_motors(*read_encoders(0.0), *reference(0.0), out=u)  # the first one takes longer

try:
    with hc.realtime():
        statistics = hc.run_at_rate(step, RATE, DURATION)
finally:
    send(np.zeros(mech.nu))  # whatever happened
print(statistics)
for why in refused:
    print("damping took over", why)
