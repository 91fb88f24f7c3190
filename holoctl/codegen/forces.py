"""The forces of a mechanism as expressions: F of q, v and t, friction apart from the rest.

A force says what it is by its `expression`; frames are seen from the nearest body that carries
both, as for rows (codegen/relative_motion.py). Friction is separate, because it may be taken
at another velocity than the measured one; see dynamics/friction_velocity.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array
from holoctl.base.errors import InputError
from holoctl.base.tolerances import DIFFERENCE_TIMES
from holoctl.codegen.casadi_import import SX, casadi_module, column_asked, result_asked
from holoctl.codegen.matrices import total
from holoctl.codegen.relative_motion import StepMotion, moved, pair_between, turns
from holoctl.codegen.tree import TreeSteps
from holoctl.constraints.constraint_protocol import offered
from holoctl.constraints.user_constraints import of_library
from holoctl.forces.custom_force import BoundCustomForce
from holoctl.forces.force_protocol import Between, BoundForce, RelativeMotion
from holoctl.forces.joint_friction import BoundFriction
from holoctl.forces.sum_of_forces import all_efforts
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.frames import Frame
from holoctl.tree.kinematics import kinematics

__all__ = ["SymbolicForces", "check_forces", "symbolic_forces"]

FORCES_AGREE = 1e-9
"""An expression that a force offers may differ from its efforts by this much of 1 + the largest."""


@dataclass(frozen=True, eq=False)
class SymbolicForces:
    """F as expressions; None where there is nothing.

    Attributes
    ----------
    friction : (nv, 1) expression or None
        What a controller may compensate at another velocity.
    friction_guard : list of scalar expressions
        Each is below one where that can be trusted.
    others : (nv, 1) expression or None
        The rest.
    others_guard : list of scalar expressions
    """

    friction: SX | None
    friction_guard: list[SX]
    others: SX | None
    others_guard: list[SX]

    @property
    def guard(self) -> list[SX]:
        """Of all forces at the state."""
        return [*self.friction_guard, *self.others_guard]

    def minus(self, efforts: SX, v: SX, rates: SX | None = None) -> SX:
        """Efforts on the coordinates without F, the friction that of the velocity `rates`.

        `v` are the symbols of the velocity.
        """
        friction, others = self.friction, self.others
        if friction is not None and rates is not None:
            friction = casadi_module().substitute(friction, v, rates)
        for part in (friction, others):
            if part is not None:
                efforts = efforts - part
        return efforts

    def friction_guard_at(self, v: SX, rates: SX) -> list[SX]:
        """The guard of friction at another velocity."""
        ca = casadi_module()
        return [ca.substitute(x, v, rates) for x in self.friction_guard]


def check_forces(mech: Mechanism) -> None:
    """Raise `InputError` for a force that has no expression, by name."""
    for bound, name in zip(mech.bound_forces, mech.force_names, strict=True):
        why: str = getattr(bound, "opaque", "")
        if not why and offered(bound, "expression", "at") is None:
            why = f"a {type(bound).__name__} has no expression"
        if why:
            raise InputError(f"{mech.name}: force {name!r} cannot be compiled: {why}")


def symbolic_forces(
    mech: Mechanism, tree: TreeSteps, v: SX, t: SX, samples: Array, friction: Sequence[SX] = ()
) -> SymbolicForces:
    """The forces of a mechanism; see `check_forces`.

    Parameters
    ----------
    mech : Mechanism
    tree : TreeSteps
    v, t : (nv, 1) symbols, symbol
    samples : (s, nq) array
        Configurations near which user-defined expressions are compared with the forces.
    friction : pair of (n, 1) symbols, optional
        Coefficients of joint friction in the place of its own: see `BoundFriction.expression`.

    Raises
    ------
    InputError
        For an expression that is none, or not the force, by name.
    """
    between = _between(tree, v)
    efforts: list[list[SX]] = [[], []]
    guards: list[list[SX]] = [[], []]
    for bound, name in zip(mech.bound_forces, mech.force_names, strict=True):
        owner = f"{mech.name}: expression of force {name!r}"
        more = friction if isinstance(bound, BoundFriction) else ()
        F, guard = _expressed(bound, owner, tree.q, v, t, between, more)
        if not of_library(bound) or isinstance(bound, BoundCustomForce):
            _compare(mech, bound, owner, samples, _function(owner, tree.q, v, t, F, guard))
        kind = 0 if bound.friction else 1
        efforts[kind].append(F)
        guards[kind] += guard
    dry, others = (sum(x[1:], x[0]) if x else None for x in efforts)
    return SymbolicForces(dry, guards[0], others, guards[1])


def _between(tree: TreeSteps, v: SX) -> Between:
    """What shows frames to the forces, of one tree."""
    steps: dict[tuple[int, int], StepMotion] = {}

    def between(a: Frame, b: Frame) -> RelativeMotion:
        pair = pair_between(tree, a, b, v, steps)
        moves = moved(pair, pair.p2, pair.p2)
        return RelativeMotion(pair.R1, pair.p1, pair.R2, pair.p2, tuple(turns(pair)), tuple(moves))

    return between


def _expressed(
    bound: BoundForce, owner: str, q: SX, v: SX, t: SX, between: Between, more: Sequence[SX]
) -> tuple[SX, list[SX]]:
    """Efforts and guard of one force, checked."""
    ca, nv = casadi_module(), v.numel()
    expression, own = (offered(bound, what, "at") for what in ("expression", "guard"))
    F = column_asked(owner, lambda: expression and expression(q, v, t, between, *more), nv)
    guard = result_asked(owner, lambda: [ca.SX(x) for x in own(q, v, t, between)] if own else [])
    if any(x.numel() != 1 for x in guard):
        raise InputError(f"{owner}: its guard must return a list of scalar expressions")
    return ca.densify(F), guard


def _function(owner: str, q: SX, v: SX, t: SX, F: SX, guard: list[SX]) -> Any:
    """``(q, v, t) -> F, guard`` in numbers."""
    ca = casadi_module()
    if free := {x.name() for x in ca.symvar(ca.vertcat(F, *guard))} - {
        x.name() for x in ca.symvar(ca.vertcat(q, v, t))
    }:
        raise InputError(f"{owner} depends on more than q, v and t: {', '.join(sorted(free))}")
    return ca.Function("force", [q, v, t], [F, total(guard)])


_SPEEDS = (1.0, -1.0, 30.0, -30.0, 1e-2, -1e-2, 1e-4, 0.0)
"""Parts of a random velocity at which expressions are compared: both sides of rest, near it, and as
fast as motors are."""


def _compare(mech: Mechanism, bound: BoundForce, owner: str, samples: Array, function: Any) -> None:
    """Raise `InputError` where an expression is not the force, on the manifold and beside it."""
    model, data, rng = mech.model, mech.model.createData(), np.random.default_rng(0)
    times, compared = cycle(DIFFERENCE_TIMES), 0
    for sample in samples:
        for off in (0.0, 0.1):
            q = pin.integrate(model, sample, off * rng.normal(size=mech.nv))
            speed = rng.normal(size=mech.nv)
            for part in _SPEEDS:
                v, t = part * speed, next(times)
                try:
                    expected = all_efforts([bound], kinematics(model, data, q, v, t)).total
                except Exception:
                    continue  # forces need not be defined everywhere, and say so as they like
                F, guard = function(q, v, t)
                if not (np.isfinite(expected).all() and float(guard) < 1.0):
                    continue
                compared += 1
                away = np.abs(np.array(F).reshape(-1) - expected).max()
                if not away <= FORCES_AGREE * (1.0 + np.abs(expected).max()):
                    raise InputError(
                        f"{owner} is not the force: its error is {away:.2g}, the force is "
                        f"{np.abs(expected).max():.4g} at most, at q = {q.round(4).tolist()}, "
                        f"v = {v.round(6).tolist()}, t = {t:g}"
                    )
    if not compared:
        raise InputError(
            f"{owner} could not be compared with the force: at none of the configurations that "
            "the law is prepared for both are defined; give the Mechanism another reference="
        )
