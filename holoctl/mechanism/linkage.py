"""Bodies and joints, loops included, to a `Mechanism`: the spanning tree is found here.

The joints between bodies form a graph. A spanning tree of it, rooted in the ground, becomes
the model; each joint that is left over closes a loop and becomes a `Closure`. What depends on
the choice: the coordinates, how many rows there are. What does not: the motion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import (
    Vector,
    counted,
    known_name,
    listing,
    name_list,
    number,
    numbers,
    one_of,
    quiet,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.constraints.closure import Closure, check_pitch
from holoctl.mechanism.joint_coordinates import child_frame, part_names
from holoctl.mechanism.mechanism import Mechanism
from holoctl.tree.inertia import ROUNDED, check_mass, check_moments, rigid_body
from holoctl.tree.joints import check_placement

__all__ = ["JOINT_TYPES", "Linkage"]

Array = NDArray[np.float64]

_Place = tuple[str, pin.SE3]
"""A joint of the model, and a placement in it."""

GROUND = "universe"

_IN_SERIES: dict[str, tuple[str, ...]] = {
    "revolute": ("Rz",),
    "prismatic": ("Pz",),
    "cylindrical": ("Pz", "Rz"),
    "universal": ("Rx", "Ry"),
    "planar": ("Px", "Py", "Rz"),
}
"""Joints that are turns (R) and slides (P) about axes of the joint frame, one after the other.
Not Pinocchio's composite and universal joints, whose dJ is wrong; not its planar joint, whose
angle is a cosine and a sine."""

_DOF = {name: len(parts) for name, parts in _IN_SERIES.items()} | {
    "screw": 1, "spherical": 3, "weld": 0, "free": 6,
}  # fmt: skip

_OTHER_UPSIDE_DOWN = ("spherical", "free")
"""Joints that have other coordinates where the parent hangs from the child."""

JOINT_TYPES = tuple(sorted(_DOF))
"""The types of joints that `Linkage.add_joint` takes."""


@dataclass(frozen=True, eq=False)
class _Joint:
    """A joint as it was added; `at_parent` and `at_child` are its frame in the two bodies."""

    name: str
    type: str
    parent: str
    child: str
    at_parent: pin.SE3
    at_child: pin.SE3
    pitch: float | None = None

    @property
    def dof(self) -> int:
        return _DOF[self.type]

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of its coordinates in a tree."""
        several = tuple(f"{self.name}[{i}]" for i in range(self.dof))
        return several if self.dof != 1 else (self.name,)

    @property
    def new_names(self) -> set[str]:
        """All names that it may bring into a model, whatever is cut; ``name[0]`` in any case,
        for a joint with that name would be taken for a part of this one."""
        return {self.name, *self.coordinates, f"{self.name}[0]", child_frame(self.name)}


@dataclass(frozen=True, eq=False)
class _Branch:
    """A joint of the tree, from the body above to the body below.

    `part` says that below hangs but a part of that body, which a weld ties to the rest.
    """

    joint: _Joint
    below: str
    part: bool = False

    @property
    def above(self) -> str:
        return self.joint.child if self.reversed else self.joint.parent

    @property
    def reversed(self) -> bool:
        """Whether the parent of the joint hangs from its child."""
        return self.below == self.joint.parent


