"""Events: zeros of functions of the state along a motion, and what happens there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from holoctl.base.checks import Vector, flag, number
from holoctl.base.errors import InconsistentError, InputError
from holoctl.mechanism.mechanism import Mechanism

__all__ = [
    "Event",
    "EventCrossing",
    "EventFunction",
    "PendingEvent",
    "Reaction",
    "StepInterval",
    "checked_events",
    "first_event",
    "value_of",
]

EVENT_LOOKS = 4
"""Number of points in a step at which functions of events are evaluated."""

EVENT_TIME = 1e-13  # s
"""Accuracy of the time of an event."""

EVENT_SHORT = 1e-9  # s
"""In a shorter step after a reaction the direction of the event function is not determined; the
next step decides."""


EVENT_HALVES = 30
"""Where a motion starts, or something has happened, they are also looked at where the step is
halved so many times."""

EVENT_LEFT = 1e-9
"""A function of an event that is below this counts as zero where a motion starts, and after the
event, until it was larger."""

EVENT_STOPPED = 1e-3
"""An event whose function goes on by less than this part of its rate was stopped by its
reaction."""


EventFunction = Callable[[float, Vector, Vector], Any]
"""function(t, q, v): a number that is zero at the event."""

Reaction = Callable[[float, Vector, Vector], tuple[Mechanism, Any]]
"""reaction(t, q, v) -> (mech, v): what goes on from there, and how fast."""

States = Callable[[float], tuple[Vector, Vector]]
"""at(t) -> (q, v)"""

Value = Callable[[int, float, Vector, Vector], float]
"""value(i, t, q, v): the function of the i-th event."""


@dataclass(frozen=True)
class Event:
    """Something that happens where a function of the state goes through zero.

    Parameters
    ----------
    function : callable
        ``function(t, q, v)``, continuous along the motion: the height of a foot, the force that
        holds it. It is looked at within every step at several instants, also some after the
        event itself, so it must not count its calls; what goes through zero and back between two
        of them is missed.
    direction : float, optional
        Above zero: only where it rises through zero; below: only where it falls; zero: both.
    terminal : bool, optional
        Whether the run ends there.
    reaction : callable, optional
        ``reaction(t, q, v) -> (mech, v)``: with which mechanism (of the same coordinates and
        motors) and which velocity the plant goes on, such as those of `impulse` where a foot
        lands. What it makes jump over zero is no event.

    Raises
    ------
    InputError
        For what is no function of (t, q, v), or a direction that is no number.

    Notes
    -----
    What is within 1e-9 of zero where a run starts happens at once if it goes on the way that is
    asked for, and not if it stays: a foot that stands does not land. An event that has happened is
    asked again once its function was larger than that. Where its reaction stopped it, and it goes
    through zero all the same, the run ends with an `InconsistentError`: a ball that bounces ever
    faster would fall through the ground.

    Examples
    --------
    >>> import holoctl as hc
    >>> lands = hc.Event(lambda t, q, v: q[1], direction=-1, terminal=True)
    """

    function: EventFunction
    direction: float = 0.0
    terminal: bool = False
    reaction: Reaction | None = None

    def __post_init__(self) -> None:
        _check_signature("function", self.function)
        if self.reaction is not None:
            _check_signature("reaction", self.reaction)
        object.__setattr__(self, "direction", number("direction", self.direction))
        flag("terminal", self.terminal)


def _check_signature(name: str, given: Any) -> None:
    if not callable(given):
        raise InputError(
            f"the {name} of an event must be a function (t, q, v); got {type(given).__name__}"
        )
    try:
        inspect.signature(given).bind(0.0, None, None)
    except TypeError as error:
        raise InputError(
            f"the {name} of an event must be a function of (t, q, v); this one cannot be called "
            f"with three arguments: {error}"
        ) from None
    except ValueError:  # one that does not tell
        return


def checked_events(events: Any) -> tuple[Event, ...]:
    """The events that a caller gave, one or several."""
    if isinstance(events, Event):
        return (events,)
    if not isinstance(events, Sequence) or not all(isinstance(e, Event) for e in events):
        raise InputError(
            f"events must be hc.Event values in a list or tuple; got {type(events).__name__}"
            + (
                f" with {type(events[0]).__name__}"
                if isinstance(events, Sequence) and events
                else ""
            )
        )
    return tuple(events)


def value_of(event: Event, i: int, t: float, q: Vector, v: Vector) -> float:
    """The function of the i-th event at a state."""
    given = event.function(t, q.copy(), v.copy())
    value = float("nan")
    if not isinstance(given, (bool, np.bool_, str, bytes)):
        found = np.asarray(given, dtype=object).reshape(-1)
        with suppress(TypeError, ValueError, OverflowError):
            value = float(found[0]) if found.size == 1 else value
    if not np.isfinite(value):
        raise InputError(
            f"the function of event {i} must return one finite number; it returned "
            f"{type(given).__name__} {str(given)[:60]} at t = {t:.6g} s"
        )
    return value


@dataclass
class PendingEvent:
    """An event on its way.

    Attributes
    ----------
    event : Event
    value : float
        Of its function, at the last accepted state; nan where it is to be asked anew.
    away : bool
        Whether it has left zero since the start, or since it happened.
    side : float
        Where it has not left since it happened: +1 if it rose through zero, -1 if it fell; else 0.
    rate : float
        Of its function before it happened, per s.
    stopped : bool
        Whether it no longer went that way after that.
    """

    event: Event
    value: float = float("nan")
    away: bool = False
    side: float = 0.0
    rate: float = 0.0
    stopped: bool = False

    def left(self, value: float, t: float) -> bool:
        """Whether a value is not that of an event that has just happened."""
        return abs(value) > max(EVENT_LEFT, 10.0 * abs(self.rate) * EVENT_TIME * max(1.0, abs(t)))


class EventCrossing(NamedTuple):
    """That an event happens: when, which one, how its function changes there, per s, and whether
    it is continuous."""

    t: float
    i: int
    rate: float
    smooth: bool


@dataclass(frozen=True, eq=False)
class StepInterval:
    """What one step covered: states between two instants, and the same put back on the
    constraints; `fresh` where the motion starts, or something has just happened."""

    start: float
    stop: float
    at: States
    closed: States
    fresh: bool


def first_event(
    watched: Sequence[PendingEvent], over: StepInterval, value: Value
) -> EventCrossing | None:
    """The first event of a step; where there is none, what the functions are at its end is kept.

    Parameters
    ----------
    value : function (i, t, q, v) -> float
        The i-th of them.

    Raises
    ------
    InconsistentError
        Where one that was stopped by its reaction goes through zero all the same.
    """
    for i, w in enumerate(watched):
        if np.isnan(w.value):
            w.value = value(i, over.start, *over.closed(over.start))
            w.away = w.left(w.value, over.start)
            w.side = 0.0 if w.away else w.side
    ends = [_followed(i, w, over, value) for i, w in enumerate(watched)]
    hits = [end for end in ends if isinstance(end, EventCrossing)]
    if hits:
        return min(hits)
    for w, end in zip(watched, ends, strict=True):
        if not isinstance(end, EventCrossing):
            w.value, w.away, w.stopped = end
            w.side = 0.0 if w.away else w.side
    return None


def _followed(
    i: int, w: PendingEvent, over: StepInterval, value: Value
) -> EventCrossing | tuple[float, bool, bool]:
    """Where it happens; or its value at the end, whether it has left zero, and was stopped."""
    length = over.stop - over.start
    shares = [(k + 1) / EVENT_LOOKS for k in range(EVENT_LOOKS)]
    away, stopped = w.away, w.stopped
    if over.fresh and not away:  # it may leave zero and return to it in a small part of the step
        shares = sorted({*shares, *(0.5**k for k in range(EVENT_HALVES))})
        if w.side and w.event.reaction is not None and length > EVENT_SHORT:
            stopped = _rate_after(i, w, over, value) * w.side <= EVENT_STOPPED * abs(w.rate)
    last, g = over.start, w.value
    for share in shares:
        t = over.stop if share == 1.0 else over.start + share * length
        before, g = g, value(i, t, *(over.at(t) if away else over.closed(t)))
        if away:
            if _through_zero(w.event, before, g):
                return _hit(i, last, t, g, over, value)
        elif w.left(g, t):
            away = True
            if not w.side and _through_zero(w.event, 0.0, g):
                return _hit(i, over.start, t, g, over, value)
            if stopped and g * w.side > 0.0:
                raise InconsistentError(
                    f"event {i} goes through zero again right after its reaction, which had "
                    "stopped it: does something bounce ever faster, or does nothing hold what "
                    "came to rest? Let it rest by a reaction, such as one that switches a contact "
                    "on"
                )
        last = t
    return g, away, stopped


def _rate_after(i: int, w: PendingEvent, over: StepInterval, value: Value) -> float:
    """By differences that are exact for parabolas."""
    h = (over.stop - over.start) / 8.0
    half, whole = (value(i, t, *over.closed(t)) for t in (over.start + 0.5 * h, over.start + h))
    return (4.0 * half - whole - 3.0 * w.value) / h


def _through_zero(event: Event, before: float, after: float) -> bool:
    rises, falls = before <= 0.0 < after, before >= 0.0 > after
    return (rises and event.direction >= 0.0) or (falls and event.direction <= 0.0)


def _hit(
    i: int, start: float, stop: float, after: float, over: StepInterval, value: Value
) -> EventCrossing:  # fmt: skip
    """The zero between two instants, of states put back, as in all that follows; the first of them
    where the function has jumped there."""

    def along(t: float) -> float:
        return value(i, t, *over.closed(t))

    first, last = along(start), along(stop)
    t = start if last * after > 0.0 else stop  # stop: only what was not put back went through
    if first * last < 0.0:
        xtol = EVENT_TIME * max(1.0, abs(stop))
        t = float(brentq(along, start, stop, xtol=xtol, rtol=1e-15))
    near = 1e-3 * (over.stop - over.start)
    early, late = max(over.start, t - near), min(over.stop, t + near)
    rate = (along(late) - along(early)) / (late - early) if late > early else after
    return EventCrossing(t, i, rate, t > start and abs(along(t)) <= 1e-6 * (abs(first) + abs(last)))
