"""Friction in joints, by the rates of their coordinates.

    tau = -viscous r - [coulomb + (peak - coulomb) exp(-(r / speed)^2)] tanh(r / transition)

r is the rate of a coordinate, of the tree or of a joint that was cut; F = J' tau. The tangent
hyperbolic replaces the sign: at rest there is no friction, and a joint under load creeps.
Reference: docs/forces.md, "Joint friction".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, made_again, positive, quoted, read_only
from holoctl.base.errors import InputError
from holoctl.constraints.joint_coordinates import (
    Closures,
    FramePair,
    Joint,
    joint_called,
    joints_of_tree,
)
from holoctl.forces.coefficients import coefficient
from holoctl.forces.force_protocol import Between, Efforts, Tick
from holoctl.forces.joint_rates import JointRates, along_rows, joint_rates, rows_of_pairs
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics
from holoctl.tree.live_motion import LiveMotion

__all__ = ["BoundFriction", "JointFriction"]


TRANSITION = 0.01
"""Transition of joints that a mapping does not name, rad/s or m/s."""


@dataclass(frozen=True, eq=False)
class JointFriction:
    """Viscous, Coulomb and Stribeck friction in joints, cut ones too.

    The effort on each coordinate of a joint, at the rate r, is

        -viscous r - [coulomb + (peak - coulomb) exp(-(r / speed)^2)] tanh(r / transition)

    The smooth step at zero replaces the sign: there is no stiction, and a joint under load creeps
    at up to about the transition (docs/forces.md has the consequences).

    Parameters
    ----------
    viscous : float or mapping of str to float, optional
        N m s/rad or N s/m, at least 0. A number applies to every coordinate of the tree except
        those of free joints. A mapping names joints, of the tree and closures with ``joint=``, or
        one coordinate of several, ``joint[i]``. Their rates are those of `joint_motion`.
    coulomb : float or mapping of str to float, optional
        N m or N, at least 0, likewise.
    stribeck : (float, float) or mapping of str to (float, float), optional
        Peak, at least `coulomb`, and speed, above 0: the friction at the start of a motion, N m or
        N, and the rate, rad/s or m/s, at which its excess over Coulomb friction has decayed to 1/e.
        Default: none.
    transition : float or mapping of str to float, optional
        rad/s or m/s, above 0: the rate over which friction changes its sign. A number applies to
        all joints, also cut ones; joints that a mapping does not name have 0.01.
    name : str, optional
        Default: ``"friction"``.

    Raises
    ------
    InputError
        For coefficients that are negative or not finite, a transition or speed that is not above
        zero. Unknown joints, and peaks below Coulomb's friction, are refused by `Mechanism`.

    See Also
    --------
    JointSpring : a spring and a damper on a joint.
    power : the losses at a state.
    ComputedTorque : compensates friction, see ``friction_at``.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> oiled = mech.with_forces([hc.JointFriction(viscous=0.02, coulomb={"crank": 0.1})])
    >>> q, v = hc.assemble(oiled, v_guess=[1.0, 0.0, 0.0], locked=["crank"])
    >>> round(hc.power(oiled, q, v, [0.0]).losses, 3)
    0.15
    """

    viscous: Any = 0.0
    coulomb: Any = 0.0
    stribeck: Any = None
    transition: Any = TRANSITION
    name: str | None = None

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[str, Any], Any]] = {
            "viscous": coefficient,
            "coulomb": coefficient,
            "transition": positive,
        }
        if self.stribeck is not None:
            checks["stribeck"] = _peak_and_speed
        for what, check in checks.items():
            owner, given = f"JointFriction {quoted(self.default_name)}: {what}", getattr(self, what)
            if isinstance(given, Mapping):
                kept = {n: check(f"{owner} of {quoted(n)}", x) for n, x in given.items()}
                object.__setattr__(self, what, MappingProxyType(kept))
            else:
                object.__setattr__(self, what, check(owner, given))

    def __reduce__(self) -> tuple[Any, ...]:  # mappings that are read-only do not pickle
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        given = {k: dict(x) if isinstance(x, Mapping) else x for k, x in given.items()}
        return made_again, (type(self), given)

    @property
    def default_name(self) -> str:
        """The name as given, or ``"friction"``."""
        return self.name if self.name is not None else "friction"

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints that are named."""
        named = (self.viscous, self.coulomb, self.stribeck, self.transition)
        return tuple(dict.fromkeys(n for x in named if isinstance(x, Mapping) for n in x))

    def bind(
        self, model: pin.Model, name: str, reference: Vector, closures: Closures
    ) -> BoundFriction:
        """This friction on `model`."""
        model, owner = plain(model), f"JointFriction {name!r}"
        named = {joint: joint_called(model, joint, closures, owner) for joint in self.joints}
        if fixed := [n for n, joint in named.items() if joint is not None and not joint.count]:
            raise InputError(f"{owner}: {fixed[0]!r} is a weld, in which nothing moves")
        kinds = [joint.shortname() for joint in list(model.joints)[1:]]
        tree = zip(joints_of_tree(model), kinds, strict=True)
        every = [joint for joint, kind in tree if kind != "JointModelFreeFlyer"]
        rates = joint_rates(
            model, [j for j in (*every, *named.values()) if isinstance(j, FramePair)]
        )
        table = _Table(rates, [p for j in every for p in rates.places(j)], named, owner)
        viscous, coulomb = (
            table.filled("viscous", self.viscous),
            table.filled("coulomb", self.coulomb),
        )
        of_all = TRANSITION if isinstance(self.transition, Mapping) else self.transition
        by_name = self.transition if isinstance(self.transition, Mapping) else {}
        transition = table.filled("transition", by_name, of_all)
        peak, speed = coulomb, np.ones(rates.count)
        if self.stribeck is not None:
            both = table.filled("stribeck", self.stribeck, (0.0, 0.0))
            has = both[:, 1] > 0.0
            peak, speed = np.where(has, both[:, 0], coulomb), np.where(has, both[:, 1], 1.0)
        if (low := np.flatnonzero(peak < coulomb)).size:
            raise InputError(
                f"{owner}: the peak of stribeck must be at least the Coulomb friction of the same "
                f"joint; got {peak[low[0]]:g} < {coulomb[low[0]]:g}"
            )
        return BoundFriction(
            rates, *(read_only(x) for x in (viscous, coulomb, peak, speed, transition))
        )


