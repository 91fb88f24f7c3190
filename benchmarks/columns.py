"""What is timed: holoctl, and the same answers by other ways through Pinocchio.

A column takes a state and gives a torque or an acceleration. `prepare` brings a state into the
form that the column needs (not timed), `call` is what is timed, `expected` is what must come
out of it.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pinocchio as pin
from mechanisms import Loop, loops
from numpy.typing import NDArray
from scipy.linalg import qr

import holoctl as hc
from holoctl.dynamics.tick.inverse_tick import prepare

Array = NDArray[np.float64]

AGREEMENT = 1e-8
"""A column is timed if its result differs from ours by less than this, relative."""

KP, KD = 100.0, 20.0

OFF = 2
"""How a process ends in which a column disagrees; 1 is an exception."""


@dataclass
class State:
    """A closed state, a target, and the exact answer at it."""

    q: Array
    v: Array
    target: Array
    u: Array
    a: Array
    tau: Array
    q_ref: Array
    v_ref: Array
    a_ref: Array


@dataclass
class Column:
    """One way to an answer."""

    name: str
    call: Callable[[Any], Any]
    expected: Callable[[State], Array] | None = None
    prepare: Callable[[State], Any] = lambda s: s
    tolerance: float | None = AGREEMENT
    """None: the difference is told, and the column is timed all the same."""
    missing: str = ""
    """Why there is nothing to time."""

    def difference(self, states: list[State]) -> float:
        """Largest difference from the expected results, relative; 0 if there are none."""
        if self.expected is None:
            return 0.0
        pairs = ((np.array(self.call(self.prepare(s))), self.expected(s)) for s in states)
        return max(float(np.abs(x - y).max() / np.abs(y).max()) for x, y in pairs)


@dataclass
class Case:
    """A mechanism with its states."""

    name: str
    mech: hc.Mechanism
    part: hc.results.Partition
    states: list[State]
    loops: list[Loop] = field(default_factory=list)

    @property
    def k(self) -> int:
        """Degrees of freedom."""
        return self.mech.nv - self.part.rank


def make_case(name: str, mech: hc.Mechanism, n: int = 6, seed: int = 0) -> Case:
    """Closed states near the reference, moving, with random targets."""
    rng = np.random.default_rng(seed)
    middle, _ = hc.assemble(mech)
    part = hc.partition(mech, middle)
    states = [_state(mech, part, middle, rng) for _ in range(n)]
    return Case(name, mech, part, states, loops(mech))


def _state(
    mech: hc.Mechanism, part: hc.results.Partition, middle: Array, rng: np.random.Generator
) -> State:
    near = pin.integrate(mech.model, middle, 0.08 * rng.normal(size=mech.nv))
    q, v = hc.assemble(mech, near, rng.normal(size=mech.nv))
    target = rng.normal(size=mech.nu)
    result = hc.inverse_dynamics(mech, q, v, target, partition=part).raise_if_bad()
    error, rate = 0.01 * rng.normal(size=mech.nu), 0.05 * rng.normal(size=mech.nu)
    return State(
        q, v, target, result.u, result.a, mech.B @ result.u,
        q_ref=mech.motor_positions(q) + error,
        v_ref=mech.motor_rates(v) + rate,
        a_ref=target - KP * error - KD * rate,
    )  # fmt: skip


def motor_indices(mech: hc.Mechanism) -> list[int]:
    """Which coordinates have a motor: places in v, not in q."""
    return [mech.coordinate_names.index(m) for m in mech.actuated]


def independent_rows(G: Array, rank: int) -> NDArray[np.intp]:
    """`rank` rows of G that are independent, in ascending order."""
    return np.sort(qr(G.T, mode="r", pivoting=True)[1][:rank])


# ----------------------------------------------------------------------------------- columns


def pinocchio_columns(case: Case) -> list[Column]:
    """The unit, and the inertia matrix beside it."""
    model, data = case.mech.model, case.mech.model.createData()

    def unit(s: State) -> None:
        pin.rnea(model, data, s.q, s.v, s.a)
        pin.computeJointJacobians(model, data, s.q)

    def with_inertia(s: State) -> None:
        pin.rnea(model, data, s.q, s.v, s.a)
        pin.crba(model, data, s.q)

    return [Column("unit", unit), Column("rnea + crba", with_inertia)]


def holoctl_columns(case: Case) -> list[Column]:
    """Torque, controller, and forward dynamics with its certificate."""
    mech, part = case.mech, case.part
    ctl = hc.ComputedTorque(mech, KP, KD, partition=part)
    out = np.zeros(mech.nu)
    torque = prepared_torque(case)

    def controller(s: State) -> Array:
        return ctl.torque(s.q, s.v, s.q_ref, s.v_ref, s.a_ref, out=out)

    def forward(s: State) -> Array:
        return hc.forward_dynamics(mech, s.q, s.v, s.tau, partition=part).a

    return [
        Column("inverse", torque, lambda s: s.u),
        Column("controller", controller, lambda s: s.u),
        Column("forward, certified", forward, lambda s: s.a),
    ]


def compiled_columns(case: Case) -> list[Column]:
    """The same by CasADi's virtual machine and in machine code, where these are there."""
    names = {"virtual machine": "vm", "compiled": "c"}
    if importlib.util.find_spec("casadi") is None:
        return [Column(name, print, missing="no CasADi") for name in names]
    out = np.zeros(case.mech.nu)

    def column(name: str, machine: str) -> Column:
        wanted = ["inverse_dynamics"]
        fast = hc.compile(case.mech, wanted, partition=case.part, machine=machine)
        torque = fast.inverse_dynamics
        return Column(name, lambda s: torque(s.q, s.v, s.target, out=out), lambda s: s.u)

    return [column(name, machine) for name, machine in names.items()]


