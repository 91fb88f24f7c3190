"""A zoo of overconstrained mechanisms, with what is known of their mobility, and how to round them.

`OVERCONSTRAINED` move where counting says they do not, or less; `SINGULAR` are singular or shaky
where they are drawn; in `GENERIC` counting is right. Each entry makes a `Drawing`:
``OVERCONSTRAINED["bennett"]().mechanism()``, with ``scale=1000.0`` in millimetres. `rounded`,
`meant`, `in_digits` and `misfit` take any mechanism.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import overconstrained_loops as loops
import overconstrained_nets as nets
import overconstrained_rest as rest
import pinocchio as pin
from overconstrained_drawing import Drawing, unit

import holoctl as hc
from holoctl.rows.evaluate import constraint_rows

Maker = Callable[..., Drawing]


def _named(*makers: Maker) -> dict[str, Maker]:
    return {maker().name: maker for maker in makers}


OVERCONSTRAINED = _named(
    # one loop
    loops.bennett, loops.goldberg, loops.myard, loops.wohlhart, loops.waldron,
    loops.line_symmetric_bricard, loops.plane_symmetric_bricard, loops.trihedral_bricard,
    loops.kaleidocycle, loops.altmann, loops.schatz, loops.sarrus, loops.spherical,
    partial(loops.spherical, n=5), loops.miura_vertex, loops.cardan,
    partial(loops.cardan, crossed=True), loops.oldham, loops.four_bar, loops.wedges, loops.press,
    # guides and shafts
    nets.rails, partial(nets.rails, n=4), nets.rods_and_bushes, nets.door, partial(nets.door, n=3),
    # planar
    nets.locomotive, partial(nets.locomotive, axles=3), nets.four_bars, nets.watt, nets.stephenson,
    nets.jansen, nets.klann, nets.planar_3rrr, nets.pantograph, nets.peaucellier,
    partial(nets.peaucellier, guided=True), nets.hoekens, nets.geared_parallelogram, nets.scissors,
    partial(nets.hoberman, n=4), nets.hoberman,
    # spatial
    nets.umbrella, partial(nets.miura, m=2, n=2), nets.miura, nets.bennett_chain,
    nets.parallel_bars, nets.tripteron, nets.delta, nets.shafts_and_rod, nets.wishbones,
)  # fmt: skip

SINGULAR = _named(
    rest.folded_parallelogram, rest.flat_miura_vertex, rest.stretched_bars, rest.equal_bars,
    rest.wren,
)  # fmt: skip

GENERIC = _named(
    rest.rssr, rest.rscr, rest.seven_hinges, rest.upu, partial(loops.kaleidocycle, n=8),
    partial(nets.delta, hinged=False),
)  # fmt: skip

EVERY = OVERCONSTRAINED | SINGULAR | GENERIC


@cache
def drawn(name: str) -> tuple[Drawing, hc.Mechanism]:
    """One of them, in metres, exact."""
    drawing = EVERY[name]()
    return drawing, drawing.mechanism()


# ----------------------------------------------------------------------------------- rounded, bent


def size(mech: hc.Mechanism) -> float:
    """The diagonal of the box around joints and frames of constraints at the reference."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, mech.reference)
    points = [data.oMi[j].translation for j in range(1, mech.model.njoints)]
    for c in mech.constraints:
        for frame in (getattr(c, key) for key in _frames_of(c)):
            found = hc.protocols.resolve_frame(mech.model, frame, c.default_name)
            points.append((data.oMi[found.joint] * found.placement).translation)
    return float(np.linalg.norm(np.ptp(points, axis=0)))


def rounded(mech: hc.Mechanism, eps: float, seed: int = 0, length: Any = None) -> hc.Mechanism:
    """The mechanism with every joint frame off, on each of its sides, as if rounded in a file.

    Every frame is turned about a random axis by `eps` (rad) and moved by `eps` times `length`
    (default: `size`) in a random direction: of joints of the tree those in the parent and in the
    child, but for a free root; those of closures, rods and contacts. The numbers of couplings
    and constraints of one's own stay; so do reference, motors and names.
    """
    rng = np.random.default_rng(seed)
    reach = size(mech) if length is None else length

    def off(place: pin.SE3) -> pin.SE3:
        return place * _off(rng, eps, reach)

    sides = [pin.SE3.Identity() for _ in range(mech.model.njoints)]
    for j in _placed(mech):
        sides[j] = off(sides[j])
    return _with_frames(mech, sides, off)


def meant(mech: hc.Mechanism, eps: float, seed: int = 0) -> hc.Mechanism:
    """`rounded`, with a tolerance that has room for it."""
    return dataclasses.replace(rounded(mech, eps, seed), tolerance=100.0 * eps)


def in_digits(mech: hc.Mechanism, digits: int) -> hc.Mechanism:
    """The mechanism as a file gives it whose numbers have so many decimals.

    Metres, and rad of roll, pitch and yaw, of the frames that `rounded` moves; of joints of the
    tree those in the parent alone, as in URDF. Ask for it ``askew``: round numbers stay.
    """

    def read(place: pin.SE3) -> pin.SE3:
        rpy = np.round(pin.rpy.matrixToRpy(place.rotation), digits)
        return pin.SE3(pin.rpy.rpyToMatrix(rpy), np.round(place.translation, digits))

    return _with_frames(mech, [pin.SE3.Identity()] * mech.model.njoints, read)


