"""Unilateral contacts along a run: functions whose zeros change the mode, friction of points that
slide, forces to record.

Within a mode the plant has the rows of the points in contact, as bilateral ones, and is integrated
like any other. The mode ends where a gap closes, forces reach the edge of a cone, or a point stops.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from holoctl.base.checks import Array, Indices, Vector
from holoctl.base.errors import InconsistentError, InputError
from holoctl.base.linalg import largest, least_squares
from holoctl.base.tolerances import FIRST_DIFFERENCE
from holoctl.dynamics.contact_forces import OPEN, SLIDES, mode_forces, regularity
from holoctl.mechanism.mechanism import Mechanism
from holoctl.projector.partition import Partition
from holoctl.simulation.contact_modes import (
    REGULAR,
    STOPPED,
    TOUCHES,
    Contacting,
    ContactMode,
    contacting,
    decided_mode,
    painleve,
)
from holoctl.simulation.contact_points import ContactPoints, FreeMotion, PointMotion
from holoctl.simulation.events import Event, PendingEvent
from holoctl.simulation.motion import PlantDynamics, PlantMotion, efforts_at, slope_here

__all__ = ["CONTACT_EVENT", "ContactRun", "check_gaps", "no_contact_events"]

CONTACT_EVENT = np.dtype(
    [("t", float), ("contact", "U40"), ("point", int), ("what", "U20"), ("impulse", float, (3,))]
)
"""An entry of `Run.contact_events`."""

CREEP, CREEPS = 1e-5, 1e-2  # s, m/s
"""The direction of sliding follows the forces with the time constant |v_t| over the acceleration of
friction. While that is shorter than the first number, and the point, slower than the second, gets
faster, the direction is that of the equilibrium: it would make the motion stiff, and so small a
velocity hardly determines it."""

NO_SPEED = 1e-11  # m/s
"""Below this the direction of sliding is the last one."""

EQUILIBRIA, EQUILIBRIUM = 8, 1e-11
"""Steps of Newton's method to it; error that is left, relative to the accelerations."""

STATES = 200
"""Number of states of which the motion of the points is kept."""

AHEAD = (1e-6, 1e-5, 1e-4, 1e-3)  # s
"""Where forces reach the edge of a cone, both modes hold; the next one is decided so much later."""


