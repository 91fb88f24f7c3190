"""The equation of motion of the open tree, without constraints:

    M(q) a + h(q, v) = tau + J^T f

| here                      | gives                                | by                            |
|---------------------------|--------------------------------------|-------------------------------|
| `inertia`                 | M                                    | composite rigid bodies        |
| `nonlinear_efforts`       | h: Coriolis, centrifugal, gravity    | recursive Newton-Euler        |
| `inverse_tree_dynamics`   | M a + h, in one pass without M       | recursive Newton-Euler        |
| `sparse_solver`           | M^-1 b, M factored once              | sparse Cholesky factors       |
| `articulated_body_solver` | M^-1 b, without M                    | articulated bodies, at rest   |
| `external_efforts`        | J^T f: a sum over the bodies         | the world Jacobian            |
| `energy`, `energies`      | v^T M v / 2, and that of gravity     | velocities of the bodies      |

Pinocchio computes them; this file defines the conventions. Rotor inertias (``model.armature``) are
part of M everywhere, also in the energy.
Reference: R. Featherstone, Rigid Body Dynamics Algorithms, chapters 5 to 7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, numbers, vector
from holoctl.base.errors import InputError
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.tree.coordinates import support
from holoctl.tree.frames import resolve_frame
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = [
    "articulated_body_solver",
    "energies",
    "energy",
    "external_efforts",
    "inertia",
    "inverse_tree_dynamics",
    "known_efforts",
    "nonlinear_efforts",
    "sparse_solver",
]


def inertia(mech: Mechanism, q: Vector) -> Array:
    """M, shape (nv, nv), by the composite-rigid-body algorithm."""
    M: Array = pin.crba(mech.model, workspace(mech), q)
    return M


def nonlinear_efforts(mech: Mechanism, q: Vector, v: Vector) -> Vector:
    """h, shape (nv,): Coriolis, centrifugal and gravity efforts, N m or N."""
    h: Vector = pin.nonLinearEffects(mech.model, workspace(mech), q, v)
    return h


def inverse_tree_dynamics(mech: Mechanism, q: Vector, v: Vector, a: Vector) -> Vector:
    """``M a + h``, shape (nv,), by the recursive Newton-Euler algorithm; M is not formed."""
    w: Vector = pin.rnea(mech.model, workspace(mech), q, v, a)
    return w


def sparse_solver(mech: Mechanism, q: Vector) -> Callable[[Array], Array]:
    """A function that solves ``M x = b`` for the columns of b, by the sparse factorisation.

    M is factored here, once; the workspace must not be used for another state in between.
    """
    model, data = mech.model, workspace(mech)
    pin.crba(model, data, q)
    pin.cholesky.decompose(model, data)

    def solve(b: Array) -> Array:
        return np.column_stack([pin.cholesky.solve(model, data, column) for column in b.T])

    return solve


def articulated_body_solver(mech: Mechanism, q: Vector) -> Callable[[Array], Array]:
    """A function that solves ``M x = b`` for the columns of b by the articulated-body algorithm:
    the accelerations from rest under the efforts b, without gravity."""

    def without_gravity() -> tuple[pin.Model, pin.Data]:
        model = mech.model.copy()
        model.gravity = pin.Motion.Zero()
        return model, model.createData()

    weightless, data = mech.per_thread("weightless", without_gravity)
    rest = np.zeros(mech.nv)

    def solve(b: Array) -> Array:
        columns = [pin.aba(weightless, data, q, rest, column).copy() for column in b.T]
        return np.column_stack(columns)

    return solve


def energy(mech: Mechanism, q: Vector, v: Vector) -> tuple[float, float]:
    """Kinetic and potential energy, J."""
    kinetic, potential = energies(mech, [q], v[None])
    return float(kinetic[0]), float(potential[0])


def energies(mech: Mechanism, q: Sequence[Vector], v: Array) -> tuple[Vector, Vector]:
    """`energy` at n states: q[i], and v (n, nv)."""
    found = []

    def without_rotors() -> tuple[pin.Model, pin.Data, Vector | None]:
        armature = plain(mech.model).armature.copy()
        if not armature.any():
            return plain(mech.model), workspace(mech), None
        model = mech.model.copy()
        model.armature = np.zeros(mech.nv)
        return model, model.createData(), armature

    # Pinocchio includes the rotors of some types of joints only
    model, data, armature = mech.per_thread("rotorless", without_rotors)
    for q_i, v_i in zip(q, v, strict=True):
        pin.computeMechanicalEnergy(model, data, q_i, v_i)
        found.append((data.kinetic_energy, data.potential_energy))
    kinetic, potential = np.array(found).T
    if armature is not None:
        kinetic += 0.5 * (v * v).dot(armature)
    return kinetic, potential


def external_efforts(
    mech: Mechanism, kin: Kinematics | None, f_ext: Any, efforts: Any = None
) -> Vector:
    """``J^T f``, shape (nv,), of external forces, plus other known efforts on the coordinates.

    Parameters
    ----------
    mech : Mechanism
    kin : Kinematics or None
        At the state at which the forces act; not needed without `f_ext`.
    f_ext : mapping, pin.StdVec_Force or None
        A frame name to a pair (force in N, moment in N m) of three numbers each, or to the 6
        numbers in a row, in world axes at the origin of the frame, or to a `pin.Force` so
        expressed; or one `pin.Force` for each joint, in joint frames, as in Pinocchio's algorithms.
    efforts : (nv,) array_like or None
        N m or N.

    Raises
    ------
    InputError
        For unknown frames, wrong shapes, numbers that are not finite.
    """
    known = np.zeros(mech.nv)
    if efforts is not None:
        known += vector("efforts", efforts, mech.nv, "efforts on the coordinates")
    if f_ext is None or kin is None:
        return known
    if isinstance(f_ext, Mapping):
        for name, given in f_ext.items():
            frame = resolve_frame(mech.model, name, "f_ext")
            f = _wrench(f"f_ext[{name!r}]", given)
            moment = f[3:] + np.cross(kin.point(frame), f[:3])  # about the world origin
            wrench = np.concatenate([f[:3], moment])
            known += support(mech.model, frame.joint) * (kin.J.T @ wrench)
        return known
    if isinstance(f_ext, pin.StdVec_Force):
        if len(f_ext) != mech.model.njoints:
            raise InputError(
                f"f_ext must have one force for each of the {mech.model.njoints} joints, the "
                f"universe included; got {len(f_ext)}"
            )
        for joint in range(1, mech.model.njoints):
            f = vector(f"f_ext[{joint}]", f_ext[joint].vector, 6, "force, moment; joint axes")
            world = kin.placements[joint].act(pin.Force(f)).vector
            known += support(mech.model, joint) * (kin.J.T @ world)
        return known
    raise InputError(
        "f_ext must be a mapping from frame names to (force, moment), three numbers each, or a "
        f"pin.StdVec_Force; got {type(f_ext).__name__}"
    )


def known_efforts(
    mech: Mechanism, q: Vector, v: Vector, t: float, f_ext: Any, efforts: Any
) -> Vector:
    """``J^T f`` plus efforts on the coordinates (nv,); either may be None. An explicit chart moves
    the state first, as everywhere in the dynamics."""
    if f_ext is None:  # no kinematics
        given = np.zeros(mech.nv) if efforts is None else efforts
        return vector("efforts", given, mech.nv, "efforts on the coordinates")
    if mech.chart is not None:
        moved = mech.chart.chart(q, v)
        q, v = moved.q, moved.v
    kin = kinematics(mech.model, workspace(mech), q, v, t)
    return external_efforts(mech, kin, f_ext, efforts)


def _wrench(name: str, given: Any) -> Vector:
    """Force and moment as 6 numbers, from a pair of three, six in a row, or a `pin.Force`."""
    if isinstance(given, pin.Force):
        given = given.vector
    x = numbers(name, given, "force, moment; world axes")
    if x.shape not in ((6,), (2, 3)):
        raise InputError(
            f"{name} must be a pair (force, moment), shape (2, 3), or the six numbers in a row, "
            f"shape (6,); got shape {x.shape}"
        )
    return vector(name, x.reshape(-1), 6, "force, moment; world axes")
