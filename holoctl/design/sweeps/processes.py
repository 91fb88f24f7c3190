"""Workers on this machine: one process for each core, and a pipe to each.

A worker that dies costs the share it has, and another one takes its place; with the pool of
`concurrent.futures` all others would be lost with it. Processes come from a server that has no
threads (`forkserver`), where there is one: a fork of this process would copy locks that threads of
Dask, BLAS or a window hold, and `spawn` imports everything anew for each worker.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from holoctl.base.errors import InputError
from holoctl.base.tolerances import SWEEP_PATIENCE
from holoctl.design.sweeps.shares import Share
from holoctl.design.sweeps.work import Done, Lost, said, serve

__all__ = ["Processes"]

SWEEP_GOODBYE = 5.0  # s
"""A worker that is sent home and does not go in this time is killed."""


@dataclass(eq=False)
class _Worker:
    """A process, our end of its pipe, whether it has said that it is there, and what it has."""

    process: Any
    pipe: Connection
    ready: bool = False
    share: Share | None = None


class Processes:
    """A crew of processes of our own, for one function; see `Crew`."""

    def __init__(self, function: bytes, count: int) -> None:
        self._function, self._count, self.ended = function, count, ""
        self._known: list[tuple[Share, Done | Lost]] = []
        self._context = _context()
        self._workers: list[_Worker] = []
        try:
            while len(self._workers) < count:
                self._workers.append(self._hired())
        except BaseException:
            self.close(at_once=True)
            raise

    @property
    def width(self) -> int:
        return max(len(self._workers), 1)

    @property
    def busy(self) -> int:
        return len(self._known) + sum(w.share is not None for w in self._workers)

    @property
    def room(self) -> int:
        while self._workers and not any(w.ready for w in self._workers):
            self._hear()
        return sum(w.ready and w.share is None for w in self._workers)

    def give(self, share: Share, items: Sequence[Any]) -> None:
        try:
            data = pickle.dumps(items, pickle.HIGHEST_PROTOCOL)
            message = pickle.dumps((SWEEP_PATIENCE, data), pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            self._known.append((share, Lost(f"it cannot be pickled: {said(error)}", sure=True)))
            return
        worker = next(w for w in self._workers if w.ready and w.share is None)
        worker.share = share
        with suppress(OSError):  # it died meanwhile: that there is nothing to read will tell
            worker.pipe.send_bytes(message)

    def collect(self) -> list[tuple[Share, Done | Lost]]:
        while not self._known:
            self._hear()
        found, self._known = self._known, []
        return found

    def close(self, at_once: bool) -> None:
        for w in self._workers:
            if at_once:
                w.process.kill()
            w.pipe.close()
        for w in self._workers:
            w.process.join(None if at_once else SWEEP_GOODBYE)
            if w.process.exitcode is None:
                w.process.kill()
                w.process.join()
            w.process.close()
        self._workers.clear()

    def _hired(self) -> _Worker:
        """Another worker, which will say when it is there."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=serve, args=(theirs, self._function), name="holoctl sweep"
        )
        try:
            process.start()
        except BaseException as error:
            ours.close()
            if isinstance(error, (RuntimeError, AssertionError, OSError)):  # as it says no
                raise InputError(f"sweep: no worker process starts: {said(error)}") from error
            raise
        finally:
            theirs.close()
        return _Worker(process, ours)

    def _hear(self) -> None:
        """Wait until somebody says something, or dies."""
        by_pipe = {w.pipe: w for w in self._workers}
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                message = worker.pipe.recv_bytes()
            except (EOFError, OSError):
                self._died(worker)
                continue
            if worker.share is not None:
                share, worker.share = worker.share, None
                self._known.append((share, _unpacked(message)))
            elif message:
                lost: Lost = pickle.loads(message)
                raise InputError(
                    f"sweep: a worker process could not load the function: {lost.why}; it must "
                    "be importable there: a function of a module, not of an interactive session"
                )
            else:
                worker.ready = True

    def _died(self, worker: _Worker) -> None:
        """Note what a worker took along, and put another one in its place."""
        worker.process.join()
        how = _ending(worker.process.exitcode)
        worker.process.close()
        worker.pipe.close()
        self._workers.remove(worker)
        if worker.share is not None:
            lost = Lost(f"its worker process ended ({how}) while it was worked on", sure=True)
            self._known.append((worker.share, lost))
        if worker.ready:
            self._workers.append(self._hired())
        elif not self._workers:
            self.ended = (
                f"the worker processes ended before they could begin ({how}); what they said is on "
                "the standard error output. A script that starts a sweep must do so under "
                "if __name__ == '__main__':, for workers import it"
            )


def _unpacked(message: bytes) -> Done | Lost:
    try:
        outcome: Done | Lost = pickle.loads(message)
    except Exception as error:
        return Lost(f"what came back cannot be unpickled here: {said(error)}", sure=True)
    return outcome


def _context() -> Any:
    """How processes are started; the server imports what of holoctl is imported here."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(sorted(m for m in sys.modules if m.startswith("holoctl.")))
    return context


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            pass
    return f"exit code {code}"
