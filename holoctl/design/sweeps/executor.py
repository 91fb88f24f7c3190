"""Workers of an executor that the caller brings: threads, processes, Dask, MPI.

How many there are nobody says; it is seen from who answers, and twice as many shares are under way.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import Any
from uuid import uuid4

from holoctl.base.cores import cores
from holoctl.base.errors import InputError
from holoctl.base.one_thread import one_thread
from holoctl.base.tolerances import SWEEP_PATIENCE
from holoctl.design.sweeps.shares import Share
from holoctl.design.sweeps.work import Done, Lost, far_share, said, worked

__all__ = ["Hired"]

Function = Callable[[Any], Any]


class Hired:
    """A crew of an executor; see `Crew`. The executor stays open."""

    def __init__(self, executor: Executor, function: Function | bytes, dumps: Any) -> None:
        self._submit: Callable[..., Future[Any]] = executor.submit
        self._function, self._dumps = function, dumps
        self._digest = hashlib.sha256(function).hexdigest() if isinstance(function, bytes) else ""
        self._shares: dict[Future[Any], Share] = {}
        self._known: list[tuple[Share, Done | Lost]] = []
        self._seen: set[tuple[str, int, int]] = set()
        self.ended, self._begun = "", False
        self._limit = one_thread() if callable(function) else None
        if self._limit is not None:  # they work in this process
            self._limit.__enter__()

    @property
    def width(self) -> int:
        return max(len(self._seen), cores())

    @property
    def busy(self) -> int:
        return len(self._shares) + len(self._known)

    @property
    def room(self) -> int:
        return 0 if self.ended else max(2 * self.width - len(self._shares), 0)

    def give(self, share: Share, items: Sequence[Any]) -> None:
        try:
            data = items if callable(self._function) else self._dumps(items)
        except Exception as error:
            self._known.append((share, Lost(f"it cannot be pickled: {said(error)}", sure=True)))
            return
        try:
            if callable(self._function):
                future = self._submit(worked, self._function, data, SWEEP_PATIENCE)
            else:
                future = self._submit(
                    far_share, self._digest, self._function, data, SWEEP_PATIENCE, uuid4().hex
                )
        except Exception as error:
            if not self._begun:
                raise InputError(f"sweep: the executor takes no work: {said(error)}") from None
            self.ended = f"the executor takes no more work: {said(error)}"
            self._known.append((share, Lost(f"it was not begun: {self.ended}")))
            return
        self._shares[future], self._begun = share, True

    def collect(self) -> list[tuple[Share, Done | Lost]]:
        found, self._known = self._known, []
        if not found:
            done, _ = wait(self._shares, return_when=FIRST_COMPLETED)
            found = [(self._shares.pop(future), _outcome(future)) for future in done]
        self._seen |= {outcome.who for _, outcome in found if isinstance(outcome, Done)}
        return found

    def close(self, at_once: bool) -> None:
        for future in self._shares:
            future.cancel()
        self._shares.clear()
        if self._limit is not None:
            self._limit.__exit__()


def _outcome(future: Future[Any]) -> Done | Lost:
    try:
        found = future.result()
    except Exception as error:
        return Lost(
            f"its worker gave nothing back: {said(error)}", function=isinstance(error, ImportError)
        )
    if isinstance(found, Done):
        return found
    try:
        outcome: Done | Lost = pickle.loads(found)
    except Exception as error:
        return Lost(f"what came back cannot be unpickled here: {said(error)}", sure=True)
    return outcome
