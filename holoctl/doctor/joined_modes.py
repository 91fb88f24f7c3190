"""Which assembly modes are joined by a path without singularity, and which are parted.

Trees of closed configurations grow from the modes, along straight lines of the motors in random
directions, and towards one another; where two meet, a path joins their modes.
References: C. Innocenti and V. Parenti-Castelli 1998, Singularity-free evolution from one
configuration to another in serial and fully-parallel manipulators; J. Kuffner and S. LaValle 2000,
RRT-Connect.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np

from holoctl.base.checks import Array, Mask, Vector, counted, flag, number, quiet, read_only, whole
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.linalg import largest
from holoctl.base.one_thread import one_thread
from holoctl.base.progress import progress_bar
from holoctl.base.tolerances import PATH_MEET, PATH_MET, PATH_RUN, PATH_SEARCH, PATH_STEP
from holoctl.closing.newton import Problem
from holoctl.constraints.coupling import BoundCoupling
from holoctl.constraints.wrench import WrenchRows
from holoctl.doctor.assembly_modes import AssemblyModes
from holoctl.doctor.leg_signs import sign_of_legs, that_roll
from holoctl.doctor.mode_compare import Comparison, Group, comparison, group_of
from holoctl.doctor.mode_search import Closed, allowed, free_coordinates, held, starts
from holoctl.doctor.mode_walk import ModeStop, Walker, driven, held_still
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import placed
from holoctl.rows.evaluate import scaled_rows_at

__all__ = ["JoinedModes", "joined_modes"]

PATH_OVERHEAD = 5
"""As so many steps a direction counts that is blocked at once."""

PATH_TURN, PATH_SLIDE = 3.14, 2.0  # rad; of the size of the mechanism
"""How far from the modes motors are sent, at most."""

NO_ROW = 1e-11  # scaled
"""A row whose Jacobian is smaller at configurations anywhere holds nothing: planar loops have
such."""


@dataclass(frozen=True, eq=False, repr=False)
class JoinedModes:
    """Of each pair of modes: joined, parted, or not known.

    Attributes
    ----------
    groups : tuple of tuples of int
        Modes that are joined, by their numbers in ``AssemblyModes.modes``; each is in one.
    parted : (n, n) array of bool
        Modes of which it is proven that no path joins them.
    steps : int
        How many were taken.
    name : str
        Of the mechanism.
    """

    groups: tuple[tuple[int, ...], ...]
    parted: Mask
    steps: int
    name: str
    _paths: dict[int, Array] = field(default_factory=dict)
    """From the first mode of its group to each other one."""

    def __repr__(self) -> str:
        n = len(self.parted)
        together = [" and ".join(map(str, g)) for g in self.groups if len(g) > 1]
        pairs = n * (n - 1) // 2
        joined = sum(len(g) * (len(g) - 1) // 2 for g in self.groups)
        parted = int(np.triu(self.parted, 1).sum())
        return (
            f"<JoinedModes of {self.name!r}: of {counted(pairs, 'pair')} of modes {joined} joined"
            f"{' (' + ', '.join(together) + ')' if together else ''}, {parted} parted, "
            f"{pairs - joined - parted} not known after {counted(self.steps, 'step')}>"
        )

    def between(self, i: int, j: int) -> str:
        """What is known of two modes.

        Parameters
        ----------
        i, j : int
            Their numbers.

        Returns
        -------
        str
            ``"joined"``: a path was found. ``"parted"``: there is none. ``"not known"``: none was
            found.
        """
        i, j = self._checked(i), self._checked(j)
        if i == j or any(i in g and j in g for g in self.groups):
            return "joined"
        return "parted" if self.parted[i, j] else "not known"

    def path(self, i: int, j: int) -> Array:
        """A path of closed configurations without singularity between two modes that are joined.

        Parameters
        ----------
        i, j : int
            Their numbers.

        Returns
        -------
        (n, nq) array
            Each configuration less than 0.1 (scaled) from the one before. The ends are the
            modes but for what modes do not differ by, such as whole turns, of motors too.

        Raises
        ------
        InputError
            For modes of which no path is known.
        """
        what = self.between(i, j)
        if what != "joined":
            why = "no path joins them" if what == "parted" else "no path was found"
            raise InputError(f"modes {i} and {j} of {self.name!r} are {what}: {why}")
        group = next(g for g in self.groups if i in g)
        back, there = self._paths[i][::-1], self._paths[j]
        if i == j or i == group[0]:
            return there[:1].copy() if i == j != group[0] else there.copy()
        return np.vstack([back, there[1:]])

    def _checked(self, i: int) -> int:
        n = len(self.parted)
        if whole("number of a mode", i, 0) >= n:
            raise InputError(f"number of a mode: there are {counted(n, 'mode')}; got {i}")
        return int(i)


@quiet
def joined_modes(
    mech: Mechanism,
    found: AssemblyModes,
    *,
    steps: int = 5_000,
    seed: int = 0,
    t: float = 0.0,
    progress: bool = False,
) -> JoinedModes:
    """Which assembly modes are joined by a path on which the motors determine the motion.

    Such a path leads from one mode to another through closed configurations, motors moving, and no
    singular one is among them: a robot changes its mode there without a dead point. A path that is
    found proves it. Modes whose determinants differ in sign are parted, where that is proven (see
    Notes). The search is a random one: what it does not find may be there.

    Parameters
    ----------
    mech : Mechanism
    found : AssemblyModes
        What `assembly_modes` found for this mechanism.
    steps : int, optional
        How many steps of the search may be taken, some 0.5 ms each for a planar robot, 1 ms for a
        platform on six legs. It ends sooner where all pairs are decided.
    seed : int, optional
        Of the random directions; the same seed gives the same result.
    t : float, optional
        Time, s, as it was for `assembly_modes`.
    progress : bool, optional
        Show a progress bar (needs tqdm).

    Returns
    -------
    JoinedModes

    Raises
    ------
    InputError
        For modes of another mechanism, or time.
    NotActuatedError
        If the mechanism moves with its motors held, other than idly.

    Notes
    -----
    Motors go wherever the mechanism closes: any number of turns, and twice the size of the
    mechanism. Limits of joints, and collisions, are not looked at.

    A sign parts modes where the rows of the determinant are all that hold anything, as many as
    coordinates that no motor drives, all of closures, contacts, rods and couplings. Legs between a
    universal joint of the tree and a ball joint may roll, each with a factor of its own, which is
    divided out; where other bodies may, no sign proves anything. A singular mode is parted from
    all others, and without motors all are.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> found = hc.assembly_modes(mech, {"motor_left": 2.2, "motor_right": 0.9}, tries=30)
    >>> hc.joined_modes(mech, found).between(0, 1)
    'parted'
    """
    check_mechanism(mech)
    if not isinstance(found, AssemblyModes):
        raise InputError(
            "found must be what hc.assembly_modes(mech, motors) returns; got "
            f"{type(found).__name__}"
        )
    steps, seed, t = whole("steps", steps, 0), whole("seed", seed, 0), number("t", t, "time, s")
    progress = flag("progress", progress)
    p, closed = _modes(mech, found, t)
    by = comparison(p, closed)
    legs = that_roll(mech, closed[0].q, t, by.same.size)
    by = by._replace(same=by.same.only(legs))
    parted = _parted(p, found, by)
    trees = _Trees(p, closed, by, parted, seed)
    bar = progress_bar(steps, "joined modes", "steps") if progress else None
    with one_thread(), bar or nullcontext():
        while trees.taken < steps and trees.open_pairs():
            before = trees.taken
            trees.grow(steps - before)
            if bar is not None:
                bar.update(trees.taken - before)
        taken = trees.taken
        groups, paths = trees.paths()
    return JoinedModes(groups, read_only(parted), taken, mech.name, paths)


def _modes(mech: Mechanism, found: AssemblyModes, t: float) -> tuple[Problem, list[Closed]]:
    """The problem that they solve, checked."""
    names = set(mech.row_names) | set(mech.coordinate_names)
    fits = found.name == mech.name and found.motors.size == mech.nu
    if not fits or not names.issuperset((*found.rows, *found.coordinates)):
        raise InputError(f"found: these are modes of {found.name!r}, and not of this {mech.name!r}")
    if any(m.q.size != mech.nq for m in found.modes):
        raise InputError(f"found: these are modes of another {mech.name!r}")
    q = placed(mech.motors, mech.reference, found.motors)
    p = held(mech, q, t, free_coordinates(mech))
    closed = [Closed(m.q, largest(p.scaled_rows(m.q)[0]), ()) for m in found.modes]
    worst = max(x.error for x in closed)
    if not worst <= 2.0 * allowed(mech):
        raise InputError(
            f"found: these modes are open by {worst:.1e} (scaled) at t = {t:g} s; were they found "
            "for another mechanism of this name, or another time?"
        )
    return p, closed


# ------------------------------------------------------------------------------------------- signs


def _parted(p: Problem, found: AssemblyModes, by: Comparison) -> Mask:
    """What the signs prove, and singular modes."""
    singular = np.array([m.singular for m in found.modes])
    parted: Mask = singular[:, None] | singular
    if not driven(p).size:
        parted[:] = True  # nothing moves
    if _signs_part(p, found, by):
        legs = [sign_of_legs(p.mech, m.q, p.t, by.same.size) for m in found.modes]
        sign = np.array([m.sign for m in found.modes]) * legs
        parted |= sign[:, None] * sign < 0
    np.fill_diagonal(parted, False)
    return parted


def _signs_part(p: Problem, found: AssemblyModes, by: Comparison) -> bool:
    """Whether the determinant is that of all that holds the mechanism."""
    mech = p.mech
    if by.idle or not len(found.rows) == len(found.coordinates) == p.free.size:
        return False
    if any(not isinstance(bound, WrenchRows | BoundCoupling) for bound in mech.bound):
        return False  # what is the same after a whole turn need not be to them
    holding = np.zeros(len(mech.row_names), dtype=bool)
    for q in starts(held(mech, mech.reference, p.t, np.arange(mech.nv)), 4, 0):
        G = scaled_rows_at(mech, q, np.zeros(mech.nv), p.t).jacobian
        holding |= ~(np.abs(G).max(axis=1, initial=0.0) <= NO_ROW)
    return {mech.row_names[i] for i in np.flatnonzero(holding)} == set(found.rows)


# ------------------------------------------------------------------------------------------- trees


class _Tree:
    """Stops that are joined to one mode."""

    def __init__(self, walker: Walker, place: Vector) -> None:
        self.walker, self.stops, self.parents = walker, [walker.start], [-1]
        self._ys, self._places = [walker.start.y], [place]
        self.compared = dict[int, Group]()

    def add(self, stop: ModeStop, parent: int, place: Vector) -> int:
        self.stops.append(stop)
        self.parents.append(parent)
        self._ys.append(stop.y)
        self._places.append(place)
        return len(self.stops) - 1

    def nearest(self, y: Vector, unit: Vector) -> int:
        """By the motors."""
        left = self.walker.left(np.array(self._ys), y) / unit
        return int(np.argmin((left * left).sum(axis=1)))

    def most_alike(self, place: Vector) -> int:
        """By the places of bodies."""
        off = np.array(self._places) - place
        return int(np.argmin((off * off).sum(axis=1)))

    def ways(self, at: int) -> list[Vector]:
        """Of the motors, from the mode to a stop."""
        ys = []
        while at >= 0:
            ys.append(self.stops[at].y)
            at = self.parents[at]
        return list(np.diff(np.array(ys[::-1]), axis=0))


class _Trees:
    """One for each mode that can be walked from."""

    def __init__(
        self, p: Problem, closed: list[Closed], by: Comparison, parted: Mask, seed: int
    ) -> None:
        self.p, self.by, self.closed, self.parted = p, by, closed, parted
        self.rng, self.trees = np.random.default_rng(seed), dict[int, _Tree]()
        n, self.taken = len(closed), 0
        self.group, self.edges = list(range(n)), dict[tuple[int, int], list[Vector]]()
        if parted.sum() == n * (n - 1):
            return
        sensors = held_still(p)
        for i, x in enumerate(closed):
            if parted[i].sum() != n - 1:
                try:
                    self.trees[i] = _Tree(Walker(p, sensors, x.q), self._place(x.q))
                except HoloctlError:
                    continue  # it is a dead point, or nearly

    def open_pairs(self) -> list[tuple[int, int]]:
        """Of trees, that may be joined or not."""
        return [
            (i, j)
            for i in self.trees
            for j in self.trees
            if self.group[i] != self.group[j] and not self.parted[i, j]
        ]

    def grow(self, most: int) -> None:
        """One tree grows, and towards another one."""
        pairs = self.open_pairs()
        i, j = pairs[int(self.rng.integers(len(pairs)))]
        a, b = self.trees[i], self.trees[j]
        unit = self.p.mech.column_scale[a.walker.columns]
        widest = np.where(a.walker.turning, PATH_TURN, PATH_SLIDE * unit)
        y = self.rng.uniform(-1.0, 1.0, unit.size) * widest
        at, before, least = a.nearest(y, unit), self.taken, min(most, PATH_OVERHEAD)
        new = self._walked(a, at, a.walker.left(a.stops[at].y, y), min(most, PATH_RUN))
        to = b.most_alike(self._place(a.stops[new].q))
        way, most = a.walker.left(a.stops[new].y, b.stops[to].y), most - self.taken + before
        end = self._walked(a, new, way, min(most, PATH_MEET))
        self.taken = max(self.taken, before + least)
        if largest(a.walker.left(a.stops[end].y, b.stops[to].y)) > PATH_MET:
            return
        if self.by.same(self._once(a, end), self._once(b, to)):
            self._joined(i, j, a.ways(end) + [-way for way in reversed(b.ways(to))])

    def _once(self, tree: _Tree, at: int) -> Group:
        if at not in tree.compared:
            tree.compared[at] = self._compared(tree.stops[at].q)
        return tree.compared[at]

    def _walked(self, tree: _Tree, at: int, way: Vector, most: int) -> int:
        stops, taken, _ = tree.walker.walk(tree.stops[at], way, PATH_SEARCH, most)
        self.taken += taken
        for stop in stops:
            at = tree.add(stop, at, self._place(stop.q))
        return at

    def _joined(self, i: int, j: int, ways: list[Vector]) -> None:
        stops = self.trees[i].walker.followed(ways, PATH_STEP)
        if stops is None or not self._is(j, stops[-1].q):
            return
        self.edges[i, j], self.edges[j, i] = ways, [-way for way in reversed(ways)]
        old, new = max(self.group[i], self.group[j]), min(self.group[i], self.group[j])
        self.group = [new if g == old else g for g in self.group]

    def _is(self, j: int, q: Vector) -> bool:
        return self.by.same(self._compared(self.closed[j].q), self._compared(q))

    def _compared(self, q: Vector) -> Group:
        error = largest(self.p.scaled_rows(q)[0])
        return group_of(self.p, Closed(q, error, ()), self.by.rank)

    def _place(self, q: Vector) -> Vector:
        return self.by.same.place(q)

    def paths(self) -> tuple[tuple[tuple[int, ...], ...], dict[int, Array]]:
        """The groups, and from the first mode of each a path to each other one, followed whole."""
        paths, groups = dict[int, Array](), list[tuple[int, ...]]()
        for i in range(len(self.closed)):
            if i in paths:
                continue
            paths[i] = self.closed[i].q[None].copy()
            reached, ways, queue = [i], {i: list[Vector]()}, [i]
            while queue:
                k = queue.pop(0)
                for a, j in sorted(self.edges):
                    if a != k or j in paths:
                        continue
                    ways[j] = ways[k] + self.edges[k, j]
                    stops = self.trees[i].walker.followed(ways[j], PATH_STEP)
                    if stops is not None and self._is(j, stops[-1].q):
                        paths[j] = np.array([s.q for s in stops])
                        reached.append(j)
                        queue.append(j)
            groups.append(tuple(sorted(reached)))
        for path in paths.values():
            read_only(path)
        return tuple(groups), paths
