"""URDF and YAML of a new robot, from the names of its joints, loops and motors.

Bars lie in the x-z plane; hinges turn about y, or another axis that is given. The drawing is the
zero configuration: all frames are parallel to those of the world, and every loop closes exactly.
Lengths and masses are placeholders, to be replaced by those of the robot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from holoctl.base.checks import Vector, known_name, listing, one_of
from holoctl.base.errors import InputError

__all__ = ["Chain", "DrawnJoint", "RobotTemplate", "chain_of", "loop_of"]

JOINT_TYPES = ("revolute", "continuous", "prismatic", "ball", "universal")
ONE_AXIS = JOINT_TYPES[:3]
AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}
LOOP_TYPES = {"revolute": "revolute", "ball": "3d", "weld": "6d", "universal": "universal"}
"""What closes a loop -> the word of the YAML file."""

SPACING, HEIGHT, BAR = 0.3, 0.5, 0.25  # m
"""Between chains on the base; of the point where they meet; of a bar that reaches for nothing."""

DENSITY, RADIUS = 2.0, 0.012  # kg/m, m
"""Of the rods that stand for bodies."""


@dataclass(frozen=True)
class DrawnJoint:
    """A joint, and the bar that it moves, in the drawing.

    Attributes
    ----------
    name : str
    type : str
        One of `JOINT_TYPES`; with an axis of the world, ``"revolute:x"``.
    parent : str
        The joint whose bar carries it; empty: the base.
    start, end : (3,) array
        Of the bar, in world axes, m. The joint is at the start.
    """

    name: str
    type: str
    parent: str
    start: Vector
    end: Vector


@dataclass(frozen=True)
class Chain:
    """Joints one after the other.

    Attributes
    ----------
    on : str
        The joint whose bar carries the first one; empty: the base.
    joints : tuple of (str, str)
        Name and type.
    """

    on: str
    joints: tuple[tuple[str, str], ...]


def chain_of(text: str) -> Chain:
    """A chain as it is typed: ``"hip knee"``, ``"slide=prismatic"``, ``"yaw=revolute:z"``,
    ``"knee: crank rod"``."""
    on, colon, rest = text.partition(":")
    if "=" in on or not colon:  # the colon of an axis, or none
        on, colon, rest = "", "", text
    if colon and not on.strip():
        raise InputError(f"chain {text!r}: the joint before ':' carries the chain; it has no name")
    joints = []
    for word in rest.replace(",", " ").split():
        name, _, kind = word.partition("=")
        kind, colon, axis = (kind or "revolute").partition(":")
        one_of(f"chain {text!r}: the type of {name!r}", kind, JOINT_TYPES)
        if colon:
            one_of(f"chain {text!r}: {name!r}: a type with an axis", kind, ONE_AXIS)
            one_of(f"chain {text!r}: the axis of {name!r}", axis, list(AXES))
        joints.append((_checked(name), f"{kind}{colon}{axis}"))
    if not joints:
        raise InputError(f"chain {text!r}: names of joints are needed, from the base to the tip")
    return Chain(on.strip(), tuple(joints))


def loop_of(text: str) -> tuple[str, str, str]:
    """A loop as it is typed: ``"elbow_left elbow_right"``, ``"rod knee=ball"``: the joints whose
    bars meet at their ends, and what joins them."""
    pair, _, kind = text.partition("=")
    names = pair.replace(",", " ").split()
    if len(names) != 2 or names[0] == names[1]:
        raise InputError(f"loop {text!r}: the names of the two joints whose bars meet are needed")
    one_of(f"loop {text!r}: what joins them", kind.strip() or "revolute", list(LOOP_TYPES))
    return names[0], names[1], kind.strip() or "revolute"


def _checked(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InputError(f"{name!r} is no name for a joint: letters, digits and _ are allowed")
    return name


class RobotTemplate:
    """The drawing of a robot, and its files.

    Parameters
    ----------
    name : str
    chains : sequence of Chain
    loops : sequence of (str, str, str)
        Of `loop_of`.
    motors : sequence of str, optional
        Default: the first joint of each chain on the base.

    Raises
    ------
    InputError
        For names that are there twice or not at all, loops within one chain, and bars without
        length.
    """

    def __init__(
        self, name: str, chains: Sequence[Chain], loops: Sequence[tuple[str, str, str]],
        motors: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.name, self.loops = _checked(name), tuple(loops)
        if not chains:
            raise InputError("a robot needs at least one chain of joints on the base")
        names = [joint for chain in chains for joint, _ in chain.joints]
        twice = sorted({x for x in names if names.count(x) > 1})
        if twice:
            raise InputError(f"each joint is in one chain, once; twice: {listing(twice)}")
        chain_with = {joint: i for i, chain in enumerate(chains) for joint, _ in chain.joints}
        for a, b, _ in loops:
            for end in (a, b):
                known_name(end, names, "joint", f"loop '{a} {b}'")
            if chain_with[a] == chain_with[b]:
                raise InputError(f"loop '{a} {b}': both joints are in one chain")
        on_base = [chain.joints[0][0] for chain in chains if not chain.on]
        self.motors = tuple(on_base if motors is None else motors)
        for motor in self.motors:
            known_name(motor, names, "joint", "motors")
        self.joints = _drawn(chains, loops)

    def urdf(self) -> str:
        """The tree, cut open at each loop."""
        parts = [_HEAD.format(name=self.name)]
        place = {joint.name: joint for joint in self.joints}
        for joint in self.joints:
            parts.append(_joint_text(joint, place, joint.name in self.motors))
        for cut in dict.fromkeys(end for a, b, _ in self.loops for end in (a, b)):
            parts.append(_END.format(joint=cut, xyz=_three(place[cut].end - place[cut].start)))
        return "\n".join([*parts, "</robot>\n"])

    def yaml(self) -> str:
        """Loops, motors and what else a URDF has no words for."""
        pairs = ", ".join(f"[{a}_end, {b}_end]" for a, b, _ in self.loops)
        kinds = ", ".join(LOOP_TYPES[kind] for *_, kind in self.loops)
        names = ", ".join(f"{a}_{b}" for a, b, _ in self.loops)
        words = {"ball": "SPHERICAL", "universal": "UJOINT_XY"}
        special = [joint for joint in self.joints if joint.type in words]
        text = _YAML.format(
            name=self.name, pairs=pairs, kinds=kinds, names=names, motors=", ".join(self.motors)
        )
        if special:
            text += (
                f"\n# Joints of a type that URDF has not.\njoint_name: [{_named(special)}]\n"
                f"joint_type: [{', '.join(words[joint.type] for joint in special)}]\n"
            )
        return text


def _named(joints: Sequence[DrawnJoint]) -> str:
    return ", ".join(joint.name for joint in joints)


# ----------------------------------------------------------------------------- the drawing


def _drawn(
    chains: Sequence[Chain], loops: Sequence[tuple[str, str, str]]
) -> tuple[DrawnJoint, ...]:
    """All joints, parents first."""
    count = sum(not chain.on for chain in chains)
    starts = iter(SPACING * (np.arange(count) - 0.5 * (count - 1)))
    placed: dict[str, DrawnJoint] = {}
    for index, chain in enumerate(chains):
        if chain.on:
            known_name(chain.on, list(placed), "joint of a chain before it", "chain")
            below = placed[chain.on]
            bar = below.end - below.start
            start = below.start + 0.3 * bar + 0.25 * np.array([-bar[2], 0.0, bar[0]])
        else:
            start = np.array([next(starts), 0.0, 0.0])
        names = [joint for joint, _ in chain.joints]
        points = _points(start, index, _targets(names, loops, placed))
        for (name, kind), parent, (a, b) in zip(
            chain.joints, [chain.on, *names], pairwise(points), strict=False
        ):
            if np.linalg.norm(b - a) < 1e-3:
                raise InputError(
                    f"the bar of {name!r} would have no length: it starts where its loop closes"
                )
            placed[name] = DrawnJoint(name, kind, parent, a, b)
    return tuple(placed.values())


def _targets(
    names: Sequence[str], loops: Sequence[tuple[str, str, str]], placed: Mapping[str, DrawnJoint]
) -> list[Vector | None]:
    """For the end of each bar of a chain, the point where a loop closes; None where none does."""
    found: list[Vector | None] = []
    for name in names:
        others = [b if a == name else a for a, b, _ in loops if name in (a, b)]
        there = [placed[other].end for other in others if other in placed]
        if any(np.linalg.norm(point - there[0]) > 0.0 for point in there):
            raise InputError(f"the end of the bar of {name!r} cannot be in two places: {others}")
        free = np.array([0.0, 0.0, HEIGHT]) if others and not placed else None
        found.append(there[0] if there else free)
    return found


def _points(start: Vector, index: int, targets: Sequence[Vector | None]) -> list[Vector]:
    """The ends of the bars of a chain: through the targets, bent outwards in between."""
    points, knot = [start], 0
    for k, target in enumerate(targets, start=1):
        if target is None:
            continue
        way, count = target - points[knot], k - knot
        across = np.array([way[2], 0.0, -way[0]]) * (-1.0 if start[0] <= 0.0 else 1.0)
        for i in range(1, count):
            s = i / count
            bend = (0.35 + 0.05 * index) * np.sin(np.pi * s)
            points.append(points[knot] + s * way + bend * across)
        points.append(target)
        knot = k
    for k in range(knot, len(targets)):
        tilt = 0.4 if k % 2 else -0.4
        points.append(points[-1] + BAR * np.array([np.sin(tilt), 0.0, np.cos(tilt)]))
    return points


# ------------------------------------------------------------------------------- the files

_HEAD = """<?xml version="1.0" encoding="utf-8"?>
<!--
  {name}: a template. Replace lengths (origin), masses and inertias by those of the robot.

  x to the right, z upwards, gravity along -z; axes of joints are given in these axes. The zero of
  every joint is the drawing, and all frames are parallel there. A URDF is a tree, so each loop is
  cut open: the links ..._end are the two halves of its joint, z along its axis, and {name}.yaml
  closes them.
  Inertias are those of round rods of steady thickness.
