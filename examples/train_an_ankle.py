"""A policy for a parallel ankle, trained by random search on many robots with loads of their own.

The policy is linear: motor efforts from the errors of pitch and roll, the rates of the motors and
a constant. Each step of the search tries both ways along random directions, on robots with random
targets and loads under the foot, and moves toward what did better (augmented random search). Draws
how it learns, and what the policy does with a load that it has not seen.
"""

import sys
from pathlib import Path

import numpy as np

import holoctl as hc

TICKS, DT = 120, 2e-3  # s: the policy acts each 2 ms
DIRECTIONS, CASES, STEPS = 8, 6, 60  # cases: robots that each policy is tried on
SIZE, RATE = 0.5, 0.5  # of the trials; of the steps, both relative to SCALE
MOST = 40.0  # N m
SCALE = np.array([40.0, 40.0, 1.0, 1.0, 1.0])  # N m/rad, N m s/rad, N m

mech = hc.load(hc.robot_file("ankle"))
start, still = hc.assemble(mech)
joints = [mech.model.joints[mech.model.getJointId(x)].idx_q for x in ("ankle_pitch", "ankle_roll")]
robots = hc.Rollouts(mech, DT, payload="foot")
rng = np.random.default_rng(1)


def motion(policies: np.ndarray, targets: np.ndarray, load: dict[str, np.ndarray]) -> np.ndarray:
    """Errors (N, T, 2) of robots under policies (N, 2, 5); a robot that stops keeps its last."""
    q, v = np.tile(start, (len(targets), 1)), np.zeros((len(targets), mech.nv))
    errors = list[np.ndarray]()
    for _ in range(TICKS):
        off = targets - q[:, joints]
        seen = np.concatenate([off, mech.motor_rates(v), np.ones((len(q), 1))], axis=1)
        efforts = np.clip(np.einsum("nij,nj->ni", policies, seen), -MOST, MOST)
        found = robots.run(q, v, efforts[:, None], plant=load)
        moved = found.status == 0
        q, v = (np.where(moved[:, None], x[:, -1], y) for x, y in ((found.q, q), (found.v, v)))
        errors.append(off)
    return np.array(errors).swapaxes(0, 1)


def drawn(count: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Targets in pitch and roll, and loads under the foot."""
    load = {
        "payload_mass": rng.uniform(0.0, 6.0, count),
        "payload_centre": rng.uniform([-0.05, -0.03, -0.05], [0.15, 0.03, 0.0], (count, 3)),
    }
    return rng.uniform([-0.4, -0.15], [0.3, 0.15], (count, 2)), load


def costs(policies: np.ndarray, targets: np.ndarray, load: dict[str, np.ndarray]) -> np.ndarray:
    """The mean of each policy over the same cases."""
    n, m = len(policies), len(targets)
    each = {name: np.concatenate([x] * n) for name, x in load.items()}
    off = motion(np.repeat(policies, m, axis=0), np.concatenate([targets] * n), each)
    return (np.abs(off).sum(2).mean(1)).reshape(n, m).mean(1)


policy, history = np.zeros((mech.nu, 5)), list[float]()
known = drawn(32)
for _ in range(STEPS):
    ways = rng.normal(size=(DIRECTIONS, *policy.shape)) * SCALE
    tried = costs(np.concatenate([policy + SIZE * ways, policy - SIZE * ways]), *drawn(CASES))
    better, worse = np.split(tried, 2)
    policy = policy + RATE * np.tensordot(worse - better, ways, 1) / (DIRECTIONS * tried.std())
    history.append(float(costs(policy[None], *known)[0]))
print(f"mean error {history[0]:.3f} rad after one step, {history[-1]:.3f} rad after {STEPS}")
target = np.array([[-0.3, 0.1]])
new = {"payload_mass": np.array([4.0]), "payload_centre": np.array([[0.1, 0.01, -0.03]])}
trace = motion(policy[None], target, new)[0]
print(f"a new load of 4 kg: {np.abs(trace[-1]).max():.3f} rad off after {TICKS * DT:g} s")

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="60 mm"):
    figure = Figure()
    learning, moving = figure.subplots(1, 2)
    learning.plot(history)
    learning.set(xlabel="step of the search", ylabel="mean error (rad)", title="32 robots")
    learning.set_ylim(0.0)
    for i, name in enumerate(("pitch", "roll")):
        moving.plot(DT * np.arange(TICKS), target[0, i] - trace[:, i], label=name)
        moving.axhline(target[0, i], color="0.6", linestyle=":", zorder=0)
    moving.set(xlabel="t (s)", ylabel="angle (rad)", title="a load of 4 kg")
    moving.legend()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/train_an_ankle.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
