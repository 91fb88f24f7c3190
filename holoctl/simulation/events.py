"""Events: zeros of functions of the state along a motion, and the reactions to them."""

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
"""Functions of events are also evaluated where the step is halved, up to this number of times, in
the first step of a motion and in the first step after an event."""

EVENT_LEFT = 1e-9
"""The function of an event counts as zero below this at the start of a motion and after the event,
until it was larger once."""

EVENT_STOPPED = 1e-3
"""A reaction has stopped its event if the function of the event then changes at less than this
share of its earlier rate."""


EventFunction = Callable[[float, Vector, Vector], Any]
"""function(t, q, v): a number that is zero at the event."""

Reaction = Callable[[float, Vector, Vector], tuple[Mechanism, Any]]
"""reaction(t, q, v) -> (mech, v): the mechanism and the velocity with which the plant continues."""

States = Callable[[float], tuple[Vector, Vector]]
"""at(t) -> (q, v)"""

Value = Callable[[int, float, Vector, Vector], float]
"""value(i, t, q, v): the function of the i-th event."""


@dataclass(frozen=True)
class Event:
    """A zero of a function of the state: a run records it, and may end or continue changed.

    Parameters
    ----------
    function : callable
        ``function(t, q, v)``, continuous along the motion: the height of a foot, the force that
        holds it. It is evaluated at several instants within every step, also at some after the
        event itself, so it must not count its calls; a function that goes through zero and back
        between two of these instants is missed.
    direction : float, optional
        Positive: only a function that rises through zero is an event; negative: only one that
        falls; zero: both.
    terminal : bool, optional
        Whether the run ends at the event.
    reaction : callable, optional
        ``reaction(t, q, v) -> (mech, v)``: the mechanism (with the same coordinates and motors) and
        the velocity with which the plant continues, such as those of `impulse` when a foot lands.
        A function that jumps over zero because of a reaction is no event.

    Raises
    ------
    InputError
        If `function` or `reaction` is not a function of (t, q, v), or `direction` is not a number.

    See Also
    --------
    simulate : takes them as ``events=``.
    impulse : the velocity after an impact.
    Run : lists the events of a run.

    Notes
    -----
    If the function is within 1e-9 of zero at the start of a run, the event happens at once if the
    function then changes in the given direction, and does not happen if it stays: a foot that
    stands on the ground does not land. After an event the function is checked for a zero again once
    it was larger than 1e-9. If the reaction stopped the event and the function still goes through
    zero, the run ends with an `InconsistentError`: a ball that bounces at ever shorter intervals
    would fall through the ground.

    Examples
    --------
    >>> import holoctl as hc
    >>> mech = hc.load(hc.robot_file("four_bar"))
    >>> falls = hc.Event(lambda t, q, v: q[0] - 0.99, direction=-1, terminal=True)
    >>> hc.simulate(mech, None, *hc.assemble(mech), 1.0, events=falls).ended
    'event 0'
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
    except ValueError:  # a function without a signature
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
    """An event that a run watches.

    Attributes
    ----------
    event : Event
    value : float
        Its function at the last accepted state; nan if that must be evaluated again.
    away : bool
        Whether the function has left zero since the start, or since the event happened.
    side : float
        If the function has not left zero since the event: +1 if it rose through zero, -1 if it
        fell; else 0.
    rate : float
        Rate of the function before the event, per s.
    stopped : bool
        Whether the function no longer changed in that direction after the event.
    rate_of : function or None
        The rate of the function, ``rate_of(t, q, v)``, if it may fall below zero and return within
        a step; it is then also evaluated at its minima.
    """

    event: Event
    value: float = float("nan")
    away: bool = False
    side: float = 0.0
    rate: float = 0.0
    stopped: bool = False
    rate_of: EventFunction | None = None

    def left(self, value: float, t: float) -> bool:
        """Whether a value of the function is larger than that of an event that just happened."""
        return abs(value) > max(EVENT_LEFT, 10.0 * abs(self.rate) * EVENT_TIME * max(1.0, abs(t)))


class EventCrossing(NamedTuple):
    """An event that happens: its time, its index, the rate of its function there, per s, and
    whether the function is continuous there."""

    t: float
    i: int
    rate: float
    smooth: bool


@dataclass(frozen=True, eq=False)
class StepInterval:
    """An interval of one step: the states in it as integrated (`at`) and projected onto the
    manifold (`closed`); `fresh` if it is the first after the start of the motion or after an
    event."""

    start: float
    stop: float
    at: States
    closed: States
    fresh: bool


def first_event(
    watched: Sequence[PendingEvent], over: StepInterval, value: Value
) -> EventCrossing | None:
    """The first event of a step; if there is none, the values at the end of the step are stored.

    Parameters
    ----------
    value : function (i, t, q, v) -> float
        The function of the i-th event.

    Raises
    ------
    InconsistentError
        If an event that was stopped by its reaction goes through zero again.
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
    """The crossing if the event happens; else its `value` at the end, `away` and `stopped`."""
    length = over.stop - over.start
    shares = [(k + 1) / EVENT_LOOKS for k in range(EVENT_LOOKS)]
    away, stopped = w.away, w.stopped
    if (
        over.fresh and not away
    ):  # the function may leave zero and return in a small part of the step
        shares = sorted({*shares, *(0.5**k for k in range(EVENT_HALVES))})
        if w.side and w.event.reaction is not None and length > EVENT_SHORT:
            stopped = _rate_after(i, w, over, value) * w.side <= EVENT_STOPPED * abs(w.rate)
    if w.rate_of is not None:
        shares = sorted({*shares, *_minima(w.rate_of, over, [0.0, *shares])})
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
                    "stopped it: does a body bounce at ever shorter intervals, or does no contact "
                    "hold a body that came to rest? Return a mechanism with that contact from the "
                    "reaction"
                )
        last = t
    return g, away, stopped


