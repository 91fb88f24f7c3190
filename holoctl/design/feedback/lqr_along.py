"""The linear-quadratic regulator along a motion: gains that change with time.

    dx/dt = A(t) x + B(t) u,  held over ticks:   x+ = A_k x + B_k u
    K_k = (R_k + B_k' P_k+1 B_k)^-1 (B_k' P_k+1 A_k + N_k')        P_N = Qf
    P_k = the cost with K_k, positive semidefinite in spite of rounding (riccati.py)

backwards from the end. x is the deviation from the motion (``along="motion"``). Linear models are
made at some instants and interpolated linearly; the discretisation of a tick is exact.
Reference: docs/design.md, "Along a motion".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, positive, quiet, vector, whole
from holoctl.base.errors import (
    InconsistentError,
    InputError,
    NotActuatedError,
    SingularityError,
)
from holoctl.base.linalg import largest
from holoctl.base.tolerances import MOST_TICKS
from holoctl.closing.least_squares import distance
from holoctl.codegen.compiled.compiled import Compiled
from holoctl.design.feedback.lqr import checked_weights, weight_matrix
from holoctl.design.feedback.riccati import backward, discrete, held
from holoctl.design.feedback.stabilisability import check_moved, check_seen
from holoctl.design.feedback.state_feedback import StateFeedback
from holoctl.design.linear.linearize import linearize
from holoctl.design.linear.model import Linearization
from holoctl.design.paths.trajectory import Trajectory
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_motors, check_partition
from holoctl.projector.partition import partition as decided

__all__ = ["lqr_along"]

MODEL_EVERY = 0.01  # s
"""Default interval between linear models along a motion."""

MOST_MODELS = 101
"""Default largest number of linear models along a motion."""

AT_END = 1e-6  # 1/s, scaled
"""A motion ends at rest if its last velocity is below this times (1 + its mean speed)."""

JUMPS = 0.02
"""Accelerations jump within a tick if their mean differs from that of Simpson's rule by this share
of (1 + the acceleration)."""

BESIDE = 1e-7
"""Distance from a singularity, as a share of the duration, at which efforts there are computed."""

FOLLOWS_DYNAMICS = 1e-4
"""A trajectory is a motion of its mechanism if the accelerations under its efforts differ from its
own by less than this share of (1 + the largest acceleration)."""


@quiet
def lqr_along(
    mech: Mechanism | Compiled,
    trajectory: Trajectory | Any,
    Q: Any,
    R: Any,
    *,
    Qf: Any = None,
    dt: float = 1e-3,
    models: int | None = None,
    partition: Partition | None = None,
) -> StateFeedback:
    """The regulator of least ``integral x' Q x + u' R u + x(end)' Qf x(end)`` along a motion.

    x and u are deviations from the trajectory and from its efforts. These efforts are computed here
    for each tick, in the middle of the tick with its mean acceleration. For a motion that crosses a
    type-2 singularity, close to which a small error of it is a large effort, the acceleration is
    that in the middle, except where accelerations jump within the tick.

    Parameters
    ----------
    mech : Mechanism or Compiled
        With ``"forward_dynamics_derivatives"`` compiled, linear models are computed faster.
    trajectory : Trajectory
        A motion of this mechanism that ends at rest. For motions that motors alone do not
        determine: any object with a ``duration``, s, and a method ``state(t)`` that returns a
        closed (q, v, a) at any time within the duration.
    Q : (2n, 2n) or (2n,) array_like, number, or mapping of str to float
    R : (nu, nu) or (nu,) array_like, number, or mapping of str to float
        Weights, as `lqr` takes them.
    Qf : (2n, 2n) or (2n,) array_like, number, or mapping of str to float, optional
        Weights at the end. Default: if the end is an equilibrium, the cost P of `lqr` there, so
        that the gains end in those of `lqr` and hold the end afterwards; else Q. The result states
        which (`terminal`).
    dt : float, optional
        Tick of the controller, s; the last one may end after the motion.
    models : int, optional
        Number of linear models, at equal intervals. Default: one every 10 ms, at most 101.
    partition : Partition, optional
        Its independent coordinates make x. Default: that of the trajectory.

    Returns
    -------
    StateFeedback
        Its time t counts from the start of the motion.

    Raises
    ------
    InputError
        For wrong shapes and names, weights as in `lqr`, a trajectory of other coordinates, or one
        that does not end at rest.
    NotActuatedError
        If there are no motors, or the end cannot be held (give Qf then).
    InconsistentError
        If the trajectory is not a motion that the motors can cause.
    SingularityError
        If there is no linear model at an instant of the motion.

    See Also
    --------
    lqr : about an equilibrium.
    Trajectory : a motion to follow.
    retime : makes the fastest one.

    References
    ----------
    docs/design.md, "Along a motion".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> here = mech.motor_positions(hc.assemble(mech)[0])
    >>> there = hc.Trajectory.through(mech, [here, here + 0.2], [0.0, 0.1])
    >>> law = hc.lqr_along(mech, there, Q=[100.0, 100.0, 1.0, 1.0], R=0.1, models=5)
    >>> law.terminal
    'regulator'
    """
    plant = mech.mech if isinstance(mech, Compiled) else mech
    check_mechanism(plant)
    if plant.nu == 0:
        raise NotActuatedError(f"{plant.name} has no motors, so there is no regulator")
    _check_trajectory(plant, trajectory)
    dt, end = positive("dt", dt, "tick, s"), positive("duration", trajectory.duration, "s")
    ticks = np.ceil(end / dt * (1.0 - np.finfo(float).eps * 4))
    if ticks > MOST_TICKS:
        raise InputError(f"{end:g} s in ticks of {dt:g} s are {ticks:.3g} ticks, too many")
    ticks, count = int(ticks), min(MOST_MODELS - 1.0, np.ceil(end / MODEL_EVERY)) + 1.0
    count = max(int(count), 2) if models is None else whole("models", models, 2)
    if count > MOST_TICKS:
        raise InputError(f"models must be at most {MOST_TICKS}; got {count}")
    part = getattr(trajectory, "partition", None) if partition is None else partition
    if part is None:
        part = decided(plant, _state(plant, trajectory, 0.0)[0])
    check_partition(plant, part)
    check_motors(plant, part)
    _check_rests(plant, trajectory, end)

    times = np.linspace(0.0, end, count)
    lins = [_model(mech, trajectory, t, part) for t in times.tolist()]
    last = _at_end(mech, trajectory, part)
    Q, R = checked_weights(last.states, last.inputs, Q, R)
    terminal = "given"
    if Qf is not None:
        P, K_end = weight_matrix("Qf", Qf, last.states, "state"), None
    elif last.at_equilibrium:
        check_moved(last)
        check_seen(last, Q)
        terminal, found = "regulator", discrete(held(last.A, last.B, Q, R, dt))
        P, K_end = found.P, found.K
    else:
        terminal, P, K_end = "Q", Q, None
    gains, cost = _backwards(times, lins, Q, R, P, K_end, dt, ticks)
    q, v, u = _followed(plant, part, trajectory, dt, ticks, last.u)
    return StateFeedback(
        plant, part, gains, q, v, u, last.states, last.inputs, dt * np.arange(ticks + 1.0), dt,
        P=cost, terminal=terminal,
    )  # fmt: skip


def _check_trajectory(mech: Mechanism, trajectory: Any) -> None:
    if not (hasattr(trajectory, "duration") and callable(getattr(trajectory, "state", None))):
        raise InputError(
            "trajectory must be a Trajectory, or have a duration and a function state(t) -> "
            f"(q, v, a); got {type(trajectory).__name__}"
        )
    if isinstance(trajectory, Trajectory) and (
        trajectory.mech.coordinate_names != mech.coordinate_names
    ):
        raise InputError(
            f"trajectory is one of {trajectory.mech.name!r}, whose coordinates are not those of "
            f"{mech.name!r}"
        )


def _state(mech: Mechanism, trajectory: Any, t: float) -> tuple[Vector, Vector, Vector]:
    """(q, v, a) of a trajectory at an instant.

    Raises
    ------
    InputError
        If ``state(t)`` returns anything else.
    """
    found = trajectory.state(t)
    if not (isinstance(found, tuple) and len(found) == 3):
        raise InputError(f"trajectory: state({t:g}) must be (q, v, a); got {str(found)[:60]}")
    q, v, _ = check_state(mech, found[0], found[1], t, ("q of the state", "v of the state"))
    return q, v, vector("a of the state", found[2], mech.nv, "acceleration")


def _check_rests(mech: Mechanism, trajectory: Any, end: float) -> None:
    """Raise `InputError` if a motion does not end at rest."""
    q, v, _ = _state(mech, trajectory, end)
    speed = largest(v / mech.column_scale)
    if speed > AT_END * (1.0 + distance(mech, _state(mech, trajectory, 0.0)[0], q) / end):
        i = int(np.argmax(np.abs(v / mech.column_scale)))
        raise InputError(
            f"trajectory: it must end at rest, as its end is held; at t = {end:g} s the rate of "
            f"{mech.coordinate_names[i]!r} is {v[i]:.3g} (rad/s or m/s)"
        )


def _efforts(mech: Mechanism, part: Partition, q: Vector, v: Vector, a: Vector, t: float) -> Vector:
    """The efforts for an acceleration of all coordinates."""
    found = inverse_dynamics(
        mech, q, v, a, coordinates="all", inconsistent="project", t=t, partition=part
    )
    return found.u


def _efforts_at(mech: Mechanism, part: Partition, trajectory: Any, t: float) -> Vector:
    """The efforts of the motion at an instant; next to a singularity on it, the mean of both
    sides."""
    try:
        return _efforts(mech, part, *_state(mech, trajectory, t), t)
    except SingularityError:
        away = BESIDE * float(trajectory.duration)
        if not away < t < trajectory.duration - away:
            raise
    sides = (_efforts(mech, part, *_state(mech, trajectory, x), x) for x in (t - away, t + away))
    return np.asarray(0.5 * sum(sides))


def _model(mech: Mechanism | Compiled, trajectory: Any, t: float, part: Partition) -> Linearization:
    """The linear model at an instant of the motion, under the efforts of the motion."""
    plant = mech.mech if isinstance(mech, Compiled) else mech
    (q, v, a), u = _state(plant, trajectory, t), _efforts_at(plant, part, trajectory, t)
    lin = linearize(mech, q, v, u, t=t, partition=part, along="motion")
    n = len(lin.states) // 2
    unit = plant.column_scale[part.independent]
    missed = (lin.rate[n:] - a[part.independent]) / unit
    if largest(missed) > FOLLOWS_DYNAMICS * (1.0 + largest(a[part.independent] / unit)):
        i = int(np.argmax(np.abs(missed)))
        raise InconsistentError(
            f"{plant.name}: the motors cannot cause the motion of the trajectory: at t = "
            f"{t:.4g} s the acceleration of {lin.states[i]!r} would be {lin.rate[n + i]:.4g}, not "
            f"{a[part.independent[i]]:.4g}",
            residual=largest(missed),
        )
    return lin


def _at_end(mech: Mechanism | Compiled, trajectory: Any, part: Partition) -> Linearization:
    """The linear model at the end, at rest."""
    plant, end = mech.mech if isinstance(mech, Compiled) else mech, trajectory.duration
    q, rest = _state(plant, trajectory, end)[0], np.zeros(plant.nv)
    u = _efforts(plant, part, q, rest, rest, end)
    return linearize(mech, q, u=u, t=end, partition=part)


def _backwards(
    times: Vector, lins: list[Linearization], Q: Array, R: Array, P: Array, K_end: Array | None,
    dt: float, ticks: int,
) -> tuple[Array, Array]:  # fmt: skip
    """Gains at the start of each tick and at the end, and the cost at the start."""
    A, B = np.array([lin.A for lin in lins]), np.array([lin.B for lin in lins])
    gains = np.zeros((ticks + 1, R.shape[0], Q.shape[0]))
    for k in range(ticks - 1, -1, -1):
        t = min((k + 0.5) * dt, float(times[-1]))
        i = min(int(np.searchsorted(times, t, side="right")) - 1, len(lins) - 2)
        part = (t - times[i]) / (times[i + 1] - times[i])
        here = [X[i] + part * (X[i + 1] - X[i]) for X in (A, B)]
        try:
            gains[k], P = backward(held(here[0], here[1], Q, R, dt), P)
        except np.linalg.LinAlgError:
            P = np.full_like(P, np.nan)
        if not np.isfinite(P).all():
            raise InconsistentError(
                f"the cost exceeds the range of floats {times[-1] - t:.3g} s before the end: "
                "motions that the motors do not move are unstable along the trajectory"
            )
    gains[ticks] = gains[ticks - 1] if K_end is None else K_end
    return gains, P


def _followed(
    mech: Mechanism, part: Partition, trajectory: Any, dt: float, ticks: int, u_end: Vector
) -> tuple[Array, Array, Array]:
    """States at all ticks, and the efforts held over each; the last efforts hold the end. For an
    ordinary motion they are those of the mean acceleration, with which velocities agree at the end
    of each tick."""
    end, crosses = trajectory.duration, bool(getattr(trajectory, "type_2_at", ()))
    states = [_state(mech, trajectory, min(k * dt, end)) for k in range(ticks + 1)]
    q, v, a = (np.array([s[i] for s in states]) for i in range(3))
    v[-1] = 0.0
    u = np.zeros((ticks + 1, mech.nu))
    u[-1] = u_end
    for k in range(ticks):
        t = (k + 0.5) * dt
        if t > end:
            u[k] = u_end
            continue
        there = _state(mech, trajectory, t)
        mean, smooth = (v[k + 1] - v[k]) / dt, (a[k] + 4.0 * there[2] + a[k + 1]) / 6.0
        jump = largest((mean - smooth) / mech.column_scale)
        jumps = jump > JUMPS * (1.0 + largest(mean / mech.column_scale)) or k == ticks - 1
        if jumps or not crosses:
            u[k] = _efforts(mech, part, there[0], there[1], mean, t)
        else:
            u[k] = _efforts_at(mech, part, trajectory, t)
    return q, v, u
