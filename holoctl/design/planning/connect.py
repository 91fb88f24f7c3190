"""A path of closed configurations between two of them, on one sheet or across a singularity.

    straight    a walk along tangents towards the goal
    trees       random ones, from both ends (search_trees.py)
    crossing    a way across a type-2 singularity, joined to both ends by trees
    then        shortcuts, even distances, rounded corners, and each step proved once more

A step is accepted as in manifold_steps.py, so a path that is found is a proof. A difference in the
signs of sheet.py proves that there is none; a search that ends proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin

from holoctl.base.checks import (
    Array,
    Mask,
    Vector,
    counted,
    listing,
    number,
    one_of,
    quiet,
    read_only,
    unpickled,
    whole,
)
from holoctl.base.errors import BranchError, InputError, LimitError, SingularityError
from holoctl.base.linalg import largest
from holoctl.base.single_threaded_blas import one_thread
from holoctl.base.tolerances import CLOSED
from holoctl.closing.rank import scaled_jacobian
from holoctl.design.planning.crossing_search import across, crosses_once
from holoctl.design.planning.manifold_steps import (
    ManifoldPlace,
    ManifoldSteps,
    manifold_steps,
    with_combined_rows,
)
from holoctl.design.planning.path_smoothing import chained, even, lengths, shortened, smoothed
from holoctl.design.planning.search_trees import Trees
from holoctl.design.planning.sheet import sheet, sheet_partition
from holoctl.mechanism.bound_limits import BoundLimits, bound_limits
from holoctl.mechanism.checks import check_configuration
from holoctl.mechanism.default_limits import requested_limits
from holoctl.mechanism.limited_coordinates import positions_at
from holoctl.mechanism.limits import MODEL, Limits
from holoctl.mechanism.mechanism import Mechanism
from holoctl.rows.evaluate import may_depend_on_time
from holoctl.tree.frozen_model import plain

__all__ = ["ConnectedPath", "connect"]

SPACING = 0.05  # scaled
"""Distance of the way-points of a path."""

FEWEST_POINTS = 21
"""The least number of way-points."""

SHORTCUTS, PASSES = 80, 12
"""Numbers of attempts to shorten a path, and of passes that round its corners."""

AWAY_FROM_LIMITS = 1e-3  # scaled
"""Distance from limits of positions, except where start or goal are nearer: a spline through
way-points may be this far from the path."""

MOST_STRAIGHT, BEFORE_CROSSING, AFTER_CROSSING, ACROSS_COUNTS = 1000, 300, 3000, 100
"""Most steps of a straight walk, of a search before ways across a singularity are tried, and of one
after each of them; the number of steps that a way counts."""

ROOM = (1.2, 2.5, 5.0)
"""A search keeps this many margins; the next number, if its path falls below the margin between its
places."""

BEYOND = 1.5
"""A way across a singularity ends where the smallest singular value is this many margins."""

PAST_LIMIT = 1e-9  # scaled
"""A configuration may be past a limit by this much, as in `retime`."""

THROUGH = ("type 2",)


@dataclass(frozen=True, eq=False, repr=False)
class ConnectedPath:
    """A path of closed configurations, without times: `retime` finds them.

    Attributes
    ----------
    q : (n, nq) array
        Way-points from the start to the goal, near to one another. Whole turns of passive joints
        are counted from the start on.
    sigma : (n,) array
        The smallest singular value of gamma' B at each, scaled; inf without motors.
    sides : tuple of int
        The sign of det [G; B'] before and after the singularities on the path; empty if the motors
        are not as many as the motions, or rows are redundant and it passes none.
    crossing : int or None
        The index of the way-point nearest to the singularity that the path passes.
    steps : int
        The number of steps of the search.
    name : str
        The name of the mechanism.

    See Also
    --------
    connect : returns it.
    retime : the fastest motion along `q`.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> start, _ = hc.assemble(mech)
    >>> goal, _ = hc.assemble(mech, [1.9, -1.0, 1.2, 1.0], locked=["motor_left", "motor_right"])
    >>> hc.connect(mech, start, goal).crossing is None
    True
    """

    q: Array
    sigma: Vector
    sides: tuple[int, ...]
    crossing: int | None
    steps: int
    name: str

    __setstate__ = unpickled

    def __repr__(self) -> str:
        least = f"smallest singular value {self.sigma.min():.2g}"
        what = least if self.crossing is None else "through a type-2 singularity"
        return (
            f"<ConnectedPath of {self.name!r}: {counted(len(self.q), 'way-point')}, {what}; "
            f"{counted(self.steps, 'step')}>"
        )


@quiet
def connect(
    mech: Mechanism,
    start: Any,
    goal: Any,
    limits: Any = MODEL,
    *,
    through: str | None = None,
    margin: float = 0.02,
    steps: int = 15_000,
    seed: int = 0,
) -> ConnectedPath:
    """A path of closed configurations from one to another, without a singularity of the motors.

    On it the smallest singular value of gamma' B stays above a margin, so the motors determine the
    motion everywhere, and both ends are on one sheet. The path may change the working mode, as the
    elbows of legs: the motors hold it there.

    Parameters
    ----------
    mech : Mechanism
    start, goal : (nq,) array_like
        Closed configurations, on any branch, as of `assemble`, `inverse_kinematics` or
        `assembly_modes`. Whole turns of passive joints without limits do not count.
    limits : "model", Limits or None, optional
        ``"model"``: those of the mechanism, ``hc.limits_of(mech)``; a `Limits`; None: no limits.
        Positions are kept, of any joint, also of cut ones; the others are for `retime`.
    through : str, optional
        ``"type 2"``: the path may pass a type-2 singularity once, if start and goal are on
        different sides. It does so at a generic point, transversally.
    margin : float, optional
        The least smallest singular value of gamma' B on the path, scaled, above 0; beside the
        singularity if the path passes one.
    steps : int, optional
        The largest number of steps of the search.
    seed : int, optional
        The seed of the random search; the same seed gives the same path.

    Returns
    -------
    ConnectedPath
        ``hc.retime(mech, path.q)`` follows it, with ``cross=True`` if it passes a singularity. One
        way-point if start and goal are the same.

    Raises
    ------
    BranchError
        If no path is found. It has the nearest configuration (`q`), the distance that is left, the
        number of steps, and `apart`: what proves that there is none, empty if nothing does.
    SingularityError
        If start or goal are closer to a type-2 singularity than the margin.
    LimitError
        If start or goal are past a position limit.
    InputError
        For configurations that are not closed; wrong arguments; constraints that depend on time.

    See Also
    --------
    sheet : the signs that tell sheets apart.
    retime : the fastest motion along the path.
    joined_modes : which assembly modes are joined.

    Notes
    -----
    Collisions are not checked. Without as many motors as motions there are no sides. If rows are
    redundant no signs prove anything, and a path through a singularity avoids configurations in
    which the chosen rows become dependent.

    `retime` holds idle motions still, also where the path turns them. It crosses a singularity in
    one motion if the same coordinates determine the motion on all of the path. If not, follow three
    parts, at rest between them: up to some way-points before ``path.crossing``, the stretch about
    it, and the rest.

    References
    ----------
    J. Kuffner and S. LaValle, "RRT-Connect: an efficient approach to single-query path planning",
    IEEE International Conference on Robotics and Automation, 2000; R. Bordalba, L. Ros and J. M.
    Porta, "A randomised kinodynamic planner for closed-chain robotic systems".

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> start, _ = hc.assemble(mech)
    >>> goal, _ = hc.assemble(mech, [1.9, -1.0, 1.2, 1.0], locked=["motor_left", "motor_right"])
    >>> path = hc.connect(mech, start, goal)
    >>> round(float(path.sigma.min()), 1), path.sides
    (0.5, (1,))
    """
    ends = [check_configuration(mech, start, "start"), check_configuration(mech, goal, "goal")]
    margin, steps = number("margin", margin), whole("steps", steps, 1)
    seed = whole("seed", seed, 0)
    if not margin > 0.0:
        raise InputError(f"margin must be above 0; got {margin:g}")
    if through is not None:
        one_of("through", through, THROUGH)
    if may_depend_on_time(mech):
        raise InputError(f"{mech.name} has constraints that depend on time, or may: there is no "
                         "path for all times; switch them off")  # fmt: skip
    given = requested_limits(mech, limits, "connect") or Limits()
    bound = bound_limits(mech, Limits(position=given.position))
    with one_thread():
        turning = _turning(mech, bound, ends[0])
        rule = manifold_steps(mech, sheet_partition(mech), bound, turning, margin)
        one, two = _end(rule, ends[0], "start"), _end(rule, ends[1], "goal")
        rule = _within(rule, one, two)
        signs = sheet(mech, one.q), sheet(mech, two.q)
        rng, crosses = np.random.default_rng(seed), one.signed * two.signed < 0.0
        passes = crosses and through is not None
        if signs[0].proof:
            if passes:
                return _through(rule, one, two, steps, rng)
            if apart := signs[0].apart(signs[1]) or (("type 2",) if crosses else ()):
                raise _not_found(rule, (one, two), 0, apart)
            return _on_one_side(rule, one, two, steps, rng)
        free = with_combined_rows(rule)
        a, b = _end(free, one.q, "start"), _end(free, two.q, "goal")
        try:
            return _on_one_side(free, a, b, min(steps, AFTER_CROSSING) if passes else steps, rng)
        except BranchError:
            if not passes:
                raise
        return _through(rule, one, two, steps, rng)


# -------------------------------------------------------------------------------------- arguments


def _turning(mech: Mechanism, bound: BoundLimits, q: Vector) -> Mask:
    """The passive angles without a limit in which a whole turn changes nothing: neither a body nor
    a row."""
    model, data, found = plain(mech.model), mech.model.createData(), np.zeros(mech.nv, dtype=bool)
    pin.forwardKinematics(model, data, q)
    placements, error = [x.copy() for x in data.oMi], scaled_jacobian(mech, q, 0.0)[1]
    counted_too = (mech.B != 0.0).any(axis=1)
    counted_too[bound.columns] = True
    for j in range(1, model.njoints):
        for i in range(model.nvs[j]) if model.nqs[j] == model.nvs[j] else ():
            at, column = model.idx_qs[j] + i, model.idx_vs[j] + i
            turned = q.copy()
            turned[at] += 2.0 * np.pi
            pin.forwardKinematics(model, data, turned)
            same = all(x.isApprox(y, 1e-9) for x, y in zip(data.oMi, placements, strict=True))
            off = largest(scaled_jacobian(mech, turned, 0.0)[1] - error) if same else np.inf
            found[column] = off < CLOSED and not counted_too[column]
    return found


def _end(steps: ManifoldSteps, q: Vector, name: str) -> ManifoldPlace:
    """The place of the start or the goal, checked."""
    mech = steps.mech
    if not largest(scaled_jacobian(mech, q, 0.0)[1]) <= max(CLOSED, steps.part.tolerance):
        raise InputError(f"{mech.name}: connect: {name} is not closed; hc.assemble closes it")
    place = steps.place(q)
    if place is None:
        raise SingularityError(
            f"{mech.name}: connect: the constraints are singular at {name}, so it may continue on "
            "several branches", q=q,
        )  # fmt: skip
    if not place.sigma > steps.margin:
        raise SingularityError(
            f"{mech.name}: connect: {name} is at a type-2 singularity, or close to one: the "
            f"smallest singular value of gamma' B is {place.sigma:.2g} (scaled), not above the "
            f"margin of {steps.margin:g}; give another {name}, or a smaller margin",
            kind="type 2", value=place.sigma, q=q,
        )  # fmt: skip
    return place


def _within(steps: ManifoldSteps, one: ManifoldPlace, two: ManifoldPlace) -> ManifoldSteps:
    """The rule with limits a little tighter, except where the ends are nearer."""
    bound = steps.bound
    if bound is None or not bound.names:
        return replace(steps, bound=None)
    here = np.array([positions_at(steps.mech, bound, x.q) for x in (one, two)])
    for name, x in zip(("start", "goal"), here, strict=True):
        over = np.maximum(x - bound.position[1], bound.position[0] - x) / bound.units
        if over.max() > 0.5 * PAST_LIMIT:
            names = [f"{bound.names[i]}.position" for i in np.flatnonzero(over > 0.5 * PAST_LIMIT)]
            raise LimitError(
                f"{steps.mech.name}: connect: {name} is past {listing(names)}; limits=None leaves "
                "all limits out",
                names=names, residual=float(over.max()), q=(one if name == "start" else two).q,
            )  # fmt: skip
    room, least = AWAY_FROM_LIMITS * bound.units, 0.5 * PAST_LIMIT * bound.units
    lower = np.minimum(bound.position[0] + room, here.min(axis=0) - least)
    upper = np.maximum(bound.position[1] - room, here.max(axis=0) + least)
    return replace(steps, position=np.array([lower, upper]))


def _with_room(
    rule: ManifoldSteps, one: ManifoldPlace, two: ManifoldPlace, room: float = ROOM[0]
) -> ManifoldSteps:
    """The rule with a larger margin, except where the ends are nearer: the smallest singular value
    falls between places."""
    return replace(rule, margin=min(room * rule.margin, 0.999 * one.sigma, 0.999 * two.sigma))


def _not_found(
    rule: ManifoldSteps, nearest: tuple[ManifoldPlace, ManifoldPlace], tried: int,
    apart: tuple[str, ...] = (),
) -> BranchError:  # fmt: skip
    """The error for a search that found no path."""
    name, (near, other) = rule.mech.name, nearest
    distance = float(np.linalg.norm(rule.left(near.q, other.q)))
    text = (
        f"{name}: no path from start to goal was found in {counted(tried, 'step')}: the nearest "
        f"configurations that were reached from both ends are {distance:.3g} apart (scaled). "
    )
    if apart:
        text += (
            f"There is none without a singularity, because signs differ ({'; '.join(apart)}); "
            'through="type 2" allows one of type 2, at which one sign changes'
        )
    else:
        text += (
            "There may be one: equal signs prove nothing. Try more steps, another seed, a smaller "
            "margin or wider limits"
        )
    return BranchError(text, why="reach", q=near.q, distance=distance, steps=tried, apart=apart)


# ------------------------------------------------------------------------------------ the two ways


def _on_one_side(
    rule: ManifoldSteps, one: ManifoldPlace, two: ManifoldPlace, steps: int,
    rng: np.random.Generator,
) -> ConnectedPath:  # fmt: skip
    """The path without a singularity."""
    for room in ROOM:
        trees = Trees(_with_room(rule, one, two, room), one, two, rng)
        found = trees.search(steps)
        path = None if found is None else _finished(rule, [found], trees.tried, rng)
        if path is not None:
            return path
        if found is None:
            break
    raise _not_found(rule, trees.nearest(), trees.tried)


def _through(
    rule: ManifoldSteps, one: ManifoldPlace, two: ManifoldPlace, steps: int,
    rng: np.random.Generator,
) -> ConnectedPath:  # fmt: skip
    """The path across one type-2 singularity."""
    free, kept = replace(rule, margin=-1.0), _with_room(rule, one, two)
    walk = free.walk(one, two.q, MOST_STRAIGHT)
    if walk.arrived and crosses_once([one, *walk.stops], rule.margin):
        found = _finished(rule, [[one, *walk.stops]], walk.tried, rng)
        if found is not None:
            return found
    trees = Trees(kept, one, two, rng)
    trees.search(min(steps, BEFORE_CROSSING))
    tried, ways = trees.tried, [(trees.one, two, 0), (trees.two, one, 0)]
    while tried < steps:
        tree, root, at = ways.pop(0)
        ways.append((tree, root, int(rng.integers(len(tree.places)))))
        tried += ACROSS_COUNTS
        way = across(free, tree.places[at], BEYOND * rule.margin)
        if way is None:
            continue
        more = Trees(kept, way[-1], root, rng)
        rest = more.search(min(steps - tried, AFTER_CROSSING))
        tried += more.tried
        if rest is not None:
            parts = [tree.path(at), way, rest]
            if tree is trees.two:
                parts = [part[::-1] for part in parts[::-1]]
            found = _finished(rule, parts, tried, rng)
            if found is not None:
                return found
    raise _not_found(rule, trees.nearest(), tried)


def _finished(
    rule: ManifoldSteps, parts: list[list[ManifoldPlace]], tried: int, rng: np.random.Generator
) -> ConnectedPath | None:
    """The result: parts are made short, joined, made smooth and proved again in small steps; None
    if they are not. A part that crosses a singularity is left as it is."""
    ends = parts[0][0], parts[-1][-1]
    crosses = ends[0].signed * ends[1].signed < 0.0
    kept, path = _with_room(rule, *ends), parts[0][:1]
    for part in parts:
        same = part[0].signed * part[-1].signed >= 0.0
        path += (shortened(kept, part, rng, SHORTCUTS) if same else part)[1:]
    step = replace(rule, margin=-1.0) if crosses else rule
    count = max(FEWEST_POINTS, int(np.ceil(lengths(rule, path).sum() / SPACING)) + 1)
    level = even(step, path, count)
    for passes in (PASSES, 2, 0, None):
        found = chained(step, path if passes is None else smoothed(step, level, passes))
        if found is not None and (not crosses or _crosses_once(rule, found)):
            break
    else:
        return None
    sigma = np.array([place.sigma for place in found])
    told = ends[: 1 + crosses] if ends[0].driven is not None else ()
    sides = tuple(int(np.sign(x.signed)) for x in told)
    crossing = int(np.argmin(sigma)) if crosses else None
    q = read_only(np.array([place.q for place in found]))
    return ConnectedPath(q, read_only(sigma), sides, crossing, tried, rule.mech.name)


def _crosses_once(rule: ManifoldSteps, path: list[ManifoldPlace]) -> bool:
    """Whether a path passes one singularity, once, and keeps the margin before and after it."""
    within = crosses_once(path, rule.margin)
    if within is None:
        return False
    ends = path[: within[0] + 1], path[within[1] :]
    return all(chained(rule, end) is not None for end in ends)
