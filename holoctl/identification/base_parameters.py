"""Base parameters: the combinations of parameters that motions can tell apart.

    W p = W1 (p1 + K p2)        W2 = W1 K

W are the equations of many closed states, p1 independent parameters, p2 the others. The rank is the
number of singular values of W, columns scaled to norm 1, before their largest gap.
Source: M. Gautier, Numerical calculation of the base inertial parameters of robots (QR and SVD).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holoctl.base.checks import Array, Vector, counted, freeze, quiet, vector, whole
from holoctl.base.errors import InputError, SingularityError
from holoctl.base.linalg import pivoted_qr, singular_values
from holoctl.closing.assembly import assemble
from holoctl.identification.closed_samples import closed_samples
from holoctl.identification.parameters import Parameters, parameter_rows
from holoctl.mechanism.checks import check_configuration
from holoctl.projector.partition import partition

__all__ = ["BaseParameters", "base_parameters", "check_parameters", "equilibrated", "gap_rank"]

DECIDED = 1e3
"""The smallest gap of the singular values for which the rank is decided, if there is one only."""

NO_INFLUENCE = 1e-10
"""A column whose norm is below this times the largest is zero."""

ROUNDING = 1e-14
"""Singular values of a random matrix of this size are not below this times the largest."""

CLOSED_TO = 1e-7
"""States are closed to rounding, times their condition number. So singular values below this times
the largest may be zero, and gaps among them leave no doubt."""

MASS_LAST = 0.1
"""Masses are chosen as independent only where nothing else serves: their columns count by this
factor in the choice. So combinations read like ``crank.mx + 0.2 coupler.m``."""

COEFFICIENT = 1e-7
"""Coefficients of combinations below this are rounding."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """The result of `base_parameters`: which combinations of parameters have an influence.

    Attributes
    ----------
    model : Parameters
    rank : int
        The number b of combinations that can be told apart.
    gap : float
        The ratio of the last singular value that counts to the next one.
    decided : bool
        Whether the gap is at least 1e3, and no other gap is; otherwise the rank is uncertain.
    independent : tuple of b str
        A parameter for each combination.
    matrix : (b, p) array
        The base parameters of p are ``matrix @ p``.
    expressions : tuple of b str
        Each combination, such as ``"crank.Izz + 0.04 coupler.m"``.
    unseen : tuple of str
        Parameters without any influence on the efforts of motors.
    singular_values : (p,) array
        Of the equations, columns scaled to norm 1.

    See Also
    --------
    base_parameters : returns it.

    Examples
    --------
    >>> import holoctl as hc
    >>> base = hc.base_parameters(hc.Parameters(hc.load(hc.robot_file("four_bar"))))
    >>> base.rank, base.decided
    (8, True)
    """

    model: Parameters
    rank: int
    gap: float
    decided: bool
    independent: tuple[str, ...]
    matrix: Array
    expressions: tuple[str, ...]
    unseen: tuple[str, ...]
    singular_values: Vector

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        sure = "" if self.decided else ", undecided"
        return (
            f"<BaseParameters of {self.model.mech.name!r}: {self.rank} of "
            f"{counted(len(self.model.names), 'parameter')} (gap {self.gap:.1e}{sure})>"
        )

    def __str__(self) -> str:
        lines = [repr(self)[1:-1], *(f"  {x}" for x in self.expressions)]
        if self.unseen:
            lines.append("without influence: " + ", ".join(self.unseen))
        return "\n".join(lines)

    def of(self, p: Any) -> Vector:
        """The base parameters (b,) of parameters p (p,), in the order of ``model.names``."""
        found: Vector = self.matrix @ vector("p", p, len(self.model.names))
        return found


@quiet
def base_parameters(
    model: Parameters, start: Any = None, *, samples: int = 0, seed: int = 0
) -> BaseParameters:
    """The combinations of parameters that motions on the branch of `start` can tell apart.

    Evaluates the equations at random closed states: a walk on the manifold from `start`, within the
    position limits of the mechanism.

    Parameters
    ----------
    model : Parameters
    start : (nq,) array_like, optional
        A closed configuration. Default: assembled from ``mech.reference``.
    samples : int, optional
        The number of states. Default: enough for four equations for each parameter.
    seed : int, optional
        Of the random states.

    Returns
    -------
    BaseParameters

    Raises
    ------
    InputError
        For a configuration of a wrong shape, and a number of samples below 1.
    SingularityError
        If the walk ends early, so there are too few states: at a singular start, or limits that
        leave no motion.

    See Also
    --------
    Parameters : what may be unknown.
    identify : their values.

    References
    ----------
    M. Gautier, Numerical calculation of the base inertial parameters of robots, 1991.

    Examples
    --------
    >>> import holoctl as hc
    >>> base = hc.base_parameters(hc.Parameters(hc.load(hc.robot_file("four_bar"))))
    >>> base.rank, base.decided
    (8, True)
    """
    check_parameters(model)
    mech, p = model.mech, len(model.names)
    q = assemble(mech)[0] if start is None else check_configuration(mech, start, "start")
    part = partition(mech, q)
    rows = max(1, part.k if hasattr(part, "k") else mech.nv - part.rank)
    wanted = whole("samples", samples, 1) if samples else max(20, -(-4 * p // rows))
    found = [
        parameter_rows(model, P, a)[0]
        for P, a in closed_samples(mech, part, q, wanted, np.random.default_rng(seed), slow=True)
    ]
    if sum(map(len, found)) < p and len(found) < wanted:
        raise SingularityError(
            f"{mech.name}: only {counted(len(found), 'closed state')} of {wanted} found around the "
            "start: it is close to a singular configuration, or the position limits leave no "
            "motion; give another start"
        )
    return base_of(model, np.vstack(found))


def base_of(model: Parameters, W: Array) -> BaseParameters:
    """The base parameters of given equations W (n, p)."""
    norms, seen = equilibrated(W)
    s = singular_values(W[:, seen] / norms[seen])
    rank, gap, decided = gap_rank(s, W.shape)
    norms = norms / np.where([x.endswith(".m") for x in model.names], MASS_LAST, 1.0)
    qr = pivoted_qr(W[:, seen] / norms[seen], rank)
    first, rest = qr.pivots[:rank], qr.pivots[rank:]
    order = np.argsort(first)
    K = qr.solve_r1(qr.r2)[order] if rest.size else np.zeros((rank, 0))
    at, others = np.flatnonzero(seen)[first[order]], np.flatnonzero(seen)[rest]
    K = K * norms[others] / norms[at][:, None]
    matrix = np.zeros((rank, len(model.names)))
    matrix[range(rank), at] = 1.0
    small = np.abs(K) * norms[at][:, None] < COEFFICIENT * norms[others]
    matrix[:, others] = np.where(small, 0.0, K)
    names = model.names
    return BaseParameters(
        model, rank, gap, decided, tuple(names[i] for i in at), matrix,
        tuple(_expression(names, i, row) for i, row in zip(at, matrix, strict=True)),
        tuple(names[i] for i in np.flatnonzero(~seen)), s,
    )  # fmt: skip


def equilibrated(W: Array) -> tuple[Vector, Any]:
    """The norms of the columns, and which of them are not zero."""
    norms = np.linalg.norm(W, axis=0)
    return norms, norms > NO_INFLUENCE * norms.max(initial=1.0)


def gap_rank(s: Vector, shape: tuple[int, ...]) -> tuple[int, float, bool]:
    """The rank by the largest gap of singular values in descending order, the gap, and whether that
    decides it: two large gaps leave two ranks."""
    if s.size == 0:
        return 0, np.inf, True
    floor = ROUNDING * s[0] * max(shape) ** 0.5
    kept = np.append(np.maximum(s, floor), floor)
    ratio = kept[:-1] / kept[1:]
    rank = 1 + int(ratio.argmax())
    large = (ratio >= DECIDED) & (kept[:-1] > CLOSED_TO * s[0])
    return rank, float(ratio[rank - 1]), bool(np.count_nonzero(large) == 1)


def _expression(names: tuple[str, ...], first: int, row: Vector) -> str:
    """A combination in words: the independent parameter, then others, with coefficients."""
    found = names[first]
    for i in np.flatnonzero(row):
        if i != first:
            size = "" if abs(abs(row[i]) - 1.0) < COEFFICIENT else f"{abs(row[i]):.4g} "
            found += f" {'+' if row[i] > 0 else '-'} {size}{names[i]}"
    return found


def check_parameters(model: Any) -> None:
    """Raise `InputError` for anything but Parameters."""
    if not isinstance(model, Parameters):
        raise InputError(
            f"expected Parameters; got {type(model).__name__}: hc.Parameters(mech, ...) makes them"
        )
