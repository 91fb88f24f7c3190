"""Makes a `Mechanism` from bodies and joints, including loops.

The joints between bodies form a graph. A spanning tree of it, rooted in the ground
(`spanning_tree`), becomes the model (`tree_model`); each remaining joint closes a loop and becomes
a `Closure`. The coordinates and the number of rows depend on the choice of the tree, but the motion
does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import (
    Array,
    Vector,
    counted,
    known_name,
    listing,
    name_list,
    number,
    numbers,
    one_of,
    quiet,
    shown,
    vector,
)
from holoctl.base.errors import InputError
from holoctl.base.tolerances import SIX_DIGITS
from holoctl.constraints.closure import Closure, check_pitch
from holoctl.constraints.joint_coordinates import part_names
from holoctl.forces.force_protocol import Force
from holoctl.mechanism.description import checked_motors
from holoctl.mechanism.joint_types import GROUND, JOINT_TYPES, OTHER_IF_REVERSED, Joint
from holoctl.mechanism.limits import Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.spanning_tree import (
    branches,
    distances,
    hanging_parts,
    loop_of,
    preferred,
    spanning_tree,
)
from holoctl.mechanism.tree_model import BodyPlacement, position, tree_model, weld_of_part
from holoctl.tree.inertia_checks import check_mass, check_moments, rigid_body
from holoctl.tree.supported_joints import check_placement

__all__ = ["Linkage"]


@dataclass(frozen=True, eq=False, repr=False)
class Linkage:
    """Bodies and the joints between them, in any order, including loops.

    A builder: add bodies and joints, then call `mechanism`, any number of times. The ground is the
    body ``"universe"``. A joint between bodies that are connected already closes a loop, which is
    detected automatically.

    Parameters
    ----------
    name : str, optional
        Name of the mechanisms.
    gravity : (3,) array_like, optional
        Acceleration of gravity in world axes, m/s^2.

    Raises
    ------
    InputError
        For a name that is not text, or a gravity that is not three finite numbers.

    See Also
    --------
    load : reads a mechanism from a file.
    Mechanism : the result of `mechanism`, from a `pin.Model` too.
    joint_motion : coordinates of joints by type.

    Notes
    -----
    The joints to cut, unless given to `mechanism`, are chosen as follows: joints stay in the tree
    in the order free, weld, actuated, then by degrees of freedom (a cut joint of many has few
    rows), then by distance from the ground in joints (a shallow tree), then by name. A joint that
    would close a loop with those before it is cut (Kruskal's algorithm). The rule does not depend
    on the order of the calls.

    Examples
    --------
    A four-bar with its joints along z:

    >>> import numpy as np, pinocchio as pin, holoctl as hc
    >>> end = pin.SE3(np.eye(3), np.array([0.3, 0.0, 0.0]))
    >>> linkage = hc.Linkage("rhombus")
    >>> for body in ("crank", "coupler", "rocker"):
    ...     linkage.add_body(body, mass=1.0, com=(0.15, 0.0, 0.0))
    >>> linkage.add_joint("motor", "revolute", "universe", "crank")
    >>> linkage.add_joint("elbow", "revolute", "crank", "coupler", end)
    >>> linkage.add_joint("pin", "revolute", "coupler", "rocker", end, end)
    >>> linkage.add_joint("pivot", "revolute", "universe", "rocker", end)
    >>> linkage.mechanism(actuated=["motor"])
    <Mechanism 'rhombus': 3 coordinates, 1 constraint with 5 rows, 1 motor>
    """

    name: str = "linkage"
    gravity: Any = (0.0, 0.0, -9.81)

    _bodies: dict[str, pin.Inertia] = field(init=False, default_factory=dict)
    _joints: dict[str, Joint] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        _text("Linkage: name", self.name)
        gravity = vector("Linkage: gravity", self.gravity, 3, "m/s^2, world axes")
        gravity.setflags(write=False)
        object.__setattr__(self, "gravity", gravity)

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies, in the order in which they were added, without the ground."""
        return tuple(self._bodies)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints, in the order in which they were added."""
        return tuple(self._joints)

    @property
    def loops(self) -> tuple[tuple[str, ...], ...]:
        """One tuple for each independent loop: the joints around it, beginning with the cut one."""
        return tuple(spanning_tree(preferred(self._joints.values(), frozenset()))[1].values())

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
            Also the name of a frame of the model. No joint may have the same name.
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
            For a name that is in use, a negative mass, numbers that are not finite, an inertia that
            is not symmetric or that no distribution of mass has (a principal moment is negative, or
            larger than the sum of the others). The linkage is then unchanged.
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

        Coordinates are those of the child relative to the parent, whichever of the two carries the
        other in the tree: see `joint_motion` for their meaning by type.

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
            Pitch of a screw, and of no other joint, m/rad: as in `Closure`.

        Raises
        ------
        InputError
            For a name that is in use, an unknown type, two equal bodies, an invalid placement, a
            screw without a pitch or with one that is zero or not finite. The linkage is then
            unchanged.
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
        self._joints[name] = Joint(name, type, *ends, at_parent, at_child, pitch)

    @quiet
    def mechanism(
        self,
        cut: Iterable[str] = (),
        actuated: Iterable[str] = (),
        reference: Mapping[str, Any] | None = None,
        tolerance: float = 0.0,
        forces: Iterable[Force] = (),
        limits: Limits | None = None,
    ) -> Mechanism:
        """The mechanism: a spanning tree of the joints, and a `Closure` for each other joint.

        A closure has the name and the type of the joint that was cut; `joint_motion` computes its
        position and rate. Every body is a frame of the model, by its name; so is every joint of the
        tree: the joint frame in the body that it carries. A body that is welded in the tree becomes
        part of the body above.

        Parameters
        ----------
        cut : iterable of str, optional
            The joints to cut: just enough of them, so that the others form a tree. Default: by
            the rule of `Linkage`.
        actuated : iterable of str, optional
            Coordinates with a motor, as for `Mechanism`. A joint with a motor may be cut: see
            Notes.
        reference : mapping of str to float or list, optional
            Positions of joints of the tree, as `joint_motion` gives them (rad, m, quaternions x y z
            w): the start of `hc.assemble`. Default: zero, for joints not named.
        tolerance : float, optional
            Tolerance of points and axes, as for `Mechanism`. Default 0: exact.
        forces : iterable of forces, optional
            As for `Mechanism`; cut joints are named in the same way as those of the tree.
        limits : Limits, optional
            As for `Mechanism`, likewise.

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
        body is divided into parts of equal mass and inertia (two for one such joint), one of which
        is carried by the joint in the tree; a weld ``name.weld`` ties it to the other. Together
        they are the body, so motion and torques are those of any other cut.

        A spherical or free joint is reversed in the tree if its child carries its parent. It then
        has the inverse coordinates in q and v; `reference` and `joint_motion` use its own. A motor
        on it is refused, because it would act in other axes.
        """
        joints = [self._joints[name] for name in sorted(self._joints)]
        self._check_names()
        self._check_connected(joints)
        owners = {name: j for j in joints for name in j.coordinates}
        motors = {name: owners[name] for name in checked_motors(actuated, tuple(owners), self.name)}
        order = preferred(joints, {j.name for j in motors.values()})
        given = tuple(name_list(f"{self.name}: cut", cut))
        tree = self._chosen(order, given) if given else spanning_tree(order)[0]
        loose = [j for j in joints if j not in tree]
        self._check_free(loose, tree)
        parts = hanging_parts([j for j in loose if j in motors.values()])
        reversed_names = {b.joint.name for b in (*branches(tree), *parts) if b.reversed}
        self._check_motors(motors, reversed_names)
        model, places = tree_model(self.name, self.gravity, self._bodies, branches(tree), parts)
        divided = {b.joint.name: b for b in parts}
        closures = [
            weld_of_part(divided[j.name], places)
            if j.name in divided
            else self._closure(j, places, tree)
            for j in loose
        ]
        cut_now = {j.name for j in loose if j.name not in divided}
        q = self._reference(model, reference, cut_now, reversed_names)
        return Mechanism(
            model, closures, tuple(motors), reference=q, name=self.name, tolerance=tolerance,
            forces=tuple(forces), limits=limits,
        )  # fmt: skip

    # ------------------------------------------------------------------------------ checks

    def _check_new(self, name: Any, what: str) -> None:
        _text(f"Linkage: the name of a {what}", name)
        if name == GROUND:
            raise InputError(f"{what} {name!r}: this is the name of the ground; choose another")
        for kind, names in (("body", self._bodies), ("joint", self._joints)):
            if name in names:
                raise InputError(
                    f"{what} {name!r}: a {kind} of {self.name!r} has this name; bodies and joints "
                    "are frames of one model, so their names must differ"
                )

    def _check_names(self) -> None:
        """Check that ``name[0]`` of one joint is not the name of another joint or body."""
        made = Counter(self.bodies)
        for joint in self._joints.values():
            made.update(joint.new_names)
        twice = sorted(name for name, count in made.items() if count > 1)
        if twice:
            raise InputError(
                f"{self.name}: joints need these names themselves, for their coordinates and "
                f"frames: {listing(twice)}; rename the bodies or joints that have them"
            )

    def _check_connected(self, joints: Sequence[Joint]) -> None:
        valid = [GROUND, *self._bodies]
        for joint in joints:
            for body in (joint.parent, joint.child):
                known_name(body, valid, "body", f"joint {joint.name!r}")
        apart = sorted(self._bodies.keys() - distances(joints))
        if apart:
            raise InputError(
                f"{self.name}: nothing connects these bodies to the ground: {listing(apart)}; is a "
                "joint missing? For bodies that move freely, add a free joint from 'universe'"
            )

    def _chosen(self, order: Sequence[Joint], cut: tuple[Any, ...]) -> list[Joint]:
        """The tree that remains without the joints that the caller cuts."""
        names = tuple(sorted(j.name for j in order))
        for name in cut:
            known_name(name, names, "joint", f"{self.name}: cut")
        if len(set(cut)) != len(cut):
            raise InputError(f"{self.name}: cut names a joint twice: {listing(cut)}")
        left = [j for j in order if j.name not in cut]
        apart = sorted(self._bodies.keys() - distances(left))
        if apart:
            near = [j.name for j in order if j.name in cut and {j.parent, j.child} & set(apart)]
            raise InputError(
                f"{self.name}: cut separates {listing(apart)} from the ground; keep "
                f"{'one of ' if len(near) > 1 else ''}{listing(sorted(near))}"
            )
        tree, loops = spanning_tree(left)
        if loops:
            closing = "; ".join(f"{name!r} closes {_around(loop)}" for name, loop in loops.items())
            raise InputError(
                f"{self.name}: cut {listing(cut)} leaves {counted(len(loops), 'loop')}: {closing}; "
                "cut one joint more of each"
            )
        return tree

    def _check_free(self, loose: Sequence[Joint], tree: Sequence[Joint]) -> None:
        for joint in loose:
            if joint.type == "free":
                raise InputError(
                    f"{self.name}: the free joint {joint.name!r} would be cut, but it constrains "
                    "nothing; leave it out, or cut another joint of "
                    f"{_around(loop_of(joint, tree))}"
                )

    def _check_motors(self, motors: Mapping[str, Joint], reversed_names: set[str]) -> None:
        for motor, joint in motors.items():
            if joint.name in reversed_names and joint.type in OTHER_IF_REVERSED:
                raise InputError(
                    f"{self.name}: actuated: in this tree {joint.parent!r} is carried by "
                    f"{joint.child!r}, so {motor!r} would act in other axes than those of the "
                    f"{joint.type} joint; exchange its parent and child, or choose another cut"
                )

    # ---------------------------------------------------------------------------- building

    def _closure(
        self, joint: Joint, places: Mapping[str, BodyPlacement], tree: Sequence[Joint]
    ) -> Closure:
        (above, A), (below, B) = places[joint.parent], places[joint.child]
        if above == below:
            raise InputError(
                f"{self.name}: joint {joint.name!r} closes {_around(loop_of(joint, tree))}, where "
                f"welds make one body of {joint.parent!r} and {joint.child!r}; leave "
                f"{joint.name!r} out, or cut one of the welds"
            )
        a, b = (above, A * joint.at_parent), (below, B * joint.at_child)
        return Closure(a, b, joint=joint.type, name=joint.name, pitch=joint.pitch)

    def _reference(
        self, model: pin.Model, reference: Any, cut: set[str], reversed_names: set[str]
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
            value = position(joint, given, joint.name in reversed_names)
            start = 0
            for part in part_names(model, name):
                i = model.getJointId(part)
                n = model.nqs[i]
                q[model.idx_qs[i] : model.idx_qs[i] + n] = value[start : start + n]
                start += n
        return q


# ---------------------------------------------------------------------------- argument checks


def _text(what: str, given: Any) -> str:
    if isinstance(given, str) and given:
        return given
    raise InputError(f"{what} must be a text that is not empty; got {shown(given)!r}")


def _placement(what: str, given: Any) -> pin.SE3:
    if given is None:
        return pin.SE3.Identity()
    if not isinstance(given, pin.SE3):
        raise InputError(f"{what} must be a pinocchio.SE3; got {type(given).__name__}")
    check_placement(what, given)
    return given.copy()


def _checked_inertia(owner: str, given: Any) -> Array:
    """A valid inertia, made exactly symmetric."""
    what = f"{owner}: inertia"
    if given is None:
        return np.zeros((3, 3))
    matrix = numbers(what, given, "kg m^2")
    if matrix.shape != (3, 3):
        raise InputError(f"{what} (kg m^2) must have shape (3, 3); got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise InputError(f"{what} (kg m^2) must be finite; got {matrix.tolist()}")
    size = float(np.abs(matrix).max())
    if np.abs(matrix - matrix.T).max() > SIX_DIGITS * size:
        raise InputError(f"{what} must be symmetric; got {matrix.tolist()}")
    symmetric: Array = 0.5 * (matrix + matrix.T)
    check_moments(what, symmetric)
    return symmetric


def _around(loop: Sequence[str]) -> str:
    return f"the loop {listing(loop)}"