def _minima(rate_of: EventFunction, over: StepInterval, shares: list[float]) -> list[float]:
    """The shares of a step at which a function with this rate has a minimum."""
    length = over.stop - over.start

    def rate(share: float) -> float:
        t = over.stop if share == 1.0 else over.start + share * length
        return float(rate_of(t, *over.at(t)))

    rates = [rate(share) for share in shares]
    pairs = zip(
        zip(shares, rates, strict=True), zip(shares[1:], rates[1:], strict=True), strict=False
    )
    return [
        float(brentq(rate, before, after, xtol=1e-9))
        for (before, falls), (after, rises) in pairs
        if falls < 0.0 < rises
    ]


def _rate_after(i: int, w: PendingEvent, over: StepInterval, value: Value) -> float:
    """The rate of the function at the start, by differences that are exact for parabolas."""
    h = (over.stop - over.start) / 8.0
    half, whole = (value(i, t, *over.closed(t)) for t in (over.start + 0.5 * h, over.start + h))
    return (4.0 * half - whole - 3.0 * w.value) / h


def _through_zero(event: Event, before: float, after: float) -> bool:
    rises, falls = before <= 0.0 < after, before >= 0.0 > after
    return (rises and event.direction >= 0.0) or (falls and event.direction <= 0.0)


def _hit(
    i: int, start: float, stop: float, after: float, over: StepInterval, value: Value
) -> EventCrossing:  # fmt: skip
    """The zero between two instants, along projected states; `start` if the function has jumped
    there."""

    def along(t: float) -> float:
        return value(i, t, *over.closed(t))

    first, last = along(start), along(stop)
    t = start if last * after > 0.0 else stop  # stop: only unprojected states went through zero
    if first * last < 0.0:
        xtol = EVENT_TIME * max(1.0, abs(stop))
        t = float(brentq(along, start, stop, xtol=xtol, rtol=1e-15))
    near = 1e-3 * (over.stop - over.start)
    early, late = max(over.start, t - near), min(over.stop, t + near)
    rate = (along(late) - along(early)) / (late - early) if late > early else after
    return EventCrossing(t, i, rate, t > start and abs(along(t)) <= 1e-6 * (abs(first) + abs(last)))