@dataclass
class ContactRun:
    """The contacts of a run in progress.

    Attributes
    ----------
    points : ContactPoints
    plant, part : Mechanism, Partition
        The plant without contacts.
    mode : ContactMode
    due : bool
        Whether the mode must be decided again before the next step.
    toward : (n, 2) array
        The last direction of sliding of each point.
    by_forces : bool
        Whether forces of the points move the plant, beside those of its rows.
    found : list of tuples
        The entries of `Run.contact_events`.
    pending : tuple of PendingEvent
        Functions of the mode, with what their zeros mean in `means`: ``"lands"``, ``"stops"``,
        ``"yields"`` or ``"jams"``, and the index of the point.
    """

    points: ContactPoints
    plant: Mechanism
    part: Partition
    mode: ContactMode = field(init=False)
    due: bool = True
    toward: Array = field(init=False)
    by_forces: bool = False
    found: list[Any] = field(default_factory=list)
    pending: tuple[PendingEvent, ...] = ()
    means: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        n = self.points.friction.size
        self.mode = ContactMode(np.full(n, OPEN), np.zeros((n, 2)))
        self.toward = self.mode.direction

    def rebased(self, plant: Mechanism, part: Partition) -> None:
        """Continue with another plant without contacts; the mode is decided again."""
        self.plant, self.part, self.due = plant, part, True

    def begin_step(self, motion: PlantMotion) -> None:
        """Note the directions in which points slide at the start of a step."""
        if self.mode.rubs:
            u = self.points.motion(self.plant, motion.q, motion.v, motion.t).velocity
            self.toward = self._directions(u, ahead=False)

    def _directions(self, u: Array, ahead: bool = True) -> Array:
        """Directions of sliding at velocities u, within a step continued smoothly through zero."""
        found = self.toward.copy()
        for i in np.flatnonzero((self.mode.state == SLIDES) & self.mode.direction.any(axis=1)):
            speed = float(np.hypot(*u[i, 1:]))
            if speed > NO_SPEED:
                side = (np.sign(u[i, 1:] @ self.toward[i]) or 1.0) if ahead else 1.0
                found[i] = side * u[i, 1:] / speed
        return found

    def _creeping(self, free: FreeMotion, toward: Array) -> Indices:
        """Points whose direction of sliding follows the forces within `CREEP`."""
        speed = np.hypot(free.velocity[:, 1], free.velocity[:, 2])
        slides = self.mode.direction.any(axis=1) & (speed < CREEPS)
        if not slides.any():
            return np.zeros(0, dtype=np.intp)
        x = self.forces_along(free, toward, judge=False)[0]
        mobility = 0.5 * (free.W.diagonal()[1::3] + free.W.diagonal()[2::3])
        limit = CREEP * mobility * self.points.friction * np.abs(x[:, 0])
        return np.flatnonzero(slides & (speed < limit))

    def sliding(self, free: FreeMotion) -> Array:
        """Directions of sliding at a state; of points that creep, and get faster, those in which
        friction and sliding acceleration are opposite; of others that creep, those at the start of
        the step."""
        toward = self._directions(free.velocity)
        slow = self._creeping(free, toward)
        if not slow.size:
            return toward
        size = largest(free.c)

        def accelerations(angles: Vector) -> Array:
            toward[slow] = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            x = self.forces_along(free, toward, judge=False)[0]
            return (free.W @ x.reshape(-1) + free.c).reshape(-1, 3)[slow, 1:]

        def across(angles: Vector) -> Vector:
            y = accelerations(angles)
            found: Vector = toward[slow, 0] * y[:, 1] - toward[slow, 1] * y[:, 0]
            return found

        before, angles = toward.copy(), np.arctan2(*toward[slow].T[::-1])
        for _ in range(EQUILIBRIA):
            off = across(angles)
            if largest(off) <= EQUILIBRIUM * size:
                break
            by = FIRST_DIFFERENCE * np.eye(slow.size)
            J = np.array([(across(angles + d) - across(angles - d)) for d in by]).T
            step = least_squares(J / (2.0 * FIRST_DIFFERENCE), -off)
            angles = angles + np.clip(step, -0.5, 0.5)
        left, y = largest(across(angles)), accelerations(angles)
        turned = np.einsum("ij,ij->i", toward[slow], before[slow]).min()
        along = np.einsum("ij,ij->i", toward[slow], y).min()
        if not (left <= EQUILIBRIUM * size and turned > 0.0 and along >= -EQUILIBRIUM * size):
            before[slow] = self.toward[slow]
            return before
        self.toward = self.toward.copy()
        self.toward[slow] = toward[slow]  # where the next search begins
        return toward

    # ------------------------------------------------------------------------ the motion in a mode

    def free(self, t: float, q: Vector, v: Vector, tau: Vector) -> FreeMotion:
        """The motion of the points without contact forces."""
        return self.points.free(self.plant, self.part, q, v, t, tau)

    def dynamics(self, base: PlantDynamics) -> PlantDynamics:
        """The dynamics of the plant in this mode, from those with bilateral rows."""
        if not self.by_forces:
            return base

        def acceleration(q: Vector, v: Vector, tau: Vector, t: float) -> Vector:
            free = self.free(t, q, v, tau)
            x = self._forces(free, judge=False)[0]
            return free.a + free.response(x.reshape(-1))

        return replace(base, acceleration=acceleration, again=None, step=None)

    def _forces(self, free: FreeMotion, judge: bool = True) -> tuple[Array, float]:
        return self.forces_along(free, self.sliding(free), judge)

    def forces_along(
        self, free: FreeMotion, toward: Array, judge: bool = True
    ) -> tuple[Array, float]:
        """The forces with given directions of sliding."""
        try:
            return mode_forces(
                free.W, free.c, self.points.friction, self.mode.state, toward, judge
            )  # fmt: skip
        except InconsistentError as error:
            error.add_note(f"in {self.plant.name!r}, contacts {self._touching()}")
            raise

    def _touching(self) -> str:
        return ", ".join(
            self.points.name(i) for i in np.flatnonzero(self.mode.state > OPEN).tolist()
        )

    def forces(self, t: float, q: Vector, v: Vector, tau: Vector) -> Array:
        """Forces (n, 3) of the points along their axes, N; after a jump of tau those of the next
        mode; nan if there are none."""
        free = self.free(t, q, v, tau)
        x, margin = self._forces(free)
        if margin >= -TOUCHES:
            return x
        closed = self.mode.state > OPEN
        after = decided_mode(self.points, self.plant, free, closed)
        x, margin = mode_forces(
            free.W, free.c, self.points.friction, after.state, after.direction
        )  # fmt: skip
        return x if margin >= -TOUCHES else np.full_like(x, np.nan)

    # --------------------------------------------------------------------- where the mode ends

    def watch(self, motion: Callable[[], PlantMotion]) -> None:
        """Make the functions whose zeros end the mode."""
        state, mu = self.mode.state, self.points.friction
        functions, means = list[PendingEvent](), list[tuple[str, int]]()

        def add(function: Callable[[float, Vector, Vector], float], what: str, i: int) -> None:
            functions.append(PendingEvent(Event(function, direction=-1.0)))
            means.append((what, i))

        held = _StatesOfStep(self, motion)

        def gap(i: int, t: float, q: Vector, v: Vector) -> float:
            return float(held.motion(t, q, v).position[i, 0])

        def fall(i: int, t: float, q: Vector, v: Vector) -> float:
            return float(held.motion(t, q, v).velocity[i, 0])

        def slip(i: int, t: float, q: Vector, v: Vector) -> float:
            return float(held.motion(t, q, v).velocity[i, 1:] @ self.toward[i])

        for i in np.flatnonzero(state == OPEN).tolist():
            add(partial(gap, i), "lands", i)
            functions[-1].rate_of = partial(fall, i)
        for i in np.flatnonzero((state == SLIDES) & (mu > 0.0)).tolist():
            add(partial(slip, i), "stops", i)
        if (state > OPEN).any():
            add(held.margin, "yields", -1)
        if self.mode.rubs:
            add(held.regular, "jams", -1)
        self.pending, self.means = tuple(functions), tuple(means)

    def stopped(self, t: float, q: Vector, v: Vector, i: int) -> bool:
        """Whether a point that has turned by a right angle in a step has stopped."""
        u = self.points.motion(self.plant, q, v, t).velocity[i, 1:]
        return float(np.hypot(*u)) <= STOPPED

    def change(self, motion: PlantMotion, what: str) -> Contacting:
        """Decide the velocity and the mode at the state of a motion; record what changes."""
        t, q, v, tau = motion.t, motion.q, motion.v, motion.tau
        if what == "jams":
            sliding = np.flatnonzero((self.mode.state == SLIDES) & (self.points.friction > 0.0))
            raise painleve(self.points, self.plant, sliding)
        here = efforts_at(tau, t, q, v)
        after = contacting(self.points, self.plant, self.part, t, q, v, here)
        if what == "yields" and not after.struck.any() and self._same(after.mode):
            after = after._replace(mode=self._ahead(motion, after.v))
        self._record(t, after)
        self.mode, self.toward, self.due = after.mode, after.mode.direction, False
        return after

    def _same(self, mode: ContactMode) -> bool:
        return np.array_equal(mode.state, self.mode.state)

    def _ahead(self, motion: PlantMotion, v: Vector) -> ContactMode:
        """The mode a little later, along the motion of this one."""
        plant, t, q = self.plant, motion.t, motion.q
        a = slope_here(motion)[plant.nv :]
        closed = self.mode.state > OPEN
        u = self.points.motion(plant, q, v, t).velocity
        for later in AHEAD:
            there = pin.integrate(plant.model, q, later * v + (0.5 * later**2) * a)
            rates = v + later * a
            tau = efforts_at(motion.tau, t + later, there, rates)
            free = self.free(t + later, there, rates, tau)
            mode = decided_mode(self.points, plant, free, closed, u)
            if not self._same(mode):
                return mode
        raise InconsistentError(
            f"{plant.name}: the contact forces at {self._touching()} leave their cones, but no "
            "other mode of the contacts is found; are points nearly in line, or bodies without "
            "inertia?"
        )

    def _record(self, t: float, after: Contacting) -> None:
        """Note what changes for each point."""
        old, new = self.mode.state, after.mode.state
        p = np.einsum("ij,ijk->ik", after.impulses, self.points.axes)
        hit: NDArray[np.bool_] = np.abs(after.impulses).max(axis=1) > 0.0
        for i, (contact, index) in enumerate(self.points.labels):
            whats = list[str]()
            if after.struck[i]:
                whats.append("lands" if new[i] > OPEN else "bounces")
            elif hit[i]:
                whats.append("struck")
            elif old[i] == OPEN and new[i] > OPEN:
                whats.append("touches")
            if new[i] == OPEN and old[i] > OPEN:
                whats.append("leaves")
            elif (
                self.points.friction[i] > 0.0
                and new[i] > OPEN
                and (new[i] != old[i] or self.toward[i] @ after.mode.direction[i] < 0.0)
            ):  # also where it slides back
                whats.append("slides" if new[i] == SLIDES else "sticks")
            for k, what in enumerate(whats):
                given = p[i] if hit[i] and k == 0 else np.zeros(3)
                self.found.append((t, contact, index, what, given))
        if after.reduced:
            first = int(np.flatnonzero(after.struck)[0])
            self.found.append((t, *self.points.labels[first], "less restitution", np.zeros(3)))