-->
<robot name="{name}">

  <link name="base"/>
"""

_JOINT = """
  <joint name="{name}" type="{type}">
    <origin xyz="{xyz}" rpy="0 0 0"/>
    <parent link="{parent}"/>
    <child link="{name}_link"/>
    <axis xyz="{axis}"/>{limit}
  </joint>
  <link name="{name}_link"> <!-- rod: {mass:.3g} kg, {length:.3g} m -->
    <inertial>
      <origin xyz="{middle}" rpy="0 0 0"/>
      <mass value="{mass:.6g}"/>
      <inertia ixx="{I[0]:.6g}" ixy="0" ixz="{I[1]:.6g}" iyy="{I[2]:.6g}" iyz="0" izz="{I[3]:.6g}"/>
    </inertial>
    <visual>
      <origin xyz="{middle}" rpy="0 {tilt:.9g} 0"/>
      <geometry><cylinder radius="{radius:g}" length="{length:.6g}"/></geometry>
    </visual>
  </link>"""

_END = """
  <joint name="{joint}_end_joint" type="fixed">
    <origin xyz="{xyz}" rpy="-1.5707963267948966 0 0"/>
    <parent link="{joint}_link"/>
    <child link="{joint}_end"/>
  </joint>
  <link name="{joint}_end"/>"""

_YAML = """# Loops and motors of {name}.urdf.
name: {name}