def _peak_and_speed(name: str, value: Any) -> tuple[float, float]:
    try:
        peak, speed = value
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a pair (peak, speed); got {quoted(value)}") from None
    return coefficient(f"{name}: peak", peak), positive(f"{name}: speed", speed)


@dataclass(frozen=True, eq=False)
class _Table:
    """Coefficients of all rates: one number for the joints of `every`, or numbers by joint name."""

    rates: JointRates
    every: list[int]
    named: Mapping[str, Joint | None]
    owner: str

    def filled(self, what: str, given: Any, default: Any = 0.0) -> Array:
        found = np.array([default] * self.rates.count, dtype=float)
        if not isinstance(given, Mapping):
            found[self.every] = given
            return found
        of: dict[int, str] = {}
        for name, x in given.items():
            joint = self.named[name]
            for i in () if joint is None else self.rates.places(joint):
                if i in of:
                    raise InputError(
                        f"{self.owner}: {what}: {of[i]!r} and {name!r} name the same coordinate"
                    )
                of[i], found[i] = name, x
        return found


@dataclass(frozen=True, eq=False)
class BoundFriction:
    """Friction tied to a model: arrays with an entry for each of the rates."""

    stores: ClassVar[bool] = False
    friction: ClassVar[bool] = True

    rates: JointRates
    viscous: Vector
    coulomb: Vector
    peak: Vector
    speed: Vector
    transition: Vector

    def at(self, kin: Kinematics) -> Efforts:
        """``J' tau``, as losses."""
        none, (r, J) = np.zeros(self.rates.nv), self.rates.at(kin)
        return Efforts(none, self.rates.efforts(self.law(r), J), none)

    def law(self, r: Vector) -> Vector:
        """tau of the rates r."""
        found: Vector = friction(np, r, *self._coefficients)
        return found

    @property
    def _coefficients(self) -> tuple[Vector, ...]:
        """The coefficients for `friction`."""
        fall = self.peak - self.coulomb
        return self.viscous, self.coulomb, fall, 1.0 / self.speed, 1.0 / self.transition

    def slope(self, r: Vector) -> Vector:
        """d tau / dr."""
        x, step = np.abs(r) / self.speed, np.tanh(np.abs(r) / self.transition)
        fall = (self.peak - self.coulomb) * np.exp(-x * x)
        dry = self.coulomb + fall
        along = np.where(dry > 0.0, dry * (1.0 - step**2) / self.transition, 0.0)
        down = np.where(fall > 0.0, 2.0 * fall * x * step / self.speed, 0.0)
        return np.asarray(down - self.viscous - along)

    def energy(self, kin: Kinematics) -> float:
        """Friction stores nothing."""
        return 0.0

    def by_velocity(self, kin: Kinematics) -> Array:
        """``J' (d tau / dr) J``."""
        r, J = self.rates.at(kin)
        slope, nv = self.slope(r), self.rates.nv
        found: Array = np.diag(slope[:nv]) + (J.T * slope[nv:]) @ J
        return found

    def tick(self, motion: LiveMotion) -> Tick:
        """`friction` in few calls: with ``r = R v`` and z = (r, tanh(r / transition)),

            F = -R' C z        C = [viscous, coulomb], diagonal blocks

        Where R is constant, it is multiplied into C once.
        """
        (R, refill), n = self.rates.tick(motion), self.rates.count
        viscous, coulomb, fall, per_speed, per_transition = self._coefficients
        has_fall, efforts = bool(fall.any()), np.zeros(self.rates.nv)
        dry = np.ones(n) if has_fall else coulomb
        z, tau, C = np.zeros(2 * n), np.zeros(n), -np.hstack([np.diag(viscous), np.diag(dry)])
        r, step = z[:n], z[n:]
        all_of_it = R.T @ C

        def tick(q: Vector, v: Vector, t: float) -> Vector:
            if refill is not None:
                refill()
            R.dot(v, r)
            np.multiply(r, per_transition, step)
            np.tanh(step, step)
            if has_fall:
                x = r * per_speed
                np.multiply(step, coulomb + fall * np.exp(-x * x), step)
            if refill is None:
                all_of_it.dot(z, efforts)
            else:
                C.dot(z, tau)
                tau.dot(R, efforts)
            return efforts

        return tick

    @property
    def acting(self) -> list[int]:
        """The places of the rates that have friction."""
        return [int(i) for i in np.flatnonzero(np.maximum(self.viscous, self.peak))]

    def expression(
        self, q: Any, v: Any, t: Any, between: Between, viscous: Any = None, coulomb: Any = None
    ) -> Any:
        """The same as an expression, rate by rate; with other coefficients of the `acting` rates,
        numbers or expressions, whose peaks exceed them by as much as before."""
        import casadi as ca

        rows: list[dict[int, Any]] = [{k: 1.0} for k in range(self.rates.nv)]
        rows += rows_of_pairs(self.rates.pairs, between)
        laws: list[Any] = [None] * len(rows)
        coefficients = np.array(self._coefficients).T.tolist()
        for i, k in enumerate(self.acting):
            one = coefficients[k]
            for place, other in enumerate((viscous, coulomb)):
                one[place] = one[place] if other is None else other[i]
            laws[k] = lambda r, one=one: friction(ca, r, *one)
        return along_rows(rows, laws, v)


def friction(
    do: Any, r: Any, viscous: Any, coulomb: Any, fall: Any, per_speed: Any, per_transition: Any
) -> Any:
    """tau at the rate r: of arrays if `do` is numpy, of an expression if it is CasADi, which leaves
    out terms that are zero."""
    x = r * per_speed
    dry = coulomb + fall * do.exp(-(x * x))
    return -viscous * r - dry * do.tanh(r * per_transition)