def _placed(mech: hc.Mechanism) -> range:
    """The joints of the tree but a free root, whose placement says nothing."""
    free = mech.model.joints[1].shortname() == "JointModelFreeFlyer"
    return range(2 if free else 1, mech.model.njoints)


def _with_frames(
    mech: hc.Mechanism, sides: list[pin.SE3], change: Callable[[pin.SE3], pin.SE3]
) -> hc.Mechanism:
    """All frames changed: first by where the body now sits in its joint, then by `change`."""
    model = mech.model.copy()
    for j in _placed(mech):
        model.jointPlacements[j] = change(sides[model.parents[j]] * model.jointPlacements[j])
        model.inertias[j] = sides[j].act(model.inertias[j])
    for frame in model.frames:
        if frame.type != pin.FrameType.JOINT:
            frame.placement = sides[frame.parentJoint] * frame.placement

    def again(c: Any) -> Any:
        changed = dict(_measured(mech, c))
        for key in _frames_of(c):
            found = hc.protocols.resolve_frame(mech.model, getattr(c, key), c.default_name)
            place = change(sides[found.joint] * found.placement)
            changed[key] = (mech.model.names[found.joint], place)
        return dataclasses.replace(c, name=c.default_name, **changed) if changed else c

    return dataclasses.replace(
        mech, model=model, constraints=tuple(again(c) for c in mech.constraints),
        parked=tuple((i, again(c)) for i, c in mech.parked),
    )  # fmt: skip


def misfit(
    mech: hc.Mechanism, amount: float, seed: int = 0, constraint: str | None = None
) -> hc.Mechanism:
    """The mechanism with one frame wrong: the second of a closure, by `seed` or by name.

    It is turned about a random axis by `amount` (rad) and moved by `amount` times `size`. Where
    rows repeat others, it is one that matters: what they demand then differs, beyond what a
    motion of first order can heal, by a tenth of `amount` or more.
    """
    rng = np.random.default_rng(seed)
    closures = [c for c in mech.constraints if isinstance(c, hc.Closure)]
    if constraint is not None:
        closures = [c for c in closures if c.default_name == constraint]
    reach, stress = size(mech), _self_stress(mech)
    for _ in range(500):
        chosen = closures[rng.integers(len(closures))]
        found = hc.protocols.resolve_frame(mech.model, chosen.b, chosen.default_name)
        place = found.placement * _off(rng, amount, reach)
        wrong = dataclasses.replace(
            chosen, b=(mech.model.names[found.joint], place), name=chosen.default_name
        )
        bent = dataclasses.replace(
            mech, constraints=tuple(wrong if c is chosen else c for c in mech.constraints)
        )
        demanded = stress.T @ (_scaled_rows(bent)[0] - _scaled_rows(mech)[0])
        if not stress.size or np.linalg.norm(demanded) > 0.1 * amount:
            return bent
    raise ValueError(f"{mech.name}: a misfit of {constraint or 'a closure'} opens nothing")


def _scaled_rows(mech: hc.Mechanism) -> tuple[Any, Any]:
    """Error and Jacobian at the reference, as pure numbers."""
    rows = constraint_rows(mech, mech.reference, np.zeros(mech.nv))[1]
    G = mech.row_scale[:, None] * rows.jacobian * mech.column_scale
    return mech.row_scale * rows.error, G


def _self_stress(mech: hc.Mechanism) -> Any:
    """Combinations of scaled rows that no velocity changes, at the reference; one a column."""
    U, s, _ = np.linalg.svd(_scaled_rows(mech)[1])
    return U[:, np.count_nonzero(s > 1e-8) :]


def _off(rng: np.random.Generator, eps: float, length: float) -> pin.SE3:
    turn, shift = unit(rng.normal(size=3)), unit(rng.normal(size=3))
    return pin.SE3(pin.exp3(eps * turn), eps * length * shift)


def _frames_of(constraint: Any) -> tuple[str, ...]:
    """The fields of a constraint that hold frames."""
    if isinstance(constraint, hc.Closure | hc.Rod):
        return ("a", "b")
    return ("frame",) if isinstance(constraint, hc.Contact) else ()


def _measured(mech: hc.Mechanism, c: Any) -> dict[str, Any]:
    """What a constraint would measure anew at the reference, as it is before rounding."""
    data = mech.model.createData()
    pin.forwardKinematics(mech.model, data, mech.reference)

    def at(frame: Any) -> Any:
        found = hc.protocols.resolve_frame(mech.model, frame, c.default_name)
        return (data.oMi[found.joint] * found.placement).translation

    if isinstance(c, hc.Rod) and c.length is None:
        return {"length": float(np.linalg.norm(at(c.b) - at(c.a)))}
    if isinstance(c, hc.Contact) and c.ground is None:
        return {"ground": at(c.frame)}
    return {}