# The two halves of each cut joint, and what joins them: revolute (about z of the frames), 3d (a
# ball), 6d (a weld), universal, cylindrical, prismatic, or axes such as "x y z rx".
closed_loop: [{pairs}]
type: [{kinds}]
closure_names: [{names}]

# Joints with a motor, in the order of the torques u.
name_mot: [{motors}]

# Where to start closing, rad or m; the joints left out are at zero. The drawing is closed.
# reference: {{joint: 0.3}}

# Limits of motors and joints; those of the URDF hold for what is left out.
# limits: {{effort: {{motor: 40}}, velocity: {{joint: 12}}, position: {{joint: [-1.5, 1.5]}}}}

# Friction and springs.
# forces:
#   - {{type: joint_friction, viscous: 0.02, coulomb: {{joint: 0.4}}}}
"""


def _joint_text(joint: DrawnJoint, place: Mapping[str, DrawnJoint], motor: bool) -> str:
    origin = place[joint.parent].start if joint.parent else np.zeros(3)
    bar = joint.end - joint.start
    length = float(np.linalg.norm(bar))
    mass, along = DENSITY * length, bar / length
    kind, _, axis = joint.type.partition(":")
    slides = kind == "prismatic"
    inertia = mass * (length**2 / 12.0 + RADIUS**2 / 4.0) * (np.eye(3) - np.outer(along, along))
    inertia += mass * RADIUS**2 / 2.0 * np.outer(along, along)
    limit = ""
    if kind != "continuous":
        effort, velocity, reach = (200, 1, 0.5) if slides else (20, 20, 3.1416)
        limit = (
            f'\n    <limit lower="-{reach}" upper="{reach}" effort="{effort if motor else 0}" '
            f'velocity="{velocity}"/>'
        )
    return _JOINT.format(
        name=joint.name, type=kind if kind in ONE_AXIS else "revolute",
        xyz=_three(joint.start - origin), parent=f"{joint.parent}_link" if joint.parent else "base",
        axis=_three(along) if slides and not axis else AXES[axis or "y"], limit=limit,
        middle=_three(0.5 * bar),
        mass=mass, length=length, radius=RADIUS, tilt=float(np.arctan2(bar[0], bar[2])),
        I=(inertia[0, 0], inertia[0, 2], inertia[1, 1], inertia[2, 2]),
    )  # fmt: skip


def _three(x: Vector) -> str:
    return " ".join(f"{number + 0.0:.9g}" for number in x.tolist())
