"""Checks of user-defined force classes before they are used.

The certificate uses efforts, energy and losses as the class gives them: an error in them is in the
torque and in its certificate alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.tolerances import DIFFERENCE_PARTS, DIFFERENCE_STEP, TICK_AGREES
from holoctl.constraints.constraint_protocol import offered
from holoctl.constraints.derivative_check import difference, worst
from holoctl.constraints.user_constraints import check_near_reference, of_library
from holoctl.forces.force_protocol import BoundForce, Efforts
from holoctl.tree.kinematics import Kinematics, kinematics
from holoctl.tree.live_motion import live_motion

__all__ = ["check_own_force", "checked_efforts"]

NO_LOSS = 1e-9
"""Largest power that the losses of a user-defined force may give, relative to its terms."""


_PARTS = ("springs", "losses", "external")


def checked_efforts(force: BoundForce, found: Any, nv: int) -> Efforts:
    """Check the type and the shapes of the result of `at`; its numbers may be nan."""
    if of_library(force):
        return found  # type: ignore[no-any-return]
    for part in _PARTS:
        x = getattr(found, part, None)
        if not isinstance(x, np.ndarray) or x.shape != (nv,) or x.dtype.kind != "f":
            given = f"shape {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
            raise InputError(
                f"{type(force).__name__}: at must return hc.protocols.Efforts of float arrays of "
                f"shape ({nv},); its {part} are of {given}"
            )
    return Efforts(found.springs, found.losses, found.external)


def check_own_force(bound: Any, name: str, model: pin.Model, reference: Vector) -> None:
    """Check a user-defined force for consistency, at seeded states near the reference.

    States at which it raises an error of the library, or is not finite, are left out.

    Raises
    ------
    InputError
        For an object that is not a bound force; efforts of other shapes; springs that are not the
        gradient of the energy; energy that depends on v; losses that give power; friction that
        depends on q or acts at rest, or is not lost; a derivative by v that is not that of the
        efforts; a tick that differs from `at`; efforts that are defined nowhere near the reference.
    """
    owner = f"force {name!r}"
    parts = ("at", "energy", "by_velocity", "stores", "friction")
    if missing := [part for part in parts if not hasattr(bound, part)]:
        raise InputError(
            f"{owner}: bind must return a bound force, see holoctl/forces/force_protocol.py; got "
            f"{type(bound).__name__} without {', '.join(missing)}"
        )

    def look(q: Vector, v: Vector, t: float, beside: Vector) -> str:
        kin = kinematics(model, model.createData(), q, v, t)
        try:
            found = checked_efforts(bound, bound.at(kin), model.nv)
            finite = bool(np.isfinite(found.total).all())
            wrong = _inconsistency(bound, model, kin, found) if finite else ""
        except InputError:
            raise
        except HoloctlError as error:
            return str(error) or type(error).__name__
        except Exception as error:  # user code may raise anything
            raise InputError(f"{owner} raised {type(error).__name__}: {error}") from error
        if wrong:
            where = f"q = {q.round(4).tolist()}, v = {v.round(4).tolist()}, t = {t:g}"
            raise InputError(f"{owner}: {wrong} at {where}")
        return "" if finite else "efforts that are not finite"

    check_near_reference(f"{owner}: it", model, reference, look)


def _inconsistency(bound: Any, model: pin.Model, kin: Kinematics, found: Efforts) -> str:
    """The inconsistency of a force at a state; empty if there is none."""
    q, v, t = kin.q, kin.v, kin.t
    size = float(np.abs(found.total) @ np.abs(v))
    if not float(found.losses @ v) <= NO_LOSS * size:
        return f"its losses give power, {found.losses @ v:.4g} W,"
    data = model.createData()

    def energy(s: float) -> Vector:
        there = pin.integrate(model, q, s * v)
        return np.array([float(bound.energy(kinematics(model, data, there, v, t)))])

    gained = np.array([-float(found.springs @ v)])
    if bound.stores:
        h = DIFFERENCE_STEP / max(1.0, float(np.abs(v).max()))
        tries = [difference(energy, part * h) for part in DIFFERENCE_PARTS]
        if worst(gained, tries, np.array([size])) is not None:
            return (
                f"its springs take {gained[0]:.6g} W, but its energy grows by "
                f"{tries[0].value[0]:.6g} W"
            )
        still = float(bound.energy(kinematics(model, data, q, np.zeros(v.size), t)))
        if not abs(still - energy(0.0)[0]) <= NO_LOSS * (1.0 + abs(still)):
            return "its energy depends on the velocity"
    elif found.springs.any():
        return "it has springs, but stores is False,"
    if bound.friction:
        elsewhere = pin.integrate(model, q, 0.3 * v)
        other = checked_efforts(bound, bound.at(kinematics(model, data, elsewhere, v, t)), v.size)
        if (
            found.springs.any()
            or found.external.any()
            or np.abs(other.total - found.total).max() > NO_LOSS * (1.0 + np.abs(found.total).max())
        ):
            return "its friction is True, but it is not a loss, or depends on more than the rates,"
        rest = kinematics(model, data, q, np.zeros(v.size), t)
        if checked_efforts(bound, bound.at(rest), v.size).total.any():
            return "its friction is True, but it acts at rest"
    return _derivative_differs(bound, model, kin) or _tick_differs(bound, model, kin, found)


def _derivative_differs(bound: Any, model: pin.Model, kin: Kinematics) -> str:
    """The error of the derivative by v, along a direction that is not v; empty if there is none."""
    given, nv, data = bound.by_velocity(kin), model.nv, model.createData()
    if getattr(given, "shape", None) != (nv, nv) or given.dtype.kind != "f":
        return f"by_velocity must return a float array of shape ({nv}, {nv}); it does not"
    way = np.cos(np.arange(nv))

    def efforts(s: float) -> Vector:
        there = kinematics(model, data, kin.q, kin.v + s * way, kin.t)
        return checked_efforts(bound, bound.at(there), nv).total

    change = np.asarray(given @ way)
    tries = [difference(efforts, part * DIFFERENCE_STEP) for part in DIFFERENCE_PARTS]
    if (i := worst(change, tries, np.abs(given) @ np.abs(way))) is not None:
        return (
            f"its by_velocity is not the derivative of its efforts: entry {i} of it, times "
            f"cos(0), cos(1), ..., is {change[i]:.6g}, and {tries[0].value[i]:.6g} by differences,"
        )
    return ""


def _tick_differs(bound: Any, model: pin.Model, kin: Kinematics, found: Efforts) -> str:
    """The error of an offered `tick` against `at`; empty if there is none."""
    offer, motion = offered(bound, "tick", "at"), live_motion(model, model.createData())
    if offer is None or motion is None or (tick := offer(motion)) is None:
        return ""
    pin.computeForwardKinematicsDerivatives(model, motion.data, kin.q, kin.v, np.zeros(model.nv))
    for _ in range(2):  # twice, because a tick may keep state between calls
        efforts = tick(kin.q, kin.v, kin.t)
        if getattr(efforts, "shape", None) != (model.nv,):
            return f"its tick does not give an array of shape ({model.nv},)"
        off = float(np.abs(efforts - found.total).max())
        if not off <= TICK_AGREES * (1.0 + float(np.abs(found.total).max())):
            return f"its tick differs from `at` by {off:.1e}"
    return ""
