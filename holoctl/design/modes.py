"""Modes: eigenvalues of a linear model, and what they mean in words.

lambda = -zeta w +- i w sqrt(1 - zeta^2)        in ticks of dt: z = exp(lambda dt)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eig

from holoctl.base.checks import listing, read_only
from holoctl.base.tolerances import NOT_MOVING, TAKES_PART

__all__ = ["Mode", "modes_of"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Mode:
    """One way in which a linear model moves by itself.

    Attributes
    ----------
    value : complex
        Eigenvalue, 1/s; of a pair the one with the positive imaginary part. Of a model in discrete
        time it is ``log(z) / dt``.
    frequency : float
        ``|value|``, rad/s: the natural frequency.
    damping : float
        ``-Re value / |value|``: 1 and more is no oscillation, negative grows. nan where the mode
        drifts.
    shape : (2n,) complex array
        Eigenvector, its largest entry 1.
    coordinates : tuple of str
        Those that take part most, first the one that does so most.
    """

    value: complex
    frequency: float
    damping: float
    shape: Complex
    coordinates: tuple[str, ...]

    @property
    def drifts(self) -> bool:
        """Whether it neither grows nor decays nor swings: nothing pulls it back."""
        return bool(np.isnan(self.damping))

    @property
    def stable(self) -> bool:
        """Whether it decays."""
        return self.damping > 0.0

    @property
    def sentence(self) -> str:
        """What it does."""
        of, at = listing(list(self.coordinates), 4), self.value
        if self.drifts:
            return f"drifts: nothing pulls {of} back"
        if at.imag == 0.0:
            how = "decays" if at.real < 0.0 else "falls away"
            return f"{how} by a factor of e in {1.0 / abs(at.real):.3g} s: {of}"
        hertz = at.imag / (2.0 * np.pi)
        text = f"swings at {hertz:.4g} Hz ({at.imag:.4g} rad/s), "
        if abs(self.damping) < NOT_MOVING:
            return f"{text}not damped: {of}"
        if self.damping > 0.0:
            return f"{text}damping ratio {self.damping:.2g}: {of}"
        return f"{text}and grows by a factor of e in {1.0 / at.real:.3g} s: {of}"

    def __repr__(self) -> str:
        return f"<Mode: {self.sentence}>"


def modes_of(A: Array, names: Sequence[str], dt: float | None) -> tuple[Mode, ...]:
    """The modes of A, whose states are n coordinates and their n rates."""
    values, left, right = cast(tuple[Complex, Complex, Complex], eig(A, left=True))
    if dt is not None:
        with np.errstate(divide="ignore"):
            values = np.log(values.astype(complex)) / dt
    still = NOT_MOVING * max(1.0, float(np.abs(values[np.isfinite(values)]).max(initial=0.0)))
    n, found = len(names), []
    for i in np.argsort(np.abs(values), kind="stable"):
        at = complex(values[i])
        if at.imag < 0.0 and abs(at) > still:
            continue  # the other one of a pair
        drifts = abs(at) <= still
        part = np.abs(left[:, i] * right[:, i])
        part = np.abs(right[:n, i]) if drifts and right[:n, i].any() else part[:n] + part[n:]
        order = np.argsort(-part, kind="stable")
        taking = [k for k in order if part[k] >= TAKES_PART * part[order[0]]]
        x = right[:, i]
        found.append(
            Mode(
                0j if drifts else at, abs(at), float("nan") if drifts else -at.real / abs(at),
                read_only(x / x[np.argmax(np.abs(x))]), tuple(names[k] for k in taking),
            )
        )  # fmt: skip
    return tuple(found)
