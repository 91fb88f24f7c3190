"""USD with UsdPhysics: rigid bodies and joints of a stage, with loops, in a `Linkage`.

Of a joint, X0 and X1 are its frames in both bodies; it is at zero where they coincide. Joints with
``physics:excludeFromArticulation`` close loops, and are cut. Lengths, masses and angles are in the
units of the stage, and degrees. Reference: the schema UsdPhysics of OpenUSD.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import Array, Vector, listing
from holoctl.base.errors import InputError, LoadError
from holoctl.base.tolerances import GEOMETRY_OF_FILES, SIX_DIGITS
from holoctl.io.friction_and_springs import FrictionAndSprings, with_losses
from holoctl.io.reader_limits import MOST_PARTS, check_count, check_size
from holoctl.io.rotations import z_to
from holoctl.io.xml import blamed_on
from holoctl.mechanism.joint_types import GROUND
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.linkage import Linkage
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["read_usd"]

log = logging.getLogger(__name__)

JOINTS = {
    "PhysicsRevoluteJoint": ("revolute", 1), "PhysicsPrismaticJoint": ("prismatic", 1),
    "PhysicsSphericalJoint": ("spherical", 3), "PhysicsFixedJoint": ("weld", 0),
}  # fmt: skip
"""Types of joints, with their degrees of freedom."""

DRIVES = {
    "PhysicsRevoluteJoint": "PhysicsDriveAPI:angular",
    "PhysicsPrismaticJoint": "PhysicsDriveAPI:linear",
}
"""Of the joints that may have a motor, the schema that gives it."""

MOVING = "Mimic", "Gear", "RackAndPinion", "Tendon", "Equality"
"""Words of types and applied schemas that couple joints, and are not of UsdPhysics."""

LOSSES = "friction", "damping", "stiffness"
"""Words of attributes of joints for friction and springs, which are not of UsdPhysics."""

OF_DRIVES = "drive:", "limit:", "physxLimit:", "state:"
"""Attributes of drives and limits, whose stiffness and damping are not of the joint itself."""

ROOT, EARTH = "root_joint", 9.81  # m/s^2
"""The joint that ties a robot to the world, if the stage has none; and gravity by default."""


@dataclass(frozen=True)
class _UsdPrim:
    """A place in a stage: errors name the file and the path."""

    file: str
    path: str

    def error(self, message: str) -> LoadError:
        """An error at this place."""
        return LoadError(message, file=self.file, key=self.path)


@dataclass(frozen=True)
class _UsdStage:
    """A stage, its units in m and kg, and the prims of its bodies and joints by name."""

    file: str
    stage: Any
    places: Any
    metre: float
    kilogram: float
    bodies: dict[str, Any]
    joints: dict[str, Any]

    def at(self, prim: Any) -> _UsdPrim:
        """For errors."""
        return _UsdPrim(self.file, str(prim.GetPath()))

    def world(self, prim: Any) -> pin.SE3:
        """The pose of a prim, m."""
        M = np.array(self.places.GetLocalToWorldTransform(prim))
        R = M[:3, :3].T
        if np.abs(R @ R.T - np.eye(3)).max() > SIX_DIGITS or np.linalg.det(R) < 0.0:
            raise self.at(prim).error("its axes are scaled or mirrored, which is not read")
        return pin.SE3(R, self.metre * M[3, :3])


def read_usd(path: Path, free_flyer: bool, tolerance: float | None, losses: bool) -> Mechanism:
    """The mechanism of a stage.

    Parameters
    ----------
    path : Path
    free_flyer : bool
        Let the robot float, if no joint ties it to the world; it is fixed otherwise.
    tolerance : float or None
        Tolerance of the geometry; None: 1e-4.
    losses : bool
        As for the other readers; UsdPhysics has none.

    Raises
    ------
    LoadError
        With file and path of the prim: for what is not understood or is not a mechanism; bodies
        whose mass, centre or inertia is not given, as shapes are not read.
    InputError
        Without usd-core.
    """
    S = _opened(path)
    place = _UsdPrim(S.file, "/")
    linkage = Linkage(path.stem, _gravity(S))
    for name, body in S.bodies.items():
        with blamed_on(S.at(body)):
            linkage.add_body(name, *_inertia(S, body))
    cut, motors, positions = list[str](), list[str](), dict[str, Any]()
    bounds: dict[str, dict[str, Any]] = {"effort": {}, "position": {}}
    tied, width = False, GEOMETRY_OF_FILES if tolerance is None else tolerance
    for name, joint in S.joints.items():
        kind, ends, poses, positions[name] = _joint(S, joint, width)
        tied |= GROUND in ends
        with blamed_on(S.at(joint)):
            linkage.add_joint(name, kind, *ends, *poses)
        if joint.GetAttribute("physics:excludeFromArticulation").Get():
            cut.append(name)
        if kind in ("revolute", "prismatic"):
            motors += [name] if _limits(S, joint, name, kind, bounds) else []
    if tied and free_flyer:
        raise place.error("free_flyer: a joint ties the robot to the world")
    if not tied:
        with blamed_on(place):
            _tie(S, linkage, free_flyer, positions)
    check_size(place, sum(JOINTS[x.GetTypeName()][1] for x in S.joints.values()))
    with blamed_on(place):
        made = linkage.mechanism(cut, motors)
        reference = {x: y for x, y in positions.items() if y is not None and x in made.model.names}
        limits = Limits(**{x: y for x, y in bounds.items() if y}) if any(bounds.values()) else None
        mech = linkage.mechanism(cut, motors, reference, width, limits=limits)
    return with_losses(mech, FrictionAndSprings(S.file, place), losses)


def _opened(path: Path) -> _UsdStage:
    try:
        from pxr import Tf, Usd, UsdGeom, UsdPhysics
    except ImportError:
        raise InputError("a USD is read with usd-core: pip install 'holoctl[usd]'") from None
    file = str(path)
    if not path.is_file():
        raise LoadError("there is no such file", file=file)
    try:
        stage = Usd.Stage.Open(file)
    except Tf.ErrorException as error:
        said = " ".join(str(error).split())[:300]
        raise LoadError(f"OpenUSD cannot read it: {said}", file=file) from None
    metre, kilogram = (
        UsdGeom.GetStageMetersPerUnit(stage),
        UsdPhysics.GetStageKilogramsPerUnit(stage),
    )
    if not (0.0 < metre < np.inf and 0.0 < kilogram < np.inf):
        raise LoadError(
            f"metersPerUnit and kilogramsPerUnit must be above zero; got {metre:g}, {kilogram:g}",
            file=file,
        )
    bodies, joints, off = list[Any](), list[Any](), list[str]()
    for prim in Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()):
        if _is_body(prim):
            bodies.append(prim)
        elif prim.GetTypeName() in JOINTS or "Joint" in prim.GetTypeName():
            on = prim.GetAttribute("physics:jointEnabled").Get()
            if on is False:
                off.append(str(prim.GetPath()))
            else:
                joints.append(prim)
        check_count(_UsdPrim(file, str(prim.GetPath())), len(bodies) + len(joints), MOST_PARTS,
                    "bodies and joints")  # fmt: skip
    angles = ((x, x.GetAttribute("physics:coneAngle0Limit").Get()) for x in joints)
    cones = [str(x.GetPath()) for x, angle in angles if angle is not None and angle >= 0.0]
    if cones:
        log.warning("%s: limit cones of spherical joints are not read: %s", file, listing(cones))
    if off:
        log.warning("%s: joints that are switched off are left out: %s", file, listing(off))
    _warn_of_the_rest(file, joints)
    if missing := [str(x).split("\n")[0][:300] for x in stage.GetCompositionErrors()]:
        log.warning("%s: OpenUSD leaves out what it cannot compose: %s", file, listing(missing))
    if not bodies:
        raise LoadError("there are no rigid bodies (PhysicsRigidBodyAPI)", file=file)
    names = Counter(x.GetName() for x in (*bodies, *joints))
    named = [
        {x.GetName() if names[x.GetName()] == 1 else str(x.GetPath())[1:]: x for x in some}
        for some in (bodies, joints)
    ]
    return _UsdStage(
        file, stage, UsdGeom.XformCache(Usd.TimeCode.EarliestTime()), metre, kilogram, *named
    )


def _warn_of_the_rest(file: str, joints: list[Any]) -> None:
    """Name drives, limits, friction and springs of joints that are left out."""
    rest, losses = list[str](), list[str]()
    for joint in joints:
        path, kind = joint.GetPath(), joint.GetTypeName()
        rest += [
            f"{x} of {path}" for x in _schemas(joint)
            if x.startswith(("PhysicsDriveAPI:", "PhysicsLimitAPI:")) and x != DRIVES.get(kind)
        ]  # fmt: skip
        losses += [
            f"{x.GetName()} of {path}" for x in joint.GetAuthoredAttributes()
            if any(word in x.GetName().lower() for word in LOSSES)
            and not x.GetName().startswith(OF_DRIVES) and x.Get()
        ]  # fmt: skip
    if rest:
        log.warning("%s: drives and limits that are not read: %s", file, listing(rest))
    if losses:
        log.warning("%s: friction and springs are not read: %s", file, listing(losses))


def _is_body(prim: Any) -> bool:
    on = prim.GetAttribute("physics:rigidBodyEnabled").Get()
    return "PhysicsRigidBodyAPI" in prim.GetAppliedSchemas() and on is not False


def _gravity(S: _UsdStage) -> Vector:
    """In axes of the world, m/s^2."""
    from pxr import UsdGeom

    scenes = [x for x in S.stage.Traverse() if x.GetTypeName() == "PhysicsScene"]
    if len(scenes) > 1:
        raise S.at(scenes[1]).error("one PhysicsScene is read; there are more")
    down: Vector = -np.eye(3)["XYZ".index(UsdGeom.GetStageUpAxis(S.stage))]
    if not scenes:
        return EARTH * down
    given = np.array(scenes[0].GetAttribute("physics:gravityDirection").Get(), dtype=float)
    size = float(scenes[0].GetAttribute("physics:gravityMagnitude").Get())
    if not np.isfinite(given).all() or np.isnan(size):
        raise S.at(scenes[0]).error(
            f"gravityDirection and gravityMagnitude must be numbers; got {given}, {size:g}"
        )
    if (norm := np.linalg.norm(given)) > 0.0:
        down = given / norm
    # below zero: that of the earth, whatever the unit of length
    found: Vector = (S.metre * size if 0.0 <= size < np.inf else EARTH) * down
    return found


def _inertia(S: _UsdStage, body: Any) -> tuple[float, Vector, Array]:
    """Mass, centre of mass and inertia about it, in the axes of the body."""
    if body.GetAttribute("physics:kinematicEnabled").Get():
        raise S.at(body).error("a kinematic body is moved from outside, which is not read")
    S.world(body)
    mass, centre, moments, axes = (
        body.GetAttribute(f"physics:{x}").Get()
        for x in ("mass", "centerOfMass", "diagonalInertia", "principalAxes")
    )
    if "PhysicsMassAPI" not in body.GetAppliedSchemas():
        mass = centre = moments = axes = None  # not understood without the schema
    missing = [] if mass else ["mass"]
    missing += [] if centre is not None and np.isfinite(centre).all() else ["centerOfMass"]
    missing += [] if moments is not None and np.any(moments) else ["diagonalInertia"]
    if missing:
        raise S.at(body).error(
            f"physics:{' and physics:'.join(missing)} must be given (PhysicsMassAPI): what is left "
            "to the shapes of a body is not computed here"
        )
    R = np.eye(3) if axes is None or axes.GetLength() == 0.0 else _rotation(S.at(body), axes)
    I = R @ np.diag(np.array(moments, dtype=float)) @ R.T  # noqa: E741
    unit = S.kilogram * S.metre**2
    return S.kilogram * float(mass), S.metre * np.array(centre, dtype=float), unit * I


def _rotation(place: _UsdPrim, quaternion: Any) -> Array:
    x, y, z = quaternion.GetImaginary()
    found = pin.Quaternion(float(quaternion.GetReal()), float(x), float(y), float(z))
    if not 0.0 < found.norm() < np.inf:
        raise place.error(f"a rotation must be a quaternion (w, x, y, z); got {quaternion}")
    found.normalize()
    R: Array = found.toRotationMatrix()
    return R


def _joint(S: _UsdStage, joint: Any, width: float) -> tuple[str, list[str], list[pin.SE3], Any]:
    """The type of a joint in `Linkage`, its bodies, its frames there, and where it is now."""
    place, kind = S.at(joint), joint.GetTypeName()
    coupled = [x for x in (kind, *_schemas(joint)) if any(word in x for word in MOVING)]
    if kind not in JOINTS or coupled:
        raise place.error(
            f"{(coupled or [kind])[0]} is not read; joints are {listing(list(JOINTS))}"
        )
    for own in joint.GetAuthoredAttributes():
        if own.GetName().endswith("armature") and (armature := own.Get()):
            raise place.error(
                f"{own.GetName()} is not read, {armature}: set it to zero, and add rotor "
                "inertias to model.armature of what is read (Mechanism.with_model)"
            )
    kind, ends, poses, frames = JOINTS[kind][0], list[str](), list[pin.SE3](), list[pin.SE3]()
    R = np.eye(3)
    if kind in ("revolute", "prismatic"):
        axis = str(joint.GetAttribute("physics:axis").Get())
        if axis not in ("X", "Y", "Z"):
            raise place.error(f"physics:axis must be X, Y or Z; got {axis[:60]!r}")
        R = z_to(np.eye(3)["XYZ".index(axis)])
    for i in "01":
        body, at = _end(S, joint, i)
        p, turned = (joint.GetAttribute(f"physics:local{x}{i}").Get() for x in ("Pos", "Rot"))
        local = pin.SE3(_rotation(place, turned) @ R, S.metre * np.array(p, dtype=float))
        ends.append(body)
        poses.append(at * local)
        where = pin.SE3.Identity() if body == GROUND else S.world(S.bodies[body])
        frames.append(where * poses[-1])
    X = frames[0].actInv(frames[1])
    if (apart := _apart(kind, X)) > width:
        log.warning(
            "%s: %s: its bodies are %.2g m or rad away from where it can hold them; the frames of "
            "joints count, not poses of bodies", S.file, joint.GetPath(), apart,
        )  # fmt: skip
    return kind, ends, poses, _position(kind, X)


def _apart(kind: str, X: pin.SE3) -> float:
    """How far X is from a motion of the joint, m or rad."""
    p, tilt = np.abs(X.translation), float(np.hypot(*X.rotation[:2, 2]))
    if kind == "revolute":
        tilt = tilt if X.rotation[2, 2] > 0.0 else np.pi
    else:
        tilt = 0.0 if kind == "spherical" else float(np.linalg.norm(pin.log3(X.rotation)))
    return max(tilt, float(p[:2].max() if kind == "prismatic" else p.max()))


def _position(kind: str, X: pin.SE3) -> float | list[float] | None:
    """Of a joint whose second frame is at X in the first one."""
    if kind == "revolute":
        return float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))
    if kind == "prismatic":
        return float(X.translation[2])
    return list(pin.SE3ToXYZQUAT(X)[3:]) if kind == "spherical" else None


def _schemas(prim: Any) -> Iterator[str]:
    """Applied schemas, also those that this OpenUSD does not know."""
    listed = prim.GetMetadata("apiSchemas")
    yield from (listed.GetAddedOrExplicitItems() if listed is not None else ())


def _end(S: _UsdStage, joint: Any, i: str) -> tuple[str, pin.SE3]:
    """The body of a joint, or the ground, and the frame there that it refers to."""
    targets = joint.GetRelationship(f"physics:body{i}").GetTargets()
    if len(targets) > 1:
        raise S.at(joint).error(f"physics:body{i} must name one prim; got {len(targets)}")
    if not targets:
        return GROUND, pin.SE3.Identity()
    prim = S.stage.GetPrimAtPath(targets[0])
    if not prim:
        raise S.at(joint).error(f"physics:body{i}: there is no prim {str(targets[0])[:80]!r}")
    pose, body = S.world(prim), prim
    while body and not _is_body(body):
        body = body.GetParent()
    if not body:
        return GROUND, pose
    name = next(x for x, y in S.bodies.items() if y == body)
    return name, S.world(body).actInv(pose)


def _limits(
    S: _UsdStage, joint: Any, name: str, kind: str, bounds: dict[str, dict[str, Any]]
) -> bool:
    """Add the limits of a joint; whether it has a drive."""
    turns = kind == "revolute"
    sides = [joint.GetAttribute(f"physics:{x}Limit").Get() for x in ("lower", "upper")]
    unit = np.pi / 180.0 if turns else S.metre
    if any(x is not None and np.isfinite(x) for x in sides):
        low, high = (unit * float(x) for x in sides)
        bounds["position"][name] = (low, high)
    drive = "angular" if turns else "linear"
    driven = DRIVES[joint.GetTypeName()] in joint.GetAppliedSchemas()
    most = joint.GetAttribute(f"drive:{drive}:physics:maxForce").Get()
    if driven and most is not None and np.isfinite(most):
        force = S.kilogram * S.metre
        bounds["effort"][name] = float(most) * (force * S.metre if turns else force)
    return driven


def _tie(S: _UsdStage, linkage: Linkage, free_flyer: bool, positions: dict[str, Any]) -> None:
    """Tie the root of the robot to the world: that of the articulation, or its first body."""
    root = next(iter(S.bodies))
    for prim in S.stage.Traverse():
        if "PhysicsArticulationRootAPI" in prim.GetAppliedSchemas():
            inside = [x for x, y in S.bodies.items() if y.GetPath().HasPrefix(prim.GetPath())]
            root = inside[0] if inside else root
            break
    pose = S.world(S.bodies[root])
    if free_flyer:
        linkage.add_joint(ROOT, "free", GROUND, root)
        positions[ROOT] = pin.SE3ToXYZQUAT(pose).tolist()
        return
    linkage.add_joint(ROOT, "weld", GROUND, root, pose)
    log.warning(
        "%s: no joint ties the robot to the world, so %r is fixed where it is; free_flyer=True "
        "lets it float", S.file, root,
    )  # fmt: skip