class _StatesOfStep:
    """The motion and the forces of the points at the states of a step, for several functions."""

    def __init__(self, contacts: ContactRun, running: Callable[[], PlantMotion]) -> None:
        self.contacts, self.running = contacts, running
        self.known: dict[tuple[Any, ...], Any] = {}

    def _at(self, t: float, q: Vector, v: Vector, make: Callable[[], Any]) -> Any:
        key = make.__code__, t, q.tobytes(), v.tobytes(), id(self.running().tau)
        if key not in self.known:
            if len(self.known) > STATES:
                self.known.clear()
            self.known[key] = make()
        return self.known[key]

    def motion(self, t: float, q: Vector, v: Vector) -> PointMotion:
        on = self.contacts
        found: PointMotion = self._at(t, q, v, lambda: on.points.motion(on.plant, q, v, t))
        return found

    def _sliding(self, t: float, q: Vector, v: Vector) -> tuple[FreeMotion, Array]:
        def make() -> tuple[FreeMotion, Array]:
            free = self.contacts.free(t, q, v, efforts_at(self.running().tau, t, q, v))
            return free, self.contacts.sliding(free)

        found: tuple[FreeMotion, Array] = self._at(t, q, v, make)
        return found

    def margin(self, t: float, q: Vector, v: Vector) -> float:
        return self.contacts.forces_along(*self._sliding(t, q, v))[1]

    def regular(self, t: float, q: Vector, v: Vector) -> float:
        free, toward = self._sliding(t, q, v)
        on = self.contacts
        return regularity(free.W, on.points.friction, on.mode.state, toward) - REGULAR


def check_gaps(points: ContactPoints, plant: Mechanism, q: Vector, v: Vector) -> None:
    """Raise `InputError` if a point starts below the ground."""
    gap = points.motion(plant, q, v, 0.0).position[:, 0]
    i = int(np.argmin(gap))
    if not gap[i] >= -TOUCHES:
        raise InputError(
            f"{plant.name}: {points.name(i)} starts {-gap[i]:.3g} m below the ground (the plane "
            f"through {points.contacts[0].ground if len(points.contacts) == 1 else 'its ground'} "
            "with its normal); raise the base, or give ground= to hc.UnilateralContact"
        )


def no_contact_events() -> Array:
    """The events of a run without contacts."""
    return np.zeros(0, dtype=CONTACT_EVENT)