@dataclass(frozen=True, eq=False, repr=False)
class Linkage:
    """Bodies and the joints between them, in any order, loops included.

    A builder: add bodies and joints, then ask for a `mechanism`, as often as you like. The
    ground is the body ``"universe"``. A joint between bodies that are connected already closes
    a loop; nothing needs to be said about it.

    Parameters
    ----------
    name : str, optional
        Name of the mechanisms.
    gravity : (3,) array_like, optional
        Acceleration of gravity in world axes, m/s^2.

    Raises
    ------
    InputError
        For a name that is no text, or a gravity that is not three finite numbers.

    Notes
    -----
    Which joints are cut, unless `mechanism` is told: joints stay in the tree in the order free,
    weld, actuated, then by degrees of freedom (a cut joint of many has few rows), then by
    distance from the ground in joints (a shallow tree), then by name. A joint that would close a
    loop with those before it is cut (Kruskal's algorithm). The rule does not depend on the order
    of the calls.
    """

    name: str = "linkage"
    gravity: Any = (0.0, 0.0, -9.81)

    _bodies: dict[str, pin.Inertia] = field(init=False, default_factory=dict)
    _joints: dict[str, _Joint] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        _text("Linkage: name", self.name)
        gravity = vector("Linkage: gravity", self.gravity, 3, "m/s^2, world axes")
        gravity.setflags(write=False)
        object.__setattr__(self, "gravity", gravity)

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies, as they were added; the ground is not among them."""
        return tuple(self._bodies)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, as they were added."""
        return tuple(self._joints)

    @property
    def loops(self) -> tuple[tuple[str, ...], ...]:
        """One tuple for each independent loop: the joints around it, that which is cut first."""
        return tuple(_spanning(_preferred(self._joints.values(), frozenset()))[1].values())

    def __repr__(self) -> str:
        bodies, joints = len(self._bodies), counted(len(self._joints), "joint")
        return (
            f"<Linkage {self.name!r}: {bodies} {'body' if bodies == 1 else 'bodies'}, {joints}, "
            f"{counted(len(self.loops), 'loop')}>"
        )

    @quiet
    def add_body(
        self, name: str, mass: float, com: Any = (0.0, 0.0, 0.0), inertia: Any = None
    ) -> None:
        """Add a rigid body.

        Parameters
        ----------
        name : str
            Also the name of a frame of the model. No joint may have it.
        mass : float
            kg, zero or more.
        com : (3,) array_like, optional
            Centre of mass in the axes of the body, m.
        inertia : (3, 3) array_like, optional
            Inertia about the centre of mass in the axes of the body, kg m^2. Default: none, a
            point mass.

        Raises
        ------
        InputError
            For a name that is in use, a negative mass, numbers that are not finite, an inertia
            that is not symmetric or that no distribution of mass has (a principal moment is
            negative, or larger than the sum of the others). Nothing is added then.
        """
        self._check_new(name, "body")
        owner = f"body {name!r}"
        m = number(f"{owner}: mass", mass, "kg")
        check_mass(owner, m)
        lever = vector(f"{owner}: com", com, 3, "m, axes of the body")
        self._bodies[name] = rigid_body(m, lever, _checked_inertia(owner, inertia))

    @quiet
    def add_joint(
        self,
        name: str,
        type: str,
        parent: str,
        child: str,
        placement_parent: pin.SE3 | None = None,
        placement_child: pin.SE3 | None = None,
        *,
        pitch: float | None = None,
    ) -> None:
        """Add a joint; its bodies may follow later.

        Coordinates are those of the child against the parent, wherever the tree runs: see
        `joint_motion` for their meaning, type by type.

        Parameters
        ----------
        name : str
            Also the name of the coordinate; ``name[i]`` where there are several.
        type : str
            ``"revolute"`` (about z of the joint frame), ``"prismatic"`` (along z),
            ``"cylindrical"`` (along z, about z), ``"universal"`` (about x of the parent's
            frame, then about y of the child's), ``"spherical"``, ``"planar"`` (x, y, about the
            normal z), ``"screw"`` (about z and along it), ``"weld"``, ``"free"``.
        parent, child : str
            Two bodies, or one of them ``"universe"``.
        placement_parent, placement_child : pin.SE3, optional
            The joint frame in each body; at zero the two coincide. Default: that of the body.
            To turn z along x, in both: ``pin.SE3(pin.utils.rotate("y", np.pi / 2), point)``.
        pitch : float, optional
            Of a screw, and of no other joint, m/rad: as in `Closure`.

        Raises
        ------
        InputError
            For a name that is in use, an unknown type, two equal bodies, a placement that is
            none, a screw without a pitch or with one that is zero or not finite. Nothing is
            added then.
        """
        self._check_new(name, "joint")
        owner = f"joint {name!r}"
        one_of(f"{owner}: type", type, JOINT_TYPES)
        ends = (_text(f"{owner}: parent", parent), _text(f"{owner}: child", child))
        if parent == child:
            raise InputError(f"{owner}: parent and child are the same body {parent!r}")
        at_parent = _placement(f"{owner}: placement_parent", placement_parent)
        at_child = _placement(f"{owner}: placement_child", placement_child)
        check_pitch(owner, type, pitch)
        self._joints[name] = _Joint(name, type, *ends, at_parent, at_child, pitch)

    @quiet
    def mechanism(
        self,
        cut: Iterable[str] = (),
        actuated: Iterable[str] = (),
        reference: Mapping[str, Any] | None = None,
    ) -> Mechanism:
        """The mechanism: a spanning tree of the joints, and a `Closure` for each other joint.

        A closure has the name and the type of the joint that was cut; `joint_motion` reads its
        position and rate. Every body is a frame of the model, by its name; so is every joint of
        the tree: the joint frame in the body that hangs from it. A body that a weld of the tree
        holds becomes part of the body above.

        Parameters
        ----------
        cut : iterable of str, optional
            The joints to cut: just enough of them, so that the others form a tree. Default: by
            the rule of `Linkage`.
        actuated : iterable of str, optional
            Coordinates with a motor, as for `Mechanism`. A joint with a motor may be cut: see
            Notes.
        reference : mapping of str to float or list, optional
            Positions of joints of the tree, as `joint_motion` gives them (rad, m, quaternions
            x y z w): where `hc.assemble` starts. Default: zero, for those not named.

        Returns
        -------
        Mechanism

        Raises
        ------
        InputError
            For joints of bodies that do not exist, bodies without a connection to the ground, a
            cut that leaves a loop or separates a body, a free joint that is cut, loops of welds,
            unknown names and positions of the wrong size.

        Notes
        -----
        A motor needs a coordinate. So a cut joint with a motor keeps its coordinates: its child
        body is divided into parts of equal mass and inertia (two for one such joint), one of
        which hangs in the tree from the joint; a weld ``name.weld`` ties it to the other.
        Together they are the body, so motion and torques are those of any other cut.

        A spherical or free joint whose parent hangs from its child in the tree has the inverse
        coordinates in q and v. `reference` and `joint_motion` are not concerned. A motor on it
        is refused, for it would act in other axes.
        """
        joints = [self._joints[name] for name in sorted(self._joints)]
        self._check_names()
        self._check_connected(joints)
        motors = _motors(self.name, joints, actuated)
        order = _preferred(joints, {j.name for j in motors.values()})
        given = tuple(name_list(f"{self.name}: cut", cut))
        tree = self._chosen(order, given) if given else _spanning(order)[0]
        loose = [j for j in joints if j not in tree]
        self._check_free(loose, tree)
        parts = _parts([j for j in loose if j in motors.values()])
        upside = {b.joint.name for b in (*_branches(tree), *parts) if b.reversed}
        self._check_motors(motors, upside)
        model, places = self._model(_branches(tree), parts)
        divided = {b.joint.name: b for b in parts}
        closures = [
            _weld(divided[j.name], places) if j.name in divided else self._closure(j, places, tree)
            for j in loose
        ]
        cut_now = {j.name for j in loose if j.name not in divided}
        q = self._reference(model, reference, cut_now, upside)
        return Mechanism(model, closures, tuple(motors), reference=q, name=self.name)

    # ------------------------------------------------------------------------------ checks

    def _check_new(self, name: Any, what: str) -> None:
        _text(f"Linkage: the name of a {what}", name)
        if name == GROUND:
            raise InputError(f"{what} {name!r}: this name stands for the ground; choose another")
        for kind, names in (("body", self._bodies), ("joint", self._joints)):
            if name in names:
                raise InputError(
                    f"{what} {name!r}: a {kind} of {self.name!r} has this name; bodies and joints "
                    "are frames of one model, so their names must differ"
                )

    def _check_names(self) -> None:
        """That ``name[0]`` of one joint is not the name of another joint or body."""
        made = Counter(self.bodies)
        for joint in self._joints.values():
            made.update(joint.new_names)
        twice = sorted(name for name, count in made.items() if count > 1)
        if twice:
            raise InputError(
                f"{self.name}: joints need these names themselves, for their coordinates and "
                f"frames: {listing(twice)}; rename the bodies or joints that have them"
            )

    def _check_connected(self, joints: Sequence[_Joint]) -> None:
        valid = [GROUND, *self._bodies]
        for joint in joints:
            for body in (joint.parent, joint.child):
                known_name(body, valid, "body", f"joint {joint.name!r}")
        apart = sorted(self._bodies.keys() - _distances(joints))
        if apart:
            raise InputError(
                f"{self.name}: nothing connects these bodies to the ground: {listing(apart)}; is a "
                "joint missing? For bodies that move freely, add a free joint from 'universe'"
            )

    def _chosen(self, order: Sequence[_Joint], cut: tuple[Any, ...]) -> list[_Joint]:
        """The tree that is left by the joints that the caller cuts."""
        names = tuple(sorted(j.name for j in order))
        for name in cut:
            known_name(name, names, "joint", f"{self.name}: cut")
        if len(set(cut)) != len(cut):
            raise InputError(f"{self.name}: cut names a joint twice: {listing(cut)}")
        left = [j for j in order if j.name not in cut]
        apart = sorted(self._bodies.keys() - _distances(left))
        if apart:
            near = [j.name for j in order if j.name in cut and {j.parent, j.child} & set(apart)]
            raise InputError(
                f"{self.name}: cut separates {listing(apart)} from the ground; keep "
                f"{'one of ' if len(near) > 1 else ''}{listing(sorted(near))}"
            )
        tree, loops = _spanning(left)
        if loops:
            told = "; ".join(f"{name!r} closes {_around(loop)}" for name, loop in loops.items())
            raise InputError(
                f"{self.name}: cut {listing(cut)} leaves {counted(len(loops), 'loop')}: {told}; "
                "cut one joint more of each"
            )
        return tree

    def _check_free(self, loose: Sequence[_Joint], tree: Sequence[_Joint]) -> None:
        for joint in loose:
            if joint.type == "free":
                raise InputError(
                    f"{self.name}: the free joint {joint.name!r} would be cut, but it holds "
                    f"nothing; leave it away, or cut another joint of {_around(_loop(joint, tree))}"
                )

    def _check_motors(self, motors: Mapping[str, _Joint], upside: set[str]) -> None:
        for motor, joint in motors.items():
            if joint.name in upside and joint.type in _OTHER_UPSIDE_DOWN:
                raise InputError(
                    f"{self.name}: actuated: in this tree {joint.parent!r} hangs from "
                    f"{joint.child!r}, so {motor!r} would act in other axes than those of the "
                    f"{joint.type} joint; exchange its parent and child, or choose another cut"
                )

    # ---------------------------------------------------------------------------- building

    def _model(
        self, branches: Sequence[_Branch], parts: Sequence[_Branch]
    ) -> tuple[pin.Model, dict[str, _Place]]:
        """The tree, numbered depth-first, and where each body is in it."""
        model = pin.Model()
        model.name, model.gravity.linear = self.name, self.gravity
        shares = Counter(b.below for b in parts)
        places = {GROUND: (GROUND, pin.SE3.Identity())}
        below: dict[str, list[_Branch]] = {}
        for branch in sorted((*branches, *parts), key=lambda b: b.joint.name, reverse=True):
            below.setdefault(branch.above, []).append(branch)
        stack = list(below.get(GROUND, ()))
        while stack:
            branch = stack.pop()
            joint, X = _hang(model, branch, places[branch.above])
            share = _share(self._bodies[branch.below], 1 + shares[branch.below])
            model.appendBodyToJoint(model.getJointId(joint), share, X)
            if not branch.part:
                _add_frame(model, branch.below, joint, X, pin.FrameType.BODY)
                places[branch.below] = (joint, X)
                stack += below.get(branch.below, ())
        return model, places

    def _closure(
        self, joint: _Joint, places: Mapping[str, _Place], tree: Sequence[_Joint]
    ) -> Closure:
        (above, A), (below, B) = places[joint.parent], places[joint.child]
        if above == below:
            raise InputError(
                f"{self.name}: joint {joint.name!r} closes {_around(_loop(joint, tree))}, where "
                f"welds make one body of {joint.parent!r} and {joint.child!r}; leave "
                f"{joint.name!r} away, or cut one of the welds"
            )
        a, b = (above, A * joint.at_parent), (below, B * joint.at_child)
        return Closure(a, b, joint=joint.type, name=joint.name, pitch=joint.pitch)

    def _reference(
        self, model: pin.Model, reference: Any, cut: set[str], upside: set[str]
    ) -> Vector:
        q: Vector = pin.neutral(model)
        if reference is None:
            return q
        if not isinstance(reference, Mapping):
            raise InputError(
                f"{self.name}: reference must be a mapping from joint names to positions; got "
                f"{type(reference).__name__}"
            )
        for name, given in reference.items():
            known_name(name, tuple(self._joints), "joint", f"{self.name}: reference")
            if name in cut:
                raise InputError(
                    f"{self.name}: reference: {name!r} is cut in this mechanism, so it has no "
                    "coordinate that could be set; cut=[...] chooses other joints "
                    f"(cut now: {listing(sorted(cut))})"
                )
            joint = self._joints[name]
            value = _position(joint, given, joint.name in upside)
            start = 0
            for part in part_names(model, name):
                i = model.getJointId(part)
                n = model.nqs[i]
                q[model.idx_qs[i] : model.idx_qs[i] + n] = value[start : start + n]
                start += n
        return q