def prepared_torque(case: Case) -> Callable[[State], Array]:
    """The inverse dynamics of a tick."""
    mech, part = case.mech, case.part
    prepared, out = hc.PreparedInverseDynamics(mech, partition=part), np.zeros(mech.nu)
    return lambda s: prepared.torque(s.q, s.v, s.target, out=out)


def path(case: Case) -> str:
    """Which path of the inverse dynamics serves: at how many states the fast one answers, or why
    it never does."""
    prepared = hc.PreparedInverseDynamics(case.mech, partition=case.part)
    found = prepare(prepared.mech, prepared.partition, prepared._paths.options)
    if found is None:
        return f"general: {prepared.general}"
    answers = [found.tick(s.q, s.v, s.target, 0.0, None, None) for s in case.states]
    served = sum(u is not None and bool(np.isfinite(u).all()) for u in answers)
    return f"fast {served}/{len(answers)}"


def constraint_dynamics(case: Case) -> Column:
    """Pinocchio's own forward dynamics with the same closures; hinges in a plane are points.

    A point in a plane has a row too many, so the proximal parameter must not be zero.
    """
    settings = pin.ProximalSettings(1e-12, 1e-10, 10)
    call = _by_pinocchio(case, pin.constraintDynamics, settings)
    return Column("constraintDynamics", call, lambda s: s.a)


def lcaba(case: Case) -> Column:
    """Likewise by `pin.lcaba`, with the least proximal parameter at which it agrees.

    It is tried in a process of its own, for it may end the process. Each state is asked for again
    and again: with welds it gives another answer each time.
    """
    for mu in (1e-4, 1e-3, 1e-2, 1e-1):
        call = _by_pinocchio(case, pin.lcaba, pin.ProximalSettings(1e-12, mu, 20))
        column = Column("lcaba", call, lambda s: s.a)
        trial = get_context("fork").Process(target=_trial, args=(column, case.states))
        trial.start()
        trial.join()
        if trial.exitcode == 0:
            return column
        if trial.exitcode != OFF:
            why = signal.Signals(-trial.exitcode).name if trial.exitcode < 0 else "an error"
            return replace(column, missing=f"not run: {why}")
    return column


def _trial(column: Column, states: list[State]) -> None:
    """End this process: with 0 if the column agrees at every call, else with `OFF`."""
    sys.exit(0 if column.difference(3 * states) <= AGREEMENT else OFF)


def _by_pinocchio(case: Case, function: Any, settings: Any) -> Callable[[State], Array]:
    """Accelerations by a function of Pinocchio, with its constraints in the place of ours."""
    model, data = case.mech.model, case.mech.model.createData()
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for loop in case.loops:
        kind = pin.ContactType.CONTACT_6D if loop.weld else pin.ContactType.CONTACT_3D
        # body first: the world as first body is a trap of some of Pinocchio's algorithms
        b, a = loop.frame_b, loop.frame_a
        models.append(
            pin.RigidConstraintModel(
                kind, model, b.joint, b.placement, a.joint, a.placement, pin.ReferenceFrame.LOCAL
            )
        )
    for m in models:
        datas.append(m.createData())
    if function is pin.lcaba:
        pin.computeJointMinimalOrdering(model, data, models)
    else:
        pin.initConstraintDynamics(model, data, models, datas)
    return lambda s: function(model, data, s.q, s.v, s.tau, models, datas, settings)


