"""Which assembly modes are joined by a path without singularity, and which are parted.

Trees of closed configurations grow from the modes, along straight lines of the motors in random
directions, and towards one another; if two trees meet, a path joins their modes.
References: C. Innocenti and V. Parenti-Castelli 1998, Singularity-free evolution from one
configuration to another in serial and fully-parallel manipulators; J. Kuffner and S. LaValle 2000,
RRT-Connect.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import permutations

import numpy as np

from holoctl.base.checks import Array, Mask, Vector, counted, flag, number, quiet, read_only, whole
from holoctl.base.errors import HoloctlError, InputError
from holoctl.base.linalg import largest
from holoctl.base.progress import progress_bar
from holoctl.base.single_threaded_blas import one_thread
from holoctl.closing.newton import Problem
from holoctl.constraints.coupling import BoundCoupling
from holoctl.constraints.wrench_rows import WrenchRows
from holoctl.doctor.assembly_modes import AssemblyModes
from holoctl.doctor.leg_spins import sign_of_legs, that_roll
from holoctl.doctor.mode_comparison import Comparison, ModeGroup
from holoctl.doctor.mode_paths import PATH_MET, ModeWalker, driven, held_still
from holoctl.doctor.mode_search import ClosedStart, allowed, free_coordinates, held, starts
from holoctl.mechanism.checks import check_mechanism
from holoctl.mechanism.mechanism import Mechanism
from holoctl.mechanism.motors import placed
from holoctl.rows.evaluate import scaled_rows_at

__all__ = ["NO_ROW", "JoinedModes", "joined_modes", "proven_by_rows"]

PATH_SEARCH = 0.2  # scaled
"""Predicted step of the coordinate that moves most, while paths between assembly modes are
searched."""

PATH_STEP = 0.05  # scaled
"""The same in the path that is returned."""

PATH_RUN = 25
"""Steps in one random direction before another direction is drawn."""

PATH_MEET = 100
"""Steps from one tree of configurations towards the other."""


PATH_OVERHEAD = 5
"""The number of steps that a direction counts at least, also if its first step fails."""

PATH_TURN, PATH_SLIDE = 3.14, 2.0  # rad; of the size of the mechanism
"""The farthest targets of the motors from their positions in the modes."""

NO_ROW = 1e-11  # scaled
"""A row whose Jacobian is smaller at random configurations constrains nothing, as some rows of
planar loops."""


@dataclass(frozen=True, eq=False, repr=False)
class JoinedModes:
    """For each pair of modes whether a path joins them: joined, parted, or not known.

    Attributes
    ----------
    groups : tuple of tuples of int
        Modes that are joined, by their numbers in ``AssemblyModes.modes``; each is in one.
    parted : (n, n) array of bool
        Pairs of modes for which it is proven that no path joins them.
    steps : int
        The number of steps of the search.
    name : str
        The name of the mechanism.

    See Also
    --------
    joined_modes : returns it.
    assembly_modes : numbers the modes.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("five_bar"))
    >>> found = hc.assembly_modes(mech, {"motor_left": 2.2, "motor_right": 0.9}, tries=30)
    >>> hc.joined_modes(mech, found).groups
    ((0,), (1,))
    """

    groups: tuple[tuple[int, ...], ...]
    parted: Mask
    steps: int
    name: str
    _paths: dict[int, Array] = field(default_factory=dict)
    """The path to each mode from the first mode of its group."""

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
        """Whether a path joins two modes, as far as it is known.

        Parameters
        ----------
        i, j : int
            The numbers of the modes.

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
            The numbers of the modes.

        Returns
        -------
        (n, nq) array
            Each configuration less than 0.1 (scaled) from the previous one. The ends are the
            modes, up to differences that do not distinguish modes, such as whole turns, also of
            the motors.

        Raises
        ------
        InputError
            For modes between which no path is known.
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

    Such a path leads from one mode to another through closed configurations, with moving motors,
    and none of them is singular: a robot changes its mode on it without a dead point. A path that
    is found is a proof. Modes whose determinants differ in sign are parted if the conditions of the
    Notes hold. The search is random: a path that it does not find may exist.

    Parameters
    ----------
    mech : Mechanism
    found : AssemblyModes
        The result of `assembly_modes` for this mechanism.
    steps : int, optional
        The largest number of steps of the search, about 0.5 ms each for a planar robot, 1 ms for a
        platform on six legs. It ends earlier if all pairs are decided.
    seed : int, optional
        The seed of the random directions; the same seed gives the same result.
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

    See Also
    --------
    assembly_modes : finds the modes.
    results.JoinedModes : has the paths.

    Notes
    -----
    Motors move wherever the mechanism closes: any number of turns, and twice the size of the
    mechanism. Limits of joints, and collisions, are not considered.

    A difference in sign parts two modes if the rows of the determinant are all rows that constrain
    anything, if they are as many as the coordinates that no motor drives, and if all are of
    closures, contacts, rods and couplings. Legs between a universal joint of the tree and a ball
    joint may roll; each contributes a factor, which is divided out. If other bodies may roll, the
    sign proves nothing. A singular mode is parted from all others; without motors all modes are.

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
    by = Comparison(p, closed)
    by.rolls &= that_roll(mech, closed[0].q, t, by.size)
    parted = _parted(p, found, by)
    trees = _ModeTrees(p, closed, by, parted, seed)
    with one_thread(), progress_bar(steps, "joined modes", "steps", show=progress) as bar:
        while trees.taken < steps and trees.open_pairs():
            before = trees.taken
            trees.grow(steps - before)
            bar.update(trees.taken - before)
        groups, paths = trees.paths()
    return JoinedModes(groups, read_only(parted), trees.taken, mech.name, paths)


