"""The relative motion of two bodies as expressions.

Rows between two bodies do not change under a common motion, so each pair of frames is seen from the
nearest body that carries both (the joints above it drop out), or from a free body or ball that
is a child of that: its motions are constant in its own axes. All at zero joint acceleration.
"""

from __future__ import annotations

from dataclasses import dataclass

from holoctl.codegen.casadi_import import SX, casadi_module
from holoctl.codegen.tree import TreeSteps, constant
from holoctl.tree.frames import Frame

__all__ = [
    "Pair",
    "StepMotion",
    "jacobian_at",
    "mirrored",
    "moved",
    "pair_between",
    "placed",
    "point_motion",
    "see",
    "turns",
]


@dataclass(frozen=True, eq=False)
class StepMotion:
    """The motion of a step seen from another one above it, in the axes of that one."""

    R: SX
    o: SX
    omega: SX
    odot: SX
    alpha: SX
    oddot: SX
    columns: tuple[tuple[int, SX, SX, SX], ...]  # coordinate, angular, linear, origin


@dataclass(frozen=True, eq=False)
class Pair:
    """Frames 1 and 2 of a closure, seen from the nearest step that carries both."""

    one: StepMotion
    two: StepMotion
    R1: SX  # axes of the frames
    R2: SX
    p1: SX
    p2: SX


def pair_between(
    tree: TreeSteps, frame1: Frame, frame2: Frame, v: SX, seen: dict[tuple[int, int], StepMotion]
) -> Pair:
    """Two frames, and how their bodies move; `seen` keeps what several pairs of one tree share."""
    step1, step2 = tree.of_joint[frame1.joint], tree.of_joint[frame2.joint]
    above1, above2 = _ancestors(tree, step1), _ancestors(tree, step2)
    base = next(i for i in above2 if i in above1)
    root = _root(tree, base, above2, above1)
    one, two = (see(tree, (root, base), step, v, seen) for step in (step1, step2))

    (R1, p1), (R2, p2) = placed(one, frame1), placed(two, frame2)
    return Pair(one, two, R1, R2, p1, p2)


def placed(s: StepMotion, frame: Frame) -> tuple[SX, SX]:
    """Axes and origin of a frame on a step."""
    X = frame.placement
    return s.R @ constant(X.rotation), s.o + s.R @ constant(X.translation)


def jacobian_at(s: StepMotion, p: SX, nv: int) -> SX:
    """The Jacobian (6, nv) of a point of a step that is seen: its velocity above the angular
    velocity, in the same axes."""
    ca = casadi_module()
    J = ca.SX.zeros(6, nv)
    for k, w, u, o in s.columns:
        J[:3, k] += u + ca.cross(w, p - o)
        J[3:, k] += w
    return J


def _root(tree: TreeSteps, base: int, *chains: list[int]) -> int:
    """The step from whose axes all is seen: the nearest that carries both frames, or a free body
    or ball just above it. In their axes the motions of such a joint are constant, and so are the
    pivots of rows across it, whatever way the body is turned."""
    for chain in chains:
        first = chain[chain.index(base) - 1] if chain[0] != base else base
        if sum(c.angular.any() for c in tree.steps[first].columns) == 3:
            return first
    return base


def mirrored(pair: Pair) -> Pair:
    """The same frames, with 1 and 2 exchanged."""
    return Pair(pair.two, pair.one, pair.R2, pair.R1, pair.p2, pair.p1)


def _ancestors(tree: TreeSteps, step: int) -> list[int]:
    """The step, its parent, and so on down to the world."""
    found = [step]
    while found[-1]:
        found.append(tree.steps[found[-1]].parent)
    return found


def see(
    tree: TreeSteps, start: tuple[int, int], i: int, v: SX, seen: dict[tuple[int, int], StepMotion]
) -> StepMotion:
    """Step i seen from the step ``start = (root, base)``; all at zero acceleration of the
    coordinates. The root is the base, or a child of it."""
    ca = casadi_module()
    root, base = start
    if (root, i) in seen:
        return seen[root, i]
    if i == root:
        zero = ca.SX.zeros(3)
        seen[root, i] = StepMotion(ca.SX.eye(3), zero, zero, zero, zero, zero, ())
        return seen[root, i]
    if i == base:
        seen[root, i] = _from_above(tree, root, v)
        return seen[root, i]
    s, cross = tree.steps[i], ca.cross
    below = see(tree, start, s.parent, v, seen)
    R, r = below.R @ s.R, below.R @ s.p
    o = below.o + r
    columns = list(below.columns)
    turn, slide = ca.SX.zeros(3), ca.SX.zeros(3)
    for c in s.columns:
        angular = below.R @ (s.R @ constant(c.angular))
        linear = below.R @ (s.R @ constant(c.linear))
        columns.append((c.coordinate, angular, linear, o))
        turn, slide = turn + angular * v[c.coordinate], slide + linear * v[c.coordinate]
    w = below.omega
    seen[root, i] = StepMotion(
        R,
        o,
        omega=w + turn,
        odot=below.odot + cross(w, r) + slide,
        alpha=below.alpha + cross(w, turn),
        oddot=below.oddot + cross(below.alpha, r) + cross(w, cross(w, r))
        + cross(w + w + turn, slide),
        columns=tuple(columns),
    )  # fmt: skip
    return seen[root, i]


def _from_above(tree: TreeSteps, i: int, v: SX) -> StepMotion:
    """The parent of step i, seen from step i: it moves the other way. The motions of the step's
    joint are constant in its own axes, so they have no acceleration there."""
    ca, s = casadi_module(), tree.steps[i]
    zero = ca.SX.zeros(3)
    columns, turn, slide = [], zero, zero
    for c in s.columns:
        angular, linear = -constant(c.angular), -constant(c.linear)
        columns.append((c.coordinate, angular, linear, zero))
        turn, slide = turn + angular * v[c.coordinate], slide + linear * v[c.coordinate]
    o = -(s.R.T @ s.p)
    odot = slide + ca.cross(turn, o)
    return StepMotion(
        s.R.T, o, omega=turn, odot=odot, alpha=zero, oddot=ca.cross(turn, odot),
        columns=tuple(columns),
    )  # fmt: skip


def point_motion(s: StepMotion, p: SX) -> tuple[SX, SX]:
    """Velocity, and acceleration at zero joint acceleration, of what is at p on the body."""
    cross = casadi_module().cross
    arm = p - s.o
    velocity = cross(s.omega, arm)
    return s.odot + velocity, s.oddot + cross(s.alpha, arm) + cross(s.omega, velocity)


def moved(pair: Pair, p1: SX, p2: SX) -> list[tuple[int, SX]]:
    """What each coordinate does to the points at p2 on body 2 and p1 on body 1, as 2 - 1."""
    cross = casadi_module().cross
    one = [(c, -(u + cross(w, p1 - o))) for c, w, u, o in pair.one.columns]
    return one + [(c, u + cross(w, p2 - o)) for c, w, u, o in pair.two.columns]


def turns(pair: Pair) -> list[tuple[int, SX]]:
    one = [(c, -w) for c, w, _, _ in pair.one.columns]
    return one + [(c, w) for c, w, _, _ in pair.two.columns]
