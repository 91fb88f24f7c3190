"""The motions of a mechanism: locked joints, idle motions, motions that no motor drives.

All quantities are in scaled coordinates, at the configurations of the samples.
Reference: docs/doctor.md, "Motions".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array
from holoctl.base.linalg import pivoted_qr
from holoctl.base.tolerances import IDLE_NEW
from holoctl.closing.body_graph import Bodies, bodies_at
from holoctl.closing.idle.idle_motions import idle_motions, independent_spins
from holoctl.closing.sampled_configurations import Samples
from holoctl.doctor.actuation import actuation, motor_rows, verdict
from holoctl.doctor.locked_joints import locked_joints
from holoctl.mechanism.coupled_motors import coupled_motors
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.open_tree import nonlinear_efforts

__all__ = ["Motion", "Motions", "described", "motions", "without"]

GRAVITY_WORKS = 1e-6
"""Gravity loads a motion if its power is more than this fraction of the total weight times the size
of the motion."""


@dataclass(frozen=True)
class Motion:
    """A motion, described by the rates of its coordinates.

    Attributes
    ----------
    rates : tuple of (str, float)
        Coordinates and their rates, rad/s or m/s: the first one has rate 1, the others are sorted
        with the largest first (lengths in units of the size of their loop).
    loaded : bool
        Whether gravity loads it at the configuration of the report.
    bodies : tuple of str
        For an idle motion: the bodies that move.

    See Also
    --------
    mobility : reports motions that no motor drives.
    results.MobilityReport : the report.

    Examples
    --------
    >>> import dataclasses, holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> one_motor = dataclasses.replace(mech, actuated=["motor_left"], limits=None)
    >>> [motion] = hc.mobility(one_motor).motions.undriven
    >>> motion.rates[0][0], motion.loaded
    ('elbow_right', True)
    """

    rates: tuple[tuple[str, float], ...]
    loaded: bool
    bodies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Motions:
    """Locked joints, motions and actuation; the fields are those of `MobilityReport`, and:

    Attributes
    ----------
    idle : tuple of Motion
        Motions that no motor drives and that move bodies between two others and nothing else:
        the spin of a rod between two ball joints.
    coupled : tuple of str
        Motors that add no motion, because couplings tie their joints to those of other motors.
    """

    locked_joints: tuple[str, ...] = ()
    idle: tuple[Motion, ...] = ()
    undriven: tuple[Motion, ...] = ()
    actuation_rank: int = 0
    generic_actuation_rank: int = 0
    actuation: str = "unknown"
    coupled: tuple[str, ...] = ()

    @property
    def idle_names(self) -> tuple[str, ...]:
        """For each idle motion the bodies that make it, joined by plus signs."""
        return tuple(" + ".join(motion.bodies) for motion in self.idle)


def motions(mech: Mechanism, s: Samples, t: float) -> Motions:
    """The motions of a mechanism; idle motions are those at all samples."""
    reports = [actuation(mech, at, T) for at, T in zip(s.generic, s.tangents, strict=True)]
    rank = max(one.rank for one in reports)
    usual = [(at, one) for at, one in zip(s.generic, reports, strict=True) if one.rank == rank]
    # idle motions are searched among all instantaneous motions, which are exact
    found = [
        idle_motions(
            bodies_at(mech, at, t), at, motor_rows(mech), actuation(mech, at, at.null).undriven
        )
        for at, _ in usual
    ]
    lasting = set.intersection(*(set(groups) for groups in found))
    at, driven = usual[0]
    here = bodies_at(mech, at, t)
    spins, basis = independent_spins(here, at, [found[0][group] for group in lasting], t)
    idle = [
        replace(motion, bodies=here.names(spin.spinning))
        for spin in spins
        for motion in described(here, spin.basis)
    ]
    return Motions(
        locked_joints(mech, s, t),
        tuple(idle),
        described(here, without(driven.undriven, basis)) if mech.nu else (),
        actuation(mech, s.here, s.here.null).rank,
        rank,
        verdict(mech.nu, rank, s.finite_dof - len(idle)),
        coupled_motors(mech),
    )


def without(space: Array, known: Array) -> Array:
    """An orthonormal basis of `space` without the directions of `known`."""
    rest = space - known @ (known.T @ space)
    u, s, _ = np.linalg.svd(rest, full_matrices=False)
    return u[:, s > IDLE_NEW]


def described(here: Bodies, space: Array) -> tuple[Motion, ...]:
    """Motions by coordinates; each has one coordinate with rate 1 that no other motion moves."""
    mech = here.mech
    gravity = mech.column_scale * nonlinear_efforts(mech, here.q, np.zeros(mech.nv))
    weight = pin.computeTotalMass(mech.model) * np.linalg.norm(mech.model.gravity.linear)
    if space.shape[1] == 0:
        return ()
    qr = pivoted_qr(space.T, space.shape[1])
    own = qr.pivots[: space.shape[1]]
    basis = np.linalg.solve(space[own].T, space.T)  # rows: motions
    found = []
    for i, x in sorted(zip(own.tolist(), basis, strict=True), key=lambda motion: motion[0]):
        rates = x * mech.column_scale / mech.column_scale[i]
        parts = np.flatnonzero(np.abs(x) > 1e-9 * np.abs(x).max())
        order = sorted(parts.tolist(), key=lambda j: (j != i, -abs(x[j])))
        named = tuple((mech.coordinate_names[j], float(rates[j])) for j in order)
        heavy = abs(gravity @ x) > GRAVITY_WORKS * weight * here.size * np.abs(x).max()
        found.append(Motion(named, bool(heavy)))
    return tuple(found)
