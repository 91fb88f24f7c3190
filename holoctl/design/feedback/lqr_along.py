"""The linear-quadratic regulator along a motion: gains that change with time.

    dx/dt = A(t) x + B(t) u,  held over ticks:   x+ = A_k x + B_k u
    K_k = (R_k + B_k' P_k+1 B_k)^-1 (B_k' P_k+1 A_k + N_k')        P_N = Qf
    P_k = the cost with K_k, which is at least zero whatever is rounded (riccati.py)

backwards from the end. x is taken against the motion itself (``along="motion"``). Linear models are
made at some instants, and taken linearly in between; the tick is exact.
Reference: docs/design.md, "Along a motion".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, positive, quiet, vector, whole
from holoctl.base.errors import InconsistentError, InputError, NotActuatedError
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
from holoctl.dynamics.tick.prepared_inverse import PreparedInverseDynamics
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition, check_partition
from holoctl.projector.partition import partition as decided

__all__ = ["lqr_along"]

MODEL_EVERY, MOST_MODELS = 0.01, 101  # s; a count
"""Along a motion linear models are made so often, and so many at most, unless told otherwise."""

AT_END = 1e-6  # 1/s, scaled
"""Where a motion ends, it rests: no faster than this, times 1 + its mean speed."""

FOLLOWS_DYNAMICS = 1e-4
"""A trajectory is a motion of its mechanism where the accelerations that its efforts cause miss its
own by this share of 1 + the largest."""


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

    x and u are taken against the trajectory and the efforts that go with it, which are computed
    here, for each tick: those in its middle, with the mean acceleration of the tick.

    Parameters
    ----------
    mech : Mechanism or Compiled
        Compiled with ``"forward_dynamics_derivatives"``: linear models are quick then.
    trajectory : Trajectory
        Of this mechanism. For motions that motors alone do not determine: anything else with a
        ``duration``, s, and ``state(t)``, which returns (q, v, a), closed, at any time within; it
        ends at rest.
    Q : (2n, 2n) or (2n,) array_like, number, or mapping of str to float
    R : (nu, nu) or (nu,) array_like, number, or mapping of str to float
        Weights, as `lqr` takes them.
    Qf : (2n, 2n) or (2n,) array_like, number, or mapping of str to float, optional
        Of the end. Default: where the end is an equilibrium what it costs to stay there for ever,
        so that the gains pass into those of `lqr` and hold the end afterwards; else Q. The result
        says which (`terminal`).
    dt : float, optional
        Tick of the controller, s; the last one may reach beyond the end.
    models : int, optional
        How many linear models are made, at equal times. Default: one every 10 ms, 101 at most.
    partition : Partition, optional
        Whose independent coordinates make x. Default: that of the trajectory.

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
        Without motors; where the end cannot be held (give Qf then).
    InconsistentError
        If the trajectory is not a motion that the motors can cause.
    SingularityError
        Where there is no linear model on the way.

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
    prepared = PreparedInverseDynamics(  # of motors that share motions mean accelerations disagree
        plant, part, inconsistent="project", closure_limit=None, velocity_limit=None
    )
    _check_rests(plant, trajectory, end)

    times = np.linspace(0.0, end, count)
    lins = [_model(mech, prepared, trajectory, t, part) for t in times.tolist()]
    last = _at_end(mech, prepared, trajectory, part)
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
    q, v, u = _followed(prepared, trajectory, dt, ticks, last.u)
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
    """(q, v, a) at an instant, of whatever a trajectory is.

    Raises
    ------
    InputError
        If they are not that.
    """
    found = trajectory.state(t)
    if not (isinstance(found, tuple) and len(found) == 3):
        raise InputError(f"trajectory: state({t:g}) must be (q, v, a); got {str(found)[:60]}")
    q, v, _ = check_state(mech, found[0], found[1], t, ("q of the state", "v of the state"))
    return q, v, vector("a of the state", found[2], mech.nv, "acceleration")


def _check_rests(mech: Mechanism, trajectory: Any, end: float) -> None:
    """Raise `InputError` for a motion that goes on at its end, where the law would hold it."""
    q, v, _ = _state(mech, trajectory, end)
    speed = largest(v / mech.column_scale)
    if speed > AT_END * (1.0 + distance(mech, _state(mech, trajectory, 0.0)[0], q) / end):
        i = int(np.argmax(np.abs(v / mech.column_scale)))
        raise InputError(
            f"trajectory: it must end at rest, for its end is held; at t = {end:g} s "
            f"{mech.coordinate_names[i]!r} moves by {v[i]:.3g} a second"
        )


def _model(
    mech: Mechanism | Compiled, prepared: PreparedInverseDynamics, trajectory: Any, t: float,
    part: Partition,
) -> Linearization:  # fmt: skip
    """The linear model at an instant of the motion, with the efforts that go with it."""
    q, v, a = _state(prepared.mech, trajectory, t)
    u = prepared.torque(q, v, prepared.mech.B.T @ a, t)
    lin = linearize(mech, q, v, u, t=t, partition=part, along="motion")
    n = len(lin.states) // 2
    unit = prepared.mech.column_scale[part.independent]
    missed = (lin.rate[n:] - a[part.independent]) / unit
    if largest(missed) > FOLLOWS_DYNAMICS * (1.0 + largest(a[part.independent] / unit)):
        i = int(np.argmax(np.abs(missed)))
        raise InconsistentError(
            f"{prepared.mech.name}: the trajectory is no motion that its motors can cause: at t = "
            f"{t:.4g} s {lin.states[i]!r} would accelerate by {lin.rate[n + i]:.4g}, not by "
            f"{a[part.independent[i]]:.4g}",
            residual=largest(missed),
        )
    return lin


def _at_end(
    mech: Mechanism | Compiled, prepared: PreparedInverseDynamics, trajectory: Any,
    part: Partition,
) -> Linearization:  # fmt: skip
    """The model at the end, where the mechanism rests."""
    q, rest = _state(prepared.mech, trajectory, trajectory.duration)[0], np.zeros(prepared.mech.nv)
    u = prepared.torque(q, rest, np.zeros(prepared.mech.nu), trajectory.duration)
    return linearize(mech, q, u=u, t=trajectory.duration, partition=part)


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
                f"the cost grows beyond floats {times[-1] - t:.3g} s before the end: motions "
                "that the motors do not move grow on the way"
            )
    gains[ticks] = gains[ticks - 1] if K_end is None else K_end
    return gains, P


def _followed(
    prepared: PreparedInverseDynamics, trajectory: Any, dt: float, ticks: int, u_end: Vector
) -> tuple[Array, Array, Array]:
    """States at all ticks, and the efforts held over each; at last those that hold the end."""
    mech, end = prepared.mech, trajectory.duration
    states = [_state(mech, trajectory, min(k * dt, end)) for k in range(ticks + 1)]
    q, v = np.array([s[0] for s in states]), np.array([s[1] for s in states])
    v[-1] = 0.0
    u = np.zeros((ticks + 1, mech.nu))
    u[-1] = u_end
    for k in range(ticks):
        t = (k + 0.5) * dt
        if t > end:
            u[k] = u_end
            continue
        middle = _state(mech, trajectory, t)
        mean = mech.B.T @ (v[k + 1] - v[k]) / dt
        u[k] = prepared.torque(middle[0], middle[1], mean, t)
    return q, v, u
