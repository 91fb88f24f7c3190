"""Workers of a sweep: processes of our own, or an executor that the caller brings.

Of ours there is one process for each core, and a pipe to each. A worker that dies costs the chunk
it has, and another one takes its place; with the pool of `concurrent.futures` all others would be
lost with it. Processes come from a server that has no threads (`forkserver`), where there is one: a
fork of this process would copy locks that threads of Dask, BLAS or a window hold, and `spawn`
imports everything anew for each worker.

How many workers an executor has (threads, processes, Dask, MPI) nobody says; it is seen from who
answers, and twice as many chunks are under way.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any
from uuid import uuid4

from holoctl.base.checks import whole
from holoctl.base.cores import cores
from holoctl.base.errors import InputError
from holoctl.base.single_threaded_blas import one_thread
from holoctl.design.sweeps.chunk_evaluation import (
    Chunk,
    ChunkResult,
    Dumps,
    LostChunk,
    far_chunk,
    home,
    pickled_items,
    plain_pickle,
    said,
    serve,
    unpacked,
    worked,
)

__all__ = ["Workers", "at_work", "workers_of"]

MOST_PROCESSES = 1024
"""A sweep starts so many processes of its own at most: machines have fewer cores."""

SWEEP_GOODBYE = 5.0  # s
"""A worker process that is told to end and does not in this time is killed."""


@dataclass(eq=False)
class _Process:
    """A worker process, our end of its pipe, whether it has begun, and its chunk."""

    process: Any
    pipe: Connection
    ready: bool = False
    chunk: Chunk | None = None


class ProcessWorkers:
    """Processes of our own, for one function; see `Workers`."""

    def __init__(self, function: bytes, count: int) -> None:
        self._function, self.ended = function, ""
        self._known: list[tuple[Chunk, ChunkResult | LostChunk]] = []
        self._context = _context()
        self._processes: list[_Process] = []
        try:
            while len(self._processes) < count:
                self._processes.append(self._started())
        except BaseException:
            self.close(at_once=True)
            raise

    @property
    def width(self) -> int:
        return max(len(self._processes), 1)

    @property
    def busy(self) -> int:
        return len(self._known) + sum(p.chunk is not None for p in self._processes)

    @property
    def room(self) -> int:
        while self._processes and not any(p.ready for p in self._processes):
            self._hear()
        return sum(p.ready and p.chunk is None for p in self._processes)

    def give(self, chunk: Chunk, items: Sequence[Any]) -> LostChunk | None:
        data = pickled_items(plain_pickle, items)
        if isinstance(data, LostChunk):
            return data
        worker = next(p for p in self._processes if p.ready and p.chunk is None)
        worker.chunk = chunk
        with suppress(OSError):  # it died meanwhile: that there is nothing to read will tell
            worker.pipe.send_bytes(data)
        return None

    def collect(self) -> list[tuple[Chunk, ChunkResult | LostChunk]]:
        while not self._known:
            self._hear()
        found, self._known = self._known, []
        return found

    def close(self, at_once: bool) -> None:
        for p in self._processes:
            if at_once:
                p.process.kill()
            p.pipe.close()
        for p in self._processes:
            p.process.join(None if at_once else SWEEP_GOODBYE)
            if p.process.exitcode is None:
                p.process.kill()
                p.process.join()
            p.process.close()
        self._processes.clear()

    def _started(self) -> _Process:
        """Another process, which will say when it is there."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=serve, args=(theirs, self._function, home()), name="holoctl sweep"
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
        return _Process(process, ours)

    def _hear(self) -> None:
        """Wait until a process says something, or dies."""
        by_pipe = {p.pipe: p for p in self._processes}
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[pipe]  # type: ignore[index]
            try:
                message = worker.pipe.recv_bytes()
            except (EOFError, OSError):
                self._died(worker)
                continue
            if worker.chunk is not None:
                chunk, worker.chunk = worker.chunk, None
                self._known.append((chunk, unpacked(message)))
            elif message:
                lost: LostChunk = pickle.loads(message)
                raise InputError(
                    f"sweep: a worker process could not load the function: {lost.why}; it must "
                    "be importable there: a function of a module, not of an interactive session"
                )
            else:
                worker.ready = True

    def _died(self, worker: _Process) -> None:
        """Note what a process took along, and put another one in its place."""
        worker.process.join()
        how = _ending(worker.process.exitcode)
        worker.process.close()
        worker.pipe.close()
        self._processes.remove(worker)
        if worker.chunk is not None:
            lost = LostChunk(f"its worker process ended ({how}) while it was worked on", sure=True)
            self._known.append((worker.chunk, lost))
        if worker.ready:
            self._processes.append(self._started())
        elif not self._processes:
            self.ended = (
                f"the worker processes ended before they could begin ({how}); what they said is on "
                "the standard error output. A script that starts a sweep must do so under "
                "if __name__ == '__main__':, for workers import it"
            )


