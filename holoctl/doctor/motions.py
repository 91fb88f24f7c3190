"""What moves: joints that cannot, bodies that spin without anything else, motions without motor.

Everything is in scaled coordinates, at the configurations of the samples.
Reference: docs/doctor.md, "Motions".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from holoctl.base.checks import Array
from holoctl.base.tolerances import IDLE_NEW
from holoctl.closing.bodies import bodies_at
from holoctl.closing.idle.motions import idle_motions, independent_spins
from holoctl.closing.samples import Samples
from holoctl.doctor.actuation import actuation, motor_rows, verdict
from holoctl.doctor.locked_joints import locked_joints
from holoctl.doctor.motion import Motion, described
from holoctl.mechanism.coupled_motors import coupled_motors
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Motions", "motions", "without"]


@dataclass(frozen=True)
class Motions:
    """What moves and what does not.

    Attributes
    ----------
    locked_joints : tuple of str
        Joints that never move.
    idle : tuple of Motion
        Motions that no motor drives and that move bodies between two others and nothing else:
        the spin of a rod between two ball joints.
    undriven : tuple of Motion
        The other motions that no motor drives; none are named where there are no motors at all.
    actuation_rank, generic_actuation_rank : int
        Rank of gamma' B, here and in general.
    actuation : str
        ``"none"``, ``"fully"``, ``"under"``, ``"redundantly"``, ``"both"``; ``"unknown"``.
    coupled : tuple of str
        Motors that add no motion, for couplings tie their joints to those of other motors.
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
    """Look at all samples; what is said of motions holds at every one of them."""
    grips = [actuation(mech, at, T) for at, T in zip(s.generic, s.tangents, strict=True)]
    rank = max(grip.rank for grip in grips)
    usual = [(at, grip) for at, grip in zip(s.generic, grips, strict=True) if grip.rank == rank]
    # idle motions are looked for among all instantaneous ones, which are exact
    found = [
        idle_motions(
            bodies_at(mech, at, t), at, motor_rows(mech), actuation(mech, at, at.null).undriven
        )
        for at, _ in usual
    ]
    lasting = set.intersection(*(set(groups) for groups in found))
    at, grip = usual[0]
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
        described(here, without(grip.undriven, basis)) if mech.nu else (),
        actuation(mech, s.here, s.here.null).rank,
        rank,
        verdict(mech.nu, rank, s.finite_dof - len(idle)),
        coupled_motors(mech),
    )


def without(space: Array, known: Array) -> Array:
    """An orthonormal basis of what `space` has beside `known`."""
    rest = space - known @ (known.T @ space)
    u, s, _ = np.linalg.svd(rest, full_matrices=False)
    return u[:, s > IDLE_NEW]
