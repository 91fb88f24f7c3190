"""Events: zeros of functions of the state along a motion, and what happens there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from holoctl.base.checks import Vector, flag, number
from holoctl.base.errors import InputError
from holoctl.base.tolerances import EVENT_LOOKS, EVENT_TIME
from holoctl.mechanism.mechanism import Mechanism

__all__ = ["Event", "EventFunction", "Reaction", "checked_events", "first_event", "value_of"]

EventFunction = Callable[[float, Vector, Vector], Any]
"""function(t, q, v): a number that is zero at the event."""

Reaction = Callable[[float, Vector, Vector], tuple[Mechanism, Any]]
"""reaction(t, q, v) -> (mech, v): what goes on from there, and how fast."""


@dataclass(frozen=True)
class Event:
    """Something that happens where a function of the state goes through zero.

    Parameters
    ----------
    function : callable
        ``function(t, q, v)``, continuous along the motion: the height of a foot, the force that
        holds it. It is looked at within every step at several instants; what is positive for
        shorter is missed.
    direction : float, optional
        Above zero: only where it rises through zero; below: only where it falls; zero: both.
    terminal : bool, optional
        Whether the run ends there.
    reaction : callable, optional
        ``reaction(t, q, v) -> (mech, v)``: with which mechanism (of the same coordinates and
        motors) and which velocity the plant goes on, such as those of `impulse` where a foot
        lands. An event that was reacted to is asked again once it left zero.

    Raises
    ------
    InputError
        For what is no function of (t, q, v), or a direction that is no number.

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
    found = np.asarray(event.function(t, q.copy(), v.copy()), dtype=object).reshape(-1)
    try:
        value = float(found[0]) if found.size == 1 else float("nan")
    except (TypeError, ValueError):
        value = float("nan")
    if not np.isfinite(value):
        raise InputError(
            f"the function of event {i} must return one finite number; it returned "
            f"{str(found.tolist())[:60]} at t = {t:.6g} s"
        )
    return value


def first_event(
    events: Sequence[Event], before: Sequence[float], armed: Sequence[bool], start: float,
    stop: float, at: Callable[[float], tuple[Vector, Vector]],
    value: Callable[[int, float, Vector, Vector], float],
) -> tuple[tuple[float, int] | None, list[float]]:  # fmt: skip
    """The first event between two instants and which it is, or None; and what the functions are at
    the end.

    Parameters
    ----------
    before : sequence of float
        The functions at the start.
    armed : sequence of bool
        Which of them are asked.
    value : function (i, t, q, v) -> float
        The i-th of them.
    """
    found, after = list[tuple[float, int]](), list(before)
    times = np.linspace(start, stop, EVENT_LOOKS + 1)[1:].tolist()
    states = [at(t) for t in times]
    for i, event in enumerate(events):
        last = start
        for t, state in zip(times, states, strict=True):
            g, after[i] = after[i], value(i, t, *state)
            if armed[i] and _through_zero(event, g, after[i]):
                found.append((_root(partial(_along, value, at, i), last, t), i))
                break
            last = t
    return (min(found) if found else None), after


def _through_zero(event: Event, before: float, after: float) -> bool:
    rises, falls = before <= 0.0 < after, before >= 0.0 > after
    return (rises and event.direction >= 0.0) or (falls and event.direction <= 0.0)


def _along(
    value: Callable[[int, float, Vector, Vector], float],
    at: Callable[[float], tuple[Vector, Vector]], i: int, t: float,
) -> float:  # fmt: skip
    return value(i, t, *at(t))


def _root(value: Callable[[float], float], start: float, stop: float) -> float:
    return float(brentq(value, start, stop, xtol=EVENT_TIME * max(1.0, abs(stop)), rtol=1e-15))
