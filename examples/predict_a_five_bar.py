"""Nonlinear model-predictive control of a five-bar at 1 kHz, within its efforts. Draws it.

Twenty steps of 10 ms ahead; at each tick one Newton step (a real-time iteration): the model and its
Jacobians along the last plan, then a quadratic program in the efforts alone, by DAQP.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import casadi
import daqp
import numpy as np

import holoctl as hc

STEPS, DT = 20, 0.01  # of the horizon; s
MOST = 8.0  # N m: less than half of what the motors have
WEIGHTS, EFFORT = [200.0, 200.0, 1.0, 1.0], 1e-2  # of positions and rates; of efforts
TARGETS = [(0.0, [0.5, -0.4]), (0.5, [-0.3, 0.3]), (1.0, [0.0, 0.0])]  # s; rad from the start

mech = hc.load(hc.robot_file("five_bar"))
functions = hc.casadi_functions(mech)
k, nu = functions.y.size, mech.nu


def stepped() -> casadi.Function:
    """One step of Runge and Kutta, with Jacobians: x, u, guess -> next x, A, B, next guess."""
    x, u = casadi.MX.sym("x", 2 * k), casadi.MX.sym("u", nu)
    guess = casadi.MX.sym("guess", functions.z.size)

    def rate(at: casadi.MX) -> casadi.MX:
        return casadi.vertcat(at[k:], functions["dynamics"](at[:k], at[k:], u, guess))

    k1 = rate(x)
    k2 = rate(x + 0.5 * DT * k1)
    k3 = rate(x + 0.5 * DT * k2)
    k4 = rate(x + DT * k3)
    after = x + DT / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    z = functions["closed_state"](x[:k], guess)[1]
    jacobians = casadi.jacobian(after, x), casadi.jacobian(after, u)
    return casadi.Function("stepped", [x, u, guess], [after, *jacobians, z])


def condensed() -> casadi.Function:
    """The program along a plan: x, plan, goal, guess -> H, f, guess at x."""
    step, Q = stepped(), casadi.diag(casadi.DM(WEIGHTS))
    x, goal = casadi.MX.sym("x", 2 * k), casadi.MX.sym("goal", 2 * k)
    plan, guess = casadi.MX.sym("plan", nu, STEPS), casadi.MX.sym("guess", functions.z.size)
    H, f = EFFORT * casadi.MX.eye(nu * STEPS), EFFORT * casadi.vec(plan)
    at, z, S, guesses = x, guess, casadi.MX(2 * k, 0), []
    for i in range(STEPS):
        at, A, B, z = step(at, plan[:, i], z)
        guesses.append(z)
        S = casadi.horzcat(A @ S, B)
        wide = casadi.horzcat(S, casadi.MX(2 * k, nu * (STEPS - i - 1)))
        H, f = H + wide.T @ Q @ wide, f + wide.T @ Q @ (at - goal)
    results = [casadi.densify(H), casadi.densify(f), guesses[0]]
    return casadi.Function("condensed", [x, plan, goal, guess], results)


def compiled(function: casadi.Function) -> casadi.Function:
    """As machine code, if a compiler is here."""
    compiler = shutil.which("cc")
    if compiler is None:
        return function
    folder = Path(tempfile.mkdtemp())
    generator = casadi.CodeGenerator("program.c")
    generator.add(function)
    generator.generate(f"{folder}/")
    made, flags = folder / "program.so", ["-O1", "-fPIC", "-shared"]
    subprocess.run([compiler, *flags, folder / "program.c", "-o", made, "-lm"], check=True)
    return casadi.external(function.name(), str(made))


def wanted(t: float) -> np.ndarray:
    """What the motors are to reach."""
    return functions.y + [x for start, x in TARGETS if t >= start][-1]


program, no_rows = compiled(condensed()), np.zeros((0, nu * STEPS))
took: list[float] = []
last = {"plan": np.zeros(nu * STEPS), "guess": functions.z}


def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """One tick."""
    began, plan = time.perf_counter(), last["plan"]
    x = np.concatenate([mech.motor_positions(q), mech.motor_rates(v)])  # y and yd, here
    goal = np.concatenate([wanted(t), np.zeros(k)])
    H, f, z = program(x, plan.reshape(STEPS, nu).T, goal, last["guess"])
    change, _, flag, _ = daqp.solve(H.full(), f.full().ravel(), no_rows, MOST - plan, -MOST - plan)
    if flag != 1:
        raise RuntimeError(f"the program has no solution: {flag}")
    last.update(plan=np.clip(plan + change, -MOST, MOST), guess=z.full().ravel())
    took.append(time.perf_counter() - began)
    return last["plan"][:nu]


run = hc.simulate(mech, law, functions.start, np.zeros(mech.nv), 1.5)
y = np.array([mech.motor_positions(q) for q in run.q]) - functions.y
for at, (_, target) in zip((0.5, 1.0, 1.5), TARGETS, strict=True):
    off = np.abs(y[run.t.searchsorted(at) - 1] - target).max()
    print(f"before {at} s the motors are {off:.4f} rad from their target")
print(f"largest effort {np.abs(run.u).max():.2f} of {MOST} N m")
print(f"a tick takes {1e6 * np.median(took):.0f} us in the median, of 1000")

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="80 mm"):
    figure = Figure()
    angles, efforts = figure.subplots(2, 1, sharex=True)
    goals = np.array([wanted(t) - functions.y for t in run.t])
    for i, motor in enumerate(functions.motors):
        angles.plot(run.t, goals[:, i], ":", color=f"C{i}")
        angles.plot(run.t, y[:, i], color=f"C{i}", label=motor)
        efforts.step(run.t[: len(run.u)], run.u[:, i], where="post", color=f"C{i}")
    for limit in (-MOST, MOST):
        efforts.axhline(limit, color="0.6", linewidth=1, zorder=0)
    angles.set(ylabel="from the start (rad)", title="targets (dotted) and motors; efforts, limits")
    efforts.set(xlabel="t (s)", ylabel="effort (N m)")
    angles.legend()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/predict_a_five_bar.png")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
print(f"the picture: {path}")
