"""Measurements of a motion: times, positions of measured joints, and motor efforts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import counted, freeze, numbers
from holoctl.base.errors import InputError

__all__ = ["Measurements"]


@dataclass(frozen=True, eq=False)
class Measurements:
    """A measured motion.

    Parameters
    ----------
    t : (n,) array_like
        Times, s, increasing.
    positions : (n, m) array_like
        Of the measured joints, rad or m, in the order of `measured`.
    efforts : (n, nu) array_like
        Of the motors, N m or N, in the order of u.
    measured : iterable of str, optional
        As in `ClosedStateEstimator`. Default: the motors.

    Raises
    ------
    InputError
        For shapes that do not fit, numbers that are not finite, and times that do not increase.

    See Also
    --------
    regression : the equations along them.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> hc.Measurements(t, np.sin(t)[:, None], np.cos(t)[:, None])
    <Measurements: 101 samples in 1 s, 1 measured joint, 1 motor>
    """

    t: Any
    positions: Any
    efforts: Any
    measured: Any = None

    def __post_init__(self) -> None:
        t = numbers("Measurements: t", self.t)
        for what in ("positions", "efforts"):
            x = numbers(f"Measurements: {what}", getattr(self, what))
            x = x[:, None] if x.ndim == 1 else x
            if x.ndim != 2 or len(x) != t.size:
                raise InputError(
                    f"Measurements: {what} must have a row for each of {t.size} times; "
                    f"got shape {x.shape}"
                )
            object.__setattr__(self, what, x)
        if t.ndim != 1 or t.size < 2 or not (np.diff(t) > 0.0).all():
            raise InputError("Measurements: t must be increasing times, at least 2")
        object.__setattr__(self, "t", t)
        freeze(self)

    def __repr__(self) -> str:
        return (
            f"<Measurements: {counted(self.t.size, 'sample')} in {np.ptp(self.t):.4g} s, "
            f"{counted(self.positions.shape[1], 'measured joint')}, "
            f"{counted(self.efforts.shape[1], 'motor')}>"
        )