def dense_kkt(case: Case) -> Column:
    """The textbook way: M, h, G and drift from Pinocchio's frames, one dense solve by numpy."""
    return Column("dense KKT", Textbook(case).torque, lambda s: s.u)


class SaddlePoint:
    """``[M, -B, -G'; G, 0, 0; B', 0, 0] (a, u, lambda) = (-h, -drift, target)``, dense."""

    def __init__(self, B: Array, rank: int) -> None:
        nv, nu = B.shape
        self.nv, self.end = nv, nv + nu
        self.K, self.rhs = np.zeros((nv + nu + rank,) * 2), np.zeros(nv + nu + rank)
        self.K[:nv, nv : nv + nu] = -B
        self.K[nv + rank :, :nv] = B.T

    def efforts(self, M: Array, h: Array, G: Array, drift: Array, target: Array) -> Array:
        """u, with the rows of G that count."""
        K, rhs, nv, end, r = self.K, self.rhs, self.nv, self.end, G.shape[0]
        K[:nv, :nv] = M
        K[:nv, end:] = -G.T
        K[nv : nv + r, :nv] = G
        rhs[:nv] = -h
        rhs[nv : nv + r] = -drift
        rhs[nv + r :] = target
        return np.linalg.solve(K, rhs)[nv:end]


class Textbook:
    """The saddle point system with Pinocchio's M, h and frame Jacobians.

    Rows are differences of what the closure's two frames do, in axes of the world, none of
    holoctl's. Which of them count is decided once.
    """

    def __init__(self, case: Case) -> None:
        mech = case.mech
        self.model = mech.model.copy()
        self.pairs = [self._frames(loop) for loop in case.loops]
        self.data = self.model.createData()
        self.zero = np.zeros(mech.nv)
        rows = sum(size for size, _, _ in self.pairs)
        self.G, self.drift = np.zeros((rows, mech.nv)), np.zeros(rows)
        first = case.states[0]
        self._rows(first.q, first.v)
        self.keep = independent_rows(self.G, case.part.rank)
        if self.keep.size == rows:
            self.keep = slice(None)
        self.system = SaddlePoint(mech.B, case.part.rank)

    def _frames(self, loop: Loop) -> tuple[int, int, int]:
        """Number of rows and the two frames; 0 is the world."""
        added = [0, 0]
        for i, f in enumerate((loop.frame_a, loop.frame_b)):
            if f.joint:
                frame = pin.Frame(f"{loop.name}_{i}", f.joint, f.placement, pin.FrameType.OP_FRAME)
                added[i] = self.model.addFrame(frame)
        return 6 if loop.weld else 3, added[0], added[1]

    def _rows(self, q: Array, v: Array) -> None:
        model, data, axes = self.model, self.data, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pin.forwardKinematics(model, data, q, v, self.zero)
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        at = 0
        for size, a, b in self.pairs:
            here = slice(at, at + size)
            G = pin.getFrameJacobian(model, data, b, axes)[:size]
            drift = pin.getFrameClassicalAcceleration(model, data, b, axes).vector[:size]
            if a:
                G = G - pin.getFrameJacobian(model, data, a, axes)[:size]
                drift = (
                    drift - pin.getFrameClassicalAcceleration(model, data, a, axes).vector[:size]
                )
            self.G[here], self.drift[here] = G, drift
            at += size

    def terms(self, q: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """M, h, and those rows of G and drift that count."""
        h = pin.nonLinearEffects(self.model, self.data, q, v)
        M = pin.crba(self.model, self.data, q)
        self._rows(q, v)
        return M, h, self.G[self.keep], self.drift[self.keep]

    def torque(self, s: State) -> Array:
        """u at a state."""
        return self.system.efforts(*self.terms(s.q, s.v), s.target)


def own_columns(case: Case) -> list[Column]:
    """All columns that need nothing but Pinocchio, numpy and holoctl."""
    return [
        *pinocchio_columns(case),
        *holoctl_columns(case),
        *compiled_columns(case),
        constraint_dynamics(case),
        lcaba(case),
        dense_kkt(case),
    ]
