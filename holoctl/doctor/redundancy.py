"""Redundant rows, and the rows that they follow from.

Rows are kept greedily in their order, not by the size of pivots, so that the result hardly depends
on the configuration. Groups of dependent rows are connected components of the graph between
redundant rows and the kept rows that they follow from; they depend on no basis.
Reference: docs/doctor.md, "How rows are judged".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from holoctl.base.checks import Indices, Mask, Vector
from holoctl.base.linalg import largest, least_squares
from holoctl.closing.lyapunov_schmidt import around, neighbourhood
from holoctl.closing.rank import first_independent, scaled_jacobian
from holoctl.closing.sampled_configurations import Sample, Samples
from holoctl.closing.toleranced_rows import KeptRows, independence
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Redundancy", "RowGroup", "redundancy"]

REPEATS = 1e-6  # scaled
"""A row depends on another if its coefficient is larger than this (scaled)."""

LEAST_INDEPENDENCE = 0.1
"""Rows are kept in their order, also for rounded geometry, unless their smallest singular value is
less than this fraction of that of the rows chosen for rounded geometry."""

WEAK_ROWS = 5e-3
"""A combination of rows is weak if its singular value is smaller."""

VIOLATED, NEEDED_REACH = 1e-11, 0.03  # scaled
"""A row left out is needed if its scaled error grows beyond the first number after steps of the
second in each direction."""


@dataclass(frozen=True)
class RowGroup:
    """A group of rows that depend on each other.

    Attributes
    ----------
    kind : str
        ``"trivial"``: a row that holds by itself. ``"duplicate"``: rows that repeat one row.
        ``"combination"``: rows that follow from several others together.
    redundant : tuple of str
        The rows that may be left out.
    among : tuple of str
        The rows that they follow from.

    See Also
    --------
    mobility : reports them.
    results.MobilityReport : the report.

    Examples
    --------
    >>> import holoctl as hc
    >>> report = hc.mobility(hc.load(hc.robot_file("four_bar")))
    >>> [(group.kind, group.redundant) for group in report.redundancy.groups]
    [('trivial', ('pin.z',)), ('trivial', ('pin.ry',)), ('trivial', ('pin.rx',))]
    """

    kind: str
    redundant: tuple[str, ...]
    among: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Redundancy:
    """Redundant, weak and essential rows; the fields are those of `MobilityReport`, and:

    Attributes
    ----------
    kept : int array
        Independent rows that all others follow from.
    """

    kept: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    redundant: tuple[str, ...] = ()
    latent: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    groups: tuple[RowGroup, ...] = ()
    weak: tuple[str, ...] = ()
    strength: float = float("inf")


def redundancy(mech: Mechanism, s: Samples, t: float, meant: KeptRows | None = None) -> Redundancy:
    """Judge all rows at configurations of the generic rank; `meant` are the rows that determine the
    motion if the geometry is rounded."""
    m, names = mech.row_scale.size, mech.row_names
    kept = _kept(s)
    if meant is not None and meant.rank == s.generic_rank:
        places = [at.G for at in s.generic]
        if independence(places, kept) < min(LEAST_INDEPENDENCE, independence(places, meant.rows)):
            kept = meant.rows  # weak kept rows would amplify the rounding errors of the others
    left = np.setdiff1d(np.arange(m), kept)
    redundant = _harmless(mech, s, kept, left, t)
    latent = np.setdiff1d(left, redundant)
    follows = np.zeros((redundant.size, kept.size), dtype=bool)
    for at in s.generic:
        if redundant.size and kept.size:
            C = np.linalg.lstsq(at.G[kept].T, at.G[redundant].T, rcond=None)[0]
            follows |= np.abs(C.T) > max(REPEATS, at.tolerance)
    used = follows.any(axis=0)
    return Redundancy(
        kept,
        tuple(names[i] for i in redundant),
        tuple(names[i] for i in latent),
        tuple(names[i] for i in kept[~used]),
        _groups(names, kept, redundant, follows),
        _weak(names, s),
        float(s.generic[0].values[s.generic_rank - 1]) if s.generic_rank else float("inf"),
    )


def _weak(names: tuple[str, ...], s: Samples) -> tuple[str, ...]:
    """The rows of the active singular values that are small at every sample."""
    count = min(int(np.count_nonzero(at.values[: at.rank] < WEAK_ROWS)) for at in s.generic)
    if count == 0:
        return ()
    at = s.generic[0]
    u = np.linalg.svd(at.G, full_matrices=False)[0][:, at.rank - count : at.rank]
    part = np.linalg.norm(u, axis=1)
    return tuple(names[i] for i in np.flatnonzero(part > 0.3 * part.max()))


def _kept(s: Samples) -> Indices:
    """Independent rows, as many as the generic rank. If the rank is lower at this configuration,
    first the rows that are active here, then the strongest of the others nearby."""
    places = [at.G for at in s.generic]
    if any(at is s.here for at in s.generic):
        return first_independent(places, s.generic_rank)
    kept = first_independent([s.here.G, *places], min(s.here.rank, s.generic_rank))
    bases = [np.linalg.qr(G[kept].T)[0].T for G in places]
    while kept.size < s.generic_rank:
        rests = [G - (G @ basis.T) @ basis for G, basis in zip(places, bases, strict=True)]
        strength = np.min([np.linalg.norm(rest, axis=1) for rest in rests], axis=0)
        strength[kept] = 0.0
        first = int(np.flatnonzero(strength > 0.5 * strength.max())[0])
        kept = np.append(kept, first)
        bases = [
            np.vstack([basis, rest[first] / np.linalg.norm(rest[first])])
            for basis, rest in zip(bases, rests, strict=True)
        ]
    return np.sort(kept)


def _harmless(mech: Mechanism, s: Samples, kept: Indices, left: Indices, t: float) -> Indices:
    """The rows left out that stay satisfied while only the kept rows are closed.

    If the rank is lower at every reachable configuration, as in a stretched bar, a row without
    first-order effect may stop a motion; and if paths cross, it may close one of them. Such needed
    rows are found one at a time, in order, because two of them may stop the same motion. A needed
    row that later ones make unnecessary is removed again.
    """
    if left.size == 0:
        return left
    places = [s.here, *(at for at in s.generic if at is not s.here)]
    needed: list[int] = []
    most = max(VIOLATED, s.here.tolerance)
    while True:
        error = _open(mech, places, np.sort([*kept, *needed]).astype(np.intp), t)
        violated = [i for i in left.tolist() if i not in needed and error[i] > most]
        if not violated:
            break
        needed.append(violated[0])
    for i in needed[:-1]:
        others = [j for j in needed if j != i]
        error = _open(mech, places, np.sort([*kept, *others]).astype(np.intp), t)
        if not any(error[j] > most for j in left.tolist() if j not in others):
            needed = others
    return np.array([i for i in left.tolist() if i not in needed], dtype=np.intp)


def _open(mech: Mechanism, places: list[Sample], held: Indices, t: float) -> Vector:
    """The largest scaled errors (m,) of rows around these configurations while the held rows are
    closed."""
    error = np.zeros(mech.row_scale.size)
    weak = largest(places[0].values[places[0].rank :])
    for at in places:
        n = neighbourhood(mech, at.q, t, held, weak=weak, tolerance=at.tolerance)
        for place in around(n, count=5, reach=NEEDED_REACH):
            G, opened = scaled_jacobian(mech, place.x, t)
            # the held rows are closed to rounding, which the rows that follow from them multiply
            follows = least_squares(G[held].T, G.T)
            opened = np.abs(opened) / np.maximum(np.abs(follows).sum(axis=0), 1.0)
            error = np.maximum(error, opened - 2.0 * weak * float(np.linalg.norm(place.y)))
    return error


def _groups(
    names: tuple[str, ...], kept: Indices, redundant: Indices, follows: Mask
) -> tuple[RowGroup, ...]:
    r, k = follows.shape
    if r == 0:
        return ()
    graph = np.zeros((r + k, r + k), dtype=bool)
    graph[:r, r:] = follows
    _, component = connected_components(csr_array(graph), directed=False)
    found = []
    for c in dict.fromkeys(component[:r].tolist()):
        mine = [names[i] for i in redundant[component[:r] == c]]
        among = [names[i] for i in kept[component[r:] == c]]
        kind = ("trivial", "duplicate", "combination")[min(len(among), 2)]
        found.append(RowGroup(kind, tuple(mine), tuple(among)))
    return tuple(found)
