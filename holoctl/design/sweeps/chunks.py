"""Distribution of the items of a sweep in chunks of a suitable length.

The first chunks are single items. Later chunks take about `SWEEP_CHUNK` at the observed pace, less
toward the end, so that all workers finish together. A chunk that is lost is divided and given
again, until the item that causes the loss is alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from holoctl.base.errors import InputError, SweepError
from holoctl.design.sweeps.chunk_evaluation import Chunk, ChunkResult, LostChunk
from holoctl.design.sweeps.workers import Workers

__all__ = ["dealt_out"]

SWEEP_CHUNK = 0.1  # s
"""Expected time of a chunk, at the observed pace."""

SWEEP_CHUNKS_LEFT = 2
"""Toward the end the remaining items are divided into this number of chunks for each worker."""

SWEEP_LEAST = 2e-3  # s
"""Smallest expected time of a chunk toward the end."""

SWEEP_GROWTH = 8
"""A chunk has at most this multiple of the number of items of the longest one that was done."""

SWEEP_CUT = 8
"""Number of parts into which a lost chunk is divided."""


def dealt_out(workers: Workers, items: Sequence[Any], bar: Any) -> tuple[list[Any], list[int]]:
    """Values of all items, in order, and the indices of those that failed."""
    table = _Progress(items)
    while table.left:
        before = table.left
        _hand_out(workers, table)
        if workers.busy:
            for chunk, outcome in workers.collect():
                table.take(chunk, outcome)
        elif table.left and not workers.room:  # no worker is left
            table.give_up(workers.ended)
        if bar is not None:
            bar.update(before - table.left)
    return table.values, sorted(table.failed)


def _hand_out(workers: Workers, table: _Progress) -> None:
    """Give chunks while workers accept them; at the end single items whose worker was lost, each
    while no other worker is busy."""
    while table.todo and workers.room:
        _give(workers, table, table.next_chunk(workers.width))
    if table.suspects and not table.todo and not workers.busy and workers.room:
        table.on_trial = table.suspects.popleft()
        _give(workers, table, Chunk(table.on_trial, table.on_trial + 1))


def _give(workers: Workers, table: _Progress, chunk: Chunk) -> None:
    lost = workers.give(chunk, table.items[chunk.start : chunk.stop])
    if lost is not None:
        table.take(chunk, lost)


class _Progress:
    """The items of a sweep: those to do, those done with their values, and the observed pace."""

    def __init__(self, items: Sequence[Any]) -> None:
        n = len(items)
        self.items, self.failed = items, list[int]()
        self.values: list[Any] = [None] * n
        self.todo: deque[Chunk] = deque([Chunk(0, n)] if n else [])
        self.suspects: deque[int] = deque()
        self.on_trial = -1
        self.left, self.waiting = n, n
        self._pace, self._longest, self._lost = 0.0, 0, dict[int, str]()

    def next_chunk(self, width: int) -> Chunk:
        """The next chunk, removed from those to do."""
        start, stop = self.todo.popleft()
        end = min(stop, start + self._size(width))
        if end < stop:
            self.todo.appendleft(Chunk(end, stop))
        self.waiting -= end - start
        return Chunk(start, end)

    def _size(self, width: int) -> int:
        if not self._longest:
            return 1
        pace = max(self._pace, 1e-9)
        fair = max(self.waiting / (SWEEP_CHUNKS_LEFT * width), SWEEP_LEAST / pace)
        return max(1, int(min(SWEEP_CHUNK / pace, fair, SWEEP_GROWTH * self._longest)))

    def take(self, chunk: Chunk, outcome: ChunkResult | LostChunk) -> None:
        """Store the outcome of a chunk."""
        start, stop = chunk
        if isinstance(outcome, LostChunk):
            self._take_lost(chunk, outcome)
            return
        count = len(outcome.values)
        self.values[start : start + count] = outcome.values
        for i in outcome.failed:
            self.failed.append(start + i)
            if isinstance(error := outcome.values[i], SweepError) and error.item is None:
                error.item = start + i
        self.left -= count
        if start + count < stop:
            self._put_back(Chunk(start + count, stop))
        pace = outcome.seconds / count
        self._pace = 0.5 * (self._pace + pace) if self._longest else pace
        self._longest = max(self._longest, count)

    def _take_lost(self, chunk: Chunk, lost: LostChunk) -> None:
        start, stop = chunk
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
            self._put_back(Chunk(at, min(at + step, stop)))

    def _put_back(self, chunk: Chunk) -> None:
        self.todo.appendleft(chunk)
        self.waiting += chunk.stop - chunk.start

    def give_up(self, why: str) -> None:
        """Mark all items that are not done as failed, as no worker is left."""
        if self.left == len(self.items) and not self._lost:
            raise InputError(f"sweep: {why}")
        rest = [*self.suspects, *(i for chunk in self.todo for i in range(*chunk))]
        for i in rest:
            self._fail(i, self._lost.get(i, f"it was not begun: {why}"))
        self.todo.clear()
        self.suspects.clear()

    def _fail(self, i: int, why: str) -> None:
        n = len(self.items)
        self.values[i] = SweepError(f"item {i} of {n} has no value: {why}", item=i)
        self.failed.append(i)
        self.left -= 1