# ------------------------------------------------------------------------ the spanning tree


def _preferred(joints: Iterable[_Joint], motors: Iterable[str]) -> list[_Joint]:
    """The joints in the order in which they are taken into the tree."""
    joints, driven = list(joints), set(motors)
    far = _distances(joints)
    first = {"free": 0, "weld": 1}

    def key(j: _Joint) -> tuple[int, bool, int, float, str]:
        depth = far.get(j.parent, np.inf) + far.get(j.child, np.inf)
        return first.get(j.type, 2), j.name not in driven, j.dof, depth, j.name

    return sorted(joints, key=key)


def _distances(joints: Iterable[_Joint]) -> dict[str, int]:
    """How many joints each body is away from the ground; without those that are not connected."""
    far, level = {GROUND: 0}, [GROUND]
    near = _neighbours(joints)
    while level:
        found = [other for body in level for _, other in near.get(body, ()) if other not in far]
        far.update(dict.fromkeys(found, far[level[0]] + 1))
        level = list(dict.fromkeys(found))
    return far


def _neighbours(joints: Iterable[_Joint]) -> dict[str, list[tuple[_Joint, str]]]:
    """Body to the joints on it, each with the body at its other end."""
    near: dict[str, list[tuple[_Joint, str]]] = {}
    for j in joints:
        near.setdefault(j.parent, []).append((j, j.child))
        near.setdefault(j.child, []).append((j, j.parent))
    return near


