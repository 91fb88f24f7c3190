"""What the scene shows of forces and motions besides bodies: arrows, the centre of mass, traces.

    M a + h = B u + J' f + F + G' lambda

Values of one instant, computed without a browser. At a pose, and while a motion plays, efforts and
constraint forces are those that hold the configuration at rest (v = 0, a = 0). At an instant of a
run they belong to the recorded state and efforts, with the forces F of the mechanism: a run does
not record external loads of another plant. What is not known is left out, and `Shown.words` says
why: no certified efforts, efforts that were not recorded, rows whose multiplier is not unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import pinocchio as pin

from holoctl.app.view.capsules import drawn_size
from holoctl.base.checks import Array, Mask, Vector, listing, quiet
from holoctl.base.errors import HoloctlError
from holoctl.base.linalg import largest
from holoctl.dynamics.certificate import verdict
from holoctl.dynamics.forward import forward_dynamics
from holoctl.dynamics.inverse import inverse_dynamics
from holoctl.forces.counterbalance import BoundCounterbalance
from holoctl.forces.spring import BoundSpring
from holoctl.mechanism.mechanism import Mechanism, workspace
from holoctl.projector.partition import Partition, partition
from holoctl.projector.repartition import repartitioned
from holoctl.rows.evaluate import rows_of
from holoctl.rows.reactions import constraint_wrenches
from holoctl.tree.frames import Frame
from holoctl.tree.frozen_model import plain
from holoctl.tree.kinematics import Kinematics, kinematics

__all__ = [
    "KINDS",
    "Arrow",
    "Instant",
    "Kind",
    "Scale",
    "Shown",
    "arrow_scale",
    "centre_of_mass",
    "shown_at",
    "trace",
    "traceable",
]

Kind = Literal["weight", "motors", "constraints", "forces"]

KINDS: tuple[Kind, ...] = ("weight", "motors", "constraints", "forces")
"""Weight of the robot; efforts of motors; forces of closures, rods and contacts; springs between
points and counterbalances."""

LONGEST = 0.35
"""Length of the longest arrow of an instant, in the median of some, as a share of the size of the
mechanism."""

MOST_INSTANTS = 16
"""Largest number of instants that determine the scale."""

MOST_POINTS = 2000
"""Largest number of points of a trace."""

ROUNDING = 1e-9
"""Axes of a joint are orthonormal, or zero, to within this."""

VISIBLE = 1e-6
"""Smaller arrows are left out, as a share of the largest of all: rounding errors."""


class Instant(NamedTuple):
    """A shown configuration, and what is known with it.

    Attributes
    ----------
    q : (nq,) array
    t : float
        s.
    v : (nv,) array or None
        Velocity, recorded in a run; None: at rest.
    u : (nu,) array or None
        Recorded motor efforts, N m or N; None: at rest.
    """

    q: Vector
    t: float = 0.0
    v: Vector | None = None
    u: Vector | None = None


class Arrow(NamedTuple):
    """A force or a moment in world axes.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    name : str
        Of the motor, the constraint or the force.
    point : (3,) array
        Where it acts, m.
    vector : (3,) array
        N, or N m.
    moment : bool
        Whether it is a moment.
    """

    kind: Kind
    name: str
    point: Vector
    vector: Vector
    moment: bool = False


@dataclass(frozen=True, eq=False)
class Shown:
    """The arrows of an instant.

    Attributes
    ----------
    arrows : tuple of Arrow
        Of the wanted kinds; zero ones are left out.
    centre : (3,) array or None
        Centre of mass of the robot, m; None without mass.
    words : tuple of str
        Why something is left out.
    part : Partition or None
        For the next instant.
    """

    arrows: tuple[Arrow, ...] = ()
    centre: Vector | None = None
    words: tuple[str, ...] = ()
    part: Partition | None = field(default=None, repr=False)

    def of(self, kind: Kind) -> tuple[Arrow, ...]:
        """The arrows of one kind."""
        return tuple(arrow for arrow in self.arrows if arrow.kind == kind)


class Scale(NamedTuple):
    """Lengths of arrows.

    Attributes
    ----------
    force, moment : float
        N and N m for one metre of an arrow: round numbers.
    """

    force: float
    moment: float

    def length(self, arrow: Arrow) -> Vector:
        """(3,): an arrow as drawn, m."""
        return arrow.vector / (self.moment if arrow.moment else self.force)

    def __str__(self) -> str:
        return f"An arrow of 0.1 m is {0.1 * self.force:g} N or {0.1 * self.moment:g} N m."


# ------------------------------------------------------------------------------- one instant


@quiet
def shown_at(
    mech: Mechanism, at: Instant, kinds: Iterable[Kind] = KINDS, part: Partition | None = None
) -> Shown:
    """The arrows of an instant.

    Parameters
    ----------
    mech : Mechanism
    at : Instant
    kinds : iterable of str, optional
        Wanted kinds of arrows.
    part : Partition, optional
        `Shown.part` of an instant nearby.

    Returns
    -------
    Shown
        Errors of the dynamics are in its words, and what depends on them is left out.
    """
    kinds, words, arrows = set(kinds), list[str](), list[Arrow]()
    v = np.zeros(mech.nv) if at.v is None else at.v
    centre = centre_of_mass(mech, at.q)
    if not (np.isfinite(at.q).all() and np.isfinite(v).all()):
        return Shown(words=("The state is not finite.",), part=part)
    kin = kinematics(mech.model, workspace(mech), at.q, v, at.t)
    if "weight" in kinds and centre is not None:
        arrows.append(Arrow("weight", "weight", centre, _weight(mech)))
    if "forces" in kinds:
        found, why = _forces(mech, kin)
        arrows += found
        words += why
    if kinds & {"motors", "constraints"}:
        u = at.u
        unknown = u is not None and not np.isfinite(u).all()
        if unknown:
            words.append("The efforts of this instant were not recorded.")
        elif at.u is not None and "motors" in kinds:
            found, why = _motors(mech, kin, at.u)
            arrows += found
            words += why
        if not unknown and (u is None or "constraints" in kinds):
            efforts, lam, unique, part, problem = _dynamics(mech, at, v, part)
            if problem:
                words.append(problem)
            else:
                if u is None and "motors" in kinds:
                    found, why = _motors(mech, kin, efforts)
                    arrows += found
                    words += why
                if "constraints" in kinds:
                    found, why = _constraints(mech, at.q, lam, unique)
                    arrows += found
                    words += why
    return Shown(tuple(_visible(mech, arrows)), centre, tuple(words), part)


def _dynamics(
    mech: Mechanism, at: Instant, v: Vector, part: Partition | None
) -> tuple[Vector, Vector, Mask, Partition | None, str]:
    """Motor efforts, multipliers, which of these are unique; the partition; or why they are
    unknown."""
    none, nothing = np.zeros(0), np.zeros(0, dtype=bool)
    try:
        if part is None:
            part = partition(mech, at.q, t=at.t)
        else:
            part = repartitioned(mech, part, at.q, v, at.t)
        if at.u is None:
            rest = np.zeros(mech.nv)
            still = inverse_dynamics(
                mech, at.q, rest, rest, coordinates="all", partition=part, t=at.t
            )
            if still.certificate.ok:
                return still.u, still.multipliers, still.unique, part, ""
            what, certificate = "Holding efforts and constraint forces", still.certificate
        else:
            moving = forward_dynamics(mech, at.q, v, u=at.u, partition=part, t=at.t)
            if moving.certificate.ok:
                return at.u, moving.multipliers, moving.unique, part, ""
            what, certificate = "Constraint forces", moving.certificate
    except HoloctlError as error:
        return none, none, nothing, None, f"Forces are unknown here: {error}"
    problem = f"{what} are unknown here: they would be {verdict(certificate)}."
    return none, none, nothing, part, problem


def centre_of_mass(mech: Mechanism, q: Vector) -> Vector | None:
    """(3,): the centre of mass of all bodies in the world, m; None without mass."""
    model = plain(mech.model)
    if not _mass(mech) > 0.0:
        return None
    found: Vector = pin.centerOfMass(model, model.createData(), q).copy()
    return found


def _mass(mech: Mechanism) -> float:
    """The mass of all bodies that move, kg."""
    return float(sum(inertia.mass for inertia in list(plain(mech.model).inertias)[1:]))


def _weight(mech: Mechanism) -> Vector:
    found: Vector = _mass(mech) * np.array(plain(mech.model).gravity.linear)
    return found


def _forces(mech: Mechanism, kin: Kinematics) -> tuple[list[Arrow], list[str]]:
    """Forces of springs on both their bodies, and those of counterbalances."""
    found, words = list[Arrow](), list[str]()
    for name, one in zip(mech.force_names, mech.bound_forces, strict=True):
        if isinstance(one, BoundCounterbalance):
            found.append(Arrow("forces", name, kin.point(one.frame), -one.weight))
        elif isinstance(one, BoundSpring):
            try:
                tension = one.tension(kin)
            except HoloctlError as error:
                words.append(str(error))
                continue
            a, b = kin.point(one.a), kin.point(one.b)
            if (length := float(np.linalg.norm(b - a))) > 0.0:
                pull = tension * (b - a) / length
                found += [Arrow("forces", name, a, pull), Arrow("forces", name, b, -pull)]
    return found, words


def _motors(mech: Mechanism, kin: Kinematics, u: Vector) -> tuple[list[Arrow], list[str]]:
    """The efforts ``B u`` along the axes of the joints on which they act."""
    model, found, left = plain(mech.model), list[Arrow](), list[str]()
    efforts = mech.B @ u
    driven = np.abs(mech.B).max(axis=1, initial=0.0) > 0.0
    for j in sorted({int(j) for j in mech.joint_of[driven]}):
        columns = slice(model.idx_vs[j], model.idx_vs[j] + model.nvs[j])
        point = kin.placements[j].translation
        turns = kin.J[3:, columns]
        shifts = kin.J[:3, columns] + np.cross(turns.T, point).T  # of the origin of the joint
        if _orthonormal(turns) and _zero(shifts):
            found.append(Arrow("motors", model.names[j], point, turns @ efforts[columns], True))
        elif _orthonormal(shifts) and _zero(turns):
            found.append(Arrow("motors", model.names[j], point, shifts @ efforts[columns]))
        else:
            left.append(model.names[j])
    words = [f"Motor efforts on joints that rotate and slide are not drawn: {listing(left, 3)}."]
    return found, words if left else []


def _orthonormal(axes: Array) -> bool:
    return bool(np.abs(axes.T @ axes - np.eye(axes.shape[1])).max() <= ROUNDING)


def _zero(axes: Array) -> bool:
    return bool(np.abs(axes).max() <= ROUNDING)


def _constraints(
    mech: Mechanism, q: Vector, lam: Vector, unique: Mask
) -> tuple[list[Arrow], list[str]]:
    """Forces and moments of constraints on the second of their bodies, without the components along
    redundant rows, which are not unique."""
    found, left = list[Arrow](), list[str]()
    bound = dict(zip(mech.constraint_names, mech.bound, strict=True))
    for name, (_, on_b) in constraint_wrenches(mech, q, np.where(unique, lam, 0.0)).items():
        found.append(Arrow("constraints", name, on_b.point, on_b.force))
        found.append(Arrow("constraints", name, on_b.point, on_b.moment, True))
        own = unique[rows_of(mech, name)].tolist()
        left += [label for label, known in zip(bound[name].labels, own, strict=True) if not known]
    words = f"Redundant rows have no unique force, and are left out: {listing(left, 6)}."
    return found, [words] if left else []


def _visible(mech: Mechanism, arrows: Sequence[Arrow]) -> list[Arrow]:
    """The arrows that are larger than rounding errors of the largest."""
    size = drawn_size(mech)
    forces = [largest(a.vector) * (1.0 if a.moment else size) for a in arrows]  # as moments
    least = VISIBLE * max(forces, default=0.0)
    return [a for a, moment in zip(arrows, forces, strict=True) if moment > least]


# ------------------------------------------------------------------------------- the scale


def arrow_scale(
    mech: Mechanism, size: float, instants: Sequence[Instant], times: float = 1.0
) -> Scale:
    """The scale of arrows: fixed, so that arrows of different instants can be compared.

    Parameters
    ----------
    mech : Mechanism
    size : float
        Size of the mechanism, m.
    instants : sequence of Instant
        The longest arrow of each of some of them is about a third of the size, in the median.
    times : float, optional
        Factor of all lengths.
    """
    most: tuple[list[float], list[float]] = ([], [])
    for at in instants[:: 1 + len(instants) // MOST_INSTANTS]:
        arrows = shown_at(mech, at).arrows
        for moment in (False, True):
            found = [float(np.linalg.norm(a.vector)) for a in arrows if a.moment is moment]
            most[moment].extend([max(found)] if found else [])
    typical = [float(np.median(sizes)) if sizes else 1.0 for sizes in most]
    return Scale(*(_round(x / (LONGEST * size * times)) for x in typical))


def _round(x: float) -> float:
    """The next larger of 1, 2, 5 times a power of ten."""
    unit = 10.0 ** np.floor(np.log10(x))
    return float(unit * next((s for s in (1.0, 2.0, 5.0) if s * unit >= x), 10.0))


# ------------------------------------------------------------------------------- traces


def traceable(mech: Mechanism) -> tuple[Frame, ...]:
    """The frames of bodies that move, by which traces are named; of joints without such a frame the
    joint itself."""
    model = plain(mech.model)
    found = [
        Frame(f.parentJoint, f.placement, f.name)
        for f in model.frames
        if f.parentJoint and f.type in (pin.FrameType.BODY, pin.FrameType.OP_FRAME)
    ]
    have = {f.joint for f in found}
    return (
        *sorted(found, key=lambda f: not np.any(f.placement.translation)),
        *(Frame(j, pin.SE3.Identity(), model.names[j]) for j in range(1, model.njoints)
          if j not in have),
    )  # fmt: skip


def trace(mech: Mechanism, frame: Frame, film: Sequence[Vector] | Array) -> Array:
    """The path (n, 3) of the origin of a frame in the world over configurations, m; of more than
    2000 configurations evenly chosen ones, with both ends."""
    model, data = plain(mech.model), plain(mech.model).createData()
    count = len(film)
    which = np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(int))
    found = np.zeros((which.size if count else 0, 3))
    for k in range(len(found)):
        pin.forwardKinematics(model, data, film[which[k]])
        found[k] = data.oMi[frame.joint].act(frame.placement.translation)
    return found
