"""Workers of a sweep: processes that the library starts, or an executor of the caller.

The library starts one process for each core, with a pipe to each. If a worker dies, only its chunk
is lost, and another process replaces it; in the pool of `concurrent.futures` all workers would be
lost with it. Processes are forked from a server without threads (`forkserver`) if there is one: a
fork of this process would copy locks that threads of Dask, BLAS or a window hold, and `spawn`
repeats all imports for each worker.

The number of workers of an executor (threads, processes, Dask, MPI) is unknown; it is estimated
from the workers that have answered, and twice as many chunks are submitted.
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
    described,
    far_chunk,
    home,
    pickled_items,
    plain_pickle,
    serve,
    unpacked,
    worked,
)

__all__ = ["Workers", "at_work", "workers_of"]

MOST_PROCESSES = 1024
"""Largest number of processes of a sweep; computers have fewer cores."""

SWEEP_GOODBYE = 5.0  # s
"""A worker process that has not ended this time after its pipe was closed is killed."""


@dataclass(eq=False)
class _Process:
    """A worker process, the parent's end of its pipe, whether it is ready, and its chunk."""

    process: Any
    pipe: Connection
    ready: bool = False
    chunk: Chunk | None = None


class ProcessWorkers:
    """Processes of the library, for one function; see `Workers`."""

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
            self._receive()
        return sum(p.ready and p.chunk is None for p in self._processes)

    def give(self, chunk: Chunk, items: Sequence[Any]) -> LostChunk | None:
        data = pickled_items(plain_pickle, items)
        if isinstance(data, LostChunk):
            return data
        worker = next(p for p in self._processes if p.ready and p.chunk is None)
        worker.chunk = chunk
        with suppress(OSError):  # the worker died; reading from its pipe will fail
            worker.pipe.send_bytes(data)
        return None

    def collect(self) -> list[tuple[Chunk, ChunkResult | LostChunk]]:
        while not self._known:
            self._receive()
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
        """Another process, which sends a message when it is ready."""
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=serve, args=(theirs, self._function, home()), name="holoctl sweep"
        )
        try:
            process.start()
        except BaseException as error:
            ours.close()
            if isinstance(error, (RuntimeError, AssertionError, OSError)):  # of multiprocessing
                raise InputError(
                    f"sweep: no worker process can be started: {described(error)}"
                ) from error
            raise
        finally:
            theirs.close()
        return _Process(process, ours)

    def _receive(self) -> None:
        """Wait until a process sends a message, or dies."""
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
        """Record the lost chunk of a process, and start another process in its place."""
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
                f"the worker processes ended before they could begin ({how}); their messages are "
                "on the standard error output. A script that starts a sweep must do so under "
                "if __name__ == '__main__':, as workers import it"
            )


def _context() -> Any:
    """The start method of processes; the server imports the modules of holoctl that are imported
    here."""
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
                raise InputError(f"sweep: the executor takes no work: {described(error)}") from None
            self.ended = f"the executor takes no more work: {described(error)}"
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
            f"its worker returned nothing: {described(error)}",
            function=isinstance(error, ImportError),
        )
    return found if isinstance(found, ChunkResult) else unpacked(found)


# ------------------------------------------------------------------------------------ both kinds

Workers = ProcessWorkers | ExecutorWorkers
"""Workers of a sweep.

`width` is the number of workers, as far as it is known; `busy` the number of chunks that they have;
`room` the number of chunks that they accept now: 0 if no worker is left, with the reason in
`ended`. `give` submits a chunk, or returns why that is impossible; `collect` waits for at least one
outcome and returns all that have arrived. `close` ends the workers, with `at_once` also during
their work.
"""


@contextmanager
def at_work(workers: Workers) -> Iterator[Workers]:
    """The workers, which are closed at the end; at once after an error or Ctrl-C."""
    finished = False
    try:
        yield workers
        finished = True
    finally:
        workers.close(at_once=not finished)


def workers_of(owner: str, function: Any, executor: Any, count: int) -> Workers | None:
    """The workers for an executor; None if there are no items."""
    if executor is not None and not isinstance(executor, Executor):
        if not isinstance(executor, int) or isinstance(executor, bool):
            client = hasattr(executor, "get_executor")
            hint = "; for a Client of Dask, take client.get_executor()" if client else ""
            raise InputError(
                f"{owner}: executor must be a concurrent.futures.Executor, a number of processes, "
                f"or None; got {type(executor).__name__}{hint}"
            )
        executor = whole("executor", executor, 1)
        if executor > MOST_PROCESSES:
            raise InputError(
                f"{owner}: executor must be at most {MOST_PROCESSES} processes; got {executor} "
                f"(this computer has {cores()} cores)"
            )
    if isinstance(executor, ThreadPoolExecutor):
        return ExecutorWorkers(executor, function, None) if count else None
    near = executor is None or isinstance(executor, (int, ProcessPoolExecutor))
    dumps = plain_pickle if near else _any_pickle()
    try:
        data = dumps(function)
    except Exception as error:
        raise InputError(
            f"{owner}: the function cannot be pickled, so it cannot be sent to another process: "
            f"{described(error)}. Take a function of a module (no lambda, none defined in another "
            "function), with its arguments bound by functools.partial; or another executor: "
            "ThreadPoolExecutor, or that of Dask"
        ) from None
    if not count:
        return None
    if isinstance(executor, Executor):
        return ExecutorWorkers(executor, data, dumps)
    return ProcessWorkers(data, min(executor or cores(), count))


def _any_pickle() -> Dumps:
    """The pickle of cloudpickle if it is installed, as it is with Dask: workers on other computers
    do not have the script that runs here."""
    try:
        import cloudpickle
    except ImportError:
        return plain_pickle
    return lambda x: bytes(cloudpickle.dumps(x, protocol=pickle.HIGHEST_PROTOCOL))
