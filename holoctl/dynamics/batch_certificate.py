"""The certificates of many solutions, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from holoctl.base.checks import Array, counted, read_only
from holoctl.base.errors import InconsistentError
from holoctl.base.html_table import Cells, html_table
from holoctl.base.renamed import former_names
from holoctl.dynamics.certificate import Certificate, limit

__all__ = ["MEASURES", "BatchCertificate", "certificates", "measures_of"]


MEASURES = ("closure", "velocity_residual", "acceleration", "dynamics", "redundant")
"""The residuals of each state, in the order of tables."""


@former_names(velocity_residual="velocity")
@dataclass(frozen=True, eq=False, repr=False)
class BatchCertificate:
    """The residuals of `Certificate` at each of N states; all pure numbers.

    The same numbers up to rounding, with the same tolerances, but without the power balance and the
    condition number: the guard of compiled laws detects nearly singular matrices, and where it does
    not pass the certificate is that of the Python path.

    Attributes
    ----------
    closure, velocity_residual, acceleration, dynamics, redundant : (N,) arrays
        As in `Certificate`; read-only.
    tolerance : float
        Largest `redundant`, `closure` and `velocity_residual` with rounded geometry; else 0.

    See Also
    --------
    results.Certificate : the residuals of one state.
    results.Compiled : its functions of many states return it.

    Examples
    --------
    >>> import numpy as np, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> fast = hc.compile(mech, ["inverse_dynamics"], machine="vm")
    >>> q, v = hc.assemble(mech)
    >>> states = np.tile(q, (3, 1)), np.tile(v, (3, 1))
    >>> u, certificate = fast.inverse_dynamics_batch(*states, np.zeros((3, 2)), certificate=True)
    >>> certificate.ok.tolist()
    [True, True, True]
    """

    closure: Array
    velocity_residual: Array
    acceleration: Array
    dynamics: Array
    redundant: Array
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        for name in MEASURES:
            own = np.array(getattr(self, name), dtype=float)  # a copy
            object.__setattr__(self, name, read_only(own))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:  # pickled arrays are writable
        return BatchCertificate, tuple(getattr(self, f.name) for f in fields(self))

    def __len__(self) -> int:
        return self.closure.size

    @property
    def ok(self) -> NDArray[np.bool_]:
        """(N,) whether every number of a state is within its tolerance."""
        good = np.ones(len(self), dtype=bool)
        for name in MEASURES:
            good &= self._within(name)
        return good

    @property
    def failures(self) -> tuple[str, ...]:
        """The names of the numbers that exceed their tolerance at some state."""
        return tuple(name for name in MEASURES if not self._within(name).all())

    def _within(self, name: str) -> NDArray[np.bool_]:
        within: NDArray[np.bool_] = getattr(self, name) <= limit(name, self.tolerance)
        return within  # nan is not within

    def __repr__(self) -> str:
        states = counted(len(self), "state")
        bad = int(np.count_nonzero(~self.ok))
        if not bad:
            return f"<BatchCertificate of {states}: certified>"
        return (
            f"<BatchCertificate of {states}: NOT certified at {bad} ({', '.join(self.failures)})>"
        )

    def _repr_html_(self) -> str:
        return html_table(self, lambda: _parts(self))

    def raise_if_bad(self) -> BatchCertificate:
        """This certificate, or an error that names the states and numbers beyond their tolerance.

        Raises
        ------
        InconsistentError
            If it is not `ok` at every state; ``residual`` is the largest number that is too large.
        """
        if not self.failures:
            return self
        bad, excesses, sizes = np.flatnonzero(~self.ok), [], []
        for name in self.failures:
            off = np.where(self._within(name), -np.inf, getattr(self, name))
            i = int(np.argmax(off))  # the first nan, if there is one
            sizes.append(float(off[i]))
            most = limit(name, self.tolerance)
            excesses.append(f"{name} is {off[i]:.1e} at state {i} (at most {most:.0e})")
        first = ", ".join(map(str, bad[:8])) + (", ..." if bad.size > 8 else "")
        raise InconsistentError(
            f"{counted(bad.size, 'state')} of a batch of {len(self)} NOT certified ({first}): "
            f"{'; '.join(excesses)}. The `certificate` of one of these states has more details",
            residual=max(sizes),
        )


def _parts(c: BatchCertificate) -> Iterator[Cells]:
    """The lines of a table in a notebook: the largest of each number, and its state."""
    if not len(c):
        return
    yield "", "at most", "at state", "may be"
    for name in MEASURES:
        i = int(np.argmax(x := getattr(c, name)))  # the first nan, if there is one
        yield name, f"{x[i]:.1e}", i, f"{limit(name, c.tolerance):.0e}"


def certificates(numbers: Array, tolerance: float) -> BatchCertificate:
    """A certificate from the numbers (N, 5) of many states, in the order of `MEASURES`."""
    closure, velocity, acceleration, dynamics, redundant = numbers.T
    return BatchCertificate(closure, velocity, acceleration, dynamics, redundant, tolerance)


def measures_of(certificate: Certificate) -> Array:
    """(5,) the numbers of one state, in the order of `MEASURES`."""
    return np.array([getattr(certificate, name) for name in MEASURES])
