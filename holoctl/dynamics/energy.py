"""The energy balance of a mechanism: stored energy, and power in and out.

    stored = v' M v / 2 + V_gravity + V_springs
    d(stored)/dt = motors + external - losses        along the constraints

Constraints that do not depend on time do no work.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from holoctl.base.checks import quiet, vector
from holoctl.base.errors import InputError
from holoctl.forces.sum_of_forces import all_efforts, stored_energy
from holoctl.mechanism.checks import check_mechanism, check_state
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.mechanism.open_tree import energy as tree_energy
from holoctl.mechanism.open_tree import external_efforts
from holoctl.tree.kinematics import kinematics

__all__ = ["Energy", "Power", "energy", "power"]


@dataclass(frozen=True)
class Energy:
    """The stored energy of a mechanism, J.

    Attributes
    ----------
    kinetic : float
        ``v' M v / 2``, including rotors.
    gravity : float
        Zero if the centre of mass is at the height of the origin.
    springs : float
        Of the `forces` of the mechanism; zero if all springs are at rest.

    See Also
    --------
    energy : returns it.
    results.Power : its rate.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> stored = hc.energy(mech, *hc.assemble(mech))
    >>> stored.kinetic, round(stored.total, 3)
    (0.0, 1.433)
    """

    kinetic: float
    gravity: float
    springs: float

    @property
    def total(self) -> float:
        """The sum."""
        return self.kinetic + self.gravity + self.springs


@dataclass(frozen=True)
class Power:
    """The power into a mechanism and out of it, W.

    Attributes
    ----------
    motors : float
        ``u . B' v``, into the mechanism.
    losses : float
        Dissipation by friction and dampers: at least 0.
    external : float
        Of `CustomForce`, and of the given external forces and efforts, into it.

    See Also
    --------
    power : returns it.
    results.Energy : what is stored.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> damped = mech.with_forces([hc.JointFriction(viscous={"crank": 0.1})])
    >>> q, v = hc.assemble(damped, v_guess=[2.0, 0.0, 0.0], locked=["crank"])
    >>> flow = hc.power(damped, q, v, u=[0.5])
    >>> flow.motors, round(flow.losses, 6), round(flow.total, 6)
    (1.0, 0.4, 0.6)
    """

    motors: float
    losses: float
    external: float

    @property
    def total(self) -> float:
        """The rate of the stored energy: ``motors + external - losses``."""
        return self.motors + self.external - self.losses


@quiet
def energy(mech: Mechanism, q: Any, v: Any, *, t: float = 0.0) -> Energy:
    """The stored energy of a mechanism at a state.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    t : float, optional
        Time, s; the stored energy of the library's forces does not depend on it.

    Returns
    -------
    Energy

    Raises
    ------
    InputError
        For wrong shapes, or numbers that are not finite, or too large.

    See Also
    --------
    power : the power of motors, losses and loads.
    Run : the energy along a run.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> q, v = hc.assemble(mech, v_guess=[10.0, 0.0, 0.0], locked=["crank"])
    >>> stored = hc.energy(mech, q, v)
    >>> round(stored.gravity, 3), round(stored.kinetic, 3)
    (1.434, 0.204)
    """
    check_mechanism(mech)
    q, v, t = check_state(mech, q, v, t)
    kinetic, gravity = tree_energy(mech, q, v)
    kin = kinematics(mech.model, workspace(mech), q, v, t)
    found = Energy(kinetic, gravity, stored_energy(mech.bound_forces, kin))
    if not isfinite(found.total):
        raise InputError(f"{mech.name}: the energy is not finite: q or v is out of range")
    return found


@quiet
def power(
    mech: Mechanism,
    q: Any,
    v: Any,
    u: Any,
    *,
    f_ext: Any = None,
    efforts: Any = None,
    t: float = 0.0,
) -> Power:
    """The power of motors, losses and external forces at a state.

    For motions along constraints that do not depend on time, ``power(...).total`` is the rate of
    ``energy(...).total``.

    Parameters
    ----------
    mech : Mechanism
    q : (nq,) array_like
        Configuration.
    v : (nv,) array_like
        Velocity, rad/s or m/s.
    u : (nu,) array_like
        Efforts of the motors, N m or N.
    f_ext : mapping or pin.StdVec_Force, optional
        External forces, as in `inverse_dynamics`.
    efforts : (nv,) array_like, optional
        Other efforts on the coordinates, N m or N.
    t : float, optional
        Time, s.

    Returns
    -------
    Power

    Raises
    ------
    InputError
        For wrong shapes, or numbers that are not finite, or too large.
    SingularityError
        If the ends of a spring coincide.

    See Also
    --------
    energy : what is stored.
    inverse_dynamics : efforts for a motion.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> q, v = hc.assemble(mech, v_guess=[2.0, 0.0, 0.0], locked=["crank"])
    >>> hc.power(mech, q, v, u=[1.5]).motors
    3.0
    """
    check_mechanism(mech)
    q, v, t = check_state(mech, q, v, t)
    u = vector("u", u, mech.nu, "motor efforts")
    kin = kinematics(mech.model, workspace(mech), q, v, t)  # of this state, as in `energy`
    given = external_efforts(mech, kin, f_ext, efforts)
    F = all_efforts(mech.bound_forces, kin)
    found = Power(
        motors=float(u @ (mech.B.T @ v)),
        losses=float(-F.losses @ v) + 0.0,
        external=float((F.external + given) @ v),
    )
    if not isfinite(found.total):
        raise InputError(f"{mech.name}: the power is not finite: q, v or an effort is out of range")
    return found
