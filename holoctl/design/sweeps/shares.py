"""How the items of a sweep are dealt out: in shares that are worth sending, and not too long.

The first shares are single items. Then a share is what takes `SWEEP_SHARE` at the pace seen so
far, less towards the end, so that all finish together. A share that is lost is cut and given again,
until the item that loses it stands alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from holoctl.base.errors import InputError, SweepError
from holoctl.base.tolerances import SWEEP_SHARE
from holoctl.design.sweeps.work import Done, Lost

__all__ = ["Crew", "Share", "at_work", "dealt_out"]

SWEEP_LEAST, SWEEP_SHARES_LEFT = 2e-3, 2  # s; a count
"""Towards the end a worker gets of what is left as much as makes so many shares for each, but not
less than takes the first."""

SWEEP_GROWTH, SWEEP_CUT = 8, 8  # counts
"""A share has at most so many times the items of the longest that was done; one that was lost is
cut into so many."""


class Share(NamedTuple):
    """Items from `start` up to `stop`, without it."""

    start: int
    stop: int


class Crew(Protocol):
    """Those who work."""

    @property
    def width(self) -> int:
        """How many work at the same time, as far as is known."""

    @property
    def room(self) -> int:
        """How many more shares they take now; 0 where nobody works any more."""

    @property
    def busy(self) -> int:
        """How many shares they have."""

    @property
    def ended(self) -> str:
        """Why nobody works any more; empty where they do."""

    def give(self, share: Share, items: Sequence[Any]) -> None:
        """Give them a share; what becomes of it is told by `collect`."""

    def collect(self) -> list[tuple[Share, Done | Lost]]:
        """What came back, at least one share; waits for it."""

    def close(self, at_once: bool) -> None:
        """Send them home; `at_once`: whatever they are doing."""


def dealt_out(crew: Crew, items: Sequence[Any], bar: Any) -> tuple[list[Any], list[int]]:
    """Values of all items, in order, and which of them failed."""
    table = _Table(items)
    while table.left:
        _hand_out(crew, table)
        if not crew.busy:  # and no room: nobody is left
            table.give_up(crew.ended)
            break
        before = table.left
        for share, outcome in crew.collect():
            table.take(share, outcome)
        if bar is not None:
            bar.update(before - table.left)
    return table.values, sorted(table.failed)


@contextmanager
def at_work(crew: Crew) -> Iterator[Crew]:
    """The crew, which is sent home at the end; where that is an error or Ctrl-C, at once."""
    finished = False
    try:
        yield crew
        finished = True
    finally:
        crew.close(at_once=not finished)


def _hand_out(crew: Crew, table: _Table) -> None:
    """Give shares while there is room; those under suspicion at the end, each alone."""
    while table.todo and crew.room:
        share = table.next_share(crew.width)
        crew.give(share, table.items[share.start : share.stop])
    if table.suspects and not table.todo and not crew.busy and crew.room:
        i = table.suspects.popleft()
        table.on_trial = i
        crew.give(Share(i, i + 1), table.items[i : i + 1])


class _Table:
    """What is to do, what is done, and how quickly."""

    def __init__(self, items: Sequence[Any]) -> None:
        n = len(items)
        self.items, self.failed = items, list[int]()
        self.values: list[Any] = [None] * n
        self.todo: deque[Share] = deque([Share(0, n)] if n else [])
        self.suspects: deque[int] = deque()
        self.on_trial = -1
        self.left, self.waiting = n, n
        self._pace, self._longest, self._lost = 0.0, 0, dict[int, str]()

    def next_share(self, width: int) -> Share:
        """The next one, taken from what is to do."""
        start, stop = self.todo.popleft()
        end = min(stop, start + self._size(width))
        if end < stop:
            self.todo.appendleft(Share(end, stop))
        self.waiting -= end - start
        return Share(start, end)

    def _size(self, width: int) -> int:
        if not self._longest:
            return 1
        pace = max(self._pace, 1e-9)
        fair = max(self.waiting / (SWEEP_SHARES_LEFT * width), SWEEP_LEAST / pace)
        return max(1, int(min(SWEEP_SHARE / pace, fair, SWEEP_GROWTH * self._longest)))

    def take(self, share: Share, outcome: Done | Lost) -> None:
        """Note what became of a share."""
        start, stop = share
        if isinstance(outcome, Lost):
            self._take_lost(share, outcome)
            return
        count = len(outcome.values)
        self.values[start : start + count] = outcome.values
        for i in outcome.failed:
            self.failed.append(start + i)
            if isinstance(error := outcome.values[i], SweepError) and error.item is None:
                error.item = start + i
        self.left -= count
        if start + count < stop:
            self._put_back(Share(start + count, stop))
        pace = outcome.seconds / count
        self._pace = 0.5 * (self._pace + pace) if self._longest else pace
        self._longest = max(self._longest, count)

    def _take_lost(self, share: Share, lost: Lost) -> None:
        start, stop = share
        if lost.function and not self._longest:
            raise InputError(f"sweep: {lost.why}")
        size = stop - start
        if size == 1:
            if lost.sure or start == self.on_trial:
                self._fail(start, lost.why)
            else:
                self._lost[start] = lost.why
                self.suspects.append(start)
            return
        self._lost.update(dict.fromkeys(range(start, stop), lost.why))
        step = -(-size // SWEEP_CUT)
        for at in reversed(range(start, stop, step)):
            self._put_back(Share(at, min(at + step, stop)))

    def _put_back(self, share: Share) -> None:
        self.todo.appendleft(share)
        self.waiting += share.stop - share.start

    def give_up(self, why: str) -> None:
        """Nobody works any more: what is not done fails."""
        if self.left == len(self.items) and not self._lost:
            raise InputError(f"sweep: {why}")
        rest = [*self.suspects, *(i for share in self.todo for i in range(*share))]
        for i in rest:
            self._fail(i, self._lost.get(i, f"it was not begun: {why}"))
        self.todo.clear()
        self.suspects.clear()

    def _fail(self, i: int, why: str) -> None:
        n = len(self.items)
        self.values[i] = SweepError(f"item {i} of {n} has no value: {why}", item=i)
        self.failed.append(i)
        self.left -= 1
