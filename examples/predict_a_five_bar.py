"""Nonlinear model-predictive control of a five-bar at 1 kHz, within its efforts. Draws it.

Twenty steps of 10 ms ahead; at each tick one Newton step (a real-time iteration): the model and its
Jacobians along the last plan, then a quadratic program in the efforts alone, by DAQP. Beside it the
same with a soft loop, as simulators with soft contacts have it: the open tree, with a spring and a
damper between the frames of the cut hinge. Stiffer, or in longer steps, its prediction diverges.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import casadi
import daqp
import numpy as np

import holoctl as hc

STEPS, DT = 20, 0.01  # of the horizon; s
MOST = 8.0  # N m: less than half of what the motors have
WEIGHTS, EFFORT = [200.0, 1.0], 1e-2  # of positions and rates of motors; of efforts
STIFFNESS, DAMPING, SUBSTEPS = 2e4, 60.0, 2  # of the soft loop: N/m, N s/m, a count
TARGETS = [(0.0, [0.5, -0.4]), (0.5, [-0.3, 0.3]), (1.0, [0.0, 0.0])]  # s; rad from the start

mech = hc.load(hc.robot_file("five_bar"))
nu, hinge = mech.nu, mech.constraints[0]
ends = {"a": hc.FrameTask(hinge.a, "x z"), "b": hc.FrameTask(hinge.b, "x z")}
Expression = Any


class Model(NamedTuple):
    """What is predicted with: of x = (y, yd).

    ``motion(y, yd, u, guess)`` is ydd, ``closed(y, guess)`` the next guess, ``apart(y, yd, guess)``
    the gap between the frames of the hinge, m, and its rate.
    """

    motion: Callable[..., Expression]
    closed: Callable[..., Expression]
    apart: Callable[..., tuple[Expression, Expression]]
    y: np.ndarray
    z: np.ndarray
    substeps: int


def gap(functions: hc.results.CasadiFunctions) -> Callable[..., tuple[Expression, Expression]]:
    """Between the two frames of the hinge."""

    def apart(*state: Expression) -> tuple[Expression, Expression]:
        y, yd, guess = state
        (a, a_rate), (b, b_rate) = (functions[x](y, yd, [0.0, 0.0], guess) for x in "ab")
        return a - b, b_rate - a_rate

    return apart


def closed_loop() -> Model:
    """The reduced dynamics: the loop is closed exactly."""
    f = hc.casadi_functions(mech, tasks=ends)
    return Model(f["dynamics"], lambda y, z: f["closed_state"](y, z)[1], gap(f), f.y, f.z, 1)


def soft_loop() -> Model:
    """The open tree, with a spring and a damper between the frames of the hinge."""
    tree = hc.Mechanism(mech.model, [], list(mech.coordinate_names))
    f = hc.casadi_functions(tree, start=hc.assemble(mech)[0], tasks=ends)
    apart = gap(f)

    def motion(y: Expression, yd: Expression, u: Expression, guess: Expression) -> Expression:
        off, rate = apart(y, yd, guess)
        pull = casadi.jacobian(off, y).T @ (STIFFNESS * off + DAMPING * rate)
        return f["dynamics"](y, yd, casadi.DM(mech.B) @ u - pull, guess)

    return Model(motion, lambda y, z: z, apart, f.y, f.z, SUBSTEPS)


def stepped(model: Model) -> casadi.Function:
    """Steps of Runge and Kutta, with Jacobians: x, u, guess -> next x, A, B, next guess, gap."""
    k, h = model.y.size, DT / model.substeps
    y, yd = casadi.MX.sym("y", k), casadi.MX.sym("yd", k)
    u, guess = casadi.MX.sym("u", nu), casadi.MX.sym("guess", model.z.size)
    rates = casadi.Function("rates", [y, yd, u, guess], [model.motion(y, yd, u, guess)])
    x = after = casadi.vertcat(y, yd)

    def rate(at: casadi.MX) -> casadi.MX:
        return casadi.vertcat(at[k:], rates(at[:k], at[k:], u, guess))

    for _ in range(model.substeps):
        k1 = rate(after)
        k2 = rate(after + 0.5 * h * k1)
        k3 = rate(after + 0.5 * h * k2)
        k4 = rate(after + h * k3)
        after = after + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    by_x = casadi.horzcat(casadi.jacobian(after, y), casadi.jacobian(after, yd))
    off = casadi.norm_2(model.apart(y, yd, guess)[0])
    results = [after, by_x, casadi.jacobian(after, u), model.closed(y, guess), off]
    whole = casadi.Function("whole", [y, yd, u, guess], results)
    x = casadi.MX.sym("x", 2 * k)
    return casadi.Function("stepped", [x, u, guess], whole.call([x[:k], x[k:], u, guess]))


def condensed(model: Model) -> casadi.Function:
    """The program along a plan: x, plan, goal, guess -> H, f, guess at x, largest gap."""
    k, is_motor = model.y.size, np.ones(model.y.size)
    if k > nu:
        is_motor = mech.B.sum(axis=1)
    step, Q = stepped(model), casadi.diag(casadi.DM(np.kron(WEIGHTS, is_motor)))
    x, goal = casadi.MX.sym("x", 2 * k), casadi.MX.sym("goal", 2 * k)
    plan, guess = casadi.MX.sym("plan", nu, STEPS), casadi.MX.sym("guess", model.z.size)
    H, f = EFFORT * casadi.MX.eye(nu * STEPS), EFFORT * casadi.vec(plan)
    at, z, S, guesses, gaps = x, guess, casadi.MX(2 * k, 0), [], []
    for i in range(STEPS):
        at, A, B, z, off = step(at, plan[:, i], z)
        guesses.append(z)
        gaps.append(off)
        S = casadi.horzcat(A @ S, B)
        wide = casadi.horzcat(S, casadi.MX(2 * k, nu * (STEPS - i - 1)))
        H, f = H + wide.T @ Q @ wide, f + wide.T @ Q @ (at - goal)
    opened = casadi.mmax(casadi.vertcat(*gaps))
    results = [casadi.densify(H), casadi.densify(f), guesses[0], opened]
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
    """What the motors are to reach, from the start."""
    return np.array([x for start, x in TARGETS if t >= start][-1])


class Controller:
    """The law at each tick: a Newton step along the last plan."""

    def __init__(self, model: Model) -> None:
        self.program, self.reduced = compiled(condensed(model)), model.y.size == nu
        self.goal, self.guess = np.concatenate([model.y, 0.0 * model.y]), model.z
        self.motors = np.arange(nu) if self.reduced else mech.B.argmax(axis=0)
        self.plan = np.zeros(nu * STEPS)
        self.took: list[float] = []
        self.gaps: list[float] = []

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        began, plan, goal = time.perf_counter(), self.plan, self.goal.copy()
        goal[self.motors] += wanted(t)
        x = (mech.motor_positions(q), mech.motor_rates(v)) if self.reduced else (q, v)
        columns = plan.reshape(STEPS, nu).T
        H, f, z, gap = self.program(np.concatenate(x), columns, goal, self.guess)
        rows = np.zeros((0, nu * STEPS))
        change, _, flag, _ = daqp.solve(H.full(), f.full().ravel(), rows, MOST - plan, -MOST - plan)
        if flag != 1:
            raise RuntimeError(f"the program has no solution: {flag}")
        self.plan, self.guess = np.clip(plan + change, -MOST, MOST), z.full().ravel()
        self.took.append(time.perf_counter() - began)
        self.gaps.append(float(gap))
        return self.plan[:nu]


start = hc.assemble(mech)[0]
for name, model in (("soft", soft_loop()), ("closed", closed_loop())):
    law = Controller(model)
    run = hc.simulate(mech, law, start, np.zeros(mech.nv), 1.5)
    y = np.array([mech.motor_positions(q) for q in run.q]) - mech.motor_positions(start)
    print(f"predicted with a {name} loop:")
    for at, (_, target) in zip((0.5, 1.0, 1.5), TARGETS, strict=True):
        off = np.abs(y[run.t.searchsorted(at) - 1] - target).max()
        print(f"  before {at} s the motors are {off:.4f} rad from their target")
    print(f"  largest effort {np.abs(run.u).max():.2f} of {MOST} N m")
    print(f"  the loop is open by up to {1e3 * max(law.gaps):.2g} mm in what is predicted")
    print(f"  a tick takes {1e6 * np.median(law.took):.0f} us in the median, of 1000")

# ---------------------------------------------------------------------------- the picture

try:
    from matplotlib.figure import Figure
except ImportError:
    raise SystemExit("(no picture: pip install 'holoctl[plot]')") from None

with hc.style("page", height="80 mm"):
    figure = Figure()
    angles, efforts = figure.subplots(2, 1, sharex=True)
    goals = np.array([wanted(t) for t in run.t])
    for i, motor in enumerate(mech.actuator_names):
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