def _context() -> Any:
    """How processes are started; the server imports what of holoctl is imported here."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(sorted(m for m in sys.modules if m.startswith("holoctl.")))
    return context


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


class ExecutorWorkers:
    """Workers of an executor, which stays open; see `Workers`. Without `dumps` they work in this
    process, and nothing is pickled."""

    def __init__(self, executor: Executor, function: Any, dumps: Dumps | None) -> None:
        self._executor, self._dumps = executor, dumps
        self._call: Callable[..., Any] = partial(worked, function)
        if dumps is not None:
            self._call = partial(far_chunk, hashlib.sha256(function).hexdigest(), function)
        self._chunks: dict[Future[Any], Chunk] = {}
        self._seen: set[tuple[str, int, int]] = set()
        self.ended, self._begun = "", False
        self._limit = ExitStack()
        if dumps is None:
            self._limit.enter_context(one_thread())

    @property
    def width(self) -> int:
        return max(len(self._seen), cores())

    @property
    def busy(self) -> int:
        return len(self._chunks)

    @property
    def room(self) -> int:
        return 0 if self.ended else max(2 * self.width - len(self._chunks), 0)

    def give(self, chunk: Chunk, items: Sequence[Any]) -> LostChunk | None:
        data = items if self._dumps is None else pickled_items(self._dumps, items)
        if isinstance(data, LostChunk):
            return data
        attempt = () if self._dumps is None else (uuid4().hex,)
        try:
            future = self._executor.submit(self._call, data, *attempt)
        except Exception as error:
            if not self._begun:
                raise InputError(f"sweep: the executor takes no work: {said(error)}") from None
            self.ended = f"the executor takes no more work: {said(error)}"
            return LostChunk(f"it was not begun: {self.ended}")
        self._chunks[future], self._begun = chunk, True
        return None

    def collect(self) -> list[tuple[Chunk, ChunkResult | LostChunk]]:
        done, _ = wait_for(self._chunks, return_when=FIRST_COMPLETED)
        found = [(self._chunks.pop(future), _outcome(future)) for future in done]
        self._seen |= {outcome.who for _, outcome in found if isinstance(outcome, ChunkResult)}
        return found

    def close(self, at_once: bool) -> None:
        for future in self._chunks:
            future.cancel()
        self._chunks.clear()
        self._limit.close()


def _outcome(future: Future[Any]) -> ChunkResult | LostChunk:
    try:
        found = future.result()
    except Exception as error:
        return LostChunk(
            f"its worker gave nothing back: {said(error)}", function=isinstance(error, ImportError)
        )
    return found if isinstance(found, ChunkResult) else unpacked(found)


# ---------------------------------------------------------------------------------- who works

Workers = ProcessWorkers | ExecutorWorkers
"""Those who work. `width`: how many at the same time, as far as is known; `room`: how many more
chunks they take now, 0 where nobody works any more, and `ended` says why; `busy`: how many they
have. `give` gives them a chunk, or tells that it cannot be; what becomes of it is told by
`collect`, at least of one, which waits for it. `close` ends them, `at_once` whatever they do."""


@contextmanager
def at_work(workers: Workers) -> Iterator[Workers]:
    """The workers, which are ended at the end; where that is an error or Ctrl-C, at once."""
    finished = False
    try:
        yield workers
        finished = True
    finally:
        workers.close(at_once=not finished)


def workers_of(owner: str, function: Any, executor: Any, count: int) -> Workers | None:
    """Those who will work; None where there is nothing to do."""
    if executor is not None and not isinstance(executor, Executor):
        if not isinstance(executor, int) or isinstance(executor, bool):
            client = hasattr(executor, "get_executor")
            hint = "; of a Client of Dask, client.get_executor()" if client else ""
            raise InputError(
                f"{owner}: executor must be a concurrent.futures.Executor, a number of processes, "
                f"or None; got {type(executor).__name__}{hint}"
            )
        executor = whole("executor", executor, 1)
        if executor > MOST_PROCESSES:
            raise InputError(
                f"{owner}: executor must be at most {MOST_PROCESSES} processes; got {executor} "
                f"(this machine has {cores()} cores)"
            )
    if isinstance(executor, ThreadPoolExecutor):
        return ExecutorWorkers(executor, function, None) if count else None
    near = executor is None or isinstance(executor, (int, ProcessPoolExecutor))
    dumps = plain_pickle if near else _any_pickle()
    try:
        data = dumps(function)
    except Exception as error:
        raise InputError(
            f"{owner}: the function does not pickle, so no other process can have it: "
            f"{said(error)}. Take a function of a module (no lambda, none defined in another "
            "function), with what it needs bound by functools.partial; or an executor that takes "
            "it: ThreadPoolExecutor, or that of Dask"
        ) from None
    if not count:
        return None
    if isinstance(executor, Executor):
        return ExecutorWorkers(executor, data, dumps)
    return ProcessWorkers(data, min(executor or cores(), count))


def _any_pickle() -> Dumps:
    """That of cloudpickle where it is installed, as it is with Dask: far workers do not know the
    script that runs here."""
    try:
        import cloudpickle
    except ImportError:
        return plain_pickle
    return lambda x: bytes(cloudpickle.dumps(x, protocol=pickle.HIGHEST_PROTOCOL))
