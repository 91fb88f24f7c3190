"""Modes: eigenvalues of a linear model, and sentences that describe them.

lambda = -zeta w +- i w sqrt(1 - zeta^2)        in ticks of dt: z = exp(lambda dt)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eig

from holoctl.base.checks import Array, Vector, listing, made_again, quiet, read_only
from holoctl.base.tolerances import NOT_DAMPED, TAKES_PART

__all__ = ["Mode", "modes_of"]

OF_MODEL = 1e-9
"""Assumed error of the accelerations of a linear model, as a share of the largest derivative by the
same state (at least 1): eigenvalues that this error may move to zero are reported as zero."""

ROUNDED_STEP = 1e-15
"""Assumed rounding of the entries of a model in discrete time, as a share of themselves or of 1."""

CRITICAL = 1e-3
"""A pair of eigenvalues may be a double real one if its imaginary part is below this share:
rounding splits a double eigenvalue into a pair."""

LEAST_SPEED = 1e-12  # rad/s
"""Slower eigenvalues are scaled with this speed, and smaller products of eigenvectors count as
this."""


Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Mode:
    """A mode of a linear model: eigenvalue, frequency, damping and shape.

    Attributes
    ----------
    value : complex
        Eigenvalue, 1/s; of a pair the one with the positive imaginary part. For a model in discrete
        time ``log(z) / dt``: oscillations of more than 1 / (2 dt) Hz appear slower.
    frequency : float
        ``|value|``, rad/s: the natural frequency.
    damping : float
        ``-Re value / |value|``: a mode with 1 or more does not oscillate, one with a negative ratio
        grows. nan for a mode that drifts.
    shape : (2n,) complex array
        Eigenvector with largest entry 1.
    coordinates : tuple of str
        The coordinates with the largest parts in the mode, the largest first.

    See Also
    --------
    results.Linearization : has the modes.
    linearize : the linear model.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> hanging = hc.equilibrium(mech, [-1.2, 0.5, 0.0], u=[0.0])
    >>> mode = hc.linearize(mech, hanging.q).modes()[0]
    >>> round(mode.frequency, 2), mode.coordinates
    (9.28, ('crank',))
    """

    value: complex
    frequency: float
    damping: float
    shape: Complex
    coordinates: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", read_only(np.array(self.shape, dtype=complex)))

    @property
    def drifts(self) -> bool:
        """Whether the mode neither grows nor decays nor oscillates: its eigenvalue is zero."""
        return bool(np.isnan(self.damping))

    @property
    def stable(self) -> bool:
        """Whether the mode decays, however slowly, by more than rounding."""
        return self.damping >= NOT_DAMPED

    @property
    def sentence(self) -> str:
        """A description of the motion of the mode, with its coordinates."""
        of, at = listing(list(self.coordinates), 4), self.value
        if self.drifts:
            return f"drifts (no restoring force): {of}"
        if not np.isfinite(at):
            return f"decays within a tick: {of}"
        if at.imag == 0.0:
            how = "decays" if at.real < 0.0 else "diverges"
            return f"{how} by a factor of e in {1.0 / abs(at.real):.3g} s: {of}"
        hertz = at.imag / (2.0 * np.pi)
        text = f"oscillates at {hertz:.4g} Hz ({at.imag:.4g} rad/s), "
        if abs(self.damping) < NOT_DAMPED:
            return f"{text}not damped: {of}"
        if self.damping > 0.0:
            return f"{text}damping ratio {self.damping:.2g}: {of}"
        return f"{text}and grows by a factor of e in {1.0 / at.real:.3g} s: {of}"

    def __reduce__(self) -> tuple[Any, ...]:  # a pickled array forgets that it is read-only
        return made_again, (type(self), {f.name: getattr(self, f.name) for f in fields(self)})

    def __repr__(self) -> str:
        return f"<Mode: {self.sentence}>"


@quiet
def modes_of(A: Array, names: Sequence[str], scale: Vector, dt: float | None) -> tuple[Mode, ...]:
    """The modes of A, whose states are n coordinates, each in the unit `scale`, and their rates."""
    n = len(names)
    values, left, right = cast(tuple[Complex, Complex, Complex], eig(A, left=True))
    unsure = _uncertainty(A, values, left, right, dt)
    if dt is not None:
        values = np.where(np.abs(values) > ROUNDED_STEP * np.abs(A).max(initial=0.0), values, 0.0)
        values = np.log(values.astype(complex)) / dt
    found = []
    for i in sorted(
        range(len(values)), key=lambda i: (float(f"{abs(values[i]):.9g}"), -values[i].real)
    ):
        at, x = complex(values[i]), right[:, i]
        deadbeat = not np.isfinite(at)
        drifts = not deadbeat and abs(at) <= unsure[i]
        if deadbeat or drifts:
            at = complex(-np.inf) if deadbeat else 0j
        elif abs(at.imag) <= min(unsure[i], CRITICAL * abs(at)):
            at = complex(at.real)  # a double real eigenvalue, split by rounding
        elif at.imag < 0.0:
            continue  # the conjugate one is reported
        part = np.abs(left[:, i] * x)
        part = np.abs(x[:n]) / scale if drifts and x[:n].any() else part[:n] + part[n:]
        part = np.round(part / part.max(), 6)
        order = np.argsort(-part, kind="stable")
        taking = [k for k in order if part[k] >= TAKES_PART]
        found.append(
            Mode(
                at, abs(at), float("nan") if drifts else _damping(at),
                x / x[np.argmax(np.abs(x))], tuple(names[k] for k in taking),
            )
        )  # fmt: skip
    return tuple(found)


def _damping(at: complex) -> float:
    return 1.0 if not np.isfinite(at) else -at.real / abs(at)


def _uncertainty(
    A: Array, values: Complex, left: Complex, right: Complex, dt: float | None
) -> Vector:
    r"""Largest changes of the eigenvalues (continuous time) by an error E of the model.

    A simple eigenvalue changes by ``|w|' E |x| / |w' x|``, to first order; a pair that meets by no
    more than ``sqrt(s |w|' E |x| / (|w| |x|))``, with rates in the unit s = \|lambda\|. The smaller
    of the two is returned.
    """
    n, tick = len(A) // 2, dt or 1.0
    E = np.zeros_like(A)
    E[n:] = OF_MODEL * np.maximum(1.0, np.abs(A[n:]).max(0, initial=0.0) / tick)
    speeds = np.abs(values)
    if dt is not None:
        E = tick * E + ROUNDED_STEP * np.maximum(1.0, np.abs(A))
        E[:n] += 0.5 * tick * E[n:]
        speeds = np.abs(np.log(values.astype(complex))) / tick
    s = np.clip(speeds, LEAST_SPEED, 1.0 / LEAST_SPEED)
    w, x = np.abs(left), np.abs(right)
    moves = np.einsum("ik,ij,jk->k", w, E, x) / tick
    share = np.abs(np.einsum("ik,ik->k", left.conj(), right))
    if dt is not None:
        share = share * np.abs(values)
    x[n:] /= s
    w[n:] *= s
    apart = moves / np.maximum(share, LEAST_SPEED)
    meeting = np.sqrt(s * moves / (np.linalg.norm(w, axis=0) * np.linalg.norm(x, axis=0)))
    least: Vector = np.minimum(apart, meeting)
    return least