def _spanning(order: Iterable[_Joint]) -> tuple[list[_Joint], dict[str, tuple[str, ...]]]:
    """Kruskal: the joints of the tree, taken in this order; the loop that each other one closes."""
    group: dict[str, list[str]] = {}
    tree: list[_Joint] = []
    rest: list[_Joint] = []
    for j in order:
        one, other = (group.setdefault(body, [body]) for body in (j.parent, j.child))
        if one is other:
            rest.append(j)
            continue
        tree.append(j)
        small, large = sorted((one, other), key=len)
        large += small
        group.update(dict.fromkeys(small, large))
    return tree, {j.name: _loop(j, tree) for j in rest}


def _loop(joint: _Joint, tree: Iterable[_Joint]) -> tuple[str, ...]:
    """The joints around the loop that a joint closes with a tree, from that joint on."""
    near = _neighbours(tree)
    before: dict[str, tuple[str, str]] = {joint.parent: ("", "")}
    stack = [joint.parent]
    while stack:
        body = stack.pop()
        for j, other in near.get(body, ()):
            if other not in before:
                before[other] = (j.name, body)
                stack.append(other)
    around, body = [joint.name], joint.child
    while body != joint.parent:
        name, body = before[body]
        around.append(name)
    return tuple(around)


def _branches(tree: Iterable[_Joint]) -> list[_Branch]:
    """The joints of the tree, each with the body that hangs from it."""
    near = _neighbours(tree)
    branches: list[_Branch] = []
    seen, stack = {GROUND}, [GROUND]
    while stack:
        for joint, other in near.get(stack.pop(), ()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
                branches.append(_Branch(joint, other))
    return branches


def _parts(joints: Iterable[_Joint]) -> list[_Branch]:
    """Where the bodies are that cut joints with a motor hold; the ground is not divided."""
    return [_Branch(j, j.parent if j.child == GROUND else j.child, part=True) for j in joints]


def _motors(owner: str, joints: Iterable[_Joint], actuated: Any) -> dict[str, _Joint]:
    """The joint of each coordinate that has a motor."""
    owners = {name: j for j in joints for name in j.coordinates}
    motors = name_list(f"{owner}: actuated", actuated)
    for motor in motors:
        known_name(motor, tuple(owners), "coordinate", f"{owner}: actuated")
    if len(set(motors)) != len(motors):
        raise InputError(f"{owner}: actuated names a coordinate twice: {listing(motors)}")
    return {motor: owners[motor] for motor in motors}


# -------------------------------------------------------------------------- into Pinocchio


def _hang(model: pin.Model, branch: _Branch, place: _Place) -> _Place:
    """Add a branch to the model below a body that is in place; where the body below is."""
    j = branch.joint
    above, below = (j.at_parent, j.at_child)[:: -1 if branch.reversed else 1]
    last, X = place[0], place[1] * above
    if j.type == "weld":
        _add_frame(model, j.name, last, X, pin.FrameType.FIXED_JOINT)
        return last, X * below.inverse()
    if branch.reversed and j.type in _OTHER_UPSIDE_DOWN:
        _add_frame(model, child_frame(j.name), last, X, pin.FrameType.OP_FRAME)
    for name, kind in _pinocchio_joints(j, branch.reversed):
        number = model.addJoint(model.getJointId(last), kind, X, name)
        model.addJointFrame(number)
        last, X = name, pin.SE3.Identity()
    if last != j.name:  # several joints in series: the frame behind them bears the name
        _add_frame(model, j.name, last, X, pin.FrameType.OP_FRAME)
    return last, below.inverse()


def _pinocchio_joints(j: _Joint, upside: bool) -> list[tuple[str, pin.JointModel]]:
    """Names and joints from above to below; upside down, so that the coordinates stay."""
    if j.type == "spherical":
        return [(j.name, pin.JointModelSpherical())]
    if j.type == "free":
        return [(j.name, pin.JointModelFreeFlyer())]
    if (
        j.type == "screw"
    ):  # seen from the child it turns and moves the other way, so the pitch stays
        axis = np.array([0.0, 0.0, -1.0 if upside else 1.0])
        return [(j.name, pin.JointModelHelicalUnaligned(axis, j.pitch))]
    kinds = [_pinocchio_joint(part, upside) for part in _IN_SERIES[j.type]]
    return list(zip(j.coordinates, kinds, strict=True))[:: -1 if upside else 1]


def _pinocchio_joint(part: str, upside: bool) -> pin.JointModel:
    """A turn or slide along an axis; the other way round if it is upside down."""
    if not upside:
        return getattr(pin, f"JointModel{part[0]}{part[1].upper()}")()
    axis = -np.eye(3)["xyz".index(part[1])]
    return (
        pin.JointModelRevoluteUnaligned if part[0] == "R" else pin.JointModelPrismaticUnaligned
    )(axis)


def _add_frame(model: pin.Model, name: str, joint: str, X: pin.SE3, kind: Any) -> None:
    above = model.getFrameId(joint, pin.FrameType.JOINT) if joint != GROUND else 0
    model.addFrame(pin.Frame(name, model.getJointId(joint), above, X, kind))


def _share(inertia: pin.Inertia, parts: int) -> pin.Inertia:
    """One of several equal parts of a body."""
    return rigid_body(inertia.mass / parts, inertia.lever, inertia.inertia / parts)


def _weld(branch: _Branch, places: Mapping[str, _Place]) -> Closure:
    """What ties the part of a body that hangs from a joint to the rest of it."""
    j = branch.joint
    joint, X = places[branch.below]
    parts = _pinocchio_joints(j, branch.reversed)
    rest = (joint, X * (j.at_parent if branch.reversed else j.at_child))
    return Closure((parts[-1][0], pin.SE3.Identity()), rest, joint="weld", name=f"{j.name}.weld")


def _position(joint: _Joint, given: Any, upside: bool) -> Vector:
    """A position of a joint as it stands in q."""
    sizes = {"spherical": 4, "free": 7}
    size = sizes.get(joint.type, joint.dof)
    what = f"reference[{joint.name!r}]"
    if size == 0:
        raise InputError(f"{what}: a weld has no coordinate that could be set")
    value = vector(what, [given] if np.isscalar(given) else given, size, joint.type)
    if not upside or joint.type not in _OTHER_UPSIDE_DOWN:
        return value
    rotation, norm = value[-4:], float(np.linalg.norm(value[-4:]))
    if not norm > 0.0:
        raise InputError(f"{what}: the quaternion x y z w is zero")
    p = value[:3] if size == 7 else np.zeros(3)
    inverse = pin.XYZQUATToSE3(np.concatenate([p, rotation / norm])).inverse()
    turned: Vector = pin.SE3ToXYZQUAT(inverse)[-size:]
    return turned


# --------------------------------------------------------------------------------- the door


def _text(what: str, given: Any) -> str:
    if isinstance(given, str) and given:
        return given
    raise InputError(f"{what} must be a text that is not empty; got {str(given)[:60]!r}")


def _placement(what: str, given: Any) -> pin.SE3:
    if given is None:
        return pin.SE3.Identity()
    if not isinstance(given, pin.SE3):
        raise InputError(f"{what} must be a pinocchio.SE3; got {type(given).__name__}")
    check_placement(what, given)
    return given.copy()


def _checked_inertia(owner: str, given: Any) -> Array:
    """An inertia that some distribution of mass has, symmetric to the last digit."""
    what = f"{owner}: inertia"
    if given is None:
        return np.zeros((3, 3))
    matrix = numbers(what, given, "kg m^2")
    if matrix.shape != (3, 3):
        raise InputError(f"{what} (kg m^2) must have shape (3, 3); got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise InputError(f"{what} (kg m^2) must be finite; got {matrix.tolist()}")
    size = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > ROUNDED * size:
        raise InputError(f"{what} must be symmetric; got {matrix.tolist()}")
    symmetric: Array = 0.5 * (matrix + matrix.T)
    check_moments(what, symmetric)
    return symmetric


def _around(loop: Sequence[str]) -> str:
    return f"the loop {listing(loop)}"