def _modes(mech: Mechanism, found: AssemblyModes, t: float) -> tuple[Problem, list[ClosedStart]]:
    """The closing problem of the modes, and the modes, checked."""
    names = set(mech.row_names) | set(mech.coordinate_names)
    fits = found.name == mech.name and found.motors.size == mech.nu
    if not fits or not names.issuperset((*found.rows, *found.coordinates)):
        raise InputError(f"found: these are modes of {found.name!r}, and not of this {mech.name!r}")
    if any(m.q.size != mech.nq for m in found.modes):
        raise InputError(f"found: these are modes of another {mech.name!r}")
    q = placed(mech.motors, mech.reference, found.motors)
    p = held(mech, q, t, free_coordinates(mech))
    closed = [ClosedStart(m.q, largest(p.scaled_rows(m.q)[0]), ()) for m in found.modes]
    worst = max(x.error for x in closed)
    if not worst <= 2.0 * allowed(mech):
        raise InputError(
            f"found: these modes have a closure error of {worst:.1e} (scaled) at t = {t:g} s; they "
            "may be those of another mechanism of this name, or of another time"
        )
    return p, closed


# ------------------------------------------------------------------------------------------- signs


def _parted(p: Problem, found: AssemblyModes, by: Comparison) -> Mask:
    """The pairs that are parted by their signs, or because one mode is singular."""
    singular = np.array([m.singular for m in found.modes])
    parted: Mask = singular[:, None] | singular
    if not driven(p).size:
        parted[:] = True  # nothing moves
    if _signs_part(p, found, by):
        legs = [sign_of_legs(p.mech, m.q, p.t, by.size) for m in found.modes]
        sign = np.array([m.sign for m in found.modes]) * legs
        parted |= sign[:, None] * sign < 0
    np.fill_diagonal(parted, False)
    return parted


def _signs_part(p: Problem, found: AssemblyModes, by: Comparison) -> bool:
    """Whether the determinant has all rows that constrain the mechanism."""
    mech = p.mech
    if by.idle or not len(found.rows) == len(found.coordinates) == p.free.size:
        return False
    return proven_by_rows(mech, found.rows, p.t)


def proven_by_rows(mech: Mechanism, rows: Iterable[str], t: float) -> bool:
    """Whether a change of the sign of a determinant of these rows of G, and others that never
    vanish together with them, proves a singular configuration: they are all rows that constrain
    anything, and continuous in all configurations."""
    if any(not isinstance(bound, WrenchRows | BoundCoupling) for bound in mech.bound):
        return False  # these rows may change after a whole turn of a joint
    holding = np.zeros(len(mech.row_names), dtype=bool)
    for q in starts(held(mech, mech.reference, t, np.arange(mech.nv)), 4, 0):
        G = scaled_rows_at(mech, q, np.zeros(mech.nv), t).jacobian
        holding |= ~(np.abs(G).max(axis=1, initial=0.0) <= NO_ROW)
    return {mech.row_names[i] for i in np.flatnonzero(holding)} == set(rows)


# ------------------------------------------------------------------------------------------- trees


class _ModeTree:
    """Configurations that are joined to one mode, each with its parent and its body poses."""

    def __init__(self, walker: ModeWalker, by: Comparison) -> None:
        self.walker, self.by = walker, by
        self.stops, self.parents = [walker.start], [-1]
        self.places, self.groups = [by.place(walker.start.q)], dict[int, ModeGroup]()

    def walk(self, at: int, way: Vector, most: int) -> tuple[int, int]:
        """Follow a straight path of the motors: its last configuration, and the number of steps."""
        stops, taken, _ = self.walker.walk(self.stops[at], way, PATH_SEARCH, most)
        for stop in stops:
            self.stops.append(stop)
            self.parents.append(at)
            self.places.append(self.by.place(stop.q))
            at = len(self.stops) - 1
        return at, taken

    def nearest(self, y: Vector, unit: Vector) -> int:
        """The configuration whose motors are nearest to y."""
        left = self.walker.left(np.array([stop.y for stop in self.stops]), y) / unit
        return int(np.argmin((left * left).sum(axis=1)))

    def most_alike(self, place: Vector) -> int:
        """The configuration whose body poses are nearest to `place`."""
        difference = np.array(self.places) - place
        return int(np.argmin((difference * difference).sum(axis=1)))

    def group(self, at: int) -> ModeGroup:
        if at not in self.groups:
            self.groups[at] = self.by.group_at(self.stops[at].q)
        return self.groups[at]

    def ways(self, at: int) -> list[Vector]:
        """The steps of the motors from the mode to a configuration."""
        ys = []
        while at >= 0:
            ys.append(self.stops[at].y)
            at = self.parents[at]
        return list(np.diff(np.array(ys[::-1]), axis=0))


