"""All idle motions at a closed configuration, independent of motors and sensors.

An idle motion exists at every configuration; at a singular one other motions may look like it. So
it is computed at configurations nearby too, and must continue as a finite motion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from holoctl.base.checks import Array, Vector, counted
from holoctl.base.errors import SingularityError
from holoctl.base.tolerances import RANK
from holoctl.closing.body_graph import Bodies, bodies_at
from holoctl.closing.idle.idle_motions import Idle, idle_motions, independent_spins
from holoctl.closing.lyapunov_schmidt import neighbourhood
from holoctl.closing.sampled_configurations import Sample, samples, still, tangent
from holoctl.closing.toleranced_rows import toleranced_rows
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["idle_basis"]

Held = Array | Callable[[Vector], Array]


def idle_basis(mech: Mechanism, q: Vector, t: float = 0.0, held: Held | None = None) -> Array:
    """An orthonormal basis of the idle motions at a closed configuration.

    An idle motion is the spin of a body about an axis of which joints to two other bodies, which
    are at rest, fix two separate points. It moves only that body and the parts of its joints.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array
        Closed. It may be singular.
    t : float, optional
        Time, s.
    held : (h, nv) array, or callable, optional
        Rows of rates by v that must be zero, such as those of sensors, in any unit; ``held(q)`` if
        they depend on the configuration. Motions with other rates are left out; bodies that they
        fix to each other count as one, such as a leg whose knee is measured. Default: none, so that
        neither motors nor sensors have an influence. Joints that only slide are always at rest.

    Returns
    -------
    (nv, i) array
        In scaled coordinates, ``d' = d / mech.column_scale``, in the kernel of the scaled Jacobian
        of all rows (with rounded geometry, to within ``mech.tolerance``).

    Raises
    ------
    SingularityError
        If q is singular, or a joint made of several is, and fewer motions are idle than nearby.
    """
    tolerance = 0.0 if toleranced_rows(mech, q, t) is None else mech.tolerance
    s = samples(mech, q, t, tolerance)
    places = [_held_bodies(mech, at, t, held) for at in s.generic]
    ranks = [still(p.at, p.held, T)[0] for p, T in zip(places, s.tangents, strict=True)]
    usual = [p for p, rank in zip(places, ranks, strict=True) if rank == max(ranks)]
    nearby = [p for p in usual if p.at is not s.here] or usual  # a joint may be singular here
    found = [p.idle(p.at.null) for p in nearby]
    lasting = [idle for group, idle in found[0].items() if all(group in others for others in found)]
    many = nearby[0].basis(lasting, t).shape[1]
    here = usual[0] if usual[0].at is s.here else _held_bodies(mech, s.here, t, held)
    motions = s.here.null
    if here is not usual[0]:
        n = neighbourhood(mech, q, t, rank=s.here.rank, tolerance=tolerance)
        motions = tangent(s.here, n)
    own = [x for x in here.idle(motions).values() if any(_same(x, y) for y in lasting)]
    basis = here.basis(own, t)
    if basis.shape[1] != many:
        raise SingularityError(
            f"{mech.name}: at this configuration {counted(basis.shape[1], 'motion')} can be "
            f"identified as idle, nearby {many}: it is singular, or a joint made of several "
            "is; move away from it"
        )
    return basis


def _same(here: Idle, nearby: Idle) -> bool:
    """Whether this spin also exists nearby; parts of its joints may happen to be at rest here."""
    return here.group <= nearby.group and not here.spinning.isdisjoint(nearby.spinning)


@dataclass(frozen=True, eq=False)
class _HeldBodies:
    at: Sample
    here: Bodies
    held: Array  # (h, nv), rows of length one by scaled velocities

    def idle(self, motions: Array) -> dict[frozenset[int], Idle]:
        resting = still(self.at, self.held, motions)[1]
        found = idle_motions(self.here, self.at, self.held, resting)
        return {
            group: replace(idle, basis=idle.basis[:, idle.apart], apart=idle.apart[idle.apart])
            for group, idle in found.items()
            if idle.apart.any()
        }

    def basis(self, spaces: list[Idle], t: float) -> Array:
        return independent_spins(self.here, self.at, spaces, t)[1]


def _held_bodies(mech: Mechanism, at: Sample, t: float, held: Held | None) -> _HeldBodies:
    here = bodies_at(mech, at, t)
    rows = [_of_length_one(_sliding(here))]
    if held is not None:
        rates = held(at.q) if callable(held) else held
        rows.append(_of_length_one(rates * mech.column_scale))
    return _HeldBodies(at, here, np.vstack(rows))


def _sliding(here: Bodies) -> Array:
    """(h, nv): the rates of joints that only slide. They are zero in every spin, so the two halves
    of a prismatic leg count as one rod."""
    slides = [e for e in here.edges if np.abs(e.free[3:]).max(initial=0.0) <= here.at_rest]
    rows = np.vstack([np.zeros((0, here.mech.nv)), *(e.free.T @ e.rates for e in slides)])
    return np.asarray(rows[np.linalg.norm(rows, axis=1) > here.at_rest])


def _of_length_one(rows: Array) -> Array:
    """Rows of length one, without those that are only rounding."""
    sizes = np.linalg.norm(rows, axis=1)
    not_rounding = sizes > RANK * sizes.max(initial=0.0)
    return np.asarray(rows[not_rounding] / sizes[not_rounding, None])
