"""Gains of computed torque for a bandwidth and a damping ratio, and the damping that ticks leave.

    e'' + kd e' + kp e = 0        kp = bandwidth^2,  kd = 2 damping bandwidth

holds without delay. Efforts that are held over a tick, and states that are measured late, reduce
the damping. The reduction is computed from the poles of the sampled loop (sampled_loop.py), and
stability is checked again with the linear model in place of double integrators. Reference:
docs/design.md, "Gains and ticks".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import expm

from holoctl.base.checks import (
    Array,
    Vector,
    listing,
    number,
    numbers,
    positive,
    quiet,
    read_only,
    unpickled,
)
from holoctl.base.errors import InputError, LimitError, NotActuatedError
from holoctl.base.linalg import in_range, least_squares
from holoctl.base.renamed import former_names
from holoctl.base.tolerances import TAKES_PART
from holoctl.design.feedback.sampled_loop import damping_left, largest_bandwidth, late
from holoctl.design.linear.model import Linearization, held_over
from holoctl.mechanism.mechanism import workspace
from holoctl.mechanism.open_tree import inertia
from holoctl.tree.kinematics import kinematics

__all__ = ["Gains", "gains_for", "law_of", "sampled_model"]

DELAY_TICKS = 40
"""A continuous loop with delay on a model is approximated by a sampled one with this number of
ticks in the delay."""

HARDLY_LATE = 1e-3
"""The delay is neglected if its product with the fastest pole is smaller."""

LARGEST_OF_LOOP = 1e50
"""Largest bandwidth, damping, rate and delay of a loop, in SI units; the smallest is its inverse.
Their powers are then in the range of floats."""

MOST_TICKS_LATE = 200
"""Largest delay of a loop, in ticks."""

LOOP_UNSTABLE = 1e-6
"""A pole of the loop on a model that is outside the unit circle by more grows; by less, it
drifts."""


@former_names(frequency="rate")
@dataclass(frozen=True, eq=False)
class Gains:
    """Gains for `ComputedTorque`, and the damping that the loop has with them, from `gains_for`.

    Attributes
    ----------
    kp, kd : (nu,) arrays
        1/s^2 and 1/s, for ``hc.ComputedTorque(mech, kp, kd)``.
    bandwidth, damping : (nu,) arrays
        The requested values: rad/s, and a ratio.
    damping_left : (nu,) array
        The damping ratio of the sampled loop: the smallest of its poles, without those that decay
        more than twice as fast as requested. In a continuous loop without delay it is the requested
        ratio, at most 1.
    largest_bandwidth : (nu,) array
        The loop with that damping is stable up to this bandwidth, rad/s; inf for a continuous loop
        without delay.
    frequency : float or None
        Ticks per second; None: continuous.
    delay : float
        Delay of the loop, s.
    names : tuple of nu str
        Names of the motors.

    See Also
    --------
    gains_for : returns it.
    ComputedTorque : takes kp and kd.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> eq = hc.equilibrium(mech)
    >>> gains = hc.gains_for(hc.linearize(mech, eq.q, u=eq.u), bandwidth=60.0, frequency=1000.0)
    >>> gains.kp.tolist(), gains.kd.tolist()
    ([3600.0, 3600.0], [120.0, 120.0])
    """

    kp: Vector
    kd: Vector
    bandwidth: Vector
    damping: Vector
    damping_left: Vector
    largest_bandwidth: Vector
    frequency: float | None
    delay: float
    names: tuple[str, ...]

    __setstate__ = unpickled

    def __repr__(self) -> str:
        when = "continuous" if self.frequency is None else f"{self.frequency:g} Hz"
        late = f", delay {self.delay:g} s" if self.delay else ""
        return (
            f"<Gains: bandwidth {_range(self.bandwidth)} rad/s (limit "
            f"{_range(self.largest_bandwidth)}), damping ratio {_range(self.damping)} "
            f"({_range(self.damping_left)} with sampling and delay); {when}{late}>"
        )


def _range(x: Vector) -> str:
    low, high = float(x.min()), float(x.max())
    return f"{low:.3g}" if f"{low:.3g}" == f"{high:.3g}" else f"{low:.3g} to {high:.3g}"


@former_names(frequency="rate")
@quiet
def gains_for(
    lin: Linearization, bandwidth: Any, damping: Any = 1.0, frequency: float | None = None,
    delay: float = 0.0,
) -> Gains:  # fmt: skip
    """Gains of `ComputedTorque` for a bandwidth and a damping ratio, and the damping they leave.

    The loop is that of one double integrator for each motor, the result of the inverse dynamics,
    with efforts held over a tick and states measured `delay` ago. The analysis is exact for whole
    ticks and parts of them. If `lin` is at an equilibrium, stability is also checked for the loop
    around the model itself: its motion between ticks, and the motions that no motor moves.

    Parameters
    ----------
    lin : Linearization
        In continuous time.
    bandwidth : float or (nu,) array_like
        Natural frequency of the error, rad/s: kp = bandwidth^2.
    damping : float or (nu,) array_like, optional
        Damping ratio: kd = 2 damping bandwidth.
    frequency : float, optional
        Ticks per second. Default: a continuous controller.
    delay : float, optional
        Time from the state to the effort that is computed from it, s: of sensors, bus and computer.

    Returns
    -------
    Gains

    Raises
    ------
    InputError
        For wrong shapes, numbers that are not above zero, a model in discrete time, more than 200
        ticks of delay.
    LimitError
        If the loop with these gains is not stable: the message states the largest bandwidth and the
        motors by name; or, around the model, the coordinates that diverge.
    NotActuatedError
        If there are no motors.

    See Also
    --------
    ComputedTorque : takes the gains.
    linearize : the linear model.
    lqr : gains of least cost.

    References
    ----------
    docs/design.md, "Gains and ticks".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> eq = hc.equilibrium(mech)
    >>> gains = hc.gains_for(hc.linearize(mech, eq.q, u=eq.u), 60.0, 0.7, 1000.0, delay=1e-3)
    >>> gains.damping_left.round(2).tolist()
    [0.7, 0.7]
    >>> ctl = hc.ComputedTorque(mech, gains.kp, gains.kd)
    """
    if not isinstance(lin, Linearization):
        raise InputError(f"lin must be a Linearization (hc.linearize); got {type(lin).__name__}")
    if lin.dt is not None:
        raise InputError(
            f"lin is in ticks of {lin.dt:g} s; give the continuous model and "
            f"frequency={1 / lin.dt:g}"
        )
    names = lin.inputs
    if not names:
        raise NotActuatedError(f"{lin.mech.name} has no motors, so there are no gains")
    wanted, ratio = _each("bandwidth", bandwidth, names), _each("damping", damping, names)
    rate = None if frequency is None else positive("frequency", frequency, "ticks per s")
    delay = number("delay", delay, "s")
    if delay < 0.0:
        raise InputError(f"delay must not be negative, s; got {delay:g}")
    if rate is not None and delay * rate > MOST_TICKS_LATE:
        raise InputError(
            f"a delay of {delay:g} s is {delay * rate:.3g} ticks of {1.0 / rate:g} s, more than "
            f"{MOST_TICKS_LATE}; is it in ms? If not, give frequency=None: so short a tick is "
            "negligible"
        )
    for name, given in (
        ("bandwidth", wanted),
        ("damping", ratio),
        ("frequency", rate),
        ("delay", delay),
    ):
        _check_range(name, given)
    pairs = list(zip(wanted.tolist(), ratio.tolist(), strict=True))
    most = {z: largest_bandwidth(z, rate, delay) for z in set(ratio.tolist())}
    left = [damping_left(w, z, rate, delay) for w, z in pairs]
    found = Gains(
        read_only(wanted**2), read_only(2.0 * ratio * wanted), read_only(wanted),
        read_only(ratio), read_only(np.array(left)),
        read_only(np.array([most[z] for z in ratio.tolist()])), rate, delay, names,
    )  # fmt: skip
    _check_stable(found)
    if lin.at_equilibrium and not lin.v.any():
        _check_on_model(lin, found)
    return found


def _check_range(name: str, given: Any) -> None:
    """Raise `InputError` for numbers whose powers leave the range of floats."""
    x = np.abs(np.atleast_1d(np.asarray(0.0 if given is None else given, dtype=float)))
    if not ((x == 0.0) | ((x >= 1.0 / LARGEST_OF_LOOP) & (x <= LARGEST_OF_LOOP))).all():
        raise InputError(
            f"{name} must be between {1.0 / LARGEST_OF_LOOP:g} and {LARGEST_OF_LOOP:g}; got {given}"
        )


def _each(name: str, value: Any, names: tuple[str, ...]) -> Vector:
    x = numbers(name, value)
    if x.shape not in ((), (len(names),)):
        raise InputError(
            f"{name} must be a number, or one for each motor, shape ({len(names)},); got {x.shape}"
        )
    if not ((x > 0.0) & (x * x < np.inf)).all():
        raise InputError(
            f"{name} must be above zero, its square finite; got {x if x.ndim else float(x)}"
        )
    return np.broadcast_to(x, (len(names),)).astype(float)


def _check_stable(g: Gains) -> None:
    bad = np.flatnonzero(~((g.damping_left > 0.0) & (g.bandwidth <= g.largest_bandwidth)))
    if not bad.size:
        return
    i = int(bad[0])
    late_by = f" and measured {g.delay:g} s late" if g.delay else ""
    held = (
        "in a continuous loop"
        if g.frequency is None
        else f"held over ticks of {1.0 / g.frequency:g} s"
    )
    raise LimitError(
        f"with a bandwidth of {g.bandwidth[i]:g} rad/s and damping {g.damping[i]:g} the loop of "
        f"{g.names[i]!r} is not stable, {held}{late_by}: with this damping the largest bandwidth "
        f"is {g.largest_bandwidth[i]:.4g} rad/s. Take well below half of it, a higher rate, or "
        "less delay",
        names=[g.names[k] for k in bad],
    )  # fmt: skip


# ------------------------------------------------------------------------- the loop on the model


def _check_on_model(lin: Linearization, g: Gains) -> None:
    """Raise `LimitError` if the loop around the model is unstable.

    Motions that drift or oscillate undamped and that no motor moves are accepted.
    """
    K, rate, delay = law_of(lin, g), g.frequency, g.delay
    if rate is None:
        values, vectors = np.linalg.eig(lin.A - lin.B @ K)
        fastest = max(1.0, float(np.abs(values).max()))
        if delay * fastest > HARDLY_LATE:  # short ticks, whose hold adds a delay of half a tick
            rate = DELAY_TICKS / delay
            delay -= 0.5 / rate
        else:
            values = np.exp(values / fastest)
    if rate is not None:
        values, vectors = np.linalg.eig(in_range(sampled_model(lin, K, rate, delay)))
    worst = int(np.argmax(np.abs(values)))
    if np.abs(values[worst]) <= 1.0 + LOOP_UNSTABLE:
        return
    n = len(lin.states) // 2
    part = np.abs(vectors[:n, worst]) + np.abs(vectors[n : 2 * n, worst])
    order = np.argsort(-part, kind="stable")
    names = [lin.states[k] for k in order if part[k] >= TAKES_PART * part[order[0]]]
    why = "its own motion between two ticks is too fast for this rate"
    if lin.partition.actuation_rank < n:
        why = f"motions that no motor drives fall away under this law (or {why})"
    by = f", by a factor of {np.abs(values[worst]):.4g} a tick" if g.frequency is not None else ""
    raise LimitError(
        f"{lin.mech.name}: computed torque with these gains does not hold this equilibrium: "
        f"the motion of {listing(names, 4)} diverges{by}: {why}; hc.lqr stabilises every motion "
        "that the motors can",
        names=names,
    )


def law_of(lin: Linearization, g: Gains) -> Array:
    """K of computed torque, u = u0 - K dx: the motors then have the accelerations of its error
    equation. Friction is compensated at the reference, so it adds no feedback."""
    A, B, n = lin.A, lin.B, len(lin.states) // 2
    T = lin.mech.B.T @ lin.gamma  # rates of the motors
    rates = A[n:, n:] - _by_friction(lin)
    wanted = np.hstack([T @ A[n:, :n] + g.kp[:, None] * T, T @ rates + g.kd[:, None] * T])
    return least_squares(T @ B[n:], wanted)


def _by_friction(lin: Linearization) -> Array:
    """The part of ``d ydd / d yd`` due to friction."""
    mech, gamma = lin.mech, lin.gamma
    forces = [force for force in mech.bound_forces if force.friction]
    if not forces:
        return np.zeros((gamma.shape[1],) * 2)
    kin = kinematics(mech.model, workspace(mech), lin.q, lin.v, lin.t)
    F_v = sum((force.by_velocity(kin) for force in forces), np.zeros((mech.nv, mech.nv)))
    M = inertia(mech, lin.q)
    return np.asarray(np.linalg.solve(gamma.T @ M @ gamma, gamma.T @ F_v @ gamma), dtype=float)


def sampled_model(lin: Linearization, K: Array, rate: float, delay: float) -> Array:
    """The matrix that maps (z_k, u_k-1, ..., u_k-m-1) to the next tick: see sampled_loop.py."""
    by, (n, nu) = late(rate, delay), lin.B.shape
    step, m = expm(lin.A / rate), by.whole + 1
    on, now = held_over(lin.A, lin.B, by.b)
    first = on @ held_over(lin.A, lin.B, by.a)[1]
    S = np.zeros((n + m * nu,) * 2)
    S[:n, :n] = step
    S[n : n + nu, :n] = -K
    S[n + nu :, n : n + (m - 1) * nu] = np.eye((m - 1) * nu)
    S[:n, n + (m - 1) * nu :] = first
    if by.whole:
        S[:n, n + (m - 2) * nu : n + (m - 1) * nu] += now
    else:
        S[:n, :n] -= now @ K
    return S
