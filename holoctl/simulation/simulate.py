"""Simulation: a controller at its own rate against a plant that may differ from its model."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields
from importlib.metadata import version
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Vector, counted, flag, listing, positive, quiet, vector, whole
from holoctl.base.errors import HoloctlError, InconsistentError, InputError
from holoctl.base.linalg import largest
from holoctl.base.progress import progress_bar
from holoctl.base.tolerances import CLOSED, MOST_STEPS, MOST_TICKS
from holoctl.closing.correction import put_back
from holoctl.control.computed_torque import ComputedTorque, Controller
from holoctl.dynamics.tick.prepared_forward import PreparedForwardDynamics
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import known_efforts
from holoctl.projector.partition import Partition, partition
from holoctl.rows.evaluate import constraint_rows

__all__ = ["Run", "simulate"]

Array = NDArray[np.float64]
Load = Callable[[float, Vector, Vector], Any]
"""load(t, q, v): forces from outside, or efforts on the coordinates."""


@dataclass(frozen=True, eq=False)
class Run:
    """A simulated motion: N intervals between N + 1 instants.

    Attributes
    ----------
    t : (N + 1,) array
        Instants, s: the ticks of the controller.
    q : (N + 1, nq) array
        Configurations of the plant.
    v : (N + 1, nv) array
        Velocities of the plant.
    u : (N + 1, nu) array
        Motor efforts; row i is held from t[i] to t[i + 1] (or was evaluated at t[i] only,
        when the controller runs continuously).
    closure : (N + 1,) array
        Largest scaled constraint error before the state was put back on the manifold; where the
        geometry is rounded, that of the rows that were kept.
    tick_time : (N + 1,) array
        Wall-clock time of each call of the controller, s.
    seed : int
        Seed of the measurement noise.
    versions : str
        What the run was made with.
    """

    t: Vector
    q: Array
    v: Array
    u: Array
    closure: Vector
    tick_time: Vector
    seed: int
    versions: str

    def __repr__(self) -> str:
        return (
            f"<Run: {counted(self.v.shape[1], 'coordinate')} and "
            f"{counted(self.u.shape[1], 'motor')} over {self.t[-1]:g} s, "
            f"{counted(self.t.size, 'instant')}, off the constraints by at most "
            f"{largest(self.closure):.1e} (scaled)>"
        )

    def save(self, path: str | Path) -> Path:
        """Write all of it to a ``.npz`` file (the suffix is added), and return the path."""
        path = Path(path)
        path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **{f.name: getattr(self, f.name) for f in fields(self)})
        return path

    @classmethod
    def read(cls, path: str | Path) -> Run:
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as data:
                values: dict[str, Any] = {f.name: data[f.name] for f in fields(cls)}
        except (OSError, KeyError, ValueError) as error:
            raise InputError(f"{path} is not a saved run: {error}") from None
        values["seed"], values["versions"] = int(values["seed"]), str(values["versions"])
        return cls(**values)


def simulate(
    mech: Mechanism,
    controller: Controller,
    q0: Any,
    v0: Any,
    duration: float,
    *,
    plant: Mechanism | None = None,
    rate: float = 1000.0,
    hold: bool = True,
    noise: tuple[float, float] = (0.0, 0.0),
    seed: int = 0,
    rtol: float = 1e-9,
    atol: float = 1e-11,
    f_ext: Load | None = None,
    efforts: Load | None = None,
    progress: bool = False,
) -> Run:
    """Simulate a mechanism under a controller.

    At every tick the controller sees the state and its effort is held to the next tick.
    The forces of the plant, such as friction, act at every instant. Between ticks scipy
    integrates the constrained forward dynamics in the tangent space of the configuration at the
    tick; then the state is put back on the constraint manifold.

    Parameters
    ----------
    mech : Mechanism
        The controller's model; also the plant unless one is given.
    controller : callable
        ``controller(t, q, v) -> u`` with u (nu,); `ComputedTorque.track` makes one.
    q0, v0 : (nq,) and (nv,) array_like
        Start, on the manifold: see `assemble`.
    duration : float
        s. Where it is not a multiple of the tick, the last tick is shorter.
    plant : Mechanism, optional
        What is simulated, with the same coordinates and motors as `mech`.
    rate : float, optional
        Ticks per second; results are recorded at the ticks.
    hold : bool, optional
        False: evaluate the controller continuously, as an ideal analog controller.
    noise : (float, float), optional
        Standard deviation of the measurement noise on q (rad or m, in the tangent space) and
        on v, drawn at each tick. Not with a continuous controller.
    seed : int, optional
        Seed of the noise.
    rtol, atol : float, optional
        Tolerances of the integrator (scipy's RK45) on positions and velocities.
    f_ext : callable, optional
        ``f_ext(t, q, v)``: external forces on the plant at any instant, as `inverse_dynamics`
        takes them. The controller is not told.
    efforts : callable, optional
        ``efforts(t, q, v)``: (nv,) efforts on the coordinates of the plant, N m or N, likewise.
    progress : bool, optional
        Show a progress bar (needs tqdm).

    Returns
    -------
    Run

    Raises
    ------
    InputError
        For wrong shapes, a plant that does not match, more than ten million ticks, a controller
        or a load that returns the wrong shape or numbers that are not finite.
    InconsistentError
        If the start is not on the manifold, or the motion gets too fast to integrate; or, where
        the geometry is rounded, opens a row that was left out beyond its tolerance.
    SingularityError
        If the motion runs into a singular configuration; a note on the error says when.
    """
    check_mechanism(mech)
    plant = mech if plant is None else plant
    check_mechanism(plant, "plant")
    _check_plant(mech, plant)
    of = getattr(controller, "__self__", None)
    methods = [getattr(ComputedTorque, name) for name in dir(ComputedTorque)]
    its_own = isinstance(of, ComputedTorque) and getattr(controller, "__func__", 0) in methods
    if not callable(controller) or its_own:
        hint = ""
        if isinstance(controller, ComputedTorque) or its_own:
            hint = "; ctl.track(reference) makes one, with reference(t) -> (q_ref, v_ref, a_ref)"
        what = (
            f"{type(of).__name__}.{controller.__name__}" if its_own else type(controller).__name__
        )
        raise InputError(f"controller must be a function (t, q, v) -> u; got a {what}{hint}")
    q, v, _ = check_state(plant, q0, v0, names=("q0", "v0"))
    duration, rate = positive("duration", duration, "s"), positive("rate", rate, "ticks per s")
    if not duration * rate <= MOST_TICKS:
        raise InputError(
            f"duration and rate make {duration * rate:.3g} ticks; a run has at most "
            f"{MOST_TICKS:.0e}, all of them recorded"
        )
    sigma = vector("noise", noise, 2, "standard deviations of q and v")
    if sigma.min() < 0.0:
        raise InputError(f"noise must be two standard deviations >= 0; got {noise!r}")
    rtol, atol = positive("rtol", rtol), positive("atol", atol)
    seed = whole("seed", seed, 0)
    hold, progress = flag("hold", hold), flag("progress", progress)
    if sigma.any() and not hold:
        raise InputError("noise is drawn at ticks, so it needs hold=True")
    for name, given in (("f_ext", f_ext), ("efforts", efforts)):
        if given is not None and not callable(given):
            raise InputError(
                f"{name} must be a function (t, q, v); got {type(given).__name__}; a constant load "
                "is lambda t, q, v: load"
            )
    theirs = np.geterr()  # of the caller: the controller is theirs too
    with np.errstate(all="ignore"):
        part = _started(plant, q, v)
        dynamics = PreparedForwardDynamics(plant, part)
        q, v = put_back(plant, part.rows, q, v, 0.0)
    rng = np.random.default_rng(seed)
    N = max(1, int(np.ceil(duration * rate - 1e-9)))
    t = np.append(np.arange(N) / rate, duration)
    Q, V = np.empty((N + 1, plant.nq)), np.empty((N + 1, plant.nv))
    U, closure, spent = np.empty((N + 1, plant.nu)), np.zeros(N + 1), np.empty(N + 1)

    def measured(q: Vector, v: Vector) -> tuple[Vector, Vector]:
        if not sigma.any():
            return q, v
        e = sigma[0] * rng.normal(size=plant.nv)
        return pin.integrate(plant.model, q, e), v + sigma[1] * rng.normal(size=plant.nv)

    def command(t: float, q: Vector, v: Vector) -> Vector:
        with np.errstate(**theirs):
            given = controller(t, q.copy(), v.copy())
        return vector("the controller's u", given, plant.nu, "motor efforts")

    def loaded(t: float, q: Vector, v: Vector) -> Vector:
        """Efforts of loads from outside."""
        with np.errstate(**theirs):
            of_frames, of_coordinates = (
                None if load is None else load(t, q.copy(), v.copy()) for load in (f_ext, efforts)
            )
        return known_efforts(plant, q, v, t, of_frames, of_coordinates)

    load = None if f_ext is None and efforts is None else loaded

    @quiet
    def tick(i: int, q: Vector, v: Vector) -> tuple[Vector, Vector]:
        seen = measured(q, v)
        start = time.perf_counter()
        u = command(t[i], *seen)
        spent[i] = time.perf_counter() - start
        Q[i], V[i], U[i] = q, v, u
        if i == N:
            return q, v
        held = (lambda s, x, y: u) if hold else command
        q, v = _advanced(dynamics, held, load, q, v, t[i], t[i + 1], rtol, atol)
        closure[i + 1] = _closure(plant, part, q, v, t[i + 1])
        return put_back(plant, part.rows, q, v, t[i + 1])

    bar = progress_bar(N + 1, "simulating", "ticks", scaled=True) if progress else None
    with bar or nullcontext():
        for i in range(N + 1):
            try:
                q, v = tick(i, q, v)
            except HoloctlError as error:
                error.add_note(f"in the simulation of {plant.name!r}, at t = {t[i]:.6g} s")
                raise
            if bar is not None:
                bar.update()
    return Run(t, Q, V, U, closure, spent, seed, _versions())


def _check_plant(mech: Mechanism, plant: Mechanism) -> None:
    if mech.coordinate_names != plant.coordinate_names or mech.nq != plant.nq:
        raise InputError("plant must have the same coordinates, in the same order, as mech")
    if mech.actuator_names != plant.actuator_names:
        raise InputError("plant must have the same motors, in the same order, as mech")


def _started(plant: Mechanism, q: Vector, v: Vector) -> Partition:
    _, rows = constraint_rows(plant, q, v)
    off, slip = largest(plant.row_scale * rows.error), largest(plant.row_scale * rows.rate)
    speed = 1.0 + largest(v / plant.column_scale)

    def check(allowed: float) -> None:
        if not (off <= allowed and slip <= allowed * speed):
            raise InconsistentError(
                f"{plant.name}: the start is not on the constraints (scaled error {off:.1e}, rate "
                f"{slip:.1e}); call hc.assemble(mech, q0, v0) first",
                residual=max(off, slip),
            )

    check(max(CLOSED, plant.tolerance))
    part = partition(plant, q)
    check(max(CLOSED, part.tolerance))  # that of the mechanism only where it is rounded
    return part


def _advanced(
    dynamics: PreparedForwardDynamics, command: Controller, load: Load | None, q0: Vector,
    v0: Vector, start: float, stop: float, rtol: float, atol: float,
) -> tuple[Vector, Vector]:  # fmt: skip
    """The state at `stop`: q = q0 (+) d, with (d, v) integrated from (0, v0).

    Rotations: d stays well below a turn, where its Jacobian is singular, in shorter pieces.
    Evaluations are counted for the tick as a whole, however many pieces it has.
    """
    flat = dynamics.mech.nq == dynamics.mech.nv
    turns = 0.0 if flat else float(np.abs(v0).max()) * (stop - start)
    if not turns < MOST_STEPS:
        raise _too_fast(dynamics.mech, command(start, q0, v0))
    times = np.linspace(start, stop, max(1, int(np.ceil(turns))) + 1)
    q, v, calls = q0, v0, count(1)
    for first, last in pairwise(times):
        q, v = _integrated(dynamics, command, load, q, v, first, last, rtol, atol, calls)
    return q, v


def _too_fast(plant: Mechanism, u: Vector) -> InconsistentError:
    """The error of a motion that asks for too many steps, with what may be the cause."""
    cause = "are the gains too high for the rate, or is the loop unstable?"
    if not u.any():
        cause = (
            "no motor acts on it: is it close to a singular configuration, has a body next to no "
            "inertia, or is a tick (1 / rate) too long?"
        )
    if plant.forces:
        cause += (
            f" Or are forces stiff ({listing(plant.force_names)}), such as friction with a small "
            "transition in joints with little inertia?"
        )
    return InconsistentError(
        f"{plant.name}: the motion is too fast to integrate ({MOST_STEPS} evaluations within one "
        f"tick); {cause}"
    )


def _integrated(
    dynamics: PreparedForwardDynamics, command: Controller, load: Load | None, q0: Vector,
    v0: Vector, start: float, stop: float, rtol: float, atol: float, calls: Iterator[int],
) -> tuple[Vector, Vector]:  # fmt: skip
    """One piece of a tick; `calls` counts the evaluations of all its pieces."""
    from scipy.integrate import solve_ivp

    plant = dynamics.mech
    model, nv = plant.model, plant.nv
    flat = model.nq == model.nv

    def derivative(t: float, x: Vector) -> Vector:
        d, v = x[:nv], x[nv:]
        q = pin.integrate(model, q0, d)
        u = command(t, q, v)
        if next(calls) > MOST_STEPS:
            raise _too_fast(plant, u)
        tau = plant.B @ u
        if load is not None:
            tau += load(float(t), q, v)
        a = dynamics.acceleration(q, v, tau, float(t))
        if not flat:  # v = D(d) d', the right Jacobian of the joint spaces
            D = pin.dIntegrate(model, q0, d, pin.ArgumentPosition.ARG1)
            v = np.linalg.solve(D, v)
        return np.concatenate([v, a])

    x0 = np.concatenate([np.zeros(nv), v0])
    end = solve_ivp(derivative, (start, stop), x0, rtol=rtol, atol=atol, first_step=stop - start)
    if not end.success:
        raise InconsistentError(f"{plant.name}: the integrator gave up: {end.message}")
    d, v = end.y[:nv, -1], end.y[nv:, -1]
    return pin.normalize(model, pin.integrate(model, q0, d)), v


def _closure(mech: Mechanism, part: Partition, q: Vector, v: Vector, t: float) -> float:
    """Largest scaled error; where geometry is rounded, that of the kept rows."""
    _, rows = constraint_rows(mech, q, v, t)
    off = np.abs(mech.row_scale * rows.error)
    if part.tolerance == 0.0:
        return largest(off)
    kept = off[part.rows]
    off[part.rows] = 0.0
    if not off.max(initial=0.0) <= part.tolerance:
        raise InconsistentError(
            f"{mech.name}: {mech.row_names[int(np.argmax(off))]} was left out as it repeats other "
            f"rows nearly, but it is open by {off.max():.1e} now, more than the tolerance of the "
            f"geometry, {part.tolerance:g}: it holds the mechanism after all",
            residual=float(off.max()),
        )
    return largest(kept)


def _versions() -> str:
    packages = ("holoctl", "pin", "numpy", "scipy")
    return " ".join(
        [f"python=={platform.python_version()}", *(f"{p}=={version(p)}" for p in packages)]
    )
