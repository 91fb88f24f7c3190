"""The serial robot that remains of a robot without its loops, and what it leaves out.

For simulators and learners that know trees only. Masses, rotors and limits of the linkages are
approximated as asked, and each approximation is measured against the exact mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Vector, counted, freeze, listing, one_of, quiet, unpickled
from holoctl.base.errors import BranchError, InputError, LimitError
from holoctl.closing.assembly import assemble
from holoctl.io.written_mjcf import written_mjcf
from holoctl.io.written_tree import ANY_LIMIT, described_joint, written_urdf
from holoctl.mechanism.checks import check_configuration, check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.transmission.linkage import serial_bodies
from holoctl.transmission.report import ACCELERATIONS, RATES
from holoctl.transmission.robot import transmissions
from holoctl.transmission.transmission import Transmission
from holoctl.tree.frozen_model import plain
from holoctl.tree.numbering import with_locked_joints

__all__ = ["SerialRobot", "serial_model"]

MASSES, ROTORS, LIMITS = ("lumped", "none"), ("diagonal", "none"), ("box", "none")

SAMPLES, AROUND, IN_BOX = 40, 0.3, 50  # and rad or m
"""Postures behind the errors; how far they are from the start without position limits; efforts that
are drawn in a box at each."""


@dataclass(frozen=True, eq=False)
class SerialRobot:
    """A tree without loops: the result of `serial_model`.

    Attributes
    ----------
    model : pin.Model
    name : str
    transmissions : tuple of Transmission
        The parallel joints that were replaced.
    errors : mapping of str to (float, float)
        Median and worst error of each approximation over postures, rates and accelerations:
        ``"masses"`` and ``"rotors"``, efforts that are wrong, over the largest effort of the
        linkages with their serial bodies; ``"infeasible limits"``, the share of the box that the
        motors cannot give, and ``"unused limits"``, the share of their efforts outside of it.

    See Also
    --------
    serial_model : returns it.
    Transmission : the exact relation that it approximates.

    Examples
    --------
    >>> import holoctl as hc
    >>> robot = hc.serial_model(hc.load(hc.robot_file("leg")))
    >>> robot.model.nv, robot.urdf().count("<joint")
    (4, 4)
    """

    model: pin.Model
    name: str
    transmissions: tuple[Transmission, ...]
    errors: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        freeze(self)

    __setstate__ = unpickled

    def __repr__(self) -> str:
        errors = ", ".join(f"{k} {worst:.2g}" for k, (_, worst) in self.errors.items())
        return (
            f"<SerialRobot {self.name!r}: {counted(self.model.nv, 'coordinate')}, "
            f"{counted(len(self.transmissions), 'transmission')} replaced; worst errors: {errors}>"
        )

    def urdf(self) -> str:
        """The robot as URDF. Rotor inertias are comments, since URDF has none.

        Raises
        ------
        InputError
            For joints that URDF does not have, by name.
        """
        return written_urdf(self.model, self.name)

    def mjcf(self) -> str:
        """The robot as MJCF, with rotor inertias, and motors where efforts are limited.

        Raises
        ------
        InputError
            For joints of several coordinates that are neither free nor spherical, by name.
        """
        model = plain(self.model)
        driven = [
            str(model.names[j])
            for j in range(1, model.njoints)
            if described_joint(model, j).kind in ("revolute", "prismatic")
            and 0.0 < float(model.upperEffortLimit[int(model.idx_vs[j])]) < ANY_LIMIT
        ]
        return written_mjcf(Mechanism(model, (), driven, name=self.name))


@quiet
def serial_model(
    mech: Mechanism,
    start: Any = None,
    *,
    masses: str = "lumped",
    rotors: str = "diagonal",
    joint_limits: str = "box",
) -> SerialRobot:
    """The tree of a robot without its loops, and the errors that this makes.

    Parameters
    ----------
    mech : Mechanism
        A robot whose loops `transmissions` resolves.
    start : (nq,) array_like, optional
        A closed configuration on the wanted branch. Default: assembled from ``mech.reference``.
    masses : str, optional
        Of rods and cranks: ``"lumped"``, welded at the start to the bodies that carry them; or
        ``"none"``.
    rotors : str, optional
        ``"diagonal"``: the diagonal of ``J' I J`` at the start as armature; or ``"none"``.
    joint_limits : str, optional
        Of the efforts and rates of the parallel joints: ``"box"``, the largest box inside those of
        the motors at the start; or ``"none"``.

    Returns
    -------
    SerialRobot

    Raises
    ------
    InputError
        For a robot without loops, one whose loops are not resolved, or whose serial joints hang on
        rods.
    AssemblyError
        If no start is given and the reference cannot be assembled.

    See Also
    --------
    transmissions : the parallel joints that it replaces.
    results.SerialRobot : URDF, MJCF and errors.

    Examples
    --------
    >>> import holoctl as hc
    >>> robot = hc.serial_model(hc.load(hc.robot_file("leg")))
    >>> list(robot.model.names)[1:]
    ['hip_abduction', 'hip_flexion', 'knee', 'ankle']
    >>> robot.errors["masses"][1] < 0.05
    True
    """
    check_mechanism(mech)
    one_of("masses", masses, MASSES)
    one_of("rotors", rotors, ROTORS)
    one_of("joint_limits", joint_limits, LIMITS)
    q = assemble(mech)[0] if start is None else check_configuration(mech, start, "start")
    found = transmissions(mech, q)
    if found.unresolved:
        names, why = next(iter(found.unresolved.items()))
        raise InputError(
            f"{mech.name}: the loops of {listing(names, 6)} have no serial joints to replace them: "
            f"{why}"
        )
    columns = {mech.coordinate_names.index(name) for name in found.serial_joints}
    kept = [
        j
        for j in range(1, plain(mech.model).njoints)
        if columns.issuperset(np.flatnonzero(mech.joint_of == j).tolist())
    ]
    for tr in found:
        serial_bodies(tr.mech, np.array([tr.mech.coordinate_names.index(n) for n in tr.joints]))
    tree = mech.model.copy()
    if masses == "none":
        for j in range(1, tree.njoints):
            if j not in kept:
                tree.inertias[j] = pin.Inertia.Zero()
    model = with_locked_joints(tree, kept, q)
    model.name = mech.name
    errors: dict[str, list[float]] = {
        "masses": [], "rotors": [], "infeasible limits": [], "unused limits": []
    }  # fmt: skip
    for tr in found:
        at = [int(model.idx_vs[model.getJointId(name)]) for name in tr.joints]
        if rotors == "diagonal":
            reflected = tr.reflected_inertia(tr.y_start, rotors=True)
            for i, x in zip(at, np.diag(reflected), strict=True):
                model.armature[i] += x
        if joint_limits == "box":
            _put_limits(model, tr, at, errors)
        _measure(tr, masses, rotors, errors)
    told = {k: (float(np.median(x)), float(np.max(x))) for k, x in errors.items() if x}
    return SerialRobot(model, mech.name, found.found, told)


def _put_limits(
    model: pin.Model, tr: Transmission, at: list[int], errors: dict[str, list[float]]
) -> None:
    """The largest boxes of efforts and rates at the start, and how they fit elsewhere."""
    rng = np.random.default_rng(0)
    try:
        low, high = tr.effort_polytope(tr.y_start).box()
        model.lowerEffortLimit[at], model.upperEffortLimit[at] = low, high
        for y in _postures(tr, rng):
            allowed = tr.effort_polytope(y)
            drawn = rng.uniform(low, high, (IN_BOX, len(at)))
            feasible = float(np.mean([allowed.contains(x) for x in drawn]))
            errors["infeasible limits"].append(1.0 - feasible)
            share = feasible * float(np.prod(high - low)) / allowed.volume
            errors["unused limits"].append(max(1.0 - share, 0.0))
    except LimitError:
        pass  # motors without limits: so have the joints
    try:
        slow, fast = tr.rate_polytope(tr.y_start).box()
        model.lowerVelocityLimit[at], model.upperVelocityLimit[at] = slow, fast
    except LimitError:
        pass


def _postures(tr: Transmission, rng: np.random.Generator) -> list[Vector]:
    """Postures within the position limits, or around the start, that are reached."""
    try:
        low, high = tr.domain()
    except InputError:
        low, high = tr.y_start - AROUND, tr.y_start + AROUND
    found = list[Vector]()
    for y in rng.uniform(low, high, (SAMPLES, len(low))):
        try:
            tr.jacobian(y)
        except BranchError:
            continue
        found.append(y)
    return found or [tr.y_start]


def _measure(tr: Transmission, masses: str, rotors: str, errors: dict[str, list[float]]) -> None:
    """Efforts of the exact linkage against those of its approximation."""
    rng, p = np.random.default_rng(1), len(tr.joints)
    bare = tr.mech.model.copy()
    bare.armature = np.zeros(bare.nv)
    rods = Transmission(replace(tr.mech, model=bare, forces=()), tr.joints, tr.start)
    kept = [bare.getJointId(name) for name in tr.joints]
    serial = bare.copy()
    for j in range(1, serial.njoints):
        if j not in kept:
            serial.inertias[j] = pin.Inertia.Zero()
    alone = with_locked_joints(serial, kept, tr.start)
    lumped = alone if masses == "none" else with_locked_joints(bare, kept, tr.start)
    order = [int(alone.idx_vs[alone.getJointId(name)]) for name in tr.joints]
    armature = np.diag(tr.reflected_inertia(tr.y_start, rotors=True)) * (rotors == "diagonal")
    inertias, missed, size = tr.rotor_inertias, list[tuple[float, float]](), 1e-300
    for y in _postures(tr, rng):
        yd, ydd = (tr.scales[1] * rng.uniform(-x, x, p) for x in (RATES, ACCELERATIONS))
        J = tr.jacobian(y)
        exact = J.T @ (inertias * (J @ ydd + tr.curvature(y, yd)))
        of_rods = rods.linkage_efforts(y, yd, ydd)
        own, welded = (_tree_efforts(m, order, y, yd, ydd) for m in (alone, lumped))
        size = max(size, float(np.abs(own + of_rods + exact).max()))
        missed.append((
            float(np.abs(welded - own - of_rods).max()),
            float(np.abs(armature * ydd - exact).max()),
        ))  # fmt: skip
    errors["masses"] += [a / size for a, _ in missed]
    errors["rotors"] += [b / size for _, b in missed]


def _tree_efforts(model: pin.Model, order: list[int], *motion: Vector) -> Vector:
    """Joint efforts of a tree, in the order of the joints."""
    placed = np.zeros((3, model.nv))
    placed[:, order] = motion
    efforts: Vector = pin.rnea(model, model.createData(), *placed)[order]
    return efforts
