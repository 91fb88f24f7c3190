"""The linear-quadratic regulator about an equilibrium, continuous or in ticks.

    min integral of x' Q x + u' R u        u = u0 - K (x - x0)

With ticks, u is held: model and cost are integrated over the tick (riccati.py), so that the cost
has the same meaning for every tick, and the gains tend to the continuous ones. Reference:
docs/design.md, "Regulators".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import (
    Array,
    known_name,
    listing,
    name_list,
    number,
    numbers,
    positive,
    quiet,
    quoted,
)
from holoctl.base.errors import InconsistentError, InputError, NotActuatedError
from holoctl.base.linalg import largest
from holoctl.design.feedback.riccati import TickModel, continuous, discrete, held
from holoctl.design.feedback.stabilisability import check_moved, check_seen, state_units
from holoctl.design.feedback.state_feedback import StateFeedback
from holoctl.design.linear.model import Linearization

__all__ = ["checked_weights", "lqr"]

WEIGHT_NEGATIVE, WEIGHT_SYMMETRIC = 1e-10, 1e-10
"""Weights may have a negative eigenvalue, or an asymmetry, of this share of the largest entry."""

COUPLED = 1e-7
"""States that are left out of a regulator may act on the others by this share of the largest entry
of A."""


@quiet
def lqr(
    lin: Linearization, Q: Any, R: Any, dt: float | None = None, *, ignore: Iterable[str] = ()
) -> StateFeedback:
    """The regulator of least ``integral x' Q x + u' R u`` about an equilibrium.

    x and u are deviations from the equilibrium. Weights follow from acceptable deviations:
    ``Q = 1 / x_max^2``, ``R = 1 / u_max^2``.

    Parameters
    ----------
    lin : Linearization
        About an equilibrium: ``hc.linearize(mech, eq.q, u=eq.u)``, eq by `equilibrium`.
        For a model in discrete time the cost is the sum over the ticks of ``x' Q x + u' R u``.
    Q : (2n, 2n) or (2n,) array_like, number, or mapping of str to float
        Weights of the states: a matrix, its diagonal, one for all, or by name (`lin.states`; those
        not named have none). At least zero.
    R : (nu, nu) or (nu,) array_like, number, or mapping of str to float
        Likewise of the motors' efforts; positive, so a mapping names all motors.
    dt : float, optional
        Tick, s, over which a controller holds its efforts: model and cost are integrated over it,
        exactly. Default: a continuous controller.
    ignore : iterable of str, optional
        Independent coordinates to leave out, such as an idle spin: they must not act on others, and
        get neither weight nor gain.

    Returns
    -------
    StateFeedback

    Raises
    ------
    InputError
        For wrong shapes and names, Q with a negative eigenvalue, R with one that is not positive, a
        motion that does not decay and has no weight in Q; for states to ignore that act on others.
    InconsistentError
        If `lin` is not about an equilibrium.
    NotActuatedError
        If there are no motors, or no motor moves a motion that does not decay by itself; the
        message names that motion.
    SingularityError
        If the Riccati equation cannot be solved.

    See Also
    --------
    lqr_along : along a motion.
    equilibrium : a point to hold.
    gains_for : gains of a `ComputedTorque`.
    results.StateFeedback : the law.

    References
    ----------
    docs/design.md, "Regulators".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> eq = hc.equilibrium(mech)
    >>> lin = hc.linearize(mech, eq.q, u=eq.u)
    >>> law = hc.lqr(lin, Q=[100.0, 100.0, 1.0, 1.0], R=0.1, dt=1e-3)
    >>> law.K.shape
    (2, 4)
    """
    if not isinstance(lin, Linearization):
        raise InputError(f"lin must be a Linearization (hc.linearize); got {type(lin).__name__}")
    if not lin.inputs:
        raise NotActuatedError(f"{lin.mech.name} has no motors, so there is no regulator")
    tick = _tick(lin, dt)
    _check_equilibrium(lin)
    Q, R = checked_weights(lin.states, lin.inputs, Q, R)
    kept = _kept(lin, name_list("ignore", ignore), Q)
    whole, Q = lin, Q[np.ix_(kept, kept)]
    if kept.size < len(lin.states):
        lin = _without(lin, kept)
    check_moved(lin)
    check_seen(lin, Q)
    unit = state_units(lin)  # scaled for accuracy: rad, time of the model, efforts of cost one
    effort = 1.0 / np.sqrt(R.diagonal())
    A, B = lin.A * (unit / unit[:, None]), lin.B / unit[:, None] * effort
    Q, R = unit[:, None] * Q * unit, effort[:, None] * R * effort
    if lin.dt is not None:
        found = discrete(TickModel(A, B, Q, R, np.zeros_like(B)))
    elif tick is not None:
        ticks = held(A, B, Q, R, tick)
        found = discrete(ticks)
        A, B = ticks.A, ticks.B
    else:
        found = continuous(A, B, Q, R)
    poles = np.asarray(np.linalg.eigvals(A - B @ found.K), dtype=complex)
    if tick is not None:
        poles = np.log(poles) / tick
    K, P = np.zeros((B.shape[1], len(whole.states))), np.zeros((len(whole.states),) * 2)
    K[:, kept] = effort[:, None] * found.K / unit
    P[np.ix_(kept, kept)] = found.P / unit / unit[:, None]
    return StateFeedback(
        whole.mech, whole.partition, K, whole.q, whole.v, whole.u, whole.states, whole.inputs,
        None, tick, poles[np.argsort(-poles.real)], P,
    )  # fmt: skip


def _tick(lin: Linearization, dt: float | None) -> float | None:
    if lin.dt is None:
        return None if dt is None else positive("dt", dt, "tick, s")
    if dt is not None:
        raise InputError(
            f"lin is in ticks of {lin.dt:g} s already; give no dt, or the continuous model with dt"
        )
    return lin.dt


def _check_equilibrium(lin: Linearization) -> None:
    if lin.at_equilibrium:
        return
    n = len(lin.states) // 2
    moving = lin.v.any()
    i = int(np.argmax(np.abs(lin.rate[:n]))) if moving else n + int(np.argmax(np.abs(lin.rate[n:])))
    raise InconsistentError(
        f"{lin.mech.name}: lin is not about an equilibrium: there {lin.states[i]!r} changes by "
        f"{lin.rate[i]:.3g} a {'second' if lin.dt is None else 'tick'} by itself. hc.equilibrium "
        "finds q, and the efforts u that hold it, for hc.linearize(mech, eq.q, u=eq.u); "
        "hc.lqr_along follows a motion",
        residual=largest(lin.rate),
    )


# ------------------------------------------------------------------------------------- the weights


def checked_weights(
    states: Sequence[str], inputs: Sequence[str], Q: Any, R: Any
) -> tuple[Array, Array]:
    """Q and R as symmetric matrices, Q positive semidefinite, R positive definite."""
    Q, R = weight_matrix("Q", Q, states, "state"), weight_matrix("R", R, inputs, "motor")
    if not _least(R) > WEIGHT_NEGATIVE:
        low = np.linalg.eigvalsh(R)
        raise InputError(
            "R must be positive definite: without a cost of all efforts there is no minimum; its "
            f"smallest eigenvalue is {low[0]:.3g}, the largest {low[-1]:.3g}; motors: "
            f"{listing(list(inputs))}"
        )
    return Q, R


def weight_matrix(name: str, given: Any, names: Sequence[str], what: str) -> Array:
    """Weights as a symmetric, positive semidefinite matrix."""
    n = len(names)
    if isinstance(given, Mapping):
        x = np.zeros(n)
        for key, value in given.items():
            x[list(names).index(known_name(key, names, what, name))] = number(
                f"{name}[{quoted(key)}]", value
            )
    else:
        x = numbers(name, given)
    shape: tuple[int, ...] = x.shape
    if shape in ((), (n,)):
        W = np.diag(np.broadcast_to(x, (n,)).astype(float))
    elif shape == (n, n):
        W = np.array(x, dtype=float)
    else:
        raise InputError(
            f"{name} must be a number, a diagonal ({n},), a matrix ({n}, {n}) or a mapping of "
            f"names; got shape {x.shape}; {what}s: {listing(list(names))}"
        )
    if not np.isfinite(W).all():
        raise InputError(f"{name} must be finite")
    if largest(W - W.T) > WEIGHT_SYMMETRIC * largest(W):
        raise InputError(f"{name} must be symmetric; it is not, by {largest(W - W.T):.3g}")
    W = 0.5 * (W + W.T)
    least = _least(W)
    if least < -WEIGHT_NEGATIVE:
        raise InputError(
            f"{name} must be positive semidefinite: it has an eigenvalue of "
            f"{np.linalg.eigvalsh(W)[0]:.3g}, so that a deviation would lower the cost"
        )
    return W


def _least(W: Array) -> float:
    """The smallest eigenvalue of weights scaled to the diagonal 1, so that it has no unit."""
    diagonal = W.diagonal()
    if (diagonal < 0.0).any() or W[diagonal == 0.0].any():  # indefinite in every scale
        return -1.0
    unit = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    return float(np.linalg.eigvalsh(W / unit / unit[:, None])[0])


# ------------------------------------------------------------------------------ states left out


def _kept(lin: Linearization, ignore: list[Any], Q: Array) -> NDArray[np.intp]:
    """Indices of the states that the regulator uses."""
    n = len(lin.states) // 2
    names = lin.states[:n]
    some = sorted({names.index(known_name(x, names, "coordinate", "ignore")) for x in ignore})
    out = np.array([*some, *(n + i for i in some)], dtype=np.intp)
    kept = np.setdiff1d(np.arange(2 * n), out)
    if not out.size:
        return kept
    if not kept.size:
        raise InputError("ignore: all coordinates are left out, so there is no regulator")
    unit = state_units(lin)
    A = lin.A * (unit / unit[:, None])
    acts = np.abs(A[np.ix_(kept, out)])
    if largest(acts) > COUPLED * largest(A):
        i, j = np.unravel_index(int(np.argmax(acts)), acts.shape)
        raise InputError(
            f"ignore: {lin.states[out[j]]!r} acts on {lin.states[kept[i]]!r}, so it cannot be left "
            "out"
        )
    if Q[:, out].any():
        raise InputError(
            f"ignore: Q has weights for {listing([lin.states[i] for i in out])}; set them to zero"
        )
    return kept


def _without(lin: Linearization, kept: NDArray[np.intp]) -> Linearization:
    """The model of the kept states; its `partition` has only their independent coordinates."""
    part = lin.partition
    ind = part.independent[kept[: kept.size // 2]]
    states = tuple(lin.states[i] for i in kept)
    some = replace(part, independent=ind)
    return replace(
        lin, A=lin.A[np.ix_(kept, kept)], B=lin.B[kept], rate=lin.rate[kept], C=lin.C[:, kept],
        gamma=lin.gamma[:, kept[: kept.size // 2]], states=states, partition=some,
    )  # fmt: skip