class _ModeTrees:
    """The search trees of all modes that a path can start from."""

    def __init__(
        self, p: Problem, closed: list[ClosedStart], by: Comparison, parted: Mask, seed: int
    ) -> None:
        self.by, self.closed, self.parted = by, closed, parted
        self.unit = p.mech.column_scale[driven(p)]
        self.rng, self.trees = np.random.default_rng(seed), dict[int, _ModeTree]()
        n, self.taken = len(closed), 0
        self.group, self.edges = list(range(n)), dict[tuple[int, int], list[Vector]]()
        if parted.sum() == n * (n - 1):
            return
        sensors = held_still(p)
        for i in np.flatnonzero(parted.sum(axis=1) != n - 1).tolist():
            with suppress(HoloctlError):  # it is a dead point, or nearly
                self.trees[i] = _ModeTree(ModeWalker(p, sensors, closed[i].q), by)

    def open_pairs(self) -> list[tuple[int, int]]:
        """The pairs of trees that are neither joined nor parted."""
        pairs = permutations(self.trees, 2)
        return [
            (i, j) for i, j in pairs if self.group[i] != self.group[j] and not self.parted[i, j]
        ]

    def grow(self, most: int) -> None:
        """Grow one tree in a random direction, then towards another tree."""
        pairs = self.open_pairs()
        i, j = pairs[int(self.rng.integers(len(pairs)))]
        a, b = self.trees[i], self.trees[j]
        left, widest = a.walker.left, np.where(a.walker.turning, PATH_TURN, PATH_SLIDE * self.unit)
        y = self.rng.uniform(-1.0, 1.0, self.unit.size) * widest
        at = a.nearest(y, self.unit)
        new, taken = a.walk(at, left(a.stops[at].y, y), min(most, PATH_RUN))
        to = b.most_alike(a.places[new])
        way = left(a.stops[new].y, b.stops[to].y)
        end, more = a.walk(new, way, min(most - taken, PATH_MEET))
        self.taken += max(taken + more, min(most, PATH_OVERHEAD))
        if largest(left(a.stops[end].y, b.stops[to].y)) > PATH_MET:
            return
        if self.by.same(a.group(end), b.group(to)):
            self._join(i, j, a.ways(end) + _back(b.ways(to)))

    def _join(self, i: int, j: int, ways: list[Vector]) -> None:
        if self._path(i, j, ways) is None:
            return
        self.edges[i, j], self.edges[j, i] = ways, _back(ways)
        old, new = max(self.group[i], self.group[j]), min(self.group[i], self.group[j])
        self.group = [new if g == old else g for g in self.group]

    def _path(self, i: int, j: int, ways: list[Vector]) -> Array | None:
        """The path (n, nq) along motor steps from one mode; None unless it ends in the other."""
        stops = self.trees[i].walker.followed(ways, PATH_STEP)
        if stops is None:
            return None
        there = self.by.group_at(self.closed[j].q), self.by.group_at(stops[-1].q)
        return np.array([stop.q for stop in stops]) if self.by.same(*there) else None

    def paths(self) -> tuple[tuple[tuple[int, ...], ...], dict[int, Array]]:
        """The groups, and the path from the first mode of each group to its other modes."""
        paths, groups = dict[int, Array](), list[tuple[int, ...]]()
        for i, x in enumerate(self.closed):
            if i in paths:
                continue
            paths[i], reached, ways = x.q[None].copy(), [i], {i: list[Vector]()}
            for k in reached:  # `reached` grows within the loop
                for a, j in sorted(self.edges):
                    if a != k or j in paths:
                        continue
                    ways[j] = ways[k] + self.edges[k, j]
                    path = self._path(i, j, ways[j])
                    if path is not None:
                        paths[j] = path
                        reached.append(j)
            groups.append(tuple(sorted(reached)))
        for path in paths.values():
            read_only(path)
        return tuple(groups), paths


def _back(ways: list[Vector]) -> list[Vector]:
    return [-way for way in reversed(ways)]
